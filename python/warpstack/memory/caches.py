"""The memory stage: functional simulation of a GPU's caches."""

from __future__ import annotations

import contextlib
import copyreg
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy.typing as npt

from warpstack import _core
from warpstack._util import notebook
from warpstack._util.arguments import as_integer, thread_count
from warpstack._util.checked import checked, checked_fields
from warpstack._util.choices import AccessOrder, InitialL2, order_of
from warpstack._util.former import former_keywords
from warpstack._util.handle import Handle
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import CacheChanges, Options, options_of, written_share
from warpstack._util.progress import progress_bar
from warpstack._util.same import same
from warpstack.errors import InputError, not_a, not_one_of
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.policies import register_policy
from warpstack.hardware.stages import Stage, fields_of
from warpstack.tables import row
from warpstack.traces.trace import App, KernelTrace, kernels_of, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "BlockSchedule",
    "MemoryProfile",
    "MemorySystem",
    "occupancy",
    "register_policy",
    "simulate_caches",
]

#: The orders in which the resident warps of an SM can access memory.
ORDERS = _core.ENUM_NAMES["access order"]
#: The orders that can be asked for; `order_of` says which one `auto` is.
ACCESS_ORDERS: tuple[AccessOrder, ...] = get_args(AccessOrder)
#: Fields of `Gpu` that a `MemoryProfile` in greedy order depends on, beyond `CACHE_FIELDS`.
GREEDY_ORDER_FIELDS = fields_of(Stage.GREEDY)
#: The same for the timed order.
TIMED_ORDER_FIELDS = fields_of(Stage.TIMED)
#: How thread blocks spread over the SMs.
BLOCK_POLICIES = _core.ENUM_NAMES["block policy"]
#: Most threads of one call.
MOST_THREADS = 255

#: Fields of `Gpu` that a `MemoryProfile` depends on.
CACHE_FIELDS = fields_of(Stage.MEMORY) | fields_of(Stage.REQUESTS)


def cache_fields(access_order: AccessOrder) -> frozenset[str]:
    """Return the fields of `Gpu` that a `MemoryProfile` depends on."""
    of_order = {"greedy": GREEDY_ORDER_FIELDS, "timed": TIMED_ORDER_FIELDS}
    return CACHE_FIELDS | of_order.get(order_of(access_order), frozenset())


def _of_words(words: npt.ArrayLike) -> _core.MemoryProfile:
    return _core.MemoryProfile.from_words(words)


copyreg.pickle(_core.MemoryProfile, lambda core: (_of_words, (core.words,)))


