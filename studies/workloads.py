#!/usr/bin/env python3
"""Run every workload at one size: check, trace and predict it, and measure how long that takes.

    python studies/workloads.py                  # print the table
    python studies/workloads.py --only bfs spmv
    python studies/workloads.py --write          # update data/workloads and docs/data/workloads

What is written (launches, warp instructions, DPKI) is the same on every machine; times are not written.
"""

from __future__ import annotations

import sys
import time

import pages
import pandas as pd

import warpstack as ws

MEASURED = pages.REPOSITORY / "data" / "workloads" / "measured.csv"
DOCUMENT = pages.DOCS / "reference" / "workloads.md"
WRITTEN = ["name", "launches", "instructions", "dpki"]


def measure(name: str, size: str, *, check: bool) -> dict[str, object]:
    """Return a row of the table for a workload."""
    if check:
        ws.workloads.check(name, size)
    start = time.perf_counter()
    app = ws.workloads.load(name, size)
    traced = time.perf_counter()
    predictions = ws.predict(app, ws.gpu("pascal-mdm"), ["mdm"])
    predicted = time.perf_counter()
    instructions = sum(kernel.num_instructions for kernel in app)
    divergent = sum(kernel.dpki() * kernel.num_instructions for kernel in app)
    return {
        "name": name,
        "class": "MD" if ws.workloads.get(name).memory_divergent else "NMD",
        "launches": len(app),
        "instructions": instructions,
        "dpki": round(divergent / instructions, 3),
        "mdm_ipc": float(ws.models.application_totals(predictions)["ipc"].iloc[0]),
        "trace_s": traced - start,
        "predict_s": predicted - traced,
    }


def document(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the documentation."""
    found = []
    for row in rows.itertuples():
        workload = ws.workloads.get(str(row.name))
        sizes = {
            size: ", ".join(f"{key} {value:,}" for key, value in workload.sizes[size].items())
            for size in ("small", "paper")
        }
        found.append(
            {
                "workload": row.name,
                "suite": workload.suite,
                "class": "MD" if workload.memory_divergent else "NMD",
                "launches": row.launches,
                "warp instructions": row.instructions,
                "DPKI": f"{row.dpki:.1f}",
                **sizes,
            }
        )
    return pd.DataFrame(found)


def main() -> None:
    """Measure the workloads asked for."""
    parser = pages.parser(__doc__, DOCUMENT)
    parser.add_argument("--only", nargs="+", default=ws.workloads.names(), metavar="NAME")
    parser.add_argument("--size", default="small")
    parser.add_argument("--no-check", action="store_true", help="do not compare with references")
    arguments = parser.parse_args()
    if arguments.write and arguments.size != "small":
        parser.error("--write is of the size small")

    rows = []
    for name in arguments.only:
        rows.append(measure(name, arguments.size, check=not arguments.no_check))
        print(f"{name} done", file=sys.stderr)
    table = pd.DataFrame(rows)
    print(f"Measured on: {pages.machine()}", file=sys.stderr)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    seconds = table[["trace_s", "predict_s"]].sum()
    print(f"\ntraced in {seconds['trace_s']:.1f} s, predicted in {seconds['predict_s']:.1f} s")

    if arguments.write:
        written = table[WRITTEN]
        if MEASURED.exists():  # those not measured now stay
            before = pd.read_csv(MEASURED)
            written = pd.concat([before[~before["name"].isin(written["name"])], written])
        written = written.sort_values("name")
        written.to_csv(MEASURED, index=False)
        pages.write_table(DOCUMENT, "workloads", document(written))


if __name__ == "__main__":
    main()
