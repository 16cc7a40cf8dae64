"""Waits for groups of bulk stores, in both engines and the intervals, by hand."""

import numpy as np
import pytest

import warpstack as ws
from machines import plain_pascal

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry stores(.param .u64 out) {{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %l<4>;
  .shared .align 128 .b8 tile[2048];
  ld.param.u64 %l0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile;
  mad.lo.u32 %r2, %r0, 64, %r1; st.shared.u32 [%r2], %r0;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%l0], [%r1], {size};
  @%p0 cp.async.bulk.commit_group;
  {wait}
  ret;
}}
"""


def kernel(wait, size=1024):
    """Return a warp that stores some bytes in a group, and then waits."""
    module = ws.cuda.compile(PTX.format(wait=wait, size=size))
    out = ws.cuda.empty(512, np.uint32)
    return module.kernel("stores").launch(1, 32, out, check_uninitialized=False)


@pytest.fixture(scope="module")
def machine():
    """Return a machine where L2 takes 120 cycles and bandwidths do not matter."""
    return plain_pascal(
        dram_bandwidth_gbs=1e6, noc_bandwidth_gbs=1e6, noc_queue_entries=64, issue_width=1,
        kernel_end="last_warp",
    )  # fmt: skip


READ = "cp.async.bulk.wait_group.read"
WRITE = "cp.async.bulk.wait_group"


def test_ptx_names_the_number():
    trace = kernel(f"{READ} 1;\n{WRITE} 0;")
    opcodes = trace.instructions["opcode"].tolist()
    assert [name for name in opcodes if name.startswith("cp.async.bulk")] == [
        "cp.async.bulk.global.shared::cta.bulk_group",
        "cp.async.bulk.commit_group",
        f"{READ}.1",
        f"{WRITE}.0",
    ]


def test_waits_take_time(machine):
    none, reading, written, one_left = (
        ws.simulate(kernel(wait), machine)
        for wait in ("", f"{READ} 0;", f"{WRITE} 0;", f"{READ} 1;")
    )
    # 1024 bytes are 8 lines, one a cycle: the wait issues when the last is sent.
    assert none.cycles + 1 == one_left.cycles < reading.cycles
    longer = ws.simulate(kernel(f"{READ} 0;", size=2048), machine)
    assert longer.cycles - reading.cycles == 8
    # The way to L2 and back: 120 cycles.
    assert written.cycles > reading.cycles + 100
    for result in (none, reading, written, one_left):
        assert sum(result.cpi_stack.values()) == pytest.approx(result.cpi, rel=1e-12)


@pytest.mark.parametrize("size", [1024, 2048])
@pytest.mark.parametrize("wait", ["", f"{READ} 0;", f"{WRITE} 0;", f"{READ} 1;"])
def test_interval_simulation_waits_as_long(machine, wait, size):
    trace = kernel(wait, size)
    found = ws.predict(trace, machine, models=["interval_simulation"])["cycles"].iloc[0]
    assert found == ws.simulate(trace, machine).cycles


def test_intervals_wait_for_what_is_written(machine):
    stalls = [
        ws.interval_profile(kernel(wait), machine).intervals["stall_cycles"].sum()
        for wait in ("", f"{READ} 0;", f"{WRITE} 0;")
    ]
    assert stalls[0] == stalls[1] < stalls[2] - 100
