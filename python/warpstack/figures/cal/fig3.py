"""CAL 2019, Figure 3: the error of every model, MDM as it was then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.cal import common as cal
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


def _compute(study: Study) -> pd.DataFrame:
    names = [name for name in study.names if name not in cal.ABSENT]
    errors = application_errors(study.run(performance, [mdm.at()], names))
    return errors[errors["model"].isin(cal.MODELS)].drop(columns="setting")


def _draw(table: pd.DataFrame) -> Figure:
    rows, gaps = per_application(table, cal.MODELS)
    return grouped_bars(
        rows, ylabel="error of the IPC (%)", limit=200, gaps=gaps, groups=("NMD", "MD")
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    def error(model: str, kind: str | None = None) -> float:
        return mean_error(table, model, kind)

    factor = error("gpumech", "MD") / error("mdm_cal2019", "MD")
    return [
        Claim(
            "MDM reduces the error on MD applications by a factor of 14 against GPUMech "
            "(held here: by more than 2)",
            "14 (444 % to 32 %)",
            f"{factor:.2f} ({percent(error('gpumech', 'MD'))} to {percent(error('mdm_cal2019', 'MD'))})",
            factor > 2,
        ),
        below(
            "MDM errs slightly less than GPUMech on NMD applications",
            (16, 19),
            (error("mdm_cal2019", "NMD"), error("gpumech", "NMD")),
        ),
        near(
            "MDM errs by 23 % over all (held here: at most 30 %)", 23, error("mdm_cal2019"), most=30
        ),
        below(
            "MDM errs less than GPUMech over all",
            (23, 217),
            (error("mdm_cal2019"), error("gpumech")),
        ),
    ]


figure = PaperFigure(
    name="cal-fig3",
    title="Error of the IPC by model and application",
    paper=f"{cal.PAPER}, Figure 3",
    reference=mdm.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
)
