"""The roofline of the report, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from warpstack.plot.style import styles
from warpstack.reporting.drawing import svg

__all__ = ["roofline_picture"]

_WIDTH, _HEIGHT = 720, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 708, 12, 286


class _Scale:
    """A logarithmic scale from values to places."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self.low, self.high, self.first = low, high, first
        self.factor = (last - first) / math.log(high / low)

    def __call__(self, value: float) -> float:
        return self.first + self.factor * math.log(value / self.low)

    def decades(self) -> list[float]:
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**exponent for exponent in range(first, last + 1)]


def roofline_picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the roofs of the levels of memory, and a point per level and model, as in `plot.roofline`.

    Parameters
    ----------
    rows
        Rows of `warpstack.models.roofline` for one kernel and GPU. Levels without traffic have no point.

    Returns
    -------
    str
        An SVG with the classes of the report's style, and a legend of the models' markers.
    """
    points = [row for row in rows if row["intensity"] > 0 and row["gips"] > 0]
    issue = float(rows[0]["issue_gips"])
    roofs = {str(row["level"]): float(row["bandwidth_gbs"]) for row in rows}
    knees = [issue / bandwidth for bandwidth in roofs.values()]
    places = [*knees, *(row["intensity"] for row in points)]
    x = _Scale(min(places) / 3, max(places) * 3, _LEFT, _RIGHT)
    # Roofs start within the picture, however slow the kernel is.
    lowest = min([issue / 10, *(row["gips"] for row in points)]) / 2
    y = _Scale(lowest, issue * 2, _BOTTOM, _TOP)
    shapes = _axes(x, y)
    for level, bandwidth in roofs.items():
        start = max(x.low, y.low / bandwidth)
        knee = issue / bandwidth
        part = level.lower()
        shapes.append(
            f'<polyline class="roof r-{part}" points="{x(start):.1f},{y(bandwidth * start):.1f} '
            f'{x(knee):.1f},{y(issue):.1f} {x(x.high):.1f},{y(issue):.1f}">'
            f"<title>{level}: {bandwidth:,.0f} GB/s</title></polyline>"
        )
        turn = math.degrees(math.atan2(y(issue) - y(bandwidth * start), x(knee) - x(start)))
        at = math.sqrt(start * knee)
        shapes.append(
            f'<text class="middle" transform="translate({x(at):.1f} {y(bandwidth * at) - 5:.1f}) '
            f'rotate({turn:.1f})">{level} {bandwidth:,.0f} GB/s</text>'
        )
    shapes.append(
        f'<text x="{_RIGHT}" y="{y(issue) - 5:.1f}" class="end">issue {issue:,.1f} G/s</text>'
    )
    looks = styles(row["model"] for row in rows)
    for row in points:
        what = (
            f"{row['model']}, {row['level']}: {row['intensity']:.3g} instructions per byte, "
            f"{row['gips']:.3g} G/s"
        )
        # Two levels may have the same intensity: the point of the later one lies within the other's.
        radius = 9 - 2.5 * list(roofs).index(str(row["level"]))
        marker = looks[str(row["model"])].marker
        shapes.append(
            _marker(marker, x(row["intensity"]), y(row["gips"]), radius)
            + f' class="point c-{str(row["level"]).lower()}"><title>{escape(what)}</title></path>'
        )
    words = "; ".join(
        f"{row['model']} {row['level']} {row['roof_fraction']:.0%} of the roof" for row in points
    )
    return svg(_HEIGHT, f"roofline: {words}", shapes) + _legend(looks, list(roofs))


def _axes(x: _Scale, y: _Scale) -> list[str]:
    shapes = [f'<path class="axis" d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}"/>']
    for value in x.decades():
        at = x(value)
        shapes.append(f'<path class="grid" d="M{at:.1f} {_TOP}V{_BOTTOM}"/>')
        shapes.append(f'<text x="{at:.1f}" y="{_BOTTOM + 16}" class="middle">{value:g}</text>')
    for value in y.decades():
        at = y(value)
        shapes.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_RIGHT}"/>')
        shapes.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" class="end">{value:g}</text>')
    middle = (_LEFT + _RIGHT) / 2
    shapes.append(
        f'<text x="{middle:g}" y="{_BOTTOM + 36}" class="middle">warp instructions per byte</text>'
    )
    shapes.append(
        f'<text class="middle" transform="translate(14 {(_TOP + _BOTTOM) / 2:g}) rotate(-90)">'
        "G warp instructions/s</text>"
    )
    return shapes


#: Corners of markers by Matplotlib's letters: their number, the angle of the first one, and the
#: radius of corners between them, where there are any. A circle has many corners.
_CORNERS = {
    **{"o": (24, 0.0, None), "8": (8, 22.5, None), "s": (4, 45.0, None), "D": (4, 0.0, None)},
    **{"d": (4, 0.0, None), "^": (3, 90.0, None), "v": (3, -90.0, None), "<": (3, 180.0, None)},
    **{">": (3, 0.0, None), "p": (5, 90.0, None), "h": (6, 90.0, None), "H": (6, 0.0, None)},
    **{"*": (5, 90.0, 0.4), "P": (4, 0.0, 0.45), "X": (4, 45.0, 0.45), ".": (12, 0.0, None)},
}


def _marker(letter: str, x: float, y: float, radius: float = 6) -> str:
    """Return the start of a path in the shape of one of Matplotlib's markers."""
    count, first, inner = _CORNERS.get(letter, _CORNERS["o"])
    steps = count if inner is None else 2 * count
    corners = []
    for number in range(steps):
        angle = math.radians(first + 360 * number / steps)
        reach = radius if inner is None or number % 2 == 0 else inner * radius
        # The thin diamond is narrower than the other one.
        across = 0.6 if letter == "d" else 1.0
        corners.append(
            f"{x + across * reach * math.cos(angle):.2f} {y - reach * math.sin(angle):.2f}"
        )
    return f'<path d="M{"L".join(corners)}Z"'


def _legend(looks: Mapping[str, Any], levels: Sequence[str]) -> str:
    items = [
        f'<li><svg class="mark" viewBox="0 0 16 16" aria-hidden="true">{_marker(look.marker, 8, 8)} '
        f'class="point"/></svg>{escape(name)}</li>'
        for name, look in looks.items()
    ]
    items += [f'<li><span class="key c-{level.lower()}"></span>{level}</li>' for level in levels]
    return f'<ul class="legend">{"".join(items)}</ul>'
