"""Predict a coalesced and a memory-divergent kernel, from their CUDA source.

python data/kernels/strided.py [--plot FILE]

A template for kernels of your own: compile, copy arrays, launch, predict.
"""

import argparse
from pathlib import Path

import numpy as np

import warpstack as ws

BLOCKS, THREADS, N = 448, 256, 16

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--plot", metavar="FILE", help="draw the CPI stacks into this file")
arguments = parser.parse_args()

module = ws.cuda.compile(Path(__file__).with_name("strided.cu"))
values = np.random.default_rng(0).random(32 * BLOCKS * THREADS + N, dtype=np.float32)
x = ws.cuda.array(values)
traces = [module.kernel(f"strided_gs{gs}").launch(BLOCKS, THREADS, x) for gs in (1, 32)]

app = ws.App(traces, name="strided")
table = ws.predict(app, ws.gpu("pascal-mdm"), ["gpumech", "mdm"])
print(table[["kernel", "name", "model", "instructions", "cycles", "ipc", "cpi"]].to_string(index=False))
if arguments.plot:
    ws.plot.cpi_stack(table).figure.savefig(arguments.plot, dpi=150, bbox_inches="tight")
