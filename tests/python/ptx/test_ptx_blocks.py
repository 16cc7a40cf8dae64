"""Blocks of a launch on several threads: their outcome is that of one."""

import numpy as np
import pytest

import warpstack as ws
from effort import rounds
from ptx_forms import at, run
from python_reference.blocks import add_along
from warpstack.errors import InputError

# cells[target[g]] = cells[source[g]] + g
BODY = (
    at("%l0", "%a1", "%g", 4)
    + "ld.global.u32 %r0, [%l0];"
    + at("%l0", "%a0", "%r0", 4)
    + "ld.global.u32 %r1, [%l0]; add.u32 %r1, %r1, %g;"
    + at("%l0", "%a2", "%g", 4)
    + "ld.global.u32 %r0, [%l0];"
    + at("%l0", "%a0", "%r0", 4)
    + "st.global.u32 [%l0], %r1;"
)


def test_random_dependences(short_shares):
    rng = np.random.default_rng(5)
    for case in range(rounds(60)):
        blocks = int(rng.integers(2, 150))
        own = np.arange(32 * blocks, dtype=np.uint32)
        others = rng.integers(0, len(own), (2, len(own)), dtype=np.uint32)
        share = rng.choice([0, 0.002, 0.02, 0.5], 2)[:, None]
        source, target = np.where(rng.random((2, len(own))) < share, others, own)
        cells = rng.integers(0, 2**32, len(own), dtype=np.uint32)
        short_shares(int(rng.choice([1, 30, 60])))
        threads = int(rng.integers(2, 6))
        arrays = (cells, source, target)
        (got, *_), trace = run(BODY, *arrays, grid=blocks, workers=threads)
        assert got.tolist() == add_along(cells, source, target), case
        (alone, *_), same = run(BODY, *arrays, grid=blocks, workers=1)
        assert np.array_equal(alone, got)
        assert same.digest == trace.digest
        assert same.num_thread_instructions == trace.num_thread_instructions


def test_atomics_return_what_they_return_on_one_thread(short_shares):
    # The ticket of thread g is g: warps of a block and blocks come in their order.
    body = (
        "atom.global.add.u32 %r0, [%a0], 1;"
        + at("%l0", "%a1", "%g", 4)
        + "st.global.u32 [%l0], %r0;"
    )
    count, tickets = np.zeros(1, np.uint32), np.zeros(32 * 50, np.uint32)
    (count, tickets), _ = run(body, count, tickets, grid=50, workers=3, order="blocks")
    assert count[0] == len(tickets)
    assert np.array_equal(tickets, np.arange(len(tickets)))


def test_prints_come_in_order(short_shares):
    printed = []
    device = ws.cuda.Device(0.25, print_to=printed.append)
    outside = (
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".global .align 1 .b8 text[4] = {37, 117, 10, 0};\n"  # "%u\n"
    )
    body = (
        ".local .align 8 .b8 given[8]; st.local.u32 [given], %g;"
        "mov.u64 %l0, text; cvta.global.u64 %l0, %l0; mov.u64 %l1, given; cvta.local.u64 %l1, %l1;"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %l0; st.param.b64 [b], %l1;"
        "call.uni (r), vprintf, (a, b); ld.param.b32 %r1, [r]; }"
    )
    given = {"outside": outside, "device": device}
    run(body, np.zeros(1, np.uint32), grid=30, block=1, workers=3, **given)
    assert "".join(printed) == "".join(f"{g}\n" for g in range(30))


def test_a_fault_is_that_of_the_first_block(short_shares):
    # Blocks 9 and 12 fault; the stores of those before 9 stay.
    body = (
        "mov.u32 %r0, %ctaid.x; setp.eq.u32 %p0, %r0, 9; setp.eq.u32 %p1, %r0, 12;"
        "or.pred %p0, %p0, %p1;" + at("%l0", "%a0", "%g", 4) + "@%p0 mov.u64 %l0, 0;"
        "st.global.u32 [%l0], 1;"
    )
    device = ws.cuda.Device(0.25)
    with pytest.raises(InputError, match=r"block \(9, 0, 0\), thread \(0, 0, 0\): .* null pointer"):
        run(body, np.zeros(32 * 20, np.uint32), grid=20, device=device, workers=3)


@pytest.mark.parametrize("limit", [99, 500, 1200])
def test_the_step_limit_is_that_of_the_launch(short_shares, limit):
    own = np.arange(32 * 20, dtype=np.uint32)
    messages = []
    for threads in (1, 3):
        with pytest.raises(InputError, match="raise step_limit") as caught:
            run(BODY * 6, own, own, own, grid=20, workers=threads, step_limit=limit)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_bulk_copies_of_blocks_that_depend_on_each_other(short_shares):
    # Block b adds 1 to the 128 bytes of block from[b] and puts them to its own, in bulk copies.
    body = (
        "mov.u32 %r0, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0; mov.u32 %r2, %ctaid.x;"
        "@%p0 mbarrier.init.shared::cta.b64 [%r0], 1; bar.sync 0;"
        + at("%l0", "%a1", "%r2", 4)
        + "ld.global.u32 %r3, [%l0];"
        + at("%l0", "%a0", "%r3", 128)
        + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], 128;"
        "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%r1], [%l0], 128, [%r0];\n"
        "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0; @!%p1 bra wait;\n"
        "shl.b32 %r4, %t, 2; add.u32 %r4, %r4, %r1; ld.shared.u32 %r5, [%r4];"
        "add.u32 %r5, %r5, 1; st.shared.u32 [%r4], %r5; fence.proxy.async; bar.sync 0;"
        + at("%l0", "%a0", "%r2", 128)
        + "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%l0], [%r1], 128;"
    )
    outside = ".shared .align 128 .b8 data[128]; .shared .align 8 .b64 bar;"
    rng = np.random.default_rng(9)
    blocks = 60
    source = np.arange(blocks, dtype=np.uint32)
    others = rng.random(blocks) < 0.2
    source[others] = rng.integers(0, blocks, others.sum())
    chunks = rng.integers(0, 2**31, (blocks, 32), dtype=np.uint32)
    expected = chunks.copy()
    for b in range(blocks):
        expected[b] = expected[source[b]] + 1
    digests = []
    for threads in (1, 3):
        given = {"outside": outside, "grid": blocks, "workers": threads}
        (got, _), trace = run(body, chunks.ravel(), source, **given)
        np.testing.assert_array_equal(got.reshape(chunks.shape), expected)
        digests.append(trace.digest)
    assert digests[0] == digests[1]


# What depends on other blocks, atomics, spinning and independent blocks.
@pytest.mark.parametrize("name", ["bfs", "spmv", "inverted-index", "backprop"])
@pytest.mark.parametrize("machine_code", [None, "sm_80"])
@pytest.mark.slow
def test_workloads_on_several_threads(short_shares, name, machine_code):
    short_shares(300)
    alone = ws.workloads.load(name, workers=1, machine_code=machine_code)
    together = ws.workloads.load(name, workers=3, machine_code=machine_code)
    assert [k.digest for k in together.kernels] == [k.digest for k in alone.kernels]
    ws.workloads.check(name)


def test_the_number_of_threads_is_checked():
    for wrong in (-1, 256, 1.5):
        with pytest.raises(InputError, match="workers"):
            run("ret;", np.zeros(1, np.uint32), workers=wrong)
