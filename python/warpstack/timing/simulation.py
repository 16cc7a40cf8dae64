"""The timing stage: cycle-level simulation of a GPU, the project's own reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from warpstack import _core
from warpstack._util import notebook
from warpstack._util.arguments import as_integer, thread_count
from warpstack._util.checked import checked
from warpstack._util.choices import InitialL2, Profiler
from warpstack._util.former import former_keywords
from warpstack._util.handle import Handle
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options, SimulationChanges, options_of, written_share
from warpstack._util.progress import Progress, progress_bar
from warpstack._util.same import same
from warpstack.errors import InputError, not_a
from warpstack.hardware.architectures import overlaps_launches
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.doubt import card_doubt, time_doubt, widened_by_sample, with_range
from warpstack.hardware.profiler import checked_profiler, profiled, times
from warpstack.hardware.stages import Stage, fields_of
from warpstack.memory.caches import MOST_THREADS, named_memory_error
from warpstack.tables import PROVENANCE, SETTINGS, row
from warpstack.tables import as_records as records_of
from warpstack.timing.apart import ResultValues, simulated_apart
from warpstack.timing.at_once import run_kernels
from warpstack.timing.block_sampling import simulated_from_blocks
from warpstack.timing.concurrent import ConcurrentResult, Places, checked_places, places_of
from warpstack.timing.perfetto import write_timeline
from warpstack.timing.statistics import Statistics
from warpstack.traces.awaited import warn_of_waits
from warpstack.traces.trace import App, KernelTrace, nothing_launched

if TYPE_CHECKING:
    import distributed
    from typing_extensions import Unpack

__all__ = ["SimulationResult", "Simulator", "as_table", "simulate"]

#: The value of the column ``model`` in rows of a simulation, see `SimulationResult.to_frame`.
MODEL_NAME = "simulation"
#: Parts of the latency of an L1 miss, on its way (MDM, Figure 3).
LATENCY_PARTS = ("l1", "mshr", "noc", "l2", "queue", "dram")

#: Fields that mean something only where DRAM has banks.
_OF_BANKS = {
    "dram_banks",
    "dram_bank_groups",
    "dram_interleaved_banks",
    "dram_bank_interleave_bytes",
    "dram_burst_bytes",
    "dram_tccd",
    "dram_tccdl",
    "dram_trrd",
    "dram_trcd",
    "dram_tras",
    "dram_trp",
    "dram_trtp",
    "dram_cl",
    "dram_wl",
    "dram_twtr",
    "dram_twr",
    "dram_trefi",
    "dram_trfc",
}

#: Samples of `simulate` with ``timeline=True``: at least half as many, unless the kernel is shorter.
MOST_SAMPLES = 4096

#: Largest number of cycles: simulated time beyond it would not fit.
_MOST_CYCLES = 2**40


class SimulationResult(Statistics):
    """The result of one kernel on the simulated GPU.

    Made by `warpstack.simulate`. ``docs/explanation/timing.md`` defines every resource and statistic.
    """

    @checked
    def __init__(
        self,
        core: _core.SimulationResult | ResultValues,
        kernel: KernelTrace,
        gpu: Gpu,
        profiler: Profiler = "nsys",
        initial_l2: float = 0.0,
        sample: tuple[int, float, float] | None = None,
    ) -> None:
        self._core = core
        self.kernel = kernel
        self.gpu = gpu
        self.profiler = checked_profiler(profiler)
        self.initial_l2 = initial_l2
        self._sample = sample

    @property
    def sampled_blocks(self) -> int:
        """How many thread blocks ran for all of the launch; 0: all of them, or those of the trace."""
        return self._sample[0] if self._sample else 0

    @property
    def ipc_bounds(self) -> tuple[float, float]:
        """Between which `ipc` of all blocks lies with a confidence of 95 %; `ipc` twice where all ran."""
        return self._sample[1:] if self._sample else (self.ipc, self.ipc)

    @cached_property
    def miss_latency(self) -> pd.DataFrame:
        """Latency of the loads' L1 misses, from issue to the data's arrival, by part.

        Indexed by part: ``l1`` (turns at the L1 port), ``mshr`` (waiting for an MSHR or a target of
        one), ``noc`` (queues to and from L2), ``l2`` (an L2 hit without contention, and turns at
        the slice), ``queue`` (waiting for DRAM), ``dram`` (the access); columns ``cycles`` (sum
        over the misses) and ``mean`` (NaN without misses), in SM cycles. The parts sum to the whole
        latency (MDM, Figure 3).
        """
        cycles = pd.Series(self._core.miss_cycles, name="cycles")[list(LATENCY_PARTS)]
        mean = cycles / self.misses if self.misses else cycles * float("nan")
        return pd.DataFrame({"cycles": cycles, "mean": mean}).rename_axis("part")

    @property
    def misses(self) -> int:
        """Requests of loads and atomics that left an SM."""
        return self._core.misses

    @property
    def load_critical_cycles(self) -> float:
        """Sum over the SMs of their load critical paths (CRISP), in SM cycles.

        The longest chain of loads, each issued after the one before had its data, by the part of
        their latency that lies outside the SMs' clock domain: MSHRs, NoC and DRAM, and L2 where it
        has a clock of its own.
        """
        return self._core.critical_cycles

    @property
    def store_stall_slots(self) -> float:
        """Issue slots lost while a store waited for an MSHR or the NoC; part of `cpi_stack`."""
        return self._core.store_slots

    @property
    def tensor_utilisation(self) -> float:
        """Share of the cycles of all tensor cores of the GPU in which they multiply, 0 to 1.

        A matrix instruction keeps those of its scheduler busy for its multiply-adds at the dense
        rate of its type. The cycles are `cycles`, without the launch, on all SMs.
        """
        available = self.cycles * self.gpu.num_sms * self.gpu.num_schedulers
        return self._core.tensor_cycles / available if available else 0.0

    @cached_property
    def per_pc(self) -> pd.DataFrame:
        """Cycles per instruction by the instruction at which they were used or lost.

        One row per row of `KernelTrace.instructions`, and a last one with the index -1, the cycles in
        which no warp waited for anything. ``cpi_base`` to ``cpi_queue`` are the parts of `cpi_stack`
        *at* the instruction: that a warp issued it, or could not issue it yet. ``for_base`` to
        ``for_queue`` are the same cycles by the load *for* whose data the warp waited. Each set of
        columns sums to `cpi_stack`.

        Raises
        ------
        InputError
            If the simulation did not count by instruction.
        """
        tables = self._core.row_slots
        if not tables:
            raise InputError(
                "per_pc: this simulation did not count by instruction; simulate with "
                "per_instruction=True"
            )
        total = sum(self._core.slots.values())
        scale = self.cpi / total if total else 0.0
        columns = {f"cpi_{part}": values * scale for part, values in tables["at"].items()}
        columns |= {f"for_{part}": values * scale for part, values in tables["because_of"].items()}
        rows = len(self.kernel.instructions)
        return pd.DataFrame(columns, index=[*range(rows), -1])

    @checked
    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write `timeline` as a trace that ui.perfetto.dev and chrome://tracing open.

        The file has the JSON object form of the Trace Event Format: counters over time, in which a
        microsecond of the viewer is a microsecond of the simulated GPU.

        Parameters
        ----------
        path
            The file; compressed if its name ends with ``.gz``.

        Raises
        ------
        InputError
            If the simulation took no samples, or the file cannot be written.
        """
        totals = {f"slots_{part}": value for part, value in self._core.slots.items()}
        totals["instructions"] = self.instructions
        write_timeline(Path(path), self.timeline, self.cycles, self.kernel, self.gpu, totals)

    @property
    def active_sms(self) -> int:
        """SMs that had a thread block."""
        return self._core.active_sms

    @property
    def occupancy(self) -> dict[str, Any]:
        """Resident blocks and warps per SM and the field that limits them."""
        return self._core.occupancy

    @property
    def l1_size_kib(self) -> float:
        """Size of L1 as simulated: of an adaptive L1, what this kernel's shared memory leaves."""
        return self._core.l1_size_bytes / 1024

    @checked
    def to_frame(self, profiler: Profiler | None = None) -> pd.DataFrame:
        """Return one row with the columns of `warpstack.predict`; ``model`` is ``simulation``.

        Predictions and simulations join on ``kernel``, ``name``, ``gpu`` and ``gpu_changes``.

        Parameters
        ----------
        profiler
            Whose launch the time has, as for `warpstack.predict`; by default that of `simulate`. The
            clock is the one that was simulated.
        """
        profiler = checked_profiler(profiler or self.profiler)
        values = {
            "instructions": self.instructions,
            "cycles": float(self.cycles),
            **times(float(self.cycles), self.gpu, profiler),
            "ipc": self.ipc,
            **self._sample_values(),
            "cpi": self.cpi,
            **{f"cpi_{part}": value for part, value in self.cpi_stack.items()},
        }
        card = card_doubt(self.gpu, values["cycles"], self.cpi, self.cpi_stack)
        values = with_range(values, MODEL_NAME, time_doubt(values, self.gpu, profiler, card))
        if self._sample:
            values = widened_by_sample(values)
        settings = dict(zip(SETTINGS, (self.initial_l2, profiler), strict=True))
        return pd.DataFrame([row(self.kernel, self.gpu, MODEL_NAME, values, settings)])

    def _sample_values(self) -> dict[str, Any]:
        if not self._sample:
            return {}
        return dict(zip(("sampled_blocks", "ipc_low", "ipc_high"), self._sample, strict=True))

    def __eq__(self, other: object) -> bool:
        """Return whether both are of equal kernels and GPUs and have the same statistics."""
        if not isinstance(other, SimulationResult):
            return NotImplemented
        mine, theirs = (
            (one.kernel, one.gpu, one.profiler, one.initial_l2, one.__getstate__()["_core"])
            for one in (self, other)
        )
        return same(mine, theirs)

    def __hash__(self) -> int:
        return hash(self.kernel)

    def __repr__(self) -> str:
        return (
            f"<SimulationResult of {self.kernel.short_name} on {self.gpu.title}: {self.cycles} cycles, "
            f"IPC {self.ipc:.3g}>"
        )

    def _repr_html_(self) -> str:
        (values,) = self.to_frame().to_dict("records")
        names = ("kernel", "name", "gpu", "instructions", "cycles", "time_us", "ipc", "cpi")
        others = ("gpu_changes", "launch_us", *SETTINGS, *PROVENANCE)
        latency = self.miss_latency
        return notebook.cell(
            repr(self),
            notebook.table({name: [values[name]] for name in names}),
            notebook.bars(self.cpi_stack, "cycles per instruction"),
            notebook.folded("counters", notebook.fields(self.totals)),
            notebook.folded(
                "latency of L1 misses",
                notebook.table({"part": latency.index, **dict(latency.items())})
                if self.misses
                else "",
            ),
            notebook.folded(
                "what it was made from",
                notebook.fields({name: values[name] for name in others}),
            ),
        )


