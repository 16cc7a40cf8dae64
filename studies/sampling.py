#!/usr/bin/env python3
"""Hold predictions from a sample of the SMs against those of all, and count how often their bars hold.

    python studies/sampling.py            # print the table
    python studies/sampling.py --write    # also docs/data/sm-sampling

All launches of the 17 workloads on several GPUs, one L2 for each application. A bar holds if the IPC of
all SMs is between `ipc_low` and `ipc_high`. Launches that were simulated whole do not count.
"""

from __future__ import annotations

import sys

import numpy as np
import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "explanation" / "sm-sampling.md"
GPUS = ("pascal-mdm", "titan-v", "v100-sxm2", "rtx3070", "a100")
MODELS = ("mdm", "closed_network")
SAMPLING: tuple[float | str, ...] = ("auto", 1 / 4, 1 / 8)


def measure(task: tuple[str, str]) -> pd.DataFrame:
    """Return a row for each sampled launch, model and share of a workload on a GPU."""
    name, gpu = task
    app = ws.workloads.load(name)
    exact = ws.predict(app, gpu, MODELS)
    parts = []
    for sampling in SAMPLING:
        table = ws.predict(app, gpu, MODELS, sample_sms=sampling)
        part = table[["kernel", "model", "ipc", "ipc_low", "ipc_high", "sampled_sms"]].copy()
        part.insert(0, "sampling", str(sampling))
        part["ipc_of_all"] = exact["ipc"]
        parts.append(part[part["sampled_sms"] > 0])
    print(f"{name} on {gpu}", file=sys.stderr)
    return pd.concat(parts, ignore_index=True)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often bars hold, how wide they are and how large errors, by share and model."""
    error = (rows["ipc"] / rows["ipc_of_all"] - 1).abs()
    exact, rounding = rows["ipc_of_all"], 1e-9
    holds = (exact >= rows["ipc_low"] * (1 - rounding)) & (
        exact <= rows["ipc_high"] * (1 + rounding)
    )
    half_width = (rows["ipc_high"] - rows["ipc_low"]) / (2 * rows["ipc"])
    table = rows.assign(error=error, holds=holds, half_width=half_width)
    found = []
    for sampling in map(str, SAMPLING):
        for model in MODELS:
            one = table[(table["sampling"] == sampling) & (table["model"] == model)]
            errors = np.quantile(one["error"], (0.5, 0.95, 1))
            found.append(
                {
                    "sampling": sampling,
                    "model": model,
                    "launches": len(one),
                    "bars hold (%)": 100 * one["holds"].mean(),
                    "half of a bar (%)": f"{100 * one['half_width'].median():.2f}",
                    "median error (%)": f"{100 * errors[0]:.2f}",
                    "19 of 20 below (%)": f"{100 * errors[1]:.2f}",
                    "largest (%)": f"{100 * errors[2]:.1f}",
                }
            )
    return pd.DataFrame(found)


def main() -> None:
    """Measure, print and write."""
    parser = pages.parser(__doc__, PAGE)
    pages.add_processes(parser)
    arguments = parser.parse_args()
    tasks = [(name, gpu) for gpu in GPUS for name in ws.workloads.names()]
    rows = pd.concat(pages.in_processes(measure, tasks, arguments.processes), ignore_index=True)
    pages.publish(PAGE, {"samples": summary(rows)}, arguments.write)


if __name__ == "__main__":
    main()
