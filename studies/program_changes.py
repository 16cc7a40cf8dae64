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
from warpstack.models import program_changes
from warpstack.reporting.advice import LEAST_GAIN

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


def square(name: str, grid: Any, block: Any, size: int, matrices: int = 3) -> Callable[[], Any]:
    """Return what works on square matrices of words, the first of which is written."""
    words = [np.ones(size * size, np.float32) for _ in range(matrices)]
    return launch(name, grid, block, *words, np.int32(size))


def sparse(kind: str, rows: int = 16384, entries: int = 16, mixed: bool = False) -> Callable[[], Any]:
    """Return the product of a sparse matrix with a vector: a thread or a warp per row, or ELL."""
    rng = np.random.default_rng(2)
    lengths = np.full(rows, entries)
    if mixed:
        lengths = rng.geometric(1 / entries, rows)
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = rng.integers(0, rows, first[-1]).astype(np.int32)
    y, values, x = (np.ones(size, np.float32) for size in (rows, first[-1], rows))
    if kind == "ell":
        more: list[Any] = [np.int32(rows), np.int32(entries), x]
    else:
        more = [first, x]
    blocks = rows * (32 if kind == "vector" else 1) // THREADS
    return launch(f"spmv_{kind}", blocks, THREADS, y, values, columns, *more)


def skewed(name: str, blocks: int = 432) -> Callable[[], ws.KernelTrace]:
    """Return a histogram of 64 bins, most of whose data are in a few."""
    rng = np.random.default_rng(3)
    data = np.minimum(rng.geometric(0.4, blocks * THREADS * 16), 63).astype(np.uint32)
    return launch(name, blocks, THREADS, np.zeros(64, np.uint32), data, np.int32(data.size))


def with_size(name: str, number: Any, blocks: int = 864, words: int = 16, **kept: Any) -> Any:
    """Return what goes through words of a thread each, with a number as its last argument."""
    size = blocks * THREADS
    out, data = np.zeros(size, np.float32), np.ones(size * words + 64, np.float32)
    more = kept.get("more", [])
    return launch(name, blocks, THREADS, out, data, *more, number)


def pairs() -> list[Pair]:
    """Return the pairs of the table."""
    return [*first_pairs(), *second_pairs()]