class MemoryProfile:
    """The statistics of the caches for a kernel.

    Made by `warpstack.simulate_caches`. ``docs/reference/statistics.md`` defines every counter and the sums
    that hold among them.
    """

    @checked
    def __init__(
        self,
        core: _core.MemoryProfile,
        kernel: KernelTrace,
        gpu: Gpu,
        access_order: AccessOrder = "auto",
        initial_l2: float = 0.0,
    ) -> None:
        self._core = core
        self.kernel = kernel
        self.gpu = gpu
        self.access_order = access_order
        self.initial_l2 = initial_l2

    @cached_property
    def totals(self) -> dict[str, int]:
        """Counters of the kernel by name, in 32-byte sectors unless the name says otherwise."""
        return self._core.totals

    @cached_property
    def per_pc(self) -> pd.DataFrame:
        """Counters of each memory instruction over all warps.

        One row per static instruction with an address operand; columns ``pc``, ``opcode``,
        ``space``, ``kind``, the counters, and the miss-event distribution of its active executions
        ``l1_hit``, ``l2_hit``, ``dram`` (fractions that sum to 1, or NaN when it was never active).
        """
        table = self.kernel.instructions[["pc", "opcode", "op_class", "space", "kind"]]
        table = pd.concat([table, pd.DataFrame(self._core.per_row)], axis=1)
        table = table[table["op_class"] == "memory"].drop(columns="op_class")
        events = ["l1_hit_events", "l2_hit_events", "dram_events"]
        total = table[events].sum(axis=1).astype(float)
        total[total == 0] = float("nan")
        for column in events:
            table[column.removesuffix("_events")] = table[column] / total
        return table

    @property
    def occupancy(self) -> dict[str, Any]:
        """Resident blocks and warps per SM and the field that limits them; see `occupancy`."""
        return self._core.occupancy

    @property
    def l1_size_kib(self) -> float:
        """Size of L1 as simulated: of an adaptive L1, what this kernel's shared memory leaves."""
        return self._core.l1_size_bytes / 1024

    @property
    def num_simulated_blocks(self) -> int:
        """Thread blocks that were simulated: all traced ones, or those of a schedule."""
        return self._core.simulated_blocks

    @property
    def sampled_sms(self) -> int:
        """SMs that were simulated where a sample stands for all; 0: all were."""
        return self._core.num_sampled_sms

    @property
    def errors(self) -> dict[str, float]:
        """The uncertainty of a sample: half the widths of 95 % confidence intervals.

        They are relative to the value, and 0 where all SMs were simulated: ``requests`` (of what
        leaves L1) and ``waits`` (of the cycles that warps wait for data from L2 and DRAM).
        `hit_rate_errors` has those of the hit rates, `errors_per_pc` those of single instructions.
        """
        errors: dict[str, float] = self._core.sample["errors"]
        return errors

    @property
    def errors_per_pc(self) -> pd.DataFrame:
        """The uncertainty of a sample per memory instruction, as `errors` is for all of them.

        One row per row of `per_pc`; columns ``pc``, ``requests`` and ``waits``, 0 where all SMs were
        simulated.
        """
        table = self.per_pc[["pc"]].copy()
        errors = self._core.sample["row_errors"]
        for column in ("requests", "waits"):
            table[column] = errors[column][table.index] if self.sampled_sms else 0.0
        return table

    def to_frame(self) -> pd.DataFrame:
        """Return one row with what `warpstack.validate` compares with a profiler's counters.

        It has the columns ``kernel`` to ``model`` of `warpstack.predict`, where ``model`` is ``caches``;
        ``grid``, ``block``, ``registers_per_thread`` and ``shared_memory_bytes`` of the launch;
        ``instructions`` and ``thread_instructions``; all of `totals` and `occupancy`; and
        ``shared_wavefronts``, the passes through shared memory. Where a sample stands for all SMs,
        ``sampled_sms`` says of how many SMs it is. ``initial_l2`` is the share of L2's lines that strangers
        had written before the first launch.
        """
        kernel = self.kernel
        values = {
            "grid": kernel.grid,
            "block": kernel.block,
            "registers_per_thread": kernel.registers_per_thread,
            "shared_memory_bytes": kernel.shared_memory_bytes,
            "instructions": kernel.num_instructions,
            "thread_instructions": kernel.num_thread_instructions,
            **self.totals,
            "shared_wavefronts": int(self.per_pc["shared_wavefronts"].sum()),
            **self.occupancy,
        }
        if self.sampled_sms:
            values["sampled_sms"] = self.sampled_sms
        return pd.DataFrame(
            [row(kernel, self.gpu, "caches", values, {"initial_l2": self.initial_l2})]
        )

    def hit_rates(self) -> dict[str, float]:
        """Return the hit rates of sectors; NaN without accesses.

        Returns
        -------
        dict
            ``l1`` (loads and stores), ``l1_global`` (without local memory), ``l1_global_load``,
            ``l1_read``, ``l1_write``, ``l2`` (reads, writes and atomics), ``l2_read``,
            ``l2_write``.
        """
        return hit_rates(self.totals)

    def hit_rate_errors(self) -> dict[str, float]:
        """Return what a sample leaves uncertain of the hit rates: half the widths of intervals of 95 %.

        Returns
        -------
        dict
            The names of `hit_rates`. 0.02: the rate may be 2 points higher or lower. 0 where all SMs
            were simulated, NaN without accesses. Those of L2 are upper bounds: of what misses
            there, the SMs that are not simulated are counted, too.
        """
        sample = self._core.sample
        errors = {}
        for name, rate in self.hit_rates().items():
            errors[name] = 0 * rate
            if self.sampled_sms:
                hits, accesses = _hits_and_accesses(name, sample["totals"])
                of_sample = hits @ sample["weights"] / max(accesses @ sample["weights"], 1)
                relative = _core.ratio_error(sample["weights"], accesses, hits)
                errors[name] += of_sample * relative
        return errors

    def divergence(self) -> dict[str, float]:
        """Return lines and sectors per active warp instruction of global and local memory.

        Returns
        -------
        dict
            ``load_requests``, ``load_sectors``, ``store_requests``, ``store_sectors``; NaN without
            such instructions. Atomics count as stores.
        """
        table = self.per_pc
        table = table[(table["space"] != "shared") & (table["active_executions"] > 0)]
        is_load = table["kind"].isin(("load", "async_copy"))
        result = {}
        for kind, rows in (("load", table[is_load]), ("store", table[~is_load])):
            executions = float(rows["active_executions"].sum())
            for unit in ("requests", "sectors"):
                result[f"{kind}_{unit}"] = (
                    float(rows[unit].sum()) / executions if executions else float("nan")
                )
        return result

    def __eq__(self, other: object) -> bool:
        """Return whether both are of equal kernels and GPUs and have the same statistics."""
        if not isinstance(other, MemoryProfile):
            return NotImplemented
        mine, theirs = (
            (one.kernel, one.gpu, one.access_order, one._core.words) for one in (self, other)
        )
        return same(mine, theirs)

    def __hash__(self) -> int:
        return hash(self.kernel)

    def __repr__(self) -> str:
        rates = ", ".join(
            f"{name} hits {100 * rate:.1f} %"
            for name, rate in self.hit_rates().items()
            if name in ("l1_read", "l1_write", "l2_read", "l2_write") and not math.isnan(rate)
        )
        working = self._core.sample["working_sms"]
        part = f", from {self.sampled_sms} of {working} SMs" if self.sampled_sms else ""
        return f"<MemoryProfile of {self.kernel.short_name} on {self.gpu.title}: {rates}{part}>"

    def _repr_html_(self) -> str:
        rates = {f"{name} (%)": [100 * rate] for name, rate in self.hit_rates().items()}
        table = self.per_pc
        return notebook.cell(
            repr(self),
            "<p>Hit rates</p>",
            notebook.table(rates),
            notebook.folded("counters", notebook.fields(self.totals)),
            notebook.folded(
                "each memory instruction", notebook.table(dict(table.items()), "per_pc")
            ),
        )


