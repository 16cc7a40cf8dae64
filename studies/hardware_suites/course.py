"""The set pmpp-nvbench: kernels of a course on seven Turing and Ampere cards, cold and in batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .program import KERNELS, Bench, Launches, program, up
from .row import Row, Run, Setting, numbers_of, read

_SOURCE = KERNELS / "programming.cu"
GPUS = {
    "NVIDIA GeForce GTX 1650": "gtx1650",
    "NVIDIA GeForce RTX 2060": "rtx2060",
    "NVIDIA GeForce RTX 3060": "rtx3060",
    "NVIDIA GeForce RTX 3060 Laptop GPU": "rtx3060-laptop",
    "NVIDIA GeForce RTX 3060 Ti": "rtx3060ti",
    "NVIDIA GeForce RTX 3070 Ti": "rtx3070ti",
    "NVIDIA GeForce RTX 3080": "rtx3080",
}
#: GHz under load, which nobody held: additions of 2^26 lanes to one word take a cycle for each lane,
#: so that their time tells the clock (simple_histogram; those rows say nothing else).
CLOCKS = {
    "NVIDIA GeForce GTX 1650": 1.88,
    "NVIDIA GeForce RTX 2060": 1.77,
    "NVIDIA GeForce RTX 3060": 1.85,
    "NVIDIA GeForce RTX 3060 Laptop GPU": 1.64,
    "NVIDIA GeForce RTX 3060 Ti": 1.87,
    "NVIDIA GeForce RTX 3070 Ti": 1.84,
    "NVIDIA GeForce RTX 3080": 1.86,
}


@program(_SOURCE, lambda n, columns: n * n / 32 * 20)
def course_add(bench: Bench, n: int, columns: int) -> Launches:
    """Add matrices; neighbouring lanes in a row, or in a column."""
    a, b, c = (bench.zeros(n, n) for _ in range(3))
    grid = (up(n, 16), up(n, 16))
    yield bench.launch("add_columns" if columns else "add_rows", grid, (16, 16), a, b, c, n)


#: Warp instructions of a tap and beside the taps, by kind of convolution, about.
_LINES = ("line", "line_constant", "line_tiled", "line_cached")
_PLANES = ("plane", "plane_constant", "plane_tiled")


@program(_SOURCE, lambda kind, n, width, block: n / 32 * (8 * width + 40))
def course_line(bench: Bench, kind: int, n: int, width: int, block: int) -> Launches:
    """Convolve a line."""
    name = _LINES[kind]
    values, out, mask = bench.zeros(n), bench.zeros(n), bench.zeros(width)
    words = {"line_tiled": block + width - 1, "line_cached": block}.get(name, 0)
    arrays = (values, mask, out) if name == "line" else (values, out)
    kernel = f"convolve_{name}"
    yield bench.launch(kernel, up(n, block), block, *arrays, width, n, shared=4 * words)


@program(
    _SOURCE, lambda kind, n, width, channels, block: n * n / 32 * channels * (width**2 * 9 + 40)
)
def course_plane(
    bench: Bench, kind: int, n: int, width: int, channels: int, block: int
) -> Launches:
    """Convolve an image."""
    name = _PLANES[kind]
    values, out = bench.zeros(n, n, channels), bench.zeros(n, n, channels)
    arrays = (values, bench.zeros(width, width), out) if name == "plane" else (values, out)
    tiled = name == "plane_tiled"
    grid = up(n, block - width + 1 if tiled else block)
    yield bench.launch(
        *(f"convolve_{name}", (grid, grid), (block, block), *arrays, width, n, channels),
        shared=4 * block * block if tiled else 0,
    )


@program(_SOURCE, lambda shared, n, bins, block: n / 32 * 20 + n / block * bins / 32 * 16 * shared)
def course_histogram(bench: Bench, shared: int, n: int, bins: int, block: int) -> Launches:
    """Count words, all of which are 0."""
    kernel = "histogram_blocks" if shared else "histogram_global"
    values, counts = bench.zeros(n, dtype=np.uint32), bench.zeros(bins, dtype=np.uint32)
    arguments = (values, counts, n, bins)
    yield bench.launch(kernel, up(n, block), block, *arguments, shared=4 * bins * shared)


@program(_SOURCE, lambda n, block: n * n / 32 * 35)
def course_grey(bench: Bench, n: int, block: int) -> Launches:
    """Turn an image into grey."""
    image, out = bench.zeros(n, n, 3, dtype=np.uint8), bench.zeros(n, n, dtype=np.uint8)
    grid = up(n, block)
    yield bench.launch("to_grey", (grid, grid), (block, block), image, out, n, n)


@program(
    _SOURCE, lambda kind, n, block: n**3 / min(32, block * block) * 5 * (8 if kind == 2 else 1)
)
def course_product(bench: Bench, kind: int, n: int, block: int) -> Launches:
    """Multiply matrices: plainly, in tiles, in tiles of which one is twice as wide."""
    a, b, c = (bench.zeros(n, n, dtype=np.uint32) for _ in range(3))
    grid = up(n, block)
    threads = (block, block)
    if kind == 0:
        yield bench.launch("product", (grid, grid), threads, a, b, c, n, n, n)
    elif kind == 1:
        arguments = (a, b, c, n, n, n, block)
        words = 2 * block * block
        yield bench.launch("product_of_tiles", (grid, grid), threads, *arguments, shared=4 * words)
    else:
        arguments = (a, b, c, n, n, n, block)
        wide = (up(n, block // 2), grid)
        words = 3 * block * block
        yield bench.launch("product_of_wide_tiles", wide, threads, *arguments, shared=4 * words)


@program(_SOURCE, lambda shared, n, block: up(n, block) * up(block, 32) * n * 5)
def course_vector(bench: Bench, shared: int, n: int, block: int) -> Launches:
    """Multiply a matrix with a vector, a row per thread."""
    kernel = "product_vector_shared" if shared else "product_vector"
    matrix = bench.zeros(n, n, dtype=np.uint32)
    x, y = (bench.zeros(n, dtype=np.uint32) for _ in range(2))
    arguments = (matrix, x, y, n, n)
    yield bench.launch(kernel, up(n, block), block, *arguments, shared=4 * block * shared)


def _line(kind: int) -> Callable[[dict[str, int]], Run]:
    return lambda p: Run.of(
        "course_line", kind=kind, n=p["array_size"], width=p["mask_width"], block=p["block_dim"]
    )


def _plane(kind: int) -> Callable[[dict[str, int]], Run]:
    return lambda p: Run.of(
        "course_plane",
        kind=kind,
        n=p["axis_size"],
        width=p["mask_width"],
        channels=p["num_channels"],
        block=p["block_axis_dim"],
    )


def _histogram(shared: int) -> Callable[[dict[str, int]], Run]:
    return lambda p: Run.of(
        *("course_histogram",),
        shared=shared,
        n=p["array_size"],
        bins=p["num_bins"],
        block=p["num_threads"],
    )


def _product(kind: int) -> Callable[[dict[str, int]], Run]:
    return lambda p: Run.of("course_product", kind=kind, n=p["num_rows_1"], block=p["num_threads"])


def _vector(shared: int) -> Callable[[dict[str, int]], Run]:
    return lambda p: Run.of("course_vector", shared=shared, n=p["num_rows"], block=p["num_threads"])


#: The run of each kernel; the axes of the benchmark are its parameters.
_RUNS: dict[str, Callable[[dict[str, int]], Run]] = {
    "array_add_coalesced": lambda p: Run.of("course_add", n=p["axis_size"], columns=0),
    "array_add_not_coalesced": lambda p: Run.of("course_add", n=p["axis_size"], columns=1),
    "convolution_1D_basic_kernel": _line(0),
    "convolution_1D_constant_memory_kernel": _line(1),
    "convolution_1D_tiled_kernel": _line(2),
    "convolution_1D_tiled_caching_kernel": _line(3),
    "convolution_2D_basic_kernel": _plane(0),
    "convolution_2D_constant_memory_kernel": _plane(1),
    "convolution_2D_tiled_kernel": _plane(2),
    "simple_histogram": _histogram(0),
    "histogram_shared": _histogram(1),
    "color_to_grayscale_conversion": lambda p: Run.of(
        "course_grey", n=p["axis_size"], block=p["num_threads"]
    ),
    "mat_mat_mul": _product(0),
    "mat_mat_mul_tiles": _product(1),
    "mat_mat_mul_rec_tiles": _product(2),
    "mat_vec_mul": _vector(0),
    "mat_vec_mul_tiles": _vector(1),
}


def rows(reference: Path) -> list[Row]:
    """Return the rows of this set."""
    return [_row(each) for each in read(reference / "pmpp-nvbench.csv")]


def _row(each: dict[str, Any]) -> Row:
    cold = each["metric"] == "gpu_time_ms_cold"
    make = _RUNS.get(each["kernel"])
    reason = "" if make else "no kernel"
    numbers = numbers_of(each["application"])
    if "several_kernels" in each["flag"]:
        make, reason = None, "several launches and the host's work in one time"
    elif numbers.get("array_size", 0) < numbers.get("block_dim", 0):
        # Cards from a GTX 1650 to an RTX 3070 Ti differ by 4 %, though launch and kernel take 6.5 us.
        make, reason = None, "an array smaller than a block: 15 us on every card"
    return Row(
        suite=f"pmpp, {'cold' if cold else 'batch'}",
        gpu=GPUS[each["gpu"]],
        application=each["application"],
        kernel_index=each["kernel_index"],
        kernel=each["kernel"],
        metric=each["metric"],
        measured=each["measured"] * 1000,
        unit="us",
        flag=each["flag"],
        profiler="events" if cold else "batch",
        settings=(Setting("cold" if cold else "repeated", CLOCKS[each["gpu"]]),),
        run=make(numbers) if make else None,
        reason=reason,
    )
