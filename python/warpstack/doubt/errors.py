"""The measured errors of each kind of kernel, and how a table of them is made."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpstack.tables import STACK_COMPONENTS

__all__ = ["Range", "error_table", "half_widths", "kind_of", "measured_range"]

#: Of ten measured times so many lie inside.
COVERAGE = 0.9
#: The table of the package: ``studies/doubt.py --write`` makes it.
TABLE = Path(__file__).parent / "measured-errors.csv"
#: Launches above this share of the time make a kernel one of launches, or a short one.
_MOSTLY_LAUNCH, _SHORT = 0.5, 0.2
#: What the largest part of the CPI stack makes of all other kernels.
_OF_PART = {
    **{"base": "issue", "dep": "arithmetic", "noc": "noc"},
    **dict.fromkeys(("l1", "l2", "mshr"), "caches"),
    **dict.fromkeys(("dram", "queue"), "dram"),
}
#: All kinds together: what a kind of few sets and cards leans on.
ALL = "all"
#: A kind has its own errors and those of all kinds as if of so many sets on a card.
_PRIOR = 5
#: No error is known better than to this: measurements of one kernel scatter as much.
_LEAST = 0.01
#: What the ranges are stretched by is a multiple of this.
_STEP = 0.05

_Numbers = npt.NDArray[np.float64]


class Range(NamedTuple):
    """How far measured times may lie from a predicted one, as logarithms of ratios, both above 0."""

    below: float
    above: float


def kind_of(values: Mapping[str, Any]) -> str:
    """Return the kind of a kernel: what its time goes to, by its prediction alone.

    Parameters
    ----------
    values
        ``time_us``, ``launch_us`` and the CPI stack of a row of `warpstack.predict`.
    """
    time, launch = float(values["time_us"]), float(values["launch_us"])
    share = launch / time if time > 0 else 0.0
    if share >= _MOSTLY_LAUNCH:
        return "launch"
    if share >= _SHORT:
        return "short"
    return _OF_PART[max(STACK_COMPONENTS, key=lambda part: float(values[f"cpi_{part}"]))]


@cache
def _table() -> dict[tuple[str, str], Range]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (row["model"], row["kind"]): Range(float(row["below"]), float(row["above"]))
            for row in csv.DictReader(file)
        }


@cache
def _unmeasured() -> Range:
    """Return the range of a model that nobody has measured: the widest of all."""
    ranges = [found for (_, kind), found in _table().items() if kind == ALL]
    return Range(max(one.below for one in ranges), max(one.above for one in ranges))


def measured_range(model: str, kind: str) -> Range:
    """Return the range of the measured times of a kind of kernels beside those of a model."""
    table = _table()
    return table.get((model, kind)) or table.get((model, ALL)) or _unmeasured()


def half_widths(
    errors: _Numbers, weights: _Numbers, coverage: float = COVERAGE
) -> tuple[float, float]:
    """Return how far errors lie below and above 0, but for those outside the coverage.

    Each side leaves out half of what is outside. As in split conformal prediction, the error that is
    to come counts as one more, of mean weight and beyond all others; the largest is as far as they
    say.

    Parameters
    ----------
    errors
        Logarithms of measured over predicted times.
    weights
        What each counts.
    coverage
        Share that lies inside.
    """

    def end(of: _Numbers) -> float:
        order = np.argsort(of, kind="stable")
        sums = np.cumsum(weights[order])
        wanted = (1 + coverage) / 2 * (sums[-1] + weights.mean())
        place = min(int(np.searchsorted(sums, wanted * (1 - 1e-12))), len(of) - 1)
        return max(float(of[order[place]]), _LEAST)

    return end(-errors), end(errors)


def _weights(groups: Sequence[tuple[str, str]]) -> _Numbers:
    """Return what rows count: a group of four times the rows counts twice as much in all."""
    counts: dict[tuple[str, str], int] = {}
    for group in groups:
        counts[group] = counts.get(group, 0) + 1
    return np.array([counts[group] ** -0.5 for group in groups])


def _plain_ranges(
    kinds: Sequence[str], errors: _Numbers, groups: Sequence[tuple[str, str]]
) -> dict[str, Range]:
    """Return the range of each kind before it is stretched."""
    weights = _weights(groups)
    of_all = Range(*half_widths(errors, weights))
    found = {ALL: of_all}
    for kind in sorted(set(kinds)):
        own = np.array([one == kind for one in kinds])
        places = len({group for group, mine in zip(groups, own, strict=True) if mine})
        trust = places / (places + _PRIOR)
        ends = zip(half_widths(errors[own], weights[own]), of_all, strict=True)
        found[kind] = Range(*(trust * mine + (1 - trust) * whole for mine, whole in ends))
    return found


def _ranges_left_out(
    kinds: Sequence[str],
    errors: _Numbers,
    groups: Sequence[tuple[str, str]],
    left_out: Sequence[str],
) -> list[Range]:
    """Return the range of each row from all others but those that are left out with it."""
    found: list[Range | None] = [None] * len(kinds)
    for one in sorted(set(left_out)):
        others = [n for n, name in enumerate(left_out) if name != one]
        if not others:
            raise ValueError(f"all rows are of {one}: leaving it out leaves none")
        table = _plain_ranges(
            [kinds[n] for n in others], errors[others], [groups[n] for n in others]
        )
        for n, name in enumerate(left_out):
            if name == one:
                found[n] = table.get(kinds[n], table[ALL])
    return [one for one in found if one is not None]


def _inside(errors: _Numbers, ranges: Sequence[Range], stretch: float) -> npt.NDArray[np.bool_]:
    below, above = stretch * np.array(ranges).T
    inside: npt.NDArray[np.bool_] = (errors >= -below) & (errors <= above)
    return inside


def error_table(
    kinds: Sequence[str], errors: Sequence[float], sets: Sequence[str], cards: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the table of one model's errors by kind, and how it holds on what is left out.

    The range of a kind is the mean of its own and that of all kinds, by the number of sets on cards
    behind it. All are then stretched by one number, the least with which nine of ten rows lie inside
    when their set is left out of the table, and when their card is.

    Parameters
    ----------
    kinds, errors, sets, cards
        Of each measured row its kind (`kind_of`), the logarithm of measured over predicted time, and
        the set of measurements and the GPU that it is from.

    Returns
    -------
    (list of dict, dict)
        Rows ``kind``, ``below``, ``above``, ``rows``, ``sets``, ``cards``; and ``stretch`` and, of each
        row, ``inside``, ``without_set``, ``without_card``: whether it lies in its range.
    """
    found = np.asarray(errors, dtype=float)
    groups = list(zip(sets, cards, strict=True))
    apart = [_ranges_left_out(kinds, found, groups, names) for names in (sets, cards)]
    # Shrinking is no way to make them hold, as 1 is what the rows themselves say.
    steps = 0
    while any(
        _inside(found, ranges, 1 + steps * _STEP).mean() < COVERAGE for ranges in apart
    ):
        steps += 1
    stretch = round(1 + steps * _STEP, 10)
    plain = _plain_ranges(kinds, found, groups)
    rows = []
    for kind, (below, above) in plain.items():
        own = [kind in (ALL, one) for one in kinds]
        rows.append(
            {
                **{"kind": kind, "below": stretch * below, "above": stretch * above},
                "rows": sum(own),
                "sets": len({name for name, mine in zip(sets, own, strict=True) if mine}),
                "cards": len({name for name, mine in zip(cards, own, strict=True) if mine}),
            }
        )
    held = {
        "stretch": stretch,
        "inside": _inside(found, [plain[kind] for kind in kinds], stretch),
        "without_set": _inside(found, apart[0], stretch),
        "without_card": _inside(found, apart[1], stretch),
    }
    if not all(math.isfinite(row["below"] + row["above"]) for row in rows):
        raise ValueError("an error is not finite")
    return rows, held