@checked
def as_table(
    results: SimulationResult | Iterable[SimulationResult], profiler: Profiler | None = None
) -> pd.DataFrame:
    """Return the rows of one or several simulations, as `warpstack.predict` returns predictions.

    Parameters
    ----------
    results
        The simulations.
    profiler
        As for `SimulationResult.to_frame`.

    Raises
    ------
    InputError
        If no simulation is given.
    """
    several = [results] if isinstance(results, SimulationResult) else results
    frames = [result.to_frame(profiler) for result in several]
    if not frames:
        raise InputError("there are no simulations to make a table of")
    return pd.concat(frames, ignore_index=True)


def as_records(results: Iterable[SimulationResult]) -> list[dict[str, Any]]:
    """Return simulations with their CPI stacks as one dictionary each, ready for JSON.

    Each has ``tensor_utilisation``, the mean ``miss_latency`` by part (None without misses) and the
    ``totals`` too.
    """
    records = []
    for result in results:
        (record,) = records_of(result.to_frame())
        mean = result.miss_latency["mean"].to_dict()
        records.append(
            {
                **record,
                "tensor_utilisation": result.tensor_utilisation,
                "misses": result.misses,
                "miss_latency": {part: mean[part] if result.misses else None for part in mean},
                "totals": result.totals,
            }
        )
    return records


