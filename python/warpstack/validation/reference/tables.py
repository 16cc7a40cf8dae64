"""Tables with a column ``kernel``: Accel-Sim results, counters of several machines, our own output."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from warpstack._util.headings import unit_of
from warpstack.errors import InputError, shown
from warpstack.validation.reference.common import (
    Line,
    Section,
    kind_of_unit,
    number,
    plain_name,
    scale_of_unit,
    whole_number,
)

TABLE = frozenset({"kernel"})

#: Columns that are text.
_TEXTS = {
    "app": "app",
    "trace": "app",
    "suite": "suite",
    "class": "class",
    "name": "name",
    "gpu": "gpu",
    "gpu_changes": "gpu_changes",
    "change": "change",
    "model": "model",
    "source": "source",
    "trace_digest": "trace_digest",
    "gpu_digest": "gpu_digest",
    "version": "version",
    "profiler": "profiler",
    "reason": "reason",
}
_NUMBERS = {
    "warp_instructions": "instructions",
    "warp_insts": "instructions",
    "inst_executed": "instructions",
    "l2_tex_read_transactions": "l2_read_sectors",
    "l2_tex_write_transactions": "l2_write_sectors",
    "dram_read_transactions": "dram_read_sectors",
    "dram_write_transactions": "dram_write_sectors",
    "l1_rd_acc": "l1_read_sectors",
    "l1_rd_hit": "l1_read_sector_hits",
    "l2_rd_acc": "l2_read_sectors",
    "l2_rd_hit": "l2_read_sector_hits",
}
#: ``hw_gtx1080_duration_us``: whose, and what.
_COUNTER = re.compile(r"(?P<machine>(?:hw|accelsim)_[a-z0-9]+)_(?P<what>\w+)")
_SUM_OVER_SMS = re.compile(r"elapsed_cycles_sm_sum(?P<sms>[0-9]+)")
_DURATION = re.compile(r"duration_(?P<unit>[nmu]?s)")
#: ``time_ms``, ``Duration (ns)``, ``kernel time [us]``, ``cycles``; without a unit, a column has it.
_MEASURED = re.compile(
    r"(?:(?:gpu|kernel|elapsed|measured|mean|avg|average)[ _]?)?(?P<what>time|duration|elapsed|cycles)"
    r"(?:[ _]*[(\[]?(?P<unit>[a-z\u00b5\u03bc]+)[)\]]?)?",
    re.IGNORECASE,
)
#: Those that tables of ours have, with their units.
_OURS = {"time_s": "s", "time_us": "us", "cycles": "cycles"}
_TIME_NAMES = "time_us, time_ns, time_ms or time_s, after the unit of its numbers, or cycles"
#: Text in place of a number that a program failed to compute, unlike an empty cell or ``n/a``.
_NO_NUMBER = frozenset({"nan", "-nan", "+nan", "inf", "-inf", "+inf", "infinity"})
_UNIT_COLUMNS = ("unit", "units", "time_unit", "time unit")
#: Columns that tell runs apart, each of which numbers its launches from 1.
_APART = ("app", "change", "gpu", "gpu_changes")
_NAME_COLUMNS = ("name", "kernel name", "kernel_name", "Kernel")


def is_counters(columns: Sequence[str]) -> bool:
    """Whether columns are prefixed with the machines that they are of."""
    return "cycles" not in columns and any(_COUNTER.fullmatch(column) for column in columns)


def is_times(columns: Sequence[str]) -> bool:
    """Whether columns are the names of kernels, without their numbers, and a time or cycles."""
    names = {*columns, *(column.lower() for column in columns)}
    is_measured = bool(_measured(columns)) or bool(set(_OURS) & set(columns))
    return is_measured and bool(names & {*_NAME_COLUMNS, "kernel"})


def _measured(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns of times and cycles with their units, empty where the header says none."""
    found: dict[str, str] = {}
    has_unit = any(column.lower() in _UNIT_COLUMNS for column in columns)
    for column in columns:
        match = _MEASURED.fullmatch(column.strip())
        if match is None or column in _OURS:
            continue
        unit = match["unit"] or ("cycles" if match["what"].lower() == "cycles" else "")
        if (unit or has_unit) and scale_of_unit(unit) is not None:
            found[column] = unit
    return found


