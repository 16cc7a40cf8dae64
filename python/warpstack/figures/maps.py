"""Performance over SMs and DRAM bandwidth, side by side: MDM's Figures 11 and 12."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import heat_map, new_figure
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import performance
from warpstack.figures.study import Study
from warpstack.timing.simulation import MODEL_NAME
from warpstack.validation import measures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMS, _DRAM = (15, 28, 56, 80), (240, 480, 720, 960)
_BASELINE = (28, 480)
_SHOWN = (MODEL_NAME, "gpumech", "mdm", "closed_network")


def figure_of(
    name: str, number: int, app: str, check: Callable[[pd.DataFrame], list[Claim]]
) -> PaperFigure:
    """Return the figure of an application."""
    return PaperFigure(
        name=name,
        title=f"Performance of {app} over SMs and DRAM bandwidth, normalised to the simulation at "
        "28 SMs and 480 GB/s",
        paper=f"{mdm.PAPER}, Figure {number}",
        reference=mdm.REFERENCE,
        compute=functools.partial(_compute, app=app),
        draw=_draw,
        check=check,
        needs_all=False,
    )


def _compute(study: Study, app: str) -> pd.DataFrame:
    points = list(itertools.product(_SMS, _DRAM))
    settings = [mdm.at(num_sms=sms, dram_bandwidth_gbs=dram) for sms, dram in points]
    table = study.run(performance, settings, [app])
    cycles = table.groupby(["setting", "model"], sort=False)["cycles"].sum().reset_index()
    cycles = cycles[cycles["model"].isin(_SHOWN)]
    baseline = cycles[
        (cycles["setting"] == points.index(_BASELINE)) & (cycles["model"] == MODEL_NAME)
    ]
    return pd.DataFrame(
        {
            "num_sms": cycles["setting"].map(lambda i: points[i][0]),
            "dram_bandwidth_gbs": cycles["setting"].map(lambda i: points[i][1]),
            "model": cycles["model"],
            "performance": float(baseline["cycles"].iloc[0]) / cycles["cycles"],
        }
    ).reset_index(drop=True)


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(11.5, 3.2)
    limits = (0.0, float(table["performance"].max()))
    for ax, model in zip(figure.subplots(1, len(_SHOWN)), _SHOWN, strict=True):
        rows = table[table["model"] == model]
        values = rows.pivot_table("performance", "dram_bandwidth_gbs", "num_sms")
        heat_map(ax, values, limits=limits, title=model, labels=("SMs", "DRAM bandwidth (GB/s)"))
    return figure


def gain(table: pd.DataFrame, model: str) -> float:
    """Return the performance at 80 SMs and 960 GB/s over that at 15 SMs and 240 GB/s."""
    rows = table[table["model"] == model].set_index(["num_sms", "dram_bandwidth_gbs"])
    values = rows["performance"]
    return float(values[_SMS[-1], _DRAM[-1]] / values[_SMS[0], _DRAM[0]])


def rank_correlation(table: pd.DataFrame, model: str) -> float:
    """Return Spearman's correlation of a model's points with the simulation's."""
    values = table.pivot_table("performance", ["num_sms", "dram_bandwidth_gbs"], "model")
    return float(measures.spearman(values[model], values[MODEL_NAME]))


def error(table: pd.DataFrame, model: str) -> float:
    """Return the mean absolute error over the points in percent."""
    values = table.pivot_table("performance", ["num_sms", "dram_bandwidth_gbs"], "model")
    return float(100 * (values[model] / values[MODEL_NAME] - 1).abs().mean())
