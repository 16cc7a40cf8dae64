"""Predictions against references: errors as bars, values as points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, not_one_of, shown
from warpstack.plot import sheet
from warpstack.plot.cpi_stack import gpu_titles
from warpstack.plot.looks import look
from warpstack.plot.press import styled
from warpstack.plot.style import named, styles
from warpstack.tables import checked_table, require
from warpstack.validation.quantities import is_additive
from warpstack.validation.validate import MATCHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNITS = {"cycles": "cycles", "time_s": "seconds", "ipc": "warp instructions per cycle"}


@styled
@checked
def errors(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    limit_percent: float | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw the error of each workload as bars, one per set of predictions, and their mean.

    A bar above 0 is a prediction above the reference. The last group, set apart, holds the mean of
    the absolute errors (MAPE). If all applications are workloads of the package, they are in two
    groups: those that are not memory-divergent (NMD), and those that are (MD). Predictions of a sample
    have no error bars, whose ends `warpstack.validate` does not keep.

    Parameters
    ----------
    table
        The result of `warpstack.validate`. Kernels without a counterpart have no bar.
    ax
        Axes to draw on; a new figure of a suitable size if None.
    by
        What a workload is: ``kernel`` or ``app`` (the sum of its kernels); by default the
        application when there are several and the metric adds up.
    limit_percent
        Cut longer bars there and write their value at the end.
    title
        Title of the axes; by default the metric and the references.
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
        If there is nothing to draw, the metric cannot be summed, or the table is not of
        `warpstack.validate`.
    """
    rows = _checked(table)
    metric = str(rows["metric"].iloc[0])
    if by is None:
        by = "app" if len(rows["app"].unique()) > 1 and is_additive(metric) else "kernel"
    if by not in ("kernel", "app"):
        raise not_one_of("by", by, ("kernel", "app"))
    if by == "app" and not is_additive(metric):
        raise InputError(f"{metric} of kernels cannot be summed to that of an application")
    if limit_percent is not None and not limit_percent > 0:
        raise InputError(f"limit_percent = {shown(limit_percent)} is not above 0")
    workload = rows["app"].where(rows["app"] != "", "all") if by == "app" else _kernel_labels(rows)
    sums = rows.assign(workload=workload).pivot_table(
        ["predicted", "measured"], "workload", "set", aggfunc="sum", sort=False
    )
    percent = 100 * (sums["predicted"] / sums["measured"] - 1)
    percent = percent.loc[workload.unique(), rows["set"].unique()]
    kinds = _divergence(percent.index) if by == "app" else {}
    percent = percent.loc[[name for names in kinds.values() for name in names] or percent.index]

    bars = len(percent.columns)
    groups = len(percent) + 1
    if ax is None:
        width = float(np.clip(2.6 + 0.16 * bars * groups + 0.2 * groups, 6.4, 24))
        ax = sheet.new_axes(width, 4.6)
    # Groups of workloads, and the mean over all, are set apart.
    gaps = np.cumsum([len(names) for names in kinds.values()])[:-1]
    centres = np.arange(len(percent)) + 0.6 * np.searchsorted(
        gaps, np.arange(len(percent)), "right"
    )
    centres = np.append(centres, centres[-1] + 1.4)
    step = 0.84 / bars
    looks = styles(percent.columns)
    was_cut = False
    for i, name in enumerate(percent.columns):
        heights = np.append(percent[name].to_numpy(), percent[name].abs().mean())
        drawn = (
            heights if limit_percent is None else np.clip(heights, -limit_percent, limit_percent)
        )
        places = centres + (i - (bars - 1) / 2) * step
        ax.bar(
            places,
            drawn,
            width=0.92 * step,
            color=sheet.seen(looks[name].colour, ax),
            hatch=looks[name].hatch,
            edgecolor=sheet.EDGE,
            linewidth=0.5,
            label=named(name),
        )
        for x, full, end in zip(places, heights, drawn, strict=True):
            if full != end and not np.isnan(full):
                was_cut = True
                ax.annotate(
                    f"{full:.0f}",
                    (x, end),
                    xytext=(0, 2 if end > 0 else -2),
                    textcoords="offset points",
                    fontsize=sheet.TINY,
                    rotation=90,
                    ha="center",
                    va="bottom" if end > 0 else "top",
                )
    ax.axhline(0, **sheet.ZERO | {"color": sheet.ink(ax)})
    ax.axvline(centres[-1] - 0.7, linestyle=":", **sheet.GUIDE)
    labels = [*map(sheet.short, percent.index), "mean of\n|errors|"]
    # Each name has the width of its group; some room must be left between two.
    crowded = max(map(len, labels[:-1])) + 2 > sheet.fitting(ax, 1 / (centres[-1] + 1.2))
    turned = sheet.HALF_TURNED if crowded else {}
    ax.set_xticks(centres, labels, fontsize=sheet.TEXT, **turned)
    ax.tick_params(axis="x", length=0)
    said = f", cut at {limit_percent:g}" if was_cut else ""
    ax.set_ylabel(f"error of the prediction (%){said}")
    ax.set_xlim(-0.6, centres[-1] + 0.6)
    ax.margins(y=0.12)
    sheet.open_frame(ax)
    sheet.grid(ax, "y")
    sheet.legend_outside(ax)
    firsts = np.append(0, gaps).astype(int)
    sheet.name_groups(
        ax,
        {
            kind: (centres[first], centres[first + len(names) - 1])
            for first, (kind, names) in zip(firsts, kinds.items(), strict=False)
        },
    )
    sheet.set_title(ax, sheet.title_or(title, _title(rows)), pad=18 if kinds else 6)
    return ax


