"""CPI stacks as bars."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError
from warpstack.hardware.doubt import RANGE
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, HATCHES, LABELS
from warpstack.plot.looks import look
from warpstack.plot.press import styled
from warpstack.plot.style import named
from warpstack.tables import STACK, STACK_COMPONENTS, checked_table, require

#: Axes narrower than this, in points, have a legend of single words.
_NARROW = 320
#: Rows of panels that are preferred to a row with an empty place.
_MOST_ROWS = 4
#: Points above axes, of a title of two lines and names of kernels.
_ABOVE = 44
#: The least height of axes, in points, that the rest is fitted to.
_LEAST = 40

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
@checked
def cpi_stack(
    predictions: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    legend: bool = True,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw CPI stacks, one bar per row, grouped by kernel; above each bar the IPC of the GPU.

    Predictions of a sample of the SMs or launches have an error bar: the CPI at ``ipc_low`` and ``ipc_high``.

    Parameters
    ----------
    predictions
        Rows of `warpstack.predict` or `warpstack.models.application_totals`.
    ax
        Axes to draw on; a new figure of a suitable size if None.
    title
        Title of the axes; by default the GPUs.
    legend
        Explain the colours, to the right of the axes.
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
    rows = checked_rows(predictions, ("gpu", "model", "ipc"))
    launches = _launches(rows) if "kernel" in rows else pd.Series(0, index=rows.index)
    group = launches.ne(launches.shift()).cumsum()
    position = rows.index.to_numpy() + 0.8 * (group.to_numpy() - 1)
    if ax is None:
        width = max(4.2 + 0.42 * len(rows) + 0.3 * group.max(), 6.4)
        ax = sheet.new_axes(width, 5.2)

    bottom = pd.Series(0.0, index=rows.index)
    for component in STACK_COMPONENTS:
        height = rows[f"cpi_{component}"]
        ax.bar(
            position,
            height,
            width=0.84,
            bottom=bottom,
            color=COLOURS[component],
            hatch=HATCHES[component],
            edgecolor=sheet.EDGE,
            linewidth=0.4,
            label=LABELS[component],
        )
        bottom = bottom + height
    gpus = gpu_titles(rows)
    labels = rows["model"].astype(str) + (" " + gpus if len(gpus.unique()) > 1 else "")
    labels = labels.map(named)
    ax.set_xticks(position, [sheet.short(label) for label in labels], **sheet.TURNED)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(position[0] - 0.8, position[-1] + 0.8)
    sheet.open_frame(ax)
    is_narrow = sheet.extent(ax)[0] < _NARROW
    if legend:
        handles, names = ax.get_legend_handles_labels()
        if is_narrow:
            names = [component.upper() for component in STACK_COMPONENTS]
        sheet.legend_outside(ax, handles[::-1], names[::-1])
    below = max(sheet.length(sheet.short(label), sheet.TEXT) for label in labels.to_list())
    tall = max(sheet.extent(ax)[1] - 0.87 * below - _ABOVE, _LEAST)
    has_bars = "ipc_low" in rows and "ipc_high" in rows
    tops = _draw_bars(ax, position, rows, bottom) if has_bars else bottom
    _write_speeds(ax, position, tops, rows["ipc"], tall)
    _name_height(ax, tall)
    if group.max() > 1:
        for _, members in rows.groupby(group):
            places = position[members.index]
            ends = (places[0], places[-1])
            size = sheet.SMALL if is_narrow else sheet.TEXT
            sheet.name_groups(ax, {_kernel_label(members): ends}, gap=0.6, size=size)
    title = sheet.title_or(title, ", ".join(gpus.unique()) + " (above the bars: IPC of the GPU)")
    sheet.set_title(ax, title, pad=20 if group.max() > 1 else 6)
    return ax


def _draw_bars(
    ax: Axes, position: npt.NDArray[Any], rows: pd.DataFrame, cpi: pd.Series[float]
) -> pd.Series[float]:
    """Draw between which values the CPI of a sample lies; return the upper ends, or that of the bar."""
    low, high = (cpi * rows["ipc"] / rows[f"ipc_{end}"] for end in ("high", "low"))
    return sheet.draw_ends(ax, position, cpi, (low, high), along="y")


def _write_speeds(
    ax: Axes,
    position: npt.NDArray[Any],
    tops: pd.Series[float],
    speeds: pd.Series[float],
    height: float,
) -> None:
    """Write the IPC above each bar, turned where it is too wide, on axes of a height in points."""
    texts = [f"{ipc:.3g}" for ipc in speeds]
    first, last = ax.get_xlim()
    widest = max(sheet.length(text, sheet.SMALL) for text in texts)
    turned = widest > sheet.room(ax) / (last - first)
    needed = (widest if turned else sheet.SMALL) + 4
    ax.set_ylim(0, float(tops.max()) / (1 - min(needed / height, 0.5)))
    for x, top, text in zip(position, tops, texts, strict=True):
        ax.annotate(
            text,
            (x, top),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=sheet.SMALL,
            rotation=90 if turned else 0,
        )


def _name_height(ax: Axes, height: float) -> None:
    """Name the height of the bars on axes of a height in points, in fewer words where they are low."""
    if look().is_compact:
        ax.set_ylabel("CPI (above: IPC)")
        return
    names = ("cycles per warp instruction of an SM", "cycles per instruction", "CPI of an SM")
    fits = [name for name in names if sheet.length(name, sheet.LABEL) <= height]
    ax.set_ylabel((fits or names[-1:])[0], fontsize=sheet.LABEL)


@styled
@checked
def cpi_stacks(
    predictions: pd.DataFrame,
    *,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Figure:
    """Draw CPI stacks in one panel per kernel launch, each with its own scale.

    Launches of several applications stay apart; predictions of one for several GPUs and models
    share its panel.

    Parameters
    ----------
    predictions
        Rows of `warpstack.predict`.
    title
        Title of the figure; by default the GPUs.
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
        If there is nothing to draw, or the frame is not of predictions.
    """
    frame = checked_rows(predictions, ("kernel", "name", "gpu", "model", "ipc"))
    groups = [group for _, group in frame.groupby(_launches(frame), sort=False)]
    columns = min(len(groups), 4)
    bars = max(len(group) for group in groups)
    given = look().width
    if given is not None:  # names of models side by side are the narrowest that is read
        panel = look().sizes[2] / 7 * (0.5 * bars + 0.6)
        columns = _columns(len(groups), max(min(columns, int(given / panel)), 1))
    rows = math.ceil(len(groups) / columns)
    panel = max(1.1 + 0.34 * bars, 1.8)
    width = max(columns * panel + 2.3, 6.4)
    figure, axes = sheet.new_panels(rows, columns, width, rows * 3.6 + 0.6)
    for ax, group in zip(axes.flat, groups, strict=False):
        cpi_stack(group, ax, title="", legend=False)
        fits = int((panel - 0.4) / sheet.length("n", sheet.TEXT / 72))
        name = sheet.short(_kernel_label(group), 2 * fits - 2)
        ax.set_title("\n".join(textwrap.wrap(name, fits)), fontsize=sheet.TEXT)
        if ax not in axes[:, 0]:
            ax.set_ylabel("")
    for ax in axes.flat[len(groups) :]:
        ax.set_visible(False)
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(
        handles[::-1], names[::-1], loc="outside right center", frameon=False, fontsize=sheet.TEXT
    )
    usual = ", ".join(gpu_titles(frame).unique()) + " (above the bars: IPC of the GPU)"
    if title := sheet.title_or(title, usual):
        figure.suptitle(
            textwrap.fill(title, int(figure.get_figwidth() * 72 / (0.6 * sheet.TITLE))),
            fontsize=sheet.TITLE,
        )
    return figure


def _columns(count: int, most: int) -> int:
    """Return how many panels stand side by side: as many as leave no place empty, in up to four rows."""
    full = [n for n in range(most, 0, -1) if count % n == 0 and count / n <= _MOST_ROWS]
    return full[0] if full else most


@checked
def num_launches(predictions: pd.DataFrame) -> int:
    """Return how many panels `cpi_stacks` draws."""
    return int(_launches(predictions).nunique())


def checked_rows(
    predictions: pd.DataFrame, needed: Sequence[str], numbers: Sequence[str] = ("ipc",)
) -> pd.DataFrame:
    """Return the rows, numbered from 0, of a frame that has what is to be drawn."""
    if predictions.empty:
        raise InputError("there are no predictions to draw")
    if {"stream", "start", "end"} <= set(predictions) and not set(STACK) & set(predictions):
        raise InputError(
            "predictions of concurrent=True have no CPI stacks; draw those of warpstack.predict without it"
        )
    numeric = [*numbers, *STACK]
    require(predictions, [*needed, *numeric], "the DataFrame of warpstack.predict")
    texts = ("gpu", "gpu_changes", "gpu_digest", "model", "name", "trace_digest")
    bars = ("ipc_low", "ipc_high", *RANGE)  # the first two only of samples
    table = checked_table("predictions", predictions, numbers=numeric, perhaps=bars, texts=texts)
    return table.reset_index(drop=True)


def _launches(rows: pd.DataFrame) -> pd.Series[int]:
    """Return a number for the launch that each row belongs to.

    Applications number their launches alike, so the same GPU and model again is another launch.
    """
    launch = [name for name in ("kernel", "name", "trace_digest") if name in rows]
    point = [name for name in ("gpu", "gpu_digest", "model") if name in rows]
    again = rows.groupby([*launch, *point], dropna=False).cumcount()
    return rows.groupby([*launch, again], sort=False, dropna=False).ngroup()


@checked
def gpu_titles(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the GPU of each row with the changes made to it."""
    names = rows["gpu"].astype(str)
    if "gpu_changes" not in rows:
        return names
    changes = rows["gpu_changes"].fillna("").astype(str)
    return names + (" with " + changes).where(changes != "", "")


def _kernel_label(group: pd.DataFrame) -> str:
    first = group.iloc[0]
    return f"{first['kernel']}: {first['name']}" if "name" in group else str(first["kernel"])
