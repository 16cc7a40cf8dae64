"""What a profiler saw a GPU do: kernels, copies and fills, with their streams and times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from warpstack.errors import InputError, shown, warn
from warpstack.traces.operations import DIRECTIONS
from warpstack.validation.reference.common import (
    Line,
    Section,
    number,
    plain_name,
    scale_of_unit,
)
from warpstack.validation.reference.nsys import times_of
from warpstack.validation.reference.torch import gpu_events

__all__ = ["named_copy", "of_nsys", "of_torch", "table_of", "warn_of_directions"]

#: How profilers name both ends of a copy.
_ENDS = {"h": "H", "host": "H", "d": "D", "device": "D", "p": "P", "peer": "P"}
#: Arrays of textures are in the memory of the device.
_ENDS |= {"a": "D", "array": "D"}
_COPY = re.compile(r"memcpy ([A-Za-z]+?)[- ]?to[- ]?([A-Za-z]+)", re.IGNORECASE)
_SIZE = re.compile(r"Bytes ?\((?P<unit>[A-Za-z]+)\)")
_AGAIN = "export it again: nsys stats --report cuda_gpu_trace --format csv REPORT > trace.csv"
_COLUMNS = (
    *("operation", "name", "stream", "start_us", "end_us", "direction", "bytes", "device"),
    *("full_name", "correlation", "bytes_step"),
)


def of_nsys(sections: Iterable[Section]) -> pd.DataFrame:
    """Return the operations of ``cuda_gpu_trace``: a row per kernel, copy and fill.

    Raises
    ------
    InputError
        If a time, a stream, a name or a number of bytes is none.
    """
    rows = []
    where = ""
    for section in sections:
        times = times_of(section.header)
        start, duration = times["Start"], times["Duration"]
        sizes = [match for cell in section.header if (match := _SIZE.fullmatch(cell))]
        for line, row in section.rows():
            where, name = line.where, row["Name"]
            if not name.strip():
                raise line.error(
                    f"Name = {shown(name)}: expected the name of an operation; {_AGAIN}"
                )
            began = _time(line, start, row)
            one: dict[str, Any] = {
                **_kind_of(name, is_kernel=bool(row.get("GrdX"))),
                "stream": _whole(line, "Strm", row),
                "start_us": began * 1e6,
                "end_us": (began + _time(line, duration, row)) * 1e6,
                "bytes": 0,
                "device": row.get("Device", ""),
                "correlation": _whole(line, "CorrId", row),
                "bytes_step": 1,
            }
            if one["operation"] != "kernel":
                if not sizes:
                    raise line.error(f"a copy or fill, but there is no column Bytes (MB); {_AGAIN}")
                column, unit = sizes[0][0], sizes[0]["unit"]
                one["bytes"] = _bytes(line, column, row[column], unit)
                one["bytes_step"] = _step(row[column], unit)
            rows.append(one)
    warn_of_directions(rows, where)
    return table_of(rows)


def of_torch(text: str, where: str) -> pd.DataFrame:
    """Return the operations of a trace of PyTorch's profiler.

    Parameters
    ----------
    text
        The JSON.
    where
        The file, for messages.

    Raises
    ------
    InputError
        As for `warpstack.validation.reference.read`.
    """
    rows = []
    events = gpu_events(text, where, ("kernel", "gpu_memcpy", "gpu_memset"))
    for event in events:
        # Times since 1970 leave no room for nanoseconds in a sum.
        start = event.start_us - events[0].start_us
        is_kernel = event.kind == "kernel"
        if not is_kernel and "bytes" not in event.arguments:
            raise event.error("args", dict(event.arguments), "bytes in it")
        device = event.arguments.get("device", "")
        if isinstance(device, bool) or not isinstance(device, (int, str)):
            raise event.error("args: device", device, "a number")
        rows.append(
            {
                **_kind_of(event.name, is_kernel=is_kernel),
                "stream": event.whole("stream", -1, -1),
                "start_us": start,
                "end_us": start + event.duration_us,
                "bytes": 0 if is_kernel else event.whole("bytes", 0, 0),
                "device": str(device),
                "correlation": event.whole("correlation", -1, -1),
                "bytes_step": 1,
            }
        )
    warn_of_directions(rows, where)
    return table_of(rows)


def warn_of_directions(rows: Iterable[Mapping[str, Any]], where: str) -> None:
    """Warn of copies whose direction is not known."""
    names = [
        row["full_name"] for row in rows if row["operation"] == "copy" and not row["direction"]
    ]
    if names:
        copies = "1 copy has" if len(names) == 1 else f"{len(names)} copies have"
        known = ", ".join(filter(None, DIRECTIONS))
        warn(
            f"{where}: {copies} no direction that is known ({known}), the first one is called "
            f"{shown(names[0])}; the column direction is empty there, and no predicted copy is a partner",
            UserWarning,
        )


def _kind_of(name: str, *, is_kernel: bool) -> dict[str, str]:
    if is_kernel:
        found = {"operation": "kernel", "name": plain_name(name), "direction": ""}
    else:
        found = named_copy(name.strip("[]"))
    return {**found, "full_name": name}


def named_copy(name: str) -> dict[str, str]:
    """Return what a copy or fill is, as profilers name it: ``CUDA memcpy HtoD``, ``Memset (Device)``."""
    copy = _COPY.search(name)
    if copy is None:
        kind = "memset" if "memset" in name.lower() else "copy"
        return {"operation": kind, "name": name, "direction": ""}
    ends = [_ENDS.get(end.lower(), "") for end in copy.groups()]
    direction = "to".join(ends)
    return {
        "operation": "copy",
        "name": name,
        "direction": direction if direction in DIRECTIONS else "",
    }


def _number(line: Line, column: str, text: str, unit: str = "") -> float:
    try:
        return number(line, column, text, unit)
    except InputError as error:
        raise InputError(f"{error}; {_AGAIN}") from None


def _time(line: Line, column: tuple[str, str], row: dict[str, str]) -> float:
    value = _number(line, column[0], row[column[0]], column[1])
    if not 0 <= value < 1e12:  # NaN is not
        raise line.error(f"{column[0]} = {shown(row[column[0]])} is not a time; {_AGAIN}")
    return value


def _whole(line: Line, column: str, row: dict[str, str]) -> int:
    text = row.get(column, "")
    if not text:
        return -1
    value = _number(line, column, text)
    if not 0 <= value < 2**53 or not value.is_integer():  # NaN is neither
        raise line.error(f"{column} = {shown(text)}: expected a whole number; {_AGAIN}")
    return int(value)


def _step(text: str, unit: str) -> int:
    """Return the bytes that the last digit of a size stands for: 1000 of 4.194 MB."""
    if not text:
        return 1
    digits = len(text.partition(".")[2])
    return max(1, round((scale_of_unit(unit) or 1.0) / 10.0**digits))


def _bytes(line: Line, column: str, text: str, unit: str) -> int:
    value = _number(line, column, text, unit)
    if not 0 <= value < 2**53:  # NaN is not
        raise line.error(f"{column} = {shown(text)}: expected a size; {_AGAIN}")
    return round(value)


def table_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return operations in the order of their starts, the first of which is time 0."""
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    table = table.sort_values("start_us", kind="stable", ignore_index=True)
    began = table["start_us"].min() if len(table) else 0.0
    return table.assign(
        start_us=table["start_us"] - began,
        end_us=table["end_us"] - began,
        stream=table["stream"].astype(np.int64),
        bytes=table["bytes"].astype(np.int64),
        correlation=table["correlation"].astype(np.int64),
        bytes_step=table["bytes_step"].astype(np.int64),
    )
