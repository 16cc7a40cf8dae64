"""``warpstack validate``."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import warpstack as ws
from warpstack._util.arguments import as_path, printable
from warpstack._util.headings import heading, number, unit_of
from warpstack._util.input_file import MAX_TABLE_BYTES, read_input
from warpstack._util.lazy import pandas as pd
from warpstack._util.output_file import OutputFile
from warpstack.cli.common.layout import Look
from warpstack.cli.common.output import add_output, print_about, print_table
from warpstack.cli.common.pictures import add_plot, check_picture, look_options, save_picture
from warpstack.errors import shown

_WRITES_THEM = "give what predict --csv or predict --json writes"
#: What files are by their endings.
_KINDS = {
    **dict.fromkeys((".cu", ".cuh", ".cpp", ".cc", ".h", ".py"), "is source text"),
    **dict.fromkeys((".traceg", ".trace", ".g"), "is a trace"),
    **dict.fromkeys((".yaml", ".yml", ".config"), "describes a GPU or a sweep"),
    ".ncu-rep": "is a report of Nsight Compute, which is a reference and comes last",
}

SUMMARY = "errors of predictions against references"

#: Columns of text in what predict and simulate print.
_TEXT_COLUMNS = ("gpu_changes", "profiler", "name", "gpu", "app", "change", "model")
#: Columns of text in what this command prints.
_LEFT = (
    *("source", "app", "suite", "class", "name", "gpu", "gpu_changes", "model", "status"),
    *("metric", "profiler_metric"),
    *("largest_stall_predicted", "largest_stall_measured"),
)
#: Columns in the unit of the metric.
_OF_METRIC = ("predicted", "measured", "mae")
#: Columns that are left out first where the terminal is narrow.
_LEAST = (
    *("excluded", "unmatched", "status", "spearman", "same_largest_stall_%", "ratio"),
    *("gmean_ratio", "stack_distance_%", "mean_stack_distance_%", "pearson", "max_error_%"),
    *("largest_stall_predicted", "largest_stall_measured", "mae"),
)
#: Columns of numbers that times are computed with.
_OF_TIMES = ("clock_ghz", "time_us", "launch_us", "time_s", "launches")
#: Columns made of CPI stacks, which only some references have.
_OF_STACKS = (
    *("stack_distance", "largest_stall_predicted", "largest_stall_measured"),
    *("mean_stack_distance", "same_largest_stall"),
)
#: Columns that say nothing where they are the same everywhere.
_CONSTANT = ("gpu", "gpu_changes", "source", "suite", "class", "app", "metric", "profiler_metric")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "predictions",
        nargs="+",
        help="what predict, simulate or caches printed with --csv or --json",
    )
    parser.add_argument(
        "reference",
        help="what nsys stats, ncu --csv or nvprof --csv wrote, a report of Nsight Compute (.ncu-rep), "
        "or a table of results",
    )
    parser.add_argument(
        "--metric",
        help="column to compare, or all: every statistic that both sides have (default: all of Nsight "
        "Compute, times of a reference that has no cycles, else cycles)",
    )
    parser.add_argument(
        "--by",
        choices=("model", "kernel", "app", "suite", "class", "pairs"),
        default="model",
        help="a row per this, for each model and metric; pairs: how often the faster of two launches is "
        "named, and by how much (default: model)",
    )
    parser.add_argument(
        "--pairs",
        choices=("kernel", "app"),
        help="what an error is of, with --by model, app, suite or class: a kernel, or the sum of an "
        "application (default: kernel)",
    )
    parser.add_argument(
        "--match",
        choices=("auto", "number", "order"),
        default="auto",
        help="match launches by number, or by name and order (default: what fits)",
    )
    parser.add_argument(
        "--skip",
        type=int,
        default=0,
        metavar="N",
        help="launches of the measured kernels that the profiler skipped (its --launch-skip)",
    )
    parser.add_argument("--app", help="the application that the predictions are of")
    parser.add_argument(
        "--suite", action="append", default=[], metavar="APP=SUITE", help="may be repeated"
    )
    parser.add_argument(
        "--class",
        dest="classes",
        action="append",
        default=[],
        metavar="APP=CLASS",
        help="such as bfs=MD; may be repeated",
    )
    parser.add_argument(
        "--clock-ghz",
        type=float,
        metavar="GHZ",
        help="turns measured times into cycles, which are compared then",
    )
    parser.add_argument(
        "--version",
        dest="versions",
        action="append",
        default=[],
        metavar="KERNEL=WHAT",
        help="with --by pairs: what a kernel computes, such as naive=transpose; may be repeated",
    )
    add_plot(parser, "draw errors and values of the first metric (.png, .pdf, .svg)")
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the errors of predictions, by what ``--by`` says."""
    from warpstack.tables import STACK_COMPONENTS

    versions = _pairs("--version", arguments.versions, "KERNEL=WHAT")
    if versions and arguments.by != "pairs":
        raise ws.InputError("--version is of --by pairs; give both")
    if arguments.pairs is not None and arguments.by in ("kernel", "pairs"):
        raise ws.InputError(
            f"--pairs {arguments.pairs} says of what errors are summed up, and --by {arguments.by} sums up "
            "none; leave one of them out"
        )
    picture = check_picture(arguments)
    predictions = [read_predictions(path, arguments.metric) for path in arguments.predictions]
    if arguments.app is not None:
        predictions = [table.assign(app=arguments.app) for table in predictions]
    table = ws.validate(
        predictions,
        arguments.reference,
        metric=arguments.metric,
        match=arguments.match,
        skip=arguments.skip,
        clock_ghz=arguments.clock_ghz,
        suites=_pairs("--suite", arguments.suite),
        classes=_pairs("--class", arguments.classes),
    )
    fractions = ["error", "mape", "max_error"]
    fractions += ["stack_distance", "mean_stack_distance", "same_largest_stall"]
    fractions += [
        f"{of}{name}" for of in ("", "version_") for name in ("right_winner", "ratio_within")
    ]
    formats: dict[str, Any] = {
        **dict.fromkeys(_OF_METRIC, number),
        **dict.fromkeys([f"{name}_%" for name in fractions], "{:,.1f}"),
        **dict.fromkeys(["ratio", "gmean_ratio", "pearson", "spearman"], "{:,.3f}"),
    }
    shown, what = table, ""
    if arguments.by == "pairs":
        shown = ws.validation.pair_errors(table, versions or None)
    elif arguments.by != "kernel":
        by = None if arguments.by == "model" else arguments.by
        shown = ws.validation.validation_errors(table, by, pairs=arguments.pairs or "kernel")
    if not (arguments.json or arguments.csv):
        # Columns that are empty or the same everywhere go to a line above.
        dull = [c for c in _CONSTANT if c in shown and len(shown[c].unique()) == 1]
        about = [str(shown[c].iloc[0]) for c in dull if c != "metric" and shown[c].iloc[0] != ""]
        what = shown["metric"].iloc[0] if "metric" in dull else "several metrics"
        title = heading(what) if what in ("time_us", "time_s") else what
        print_about(arguments, f"{title}, predicted against reference: {', '.join(about)}")
        # Unknown stacks are left out, as are the cycles from which applications are added up.
        needless = [c for c in _OF_STACKS if c in shown]
        needless = [c for c in needless if (shown[c].isna() | (shown[c] == "")).all()]
        needless += [f"{side}_{p}" for side in ("predicted", "measured") for p in STACK_COMPONENTS]
        shown = shown.drop(columns=[*dull, *(c for c in needless if c in shown)])
        for name in [name for name in fractions if name in shown]:
            shown[name] = 100 * shown[name]
        shown = shown.rename(columns={name: f"{name}_%" for name in fractions})
    unit = what if what == "cycles" else unit_of(what)
    heads = {name: heading(name, unit) for name in _OF_METRIC}
    print_table(arguments, shown, Look(heads, formats, _LEFT, _LEAST))
    if picture is not None:
        _draw(table[table["metric"] == table["metric"].iloc[0]], picture, look_options(arguments))


