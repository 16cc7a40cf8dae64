"""The timed order of accesses against its plain definition, by hand, and against conservation laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_caches import assert_same, plain_system

import warpstack as ws
from effort import rounds
from python_reference import timed
from strategies import gpus, kernels
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
        l2_partial_write_turns=draw(st.sampled_from([0, 0, 1, 2.5])),
        l2_atomic_lane_turns=draw(st.sampled_from([0, 0, 1, 0.3])),
        l2_atomic_words_at_once=draw(st.sampled_from([1, 2, 3.5])),
        atomic_wait=draw(st.sampled_from(["for_data", "until_done"])),
    )


def assert_same_in_time(profile, system, kernel):
    assert_same(profile, system.run(kernel))
    assert profile._core.place_wait_cycles == system.place_wait_cycles
    assert profile._core.slice_turns == system.slice_turns
    assert profile._core.slice_dram_sectors == system.slice_dram_sectors
    assert profile._core.slice_crowding == pytest.approx(system.slice_crowding, rel=1e-3)
    assert profile._core.most_read_sectors == max(system.read_sectors.values(), default=0)
    lanes = [system.lanes.get(row, 0) for row in range(len(kernel.instructions))]
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
@given(kernels(max_blocks=40, memory=True), st.booleans())
def test_paces_equal_plain_definition(kernel, atomics_stop_warps):
    found = _core.paces_of(kernel._core, atomics_stop_warps)
    expected = timed.paces(kernel, atomics_stop_warps)
    for row in range(len(kernel.instructions) + 1):
        instructions, cycles, waits = expected[row if row < len(kernel.instructions) else None]
        assert found["instructions"][row] == instructions
        assert found["cycles"][row] == cycles
        assert found["waits"][row] == waits


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(kernels(), timed_gpus())
def test_each_load_is_waited_for_once(kernel, gpu):
    """What the order cannot change is the same in every order, and each load or atomic has one wait.

    An atomic whose result nobody reads has none.
    """
    profile = ws.simulate_caches(kernel, gpu, access_order="timed")
    other = ws.simulate_caches(kernel, gpu, access_order="round_robin")
    for name in ("sectors", "requests", "executions", "active_executions"):
        assert profile.per_pc[name].tolist() == other.per_pc[name].tolist()
    for name in ("l1_read_sectors", "l1_write_sectors", "l2_atomic_sectors", "l1_read_requests"):
        assert profile.totals[name] == other.totals[name]
    table = profile.per_pc
    waits = table[["l1_waits", "l2_waits", "dram_waits"]].to_numpy()
    kinds = ["load", "async_copy", "atomic"]
    if gpu.atomic_wait == "until_done":
        kinds.append("reduction")
    unread = kernel.instructions["pc"].iloc[sorted(timed.unread_atomics(kernel.instructions))]
    is_awaited = (table["space"] != "shared") & table["kind"].isin(kinds)
    is_awaited &= ~table["pc"].isin(unread)
    assert waits.sum(axis=1).tolist() == (is_awaited * table["active_executions"]).tolist()
    cycles = table[["l1_wait_cycles", "l2_wait_cycles", "dram_wait_cycles"]].to_numpy()
    assert (cycles <= waits * np.array(timed.LATENCY)).all()
    assert not other.per_pc.filter(like="_wait").to_numpy().any()


def scattered(blocks):
    """Return a kernel of loads, stores and atomics all over 4 MiB."""
    k = ws.patterns.KernelBuilder("scattered", grid=blocks, block=256)

    def address(factor):
        return 4 * (k.thread * factor % 1048573)

    k.emit("LDG.E", dst=4, src=2, address=address(7919))
    k.emit("STG.E", src=(2, 4), address=address(104729))
    k.emit("LDG.E", dst=5, src=2, address=address(31337))
    k.emit("ATOMG.E.ADD", dst=6, src=(2, 5), address=address(65537) // 64 * 8)
    k.emit("LDG.E.64", dst=8, src=6, address=256 * (k.thread % 4000))
    return k.build()


@pytest.mark.slow
@pytest.mark.parametrize("order", _core.ENUM_NAMES["access order"])
def test_threads_do_not_change_the_result(order):
    """A thread is started for each 100 000 sectors and, in the timed order, 8 SMs."""
    gpu = ws.gpu("pascal-mdm").replace(num_sms=24, l1_write_policy="write_back", l2_size_kib=384)
    kernel = scattered(280)
    assert kernel._core.num_sectors > 300_000
    systems = [ws.memory.MemorySystem(gpu, access_order=order, workers=n) for n in (1, 2, 3)]
    for _ in range(2):
        one, *others = [system.run(kernel, observe=(3, 1))._core.words for system in systems]
        for words in others:
            assert np.array_equal(words, one)


def test_a_file_backed_trace_is_the_same(tmp_path):
    kernel = scattered(6)
    gpu = ws.gpu("pascal-mdm").replace(num_sms=2)
    ws.save(ws.App([kernel]), tmp_path / "saved")
    (filed,) = ws.load(tmp_path / "saved", memory_limit_mib=0).kernels
    assert filed.in_file
    assert np.array_equal(
        _core.paces_of(filed._core)["cycles"], _core.paces_of(kernel._core)["cycles"]
    )
    words = [ws.simulate_caches(k, gpu, access_order="timed")._core.words for k in (filed, kernel)]
    assert np.array_equal(*words)


def test_one_mshr_takes_the_lines_of_a_load_one_after_the_other(pascal):
    """32 lines of DRAM, each 340 cycles: the warp waits for the last, at most 340 cycles long."""
    k = ws.patterns.KernelBuilder("k", grid=1, block=32)
    k.emit("LDG.E", dst=4, src=2, address=4096 * k.thread)
    gpu = pascal.replace(l1_mshrs=1, lsu_queue_entries=1 << 16)
    per_pc = ws.simulate_caches(k.build(), gpu, access_order="timed").per_pc
    row = per_pc.iloc[0]
    assert (row["dram_waits"], row["dram_wait_cycles"], row["l2_requests"]) == (1, 340, 32)


def test_stores_alone_come_to_an_end(pascal):
    k = ws.patterns.KernelBuilder("k", grid=40, block=96)
    k.emit("STG.E", src=(2, 4), address=128 * k.thread, predicate=k.thread % 96 < 40)
    k.emit("RED.E.ADD", src=(2, 4), address=4 * k.thread, predicate=k.thread % 96 < 40)
    gpu = pascal.replace(num_sms=2, atomic_wait="for_data")
    profile = ws.simulate_caches(k.build(), gpu, access_order="timed")
    assert profile.totals["l1_write_requests"] == 40 * 40
    assert not profile.per_pc.filter(like="_waits").to_numpy().any()


@pytest.mark.parametrize(("later", "expected"), [(False, 340), (True, 120)])
def test_a_line_that_comes_from_dram_is_there_when_dram_has_sent_it(pascal, later, expected):
    """Two SMs ask for one line, the second at the same time or after 340 cycles of another load."""
    k = ws.patterns.KernelBuilder("shared", grid=2, block=32)
    if later:
        k.emit("LDG.E", dst=9, src=2, address=(1 << 21) + 0 * k.thread, where=k.thread >= 32)
        k.emit("FADD", dst=8, src=9, where=k.thread >= 32)
    k.emit("LDG.E.64", dst=4, src=2, address=(1 << 20) + 0 * k.thread)
    k.emit("FADD", dst=6, src=4)
    k.emit("EXIT")
    table = ws.simulate_caches(k.build(), pascal.replace(num_sms=2), access_order="timed").per_pc
    row = table[table["opcode"] == "LDG.E.64"].iloc[0]
    assert row[["l2_hit", "dram"]].tolist() == [0.5, 0.5]  # by tags
    assert row["dram_wait_cycles"] + row["l2_wait_cycles"] == 340 + expected
