"""The closed network model against its plain definition, by hand, and against the bounds of the machine."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import warpstack as ws
from configurations import model_parameters, tensor_unit
from effort import rounds
from machines import plain_pascal
from python_reference import instruction_cache, tensor
from python_reference import interval as plain_interval
from python_reference import network as plain
from python_reference.timing_control import unit_of
from strategies import CODES, gpus, kernels
from warpstack import _core

BLOCK_STARTS = ("block_interval_cycles", "block_replacement_ns", "warp_start_cycles")
MODEL = "closed_network"
DEMANDS = (
    "loads",
    "lsu_cycles",
    "tag_cycles",
    "shared_cycles",
    "conflict_cycles",
    "atomic_turns",
    "read_misses",
    "misses_past_l1",
    "read_bytes",
    "write_requests",
    "write_bytes",
    "posted_requests",
    "posted_bytes",
    "dram_imbalance",
    "dram_read_requests",
    "dram_bytes",
    "dram_write_bytes",
    "missing_loads",
    "missing_lines",
    "hit_bytes",
    "slice_turns",
    "hottest_slice_turns",
    "crowded_slice_turns",
    "most_read_bytes",
    "place_wait_l2",
    "place_wait_dram",
    "tensor_cycles",
    "spaced_tensor_cycles",
    "warps_in_step",
)


def spaced_tensor_cycles(table, unit):
    """Return the cycles in which control fields keep warps from their next matrix instruction."""
    total = 0
    is_product = (table["op_class"] == "tensor").to_numpy()
    for row in np.flatnonzero(is_product) if "stall" in table else ():
        after = np.flatnonzero(is_product[row + 1 :])
        rows = table.iloc[row : row + 1 + after[0] if len(after) else None]
        distance = np.maximum(rows["stall"], np.where(rows["yield"], 2, 1)).sum()
        busy = tensor.cycles(table["opcode"].iloc[row], unit)
        total += table["executions"].iloc[row] * min(distance, busy)
    return total


def latencies_of_rounds(memory, latencies, levels):
    """Return the latencies of each row when a warp comes to it, and when it goes back to it."""
    found = []
    per_row = memory._core.per_row
    for row, mean in enumerate(latencies):
        waits = sum(int(per_row[f"{level}_waits"][row]) for level in plain.LEVELS)
        repeats = int(per_row["repeats"][row])
        cycles = {}
        for which in ("wait", "repeat"):
            cycles[which] = sum(
                int(per_row[f"{level}_{which}_cycles"][row]) * levels[level] / trip
                for level, trip in plain.LEVELS.items()
            )
        if not 0 < repeats < waits:
            found.append((mean, mean))
            continue
        differs = mean - cycles["wait"] / waits
        first = (cycles["wait"] - cycles["repeat"]) / (waits - repeats) + differs
        found.append((max(first, 0), max(cycles["repeat"] / repeats + differs, 0)))
    return found


def warp_program(kernel, block, warp, latencies, atomic_wait):
    """Return the warp as the plain definition of intervals wants it.

    latencies: pairs, as of `latencies_of_rounds`.
    """
    columns, table = kernel.warp(block, warp), kernel.instructions
    is_access = (table["op_class"] == "memory") & ~table["space"].isin(["shared", "none"])
    program, furthest = [], -1
    stops = plain_interval.is_cached_atomic(table) & (atomic_wait == "until_done")
    stops |= table["opcode"].str.startswith("BAR.")
    for row, mask in zip(
        columns["instruction"].tolist(), columns["active_mask"].tolist(), strict=True
    ):
        latency = latencies[row][row <= furthest]
        registers = table.sources[row], table.destinations[row]
        program.append((stops[row], *registers, latency, mask != 0))
        if is_access[row] and mask:
            furthest = max(furthest, row)
    return program


def reference_latencies(kernel, memory):
    """Return latencies on the machine by whose time it is decided who runs beside whom (MDM's has them)."""
    machine_ = plain_pascal(texture_latency=25, l1_latency=25, l2_latency=120, dram_latency=220)
    return _core.latencies(kernel._core, memory._core, machine_._core)


def row_waits_of(kernel, gpu):
    """Return the share of each detail in waits for a row of the instruction table, beside memory."""
    turns, needed, count = Counter(), Counter(), Counter()
    table = kernel.instructions
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            columns = kernel.warp(block, warp)
            for row, passes in zip(columns["memory_static"], columns["memory_count"], strict=True):
                if table["space"][row] == "shared" and passes:
                    turns[row] += int(passes)
                    count[row] += 1
    waits = {}
    for row, (opcode, space, width) in enumerate(
        zip(table["opcode"], table["space"], table["width"], strict=True)
    ):
        if opcode.startswith("BAR."):
            waits[row] = {"barriers": 1.0}
        elif space == "shared":
            waits[row] = {"shared_memory": 1.0}
            if count[row]:
                needed = min(max(math.ceil(width / 4), 1) * count[row], turns[row])
                cycles = gpu.shared_wavefront_cycles / count[row]
                latency = gpu.shared_memory_latency - gpu.shared_wavefront_cycles
                latency += turns[row] * cycles
                conflicts = min((turns[row] - needed) * cycles / latency, 1)
                waits[row] = {"shared_memory": 1 - conflicts, "bank_conflicts": conflicts}
    return waits


def stalls_of(profile, waits=()):
    """Return the stalls of the representative warp, each by detail, as `waits` are for their rows."""
    columns = [profile.intervals[f"stall_{column}"] for column in ("dep", "l1", "l2", "dram")]
    stalls = []
    for cause, dep, *memory in zip(profile.intervals["cause_row"], *columns, strict=True):
        stall = dict.fromkeys(plain.CAUSES, 0.0)
        stall |= dict(zip(plain.CAUSES[1:], memory, strict=False))
        shares = waits[cause] if cause in waits else {"arithmetic": 1.0}  # noqa: SIM401 - a tuple if there are none
        stalls.append(stall | {detail: dep * share for detail, share in shares.items()})
    return stalls


def machine(**changes):
    return plain_pascal(**{"clock_ghz": 1.0, "noc_control_bytes": 0, **changes})


def memory_bound(warps=16, sms=28, misses=4.0, stalls=300.0):
    """Intervals of ten instructions, one of them a load that misses `misses` times in L1 and L2."""
    return ws.IntervalProfile.from_arrays(
        instructions=[10] * 20,
        stall_cycles=[stalls] * 20,
        read_misses=[misses] * 20,
        memory_instructions=[1] * 20,
        llc_miss_ratio=[1.0] * 20,
        warps=warps,
        active_sms=sms,
    )


@st.composite
def profiles(draw):
    """Hand-made profiles from nothing but arithmetic to far beyond every bandwidth."""
    n = draw(st.integers(1, 6))
    column = st.lists(st.integers(0, 40), min_size=n, max_size=n)
    reads, writes = np.array(draw(column)), np.array(draw(column))
    ratio = draw(st.sampled_from([0.0, 0.25, 1.0]))
    return ws.IntervalProfile.from_arrays(
        instructions=draw(st.lists(st.integers(1, 30), min_size=n, max_size=n)),
        stall_cycles=draw(st.lists(st.integers(0, 400), min_size=n, max_size=n)),
        read_misses=reads,
        write_requests=writes * draw(st.booleans()),
        memory_instructions=np.minimum(reads, 1),
        llc_miss_ratio=[ratio] * n,
        warps=draw(st.integers(1, 64)),
        active_sms=draw(st.integers(1, 80)),
    )


def machines():
    return st.builds(
        machine,
        issue_width=st.sampled_from([0.5, 1, 2]),
        schedulers_per_sm=st.sampled_from([0, 1, 2, 4]),
        l1_mshrs=st.integers(1, 512),
        noc_bandwidth_gbs=st.floats(1, 5000),
        dram_bandwidth_gbs=st.floats(1, 5000),
        noc_control_bytes=st.sampled_from([0, 8]),
        noc_sm_bytes_per_cycle=st.sampled_from([0, 32]),
        dram_latency=st.integers(0, 600),
    )


# --- against the plain definition ----------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(
    st.one_of(kernels(), kernels(spread_code=True)),
    st.builds(lambda gpu, code: gpu.replace(**code), gpus(), st.one_of(st.just({}), CODES)),
    st.sampled_from(["gto", "lrr"]),
    st.sampled_from([1, 2, 7]),
    st.sampled_from(["none", "awaited", "by the launch"]),
    st.sampled_from(["for_data", "until_done"]),
    st.sampled_from(["timed", "greedy"]),
    st.sampled_from([0, 20, 128]),
)
def test_equals_plain_definition(
    kernel, gpu, scheduler, num_sms, stores, atomics, order, tensor_rate
):
    assume(kernel.num_instructions > 0)
    gpu = gpu.replace(scheduler=scheduler, num_sms=num_sms)
    by_launch = stores == "by the launch"
    gpu = gpu.replace(atomic_wait=atomics)
    gpu = gpu.replace(kernel_end="last_acknowledgement" if by_launch else "last_store")
    gpu = gpu.replace(store_acknowledgement="awaited" if stores == "awaited" else "none")
    gpu = gpu.replace(tensor_f16_f32_rate=tensor_rate, tensor_interval=3)
    memory = ws.simulate_caches(kernel, gpu, access_order=order)
    profile = ws.interval_profile(kernel, gpu, memory)
    on_gpu = {"l1": gpu.l1_latency, "l2": gpu.l2_latency, "dram": gpu.l2_latency + gpu.dram_latency}
    own = latencies_of_rounds(memory, profile._source.latencies, on_gpu)
    reference = latencies_of_rounds(memory, reference_latencies(kernel, memory), plain.LEVELS)
    # Every warp by itself, block by block.
    table = kernel.instructions
    stores_of = plain_interval.is_cached_atomic(table) | (
        (table["kind"] == "store") & ~table["space"].isin(["shared", "none"])
    )
    unit_of_row = [
        "lsu" if row["op_class"] == "memory" else unit_of(row) for row in table.to_dict("records")
    ]
    blocks, for_stores, after_stores = [], 0, 0
    for block, (_, warps) in enumerate(kernel.blocks()):
        works = []
        for warp in range(len(warps)):
            times, programs = [], []
            executed = kernel.warp(block, warp)["instruction"].tolist()
            results = [
                len(table["destinations"][row]) > 0 or table["kind"][row] == "async_copy"
                for row in executed
            ]
            awaited = [stores != "none" and stores_of[row] for row in executed]
            for latencies, issue_rate in (
                (own, gpu.issue_width / gpu.num_schedulers),
                (reference, 1),
            ):
                program = warp_program(kernel, block, warp, latencies, atomics)
                programs.append(program)
                times.append(
                    plain_interval.end_cycles(program, results, awaited, issue_rate, by_launch)
                )
            if executed:
                active = [mask != 0 for mask in kernel.warp(block, warp)["active_mask"].tolist()]
                units = [unit_of_row[row] for row in executed]
                off = {
                    unit: plain_interval.off_unit(
                        programs[0],
                        [
                            of == unit and (on or unit != "lsu")
                            for of, on in zip(units, active, strict=True)
                        ],
                        [table["opcode"][row].startswith("BAR.") for row in executed],
                        results,
                        awaited,
                        gpu.issue_width / gpu.num_schedulers,
                        by_launch,
                    )
                    for unit in set(units)
                }
                off = {unit: times for unit, times in off.items() if times}
                works.append((len(executed), times[0][0], times[1][0], off))
                for_stores += 0 if by_launch else times[0][1]
                after_stores = max(after_stores, times[0][1] if by_launch else 0)
        blocks.append(works)
    slots = ws.memory.occupancy(kernel, gpu)["blocks_per_sm"]
    expected = plain.play(blocks, kernel.num_blocks, num_sms, slots)
    launch = profile._core_phases(gpu)
    assert launch.alone_cycles == pytest.approx(expected["alone"], rel=1e-9)
    assert launch.span == pytest.approx(expected["span"], rel=1e-9)
    assert launch.replacements == pytest.approx(expected["replacements"], rel=1e-9)
    assert (launch.first_warps, launch.first_all_warps) == expected["first"]
    for_stores /= sum(n for block in blocks for n, *_ in block)
    # Classes that no GPU limits have none.
    limited = {
        name.removesuffix("_interval") for name in gpu.values() if name.endswith("_interval")
    }
    for unit, times in launch.off_units.items():
        known = expected["off_units"] if unit in {"lsu", *limited} else {}
        assert times == pytest.approx(known.get(unit, [0] * 5), rel=1e-9), unit
    assert launch.store_cycles == pytest.approx(for_stores, rel=1e-9)
    assert launch.after_stores == pytest.approx(after_stores, rel=1e-9)
    expected["after_stores"] = after_stores
    if _core.keeps_step(kernel._core):
        source, first = profile._source, expected["first_blocks"]
        longest = max(first, key=lambda block: max(w[2] for w in blocks[block]))
        one, together = (
            _core.play_blocks(kernel._core, source.memory, source.latencies, gpu._core, which)
            for which in ([longest], first)
        )
        plain.keep_step(expected, blocks, one, together)
    unit = tensor_unit(gpu)
    core = _core.demands_of(kernel._core, memory._core, gpu._core)
    executed = table["executions"] > 0
    has_both = (table["op_class"] == "tensor")[executed].any() and (
        table["opcode"][executed].str.startswith("BAR.").any()
    )
    assert _core.keeps_step(kernel._core) == has_both
    in_step = max(kernel._core.working_warps_per_block, 1) if has_both else 1
    assert core.warps_in_step == pytest.approx(in_step, rel=1e-12)
    of_tensor = table["opcode"].where(table["op_class"] == "tensor")
    busy = sum(
        count * tensor.cycles(opcode, unit)
        for opcode, count in zip(
            of_tensor.dropna(), table["executions"][of_tensor.notna()], strict=True
        )
    )
    assert core.tensor_cycles == pytest.approx(busy / kernel.num_instructions, rel=1e-12)
    spaced = spaced_tensor_cycles(table, unit) / kernel.num_instructions
    assert core.spaced_tensor_cycles == pytest.approx(spaced, rel=1e-12)
    demands = {name: getattr(core, name) for name in DEMANDS}
    demands["code"] = instruction_cache.longest_walk(kernel, gpu.values())
    of_code = (core.code.share, core.code.share_after, core.code.fetch_cycles)
    assert of_code == pytest.approx(demands["code"], rel=1e-12)
    demands["unit_instructions"] = {
        name: count / kernel.num_instructions
        for name, count in kernel._core.unit_instructions().items()
    }
    stalls = stalls_of(profile, row_waits_of(kernel, gpu))
    cycles, stack, details = plain.predict(
        expected, demands, stalls, model_parameters(gpu), for_stores
    )
    prediction = ws.models.evaluate(profile, gpu, MODEL)
    assert prediction.cycles == pytest.approx(cycles, rel=1e-6)
    assert prediction.ipc == pytest.approx(kernel.num_instructions / cycles, rel=1e-6)
    assert prediction.cpi == pytest.approx(sum(stack.values()), rel=1e-6)
    for part, value in stack.items():
        assert prediction.cpi_stack[part] == pytest.approx(value, rel=1e-6, abs=1e-9), part
    for name in prediction.cpi_details:
        value = details.get(name, 0)
        assert prediction.cpi_details[name] == pytest.approx(value, rel=1e-6, abs=1e-9), name
    # The model alone, without the limits of all models: places are empty between two blocks, and
    # units take instructions now and then.
    slow = gpu.replace(block_replacement_ns=300.0, integer_interval=2, fp32_interval=4)
    parameters = model_parameters(slow)
    cycles, *_ = plain.predict(expected, demands, stalls_of(profile), parameters, for_stores)
    alone = _core.evaluate(MODEL, profile._core_kernel(gpu, MODEL), slow._core)
    assert alone["cycles"] == pytest.approx(cycles, rel=1e-6)


