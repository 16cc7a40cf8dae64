"""Launches that run at the same time on the simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpstack import _core
from warpstack._util.checked import checked
from warpstack._util.choices import Profiler
from warpstack._util.lazy import pandas as pd
from warpstack._util.same import same
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.hardware.profiler import checked_profiler
from warpstack.timing.apart import ResultValues
from warpstack.timing.statistics import Statistics
from warpstack.traces.launch_order import launches_before
from warpstack.traces.operations import without_overlaps
from warpstack.traces.trace import App, KernelTrace

__all__ = ["ConcurrentResult", "Places", "checked_places", "places_of"]


class ConcurrentResult(Statistics):
    """What launches did that ran at the same time.

    Made by `warpstack.simulate` with ``concurrent=True``; ``docs/explanation/concurrent-kernels.md``
    gives the rules. `cycles` are those from the start of the first launch until the last one has ended, and
    `time_us` has one launch. Counters and stacks are those of the whole machine: a launch's own part of
    the traffic of a shared cache is not told apart.
    """

    @checked
    def __init__(
        self,
        core: _core.SimulationResult | ResultValues,
        grids: dict[str, Any],
        kernels: Sequence[KernelTrace],
        streams: Sequence[int | str],
        gpu: Gpu,
        profiler: Profiler,
    ) -> None:
        self._core = core
        self._grids = grids
        self.kernels = tuple(kernels)
        self.streams = tuple(streams)
        self.gpu = gpu
        self.profiler = checked_profiler(profiler)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per launch, in the order of the application.

        Columns ``kernel`` (its number in the program), ``name``, ``gpu``, ``stream`` (as in
        `App.operations`; texts ``process:stream`` where there are several processes), ``start`` and
        ``end`` (SM cycles since the first launch: its first block starts, its last warp is done),
        ``cycles`` between these, the number of ``sms`` that had blocks of it, its own
        ``instructions``, and ``ipc`` in these cycles.
        """
        starts, ends = self._grids["start"], self._grids["end"]
        rows = []
        for number, kernel in enumerate(self.kernels):
            start, end = int(starts[number]), int(ends[number])
            count = int(self._grids["instructions"][number])
            rows.append(
                {
                    "kernel": kernel.launch_id,
                    "name": kernel.name,
                    "gpu": self.gpu.name,
                    "stream": self.streams[number],
                    "start": start,
                    "end": end,
                    "cycles": end - start,
                    "sms": int(self._grids["sms"][number]),
                    "instructions": count,
                    "ipc": count / (end - start) if end > start else 0.0,
                }
            )
        return pd.DataFrame(rows)

    def __eq__(self, other: object) -> bool:
        """Return whether both are of equal launches and GPUs and have the same statistics."""
        if not isinstance(other, ConcurrentResult):
            return NotImplemented
        mine, theirs = (
            (
                one.kernels,
                one.streams,
                one.gpu,
                one.profiler,
                one._grids,
                one.__getstate__()["_core"],
            )
            for one in (self, other)
        )
        return same(mine, theirs)

    def __hash__(self) -> int:
        return hash((self.kernels, self.streams))

    def __repr__(self) -> str:
        return (
            f"<ConcurrentResult of {len(self.kernels)} launches on {self.gpu.title}: {self.cycles} "
            f"cycles, IPC {self.ipc:.3g}>"
        )


@dataclass(frozen=True)
class Places:
    """How launches belong together; a value each.

    Attributes
    ----------
    streams
        Its stream, as the program numbers them; ``process:stream`` where there are several processes.
    priorities
        That of its stream: the larger is served first.
    after
        The launches that end before it begins.
    after_trigger
        Those of which each block triggers or ends before it begins.
    """

    streams: list[int | str]
    priorities: list[int]
    after: list[list[int]]
    after_trigger: list[list[int]]


