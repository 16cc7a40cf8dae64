#!/usr/bin/env python3
"""Explore two axes with models and simulation, as MDM does in Figures 11 and 12.

    python studies/design_space.py            # print the tables
    python studies/design_space.py --write    # also docs/data/exploring, and the points of its maps

Performance over SMs and DRAM bandwidth of an application without memory divergence (b+tree) and of one
with it (cfd), relative to the simulation at 28 SMs and 480 GB/s, on `pascal-mdm` (MDM, Table III).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pages
import pandas as pd
from matplotlib.figure import Figure

import warpstack as ws
from warpstack.plot import sheet

PAGE = pages.DOCS / "how-to" / "exploring.md"
APPLICATIONS = {"b+tree": "design-space-btree", "cfd": "design-space-cfd"}
AXES = {"num_sms": [15, 28, 56, 80], "dram_bandwidth_gbs": [240, 480, 720, 960]}
BASELINE = {"num_sms": 28, "dram_bandwidth_gbs": 480}
MODELS = ("gpumech", "mdm")
SHOWN = ("simulation", *MODELS)


def simulated(task: tuple[str, str, int, dict[str, float]]) -> tuple[pd.DataFrame, float]:
    """Simulate one point; return its rows as those of a sweep and the seconds taken."""
    name, size, point, changes = task
    app = ws.workloads.load(name, size)
    start = time.perf_counter()
    table = ws.timing.as_table(ws.simulate(app, ws.gpu("pascal-mdm").replace(**changes)))
    seconds = time.perf_counter() - start
    for position, (column, value) in enumerate({"point": point, **changes}.items()):
        table.insert(position, column, value)
    print(f"{name}: point {point} simulated", file=sys.stderr)
    return table, seconds


def measure(name: str, size: str, processes: int) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the speedups of an application over the axes, and the seconds of sweep and simulation."""
    app = ws.workloads.load(name, size)
    start = time.perf_counter()
    predicted = ws.sweep(app, "pascal-mdm", AXES, MODELS)
    seconds = {"sweep": time.perf_counter() - start}
    points = predicted.drop_duplicates("point").set_index("point")[list(AXES)]
    tasks = [(name, size, int(n), row.to_dict()) for n, row in points.iterrows()]
    parts = pages.in_processes(simulated, tasks, processes)
    seconds["simulation"] = sum(part[1] for part in parts)
    table = pd.concat([*(part[0] for part in parts), predicted], ignore_index=True)
    return ws.exploration.speedups(table, BASELINE, model="simulation"), seconds


