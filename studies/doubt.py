#!/usr/bin/env python3
"""Measure how far measured times lie from predicted ones, by kind of kernel, and whether ranges hold.

    python studies/doubt.py REFERENCE --keep CSV            # print the tables
    python studies/doubt.py REFERENCE --keep CSV --write    # into docs/data/doubt and the package
    python studies/doubt.py REFERENCE --rows CSV            # keep the rows, or take them from there

REFERENCE is the folder of measurements on GPUs (``hardware``). The traces are those of studies/hardware.py
(``--cache``), and the times of the simulator and of interval simulation those that it kept (``--keep``); the
other models are asked here, as their CPI stacks say what kind a kernel is.
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd
from hardware_suites import SUITES, evaluate, tables
from hardware_suites.launch import launch_us
from hardware_suites.row import Row

import warpstack as ws
from hardware import LARGEST
from warpstack.hardware.doubt import errors
from warpstack.tables import STACK

PAGE = pages.DOCS / "quality" / "doubt.md"
#: Models whose CPI stacks are asked for.
MODELS = ("closed_network", "mdm", "gpumech", "mwp_cwp")
#: Those whose times are taken from `--keep`, and their names in rows of results.
KEPT = {"simulator": "simulation", "interval_simulation": "interval_simulation"}
#: What tells a measured row.
KEYS = ["set", "suite", "gpu", "application", "kernel_index", "metric"]


def rows_of(name: str, arguments: argparse.Namespace) -> pd.DataFrame:
    """Return a row per measured row of a set and model, with its CPI stack."""
    wanted = [
        row
        for row in SUITES[name](arguments.reference)
        if not evaluate.why_not(row, arguments.largest or LARGEST[name]) and counts(row)
    ]
    runs = collections.defaultdict(list)
    for row in wanted:
        runs[row.run, evaluate.code_of(row.run, row.gpu, "machine")].append(row)
    found: list[dict[str, Any]] = []
    for (run, code), rows in sorted(runs.items(), key=lambda pair: evaluate.size_of(pair[0][0])):
        app = evaluate.traced(run, code, arguments.cache)
        known: dict[evaluate.Condition, pd.DataFrame] = {}
        for row in rows:
            condition = evaluate.condition_of(row, row.settings[0])
            if condition not in known:
                known[condition] = predicted(app, condition)
            base = {key: getattr(row, key) for key in KEYS if key != "set"}
            base |= {"set": name, "flag": row.flag, "run": run.label, "code": code or "PTX"}
            found += [base | values for values in times(row, condition, known[condition])]
        print(f"{run.label} as {code or 'PTX'}", file=sys.stderr, flush=True)
    return pd.DataFrame(found)


def counts(row: Row) -> bool:
    """Return whether the page of errors counts a row: a time without a remark that matters."""
    flags = pd.DataFrame([{"flag": row.flag, "metric": row.metric}])
    return bool(plain(flags).shape[0])


def plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that count."""
    one = rows.assign(reason="", setting="", launch_us=0.0, us=1.0, measured_us=1.0)
    for name in ("suite", "gpu", "application", "kernel_index"):
        one[name] = ""
    found = tables.evaluated(one)
    return rows[(found["harmless"] & found["is_time"]).to_numpy()]


