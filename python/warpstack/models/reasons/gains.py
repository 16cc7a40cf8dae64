"""The speed-up of each change of a GPU for launches and models: one definition for all who ask.

Most changes leave the caches alone, and cost the equations of a model. Those of the caches are simulated
only where they may be the best ones: where a GPU on which no access misses would gain more than the best
of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from warpstack.hardware.description import Gpu
from warpstack.models import interval_simulation
from warpstack.models.pipeline import Found, Needs, Pipeline
from warpstack.models.reasons.bounds import bounding_gpu
from warpstack.models.reasons.pairs import MODEL, Pairs, best_pair, interval_values
from warpstack.models.reasons.resources import (
    CHANGES,
    LEAST_OF_PAIR,
    Pair,
    changed_gpus,
    pair_name,
    pair_words,
)

__all__ = ["NO_BEST", "Best", "Evaluators", "Seeker", "launches_on"]

#: Speed-ups that differ by less are the same: the first change of the table is the reason.
_SAME = 1e-9
#: Changes whose caches are simulated only where another one gains something, to save time: of an L1
#: that is twice as large nearly every line has more places than of one with twice the ways, and as many
#: as in twice the L1s of twice the SMs.
_ONLY_AFTER = {"2 x L1 ways": "2 x L1 size", "2 x SMs": "2 x L1 size"}
_SOMETHING = 0.01
#: A change that gains beside what it does for caches: where these are not simulated, hits stay as they are.
_HITS_AS_BEFORE = "2 x SMs"


class Best(NamedTuple):
    """The change, or pair of changes, that a launch, by a model, gains most from.

    Attributes
    ----------
    change
        Its name: of `CHANGES`, or that of `pair_name`; empty where no change gains anything, or none was
        tried.
    gain
        Its speed-up; NaN where none was tried.
    words
        The change in words.
    """

    change: str
    gain: float
    words: str = ""


#: Of a launch for which no change was tried.
NO_BEST = Best("", float("nan"))


@dataclass(frozen=True)
class Evaluators:
    """The models, from who knows them.

    Attributes
    ----------
    one
        What a model says of a launch on a GPU: a prediction with ``cycles``.
    many
        The cycles that a model says of one profile on GPUs that differ only in what models read.
    """

    one: Callable[[Found, Gpu, str], Any]
    many: Callable[[Any, Sequence[Gpu], str], Iterable[float]]


def launches_on(
    pipeline: Pipeline, gpu: Gpu, changed: Gpu, change: str, needs: Needs
) -> list[Found]:
    """Return what models need of every launch on a GPU with one of `CHANGES`.

    A change that does not move what caches hold leaves the order of the accesses as it is.
    """
    caches_of = None if CHANGES[change].moves_caches else gpu
    return pipeline.all_found(changed, needs, caches_of=caches_of)


class Seeker:
    """The best changes of the launches of an application, one launch after the other.

    Parameters
    ----------
    pipeline
        The stages of the application.
    gpu, models
        The GPU as it is, and the models.
    evaluators
        What evaluates them.
    with_caches
        Whether to simulate changes of the caches. Where what these do is a sample, they are not: a launch has
        no best change then if one of them may be it.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        gpu: Gpu,
        models: Sequence[str],
        evaluators: Evaluators,
        *,
        with_caches: bool = True,
    ) -> None:
        self._pipeline = pipeline
        self._gpu = gpu
        # Interval simulation would run anew for every change.
        self._models = [model for model in models if model != interval_simulation.NAME]
        self._evaluators = evaluators
        self._changed = changed_gpus(gpu)
        self._intervals: dict[tuple[Any, ...], list[str]] = {}
        for name, one in self._changed.items():
            if not CHANGES[name].moves_caches:
                self._intervals.setdefault(interval_values(one), []).append(name)
        # Those on which others depend come first.
        self._with_caches = with_caches
        caches = [name for name in self._changed if CHANGES[name].moves_caches]
        self._caches = sorted(caches, key=lambda name: name in _ONLY_AFTER)
        self._pairs: Pairs | None = None  # made when they are asked for
        self._known: dict[Any, dict[str, _Found]] = {}
        self._seen: list[dict[str, _Found]] = []

    def see(self, number: int, found: Found, cycles: Mapping[str, float]) -> None:
        """Try the changes on a launch, of which the models predict these cycles on the GPU as it is."""
        if found.profile is None or found.memory is None:
            self._seen.append({})
            return
        key = (found.kernel.digest, found.memory._core.words.tobytes())
        if key not in self._known:
            self._known[key] = self._tried(number, found, cycles)
        self._seen.append(self._known[key])

    def _tried(self, number: int, found: Found, cycles: Mapping[str, float]) -> dict[str, _Found]:
        tried = {model: _Found(cycles[model]) for model in self._models}
        assert found.memory is not None
        profiles = {interval_values(self._gpu): found.profile}
        for values, names in self._intervals.items():
            gpus = [self._changed[name] for name in names]
            if values not in profiles:
                profiles[values] = self._pipeline.interval(number, gpus[0], found.memory)
            for model, one in tried.items():
                many = self._evaluators.many(profiles[values], gpus, model)
                one.cycles.update(zip(names, map(float, many), strict=True))
        of_network = tried.get(MODEL)
        if of_network is not None and of_network.base < LEAST_OF_PAIR * of_network.least:
            if self._pairs is None:
                self._pairs = Pairs(self._gpu, self._changed, self._evaluators.many)
            of_network.pairs = self._pairs.cycles(lambda values, _: [profiles[values]])
        self._bound(number, found, tried)
        return tried

    def _bound(self, number: int, found: Found, tried: Mapping[str, _Found]) -> None:
        """Add the least cycles that changes of the caches may leave, where these are few enough."""
        assert found.memory is not None
        is_first = not number or self._pipeline.options.flush_l2
        for name in self._caches:
            if name == _HITS_AS_BEFORE:
                self._keep_hits(name, number, found, tried)
            bound = bounding_gpu(name, self._gpu, found.memory, is_first=is_first)
            if bound is None:
                continue
            profile = self._pipeline.interval(number, bound, found.memory)
            for model, one in tried.items():
                at_least = self._evaluators.one(Found(found.kernel, profile=profile), bound, model)
                one.at_least[name] = (number, at_least.cycles)

    def _keep_hits(self, name: str, number: int, found: Found, tried: Mapping[str, _Found]) -> None:
        """Add the cycles that a change brings while the caches do what they did."""
        assert found.memory is not None
        changed = self._changed[name]
        profile = self._pipeline.interval(number, changed, found.memory)
        for model, one in tried.items():
            on_it = self._evaluators.one(Found(found.kernel, profile=profile), changed, model)
            one.cycles[name] = on_it.cycles

    def _simulate(self) -> None:
        """Simulate the caches of changes that may be the best ones of a launch, one change at a time."""
        for name in self._caches:
            wanted: dict[int, list[tuple[str, _Found]]] = {}
            for tried in self._known.values():
                for model, one in tried.items():
                    number, cycles = one.at_least.get(name, (-1, math.inf))
                    if cycles < one.least * (1 - _SAME) and one.may_follow(name):
                        wanted.setdefault(number, []).append((model, one))
            if not wanted:
                continue
            changed = self._changed[name]
            for number, memory in enumerate(self._pipeline.memory(changed)):
                if number in wanted:
                    profile = self._pipeline.interval(number, changed, memory)
                    found = Found(self._pipeline.kernels[number], profile=profile)
                    for model, one in wanted.pop(number):
                        cycles = self._evaluators.one(found, changed, model).cycles
                        one.cycles[name] = cycles
                if not wanted:
                    break

    def best(self) -> list[dict[str, Best]]:
        """Return the best change of each launch that was seen, by model."""
        if self._with_caches:
            self._simulate()
        return [{model: one.best() for model, one in tried.items()} for tried in self._seen]


