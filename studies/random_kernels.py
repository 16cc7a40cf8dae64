#!/usr/bin/env python3
"""Measure the models on kernels that nobody chose: random kernels on random GPUs, against the simulator.

    python studies/random_kernels.py --seeds 1 --kernels 100          # print the tables
    python studies/random_kernels.py --write                          # also docs/data/random-kernels
    python studies/random_kernels.py --shrink 1:24 --model mdm        # a bad case, made small
    python studies/random_kernels.py --renew                          # what the quick test holds them to

A case is made from its seed and its number alone (`tests/python/random_cases.py`). The ten worst cases
of a model are asked what fault they show: simulator and model get the case without one resource of the
GPU, or without one trait of the kernel, and what takes most of the error away, at least half, names it.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pages
import pandas as pd
from matplotlib.figure import Figure

import warpstack as ws
from warpstack.plot import sheet
from warpstack.plot.style import styles

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import kernel_recipes as kr
import random_cases as rc

PAGE = pages.DOCS / "quality" / "random-kernels.md"
DATA = pages.DATA / "random-kernels"
#: The models that are measured, those of them that there are.
MODELS = tuple(
    name
    for name in ("closed_network", "interval_simulation", "mdm", "gpumech")
    if name in ws.models.names()
)
#: The models that the quick test holds, its seed, and how many kernels it tries.
HELD = tuple(name for name in MODELS if name in ("closed_network", "interval_simulation"))
QUICK_SEED, QUICK_KERNELS = 6007, 60
#: Seeds and kernels of each that the page shows.
SEEDS, KERNELS = (101, 202, 303), 500
#: Cases of a model that are asked for their fault.
WORST = 10
#: A change that takes less of an error away does not explain it.
EXPLAINS = 0.5
#: So near to the best change, an earlier one is preferred.
AS_GOOD = 0.8
#: Shorter runs are not made smaller: their error is a matter of single cycles.
LEAST_CYCLES = 100

Change = Callable[[rc.Case], rc.Case]
Error = Callable[[rc.Case], float]


def _gpu(**fields: Any) -> Change:
    """Return a change of a GPU's fields."""

    def change(case: rc.Case) -> rc.Case:
        return replace(case, changes=tuple((dict(case.changes) | fields).items()))

    return change


def _recipes(of_recipe: Callable[[rc.Recipe], rc.Recipe]) -> Change:
    """Return a change of every launch."""
    return lambda case: replace(case, launches=tuple(map(of_recipe, case.launches)))


def _steps(of_step: Callable[[rc.Step], rc.Step | None]) -> Change:
    """Return a change of every step; those for which nothing is returned are left out."""

    def of_all(steps: tuple[rc.Step, ...]) -> tuple[rc.Step, ...]:
        return tuple(new for new in map(of_step, steps) if new is not None)

    return _recipes(lambda one: replace(one, body=of_all(one.body), second=of_all(one.second)))


def _without(*kinds: str) -> Change:
    """Return a change that leaves steps out."""
    return _steps(lambda step: None if step.kind in kinds else step)


def _other_order(case: rc.Case) -> rc.Case:
    """Return a case whose schedulers choose warps in the other order."""
    return _gpu(scheduler="lrr" if case.on().scheduler == "gto" else "gto")(case)