def read_table(sections: list[Section]) -> pd.DataFrame:
    """Read a table with a row per launch; empty cells are missing values.

    ``attrs["empty"]`` says the lines of rows without a time or cycles, by their place in the table.
    """
    rows: list[dict[str, Any]] = []
    empty: dict[int, str] = {}  # where rows are whose time or cycles are missing
    counts: Counter[tuple[str, ...]] = Counter()
    for section in sections:
        measured = _measured(section.header)
        unit_column = next((c for c in section.header if c.lower() in _UNIT_COLUMNS), None)
        names = [c for c in section.header if {c, c.lower()} & {*_NAME_COLUMNS}]
        # A column kernel with names in it has no numbers: the launches are in the file's order.
        is_named = "kernel" not in section.header or (
            not names and any(_is_name(cells["kernel"]) for _, cells in section.rows())
        )
        if is_named:
            names = names or ["kernel"]
        if not measured and not set(_OURS) & set(section.header):
            if said := _unknown_unit(section.header):
                raise InputError(f"{section.lines[0].where}: {said}")
            if is_named:
                raise section.lines[0].error(
                    f"a table of kernels without a time whose unit is known; call its column {_TIME_NAMES}"
                )
        for line, cells in section.rows():
            row: dict[str, Any] = {"source": "table"}
            for column, text in cells.items():
                if column in names:
                    row["name"] = plain_name(text)
                elif column in _TEXTS:
                    row[_TEXTS[column]] = text
                elif column in measured:
                    said = cells[unit_column] if unit_column else ""
                    unit = measured[column] or said
                    _check_unit(line, column, unit, said)
                    what = "cycles" if unit.lower().startswith("cycle") else "time_s"
                    row[what] = _measurement(line, column, text, unit)
                elif column in _OURS:
                    if unit_column:
                        _check_unit(line, column, _OURS[column], cells[unit_column])
                    row[column] = _measurement(line, column, text, _OURS[column], keep_unit=True)
                elif column and column not in ("kernel", unit_column):
                    name = _NUMBERS.get(column, column)
                    row[name] = number(line, column, text, _unit_of_column(name), keep_unit=True)
            launch: Any
            if is_named and cells.get("launches"):
                row["launches"] = whole_number(line, "launches", cells["launches"])
                launch = pd.NA  # the mean over so many of this name
            elif is_named:
                of = tuple(row.get(column, "") for column in _APART)
                counts[of] += 1
                launch = counts[of]
            else:
                launch = whole_number(line, "kernel", cells["kernel"])
            if any(
                row.get(what, 0) != row.get(what, 0) for what in ("time_s", "time_us", "cycles")
            ):
                empty[len(rows)] = f"{line.where}:{line.number}"
            rows.append({**row, "kernel": launch})
    table = pd.DataFrame(rows)
    if empty:
        table.attrs["empty"] = empty
    return table


def wrong_columns(columns: Sequence[str]) -> str:
    """Return what a header lacks of a table with names and times; empty where it is none at all."""
    named = {*columns, *(column.lower() for column in columns)} & {*_NAME_COLUMNS, "kernel"}
    if wrong := _unknown_unit(columns):
        return wrong
    is_measured = bool(_measured(columns)) or bool(set(_OURS) & set(columns))
    if is_measured and not named:
        return "no column says which kernel a row is of; call it name (of the kernel) or kernel"
    if named and not is_measured:
        return f"none of its columns is a time or cycles; call that one {_TIME_NAMES}"
    return ""


def _unknown_unit(columns: Sequence[str]) -> str:
    """Return what is wrong with a column that is a time of no known unit; empty without one."""
    for column in columns:
        match = _MEASURED.fullmatch(column.strip())
        unit = match["unit"] if match else None
        if match is None or (unit and scale_of_unit(unit) is not None):
            continue
        if match["what"].lower() == "cycles":
            continue  # of something else than a kernel, such as cycles_active
        wrong = f"has the unknown unit {shown(unit)}" if unit else "says no unit"
        return f"the column {shown(column)} {wrong}; call it {_TIME_NAMES}"
    return ""


def _check_unit(line: Line, column: str, unit: str, said: str) -> None:
    """Raise `InputError` if the header gives a time one unit and a column of units another."""
    if kind_of_unit(said) == kind_of_unit(unit) == "time" and scale_of_unit(said) != scale_of_unit(
        unit
    ):
        raise line.error(
            f"{column} is in {unit} by its name and in {said} by the column of units; correct one of them"
        )


def _measurement(
    line: Line, column: str, text: str, unit: str, *, keep_unit: bool = False
) -> float:
    """Return a time or cycles; a kernel takes some."""
    value = number(line, column, text, unit, keep_unit=keep_unit)
    is_time = kind_of_unit(unit) == "time"
    if text.strip().lower() in _NO_NUMBER or value < 0 or (is_time and value == 0):
        what = "a time above 0" if is_time else "a number of cycles"
        raise line.error(
            f"{column} = {shown(text)} is not {what}; correct it, or leave the cell empty"
        )
    return value


def _unit_of_column(column: str) -> str:
    """Return the unit of what is neither a time of a kernel nor its cycles; empty if not known."""
    if column.endswith(("_sectors", "_sector_hits")):
        return "sector"
    unit = "inst" if column in ("instructions", "thread_instructions") else unit_of(column)
    return unit if scale_of_unit(unit) is not None else ""


def _is_name(text: str) -> bool:
    """Whether a cell is the name of a kernel rather than its number."""
    return text[:1].isalpha() or text[:1] in ("_", "<", "(")


def read_counters(sections: list[Section]) -> pd.DataFrame:
    """Read a table whose columns belong to machines: a row per launch and machine."""
    rows: list[dict[str, Any]] = []
    for section in sections:
        machines: dict[str, list[str]] = {}
        for column in section.header:
            if match := _COUNTER.fullmatch(column):
                machines.setdefault(match["machine"], []).append(column)
        for machine, columns in machines.items():
            for line, cells in section.rows():
                kernel = whole_number(line, "kernel", cells["kernel"])
                row: dict[str, Any] = {"source": machine, "kernel": kernel}
                if "name" in cells:
                    row["name"] = plain_name(cells["name"])
                for column in columns:
                    what = column.removeprefix(f"{machine}_")
                    # IPC of thread instructions, or of one SM: other things than ours.
                    if what != "ipc":
                        name, scale = _counter(what)
                        row[name] = number(line, column, cells[column]) * scale
                rows.append(row)
    return pd.DataFrame(rows)


def _counter(what: str) -> tuple[str, float]:
    """Return the name of a counter here, and what its values are multiplied by."""
    if match := _SUM_OVER_SMS.fullmatch(what):
        return "cycles", 1 / int(match["sms"])
    if match := _DURATION.fullmatch(what):
        return "time_s", scale_of_unit(match["unit"]) or 1.0
    return _NUMBERS.get(what, what), 1.0
