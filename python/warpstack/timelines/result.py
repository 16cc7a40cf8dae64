"""``warpstack.timeline``, its result, and that beside a measured time line."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warpstack._core import TIMELINE_ENGINES
from warpstack._util import notebook
from warpstack._util.arguments import as_path
from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import OptionChanges, Options, options_of
from warpstack._util.same import same
from warpstack.errors import InputError, unknown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.stages import Stage, fields_of
from warpstack.models.prediction import fields_used as fields_of_models
from warpstack.models.prediction import model_list
from warpstack.timelines import spans
from warpstack.timelines.costs import costs_of, kernels_of
from warpstack.timelines.critical import Step, critical_path
from warpstack.timelines.measured import Pairs, predicted_side
from warpstack.timelines.operations import Columns, operations_of
from warpstack.timelines.plan import Plan, plan_of
from warpstack.timelines.schedule import WORDS, Schedule, play
from warpstack.timelines.trace_events import timeline_events, write_beside, write_timeline
from warpstack.timelines.what_if import WHAT_IFS, changed_order, with_times
from warpstack.traces.trace import App, KernelTrace

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Timeline", "TimelineComparison", "fields_used", "timeline"]


def _may_overlap(columns: Columns) -> bool:
    """Return whether kernels may run together: they are in several streams, or in a graph."""
    kernels = np.flatnonzero(columns["kernel"] >= 0)
    streams = {
        (int(columns["process"][row]), int(columns["stream"][row])) for row in kernels.tolist()
    }
    return len(streams) > 1 or bool((columns["graph"][kernels] >= 0).any())


class Timeline:
    """The time line of a program on a GPU, made by `warpstack.timeline`, which explains the parameters.

    ``docs/explanation/timelines.md`` says what operations wait for and what they take.

    Attributes
    ----------
    name
        The application.
    gpu
        The GPU.
    model
        The model that predicted the kernels.
    """

    @checked
    def __init__(
        self,
        app: App | KernelTrace,
        gpu: GpuLike,
        model: str = DEFAULT_MODEL,
        *,
        operations: pd.DataFrame | None = None,
        options: Options | None = None,
        progress: bool = False,
    ) -> None:
        how = Options() if options is None else options
        if how.profiler != "nsys":
            raise InputError(
                f"timeline: profiler = {how.profiler}: a time line has the times of nsys; leave it out"
            )
        (self.model,) = model_list(model)
        self.gpu: Gpu = as_gpu(gpu)
        whole = App([app], app.short_name) if isinstance(app, KernelTrace) else app
        self.name = whole.name
        self._kernel_names = [kernel.name for kernel in whole.kernels]
        self._columns: Columns = operations_of(whole, operations)
        self._kernels = kernels_of(
            whole,
            self.gpu,
            self.model,
            how,
            together=_may_overlap(self._columns),
            progress=progress,
        )
        self._costs = costs_of(self._columns, self._kernels, self.gpu)
        self._order = plan_of(self._columns, self._costs, self.gpu)
        self._schedule = self._play(self._order)

    def _play(self, order: Plan) -> Schedule:
        return play(order, self.gpu, self._kernels.classes)

    def __len__(self) -> int:
        return len(self._schedule.end)

    def __eq__(self, other: object) -> bool:
        """Return whether both are of equal operations with equal times, on equal GPUs."""
        if not isinstance(other, Timeline):
            return NotImplemented
        mine, theirs = (
            (one.name, one.gpu, one.model, one._columns, vars(one._schedule))
            for one in (self, other)
        )
        return same(mine, theirs)

    def __hash__(self) -> int:
        return hash((self.name, self.model, len(self), self.time_us))

    def __repr__(self) -> str:
        return (
            f"Timeline({self.name!r}, {self.gpu.title!r}, {len(self)} operations, "
            f"{self.time_us:.6g} us)"
        )

    @property
    def time_us(self) -> float:
        """From the start of the program to the end of its last operation, in us."""
        return self._schedule.time_us

    @cached_property
    def time_us_low(self) -> float:
        """`time_us` if all kernels took the shortest time of their ranges."""
        return self._play(with_times(self._order, self._costs.low)).time_us

    @cached_property
    def time_us_high(self) -> float:
        """`time_us` if all kernels took the longest time of their ranges."""
        return self._play(with_times(self._order, self._costs.high)).time_us

    @property
    def _is_on_device(self) -> npt.NDArray[np.bool_]:
        return self._order.columns["has_device"].astype(bool)

    @property
    def _engine_names(self) -> list[str]:
        numbers, on_device = self._order.columns["engine"], self._is_on_device
        return [
            TIMELINE_ENGINES[number] if is_there and number else ""
            for number, is_there in zip(numbers.tolist(), on_device.tolist(), strict=True)
        ]

    def _events(self, title: str) -> list[dict[str, Any]]:
        return timeline_events(self._columns, self._order, self._schedule, self._costs, title)

    @cached_property
    def _critical(self) -> list[Step]:
        return critical_path(self._order, self._schedule)

    @property
    def table(self) -> pd.DataFrame:
        """One row per operation, in the order of the calls.

        ``operation``, ``name``, ``thread``, ``stream`` (-1: none), ``engine`` (empty: none), ``queued_us``
        (when its call was made; NaN for nodes of graphs, which have none), ``start_us`` and ``end_us`` (on
        the device; of the call where it has no work there), ``returned_us`` (when the call returned),
        ``waited_for`` (the row that let it start last; -1: its call did), ``why`` (``stream order``,
        ``event``, ``default stream``, ``graph``, ``dependence``, ``engine``, ``places``, ``queue``,
        ``host``), ``critical`` (whether its work on the device is a part of the critical path; of
        what has none there: whether its call is), ``estimated`` (whether its time is no prediction:
        of kernels that were not traced, and of libraries).
        """
        made, order = self._schedule, self._order.columns
        on_device = self._is_on_device
        called = order["thread"] >= 0
        critical = np.zeros(len(self), bool)
        # The call of a kernel can decide when its work does not.
        decides = [
            step.row for step in self._critical if step.part == "device" or not on_device[step.row]
        ]
        critical[decides] = True
        return pd.DataFrame(
            {
                "operation": self._columns["operation"],
                "name": self._columns["name"],
                "thread": order["thread"],
                "stream": self._columns["stream"],
                "engine": self._engine_names,
                "queued_us": np.where(called, made.host_start + order["host_call"], np.nan),
                "start_us": made.start,
                "end_us": made.end,
                "returned_us": np.where(called, made.host_end, np.nan),
                "waited_for": np.where(on_device, made.released_by, made.host_waited_for),
                "why": [WORDS[number] for number in made.why],
                "critical": critical,
                "estimated": self._costs.estimated,
            }
        )

    @cached_property
    def totals(self) -> dict[str, float]:
        """Sums, in us unless the name says otherwise.

        ``time_us``, ``time_us_low``, ``time_us_high``; ``gpu_busy_us`` (some kernel, copy or memset ran),
        ``gpu_idle_us`` (none did), ``kernels_us`` (some kernel ran), ``copies_us`` (a copy between host
        and GPU ran), ``copies_hidden_us`` (of these, while a kernel ran), ``copies_hidden`` (their share;
        NaN without copies), ``host_busy_us`` (some host thread was at work, in a call or between calls),
        ``host_waiting_us`` (none was, and some waited in a call), ``estimated_us`` (of operations whose time
        is no prediction).
        """
        made, order = self._schedule, self._order.columns
        engine, on_device = order["engine"], self._is_on_device
        engines = {name: on_device & (engine == n) for n, name in enumerate(TIMELINE_ENGINES)}

        def ran(*names: str) -> spans.Spans:
            rows = np.logical_or.reduce([engines[name] for name in names])
            return spans.union(made.start[rows], made.end[rows])

        operation = np.array(self._columns["operation"], object)
        direction = np.array(self._columns["direction"], object)
        moves = on_device & (operation == "copy") & np.isin(direction, ("HtoD", "DtoH"))
        kernels = ran("kernels")
        copies = spans.union(made.start[moves], made.end[moves])
        busy = spans.length(ran("kernels", "to_gpu", "to_host", "on_gpu", "memset"))
        hidden, copied = spans.length(spans.common(copies, kernels)), spans.length(copies)
        called = order["thread"] >= 0
        begin = (made.host_start - order["host_before"])[called]
        waits = (made.host_start + order["host_call"])[called]
        at_work = spans.union(begin, waits)
        in_waits = spans.union(waits, made.host_end[called])
        waited = spans.length(in_waits) - spans.length(spans.common(in_waits, at_work))
        return {
            "time_us": self.time_us,
            "time_us_low": self.time_us_low,
            "time_us_high": self.time_us_high,
            "gpu_busy_us": busy,
            "gpu_idle_us": self.time_us - busy,
            "kernels_us": spans.length(kernels),
            "copies_us": copied,
            "copies_hidden_us": hidden,
            "copies_hidden": hidden / copied if copied else float("nan"),
            "host_busy_us": spans.length(at_work),
            "host_waiting_us": waited,
            "estimated_us": float((made.end - made.start)[self._costs.estimated].sum()),
        }

    @property
    def critical_path(self) -> pd.DataFrame:
        """What decides when the program ends, the longest part first.

        A row per kind of ``operation``, ``name`` and ``part``: ``device`` (its work), ``launch`` (from the
        call, or from the end of what it follows, to its start), ``call`` (the host's time in the call),
        ``return`` (from the end of what the host waits for to the return), ``program`` (the host's time
        before the call). ``steps``, ``time_us``, which sum to that of the program, and ``share``.
        """
        found: dict[tuple[str, str, str], list[float]] = {}
        for row, part, start, end in self._critical:
            key = (self._columns["operation"][row], self._columns["name"][row], part)
            entry = found.setdefault(key, [0, 0.0])
            entry[0] += 1
            entry[1] += end - start
        total = self.time_us
        rows = [
            (*key, int(steps), time, time / total if total else float("nan"))
            for key, (steps, time) in sorted(found.items(), key=lambda item: -item[1][1])
        ]
        columns = ["operation", "name", "part", "steps", "time_us", "share"]
        return pd.DataFrame(rows, columns=columns)

    @checked
    def what_if(self, names: str | list[str] | None = None) -> pd.DataFrame:
        """Return how long the program would take if it were changed.

        Parameters
        ----------
        names
            Of the changes; by default all: ``no copies`` (those between host and GPU take no time),
            ``one stream`` (all work in one stream), ``graph`` (all kernels as nodes of one graph: their
            calls take no time), ``pinned`` (all memory of the host is pinned), ``32 connections`` (streams
            share that many queues to the GPU).

        Returns
        -------
        DataFrame
            One row per change: ``what_if``, ``time_us``, ``speedup`` (of this time line's time over it).

        Raises
        ------
        InputError
            If there is no such change.
        """
        wanted = list(WHAT_IFS) if names is None else [names] if isinstance(names, str) else names
        rows = []
        for name in wanted:
            if name not in WHAT_IFS:
                raise unknown("what-if", name, WHAT_IFS)
            order = changed_order(name, self._columns, self._kernels, self.gpu)
            time = self._play(order).time_us
            speedup = self.time_us / time if time else float("nan")
            rows.append({"what_if": name, "time_us": time, "speedup": speedup})
        return pd.DataFrame(rows, columns=["what_if", "time_us", "speedup"])

    @checked
    def compare(
        self,
        measured: pd.DataFrame,
        *,
        iterations: int = 1,
        iteration: int | None = None,
        between_us: tuple[float, float] | None = None,
    ) -> TimelineComparison:
        """Put a measured time line beside this one, operation by operation.

        Kernels are partners by name: the k-th call of a name is the k-th measured one. Names can be
        mangled, demangled or short; where both sides have template arguments and parameters these count,
        too. Copies are partners by direction and size, fills by size. What has no partner stays, as a row
        of its own. ``docs/how-to/measured-timelines.md`` says how to record a profile.

        Parameters
        ----------
        measured
            The result of `warpstack.validation.reference.read_timeline`.
        iterations
            How often the profile holds the program. With n kernels of a name in the program, the first n
            measured ones are those of the first iteration, the next n those of the second. Times are
            means over the iterations; each begins with its own first operation.
        iteration
            Compare this one alone, from 1.
        between_us
            Compare what starts in this part of the profile alone: its begin and its end, in us since the
            profile's first operation. This leaves out what the program does not do, such as a warm-up.

        Returns
        -------
        TimelineComparison

        Raises
        ------
        InputError
            If the table is not of `read_timeline`, has nothing in this part, or a number cannot be.

        Warns
        -----
        UserWarning
            If the profile seems to hold the program more or less often than `iterations` says, more than
            half of the operations of one side have no partner, or it has operations of several devices.
        """
        return TimelineComparison(
            self, measured, iterations=iterations, iteration=iteration, between_us=between_us
        )

    @checked
    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write the time line as a trace that ui.perfetto.dev and chrome://tracing open.

        Parameters
        ----------
        path
            The file; one that is there is replaced. A name that ends in ``.gz`` packs it.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        about = {"app": self.name, "gpu": self.gpu.title, "model": self.model}
        write_timeline(
            as_path("path", path), self._columns, self._order, self._schedule, self._costs, about
        )

    def _repr_html_(self) -> str:
        return notebook.cell(
            f"{self.name} on {self.gpu.title}: {len(self)} operations", notebook.fields(self.totals)
        )


class TimelineComparison:
    """A measured time line beside the predicted one, made by `Timeline.compare`, which explains both.

    Attributes
    ----------
    timeline
        The predicted time line.
    iterations
        How often the measured one holds the program.
    iteration
        Which of these is compared, from 1; None: the mean of all.
    counts
        How many operations there are: ``pairs`` (predicted ones with a measured one), ``only_predicted``,
        ``only_measured`` (both have rows with NaN), ``outside`` (measured ones before or after the part
        that is compared, or in other iterations: they have no rows).
    """

    @checked
    def __init__(
        self,
        timeline: Timeline,
        measured: pd.DataFrame,
        *,
        iterations: int = 1,
        iteration: int | None = None,
        between_us: tuple[float, float] | None = None,
    ) -> None:
        self.timeline = timeline
        self.iterations = iterations
        self.iteration = iteration
        side = predicted_side(
            timeline._columns,
            timeline._order,
            timeline._schedule,
            timeline._engine_names,
            timeline._kernel_names,
        )
        self._pairs = Pairs(side, measured, iterations, iteration, between_us)
        self.counts = self._pairs.counts

    def __eq__(self, other: object) -> bool:
        """Return whether both compare equal time lines with equal measured ones."""
        if not isinstance(other, TimelineComparison):
            return NotImplemented
        mine, theirs = (
            (one.timeline, one.iterations, one.iteration, vars(one._pairs)) for one in (self, other)
        )
        return same(mine, theirs)

    def __hash__(self) -> int:
        return hash((self.timeline, self.iterations, self.iteration, *self.counts.values()))

    def __repr__(self) -> str:
        said = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"TimelineComparison({self.timeline.name!r}, {self.timeline.gpu.title!r}: {said})"

    @property
    def table(self) -> pd.DataFrame:
        """One row per operation, in the order of starts; what has no partner has NaN on the other side.

        ``operation`` (``kernel``, ``copy``, ``memset``; ``library``, ``nccl``: calls whose kernels the trace
        does not know, which have no partner), ``name`` (a kernel's own; with template arguments, and with
        parameters, where only these tell kernels apart), ``direction``, ``bytes``, ``row`` (of
        `Timeline.table`; -1: only measured), ``runs`` (measured operations that the row is the mean of),
        ``predicted_stream``, ``measured_stream`` (-1: none; each side has numbers of its own),
        ``predicted_us``, ``measured_us`` (how long it took), ``predicted_start_us``, ``measured_start_us``
        (since the first operation that both have), ``error`` (of `predicted_us`, a fraction of
        `measured_us`).
        """
        return self._pairs.table

    @property
    def by_name(self) -> pd.DataFrame:
        """One row per kernel, direction of copies, and kind of other work, the longest measured first.

        ``operation``, ``name``, ``pairs``, ``only_predicted``, ``only_measured``, ``predicted_us`` and
        ``measured_us`` (sums over the pairs), ``ratio`` (of these), ``mean_error`` (the mean of absolute
        errors of the pairs, a fraction).
        """
        return self._pairs.by_name

    @property
    def totals(self) -> pd.DataFrame:
        """Sums of both time lines, pairs or not: ``total``, ``predicted``, ``measured``, ``ratio``.

        ``time_us`` (from the first start on the GPU to the last end), ``gpu_busy_us`` (some kernel, copy
        or memset ran), ``gpu_idle_us``, ``kernels_us``, ``copies_us`` (between host and GPU),
        ``copies_hidden_us`` (of these, while a kernel ran) and ``copies_hidden`` (their share; NaN without
        copies). Where the mean of all iterations is compared, measured times are those of the whole part,
        with the gaps between iterations, over the number of iterations.
        """
        return self._pairs.totals

    @property
    def _drawn(self) -> pd.DataFrame:
        return self._pairs.drawn

    @checked
    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write both time lines as one trace that ui.perfetto.dev and chrome://tracing open.

        Parameters
        ----------
        path
            The file; one that is there is replaced. A name that ends in ``.gz`` packs it. It has two
            processes, ``predicted on`` the GPU and ``measured``, whose tracks are named as threads. Of
            several iterations it has the first one, or the one that is compared.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        line = self.timeline
        about = {"app": line.name, "gpu": line.gpu.title, "model": line.model}
        write_beside(
            as_path("path", path),
            line._events(f"predicted on {line.gpu.title}"),
            self._drawn,
            about,
        )

    def _repr_html_(self) -> str:
        return notebook.cell(repr(self), notebook.table(dict(self.by_name.items()), "by_name"))


@checked
def timeline(
    app: App | KernelTrace,
    gpu: GpuLike,
    model: str = DEFAULT_MODEL,
    *,
    operations: pd.DataFrame | None = None,
    options: Options | None = None,
    progress: bool = False,
    **changes: Unpack[OptionChanges],
) -> Timeline:
    """Predict the time line of a program: its calls, copies and kernels on host and GPU.

    Kernels take what `warpstack.predict` says that Nsight Systems reports; launches that are alike are
    predicted once. All else is by the fields of `Gpu` that ``docs/explanation/timelines.md`` names.

    Parameters
    ----------
    app
        An application, or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    model
        The model that predicts the kernels.
    operations
        What the host does, with the columns of ``App.operations``, of which all but ``operation`` can be
        left out, unless there are copies or fills (``docs/how-to/host-operations.md``). By default that of
        the application; without one its kernels follow one another in the default stream.
    options, **changes
        How the stages work; see `warpstack.Options`. The time of kernels is that of the profiler ``nsys``.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Timeline

    Raises
    ------
    InputError
        If a name is unknown, a row of the table cannot be, a thread block does not fit on an SM, or another
        profiler is asked for.
    """
    how = options_of("timeline", options, changes, OptionChanges)
    return Timeline(app, gpu, model, operations=operations, options=how, progress=progress)


def fields_used(model: str) -> set[str]:
    """Return the fields of `Gpu` that a time line depends on."""
    fields = fields_of(Stage.TIMELINE) | {"launch_us_batch", "launch_us_nsys"}
    return fields_of_models([model]) | fields | {"dram_bandwidth_gbs", "dram_efficiency"}
