"""What a profiler's time has beside the kernel's cycles, and at which clock it runs a GPU."""

from __future__ import annotations

import warpstack as ws


def launch_us(gpu: str, profiler: str) -> float:
    """Return what a profiler adds to a launch; 0 where launches hide it behind each other."""
    return float(getattr(ws.gpu(gpu), f"launch_us_{profiler}")) if profiler else 0.0


def clock_ghz(gpu: str, profiler: str) -> float:
    """Return the clock at which a GPU is measured: Nsight Compute holds the base clock."""
    described = ws.gpu(gpu)
    held = described.base_clock_ghz if profiler == "ncu" else 0.0
    return held or described.clock_ghz
