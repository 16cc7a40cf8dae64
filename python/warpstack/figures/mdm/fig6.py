"""MDM, Figure 6: errors over the NoC's bandwidth."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.mdm import common as mdm

_FIELD = "noc_bandwidth_gbs"


def _check(table: pd.DataFrame) -> list[Claim]:
    gpumech = mdm.errors_along(table, _FIELD, "gpumech")
    return [
        Claim(
            "GPUMech errs most where the NoC is slowest",
            "falls with the bandwidth",
            mdm.trend(gpumech),
            bool(gpumech.iloc[0] == gpumech.max() and gpumech.iloc[-1] == gpumech.min()),
        ),
        mdm.lowest_everywhere(table, _FIELD),
    ]


figure = mdm.along("mdm-fig6", 6, _FIELD, (525, 1050, 1400, 2100), "NoC bandwidth (GB/s)", _check)
