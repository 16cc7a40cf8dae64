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
SOURCES = [Path(__file__).with_name(f"program_pairs{part}.cu") for part in ("", "_later")]
GPU = "a100"
SIZE = 512
ENGINES = ("closed_network", "interval", "simulator")
THREADS = 256


@dataclass(frozen=True)
class Pair:
    """Two launches that do the same, and the changes that lead from one to the other."""

    name: str
    before: Callable[[], ws.KernelTrace]
    after: Callable[[], ws.KernelTrace]
    changes: tuple[str, ...]


@cache
def kernel_named(name: str) -> Any:
    """Return a compiled kernel."""
    return next(found[name] for found in map(kernels_of, SOURCES) if name in found)


@cache
def kernels_of(source: Path) -> dict[str, Any]:
    """Return the compiled kernels of a file."""
    module = ws.cuda.compile(source.read_text())
    return {name: module.kernel(name) for name in module.kernels}


def launch(
    name: str, grid: Any, block: Any, *arguments: Any, **more: int
) -> Callable[[], ws.KernelTrace]:
    """Return what launches a kernel; arrays among the arguments are copied to the device."""

    def run() -> ws.KernelTrace:
        given = [ws.cuda.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        trace: ws.KernelTrace = kernel_named(name).launch(grid, block, *given, **more)
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
    shared = {"shared_memory_bytes": arguments["shared"]} if "shared" in arguments else {}
    return launch(name, blocks, THREADS, out, data, *more, **shared)


def product(name: str, grid: Any, size: int, products: int = 64) -> Callable[[], Any]:
    """Return a product of matrices with so many products for each of size x size results."""
    c, a = (np.ones(size * words, np.float32) for words in (size, products))
    return launch(name, grid, THREADS, c, a, a.copy(), np.int32(size), np.int32(products))


def sparse(
    kind: str, rows: int = 16384, entries: int = 16, mixed: bool = False, is_sorted: bool = False
) -> Callable[[], Any]:
    """Return the product of a sparse matrix with a vector: a thread or a warp per row, or ELL."""
    rng = np.random.default_rng(2)
    lengths = np.full(rows, entries)
    if mixed:
        lengths = rng.geometric(1 / entries, rows)
    if is_sorted:
        lengths = np.sort(lengths)
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = rng.integers(0, rows, first[-1]).astype(np.int32)
    y, values, x = (np.ones(size, np.float32) for size in (rows, first[-1], rows))
    if kind == "ell":
        more: list[Any] = [np.int32(rows), np.int32(entries), x]
    else:
        more = [first, x]
    blocks = rows * (32 if kind == "vector" else 1) // THREADS
    return launch(f"spmv_{kind}", blocks, THREADS, y, values, columns, *more)


def skewed(name: str, blocks: int = 216, words: int = 64) -> Callable[[], ws.KernelTrace]:
    """Return a histogram of 64 bins, most of whose data are in a few."""
    rng = np.random.default_rng(3)
    data = np.minimum(rng.geometric(0.4, blocks * THREADS * words), 63).astype(np.uint32)
    return launch(name, blocks, THREADS, np.zeros(64, np.uint32), data, np.int32(data.size))


def through(
    name: str, *numbers: Any, blocks: int = 864, words: int = 16, kind: Any = np.float32
) -> Callable[[], ws.KernelTrace]:
    """Return what goes through words of a thread each, with numbers as its last arguments."""
    size = blocks * THREADS
    out, data = np.zeros(size, kind), np.ones(size * words + 64, kind)
    return launch(name, blocks, THREADS, out, data, *numbers)


def pairs() -> list[Pair]:
    """Return the pairs of the table."""
    return [*first_pairs(), *second_pairs(), *third_pairs()]


def first_pairs() -> list[Pair]:
    """Return the pairs that were there before the rules of the advice were settled."""
    naive, tiled, padded = (matrix(f"transpose_{kind}") for kind in ("naive", "tiled", "padded"))
    modulo, strided, sequential, shuffle = (
        vector(f"reduce_{kind}") for kind in ("modulo", "strided", "sequential", "shuffle")
    )
    in_global, in_shared = (
        [vector(f"histogram_{kind}", 432, 16, bins=bins) for bins in (256, 4)]
        for kind in ("global", "private")
    )
    conflicts, divergence = ("no_bank_conflicts",), ("no_divergence",)
    gemm = {
        kind: product(f"sgemm_{kind}", (8, 32) if kind == "naive" else (32, 8), 256)
        for kind in ("naive", "coalesced", "global_sum")
    }
    tiles = {
        kind: product(f"sgemm_{kind}", (n, n), 768, 32)
        for kind, n in (("shared", 24), ("column", 24), ("tile", 12))
    }
    shared = product("sgemm_shared", (8, 8), 256)
    plane = np.ones((514 * 514,), np.float32)
    wave = 108 * 8
    word, words = np.int32, np.ones(2 * wave * THREADS, np.float32)
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
        Pair(
            "reduction: mask for modulo",
            *(vector(f"reduce_any_{kind}", shared=4 * THREADS) for kind in ("modulo", "mask")),
            ("cheap_division",),
        ),
        Pair("reduction: shuffles", sequential, shuffle, ("no_barriers",)),
        Pair("SGEMM: coalesced", gemm["naive"], gemm["coalesced"], ("coalesced",)),
        Pair("SGEMM: shared tile", gemm["coalesced"], shared, ("kept_in_block",)),
        Pair(
            "SGEMM: sum in a register",
            gemm["global_sum"],
            gemm["coalesced"],
            ("kept_in_registers",),
        ),
        Pair("SGEMM: column of results", tiles["shared"], tiles["column"], ("register_tiles",)),
        Pair("SGEMM: tile of results", tiles["shared"], tiles["tile"], ("register_tiles",)),
        Pair(
            "histogram: copies",
            skewed("histogram_one"),
            skewed("histogram_copies"),
            ("combined_atomics",),
        ),
        Pair(
            "stencil: shared row",
            through("stencil_global", words=1),
            through("stencil_shared", words=1),
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
            through("place_division", np.uint32(256), words=8),
            through("place_shift", np.uint32(8), words=8),
            ("cheap_division",),
        ),
        Pair(
            "steps of the grid",
            through("chunk_each"),
            through("chunk_steps"),
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
                    f"product_{kind}",
                    64,
                    THREADS,
                    np.zeros(64 * THREADS, np.float32),
                    np.ones(64 * THREADS * 64, np.float32),
                    np.ones(64, np.float32),
                    word(64),
                )
                for kind in ("memory", "register")
            ),
            ("kept_in_registers",),
        ),
        Pair("four ways by warps", vector("ways_lanes"), vector("ways_warps"), divergence),
    ]


