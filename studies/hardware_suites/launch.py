"""What a profiler's time has beside the kernel's cycles, and at which clock it runs a GPU."""

from __future__ import annotations

import warpstack as ws
from warpstack.hardware import profiler as profilers


def launch_us(gpu: str, profiler: str) -> float:
    """Return what a profiler adds to a launch; 0 where launches hide it behind each other."""
    return profilers.launch_us(ws.gpu(gpu), profiler) if profiler else 0.0


def clock_ghz(gpu: str, profiler: str) -> float:
    """Return the clock at which a GPU is measured: Nsight Compute holds the base clock."""
    described = ws.gpu(gpu)
    return (profilers.profiled(described, profiler) if profiler else described).clock_ghz
