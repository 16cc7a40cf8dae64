"""Predictions from caches of which a sample of the SMs was simulated, with what that leaves uncertain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from warpstack.hardware.description import Gpu
from warpstack.memory.caches import MemoryProfile, MemorySystem
from warpstack.models import interval_simulation
from warpstack.models.pipeline import Found, Needs, Pipeline

if TYPE_CHECKING:
    from warpstack.models.interval_simulation import SimulatedLaunch

__all__ = ["Sampling", "sampled_predictions"]

#: The first sample of `auto`, and the half width of the interval of IPC above which it grows.
FIRST_SHARE = 1 / 8
TOLERANCE = 0.01
#: A second sample of more SMs than this would hardly take less time than all of them.
MOST_SHARE = 0.3
#: Share of the IPC that may be wrong because followers do not wait for their own data.
FOLLOWING_ERROR = 0.0025


class _WithIpc(Protocol):
    @property
    def ipc(self) -> float: ...


#: A prediction.
P = TypeVar("P", bound=_WithIpc)
#: A share of the SMs, or `auto`.
Sampling = float | str
#: Evaluates a model of that name.
Evaluate = Callable[[Found, Gpu, str], P]


def sampled_predictions(
    pipeline: Pipeline,
    gpu: Gpu,
    models: Sequence[str],
    sampling: Sampling,
    evaluate: Evaluate[P],
    needs: Needs,
    see: Callable[[int, Found, list[P]], None] | None = None,
) -> Iterator[tuple[int, list[tuple[P, float, float]]]]:
    """Yield for each kernel how many SMs were simulated (0: all), and predictions with bounds of IPC.

    Interval simulation always has all of them.
    With ``auto`` the sample grows to what makes the interval of each model's IPC narrow enough, or to
    all SMs. Later launches of a kernel begin with the share that the one before needed.
    `see` is told the number of each kernel, what was found in the end, and the predictions.
    """
    options = pipeline.options
    launches: Iterable[SimulatedLaunch | None] = (
        pipeline.simulated(gpu) if needs.simulation else [None] * len(pipeline.kernels)
    )
    if not needs.profiles:
        for number, (kernel, simulated) in enumerate(zip(pipeline.kernels, launches, strict=True)):
            alone = Found(kernel, simulated=simulated)
            one_each = [evaluate(alone, gpu, model) for model in models]
            if see is not None:
                see(number, alone, one_each)
            yield 0, [(one, one.ipc, one.ipc) for one in one_each]
        return
    system = MemorySystem(gpu, access_order=options.access_order, initial_l2=options.written_share)
    needed: dict[str, float] = {}
    for number, (kernel, simulated) in enumerate(zip(pipeline.kernels, launches, strict=True)):
        observed = pipeline.warp(number) if options.observes else None
        if options.flush_l2:
            system.flush_l2()
        share = needed.get(kernel.name, FIRST_SHARE) if isinstance(sampling, str) else sampling
        while True:
            memory = system.run(kernel, observe=observed, sample_sms=share)
            of_sample = Found(kernel, memory, pipeline.interval(number, gpu, memory), simulated)
            found = _with_bounds(pipeline, number, gpu, of_sample, models, evaluate)
            widest = max((high - low) / (2 * one.ipc) for one, low, high in found)
            if widest <= TOLERANCE or sampling != "auto" or not system.undo_sampled():
                break
            # Intervals become narrower as the root of the sample grows.
            share = max(2 * share, share * (widest / TOLERANCE) ** 2)
            share = share if share <= MOST_SHARE else 1
        needed[kernel.name] = share
        if see is not None:
            see(number, of_sample, [one for one, *_ in found])
        yield memory.sampled_sms, found


def _with_bounds(
    pipeline: Pipeline,
    number: int,
    gpu: Gpu,
    of_sample: Found,
    models: Sequence[str],
    evaluate: Evaluate[P],
) -> list[tuple[P, float, float]]:
    """Return a kernel's predictions with bounds of their IPC: an interval of 95 % confidence."""
    memory = of_sample.memory
    assert memory is not None
    best = [evaluate(of_sample, gpu, model) for model in models]
    if not memory.sampled_sms:
        return [(one, one.ipc, one.ipc) for one in best]
    ends = []
    for sign in (1.0, -1.0):
        bound = MemoryProfile(
            memory._core.bound(sign), memory.kernel, gpu, memory.access_order, memory.initial_l2
        )
        profile = pipeline.interval(number, gpu, bound)
        found = replace(of_sample, memory=bound, profile=profile)
        ends.append([evaluate(found, gpu, model).ipc for model in models])
    return [
        (one, one.ipc, one.ipc)
        if model == interval_simulation.NAME
        else (
            one,
            min(one.ipc, *both) * (1 - FOLLOWING_ERROR),
            max(one.ipc, *both) * (1 + FOLLOWING_ERROR),
        )
        for model, one, *both in zip(models, best, *ends, strict=True)
    ]
