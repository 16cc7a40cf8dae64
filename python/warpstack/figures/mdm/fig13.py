"""MDM, Figure 13: what lowering the clock from 2 to 1.4 GHz costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import grouped_bars
from warpstack.figures.errors import below, percent
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import frequencies
from warpstack.figures.study import Study
from warpstack.timing.simulation import MODEL_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOMINAL_GHZ, _TARGET_GHZ = 2.0, 1.4
_MODELS = ("gpumech", "crisp", "mdm", "closed_network")


def _compute(study: Study) -> pd.DataFrame:
    settings = {
        "gpu": mdm.GPU,
        "nominal_ghz": _NOMINAL_GHZ,
        "clocks_ghz": [_TARGET_GHZ],
        "models": [*_MODELS, MODEL_NAME],
    }
    table = study.run(frequencies, [settings], study.divergent())
    times = table.pivot_table("time_us", ["app", "label", "model"], "clock_ghz", sort=False)
    ratios = (times[_TARGET_GHZ] / times[_NOMINAL_GHZ]).rename("ratio").reset_index()
    simulated = ratios[ratios["model"] == MODEL_NAME].set_index("app")["ratio"]
    rows = ratios[ratios["model"] != MODEL_NAME]
    rows = rows.join(simulated.rename("simulated_ratio"), on="app")
    return rows.assign(error=rows["ratio"] / rows["simulated_ratio"] - 1).reset_index(drop=True)


def _draw(table: pd.DataFrame) -> Figure:
    absolute = table.assign(error=100 * table["error"].abs())
    rows = absolute.pivot_table("error", "label", "model", sort=False)[list(_MODELS)]
    gaps = [len(rows)]
    rows.loc["MD mean"] = rows.mean()
    return grouped_bars(
        rows, ylabel="error of the ratio of times\nat 1.4 and 2 GHz (%)", gaps=gaps, groups=("MD",)
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    errors = {m: float(100 * e.abs().mean()) for m, e in table.groupby("model")["error"]}
    return [
        below("MDM errs less than GPUMech", (4.6, 28), (errors["mdm"], errors["gpumech"])),
        below("CRISP errs less than MDM", (3.7, 4.6), (errors["crisp"], errors["mdm"])),
        Claim(
            "MDM is nearly as accurate as CRISP (held here: within 3 points)",
            "0.9 points",
            f"{errors['mdm'] - errors['crisp']:.1f} points (CRISP {percent(errors['crisp'])})",
            errors["mdm"] - errors["crisp"] <= 3,
        ),
    ]


figure = PaperFigure(
    name="mdm-fig13",
    title="Error of the predicted slowdown from 2 to 1.4 GHz, MD applications",
    paper=f"{mdm.PAPER}, Figure 13",
    reference=f"{mdm.REFERENCE} at 2 GHz",
    compute=_compute,
    draw=_draw,
    check=_check,
)
