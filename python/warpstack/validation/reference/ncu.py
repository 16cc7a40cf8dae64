"""What ``ncu --csv`` writes: a row per metric, a row per launch, or a row per kernel and metric."""

from __future__ import annotations

from typing import Any

import pandas as pd

from warpstack.validation.reference.common import Line, Section, number, plain_name, whole_number

LONG = frozenset({"ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"})
SUMMARY = frozenset({"Kernel Name", "Invocations", "Metric Name", "Metric Unit", "Average"})
RAW = frozenset({"ID", "Kernel Name"})

#: Metrics that have a name here, those of the raw page and those of the details page.
_NAMES = {
    "sm__cycles_elapsed.max": "cycles",
    "gpc__cycles_elapsed.max": "cycles",
    "Elapsed Cycles": "cycles",
    "gpu__time_duration.sum": "time_s",
    "Duration": "time_s",
    "smsp__inst_executed.sum": "instructions",
    "sm__inst_executed.sum": "instructions",
    "Executed Instructions": "instructions",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "l1_read_sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum": "l1_read_sector_hits",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "l1_write_sectors",
    "lts__t_sectors_op_read.sum": "l2_read_sectors",
    "lts__t_sectors_op_read_lookup_hit.sum": "l2_read_sector_hits",
    "lts__t_sectors_op_write.sum": "l2_write_sectors",
    "lts__t_sectors_op_write_lookup_hit.sum": "l2_write_sector_hits",
    "dram__sectors_read.sum": "dram_read_sectors",
    "dram__sectors_write.sum": "dram_write_sectors",
}
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


def read_long(sections: list[Section]) -> pd.DataFrame:
    """Read the details page: a row per launch, section and metric."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for section in sections:
        for line, row in section.rows():
            values = _launch(rows, line, row)
            # Rows of rules have no metric; metrics outside sections have texts among them.
            if row["Metric Name"] and _is_value(row["Metric Value"], row["Metric Unit"]):
                _set(values, line, row["Metric Name"], row["Metric Value"], row["Metric Unit"])
    return _table(rows)


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
            values = _launch(rows, line, row)
            for metric in metrics:
                if _is_value(row[metric], units[metric]):
                    _set(values, line, metric, row[metric], units[metric])
    return _table(rows)


def read_summary(sections: list[Section]) -> pd.DataFrame:
    """Read ``--print-summary per-kernel``: means over all launches of a kernel."""
    rows: dict[str, dict[str, Any]] = {}
    for section in sections:
        for line, row in section.rows():
            launches = whole_number(line, "Invocations", row["Invocations"])
            name = plain_name(row["Kernel Name"])
            about = {"source": "ncu", "kernel": pd.NA, "launches": launches, "name": name}
            values = rows.setdefault(row["Kernel Name"], about)
            if row["Metric Name"] and _is_value(row["Average"], row["Metric Unit"]):
                _set(values, line, row["Metric Name"], row["Average"], row["Metric Unit"])
    return pd.DataFrame(rows.values())


def _launch(
    rows: dict[tuple[str, str], dict[str, Any]], line: Line, row: dict[str, str]
) -> dict[str, Any]:
    """Return the values of a launch; launches are numbered from 1 in the order of the file."""
    key = (row.get("Process ID", ""), row["ID"])
    if key not in rows:
        name = plain_name(row["Kernel Name"])
        rows[key] = {"source": "ncu", "kernel": len(rows) + 1, "name": name}
    elif rows[key]["name"] != plain_name(row["Kernel Name"]):
        raise line.error(f"the launch {row['ID']} has two names; give one run per file")
    return rows[key]


def _is_value(text: str, unit: str) -> bool:
    """Whether a cell is to be read: without a unit, it may be text that describes the launch."""
    return bool(unit) or text.replace(",", "").replace(".", "").replace("-", "").isdigit()


def _set(values: dict[str, Any], line: Line, metric: str, text: str, unit: str) -> None:
    name = _NAMES.get(metric, metric)
    if name in values and name in _NAMES.values():
        return  # the first of several metrics for one thing
    values[name] = number(line, metric, text, unit)


def _table(rows: dict[tuple[str, str], dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows.values())
