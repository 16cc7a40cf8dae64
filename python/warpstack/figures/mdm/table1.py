"""MDM, Table I: how common memory divergence is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack import workloads
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import text_table
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import divergence
from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Divergent loads per kilo-instruction above which an application is memory-divergent (Section I).
_THRESHOLD = 10
_PAPER = "21 of 56 (38 %)"


def _compute(study: Study) -> pd.DataFrame:
    table = study.run(divergence, [{}]).drop(columns="setting")
    table.insert(3, "suite", [workloads.get(name).suite for name in table["app"]])
    return table.assign(measured=(table["dpki"] > _THRESHOLD).map({True: "MD", False: "NMD"}))


def _draw(table: pd.DataFrame) -> Figure:
    counts = table.groupby(["suite", "measured"]).size().unstack(fill_value=0)  # noqa: PD010
    counts = counts.reindex(columns=["MD", "NMD"], fill_value=0)
    counts.loc["Sum"] = counts.sum()
    shown = counts.assign(Sum=counts.sum(axis=1)).reset_index()
    dpki = table.groupby("suite")["dpki"].agg(lambda v: ", ".join(f"{x:.0f}" for x in v))
    shown["DPKI of the applications"] = shown["suite"].map(dpki).fillna("")
    return text_table(shown, width=7.5, note="Applications with more than 10 DPKI are MD")


def _check(table: pd.DataFrame) -> list[Claim]:
    regular = table.loc[table["class"] == "NMD", "dpki"]
    divergent = table.loc[table["class"] == "MD", "dpki"]
    count = int((table["measured"] == "MD").sum())
    agree = int((table["measured"] == table["class"]).sum())
    return [
        Claim(
            "MD applications are common (the paper counts six suites, not the 17 that it simulates)",
            _PAPER,
            f"{count} of {len(table)} ({100 * count / len(table):.0f} %)",
            count / len(table) >= 0.38,
        ),
        Claim(
            "the class that DPKI gives is that of Table IV",
            "by definition",
            f"{agree} of {len(table)} applications",
            agree == len(table),
        ),
        Claim(
            "NMD applications have a DPKI near 0",
            "at most 3",
            f"at most {regular.max():.1f}",
            bool(regular.max() <= 3),
        ),
        Claim(
            "MD applications have a DPKI of 10 and more, 64 on average",
            "at least 10, mean 64",
            f"at least {divergent.min():.0f}, mean {divergent.mean():.0f}",
            bool(divergent.min() >= 10),
        ),
    ]


figure = PaperFigure(
    name="mdm-table1",
    title="Memory-divergent (MD) applications by suite",
    paper=f"{mdm.PAPER}, Table I",
    reference="counted in the traces of this project's workloads",
    compute=_compute,
    draw=_draw,
    check=_check,
)
