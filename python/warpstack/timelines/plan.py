"""Operations as the core plays them on a GPU: their order, engines and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack._core import TIMELINE_ENGINES
from warpstack.hardware.architectures import overlaps_launches
from warpstack.hardware.description import Gpu
from warpstack.timelines.costs import Costs
from warpstack.timelines.operations import Columns
from warpstack.traces.connections import connections_of
from warpstack.traces.operations import without_overlaps
from warpstack.traces.order import Order, order_of

__all__ = ["ENGINES", "Plan", "plan_of"]

ENGINES = {name: number for number, name in enumerate(TIMELINE_ENGINES)}
_NONE = ENGINES["none"]


@dataclass
class Plan:
    """Columns for the core's `play_operations`, and why each operation follows those of its list."""

    columns: dict[str, npt.NDArray[Any]]
    kinds: npt.NDArray[np.uint8]


def plan_of(columns: Columns, costs: Costs, gpu: Gpu) -> Plan:
    """Return the operations of a table as the core plays them on a GPU."""
    if not overlaps_launches(gpu):
        columns = without_overlaps(columns)
    order = order_of(columns)
    return Plan(_arrays(columns, costs, gpu, _engines(columns, gpu), order), order.kinds)


def _engines(columns: Columns, gpu: Gpu) -> npt.NDArray[np.uint8]:
    """Return the engine of each row."""
    to_host = ENGINES["to_gpu" if gpu.copy_engines == 1 else "to_host"]
    of_copies = {
        "HtoD": ENGINES["to_gpu"],
        "DtoH": to_host,
        "PtoP": to_host,
        "DtoD": ENGINES["on_gpu"],
        "HtoH": ENGINES["callback"],
        "": ENGINES["on_gpu"],
    }
    of_others = {
        "kernel": ENGINES["kernels"],
        "library": ENGINES["kernels"],
        "nccl": ENGINES["kernels"],
        "memset": ENGINES["memset"],
        "host_function": ENGINES["callback"],
    }
    found = [
        of_copies[direction] if operation == "copy" else of_others.get(operation, _NONE)
        for operation, direction in zip(columns["operation"], columns["direction"], strict=True)
    ]
    return np.array(found, np.uint8)


def _arrays(
    columns: Columns,
    costs: Costs,
    gpu: Gpu,
    engines: npt.NDArray[np.uint8],
    order: Order,
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that the core reads."""
    flags = (order.has_device, order.is_called, order.is_node)
    has_device, is_called, is_node = (np.frombuffer(bytes(flag), np.uint8) for flag in flags)
    after, waits, begins = order.after, order.waits, order.begins
    called = is_called.astype(bool)
    # A thread of each process is a thread of its own.
    pairs = columns["process"] * (columns["thread"].max(initial=0) + 1) + columns["thread"]
    _, thread = np.unique(pairs, return_inverse=True)
    thread = np.where(called, thread, -1)
    is_kernel = (engines == ENGINES["kernels"]) & has_device.astype(bool)
    direction = np.array(columns["direction"], object)
    # One queue is the order of calls itself, in which kernels also wait for room.
    connection = (
        np.full(len(thread), -1, np.int32)
        if gpu.hardware_queues == 1
        else connections_of(columns, order, gpu.hardware_queues)
    )
    gap = np.where(is_node.astype(bool), gpu.graph_gap_us, gpu.launch_us_batch)
    return {
        "thread": thread.astype(np.int32),
        "host_before": np.where(called, columns["host_ns"] / 1e3, 0.0),
        "host_call": np.where(called, costs.call, 0.0),
        "host_return": np.full(len(thread), float(gpu.synchronize_us)),
        "delay": np.full(len(thread), float(gpu.launch_delay_us)),
        "engine": engines,
        "has_device": has_device,
        "duration": costs.duration,
        "gap": np.where(is_kernel, gap, 0.0),
        "blocks": costs.blocks,
        "places": costs.places,
        "kernel_class": costs.of_class,
        "priority": columns["priority"].astype(np.int32),
        "connection": connection,
        # Copies through a buffer leave room on the link.
        "on_link": (np.isin(direction, ("HtoD", "DtoH")) & columns["pinned"]).astype(np.uint8),
        "trigger": costs.trigger,
        "wait": costs.wait,
        "after_first": np.array(after.first, np.int64),
        "after_rows": np.array(after.rows, np.int32),
        "after_early": order.early,
        "waits_first": np.array(waits.first, np.int64),
        "waits_rows": np.array(waits.rows, np.int32),
        "begins_first": np.array(begins.first, np.int64),
        "begins_rows": np.array(begins.rows, np.int32),
    }
