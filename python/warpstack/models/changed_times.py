"""The time of launches with each change of a GPU."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from warpstack._util.options import Options
from warpstack._util.progress import progress_bar
from warpstack.hardware.description import Gpu
from warpstack.hardware.profiler import times
from warpstack.models.pipeline import Found, Pipeline, Recent
from warpstack.models.prediction import cycles_on, needs_of, prediction_of
from warpstack.models.reasons.gains import launches_on
from warpstack.models.reasons.pairs import MODEL, best_pair_of
from warpstack.models.reasons.resources import (
    CHANGES,
    changed_fields,
    changed_gpus,
    pair_name,
    pair_words,
)
from warpstack.traces.trace import App

__all__ = ["ChangedTime", "changed_times"]


class ChangedTime(NamedTuple):
    """The time of launches together on a GPU with a change.

    Attributes
    ----------
    words
        The change in words.
    fields
        The new values by field of `Gpu`.
    time_us
        As the profiler reports it, in microseconds.
    speedup
        The time without the change over this one.
    """

    words: str
    fields: dict[str, Any]
    time_us: float
    speedup: float


def changed_times(
    app: App,
    gpu: Gpu,
    model: str,
    options: Options,
    places: Collection[int] | None = None,
    *,
    progress: bool = False,
) -> list[ChangedTime]:
    """Return the time of launches with each change of `CHANGES` that the GPU allows, the largest gain first.

    Where none gains anything, two together may (`warpstack.models.reasons.pairs`).

    Parameters
    ----------
    app
        The application, whose kernels share an L2 in order.
    gpu, model
        The GPU as it is, and who predicts.
    options
        How the stages work, and whose time is reported.
    places
        Which launches count; by default all.
    progress
        Show a progress bar on standard error.
    """
    # Most changes leave the caches alone: results of the GPU as it is and of the change before are kept.
    pipeline = Pipeline(app, options, memo=Recent(2))
    needs = needs_of([model])
    counted = range(len(pipeline.kernels)) if places is None else places

    cycles_with: dict[str, float] = {}

    def time_on(one: Gpu, launches: Sequence[Found], change: str = "") -> float:
        cycles = [prediction_of(launches[place], one, model).cycles for place in counted]
        cycles_with[change] = math.fsum(cycles)
        return math.fsum(times(count, one, options.profiler)["time_us"] for count in cycles)

    changes = changed_gpus(gpu)
    found = []
    with progress_bar(progress, len(changes) + 1, "trying changes", "change") as bar:
        base = time_on(gpu, pipeline.all_found(gpu, needs))
        bar.update(1)
        for change, changed in changes.items():
            time = time_on(changed, launches_on(pipeline, gpu, changed, change, needs), change)
            fields = changed_fields(gpu, changed, change)
            found.append(ChangedTime(CHANGES[change].words, fields, time, base / time))
            bar.update(1)
    if model == MODEL:
        of_pair = best_pair_of(pipeline, gpu, changes, cycles_with, cycles_on, counted)
        if of_pair is not None:
            pair, both = of_pair
            time = time_on(both, launches_on(pipeline, gpu, both, pair[0], needs), pair_name(pair))
            fields = {
                field: getattr(both, field)
                for one in pair
                for field in changed_fields(gpu, both, one)
            }
            found.append(ChangedTime(pair_words(pair), fields, time, base / time))
    return sorted(found, key=lambda one: -one.speedup)
