"""Many caches from few recorded orders of accesses, for sweeps over sizes and ways."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import get_args

from warpstack import _core
from warpstack._util.choices import CacheRuns, order_of
from warpstack._util.options import Options
from warpstack.errors import InputError, not_one_of
from warpstack.hardware.description import Gpu
from warpstack.hardware.stages import alike
from warpstack.memory.caches import MemorySystem, named_memory_error
from warpstack.traces.trace import KernelTrace

__all__ = ["CACHES", "CAPACITY_FIELDS", "check_caches", "recorded_groups", "recorded_profiles"]

#: How a sweep finds what the caches do.
CACHES: tuple[CacheRuns, ...] = get_args(CacheRuns)
#: Fields in which the points of a group may differ.
CAPACITY_FIELDS = frozenset({"l1_size_kib", "l1_ways", "l2_size_kib", "l2_ways"})
#: Sizes of L1 and of L2 of a group lie within these factors, so that the order is of sizes not far
#: away. It depends on L1, whose hits come back soon, more than on L2.
_MOST_SPANS = (2**0.5, 4.0)
#: If the traces of an application touch more lines of L1 than this, a part of them is followed, at least
#: the share below.
_MOST_LINES = 150_000
_LEAST_SHARE = 1 / 8


def check_caches(caches: str, options: Options) -> None:
    """Raise `InputError` unless caches can be found in this way."""
    if caches not in CACHES:
        raise not_one_of("caches", caches, CACHES)
    if caches == "recorded" and options.observes:
        raise InputError(
            'caches = "recorded" does not follow one warp; take misses = "per_pc" or caches = "exact"'
        )


def recorded_groups(sizes: Sequence[tuple[float, float]]) -> list[tuple[int, list[int]]]:
    """Divide GPUs that differ in `CAPACITY_FIELDS` alone into groups that one recorded order serves.

    Parameters
    ----------
    sizes
        Size of L1 and of L2 of each GPU, in KiB.

    Returns
    -------
    list of tuple
        For each group the position of the GPU whose order is recorded, and those of its members, whose
        sizes of L1 and L2 are within `_MOST_SPANS`.
    """
    logs = [(math.log(l1), math.log(l2)) for l1, l2 in sizes]
    columns = [
        _chunks(column, span)
        for column, span in zip(zip(*logs, strict=True), _MOST_SPANS, strict=True)
    ]
    cells: dict[tuple[int, ...], list[int]] = {}
    for number, cell in enumerate(zip(*columns, strict=True)):
        cells.setdefault(cell, []).append(number)
    found = []
    for cell in sorted(cells):
        members = cells[cell]
        middle = [
            (min(axis) + max(axis)) / 2 for axis in zip(*(logs[n] for n in members), strict=True)
        ]
        found.append((min(members, key=lambda n: math.dist(logs[n], middle)), members))
    return found


def _chunks(logs: Sequence[float], span: float) -> list[int]:
    """Return the part of a range, cut evenly into parts within a factor, that has each value."""
    low, high = min(logs), max(logs)
    count = max(math.ceil((high - low) / math.log(span) - 1e-9), 1)
    width = (high - low) / count or 1.0
    return [min(int((one - low) / width + 1e-9), count - 1) for one in logs]


def recorded_profiles(
    kernels: Sequence[KernelTrace],
    reference: Gpu,
    gpus: Sequence[Gpu],
    options: Options,
    *,
    share: float | None = None,
    stop: threading.Event | None = None,
) -> list[list[_core.MemoryProfile]]:
    """Return what caches of several capacities do with an application.

    Parameters
    ----------
    kernels
        The application.
    reference
        The GPU on which the order of accesses is recorded.
    gpus
        GPUs that differ from it in `CAPACITY_FIELDS`.
    options
        How a prediction is made.
    share
        Part of the sets of L2 and of the waits of warps to follow, 1: all; None: of large
        applications an eighth.
    stop
        Set to give up soon.

    Returns
    -------
    list of list
        For each GPU the profile of each kernel. Equal ones of a kernel are one object.

    Raises
    ------
    InputError
        If a thread block does not fit on an SM.
    InterruptedError
        If ``stop`` was set.
    """

    def check_stop() -> None:
        if stop is not None and stop.is_set():
            raise InterruptedError

    order = options.access_order
    system = MemorySystem(
        reference, access_order=order, workers=1, initial_l2=options.written_share
    )
    recordings = []
    with named_memory_error(reference):
        for kernel in kernels:
            check_stop()
            if options.flush_l2:
                system.flush_l2()
            recordings.append(_core.record_order(system._core, kernel._core))
    if share is None:
        lines = sum(recording.num_lines for recording in recordings)
        share = min(max(_MOST_LINES / max(lines, 1), _LEAST_SHARE), 1.0)
    traces = [kernel._core for kernel in kernels]
    same = alike(gpus, CAPACITY_FIELDS)
    distinct_gpus = [gpus[first]._core for first, *_ in same]
    with named_memory_error(reference):
        distinct, of_configs = _core.replay_order(
            traces,
            recordings,
            distinct_gpus,
            order_of(order),
            share,
            options.flush_l2,
            options.written_share,
            check_stop,
        )
    profiles: list[list[_core.MemoryProfile]] = [[] for _ in gpus]
    for positions, numbers in zip(same, of_configs, strict=True):
        cores = [of_kernel[n] for of_kernel, n in zip(distinct, numbers, strict=True)]
        for position in positions:
            profiles[position] = cores
    return profiles
