"""The waits of L1 misses: the data of MDM's Figure 3 and CAL's Figure 1, which show the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.figures.drawing import stacked_bars
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import performance
from warpstack.figures.study import Study
from warpstack.plot.components import COLOURS, HATCHES
from warpstack.timing.simulation import LATENCY_PARTS, MODEL_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = {
    "l1": "L1: turns at the port",
    "mshr": "MSHR: delay",
    "l2": "LLC: access",
    "dram": "DRAM: access",
    "noc": "NoC: queue",
    "queue": "DRAM: queue",
}


def compute(study: Study, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return the mean cycles of each part over all misses of an application, a row each."""
    names = [name for name in study.names if name not in without]
    table = study.run(performance, [mdm.at()], names)
    table = table[table["model"] == MODEL_NAME]
    parts = [f"miss_{part}" for part in LATENCY_PARTS]
    sums = table.groupby(["app", "label", "class"], sort=False)[[*parts, "misses"]].sum()
    means = sums[parts].div(sums["misses"], axis=0).set_axis(list(LATENCY_PARTS), axis=1)
    return means.reset_index()


def draw(table: pd.DataFrame) -> Figure:
    """Draw the parts on each other."""
    rows = table.set_index("label")[list(_LABELS)].rename(columns=_LABELS)
    return stacked_bars(
        rows,
        colours={label: COLOURS[part] for part, label in _LABELS.items()},
        hatches={label: HATCHES[part] for part, label in _LABELS.items()},
        ylabel="latency of an L1 miss (cycles)",
        gaps=[int((table["class"] == "NMD").sum())],
        groups=("NMD", "MD"),
    )


def check(table: pd.DataFrame) -> list[Claim]:
    """Hold the claims of Section II-A (MDM) and 2.1 (CAL)."""
    means = table.groupby("class")[list(LATENCY_PARTS)].mean()

    def against(part: pd.Series) -> str:
        return f"MD {part['MD']:.0f}, NMD {part['NMD']:.0f} cycles"

    # MDM's MSHR delay lasts until the miss is issued, so turns at the port are part of it.
    delay = means["l1"] + means["mshr"]
    queues = means["noc"] + means["queue"]
    whole = means.sum(axis=1)
    share = delay["NMD"] / whole["NMD"]
    return [
        Claim(
            "NMD applications hardly wait for MSHRs (held here: below 5 % of the latency)",
            "negligible",
            f"{100 * share:.1f} %, {delay['NMD']:.0f} cycles",
            bool(share < 0.05),
        ),
        Claim(
            "MD applications wait hundreds of cycles for MSHRs on average (here with the turns at the "
            "port, without what instructions wait before issue)",
            "hundreds to thousands of cycles",
            f"{delay['MD']:.0f} cycles",
            bool(delay["MD"] >= 100),
        ),
        Claim(
            "queues of the NoC and DRAM are longer in MD applications",
            "typically much longer",
            against(queues),
            bool(queues["MD"] > queues["NMD"]),
        ),
        Claim(
            "the whole latency is higher in MD applications (held here: by a tenth)",
            "higher",
            against(whole),
            bool(whole["MD"] > 1.1 * whole["NMD"]),
        ),
    ]
