"""What the figures of the cache paper share."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.stages import caches
from warpstack.figures.study import Study

PAPER = (
    "the cache paper (PPT-GPU-Mem improved by functional simulation of sectored and adaptive caches), "
    "2026"
)
GPU = "titan-v"
REFERENCE = (
    f"cycle-level simulation of {GPU} in place of the paper's hardware counters; it follows the "
    "same cache rules. L2 is emptied before each kernel"
)
#: What is compared, in the order of the drawings.
MODELS = ("ppt_gpu_mem", "warpstack")
SIMULATION = "simulation"


def by_kernel(study: Study) -> pd.DataFrame:
    """Return the metrics of each kernel by source."""
    return study.run(caches, [{"gpu": GPU}]).drop(columns="setting")


def by_application(table: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the kernels of each application, as the paper takes them."""
    metrics = table.columns.difference(
        ["app", "label", "class", "kernel", "name", "source"], sort=False
    )
    keys = ["app", "label", "class", "source"]
    return table.groupby(keys, sort=False)[list(metrics)].mean().reset_index()
