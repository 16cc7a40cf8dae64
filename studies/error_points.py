"""Errors of models by application as points, which several studies draw."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from warpstack.plot import sheet
from warpstack.plot.style import styles

#: The classes of applications, in the order of pictures.
CLASSES = {"NMD": "not memory-divergent (NMD)", "MD": "memory-divergent (MD)"}
_TICKS = (-90, -50, -20, -10, 0, 10, 20, 50, 200, 1000)


def draw(ax: Axes, percent: pd.DataFrame, models: Sequence[str], *, names: bool = True) -> None:
    """Draw the errors of each application, a row each, in the groups of their classes.

    `percent` has a row per ``class`` and ``app`` (its index) and a column per model. The points of a
    row are one below the other, a model each, so that none hides another. With `names` the rows and
    groups have theirs.
    """
    looks = styles(models)
    places: list[float] = []
    labels: list[str] = []
    top = 0.0
    for kind in [kind for kind in CLASSES if kind in percent.index]:
        group = percent.loc[kind]
        if names:
            ax.annotate(
                CLASSES[kind], (0, top), (4, 0), ("axes fraction", "data"), "offset points",
                fontsize=sheet.TEXT, va="center", fontstyle="italic",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )  # fmt: skip
        rows = [top + 1 + i for i in range(len(group))]
        for y in rows[::2]:
            ax.axhspan(y - 0.5, y + 0.5, zorder=0, color="0.94", linewidth=0)
        for number, model in enumerate(models):
            shift = (number - (len(models) - 1) / 2) * 0.8 / len(models)
            ax.plot(
                group[model],
                [y + shift for y in rows],
                linestyle="",
                marker=looks[model].marker,
                color=looks[model].colour,
                markeredgecolor=sheet.EDGE,
                markeredgewidth=0.4,
                markersize=5,
                label=model if not places else None,
            )
        places += rows
        labels += [str(app) for app in group.index]
        top = rows[-1] + 1
    ax.set_yticks(places, labels if names else [""] * len(places), fontsize=sheet.TEXT)
    ax.set_ylim(top - 0.4, -0.6)
    # Equal steps up to 20 %, equal ratios beyond: errors reach from a percent to a factor of twenty.
    ax.set_xscale("symlog", linthresh=20, linscale=0.8)
    shown = [t for t in _TICKS if percent.min().min() * 1.1 <= t <= percent.max().max() * 1.1]
    ax.set_xticks(shown, [f"{t:+d}" if t else "0" for t in shown], fontsize=sheet.TEXT)
    ax.minorticks_off()
    ax.set_xlim(min(percent.min().min() * 1.3, -20), percent.max().max() * 1.3)
    ax.set_xlabel("error of the IPC (%); logarithmic beyond 20 %", fontsize=sheet.TEXT)
    ax.axvline(0, **sheet.ZERO)
    ax.tick_params(axis="y", length=0)
    sheet.open_frame(ax)
