#!/usr/bin/env python3
"""Predict FlashAttention's forward kernels beside times measured on an H100.

    python studies/attention.py REFERENCE FOLDER                  # print the tables
    python studies/attention.py REFERENCE FOLDER --write          # into docs/data/attention
    python studies/attention.py REFERENCE FOLDER --only 0 1       # of some rows, counted from 0
    python studies/attention.py REFERENCE FOLDER --keep CSV       # keep the rows, or take them from there

REFERENCE is the folder of measurements on GPUs (``hardware``), FOLDER has programs that you have built from
public sources, each as ``NAME/program``. NAME has the version and the head dimension: ``fa3-64-full``,
``fa3-64-causal``, ``fa3-128-full``, ``fa3-128-causal``, ``fa2-64-full``, ``fa2-128-full``. A program has what
CUDA programs without a GPU need (PTX, a shared libcudart). It is called as

    PROGRAM BATCH SEQUENCE HEADS HEAD_DIM CAUSAL DATA

with CAUSAL 0 or 1. DATA is a folder with ``q.f16``, ``k.f16`` and ``v.f16``, plain half-precision numbers,
little-endian, in C order of (batch, sequence, heads, head_dim). The program launches the forward kernel
once, for as many SMs as its device has, with softmax scaled by 1 / sqrt(HEAD_DIM), and writes ``o.f16``
in the same layout.

The output is held against NumPy on sampled heads. A row of more operations than ``--largest`` runs as a
part: a half or a quarter of its heads on so many SMs with their share of L2, NoC and DRAM.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd

import warpstack as ws
from warpstack.cuda import host

PAGE = pages.DOCS / "quality" / "attention.md"
MEASURED = "attention-h100.csv"
PROFILER = "ncu"
MODEL = "closed_network"
#: Parts of a GPU, as one in so many SMs.
PARTS = (1, 2, 4)
#: Heads whose output is compared, and how far an element may lie from that in double precision.
SAMPLED_HEADS, TOLERANCE = 6, 2e-3


def program_of(row: pd.Series) -> str:
    """Return the name of the program that runs a row of the measurements."""
    version = next(digit for digit in row["kernel"] if digit.isdigit())
    return f"fa{version}-{row['head_dim']}-{'causal' if row['causal'] else 'full'}"


def operations(row: pd.Series) -> float:
    """Return the additions and multiplications of a row's two matrix products."""
    full = 4.0 * row["batch"] * row["heads"] * row["sequence"] ** 2 * row["head_dim"]
    return full / 2 if row["causal"] else full


