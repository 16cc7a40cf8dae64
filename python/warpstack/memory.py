"""The memory stage: functional simulation of a GPU's caches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, overload

import pandas as pd

from warpstack import _core
from warpstack.errors import InputError
from warpstack.gpu import Gpu, GpuLike, as_gpu
from warpstack.progress import progress_bar
from warpstack.trace import App, KernelTrace

__all__ = ["MemoryProfile", "MemorySystem", "occupancy", "simulate_caches"]

#: Fields of `Gpu` that a `MemoryProfile` depends on.
CACHE_FIELDS = frozenset(
    field
    for field in Gpu.fields()
    if field in ("num_sms", "warps_per_sm", "threads_per_sm", "blocks_per_sm")
    or field.startswith(("register", "shared_memory_", "l1_", "l2_", "unified", "adaptive"))
) - {
    "shared_memory_latency",
    "l1_latency",
    "l1_mshrs",
    "l2_latency",
    "l2_clock_ghz",
}


class MemoryProfile:
    """What the caches did with one kernel.

    Made by `warpstack.simulate_caches`. ``docs/statistics.md`` defines every counter and the sums
    that hold among them.
    """

    def __init__(self, core: _core.MemoryProfile, kernel: KernelTrace, gpu: Gpu) -> None:
        self._core = core
        self.kernel = kernel
        self.gpu = gpu

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

    def hit_rates(self) -> dict[str, float]:
        """Return sector hit rates by level and direction; NaN without accesses."""
        return {
            name: self.totals[f"{name}_sector_hits"] / self.totals[f"{name}_sectors"]
            if self.totals[f"{name}_sectors"]
            else float("nan")
            for name in ("l1_read", "l1_write", "l2_read", "l2_write")
        }

    def __repr__(self) -> str:
        rates = ", ".join(
            f"{name} hits {100 * rate:.1f} %" for name, rate in self.hit_rates().items()
        )
        return f"<MemoryProfile of {self.kernel.short_name} on {self.gpu.title}: {rates}>"

    def _repr_html_(self) -> str:
        return str(pd.Series(self.totals, name=self.kernel.short_name).to_frame().to_html())


class MemorySystem:
    """The caches of a GPU, whose L2 keeps its contents from kernel to kernel.

    Parameters
    ----------
    gpu
        The GPU: a description, its name, or the path of one.
    num_threads
        How many threads to use at most; 0: as many as the machine runs at once. The result does not
        depend on it.

    Raises
    ------
    InputError
        If the cache geometry is impossible.
    """

    def __init__(self, gpu: GpuLike, *, num_threads: int = 0) -> None:
        self.gpu = gpu = as_gpu(gpu)
        with _named_memory_error(gpu):
            self._core = _core.MemorySystem(_config(gpu), num_threads)

    def run(self, kernel: KernelTrace, *, observe: tuple[int, int] | None = None) -> MemoryProfile:
        """Run a kernel with empty L1 caches, which are written back when it ends.

        Parameters
        ----------
        kernel
            The kernel.
        observe
            A warp (position of its block in the trace, position in the block) whose own misses are
            recorded.

        Raises
        ------
        InputError
            If a thread block does not fit on an SM.
        """
        with _named_memory_error(self.gpu):
            return MemoryProfile(self._core.run(kernel._core, observe), kernel, self.gpu)

    def flush_l2(self) -> None:
        """Empty L2, as profilers do before they replay a kernel."""
        self._core.flush_l2()


@overload
def simulate_caches(
    kernel: KernelTrace,
    gpu: GpuLike,
    *,
    flush_l2: bool = ...,
    observe: tuple[int, int] | None = ...,
    num_threads: int = ...,
    progress: bool = ...,
) -> MemoryProfile: ...
@overload
def simulate_caches(
    kernel: App,
    gpu: GpuLike,
    *,
    flush_l2: bool = ...,
    observe: None = ...,
    num_threads: int = ...,
    progress: bool = ...,
) -> list[MemoryProfile]: ...
def simulate_caches(
    kernel: KernelTrace | App,
    gpu: GpuLike,
    *,
    flush_l2: bool = False,
    observe: tuple[int, int] | None = None,
    num_threads: int = 0,
    progress: bool = False,
) -> MemoryProfile | list[MemoryProfile]:
    """Simulate the contents of the L1 caches and of L2.

    Thread blocks go to SMs round robin; each resident warp issues one access in turn; the SMs take
    turns (cache paper, Sections 2.4 and 4; GPUMech, Section V). No time is modelled.

    Parameters
    ----------
    kernel
        A kernel, or an application: its kernels then run in order on one memory system, each with
        empty L1 caches and the L2 that the previous one left.
    gpu
        The GPU: a description, its name, or the path of one.
    flush_l2
        Empty L2 before each kernel too.
    observe
        For a single kernel: a warp whose own misses are recorded (see `MemorySystem.run`).
    num_threads
        How many threads to use at most; 0: as many as the machine runs at once.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    MemoryProfile or list of MemoryProfile
        One for a kernel, a list in order for an application.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM.
    """
    system = MemorySystem(gpu, num_threads=num_threads)
    if isinstance(kernel, KernelTrace):
        return system.run(kernel, observe=observe)
    if observe is not None:
        raise InputError("observe names a warp of one kernel; give a kernel, not an application")
    profiles = []
    with progress_bar(progress, len(kernel), "simulating caches", "kernel") as bar:
        for one in kernel.kernels:
            if flush_l2:
                system.flush_l2()
            profiles.append(system.run(one))
            bar.update(1)
    return profiles


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
    return _core.occupancy(kernel._core, _sm_limits(as_gpu(gpu)))


@contextlib.contextmanager
def _named_memory_error(gpu: Gpu) -> Iterator[None]:
    """Say which GPU is too large when its caches do not fit into memory."""
    try:
        yield
    except MemoryError:
        raise InputError(
            f"GPU {gpu.title}: its caches need more memory than there is; reduce num_sms, l1_size_kib "
            "or l2_size_kib"
        ) from None


def _sm_limits(gpu: Gpu) -> dict[str, int]:
    return {
        "warps": gpu.warps_per_sm,
        "threads": gpu.threads_per_sm,
        "blocks": gpu.blocks_per_sm,
        "registers": gpu.registers_per_sm,
        "shared_memory_bytes": int(gpu.shared_memory_kib_per_sm * 1024),
        "register_allocation_unit": gpu.register_allocation_unit,
        "shared_memory_allocation_bytes": gpu.shared_memory_allocation_bytes,
        "shared_memory_reserved_bytes": gpu.shared_memory_reserved_bytes,
    }


def _config(gpu: Gpu) -> dict[str, Any]:
    """Return the memory system of a GPU as the core wants it."""
    return {
        "num_sms": gpu.num_sms,
        "sm": _sm_limits(gpu),
        "l1": _cache(gpu, "l1"),
        "l2": _cache(gpu, "l2"),
        "unified_bytes": int(gpu.unified_l1_kib * 1024),
        "carve_outs": [int(size * 1024) for size in gpu.shared_memory_carve_outs_kib],
        "adaptive_keeps_ways": gpu.adaptive_l1_keeps == "ways",
        "l1_caches_global": gpu.l1_global_loads == "cached",
        "filter_l1_hits": True,
        "block_policy": "round_robin",
        "seed": 0,
        "first_occupancy_only": False,
    }


def _cache(gpu: Gpu, level: str) -> dict[str, Any]:
    is_l2 = level == "l2"
    return {
        "size_bytes": int(getattr(gpu, f"{level}_size_kib") * 1024),
        "ways": getattr(gpu, f"{level}_ways"),
        "line_bytes": getattr(gpu, f"{level}_line_bytes"),
        "sector_bytes": getattr(gpu, f"{level}_sector_bytes"),
        "write_policy": getattr(gpu, f"{level}_write_policy"),
        "write_miss": getattr(gpu, f"{level}_write_miss"),
        "replacement": getattr(gpu, f"{level}_replacement"),
        "allocation": "on_miss" if is_l2 else gpu.l1_allocation,
        "set_index": getattr(gpu, f"{level}_set_index"),
        "slices": gpu.l2_slices if is_l2 else 1,
        "slice_interleave_bytes": gpu.l2_slice_interleave_bytes if is_l2 else gpu.l1_line_bytes,
        "slice_index": gpu.l2_slice_index if is_l2 else "modulo",
    }
