#!/usr/bin/env python3
"""Measure sweeps: evaluations of the equations, and Table II of the MDM paper over again.

    python benchmarks/sweep.py                 # print the tables
    python benchmarks/sweep.py --write         # also write docs/data/benchmarks
    python benchmarks/sweep.py --workers 1     # on one core
    python benchmarks/sweep.py --workloads hotspot srad --most-points 10 --sample 2    # a try

The workloads (`small`) are traced once and kept in a folder (`--traces`, by default a temporary one).
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).resolve().parents[1] / "studies"))

import numpy as np
import pandas as pd
from pages import DOCS, machine, publish

import warpstack as ws
from warpstack._util.options import Options
from warpstack.exploration.sweep import Design
from warpstack.models.prediction import evaluate_all

#: Recurring cost of 17 benchmarks (MDM, Table II); its one-time cost is 3.6 hours.
PAPER = {1: "2 minutes", 10: "20 minutes", 100: "3.3 hours", 1000: "1.4 days"}
#: Grids of 1, 10, 100 and 1000 configurations.
GRIDS: dict[int, dict[str, list[float]]] = {
    1: {"num_sms": [28]},
    10: {"num_sms": [28, 56], "l1_mshrs": [32, 64, 128, 256, 512]},
    100: {
        "num_sms": [28, 56],
        "l2_size_kib": [1536, 3072],
        "l1_mshrs": [32, 64, 128, 256, 512],
        "noc_bandwidth_gbs": [525, 700, 1050, 1400, 2100],
    },
    1000: {
        "num_sms": [28, 56],
        "l1_size_kib": [24, 48],
        "l2_size_kib": [1536, 3072],
        "clock_ghz": [1.0, 1.2, 1.4, 1.6, 1.8],
        "l1_mshrs": [32, 64, 128, 256, 512],
        "noc_bandwidth_gbs": [525, 700, 1050, 1400, 2100],
    },
}
#: The same fields where nearly every point has caches of its own.
SPACE = {
    "num_sms": (14, 80),
    "l1_size_kib": [float(size) for size in range(12, 100, 12)],
    "l2_size_kib": [float(size) for size in range(768, 6145, 768)],
    "clock_ghz": (1.0, 1.8),
    "l1_mshrs": (32, 512, "log"),
    "noc_bandwidth_gbs": (525, 2100, "log"),
    "dram_bandwidth_gbs": (240, 960, "log"),
}


def cpu_seconds() -> float:
    """Return the processor time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def load(folder: Path, names: Sequence[str] = ()) -> tuple[dict[str, ws.App], float]:
    """Return workloads, by default all, and the processor time of tracing them, if that was now."""
    apps, seconds = {}, 0.0
    for name in names or ws.workloads.names():
        path = folder / name
        if not path.exists():
            start = cpu_seconds()
            app = ws.workloads.load(name)
            seconds += cpu_seconds() - start
            ws.save(app, path)
        apps[name] = ws.load(path)
    return apps, seconds


def rates() -> list[list[str]]:
    """Return rates of the equations on one core, in million configurations and kernels per second."""
    rng = np.random.default_rng(0)
    rows = []
    for intervals, share in ((100, 0.5), (300, 0.5), (300, 1.0)):
        reads = np.where(rng.random(intervals) < share, rng.integers(1, 33, intervals), 0)
        profile = ws.IntervalProfile.from_arrays(
            instructions=rng.integers(1, 20, intervals),
            stall_cycles=rng.integers(0, 400, intervals),
            read_misses=reads,
            write_requests=rng.integers(0, 2, intervals) * (reads > 0),
            llc_miss_ratio=0.4,
            warps=32,
            active_sms=28,
        )
        gpu = ws.gpu("pascal-mdm")
        gpus = [
            gpu.replace(l1_mshrs=mshrs, noc_bandwidth_gbs=noc)
            for mshrs, noc in itertools.product(range(16, 80), range(100, 1700, 50))
        ]
        for model in ("mdm", "gpumech_plus"):
            seen = []
            for _ in range(15):
                start = time.process_time()
                evaluate_all([profile], gpus, model)
                seen.append(len(gpus) / (time.process_time() - start) / 1e6)
            median, low, high = statistics.median(seen), min(seen), max(seen)
            what = f"{intervals} intervals, {share:.0%} with requests"
            rows.append([model, what, f"{median:.3g}", f"{low:.3g}", f"{high:.3g}"])
    return rows


def one_time(apps: dict[str, ws.App]) -> float:
    """Return the processor time of representative warp selection."""
    start = cpu_seconds()
    for app in apps.values():
        for kernel in app.kernels:
            ws.interval.representative_warp(kernel)
    return cpu_seconds() - start


def recurring(apps: dict[str, ws.App], axes: Any, workers: int | None) -> list[str]:
    """Return points, runs of the caches, rows, wall and processor time of a sweep."""
    gpu = ws.gpu("pascal-mdm")
    design = Design.of(apps, gpu, axes, ["mdm"])
    caches = len(design.tasks(Options())) // len(apps)
    start, cpu = time.perf_counter(), cpu_seconds()
    table = ws.sweep(apps, gpu, axes, ["mdm"], workers=workers, cache=False)
    wall, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    assert (table["error"] == "").all()
    rate = f"{len(table) / wall:,.0f}"
    return [
        f"{len(design.points):,}",
        str(caches),
        f"{len(table):,}",
        f"{wall:.1f}",
        f"{cpu:.1f}",
        rate,
    ]


def main() -> None:
    """Measure, print the tables and write them where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="folder to keep the traces in")
    parser.add_argument("--workers", type=int, help="threads (default: one per core)")
    parser.add_argument("--workloads", nargs="+", default=[], help="some of them (default: all)")
    parser.add_argument("--most-points", type=int, default=1000, help="of the largest grid")
    parser.add_argument("--sample", type=int, default=100, help="points of the Latin hypercube")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of docs/quality/benchmarks.md"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        apps, tracing = load(arguments.traces or Path(temporary), arguments.workloads)
        print("loaded", file=sys.stderr)
        selection = one_time(apps)
        rows = []
        designs = [
            (f"grid ({PAPER[n]} in the paper)", grid)
            for n, grid in GRIDS.items()
            if n <= arguments.most_points
        ]
        sample = ws.exploration.samples.latin_hypercube(SPACE, arguments.sample, seed=1)
        designs.append(("Latin hypercube, caches of each point their own", sample))
        for what, axes in designs:
            rows.append([what, *recurring(apps, axes, arguments.workers)])
            print(*rows[-1], file=sys.stderr)
    kernels = sum(map(len, apps.values()))
    traced = f"tracing {tracing:.1f} s, " if tracing else ""
    print(
        f"{len(apps)} workloads (small, {kernels} kernels); one-time cost, processor time: "
        f"{traced}representative warps {selection:.1f} s (the paper: 3.6 hours)",
        file=sys.stderr,
    )
    speeds = ["model", "profile", "median", "lowest", "highest"]
    costs = ["design", "points", "runs of the caches", "predictions", "wall (s)", "processor (s)"]
    tables = {
        "sweep-rates": pd.DataFrame(rates(), columns=speeds),
        "sweep": pd.DataFrame(rows, columns=[*costs, "predictions/s"]),
    }
    publish(DOCS / "quality" / "benchmarks.md", tables, arguments.write, where=machine())


if __name__ == "__main__":
    main()
