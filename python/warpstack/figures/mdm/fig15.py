"""MDM, Figure 15: errors with a streaming L1, which has as many MSHRs as it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import grouped_bars
from warpstack.figures.errors import application_errors, mean_error, per_application, percent
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import performance
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper does not say how many requests an SM's queue to the NoC holds: as many as the baseline's
#: MSHRs here.
_QUEUE_ENTRIES = 128


def _compute(study: Study) -> pd.DataFrame:
    streaming = mdm.at(noc_queue_entries=_QUEUE_ENTRIES, l1_allocation="on_fill")
    errors = application_errors(study.run(performance, [streaming]))
    return errors[errors["model"].isin(mdm.MODELS)].drop(columns="setting")


def _draw(table: pd.DataFrame) -> Figure:
    rows, gaps = per_application(table, mdm.MODELS)
    return grouped_bars(
        rows, ylabel="error of the IPC (%)", limit=200, gaps=gaps, groups=("NMD", "MD")
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    errors = {model: mean_error(table, model, "MD") for model in ("gpumech", "mdm")}
    factor = errors["gpumech"] / errors["mdm"]
    return [
        Claim(
            "MDM improves accuracy by a factor of 8.66 against GPUMech with a streaming L1 "
            "(MD applications; held here: by more than 2)",
            "8.66",
            f"{factor:.2f} ({percent(errors['gpumech'])} to {percent(errors['mdm'])})",
            factor > 2,
        ),
    ]


figure = PaperFigure(
    name="mdm-fig15",
    title="Error of the IPC with a streaming L1",
    paper=f"{mdm.PAPER}, Figure 15",
    reference=f"{mdm.REFERENCE}, L1 allocating on fill, {_QUEUE_ENTRIES} requests per SM to the NoC",
    compute=_compute,
    draw=_draw,
    check=_check,
)
