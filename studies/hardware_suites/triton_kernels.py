"""Kernels in Triton: Liger's and those of Triton's tutorials, measured with its do_bench."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np

import warpstack as ws

from .program import KERNELS, STUDIES, Launches, TritonBench, program, up
from .row import Row, Run, Setting, gpu_of, read

_ROWS = KERNELS / "rows.py"
_PRODUCT = STUDIES.parent / "data" / "kernels" / "matmul_triton.py"
HAS_TRITON = all(importlib.util.find_spec(name) for name in ("triton", "ml_dtypes"))
#: Which target a GPU's kernels are compiled for.
_TARGETS = {"h100-sxm": 90, "h100-pcie": 90, "gh200": 90, "h200": 90}
#: Rows of programs that take one each: warps by the power of two that holds a row.
_WARPS = ((32768, 32), (8192, 16), (2048, 8), (0, 4))
#: Heads of queries and of keys of the tokens that are turned.
_HEADS = (32, 8)
#: Warps and stages of the tutorial's tiles.
_TILES = {
    (128, 256, 64): (8, 3),
    (64, 32, 32): (2, 5),
    (32, 64, 32): (2, 5),
    **dict.fromkeys(
        ((64, 256, 32), (128, 128, 32), (128, 64, 32), (64, 128, 32), (128, 32, 32)), (4, 4)
    ),
}
#: SMs of an A100, their registers and their shared memory, of which the tutorial makes the number of
#: programs.
_SMS, _REGISTERS, _SHARED = 108, 65536, 166912


def _block(n: int) -> dict[str, int]:
    block = 2 ** (n - 1).bit_length()
    return {"BLOCK": block, "num_warps": next(warps for least, warps in _WARPS if block >= least)}


def _bfloat16() -> Any:
    """Return the type, of a package that comes with no part of this one."""
    return importlib.import_module("ml_dtypes").bfloat16


@program(_ROWS, lambda rows, columns, target: rows * (columns / 32 * 1.6 + 900))
def rms_norm(bench: TritonBench, rows: int, columns: int, target: int) -> Launches:
    """Normalise rows in bfloat16; the weights are floats."""
    type_ = _bfloat16()
    x, out = bench.random(rows, columns, dtype=type_), bench.zeros(rows, columns, dtype=type_)
    arguments = (out, x, bench.random(columns), bench.zeros(rows), columns, 1e-6)
    yield bench.launch("rms_norm", rows, target, *arguments, **_block(columns))


@program(_ROWS, lambda rows, columns, target: rows * (columns / 32 * 2.2 + 1300))
def layer_norm(bench: TritonBench, rows: int, columns: int, target: int) -> Launches:
    """Normalise rows of floats."""
    x, out = bench.random(rows, columns), bench.zeros(rows, columns)
    vectors = (bench.random(columns), bench.random(columns), bench.zeros(rows), bench.zeros(rows))
    yield bench.launch(
        "layer_norm", rows, target, out, x, *vectors, columns, 1e-6, **_block(columns)
    )


@program(_ROWS, lambda rows, columns, target: rows * (columns / 32 * 9 + 100))
def gates(bench: TritonBench, rows: int, columns: int, target: int) -> Launches:
    """Multiply the halves of rows in bfloat16, one through a gate."""
    type_ = _bfloat16()
    both, out = (
        bench.random(rows, 2 * columns, dtype=type_),
        bench.zeros(rows, columns, dtype=type_),
    )
    yield bench.launch("gate", rows, target, out, both, n=columns, **_block(columns))


@program(_ROWS, lambda length, head, target: length * 4 * (head * 2 + 30))
def rotations(bench: TritonBench, length: int, head: int, target: int) -> Launches:
    """Turn the heads of tokens in bfloat16."""
    type_ = _bfloat16()
    vectors = [bench.random(length, heads, head, dtype=type_) for heads in _HEADS]
    angles = [bench.random(length, head, dtype=type_) for _ in range(2)]
    names = ("Q_HEADS", "K_HEADS", "HEAD")
    shape = dict(zip(names, (*_HEADS, head), strict=True))
    yield bench.launch("rotate", length, target, *vectors, *angles, length, **shape)


@program(_ROWS, lambda entries, count, width, target: count * width / 32 * 2.7)
def tables_of_rows(
    bench: TritonBench, entries: int, count: int, width: int, target: int
) -> Launches:
    """Copy rows of a table of floats."""
    chosen = np.random.default_rng(1).integers(0, entries, count, np.int64)
    side = min(128, 2 ** (width - 1).bit_length())
    arrays = (bench.random(entries, width), bench.device.array(chosen), bench.zeros(count, width))
    grid = (up(count, side), up(width, side))
    yield bench.launch(
        "look_up", grid, target, *arrays, count, width=width, ROWS=side, COLUMNS=side
    )


@program(_ROWS, lambda rows, columns, target: rows * (columns / 32 * 8 + 8 * 120))
def row_softmax(bench: TritonBench, rows: int, columns: int, target: int) -> Launches:
    """Take the softmax of rows of floats, with as many programs as an A100 holds."""
    x, out = bench.random(rows, columns), bench.zeros(rows, columns)
    block = 2 ** (columns - 1).bit_length()
    kernel = ws.triton.compile(
        bench.functions["softmax"],
        *(out, x, rows, columns),
        **{"BLOCK": block, "STAGES": 4, "num_warps": 8, "target": f"sm_{target}"},
        machine_code=bench.machine_code,
    )
    on_sm = _REGISTERS // (kernel.registers_per_thread * 32 * 8)
    if kernel.shared_memory_bytes:
        on_sm = min(on_sm, _SHARED // kernel.shared_memory_bytes)
    trace = kernel.launch(min(rows, _SMS * on_sm))
    assert trace is not None
    yield trace


@program(_ROWS, lambda rows, columns, target: rows * (columns / 32 * 20 + 32 * 150))
def cross_entropy(bench: TritonBench, rows: int, columns: int, target: int) -> Launches:
    """Put losses of rows of floats, and their gradients."""
    logits, losses = bench.random(rows, columns), bench.zeros(rows)
    targets = bench.device.array(np.random.default_rng(1).integers(0, columns, rows, np.int64))
    block = min(32768, 2 ** (columns - 1).bit_length())
    yield bench.launch(
        *("cross_entropy", rows, target, logits, targets, losses, columns, 1 / rows),
        **{"BLOCK": block, "num_warps": 32},
    )


@program(_PRODUCT, lambda size, rows, columns, depth, target: size**3 / 2048 * 7)
def tiled_product(
    bench: TritonBench, size: int, rows: int, columns: int, depth: int, target: int
) -> Launches:
    """Multiply matrices in half precision, in tiles of so many rows and columns, so deep."""
    a, b, c = (bench.random(size, size, dtype=np.float16) for _ in range(3))
    warps, stages = _TILES[rows, columns, depth]
    tile = {"BM": rows, "BN": columns, "BK": depth, "GROUP": 8}
    options = {"num_warps": warps, "num_stages": stages}
    grid = up(size, rows) * up(size, columns)
    yield bench.launch("matmul", grid, target, a, b, c, size, size, size, **tile, **options)


def rows(reference: Path) -> list[Row]:
    """Return the rows of kernels in Triton."""
    found: list[Row] = []
    known = set()
    for each in read(reference / "triton-kernels.csv", "measured_us"):
        row = _row(each)
        key = (row.run, row.gpu, row.measured)
        if row.run and key in known:
            row = dataclasses.replace(row, run=None, reason="a row again under another name")
        known.add(key)
        found.append(row)
    return found


def _run_of(kernel: str, size: str, note: str, target: int) -> tuple[Run | None, str]:
    """Return what a row measures, or nothing and why."""
    if kernel.startswith("learn-cuda"):
        return None, "no kernel"
    if not HAS_TRITON:
        return None, "Triton or ml_dtypes is not installed"
    side = re.match(r"(\d+) fp16", size)
    pair = re.match(r"(\d+)x(\d+) ", size)
    of_pair = {
        **{"Liger rms_norm fwd": "rms_norm", "Liger layer_norm fwd": "layer_norm"},
        **{"Liger megatron_swiglu fwd": "gates", "tutorial 02 softmax": "row_softmax"},
        "Liger cross_entropy fwd": "cross_entropy",
    }
    if kernel in of_pair and pair:
        rows_, columns = (int(number) for number in pair.groups())
        return Run.of(of_pair[kernel], rows=rows_, columns=columns, target=target), ""
    table = re.match(r"V=?(\d+) (\d+)x(\d+) f32", size)
    if kernel == "Liger embedding fwd" and table:
        entries, count, width = (int(number) for number in table.groups())
        run = Run.of("tables_of_rows", entries=entries, count=count, width=width, target=target)
        return run, ""
    tokens = re.match(r"S=(\d+) head_dim=(\d+) bf16", size)
    if kernel == "Liger rope fwd" and tokens:
        length, head = (int(number) for number in tokens.groups())
        return Run.of("rotations", length=length, head=head, target=target), ""
    tile = re.search(r"(\d+)x(\d+)x(\d+)", f"{size} {note}")
    if kernel == "tutorial 03 matmul" and tile and side:
        sides = tuple(int(number) for number in tile.groups())
        if sides in _TILES:
            names = dict(zip(("rows", "columns", "depth"), sides, strict=True))
            return Run.of("tiled_product", size=int(side[1]), target=target, **names), ""
    return None, "no kernel"


def _row(each: dict[str, Any]) -> Row:
    gpu, clock = gpu_of(each["gpu"])
    run, reason = _run_of(each["kernel"], each["size"], each["note"], _TARGETS.get(gpu, 80))
    return Row(
        suite="Triton",
        gpu=gpu,
        application=each["size"],
        kernel_index="0",
        kernel=each["kernel"],
        metric="duration_us",
        measured=each["measured_us"],
        unit="us",
        profiler="do_bench",
        settings=(Setting("written", clock),),
        run=run,
        reason=reason,
    )
