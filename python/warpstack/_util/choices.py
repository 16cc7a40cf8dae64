"""The choices that public functions give, as types, so that a typing error shows in an editor."""

from __future__ import annotations

from typing import Literal

__all__ = ["AccessOrder", "CacheRuns", "MissSource", "Profiler", "Selection"]

#: In which order the resident warps of an SM access memory; `warpstack.MemorySystem` defines them.
AccessOrder = Literal["auto", "round_robin", "greedy", "timed"]
#: How a sweep finds the caches of its points; `warpstack.sweep` defines them.
CacheRuns = Literal["exact", "recorded"]
#: Where the misses of an interval come from: all executions of its loads, or the warp's own.
MissSource = Literal["per_pc", "representative"]
#: What measures a kernel: Nsight Systems, Nsight Compute, nvprof, or CUDA events around the launch.
Profiler = Literal["nsys", "ncu", "nvprof", "events"]
#: How `warpstack.representative_warp` chooses (GPUMech, Section III-C and Figure 7).
Selection = Literal["clustering", "max", "min"]
