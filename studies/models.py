#!/usr/bin/env python3
"""Hold every model against the cycle-level simulator on the seventeen workloads.

    python studies/models.py                   # the baseline (MDM, Figure 5)
    python studies/models.py --axes            # also as resources vary (Figures 6 to 9)
    python studies/models.py --axes --write    # into docs/data; tools/pictures draws them

Errors are those of an application's IPC over all its launches, as in the MDM paper (Eq. 11). The
configuration is `pascal-mdm` (MDM, Table III); no parameter of the simulator is fitted to a model.
`error_causes.py` looks for the causes of what these tables show.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import error_points
import pages
import pandas as pd
from matplotlib.figure import Figure

import warpstack as ws
from warpstack.plot import sheet
from warpstack.plot.style import styles

PAGE = pages.DOCS / "quality" / "validation-models.md"
#: What the axes vary (MDM, Section V-B), the baseline among them, and the paper's figure.
AXES = {
    "noc_bandwidth_gbs": (525, 1050, 1400, 2100),
    "dram_bandwidth_gbs": (240, 480, 720, 960),
    "l1_mshrs": (32, 64, 128, 256),
    "num_sms": (15, 28, 56, 80),
}
TITLES = {
    "noc_bandwidth_gbs": "NoC bandwidth (GB/s)",
    "dram_bandwidth_gbs": "DRAM bandwidth (GB/s)",
    "l1_mshrs": "MSHRs per SM",
    "num_sms": "SMs",
}
#: The orders in which the models' caches are simulated: the default one, and the papers'.
ORDERS = ("timed", "round_robin")
#: The models that the tables of the papers' order show.
COMPARED = ("gpumech", "gpumech_plus", "mdm", "closed_network")
#: The models in the pictures; the others differ little from their neighbours.
DRAWN = (
    "mt",
    "mt_mshr",
    "gpumech",
    "gpumech_plus",
    "mdm_queue",
    "mdm_mshr",
    "mdm",
    "closed_network",
    "interval_simulation",
)


def label_of(change: dict[str, int]) -> str:
    """Return what is changed as text; `baseline` when nothing is."""
    baseline = ws.gpu("pascal-mdm")
    parts = [f"{f} = {v}" for f, v in change.items() if getattr(baseline, f) != v]
    return ", ".join(parts) or "baseline"


def points(with_axes: bool) -> list[dict[str, int]]:
    """Return what is changed at each point; the first is the baseline."""
    changes = [{field: value} for field, values in AXES.items() for value in values]
    varied = [change for change in changes if label_of(change) != "baseline"]
    return [{}, *varied] if with_axes else [{}]


def measure(task: tuple[str, str, list[dict[str, int]]]) -> pd.DataFrame:
    """Simulate and predict a workload at each point."""
    name, size, changes = task
    workload = ws.workloads.get(name)
    app = ws.workloads.load(name, size)
    rows = []
    for change in changes:
        gpu = ws.gpu("pascal-mdm").replace(**change)
        start = time.process_time()
        simulated = ws.timing.as_table(ws.simulate(app, gpu))
        seconds = time.process_time() - start
        tables = []
        for order in ORDERS:
            predicted = ws.predict(app, gpu, "all", access_order=order)
            tables.append((order, "simulation", simulated))
            tables += [(order, *group) for group in predicted.groupby("model", sort=False)]
        for order, model, table in tables:
            rows.append(
                {
                    "order": order,
                    "point": label_of(change),
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
    """Return predicted / simulated IPC - 1 of each application and model; of the cycles, too."""
    results = results.assign(ipc=results["instructions"] / results["cycles"])
    simulated = results[results["model"] == "simulation"].set_index(["point", "app"])
    table = results[results["model"] != "simulation"].set_index(["point", "app"])
    for error, metric in (("error", "ipc"), ("cycles_error", "cycles")):
        table[error] = table[metric] / simulated[metric].reindex(table.index) - 1
    return table.reset_index()


def baseline_tables(results: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the errors at the baseline: their means by class, and those of each application's IPC."""
    base = results[results["point"] == "baseline"]
    errors = errors_of(base)
    models = list(dict.fromkeys(errors["model"]))
    means = []
    for metric, error in (("IPC", "error"), ("cycles", "cycles_error")):
        for title, part in (
            ("NMD", errors[errors["class"] == "NMD"]),
            ("MD", errors[errors["class"] == "MD"]),
            ("all", errors),
        ):
            row = {"mean absolute error of": metric, "class": title}
            for model in models:
                row[model] = f"{100 * part[part['model'] == model][error].abs().mean():.1f} %"
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
    seconds = simulated["seconds"].sum()
    rate = simulated["instructions"].sum() / seconds / 1e6
    said = f"The simulations took {seconds:.0f} s on one core, {rate:.2f} M warp instructions/s."
    print(said, file=sys.stderr)
    return pd.DataFrame(means), pd.DataFrame(per_app)


def along(errors: pd.DataFrame, field: str) -> pd.DataFrame:
    """Return the errors at the points of an axis, with its `value`."""
    parts = []
    for value in AXES[field]:
        part = errors[errors["point"] == label_of({field: value})]
        parts.append(part.assign(value=value))
    return pd.concat(parts)


