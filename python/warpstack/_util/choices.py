"""The choices that public functions give, as types, so that an editor knows them; the default model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

__all__ = [
    "DEFAULT_MODEL",
    "INITIAL_L2",
    "STYLES",
    "AccessOrder",
    "CacheRuns",
    "InitialL2",
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
#: What L2 holds before the first launch; `warpstack.Options` defines them.
InitialL2 = Literal["empty", "clean", "dirty"]
#: What measures a kernel: Nsight Systems, Nsight Compute, nvprof, CUDA events around the launch, a batch of
#: launches that follow one another, or the events that Triton's do_bench records.
Profiler = Literal["nsys", "ncu", "nvprof", "events", "batch", "do_bench"]
#: What L2 holds before the first launch that a profiler measures, where nothing else is said. Nsight
#: Compute empties L2 before each launch. The others leave it as the program did, which is not known.
#: Triton's do_bench, as NVBench, writes zeros to a buffer larger than L2 before each run.
INITIAL_L2: Final[Mapping[Profiler, InitialL2]] = {
    "nsys": "empty",
    "ncu": "empty",
    "nvprof": "empty",
    "events": "empty",
    "batch": "empty",
    "do_bench": "dirty",
}
#: How `warpstack.interval.representative_warp` chooses (GPUMech, Section III-C and Figure 7).
Selection = Literal["clustering", "max", "min"]


def order_of(access_order: AccessOrder) -> AccessOrder:
    """Return the order of accesses that `auto` stands for; other orders unchanged."""
    return "timed" if access_order == "auto" else access_order
