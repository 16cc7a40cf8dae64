"""Tables with a column ``kernel``: Accel-Sim results, counters of several machines, our own output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from warpstack.validation.reference.common import (
    Section,
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
#: Those that tables of ours have.
_OURS = frozenset({"time_s", "time_us", "cycles"})
_UNIT_COLUMNS = ("unit", "units", "time_unit", "time unit")
_NAME_COLUMNS = ("name", "kernel name", "kernel_name", "Kernel")


def is_counters(columns: Sequence[str]) -> bool:
    """Whether columns are prefixed with the machines that they are of."""
    return "cycles" not in columns and any(_COUNTER.fullmatch(column) for column in columns)


def is_times(columns: Sequence[str]) -> bool:
    """Whether columns are the names of kernels, without their numbers, and a time or cycles."""
    names = {*columns, *(column.lower() for column in columns)}
    is_measured = bool(_measured(columns)) or bool(_OURS & set(columns))
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
    """Read a table with a row per launch; empty cells are missing values."""
    rows: list[dict[str, Any]] = []
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
            if not measured and not _OURS & set(section.header):
                raise section.lines[0].error(
                    "a table of kernels without a time whose unit is known; call its column time_us, "
                    "time_ms or cycles"
                )
        for line, cells in section.rows():
            row: dict[str, Any] = {"source": "table"}
            for column, text in cells.items():
                if column in names:
                    row["name"] = plain_name(text)
                elif column in _TEXTS:
                    row[_TEXTS[column]] = text
                elif column in measured:
                    unit = measured[column] or (cells[unit_column] if unit_column else "")
                    what = "cycles" if unit.lower().startswith("cycle") else "time_s"
                    row[what] = number(line, column, text, unit)
                elif column and column not in ("kernel", unit_column):
                    row[_NUMBERS.get(column, column)] = number(line, column, text)
            launch = len(rows) + 1
            if not is_named:
                launch = whole_number(line, "kernel", cells["kernel"])
            rows.append({**row, "kernel": launch})
    return pd.DataFrame(rows)


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
