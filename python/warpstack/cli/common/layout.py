"""Tables as aligned text that fits the terminal: every command prints its tables through `text_table`.

A table that is too wide gets, in this order: headings of several lines, texts of several lines and cut
names, rows as columns where there are few rows, and fewer columns, the least important of them first.
"""

from __future__ import annotations

import dataclasses
import numbers
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from warpstack._util.headings import heading, number

__all__ = ["LEFT", "Look", "paragraph", "terminal_width", "text_table"]

#: Columns of text, which are aligned to the left.
LEFT = ("name", "opcode", "op_class", "space", "kind", "code", "digest")
#: Numbers that are names, and are written without separators.
_NUMBERED = ("kernel", "parent", "launch", "point", "pc", "source_line")
#: Columns of names, which are cut, not folded: half a name in a line of its own would look like another row.
_NAMES = ("name", "kernel", "trace", "app", "GPU", "gpu", "model")

#: Characters per line where the output is no terminal, or one that does not say.
_UNKNOWN_WIDTH = 100
#: Lines that a heading may take.
_HEADING_LINES = 4
#: Texts are not folded, and names not cut, to less than this.
_LEAST_TEXT = 16
_LEAST_NAME = 12
#: Texts of single words are folded only where they are longer than this.
_LONGEST_WORD = 40
#: Longer words of a text may take two lines.
_WHOLE_WORD = 24
#: A table with more rows than this is not turned round.
_FEW_ROWS = 3
_GAP = 2
_WIDE = "--wide shows all"
_NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclasses.dataclass(frozen=True)
class Look:
    """How a table looks.

    Attributes
    ----------
    heads
        Headings of columns; others are made of the names by `heading`.
    formats
        Formats of numbers by column, or functions that return their text; others are printed by `number`.
    left
        Columns of text, which are aligned to the left, and folded where the table is too wide.
    least
        Columns that are left out where the table is too wide, the least important first. Those that are
        empty or 0 in all rows come before the others.
    """

    heads: Mapping[str, str] = dataclasses.field(default_factory=dict)
    formats: Mapping[str, str | Callable[[Any], str]] = dataclasses.field(default_factory=dict)
    left: Collection[str] = LEFT
    least: Sequence[str] = ()


@dataclasses.dataclass
class _Column:
    """A column as text; `is_name` and `is_text` say whether it may be cut or folded."""

    name: str
    head: str
    cells: list[str]
    is_left: bool
    is_empty: bool

    @property
    def is_name(self) -> bool:
        return self.is_left and self.name in _NAMES

    @property
    def is_text(self) -> bool:
        return self.is_left and not self.is_name

    @property
    def body_width(self) -> int:
        return max(map(len, self.cells), default=0)

    def head_width(self, lines: int) -> int:
        """Return the least width in which the heading takes at most so many lines."""
        least = max(map(len, _bound(self.head).split(" ")), default=0)
        widths = range(least, len(self.head))
        return next((w for w in widths if len(_folded_head(self.head, w)) <= lines), len(self.head))

    def least_width(self) -> int:
        """Return the width below which the column is not narrowed."""
        body = self.body_width
        if self.is_name:
            body = min(body, _LEAST_NAME)
        elif self.is_text:
            is_foldable = any(" " in cell for cell in self.cells)
            words = [len(word) for cell in self.cells for word in cell.split()]
            whole = max((length for length in words if length <= _WHOLE_WORD), default=0)
            body = min(body, max(_LEAST_TEXT, whole) if is_foldable else _LONGEST_WORD)
        return max(body, self.head_width(_HEADING_LINES))


def terminal_width() -> int:
    """Return the characters of a line: of the terminal, or 100 where there is none."""
    return shutil.get_terminal_size((_UNKNOWN_WIDTH, 24)).columns


