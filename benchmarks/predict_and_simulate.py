#!/usr/bin/env python3
"""Measure how much faster predicting the 17 workloads is than simulating them, on one core.

    python benchmarks/predict_and_simulate.py           # print the table
    python benchmarks/predict_and_simulate.py --write   # also write docs/quality/benchmarks.md

Both take traces that are in memory, and `pascal-mdm`. The lowest of several times counts: on a shared
machine the others say what the neighbours do.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "studies"))

import pandas as pd
from pages import DOCS, machine, markdown, parser, publish

import warpstack as ws

PAGE = DOCS / "quality" / "benchmarks.md"
PREDICTIONS = 7
SIMULATIONS = 3


def seconds(work: Callable[[], object], runs: int) -> float:
    """Return the lowest processor time of several runs."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def row(name: str, gpu: ws.Gpu) -> dict[str, object]:
    """Measure a workload."""
    app = ws.workloads.load(name)
    predict = seconds(lambda: ws.predict(app, gpu, models=["closed_network"]), PREDICTIONS)
    simulate = seconds(lambda: ws.simulate(app, gpu), SIMULATIONS)
    return {
        "workload": name,
        "launches": len(app),
        "predict s": predict,
        "simulate s": simulate,
        "ratio": simulate / predict,
    }


def main() -> None:
    """Measure all workloads."""
    arguments = parser(__doc__, PAGE).parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gpu = ws.gpu("pascal-mdm")
    table = pd.DataFrame([row(name, gpu) for name in ws.workloads.names()])
    together = {"workload": "together", "launches": table["launches"].sum()}
    sums = table[["predict s", "simulate s"]].sum()
    together |= dict(sums) | {"ratio": sums["simulate s"] / sums["predict s"]}
    table = pd.concat([table, pd.DataFrame([together])], ignore_index=True)
    for column, digits in (("predict s", 3), ("simulate s", 2), ("ratio", 1)):
        table[column] = [f"{value:.{digits}f}" for value in table[column]]
    text = f"Measured on: {machine()}, one of them.\n\n{markdown(table)}"
    publish(PAGE, {"predict-and-simulate": text}, arguments.write)


if __name__ == "__main__":
    main()
