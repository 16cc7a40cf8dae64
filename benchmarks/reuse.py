#!/usr/bin/env python3
"""Measure the speed of reuse distances, their samples and families of caches on one core.

    python benchmarks/reuse.py          # print the table
    python benchmarks/reuse.py --json

The stream is uniform random over a million lines, the worst case for stack distances: no access is
near the last one. The streams of kernels include their order of accesses.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

import numpy as np
from run import Row, kernels, machine, table, timed

import warpstack as ws

LINES = 1_000_000
ACCESSES = 10_000_000
RUNS = 3
UNIT = "M accesses/s"


def streams() -> Iterator[Row]:
    """Yield rates on a stream of line numbers."""
    lines = np.random.default_rng(1).integers(0, LINES, ACCESSES).astype(np.uint64)
    what = "uniform random, a million lines"
    yield (
        "stack distances",
        what,
        *timed(lambda: ws.memory.stack_distances(lines), ACCESSES, RUNS),
        UNIT,
    )
    for rate in (1.0, 0.1, 0.01):
        name = f"profile, {rate:.0%} of the lines"
        rates = timed(
            lambda rate=rate: ws.memory.ReuseProfile.from_lines(lines, sample_lines=rate),
            ACCESSES,
            RUNS,
        )
        yield name, what, *rates, UNIT
    for ways, sets in ((16, [1024]), (16, [2**k for k in range(6, 14)])):
        name = f"family, {len(sets)} x {ways} caches"
        rates = timed(
            lambda sets=sets, ways=ways: ws.memory.cache_family(lines, sets=sets, max_ways=ways),
            ACCESSES,
            RUNS,
        )
        yield name, what, *rates, UNIT


def of_kernels() -> Iterator[Row]:
    """Yield rates on the streams of kernels."""
    gpu = ws.gpu("titan-v")
    for what, kernel in kernels().items():
        for level in ("l1", "l2"):
            count = ws.memory.reuse_profile(kernel, gpu, level=level, line_bytes=32).accesses
            rates = timed(
                lambda k=kernel, level=level: ws.memory.reuse_profile(
                    k, gpu, level=level, line_bytes=32
                ),
                count,
                RUNS,
            )
            yield f"profile of a kernel, {level}", what, *rates, UNIT


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    rows = [*streams(), *of_kernels()]
    print(f"Measured on: {machine()}", file=sys.stderr)
    print(json.dumps(rows) if arguments.json else table(rows))


if __name__ == "__main__":
    main()