def paragraph(text: str, width: int | None, indent: str = "") -> str:
    """Return text in lines of at most `width` characters, words undivided; None: in one line."""
    if width is None:
        return text
    folded = textwrap.wrap(
        text,
        max(width, len(indent) + 1),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(folded)


def text_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    look: Look,
    *,
    width: int | None,
    marked: Collection[tuple[int, int]] = (),
) -> str:
    """Return rows of values as lines of aligned text, after the headings of the columns.

    Parameters
    ----------
    columns, rows
        The names of the columns, and their values.
    look
        How they look.
    width
        Characters of a line; None: as many as it takes.
    marked
        Row and column of the cells with a ``*`` behind them, in bold print on a terminal.
    """
    values = [list(row) for row in rows]
    starred = {column for _, column in marked}
    table = []
    for i, name in enumerate(columns):
        of_column = [row[i] for row in values]
        cells = [_cell(name, value, look) for value in of_column]
        if i in starred:
            cells = [f"{c}{'*' if (r, i) in marked else ' '}" for r, c in enumerate(cells)]
        table.append(
            _Column(
                name,
                look.heads.get(name, heading(name)) + " " * (i in starred),
                cells,
                name in look.left,
                all(_is_nothing(value) or value in ("", 0) for value in of_column),
            )
        )
    bold = {(r, columns[i]) for r, i in marked} if _is_colourful() else set()
    if width is None:
        return _lines(table, _widths(table), bold)
    fitting = _fitted(table, width)
    if fitting is not None:
        return "\n".join([_lines(table, fitting, bold), *_note(table, fitting, [], width)])
    if 0 < len(values) <= _FEW_ROWS:
        turned = _turned(table, width)
        if turned is not None:
            return turned
    return _with_fewer_columns(table, look.least, width, bold)


def _cell(name: str, value: Any, look: Look) -> str:
    if isinstance(value, str):
        return value
    if _is_nothing(value):
        return "-"
    if isinstance(value, tuple):
        if all(isinstance(part, numbers.Integral) for part in value):
            return "x".join(map(str, value))
        return ", ".join(map(number, value))
    form = look.formats.get(name)
    if form is not None:
        return form(value) if callable(form) else form.format(value)
    if name in _NUMBERED or isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    return number(value)


def _is_nothing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, or pandas' NA, which nothing can be compared with."""
    # pandas is not loaded for its sake.
    is_na = type(value).__name__ == "NAType"
    return value is None or is_na or (isinstance(value, float) and value != value)


def _is_colourful() -> bool:
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _widths(table: Sequence[_Column], lines: int = 1) -> list[int]:
    return [max(column.body_width, column.head_width(lines)) for column in table]


def _fitted(table: Sequence[_Column], width: int) -> list[int] | None:
    """Return widths of columns that fit, with headings and texts folded and names cut; None if none do."""
    natural = _widths(table)
    for lines in range(1, _HEADING_LINES + 1):
        widths = _widths(table, lines)
        if _total(widths) <= width:
            return _widened(widths, natural, width)
    least = [column.least_width() for column in table]
    flexible = [i for i, column in enumerate(table) if column.is_left]
    # Texts are folded before names are cut: nothing is lost by that.
    for some in ([i for i in flexible if table[i].is_text], flexible):
        while _total(widths) > width:
            wide = [i for i in some if widths[i] > least[i]]
            if not wide:
                break
            widths[max(wide, key=lambda i: widths[i])] -= 1
    return _widened(widths, natural, width) if _total(widths) <= width else None


def _widened(widths: list[int], natural: Sequence[int], width: int) -> list[int]:
    """Return widths that use what is left of a line, from the left, for columns that it suffices for."""
    for i, wanted in enumerate(natural):
        if _total(widths) - widths[i] + wanted <= width:
            widths[i] = wanted
    return widths


