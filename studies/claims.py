#!/usr/bin/env python3
"""Hold the papers' claims on GPUMech and MDM against three references, and look for what carries the error.

    python studies/claims.py --accelsim REFERENCE TRACES            # print the tables
    python studies/claims.py --accelsim REFERENCE TRACES --write    # also into docs/data/claims

The references are the simulator on the seventeen workloads, Accel-Sim on half of them (REFERENCE and
TRACES as for `accelsim_workloads.py`), and the simulator on the papers' own benchmarks
(``data/originals/measured.csv``, which `originals.py` makes).
"""

from __future__ import annotations

from pathlib import Path

import accelsim_workloads
import original_programs
import originals
import pages
import pandas as pd
from error_causes import VARIANTS, variants_of_mdm

import warpstack as ws
from warpstack.memory.caches import MemorySystem

PAGE = pages.DOCS / "quality" / "claims.md"
GPU = "pascal-mdm"
MODELS = ("gpumech", "gpumech_plus", "mdm", "closed_network")
#: In turns as in the papers, greedy, and in the timed order that the models take by default.
ORDERS = ("round_robin", "greedy", "timed")
#: Mean errors of the IPC in percent that the papers report (MDM, Section V-A).
PAPERS = {"all": {"gpumech": 162.0, "mdm": 13.9}, "MD": {"gpumech": 298.0, "mdm": 18.0}}


def of_workload(task: str) -> pd.DataFrame:
    """Return the errors of a workload's IPC: by model and order, and by variant of MDM and order."""
    app = ws.workloads.load(task)
    gpu = ws.gpu(GPU)
    results = ws.simulate(app, gpu)
    cycles = sum(result.cycles for result in results)
    rows = []
    for order in ORDERS:
        predicted = ws.predict(app, gpu, MODELS, access_order=order)
        for model, found in predicted.groupby("model", sort=False)["cycles"].sum().items():
            rows.append({"order": order, "what": str(model), "error": cycles / found - 1})
        system = MemorySystem(gpu, access_order=order)
        for variant, found in variants_of_mdm(app, gpu, results, system).items():
            rows.append({"order": order, "what": f"MDM, {variant}", "error": cycles / found - 1})
    kind = "MD" if ws.workloads.get(task).memory_divergent else "NMD"
    return pd.DataFrame(rows).assign(app=task, **{"class": kind})


def means(table: pd.DataFrame, what: tuple[str, ...]) -> dict[str, str]:
    """Return mean absolute errors in percent by what is compared."""
    found = 100 * table["error"].abs().groupby(table["what"]).mean()
    return {each: f"{found[each]:.0f} %" if each in found else "-" for each in what}


def reference_rows(label: str, table: pd.DataFrame) -> list[dict[str, str]]:
    """Return a row for each class of applications."""
    rows = []
    for kind in ("NMD", "MD", "all"):
        part = table if kind == "all" else table[table["class"] == kind]
        count = part["app"].nunique()
        rows.append({"reference": label, "class": f"{kind} ({count})"} | means(part, MODELS))
    return rows


def of_accelsim(reference: Path, traces: Path) -> pd.DataFrame:
    """Return the errors of the IPC against Accel-Sim, by application and model."""
    launches = accelsim_workloads.held_against(
        pd.read_csv(reference / "workloads.csv"), traces, ws.gpu(GPU), "timed"
    )
    ratios = accelsim_workloads.by_application(launches)
    table = ratios.drop(columns="simulator").reset_index(names="app")
    table = table.melt(["app", "class"], list(MODELS), "what", "ratio")
    return table.assign(error=1 / table["ratio"] - 1)


def of_originals(order: str) -> pd.DataFrame:
    """Return the errors of the IPC of the papers' own benchmarks, by program and model."""
    results = pd.read_csv(originals.MEASURED, keep_default_na=False)
    table = originals.errors(results, ["program"])
    table = table[table["order"] == order].rename(columns={"program": "app", "model": "what"})
    classes = {p.name: "MD" if p.memory_divergent else "NMD" for p in original_programs.PROGRAMS}
    return table.assign(**{"class": table["app"].map(classes)})


def main() -> None:
    """Measure, print the tables and write them where asked to."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument(
        "--accelsim", nargs=2, type=pages.existing(), metavar=("REFERENCE", "TRACES")
    )
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    ours = pd.concat(
        pages.in_processes(of_workload, list(ws.workloads.names()), arguments.processes)
    )
    rows: list[dict[str, str]] = []
    for kind, known in PAPERS.items():
        cells = {m: f"{known[m]:g} %" if m in known else "-" for m in MODELS}
        rows.append({"reference": "the papers' own", "class": kind} | cells)
    for order in ORDERS:
        table = ours[ours["order"] == order]
        rows += reference_rows(f"simulator, misses {order.replace('_', ' ')}", table)
    if arguments.accelsim:
        rows += reference_rows("Accel-Sim, misses timed", of_accelsim(*arguments.accelsim))
    for order in originals.ORDERS:
        label = f"originals on the simulator, misses {order.replace('_', ' ')}"
        rows += reference_rows(label, of_originals(order))
    variants = []
    for order in ORDERS:
        table = ours[ours["order"] == order]
        for variant in VARIANTS:
            what = f"MDM, {variant}"
            cells = {
                kind: means(part, (what,))[what]
                for kind, part in (("all", table), *table.groupby("class"))
            }
            variants.append({"MDM": variant, "misses": order.replace("_", " "), **cells})
    tables = {"references": pd.DataFrame(rows), "variants": pd.DataFrame(variants)}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
