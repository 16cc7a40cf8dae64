"""``warpstack sweep``."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import warpstack as ws
from warpstack._core import GPU_FIELDS
from warpstack._util.arguments import printable, value_text
from warpstack._util.headings import heading
from warpstack._util.lazy import pandas as pd
from warpstack._util.output_file import OutputFile
from warpstack.cli.common.gpu_options import add_gpu, report_unused, say_what_sizes_do
from warpstack.cli.common.layout import Look, text_table
from warpstack.cli.common.messages import say
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import add_output, line_width, print_table, say_text
from warpstack.cli.common.outputs import add_overwrite, output_file
from warpstack.cli.common.parser import CommandParser
from warpstack.cli.common.settings_text import print_settings
from warpstack.cli.common.stage_options import (
    DEFAULT_MODELS,
    add_access_order,
    add_anchor,
    add_l2,
    add_models,
    add_profiler,
    add_representative,
)
from warpstack.cli.common.trace_options import add_trace, is_source

if TYPE_CHECKING:
    from warpstack.cli.common.sweep_design import SweepDesign

SUMMARY = "predictions over a design space, of axes or of a file"


#: Columns that tell rows of a sweep from other tables.
_COLUMNS = {"app", "point", "kernel", "model", "cycles", "time_us"}
#: What a design file calls what options say, by their names in the parsed arguments.
_KEYS = {
    **{name: name for name in ("gpu", "set", "models", "anchor", "profiler")},
    **{"axis": "axes", "trace_config": "gpu", "option_values": "options"},
    **dict.fromkeys(("kernels", "launch", "workload", "size"), "kernels"),
    **dict.fromkeys(("compiler_options", "machine_code"), "kernels"),
    **dict.fromkeys(("skip_missing", "memory_limit", "device_memory"), "kernels"),
    **dict.fromkeys(("selection", "misses", "merge_threshold"), "options"),
    **dict.fromkeys(("access_order", "flush_l2", "initial_l2"), "options"),
}
#: Most reasons that are told why points cannot be predicted.
_MAX_REASONS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Predict over a design space: warpstack sweep saxpy.cu --gpu a100 --axis "
        "num_sms=54,108 --axis l1_mshrs=128,256,512; or warpstack sweep design.yaml, a file that "
        "says all of it."
    )
    add_trace(parser)
    (subject,) = (action for action in parser._actions if action.dest == "trace")
    subject.metavar = "TRACE|SOURCE.cu|DESIGN.yaml"
    subject.help = f"{subject.help}; or a design file, see docs/how-to/sweep.md"
    add_gpu(parser)
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="FIELD=VALUE,VALUE,...",
        help="values of a field of the GPU (see warpstack gpus --fields); repeated, all combinations",
    )
    add_models(parser, DEFAULT_MODELS)
    add_anchor(parser)
    add_representative(parser)
    add_access_order(parser)
    add_l2(parser)
    add_profiler(parser)
    add_option_values(parser)
    parser.add_argument("--output", "-o", metavar="FILE", help="write all rows (.csv, .parquet)")
    add_overwrite(parser)
    parser.add_argument("--store", metavar="FOLDER", help="write results as they come")
    parser.add_argument(
        "--resume", action="store_true", help="compute only what the store does not hold"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="threads (default: one per core)")
    add_output(parser)
    if isinstance(parser, CommandParser):
        parser.afterwards.append(partial(_find_design, parser))


def _find_design(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Note the design file that is given in place of a trace, ``design``; None: options say it all.

    Raises
    ------
    InputError
        If options say what the file says, too.
    """
    others = {
        key: action.option_strings[0]
        for action in parser._actions
        if (key := _KEYS.get(action.dest)) and getattr(arguments, action.dest) != action.default
    }
    paths = arguments.trace
    arguments.design = None
    if not any(path.endswith((".yaml", ".yml")) for path in paths):
        # Nothing but a file, whatever it is called, that is not a trace for sure.
        (path,) = paths if len(paths) == 1 else ("",)
        is_trace = is_source(path) or path.endswith(".g") or os.path.isdir(path)
        if not path or others or arguments.program or is_trace:
            return
    if len(paths) > 1:
        raise ws.InputError(
            f"{len(paths)} files are given, {', '.join(map(printable, paths[:3]))}: a design file stands "
            "alone, and names its kernels"
        )
    arguments.design = paths[0]
    if arguments.program:
        raise ws.InputError(
            f"-- {printable(arguments.program[0])}: {printable(paths[0])} is a design; it has the "
            "arguments of a program, `arguments:` beside `source:`"
        )
    for key, flag in others.items():
        raise ws.InputError(
            f"{flag}: {printable(paths[0])} is a design, which says it under `{key}:`; write it there"
        )