def predicted(app: ws.App, condition: evaluate.Condition) -> pd.DataFrame:
    """Return what the models say of a program's launches under a condition."""
    gpu = ws.gpu(condition.gpu).replace(**dict(condition.changes))
    if gpu.clock_ghz != condition.ghz:
        gpu = gpu.replace(clock_ghz=condition.ghz)
    state, launches = condition.state, len(app)
    twice = ws.App([*app, *app]) if state == "repeated" else app
    table = ws.predict(
        twice,
        gpu,
        MODELS,
        flush_l2=state in ("cold", "written"),
        initial_l2="dirty" if state == "written" else None,
    )
    table = table.assign(launch=np.arange(len(table)) // len(MODELS))
    last = table[table["launch"] >= len(twice) - launches]
    return last.assign(launch=last["launch"] - (len(twice) - launches))


def times(row: Row, condition: evaluate.Condition, table: pd.DataFrame) -> Iterable[dict[str, Any]]:
    """Return the time of a measured row by model; the CPI stack is that of its longest launch."""
    weights = evaluate.weights_of(row)
    launches = len(row.launches) if row.combine == "sum" and not row.weights else 1
    launch = launches * launch_us(row.gpu, row.profiler, row.kernel_index)
    for model, rows in table.groupby("model", sort=False):
        of = rows.set_index("launch")
        parts = {one: w * of["cycles"][one] for one, w in zip(row.launches, weights, strict=True)}
        longest = of.loc[max(parts, key=lambda one: parts[one])]
        yield {
            "model": model,
            "us": sum(parts.values()) / condition.ghz / 1000,
            "launch_us": launch,
            "measured_us": evaluate._us(row, row.measured, condition.ghz),
            "card": card_doubt_of(longest),
            **{name: longest[name] for name in STACK},
        }


def card_doubt_of(row: pd.Series) -> float:
    """Return what guessed values of the GPU add to the range of a row: all but its measured errors."""
    above = np.log(row["time_us_high"] / row["time_us"])
    measured = errors.measured_range(row["model"], errors.kind_of(row)).above
    return float(np.sqrt(max(above**2 - measured**2, 0.0)))


def with_kept(rows: pd.DataFrame, kept: Path | None) -> pd.DataFrame:
    """Add the rows of models that studies/hardware.py kept.

    Of these it keeps no CPI stack: that of `closed_network` says what the kernel does, and their own time
    how much of it is the launch.
    """
    if kept is None:
        return rows
    known = pd.read_csv(kept, dtype={"kernel_index": str})
    known["model"] = known["model"].map(KEPT)
    known["setting"] = known["setting"].fillna("")
    known = known[known["model"].notna()].drop_duplicates([*KEYS, "model"])
    known["kernel_index"] = known["kernel_index"].fillna("")
    ours = rows[rows["model"] == MODELS[0]].drop(columns=["model", "us"])
    return pd.concat([rows, ours.merge(known[[*KEYS, "model", "us"]], on=KEYS)], ignore_index=True)


def with_kinds(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the kind of each row and its error, the logarithm of measured over predicted time."""
    found = rows.assign(time_us=rows["us"] + rows["launch_us"])
    found["kind"] = [errors.kind_of(row) for row in found.to_dict("records")]
    found["error"] = np.log(found["measured_us"] / found["time_us"])
    return found


def judged(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of the package, and the rows with their ranges and whether these hold."""
    made, held = [], []
    for model, some in rows.groupby("model", sort=False):
        columns = (some[name].tolist() for name in ("kind", "error", "suite", "gpu", "card"))
        table, how = errors.error_table(*columns)
        made += [{"model": model, **row} for row in table]
        by_kind = {row["kind"]: row for row in table}
        ends = [
            np.hypot([by_kind[kind][end] for kind in some["kind"]], some["card"])
            for end in ("below", "above")
        ]
        half = (np.exp(ends[1]) - np.exp(np.negative(ends[0]))) / 2
        held.append(some.assign(half_width=half, **how))
    return pd.DataFrame(made), pd.concat(held)


def coverage(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return by group how many rows lie inside, and half the width of their ranges."""
    found = []
    for key, some in rows.groupby(by, sort=False):
        found.append(
            {
                **dict(zip(by, key, strict=True)),
                "rows": len(some),
                "inside": f"{100 * some['inside'].mean():.0f} %",
                "inside without its set": f"{100 * some['without_set'].mean():.0f} %",
                "inside without its card": f"{100 * some['without_card'].mean():.0f} %",
                "median half width": f"{100 * some['half_width'].median():.0f} %",
            }
        )
    return pd.DataFrame(found).rename(columns={"suite": "set", "gpu": "GPU"})


def main() -> None:
    """Compute the tables and print or write them."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument(
        "reference", type=pages.existing("h100-emptykernel-grid.csv"), help="the folder hardware"
    )
    parser.add_argument(
        "--only", nargs="+", choices=SUITES, default=list(SUITES), help="these sets"
    )
    parser.add_argument("--keep", type=Path, metavar="CSV", help="what studies/hardware.py kept")
    parser.add_argument("--rows", type=Path, metavar="CSV", help="rows of the models asked here")
    parser.add_argument("--largest", type=float, help="warp instructions of a launch, about")
    parser.add_argument("--cache", type=Path, default=evaluate.cache_folder(), help="of traces")
    arguments = parser.parse_args()
    known = pd.DataFrame()
    if arguments.rows and arguments.rows.exists():
        known = pd.read_csv(arguments.rows, dtype={"kernel_index": str})
        known["kernel_index"] = known["kernel_index"].fillna("")
    for name in arguments.only:
        if not len(known) or name not in set(known["set"]):
            known = pd.concat([known, rows_of(name, arguments)], ignore_index=True)
            if arguments.rows:
                known.to_csv(arguments.rows, index=False, float_format="%.6g")
    rows = with_kinds(with_kept(known[known["set"].isin(arguments.only)], arguments.keep))
    table, held = judged(rows)
    if arguments.write:
        shown = table.assign(**{end: table[end].map("{:.4f}".format) for end in ("below", "above")})
        shown.to_csv(errors.TABLE, index=False, lineterminator="\n")
    ours = held[held["model"] == MODELS[0]]
    pages.publish(
        PAGE,
        {
            "models": coverage(held, ["model"]),
            "sets": coverage(ours, ["suite"]),
            "cards": coverage(ours, ["gpu"]),
            "kinds": kinds(table),
        },
        arguments.write,
    )


def kinds(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the package, its ends as ratios of measured to predicted time."""
    return table.assign(
        below=np.exp(-table["below"]).map("{:.2f}".format),
        above=np.exp(table["above"]).map("{:.2f}".format),
    ).rename(columns={"below": "from", "above": "to"})


if __name__ == "__main__":
    main()
