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


def is_counters(columns: Sequence[str]) -> bool:
    """Whether columns are prefixed with the machines that they are of."""
    return "cycles" not in columns and any(_COUNTER.fullmatch(column) for column in columns)


def read_table(sections: list[Section]) -> pd.DataFrame:
    """Read a table with a row per launch; empty cells are missing values."""
    rows: list[dict[str, Any]] = []
    for section in sections:
        for line, cells in section.rows():
            row: dict[str, Any] = {"source": "table"}
            for column, text in cells.items():
                if column in _TEXTS:
                    value = plain_name(text) if column == "name" else text
                    row[_TEXTS[column]] = value
                elif column:
                    row[_NUMBERS.get(column, column)] = number(line, column, text)
            rows.append({**row, "kernel": whole_number(line, "kernel", cells["kernel"])})
    return pd.DataFrame(rows)


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
