"""Statistics of each instruction of a kernel: lanes, accesses, sources of its data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpstack._core import SECTOR_BYTES
from warpstack._util.lazy import pandas as pd
from warpstack.memory.caches import MemoryProfile
from warpstack.traces.trace import KernelTrace

__all__ = ["instruction_counts"]

#: Bytes that shared memory delivers at once (32 banks of 4 bytes).
_SHARED_BYTES = 128
#: Thread blocks that are looked at in one go hold at most about this many instructions.
_BATCH_INSTRUCTIONS = 4_000_000

_BITS = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)

#: Counters of the caches that are taken over.
_OF_CACHES = ["requests", "l2_requests", "dram_requests", "dram_sectors"]


def instruction_counts(kernel: KernelTrace, memory: MemoryProfile) -> pd.DataFrame:
    """Return one row per row of `KernelTrace.instructions`, with sums over all traced warps.

    Columns ``file``, ``source_line``, ``pc``, ``opcode``, ``executions``; ``lanes`` (active lanes), ``busy``
    (executions with an active lane: a branch that no lane takes has none), ``accesses``
    (executions that access memory with an active lane), ``sectors``, ``least_sectors`` (those that
    hold as many bytes as the lanes ask for); of loads through the caches ``load_requests``,
    ``load_misses`` of L1 and ``load_dram_requests``, the misses of L2; ``l2_requests``, ``l2_misses``;
    ``dram_bytes``; ``bank_conflicts`` (passes through shared memory beyond those that its width asks
    for); of atomics ``atomics`` (accesses), ``atomic_lanes`` and ``atomic_sectors``, the different
    sectors that they touch.
    """
    table = kernel.instructions
    rows = len(table)
    lanes = np.zeros(rows, dtype=np.int64)
    busy = np.zeros(rows, dtype=np.int64)
    least = np.zeros(rows, dtype=np.int64)
    passes = np.zeros(rows, dtype=np.int64)
    width = table["width"].to_numpy(dtype=np.int64)
    is_shared = (table["space"] == "shared").to_numpy()
    is_memory = (table["op_class"] == "memory").to_numpy()
    is_atomic = is_memory & (table["kind"] == "atomic").to_numpy() & ~is_shared
    touched: list[npt.NDArray[np.uint64]] = []
    core = kernel._core
    blocks = core.num_traced_blocks
    step = max(1, int(blocks * _BATCH_INSTRUCTIONS / max(kernel.num_instructions, 1)))
    for first in range(0, blocks, step):
        batch = core.read_batch(first, min(first + step, blocks))
        row, mask = batch["instruction"], batch["active_mask"]
        active = _BITS[mask.view(np.uint8).reshape(-1, 4)].sum(axis=1, dtype=np.int64)
        lanes += np.bincount(row, active, rows).astype(np.int64)
        busy += np.bincount(row[active > 0], minlength=rows)
        size = active * width[row]
        least += np.bincount(row, -(-size // SECTOR_BYTES), rows).astype(np.int64)
        passes += np.bincount(row, -(-size // _SHARED_BYTES), rows).astype(np.int64)
        if is_atomic.any():
            through_caches = ~is_shared[batch["memory_static"]]
            owner = np.repeat(
                batch["memory_static"][through_caches], batch["memory_count"][through_caches]
            )
            touched.append(
                np.unique(
                    np.stack(
                        [
                            owner[is_atomic[owner]].astype(np.uint64),
                            batch["sector"][is_atomic[owner]],
                        ]
                    ),
                    axis=1,
                )
            )
    counters = memory.per_pc.select_dtypes("number")
    counted = counters.reindex(range(rows), fill_value=0)
    accesses = counted["active_executions"].to_numpy(dtype=np.int64)
    sectors = counted["sectors"].to_numpy(dtype=np.int64)
    cached = is_memory & ~is_shared
    # Accesses that bypass L1 or only write neither hit nor miss there.
    is_load = cached & (table["kind"] == "load").to_numpy()
    found = pd.DataFrame(
        {
            "file": table["source_file"],
            "source_line": table["source_line"].astype(np.int64),
            "pc": table["pc"],
            "opcode": table["opcode"],
            "executions": table["executions"].astype(np.int64),
            "lanes": lanes,
            "busy": busy,
            "accesses": np.where(is_memory, accesses, 0),
            "cached_accesses": np.where(cached, accesses, 0),
            "sectors": np.where(cached, sectors, 0),
            "least_sectors": np.where(cached, least, 0),
            "bank_conflicts": np.where(
                is_shared,
                np.maximum(counted["shared_wavefronts"].to_numpy(dtype=np.int64) - passes, 0),
                0,
            ),
            "shared_accesses": np.where(is_shared & is_memory, accesses, 0),
            "atomics": np.where(is_atomic, accesses, 0),
            "atomic_lanes": np.where(is_atomic, lanes, 0),
            "atomic_sectors": 0,
        }
    )
    for name in _OF_CACHES:
        found[name] = counted[name].to_numpy(dtype=np.int64)
    found["load_requests"] = np.where(is_load, found["requests"], 0)
    found["load_misses"] = np.where(is_load, found["l2_requests"], 0)
    found["load_dram_requests"] = np.where(is_load, found["dram_requests"], 0)
    if touched:
        pairs = np.unique(np.concatenate(touched, axis=1), axis=1)
        found["atomic_sectors"] = np.bincount(pairs[0].astype(np.int64), minlength=rows)
    return found
