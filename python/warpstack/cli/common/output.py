"""Tables on standard output: as text, JSON or CSV."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from warpstack._util.lazy import pandas as pd

__all__ = [
    "add_output",
    "plain",
    "print_about",
    "print_csv",
    "print_json",
    "print_latex",
    "print_table",
    "short_floats",
    "terminal_width",
    "text_table",
]

_LEFT = ("name", "opcode", "op_class", "space", "kind")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``, ``--csv`` and ``--latex``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--csv", action="store_true", help="print CSV")
    group.add_argument(
        "--latex", action="store_true", help="print the table for LaTeX (booktabs, siunitx)"
    )


def print_table(
    arguments: argparse.Namespace,
    table: pd.DataFrame,
    formats: Mapping[str, str] | None = None,
    left: Collection[str] = _LEFT,
) -> None:
    """Print a table in the form that the options ask for.

    Parameters
    ----------
    arguments
        ``json``, ``csv`` and ``latex``.
    table
        The table.
    formats
        Formats of columns in text; others are printed as `plain` does.
    left
        Columns of text, which are aligned to the left.
    """
    if arguments.json:
        print_json(table.astype(object).where(table.notna(), None).to_dict("records"))
    elif arguments.csv:
        print_csv(table)
    elif arguments.latex:
        print_latex(table, formats)
    else:
        rows = table.itertuples(index=False, name=None)
        print(
            text_table(
                [str(column) for column in table.columns],
                rows,
                formats or {},
                left,
                width=terminal_width(),
            )
        )


def print_json(records: Sequence[Mapping[Any, Any]]) -> None:
    """Print records as JSON."""
    print(json.dumps(records, indent=1))


def print_csv(table: pd.DataFrame) -> None:
    """Print a table as CSV; see `warpstack.tables.csv_texts`."""
    from warpstack.tables import csv_texts

    print(csv_texts(table).to_csv(index=False), end="")


def print_latex(table: pd.DataFrame, formats: Mapping[str, str] | None = None) -> None:
    """Print a table as LaTeX, without what its rows were made from; see `warpstack.tables.to_latex`."""
    from warpstack.tables import PROVENANCE, to_latex

    shown = table.drop(columns=[name for name in PROVENANCE if name in table])
    print(to_latex(shown, formats=formats), end="")


def print_about(arguments: argparse.Namespace, text: str, *, is_last: bool = False) -> None:
    """Print a line above a table, a comment in LaTeX; an empty line follows unless it is the last."""
    if arguments.latex:
        print("% " + " ".join(text.split()))
    else:
        print(text, end="\n" if is_last else "\n\n")


def terminal_width() -> int | None:
    """Return the columns of the terminal for the answer; None for a file or a pipe."""
    return shutil.get_terminal_size().columns if _is_terminal() else None


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def text_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    formats: Mapping[str, str],
    left: Collection[str],
    marked: Collection[tuple[int, int]] = (),
    width: int | None = None,
) -> str:
    """Return rows of values as lines of aligned text, after a line with the names of the columns.

    Parameters
    ----------
    columns, rows, formats, left
        As for `print_table`.
    marked
        Row and column of the cells with a ``*`` behind them, in bold print on a terminal.
    width
        Characters of a line; None: as many as it takes. In less than that, names are cut, and where that
        is not enough, the columns that do not fit are below, behind the first columns once more.
    """

    def cell(number: int, value: Any) -> str:
        column = columns[number]
        if isinstance(value, float) and value != value:
            return "-"
        if column in formats and not isinstance(value, str):
            return formats[column].format(value)
        if isinstance(value, tuple):
            return "x".join(map(str, value))
        return plain(value)

    starred = {number for _, number in marked}

    def star(row: int, number: int) -> str:
        return ("*" if (row, number) in marked else " ") if number in starred else ""

    body = [
        [cell(i, value) + star(r, i) for i, value in enumerate(row)] for r, row in enumerate(rows)
    ]
    heads = [name + " " * (number in starred) for number, name in enumerate(columns)]
    lines = [heads, *body]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    blocks = [list(range(len(columns)))]
    if width is not None:
        widths = _narrowed(columns, widths, left, width)
        blocks = _blocks(columns, widths, left, width)
    bold = _is_terminal() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    texts = []
    for block in blocks:
        for row, line in enumerate(lines, -1):
            cells = []
            for i in block:
                text = line[i]
                if len(text) > widths[i]:
                    text = text[: widths[i] - 2] + ".."
                text = text.ljust(widths[i]) if columns[i] in left else text.rjust(widths[i])
                cells.append(f"\033[1m{text}\033[0m" if bold and (row, i) in marked else text)
            texts.append("  ".join(cells).rstrip())
        texts.append("")
    return "\n".join(texts[:-1])


#: Names are not cut to less than this.
_LEAST_NAME = 12


def _narrowed(
    columns: Sequence[str], widths: Sequence[int], left: Collection[str], width: int
) -> list[int]:
    """Return the widths of columns with names cut, the longest first, until the line fits."""
    result = list(widths)
    names = [i for i, column in enumerate(columns) if column in left]
    while sum(result) + 2 * (len(result) - 1) > width:
        longest = max(names, key=lambda i: result[i], default=None)
        if longest is None or result[longest] <= max(_LEAST_NAME, len(columns[longest])):
            break
        result[longest] -= 1
    return result


def _blocks(
    columns: Sequence[str], widths: Sequence[int], left: Collection[str], width: int
) -> list[list[int]]:
    """Return which columns stand in which of several tables, each below the one before."""
    first = 0
    while first < len(columns) and (columns[first] in left or columns[first] == "kernel"):
        first += 1
    keys = list(range(first if first < len(columns) else 0))
    blocks, used = [list(keys)], sum(widths[i] + 2 for i in keys)
    room = used
    for i in range(len(keys), len(columns)):
        if room + widths[i] > width and len(blocks[-1]) > len(keys):
            blocks.append(list(keys))
            room = used
        blocks[-1].append(i)
        room += widths[i] + 2
    return blocks


def short_floats(table: pd.DataFrame) -> dict[str, str]:
    """Return formats of four digits for all columns of floating-point numbers."""
    return {str(column): "{:.4g}" for column in table.select_dtypes(float).columns}


def plain(value: Any) -> str:
    """Return a value as a cell has it: numbers in their shortest form, tuples with commas."""
    if isinstance(value, tuple):
        return ",".join(map(plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
