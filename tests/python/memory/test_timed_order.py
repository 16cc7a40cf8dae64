"""The timed order of accesses against its plain definition, by hand, and against conservation laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from plain_caches import assert_same, plain_system
from strategies import gpus, kernels
from twins import timed
from warpstack import _core


@st.composite
def timed_gpus(draw):
    """Draw a small GPU with what the timed order asks for."""
    gpu = draw(gpus())
    return gpu.replace(
        scheduler=draw(st.sampled_from(_core.ENUM_NAMES["scheduler"])),
        issue_width=draw(st.sampled_from([0.3, 1, 2, 4])),
        lsu_queue_entries=draw(st.sampled_from([1, 2, 3, 8, 1 << 16])),
        l1_mshrs=draw(st.sampled_from([1, 2, 3, 8, 64])),
        noc_queue_entries=draw(st.sampled_from([0, 0, 0, 2])),
        lines_under_way=draw(st.sampled_from(["replaceable", "reserved"])),
        atomic_requests=draw(st.sampled_from(["per_line", "per_lane"])),
    )


def assert_same_in_time(profile, system, kernel):
    assert_same(profile, system.run(kernel))
    assert profile._core.place_wait_cycles == system.place_wait_cycles
    assert profile._core.slice_requests == pytest.approx(system.slice_requests, rel=1e-12)
    lanes = [system.lanes.get(row, 1) for row in range(len(kernel.instructions))]
    assert profile._core.atomic_lanes == lanes


@pytest.mark.slow
@settings(max_examples=rounds(300))
@given(kernels(), timed_gpus(), st.booleans())
def test_equals_plain_definition(kernel, gpu, filtered):
    options = {"access_order": "timed", "filter_l1_hits": filtered}
    profile = ws.simulate_caches(kernel, gpu, **options)
    assert_same_in_time(profile, plain_system(gpu, **options), kernel)


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(kernels(max_blocks=12, max_threads=300), timed_gpus())
def test_many_warps_equal_plain_definition(kernel, gpu):
    gpu = gpu.replace(num_sms=2, blocks_per_sm=4)
    profile = ws.simulate_caches(kernel, gpu, access_order="timed")
    assert_same_in_time(profile, plain_system(gpu, access_order="timed"), kernel)


@pytest.mark.slow
@settings(max_examples=rounds(100))
@given(kernels(max_blocks=40, memory=True))
def test_paces_equal_plain_definition(kernel):
    found = _core.paces_of(kernel._core)
    expected = timed.paces(kernel)
    for row in range(len(kernel.instructions) + 1):
        instructions, cycles, waits = expected[row if row < len(kernel.instructions) else None]
        assert found["instructions"][row] == instructions
        assert found["cycles"][row] == cycles
        assert found["waits"][row] == waits


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(kernels(), timed_gpus())
def test_each_load_is_waited_for_once(kernel, gpu):
    """What the order cannot change is the same in every order, and each load or atomic has one wait."""
    profile = ws.simulate_caches(kernel, gpu, access_order="timed")
    other = ws.simulate_caches(kernel, gpu, access_order="round_robin")
    for name in ("sectors", "requests", "executions", "active_executions"):
        assert profile.per_pc[name].tolist() == other.per_pc[name].tolist()
    for name in ("l1_read_sectors", "l1_write_sectors", "l2_atomic_sectors", "l1_read_requests"):
        assert profile.totals[name] == other.totals[name]
    table = profile.per_pc
    waits = table[["l1_waits", "l2_waits", "dram_waits"]].to_numpy()
    is_awaited = (table["space"] != "shared") & table["kind"].isin(("load", "async_copy", "atomic"))
    assert waits.sum(axis=1).tolist() == (is_awaited * table["active_executions"]).tolist()
    cycles = table[["l1_wait_cycles", "l2_wait_cycles", "dram_wait_cycles"]].to_numpy()
    assert (cycles <= waits * np.array(timed.LATENCY)).all()
    assert not other.per_pc.filter(like="_wait").to_numpy().any()
