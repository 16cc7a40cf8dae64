"""The time line of a program: what host, engines and streams do over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpstack._util.checked import checked
from warpstack.errors import InputError
from warpstack.plot import sheet
from warpstack.plot.press import styled
from warpstack.plot.style import COLOURS, HATCHES
from warpstack.timelines import Timeline, TimelineComparison, spans
from warpstack.timelines.trace_events import ENGINE_NAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["operations"]

#: Spans that are less apart than this share of the picture are drawn as one: they would look so.
_FINEST = 1 / 2000
#: Streams that get a row of their own at most.
_MOST_STREAMS = 12


class _Kind(NamedTuple):
    """How operations of a kind are drawn."""

    label: str
    colour: str
    hatch: str


class _Row(NamedTuple):
    """A row of the picture: a thread of the host, or the operations whose column has a value."""

    title: str
    table: pd.DataFrame | None
    column: str
    value: Any


class _Scale(NamedTuple):
    """A unit of time in us, and the shortest span that is seen, in us."""

    unit: float
    finest: float


_CALL = _Kind("host at work", COLOURS[7], HATCHES[0])
_WAIT = _Kind("host waits", COLOURS[4], HATCHES[1])
_OF_ENGINES = {
    "kernels": _Kind("kernel", COLOURS[0], HATCHES[0]),
    "to_gpu": _Kind("copy to the GPU", COLOURS[2], HATCHES[0]),
    "to_host": _Kind("copy to the host", COLOURS[1], HATCHES[0]),
    "on_gpu": _Kind("copy within the GPU", COLOURS[5], HATCHES[0]),
    "memset": _Kind("memset", COLOURS[3], HATCHES[0]),
    "callback": _Kind("function of the host", COLOURS[6], HATCHES[0]),
}
_HEIGHT = 0.8
#: Operations of a row that are drawn one by one at most.
_MOST_BARS = 400


@styled
@checked
def operations(
    timeline: Timeline | TimelineComparison,
    *,
    ax: Axes | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw the time line of a program: rows for its host threads, the GPU's engines and the streams.

    Parameters
    ----------
    timeline
        The result of `warpstack.timeline`; or of `Timeline.compare`, whose measured operations have rows
        below the predicted ones. Of several iterations the first one is drawn, or the one that is compared.
    ax
        Axes to draw into; new ones by default.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    matplotlib.axes.Axes
        What is on the critical path by its work on the device has a line below it. Of many streams the
        busiest have rows, and the label below counts the others. Operations that are closer to each other
        than can be seen are drawn as one.

    Raises
    ------
    InputError
        If the time line has no operations.
    """
    line = timeline.timeline if isinstance(timeline, TimelineComparison) else timeline
    table = line.table
    if table.empty or not line.time_us > 0:
        raise InputError("operations: the time line has no operations that take time")
    on_device = table[table["engine"] != ""]
    sides, first, last = [("", on_device)], 0.0, line.time_us
    if isinstance(timeline, TimelineComparison):
        measured = timeline._drawn
        sides = [(", predicted", on_device), (", measured", measured)]
        first = min(first, float(measured["start_us"].min()))
        last = max(last, float(measured["end_us"].max()))
    unit, name = _unit(last - first)
    rows = [_Row(f"host thread {thread}", None, "thread", thread) for thread in _threads(table)]
    for engine, title in ENGINE_NAMES.items():
        rows += [
            _Row(f"{title}{which}", one, "engine", engine)
            for which, one in sides
            if (one["engine"] == engine).any()
        ]
    hidden = 0
    for which, one in sides:
        drawn = _streams(one)
        rows += [_Row(f"{_stream(number)}{which}", one, "stream", number) for number in drawn]
        hidden += one["stream"].nunique() - len(drawn)
    others = f"; {hidden} more streams are not drawn" if hidden else ""
    axes = sheet.new_axes(8, 0.9 + 0.33 * len(rows)) if ax is None else ax
    scale = _Scale(unit, (last - first) * _FINEST)
    for place, row in enumerate(rows):
        if row.table is None:
            _draw_host(axes, place, table[table["thread"] == row.value], scale)
            continue
        chosen = row.table[row.table[row.column] == row.value]
        for engine, kind in _OF_ENGINES.items():
            these = chosen[chosen["engine"] == engine]
            _draw(axes, place, these["start_us"], these["end_us"], kind, scale)
        if row.table is on_device:
            _underline(axes, place, chosen[chosen["critical"]], scale)
    limits = (first / unit, last / unit)
    axes.set(xlabel=f"time ({name}){others}", xlim=limits, ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), [row.title for row in rows])
    axes.tick_params(axis="y", length=0)
    sheet.open_frame(axes)
    sheet.grid(axes, "x")
    handles, names = axes.get_legend_handles_labels()
    known = dict(zip(names, handles, strict=True))
    sheet.legend_outside(axes, list(known.values()), list(known))
    return axes


