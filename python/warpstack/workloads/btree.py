"""B+ tree: searches of keys and of ranges of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_ORDER = 256
_FILL = 192  # keys of a node: three quarters, as insertions leave on average
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    records, queries, ranges = p["records"], p["queries"], p["ranges"]
    keys = np.cumsum(rng.integers(1, max(2, (_LARGEST - 1) // records), records), dtype=np.int64)
    present = rng.choice(keys, queries)
    absent = rng.integers(0, keys[-1] + 1, queries)
    bounds = np.sort(rng.integers(0, keys[-1] + 1, (2, ranges)), axis=0)
    return {
        "keys": keys.astype(np.int32),
        "values": rng.integers(0, _LARGEST, records, dtype=np.int32),
        "queries": np.where(rng.random(queries) < 0.5, present, absent).astype(np.int32),
        "from": bounds[0].astype(np.int32),
        "to": bounds[1].astype(np.int32),
    }


def _build(
    keys: npt.NDArray[Any],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """Return keys and children of the nodes, root first, and the number of levels above the leaves."""
    # From the leaves up, the keys and the children of a level's entries in order.
    levels = []
    entry_keys, entries = keys, np.arange(len(keys))
    while True:
        nodes = -(-len(entries) // _FILL)
        levels.append((entry_keys, entries))
        if nodes == 1:
            break
        entry_keys, entries = entry_keys[::_FILL], np.arange(nodes)
    levels.reverse()

    tree_keys, children, first = [], [], 0
    for depth, (level_keys, level_entries) in enumerate(levels):
        nodes = -(-len(level_entries) // _FILL)
        inner = depth < len(levels) - 1
        slots = np.arange(nodes * _FILL) < len(level_entries)
        node_keys = np.full((nodes, _ORDER), _LARGEST, np.int32)
        node_children = np.zeros((nodes, _ORDER), np.int32)
        for target, source in ((node_keys, level_keys), (node_children, level_entries)):
            filled = target[:, :_FILL].copy().ravel()
            filled[slots] = source
            target[:, :_FILL] = filled.reshape(nodes, _FILL)
        first += nodes
        if inner:
            node_keys[:, 0] = _SMALLEST
            node_children += first  # the next level's nodes follow this one's
        tree_keys.append(node_keys)
        children.append(node_children)
    return np.concatenate(tree_keys), np.concatenate(children), len(levels) - 1


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    tree_keys, children, inner_levels = _build(inputs["keys"])
    tree = (session.array(tree_keys), session.array(children))
    answers = session.array(np.full(p["queries"], -1, np.int32))
    session.launch(
        "find_keys",
        p["queries"],
        _ORDER,
        *tree,
        session.array(inputs["values"]),
        session.array(inputs["queries"]),
        np.int32(inner_levels),
        answers,
    )
    first = session.zeros(p["ranges"], np.int32)
    length = session.zeros(p["ranges"], np.int32)
    session.launch(
        "find_ranges",
        p["ranges"],
        _ORDER,
        *tree,
        session.array(inputs["from"]),
        session.array(inputs["to"]),
        np.int32(inner_levels),
        first,
        length,
    )
    return {
        "answers": np.asarray(answers),
        "first": np.asarray(first),
        "length": np.asarray(length),
    }


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    keys, queries = inputs["keys"], inputs["queries"]
    at = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
    first = np.searchsorted(keys, inputs["from"], "left")
    end = np.searchsorted(keys, inputs["to"], "right")
    return {
        "answers": np.where(keys[at] == queries, inputs["values"][at], -1).astype(np.int32),
        "first": first.astype(np.int32),
        "length": (end - first).astype(np.int32),
    }


workload = Workload(
    name="b+tree",
    title="B+ tree searches",
    abbreviation="BT",
    suite="Rodinia",
    memory_divergent=False,
    description=(
        "Searches of keys and of ranges in a tree with up to 256 keys a node, a block per query and a thread "
        "per key (after Rodinia's b+tree). Which nodes are read depends on the data, but each is read in "
        "whole lines; only the thread whose key matches loads the child."
    ),
    sizes={
        "small": {"records": 65536, "queries": 1500, "ranges": 1000},
        "paper": {"records": 1000000, "queries": 10000, "ranges": 6000},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
)
