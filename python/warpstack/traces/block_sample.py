"""Thread blocks of a launch that stand for all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warpstack import _core
from warpstack._util.trace_budget import default_budget
from warpstack.hardware.description import Gpu
from warpstack.traces.trace import KernelTrace

__all__ = ["AppSamples", "BlockPart", "half_width", "parts_of"]

#: Accesses of a launch above which its lines are counted from a sample of them.
_MOST_SECTORS = 1 << 21
#: Below this share of its lines no data count as shared, as they are counted from samples.
_LEAST_SHARED = 0.005
#: One in so many blocks that `auto` tries, one after the other, before it takes all.
_FIRST_SAMPLES = (16, 4)
#: Half width of the interval of IPC, relative, above which `auto` takes more blocks.
_TOLERANCE = 0.05
#: What a sample is uncertain by at least: few blocks end at another time than many, and share other
#: lines.
_FLOOR = 0.03
#: How much counts that the halves of a sample differ from it and from each other, and how much more
#: lines it has than its share. Chosen so that 95 % of the intervals of the study hold.
_BIAS = 2.0
_SPREAD = 2.0
_SHARED = 0.2
#: Bytes of an access in traces.
_SECTOR_BYTES = 32


@dataclass(frozen=True)
class BlockPart:
    """Blocks of a launch, which run on a part of a GPU as all of them do on the whole one.

    Attributes
    ----------
    launch
        The blocks as a launch of their own.
    num_sms
        SMs of the part.
    memory_share
        Lines of memory that the blocks touch over those of the whole launch: the share of L2 and DRAM
        that the part has.
    times
        The cycles of the whole launch over those of the part.
    counts
        Blocks of the whole launch over those of the part.
    """

    launch: KernelTrace
    num_sms: int
    memory_share: float
    times: float
    counts: float

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return self.launch.num_blocks


def parts_of(
    kernel: KernelTrace, gpu_sms: int, one_in: int, line_bytes: int
) -> tuple[BlockPart, BlockPart, BlockPart] | None:
    """Return a sample of a launch and its two halves; None where all of its blocks are to run.

    Parameters
    ----------
    kernel
        The launch: of a trace that is a sample its blocks are taken.
    gpu_sms
        SMs of the GPU.
    one_in
        Of a whole trace one in so many blocks are taken, at least 128.
    line_bytes
        Size of a line of L2.
    """
    runs = _runs_of(kernel, one_in)
    if runs is None:
        return None
    there = sum(map(len, runs))
    num_sms = max(1, gpu_sms * there // kernel.num_blocks)
    full = _shortened(runs, kernel.num_blocks * num_sms / gpu_sms)
    half_sms = max(1, num_sms // 2)
    levels = np.zeros(kernel._core.num_traced_blocks, np.uint8)
    for level, chosen in enumerate((full, full[::2], full[::4]), 1):
        levels[[block for run in chosen for block in run]] = level
    one_line_in = -(-kernel._core.num_sectors * sum(map(len, full)) // len(levels) // _MOST_SECTORS)
    lines = kernel._core.touched_lines(levels, 3, line_bytes, max(one_line_in, 1))
    blocks = sum(map(len, full))
    whole = _whole_lines(lines, blocks / kernel.num_blocks)

    def part(chosen: list[range], sms: int, touched: int) -> BlockPart:
        positions = [block for run in chosen for block in run]
        core = kernel._core.launch_of_blocks(positions, default_budget())
        counts = kernel.num_blocks / len(positions)
        return BlockPart(
            KernelTrace(core),
            sms,
            # A launch without accesses has no lines.
            touched / whole if whole else sms / gpu_sms,
            counts * sms / gpu_sms,
            counts,
        )

    wanted = kernel.num_blocks * half_sms / gpu_sms
    even, odd = (_shortened(full[first::2], wanted) for first in (0, 1))
    return (
        part(full, num_sms, lines[0]),
        part(even, half_sms, lines[1]),
        part(odd, half_sms, lines[1]),
    )


def _runs_of(kernel: KernelTrace, one_in: int) -> list[range] | None:
    """Return the positions in the trace of the blocks of a sample, run by run."""
    core = kernel._core
    if kernel.is_sampled:
        runs = _core.sampled_blocks(kernel.num_blocks, core.num_traced_blocks)
        ends = list(itertools.accumulate(length for _, length in runs))
        return [range(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    size = _core.sample_size(kernel.num_blocks, one_in)
    if kernel.num_missing_blocks or size == kernel.num_blocks:
        return None
    return [
        range(first, first + length)
        for first, length in _core.sampled_blocks(kernel.num_blocks, size)
    ]


def _shortened(runs: list[range], blocks: float) -> list[range]:
    """Return the first blocks of each run, so many of all runs together if they are there."""
    wanted = max(round(blocks), 1)
    ends = [wanted * number // len(runs) for number in range(len(runs) + 1)]
    return [run[: end - begin] for run, begin, end in zip(runs, ends[:-1], ends[1:], strict=True)]


def _whole_lines(lines: list[int], share: float) -> float:
    """Return how many lines all blocks of a launch touch.

    A share x of the blocks touches a x + L (1 - exp(-d x)) lines: `a` of single blocks, and L of
    each of which about d blocks touch. With the lines of all blocks of a sample, of half and of a
    quarter of them, the three are known.

    Parameters
    ----------
    lines
        Those of a sample, of half of it, and of half of that.
    share
        Of the launch's blocks that are in the sample.
    """
    all_lines, half, quarter = lines
    # What each half of a set shares with the other one: L (1 - u)^2 and L (1 - u^2)^2, u = exp(-d share / 4).
    twice, once = 2 * quarter - half, 2 * half - all_lines
    if once <= _LEAST_SHARED * all_lines:
        return all_lines / share
    u = min(math.sqrt(max(once / twice, 1.0)) - 1, 1.0) if twice > 0 else 1.0
    if u > 0.97:  # too few blocks to see how many share
        return all_lines / share
    shared = twice / (1 - u) ** 2
    own = max(quarter - shared * (1 - u), 0.0) * 4 / share
    seen = 1.0 if u == 0 else 1 - u ** (4 / share)
    # As if the other blocks touched none, and as if they shared none.
    return min(max(own + shared * seen, float(all_lines)), all_lines / share)


def half_width(ipc: float, halves: Sequence[float], sample: BlockPart, gpu_sms: int) -> float:
    """Return the relative half width of an interval of IPC with a confidence of 95 %.

    Parameters
    ----------
    ipc
        What the sample says.
    halves
        What each half of the sample says on half of the part: where they differ from each other,
        blocks differ; where both differ from the sample, the size of the part matters.
    sample
        The sample.
    gpu_sms
        SMs of the whole GPU.
    """
    mean = sum(halves) / len(halves)
    spread = (max(halves) - min(halves)) / 2
    shared = max(sample.memory_share * gpu_sms / sample.num_sms - 1, 0.0)
    return _FLOOR + (_BIAS * abs(ipc - mean) + _SPREAD * spread) / ipc + _SHARED * min(shared, 1.0)


class AppSamples:
    """Samples of the launches of an application for one GPU, each made once.

    Parameters
    ----------
    kernels
        The launches in order.
    gpu
        The GPU.
    sample_blocks
        One in how many blocks, or ``auto``, as `Options` have it.
    """

    def __init__(self, kernels: Sequence[KernelTrace], gpu: Gpu, sample_blocks: int | str) -> None:
        self._kernels = kernels
        self._gpu = gpu
        self._sample_blocks = sample_blocks
        self._parts: dict[tuple[int, int], tuple[BlockPart, ...] | None] = {}

    def to_try(self, number: int) -> Iterator[tuple[int, tuple[BlockPart, ...]]]:
        """Yield the samples of a launch that may do, the smallest first: one in how many, and its parts."""
        wanted = self._sample_blocks
        for one_in in _FIRST_SAMPLES if isinstance(wanted, str) else (wanted,):
            parts = self.parts(number, one_in)
            if parts is not None:
                yield one_in, parts

    def will_do(self, number: int, width: float) -> bool:
        """Return whether a sample with intervals of this half width says enough of a launch."""
        is_given = self._sample_blocks != "auto" or self._kernels[number].is_sampled
        return is_given or width <= _TOLERANCE

    def parts(self, number: int, one_in: int) -> tuple[BlockPart, ...] | None:
        """Return a sample of a launch and its two halves; None where all of its blocks are to run."""
        key = (number, one_in)
        if key not in self._parts:
            kernel = self._kernels[number]
            self._parts[key] = parts_of(kernel, self._gpu.num_sms, one_in, self._gpu.l2_line_bytes)
        return self._parts[key]

    def before(self, number: int, one_in: int, which: int, part: Gpu) -> list[KernelTrace]:
        """Return the launches that may have left something in L2 of a part of the GPU, in order.

        Those before the last ones whose accesses fill it twice have left nothing.

        Parameters
        ----------
        number
            The launch before which they run.
        one_in, which
            The sample, and whether it is the whole one or which half.
        part
            The part of the GPU.
        """

        def launch(earlier: int) -> KernelTrace:
            parts = self.parts(earlier, one_in)
            return self._kernels[earlier] if parts is None else parts[which].launch

        return _last_ones(launch, number, part)

    def before_whole(self, number: int) -> list[KernelTrace]:
        """Return the launches that may have left something in L2 of the whole GPU, in order."""
        return _last_ones(self._kernels.__getitem__, number, self._gpu)


def _last_ones(launch: Callable[[int], KernelTrace], number: int, gpu: Gpu) -> list[KernelTrace]:
    """Return the last launches before one whose accesses fill L2 twice."""
    room = 2 * gpu.l2_size_kib * 1024
    launches: list[KernelTrace] = []
    for earlier in reversed(range(number)):
        if room <= 0:
            break
        launches.append(launch(earlier))
        room -= _SECTOR_BYTES * launches[-1]._core.num_sectors
    return launches[::-1]
