"""Cooperative launches of PTX: blocks that wait for each other."""

import numpy as np
import pytest

from ptx_forms import at, message_of, run

# As cooperative groups do it: thread 0 of each block adds to a word behind the workspace's first;
# block 0 adds what flips the highest bit when all have come.
GRID_SYNC = """
bar.sync 0; setp.ne.u32 %p5, %t, 0; @%p5 bra met{n};
mov.u32 %r20, %envreg2; mov.u32 %r21, %envreg1; mov.b64 %l20, {{%r20, %r21}};
mov.u32 %r22, %nctaid.x; mov.u32 %r23, %ctaid.x; setp.eq.u32 %p6, %r23, 0;
sub.u32 %r24, 0x80000001, %r22; selp.b32 %r25, %r24, 1, %p6;
atom.add.release.gpu.global.u32 %r26, [%l20+4], %r25;
wait{n}: ld.acquire.gpu.global.u32 %r27, [%l20+4]; xor.b32 %r28, %r27, %r26;
setp.gt.s32 %p6, %r28, -1; @%p6 bra wait{n};
met{n}: bar.sync 0;
"""
# Thread g of n adds what thread g + 1 has, three times.
NEIGHBOURS = (
    "mov.u32 %r10, %nctaid.x; mov.u32 %r11, %ntid.x; mul.lo.u32 %r12, %r10, %r11;"
    "add.u32 %r13, %g, 1; rem.u32 %r13, %r13, %r12;"
    + at("%l0", "%a0", "%g", 4)
    + at("%l1", "%a0", "%r13", 4)
    + "".join(
        "ld.global.u32 %r0, [%l0]; ld.global.u32 %r1, [%l1]; add.u32 %r0, %r0, %r1;"
        + GRID_SYNC.format(n=2 * i)
        + "st.global.u32 [%l0], %r0;"
        + GRID_SYNC.format(n=2 * i + 1)
        for i in range(3)
    )
)


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (2, 32), (7, 96), (40, 33)])
def test_grid_synchronization(grid, block):
    values = np.random.default_rng(grid).integers(0, 2**32, grid * block, dtype=np.uint32)
    expected = values
    for _ in range(3):
        expected = expected + np.roll(expected, -1)
    (got,), trace = run(NEIGHBOURS, values, grid=grid, block=block, cooperative=True)
    assert np.array_equal(got, expected)
    (again,), same = run(NEIGHBOURS, values, grid=grid, block=block, cooperative=True)
    assert np.array_equal(again, got)
    assert same.digest == trace.digest
    # Waiting is short: a block looks at most twice per synchronization and other block.
    polls = trace.instructions
    polls = polls[polls.opcode.str.startswith("ld.acquire")]
    assert trace.num_warps == grid * -(-block // 32)
    assert polls.executions.sum() <= 6 * grid * 3
    (plain,), _ = run(NEIGHBOURS, values, grid=grid, block=block, cooperative=True, trace=False)
    assert np.array_equal(plain, got)


def test_grid_synchronization_of_a_plain_launch():
    # cooperative_groups checks the workspace's address before it uses it.
    body = (
        "mov.u32 %r20, %envreg2; mov.u32 %r21, %envreg1; or.b32 %r20, %r20, %r21;"
        "setp.ne.u32 %p0, %r20, 0; @%p0 bra fine; trap; fine:"
    )
    assert message_of(body).endswith(
        "thread (0, 0, 0): the kernel executed a trap: to synchronize its grid it needs a "
        "cooperative launch"
    )
    run(body, np.zeros(1), cooperative=True)


def test_cooperative_blocks_wait_for_later_ones():
    """A block that spins on what a later one stores, by volatile loads or by atomics."""
    for look in ("ld.volatile.global.u32 %r0, [%a0];", "atom.add.global.u32 %r0, [%a0], 0;"):
        body = (
            "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 5; @%p0 bra last;"
            f"again: {look} setp.eq.u32 %p1, %r0, 0; @%p1 bra again; bra.uni end;"
            "last: mov.u32 %r0, 1; st.global.u32 [%a0], %r0; end:"
        )
        (flag,), trace = run(body, np.zeros(1, np.uint32), grid=6, cooperative=True)
        assert flag[0] == 1
        assert trace.num_instructions < 6 * 20
        (flag,), trace = run(body, np.zeros(1, np.uint32), grid=6, step_limit=10**5)
        assert flag[0] == 1  # a plain launch needs longer to find out that blocks wait


def test_cooperative_launches_that_are_too_large():
    message = message_of("", grid=10000, cooperative=True)
    assert message == (
        "kernel k: a cooperative launch of 10000 blocks is too large: they are resident at once, "
        "and no GPU holds more than 8192"
    )
