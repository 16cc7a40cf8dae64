#!/usr/bin/env python3
"""Hold the models' reasons against the simulator's: CPI stacks, and what more of a resource would bring.

    python studies/reasons.py            # print the tables
    python studies/reasons.py --write    # also into docs/data/reasons
    python studies/reasons.py --order greedy
    python studies/reasons.py --fresh SHARED    # also on launches that nothing was chosen by

On the workloads, with `pascal-mdm`, and on the launches of ``studies/accelsim_fresh.py`` with its machine.
The page says what each component of a stack means and how to read the agreement. Each application is
simulated as the GPU is, for its stack, and with each change and none, for the speedups; the changes are
those that the GPU allows of `warpstack.models.reasons.resources`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import accelsim_fresh
import pages
import pandas as pd

import warpstack as ws
from warpstack.memory.caches import ACCESS_ORDERS
from warpstack.models.reasons.resources import CHANGES
from warpstack.tables import STACK_COMPONENTS
from warpstack.validation.changes import best_changes

PAGE = pages.DOCS / "quality" / "reasons.md"
GPU = "pascal-mdm"
MODELS = ("gpumech", "mdm", "closed_network")
#: The model whose stacks and speedups are shown beside the simulator's.
SHOWN = "closed_network"
#: Points that a change costs before it counts as one that makes an application slower.
SLOWER = 1.0


def measure(task: tuple[str, str, str, Path | None]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what `ws.validate` and `ws.validation.what_if` say of an application.

    It is a workload, or the fresh launches of one in the folder of the reference material.
    """
    name, size, order, shared = task
    if shared is None:
        gpu = ws.gpu(GPU)
        kernels = ws.workloads.load(name, size).kernels
        kind = "MD" if ws.workloads.get(name).memory_divergent else "NMD"
    else:
        gpu = accelsim_fresh.simulated_gpu()
        rows = accelsim_fresh.references(shared)
        launches = rows.loc[rows["application"] == name, "kernel"].tolist()
        kernels = accelsim_fresh.launches_of(shared, name, launches).kernels
        kind = "fresh"
    app = ws.App(kernels, name)
    predicted = ws.predict(app, gpu, MODELS, access_order=order).assign(app=name)
    simulated = ws.timing.as_table(ws.simulate(app, gpu)).assign(app=name)
    compared = ws.validate(predicted, simulated, classes={name: kind})
    changed = ws.validation.what_if(app, gpu, MODELS, access_order=order)
    print(f"{name} done", file=sys.stderr)
    return compared, changed.assign(**{"class": kind})


