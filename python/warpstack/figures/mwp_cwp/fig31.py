"""MWP-CWP, Figure 31: what barriers cost, with two and four thread blocks per SM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import lines
from warpstack.figures.mwp_cwp import common as mwp
from warpstack.figures.study import Study
from warpstack.models import mwp_cwp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WARPS_PER_BLOCK = np.arange(1, 7)
#: The paper's kernel is not given: one barrier after each load, as in its Figure 29.
_LOADS = 1000


def _compute(study: Study) -> pd.DataFrame:
    machine = mwp_cwp.machine("quadro-fx5600")
    columns: dict[str, npt.NDArray[Any]] = {"warps_per_block": _WARPS_PER_BLOCK}
    for blocks in (2, 4):
        kernel = mwp_cwp.KernelDescription(
            threads_per_block=32 * _WARPS_PER_BLOCK.astype(float),
            num_blocks=blocks * machine.num_sms,
            active_blocks_per_sm=blocks,
            comp_insts=8 * _LOADS,
            coal_mem_insts=_LOADS,
            synch_insts=_LOADS,
        )
        estimate = mwp_cwp.predict(kernel, machine)
        columns[f"BL{blocks}"] = np.asarray(estimate.synch_cost, dtype=float)
    return pd.DataFrame(columns)


def _draw(table: pd.DataFrame) -> Figure:
    rows = table.set_index("warps_per_block") / 1000
    return lines(
        rows, xlabel="warps per thread block", ylabel="delay of barriers (thousand cycles)"
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    rows = table.set_index("warps_per_block").loc[2:]  # a warp alone waits for nobody
    ratio = rows["BL4"] / rows["BL2"]
    return [
        Claim(
            "more thread blocks per SM make barriers dearer",
            "dearer",
            f"BL4 costs {ratio.min():.2f} to {ratio.max():.2f} times BL2",
            bool((ratio > 1).all()),
        ),
        Claim(
            "the cost grows with the warps, which are fewer than MWP",
            "continuously",
            f"BL2 from {rows['BL2'].iloc[0]:,.0f} to {rows['BL2'].iloc[-1]:,.0f} cycles",
            bool(
                rows["BL2"].is_monotonic_increasing and rows["BL2"].iloc[-1] > rows["BL2"].iloc[0]
            ),
        ),
    ]


figure = PaperFigure(
    name="mwp-fig31",
    title="Delay of barriers with 2 (BL2) and 4 (BL4) thread blocks per SM",
    paper=f"{mwp.PAPER}, Figure 31",
    reference=f"the model alone, on Quadro FX5600; {_LOADS} coalesced loads and barriers per warp",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
