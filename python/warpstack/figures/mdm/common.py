"""Shared by the figures of the MDM paper: models, configuration, and figures along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import lines
from warpstack.figures.errors import application_errors, mean_errors, percent
from warpstack.figures.stages import performance
from warpstack.figures.study import Study
from warpstack.hardware.description import gpu as named_gpu

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "Wang et al., MDM: The GPU Memory Divergence Model, MICRO 2020"
GPU = "pascal-mdm"
#: MDM's Table V, and this package's own model.
MODELS = ("gpumech", "gpumech_plus", "mdm_queue", "mdm_mshr", "mdm", "closed_network")
#: What is computed at each point, so that the figures share it; cal2019 has figures of its own.
COMPUTED = (*MODELS, "mdm_cal2019")
REFERENCE = f"cycle-level simulation (warpstack.simulate) of {GPU} (MDM, Table III)"


def at(**changes: float | str) -> dict[str, object]:
    """Return the settings of `performance` for a change of the baseline, the same for all figures."""
    baseline = named_gpu(GPU)
    varied = {name: value for name, value in changes.items() if getattr(baseline, name) != value}
    return {"gpu": GPU, "changes": varied, "models": list(COMPUTED)}


def along(
    name: str,
    number: int,
    field: str,
    values: Sequence[int],
    xlabel: str,
    check: Callable[[pd.DataFrame], list[Claim]],
) -> PaperFigure:
    """Return a figure of the mean error on MD applications along a field of `Gpu`."""

    def compute(study: Study) -> pd.DataFrame:
        points = [at(**{field: value}) for value in values]
        errors = application_errors(study.run(performance, points, study.divergent()))
        errors = errors[errors["model"].isin(MODELS)]
        return errors.assign(**{field: errors["setting"].map(dict(enumerate(values)))}).drop(
            columns="setting"
        )

    def draw(table: pd.DataFrame) -> Figure:
        means = mean_errors(table, [field])[list(MODELS)]
        return lines(means, xlabel=xlabel, ylabel="mean error of the IPC (%)")

    return PaperFigure(
        name=name,
        title=f"Error of the IPC over {xlabel}, MD applications",
        paper=f"{PAPER}, Figure {number}",
        reference=REFERENCE,
        compute=compute,
        draw=draw,
        check=check,
    )


def errors_along(table: pd.DataFrame, field: str, model: str) -> pd.Series:
    """Return the mean error of a model in percent by the value of a field."""
    return mean_errors(table, [field])[model]


def trend(values: pd.Series) -> str:
    """Return the values at both ends of an axis as text."""
    return f"{percent(values.iloc[0])} at {values.index[0]}, {percent(values.iloc[-1])} at {values.index[-1]}"


def lowest_everywhere(table: pd.DataFrame, field: str) -> Claim:
    """Claim that MDM has the lowest error of the paper's models at every point."""
    means = mean_errors(table, [field])
    rivals = [model for model in MODELS if model not in ("mdm", "closed_network")]
    best = means[rivals].min(axis=1)
    won = means["mdm"] <= best
    return Claim(
        f"MDM has the lowest error of the paper's models at all {len(means)} points",
        f"{len(means)} of {len(means)} points",
        f"{int(won.sum())} of {len(means)} points",
        bool(won.all()),
    )
