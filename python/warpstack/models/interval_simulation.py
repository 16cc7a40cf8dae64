"""Interval simulation: warps run from access to access, and the memory system serves these one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warpstack import _core
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.hardware.stages import Stage, fields_of
from warpstack.interval.profile import whole_instructions
from warpstack.memory.caches import named_memory_error
from warpstack.traces.trace import KernelTrace

__all__ = ["FIELDS", "NAME", "IntervalSimulator", "SimulatedLaunch"]

#: The model that reads what this finds.
NAME = "interval_simulation"
#: Fields of `Gpu` that it reads: all that the cycle-level simulator reads. A new field of the simulator
#: that it does not read is left out here.
FIELDS = fields_of(Stage.TIMING) - {"concurrent_grids"}


@dataclass(frozen=True)
class SimulatedLaunch:
    """What interval simulation found of a launch, whose blocks that were not traced run like the others.

    Attributes
    ----------
    instructions
        Warp instructions that ran.
    blocks
        Thread blocks that ran: fewer than the launch has where very many were not traced.
    cycles
        SM cycles until the kernel ends.
    sm_cycles
        Cycles of each SM until its last warp is done, summed over the SMs.
    stack
        The same cycles by what issue slots were used for or lost to.
    totals
        Counters by name, as `MemoryProfile.totals`.
    """

    instructions: int
    blocks: int
    cycles: float
    sm_cycles: float
    stack: Mapping[str, float]
    totals: Mapping[str, int]

    def attributes(self, kernel: KernelTrace) -> dict[str, Any]:
        """Return the attributes of a `Prediction` that say how fast the kernel is.

        Blocks that did not run have the rate of the others.
        """
        instructions = whole_instructions(kernel)
        cycles = self.cycles
        if self.blocks < kernel.num_blocks:
            cycles *= instructions / self.instructions
        return {
            "instructions": float(instructions),
            "cycles": cycles,
            "ipc": instructions / cycles,
            "cpi": self.sm_cycles / self.instructions,
            "cpi_stack": {part: count / self.instructions for part, count in self.stack.items()},
        }


class IntervalSimulator:
    """A GPU for interval simulation, whose L2 keeps its contents from kernel to kernel.

    Parameters
    ----------
    gpu
        The GPU.
    written_share
        The share of L2's lines that strangers have written when L2 is new or was flushed.

    Raises
    ------
    InputError
        If the description cannot be simulated.
    """

    def __init__(self, gpu: Gpu, written_share: float = 0.0) -> None:
        self._gpu = gpu
        with named_memory_error(gpu):
            self._core = _core.IntervalSimulator(gpu._core, written_by_strangers=written_share)

    def run(self, kernel: KernelTrace) -> SimulatedLaunch:
        """Run a kernel with empty L1 caches.

        Raises
        ------
        InputError
            If a thread block does not fit on an SM, or the kernel has no instructions.
        """
        with named_memory_error(self._gpu):
            found = self._core.run(kernel._core)
        if found.instructions == 0:
            raise InputError(f"kernel {kernel.name} has no instructions; nothing to predict")
        return SimulatedLaunch(
            found.instructions,
            found.blocks,
            found.cycles,
            found.sm_cycles,
            found.stack,
            found.totals,
        )

    def flush_l2(self) -> None:
        """Empty L2, as profilers do between kernels."""
        self._core.flush_l2()
