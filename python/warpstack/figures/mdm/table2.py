"""MDM, Table II: how long a design space takes, by simulation and by model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import text_table
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import costs
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZES = (1, 10, 100, 1000)
#: Each has caches of its own, so that no point profits from the one before.
_POINTS = ({"l1_size_kib": 24}, {"l2_size_kib": 1536}, {"num_sms": 56})
_HOUR, _DAY = 3600, 86400
#: Table II in seconds; a year of 365.25 days.
_PAPER_SIMULATION, _PAPER_ONCE, _PAPER_EACH = 27 * 365.25 * _DAY, 3.6 * _HOUR, 1.4 * _DAY


def _compute(study: Study) -> pd.DataFrame:
    settings = {"gpu": mdm.GPU, "points": list(_POINTS), "models": ["mdm"]}
    # One workload at a time, because time is measured.
    parts = []
    for name in study.names:
        about = {**settings, "workload": name, "size": study.size}
        parts.append(study.run(costs, [about], [name], alone=True))
    table = pd.concat(parts)
    sums = table[["simulation", "tracing", "selection", "prediction"]].sum()
    once = sums["tracing"] + sums["selection"]
    return pd.DataFrame(
        {
            "configurations": _SIZES,
            "simulation_s": [n * sums["simulation"] for n in _SIZES],
            "mdm_one_time_s": once,
            "mdm_recurrent_s": [n * sums["prediction"] for n in _SIZES],
        }
    )


def _duration(seconds: float) -> str:
    for size, unit in ((_DAY, "days"), (_HOUR, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _draw(table: pd.DataFrame) -> Figure:
    shown = pd.DataFrame({"configurations": table["configurations"].map("{:,}".format)})
    for column, title in (
        ("simulation_s", "simulation"),
        ("mdm_one_time_s", "MDM, one-time"),
        ("mdm_recurrent_s", "MDM, recurrent"),
    ):
        shown[title] = table[column].map(_duration)
    return text_table(
        shown,
        width=6.5,
        note="All applications; multiples of one simulated configuration and of three by MDM",
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    last = table.iloc[-1]
    ours = last["simulation_s"] / (last["mdm_one_time_s"] + last["mdm_recurrent_s"])
    paper = _PAPER_SIMULATION / (_PAPER_ONCE + _PAPER_EACH)
    return [
        Claim(
            "MDM is orders of magnitude faster over 1000 configurations (held here: 10 times; each "
            "point has its own caches, whose simulation is most of what a prediction costs)",
            f"{paper:,.0f} times",
            f"{ours:,.1f} times",
            bool(ours >= 10),
        )
    ]


figure = PaperFigure(
    name="mdm-table2",
    title="Evaluation time by size of the design space",
    paper=f"{mdm.PAPER}, Table II",
    reference=f"this machine, one run at a time; {mdm.GPU}",
    compute=_compute,
    draw=_draw,
    check=_check,
)
