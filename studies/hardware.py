#!/usr/bin/env python3
"""Hold simulator and models against times measured on real GPUs.

    python studies/hardware.py REFERENCE                       # print the tables
    python studies/hardware.py REFERENCE --write               # into docs/data/hardware
    python studies/hardware.py REFERENCE --only rodinia kpp    # of some sets
    python studies/hardware.py REFERENCE --keep CSV            # keep the predictions, or take them from there

REFERENCE is the folder of measurements on GPUs (``hardware``), whose README says what each contains. The
kernels in hardware_kernels are written after these descriptions. The cards from Turing on run machine
code, for which a CUDA compiler and nvdisasm are needed; the others run PTX. Launches of more warp
instructions than ``--largest`` are left out, and the page says how many. Traces stay in the cache folder
(``--cache``).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pages
import pandas as pd
from hardware_suites import SUITES, evaluate, tables

PAGE = pages.DOCS / "quality" / "hardware.md"
#: Warp instructions of the longest launch that is simulated, about, by set: some minutes each.
LARGEST = {
    **dict.fromkeys(("microbenchmarks", "rodinia"), 2e6),
    **{"h100": 1.3e7, "accelwattch": 1.5e7, "pmpp": 2e6, "kpp": 4e6},
    **dict.fromkeys(("strides", "streams", "reductions", "vectors", "triton", "newest"), 1e7),
    "sgemm": 2.5e7,
}
#: Columns of predictions that are texts; an empty one is no missing value.
TEXTS = (
    *("reason", "setting", "flag", "profiler", "kernel_index", "kernel", "model", "state", "code"),
    *("set", "suite", "gpu", "application", "metric", "run"),
)


def predictions(arguments: argparse.Namespace) -> pd.DataFrame:
    """Return a row per measured row, setting and model; of each set from the file, or anew."""
    known = pd.DataFrame()
    if arguments.keep and arguments.keep.exists():
        known = pd.read_csv(arguments.keep, dtype=dict.fromkeys(TEXTS, str))
    for name in arguments.only:
        if not len(known) or name not in set(known["set"]):
            known = pd.concat([known, evaluated(name, arguments)], ignore_index=True)
            if arguments.keep:
                known.to_csv(arguments.keep, index=False, float_format="%.6g")
    ordered = pd.concat([known[known["set"] == name] for name in SUITES if name in arguments.only])
    return ordered.fillna(dict.fromkeys(TEXTS, ""))


def evaluated(name: str, arguments: argparse.Namespace) -> pd.DataFrame:
    """Return the same of one set, simulated and predicted."""
    rows = SUITES[name](arguments.reference)
    largest = arguments.largest or LARGEST[name]
    wanted = [row for row in rows if not evaluate.why_not(row, largest)]
    tasks = evaluate.tasks_of(wanted, arguments.code, arguments.cache)
    start = time.perf_counter()
    if arguments.processes == 1:
        results = [evaluate.evaluated(task) for task in tasks]
    else:
        results = list(pages.in_processes(evaluate.evaluated, tasks, arguments.processes))
    seconds = time.perf_counter() - start
    print(f"{name}: {len(tasks)} programs in {seconds:.0f} s", file=sys.stderr, flush=True)
    times = evaluate.rows_with_times(rows, results, arguments.code, largest)
    return times.assign(set=name)


def main() -> None:
    """Compute the tables asked for and print or write them."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument(
        "reference", type=pages.existing("h100-emptykernel-grid.csv"), help="the folder hardware"
    )
    parser.add_argument(
        "--only", nargs="+", choices=SUITES, default=list(SUITES), help="these sets"
    )
    parser.add_argument(
        "--largest",
        type=float,
        help="warp instructions of a launch, about; by default another number for each set",
    )
    parser.add_argument(
        "--code",
        choices=("machine", "ptx"),
        default="machine",
        help="what cards from Turing on run",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="CSV",
        help="all predictions; sets that the file has already are read from there",
    )
    parser.add_argument("--cache", type=Path, default=evaluate.cache_folder(), help="of traces")
    pages.add_processes(parser)
    arguments = parser.parse_args()
    rows = predictions(arguments)
    made = {
        "summary": tables.summary(rows),
        "ratios": tables.ratios(rows),
        "pairs": tables.pairs(rows),
        "suites": tables.by_gpu(rows),
        "worst": tables.worst(rows),
        "left-out": tables.left_out(rows),
        "counters": tables.counters(rows, arguments.reference),
    }
    pages.publish(PAGE, made, arguments.write)


if __name__ == "__main__":
    main()