_MANY = 100_000
_TENSOR = ("f16", "f16_f32", "bf16", "tf32", "f64", "f8", "s8", "s4", "b1")
#: What is taken away from the GPU, and from the kernel; what takes little away comes first.
MACHINE: dict[str, Change] = {
    "queue of the LSU": _gpu(lsu_queue_entries=1 << 16),
    "places of lines under way": _gpu(lines_under_way="replaceable"),
    "L1 MSHRs": _gpu(l1_mshrs=_MANY, l1_mshr_targets=_MANY),
    "queue of L1 misses": _gpu(l1_miss_queue_entries=_MANY, noc_queue_entries=0),
    "L2 MSHRs": _gpu(l2_mshrs=_MANY, l2_mshr_targets=_MANY),
    "queues of L2 and DRAM": _gpu(l2_queue_entries=_MANY, dram_queue_entries=_MANY),
    "DRAM rows": _gpu(dram_row_bytes=0),
    "DRAM bandwidth": _gpu(dram_bandwidth_gbs=1e6, dram_row_bytes=0),
    "L2 slices": _gpu(l2_slice_bytes_per_cycle=0.0, l2_slice_request_cycles=1.0),
    "NoC": _gpu(noc_bandwidth_gbs=1e6, noc_sm_bytes_per_cycle=0.0),
    "start of blocks": _gpu(
        block_interval_cycles=0.0, block_replacement_ns=0.0, warp_start_cycles=0.0
    ),
    "end of stores": _gpu(store_acknowledgement="none", kernel_end="last_warp"),
    "requests of atomics": _gpu(atomic_requests="per_line", l2_atomic_lane_turns=0.0),
    "rates of units": _gpu(
        **{f"{unit}_interval": 1 for unit in ("integer", "fp32", "fp16", "fp64", "sfu", "tensor")},
        **{f"tensor_{kind}_rate": 0.0 for kind in _TENSOR},
    ),
    "order of warps": _other_order,
    "several SMs": _gpu(num_sms=1),
}
KERNEL: dict[str, Change] = {
    "launches before": lambda case: replace(case, launches=case.launches[-1:]),
    "barriers": _without("barrier"),
    "conflicts in shared memory": _steps(
        lambda step: replace(step, stride=1) if step.kind == "shared" else step
    ),
    "divergent branches": _without("divergent"),
    "warps of their own way": _steps(lambda step: replace(step, warps=1.0)),
    "unequal warps or blocks": _recipes(lambda one: replace(one, uneven="")),
    "data that nobody awaits": _recipes(
        lambda one: replace(one, tail=(rc.Step(kr.WAIT, kr.ADDED),))
    ),
    "data that blocks share": _recipes(lambda one: replace(one, private=True)),
    "late uses": _steps(lambda step: replace(step, late=False)),
    "atomics": _without("atomic", "counter"),
    "pointer chases": _without("chase"),
    "textures": _without("texture"),
    "asynchronous copies": _without("copy"),
    "matrix instructions": _without("hmma", "imma"),
    "stores": _without("store"),
    "scattered accesses": _steps(lambda step: replace(step, pattern="coalesced", width=4)),
    "two phases": _recipes(lambda one: replace(one, second=())),
}


@functools.lru_cache(maxsize=64)
def cycles_of(case: rc.Case) -> float:
    """Return the simulated cycles of all launches."""
    return float(sum(one.cycles for one in ws.simulate(case.app(), case.on())))


def log_error(case: rc.Case, model: str) -> float:
    """Return the logarithm of predicted over simulated cycles."""
    predicted = ws.predict(case.app(), case.on(), model)["cycles"].sum()
    return math.log(float(predicted) / cycles_of(case))


def measure(task: tuple[int, range, tuple[str, ...]]) -> pd.DataFrame:
    """Return cycles and processor times of the simulator and models for each case of a range."""
    warnings.simplefilter("ignore")
    seed, numbers, models = task
    ws.predict(ws.patterns.stream(1, 1, 1), rc.PLAIN, models)  # loads what it uses
    rows = []
    for number in numbers:
        case = rc.random_case(seed, number)
        app, gpu = case.app(), case.on()
        row: dict[str, Any] = {"case": f"{seed}:{number}"}
        start = time.process_time()
        row["simulated"] = sum(one.cycles for one in ws.simulate(app, gpu))
        row["seconds simulated"] = time.process_time() - start
        for model in models:
            start = time.process_time()
            # As kept, so that tables from what is kept are the same.
            row[model] = round(float(ws.predict(app, gpu, model)["cycles"].sum()), 1)
            row[f"seconds {model}"] = time.process_time() - start
        rows.append(row)
    return pd.DataFrame(rows)


def measured(
    seeds: Sequence[int], kernels: int, models: tuple[str, ...], processes: int
) -> pd.DataFrame:
    """Return cycles and processor times of all cases."""
    chunk = 20
    tasks = [
        (seed, range(first, min(first + chunk, kernels)), models)
        for seed in seeds
        for first in range(0, kernels, chunk)
    ]
    return pd.concat(pages.in_processes(measure, tasks, processes), ignore_index=True)


