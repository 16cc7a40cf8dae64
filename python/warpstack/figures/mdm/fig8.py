"""MDM, Figure 8: errors over the number of MSHRs."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.errors import percent
from warpstack.figures.mdm import common as mdm

_FIELD = "l1_mshrs"


def _check(table: pd.DataFrame) -> list[Claim]:
    gpumech = mdm.errors_along(table, _FIELD, "gpumech")
    plus = mdm.errors_along(table, _FIELD, "gpumech_plus")
    return [
        Claim(
            "GPUMech's error grows with the MSHRs",
            "98 % at 32, 317 % at 256",
            mdm.trend(gpumech),
            bool(gpumech.is_monotonic_increasing),
        ),
        Claim(
            "GPUMech+ still errs by over 100 % with many MSHRs",
            "124 % at 128, 133 % at 256",
            f"{percent(plus[128])} at 128, {percent(plus[256])} at 256",
            bool(plus[128] > 100 and plus[256] > 100),
        ),
        mdm.lowest_everywhere(table, _FIELD),
    ]


figure = mdm.along("mdm-fig8", 8, _FIELD, (32, 64, 128, 256), "MSHRs per SM", _check)
