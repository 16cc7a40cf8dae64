"""The public suites of `suites.py`: which of their programs are tried, and how they are run."""

from __future__ import annotations

from .hecbench import HECBENCH
from .program import Program
from .samples import CUDA_SAMPLES
from .smaller import LLM, PANNOTIA, POLYBENCH, RODINIA, SHOC

__all__ = ["SUITES", "Program"]

SUITES: dict[str, tuple[Program, ...]] = {
    "cuda-samples": CUDA_SAMPLES,
    "HeCBench": HECBENCH,
    "PolyBench": POLYBENCH,
    "llm.c": LLM,
    "SHOC": SHOC,
    "Rodinia": RODINIA,
    "Pannotia": PANNOTIA,
}
