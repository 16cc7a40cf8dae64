"""The critical path: the chain of operations that decides when a program ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpstack.timelines.plan import Plan
from warpstack.timelines.schedule import CALL, QUEUE, WORDS, Schedule

__all__ = ["Step", "critical_path"]


class Step(NamedTuple):
    """A part of the critical path.

    Attributes
    ----------
    row
        The operation.
    part
        ``device``; ``launch`` (from the call, or from the end of what it follows, to the start); ``call``
        (the host's time in it); ``return`` (from the end of what the host waits for); ``program`` (the
        host's time before the call).
    start, end
        In us. Steps follow one another without gaps.
    """

    row: int
    part: str
    start: float
    end: float


def critical_path(order: Plan, schedule: Schedule) -> list[Step]:
    """Return the chain of what waited for what, from the end of the program back to its start.

    The durations of its steps sum to the time of the program.
    """
    if not len(schedule.end):
        return []
    before = _calls_before(order.columns, schedule.host_end)
    has_device = order.columns["has_device"]
    start, end = schedule.start.tolist(), schedule.end.tolist()
    host_start, host_end = schedule.host_start.tolist(), schedule.host_end.tolist()
    why, released_by = schedule.why.tolist(), schedule.released_by.tolist()
    waited_for, held_by = schedule.host_waited_for.tolist(), schedule.held_by.tolist()
    issued = (schedule.host_start + order.columns["host_call"]).tolist()
    host, queue = WORDS.index(CALL), WORDS.index(QUEUE)
    freed_by = schedule.freed_by.tolist()
    steps: list[Step] = []
    on_device = np.where(has_device.astype(bool), schedule.end, -1.0)
    row, last_call = int(np.argmax(on_device)), int(np.argmax(schedule.host_end))
    at, time = "device", float(on_device[row])
    if host_end[last_call] >= time:
        row, at, time = last_call, "return", host_end[last_call]

    def step(part: str, begin: float) -> None:
        nonlocal time
        if begin < time:
            steps.append(Step(row, part, begin, time))
            time = begin

    while True:
        if at == "device" and held_by[row] >= 0 and end[held_by[row]] > start[row]:
            step("device", end[held_by[row]])
            row = held_by[row]
        elif at == "device":
            step("device", start[row])
            reason, before_it = why[row], released_by[row]
            if reason == queue:
                # What was before it in its connection was held up by its call, or by what it follows.
                held_up = before_it
                before_it = freed_by[held_up]
                if before_it < 0:
                    step("launch", issued[held_up])
                    row, at = held_up, "call"
                    continue
            if reason == host:
                step("launch", issued[row])
                at = "call"
            elif before_it < 0:
                break
            else:
                step("launch", min(end[before_it], time))
                row = before_it
                if not has_device[row]:
                    at = "return"
        elif at == "return":
            other = waited_for[row]
            if other >= 0 and end[other] >= issued[row]:
                step("return", end[other])
                row, at = other, "device"
            else:
                if other >= 0:
                    step("return", issued[row])
                at = "call"
        else:
            step("call", host_start[row])
            previous = before[row]
            step("program", 0.0 if previous < 0 else host_end[previous])
            if previous < 0:
                break
            row, at = previous, "return"
    return steps[::-1]


def _calls_before(
    columns: dict[str, npt.NDArray[Any]], host_end: npt.NDArray[np.float64]
) -> list[int]:
    """Return the call whose return each row's thread went on from, -1 for none.

    It is the one before it in its thread, or one that the call begins after, whichever returned last.
    """
    thread, first = columns["thread"], columns["begins_first"]
    found = np.full(len(thread), -1, np.int64)
    rows = np.flatnonzero(thread >= 0)
    rows = rows[np.argsort(thread[rows], kind="stable")]
    same = thread[rows[1:]] == thread[rows[:-1]]
    found[rows[1:][same]] = rows[:-1][same]
    for row in np.flatnonzero(np.diff(first)).tolist():
        for other in columns["begins_rows"][first[row] : first[row + 1]].tolist():
            if found[row] < 0 or host_end[other] > host_end[found[row]]:
                found[row] = other
    return found.tolist()