def read_predictions(path: str, metric: str | None) -> pd.DataFrame:
    """Read what ``predict``, ``simulate`` or ``caches`` printed with ``--csv`` or ``--json``.

    Raises
    ------
    InputError
        If the file is something else; the message names the file and the place in it.
    """
    from warpstack.tables import STACK, checked_table, csv_numbers, texts_of_csv
    from warpstack.traces.io.common import reading
    from warpstack.validation.quantities import COMPARABLE

    place = as_path("predictions", path)
    where = printable(place)
    if place.is_dir():
        raise ws.InputError(f"{where}: is a folder; {_WRITES_THEM}")
    with reading(place):
        text = read_input(place, "table", MAX_TABLE_BYTES)
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):  # PowerShell redirects into UTF-16
        text = text.decode("utf-16", "replace").encode()
    text = text.removeprefix(codecs.BOM_UTF8)
    is_json = text.lstrip()[:1] == b"[" or re.match(rb'\s*\{\s*"predictions"', text) is not None
    if wrong := "" if is_json else _what_else(place, text):
        raise ws.InputError(f"{where}: {wrong}; {_WRITES_THEM}")
    try:
        if is_json:
            records = json.loads(text)
            if isinstance(records, dict):  # of --what-if
                records = records["predictions"]
            if not all(isinstance(record, dict) for record in records):
                raise ValueError("a list, but not of the rows of predictions")
            table = pd.DataFrame([_flat(record) for record in records])
        else:
            _check_head(text)
            table = pd.read_csv(io.BytesIO(text), dtype=dict.fromkeys(_TEXT_COLUMNS, str))
            table = texts_of_csv(table)
            if not isinstance(table.index, pd.RangeIndex):
                raise ValueError(_where_too_long(text))
    except json.JSONDecodeError as error:
        wrong = f"line {error.lineno}: damaged JSON: {error.msg}"
    except (pd.errors.ParserError, UnicodeDecodeError):
        wrong = _where_too_long(text)  # the parser's own words are about its state
    except (ValueError, RecursionError) as error:
        wrong = str(error)
    if wrong:
        raise ws.InputError(f"{where}: not predictions: {wrong}; {_WRITES_THEM}")
    if "kernel" not in table:
        raise ws.InputError(f"{where}: not predictions: JSON without kernel; {_WRITES_THEM}")
    metrics = COMPARABLE if metric in (None, "all") else (metric,)
    wanted = dict.fromkeys(("kernel", *metrics, "cycles", "instructions", *STACK, *_OF_TIMES))
    numbers = [name for name in wanted if name in table]

    def place_of(row: int) -> str:
        return f"entry {row + 1}" if is_json else f"line {_line_of_row(text, row)}"

    if (missing := table["kernel"].isna().to_numpy()).any():
        raise ws.InputError(f"{where}: {place_of(int(missing.argmax()))}: kernel is missing")
    table = csv_numbers(where, table, numbers, place_of, whole=("kernel",), texts=not is_json)
    return checked_table(where, table, texts=_TEXT_COLUMNS)