def second_pairs() -> list[Pair]:
    """Return the pairs whose advice was not looked at before the rules were settled."""
    rng = np.random.default_rng(4)
    size = 864 * THREADS
    conflicts, divergence = ("no_bank_conflicts",), ("no_divergence",)
    coalesced, barriers, division = ("coalesced",), ("no_barriers",), ("cheap_division",)

    def rows(kind: str, of: str) -> Callable[[], ws.KernelTrace]:
        out, data = (np.ones(16384 * 64, np.float32) for _ in range(2))
        return launch(
            f"{kind}_{of}", 16384 * (32 if of == "warp" else 1) // THREADS, THREADS, out, data
        )

    def with_data(name: str, data: Any, kind: Any = np.float32, **more: Any) -> Any:
        blocks = more.pop("blocks", 864)
        numbers = more.pop("numbers", ())
        return launch(
            name, blocks, THREADS, np.zeros(blocks * THREADS, kind), data, *numbers, **more
        )

    lengths = np.minimum(rng.geometric(1 / 32, size), 400).astype(np.int32)
    places = rng.integers(0, 64, size).astype(np.int32)
    keys = rng.integers(0, 1 << 30, size).astype(np.uint32)
    jumps = rng.integers(0, size, size).astype(np.uint32)
    where = rng.integers(0, size, size).astype(np.int32)
    words = np.ones(size, np.float32)
    chain = [
        with_data("chain", jumps, numbers=(np.int32(8),), shared_memory_bytes=kib * 1024)
        for kib in (40, 4)
    ]
    matrix_words = np.ones(512 * 512, np.float32)
    gathers = [
        launch("gather", 864, THREADS, words, words, order) for order in (where, np.sort(where))
    ]
    waves = np.ones(236 * 1024, np.float32)
    hot = (rng.integers(0, 8, size)).astype(np.uint32)
    return [
        Pair("row sums: warp per row", rows("rows", "thread"), rows("rows", "warp"), coalesced),
        Pair(
            "softmax: warp per row", rows("softmax", "thread"), rows("softmax", "warp"), coalesced
        ),
        Pair("softmax: shuffles", vector("softmax_tree"), vector("softmax_shuffle"), barriers),
        Pair(
            "field of a structure",
            vector("field_of_many", words=16),
            vector("field_apart"),
            coalesced,
        ),
        Pair(
            "scan: padded",
            *(launch(f"scan_{kind}", 432, THREADS, words, words) for kind in ("tree", "padded")),
            conflicts,
        ),
        Pair("scan: shuffles", vector("scan_steps"), vector("scan_shuffle"), barriers),
        Pair(
            "columns of a tile: padded",
            vector("columns_32", 864, 4),
            vector("columns_33", 864, 4),
            conflicts,
        ),
        Pair(
            "bodies: shared tile",
            *(
                launch(f"bodies_{kind}", 216, THREADS, words, words, np.int32(512))
                for kind in ("global", "shared")
            ),
            ("kept_in_block",),
        ),
        Pair(
            "lengths: sorted",
            with_data("lengths", lengths),
            with_data("lengths", np.sort(lengths)),
            divergence,
        ),
        Pair(
            "work for some: sorted",
            with_data("some_work", places),
            with_data("some_work", np.sort(places)),
            divergence,
        ),
        Pair(
            "decode: shifts",
            with_data("decode_division", keys, np.uint32, numbers=(np.uint32(64), np.uint32(64))),
            with_data("decode_shift", keys, np.uint32, numbers=(np.uint32(6), np.uint32(6))),
            division,
        ),
        Pair(
            "hash: mask",
            *(
                with_data(f"hash_{kind}", keys, np.uint32, numbers=(np.uint32(1 << 20),))
                for kind in ("modulo", "mask")
            ),
            division,
        ),
        Pair(
            "eight sums: in blocks first",
            *(with_data(f"sum_{kind}", hot, np.uint32) for kind in ("each", "block")),
            ("private_atomics",),
        ),
        Pair(
            "maximum: in warps first",
            *(with_data(f"maximum_{kind}", places, np.int32) for kind in ("each", "warp")),
            ("combined_atomics",),
        ),
        Pair(
            "two bins: copies",
            *(with_data(f"bins_{kind}", keys, np.uint32) for kind in ("one", "copies")),
            ("combined_atomics",),
        ),
        Pair("chain of loads: 4 KiB of shared memory", *chain, ("free_occupancy",)),
        Pair(
            "last wave: small blocks",
            launch("waves_each", 236, 1024, waves, waves),
            launch("waves_each", 944, 256, waves, waves),
            ("full_last_wave",),
        ),
        Pair(
            "scale: in registers",
            vector("scale_memory", 216),
            vector("scale_register", 216),
            ("kept_in_registers",),
        ),
        Pair(
            "filter: four results",
            launch(
                "filter_one",
                1728,
                256,
                np.zeros(1728 * 256, np.float32),
                np.ones(1730 * 256, np.float32),
            ),
            launch(
                "filter_four",
                1728,
                64,
                np.zeros(1728 * 256, np.float32),
                np.ones(1730 * 256, np.float32),
            ),
            ("register_tiles",),
        ),
        Pair(
            "copy along rows",
            launch("copy_columns", (64, 16), THREADS, matrix_words, matrix_words, np.int32(512)),
            launch("copy_rows", (16, 64), THREADS, matrix_words, matrix_words, np.int32(512)),
            coalesced,
        ),
        Pair("gather: sorted", *gathers, coalesced),
        Pair(
            "every eighth word",
            vector("every_eighth", 432, 64),
            vector("each_one", 432, 64),
            coalesced,
        ),
        Pair(
            "SpMV: rows sorted by length",
            sparse("scalar", mixed=True),
            sparse("scalar", mixed=True, is_sorted=True),
            divergence,
        ),
    ]


