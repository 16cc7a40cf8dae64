"""MWP-CWP, Figure 14: the CPI of the micro-benchmarks, against the simulator in the GPU's place."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import grouped_points
from warpstack.figures.mwp_cwp import common as mwp
from warpstack.figures.study import Study
from warpstack.hardware.description import gpu as named_gpu
from warpstack.models import mwp_cwp
from warpstack.timing import simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMS, _BLOCKS_PER_SM, _ITERATIONS = 4, 5, 10
#: FX5600's Table 6: a latency of 420 cycles and 10 between the transactions of an uncoalesced access.
#: All of 128 bytes are 40 apart here, for the simulator moves bytes, not transactions.
_LATENCY, _UNCOALESCED, _COALESCED = 420, 10, 40
#: Properties that `pascal-mdm` has from Accel-Sim and the paper's equations lack.
_NOT_OF_THE_PAPER: dict[str, Any] = {
    "l1_latency_place": "after_tags",
    "lines_under_way": "replaceable",
    "lsu_queue_entries": 2,
    "store_acknowledgement": "none",
    "kernel_end": "last_store",
    "l2_write_miss": "fetch_on_write",
    "l2_slice_request_cycles": 1,
    "l2_slice_bytes_per_cycle": 0,
    "dram_clock_ghz": 0,
    "dram_row_bytes": 0,
}


def _compute(study: Study) -> pd.DataFrame:
    queues: dict[str, Any] = dict.fromkeys(
        ("l1_mshrs", "l2_mshrs", "l2_queue_entries", "dram_queue_entries"), 8192
    )
    gpu = named_gpu("pascal-mdm").replace(
        num_sms=_SMS,
        clock_ghz=1,
        issue_width=1,
        fp32_latency=1,
        blocks_per_sm=_BLOCKS_PER_SM,
        l1_sector_bytes=32,
        l2_sector_bytes=32,
        l1_miss_queue_entries=4096,
        l2_latency=120,
        dram_latency=_LATENCY - 120,
        noc_sm_bytes_per_cycle=32 / _UNCOALESCED,
        noc_bandwidth_gbs=1000,
        dram_bandwidth_gbs=1000,
        **queues,
        **_NOT_OF_THE_PAPER,
    )
    machine = mwp_cwp.Machine(
        num_sms=_SMS,
        clock_ghz=1,
        memory_bandwidth_gbs=1000,
        issue_cycles=1,
        dram_latency=_LATENCY,
        uncoalesced_departure=_UNCOALESCED,
        coalesced_departure=_COALESCED,
    )
    rows = []
    for coalesced, name in itertools.product((True, False), mwp_cwp.MICROBENCHMARKS):
        blocks = _SMS * _BLOCKS_PER_SM
        kernel = mwp_cwp.microbenchmark(
            name,
            coalesced=coalesced,
            num_blocks=blocks,
            active_blocks_per_sm=_BLOCKS_PER_SM,
            iterations=_ITERATIONS,
        )
        trace = mwp.trace_of(name, coalesced=coalesced, blocks=blocks, iterations=_ITERATIONS)
        result = simulation.simulate(trace, gpu)
        cpi = result.cycles / (trace.num_instructions / _SMS)
        estimate = float(mwp_cwp.predict(kernel, machine).cpi)
        rows.append({"benchmark": kernel.name, "simulation": cpi, "mwp_cwp": estimate})
    return pd.DataFrame(rows)


def _draw(table: pd.DataFrame) -> Figure:
    rows = table.set_index("benchmark")
    return grouped_points(
        rows,
        ylabel="CPI of an SM",
        gaps=[len(mwp_cwp.MICROBENCHMARKS)],
        groups=("coalesced", "uncoalesced"),
        width=8,
    )


def _check(table: pd.DataFrame) -> list[Claim]:
    error = 100 * (table["mwp_cwp"] / table["simulation"] - 1).abs()
    mean = float(100 * (np.exp(np.log1p(error / 100).mean()) - 1))
    rows = table.set_index("benchmark")["simulation"]
    uncoalesced = rows[[f"Mb{i}_UC" for i in (2, 4, 6, 7)]]
    return [
        Claim(
            "geometric mean of the error (held here: at most 10 %)",
            "5.4 %, against GPUs",
            f"{mean:.1f} %, against the simulator (geometric mean of 1 + error, less 1)",
            mean <= 10,
        ),
        Claim(
            "the CPI of uncoalesced loads grows with their number (1, 2, 4 and 6 per loop)",
            "linearly",
            ", ".join(f"{x:.1f}" for x in uncoalesced),
            bool(uncoalesced.is_monotonic_increasing),
        ),
    ]


figure = PaperFigure(
    name="mwp-fig14",
    title="CPI of the micro-benchmarks",
    paper=f"{mwp.PAPER}, Figure 14",
    reference="cycle-level simulation of a GPU without caching, with the model's latency and departures",
    compute=_compute,
    draw=_draw,
    check=_check,
    needs_all=False,
)
