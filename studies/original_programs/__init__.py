"""The papers' own benchmarks: where they lie, how they are built, and what they read."""

from .divergent import PROGRAMS as _DIVERGENT
from .others import PROGRAMS as _OTHERS
from .program import SIZES, Absent, Program, Repair
from .rodinia import PROGRAMS as _RODINIA

__all__ = ["ABSENT", "PROGRAMS", "SIZES", "Absent", "Program", "Repair"]

PROGRAMS: tuple[Program, ...] = (*_RODINIA, *_OTHERS, *_DIVERGENT)
ABSENT: tuple[Absent, ...] = ()
