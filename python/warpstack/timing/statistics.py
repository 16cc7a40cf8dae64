"""What the statistics of one launch and of several at once have in common."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from warpstack import _core
from warpstack._util.choices import Profiler
from warpstack._util.lazy import pandas as pd
from warpstack.hardware.description import Gpu
from warpstack.hardware.profiler import times
from warpstack.memory.caches import hit_rates
from warpstack.timing.apart import ResultValues

__all__ = ["Statistics"]


class Statistics:
    """Cycles, stacks and counters that the core's result of a simulation has."""

    _core: _core.SimulationResult | ResultValues
    gpu: Gpu
    profiler: Profiler

    @property
    def cycles(self) -> int:
        """SM cycles from the start of the first block until the last warp is done, and L2 has all stores."""
        return self._core.cycles

    @property
    def time_us(self) -> float:
        """The time that a profiler would report, launch included, in microseconds."""
        return float(times(float(self.cycles), self.gpu, self.profiler)["time_us"])

    @property
    def instructions(self) -> int:
        """Issued warp instructions: those of the trace, or of the launch that a sample stands for."""
        return self._core.instructions

    @property
    def ipc(self) -> float:
        """Warp instructions per cycle of the whole GPU; 0 without instructions."""
        return self.instructions / self.cycles if self.cycles else 0.0

    @property
    def cpi(self) -> float:
        """Cycles per warp instruction of an SM.

        The cycles of each SM until its last warp is done, summed over the SMs, over the
        instructions: ``ipc * cpi`` is the mean number of busy SMs.
        """
        return self._core.sm_cycles / self.instructions if self.instructions else 0.0

    @cached_property
    def cpi_stack(self) -> dict[str, float]:
        """`cpi` by what issue slots were used for (``base``) or lost to; sums to `cpi`."""
        return self._per_instruction(self._core.slots)

    @cached_property
    def cpi_details(self) -> dict[str, float]:
        """`cpi_stack` one level below (`warpstack.models.STACK_DETAILS`); sums to `cpi`."""
        return self._per_instruction(self._core.details)

    def _per_instruction(self, slots: dict[str, float]) -> dict[str, float]:
        """Return `cpi` divided as issue slots are."""
        total = sum(slots.values())
        return {part: count / total * self.cpi if total else 0.0 for part, count in slots.items()}

    @cached_property
    def totals(self) -> dict[str, int]:
        """Counters by name: those of `MemoryProfile.totals`, and those of the NoC and DRAM."""
        return self._core.totals

    def hit_rates(self) -> dict[str, float]:
        """Return the hit rates of sectors, as `MemoryProfile.hit_rates`."""
        return hit_rates(self.totals)

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """State of the GPU at even distances in time; without rows when none were asked for.

        Columns ``cycle``, ``instructions`` (issued so far), ``resident_warps``, and over all SMs,
        slices and channels ``l1_mshrs`` and ``l2_mshrs`` in use, and the entries of ``noc_queue``,
        ``l2_queue``, ``dram_queue`` and ``reply_queue``; ``slots_base`` to ``slots_queue``, the issue
        slots of all SMs so far by what they were used for or lost to, where those lost to a load
        count once it is done; and of the first SM ``scheduler_warps_0`` and so on, the resident
        warps of each of its schedulers.
        """
        return pd.DataFrame(self._core.samples)

    def __getstate__(self) -> dict[str, Any]:
        core = self._core
        values = core if isinstance(core, ResultValues) else ResultValues.of(core)
        return {**self.__dict__, "_core": values}