def gain(rows: pd.Series, field: str) -> float:
    """Return the geometric mean of the performance at a field's last over its first value."""
    by = rows.unstack(field)  # noqa: PD010 (nothing is aggregated)
    return float(np.exp(np.log(by[AXES[field][-1]] / by[AXES[field][0]]).mean()))


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Return how well each model follows the simulation over all points."""
    by_model = {
        str(model): group.set_index(list(AXES))["speedup"]
        for model, group in table.groupby("model", sort=False)
    }
    reference = by_model["simulation"]
    rows = []
    for model in SHOWN:
        values = by_model[model].reindex(reference.index)
        own = values / values.loc[tuple(BASELINE.values())]
        same = model == "simulation"
        rows.append(
            {
                "model": model,
                "rank correlation": ""
                if same
                else f"{ws.validation.measures.spearman(values, reference):.2f}",
                "mean error": ""
                if same
                else f"{100 * ws.validation.measures.mape(values, reference).value:.0f} %",
                "mean error of the trend": ""
                if same
                else f"{100 * ws.validation.measures.mape(own, reference).value:.0f} %",
                "80 over 15 SMs": f"{gain(values, 'num_sms'):.2f}",
                "960 over 240 GB/s": f"{gain(values, 'dram_bandwidth_gbs'):.2f}",
                "best over baseline": f"{own.max():.2f}",
            }
        )
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, name: str) -> Figure:
    """Draw the maps of the simulation and the models side by side, with one scale."""
    figure = Figure(figsize=(10, 3.0), layout="constrained")
    axes = figure.subplots(1, len(SHOWN))
    limits = (0.0, float(table["speedup"].max()))
    for ax, model in zip(axes, SHOWN, strict=True):
        ws.plot.heat_map(
            table,
            "num_sms",
            "dram_bandwidth_gbs",
            "speedup",
            ax,
            model=model,
            limits=limits,
            title=f"{name}, {model}",
        )
    # One scale is explained once.
    *others, _ = [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]
    for ax in others:
        ax.remove()
    for ax in axes[1:]:
        ax.set_ylabel("")
        ax.set_yticklabels([])
    return figure


def map_points(table: pd.DataFrame) -> pd.DataFrame:
    """Return what `draw` needs of the speedups, to the digits that it writes."""
    shown = table[table["model"].isin(SHOWN)]
    columns = ["point", *AXES, "model", "kernels", "speedup"]
    return shown[columns].assign(speedup=shown["speedup"].map(lambda value: float(f"{value:.3g}")))


def axis_stacks_numbers() -> pd.DataFrame:
    """Simulate and predict bfs as NoC and DRAM bandwidth grow together."""
    app, gpu = ws.workloads.load("bfs"), ws.gpu("pascal-mdm")
    points = [
        {"dram_bandwidth_gbs": 480 * f, "noc_bandwidth_gbs": 1050 * f} for f in (0.5, 1, 2, 4)
    ]
    parts = [simulated(("bfs", "small", n, point))[0] for n, point in enumerate(points)]
    table = pd.concat([*parts, ws.sweep(app, gpu, points, MODELS)], ignore_index=True)
    return ws.exploration.point_totals(table)


def draw_axis_stacks(table: pd.DataFrame) -> Figure:
    """Draw CPI stacks along bandwidths."""
    ax = ws.plot.axis_stacks(table, "dram_bandwidth_gbs", title="bfs")
    return ax.figure


#: What docs/how-to/exploring.md varies of bfs: a grid, and other fields one at a time.
GRID = {
    "num_sms": [14, 28, 42, 56],
    "noc_bandwidth_gbs": [525, 1050, 2100, 4200],
    "l1_mshrs": [32, 64, 128, 256],
}
ENDS = {
    **{field: (values[0], values[-1]) for field, values in GRID.items()},
    "dram_bandwidth_gbs": (240, 960),
    "l2_size_kib": (1536, 6144),
}


def exploring_numbers() -> pd.DataFrame:
    """Predict bfs over the grid, and as one field at a time changes."""
    app, gpu = ws.workloads.load("bfs"), ws.gpu("pascal-mdm")
    sweeps = {
        "grid": ws.sweep(app, gpu, GRID, MODELS),
        "ends": ws.sweep(app, gpu, ws.exploration.one_at_a_time(gpu, ENDS), MODELS),
    }
    totals = {name: ws.exploration.point_totals(table) for name, table in sweeps.items()}
    return pd.concat([table.assign(sweep=name) for name, table in totals.items()])


def draw_exploring(table: pd.DataFrame) -> Figure:
    """Draw a curve, a map, a front and a tornado, as docs/how-to/exploring.md asks for them."""
    of = {str(name): rows.drop(columns="sweep") for name, rows in table.groupby("sweep")}
    grid = of["grid"].drop(columns=[field for field in ENDS if field not in GRID])
    figure = Figure(figsize=(10, 7.6), layout="constrained")
    axes = figure.subplots(2, 2)
    ws.plot.curves(
        grid, "noc_bandwidth_gbs", "ipc", axes[0, 0], where={"num_sms": 28, "l1_mshrs": 128}
    )
    ws.plot.bottlenecks(
        grid, "num_sms", "noc_bandwidth_gbs", axes[0, 1], model="mdm", where={"l1_mshrs": 128}
    )
    ws.plot.pareto(grid, "num_sms * 10 + noc_bandwidth_gbs / 10 + l1_mshrs", axes[1, 0])
    ws.plot.sensitivity(of["ends"], "ipc", axes[1, 1])
    # Beside two columns of axes, legends would take the room of the data.
    for ax in axes.flat:
        handles, names = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            handles, names = legend.legend_handles, [text.get_text() for text in legend.texts]
            legend.remove()
        ax.set_title("")
        ax.legend(handles, names, fontsize=sheet.TEXT, frameon=False, ncols=2, **PLACE)
    return figure


#: Legends stand above axes.
PLACE: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}


def main() -> None:
    """Measure and print or write."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--size", default="paper", help="of the workloads")
    pages.add_processes(parser)
    arguments = parser.parse_args()
    parts, times = [], []
    for name, picture in APPLICATIONS.items():
        table, seconds = measure(name, arguments.size, arguments.processes)
        part = scores(table)
        part.insert(0, "application", name)
        parts.append(part)
        times.append(
            {
                "application": name,
                "points": len(table) // len(SHOWN),
                "simulate (s)": f"{seconds['simulation']:.0f}",
                "predict (s)": f"{seconds['sweep']:.1f}",
            }
        )
        if arguments.write:
            file = pages.IMAGES / "data" / f"{picture}.csv"
            map_points(table).to_csv(file, index=False, lineterminator="\n")
    pages.publish(PAGE, {"maps": pd.concat(parts)}, arguments.write)
    pages.publish(PAGE, {"times": pd.DataFrame(times)}, arguments.write, where=pages.machine())


if __name__ == "__main__":
    main()
