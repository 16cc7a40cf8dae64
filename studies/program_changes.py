#!/usr/bin/env python3
"""What a change of a program promises beside what it gains when it is done: pairs of kernels in CUDA.

    python studies/program_changes.py --write    # into docs/data/program-changes

Each pair of `program_pairs.cu` does the same, once without and once with a change. The trace of the first is
changed as `KernelTrace.changed` does; what that gains is the promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "explanation" / "program-changes.md"
SOURCE = Path(__file__).with_name("program_pairs.cu")
GPU = "a100"
SIZE = 512
THREADS = 256


@dataclass(frozen=True)
class Pair:
    """Two launches that do the same, and the changes that lead from one to the other."""

    name: str
    before: Callable[[], ws.KernelTrace]
    after: Callable[[], ws.KernelTrace]
    changes: tuple[str, ...]


@cache
def module() -> Any:
    """Return the compiled kernels."""
    return ws.cuda.compile(SOURCE.read_text())


def launch(name: str, grid: Any, block: Any, *arguments: Any) -> Callable[[], ws.KernelTrace]:
    """Return what launches a kernel; arrays among the arguments are copied to the device."""

    def run() -> ws.KernelTrace:
        given = [ws.cuda.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        trace: ws.KernelTrace = module().kernel(name).launch(grid, block, *given)
        return trace

    return run


def matrix(name: str, pitch: int = SIZE) -> Callable[[], ws.KernelTrace]:
    """Return what transposes a matrix whose rows are `pitch` words apart."""
    words = np.zeros(SIZE * pitch, np.float32)
    tiles = SIZE // 32
    return launch(name, (tiles, tiles), (32, 8), words, words.copy(), np.int32(pitch))


def vector(
    name: str, blocks: int = 1728, words: int = 1, **arguments: Any
) -> Callable[[], ws.KernelTrace]:
    """Return what goes through a vector of so many words per thread."""
    rng = np.random.default_rng(1)
    size = blocks * THREADS
    if name.startswith(("count", "histogram")):
        data = rng.integers(0, arguments.get("bins", 256), size * words).astype(np.uint32)
        out = np.zeros(256, np.uint32)
    else:
        data, out = np.ones(size * words, np.float32), np.zeros(size, np.float32)
    last = {"soa": [np.int32(size)], "histogram": [np.int32(size * words)]}
    more = last.get(name.split("_")[0], [])
    return launch(name, blocks, THREADS, out, data, *more)


def pairs() -> list[Pair]:
    """Return the pairs of the table."""
    naive, tiled, padded = (matrix(f"transpose_{kind}") for kind in ("naive", "tiled", "padded"))
    modulo, strided, sequential = (
        vector(f"reduce_{kind}") for kind in ("modulo", "strided", "sequential")
    )
    in_global, in_shared = (
        [vector(f"histogram_{kind}", 432, 16, bins=bins) for bins in (256, 4)]
        for kind in ("global", "private")
    )
    conflicts, divergence = ("no_bank_conflicts",), ("no_divergence",)
    return [
        Pair("transpose: tile", naive, padded, ("coalesced",)),
        Pair("transpose: padded tile", tiled, padded, conflicts),
        Pair("transpose: pitch 544", naive, matrix("transpose_naive", 544), ("padded_pitch",)),
        Pair("tile: pitch 544", padded, matrix("transpose_padded", 544), ("padded_pitch",)),
        Pair("structure of arrays", vector("aos", words=8), vector("soa", words=8), ("coalesced",)),
        Pair("reduction: sequential", modulo, sequential, (*divergence, *conflicts)),
        Pair("reduction: contiguous threads", modulo, strided, divergence),
        Pair("reduction: no bank conflicts", strided, sequential, conflicts),
        Pair("branch by warps", vector("branch_lanes"), vector("branch_warps"), divergence),
        Pair("histogram: private", in_global[0], in_shared[0], ("private_atomics",)),
        Pair("four bins: private", in_global[1], in_shared[1], ("private_atomics",)),
        Pair(
            "sum: in warps first",
            vector("count_lanes"),
            vector("count_warps"),
            ("combined_atomics",),
        ),
    ]


def cycles(kernel: ws.KernelTrace, gpu: ws.Gpu) -> tuple[float, float]:
    """Return what `closed_network` and the simulator say."""
    predicted = float(ws.predict(kernel, gpu)["cycles"].iloc[0])
    return predicted, float(ws.simulate(kernel, gpu).cycles)


def row_of(name: str) -> dict[str, str]:
    """Return the row of a pair."""
    pair = next(pair for pair in pairs() if pair.name == name)
    gpu = ws.gpu(GPU)
    before, done = pair.before(), pair.after()
    promised = before
    for change in pair.changes:
        promised = promised.changed(change)
    times = [cycles(kernel, gpu) for kernel in (before, promised, done)]
    row = {"pair": name, "changes": " and ".join(f"`{change}`" for change in pair.changes)}
    for place, engine in enumerate(("closed_network", "simulator")):
        start, said, real = (time[place] for time in times)
        row[f"`{engine}` promised"] = f"{start / said:.2f}"
        row[f"`{engine}` done"] = f"{start / real:.2f}"
    return row


def main() -> None:
    """Measure and print or write the table."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--only", nargs="+", help="pairs (default: all)")
    parser.add_argument("--processes", type=int, default=1, help="pairs at once (default: 1)")
    arguments = parser.parse_args()
    names = arguments.only or [pair.name for pair in pairs()]
    rows = pages.in_processes(row_of, names, arguments.processes)
    pages.publish(PAGE, {"pairs": pd.DataFrame(rows)}, arguments.write)


if __name__ == "__main__":
    main()