def first_pairs() -> list[Pair]:
    """Return the pairs that were there before the rules of the advice were settled."""
    naive, tiled, padded = (matrix(f"transpose_{kind}") for kind in ("naive", "tiled", "padded"))
    modulo, strided, sequential, mask, shuffle = (
        vector(f"reduce_{kind}")
        for kind in ("modulo", "strided", "sequential", "mask", "shuffle")
    )
    in_global, in_shared = (
        [vector(f"histogram_{kind}", 432, 16, bins=bins) for bins in (256, 4)]
        for kind in ("global", "private")
    )
    conflicts, divergence = ("no_bank_conflicts",), ("no_divergence",)
    gemm = {
        kind: square(f"sgemm_{kind}", (8, 32) if kind == "naive" else (32, 8), 256, 256)
        for kind in ("naive", "coalesced", "global_sum")
    }
    tiles = {
        kind: square(f"sgemm_{kind}", (n, n), 256, 512)
        for kind, n in (("shared", 16), ("column", 16), ("tile", 8))
    }
    shared = square("sgemm_shared", (8, 8), 256, 256)
    plane = np.ones((514 * 514,), np.float32)
    wave = 108 * 8
    word, words = np.int32, np.ones(2 * wave * THREADS, np.float32)
    return [
        Pair("transpose: tile", naive, padded, ("coalesced",)),
        Pair("transpose: padded tile", tiled, padded, conflicts),
        Pair("transpose: pitch 544", naive, matrix("transpose_naive", 544), ("padded_pitch",)),
        Pair("tile: pitch 544", padded, matrix("transpose_padded", 544), ("padded_pitch",)),
        Pair("structure of arrays", vector("aos", words=8), vector("soa", words=8), ("coalesced",)),
        Pair(
            "reduction: sequential", modulo, sequential, ("cheap_division", *divergence, *conflicts)
        ),
        Pair(
            "reduction: contiguous threads", modulo, strided, ("cheap_division", *divergence)
        ),
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
        Pair("reduction: mask for modulo", modulo, mask, ("cheap_division",)),
        Pair("reduction: shuffles", sequential, shuffle, ("no_barriers",)),
        Pair("SGEMM: coalesced", gemm["naive"], gemm["coalesced"], ("coalesced",)),
        Pair("SGEMM: shared tile", gemm["coalesced"], shared, ("kept_in_block",)),
        Pair("SGEMM: sum in a register", gemm["global_sum"], gemm["coalesced"], ("kept_in_registers",)),
        Pair("SGEMM: column of results", tiles["shared"], tiles["column"], ("register_tiles",)),
        Pair("SGEMM: tile of results", tiles["shared"], tiles["tile"], ("register_tiles",)),
        Pair(
            "histogram: copies", skewed("histogram_one"), skewed("histogram_copies"), ("combined_atomics",)
        ),
        Pair(
            "stencil: shared row",
            with_size("stencil_global", np.int32(0), words=1),
            with_size("stencil_shared", np.int32(0), words=1),
            ("kept_in_block",),
        ),
        Pair(
            "five points: shared tile",
            *(
                launch(f"plane_{kind}", (16, 64), (32, 8), plane, plane, word(514))
                for kind in ("global", "shared")
            ),
            ("kept_in_block",),
        ),
        Pair("SpMV: warp per row", sparse("scalar"), sparse("vector"), ("coalesced",)),
        Pair("SpMV: ELL", sparse("scalar"), sparse("ell"), ("coalesced",)),
        Pair(
            "place: shift for division",
            with_size("place_division", np.uint32(256), words=8),
            with_size("place_shift", np.uint32(8), words=8),
            ("cheap_division",),
        ),
        Pair(
            "steps of the grid",
            with_size("chunk_each", word(0)),
            with_size("chunk_steps", word(0)),
            ("coalesced",),
        ),
        Pair(
            "last wave: turns",
            launch("waves_each", wave + 40, THREADS, words, words),
            launch("waves_turns", wave // 2, THREADS, words, words, word((wave + 40) * THREADS)),
            ("full_last_wave",),
        ),
        Pair(
            "product: sum in a register",
            *(
                launch(
                    f"product_{kind}", 64, THREADS,
                    np.zeros(64 * THREADS, np.float32), np.ones(64 * THREADS * 64, np.float32),
                    np.ones(64, np.float32), word(64),
                )
                for kind in ("memory", "register")
            ),
            ("kept_in_registers",),
        ),
        Pair("four ways by warps", vector("ways_lanes"), vector("ways_warps"), divergence),
    ]


def second_pairs() -> list[Pair]:
    """Return the pairs that were written after the rules of the advice were settled."""
    return []


def cycles(kernel: ws.KernelTrace, gpu: ws.Gpu) -> tuple[float, float]:
    """Return what `closed_network` and the simulator say."""
    predicted = float(ws.predict(kernel, gpu)["cycles"].iloc[0])
    return predicted, float(ws.simulate(kernel, gpu).cycles)


def advised(kernel: ws.KernelTrace, gpu: ws.Gpu) -> dict[str, list[int]]:
    """Return the changes that the lines of a kernel are advised, with their instructions."""
    table = ws.lines(kernel, gpu, simulate=False)
    rows_of = kernel.instructions.groupby(["source_file", "source_line"]).groups
    found: dict[str, list[int]] = {}
    for row in table.itertuples():
        for change in row.changes.splitlines():
            rows = rows_of.get((row.file, row.source_line), [])
            found.setdefault(change, []).extend(int(one) for one in rows)
    return found


def row_of(name: str) -> dict[str, str]:
    """Return the row of a pair."""
    pair = next(pair for pair in pairs() if pair.name == name)
    gpu = ws.gpu(GPU)
    before, done = pair.before(), pair.after()
    given, still = advised(before, gpu), advised(done, gpu)
    promised, times_more = before, 1.0
    follows = [change for change in pair.changes if change in given]
    for change in follows or pair.changes:
        if change == "full_last_wave":
            wave = program_changes._variant(promised, change, gpu, None)
            promised, times_more = wave.kernel, times_more * wave.times
        else:
            promised = promised.changed(change, given.get(change) or None)
    times = [cycles(kernel, gpu) for kernel in (before, promised, done)]
    times[1] = (times[1][0] * times_more, times[1][1] * times_more)
    row = {"pair": name, "changes": " and ".join(f"`{change}`" for change in pair.changes)}
    row["given"] = " and ".join(f"`{change}`" for change in follows) or "no"
    row["given besides"] = " and ".join(f"`{one}`" for one in given if one not in pair.changes)
    row["still given"] = " and ".join(f"`{one}`" for one in pair.changes if one in still)
    for place, engine in enumerate(("closed_network", "simulator")):
        start, said, real = (time[place] for time in times)
        row[f"`{engine}` promised"] = f"{start / said:.2f}"
        row[f"`{engine}` done"] = f"{start / real:.2f}"
    row["promise / done"] = (
        f"{times[0][0] / times[1][0] / (times[0][1] / times[2][1]):.2f}" if follows else ""
    )
    return row


def summary(rows: list[dict[str, str]]) -> pd.DataFrame:
    """Return how often advice is given where it helps, and where it does not, and how often it comes true."""
    gains = [float(row["`simulator` done"]) for row in rows]
    helped = [row for row, gain in zip(rows, gains, strict=True) if gain >= LEAST_GAIN]
    idle = [row for row, gain in zip(rows, gains, strict=True) if gain < LEAST_GAIN]
    right = [row for row in helped if row["given"] != "no"]
    near = [row for row in right if abs(float(row["promise / done"]) - 1) <= 1 / 3]
    wrong = [row for row in idle if row["given"] != "no"]
    still = [row for row in rows if row["still given"]]

    def counted(what: str, part: int, whole: int) -> dict[str, str]:
        return {"what": what, "pairs": f"{part} of {whole}", "share": f"{part / max(whole, 1):.0%}"}

    return pd.DataFrame(
        [
            counted("advice given where the change helps", len(right), len(helped)),
            counted("advice given where it does not", len(wrong), len(idle)),
            counted("advice still given when it was followed", len(still), len(rows)),
            counted("promise within a third of what is simulated", len(near), len(right)),
        ]
    )


def main() -> None:
    """Measure and print or write the table."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--only", nargs="+", help="pairs (default: all)")
    parser.add_argument("--processes", type=int, default=1, help="pairs at once (default: 1)")
    arguments = parser.parse_args()
    names = arguments.only or [pair.name for pair in pairs()]
    rows = pages.in_processes(row_of, names, arguments.processes)
    halves = {pair.name: "first" for pair in first_pairs()}
    for row in rows:
        row["half"] = halves.get(row["pair"], "second")
    tables = {"pairs": pd.DataFrame(rows), "summary": summary(rows)}
    for half in ("first", "second"):
        print(half, summary([row for row in rows if row["half"] == half]), sep="\n")
    pages.publish(PAGE, tables, arguments.write and not arguments.only)


if __name__ == "__main__":
    main()
