"""The report as PDF: the same elements as on its page, set on sheets of A4.

The page is read, not the results: both forms then say the same.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from warpstack._util.output_file import MADE_BY
from warpstack.plot.components import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["as_pdf"]

#: Points: A4, its margins, and the width of what is set.
_WIDTH, _HEIGHT, _MARGIN = 595.3, 841.9, 50.0
_ROOM = _WIDTH - 2 * _MARGIN
_TEXT, _CODE = 9.0, 7.0
_SIZES = {"h1": 15.0, "h2": 12.0}
#: The width of a character as a share of its size, about: of texts, and of code, where it is exact.
_CHARACTER, _CODE_CHARACTER = 0.54, 0.602
#: Lines of a cell at most.
_MOST_LINES = 4
_INK, _FAINT, _RULE = "#1b1b1b", "#5c5c5c", "#d5d5d5"
_VOID = frozenset({"meta", "br", "rect", "path"})


@dataclass
class _Element:
    """An element of the page: its tag, attributes, and what is in it."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[_Element | str] = field(default_factory=list)

    def text(self) -> str:
        """Return the text in the element."""
        parts = []
        for child in self.children:
            if isinstance(child, str):
                parts.append(child)
            elif child.tag == "br":
                parts.append("\n")
            elif child.tag not in ("title", "svg"):
                parts.append(child.text())
        return "".join(parts)

    def find(self, *tags: str) -> Iterator[_Element]:
        """Yield the elements of tags in this one, in order, none within another."""
        for child in self.children:
            if isinstance(child, _Element):
                if child.tag in tags:
                    yield child
                else:
                    yield from child.find(*tags)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [_Element("page")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = _Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def as_pdf(page: str) -> bytes:
    """Return the report's HTML page as PDF.

    Parameters
    ----------
    page
        What `warpstack.report` writes.

    Returns
    -------
    bytes
        A PDF of A4 pages with the headings, texts, tables and pictures of the page in order.
    """
    reader = _Reader()
    reader.feed(page)
    (html,) = reader.open[0].find("html")
    (title,) = html.find("h1")
    sheets = _Sheets(title.text())
    sheets.write(title.text(), _SIZES["h1"], bold=True)
    for section in html.find("section"):
        for element in section.find("h2", "p", "ol", "ul", "dl", "table", "svg"):
            _set(sheets, element)
    return sheets.content()


def _set(sheets: _Sheets, element: _Element) -> None:
    if element.tag == "h2":
        sheets.need(60)  # a heading stays with what follows
        sheets.skip(8)
        sheets.write(element.text(), _SIZES["h2"], bold=True)
        sheets.skip(3)
    elif element.tag == "p":
        sheets.write(element.text(), _TEXT)
        sheets.skip(4)
    elif element.tag == "ol":
        for number, item in enumerate(element.find("li"), 1):
            sheets.write(f"{number}. {item.text()}", _TEXT, indent=10)
        sheets.skip(4)
    elif element.tag == "ul":
        _legend(sheets, element)
    elif element.tag == "dl":
        names, values = list(element.find("dt")), list(element.find("dd"))
        rows = [[name.text(), value.text()] for name, value in zip(names, values, strict=True)]
        sheets.table([], rows, ["", ""])
    elif element.tag == "table":
        _table(sheets, element)
    elif element.tag == "svg":
        _picture(sheets, element)


def _table(sheets: _Sheets, element: _Element) -> None:
    heads = list(element.find("th"))
    kinds = [head.attributes.get("class", "") for head in heads]
    rows: list[list[str]] = []
    for row in [row for body in element.find("tbody") for row in body.find("tr")]:
        if row.attributes.get("class") == "more":
            # The instructions of the line above, which the page folds.
            below = [part.text() for part in row.find("pre")]
            rows.append(["".join(below)])
        else:
            rows.append([cell.text() for cell in row.find("td")])
    sheets.table([head.text() for head in heads], rows, kinds)


def _legend(sheets: _Sheets, element: _Element) -> None:
    """Set names beside their colours, or the shapes of their points."""
    sheets.need(14)
    x = 0.0
    for item in element.find("li"):
        name = item.text()
        length = 12 + len(name) * _CHARACTER * _TEXT + 8
        if x + length > _ROOM:
            sheets.skip(13)
            sheets.need(14)
            x = 0.0
        ax, y = sheets.ax, sheets.y
        for key in item.find("span"):
            ax.add_patch(_box(_MARGIN + x, y - 9, 8, 8, _colour(key), _RULE))
        for mark in item.find("svg"):
            _shapes(ax, mark, _MARGIN + x, y - 1, 0.55)
        ax.text(_MARGIN + x + 12, y, name, fontsize=_TEXT, va="top", color=_INK)
        x += length
    sheets.skip(17)


def _picture(sheets: _Sheets, element: _Element) -> None:
    box = [float(part) for part in element.attributes["viewbox"].split()]
    scale = _ROOM / box[2]
    sheets.need(box[3] * scale + 4)
    _shapes(sheets.ax, element, _MARGIN, sheets.y, scale)
    sheets.skip(box[3] * scale + 8)


def _colour(element: _Element) -> str | None:
    found = re.search(r"\b[cr]-(\w+)", element.attributes.get("class", ""))
    return COLOURS.get(found[1]) if found else None


def _box(x: float, y: float, width: float, height: float, fill: Any, edge: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=fill or "none", edgecolor=edge, linewidth=0.4)


def _shapes(ax: Axes, picture: _Element, left: float, top: float, scale: float) -> None:
    """Draw the shapes of the report's pictures, whose y points down."""
    from matplotlib.patches import Polygon

    def place(x: float, y: float) -> tuple[float, float]:
        return left + scale * x, top - scale * y

    for shape in picture.find("rect", "polygon", "polyline", "path", "text"):
        given = shape.attributes
        kind = given.get("class", "")
        if shape.tag == "text":
            at = re.match(
                r"translate\(([-\d.]+) ([-\d.]+)\)(?: rotate\(([-\d.]+)\))?",
                given.get("transform", ""),
            )
            x, y = (at[1], at[2]) if at else (given["x"], given["y"])
            ax.text(
                *place(float(x), float(y)),
                shape.text(),
                fontsize=12 * scale,
                color=_INK,
                ha={"end": "right", "middle": "center"}.get(kind, "left"),
                va="baseline",
                rotation=-float(at[3] or 0) if at else 0,
                rotation_mode="anchor",
            )
        elif shape.tag == "rect":
            x, y = place(float(given["x"]), float(given["y"]) + float(given["height"]))
            width, height = (scale * float(given[name]) for name in ("width", "height"))
            ax.add_patch(_box(x, y, width, height, _colour(shape), _FAINT))
        elif shape.tag in ("polygon", "polyline"):
            points = [place(*map(float, pair.split(","))) for pair in given["points"].split()]
            if shape.tag == "polygon":
                ax.add_patch(Polygon(points, facecolor=_colour(shape), edgecolor="none"))
            else:
                xs, ys = zip(*points, strict=True)
                ax.plot(xs, ys, color=_colour(shape), linewidth=2.5 * scale)
        else:
            points = [place(*point) for point in _path(given["d"])]
            if "point" in kind:
                fill = _colour(shape) or _RULE
                ax.add_patch(Polygon(points, facecolor=fill, edgecolor=_INK, linewidth=0.6))
            else:
                xs, ys = zip(*points, strict=True)
                colour = _RULE if kind == "grid" else _FAINT
                ax.plot(xs, ys, color=colour, linewidth=0.5 if kind == "grid" else 0.8)


def _path(text: str) -> list[tuple[float, float]]:
    """Return the corners of a path of the letters M, L, H and V."""
    found: list[tuple[float, float]] = []
    for letter, rest in re.findall(r"([MLHV])([-\d. ]+)", text):
        numbers = [float(part) for part in rest.split()]
        if letter == "H":
            found.append((numbers[0], found[-1][1]))
        elif letter == "V":
            found.append((found[-1][0], numbers[0]))
        else:
            found.append((numbers[0], numbers[1]))
    return found


class _Sheets:
    """Pages that are filled from the top; coordinates are points from the lower left corner."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._figures: list[Any] = []
        self.y = 0.0
        self.ax: Any = None
        self._new()

    def _new(self) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72))
        self.ax = figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT), autoscale_on=False)
        self.ax.axis("off")
        self._figures.append(figure)
        self.y = _HEIGHT - _MARGIN

    def need(self, height: float) -> None:
        """Begin a page if the rest of this one is lower than a height."""
        if self.y - height < _MARGIN:
            self._new()

    def skip(self, height: float) -> None:
        """Leave a height free."""
        self.y -= height

    def write(self, text: str, size: float, *, bold: bool = False, indent: float = 0) -> None:
        """Set a text in lines of the width of the page; its line breaks stay."""
        width = int((_ROOM - indent) / (size * _CHARACTER * (1.12 if bold else 1)))
        for line in text.splitlines():
            for part in textwrap.wrap(line, width) or [""]:
                self.need(1.35 * size)
                self.line(part, _MARGIN + indent, size, bold=bold)
                self.skip(1.35 * size)

    def line(self, text: str, x: float, size: float, **options: Any) -> None:
        """Set one line at the height where the page is filled to."""
        weight = "bold" if options.pop("bold", False) else "normal"
        options = {"ha": "left", "color": _INK, **options}
        # A dollar of source does not begin mathematics.
        self.ax.text(
            x, self.y, text, fontsize=size, va="top", weight=weight, parse_math=False, **options
        )

    def table(
        self, heads: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str]
    ) -> None:
        """Set a table; a row of a single cell stands below the one before, across the columns."""
        full = [row for row in ([heads] if heads else []) + list(rows) if len(row) == len(kinds)]
        widths = [max(max(map(len, column)), 1) for column in zip(*full, strict=True)]
        limit = int(_ROOM / (_CODE * _CODE_CHARACTER)) - 2 * (len(widths) - 1)
        while sum(widths) > limit and max(widths) > 8:
            widths[widths.index(max(widths))] -= 1
        size = _CODE if sum(widths) <= limit else _CODE * limit / sum(widths)
        starts = [sum(widths[:i]) + 2 * i for i in range(len(widths))]
        if heads:
            self._row(heads, widths, starts, kinds, size, bold=True)
            self._rule()
        for row in rows:
            if len(row) == len(kinds):
                self._row(row, widths, starts, kinds, size)
                continue
            for line in row[0].splitlines():
                self.need(1.3 * size)
                self.line(line[: limit - 4], _MARGIN + 12, size, family="monospace", color=_FAINT)
                self.skip(1.3 * size)
        self.skip(6)

    def _rule(self) -> None:
        self.ax.plot([_MARGIN, _WIDTH - _MARGIN], [self.y, self.y], color=_RULE, linewidth=0.6)
        self.skip(2)

    def _row(
        self,
        cells: Sequence[str],
        widths: Sequence[int],
        starts: Sequence[int],
        kinds: Sequence[str],
        size: float,
        *,
        bold: bool = False,
    ) -> None:
        lines = [
            textwrap.wrap(
                cell.expandtabs(4),
                width,
                max_lines=_MOST_LINES,
                placeholder=" …",
                drop_whitespace=False,
            )
            for cell, width in zip(cells, widths, strict=True)
        ]
        step = 1.3 * size
        self.need(step * max(map(len, lines), default=1))
        for number in range(max(map(len, lines), default=1)):
            for parts, width, start, kind in zip(lines, widths, starts, kinds, strict=True):
                if number < len(parts):
                    text = parts[number].rstrip()
                    text = text.rjust(width) if kind == "num" else text
                    at = _MARGIN + start * size * _CODE_CHARACTER
                    self.line(text, at, size, bold=bold, family="monospace")
            self.skip(step)

    def content(self) -> bytes:
        """Return the pages as PDF, numbered."""
        import matplotlib as mpl
        from matplotlib.backends.backend_pdf import PdfPages

        from warpstack.plot.saving import printing

        buffer = io.BytesIO()
        # The same report is the same file: without the time.
        about: dict[str, Any] = {"Title": self._title, "Creator": MADE_BY, "CreationDate": None}
        settings: Any = {"font.family": ["sans-serif"]}
        with (
            printing(buffer, "pdf"),
            mpl.rc_context(settings),
            PdfPages(buffer, metadata=about) as pages,
        ):
            for number, figure in enumerate(self._figures, 1):
                note = f"{number} / {len(self._figures)}"
                figure.text(0.5, 25 / _HEIGHT, note, fontsize=_CODE, ha="center", color=_FAINT)
                pages.savefig(figure)
        return buffer.getvalue()
