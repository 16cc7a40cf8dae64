"""Reads what the stand-ins write down of a program's calls: cpp/stand_ins/log/operation_log.h."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from warpstack._util.arguments import printable_text
from warpstack.traces.operations import DIRECTIONS, NUMBER_KINDS, OPERATIONS, Columns
from warpstack.traces.trace import short_name

#: LogRow.
_ROW = np.dtype(
    [
        ("kind", "u1"),
        ("direction", "u1"),
        ("blocking", "u1"),
        ("pinned", "u1"),
        ("asynchronous", "u1"),
        ("arithmetic", "u1"),
        ("tensor_cores", "u1"),
        ("reserved", "u1"),
        ("priority", "i4"),
        ("reserved_too", "i4"),
        ("process", "i8"),
        ("number", "i8"),
        ("thread", "i8"),
        ("stream", "i8"),
        ("event", "i8"),
        ("graph", "i8"),
        ("bytes", "u8"),
        ("launch", "u8"),
        ("parent", "u8"),
        ("host_ns", "u8"),
        ("name", "u8"),
        ("api", "u8"),
        ("flops", "u8"),
    ]
)
#: Kinds of rows that say of another one what it waits for, what its thread begins after, what it took.
_EDGE = 255
_BEGIN = 254
_WORK = 253
_HEAD = struct.Struct("=qQQ")
_LARGEST = np.iinfo(np.int64).max


def read(folder: Path, launches: Sequence[int]) -> Columns | None:
    """Return the operations of a program that has ended; None if it has written none.

    Parameters
    ----------
    folder
        The folder that the program wrote to. What a killed program has not finished is left out.
    launches
        The launches that have a trace, in its order.
    """
    data = _content(folder / "operations")
    found = np.frombuffer(data[: len(data) // _ROW.itemsize * _ROW.itemsize], _ROW)
    rows = found[found["kind"] < _WORK]
    if not len(rows):
        return None
    names = _names(_content(folder / "operation-names"))
    processes = rows["process"].tolist()
    kinds = rows["kind"].tolist()
    known: dict[tuple[int, int, bool], str] = {}

    def text(process: int, number: int, is_kernel: bool) -> str:
        key = process, number, is_kernel
        if key not in known:
            name = names.get((process, number), "")
            known[key] = short_name(name) if is_kernel else printable_text(name)
        return known[key]

    kernels = {launch: place for place, launch in enumerate(launches)}
    row_of_launch = {launch: row for row, launch in enumerate(rows["launch"].tolist()) if launch}
    return {
        "operation": [OPERATIONS[kind] for kind in kinds],
        "name": [
            text(process, number, kind == 0)
            for process, number, kind in zip(processes, rows["name"].tolist(), kinds, strict=True)
        ],
        "api": [
            text(process, number, False)
            for process, number in zip(processes, rows["api"].tolist(), strict=True)
        ],
        "thread": rows["thread"].astype(np.int64),
        "process": _in_order(processes),
        "stream": rows["stream"].astype(np.int64),
        "blocking": rows["blocking"].astype(bool),
        "priority": rows["priority"].astype(np.int64),
        "kernel": np.array([kernels.get(n, -1) for n in rows["launch"].tolist()], np.int64),
        "event": rows["event"].astype(np.int64),
        "direction": [DIRECTIONS[number] for number in rows["direction"].tolist()],
        "bytes": np.minimum(rows["bytes"], _LARGEST).astype(np.int64),
        "pinned": rows["pinned"].astype(bool),
        "asynchronous": rows["asynchronous"].astype(bool),
        "graph": _graphs(processes, rows["graph"].tolist()),
        "after": _dependencies(rows, found[found["kind"] == _EDGE], "process"),
        "parent": np.array([row_of_launch.get(n, -1) for n in rows["parent"].tolist()], np.int64),
        "begins_after": _dependencies(rows, found[found["kind"] == _BEGIN], "parent"),
        "host_ns": np.minimum(rows["host_ns"], _LARGEST).astype(np.int64),
        "work_ns": _work(rows, found[found["kind"] == _WORK]),
        "flops": np.minimum(rows["flops"], _LARGEST).astype(np.int64),
        "arithmetic": [NUMBER_KINDS[number] for number in rows["arithmetic"].tolist()],
        "tensor_cores": rows["tensor_cores"].astype(bool),
    }


def _content(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def _names(data: bytes) -> dict[tuple[int, int], str]:
    """Return the texts by process and number."""
    names = {}
    place = 0
    while place + _HEAD.size <= len(data):
        process, number, length = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        names[process, number] = data[place : place + length].decode("utf-8", "replace")
        place += length
    return names


def _in_order(values: Sequence[object]) -> np.ndarray:
    """Return values as numbers, from 0 in the order in which they come."""
    places: dict[object, int] = {}
    return np.array([places.setdefault(value, len(places)) for value in values], np.int64)


def _graphs(processes: Sequence[int], graphs: Sequence[int]) -> np.ndarray:
    """Return launches of graphs, which each process counts, as numbers over all processes."""
    places: dict[tuple[int, int], int] = {}
    return np.array(
        [
            -1 if graph < 0 else places.setdefault((process, graph), len(places))
            for process, graph in zip(processes, graphs, strict=True)
        ],
        np.int64,
    )


def _places(rows: np.ndarray) -> dict[tuple[int, int], int]:
    """Return the rows by process and number."""
    pairs = zip(rows["process"].tolist(), rows["number"].tolist(), strict=True)
    return {pair: row for row, pair in enumerate(pairs)}


def _work(rows: np.ndarray, works: np.ndarray) -> np.ndarray:
    """Return what the work of each row took on this machine; 0 where it has not run here."""
    found = np.zeros(len(rows), np.int64)
    row_of = _places(rows) if len(works) else {}
    ends = (works[name].tolist() for name in ("process", "number", "bytes"))
    for process, number, took in zip(*ends, strict=True):
        row = row_of.get((process, number))
        if row is not None:
            found[row] = min(took, _LARGEST)
    return found


def _dependencies(rows: np.ndarray, edges: np.ndarray, owner: str) -> list[tuple[int, ...]]:
    """Return of each row the rows that edges name; `owner` of an edge is the process of these."""
    after: list[tuple[int, ...]] = [()] * len(rows)
    if not len(edges):
        return after
    row_of = _places(rows)
    ends = (edges[name].tolist() for name in ("process", "number", owner, "bytes"))
    for process, number, other_process, before in zip(*ends, strict=True):
        row, other = row_of.get((process, number)), row_of.get((other_process, before))
        if row is not None and other is not None:
            after[row] = (*after[row], other)
    return after
