"""Drawings that several figures share. All return a `Figure` and leave the global state of pyplot alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from warpstack.plot import sheet
from warpstack.plot.style import styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _figure_of(ax: Axes) -> Figure:
    return cast("Figure", ax.figure)


def tidy(ax: Axes, legend: str | None = "outside") -> None:
    """Give axes the look of all figures; the legend goes outside, to the right, or nowhere."""
    sheet.open_frame(ax)
    sheet.grid(ax, "y")
    ax.tick_params(labelsize=sheet.TEXT)
    if legend == "outside":
        sheet.legend_outside(ax)


def cut(values: pd.DataFrame, limit: float | None) -> tuple[pd.DataFrame, str]:
    """Return values cut at plus and minus a limit, and what the axis then says of it.

    Every figure that leaves out a part of its values does so here, so that none does it silently.
    """
    if limit is None or not (values.abs() > limit).any(axis=None):
        return values, ""
    return values.clip(-limit, limit), f", cut at {limit:g}"


def _write_cut_value(ax: Axes, x: float, full: float, end: float) -> None:
    """Write the value of a bar or point that was cut beside its end."""
    ax.annotate(
        f"{full:.0f}",
        (x, end),
        xytext=(0, 3 if end > 0 else -3),
        textcoords="offset points",
        fontsize=sheet.TINY,
        rotation=90,
        ha="center",
        va="bottom" if end > 0 else "top",
    )


def grouped_bars(
    values: pd.DataFrame,
    *,
    ylabel: str,
    limit: float | None = None,
    gaps: Sequence[int] = (),
    groups: Sequence[str] = (),
    width: float = 9.6,
    ax: Axes | None = None,
    legend: str | None = "outside",
) -> Figure:
    """Draw a group of bars per row, a bar per column.

    Parameters
    ----------
    values
        Rows by label; columns by the name of a model, or another.
    ylabel
        What the values are, with their unit.
    limit
        Longer bars end here, with their value written above.
    gaps
        Rows before which a gap separates the groups.
    groups
        Names of the groups from the first on, written above them.
    width
        Width of the figure, in inches.
    ax
        Axes to draw on; a new figure if None.
    legend
        As for `tidy`.
    """
    if ax is None:
        ax = new_figure(width, 3.4).subplots()
    centres = np.arange(len(values)) + 0.6 * np.searchsorted(
        np.sort(gaps), np.arange(len(values)), "right"
    )
    step = 0.86 / len(values.columns)
    looks = styles(values.columns)
    ends, said = cut(values, limit)
    for i, name in enumerate(values.columns):
        heights = values[name].to_numpy(dtype=float)
        shown = ends[name].to_numpy(dtype=float)
        places = centres + (i - (len(values.columns) - 1) / 2) * step
        look = looks[str(name)]
        ax.bar(
            places,
            shown,
            width=0.94 * step,
            color=look.colour,
            hatch=look.hatch,
            edgecolor=sheet.EDGE,
            linewidth=0.3,
            label=name,
        )
        for x, full, end in zip(places, heights, shown, strict=True):
            if full != end and not np.isnan(full):
                _write_cut_value(ax, x, full, end)
    ax.axhline(0, **sheet.ZERO)
    ax.set_xticks(centres, [str(name) for name in values.index], **sheet.HALF_TURNED)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(centres[0] - 0.6, centres[-1] + 0.6)
    if said:
        ax.margins(y=0.15)  # room for the numbers
    ax.set_ylabel(ylabel + said, fontsize=sheet.LABEL)
    tidy(ax, legend)
    _name_groups(ax, centres, gaps, groups)
    return _figure_of(ax)


def _name_groups(
    ax: Axes, centres: np.ndarray[Any, Any], gaps: Sequence[int], groups: Sequence[str]
) -> None:
    starts = [0, *gaps]
    ends = [*gaps, len(centres)]
    sheet.name_groups(
        ax,
        {
            name: (centres[start], centres[end - 1])
            for name, start, end in zip(groups, starts, ends, strict=False)
            if end > start
        },
    )


def stacked_bars(
    values: pd.DataFrame,
    *,
    colours: Mapping[str, str],
    hatches: Mapping[str, str] | None = None,
    ylabel: str,
    gaps: Sequence[int] = (),
    groups: Sequence[str] = (),
    ax: Axes | None = None,
    width: float = 9.6,
    legend: str | None = "outside",
) -> Figure:
    """Draw a bar per row, stacked by column."""
    if ax is None:
        ax = new_figure(width, 3.4).subplots()
    centres = np.arange(len(values)) + 0.6 * np.searchsorted(
        np.sort(gaps), np.arange(len(values)), "right"
    )
    bottom = np.zeros(len(values))
    for name in values.columns:
        heights = values[name].to_numpy(dtype=float)
        ax.bar(
            centres,
            heights,
            bottom=bottom,
            width=0.8,
            color=colours[name],
            hatch=(hatches or {}).get(name, ""),
            edgecolor=sheet.EDGE,
            linewidth=0.4,
            label=name,
        )
        bottom = bottom + np.nan_to_num(heights)
    ax.set_xticks(centres, [str(name) for name in values.index], **sheet.HALF_TURNED)
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(ylabel, fontsize=sheet.LABEL)
    tidy(ax, None)
    _name_groups(ax, centres, gaps, groups)
    if legend == "outside":
        handles, labels = ax.get_legend_handles_labels()
        sheet.legend_outside(ax, handles[::-1], labels[::-1])
    return _figure_of(ax)


def lines(
    values: pd.DataFrame,
    *,
    xlabel: str,
    ylabel: str,
    limit: float | None = None,
    ax: Axes | None = None,
    legend: str | None = "outside",
    scale: bool = False,
    width: float = 5.8,
) -> Figure:
    """Draw a line per column over the index, equally spaced or, with `scale`, to scale.

    Higher points are drawn at `limit`, and the axis says so; the highest of each line has its value
    written above.
    """
    if ax is None:
        ax = new_figure(width, 3.0).subplots()
    looks = styles(values.columns)
    places: Any = values.index.to_numpy() if scale else np.arange(len(values))
    ends, said = cut(values, limit)
    for name in values.columns:
        look = looks[str(name)]
        ax.plot(
            places,
            ends[name].to_numpy(dtype=float),
            color=look.colour,
            marker=look.marker if len(values) <= 24 else "",
            linestyle=look.line,
            markersize=4,
            linewidth=1.2,
            label=name,
        )
    if scale:
        ax.locator_params(axis="x", integer=True)
    else:
        ax.set_xticks(places, [f"{value:g}" for value in values.index])
    if limit is not None and said:
        heights = values.to_numpy(dtype=float)
        for i in np.unique(np.nanargmax(heights, axis=0)):
            # The largest value of each line that is highest at some place is written.
            if (highest := float(np.nanmax(heights[i]))) > limit:
                _write_cut_value(ax, places[i], highest, limit)
        ax.margins(y=0.15)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(xlabel, fontsize=sheet.LABEL)
    ax.set_ylabel(ylabel + said, fontsize=sheet.LABEL)
    tidy(ax, legend)
    return _figure_of(ax)


def grouped_points(
    values: pd.DataFrame,
    *,
    ylabel: str,
    gaps: Sequence[int] = (),
    groups: Sequence[str] = (),
    width: float = 9.6,
) -> Figure:
    """Draw a point per row and column on a logarithmic axis, where bars would have no foot to stand on."""
    ax = new_figure(width, 3.4).subplots()
    rows = np.arange(len(values))
    centres = rows + 0.6 * np.searchsorted(np.sort(gaps), rows, "right")
    looks = styles(values.columns)
    step = 0.5 / max(len(values.columns), 1)
    for i, name in enumerate(values.columns):
        look = looks[str(name)]
        ax.plot(
            centres + (i - (len(values.columns) - 1) / 2) * step,
            values[name].to_numpy(dtype=float),
            linestyle="",
            marker=look.marker,
            color=look.colour,
            markersize=6,
            label=name,
        )
    ax.set_yscale("log")
    ax.set_xticks(centres, [str(name) for name in values.index], **sheet.HALF_TURNED)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(centres[0] - 0.6, centres[-1] + 0.6)
    ax.set_ylabel(ylabel, fontsize=sheet.LABEL)
    tidy(ax)
    _name_groups(ax, centres, gaps, groups)
    return _figure_of(ax)


def text_table(table: pd.DataFrame, *, width: float, note: str = "") -> Figure:
    """Draw a table of texts."""
    figure = new_figure(width, 0.5 + 0.26 * (len(table) + 1))
    ax = figure.subplots()
    ax.axis("off")
    drawn = ax.table(
        cellText=table.astype(str).to_numpy().tolist(),
        colLabels=[str(name) for name in table.columns],
        loc="center",
        cellLoc="right",
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(sheet.LABEL)
    drawn.scale(1, 1.25)
    drawn.auto_set_column_width(list(range(len(table.columns))))
    for (row, column), cell in drawn.get_celld().items():
        cell.set_edgecolor(sheet.EMPTY)
        if row == 0:
            cell.set_text_props(weight="bold")
            cell.set_facecolor("#eeeeee")
        if column == 0:
            cell.set_text_props(ha="left")
    if note:
        ax.set_title(note, fontsize=sheet.TEXT)
    return figure


def heat_map(
    ax: Axes,
    values: pd.DataFrame,
    *,
    limits: tuple[float, float],
    title: str,
    labels: Sequence[str],
) -> None:
    """Draw values with rows upwards, columns to the right, and the numbers written in."""
    ax.imshow(
        values.to_numpy(),
        origin="lower",
        aspect="auto",
        cmap=sheet.MAP,
        vmin=limits[0],
        vmax=limits[1],
    )
    for (row, column), value in np.ndenumerate(values.to_numpy()):
        light = value > limits[0] + 0.6 * (limits[1] - limits[0])
        colour = "black" if light else "white"
        ax.text(
            column, row, f"{value:.2f}", ha="center", va="center", fontsize=sheet.TEXT, color=colour
        )
    ax.set_xticks(range(len(values.columns)), [f"{value:g}" for value in values.columns])
    ax.set_yticks(range(len(values)), [f"{value:g}" for value in values.index])
    ax.set_xlabel(labels[0], fontsize=sheet.LABEL)
    ax.set_ylabel(labels[1], fontsize=sheet.LABEL)
    ax.set_title(title, fontsize=sheet.TITLE)
    ax.tick_params(labelsize=sheet.TEXT)
