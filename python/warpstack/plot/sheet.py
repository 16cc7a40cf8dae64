"""The style sheet: sizes, colours and lines that pictures repeat, and what gives axes their look.

They are arguments of each call, not Matplotlib's ``rcParams``: axes may be the caller's and older than the
call, and ticks that are made only when the picture is written would have the caller's settings again.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from warpstack.plot.looks import look

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Sizes of text, in points: of titles; names of axes; ticks, legends and notes; numbers at bars.
TITLE = 10
LABEL = 9
TEXT = 8
SMALL = 7
TINY = 6

#: The edge of bars and points in the colours of models.
EDGE = "#222222"
#: Colour of what stands beside the data: remarks, and cells without a value.
REMARK = "#444444"
EMPTY = "#bbbbbb"

#: The colours of maps, which keep their order for colour-blind readers and in grey print.
MAP = "cividis"

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
HALF_TURNED: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
#: Longer names are shortened in the middle, or they would leave no room for the data.
LONGEST = 40
#: The width of a character as a share of the size of text, about.
_CHARACTER = 0.58
#: Points to the left of axes, of their name and the numbers.
_BESIDE = 45


def new_size(width: float, height: float) -> tuple[float, float]:
    """Return the size in inches of a new figure: the one given, or of the look's width and as flat."""
    wanted = look().width
    if wanted is None:
        return width, height
    return wanted, min(max(wanted * height / width, 2.2), max(height, 0.8 * wanted))


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of a size in inches, if the look has no other width."""
    _, axes = new_panels(1, 1, width, height)
    ax: Axes = axes[0, 0]
    return ax


def new_panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """Return a new figure of a size in inches, if the look has no other width, and rows of its axes."""
    import matplotlib.pyplot as plt

    from warpstack.plot.saving import PrintedFigure

    return plt.subplots(
        rows,
        columns,
        figsize=new_size(width, height),
        layout="constrained",
        FigureClass=PrintedFigure,
        squeeze=False,
    )


def title_or(title: str | None, usual: str) -> str:
    """Return the title of axes: the one given, else the usual one, which captions of compact figures say."""
    if title is not None:
        return title
    return "" if look().is_compact else usual


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


def ink(ax: Axes) -> str:
    """Return the colour of text and guiding lines on axes: black, or white in a dark style."""
    return "white" if _luminance(ax.get_facecolor()) < 0.25 else "black"


def seen(colour: str, ax: Axes) -> str:
    """Return a colour, or the ink of axes on whose ground it would not be seen: black on black."""
    lightest, darkest = sorted((_luminance(colour), _luminance(ax.get_facecolor())), reverse=True)
    # The contrast of WCAG 2.1.
    return (
        colour
        if (lightest + 0.05) / (darkest + 0.05) >= (3 if look().is_dark else 1.5)
        else ink(ax)
    )


def _luminance(colour: Any) -> float:
    """Return the relative luminance of a colour (WCAG 2.1), from 0 to 1."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def short(name: object, most: int = LONGEST) -> str:
    """Return a name of limited length: both ends of a longer one, because names differ there."""
    text = str(name)
    if len(text) <= most:
        return text
    kept = max(most - 1, 2)
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


def extent(ax: Axes) -> tuple[float, float]:
    """Return width and height of the part of a figure that is for axes and what is beside them, in points."""
    figure: Any = ax.figure
    while not hasattr(figure, "get_size_inches"):
        figure = figure.figure
    width, height = figure.get_size_inches()
    place = ax.get_position()
    # Before the layout is made, they stand where Matplotlib puts them: about a fifth is for names and ticks.
    return min(72 * width, 72 * width * place.width / 0.775), 72 * height * place.height / 0.77


def room(ax: Axes) -> float:
    """Return the width of axes in points, about, when there is room for the legend beside them."""
    width, _ = extent(ax)
    if look().is_compact:
        return width - _BESIDE
    legend = ax.get_legend()
    if legend is None or legend.get_bbox_to_anchor().x0 < ax.bbox.x1:
        return 0.775 * width
    names = [text.get_text() for text in legend.get_texts()]
    beside = TEXT * (3.6 + _CHARACTER * max(map(len, names), default=0))
    return max(width - _BESIDE - beside, 0.2 * width)


