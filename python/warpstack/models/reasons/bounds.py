"""The most that a change of the caches can gain, without simulating them.

A better cache can make hits only of misses that are not the first access to their data. A GPU without the
traffic and the latencies of those, whose caches do what they did, is at least as fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from warpstack._core import GPU_FIELDS
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.memory.caches import MemoryProfile

__all__ = ["bounding_gpu"]

_SECTOR_BYTES = 32
#: An L2 that is filled to this part has not yet dropped what it was filled with.
_FILLED = 0.5


@cache
def _ends() -> dict[str, tuple[float, float]]:
    return {field.name: (field.least, field.most) for field in GPU_FIELDS}


def bounding_gpu(change: str, gpu: Gpu, memory: MemoryProfile, *, is_first: bool) -> Gpu | None:
    """Return a GPU on which a launch, with the hits that it has, is no slower than with a change.

    Parameters
    ----------
    change
        One of those that move caches.
    gpu
        The GPU as it is.
    memory
        What the caches of the GPU as it is do.
    is_first
        Whether L2 was empty before the launch.

    Returns
    -------
    Gpu or None
        None where the change has nothing to gain.
    """
    counts = memory.totals
    fills = counts["dram_read_sectors"]
    # Each of these came for the first time, as L2 had not dropped any.
    cold = min(fills, int(_FILLED * gpu.l2_size_kib * 1024 / _SECTOR_BYTES))
    if change == "2 x atomics":
        return _faster(gpu, l2=float("inf")) if counts["atomic_instructions"] else None
    if change == "2 x L2 slice requests":
        # At best all slices, and all channels of DRAM behind them, get as much to do.
        slices = memory._core.slice_turns
        return _faster(
            gpu, l2=2 * _unevenness(slices), dram=_unevenness(memory._core.slice_dram_sectors)
        )
    if change == "2 x SMs":
        # Each new SM brings an L1.
        larger = bounding_gpu("2 x L1 size", gpu, memory, is_first=is_first)
        return None if larger is None else larger.replace(num_sms=2 * gpu.num_sms)
    if change == "2 x L2 size":
        written = counts["dram_write_sectors"]
        kept = cold if is_first else 0
        if fills == kept and not written:
            return None
        return _faster(gpu, dram=_ratio(fills + written, kept), hits_l2=fills > kept)
    read = counts["l2_read_sectors"]
    written = counts["l2_write_sectors"] + counts["l2_atomic_sectors"]
    waits = any(memory._core.place_wait_cycles)
    if read <= cold and gpu.l1_write_policy == "write_through" and not waits:
        return None
    stays = written if gpu.l1_write_policy == "write_through" else 0
    to_dram = counts["dram_write_sectors"]
    return _faster(
        gpu,
        l2=_ratio(read + written, min(cold, read) + stays),
        dram=_ratio(fills + to_dram, cold + to_dram) if fills > cold else 1,
        hits_l1=True,
        hits_l2=fills > cold,
    )


def _unevenness(parts: Sequence[float]) -> float:
    """Return what the largest of some parts is to their mean."""
    total = sum(parts)
    return max(parts) * len(parts) / total if total else 1.0


def _as_near_as_l1(gpu: Gpu) -> dict[str, float]:
    """Return latencies: one of L2 takes no longer than one of L1, and none longer than before."""
    l1 = gpu.l1_latency
    if gpu.l1_latency_place == "before_tags":
        # Whole cycles, as that of L2 must hold those of L1 rounded up.
        l1 = math.floor(l1)
    return {"l1_latency": l1, "l2_latency": min(l1, gpu.l2_latency)}


def _ratio(before: float, after: float) -> float:
    return before / after if after else float("inf")


def _faster(
    gpu: Gpu, *, l2: float = 1, dram: float = 1, hits_l1: bool = False, hits_l2: bool = False
) -> Gpu:
    """Return a GPU whose ways to L2 and to DRAM have so many times the bandwidth.

    With `hits_l1` and `hits_l2` L2 and DRAM are as near as L1 and L2 are.
    """
    ends = _ends()

    def times(field: str, factor: float, value: float | None = None) -> float:
        least, most = ends[field]
        value = getattr(gpu, field) if value is None else value
        return float(max(min(value * factor, most), least))

    values: dict[str, Any] = {}
    if l2 > 1:
        clock = gpu.l2_clock_ghz or gpu.clock_ghz
        values["l2_clock_ghz"] = times("l2_clock_ghz", l2, clock)
        values["noc_bandwidth_gbs"] = times("noc_bandwidth_gbs", l2)
        # Its own clock stays that of DRAM.
        values["dram_clock_ghz"] = gpu.dram_clock_ghz or clock
    if dram > 1:
        values |= {"dram_bandwidth_gbs": times("dram_bandwidth_gbs", dram), "dram_row_bytes": 0}
    if hits_l1:
        values |= _as_near_as_l1(gpu)
        values["l1_mshrs"] = int(ends["l1_mshrs"][1])
        if gpu.noc_queue_entries:
            values["noc_queue_entries"] = int(ends["noc_queue_entries"][1])
    if hits_l2:
        values["dram_latency"] = 0
    try:
        return gpu.replace(**values)
    except InputError as error:  # pragma: no cover - each value is one that its field can have
        raise AssertionError(f"no GPU bounds {gpu.title}: {error}") from None
