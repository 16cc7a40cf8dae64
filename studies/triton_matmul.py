"""Rank the tile sizes of a Triton kernel with the model, and with the simulator.

A product of two 1024 x 1024 matrices in half precision, in twelve configurations on an A100: times
of the model and the simulator, their ranks, the fraction of the tensor cores' peak, bytes from
DRAM, and how long each step takes here. Needs Triton (``pip install 'warpstack[triton]'``).

    python studies/triton_matmul.py --write
    python studies/triton_matmul.py --size 512 --processes 2
"""

from __future__ import annotations

import runpy
import time
from functools import partial
from typing import Any

import numpy as np
import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "how-to" / "triton.md"
KERNEL = pages.REPOSITORY / "data" / "kernels" / "matmul_triton.py"
GPU = "a100"
MODEL = "closed_network"
#: Rows, columns and depth of a tile, warps of a block, stages of the pipeline.
CONFIGURATIONS = [
    (128, 256, 64, 8, 3),
    (256, 64, 32, 4, 4),
    (128, 128, 64, 8, 3),
    (128, 128, 32, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (128, 32, 32, 4, 4),
    (64, 64, 64, 4, 3),
    (64, 64, 32, 4, 3),
    (64, 32, 32, 2, 5),
    (32, 64, 32, 2, 5),
    (32, 32, 64, 2, 3),
]


def peak_us(gpu: ws.Gpu, size: int) -> float:
    """Return the time of all mma instructions, 2048 multiply-adds each, at the tensor cores' rate."""
    instructions = size**3 / 2048
    rate = gpu.num_sms * gpu.num_schedulers * gpu.tensor_f16_f32_rate / 2048
    return instructions / rate / (1000 * gpu.clock_ghz)


def row_of(configuration: tuple[int, ...], size: int) -> dict[str, Any]:
    """Return what is known of a configuration: CPU seconds of tracing, times, bytes from DRAM."""
    rows, columns, depth, warps, stages = configuration
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    result = ws.cuda.zeros((size, size), np.float16)
    kernel = ws.triton.compile(
        runpy.run_path(str(KERNEL))["matmul"],
        ws.cuda.array(a),
        ws.cuda.array(b),
        result,
        size,
        size,
        size,
        BM=rows,
        BN=columns,
        BK=depth,
        GROUP=8,
        num_warps=warps,
        num_stages=stages,
    )
    began = time.process_time()
    trace = kernel.launch((size // rows) * (size // columns))
    traced = time.process_time()
    assert trace is not None
    exact = a.astype(np.float32) @ b.astype(np.float32)
    assert np.abs(np.asarray(result).astype(np.float32) - exact).max() < 0.1
    gpu = ws.gpu(GPU)
    predicted = ws.predict(trace, gpu, models=[MODEL]).iloc[0]
    after_model = time.process_time()
    simulated = ws.simulate(trace, gpu)
    after_simulator = time.process_time()
    dram = ws.simulate_caches(trace, gpu).totals["dram_read_sectors"] * 32
    launch = predicted.launch_us
    return {
        "tile": f"{rows} x {columns} x {depth}",
        "warps": warps,
        "stages": stages,
        "registers": kernel.registers_per_thread,
        "model (us)": predicted.time_us,
        "simulator (us)": simulated.time_us,
        "of the peak (%)": 100 * peak_us(gpu, size) / (simulated.time_us - launch),
        "read from DRAM (MiB)": dram / 2**20,
        "instructions (thousands)": round(trace.num_instructions / 1000),
        "tracing (CPU s)": traced - began,
        "model (CPU s)": after_model - traced,
        "simulator (CPU s)": after_simulator - after_model,
    }


def main() -> None:
    """Print the table, and write it into its page where asked to."""
    made = pages.parser(__doc__, PAGE)
    made.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices")
    pages.add_processes(made)
    given = made.parse_args()
    rows = pages.in_processes(partial(row_of, size=given.size), CONFIGURATIONS, given.processes)
    table = pd.DataFrame(rows).sort_values("simulator (us)", kind="stable")
    ranks = table[["model (us)", "simulator (us)"]].corr(method="spearman").iloc[0, 1]
    ratio = table["model (us)"] / table["simulator (us)"]
    best = table["simulator (us)"].iloc[0]
    chosen = table.sort_values("model (us)", kind="stable")["simulator (us)"].iloc[0]
    summary = pd.DataFrame(
        [
            {
                "rank correlation": f"{ranks:.2f}",
                "least model / simulator": f"{ratio.min():.2f}",
                "largest model / simulator": f"{ratio.max():.2f}",
                "chosen / fastest": f"{chosen / best:.2f}",
            }
        ]
    )
    tables = {"triton-matmul": table, "triton-matmul-summary": summary}
    pages.publish(PAGE, tables, given.write)


if __name__ == "__main__":
    main()
