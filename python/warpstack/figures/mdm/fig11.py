"""MDM, Figure 11: an application without memory divergence over two axes."""

from __future__ import annotations

import pandas as pd

from warpstack.figures import maps
from warpstack.figures.base import Claim


def _check(table: pd.DataFrame) -> list[Claim]:
    return [
        Claim(
            f"{name} captures the trend (held here: rank correlation of the points above 0.8)",
            "captured well",
            f"{maps.rank_correlation(table, model):.2f}; mean error {maps.error(table, model):.0f} %",
            maps.rank_correlation(table, model) > 0.8,
        )
        for name, model in (("GPUMech", "gpumech"), ("MDM", "mdm"))
    ]


figure = maps.figure_of("mdm-fig11", 11, "b+tree", _check)