@pytest.mark.slow
@settings(max_examples=rounds(200))
@given(profiles(), machines())
def test_hand_made_profiles_equal_plain_definition(profile, gpu):
    table = profile.intervals
    n = table["instructions"].sum()
    requests = table["read_misses"] + table["write_requests"]
    line = gpu.l1_sector_bytes
    demands = {
        "loads": table["memory_instructions"].sum() / n,
        "lsu_cycles": np.maximum(requests, table["memory_instructions"]).sum() / n,
        "read_misses": table["read_misses"].sum() / n,
        "read_bytes": table["read_misses"].sum() * line / n,
        "write_requests": table["write_requests"].sum() / n,
        "write_bytes": table["write_requests"].sum() * line / n,
        "dram_read_requests": table["dram_read_requests"].sum() / n,
        "dram_bytes": table["dram_requests"].sum() * gpu.l2_sector_bytes / n,
        "missing_loads": np.minimum(table["read_misses"], table["memory_instructions"]).sum() / n,
        "posted_requests": table["write_requests"].sum() / n,
        "posted_bytes": table["write_requests"].sum() * line / n,
        "dram_imbalance": 1,
        "slice_turns": requests.sum() / n,
        "hottest_slice_turns": requests.sum() / n,
        "crowded_slice_turns": requests.sum() / n,
    }
    moved = demands["read_bytes"] + demands["write_bytes"]
    demands["hit_bytes"] = max(moved - demands["dram_bytes"], 0)
    nothing = dict.fromkeys(
        (
            "misses_past_l1",
            "dram_write_bytes",
            "most_read_bytes",
            "place_wait_l2",
            "place_wait_dram",
            "tensor_cycles",
            "spaced_tensor_cycles",
        ),
        0,
    ) | {"missing_lines": 1, "warps_in_step": 1, "unit_instructions": {}}
    [wave] = profile.waves(gpu)
    alone = n / (gpu.issue_width / gpu.num_schedulers) + table["stall_cycles"].sum()
    population = (wave.warps, wave.total_warps)
    launch = {
        "sms": [({(*population, wave.active_sms): n}, 0, 0, 0, 0, 0)],
        "off_units": {},
        "alone": alone / n,
        "span": alone,
        "first": population,
        "at_start": {(*population, wave.active_sms): 1},
        "instructions": n * wave.total_warps,
    }
    cycles, stack, details = plain.predict(
        launch, demands | nothing, stalls_of(profile), model_parameters(gpu)
    )
    prediction = ws.models.evaluate(profile, gpu, MODEL)
    assert prediction.cycles == pytest.approx(cycles, rel=1e-9)
    # Waiting is what a large time leaves of another one.
    rounding = 1e-8 * max(prediction.cpi, 1)
    for part, value in stack.items():
        assert prediction.cpi_stack[part] == pytest.approx(value, rel=1e-6, abs=rounding), part
    assert sum(prediction.cpi_stack.values()) == pytest.approx(prediction.cpi, rel=1e-9)
    for name, value in details.items():
        assert prediction.cpi_details[name] == pytest.approx(value, rel=1e-6, abs=rounding), name


