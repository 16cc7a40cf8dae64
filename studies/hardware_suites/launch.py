"""What a profiler's time has beside the kernel's cycles, and at which clock it runs a GPU."""

from __future__ import annotations

import warpstack as ws

#: Microseconds by profiler and GPU where its description has none: the README of the measurements,
#: and for events the least time of the card.
_LAUNCH_US = {
    ("nsys", "h100-pcie"): 1.35,
    ("ncu", "h100-pcie"): 3.7,
    ("nvprof", "gtx1080"): 1.8,
    ("ncu", "rtx3070"): 2.9,
    ("ncu", "rtx-a4000"): 4.4,
    ("events", "rtx3080"): 3.1,
    ("events", "rtx3060-laptop"): 4.3,
    **{
        ("events", name): 6.5
        for name in ("gtx1650", "rtx2060", "rtx3060", "rtx3060ti", "rtx3070ti")
    },
}
#: The clock that Nsight Compute holds, in GHz: the card's base clock.
_BASE_GHZ = {"h100-pcie": 1.095, "rtx3070": 1.5, "rtx-a4000": 0.735}


def launch_us(gpu: str, profiler: str) -> float:
    """Return what a profiler adds to a launch; 0 where launches hide it behind each other."""
    if not profiler:
        return 0.0
    known = getattr(ws.gpu(gpu), f"launch_us_{profiler}", 0.0)
    return known or _LAUNCH_US.get((profiler, gpu), 0.0)


def clock_ghz(gpu: str, profiler: str) -> float:
    """Return the clock at which a GPU is measured."""
    described = ws.gpu(gpu)
    if profiler != "ncu":
        return described.clock_ghz
    base = getattr(described, "base_clock_ghz", 0.0)
    return base or _BASE_GHZ.get(gpu, described.clock_ghz)
