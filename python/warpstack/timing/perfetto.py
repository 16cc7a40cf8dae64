"""Timelines of simulations as files of the Trace Event Format, which ui.perfetto.dev opens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpstack._util.lazy import pandas as pd
from warpstack._util.trace_events import named_process, write_events
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.traces.trace import KernelTrace

__all__ = ["timeline_events", "write_timeline"]

#: Counters of the whole GPU: name of the track, and its series by column of the timeline.
_TRACKS = {
    "warps": {"resident": "resident_warps"},
    "MSHRs in use": {"L1": "l1_mshrs", "L2": "l2_mshrs"},
    "requests in queues": {
        "to L2": "noc_queue",
        "of L2 slices": "l2_queue",
        "from L2": "reply_queue",
    },
    "requests in DRAM queues": {"requests": "dram_queue"},
}
_GPU, _FIRST_SM = 1, 2


def timeline_events(
    table: pd.DataFrame, cycles: int, kernel: KernelTrace, gpu: Gpu, totals: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return the events of a timeline: names of tracks, the kernel, and counters.

    `table` is the `SimulationResult.timeline` of a kernel of so many `cycles`, and `totals` has the
    values of its columns that only grow, ``slots_base`` to ``slots_queue`` and ``instructions``, at the
    end. ``ts`` and ``dur`` are microseconds. Rates, which are issue slots of each use and instructions
    per cycle, are means from their sample to the next one or the end: times their durations they sum
    to the totals. Events of a track are in the order of time.

    Raises
    ------
    InputError
        If the simulation took no samples.
    """
    if table.empty:
        raise InputError(
            "timeline: this simulation took no samples; simulate with timeline=True or timeline_cycles"
        )
    micro = 1e-3 / gpu.clock_ghz
    events: list[dict[str, Any]] = []
    for process, name in ((_GPU, gpu.title), (_FIRST_SM, "SM 0")):
        events += named_process(process, name)
    events.append(
        {
            "ph": "X",
            "name": kernel.short_name,
            "cat": "kernel",
            "pid": _GPU,
            "tid": 0,
            "ts": 0,
            "dur": cycles * micro,
            "args": {"launch": kernel.launch_id, "cycles": cycles},
        }
    )

    def count(process: int, name: str, at: float, values: dict[str, Any]) -> None:
        events.append({"ph": "C", "name": name, "pid": process, "ts": at * micro, "args": values})

    parts = [str(column) for column in table if str(column).startswith("slots_")]
    schedulers = [str(column) for column in table if str(column).startswith("scheduler_warps_")]
    # A sample at the end would lack the loads that are done then: totals take its place.
    rows = [row for row in table.to_dict("records") if row["cycle"] < cycles]
    end = float(cycles)
    for number, row in enumerate(rows):
        at = float(row["cycle"])
        after = rows[number + 1] if number + 1 < len(rows) else {**totals, "cycle": end}
        span = float(after["cycle"] - at)
        for name, series in _TRACKS.items():
            count(_GPU, name, at, {label: int(row[column]) for label, column in series.items()})
        for column in schedulers:
            label = f"warps of scheduler {column.rsplit('_', 1)[1]}"
            count(_FIRST_SM, label, at, {"resident": int(row[column])})
        used = {
            column.removeprefix("slots_"): round((after[column] - row[column]) / span, 6)
            for column in parts
        }
        count(_GPU, "issue slots per cycle", at, used)
        ipc = (after["instructions"] - row["instructions"]) / span
        count(_GPU, "warp instructions per cycle", at, {"ipc": round(ipc, 6)})
    # Without these a viewer would draw the last values on and on.
    for name, series in _TRACKS.items():
        count(_GPU, name, end, dict.fromkeys(series, 0))
    for column in schedulers:
        count(_FIRST_SM, f"warps of scheduler {column.rsplit('_', 1)[1]}", end, {"resident": 0})
    count(
        _GPU, "issue slots per cycle", end, {column.removeprefix("slots_"): 0 for column in parts}
    )
    count(_GPU, "warp instructions per cycle", end, {"ipc": 0})
    return events


def write_timeline(
    path: Path,
    table: pd.DataFrame,
    cycles: int,
    kernel: KernelTrace,
    gpu: Gpu,
    totals: Mapping[str, float],
) -> None:
    """Write the timeline of a simulation; see `SimulationResult.to_perfetto`."""
    about = {"kernel": kernel.name, "gpu": gpu.title, "digest": kernel.digest}
    write_events(path, timeline_events(table, cycles, kernel, gpu, totals), about)
