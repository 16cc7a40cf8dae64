"""GPUMech, Figure 13: errors over the number of warps."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.gpumech import common as gpumech

_COLUMN = "warps_per_sm"


def _check(table: pd.DataFrame) -> list[Claim]:
    claims = []
    for model in ("naive_interval", "markov_chain", "mt"):
        first, last = gpumech.grows(table, _COLUMN, model)
        claims.append(
            Claim(
                f"{model}, without contention, errs more with more warps",
                "grows",
                f"{first:.1f} % at 8, {last:.1f} % at 48",
                last > first,
            )
        )
    first, last = gpumech.grows(table, _COLUMN, "gpumech")
    claims.append(
        Claim(
            "GPUMech errs more with few warps",
            "higher at 8",
            f"{first:.1f} % at 8, {last:.1f} % at 48",
            first > last,
        )
    )
    return claims


figure = gpumech.along(
    "gpumech-fig13",
    13,
    _COLUMN,
    (8, 16, 32, 48),
    gpumech.warps,
    "warps per SM",
    _check,
    without=("fdtd3d",),  # its thread blocks have 16 warps
)
