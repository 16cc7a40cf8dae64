"""Waits at clocks: kernels that only watch the time until it is late enough.

Here such a kernel executes few instructions, because time passes faster while warps do nothing else. What
it has waited is in its trace: no GPU takes less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from warpstack import _core
from warpstack.errors import TraceWarning, warn
from warpstack.hardware.description import Gpu
from warpstack.traces.trace import KernelTrace

__all__ = ["awaited_us", "warn_of_waits"]

#: Blocks wait alike if the shortest wait is at least this share of the longest: what is counted varies by a
#: thirtieth.
_ALIKE = 15 / 16
#: Shorter waits are not worth a line.
_WORTH_A_LINE_US = 1.0
#: More names than this do not help a reader.
_MOST_NAMES = 3


def awaited_us(kernel: KernelTrace, gpu: Gpu) -> float:
    """Return the time that a launch takes at least because its warps wait for a clock, in us.

    That is the longest wait of a block, or what all blocks wait over how many the GPU holds at once. Where
    all blocks wait alike, it is at least their mean wait for each wave.
    Ticks of ``clock()`` are cycles of an SM, those of ``globaltimer`` nanoseconds.
    """
    header = kernel._header
    if not (header["awaited_cycles"][0] or header["awaited_ns"][0]):
        return 0.0
    places = gpu.num_sms * _core.occupancy(kernel._core, gpu._core)["blocks_per_sm"]
    blocks = math.prod(kernel.grid)
    waves = math.ceil(blocks / places)
    time = 0.0
    for name, per_us in (("awaited_cycles", gpu.clock_ghz * 1e3), ("awaited_ns", 1e3)):
        most, total, least = header[name]
        ticks = max(most, total / places)
        if least >= _ALIKE * most:
            ticks = max(ticks, waves * total / blocks)
        time += ticks / per_us
    return time


def warn_of_waits(kernels: Iterable[KernelTrace], gpu: Gpu) -> None:
    """Warn once of launches that wait for a clock, whose predicted times do not have these waits."""
    found: dict[str, float] = {}
    for kernel in kernels:
        time = awaited_us(kernel, gpu)
        if time >= _WORTH_A_LINE_US:
            found[kernel.short_name] = max(time, found.get(kernel.short_name, 0.0))
    if not found:
        return
    names = [f"{name} ({time:,.4g} us)" for name, time in found.items()]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    warn(
        f"{', '.join(names[:_MOST_NAMES])}{more} only watch{'es' if len(names) == 1 else ''} a clock for at "
        "least the time in brackets, which cycles and times here do not have; a time line has it "
        "(warpstack.timeline)",
        TraceWarning,
    )
