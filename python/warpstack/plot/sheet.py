"""The style sheet: sizes, colours and lines that pictures repeat, and what gives axes their look.

They are arguments of each call, not Matplotlib's ``rcParams``: axes may be the caller's and older than the
call, and ticks that are made only when the picture is written would have the caller's settings again.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Sizes of text, in points: of titles; names of axes; ticks, legends and notes; numbers at bars.
TITLE = 10
LABEL = 9
TEXT = 8
SMALL = 7
TINY = 6

#: The edge of bars and points in the colours of models.
EDGE = "#222222"
#: Of what stands beside the data: remarks, and cells without a value.
REMARK = "#444444"
EMPTY = "#bbbbbb"

GRID: dict[str, Any] = {"color": "#dddddd", "linewidth": 0.6}
#: Lines that are no data: the axis at zero, and what values are compared with.
ZERO: dict[str, Any] = {"color": "black", "linewidth": 0.8}
GUIDE: dict[str, Any] = {"color": "#888888", "linewidth": 0.8}

#: A legend to the right of the axes.
OUTSIDE: dict[str, Any] = {
    "loc": "upper left",
    "bbox_to_anchor": (1.01, 1),
    "frameon": False,
    "fontsize": TEXT,
}
#: Names below bars that stand too close for names side by side.
TURNED: dict[str, Any] = {
    "rotation": 60,
    "ha": "right",
    "rotation_mode": "anchor",
    "fontsize": TEXT,
}
#: The same in the papers' figures, whose bars are farther apart.
HALF_TURNED: dict[str, Any] = {"rotation": 45, "ha": "right"}


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of a size in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def make_room(ax: Axes) -> None:
    """Let the figure of axes make room for legends, names and titles, unless its owner has decided.

    Without a layout engine (``plt.subplots(1, 2)``) a legend beside axes lies over the next ones.
    """
    figure: Any = ax.figure
    while not hasattr(figure, "set_layout_engine"):  # of a part of a figure
        figure = figure.figure
    if figure.get_layout_engine() is None:
        # Matplotlib refuses where a colour bar has been placed already.
        with contextlib.suppress(RuntimeError):
            figure.set_layout_engine("constrained")


def open_frame(ax: Axes) -> None:
    """Leave the frame of axes open above and to the right, and make room for what is beside it."""
    make_room(ax)
    ax.spines[["top", "right"]].set_visible(False)


def grid(ax: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw a light grid behind the data."""
    ax.grid(True, axis=axis, **GRID)
    ax.set_axisbelow(True)


def legend_outside(ax: Axes, *entries: Any) -> None:
    """Explain the data, or the entries, to the right of axes."""
    make_room(ax)
    ax.legend(*entries, **OUTSIDE)