def fields_used(gpu: Gpu) -> set[str]:
    """Return the fields of `Gpu` that a simulation of this GPU depends on."""
    unused = {"l1_mshrs", "l1_miss_queue_entries"} if gpu.noc_queue_entries else set()
    if not gpu.dram_row_bytes:
        unused |= _OF_BANKS
    return set(fields_of(Stage.TIMING)) - unused


def _times(timeline_cycles: int | None, timeline: bool, max_cycles: int | None) -> tuple[int, int]:
    """Return the cycles between samples, and the most cycles; 0: none."""
    sample = 0
    if timeline_cycles is not None:
        sample = as_integer("timeline_cycles", timeline_cycles, 1, _MOST_CYCLES)
    if timeline and not sample:
        sample = 16
    limit = 0 if max_cycles is None else as_integer("max_cycles", max_cycles, 1, _MOST_CYCLES)
    return sample, limit


def _reporter(progress: Progress | None) -> Callable[[int], None]:
    """Return what tells progress of the instructions issued so far."""
    reported = 0

    def report(instructions: int) -> None:
        nonlocal reported
        if progress is not None:
            progress.update(instructions - reported)
        reported = instructions

    return report


class Simulator(Handle):
    """A simulated GPU, whose L2 keeps its contents from kernel to kernel.

    Parameters
    ----------
    gpu
        The GPU: a description, its name, or the path of one.
    profiler
        Whose time results have, as for `warpstack.predict`: under ``ncu`` the GPU runs at its
        ``base_clock_ghz``.
    initial_l2
        What L2 holds before the first kernel and after each `flush_l2`; see `warpstack.Options`.

    Raises
    ------
    InputError
        If the description cannot be simulated, or `initial_l2` is neither a name nor a share.
    """

    _what = "holds the L2 of a running application"
    _remedy = "make another one of its gpu"

    @checked
    def __init__(
        self,
        gpu: GpuLike,
        *,
        profiler: Profiler = "nsys",
        initial_l2: InitialL2 | float | None = None,
    ) -> None:
        self.gpu = gpu = profiled(as_gpu(gpu), profiler)
        self.profiler = profiler
        self.initial_l2 = written_share(initial_l2, profiler)
        with named_memory_error(gpu):
            self._core = _core.Simulator(gpu._core, self.initial_l2)

    def __repr__(self) -> str:
        return f"<Simulator of {self.gpu.title}>"

    @former_keywords(sample_cycles="timeline_cycles")
    @checked
    def run(
        self,
        kernel: KernelTrace,
        *,
        timeline_cycles: int | None = None,
        max_cycles: int | None = None,
        per_instruction: bool = False,
        timeline: bool = False,
        progress: Progress | None = None,
    ) -> SimulationResult:
        """Run a kernel with empty L1 caches and idle memory, until nothing is left to do.

        Parameters
        ----------
        kernel
            The kernel. Only its traced blocks run.
        timeline_cycles
            Number of SM cycles between two samples of `SimulationResult.timeline`.
        max_cycles
            Number of SM cycles after which to give up.
        per_instruction
            Count issue slots by instruction, too: `SimulationResult.per_pc`.
        timeline
            Sample at distances that suit the kernel's length, into at most 4096 samples: from every
            `timeline_cycles` cycles on, 16 unless that is given.
        progress
            It is told of issued instructions now and then.

        Raises
        ------
        InputError
            If a thread block does not fit on an SM, or the kernel takes more than `max_cycles`: the
            message says what its warps wait for.
        """
        sample, limit = _times(timeline_cycles, timeline, max_cycles)
        report = _reporter(progress)
        with named_memory_error(self.gpu):
            result = self._core.run(
                kernel._core,
                sample,
                limit,
                report if progress is not None else None,
                per_instruction,
                MOST_SAMPLES if timeline else 0,
            )
        report(result.instructions)
        return SimulationResult(result, kernel, self.gpu, self.profiler, self.initial_l2)

    @checked
    def run_concurrently(
        self,
        kernels: Sequence[KernelTrace],
        streams: Sequence[int] | None = None,
        priorities: Sequence[int] | None = None,
        *,
        after: Sequence[Sequence[int]] | None = None,
        after_trigger: Sequence[Sequence[int]] | None = None,
        timeline_cycles: int | None = None,
        max_cycles: int | None = None,
        timeline: bool = False,
        progress: Progress | None = None,
    ) -> ConcurrentResult:
        """Run kernels at the same time; each begins when those that it waits for have ended.

        Parameters
        ----------
        kernels
            The launches, in the order of the program: the older one gets places first.
        streams
            The stream of each, any numbers: those of one stream run one after the other, unless `after`
            is given. None: each has its own.
        priorities
            That of each launch's stream: the larger gets places first. None: all the same.
        after
            The launches that end before each begins, by their places in `kernels`, which are lower. None:
            the one before it in its stream.
        after_trigger
            The launches of which each block has triggered or ended before each begins, by their places, and
            for whose end its warps wait where they say so (``griddepcontrol``, ``PREEXIT`` and ``ACQBULK``:
            programmatic dependent launch). None: there are none.
        timeline_cycles, max_cycles, timeline, progress
            As for `run`.

        Raises
        ------
        InputError
            As for `run`, of all launches; if there are no launches, or not as many streams,
            priorities or lists; if a launch waits for one that is not before it; if some kernels have
            control fields and others have none.
        """
        places = checked_places(len(kernels), streams, priorities, after, after_trigger)
        return self._run_in_places(kernels, places, timeline_cycles, max_cycles, timeline, progress)

    def _run_in_places(
        self,
        kernels: Sequence[KernelTrace],
        places: Places,
        timeline_cycles: int | None,
        max_cycles: int | None,
        timeline: bool,
        progress: Progress | None,
    ) -> ConcurrentResult:
        sample, limit = _times(timeline_cycles, timeline, max_cycles)
        report = _reporter(progress)
        with named_memory_error(self.gpu):
            core, grids = self._core.run_concurrently(
                [kernel._core for kernel in kernels],
                places.after,
                places.after_trigger,
                places.priorities,
                sample,
                limit,
                report if progress is not None else None,
                MOST_SAMPLES if timeline else 0,
            )
        report(core.instructions)
        return ConcurrentResult(core, grids, kernels, places.streams, self.gpu, self.profiler)

    def flush_l2(self) -> None:
        """Empty L2, as profilers do before they replay a kernel: it holds `initial_l2` again."""
        self._core.flush_l2()

    def _with_own_l2(self) -> Simulator:
        """Return a simulator of the same GPU whose L2 no kernel has used."""
        other = object.__new__(Simulator)
        other.__dict__.update(self.__dict__)
        with named_memory_error(self.gpu):
            other._core = _core.Simulator(self.gpu._core, self.initial_l2)
        return other