@dataclass
class _Found:
    """Cycles of a launch by a model: on the GPU as it is, and by change."""

    base: float
    cycles: dict[str, float] = field(default_factory=dict)
    #: Number of the launch, and cycles below which the caches of a change cannot bring it.
    at_least: dict[str, tuple[int, float]] = field(default_factory=dict)
    #: Cycles by pair of changes, where these were tried.
    pairs: dict[Pair, float] = field(default_factory=dict)

    @property
    def least(self) -> float:
        """The fewest cycles of all changes that were tried, and of none."""
        return min(self.base, *self.cycles.values())

    def may_follow(self, change: str) -> bool:
        """Return whether the change that this one depends on gained something."""
        first = _ONLY_AFTER.get(change)
        return first is None or self.cycles.get(first, self.base) < self.base * (1 - _SOMETHING)

    def best(self) -> Best:
        """Return the change with the fewest cycles, the first in the table of several.

        Where none gains much, it is the pair that does.
        """
        if any(
            cycles < self.least * (1 - _SAME)
            for name, (_, cycles) in self.at_least.items()
            if name not in self.cycles and self.may_follow(name)
        ):
            return NO_BEST
        found = best_pair(self.base, self.cycles, self.pairs)
        if found is not None:
            pair, gain = found
            return Best(pair_name(pair), gain, pair_words(pair))
        chosen = Best("", 1.0)
        for name in CHANGES:
            if name in self.cycles:
                gain = self.base / self.cycles[name]
                if gain > chosen.gain * (1 + _SAME):
                    chosen = Best(name, gain, CHANGES[name].words)
        return chosen
