"""Trace three products of a matrix and a vector from their CUDA source.

    python data/kernels/matvec.py FOLDER
    warpstack predict FOLDER

A template for kernels of your own: compile, copy arrays, launch, check, save. `warpstack predict
data/kernels/matvec.cu` runs the program of the source, which makes the same launches. Without a CUDA
compiler, or with --ptx, this takes the ready PTX beside the source, made by: nvcc -ptx -O3
-arch=sm_75 -lineinfo matvec.cu
"""

import argparse
from pathlib import Path

import numpy as np

import warpstack as ws

HERE = Path(__file__).parent


def main() -> None:
    """Run the three kernels, check what they compute, and save their traces as one application."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the trace goes")
    parser.add_argument("--size", type=int, default=512, help="rows of the matrix")
    parser.add_argument("--ptx", action="store_true", help="do not compile")
    arguments = parser.parse_args()

    ready = arguments.ptx or not ws.cuda.compilers()
    module = ws.cuda.compile(HERE / ("matvec.ptx" if ready else "matvec.cu"))
    n = arguments.size
    matrix = (np.arange(n * n, dtype=np.float32) % 7).reshape(n, n)
    vector = np.arange(n, dtype=np.float32) % 3
    a, x = ws.cuda.array(matrix), ws.cuda.array(vector)
    traces = []
    for name, blocks, threads, product in (
        ("rows", -(-n // 32), 32, matrix @ vector),
        ("columns", -(-n // 32), 32, matrix.T @ vector),
        ("warp_per_row", -(-n // 8), 256, matrix @ vector),
    ):
        y = ws.cuda.array(np.zeros(n, np.float32))
        traces.append(module.kernel(name).launch(blocks, threads, a, x, y, n))
        np.testing.assert_array_equal(y.to_host(), product)
    ws.save(ws.App(traces, name="matvec"), arguments.folder, overwrite=True)


if __name__ == "__main__":
    main()
