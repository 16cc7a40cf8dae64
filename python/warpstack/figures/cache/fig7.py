"""Cache paper, Figure 7: hit rates of L1 and L2 by application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.cache import common as cache_paper
from warpstack.figures.drawing import grouped_bars, new_figure
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = {
    "l1_hit_rate": "L1 hit rate (%)",
    "l2_hit_rate": "L2 hit rate (%)",
    "l2_read_hit_rate": "L2 read hit rate (%)",
}
_SHOWN = [*cache_paper.MODELS, cache_paper.SIMULATION]


def _compute(study: Study) -> pd.DataFrame:
    means = cache_paper.by_application(cache_paper.by_kernel(study))
    return means[["app", "label", "class", "source", *_PANELS]]


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(9.6, 6.4)
    gaps = [int((table.drop_duplicates("label")["class"] == "NMD").sum())]
    for i, (ax, (metric, title)) in enumerate(
        zip(figure.subplots(3, 1), _PANELS.items(), strict=True)
    ):
        values = 100 * table.pivot_table(metric, "label", "source", sort=False, dropna=False)
        grouped_bars(
            values.reindex(columns=_SHOWN),
            ylabel=title,
            gaps=gaps,
            groups=("NMD", "MD") if i == 0 else (),
            ax=ax,
            legend="outside" if i == 0 else None,
        )
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    values = table.pivot_table("l2_read_hit_rate", "app", "source")
    above = int((values["ppt_gpu_mem"] > values[cache_paper.SIMULATION]).sum())
    return [
        Claim(
            "PPT-GPU-Mem's L2 read hit rate is too high in many applications (held here: in most)",
            "many",
            f"{above} of {len(values)}",
            above > len(values) / 2,
        )
    ]


figure = PaperFigure(
    name="cache-fig7",
    title="Hit rates of L1 and L2",
    paper=f"{cache_paper.PAPER}, Figure 7",
    reference=cache_paper.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
