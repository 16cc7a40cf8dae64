"""Waits at mbarriers and for products of four warps: both engines, intervals and model, by hand."""

import numpy as np
import pytest

import warpstack as ws
from machines import plain_pascal


@pytest.fixture(scope="module")
def machine():
    """Return a machine where arithmetic takes 4 cycles, L2 120, and DRAM 220 more."""
    return plain_pascal(
        fp32_latency=4,
        integer_latency=4,
        dram_bandwidth_gbs=1e6,
        noc_bandwidth_gbs=1e6,
        noc_queue_entries=64,
        kernel_end="last_warp",
        issue_width=1,
    )


def kernel(*programs):
    """Return a block of one warp per program; (barrier, line) is a copy that completes there."""
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32 * len(programs))
    for number, program in enumerate(programs):
        where = k.thread // 32 == number
        for step in (*program, "EXIT"):
            if isinstance(step, tuple):
                barrier, line = step
                address = 0x10000 + 256 * line + 0 * k.thread
                k.emit(f"LDGSTS.E.barrier{barrier}", src=2, address=address, where=where)
            elif step == "FADD":
                k.emit(step, dst=4, src=4, where=where)
            elif step == "PRODUCT":
                k.emit("wgmma.mma_async.sync.aligned", dst=6, src=6, where=where)
            else:
                k.emit(step, where=where)
    return k.build()


def wait(barrier, count=1):
    """Return a wait for so many more completions."""
    return f"mbarrier.try_wait.parity.shared.b64.barrier{barrier}.{count}"


def ring(depth, stages, work):
    """Return a warp that copies `depth` stages ahead, each into its part of a ring."""
    steps = [(stage, stage) for stage in range(depth)]
    for stage in range(stages):
        steps += [wait(stage % depth), *["FADD"] * work]
        if stage + depth < stages:
            steps.append((stage % depth, stage + depth))
    return kernel(steps)


# 20 FADD of 4 cycles are the work of a stage. The copy for the stage `depth` later issues behind
# the last of them; it is there 340 cycles later, the next FADD issues a cycle after that, and the
# last one of its stage 19 * 4 later: 1 + 340 + 1 + 76 = 418 cycles for `depth` stages. Where that
# is less than the work, a stage takes 20 * 4, as copies and waits issue between two FADD.
@pytest.mark.parametrize(("depth", "cycles"), [(1, 418), (2, 209), (4, 104.5), (8, 80)])
def test_a_ring_gets_faster_with_its_depth(machine, depth, cycles):
    first, second = (ws.simulate(ring(depth, n, 20), machine) for n in (16, 24))
    assert (second.cycles - first.cycles) / 8 == cycles
    assert sum(second.cpi_stack.values()) == pytest.approx(second.cpi, rel=1e-12)


def test_the_model_finds_the_ring_faster(machine):
    found = [
        ws.predict(ring(depth, 24, 20), machine, models=["closed_network"])["cycles"].iloc[0]
        for depth in (1, 2, 4)
    ]
    assert found[0] > 1.5 * found[1] > 1.5 * found[2]


def test_a_warp_waits_for_the_copy_of_another_one(machine):
    # Issued at 0, there at 340; FADD issues at 341.
    result = ws.simulate(kernel([(0, 0)], [wait(0), "FADD"]), machine)
    assert result.cycles == 345
    assert sum(result.cpi_stack.values()) == pytest.approx(result.cpi, rel=1e-12)


def test_a_warp_waits_for_the_arrival_of_another_one(machine):
    # An arrival of 4 cycles at 0; FADD issues at 5.
    assert ws.simulate(kernel(["mbarrier.arrive.barrier8"], [wait(8), "FADD"]), machine).cycles == 9


def test_waits_count_on(machine):
    # Copies issue at 0 and 1. The second wait is for the second of them, whoever has waited.
    steps = [(0, 0), (0, 1), wait(0), wait(0), "FADD"]
    assert ws.simulate(kernel(steps), machine).cycles == 341 + 5
    assert ws.simulate(kernel([*steps[:2], wait(0, 2), "FADD"]), machine).cycles == 341 + 5


def copies_in_a_group():
    """Return a warp whose two copies complete together at a barrier, for which it waits."""
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32)
    for line in range(2):
        k.emit("LDGSTS.E", src=2, address=0x10000 + 256 * line + 0 * np.arange(32))
    k.emit("cp.async.mbarrier.arrive.noinc.shared.b64.barrier0")
    k.emit(wait(0))
    k.emit("FADD", dst=4)
    k.emit("EXIT")
    return k.build()