def part_of(row: pd.Series, largest: float) -> int:
    """Return the least part of a GPU that has no more than `largest` operations, or the least of all."""
    heads = row["batch"] * row["heads"]
    # Clusters are of two blocks, so that a part has an even number of SMs where the heads are wide.
    fits = [
        part
        for part in PARTS
        if heads % part == 0
        and (row["head_dim"] < 128 or ws.gpu(row["gpu"]).num_sms // part % 2 == 0)
    ]
    return next((part for part in fits if operations(row) / part <= largest), fits[-1])


def divided(gpu: ws.Gpu, part: int) -> ws.Gpu:
    """Return one in `part` SMs of a GPU, with their share of what all share."""
    if part == 1:
        return gpu
    return gpu.replace(
        num_sms=gpu.num_sms // part,
        l2_size_kib=gpu.l2_size_kib / part,
        l2_slices=gpu.l2_slices // part,
        dram_channels=gpu.dram_channels // part,
        noc_bandwidth_gbs=gpu.noc_bandwidth_gbs / part,
        dram_bandwidth_gbs=gpu.dram_bandwidth_gbs / part,
        block_interval_cycles=gpu.block_interval_cycles * part,
    )


def sizes_of(row: pd.Series, part: int) -> tuple[int, int, int, int]:
    """Return batch, sequence, heads and head dimension of a part of a row."""
    batches = int(np.gcd(row["batch"], part))
    heads = row["heads"] // (part // batches)
    return row["batch"] // batches, row["sequence"], heads, row["head_dim"]


def worst_difference(folder: Path, shape: tuple[int, int, int, int], *, causal: bool) -> float:
    """Return the largest difference of an element from attention in double precision, in sampled heads."""
    q, k, v, o = (np.memmap(folder / f"{name}.f16", "<f2", "r", shape=shape) for name in "qkvo")
    random = np.random.default_rng(2)
    places = list(itertools.product(range(shape[0]), range(shape[2])))
    chosen = random.choice(len(places), min(SAMPLED_HEADS, len(places)), replace=False)
    worst = 0.0
    for batch, head in [places[0], places[-1], *(places[each] for each in chosen)]:
        keys, values = (np.asarray(each[batch, :, head], np.float64) for each in (k, v))
        # Some rows of a long sequence, in any order.
        rows = np.sort(random.choice(shape[1], min(shape[1], 512), replace=False))
        scores = np.asarray(q[batch, rows, head], np.float64) @ keys.T / np.sqrt(shape[3])
        if causal:
            scores[np.arange(shape[1])[None, :] > rows[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected = weights @ values / weights.sum(axis=1, keepdims=True)
        found = np.asarray(o[batch, rows, head], np.float64)
        worst = max(worst, float(np.abs(found - expected).max()))
    return worst


def traced(row: pd.Series, part: int, gpu: ws.Gpu, arguments: argparse.Namespace) -> ws.KernelTrace:
    """Run a row's program and return the trace of its kernel; raise `SystemExit` where it is wrong."""
    shape = sizes_of(row, part)
    program = arguments.folder / program_of(row) / "program"
    with tempfile.TemporaryDirectory(dir=arguments.temporary) as name:
        folder = Path(name)
        random = np.random.default_rng(1)
        for each in "qkv":
            numbers = random.standard_normal(shape, dtype=np.float32)
            numbers.astype("<f2").tofile(folder / f"{each}.f16")
        run = host.trace_program(
            [program.resolve(), *shape, int(row["causal"]), folder],
            folder / "trace",
            gpu=gpu,
            machine_code=arguments.machine_code,
        )
        if run.problem():
            raise SystemExit(f"{program}: {run.problem()}")
        worst = worst_difference(folder, shape, causal=bool(row["causal"]))
        if not worst <= TOLERANCE:
            raise SystemExit(f"{program} {shape}: an element of its output is {worst:g} off")
        app = ws.load(folder / "trace")
        launches = list(app) if isinstance(app, ws.App) else [app]
        if len(launches) != 1:
            raise SystemExit(f"{program} launched {len(launches)} kernels instead of one")
        return launches[0]


def evaluated(row: pd.Series, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return measured and predicted times of a row, in microseconds, and what they took."""
    part = part_of(row, arguments.largest)
    whole = ws.gpu(row["gpu"]).replace(clock_ghz=row["clock_mhz"] / 1000)
    gpu = divided(whole, part)
    starts = [time.process_time()]
    kernel = traced(row, part, gpu, arguments)
    starts.append(time.process_time())
    simulated = ws.simulate(kernel, gpu, profiler=PROFILER)
    assert isinstance(simulated, ws.SimulationResult)
    starts.append(time.process_time())
    model = ws.predict(kernel, gpu, [MODEL], profiler=PROFILER)
    starts.append(time.process_time())
    launch = whole.launch_us_ncu
    simulator_us = simulated.cycles / gpu.clock_ghz / 1e3 + launch
    return {
        "kernel": program_of(row),
        **{name: row[name] for name in ("batch", "sequence", "heads")},
        "part": "all" if part == 1 else f"1/{part}",
        "warp instructions (M)": kernel.num_instructions / 1e6,
        "measured (us)": row["measured_us"],
        "simulator (us)": simulator_us,
        "closed_network (us)": float(model["time_us"].iloc[0]),
        "FlashGPU-Sim (us)": row["flashgpusim_us"],
        **{
            f"{name} processor time (s)": end - start
            for name, start, end in zip(("simulator", MODEL), starts[1:], starts[2:], strict=False)
        },
    }


def with_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the errors of each prediction, as texts in percent."""
    made = rows.copy()
    for name in ("simulator", MODEL, "FlashGPU-Sim"):
        error = 100 * (rows[f"{name} (us)"] / rows["measured (us)"] - 1)
        made[f"{name} error"] = [f"{each:+.0f} %" for each in error]
    for name in ("simulator", MODEL):
        made[f"{name} processor time (s)"] = rows[f"{name} processor time (s)"].round(1)
    return made


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and the largest absolute error of each prediction, by kind of kernel."""
    kinds = rows["kernel"].str.replace(r"-\d+-", " ", regex=True)
    found = []
    for kind, of in [*rows.groupby(kinds), ("all", rows)]:
        cells: dict[str, object] = {"kernels": kind, "rows": len(of)}
        for name in ("simulator", MODEL, "FlashGPU-Sim"):
            error = 100 * (of[f"{name} (us)"] / of["measured (us)"] - 1).abs()
            cells |= {
                f"{name}, mean": f"{error.mean():.0f} %",
                f"{name}, worst": f"{error.max():.0f} %",
            }
        found.append(cells)
    return pd.DataFrame(found)


def main() -> None:
    """Compute the tables and print or write them."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("reference", type=pages.existing(MEASURED), help="the folder hardware")
    parser.add_argument("folder", type=Path, help="the folder of programs")
    parser.add_argument("--only", nargs="+", type=int, help="these rows of the measurements")
    parser.add_argument(
        "--largest", type=float, default=1.5e11, help="operations of the largest whole row"
    )
    parser.add_argument("--machine-code", metavar="ARCH", help="instead of PTX: sm_90a, say")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="CSV",
        help="the rows; those that the file has are read from it",
    )
    parser.add_argument("--temporary", type=Path, help="where data and traces lie meanwhile")
    arguments = parser.parse_args()
    pages.check_programs(parser, arguments.folder, PAGE)
    measured = pd.read_csv(arguments.reference / MEASURED)
    keep: Path | None = arguments.keep
    known = pd.read_csv(keep, index_col=0) if keep and keep.exists() else pd.DataFrame()
    wanted = list(measured.index) if arguments.only is None else arguments.only
    for number in wanted:
        row = measured.loc[number]
        if number in known.index:
            continue
        if reason := pages.lacks_program(arguments.folder, program_of(row)):
            print(reason, file=sys.stderr)
            continue
        found = pd.DataFrame([evaluated(row, arguments)], index=[number])
        known = pd.concat([known, found]).sort_index()
        print(with_errors(found).to_string(index=False), file=sys.stderr, flush=True)
        if keep:
            known.to_csv(keep)
    rows = known.loc[[each for each in wanted if each in known.index]]
    pages.publish(PAGE, {"rows": with_errors(rows), "summary": summary(rows)}, arguments.write)


if __name__ == "__main__":
    main()
