"""What a profiler saw a GPU do: kernels, copies and fills, with their streams and times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from warpstack.validation.reference.common import (
    Line,
    Section,
    number,
    plain_name,
    scale_of_unit,
    whole_number,
)
from warpstack.validation.reference.nsys import times_of
from warpstack.validation.reference.torch import gpu_events

__all__ = ["named_copy", "of_nsys", "of_torch", "table_of"]

#: How profilers name both ends of a copy.
_ENDS = {"h": "H", "host": "H", "d": "D", "device": "D", "p": "P", "peer": "P"}
#: Arrays of textures are in the memory of the device.
_ENDS |= {"a": "D", "array": "D"}
_COPY = re.compile(r"memcpy ([A-Za-z]+?)[- ]?to[- ]?([A-Za-z]+)", re.IGNORECASE)
_SIZE = re.compile(r"Bytes ?\((?P<unit>[A-Za-z]+)\)")
_COLUMNS = (
    *("operation", "name", "stream", "start_us", "end_us", "direction", "bytes", "device"),
    *("full_name", "correlation", "bytes_step"),
)


def of_nsys(sections: Iterable[Section]) -> pd.DataFrame:
    """Return the operations of ``cuda_gpu_trace``: a row per kernel, copy and fill.

    Raises
    ------
    InputError
        If a time, a stream or a number of bytes is none.
    """
    rows = []
    for section in sections:
        times = times_of(section.header)
        start, duration = times["Start"], times["Duration"]
        sizes = [match for cell in section.header if (match := _SIZE.fullmatch(cell))]
        for line, row in section.rows():
            name = row["Name"]
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
            for column in sizes:
                one["bytes"] = _bytes(number(line, column[0], row[column[0]], column["unit"]))
                one["bytes_step"] = _step(row[column[0]], column["unit"])
            rows.append(one)
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
        given = event.arguments
        size, number_of_call = given.get("bytes", 0), given.get("correlation")
        rows.append(
            {
                **_kind_of(event.name, is_kernel=event.kind == "kernel"),
                "stream": given.get("stream", -1) if isinstance(given.get("stream"), int) else -1,
                "start_us": start,
                "end_us": start + event.duration_us,
                "bytes": _bytes(size) if isinstance(size, (int, float)) else 0,
                "device": str(given.get("device", "")),
                "correlation": number_of_call if isinstance(number_of_call, int) else -1,
                "bytes_step": 1,
            }
        )
    return table_of(rows)


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
    return {"operation": "copy", "name": name, "direction": "to".join(ends) if all(ends) else ""}


def _time(line: Line, column: tuple[str, str], row: dict[str, str]) -> float:
    value = number(line, column[0], row[column[0]], column[1])
    if not 0 <= value < 1e12:  # NaN is not
        raise line.error(f"{column[0]} = {row[column[0]]!r} is not a time")
    return value


def _whole(line: Line, column: str, row: dict[str, str]) -> int:
    text = row.get(column, "")
    return whole_number(line, column, text) if text else -1


def _step(text: str, unit: str) -> int:
    """Return the bytes that the last digit of a size stands for: 1000 of 4.194 MB."""
    if not text:
        return 1
    digits = len(text.partition(".")[2])
    return max(1, round((scale_of_unit(unit) or 1.0) / 10.0**digits))


def _bytes(value: float) -> int:
    return round(value) if 0 <= value < 2**53 else 0


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
