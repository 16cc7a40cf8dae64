"""What runs the tasks of a sweep: the stages for points that share work, and their rows."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack import _core
from warpstack._core import __version__
from warpstack._util.options import Options
from warpstack.errors import InputError
from warpstack.exploration.disk_memo import DiskMemo
from warpstack.exploration.recorded import CAPACITY_FIELDS, recorded_profiles
from warpstack.exploration.stage_cache import StageCache
from warpstack.exploration.threads import on_threads
from warpstack.hardware.description import Gpu
from warpstack.hardware.stages import alike, values_of
from warpstack.interval.profile import INTERVAL_FIELDS, IntervalProfile, whole_instructions
from warpstack.memory.caches import MemoryProfile
from warpstack.models import interval_simulation
from warpstack.models.pipeline import Pipeline
from warpstack.models.prediction import evaluate_all, model_reads, needs_of
from warpstack.tables import STACK, settings_of
from warpstack.traces.trace import KernelTrace

__all__ = ["NUMBERS", "Anchored", "Numbers", "Points", "Runner", "Task"]

_Made = TypeVar("_Made")

#: The columns that a model fills.
NUMBERS = ("cycles", "ipc", "cpi", *STACK)
#: Arrays by these columns.
Numbers = Mapping[str, npt.NDArray[np.float64]]
#: The same, and errors, while they are filled: arrays of shape (points, kernels, models).
_Answers = tuple[dict[str, npt.NDArray[np.float64]], npt.NDArray[np.object_]]
#: Makes the answers of GPUs from what models say of them, arrays of shape (GPUs, kernels, models).
Anchored = Callable[[Numbers, Sequence[Gpu]], Numbers]


@dataclass(frozen=True, slots=True)
class Task:
    """Points of one application that share the state of the caches, or a recorded order of accesses.

    Attributes
    ----------
    app
        Number of the application.
    points
        Numbers of the points, int32, in increasing order.
    error
        Why the points are impossible; empty if they are possible.
    reference
        The point whose order of accesses is recorded; None: the points share their caches.
    is_part
        Whether other tasks have points with the same state of the caches.
    """

    app: int
    points: npt.NDArray[np.int32]
    error: str = ""
    reference: int | None = None
    is_part: bool = False


@dataclass(frozen=True)
class Points:
    """What is computed of a task: a description for each of its points, made when the task runs.

    Attributes
    ----------
    numbers
        Numbers of the points.
    gpus
        The GPU of each point; the sweep's own where the point is impossible.
    error
        Why the points are impossible; empty if they are possible.
    reference
        The GPU whose order of accesses is recorded; None: the points share their caches.
    is_part
        Whether other tasks have the same caches.
    """

    numbers: npt.NDArray[np.int32]
    gpus: tuple[Gpu, ...]
    error: str = ""
    reference: Gpu | None = None
    is_part: bool = False


class _Latest(Generic[_Made]):
    """What threads asked for last, made once for all that ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: object = None
        self._made: list[_Made] = []
        self._making = threading.Lock()

    def get(self, key: object, make: Callable[[], _Made]) -> _Made:
        """Return what was made for a key, or make it; who asks meanwhile waits."""
        with self._lock:
            if key != self._key:
                self._key, self._made, self._making = key, [], threading.Lock()
            made, making = self._made, self._making
        with making:
            if not made:
                made.append(make())
            return made[0]


