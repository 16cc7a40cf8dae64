"""Simulations of launches from some of their thread blocks, on as large a part of the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from warpstack import _core
from warpstack._util.progress import Progress
from warpstack.hardware.description import Gpu
from warpstack.hardware.part import part_of
from warpstack.timing.apart import ResultValues
from warpstack.traces.block_sample import AppSamples, BlockPart, crowded, half_width
from warpstack.traces.trace import KernelTrace

__all__ = ["BlockSampled", "simulated_from_blocks"]

#: Runs kernels in order on a new GPU, and returns what the last one did.
Run = Callable[[Gpu, Sequence[KernelTrace]], "_core.SimulationResult | ResultValues"]


class BlockSampled:
    """What a simulation from some of its blocks says of a launch.

    Attributes
    ----------
    values
        Those of the whole launch.
    blocks
        How many ran; 0: all.
    ipc_low, ipc_high
        Between which IPC lies with a confidence of 95 %.
    """

    def __init__(self, values: ResultValues, blocks: int, width: float) -> None:
        self.values = values
        self.blocks = blocks
        ipc = values.instructions / values.cycles if values.cycles else 0.0
        self.ipc_low, self.ipc_high = ipc * max(1 - width, 0.0), ipc * (1 + width)


def simulated_from_blocks(
    kernels: Sequence[KernelTrace],
    gpu: Gpu,
    sample_blocks: int | str,
    flush_l2: bool,
    run: Run,
    bar: Progress,
) -> list[BlockSampled]:
    """Simulate launches from samples of their blocks, each behind those that have filled L2.

    Parameters
    ----------
    kernels
        The launches in order.
    gpu
        The GPU.
    sample_blocks, flush_l2
        As `Options` have them.
    run
        Simulates launches in order.
    bar
        It is told of the instructions of launches that are done.
    """
    samples = AppSamples(kernels, gpu, sample_blocks)
    results = []
    for number, kernel in enumerate(kernels):
        found = _of_launch(samples, number, gpu, flush_l2, run)
        if found is None:
            before = [] if flush_l2 else samples.before_whole(number)
            found = BlockSampled(_values(run(gpu, (*before, kernel))), 0, 0.0)
        results.append(found)
        bar.update(kernel.num_instructions)
    return results


def _of_launch(
    samples: AppSamples, number: int, gpu: Gpu, flush_l2: bool, run: Run
) -> BlockSampled | None:
    """Return what a sample says of a launch; None where all blocks are to run."""
    for one_in, parts in samples.to_try(number):

        def on(
            small: Gpu, which: int, parts: Sequence[BlockPart] = parts, one_in: int = one_in
        ) -> ResultValues:
            before = [] if flush_l2 else samples.before(number, one_in, which, small)
            launch = parts[which].launch
            return _of_whole(_values(run(small, (*before, launch))), parts[which], gpu)

        smaller = [part_of(gpu, part.num_sms, part.memory_share) for part in parts]
        found = [on(small, which) for which, small in enumerate(smaller)]
        best, *halves = (one.instructions / one.cycles for one in found)
        slower = crowded(parts[0], smaller[0], gpu.num_sms)
        meeting = None if slower is None else on(slower, 0)
        width = half_width(
            best,
            halves,
            parts[0],
            gpu,
            found[0].cycles,
            None if meeting is None else meeting.instructions / meeting.cycles,
        )
        if samples.will_do(number, width):
            return BlockSampled(found[0], parts[0].blocks, width)
    return None


def _values(result: _core.SimulationResult | ResultValues) -> ResultValues:
    return result if isinstance(result, ResultValues) else ResultValues.of(result)


def _of_whole(one: ResultValues, part: BlockPart, gpu: Gpu) -> ResultValues:
    """Return what the values of a part say of the whole launch."""
    counts, sms = part.counts, gpu.num_sms / part.num_sms

    def each(values: dict[str, float]) -> dict[str, float]:
        return {name: value * counts for name, value in values.items()}

    return replace(
        one,
        cycles=round(one.cycles * part.times),
        instructions=round(one.instructions * counts),
        tensor_cycles=round(one.tensor_cycles * counts),
        active_sms=round(one.active_sms * sms),
        sm_cycles=round(one.sm_cycles * counts),
        slots=each(one.slots),
        store_slots=one.store_slots * counts,
        critical_cycles=one.critical_cycles * counts,
        misses=round(one.misses * counts),
        miss_cycles=each(one.miss_cycles),
        totals={name: round(value * counts) for name, value in one.totals.items()},
        samples={
            name: values if name == "cycle" else np.asarray(values) * sms
            for name, values in one.samples.items()
        },
        row_slots={
            table: {name: values * counts for name, values in columns.items()}
            for table, columns in one.row_slots.items()
        },
    )