# --- by hand ------------------------------------------------------------------------------------


def test_a_warp_alone_takes_its_own_time():
    """3 instructions and 6 stall cycles twice: 18 cycles. Nothing else can hold it up."""
    profile = ws.IntervalProfile.from_arrays(instructions=[3, 3], stall_cycles=[6, 6])
    prediction = ws.models.evaluate(profile, machine(), MODEL)
    assert prediction.cycles == pytest.approx(18)
    assert prediction.cpi_stack["base"] == pytest.approx(1)
    assert prediction.cpi_stack["dep"] == pytest.approx(2)


def test_two_warps_that_only_issue():
    """No stalls: 2 / x = 1 / 2 + 1 / 2 / (1 - x / 2) has the root x = 4 - 2 sqrt(2), above the issue rate."""
    profile = ws.IntervalProfile.from_arrays(instructions=[5], stall_cycles=[0], warps=2)
    assert ws.models.evaluate(profile, machine(), MODEL).cycles == pytest.approx(10)


def test_two_warps_with_stalls():
    """One instruction, 2 stall cycles each: 2 / x = 2 + 1 / 2 + 1 / 2 / (1 - x / 2).

    5 x^2 - 16 x + 8 = 0: 0.620 instructions per cycle; without waiting for each other it were 2/3.
    """
    profile = ws.IntervalProfile.from_arrays(instructions=[1], stall_cycles=[2], warps=2)
    prediction = ws.models.evaluate(profile, machine(), MODEL)
    assert prediction.ipc == pytest.approx((8 - math.sqrt(24)) / 5)


