"""Launches that run at the same time, as the closed network model sees them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpstack import _core
from warpstack._util.options import Options
from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu
from warpstack.interval.profile import IntervalProfile
from warpstack.models.pipeline import Found
from warpstack.timing.concurrent import Places
from warpstack.traces.trace import KernelTrace

if TYPE_CHECKING:
    import distributed

__all__ = [
    "MODEL",
    "check_whole",
    "customers_of",
    "instructions_of_warp",
    "network_share",
    "places_of_blocks",
    "played",
    "refuse_concurrent",
    "with_one_split",
]

#: The model whose networks can have customers of several launches.
MODEL = "closed_network"


def refuse_concurrent(
    options: Options, models: Sequence[str], client: distributed.Client | None
) -> None:
    """Raise `InputError` for what launches that run at the same time do not have."""
    for name in models:
        if name != MODEL:
            raise InputError(
                f"models: {shown(name)} has no launches that run at the same time; with concurrent=True "
                f"give {MODEL} alone"
            )
    samples = {
        f"sample_sms = {shown(options.sample_sms)}": options.sample_sms != 1,
        f"sample_launches = {shown(options.sample_launches)}": options.sample_launches is not False,
        f"sample_blocks = {shown(options.sample_blocks)}": options.sample_blocks != 1,
        "client": client is not None,
    }
    for what, is_asked in samples.items():
        if is_asked:
            raise InputError(
                f"{what}: not with concurrent=True, because launches that run at the same time share a "
                "machine; leave one of them out"
            )


def check_whole(kernels: Sequence[KernelTrace]) -> None:
    """Raise `InputError` where a trace has a sample of a launch's blocks."""
    for kernel in kernels:
        if kernel.is_sampled:
            raise InputError(
                f"kernel {kernel.launch_id} ({kernel.short_name}): the trace has a sample of its thread "
                "blocks, which has not the places of all; trace all of them for concurrent=True"
            )


def customers_of(found: Found, gpu: Gpu) -> _core.CustomerClass:
    """Return what the warps of a launch ask of the stations of a network that several share."""
    assert found.profile is not None
    of_model = found.profile._core_kernel(gpu, MODEL)
    return _core.customers_of(gpu._core, found.kernel._core, of_model)


def network_share(
    customers: _core.CustomerClass, kernel: KernelTrace, gpu: Gpu, cycles: float
) -> float:
    """Return the share of a launch's `cycles` alone that others can make longer."""
    of_warp = instructions_of_warp(kernel)
    blocks, places = math.prod(kernel.grid), places_of_blocks(kernel, gpu)
    return _core.network_share(gpu._core, customers, blocks, places, of_warp, cycles)


def places_of_blocks(kernel: KernelTrace, gpu: Gpu) -> float:
    """Return how many blocks of a launch the GPU holds at once."""
    return float(gpu.num_sms * _core.occupancy(kernel._core, gpu._core)["blocks_per_sm"])


def with_one_split(kernels: Sequence[KernelTrace], gpu: Gpu) -> tuple[Gpu, bool]:
    """Return a GPU whose adaptive L1 is for all launches what the one with most shared memory leaves.

    And whether a launch has another L1 there than alone.
    """
    if not gpu.unified_l1_kib or not kernels:
        return gpu, False
    largest = max(gpu.shared_memory_carve_outs_kib)
    splits = {min(_core.carve_out(kernel._core, gpu._core) / 1024, largest) for kernel in kernels}
    return gpu.replace(shared_memory_carve_outs_kib=(max(splits),)), len(splits) > 1


def instructions_of_warp(kernel: KernelTrace) -> float:
    """Return the instructions of a warp of a launch in the mean, or 1 where there are none."""
    warps = math.prod(kernel.grid) * kernel.warps_per_block
    return kernel.num_instructions / warps or 1.0


def played(
    kernels: Sequence[KernelTrace],
    profiles: Sequence[IntervalProfile],
    cycles: Sequence[float],
    gpu: Gpu,
    places: Places,
) -> list[tuple[float, float]]:
    """Return when each launch starts and ends, in SM cycles since the first one starts.

    Parameters
    ----------
    kernels, profiles
        The launches in the order of the program, and their intervals.
    cycles
        What the model predicts of each alone.
    gpu
        The GPU that they share.
    places
        What each waits for, and the priorities of their streams.
    """
    inputs = [profile._core_kernel(gpu, MODEL) for profile in profiles]
    machine = _core.ConcurrentGrids(
        gpu._core,
        [kernel._core for kernel in kernels],
        list(cycles),
        [instructions_of_warp(kernel) for kernel in kernels],
        inputs,
    )
    # The network knows no times within a kernel: who starts behind a trigger waits for the end.
    awaited = [
        {*ends, *triggers}
        for ends, triggers in zip(places.after, places.after_trigger, strict=True)
    ]
    missing = [len(of) for of in awaited]
    behind: list[list[int]] = [[] for _ in kernels]
    for place, of in enumerate(awaited):
        for before in of:
            behind[before].append(place)
    number_of: dict[int, int] = {}  # by number in the machine

    def add(launches: list[int]) -> None:
        for place in sorted(launches):
            number_of[machine.add(place, places.priorities[place])] = place

    add([place for place, count in enumerate(missing) if count == 0])
    times = [(0.0, 0.0)] * len(kernels)
    while len(number_of) < len(kernels) or machine.next() != math.inf:
        if machine.next() == math.inf:
            raise InputError(
                "operations: launches wait for one another in a circle; name earlier rows in `after`"
            )
        machine.advance(machine.next())
        free = []
        for number in machine.take_ended():
            place = number_of[number]
            times[place] = machine.start_of(number), machine.end_of(number)
            for other in behind[place]:
                missing[other] -= 1
                if missing[other] == 0:
                    free.append(other)
        add(free)
    return times
