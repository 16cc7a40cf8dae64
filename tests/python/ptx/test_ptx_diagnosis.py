"""Faults that a GPU may let pass: what stops a launch, and what it does when it goes on.

Masks of warp-wide operations, barriers that part of a warp reaches, memory that is not there.
"""

import re
import warnings

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import at, compile_body, run
from warpstack.errors import InputError

STORE = at("%l0", "%a0", "%g", 4) + "st.global.u32 [%l0], %r0;"


def results(body, block=32, notes=(), **options):
    """Run a body of 64 or fewer threads that stores %r0; each of `notes` is in one warning."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        (out,), _ = run(body + STORE, np.zeros(block, np.uint32), block=block, **options)
    messages = [str(warning.message) for warning in seen]
    assert all(warning.category is ws.cuda.KernelWarning for warning in seen)
    assert len(messages) == len(notes), messages
    for note, message in zip(notes, messages, strict=True):
        assert note in message
    return out.tolist()


def error_of(body, block=32, **options):
    with pytest.raises(InputError) as caught:
        run(body + STORE, np.zeros(block, np.uint32), block=block, **options)
    return re.sub(r"PTX line \d+", "PTX line N", str(caught.value))


# ---- masks ----

SUM_OF_EIGHT = (
    "mov.u32 %r0, 0; setp.ge.u32 %p0, %t, 8; @%p0 bra end; add.u32 %r0, %t, 1;"
    + "".join(
        f"shfl.sync.down.b32 %r1, %r0, {d}, 31, 255; add.u32 %r0, %r0, %r1;"
        for d in (16, 8, 4, 2, 1)
    )
    + "end:"
)


def test_shuffles_from_lanes_outside_the_mask():
    assert error_of(SUM_OF_EIGHT) == (
        "kernel k (PTX line N, shfl.sync.down.b32), block (0, 0, 0), thread (0, 0, 0): lanes 0-7 of "
        "the warp read lanes whose values are undefined: lane 0 reads lane 16, which the mask 0xff "
        'leaves out and which does not execute this (correct the mask; on_fault="continue" of a '
        "launch, --on-fault continue of warpstack trace, gives what a GPU does)"
    )
    out = results(SUM_OF_EIGHT, on_fault="continue", notes=["(5 times at this line)"])
    assert out[0] == 36  # absent lanes give 0
    assert out[8:] == [0] * 24


def test_shuffle_from_a_present_lane_that_the_mask_leaves_out():
    body = (
        "mov.u32 %r2, 0xffff; setp.lt.u32 %p0, %t, 16; selp.u32 %r2, 0xffff, 0xffff0000, %p0;"
        "add.u32 %r1, %t, 7; shfl.sync.idx.b32 %r0, %r1, 3, 31, %r2;"
    )
    assert "lanes 16-31 of the warp read lanes" in error_of(body)
    out = results(body, on_fault="continue", notes=["which the mask 0xffff0000 leaves out"])
    assert out == [10] * 32


def test_shuffle_from_a_lane_that_has_exited():
    body = "setp.eq.u32 %p0, %t, 5; @%p0 exit; shfl.sync.idx.b32 %r0, %t, {lane}, 31, -1;"
    assert results(body.format(lane=4)) == [4] * 5 + [0] + [4] * 26  # the full mask itself is fine
    assert "lane 0 reads lane 5, which does not execute this" in error_of(body.format(lane=5))


BALLOT_OF_LOWER_LANES = (
    "mov.u32 %r2, %lanemask_lt; rem.u32 %r3, %t, 3; setp.eq.u32 %p0, %r3, 0;"
    "vote.sync.ballot.b32 %r0, %p0, %r2;"
)


def test_masks_that_leave_the_caller_out():
    assert error_of(BALLOT_OF_LOWER_LANES).startswith(
        "kernel k (PTX line N, vote.sync.ballot.b32), block (0, 0, 0), thread (0, 0, 0): masks leave "
        "out lanes that execute this with them: lanes 0-31 of the warp, lane 0 with the mask 0x0"
    )
    out = results(BALLOT_OF_LOWER_LANES, on_fault="continue", notes=["(once at this line)"])
    full = sum(1 << lane for lane in range(0, 32, 3))
    assert out == [full & ((1 << lane) - 1) for lane in range(32)]


@pytest.mark.parametrize(
    "operation",
    [
        "redux.sync.add.s32 %r0, %t, 6;",
        "match.any.sync.b32 %r0, %t, 6;",
        "elect.sync %r0|%p1, 6;",
    ],
)
def test_what_no_source_tells_is_refused(operation):
    message = error_of(operation, on_fault="continue")
    assert "them: lanes 0, 3-31 of the warp" in message
    assert "on_fault does not apply" in message


def test_warp_barrier_with_a_mask_that_leaves_the_caller_out():
    body = "mov.u32 %r0, 1; bar.warp.sync 0xfffffffe;"
    assert "execute this with them: lane 0 of the warp" in error_of(body)
    assert results(body, on_fault="continue", notes=["0xfffffffe"]) == [1] * 32


def test_masks_of_tiles():
    """Lanes of one instruction that name their own tile each."""
    body = (
        "and.b32 %r1, %t, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;"
        "redux.sync.add.s32 %r0, %t, %r2;"
    )
    assert results(body) == [8 * (t // 8 * 8) + 28 for t in range(32)]


def test_both_ways_of_a_branch_exchange_values():
    """The programming guide's example: the full mask in both branches."""
    body = (
        "setp.lt.u32 %p0, %t, 16; @%p0 bra low; shfl.sync.bfly.b32 %r0, %t, 16, 31, -1;"
        "add.u32 %r0, %r0, 100; bra end;"
        "low: shfl.sync.bfly.b32 %r0, %t, 16, 31, -1; add.u32 %r0, %r0, 200; end:"
    )
    assert results(body) == [(t ^ 16) + (200 if t < 16 else 100) for t in range(32)]


