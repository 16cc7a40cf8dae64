"""CPI stacks as bars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from warpstack.errors import InputError
from warpstack.models import STACK_COMPONENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that stay apart for colour-blind readers and in grey print (after Okabe and Ito).
COLOURS = {
    "base": "#999999",
    "dep": "#F0E442",
    "l1": "#56B4E9",
    "l2": "#0072B2",
    "dram": "#003a5c",
    "mshr": "#D55E00",
    "noc": "#E69F00",
    "queue": "#CC79A7",
}
LABELS = {
    "base": "BASE: issue",
    "dep": "DEP: arithmetic",
    "l1": "L1 latency",
    "l2": "L2 latency",
    "dram": "DRAM latency",
    "mshr": "MSHR: waiting for MSHRs",
    "noc": "NOC: queueing",
    "queue": "QUEUE: DRAM queueing",
}


def cpi_stack(
    predictions: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw CPI stacks, one bar per row, grouped by kernel; above each bar the IPC of the GPU.

    Parameters
    ----------
    predictions
        Rows of `warpstack.predict` or `warpstack.application_totals`.
    ax
        Where to draw; a new figure of a suitable size when None.
    title
        Title of the axes; by default the GPU.
    legend
        Explain the colours, to the right of the axes.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If there is nothing to draw.
    """
    import matplotlib.pyplot as plt

    if predictions.empty:
        raise InputError("there are no predictions to draw")
    rows = predictions.reset_index(drop=True)
    launches = rows["kernel"] if "kernel" in rows else pd.Series(0, index=rows.index)
    group = launches.ne(launches.shift()).cumsum()
    position = rows.index.to_numpy() + 0.8 * (group.to_numpy() - 1)
    if ax is None:
        width = max(4.2 + 0.42 * len(rows) + 0.3 * group.max(), 6.4)
        _, ax = plt.subplots(figsize=(width, 5.2), layout="constrained")

    bottom = pd.Series(0.0, index=rows.index)
    for component in STACK_COMPONENTS:
        height = rows[f"cpi_{component}"]
        ax.bar(
            position,
            height,
            width=0.84,
            bottom=bottom,
            color=COLOURS[component],
            edgecolor="white",
            linewidth=0.4,
            label=LABELS[component],
        )
        bottom = bottom + height
    for x, top, ipc in zip(position, bottom, rows["ipc"], strict=True):
        ax.annotate(
            f"{ipc:.3g}",
            (x, top),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7,
        )

    labels = rows["model"] + (" " + rows["gpu"] if len(rows["gpu"].unique()) > 1 else "")
    ax.set_xticks(position, labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    ax.tick_params(axis="x", length=0)
    if group.max() > 1:
        for _, members in rows.groupby(group):
            ax.annotate(
                _kernel_label(members),
                (position[members.index].mean(), 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    ax.set_ylabel("cycles per warp instruction of an SM")
    ax.set_ylim(0, float(bottom.max()) * 1.08)
    ax.set_xlim(position[0] - 0.8, position[-1] + 0.8)
    ax.spines[["top", "right"]].set_visible(False)
    if legend:
        handles, names = ax.get_legend_handles_labels()
        ax.legend(
            handles[::-1],
            names[::-1],
            loc="upper left",
            bbox_to_anchor=(1.01, 1),
            frameon=False,
            fontsize=8,
        )
    if title is None:
        title = ", ".join(rows["gpu"].unique()) + " (above the bars: IPC of the GPU)"
    ax.set_title(title, fontsize=10, pad=20 if group.max() > 1 else 6)
    return ax


def cpi_stacks(predictions: pd.DataFrame, *, title: str | None = None) -> Figure:
    """Draw CPI stacks in one panel per kernel, each with its own scale.

    Parameters
    ----------
    predictions
        Rows of `warpstack.predict`.
    title
        Title of the figure; by default the GPU.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        If there is nothing to draw.
    """
    import matplotlib.pyplot as plt

    if predictions.empty:
        raise InputError("there are no predictions to draw")
    groups = [group for _, group in predictions.groupby("kernel", sort=False)]
    columns = min(len(groups), 4)
    rows = math.ceil(len(groups) / columns)
    bars = max(len(group) for group in groups)
    panel = max(1.1 + 0.34 * bars, 1.8)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(max(columns * panel + 2.3, 6.4), rows * 3.6 + 0.6),
        layout="constrained",
        squeeze=False,
    )
    for ax, group in zip(axes.flat, groups, strict=False):
        cpi_stack(group, ax, title=_kernel_label(group), legend=False)
        if ax not in axes[:, 0]:
            ax.set_ylabel("")
    for ax in axes.flat[len(groups) :]:
        ax.set_visible(False)
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside right upper", frameon=False, fontsize=8)
    if title is None:
        title = ", ".join(predictions["gpu"].unique()) + " (above the bars: IPC of the GPU)"
    figure.suptitle(title, fontsize=10)
    return figure


def _kernel_label(group: pd.DataFrame) -> str:
    return f"{group['kernel'].iloc[0]}: {group['name'].iloc[0]}"
