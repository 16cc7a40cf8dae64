#!/usr/bin/env python3
"""Measure how much faster predicting the 17 workloads is than simulating them, on one core.

    python benchmarks/predict_and_simulate.py           # print the table
    python benchmarks/predict_and_simulate.py --write   # also write docs/data/benchmarks

Both take traces that are in memory, and `pascal-mdm`. The lowest time of several rounds over the workloads
counts: on a shared machine the others say what the neighbours do, who come and go for seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "studies"))

import pandas as pd
from pages import DOCS, machine, parser, publish

import warpstack as ws

PAGE = DOCS / "quality" / "benchmarks.md"
ROUNDS = 4
PREDICTIONS = 3  # of a round, with one simulation


def seconds(work: Callable[[], object], runs: int) -> float:
    """Return the lowest processor time of several runs."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(app: ws.App, gpu: ws.Gpu) -> dict[str, float]:
    """Measure a workload once."""
    return {
        "predict s": seconds(lambda: ws.predict(app, gpu, models=["closed_network"]), PREDICTIONS),
        "simulate s": seconds(lambda: ws.simulate(app, gpu), 1),
    }


def main() -> None:
    """Measure all workloads."""
    arguments = parser(__doc__, PAGE).parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gpu = ws.gpu("pascal-mdm")
    apps = {name: ws.workloads.load(name) for name in ws.workloads.names()}
    rounds = [pd.DataFrame([measure(app, gpu) for app in apps.values()]) for _ in range(ROUNDS)]
    lowest = pd.concat(rounds).groupby(level=0).min()
    lowest["ratio"] = lowest["simulate s"] / lowest["predict s"]
    table = pd.DataFrame({"workload": list(apps), "launches": list(map(len, apps.values()))})
    table = pd.concat([table, lowest], axis=1)
    together = {"workload": "together", "launches": table["launches"].sum()}
    sums = table[["predict s", "simulate s"]].sum()
    together |= dict(sums) | {"ratio": sums["simulate s"] / sums["predict s"]}
    table = pd.concat([table, pd.DataFrame([together])], ignore_index=True)
    for column, digits in (("predict s", 3), ("simulate s", 2), ("ratio", 1)):
        table[column] = [f"{value:.{digits}f}" for value in table[column]]
    table = table.rename(columns={"predict s": "predict (s)", "simulate s": "simulate (s)"})
    publish(PAGE, {"predict-and-simulate": table}, arguments.write, where=machine())


if __name__ == "__main__":
    main()