def test_warp_barrier_orders_the_two_ways_of_a_branch():
    body = (
        ".shared .align 4 .b8 s[128]; mul.lo.u32 %r1, %t, 4; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;"
        "xor.b32 %r3, %r1, 64; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; setp.lt.u32 %p0, %t, 16;"
        "@%p0 bra low; add.u32 %r5, %t, 100; st.shared.u32 [%r2], %r5; bar.warp.sync -1;"
        "ld.shared.u32 %r0, [%r4]; bra end;"
        "low: add.u32 %r5, %t, 200; st.shared.u32 [%r2], %r5; bar.warp.sync -1;"
        "ld.shared.u32 %r0, [%r4]; end:"
    )
    assert results(body) == [(t ^ 16) + (100 if t < 16 else 200) for t in range(32)]


def test_lanes_that_exit_are_waited_for_and_not_counted():
    body = (
        "setp.ge.u32 %p0, %t, 8; @%p0 bra out; setp.eq.u32 %p1, %t, %t;"
        "vote.sync.ballot.b32 %r0, %p1, -1; bra end; out: mov.u32 %r0, 3; end:"
    )
    assert results(body) == [255] * 8 + [3] * 24


def test_full_mask_in_a_loop_that_lanes_leave():
    body = (
        "mov.u32 %r0, 0; rem.u32 %r3, %t, 5; again: setp.ge.u32 %p0, %r0, %r3; @%p0 bra out;"
        "add.u32 %r0, %r0, 1; bar.warp.sync -1; bra again; out:"
    )
    assert results(body) == [t % 5 for t in range(32)]


LANES_AT_THE_BARRIER = (
    "setp.ge.u32 %p0, %t, 8; mov.u32 %r0, 5; @%p0 bra end; setp.eq.u32 %p1, %t, %t;"
    "vote.sync.ballot.b32 %r0, %p1, -1; end: bar.sync 0;"
)


def test_lanes_that_do_not_come():
    assert error_of(LANES_AT_THE_BARRIER) == (
        "kernel k (PTX line N, vote.sync.ballot.b32), block (0, 0, 0), thread (0, 0, 0): lanes 0-7 "
        "of the warp wait here for lanes 8-31, which their mask 0xffffffff names and which do not "
        "come; lanes 8-31 wait at PTX line N, bar.sync: a GPU may wait for ever (name those lanes "
        'alone that execute this; on_fault="continue" of a launch, --on-fault continue of warpstack '
        "trace, goes on without the others)"
    )
    notes = ["lanes 0-7 of the warp wait here for lanes 8-31"]
    out = results(LANES_AT_THE_BARRIER, on_fault="continue", notes=notes)
    assert out == [255] * 8 + [5] * 24


@pytest.mark.parametrize("on_fault", ["stop", "continue"])
def test_nothing_is_computed_from_lanes_that_do_not_come_to_a_warp_sync(on_fault):
    body = "mov.u32 %r0, 5; setp.ge.u32 %p0, %t, 2; @%p0 bra end; bar.warp.sync -1; mov.u32 %r0, 7;"
    notes = ["lanes 0, 1 of the warp wait here for lanes 2-31"]
    out = results(f"{body} end: bar.sync 0;", on_fault=on_fault, notes=notes)
    assert out == [7] * 2 + [5] * 30


