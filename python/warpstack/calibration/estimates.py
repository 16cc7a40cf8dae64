"""Values of fields from measurements, each with how it was found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median

from warpstack.calibration.caches import fit_l1, fit_l2
from warpstack.calibration.fitting import Bracket, Estimate, curves, medians, roundest, slope
from warpstack.calibration.measurements import CLASSES, Measurements
from warpstack.calibration.memory_rates import (
    memory_rates,
    notes_on_memory,
    wait_for_stores,
)
from warpstack.hardware.description import Gpu

__all__ = [
    "Estimate",
    "dram_bandwidth",
    "estimates",
    "l2_bandwidth",
    "latency_of",
    "observations",
    "pins",
    "rate_of",
    "schedulers_of",
]

_WARP = 32
#: A load that takes this part of an L2 hit was not served by L1.
_NOT_L1 = 0.75
#: Part of a round trip by which one line more delays a round when the MSHRs run out.
_JUMP = 0.25
#: SMs that are enough to see how blocks are dealt out.
_LISTED = 16
#: A chain of dependent instructions shows a latency if it takes at least this many intervals of the unit.
_HIDDEN = 1.05
#: A time has no cause of its own if it is at most this many times what something else explains.
_EXPLAINED = 1.5
#: A bandwidth from clock and bus that the measured one is outside of is not that of the pins.
PINS = (0.5, 1.02)


def estimates(run: Measurements, base: Gpu) -> dict[str, Estimate]:
    """Return what a run says of the fields of a GPU, by field.

    Parameters
    ----------
    run
        The run. What it did not measure, or could not, is left out.
    base
        It tells what is not measured: the schedulers of an SM.

    Raises
    ------
    InputError
        If a measurement makes no sense.
    """
    found = _properties(run)
    found.update(fit_l2(run.properties["device.l2_size"] / 1024, base))
    clock = _clock(run)
    if clock:
        found["clock_ghz"] = Estimate(
            round(clock, 4),
            "cycles per time of a chain on all SMs; the driver says "
            f"{run.properties['device.clock'] / 1e6:g}",
        )
    found.update(_chains(run, base))
    found.update(_memory_latencies(run))
    found.update(_l1(run))
    if "l1_size_kib" in found:
        found.update(fit_l1(found["l1_size_kib"], base))
    found.update(_bandwidths(run, base))
    found.update(_mshrs(run))
    found.update(_launch(run))
    if clock:
        found.update(_dispatch(run, base, clock, wait_for_stores(run, base, found)))
    found.update(memory_rates(run, base, found))
    return found


def observations(run: Measurements, base: Gpu, found: Mapping[str, Estimate]) -> list[str]:
    """Return what a run says that no field has, as sentences.

    `found` are the fields that it has.
    """
    said = []
    latency, rate = latency_of(run, "conversion"), rate_of(run, "conversion")
    if latency and rate:
        said.append(
            f"conversions (to single precision and back): {latency:.4g} cycles, one per "
            f"{schedulers_of(base) / rate:.3g} cycles and scheduler"
        )
    rates = curves(medians(run.samples.get("launch.rate", ())))
    if rates:
        said.append(f"launches one after the other: one per {slope(rates[()]) / 1e3:.3g} us")
    knee = _l2_knee(run)
    if knee is not None:
        said.append(
            f"L2 holds footprints of {knee.low >> 10} KiB, and not those of {knee.high >> 10} KiB; the "
            f"driver says {run.properties['device.l2_size'] >> 10} KiB"
        )
    said.extend(notes_on_memory(run, base, found))
    blocks = sorted(
        (sample.parameters, int(sample.value)) for sample in run.samples.get("map.block", ())
    )
    if blocks:
        listed = ", ".join(str(sm) for _, sm in blocks[:_LISTED])
        said.append(f"the first blocks of a grid run on SMs {listed}")
    return said


# --- what the driver says -----------------------------------------------------------------------


def _properties(run: Measurements) -> dict[str, Estimate]:
    values = run.properties
    said = "the driver says so"
    return {
        "compute_capability": Estimate(run.capability, said),
        "num_sms": Estimate(values["device.sms"], said),
        "warps_per_sm": Estimate(
            values["device.threads_per_sm"] // _WARP, "the driver says how many threads"
        ),
        "threads_per_sm": Estimate(values["device.threads_per_sm"], said),
        "blocks_per_sm": Estimate(values["device.blocks_per_sm"], said),
        "registers_per_sm": Estimate(values["device.registers_per_sm"], said),
        "shared_memory_kib_per_sm": Estimate(values["device.shared_per_sm"] / 1024, said),
        "shared_memory_reserved_bytes": Estimate(values["device.shared_reserved"], said),
    }


def _clock(run: Measurements) -> float:
    """Return cycles per nanosecond, 0 where it was not measured."""
    cycles, time = (
        curves(medians(run.samples.get(f"clock.{of}", ()))) for of in ("cycles", "time")
    )
    if not cycles or not time:
        return 0.0
    clock = slope(cycles[()]) / _positive(run, "clock.time", slope(time[()]), "ns per iteration")
    return _positive(run, "clock.cycles", clock, "cycles per ns")


def _positive(run: Measurements, key: str, value: float, unit: str) -> float:
    """Return a value that can only be positive, or say that it is not."""
    if not value > 0:
        got = "there is only one point" if math.isnan(value) else f"{value:.4g} {unit}"
        raise run.problem(key, f"times do not grow with the work: {got}")
    return value


# --- operations ---------------------------------------------------------------------------------


def schedulers_of(base: Gpu) -> int:
    """Return the schedulers of an SM, which are not measured."""
    return base.schedulers_per_sm or math.ceil(base.issue_width)


def _per_instruction(run: Measurements, key: str) -> dict[int, float]:
    """Return the cycles that one instruction more in every warp takes, by the number of warps.

    It is the slope over iterations of loops of two lengths, and of these over the length.
    """
    loops: dict[int, dict[int, float]] = {}
    for (warps, length), curve in curves(medians(run.samples.get(key, ()))).items():
        loops.setdefault(warps, {})[length] = slope(curve)
    return {
        warps: _positive(run, key, slope(by_length), "cycles per instruction")
        for warps, by_length in loops.items()
    }


def latency_of(run: Measurements, name: str) -> float:
    """Return the cycles of an instruction in a chain; 0 where it was not measured."""
    return _per_instruction(run, f"latency.{name}").get(1, 0.0)


def rate_of(run: Measurements, name: str) -> float:
    """Return the warp instructions per cycle of an SM; 0 where it was not measured."""
    by_warps = _per_instruction(run, f"interval.{name}")
    return max((warps / cycles for warps, cycles in by_warps.items()), default=0.0)


def _chains(run: Measurements, base: Gpu) -> Iterator[tuple[str, Estimate]]:
    schedulers = schedulers_of(base)
    for name in (*CLASSES, "shuffle", "barrier"):
        if name == "conversion":
            continue  # they have no field of their own
        cycles, rate = latency_of(run, name), rate_of(run, name) if name in CLASSES else 0.0
        interval = schedulers / rate if rate else 0.0
        # A unit that takes the next instruction later than the result is there hides the latency.
        if cycles > _HIDDEN * interval:
            how = "chain of dependent instructions of one warp"
            yield f"{name}_latency", Estimate(round(cycles, 2), how)
            yield (
                "latency_counts",
                Estimate("issue_to_issue", "as the chains of instructions count"),
            )
        if rate:
            how = f"independent instructions of many warps: {rate:.3g} per cycle of {schedulers} schedulers"
            yield f"{name}_interval", Estimate(max(round(interval), 1), how)
    rate = rate_of(run, "issue")
    if rate:
        near = min(round(rate), schedulers)
        width = float(near) if abs(rate - near) <= 0.15 * near or rate > near else round(rate, 2)
        how = f"{rate:.3g} instructions per cycle of single precision and integers in turn"
        if rate > schedulers + 0.5:
            how += f"; more than one of each of {schedulers} schedulers is counted as one"
        yield "issue_width", Estimate(width, how)
    for field, key in (
        ("shared_memory_latency", "latency.shared"),
        ("constant_latency", "latency.constant"),
    ):
        points = curves(medians(run.samples.get(key, ())))
        if points:
            cycles = _positive(run, key, slope(points[()]), "cycles per load")
            yield field, Estimate(round(cycles, 2), "chain of dependent loads of one warp")


# --- memory -------------------------------------------------------------------------------------


def _chased(run: Measurements, key: str) -> dict[int, float]:
    """Return the cycles of a load by footprint."""
    found = {}
    for (footprint,), curve in curves(medians(run.samples.get(key, ()))).items():
        found[footprint] = _positive(run, key, slope(curve), "cycles per load")
    return found


def _l2_hit(run: Measurements) -> float:
    by_footprint = _chased(run, "chase.cg")
    return median(by_footprint.values()) if by_footprint else 0.0


def _memory_latencies(run: Measurements) -> Iterator[tuple[str, Estimate]]:
    l2 = _l2_hit(run)
    if l2:
        if l2 < 1:
            raise run.problem("chase.cg", f"{l2:.4g} cycles per load: each takes some cycles")
        yield (
            "l2_latency",
            Estimate(round(l2, 1), "chain of dependent loads (ld.cg) that L2 serves"),
        )
    curve = curves(medians(run.samples.get("chase.dram", ())))
    if curve and l2:
        whole = _positive(run, "chase.dram", slope(curve[()]), "cycles per load")
        if whole <= l2:
            raise run.problem("chase.dram", f"{whole:.4g} cycles are not more than L2's {l2:.4g}")
        how = f"chain of dependent loads that L2 does not have: {whole:.4g} cycles, less an L2 hit"
        yield "dram_latency", Estimate(round(whole - l2, 1), how)


def _l1(run: Measurements) -> Iterator[tuple[str, Estimate]]:
    by_footprint = _chased(run, "chase.ca")
    l2 = _l2_hit(run)
    if not by_footprint or not l2:
        return
    smallest = min(by_footprint)
    hit = by_footprint[smallest]
    if hit > _NOT_L1 * l2:
        how = f"loads (ld.ca) take {hit:.4g} cycles where L2 takes {l2:.4g}"
        yield "l1_global_loads", Estimate("bypassed", how)
        return
    yield "l1_global_loads", Estimate("cached", f"loads (ld.ca) take {hit:.4g} cycles")
    # All hits in L1 take the same time: the median of those that fit.
    fits = [cycles for cycles in by_footprint.values() if cycles < (hit + l2) / 2]
    how = "chain of dependent loads (ld.ca) that L1 serves"
    yield "l1_latency", Estimate(round(median(fits), 2), how)
    knee = _first_beyond(by_footprint, (hit + l2) / 2)
    if knee is not None:
        how = (
            f"the latency rises between footprints of {knee.low / 1024:g} and {knee.high / 1024:g} "
            "KiB; the roundest size between"
        )
        yield (
            "l1_size_kib",
            Estimate(float(roundest(Bracket(knee.low >> 10, knee.high >> 10))), how),
        )


def _first_beyond(curve: dict[int, float], limit: float) -> Bracket | None:
    """Return between which points a curve first rises above a limit, None where it never does."""
    places = sorted(curve)
    for low, high in pairwise(places):
        if curve[high] > limit:
            return Bracket(low, high)
    return None


def l2_bandwidth(run: Measurements) -> float:
    """Return the GB/s of the fastest footprint that is read from L2, 0 where it was not measured."""
    key = "stream.passes"
    size = run.properties["device.l2_size"]
    found = [
        footprint / _positive(run, key, slope(curve), "ns per pass")
        for (footprint,), curve in curves(medians(run.samples.get(key, ()))).items()
        if footprint <= size
    ]
    return max(found, default=0.0)


def dram_bandwidth(run: Measurements) -> float:
    """Return the GB/s of what is read once and does not fit L2, 0 where it was not measured."""
    key = "stream.once"
    points = curves(medians(run.samples.get(key, ())))
    return 1 / _positive(run, key, slope(points[()]), "ns per byte") if points else 0.0


def pins(run: Measurements) -> float:
    """Return the GB/s of DRAM that the driver's clock and width say, 0 where it does not know them."""
    clock, bus = run.properties["device.memory_clock"], run.properties["device.memory_bus"]
    return clock * 2e3 * bus / 8e9


