"""Totals and speedups of design points: what a sweep says of each configuration as a whole."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from warpstack._util.arguments import printable_text, value_text
from warpstack._util.checked import checked
from warpstack.errors import InputError, not_a, shown, unknown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.tables import SETTINGS, STACK, checked_table, require
from warpstack.tables import totals as added_up

__all__ = ["point_totals", "speedups"]

_WEIGHTED = ["cpi", *STACK]
#: Columns that tell launches of one configuration and model apart.
_LAUNCH = ("kernel", "name", "trace_digest")


@checked
def point_totals(table: pd.DataFrame) -> pd.DataFrame:
    """Add the kernels up at each point of a sweep, per model and application.

    Cycles and instructions are sums over the launches, IPC is their quotient (MDM, Section III-C);
    CPI and its stack are means weighted by instructions. Applications are told apart by a column
    ``app``, where there is one; nothing adds them up.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`; simulations (`warpstack.timing.as_table`) with the columns of the
        sweep's points can be among them. The result of this function is returned as it is.

    Returns
    -------
    DataFrame
        One row per point, application and model: ``point``, a column per axis, ``app`` if the table
        has it, ``gpu``, ``model``, ``anchor``, ``initial_l2`` and ``profiler`` if the table has them,
        ``kernels``, ``instructions``, ``cycles``, ``ipc``, ``cpi`` and the stack. Points that failed are
        left out.

    Raises
    ------
    InputError
        If these are not rows of a sweep, or the points do not have the same kernels, whose sums
        cannot be compared.
    """
    if not isinstance(table, pd.DataFrame):
        raise not_a("table", "the DataFrame of warpstack.sweep", table)
    if "kernels" in table and "kernel" not in table:
        return table
    needed = ["point", "model", "instructions", "cycles", *_WEIGHTED]
    require(table, needed, "the DataFrame of warpstack.sweep")
    table = checked_table("table", table, texts=("error",))
    rows = _without_failures(table)
    if rows.empty:
        raise InputError("there are no points to look at" + _first_error(table))
    rows = checked_table(
        "table",
        rows,
        positive=("instructions", "cycles"),
        numbers=("point", "kernel", *_WEIGHTED),
        whole=("point", "kernel"),
        texts=("model", "anchor", "app", "gpu", "gpu_changes", "name", "trace_digest"),
    ).reset_index(drop=True)
    axes = axes_of(rows)
    for axis in axes:
        if not rows[axis].map(_is_plain).all():
            raise InputError(f"table: the axis {axis} has values that are neither numbers nor text")
    # Values of points that failed may have been of other kinds.
    rows = rows.assign(**{axis: rows[axis].infer_objects() for axis in axes})
    keys = ["point", *axes, *(name for name in ("app", "gpu") if name in rows), "model"]
    keys += ["anchor"] if "anchor" in rows else []
    launch = [name for name in _LAUNCH if name in rows]
    again = rows.duplicated([*keys, *launch])
    if launch and again.any():
        row = rows[again].iloc[0]
        raise InputError(
            f"point {row['point']} has {row['model']} of kernel {row[launch[0]]} twice; several "
            "applications need a column app, several sweeps different points"
        )
    totals = added_up(rows, [*keys, *(name for name in SETTINGS if name in rows)])
    apps = totals["app"].astype(str) if "app" in totals else pd.Series("", index=totals.index)
    for app, group in totals.groupby(apps, sort=False):
        if varies(group["kernels"]):
            ordered = group.sort_values("kernels", kind="stable")
            few, most = (
                f"{row['model']} at point {row['point']} has {row['kernels']} kernels"
                for row in (ordered.iloc[0], ordered.iloc[-1])
            )
            raise InputError(
                f"{few}{f' of {app}' if app else ''}, {most}; sums of different kernels cannot be "
                "compared"
            )
    return totals


@checked
def speedups(
    table: pd.DataFrame, baseline: Mapping[str, Any], *, model: str | None = None
) -> pd.DataFrame:
    """Return `point_totals` with the performance relative to that at a chosen point.

    Performance is 1 / time: ``clock_ghz / cycles`` where the clock is an axis, otherwise
    ``1 / cycles``.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`.
    baseline
        Values of the axes at the point that has a speedup of 1: of all axes that vary.
    model
        Relative to this model for all (MDM, Figures 11 and 12, take the simulation); by default
        each model is relative to itself.

    Returns
    -------
    DataFrame
        The totals with a column ``speedup``.

    Raises
    ------
    InputError
        If the point or the model is not in the table, or several points are there.
    """
    totals = point_totals(table)
    performance = 1 / totals["cycles"]
    if "clock_ghz" in totals:
        totals = checked_table("table", totals, positive=("clock_ghz",))
        performance = performance * totals["clock_ghz"]
    at = _at(totals, baseline)
    check_fixed(at, [], "baseline")
    if model is not None:
        at = at[at["model"] == model]
        if at.empty:
            raise unknown("model", model, totals["model"].unique(), where="the table")
    keys = [name for name in ("app", *(() if model else ("model",))) if name in totals]
    _check_one_each(at, keys, "baseline")
    if not keys:
        return totals.assign(speedup=performance / performance[at.index[0]])
    base = performance[at.index].set_axis(pd.MultiIndex.from_frame(at[keys]))
    own = pd.MultiIndex.from_frame(totals[keys])
    base = base.reindex(own)
    if base.isna().any():
        absent = own[int(base.isna().to_numpy().argmax())]
        raise InputError(f"baseline: there is no point of {', '.join(map(str, absent))}")
    return totals.assign(speedup=performance.to_numpy() / base.to_numpy())


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return printable_text(value) == value
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def axes_of(table: pd.DataFrame) -> list[str]:
    """Return the columns that are fields of `Gpu`: the axes of a sweep."""
    return [name for name in table.columns if name in Gpu.fields()]


def slice_of(
    table: pd.DataFrame, over: list[str], where: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return the points to draw over some axes: of one application, with all other axes fixed.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep` or of `point_totals`.
    over
        The axes to draw over.
    where
        Values of others.

    Raises
    ------
    InputError
        If an axis is not in the table, or another one still varies, and not in step with the only
        one that is drawn over.
    """
    totals = point_totals(table)
    for axis in over:
        if axis not in axes_of(totals):
            raise unknown("axis", axis, axes_of(totals), where="this sweep")
    if len(set(over)) < len(over):
        raise InputError(f"{over[0]} is given twice; choose two axes")
    one_application(totals)
    totals = _at(totals, where or {})
    check_fixed(totals, [*over, *in_step(totals, over)], "where")
    _check_one_each(totals, [*over, "model"], "where")
    # Texts have no order but that of the sweep.
    numeric = [axis for axis in over if pd.api.types.is_numeric_dtype(totals[axis])]
    return totals.sort_values(numeric, kind="stable") if numeric else totals


