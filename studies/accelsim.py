#!/usr/bin/env python3
"""Hold the simulator against Accel-Sim on the same traces with the same resources.

    python studies/accelsim.py REFERENCE TRACES            # print the table
    python studies/accelsim.py REFERENCE TRACES --write    # also write docs/data/simulator

REFERENCE is the table of Accel-Sim's results (accelsim-table3.csv), TRACES the folder that holds
rodinia-bfs-graph4096. The strided kernel is built here: MDM's Listing 1 as the reference's make_strided.py
writes it.
"""

from __future__ import annotations

from pathlib import Path

import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "quality" / "simulator.md"

#: The GPU that the reference's README describes; the rest is `pascal-mdm`.
RESOURCES = {
    "issue_width": 4,
    "schedulers_per_sm": 4,
    "l1_latency": 36,
    "l2_latency": 123,
    "l1_mshr_targets": 8,
    "l2_slice_interleave_bytes": 256,
    # The NoC moves a packet of any size per cycle of 1172 MHz and port; what 32 bytes per cycle limits
    # are the fill port of L1 and the data port of a slice, at 1400 MHz.
    "l2_clock_ghz": 1.172,
    "noc_bandwidth_gbs": 28 * 128 * 1.172,
    "noc_sm_bytes_per_cycle": 32 * 1.4 / 1.172,
    "l2_slice_bytes_per_cycle": 32 * 1.4 / 1.172,
    "l2_slice_request_cycles": 1,
    # Memory instructions in front of L1 of an SM of 4 schedulers: 8 operand collectors, 4 pipeline
    # registers before and 4 after them, one in the unit.
    "lsu_queue_entries": 17,
}


def arithmetic_latencies(name: str) -> dict[str, float]:
    """Return the latencies of another description's arithmetic and shared memory."""
    other = ws.gpu(name)
    own = ("l1_latency", "l2_latency", "dram_latency")
    fields = [field for field in ws.Gpu.fields() if field.endswith("_latency") and field not in own]
    return {field: getattr(other, field) for field in fields}


def described_gpu() -> ws.Gpu:
    """Return the GPU of the reference, with arithmetic latencies of Pascal hardware, as it gives none."""
    return ws.gpu("pascal-mdm").replace(**RESOURCES, **arithmetic_latencies("gtx1080"))


#: What Accel-Sim's rows change, by the text of their column.
CHANGES = {
    "": {},
    "DRAM 960 GB/s": {"dram_bandwidth_gbs": 960},
    "15 SMs": {"num_sms": 15},
}


def simulate(reference: pd.DataFrame, app: ws.App) -> pd.DataFrame:
    """Return the reference with the columns of the simulator beside it; `app` is the trace of bfs."""
    gpu = described_gpu()
    bfs = ws.simulate(app, gpu)
    rows = []
    for row in reference.itertuples():
        if row.trace.startswith("strided"):
            stride = int(row.trace.partition("GS=")[2])
            kernel = ws.patterns.strided(gs=stride, iterations=16, blocks=448, warps_per_block=8)
            result = ws.simulate(kernel, gpu.replace(**CHANGES[row.change]))
        else:
            result = bfs[row.kernel - 1]
        lines = 4  # sectors of a line
        totals = result.totals
        misses = totals["l1_read_requests"] - totals["l1_read_request_hits"]
        misses += totals["l1_pending_sector_hits"] // lines  # as Accel-Sim counts
        rows.append(
            {
                "trace": row.trace.replace("rodinia-bfs-graph4096", "bfs"),
                "kernel": row.kernel,
                "change": row.change,
                "cycles": result.cycles,
                "cycles, Accel-Sim": row.cycles,
                "error (%)": 100 * (result.cycles / row.cycles - 1),
                "L1 misses": misses,
                "L1 misses, Accel-Sim": row.l1_misses,
                "L2 misses": totals["dram_read_sectors"] // lines,
                "L2 misses, Accel-Sim": row.l2_misses,
            }
        )
    return pd.DataFrame(rows)


def rank_correlation(table: pd.DataFrame) -> float:
    """Return Spearman's rank correlation of the cycles."""
    return float(table["cycles"].corr(table["cycles, Accel-Sim"], method="spearman"))


def tables(reference: Path, traces: Path) -> dict[str, pd.DataFrame]:
    """Return the tables by their names."""
    table = simulate(
        pd.read_csv(reference, keep_default_na=False), ws.load(traces / "rodinia-bfs-graph4096")
    )
    error = table["error (%)"].abs()
    summary = pd.DataFrame(
        [
            {
                "kernels": name,
                "mean absolute error (%)": error[rows].mean(),
                "median (%)": error[rows].median(),
                "largest (%)": error[rows].max(),
                "rank correlation": f"{rank_correlation(table.loc[rows]):.3f}",
            }
            for name, rows in (
                ("all", table.index),
                ("strided", table.index[table["trace"].str.startswith("strided")]),
                ("above 1,000 cycles", table.index[table["cycles, Accel-Sim"] > 1000]),
            )
        ]
    )
    return {"accelsim": table, "accelsim-summary": summary}


def main() -> None:
    """Print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("reference", type=pages.existing())
    parser.add_argument("traces", type=pages.existing())
    arguments = parser.parse_args()
    pages.publish(PAGE, tables(arguments.reference, arguments.traces), arguments.write)


if __name__ == "__main__":
    main()
