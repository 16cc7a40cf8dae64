"""HTML of results for a notebook's cell: the main table, and what is long or wide folded below it.

It names no colours, and follows the notebook's theme, dark or light.
"""

from __future__ import annotations

import html
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["bars", "cell", "fields", "folded", "table"]

#: Rows of a table that are shown before the rest is folded, and those that are written at all.
_SHOWN_ROWS = 10
_MOST_ROWS = 200
#: Characters of a cell; the whole text is shown where the pointer rests on it.
_MOST_CHARACTERS = 60

_SCROLLED = '<div style="overflow-x: auto; max-width: 100%">'
_BAR = "display: inline-block; height: 0.8em; background: currentColor; opacity: 0.45"


def cell(title: str, *parts: str) -> str:
    """Return what a notebook shows of a result: a line that names it, then its parts."""
    return f'<div style="max-width: 100%"><p><b>{html.escape(title)}</b></p>{"".join(parts)}</div>'


def folded(summary: str, content: str) -> str:
    """Return content that opens with a click; nothing where there is none."""
    if not content:
        return ""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"


def table(columns: Mapping[Any, Iterable[Any]], remedy: str = "") -> str:
    """Return a table of columns, whose rows after the tenth are folded.

    Parameters
    ----------
    columns
        Values by heading, all of the same number.
    remedy
        Where all rows are, if there are too many to write here: an expression.
    """
    headings = [str(name) for name in columns]
    rows = list(zip(*columns.values(), strict=True))
    written = rows[:_MOST_ROWS]
    text = _rows(headings, written[:_SHOWN_ROWS])
    if len(rows) <= _SHOWN_ROWS:
        return text
    left_out = len(rows) - len(written)
    summary = f"{len(rows) - _SHOWN_ROWS:,} more rows"
    if left_out:
        summary += f", of which the first {len(written) - _SHOWN_ROWS:,} are here"
        summary += f"; {remedy} has all" if remedy else ""
    return text + folded(summary, _rows(headings, written[_SHOWN_ROWS:]))


def fields(values: Mapping[Any, Any]) -> str:
    """Return a table of names and values, a row for each."""
    rows = "".join(f"<tr><th>{html.escape(str(n))}</th>{_data(v)}</tr>" for n, v in values.items())
    return f"{_SCROLLED}<table>{rows}</table></div>" if rows else ""


def bars(values: Mapping[str, float], unit: str) -> str:
    """Return a table of parts of a sum, with a bar for the share of each."""
    total = sum(values.values())
    rows = []
    for name, value in values.items():
        share = value / total if total else 0.0
        bar = f'<span style="{_BAR}; width: {10 * share:.2f}em"></span>'
        part = f"{100 * share:.0f} %" if total else ""
        rows.append(
            f"<tr><th>{html.escape(name)}</th>{_data(value)}<td>{part}</td>"
            f'<td style="text-align: left">{bar}</td></tr>'
        )
    heading = f"<tr><th></th><th>{html.escape(unit)}</th><th>share</th><th></th></tr>"
    return f"{_SCROLLED}<table>{heading}{''.join(rows)}</table></div>"


def _rows(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    heading = "".join(f"<th>{html.escape(name)}</th>" for name in headings)
    body = "".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in rows)
    return f"{_SCROLLED}<table><tr>{heading}</tr>{body}</table></div>"


def _data(value: Any) -> str:
    """Return the cell of a value."""
    text = _text(value)
    if len(text) <= _MOST_CHARACTERS:
        return f"<td>{html.escape(text)}</td>"
    short = text[: _MOST_CHARACTERS - 1] + "…"
    return f'<td title="{html.escape(text)}">{html.escape(short)}</td>'


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if math.isnan(number):
            return ""
        return f"{number:,.0f}" if 1e3 <= abs(number) < 1e15 else f"{number:.4g}"
    return str(value)
