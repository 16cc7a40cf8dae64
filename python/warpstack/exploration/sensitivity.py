"""Which field of the GPU matters most: one at a time, and as shares of the variance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, shown, unknown
from warpstack.exploration.expressions import Expression
from warpstack.exploration.totals import (
    axes_of,
    check_fixed,
    one_application,
    plain,
    point_totals,
    varies,
)
from warpstack.hardware.description import GpuLike, as_gpu, check_value_fields

__all__ = ["one_at_a_time", "sobol_indices", "swings"]

_RESAMPLES = 200


@checked
def one_at_a_time(gpu: GpuLike, axes: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return the points for `swings`: the GPU as it is, then one field changed at a time.

    Parameters
    ----------
    gpu
        The GPU.
    axes
        Values to try by field; those of the GPU itself are passed over.

    Returns
    -------
    list of dict
        Points for `warpstack.sweep`, the unchanged one first.

    Raises
    ------
    InputError
        If a field does not exist, its values are not a list, or one is out of range.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.exploration.one_at_a_time("pascal-mdm", {"num_sms": [28, 56], "l1_mshrs": [64]})
    [{'num_sms': 28, 'l1_mshrs': 128}, {'num_sms': 56, 'l1_mshrs': 128}, {'num_sms': 28, 'l1_mshrs': 64}]
    """
    gpu = as_gpu(gpu)
    check_value_fields(axes, "axes")
    for field, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"axes: {field} = {shown(values)} is not a list of values")
    axes = {field: list(values) for field, values in axes.items()}
    changed = [(f, v, gpu.replace(**{f: v})) for f, values in axes.items() for v in values]
    base = {field: getattr(gpu, field) for field in axes}
    return [base, *({**base, field: value} for field, value, _ in changed if value != base[field])]


