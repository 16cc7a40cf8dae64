"""The interval stage: the representative warp and its intervals."""

from __future__ import annotations

import copyreg
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util import notebook
from warpstack._util.arguments import thread_count
from warpstack._util.checked import checked, checked_fields
from warpstack._util.choices import MissSource, Selection
from warpstack._util.former import former_keywords
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options, WarpChanges, options_of
from warpstack._util.same import same
from warpstack.errors import InputError, not_one_of, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.stages import Stage, fields_of
from warpstack.memory.caches import (
    MOST_THREADS,
    MemoryProfile,
    MemorySystem,
    cache_fields,
    occupancy,
)
from warpstack.traces.trace import KernelTrace, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["IntervalProfile", "Wave", "interval_profile", "representative_warp", "warp_groups"]

#: How `representative_warp` chooses (GPUMech, Section III-C and Figure 7).
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
#: Iterations of k-means, which rarely needs ten.
_MAX_ITERATIONS = 100
#: Fields of `Gpu` that an `IntervalProfile` depends on, beyond those of its `MemoryProfile`.
INTERVAL_FIELDS = fields_of(Stage.INTERVAL)
#: Where the misses of an interval come from.
MISS_SOURCES: tuple[MissSource, ...] = get_args(MissSource)


def _of_columns(columns: dict[str, Any]) -> _core.IntervalColumns:
    return _core.IntervalColumns(columns)


copyreg.pickle(_core.IntervalColumns, lambda core: (_of_columns, (core.columns,)))


@dataclass(frozen=True)
class Wave:
    """Thread blocks that run at the same time.

    Attributes
    ----------
    count
        How often such a wave runs.
    warps
        Warps on the fullest SM (W).
    active_sms
        SMs at work (S).
    total_warps
        Warps on all SMs together.
    """

    count: float
    warps: float
    active_sms: float
    total_warps: float

    def __post_init__(self) -> None:
        checked_fields(self)

    def _to_core(self) -> _core.Wave:
        return _core.Wave(self.count, self.warps, self.active_sms, self.total_warps)


@dataclass(frozen=True)
class Launch:
    """Thread blocks to divide into waves. Those without instructions need no time."""

    num_blocks: int
    warps_per_block: float
    blocks_per_sm: int
    #: Warp instructions of a block by class, without memory accesses.
    unit_instructions: Mapping[str, float]
    #: Instructions of the tensor cores whose type is known, of a block: type, multiply-adds of each,
    #: whether four warps share it, count.
    tensor_operations: tuple[tuple[str, int, bool, float], ...] = ()


@dataclass(frozen=True)
class _Source:
    """The inputs of a profile."""

    kernel: KernelTrace
    memory: _core.MemoryProfile
    latencies: npt.NDArray[np.float64]
    warp_issue_rate: float  # of a scheduler, instructions per cycle
    num_threads: int
    gpu: _core.Gpu