def test_saturated_dram_serves_at_its_bandwidth():
    """Any number of batches: 28 SMs x 64 warps x 20 loads x 32 lines of 128 bytes at 100 bytes a cycle."""
    gpu = machine(dram_bandwidth_gbs=100, noc_bandwidth_gbs=1e5, l1_mshrs=4096)
    profile = memory_bound(warps=64, misses=32)
    prediction = ws.models.evaluate(profile, gpu, MODEL)
    seconds = 28 * 64 * 20 * 32 * 128 / 100
    assert prediction.cycles == pytest.approx(seconds, rel=0.01)
    assert prediction.cycles >= seconds * (1 - 1e-12)
    assert max(prediction.cpi_stack, key=prediction.cpi_stack.get) == "queue"
    # MDM looks at the NoC alone to see saturation, and else lets half of the requests wait: here its
    # DRAM moves more than it can.
    assert ws.models.evaluate(profile, gpu.replace(l1_mshrs=128), "mdm").cycles < 0.6 * seconds


def test_a_burst_at_a_saturated_station_counts_once():
    """Every warp loads once: DRAM moves all the lines, after the 310 cycles of a warp alone.

    The bandwidth bound has the burst, which had been added to it once more.
    """
    gpu = machine(dram_bandwidth_gbs=100, noc_bandwidth_gbs=1e5, l1_mshrs=4096)
    profile = ws.IntervalProfile.from_arrays(
        instructions=[10],
        stall_cycles=[300],
        read_misses=[32],
        memory_instructions=[1],
        llc_miss_ratio=[1.0],
        warps=64,
        active_sms=28,
    )
    transfer = 28 * 64 * 32 * 128 / 100
    cycles = ws.models.evaluate(profile, gpu, MODEL).cycles
    assert transfer + 310 <= cycles <= transfer + 2 * 310 + 64 * 10


