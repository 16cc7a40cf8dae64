"""References to hold predictions against: one module per source of files behind one registry.

A reference is a DataFrame with one row per kernel launch: ``source`` (the tool, the machine or the
file), ``kernel`` (launch number, missing when a row stands for all launches of a name),
``launches`` (how many it stands for), ``name`` (function name), as far as known ``app``, ``gpu``,
``change``, and values in base units: ``cycles``, ``time_s``, ``instructions`` (of warps), ``ipc``
(warp instructions per cycle of the whole GPU), the counters ``l1_read_sectors`` to
``dram_write_sectors``, and everything else under the name that the tool gives it. For files of
Nsight Compute, ``attrs["metrics"]`` says by column which metrics it is made of (`ncu_metrics`).
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import checked
from warpstack._util.foreign_file import foreign
from warpstack._util.input_file import MAX_TABLE_BYTES, open_input, read_input
from warpstack.errors import InputError, shown
from warpstack.traces.io.common import reading
from warpstack.validation.reference import (
    ncu,
    ncu_report,
    nsys,
    nsys_database,
    nvprof,
    operations,
    tables,
    torch,
)
from warpstack.validation.reference.common import Line, Section
from warpstack.validation.reference.ncu_names import ncu_metrics

__all__ = ["ncu_metrics", "read", "read_ncu", "read_timeline"]


#: Bytes at the start of a file by which those of other tools are recognised.
_HEAD_BYTES = 1 << 16
#: Names of reports of Nsight Systems, in a format of its own.
_REPORTS = (".nsys-rep", ".qdrep")
#: Lines in which what is almost the header of a table is looked for.
_HEADER_LINES = 20


@dataclass(frozen=True)
class Dialect:
    """A kind of file: the columns that tell it from others, and how to read its tables."""

    name: str
    columns: frozenset[str]
    read: Callable[[list[Section]], pd.DataFrame]
    #: A further condition on the header.
    test: Callable[[Sequence[str]], bool] | None = None

    def matches(self, header: Sequence[str]) -> bool:
        """Whether the cells of a line are the header of such a table."""
        return self.columns <= set(header) and (self.test is None or self.test(header))


#: Dialects of Nsight Compute.
NCU: Sequence[Dialect] = (
    Dialect("Nsight Compute, a row per metric", ncu.LONG, ncu.read_long),
    Dialect("Nsight Compute, metrics by kernel", ncu.SUMMARY, ncu.read_summary),
    Dialect("Nsight Compute, raw page", ncu.RAW, ncu.read_raw),
)
#: Dialects in the order in which they are asked.
DIALECTS: Sequence[Dialect] = (
    *NCU,
    Dialect("nvprof, GPU trace", nvprof.TRACE, nvprof.read_trace),
    Dialect("nvprof, metrics", nvprof.METRICS, nvprof.read_metrics),
    Dialect("nvprof, events", nvprof.EVENTS, nvprof.read_metrics),
    Dialect("nvprof, metrics by launch", nvprof.METRIC_TRACE, nvprof.read_metric_trace),
    Dialect("nvprof, summary", nvprof.SUMMARY, nvprof.read_summary),
    Dialect("Nsight Systems, GPU trace", frozenset(), nsys.read_trace, nsys.is_trace),
    Dialect("Nsight Systems, kernels", frozenset(), nsys.read_summary, nsys.is_summary),
    Dialect("Nsight Systems, another report", frozenset(), nsys.refuse, nsys.is_other),
    Dialect("counters of several machines", tables.TABLE, tables.read_counters, tables.is_counters),
    Dialect("table", tables.TABLE, tables.read_table),
    Dialect("table of times", frozenset(), tables.read_table, tables.is_times),
)


@checked
def read(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read results of a simulator or counters of a profiler.

    Parameters
    ----------
    path
        A report of Nsight Compute (``.ncu-rep``, see `read_ncu`), or a CSV file: what ``ncu --csv``
        wrote (details, ``--page raw`` or ``--print-summary per-kernel``), what ``nvprof --csv`` wrote
        (``--print-gpu-trace``, ``--metrics``, ``--events``, or both), what ``nsys stats --format csv``
        wrote (``cuda_gpu_trace``, ``cuda_gpu_kern_sum``) or ``nsys stats`` printed, a trace of PyTorch's
        profiler (JSON), or a table with a column ``kernel``: of Accel-Sim results, of counters of
        several machines, one that `warpstack` printed, or one of your own with names and times whose
        unit the header or a column ``unit`` says. ``docs/how-to/validate.md`` describes each.

    Returns
    -------
    DataFrame
        A row per launch; see `warpstack.validation.reference`.

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
        "`warpstack simulate --csv` prints, or with columns name and time_us",
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


@checked
def read_timeline(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read what a profiler saw a GPU do, in the order of its starts.

    Parameters
    ----------
    path
        What ``nsys export --type sqlite`` wrote; what ``nsys stats --report cuda_gpu_trace --format csv``
        wrote, or ``nsys stats`` printed; or a trace of PyTorch's profiler (``export_chrome_trace``: JSON,
        also compressed by gzip).

    Returns
    -------
    DataFrame
        A row per kernel, copy and fill: ``operation`` (``kernel``, ``copy``, ``memset``), ``name`` (a
        function's own name), ``stream`` (as the profiler numbers them, -1 unknown), ``start_us`` and
        ``end_us`` since the first start, ``direction`` (``HtoD``, ``DtoH``, ``DtoD``, ``PtoP``,
        ``HtoH``; empty for kernels and fills, and for copies whose direction the profiler does not tell),
        ``bytes``, ``device``, ``full_name`` (as the profiler writes it), ``correlation`` (numbers the calls
        in their order; -1 unknown) and ``bytes_step`` (what ``bytes`` are rounded to: ``nsys stats`` prints
        MB to three decimals, 1000).

    Raises
    ------
    InputError
        If the file does not exist, is not of these kinds, or has a value that cannot be read; the
        message names file and line.

    Warns
    -----
    UserWarning
        If the direction of a copy is not known, or a graph is in a database as a whole.
    """
    place = as_path("reference", path)
    where = printable(place)
    with reading(place):
        with open_input(place) as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(nsys_database.MAGIC):
            return nsys_database.read_timeline(place)
        data = _unzipped(read_input(place, "reference", MAX_TABLE_BYTES), where)
    if place.suffix.lower() in _REPORTS:
        raise InputError(
            f"{where}: a report of Nsight Systems, which only nsys reads; write "
            "nsys export --type sqlite REPORT, and give the .sqlite"
        )
    text = _text(where, data)
    if torch.is_json(text):
        return operations.of_torch(text, where)
    lines = nsys.lines_of_text(where, text) if nsys.is_text(text) else _lines(where, text)
    for place_of_header, line in enumerate(lines):
        if nsys.is_trace(line.cells):
            report = _report_of(lines[place_of_header:])
            if not nsys.is_text(text):
                _check_quotes(text, report)
            dialect = next(d for d in DIALECTS if d.test is nsys.is_trace)
            return operations.of_nsys(_sections(report, dialect, where))
    for line in lines:
        if wrong := nsys.missing_of_trace(line.cells):
            raise line.error(wrong)
    is_empty = (
        "" if text.strip() else "; the file is empty: the program that was to write it did not"
    )
    raise InputError(
        f"{where}: no timeline of a profiler; expected what nsys export --type sqlite or nsys stats "
        "--report cuda_gpu_trace --format csv writes, or a trace of PyTorch's profiler "
        f"(export_chrome_trace){is_empty}"
    )


