#!/usr/bin/env python3
"""Hold simulator and models against Accel-Sim on all launches that it ran.

    python studies/accelsim_fresh.py SHARED            # print all tables
    python studies/accelsim_fresh.py SHARED --write    # also into docs/data/simulator
    python studies/accelsim_fresh.py SHARED --fresh    # those of the fresh launches alone

SHARED is the folder of the reference material: ``reference/accelsim`` says what was run, ``traces``
has the kernels. The fresh launches belong to no workload, and nothing was chosen by them. Their machine
and that of the workloads is `pascal-mdm` with ``noc_topology=crossbar``. The other tables are those of
``studies/accelsim.py`` and ``studies/accelsim_workloads.py``.
"""

from __future__ import annotations

from pathlib import Path

import accelsim
import accelsim_workloads
import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "quality" / "simulator.md"
#: Of the models those that know what Accel-Sim does beside the papers.
MODELS = ("closed_network", "interval_simulation")
#: What the machine that Accel-Sim simulates has beside `pascal-mdm`: nothing limits its NoC but the ports.
CHANGES = {"noc_topology": "crossbar"}
#: Programs of benchmark suites; the others are kernels that load one resource.
PROGRAMS = ("bc", "gaussian", "lud", "pagerank", "pathfinder", "sssp")


def simulated_gpu() -> ws.Gpu:
    """Return the machine that Accel-Sim simulates."""
    return ws.gpu("pascal-mdm").replace(**CHANGES)


def models() -> list[str]:
    """Return those of the models that there are."""
    return [name for name in MODELS if name in ws.models.names()]


def references(shared: Path) -> pd.DataFrame:
    """Return Accel-Sim's cycles of the fresh launches."""
    table = pd.read_csv(shared / "reference" / "accelsim" / "fresh.csv")
    return table.rename(columns={"accelsim_cycles": "cycles"})


def launches_of(shared: Path, name: str, launches: list[int]) -> ws.App:
    """Return the launches of an application that Accel-Sim ran, by their places in its list."""
    app = ws.load(shared / "traces" / "accelsim-fresh" / name)
    return ws.App([app.kernels[launch - 1] for launch in launches])


def held_against(shared: Path, gpu: ws.Gpu, *, predictors: list[str]) -> pd.DataFrame:
    """Return a row per fresh launch: Accel-Sim's cycles, the simulator's and those of models."""
    tables = []
    for name, rows in references(shared).groupby("application", sort=False):
        app = launches_of(shared, str(name), rows["kernel"].tolist())
        counts = [kernel.num_instructions for kernel in app]
        if counts != rows["instructions"].tolist():
            raise SystemExit(f"{name}: its launches are not those that Accel-Sim ran")
        table = rows[["application", "kernel", "cycles"]].reset_index(drop=True)
        table.insert(0, "class", "program" if name in PROGRAMS else "micro-kernel")
        table["simulator"] = [result.cycles for result in ws.simulate(app, gpu)]
        if predictors:
            predicted = ws.predict(app, gpu, predictors)
            for model in predictors:
                table[model] = predicted.loc[predicted["model"] == model, "cycles"].to_numpy()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def errors(launches: pd.DataFrame, what: str) -> pd.Series:
    """Return errors of the cycles in percent."""
    return 100 * (launches[what] / launches["cycles"] - 1)


def summary(launches: pd.DataFrame, predictors: list[str]) -> pd.DataFrame:
    """Return mean, median and worst error of the cycles, of all launches and by class."""
    rows = []
    for kind, group in (("all", launches), *launches.groupby("class")):
        for what in ("simulator", *predictors):
            error = errors(group, what)
            worst = error.abs().idxmax()
            rows.append(
                {
                    "class": kind,
                    "launches": len(group),
                    "what": what,
                    "mean error (%)": error.abs().mean(),
                    "median (%)": error.abs().median(),
                    "worst (%)": error[worst],
                    "worst launch": f"{group['application'][worst]} {group['kernel'][worst]}",
                }
            )
    return pd.DataFrame(rows)


def tables(shared: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of the fresh launches by their names."""
    found = models()
    launches = held_against(shared, simulated_gpu(), predictors=found)
    table = launches.copy()
    for what in ("simulator", *found):
        table[f"error of {what} (%)"] = errors(launches, what)
    return {"fresh": table, "fresh-summary": summary(launches, found)}


def main() -> None:
    """Print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    needed = pages.existing("reference/accelsim/fresh.csv", "traces/accelsim-fresh")
    parser.add_argument("shared", type=needed)
    parser.add_argument("--fresh", action="store_true", help="the fresh launches alone")
    arguments = parser.parse_args()
    shared = arguments.shared
    found = {}
    if not arguments.fresh:
        reference, traces = shared / "reference", shared / "traces"
        found |= accelsim.tables(reference / "accelsim-table3.csv", traces)
        found |= accelsim_workloads.tables(reference / "accelsim", traces, simulated_gpu(), "auto")
    pages.publish(PAGE, found | tables(shared), arguments.write)


if __name__ == "__main__":
    main()
