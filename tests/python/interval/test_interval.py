"""The interval stage against its plain definition and the papers' examples."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import warpstack as ws
from accelsim_text import Instruction, grouped
from effort import rounds
from python_reference import interval as plain
from strategies import controlled_kernels, copying_kernels, gpus, kernels, waiting_kernels
from warpstack import _core
from warpstack.interval.profile import warp_groups


def either_kernels():
    """Draw kernels with and without control fields, with groups of copies, and with mbarriers."""
    return st.one_of(kernels(), controlled_kernels(), copying_kernels(), waiting_kernels())


def warp_program(kernel, block, warp, latencies, gpu=None):
    """Return the warp as the plain definition wants it."""
    columns, table = kernel.warp(block, warp), kernel.instructions
    stops = plain.is_cached_atomic(table) & (gpu is not None and gpu.atomic_wait == "until_done")
    has_copies = table["opcode"].str.contains("cp.async.|wgmma.|mbarrier.").any()
    if kernel.has_control_fields or has_copies:
        fields = table.to_dict("records")
        for number, row in enumerate(fields):
            row["number"] = number
        rows, masks = columns["instruction"].tolist(), columns["active_mask"].tolist()
        kind = plain.WithCopies if has_copies else plain.Controlled
        program = kind(
            (stops[row], fields[row], latencies[row], mask != 0)
            for row, mask in zip(rows, masks, strict=True)
        )
        program.table = fields
        return program
    return [
        (stops[row], table.sources[row], table.destinations[row], latencies[row], mask != 0)
        for row, mask in zip(
            columns["instruction"].tolist(), columns["active_mask"].tolist(), strict=True
        )
    ]


@pytest.mark.slow
@settings(max_examples=rounds(100))
@given(either_kernels(), st.sampled_from([1.0, 2.0, 4.0, 3.0]), st.integers(0, 2**32 - 1))
def test_warp_groups_equal_plain_definition(kernel, rate, seed):
    rng = np.random.default_rng(seed)
    latencies = rng.choice([0.0, 1.0, 4.0, 25.5, 300.25], size=len(kernel.instructions))
    found = _core.group_warps(kernel._core, latencies, rate, 3)
    groups = {}
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            program = warp_program(kernel, block, warp, latencies)
            if program:
                # Exact for these latencies and rates, but for one in three.
                key = len(program), round(plain.cycles(program, rate), 6)
                groups.setdefault(key, []).append((block, warp))
    merged = {}
    for block, warp, instructions, cycles, count in zip(*found.values(), strict=True):
        first, total = merged.get((instructions, round(cycles, 6)), ((block, warp), 0))
        merged[instructions, round(cycles, 6)] = first, total + count
    assert merged == {key: (warps[0], len(warps)) for key, warps in groups.items()}
    assert list(zip(found["block"], found["warp"], strict=True)) == sorted(
        zip(found["block"], found["warp"], strict=True)
    )


@pytest.mark.slow
@settings(max_examples=rounds(100))
@given(
    either_kernels(),
    gpus(),
    st.sampled_from([0.0, 0.0, 10.0, 1000.0]),
    st.sampled_from(["for_data", "until_done"]),
)
def test_intervals_equal_plain_definition(kernel, gpu, threshold, atomic_wait):
    gpu = gpu.replace(atomic_wait=atomic_wait)
    # The timed order knows what warps waited for, and divides stalls by that.
    memory = ws.simulate_caches(kernel, gpu, access_order="greedy")
    latencies = _core.latencies(kernel._core, memory._core, gpu._core)
    per_row, table = memory._core.per_row, kernel.instructions
    for block, (_, warps) in enumerate(kernel.blocks()):
        programs = [warp_program(kernel, block, warp, latencies, gpu) for warp in range(len(warps))]
        for warp, program in enumerate(programs):
            if not program:
                continue
            if isinstance(program, plain.WithCopies):
                program.block = programs
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
                    if producer == -1:
                        causes["dep"] += stall
                        continue
                    row = producer[1] if isinstance(producer, tuple) else rows[producer]
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
                means = dict.fromkeys(["loads", "m", "w", "d", "dr", "dw", "rb", "wb", "db"], 0.0)
                for member in members:
                    row, active = rows[member], program[member][-1]
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
                    to_dram = per_row["dram_requests"][row] / n
                    means["d"] += to_dram
                    means["dr" if is_load else "dw"] += to_dram
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
                    ("dram_read_requests", "dr"),
                    ("dram_write_requests", "dw"),
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


@pytest.mark.slow
@settings(max_examples=rounds(50))
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
    hit in L2. Without time they do not wait for the first one's data.
    """
    k = ws.patterns.KernelBuilder("amat", grid=1, block=320)
    k.emit("LDG.E.STRONG.GPU", dst=4, src=2, address=0x1000 + 0 * k.thread)
    k.emit("FADD", dst=5, src=4)
    gpu = ws.gpu("gpumech-baseline").replace(num_sms=1)
    kernel = k.build()
    memory = ws.simulate_caches(kernel, gpu, access_order="greedy")
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

    def stall(stride, gpu=pascal):
        k = ws.patterns.KernelBuilder("lds", grid=1, block=32)
        k.emit("LDS", dst=4, src=2, address=4 * stride * k.thread)
        k.emit("FADD", dst=5, src=4)
        return ws.interval_profile(k.build(), gpu).intervals["stall_cycles"].iloc[0]

    assert stall(1) == pascal.shared_memory_latency
    assert stall(2) == pascal.shared_memory_latency + 1
    assert stall(32) == pascal.shared_memory_latency + 31
    slower = pascal.replace(shared_wavefront_cycles=2)
    assert stall(1, slower) == pascal.shared_memory_latency
    assert stall(32, slower) == pascal.shared_memory_latency + 2 * 31


