"""Kernel descriptions measured from traces."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpstack._core import SECTOR_BYTES
from warpstack._util.checked import checked
from warpstack.hardware.description import Gpu
from warpstack.interval.profile import representative_warp
from warpstack.models.mwp_cwp.machine import WARP_SIZE, Machine, as_machine
from warpstack.models.mwp_cwp.model import KernelDescription
from warpstack.models.mwp_cwp.static import m_factor
from warpstack.traces.trace import KernelTrace

__all__ = ["describe_trace"]

_Array = np.ndarray[Any, Any]

#: Thread blocks read at once.
_BATCH = 64


@checked
def describe_trace(
    kernel: KernelTrace, gpu: Machine | Gpu | str, *, active_blocks_per_sm: int | None = None
) -> KernelDescription:
    """Describe a kernel by its trace: means over its warps.

    Traces hold the 32-byte sectors that a warp touches. Below compute capability 1.3 an access is
    coalesced when its elements have 4, 8 or 16 bytes and its sectors are those of at most two aligned
    segments of 16 elements, one per half-warp; the order of the threads within is not seen. From 1.3
    on transactions are the segments (32, 64 or 128 bytes, Algorithm 2) that the warp touches.

    Parameters
    ----------
    kernel
        The kernel. Blocks that were not traced count like those that were.
    gpu
        The GPU whose coalescing and occupancy to take; see `warpstack.models.mwp_cwp.predict`.
    active_blocks_per_sm
        Thread blocks per SM; by default as many as the kernel's registers and shared memory allow.

    Returns
    -------
    KernelDescription
        `KernelDescription.independent_mem_insts` is that of the representative warp: accesses of
        which no instruction since the one before has used what that one loads.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM.
    """
    machine = as_machine(gpu)
    table = kernel.instructions
    executions = table["executions"].to_numpy(dtype=float)
    warps = float(kernel.num_warps)
    off_chip = (table["op_class"] == "memory") & table["space"].isin(("global", "local", "generic"))
    is_access = off_chip.to_numpy()
    width = table["width"].to_numpy(dtype=np.int64)
    barrier = table["opcode"].str.match(r"(?i)bar(rier)?\b(?!.*arrive)").to_numpy()
    factors = np.array([m_factor(opcode) for opcode in table["opcode"]])

    is_old = machine.compute_capability < 1.3
    coalesced = uncoalesced = spread = moved = 0.0
    core = kernel._core
    for first in range(0, core.num_traced_blocks, _BATCH):
        batch = core.read_batch(first, first + _BATCH)
        row = batch["memory_static"]
        touched = is_access[row] & (batch["memory_count"] > 0)
        active = _active_threads(batch, is_memory=(table["op_class"] == "memory").to_numpy())
        uses_sectors = (table["space"] != "shared").to_numpy()[row]
        counts = np.where(uses_sectors, batch["memory_count"], 0).astype(np.int64)
        ends = np.cumsum(counts)
        starts = (ends - counts)[touched]
        size = np.maximum(width[row[touched]], 1)
        count, threads = counts[touched], active[touched]
        if not len(count):
            continue
        sectors = batch["sector"].astype(np.int64)
        owner = np.repeat(np.arange(len(count)), count)
        members = sectors[np.repeat(starts, count) + _within(count)]
        if is_old:
            # A half-warp's segment of consecutive elements.
            segment = np.maximum(16 * size // SECTOR_BYTES, 1)
        else:
            segment = np.select([size == 1, size == 2], [1, 2], 4)
        pairs = np.unique(np.stack([owner, members // segment[owner]]), axis=1)
        number = np.bincount(pairs[0], minlength=len(count)).astype(float)
        if is_old:
            # Both half-warps may read the same segment.
            enough = 2 * count * SECTOR_BYTES >= threads * size
            good = np.isin(size, (4, 8, 16)) & (number <= 2) & enough
            number[:] = float(machine.uncoalesced_transactions)
        else:
            good = number == 1
        coalesced += float(good.sum())
        uncoalesced += float((~good).sum())
        spread += float(number[~good].sum())
        moved += float((size * WARP_SIZE).sum())

    issued = float(executions[is_access].sum())
    memory = coalesced + uncoalesced
    # Accesses without an active thread issue and nothing else.
    share = memory / issued if issued else 0.0
    threads_per_block = kernel._core.threads_per_block
    if active_blocks_per_sm is None:
        active_blocks_per_sm = machine.active_blocks_per_sm(
            threads_per_block, kernel.registers_per_thread, kernel.shared_memory_bytes
        )
    total = float(executions.sum())
    return KernelDescription(
        threads_per_block=threads_per_block,
        num_blocks=kernel.num_blocks,
        active_blocks_per_sm=active_blocks_per_sm,
        comp_insts=(total - memory) / warps,
        uncoal_mem_insts=uncoalesced / warps,
        coal_mem_insts=coalesced / warps,
        synch_insts=float(executions[barrier].sum()) / warps,
        uncoal_per_mw=spread / uncoalesced if uncoalesced else 32,
        load_bytes_per_warp=moved / memory if memory else 128,
        independent_mem_insts=min(_independent(kernel, is_access) * share, memory / warps),
        m_factor=float((executions * factors).sum() / total),
        name=kernel.short_name,
    )


def _within(counts: _Array) -> _Array:
    """Return 0, 1, ... for each of several runs of these lengths."""
    found: _Array = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def _active_threads(batch: dict[str, _Array], is_memory: _Array) -> _Array:
    """Return the number of active threads of each memory instruction of a batch."""
    masks = batch["active_mask"][is_memory[batch["instruction"]]]
    bits: _Array = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8)).reshape(-1, 32)
    counts: _Array = bits.sum(axis=1)
    return counts


def _independent(kernel: KernelTrace, is_access: _Array) -> int:
    """Count the representative warp's accesses that need not wait for the one before."""
    table = kernel.instructions
    block, warp = representative_warp(kernel)
    rows = kernel.warp(block, warp)["instruction"].tolist()
    sources = [set(registers) for registers in table["sources"]]
    destinations = [set(registers) for registers in table["destinations"]]
    waiting: set[int] = set()
    under_way = False
    independent = 0
    for row in rows:
        if waiting & sources[row]:
            waiting.clear()
            under_way = False
        if is_access[row]:
            independent += under_way
            under_way = under_way or bool(destinations[row])
            waiting |= destinations[row]
    return independent