def test_lanes_that_wait_at_a_barrier_are_left_out_each_time():
    """The last step of a reduction, by part of each warp, in a loop."""
    body = (
        "mov.u32 %r0, 0; mov.u32 %r1, 0; loop: setp.ge.u32 %p0, %t, 8; @%p0 bra meet;"
        "shfl.sync.bfly.b32 %r2, %t, 1, 31, -1; add.u32 %r0, %r0, %r2; meet: bar.sync 0;"
        "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 bra loop;"
    )
    out = results(body, 64, on_fault="continue", notes=["(3 times at this line)"])
    assert out == [3 * (t ^ 1) for t in range(8)] + [0] * 56


@pytest.mark.parametrize("on_fault", ["stop", "continue"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("redux.sync.add.u32 %r0, %t, -1;", "redux.sync.min.u32 %r0, %t, -1;"),
        ("redux.sync.min.u32 %r0, %t, -1;", "redux.sync.min.s32 %r0, %t, -1;"),
        ("match.any.sync.b32 %r0, %t, -1;", "match.any.sync.b64 %r0, %l2, -1;"),
    ],
)
def test_different_operations_do_not_meet(low, high, on_fault):
    body = f"mov.u64 %l2, 7; setp.lt.u32 %p0, %t, 16; @%p0 bra low; {high} bra end; low: {low} end:"
    message = error_of(body, on_fault=on_fault)
    assert "which their mask 0xffffffff names and which do not come" in message
    assert "on_fault does not apply" in message


# ---- functions ----


def function(body):
    return f""".func (.param .b32 out) f(.param .b32 in)
{{
.reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %l<4>;
ld.param.u32 %r1, [in]; mov.u32 %r0, 77; mov.u64 %l1, 1; setp.eq.u32 %p1, %r1, %r1;
{body}
end: st.param.b32 [out], %r0; ret;
}}"""


#: Lanes 0 to 15 call f, and so do the others, in the other way of the branch.
CALL = "{ .param .b32 x, y; st.param.b32 [x], %t; call (y), f, (x); ld.param.b32 %r0, [y]; }"
BOTH_CALL = f"setp.lt.u32 %p0, %t, 16; @%p0 bra low; {CALL} bra end; low: {CALL} end:"


@pytest.mark.parametrize("on_fault", ["stop", "continue"])
@pytest.mark.parametrize(
    "operation",
    [
        "vote.sync.ballot.b32 %r0, %p1, -1;",
        "shfl.sync.idx.b32 %r0, %r1, 3, 31, -1;",
        "match.any.sync.b64 %r0, %l1, -1;",
        "redux.sync.add.u32 %r0, %r1, -1;",
        "elect.sync %r0|%p2, -1;",
        "bar.warp.sync -1;",
    ],
)
def test_masks_that_name_lanes_of_a_caller(operation, on_fault):
    message = error_of(BOTH_CALL, outside=function(operation), on_fault=on_fault)
    assert re.search(
        r"lanes (0-15|16-31) of the warp wait here for lanes (0-15|16-31), which their mask "
        r"0xffffffff names and which wait in a caller of f: on_fault does not apply",
        message,
    )
    # All together, or each half by itself, they may.
    results(CALL, outside=function(operation))
    own = "setp.lt.u32 %p3, %r1, 16; selp.u32 %r2, 0xffff, 0xffff0000, %p3;"
    half = own + operation.replace(" 3, 31, -1;", " %r1, 31, -1;").replace("-1;", "%r2;")
    results(BOTH_CALL, outside=function(half))


def test_masks_that_name_lanes_that_have_returned():
    outside = function("setp.lt.u32 %p2, %r1, 8; @%p2 ret; vote.sync.ballot.b32 %r0, %p1, -1;")
    assert "lanes 8-31 of the warp name lanes 0-7 in their masks, which have returned from f" in (
        error_of(CALL, outside=outside)
    )
    out = results(CALL, outside=outside, on_fault="continue", notes=["have returned from f"])
    assert out[8:] == [0xFFFFFF00] * 24
    # Those that come first wait for them.
    waits = outside.replace("@%p2 ret;", "@!%p2 bra vote; mov.u32 %r3, 1; ret; vote:")
    out = results(CALL, outside=waits, on_fault="continue", notes=["have returned from f"])
    assert out[8:] == [0xFFFFFF00] * 24


@pytest.mark.parametrize("on_fault", ["stop", "continue"])
def test_barrier_in_a_function_that_part_of_a_warp_calls(on_fault):
    """The others wait at a step that the function does not have."""
    body = (
        "mov.u32 %r1, 0;"
        + "add.u32 %r1, %r1, 1;" * 400
        + "setp.lt.u32 %p0, %t, 16; @%p0 bra low;"
        + CALL
        + "bra end; low: vote.sync.ballot.b32 %r0, %p0, -1; end:"
    )
    message = error_of(body, outside=function("bar.sync 0;"), on_fault=on_fault)
    assert "divergent barrier" in message
    if on_fault == "continue":
        assert "waits for lanes 0-15 of the warp, which have not called this function" in message


