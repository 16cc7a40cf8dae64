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

from warpstack._core import STACK_COMPONENTS

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
_PRIOR = 3
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
    """Return the shortest range around 0 with a share of the errors, as far as it is below and above 0.

    As in split conformal prediction, the error that is to come counts as one more, of mean weight and
    outside; where too few are left, the range is that of all. Errors of kernels that are predicted too
    fast lie on one side, so that a range with equal tails would be longer.

    Parameters
    ----------
    errors
        Logarithms of measured over predicted times.
    weights
        What each counts.
    coverage
        Share that lies inside.
    """
    order = np.argsort(errors, kind="stable")
    found = errors[order]
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    wanted = coverage * (sums[-1] + weights.mean())
    # Of each first error inside, the last one with which enough are.
    lasts = np.searchsorted(sums, sums[:-1] + wanted - 1e-12 * sums[-1]) - 1
    pairs = [(float(found[i]), float(found[j])) for i, j in enumerate(lasts) if j < len(found)]
    ranges = pairs or [(float(found[0]), float(found[-1]))]
    return min(((max(-low, _LEAST), max(high, _LEAST)) for low, high in ranges), key=sum)


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


def _inside(
    errors: _Numbers, ranges: Sequence[Range], stretch: float, doubts: _Numbers
) -> npt.NDArray[np.bool_]:
    below, above = (np.hypot(stretch * one, doubts) for one in np.array(ranges).T)
    inside: npt.NDArray[np.bool_] = (errors >= -below) & (errors <= above)
    return inside


def error_table(
    kinds: Sequence[str],
    errors: Sequence[float],
    sets: Sequence[str],
    cards: Sequence[str],
    doubts: Sequence[float] | None = None,
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
    doubts
        What guessed values of its GPU add to each range; none by default.

    Returns
    -------
    (list of dict, dict)
        Rows ``kind``, ``below``, ``above``, ``rows``, ``sets``, ``cards``; and ``stretch`` and, of each
        row, ``inside``, ``without_set``, ``without_card``: whether it lies in its range.
    """
    found = np.asarray(errors, dtype=float)
    added = np.zeros(len(found)) if doubts is None else np.asarray(doubts, dtype=float)
    groups = list(zip(sets, cards, strict=True))
    apart = [_ranges_left_out(kinds, found, groups, names) for names in (sets, cards)]
    # It is at least 1: that is what the rows themselves say.
    steps = 0
    while any(
        _inside(found, ranges, 1 + steps * _STEP, added).mean() < COVERAGE for ranges in apart
    ):
        steps += 1
    stretch = round(1 + steps * _STEP, 10)
    plain = _plain_ranges(kinds, found, groups)
    rows: list[dict[str, Any]] = []
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
        "inside": _inside(found, [plain[kind] for kind in kinds], stretch, added),
        "without_set": _inside(found, apart[0], stretch, added),
        "without_card": _inside(found, apart[1], stretch, added),
    }
    if not all(math.isfinite(row["below"] + row["above"]) for row in rows):
        raise ValueError("an error is not finite")
    return rows, held
