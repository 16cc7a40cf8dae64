"""What memory instructions, stores and atomics take: fields, and notes where there is none.

A measurement that makes no sense, or hides behind something slower, becomes a note. The base's value then
stays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from warpstack.calibration.fitting import Estimate, curves, medians, slope
from warpstack.calibration.measurements import Measurements
from warpstack.hardware.description import Gpu

__all__ = ["memory_rates", "notes_on_memory", "wait_for_stores"]

_WARP = 32
#: Loads of one iteration of the kernels `loads` and `shared_loads`.
_AT_ONCE = 32
#: How far a number of cycles, turns or latencies may be from a whole one.
_OFF = 0.3
#: How far a measured rate may be from a whole one, as a share of it.
_OFF_RATE = 0.15
#: A time is longer than another one if it is at least this many times as long.
_LONGER = 1.15
#: Round trips to L2 by which a wait for one lengthens a time, at least and at most.
_WAIT = (0.5, 3.0)
#: What a place or a kernel loses to stores for which it does not wait, in round trips to L2.
_NO_WAIT = 0.3
#: L2 keeps a footprint if a pass takes at most this many times what smaller ones let expect.
_KEPT = 1.1
#: Code is slower if an instruction takes this many times as long as in the shortest.
_SLOWER = 1.1


@dataclass(frozen=True)
class _Card:
    """A run, and what is known of its card: measured, or else the base's."""

    run: Measurements
    base: Gpu
    found: Mapping[str, Estimate]

    def number(self, field: str) -> float:
        known = self.found[field].value if field in self.found else getattr(self.base, field)
        return float(known)

    def word(self, field: str) -> str:
        return str(self.found[field].value if field in self.found else getattr(self.base, field))

    def curves(self, key: str) -> dict[tuple[int, ...], dict[int, float]]:
        return curves(medians(self.run.samples.get(key, ())))

    def slope(self, key: str) -> float:
        """Return the slope over the only parameter, NaN where it was not measured."""
        return slope(self.curves(key).get((), {}))

    def slice_cycles(self, nanoseconds: float) -> float:
        """Return the times of a request that all slices of L2 together have in a time."""
        clock = self.base.l2_clock_ghz or self.number("clock_ghz")
        return nanoseconds * clock * self.number("l2_slices") / self.base.l2_slice_request_cycles


def memory_rates(
    run: Measurements, base: Gpu, found: Mapping[str, Estimate]
) -> dict[str, Estimate]:
    """Return what a run says of the rates of memory instructions, by field.

    Parameters
    ----------
    run
        The run.
    base
        It tells what is not measured: the slices of L2.
    found
        What else was measured: the clock, latencies.
    """
    return {field: got for field, got in _all(run, base, found) if isinstance(got, Estimate)}


def notes_on_memory(run: Measurements, base: Gpu, found: Mapping[str, Estimate]) -> list[str]:
    """Return what a run says of memory instructions and code that no field has, as sentences."""
    card = _Card(run, base, found)
    failed = [f"{field}: {got}" for field, got in _all(run, base, found) if isinstance(got, str)]
    return [*_one_word(card), *_kept(card), *_behind_stores(card), *_code(card), *failed]


def _all(
    run: Measurements, base: Gpu, found: Mapping[str, Estimate]
) -> Iterator[tuple[str, Estimate | str]]:
    """Yield each field with its value, or with why the base's stays."""
    card = _Card(run, base, found)
    yield from _load_store_unit(card)
    yield from _ends_of_blocks(card)
    yield from _partial_writes(card)
    yield from _atomics(card)


def _cannot(why: str) -> str:
    return f"the base's value stays: {why}"


# --- the load-store unit ------------------------------------------------------------------------


