"""The output of ``nvprof --csv``: GPU traces, metrics and events, per launch or per kernel."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from warpstack.validation.reference.common import (
    Line,
    Section,
    number,
    plain_name,
    scale_of_unit,
    whole_number,
)

TRACE = frozenset({"Start", "Duration", "Name"})
METRICS = frozenset({"Device", "Kernel", "Invocations", "Metric Name", "Avg"})
EVENTS = frozenset({"Device", "Kernel", "Invocations", "Event Name", "Avg"})
METRIC_TRACE = frozenset({"Device", "Context", "Stream", "Kernel"})
SUMMARY = frozenset({"Time(%)", "Time", "Calls", "Name"})

#: Metrics that have a name here. Transactions of L2 and DRAM are 32-byte sectors.
_NAMES = {
    "inst_executed": "instructions",
    "l2_tex_read_transactions": "l2_read_sectors",
    "l2_tex_write_transactions": "l2_write_sectors",
    "dram_read_transactions": "dram_read_sectors",
    "dram_write_transactions": "dram_write_sectors",
    # nvprof's value is of one SM while it is active; ours is of the whole GPU.
    "ipc": "ipc_per_sm",
}
#: A function of the CUDA runtime or driver.
_CALL = re.compile(r"cu(?:da)?[A-Z]\w*$")
_NOT_METRICS = {*METRIC_TRACE, "Correlation_ID"}


def read_trace(sections: list[Section]) -> pd.DataFrame:
    """Read ``--print-gpu-trace``: kernels in order, with their times."""
    rows: list[dict[str, Any]] = []
    for section in sections:
        units = _units(section)
        for line, row in section.rows():
            if row["Name"].startswith("[CUDA "):
                continue  # copies and fills
            rows.append(
                {
                    "source": "nvprof",
                    "kernel": len(rows) + 1,
                    "name": plain_name(row["Name"]),
                    "gpu": row.get("Device", ""),
                    "time_s": number(line, "Duration", row["Duration"], units["Duration"]),
                }
            )
    return pd.DataFrame(rows)


def read_metrics(sections: list[Section]) -> pd.DataFrame:
    """Read ``--metrics`` or ``--events``: means over all launches of a kernel."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for section in sections:
        kind = "Metric Name" if "Metric Name" in section.header else "Event Name"
        for line, row in section.rows():
            key = (row["Device"], row["Kernel"])
            launches = whole_number(line, "Invocations", row["Invocations"])
            values = rows.setdefault(
                key,
                {
                    "source": "nvprof",
                    "kernel": pd.NA,
                    "launches": launches,
                    "name": plain_name(row["Kernel"]),
                    "gpu": row["Device"],
                },
            )
            if launches != values["launches"]:
                raise line.error(
                    f"Invocations = {launches} of {values['name']}, which had {values['launches']} "
                    "before; give one run per file"
                )
            values[_NAMES.get(row[kind], row[kind])] = _value(line, row[kind], row["Avg"])
    return pd.DataFrame(rows.values())


def read_metric_trace(sections: list[Section]) -> pd.DataFrame:
    """Read ``--print-gpu-trace --metrics``: a row per launch, a column per metric."""
    rows: list[dict[str, Any]] = []
    for section in sections:
        metrics = [column for column in section.header if column and column not in _NOT_METRICS]
        units = _units(section)
        for line, row in section.rows():
            values = {_NAMES.get(m, m): _value(line, m, row[m], units[m]) for m in metrics}
            about = {"kernel": len(rows) + 1, "name": plain_name(row["Kernel"])}
            rows.append({"source": "nvprof", **about, "gpu": row["Device"], **values})
    return pd.DataFrame(rows)


def read_summary(sections: list[Section]) -> pd.DataFrame:
    """Read nvprof's default output: the mean of all launches of a kernel, without copies and calls."""
    rows: list[dict[str, Any]] = []
    for section in sections:
        units = _units(section)
        for line, row in section.rows():
            # Old versions have no column Type, and calls in a table of their own.
            is_call = row.get("Type", "GPU activities") != "GPU activities"
            if is_call or row["Name"].startswith("[CUDA ") or _CALL.match(row["Name"]):
                continue
            launches = whole_number(line, "Calls", row["Calls"])
            about = {"source": "nvprof", "kernel": pd.NA, "launches": launches}
            total = number(line, "Time", row["Time"], units["Time"])
            time_s = total / launches if launches else float("nan")
            rows.append({**about, "name": plain_name(row["Name"]), "time_s": time_s})
    return pd.DataFrame(rows)


def _value(line: Line, name: str, text: str, unit: str = "") -> float:
    return number(line, name, text, unit, binary_bytes=True)


def _units(section: Section) -> dict[str, str]:
    """Take the line of units off a table that has one: cells that are units or empty."""
    units = dict.fromkeys(section.header, "")
    if section.lines:
        cells = section.lines[0].cells
        if any(cells) and all(scale_of_unit(cell) is not None for cell in cells):
            units = dict(zip(section.header, cells, strict=True))
            del section.lines[0]
    return units
