#!/usr/bin/env python3
"""Say at first sight how far predictions can be trusted: one table, in README.md and on the front page.

    python studies/trust.py                                         # from docs/data/trust, print the table
    python studies/trust.py --write                                 # into README.md and docs/index.md
    python studies/trust.py --accelsim REFERENCE TRACES --write     # hold them against Accel-Sim anew
    python studies/trust.py --hardware CSV --write                  # take what hardware.py --keep CSV kept

REFERENCE is the folder of Accel-Sim's results (``accelsim``), TRACES that of the traces it ran. Both
kinds of measurements were held against by `studies/accelsim_workloads.py` and `studies/hardware.py`
in detail; this keeps a row for each, and counts. The machine that Accel-Sim simulates is that of
`studies/accelsim_fresh.py`: `pascal-mdm` with ``noc_topology=crossbar``. Random kernels are those that
`studies/random_kernels.py --write` kept. A winner is the faster of two kernels, or of two
sizes or versions of one, on the same card and profiler, whose times differ by more than a tenth.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pages
import pandas as pd

import warpstack as ws

PAGES = (pages.REPOSITORY / "README.md", pages.DOCS / "index.md")
DATA = pages.DOCS / "data" / "trust"
#: What `studies/random_kernels.py` keeps.
RANDOM = pages.DATA / "random-kernels" / "cases.csv"
MARK = re.compile(r"(<!-- trust: .*? -->\n).*?(<!-- end of trust -->)", re.DOTALL)
#: What predicts, in the order of the columns, and its name there.
NAMES = {
    "simulator": "our simulator",
    "interval_simulation": "our interval simulation",
    "closed_network": "our model",
    "mdm": "MDM",
    "gpumech": "GPUMech",
}
MODELS = tuple(name for name in NAMES if name != "simulator")
#: Times nearer than this have no winner.
TIE = 1.1
#: A ratio of two times is near the measured one within this.
NEAR = 0.15


def of_accelsim(reference: Path, traces: Path) -> pd.DataFrame:
    """Return the cycles of each launch that Accel-Sim ran, on the machine of `accelsim_fresh`."""
    import accelsim_fresh
    import accelsim_workloads

    gpu = accelsim_fresh.simulated_gpu()
    workloads = pd.read_csv(reference / "workloads.csv").assign(kind="workload")
    fresh = pd.read_csv(reference / "fresh.csv").assign(kind="fresh")
    fresh = fresh.rename(columns={"accelsim_cycles": "cycles"})
    tables = []
    for (kind, name), rows in pd.concat([workloads, fresh]).groupby(
        ["kind", "application"], sort=False
    ):
        launches = rows["kernel"].tolist()
        if kind == "fresh":
            kernels = ws.load(traces / "accelsim-fresh" / str(name)).kernels
            app = ws.App([kernels[launch - 1] for launch in launches])
        else:
            app = accelsim_workloads.application(str(name), traces, launches)
        predicted = ws.predict(app, gpu, MODELS)
        table = rows[["kind", "application", "kernel", "cycles"]].reset_index(drop=True)
        table["simulator"] = [result.cycles for result in ws.simulate(app, gpu)]
        for model in MODELS:
            table[model] = predicted.loc[predicted["model"] == model, "cycles"].to_numpy()
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def of_hardware(kept: Path) -> pd.DataFrame:
    """Return the time of each measured row in microseconds, launch included, as the profiler has it."""
    from hardware_suites import tables

    import hardware

    texts = dict.fromkeys(hardware.TEXTS, str)
    rows = tables.plain(pd.read_csv(kept, dtype=texts).fillna(dict.fromkeys(texts, "")))
    keys = ["suite", "gpu", "metric", "kernel", "application", "run", "kernel_index"]
    wide = rows.pivot_table("time_us", [*keys, "measured_us"], "model", sort=False)
    return wide[list(NAMES)].reset_index().rename_axis(columns=None)


def table(hardware: pd.DataFrame, accelsim: pd.DataFrame, random: pd.DataFrame) -> str:
    """Return the table of all counts as Markdown; `random` is `RANDOM`."""
    cards = hardware["gpu"].nunique()
    measured = f"{len(hardware):,} times on {cards} real GPUs"
    errors = {
        f"{measured}: median error": {
            name: _percent(float((hardware[name] / hardware["measured_us"] - 1).abs().median()))
            for name in NAMES
        },
        **_winners(hardware),
    }
    # Both as docs/quality/simulator.md counts them: whole workloads, and single launches.
    of_workloads = accelsim[accelsim["kind"] == "workload"].groupby("application")
    for label, rows in (
        ("workloads of the papers", of_workloads[["cycles", *NAMES]].sum()),
        ("fresh launches", accelsim[accelsim["kind"] == "fresh"]),
    ):
        errors[f"Accel-Sim, {len(rows)} {label}: mean error of the cycles"] = {
            name: _percent(float((rows[name] / rows["cycles"] - 1).abs().mean())) for name in NAMES
        }
    # Its cycles are what the models are held against there.
    of_models = {
        name: _percent(float((random[name] / random["simulated"] - 1).abs().median()))
        for name in MODELS
    }
    what = f"our simulator, {len(random):,} random kernels: median error of the cycles"
    errors[what] = {"simulator": "\N{EN DASH}", **of_models}
    lines = [["against", *NAMES.values()], ["---", *["---:"] * len(NAMES)]]
    lines += [[what, *by.values()] for what, by in errors.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _winners(hardware: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Return how often the faster of two is right, and how often by about as much as measured."""
    right: dict[str, list[npt.NDArray[np.bool_]]] = {name: [] for name in NAMES}
    near: dict[str, list[npt.NDArray[np.bool_]]] = {name: [] for name in NAMES}
    for _, card in hardware.groupby(["suite", "gpu", "metric"]):
        rows = card.drop_duplicates(["kernel", "run"])
        a, b = np.triu_indices(len(rows), 1)
        measured = rows["measured_us"].to_numpy()
        ratio = measured[a] / measured[b]
        apart = np.abs(np.log(ratio)) > np.log(TIE)
        for name in NAMES:
            times = rows[name].to_numpy()
            predicted = times[a] / times[b]
            right[name].append(((predicted > 1) == (ratio > 1))[apart])
            near[name].append((np.abs(predicted / ratio - 1) < NEAR)[apart])
    pairs = sum(map(len, right["simulator"]))
    return {
        f"{pairs:,} pairs of these: the faster one is right": {
            name: _percent(float(np.concatenate(found).mean())) for name, found in right.items()
        },
        f"the same: the ratio of their times is right within {100 * NEAR:.0f} %": {
            name: _percent(float(np.concatenate(found).mean())) for name, found in near.items()
        },
    }


