"""What ``nsys export --type sqlite`` writes: the operations of a GPU in tables of a database.

The tables are those of NVIDIA's "SQLite Export Schema Reference" for Nsight Systems: a row per kernel,
copy and fill, with times in ns and sizes in bytes; names are rows of ``StringIds``. What a version does
not write is left out; what no version leaves out must be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pandas as pd

from warpstack._util.arguments import printable
from warpstack.errors import InputError, shown, warn
from warpstack.validation.reference.common import plain_name
from warpstack.validation.reference.operations import table_of, warn_of_directions

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["MAGIC", "read_timeline"]

#: The first bytes of a database.
MAGIC = b"SQLite format 3\0"
_TABLES = {
    "kernel": "CUPTI_ACTIVITY_KIND_KERNEL",
    "copy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memset": "CUPTI_ACTIVITY_KIND_MEMSET",
}
#: Graphs that the profiler has not taken apart.
_WHOLE_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_NEEDED = {
    "kernel": ("start", "end"),
    "copy": ("start", "end", "bytes", "copyKind"),
    "memset": ("start", "end", "bytes"),
}
_PERHAPS = ("streamId", "deviceId", "correlationId")
#: Columns of names, the one that says most first.
_NAMES = ("demangledName", "mangledName", "shortName")
#: Values of ``copyKind`` (``CUpti_ActivityMemcpyKind``, and unified memory); arrays are on the device.
_DIRECTIONS = {
    **{1: "HtoD", 2: "DtoH", 3: "HtoD", 4: "DtoH", 5: "DtoD", 6: "DtoD", 7: "DtoD", 8: "DtoD"},
    **{9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD"},
}
_AGAIN = "export it again: nsys export --type sqlite REPORT"


def read_timeline(path: Path) -> pd.DataFrame:
    """Return the operations of a database; see `warpstack.validation.reference.read_timeline`.

    Raises
    ------
    InputError
        If it is damaged, is of another program, or has no operation of a GPU.
    """
    import sqlite3

    where = printable(path)
    try:
        # Read only, and without files beside it.
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True)
        try:
            rows = list(_operations(connection, where))
            graphs = _count(connection, _WHOLE_GRAPHS)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InputError(f"{where}: damaged database: {error}; {_AGAIN}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: damaged database: a name is not UTF-8: {error.reason}; {_AGAIN}"
        ) from None
    are = (
        "launch of a graph is in it as a whole"
        if graphs == 1
        else "launches of graphs are in it as wholes"
    )
    whose = "its" if graphs == 1 else "their"
    whole = f"{graphs} {are}: {whose} kernels are missing; profile with nsys profile --cuda-graph-trace=node"
    if not rows:
        why = whole if graphs else ""
        raise InputError(
            f"{where}: no kernel, copy or fill of a GPU (tables {', '.join(_TABLES.values())}); "
            + (why or "profile with nsys profile --trace=cuda, then nsys export --type sqlite")
        )
    if graphs:
        warn(f"{where}: {whole}", UserWarning)
    warn_of_directions(rows, where)
    return table_of(rows)


def _operations(connection: Connection, where: str) -> Iterator[dict[str, Any]]:
    devices = dict(_pairs(connection, "TARGET_INFO_GPU", "id", "name"))
    texts = dict(_pairs(connection, "StringIds", "id", "value"))
    for kind, table in _TABLES.items():
        columns = _columns(connection, table)
        if not columns:
            continue  # nsys makes a table when it has a first row for it
        missing = [name for name in _NEEDED[kind] if name not in columns]
        names = [name for name in _NAMES if name in columns]
        if kind == "kernel" and not names:
            missing.append(_NAMES[0])
        if missing:
            raise InputError(
                f"{where}: the table {table} has no column {missing[0]}; {_AGAIN} with a newer nsys"
            )
        wanted = [*_NEEDED[kind], *(name for name in _PERHAPS if name in columns)]
        wanted += names[:1] if kind == "kernel" else []
        listed = ", ".join(f'"{name}"' for name in wanted)
        for place, values in enumerate(connection.execute(f"SELECT {listed} FROM {table}"), 1):
            row = dict(zip(wanted, values, strict=True))
            at = f"{where}: {table}: row {place}"
            yield {
                **_what(kind, row, texts, at),
                **_times(row, at),
                "stream": _number(row, "streamId", at, -1),
                "bytes": _needed(row, "bytes", at) if kind != "kernel" else 0,
                "device": _device(row, devices),
                "correlation": _number(row, "correlationId", at, -1),
                "bytes_step": 1,
            }


def _what(kind: str, row: Mapping[str, Any], texts: Mapping[Any, Any], at: str) -> dict[str, str]:
    if kind == "kernel":
        column = next(name for name in _NAMES if name in row)
        text = texts.get(row[column])
        if not isinstance(text, str):
            raise InputError(
                f"{at}: {column} = {shown(row[column])}: StringIds has no such text; {_AGAIN}"
            )
        if not text.strip():
            raise InputError(
                f"{at}: {column} = {shown(row[column])}: its text in StringIds is empty ({shown(text)}); "
                f"{_AGAIN}"
            )
        return {"operation": kind, "name": plain_name(text), "direction": "", "full_name": text}
    if kind == "memset":
        name, direction = "CUDA memset", ""
    else:
        direction = _DIRECTIONS.get(_needed(row, "copyKind", at), "")
        name = f"CUDA memcpy {direction}".strip()
    return {"operation": kind, "name": name, "direction": direction, "full_name": name}


def _times(row: Mapping[str, Any], at: str) -> dict[str, float]:
    start, end = (_needed(row, name, at) for name in ("start", "end"))
    if end < start:
        raise InputError(f"{at}: end = {end} is before start = {start}; {_AGAIN}")
    return {"start_us": start / 1e3, "end_us": end / 1e3}


def _needed(row: Mapping[str, Any], column: str, at: str) -> int:
    """Return a time, a size or a kind, which each row has."""
    value = row[column]
    if value is None:
        raise InputError(f"{at}: {column} is NULL; {_AGAIN}")
    if not isinstance(value, int):
        raise InputError(f"{at}: {column} = {shown(value)} is not a number; {_AGAIN}")
    if value < 0:
        raise InputError(f"{at}: {column} = {value}: expected 0 or more; {_AGAIN}")
    return value


def _number(row: Mapping[str, Any], column: str, at: str, absent: int) -> int:
    value = row.get(column)
    if value is None:
        return absent
    if not isinstance(value, int) or not -1 <= value < 2**63:
        raise InputError(f"{at}: {column} = {shown(value)} is not a number; {_AGAIN}")
    return value


def _device(row: Mapping[str, Any], devices: Mapping[Any, Any]) -> str:
    number = row.get("deviceId")
    name = devices.get(number)
    if number is None:
        return ""
    return f"{name} ({number})" if isinstance(name, str) else str(number)


def _columns(connection: Connection, table: str) -> set[str]:
    """Return the columns of a table; none where there is no such table."""
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def _pairs(connection: Connection, table: str, key: str, value: str) -> list[tuple[Any, Any]]:
    if not {key, value} <= _columns(connection, table):
        return []
    return connection.execute(f'SELECT "{key}", "{value}" FROM {table}').fetchall()


def _count(connection: Connection, table: str) -> int:
    if not _columns(connection, table):
        return 0
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
