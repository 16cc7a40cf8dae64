#!/usr/bin/env python3
"""Hold every model against the cycle-level simulator on the seventeen workloads.

    python benchmarks/validate_models.py --write    # the baseline, into docs/validation-models.md
    python benchmarks/validate_models.py --axes     # also as resources vary (MDM, Figures 6 to 9)

Errors are those of an application's cycles, the sum over its launches, as the MDM paper has them. The
configuration is `pascal-mdm` (MDM, Table III); no parameter of the simulator is fitted to a model.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

import pandas as pd
from run import machine, write_between_marks

import warpstack as ws

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "validation-models.md"
#: What the axes vary (MDM, Section V-B), around the baseline.
AXES = {
    "noc_bandwidth_gbs": (525, 1400, 2100),
    "dram_bandwidth_gbs": (240, 720, 960),
    "l1_mshrs": (32, 64, 256),
    "num_sms": (15, 56, 80),
}


def points(with_axes: bool) -> list[dict[str, int]]:
    """Return what is changed at each point; the first is the baseline."""
    if not with_axes:
        return [{}]
    return [{}, *({field: value} for field, values in AXES.items() for value in values)]


def measure(task: tuple[str, str, list[dict[str, int]]]) -> pd.DataFrame:
    """Simulate and predict a workload at each point."""
    name, size, changes = task
    workload = ws.workloads.get(name)
    app = ws.workloads.load(name, size)
    rows = []
    for change in changes:
        gpu = ws.gpu("pascal-mdm").replace(**change)
        start = time.perf_counter()
        simulated = ws.timing.as_table(ws.simulate(app, gpu))
        seconds = time.perf_counter() - start
        predicted = ws.predict(app, gpu, "all")
        label = ", ".join(f"{field} = {value}" for field, value in change.items()) or "baseline"
        for model, table in [("simulation", simulated), *predicted.groupby("model", sort=False)]:
            rows.append(
                {
                    "point": label,
                    "app": name,
                    "class": "MD" if workload.memory_divergent else "NMD",
                    "model": model,
                    "instructions": table["instructions"].sum(),
                    "cycles": table["cycles"].sum(),
                    "seconds": seconds,
                }
            )
    print(f"{name} done", file=sys.stderr)
    return pd.DataFrame(rows)


def errors_of(results: pd.DataFrame) -> pd.DataFrame:
    """Return predicted / simulated cycles - 1 of each application and model."""
    simulated = results[results["model"] == "simulation"].set_index(["point", "app"])["cycles"]
    table = results[results["model"] != "simulation"].set_index(["point", "app"])
    table["error"] = table["cycles"] / simulated.reindex(table.index) - 1
    return table.reset_index()


def as_markdown(frame: pd.DataFrame) -> str:
    """Return a table whose columns are all text."""
    lines = ["| " + " | ".join(frame.columns) + " |"]
    lines.append("|" + "|".join("---" if i == 0 else "---:" for i in range(frame.shape[1])) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in frame.astype(str).itertuples(index=False)]
    return "\n".join(lines)


def baseline_tables(results: pd.DataFrame) -> str:
    """Return the tables of the baseline."""
    base = results[results["point"] == "baseline"]
    errors = errors_of(base)
    models = list(dict.fromkeys(errors["model"]))
    means = []
    for title, part in (
        ("NMD", errors[errors["class"] == "NMD"]),
        ("MD", errors[errors["class"] == "MD"]),
        ("all", errors),
    ):
        row = {"mean absolute error": title}
        for model in models:
            row[model] = f"{100 * part[part['model'] == model]['error'].abs().mean():.1f} %"
        means.append(row)
    per_app = []
    simulated = base[base["model"] == "simulation"].set_index("app")
    for app, part in sorted(
        errors.groupby("app"), key=lambda pair: (pair[1]["class"].iloc[0], pair[0])
    ):
        row = {
            "application": app,
            "class": part["class"].iloc[0],
            "simulated cycles": f"{simulated.loc[app, 'cycles']:,.0f}",
        }
        for model in models:
            row[model] = f"{100 * part[part['model'] == model]['error'].iloc[0]:+.0f} %"
        per_app.append(row)
    rate = simulated["instructions"].sum() / simulated["seconds"].sum() / 1e6
    return (
        f"{as_markdown(pd.DataFrame(means))}\n\n"
        "Error of each application's cycles (positive: the model says slower):\n\n"
        f"{as_markdown(pd.DataFrame(per_app))}\n\n"
        f"The simulations took {simulated['seconds'].sum():.0f} s on one core, "
        f"{rate:.2f} M warp instructions/s. Measured on: {machine()}."
    )


def axes_table(results: pd.DataFrame) -> str:
    """Return the mean absolute errors at each point."""
    errors = errors_of(results)
    rows = []
    for point, part in errors.groupby("point", sort=False):
        for kind, group in part.groupby("class"):
            row = {"point": point, "class": kind}
            for model, values in group.groupby("model", sort=False):
                row[str(model)] = f"{100 * values['error'].abs().mean():.0f} %"
            rows.append(row)
    return as_markdown(pd.DataFrame(rows))


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="small", help="of the workloads")
    parser.add_argument("--axes", action="store_true", help="vary NoC, DRAM, MSHRs and SMs, too")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of these workloads alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write docs/validation-models.md")
    arguments = parser.parse_args()
    names = arguments.only or ws.workloads.names()
    tasks = [(name, arguments.size, points(arguments.axes)) for name in names]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        results = pd.concat(pool.imap_unordered(measure, tasks, chunksize=1), ignore_index=True)
    text = baseline_tables(results)
    print(text)
    if arguments.axes:
        print(f"\n{axes_table(results)}")
    if arguments.write:
        write_between_marks(PAGE, "baseline", text)


if __name__ == "__main__":
    main()
