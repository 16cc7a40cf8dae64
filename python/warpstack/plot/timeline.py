"""The activity of a simulated GPU over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpstack._util.checked import checked
from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, HATCHES, LABELS
from warpstack.plot.press import styled
from warpstack.tables import STACK_COMPONENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["timeline"]

#: Steps that are drawn at most: finer ones would not be seen.
_MOST_STEPS = 200


@styled
@checked
def timeline(
    samples: pd.DataFrame,
    *,
    ax: Axes | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw what the issue slots were used for or lost to, over time.

    Parameters
    ----------
    samples
        `SimulationResult.timeline` of a simulation with ``timeline=True``.
    ax
        Axes to draw into; new ones by default.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    matplotlib.axes.Axes
        Stacked shares of the issue slots. Those lost to a load count when it is done.

    Raises
    ------
    InputError
        If there are fewer than two samples, or the table has other columns.
    """
    columns = [f"slots_{part}" for part in STACK_COMPONENTS]
    missing = [column for column in ["cycle", *columns] if column not in samples]
    if missing:
        raise InputError(f"timeline: the samples have no column {missing[0]}")
    if len(samples) < 2:
        raise InputError(
            f"timeline: {len(samples)} samples; simulate with timeline=True or a smaller timeline_cycles"
        )
    step = -(-(len(samples) - 1) // _MOST_STEPS)
    at = samples.iloc[::step]
    lost = np.diff(at[columns].to_numpy(dtype=float), axis=0)
    total = lost.sum(axis=1, keepdims=True)
    shares = np.divide(lost, total, out=np.zeros_like(lost), where=total > 0)
    axes = sheet.new_axes(7, 3) if ax is None else ax
    cycles = at["cycle"].to_numpy()
    below = np.zeros(len(shares))
    for number, part in enumerate(STACK_COMPONENTS):
        above = below + shares[:, number]
        axes.fill_between(
            cycles,
            np.append(below, below[-1]),
            np.append(above, above[-1]),
            step="post",
            facecolor=COLOURS[part],
            hatch=HATCHES[part],
            edgecolor=sheet.EDGE,
            linewidth=0,
            label=LABELS[part],
        )
        below = above
    axes.set(
        xlabel="cycle",
        ylabel="share of issue slots",
        xlim=(cycles[0], cycles[-1]),
        ylim=(0, 1),
    )
    sheet.open_frame(axes)
    handles, names = axes.get_legend_handles_labels()
    sheet.legend_outside(axes, handles[::-1], names[::-1])
    return axes
