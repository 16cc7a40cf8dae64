"""What a program's host does, as time lines read it: the table of an application, and checks of it."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import numpy as np

from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, not_one_of, shown
from warpstack.traces.trace import App

__all__ = ["COLUMNS", "DIRECTIONS", "OPERATIONS", "Columns", "operations_of"]

#: A table as its columns by name: arrays of numbers, lists of texts and of tuples.
Columns = dict[str, Any]

#: Columns with what rows have where a table leaves the column out; None: it cannot.
COLUMNS: dict[str, Any] = {
    "operation": None,
    "name": "",
    "api": "",
    "thread": 0,
    "process": 0,
    "stream": 0,
    "blocking": True,
    "priority": 0,
    "kernel": -1,
    "event": -1,
    "direction": "",
    "bytes": 0,
    "pinned": False,
    "asynchronous": True,
    "graph": -1,
    "after": (),
    "parent": -1,
    "host_ns": 0,
}
_TEXTS = ("operation", "name", "api", "direction")
_LISTS = ("after",)
_FLAGS = ("blocking", "pinned", "asynchronous")
_LEAST = {"thread": 0, "process": 0, "stream": -1, "kernel": -1, "bytes": 0, "parent": -1}

OPERATIONS = (
    "kernel",
    "copy",
    "memset",
    "event_record",
    "event_wait",
    "event_synchronize",
    "stream_synchronize",
    "device_synchronize",
    "allocate",
    "free",
    "graph_launch",
    "host_function",
    "range_push",
    "range_pop",
    "stream_create",
    "stream_destroy",
    "nccl",
    "library",
)
DIRECTIONS = ("HtoD", "DtoH", "DtoD", "HtoH", "PtoP")


def operations_of(app: App, table: pd.DataFrame | None) -> Columns:
    """Return the operations of an application: those given, its own, or its kernels in one stream.

    Raises
    ------
    InputError
        If a row names an operation, a direction, a kernel or a row that there is not.
    """
    if table is None:
        table = getattr(app, "operations", None)
    if table is None:
        names = [kernel.short_name for kernel in app.kernels]
        found = {
            "operation": ["kernel"] * len(names),
            "name": names,
            "kernel": np.arange(len(names)),
        }
        return _columns(found, len(names), len(names))
    given = {str(name): table[name] for name in table.columns if name in COLUMNS}
    return _columns(given, len(table), len(app.kernels))


def _columns(given: dict[str, Any], rows: int, kernels: int) -> Columns:
    if "operation" not in given:
        raise InputError(
            "operations: there is no column operation; expected the columns of App.operations"
        )
    columns: Columns = {}
    for name, usual in COLUMNS.items():
        values = given.get(name)
        if name in _TEXTS or name in _LISTS:
            columns[name] = [usual] * rows if values is None else _texts_or_lists(values, usual)
        else:
            columns[name] = _numbers(name, values, usual, rows)
    for name, known in (("operation", OPERATIONS), ("direction", ("", *DIRECTIONS))):
        if not _all_known(columns[name], known):
            row = next(i for i, value in enumerate(columns[name]) if value not in known)
            choices = [choice for choice in known if choice]
            raise not_one_of(f"operations: row {row}: {name}", columns[name][row], choices)
    for name, least in _LEAST.items():
        _check(columns, name, columns[name] < least, f"at least {least}")
    _check(columns, "kernel", columns["kernel"] >= kernels, f"-1 or one of {kernels} kernels")
    _check(columns, "parent", columns["parent"] >= np.arange(rows), "an earlier row")
    _check(columns, "host_ns", columns["host_ns"] < 0, "at least 0")
    columns["after"] = [
        _earlier(row, before) if before else () for row, before in enumerate(columns["after"])
    ]
    return columns


def _texts_or_lists(values: Any, usual: Any) -> list[Any]:
    """Return the values of a column; a value that a table of unlike rows lacks (NaN) is the usual one."""
    found: list[Any] = np.asarray(values, object).tolist()
    if usual is None:
        return found
    return [usual if value is None or value != value else value for value in found]


def _all_known(values: list[Any], known: Collection[str]) -> bool:
    try:
        return set(known).issuperset(values)
    except TypeError:  # a value that no set can have is none of them
        return False


def _earlier(row: int, before: Any) -> tuple[int, ...]:
    """Return the rows that one follows as whole numbers, or raise `InputError`."""
    try:
        found = tuple(operator.index(other) for other in before)
    except TypeError:
        found = (row,)
    if not all(0 <= other < row for other in found):
        raise InputError(f"operations: row {row}: after = {shown(before)}: expected earlier rows")
    return found


def _numbers(name: str, values: Any, usual: Any, rows: int) -> Any:
    kind = bool if name in _FLAGS else np.float64 if name == "host_ns" else np.int64
    if values is None:
        return np.full(rows, usual, kind)
    try:
        found = np.asarray(values, np.float64)
        # A table of unlike rows has NaN where a row lacks a value.
        found = np.where(np.isnan(found), usual, found)
        if not np.isfinite(found).all():
            raise ValueError
        return found.astype(kind)
    except (TypeError, ValueError):
        raise InputError(f"operations: the column {name} has values that are not numbers") from None


def _check(columns: Columns, name: str, wrong: Any, expected: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"operations: row {row}: {name} = {columns[name][row]}: expected {expected}"
        )
