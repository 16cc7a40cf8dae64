"""The export of PyTorch's profiler: a trace in JSON, with the kernels of a GPU among its events."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd

from warpstack._util.arguments import printable
from warpstack.errors import InputError
from warpstack.validation.reference.common import plain_name

__all__ = ["is_json", "read_json"]


def is_json(text: str) -> bool:
    """Whether a text is JSON rather than a table."""
    return text.lstrip()[:1] in ("{", "[")


def read_json(text: str, path: Path) -> pd.DataFrame:
    """Read a trace of PyTorch's profiler: kernels in the order of their starts, with their times.

    Raises
    ------
    InputError
        If the file is damaged, is other JSON, or has no kernel of a GPU.
    """
    where = printable(path)
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
    rows: list[tuple[float, dict[str, Any]]] = []
    for number, event in enumerate(events, 1):
        if not isinstance(event, dict) or str(event.get("cat", "")).lower() != "kernel":
            continue
        times = {"ts": math.nan, "dur": math.nan}
        for name in times:
            value = event.get(name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError(f"{where}: traceEvents[{number}]: {name} is not a number")
            if not 0 <= value < 2**63:  # microseconds
                raise InputError(f"{where}: traceEvents[{number}]: {name} is not a time")
            times[name] = float(value)
        row: dict[str, Any] = {"source": "torch", "name": plain_name(str(event.get("name", "")))}
        arguments = event.get("args")
        for size in ("grid", "block"):
            value = arguments.get(size) if isinstance(arguments, dict) else None
            if isinstance(value, list) and len(value) == 3:
                row[size] = tuple(value)
        rows.append((times["ts"], {**row, "time_s": times["dur"] * 1e-6}))
    if not rows:
        raise InputError(
            f"{where}: a trace of PyTorch's profiler without a kernel of a GPU; profile with "
            "activities=[ProfilerActivity.CUDA]"
        )
    ordered = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    table = pd.DataFrame(ordered)
    table.insert(1, "kernel", range(1, len(ordered) + 1))
    return table
