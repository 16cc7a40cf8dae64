"""Blocks of plain launches that wait for each other, barriers in loops, and clocks."""

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import OWN_WORD, at, compile_body, message_of, run
from warpstack.errors import InputError

BLOCK = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;"
# Thread 0 of each block counts itself, and waits until all of `rounds` times the grid have come.
GRID_BARRIER = """
membar.gl; bar.sync 0; setp.ne.u32 %p5, %t, 0; @%p5 bra met{n};
mul.lo.u32 %r20, %r2, {rounds}; atom.global.add.u32 %r21, [%a1], 1;
wait{n}: ld.{load}global.u32 %r22, [%a1]; {more} setp.lt.u32 %p6, %r22, %r20; @%p6 bra wait{n};
met{n}: bar.sync 0;
"""


def barrier(n, load="volatile.", more=""):
    return GRID_BARRIER.format(n=n, rounds=n, load=load, more=more)


def neighbours(**options):
    """Thread g of n adds what thread g + 1 has, twice."""
    sums = ""
    for i in range(2):
        sums += "ld.global.u32 %r5, [%l0]; ld.global.u32 %r6, [%l1]; add.u32 %r5, %r5, %r6;"
        sums += barrier(2 * i + 1, **options) + "st.global.u32 [%l0], %r5;"
        sums += barrier(2 * i + 2, **options)
    next_thread = (
        "mov.u32 %r3, %ntid.x; mul.lo.u32 %r4, %r2, %r3; add.u32 %r5, %g, 1; rem.u32 %r5, %r5, %r4;"
    )
    return BLOCK + next_thread + at("%l0", "%a0", "%g", 4) + at("%l1", "%a0", "%r5", 4) + sums


@pytest.mark.parametrize("grid", [2, 13])
@pytest.mark.parametrize(
    ("load", "more"),
    [
        ("volatile.", ""),
        ("", "membar.gl;"),  # loads that a compiler may not join
        ("relaxed.gpu.", "nanosleep.u32 100;"),
        ("volatile.", "add.u32 %r7, %r7, 1;"),  # a count of the looks
    ],
)
def test_software_grid_barrier(grid, load, more):
    values = np.random.default_rng(grid).integers(0, 2**32, grid * 64, dtype=np.uint32)
    expected = values + np.roll(values, -1)
    expected = expected + np.roll(expected, -1)
    body = "mov.u32 %r7, 0;" + neighbours(load=load, more=more)
    digests = set()
    for trace in (True, True, False):
        (got, _), traced = run(
            body, values, np.zeros(1, np.uint32), grid=grid, block=64, trace=trace
        )
        assert np.array_equal(got, expected)
        if traced is not None:
            digests.add(traced.digest)
            assert traced.num_warps == 2 * grid
    assert len(digests) == 1


def test_a_barrier_of_the_block_in_the_loop_that_waits():
    """Thread 0 looks, all threads of the block go round."""
    body = BLOCK + (
        ".shared .align 4 .b8 s[4]; mov.u32 %r9, s; setp.eq.u32 %p0, %t, 0;"
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra last;"
        "again: @%p0 ld.volatile.global.u32 %r3, [%a0]; @%p0 st.shared.u32 [%r9], %r3; bar.sync 0;"
        "ld.shared.u32 %r4, [%r9]; bar.sync 0; setp.eq.u32 %p2, %r4, 0; @%p2 bra again; bra end;"
        "last: mov.u32 %r3, 5; @%p0 st.volatile.global.u32 [%a0], %r3; end:"
    )
    (flag,), _ = run(body, np.zeros(1, np.uint32), grid=2, block=96)
    assert flag[0] == 5


def test_ticket_lock_whose_first_ticket_a_later_block_has():
    """Block b serves when b blocks behind it have: the last one goes first."""
    body = BLOCK + (
        "sub.u32 %r3, %r2, %r1; sub.u32 %r3, %r3, 1;"  # its ticket
        "setp.ne.u32 %p0, %t, 0; @%p0 bra end;"
        "again: ld.acquire.gpu.global.u32 %r4, [%a0]; setp.ne.u32 %p1, %r4, %r3; @%p1 bra again;"
        + at("%l0", "%a1", "%r3", 4)
        + "st.global.u32 [%l0], %r1; add.u32 %r4, %r4, 1; st.release.gpu.global.u32 [%a0], %r4; end:"
    )
    (turn, order), _ = run(body, np.zeros(1, np.uint32), np.zeros(40, np.uint32), grid=40)
    assert turn[0] == 40
    assert order.tolist() == list(range(39, -1, -1))


