"""``warpstack.timeline`` and its result."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

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
from warpstack.timelines.operations import Columns, operations_of
from warpstack.timelines.plan import plan_of
from warpstack.timelines.schedule import WORDS, play
from warpstack.timelines.trace_events import write_timeline
from warpstack.timelines.what_if import WHAT_IFS, changed_order, with_times
from warpstack.traces.trace import App, KernelTrace

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Timeline", "fields_used", "timeline"]


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
        self._columns: Columns = operations_of(whole, operations)
        self._kernels = kernels_of(whole, self.gpu, self.model, how, progress=progress)
        self._costs = costs_of(self._columns, self._kernels, self.gpu)
        self._order = plan_of(self._columns, self._costs, self.gpu)
        self._schedule = play(self._order, self.gpu)

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
        return play(with_times(self._order, self._costs.low), self.gpu).time_us

    @cached_property
    def time_us_high(self) -> float:
        """`time_us` if all kernels took the longest time of their ranges."""
        return play(with_times(self._order, self._costs.high), self.gpu).time_us

    @property
    def _is_on_device(self) -> npt.NDArray[np.bool_]:
        return self._order.columns["has_device"].astype(bool)

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
        ``event``, ``default stream``, ``graph``, ``dependence``, ``engine``, ``places``, ``host``),
        ``critical`` (whether it is on the critical path), ``estimated`` (whether its time is no prediction:
        of kernels that were not traced, and of libraries).
        """
        made, order = self._schedule, self._order.columns
        on_device = self._is_on_device
        called = order["thread"] >= 0
        engine = [
            TIMELINE_ENGINES[number] if is_there and number else ""
            for number, is_there in zip(order["engine"].tolist(), on_device.tolist(), strict=True)
        ]
        critical = np.zeros(len(self), bool)
        critical[[step.row for step in self._critical]] = True
        return pd.DataFrame(
            {
                "operation": self._columns["operation"],
                "name": self._columns["name"],
                "thread": order["thread"],
                "stream": self._columns["stream"],
                "engine": engine,
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
        NaN without copies), ``host_busy_us`` (of all host threads: in calls and between them, without
        waits), ``host_waiting_us`` (of all, in calls that wait), ``estimated_us`` (of operations whose time
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
        in_calls = made.host_end - made.host_start - order["host_call"]
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
            "host_busy_us": float((order["host_before"] + order["host_call"])[called].sum()),
            "host_waiting_us": float(in_calls[called].sum()),
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
            calls take no time), ``pinned`` (all memory of the host is pinned).

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
            time = play(order, self.gpu).time_us
            speedup = self.time_us / time if time else float("nan")
            rows.append({"what_if": name, "time_us": time, "speedup": speedup})
        return pd.DataFrame(rows, columns=["what_if", "time_us", "speedup"])

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
        left out. By default that of the application; without one its kernels follow one another in the
        default stream.
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