def mean_errors(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the mean absolute error by class and value, a column per model."""
    return (
        errors.assign(error=errors["error"].abs())
        .pivot_table("error", ["class", "value"], "model", sort=False)
        .sort_index(level="class", ascending=False, sort_remaining=False)
    )


def rank_correlations(results: pd.DataFrame) -> pd.DataFrame:
    """Return how well each model ranks.

    Over all points and applications by IPC, which does not depend on the applications' sizes; and of
    each application's cycles over the points, averaged over the applications.
    """
    results = results.assign(ipc=results["instructions"] / results["cycles"])
    ipc = results.pivot_table("ipc", ["app", "point"], "model", sort=False)
    rows = []
    for title, apps in (
        ("MD", results.loc[results["class"] == "MD", "app"].unique()),
        ("NMD", results.loc[results["class"] == "NMD", "app"].unique()),
        ("all", results["app"].unique()),
    ):
        part = ipc[ipc.index.get_level_values("app").isin(apps)]
        over_all = part.corr("spearman")["simulation"]
        trends = part.groupby("app").apply(lambda one: one.corr("spearman")["simulation"]).mean()
        for what, values in (("all points", over_all), ("points of an application", trends)):
            row = {"class": title, "rank correlation over": what}
            for model in ipc.columns.drop("simulation"):
                row[model] = "-" if pd.isna(values[model]) else f"{values[model]:.2f}"
            rows.append(row)
    return pd.DataFrame(rows)


def spread(results: pd.DataFrame) -> pd.DataFrame:
    """Return mean and worst errors over all points and applications."""
    errors = errors_of(results)
    rows = []
    for metric, error in (("IPC", "error"), ("cycles", "cycles_error")):
        sizes = errors[error].abs().groupby(errors["model"], sort=False)
        for what, values in (("mean", sizes.mean()), ("worst", sizes.max())):
            row = {"error": what, "of": metric}
            rows.append({**row, **{str(m): f"{100 * v:.1f} %" for m, v in values.items()}})
    return pd.DataFrame(rows)


def axes_table(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean absolute errors along each axis."""
    errors = errors_of(results)
    parts = []
    for field in AXES:
        means = mean_errors(along(errors, field)).map(lambda x: f"{100 * x:.0f} %")
        parts.append(means.reset_index().assign(axis=TITLES[field]))
    table = pd.concat(parts, ignore_index=True)
    labels = ["axis", "class", "value"]
    return table[[*labels, *table.columns.drop(labels)]]


def axes_tables(results: pd.DataFrame, prefix: str = "") -> dict[str, pd.DataFrame]:
    """Return errors along the axes, rank correlations and mean errors of all points, by name."""
    return {
        f"{prefix}axes": axes_table(results),
        f"{prefix}axes-ranks": rank_correlations(results),
        f"{prefix}axes-spread": spread(results),
    }


def drawn_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the models that pictures show, those of them that were measured."""
    names = {f"{model} (%)": model for model in DRAWN}
    return table[[column for column in names if column in table]].rename(columns=names)


def draw_baseline(table: pd.DataFrame) -> Figure:
    """Draw the error of each application at the baseline (MDM, Figure 5), a row each.

    `table` is baseline-applications.csv.
    """
    percent = drawn_of(table.set_index(["class", "application"])).sort_index()
    figure = Figure(figsize=(8, 6.4), layout="constrained")
    ax = figure.subplots()
    error_points.draw(ax, percent, list(percent))
    sheet.legend_outside(ax)
    return figure


def draw_axis(table: pd.DataFrame, field: str) -> Figure:
    """Draw the mean errors of the models along an axis (MDM, Figures 6 to 9); `table` is axes.csv."""
    of_axis = table[table["axis"] == TITLES[field]]
    means = drawn_of(of_axis.set_index(["class", "value"]))
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    looks = styles(DRAWN)
    kinds = [kind for kind in ("NMD", "MD") if kind in means.index]
    for ax, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        for model in means:
            values = means.loc[kind, model]
            ax.plot(
                range(len(values)),
                values,
                color=looks[model].colour,
                marker=looks[model].marker,
                linestyle=looks[model].line,
                markersize=4,
                linewidth=1,
                label=model,
            )
        ax.set_xticks(range(len(values)), [str(value) for value in values.index])
        ax.set_xlabel(TITLES[field], fontsize=sheet.TEXT)
        ax.set_ylim(bottom=0)
        ax.set_title(f"{kind} applications", fontsize=sheet.LABEL)
        ax.tick_params(labelsize=sheet.TEXT)
        sheet.open_frame(ax)
    figure.axes[0].set_ylabel("mean absolute error (%)", fontsize=sheet.TEXT)
    sheet.legend_outside(figure.axes[-1])
    return figure


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    pages.add_workloads(parser)
    parser.add_argument("--axes", action="store_true", help="vary NoC, DRAM, MSHRs and SMs, too")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="CSV",
        help="what was measured; read from there, without measuring, when the file exists",
    )
    arguments = parser.parse_args()
    if arguments.keep and arguments.keep.exists():
        results = pd.read_csv(arguments.keep)
    else:
        names = arguments.only or ws.workloads.names()
        tasks = [(name, arguments.size, points(arguments.axes)) for name in names]
        results = pd.concat(
            pages.in_processes(measure, tasks, arguments.processes), ignore_index=True
        )
        if arguments.keep:
            results.to_csv(arguments.keep, index=False)
    of_order = {order: part.drop(columns="order") for order, part in results.groupby("order")}
    results, turns = (of_order[order] for order in ORDERS)
    turns = turns[turns["model"].isin(("simulation", *COMPARED))]
    tables = dict(zip(("baseline", "baseline-applications"), baseline_tables(results), strict=True))
    tables |= dict(zip(("turns", "turns-applications"), baseline_tables(turns), strict=True))
    if arguments.axes:
        tables |= axes_tables(results) | axes_tables(turns, "turns-")
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