class IntervalProfile:
    """The intervals of a representative warp and the launch they stand for: what the models read.

    Made by `warpstack.interval_profile`, or by `from_arrays`.

    Attributes
    ----------
    kernel, name
        Launch number and readable name.
    representative
        Position of the warp in the trace (block, warp); None for a hand-made profile.
    num_instructions
        Warp instructions that a prediction accounts for; None: those of the waves.
    """

    @checked
    def __init__(
        self,
        core: _core.IntervalColumns,
        launch: Launch | tuple[Wave, ...],
        *,
        kernel: int = 0,
        name: str = "",
        representative: tuple[int, int] | None = None,
        num_instructions: int | None = None,
        source: _Source | None = None,
    ) -> None:
        self._core = core
        self._launch = launch
        self._source = source
        self.kernel = kernel
        self.name = name
        self.representative = representative
        self.num_instructions = num_instructions
        self._played: dict[int, _core.PhaseList] = {}

    @classmethod
    @checked
    def from_arrays(
        cls,
        *,
        instructions: npt.ArrayLike,
        stall_cycles: npt.ArrayLike,
        read_misses: npt.ArrayLike = 0,
        write_requests: npt.ArrayLike = 0,
        dram_requests: npt.ArrayLike | None = None,
        memory_instructions: npt.ArrayLike | None = None,
        llc_miss_ratio: npt.ArrayLike | None = None,
        warps: float = 1,
        active_sms: float = 1,
        request_bytes: npt.ArrayLike | None = None,
        stall_causes: npt.ArrayLike | None = None,
        name: str = "hand-made",
    ) -> IntervalProfile:
        """Make a profile by hand: arrays with an entry per interval, or numbers for all of them.

        Parameters
        ----------
        instructions
            Instructions of each interval, at least 1.
        stall_cycles
            SM cycles from the last issue slot of the interval to the first of the next.
        read_misses, write_requests
            Requests of one warp that leave the SM: L1 read misses, and writes.
        dram_requests
            Requests of both kinds that reach DRAM, in the same proportion of reads and writes; by default
            `llc_miss_ratio` of them.
        memory_instructions
            Loads of one warp (GPUMech, Eq. 20); by default one in an interval with read misses.
        llc_miss_ratio
            Fraction of the requests that miss in L2; by default what `dram_requests` says.
        warps, active_sms
            Warps per SM and SMs with work: one wave, all SMs alike.
        request_bytes
            Bytes of a request; by default what the caches of the GPU move at once (the line, or the
            sector of a sectored cache).
        stall_causes
            Shares of each stall due to (dep, l1, l2, dram), shape (intervals, 4), rows sum to 1. By
            default stalls of intervals with read misses divide over l2 and dram by the miss ratio,
            others are dependences on arithmetic.
        name
            A name for tables.

        Raises
        ------
        InputError
            If an array has another length, or a value is negative, not finite or contradicts
            another.
        """
        given = (instructions, stall_cycles, read_misses, write_requests)
        count = max(np.size(values) for values in given)

        def column(
            field: str, values: npt.ArrayLike, *, least: float = 0
        ) -> npt.NDArray[np.float64]:
            try:
                array = np.asarray(values, dtype=float)
            except (TypeError, ValueError):
                raise InputError(f"{field} = {shown(values)} is not a list of numbers") from None
            if array.ndim > 1 or array.size not in (1, count):
                raise InputError(
                    f"{field} has the shape {array.shape} where others have {count} entries"
                )
            if not np.isfinite(array).all() or (array < least).any():
                raise InputError(
                    f"{field} = {array} has values that are not finite or less than {least:g}"
                )
            return np.array(np.broadcast_to(array.reshape(-1), (count,)))

        issued = column("instructions", instructions, least=1)
        stall = column("stall_cycles", stall_cycles)
        reads = column("read_misses", read_misses)
        writes = column("write_requests", write_requests)
        requests = reads + writes
        if llc_miss_ratio is None:
            dram = column("dram_requests", 0 if dram_requests is None else dram_requests)
            ratio = np.divide(dram, requests, out=np.zeros(count), where=requests > 0)
        else:
            ratio = column("llc_miss_ratio", llc_miss_ratio)
            dram = column(
                "dram_requests", ratio * requests if dram_requests is None else dram_requests
            )
        if (ratio > 1).any() or (dram > requests * (1 + 1e-9)).any():
            raise InputError("more requests reach DRAM than leave the SM")
        if memory_instructions is None:
            memory_instructions = (reads > 0).astype(float)
        size = column("request_bytes", 0 if request_bytes is None else request_bytes)
        to_dram = np.divide(dram, requests, out=np.zeros(count), where=requests > 0)
        if stall_causes is None:
            memory = (reads > 0).astype(float)
            zero = np.zeros(count)
            shares = np.stack([1 - memory, zero, memory * (1 - ratio), memory * ratio], axis=1)
        else:
            shares = np.asarray(stall_causes, dtype=float)
            if shares.shape not in ((4,), (1, 4), (count, 4)):
                raise InputError(
                    f"stall_causes has the shape {shares.shape}, not (4,) or ({count}, 4)"
                )
            shares = np.broadcast_to(shares, (count, 4))
            if not (shares >= 0).all() or not np.allclose(shares.sum(axis=1), 1):
                raise InputError(
                    "stall_causes: the shares of each interval are not positive or do not sum to 1"
                )
        for field, number in (("warps", warps), ("active_sms", active_sms)):
            try:
                good = math.isfinite(number) and number >= 1
            except TypeError:
                good = False
            if not good:
                raise InputError(f"{field} = {shown(number)} is not a number of at least 1")
        core = _core.IntervalColumns(
            {
                "instructions": issued,
                "stall_cycles": stall,
                **{
                    f"stall_{c}": stall * shares[:, i]
                    for i, c in enumerate(("dep", "l1", "l2", "dram"))
                },
                "cause_row": np.full(count, -1, dtype=np.int64),
                "memory_instructions": column("memory_instructions", memory_instructions),
                "read_misses": reads,
                "write_requests": writes,
                "dram_read_requests": reads * to_dram,
                "dram_write_requests": writes * to_dram,
                "dram_requests": dram,
                "llc_miss_ratio": ratio,
                "read_bytes": size,
                "write_bytes": size,
                "dram_bytes": size,
            }
        )
        wave = Wave(1, float(warps), float(active_sms), float(warps) * float(active_sms))
        return cls(core, (wave,), name=name)

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """One row per interval of the representative warp; counts are per warp.

        ``instructions``, ``stall_cycles`` and its parts ``stall_dep``, ``stall_l1``, ``stall_l2``,
        ``stall_dram``; ``memory_instructions`` (active loads of global and local memory),
        ``read_misses``, ``write_requests``, of these to DRAM ``dram_read_requests``,
        ``dram_write_requests`` and their sum ``dram_requests``, ``llc_miss_ratio``, bytes per request
        ``read_bytes``, ``write_bytes``, ``dram_bytes`` (0: what the GPU's caches move at once), and
        ``cause_row``, the row of the instruction table that the stall waited for (-1: none).
        """
        return pd.DataFrame(self._core.columns)

    def __len__(self) -> int:
        return len(self._core)

    @property
    def launch(self) -> Launch | None:
        """Its thread blocks; None for a hand-made profile."""
        return None if isinstance(self._launch, tuple) else self._launch

    @cached_property
    def issued_and_stalled(self) -> tuple[float, float]:
        """Instructions and stall cycles of the representative warp."""
        return float(np.sum(self._core.instructions)), float(np.sum(self._core.stall_cycles))

    @checked
    def waves(self, gpu: GpuLike) -> list[Wave]:
        """Return the waves in which a GPU runs the launch, whole ones first."""
        if isinstance(self._launch, tuple):
            return list(self._launch)
        waves = self._core_waves(as_gpu(gpu))
        return [Wave(w.count, w.warps, w.active_sms, w.total_warps) for w in waves]

    def _core_waves(self, gpu: Gpu) -> list[_core.Wave]:
        launch = self._launch
        if isinstance(launch, tuple):
            return [wave._to_core() for wave in launch]
        return _core.waves_of(
            launch.num_blocks, launch.warps_per_block, launch.blocks_per_sm, gpu.num_sms
        )

    @checked
    def phases(self, gpu: GpuLike) -> pd.DataFrame:
        """Play the launch: how long how many warps and SMs are at work.

        Blocks go to SMs as slots get free, in the time of a reference machine whose latencies are the
        same for every GPU (``docs/explanation/closed-network-model.md``).

        Parameters
        ----------
        gpu
            The number of SMs; the rest is that of the profile.

        Returns
        -------
        DataFrame
            One row per phase: ``depth`` (instructions that each warp of the SM with most work runs in
            it, one after the other), ``warps`` on that SM, ``all_warps`` on all SMs, and
            ``active_sms``, how many such SMs these make.

        Raises
        ------
        InputError
            If the profile is hand-made.
        """
        if self._source is None or isinstance(self._launch, tuple):
            raise InputError("a hand-made profile has no thread blocks to play; see waves()")
        launch = self._core_phases(as_gpu(gpu))
        assert launch is not None
        table = pd.DataFrame(launch.columns())[["warps", "all_warps"]]
        fullest = max((depth for depth, *_ in launch.sms()), key=sum)
        table.insert(0, "depth", fullest)
        table["active_sms"] = table["all_warps"] / table["warps"]
        return table[table["depth"] > 0].reset_index(drop=True)

    @cached_property
    def _work(self) -> _core.KernelWork:
        source = self._source
        assert source is not None
        return _core.KernelWork(
            source.kernel._core,
            source.memory,
            source.latencies,
            source.warp_issue_rate,
            source.num_threads,
            source.gpu,
        )

    def _core_phases(self, gpu: Gpu) -> _core.PhaseList | None:
        launch = self._launch
        if self._source is None or isinstance(launch, tuple):
            return None
        key = gpu.num_sms
        if key not in self._played:
            self._played = {key: self._in_step(self._work.play(key, launch.blocks_per_sm))}
        return self._played[key]

    def _in_step(self, launch: _core.PhaseList) -> _core.PhaseList:
        """Return a launch with the times of its phases in which the blocks of an SM keep step."""
        source = self._source
        assert source is not None
        if source.gpu is None or not _core.keeps_step(source.kernel._core):
            return launch

        def cycles(blocks: list[int]) -> float:
            kernel = source.kernel._core
            return _core.play_blocks(kernel, source.memory, source.latencies, source.gpu, blocks)

        blocks = launch.first_blocks
        if blocks:
            one = cycles([self._work.longest_first(launch)])
            together = cycles(blocks) if len(blocks) > 1 else one
            self._work.put_in_step(launch, one, together)
        return launch

    def _core_kernel(self, gpu: Gpu, model: str) -> _core.ModelInput:
        """Return what a model reads of the kernel."""
        waves = self._core_waves(gpu)
        if self._source is None or not _core.reads_phases(model):
            return _core.ModelInput(self._core, waves, None, None)
        source = self._source
        demands = _core.demands_of(source.kernel._core, source.memory, source.gpu)
        return _core.ModelInput(self._core, waves, self._core_phases(gpu), demands)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_work"}
        return {**kept, "_played": {}}  # both can be made again

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same intervals of the same warp, for the same launch."""
        if not isinstance(other, IntervalProfile):
            return NotImplemented
        names = ("kernel", "name", "representative", "num_instructions", "intervals", "_launch")
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.kernel, self.name, self.representative))

    def __repr__(self) -> str:
        table = self.intervals
        return (
            f"<IntervalProfile of {self.name}: {len(self)} intervals, {table['instructions'].sum():g} "
            f"instructions and {table['stall_cycles'].sum():g} stall cycles of a warp>"
        )

    def _repr_html_(self) -> str:
        columns: dict[Any, Any] = dict(self.intervals.items())
        first = dict(itertools.islice(columns.items(), 6))
        return notebook.cell(
            repr(self),
            notebook.table({"interval": self.intervals.index, **first}, "intervals"),
            notebook.folded(
                "all columns",
                notebook.table({"interval": self.intervals.index} | columns, "intervals"),
            ),
        )


@former_keywords(num_threads="workers")
@checked
def warp_groups(
    kernel: KernelTrace, latencies: npt.ArrayLike | None = None, *, workers: int | None = None
) -> pd.DataFrame:
    """Run the interval algorithm over every warp and group those that behave alike.

    Parameters
    ----------
    kernel
        The kernel.
    latencies
        Cycles of each row of the instruction table; by default fixed nominal ones, the same for
        every GPU.
    workers
        Threads; None: as many as the machine runs at once. The result does not depend on it.

    Returns
    -------
    DataFrame
        One row per group in the order of their first warps: ``block`` and ``warp`` (position of the
        first warp in the trace), ``instructions`` and ``cycles`` of each warp alone on an SM that
        issues one instruction per cycle (GPUMech, Eq. 5), ``count`` warps. Warps without
        instructions are left out.
    """
    return pd.DataFrame(_warp_groups(kernel, latencies, workers))


def _warp_groups(
    kernel: KernelTrace, latencies: npt.ArrayLike | None, workers: int | None
) -> dict[str, npt.NDArray[Any]]:
    values = _core.nominal_latencies(kernel._core) if latencies is None else latencies
    return _core.group_warps(
        kernel._core,
        np.asarray(values, dtype=float),
        num_threads=thread_count(workers, MOST_THREADS),
    )


@former_keywords(num_threads="workers")
@checked
def representative_warp(
    kernel: KernelTrace, selection: Selection = "clustering", *, workers: int | None = None
) -> tuple[int, int]:
    """Choose the warp whose intervals stand for all (GPUMech, Section III-C, Eq. 5 and 6).

    The choice depends on the trace alone: every instruction has a nominal latency (MDM, Section
    II).

    Parameters
    ----------
    kernel
        The kernel.
    selection
        ``clustering``: k-means with two clusters over IPC and instruction count, each divided by
        its mean; the warp nearest the centre of the larger cluster. ``max``, ``min``: the warp with
        the highest or lowest IPC alone. Ties go to the first warp of the trace.
    workers
        Threads; None: as many as the machine runs at once. The result does not depend on it.

    Returns
    -------
    tuple of int
        Position of the warp: block in the trace, warp in the block.

    Raises
    ------
    InputError
        If the selection is unknown or no warp has an instruction.
    """
    if selection not in SELECTIONS:
        raise not_one_of("selection", selection, SELECTIONS)
    groups = _warp_groups(kernel, None, workers)
    if len(groups["count"]) == 1:
        return int(groups["block"][0]), int(groups["warp"][0])
    ipc = groups["instructions"] / groups["cycles"]
    if selection == "max":
        chosen = int(np.argmax(ipc))
    elif selection == "min":
        chosen = int(np.argmin(ipc))
    else:
        count = groups["count"].astype(float)
        features = np.stack([ipc, groups["instructions"].astype(float)], axis=1)
        features /= _mean(features, count)
        chosen = _nearest_to_main_centre(features, count)
    return int(groups["block"][chosen]), int(groups["warp"][chosen])


def _nearest_to_main_centre(points: npt.NDArray[np.float64], count: npt.NDArray[np.float64]) -> int:
    """Return the point nearest the centre of the larger of two k-means clusters.

    Points count as often as `count` says; the first of several nearest ones is returned.
    """
    # Starting from the point nearest the mean and the point farthest from it makes the result the
    # same on every run, and separates outliers from the majority, which is what the two clusters
    # are for.
    mean = _mean(points, count)
    distance = np.square(points - mean).sum(axis=1)
    centres = points[[int(np.argmin(distance)), int(np.argmax(distance))]]
    labels = np.full(len(points), -1)
    for _ in range(_MAX_ITERATIONS):
        distance = np.square(points[:, np.newaxis] - centres).sum(axis=2)
        before, labels = labels, np.argmin(distance, axis=1)
        if (labels == before).all():
            break
        centres = np.stack(
            [
                _mean(points[labels == k], count[labels == k])
                if (labels == k).any()
                else centres[k]
                for k in range(2)
            ]
        )
    main = int(np.argmax(np.bincount(labels, weights=count, minlength=2)))
    members = np.flatnonzero(labels == main)
    distance = np.square(points[members] - centres[main]).sum(axis=1)
    return int(members[np.argmin(distance)])


def _mean(
    points: npt.NDArray[np.float64], count: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the mean of points that count several times; `numpy.average` takes ten times as long."""
    mean: npt.NDArray[np.float64] = (points * count[:, np.newaxis]).sum(axis=0) / count.sum()
    return mean


