#!/usr/bin/env python3
"""Predict time lines of public programs beside the times that they printed on cards.

    python studies/timelines.py FOLDER                  # print the tables
    python studies/timelines.py FOLDER --write          # into docs/data/timelines
    python studies/timelines.py FOLDER --traces TRACES  # keep the traces, or take them from there

FOLDER holds executables that you have built, each as ``SUITE/PROGRAM/program``; the page says how. The
programs run without a GPU, those of large launches with samples of their blocks. What a program prints
it has from events in the default stream, or from a clock of the host between its calls: the time line
gives the same differences. Nothing is fitted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pages
import pandas as pd

import warpstack as ws
from warpstack.cuda import host

PAGE = pages.DOCS / "quality" / "timelines.md"
INPUTS = Path(__file__).with_name("timeline_programs")
#: The GPU that the programs see, and the cards of the table of all programs.
SEEN, CARDS = "a100", ("rtx4090", "h100-sxm")
ASYNC = "code-samples/async"
SAMPLES = "cuda-samples/"
RODINIA = "Rodinia/"
TRAIN = "llm.c/train_gpt2_fp32"
#: What a program prints, in order, each with the repetitions of which it is the mean.
PRINTED = {
    ASYNC: {"sequential": 1, "version 1": 1, "version 2": 1},
    f"{SAMPLES}0/simpleMultiCopy": {
        "copy to the GPU": 1,
        "copy to the host": 1,
        "kernel": 1,
        "serialized": 10,
        "overlapped": 10,
    },
    f"{SAMPLES}0/simpleStreams": {"copy": 1, "kernel": 1, "not streamed": 100, "streamed": 100},
    f"{SAMPLES}0/asyncAPI": {"GPU": 1},
    f"{SAMPLES}0/concurrentKernels": {"all kernels": 1},
    f"{SAMPLES}0/simpleHyperQ": {"all kernels": 1},
    f"{SAMPLES}0/UnifiedMemoryStreams": {},
    f"{SAMPLES}3/simpleCudaGraphs": {},
    TRAIN: {},
    **{f"{RODINIA}{name}": {} for name in ("lavaMD", "srad_v1", "particlefilter_float", "b+tree")},
}
#: What a program has from the host's clock: from the first of its calls to the last, as places in the
#: order of all calls. A stage begins when the call before it has returned.
STAGES = {
    f"{RODINIA}lavaMD": {"copy in": (5, 8), "kernel": (9, 10), "copy out": (11, 11)},
    f"{RODINIA}srad_v1": {"copy in": (16, 16), "compute": (18, 717), "copy out": (719, 719)},
    f"{RODINIA}particlefilter_float": {
        "copy in": (14, 19),
        "kernels": (20, 56),
        "copy out": (57, 69),
    },
    f"{RODINIA}b+tree": {
        "ranges: copy in": (10, 18),
        "ranges: kernel": (19, 20),
        "ranges: copy out": (21, 22),
        "keys: copy in": (39, 44),
        "keys: kernel": (45, 46),
        "keys: copy out": (47, 47),
    },
}
ARGUMENTS = {
    TRAIN: "-i train.bin -j val.bin -b 4 -t 64 -v 100 -m 1 -s 100 -g 1",
    f"{RODINIA}lavaMD": "-boxes1d 10",
    f"{RODINIA}srad_v1": "100 0.5 502 458",
    f"{RODINIA}particlefilter_float": "-x 128 -y 128 -z 10 -np 1000",
    f"{RODINIA}b+tree": "file mil.txt command command.txt",
}
#: Programs of large launches, of whose blocks some are traced.
SAMPLED = {
    ASYNC,
    f"{SAMPLES}0/simpleMultiCopy",
    f"{SAMPLES}0/simpleStreams",
    f"{SAMPLES}0/asyncAPI",
    f"{SAMPLES}3/simpleCudaGraphs",
    *STAGES,
}
#: Seconds after which a program is given up.
PATIENCE = 600
#: A post's cards: engines that copy, hardware queues, kernels at a time; what its schematic says, in parts
#: of the sequential version's time, and what it measured, in ms.
ENGINES = {
    "C1060": ((1, 1, 1), (1.0, 8 / 12), (12.92381, 13.63690, 8.84588)),
    "C2050": ((2, 1, 16), (6 / 12, 9 / 12), (9.984512, 5.735584, 7.597984)),
    "K20c": ((2, 32, 32), (6 / 12, 6 / 12), (7.101760, 3.974144, 3.967616)),
}
#: The card whose kernels stand for those of the post's cards.
STAND_IN = "rtx3090"


def card(name: str) -> ws.Gpu:
    """Return a card: one that warpstack knows, or one like it with the values of `cards.csv`."""
    cards = pd.read_csv(INPUTS / "cards.csv")
    own = cards[cards["gpu"] == name]
    if own.empty:
        return ws.gpu(name)
    like = ws.gpu(own["like"].iloc[0])
    values = {
        row.field: type(getattr(like, row.field))(row.value) for row in own.itertuples(index=False)
    }
    return like.replace(**values)


def traced(name: str, folder: Path, traces: Path) -> ws.App:
    """Return the trace of a program: a kept one, or that of a run."""
    place = traces / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        program = folder / name / "program"
        # simpleStreams finds its results wrong when not all blocks run; its calls are the same.
        shortened = name.endswith("simpleStreams")
        output, here = place.resolve(), Path.cwd()
        os.chdir(program.parent)
        run = host.trace_program(
            ["./program", *ARGUMENTS.get(name, "").split()],
            output,
            gpu=ws.gpu(SEEN),
            sample_blocks="auto" if name in SAMPLED else 1,
            run_others=not shortened,
            allow_uninitialized=name == TRAIN,
            timeout_s=PATIENCE,
            host_time=False,
        )
        os.chdir(here)
        if run.problem() and not shortened:
            raise SystemExit(f"{program}: {run.problem()}")
    app = ws.load(place)
    return app if isinstance(app, ws.App) else ws.App([app])


def printed(line: ws.Timeline, repetitions: Mapping[str, int]) -> dict[str, float]:
    """Return what a program would print, in ms: from the first to the second event of each pair.

    ``calls`` is the host's time from the first call of the first pair to the return of the last.
    """
    table = line.table
    events = table[(table["operation"] == "event_record") & (table["stream"] == 0)]
    starts, ends = events.iloc[::2], events.iloc[1::2]
    # Behind what they print, programs record no more events in the default stream.
    found = {
        name: (end - start) / count / 1e3
        for (name, count), start, end in zip(
            repetitions.items(), starts["start_us"], ends["start_us"], strict=True
        )
    }
    if not events.empty:
        calls = table.loc[starts.index[0] : ends.index[0]]
        took = calls["returned_us"].iloc[-1] - calls["queued_us"].iloc[0] + line.gpu.host_call_us
        found["calls"] = took / 1e3
    return found


def on_the_host(line: ws.Timeline, stages: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    """Return what the host's clock would say of stages, in ms: `STAGES` says what they are."""
    returned = line.table["returned_us"]
    return {
        name: (returned.iloc[last] - returned.iloc[first - 1]) / 1e3
        for name, (first, last) in stages.items()
    }


