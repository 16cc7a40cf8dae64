"""MWP-CWP, Table 2: the model by hand on a tiled matrix multiplication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import text_table
from warpstack.figures.mwp_cwp import common as mwp
from warpstack.figures.study import Study
from warpstack.models import mwp_cwp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Value as printed, by the field of `Estimate`.
_PRINTED = {
    "active_warps_per_sm": "20",
    "departure_delay": "320",
    "mem_l": "730",
    "mwp_without_bw_full": "2.28",
    "bw_per_warp_gbs": "0.175",
    "mwp_peak_bw": "28.57",
    "mwp": "2.28",
    "comp_cycles": "132",
    "mem_cycles": "4380",
    "cwp_full": "34.18",
    "cwp": "20",
    "rep": "1",
    "exec_cycles": "38450",
    "synch_cost": "12288",
    "cycles": "50738",
}


def _compute(study: Study) -> pd.DataFrame:
    exact = mwp_cwp.predict(mwp.TILED, mwp.EXAMPLE)
    # The paper goes on with MWP rounded to 2.28, and with 0.175 GB/s per warp.
    rounded = mwp_cwp.predict(mwp.TILED, mwp.EXAMPLE, mwp=2.28)
    peak = mwp.EXAMPLE.memory_bandwidth_gbs / (0.175 * float(exact.active_sms))
    rows = [
        {
            "value": name,
            "paper": float(printed),
            "ours": float(getattr(exact, name)),
            "ours_rounded": peak if name == "mwp_peak_bw" else float(getattr(rounded, name)),
        }
        for name, printed in _PRINTED.items()
    ]
    return pd.DataFrame(rows)


def _draw(table: pd.DataFrame) -> Figure:
    shown = table.assign(
        paper=[_PRINTED[name] for name in table["value"]],
        ours=table["ours"].map("{:.6g}".format),
        rounded=table["ours_rounded"].map("{:.6g}".format),
    )[["value", "paper", "ours", "rounded"]]
    return text_table(
        shown.rename(columns={"rounded": "ours, rounded on the way as there"}), width=6
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    rows = table.set_index("value")
    off = (rows["ours_rounded"] - rows["paper"]).abs()
    # As printed: to the last digit, and bandwidths truncated; cycles to one.
    allowed = pd.Series(
        {
            name: 1.0 if "cycles" in name or "cost" in name else 10.0 ** -len(p.partition(".")[2])
            for name, p in _PRINTED.items()
        }
    )
    same = int((off <= allowed).sum())
    return [
        Claim(
            "every value of the table, to its last digit, rounded on the way as there",
            f"{len(rows)} values",
            f"{same} of {len(rows)}; {rows['ours']['cycles']:.2f} cycles without rounding",
            same == len(rows),
        )
    ]


figure = PaperFigure(
    name="mwp-table2",
    title="The model step by step on a tiled matrix multiplication",
    paper=f"{mwp.PAPER}, Table 2",
    reference="the paper's own arithmetic",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