def _what_else(place: Path, text: bytes) -> str:
    """Return what a file is that is neither a table with a column ``kernel`` nor a list of rows."""
    from warpstack._util.foreign_file import foreign

    if not text.strip():
        return "is empty: the command that was to write it did not"
    if kind := _KINDS.get(place.suffix.lower()):
        return kind
    if text.lstrip()[:1] == b"{":
        return "is JSON, but not the list of rows that predict --json prints"
    rows = list(itertools.islice(_lines_and_rows(text), 1))
    names = rows[0][1] if rows else []
    if "kernel" in names:
        return ""
    if _is_measured(place):
        return "is a reference, which comes last (validate PREDICTIONS REFERENCE)"
    if known := foreign(place.name, text[: 1 << 16]):
        return f"is {known[0]}"
    return "has no column kernel" if len(names) > 1 else "is not a table"


def _where_too_long(text: bytes) -> str:
    """Return which line has more values than the first; too few are missing ones."""
    columns = 0
    for line, values in _lines_and_rows(text):
        columns = columns or len(values)
        if len(values) > columns:
            return f"line {line} has {len(values)} values under {columns} columns"
    return "damaged CSV"


def _is_measured(place: Path) -> bool:
    """Return whether a file is one that references are read from."""
    with contextlib.suppress(ws.InputError):
        return not ws.validation.reference.read(place).empty
    return False


def _check_head(text: bytes) -> None:
    """Raise a `ValueError` if a CSV text names a column twice, of which pandas would rename one."""
    names = next((values for _, values in _lines_and_rows(text)), [])
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the column {shown(twice[0])} is there twice")


def _line_of_row(text: bytes, row: int) -> int:
    """Return the line in which a row of a CSV text begins; the names of the columns are no row."""
    rows = itertools.islice(_lines_and_rows(text), row + 1, None)
    return next((line for line, _ in rows), row + 2)


def _lines_and_rows(text: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield where each row of a CSV text begins and its values, as far as it is one.

    Empty lines are no rows, and values may have several lines.
    """
    reader = csv.reader(io.StringIO(text.decode("utf-8-sig", "replace"), newline=None))
    line = 1
    with contextlib.suppress(csv.Error):  # pandas reads more than the csv module, or says why not
        for values in reader:
            if values:
                yield line, values
            line = reader.line_num + 1


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of ``--json`` as a row, its CPI stack in columns as ``--csv`` has it."""
    row = {name: value for name, value in record.items() if not isinstance(value, dict)}
    stack = record.get("cpi_stack")
    if isinstance(stack, dict):
        row.update({f"cpi_{part}": value for part, value in stack.items()})
    return row


def _pairs(option: str, values: Sequence[str], form: str = "APP=VALUE") -> dict[str, str] | None:
    """Read ``APP=VALUE``, or what is called so."""
    pairs = {}
    for text in values:
        app, equals, value = text.rpartition("=")
        if not equals or not app:
            raise ws.InputError(f"{option} {text}: expected {form}")
        pairs[app] = value
    return pairs or None


def _draw(table: pd.DataFrame, picture: OutputFile, options: Mapping[str, Any]) -> None:
    from warpstack.plot.validation import agreement

    save_picture(agreement(table, **options), picture, "Errors")
