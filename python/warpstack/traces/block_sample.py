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

__all__ = ["AppSamples", "BlockPart", "crowded", "half_width", "parts_of"]

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
#: How far the instructions of a launch may be from those that its sample stands for, relative, and how
#: much longer its longest warp may be: beyond, the sample misses work that others do not do.
_MOST_UNEVEN = 0.1
_MOST_LONGER = 1.25
#: The same of few persistent blocks, over their number (whole clusters count as one).
_FEW = 0.4
#: How much counts that blocks at the ends of runs miss what their neighbours would have brought.
_EDGES = 1.3
#: Share of such lines from which on one of these misses may end last.
_FEW_EDGES = 0.001
#: The most turns that `Gpu` takes for a lane of an atomic.
_MOST_TURNS = 1024.0
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
    uneven
        How far the instructions of the launch are from those that the part stands for, relative; 0
        where only a sample was traced.
    edges
        Lines that its blocks would share with neighbours that are not in the sample, over its lines.
    together
        Blocks of a cluster, which are in the sample together.
    few
        Whether fewer blocks were chosen than samples have that are not of persistent blocks.
    """

    launch: KernelTrace
    num_sms: int
    memory_share: float
    times: float
    counts: float
    uneven: float = 0.0
    edges: float = 0.0
    together: int = 1
    few: bool = False

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
        Of a whole trace one in so many blocks are taken, at least 128, or 4 of fewer than 256 that fill
        the SMs evenly, as persistent kernels do.
    line_bytes
        Size of a line of L2.
    """
    runs = _runs_of(kernel, gpu_sms, one_in)
    if runs is None:
        return None
    together = kernel._core.blocks_together
    # As chosen: what fills SMs evenly may be fewer.
    few = sum(map(len, runs)) < _core.sample_size(2**20, 2**20)

    def most_sms(chosen: list[range]) -> int:
        return gpu_sms * sum(map(len, chosen)) // kernel.num_blocks

    num_sms = max(1, most_sms(runs))
    full = _shortened(runs, kernel.num_blocks * num_sms / gpu_sms, together)
    uneven = 0.0 if kernel.is_sampled else _unevenness(kernel, full)
    if uneven > _MOST_UNEVEN:
        return None
    half_sms = max(1, min(num_sms // 2, most_sms(runs[::2]), most_sms(runs[1::2])))
    levels = np.zeros(kernel._core.num_traced_blocks, np.uint8)
    for level, chosen in enumerate((full, full[::2], full[::4]), 1):
        levels[[block for run in chosen for block in run]] = level
    one_line_in = -(-kernel._core.num_sectors * sum(map(len, full)) // len(levels) // _MOST_SECTORS)
    lines = kernel._core.touched_lines(levels, 3, line_bytes, max(one_line_in, 1))
    blocks = sum(map(len, full))
    fronts = [run[: -(-len(run) // 2)] for run in full]
    levels[[block for run in full for block in run]] = 1
    levels[[block for run in fronts for block in run]] = 2
    by_level = kernel._core.touched_lines(levels.clip(max=2), 2, line_bytes, max(one_line_in, 1))
    in_fronts = by_level[1]
    edges = _shared_beyond(lines, in_fronts, [full, full[::2], fronts])
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
            uneven,
            edges,
            together,
            few,
        )

    wanted = kernel.num_blocks * half_sms / gpu_sms
    even, odd = (_shortened(runs[first::2], wanted, together) for first in (0, 1))
    return (
        part(full, num_sms, lines[0]),
        part(even, half_sms, lines[1]),
        part(odd, half_sms, lines[1]),
    )


def _runs_of(kernel: KernelTrace, gpu_sms: int, one_in: int) -> list[range] | None:
    """Return the positions in the trace of the blocks of a sample, run by run."""
    core = kernel._core
    if kernel.is_sampled:
        runs = _core.sampled_blocks(kernel.num_blocks, core.num_traced_blocks, core.blocks_together)
        ends = list(itertools.accumulate(length for _, length in runs))
        return [range(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    are_persistent = kernel.num_blocks % gpu_sms == 0
    size = _core.sample_size(kernel.num_blocks, one_in, core.blocks_together, are_persistent)
    if kernel.num_missing_blocks or size == kernel.num_blocks:
        return None
    return [
        range(first, first + length)
        for first, length in _core.sampled_blocks(kernel.num_blocks, size, core.blocks_together)
    ]


def _shortened(runs: list[range], blocks: float, together: int) -> list[range]:
    """Return the first blocks of each run, so many of all runs if they are there, in whole clusters.

    They are rounded up: blocks that the whole GPU does not hold at once then begin a wave on the part,
    too, and only those.
    """
    there = [len(run) // together for run in runs]
    wanted = min(max(math.ceil(blocks / together - 1e-9), 1), sum(there))
    ends = [wanted * number // len(runs) for number in range(len(runs) + 1)]
    lengths = [
        min(end - begin, most) for most, begin, end in zip(there, ends[:-1], ends[1:], strict=True)
    ]
    for number, most in enumerate(there):  # where a run is too short, others give more
        lengths[number] += min(most - lengths[number], wanted - sum(lengths))
    return [run[: length * together] for run, length in zip(runs, lengths, strict=True)]


def _shared_beyond(lines: list[int], in_fronts: int, runs: list[list[range]]) -> float:
    """Return how many lines blocks of runs share with those behind a run, over all of their lines.

    The first halves of the runs share as many with the second ones as the runs with what follows. Lines
    that far runs share, too, do not count.

    Parameters
    ----------
    lines
        Those of all runs and of every other run.
    in_fronts
        Those of the first halves of all runs.
    runs
        All runs, every other one, and the first halves of all.
    """
    if not lines[0]:
        return 0.0
    whole, other, fronts = (sum(map(len, some)) for some in runs)
    far = max(lines[1] * whole / other - lines[0], 0.0)
    near = in_fronts * whole / fronts - lines[0]
    return max(near - far, 0.0) / lines[0]


def _unevenness(kernel: KernelTrace, runs: list[range]) -> float:
    """Return how far the instructions of a launch are from those that runs of its blocks stand for.

    Infinite where its longest warp is much longer than theirs: it may take as long as all others.
    """
    instructions, longest = kernel._core.block_work()
    positions = np.concatenate([np.arange(run.start, run.stop) for run in runs])
    if longest.max() > _MOST_LONGER * longest[positions].max():
        return math.inf
    return float(abs(instructions[positions].mean() / instructions.mean() - 1))


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


def crowded(part: BlockPart, small: Gpu, gpu_sms: int) -> Gpu | None:
    """Return a part of a GPU where atomics take as long as if those of all blocks met there.

    On the part a word that all blocks change has the atomics of the sample alone. Which words do so is
    not known; None where there are no atomics.
    """
    turns = small.l2_atomic_lane_turns
    if not (turns and part.launch._core.has_atomics):
        return None
    return small.replace(l2_atomic_lane_turns=min(turns * gpu_sms / part.num_sms, _MOST_TURNS))


def half_width(
    ipc: float,
    halves: Sequence[float],
    sample: BlockPart,
    gpu: Gpu,
    cycles: float,
    crowded_ipc: float | None = None,
) -> float:
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
    gpu
        The whole GPU.
    cycles
        What the sample says.
    crowded_ipc
        What the sample says where the atomics of all blocks meet (`crowded`).
    """
    mean = sum(halves) / len(halves)
    spread = (max(halves) - min(halves)) / 2
    shared = max(sample.memory_share * gpu.num_sms / sample.num_sms - 1, 0.0)
    slower = 0.0 if crowded_ipc is None else max(1 - crowded_ipc / ipc, 0.0)
    differing = (_BIAS * abs(ipc - mean) + _SPREAD * spread) / ipc
    # The miss of one block at an edge is long for a short launch.
    late = gpu.dram_latency / cycles if sample.edges > _FEW_EDGES else 0.0
    edges = _EDGES * sample.edges + min(late, 1.0)
    few = _FEW * sample.together / sample.blocks if sample.few else 0.0
    return _FLOOR + few + differing + _SHARED * min(shared, 1.0) + edges + sample.uneven + slower


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