def _l2_knee(run: Measurements) -> Bracket | None:
    """Return between which footprints a second reading is no longer L2's."""
    points = curves(medians(run.samples.get("stream.again", ())))
    launch = median([sample.value for sample in run.samples.get("launch.events", ())] or [math.nan])
    l2, dram = l2_bandwidth(run), dram_bandwidth(run)
    if not points or math.isnan(launch) or l2 <= dram or not dram:
        return None
    per_byte = {size: (time - launch) / size for size, time in points[()].items() if size}
    return _first_beyond(per_byte, (1 / l2 + 1 / dram) / 2)


def _bandwidths(run: Measurements, base: Gpu) -> Iterator[tuple[str, Estimate]]:
    noc = l2_bandwidth(run)
    if noc:
        how = "all SMs read what L2 holds: the fastest footprint"
        yield "noc_bandwidth_gbs", Estimate(float(f"{noc:.4g}"), how)
    reached = dram_bandwidth(run)
    if not reached:
        return
    of_pins = pins(run)
    how = f"all SMs read once more than L2 holds: {reached:.4g} GB/s"
    if not PINS[0] * of_pins <= reached <= PINS[1] * of_pins:
        yield "dram_bandwidth_gbs", Estimate(float(f"{reached:.4g}"), how)
        yield "dram_efficiency", Estimate(1, "the bandwidth is the measured one")
        return
    says = "the driver says clock and width of the memory: its pins"
    yield "dram_bandwidth_gbs", Estimate(float(f"{of_pins:.5g}"), says)
    if not base.dram_row_bytes:  # else what lowers it is simulated
        yield "dram_efficiency", Estimate(min(round(reached / of_pins, 3), 1.0), how)


