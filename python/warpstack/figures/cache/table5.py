"""Cache paper, Table 5: what each part of the memory stage contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.cache import common as cache_paper
from warpstack.figures.drawing import text_table
from warpstack.figures.stages import ablations
from warpstack.figures.study import Study
from warpstack.memory.ablation import VARIANTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Errors in percent in the order of `VARIANTS`.
PRINTED = {
    "l1_hit_rate": (11.07, 10.53, 11.07, 11.07, 19.33),
    "l2_hit_rate": (15.47, 16.45, 17.16, 37.75, 14.60),
    "dram_total": (17.83, 17.12, 28.14, 24.80, 23.03),
}

_NOTE = "Mean absolute error: percentage points of rates, else relative (the paper's: relative throughout)"


def _compute(study: Study) -> pd.DataFrame:
    reference = cache_paper.by_application(cache_paper.by_kernel(study))
    reference = reference[reference["source"] == cache_paper.SIMULATION].set_index("app")
    table = study.run(ablations, [{"gpu": cache_paper.GPU}])
    means = table.groupby(["app", "variant"], sort=False)[list(PRINTED)].mean()
    rows = []
    for metric, printed in PRINTED.items():
        values = means[metric].unstack("variant")  # noqa: PD010 (nothing is aggregated)
        known = reference[metric].reindex(values.index)
        for variant, paper in zip(VARIANTS, printed, strict=True):
            error = cache_paper.mean_error(values[variant], known, metric)
            rows.append(
                {
                    "metric": metric,
                    "unit": cache_paper.unit(metric),
                    "variant": variant,
                    "error": error,
                    "paper": paper,
                }
            )
    return pd.DataFrame(rows)


def _draw(table: pd.DataFrame) -> Figure:
    text = table.assign(
        text=[
            f"{error:.1f} {unit} ({paper:.1f} %)"
            for error, unit, paper in zip(
                table["error"], table["unit"], table["paper"], strict=True
            )
        ]
    )
    shown = text.pivot_table("text", "metric", "variant", aggfunc="first", sort=False)
    return text_table(shown.reset_index(), width=9, note=_NOTE)


def _check(table: pd.DataFrame) -> list[Claim]:
    error = table.set_index(["metric", "variant"])["error"]
    unit = table.groupby("metric")["unit"].first()
    claims = []
    for metric, variant, text in (
        ("l1_hit_rate", "NoAdaptL1", "without the adaptive L1 its hit rate is worse"),
        ("l2_hit_rate", "NoL1Filter", "without filtering L1's hits L2's hit rate is worse"),
        ("dram_total", "L2NonSec", "without sectors in L2 the traffic of DRAM is worse"),
    ):
        printed = PRINTED[metric]
        claims.append(
            Claim(
                text,
                f"{printed[0]} % to {printed[VARIANTS.index(variant)]} %",
                f"{error[metric, 'Final']:.1f} to {error[metric, variant]:.1f} {unit[metric]}",
                bool(error[metric, variant] > error[metric, "Final"]),
            )
        )
    return claims


figure = PaperFigure(
    name="cache-table5",
    title="Errors with one part of the memory stage left out",
    paper=f"{cache_paper.PAPER}, Table 5",
    reference=cache_paper.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
