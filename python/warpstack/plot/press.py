"""Makes drawn pictures fit a style: sizes of text, the legend below, names that wrap, room for the data.

A function of pictures draws as for a notebook; what only a finished layout shows, such as whether two names
overlap, is mended afterwards, on measured texts. One rule for all pictures: see `styled`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from warpstack.errors import InputError
from warpstack.plot import sheet
from warpstack.plot.components import LABELS
from warpstack.plot.looks import Look, drawing, look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

__all__ = ["DATA_SHARE", "data_share", "styled"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: The least share of a compact figure's area that axes have, a little above what is promised: two thirds.
DATA_SHARE = 0.675
#: Rounds of measuring and mending, each of which may change what the others saw.
_ROUNDS = 6
#: The most height of a figure of one row of panels, in its widths, and what a further row adds.
_STEEPEST, _STEEPER = 1.44, 0.14
#: Lines that a name below an axis may take before it is turned.
_MOST_LINES = 3
#: Rows that a legend of long names may take before short ones replace them.
_MOST_ROWS = 2
_SHORT = {text: component.upper() for component, text in LABELS.items()}


def styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """Give a function of pictures its parameters ``style`` and ``width_inches``.

    The function declares both, and draws without them. Raises `InputError` for a style that does not exist,
    a width that is not one, and a width together with axes, whose figure has one.
    """
    signature = inspect.signature(draw)

    @functools.wraps(draw)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if "style" not in kwargs and "width_inches" not in kwargs:
            return draw(*args, **kwargs)
        look = look_of(
            cast(str, kwargs.get("style", "notebook")),
            cast("float | None", kwargs.get("width_inches")),
        )
        try:
            ax = signature.bind(*args, **kwargs).arguments.get("ax")
        except TypeError:
            return draw(*args, **kwargs)  # Python's own message names the function
        if ax is not None:
            if kwargs.get("width_inches") is not None:
                raise InputError(
                    "width_inches: the axes given have a figure of their own; leave ax or width_inches out"
                )
            look = dataclasses.replace(look, width=None)
        with drawing(look):
            drawn = draw(*args, **kwargs)
            _finish(drawn, look, is_new=ax is None)
        return drawn

    return call


def _finish(drawn: Any, look: Look, *, is_new: bool) -> None:
    figure = drawn if hasattr(drawn, "add_subplot") else drawn.figure
    panels = [ax for ax in figure.axes if ax.get_visible()] if is_new else [drawn]
    if look.is_dark:
        for ax in panels:
            _darken(ax)
    if not look.is_compact:
        return
    texts = figure.findobj(_is_text) if is_new else drawn.findobj(_is_text)
    _set_sizes(texts, panels, look)
    for ax in panels:
        _set_marks(ax, look)
    if is_new:
        _fit_figure(figure, panels, look)
    else:
        _legend_below_axes(drawn, look)
        _drop_overlapping(drawn)


def _is_text(artist: object) -> bool:
    from matplotlib.text import Text

    return isinstance(artist, Text)


def _darken(ax: Axes) -> None:
    """Make edges and later ticks of axes seen on a dark ground."""
    import matplotlib as mpl

    ax.tick_params(colors=mpl.rcParams["text.color"])
    for patch in ax.patches:
        if mpl.colors.to_hex(patch.get_edgecolor()) == sheet.EDGE:
            patch.set_edgecolor(sheet.EMPTY)


def _set_sizes(texts: Sequence[Text], panels: Sequence[Axes], look: Look) -> None:
    """Give texts the size that a look has in the place of theirs."""
    own = (sheet.TITLE, sheet.LABEL, sheet.TEXT, sheet.SMALL, sheet.TINY)

    def size(was: float) -> float:
        return look.sizes[min(range(len(own)), key=lambda i: abs(own[i] - was))]

    names = {id(axis.label) for ax in panels for axis in (ax.xaxis, ax.yaxis)}
    for text in texts:
        # Names of axes that nobody gave a size have Matplotlib's, that of titles.
        text.set_fontsize(look.sizes[1] if id(text) in names else size(float(text.get_fontsize())))
    for ax in panels:
        ax.tick_params(labelsize=look.sizes[2], pad=look.sizes[2] / 4, length=look.sizes[2] / 3)
        ax.tick_params(which="minor", length=look.sizes[2] / 5)
        for axis in (ax.xaxis, ax.yaxis):
            axis.labelpad = look.sizes[2] / 4
            if axis.get_majorticklines() and not axis.get_majorticklines()[0].get_markersize():
                axis.set_tick_params(length=0)


def _set_marks(ax: Axes, look: Look) -> None:
    """Scale lines and markers."""
    for line in ax.lines:
        line.set_linewidth(line.get_linewidth() * look.marks)
        line.set_markersize(line.get_markersize() * look.marks)
    for points in ax.collections:
        if len(getattr(points, "get_sizes", list)()):
            cast(Any, points).set_sizes(cast(Any, points).get_sizes() * look.marks**2)
    sheet.scale_frame(ax, look.marks)


def _fit_figure(figure: Figure, panels: Sequence[Axes], look: Look) -> None:
    """Lay a figure out: the legend below, no text over another, enough height for the data."""
    width = cast(float, look.width)
    gap = look.sizes[2] / 3 / 72
    figure.set_layout_engine("constrained", w_pad=gap / 2, h_pad=gap / 2, wspace=0.02, hspace=0.02)
    _legend_below_figure(figure, panels, look)
    for _ in range(_ROUNDS):
        figure.draw_without_rendering()
        changed = sum(_fit_ticks(ax) + _fit_names(ax) + _raise_top(ax) for ax in panels) > 0
        figure.draw_without_rendering()
        height = _height_for(figure, panels, look)
        if abs(height - figure.get_figheight()) > 0.02:
            figure.set_size_inches(width, height)
            changed = True
        if not changed:
            break
    figure.draw_without_rendering()
    for ax in panels:
        _drop_overlapping(ax)


def data_share(figure: Figure) -> float:
    """Return the share of a drawn figure's area that axes with data have, colour bars not among them."""
    boxes = [ax.bbox for ax in _data_axes(figure.axes)]
    area = sum(box.width * box.height for box in boxes)
    return float(area / (figure.bbox.width * figure.bbox.height))


