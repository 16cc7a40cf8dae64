"""Two changes of a GPU together, where neither gains anything alone: resources that are equally busy.

Pairs cost a model's equations alone. No cache is simulated for one, and at most one of its changes needs
intervals of its own, which are those of that change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from warpstack.hardware.description import Gpu
from warpstack.hardware.stages import values_of
from warpstack.interval.profile import INTERVAL_FIELDS
from warpstack.models.pipeline import Pipeline
from warpstack.models.reasons.resources import CHANGES, LEAST_OF_PAIR, Pair, pair_gpu

__all__ = ["MODEL", "Pairs", "best_pair", "best_pair_of", "interval_values"]

#: Whose equations are tried: those of a network, in which every resource has its capacity.
MODEL = "closed_network"

_Many = Callable[[Any, Sequence[Gpu], str], Iterable[float]]


def interval_values(gpu: Gpu) -> tuple[Any, ...]:
    """Return what intervals and waves of a launch are made of, beside what its caches do."""
    return (*values_of(gpu, INTERVAL_FIELDS), gpu.num_sms)


class _Group(NamedTuple):
    """Pairs with the same intervals."""

    names: list[Pair]
    gpus: list[Gpu]


class Pairs:
    """The pairs of changes of a GPU, and what launches take with each.

    Parameters
    ----------
    gpu
        The GPU as it is.
    changed
        The GPU with each change alone, by name.
    many
        The cycles that a model says of one profile on GPUs that differ only in what models read.
    """

    def __init__(self, gpu: Gpu, changed: Mapping[str, Gpu], many: _Many) -> None:
        self._many = many
        self._own = interval_values(gpu)
        self._groups: dict[tuple[Any, ...], _Group] = {}
        names = [name for name in changed if not CHANGES[name].moves_caches]
        for pair in combinations(names, 2):
            one = pair_gpu(gpu, changed, pair)
            values = self._own if one is None else interval_values(one)
            alone = [interval_values(changed[name]) for name in pair]
            if one is not None and values in alone and self._own in alone:
                group = self._groups.setdefault(values, _Group([], []))
                group.names.append(pair)
                group.gpus.append(one)

    def cycles(
        self, profiles_on: Callable[[tuple[Any, ...], Gpu], Sequence[Any]]
    ) -> dict[Pair, float]:
        """Return the cycles of launches together by pair.

        `profiles_on(values, gpu)` are their profiles on GPUs with these `interval_values`, of which one is
        given.
        """
        found: dict[Pair, float] = {}
        for values, (names, gpus) in self._groups.items():
            profiles = profiles_on(values, gpus[0])
            each = [list(map(float, self._many(one, gpus, MODEL))) for one in profiles]
            found.update(zip(names, map(math.fsum, zip(*each, strict=True)), strict=True))
        return found


def best_pair_of(
    pipeline: Pipeline,
    gpu: Gpu,
    changed: Mapping[str, Gpu],
    cycles: Mapping[str, float],
    many: _Many,
    places: Collection[int] | None = None,
) -> tuple[Pair, Gpu] | None:
    """Return the pair of changes that launches together gain most from, and the GPU with it.

    Parameters
    ----------
    pipeline
        The stages of the application.
    gpu, changed, many
        As for `Pairs`.
    cycles
        Of the launches together: of the GPU as it is by an empty name, and by change.
    places
        The launches that count; by default all.

    Returns
    -------
    tuple or None
        None as for `best_pair`.
    """
    alone = dict(cycles)
    base = alone.pop("")
    if base >= LEAST_OF_PAIR * min([base, *alone.values()]):
        return None

    def profiles_on(_: tuple[Any, ...], one: Gpu) -> Sequence[Any]:
        profiles = pipeline.profiles(one, caches_of=gpu)
        return profiles if places is None else [profiles[place] for place in places]

    best = best_pair(base, alone, Pairs(gpu, changed, many).cycles(profiles_on))
    if best is None:
        return None
    with_both = pair_gpu(gpu, changed, best[0])
    assert with_both is not None
    return best[0], with_both


def best_pair(
    base: float, alone: Mapping[str, float], pairs: Mapping[Pair, float]
) -> tuple[Pair, float] | None:
    """Return the pair of changes that gains most, and its speed-up.

    Parameters
    ----------
    base
        Cycles on the GPU as it is.
    alone
        Cycles by change.
    pairs
        Cycles by pair.

    Returns
    -------
    tuple or None
        None where a change alone gains enough, or no pair does, or saves more than its changes apart.
    """
    if not pairs or base >= LEAST_OF_PAIR * min([base, *alone.values()]):
        return None
    pair = min(pairs, key=lambda one: pairs[one])  # of equal ones the first
    apart = math.fsum(base - alone[name] for name in pair)
    if base < LEAST_OF_PAIR * pairs[pair] or base - pairs[pair] <= max(apart, 0):
        return None
    return pair, base / pairs[pair]