def in_step(totals: pd.DataFrame, over: list[str]) -> list[str]:
    """Return the axes that rise and fall with the only axis that is drawn over."""
    if len(over) != 1 or not pd.api.types.is_numeric_dtype(totals[over[0]]):
        return []
    found = []
    for axis in axes_of(totals):
        if axis in over or not varies(totals[axis]):
            continue
        pairs = totals[[*over, axis]].drop_duplicates().sort_values(over)
        once = not pairs[over[0]].duplicated().any()
        if once and pd.api.types.is_numeric_dtype(pairs[axis]):
            steps = pairs[axis].diff().iloc[1:]
            if (steps > 0).all() or (steps < 0).all():
                found.append(axis)
    return found


def one_application(totals: pd.DataFrame) -> None:
    """Raise `InputError` if there are several applications, or several GPUs."""
    if "app" in totals and varies(totals["app"]):
        apps = totals["app"].unique()
        raise InputError(
            f"the table has {len(apps)} applications; choose one: table[table['app'] == {shown(apps[0])}]"
        )
    if "gpu" in totals and varies(totals["gpu"]):
        gpus = totals["gpu"].unique()
        raise InputError(
            f"the table has {len(gpus)} GPUs, {', '.join(map(str, gpus))}; choose one: "
            f"table[table['gpu'] == {shown(gpus[0])}]"
        )


