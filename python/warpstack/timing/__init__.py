"""The timing stage: cycle-level simulation of a kernel."""

from warpstack.timing.concurrent import ConcurrentResult
from warpstack.timing.simulation import (
    LATENCY_PARTS,
    SimulationResult,
    Simulator,
    as_table,
    simulate,
)

__all__ = [
    "LATENCY_PARTS",
    "ConcurrentResult",
    "SimulationResult",
    "Simulator",
    "as_table",
    "simulate",
]
