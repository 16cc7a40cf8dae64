"""MWP-CWP, Figure 25: loads that wait for each other, and loads that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import lines
from warpstack.figures.mwp_cwp import common as mwp
from warpstack.figures.study import Study
from warpstack.models import mwp_cwp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WARPS = np.arange(1, 25)
_LOADS, _INDEPENDENT = 1000, 800
_DEPENDENT, _NEW, _OLD = "PW (DEP)", "PW (IND)", "NOPW (IND)"


def _compute(study: Study) -> pd.DataFrame:
    machine = mwp_cwp.machine("quadro-fx5600")
    kernel = mwp_cwp.KernelDescription(
        threads_per_block=128,
        num_blocks=1,
        active_blocks_per_sm=1,
        comp_insts=8 * _LOADS,
        coal_mem_insts=_LOADS,
    )
    dependent = mwp.with_warps(kernel, _WARPS, machine.num_sms)
    independent = dependent.replace(independent_mem_insts=_INDEPENDENT)

    def cycles(one: mwp_cwp.KernelDescription) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.asarray(mwp_cwp.predict(one, machine).cycles, dtype=float)

    # Without N_pw the model does not tell the two apart.
    return pd.DataFrame(
        {
            "warps": _WARPS,
            _DEPENDENT: cycles(dependent),
            _NEW: cycles(independent),
            _OLD: cycles(dependent),
        }
    )


def _draw(table: pd.DataFrame) -> Figure:
    rows = table.set_index("warps") / 1000
    figure = lines(
        rows, xlabel="warps per SM, one block", ylabel="thousand cycles", scale=True, width=6.4
    )
    figure.axes[0].lines[0].set(linewidth=5, alpha=0.4)  # NOPW lies on it
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    rows = table.set_index("warps")
    dependent, independent = rows[_DEPENDENT], rows[_NEW]
    flat = dependent[4] / dependent[1]
    apart = dependent[1] / independent[1]
    late = dependent[24] / independent[24]
    return [
        Claim(
            "with few warps the time of dependent accesses hardly grows with their number (held here: "
            "by at most a fifth from 1 to 4 warps)",
            "almost the same",
            f"times {flat:.2f} with 4 times the work",
            bool(flat <= 1.2),
        ),
        Claim(
            "with few warps dependent accesses take much longer than independent ones",
            "much longer",
            f"{apart:.2f} times as long with one warp",
            bool(apart >= 1.5),
        ),
        Claim(
            "with more warps than MWP both take similar time (held here: to 10 %)",
            "similar",
            f"{late:.2f} times as long with 24 warps",
            bool(abs(late - 1) <= 0.1),
        ),
    ]


figure = PaperFigure(
    name="mwp-fig25",
    title="Time of dependent (DEP) and independent (IND) accesses by N_pw",
    paper=f"{mwp.PAPER}, Figure 25",
    reference=f"the model alone, on Quadro FX5600; {_INDEPENDENT} of {_LOADS} loads independent, "
    "8 instructions each",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
