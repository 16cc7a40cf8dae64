"""GPUMech, Figure 16: CPI stacks of three kernels over the number of warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import new_figure, stacked_bars
from warpstack.figures.gpumech import common as gpumech
from warpstack.figures.stages import performance
from warpstack.figures.study import Study
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, HATCHES, LABELS
from warpstack.tables import STACK, STACK_COMPONENTS
from warpstack.timing.simulation import MODEL_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WARPS = (8, 16, 32, 48)
#: Ours after the paper's cfd_step_factor, cfd_compute_flux and kmeans_invert_mapping.
_KERNELS = {"find_step": "cfd", "compute_flux": "cfd", "turn_around": "k-means"}
_PARTS = list(STACK)


def _compute(study: Study) -> pd.DataFrame:
    settings = [gpumech.warps(number) for number in _WARPS]
    table = study.run(performance, settings, ["cfd", "k-means"])
    table = table[table["name"].isin(_KERNELS) & table["model"].isin([MODEL_NAME, "gpumech"])]
    weighted = table[_PARTS].mul(table["instructions"], axis=0)
    keys = table[["name", "setting", "model"]]
    sums = pd.concat([keys, weighted, table[["instructions"]]], axis=1)
    sums = sums.groupby(["name", "setting", "model"], sort=False).sum()
    stacks = sums[_PARTS].div(sums["instructions"], axis=0).reset_index()
    stacks.insert(1, "warps_per_sm", stacks.pop("setting").map(dict(enumerate(_WARPS))))
    oracle = stacks[(stacks["model"] == MODEL_NAME) & (stacks["warps_per_sm"] == _WARPS[0])]
    scale = stacks["name"].map(oracle.set_index("name")[_PARTS].sum(axis=1))
    stacks[_PARTS] = stacks[_PARTS].div(scale, axis=0)
    return stacks


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(10, 3.2)
    for i, (ax, name) in enumerate(zip(figure.subplots(1, 3), _KERNELS, strict=True)):
        rows = table[table["name"] == name].set_index("warps_per_sm")
        stack = rows.loc[rows["model"] == "gpumech", _PARTS]
        stack = stack.set_axis([LABELS[part] for part in STACK_COMPONENTS], axis=1)
        stacked_bars(
            stack,
            colours={LABELS[part]: COLOURS[part] for part in STACK_COMPONENTS},
            hatches={LABELS[part]: HATCHES[part] for part in STACK_COMPONENTS},
            ylabel="CPI relative to the\noracle's at 8 warps" if i == 0 else "",
            ax=ax,
            legend="outside" if i == 2 else None,
        )
        oracle = rows.loc[rows["model"] == MODEL_NAME, _PARTS].sum(axis=1)
        ax.plot(np.arange(len(oracle)), oracle, "o-", color="black", markersize=4, linewidth=1)
        ax.set_title(f"{name} (line: oracle)", fontsize=sheet.LABEL)
        ax.set_xlabel("warps per SM", fontsize=sheet.LABEL)
        ax.tick_params(axis="x", labelrotation=0)
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    cpi = table.set_index(["name", "warps_per_sm", "model"])[_PARTS].sum(axis=1)
    claims = []
    for name in _KERNELS:
        curves = cpi[name].unstack("model")  # noqa: PD010 (nothing is aggregated)
        model, oracle = curves["gpumech"], curves[MODEL_NAME]
        same = bool((np.sign(model.diff().iloc[1:]) == np.sign(oracle.diff().iloc[1:])).all())
        claims.append(
            Claim(
                f"GPUMech predicts the scaling trend of {name} (held here: CPI rises and falls where "
                "the oracle's does)",
                "accurately",
                f"gpumech {', '.join(f'{x:.2f}' for x in model)}; oracle "
                f"{', '.join(f'{x:.2f}' for x in oracle)}",
                same,
            )
        )
    stack = table[table["model"] == "gpumech"].set_index(["name", "warps_per_sm"])
    queues = stack[["cpi_mshr", "cpi_queue"]].sum(axis=1) / stack[_PARTS].sum(axis=1)
    claims.append(
        Claim(
            "MSHR and QUEUE are negligible in the coalesced kernel up to 32 warps, and grow with "
            "divergence",
            "negligible; 14.6 % for compute_flux at 8 warps",
            ", ".join(f"{name} {100 * queues[name, 8]:.1f} %" for name in _KERNELS) + " at 8 warps",
            bool(
                queues["find_step", 8] < 0.05
                and queues["find_step", 8] <= queues["compute_flux", 8] <= queues["turn_around", 8]
            ),
        )
    )
    return claims


figure = PaperFigure(
    name="gpumech-fig16",
    title="CPI stacks by GPUMech over the number of warps",
    paper=f"{gpumech.PAPER}, Figure 16",
    reference=gpumech.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
