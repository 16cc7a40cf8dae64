"""Sweeps: what models predict over a design space, stage by stage."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import numbers
import os
import threading
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._core import __version__
from warpstack._util.arguments import as_integer, value_text
from warpstack._util.checked import checked
from warpstack._util.choices import (
    DEFAULT_MODEL,
    CacheRuns,
    Profiler,
)
from warpstack._util.former import former_keywords
from warpstack._util.options import Options, TimeChanges, options_of
from warpstack._util.progress import Silent, progress_bar
from warpstack.errors import InputError, UnusedOptionWarning, not_a, shown, warn
from warpstack.exploration.anchors import SIMULATE, Anchor, Base, base_of
from warpstack.exploration.recorded import CAPACITY_FIELDS, check_caches, recorded_groups
from warpstack.exploration.runner import Points, Runner, Task
from warpstack.exploration.stage_cache import CacheLike, StageCache, as_cache, program
from warpstack.exploration.store import FORMAT_VERSION, SweepStore
from warpstack.exploration.threads import MOST_WORKERS, on_threads
from warpstack.hardware.description import (
    FIELDS_OF_THE_CLOCK,
    Gpu,
    GpuLike,
    as_gpu,
    check_value_fields,
)
from warpstack.hardware.profiler import checked_profiler, launch_us, profiled
from warpstack.memory.caches import cache_fields
from warpstack.models import interval_simulation
from warpstack.models.prediction import fields_used, model_list, needs_of, warn_of_unread
from warpstack.tables import result_table
from warpstack.timing.at_once import SharedProgress
from warpstack.traces.cluster import check_client, run_on_cluster
from warpstack.traces.trace import App, KernelTrace, kernels_of, warn_of_samples

if TYPE_CHECKING:
    import distributed
    from typing_extensions import Unpack

__all__ = ["Axes", "sweep"]

Apps = App | KernelTrace | Mapping[str, App | KernelTrace]
#: A grid by field, or points.
Axes = Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Any]]

_MOST_POINTS = 2**24
#: The options, beside the profiler, that tell sweeps apart, in the order in which stores on disk have
#: them. After them comes how L2 begins. A new one enters only where it is not the default.
_IDENTITY = ("selection", "misses", "merge_threshold", "access_order")
#: Points of one task, and its rows unless one point has more: a task's result is in memory and
#: written at once, and a row takes half a KiB.
_TASK_POINTS = 20_000
_TASK_ROWS = 2**17
#: Points of one task where each may be a run of interval simulation, so that results come as it goes.
_TASK_RUNS = 64


@former_keywords(app_or_kernels="app")
@checked
def sweep(
    app: Apps,
    gpu: GpuLike,
    axes: Axes,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    *,
    workers: int | None = None,
    client: distributed.Client | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = True,
    cache: CacheLike = True,
    options: Options | None = None,
    caches: CacheRuns = "exact",
    anchor: str | None = None,
    progress: bool = False,
    **changes: Unpack[TimeChanges],
) -> pd.DataFrame:
    """Predict the performance of kernels on many GPUs.

    Every row is the one that `warpstack.predict` gives for that point alone, unless `caches` or
    `anchor` say otherwise.

    Parameters
    ----------
    app
        An application, one kernel, or several of them by name.
    gpu
        The GPU that the points change: a description, its name, or the path of one.
    axes
        A grid, ``{"num_sms": [28, 56], "l1_mshrs": [32, 64]}``, whose last field changes fastest;
        or points, ``[{"num_sms": 28}, {"num_sms": 56, "l1_mshrs": 64}]``, such as those of
        `warpstack.exploration.samples`. A point is ``gpu.replace(**point)``.
    models
        Names of models, or ``all``.
    workers
        Threads; by default as many as the machine runs at once. The result does not depend on it.
    client
        A Dask cluster to run on (needs ``warpstack[dask]``); `workers` is then the threads of a
        task, by default 1. A worker that is lost costs time only.
    store
        Folder to write results to while the sweep runs, as a Parquet dataset
        (``pandas.read_parquet`` reads it). A sweep that was interrupted computes only what is not
        there. A result is there about a second after it was computed, or a hundredth of the time that
        the sweep has run. One sweep writes at a time; `warpstack.exploration.sweep_to_store`
        divides one among several programs, and needs no memory for the whole table.
    resume
        False: a `store` with results is an error.
    cache
        Where results of the memory stage are kept from sweep to sweep: True, the user's cache (see
        ``warpstack cache``), which the environment variable ``WARPSTACK_CACHE=off`` switches off;
        False, nowhere; or a folder, or a `warpstack.exploration.StageCache`.
    options, **changes
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``, ``initial_l2``, ``profiler``.
        A clock among the axes is the clock under every profiler.
    caches
        ``exact``: each point with caches of its own is simulated. ``recorded``: points that differ in
        sizes and ways of L1 and L2 take the order of accesses from one of them whose sizes are at most
        about twice theirs, and of large applications a part of L2's sets stands for all. Many times
        faster, and less exact: ``docs/how-to/sweep.md`` has the errors. Interval simulation has
        caches of its own, and runs once for each point that changes what it reads.
    anchor
        A better engine, run once per kernel at the base, which is `gpu` without changes: a model
        that is not swept, or ``simulate``, the cycle-level simulator. A point's cycles are then the
        engine's at the base times the ratio of the model's, at the point over at the base; so is the
        CPI, to which the model's stack is scaled. Where the model says what it says at the base, the
        row is the engine's own answer. None: no anchor.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    DataFrame
        In the order of points, applications, kernels and models: ``point`` (number of the
        configuration), a column per field of the axes with its value, ``app`` where several were
        given by name, the columns of `warpstack.predict`, after ``model`` the engine ``anchor`` if
        there is one, and ``error``: text where the point cannot be predicted, whose numbers are then
        NaN, and otherwise empty.

    Raises
    ------
    InputError
        If an argument is unknown, the axes are not a design, the store holds another sweep, or the
        anchor has no answer at the base. A point that is wrong is a row with an error.

    Warns
    -----
    UnusedOptionWarning
        If no model reads a field of the axes, or an option that is set.
    """
    how = options_of("sweep", options, changes, TimeChanges)
    design = Design.of(app, as_gpu(gpu), axes, models, how.profiler)
    work = Work(
        design, how, workers=workers, client=client, cache=cache, caches=caches, anchor=anchor
    )
    return run_sweep(work, store=store, resume=resume, progress=progress)


def run_sweep(
    work: Work,
    *,
    store: str | os.PathLike[str] | None = None,
    resume: bool = True,
    progress: bool = False,
) -> pd.DataFrame:
    """Do what `sweep` does, of a sweep that is ready to run."""
    design = work.design
    kept = None if store is None else SweepStore(store, work.identity, resume=resume)
    with contextlib.nullcontext() if kept is None else contextlib.closing(kept):
        results = {} if kept is None else kept.read(work.sizes)
        missing = [number for number in range(len(work.tasks)) if number not in results]
        work.find_bases(missing, progress)
        with (
            progress_bar(progress, design.num_evaluations, "sweeping", "prediction") as bar,
            contextlib.closing(work.run(missing)) as running,
        ):
            bar.update(sum(map(len, results.values())))
            for number, table in running:
                results[number] = table
                if kept is not None:
                    kept.add(number, table)
                bar.update(len(table))
    return result_table(design.table([results[number] for number in range(len(work.tasks))]))


class Work:
    """A sweep that is ready to run: its tasks, and where they do.

    Parameters
    ----------
    design, options
        What is predicted, and how.
    workers, client, cache, caches, anchor
        As for `sweep`; the anchor of an earlier sweep of the same applications keeps what it found.

    Attributes
    ----------
    anchor
        The anchor; None: there is none.

    Raises
    ------
    InputError
        If an argument is not what `sweep` takes.
    """

    def __init__(
        self,
        design: Design,
        options: Options,
        *,
        workers: int | None,
        client: distributed.Client | None,
        cache: CacheLike,
        caches: CacheRuns = "exact",
        anchor: str | Anchor | None = None,
    ) -> None:
        check_caches(caches, options)
        if caches != "exact" and not needs_of(design.models).profiles:
            warn(
                f"caches = {caches}: {interval_simulation.NAME} does not read it, as it has caches of its "
                "own; leave it out",
                UnusedOptionWarning,
            )
        self.design = design
        self.options = options
        if workers is not None:
            workers = as_integer("workers", workers, 1, MOST_WORKERS)
        self._workers = workers
        if client is not None:
            check_client(client)
        self._client = client
        self._cache = as_cache(cache)
        if isinstance(anchor, str):
            told = "clock_ghz" not in design.axes
            anchor = Anchor.of(anchor, design.gpu, design.models, options, told=told)
            for app, kernels in design.apps.items():
                anchor.check(kernels, app)
        self.anchor = anchor
        _warn_of_unused(design, options, anchor)
        self._caches = caches
        self.tasks = design.tasks(options, caches)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this sweep from others, ready for JSON."""
        identity = {**self.design.identity(self.options), "caches": self._caches}
        # Stores of sweeps without an anchor stay what they are.
        return identity if self.anchor is None else {**identity, "anchor": self.anchor.name}

    @property
    def sizes(self) -> list[int]:
        """Rows of each task."""
        return [self.design.num_rows(task) for task in self.tasks]

    def find_bases(self, missing: Sequence[int], progress: bool) -> None:
        """Find what the anchor says of the applications of tasks that are missing.

        Raises
        ------
        InputError
            If it has no answer.
        """
        anchor, design = self.anchor, self.design
        if anchor is None:
            return
        needed = {task.app for task in (self.tasks[n] for n in missing) if not task.error}
        apps = sorted(needed - anchor.bases.keys())
        kernels = [design.kernels(app) for app in range(len(design.apps))]
        sizes = [sum(kernel.num_instructions for kernel in each) for each in kernels]
        with progress_bar(
            progress and bool(apps), sum(sizes[app] for app in apps), "anchoring", "instruction"
        ) as bar:
            if self._client is not None:
                work = partial(_base_remotely, anchor, self._cache, self._workers or 1)
                tasks = ((app, app, None) for app in apps)
                for app, base in run_on_cluster(self._client, kernels, tasks, work):
                    anchor.bases[app] = base
                    bar.update(sizes[app])
                return
            stop = threading.Event()
            shared = SharedProgress(bar, stop)

            def find(app: int, num_threads: int) -> Base:
                return base_of(anchor, self._cache, num_threads, kernels[app], shared, stop)

            with contextlib.closing(on_threads(apps, find, self._workers, stop)) as found:
                anchor.bases.update(found)

    def run(self, missing: Sequence[int]) -> Generator[tuple[int, pd.DataFrame], None, None]:
        """Yield the number and the rows of each missing task as they come."""
        where = (self.design, self.options, self.tasks, missing, self._workers, self._cache)
        if self._client is not None:
            return _on_cluster(self._client, *where, self.anchor)
        return _on_threads(*where, self.anchor)