@dataclass(frozen=True)
class BlockSchedule:
    """The assignment of thread blocks to SMs.

    Attributes
    ----------
    policy
        ``round_robin``: block b runs on SM b mod num_sms. ``random``: each block on an SM of its own
        draw. ``breadth_first``: the SMs take turns until all slots are full; then the next block
        goes to the SM that first has a free slot.
    seed
        Seed of the random policy.
    first_occupancy_only
        Simulate only the blocks that are resident at the start (as many as an SM holds): L1 hit
        rates from them come close to those of the whole kernel (cache paper, Section 2.4). Counters
        are of these blocks.
    """

    policy: str = "round_robin"
    seed: int = 0
    first_occupancy_only: bool = False

    def __post_init__(self) -> None:
        checked_fields(self)
        if self.policy not in BLOCK_POLICIES:
            raise not_one_of("policy", self.policy, BLOCK_POLICIES)
        as_integer("seed", self.seed, 0, 2**64 - 1)


class MemorySystem(Handle):
    """The caches of a GPU, whose L2 keeps its contents from kernel to kernel.

    Parameters
    ----------
    gpu
        The GPU: a description, its name, or the path of one.
    blocks
        Which thread blocks run where; a `BlockSchedule` or the name of a policy.
    access_order
        In which order the resident warps of an SM access memory. ``timed``: as on a reference machine
        with latencies. ``round_robin``: each in turn. ``greedy``: as a greedy-then-oldest scheduler
        and its MSHRs make it, without times. ``auto``: ``timed``. See ``docs/explanation/memory.md``.
    filter_l1_hits
        Whether what hits in L1 stays there. False: L2 sees it too, as in PPT-GPU-Mem; the counters
        of L1 are the same, except in the timed order, which depends on what L2 holds.
    workers
        How many threads to use at most; None: as many as the machine runs at once. The result does not
        depend on it.
    initial_l2
        What L2 holds before the first kernel and after each `flush_l2`; see `warpstack.Options`.

    Raises
    ------
    InputError
        If the order is unknown, `initial_l2` is neither a name nor a share, or the cache geometry is
        impossible.
    """

    _what = "holds the L2 of a running application"
    _remedy = "make another one of its gpu"

    @former_keywords(num_threads="workers")
    @checked
    def __init__(
        self,
        gpu: GpuLike,
        *,
        blocks: BlockSchedule | str = "round_robin",
        access_order: AccessOrder = "auto",
        filter_l1_hits: bool = True,
        workers: int | None = None,
        initial_l2: InitialL2 | float | None = None,
    ) -> None:
        self.gpu = gpu = as_gpu(gpu)
        self.initial_l2 = written = written_share(initial_l2)
        self.access_order = access_order
        schedule = BlockSchedule(blocks) if isinstance(blocks, str) else blocks
        threads = thread_count(workers, MOST_THREADS)
        if access_order not in ACCESS_ORDERS:
            raise not_one_of("access_order", access_order, ACCESS_ORDERS)
        if not isinstance(filter_l1_hits, (bool, int)):
            raise not_a("filter_l1_hits", "True or False", filter_l1_hits)
        with named_memory_error(gpu):
            self._core = _core.MemorySystem(
                gpu._core,
                threads,
                access_order=order_of(access_order),
                block_policy=schedule.policy,
                seed=int(schedule.seed),
                first_occupancy_only=schedule.first_occupancy_only,
                filter_l1_hits=bool(filter_l1_hits),
                written_by_strangers=written,
            )

    def __repr__(self) -> str:
        return f"<MemorySystem of {self.gpu.title}, {order_of(self.access_order)} order>"

    @former_keywords(sampling="sample_sms")
    @checked
    def run(
        self,
        kernel: KernelTrace,
        *,
        observe: tuple[int, int] | None = None,
        sample_sms: float = 1,
    ) -> MemoryProfile:
        """Run a kernel with empty L1 caches, which are written back when it ends.

        Blocks that are not in the trace do not run, also where it is a sample of them.

        Parameters
        ----------
        kernel
            The kernel.
        observe
            A warp (position of its block in the trace, position in the block) whose own misses are
            recorded.
        sample_sms
            Below 1: about this part of the SMs is simulated and stands for all, where the launch is
            large enough, in the timed order (``docs/explanation/sm-sampling.md``). Counters are then
            estimates; `MemoryProfile.errors` says how good they are.

        Raises
        ------
        InputError
            If a thread block does not fit on an SM, or the share is not above 0 and at most 1.
        """
        check_share(sample_sms)
        with named_memory_error(self.gpu):
            core = self._core.run(kernel._core, observe, sample_sms)
        return MemoryProfile(core, kernel, self.gpu, self.access_order, self.initial_l2)

    @checked
    def warm(self, kernel: KernelTrace) -> None:
        """Leave about that in L2 which `run` would, in a fraction of its time.

        L2 sees all accesses of the kernel, thread block by thread block and warp by warp, without an
        L1 that keeps hits from it. Nothing is counted.

        Parameters
        ----------
        kernel
            The kernel.
        """
        self._core.warm(kernel._core)

    def undo_sampled(self) -> bool:
        """Put L2 back to what it was before the last kernel, if a sample stood for that one.

        Returns
        -------
        bool
            Whether it did; then the kernel can run again with more SMs.
        """
        return self._core.undo_sampled()

    def flush_l2(self) -> None:
        """Empty L2, as profilers do before they replay a kernel: it holds `initial_l2` again."""
        self._core.flush_l2()