def length(text: str, size: float) -> float:
    """Return the length of text of a size in points, about."""
    return _CHARACTER * size * len(text)


def fitting(ax: Axes, share: float = 1.0, size: float = TEXT) -> int:
    """Return how many characters of a size fit into a share of the width of axes, about."""
    return int(share * room(ax) / (_CHARACTER * size))


def fit_into_cells(ax: Axes, texts: Iterable[str], columns: int) -> bool:
    """Return whether texts fit into as many equal cells side by side as axes of a look's width have."""
    width = (look().width or 0) * 72 - _BESIDE
    return all(length(text, look().sizes[2]) * 1.1 < width / columns for text in texts)


def set_title(ax: Axes, title: str, **options: Any) -> None:
    """Give axes a title in lines as long as they are wide, so that it ends before the next axes."""
    if look().is_compact and "pad" in options:
        options["pad"] = 4 + 1.3 * look().sizes[2] * (options["pad"] > 10)
    width = max(fitting(ax, size=TITLE), 20)
    lines = [
        part for line in title.splitlines() for part in textwrap.wrap(line, width, max_lines=3)
    ]
    ax.set_title("\n".join(lines), fontsize=TITLE, **options)


def name_groups(
    ax: Axes,
    places: Mapping[str, tuple[float, float]],
    space: float = 4,
    *,
    gap: float = 0,
    size: float = TEXT,
) -> None:
    """Write names of groups above axes, over the middles between their first and last places.

    `gap` is how much farther apart groups are than places.
    """
    first, last = ax.get_xlim()
    for name, (start, end) in places.items():
        ax.annotate(
            short(name, max(fitting(ax, (end - start + 1 + gap) / abs(last - first), size), 4)),
            ((start + end) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, space),
            textcoords="offset points",
            ha="center",
            fontsize=size,
        )


#: The mark of notes that may be left out where they would lie over others.
OPTIONAL = "optional"


def note_points(ax: Axes, x: Iterable[float], y: Iterable[float], texts: Iterable[str]) -> None:
    """Write a note to the upper left of each point of a rising curve, where there is room."""
    for at, height, text in zip(x, y, texts, strict=True):
        ax.annotate(
            text,
            (at, height),
            xytext=(-4, 2),
            textcoords="offset points",
            ha="right",
            fontsize=SMALL,
            gid=OPTIONAL,
        )
    ax.margins(x=0.2)


def draw_ends(
    ax: Axes,
    places: npt.NDArray[Any],
    values: pd.Series[float],
    ends: tuple[pd.Series[float], pd.Series[float]],
    *,
    along: Literal["x", "y"],
) -> pd.Series[float]:
    """Draw between which ends, lower and upper, values of samples lie; return the upper ends, or the values.

    Values are along the axis `along`, and places along the other one. A value without both ends gets no bar.
    """
    low, high = ends
    known = (low.notna() & high.notna()).to_numpy()
    across = "y" if along == "x" else "x"
    how: dict[str, Any] = {
        along: values[known],
        across: places[known],
        f"{along}err": [(values - low)[known].clip(lower=0), (high - values)[known].clip(lower=0)],
    }
    ax.errorbar(**how, fmt="none", ecolor=ink(ax), elinewidth=1, capsize=3)
    return high.where(known, values)


def open_frame(ax: Axes) -> None:
    """Leave the frame of axes open above and to the right, and make room for what is beside it."""
    make_room(ax)
    ax.spines[["top", "right"]].set_visible(False)


def scale_frame(ax: Axes, factor: float) -> None:
    """Make the frame of axes thicker or thinner."""
    for line in ax.spines.values():
        line.set_linewidth(line.get_linewidth() * factor)


def grid(ax: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw a faint grid behind the data."""
    ax.grid(True, axis=axis, **(GRID if ink(ax) == "black" else GRID | {"color": REMARK}))
    ax.set_axisbelow(True)


def below(low: float) -> dict[str, Any]:
    """Return the place of a legend whose top is at a height of the axes."""
    return {"loc": "upper center", "bbox_to_anchor": (0.5, low)}


def legend_outside(ax: Axes, *entries: Any) -> None:
    """Explain the data, or the entries, to the right of axes."""
    make_room(ax)
    handles, names = entries if entries else ax.get_legend_handles_labels()
    ax.legend(handles, [short(name) for name in names], **OUTSIDE)