def stacks_table(compared: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of the components in percent, of the simulator and the model shown."""
    part = compared[compared["model"] == SHOWN]
    errors = ws.validation.validation_errors(part, "app", pairs="app").set_index("app")
    rows = []
    for (kind, app), group in part.groupby(["class", "app"]):
        for what, side in (("simulator", "measured"), (SHOWN, "predicted")):
            cycles = group[[f"{side}_{component}" for component in STACK_COMPONENTS]].sum()
            shares = (100 * cycles / cycles.sum()).tolist()
            row = {"application": app, "class": kind, "stack of": what}
            texts = (f"{share:.0f} %" for share in shares)
            row.update(zip(STACK_COMPONENTS, texts, strict=True))
            row["share elsewhere"] = ""
            if side == "predicted":
                row["share elsewhere"] = f"{100 * errors.loc[app, 'mean_stack_distance']:.0f} %"
            rows.append(row)
    return pd.DataFrame(rows)


def stacks_summary(compared: pd.DataFrame) -> pd.DataFrame:
    """Return how far each model's stacks are from the simulator's, over the applications."""
    rows = []
    workloads = compared[compared["class"] != "fresh"]
    for kind, part in (("all", workloads), *compared.groupby("class")):
        for row in ws.validation.validation_errors(part, pairs="app").to_dict("records"):
            apps = row["pairs"]
            rows.append(
                {
                    "class": kind,
                    "model": row["model"],
                    "share elsewhere": f"{100 * row['mean_stack_distance']:.1f} %",
                    "applications": apps,
                    "same largest stall": round(apps * row["same_largest_stall"]),
                }
            )
    return pd.DataFrame(rows)


def points(changed: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups in points by application and change, a column per model and the simulator."""
    table = changed[changed["change"] != "baseline"].assign(points=100 * (changed["speedup"] - 1))
    return table.pivot_table("points", ["app", "change"], "model", sort=False)


def what_if_table(changed: pd.DataFrame) -> pd.DataFrame:
    """Return the speedups that the simulator and the model shown give, in points."""
    table = points(changed)
    # Rounded before, so that no speedup is "-0".
    table = table.round().astype(int)
    shown = table[["simulation", SHOWN]].reset_index()
    return shown.rename(
        columns={
            "app": "application",
            "simulation": "simulator (points)",
            SHOWN: f"{SHOWN} (points)",
        }
    )


def by_change(changed: pd.DataFrame) -> pd.DataFrame:
    """Return mean speedup and differences of each change, and how often it makes things slower."""
    table = points(changed)
    rows = []
    tried = set(table.index.get_level_values("change"))
    for change in (name for name in CHANGES if name in tried):
        part = table.xs(change, level="change")
        row = {"change": change, "simulator (points)": f"{part['simulation'].mean():+.1f}"}
        for model in MODELS:
            row[f"{model} differs by (points)"] = (
                f"{(part[model] - part['simulation']).abs().mean():.1f}"
            )
        for what in ("simulation", SHOWN):
            row[f"slower applications, {what}"] = str((part[what] < -SLOWER).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def best_table(changed: pd.DataFrame) -> pd.DataFrame:
    """Return the best change of each application, and what the models' best ones lose."""
    rows = []
    for app, part in best_changes(changed).groupby("app", sort=False):
        first = part.iloc[0]
        row = {
            "application": app,
            "simulator": first["simulated_best"],
            "speedup (points)": f"{first['simulated_points']:.0f}",
        }
        for found in part.to_dict("records"):
            row[found["model"]] = found["best"]
            row[f"{found['model']} loses (points)"] = round(found["lost"])
        rows.append(row)
    return pd.DataFrame(rows)


def agreement_table(changed: pd.DataFrame) -> pd.DataFrame:
    """Return what-if agreement with its units, of workloads and of fresh launches."""
    rows = []
    is_fresh = changed["class"] == "fresh"
    for kind, part in (("workloads", changed[~is_fresh]), ("fresh launches", changed[is_fresh])):
        if part.empty:
            continue
        for row in ws.validation.what_if_agreement(part).to_dict("records"):
            rows.append(
                {
                    "of": kind,
                    "model": row["model"],
                    "mean difference (points)": f"{row['mean_difference']:.1f}",
                    "applications": row["apps"],
                    "best within 3 points": row["best_agrees"],
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    pages.add_workloads(parser)
    parser.add_argument(
        "--order", choices=ACCESS_ORDERS, default="auto", help="of accesses, for the models"
    )
    needed = pages.existing("reference/accelsim/fresh.csv", "traces/accelsim-fresh")
    parser.add_argument("--fresh", type=needed, metavar="SHARED", help="with fresh launches, too")
    arguments = parser.parse_args()
    names = arguments.only or ws.workloads.names()
    tasks = [(name, arguments.size, arguments.order, None) for name in names]
    if arguments.fresh:
        fresh = accelsim_fresh.references(arguments.fresh)["application"].unique()
        tasks += [(str(name), arguments.size, arguments.order, arguments.fresh) for name in fresh]
    results = pages.in_processes(measure, tasks, arguments.processes)
    compared, changed = (pd.concat(part, ignore_index=True) for part in zip(*results, strict=True))
    tables = {
        "stacks-summary": stacks_summary(compared),
        "stacks": stacks_table(compared),
        "what-if-summary": agreement_table(changed),
        "what-if-changes": by_change(changed),
        "what-if-best": best_table(changed),
        "what-if": what_if_table(changed),
    }
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
