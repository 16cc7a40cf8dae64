#!/usr/bin/env python3
"""Trace, simulate and predict the papers' own benchmarks.

    python studies/originals.py FOLDER                       # print the tables
    python studies/originals.py FOLDER --only bfs cfd        # of some
    python studies/originals.py FOLDER --scale small         # smaller inputs, to see whether they run
    python studies/originals.py FOLDER --write               # into docs/data/originals

FOLDER holds executables that you have built, each as ``PROGRAM/program``; the page says of which
sources, and how they are compiled. The study makes their inputs. The cache folder keeps their traces:
a second run with the same executables only simulates and predicts. Errors are those of a program's
IPC over its traced launches, as in the MDM paper (Eq. 11). The configuration is `pascal-mdm` (MDM,
Table III), and for GPUMech's Figure 11 `gpumech-baseline`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import error_points
import numpy as np
import pages
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from original_programs import ABSENT, PROGRAMS, SIZES, Program
from original_programs.tracing import ProgramError, cache_folder, traced

import warpstack as ws
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, HATCHES, LABELS

PAGE = pages.DOCS / "quality" / "originals.md"
#: Results that a run keeps with ``--write``: a row per program, kernel, order and model.
MEASURED = pages.REPOSITORY / "data" / "originals" / "measured.csv"
#: Our own kernels' errors and latencies, as `warpstack figure` left them.
OURS = {"errors": "mdm-fig5.csv", "latency": "mdm-fig3.csv", "kernels": "gpumech-fig11.csv"}
GPU = "pascal-mdm"
ORDERS = ("timed", "round_robin")
#: MDM's Table V, the model of CAL 2019, and this package's own.
MODELS = (
    *("gpumech", "gpumech_plus", "mdm_queue", "mdm_mshr", "mdm", "mdm_cal2019"),
    *("closed_network", "interval_simulation"),
)
#: The model with caches of its own, which no order of misses changes.
ORDERLESS = "interval_simulation"
SHOWN = ("gpumech", "mdm", "closed_network", "interval_simulation")
#: The models in the picture.
DRAWN = (
    *("gpumech", "gpumech_plus", "mdm_queue", "mdm_mshr", "mdm"),
    *("closed_network", "interval_simulation"),
)
#: Cycles at which the bars of the misses' latency are cut.
LATENCY_LIMIT = 2000
LATENCY = ("l1", "mshr", "noc", "l2", "queue", "dram")
#: GPUMech's evaluation: its configuration, models (Table II), and the suites of its kernels.
GPUMECH_GPU = "gpumech-baseline"
GPUMECH_MODELS = (
    *("naive_interval", "markov_chain", "mt", "mt_mshr", "gpumech"),
    *("closed_network", "interval_simulation"),
)
GPUMECH_SUITES = ("Rodinia", "Parboil", "SDK")
#: Warps per launch in which the lines of loads are counted.
SAMPLED_WARPS = 64
#: Mean errors in percent that the papers report, by class.
PAPERS = {
    "MDM, Figure 5": {
        "MD": {"gpumech": 298, "gpumech_plus": 131, "mdm_queue": 63, "mdm_mshr": 60.3, "mdm": 18},
        "NMD": {"gpumech": 9, "mdm": 9},
        "all": {"gpumech": 162, "mdm": 13.9},
    },
    "CAL 2019, Figure 3": {
        "MD": {"gpumech": 444, "mdm_queue": 100, "mdm_mshr": 98, "mdm_cal2019": 32},
        "NMD": {"gpumech": 19, "mdm_cal2019": 16},
        "all": {"gpumech": 217, "mdm_cal2019": 23},
    },
}


def wide_loads(kernel: ws.KernelTrace) -> tuple[int, int]:
    """Return the loads that touch more than two lines of 128 bytes, and the instructions, of a sample.

    A load of consecutive words that does not start at a line touches two, which DPKI counts.
    """
    loads = kernel.instructions["kind"].eq("load").to_numpy()
    places = np.linspace(0, kernel.num_warps - 1, min(SAMPLED_WARPS, kernel.num_warps)).astype(int)
    wide = instructions = 0
    blocks = [len(warps) for _, warps in kernel.blocks()]
    ends = np.cumsum(blocks)
    for place in np.minimum(places, ends[-1] - 1):
        block = int(np.searchsorted(ends, place, side="right"))
        columns = kernel.warp(block, int(place - (ends[block] - blocks[block])))
        instructions += len(columns["instruction"])
        static, count = columns["memory_static"], columns["memory_count"]
        # Shared memory has wavefronts here and no sectors.
        own = kernel.instructions["space"].to_numpy()[static] == "global"
        line = columns["sector"] // 4
        start = np.cumsum(np.where(own, count, 0)) - np.where(own, count, 0)
        for first, many, load in zip(start[own], count[own], loads[static[own]], strict=True):
            wide += bool(load) and len(np.unique(line[first : first + many])) > 2
    return wide, instructions


def divergence(app: ws.App) -> dict[str, float]:
    """Return an application's DPKI, and that of loads of more than two lines, from a sample."""
    instructions = sum(kernel.num_instructions for kernel in app)
    dpki = sum(kernel.dpki() * kernel.num_instructions for kernel in app) / instructions
    wide = 0.0
    for kernel in app:
        found, sampled = wide_loads(kernel)
        wide += found / sampled * kernel.num_instructions if sampled else 0
    return {"dpki": dpki, "wide_dpki": 1000 * wide / instructions}


