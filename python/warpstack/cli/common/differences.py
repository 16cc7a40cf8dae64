"""Why a model's cycles differ from the simulator's: one reason, and what was found for it.

Each reason has a test of its own on what the stages computed. If no test holds, no reason is given.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpstack import _core
from warpstack._core import SECTOR_BYTES
from warpstack.interval.profile import warp_groups
from warpstack.memory.caches import ACCESS_ORDERS
from warpstack.memory.reuse import line_stream
from warpstack.models import interval_simulation
from warpstack.models.pipeline import Pipeline
from warpstack.models.prediction import evaluate

if TYPE_CHECKING:
    from warpstack._util.options import Options
    from warpstack.cli.common.subject import Subject
    from warpstack.hardware.description import Gpu
    from warpstack.interval.profile import IntervalProfile
    from warpstack.memory.caches import MemoryProfile
    from warpstack.models.pipeline import Memo
    from warpstack.timing.simulation import SimulationResult
    from warpstack.traces.trace import KernelTrace

__all__ = ["LARGE_ERROR", "differences"]

#: An error of the cycles above this is worth a sentence.
LARGE_ERROR = 0.3
#: Misses that differ by more than this part of the fewer ones are others.
_OTHER_MISSES = 1.25
#: Part of the simulated cycles from which on a bandwidth is saturated.
_SATURATED = 0.9
#: Part of an error, or of the simulated cycles, that one thing must take to explain them.
_MOST = 0.5
#: The load of channels is uneven from this multiple of the mean channel's requests on.
_UNEVEN = 1.25
#: Warps are unequal from this multiple of the work of equal warps on.
_UNEQUAL = 2.0

#: The unit that sends a request or wavefront of an SM per cycle.
_LSU = "the load-store unit"
#: The resource if addresses are not spread over all channels.
_CHANNEL = "one channel of DRAM"
#: The fields that a model with a limit for a resource reads.
_FIELDS = {"the NoC": "noc_bandwidth_gbs", "DRAM": "dram_bandwidth_gbs", "L2": "l2_slices"}

_NO_CAUSE = (
    "no single cause is known; the order of accesses, saturation, atomics on one address and unequal "
    "warps do not explain it"
)


class Difference(NamedTuple):
    """A cause of the errors of some models for some kernels."""

    kernels: tuple[KernelTrace, ...]
    models: tuple[str, ...]
    text: str
    #: The simulated cycles of the kernels together.
    cycles: int

    def __str__(self) -> str:
        """One sentence."""
        first = ", ".join(f"{k.launch_id} {k.short_name}" for k in self.kernels[:2])
        more = f" and {len(self.kernels) - 2} more" if len(self.kernels) > 2 else ""
        return f"{first}{more}, {', '.join(self.models)}: {self.text}"


class _Kernel(NamedTuple):
    """The known facts of a kernel for which a model is wrong."""

    simulated: SimulationResult
    memory: MemoryProfile
    profile: IntervalProfile
    #: The same with the caches in the other orders.
    others: Sequence[tuple[str, MemoryProfile, IntervalProfile]]
    gpu: Gpu


def differences(
    subject: Subject,
    gpu: Gpu,
    rows: Sequence[Mapping[str, Any]],
    simulated: Sequence[SimulationResult],
    options: Options,
    memo: Memo,
) -> list[Difference]:
    """Return why cycles differ by more than `LARGE_ERROR`, by kernel and reason.

    Parameters
    ----------
    subject, gpu, options, memo
        What was predicted, and how; what the caches did is taken from the memo.
    rows
        Predictions with the column ``error``, of the kernels that are reported, one by one.
    simulated
        The simulations of these kernels in order.

    Returns
    -------
    list of Difference
        Those of most simulated cycles first. Models with the same reason are together, and so are
        kernels; those without a reason are the last.
    """
    per_kernel = len(rows) // len(subject.app)
    wrong = [
        [row for row in rows[k * per_kernel : (k + 1) * per_kernel] if _is_large(row["error"])]
        for k in range(len(subject.app))
    ]
    found: dict[tuple[tuple[str, ...], str], list[SimulationResult]] = {}
    for number, known in _known(
        subject, gpu, [bool(some) for some in wrong], simulated, options, memo
    ):
        reasons: dict[str, tuple[list[str], list[float]]] = {}
        for row in wrong[number]:
            text, cycles = _reason(row, known)
            models, predicted = reasons.setdefault(text, ([], []))
            models.append(str(row["model"]))
            predicted.extend(cycles)
        for text, (models, predicted) in reasons.items():
            filled = text.replace("RANGE", _range(predicted))
            found.setdefault((tuple(models), filled), []).append(known.simulated)
    result = [
        Difference(tuple(r.kernel for r in of), models, text, sum(r.cycles for r in of))
        for (models, text), of in found.items()
    ]
    return sorted(result, key=lambda one: (one.text == _NO_CAUSE, -one.cycles))


def _is_large(error: float) -> bool:
    return not abs(error) <= LARGE_ERROR


def _known(
    subject: Subject,
    gpu: Gpu,
    wanted: Sequence[bool],
    simulated: Sequence[SimulationResult],
    options: Options,
    memo: Memo,
) -> Iterator[tuple[int, _Kernel]]:
    """Yield what is known of the wanted ones among the kernels that are reported."""
    if not any(wanted):
        return
    pipelines = {options.access_order: Pipeline(subject.ran, options, memo=memo)}
    for order in ACCESS_ORDERS[1:]:
        if order not in pipelines:
            other = dataclasses.replace(options, access_order=order)
            pipelines[order] = Pipeline(subject.ran, other, memo=memo)
    # Kernels share L2, so that all of them go through the caches, wanted or not.
    streams = [pipeline.memory(gpu) for pipeline in pipelines.values()]
    numbers = {place: number for number, place in enumerate(subject.places)}
    for place, profiles in enumerate(zip(*streams, strict=True)):
        number = numbers.get(place, -1)
        if number < 0 or not wanted[number]:
            continue
        both = [
            (order, memory, pipeline.interval(place, gpu, memory))
            for (order, pipeline), memory in zip(pipelines.items(), profiles, strict=True)
        ]
        (_, memory, profile), *others = both
        yield number, _Kernel(simulated[number], memory, profile, others, gpu)


def _reason(row: Mapping[str, Any], known: _Kernel) -> tuple[str, list[float]]:
    """Return the most probable reason, and the cycles that take the place of ``RANGE`` in it.

    What is wrong before the model comes first, its misses; then a limit that is lower than the
    prediction; then what is only likely.
    """
    model, simulated = str(row["model"]), known.simulated.cycles
    kernel = known.simulated.kernel
    if kernel.num_missing_blocks:
        return (
            f"{kernel.num_missing_blocks:,} of {kernel.num_blocks:,} thread blocks were not traced; the "
            "simulator does not run them"
        ), []
    of_order = _order(model, row["cycles"], known)
    if of_order is not None:
        return of_order
    too_fast = row["cycles"] < simulated
    for resource, busy in _busy(known).items():
        if busy <= _SATURATED:
            break
        what = f"saturation: {resource} is busy for {100 * busy:.0f} % of the simulated cycles"
        if too_fast and _is_built_in(model) and row["cycles"] < busy * simulated:
            if _knows(model, resource):
                return f"{what}, longer than the queueing delay of the model", []
            return f"{what}, a limit that is not in the model", []
        # In a network, waiting for MSHRs is a part of waiting and is not added to it.
        adds = _is_built_in(model) and not _core.reads_phases(model)
        waiting = row["cpi_mshr"] / row["cpi"] * row["cycles"]
        if not too_fast and adds and waiting >= _MOST * (row["cycles"] - simulated):
            return f"{what}, and on top of that come the model's round trips of misses (mshr)", []
    if too_fast and _is_built_in(model):
        busy = _hottest_atomics(known)
        if busy > _MOST:
            return (
                "atomics on one address: its slice of L2 serves them for "
                f"{100 * min(busy, 1):.0f} % of the simulated cycles, and in the model all slices "
                "have the same load"
            ), []
        unequal = _inequality(known)
        if not _core.reads_phases(model) and unequal > _UNEQUAL:
            return (
                f"unequal warps: the SM that ends last runs about {unequal:.2g} times the instructions, one "
                "after the other, that it would run if all warps were equal, as they are in the model"
            ), []
    return _NO_CAUSE, []


def _order(model: str, cycles: float, known: _Kernel) -> tuple[str, list[float]] | None:
    """Return how another order of accesses explains an error, None if none does.

    It does where its misses are others and nearer to the simulated ones, and those of this order err
    in the direction of the cycles.
    """
    if model == interval_simulation.NAME:  # it has its own
        return None
    simulated, own = _misses(known.simulated.totals), _misses(known.memory.totals)
    too_slow = cycles > known.simulated.cycles
    nearest, found = math.inf, None
    for order, memory, profile in known.others:
        misses = _misses(memory.totals)
        better = [
            level
            for level in own
            if _ratio(own[level], misses[level]) > _OTHER_MISSES
            and _ratio(misses[level], simulated[level]) < _ratio(own[level], simulated[level])
            and (own[level] > simulated[level]) == too_slow
        ]
        distance = sum(math.log(_ratio(misses[level], simulated[level])) for level in own)
        if not better or distance >= nearest:
            continue
        counts = " and ".join(
            f"{level} {misses[level]:,} times instead of {own[level]:,} (simulated: {simulated[level]:,})"
            for level in better
        )
        nearest = distance
        found = (
            (
                f"the order of accesses: with --access-order {order}, loads miss {counts}, and the "
                "prediction is RANGE cycles"
            ),
            [evaluate(profile, known.gpu, model).cycles],
        )
    return found


def _misses(totals: Mapping[str, int]) -> dict[str, int]:
    return {
        level.upper(): totals[f"{level}_read_requests"] - totals[f"{level}_read_request_hits"]
        for level in ("l1", "l2")
    }


def _ratio(one: float, other: float) -> float:
    """Return the larger one over the smaller one; none counts like one."""
    return max(one, other, 1) / max(min(one, other), 1)


def _busy(known: _Kernel) -> dict[str, float]:
    """Return the part of the simulated cycles for which each bandwidth is busy, the busiest first."""
    gpu, totals, table = known.gpu, known.simulated.totals, known.memory.per_pc
    cycles = known.simulated.cycles
    per_slice = cycles * gpu.l2_slices * (gpu.l2_clock_ghz or gpu.clock_ghz) / gpu.clock_ghz
    noc = max(totals["noc_request_bytes"], totals["noc_reply_bytes"])
    dram = SECTOR_BYTES * (totals["dram_read_sectors"] + totals["dram_write_sectors"])
    units = cycles * known.simulated.active_sms
    parts = {
        _LSU: (table["requests"].sum() + table["shared_wavefronts"].sum()) / units,
        "the NoC": noc * gpu.clock_ghz / (gpu.noc_bandwidth_gbs * cycles),
        "DRAM": dram * gpu.clock_ghz / (gpu.dram_bandwidth_gbs * cycles),
        "L2": totals["noc_request_packets"] * gpu.l2_slice_request_cycles / per_slice,
    }
    requests = np.array(known.memory._core.slice_turns)
    if requests.sum() > 0:
        # The part of the requests that misses is taken to be the same in every channel.
        channels = requests.reshape(gpu.dram_channels or gpu.l2_slices, -1).sum(axis=1)
        if (uneven := channels.max() / channels.mean()) > _UNEVEN:
            parts[_CHANNEL] = uneven * parts["DRAM"]
    # Dirty sectors of stores go to DRAM after the last cycle.
    return {name: min(parts[name], 1.0) for name in sorted(parts, key=lambda name: -parts[name])}


def _knows(model: str, resource: str) -> bool:
    """Return whether a model of the core has a limit for a resource."""
    if resource == _CHANNEL:
        return False
    if resource == _LSU:
        return bool(_core.reads_phases(model))
    return _FIELDS[resource] in _core.model_fields(model)


def _is_built_in(model: str) -> bool:
    return model in _core.model_names()


def _inequality(known: _Kernel) -> float:
    """Return the instructions one after the other on the SM that ends last, over those of equal warps."""
    kernel, profile = known.simulated.kernel, known.profile
    one_after_the_other = profile.phases(known.gpu)["depth"].sum()
    warps = warp_groups(kernel)
    mean = (warps["instructions"] * warps["count"]).sum() / warps["count"].sum()
    return float(
        one_after_the_other / (mean * sum(wave.count for wave in profile.waves(known.gpu)))
    )


def _hottest_atomics(known: _Kernel) -> float:
    """Return the part of the simulated cycles for which one slice of L2 serves atomics on one sector."""
    kernel, gpu = known.simulated.kernel, known.gpu
    table = known.memory.per_pc
    each = gpu.l2_slice_request_cycles * gpu.clock_ghz / (gpu.l2_clock_ghz or gpu.clock_ghz)
    if gpu.atomic_requests == "per_lane":
        each *= kernel.num_thread_instructions / kernel.num_instructions
    # All atomics together come first: finding the hottest sector takes longer.
    atomics = table.loc[table["kind"].isin(["atomic", "reduction"]), "l2_requests"].sum()
    if atomics * each <= _MOST * known.simulated.cycles:
        return 0.0
    (stream,) = line_stream(kernel, gpu, level="l2", line_bytes=32)
    sectors = stream.loc[stream["kind"] == "atomic", "line"]
    return float(sectors.value_counts().max() * each / known.simulated.cycles)


def _range(cycles: Sequence[float]) -> str:
    if not cycles:
        return ""
    low, high = f"{min(cycles):,.0f}", f"{max(cycles):,.0f}"
    return low if low == high else f"{low} to {high}"