def _unit(time_us: float) -> tuple[float, str]:
    """Return a unit of time in us, and its name, in which a time is some hundreds at most."""
    if time_us < 2e3:
        return 1.0, "us"
    return (1e3, "ms") if time_us < 2e6 else (1e6, "s")


def _threads(table: pd.DataFrame) -> list[int]:
    return sorted(thread for thread in table["thread"].unique().tolist() if thread >= 0)


def _streams(on_device: pd.DataFrame) -> list[int]:
    """Return the streams that get a row: the busiest, in the order of their numbers."""
    busy = (on_device["end_us"] - on_device["start_us"]).groupby(on_device["stream"]).sum()
    found = busy.sort_values(ascending=False, kind="stable").index[:_MOST_STREAMS]
    return sorted(int(stream) for stream in found)


def _stream(number: int) -> str:
    if number < 0:
        return "unknown stream"
    return "default stream" if number == 0 else f"stream {number}"


def _draw_host(axes: Axes, place: int, calls: pd.DataFrame, scale: _Scale) -> None:
    """Draw the calls of a thread: the host's time in them, and how long they wait."""
    begin = calls["queued_us"]
    _draw(axes, place, begin, calls["returned_us"], _WAIT, scale)
    before = calls["returned_us"].shift(fill_value=0.0)
    _draw(axes, place, before.clip(upper=begin), begin, _CALL, scale)


def _draw(
    axes: Axes, place: int, start: pd.Series, stop: pd.Series, kind: _Kind, scale: _Scale
) -> None:
    lasts = (stop > start).to_numpy()
    if not lasts.any():
        return
    finest = scale.finest
    begins, ends = start.to_numpy()[lasts], stop.to_numpy()[lasts]
    if len(begins) > _MOST_BARS:
        # Widened to the right, so that neighbours become one.
        begins, ends = spans.union(begins, ends + finest)
        ends -= finest
    lengths = np.maximum(ends - begins, finest)
    axes.broken_barh(
        list(zip(begins / scale.unit, lengths / scale.unit, strict=True)),
        (place - _HEIGHT / 2, _HEIGHT),
        facecolor=kind.colour,
        hatch=kind.hatch,
        edgecolor=sheet.EDGE,
        linewidth=0.4 if len(begins) < 200 else 0,
        label=kind.label,
    )


def _underline(axes: Axes, place: int, critical: pd.DataFrame, scale: _Scale) -> None:
    """Draw a line below what is on the critical path."""
    if critical.empty:
        return
    finest = scale.finest
    begins, ends = spans.union(
        critical["start_us"].to_numpy(), critical["end_us"].to_numpy() + finest
    )
    axes.hlines(
        np.full(len(begins), place + 0.46),
        begins / scale.unit,
        (ends - finest) / scale.unit,
        color=sheet.ink(axes),
        linewidth=2,
        label="critical path",
    )
