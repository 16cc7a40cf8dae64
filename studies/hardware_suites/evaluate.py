"""Trace each program once, simulate and predict it on its GPUs, and put the times beside the rows."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import warpstack as ws

from .launch import clock_ghz, launch_us
from .program import PROGRAMS, bench_of
from .row import Row, Run, Setting, State

SIMULATOR = "simulator"
MODELS = ("gpumech", "mdm", "mwp_cwp", "closed_network", "interval_simulation")
#: Whose machine code a card runs, as far as it can be read; others run PTX here.
_CODES = {
    "h100-pcie": "sm_90",
    "rtx4070": "sm_89",
    "gtx1650": "sm_75",
    "rtx2060": "sm_75",
    "rtx2080ti": "sm_75",
    **dict.fromkeys(("rtx3060", "rtx3060-laptop", "rtx3060ti", "rtx3070", "rtx3070ti"), "sm_86"),
    **dict.fromkeys(("rtx3080", "rtx-a4000", "a40", "rtx-a6000"), "sm_86"),
    **dict.fromkeys(("a100", "a100-pcie"), "sm_80"),
    "h200": "sm_90",
}
#: Counters of the simulator that are kept, in sectors of 32 bytes.
COUNTERS = (
    *("l1_read_sectors", "l1_read_sector_hits", "l1_write_sectors"),
    *("l2_read_sectors", "l2_read_sector_hits", "l2_write_sectors", "l2_atomic_sectors"),
    *("dram_read_sectors", "dram_write_sectors"),
)


@dataclasses.dataclass(frozen=True)
class Condition:
    """A GPU as it is simulated."""

    gpu: str
    ghz: float
    state: State
    changes: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Task:
    """A program as PTX or machine code, and where it is to be simulated."""

    run: Run
    code: str | None
    conditions: tuple[Condition, ...]
    cache: Path
    #: Changes of the GPUs' descriptions.
    changes: tuple[tuple[str, Any], ...] = ()


def condition_of(row: Row, setting: Setting) -> Condition:
    """Return how a row is simulated under a setting."""
    ghz = setting.clock_ghz or clock_ghz(row.gpu, row.profiler)
    return Condition(row.gpu, ghz, setting.state, setting.changes)


def size_of(run: Run) -> float:
    """Return the warp instructions of a run's largest launch, about."""
    return PROGRAMS[run.program].size(**dict(run.parameters))


def code_of(run: Run, gpu: str, choice: str) -> str | None:
    """Return the architecture whose machine code a GPU runs, or None for PTX."""
    if choice != "machine":
        return None
    if PROGRAMS[run.program].source.suffix == ".py":  # Triton compiles for the row's GPU
        return f"sm_{dict(run.parameters)['target']}"
    return _CODES.get(gpu)


def traced(run: Run, code: str | None, cache: Path) -> ws.App:
    """Return a program's launches, from the cache where they are."""
    program = PROGRAMS[run.program]
    key = hashlib.sha256(program.source.read_bytes()).hexdigest()[:8]
    folder = cache / f"{run.label}-{code or 'ptx'}-{key}"
    if not folder.exists():
        bench = bench_of(program.source, code)
        ws.save(ws.App(list(program.launches(bench, **dict(run.parameters)))), folder)
    return ws.load(folder)


def _results(app: ws.App, gpu: ws.Gpu, *, flush: bool, written: bool = False) -> list[pd.DataFrame]:
    """Return a table per launch: a row for the simulator and for each model."""
    how = ws.Options(flush_l2=flush, initial_l2="dirty" if written else None)
    simulated = ws.simulate(app, gpu, options=how)
    predicted = ws.predict(app, gpu, MODELS, options=how)
    tables = []
    for number, result in enumerate(simulated):
        first = {"model": SIMULATOR, "cycles": result.cycles, "instructions": result.instructions}
        first |= {name: result.totals.get(name) for name in COUNTERS}
        rows = predicted.iloc[number * len(MODELS) : (number + 1) * len(MODELS)]
        tables.append(pd.concat([pd.DataFrame([first]), rows[["model", "cycles", "instructions"]]]))
    return tables


