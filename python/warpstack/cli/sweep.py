"""``warpstack sweep``."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from functools import partial
from pathlib import Path

import warpstack as ws
from warpstack._core import GPU_FIELDS
from warpstack._util.arguments import printable, value_text
from warpstack._util.headings import heading
from warpstack._util.lazy import pandas as pd
from warpstack._util.output_file import OutputFile
from warpstack.cli.common.layout import Look, text_table
from warpstack.cli.common.messages import say
from warpstack.cli.common.output import add_output, line_width, print_table, say_text
from warpstack.cli.common.outputs import add_overwrite, output_file

SUMMARY = "predictions over a design space that a file describes"


#: Columns that tell rows of a sweep from other tables.
_COLUMNS = {"app", "point", "kernel", "model", "cycles", "time_us"}
#: Most reasons that are told why points cannot be predicted.
_MAX_REASONS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("design", help="a .yaml file; see docs/how-to/sweep.md")
    parser.add_argument("--output", "-o", metavar="FILE", help="write all rows (.csv, .parquet)")
    add_overwrite(parser)
    parser.add_argument("--store", metavar="FOLDER", help="write results as they come")
    parser.add_argument(
        "--resume", action="store_true", help="compute only what the store does not hold"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="threads (default: one per core)")
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Predict all points, draw what the file asks for, and print the fastest points."""
    from warpstack.cli.common.sweep_file import SweepFile

    design = SweepFile.read(arguments.design)
    output = Path(arguments.output) if arguments.output else design.output
    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise ws.InputError(f"--output {printable(output)}: does not end in .csv or .parquet")
    inputs = [given["trace"] for given in design.kernels.values() if "trace" in given]
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
                f"{printable(design.path)}: {picture.label} file = {printable(picture.path)} is that of "
                "another picture or table"
            )
        places.append(picture.place)
    store = arguments.store or design.store
    if arguments.resume and store is None:
        raise ws.InputError(
            "--resume: there is no store; add a line `store: FOLDER` or give --store"
        )
    workers = arguments.workers or design.workers
    apps = design.load(progress=True)
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
            f"({len(table) / seconds:,.0f} per s)",
        )
        _print_best(table, line_width(arguments))
    if output is not None and not is_data:
        print(f"\nAll rows: {printable(output)}", file=sys.stderr)
    _tell_failures(table)


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
