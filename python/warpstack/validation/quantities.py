"""Matching of predictions and references: names, conversions, and their launches."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from warpstack.errors import InputError, shown
from warpstack.hardware.description import gpu, gpus
from warpstack.validation.reference.ncu_names import STATISTICS

__all__ = [
    "COMPARABLE",
    "Conversion",
    "has_values",
    "is_additive",
    "is_profiler",
    "launch_text",
    "with_clocks",
]

#: Metrics that can be compared beside any column that is asked for, in the order of the results.
COMPARABLE = tuple("time_us" if name == "time_s" else name for name in STATISTICS)
#: Metrics whose values for kernels add up to that of their application.
_ADDITIVE = ("cycles", "time_s", "time_us", "instructions", "thread_instructions")
_ADDITIVE_ENDS = ("_sectors", "_sector_hits", "_wavefronts", "_conflicts")
#: Columns of the same quantity, and what they are in seconds.
_TIMES = {"time_s": 1.0, "time_us": 1e-6}
#: Profilers, whose cycles and times begin with the launch.
_PROFILERS = ("ncu", "nvprof", "nsys", "torch", "hw_")


def is_additive(metric: str) -> bool:
    """Return whether the values of kernels add up to that of their application."""
    return metric in _ADDITIVE or metric.endswith(_ADDITIVE_ENDS)


def is_profiler(source: str) -> bool:
    """Return whether a source of references is a profiler, whose files say their units."""
    return source.startswith(_PROFILERS)


def has_values(table: pd.DataFrame, metric: str) -> bool:
    """Return whether a table has values of a metric, perhaps in another unit."""
    columns = _TIMES if metric in _TIMES else (metric,)
    return any(column in table and table[column].notna().any() for column in columns)


def with_clocks(predicted: pd.DataFrame) -> pd.DataFrame:
    """Return predictions with the column ``clock_ghz`` where something runs.

    It is what a row's cycles and time without the launch say, otherwise the clock of its GPU.
    """
    if "clock_ghz" in predicted or "cycles" not in predicted:
        return predicted
    clocks = pd.Series(math.nan, index=predicted.index)
    if {"time_us", "launch_us"} <= set(predicted):
        kernel_us = predicted["time_us"] - predicted["launch_us"].fillna(0)
        clocks = predicted["cycles"] / kernel_us.where(kernel_us > 0) / 1e3
    settings = zip(predicted["gpu"], predicted["gpu_changes"], strict=True)
    of_gpus = [_described_clock(str(name), str(changes)) for name, changes in settings]
    described = pd.Series(of_gpus, index=predicted.index, dtype=float)
    clocks = clocks.fillna(described).where(predicted["cycles"].notna())
    return predicted.assign(clock_ghz=clocks)


def launch_text(mine: Mapping[Hashable, Any], theirs: Mapping[Hashable, Any]) -> str:
    """Return where grid or block of both sides differ; empty where they agree or are not known."""
    texts = []
    for name in ("grid", "block"):
        sizes = [_dim3(side.get(name)) for side in (mine, theirs)]
        if None not in sizes and sizes[0] != sizes[1]:
            texts.append(f"{name} {sizes[0]} predicted and {sizes[1]} measured")
    return ", ".join(texts)


class Conversion:
    """Reads the metric of a row, by way of the clock if need be.

    Parameters
    ----------
    metric
        The column.
    configuration
        GPU and changes of the predictions.
    clock_ghz
        Clock for conversions; by default that of the predictions, or of their GPU.
    predicted
        The predictions.
    """

    def __init__(
        self,
        metric: str,
        configuration: Mapping[str, str],
        clock_ghz: float | None,
        predicted: pd.DataFrame | None = None,
    ) -> None:
        self.metric = metric
        self._configuration = configuration
        self._clock_ghz = clock_ghz
        if clock_ghz is None and predicted is not None and "clock_ghz" in predicted:
            clocks = predicted["clock_ghz"].dropna()
            if len(clocks) and np.allclose(clocks, clocks.iloc[0], rtol=1e-6, atol=0):
                self._clock_ghz = float(clocks.iloc[0])

    def __call__(self, row: Mapping[Hashable, Any]) -> float:
        """Return the value of a row, NaN where it is not known."""
        value = row.get(self.metric)
        if pd.isna(value):
            value = self._converted(row)
        try:
            return math.nan if pd.isna(value) else float(value)
        except (TypeError, ValueError):
            raise InputError(f"{self.metric} = {shown(value)} is not a number") from None

    def predicted(
        self, mine: Mapping[Hashable, Any], theirs: Mapping[Hashable, Any] | None
    ) -> float:
        """Return the value of a prediction, with the launch where the reference's has it."""
        value = self(mine)
        if theirs is None or not _begins_with_launch(theirs):
            return value
        if self.metric == "cycles":
            value += self._launch_cycles(mine)
        elif self.metric in _TIMES and math.isnan(_seconds(mine)):  # from cycles, which lack it
            launch = mine.get("launch_us")
            value += 0.0 if pd.isna(launch) else float(launch) * 1e-6 / _TIMES[self.metric]
        return value

    def _converted(self, row: Mapping[Hashable, Any]) -> Any:
        if self.metric == "cycles":
            seconds = _seconds(row)
            return math.nan if math.isnan(seconds) else seconds * self._clock() * 1e9
        if self.metric in _TIMES:
            seconds = _seconds(row)
            if math.isnan(seconds) and not pd.isna(row.get("cycles")):
                seconds = row["cycles"] / (self._clock() * 1e9)
            return seconds / _TIMES[self.metric]
        return math.nan

    def _launch_cycles(self, row: Mapping[Hashable, Any]) -> float:
        launch, time = row.get("launch_us"), row.get("time_us")
        if pd.isna(launch) or not launch or pd.isna(row.get("cycles")):
            return 0.0
        if not pd.isna(time) and time > launch:
            return float(row["cycles"] * launch / (time - launch))  # at the clock of this row
        return float(launch * self._clock() * 1e3)

    def _clock(self) -> float:
        if self._clock_ghz is None:
            name, changes = self._configuration["gpu"], self._configuration["gpu_changes"]
            clock = _described_clock(name, changes)
            if math.isnan(clock):
                raise InputError(
                    f"the clock of the GPU {shown(name)} is not known, which turns times into cycles; give "
                    "clock_ghz"
                )
            self._clock_ghz = clock
        return self._clock_ghz


@functools.lru_cache(maxsize=256)
def _described_clock(name: str, changes: str) -> float:
    """Return the clock of a GPU by its name and the changes to it, NaN where it is not known."""
    changed = re.search(r"(?:^|[ ,])clock_ghz ?= ?([0-9.]+)", changes)
    if changed:
        return float(changed[1])
    return gpu(name).clock_ghz if name in gpus() else math.nan


def _seconds(row: Mapping[Hashable, Any]) -> float:
    for column, scale in _TIMES.items():
        value = row.get(column)
        if not pd.isna(value):
            return float(value) * scale
    return math.nan


def _begins_with_launch(theirs: Mapping[Hashable, Any]) -> bool:
    """Whether the cycles of a reference contain the launch: a profiler's do, and measured times."""
    return pd.isna(theirs.get("cycles")) or is_profiler(str(theirs["source"]))


def _dim3(value: Any) -> tuple[int, ...] | None:
    """Return a size of a grid or block, of a tuple or its text; None where there is none."""
    numbers = re.findall(r"[0-9]+", str(value))
    return tuple(map(int, numbers)) if len(numbers) == 3 else None
