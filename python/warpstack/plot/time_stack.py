"""Times as stacks: which part of a kernel's time goes to what."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked
from warpstack.hardware.doubt import RANGE
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, HATCHES, LABELS
from warpstack.plot.cpi_stack import checked_rows, gpu_titles
from warpstack.plot.press import styled
from warpstack.plot.style import named
from warpstack.tables import STACK_COMPONENTS, TIME

#: Inches: of a bar, and of what is above and below all bars.
_BAR, _AROUND = 0.42, 1.1
#: Parts of all times below this are not in the legend.
_LEAST = 0.002
#: Error bars end here, in times of the longest bar.
_MOST = 2.5
#: The launch, which no component of a CPI stack is.
_LAUNCH: dict[str, Any] = {"color": "#ffffff", "hatch": "....", "label": "launch"}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
@checked
def time_stack(
    predictions: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    legend: bool = True,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw times of kernels, one bar per row, divided as the cycles are; at its end the time.

    Unlike CPI stacks, bars of versions of a kernel can be compared: they differ in their instructions.
    Error bars are the ranges of `warpstack.predict`: nine of ten measured times of kernels of this kind lie
    inside. What reaches beyond 2.5 times the longest bar is cut off. Rows without ``time_us_low`` and
    ``time_us_high`` have bars if they are of a sample: of 95 %, by what the sample may be wrong.

    Parameters
    ----------
    predictions
        Rows of `warpstack.predict`, whose times are in microseconds.
    ax
        Axes to draw on; a new figure of a suitable size if None.
    title
        Title of the axes; by default the GPUs.
    legend
        Explain the colours, below the axes.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If there is nothing to draw, or the frame is not of predictions.
    """
    is_sample = bool({"ipc_low", "ipc_high"} & set(predictions))
    rows = checked_rows(predictions, ("gpu", "model"), (*TIME, *(("ipc",) if is_sample else ())))
    if ax is None:
        ax = sheet.new_axes(6.4, _BAR * len(rows) + _AROUND)
    places = np.arange(len(rows))[::-1]
    work = rows["time_us"] - rows["launch_us"]
    parts = [("launch", rows["launch_us"], _LAUNCH)]
    for component in STACK_COMPONENTS:
        look: dict[str, Any] = {
            "color": COLOURS[component],
            "hatch": HATCHES[component],
            "label": LABELS[component],
        }
        share = (rows[f"cpi_{component}"] / rows["cpi"]).fillna(0.0)
        parts.append((component, work * share, look))
    left = pd.Series(0.0, index=rows.index)
    for _, width, look in parts:
        if float(width.max()) > _LEAST * float(rows["time_us"].max()):
            ax.barh(
                places, width, height=0.72, left=left, edgecolor=sheet.EDGE, linewidth=0.4, **look
            )
        left = left + width
    ends = _draw_bars(ax, places, rows).clip(upper=_MOST * rows["time_us"].max())
    for place, time, end in zip(places, rows["time_us"], ends, strict=True):
        ax.annotate(
            f"{time:.3g}",
            (end, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=sheet.TEXT,
        )
    ax.set_yticks(places, _labels(rows))
    ax.tick_params(axis="y", length=0, labelsize=sheet.TEXT)
    ax.tick_params(axis="x", labelsize=sheet.TEXT)
    ax.set_xlim(0, 1.12 * float(ends.max()))
    ax.set_xlabel("time (us)", fontsize=sheet.LABEL)
    sheet.open_frame(ax)
    if legend:
        sheet.make_room(ax)
        ax.figure.legend(
            *ax.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=3,
            frameon=False,
            fontsize=sheet.TEXT,
        )
    sheet.set_title(ax, sheet.title_or(title, ", ".join(gpu_titles(rows).unique())))
    return ax


def _draw_bars(ax: Axes, places: npt.NDArray[np.int64], rows: pd.DataFrame) -> pd.Series[float]:
    """Draw between which values the times lie as far as rows say so; return the upper ends, or the times."""
    time = rows["time_us"]
    if set(RANGE) <= set(rows):
        return sheet.draw_ends(ax, places, time, (rows[RANGE[0]], rows[RANGE[1]]), along="x")
    if not {"ipc_low", "ipc_high"} <= set(rows):
        return time
    # A launch takes what it takes; only the work is the sample's.
    low, high = (
        rows["launch_us"] + (time - rows["launch_us"]) * rows["ipc"] / rows[f"ipc_{end}"]
        for end in ("high", "low")
    )
    return sheet.draw_ends(ax, places, time, (low, high), along="x")


def _labels(rows: pd.DataFrame) -> list[str]:
    """Return what tells the bars apart: kernels, and models and GPUs where there are several."""
    kernels = rows["name"] if "name" in rows else rows.get("kernel", pd.Series("", rows.index))
    parts = [kernels.astype(str)]
    for column in (gpu_titles(rows), rows["model"].map(named)):
        if len(column.unique()) > 1:
            parts.append(column)
    texts = [", ".join(filter(None, row)) for row in zip(*parts, strict=True)]
    return ["\n".join(textwrap.wrap(sheet.short(text), 22)) for text in texts]
