"""References to hold predictions against: one module per source of files behind one registry.

A reference is a DataFrame with one row per kernel launch: ``source`` (the tool, the machine or the
file), ``kernel`` (launch number, missing when a row stands for all launches of a name),
``launches`` (how many it stands for), ``name`` (function name), as far as known ``app``, ``gpu``,
``change``, and values in base units: ``cycles``, ``time_s``, ``instructions`` (of warps), ``ipc``
(warp instructions per cycle of the whole GPU), the counters ``l1_read_sectors`` to
``dram_write_sectors``, and everything else under the name that the tool gives it. Of Nsight Compute,
``attrs["metrics"]`` says by column which metrics it is made of (`ncu_metrics`).
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import checked
from warpstack._util.input_file import MAX_TABLE_BYTES, read_input
from warpstack.errors import InputError, shown
from warpstack.traces.io.common import reading
from warpstack.validation.reference import ncu, ncu_report, nvprof, tables
from warpstack.validation.reference.common import Line, Section
from warpstack.validation.reference.ncu_names import ncu_metrics

__all__ = ["ncu_metrics", "read", "read_ncu"]


@dataclass(frozen=True)
class Dialect:
    """A kind of file: the columns that tell it from others, and how to read its tables."""

    name: str
    columns: frozenset[str]
    read: Callable[[list[Section]], pd.DataFrame]
    #: What the header has to pass, too.
    test: Callable[[Sequence[str]], bool] | None = None

    def matches(self, header: Sequence[str]) -> bool:
        """Whether the cells of a line are the header of such a table."""
        return self.columns <= set(header) and (self.test is None or self.test(header))


#: Of Nsight Compute.
NCU: Sequence[Dialect] = (
    Dialect("Nsight Compute, a row per metric", ncu.LONG, ncu.read_long),
    Dialect("Nsight Compute, metrics by kernel", ncu.SUMMARY, ncu.read_summary),
    Dialect("Nsight Compute, raw page", ncu.RAW, ncu.read_raw),
)
#: Asked in this order.
DIALECTS: Sequence[Dialect] = (
    *NCU,
    Dialect("nvprof, GPU trace", nvprof.TRACE, nvprof.read_trace),
    Dialect("nvprof, metrics", nvprof.METRICS, nvprof.read_metrics),
    Dialect("nvprof, events", nvprof.EVENTS, nvprof.read_metrics),
    Dialect("nvprof, metrics by launch", nvprof.METRIC_TRACE, nvprof.read_metric_trace),
    Dialect("nvprof, summary", nvprof.SUMMARY, nvprof.refuse_summary),
    Dialect("counters of several machines", tables.TABLE, tables.read_counters, tables.is_counters),
    Dialect("table", tables.TABLE, tables.read_table),
)


@checked
def read(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read results of a simulator or counters of a profiler.

    Parameters
    ----------
    path
        A report of Nsight Compute (``.ncu-rep``, see `read_ncu`), or a CSV file: what ``ncu --csv``
        wrote (details, ``--page raw`` or ``--print-summary per-kernel``), what ``nvprof --csv`` wrote
        (``--print-gpu-trace``, ``--metrics``, ``--events``, or both), or a table with a column
        ``kernel``: of Accel-Sim results, of counters of several machines, or one that `warpstack`
        printed. ``docs/how-to/validate.md`` describes each.

    Returns
    -------
    DataFrame
        A row per launch; see `warpstack.reference`.

    Raises
    ------
    InputError
        If the file does not exist, is not of these kinds, or has a value that cannot be read; the
        message names file and line.
    """
    place = as_path("reference", path)
    return _read(
        place,
        DIALECTS,
        "not a reference that warpstack knows; expected a report of Nsight Compute (.ncu-rep), what "
        "ncu --csv or nvprof --csv writes, or a table (CSV) with a column kernel, such as "
        "`warpstack simulate --csv` prints",
    )


@checked
def read_ncu(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a report of Nsight Compute.

    Parameters
    ----------
    path
        A report (``.ncu-rep``), which NVIDIA's package ``ncu-report`` reads (``pip install
        'warpstack[ncu]'``), or what ``ncu --csv`` wrote, which needs no package.

    Returns
    -------
    DataFrame
        A row per launch, in the order of the report: ``source``, ``kernel``, ``launches``, ``name``,
        ``grid`` and ``block`` (threads), ``gpu`` (of a ``.ncu-rep``), the statistics that
        `ncu_metrics` lists, ``ipc``, and all metrics that are numbers under their own names, in base
        units. ``attrs["metrics"]`` says by statistic of which metrics of this report it is made.

    Raises
    ------
    InputError
        If the file does not exist, is damaged, has results that are not of kernels, or is a
        ``.ncu-rep`` and NVIDIA's package is missing.
    """
    place = as_path("report", path)
    return _read(
        place,
        NCU,
        "not a report of Nsight Compute; expected a .ncu-rep file, or what ncu --csv writes",
    )


def _read(place: Path, dialects: Sequence[Dialect], otherwise: str) -> pd.DataFrame:
    """Read a report, or a CSV file of one of these kinds; `otherwise` says that it is none."""
    if ncu_report.is_report(place):
        return _finished(ncu_report.read_report(place), place)
    where = printable(place)
    with reading(place):
        data = read_input(place, "reference", MAX_TABLE_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not text in UTF-8: {error.reason}") from None
    lines = _lines(where, text)
    for number, line in enumerate(lines):
        for dialect in dialects:
            if dialect.matches(line.cells):
                sections = _sections(lines[number:], dialect, where)
                return _finished(dialect.read(sections), place)
    raise InputError(f"{where}: {otherwise}")


def _lines(where: str, text: str) -> list[Line]:
    reader = csv.reader(io.StringIO(text), strict=False)
    lines = []
    try:
        for cells in reader:
            # Both tools say what they do in lines of their own.
            if any(cells) and not cells[0].startswith("=="):
                lines.append(Line(where, reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise InputError(f"{where}:{reader.line_num}: not CSV: {error}") from None
    return lines


def _sections(lines: list[Line], dialect: Dialect, where: str) -> list[Section]:
    """Cut a file into tables; nvprof puts its events, metrics and trace one after the other."""
    family = [d for d in DIALECTS if d.read is dialect.read]
    sections: list[Section] = []
    for line in lines:
        if any(d.matches(line.cells) for d in family):
            twice = [c for c in line.cells if c and line.cells.count(c) > 1]
            if twice:
                raise line.error(f"the column {shown(twice[0])} appears twice")
            sections.append(Section(line.cells, []))
            continue
        header = sections[-1].header
        if len(line.cells) != len(header):
            raise line.error(
                f"{len(line.cells)} cells under {len(header)} columns; remove what is not of the table"
            )
        sections[-1].lines.append(line)
    if not any(section.lines for section in sections):
        raise InputError(f"{where}: the table has no rows")
    return sections


def _finished(table: pd.DataFrame, where: Path) -> pd.DataFrame:
    if table.empty:
        raise InputError(f"{printable(where)}: no kernel in it")
    table["source"] = table["source"].where(table["source"] != "table", where.stem)
    if "launches" not in table:
        table["launches"] = 1
    if {"instructions", "cycles"} <= set(table) and "ipc" not in table:
        table["ipc"] = table["instructions"] / table["cycles"].where(table["cycles"] > 0, np.nan)
    first = [
        c for c in ("source", "app", "kernel", "launches", "name", "gpu", "change") if c in table
    ]
    return table[[*first, *(c for c in table if c not in first)]]
