"""What a profiler's time has beside the kernel's cycles, and at which clock it runs a GPU."""

from __future__ import annotations

import warpstack as ws
from warpstack.hardware import profiler as profilers

#: The index of a process's first launch.
FIRST = "1"
#: What it takes beyond, in microseconds, by GPU and profiler, where those who
#: measured say so: 3.3 in all where others take 1.8 (romnn/simulators). A profiler that runs a kernel
#: several times, as Nsight Compute does, does not see it.
FIRST_US = {("gtx1080", "nvprof"): 1.5}


def launch_us(gpu: str, profiler: str, index: str = "") -> float:
    """Return what a profiler adds to a launch; 0 where launches hide it behind each other."""
    first = FIRST_US.get((gpu, profiler), 0.0) if index == FIRST else 0.0
    return profilers.launch_us(ws.gpu(gpu), profiler) + first if profiler else 0.0


def clock_ghz(gpu: str, profiler: str) -> float:
    """Return the clock at which a GPU is measured: Nsight Compute holds the base clock."""
    described = ws.gpu(gpu)
    return (profilers.profiled(described, profiler) if profiler else described).clock_ghz