def long_and_short(long_warps, short_warps):
    """Make a kernel in which the first warps run 30 instructions and the others 3."""
    warps = long_warps + short_warps
    k = ws.patterns.KernelBuilder("divergent", grid=warps, block=32)
    for i in range(30):
        k.emit("FADD", dst=4, src=4, where=(k.thread < 32 * long_warps) | (i < 3))
    return k.build()


def test_representative_warp_is_of_the_majority():
    assert ws.interval.representative_warp(long_and_short(3, 17)) == (3, 0)
    assert ws.interval.representative_warp(long_and_short(17, 3)) == (0, 0)
    assert ws.interval.representative_warp(long_and_short(5, 0)) == (0, 0)


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=30))
def test_clustering_equals_plain_definition(warps):
    """Lloyd's iteration over every warp, one by one, from the same two starting points."""
    k = ws.patterns.KernelBuilder("random", grid=len(warps), block=32)
    block = k.thread // 32
    count = np.array([n for n, _ in warps])[block]
    chained = np.array([c for _, c in warps])[block]
    for i in range(40):
        k.emit("FADD", dst=4, src=4, where=chained & (i < count))
        k.emit("FADD", dst=5 + i, src=100, where=~chained & (i < count))
    kernel = k.build()

    points = []
    for n, is_chained in warps:
        # An instruction that waits for the one before starts 26 cycles after it.
        cycles = 26 * (n - 1) + 1 if is_chained else n
        points.append((n / cycles, n))
    means = [sum(p[i] for p in points) / len(points) for i in range(2)]
    points = [(p[0] / means[0], p[1] / means[1]) for p in points]

    def squared(a, b):
        return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2

    spread = sorted({squared(p, (1, 1)) for p in points})
    assume(len(spread) < 2 or (spread[1] - spread[0] > 1e-9 and spread[-1] - spread[-2] > 1e-9))
    centres = [
        min(points, key=lambda p: squared(p, (1, 1))),
        max(points, key=lambda p: squared(p, (1, 1))),
    ]
    for _ in range(100):
        clusters = [[], []]
        for p in points:
            clusters[squared(p, centres[0]) > squared(p, centres[1])].append(p)
        centres = [
            (sum(p[0] for p in c) / len(c), sum(p[1] for p in c) / len(c)) if c else centre
            for c, centre in zip(clusters, centres, strict=True)
        ]
    assume(len(clusters[0]) != len(clusters[1]))
    main = len(clusters[1]) > len(clusters[0])
    chosen, _ = ws.interval.representative_warp(kernel)
    nearest = min(squared(p, centres[main]) for p in clusters[main])
    assert squared(points[chosen], centres[main]) == pytest.approx(nearest, abs=1e-12)
    assert chosen == points.index(points[chosen]), "the first warp of its kind"


def test_clustering_looks_at_both_features():
    """Equal IPC, different lengths; equal lengths, different IPC: the majority wins either way."""
    lengths = ws.patterns.KernelBuilder("lengths", grid=5, block=32)
    for i in range(30):
        lengths.emit("FADD", dst=5 + i, src=40, where=(lengths.thread >= 32) | (i < 10))
    assert ws.interval.representative_warp(lengths.build()) == (1, 0)
    speeds = ws.patterns.KernelBuilder("speeds", grid=5, block=32)
    for i in range(30):
        speeds.emit("FADD", dst=4, src=4, where=speeds.thread < 32)
        speeds.emit("FADD", dst=5 + i, src=40, where=speeds.thread >= 32)
    assert ws.interval.representative_warp(speeds.build()) == (1, 0)


