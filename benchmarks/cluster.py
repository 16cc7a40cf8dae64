#!/usr/bin/env python3
"""Measure what a sweep on a Dask cluster costs, and how far that scales.

    python benchmarks/cluster.py           # print the table
    python benchmarks/cluster.py --write   # also write docs/data/benchmarks

The workers are processes of this machine with a thread each. The client is this process: the processor
time that it takes per task and per row bounds the cores that it can keep busy, which the last line says.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import tempfile
import time
from pathlib import Path

import distributed
import pandas as pd
from run import DOCS, machine, publish

import warpstack as ws
from warpstack._util.options import Options
from warpstack.exploration.runner import Runner
from warpstack.exploration.store import SweepStore
from warpstack.exploration.sweep import Design

GPU = "pascal-mdm"
MODELS = ("gpumech", "mdm")


def axes(sizes: int) -> dict[str, list[float]]:
    """Return a grid: so many numbers of SMs, each a run of the caches, with 500 points each."""
    return {
        "num_sms": list(range(28, 28 + sizes)),
        "dram_bandwidth_gbs": list(range(200, 700, 10)),
        "noc_bandwidth_gbs": [200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100],
    }


def on_workers(app: ws.App, count: int, sizes: int) -> tuple[float, float]:
    """Return the seconds of a sweep, and of them the processor time of the client."""
    with (
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        ws.sweep(app, GPU, axes(1), MODELS, client=client, cache=False)  # imports
        start, cpu = time.perf_counter(), time.process_time()
        ws.sweep(app, GPU, axes(sizes), MODELS, client=client, cache=False)
        return time.perf_counter() - start, time.process_time() - cpu


def costs(app: ws.App) -> dict[str, float]:
    """Return rows, bytes and seconds of one task, and the seconds that writing its rows takes."""
    gpu, options = ws.gpu(GPU), Options()
    design = Design.of(app, gpu, axes(1), MODELS)
    (task,) = design.tasks(options)
    start = time.process_time()
    table = Runner(app.kernels, MODELS, options).run(task, 1)
    worked = time.process_time() - start
    table = design.add_axes(task, table)
    with tempfile.TemporaryDirectory() as folder:
        store = SweepStore(Path(folder) / "store", {}, resume=True)
        start = time.process_time()
        store.add(0, table)
        store.close()
        written = time.process_time() - start
        size = sum(path.stat().st_size for path in Path(folder).glob("store/part-*"))
    return {
        "rows of a task": len(table),
        "processor seconds of a task": worked,
        "bytes of a task's description": len(pickle.dumps(task)),
        "bytes of its result": len(pickle.dumps(table)),
        "seconds to write its rows": written,
        "bytes of its rows in the store": size,
    }


def main() -> None:
    """Measure, print and write where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="spmv", help="what is swept (default: spmv)")
    parser.add_argument("--sizes", type=int, default=8, help="tasks of the sweep (default: 8)")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of docs/quality/benchmarks.md"
    )
    arguments = parser.parse_args()
    app = ws.workloads.load(arguments.workload)
    found = costs(app)
    rows = [(what, f"{value:.3g}") for what, value in found.items()]
    one, two = (on_workers(app, count, arguments.sizes) for count in (1, 2))
    rows += [
        (f"seconds of {arguments.sizes} tasks, one worker", f"{one[0]:.3g}"),
        ("the same, two workers", f"{two[0]:.3g}"),
        ("ratio", f"{one[0] / two[0]:.2f}"),
        ("processor seconds of the client per task", f"{two[1] / arguments.sizes:.3g}"),
    ]
    client = two[1] / arguments.sizes + found["seconds to write its rows"]
    cores = found["processor seconds of a task"] / client
    rows.append(("cores that one client keeps busy, with a store", f"{cores:.0f}"))
    table = pd.DataFrame(rows, columns=["what", "value"])
    page = DOCS / "quality" / "benchmarks.md"
    publish(page, {"cluster": table}, arguments.write, where=machine())


if __name__ == "__main__":
    main()