def run(arguments: argparse.Namespace) -> None:
    """Predict all points, draw what the design asks for, and print the fastest points."""
    from warpstack.cli.common.sweep_design import SweepDesign

    if arguments.design is not None:
        design = SweepDesign.read(arguments.design)
    elif not (arguments.trace or arguments.program or arguments.workload):
        raise ws.InputError(
            "there is nothing to sweep over; give a trace, a CUDA source (kernel.cu), --workload NAME "
            "or -- ./program with --axis FIELD=VALUE,VALUE,..., or a design file (.yaml)"
        )
    else:
        design = SweepDesign.of_options(arguments)
        _report_unused(arguments, design)
    _say_what_sizes_do(design)
    output = Path(arguments.output) if arguments.output else design.output
    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise ws.InputError(f"--output {printable(output)}: does not end in .csv or .parquet")
    inputs = design.inputs
    rows = None
    if output is not None:
        rows = output_file(arguments, path=output, inputs=inputs, is_ours=_is_table)
        rows.check()
    pictures = [
        output_file(arguments, path=request.file, label=f"plots: {request.kind}:", inputs=inputs)
        for request in design.plots
    ]
    places = [] if rows is None else [rows.place]
    for picture in pictures:
        picture.check()
        if picture.place in places:
            raise ws.InputError(
                f"{printable(arguments.design)}: {picture.label} file = {printable(picture.path)} is that of "
                "another picture or table"
            )
        places.append(picture.place)
    store = arguments.store or design.store
    if arguments.resume and store is None:
        raise ws.InputError(
            "--resume: there is no store; give --store FOLDER, or a line `store: FOLDER` of the design"
        )
    workers = arguments.workers or design.workers
    apps = design.load()
    start = time.perf_counter()
    table = ws.sweep(
        apps,
        design.gpu,
        design.axes,
        design.models,
        workers=workers,
        store=store,
        resume=arguments.resume,
        cache=True if design.cache is None else design.cache,
        options=design.options,
        profiler=design.profiler,
        anchor=design.anchor,
        progress=True,
    )
    seconds = time.perf_counter() - start
    if rows is not None:
        _write_table(table, rows)
    is_data = arguments.json or arguments.csv or arguments.latex
    has_answer = bool((table["error"] == "").any())
    for request, picture in zip(design.plots if has_answer else (), pictures, strict=False):
        picture.write(partial(request.draw, table, design.gpu))
        print(f"{request.kind}: {printable(request.file)}", file=sys.stderr)
    if is_data:
        print_table(arguments, table)
    elif has_answer:
        points, several = table["point"].nunique(), "s" if len(apps) > 1 else ""
        say_text(
            arguments,
            f"{points:,} points of {', '.join(table.attrs['axes']) or 'no field'}, {len(apps):,} "
            f"application{several}, {len(table):,} predictions in {seconds:.1f} s "
            f"({len(table) / seconds:,.0f} per s)"
            + (f", anchored by {design.anchor} at {design.gpu.title}" if design.anchor else ""),
        )
        options = dataclasses.replace(design.options, profiler=design.profiler)
        print_settings(arguments, options, design.models)
        _print_best(table, line_width(arguments))
    if output is not None and not is_data:
        print(f"\nAll rows: {printable(output)}", file=sys.stderr)
    _tell_failures(table)


