"""MWP and CWP of the SVM kernel over the number of warps: MWP-CWP's Figures 22 and 23."""

from __future__ import annotations

import functools
from collections.abc import Callable
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
_SHOWN = ("N", "MWP_without_BW", "MWP_peak_BW", "MWP", "CWP")
#: Table 5's instructions of SVM, those of Constant+Optimized; the paper gives none of Naive, which
#: takes the same here.
_COMPUTATION, _MEMORY = 10871, 819


def figure_of(
    name: str,
    number: int,
    version: str,
    coalesced: bool,
    check: Callable[[pd.DataFrame], list[Claim]],
) -> PaperFigure:
    """Return the figure of a version of the kernel."""
    return PaperFigure(
        name=name,
        title=f"MWP and CWP of SVM, {version}",
        paper=f"{mwp.PAPER}, Figure {number}",
        reference="the model alone, on Quadro FX5600, with the instructions of Table 5",
        compute=functools.partial(_compute, coalesced=coalesced),
        draw=_draw,
        check=check,
        needs_all=False,
    )


def _compute(study: Study, coalesced: bool) -> pd.DataFrame:
    machine = mwp_cwp.machine("quadro-fx5600")
    kernel = mwp_cwp.KernelDescription(
        threads_per_block=128,
        num_blocks=1,
        active_blocks_per_sm=1,
        comp_insts=_COMPUTATION,
        coal_mem_insts=_MEMORY if coalesced else 0,
        uncoal_mem_insts=0 if coalesced else _MEMORY,
    )
    frame = mwp_cwp.predict(mwp.with_warps(kernel, _WARPS, machine.num_sms), machine).to_frame()
    return pd.DataFrame(
        {
            "N": _WARPS,
            "MWP_without_BW": frame["mwp_without_bw_full"],
            "MWP_peak_BW": frame["mwp_peak_bw"],
            "MWP": frame["mwp"],
            "CWP": frame["cwp"],
            "cycles_per_warp": frame["cycles"] / _WARPS,
        }
    )


def _draw(table: pd.DataFrame) -> Figure:
    rows = table.set_index(table["N"].rename("warps"))[list(_SHOWN)]
    return lines(
        rows,
        xlabel="warps per SM",
        ylabel="warps",
        limit=30,
        scale=True,
        width=6.4,
    )
