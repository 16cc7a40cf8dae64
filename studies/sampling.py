#!/usr/bin/env python3
"""Hold predictions from a sample of the SMs or blocks against those of all, and count how often bars hold.

    python studies/sampling.py                     # print the table of samples of the SMs
    python studies/sampling.py --write             # also docs/data/sm-sampling
    python studies/sampling.py --blocks            # of the thread blocks

Of SMs: all launches of the 17 workloads on several GPUs, one L2 for each application. Of blocks: the
first launch of each kernel with 256 blocks or more, at the size of the papers, each with an empty L2. A
bar holds if the IPC of all is between `ipc_low` and `ipc_high`. Launches that were evaluated whole do not
count.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pages
import pandas as pd

import warpstack as ws

GPUS = ("pascal-mdm", "titan-v", "v100-sxm2", "rtx3070", "a100")


@dataclass(frozen=True)
class Kind:
    """What is sampled: the option, its samples, the models, the size of the workloads, and the page."""

    option: str
    samples: tuple[float | int | str, ...]
    models: tuple[str, ...]
    size: str
    page: Path

    @property
    def column(self) -> str:
        """The column that says how many were sampled."""
        return self.option.replace("sample_", "sampled_")


SMS = Kind(
    "sample_sms",
    ("auto", 1 / 4, 1 / 8),
    ("mdm", "closed_network"),
    "small",
    pages.DOCS / "explanation" / "sm-sampling.md",
)
BLOCKS = Kind(
    "sample_blocks",
    ("auto", 4, 8),
    ("closed_network",),
    "paper",
    pages.DOCS / "explanation" / "block-sampling.md",
)
#: Blocks below which no launch is sampled.
LEAST_BLOCKS = 256


def launches(name: str, kind: Kind) -> tuple[ws.App, bool]:
    """Return what is evaluated of a workload, and whether each launch has an empty L2."""
    app = ws.workloads.load(name, kind.size)
    if kind is SMS:
        return app, False
    first = {}
    for kernel in app.kernels:
        if kernel.num_blocks >= LEAST_BLOCKS and kernel.num_instructions >= 20_000:
            first.setdefault(kernel.short_name, kernel)
    return ws.App(first.values(), name), True


def measure(kind: Kind, task: tuple[str, str]) -> pd.DataFrame:
    """Return a row for each sampled launch, model and share of a workload on a GPU."""
    name, gpu = task
    app, flush = launches(name, kind)
    if not app.kernels:
        return pd.DataFrame()
    exact = ws.predict(app, gpu, kind.models, flush_l2=flush)
    parts = []
    for value in kind.samples:
        table = ws.predict(app, gpu, kind.models, flush_l2=flush, **{kind.option: value})
        part = table[["kernel", "model", "ipc", "ipc_low", "ipc_high", kind.column]].copy()
        part.insert(0, "sampling", str(value))
        part["ipc_of_all"] = exact["ipc"]
        parts.append(part[part[kind.column] > 0])
    print(f"{name} on {gpu}", file=sys.stderr)
    return pd.concat(parts, ignore_index=True)


def summary(rows: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Return how often bars hold, how wide they are and how large errors, by share and model."""
    error = (rows["ipc"] / rows["ipc_of_all"] - 1).abs()
    exact, rounding = rows["ipc_of_all"], 1e-9
    holds = (exact >= rows["ipc_low"] * (1 - rounding)) & (
        exact <= rows["ipc_high"] * (1 + rounding)
    )
    half_width = (rows["ipc_high"] - rows["ipc_low"]) / (2 * rows["ipc"])
    table = rows.assign(error=error, holds=holds, half_width=half_width)
    found = []
    for sampling in map(str, kind.samples):
        for model in kind.models:
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
    parser = pages.parser(__doc__, SMS.page)
    parser.add_argument(
        "--blocks", action="store_true", help="of the thread blocks, not of the SMs"
    )
    pages.add_processes(parser)
    arguments = parser.parse_args()
    kind = BLOCKS if arguments.blocks else SMS
    tasks = [(name, gpu) for gpu in GPUS for name in ws.workloads.names()]
    rows = pd.concat(
        pages.in_processes(partial(measure, kind), tasks, arguments.processes), ignore_index=True
    )
    pages.publish(kind.page, {"samples": summary(rows, kind)}, arguments.write)


if __name__ == "__main__":
    main()