def test_queue_of_consumers_and_producers():
    """The first blocks take 8 items each from a ring of 4 slots that the later ones fill."""
    body = BLOCK + (
        "setp.ne.u32 %p0, %t, 0; @%p0 bra end; mov.u32 %r3, 0; mov.u32 %r10, 0;"
        "setp.ge.u32 %p1, %r1, 3; @%p1 bra produce;"
        "take: atom.global.add.u32 %r4, [%a0], 1;"  # the number of an item
        "and.b32 %r5, %r4, 3; mad.wide.u32 %l0, %r5, 8, %a1; shr.u32 %r6, %r4, 2;"
        "shl.b32 %r6, %r6, 1; add.u32 %r6, %r6, 1;"
        "full: ld.acquire.gpu.global.u32 %r7, [%l0]; setp.ne.u32 %p2, %r7, %r6; @%p2 bra full;"
        "ld.global.u32 %r8, [%l0+4]; add.u32 %r10, %r10, %r8; add.u32 %r6, %r6, 1;"
        "st.release.gpu.global.u32 [%l0], %r6;"
        "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 8; @%p3 bra take;"
        "red.global.add.u32 [%a2], %r10; bra end;"
        "produce: atom.global.add.u32 %r4, [%a0+4], 1;"
        "and.b32 %r5, %r4, 3; mad.wide.u32 %l0, %r5, 8, %a1; shr.u32 %r6, %r4, 2;"
        "shl.b32 %r6, %r6, 1;"
        "free: ld.acquire.gpu.global.u32 %r7, [%l0]; setp.ne.u32 %p2, %r7, %r6; @%p2 bra free;"
        "add.u32 %r8, %r4, 100; st.global.u32 [%l0+4], %r8; add.u32 %r6, %r6, 1;"
        "st.release.gpu.global.u32 [%l0], %r6;"
        "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 8; @%p3 bra produce; end:"
    )
    arrays = (np.zeros(2, np.uint32), np.zeros(8, np.uint32), np.zeros(1, np.uint32))
    (counts, _, total), _ = run(body, *arrays, grid=6)
    assert counts.tolist() == [24, 24]
    assert total[0] == sum(range(100, 124))


def test_locks_of_lanes_that_wait_for_a_later_block():
    """The lanes of a warp take one lock, which a block that begins later opens."""
    body = BLOCK + (
        "setp.ne.u32 %p0, %r1, 0; @%p0 bra open;"
        "again: atom.global.cas.b32 %r3, [%a0], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra again;"
        "ld.volatile.global.u32 %r4, [%a0+4]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%a0+4], %r4;"
        "membar.gl; atom.global.exch.b32 %r5, [%a0], 0; bra end;"
        "open: setp.ne.u32 %p0, %t, 0; @%p0 bra end; mov.u32 %r3, 0; st.volatile.global.u32 [%a0], %r3;"
        "end:"
    )
    (held,), _ = run(body, np.array([1, 0], np.uint32), grid=2)
    assert held.tolist() == [0, 32]


def test_a_deadlock_stays_one():
    spin = "again: ld.volatile.global.u32 %r0, [%a0]; setp.eq.u32 %p0, %r0, 0; @%p0 bra again;"
    message = message_of(
        "setp.eq.u32 %p1, %t, 32; @%p1 bra met;" + spin + "met: bar.sync 0;", block=33
    )
    assert message == (
        "kernel k: deadlock: the block that is resident waits for memory that nobody changes: block "
        "(0, 0, 0): warp 0 reads 0x700000000000 again and again (PTX line N, ld.volatile.global.u32), "
        "warp 1 at barrier 0 (PTX line N, bar.sync)"
    )
    # Two blocks, each of which waits for what the other one does later.
    body = BLOCK + (
        at("%l0", "%a0", "%r1", 4)
        + "xor.b32 %r3, %r1, 1;"
        + at("%l1", "%a0", "%r3", 4)
        + "again: ld.volatile.global.u32 %r0, [%l1]; setp.eq.u32 %p0, %r0, 0; @%p0 bra again;"
        "st.volatile.global.u32 [%l0], %r1;"
    )
    message = message_of(body, grid=2)
    assert message.startswith(
        "kernel k: deadlock: all 2 blocks that are resident wait for memory that nobody changes: "
        "block (0, 0, 0): warp 0 reads 0x700000000004 again and again ("
    )
    assert "; block (1, 0, 0): warp 0 reads 0x700000000000 again and again (" in message


def test_long_launches_that_wait_for_nobody_keep_their_order():
    """Blocks run one after the other though each looks at memory of the others, round a long loop."""
    body = BLOCK + (
        "mov.u32 %r3, 0; setp.ne.u32 %p0, %t, 0; @%p0 bra end;"
        "again: atom.global.add.u32 %r4, [%a0], 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 9000;"
        "@%p1 bra again;" + at("%l0", "%a1", "%r1", 4) + "st.global.u32 [%l0], %r4; end:"
    )
    (_, last), _ = run(body, np.zeros(1, np.uint32), np.zeros(4, np.uint32), grid=4, order="blocks")
    assert last.tolist() == [8999, 17999, 26999, 35999]


# ---- barriers in loops ----

#: Thread t goes round (t & 7) times, each time over a barrier, adding what its neighbour has.
LOOP = (
    ".shared .align 4 .b8 s[256]; and.b32 %r1, %t, 7; mov.u32 %r2, 0; shl.b32 %r3, %t, 2;"
    "mov.u32 %r4, s; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], %t;"
    "again: setp.ge.u32 %p0, %r2, %r1; @%p0 bra out; bar.sync 0; ld.shared.u32 %r5, [%r3];"
    "add.u32 %r5, %r5, 100; st.shared.u32 [%r3], %r5; add.u32 %r2, %r2, 1; bra again; out:"
)