def check_fixed(totals: pd.DataFrame, over: list[str], argument: str) -> None:
    """Raise `InputError` if an axis that is not drawn over has several values."""
    for axis in axes_of(totals):
        if axis not in over and varies(totals[axis]):
            some = totals[axis].unique()[0]
            raise InputError(
                f"{axis} has {totals[axis].nunique()} values; choose one: {argument}={{{shown(axis)}: "
                f"{plain(some)!r}}}"
            )


def _check_one_each(totals: pd.DataFrame, keys: list[str], argument: str) -> None:
    """Raise `InputError` if several points have the same values in some columns."""
    if not keys:
        place = pd.Series(0, index=totals.index)
    else:
        place = totals.groupby(keys, sort=False, dropna=False).ngroup()
    again = place[place.duplicated()]
    if len(again):
        points = totals["point"][place == again.iloc[0]].unique()
        raise InputError(
            f"{argument}: points {', '.join(map(str, points[:4]))} are at one place; keep one of them, "
            f"such as table[table['point'] != {plain(points[-1])}]"
        )


def with_fields(totals: pd.DataFrame, gpu: GpuLike | None) -> dict[str, Any]:
    """Return the columns by name, and every field of the GPU of each point if one is given."""
    columns: dict[str, Any] = {str(name): totals[name].to_numpy() for name in totals.columns}
    if gpu is None:
        return columns
    base, axes = as_gpu(gpu), axes_of(totals)
    values = [
        base.replace(**{k: plain(v) for k, v in point.items()}).values()
        for point in _records(totals[axes])
    ]
    return {**{name: [point[name] for point in values] for name in base.values()}, **columns}


def varies(column: pd.Series[Any]) -> bool:
    """Return whether a column has several values."""
    return len(column.unique()) > 1


def plain(value: Any) -> Any:
    """Return a NumPy number as Python's, which messages print shorter."""
    return value.item() if hasattr(value, "item") else value


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[Hashable, Any]] = table.to_dict("records")
    return [{str(k): v for k, v in row.items()} for row in rows] or [{} for _ in table.index]


def _at(totals: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    for axis, value in where.items():
        if axis not in axes_of(totals):
            raise unknown("axis", axis, axes_of(totals), where="this sweep")
        if isinstance(value, (list, tuple)):  # a sweep has several numbers as text
            same = totals[axis].map(value_text) == value_text(value)
        else:
            same = totals[axis] == value
        matching = totals[same]
        if matching.empty:
            there = shown([plain(v) for v in totals[axis].unique()])
            raise InputError(
                f"{axis} = {shown(value)} is not a value of the sweep; there are {there}"
            )
        totals = matching
    return totals


def _without_failures(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of points that have all their kernels."""
    if "error" not in table:
        return table
    failed = table["error"].fillna("").astype(str) != ""
    if not failed.any():
        return table
    # A point that failed has a row per model, or one row of no model.
    keys = [name for name in ("point", "app") if name in table]
    unnamed = failed & (table["model"].isna() | (table["model"] == ""))
    bad = table[keys].apply(tuple, axis=1)
    gone = bad.isin(set(bad[unnamed]))
    by_model = table[[*keys, "model"]].apply(tuple, axis=1)
    return table[~gone & ~by_model.isin(set(by_model[failed]))]


def _first_error(table: pd.DataFrame) -> str:
    if "error" not in table or table.empty:
        return ""
    return f"; all failed, the first with: {table['error'].iloc[0]}"
