"""What the host of a program does, call by call: the columns of `App.operations`.

Within the package a table is a dictionary of columns, so that programs that only predict load no pandas:
numbers are NumPy arrays, texts are lists, and `after` is a list of tuples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, not_one_of, shown

#: A table: its columns by name.
Columns = dict[str, Any]

#: The columns in their order, with their types: `text`, `integer`, `bool` or `rows` (tuples of row numbers).
COLUMNS = {
    "operation": "text",
    "name": "text",
    "api": "text",
    "thread": "integer",
    "process": "integer",
    "stream": "integer",
    "blocking": "bool",
    "priority": "integer",
    "kernel": "integer",
    "event": "integer",
    "direction": "text",
    "bytes": "integer",
    "pinned": "bool",
    "asynchronous": "bool",
    "programmatic": "bool",
    "graph": "integer",
    "after": "rows",
    "parent": "integer",
    "begins_after": "rows",
    "host_ns": "integer",
    "work_ns": "integer",
    "connections": "integer",
    "flops": "integer",
    "arithmetic": "text",
    "tensor_cores": "bool",
}
#: Columns that tables of older traces lack.
LATER_COLUMNS = (
    *("programmatic", "begins_after", "work_ns", "connections"),
    *("flops", "arithmetic", "tensor_cores"),
)
#: The connections of a program that does not set CUDA_DEVICE_MAX_CONNECTIONS.
USUAL_CONNECTIONS = 8
#: Columns of numbers of earlier rows.
_ROW_LISTS = ("after", "begins_after")
#: The values of the column `operation`. Their places are numbers of cpp/stand_ins/log/operation_log.h.
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
#: The values of the column `direction`; likewise.
DIRECTIONS = ("", "HtoD", "DtoH", "DtoD", "HtoH", "PtoP")
#: The values of the column `arithmetic`: the numbers that a library computes with. Their places are
#: numbers of cpp/stand_ins/log/computation.h.
NUMBER_KINDS = ("", "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int32")
#: Values of rows that a column does not concern.
ABSENT: dict[str, Any] = {
    "name": "",
    "api": "",
    "thread": 0,
    "process": 0,
    "stream": -1,
    "blocking": False,
    "priority": 0,
    "kernel": -1,
    "event": -1,
    "direction": "",
    "bytes": 0,
    "pinned": False,
    "asynchronous": False,
    "programmatic": False,
    "graph": -1,
    "after": (),
    "parent": -1,
    "begins_after": (),
    "host_ns": 0,
    "work_ns": 0,
    "connections": USUAL_CONNECTIONS,
    "flops": 0,
    "arithmetic": "",
    "tensor_cores": False,
}
#: Columns of texts that are one of some.
CHOICES = {"operation": OPERATIONS, "direction": DIRECTIONS, "arithmetic": NUMBER_KINDS}
#: The streams that have no calls that make them.
LEGACY_STREAM = 0
NO_STREAM = -1
#: The least value of columns of numbers; `priority` has none.
_LEAST = {
    "thread": 0,
    "process": 0,
    "stream": -1,
    "kernel": -1,
    "event": -1,
    "bytes": 0,
    "graph": -1,
    "parent": -1,
    "host_ns": 0,
    "work_ns": 0,
    "connections": 1,
    "flops": 0,
}
#: Operations that need an event, and those that are in a stream.
_WITH_EVENT = ("event_record", "event_wait", "event_synchronize")
IN_STREAM = ("kernel", "copy", "memset", "event_record", "event_wait", "graph_launch")


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows as a table; what a row lacks is absent."""
    return {
        name: _column(kind, [row.get(name, ABSENT.get(name)) for row in rows])
        for name, kind in COLUMNS.items()
    }


def _column(kind: str, values: list[Any]) -> Any:
    if kind == "integer":
        return np.array(values, np.int64)
    return np.array(values, bool) if kind == "bool" else values


def derived(names: Sequence[str]) -> Columns:
    """Return the table of a trace without one: kernels of these names, in the default stream."""
    return columns_of(
        [
            {
                "operation": "kernel",
                "name": name,
                "stream": LEGACY_STREAM,
                "blocking": True,
                "kernel": place,
                "asynchronous": True,
            }
            for place, name in enumerate(names)
        ]
    )


def count(columns: Columns) -> int:
    """Return the number of rows."""
    return len(columns["operation"])


