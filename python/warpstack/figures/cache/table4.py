"""Cache paper, Table 4: errors of PPT-GPU-Mem and of functional simulation, metric by metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.cache import common as cache_paper
from warpstack.figures.drawing import text_table
from warpstack.figures.study import Study
from warpstack.validation import measures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Mean absolute percentage errors and correlations: PPT-GPU-Mem's and the paper's own.
PRINTED = {
    "l1_hit_rate": (14.70, 11.06, 0.99, 0.99),
    "l1_global_load_hit_rate": (10.22, 7.26, 0.99, 1.00),
    "l2_reads": (23.66, 11.54, 0.95, 0.95),
    "l2_writes": (17.24, 11.80, 1.00, 1.00),
    "l2_total": (21.57, 9.11, 1.00, 1.00),
    "l2_hit_rate": (43.39, 15.86, 0.76, 0.94),
    "l2_read_hit_rate": (158.42, 38.98, 0.75, 0.90),
    "dram_reads": (53.06, 13.33, 0.87, 1.00),
    "dram_writes": (896.21, 1383.14, 0.50, 1.00),
    "dram_total": (42.70, 16.85, 0.94, 1.00),
}


def _compute(study: Study) -> pd.DataFrame:
    means = cache_paper.by_application(cache_paper.by_kernel(study))
    rows = []
    for metric, printed in PRINTED.items():
        values = means.pivot_table(metric, "app", "source", dropna=False).dropna()
        unit = cache_paper.unit(metric)
        if unit == "%":  # as the paper: without the applications whose reference is 0
            values = values[values[cache_paper.SIMULATION] > 0]
        row: dict[str, object] = {"metric": metric, "unit": unit, "applications": len(values)}
        for model, paper_mape, paper_r in zip(
            cache_paper.MODELS, printed[:2], printed[2:], strict=True
        ):
            error = cache_paper.mean_error(values[model], values[cache_paper.SIMULATION], metric)
            enough = len(values) > 1 and values[[model, cache_paper.SIMULATION]].std().min() > 0
            r = (
                measures.pearson(values[model], values[cache_paper.SIMULATION])
                if enough
                else np.nan
            )
            row |= {
                f"{model}_error": error,
                f"{model}_r": float(r),
                f"{model}_paper_mape": paper_mape,
                f"{model}_paper_r": paper_r,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def _draw(table: pd.DataFrame) -> Figure:
    shown = pd.DataFrame({"metric": table["metric"]})
    for model in cache_paper.MODELS:
        shown[model] = [
            f"{error:.1f} {unit}, r {r:.2f}"
            for error, unit, r in zip(
                table[f"{model}_error"], table["unit"], table[f"{model}_r"], strict=True
            )
        ]
        shown[f"{model}, the paper"] = [
            f"{error:.1f} %, r {r:.2f}"
            for error, r in zip(
                table[f"{model}_paper_mape"], table[f"{model}_paper_r"], strict=True
            )
        ]
    return text_table(
        shown,
        width=10.5,
        note="Mean absolute error and correlation over the applications: percentage points of "
        "rates, else relative (the paper: relative throughout)",
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    rows = table.set_index("metric")
    claims = []
    for metric in ("l1_hit_rate", "l2_hit_rate", "l2_read_hit_rate", "dram_reads", "dram_total"):
        row, printed = rows.loc[metric], PRINTED[metric]
        claims.append(
            Claim(
                f"functional simulation errs less than PPT-GPU-Mem in {metric}",
                f"{printed[1]} % against {printed[0]} %",
                f"{row['warpstack_error']:.1f} against {row['ppt_gpu_mem_error']:.1f} {row['unit']}",
                bool(row["warpstack_error"] < row["ppt_gpu_mem_error"]),
            )
        )
    row = rows.loc["dram_total"]
    claims.append(
        Claim(
            "traffic of DRAM correlates with the reference (held here: above 0.9)",
            "1.00",
            f"{row['warpstack_r']:.2f}",
            bool(row["warpstack_r"] > 0.9),
        )
    )
    return claims


figure = PaperFigure(
    name="cache-table4",
    title="Errors of cache metrics",
    paper=f"{cache_paper.PAPER}, Table 4",
    reference=cache_paper.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
