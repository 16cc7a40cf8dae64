"""CPI stacks of predictions beside those of references: how far apart the reasons are."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack.errors import InputError, shown
from warpstack.tables import STACK, STACK_COMPONENTS

__all__ = [
    "COMPARED",
    "CYCLES",
    "check_stacks",
    "compared_stacks",
    "has_stacks",
    "largest_stall",
    "mean_row",
    "stack_distance",
    "sums_of_stacks",
]

#: Columns that `compared_stacks` gives for a kernel.
COMPARED = ("stack_distance", "largest_stall_predicted", "largest_stall_measured")
_SIDES = ("predicted", "measured")
#: The cycles of a kernel by component, of each side: they add up to those of an application.
CYCLES = {side: tuple(f"{side}_{part}" for part in STACK_COMPONENTS) for side in _SIDES}

#: Components that a computation leaves this little below 0 are 0.
_ROUNDING = 1e-9

_F64 = npt.NDArray[np.float64]


def has_stacks(table: pd.DataFrame) -> bool:
    """Return whether a table has all columns of a CPI stack."""
    return set(STACK) <= set(table.columns)


def check_stacks(what: str, table: pd.DataFrame) -> None:
    """Raise `InputError` for the first component below 0, of which no share can be taken."""
    for name in STACK:
        if name not in table:
            continue
        wrong = (table[name] < -_ROUNDING).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"{what}: row {row + 1}: {name} = {shown(table[name].iloc[row])} is negative; leave "
                "the columns of the stack empty where it is not known"
            )


def largest_stall(shares: Sequence[float] | _F64) -> str:
    """Return the largest component beside ``base``, the first of equals.

    Parameters
    ----------
    shares
        The components in the order of `STACK_COMPONENTS`, in any unit.

    Returns
    -------
    str
        Its name; ``none`` where there is no stall, empty where a component is not known.
    """
    stalls = np.asarray(shares, dtype=np.float64)[1:]
    if np.isnan(stalls).any():
        return ""
    if not stalls.max() > 0:
        return "none"
    return STACK_COMPONENTS[1 + int(stalls.argmax())]


def stack_distance(predicted: _F64, measured: _F64) -> float:
    """Return half the sum of the absolute differences of two stacks' shares.

    It is the part of the cycles, 0 to 1, that one of them spends elsewhere (the total variation
    distance of the shares).

    Parameters
    ----------
    predicted, measured
        The components in the order of `STACK_COMPONENTS`, each side in a unit of its own.

    Returns
    -------
    float
        NaN where a component is not known or all are 0.
    """
    totals = predicted.sum(), measured.sum()
    if not (totals[0] > 0 and totals[1] > 0):
        return math.nan
    return float(np.abs(predicted / totals[0] - measured / totals[1]).sum() / 2)


def compared_stacks(
    mine: Mapping[Hashable, Any] | None, theirs: Mapping[Hashable, Any] | None
) -> dict[str, Any]:
    """Return the columns `COMPARED` and `CYCLES` of a kernel, given the rows of both sides."""
    shares = [_shares(row) for row in (mine, theirs)]
    values: list[Any] = [stack_distance(*shares), *map(largest_stall, shares)]
    result = dict(zip(COMPARED, values, strict=True))
    for side, row, part in zip(_SIDES, (mine, theirs), shares, strict=True):
        cycles = _number(row, "cycles")
        result.update(zip(CYCLES[side], cycles * part, strict=True))
    return result


def mean_row(rows: Iterable[Mapping[Hashable, Any]]) -> dict[str, Any]:
    """Return cycles and stack of the mean of several launches, which profilers report."""
    each = list(rows)
    cycles = np.array([_number(row, "cycles") for row in each])
    parts = np.array([_shares(row) for row in each]) * cycles[:, np.newaxis]
    return {"cycles": float(cycles.mean()), **dict(zip(STACK, parts.mean(axis=0), strict=True))}


def sums_of_stacks(matched: pd.DataFrame, pairs: str) -> dict[str, float]:
    """Return how far the stacks are apart over kernels or applications.

    Parameters
    ----------
    matched
        Matched rows of `warpstack.validate`.
    pairs
        ``kernel``, or ``app``: the stack of an application is that of the sum of the cycles of its
        kernels, of those whose stacks both sides know.

    Returns
    -------
    dict
        ``mean_stack_distance`` and ``same_largest_stall``, both fractions over the pairs whose
        stacks are known, and NaN without any.
    """
    names = [*CYCLES["predicted"], *CYCLES["measured"]]
    distances: list[float] = []
    same: list[bool] = []
    if pairs == "app":
        known = matched.dropna(subset=names) if set(names) <= set(matched) else matched.iloc[:0]
        for _, group in known.groupby("app", sort=False):
            stacks = [
                group[list(CYCLES[side])].to_numpy(dtype=float).sum(axis=0) for side in _SIDES
            ]
            distances.append(stack_distance(*stacks))
            same.append(largest_stall(stacks[0]) == largest_stall(stacks[1]))
    elif set(COMPARED) <= set(matched):
        known = matched.dropna(subset=["stack_distance"])
        distances = known["stack_distance"].tolist()
        same = (known["largest_stall_predicted"] == known["largest_stall_measured"]).tolist()
    return {
        "mean_stack_distance": float(np.mean(distances)) if distances else math.nan,
        "same_largest_stall": float(np.mean(same)) if same else math.nan,
    }


def _number(row: Mapping[Hashable, Any] | None, name: str) -> float:
    """Return a number of a row, NaN where it is not there."""
    value = None if row is None else row.get(name)
    return math.nan if pd.isna(value) else float(value)


def _shares(row: Mapping[Hashable, Any] | None) -> _F64:
    """Return the shares of the components in a row's CPI, NaN where one is not known or all are 0."""
    values = np.array([_number(row, name) for name in STACK]).clip(min=0)
    total = values.sum()
    return values / total if total > 0 else np.full(len(STACK), math.nan)