def evaluated(task: Task) -> pd.DataFrame:
    """Return a row per condition, launch and model."""
    app = traced(task.run, task.code, task.cache)
    found: dict[Condition, list[pd.DataFrame]] = {}
    states: dict[tuple[str, float, tuple[tuple[str, Any], ...]], set[State]] = defaultdict(set)
    for each in task.conditions:
        states[each.gpu, each.ghz, each.changes].add(each.state)
    for (name, ghz, changes), wanted in states.items():
        plain = ws.gpu(name).replace(**dict(changes), **dict(task.changes))
        gpu = plain if plain.clock_ghz == ghz else plain.replace(clock_ghz=ghz)
        in_order, repeated, cold, written = (
            Condition(name, ghz, state, changes)
            for state in ("in order", "repeated", "cold", "written")
        )
        if wanted & {"repeated", "in order"} or (len(app) == 1 and "cold" in wanted):
            twice = ws.App([*app, *app]) if "repeated" in wanted else app
            tables = _results(twice, gpu, flush=False)
            found[repeated] = tables[-len(app) :]
            found[in_order] = tables[: len(app)]
        if "cold" in wanted:
            one = found.get(in_order) if len(app) == 1 else None
            found[cold] = one or _results(app, gpu, flush=True)
        if "written" in wanted:
            found[written] = _results(app, gpu, flush=True, written=True)
    parts = [
        table.assign(
            launch=number,
            gpu=condition.gpu,
            ghz=condition.ghz,
            state=condition.state,
            changes=str(condition.changes),
        )
        for condition in task.conditions
        for number, table in enumerate(found[condition])
    ]
    print(f"{task.run.label} as {task.code or 'PTX'}", file=sys.stderr, flush=True)
    return pd.concat(parts, ignore_index=True).assign(run=task.run.label, code=task.code or "PTX")


def why_not(row: Row, largest: float) -> str:
    """Return why a row is not evaluated, or nothing."""
    if "unusable" in row.flag:
        return "unusable by its flag"
    if row.run is None:
        return row.reason
    if size_of(row.run) > largest:
        return "more warp instructions than are simulated"
    return ""


def tasks_of(rows: Iterable[Row], choice: str, cache: Path) -> list[Task]:
    """Return what is to be simulated for rows that have a run, the smallest first."""
    wanted: dict[tuple[Run, str | None], set[Condition]] = defaultdict(set)
    for row in rows:
        if row.run:
            places = wanted[row.run, code_of(row.run, row.gpu, choice)]
            places |= {condition_of(row, setting) for setting in row.settings}
    order = sorted(wanted, key=lambda key: (size_of(key[0]), key[0].label, key[1] or ""))
    sort = dataclasses.astuple
    return [
        Task(run, code, tuple(sorted(wanted[run, code], key=sort)), cache) for run, code in order
    ]


def rows_with_times(
    rows: Sequence[Row], results: Sequence[pd.DataFrame], choice: str, largest: float
) -> pd.DataFrame:
    """Return a row per measured row, setting and model, with the predicted times.

    A row that is not evaluated has one row, with its reason.
    """
    keys = ["run", "code", "gpu", "ghz", "state", "changes", "launch"]
    by_place = {place: table for each in results for place, table in each.groupby(keys, sort=False)}
    found: list[dict[str, object]] = []
    for row in rows:
        names = ("suite", "gpu", "application", "kernel_index", "kernel", "metric", "flag")
        base = {name: getattr(row, name) for name in names} | {"profiler": row.profiler}
        reason = why_not(row, largest)
        if reason or row.run is None:
            found.append(base | {"reason": reason, "measured_us": _us(row, row.measured, 1.0)})
            continue
        code = code_of(row.run, row.gpu, choice) or "PTX"
        for setting in row.settings:
            place = condition_of(row, setting)
            start = (row.run.label, code, place.gpu, place.ghz, place.state, str(place.changes))
            weights = weights_of(row)
            total = pd.concat(
                by_place[(*start, launch)].groupby("model", sort=False).sum(numeric_only=True)
                * weight
                for launch, weight in zip(row.launches, weights, strict=True)
            )
            total = total.groupby("model", sort=False).sum()
            launches = len(row.launches) if row.combine == "sum" and not row.weights else 1
            launch = launches * launch_us(row.gpu, row.profiler, row.kernel_index)
            counted = base | {
                **{"reason": "", "setting": setting.label, "state": setting.state, "code": code},
                **{"ghz": place.ghz, "measured_us": _us(row, row.measured, place.ghz)},
                **{"launch_us": launch, "run": row.run.label},
            }
            for model, values in total.iterrows():
                cycles = float(values["cycles"])
                time = {"model": model, "cycles": cycles, "us": cycles / place.ghz / 1000}
                kept = {name: values[name] for name in ("instructions", *COUNTERS)}
                found.append(counted | time | (kept if model == SIMULATOR else {}))
    return pd.DataFrame(found)


def weights_of(row: Row) -> tuple[float, ...]:
    """Return what each launch of a row counts in its time."""
    equal = 1 / len(row.launches) if row.combine == "mean" else 1.0
    return row.weights or (equal,) * len(row.launches)


def _us(row: Row, value: float, ghz: float) -> float:
    """Return a measured time, or cycles, in microseconds."""
    return value if row.unit == "us" else value / ghz / 1000


def cache_folder() -> Path:
    """Return where traces are kept unless the command line says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "warpstack-hardware"