def third_pairs() -> list[Pair]:
    """Return the pairs that were written, and kept, before the costs of changes were priced."""
    rng = np.random.default_rng(5)
    conflicts, coalesced, barriers = ("no_bank_conflicts",), ("coalesced",), ("no_barriers",)
    number = np.int32
    size = 1728 * THREADS
    words, out = np.ones(size, np.float32), np.zeros(size, np.float32)
    sums = {
        kind: launch(f"reduce_{kind}", blocks, THREADS, out, words, number(size))
        for kind, blocks in (("one", 1728), ("two", 864), ("unrolled", 864), ("many", 216))
    }
    data = rng.integers(0, 64, 216 * THREADS * 64).astype(np.uint32)
    bins = [
        launch(f"bins_of_{kind}", 216, THREADS, np.zeros(64, np.uint32), data, number(data.size))
        for kind in ("block", "warps")
    ]
    rows = np.ones(432 * 8 * 1024, np.float32)
    space = np.ones(18 * 258 * 258, np.float32)
    entries = rng.integers(0, 65536, 65536 * 16).astype(np.int32)
    ell = [
        launch(
            f"ell_{kind}",
            256,
            THREADS,
            np.zeros(65536, np.float32),
            np.ones(65536 * 16, np.float32),
            entries,
            number(65536),
            number(16),
            np.ones(65536, np.float32),
        )
        for kind in ("rows", "columns")
    ]

    def both(name: str, *kinds: str, blocks: int, arguments: Any) -> list[Any]:
        return [launch(f"{name}_{kind}", blocks, THREADS, *arguments) for kind in kinds]

    return [
        Pair("reduction 4: two words of a thread", sums["one"], sums["two"], barriers),
        Pair("reduction 6: last warp unrolled", sums["two"], sums["unrolled"], barriers),
        Pair("reduction 7: many words of a thread", sums["unrolled"], sums["many"], barriers),
        Pair(
            "transpose: diagonal",
            matrix("transpose_straight"),
            matrix("transpose_diagonal"),
            ("padded_pitch",),
        ),
        Pair(
            "four words at once",
            *both("words", "each", "four", blocks=432, arguments=(out, words)),
            coalesced,
        ),
        Pair(
            "softmax: online",
            *both("softmax", "passes", "online", blocks=432, arguments=(rows.copy(), rows)),
            ("kept_in_block",),
        ),
        Pair("histogram: copies of warps", *bins, ("combined_atomics",)),
        Pair(
            "seven points: column in registers",
            *(
                launch(f"space_{kind}", (8, 32), (32, 8), space, space, number(258), number(18))
                for kind in ("memory", "registers")
            ),
            ("kept_in_block",),
        ),
        Pair("ELL: entries column by column", *ell, coalesced),
        Pair(
            "shared structures: fields apart",
            *both("fields", "together", "apart", blocks=432, arguments=(out, rows)),
            conflicts,
        ),
        Pair(
            "ring: counted along",
            *both("ring", "modulo", "counted", blocks=864, arguments=(out, words, np.uint32(5000))),
            ("cheap_division",),
        ),
        Pair(
            "sums of columns: in a register",
            *both("columns", "atomic", "summed", blocks=216, arguments=(out, rows, number(4096))),
            ("kept_in_registers",),
        ),
    ]


