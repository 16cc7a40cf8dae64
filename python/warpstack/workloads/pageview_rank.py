"""Pages by popularity (Mars's PageView rank)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload
from warpstack.workloads._mapreduce import BLOCK, as_lines, as_text, blocks, make_urls, sort

#: Views are drawn with a tail as heavy as that of the popularity of web pages.
_TAIL, _MOST_VIEWS = 0.8, 999_999_999


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make a list of URLs with their views, in no order."""
    pages = parameters["pages"]
    views = np.minimum(generator.pareto(_TAIL, pages) * 100, _MOST_VIEWS).astype(np.int64)
    return as_text(
        [
            b"%s\t%d\n" % (url, number)
            for url, number in zip(make_urls(pages, generator), views.tolist(), strict=True)
        ]
    )


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch the map, the steps of the sort, and the output by rank."""
    pages = parameters["pages"]
    count, grid = np.int32(pages), blocks(pages)
    text, first_byte = session.array(inputs["text"]), session.array(inputs["first_byte"])
    url_bytes, views, ranked_first, ranked_bytes, ranked_views = (
        session.zeros(pages, np.int32) for _ in range(5)
    )
    session.launch("read_views", grid, BLOCK, count, first_byte, text, url_bytes, views)
    order = sort(session, pages, views)
    session.launch(
        "emit_ranked",
        grid,
        BLOCK,
        count,
        order,
        first_byte,
        url_bytes,
        views,
        ranked_first,
        ranked_bytes,
        ranked_views,
    )
    return {
        "url_first": np.asarray(ranked_first),
        "url_bytes": np.asarray(ranked_bytes),
        "views": np.asarray(ranked_views),
    }


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Split the lines in Python and sort by NumPy."""
    pairs = [line.split(b"\t") for line in as_lines(inputs["text"], inputs["first_byte"])]
    views = np.array([int(number) for _, number in pairs], np.int32)
    order = np.argsort(-views, kind="stable")
    return {
        "url_first": inputs["first_byte"][order],
        "url_bytes": np.array([len(url) for url, _ in pairs], np.int32)[order],
        "views": views[order],
    }


workload = Workload(
    name="pageview-rank",
    title="PageView rank",
    abbreviation="PVR",
    suite="Mars",
    memory_divergent=True,
    sizes={"small": {"pages": 16384}, "paper": {"pages": 262_144}},
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    description=(
        "Web pages sorted by their number of views, after the MapReduce application of Mars: the map "
        "reads the numbers from lines of text, one thread per line, and a bitonic sort, a launch per "
        "step, orders the lines. Memory-divergent: lines have any length, so each byte that a warp "
        "reads lies in up to 32 lines of the cache, and the sort moves line numbers and looks up the "
        "keys that it compares."
    ),
)
