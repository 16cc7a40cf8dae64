"""MDM, Figure 10: errors against a GPU, if measurements are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.errors import InputError
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import grouped_bars
from warpstack.figures.errors import below, mean_error, per_application
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import predictions
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MODELS = ("gpumech", "mdm", "closed_network")


def _compute(study: Study) -> pd.DataFrame:
    hardware = study.hardware
    if hardware is None:
        raise InputError(
            "mdm-fig10 needs measurements: give --hardware FILE, a table with the columns app and cycles, "
            "and --gpu"
        )
    names = [name for name in study.names if name in hardware.cycles]
    if not names:
        raise InputError("mdm-fig10: none of the workloads was measured")
    # The GPU is recognised by its fields, not its name: the description may be a file of the user.
    settings = {"gpu": hardware.gpu, "models": list(_MODELS)}
    table = study.run(predictions, [settings], names)
    keys = ["app", "label", "class", "model"]
    cycles = table.groupby(keys, sort=False)["cycles"].sum().reset_index()
    measured = cycles["app"].map(hardware.cycles)
    # IPCs of the same instructions are inversely proportional to the cycles.
    return cycles.assign(measured=measured, error=measured / cycles["cycles"] - 1)


def _draw(table: pd.DataFrame) -> Figure:
    rows, gaps = per_application(table, _MODELS)
    return grouped_bars(
        rows, ylabel="error of the IPC (%)", limit=400, gaps=gaps, groups=("NMD", "MD")
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    return [
        below(
            "MDM errs less than GPUMech against real hardware (binary instrumentation there, PTX here)",
            (40, 164),
            (mean_error(table, "mdm"), mean_error(table, "gpumech")),
        )
    ]


figure = PaperFigure(
    name="mdm-fig10",
    title="Error of the IPC against a GPU",
    paper=f"{mdm.PAPER}, Figure 10",
    reference="cycles measured on a GPU, as given",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
