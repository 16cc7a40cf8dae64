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

The output is held against NumPy on sampled heads. Of a row of more operations than ``--largest`` a sample of
the thread blocks runs: one in 2, 4, 8 and so on.
"""

from __future__ import annotations

import argparse
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


def one_in(row: pd.Series, largest: float) -> int:
    """Return one in how many blocks run, so that these have no more than `largest` operations."""
    return 2 ** max(0, int(np.ceil(np.log2(operations(row) / largest))))


def worst_difference(folder: Path, shape: tuple[int, int, int, int], *, causal: bool) -> float:
    """Return the largest difference of an element from attention in double precision, in sampled heads.

    Rows of zeros are those of blocks that did not run.
    """
    q, k, v, o = (np.memmap(folder / f"{name}.f16", "<f2", "r", shape=shape) for name in "qkvo")
    random = np.random.default_rng(2)
    written = o.any(axis=3)
    places = [tuple(each) for each in np.argwhere(written.any(axis=1))]
    chosen = random.choice(len(places), min(SAMPLED_HEADS, len(places)), replace=False)
    worst = 0.0
    for batch, head in [places[0], places[-1], *(places[each] for each in chosen)]:
        keys, values = (np.asarray(each[batch, :, head], np.float64) for each in (k, v))
        # Some rows of a long sequence, in any order.
        there = np.flatnonzero(written[batch, :, head])
        rows = np.sort(random.choice(there, min(len(there), 512), replace=False))
        scores = np.asarray(q[batch, rows, head], np.float64) @ keys.T / np.sqrt(shape[3])
        if causal:
            scores[np.arange(shape[1])[None, :] > rows[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected = weights @ values / weights.sum(axis=1, keepdims=True)
        found = np.asarray(o[batch, rows, head], np.float64)
        worst = max(worst, float(np.abs(found - expected).max()))
    return worst


def traced(
    row: pd.Series, share: int, gpu: ws.Gpu, arguments: argparse.Namespace
) -> ws.KernelTrace:
    """Run a row's program and return the trace of its kernel; raise `SystemExit` where it is wrong."""
    shape = (row["batch"], row["sequence"], row["heads"], row["head_dim"])
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
            machine_code=arguments.machine_code or None,
            sample_blocks=share,
            run_others=False,
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
    share = one_in(row, arguments.largest)
    gpu = ws.gpu(row["gpu"]).replace(clock_ghz=row["clock_mhz"] / 1000)
    starts = [time.process_time()]
    kernel = traced(row, share, gpu, arguments)
    starts.append(time.process_time())
    simulated = ws.simulate(kernel, gpu, profiler=PROFILER)
    assert isinstance(simulated, ws.SimulationResult)
    starts.append(time.process_time())
    model = ws.predict(kernel, gpu, [MODEL], profiler=PROFILER)
    starts.append(time.process_time())
    simulator_us = simulated.cycles / gpu.clock_ghz / 1e3 + gpu.launch_us_ncu
    return {
        "kernel": program_of(row),
        **{name: row[name] for name in ("batch", "sequence", "heads")},
        "blocks": f"{kernel.num_blocks - kernel.num_missing_blocks} of {kernel.num_blocks}",
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
        "--largest", type=float, default=4e10, help="operations of the blocks of a row that run"
    )
    parser.add_argument(
        "--machine-code", metavar="ARCH", default="sm_90a", help="empty: PTX (default: sm_90a)"
    )
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