def test_few_mshrs_serve_one_batch_per_round_trip():
    """One SM, 64 warps x 20 loads x 4 misses, one MSHR: 5120 round trips one after the other.

    The burst of the first loads adds 64 x 4 cycles of the load-store unit.
    """
    gpu = machine(num_sms=1, l1_mshrs=1, dram_bandwidth_gbs=1e6, noc_bandwidth_gbs=1e6)
    profile = memory_bound(warps=64, sms=1)
    prediction = ws.models.evaluate(profile, gpu, MODEL)
    assert prediction.cycles == pytest.approx(
        64 * 20 * 4 * (gpu.l2_latency + gpu.dram_latency), rel=1e-3
    )
    assert max(prediction.cpi_stack, key=prediction.cpi_stack.get) == "mshr"


@pytest.mark.parametrize("passed_by", ["the GPU", "the instruction"])
def test_loads_past_l1_hold_no_mshr(passed_by):
    """One MSHR or 512: neither simulator nor model sees it, where it would cost 64 round trips."""
    k = ws.patterns.KernelBuilder("k", grid=8, block=256)
    opcode = {"the GPU": "LDG.E", "the instruction": "LDG.E.STRONG.GPU"}[passed_by]
    k.emit(opcode, dst=1, src=2, address=(1 << 30) + 128 * k.thread)
    kernel = k.build()
    gpu = plain_pascal(l1_global_loads="bypassed" if passed_by == "the GPU" else "cached")
    few, many = (gpu.replace(l1_mshrs=mshrs) for mshrs in (1, 512))
    assert ws.simulate(kernel, few).cycles == ws.simulate(kernel, many).cycles
    (cycles,) = ws.predict(kernel, few, MODEL)["cycles"]
    assert cycles == ws.predict(kernel, many, MODEL)["cycles"][0]
    assert cycles < 64 * 340 / 8


def test_a_unit_that_takes_an_instruction_every_few_cycles_delays_other_warps():
    """Special functions every 8 cycles, each of its own warp: 2 warps of a scheduler meet at times.

    One warp waits for nobody, as it needs its own results first; 16 warps keep the unit busy.
    """
    cycles = {}
    for warps in (1, 2, 16):
        k = ws.patterns.KernelBuilder("k", grid=1, block=32 * warps)
        for _ in range(50):
            k.emit("MUFU.RCP", dst=1, src=1)
        kernel = k.build()
        for interval in (1, 8):
            gpu = plain_pascal(num_sms=1, schedulers_per_sm=1, issue_width=1, sfu_interval=interval)
            cycles[warps, interval] = ws.predict(kernel, gpu, MODEL)["cycles"][0]
    assert cycles[1, 8] == cycles[1, 1]
    assert cycles[2, 8] > 1.05 * cycles[2, 1]
    assert cycles[16, 8] == pytest.approx(16 * 50 * 8, rel=0.05)


