"""Predictions from caches of which a sample of the SMs was simulated, with what that leaves uncertain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu
from warpstack.memory.caches import MemoryProfile, MemorySystem, check_share
from warpstack.models.pipeline import Pipeline

if TYPE_CHECKING:
    from warpstack.interval.profile import IntervalProfile
    from warpstack.models.prediction import Prediction

__all__ = ["Sampling", "as_sampling", "sampled_predictions"]

#: The first sample of `auto`, and the half width of the interval of IPC above which it grows.
FIRST_SHARE = 1 / 8
TOLERANCE = 0.01
#: More SMs than this are simulated as fast when all are.
MOST_SHARE = 1 / 2

#: A share of the SMs, or `auto`.
Sampling = float | str
#: Evaluates a model of that name, as `warpstack.models.evaluate`.
Evaluate = Callable[["IntervalProfile", Gpu, str], "Prediction"]


def as_sampling(given: Sampling) -> Sampling:
    """Return a share of the SMs to simulate, or ``auto``.

    Raises
    ------
    InputError
        If it is neither.
    """
    if given == "auto":
        return given
    if isinstance(given, (str, bool)):
        raise InputError(
            f"sampling = {shown(given)} is not a share of the SMs; give a number above 0, at most 1 "
            "(all), or auto"
        )
    check_share(given)
    return float(given)


def sampled_predictions(
    pipeline: Pipeline,
    gpu: Gpu,
    models: Sequence[str],
    sampling: Sampling,
    evaluate: Evaluate,
) -> Iterator[tuple[MemoryProfile, list[tuple[Prediction, float, float]]]]:
    """Yield for each kernel what its caches did, and per model the prediction and bounds of its IPC.

    With ``auto`` the sample doubles until the interval of each model's IPC is narrow enough, up to
    all SMs.
    """
    options = pipeline.options
    system = MemorySystem(gpu, access_order=options.access_order)
    for number, kernel in enumerate(pipeline.kernels):
        observed = pipeline.warp(number) if options.observes else None
        if options.flush_l2:
            system.flush_l2()
        share = FIRST_SHARE if isinstance(sampling, str) else sampling
        while True:
            memory = system.run(kernel, observe=observed, sampling=share)
            found = _with_bounds(pipeline, number, gpu, memory, models, evaluate)
            is_good = all(
                high - low <= 2 * TOLERANCE * prediction.ipc for prediction, low, high in found
            )
            if is_good or sampling != "auto" or not system.undo_sampled():
                break
            share = 2 * share if 2 * share <= MOST_SHARE else 1
        yield memory, found


def _with_bounds(
    pipeline: Pipeline,
    number: int,
    gpu: Gpu,
    memory: MemoryProfile,
    models: Sequence[str],
    evaluate: Evaluate,
) -> list[tuple[Prediction, float, float]]:
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
        (one, min(one.ipc, *both), max(one.ipc, *both))
        for one, *both in zip(predictions, *ends, strict=True)
    ]
