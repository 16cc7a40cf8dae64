"""Pictures of the report: stacked bars as inline SVG, in colours of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from warpstack.plot.components import LABELS

__all__ = ["area_chart", "legend", "stacked_bars", "svg"]

_ROW, _LABEL, _WIDTH = 26, 150, 720


def legend(parts: Sequence[str]) -> str:
    """Return the names of components of a CPI stack beside their colours."""
    items = "".join(f'<li><span class="key c-{part}"></span>{LABELS[part]}</li>' for part in parts)
    return f'<ul class="legend">{items}</ul>'


def stacked_bars(rows: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Return one bar per row, made of its parts, all on one scale."""
    longest = max((sum(parts.values()) for parts in rows.values()), default=0) or 1
    scale = (_WIDTH - _LABEL - 70) / longest
    shapes = []
    for number, (name, parts) in enumerate(rows.items()):
        y = number * _ROW + 4
        shapes.append(f'<text x="{_LABEL - 8}" y="{y + 13}" class="end">{escape(name)}</text>')
        x = float(_LABEL)
        for part, value in parts.items():
            width = value * scale
            if width >= 0.05:
                shapes.append(
                    f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="18" class="c-{part}">'
                    f"<title>{escape(name)}, {part}: {value:.3g} {unit}</title></rect>"
                )
            x += width
        shapes.append(f'<text x="{x + 6:.1f}" y="{y + 13}">{sum(parts.values()):.3g}</text>')
    height = len(rows) * _ROW + 4
    words = "; ".join(f"{name} {sum(parts.values()):.3g} {unit}" for name, parts in rows.items())
    return svg(height, words, shapes)


def area_chart(times: Sequence[float], shares: Mapping[str, Sequence[float]], unit: str) -> str:
    """Return shares between 0 and 1, stacked, over time: one step from each time to the next."""
    height, bottom = 150.0, 20
    first, span = times[0], (times[-1] - times[0]) or 1.0

    def place(time: float) -> float:
        return (time - first) / span * _WIDTH

    below = [0.0] * (len(times) - 1)
    shapes = []
    for part, values in shares.items():
        above = [low + value for low, value in zip(below, values, strict=True)]
        edge = []
        for i, high in enumerate(above):
            y = height * (1 - high)
            edge += [f"{place(times[i]):.1f},{y:.1f}", f"{place(times[i + 1]):.1f},{y:.1f}"]
        for i in reversed(range(len(below))):
            y = height * (1 - below[i])
            edge += [f"{place(times[i + 1]):.1f},{y:.1f}", f"{place(times[i]):.1f},{y:.1f}"]
        shapes.append(
            f'<polygon points="{" ".join(edge)}" class="c-{part}"><title>{part}</title></polygon>'
        )
        below = above
    shapes.append(f'<text x="0" y="{height + 14}">{first:,.0f} {unit}</text>')
    shapes.append(
        f'<text x="{_WIDTH}" y="{height + 14}" class="end">{times[-1]:,.0f} {unit}</text>'
    )
    return svg(height + bottom, "share of issue slots over time", shapes)


def svg(height: float, words: str, shapes: Sequence[str]) -> str:
    """Return a picture of the page's width that says what it shows in words, too."""
    return (
        f'<div class="scroll" tabindex="0"><svg viewBox="0 0 {_WIDTH} {height:g}" role="img" '
        f'aria-label="{escape(words)}">{"".join(shapes)}</svg></div>'
    )
