"""CAL 2019, Figure 1: where the latency of L1 misses comes from, without the neural networks."""

from __future__ import annotations

import pandas as pd

from warpstack.figures.base import PaperFigure
from warpstack.figures.cal import common as cal
from warpstack.figures.mdm import common as mdm
from warpstack.figures.mdm import latency
from warpstack.figures.study import Study


def _compute(study: Study) -> pd.DataFrame:
    return latency.compute(study, without=cal.ABSENT)


figure = PaperFigure(
    name="cal-fig1",
    title="Latency of an L1 miss by part",
    paper=f"{cal.PAPER}, Figure 1",
    reference=f"{mdm.REFERENCE}; no model",
    compute=_compute,
    draw=latency.draw,
    check=latency.check,
)
