"""Cache paper, Figure 8: traffic of DRAM, predicted against the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.cache import common as cache_paper
from warpstack.figures.drawing import new_figure, tidy
from warpstack.figures.study import Study
from warpstack.plot import sheet
from warpstack.plot.style import styles
from warpstack.validation import measures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _compute(study: Study) -> pd.DataFrame:
    table = cache_paper.by_kernel(study)
    keys = ["app", "label", "class", "kernel", "name"]
    wide = table.pivot_table("dram_total", keys, "source", sort=False).reset_index()
    return wide[[*keys, *cache_paper.MODELS, cache_paper.SIMULATION]]


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(5, 4.2)
    ax = figure.subplots()
    looks = styles(cache_paper.MODELS)
    for model in cache_paper.MODELS:
        seen = table[(table[model] > 0) & (table[cache_paper.SIMULATION] > 0)]
        ax.plot(
            seen[cache_paper.SIMULATION],
            seen[model],
            looks[model].marker,
            color=looks[model].colour,
            markersize=4,
            alpha=0.7,
            label=model,
        )
    ends = [
        1.0,
        float(table[[*cache_paper.MODELS, cache_paper.SIMULATION]].to_numpy(dtype=float).max()),
    ]
    ax.plot(ends, ends, **sheet.ZERO)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("sectors to and from DRAM, simulated", fontsize=sheet.LABEL)
    ax.set_ylabel("the same, predicted", fontsize=sheet.LABEL)
    tidy(ax)
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    r = {m: measures.pearson(table[m], table[cache_paper.SIMULATION]) for m in cache_paper.MODELS}
    near = {
        m: float(
            np.mean(
                np.abs(table[m] - table[cache_paper.SIMULATION])
                <= 0.1 * table[cache_paper.SIMULATION]
            )
        )
        for m in cache_paper.MODELS
    }
    return [
        Claim(
            "functional simulation lies nearer to the line than PPT-GPU-Mem (held here: more of the "
            "kernels within a tenth)",
            "correlation 1.00 against 0.94",
            f"{100 * near['warpstack']:.0f} % against {100 * near['ppt_gpu_mem']:.0f} % of "
            f"{len(table)} kernels; correlation {r['warpstack']:.3f} against {r['ppt_gpu_mem']:.3f}",
            near["warpstack"] > near["ppt_gpu_mem"],
        )
    ]


figure = PaperFigure(
    name="cache-fig8",
    title="Traffic of DRAM by kernel",
    paper=f"{cache_paper.PAPER}, Figure 8",
    reference=cache_paper.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
