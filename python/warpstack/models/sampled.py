"""Predictions from caches of which a sample of the SMs was simulated, with what that leaves uncertain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from warpstack.hardware.description import Gpu
from warpstack.memory.caches import MemoryProfile, MemorySystem
from warpstack.models.pipeline import Pipeline

if TYPE_CHECKING:
    from warpstack.interval.profile import IntervalProfile

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
#: Evaluates a model of that name, as `warpstack.models.evaluate`.
Evaluate = Callable[["IntervalProfile", Gpu, str], P]


def sampled_predictions(
    pipeline: Pipeline,
    gpu: Gpu,
    models: Sequence[str],
    sampling: Sampling,
    evaluate: Evaluate[P],
) -> Iterator[tuple[MemoryProfile, list[tuple[P, float, float]]]]:
    """Yield for each kernel what its caches did, and per model the prediction and bounds of its IPC.

    With ``auto`` the sample grows to what makes the interval of each model's IPC narrow enough, or to
    all SMs. Later launches of a kernel begin with the share that the one before needed.
    """
    options = pipeline.options
    system = MemorySystem(gpu, access_order=options.access_order)
    needed: dict[str, float] = {}
    for number, kernel in enumerate(pipeline.kernels):
        observed = pipeline.warp(number) if options.observes else None
        if options.flush_l2:
            system.flush_l2()
        share = needed.get(kernel.name, FIRST_SHARE) if isinstance(sampling, str) else sampling
        while True:
            memory = system.run(kernel, observe=observed, sample_sms=share)
            found = _with_bounds(pipeline, number, gpu, memory, models, evaluate)
            widest = max((high - low) / (2 * one.ipc) for one, low, high in found)
            if widest <= TOLERANCE or sampling != "auto" or not system.undo_sampled():
                break
            # Intervals become narrower as the root of the sample grows.
            share = max(2 * share, share * (widest / TOLERANCE) ** 2)
            share = share if share <= MOST_SHARE else 1
        needed[kernel.name] = share
        yield memory, found


def _with_bounds(
    pipeline: Pipeline,
    number: int,
    gpu: Gpu,
    memory: MemoryProfile,
    models: Sequence[str],
    evaluate: Evaluate[P],
) -> list[tuple[P, float, float]]:
    """Return a kernel's predictions with bounds of their IPC: an interval of 95 % confidence."""
    profile = pipeline.interval(number, gpu, memory)
    predictions = [evaluate(profile, gpu, model) for model in models]
    if not memory.sampled_sms:
        return [(one, one.ipc, one.ipc) for one in predictions]
    ends = []
    for sign in (1.0, -1.0):
        bound = MemoryProfile(memory._core.bound(sign), memory.kernel, gpu, memory.access_order)
        other = pipeline.interval(number, gpu, bound)
        ends.append([evaluate(other, gpu, model).ipc for model in models])
    return [
        (
            one,
            min(one.ipc, *both) * (1 - FOLLOWING_ERROR),
            max(one.ipc, *both) * (1 + FOLLOWING_ERROR),
        )
        for one, *both in zip(predictions, *ends, strict=True)
    ]
