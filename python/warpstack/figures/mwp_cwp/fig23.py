"""MWP-CWP, Figure 23: SVM with uncoalesced accesses."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.mwp_cwp import svm


def _check(table: pd.DataFrame) -> list[Claim]:
    last = table.iloc[-1]
    beyond = table.loc[table["N"] >= 4, "cycles_per_warp"]
    change = 100 * (1 - beyond.iloc[-1] / beyond.iloc[0])
    return [
        Claim(
            "departures limit MWP, at 2",
            "MWP_without_BW, 2",
            f"MWP_without_BW {last['MWP_without_BW']:.1f}, MWP_peak_BW {last['MWP_peak_BW']:.1f}",
            bool(
                last["MWP_without_BW"] < last["MWP_peak_BW"] and round(last["MWP_without_BW"]) == 2
            ),
        ),
        Claim(
            "more warps do not improve performance (held here: the time per warp falls by at most "
            "10 % from 4 warps on)",
            "not at all",
            f"by {change:.1f} %",
            bool(change <= 10),
        ),
    ]


figure = svm.figure_of("mwp-fig23", 23, "naive", False, _check)
