"""The interval stage against its plain definition and the papers' examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from strategies import gpus, kernels
from twins import interval as plain
from warpstack import _core
from warpstack.interval import class_latencies, warp_summaries


def warp_program(kernel, block, warp, latencies):
    """Return the warp as the plain definition wants it."""
    columns, table = kernel.warp(block, warp), kernel.instructions
    return [
        (table.sources[row], table.destinations[row], latencies[row], mask != 0)
        for row, mask in zip(
            columns["instruction"].tolist(), columns["active_mask"].tolist(), strict=True
        )
    ]


@settings(max_examples=100)
@given(kernels(), st.sampled_from([1.0, 2.0, 4.0, 3.0]), st.integers(0, 2**32 - 1))
def test_warp_summaries_equal_plain_definition(kernel, rate, seed):
    rng = np.random.default_rng(seed)
    latencies = rng.choice([0.0, 1.0, 4.0, 25.5, 300.25], size=len(kernel.instructions))
    found = _core.summarize_warps(kernel._core, latencies, rate, 3)
    expected = [
        (block, warp, len(program), plain.cycles(program, rate))
        for block, (_, warps) in enumerate(kernel.blocks())
        for warp in range(len(warps))
        if (program := warp_program(kernel, block, warp, latencies))
    ]
    assert list(zip(found["block"], found["warp"], found["instructions"], strict=True)) == [
        e[:3] for e in expected
    ]
    assert found["cycles"] == pytest.approx([e[3] for e in expected], rel=1e-12)


@settings(max_examples=100)
@given(kernels(), gpus(), st.sampled_from([0.0, 0.0, 10.0, 1000.0]))
def test_intervals_equal_plain_definition(kernel, gpu, threshold):
    memory = ws.simulate_caches(kernel, gpu)
    latencies = _core.latencies(
        kernel._core,
        memory._core,
        class_latencies(gpu),
        gpu.l1_latency,
        gpu.l2_latency,
        gpu.dram_latency,
    )
    per_row, table = memory._core.per_row, kernel.instructions
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            program = warp_program(kernel, block, warp, latencies)
            if not program:
                continue
            rows = kernel.warp(block, warp)["instruction"].tolist()
            found = ws.interval_profile(
                kernel, gpu, memory, representative=(block, warp), merge_threshold=threshold
            ).intervals
            expected = plain.intervals(program, gpu.issue_width, threshold)
            assert len(found) == len(expected)
            for i, (members, stalls) in enumerate(expected):
                interval = found.iloc[i]
                assert interval["instructions"] == len(members)
                assert interval["stall_cycles"] == pytest.approx(
                    sum(s for s, _ in stalls), rel=1e-12
                )
                causes = dict.fromkeys(["dep", "l1", "l2", "dram"], 0.0)
                for stall, producer in stalls:
                    row = rows[producer]
                    events = [per_row[f"{e}_events"][row] for e in ("l1_hit", "l2_hit", "dram")]
                    if table.op_class[row] != "memory" or table.space[row] == "shared":
                        causes["dep"] += stall
                    elif sum(events) == 0:
                        causes["l1"] += stall
                    else:
                        for cause, count in zip(("l1", "l2", "dram"), events, strict=True):
                            causes[cause] += stall * count / sum(events)
                for cause, cycles in causes.items():
                    assert interval[f"stall_{cause}"] == pytest.approx(cycles, rel=1e-9, abs=1e-9)
                means = dict.fromkeys(["loads", "m", "w", "d", "rb", "wb", "db"], 0.0)
                for member in members:
                    row, active = rows[member], program[member][3]
                    if (
                        table.op_class[row] != "memory"
                        or table.space[row] == "shared"
                        or not active
                    ):
                        continue
                    n = per_row["active_executions"][row]
                    out = per_row["l2_requests"][row] / n
                    sectored = gpu.l1_sector_bytes < gpu.l1_line_bytes
                    size = (
                        32 * per_row["l2_request_sectors"][row] / n
                        if sectored
                        else gpu.l1_line_bytes * out
                    )
                    is_load = table.kind[row] in ("load", "async_copy")
                    means["loads"] += is_load
                    means["m" if is_load else "w"] += out
                    means["rb" if is_load else "wb"] += size
                    means["d"] += per_row["dram_requests"][row] / n
                    l2_sectored = gpu.l2_sector_bytes < gpu.l2_line_bytes
                    means["db"] += (
                        32 * per_row["dram_sectors"][row] / n
                        if l2_sectored
                        else gpu.l2_line_bytes * per_row["dram_requests"][row] / n
                    )
                for column, name in (
                    ("memory_instructions", "loads"),
                    ("read_misses", "m"),
                    ("write_requests", "w"),
                    ("dram_requests", "d"),
                ):
                    assert interval[column] == pytest.approx(means[name], rel=1e-12, abs=1e-12)
                for column, total, count in (
                    ("read_bytes", "rb", "m"),
                    ("write_bytes", "wb", "w"),
                    ("dram_bytes", "db", "d"),
                ):
                    if means[count]:
                        assert interval[column] == pytest.approx(means[total] / means[count])
                requests = means["m"] + means["w"]
                assert interval["llc_miss_ratio"] == pytest.approx(
                    means["d"] / requests if requests else 0
                )


@settings(max_examples=50)
@given(kernels(), gpus())
def test_cycles_are_conserved(kernel, gpu):
    """Issue and stall cycles of the intervals are those of the warp, whatever the threshold."""
    memory = ws.simulate_caches(kernel, gpu)
    totals = []
    for threshold in (0, 7, 1e6):
        table = ws.interval_profile(kernel, gpu, memory, merge_threshold=threshold).intervals
        causes = table[["stall_dep", "stall_l1", "stall_l2", "stall_dram"]].sum(axis=1)
        assert np.allclose(causes, table["stall_cycles"])
        totals.append((table["instructions"].sum(), table["stall_cycles"].sum()))
    assert totals[0] == pytest.approx(totals[1])
    assert totals[0] == pytest.approx(totals[2])
    assert len(table) == 1


def arithmetic_kernel(program, warps=1):
    k = ws.patterns.KernelBuilder("hand", grid=1, block=32 * warps)
    for opcode, dst, src in program:
        k.emit(opcode, dst=dst, src=src)
    return k.build()


def test_example_of_gpumech_figure_6(pascal):
    """GPUMech, Figure 6: i5 needs i3, so that i1 to i4 form an interval.

    Latency 10, one instruction per cycle: i3 issues in cycle 2 and is done in cycle 12, so i5
    issues in cycle 13 where cycle 4 was its turn: 9 stall cycles.
    """
    kernel = arithmetic_kernel(
        [
            ("IADD3", 1, ()),
            ("IADD3", 2, ()),
            ("IADD3", 3, ()),
            ("IADD3", 4, ()),
            ("IADD3", 5, 3),
            ("EXIT", (), ()),
        ]
    )
    table = ws.interval_profile(kernel, pascal.replace(integer_latency=10)).intervals
    assert table["instructions"].tolist() == [4, 2]
    assert table["stall_cycles"].tolist() == [9, 0]
    assert table["stall_dep"].tolist() == [9, 0]
    assert table["cause_row"].tolist() == [2, -1]


def test_latency_of_a_memory_instruction_is_its_average(pascal):
    """GPUMech, Section V-B: L2 hits of 120 cycles in 90 %, DRAM accesses of 420 in 10 %: 150 cycles.

    Ten warps of one block read the same ten lines one after the other, each one line per
    instruction: the first warp to touch a line misses everywhere, L1 is bypassed, the other nine
    hit in L2.
    """
    k = ws.patterns.KernelBuilder("amat", grid=1, block=320)
    k.emit("LDG.E.STRONG.GPU", dst=4, src=2, address=0x1000 + 0 * k.thread)
    k.emit("FADD", dst=5, src=4)
    gpu = ws.gpu("gpumech-baseline").replace(num_sms=1)
    kernel = k.build()
    memory = ws.simulate_caches(kernel, gpu)
    assert memory.per_pc[["l1_hit", "l2_hit", "dram"]].iloc[0].tolist() == [0, 0.9, 0.1]
    table = ws.interval_profile(kernel, gpu, memory).intervals
    # The load issues in cycle 0 and is done in cycle 150; FADD issues in 151 instead of 1.
    assert table["stall_cycles"].tolist() == [150, 0]
    # 108 of the 150 cycles... by miss event, not by latency: 90 % L2, 10 % DRAM.
    assert table["stall_l2"].tolist() == [135, 0]
    assert table["stall_dram"].tolist() == [15, 0]


def test_inactive_instructions_write_nothing(pascal):
    k = ws.patterns.KernelBuilder("off", grid=1, block=32)
    k.emit("LDG.E", dst=4, src=2, address=0x1000 + 4 * k.thread, predicate=False)
    k.emit("FADD", dst=5, src=4)
    table = ws.interval_profile(k.build(), pascal).intervals
    assert table["instructions"].tolist() == [2]
    assert table["memory_instructions"].tolist() == [0]


def test_bank_conflicts_lengthen_shared_loads(pascal):
    """Stride 2 in 4-byte words hits each bank twice: one wavefront and one cycle more."""

    def stall(stride):
        k = ws.patterns.KernelBuilder("lds", grid=1, block=32)
        k.emit("LDS", dst=4, src=2, address=4 * stride * k.thread)
        k.emit("FADD", dst=5, src=4)
        return ws.interval_profile(k.build(), pascal).intervals["stall_cycles"].iloc[0]

    assert stall(1) == pascal.shared_memory_latency
    assert stall(2) == pascal.shared_memory_latency + 1
    assert stall(32) == pascal.shared_memory_latency + 31


def long_and_short(long_warps, short_warps):
    """Make a kernel in which the first warps run 30 instructions and the others 3."""
    warps = long_warps + short_warps
    k = ws.patterns.KernelBuilder("divergent", grid=warps, block=32)
    for i in range(30):
        k.emit("FADD", dst=4, src=4, where=(k.thread < 32 * long_warps) | (i < 3))
    return k.build()


def test_representative_warp_is_of_the_majority():
    assert ws.representative_warp(long_and_short(3, 17)) == (3, 0)
    assert ws.representative_warp(long_and_short(17, 3)) == (0, 0)
    assert ws.representative_warp(long_and_short(5, 0)) == (0, 0)


def test_maximum_and_minimum_selection(pascal):
    """The independent warps of block 1 have the higher IPC."""
    k = ws.patterns.KernelBuilder("mixed", grid=2, block=32)
    chained = k.thread < 32
    for i in range(10):
        k.emit("FADD", dst=4, src=4, where=chained)
        k.emit("FADD", dst=5 + i, src=20, where=~chained)
    kernel = k.build()
    assert ws.representative_warp(kernel, "max") == (1, 0)
    assert ws.representative_warp(kernel, "min") == (0, 0)
    ipc = {s: ws.predict(kernel, pascal, "mt", selection=s)["ipc"].item() for s in ("max", "min")}
    assert ipc["max"] > ipc["min"]


def test_selection_does_not_depend_on_the_gpu_or_on_threads(bfs):
    kernel = bfs.kernels[8]
    assert ws.representative_warp(kernel) == ws.representative_warp(kernel)
    latencies = _core.nominal_latencies(kernel._core)
    single = _core.summarize_warps(kernel._core, latencies, 1.0, 1)
    several = _core.summarize_warps(kernel._core, latencies, 1.0, 4)
    for column in single:
        assert (single[column] == several[column]).all()


def test_summaries_of_bfs_count_every_instruction(bfs, bfs_reference):
    counts = [warp_summaries(kernel)["instructions"].sum() for kernel in bfs]
    assert counts == list(bfs_reference.trace_warp_insts)


def test_wrong_arguments_are_named(pascal):
    kernel = arithmetic_kernel([("EXIT", (), ())])
    other = arithmetic_kernel([("MOV", 1, ()), ("EXIT", (), ())])
    with pytest.raises(
        ws.InputError, match=r"selection = 'best' is not one of clustering, max, min"
    ):
        ws.representative_warp(kernel, "best")
    with pytest.raises(ws.InputError, match=r"misses = 'all' is not one of per_pc, representative"):
        ws.interval_profile(kernel, pascal, misses="all")
    with pytest.raises(ws.InputError, match="merge_threshold = -1"):
        ws.interval_profile(kernel, pascal, merge_threshold=-1)
    with pytest.raises(ws.InputError, match="the memory profile is of kernel"):
        ws.interval_profile(kernel, pascal, ws.simulate_caches(other, pascal))
    with pytest.raises(ws.InputError, match="there is no warp 7 in block 0"):
        ws.interval_profile(kernel, pascal, representative=(0, 7))


def test_misses_of_an_unobserved_warp_are_an_error(pascal):
    kernel = ws.patterns.stream(blocks=2)
    memory = ws.simulate_caches(kernel, pascal)
    with pytest.raises(ws.InputError, match="did not observe this warp"):
        ws.interval_profile(kernel, pascal, memory, misses="representative")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instructions": [0, 3]}, "instructions = .* less than 1"),
        (
            {"stall_cycles": [1, 2, 3]},
            r"stall_cycles has the shape \(3,\) where instructions has 2 entries",
        ),
        ({"stall_cycles": [1, float("nan")]}, "stall_cycles = .* not finite"),
        ({"read_misses": -1}, "read_misses = .* less than 0"),
        ({"read_misses": 1, "dram_requests": 2}, "more requests reach DRAM than leave the SM"),
        ({"llc_miss_ratio": 1.5}, "more requests reach DRAM"),
        ({"warps": 0}, "warps = 0 is less than 1"),
        ({"stall_causes": [0.5, 0.5, 0.5, 0]}, "stall_causes"),
    ],
)
def test_impossible_hand_made_profiles(changes, message):
    arrays = {"instructions": [3, 4], "stall_cycles": [6, 7]}
    with pytest.raises(ws.InputError, match=message):
        ws.IntervalProfile.from_arrays(**{**arrays, **changes})
