"""Every figure and table of the papers, computed again; ``docs/how-to/figures.md`` explains it.

Each is a module with a `PaperFigure` called ``figure``: it computes its data from the workloads,
draws them, and holds the paper's claims against them. What they share is in ``study`` (workloads and
the cache), ``stages`` (what is computed of one), ``errors``, ``drawing`` and one module per paper.

Examples
--------
>>> from warpstack import figures
>>> figures.get("mwp-table2").check(figures.get("mwp-table2").compute(figures.Study()))[0].holds
True
"""

from __future__ import annotations

import importlib
from functools import cache

from warpstack.errors import unknown
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.hardware import Hardware, read_hardware
from warpstack.figures.report import (
    Report,
    check_files,
    check_index,
    module_of,
    redraw,
    staleness,
    write_index,
    write_report,
)
from warpstack.figures.study import SIZES, Study

__all__ = [
    "LEFT_OUT",
    "MEASURED",
    "SIZES",
    "Claim",
    "Hardware",
    "PaperFigure",
    "Report",
    "Study",
    "check_files",
    "check_index",
    "get",
    "names",
    "read_hardware",
    "redraw",
    "staleness",
    "write_index",
    "write_report",
]

#: In the order of the index: the papers by priority, the figures by number.
_NAMES = (
    "mdm-table1",
    "mdm-table2",
    "mdm-fig3",
    "mdm-fig5",
    "mdm-fig6",
    "mdm-fig7",
    "mdm-fig8",
    "mdm-fig9",
    "mdm-fig10",
    "mdm-fig11",
    "mdm-fig12",
    "mdm-fig13",
    "mdm-fig14",
    "mdm-fig15",
    "cal-fig1",
    "cal-fig3",
    "gpumech-fig4",
    "gpumech-fig7",
    "gpumech-fig11",
    "gpumech-fig12",
    "gpumech-fig13",
    "gpumech-fig14",
    "gpumech-fig15",
    "gpumech-fig16",
    "mwp-table2",
    "mwp-fig14",
    "mwp-fig21",
    "mwp-fig22",
    "mwp-fig23",
    "mwp-fig25",
    "mwp-fig31",
    "cache-table4",
    "cache-table5",
    "cache-fig7",
    "cache-fig8",
    "cache-fig10",
)
#: Figures that need measurements.
MEASURED = ("mdm-fig10",)
#: Figures that cannot be shown without a GPU to measure, and why.
LEFT_OUT = {
    "MDM, Figure 10": "needs cycles of the workloads on a GPU: `warpstack figure mdm-fig10 --hardware FILE`",
    "GPUMech, Figures 1 to 3, 5, 6, 8 to 10": "drawings that explain; no data",
    "MWP-CWP, Figures 3, 15 to 20, 26, 28, 30": "times of the Merge benchmarks and others on GPUs of 2008",
    "Cache paper, Figure 9 and Table 6": "need hardware counters of Titan V and A100",
}


@cache
def _figures() -> dict[str, PaperFigure]:
    return {name: importlib.import_module(module_of(name)).figure for name in _NAMES}


def names(*, measured: bool = False) -> list[str]:
    """Return the names of the figures in the order of the index.

    Parameters
    ----------
    measured
        Also those that need measurements (`read_hardware`).
    """
    return [name for name in _figures() if measured or name not in MEASURED]


def get(name: str) -> PaperFigure:
    """Return a figure by name.

    Raises
    ------
    InputError
        If no figure has this name; the message lists the names.
    """
    known = _figures()
    if name not in known:
        raise unknown("figure", name, known)
    return known[name]
