"""MDM, Figure 9: errors over the number of SMs."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.errors import percent
from warpstack.figures.mdm import common as mdm

_FIELD = "num_sms"


def _check(table: pd.DataFrame) -> list[Claim]:
    gpumech = mdm.errors_along(table, _FIELD, "gpumech")
    own = mdm.errors_along(table, _FIELD, "mdm")
    return [
        Claim(
            "GPUMech's error grows with the SMs",
            "124 % at 15, 450 % at 80",
            mdm.trend(gpumech),
            bool(gpumech.iloc[-1] > gpumech.iloc[0]),
        ),
        Claim(
            "MDM stays below 26 % at every number of SMs",
            "at most 26.0 %",
            f"at most {percent(own.max())}",
            bool(own.max() < 26),
        ),
        mdm.lowest_everywhere(table, _FIELD),
    ]


figure = mdm.along("mdm-fig9", 9, _FIELD, (15, 28, 56, 80), "SMs", _check)