def _cycles_per_load(card: _Card, key: str) -> dict[int, float]:
    """Return the cycles that one more load of a warp takes the unit, by lines or passes.

    That is the slope over iterations, and of this over the warps: what the last warps of a block
    wait for, when the others are done, is the same for more of them.
    """
    by_kind: dict[int, dict[int, float]] = {}
    for (kind, warps), curve in card.curves(key).items():
        by_kind.setdefault(kind, {})[warps] = slope(curve)
    loads = {kind: slope(by_warps) / _AT_ONCE for kind, by_warps in by_kind.items()}
    return {kind: cycles for kind, cycles in loads.items() if not math.isnan(cycles)}


def _whole(cycles: float, of: str) -> int | str:
    """Return a whole number of cycles, at least 1, or why it is none."""
    near = max(round(cycles), 1)
    if not abs(cycles - near) <= _OFF:
        return _cannot(f"{cycles:.3g} cycles per {of} are no whole number")
    return near


def _load_store_unit(card: _Card) -> Iterator[tuple[str, Estimate | str]]:
    by_lines = _cycles_per_load(card, "loads.global")
    if by_lines and card.word("l1_global_loads") == "bypassed":
        why = _cannot("loads do not go through L1")
        yield from (("lsu_interval", why), ("l1_tags_per_cycle", why))
        by_lines = {}
    interval = 1.0
    if 1 in by_lines:
        cycles = _whole(by_lines[1], "load")
        how = f"loads of a line each that L1 has, of many warps: {by_lines[1]:.3g} cycles each"
        yield "lsu_interval", cycles if isinstance(cycles, str) else Estimate(cycles, how)
        interval = max(by_lines[1], 1.0)
    # Where the tags take longer than what every instruction takes.
    tags = {lines: cycles for lines, cycles in by_lines.items() if lines > 1}
    seen = {lines: cycles for lines, cycles in tags.items() if cycles > _LONGER * interval}
    if tags:
        yield "l1_tags_per_cycle", _tags(card, seen, max(tags))
    by_passes = _cycles_per_load(card, "loads.shared")
    each = slope({passes: cycles for passes, cycles in by_passes.items() if passes > 1})
    if not math.isnan(each):
        taken = _whole(each, "pass")
        how = f"loads of shared memory, 2 to {max(by_passes)} lanes per bank: {each:.3g} cycles per pass"
        yield (
            "shared_wavefront_cycles",
            taken if isinstance(taken, str) else Estimate(taken, how),
        )


def _tags(card: _Card, seen: Mapping[int, float], most: int) -> Estimate | str:
    """Return the lines that are looked up per cycle, from the cycles of loads by lines."""
    if not seen:
        return _cannot(f"loads of {most} lines take no longer than what each load takes")
    lines = median(lines / cycles for lines, cycles in seen.items())
    near = max(round(lines), 1)
    if abs(lines - near) > _OFF_RATE * near:
        return _cannot(f"{lines:.3g} lines per cycle are no whole number")
    how = f"loads of {min(seen)} to {most} lines that L1 has: {lines:.3g} lines per cycle"
    if near == 1 and card.base.l1_tags_per_cycle == 0:
        return Estimate(0, f"{how}; then banks cost nothing more")
    return Estimate(near, how)


# --- stores -------------------------------------------------------------------------------------


def _more_with_stores(card: _Card, key: str) -> float:
    """Return the round trips to L2 by which stores lengthen a time; NaN if it was not measured."""
    by_stores = card.curves(key)
    with_them, without = (slope(by_stores.get((stores,), {})) for stores in (1, 0))
    return (with_them - without) * card.number("clock_ghz") / card.number("l2_latency")


def _trips(number: float) -> str:
    return f"{round(number, 2) + 0.0:g} round trips to L2"


