"""Tables on standard output: as text, JSON or CSV."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from warpstack._util.lazy import pandas as pd

__all__ = [
    "add_output",
    "plain",
    "print_csv",
    "print_json",
    "print_table",
    "short_floats",
    "text_table",
]

_LEFT = ("name", "opcode", "op_class", "space", "kind")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--csv``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--csv", action="store_true", help="print CSV")


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
        ``json`` and ``csv``.
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
    else:
        rows = table.itertuples(index=False, name=None)
        print(text_table([str(column) for column in table.columns], rows, formats or {}, left))


def print_json(records: Sequence[Mapping[Any, Any]]) -> None:
    """Print records as JSON."""
    print(json.dumps(records, indent=1))


def print_csv(table: pd.DataFrame) -> None:
    """Print a table as CSV."""
    print(table.to_csv(index=False), end="")


def text_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    formats: Mapping[str, str],
    left: Collection[str],
) -> str:
    """Return rows of values as lines of aligned text, after a line with the names of the columns."""

    def cell(column: str, value: Any) -> str:
        if isinstance(value, float) and value != value:
            return "-"
        if column in formats:
            return formats[column].format(value)
        if isinstance(value, tuple):
            return "x".join(map(str, value))
        return plain(value)

    body = [[cell(c, v) for c, v in zip(columns, row, strict=True)] for row in rows]
    widths = [max(len(r[i]) for r in [columns, *body]) for i in range(len(columns))]
    lines = []
    for row in [columns, *body]:
        cells = [
            text.ljust(width) if column in left else text.rjust(width)
            for column, text, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def short_floats(table: pd.DataFrame) -> dict[str, str]:
    """Return formats of four digits for all columns of floating-point numbers."""
    return {str(column): "{:.4g}" for column in table.select_dtypes(float).columns}


def plain(value: Any) -> str:
    """Return a value as a cell has it: numbers in their shortest form, tuples with commas."""
    if isinstance(value, tuple):
        return ",".join(map(plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