@overload
def simulate(
    app: KernelTrace,
    gpu: GpuLike,
    *,
    options: Options | None = ...,
    timeline_cycles: int | None = ...,
    max_cycles: int | None = ...,
    per_instruction: bool = ...,
    timeline: bool = ...,
    client: distributed.Client | None = ...,
    workers: int | None = ...,
    progress: bool = ...,
    concurrent: Literal[False] = ...,
    **changes: Unpack[SimulationChanges],
) -> SimulationResult: ...
@overload
def simulate(
    app: App,
    gpu: GpuLike,
    *,
    options: Options | None = ...,
    timeline_cycles: int | None = ...,
    max_cycles: int | None = ...,
    per_instruction: bool = ...,
    timeline: bool = ...,
    client: distributed.Client | None = ...,
    workers: int | None = ...,
    progress: bool = ...,
    concurrent: Literal[False] = ...,
    **changes: Unpack[SimulationChanges],
) -> list[SimulationResult]: ...
@overload
def simulate(
    app: KernelTrace | App,
    gpu: GpuLike,
    *,
    options: Options | None = ...,
    timeline_cycles: int | None = ...,
    max_cycles: int | None = ...,
    timeline: bool = ...,
    progress: bool = ...,
    concurrent: Literal[True],
    **changes: Unpack[SimulationChanges],
) -> ConcurrentResult: ...
@former_keywords(kernel="app", sample_cycles="timeline_cycles", num_threads="workers")
@checked
def simulate(
    app: KernelTrace | App,
    gpu: GpuLike,
    *,
    options: Options | None = None,
    timeline_cycles: int | None = None,
    max_cycles: int | None = None,
    per_instruction: bool = False,
    timeline: bool = False,
    client: distributed.Client | None = None,
    workers: int | None = None,
    progress: bool = False,
    concurrent: bool = False,
    **changes: Unpack[SimulationChanges],
) -> SimulationResult | list[SimulationResult] | ConcurrentResult:
    """Simulate a kernel, or an application, cycle by cycle.

    Every resource that the models speak of has its time: warp schedulers, operation latencies,
    barriers, the load-store unit, shared memory, L1 with its MSHRs, the NoC, the slices of L2 and
    the DRAM channels. ``docs/explanation/timing.md`` gives the rule of each and the field of `Gpu` that sets
    it. The result is the same on every run.

    Parameters
    ----------
    app
        A kernel, or an application: its kernels then run in order on one GPU, each with empty L1
        caches and the L2 that the previous one left.
    gpu
        The GPU: a description, its name, or the path of one.
    options, **changes
        What is shared with other functions; see `warpstack.Options`: ``flush_l2``, ``initial_l2``,
        ``profiler``, ``sample_blocks``.
    timeline_cycles, max_cycles, per_instruction, timeline
        As for `Simulator.run`.
    client
        A Dask cluster to simulate the kernels of an application on, all at once (needs
        ``warpstack[dask]``): give `flush_l2`, too, as they would share an L2 otherwise.
    workers
        How many launches of an application to simulate at once at most where `flush_l2` makes them
        independent of each other; None: as many as the machine runs at once. Each thread has an L2 of
        its own. The results do not depend on it.
    progress
        Show a progress bar on standard error.
    concurrent
        Run all launches at the same time, as far as streams, events, graphs and the host's waits let
        them. Without a record of the host's calls each launch is a stream of its own. Not with
        `client`, `per_instruction` or samples of blocks.

    Returns
    -------
    SimulationResult or list of SimulationResult or ConcurrentResult
        One for a kernel, a list in order for an application; one for all with `concurrent`.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM, a kernel takes more than `max_cycles`, or kernels that
        share an L2 are to run on a cluster.

    Warns
    -----
    TraceWarning
        If warps of a kernel only watch a clock: its cycles do not have that wait, the time of a
        `warpstack.timeline` does.

    Examples
    --------
    >>> import warpstack as ws
    >>> kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    >>> result = ws.simulate(kernel, "pascal-mdm")
    >>> result.instructions == kernel.num_instructions
    True
    """
    settings = options_of("simulate", options, changes, SimulationChanges)
    if not isinstance(concurrent, bool):
        raise not_a("concurrent", "True or False", concurrent)
    flush_l2, profiler = settings.flush_l2, settings.profiler
    simulator = Simulator(gpu, profiler=profiler, initial_l2=settings.written_share)
    how: dict[str, Any] = {
        "timeline_cycles": timeline_cycles,
        "max_cycles": max_cycles,
        "per_instruction": per_instruction,
        "timeline": timeline,
    }
    kernels = (app,) if isinstance(app, KernelTrace) else app.kernels
    if not kernels:
        raise nothing_launched(app, "simulate")
    warn_of_waits(kernels, simulator.gpu)
    if concurrent:
        _refuse(client is not None, "client", "launches that run at the same time share a machine")
        _refuse(per_instruction, "per_instruction", "it counts the instructions of one kernel")
        is_sample = settings.sample_blocks != 1 or any(one.is_sampled for one in kernels)
        _refuse(is_sample, "sample_blocks", "a sample has not the places of all blocks")
        del how["per_instruction"]
        total = sum(one.num_instructions for one in kernels)
        with progress_bar(progress, total, "simulating", "instruction") as bar:
            return simulator._run_in_places(
                kernels,
                places_of(
                    app,
                    simulator.gpu.hardware_queues,
                    programmatic=overlaps_launches(simulator.gpu),
                ),
                progress=bar,
                **how,
            )
    if settings.sample_blocks != 1 or any(one.is_sampled for one in kernels):
        if client is not None:
            raise InputError(
                "client: thread blocks are a sample (sample_blocks, or a trace of a sample), which runs "
                "here; leave it out"
            )
        results = _from_blocks(simulator, kernels, settings, how, progress)
        return results[0] if isinstance(app, KernelTrace) else results
    if client is not None:
        if not flush_l2 and len(kernels) > 1:
            raise InputError(
                "client: a kernel finds in L2 what those before it left there, so that kernels cannot "
                "run apart; give flush_l2=True, too, or leave the client out"
            )
        results = []
        about = (simulator.gpu, profiler, simulator.initial_l2)
        for one, values in zip(
            kernels,
            simulated_apart(
                kernels,
                partial(_run_alone, simulator.gpu, profiler, settings.written_share, how),
                client,
                progress=progress,
            ),
            strict=True,
        ):
            results.append(SimulationResult(values, one, *about))
        return results[0] if isinstance(app, KernelTrace) else results
    threads = thread_count(workers, MOST_THREADS) or os.cpu_count() or 1
    total = sum(one.num_instructions for one in kernels)
    with progress_bar(progress, total, "simulating", "instruction") as bar:
        results = run_kernels(simulator, kernels, flush_l2, threads, bar, how)
    return results[0] if isinstance(app, KernelTrace) else results