def test_copies_without_a_barrier_of_their_own_arrive_together(machine):
    # The second copy issues at 1 and is there at 341.
    assert ws.simulate(copies_in_a_group(), machine).cycles == 341 + 5


@pytest.mark.parametrize(
    ("trace", "cycles"),
    [
        (kernel([(0, 0)], [wait(0), "FADD"]), 345),
        (kernel(["mbarrier.arrive.barrier8"], [wait(8), "FADD"]), 9),
        (kernel([(0, 0), (0, 1), wait(0), wait(0), "FADD"]), 341 + 5),
        (kernel([(0, 0), (0, 1), wait(0, 2), "FADD"]), 341 + 5),
        (copies_in_a_group(), 341 + 5),
    ],
)
def test_interval_simulation_waits_as_long(machine, trace, cycles):
    found = ws.predict(trace, machine, models=["interval_simulation"])["cycles"].iloc[0]
    assert found == cycles


@pytest.mark.parametrize(("most", "cycles"), [(0, 57), (1, 55), (2, 52)])
def test_products_go_on_without_their_warp(machine, most, cycles):
    # Products into the same sums issue at 0 and 2 and are there at 50 and 52. FADD issues a cycle
    # after the wait and takes 4: 53 + 4, 51 + 4; without a wait the kernel ends with the products.
    steps = ["PRODUCT", "wgmma.commit_group.sync.aligned"] * 2
    steps += [f"wgmma.wait_group.sync.aligned.{most}", "FADD"]
    assert ws.simulate(kernel(steps), machine.replace(integer_latency=50)).cycles == cycles


def test_products_of_traces_without_numbers_wait_for_registers(machine):
    # The second product waits for the sums of the first, and is there at 100.
    steps = ["PRODUCT", "wgmma.commit_group.sync.aligned"] * 2
    steps += ["wgmma.wait_group.sync.aligned"]
    assert ws.simulate(kernel(steps), machine.replace(integer_latency=50)).cycles == 100


def test_intervals_wait_for_copies_of_the_block(machine):
    # Copies issue at 0 and 1, waits at 2 at the earliest, and then a cycle after they are there
    # (GPUMech, Eq. 4).
    for barrier, stall in ((0, 0 + 340 + 1 - 2), (1, 1 + 340 + 1 - 2)):
        profile = ws.interval_profile(kernel([(0, 0), (1, 1), wait(barrier)]), machine)
        assert profile.intervals["stall_cycles"].sum() == stall
        assert profile.intervals["stall_dram"].sum() == stall
    # Another warp, which waits from 1 on, waits for the same copy.
    both = kernel([(0, 0)], ["FADD", wait(0)])
    profile = ws.interval_profile(both, machine, representative=(0, 1))
    assert profile.intervals["stall_dram"].sum() == 340 + 1 - 1


def test_ptx_names_barriers_and_completions():
    module = ws.cuda.compile(PTX)
    data, out = ws.cuda.array(np.arange(64, dtype=np.uint32)), ws.cuda.empty(64, np.uint32)
    trace = module.kernel("copies").launch(1, 64, data, out)
    np.testing.assert_array_equal(np.asarray(out), np.arange(64))
    table = trace.instructions["opcode"]

    def steps(warp):
        issued = [table[row] for row in trace.warp(0, warp)["instruction"].tolist()]
        return [name for name in issued if ".barrier" in name]

    # The barrier lies behind 256 bytes of the tile. A phase has an arrival and a copy; the parity
    # before it is over without waiting for anything.
    awaited = "mbarrier.try_wait.parity.shared.b64.barrier256.2"
    assert steps(0) == [
        "mbarrier.arrive.expect_tx.shared.b64.barrier256",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.barrier256",
        awaited,
    ]
    assert steps(1) == [awaited]


def test_ptx_says_how_many_groups_of_products_may_go_on():
    module = ws.cuda.compile(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry waits() {\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 2;\nret;\n}\n"
    )
    trace = module.kernel("waits").launch(1, 128)
    issued = trace.instructions["opcode"].tolist()
    assert issued == ["wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned.2", "ret"]


PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry copies(.param .u64 data, .param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %l<4>;
  .shared .align 128 .b8 tile[256];
  .shared .align 8 .b64 bar;
  ld.param.u64 %l0, [data]; ld.param.u64 %l1, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 1;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%l0], 256, [%r2];
wait:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
  @!%p1 bra wait;
  mad.lo.u32 %r3, %r0, 4, %r1;
  ld.shared.u32 %r4, [%r3];
  mul.wide.u32 %l2, %r0, 4;
  add.u64 %l2, %l2, %l1;
  st.global.u32 [%l2], %r4;
  ret;
}
"""
