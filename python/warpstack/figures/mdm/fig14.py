"""MDM, Figure 14: what the cycles of BFS go to as NoC and DRAM get faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import stacked_bars
from warpstack.figures.errors import percent
from warpstack.figures.mdm import common as mdm
from warpstack.figures.stages import performance
from warpstack.figures.study import Study
from warpstack.hardware.description import gpu as named_gpu
from warpstack.plot.components import COLOURS, HATCHES, LABELS
from warpstack.tables import STACK, STACK_COMPONENTS
from warpstack.timing.simulation import MODEL_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FACTORS = (0.5, 1.0, 2.0, 4.0)
_SHOWN = (MODEL_NAME, "gpumech", "mdm", "closed_network")


def _compute(study: Study) -> pd.DataFrame:
    gpu = named_gpu(mdm.GPU)
    points = [
        mdm.at(
            noc_bandwidth_gbs=factor * gpu.noc_bandwidth_gbs,
            dram_bandwidth_gbs=factor * gpu.dram_bandwidth_gbs,
        )
        for factor in _FACTORS
    ]
    table = study.run(performance, points, ["bfs"])
    table = table[table["model"].isin(_SHOWN)]
    # CPI of the whole GPU, which is what launches of few blocks and of many can be added up by.
    parts = list(STACK)
    cycles = table[parts].mul(table["cycles"] / table["cpi"], axis=0)
    keys = table[["setting", "model"]]
    sums = pd.concat([keys, cycles], axis=1).groupby(["setting", "model"], sort=False).sum()
    whole = float(sums.sum(axis=1)[_FACTORS.index(1.0), MODEL_NAME])
    rows = (sums / whole).reset_index()
    rows.insert(0, "bandwidth", rows.pop("setting").map(dict(enumerate(_FACTORS))))
    return rows


def _draw(table: pd.DataFrame) -> Figure:
    order = {model: place for place, model in enumerate(_SHOWN)}
    rows = table.sort_values(["bandwidth", "model"], key=lambda c: c.map(lambda x: order.get(x, x)))
    labels = [f"{model} {b:g}x" for model, b in zip(rows["model"], rows["bandwidth"], strict=True)]
    stack = rows[list(STACK)]
    stack = stack.set_axis([LABELS[part] for part in STACK_COMPONENTS], axis=1).set_axis(labels)
    return stacked_bars(
        stack,
        colours={LABELS[part]: COLOURS[part] for part in STACK_COMPONENTS},
        hatches={LABELS[part]: HATCHES[part] for part in STACK_COMPONENTS},
        ylabel="CPI / simulated CPI at 1x",
        gaps=[len(_SHOWN) * i for i in range(1, len(_FACTORS))],
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    stack = table.set_index(["bandwidth", "model"])
    whole = stack.sum(axis=1).unstack("model")  # noqa: PD010 (nothing is aggregated)
    errors = {
        model: float(100 * (whole[model] / whole[MODEL_NAME] - 1).abs().mean())
        for model in ("gpumech", "mdm")
    }
    waiting = stack[["cpi_mshr", "cpi_noc", "cpi_queue"]].sum(axis=1) / stack.sum(axis=1)
    share, seen = (float(100 * waiting[1.0, model]) for model in ("mdm", MODEL_NAME))
    return [
        Claim(
            "MDM's CPI is nearer to the simulation's than GPUMech's",
            "accurate, in contrast to GPUMech",
            f"mean error {percent(errors['mdm'])} against {percent(errors['gpumech'])}",
            errors["mdm"] < errors["gpumech"],
        ),
        Claim(
            "MSHRs and the queues of NoC and DRAM make up most of MDM's CPI",
            "sensitive to both",
            f"{share:.0f} % of it; of the simulation's {seen:.0f} %",
            bool(share > 50),
        ),
    ]


figure = PaperFigure(
    name="mdm-fig14",
    title="CPI stacks of bfs over NoC and DRAM bandwidth",
    paper=f"{mdm.PAPER}, Figure 14",
    reference=mdm.REFERENCE,
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