# ---- barriers ----

TWO_BARRIERS = (
    ".shared .align 4 .b8 s[256]; mul.lo.u32 %r9, %t, 4; mov.u32 %r8, s; add.u32 %r8, %r8, %r9;"
    "setp.lt.u32 %p0, %t, 40; @%p0 bra low; st.shared.u32 [%r8], %t; bar.sync 0; bra end;"
    "low: st.shared.u32 [%r8], %t; bar.sync 0; end: xor.b32 %r7, %r9, 252; mov.u32 %r6, s;"
    "add.u32 %r6, %r6, %r7; ld.shared.u32 %r0, [%r6]; bar.sync 0;"
)


def test_barriers_count_threads():
    assert "divergent barrier" in error_of(TWO_BARRIERS, block=64)
    out = results(TWO_BARRIERS, 64, ["divergent barrier"], on_fault="continue")
    assert out == list(range(63, -1, -1))
    # A barrier that is not aligned may be reached in parts.
    assert results(TWO_BARRIERS.replace("bar.sync", "barrier.sync"), 64) == out


def test_barrier_that_part_of_a_warp_reaches_before_the_rest_exits():
    body = (
        "mov.u32 %r0, %t; setp.lt.u32 %p0, %t, 40; @%p0 bra over; bar.sync 0; add.u32 %r0, %t, 1;"
        "over:"
    )
    out = results(
        body,
        64,
        [
            "8 of 32 threads"[2:],
        ],
        on_fault="continue",
    )
    assert out == [t if t < 40 else t + 1 for t in range(64)]


def test_reduction_at_a_divergent_barrier():
    body = (
        "setp.lt.u32 %p0, %t, 8; setp.ge.u32 %p1, %t, 4; @%p0 bra low;"
        "bar.red.popc.u32 %r0, 0, %p1; bra end; low: bar.red.popc.u32 %r0, 0, %p1; end:"
    )
    assert results(body, 64, ["divergent barrier"], on_fault="continue") == [60] * 64


def test_different_barriers_in_one_warp_are_refused():
    body = "setp.lt.u32 %p0, %t, 8; @%p0 bra low; bar.sync 1; bra end; low: bar.sync 2; end:"
    assert "lanes of the warp wait at different barriers" in error_of(body, on_fault="continue")


# ---- memory ----


def test_accesses_beside_an_allocation():
    body = at("%l1", "%a0", "%g", 4) + "ld.global.u32 %r0, [%l1+64]; st.global.u32 [%l1+64], %t;"
    with pytest.warns(ws.cuda.KernelWarning) as seen:
        (out,), _ = run(body + STORE, np.full(32, 5, np.uint32), on_fault="continue")
    # Both are on one line of the text, where loads and stores are counted together.
    assert "thread (16, 0, 0): out-of-bounds load of 4 bytes" in str(seen[0].message)
    assert str(seen[0].message).endswith("(32 times at this line)")
    assert len(seen) == 1
    # Threads 0 to 15 have loaded what was there, then stored their numbers 16 words on.
    assert out.tolist() == [5] * 16 + [0] * 16
    assert "out-of-bounds load" in error_of(body)


@pytest.mark.parametrize(
    "body",
    [
        "mov.u64 %l1, 0; st.global.u32 [%l1], %t;",  # a page that no GPU maps
        "ld.global.u32 %r0, [%a0+1];",  # misaligned
        "trap;",
    ],
)
def test_what_stops_a_gpu_stays_an_error(body):
    error_of(body, on_fault="continue")


def test_uninitialized_memory_is_noted():
    device = ws.cuda.Device(0.25)
    kernel = compile_body(
        at("%l0", "%a0", "%g", 4) + "ld.global.u32 %r0, [%l0]; add.u32 %r0, %r0, 7;" + STORE,
        1,
        device=device,
    ).kernel("k")
    memory = device.empty(32, np.uint32)
    with pytest.warns(ws.cuda.KernelWarning, match=r"nobody has written.*\(32 times"):
        kernel.launch(1, 32, memory, on_fault="continue")
    assert memory.to_host().tolist() == [7] * 32


def test_notes_come_before_an_error():
    body = at("%l1", "%a0", "%g", 4) + "ld.global.u32 %r0, [%l1+64]; trap;"
    with (
        pytest.warns(ws.cuda.KernelWarning, match=r"out-of-bounds load.*\(16 times at this line\)"),
        pytest.raises(InputError, match="executed a trap"),
    ):
        run(body + STORE, np.zeros(32, np.uint32), on_fault="continue")


def test_a_wrong_choice():
    with pytest.raises(InputError, match="on_fault = 'go' is not one of stop, continue"):
        run("mov.u32 %r0, 1;", np.zeros(32, np.uint32), on_fault="go")
