#!/usr/bin/env python3
"""Hold the models' reasons against the simulator's: CPI stacks, and what more of a resource would bring.

    python studies/reasons.py            # print the tables
    python studies/reasons.py --write    # also into docs/quality/tables/reasons
    python studies/reasons.py --order greedy

On the workloads, with `pascal-mdm`. The page says what each component of a stack means and how to read the
agreement. Each application is simulated eleven times: as the GPU is, for its stack, and for each change
and none, for the speedups.
"""

from __future__ import annotations

import sys

import pages
import pandas as pd

import warpstack as ws
from warpstack.memory.caches import ACCESS_ORDERS
from warpstack.tables import STACK_COMPONENTS
from warpstack.validation.changes import CHANGES, best_changes

PAGE = pages.DOCS / "quality" / "reasons.md"
GPU = "pascal-mdm"
MODELS = ("gpumech", "mdm", "closed_network")
#: The model whose stacks and speedups are shown beside the simulator's.
SHOWN = "closed_network"
#: Points that a change costs before it counts as one that makes an application slower.
SLOWER = 1.0


def measure(task: tuple[str, str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what `ws.validate` and `ws.validation.what_if` say of a workload."""
    name, size, order = task
    app = ws.App(ws.workloads.load(name, size).kernels, name)
    kind = "MD" if ws.workloads.get(name).memory_divergent else "NMD"
    predicted = ws.predict(app, GPU, MODELS, access_order=order).assign(app=name)
    simulated = ws.timing.as_table(ws.simulate(app, GPU)).assign(app=name)
    compared = ws.validate(predicted, simulated, classes={name: kind})
    changed = ws.validation.what_if(app, GPU, MODELS, access_order=order)
    print(f"{name} done", file=sys.stderr)
    return compared, changed


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
            row.update(zip(STACK_COMPONENTS, (f"{share:.0f}" for share in shares), strict=True))
            row["share elsewhere"] = ""
            if side == "predicted":
                row["share elsewhere"] = f"{100 * errors.loc[app, 'mean_stack_distance']:.0f} %"
            rows.append(row)
    return pd.DataFrame(rows)


def stacks_summary(compared: pd.DataFrame) -> pd.DataFrame:
    """Return how far each model's stacks are from the simulator's, over the applications."""
    rows = []
    for kind, part in (("all", compared), *compared.groupby("class")):
        for row in ws.validation.validation_errors(part, pairs="app").to_dict("records"):
            apps = row["pairs"]
            rows.append(
                {
                    "class": kind,
                    "model": row["model"],
                    "share elsewhere": f"{100 * row['mean_stack_distance']:.1f} %",
                    "same largest stall": f"{round(apps * row['same_largest_stall'])} of {apps}",
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
    rows = []
    for app, part in table.groupby("app", sort=False):
        both = zip(part["simulation"], part[SHOWN], strict=True)
        cells = dict(zip(CHANGES, (f"{one:+d} / {other:+d}" for one, other in both), strict=True))
        rows.append({"application": app, **cells})
    return pd.DataFrame(rows)


def by_change(changed: pd.DataFrame) -> pd.DataFrame:
    """Return mean speedup and differences of each change, and how often it makes things slower."""
    table = points(changed)
    rows = []
    for change in CHANGES:
        part = table.xs(change, level="change")
        row = {"change": change, "simulated, mean": f"{part['simulation'].mean():+.1f}"}
        for model in MODELS:
            row[model] = f"{(part[model] - part['simulation']).abs().mean():.1f}"
        for what in ("simulation", SHOWN):
            row[f"slower, {what}"] = str((part[what] < -SLOWER).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def best_table(changed: pd.DataFrame) -> pd.DataFrame:
    """Return the best change of each application, and what the models' best ones lose."""
    rows = []
    for app, part in best_changes(changed).groupby("app", sort=False):
        first = part.iloc[0]
        simulated = f"{first['simulated_best']} ({first['simulated_points']:+.0f})"
        row = {"application": app, "simulator's best": simulated}
        for found in part.to_dict("records"):
            row[found["model"]] = f"{found['best']} ({round(found['lost'])})"
        rows.append(row)
    return pd.DataFrame(rows)


def agreement_table(changed: pd.DataFrame) -> pd.DataFrame:
    """Return what-if agreement with its units."""
    rows = []
    for row in ws.validation.what_if_agreement(changed).to_dict("records"):
        rows.append(
            {
                "model": row["model"],
                "mean difference (points)": f"{row['mean_difference']:.1f}",
                "best within 3 points": f"{row['best_agrees']} of {row['apps']}",
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
    arguments = parser.parse_args()
    names = arguments.only or ws.workloads.names()
    tasks = [(name, arguments.size, arguments.order) for name in names]
    results = pages.in_processes(measure, tasks, arguments.processes)
    compared, changed = (pd.concat(part, ignore_index=True) for part in zip(*results, strict=True))
    measured_on = f"Order of accesses: `{arguments.order}`. Measured on: {pages.machine()}."
    texts = {
        "stacks": "\n\n".join(
            [
                pages.markdown(stacks_summary(compared), labels=2),
                pages.markdown(stacks_table(compared), labels=3),
                measured_on,
            ]
        ),
        "what-if": "\n\n".join(
            [
                pages.markdown(agreement_table(changed)),
                "The same by change: the mean of the simulated speedups, the mean differences of the "
                "models from them, and the number of applications that become slower by more than "
                "a point:",
                pages.markdown(by_change(changed)),
                "The best change of each application, simulated, and in brackets its speedup; then "
                "each model's, and in brackets the points that it loses against the best one:",
                pages.markdown(best_table(changed), labels=len(MODELS) + 2),
                f"Speedups in points, simulator / `{SHOWN}`:",
                pages.markdown(what_if_table(changed)),
                measured_on,
            ]
        ),
    }
    pages.publish(PAGE, texts, arguments.write)


if __name__ == "__main__":
    main()
