#!/usr/bin/env python3
"""What lowering the clock from 2 to 1.4 GHz costs: models and CRISP against the simulator (MDM, Figure 13).

    python studies/dvfs.py --write    # into docs/data/dvfs

Times are those of an application, the sum over its launches. A model's error is that of the ratio of its two
times, T(1.4 GHz) / T(2 GHz), against the simulator's ratio. The configuration is `pascal-mdm` at 2 GHz.
"""

from __future__ import annotations

import sys

import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "explanation" / "dvfs.md"
NOMINAL_GHZ, TARGET_GHZ = 2.0, 1.4
MODELS = ("gpumech", "crisp", "mdm", "mwp_cwp")
#: Mean errors over the paper's memory-divergent applications, in percent (MDM, Section VII).
PAPER = {"gpumech": 28, "crisp": 3.7, "mdm": 4.6}


def measure(task: tuple[str, str, float]) -> pd.DataFrame:
    """Return the ratio of times of a workload by model."""
    name, size, l2_clock = task
    gpu = ws.gpu("pascal-mdm").replace(l2_clock_ghz=l2_clock).replace(clock_ghz=NOMINAL_GHZ)
    app = ws.workloads.load(name, size)
    table = ws.models.dvfs(app, gpu, [TARGET_GHZ], [*MODELS, "simulation"])
    times = table.pivot_table(index="model", columns="clock_ghz", values="time_us", aggfunc="sum")
    ratio = times[TARGET_GHZ] / times[NOMINAL_GHZ]
    print(f"{name} done", file=sys.stderr)
    kind = "MD" if ws.workloads.get(name).memory_divergent else "NMD"
    return pd.DataFrame({"app": name, "class": kind, "ratio": ratio}).reset_index()


def table_of(results: pd.DataFrame) -> pd.DataFrame:
    """Return the simulated ratios and the models' errors per application, and the mean errors."""
    ratios = results.pivot_table(index=["class", "app"], columns="model", values="ratio")
    errors = ratios[list(MODELS)].div(ratios["simulation"], axis=0) - 1
    rows = []
    for kind, app in ratios.index:
        error = errors.loc[(kind, app)]
        cells = {model: f"{100 * error[model]:+.1f} %" for model in MODELS}
        simulated = f"{ratios.loc[(kind, app), 'simulation']:.3f}"
        rows.append({"application": app, "class": kind, "simulation": simulated, **cells})
    for kind in errors.index.get_level_values("class").unique():
        mean = 100 * errors.loc[kind].abs().mean()
        cells = {model: f"{mean[model]:.1f} %" for model in MODELS}
        label = "mean absolute error"
        rows.append({"application": label, "class": kind, "simulation": "", **cells})
    paper = {model: f"{PAPER[model]} %" if model in PAPER else "" for model in MODELS}
    rows.append({"application": "the paper's", "class": "MD", "simulation": "", **paper})
    return pd.DataFrame(rows)


def main() -> None:
    """Measure and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    pages.add_workloads(parser)
    parser.add_argument(
        "--l2-clock", type=float, default=0, help="of L2 and the NoC, GHz (default: the SMs')"
    )
    arguments = parser.parse_args()
    names = arguments.only or ws.workloads.names()
    tasks = [(name, arguments.size, arguments.l2_clock) for name in names]
    results = pd.concat(pages.in_processes(measure, tasks, arguments.processes), ignore_index=True)
    tables = {f"l2-clock-{arguments.l2_clock:g}": table_of(results)}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
