"""Time lines as files of the Trace Event Format: tracks of host threads, streams and engines."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpstack._core import TIMELINE_ENGINES
from warpstack._util.lazy import pandas as pd
from warpstack._util.trace_events import named_process, named_thread, write_events
from warpstack.timelines.costs import Costs
from warpstack.timelines.operations import Columns
from warpstack.timelines.plan import ENGINES, Plan
from warpstack.timelines.schedule import WORDS, Schedule

__all__ = ["ENGINE_NAMES", "timeline_events", "write_beside", "write_timeline"]

#: One process has all tracks: Perfetto orders several by how much is in each.
_PROCESS = 1
#: That of the measured time line beside it.
_MEASURED = 2
#: Engines as people call them.
ENGINE_NAMES = {
    "kernels": "kernels",
    "to_gpu": "copies to the GPU",
    "to_host": "copies to the host",
    "on_gpu": "copies within the GPU",
    "memset": "memsets",
    "callback": "host functions",
}
#: Tracks of kernels at the same time are beside one another; places of two engines are so far apart.
_LANES = 1 << 10
#: Numbers of tracks begin here, above that of the process. Perfetto shows tracks in their order.
_FIRST_TRACK = 101


def timeline_events(
    columns: Columns, order: Plan, schedule: Schedule, costs: Costs, title: str
) -> list[dict[str, Any]]:
    """Return the events of a time line: names of tracks, calls, work, and arrows from call to work.

    The tracks of the process `title` are the threads of the host, the streams, and the engines; an engine has
    as many as it does operations at a time. Ranges of the program are slices of the host's tracks around
    its calls.
    """
    made, core = schedule, order.columns
    events = named_process(_PROCESS, title)
    numbers = itertools.count(_FIRST_TRACK)
    threads = core["thread"].tolist()
    host_tracks = {thread: next(numbers) for thread in sorted(set(threads) - {-1})}
    for thread, track in host_tracks.items():
        events += named_thread(_PROCESS, track, f"host thread {thread}")
    streams, processes = columns["stream"].tolist(), columns["process"].tolist()
    keys = list(zip(processes, streams, strict=True))
    engines, has_device = core["engine"].tolist(), core["has_device"].tolist()
    used = sorted({key for key, there in zip(keys, has_device, strict=True) if there})
    tracks = {key: next(numbers) for key in used}
    for key, track in tracks.items():
        events += named_thread(_PROCESS, track, _stream_name(key, len(set(processes)) > 1))
    open_ranges: dict[int, list[int]] = {}
    starts, ends = made.start.tolist(), made.end.tolist()
    host_starts, host_ends = made.host_start.tolist(), made.host_end.tolist()
    issued = (made.host_start + core["host_call"]).tolist()
    estimated = costs.estimated.tolist()
    slices: list[tuple[float, int, str]] = []
    work: list[dict[str, Any]] = []
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
                range_name = columns["name"][first] or "range"
                times = (host_starts[first], host_ends[row])
                events.append(_slice(range_name, "range", host_tracks[thread], times, {}))
            continue
        if thread >= 0:
            call = columns["api"][row] or operation
            times = (host_starts[row], host_ends[row])
            waits = {"row": row, "waits for": int(made.host_waited_for[row])}
            events.append(_slice(call, "call", host_tracks[thread], times, waits))
        if not has_device[row]:
            continue
        track = tracks[keys[row]]
        about: dict[str, Any] = {
            "row": row,
            "stream": streams[row],
            "why": WORDS[made.why[row]],
            "waited for": int(made.released_by[row]),
        }
        if columns["bytes"][row]:
            about["bytes"] = int(columns["bytes"][row])
            if ends[row] > starts[row]:
                about["GB/s"] = about["bytes"] / (ends[row] - starts[row]) / 1e3
        if estimated[row]:
            about["estimated"] = True
        times = (starts[row], ends[row])
        if operation == "copy":
            name = f"{columns['direction'][row]} copy"
        if engines[row] == ENGINES["none"]:
            where = {"pid": _PROCESS, "tid": track, "ts": _whole_ns(times[0]), "s": "t"}
            work.append({"ph": "i", "name": name, "cat": operation, **where, "args": about})
            continue
        work.append(_slice(name, operation, track, times, about))
        slices.append((times[0], row, name))
        if thread >= 0:
            arrow = {"name": "launch", "cat": "launch", "id": row}
            called = _whole_ns(min(issued[row], host_ends[row]))
            at_call = {"pid": _PROCESS, "tid": host_tracks[thread], "ts": called}
            at_work = {"pid": _PROCESS, "tid": track, "ts": _whole_ns(times[0])}
            events.append({"ph": "s", **arrow, **at_call})
            events.append({"ph": "f", "bp": "e", **arrow, **at_work})
    # What takes no time comes before what starts then: in a viewer it would lie within.
    events += sorted(work, key=lambda event: (event["ts"], event.get("dur", 0)))
    slices.sort()
    lanes = _Lanes()
    places = [lanes.of(engines[row], starts[row], ends[row]) for _, row, _ in slices]
    engine_tracks = {place: next(numbers) for place in sorted(lanes.titles)}
    for place, track in engine_tracks.items():
        events += named_thread(_PROCESS, track, f"engine: {lanes.titles[place]}")
    for (_, row, name), place in zip(slices, places, strict=True):
        times, track = (starts[row], ends[row]), engine_tracks[place]
        about = {"row": row, "stream": streams[row]}
        events.append(_slice(name, columns["operation"][row], track, times, about))
    return events


class _Lanes:
    """Places of the tracks of engines: each engine has as many as it does operations at a time."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[float, int]]] = {}
        self.titles: dict[int, str] = {}

    def of(self, engine: int, start: float, end: float) -> int:
        """Return the place of an operation; those of an engine come in the order of their starts."""
        lanes = self._free.setdefault(engine, [])
        if lanes and lanes[0][0] <= start:
            return heapq.heapreplace(lanes, (end, lanes[0][1]))[1]
        place = engine * _LANES + len(lanes)
        name = ENGINE_NAMES[TIMELINE_ENGINES[engine]]
        self.titles[place] = f"{name} ({len(lanes) + 1})" if lanes else name
        heapq.heappush(lanes, (end, place))
        return place