def check(
    columns: Columns, kernels: int, where: str, remedy: str = "; trace the program again"
) -> None:
    """Raise `InputError` unless the values of a table with the right types are possible.

    Parameters
    ----------
    columns
        The table.
    kernels
        How many kernels the trace has.
    where
        What messages begin with: the file.
    remedy
        What they end with.
    """
    rows = count(columns)

    def refuse(row: int, column: str, value: object, expected: str) -> InputError:
        return InputError(
            f"{where}: row {row}: {column} = {shown(value)}: expected {expected}{remedy}"
        )

    for column, choices in CHOICES.items():
        values = columns[column]
        if wrong := set(values).difference(choices):
            row = next(i for i, value in enumerate(values) if value in wrong)
            error = not_one_of(f"{where}: row {row}: {column}", values[row], filter(None, choices))
            raise InputError(f"{error}{remedy}")
    for column, least in _LEAST.items():
        below = np.flatnonzero(columns[column] < least)
        if len(below):
            row = int(below[0])
            raise refuse(row, column, int(columns[column][row]), f"at least {least}")
    operations = np.array(columns["operation"], object) if rows else np.empty(0, object)
    counted = np.flatnonzero(columns["flops"])
    for row in counted.tolist():
        if not columns["arithmetic"][row]:
            expected = f"one of {', '.join(filter(None, NUMBER_KINDS))} in a row with flops"
            raise refuse(row, "arithmetic", "", expected)
    beyond = np.flatnonzero(columns["kernel"] >= kernels)
    if len(beyond):
        row = int(beyond[0])
        value = int(columns["kernel"][row])
        raise refuse(row, "kernel", value, f"-1 or one of the {kernels} kernels")
    stray = np.flatnonzero((columns["kernel"] >= 0) & (operations != "kernel"))
    if len(stray):
        row = int(stray[0])
        raise refuse(
            row, "kernel", int(columns["kernel"][row]), f"-1 in a row of {operations[row]}"
        )
    for column, names in (("event", _WITH_EVENT), ("stream", IN_STREAM)):
        lacking = np.flatnonzero(np.isin(operations, names) & (columns[column] < 0))
        if len(lacking):
            row = int(lacking[0])
            raise refuse(row, column, -1, f"a number in a row of {operations[row]}")
    late = np.flatnonzero(columns["parent"] >= np.arange(rows))
    if len(late):
        row = int(late[0])
        raise refuse(row, "parent", int(columns["parent"][row]), "an earlier row")
    for column in _ROW_LISTS:
        for row, before in enumerate(columns[column]):
            if before and not all(0 <= other < row for other in before):
                raise refuse(row, column, before, "earlier rows")


def begins_of_threads(columns: Columns) -> list[tuple[int, ...]]:
    """Return the column `begins_after` of a table without it.

    What made a thread is not known then: its first row begins after the row before it in its process, of
    whatever thread, which is there already when the thread makes its first call.
    """
    found: list[tuple[int, ...]] = [()] * count(columns)
    last: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    pairs = zip(columns["process"].tolist(), columns["thread"].tolist(), strict=True)
    for row, pair in enumerate(pairs):
        if pair not in seen:
            seen.add(pair)
            if pair[0] in last:
                found[row] = (last[pair[0]],)
        last[pair[0]] = row
    return found


def chosen(columns: Columns, kept: Sequence[int]) -> Columns:
    """Return the table of a trace with some of the kernels, named by their places in this one."""
    places = {old: new for new, old in enumerate(kept)}
    kernels = [places.get(kernel, -1) for kernel in columns["kernel"].tolist()]
    return {**columns, "kernel": np.array(kernels, np.int64)}


def frame(columns: Columns) -> pd.DataFrame:
    """Return the table as a DataFrame."""
    return pd.DataFrame({name: columns[name] for name in COLUMNS}, columns=list(COLUMNS))


def has_work(columns: Columns) -> bool:
    """Return whether there is anything that takes the GPU time."""
    return not _WORK.isdisjoint(columns["operation"])


def summary(columns: Columns) -> str:
    """Return how many operations of which kinds there are, in one line."""
    kinds: dict[str, int] = {}
    for kind in columns["operation"]:
        kinds[kind] = kinds.get(kind, 0) + 1
    copied = sum(
        number
        for kind, number in zip(columns["operation"], columns["bytes"].tolist(), strict=True)
        if kind == "copy"
    )
    waits = sum(kinds.get(kind, 0) for kind in _WAITS)
    parts = [
        _counted(kinds.get("kernel", 0), "launch", "launches"),
        _counted(kinds.get("copy", 0), "copy", "copies")
        + (f" ({_size(copied)})" if copied else ""),
        _counted(kinds.get("memset", 0), "memset", "memsets"),
        _counted(kinds.get("graph_launch", 0), "launch of a graph", "launches of graphs"),
        _counted(kinds.get("event_record", 0), "event recorded", "events recorded"),
        _counted(waits, "wait of the host", "waits of the host"),
        _counted(kinds.get("library", 0), "call of a library", "calls of libraries"),
    ]
    used = {
        pair
        for pair in zip(columns["process"].tolist(), columns["stream"].tolist(), strict=True)
        if pair[1] >= 0
    }
    parts.append(_counted(len(used), "stream", "streams"))
    total = _counted(count(columns), "operation", "operations")
    told = ", ".join(part for part in parts if not part.startswith("0 "))
    if not _MANAGED.isdisjoint(columns["api"]):
        told += "; managed memory that moves by itself is not among them"
    return f"{total}: {told}" if told else total


#: Functions that allocate managed memory.
_MANAGED = frozenset(("cudaMallocManaged", "cuMemAllocManaged"))
_WORK = frozenset(("kernel", "copy", "memset", "library", "nccl"))
_WAITS = ("event_synchronize", "stream_synchronize", "device_synchronize")


def _size(count: int) -> str:
    """Return a number of bytes in the largest unit of which there is one at least."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 2**power:
            return f"{count / 2**power:,.1f} {unit}"
    return "1 byte" if count == 1 else f"{count} bytes"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def without_overlaps(columns: Columns) -> Columns:
    """Return the same operations on a GPU without programmatic dependent launch."""
    return {**columns, "programmatic": np.zeros_like(columns["programmatic"])}
