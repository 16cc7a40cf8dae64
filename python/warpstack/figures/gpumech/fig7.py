"""GPUMech, Figure 7: three ways to select the representative warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import lines
from warpstack.figures.errors import kernel_errors, percent
from warpstack.figures.gpumech import common as gpumech
from warpstack.figures.stages import selections
from warpstack.figures.study import Study
from warpstack.interval.profile import SELECTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _compute(study: Study) -> pd.DataFrame:
    settings = {
        "gpu": gpumech.GPU,
        "changes": {},
        "model": "gpumech",
        "ways": list(SELECTIONS),
    }
    table = study.run(selections, [settings], gpumech.names(study))
    errors = kernel_errors(table[table["control_divergent"]]).drop(columns="setting")
    return errors.rename(columns={"model": "selection"})


def _draw(table: pd.DataFrame) -> Figure:
    absolute = table.assign(error=100 * table["error"].abs())
    rows = absolute.pivot_table("error", ["app", "name"], "selection", sort=False)
    rows = rows.sort_values("clustering")[list(SELECTIONS)]
    rows.index = pd.Index(np.arange(1, len(rows) + 1))
    return lines(
        rows,
        xlabel="control-divergent kernels, sorted by the error of clustering",
        ylabel="error of the CPI (%)",
        limit=200,
        scale=True,
        width=7,
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    means = 100 * table.assign(error=table["error"].abs()).groupby("selection")["error"].mean()
    best = min(SELECTIONS, key=lambda way: means[way])
    return [
        Claim(
            "clustering usually has the best accuracy (held here: the lowest mean error of "
            f"{len(table) // len(SELECTIONS)} kernels)",
            "usually the best",
            ", ".join(f"{way} {percent(means[way])}" for way in SELECTIONS),
            best == "clustering",
        )
    ]


figure = PaperFigure(
    name="gpumech-fig7",
    title="Error of GPUMech's CPI by how the representative warp is selected",
    paper=f"{gpumech.PAPER}, Figure 7",
    reference=gpumech.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