def _mshrs(run: Measurements) -> Iterator[tuple[str, Estimate]]:
    rounds = {
        lines: _positive(run, "misses", slope(curve), "cycles per round")
        for (lines,), curve in curves(medians(run.samples.get("misses", ()))).items()
    }
    if len(rounds) < 3:
        return
    places = sorted(rounds)
    # Time that one line more takes on the ways to L2 where nothing is full: few lines.
    few = [lines for lines in places if lines <= _WARP] or places[:2]
    each = max(slope({lines: rounds[lines] for lines in few}), 0.0) if len(few) > 1 else 0.0
    trip = rounds[places[0]]
    for low, high in pairwise(places):
        if rounds[high] - rounds[low] - each * (high - low) > _JUMP * trip:
            how = (
                f"{low} misses of a warp come back together, {high} in two turns; the roundest number "
                "between"
            )
            yield "l1_mshrs", Estimate(roundest(Bracket(low, high)), how)
            return


# --- launches -----------------------------------------------------------------------------------


def _launch(run: Measurements) -> Iterator[tuple[str, Estimate]]:
    samples = run.samples.get("launch.events", ())
    if samples:
        between = median(sample.value for sample in samples) / 1e3
        how = f"median of {len(samples)} empty kernels between two events"
        yield "launch_us_events", Estimate(round(between, 3), how)