@checked
def swings(
    table: pd.DataFrame, metric: str = "ipc", *, baseline: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return how far each axis alone moves a metric, the largest swing first.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep` over `one_at_a_time`, or over a grid that has such points.
    metric
        A column of `point_totals`, or an expression over them.
    baseline
        Values of the axes at the point from which one changes at a time; by default the first.

    Returns
    -------
    DataFrame
        One row per model and axis that varies: ``model``, ``field``, the lowest and highest value
        ``low`` and ``high``, the metric ``at_baseline``, ``at_low`` and ``at_high``, and ``swing``,
        the difference of its largest and smallest value.

    Raises
    ------
    InputError
        If the baseline is not in the table, or no axis alone changes from it.
    """
    totals = _with_metric(table, metric)
    axes = [axis for axis in axes_of(totals) if varies(totals[axis])]
    base = {a: plain(totals[a].iloc[0]) for a in axes} if baseline is None else dict(baseline)
    for axis in base:
        if axis not in axes_of(totals):
            raise unknown("axis", axis, axes_of(totals), where="baseline")
    check_fixed(totals, list(base), "baseline")
    rows = []
    for model, group in totals.groupby("model", sort=False):
        same = pd.DataFrame({axis: group[axis] == base[axis] for axis in axes}, index=group.index)
        start = group[same.all(axis=1)]
        if start.empty:
            where = ", ".join(f"{axis}={base[axis]!r}" for axis in axes)
            raise InputError(f"baseline: {model} has no point with {where}")
        for axis in axes:
            line = group[same.drop(columns=axis).all(axis=1)].sort_values(axis, kind="stable")
            if line[axis].nunique() < 2:
                continue
            rows.append(
                {
                    "model": model,
                    "field": axis,
                    "low": plain(line[axis].iloc[0]),
                    "high": plain(line[axis].iloc[-1]),
                    "at_baseline": start["metric"].iloc[0],
                    "at_low": line["metric"].iloc[0],
                    "at_high": line["metric"].iloc[-1],
                    "swing": line["metric"].max() - line["metric"].min(),
                }
            )
    if not rows:
        raise InputError(
            "no axis changes alone from the baseline; sweep warpstack.exploration.one_at_a_time"
        )
    result = pd.DataFrame(rows)
    return result.sort_values("swing", ascending=False, kind="stable", ignore_index=True)


@checked
def sobol_indices(table: pd.DataFrame, metric: str = "ipc") -> pd.DataFrame:
    """Return the shares of a metric's variance that each axis causes, alone and in all.

    ``total`` is the share that would remain if all other axes were known, interactions included;
    ``first`` is the share that the axis causes alone. Both are Jansen's estimators (Saltelli et
    al., "Variance based sensitivity analysis of model output", Computer Physics Communications
    2010, Table 2, b and f):

        total_i = mean((f(A) - f(A_i))^2) / 2 Var(f)
        first_i = 1 - mean((f(B) - f(A_i))^2) / 2 Var(f)

    with samples A and B, and A_i: A with field i of B. The variance is that over A and B.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep` over the points of `warpstack.exploration.samples.saltelli`.
    metric
        A column of `point_totals`, or an expression over them.

    Returns
    -------
    DataFrame
        One row per model and axis, the largest total first: ``model``, ``field``, ``first``,
        ``total``, their standard errors ``first_error`` and ``total_error`` (bootstrap over the
        base samples), and ``samples``, the base samples of which no point failed.

    Raises
    ------
    InputError
        If the points are not such samples, or the metric is the same everywhere.
    """
    totals = _with_metric(table, metric)
    axes = axes_of(totals)
    # Failed points keep their place: their metric is NaN.
    every = table.drop_duplicates("point").sort_values("point").set_index("point")
    n = len(every) // (len(axes) + 2) if axes else 0
    if n < 2 or len(every) != n * (len(axes) + 2):
        raise InputError(
            f"{len(every)} points over {len(axes)} axes are not a sample of "
            "warpstack.exploration.samples.saltelli, which has n (axes + 2) points"
        )
    columns = [every[axis].to_numpy() for axis in axes]
    fields = [_mixed_field(axes, columns, n, block) for block in range(len(axes))]
    rows = []
    for model, group in totals.groupby("model", sort=False):
        values = group.set_index("point")["metric"].reindex(every.index).to_numpy(dtype=np.float64)
        blocks = values.reshape(len(axes) + 2, n)
        blocks = blocks[:, ~np.isnan(blocks).any(axis=0)]
        if blocks.shape[1] < 2:
            raise InputError(f"{model}: fewer than two base samples are without a failed point")
        first, total = _jansen(blocks)
        draws = np.random.default_rng(0).integers(
            blocks.shape[1], size=(_RESAMPLES, blocks.shape[1])
        )
        again = [_jansen(blocks[:, draw]) for draw in draws]
        if np.isnan(total).any():
            raise InputError(f"{model}: {metric} is the same at every point; nothing matters to it")
        first_error, total_error = np.nanstd(again, axis=0, ddof=1)
        for i, field in enumerate(fields):
            rows.append(
                {
                    "model": model,
                    "field": field,
                    "first": first[i],
                    "total": total[i],
                    "first_error": first_error[i],
                    "total_error": total_error[i],
                    "samples": blocks.shape[1],
                }
            )
    result = pd.DataFrame(rows)
    return result.sort_values("total", ascending=False, kind="stable", ignore_index=True)


def _jansen(
    blocks: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return first- and total-order indices of values at A, B and each A_i; NaN without variance."""
    a, b, mixed = blocks[0], blocks[1], blocks[2:]
    variance = np.var(blocks[:2], ddof=1)
    if variance <= 1e-24 * np.mean(blocks[:2]) ** 2:
        nothing = np.full(len(mixed), np.nan)
        return nothing, nothing
    first = 1 - np.mean((b - mixed) ** 2, axis=1) / (2 * variance)
    total = np.mean((a - mixed) ** 2, axis=1) / (2 * variance)
    return first, total


def _mixed_field(axes: list[str], columns: list[npt.NDArray[Any]], n: int, block: int) -> str:
    """Return the field that a block of points has from B, with all others from A."""
    at = slice((block + 2) * n, (block + 3) * n)
    from_a = [bool(np.all(column[at] == column[:n])) for column in columns]
    from_b = [bool(np.all(column[at] == column[n : 2 * n])) for column in columns]
    # Usually in the order of the axes; a table may have its columns in another one.
    for i in [block, *range(len(axes))]:
        if from_b[i] and all(same for j, same in enumerate(from_a) if j != i):
            return str(axes[i])
    raise InputError(
        f"points {at.start} to {at.stop - 1} are not a sample of "
        "warpstack.exploration.samples.saltelli: they differ from the first ones in more than one field"
    )


def _with_metric(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    totals = point_totals(table)
    one_application(totals)
    return totals.assign(metric=metric_of(totals, metric))


def metric_of(totals: pd.DataFrame, metric: str) -> npt.NDArray[np.float64]:
    """Return a column of `point_totals`, or an expression over them, as numbers."""
    numeric = [n for n in totals.columns if pd.api.types.is_numeric_dtype(totals[n])]
    expression = Expression(metric, "metric")
    expression.check_names([*numeric, *axes_of(totals)])
    values = expression({name: totals[name].to_numpy() for name in expression.names})
    return np.broadcast_to(values, (len(totals),)).astype(np.float64)