def _data_axes(panels: Sequence[Axes]) -> list[Axes]:
    return [ax for ax in _places(panels) if ax.get_visible()]


def _places(panels: Sequence[Axes]) -> list[Axes]:
    """Return the axes that data have or could have: the last row of panels may not be full."""
    return [ax for ax in panels if ax.get_label() != "<colorbar>"]


def _height_for(figure: Figure, panels: Sequence[Axes], look: Look) -> float:
    """Return the height in inches at which axes have their share, if what is around them stays the same."""
    width, height = figure.get_size_inches()
    first = _data_axes(panels)[0]
    if first.get_aspect() != "auto":  # axes as high as they are wide, whatever place they have
        place = first.get_position(original=True)
        return float(place.width * width + (1 - place.height) * height)
    boxes = [ax.bbox for ax in _places(figure.axes)]
    across = max(
        sum(box.width for box in boxes if abs(box.y0 - one.y0) < 0.2 * one.height) for one in boxes
    )
    across /= figure.bbox.width
    area = sum(box.width * box.height for box in boxes) / (figure.bbox.width * figure.bbox.height)
    down = min(area / across, 1.0)
    around = height * (1 - down)
    rows = len({round(box.y0) for box in boxes})
    least = around / max(1 - DATA_SHARE / across, 0.08)
    # Wide figures are flatter.
    usual = 0.17 * look.sizes[2] + 0.27 * width
    if rows > 1:  # each at least 1.2 inches high in the column of a paper
        usual = around + rows * (0.15 * look.sizes[2] + 0.05 * width)
    # Axes too narrow for their share get no share from height: it would only grow, round by round.
    most = max(usual, (_STEEPEST + _STEEPER * (rows - 1)) * width)
    return float(min(max(least, usual), most))


def _legend_entries(panels: Sequence[Axes], figure: Figure) -> dict[str, Any]:
    """Return handles by name of all legends, which are taken away."""
    found: dict[str, Any] = {}
    legends = [legend for ax in panels if (legend := ax.get_legend()) is not None]
    for legend in (*legends, *figure.legends):
        handles: Any = getattr(legend, "legend_handles", None) or getattr(
            legend, "legendHandles", ()
        )
        for handle, text in zip(handles, legend.get_texts(), strict=True):
            found.setdefault(text.get_text(), handle)
        legend.remove()
    figure.legends.clear()
    return found


def _legend_below_figure(figure: Figure, panels: Sequence[Axes], look: Look) -> None:
    """Put all legends below the axes, in as few rows as their width takes."""
    entries = _legend_entries(panels, figure)
    if not entries:
        return
    order = [text for pair in _SHORT.items() for text in pair]
    if set(entries) <= set(order):  # from the bottom of stacks to the top
        entries = dict(sorted(entries.items(), key=lambda item: order.index(item[0])))
    legend, rows = _place(figure, entries, look)
    if rows > _MOST_ROWS and any(name in _SHORT for name in entries):
        legend.remove()
        _place(figure, {_SHORT.get(name, name): one for name, one in entries.items()}, look)


