"""GPUMech, Figure 14: errors over the number of MSHRs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.gpumech import common as gpumech

_COLUMN = "l1_mshrs"


def _settings(value: int) -> dict[str, Any]:
    return gpumech.at() if value == 32 else gpumech.at(l1_mshrs=value)


def _check(table: pd.DataFrame) -> list[Claim]:
    apart = [
        abs(a - b)
        for a, b in zip(
            gpumech.grows(table, _COLUMN, "mt"),
            gpumech.grows(table, _COLUMN, "mt_mshr"),
            strict=True,
        )
    ]
    mshr, whole = (gpumech.grows(table, _COLUMN, model) for model in ("mt_mshr", "gpumech"))
    return [
        Claim(
            "MT and MT_MSHR come nearer to each other with more MSHRs",
            "the difference falls",
            f"{apart[0]:.1f} points at 32, {apart[1]:.1f} at 256",
            apart[1] < apart[0],
        ),
        Claim(
            "without DRAM bandwidth the error grows with the MSHRs",
            "grows",
            f"mt_mshr {mshr[0]:.1f} % at 32, {mshr[1]:.1f} % at 256",
            mshr[1] > mshr[0],
        ),
        Claim(
            "with it, it grows less",
            "captured well",
            f"gpumech {whole[0]:.1f} % at 32, {whole[1]:.1f} % at 256",
            whole[1] - whole[0] < mshr[1] - mshr[0],
        ),
    ]


figure = gpumech.along(
    "gpumech-fig14", 14, _COLUMN, (32, 64, 128, 256), _settings, "MSHRs per SM", _check
)
