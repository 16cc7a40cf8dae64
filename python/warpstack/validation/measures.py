"""Error measures of predictions against a reference, most from the cache paper (Section 5).

All functions take ``(predicted, reference)``: one-dimensional arrays of equal length, pair by pair.
Infinite values are an error. So is NaN, unless ``nan="omit"`` leaves out the pairs with one. Where
a measure has no value, as without pairs, the result is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, not_one_of, shown, unknown

__all__ = [
    "PercentageError",
    "error_table",
    "gmean_ratio",
    "mae",
    "mape",
    "nrmse",
    "pearson",
    "spearman",
]

_F64 = npt.NDArray[np.float64]
#: None is a missing value, and anything that becomes a float a number.
Values = npt.ArrayLike | Sequence[object]


class PercentageError(NamedTuple):
    """A mean absolute percentage error and what it leaves out."""

    #: Mean of the absolute error over the absolute reference, as a fraction: 0.11 is 11 %.
    value: float
    #: Pairs that are left out because their reference is 0.
    excluded: int


@checked
def mae(predicted: Values, reference: Values, *, nan: str = "raise") -> float:
    """Return the mean absolute error, in the unit of the values.

    Parameters
    ----------
    predicted, reference
        Values, shape (n,).
    nan
        ``raise``: NaN is an error; ``omit``: leave out pairs with NaN.

    Returns
    -------
    float
        NaN without pairs.

    Raises
    ------
    InputError
        If the shapes differ, or a value is infinite, not a number, or NaN with ``nan="raise"``.
    """
    p, r = _pairs(predicted, reference, nan)
    return float(np.abs(p - r).mean()) if p.size else np.nan


@checked
def mape(predicted: Values, reference: Values, *, nan: str = "raise") -> PercentageError:
    """Return the mean absolute percentage error over pairs whose reference is not 0.

    This is the cache paper's MAPE (Section 5.2), which excludes references of 0 too.

    Parameters
    ----------
    predicted, reference, nan
        As for `mae`.

    Returns
    -------
    PercentageError
        ``value``, a fraction (NaN when every pair is excluded), and ``excluded``, the number of
        pairs with a reference of 0.

    Raises
    ------
    InputError
        As `mae`.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.validation.measures.mape([110, 45, 3], [100, 50, 0])
    PercentageError(value=0.1, excluded=1)
    """
    p, r = _pairs(predicted, reference, nan)
    used = r != 0
    value = float((np.abs(p - r)[used] / np.abs(r[used])).mean()) if used.any() else np.nan
    return PercentageError(value, int((~used).sum()))


@checked
def nrmse(predicted: Values, reference: Values, *, by: str = "mean", nan: str = "raise") -> float:
    """Return the root mean square error over the size of the reference.

    Parameters
    ----------
    predicted, reference, nan
        As for `mae`.
    by
        What the error is divided by: ``mean``, the absolute mean of the reference, or ``range``,
        its largest value minus its smallest. The cache paper (Section 5.2.3, Table 6) does not say
        which it takes; its authors' published evaluation divides by the mean.

    Returns
    -------
    float
        NaN without pairs, or when the divisor is 0.

    Raises
    ------
    InputError
        As `mae`, or if `by` is neither.
    """
    if by not in ("mean", "range"):
        raise not_one_of("by", by, ("mean", "range"))
    p, r = _pairs(predicted, reference, nan)
    if not p.size:
        return np.nan
    divisor = abs(float(r.mean())) if by == "mean" else float(np.ptp(r))
    return float(np.sqrt(np.square(p - r).mean())) / divisor if divisor else np.nan


@checked
def pearson(predicted: Values, reference: Values, *, nan: str = "raise") -> float:
    """Return Pearson's correlation coefficient (cache paper, Section 5.2).

    Parameters
    ----------
    predicted, reference, nan
        As for `mae`.

    Returns
    -------
    float
        From -1 to 1; NaN with fewer than two pairs, or when one side is constant.

    Raises
    ------
    InputError
        As `mae`.
    """
    p, r = _pairs(predicted, reference, nan)
    if p.size < 2 or np.ptp(p) == 0 or np.ptp(r) == 0:
        return np.nan
    # Scaled first, so that squares neither over- nor underflow.
    p, r = (values - values.mean() for values in (p, r))
    p, r = (values / np.abs(values).max() for values in (p, r))
    return float(np.clip(np.dot(p, r) / np.sqrt(np.dot(p, p) * np.dot(r, r)), -1, 1))


@checked
def spearman(predicted: Values, reference: Values, *, nan: str = "raise") -> float:
    """Return Spearman's rank correlation: Pearson's of the ranks, equal values sharing their mean.

    Parameters
    ----------
    predicted, reference, nan
        As for `mae`.

    Returns
    -------
    float
        From -1 to 1: whether the predictions put the pairs in the right order. NaN as for
        `pearson`.

    Raises
    ------
    InputError
        As `mae`.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.validation.measures.spearman([1, 20, 300], [4, 5, 6])
    1.0
    """
    p, r = _pairs(predicted, reference, nan)
    return pearson(*(pd.Series(values).rank().to_numpy() for values in (p, r)))


@checked
def gmean_ratio(predicted: Values, reference: Values, *, nan: str = "raise") -> float:
    """Return the geometric mean of the ratios of prediction to reference.

    It tells bias: above 1 the predictions are too large. Errors that cancel leave it at 1.

    Parameters
    ----------
    predicted, reference, nan
        As for `mae`. Pairs in which either is 0 have no ratio and are left out.

    Returns
    -------
    float
        NaN without pairs.

    Raises
    ------
    InputError
        As `mae`, or if a value is negative.

    Examples
    --------
    >>> import warpstack as ws
    >>> round(ws.validation.measures.gmean_ratio([200, 50], [100, 100]), 12)
    1.0
    """
    p, r = _pairs(predicted, reference, nan)
    if (p < 0).any() or (r < 0).any():
        raise InputError("a value is negative; ratios of positive values have a geometric mean")
    used = (p > 0) & (r > 0)
    return float(np.exp(np.mean(np.log(p[used]) - np.log(r[used])))) if used.any() else np.nan


@checked
def error_table(
    predicted: pd.DataFrame,
    reference: pd.DataFrame,
    columns: Sequence[str] | str | None = None,
    *,
    nan: str = "omit",
) -> pd.DataFrame:
    """Compare columns of predictions with the columns of the same names of a reference.

    Parameters
    ----------
    predicted, reference
        Rows are matched by index: the same unique labels, in any order.
    columns
        Columns to compare, or the name of one; by default the numeric ones that both have, in the
        order of the reference.
    nan
        ``omit``: leave out pairs with NaN, column by column, and count them; ``raise``: NaN is an
        error.

    Returns
    -------
    DataFrame
        One row per column: ``column``, ``pairs`` (compared), ``nan`` (left out for NaN), ``zeros``
        (left out of the MAPE for a reference of 0), ``mae``, ``mape`` (a fraction), ``nrmse`` (by
        the mean of the reference) and ``pearson``.

    Raises
    ------
    InputError
        If the indices do not match, a column is missing, nothing can be compared, or a column is
        not fit for `mae`.
    """
    for name, table in (("predicted", predicted), ("reference", reference)):
        if not table.index.is_unique:
            twice = table.index[table.index.duplicated()][0]
            raise InputError(
                f"{name}: the row {shown(twice)} occurs twice; set an index of unique labels"
            )
    lone = predicted.index.symmetric_difference(reference.index, sort=False)
    if len(lone):
        having = "predicted" if lone[0] in predicted.index else "reference"
        raise InputError(
            f"only {having} has the row {shown(lone[0])} ({len(lone)} rows are on one side only); give both "
            "the same rows"
        )
    if columns is None:
        numeric = reference.select_dtypes("number").columns
        columns = [c for c in numeric if c in predicted.select_dtypes("number").columns]
        if not columns:
            raise InputError("predicted and reference have no numeric column in common")
    rows = []
    for column in [columns] if isinstance(columns, str) else columns:
        for name, table in (("predicted", predicted), ("reference", reference)):
            if column not in table.columns:
                raise unknown("column", column, map(str, table.columns), where=name)
        try:
            p, r = _pairs(predicted[column].reindex(reference.index), reference[column], nan)
        except InputError as error:
            raise InputError(f"column {shown(column)}: {error}") from None
        percentage = mape(p, r)
        rows.append(
            {
                "column": column,
                "pairs": len(p),
                "nan": len(reference) - len(p),
                "zeros": percentage.excluded,
                "mae": mae(p, r),
                "mape": percentage.value,
                "nrmse": nrmse(p, r),
                "pearson": pearson(p, r),
            }
        )
    return pd.DataFrame(rows)


def _pairs(predicted: Values, reference: Values, nan: str) -> tuple[_F64, _F64]:
    """Check the arrays and return the pairs to compare."""
    if nan not in ("raise", "omit"):
        raise not_one_of("nan", nan, ("raise", "omit"))
    p, r = (_values(*v) for v in (("predicted", predicted), ("reference", reference)))
    if p.shape != r.shape:
        raise InputError(
            f"predicted has {p.size} values, reference {r.size}; give one prediction per reference"
        )
    missing = np.isnan(p) | np.isnan(r)
    if missing.any() and nan == "raise":
        raise InputError(
            f"{missing.sum()} of {p.size} pairs have NaN, the first is number {np.argmax(missing)}; "
            "leave them out with nan='omit'"
        )
    return p[~missing], r[~missing]


def _values(name: str, values: Values) -> _F64:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InputError(f"{name}: the values do not make an array; give numbers") from None
    if array.ndim != 1:
        raise InputError(f"{name} has the shape {array.shape}; give one dimension")
    texts = array.dtype.kind == "O" and any(isinstance(one, (str, bytes)) for one in array)
    try:
        if texts or array.dtype.kind not in "biufO":
            raise TypeError
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} has the type {array.dtype}; give numbers") from None
    if np.isinf(numbers).any():
        raise InputError(f"{name} has an infinite value at {np.argmax(np.isinf(numbers))}")
    return numbers
