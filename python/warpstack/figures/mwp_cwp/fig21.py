"""MWP-CWP, Figure 21: what limits memory warp parallelism, over the number of warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import lines, new_figure
from warpstack.figures.mwp_cwp import common as mwp
from warpstack.figures.study import Study
from warpstack.models import mwp_cwp
from warpstack.plot import sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WARPS = np.arange(1, 33)
#: Transactions of an uncoalesced access on GTX 280; the paper does not say how many.
_TRANSACTIONS = 3
_SHOWN = ("MWP_without_BW", "MWP_peak_BW", "MWP")


def _compute(study: Study) -> pd.DataFrame:
    machine = mwp_cwp.machine("gtx280")
    parts = []
    for kind in ("coalesced", "uncoalesced"):
        kernel = mwp_cwp.KernelDescription(
            threads_per_block=128,
            num_blocks=1,
            active_blocks_per_sm=1,
            comp_insts=20,
            coal_mem_insts=1 if kind == "coalesced" else 0,
            uncoal_mem_insts=1 if kind == "uncoalesced" else 0,
            uncoal_per_mw=_TRANSACTIONS,
        )
        estimate = mwp_cwp.predict(mwp.with_warps(kernel, _WARPS, machine.num_sms), machine)
        frame = estimate.to_frame()
        parts.append(
            pd.DataFrame(
                {
                    "access": kind,
                    "warps": _WARPS,
                    "MWP_without_BW": frame["mwp_without_bw_full"],
                    "MWP_peak_BW": frame["mwp_peak_bw"],
                    "MWP": frame["mwp"],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _draw(table: pd.DataFrame) -> Figure:
    figure = new_figure(9, 3)
    for ax, (kind, rows) in zip(
        figure.subplots(1, 2), table.groupby("access", sort=False), strict=True
    ):
        lines(
            rows.set_index("warps")[list(_SHOWN)],
            xlabel="warps per SM (N)",
            ylabel="memory warps",
            ax=ax,
            scale=True,
            legend="outside" if kind == "uncoalesced" else None,
        )
        ax.set_title(kind, fontsize=sheet.LABEL)
    return figure


def _check(table: pd.DataFrame) -> list[Claim]:
    last = table.groupby("access").last()
    uncoalesced = last.loc["uncoalesced"]
    coalesced = float(last["MWP"]["coalesced"])
    return [
        Claim(
            "uncoalesced accesses can never saturate the bandwidth",
            "never",
            f"MWP_without_BW {uncoalesced['MWP_without_BW']:.1f} below MWP_peak_BW "
            f"{uncoalesced['MWP_peak_BW']:.1f}",
            bool(uncoalesced["MWP_without_BW"] < uncoalesced["MWP_peak_BW"]),
        ),
        Claim(
            "MWP grows to 9 where accesses are coalesced and 5 where not (held here: to within one)",
            "9 and 5",
            f"{coalesced:.1f} and {uncoalesced['MWP']:.1f}; the paper does not say what is loaded",
            bool(abs(coalesced - 9) <= 1 and abs(uncoalesced["MWP"] - 5) <= 1),
        ),
    ]


figure = PaperFigure(
    name="mwp-fig21",
    title="Limits of memory warp parallelism on GTX 280",
    paper=f"{mwp.PAPER}, Figure 21",
    reference=f"the model alone; 4 bytes per thread, {_TRANSACTIONS} transactions uncoalesced",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