# --- physical bounds, continuity, monotony -------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=rounds(300))
@given(profiles(), machines())
def test_never_above_a_physical_bound(profile, gpu):
    table = profile.intervals
    [wave] = profile.waves(gpu)
    ipc = ws.models.evaluate(profile, gpu, MODEL).ipc * (1 - 1e-9)
    n = table["instructions"].sum()
    sms, line = wave.active_sms, gpu.l1_sector_bytes
    assert ipc <= sms * gpu.issue_width
    alone = n / (gpu.issue_width / gpu.num_schedulers) + table["stall_cycles"].sum()
    assert ipc <= wave.warps * sms * n / alone
    reads, writes = table["read_misses"].sum(), table["write_requests"].sum()
    for moved, bandwidth in (
        (reads * line, gpu.noc_bandwidth_gbs),
        (writes * line, gpu.noc_bandwidth_gbs),
        (table["dram_requests"].sum() * gpu.l2_sector_bytes, gpu.dram_bandwidth_gbs),
    ):
        assert ipc * moved / n <= bandwidth / gpu.clock_ghz * (1 + 1e-9)
    latency = gpu.l2_latency
    if reads:
        latency += table["dram_read_requests"].sum() / reads * gpu.dram_latency
    assert ipc * reads / n * latency <= gpu.l1_mshrs * sms * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=rounds(300))
@given(
    profiles(),
    machines(),
    st.sampled_from(
        ["noc_bandwidth_gbs", "dram_bandwidth_gbs", "l1_mshrs", "l2_latency", "dram_latency"]
    ),
    st.floats(1.0, 3.0),
)
def test_monotone(profile, gpu, field, factor):
    value = getattr(gpu, field)
    more = math.ceil(value * factor) if isinstance(value, int) else value * factor
    before = ws.models.evaluate(profile, gpu, MODEL).ipc
    after = ws.models.evaluate(profile, gpu.replace(**{field: more}), MODEL).ipc
    if field.endswith("latency"):
        before, after = after, before
    assert after >= before * (1 - 1e-9)


@pytest.mark.slow
@settings(max_examples=rounds(200))
@given(
    profiles(),
    machines(),
    st.sampled_from(["noc_bandwidth_gbs", "dram_bandwidth_gbs", "clock_ghz"]),
)
def test_continuous(profile, gpu, field):
    """A thousandth more of a resource changes the result by a few thousandths at most."""
    before = ws.models.evaluate(profile, gpu, MODEL).ipc
    after = ws.models.evaluate(
        profile, gpu.replace(**{field: getattr(gpu, field) * 1.001}), MODEL
    ).ipc
    assert after == pytest.approx(before, rel=0.0025)


# --- phases -------------------------------------------------------------------------------------


def moves(blocks, warps=1, instructions=8):
    """A kernel without a stall."""
    k = ws.patterns.KernelBuilder("k", grid=blocks, block=32 * warps)
    for i in range(instructions):
        k.emit("MOV", dst=i + 1, src=100)
    return k.build()


def test_phases_of_a_launch_that_ends_unevenly():
    """Three blocks of one warp on two SMs with a slot each; 8 instructions without a stall.

    Both SMs work for 8 cycles, then one of them for 8 more.
    """
    gpu = machine(num_sms=2, blocks_per_sm=1, integer_latency=1)
    profile = ws.interval_profile(moves(3), gpu)
    table = profile.phases(gpu)
    assert list(table["active_sms"]) == [2, 1]
    assert list(table["depth"]) == [8, 8]
    assert list(table["warps"]) == [1, 1]
    assert ws.models.evaluate(profile, gpu, MODEL).cycles == pytest.approx(16)


def test_an_sm_with_more_to_issue_gets_fewer_blocks():
    """Six blocks of 8 warps on two SMs of two slots: the first has 10 instructions per warp, the others 1.

    SM 0 begins with blocks 0 and 2, of which the older one takes all its slots for 80 cycles. SM 1 has
    done blocks 1 and 3 after 8 and 16 cycles, and gets 4 and 5. By the time that each takes alone, block
    2 would be done after one cycle, and SM 0 get another one.
    """
    k = ws.patterns.KernelBuilder("k", grid=6, block=256)
    block = np.arange(6)[:, None]
    for i in range(10):
        k.emit("MOV", dst=i + 1, src=100, where=(block == 0) | (i == 0))
    gpu = machine(num_sms=2, blocks_per_sm=2)
    launch = ws.interval_profile(k.build(), gpu)._core_phases(gpu)
    assert max(instructions for _, instructions, *_ in launch.sms()) == 8 * (10 + 1)
    assert launch.instructions == 8 * (10 + 5)


def test_a_partial_last_wave_takes_its_own_time():
    """Dependent instructions that saturate the issue slots of full SMs; then one block on some of them.

    The last block of an SM has it for itself: its 4 warps take 5 cycles per instruction, where 64
    warps take 16. It had been charged as a whole wave. The simulator, whose results can be used a
    cycle earlier than those of the interval algorithm, takes 8,053 cycles.
    """
    gpu = ws.gpu("h100-pcie").replace(
        scheduler="lrr", latency_counts="execution", **dict.fromkeys(BLOCK_STARTS, 0)
    )
    cycles = []
    for blocks in (114 * 16, 114 * 16 + 76):
        k = ws.patterns.KernelBuilder("k", grid=blocks, block=128)
        for _ in range(400):
            k.emit("FFMA", dst=1, src=1)
        cycles.append(ws.predict(k.build(), gpu, MODEL)["cycles"].iloc[0])
    assert cycles[0] == pytest.approx(6490, rel=0.02)
    assert cycles[1] - cycles[0] == pytest.approx(400 * 5, rel=0.01)
    assert cycles[1] == pytest.approx(8053, rel=0.06)