def _percent(share: float) -> str:
    return f"{100 * share:.{int(share < 0.01)}f} %"


def main() -> None:
    """Print the table, and write it and its data where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--accelsim", nargs=2, type=pages.existing(), metavar=("REFERENCE", "TRACES")
    )
    parser.add_argument("--hardware", type=pages.existing(), metavar="CSV")
    parser.add_argument("--write", action="store_true", help="into the pages, and the data")
    arguments = parser.parse_args()
    found = {}
    for name, anew in (
        ("hardware", arguments.hardware and of_hardware(arguments.hardware)),
        ("accelsim", arguments.accelsim and of_accelsim(*arguments.accelsim)),
    ):
        path = DATA / f"{name}.csv"
        if anew is not None and arguments.write:
            DATA.mkdir(parents=True, exist_ok=True)
            anew.to_csv(path, index=False, float_format="%.5g")
        found[name] = pd.read_csv(path) if anew is None or arguments.write else anew
    text = table(found["hardware"], found["accelsim"], pd.read_csv(RANDOM))
    print(text)
    for page in PAGES if arguments.write else ():
        whole = page.read_text(encoding="utf-8")
        written, places = MARK.subn(lambda mark: f"{mark[1]}{text}\n{mark[2]}", whole)
        if places != 1:
            raise SystemExit(f"{page}: has no place for the table: <!-- trust: ... --> and its end")
        page.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
