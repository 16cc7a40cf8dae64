"""Distinct visitors of web pages (Mars's PageView count)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, DeviceArray, Parameters, Session, Workload
from warpstack.workloads._mapreduce import (
    BLOCK,
    as_lines,
    as_text,
    blocks,
    make_urls,
    popular,
    scan,
)

_EMPTY = -1


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make a log of views: popular pages and frequent visitors come again and again."""
    views = parameters["views"]
    urls = make_urls(-(-views // 8), generator)
    visitors = -(-views // 32)
    addresses = [b"%d.%d.%d.%d" % tuple(a) for a in generator.integers(1, 255, (visitors, 4))]
    cookies = generator.integers(10**5, 10**12, views)
    return as_text(
        [
            b"%s\t%s\t%d\n" % (urls[page], addresses[visitor], cookie)
            for page, visitor, cookie in zip(
                popular(views, len(urls), generator).tolist(),
                popular(views, visitors, generator).tolist(),
                cookies.tolist(),
                strict=True,
            )
        ]
    )


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch both rounds of map, group and reduce."""
    lines = parameters["views"]
    count, grid = np.int32(lines), blocks(lines)
    log, first_byte = session.array(inputs["text"]), session.array(inputs["first_byte"])
    key_bytes, url_bytes = session.zeros(lines, np.int32), session.zeros(lines, np.int32)
    session.launch("count_key_bytes", grid, BLOCK, count, first_byte, log, key_bytes)
    key_first, all_bytes = scan(session, key_bytes, lines)
    keys = session.zeros(all_bytes, np.uint8)
    session.launch(
        "emit_keys", grid, BLOCK, count, first_byte, log, key_first, key_bytes, keys, url_bytes
    )
    _, _, marks = _group(session, lines, key_first, key_bytes, keys)
    places, pairs = scan(session, marks, lines)
    url_first, pair_url_bytes, line_of = (session.zeros(pairs, np.int32) for _ in range(3))
    session.launch(
        "emit_distinct",
        grid,
        BLOCK,
        count,
        marks,
        places,
        key_first,
        url_bytes,
        url_first,
        pair_url_bytes,
        line_of,
    )
    slots, sizes, marks = _group(session, pairs, url_first, pair_url_bytes, keys)
    places, urls = scan(session, marks, pairs)
    first_line, views = session.zeros(urls, np.int32), session.zeros(urls, np.int32)
    session.launch(
        "emit_views",
        blocks(pairs),
        BLOCK,
        np.int32(pairs),
        marks,
        places,
        slots,
        sizes,
        line_of,
        first_line,
        views,
    )
    return {"first_line": np.asarray(first_line), "views": np.asarray(views)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Collect a set of addresses per URL in Python."""
    first_line: dict[bytes, int] = {}
    visitors: dict[bytes, set[bytes]] = {}
    for line, record in enumerate(as_lines(inputs["text"], inputs["first_byte"])):
        url, address, _ = record.split(b"\t")
        first_line.setdefault(url, line)
        visitors.setdefault(url, set()).add(address)
    return {
        "first_line": np.array(list(first_line.values()), np.int32),
        "views": np.array([len(addresses) for addresses in visitors.values()], np.int32),
    }


def _group(
    session: Session, count: int, first: DeviceArray, length: DeviceArray, text: DeviceArray
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Launch the grouping of equal keys; return slots, group sizes by slot, and marks of firsts."""
    capacity = 2 << (count - 1).bit_length()  # at most half full
    table = session.array(np.full(capacity, _EMPTY, np.int32))
    lowest = session.array(np.full(capacity, np.iinfo(np.int32).max, np.int32))
    sizes = session.zeros(capacity, np.int32)
    slots, marks = session.zeros(count, np.int32), session.zeros(count, np.int32)
    session.launch(
        "group",
        blocks(count),
        BLOCK,
        np.int32(count),
        first,
        length,
        text,
        np.int32(capacity - 1),
        table,
        slots,
        lowest,
        sizes,
    )
    session.launch("mark_first", blocks(count), BLOCK, np.int32(count), slots, lowest, marks)
    return slots, sizes, marks


workload = Workload(
    name="pageview-count",
    title="PageView count",
    abbreviation="PVC",
    suite="Mars",
    memory_divergent=True,
    sizes={"small": {"views": 16384}, "paper": {"views": 393_216}},
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    description=(
        "Distinct visitors of each page in a log of views, after the MapReduce application of Mars: "
        "one round finds the distinct pairs of page and visitor, a second one counts them by page. "
        "Keys are emitted in two passes, as in Mars; grouping is by a hash table where Mars sorts. "
        "Memory-divergent: log lines and keys have any length, so each byte that a warp reads lies "
        "in up to 32 lines of the cache, and so do the slots of the table."
    ),
)
