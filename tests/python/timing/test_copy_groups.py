"""Groups of asynchronous copies of PTX: who waits for which, in the simulator and the intervals."""

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


def warp(*steps):
    """Return a kernel of one warp; a number is a copy of that line."""
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32)
    for step in (*steps, "EXIT"):
        if isinstance(step, int):
            k.emit("LDGSTS.E", src=2, address=0x10000 + 256 * step + 0 * np.arange(32))
        else:
            k.emit(step, dst=4 if step == "FADD" else ())
    return k.build()


COMMIT = "cp.async.commit_group"


@pytest.mark.parametrize(
    ("wait", "issue"),
    [
        ("cp.async.wait_group.0", 344),
        ("cp.async.wait_group.1", 342),
        ("cp.async.wait_group.2", 340),
        ("cp.async.wait_group.3", 6),
        ("cp.async.wait_group.300", 6),
        ("cp.async.wait_all", 344),
        ("cp.async.wait_group", 6),  # of a trace of version 0.1, without its number
    ],
)
def test_waits_for_all_but_the_last_groups(machine, wait, issue):
    # Copies issue at 0, 2, 4, each with a group of its own: they are there at 340, 342, 344.
    result = ws.simulate(warp(0, COMMIT, 1, COMMIT, 2, COMMIT, wait, "FADD"), machine)
    # FADD issues a cycle after the wait, and its result is there 4 cycles later; so are all data.
    assert result.cycles == max(344, issue + 5)
    assert sum(result.cpi_stack.values()) == pytest.approx(result.cpi, rel=1e-12)


def test_a_group_waits_for_those_before_it(machine):
    # The second group is empty, but it is there when the first one is, at 340.
    result = ws.simulate(warp(0, COMMIT, COMMIT, "cp.async.wait_group.0", "FADD"), machine)
    assert result.cycles == 345
    # 0 to 2 issue, 3 to 339 wait for DRAM.
    assert result._core.slots["dram"] == 337


def test_copies_without_a_group(machine):
    # No group has the copy: wait_group does not wait for it, wait_all does, from 1 to 339.
    alone = ws.simulate(warp(0, "cp.async.wait_group.0", "FADD"), machine)
    assert alone.cycles == 340
    awaited = ws.simulate(warp(0, "cp.async.wait_all", "FADD"), machine)
    assert awaited.cycles == 345
    assert awaited._core.slots["dram"] == 339


def test_copies_take_mshrs(machine):
    # Two lines with one MSHR: the second one is asked for when the first is there, at 340.
    steps = (0, 1, COMMIT, "cp.async.wait_group.0", "FADD")
    few = machine.replace(l1_mshrs=1, noc_queue_entries=0)
    many = machine.replace(l1_mshrs=2, noc_queue_entries=0)
    assert ws.simulate(warp(*steps), many).cycles == 341 + 5
    assert ws.simulate(warp(*steps), few).cycles == 2 * 340 + 5


@pytest.mark.parametrize(
    ("wait", "stall"),
    [
        # Copies issue at 0 and 2, the waits at 4 at the earliest (GPUMech, Eq. 4: done + 1).
        ("cp.async.wait_group.0", 2 + 340 + 1 - 4),
        ("cp.async.wait_group.1", 0 + 340 + 1 - 4),
        ("cp.async.wait_group.2", 0),
        ("cp.async.wait_all", 2 + 340 + 1 - 4),
    ],
)
def test_intervals(machine, wait, stall):
    kernel = warp(0, COMMIT, 1, COMMIT, wait)
    profile = ws.interval_profile(kernel, machine)
    assert profile.intervals["stall_cycles"].sum() == stall
    assert profile.intervals["stall_dram"].sum() == stall


def test_ptx_names_the_number():
    kernel = ws.cuda.compile(PTX)
    data = ws.cuda.array(np.arange(64, dtype=np.uint32))
    trace = kernel.kernel("copies").launch(1, 32, data)
    opcodes = trace.instructions["opcode"]
    assert [name for name in opcodes if name.startswith("cp.async.")] == [
        "cp.async.ca.shared.global",
        "cp.async.commit_group",
        "cp.async.ca.shared.global",
        "cp.async.commit_group",
        "cp.async.wait_group.1",
        "cp.async.wait_all",
    ]
    # Machine code says the same with these.
    assert set(trace.instructions["op_class"][opcodes.str.contains("group|wait")]) == {"barrier"}


PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry copies(.param .u64 data) {
  .reg .b32 %r<6>;
  .reg .b64 %l<4>;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %l0, [data];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %l1, %r0, 4;
  add.u64 %l2, %l0, %l1;
  mov.u32 %r1, tile;
  mad.lo.u32 %r2, %r0, 4, %r1;
  cp.async.ca.shared.global [%r2], [%l2], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r2+128], [%l2+128], 4;
  cp.async.commit_group;
  cp.async.wait_group 1;
  cp.async.wait_all;
  ret;
}
"""
