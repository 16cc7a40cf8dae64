"""MDM, Figure 12: a memory-divergent application over two axes."""

from __future__ import annotations

import pandas as pd

from warpstack.figures import maps
from warpstack.figures.base import Claim
from warpstack.figures.errors import percent
from warpstack.timing.simulation import MODEL_NAME


def _check(table: pd.DataFrame) -> list[Claim]:
    gains = {model: maps.gain(table, model) for model in (MODEL_NAME, "gpumech", "mdm")}
    errors = {model: maps.error(table, model) for model in ("gpumech", "mdm")}
    return [
        Claim(
            "GPUMech over-predicts the gain of more SMs and DRAM bandwidth (the largest point over "
            "the smallest)",
            "grossly",
            f"{gains['gpumech']:.2f}, the simulation {gains[MODEL_NAME]:.2f}",
            gains["gpumech"] > gains[MODEL_NAME],
        ),
        Claim(
            "MDM's gain is nearer to the simulation's than GPUMech's",
            "small, as the simulation's",
            f"{gains['mdm']:.2f}, GPUMech {gains['gpumech']:.2f}, the simulation "
            f"{gains[MODEL_NAME]:.2f}",
            abs(gains["mdm"] - gains[MODEL_NAME]) < abs(gains["gpumech"] - gains[MODEL_NAME]),
        ),
        Claim(
            "MDM errs less than GPUMech",
            "no number",
            f"{percent(errors['mdm'])} against {percent(errors['gpumech'])}",
            errors["mdm"] < errors["gpumech"],
        ),
    ]


figure = maps.figure_of("mdm-fig12", 12, "cfd", _check)
