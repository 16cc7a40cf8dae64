"""GPUMech, Figure 4: what each part of the model contributes, on SRAD."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import grouped_bars
from warpstack.figures.errors import kernel_errors, percent
from warpstack.figures.gpumech import common as gpumech
from warpstack.figures.stages import performance
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = ("naive_interval", "mt", "mt_mshr", "gpumech")


def _compute(study: Study) -> pd.DataFrame:
    errors = kernel_errors(study.run(performance, [gpumech.at()], ["srad"]))
    return errors[errors["model"].isin([*_STEPS, "closed_network"])].drop(columns="setting")


def _draw(table: pd.DataFrame) -> Figure:
    absolute = table.assign(error=100 * table["error"].abs())
    rows = absolute.pivot_table("error", "name", "model", sort=False)[[*_STEPS, "closed_network"]]
    figure = grouped_bars(rows, ylabel="error of the CPI (%)", width=6)
    figure.axes[0].tick_params(axis="x", labelrotation=0)
    for label in figure.axes[0].get_xticklabels():
        label.set_horizontalalignment("center")
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    means = 100 * table.assign(error=table["error"].abs()).groupby("model")["error"].mean()
    steps = means[list(_STEPS)]
    return [
        Claim(
            "each further part (multithreading, MSHRs, DRAM bandwidth) lowers the error",
            "falls step by step",
            ", ".join(f"{model} {percent(value)}" for model, value in steps.items()),
            bool(steps.is_monotonic_decreasing),
        )
    ]


figure = PaperFigure(
    name="gpumech-fig4",
    title="Error of the CPI of srad's kernels by what is modelled",
    paper=f"{gpumech.PAPER}, Figure 4",
    reference=f"{gpumech.REFERENCE}; unlike the paper's, these kernels are not memory-divergent",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