@pytest.mark.parametrize("gpu", ["pascal-mdm", "titan-v", "h100-sxm"])
@pytest.mark.parametrize("opcode", ["LDG.E", "LDS", "MUFU.RCP"])
def test_a_warp_ends_when_its_results_are_there(gpu, opcode):
    """Nobody uses them; a prediction had taken 8 cycles for a load that takes 689."""
    k = ws.patterns.KernelBuilder("k", grid=1, block=32)
    where = {} if opcode == "MUFU.RCP" else {"address": 4 * k.thread + (opcode != "LDS") * 0x100000}
    k.emit(opcode, dst=10, src=2, **where)
    k.emit("EXIT")
    kernel = k.build()
    simulated = ws.simulate(kernel, gpu).cycles
    assert ws.predict(kernel, gpu, MODEL)["cycles"].iloc[0] == pytest.approx(simulated, rel=0.06)


@pytest.mark.parametrize("gpu", ["pascal-mdm", "h100-sxm"])
def test_a_store_at_the_end_is_no_burst_at_the_start(gpu):
    """Chains of 500 sums in each of four warps, then a store: they had waited for one another at each sum."""
    k = ws.patterns.KernelBuilder("k", grid=1, block=128)
    for _ in range(500):
        k.emit("FFMA", dst=10, src=(10, 2))
    k.emit("STG.E", src=(2, 10), address=0x100000 + 4 * k.thread)
    k.emit("EXIT")
    kernel = k.build()
    simulated = ws.simulate(kernel, gpu).cycles
    assert ws.predict(kernel, gpu, MODEL)["cycles"].iloc[0] == pytest.approx(simulated, rel=0.1)


def test_the_last_warps_drain_when_the_oldest_go_first():
    """16 instructions of 2 warps that never wait: 32 issue slots, a quarter of the block's 16 cycles."""
    gpu = machine(num_sms=1, integer_latency=1)
    profile = ws.interval_profile(moves(1, warps=2, instructions=16), gpu)
    cycles = {
        scheduler: ws.models.evaluate(profile, gpu.replace(scheduler=scheduler), MODEL).cycles
        for scheduler in ("gto", "lrr")
    }
    assert cycles["gto"] == pytest.approx(36)
    assert cycles["lrr"] == pytest.approx(32)


def test_untraced_blocks_run_like_the_traced_ones():
    kernel = ws.patterns.stream(blocks=8)
    gpu = machine(num_sms=2)
    whole = ws.interval_profile(kernel, gpu)._core_phases(gpu)
    assert whole.instructions == pytest.approx(kernel.num_instructions)


def test_hand_made_profiles_have_no_phases():
    with pytest.raises(ws.InputError, match="no thread blocks to play"):
        memory_bound().phases(machine())


def test_many_kernels_at_once_equal_one_by_one():
    profiles_ = [memory_bound(warps=w) for w in (1, 8, 64)]
    gpus_ = [machine(l1_mshrs=n) for n in (8, 64, 512)]
    table = ws.models.prediction.evaluate_all(profiles_, gpus_, MODEL)
    for c, gpu in enumerate(gpus_):
        for k, profile in enumerate(profiles_):
            one = ws.models.evaluate(profile, gpu, MODEL)
            assert table["ipc"][c, k] == one.ipc


@pytest.mark.parametrize(
    ("policy", "bytes_", "asks_dram"),
    [
        ("write_validate", 4, False),
        ("fetch_on_partial_write", 4, False),
        ("fetch_on_partial_write", 2, True),
        ("fetch_on_write", 4, True),
        ("no_allocate", 4, True),
    ],
)
def test_a_warp_waits_for_dram_where_its_store_goes_there(policy, bytes_, asks_dram):
    """One warp with one store that misses: L2 answers after 120 cycles, DRAM 220 later."""
    k = ws.patterns.KernelBuilder("store", grid=1, block=32)
    opcode = {4: "STG.E", 2: "STG.E.U16"}[bytes_]
    k.emit(opcode, src=(2, 4), address=(1 << 30) + 4 * k.thread)
    k.emit("EXIT")
    kernel = k.build()
    gpu = plain_pascal(l2_write_miss=policy, store_acknowledgement="awaited")
    simulated = ws.simulate(kernel, gpu).cycles
    (cycles,) = ws.predict(kernel, gpu, MODEL)["cycles"]
    expected = 340 if asks_dram else 120
    assert expected <= simulated < expected + 30
    assert expected <= cycles < expected + 30


def test_what_dram_serves_passes_the_fill_port_of_a_slice():
    """Lines that L2 does not have come at the rate of its data, too."""
    kernel = ws.patterns.stream(loads=4, blocks=112)
    gpu = plain_pascal(store_acknowledgement="none")
    wide, narrow = (
        [ws.simulate(kernel, one).cycles, ws.predict(kernel, one, MODEL)["cycles"][0]]
        for one in (gpu, gpu.replace(l2_slice_bytes_per_cycle=2))
    )
    assert narrow[0] > 3 * wide[0]
    assert narrow[1] == pytest.approx(narrow[0], rel=0.3)


