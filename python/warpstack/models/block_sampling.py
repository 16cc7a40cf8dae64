"""Predictions of launches from some of their thread blocks, on as large a part of the GPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from warpstack.hardware.description import Gpu
from warpstack.hardware.part import part_of
from warpstack.interval.profile import profile_of, representative_warp
from warpstack.memory.caches import MemorySystem
from warpstack.models.interval_simulation import IntervalSimulator
from warpstack.models.pipeline import Found, Needs, Pipeline
from warpstack.traces.block_sample import AppSamples, BlockPart, crowded, half_width

if TYPE_CHECKING:
    from warpstack.traces.trace import KernelTrace

__all__ = ["block_sampled"]

#: A prediction, a frozen dataclass; who makes them imports this module.
Prediction = Any
#: Evaluates a model of that name.
Evaluate = Callable[[Found, Gpu, str], Prediction]


def block_sampled(
    pipeline: Pipeline,
    gpu: Gpu,
    models: Sequence[str],
    sample_blocks: int | str,
    evaluate: Evaluate,
    needs: Needs,
) -> Iterator[tuple[int, list[tuple[Prediction, float, float]]]]:
    """Yield for each launch how many blocks were evaluated (0: all), and predictions with bounds of IPC.

    In L2 a launch finds what those blocks of earlier launches left that are in the same sample.
    """
    samples = AppSamples(pipeline.kernels, gpu, sample_blocks)
    stages = _Stages(pipeline, gpu, needs, samples)
    for number, kernel in enumerate(pipeline.kernels):
        for one_in, parts in samples.to_try(number):
            of_parts = []
            for which, part in enumerate(parts):
                found, small = stages.of_part(number, part, one_in, which)
                of_parts.append(
                    [_of_whole(evaluate(found, small, m), part, kernel) for m in models]
                )
            best, *halves = of_parts
            meeting = stages.of_crowded(number, parts[0], one_in)
            widths = [
                half_width(
                    one.ipc,
                    [half[m].ipc for half in halves],
                    parts[0],
                    gpu,
                    one.cycles,
                    meeting and _of_whole(evaluate(*meeting, model), parts[0], kernel).ipc,
                )
                for m, (one, model) in enumerate(zip(best, models, strict=True))
            ]
            if samples.will_do(number, max(widths)):
                yield (
                    parts[0].blocks,
                    [
                        (one, one.ipc * max(1 - width, 0.0), one.ipc * (1 + width))
                        for one, width in zip(best, widths, strict=True)
                    ],
                )
                break
        else:
            found = stages.of_whole(number)
            predictions = [evaluate(found, gpu, model) for model in models]
            yield 0, [(one, one.ipc, one.ipc) for one in predictions]


def _of_whole(one: Prediction, part: BlockPart, kernel: KernelTrace) -> Prediction:
    """Return what a prediction of a part says of the whole launch."""
    cycles, instructions = one.cycles * part.times, one.instructions * part.counts
    return dataclasses.replace(
        one,
        kernel=kernel.launch_id,
        name=kernel.short_name,
        cycles=cycles,
        instructions=instructions,
        ipc=instructions / cycles,
    )


class _Stages:
    """What the stages find of launches, and of parts of them, of one application."""

    def __init__(self, pipeline: Pipeline, gpu: Gpu, needs: Needs, samples: AppSamples) -> None:
        self._pipeline = pipeline
        self._options = pipeline.options
        self._gpu = gpu
        self._needs = needs
        self._samples = samples
        self._unseen = 0  # the first launch that L2 of the whole GPU has not seen

    # The whole GPU, which launches need of which no sample will do.

    @cached_property
    def _system(self) -> MemorySystem:
        return self._new_system(self._gpu)

    @cached_property
    def _simulator(self) -> IntervalSimulator:
        return IntervalSimulator(self._gpu, self._options.written_share)

    def of_part(self, number: int, part: BlockPart, one_in: int, which: int) -> tuple[Found, Gpu]:
        """Return what models need of a part of a launch, and the part of the GPU."""
        return self._found(
            number, part, one_in, which, part_of(self._gpu, part.num_sms, part.memory_share)
        )

    def of_crowded(self, number: int, part: BlockPart, one_in: int) -> tuple[Found, Gpu] | None:
        """Return the same of a sample where atomics of all blocks meet; None if there are none."""
        small = part_of(self._gpu, part.num_sms, part.memory_share)
        slower = crowded(part, small, self._gpu.num_sms)
        return None if slower is None else self._found(number, part, one_in, 0, slower)

    def _found(
        self, number: int, part: BlockPart, one_in: int, which: int, small: Gpu
    ) -> tuple[Found, Gpu]:
        before: list[KernelTrace] = []
        if not self._options.flush_l2:
            before = self._samples.before(number, one_in, which, small)
        memory = profile = simulated = None
        if self._needs.profiles:
            system = self._new_system(small)
            for launch in before:
                system.warm(launch)
            warp = representative_warp(part.launch, self._options.selection)
            observed = warp if self._options.observes else None
            memory = system.run(part.launch, observe=observed)
            profile = profile_of(part.launch, small, memory, warp, self._options)
        if self._needs.simulation:
            simulator = IntervalSimulator(small, self._options.written_share)
            for launch in before:
                simulator.run(launch)
            simulated = simulator.run(part.launch)
        return Found(part.launch, memory, profile, simulated), small

    def of_whole(self, number: int) -> Found:
        """Return what models need of a launch of which all blocks run."""
        pipeline, options, kernel = self._pipeline, self._options, self._pipeline.kernels[number]
        unseen = () if options.flush_l2 else pipeline.kernels[self._unseen : number]
        self._unseen = number + 1
        memory = profile = simulated = None
        if self._needs.profiles:
            if options.flush_l2:
                self._system.flush_l2()
            for earlier in unseen:
                self._system.warm(earlier)
            observed = pipeline.warp(number) if options.observes else None
            memory = self._system.run(kernel, observe=observed)
            profile = pipeline.interval(number, self._gpu, memory)
        if self._needs.simulation:
            if options.flush_l2:
                self._simulator.flush_l2()
            for earlier in unseen:
                self._simulator.run(earlier)
            simulated = self._simulator.run(kernel)
        return Found(kernel, memory, profile, simulated)

    def _new_system(self, gpu: Gpu) -> MemorySystem:
        options = self._options
        return MemorySystem(
            gpu, access_order=options.access_order, initial_l2=options.written_share
        )
