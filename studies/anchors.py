#!/usr/bin/env python3
"""Measure how much an anchor takes off the errors of a sweep.

    python studies/anchors.py --kernels 400 --seed 1            # print the tables
    python studies/anchors.py --kernels 400 --seed 1 --write    # also docs/data/sweep
    python studies/anchors.py --workloads --write               # the workloads in place of random kernels
    python studies/anchors.py --anchors mdm                     # another engine at the base

Each pair is a random kernel on a random GPU (`tests/python/kernel_recipes.py`), the base, and the same
kernel with one or two fields of the GPU changed. The reference is the time that the simulator gives for
the changed GPU. The model predicts that time alone, and from each anchor at the base; an anchor that is
a model predicts it alone, too. The seed and the number of a pair make it again.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd

import warpstack as ws

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import kernel_recipes as rk

PAGE = pages.DOCS / "how-to" / "sweep.md"
MODEL = "closed_network"
#: The engines that anchor.
ANCHORS = ("simulate", "interval_simulation")
#: Changed GPUs of each kernel and base.
POINTS = 4
#: A pair moves when the time at the changed GPU differs from that at the base by this share.
MOVES = 0.05

#: Changes to `pascal-mdm` for the workloads: points of the axes of `models.py`, and one of two fields.
WORKLOAD_POINTS: list[dict[str, int]] = [
    {"num_sms": 15},
    {"num_sms": 56},
    {"l1_mshrs": 32},
    {"noc_bandwidth_gbs": 525},
    {"dram_bandwidth_gbs": 240},
    {"noc_bandwidth_gbs": 2100, "dram_bandwidth_gbs": 960},
]

Change = Callable[[np.random.Generator, ws.Gpu], dict[str, Any]]


def _times(*names: str) -> Change:
    """Return a change of fields by one factor, between a third and three."""

    def change(rng: np.random.Generator, gpu: ws.Gpu) -> dict[str, Any]:
        factor = 3 ** rng.uniform(-1, 1)
        values = {name: getattr(gpu, name) * factor for name in names}
        return {
            name: max(round(value), 1) if isinstance(getattr(gpu, name), int) else value
            for name, value in values.items()
        }

    return change


def _ways(level: str) -> Change:
    """Return a change to a cache of as many sets with more or fewer ways."""

    def change(rng: np.random.Generator, gpu: ws.Gpu) -> dict[str, Any]:
        ways = getattr(gpu, f"{level}_ways")
        other = max(round(ways * 3 ** rng.uniform(-1, 1)), 1)
        size = getattr(gpu, f"{level}_size_kib") * other / ways
        return {f"{level}_ways": other, f"{level}_size_kib": size}

    return change


#: What is changed.
CHANGES: dict[str, Change] = {
    "num_sms": _times("num_sms"),
    "clock_ghz": _times("clock_ghz"),
    "l1_mshrs": _times("l1_mshrs"),
    "noc_bandwidth_gbs": _times("noc_bandwidth_gbs"),
    "dram_bandwidth_gbs": _times("dram_bandwidth_gbs"),
    "dram_latency": _times("dram_latency"),
    "l2_latency": _times("l2_latency"),
    "fp32_latency": _times("fp32_latency"),
    "issue_width": lambda rng, gpu: {"issue_width": int(rng.choice([1, 2, 4]))},
    "warps_per_sm": _times("warps_per_sm"),
    "ways of L1": _ways("l1"),
    "ways of L2": _ways("l2"),
}


def points_of(rng: np.random.Generator, gpu: ws.Gpu) -> list[tuple[str, dict[str, Any]]]:
    """Return what is changed, in words, and the values; alternately one field and two."""
    points = []
    for number in range(POINTS):
        names = rng.choice(list(CHANGES), size=1 + number % 2, replace=False)
        point: dict[str, Any] = {}
        for name in names:
            point |= CHANGES[name](rng, gpu)
        points.append((", ".join(names), point))
    return points


def predictions(
    work: ws.Kernel | ws.App, gpu: ws.Gpu, points: list[dict[str, Any]], engines: Sequence[str]
) -> dict[str, pd.Series]:
    """Return the cycles at each point by way of prediction; those of a failed point are missing."""
    ways: dict[str, tuple[str, str | None]] = {f"{MODEL} alone": (MODEL, None)}
    ways |= {f"anchored by {engine}": (MODEL, engine) for engine in engines}
    ways |= {f"{engine} alone": (engine, None) for engine in engines if engine in ws.models.names()}
    found = {}
    for way, (model, anchor) in ways.items():
        table = ws.sweep(work, gpu, points, model, workers=1, cache=False, anchor=anchor)
        cycles = table["cycles"].where(table["error"] == "")
        found[way] = cycles.groupby(table["point"]).sum(min_count=1)
    return found


def measure(task: tuple[tuple[str, ...], int, range]) -> pd.DataFrame:
    """Return a row for each pair of a range of kernels."""
    warnings.simplefilter("ignore")
    engines, seed, kernels = task
    rows = []
    for number in kernels:
        rng = np.random.default_rng([seed, number])
        kernel, gpu = rk.trace(rk.random_recipe(rng)), rk.random_gpu(rng)
        names, points = zip(*points_of(rng, gpu), strict=True)
        try:
            found = predictions(kernel, gpu, list(points), engines)
            base = ws.simulate(kernel, gpu).cycles / gpu.clock_ghz
        except ws.InputError:  # a block that does not fit on an SM of the base
            continue
        for place, (name, point) in enumerate(zip(names, points, strict=True)):
            if any(pd.isna(cycles[place]) for cycles in found.values()):
                continue
            changed = gpu.replace(**point)
            if changed == gpu:
                continue
            simulated = ws.simulate(kernel, changed).cycles
            rows.append(
                {
                    "number": POINTS * number + place,
                    "changed": name,
                    "fields": 1 + place % 2,
                    "moved": simulated / changed.clock_ghz / base - 1,
                    **{way: cycles[place] / simulated - 1 for way, cycles in found.items()},
                }
            )
    return pd.DataFrame(rows)


def measure_workload(task: tuple[tuple[str, ...], str]) -> pd.DataFrame:
    """Return a row for each changed GPU of a workload, all its launches together."""
    warnings.simplefilter("ignore")
    engines, name = task
    app, gpu = ws.workloads.load(name), ws.gpu("pascal-mdm")

    def total(other: ws.Gpu) -> int:
        return sum(result.cycles for result in ws.simulate(app, other))

    found = predictions(app, gpu, WORKLOAD_POINTS, engines)
    base = total(gpu)
    rows = []
    for place, point in enumerate(WORKLOAD_POINTS):
        simulated = total(gpu.replace(**point))
        rows.append(
            {
                "app": name,
                "changed": ", ".join(point),
                "moved": simulated / base - 1,
                **{way: cycles[place] / simulated - 1 for way, cycles in found.items()},
            }
        )
    return pd.DataFrame(rows)


def errors(rows: pd.DataFrame, name: str, of: str) -> list[dict[str, object]]:
    """Return the errors over some pairs, by way of prediction."""
    found = []
    for way in (each for each in rows if each.startswith("anchored") or each.endswith("alone")):
        size = 100 * rows[way].abs()
        found.append(
            {
                name: of,
                "pairs": len(rows),
                "prediction": way,
                "mean error": f"{size.mean():.1f} %",
                "median": f"{size.median():.1f} %",
                "90th percentile": f"{size.quantile(0.9):.1f} %",
                "worst": f"{100 * rows[way].loc[size.idxmax()]:.0f} %",
            }
        )
    return found


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the errors over all pairs, and where the time moves."""
    moving = rows[rows["moved"].abs() >= MOVES]
    moved = f"time moves by {100 * MOVES:.0f} % and more"
    return pd.DataFrame([*errors(rows, "of", "all"), *errors(moving, "of", moved)])


