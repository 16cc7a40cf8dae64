"""What a program's host does, as time lines read it: the table of an application, or one that is given."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, shown, unknown
from warpstack.traces.operations import (
    ABSENT,
    CHOICES,
    COLUMNS,
    DIRECTIONS,
    IN_STREAM,
    Columns,
    begins_of_threads,
    check,
)
from warpstack.traces.trace import App

__all__ = ["Columns", "operations_of"]

#: What rows have where a table leaves a column out; it cannot leave out the operation.
_USUAL = {**ABSENT, "operation": None, "stream": 0, "blocking": True, "asynchronous": True}
#: Columns of times, which need not be whole.
_TIMES = ("host_ns", "work_ns")

#: Columns that rows of some operations need a value in, and what that is.
_NEEDED = (
    ("bytes", ("copy", "memset"), "a size"),
    ("kernel", ("kernel",), "a place among the application's kernels, or -1: not traced"),
    ("stream", IN_STREAM, "the number of its stream; 0 is the default stream"),
)


def operations_of(app: App, table: pd.DataFrame | None) -> Columns:
    """Return the operations of an application: those given, its own, or its kernels in one stream.

    Raises
    ------
    InputError
        If a column is unknown; if a row names an operation, a direction, a kernel or a row that there is
        not; or if a copy has no direction, a copy or fill no size, or a row a gap where it needs a value.
    """
    is_given = table is not None
    if table is None:
        table = app.operations
    for name in table.columns:
        if name not in COLUMNS:
            raise unknown("column", name, COLUMNS, where="operations")
    given = {str(name): table[name] for name in table.columns if name in COLUMNS}
    columns = _columns(given, len(table), len(app.kernels))
    if is_given:
        _check_needed(columns, given)
    return columns


def _check_needed(columns: Columns, given: dict[str, Any]) -> None:
    """Raise `InputError` where a row lacks what its operation cannot be without.

    A column that is left out has one value for all rows; a gap in a column is what a row has forgotten.
    """
    gaps: dict[str, Any] = {
        name: pd.isna(given[name]).to_numpy()
        for name in ("bytes", "kernel", "stream")
        if name in given
    }
    if "bytes" not in given:
        gaps["bytes"] = np.ones(len(columns["operation"]), bool)
    operations = np.array(columns["operation"], object)
    lost = np.flatnonzero((operations == "copy") & (np.array(columns["direction"], object) == ""))
    if len(lost):
        ways = ", ".join(filter(None, DIRECTIONS))
        raise InputError(f"operations: row {lost[0]}: direction = '': a copy needs one of {ways}")
    for name, concerned, expected in _NEEDED:
        lost = np.flatnonzero(np.isin(operations, concerned) & gaps.get(name, False))
        if len(lost):
            raise InputError(
                f"operations: row {lost[0]}: {name} is missing: a row of {operations[lost[0]]} needs "
                f"{expected}"
            )


def _columns(given: dict[str, Any], rows: int, kernels: int) -> Columns:
    if "operation" not in given:
        raise InputError(
            "operations: there is no column operation; expected the columns of App.operations"
        )
    columns: Columns = {}
    for name, kind in COLUMNS.items():
        values, usual = given.get(name), _USUAL[name]
        if kind in ("text", "rows"):
            columns[name] = [usual] * rows if values is None else _texts_or_lists(values, usual)
        else:
            columns[name] = _numbers(name, values, usual, rows)
    if "begins_after" not in given:
        columns["begins_after"] = begins_of_threads(columns)
    for name in ("after", "begins_after"):
        columns[name] = [
            _whole(row, name, before) if before else () for row, before in enumerate(columns[name])
        ]
    for name in CHOICES:
        for row, value in enumerate(columns[name]):
            if not isinstance(value, str):
                raise InputError(f"operations: row {row}: {name} = {shown(value)}: expected a text")
    check(columns, kernels, "operations", remedy="")
    return columns


def _texts_or_lists(values: Any, usual: Any) -> list[Any]:
    """Return the values of a column; a value that a table of unlike rows lacks (NaN) is the usual one."""
    found: list[Any] = np.asarray(values, object).tolist()
    if usual is None:
        return found
    return [usual if value is None or value != value else value for value in found]


def _whole(row: int, name: str, before: Any) -> tuple[int, ...]:
    """Return rows that one names as whole numbers."""
    try:
        return tuple(operator.index(other) for other in before)
    except TypeError:
        raise InputError(
            f"operations: row {row}: {name} = {shown(before)}: expected earlier rows"
        ) from None


def _numbers(name: str, values: Any, usual: Any, rows: int) -> Any:
    kind = bool if COLUMNS[name] == "bool" else np.float64 if name in _TIMES else np.int64
    if values is None:
        return np.full(rows, usual, kind)
    try:
        found = np.asarray(values, np.float64)
        # A table of unlike rows has NaN where a row lacks a value.
        found = np.where(np.isnan(found), usual, found)
    except (TypeError, ValueError):
        raise InputError(f"operations: the column {name} has values that are not numbers") from None
    wrong, expected = ~np.isfinite(found) | (np.abs(found) >= 2.0**63), "a number below 2^63"
    if kind is np.int64 and not wrong.any():
        wrong, expected = found != np.floor(found), "a whole number"
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"operations: row {row}: {name} = {shown(found[row].item())}: expected {expected}"
        )
    return found.astype(kind)
