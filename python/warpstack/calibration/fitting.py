"""Slopes and knees of curves, from medians: a sample that was disturbed changes nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from warpstack.calibration.measurements import Sample

__all__ = ["Bracket", "Estimate", "curves", "medians", "roundest", "slope"]


class Estimate(NamedTuple):
    """A value of a field, how it was found, and how well it is known."""

    value: int | float | str
    how: str
    confidence: str = "measured"


class Bracket(NamedTuple):
    """The bracket of a knee: the last point before it and the first one behind it."""

    low: int
    high: int


def medians(samples: Iterable[Sample]) -> dict[tuple[int, ...], float]:
    """Return the median of the repeats by their parameters, in order."""
    values: dict[tuple[int, ...], list[float]] = {}
    for sample in samples:
        values.setdefault(sample.parameters, []).append(sample.value)
    return {parameters: median(values[parameters]) for parameters in sorted(values)}


def curves(points: Mapping[tuple[int, ...], float]) -> dict[tuple[int, ...], dict[int, float]]:
    """Return the values over the last parameter, by the other ones."""
    found: dict[tuple[int, ...], dict[int, float]] = {}
    for parameters, value in points.items():
        found.setdefault(parameters[:-1], {})[parameters[-1]] = value
    return found


def slope(curve: Mapping[int, float]) -> float:
    """Return the median slope between two points of a curve (Theil and Sen).

    NaN with fewer than two points.
    """
    pairs = itertools.combinations(sorted(curve.items()), 2)
    slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairs]
    return median(slopes) if slopes else math.nan


def roundest(bracket: Bracket) -> int:
    """Return the number from `low` up to, without, `high` that most powers of two divide."""
    step = 1 << max(bracket.high.bit_length(), 1)
    while True:
        number = -(-bracket.low // step) * step
        if bracket.low <= number < bracket.high and number > 0:
            return number
        step //= 2
