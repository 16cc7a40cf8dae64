"""The timing stage: cycle-level simulation of a kernel."""

from warpstack.timing.simulation import (
    LATENCY_PARTS,
    SimulationResult,
    Simulator,
    as_records,
    as_table,
    fields_used,
    simulate,
)

__all__ = [
    "LATENCY_PARTS",
    "SimulationResult",
    "Simulator",
    "as_records",
    "as_table",
    "fields_used",
    "simulate",
]
