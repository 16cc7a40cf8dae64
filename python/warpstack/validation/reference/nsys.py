"""The output of ``nsys stats --format csv``: the kernels of Nsight Systems, per launch or per name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from warpstack.validation.reference.common import Line, Section, number, plain_name, whole_number

__all__ = [
    "is_other",
    "is_read",
    "is_report",
    "is_summary",
    "is_text",
    "is_trace",
    "lines_of_text",
    "missing_of_trace",
    "read_summary",
    "read_trace",
    "refuse",
    "times_of",
]

_TIME = re.compile(r"(?P<name>[A-Za-z ]+?) ?\((?P<unit>[a-z]+)\)")
_AXES = ("GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ")

#: The line under the header of a table in columns: a dash for each character of a column's width.
_RULER = re.compile(r" *-{2,}(?: +-+){2,} *")
_TEXT = re.compile(r"^ *(?:Time \(%\) +Total Time|Start \([a-z]+\) +Duration \()", re.MULTILINE)

_CSV = re.compile(
    r'^"?(?:Time ?\(%\)"?,"?Total Time|(?:API )?Start ?\([a-z]+\)"?,"?(?:Duration|API Dur))',
    re.MULTILINE,
)


def is_text(text: str) -> bool:
    """Whether it has tables in columns, as ``nsys stats`` prints where no format is asked for."""
    return _TEXT.search(text) is not None


def is_read(text: str) -> bool:
    """Whether it has tables in columns, or in CSV below the headings of the reports."""
    return is_text(text) or _CSV.search(text) is not None


def lines_of_text(where: str, text: str) -> list[Line]:
    """Return the headers and rows of all tables in columns; what stands between them is left out."""
    lines = text.splitlines()
    found = []
    for ruler, marks in enumerate(lines):
        if not ruler or not _RULER.fullmatch(marks):
            continue
        starts = [match.start() for match in re.finditer("-+", marks)]
        ends = [*starts[1:], None]  # the last column, the name, may be longer
        for place in [ruler - 1, *range(ruler + 1, len(lines))]:
            if not lines[place].strip():
                break
            cells = [lines[place][a:b].strip() for a, b in zip(starts, ends, strict=True)]
            found.append(Line(where, place + 1, cells))
    return found


def is_report(header: Sequence[str]) -> bool:
    """Whether the cells of a line are the header of a report of any kind."""
    cells = [cell for cell in header if cell][:2]
    first = re.match(r"Time ?\(%\)$|(?:API )?Start ?\(", cells[0]) if cells else None
    return (
        first is not None
        and len(cells) > 1
        and re.match(r"Total Time|Duration ?\(|API Dur ?\(", cells[1]) is not None
    )


def is_trace(header: Sequence[str]) -> bool:
    """Whether it is that of ``cuda_gpu_trace`` (once ``gputrace``): a row per kernel and copy."""
    names = {*_AXES, "Name"}
    return (
        is_report(header)
        and names <= set(header)
        and {"Start", "Duration"} <= set(times_of(header))
    )


def missing_of_trace(header: Sequence[str]) -> str:
    """Return what keeps a header from being that of ``cuda_gpu_trace``; empty for other lines."""
    remedy = "write nsys stats --report cuda_gpu_trace --format csv REPORT > trace.csv"
    if not {"GrdX", "BlkX"} & set(header):
        other = "a report of nsys stats, but not of the operations of a GPU one by one"
        return f"{other}; {remedy}" if is_report(header) else ""
    wanted = [f"{name} (ns)" for name in ("Start", "Duration") if name not in times_of(header)]
    wanted += [name for name in (*_AXES, "Name") if name not in header]
    return f"the header has no column {wanted[0]}; {remedy}" if wanted else ""


def is_summary(header: Sequence[str]) -> bool:
    """Whether it is that of ``cuda_gpu_kern_sum`` (``gpukernsum``): a row per kernel."""
    names = {"Instances", "Name"}
    return is_report(header) and names <= set(header) and "Total Time" in times_of(header)


def is_other(header: Sequence[str]) -> bool:
    """Whether it is that of a report without the times of kernels."""
    return is_report(header) and not is_trace(header) and not is_summary(header)


def read_trace(sections: list[Section]) -> pd.DataFrame:
    """Read ``cuda_gpu_trace``: kernels in the order of their starts, with their times."""
    rows: list[dict[str, Any]] = []
    for section in sections:
        times = times_of(section.header)
        start, duration = times["Start"], times["Duration"]
        for line, row in section.rows():
            if not row["GrdX"]:
                continue  # copies and fills
            rows.append(
                {
                    "source": "nsys",
                    "start": number(line, start[0], row[start[0]], start[1]),
                    "name": plain_name(row["Name"]),
                    "gpu": row.get("Device", ""),
                    "grid": _dim3(line, row, "Grd"),
                    "block": _dim3(line, row, "Blk"),
                    "time_s": number(line, duration[0], row[duration[0]], duration[1]),
                }
            )
    table = pd.DataFrame(rows)
    if rows:
        table = table.sort_values("start", kind="stable", ignore_index=True).drop(columns="start")
        table.insert(1, "kernel", range(1, len(rows) + 1))
    return table


def read_summary(sections: list[Section]) -> pd.DataFrame:
    """Read ``cuda_gpu_kern_sum``: the mean of all launches of a kernel.

    Kernels that are there several times, with a grid and block each, are one.
    """
    rows: dict[str, dict[str, Any]] = {}
    for section in sections:
        times = times_of(section.header)
        column, unit = times["Total Time"]
        for line, row in section.rows():
            launches = whole_number(line, "Instances", row["Instances"])
            total = number(line, column, row[column], unit)
            about: dict[str, Any] = {"source": "nsys", "kernel": pd.NA, "launches": 0}
            about |= {"name": plain_name(row["Name"]), "time_s": 0.0}
            found = rows.setdefault(row["Name"], about)
            found["launches"] += launches
            found["time_s"] += total
    for found in rows.values():
        found["time_s"] = found["time_s"] / found["launches"] if found["launches"] else float("nan")
    return pd.DataFrame(rows.values())


def refuse(sections: list[Section]) -> pd.DataFrame:
    """Refuse a report that does not say how long kernels took."""
    line = sections[0].lines[0]
    raise line.error(
        "a report of nsys stats without the times of kernels; write "
        "nsys stats --report cuda_gpu_trace --format csv REPORT > trace.csv"
    )


def times_of(header: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the columns that are times, by their names without unit, with the unit."""
    matches = [match for cell in header if (match := _TIME.fullmatch(cell))]
    return {match["name"]: (match[0], match["unit"]) for match in matches}


def _dim3(line: Line, row: dict[str, str], name: str) -> tuple[int, ...]:
    return tuple(whole_number(line, f"{name}{axis}", row[f"{name}{axis}"]) for axis in "XYZ")
