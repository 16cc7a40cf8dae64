"""Measured cycles of the workloads on a GPU, which MDM's Figure 10 needs."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from warpstack import workloads
from warpstack._util.arguments import as_path, printable
from warpstack._util.input_file import MAX_TABLE_BYTES, read_input
from warpstack.errors import InputError, not_one_of
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.traces.io.common import reading

__all__ = ["Hardware", "read_hardware"]


@dataclass(frozen=True)
class Hardware:
    """Measured cycles.

    Attributes
    ----------
    gpu
        The description of the GPU.
    cycles
        SM cycles of each workload, summed over its launches.
    """

    gpu: Gpu
    cycles: Mapping[str, float]


def read_hardware(path: str | os.PathLike[str], gpu: GpuLike) -> Hardware:
    """Read a table (``.csv``) with the columns ``app``, a workload, and ``cycles``.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, or a line lacks a workload or a number; the
        message names the line.
    """
    place = as_path("--hardware", path)
    where = printable(place)
    with reading(place):
        content = read_input(place, "table", MAX_TABLE_BYTES)
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: is not a CSV file: {error}") from None
    head = [name.strip() for name in rows[0]] if rows else []
    for column in ("app", "cycles"):
        if head.count(column) != 1:
            raise InputError(
                f"{where}: expected one column {column}; the first line has {', '.join(head) or 'none'}"
            )
    cycles: dict[str, float] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(head):
            raise InputError(f"{where}: row {line}: expected {len(head)} values, got {len(row)}")
        app, text = row[head.index("app")].strip(), row[head.index("cycles")].strip()
        if app not in workloads.names():
            raise not_one_of(f"{where}: row {line}: app", app, workloads.names())
        if app in cycles:
            raise InputError(f"{where}: row {line}: {app} comes twice; add its launches up")
        try:
            cycles[app] = float(text)
        except ValueError:
            cycles[app] = math.nan
        if not 0 < cycles[app] < math.inf:
            raise InputError(f"{where}: row {line}: cycles {text!r} is not a positive number")
    if not cycles:
        raise InputError(f"{where}: has no workloads")
    return Hardware(as_gpu(gpu), cycles)
