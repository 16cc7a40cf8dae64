#!/usr/bin/env python3
"""Measure a sweep whose points all differ in the sizes of L1 and L2, by recorded orders of accesses.

    python benchmarks/cache_sweep.py                        # 1000 points, 17 workloads, two threads
    python benchmarks/cache_sweep.py --check 20             # and how far 20 points are from exact ones
    python benchmarks/cache_sweep.py --l1 5 --l2 8          # fewer points
    python benchmarks/cache_sweep.py --workloads spmv bfs   # fewer workloads
    python benchmarks/cache_sweep.py --check 20 --write     # also write docs/data/benchmarks

The workloads (`small`) are traced once and kept in a folder (`--traces`, by default a temporary one).
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sweep import DOCS, cpu_seconds, load, machine, publish

import warpstack as ws

#: In KiB; the baseline has 48 and 3072.
L1_SIZES = (24.0, 96.0)
L2_SIZES = (1536.0, 6144.0)
#: Sizes are multiples of a way of as many sets as the slices need.
L1_STEP, L2_STEP = 0.75, 24.0


def sizes(ends: tuple[float, float], step: float, count: int) -> list[float]:
    """Return sizes, evenly over a range, in whole steps."""
    return [round(size / step) * step for size in np.linspace(*ends, count).tolist()]


def main() -> None:
    """Measure, print the table and write it where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="folder to keep the traces in")
    parser.add_argument("--workloads", nargs="+", default=[], help="some of them (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="threads")
    parser.add_argument("--l1", type=int, default=25, help="sizes of L1")
    parser.add_argument("--l2", type=int, default=40, help="sizes of L2")
    parser.add_argument("--check", type=int, default=0, help="points to simulate exactly, too")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of docs/quality/benchmarks.md"
    )
    arguments = parser.parse_args()
    axes = {
        "l1_size_kib": sizes(L1_SIZES, L1_STEP, arguments.l1),
        "l2_size_kib": sizes(L2_SIZES, L2_STEP, arguments.l2),
    }
    with tempfile.TemporaryDirectory() as temporary:
        apps, _ = load(arguments.traces or Path(temporary), arguments.workloads)
        start, cpu = time.perf_counter(), cpu_seconds()
        table = ws.sweep(
            apps,
            "pascal-mdm",
            axes,
            "mdm",
            caches="recorded",
            workers=arguments.workers,
            cache=False,
        )
        wall, cpu = time.perf_counter() - start, cpu_seconds() - cpu
        points = len(axes["l1_size_kib"]) * len(axes["l2_size_kib"])
        row = {
            "points": points,
            "predictions": len(table),
            "threads": arguments.workers,
            "wall (s)": wall,
            "processor (s)": cpu,
        }
        made = {"cache-sweep": pd.DataFrame([row])}
        if arguments.check:
            made["cache-sweep-errors"] = differences(apps, axes, table, arguments.check)
    publish(DOCS / "quality" / "benchmarks.md", made, arguments.write, where=machine())


def differences(
    apps: dict[str, ws.App], axes: dict[str, list[float]], table: pd.DataFrame, count: int
) -> pd.DataFrame:
    """Return how far the cycles of some points are from those of exact caches."""
    grid = [(l1, l2) for l1 in axes["l1_size_kib"] for l2 in axes["l2_size_kib"]]
    chosen = random.Random(1).sample(range(len(grid)), min(count, len(grid)))
    points = [dict(zip(axes, grid[number], strict=True)) for number in chosen]
    start = cpu_seconds()
    exact = ws.sweep(apps, "pascal-mdm", points, "mdm", cache=False)
    seconds = (cpu_seconds() - start) / len(points)
    keys = ["app", *axes]
    ratio = table.groupby(keys)["cycles"].sum() / exact.groupby(keys)["cycles"].sum()
    errors = (ratio.dropna() - 1).abs() * 100
    rows = [
        [name, f"{one.median():.2f}", f"{one.quantile(0.9):.2f}", f"{one.max():.2f}"]
        for name, one in [*errors.groupby("app"), ("all", errors)]
    ]
    print(f"{len(points)} points with exact caches: {seconds:.1f} s of processor time each")
    head = ["workload", "median (%)", "90 % of points below (%)", "largest (%)"]
    return pd.DataFrame(rows, columns=head)


if __name__ == "__main__":
    main()
