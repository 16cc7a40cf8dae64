"""MWP-CWP, Figure 22: SVM with coalesced accesses."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.mwp_cwp import svm


def _check(table: pd.DataFrame) -> list[Claim]:
    last = table.iloc[-1]
    falling = table.loc[table["N"] <= last["MWP_peak_BW"], "cycles_per_warp"]
    return [
        Claim(
            "the bandwidth limits MWP, at 12",
            "MWP_peak_BW, 12",
            f"MWP_peak_BW {last['MWP_peak_BW']:.1f}, MWP_without_BW {last['MWP_without_BW']:.1f}",
            bool(last["MWP_peak_BW"] < last["MWP_without_BW"] and round(last["MWP_peak_BW"]) == 12),
        ),
        Claim(
            "until N reaches that, more warps reduce the time per warp",
            "reduces",
            f"{falling.iloc[0]:,.0f} to {falling.iloc[-1]:,.0f} cycles",
            bool(falling.is_monotonic_decreasing and falling.iloc[-1] < falling.iloc[0]),
        ),
    ]


figure = svm.figure_of("mwp-fig22", 22, "constant and optimised", True, _check)
