"""What operations take: kernels as a model predicts them, copies by the link, calls of the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util.options import Options
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.hardware.profiler import launch_us, profiled
from warpstack.models.concurrent import MODEL, customers_of, network_share, places_of_blocks
from warpstack.models.pipeline import Found
from warpstack.models.prediction import predicted_rows
from warpstack.models.rooflines import peak_gflops
from warpstack.timelines.operations import Columns
from warpstack.traces.awaited import awaited_us
from warpstack.traces.trace import App, KernelTrace

__all__ = ["Costs", "Kernels", "costs_of", "kernels_of"]

_Numbers = npt.NDArray[np.float64]

#: Operations whose launches nobody has traced.
_LIBRARIES = ("library", "nccl")


@dataclass(frozen=True)
class Kernels:
    """The launches of an application on a GPU, one value each.

    Attributes
    ----------
    time_us, low_us, high_us
        Time as Nsight Systems reports it, launch included, and between which ends it is.
    blocks, places
        Thread blocks of the launch, and how many of them the GPU holds at once.
    trigger, wait
        Shares of the time of a block before it lets kernels behind it start, and before it waits for those
        before it (programmatic dependent launch); 1: at the end, and never.
    of_class
        Its place in `classes`; -1: it has none.
    classes
        What launches ask of the stations that they share, and the share of their time that these take;
        empty where no two of them run together, or where the model says nothing of it.
    """

    time_us: _Numbers
    low_us: _Numbers
    high_us: _Numbers
    blocks: _Numbers
    places: _Numbers
    trigger: _Numbers
    wait: _Numbers
    of_class: npt.NDArray[np.int32]
    classes: Sequence[tuple[_core.CustomerClass, float]] = ()


def kernels_of(
    app: App, gpu: Gpu, model: str, options: Options, *, together: bool, progress: bool
) -> Kernels:
    """Predict the launches of an application; those that are alike once.

    Where `together`, they may run at the same time. Launches are alike if they have the same
    instructions and accesses, on the same grid. Those that are predicted share an L2 in their order. No
    launch takes less than its warps wait for a clock.
    """
    first: dict[str, int] = {}
    place_of = np.array(
        [first.setdefault(kernel.digest, len(first)) for kernel in app.kernels], np.int64
    )
    chosen: dict[str, KernelTrace] = {}
    for kernel in app.kernels:
        chosen.setdefault(kernel.digest, kernel)
    if not chosen:
        none = np.empty(0)
        return Kernels(none, none, none, none, none, none, none, np.empty(0, np.int32))
    one_each = App(list(chosen.values()), app.name)
    is_sample = options.sample_sms != 1 or options.sample_launches is not False
    is_sample |= options.sample_blocks != 1 or any(one.is_sampled for one in one_each)
    has_classes = together and model == MODEL and not is_sample
    on = profiled(gpu, options.profiler)
    customers: list[_core.CustomerClass] = []

    def see(found: Found) -> None:
        customers.append(customers_of(found, on))

    rows = predicted_rows(
        one_each, gpu, [model], options, progress=progress, seen=see if has_classes else None
    )
    waits = np.array([awaited_us(kernel, gpu) for kernel in one_each])
    least = np.where(waits > 0, waits + launch_us(gpu, "nsys"), 0.0)
    # Nobody makes a wait for a clock longer.
    classes = [
        (one, network_share(one, kernel, on, row["cycles"] * max(at_least / row["time_us"], 1.0)))
        for one, kernel, row, at_least in zip(
            customers, one_each, rows, least.tolist(), strict=has_classes
        )
    ]
    of_class = place_of if has_classes else np.full(len(place_of), -1)

    def waves_of(kernel: KernelTrace) -> int:
        return math.ceil(math.prod(kernel.grid) / places_of_blocks(kernel, gpu))

    shares = [
        _within_blocks(*kernel._core.dependent_launch(), row["time_us"], waves_of(kernel), on)
        for kernel, row in zip(one_each, rows, strict=True)
    ]

    def of_all(values: list[float]) -> _Numbers:
        return np.array(values, np.float64)[place_of]

    def times(name: str) -> _Numbers:
        return np.maximum(of_all([row.get(name, row["time_us"]) for row in rows]), least[place_of])

    return Kernels(
        times("time_us"),
        times("time_us_low"),
        times("time_us_high"),
        of_all([float(np.prod(kernel.grid, dtype=np.float64)) for kernel in one_each]),
        of_all([places_of_blocks(kernel, gpu) for kernel in one_each]),
        of_all([trigger for trigger, _ in shares]),
        of_all([wait for _, wait in shares]),
        of_class.astype(np.int32),
        classes,
    )


def _within_blocks(
    trigger: float, wait: float, time_us: float, waves: int, gpu: Gpu
) -> tuple[float, float]:
    """Return shares of the instructions of a launch's blocks as shares of the time of a wave.

    A wave is as long as all others; the first one has the start of the launch, before the instructions.
    """
    start = min(launch_us(gpu, "nsys"), time_us)
    if wait < 1 and time_us > 0:
        wait = min((start * waves + (time_us - start) * wait) / time_us, 1.0)
    running = (time_us - start) / time_us if time_us > 0 else 0.0
    return 1 - (1 - trigger) * running, wait


@dataclass
class Costs:
    """What each operation takes, one value a row, in us.

    Attributes
    ----------
    duration, low, high
        On the device, alone; of kernels between which ends, too.
    blocks, places
        Of kernels; 1 and 1 of a kernel that is not in the trace, which then has the GPU to itself.
    trigger, wait
        Of kernels, as in `Kernels`; 1 of others.
    of_class
        Of kernels, as in `Kernels`; -1 of others.
    call
        Of the host's time, without waits.
    estimated
        Whether the duration is no prediction: of kernels that are not in the trace and of libraries.
    """

    duration: _Numbers
    low: _Numbers
    high: _Numbers
    blocks: _Numbers
    places: _Numbers
    trigger: _Numbers
    wait: _Numbers
    of_class: npt.NDArray[np.int32]
    call: _Numbers
    estimated: npt.NDArray[np.bool_]


def costs_of(columns: Columns, kernels: Kernels, gpu: Gpu) -> Costs:
    """Return what the rows of a table take on a GPU."""
    operation = np.array(columns["operation"], object)
    direction = np.array(columns["direction"], object)
    count = len(operation)
    size = columns["bytes"].astype(np.float64)
    duration = np.zeros(count)
    blocks, places, trigger, wait = (np.ones(count) for _ in range(4))
    link = np.where(columns["pinned"], gpu.host_link_gbs, gpu.pageable_copy_gbs)
    is_copy, is_memset = operation == "copy", operation == "memset"
    rate = np.where(
        (direction == "HtoD") | (direction == "DtoH"),
        link,
        np.where(
            direction == "PtoP",
            gpu.host_link_gbs,
            np.where(
                direction == "HtoH", gpu.pageable_copy_gbs, gpu.sustained_dram_bandwidth_gbs / 2
            ),
        ),
    )
    # 1 GB/s are 1e3 bytes per us.
    duration[is_copy] = (gpu.copy_start_us + size / (rate * 1e3))[is_copy]
    of_dram = size / (gpu.sustained_dram_bandwidth_gbs * 1e3)
    duration[is_memset] = (gpu.copy_start_us + of_dram)[is_memset]
    is_function = operation == "host_function"
    duration[is_function] = columns["work_ns"][is_function] / 1e3
    low, high = duration.copy(), duration.copy()

    is_kernel = operation == "kernel"
    traced = is_kernel & (columns["kernel"] >= 0)
    of = columns["kernel"][traced]
    of_class = np.full(count, -1, np.int32)
    of_class[traced] = kernels.of_class[of]
    for values, found in (
        (duration, kernels.time_us),
        (low, kernels.low_us),
        (high, kernels.high_us),
        (blocks, kernels.blocks),
        (places, kernels.places),
        (trigger, kernels.trigger),
        (wait, kernels.wait),
    ):
        values[traced] = found[of]
    unknown = (is_kernel & ~traced) | np.isin(operation, _LIBRARIES)
    # A call of a library whose launches are rows of their own, or that has no stream, has no work itself.
    unknown &= (columns["stream"] >= 0) & ~np.isin(np.arange(count), columns["parent"])
    if unknown.any():
        means = _means(columns["name"], traced, duration)
        for row in np.flatnonzero(unknown):
            duration[row] = _estimate(columns, int(row), means, float(of_dram[row]), gpu)
        low[unknown] = high[unknown] = duration[unknown]

    call = np.full(count, gpu.host_call_us)
    starts = is_kernel | is_copy | is_memset | np.isin(operation, _LIBRARIES)
    call[starts] = gpu.host_launch_us
    call[np.isin(operation, ("range_push", "range_pop"))] = 0
    launches = operation == "graph_launch"
    nodes = _nodes(columns, launches)
    call[launches] = (gpu.graph_launch_us + gpu.graph_node_us * nodes)[launches]
    for values in (duration, low, high, call):
        if not np.isfinite(values).all():
            raise InputError("operations: a time is not finite; expected fewer bytes or flops")
    shares = trigger, wait
    return Costs(duration, low, high, blocks, places, *shares, of_class, call, unknown)


def _nodes(columns: Columns, launches: npt.NDArray[np.bool_]) -> _Numbers:
    """Return how many nodes the graph of each row has; graphs are those of a process."""
    graphs = columns["graph"]
    _, of_graph = np.unique(
        columns["process"] * (graphs.max(initial=0) + 2) + graphs, return_inverse=True
    )
    is_node = (columns["graph"] >= 0) & ~launches
    sizes = np.bincount(of_graph[is_node], minlength=len(is_node))
    return np.where(columns["graph"] >= 0, sizes[of_graph], 0).astype(np.float64)


def _means(names: list[str], traced: Any, duration: _Numbers) -> dict[str, float]:
    """Return the mean time of the traced launches of each name."""
    found: dict[str, list[float]] = {}
    for row in np.flatnonzero(traced):
        found.setdefault(names[row], []).append(float(duration[row]))
    return {name: float(np.mean(times)) for name, times in found.items()}


def _estimate(
    columns: Columns, row: int, means: dict[str, float], of_dram: float, gpu: Gpu
) -> float:
    """Return the time of work that nobody traced: under its roofs, or of launches of its name."""
    kind, launch = columns["operation"][row], launch_us(gpu, "nsys")
    size = float(columns["bytes"][row])
    if kind == "kernel":
        return means.get(columns["name"][row], launch)
    if kind == "nccl":
        return launch + size / (gpu.host_link_gbs * 1e3)
    flops = float(columns["flops"][row])
    if not flops:
        return launch + of_dram
    peak = peak_gflops(gpu, columns["arithmetic"][row], bool(columns["tensor_cores"][row]))
    return launch + max(of_dram, flops / (peak * 1e3))