def _ends_of_blocks(card: _Card) -> Iterator[tuple[str, Estimate | str]]:
    least, most = _WAIT
    is_awaited = card.word("store_acknowledgement") == "awaited"
    trips = _more_with_stores(card, "turnover.waves")
    if not math.isnan(trips):
        how = f"blocks that end with a store give their place away {_trips(trips)} later"
        field = "store_acknowledgement"
        if abs(trips) <= _NO_WAIT:
            is_awaited = False
            yield field, Estimate("none", how)
        elif least <= trips <= most:
            is_awaited = True
            yield field, Estimate("awaited", how)
        else:
            yield field, _cannot(how)
    trips = _more_with_stores(card, "turnover.launches")
    if math.isnan(trips):
        return
    how = f"kernels that end with a store take {_trips(trips)} longer"
    if is_awaited:
        yield "kernel_end", _cannot("blocks wait for their stores, so that kernels need not")
    elif least <= trips <= most:
        yield "kernel_end", Estimate("last_acknowledgement", how)
    elif abs(trips) <= _NO_WAIT:
        # The others cannot be told apart by one store.
        known = card.base.kernel_end
        yield (
            "kernel_end",
            Estimate("last_store" if known == "last_acknowledgement" else known, how),
        )
    else:
        yield "kernel_end", _cannot(how)


def wait_for_stores(run: Measurements, base: Gpu, found: Mapping[str, Estimate]) -> float:
    """Return the nanoseconds that a place of a block waits for the block's stores."""
    card = _Card(run, base, found)
    trips = _more_with_stores(card, "turnover.waves")
    if not _WAIT[0] <= trips <= _WAIT[1]:
        return 0.0
    return trips * card.number("l2_latency") / card.number("clock_ghz")


def _partial_writes(card: _Card) -> Iterator[tuple[str, Estimate | str]]:
    whole, partial = (card.slice_cycles(card.slope(f"stores.{of}")) for of in ("whole", "partial"))
    if math.isnan(whole) or math.isnan(partial):
        return
    field = "l2_partial_write_turns"
    seen = (
        f"a sector that is written as a whole takes {whole:.3g} times of a request of all slices, one "
        f"that is written in part {partial:.3g}"
    )
    if not (whole > 0 and partial > 0):
        yield field, _cannot("times do not grow with the stores")
    elif partial >= _LONGER * whole:
        # It is L2 that takes longer: a request and these turns.
        yield field, Estimate(round(max(partial - 1, 0.0), 2), seen)
    elif whole <= 1 + _OFF:
        yield field, Estimate(0.0, seen)
    else:
        yield field, _cannot(f"{seen}, so that up to {partial - 1:.3g} turns cannot be seen")


# --- atomics ------------------------------------------------------------------------------------


def _atomics(card: _Card) -> Iterator[tuple[str, Estimate | str]]:
    by_lanes = {
        lanes: card.slice_cycles(slope(curve))
        for (lanes,), curve in card.curves("reductions.lines").items()
    }
    by_lanes = {lanes: turns for lanes, turns in sorted(by_lanes.items()) if turns > 0}
    wait = _atomic_wait(card)
    if by_lanes:
        waits = isinstance(wait, Estimate) and wait.value == "until_done"
        yield "l2_atomic_lane_turns", _lane_turns(card, by_lanes, waits)
    if wait is not None:
        yield "atomic_wait", wait


def _atomic_wait(card: _Card) -> Estimate | str | None:
    """Return whether a warp goes on behind an atomic; None where it was not measured."""
    beside = {length: slope(curve) for (length,), curve in card.curves("atomic.beside").items()}
    each = slope(beside)
    if math.isnan(each):
        return None
    latency = max(card.number("fp32_latency"), 1.0)
    share = each / latency
    how = f"an instruction that does not need an atomic's result lengthens the wait by {each:.3g} cycles"
    if beside[min(beside)] < _LONGER * max(beside) * latency:
        return _cannot("the instructions beside an atomic take longer than it")
    if share <= _OFF:
        return Estimate("for_data", how)
    if abs(share - 1) <= _OFF:
        return Estimate("until_done", how)
    return _cannot(how)


def _word_turns(card: _Card) -> float:
    """Return the times of a request that a lane takes where all lanes use one word, or NaN."""
    return card.slice_cycles(card.slope("reductions.word")) / card.number("l2_slices")