def _lines(
    table: Sequence[_Column], widths: Sequence[int], bold: Collection[tuple[int, str]] = ()
) -> str:
    pairs = list(zip(table, widths, strict=True))
    heads = [_folded_head(column.head.rstrip(), width) for column, width in pairs]
    height = max(map(len, heads), default=0)
    lines = []
    for number_of_line in range(height):
        cells = []
        for (column, width), head in zip(pairs, heads, strict=True):
            place = number_of_line - (height - len(head))
            text = head[place] if place >= 0 else ""
            text += " " * column.head.endswith(" ") if text else ""
            cells.append(text.ljust(width) if column.is_left else text.rjust(width))
        lines.append(cells)
    for row in range(len(table[0].cells) if table else 0):
        cut = [
            [_cut(column.cells[row], width)]
            if column.is_name or not column.is_left
            else _folded(column.cells[row], width)
            for column, width in pairs
        ]
        for part in range(max(map(len, cut))):
            cells = []
            for (column, width), texts in zip(pairs, cut, strict=True):
                text = texts[part] if part < len(texts) else ""
                text = text.ljust(width) if column.is_left else text.rjust(width)
                is_bold = part == 0 and (row, column.name) in bold
                cells.append(f"\033[1m{text}\033[0m" if is_bold else text)
            lines.append(cells)
    return "\n".join((" " * _GAP).join(cells).rstrip() for cells in lines)


def _folded(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def _folded_head(head: str, width: int) -> list[str]:
    """Return the lines of a heading, in which a unit stays together."""
    return [line.replace(_NO_BREAK, " ") for line in _folded(_bound(head), width)]


def _bound(head: str) -> str:
    before, bracket, unit = head.rstrip().rpartition("(")
    return f"{before}{bracket}{unit.replace(' ', _NO_BREAK) if bracket else unit}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 2, 0)] + ".."


def _turned(table: Sequence[_Column], width: int) -> str | None:
    """Return the table with a line for each column; None where that does not fit either."""
    rows = len(table[0].cells)
    heads = [column.head.rstrip() for column in table]
    label = max(map(len, heads))
    room = (width - label) // rows - _GAP
    needed = max(
        (_LEAST_NAME if column.is_left else column.body_width for column in table), default=0
    )
    if room < needed:
        return None
    body = [
        _Column(f"{row}", "", [column.cells[row].rstrip() for column in table], True, False)
        for row in range(rows)
    ]
    widths = [min(column.body_width, room) for column in body]
    first = _Column("", "", heads, True, False)
    return _lines([first, *body], [label, *widths]).lstrip("\n")


def _with_fewer_columns(
    table: Sequence[_Column], least: Sequence[str], width: int, bold: Collection[tuple[int, str]]
) -> str:
    """Return the table without the columns that matter least, and a line that says which they are."""
    kept, left_out = list(table), []
    widths = None
    for column in _in_order_of_leaving(table, least):
        kept.remove(column)
        left_out.append(column)
        widths = _fitted(kept, width)
        if widths is not None:
            break
    if widths is None:  # a single column, wider than the line
        widths = [min(column.body_width, width) for column in kept]
    heads = [column.head.strip() for column in table if column in left_out]
    return "\n".join([_lines(kept, widths, bold), *_note(kept, widths, heads, width)])


def _note(
    table: Sequence[_Column], widths: Sequence[int], left_out: Sequence[str], width: int
) -> list[str]:
    """Return a line that says what of a table is not shown; none where all of it is."""
    lost = [f"not shown: {', '.join(left_out)}"] if left_out else []
    if any(c.is_name and c.body_width > w for c, w in zip(table, widths, strict=True)):
        lost.append("names are cut")
    return [paragraph(f"({'; '.join(lost)}; {_WIDE})", width)] if lost else []


def _in_order_of_leaving(table: Sequence[_Column], least: Sequence[str]) -> Iterator[_Column]:
    """Yield columns, the least important first: those that the command names, then the last ones."""
    named = {column.name: column for column in table}
    known = [named[name] for name in least if name in named]
    known.sort(key=lambda column: not column.is_empty)  # stable
    yield from known
    yield from (column for column in reversed(table[1:]) if column not in known)
