"""The papers' own benchmarks: what is built of them, what they read, and what is traced."""

from .divergent import PROGRAMS as _DIVERGENT
from .others import PROGRAMS as _OTHERS
from .program import SIZES, Absent, Program
from .rodinia import PROGRAMS as _RODINIA

__all__ = ["ABSENT", "PROGRAMS", "SIZES", "Absent", "Program"]

PROGRAMS: tuple[Program, ...] = (*_RODINIA, *_OTHERS, *_DIVERGENT)
#: Those of the papers' programs that no public repository has, as far as was found.
ABSENT = (
    Absent(
        "Sepia, Linear, SVM",
        "MWP-CWP, Table 5",
        "benchmarks of the Merge framework, which was not published; their shapes are in "
        "`warpstack figure mwp-fig22` and its neighbours",
    ),
    Absent(
        "the 40 kernels of GPUMech",
        "GPUMech, Section VI",
        "not named but for a few; the kernels of the programs above stand for them",
    ),
    Absent(
        "pre-trained weights of AlexNet and ResNet",
        "MDM, Section IV",
        "hundreds of megabytes beside Tango's code, not in its mirrors; random weights or none "
        "instead",
    ),
)
