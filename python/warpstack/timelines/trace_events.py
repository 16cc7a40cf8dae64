"""Time lines as files of the Trace Event Format: tracks of host threads, streams and engines."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpstack._core import TIMELINE_ENGINES
from warpstack._util.trace_events import named_process, named_thread, write_events
from warpstack.timelines.costs import Costs
from warpstack.timelines.operations import Columns
from warpstack.timelines.plan import ENGINES, Plan
from warpstack.timelines.schedule import WORDS, Schedule

__all__ = ["ENGINE_NAMES", "timeline_events", "write_timeline"]

_HOST, _STREAMS, _ENGINES = 1, 2, 3
#: Engines as people call them.
ENGINE_NAMES = {
    "kernels": "kernels",
    "to_gpu": "copies to the GPU",
    "to_host": "copies to the host",
    "on_gpu": "copies within the GPU",
    "memset": "memsets",
    "callback": "host functions",
}
#: Tracks of kernels at the same time are beside one another; one engine's numbers are so far apart.
_LANES = 1 << 10


def timeline_events(
    columns: Columns, order: Plan, schedule: Schedule, costs: Costs
) -> list[dict[str, Any]]:
    """Return the events of a time line: names of tracks, calls, work, and arrows from call to work.

    A process is the host, whose tracks are its threads; one has a track for each stream, and one a track
    for each engine, or as many as it does operations at a time. Ranges of the program are slices of the
    host's tracks around its calls.
    """
    made, core = schedule, order.columns
    events = [
        *named_process(_HOST, "host", 1),
        *named_process(_STREAMS, "GPU: streams", 2),
        *named_process(_ENGINES, "GPU: engines", 3),
    ]
    threads = core["thread"].tolist()
    for thread in sorted(set(threads) - {-1}):
        events += named_thread(_HOST, thread, f"thread {thread}")
    streams, processes = columns["stream"].tolist(), columns["process"].tolist()
    tracks: dict[tuple[int, int], int] = {}
    open_ranges: dict[int, list[int]] = {}
    lanes = _Lanes(events)
    starts, ends = made.start.tolist(), made.end.tolist()
    host_starts, host_ends = made.host_start.tolist(), made.host_end.tolist()
    issued = (made.host_start + core["host_call"]).tolist()
    engines, has_device = core["engine"].tolist(), core["has_device"].tolist()
    estimated = costs.estimated.tolist()
    slices: list[tuple[float, int]] = []
    for row, operation in enumerate(columns["operation"]):
        name = columns["name"][row] or columns["api"][row] or operation
        thread = threads[row]
        if operation == "range_push":
            open_ranges.setdefault(thread, []).append(row)
            continue
        if operation == "range_pop":
            opened = open_ranges.get(thread)
            if opened:
                first = opened.pop()
                title = columns["name"][first] or "range"
                times = (host_starts[first], host_ends[row])
                events.append(_slice(title, "range", _HOST, thread, times, {}))
            continue
        if thread >= 0:
            call = columns["api"][row] or operation
            times = (host_starts[row], host_ends[row])
            waits = {"row": row, "waits for": int(made.host_waited_for[row])}
            events.append(_slice(call, "call", _HOST, thread, times, waits))
        if not has_device[row]:
            continue
        key = (processes[row], streams[row])
        if key not in tracks:
            tracks[key] = len(tracks)
            events += named_thread(
                _STREAMS, tracks[key], _stream_name(key, len(set(processes)) > 1)
            )
        about: dict[str, Any] = {
            "row": row,
            "stream": streams[row],
            "why": WORDS[made.why[row]],
            "waited for": int(made.released_by[row]),
        }
        if columns["bytes"][row]:
            about["bytes"] = int(columns["bytes"][row])
        if estimated[row]:
            about["estimated"] = True
        times = (starts[row], ends[row])
        title = name if operation != "copy" else f"{columns['direction'][row]} copy"
        if engines[row] == ENGINES["none"]:
            where = {"pid": _STREAMS, "tid": tracks[key], "ts": times[0], "s": "t"}
            events.append({"ph": "i", "name": title, "cat": operation, **where, "args": about})
            continue
        events.append(_slice(title, operation, _STREAMS, tracks[key], times, about))
        slices.append((times[0], row))
        if thread >= 0:
            arrow = {"name": "launch", "cat": "launch", "id": row}
            at_call = {"pid": _HOST, "tid": thread, "ts": min(issued[row], host_ends[row])}
            at_work = {"pid": _STREAMS, "tid": tracks[key], "ts": times[0]}
            events.append({"ph": "s", **arrow, **at_call})
            events.append({"ph": "f", "bp": "e", **arrow, **at_work})
    for _, row in sorted(slices):
        lane = lanes.of(engines[row], starts[row], ends[row])
        operation = columns["operation"][row]
        title = columns["name"][row] or operation
        times = (starts[row], ends[row])
        events.append(_slice(title, operation, _ENGINES, lane, times, {"row": row}))
    return events


class _Lanes:
    """Tracks of engines: of each as many as it does operations at a time."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = events
        self._free: dict[int, list[tuple[float, int]]] = {}

    def of(self, engine: int, start: float, end: float) -> int:
        """Return the track of an operation; those of an engine come in the order of their starts."""
        lanes = self._free.setdefault(engine, [])
        if lanes and lanes[0][0] <= start:
            lane = heapq.heapreplace(lanes, (end, lanes[0][1]))[1]
        else:
            lane = engine * _LANES + len(lanes)
            name = ENGINE_NAMES[TIMELINE_ENGINES[engine]]
            title = f"{name} ({len(lanes) + 1})" if lanes else name
            self._events += named_thread(_ENGINES, lane, title)
            heapq.heappush(lanes, (end, lane))
        return lane


def _stream_name(key: tuple[int, int], has_processes: bool) -> str:
    process, stream = key
    name = "default stream" if stream == 0 else f"stream {stream}"
    return f"{name} of process {process}" if has_processes else name


def _slice(
    name: str,
    category: str,
    process: int,
    thread: int,
    times: tuple[float, float],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": thread,
        "ts": times[0],
        "dur": times[1] - times[0],
        "args": dict(about),
    }


def write_timeline(
    path: Path,
    columns: Columns,
    order: Plan,
    schedule: Schedule,
    costs: Costs,
    about: Mapping[str, str],
) -> None:
    """Write a time line; see `Timeline.to_perfetto`."""
    write_events(path, timeline_events(columns, order, schedule, costs), about)
