"""The pictures of docs/quality/hardware.md: predicted against measured times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

from warpstack.plot import sheet
from warpstack.plot.style import CURVES, MARKERS

from .tables import SETS

#: Half the width of the band, as a share of the measured time.
BAND = 0.25
COLUMNS = 4


def draw(found: pd.DataFrame) -> Figure:
    """Draw a panel per set: time predicted over time measured, a colour per GPU."""
    suites = [suite for suite in SETS if suite in set(found["suite"])]
    lines = -(-len(suites) // COLUMNS)
    figure = Figure(figsize=(10, 2.6 * lines), layout="constrained")
    axes = np.atleast_1d(figure.subplots(lines, COLUMNS, squeeze=False)).ravel()
    for ax, suite in zip(axes, suites, strict=False):
        group = found[found["suite"] == suite]
        for number, (gpu, points) in enumerate(group.groupby("gpu", sort=False)):
            ax.plot(
                points["measured_us"],
                points["time_us"],
                MARKERS[number],
                color=CURVES[number],
                ms=4,
                alpha=0.8,
                mew=0.3,
                mec=sheet.EDGE,
                label=str(gpu),
            )
        ends = np.array(
            [
                0.8 * group[["measured_us", "time_us"]].min().min(),
                1.25 * group[["measured_us", "time_us"]].max().max(),
            ]
        )
        ax.plot(ends, ends, color="0.4", lw=0.8)
        ax.fill_between(ends, ends * (1 - BAND), ends * (1 + BAND), color="0.85", zorder=0)
        ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        ax.set_title(suite, fontsize=sheet.TITLE)
        ax.set_xlabel("measured (µs)", fontsize=sheet.LABEL)
        ax.set_ylabel("predicted (µs)", fontsize=sheet.LABEL)
        span = ends[1] / ends[0]
        subs = (1, 2, 5) if span < 15 else (1, 3) if span < 100 else (1,)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_major_formatter(FormatStrFormatter("%g"))
            axis.set_minor_locator(NullLocator())
            axis.set_tick_params(labelsize=sheet.TEXT)
        ax.legend(fontsize=sheet.SMALL, frameon=False, handletextpad=0.1, loc="upper left")
        sheet.open_frame(ax)
    for ax in axes[len(suites) :]:
        ax.remove()
    return figure
