"""Breadth-first search (Rodinia)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_BLOCK = 256
_SOURCE = 0
_FEWEST_EDGES, _MOST_EDGES = 2, 4


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make a random undirected graph: each node picks two to four neighbours among all."""
    nodes = parameters["nodes"]
    picks = generator.integers(_FEWEST_EDGES, _MOST_EDGES + 1, nodes)
    start = np.repeat(np.arange(nodes), picks)
    end = generator.integers(0, nodes, len(start))
    tail, head = np.concatenate([start, end]), np.concatenate([end, start])
    order = np.argsort(tail, kind="stable")
    first_edge = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(tail, minlength=nodes), out=first_edge[1:])
    return {"first_edge": first_edge, "edges": head[order].astype(np.int32)}


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch both kernels once per level, until a level reaches no new node."""
    nodes = parameters["nodes"]
    first_edge, edges = session.array(inputs["first_edge"]), session.array(inputs["edges"])
    start_cost = np.full(nodes, -1, np.int32)
    start_cost[_SOURCE] = 0
    cost = session.array(start_cost)
    visited = session.array((start_cost == 0).astype(np.uint8))
    reached = session.zeros(nodes, np.uint8)
    start_frontier = np.zeros(nodes, np.int32)
    start_frontier[0] = _SOURCE
    frontier = session.array(start_frontier)
    frontier_size = session.zeros(1, np.int32)
    size = 1
    while size:
        session.launch(
            "expand",
            -(-size // _BLOCK),
            _BLOCK,
            np.int32(size),
            frontier,
            first_edge,
            edges,
            visited,
            reached,
            cost,
        )
        frontier_size.copy_from(np.zeros(1, np.int32))
        session.launch(
            "collect",
            -(-nodes // _BLOCK),
            _BLOCK,
            np.int32(nodes),
            reached,
            visited,
            frontier,
            frontier_size,
        )
        size = int(np.asarray(frontier_size)[0])
    return {"cost": np.asarray(cost)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Relax all edges of the graph at once, level by level."""
    first_edge, edges = inputs["first_edge"], inputs["edges"]
    tail = np.repeat(np.arange(parameters["nodes"]), np.diff(first_edge))
    cost = np.full(parameters["nodes"], -1, np.int32)
    cost[_SOURCE] = level = 0
    while True:
        reached = edges[cost[tail] == level]
        reached = reached[cost[reached] < 0]
        if not reached.size:
            return {"cost": cost}
        level += 1
        cost[reached] = level


workload = Workload(
    name="bfs",
    title="Breadth-first search",
    abbreviation="BFS",
    suite="Rodinia",
    memory_divergent=True,
    sizes={"small": {"nodes": 98304}, "paper": {"nodes": 1_000_000}},
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    description=(
        "Distances from one node of a random graph with six edges per node. As in Rodinia's bfs, a "
        "level is two kernels and the state of the nodes is in byte arrays; nodes to expand come "
        "from a queue rather than from a mask over all nodes. Memory-divergent: the nodes of a warp "
        "have their edge lists in different lines, and the neighbours lie anywhere in the graph."
    ),
)
