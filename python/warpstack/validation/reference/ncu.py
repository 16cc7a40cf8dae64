"""The output of ``ncu --csv``: a row per metric, a row per launch, or a row per kernel and metric."""

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
from warpstack.validation.reference.ncu_names import METRICS, named

LONG = frozenset({"ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"})
SUMMARY = frozenset({"Kernel Name", "Invocations", "Metric Name", "Metric Unit", "Average"})
RAW = frozenset({"ID", "Kernel Name"})

#: Columns of the raw page that are not metrics.
_ABOUT = {
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
}
#: ``(512, 1, 1)``.
_DIM3 = re.compile(r"\(\s*([0-9]+),\s*([0-9]+),\s*([0-9]+)\s*\)")


def read_long(sections: list[Section]) -> pd.DataFrame:
    """Read the details page: a row per launch, section and metric."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for section in sections:
        for line, row in section.rows():
            launch = _launch(rows, line, row)
            # Rows of rules have no metric; metrics outside sections have texts among them.
            if row["Metric Name"] and _is_value(row["Metric Value"], row["Metric Unit"]):
                _set(launch, line, row["Metric Name"], row["Metric Value"], row["Metric Unit"])
    return named(rows.values())


def read_raw(sections: list[Section]) -> pd.DataFrame:
    """Read ``--page raw``: a row per launch, a column per metric, and a line of units."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for section in sections:
        metrics = [column for column in section.header if column and column not in _ABOUT]
        units = dict.fromkeys(section.header, "")
        lines = list(section.rows())
        if lines and not lines[0][1]["ID"]:
            units = lines.pop(0)[1]
        for line, row in lines:
            launch = _launch(rows, line, row)
            for metric in metrics:
                if _is_value(row[metric], units[metric]):
                    _set(launch, line, metric, row[metric], units[metric])
    return named(rows.values())


def read_summary(sections: list[Section]) -> pd.DataFrame:
    """Read ``--print-summary per-kernel``: means over all launches of a kernel."""
    rows: dict[str, dict[str, Any]] = {}
    for section in sections:
        for line, row in section.rows():
            launches = whole_number(line, "Invocations", row["Invocations"])
            about = {"source": "ncu", "kernel": pd.NA, "launches": launches}
            about |= {"name": plain_name(row["Kernel Name"]), **_geometry(row), "metrics": {}}
            kernel = rows.setdefault(row["Kernel Name"], about)
            if row["Metric Name"] and _is_value(row["Average"], row["Metric Unit"]):
                _set(kernel, line, row["Metric Name"], row["Average"], row["Metric Unit"])
    return named(rows.values())


def _launch(
    rows: dict[tuple[str, str], dict[str, Any]], line: Line, row: dict[str, str]
) -> dict[str, Any]:
    """Return what is known of a launch; launches are numbered from 1 in the order of the file."""
    key = (row.get("Process ID", ""), row["ID"])
    name = plain_name(row["Kernel Name"])
    if key not in rows:
        about = {"source": "ncu", "kernel": len(rows) + 1, "name": name}
        rows[key] = {**about, **_geometry(row), "metrics": {}}
    elif rows[key]["name"] != name:
        raise line.error(f"the launch {row['ID']} has two names; give one run per file")
    return rows[key]


def _geometry(row: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Return grid and block, which old versions do not print."""
    cells = {"grid": row.get("Grid Size", ""), "block": row.get("Block Size", "")}
    sizes = {name: _DIM3.fullmatch(text) for name, text in cells.items()}
    return {name: tuple(map(int, size.groups())) for name, size in sizes.items() if size}


def _is_value(text: str, unit: str) -> bool:
    """Whether a cell is to be read: without a unit, it may be text that describes the launch."""
    return bool(unit) or text.replace(",", "").replace(".", "").replace("-", "").isdigit()


def _set(launch: dict[str, Any], line: Line, metric: str, text: str, unit: str) -> None:
    if metric in launch["metrics"]:
        return  # sections share metrics
    if metric not in METRICS and scale_of_unit(unit) is None:
        unit = ""  # nothing here depends on it, and new versions have new units
    launch["metrics"][metric] = number(line, metric, text, unit)
