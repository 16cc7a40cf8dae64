"""Tables on standard output: as text, JSON or CSV."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from warpstack._util.headings import number
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.layout import Look, paragraph, terminal_width, text_table

__all__ = [
    "add_output",
    "add_wide",
    "line_width",
    "plain",
    "print_about",
    "print_csv",
    "print_json",
    "print_latex",
    "print_table",
    "say_text",
    "short_floats",
]

#: How a table looks whose command does not say it.
_PLAIN = Look()


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``, ``--csv``, ``--latex`` and ``--wide``."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--csv", action="store_true", help="print CSV")
    group.add_argument(
        "--latex", action="store_true", help="print the table for LaTeX (booktabs, siunitx)"
    )
    add_wide(parser)


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Add ``--wide``."""
    parser.add_argument(
        "--wide", action="store_true", help="print all columns, wider than the terminal if need be"
    )


def line_width(arguments: argparse.Namespace) -> int | None:
    """Return the characters of a line that the arguments ask for; None: as many as it takes."""
    return None if arguments.wide else terminal_width()


def print_table(
    arguments: argparse.Namespace,
    table: pd.DataFrame,
    look: Look = _PLAIN,
) -> None:
    """Print a table in the form that the options ask for.

    Parameters
    ----------
    arguments
        ``json``, ``csv``, ``latex`` and ``wide``.
    table
        The table.
    look
        How it looks as text.
    """
    if arguments.json:
        print_json(table.astype(object).where(table.notna(), None).to_dict("records"))
    elif arguments.csv:
        print_csv(table)
    elif arguments.latex:
        formats = {name: form for name, form in look.formats.items() if isinstance(form, str)}
        print_latex(table, formats)
    else:
        rows = table.itertuples(index=False, name=None)
        columns = [str(column) for column in table.columns]
        print(text_table(columns, rows, look, width=line_width(arguments)))


def say_text(arguments: argparse.Namespace, text: str) -> None:
    """Print paragraphs, which empty lines divide, in lines as wide as those of tables."""
    width = line_width(arguments)
    print("\n\n".join(paragraph(part, width) for part in text.split("\n\n")))


def print_json(records: Sequence[Mapping[Any, Any]] | Mapping[str, Any]) -> None:
    """Print records as JSON, or several lists of them by name; numbers that there are not as null."""
    print(json.dumps(_finite(records), indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return a value of JSON, which knows no NaN and no infinity."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_csv(table: pd.DataFrame) -> None:
    """Print a table as CSV; see `warpstack.tables.csv_texts`."""
    from warpstack.tables import csv_texts

    print(csv_texts(table).to_csv(index=False), end="")


def print_latex(table: pd.DataFrame, formats: Mapping[str, str] | None = None) -> None:
    """Print a table as LaTeX, without what its rows were made from; see `warpstack.tables.to_latex`."""
    from warpstack.tables import PROVENANCE, SETTINGS, to_latex

    known = [name for name in SETTINGS if name in table and table[name].nunique() < 2]
    shown = table.drop(columns=[*known, *(name for name in PROVENANCE if name in table)])
    print(to_latex(shown, formats=formats), end="")


def print_about(arguments: argparse.Namespace, text: str, *, is_last: bool = False) -> None:
    """Print a line above a table, a comment in LaTeX; an empty line follows unless it is the last."""
    if arguments.latex:
        print("% " + " ".join(text.split()))
        return
    say_text(arguments, text)
    if not is_last:
        print()


def short_floats(table: pd.DataFrame) -> dict[str, Any]:
    """Return formats of four digits for all columns of floating-point numbers."""
    return dict.fromkeys(map(str, table.select_dtypes(float).columns), partial(number, digits=4))


def plain(value: Any) -> str:
    """Return a value as CSV and JSON have it: numbers in their shortest form, tuples with commas."""
    if isinstance(value, tuple):
        return ",".join(map(plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
