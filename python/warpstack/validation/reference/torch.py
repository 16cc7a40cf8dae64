"""The export of PyTorch's profiler: a trace in JSON, with the kernels of a GPU among its events."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from warpstack._util.arguments import printable
from warpstack.errors import InputError, shown
from warpstack.validation.reference.common import plain_name

__all__ = ["GpuEvent", "gpu_events", "is_json", "read_json"]


def is_json(text: str) -> bool:
    """Whether a text is JSON rather than a table."""
    return text.lstrip()[:1] in ("{", "[")


class GpuEvent(NamedTuple):
    """What a GPU did: a kernel, a copy or a fill."""

    place: str  #: in the file, for messages
    kind: str
    name: str
    start_us: float
    duration_us: float
    arguments: Mapping[str, Any]

    def error(self, field: str, value: object, expected: str) -> InputError:
        """Return the error of a value that cannot be."""
        return _error(self.place, field, value, expected)

    def whole(self, field: str, least: int, absent: int) -> int:
        """Return a whole number among the arguments, `absent` where it is not there.

        Raises
        ------
        InputError
            If it is no such number.
        """
        value = self.arguments.get(field, absent)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or value != value // 1 or not least <= value < 2**63:
            raise self.error(f"args: {field}", value, f"a whole number, {least} or more")
        return int(value)


def _error(place: str, field: str, value: object, expected: str) -> InputError:
    return InputError(
        f"{place}: {field} = {shown(value)}: expected {expected}; export it again (export_chrome_trace)"
    )


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
        raise InputError(
            f"{where}: damaged JSON: {error}; export it again (export_chrome_trace)"
        ) from None
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
    for number, event in enumerate(events):
        at = f"{where}: {'traceEvents' if isinstance(content, dict) else ''}[{number}]"
        if not isinstance(event, dict):
            raise InputError(
                f"{at} = {shown(event)}: expected an object; export it again (export_chrome_trace)"
            )
        kind = str(event.get("cat", "")).lower()
        if kind not in kinds:
            continue
        times = {"ts": math.nan, "dur": math.nan}
        for name in times:
            value = event.get(name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise _error(at, name, value, "a number (us)")
            if not 0 <= value < 2**63:
                raise _error(at, name, value, "a time in us")
            times[name] = float(value)
        arguments, called = event.get("args", {}), event.get("name")
        if not isinstance(arguments, dict):
            raise _error(at, "args", arguments, "an object")
        if not isinstance(called, str) or not called.strip():
            raise _error(at, "name", called, "a name")
        found.append(GpuEvent(at, kind, called, times["ts"], times["dur"], arguments))
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
