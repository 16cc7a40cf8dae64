"""The hierarchical roofline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, not_one_of
from warpstack.plot import sheet
from warpstack.plot.components import LEVELS
from warpstack.plot.press import styled
from warpstack.plot.style import named, styles
from warpstack.tables import checked_table, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names of roofs stand this factor above them.
_ABOVE = 1.12
#: More kernels than this have no names beside their points.
_MOST_NAMES = 6
_COLUMNS = (
    "kernel",
    "name",
    "model",
    "level",
    "intensity",
    "gips",
    "bandwidth_gbs",
    "issue_gips",
    "gpu",
    "gpu_changes",
    "gpu_digest",
)


@styled
@checked
def roofline(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw kernels under the roofs of L1, L2 and DRAM.

    There are no error bars: `warpstack.models.roofline` predicts every launch and SM, never a sample.

    A kernel has a point per level and model: its place is the kernel's intensity at that level and
    the performance that the model predicts. The nearer a point is to the roof of its colour, the
    nearer that level is to its bandwidth.

    Parameters
    ----------
    table
        Rows of `warpstack.models.roofline` for one GPU.
    ax
        Axes to draw on; a new figure if None.
    title
        Title of the axes; by default the GPU.
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
        If these are not such rows, there are no rows, or they are of several GPUs.
    """
    expected = "the rows of warpstack.models.roofline"
    require(table, _COLUMNS, expected, what="roofline: the rows have", rows=True)
    texts = ("gpu", "gpu_changes", "gpu_digest", "model", "level", "name")
    positive = ("gips", "bandwidth_gbs", "issue_gips")
    table = checked_table("roofline", table, positive=positive, perhaps=("intensity",), texts=texts)
    for level in table["level"].unique():
        if level not in LEVELS:
            raise not_one_of("roofline: level", level, LEVELS)
    if len(set(table["gpu_digest"])) > 1:
        raise InputError("roofline: the rows are of several GPUs, which have different roofs")
    if ax is None:
        ax = sheet.new_axes(7, 5)
    drawn = table[(table["intensity"] > 0) & (table["gips"] > 0)]
    issue = float(table["issue_gips"].iloc[0])
    roofs = table.groupby("level", sort=False)["bandwidth_gbs"].first()
    knees = [issue / bandwidth for bandwidth in roofs]
    low = min([*knees, *drawn["intensity"]]) / 4
    high = max([*knees, *drawn["intensity"]]) * 4
    x = np.geomspace(low, high, 400)
    lowest = min(drawn["gips"].min() if len(drawn) else issue, issue / 10) / 3
    limits = ((low, high), (lowest, issue * 2))
    for level, bandwidth in roofs.items():
        label = f"{level} {bandwidth:,.0f} GB/s"
        # The part of the roof inside the axes, a little from their edge.
        start = _free_place(
            ax, label, float(bandwidth), max(low * 1.6, 1.3 * lowest / bandwidth), limits, drawn
        )
        ax.plot(
            x, np.minimum(issue, bandwidth * x), color=sheet.seen(LEVELS[str(level)], ax), lw=1.8
        )
        ax.text(
            start,
            _ABOVE * bandwidth * start,
            label,
            color=sheet.ink(ax),
            fontsize=sheet.TEXT,
            # In the coordinates of the data, at the place of the text.
            rotation=math.degrees(math.atan(_ABOVE * bandwidth)),
            transform_rotates_text=True,
            rotation_mode="anchor",
        )
    ax.annotate(
        f"issue {issue:,.1f} G warp instructions/s",
        (high, issue),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        fontsize=sheet.TEXT,
    )
    looks = styles(drawn["model"])
    many = len(set(drawn["kernel"])) > 1
    for model, part in drawn.groupby("model", sort=False):
        look = looks[str(model)]
        ax.scatter(
            part["intensity"],
            part["gips"],
            # Two levels may have the same intensity: the later one's point lies within the other's.
            s=[90 / 2 ** list(roofs.index).index(level) for level in part["level"]],
            marker=look.marker,
            facecolors=[LEVELS[level] for level in part["level"]],
            edgecolors=sheet.ink(ax),
            linewidths=0.6,
            zorder=3,
        )
        ax.scatter(
            [],
            [],
            marker=look.marker,
            facecolors=sheet.EMPTY,
            edgecolors=sheet.ink(ax),
            linewidths=0.6,
            label=named(model),
        )
        if not many:
            ax.plot(part["intensity"], part["gips"], color="grey", lw=0.6, ls=":", zorder=2)
    _name_kernels(ax, drawn)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set(xlim=limits[0], ylim=limits[1])
    ax.set_xlabel("warp instructions per byte")
    ax.set_ylabel("G warp instructions/s")
    names = drawn["name"].unique()
    gpu = table["gpu"].iloc[0] + (
        f" with {table['gpu_changes'].iloc[0]}" if table["gpu_changes"].iloc[0] else ""
    )
    usual = f"{names[0]} on {gpu}" if len(names) == 1 else gpu
    sheet.set_title(ax, sheet.title_or(title, usual))
    sheet.open_frame(ax)
    if looks:
        sheet.legend_outside(ax)
    return ax


def _name_kernels(ax: Axes, drawn: pd.DataFrame) -> None:
    """Name the fastest point of each kernel, where there are several, but few."""
    if not 1 < drawn["name"].nunique() <= _MOST_NAMES:
        return
    for name, points in drawn.groupby("name", sort=False):
        one = points.sort_values("gips").iloc[-1]
        ax.annotate(
            sheet.short(str(name), 20),
            (one["intensity"], one["gips"]),
            xytext=(6, -3),
            textcoords="offset points",
            va="top",
            fontsize=sheet.SMALL,
            gid=sheet.OPTIONAL,
        )


def _free_place(
    ax: Axes,
    label: str,
    bandwidth: float,
    first: float,
    limits: tuple[tuple[float, float], tuple[float, float]],
    points: pd.DataFrame,
) -> float:
    """Return where along a roof its name begins: the first place, from a given one on, without points.

    Without such a place, it is the one farthest from the points. Distances are in points of text, on axes
    of these limits.
    """
    width, height = sheet.extent(ax)
    size = np.array([sheet.room(ax), 0.77 * height])
    start, end = np.log10(np.array(limits)).T

    def place(x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray((np.log10(np.stack([x, y], axis=-1)) - start) / (end - start) * size)

    direction = size / (end - start)
    direction = direction / np.hypot(*direction)
    length = min(sheet.length(label, sheet.TEXT), width)
    along = np.linspace(0, length, 30)[:, None] * direction
    # The middle of the letters, above the roof.
    along = along + 0.9 * sheet.TEXT * np.array([-direction[1], direction[0]])
    # The lines between the points of a model, too.
    rows = points.groupby(["kernel", "model"])["intensity"].agg(["min", "max"])
    heights = points.groupby(["kernel", "model"])["gips"].first()
    between = np.geomspace(rows["min"], rows["max"], 40)
    others = place(between, np.broadcast_to(heights, between.shape)).reshape(-1, 2)
    best, most = first, -1.0
    last = points["issue_gips"].iloc[0] / bandwidth if len(points) else first
    for x in np.geomspace(first, max(last, first), 60):
        text = place(x, _ABOVE * bandwidth * x) + along
        if not np.all(text < size):
            break
        away = np.hypot(*(text[:, None] - others).T).min(initial=np.inf)
        if away > most:
            best, most = float(x), float(away)
        if away > 2 * sheet.TEXT:
            break
    return best
