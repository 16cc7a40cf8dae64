"""Spans of time that do not overlap: unions, what two have in common, and how long they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Spans", "common", "length", "union"]

#: Starts and ends, in order.
Spans = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def union(start: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> Spans:
    """Return when at least one of many spans was."""
    if not len(start):
        return np.empty(0), np.empty(0)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    # A span begins where all before it have ended.
    begins = np.append(True, start[1:] > end[:-1])
    return start[begins], end[np.append(begins[1:], True)]


def length(spans: Spans) -> float:
    """Return how long spans are together."""
    return float((spans[1] - spans[0]).sum())


def common(first: Spans, second: Spans) -> Spans:
    """Return when both were."""
    edges = np.unique(np.concatenate([*first, *second]))
    if len(edges) < 2:
        return np.empty(0), np.empty(0)
    start, end = edges[:-1], edges[1:]
    both = _covers(first, start) & _covers(second, start)
    return start[both], end[both]


def _covers(spans: Spans, at: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return whether each time is in a span, whose end is not."""
    place = np.searchsorted(spans[0], at, side="right") - 1
    found = place >= 0
    found[found] = at[found] < spans[1][place[found]]
    return found
