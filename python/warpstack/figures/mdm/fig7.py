"""MDM, Figure 7: errors over DRAM bandwidth."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.mdm import common as mdm

_FIELD = "dram_bandwidth_gbs"


def _check(table: pd.DataFrame) -> list[Claim]:
    gpumech = mdm.errors_along(table, _FIELD, "gpumech")
    return [
        Claim(
            "GPUMech's error grows with DRAM bandwidth",
            "grows with the bandwidth",
            mdm.trend(gpumech),
            bool(gpumech.iloc[-1] > gpumech.iloc[0]),
        ),
        mdm.lowest_everywhere(table, _FIELD),
    ]


figure = mdm.along("mdm-fig7", 7, _FIELD, (240, 480, 720, 960), "DRAM bandwidth (GB/s)", _check)
