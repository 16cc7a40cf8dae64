"""Programs as they might be: without copies, in one stream, as one graph, and others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from warpstack.hardware.description import Gpu
from warpstack.timelines.costs import Costs, Kernels, costs_of
from warpstack.timelines.operations import Columns
from warpstack.timelines.plan import Plan, plan_of

__all__ = ["WHAT_IFS", "changed_order"]

#: CUDA takes no larger number.
MOST_CONNECTIONS = 32


def _host_copies(columns: Columns) -> npt.NDArray[np.bool_]:
    """Return which rows are copies between host and GPU."""
    direction = np.array(columns["direction"], object)
    copies: npt.NDArray[np.bool_] = np.array(columns["operation"], object) == "copy"
    return copies & np.isin(direction, ("HtoD", "DtoH"))


def _no_copies(columns: Columns, kernels: Kernels, gpu: Gpu) -> Plan:
    """Return a program whose copies between host and GPU take no time; their calls stay."""
    costs = costs_of(columns, kernels, gpu)
    costs.duration[_host_copies(columns)] = 0
    return plan_of(columns, costs, gpu)


def _one_stream(columns: Columns, kernels: Kernels, gpu: Gpu) -> Plan:
    """Return a program whose work is in one stream, and whose nodes of graphs follow one another."""
    count = len(columns["operation"])
    stream = np.where(columns["stream"] >= 0, 1, -1)
    after = list(columns["after"])
    last: dict[int, int] = {}
    graphs, operations = columns["graph"].tolist(), columns["operation"]
    for row in range(count):
        if graphs[row] >= 0 and operations[row] != "graph_launch":
            after[row] = (last[graphs[row]],) if graphs[row] in last else ()
            last[graphs[row]] = row
    changed = {**columns, "stream": stream, "after": after}
    return plan_of(changed, costs_of(changed, kernels, gpu), gpu)


def _graph(columns: Columns, kernels: Kernels, gpu: Gpu) -> Plan:
    """Return a program whose kernels are nodes of one graph: one call, and the gaps of graphs."""
    costs: Costs = costs_of(columns, kernels, gpu)
    launches = np.array(columns["operation"], object) == "kernel"
    order = plan_of(columns, costs, gpu)
    called = launches & (order.columns["thread"] >= 0)
    call, delay = order.columns["host_call"], order.columns["delay"]
    call[called], delay[called] = 0, 0
    order.columns["connection"][called] = -1
    if called.any():
        call[np.flatnonzero(called)[0]] = gpu.graph_launch_us + gpu.graph_node_us * called.sum()
        delay[np.flatnonzero(called)[0]] = gpu.launch_delay_us
    order.columns["gap"][called] = np.minimum(gpu.graph_gap_us, order.columns["gap"][called])
    return order


def _pinned(columns: Columns, kernels: Kernels, gpu: Gpu) -> Plan:
    """Return a program whose memory is pinned: copies are faster, and asynchronous ones are so."""
    changed = {**columns, "pinned": columns["pinned"] | _host_copies(columns)}
    return plan_of(changed, costs_of(changed, kernels, gpu), gpu)


def _most_connections(columns: Columns, kernels: Kernels, gpu: Gpu) -> Plan:
    """Return a program that sets CUDA_DEVICE_MAX_CONNECTIONS to what it can be at most."""
    changed = {**columns, "connections": np.full_like(columns["connections"], MOST_CONNECTIONS)}
    return plan_of(changed, costs_of(changed, kernels, gpu), gpu)


#: What a program might be, by name.
WHAT_IFS: dict[str, Callable[[Columns, Kernels, Gpu], Plan]] = {
    "no copies": _no_copies,
    "one stream": _one_stream,
    "graph": _graph,
    "pinned": _pinned,
    f"{MOST_CONNECTIONS} connections": _most_connections,
}


def changed_order(name: str, columns: Columns, kernels: Kernels, gpu: Gpu) -> Plan:
    """Return the operations of a program that is changed as the name says."""
    return WHAT_IFS[name](columns, kernels, gpu)


def with_times(order: Plan, duration: npt.NDArray[np.float64]) -> Plan:
    """Return the same operations with other times on the device."""
    return dataclasses.replace(order, columns={**order.columns, "duration": duration})
