"""Blocks that are played on an SM against their plain definition, and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from machines import plain_pascal
from ptx_forms import run
from python_reference import sm_play as plain
from python_reference.timing_control import unit_of
from strategies import controlled_kernels, gpus, kernels
from warpstack import _core


def played(kernel, gpu, blocks):
    profile = ws.interval_profile(kernel, gpu)
    source = profile._source
    return _core.play_blocks(kernel._core, source.memory, source.latencies, gpu._core, blocks)


def executed(columns, table):
    """Return (row, active, whether it accesses memory) of each instruction of a warp."""
    counts = iter(columns["memory_count"].tolist())
    rows = []
    for row, mask in zip(columns["instruction"].tolist(), columns["active_mask"], strict=True):
        count = next(counts) if table[row]["op_class"] == "memory" else 0
        rows.append((row, mask != 0, mask != 0 and count > 0))
    return rows


def played_plainly(kernel, gpu, blocks):
    source = ws.interval_profile(kernel, gpu)._source
    table = kernel.instructions.to_dict("records")
    mean = source.latencies
    per_row = source.memory.per_row
    levels = {"l1": gpu.l1_latency, "l2": gpu.l2_latency, "dram": gpu.l2_latency + gpu.dram_latency}
    latencies = []
    for row in range(len(table)):
        waits = sum(int(per_row[f"{level}_waits"][row]) for level in levels)
        repeats = int(per_row["repeats"][row])
        all_, again = (
            sum(
                int(per_row[f"{level}_{which}_cycles"][row]) * levels[level] / trip
                for level, trip in {"l1": 25, "l2": 120, "dram": 340}.items()
            )
            for which in ("wait", "repeat")
        )
        if not 0 < repeats < waits:
            latencies.append((mean[row], mean[row]))
            continue
        offset = mean[row] - all_ / waits
        first = (all_ - again) / (waits - repeats) + offset
        latencies.append((max(first, 0), max(again / repeats + offset, 0)))
    rows = []
    for block in blocks:
        warps = range(len(list(kernel.blocks())[block][1]))
        rows.append([executed(kernel.warp(block, warp), table) for warp in warps])
    return plain.play(
        rows,
        table,
        latencies,
        _core.unit_cycles(kernel._core, source.memory, gpu._core),
        [unit_of(row) for row in table],
        {
            "schedulers": gpu.num_schedulers,
            "interval": gpu.num_schedulers / gpu.issue_width,
            "queue": gpu.lsu_queue_entries,
            "scheduler": gpu.scheduler,
            "stops_for_atomics": gpu.atomic_wait == "until_done",
            "awaits_stores": gpu.store_acknowledgement == "awaited",
        },
    )


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(
    st.one_of(kernels(), controlled_kernels()),
    gpus(),
    st.sampled_from(["gto", "gty", "lrr", "oldest"]),
    st.sampled_from([1, 2, 3, 4]),
    st.sampled_from(["for_data", "until_done"]),
    st.sampled_from([1, 3]),
)
def test_equals_plain_definition(kernel, gpu, scheduler, schedulers, atomics, copies):
    gpu = gpu.replace(
        scheduler=scheduler, schedulers_per_sm=schedulers, atomic_wait=atomics, sfu_interval=5
    )
    blocks = [*range(len(list(kernel.blocks())))] * copies
    if kernel.num_instructions == 0:
        return
    expected = played_plainly(kernel, gpu, blocks)
    assert played(kernel, gpu, blocks) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(kernels(), gpus())
def test_cycles_of_units_are_those_of_the_demands(kernel, gpu):
    """Summed over what was executed they are the demands of the load-store unit and tensor cores."""
    if kernel.num_instructions == 0:
        return
    memory = ws.simulate_caches(kernel, gpu)._core
    cycles = _core.unit_cycles(kernel._core, memory, gpu._core)
    demands = _core.demands_of(kernel._core, memory, gpu._core)
    table = kernel.instructions
    is_memory = (table["op_class"] == "memory").to_numpy()
    active = np.asarray(memory.per_row["active_executions"])
    simulated = demands.lsu_cycles * kernel.num_instructions
    assert (cycles * active)[is_memory].sum() == pytest.approx(simulated, rel=1e-9)
    is_product = (table["op_class"] == "tensor").to_numpy()
    busy = (cycles * table["executions"].to_numpy())[is_product].sum()
    assert busy == pytest.approx(demands.tensor_cycles * kernel.num_instructions, rel=1e-9)


def machine(**changes):
    return plain_pascal(**{"issue_width": 1, "lsu_queue_entries": 1, **changes})


def cycles_of(k, gpu):
    return played(k.build(), gpu, [0])


def test_two_warps_share_a_unit():
    """Each has two independent products of 8 cycles: the last begins after three, its latency is 25."""
    k = ws.patterns.KernelBuilder("products", grid=1, block=64, registers_per_thread=32)
    for destination in (10, 20):
        k.emit("HMMA.16816.F32", dst=destination, src=30)
    assert cycles_of(k, machine(tensor_interval=8, tensor_latency=25)) == 3 * 8 + 25


def test_two_blocks_take_twice_the_units_and_once_the_latency():
    """A warp each: alone 8 + 25 cycles, and two of them 24 + 25."""
    k = ws.patterns.KernelBuilder("products", grid=2, block=32, registers_per_thread=32)
    for destination in (10, 20):
        k.emit("HMMA.16816.F32", dst=destination, src=30)
    gpu = machine(tensor_interval=8, tensor_latency=25)
    kernel = k.build()
    assert played(kernel, gpu, [0]) == 8 + 25
    assert played(kernel, gpu, [0, 1]) == 24 + 25


def test_a_barrier_waits_for_the_last_warp():
    """The second warp adds, 25 cycles, comes at 26, and both go on a barrier's latency and one later."""
    k = ws.patterns.KernelBuilder("meet", grid=1, block=64, registers_per_thread=16)
    second = np.broadcast_to(k.thread_in_block >= 32, k.thread.shape)
    k.emit("FADD", dst=1, src=1, where=second)
    k.emit("FADD", dst=1, src=1, where=second)
    k.emit("BAR.SYNC")
    k.emit("FADD", dst=2, src=3)
    gpu = machine(fp32_latency=25, barrier_latency=4, schedulers_per_sm=2, issue_width=2)
    # Adds at 0 and 26, the barrier at 27, adds at 27 + 4 + 1.
    assert cycles_of(k, gpu) == 32 + 25


