"""Shared by the figures of the cache paper."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.stages import caches
from warpstack.figures.study import Study
from warpstack.validation import measures

PAPER = (
    "the cache paper (PPT-GPU-Mem improved by functional simulation of sectored and adaptive caches), "
    "2026"
)
GPU = "titan-v"
REFERENCE = (
    f"cycle-level simulation of {GPU} in place of the paper's hardware counters; it follows the "
    "same cache rules. L2 is emptied before each kernel"
)
#: The models that are compared, in the order of the drawings.
MODELS = ("ppt_gpu_mem", "warpstack")
SIMULATION = "simulation"


def by_kernel(study: Study) -> pd.DataFrame:
    """Return the metrics of each kernel by source."""
    return study.run(caches, [{"gpu": GPU}]).drop(columns="setting")


def unit(metric: str) -> str:
    """Return the unit of a metric's error: ``points`` (percentage points) of a rate, else ``%``."""
    return "points" if metric.endswith("_rate") else "%"


def mean_error(predicted: pd.Series, reference: pd.Series, metric: str) -> float:
    """Return the mean absolute error over the applications in the `unit` of the metric.

    The paper takes relative errors of rates, too. Where a reference is near 0, such an error is
    thousands of percent, says nothing, and outweighs all others; so rates are compared by their
    difference, and no application is left out.
    """
    if unit(metric) == "points":
        return 100 * measures.mae(predicted, reference, nan="omit")
    return 100 * measures.mape(predicted, reference, nan="omit").value


def by_application(table: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the kernels of each application, as the paper takes them."""
    metrics = table.columns.difference(
        ["app", "label", "class", "kernel", "name", "source"], sort=False
    )
    keys = ["app", "label", "class", "source"]
    return table.groupby(keys, sort=False)[list(metrics)].mean().reset_index()