def by_change(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the errors where the time moves, by the field that changes, and where two do."""
    moving = rows[rows["moved"].abs() >= MOVES]
    parts = [(name, moving[moving["changed"] == name]) for name in CHANGES]
    parts.append(("two of them", moving[moving["fields"] == 2]))
    found = (errors(part, "changed", name) for name, part in parts if len(part))
    return pd.DataFrame([row for each in found for row in each])


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--anchors", nargs="+", default=ANCHORS, metavar="ENGINE")
    parser.add_argument("--workloads", action="store_true", help="instead of random kernels")
    parser.add_argument("--keep", type=Path, metavar="CSV", help="write a row for each pair")
    pages.add_processes(parser)
    arguments = parser.parse_args()
    engines = tuple(arguments.anchors)
    start = time.monotonic()
    if arguments.workloads:
        named = [(engines, workload) for workload in ws.workloads.names()]
        parts = list(pages.in_processes(measure_workload, named, arguments.processes))
    else:
        chunk, count = 4, arguments.kernels
        tasks = [
            (engines, arguments.seed, range(first, min(first + chunk, count)))
            for first in range(0, count, chunk)
        ]
        parts = list(pages.in_processes(measure, tasks, arguments.processes))
    rows = pd.concat(parts, ignore_index=True)
    if arguments.keep:
        rows.to_csv(arguments.keep, index=False)
    print(f"{len(rows)} pairs in {time.monotonic() - start:.0f} s", file=sys.stderr)
    if arguments.workloads:
        tables = {"anchors-workloads": summary(rows)}
    else:
        tables = {"anchors": summary(rows), "anchors-changes": by_change(rows)}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