@pytest.mark.parametrize("behind", ["", "bar.sync 0;"])
def test_a_barrier_in_a_loop_that_threads_leave_at_different_times(behind):
    body = LOOP + behind + OWN_WORD + "ld.shared.u32 %r5, [%r3]; st.global.u32 [%l30], %r5;"
    (got,), trace = run(body, np.zeros(64, np.uint32), block=64)
    assert got.tolist() == [t + 100 * (t & 7) for t in range(64)]
    assert trace.num_warps == 2


def test_a_barrier_in_a_loop_that_hangs_is_refused():
    # Those that have left the loop wait at another barrier.
    message = message_of(LOOP + "bar.sync 1;", block=64)
    assert "lanes of the warp wait at different barriers" in message or "deadlock" in message


# ---- clocks ----


@pytest.mark.parametrize("clock", ["clock64", "globaltimer"])
def test_a_spin_on_the_clock_is_short(clock):
    """Each of 200 warps waits for a million ticks."""
    body = (
        f"mov.u64 %l0, %{clock}; again: mov.u64 %l1, %{clock}; sub.u64 %l2, %l1, %l0;"
        "setp.lt.u64 %p0, %l2, 1000000; @%p0 bra again;"
        + at("%l3", "%a0", "%g", 8)
        + "st.global.u64 [%l3], %l2;"
    )
    (waited,), trace = run(body, np.zeros(6400, np.uint64), grid=100, block=64)
    assert waited.min() >= 1_000_000
    assert waited.max() < 1_050_000
    assert trace.num_instructions < 200 * 1500


def test_short_clock():
    body = (
        "mov.u32 %r0, %clock; again: mov.u32 %r1, %clock; sub.u32 %r2, %r1, %r0;"
        "setp.lt.u32 %p0, %r2, 1000000; @%p0 bra again;" + OWN_WORD + "st.global.u32 [%l30], %r2;"
    )
    (waited,), _ = run(body, np.zeros(32, np.uint32))
    assert waited.min() >= 1_000_000


def test_the_clock_counts_what_warps_execute():
    """Between two looks with work in between, nothing is skipped, however often."""
    body = (
        "mov.u32 %r9, 0; mov.u32 %r8, 0; again: mov.u32 %r0, %clock;"
        + "add.u32 %r1, %r1, 1;" * 10
        + "mov.u32 %r2, %clock; sub.u32 %r2, %r2, %r0; max.u32 %r8, %r8, %r2; add.u32 %r9, %r9, 1;"
        "setp.lt.u32 %p0, %r9, 100; @%p0 bra again;" + OWN_WORD + "st.global.u32 [%l30], %r8;"
    )
    (longest,), _ = run("mov.u32 %r1, 0;" + body, np.zeros(32, np.uint32))
    assert longest.tolist() == [11] * 32


def test_sleep():
    """Warps sleep at the same time; the clock goes on for as long as the longest sleeps."""
    body = (
        "mov.u64 %l0, %clock64; shr.u32 %r0, %t, 5; mul.lo.u32 %r0, %r0, 1000; nanosleep.u32 %r0;"
        "mov.u64 %l1, %clock64; sub.u64 %l1, %l1, %l0;"
        + at("%l3", "%a0", "%g", 8)
        + "st.global.u64 [%l3], %l1;"
    )
    (slept,), trace = run(body, np.zeros(128, np.uint64), block=128)
    assert (slept >= np.arange(128) // 32 * 1000).all()
    assert slept.max() < 3200
    assert "nanosleep.u32" in set(trace.instructions.opcode)


def test_a_time_out_ends():
    """A loop that gives up after a second of the clock, because nobody answers."""
    body = (
        "mov.u64 %l0, %clock64; again: ld.volatile.global.u32 %r0, [%a0]; setp.ne.u32 %p0, %r0, 0;"
        "@%p0 bra end; mov.u64 %l1, %clock64; sub.u64 %l1, %l1, %l0;"
        "setp.lt.u64 %p1, %l1, 1000000000; @%p1 bra again; mov.u32 %r0, 7;"
        "st.volatile.global.u32 [%a0+4], %r0; end:"
    )
    (words,), _ = run(body, np.zeros(2, np.uint32), grid=2)
    assert words.tolist() == [0, 7]


def test_the_step_limit_of_a_launch_in_turns():
    body = (
        "again: atom.global.add.u32 %r0, [%a0], 1; ld.volatile.global.u32 %r1, [%a0+4];"
        "setp.eq.u32 %p0, %r1, 0; @%p0 bra again;"
    )
    device = ws.cuda.Device(0.25)
    module = compile_body(body, 1, device=device)
    with pytest.raises(InputError, match="more than 100000 warp instructions"):
        module.kernel("k").launch(4, 32, device.zeros(2, np.uint32), step_limit=100_000)
