"""Kernels made faster step by step: reductions (BBuf), vectors (Liu Xiandong), products (Boehm)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .program import KERNELS, Bench, Launches, program
from .row import Row, Run, Setting, gpu_of, read, straight

_REDUCTIONS = KERNELS / "reductions.cu"
_VECTORS = KERNELS / "vectors.cu"
_PRODUCTS = KERNELS / "sgemm.cu"
BLOCK = 256

# ---- reductions ----

#: Floats that the measured kernels add up.
_LENGTH = 2**25
#: Floats of a thread of the versions that have a thread for each one or two.
_EACH = (1, 1, 1, 2, 2, 2)
#: Blocks of the other versions; of the last as many as an A100 holds.
_BLOCKS = {6: 1024, 7: 1024, 8: 864}
#: Warp instructions of a block of each version, about.
_COSTS = (1800, 900, 700, 720, 420, 380, 2400, 2400, 4400)
#: Blocks of the two launches that a longer one is extrapolated from: waves of an A100.
_WAVES = (2 * 864, 4 * 864)


@program(_REDUCTIONS, lambda version: _COSTS[version] * _BLOCKS.get(version, _WAVES[1]))
def reductions(bench: Bench, version: int) -> Launches:
    """Add up an array: the whole, or two parts of it."""
    if version in _BLOCKS:
        given, out = bench.zeros(_LENGTH), bench.zeros(_BLOCKS[version])
        more = (np.uint32(_LENGTH),) if version == 8 else ()
        yield bench.launch(f"reduce_{version}", _BLOCKS[version], BLOCK, given, out, *more)
        return
    given = bench.zeros(_WAVES[1] * BLOCK * _EACH[version])
    for blocks in _WAVES:
        yield bench.launch(f"reduce_{version}", blocks, BLOCK, given, bench.zeros(blocks))


def reduction_rows(reference: Path) -> list[Row]:
    """Return the rows of reductions."""
    table = read(reference / "microbenchmarks-2026.csv")
    return [_reduction_row(each) for each in table if "reduce" in each["program"]]


def _reduction_row(each: dict[str, Any]) -> Row:
    version = each["kernel"].removeprefix("reduce_v")
    run, weights = None, ()
    if version.isdigit() and int(version) < len(_COSTS) and each["size"] == "2^25":
        run = Run.of("reductions", version=int(version))
        if int(version) < len(_EACH):
            blocks = _LENGTH / (BLOCK * _EACH[int(version)])
            weights = straight(*_WAVES, blocks)
    return _row(
        each,
        suite="reductions",
        profiler="ncu",
        state="cold",
        run=run,
        launches=(0, 1) if weights else (0,),
        weights=weights,
    )


# ---- vectors ----

#: Elements of the two launches that a longer one is extrapolated from. L2 was empty, so that it was Nsight
#: Compute that measured.
_ELEMENTS = (2**20, 2**21)


@program(_VECTORS, lambda width: _ELEMENTS[1] / width / 32 * 16)
def vector_widths(bench: Bench, width: int) -> Launches:
    """Add vectors, so many elements a thread."""
    for count in _ELEMENTS:
        arrays = [bench.zeros(count) for _ in range(3)]
        yield bench.launch(f"add_{width}", count // (BLOCK * width), BLOCK, *arrays)


@program(
    _VECTORS,
    lambda version, rows, columns: rows / (2 if version == 2 else 1) * (40 + columns // 32 * 3),
)
def matrix_vector(bench: Bench, version: int, rows: int, columns: int) -> Launches:
    """Multiply a matrix with a vector: a warp for a row, or for two."""
    arrays = (bench.zeros(rows, columns), bench.zeros(columns), bench.zeros(rows))
    grid = rows // (8 if version == 2 else 4)
    yield bench.launch(f"matvec_{version}", grid, (32, 4), *arrays, rows, columns)


def vector_rows(reference: Path) -> list[Row]:
    """Return the rows of additions of vectors and of products of a matrix with a vector."""
    table = read(reference / "microbenchmarks-2026.csv")
    return [_vector_row(each) for each in table if each["source"].startswith("Liu-xiandong")]


def _vector_row(each: dict[str, Any]) -> Row:
    kernel = each["kernel"]
    if kernel.startswith("sgemv_v") and kernel[7:] in ("0", "1", "2"):
        rows, columns = (int(number) for number in each["size"].split("x"))
        run = Run.of("matrix_vector", version=int(kernel[7:]), rows=rows, columns=columns)
        return _row(each, suite="vectors", profiler="ncu", state="cold", run=run)
    widths = {"float": 1, "vec1": 1, "float2": 2, "vec2": 2, "float4": 4, "vec4": 4}
    run, count = None, 2**25
    if kernel in widths and each["size"] == "2^25":
        run = Run.of("vector_widths", width=widths[kernel])
    return _row(
        each | {"measured": 12 * count / each["measured"] / 1000},
        suite="vectors",
        profiler="ncu",
        state="cold",
        run=run,
        launches=(0, 1),
        weights=straight(*_ELEMENTS, count),
    )


# ---- products of matrices ----

_SIDE = 4096
#: SMs of the card.
_SMS = 84
#: How far the sums of the two launches go that a whole product is extrapolated from, of versions with an
#: element per thread and with several: these wait longer for the last of C.
_DEPTHS = {**dict.fromkeys((1, 2, 3), (32, 64)), **dict.fromkeys(range(4, 11), (96, 192))}
#: Of each version: the side of a block's tile, its threads, and how many blocks fit on an SM.
_TILES = {
    **dict.fromkeys((1, 2, 3), (32, 1024, 1)),
    4: (64, 512, 2),
    **dict.fromkeys((5, 6, 7, 8, 9), (128, 256, 2)),
    10: (128, 128, 2),
}
#: Blocks of a wave, along x and y, by how many are along x in a whole product.
_WAVE_GRIDS = {128: (84, 1), 64: (56, 3), 32: (28, 6)}
#: Warp instructions of a block for each step of the sums, about.
_STEP_COSTS = {
    **{1: 32 * 4, 2: 32 * 4, 3: 32 * 3, 4: 16 * 20},
    **dict.fromkeys((5, 6, 7, 8, 9), 8 * 78),
    10: 4 * 145,
}


def _blocks(version: int) -> tuple[int, int]:
    """Return how many waves of blocks a product takes, and how many blocks are left."""
    tile, _, on_sm = _TILES[version]
    return divmod((_SIDE // tile) ** 2, _SMS * on_sm)


@program(
    _PRODUCTS,
    lambda version: _SMS * _TILES[version][2] * (_STEP_COSTS[version] * _DEPTHS[version][1] + 4000),
)
def products_of_floats(bench: Bench, version: int) -> Launches:
    """Multiply two matrices: a wave of blocks to two depths, then the blocks that are left."""
    a, b, c = (bench.zeros(_SIDE, _SIDE) for _ in range(3))
    tile, threads, _ = _TILES[version]
    block = (32, 32) if version == 1 else threads
    for grid in (_WAVE_GRIDS[_SIDE // tile], (_blocks(version)[1], 1)):
        for depth in _DEPTHS[version]:
            factors = (np.float32(0.5), a, b, np.float32(3))
            yield bench.launch(f"sgemm_{version}", grid, block, _SIDE, depth, *factors, c)


def product_rows(reference: Path) -> list[Row]:
    """Return the rows of products of matrices of floats."""
    table = read(reference / "microbenchmarks-2026.csv")
    return [_product_row(each) for each in table if "SGEMM" in each["source"]]


def _product_row(each: dict[str, Any]) -> Row:
    version = each["kernel"].removeprefix("k")
    run, weights = None, ()
    if version.isdigit() and int(version) in _TILES and each["size"] == str(_SIDE):
        run = Run.of("products_of_floats", version=int(version))
        waves, _ = _blocks(int(version))
        line = straight(*_DEPTHS[int(version)], _SIDE)
        weights = (*(waves * share for share in line), *line)
    return _row(
        each | {"measured": 2 * _SIDE**3 / each["measured"] / 1000},
        suite="SGEMM",
        profiler="",
        state="cold",
        run=run,
        launches=(0, 1, 2, 3) if run else (0,),
        weights=weights,
        clock=1.8,
    )


def _row(
    each: dict[str, Any],
    *,
    suite: str,
    profiler: str,
    state: Any,
    run: Run | None,
    launches: tuple[int, ...] = (0,),
    weights: tuple[float, ...] = (),
    clock: float = 0.0,
) -> Row:
    gpu, held = gpu_of(each["gpu"])
    return Row(
        suite=suite,
        gpu=gpu,
        application=f"{each['kernel']} {each['size']}",
        kernel_index="0",
        kernel=each["kernel"],
        metric="duration_us",
        measured=each["measured"],
        unit="us",
        profiler=profiler,
        settings=(Setting(state, clock or held),),
        run=run,
        launches=launches,
        weights=weights,
        reason="" if run else "no kernel",
    )
