"""The columns of results: rows of them, sums of rows, and checks of the tables that callers pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._core import __version__
from warpstack._util.arguments import printable_text
from warpstack._util.latex import to_latex
from warpstack._util.lazy import is_dataframe
from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, not_a, shown

if TYPE_CHECKING:
    from warpstack._util.options import Options
    from warpstack.hardware.description import Gpu
    from warpstack.traces.trace import KernelTrace

__all__ = [
    "IDENTITY",
    "PERFORMANCE",
    "PROVENANCE",
    "SETTINGS",
    "STACK",
    "STACK_COMPONENTS",
    "TIME",
    "add_up",
    "as_records",
    "checked_table",
    "csv_numbers",
    "csv_texts",
    "require",
    "result_table",
    "row",
    "settings_of",
    "texts_of_csv",
    "to_latex",
    "totals",
]

#: Parts of a CPI stack from the bottom (GPUMech, Table III; NOC as in MDM, Figure 14).
STACK_COMPONENTS = _core.STACK_COMPONENTS

#: Columns that say what a row is about: a launch, a GPU with the changes made to it, and the model.
IDENTITY = ("kernel", "name", "gpu", "gpu_changes", "model")
#: Columns of the answer.
PERFORMANCE = ("instructions", "cycles", "ipc", "cpi")
#: Columns of what a profiler would report, and how much of that is the launch.
TIME = ("time_us", "launch_us")
#: The parts of ``cpi``.
STACK = tuple(f"cpi_{component}" for component in STACK_COMPONENTS)
#: Columns that say how it was run: the share of L2 that strangers had written before the first launch
#: (see `warpstack.Options`), and whose time is told.
SETTINGS = ("initial_l2", "profiler")
#: Columns that say what a row was made from.
PROVENANCE = ("trace_digest", "gpu_digest", "version")

#: Columns that are means weighted by instructions where kernels are added up.
_MEANS = ("cpi", *STACK)


def settings_of(options: Options) -> dict[str, Any]:
    """Return the values of `SETTINGS` under these options."""
    return dict(zip(SETTINGS, (options.written_share, options.profiler), strict=True))


def row(
    kernel: KernelTrace,
    gpu: Gpu,
    model: str,
    values: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a row of results: `IDENTITY`, the values, `SETTINGS`, and `PROVENANCE`."""
    return {
        "kernel": kernel.launch_id,
        "name": kernel.short_name,
        "gpu": gpu.name,
        "gpu_changes": gpu.changes_text,
        "model": model,
        **values,
        **settings,
        "trace_digest": kernel.digest,
        "gpu_digest": gpu.digest,
        "version": __version__,
    }