def _lane_turns(card: _Card, by_lanes: Mapping[int, float], waits: bool) -> Estimate | str:
    """Return the turns of a lane, from the times of a request by its lanes.

    Warps that wait for each atomic (`waits`) may be slower than L2.
    """
    most = max(by_lanes)
    each = by_lanes[most] / most
    stores = card.slice_cycles(slope(card.curves("reductions.stores").get((most,), {})))
    seen = f"requests of {most} lanes take {by_lanes[most]:.3g} times of one, stores {stores:.3g}"
    if math.isnan(stores):
        return _cannot("stores to the same words were not measured")
    if by_lanes[most] >= _LONGER * stores and not waits:
        return Estimate(float(f"{each:.3g}"), seen)
    # What brings requests to L2 is slower than L2, except where all of them are for one slice.
    word = _word_turns(card)
    if word * _WARP <= 1 + _OFF:
        return Estimate(0.0, f"{seen}, and all lanes of a warp in one word no longer")
    if word <= _LONGER * each:
        return Estimate(float(f"{word:.3g}"), f"{seen}; in one word {word:.3g} per lane")
    return _cannot(f"{seen}, so that up to {each:.3g} turns of a lane cannot be seen")


# --- notes --------------------------------------------------------------------------------------


def _one_word(card: _Card) -> Iterator[str]:
    cycles = card.slope("reductions.word") * card.number("clock_ghz")
    if cycles > 0:
        yield f"atomics of one word: {1 / cycles:.3g} lanes per cycle"


def _kept(card: _Card) -> Iterator[str]:
    """Yield which footprints L2 keeps from one launch to the next."""
    passes = {footprint: slope(c) for (footprint,), c in card.curves("stream.curve").items()}
    size = card.run.properties["device.l2_size"]
    small = {footprint: time for footprint, time in passes.items() if 2 * footprint <= size}
    each = slope(small)
    if not each > 0:
        return
    start = median(time - each * footprint for footprint, time in small.items())
    places = sorted(passes)
    gone = [f for f in places if passes[f] - start > _KEPT * each * f and f not in small]
    if not gone:
        yield f"L2 keeps {max(places) >> 10} of {size >> 10} KiB and more from one launch to the next"
        return
    kept = max(f for f in places if f < gone[0])
    bandwidths = ", ".join(
        f"{f / (passes[f] - start):.4g} of {f >> 10}" for f in places if f in (kept, *gone[:2])
    )
    yield (
        f"L2 keeps {kept >> 10} of {size >> 10} KiB from one launch to the next: GB/s of another reading "
        f"are {1 / each:.4g} of up to half of it, {bandwidths} KiB"
    )


def _behind_stores(card: _Card) -> Iterator[str]:
    points = card.curves("stream.behind")
    behind_reads, behind_stores = points.get((0,), {}), points.get((1,), {})
    for footprint in behind_reads.keys() & behind_stores.keys():
        clean, dirty = behind_reads[footprint], behind_stores[footprint]
        yield (
            f"reading {footprint >> 10} KiB takes {dirty / 1e3:.4g} us where L2 is full of written lines, "
            f"{clean / 1e3:.4g} us where it is full of read ones (between events)"
        )


def _code(card: _Card) -> Iterator[str]:
    """Yield what an instruction takes in straight code, by its length."""
    each = {
        length: slope(curve) / length
        for (length,), curve in card.curves("code.straight").items()
        if length
    }
    each = {length: cycles for length, cycles in sorted(each.items()) if cycles > 0}
    if not each:
        return
    listed = ", ".join(f"{length} {cycles:.3g}" for length, cycles in each.items())
    text = f"cycles per instruction of straight code, by its length: {listed}"
    shortest = each[min(each)]
    for low, high in itertools.pairwise(each):
        if each[high] > _SLOWER * shortest:
            text += f"; instruction caches hold {low} of them, and not {high}"
            break
    yield text
