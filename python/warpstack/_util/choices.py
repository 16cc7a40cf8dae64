"""The choices that public functions give, as types, so that an editor knows them; the default model."""

from __future__ import annotations

from typing import Final, Literal

__all__ = [
    "DEFAULT_MODEL",
    "STYLES",
    "AccessOrder",
    "CacheRuns",
    "MissSource",
    "Profiler",
    "Selection",
    "order_of",
]

#: The model of every function, command and output where none is asked for: `warpstack.models.predict`
#: and a table of another command then give the same time.
DEFAULT_MODEL: Final = "closed_network"

#: The looks of pictures, which `warpstack.plot.looks` has; the command line names them without loading it.
STYLES: Final = ("notebook", "dark", "paper", "slides")

#: The order in which the resident warps of an SM access memory; `warpstack.memory.MemorySystem` defines them.
AccessOrder = Literal["auto", "round_robin", "greedy", "timed"]
#: How a sweep finds the caches of its points; `warpstack.sweep` defines them.
CacheRuns = Literal["exact", "recorded"]
#: Where the misses of an interval come from: all executions of its loads, or the warp's own.
MissSource = Literal["per_pc", "representative"]
#: What measures a kernel: Nsight Systems, Nsight Compute, nvprof, or CUDA events around the launch.
Profiler = Literal["nsys", "ncu", "nvprof", "events"]
#: How `warpstack.interval.representative_warp` chooses (GPUMech, Section III-C and Figure 7).
Selection = Literal["clustering", "max", "min"]


def order_of(access_order: AccessOrder) -> AccessOrder:
    """Return the order of accesses that `auto` stands for; other orders unchanged."""
    return "timed" if access_order == "auto" else access_order