def result_table(rows: list[dict[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Return rows of results as a DataFrame that prints what most people look for in them."""
    from warpstack._util.result_table import ResultTable  # which loads pandas

    table = ResultTable(rows)
    table.attrs = getattr(rows, "attrs", {})
    return table


def require(
    table: pd.DataFrame,
    columns: Iterable[str],
    expected: str,
    *,
    what: str = "there is",
    rows: bool = False,
) -> None:
    """Raise `InputError` for the first column that a table does not have.

    Parameters
    ----------
    table
        The table.
    columns
        The columns.
    expected
        What the table should be, for the message.
    what
        How the message begins, before "no column".
    rows
        Whether it needs a row, too.
    """
    for column in columns:
        if column not in table:
            raise InputError(f"{what} no column {column}; expected {expected}")
    if rows and table.empty:
        raise InputError(f"{what} no rows; expected {expected}")


def add_up(rows: Mapping[str, Sequence[Any]] | pd.DataFrame) -> dict[str, Any]:
    """Add kernels up: return `PERFORMANCE` and `STACK` of columns that have those but ``ipc``.

    `TIME` is added up where the columns have it. IPC is the sum of instructions over the sum of
    cycles (MDM, Section III-C); CPI and its stack are means weighted by instructions.
    """
    instructions = np.asarray(rows["instructions"])
    total, cycles = instructions.sum(), np.asarray(rows["cycles"]).sum()
    weight = instructions / total
    means = {name: (np.asarray(rows[name]) * weight).sum() for name in _MEANS}
    times = {name: np.asarray(rows[name]).sum() for name in TIME if name in rows}
    return {"instructions": total, "cycles": cycles, **times, "ipc": total / cycles, **means}


def totals(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Add kernels up as `add_up` does, those of each group of many.

    The result has a row per group: the keys, ``kernels`` (their number), `PERFORMANCE`, `TIME` where
    the table has it, and `STACK`.
    """
    weighted = table.assign(
        **{name: table[name] * table["instructions"] for name in _MEANS}, kernels=1
    )
    groups = weighted.groupby(keys, sort=False, dropna=False)
    times = [name for name in TIME if name in table]
    result = groups[["kernels", "instructions", "cycles", *times, *_MEANS]].sum().reset_index()
    for name in _MEANS:
        result[name] /= result["instructions"]
    place = list(result.columns).index("cpi")
    result.insert(place, "ipc", result["instructions"] / result["cycles"])
    return result


def as_records(
    table: pd.DataFrame | Iterable[Mapping[Any, Any]],
) -> list[dict[str, Any]]:
    """Return rows of results with the CPI stack as one dictionary each, ready for JSON."""
    rows: Iterable[Any] = table.to_dict("records") if is_dataframe(table) else table
    records = []
    for values in rows:
        record = {str(name): value for name, value in values.items()}
        stack = {component: record.pop(f"cpi_{component}") for component in STACK_COMPONENTS}
        provenance = {name: record.pop(name) for name in PROVENANCE}
        records.append({**record, "cpi_stack": stack, **provenance})
    return records


#: Characters that a spreadsheet takes for a formula at the beginning of a cell, after marks of text.
_FORMULA = r"^('*[=+\-@\t\r])"


def csv_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a CSV file: texts that a spreadsheet would compute begin with ``'``.

    A kernel may have any name, ``=HYPERLINK(...)`` among them. `texts_of_csv` takes the mark away.
    """
    return _in_texts(table, _FORMULA, r"'\1")


def texts_of_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Return what was read from a CSV file that `csv_texts` was written to."""
    return _in_texts(table, r"^'('*[=+\-@\t\r])", r"\1")


def _in_texts(table: pd.DataFrame, pattern: str, replacement: str) -> pd.DataFrame:
    changed = {}
    for name in map(str, table.columns):
        column = table[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        is_text = column.map(lambda value: isinstance(value, str))
        texts = column[is_text].astype(object)
        found = texts.str.replace(pattern, replacement, regex=True)
        if not found.equals(texts):
            changed[name] = column.astype(object).where(~is_text, found)
    return table.assign(**changed) if changed else table


def checked_table(
    what: str,
    table: pd.DataFrame,
    *,
    positive: Iterable[str] = (),
    numbers: Iterable[str] = (),
    perhaps: Iterable[str] = (),
    whole: Iterable[str] = (),
    texts: Iterable[str] = (),
) -> pd.DataFrame:
    """Return a table whose columns have the values that a function computes with.

    Parameters
    ----------
    what
        What messages call the table.
    table
        The table; columns that it does not have are not asked for.
    positive, numbers, perhaps
        Columns of numbers above 0; of numbers; and of numbers that may be missing (NaN).
    whole
        Those among them whose numbers are whole and below 2^53.
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
    for name in whole:
        if name in table:
            wrong = _are_not_whole(found[name].to_numpy(dtype=float))
            if wrong.any():
                raise _wrong(what, table[name], wrong, "a whole number")
    for name in texts:
        if name in table:
            found[name] = _texts(what, table[name])
    changed = {name: column for name, column in found.items() if column is not table[name]}
    return table.assign(**changed) if changed else table


def csv_numbers(
    where: str,
    table: pd.DataFrame,
    columns: Iterable[str],
    place: Callable[[int], str],
    whole: Iterable[str] = (),
    texts: bool = True,
) -> pd.DataFrame:
    """Return the table of a file with the columns as numbers; missing values stay so.

    Parameters
    ----------
    where
        The file, for messages.
    table
        As pandas read it.
    columns
        Those of numbers that the table has.
    place
        Says where the row of a number is in the file.
    whole
        Those of whole numbers below 2^53.
    texts
        Whether a number may be a text, as in CSV.

    Raises
    ------
    InputError
        For the first value that is not such a finite number: place, column, value.
    """
    no_numbers = (bool, list, dict) if texts else (bool, list, dict, str)

    def convertible(value: object) -> object:
        if _is_huge(value):  # pandas reads it as it is and cannot convert it
            return math.inf
        return "no number" if isinstance(value, no_numbers) else value

    found: dict[str, pd.Series] = {}
    for name in columns:
        column = numbers = table[name]
        if column.dtype.kind not in "iuf":
            numbers = column.map(convertible)
        values = pd.to_numeric(numbers, errors="coerce")
        as_doubles = values.to_numpy(dtype=float)
        wrong = (np.isnan(as_doubles) & column.notna().to_numpy()) | np.isinf(as_doubles)
        if name in whole:
            wrong |= _are_not_whole(as_doubles)
        if wrong.any():
            row = int(wrong.argmax())
            if np.isfinite(as_doubles[row]):
                kind = "a whole number below 2^53"
            else:
                kind = "a finite number" if np.isinf(as_doubles[row]) else "a number"
            raise InputError(
                f"{where}: {place(row)}: {name} = {shown(column.iloc[row])} is not {kind}; correct it or "
                "remove the row"
            )
        if numbers is not column:
            found[name] = values
    return table.assign(**found) if found else table


def _are_not_whole(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which numbers are not whole, or so large that doubles are not exact; NaN is none."""
    with np.errstate(invalid="ignore"):
        wrong: npt.NDArray[np.bool_] = (values % 1 != 0) | (np.abs(values) >= 2**53)
    return wrong & ~np.isnan(values)


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
    return not _is_huge(value)


def _is_huge(value: object) -> bool:
    """Return whether a value is a whole number that a double may not hold."""
    return isinstance(value, int) and abs(value) >= 2**1000


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