def _refuse(given: object, name: str, why: str) -> None:
    if given:
        raise InputError(f"{name}: not with concurrent=True, because {why}; leave one of them out")


def _from_blocks(
    simulator: Simulator,
    kernels: Sequence[KernelTrace],
    options: Options,
    how: dict[str, Any],
    progress: bool,
) -> list[SimulationResult]:
    """Simulate launches from samples of their blocks."""
    gpu, profiler, written = simulator.gpu, options.profiler, options.written_share

    def run(part: Gpu, launches: Sequence[KernelTrace]) -> _core.SimulationResult | ResultValues:
        # The clock is that of the profiler already.
        own = Simulator(part, initial_l2=written)
        for before in launches[:-1]:
            own.run(before)
        return own.run(launches[-1], **how)._core

    total = sum(one.num_instructions for one in kernels)
    with progress_bar(progress, total, "simulating", "instruction") as bar:
        found = simulated_from_blocks(
            kernels, gpu, options.sample_blocks, options.flush_l2, run, bar
        )
    return [
        SimulationResult(
            one.values,
            kernel,
            gpu,
            profiler,
            written,
            (one.blocks, one.ipc_low, one.ipc_high) if one.blocks else None,
        )
        for one, kernel in zip(found, kernels, strict=True)
    ]


def _run_alone(
    gpu: Gpu,
    profiler: Profiler,
    written: float,
    how: dict[str, Any],
    kernel: KernelTrace,
) -> _core.SimulationResult | ResultValues:
    simulator = Simulator(gpu, profiler=profiler, initial_l2=written)
    return simulator.run(kernel, **how)._core