def cycles(kernel: ws.KernelTrace, gpu: ws.Gpu) -> tuple[float, ...]:
    """Return what `closed_network`, the engine that prices advice and the simulator say."""
    models = [ENGINES[0], program_changes.PRICED_BY]
    predicted = ws.predict(kernel, gpu, models).set_index("model")["cycles"]
    return *(float(predicted[model]) for model in models), float(ws.simulate(kernel, gpu).cycles)


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
    times[1] = tuple(one * times_more for one in times[1])
    row = {"pair": name, "changes": " and ".join(f"`{change}`" for change in pair.changes)}
    row["given"] = " and ".join(f"`{change}`" for change in follows) or "no"
    row["given besides"] = " and ".join(f"`{one}`" for one in given if one not in pair.changes)
    row["still given"] = " and ".join(f"`{one}`" for one in pair.changes if one in still)
    for place, engine in enumerate(ENGINES):
        start, said, real = (time[place] for time in times)
        row[f"`{engine}` promised"] = f"{start / said:.2f}"
        row[f"`{engine}` done"] = f"{start / real:.2f}"
    row["promise / done"] = (
        f"{times[0][1] / times[1][1] / (times[0][2] / times[2][2]):.2f}" if follows else ""
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
    parts = {"first": first_pairs(), "second": second_pairs(), "third": third_pairs()}
    part_of = {pair.name: part for part, found in parts.items() for pair in found}
    for row in rows:
        row["part"] = part_of[row["pair"]]
    tables = {"pairs": pd.DataFrame(rows), "summary": summary(rows)}
    for part in parts:
        print(part, summary([row for row in rows if row["part"] == part]), sep="\n")
    pages.publish(PAGE, tables, arguments.write and not arguments.only)


if __name__ == "__main__":
    main()
