"""MDM, Figure 5: the error of every model on every application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import grouped_bars
from warpstack.figures.errors import (
    application_errors,
    below,
    mean_error,
    near,
    per_application,
    percent,
)
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import performance
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Mean errors over MD applications in percent (Section V-A).
PAPER_MD = {
    "gpumech": 298.0,
    "gpumech_plus": 131.0,
    "mdm_queue": 63.0,
    "mdm_mshr": 60.3,
    "mdm": 18.0,
}


def _compute(study: Study) -> pd.DataFrame:
    errors = application_errors(study.run(performance, [mdm.at()]))
    return errors[errors["model"].isin(mdm.MODELS)].drop(columns="setting")


def _draw(table: pd.DataFrame) -> Figure:
    rows, gaps = per_application(table, mdm.MODELS)
    return grouped_bars(
        rows, ylabel="error of the IPC (%)", limit=200, gaps=gaps, groups=("NMD", "MD")
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    error = {model: mean_error(table, model, "MD") for model in mdm.MODELS}
    factor = error["gpumech"] / error["mdm"]
    claims = [
        Claim(
            "MDM reduces the error on MD applications by a factor of 16.5 against GPUMech "
            "(held here: by more than 2)",
            "16.5",
            f"{factor:.2f} ({percent(error['gpumech'])} to {percent(error['mdm'])})",
            factor > 2,
        ),
        below(
            "GPUMech+ errs less than GPUMech on MD applications",
            (131, 298),
            (error["gpumech_plus"], error["gpumech"]),
        ),
    ]
    for model in ("mdm_queue", "mdm_mshr"):
        claims.append(
            below(
                f"{model} alone errs more than MDM on MD applications",
                (18, PAPER_MD[model]),
                (error["mdm"], error[model]),
            )
        )
    nmd = {model: mean_error(table, model, "NMD") for model in ("gpumech", "mdm")}
    claims.append(
        Claim(
            "GPUMech and MDM are alike on NMD applications (held here: within 3 points)",
            "both around 9 %",
            f"{percent(nmd['gpumech'])} and {percent(nmd['mdm'])}",
            abs(nmd["gpumech"] - nmd["mdm"]) <= 3,
        )
    )
    overall = mean_error(table, "mdm")
    claims.append(
        near("MDM errs by 13.9 % over all (held here: at most 20 %)", 13.9, overall, most=20)
    )
    return claims


figure = PaperFigure(
    name="mdm-fig5",
    title="Error of the IPC by model and application",
    paper=f"{mdm.PAPER}, Figure 5",
    reference=mdm.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
)
