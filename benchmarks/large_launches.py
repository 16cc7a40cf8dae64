#!/usr/bin/env python3
"""Measure what launches at their true size cost: traced, predicted, simulated, and as a sample of blocks.

    python benchmarks/large_launches.py            # samples, in minutes
    python benchmarks/large_launches.py --whole    # also whole launches where memory and patience allow
    python benchmarks/large_launches.py --write    # docs/data/costs, too

Kernels are in Triton (`pip install 'warpstack[triton]'`), for `h100-sxm`: a product of 4096 x 4096 matrices
in half precision, attention of 256 heads of 128 over 2048 queries and keys, and a triad over 4 GiB. A sample
has one block in 16, at least 128, and the others are not run. Each case runs in a process of its own; times
are processor seconds of all its threads.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "studies"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "data" / "kernels"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import numpy as np
import pandas as pd
from pages import DOCS, machine, parser, publish

import warpstack as ws

PAGE = DOCS / "quality" / "costs.md"
GPU = "h100-sxm"
SAMPLE = 16
#: Warp instructions above which a whole launch is neither traced nor simulated.
LARGEST = 200e6


def product(size: int, **options: object) -> ws.KernelTrace:
    """Trace a product of square matrices."""
    from matmul_triton import matmul

    device = ws.cuda.Device(4)
    a, b = (ws.cuda.zeros((size, size), np.float16, device) for _ in range(2))
    c = ws.cuda.empty((size, size), np.float16, device)
    tiles = (size // 128) ** 2
    tile = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "num_warps": 8, "num_stages": 3}
    return ws.triton.launch(matmul, (tiles,), a, b, c, size, size, size, **tile, **options)


def attention(heads: int, length: int, **options: object) -> ws.KernelTrace:
    """Trace attention of so many heads, of 128 elements each."""
    from large_kernels import attention as kernel

    device = ws.cuda.Device(4)
    q, k, v = (ws.cuda.zeros((heads, length, 128), np.float16, device) for _ in range(3))
    out = ws.cuda.empty((heads, length, 128), np.float16, device)
    shape = {"DIM": 128, "BM": 128, "BN": 64, "num_warps": 8, "num_stages": 3}
    grid = (length // 128, heads)
    scale = 1.44269504 / 128**0.5
    return ws.triton.launch(kernel, grid, q, k, v, out, length, scale, **shape, **options)


def triad(gib: float, **options: object) -> ws.KernelTrace:
    """Trace a triad whose three arrays are so large together."""
    from large_kernels import triad as kernel

    n = int(gib * 2**30 / 12)
    device = ws.cuda.Device(gib + 1)
    x, y = (ws.cuda.zeros(n, np.float32, device) for _ in range(2))
    out = ws.cuda.empty(n, np.float32, device)
    grid = ((n + 1023) // 1024,)
    return ws.triton.launch(kernel, grid, x, y, out, 3.0, n, BLOCK=1024, **options)


CASES = {
    "GEMM 4096^3, fp16": lambda **options: product(4096, **options),
    "attention, 256 heads, 2048 x 128": lambda **options: attention(256, 2048, **options),
    "triad, 4 GiB": lambda **options: triad(4, **options),
}


def warm_up() -> None:
    """Do once what a process does once: imports, Triton's compiler, the tables of a GPU."""
    trace = triad(0.001)
    ws.predict(trace, GPU, models=["closed_network"])
    ws.simulate(trace, GPU)


def timed(work: object) -> tuple[object, float]:
    """Return a result and the processor seconds it took."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def measure(case: str, whole: bool) -> dict[str, float | str]:
    """Measure a case in this process."""
    warm_up()
    make = CASES[case]
    options = {} if whole else {"sample_blocks": SAMPLE, "run_others": False}
    make(**{"sample_blocks": SAMPLE, "run_others": False})  # Compiles the kernel.
    trace, traced = timed(lambda: make(**options))
    table, predicted = timed(lambda: ws.predict(trace, GPU, models=["closed_network"]))
    (result,), simulated = timed(lambda: ws.simulate(ws.App([trace]), GPU))
    return {
        "case": case,
        "blocks": "all" if whole else f"1 in {SAMPLE}",
        "M warp instructions": trace.num_instructions / 1e6,
        "trace (s)": traced,
        "predict (s)": predicted,
        "simulate (s)": simulated,
        "predicted (us)": float(table["time_us"].iloc[0]),
        "simulated (us)": result.time_us,
    }


def main() -> None:
    """Measure every case."""
    options = parser(__doc__, PAGE)
    options.add_argument("--whole", action="store_true", help="whole launches, too")
    options.add_argument("--case", help="measure one case in this process, and print it as JSON")
    arguments = options.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case, arguments.whole)))
        return
    rows = []
    for case in CASES:
        for whole in (False, True) if arguments.whole else (False,):
            command = [sys.executable, __file__, "--case", case] + ["--whole"] * whole
            run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows.append(json.loads(run.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    for column in table.columns[2:]:
        digits = 0 if column.endswith("(us)") else 1
        table[column] = [f"{value:.{digits}f}" for value in table[column]]
    publish(PAGE, {"large-launches": table}, arguments.write, where=machine())


if __name__ == "__main__":
    main()