def places_of(
    app: App | KernelTrace, hardware_queues: int = 32, *, programmatic: bool = True
) -> Places:
    """Return the streams of the launches of a program, and what each waits for.

    Parameters
    ----------
    app
        What the program was traced as. Where its host's calls are not recorded, each launch is in a
        stream of its own.
    hardware_queues
        How many queues the GPU has, which streams share.
    programmatic
        Whether the GPU has programmatic dependent launch; without it such launches wait for the end.
    """
    number = 1 if isinstance(app, KernelTrace) else len(app.kernels)
    nobody: list[list[int]] = [[] for _ in range(number)]
    own = Places(list(range(number)), [0] * number, nobody, nobody)
    columns = None if isinstance(app, KernelTrace) else app._operations
    if columns is None:
        return own
    rows = np.flatnonzero(columns["kernel"] >= 0)
    rows = rows[np.argsort(columns["kernel"][rows])]
    if columns["kernel"][rows].tolist() != list(range(number)):
        return own
    of_program, processes = columns["stream"][rows].tolist(), columns["process"][rows].tolist()
    # Each process counts its streams from 0.
    streams: list[int | str] = (
        [f"{process}:{stream}" for process, stream in zip(processes, of_program, strict=True)]
        if len(set(processes)) > 1
        else of_program
    )
    if not programmatic:
        columns = without_overlaps(columns)
    before = launches_before(columns, hardware_queues)
    places = {row: place for place, row in enumerate(rows.tolist())}
    after, after_trigger = (
        [[places[other] for other in before[row][which]] for row in rows.tolist()]
        for which in range(2)
    )
    # CUDA's least number is the highest priority.
    return Places(streams, (-columns["priority"][rows]).tolist(), after, after_trigger)


def checked_places(
    number: int,
    streams: Sequence[int] | None,
    priorities: Sequence[int] | None,
    after: Sequence[Sequence[int]] | None = None,
    after_trigger: Sequence[Sequence[int]] | None = None,
) -> Places:
    """Return streams and priorities of launches, and what each waits for.

    Raises
    ------
    InputError
        If there are no launches, not as many streams, priorities or lists, or a launch waits for one that
        is not before it.

    Notes
    -----
    Without `after` a launch ends before the next one of its stream, unless that is behind its trigger.
    """
    if number == 0:
        raise InputError("kernels: there are no launches to simulate; give one at least")
    numbers = list(range(number)) if streams is None else [int(one) for one in streams]
    priorities = [0] * number if priorities is None else [int(one) for one in priorities]
    lists, triggers = (
        None if given is None else [[int(one) for one in before] for before in given]
        for given in (after, after_trigger)
    )
    given: tuple[tuple[str, Sequence[object]], ...] = (
        ("streams", numbers),
        ("priorities", priorities),
        ("after", numbers if lists is None else lists),
        ("after_trigger", numbers if triggers is None else triggers),
    )
    for name, values in given:
        if len(values) != number:
            raise InputError(
                f"{name}: there are {len(values)} for {number} launches; give one for each"
            )
    for name, whole in (("streams", numbers), ("priorities", priorities)):
        for value in whole:
            if abs(value) >= 2**31:
                raise InputError(f"{name}: {value} is too large; give numbers below {2**31}")
    for name, found in (("after", lists), ("after_trigger", triggers)):
        for place, before in enumerate(found or ()):
            for other in before:
                if not 0 <= other < place:
                    raise InputError(
                        f"{name}: launch {place} waits for {other}; give places of launches before it"
                    )
    if triggers is None:
        triggers = [[] for _ in numbers]
    if lists is None:
        # Who starts behind the trigger of the one before it in its stream does not wait for its end.
        lists = [
            [other for other in before if other not in early]
            for before, early in zip(_chains_of(numbers), triggers, strict=True)
        ]
    ends = [sorted(set(before)) for before in lists]
    early = [sorted(set(one) - set(end)) for one, end in zip(triggers, ends, strict=True)]
    return Places([*numbers], priorities, ends, early)


def _chains_of(streams: Sequence[int]) -> list[list[int]]:
    """Return for each launch the one before it in its stream."""
    last: dict[int, int] = {}
    after = []
    for place, stream in enumerate(streams):
        after.append([last[stream]] if stream in last else [])
        last[stream] = place
    return after
