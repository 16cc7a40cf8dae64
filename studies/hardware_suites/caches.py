"""Loads from L1 at strides, on an A40, and streams from L2, on an A100: RRZE's gpu-benches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from .program import KERNELS, Bench, Launches, program, up
from .row import Row, Run, Setting, gpu_of, read

_SOURCE = KERNELS / "caches.cu"
#: Loads of a thread in the two launches of which the slope is taken.
LOADS = (256, 512)
#: Words of a row of the plane that blocks of two dimensions read.
PITCH = 4098
STRIDES = ("fstride", "dstride", "fblock", "dblock")
STREAMS = ("read", "scale", "triad", "write")
#: Arrays that a stream reads or writes, which is what its bandwidth counts.
_ARRAYS = {"read": 1, "scale": 2, "triad": 4, "write": 1}
#: Elements of an array are a multiple of the first and a rest.
_LENGTHS = (8192, 8161)
#: The source asks for a fifth of the A100's L1 as shared memory, and for so many bytes of it for each block
#: that one or two blocks fit.
_SHARED = {1: 16 * 1024, 2: 10 * 1024}
SMALL_CARVE_OUT = (
    ("shared_memory_carve_outs_kib", (0, 8, 16, 32)),
    ("shared_memory_kib_per_sm", 32),
)


@program(_SOURCE, lambda kind, size: 32 * max(LOADS) * 2)
def loads_at_strides(bench: Bench, kind: int, size: int) -> Launches:
    """Load from L1, by one block of 1,024 threads: rows of lanes at a stride, or a plane `size` wide."""
    name = STRIDES[kind]
    is_double, is_block = name.startswith("d"), name.endswith("block")
    kernel = f"{'block' if is_block else 'stride'}_{'double' if is_double else 'float'}"
    type_ = np.float64 if is_double else np.float32
    length = 33 * PITCH + 128 if is_block else 64 * size + 64
    given, out = bench.zeros(length, dtype=type_), bench.zeros(1024, dtype=type_)
    block = (size, 1024 // size) if is_block else 1024
    for loads in LOADS:
        yield bench.launch(kernel, 1, block, out, given, 0, PITCH if is_block else size, loads)


@program(
    _SOURCE,
    lambda kind, threads, blocks, sms, first, second, length: (
        second * sms * blocks * up(threads, 32) * 18
    ),
)
def streams_in_l2(
    bench: Bench,
    kind: int,
    threads: int,
    blocks: int,
    sms: int,
    first: int,
    second: int,
    length: int,
) -> Launches:
    """Stream arrays that lie in L2, in so many waves of blocks; the launch before fills L2."""
    arrays = [bench.zeros(length, dtype=np.float64) for _ in range(4)]
    shift = length.bit_length() - 1
    divisor = (length, np.uint32(up(2 ** (32 + shift), length)), shift)
    wave = sms * blocks
    for waves in (up(length, wave * threads), first, second):
        kernel = f"stream_{STREAMS[kind]}"
        grid = waves * wave
        yield bench.launch(kernel, grid, threads, *arrays, *divisor, shared=_SHARED[blocks])


def stride_rows(reference: Path) -> list[Row]:
    """Return the rows of loads at strides."""
    table = read(reference / "microbenchmarks-2026.csv")
    return [_stride_row(each) for each in table if each["program"] == "L1 strides"]


def _stride_row(each: dict[str, Any]) -> Row:
    gpu, clock = gpu_of(each["gpu"])
    known = each["kernel"] in STRIDES
    run = None
    if known:
        kind = STRIDES.index(each["kernel"])
        run = Run.of("loads_at_strides", kind=kind, size=int(each["size"]))
    per_load = 1 / (32 * (LOADS[1] - LOADS[0]))
    return Row(
        suite="L1 strides",
        gpu=gpu,
        application=f"{each['kernel']} {each['size']}",
        kernel_index="0",
        kernel=each["kernel"],
        metric="cycles_per_load",
        measured=each["measured"],
        unit="cycles",
        settings=(Setting("in order", clock),),
        run=run,
        launches=(0, 1),
        weights=(-per_load, per_load),
        reason="" if known else "no kernel",
    )


def stream_rows(reference: Path) -> list[Row]:
    """Return the rows of streams from L2; each measured time is that of 2^30 elements."""
    table = read(reference / "microbenchmarks-2026.csv")
    return [_stream_row(each) for each in table if each["program"] == "L2 streams"]


def _stream_row(each: dict[str, Any]) -> Row:
    gpu, clock = gpu_of(each["gpu"])
    shape = re.match(r"(\d+)x(\d+) threads/SM, (\d+) kB", each["size"])
    waves = re.search(r"waves \((\d+), (\d+)\)", each["note"])
    run, weights = None, ()
    if each["kernel"] in STREAMS and shape and waves and int(shape[2]) in _SHARED:
        threads, blocks, kib = (int(number) for number in shape.groups())
        first, second = (int(number) for number in waves.groups())
        step, rest = _LENGTHS
        run = Run.of(
            "streams_in_l2",
            kind=STREAMS.index(each["kernel"]),
            threads=threads,
            blocks=blocks,
            sms=108,
            first=first,
            second=second,
            length=step * round((kib * 64 - rest) / step) + rest,
        )
        wave = 108 * blocks * threads
        weights = (-(2**30) / ((second - first) * wave), 2**30 / ((second - first) * wave))
    arrays = _ARRAYS.get(each["kernel"], 1)
    return Row(
        suite="L2 streams",
        gpu=gpu,
        application=f"{each['kernel']} {each['size']}",
        kernel_index="0",
        kernel=each["kernel"],
        metric="duration_us",
        measured=arrays * 8 * 2**30 / each["measured"] / 1000,
        unit="us",
        settings=(Setting("in order", clock, changes=SMALL_CARVE_OUT),),
        run=run,
        launches=(1, 2),
        weights=weights,
        reason="" if run else "no kernel",
    )
