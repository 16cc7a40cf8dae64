#!/usr/bin/env python3
"""Compare the speed of a bare LRU cache with simulators that PyPI has, on the same streams.

    python benchmarks/peers.py           # print the table
    python benchmarks/peers.py --write   # also write docs/data/benchmarks

The peers are pycachesim and libcachesim, where they are installed (``pip install pycachesim
libcachesim``). Each is driven as its documentation shows, and must count the same hits.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from run import DOCS, machine, publish, timed

import warpstack as ws
from warpstack import _core

LINE_BYTES = 128
ACCESSES = 2_000_000
RUNS = 5
GEOMETRIES = ((8, 4096), (16, 2048))
CAPACITY = 32768

Stream = npt.NDArray[np.uint64]


class Row(NamedTuple):
    """One line of the table."""

    simulator: str
    geometry: str
    stream: str
    hit_rate: float | None
    rate: float
    ratio: float | None = None


def streams() -> dict[str, Stream]:
    """Return the streams of line numbers."""
    generator = np.random.default_rng(1)
    found = {
        f"uniform over 2^{bits}": generator.integers(0, 2**bits, ACCESSES).astype(np.uint64)
        for bits in (14, 16, 20)
    }
    weights = 1 / np.arange(1, 1_000_001)
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), generator.random(ACCESSES))
    found["Zipf"] = generator.permutation(len(weights))[ranks].astype(np.uint64)
    return found


def optional(name: str) -> ModuleType | None:
    """Import a module if it is installed, and say so if it is not."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: left out", file=sys.stderr)
        return None


def measured(make: Callable[[], Any], run: Callable[[Any], int]) -> tuple[float, int]:
    """Return the median rate in millions of accesses per second and the hits.

    Every run starts with an empty cache; making it is not timed.
    """
    rates = []
    for _ in range(RUNS):
        cache = make()
        start = time.perf_counter()
        hits = run(cache)
        rates.append(ACCESSES / (time.perf_counter() - start) / 1e6)
    return statistics.median(rates), hits


def ours(lines: Stream, ways: int, sets: int) -> tuple[float, int]:
    """Measure the LRU cache of this package."""
    config = {
        "size_bytes": LINE_BYTES * ways * sets,
        "ways": ways,
        "line_bytes": LINE_BYTES,
        "sector_bytes": LINE_BYTES,
        "write_policy": "write_through",
        "write_miss": "no_allocate",
        "replacement": "lru",
        "allocation": "on_miss",
        "set_index": "modulo",
        "slices": 1,
        "slice_interleave_bytes": LINE_BYTES,
        "slice_index": "modulo",
    }
    return measured(lambda: _core.Cache(**config), lambda cache: cache.read_lines(lines))


def pycachesim(module: Any, lines: Stream, ways: int, sets: int) -> tuple[float, int]:
    """Measure pycachesim: one level over main memory, all addresses in one call."""
    addresses = (lines * np.uint64(LINE_BYTES)).tolist()

    def make() -> Any:
        memory = module.MainMemory()
        cache = module.Cache("L1", sets, ways, LINE_BYTES, "LRU")
        memory.load_to(cache)
        memory.store_from(cache)
        return module.CacheSimulator(cache, memory)

    def run(simulator: Any) -> int:
        simulator.load(addresses, length=1)
        return int(simulator.first_level.HIT_count)

    return measured(make, run)


def libcachesim_loop(module: Any, lines: Stream) -> tuple[float, int]:
    """Measure libcachesim with a loop of requests in Python."""
    numbers = lines.tolist()
    request = module.Request()
    request.obj_size = 1

    def run(cache: Any) -> int:
        hits = 0
        for number in numbers:
            request.obj_id = number
            hits += cache.get(request)
        return hits

    return measured(lambda: module.LRU(CAPACITY), run)


def libcachesim_trace(module: Any, lines: Stream) -> tuple[float, int]:
    """Measure libcachesim with its reader of a binary trace, in one call."""
    record = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
    trace = np.zeros(len(lines), record)
    trace["id"], trace["size"] = lines, 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.oracleGeneral"
        trace.tofile(path)

        def make() -> tuple[Any, Any]:
            kind = module.TraceType.ORACLE_GENERAL_TRACE
            return module.LRU(CAPACITY), module.TraceReader(str(path), kind)

        def run(made: tuple[Any, Any]) -> int:
            cache, reader = made
            miss_ratio, _ = cache.process_trace(reader)
            return round((1 - miss_ratio) * ACCESSES)

        return measured(make, run)


def compare() -> list[Row]:
    """Measure every simulator on every stream."""
    rows = []
    set_associative = optional("cachesim")
    fully_associative = optional("libcachesim")
    for what, lines in streams().items():
        for ways, sets in (*GEOMETRIES, (CAPACITY, 1)):
            is_full = sets == 1
            rate, hits = ours(lines, ways, sets)
            geometry = "fully associative" if is_full else f"{ways} ways x {sets} sets"
            rows.append(Row("warpstack", geometry, what, hits / ACCESSES, rate))
            peers = {}
            if is_full and fully_associative:
                peers["libcachesim, loop"] = libcachesim_loop(fully_associative, lines)
                peers["libcachesim, trace file"] = libcachesim_trace(fully_associative, lines)
            if not is_full and set_associative:
                peers["pycachesim"] = pycachesim(set_associative, lines, ways, sets)
            for name, (peer_rate, peer_hits) in peers.items():
                assert peer_hits == hits, (name, geometry, what, peer_hits, hits)
                rows.append(Row(name, geometry, what, hits / ACCESSES, peer_rate, rate / peer_rate))
    lines = np.random.default_rng(1).integers(0, 1_000_000, ACCESSES).astype(np.uint64)
    rate, _, _ = timed(lambda: ws.memory.stack_distances(lines), ACCESSES, RUNS)
    rows.append(
        Row("warpstack, stack distances", "every capacity", "uniform over 10^6", None, rate)
    )
    return rows


def table(rows: list[Row]) -> pd.DataFrame:
    """Return the rows as a table."""
    return pd.DataFrame(
        {
            "simulator": row.simulator,
            f"cache of {CAPACITY} lines": row.geometry,
            "stream": row.stream,
            "hits": "" if row.hit_rate is None else f"{100 * row.hit_rate:.1f} %",
            "M accesses/s": f"{row.rate:.3g}",
            "ratio": "" if row.ratio is None else f"{row.ratio:.3g}",
        }
        for row in rows
    )


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="write the tables of docs/quality/benchmarks.md"
    )
    arguments = parser.parse_args()
    page = DOCS / "quality" / "benchmarks.md"
    publish(page, {"peers": table(compare())}, arguments.write, where=machine())


if __name__ == "__main__":
    main()