@pytest.mark.parametrize(("first", "cycles"), [("ARV", 1 + 25), ("SYNC", 1 + 6 + 1 + 25)])
def test_who_arrives_at_a_named_barrier_goes_on(first, cycles):
    """The first warp arrives at barrier 1, or waits there for the second, which comes at cycle 1."""
    k = ws.patterns.KernelBuilder("named", grid=1, block=64, registers_per_thread=16)
    is_second = np.broadcast_to(k.thread_in_block >= 32, k.thread.shape)
    arrives = k.instruction(f"BAR.{first}.id1.64")
    waits = k.instruction("BAR.SYNC.id1.64")
    k.emit("FADD", dst=1, src=1, where=is_second)
    k.issue(arrives, where=~is_second)
    k.issue(waits, where=is_second)
    k.emit("FADD", dst=2, src=3, where=~is_second)
    gpu = machine(fp32_latency=25, barrier_latency=6, schedulers_per_sm=2, issue_width=2)
    assert cycles_of(k, gpu) == cycles


@pytest.mark.parametrize(("scheduler", "cycles"), [("oldest", 26 + 25), ("gto", 41 + 25)])
def test_greedy_schedulers_stay_with_their_warp(scheduler, cycles):
    """The first warp's second product waits for its first, and then for 40 adds of the other warp."""
    k = ws.patterns.KernelBuilder("greedy", grid=1, block=64, registers_per_thread=64)
    is_second = np.broadcast_to(k.thread_in_block >= 32, k.thread.shape)
    for _ in range(2):
        k.emit("HMMA.16816.F32", dst=10, src=10, where=~is_second)
    for _ in range(40):
        k.emit("FADD", dst=40, src=30, where=is_second)
    gpu = machine(tensor_interval=8, tensor_latency=25, fp32_latency=0, scheduler=scheduler)
    assert cycles_of(k, gpu) == cycles


def test_schedulers_take_turns_at_the_load_store_unit():
    """The second warp loads in cycle 1, between both loads of the first, and adds what it has."""
    k = ws.patterns.KernelBuilder("turns", grid=1, block=64, registers_per_thread=16)
    is_second = np.broadcast_to(k.thread_in_block >= 32, k.thread.shape)
    for destination in (1, 2):
        k.emit("LDS", dst=destination, address=4 * k.thread_in_block, where=~is_second)
    k.emit("LDS", dst=1, address=4 * k.thread_in_block, where=is_second)
    k.emit("FADD", dst=2, src=1, where=is_second)
    gpu = machine(fp32_latency=25, shared_memory_latency=20, schedulers_per_sm=2, issue_width=2)
    assert cycles_of(k, gpu) == 1 + 20 + 1 + 25


@pytest.mark.parametrize("size", [0, 16])
def test_copies_of_nothing_take_no_time(size):
    """They fill with zeros; a copy of a number of bytes comes from DRAM."""
    _, kernel = run(
        ".shared .align 16 .b8 s[512]; mov.u64 %l0, s; mad.wide.u32 %l1, %t, 16, %l0;"
        f"mad.wide.u32 %l2, %t, 16, %a0; cp.async.cg.shared.global [%l1], [%l2], 16, {size};"
        "cp.async.wait_all; ld.shared.u32 %r0, [%l1];",
        np.zeros(512, np.uint8),
    )
    gpu = machine(l2_latency=500)
    assert (played(kernel, gpu, [0]) > 500) == (size > 0)
