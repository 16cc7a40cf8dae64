"""The set kernel-performance-prediction: simple kernels on four cards, launched back to back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .program import KERNELS, Bench, Launches, program, up
from .row import Row, Run, Setting, device_clocks, numbers_of, read

_SOURCE = KERNELS / "simple.cu"
GPUS = {
    "NVIDIA GeForce RTX 2080 Ti": "rtx2080ti",
    "NVIDIA GeForce RTX 4070": "rtx4070",
    "NVIDIA TITAN V": "titan-v",
    "NVIDIA GeForce GTX TITAN X": "titan-x-maxwell",
}
#: Launches follow each other in this many microseconds at best on a card where that is long; rows of
#: less than twice as much are flagged. The others' are flagged by the source.
LEAST_US = {"rtx4070": 8.5}
_VECTORS = ("add", "saxpy", "gather", "add_divergent", "histogram", "reduce_sum", "dot")
_INSTRUCTIONS = (16, 16, 18, 480, 30, 60, 60)
BLOCK = 256


@program(_SOURCE, lambda kind, n: n / 32 * _INSTRUCTIONS[kind])
def simple_vector(bench: Bench, kind: int, n: int) -> Launches:
    """Launch a kernel of one dimension."""
    name = _VECTORS[kind]
    a, b, c = (bench.zeros(n) for _ in range(3))
    grid = up(n, BLOCK)
    if name in ("add", "add_divergent"):
        yield bench.launch(name, grid, BLOCK, a, b, c, n)
    elif name == "saxpy":
        yield bench.launch(name, grid, BLOCK, a, b, c, np.float32(2), n)
    elif name == "gather":
        yield bench.launch(name, grid, BLOCK, a, bench.zeros(n, dtype=np.int32), c, n)
    elif name == "histogram":
        words, bins = (bench.zeros(each, dtype=np.uint32) for each in (n, 256))
        yield bench.launch(name, grid, BLOCK, words, bins, n)
    else:
        arrays = (a,) if name == "reduce_sum" else (a, b)
        yield bench.launch(name, up(n, 2 * BLOCK), BLOCK, *arrays, c, n, shared=4 * BLOCK)


@program(_SOURCE, lambda n: n / 8 / 32 * 16)
def simple_strided(bench: Bench, n: int) -> Launches:
    """Copy each eighth element."""
    a, b = bench.zeros(n), bench.zeros(n)
    yield bench.launch("strided_copy", up(n // 8, BLOCK), BLOCK, a, b, n, 8)


@program(_SOURCE, lambda tiled, n: n**3 / 32 * (3 if tiled else 5))
def simple_product(bench: Bench, tiled: int, n: int) -> Launches:
    """Multiply matrices."""
    a, b, c = (bench.zeros(n, n) for _ in range(3))
    side = 32 if tiled else 16
    kernel = "product_tiled" if tiled else "product_naive"
    yield bench.launch(kernel, (up(n, side), up(n, side)), (side, side), a, b, c, n)


@program(_SOURCE, lambda shared, rows, columns: rows * columns / 32 * 25)
def simple_transpose(bench: Bench, shared: int, rows: int, columns: int) -> Launches:
    """Transpose a matrix."""
    a, b = bench.zeros(rows, columns), bench.zeros(columns, rows)
    side = 32 if shared else 16
    kernel = "transpose_shared" if shared else "transpose_direct"
    grid = (up(columns, side), up(rows, side))
    yield bench.launch(kernel, grid, (side, side), a, b, rows, columns)


@program(_SOURCE, lambda side, rows, columns: rows * columns / 32 * (3 * side**2 + 20))
def simple_convolution(bench: Bench, side: int, rows: int, columns: int) -> Launches:
    """Convolve an image."""
    image, out, weights = (
        bench.zeros(rows, columns),
        bench.zeros(rows, columns),
        bench.zeros(side, side),
    )
    arguments = (image, weights, out, rows, columns)
    yield bench.launch(f"convolve_{side}", (up(columns, 16), up(rows, 16)), (16, 16), *arguments)


@program(_SOURCE, lambda n, iters: n / 32 * iters * 4)
def simple_counter(bench: Bench, n: int, iters: int) -> Launches:
    """Add to one counter."""
    counter = bench.zeros(1, dtype=np.uint32)
    yield bench.launch("hot_counter", up(n, BLOCK), BLOCK, counter, iters)


def rows(reference: Path) -> list[Row]:
    """Return the rows of this set."""
    clocks = device_clocks(reference)
    return [_row(each, clocks) for each in read(reference / "kernel-performance-prediction.csv")]


def _run_of(application: str) -> Run | None:
    name, numbers = application.split()[0], numbers_of(application)
    vectors = {
        "vector_add": "add",
        "random_access": "gather",
        "vector_add_divergent": "add_divergent",
        "dot_product": "dot",
    }
    kernel = vectors.get(name, name)
    if kernel in _VECTORS:
        return Run.of("simple_vector", kind=_VECTORS.index(kernel), n=numbers["N"])
    image = {"rows": numbers.get("H", 0), "columns": numbers.get("W", 0)}
    matrix = {"rows": numbers.get("rows", 0), "columns": numbers.get("cols", 0)}
    match name:
        case "strided_copy_8":
            return Run.of("simple_strided", n=numbers["N"])
        case "matmul_naive" | "matmul_tiled":
            return Run.of("simple_product", tiled=int(name == "matmul_tiled"), n=numbers["matN"])
        case "naive_transpose" | "shared_transpose":
            return Run.of("simple_transpose", shared=int(name == "shared_transpose"), **matrix)
        case "conv2d_3x3" | "conv2d_7x7":
            return Run.of("simple_convolution", side=int(name[-1]), **image)
        case "atomic_hotspot":
            return Run.of("simple_counter", n=numbers["N"], iters=numbers["iters"])
    return None


def _row(each: dict[str, Any], clocks: dict[str, float]) -> Row:
    run, gpu = _run_of(each["application"]), GPUS[each["gpu"]]
    flags = [each["flag"]] if each["flag"] else []
    if each["measured"] * 1000 < 2 * LEAST_US.get(gpu, 0):
        flags.append("caution:below_twice_the_least_time")
    return Row(
        suite="kpp",
        gpu=gpu,
        application=each["application"],
        kernel_index=each["kernel_index"],
        kernel=each["kernel"],
        metric=each["metric"],
        measured=each["measured"] * 1000,
        unit="us",
        flag=";".join(flags),
        profiler="events",
        settings=(Setting("repeated", clocks[each["gpu"]]),),
        run=run,
        reason="" if run else "no kernel",
    )