@former_keywords(num_threads="workers")
@checked
def interval_profile(
    kernel: KernelTrace,
    gpu: GpuLike,
    memory: MemoryProfile | None = None,
    *,
    options: Options | None = None,
    representative: tuple[int, int] | None = None,
    workers: int | None = None,
    **changes: Unpack[WarpChanges],
) -> IntervalProfile:
    """Build the intervals of a kernel's representative warp.

    Parameters
    ----------
    kernel
        The kernel.
    gpu
        The GPU: latencies, issue width, occupancy.
    memory
        What the caches did with the kernel; simulated now when None.
    options, **changes
        How the stage works; see `warpstack.Options`: ``selection``, ``misses`` (of which
        ``representative`` needs a `memory` that has observed the warp), ``merge_threshold``.
    representative
        The warp itself (block, warp), when the choice has been made.
    workers
        Threads; None: as many as the machine runs at once. The result does not depend on it.

    Returns
    -------
    IntervalProfile

    Raises
    ------
    InputError
        If an argument is unknown, or a thread block does not fit on an SM.
    """
    how = options_of("interval_profile", options, changes, WarpChanges)
    gpu = as_gpu(gpu)
    warn_of_samples([kernel], "interval_profile")
    if representative is None:
        warp = representative_warp(kernel, how.selection, workers=workers)
    else:
        warp = representative
    if memory is None:
        system = MemorySystem(gpu, workers=workers)
        memory = system.run(kernel, observe=warp if how.observes else None)
    else:
        _check_memory(memory, kernel, gpu)
    return profile_of(kernel, gpu, memory, warp, how, workers)