class Design:
    """The points of a sweep, and what is predicted at each."""

    def __init__(
        self,
        apps: Mapping[str, tuple[KernelTrace, ...]],
        gpu: Gpu,
        axes: tuple[str, ...],
        points: Sequence[Mapping[str, Any]],
        models: Sequence[str],
        *,
        named: bool,
        profiler: Profiler = "nsys",
    ) -> None:
        self.apps = dict(apps)
        self.gpu = gpu
        self.axes = axes
        self.points = points
        self.models = tuple(models)
        self.named = named
        self.profiler = profiler
        self._names = list(self.apps)
        self._kernels = list(self.apps.values())
        self._kinds: dict[str, str] = dict.fromkeys(axes, "int64")

    @classmethod
    def of(
        cls,
        apps: Apps,
        gpu: Gpu,
        axes: Axes,
        models: str | Iterable[str],
        profiler: Profiler = "nsys",
    ) -> Design:
        """Return the design that a caller wrote.

        Raises
        ------
        InputError
            If it is not a design.
        """
        named = isinstance(apps, Mapping)
        by_name = apps if isinstance(apps, Mapping) else {"": apps}
        kernels = {}
        for name, app in by_name.items():
            if not isinstance(name, str):
                raise InputError(f"the name of an application, {shown(name)}, is not text")
            kernels[name] = kernels_of(app)
            if not kernels[name]:
                what = f"the application {name}" if name else "the application"
                raise InputError(f"{what} has no kernels; there is nothing to predict")
            warn_of_samples(kernels[name], "sweep")
        if not kernels:
            raise InputError("there is no application; there is nothing to predict")
        fields, points = points_of(axes)
        wanted = model_list(models)
        if "clock_ghz" not in fields:
            profiled(gpu, profiler)  # warns, once, where the profiler's clock is not known
        else:
            checked_profiler(profiler)
        return cls(kernels, gpu, fields, points, wanted, named=named, profiler=profiler)

    def gpu_at(self, number: int) -> Gpu | InputError:
        """Return the GPU of a point, as it runs under the profiler, or why it is impossible.

        It is made anew each time: a million of them would take gigabytes.
        """
        return _profiled(self.described_at(number), self.profiler)

    def described_at(self, number: int) -> Gpu | InputError:
        """Return the GPU of a point as the caller described it: the columns of the axes have its values."""
        return _changed(self.gpu, self.points[number])

    def points_of(self, task: Task) -> Points:
        """Return what is computed of a task."""
        if task.error:
            return Points(task.points, (self.gpu,) * len(task.points), task.error)
        gpus = tuple(self._possible(number) for number in task.points)
        reference = None if task.reference is None else self._possible(task.reference)
        return Points(task.points, gpus, reference=reference, is_part=task.is_part)

    def _possible(self, number: int) -> Gpu:
        gpu = self.gpu_at(number)
        assert isinstance(gpu, Gpu), gpu
        return gpu

    def kernels(self, app: int) -> tuple[KernelTrace, ...]:
        """Return the kernels of an application."""
        return self._kernels[app]

    @property
    def num_evaluations(self) -> int:
        """Rows of the result."""
        kernels = sum(len(kernels) for kernels in self._kernels)
        return len(self.points) * kernels * len(self.models)

    def tasks(self, options: Options, caches: CacheRuns = "exact") -> list[Task]:
        """Divide the sweep into tasks, each with points that share work of the memory stage.

        Where interval simulation is alone, they share a run of it.
        """
        needs = needs_of(self.models)
        if not needs.profiles:
            caches = "exact"
        alike, errors = self._alike(options, caches)
        groups: list[tuple[int | None, npt.NDArray[np.int32]]]
        if caches == "exact":
            groups = [(None, points) for points in alike]
        else:
            groups = [found for points in alike for found in self._recorded_groups(points)]
        tasks = []
        for app, kernels in enumerate(self._kernels):
            points = min(max(_TASK_ROWS // (len(kernels) * len(self.models)), 1), _TASK_POINTS)
            if needs.profiles and needs.simulation:
                points = min(points, _TASK_RUNS)
            for reference, group in groups:
                for start in range(0, len(group), points):
                    some = group[start : start + points]
                    is_part = len(some) < len(group)
                    tasks.append(Task(app, some, reference=reference, is_part=is_part))
            for number, error in errors.items():
                tasks.append(Task(app, np.array([number], dtype=np.int32), error))
        return tasks

    def _alike(
        self, options: Options, caches: CacheRuns
    ) -> tuple[list[npt.NDArray[np.int32]], dict[int, str]]:
        """Return the points of equal caches (recorded: equal but for capacities), and the impossible ones.

        The type of each axis is found on the way.
        """
        fields = cache_fields(options.access_order)
        if not needs_of(self.models).profiles:
            fields = interval_simulation.FIELDS
        if caches == "recorded":
            fields -= CAPACITY_FIELDS
        # All others are those of the GPU that the points change.
        differing = sorted(fields & {*self.axes, "clock_ghz", *FIELDS_OF_THE_CLOCK})
        # Without a clock a point changes its axes alone: no description of it need be made here.
        keeps_clock = "clock_ghz" not in self.axes and self.profiler == "nsys"
        keys: dict[bytes, int] = {}
        group = np.full(len(self.points), -1, dtype=np.int32)
        errors: dict[int, str] = {}
        for number in range(len(self.points)):
            described: Gpu | dict[str, Any] | InputError
            gpu: Gpu | dict[str, Any] | InputError
            if keeps_clock:
                gpu = described = _checked(self.gpu, self.points[number])
            else:
                described = whole = self.described_at(number)
                gpu = _profiled(whole, self.profiler)
            for axis, kind in self._kinds.items():
                if kind != "str":
                    self._kinds[axis] = _wider(kind, self._value(described, number, axis))
            if isinstance(gpu, InputError):
                errors[number] = str(gpu)
                continue
            # A digest: a tuple of many values would take a kilobyte of each group.
            text = repr([self._value(gpu, number, field) for field in differing]).encode()
            key = hashlib.blake2b(text, digest_size=16).digest()
            group[number] = keys.setdefault(key, len(keys))
        order = np.argsort(group, kind="stable").astype(np.int32)[len(errors) :]
        ends = np.cumsum(np.bincount(group[order], minlength=len(keys)))
        return np.split(order, ends[:-1]) if len(order) else [], errors

    def _recorded_groups(
        self, alike: npt.NDArray[np.int32]
    ) -> list[tuple[int | None, npt.NDArray[np.int32]]]:
        """Return the points that one recorded order serves, and the one it is from."""
        gpus = map(self._possible, alike)
        sizes = [(gpu.l1_size_kib, gpu.l2_size_kib) for gpu in gpus]
        return [(int(alike[first]), alike[members]) for first, members in recorded_groups(sizes)]

    def reaches(self, axis: str, fields: Collection[str]) -> bool:
        """Return whether an axis changes other fields, as the clock does with latencies."""
        for number in range(min(len(self.points), 256)):
            gpu, point = self.gpu_at(number), self.points[number]
            others = {k: v for k, v in point.items() if k != axis}
            without = _profiled(_changed(self.gpu, others), self.profiler)
            if (
                isinstance(gpu, Gpu)
                and isinstance(without, Gpu)
                and any(getattr(gpu, field) != getattr(without, field) for field in fields)
            ):
                return True
        return False

    def num_rows(self, task: Task) -> int:
        """Return the rows of a task's result."""
        return len(task.points) * len(self._kernels[task.app]) * len(self.models)

    def identity(self, options: Options) -> dict[str, Any]:
        """Return what tells this sweep from others, ready for JSON."""
        digest = hashlib.sha256()
        for number in range(len(self.points)):
            described = self.described_at(number)
            gpu = _profiled(described, self.profiler)
            named = [self._value(described, number, axis) for axis in self.axes]
            entry = [gpu.digest, gpu.changes_text] if isinstance(gpu, Gpu) else [str(gpu)]
            digest.update(json.dumps([*entry, list(map(value_text, named))]).encode())
        kernels = [[kernel.digest for kernel in kernels] for kernels in self._kernels]
        launches = [[k.launch_id for k in kernels] for kernels in self._kernels]
        traces = json.dumps([kernels, launches]).encode()
        return {
            "format": FORMAT_VERSION,
            "version": __version__,
            "program": program(),
            "axes": list(self.axes),
            "number of points": len(self.points),
            "models": list(self.models),
            "gpu": self.gpu.title,
            "gpu digest": self.gpu.digest,
            "applications": self._names if self.named else [],
            "digest of the traces": hashlib.sha256(traces).hexdigest(),
            "digest of the points": digest.hexdigest(),
            "profiler": self.profiler,
            **{name: getattr(options, name) for name in _IDENTITY},
            **options.l2_identity,
        }

    def add_axes(self, task: Task, gpus: Sequence[Gpu], table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a task with times and axes, and the application where it has a name."""
        positions = np.repeat(
            np.arange(len(task.points)), self.num_rows(task) // max(len(task.points), 1)
        )
        # A point that cannot be predicted has no cycles, and then no time.
        cycles = table["cycles"].to_numpy()
        clocks = np.array([gpu.clock_ghz for gpu in gpus])[positions]
        launches = np.array([launch_us(gpu, self.profiler) for gpu in gpus])[positions]
        launch = np.where(np.isnan(cycles), np.nan, launches)
        after = list(table.columns).index("cycles") + 1
        table.insert(after, "time_us", cycles / clocks / 1e3 + launch)
        table.insert(after + 1, "launch_us", launch)
        described: Sequence[Gpu | InputError] = gpus
        if task.error or self.profiler == "ncu":  # the clock that it holds changes latencies
            described = [self.described_at(number) for number in task.points]
        for place, axis in enumerate(self.axes, start=1):
            values = [
                self._value(gpu, number, axis)
                for number, gpu in zip(task.points, described, strict=True)
            ]
            table.insert(place, axis, self._column(axis, values).take(positions).array)
        if self.named:
            names = pd.Series([self._names[task.app]] * len(table), dtype="str")
            table.insert(len(self.axes) + 1, "app", names)
        return table

    def _value(self, gpu: Gpu | Mapping[str, Any] | InputError, number: int, field: str) -> Any:
        """Return the value of a field at a point; of an impossible one, what the caller wrote."""
        if isinstance(gpu, Gpu):
            return getattr(gpu, field)
        values = self.points[number] if isinstance(gpu, InputError) else gpu
        return values[field] if field in values else getattr(self.gpu, field)

    def _column(self, axis: str, values: list[Any]) -> Any:
        """Return values of an axis in a type that holds those of all points, wrong ones too."""
        kind = self._kinds[axis]
        if kind == "str":
            return pd.Series([value_text(value) for value in values], dtype="str")
        return pd.Series(values, dtype=kind)

    def table(self, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Join the rows of all tasks, in the order of points."""
        table = pd.concat(parts, ignore_index=True)
        # Tasks are in the order of applications, their rows in that of kernels and models.
        order = np.argsort(table["point"].to_numpy(), kind="stable")
        table = table.iloc[order].reset_index(drop=True)
        table.attrs["axes"] = list(self.axes)
        return table


class Grid(Sequence[Mapping[str, Any]]):
    """All combinations of values, the last field changing fastest; each is made when asked for."""

    def __init__(self, values: Mapping[str, Sequence[Any]]) -> None:
        self._values = dict(values)
        self._len = math.prod(map(len, self._values.values()))

    def __len__(self) -> int:
        return self._len

    @overload
    def __getitem__(self, number: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, number: slice) -> list[Mapping[str, Any]]: ...
    def __getitem__(self, number: int | slice) -> Mapping[str, Any] | list[Mapping[str, Any]]:
        """Return a point, or a list of them."""
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        rest = range(len(self))[number]
        point = {}
        for name, values in reversed(self._values.items()):
            rest, place = divmod(rest, len(values))
            point[name] = values[place]
        return {name: point[name] for name in self._values}


def points_of(axes: Axes) -> tuple[tuple[str, ...], Sequence[Mapping[str, Any]]]:
    """Return the fields and the points of a grid or of a list of points.

    Raises
    ------
    InputError
        If a field does not exist (the message suggests the nearest), or there is no point.
    """
    if isinstance(axes, Mapping):
        check_value_fields(axes, "axes")
        values = {}
        for name, given in axes.items():
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InputError(f"axes: {name} = {shown(given)} is not a list of values")
            values[name] = list(given)
            if not values[name]:
                raise InputError(f"axes: {name} has no values")
        grid = Grid(values)
        if len(grid) > _MOST_POINTS:
            raise InputError(
                f"axes: {len(grid)} points are more than {_MOST_POINTS}; take a sample"
            )
        return tuple(values), grid
    if isinstance(axes, str) or not isinstance(axes, Iterable):
        raise not_a("axes", "a mapping or a list of points", axes)
    points = list(axes)
    fields: dict[str, None] = {}
    for number, point in enumerate(points):
        if not isinstance(point, Mapping):
            raise InputError(
                f"axes: point {number} = {shown(point)} is not a mapping of fields to values"
            )
        if not fields.keys() >= point.keys():
            check_value_fields(point, f"axes: point {number}")
            fields.update(dict.fromkeys(point))
    if not points:
        raise InputError("axes: there are no points")
    return tuple(fields), points


def _changed(gpu: Gpu, point: Mapping[str, Any]) -> Gpu | InputError:
    try:
        return gpu.replace(**point)
    except InputError as error:
        return error


def _checked(gpu: Gpu, point: Mapping[str, Any]) -> dict[str, Any] | InputError:
    try:
        return gpu._checked_changes(point)[0]
    except InputError as error:
        return error


def _profiled(gpu: Gpu | InputError, profiler: Profiler) -> Gpu | InputError:
    if not isinstance(gpu, Gpu):
        return gpu
    try:
        return profiled(gpu, profiler, told=True)
    except InputError as error:
        return error


def _wider(kind: str, value: Any) -> str:
    """Return the type of a column that has a value, too."""
    if kind == "float64" and type(value) is float:  # of most axes, and the rest takes longer
        return kind if abs(value) < 2**63 else "str"
    if kind == "int64" and _is_number(value, numbers.Integral):
        return kind
    return "float64" if _is_number(value, numbers.Real) else "str"


def _is_number(value: Any, kind: type[Any]) -> bool:
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    return bool(abs(value) < 2**63)  # of any size: float() has a largest one


def _warn_of_unused(design: Design, options: Options, anchor: Anchor | None) -> None:
    read = design.models if anchor is None else anchor.models_read
    simulates = anchor is not None and anchor.name == SIMULATE
    warn_of_unread(options, read, counts_write_backs=simulates)
    used = fields_used(design.models) | cache_fields(options.access_order)
    for axis in design.axes:
        if axis not in used and not design.reaches(axis, used):
            warn(
                f"axes: {axis} has no influence on the models {', '.join(design.models)}",
                UnusedOptionWarning,
            )


# --- running ------------------------------------------------------------------------------------


def _on_threads(
    design: Design,
    options: Options,
    tasks: Sequence[Task],
    missing: Sequence[int],
    workers: int | None,
    cache: StageCache | None,
    anchor: Anchor | None,
) -> Generator[tuple[int, pd.DataFrame], None, None]:
    """Yield the number and the rows of each missing task as they come."""
    stop = threading.Event()
    runners = [
        _runner(design.kernels(app), design.models, options, cache, stop, _part(anchor, app))
        for app in range(len(design.apps))
    ]

    def run(number: int, num_threads: int) -> pd.DataFrame:
        task = tasks[number]
        points = design.points_of(task)
        return design.add_axes(task, points.gpus, runners[task.app].run(points, num_threads))

    return on_threads(missing, run, workers, stop)


def _on_cluster(
    client: distributed.Client,
    design: Design,
    options: Options,
    tasks: Sequence[Task],
    missing: Sequence[int],
    workers: int | None,
    cache: StageCache | None,
    anchor: Anchor | None,
) -> Generator[tuple[int, pd.DataFrame], None, None]:
    """Do the same on a cluster."""
    work = partial(_run_remotely, design.models, options, cache, workers or 1)
    # The points of a task are made when it is sent.
    listed = (
        (number, app, (design.points_of(tasks[number]), _part(anchor, app)))
        for number, app in ((number, tasks[number].app) for number in missing)
    )
    apps = [design.kernels(app) for app in range(len(design.apps))]
    for number, table in run_on_cluster(client, apps, listed, work):
        task = tasks[number]
        yield number, design.add_axes(task, design.points_of(task).gpus, table)


#: The name of an anchor, and what it says of one application; None for either: there is none.
_Part = tuple[str, "Base | None"]


def _part(anchor: Anchor | None, app: int) -> _Part:
    return ("", None) if anchor is None else (anchor.name, anchor.bases.get(app))


def _runner(
    kernels: tuple[KernelTrace, ...],
    models: tuple[str, ...],
    options: Options,
    cache: StageCache | None,
    stop: threading.Event | None,
    part: _Part,
) -> Runner:
    name, base = part
    anchored = None if base is None else base.anchored
    return Runner(kernels, models, options, cache, stop, anchored=anchored, anchor=name)


def _run_remotely(
    models: tuple[str, ...],
    options: Options,
    cache: StageCache | None,
    num_threads: int,
    kernels: tuple[KernelTrace, ...],
    task: tuple[Points, _Part],
) -> pd.DataFrame:
    points, part = task
    return _runner(kernels, models, options, cache, None, part).run(points, num_threads)


def _base_remotely(
    anchor: Anchor,
    cache: StageCache | None,
    num_threads: int,
    kernels: tuple[KernelTrace, ...],
    _: None,
) -> Base:
    return base_of(anchor, cache, num_threads, kernels, Silent())