def _report_unused(arguments: argparse.Namespace, design: SweepDesign) -> None:
    from warpstack.exploration.anchors import fields_of_anchor
    from warpstack.memory.caches import cache_fields
    from warpstack.models.prediction import fields_used

    read = fields_used(design.models) | cache_fields(arguments.access_order)
    by = "the models " + ", ".join(design.models)
    if design.anchor is not None:
        read |= fields_of_anchor(design.anchor, design.gpu)
        by += f" and the anchor {design.anchor}"
    report_unused(arguments, design.gpu, read, by)


def _say_what_sizes_do(design: SweepDesign) -> None:
    """Say how ``l1_size_kib`` can be an axis of a GPU whose L1 takes what shared memory leaves."""
    from warpstack.exploration.sweep import points_of

    fields, _ = points_of(design.axes)
    say_what_sizes_do(design.gpu, fields)


def _tell_failures(table: pd.DataFrame) -> None:
    """Warn of points that have no prediction, a line for each reason.

    Raises
    ------
    InputError
        If no point has one.
    """
    bad = table[table["error"] != ""]
    if bad.empty:
        return
    points = table["point"].nunique()
    counts = bad.groupby("error", sort=False)["point"].nunique()
    counts = counts.sort_values(ascending=False, kind="stable")
    firsts = {row["error"]: row for row in bad.drop_duplicates("error").to_dict("records")}
    for reason, count in counts.iloc[:_MAX_REASONS].items():
        first = firsts[reason]
        values = ", ".join(f"{axis}={value_text(first[axis])}" for axis in table.attrs["axes"])
        say(
            "warning",
            f"{count:,} of {points:,} points cannot be predicted: {reason} "
            f"(the first is point {first['point']}{values and f', {values}'})",
        )
    if len(counts) > _MAX_REASONS:
        say(
            "warning",
            f"{counts.iloc[_MAX_REASONS:].sum():,} more for {len(counts) - _MAX_REASONS:,} other reasons; "
            "the column error of --csv has all",
        )
    if len(bad) == len(table):
        raise ws.InputError(f"none of the {points:,} points can be predicted")


def _print_best(table: pd.DataFrame, width: int | None) -> None:
    """Print the fastest points of each application and model: least time of all kernels.

    Cycles do not tell them where the clock is an axis: they are shorter at a faster clock.
    """
    good = table[table["error"] == ""]
    keys = ["app", "model", "point", *table.attrs["axes"]]
    sums = ["instructions", "time_us", "cycles"]
    totals = good.groupby(keys, sort=False)[sums].sum().reset_index()
    totals["ipc"] = totals.pop("instructions") / totals["cycles"]
    best = (
        totals.sort_values("time_us", kind="stable").groupby(["app", "model"], sort=False).head(3)
    )
    best = best.sort_values(["app", "model", "time_us"], kind="stable")
    print("\nFastest points, by the time of all kernels together\n")
    columns = [str(column) for column in best.columns]
    rows = best.itertuples(index=False, name=None)
    units = {field.name: field.unit for field in GPU_FIELDS}
    look = Look(
        {axis: heading(axis, units.get(axis, "")) for axis in table.attrs["axes"]},
        {"time_us": "{:,.2f}", "cycles": "{:,.0f}", "ipc": "{:,.3f}"},
        ("app", "model"),
        ("ipc", "cycles"),
    )
    print(text_table(columns, rows, look, width=width))


def _write_table(table: pd.DataFrame, output: OutputFile) -> None:
    """Write a table, complete or not at all."""
    from warpstack._util.files import remove_leftovers
    from warpstack.tables import csv_texts

    is_csv = output.path.suffix == ".csv"
    write = csv_texts(table).to_csv if is_csv else table.to_parquet
    remove_leftovers(output.place.parent)
    output.write(lambda partial: write(partial, index=False))


def _is_table(path: Path) -> bool:
    """Return whether a file has rows of a sweep."""
    try:
        if path.suffix == ".parquet":
            from warpstack._util.lazy import pyarrow_parquet as pq

            columns = pq.read_schema(path).names
        else:
            with path.open(encoding="utf-8", newline="") as file:
                columns = next(csv.reader([file.readline(1 << 16)]), [])
    except (OSError, ValueError, csv.Error):
        return False
    return set(columns) >= _COLUMNS
