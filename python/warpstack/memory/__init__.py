"""The memory stage: caches, reuse distances, occupancy."""

from typing import TYPE_CHECKING

from warpstack._util.lazy import lazy_exports

if TYPE_CHECKING:
    from warpstack.memory.ablation import ablate
    from warpstack.memory.caches import BlockSchedule, MemorySystem, occupancy, register_policy
    from warpstack.memory.reuse import (
        PptGpuMem,
        ReuseProfile,
        cache_family,
        line_stream,
        ppt_gpu_mem,
        reuse_profile,
        stack_distances,
    )

__all__ = [
    "BlockSchedule",
    "MemorySystem",
    "PptGpuMem",
    "ReuseProfile",
    "ablate",
    "cache_family",
    "line_stream",
    "occupancy",
    "ppt_gpu_mem",
    "register_policy",
    "reuse_profile",
    "stack_distances",
]

_LAZY_EXPORTS = {
    "BlockSchedule": "caches",
    "MemorySystem": "caches",
    "PptGpuMem": "reuse",
    "ReuseProfile": "reuse",
    "ablate": "ablation",
    "cache_family": "reuse",
    "line_stream": "reuse",
    "occupancy": "caches",
    "ppt_gpu_mem": "reuse",
    "register_policy": "caches",
    "reuse_profile": "reuse",
    "stack_distances": "reuse",
}

__getattr__, __dir__ = lazy_exports(__name__, _LAZY_EXPORTS)
