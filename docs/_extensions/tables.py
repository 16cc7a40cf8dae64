"""Makes tables of the site readable: numbers to the right, and a box of its own to scroll in.

Markdown tables are nodes of the document; DataFrames and what else notebooks show arrive as HTML.
Both get the same classes: ``table-wrapper`` for the box that scrolls, which the theme puts around
nodes, and ``text-right`` for cells of numbers. The look is in ``_static/site.css``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

RIGHT = "text-right"
ALIGNED = {"text-left", "text-center", RIGHT}

#: A number as pages print it: with a sign, separators, a unit sign or a relative change.
NUMBER = re.compile(
    r"[-+\u2212±≤≥<>~≈]?\s*\d[\d,\u202f ]*(\.\d+)?(e[-+]?\d+)?"
    r"\s*(%|\xd7|x|s|ms|us|µs|[KMG]?i?B)?",
    re.IGNORECASE,
)
#: Text in a column of numbers where there is none.
NOTHING = {"", "-", "\N{EN DASH}", "\N{EM DASH}", "nan", "inf", "<na>", "none"}


def is_number(text: str) -> bool:
    """Return whether a cell holds a number."""
    return NUMBER.fullmatch(text.strip()) is not None


def are_numbers(cells: list[str]) -> bool:
    """Return whether a column's cells are numbers, except for those that are empty."""
    full = [cell for cell in cells if cell.strip().lower() not in NOTHING]
    return bool(full) and all(is_number(cell) for cell in full)


def columns(rows: list[nodes.row]) -> Iterator[tuple[int, list[nodes.entry]]]:
    """Yield number and cells of each column of a table without joined cells."""
    cells = [[entry for entry in row.children if isinstance(entry, nodes.entry)] for row in rows]
    if cells and all(len(row) == len(cells[0]) for row in cells):
        yield from ((i, list(column)) for i, column in enumerate(zip(*cells, strict=True)))


class NumbersToTheRight(SphinxPostTransform):
    """Align columns of numbers to the right where the page does not say how, and style HTML tables."""

    formats = ("html",)
    default_priority = 450  # after what notebooks show became HTML, before the theme wraps tables

    def run(self, **_: Any) -> None:
        """Change the document."""
        for table in self.document.findall(nodes.tgroup):
            self.align(table)
        for raw in list(self.document.findall(nodes.raw)):
            if raw.get("format") == "html" and "<table" in raw.astext():
                text = styled(raw.astext())
                raw.replace_self(nodes.raw(text, text, format="html"))

    @staticmethod
    def align(table: nodes.tgroup) -> None:
        """Give the cells of a table's columns of numbers their class."""
        heads = [row for head in table.findall(nodes.thead) for row in head.findall(nodes.row)]
        rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
        titles = dict(columns(heads))
        for number, cells in columns(rows):
            chosen = any(ALIGNED & set(cell["classes"]) for cell in cells)
            if not chosen and are_numbers([cell.astext() for cell in cells]):
                for cell in [*cells, *titles.get(number, [])]:
                    cell["classes"].append(RIGHT)


def styled(text: str) -> str:
    """Return HTML with its tables in boxes that scroll, their cells of numbers marked."""
    text = re.sub(r"<style scoped>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r' style="text-align: right;"', "", text)
    text = re.sub(r' border="1"', "", text)
    return re.sub(r"<table\b.*?</table>", lambda table: _box(table[0]), text, flags=re.DOTALL)


def _box(table: str) -> str:
    table = re.sub(r"<table(?! class)", '<table class="dataframe"', table, count=1)
    head, mark, body = table.partition("<tbody>")
    numeric: list[bool] = []
    for row in re.findall(r"<tr\b.*?</tr>", body, flags=re.DOTALL):
        texts = [_text(cell) for cell in re.findall(r"<t[hd]\b.*?</t[hd]>", row, flags=re.DOTALL)]
        marks = [is_number(text) or text.strip().lower() in NOTHING for text in texts]
        # Rows of a wider index are shorter where a cell spans several: the last columns agree.
        numeric = (
            [a and b for a, b in zip(numeric[::-1], marks[::-1], strict=False)][::-1]
            if numeric
            else marks
        )
    boxed = _mark(head, numeric) + mark + _mark(body, numeric)
    # A box that scrolls is one that the keyboard reaches.
    box = 'class="table-wrapper docutils container" role="region" aria-label="Table" tabindex="0"'
    return f"<div {box}>{boxed}</div>"


def _text(cell: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", cell))


def _mark(rows: str, numeric: list[bool]) -> str:
    """Give the cells of the columns of numbers their class, counted from the right."""

    def row(match: re.Match[str]) -> str:
        cells = list(re.finditer(r"<t[hd]\b", match[0]))
        text = match[0]
        for cell, right in zip(cells[::-1], numeric[::-1], strict=False):
            if right:
                text = f'{text[: cell.end()]} class="{RIGHT}"{text[cell.end() :]}'
        return text

    return re.sub(r"<tr\b.*?</tr>", row, rows, flags=re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the transform."""
    app.add_post_transform(NumbersToTheRight)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
