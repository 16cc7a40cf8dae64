"""The export of PyTorch's profiler: a trace in JSON, with the kernels of a GPU among its events."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from warpstack._util.arguments import printable
from warpstack.errors import InputError
from warpstack.validation.reference.common import plain_name

__all__ = ["GpuEvent", "gpu_events", "is_json", "read_json"]


def is_json(text: str) -> bool:
    """Whether a text is JSON rather than a table."""
    return text.lstrip()[:1] in ("{", "[")


class GpuEvent(NamedTuple):
    """What a GPU did: a kernel, a copy or a fill."""

    kind: str
    name: str
    start_us: float
    duration_us: float
    arguments: Mapping[str, Any]


def gpu_events(text: str, where: str, kinds: Collection[str]) -> list[GpuEvent]:
    """Return the events of some categories in a trace of PyTorch's profiler, in the order of their starts.

    Raises
    ------
    InputError
        If the file is damaged, is other JSON, or has none of them.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: damaged JSON: {error}") from None
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list):
        raise InputError(
            f"{where}: JSON, but not of PyTorch's profiler, which has traceEvents; give what a "
            "profiler wrote as CSV"
        )
    known = ({"ph", "cat"} & event.keys() for event in events if isinstance(event, dict))
    if isinstance(content, list) and not any(known):
        raise InputError(
            f"{where}: JSON, but without events of PyTorch's profiler; give what a profiler wrote as CSV "
            "(predictions are the other argument)"
        )
    found = []
    for number, event in enumerate(events, 1):
        kind = str(event.get("cat", "")).lower() if isinstance(event, dict) else ""
        if kind not in kinds:
            continue
        times = {"ts": math.nan, "dur": math.nan}
        for name in times:
            value = event.get(name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError(f"{where}: traceEvents[{number}]: {name} is not a number")
            if not 0 <= value < 2**63:  # microseconds
                raise InputError(f"{where}: traceEvents[{number}]: {name} is not a time")
            times[name] = float(value)
        given = event.get("args")
        arguments = given if isinstance(given, dict) else {}
        found.append(
            GpuEvent(kind, str(event.get("name", "")), times["ts"], times["dur"], arguments)
        )
    if not found:
        raise InputError(
            f"{where}: a trace of PyTorch's profiler without a kernel of a GPU; profile with "
            "activities=[ProfilerActivity.CUDA]"
        )
    return sorted(found, key=lambda event: event.start_us)


def read_json(text: str, path: Path) -> pd.DataFrame:
    """Read a trace of PyTorch's profiler: kernels in the order of their starts, with their times.

    Raises
    ------
    InputError
        As for `gpu_events`.
    """
    rows = []
    for event in gpu_events(text, printable(path), ("kernel",)):
        row: dict[str, Any] = {"source": "torch", "name": plain_name(event.name)}
        for size in ("grid", "block"):
            value = event.arguments.get(size)
            if isinstance(value, list) and len(value) == 3:
                row[size] = tuple(value)
        rows.append({**row, "time_s": event.duration_us * 1e-6})
    table = pd.DataFrame(rows)
    table.insert(1, "kernel", range(1, len(rows) + 1))
    return table
