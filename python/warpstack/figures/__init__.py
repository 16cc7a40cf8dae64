"""Every figure and table of the papers, computed again; ``docs/figures.md`` explains it.

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

import difflib
import importlib
from functools import cache

from warpstack.errors import InputError
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.hardware import Hardware, read_hardware
from warpstack.figures.report import Report, redraw, staleness, write_index, write_report
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
    "get",
    "names",
    "read_hardware",
    "redraw",
    "staleness",
    "write_index",
    "write_report",
]

#: Modules in the order of the index: the papers by priority, the figures by number.
_MODULES = (
    "mdm_table1",
    "mdm_table2",
    "mdm_fig3",
    "mdm_fig5",
    "mdm_fig6",
    "mdm_fig7",
    "mdm_fig8",
    "mdm_fig9",
    "mdm_fig10",
    "mdm_fig11",
    "mdm_fig12",
    "mdm_fig13",
    "mdm_fig14",
    "mdm_fig15",
    "cal_fig1",
    "cal_fig3",
    "gpumech_fig4",
    "gpumech_fig7",
    "gpumech_fig11",
    "gpumech_fig12",
    "gpumech_fig13",
    "gpumech_fig14",
    "gpumech_fig15",
    "gpumech_fig16",
    "mwp_table2",
    "mwp_fig14",
    "mwp_fig21",
    "mwp_fig22",
    "mwp_fig23",
    "mwp_fig25",
    "mwp_fig31",
    "cache_table4",
    "cache_table5",
    "cache_fig7",
    "cache_fig8",
    "cache_fig10",
)
#: Those that need measurements.
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
    found = (importlib.import_module(f"{__name__}.{module}").figure for module in _MODULES)
    return {figure.name: figure for figure in found}


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
        If there is none of this name; the message lists the names.
    """
    known = _figures()
    if name not in known:
        near = difflib.get_close_matches(str(name).lower(), known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InputError(f"there is no figure {name!r}{hint}; the figures are {', '.join(known)}")
    return known[name]