def profile_of(
    kernel: KernelTrace,
    gpu: Gpu,
    memory: MemoryProfile,
    warp: tuple[int, int],
    how: Options,
    workers: int | None = None,
) -> IntervalProfile:
    """Return `interval_profile` of what is known to fit together, without checks."""
    latencies = _core.latencies(kernel._core, memory._core, gpu._core)
    if gpu.latency_counts == "issue_to_issue" and not kernel.has_control_fields:
        # In the interval algorithm an instruction that needs a result issues in the cycle after it.
        latencies = np.maximum(latencies - 1, 0)
    core = _core.build_intervals(
        kernel._core,
        warp,
        latencies,
        memory._core,
        issue_rate=gpu.issue_width,
        merge_threshold=how.merge_threshold,
        observed_misses=how.observes,
        l1_unit_bytes=_unit_bytes(gpu.l1_line_bytes, gpu.l1_sector_bytes),
        l2_unit_bytes=_unit_bytes(gpu.l2_line_bytes, gpu.l2_sector_bytes),
        gpu=gpu._core,
    )
    resident = occupancy(kernel, gpu)
    working = max(kernel._core.num_traced_blocks - kernel._core.num_idle_blocks, 1)
    scale = _blocks_per_traced_one(kernel)
    traced = kernel._core.num_traced_blocks
    launch = Launch(
        num_blocks=round((traced - kernel._core.num_idle_blocks) * scale),
        warps_per_block=kernel._core.working_warps_per_block,
        blocks_per_sm=resident["blocks_per_sm"],
        unit_instructions={
            name: count / working for name, count in kernel._core.unit_instructions().items()
        },
        tensor_operations=tuple(
            (tensor_type, multiply_adds, is_of_group, count / working)
            for tensor_type, multiply_adds, is_of_group, count in kernel._core.tensor_operations()
        ),
    )
    return IntervalProfile(
        core,
        launch,
        kernel=kernel.launch_id,
        name=kernel.short_name,
        representative=warp,
        num_instructions=whole_instructions(kernel),
        source=_Source(
            kernel,
            memory._core,
            latencies,
            gpu.issue_width / gpu.num_schedulers,
            thread_count(workers, MOST_THREADS),
            gpu._core,
        ),
    )


def whole_instructions(kernel: KernelTrace) -> int:
    """Return the warp instructions of a launch: blocks that were not traced count like the others."""
    return round(kernel.num_instructions * _blocks_per_traced_one(kernel))


def _blocks_per_traced_one(kernel: KernelTrace) -> float:
    return kernel.num_blocks / kernel._core.num_traced_blocks


def _check_memory(memory: MemoryProfile, kernel: KernelTrace, gpu: Gpu) -> None:
    """Raise `InputError` unless the profile is of this kernel, on a GPU with the same caches."""
    if memory.kernel.digest != kernel.digest:
        raise InputError(
            f"the memory profile is of kernel {memory.kernel.name}, not of {kernel.name}"
        )
    if memory.gpu is gpu:
        return
    for field in sorted(cache_fields(memory.access_order)):
        theirs, ours = getattr(memory.gpu, field), getattr(gpu, field)
        if theirs != ours:
            raise InputError(
                f"the memory profile was made with {field} = {theirs}, GPU {gpu.name} has {ours}; "
                "simulate the caches of this GPU"
            )


def _unit_bytes(line: int, sector: int) -> float:
    """Return the bytes of every request of a cache that moves whole lines; 0: its sectors are counted."""
    return float(line) if line == sector else 0.0
