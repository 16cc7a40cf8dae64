"""What each stage reads of a GPU, as the core's table declares it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any

from warpstack._core import GPU_FIELDS
from warpstack.hardware.description import Gpu

__all__ = ["Stage", "alike", "fields_of", "values_of"]


class Stage(enum.Enum):
    """What reads a field of `Gpu`; the values are the core's words, which ``cpp/gpu/field.h`` explains."""

    MEMORY = "memory"
    REQUESTS = "requests"
    GREEDY = "greedy"
    TIMED = "timed"
    INTERVAL = "interval"
    MODEL = "model"
    TIMING = "timing"
    LAUNCH = "launch"
    TIMELINE = "timeline"


@cache
def fields_of(stage: Stage) -> frozenset[str]:
    """Return the fields of `Gpu` that a stage reads."""
    return frozenset(field.name for field in GPU_FIELDS if stage.value in field.stages)


def values_of(gpu: Gpu, fields: frozenset[str]) -> tuple[Any, ...]:
    """Return the values of some fields in the order of their names: what a result depends on."""
    return _getter(fields)(gpu)


def alike(gpus: Iterable[Gpu], fields: frozenset[str]) -> list[list[int]]:
    """Return the positions of GPUs with the same values of some fields, by first appearance."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, gpu in enumerate(gpus):
        groups.setdefault(values_of(gpu, fields), []).append(position)
    return list(groups.values())


@cache
def _getter(fields: frozenset[str]) -> Callable[[Gpu], tuple[Any, ...]]:
    # Two names at least: of one, attrgetter returns the value itself.
    names = sorted(fields)
    return (
        attrgetter(*names) if len(names) > 1 else lambda gpu: tuple(getattr(gpu, n) for n in names)
    )
