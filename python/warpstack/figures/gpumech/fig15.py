"""GPUMech, Figure 15: errors over DRAM bandwidth."""

from __future__ import annotations

from typing import Any

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.errors import mean_errors
from warpstack.figures.gpumech import common as gpumech

_COLUMN = "dram_bandwidth_gbs"


def _settings(value: int) -> dict[str, Any]:
    return gpumech.at() if value == 192 else gpumech.at(dram_bandwidth_gbs=value)


def _check(table: pd.DataFrame) -> list[Claim]:
    means = mean_errors(table, [_COLUMN])
    whole = means["gpumech"]
    gap = means["mt_mshr"] - whole
    return [
        Claim(
            "modelling DRAM bandwidth matters more where it is low",
            "the difference falls with the bandwidth",
            f"mt_mshr errs by {gap.iloc[0]:.1f} points more than gpumech at {gap.index[0]} GB/s, by "
            f"{gap.iloc[-1]:.1f} at {gap.index[-1]}",
            bool(gap.iloc[0] > gap.iloc[-1]),
        ),
        Claim(
            "GPUMech errs most at 64 GB/s",
            "26.1 %, elsewhere below 17.8 %",
            f"{whole.iloc[0]:.1f} %, elsewhere at most {whole.iloc[1:].max():.1f} %",
            bool(whole.iloc[0] > whole.iloc[1:].max()),
        ),
    ]


figure = gpumech.along(
    "gpumech-fig15", 15, _COLUMN, (64, 128, 192, 256), _settings, "DRAM bandwidth (GB/s)", _check
)