@overload
def simulate_caches(
    app: KernelTrace,
    gpu: GpuLike,
    *,
    options: Options | None = ...,
    observe: tuple[int, int] | None = ...,
    blocks: BlockSchedule | str = ...,
    filter_l1_hits: bool = ...,
    workers: int | None = ...,
    progress: bool = ...,
    **changes: Unpack[CacheChanges],
) -> MemoryProfile: ...
@overload
def simulate_caches(
    app: App,
    gpu: GpuLike,
    *,
    options: Options | None = ...,
    observe: None = ...,
    blocks: BlockSchedule | str = ...,
    filter_l1_hits: bool = ...,
    workers: int | None = ...,
    progress: bool = ...,
    **changes: Unpack[CacheChanges],
) -> list[MemoryProfile]: ...
@former_keywords(kernel="app", sampling="sample_sms", num_threads="workers")
@checked
def simulate_caches(
    app: KernelTrace | App,
    gpu: GpuLike,
    *,
    options: Options | None = None,
    observe: tuple[int, int] | None = None,
    blocks: BlockSchedule | str = "round_robin",
    filter_l1_hits: bool = True,
    workers: int | None = None,
    progress: bool = False,
    **changes: Unpack[CacheChanges],
) -> MemoryProfile | list[MemoryProfile]:
    """Simulate the contents of the L1 caches and of L2.

    By default thread blocks go to SMs round robin, and the accesses are in the order in which a
    machine with fixed latencies makes them. With ``access_order="round_robin"`` each resident warp
    issues one access in turn (cache paper, Sections 2.4 and 4; GPUMech, Section V).

    Parameters
    ----------
    app
        A kernel, or an application: its kernels then run in order on one memory system, each with
        empty L1 caches and the L2 that the previous one left.
    gpu
        The GPU: a description, its name, or the path of one.
    options, **changes
        How the stage works; see `warpstack.Options`: ``access_order``, ``flush_l2``,
        ``initial_l2``, ``sample_sms``.
    observe
        For a single kernel: a warp whose own misses are recorded (see `MemorySystem.run`).
    blocks, filter_l1_hits, workers
        As for `MemorySystem`.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    MemoryProfile or list of MemoryProfile
        One for a kernel, a list in order for an application.

    Raises
    ------
    InputError
        If the order is unknown, or a thread block does not fit on an SM.
    """
    how = options_of("simulate_caches", options, changes, CacheChanges)
    if isinstance(how.sample_sms, str):
        raise InputError(
            "sample_sms = 'auto' is for predictions, which know how exact IPC is; give a number above 0, "
            "at most 1 (all)"
        )
    if isinstance(app, (App, KernelTrace)):
        warn_of_samples(kernels_of(app), "simulate_caches")
    system = MemorySystem(
        gpu,
        blocks=blocks,
        access_order=how.access_order,
        filter_l1_hits=filter_l1_hits,
        workers=workers,
        initial_l2=how.written_share,
    )
    if isinstance(app, KernelTrace):
        return system.run(app, observe=observe, sample_sms=how.sample_sms)
    if observe is not None:
        raise InputError("observe names a warp of one kernel; give a kernel, not an application")
    profiles = []
    with progress_bar(progress, len(app), "simulating caches", "kernel") as bar:
        for one in app.kernels:
            if how.flush_l2:
                system.flush_l2()
            profiles.append(system.run(one, sample_sms=how.sample_sms))
            bar.update(1)
    return profiles


