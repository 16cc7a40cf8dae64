"""The GTX 1080, RTX 3070 and RTX A4000: microbenchmarks, and three applications of Rodinia."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from .program import KERNELS, Bench, Launches, program, up
from .row import Row, Run, Setting, read

GPUS = {"GTX 1080": "gtx1080", "RTX 3070": "rtx3070", "RTX A4000": "rtx-a4000"}
_SOURCE = KERNELS / "microbenchmarks.cu"
_RODINIA = KERNELS / "rodinia.cu"
#: Each is launched twice.
TRANSPOSES = (
    *("copy", "copy_shared", "transpose_naive", "transpose_coalesced", "transpose_padded"),
    *("transpose_coarse", "transpose_fine", "transpose_diagonal"),
)
STREAMS = ("stream_copy", "stream_mul", "stream_add", "stream_triad", "stream_dot")


@program(_SOURCE, lambda n: n / 32 * 20)
def vector_add_double(bench: Bench, n: int) -> Launches:
    """Add vectors of double precision: the counters show 8 bytes per element, in 32 warps."""
    a, b, c = (bench.zeros(n, dtype=np.float64) for _ in range(3))
    yield bench.launch("vector_add_double", up(n, 1024), 1024, a, b, c, n)


@program(_SOURCE, lambda rows, inner, columns: rows * columns / 32 * inner * 4)
def matrix_product(bench: Bench, rows: int, inner: int, columns: int) -> Launches:
    """Multiply matrices in tiles of 32 x 32."""
    a, b, c = bench.random(rows, inner), bench.random(inner, columns), bench.zeros(rows, columns)
    grid = (columns // 32, rows // 32)
    yield bench.launch("matrix_product", grid, (32, 32), c, a, b, inner, columns)


@program(_SOURCE, lambda width, height: width * height / 32 * 40)
def transposes(bench: Bench, width: int, height: int) -> Launches:
    """Copy and transpose a matrix in tiles of 16 x 16, each way twice."""
    out, matrix = bench.zeros(height, width), bench.random(height, width)
    for name in TRANSPOSES:
        for _ in range(2):
            grid = (width // 16, height // 16)
            yield bench.launch(name, grid, (16, 16), out, matrix, width, height)


@program(_SOURCE, lambda size, times: max(size, 256 * 1024) / 32 * 170)
def streams(bench: Bench, size: int, times: int) -> Launches:
    """Stream three arrays of double precision, so many times."""
    a, b, c = (bench.zeros(size, dtype=np.float64) for _ in range(3))
    sums = bench.zeros(256, dtype=np.float64)
    grid, block = size // 1024, 1024
    values = (np.float64(0.1), np.float64(0.2), np.float64(0.0))
    yield bench.launch("stream_init", grid, block, a, b, c, *values)
    for _ in range(times):
        yield bench.launch("stream_copy", grid, block, a, c)
        yield bench.launch("stream_mul", grid, block, b, c)
        yield bench.launch("stream_add", grid, block, a, b, c)
        yield bench.launch("stream_triad", grid, block, a, b, c)
        yield bench.launch("stream_dot", 256, block, a, b, sums, size)


def rows(reference: Path) -> list[Row]:
    """Return the rows of the microbenchmarks."""
    return [
        _row(each, "microbenchmarks", *_run_of(each["application"]))
        for each in read(reference / "romnn-microbenchmarks.csv")
    ]


def _run_of(application: str) -> tuple[Run | None, str]:
    numbers = [int(each) for each in re.findall(r"\d+", application.split(" ", 1)[1])]
    match application.split()[0]:
        case "vectoradd":
            return Run.of("vector_add_double", n=numbers[0]), ""
        case "cuda4-matrixmul":
            side = numbers[0]
            return Run.of("matrix_product", rows=side, inner=side, columns=side), ""
        case "cuda10-matrixmul":
            inner, rows_, columns, _ = numbers
            return Run.of("matrix_product", rows=rows_, inner=inner, columns=columns), ""
        case "cuda10-transpose":
            return Run.of("transposes", width=numbers[1], height=numbers[2]), ""
        case "babelstream":
            return Run.of("streams", size=numbers[0], times=numbers[1]), ""
    return None, "no kernel"


def _row(each: dict[str, Any], suite: str, run: Run | None, reason: str = "") -> Row:
    is_nvprof = each["gpu"] == "GTX 1080"  # Nsight Compute empties the caches before each launch
    return Row(
        suite=suite,
        gpu=GPUS[each["gpu"]],
        application=each["application"],
        kernel_index=each["kernel_index"],
        kernel=each["kernel"],
        metric=each["metric"],
        measured=each["measured"],
        unit="us" if each["metric"].startswith("duration_us") else "cycles",
        profiler="nvprof" if is_nvprof else "ncu",
        settings=(Setting("in order" if is_nvprof else "cold"),),
        run=run,
        launches=(int(each["kernel_index"]) - 1,),
        reason=reason,
    )


# ---- Rodinia ----


@program(_RODINIA, lambda side, pyramid, steps: 400 * 8 * up(side, 16 - 2 * pyramid) ** 2)
def heat(bench: Bench, side: int, pyramid: int, steps: int) -> Launches:
    """Take time steps of the heat of a chip, so many per launch."""
    power, first, second = (
        bench.random(side, side),
        bench.random(side, side),
        bench.zeros(side, side),
    )
    inner = 16 - 2 * pyramid
    grid = (up(side, inner), up(side, inner))
    chip = 0.016
    edge = chip / side
    thickness, conductivity = 0.0005, 100.0
    capacity = 0.5 * 1.75e6 * thickness * edge * edge
    rx = ry = edge / (2.0 * conductivity * thickness * edge)
    rz = thickness / (conductivity * edge * edge)
    step = 0.001 / (3.0e6 / (0.5 * thickness * 1.75e6))
    constants = tuple(np.float32(each) for each in (capacity, rx, ry, rz, step))
    arrays = [first, second]
    for start in range(0, steps, pyramid):
        now = min(pyramid, steps - start)
        shape = (side, side, pyramid, pyramid)
        yield bench.launch("heat", grid, (16, 16), now, power, *arrays, *shape, *constants)
        arrays.reverse()


@program(_RODINIA, lambda length: 800 * length / 16)
def needle(bench: Bench, length: int) -> Launches:
    """Align two sequences, diagonal by diagonal of the tiles."""
    side = length + 1
    rng = np.random.default_rng(1)
    reference = bench.device.array(rng.integers(-4, 12, (side, side), np.int32))
    start = np.zeros((side, side), np.int32)
    start[0] = start[:, 0] = -10 * np.arange(side)
    scores = bench.device.array(start)
    width = length // 16
    for step in range(1, width + 1):
        yield bench.launch("needle_1", step, 16, reference, scores, side, 10, step, width)
    for step in range(width - 1, 0, -1):
        yield bench.launch("needle_2", step, 16, reference, scores, side, 10, step, width)


@program(_RODINIA, lambda columns, rows, pyramid: 250 * 8 * up(columns, 256 - 2 * pyramid))
def path(bench: Bench, columns: int, rows: int, pyramid: int) -> Launches:
    """Find the cheapest path through a grid, so many rows per launch."""
    rng = np.random.default_rng(1)
    wall = bench.device.array(rng.integers(0, 10, (rows - 1, columns), np.int32))
    lines = [
        bench.device.array(rng.integers(0, 10, columns, np.int32)),
        bench.zeros(columns, dtype=np.int32),
    ]
    grid = up(columns, 256 - 2 * pyramid)
    for start in range(0, rows - 1, pyramid):
        now = min(pyramid, rows - 1 - start)
        yield bench.launch("path", grid, 256, now, wall, *lines, columns, rows, start, pyramid)
        lines.reverse()


#: hotspot 30 6 40, nw 128, pathfinder 1000 20 5.
_APPLICATIONS = {
    "hotspot": Run.of("heat", side=30, pyramid=6, steps=40),
    "nw": Run.of("needle", length=128),
    "pathfinder": Run.of("path", columns=1000, rows=20, pyramid=5),
}


def rodinia_rows(reference: Path) -> list[Row]:
    """Return the rows of Rodinia's applications."""
    found = []
    for each in read(reference / "gtx1080-rodinia.csv"):
        run = _APPLICATIONS.get(each["application"])
        found.append(_row(each, "Rodinia", run, "" if run else "no kernel"))
    return found


def counters(reference: Path) -> list[tuple[Row, str, float]]:
    """Return the counters of both sets: the row of the launch, the counter, its value."""
    found = []
    for name in ("romnn-microbenchmarks-counters", "gtx1080-rodinia-counters"):
        for each in read(reference / f"{name}.csv"):
            known = each["application"] in _APPLICATIONS
            run = _APPLICATIONS[each["application"]] if known else _run_of(each["application"])[0]
            row = _row(each, "Rodinia" if known else "microbenchmarks", run)
            found.append((row, each["metric"], each["measured"]))
    return found