def _stream_name(key: tuple[int, int], has_processes: bool) -> str:
    process, stream = key
    name = "default stream" if stream == 0 else f"stream {stream}"
    return f"{name} of process {process}" if has_processes else name


def _slice(
    name: str,
    category: str,
    thread: int,
    times: tuple[float, float],
    about: Mapping[str, Any],
    process: int = _PROCESS,
) -> dict[str, Any]:
    start, end = (_whole_ns(time) for time in times)
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": thread,
        "ts": start,
        "dur": _whole_ns(end - start),
        "args": dict(about),
    }


def _whole_ns(time_us: float) -> float:
    """Return a time as whole nanoseconds, in us.

    Perfetto cuts times off there, each for itself: of two operations that follow one another the first
    could then end after the start of the second, which would not be shown.
    """
    nanoseconds = round(time_us * 1e3)
    found = nanoseconds / 1e3
    return found if int(found * 1e3) == nanoseconds else math.nextafter(found, math.inf)


def write_timeline(
    path: Path,
    columns: Columns,
    order: Plan,
    schedule: Schedule,
    costs: Costs,
    about: Mapping[str, str],
) -> None:
    """Write a time line; see `Timeline.to_perfetto`."""
    title = f"{about['app']} on {about['gpu']}"
    write_events(path, timeline_events(columns, order, schedule, costs, title), about)


def write_beside(
    path: Path, predicted: list[dict[str, Any]], measured: pd.DataFrame, about: Mapping[str, str]
) -> None:
    """Write a predicted and a measured time line; see `TimelineComparison.to_perfetto`.

    Parameters
    ----------
    path, about
        The file, and what it is about.
    predicted
        The events of `timeline_events`.
    measured
        Operations in the order of their starts, with times on the same clock.
    """
    events = [*predicted, *_measured_events(measured)]
    # A profile can begin before the program's first operation, and no time is below 0.
    early = -min((event["ts"] for event in events if "ts" in event), default=0.0)
    for event in events:
        if early > 0 and "ts" in event:
            event["ts"] += early
    write_events(path, events, about)


def _measured_events(measured: pd.DataFrame) -> list[dict[str, Any]]:
    events = named_process(_MEASURED, "measured")
    numbers = itertools.count(_FIRST_TRACK)
    tracks = {}
    for stream in sorted(set(measured["stream"])):
        tracks[stream] = next(numbers)
        title = f"stream {stream}" if stream >= 0 else "unknown stream"
        events += named_thread(_MEASURED, tracks[stream], title)
    lanes = _Lanes()
    work = []
    for row in measured.sort_values("start_us", kind="stable").to_dict("records"):
        times = (row["start_us"], row["end_us"])
        place = lanes.of(ENGINES[row["engine"]], *times)
        name = f"{row['direction']} copy" if row["operation"] == "copy" else row["name"]
        about = {"stream": row["stream"]} | ({"bytes": row["bytes"]} if row["bytes"] else {})
        kind = row["operation"]
        work.append(_slice(name, kind, tracks[row["stream"]], times, about, _MEASURED))
        work.append(_slice(name, kind, place, times, {}, _MEASURED))
    places = {place: next(numbers) for place in sorted(lanes.titles)}
    for place, track in places.items():
        events += named_thread(_MEASURED, track, f"engine: {lanes.titles[place]}")
    for on_engine in work[1::2]:
        on_engine["tid"] = places[on_engine["tid"]]
    return [*events, *work]