def longest(app: ws.App) -> ws.App:
    """Return the longest launch of each kernel."""
    best: dict[str, ws.KernelTrace] = {}
    for kernel in app:
        known = best.get(kernel.short_name)
        if known is None or kernel.num_instructions > known.num_instructions:
            best[kernel.short_name] = kernel
    return ws.App(list(best.values()))


def against(app: ws.App, gpu: str, models: tuple[str, ...], order: str) -> pd.DataFrame:
    """Predict: a row per launch and model."""
    table = ws.predict(app, ws.gpu(gpu), models, access_order=order)
    return table[["name", "model", "instructions", "cycles"]].assign(order=order)


def simulated(app: ws.App, gpu: str) -> pd.DataFrame:
    """Simulate: a row per launch, with the sums of the misses' latency by part."""
    results = ws.simulate(app, ws.gpu(gpu))
    table = ws.timing.as_table(results)[["name", "model", "instructions", "cycles"]]
    parts = pd.DataFrame([result.miss_latency["cycles"].to_dict() for result in results])
    misses = [result.misses for result in results]
    return pd.concat([table, parts[list(LATENCY)]], axis=1).assign(misses=misses, order="")


def measure(task: tuple[str, str, Path, Path]) -> pd.DataFrame | str:
    """Trace, simulate and predict a program: rows per kernel, or why not."""
    name, size, programs, cache = task
    program = next(each for each in PROGRAMS if each.name == name)
    try:
        folder, _ = traced(program, size, programs, cache)
    except (ProgramError, ws.InputError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return str(error).splitlines()[0]
    app = ws.load(folder)
    start = time.process_time()
    parts = [simulated(app, GPU).assign(gpu=GPU)]
    seconds = time.process_time() - start
    for order in ORDERS:
        models = tuple(m for m in MODELS if m != ORDERLESS or order == ORDERS[0])
        parts.append(against(app, GPU, models, order).assign(gpu=GPU))
    for kernel in longest(app) if program.suite in GPUMECH_SUITES else ():
        try:
            own = [
                simulated(ws.App([kernel]), GPUMECH_GPU),
                against(ws.App([kernel]), GPUMECH_GPU, GPUMECH_MODELS, ORDERS[0]),
            ]
        except ws.InputError as error:  # a block does not fit on an SM
            print(f"{name}: {error}", file=sys.stderr)
        else:
            parts += [part.assign(gpu=GPUMECH_GPU) for part in own]
    rows = pd.concat(parts, ignore_index=True).assign(launches=1)
    keys = ["gpu", "order", "model", "name"]
    rows = rows.groupby(keys, sort=False, as_index=False).sum()
    print(f"{name} done, simulated in {seconds:.0f} s", file=sys.stderr)
    return rows.assign(program=name, seconds=seconds, **divergence(app))


def described(results: pd.DataFrame) -> pd.DataFrame:
    """Return a row per program: suite, class, size, divergence, simulated cycles."""
    rows = results[(results["gpu"] == GPU) & (results["model"] == "simulation")]
    sums = rows.groupby("program", sort=False)[
        ["launches", "instructions", "cycles", "misses", *LATENCY]
    ].sum()
    first = rows.groupby("program", sort=False)[["dpki", "wide_dpki", "seconds"]].first()
    table = sums.join(first)
    known = {program.name: program for program in PROGRAMS}
    table["class"] = ["MD" if known[name].memory_divergent else "NMD" for name in table.index]
    table["suite"] = [known[name].suite for name in table.index]
    table["paper_launches"] = [known[name].paper_launches for name in table.index]
    return table


def errors(results: pd.DataFrame, keys: list[str], gpu: str = GPU) -> pd.DataFrame:
    """Return predicted / simulated IPC - 1 by keys, order and model."""
    rows = results[results["gpu"] == gpu]
    sums = rows.groupby([*keys, "order", "model"], sort=False)["cycles"].sum().reset_index()
    reference = sums[sums["model"] == "simulation"][[*keys, "cycles"]]
    found = sums[sums["model"] != "simulation"]
    found = found.merge(reference, on=keys, suffixes=("", "_simulated"))
    return found.assign(error=found["cycles_simulated"] / found["cycles"] - 1)


def percent(value: float, sign: str = "+") -> str:
    """Return a share as text in percent."""
    return "-" if value != value else f"{100 * value:{sign}.0f} %"


def program_table(results: pd.DataFrame) -> pd.DataFrame:
    """Return what was traced."""
    rows = []
    for name, row in described(results).iterrows():
        rows.append(
            {
                "program": name,
                "suite": row["suite"],
                "class in MDM": row["class"],
                "launches": f"{row['launches']:.0f}",
                "launches in MDM": f"{row['paper_launches']:.0f}",
                "warp instructions (M)": f"{row['instructions'] / 1e6:.1f}",
                "DPKI": f"{row['dpki']:.1f}",
                "DPKI of more than two lines": f"{row['wide_dpki']:.1f}",
                "simulated cycles": f"{row['cycles']:,.0f}",
            }
        )
    return pd.DataFrame(rows)


def our_errors() -> pd.DataFrame:
    """Return the errors of this project's own kernels by application and model."""
    table = pd.read_csv(pages.DOCS / "figures" / OURS["errors"])
    table["app"] = table["app"].replace({"kmeans": "k-means"})
    return table.pivot_table("error", "app", "model")


def error_table(results: pd.DataFrame) -> pd.DataFrame:
    """Return the error of each program's IPC in both orders, beside our own kernel's."""
    found = errors(results, ["program"]).pivot_table(
        "error", "program", ["order", "model"], sort=False
    )
    classes = described(results)["class"]
    ours = our_errors()
    short = {"timed": "timed", "round_robin": "turns"}
    rows = []
    for name in sorted(found.index, key=lambda each: (classes[each], each)):
        row = {"program": name, "class": classes[name]}
        for order in ORDERS:
            for model in SHOWN:
                if (order, model) in found:
                    row[f"{model}, {short[order]}"] = percent(found.loc[name, (order, model)])
        for model in SHOWN:
            if model in ours:
                row[f"{model}, our kernel"] = percent(ours[model].get(name, float("nan")))
        rows.append(row)
    return pd.DataFrame(rows)


def mean_table(results: pd.DataFrame) -> pd.DataFrame:
    """Return mean absolute errors by class: the papers', the originals' and our kernels'."""
    found = errors(results, ["program"])
    classes = described(results)["class"]
    found["class"] = classes.loc[found["program"]].to_numpy()
    ours = our_errors()
    rows = []
    for kind in ("NMD", "MD", "all"):
        for what, by_class in PAPERS.items():
            cells = {model: by_class[kind].get(model, float("nan")) / 100 for model in MODELS}
            rows.append({"class": kind, "of": what} | {m: percent(v, "") for m, v in cells.items()})
        part = found if kind == "all" else found[found["class"] == kind]
        for order, group in part.groupby("order", sort=False):
            means = group["error"].abs().groupby(group["model"]).mean()
            label = f"originals, {order.replace('_', ' ')}"
            rows.append(
                {"class": kind, "of": f"{label} ({group['program'].nunique()})"}
                | {m: percent(means.get(m, float("nan")), "") for m in MODELS}
            )
        names = [each for each in ours.index if each in set(part["program"])]
        means = ours.loc[names].abs().mean()
        rows.append(
            {"class": kind, "of": f"our kernels of the same, timed ({len(names)})"}
            | {m: percent(means.get(m, float("nan")), "") for m in MODELS}
        )
    return pd.DataFrame(rows)


def latency_table(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean latency of misses by part (MDM, Figure 3), our kernel's sum beside it."""
    table = described(results)
    ours = pd.read_csv(pages.DOCS / "figures" / OURS["latency"]).set_index("app")
    rows = []
    for name in sorted(table.index, key=lambda each: (table.loc[each, "class"], each)):
        row = table.loc[name]
        parts = row[list(LATENCY)].astype(float) / row["misses"]
        cells = {part: f"{parts[part]:.0f}" for part in LATENCY}
        own = ours.loc[name, list(LATENCY)].sum() if name in ours.index else float("nan")
        rows.append(
            {"program": name, "class": row["class"], **cells, "sum": f"{parts.sum():.0f}"}
            | {"sum, our kernel": f"{own:.0f}"}
        )
    return pd.DataFrame(rows)


def kernel_table(results: pd.DataFrame) -> pd.DataFrame:
    """Return the error of the CPI by kernel (GPUMech, Figure 11)."""
    if not (results["gpu"] == GPUMECH_GPU).any():
        return pd.DataFrame(columns=["program", "kernel", *GPUMECH_MODELS])
    found = errors(results, ["program", "name"], GPUMECH_GPU)
    found["error"] = 1 / (1 + found["error"]) - 1  # of the CPI
    wide = found.pivot_table("error", ["program", "name"], "model", sort=False)
    wide = wide[list(GPUMECH_MODELS)]
    rows = [
        {"program": program, "kernel": name.split("(")[0]}
        | {model: percent(value) for model, value in row.items()}
        for (program, name), row in wide.iterrows()
    ]
    sizes = wide.abs()
    ours = pd.read_csv(pages.DOCS / "figures" / OURS["kernels"])
    ours = ours["error"].abs().groupby(ours["model"]).mean()
    paper = {"markov_chain": 0.629, "gpumech": 0.132}
    for label, values in (
        ("mean of the absolute errors", sizes.mean()),
        ("the paper's, of its 40 kernels", pd.Series(paper)),
        ("of our kernels", ours),
    ):
        cells = {model: percent(values.get(model, float("nan")), "") for model in GPUMECH_MODELS}
        rows.append({"program": label, "kernel": "", **cells})
    below = (sizes < 0.2).mean()
    cells = {model: percent(below[model], "") for model in GPUMECH_MODELS}
    rows.append({"program": "kernels with errors below 20 %", "kernel": "", **cells})
    return pd.DataFrame(rows)


def draw_errors(results: pd.DataFrame) -> Figure:
    """Draw the error of each program's IPC (MDM, Figure 5), and beside it our own kernel's."""
    found = errors(results, ["program"])
    found = found[found["order"] == ORDERS[0]].pivot_table("error", "program", "model")
    classes = described(results)["class"]
    names = sorted(found.index, key=lambda each: (classes[each], each))
    index = pd.MultiIndex.from_arrays([[classes[name] for name in names], names])
    ours = our_errors().reindex(index=names, columns=DRAWN)
    panels = {"the original": found.loc[names], "our kernel": ours}
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    for ax, (title, table) in zip(axes, panels.items(), strict=True):
        percents = (100 * table[list(DRAWN)]).set_axis(index)
        error_points.draw(ax, percents, DRAWN, names=ax is axes[0])
        ax.set_title(title, fontsize=sheet.LABEL)
    both = 100 * pd.concat([table[list(DRAWN)] for table in panels.values()])
    axes[0].set_xlim(1.3 * both.min().min(), 1.3 * both.max().max())
    sheet.legend_outside(axes[-1])
    return figure


def draw_latency(results: pd.DataFrame) -> Figure:
    """Draw the latency of misses by part (MDM, Figure 3): the original, and our own kernel beside it."""
    table = described(results)
    parts = table[list(LATENCY)].div(table["misses"], axis=0).astype(float)
    ours = pd.read_csv(pages.DOCS / "figures" / OURS["latency"]).set_index("app")
    names = sorted(parts.index, key=lambda each: (table.loc[each, "class"] != "NMD", each))
    first_divergent = int((table["class"] == "NMD").sum())
    places = np.arange(len(names)) + 0.6 * (np.arange(len(names)) >= first_divergent)
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    ax = figure.subplots()
    for shift, values, alpha in ((-0.2, parts.loc[names], 1.0), (0.2, ours.reindex(names), 0.45)):
        below = pd.Series(0.0, index=names)
        for part in LATENCY:
            # Values above the end of the axis are not drawn, and the sum is written there.
            top = (below + values[part]).clip(upper=LATENCY_LIMIT)
            ax.bar(
                places + shift,
                top - below.clip(upper=LATENCY_LIMIT),
                bottom=below.clip(upper=LATENCY_LIMIT),
                width=0.36,
                color=COLOURS[part],
                hatch=HATCHES[part],
                edgecolor=sheet.EDGE,
                linewidth=0.3,
                alpha=alpha,
                label=LABELS[part] if alpha == 1.0 else None,
            )
            below = below + values[part]
        for place, whole in zip(places + shift, below, strict=True):
            if whole > LATENCY_LIMIT:
                ax.annotate(
                    f"{whole:.0f}", (place, LATENCY_LIMIT), (0, 2), textcoords="offset points",
                    fontsize=sheet.TINY, ha="center",
                )  # fmt: skip
    ax.set_xticks(places, names, fontsize=sheet.SMALL, **sheet.HALF_TURNED)
    ax.tick_params(axis="x", length=0)
    ax.set_ylim(0, 1.05 * LATENCY_LIMIT)
    ax.set_ylabel(f"cycles of an L1 miss, cut at {LATENCY_LIMIT}", fontsize=sheet.LABEL)
    ax.set_xlim(places[0] - 0.6, places[-1] + 0.6)
    sheet.open_frame(ax)
    ends = {"NMD": (0, first_divergent - 1), "MD": (first_divergent, len(names) - 1)}
    sheet.name_groups(ax, {kind: (places[a], places[b]) for kind, (a, b) in ends.items()})
    handles, labels = ax.get_legend_handles_labels()
    pale = Patch(facecolor="#cccccc", edgecolor=sheet.EDGE, linewidth=0.3)
    sheet.legend_outside(ax, [*handles[::-1], pale], [*labels[::-1], "pale: our own kernel"])
    return figure


def list_of_programs(programs: tuple[Program, ...]) -> pd.DataFrame:
    """Return sources, inputs, limits and changes."""
    rows = []
    for program in programs:
        notes = [*program.changes, *([f"with {program.build}"] if program.build else [])]
        if program.options:
            notes.append(f"`{' '.join(program.options)}`: {program.why_options}")
        limit = program.why_launches or "all"
        if program.launches:
            limit = f"first {program.launches}: {limit}"
        rows.append(
            {
                "program": program.name,
                "source": f"`{program.folder}`: " + ", ".join(f"`{s}`" for s in program.sources),
                "input": program.input,
                "launches traced": limit,
                "changes and options": "; ".join(notes) or "none",
            }
        )
    return pd.DataFrame(rows)


def failures(absent: dict[str, str]) -> pd.DataFrame:
    """Return what could not be had, and why."""
    rows = [(each.name, each.paper, each.why) for each in ABSENT]
    rows += [(name, "", why) for name, why in absent.items()]
    return pd.DataFrame(rows, columns=["benchmark", "paper", "why"])


def summary(results: pd.DataFrame) -> str:
    """Return how long it took, as a sentence."""
    table = described(results)
    seconds, instructions = table["seconds"].sum(), table["instructions"].sum()
    return (
        f"{len(table)} programs, {instructions / 1e6:.0f} M warp instructions, simulated in "
        f"{seconds:.0f} s on one core."
    )


def measured(arguments: argparse.Namespace) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of all programs that could be traced, and why the others could not."""
    keep = arguments.keep
    if keep and keep.exists():
        return pd.read_csv(keep, keep_default_na=False), {}
    tasks = [
        (name, arguments.scale, arguments.folder.resolve(), arguments.cache.resolve())
        for name in arguments.only
    ]
    parts = pages.in_processes(measure, tasks, arguments.processes)
    absent = {
        task[0]: part for task, part in zip(tasks, parts, strict=True) if isinstance(part, str)
    }
    frames = [part for part in parts if isinstance(part, pd.DataFrame)]
    if not frames:
        raise SystemExit(f"{arguments.folder}: no program of it was traced")
    results = pd.concat(frames, ignore_index=True)
    if keep:
        results.to_csv(keep, index=False)
    return results, absent


def kept() -> pd.DataFrame:
    """Return what ``--write`` has kept, of which tools/pictures draws the pictures of the page."""
    return pd.read_csv(MEASURED, keep_default_na=False).assign(seconds=0.0)


def main() -> None:
    """Measure the programs asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, nargs="?", help="folder with the executables"
    )
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", default=names)
    parser.add_argument("--scale", choices=SIZES, default="paper", help="of the inputs")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="where traces are kept")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="CSV",
        help="what was measured; read from there, without measuring, when the file exists",
    )
    pages.add_processes(parser)
    arguments = parser.parse_args()
    if not (arguments.keep and arguments.keep.exists()):
        if arguments.folder is None:
            parser.error("FOLDER: give the folder with the executables")
        pages.check_programs(parser, arguments.folder, PAGE)
    if arguments.write and (arguments.scale != "paper" or arguments.only != names):
        parser.error("--write is of all programs at the scale paper")
    results, absent = measured(arguments)
    tables = {
        "programs": program_table(results),
        "means": mean_table(results),
        "errors": error_table(results),
        "latency": latency_table(results),
        "kernels": kernel_table(results),
        "absent": failures(absent),
        "list": list_of_programs(PROGRAMS),
    }
    pages.publish(PAGE, tables, arguments.write)
    print(summary(results))
    if arguments.write:
        MEASURED.parent.mkdir(parents=True, exist_ok=True)
        results.drop(columns="seconds").to_csv(MEASURED, index=False, float_format="%.9g")


if __name__ == "__main__":
    main()
