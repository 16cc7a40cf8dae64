#!/usr/bin/env python3
"""Hold the caches in every order of accesses against the cycle-level simulator, on the workloads.

python studies/access_orders.py            # print the table
python studies/access_orders.py --write    # also write docs/data/memory
"""

from __future__ import annotations

import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "explanation" / "memory.md"
ORDERS = ("round_robin", "greedy", "timed")
COUNTERS = {"L1 misses": "l2_read_requests", "DRAM reads": "dram_read_sectors"}
#: As near to the simulator as this is near.
NEAR = 0.1

#: A workload, its size, the GPU.
Task = tuple[str, str, str]


def counted(task: Task) -> dict[str, float]:
    """Return the counters of a workload in every order, as multiples of the simulator's."""
    name, size, gpu = task
    app = ws.workloads.load(name, size)
    simulated = ws.simulate(app, gpu)
    row: dict[str, float] = {}
    for label, counter in COUNTERS.items():
        expected = sum(one.totals[counter] for one in simulated)
        for order in ORDERS:
            profiles = ws.simulate_caches(app, gpu, access_order=order, workers=1)
            found = sum(profile.totals[counter] for profile in profiles)
            row[f"{label}, {order}"] = found / expected
    return row


def main() -> None:
    """Count, and print or write the table."""
    parser = pages.parser(__doc__, PAGE)
    pages.add_workloads(parser)
    arguments = parser.parse_args()
    names = arguments.only or ws.workloads.names()
    tasks = [(name, arguments.size, "pascal-mdm") for name in names]
    table = pd.DataFrame(pages.in_processes(counted, tasks, arguments.processes), index=names)
    near = ((table - 1).abs() <= NEAR).sum()
    cells = [[str(name), *(f"{value:.2f}" for value in row)] for name, row in table.iterrows()]
    ratios = pd.DataFrame(cells, columns=["workload", *table.columns])
    counts = pd.DataFrame(
        {
            "counter and order": near.index,
            "workloads": len(names),
            f"within {100 * NEAR:.0f} %": near.to_numpy(),
        }
    )
    tables = {"access-orders": ratios, "access-orders-summary": counts}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