def _dispatch(
    run: Measurements, base: Gpu, clock: float, wait: float
) -> Iterator[tuple[str, Estimate]]:
    """Yield what starts of blocks take; `wait`: how long a place waits for its block's stores."""
    sms = run.properties["device.sms"]
    issue = 1 / base.issue_width
    warps = curves(medians(run.samples.get("dispatch.warps", ())))
    if warps:
        cycles = slope(warps[()])
        how = "warps of one block, the last one's start after the first one's"
        if cycles <= _EXPLAINED * issue:
            cycles, how = 0.0, f"{how}: no more than the issue of an instruction takes"
        yield "warp_start_cycles", Estimate(round(cycles, 2), how)

    waves = curves(medians(run.samples.get("dispatch.waves", ())))
    blocks = medians(run.samples.get("dispatch.block", ()))
    replacement = math.nan
    for iterations in waves.keys() & blocks.keys():
        # A block ends with a store of its clocks.
        replacement = slope(waves[iterations]) - blocks[iterations] / clock - wait
    if replacement == replacement:
        how = "waves of blocks, one after the other in the same places, less the blocks themselves"
        yield "block_replacement_ns", Estimate(max(round(replacement, 1), 0.0), how)

    grids = curves(medians(run.samples.get("dispatch.grid", ())))
    if not grids:
        return
    per_block = {threads: slope(curve) * clock for (threads,), curve in grids.items()}
    threads = min(per_block, key=lambda of: per_block[of])
    cycles = _positive(run, "dispatch.grid", per_block[threads], "cycles per block")
    how = f"empty grids of growing size, {threads} threads per block: {cycles:.4g} cycles per block"
    places = sms * run.properties["device.blocks_per_sm"]
    if cycles <= _EXPLAINED * issue / sms:
        cycles, how = 0.0, f"{how}, no more than their issue takes"
    elif replacement == replacement and cycles <= 1.1 * replacement * clock / places:
        return  # the replacement of blocks explains it, so that the interval cannot be seen
    yield "block_interval_cycles", Estimate(float(f"{cycles:.4g}"), how)