def compared(apps: Mapping[str, ws.App]) -> pd.DataFrame:
    """Return published beside predicted times."""
    rows = []
    figures = pd.read_csv(INPUTS / "figures.csv")
    for (name, gpu), group in figures.groupby(["program", "gpu"], sort=False):
        if name not in apps:
            continue
        print(f"{name} on {gpu}", file=sys.stderr, flush=True)
        line = ws.timeline(apps[name], card(gpu))
        predicted = printed(line, PRINTED[name]) | on_the_host(line, STAGES.get(name, {}))
        rows += [
            {
                "program": name.rsplit("/", 1)[1],
                "card": row.card,
                "time": row.time,
                "published (ms)": f"{row.published_ms:.3g}",
                "predicted (ms)": f"{predicted[row.time]:.3g}",
                "error": f"{100 * (predicted[row.time] / row.published_ms - 1):+.0f} %",
                "source": row.source,
            }
            for row in group.itertuples(index=False)
        ]
    return pd.DataFrame(rows)


def overlaps(table: pd.DataFrame) -> pd.DataFrame:
    """Return what overlap gains: parts of the time without it, published and predicted."""
    pairs = {
        "async": ("sequential", ("version 1", "version 2")),
        "simpleMultiCopy": ("serialized", ("overlapped",)),
        "simpleStreams": ("not streamed", ("streamed",)),
    }
    rows = []
    for (program, name), group in table.groupby(["program", "card"], sort=False):
        whole, parts = pairs.get(str(program), ("", ()))
        values = group.set_index("time")[["published (ms)", "predicted (ms)"]].astype(float)
        rows += [
            {
                "program": program,
                "card": name,
                "time": part,
                **{
                    f"{kind} part": f"{values[f'{kind} (ms)'][part] / values[f'{kind} (ms)'][whole]:.2f}"
                    for kind in ("published", "predicted")
                },
            }
            for part in parts
        ]
    return pd.DataFrame(rows)


