"""The public suites of `suites.py`: which of their programs are tried, how they are built and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from .hecbench import hecbench
from .program import Program
from .samples import cuda_samples
from .smaller import llm, pannotia, polybench, rodinia, shoc

__all__ = ["SUITES", "Program"]

SUITES: dict[str, Callable[[Path], Iterator[Program]]] = {
    "cuda-samples": cuda_samples,
    "HeCBench": hecbench,
    "PolyBench": polybench,
    "llm.c": llm,
    "SHOC": shoc,
    "Rodinia": rodinia,
    "Pannotia": pannotia,
}
