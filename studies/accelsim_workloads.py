#!/usr/bin/env python3
"""Hold the simulator and the models against Accel-Sim on the workloads.

    python studies/accelsim_workloads.py REFERENCE TRACES            # print the tables
    python studies/accelsim_workloads.py REFERENCE TRACES --write    # also into docs/data/simulator
    python studies/accelsim_workloads.py REFERENCE TRACES --set lsu_queue_entries=32 --order greedy

REFERENCE is the folder of Accel-Sim's results (``accelsim``), whose README says what was run; TRACES
the folder that holds ``accelsim-bfs`` and ``accelsim-resnet``. Without ``--gpu`` the machine is
`pascal-mdm`. Errors of the IPC are those of an application over its launches (MDM, Eq. 11).
"""

from __future__ import annotations

from pathlib import Path

import pages
import pandas as pd

import warpstack as ws
from warpstack.cli.common.gpu_options import add_gpu, read_gpu

PAGE = pages.DOCS / "quality" / "simulator.md"
MODELS = ("gpumech", "gpumech_plus", "mdm", "closed_network", "interval_simulation")
#: Workloads that were run from traces of smaller inputs.
TRACED = ("bfs", "resnet")
#: Launches shorter than this are not among the worst: a few cycles are a large part of them.
LEAST_CYCLES = 1000


def application(name: str, traces: Path, launches: list[int]) -> ws.App:
    """Return the launches of a workload that Accel-Sim ran, by their places in the list."""
    app = ws.load(traces / f"accelsim-{name}") if name in TRACED else ws.workloads.load(name)
    return ws.App([app.kernels[launch - 1] for launch in launches])


def held_against(reference: pd.DataFrame, traces: Path, gpu: ws.Gpu, order: str) -> pd.DataFrame:
    """Return a row per launch: Accel-Sim's with the simulator's and the models' cycles."""
    tables = []
    for name, rows in reference.groupby("application", sort=False):
        app = application(str(name), traces, rows["kernel"].tolist())
        predicted = ws.predict(app, gpu, MODELS, access_order=order)
        table = rows.reset_index(drop=True)
        table["traced_instructions"] = [kernel.num_instructions for kernel in app]
        table["simulator"] = [result.cycles for result in ws.simulate(app, gpu)]
        for model in MODELS:
            table[model] = predicted.loc[predicted["model"] == model, "cycles"].to_numpy()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def by_application(launches: pd.DataFrame) -> pd.DataFrame:
    """Return cycles over Accel-Sim's, summed over the launches of an application."""
    sums = launches.groupby("application", sort=False)[["cycles", "simulator", *MODELS]].sum()
    found = sums[["simulator", *MODELS]].div(sums["cycles"], axis=0)
    classes = ws.workloads.table().set_index("name")["class"]
    found.insert(0, "class", classes.reindex(found.index))
    return found


def summary(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return mean errors in percent over the applications, of all and by class."""
    rows = []
    for kind, group in (("all", ratios), *ratios.groupby("class")):
        for what in ("simulator", *MODELS):
            rows.append(
                {
                    "class": kind,
                    "what": what,
                    "cycles (%)": 100 * (group[what] - 1).abs().mean(),
                    "IPC (%)": 100 * (1 / group[what] - 1).abs().mean(),
                }
            )
    return pd.DataFrame(rows)


def worst(launches: pd.DataFrame, count: int = 8) -> pd.DataFrame:
    """Return the launches on which the simulator errs most."""
    long = launches[launches["cycles"] >= LEAST_CYCLES].copy()
    long["error (%)"] = 100 * (long["simulator"] / long["cycles"] - 1)
    order = long["error (%)"].abs().sort_values(ascending=False).index[:count]
    columns = ["application", "kernel", "name", "cycles", "simulator", "error (%)"]
    return long.loc[order, columns]


def tables(
    reference_folder: Path, traces: Path, gpu: ws.Gpu, order: str
) -> dict[str, pd.DataFrame]:
    """Return the tables by their names; `order` is that of the models' accesses."""
    reference = pd.read_csv(reference_folder / "workloads.csv")
    launches = held_against(reference, traces, gpu, order)
    differ = launches[launches["traced_instructions"] != launches["warp_instructions"]]
    if len(differ):
        raise SystemExit(f"not the launches that Accel-Sim ran:\n{differ.to_string()}")
    ratios = by_application(launches)
    return {
        "workloads": ratios.round(2).astype(str).reset_index(),
        "workloads-summary": summary(ratios),
        "workloads-worst": worst(launches),
    }


def main() -> None:
    """Print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("reference", type=pages.existing("workloads.csv"))
    parser.add_argument("traces", type=pages.existing())
    add_gpu(parser)
    parser.add_argument("--order", default="auto", help="of accesses, for the models")
    arguments = parser.parse_args()
    found = tables(arguments.reference, arguments.traces, read_gpu(arguments), arguments.order)
    pages.publish(PAGE, found, arguments.write)


if __name__ == "__main__":
    main()