def partly_idle(grid, block, works):
    """Make a kernel in which only the warps that `works` names have an instruction."""
    k = ws.patterns.KernelBuilder("idle", grid=grid, block=block)
    working = np.isin(k.thread // 32, works)
    for _ in range(4):
        k.emit("FADD", dst=4, src=4, where=working)
    return k.build()


def test_idle_warps_and_blocks_do_not_count(pascal):
    """Blocks 0 and 2 of 4 have work in 1 and 2 of their 2 warps: 2 blocks of 1.5 warps."""
    kernel = partly_idle(4, 64, [1, 4, 5])
    assert kernel.num_warps == 8
    assert ws.interval.representative_warp(kernel) == (0, 1)
    for selection in ("min", "max"):
        assert ws.interval.representative_warp(kernel, selection) == (0, 1)
    (wave,) = ws.interval_profile(kernel, pascal).waves(pascal)
    assert (wave.warps, wave.active_sms, wave.total_warps) == (1.5, 2, 3)
    assert ws.predict(kernel, pascal)["instructions"].item() == 12


def test_missing_blocks_count_like_the_traced_ones(tmp_path, pascal):
    """2 of 6 blocks are traced, one of them without work: 3 of 6 blocks work."""
    mov = Instruction(0, "MOV", dst=[1])
    blocks = {(1, 0, 0): {0: [mov, Instruction(16, "EXIT")]}, (4, 0, 0): {0: []}}
    (tmp_path / "kernel-1.traceg").write_text(grouped(blocks, 4, grid=(6, 1, 1)))
    with pytest.warns(ws.errors.TraceWarning, match="blocks are missing"):
        (kernel,) = ws.load(tmp_path / "kernel-1.traceg").kernels
    profile = ws.interval_profile(kernel, pascal)
    assert sum(w.count * w.total_warps for w in profile.waves(pascal)) == 3
    assert ws.models.evaluate(profile, pascal).instructions == 2 * 3


def test_a_register_is_not_written_anew_before_it_has_been_written(pascal):
    """As on the simulator's scoreboard: three FADDs of latency 7 into one register, 8 cycles apart."""
    k = ws.patterns.KernelBuilder("overwritten", grid=1, block=32)
    for _ in range(3):
        k.emit("FADD", dst=4, src=40)
    table = ws.interval_profile(k.build(), pascal.replace(fp32_latency=7)).intervals
    assert table["stall_cycles"].tolist() == [7, 7, 0]
    assert table["cause_row"].tolist() == [0, 1, -1]


def test_odd_issue_widths_make_no_intervals(pascal):
    """Three per cycle: rounding errors of 1/3 are not stalls, but a dependence is.

    Every 10th instruction reads the previous one's result of latency 7: it issues at its cycle + 8
    where its slot was at + 1/3.
    """
    gpu = pascal.replace(issue_width=3, fp32_latency=7)
    k = ws.patterns.KernelBuilder("thirds", grid=1, block=32)
    for i in range(1000):
        k.emit("FADD", dst=4 + i % 10, src=12 if i % 10 == 9 else 40)
    table = ws.interval_profile(k.build(), gpu).intervals
    assert len(table) == 101
    assert table["stall_cycles"].iloc[0] == pytest.approx(8 - 1 / 3)
    independent = ws.patterns.KernelBuilder("independent", grid=1, block=32)
    for i in range(1000):
        independent.emit("FADD", dst=4 + i % 24, src=26 if i % 24 == 23 else 40)
        if i % 24 == 22:
            for other in range(50, 73):
                independent.emit("FADD", dst=other, src=40)
    assert len(ws.interval_profile(independent.build(), gpu)) == 1


def test_first_register_wins_a_tie_for_the_cause(pascal):
    k = ws.patterns.KernelBuilder("tie", grid=1, block=32)
    k.emit("FADD.FTZ", dst=4, src=40)
    k.emit("MUFU.RCP", dst=5, src=40)
    k.emit("FADD", dst=6, src=(5, 4))
    gpu = pascal.replace(sfu_latency=24, fp32_latency=25)  # both are ready at cycle 26
    assert ws.interval_profile(k.build(), gpu).intervals["cause_row"].tolist() == [1, -1]


def test_nominal_latencies():
    """GPUMech, Table I: 25 cycles, and an L2 hit (120) for what goes through the caches."""
    k = ws.patterns.KernelBuilder("nominal", grid=1, block=32)
    k.emit("FADD", dst=4, src=5)
    k.emit("LDG.E", dst=4, src=2, address=4 * k.thread)
    k.emit("LDS", dst=4, src=2, address=4 * k.thread)
    assert _core.nominal_latencies(k.build()._core).tolist() == [25, 120, 25]


def test_instruction_without_active_lanes_has_the_latency_of_a_hit(pascal):
    k = ws.patterns.KernelBuilder("never", grid=1, block=32)
    k.emit("LDG.E", dst=4, src=2, address=4 * k.thread, predicate=k.thread < 0)
    kernel = k.build()
    memory = ws.simulate_caches(kernel, pascal)
    gpu = pascal.replace(l1_latency=11)
    found = _core.latencies(kernel._core, memory._core, gpu._core)
    assert found.tolist() == [11]


def test_memory_profile_must_be_of_the_same_caches(pascal):
    kernel = ws.patterns.stream(blocks=2)
    other = pascal.replace(l1_mshrs=7, dram_bandwidth_gbs=1)
    memory = ws.simulate_caches(kernel, other, access_order="round_robin")
    ws.interval_profile(kernel, pascal, memory)
    memory = ws.simulate_caches(kernel, pascal.replace(l2_ways=4))
    with pytest.raises(ws.InputError, match="made with l2_ways = 4, GPU pascal-mdm has 8"):
        ws.interval_profile(kernel, pascal, memory)


def test_maximum_and_minimum_selection(pascal):
    """The independent warps of block 1 have the higher IPC."""
    k = ws.patterns.KernelBuilder("mixed", grid=2, block=32)
    chained = k.thread < 32
    for i in range(10):
        k.emit("FADD", dst=4, src=4, where=chained)
        k.emit("FADD", dst=5 + i, src=20, where=~chained)
    kernel = k.build()
    assert ws.interval.representative_warp(kernel, "max") == (1, 0)
    assert ws.interval.representative_warp(kernel, "min") == (0, 0)
    ipc = {s: ws.predict(kernel, pascal, "mt", selection=s)["ipc"].item() for s in ("max", "min")}
    assert ipc["max"] > ipc["min"]


def test_selection_does_not_depend_on_the_gpu_or_on_threads(bfs):
    kernel = bfs.kernels[8]
    assert ws.interval.representative_warp(kernel) == ws.interval.representative_warp(kernel)
    latencies = _core.nominal_latencies(kernel._core)
    single = _core.group_warps(kernel._core, latencies, 1.0, 1)
    several = _core.group_warps(kernel._core, latencies, 1.0, 4)
    for column in single:
        assert (single[column] == several[column]).all()


def test_groups_of_bfs_count_every_warp_and_instruction(bfs, bfs_reference):
    groups = [warp_groups(kernel) for kernel in bfs]
    counts = [(group["instructions"] * group["count"]).sum() for group in groups]
    assert counts == list(bfs_reference.trace_warp_insts)
    assert [group["count"].sum() for group in groups] == [kernel.num_warps for kernel in bfs]


def test_wrong_arguments_are_named(pascal):
    kernel = arithmetic_kernel([("EXIT", (), ())])
    other = arithmetic_kernel([("MOV", 1, ()), ("EXIT", (), ())])
    with pytest.raises(
        ws.InputError, match=r"selection = 'best' is not one of clustering, max, min"
    ):
        ws.interval.representative_warp(kernel, "best")
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
            r"instructions has the shape \(2,\) where others have 3 entries",
        ),
        ({"stall_cycles": [1, float("nan")]}, "stall_cycles = .* not finite"),
        ({"read_misses": -1}, "read_misses = .* less than 0"),
        ({"read_misses": 1, "dram_requests": 2}, "more requests reach DRAM than leave the SM"),
        ({"llc_miss_ratio": 1.5}, "more requests reach DRAM"),
        ({"warps": 0}, "warps = 0 is not a number of at least 1"),
        ({"stall_causes": [0.5, 0.5, 0.5, 0]}, "stall_causes"),
        ({"stall_causes": [1, 0]}, r"stall_causes has the shape \(2,\)"),
        ({"instructions": "many"}, "instructions = 'many' is not a list of numbers"),
        ({"warps": "many"}, "warps = 'many' is not a number"),
    ],
)
def test_impossible_hand_made_profiles(changes, message):
    arrays = {"instructions": [3, 4], "stall_cycles": [6, 7]}
    with pytest.raises(ws.InputError, match=message):
        ws.IntervalProfile.from_arrays(**{**arrays, **changes})
