"""Checks of the tables that callers pass, whose columns functions compute with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from warpstack._util.arguments import printable_text
from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, not_a, shown

__all__ = ["check_csv_numbers", "checked_table"]


def checked_table(
    what: str,
    table: pd.DataFrame,
    *,
    positive: Iterable[str] = (),
    numbers: Iterable[str] = (),
    perhaps: Iterable[str] = (),
    texts: Iterable[str] = (),
) -> pd.DataFrame:
    """Return a table whose columns have the values that a function computes with.

    Parameters
    ----------
    what
        Said of the table in messages.
    table
        The table; columns that it does not have are not asked for.
    positive, numbers, perhaps
        Columns of numbers above 0; of numbers; and of numbers that may be missing (NaN).
    texts
        Columns of text. Missing values become empty.

    Returns
    -------
    DataFrame
        The table, or a copy with numbers where it has them as objects.

    Raises
    ------
    InputError
        If a column is there twice or has other values; the message says which row has which value.
    """
    if not isinstance(table, pd.DataFrame):
        raise not_a(what, "a DataFrame", table)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise InputError(f"{what}: the column {shown(twice)} is there twice")
    if not all(isinstance(name, str) for name in table.columns):
        name = next(name for name in table.columns if not isinstance(name, str))
        raise not_a(f"{what}: name of a column", "text", name)
    # Groups of categories have rows for those that do not occur, and their maps are categories too.
    grouped = [n for n in table if isinstance(table[n].dtype, pd.CategoricalDtype)]
    if grouped:
        table = table.assign(**{str(n): table[n].astype(object).infer_objects() for n in grouped})
    found: dict[str, pd.Series] = {}
    for columns, least, missing in (
        (positive, np.nextafter(0, 1), False),
        (numbers, -np.inf, False),
        (perhaps, -np.inf, True),
    ):
        for name in columns:
            if name in table:
                found[name] = _numbers(what, table[name], float(least), missing)
    for name in texts:
        if name in table:
            found[name] = _texts(what, table[name])
    changed = {name: column for name, column in found.items() if column is not table[name]}
    return table.assign(**changed) if changed else table


def check_csv_numbers(where: str, table: pd.DataFrame, columns: Iterable[str], lines: bool) -> None:
    """Raise `InputError` for the first value of a file that is not a finite number: line, column, value.

    `lines`: each row is a line, after one with the names of the columns; else an entry.
    """
    for name in columns:
        column = table[name]
        if column.dtype.kind in "iu":
            continue
        values = pd.to_numeric(column, errors="coerce")
        wrong = (values.isna() & column.notna()) | np.isinf(values.astype(float))
        if column.dtype.kind != "f":
            wrong |= column.map(lambda value: isinstance(value, (bool, list, dict)))
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            place = f"line {row + 2}" if lines else f"entry {row + 1}"
            value = shown(column.iloc[row])
            kind = "a finite number" if isinstance(column.iloc[row], float) else "a number"
            raise InputError(
                f"{where}: {place}: {name} = {value} is not {kind}; correct it or remove the row"
            )


def _numbers(what: str, column: pd.Series, least: float, missing: bool) -> pd.Series:
    plain = column
    if column.dtype.kind not in "iuf":
        is_number = column.map(_is_number)
        if not is_number.all():
            raise _wrong(what, column, ~is_number, "a number")
        plain = column.map(lambda value: np.nan if pd.isna(value) else float(value)).astype(float)
    values = plain.to_numpy(dtype=float)
    if not missing and np.isnan(values).any():
        raise _wrong(what, column, np.isnan(values), "a number")
    wrong = np.isinf(values) | (values < least)
    if wrong.any():
        raise _wrong(what, column, wrong, "a finite number" + (" above 0" if least > 0 else ""))
    return plain


def _is_number(value: object) -> bool:
    if value is None or value is pd.NA:
        return True
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return not isinstance(value, int) or abs(value) < 2**1000


def _texts(what: str, column: pd.Series) -> pd.Series:
    good = column.map(lambda value: isinstance(value, str) and printable_text(value) == value)
    if good.all():
        return column
    empty = column.isna()
    if not (good | empty).all():
        raise _wrong(what, column, ~(good | empty), "text")
    return column.astype(object).where(~empty, "")


def _wrong(
    what: str, column: pd.Series, wrong: pd.Series | np.ndarray, expected: str
) -> InputError:
    row = int(np.asarray(wrong, dtype=bool).argmax())
    value = shown(column.iloc[row])
    return InputError(f"{what}: row {row + 1}: {column.name} = {value} is not {expected}")