@styled
@checked
def scatter(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw predicted against measured values on logarithmic axes, with the line where they agree.

    Predictions of a sample have no error bars, whose ends `warpstack.validate` does not keep.

    Parameters
    ----------
    table
        The result of `warpstack.validate`. A point is a kernel; those without a counterpart, and
        values of 0, have none.
    ax
        Axes to draw on; a new figure if None.
    title
        Title of the axes; by default the metric and the references.
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
        If there is nothing to draw, or the table is not of `warpstack.validate`.
    """
    rows = _checked(table)
    rows = rows[(rows["predicted"] > 0) & (rows["measured"] > 0)]
    if rows.empty:
        raise InputError("there is no pair of positive values to draw")
    if ax is None:
        ax = sheet.new_axes(6.4, 5.0)
    low = rows[["predicted", "measured"]].min().min() / 1.5
    high = rows[["predicted", "measured"]].max().max() * 1.5
    ends = np.array([low, high])
    ax.plot(ends, ends, color=sheet.ink(ax), linewidth=1, label="equal")
    for factor, style in ((2, "--"), (10, ":")):
        for slope, label in ((factor, f"factor {factor}"), (1 / factor, None)):
            ax.plot(ends, slope * ends, linestyle=style, label=label, **sheet.GUIDE)
    looks = styles(rows["set"])
    for name, group in rows.groupby("set", sort=False):
        ax.scatter(
            group["measured"],
            group["predicted"],
            s=34,
            marker=looks[str(name)].marker,
            color=sheet.seen(looks[str(name)].colour, ax),
            edgecolor=sheet.EDGE,
            linewidth=0.5,
            alpha=0.75,
            label=named(name),
            zorder=3,
        )
    what = str(rows["metric"].iloc[0])
    unit = f" ({_UNITS[what]})" if _UNITS.get(what, what) != what else ""
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.set_xlabel(f"{what}{unit}, reference")
    ax.set_ylabel(f"{what}{unit}, predicted")
    sheet.open_frame(ax)
    sheet.legend_outside(ax)
    sheet.set_title(ax, sheet.title_or(title, _title(rows)))
    return ax


@styled
@checked
def agreement(
    table: pd.DataFrame,
    *,
    by: str | None = None,
    limit_percent: float | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Figure:
    """Draw how far predictions agree with references: `scatter` and `errors`, a panel each.

    The panels stand side by side where the figure is six inches wide or wider in the style of a
    paper, and one below the other elsewhere.

    Parameters
    ----------
    table
        The result of `warpstack.validate`.
    by, limit_percent
        As for `errors`.
    title
        Title of the figure; by default the metric and the references.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        As for `errors` and `scatter`.
    """
    rows = _checked(table)
    is_wide = look().is_compact and (look().width or 0) >= 6 * look().sizes[2] / 7
    figure, panels = sheet.new_panels(*((1, 2) if is_wide else (2, 1)), 9, 9)
    upper, lower = panels.flat
    scatter(table, upper, title="")
    errors(table, lower, by=by, limit_percent=limit_percent, title="")
    if look().is_compact:
        upper.set_aspect("auto")
        _names_inside(upper)
        _names_inside(lower)
        low, high = lower.get_ylim()
        lower.set_ylim(low, high + 0.12 * (high - low))
    if text := sheet.title_or(title, _title(rows)):
        figure.suptitle(text, fontsize=sheet.TITLE)
    return figure


def _names_inside(ax: Axes) -> None:
    """Move the names of axes into their corners, which leaves the data most room in a column of a paper."""
    for name, place, horizontal, vertical in (
        (ax.get_ylabel(), (0.02, 0.98), "left", "top"),
        (ax.get_xlabel(), (0.98, 0.02), "right", "bottom"),
    ):
        ax.annotate(
            name,
            place,
            xycoords="axes fraction",
            ha=horizontal,
            va=vertical,
            fontsize=sheet.LABEL,
            bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1},
            zorder=2,
        )
    ax.set(xlabel="", ylabel="")


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    """Return the matched rows, with the set of predictions that each belongs to."""
    texts = ("source", "app", "name", "gpu", "gpu_changes", "model", "metric", "status")
    compared = ("predicted", "measured")
    require(table, (*texts, "kernel", *compared), "the result of validate")
    table = checked_table("table", table, perhaps=(*compared, "kernel"), texts=texts)
    rows = table[table["status"] == MATCHED].copy()
    if rows[["predicted", "measured"]].dropna().empty:
        raise InputError("there are no matched kernels to draw")
    if len(rows["metric"].unique()) > 1:
        raise InputError("the table has several metrics; draw one at a time")
    # An empty name would be no column of its own below.
    rows["set"] = rows["model"].where(rows["model"] != "", "prediction").astype(str)
    gpus = gpu_titles(rows)
    if len(gpus.unique()) > 1:
        rows["set"] += ", " + gpus
    if len(rows["source"].unique()) > 1:
        rows["set"] += " vs " + rows["source"]
    return rows


def _divergence(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by class, NMD first; nothing unless all are workloads, of both classes."""
    from warpstack import workloads

    known = set(workloads.names())
    names = list(names)
    if not known.issuperset(names):
        return {}
    divergent = [name for name in names if workloads.get(name).memory_divergent]
    others = [name for name in names if name not in divergent]
    return {"NMD": others, "MD": divergent} if divergent and others else {}


def _kernel_labels(rows: pd.DataFrame) -> pd.Series[str]:
    numbers = rows["kernel"].map(lambda number: "" if pd.isna(number) else f"{number} ")
    apps = rows["app"] + " " if len(rows["app"].unique()) > 1 else ""
    return (apps + numbers + rows["name"]).str.strip()


def _title(rows: pd.DataFrame) -> str:
    return f"{rows['metric'].iloc[0]} against {', '.join(rows['source'].unique())}"