def _options(look: Look) -> dict[str, Any]:
    return {
        "frameon": False,
        "fontsize": look.sizes[2],
        "borderpad": 0.1,
        "borderaxespad": 0.1,
        "labelspacing": 0.25,
        "columnspacing": 0.6,
        "handlelength": 1.0,
        "handletextpad": 0.3,
    }


def _place(figure: Figure, entries: dict[str, Any], look: Look) -> tuple[Any, int]:
    """Place a legend below the axes of a figure; return it with the number of its rows."""
    items = list(entries.items())
    count = len(items)
    most = figure.bbox.width / figure.dpi * 72 - look.sizes[2] / 2
    # As many rows as it takes, all of about the same length.
    for columns in dict.fromkeys(-(-count // rows) for rows in range(1, count + 1)):
        # Matplotlib fills column after column; readers go row by row.
        turned = [item for first in range(columns) for item in items[first::columns]]
        legend = figure.legend(
            [handle for _, handle in turned],
            [name for name, _ in turned],
            loc="outside lower center",
            ncols=columns,
            **_options(look),
        )
        width = legend.get_window_extent(cast(Any, figure.canvas).get_renderer()).width
        if width / figure.dpi * 72 <= most or columns == 1:
            break
        legend.remove()
    return legend, -(-count // columns)


def _legend_below_axes(ax: Axes, look: Look) -> None:
    """Put the legend of axes of the caller's figure below them."""
    legend = ax.get_legend()
    if legend is None:
        cast(Any, ax.figure).draw_without_rendering()
        _fit_ticks(ax)
        return
    handles: Any = legend.legend_handles
    names = [text.get_text() for text in legend.get_texts()]
    legend.remove()
    figure = cast(Any, ax.figure)
    for _ in range(2):
        figure.draw_without_rendering()
        _fit_ticks(ax)
    figure.draw_without_rendering()
    box = ax.get_tightbbox()
    low = 0.0 if box is None else (box.y0 - ax.bbox.y0) / ax.bbox.height
    ax.legend(
        handles,
        [_SHORT.get(name, name) for name in names],
        **sheet.below(low),
        ncols=min(len(names), 4),
        **_options(look),
    )


def _fit_ticks(ax: Axes) -> bool:
    """Wrap names below and beside axes that have no room; return whether any has changed."""
    if ax.get_label() == "<colorbar>":
        return False
    changed = _fit_below(ax)
    return _fit_beside(ax) or changed


def _shown(labels: Sequence[Text]) -> list[Text]:
    return [label for label in labels if label.get_visible() and label.get_text()]


def _fixed(axis: Any) -> bool:
    """Return whether ticks of an axis have names that somebody gave them."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter

    return isinstance(axis.get_major_locator(), FixedLocator) and isinstance(
        axis.get_major_formatter(), (FixedFormatter, FuncFormatter)
    )


def _fit_below(ax: Axes) -> bool:
    """Wrap the names below axes, or turn them all upright where a wrap does not help."""
    if not _fixed(ax.xaxis):
        return False
    labels = ax.get_xticklabels()
    places = np.asarray(ax.transData.transform([(x, 0) for x in ax.get_xticks()]))[:, 0]
    if not len(places):
        return False
    gaps = np.diff(places)
    gap = float(min(gaps)) if len(gaps) else ax.bbox.width
    room = gap - 0.5 * _points(ax, float(labels[0].get_fontsize()))
    whole = [label.get_text().replace("\n", " ") for label in labels]
    are_numbers = all(re.fullmatch(r"[-\d.e+]*", text) for text in whole)
    texts = whole if are_numbers else [wrapped(ax, text, labels[0], room) for text in whole]
    widest = max(_width(ax, text, labels[0]) for text in texts)
    lines = max(text.count("\n") + 1 for text in texts)
    turned = labels[0].get_rotation() == 90
    turned |= not are_numbers and (widest > room or lines > _MOST_LINES)
    if turned:  # in as many lines as stand side by side there
        texts = [_in_lines(ax, text, labels[0], room) for text in whole]
    if [label.get_text() for label in labels] == texts and (
        labels[0].get_rotation() == (90 if turned else 0)
    ):
        return False
    ax.set_xticks(
        ax.get_xticks(),
        texts,
        rotation=90 if turned else 0,
        ha="center",
        va="top",
        rotation_mode="default",
        linespacing=0.95,
        fontsize=labels[0].get_fontsize(),
    )
    return True


def _in_lines(ax: Axes, text: str, like: Text, room: float) -> str:
    """Return a text in as many lines as have room beside each other, as short as that makes it."""
    most = max(int(room / _points(ax, float(like.get_fontsize()))), 1)
    width = _width(ax, text, like)
    for share in (0.5, 0.6, 0.7, 0.8):
        broken = wrapped(ax, text, like, share * width)
        if broken.count("\n") < most:
            return broken
    return text


def _fit_names(ax: Axes) -> bool:
    """Wrap the names of axes that are longer than these; return whether any has changed."""
    changed = False
    whole = cast(Any, ax.figure).bbox
    for label, room in ((ax.yaxis.label, ax.bbox.height), (ax.xaxis.label, whole.width)):
        # What is wrapped stays so while it fits: the room that this makes would join it again.
        new = text = label.get_text()
        if _width(ax, text, label) > room:
            new = wrapped(ax, text.replace("\n", " "), label, 0.98 * room)
        changed |= new != label.get_text()
        label.set_text(new)
    return changed


def _fit_beside(ax: Axes) -> bool:
    """Wrap names beside axes that are wider than a sixth of the figure, where their places leave room."""
    labels = _shown(ax.get_yticklabels())
    if not (_fixed(ax.yaxis) and labels):
        return False
    most = cast(Any, ax.figure).bbox.width / 6
    if max(_width(ax, label.get_text(), label) for label in labels) <= most:
        return False
    all_of_them = ax.get_yticklabels()
    texts = [wrapped(ax, label.get_text().replace("\n", " "), label, most) for label in all_of_them]
    if texts == [label.get_text() for label in all_of_them]:
        return False
    ax.set_yticks(ax.get_yticks(), texts, fontsize=labels[0].get_fontsize(), linespacing=0.95)
    return True


def _points(ax: Axes, points: float) -> float:
    return float(points * cast(Any, ax.figure).dpi / 72)


def _width(ax: Axes, text: str, like: Text) -> float:
    """Return the width in pixels of a text set as another one."""
    renderer = cast(Any, ax.figure).canvas.get_renderer()
    font = like.get_fontproperties()
    widths = [
        renderer.get_text_width_height_descent(line, font, ismath=False)[0]
        for line in text.split("\n")
    ]
    return float(max(widths))


def wrapped(ax: Axes, text: str, like: Text, room: float) -> str:
    """Return a text in lines of at most a width in pixels, broken at spaces and behind joints."""
    lines = [""]
    for piece in re.findall(r"[^\s_,-]*[_,-]+|[^\s_,-]+|\s+", text):
        longer = lines[-1] + piece
        if lines[-1].strip() and _width(ax, longer.strip(), like) > room:
            lines.append(piece.lstrip())
        else:
            lines[-1] = longer
    return "\n".join(line.strip() for line in lines if line.strip())


def _raise_top(ax: Axes) -> bool:
    """Make room below the top of axes for notes above bars; return whether there was too little."""
    if ax.get_yscale() != "linear" or ax.images or ax.get_label() == "<colorbar>":
        return False
    tops = [
        text.get_window_extent().y1
        for text in ax.texts
        if text.get_text() and getattr(text, "xycoords", "data") == "data"
    ]
    over = max(tops, default=-np.inf) - ax.bbox.y1
    if over <= 1 or over > ax.bbox.height / 2:
        return False
    low, high = ax.get_ylim()
    if high < low:
        return False
    ax.set_ylim(low, low + (high - low) * ax.bbox.height / (ax.bbox.height - over - 1))
    return True


def _drop_overlapping(ax: Axes) -> None:
    """Leave out numbers at ticks, and optional notes, that would lie over their neighbours."""
    notes: list[Any] = []
    for text in ax.texts:
        if text.get_gid() == sheet.OPTIONAL:
            box = text.get_window_extent()
            text.set_visible(not any(box.overlaps(other) for other in notes))
            notes += [box] if text.get_visible() else []
    for axis, scale in ((ax.xaxis, ax.get_xscale()), (ax.yaxis, ax.get_yscale())):
        if scale == "log":
            _thin_minor(axis)
        if not _fixed(axis):
            continue
        last = None
        texts = []
        for label in axis.get_ticklabels():
            box = label.get_window_extent()
            shown = label.get_text()
            if last is not None and shown and box.expanded(1.02, 1.0).overlaps(last):
                shown = ""
            elif shown:
                last = box
            texts.append(shown)
        if texts != [label.get_text() for label in axis.get_ticklabels()]:
            axis.set_ticklabels(texts)


def _thin_minor(axis: Any) -> None:
    """Label only 2 and 5 between the powers of ten of an axis whose labels lie over each other."""
    from matplotlib.ticker import LogLocator

    labels = [*axis.get_ticklabels(), *_shown(axis.get_ticklabels(minor=True))]
    boxes = [label.get_window_extent().expanded(1.05, 1.0) for label in labels if label.get_text()]
    if any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i]):
        axis.set_minor_locator(LogLocator(subs=(2, 5)))
