"""Cache paper, Figure 10: locality of what reaches L2, with L1's hits and without."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.cache import common as cache_paper
from warpstack.figures.drawing import new_figure, tidy
from warpstack.figures.stages import locality
from warpstack.figures.study import Study
from warpstack.plot import sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_APPLICATIONS = (
    "hotspot",
    "b+tree",
    "2d-convolution",
    "ray-tracing",
    "pageview-rank",
    "inverted-index",
)
_DISTANCES = [2**i for i in range(19)]
_COLOURS = {False: "#D55E00", True: "#0072B2"}
_LABELS = {False: "all accesses", True: "without L1's hits"}


def _compute(study: Study) -> pd.DataFrame:
    names = [name for name in study.names if name in _APPLICATIONS] or study.names[:1]
    settings = {"gpu": cache_paper.GPU, "distances": _DISTANCES}
    return study.run(locality, [settings], names).drop(columns="setting")


def _draw(table: pd.DataFrame) -> Figure:
    groups = list(table.groupby("label", sort=False))
    rows = math.ceil(len(groups) / 3)
    figure = new_figure(9, 2.2 * rows + 0.4)
    axes = figure.subplots(rows, 3, squeeze=False, sharex=True, sharey=True).ravel()
    for ax in axes[len(groups) :]:
        ax.axis("off")
    for i, (ax, (label, group)) in enumerate(zip(axes, groups, strict=False)):
        for filtered, curve in group.groupby("filtered"):
            ax.plot(
                curve["lines"],
                100 * curve["share"],
                color=_COLOURS[bool(filtered)],
                linestyle="-" if filtered else "--",
                label=_LABELS[bool(filtered)],
            )
        ax.set_xscale("log", base=2)
        ax.set_ylim(0, 100)
        ax.set_title(f"{label}: {group['name'].iloc[0]}", fontsize=sheet.LABEL)
        tidy(ax, "outside" if i == min(2, len(groups) - 1) else None)
    figure.supylabel("accesses within the distance (%)", fontsize=sheet.LABEL)
    axes[min(len(groups), 3 * rows - 2) - 1].set_xlabel(
        "stack distance (lines)", fontsize=sheet.LABEL
    )
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    last = table[table["lines"] == 2**15].pivot_table("share", "app", "filtered")
    weaker = int((last[True] < last[False] - 0.01).sum())
    stencil = last.loc["2d-convolution"] if "2d-convolution" in last.index else None
    claims = [
        Claim(
            "without L1's hits locality is weaker, except in hotspot (held here: in most applications, "
            "within 4 MiB)",
            "in all but hotspot",
            f"in {weaker} of {len(last)}",
            weaker > len(last) / 2,
        )
    ]
    if stencil is not None:
        claims.append(
            Claim(
                "in the 2D convolution it falls far (held here: by 10 points, within 4 MiB)",
                "L2 hit rate 90 % to 44 %",
                f"{100 * stencil[False]:.0f} % to {100 * stencil[True]:.0f} %",
                bool(stencil[False] - stencil[True] >= 0.1),
            )
        )
    return claims


figure = PaperFigure(
    name="cache-fig10",
    title="Cumulative stack-distance distributions of L2's accesses, the longest kernel of each",
    paper=f"{cache_paper.PAPER}, Figure 10",
    reference=f"none; 128-byte lines, L1 of {cache_paper.GPU}",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
