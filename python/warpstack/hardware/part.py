"""A part of a GPU: some of its SMs, with their share of everything that they divide."""

from __future__ import annotations

import math
from typing import Any

from warpstack.hardware.description import Gpu

__all__ = ["part_of"]


def part_of(gpu: Gpu, num_sms: int, memory_share: float) -> Gpu:
    """Return some SMs of a GPU with their share of the NoC, L2 and DRAM.

    Latencies, SMs and single slices are those of the GPU. Slices and channels are rounded up, and
    each is as much slower.

    Parameters
    ----------
    gpu
        The GPU.
    num_sms
        How many of its SMs the part has.
    memory_share
        Which share of the size of L2 and of the bandwidth of DRAM it has. It is above that of the SMs
        where all SMs would use the same data.
    """
    share = num_sms / gpu.num_sms
    channels = gpu.dram_channels or gpu.l2_slices
    own_channels = max(1, math.ceil(channels * share - 1e-9))
    slices = own_channels * (gpu.l2_slices // channels)
    slower = slices / gpu.l2_slices / share
    unit_kib = gpu.l2_line_bytes * gpu.l2_ways * slices / 1024
    changes: dict[str, Any] = {
        "num_sms": num_sms,
        "block_interval_cycles": gpu.block_interval_cycles / share,
        "noc_bandwidth_gbs": gpu.noc_bandwidth_gbs * share,
        "l2_slices": slices,
        "l2_size_kib": unit_kib * max(1, round(gpu.l2_size_kib * memory_share / unit_kib)),
        "l2_slice_request_cycles": gpu.l2_slice_request_cycles * max(slower, 1.0),
        "l2_slice_bytes_per_cycle": gpu.l2_slice_bytes_per_cycle / slower,
        "dram_bandwidth_gbs": gpu.dram_bandwidth_gbs * memory_share,
    }
    if gpu.dram_channels:
        changes["dram_channels"] = own_channels
    return gpu.replace(**changes)
