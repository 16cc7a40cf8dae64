#!/usr/bin/env python3
"""Hold the cache simulation against hardware counters and Accel-Sim on Rodinia bfs.

    python studies/bfs_counters.py REFERENCE TRACE            # print the tables
    python studies/bfs_counters.py REFERENCE TRACE --write    # also write docs/data/validation

REFERENCE is the table of counters per launch (rodinia-bfs-graph4096.csv), TRACE the traced application.
"""

from __future__ import annotations

from pathlib import Path

import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "quality" / "validation.md"


def totals(profiles: list[ws.MemoryProfile], name: str) -> list[int]:
    """Return one counter of each launch."""
    return [profile.totals[name] for profile in profiles]


def gtx1080(app: ws.App, reference: pd.DataFrame) -> pd.DataFrame:
    """Return L2 traffic, hit rates and DRAM sectors beside nvprof's on a GTX 1080."""
    gpu = ws.gpu("gtx1080").replace(l1_global_loads="bypassed")
    kept = ws.simulate_caches(app, gpu)
    flushed = ws.simulate_caches(app, gpu, flush_l2=True)
    hw = reference.filter(like="hw_gtx1080_").rename(
        columns=lambda name: name.removeprefix("hw_gtx1080_")
    )
    return pd.DataFrame(
        {
            "launch": reference["kernel"],
            "L2 reads": totals(kept, "l2_read_sectors"),
            "L2 reads, nvprof": hw["l2_tex_read_transactions"],
            "L2 writes": totals(kept, "l2_write_sectors"),
            "L2 writes, nvprof": hw["l2_tex_write_transactions"],
            "L2 read hits, kept (%)": [100 * p.hit_rates()["l2_read"] for p in kept],
            "L2 read hits, flushed (%)": [100 * p.hit_rates()["l2_read"] for p in flushed],
            "L2 read hits, nvprof (%)": hw["l2_tex_read_hit_rate"],
            "DRAM reads, kept": totals(kept, "dram_read_sectors"),
            "DRAM reads, flushed": totals(flushed, "dram_read_sectors"),
            "DRAM reads, nvprof": hw["dram_read_transactions"],
            "DRAM writes, flushed": [
                p.totals["dram_write_sectors"] + p.totals["l2_dirty_sectors"] for p in flushed
            ],
            "DRAM writes, nvprof": hw["dram_write_transactions"],
        }
    )


def rtx2060(app: ws.App, reference: pd.DataFrame) -> pd.DataFrame:
    """Return L1 and L2 beside Accel-Sim's RTX 2060."""
    profiles = ws.simulate_caches(app, "rtx2060")
    columns: dict[str, object] = {"launch": reference["kernel"]}
    for label, name in {
        "L1 reads": "l1_read_sectors",
        "L1 read hits": "l1_read_sector_hits",
        "L1 write hits": "l1_write_sector_hits",
        "L2 reads": "l2_read_sectors",
        "L2 read hits": "l2_read_sector_hits",
        "L2 writes": "l2_write_sectors",
    }.items():
        short = name.replace("_read_sectors", "_rd_acc").replace("_write_sectors", "_wr_acc")
        short = short.replace("_read_sector_hits", "_rd_hit").replace(
            "_write_sector_hits", "_wr_hit"
        )
        columns[label] = totals(profiles, name)
        columns[f"{label}, Accel-Sim"] = reference[f"accelsim_rtx2060_{short}"].astype(int)
    return pd.DataFrame(columns)


def qv100(app: ws.App, reference: pd.DataFrame) -> pd.DataFrame:
    """Return L1 and L2, reads and writes together, beside Accel-Sim's QV100."""
    profiles = ws.simulate_caches(app, "qv100")
    columns: dict[str, object] = {"launch": reference["kernel"]}
    for level in ("l1", "l2"):
        both = [f"{level}_read", f"{level}_write"]
        sectors = [sum(p.totals[f"{name}_sectors"] for name in both) for p in profiles]
        hits = [sum(p.totals[f"{name}_sector_hits"] for name in both) for p in profiles]
        columns[f"{level.upper()} accesses"] = sectors
        columns[f"{level.upper()} accesses, Accel-Sim"] = reference[f"accelsim_qv100_{level}_acc"]
        columns[f"{level.upper()} misses"] = [s - h for s, h in zip(sectors, hits, strict=True)]
        columns[f"{level.upper()} misses, Accel-Sim"] = reference[f"accelsim_qv100_{level}_miss"]
    return pd.DataFrame(columns)


def main() -> None:
    """Print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("reference", type=Path)
    parser.add_argument("trace", type=Path)
    arguments = parser.parse_args()
    app, reference = ws.load(arguments.trace), pd.read_csv(arguments.reference)
    makers = {"gtx1080": gtx1080, "rtx2060": rtx2060, "qv100": qv100}
    tables = {name: make(app, reference) for name, make in makers.items()}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
