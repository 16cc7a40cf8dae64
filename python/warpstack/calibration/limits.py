"""What no card can do, which is refused, and what hardly one does, which becomes a note."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from statistics import median

from warpstack.calibration.bases import products
from warpstack.calibration.estimates import (
    PINS,
    Estimate,
    dram_bandwidth,
    l2_bandwidth,
    latency_of,
    pins,
    rate_of,
    schedulers_of,
)
from warpstack.calibration.measurements import CLASSES, Measurements
from warpstack.hardware.description import Gpu

__all__ = ["doubts", "refuse_impossible"]

#: A measured clock is at least and at most so many times the driver's. The lowest clocks of cards are a
#: twelfth of what the driver says, and boost exceeds it by less than a third.
_CLOCK = (1 / 50, 2.0)
#: The same for cards that are neither locked nor slowed down by heat.
_USUAL_CLOCK = (0.5, 1.4)
#: GHz where the driver does not say a clock.
_ANY_CLOCK = (0.01, 10.0)
#: DRAM gives at most so many times what the driver's clock times width is: drivers of integrated GPUs and
#: of some memories say half of the clock, or another one.
_DRAM = 4.0
#: What DRAM gives comes through L2, so that it is at most so many times what L2 gives.
_DRAM_OF_L2 = 1.25
#: Bytes per cycle that an SM gets from L2; all SMs so far get 32 to 64.
_BYTES_PER_SM = 256
#: Instructions that a scheduler issues per cycle.
_PER_SCHEDULER = 2
#: A number is doubtful if it is so many times what any described GPU has.
_TIMES = 4.0
#: What else is measured in chains of instructions.
_OTHERS = ("shuffle", "barrier")
#: Fields of chains of loads, with the key of their samples.
_LOADS = {
    "shared_memory_latency": "latency.shared",
    "constant_latency": "latency.constant",
    "l1_latency": "chase.ca",
}
#: How the names of measured times and rates end.
_TIMED = ("_latency", "_interval", "_gbs", "_us_events", "_ghz")


def refuse_impossible(run: Measurements, base: Gpu, found: Mapping[str, Estimate]) -> None:
    """Raise `InputError` for the first measurement that no card can have: line, value and limit."""
    clock = _number(found, "clock_ghz")
    if clock:
        _refuse_clock(run, clock)
    latencies = {f"latency.{name}": latency_of(run, name) for name in (*CLASSES, *_OTHERS)}
    latencies |= {key: _number(found, field) for field, key in _LOADS.items()}
    for key, cycles in latencies.items():
        if 0 < cycles < 1:
            raise run.problem(
                key, f"{cycles:.4g} cycles; what waits for the one before takes at least 1"
            )
    schedulers = schedulers_of(base)
    for name in (*CLASSES, "issue"):
        rate = rate_of(run, name)
        if rate > _PER_SCHEDULER * schedulers + 0.5:
            raise run.problem(
                f"interval.{name}",
                f"{rate:.4g} instructions per cycle are more than {_PER_SCHEDULER * schedulers}, "
                f"{_PER_SCHEDULER} of each of the {schedulers} schedulers that {base.name} has",
                "; or give a --base of the card's generation",
            )
    _refuse_bandwidths(run, clock)
    samples = run.samples.get("launch.events", ())
    if samples and not median(sample.value for sample in samples):
        raise run.problem("launch.events", "0 ns; a kernel takes some time")


def _refuse_clock(run: Measurements, clock: float) -> None:
    says = run.properties["device.clock"] / 1e6
    least, most = (limit * says for limit in _CLOCK) if says else _ANY_CLOCK
    if least <= clock <= most:
        return
    which = f"more than {most:.4g}" if clock > most else f"less than {least:.4g}"
    of = "the most and the least of any card"
    if says:
        times = f"{_CLOCK[1]:g} times" if clock > most else f"1/{1 / _CLOCK[0]:g} of"
        of = f"{times} the driver's clock (line {run.lines['device.clock']}: {says:g} GHz)"
    raise run.problem("clock.cycles", f"a clock of {clock:.4g} GHz is {which}, {of}")


def _refuse_bandwidths(run: Measurements, clock: float) -> None:
    dram, l2, says = dram_bandwidth(run), l2_bandwidth(run), pins(run)
    if says and dram > _DRAM * says:
        raise run.problem(
            "stream.once",
            f"{dram:.4g} GB/s of DRAM are more than {_DRAM * says:.4g}, {_DRAM:g} times what the driver's "
            f"clock and width of the memory are (lines {run.lines['device.memory_clock']} and "
            f"{run.lines['device.memory_bus']}: {says:.4g} GB/s)",
        )
    if l2 and dram > _DRAM_OF_L2 * l2:
        raise run.problem(
            "stream.once",
            f"{dram:.4g} GB/s of DRAM are more than {_DRAM_OF_L2:g} times the {l2:.4g} of L2, through which "
            "they come",
        )
    most = _BYTES_PER_SM * clock * run.properties["device.sms"]
    if clock and l2 > most:
        raise run.problem(
            "stream.passes",
            f"{l2:.4g} GB/s of L2 are more than {most:.4g}, {_BYTES_PER_SM} bytes per cycle of each SM",
        )


def doubts(run: Measurements, found: Mapping[str, Estimate]) -> Iterator[str]:
    """Yield what is possible and not likely, as sentences."""
    if run.samples and not any(
        first.parameters == second.parameters
        for samples in run.samples.values()
        for first, second in itertools.pairwise(samples)
    ):
        yield (
            "each point was measured once, as `calibrate quick` does: a trial, whose numbers mean little; "
            "run the program without quick"
        )
    clock, says = _number(found, "clock_ghz"), run.properties["device.clock"] / 1e6
    least, most = _USUAL_CLOCK
    if clock and says and not least * says <= clock <= most * says:
        why = "locked, or too hot" if clock < says else "the driver's is not the card's highest"
        yield f"clock_ghz: the card held {clock:.4g} GHz, and the driver says {says:.4g}: {why}"
    dram, of_pins = dram_bandwidth(run), pins(run)
    if dram and of_pins and not PINS[0] * of_pins <= dram <= PINS[1] * of_pins:
        yield (
            f"dram_bandwidth_gbs: all SMs read {dram:.4g} GB/s, and the driver's clock and width of the "
            f"memory are {of_pins:.4g}: not its pins, so that the measured one stands, with efficiency 1; "
            "give dram_bandwidth_gbs of the data sheet in its place"
        )
    for field, estimate in found.items():
        if not field.endswith(_TIMED) or isinstance(estimate.value, str):
            continue
        low, high = _described(field)
        value = float(estimate.value)
        if value > _TIMES * high > 0:
            yield f"{field}: {value:g} is more than {_TIMES:g} times what any described GPU has, {high:g}"
        elif 0 < value < low / _TIMES:
            yield (
                f"{field}: {value:g} is less than a quarter of what any described GPU has, {low:g}"
            )


def _number(found: Mapping[str, Estimate], field: str) -> float:
    """Return a measured number, 0 where there is none."""
    return float(found[field].value) if field in found else 0.0


@functools.lru_cache(maxsize=256)
def _described(field: str) -> tuple[float, float]:
    """Return the least and the most that described GPUs have of a field, but for those that have 0."""
    values = [float(value) for one in products() if (value := getattr(one, field))]
    return min(values, default=0.0), max(values, default=0.0)