class Runner:
    """Runs tasks of one application; threads share it.

    Parameters
    ----------
    kernels
        The application.
    models, options
        What to predict, and how.
    cache
        Where results of stages are kept; None: nowhere.
    stop
        Set to give up between kernels.
    anchored
        Makes the answers of a task's GPUs from what the models say; None: these are the answers.
    anchor
        Name of the engine that anchors them, a column of the rows; empty: none.
    """

    def __init__(
        self,
        kernels: tuple[KernelTrace, ...],
        models: tuple[str, ...],
        options: Options,
        cache: StageCache | None = None,
        stop: threading.Event | None = None,
        *,
        anchored: Anchored | None = None,
        anchor: str = "",
    ) -> None:
        self.kernels = kernels
        self.models = models
        self._stop = stop or threading.Event()
        self._anchored = anchored
        self._anchor = anchor
        self._memo = None if cache is None else DiskMemo(cache, kernels)
        self._pipeline = Pipeline(kernels, options, memo=self._memo)
        self._shared: tuple[_Latest[list[MemoryProfile]], _Latest[list[IntervalProfile]]]
        self._shared = (_Latest(), _Latest())
        # Models by their place in the rows: those that read profiles, and interval simulation.
        placed = list(enumerate(models))
        self._on_profiles = [(m, model) for m, model in placed if needs_of([model]).profiles]
        self._simulating = [m for m, model in placed if needs_of([model]).simulation]

    def run(self, task: Points, num_threads: int) -> pd.DataFrame:
        """Return the rows of a task: ``point``, the columns of `predict`, and ``error``.

        Raises
        ------
        InterruptedError
            If ``stop`` was set.
        """
        if task.error:
            return self._rows(task, {}, np.full(self._shape(task), task.error, dtype=object))
        found: _Answers = (
            {name: np.full(self._shape(task), np.nan) for name in NUMBERS},
            np.full(self._shape(task), "", dtype=object),
        )
        if self._simulating:
            self._simulate(task, *found, num_threads)
        if self._on_profiles:
            try:
                self._evaluate(task, *found, num_threads)
            except InputError as error:
                for m, _ in self._on_profiles:
                    found[1][:, :, m] = str(error)
        return self._rows(task, *found)

    def _simulate(
        self,
        task: Points,
        numbers: dict[str, npt.NDArray[np.float64]],
        errors: npt.NDArray[np.object_],
        num_threads: int,
    ) -> None:
        """Run interval simulation once for points that are alike in all that it reads."""
        (m,) = self._simulating
        groups = alike(task.gpus, interval_simulation.FIELDS)

        def run(number: int, _: int) -> dict[str, list[float]] | str:
            columns: dict[str, list[float]] = {name: [] for name in NUMBERS}
            try:
                launches = self._pipeline.simulated(task.gpus[groups[number][0]])
                for kernel, launch in zip(self.kernels, launches, strict=True):
                    self._check_stop()
                    said = launch.attributes(kernel)
                    for name in ("cycles", "ipc", "cpi"):
                        columns[name].append(said[name])
                    for part, cycles in said["cpi_stack"].items():
                        columns[f"cpi_{part}"].append(cycles)
            except InputError as error:
                return str(error)
            return columns

        # An event of its own: the end of these threads is not that of the sweep.
        threads = on_threads(range(len(groups)), run, num_threads, threading.Event())
        with contextlib.closing(threads) as results:
            for number, found in results:
                if isinstance(found, str):
                    errors[groups[number], :, m] = found
                    continue
                for name in NUMBERS:
                    numbers[name][groups[number], :, m] = found[name]

    def _evaluate(
        self,
        task: Points,
        numbers: dict[str, npt.NDArray[np.float64]],
        errors: npt.NDArray[np.object_],
        num_threads: int,
    ) -> None:
        """Evaluate the models that read profiles."""
        self._pipeline.warps(num_threads)
        if task.reference is not None:
            self._evaluate_recorded(task, task.reference, numbers, errors, num_threads)
            return
        # What other tasks do not need goes with this one.
        memory, intervals = self._shared if task.is_part else (_Latest(), _Latest())
        fields = self._pipeline.memory_fields | INTERVAL_FIELDS
        for positions in alike(task.gpus, INTERVAL_FIELDS):
            gpus = [task.gpus[position] for position in positions]
            make = partial(self._intervals, gpus[0], memory, num_threads)
            profiles = intervals.get(values_of(gpus[0], fields), make)
            for m, model in self._on_profiles:
                where = (positions, slice(None), m)
                self._fill(numbers, errors, where, profiles, gpus, model, num_threads)

    def _intervals(
        self,
        gpu: Gpu,
        memory: _Latest[list[MemoryProfile]],
        num_threads: int,
    ) -> list[IntervalProfile]:
        """Return the intervals of each kernel on a GPU."""

        def run_caches() -> list[MemoryProfile]:
            profiles = []
            for profile in self._pipeline.memory(gpu, num_threads):
                self._check_stop()
                profiles.append(profile)
            return profiles

        profiles = []
        caches = memory.get(values_of(gpu, self._pipeline.memory_fields), run_caches)
        for number, of_kernel in enumerate(caches):
            self._check_stop()
            profiles.append(self._pipeline.interval(number, gpu, of_kernel, num_threads))
        return profiles

    def _evaluate_recorded(
        self,
        task: Points,
        reference: Gpu,
        numbers: dict[str, npt.NDArray[np.float64]],
        errors: npt.NDArray[np.object_],
        num_threads: int,
    ) -> None:
        """Do the same where each point has caches of its own, found from a recorded order."""
        cores = self._recorded(task, reference)
        for m, model in self._on_profiles:
            for positions in _same_but_for_caches(task.gpus, model):
                # A kernel is predicted once for all caches that do the same with it.
                gpu = task.gpus[positions[0]]
                profiles: list[IntervalProfile] = []
                known: dict[tuple[int, int], int] = {}
                cells = np.empty((len(positions), len(self.kernels)), dtype=np.int64)
                for row, position in enumerate(positions):
                    self._check_stop()
                    for number, core in enumerate(cores[position]):
                        key = (number, id(core))
                        if key not in known:
                            known[key] = len(profiles)
                            profiles.append(self._interval(number, gpu, core, num_threads))
                        cells[row, number] = known[key]
                self._fill_cells(
                    numbers, errors, (positions, m), (profiles, cells), task.gpus, num_threads
                )

    def _interval(
        self, number: int, gpu: Gpu, core: _core.MemoryProfile, num_threads: int
    ) -> IntervalProfile:
        options = self._pipeline.options
        memory = MemoryProfile(
            core, self.kernels[number], gpu, options.access_order, options.written_share
        )
        return self._pipeline.interval(number, gpu, memory, num_threads)

    def _fill_cells(
        self,
        numbers: dict[str, npt.NDArray[np.float64]],
        errors: npt.NDArray[np.object_],
        where: tuple[list[int], int],
        found: tuple[list[IntervalProfile], npt.NDArray[np.int64]],
        gpus: Sequence[Gpu],
        num_threads: int,
    ) -> None:
        """Predict distinct profiles and write each where its cells, (position, kernel), say."""
        positions, m = where
        profiles, cells = found
        model = self.models[m]
        try:
            columns = evaluate_all(profiles, [gpus[positions[0]]], model, num_threads=num_threads)
        except InputError:
            for row, position in enumerate(positions):
                own = [profiles[cell] for cell in cells[row]]
                self._fill_one(numbers, errors, (position, m), own, gpus[position], model)
            return
        for name in NUMBERS:
            numbers[name][positions, :, m] = columns[name][0][cells]

    def _recorded(self, task: Points, reference: Gpu) -> Sequence[Sequence[_core.MemoryProfile]]:
        """Return the profiles of each point of a task and kernel, which the cache keeps."""
        options = self._pipeline.options
        fields = self._pipeline.memory_fields
        settings = {
            "reference": values_of(reference, fields),
            "gpus": [values_of(gpu, CAPACITY_FIELDS) for gpu in task.gpus],
            "access_order": options.access_order,
            **options.l2_identity,
        }
        kept = None if self._memo is None else self._memo.get("recorded", settings)
        if kept is None:
            profiles = recorded_profiles(
                self.kernels, reference, task.gpus, options, stop=self._stop
            )
            if self._memo is not None:
                self._memo.put("recorded", settings, [core for one in profiles for core in one])
            return profiles
        # Equal profiles of a kernel are one object, as fresh ones are.
        same: dict[tuple[int, bytes], _core.MemoryProfile] = {}
        count = len(self.kernels)
        return [
            [
                same.setdefault((number, core.words.tobytes()), core)
                for number, core in enumerate(kept[start : start + count])
            ]
            for start in range(0, len(kept), count)
        ]

    def _fill(
        self,
        numbers: dict[str, npt.NDArray[np.float64]],
        errors: npt.NDArray[np.object_],
        where: tuple[list[int], slice, int],
        profiles: Sequence[IntervalProfile],
        gpus: Sequence[Gpu],
        model: str,
        num_threads: int,
    ) -> None:
        try:
            columns = evaluate_all(profiles, gpus, model, num_threads=num_threads)
        except InputError:
            # Rare: a kernel that this model cannot predict on these GPUs. Which one is found by
            # asking for each alone; like `predict`, the application has no row without it.
            for position, gpu in zip(where[0], gpus, strict=True):
                self._fill_one(numbers, errors, (position, where[2]), profiles, gpu, model)
            return
        for name in NUMBERS:
            numbers[name][where] = columns[name]

    def _fill_one(
        self,
        numbers: dict[str, npt.NDArray[np.float64]],
        errors: npt.NDArray[np.object_],
        where: tuple[int, int],
        profiles: Sequence[IntervalProfile],
        gpu: Gpu,
        model: str,
    ) -> None:
        position, m = where
        try:
            columns = evaluate_all(profiles, [gpu], model)
        except InputError as error:
            errors[position, :, m] = str(error)
            return
        for name in NUMBERS:
            numbers[name][position, :, m] = columns[name][0]

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise InterruptedError

    def _shape(self, task: Points) -> tuple[int, int, int]:
        return len(task.numbers), len(self.kernels), len(self.models)

    def _rows(
        self,
        task: Points,
        numbers: Numbers,
        errors: npt.NDArray[np.object_],
    ) -> pd.DataFrame:
        """Return the rows of arrays with the shape (points, kernels, models)."""
        shape = self._shape(task)
        kernels, models = self.kernels, self.models
        if numbers and self._anchored is not None:
            numbers = self._anchored(numbers, task.gpus)

        def numbered(axis: int, values: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[Any]:
            index: list[Any] = [None, None, None]
            index[axis] = slice(None)
            return np.broadcast_to(np.asarray(values, np.int64)[tuple(index)], shape).ravel()

        def texts(axis: int, values: Sequence[str]) -> Any:
            # Each is made a text of Arrow once: that takes longer than all the rest of a point.
            return pd.array(values, dtype="str").take(numbered(axis, range(len(values))))

        missing = np.full(shape, np.nan)
        settings = settings_of(self._pipeline.options)
        bad = bool(task.error)
        places, told = pd.factorize(errors.ravel())
        columns = {
            "point": numbered(0, task.numbers),
            "kernel": numbered(1, [kernel.launch_id for kernel in kernels]),
            "name": texts(1, [kernel.short_name for kernel in kernels]),
            "gpu": texts(0, [gpu.name for gpu in task.gpus]),
            "gpu_changes": texts(0, ["" if bad else gpu.changes_text for gpu in task.gpus]),
            "model": texts(2, models),
            **({"anchor": texts(2, [self._anchor] * len(models))} if self._anchor else {}),
            "instructions": numbered(1, [whole_instructions(kernel) for kernel in kernels]),
            **{name: numbers.get(name, missing).ravel() for name in NUMBERS},
            "initial_l2": np.full(missing.size, settings["initial_l2"]),
            "profiler": texts(0, [settings["profiler"]] * len(task.gpus)),
            "trace_digest": texts(1, [kernel.digest for kernel in kernels]),
            "gpu_digest": texts(0, ["" if bad else gpu.digest for gpu in task.gpus]),
            "version": texts(1, [__version__] * len(kernels)),
            "error": pd.array(told, dtype="str").take(places),
        }
        return pd.DataFrame(columns)


def _same_but_for_caches(gpus: Sequence[Gpu], model: str) -> list[list[int]]:
    """Return the positions of GPUs that differ only in fields that neither intervals nor model read."""
    unread = CAPACITY_FIELDS - INTERVAL_FIELDS - model_reads(model)
    read = frozenset(Gpu.fields()) - unread
    return alike(gpus, read)
