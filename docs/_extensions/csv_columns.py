"""What the directive ``data-table`` shows of a CSV file: columns, rows and formats, without Sphinx."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

OPTIONS = ("columns", "rows", "format")
#: Most columns of a table on a page.
WIDEST = 9
#: What a page shows where a file has nothing.
NOTHING = "\N{EN DASH}"

Row = dict[str, str]


class DataTableError(ValueError):
    """A directive that asks for what its file does not have."""


def read(path: Path) -> tuple[list[str], list[Row]]:
    """Return heads and rows of a CSV file.

    Raises `DataTableError` where there is no such file, or no row in it.
    """
    if not path.is_file():
        raise DataTableError(f"there is no file {path}")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    heads = list(reader.fieldnames or ())
    if not heads:
        raise DataTableError(f"{path} has no head")
    return heads, rows


def _known(name: str, heads: Sequence[str]) -> str:
    name = name.strip()
    if name not in heads:
        raise DataTableError(f"there is no column {name!r}; there are: {' | '.join(heads)}")
    return name


def chosen_columns(text: str, heads: Sequence[str]) -> dict[str, str]:
    """Return the columns that the option `columns` names, with their heads on the page."""
    if not text.strip():
        found = {head: head for head in heads}
    else:
        found = {}
        for part in text.split("|"):
            whole = part.strip()
            name, _, title = (whole, "", whole) if whole in heads else whole.partition(" as ")
            found[_known(name, heads)] = title.strip() or name.strip()
    if len(found) > WIDEST:
        raise DataTableError(f"{len(found)} columns are too wide for a page: name at most {WIDEST}")
    return found


def chosen_rows(text: str, heads: Sequence[str], rows: list[Row]) -> list[Row]:
    """Return the rows that the option `rows` asks for."""
    text = text.strip()
    if text.isdecimal():
        return rows[: int(text)]
    for condition in text.split(" & ") if text else ():
        wanted = " != " not in condition
        name, sign, value = condition.partition(" = " if wanted else " != ")
        if not sign:
            raise DataTableError(f"rows: {condition!r} is neither a number nor `column = value`")
        name, values = _known(name, heads), {each.strip() for each in value.split(" | ")}
        absent = values - {row[name] for row in rows}
        if absent:
            raise DataTableError(f"rows: no {name!r} is {' or '.join(map(repr, sorted(absent)))}")
        rows = [row for row in rows if (row[name] in values) == wanted]
    return rows


def formats(text: str, heads: Sequence[str]) -> dict[str, str]:
    """Return the formats of columns that the option `format` gives."""
    found = {}
    for part in text.split("|") if text.strip() else ():
        name, _, form = part.rpartition(":")
        found[_known(name, heads)] = form.strip()
    return found


def shown(text: str, form: str | None) -> str:
    """Return a cell as a page shows it: long whole numbers with separators of thousands."""
    if not text:
        return NOTHING
    if form is None:
        return f"{int(text):,}" if text.lstrip("-").isdecimal() and len(text) > 4 else text
    try:
        return format(float(text), form)
    except ValueError as error:
        raise DataTableError(f"format: {text!r} has no format {form!r}") from error


def selected(path: Path, options: dict[str, str]) -> tuple[list[list[str]], int]:
    """Return heads and cells of the table that a directive asks for, and how many rows its file has."""
    heads, rows = read(path)
    columns = chosen_columns(options.get("columns", ""), heads)
    forms = formats(options.get("format", ""), heads)
    kept = chosen_rows(options.get("rows", ""), heads, rows)
    cells = [[shown(row[name], forms.get(name)) for name in columns] for row in kept]
    return [list(columns.values()), *cells], len(rows)