def errors(rows: pd.DataFrame, model: str) -> pd.Series:
    """Return the relative errors of a model's cycles."""
    return rows[model] / rows["simulated"] - 1


def summary(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return how far each model is from the simulator, by seed.

    Mean to 90th and 99th percentile are of absolute errors, the bias is the median error.
    """
    found = []
    for seed, part in rows.groupby(rows["case"].str.split(":").str[0], sort=False):
        for model in models:
            error = errors(part, model)
            size = error.abs()
            row = {"seed": seed, "model": model, "kernels": len(part)}
            row |= {"mean": size.mean(), "median": size.median()}
            row |= {f"{100 * q:.0f}th percentile": size.quantile(q) for q in (0.9, 0.99)}
            row |= {"worst": error[size.idxmax()], "bias": error.median()}
            row = {k: f"{100 * v:.1f} %" if isinstance(v, float) else v for k, v in row.items()}
            row["rank correlation"] = f"{part[model].corr(part['simulated'], 'spearman'):.3f}"
            found.append(row)
    return pd.DataFrame(found)


def costs(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return the processor time of each model's predictions over that of the simulations."""
    simulated = rows["seconds simulated"].sum()
    return pd.DataFrame(
        {
            "model": model,
            "processor time over the simulator's": f"{rows[f'seconds {model}'].sum() / simulated:.2f}",
        }
        for model in models
    )


def _keeps(case: rc.Case, error: Error, least: float) -> bool:
    """Return whether a case errs by so much at least, with its sign."""
    try:
        signed = math.copysign(1, least) * error(case)
        return signed >= abs(least) and cycles_of(case) >= LEAST_CYCLES
    except ws.InputError:  # such as a block that does not fit on an SM
        return False


def shrunk(case: rc.Case, error: Error) -> rc.Case:
    """Return a smaller case whose error has the same sign, and at least half the size."""
    least = error(case) / 2
    found = True
    while found:
        found = False
        for tried in rc.simpler(case):
            if _keeps(tried, error, least):
                case, found = tried, True
                break
    return case


def fault(case: rc.Case, error: Error, changes: Mapping[str, Change]) -> tuple[str, float]:
    """Return which change takes most of an error away, and the error that is left.

    The name is empty, and the whole error left, where no change takes half of it away.
    """
    whole = error(case)
    left: dict[str, float] = {}
    for name, change in changes.items():
        try:
            tried = change(case)
            same = tried.launches == case.launches and tried.on() == case.on()
            if not same and all(one.body or one.second for one in tried.launches):
                left[name] = error(tried)
        except ws.InputError:  # the GPU cannot be without it
            continue
    taken = {name: 1 - abs(each) / (abs(whole) or 1) for name, each in left.items()}
    most = max(taken.values(), default=0.0)
    if not whole or most < EXPLAINS:
        return "", whole
    name = next(name for name, share in taken.items() if share >= AS_GOOD * most)
    return name, left[name]


def _percent(log: float) -> str:
    """Return the relative error that has a logarithm."""
    return f"{100 * math.expm1(log):+.0f} %"


def explain(task: tuple[str, str]) -> dict[str, object]:
    """Return the row of a case and a model: what fault it shows."""
    warnings.simplefilter("ignore")
    name, model = task
    case = rc.random_case(*map(int, name.split(":")))
    error = functools.partial(log_error, model=model)
    row: dict[str, object] = {"model": model, "case": name, "error": _percent(error(case))}
    for what, changes in (("GPU", MACHINE), ("kernel", KERNEL)):
        found, left = fault(case, error, changes)
        row[f"fault of the {what}"] = found or "-"
        row[f"error without that of the {what}"] = _percent(left) if found else "-"
    kinds = dict.fromkeys(step.kind for one in case.launches for step in (*one.body, *one.second))
    return {**row, "steps": " ".join(kinds), "gpu": case.gpu}


def worst(rows: pd.DataFrame, models: Sequence[str], processes: int) -> pd.DataFrame:
    """Return the worst cases of each model, as factors, with their faults."""
    tasks = []
    for model in models:
        factors = np.log(rows[model] / rows["simulated"]).abs()
        tasks += [(str(rows["case"][i]), model) for i in factors.nlargest(WORST).index]
    return pd.DataFrame(pages.in_processes(explain, tasks, processes))


def held_figures(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what the quick test holds: median and 90th percentile of each model's errors."""
    found = []
    for model in HELD:
        size = 100 * errors(rows, model).abs()
        ends = {"median": size.median(), "90th percentile": size.quantile(0.9)}
        found.append({"model": model, **{name: f"{value:.2f} %" for name, value in ends.items()}})
    return pd.DataFrame(found)


def draw(rows: pd.DataFrame) -> Figure:
    """Draw which share of the kernels errs by at most so much, a line per model."""
    models = [name for name in rows if name not in ("case", "simulated")]
    looks = styles(models)
    ax = sheet.new_axes(7.2, 3.4)
    share = 100 * np.arange(1, len(rows) + 1) / len(rows)
    for model in models:
        size = np.sort(100 * errors(rows, model).abs())
        look = looks[model]
        ax.plot(size, share, color=look.colour, linestyle=look.line, linewidth=1.5, label=model)
    ax.set_xscale("log")
    ticks = (1, 2, 5, 10, 20, 50, 100, 200)
    ax.set_xlim(0.5, 300)
    ax.set_xticks(ticks, map(str, ticks))
    ax.minorticks_off()
    ax.set_ylim(0, 100)
    ax.set_xlabel("error of the cycles, at most (%)", fontsize=sheet.LABEL)
    ax.set_ylabel("kernels (%)", fontsize=sheet.LABEL)
    ax.tick_params(labelsize=sheet.TEXT)
    sheet.grid(ax)
    sheet.open_frame(ax)
    sheet.legend_outside(ax)
    figure = ax.figure
    assert isinstance(figure, Figure)
    return figure


def _show_shrunk(name: str, model: str) -> None:
    """Print a case, and a smaller one of the same fault, to be copied."""
    case = rc.random_case(*map(int, name.split(":")))
    error = functools.partial(log_error, model=model)
    print(f"# {name}: {model} errs by {_percent(error(case))} of {cycles_of(case):.0f} cycles")
    small = shrunk(case, error)
    print(f"# made small: by {_percent(error(small))} of {cycles_of(small):.0f} cycles")
    for what, changes in (("GPU", MACHINE), ("kernel", KERNEL)):
        found, left = fault(small, error, changes)
        print(f"# {what}: {f'{_percent(left)} without {found}' if found else 'no single fault'}")
    print(rc.snippet(small, (model,)))


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--kernels", type=int, default=KERNELS, help="of each seed")
    parser.add_argument("--models", nargs="+", choices=ws.models.names(), metavar="NAME")
    parser.add_argument("--kept", action="store_true", help="take the cycles of cases.csv")
    parser.add_argument("--shrink", metavar="SEED:NUMBER", help="make a case small")
    parser.add_argument("--model", choices=ws.models.names(), metavar="NAME", default=MODELS[0])
    parser.add_argument("--renew", action="store_true", help="keep what the quick test holds")
    pages.add_processes(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.shrink is not None:
        if not re.fullmatch(r"\d+:\d+", arguments.shrink):
            parser.error(f"--shrink {arguments.shrink}: expected SEED:NUMBER, such as 202:476")
        _show_shrunk(arguments.shrink, arguments.model)
        return
    if arguments.renew:
        rows = measured([QUICK_SEED], QUICK_KERNELS, HELD, arguments.processes)
        pages.publish(PAGE, {"held": held_figures(rows)}, True)
        return
    models = tuple(arguments.models or MODELS)
    if arguments.kept:
        rows = pd.read_csv(DATA / "cases.csv")
        models = tuple(name for name in models if name in rows)
    else:
        rows = measured(arguments.seeds, arguments.kernels, models, arguments.processes)
    tables = {
        "errors": summary(rows, models),
        "worst": worst(rows, models, arguments.processes),
    }
    pages.publish(PAGE, tables, arguments.write)
    if arguments.kept:
        return
    pages.publish(PAGE, {"costs": costs(rows, models)}, arguments.write, where=pages.machine())
    if arguments.write:
        pages.write_table(PAGE, "cases", rows[["case", "simulated", *models]])


if __name__ == "__main__":
    main()
