"""Inverted index of links (Mars)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload
from warpstack.workloads._mapreduce import (
    BLOCK,
    as_lines,
    as_text,
    blocks,
    make_urls,
    popular,
    scan,
    sort,
)

_FRAGMENTS = 64
#: Shares of the lines with no link, one and two.
_LINKS_PER_LINE = (0.55, 0.4, 0.05)


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make lines of web pages: text of any length, some with one or two links."""
    lines = parameters["lines"]
    urls = make_urls(-(-lines // 8), generator)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz  ", "S1")
    fragments = [
        b"".join(generator.choice(letters, length))
        for length in generator.integers(1, 24, _FRAGMENTS)
    ]
    links = generator.choice(3, lines, p=_LINKS_PER_LINE)
    targets = iter(popular(int(links.sum()), len(urls), generator).tolist())
    text = []
    for picks, number in zip(
        generator.integers(0, _FRAGMENTS, (lines, 3)).tolist(), links.tolist(), strict=True
    ):
        line = fragments[picks[0]]
        for link in range(number):
            line += b'<a href="%s">%s</a>' % (urls[next(targets)], fragments[picks[1 + link]])
        text.append(b"<p>" + line + fragments[picks[2]] + b"</p>\n")
    return as_text(text)


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch both passes of the map, the steps of the sort, and the cut into lists."""
    lines = parameters["lines"]
    count, grid = np.int32(lines), blocks(lines)
    pages, first_byte = session.array(inputs["text"]), session.array(inputs["first_byte"])
    links_of = session.zeros(lines, np.int32)
    session.launch("count_links", grid, BLOCK, count, first_byte, pages, links_of)
    first_link, links = scan(session, links_of, lines)
    if not links:
        nothing = np.zeros(0, np.int32)
        return {"list_first": nothing, "listed_lines": nothing}
    hashes = session.zeros(links, np.uint32)
    url_first, url_bytes, line_of, marks, listed = (
        session.zeros(links, np.int32) for _ in range(5)
    )
    session.launch(
        "emit_links",
        grid,
        BLOCK,
        count,
        first_byte,
        pages,
        first_link,
        hashes,
        url_first,
        url_bytes,
        line_of,
    )
    urls = (hashes, url_first, url_bytes, pages)
    order = sort(session, links, *urls)
    count, grid = np.int32(links), blocks(links)
    session.launch("mark_lists", grid, BLOCK, count, order, *urls, marks)
    list_of, lists = scan(session, marks, links)
    list_first = session.zeros(lists, np.int32)
    session.launch(
        "emit_lists", grid, BLOCK, count, order, marks, list_of, line_of, list_first, listed
    )
    return {"list_first": np.asarray(list_first), "listed_lines": np.asarray(listed)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Find the links with a regular expression and collect the lines of each URL."""
    lists: dict[bytes, list[int]] = {}
    for number, line in enumerate(as_lines(inputs["text"], inputs["first_byte"])):
        for url in re.findall(rb'href="([^"]*)', line):
            lists.setdefault(url, []).append(number)
    urls = sorted(lists, key=lambda url: (_hash(url), len(url), url))
    sizes = [len(lists[url]) for url in urls]
    return {
        "list_first": (np.cumsum(sizes) - sizes).astype(np.int32),
        "listed_lines": np.array([line for url in urls for line in lists[url]], np.int32),
    }


def _hash(text: bytes) -> int:
    """Return the 32-bit FNV-1a hash."""
    value = 2166136261
    for byte in text:
        value = (value ^ byte) * 16777619 % 2**32
    return value


workload = Workload(
    name="inverted-index",
    title="Inverted index",
    abbreviation="IIX",
    suite="Mars",
    memory_divergent=True,
    sizes={"small": {"lines": 7168}, "paper": {"lines": 90_112}},
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    description=(
        "For each URL, the lines of web pages that link to it, after the MapReduce application of "
        "Mars: the map finds links in lines of text, one thread per line, in two passes; a bitonic "
        "sort, a launch per step, brings equal URLs together by hash, then by text; the sorted links "
        "are cut into lists. Memory-divergent: lines have any length, so each byte that a warp reads "
        "lies in up to 32 lines of the cache, and the sort looks up hashes and URLs anywhere."
    ),
)