@checked
def occupancy(kernel: KernelTrace, gpu: GpuLike) -> dict[str, Any]:
    """Return how many thread blocks of the kernel an SM holds at once.

    Returns
    -------
    dict
        ``blocks_per_sm``, ``warps_per_block``, ``warps_per_sm`` and ``limit``, the field of `Gpu`
        that decides (cache paper, Eq. 3 to 6).

    Raises
    ------
    InputError
        If not even one block fits.
    """
    return _core.occupancy(kernel._core, as_gpu(gpu)._core)


def check_share(sample_sms: float) -> None:
    """Raise `InputError` unless a number is a share of SMs to simulate."""
    if not 0 < sample_sms <= 1:
        raise InputError(
            f"sample_sms = {sample_sms} is not a share of the SMs; give a number above 0, at most 1 (all)"
        )


def hit_rates(totals: Mapping[str, int]) -> dict[str, float]:
    """Return the hit rates of sectors that the counters of a kernel give; NaN without accesses."""
    rates = {}
    for name in _RATES:
        hits, accesses = _hits_and_accesses(name, totals)
        rates[name] = hits / accesses if accesses else float("nan")
    return rates


#: For each hit rate the kinds of accesses that count, and those among them that do not.
_RATES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "l1": (("l1_read", "l1_write"), ()),
    "l1_global": (("l1_read", "l1_write"), ("l1_local_read", "l1_local_write")),
    "l1_global_load": (("l1_read",), ("l1_local_read",)),
    "l1_read": (("l1_read",), ()),
    "l1_write": (("l1_write",), ()),
    "l2": (("l2_read", "l2_write", "l2_atomic"), ()),
    "l2_read": (("l2_read",), ()),
    "l2_write": (("l2_write",), ()),
}


def _hits_and_accesses(rate: str, totals: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the sectors that hit and all sectors of a hit rate: of totals, or of columns of them."""
    these, others = _RATES[rate]

    def count(unit: str) -> Any:
        return sum(totals[f"{kind}_{unit}"] for kind in these) - sum(
            totals[f"{kind}_{unit}"] for kind in others
        )

    return count("sector_hits"), count("sectors")


@contextlib.contextmanager
def named_memory_error(gpu: Gpu) -> Iterator[None]:
    """Say which GPU is too large when its caches do not fit into memory."""
    try:
        yield
    except MemoryError:
        raise InputError(
            f"GPU {gpu.title}: its caches need more memory than there is; reduce num_sms, l1_size_kib "
            "or l2_size_kib"
        ) from None
