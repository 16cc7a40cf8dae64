"""A measured row, and how a program of our own stands for it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Literal

import pandas as pd

#: What L2 holds when a launch starts: nothing ("cold"); lines that were written before ("written"); what
#: the launches before it in the program left ("in order"); or the same after the whole program has run
#: once ("repeated").
State = Literal["cold", "written", "in order", "repeated"]


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a program: which one, and its parameters."""

    program: str
    parameters: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, program: str, **parameters: int) -> Run:
        """Make one."""
        return cls(program, tuple(sorted(parameters.items())))

    @property
    def label(self) -> str:
        """Its name and parameters, as the name of a file."""
        return "-".join([self.program, *(f"{key}={value}" for key, value in self.parameters)])


@dataclasses.dataclass(frozen=True)
class Setting:
    """Under which conditions a row is predicted; the first of a row's settings is the one counted."""

    state: State
    #: Whose clock the GPU has, in GHz; 0: the one of its description.
    clock_ghz: float = 0.0
    #: A label that tells it from the other settings of a row.
    label: str = ""
    #: What the program asks of the GPU: fields of its description, and their values.
    changes: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Row:
    """A measured time, or count of cycles, of one launch or of several."""

    suite: str
    gpu: str
    application: str
    kernel_index: str
    kernel: str
    metric: str
    measured: float
    unit: Literal["us", "cycles"]
    flag: str = ""
    #: The profiler that measured it, ``nsys``, ``ncu``, ``nvprof``, ``events`` or ``do_bench``; empty: no
    #: launch is in it.
    profiler: str = ""
    settings: tuple[Setting, ...] = (Setting("cold"),)
    #: None: no program of ours does what this row measures, and `reason` says why.
    run: Run | None = None
    #: Positions of its launches in the run; their mean or their sum is what was measured.
    launches: tuple[int, ...] = (0,)
    combine: Literal["sum", "mean"] = "sum"
    #: What each of `launches` counts in the sum; empty: 1. Two launches of different length give a slope,
    #: and what a launch takes that is too long to simulate.
    weights: tuple[float, ...] = ()
    reason: str = ""


def straight(first: float, second: float, wanted: float) -> tuple[float, float]:
    """Return the weights of launches of sizes `first` and `second` in the time of size `wanted`."""
    share = (wanted - first) / (second - first)
    return 1 - share, share


def gpu_of(text: str) -> tuple[str, float]:
    """Return the description that a source's name of a GPU stands for, and its clock in GHz or 0.

    Sources write ``a100-pcie@0.765``, or a name and in parentheses what is special about it.
    """
    name, _, clock = text.partition("@")
    name = name.partition(" (")[0].strip()
    return _GPUS.get(name, name), float(clock or 0)


_GPUS = {"a6000": "rtx-a6000", "A100-SXM4-80GB": "a100-80gb", "H100 SXM": "h100-sxm"}


def numbers_of(text: str) -> dict[str, int]:
    """Return the numbers in the name of an application."""
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?![\w.])", text)}


def read(path: Path, measured: str = "measured") -> list[dict[str, Any]]:
    """Return the rows of a table of measurements, as dictionaries of texts and the number measured."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False).astype({measured: float})
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def device_clocks(reference: Path) -> dict[str, float]:
    """Return the SM clock in GHz that the sources of some sets state of their boards."""
    table = pd.read_csv(reference / "devices.csv")
    plain = pd.to_numeric(table["sm_clock_mhz"], errors="coerce")
    return dict(zip(table["gpu"], (plain / 1000).fillna(0.0), strict=True))