@pytest.mark.parametrize("opcode", ["RED.E.ADD", "ATOMG.E.ADD"])
def test_atomics_that_stop_their_warp_take_their_latency_each(opcode):
    builder = ws.patterns.KernelBuilder("atomics", grid=1, block=32)
    for step in range(20):
        destination = {"dst": 16 + step} if opcode.startswith("ATOMG") else {}
        builder.emit(opcode, src=(2, 8), address=0x100000 + 4 * builder.thread, **destination)
    builder.emit("EXIT")
    kernel = builder.build()
    gpu = ws.gpu("pascal-mdm").replace(atomic_wait="until_done", l1_latency_place="after_tags")
    simulated = ws.simulate(kernel, gpu).cycles
    assert simulated > 20 * gpu.l2_latency
    for model in (MODEL, "mdm"):
        predicted = ws.predict(kernel, gpu, [model]).cycles.item()
        assert predicted == pytest.approx(simulated, rel=0.1), model
        goes_on = ws.predict(kernel, gpu.replace(atomic_wait="for_data"), [model]).cycles.item()
        assert goes_on < simulated / 3, model


def of_simulation(kernel, gpu):
    """Return the model's cycles over the simulator's."""
    return ws.predict(kernel, gpu, [MODEL]).cycles.item() / ws.simulate(kernel, gpu).cycles


def test_later_rounds_find_what_the_first_one_fetched():
    """The last warp goes round eight times on the same line: one wait for DRAM, then L1."""
    builder = ws.patterns.KernelBuilder("rounds", grid=1, block=256)
    load, add = (
        builder.instruction("LDG.E", dst=4, src=2),
        builder.instruction("FADD", dst=5, src=4),
    )
    for turn in range(8):
        where = None if turn == 0 else builder.thread >= 224
        builder.issue(load, address=0x100000 + 4 * builder.thread, where=where)
        builder.issue(add, where=where)
    builder.emit("EXIT")
    assert of_simulation(builder.build(), ws.gpu("a100")) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(("blocks", "turns"), [(2, 400), (16, 400), (114, 400), (1000, 3000)])
def test_one_long_block_is_no_mean_of_all(blocks, turns):
    """One block computes, the others store: its instructions do not take what theirs do."""
    builder = ws.patterns.KernelBuilder("long", grid=blocks, block=32)
    step = builder.instruction("FFMA", dst=10, src=(10, 11))
    for turn in range(turns):
        builder.issue(step, where=None if turn < 2 else builder.thread >= 32 * (blocks - 1))
    builder.emit("STG.E", src=(4, 10), address=0x100000 + 4 * builder.thread)
    builder.emit("EXIT")
    assert of_simulation(builder.build(), ws.gpu("h100-pcie")) == pytest.approx(1.08, abs=0.1)


@pytest.mark.parametrize("stores", [0, 1, 4])
def test_stores_do_not_thin_out_the_burst_of_the_loads(stores):
    builder = ws.patterns.KernelBuilder("stores", grid=33, block=512)
    builder.emit("LDG.E", dst=8, src=4, address=0x100000 + 128 * builder.thread)
    builder.emit("FADD", dst=40, src=(40, 8))
    for number in range(stores):
        where = (1 << 32) + (number << 28) + 4 * builder.thread
        builder.emit("STG.E", src=(4, 40), address=where)
    builder.emit("EXIT")
    assert of_simulation(builder.build(), ws.gpu("l40s")) == pytest.approx(1, abs=0.1)


def test_a_warp_ends_with_its_asynchronous_copies():
    builder = ws.patterns.KernelBuilder("copy", grid=28, block=32)
    builder.emit("LDGSTS.E", src=(8, 4), address=0x100000 + 4 * builder.thread)
    builder.emit("EXIT")
    assert of_simulation(builder.build(), ws.gpu("pascal-mdm")) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("latency", [4, 30, 300])
def test_barriers_take_their_latency(latency):
    builder = ws.patterns.KernelBuilder("barriers", grid=6, block=64)
    for _ in range(10):
        builder.emit("FFMA", dst=10, src=(10, 20))
        builder.emit("BAR.SYNC")
    builder.emit("EXIT")
    gpu = ws.gpu("h100-pcie").replace(num_sms=6, barrier_latency=latency)
    assert of_simulation(builder.build(), gpu) == pytest.approx(1, abs=0.1)


def test_loads_do_not_wait_for_an_atomic_that_nobody_reads():
    builder = ws.patterns.KernelBuilder("unread", grid=28, block=32)
    for number in range(8):
        builder.emit("LDG.E", dst=20, src=2, address=(1 << 32) + 4 * builder.thread)
        builder.emit("IADD3", dst=21, src=(20, 7))
        where = 0x100000 + (number << 20) + 4 * builder.thread
        builder.emit("ATOMG.E.ADD", dst=100 + number, src=(80, 90), address=where)
    builder.emit("EXIT")
    assert of_simulation(builder.build(), ws.gpu("h100-pcie")) == pytest.approx(1, abs=0.05)
