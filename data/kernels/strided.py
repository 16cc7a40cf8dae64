"""Trace a coalesced and a memory-divergent kernel from their CUDA source.

    python data/kernels/strided.py FOLDER
    warpstack predict FOLDER

A template for kernels of your own: compile, copy arrays, launch, save. Without a CUDA compiler, or
with --ptx, it takes the ready PTX beside it, made by: nvcc -ptx -O3 -arch=sm_75 -lineinfo strided.cu
"""

import argparse
from pathlib import Path

import numpy as np

import warpstack as ws

BLOCKS, THREADS, N = 448, 256, 16
HERE = Path(__file__).parent


def main() -> None:
    """Run both kernels and save their traces as one application."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the trace goes")
    parser.add_argument("--ptx", action="store_true", help="do not compile")
    arguments = parser.parse_args()

    ready = arguments.ptx or not ws.cuda.compilers()
    module = ws.cuda.compile(HERE / ("strided.ptx" if ready else "strided.cu"))
    values = np.random.default_rng(0).random(32 * BLOCKS * THREADS + N, dtype=np.float32)
    x = ws.cuda.array(values)
    traces = [module.kernel(f"strided_gs{gs}").launch(BLOCKS, THREADS, x) for gs in (1, 32)]
    ws.save(ws.App(traces, name="strided"), arguments.folder, overwrite=True)


if __name__ == "__main__":
    main()