def by_engines(app: ws.App) -> pd.DataFrame:
    """Return which part of the sequential time the versions of the post take with a card's engines.

    A copy of a quarter takes as long as the kernel of a quarter, as the post has chosen its kernel.
    """
    base = ws.gpu(STAND_IN)
    quarter = app.kernels[1]
    took = float(ws.predict(quarter, base, profiler="nsys")["time_us"].iloc[0])
    moved = int(app.operations.query("operation == 'copy'")["bytes"].min())
    rows = []
    for name, ((engines, queues, grids), schematic, measured) in ENGINES.items():
        gpu = base.replace(
            copy_engines=engines,
            hardware_queues=queues,
            concurrent_grids=grids,
            host_link_gbs=moved / took / 1e3,
            copy_start_us=0,
        )
        times = printed(ws.timeline(app, gpu), PRINTED[ASYNC])
        for number, part in enumerate(schematic, 1):
            rows.append(
                {
                    "card": f"Tesla {name}",
                    "copy engines": engines,
                    "queues": queues,
                    "version": number,
                    "schematic": f"{part:.2f}",
                    "published": f"{measured[number] / measured[0]:.2f}",
                    "predicted": f"{times[f'version {number}'] / times['sequential']:.2f}",
                }
            )
    return pd.DataFrame(rows)


def of_programs(apps: Mapping[str, ws.App]) -> pd.DataFrame:
    """Return the totals of each program on two cards, and which change would gain most."""
    rows = []
    for name, app in apps.items():
        for gpu in CARDS:
            print(f"{name} on {gpu}", file=sys.stderr, flush=True)
            line = ws.timeline(app, gpu)
            totals = line.totals
            changes = line.what_if().sort_values("speedup", ascending=False).iloc[0]
            share = totals["copies_hidden"]
            hidden = "-" if np.isnan(share) else f"{100 * share:.0f} %"
            rows.append(
                {
                    "program": name.rsplit("/", 1)[-1],
                    "card": line.gpu.title,
                    "operations": len(line),
                    "streams": int(np.unique(line.table.query("stream >= 0")["stream"]).size),
                    "time (us)": f"{totals['time_us']:.4g}",
                    "a kernel runs (us)": f"{totals['kernels_us']:.4g}",
                    "a copy runs (us)": f"{totals['copies_us']:.4g}",
                    "copies hidden": hidden,
                    "gains most": changes["what_if"],
                    "speed-up": f"{changes['speedup']:.2f}",
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Trace the programs that are there, and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder with the executables")
    parser.add_argument("--traces", type=Path, help="folder of traces that are kept")
    arguments = parser.parse_args()
    from timeline_programs.layer import layer  # loads Triton

    pages.check_programs(parser, arguments.folder, PAGE)
    with tempfile.TemporaryDirectory(prefix="warpstack-timelines-") as temporary:
        traces = arguments.traces or Path(temporary)
        apps: dict[str, ws.App] = {}
        for name in PRINTED:
            lacks = pages.lacks_program(arguments.folder, name)
            if lacks and arguments.write:
                parser.error(f"FOLDER: {arguments.folder}: {lacks}")
            if lacks:
                print(f"left out: {lacks}", file=sys.stderr)
                continue
            print(name, file=sys.stderr, flush=True)
            apps[name] = traced(name, arguments.folder, traces)
        if not apps:
            raise SystemExit(f"{arguments.folder}: none of the programs is there")
        figures = compared(apps)
        tables = {"figures": figures, "overlaps": overlaps(figures)}
        if ASYNC in apps:
            tables["engines"] = by_engines(apps[ASYNC])
        # Those of Rodinia have one stream and nothing that overlaps.
        of_streams = {name: app for name, app in apps.items() if name not in STAGES}
        tables["programs"] = of_programs({**of_streams, "transformer layer in Triton": layer()})
        pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
