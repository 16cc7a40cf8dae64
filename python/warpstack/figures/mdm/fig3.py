"""MDM, Figure 3: where the latency of L1 misses comes from."""

from warpstack.figures.base import PaperFigure
from warpstack.figures.mdm import common as mdm
from warpstack.figures.mdm import latency

figure = PaperFigure(
    name="mdm-fig3",
    title="Latency of an L1 miss by part",
    paper=f"{mdm.PAPER}, Figure 3",
    reference=f"{mdm.REFERENCE}; no model",
    compute=latency.compute,
    draw=latency.draw,
    check=latency.check,
)