def _unzipped(data: bytes, where: str) -> bytes:
    """Return the content of a file that gzip compressed; others as they are."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(MAX_TABLE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{where}: damaged gzip: {error}; copy the file again, or profile again"
        ) from None
    if len(content) > MAX_TABLE_BYTES:
        raise InputError(
            f"{where}: holds more than {MAX_TABLE_BYTES >> 20} MiB; profile fewer steps"
        )
    return content


def _read(place: Path, dialects: Sequence[Dialect], otherwise: str) -> pd.DataFrame:
    """Read a report, or a CSV file of one of these kinds; `otherwise` is the message for other files."""
    if ncu_report.is_report(place):
        return _finished(ncu_report.read_report(place), place)
    where = printable(place)
    with reading(place):
        data = read_input(place, "reference", MAX_TABLE_BYTES)
    known = foreign(place.name, data[:_HEAD_BYTES])
    if known and not nsys.is_read(data.decode("utf-8", "replace")):
        # Text output of a tool contains CSV of other tools only by chance.
        raise InputError(f"{where}: {known[0]}; {known[1]}")
    text = _text(where, data)
    if torch.is_json(text) and dialects is DIALECTS:
        return _finished(torch.read_json(text, place), place)
    lines = nsys.lines_of_text(where, text) if nsys.is_text(text) else _lines(where, text)
    found = _table(lines, dialects)
    if found is not None:
        dialect, lines = found
        if dialect.name.startswith("Nsight Systems"):
            lines = _report_of(lines)
            if not nsys.is_text(text):
                _check_quotes(text, lines)
        sections = _sections(lines, dialect, where, _said(text))
        return _finished(dialect.read(sections), place)
    if said := _said(text):
        raise InputError(f"{where}: {said}")
    if dialects is DIALECTS and (wrong := _almost(where, text, lines)):
        raise wrong
    is_empty = (
        "" if text.strip() else "; the file is empty: the program that was to write it did not"
    )
    raise InputError(f"{where}: {otherwise}{is_empty}")


def _almost(where: str, text: str, lines: list[Line]) -> InputError | None:
    """Return what keeps a line near the top from being the header of a table."""
    for head in text.splitlines()[:_HEADER_LINES]:
        for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            columns = [cell.strip(' "') for cell in head.split(mark)]
            if len(columns) > 1 and (
                any(dialect.matches(columns) for dialect in DIALECTS)
                or tables.wrong_columns(columns)
            ):
                return InputError(
                    f"{where}: {name} are between its columns ({', '.join(map(shown, columns[:4]))}); "
                    "write commas there, and points before decimals"
                )
    for line in lines[:_HEADER_LINES]:
        if len(line.cells) > 1 and (wrong := tables.wrong_columns(line.cells)):
            return line.error(wrong)
    return None


def _text(where: str, data: bytes) -> str:
    """Return the text of a file: UTF-8, or the UTF-16 that PowerShell redirects output to."""
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff") and len(data) % 2 == 0
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: not text in UTF-8: {error.reason} at byte {error.start}; export it again, or save "
            "it as UTF-8"
        ) from None


def _table(lines: list[Line], dialects: Sequence[Dialect]) -> tuple[Dialect, list[Line]] | None:
    """Return the kind of the first table, and the lines from its header on.

    Nsight Systems writes several reports one after the other, of which that of the launches counts.
    """
    for number, line in enumerate(lines):
        for dialect in dialects:
            if not dialect.matches(line.cells):
                continue
            for better in (nsys.is_trace, nsys.is_summary):
                if nsys.is_report(line.cells):
                    for later, other in enumerate(lines[number:], number):
                        if better(other.cells):
                            kind = next(d for d in dialects if d.test is better)
                            return kind, lines[later:]
            return dialect, lines[number:]
    return None


def _report_of(lines: list[Line]) -> list[Line]:
    """Return the lines of the first report: to the next header, or to what nsys says of it."""
    for number, line in enumerate(lines[1:], 1):
        # A row with too few cells is one of a damaged file, and not the end.
        is_row = len(line.cells) > 1 and line.cells[0].isdigit()
        is_other = len(line.cells) != len(lines[0].cells) and not is_row
        if line.cells == lines[0].cells:
            raise line.error(
                f"the header of line {lines[0].number} is here again; keep one table, and remove the other "
                "header with its rows"
            )
        if nsys.is_report(line.cells) or is_other:
            return lines[:number]
    return lines


def _check_quotes(text: str, report: list[Line]) -> None:
    """Raise `InputError` where a quote is left open, which takes in the rows after it."""
    first, last = report[0].number, report[-1].number
    for number, line in enumerate(text.split("\n")[first - 1 : last], first):
        if line.count('"') % 2:
            begin = line[line.rindex('"') :].strip()
            raise Line(report[0].where, number, []).error(
                f"a quote is open at the end of the line: {shown(begin)}; close it, or export the table again"
            )


def _said(text: str) -> str:
    """Return why a tool of NVIDIA measured nothing, in its own words; empty where it says nothing."""
    for kind in ("ERROR", "WARNING", "PROF"):
        said = re.search(rf"^\s*==(?:{kind})== *(.*\S)", text, re.MULTILINE)
        if said is None:
            continue
        words = said[1] if len(said[1]) <= 200 else said[1][:200] + "..."
        remedy = "profile again"
        if "NVGPUCTRPERM" in text:
            remedy = "run the profiler as an administrator, who may read the counters of the GPU"
        elif "o kernels were profiled" in text:
            remedy = "launch a kernel, and let --kernel-name and the like not leave all of them out"
        return f"Nsight Compute measured nothing: {words}; {remedy}"
    return ""


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


def _sections(lines: list[Line], dialect: Dialect, where: str, said: str = "") -> list[Section]:
    """Cut a file into tables; nvprof puts its events, metrics and trace one after the other."""
    alike = [d for d in DIALECTS if d.read is dialect.read]
    sections: list[Section] = []
    for line in lines:
        if any(d.matches(line.cells) for d in alike):
            twice = [c for c in line.cells if c and line.cells.count(c) > 1]
            if twice:
                raise line.error(f"the column {shown(twice[0])} appears twice")
            sections.append(Section(line.cells, []))
            continue
        header = sections[-1].header
        if _is_said_by_program(line, header):
            continue
        if len(line.cells) != len(header):
            raise line.error(
                f"{len(line.cells)} cells under {len(header)} columns; remove what is not of the table"
            )
        sections[-1].lines.append(line)
    if not any(section.lines for section in sections):
        raise InputError(
            f"{where}: the table has no rows{said and f': {said}'}; measure a part of the program that runs "
            "kernels, and export it again"
        )
    return sections


def _is_said_by_program(line: Line, header: Sequence[str]) -> bool:
    """Whether a line is text of the program that was measured, which writes to the same terminal.

    It has no comma and is not the beginning of a row, as a file that is cut off may end with.
    """
    text = line.cells[0]
    is_begun = "GPU activities".startswith(text) or "API calls".startswith(text)
    return len(line.cells) == 1 and len(header) > 2 and not is_begun and text[:1].isalpha()


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
