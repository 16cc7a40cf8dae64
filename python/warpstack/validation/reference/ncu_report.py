"""Reports of Nsight Compute, read with NVIDIA's Python module ``ncu_report``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from warpstack._util.arguments import printable
from warpstack._util.input_file import open_input
from warpstack.errors import InputError, shown
from warpstack.traces.io.common import reading
from warpstack.validation.reference.common import plain_name, scale_of_unit
from warpstack.validation.reference.ncu_names import METRICS, named

__all__ = ["is_report", "read_report"]

_SUFFIXES = (".ncu-rep", ".ncu-repz")
_DEVICE = "device__attribute_display_name"

#: Fields of the headers in a report: the version of the file, and the length of a part's data.
_VERSION, _DATA_LENGTH = 1, 5
#: Version of all reports since 2020.
_KNOWN_VERSION = 7
#: Bytes of numbers of fixed width by kind of field.
_WIDTHS = {1: 8, 5: 4}


def is_report(path: Path) -> bool:
    """Whether a path names a report rather than a CSV file."""
    return path.suffix.lower() in _SUFFIXES


def read_report(path: Path) -> pd.DataFrame:
    """Read a report: a row per launch in the order of the report.

    Raises
    ------
    InputError
        If NVIDIA's module is not installed, it does not read the file, or the file has results of
        something else than kernels.
    """
    where = printable(path)
    with reading(path), open_input(path) as file:
        if wrong := _what_is_wrong(file):
            raise InputError(f"{where}: the report {wrong}; copy it again, or profile again")
    module = _module(where)
    try:
        actions = _actions(module.load_report(str(path)))
        rows = [_row(module, action, where, number) for number, action in enumerate(actions, 1)]
    except InputError:
        raise
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{where}: NVIDIA's ncu_report does not read it, the file may be damaged: {error}"
        ) from None
    if not rows:
        raise InputError(
            f"{where}: no kernel in it: nothing was profiled, or the file is damaged or not a report "
            "of Nsight Compute"
        )
    return named(rows)


def _what_is_wrong(file: BinaryIO) -> str:
    """Return what is wrong with the parts of a report, of which NVIDIA's module says nothing or aborts.

    After 4 bytes, a length and as many bytes about the file, each part is a length, a header of that
    length and data, whose length is field 5 of the header (the definitions of the messages come with
    Nsight Compute in extras/FileFormat). What is not of this version is left to NVIDIA's module.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(4) != b"NVR\0":
        return ""
    place = 4
    field = _VERSION
    while place < size:
        file.seek(place)
        length = int.from_bytes(file.read(4), "little")
        place += 4 + length
        if place > size:
            return "is cut off"
        try:
            value = _field(file.read(length), field)
        except (IndexError, ValueError):
            return "is damaged"
        if field == _VERSION:
            if value != _KNOWN_VERSION:
                return ""
            field = _DATA_LENGTH
        else:
            place += value
    return "is cut off" if place > size else ""


def _field(message: bytes, number: int) -> int:
    """Return a whole number of a protocol buffer, 0 where it is not there.

    Raises
    ------
    IndexError, ValueError
        If the message is damaged.
    """
    found = place = 0

    def whole_number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = whole_number()
        kind = key & 7
        if kind in _WIDTHS:
            place += _WIDTHS[kind]
        elif kind == 2:
            length = whole_number()  # of a text or a message
            place += length
        elif kind == 0:
            value = whole_number()
            if key >> 3 == number:
                found = value
        else:
            raise ValueError("not a kind of field")
    if place > len(message):
        raise ValueError("the last field is longer than the message")
    return found


def _module(where: str) -> Any:
    """Import NVIDIA's module, which is typed in no version."""
    try:
        return importlib.import_module("ncu_report")
    except ImportError as error:
        reason = "is not installed"
        if not isinstance(error, ModuleNotFoundError) or error.name != "ncu_report":
            reason = f"cannot be imported ({error})"
        raise InputError(
            f"{where}: reports are read with NVIDIA's module ncu_report, which {reason}; pip install "
            "'warpstack[ncu]', put extras/python of Nsight Compute on PYTHONPATH, or export it: "
            "ncu --import REPORT --csv --page raw > report.csv"
        ) from None


def _actions(context: Any) -> Iterator[Any]:
    for i in range(context.num_ranges()):
        of_range = context.range_by_idx(i)
        for j in range(of_range.num_actions()):
            yield of_range.action_by_idx(j)


def _row(module: Any, action: Any, where: str, number: int) -> dict[str, Any]:
    """Return what a report says of a launch."""
    name = plain_name(_text(action.name()))
    about = f"{where}: result {number}, {shown(name)},"
    if action.workload_type() != module.IAction.WorkloadType_KERNEL:
        raise InputError(
            f"{about} is not of a kernel but of a range or graph; profile with --replay-mode kernel "
            "--graph-profiling node"
        )
    metrics = _numbers(module, action, about)
    if not metrics:
        raise InputError(f"{about} has no metrics: the file is damaged; profile again")
    row = {"source": "ncu", "kernel": number, "name": name}
    device = action.metric_by_name(_DEVICE)
    if device is not None and device.as_string():
        row["gpu"] = _text(device.as_string())
    return {**row, **_geometry(metrics), "metrics": metrics}


def _numbers(module: Any, action: Any, about: str) -> dict[str, float]:
    """Return the metrics that are numbers, in base units."""
    kind = module.IMetric
    kinds = {kind.ValueKind_FLOAT, kind.ValueKind_DOUBLE}
    kinds |= {kind.ValueKind_UINT32, kind.ValueKind_UINT64}
    metrics = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if metric is None or metric.kind() not in kinds or not metric.has_value():
            continue
        scale = scale_of_unit(metric.unit())
        if scale is None:
            if name in METRICS:
                raise InputError(f"{about} {name} has the unknown unit {shown(metric.unit())}")
            scale = 1.0  # nothing here depends on it, and new versions have new units
        metrics[_text(name)] = float(metric.as_double()) * scale
    return metrics


def _text(text: str | None) -> str:
    """Return a text of a report, or raise `UnicodeEncodeError` where it has other bytes than UTF-8."""
    found = text or ""
    found.encode()
    return found


def _geometry(metrics: dict[str, float]) -> dict[str, tuple[int, ...]]:
    """Return grid and block, which some reports do not have."""
    names = {"grid": "launch__grid_dim_{}", "block": "launch__block_dim_{}"}
    sizes = {
        what: [metrics.get(name.format(axis)) for axis in "xyz"] for what, name in names.items()
    }
    return {
        what: tuple(int(n) for n in size if n is not None)
        for what, size in sizes.items()
        if None not in size
    }
