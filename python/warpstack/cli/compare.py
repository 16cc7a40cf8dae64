"""``warpstack compare``: two kernels, versions of a source, GPUs or models side by side."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.gpu_options import add_gpu, read_gpus, unchanged_gpu
from warpstack.cli.common.layout import Look, text_table
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import add_output, line_width, print_table, say_text
from warpstack.cli.common.settings_text import options_given, print_settings
from warpstack.cli.common.stage_options import (
    DEFAULT_MODELS,
    add_l2,
    add_models,
    add_profiler,
    split,
)
from warpstack.cli.common.subject import Subject
from warpstack.cli.common.trace_options import WARM_L2, add_trace, load_subjects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpstack._util.options import Options
    from warpstack.hardware.description import Gpu

SUMMARY = "two kernels, versions of a source, GPUs or models side by side"

#: A part of the time below this is not printed.
_LEAST_SHARE = 0.001
#: More kernels than this are not listed.
_MAX_KERNELS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(
        parser,
        about_l2=WARM_L2,
        launches="those of semicolons run in turn, and two --launch are compared",
    )
    add_gpu(parser, several=True)
    add_models(parser, DEFAULT_MODELS)
    add_l2(parser)
    add_profiler(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print times and their parts of both, and the ratios, with the largest change marked."""
    from warpstack.models import prediction

    if _are_gpus(arguments):
        _compare_gpus(arguments)
        return
    models = prediction.model_list(split(arguments.models or DEFAULT_MODELS))
    gpus = read_gpus(arguments)
    subjects = load_subjects(arguments, gpus[0], apart=True)
    if arguments.kernels is not None and len(subjects) == 1 and len(subjects[0].app) == 2:
        (whole,) = subjects
        subjects = [
            Subject(ws.App([kernel], f"{kernel.short_name} ({kernel.launch_id})"), whole.ran)
            for kernel in whole.app
        ]
    if arguments.set and len(subjects) == len(gpus) == len(models) == 1:
        gpus = [unchanged_gpu(arguments), *gpus]
    counts = {"traces": len(subjects), "--gpu": len(gpus), "--models": len(models)}
    pairs = [what for what, count in counts.items() if count == 2]
    if len(pairs) != 1 or max(counts.values()) > 2:
        given = ", ".join(f"{what}: {count}" for what, count in counts.items())
        raise ws.InputError(
            "compare: give two traces or sources, or one of them with two --gpu, two --models, --set "
            "FIELD=VALUE or two launches (--kernels 3,8 of a trace, two --launch of a source); got "
            + given
        )
    if pairs == ["traces"]:
        first, second = (subject.app.name for subject in subjects)
        where = f"on {gpus[0].title}, by {models[0]}"
    elif pairs == ["--gpu"]:
        first, second = (gpu.title for gpu in gpus)
        where = f"for {subjects[0].app.name}, by {models[0]}"
    else:
        first, second = models
        where = f"for {subjects[0].app.name} on {gpus[0].title}"
    options = options_given(arguments)
    prediction.warn_of_unread(options, models)
    tables = _predicted(subjects, gpus, models, options)
    table = ws.compare(*tables)
    if arguments.json or arguments.csv or arguments.latex:
        print_table(arguments, table)
        return
    if first == second:
        first, second = f"{first} (1)", f"{second} (2)"
    say_text(arguments, f"{second} against {first}, {where}")
    print_settings(arguments, options, models)
    print()
    width = line_width(arguments)
    _print_sum(table, first, second, width)
    _print_kernels(table, first, second, width)
    _print_reasons(tables, (first, second), width)


def _predicted(
    subjects: Sequence[Subject], gpus: Sequence[Gpu], models: Sequence[str], options: Options
) -> list[pd.DataFrame]:
    """Return the rows of what there are two of; launches of one application are predicted once."""
    from warpstack.models import prediction
    from warpstack.traces.trace import ambiguous_names, distinct_names

    unclear = {name for subject in subjects for name in ambiguous_names(subject.app.kernels)}
    predicted: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    tables = []
    for number in (0, 1):
        # The only one of a kind stands for both.
        subject = subjects[number % len(subjects)]
        gpu, model = gpus[number % len(gpus)], models[number % len(models)]
        key = (id(subject.ran), id(gpu), model)
        if key not in predicted:
            predicted[key] = prediction.predicted_rows(
                subject.ran, gpu, [model], options, progress=True, reasons=True
            )
        rows = subject.of_reported(predicted[key])
        names = distinct_names(subject.app.kernels, unclear)
        tables.append([{**row, "name": name} for row, name in zip(rows, names, strict=True)])
    return [pd.DataFrame(rows) for rows in tables]


def _print_reasons(tables: Sequence[pd.DataFrame], names: Sequence[str], width: int | None) -> None:
    """Print what change of its GPU each of the two would gain most from."""
    from warpstack.cli.common.answer import print_reasons, sums_of

    both = []
    for table, name in zip(tables, names, strict=True):
        rows = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
        _, (together, *_), _ = sums_of(rows, per_launch=False, sort="time", top=1)
        both.append(together._replace(title=name))
    print_reasons((), both, width)


def _print_sum(table: pd.DataFrame, first: str, second: str, width: int | None) -> None:
    """Print the quantities of all kernels together, the part of the time that changes most marked."""
    from warpstack.cli.common.answer import WORDS

    rows: list[list[Any]] = []
    marked: set[tuple[int, int]] = set()
    quantities = table[table["name"] == table["name"].iloc[0]].to_dict("records")
    times = [quantities[0][which] for which in ("first", "second")]
    for row in quantities:
        part = row["quantity"] in WORDS
        shares = [row[w] / time for w, time in zip(("first", "second"), times, strict=True)]
        if part or row["quantity"] == "launch":
            if max(shares) < _LEAST_SHARE:
                continue
            if shares[0] < _LEAST_SHARE:
                row["ratio"] = math.nan  # a ratio of values next to nothing says nothing
        name = f"  {WORDS[row['quantity']]} ({row['quantity']})" if part else row["quantity"]
        name = "  launch" if name == "launch" else "IPC" if name == "ipc" else name
        unit = {"us": " (us)"}.get(row["unit"], "")
        digits = "{:,.3f}" if name == "IPC" else "{:,.2f}" if unit else "{:,.0f}"
        if row["largest"]:
            marked.add((len(rows), 3))
        cells = [digits.format(row[which]) for which in ("first", "second")]
        rows.append([name + unit * (not part and not name.startswith(" ")), *cells, row["ratio"]])
    print(
        text_table(
            ["quantity", first, second, "ratio"],
            rows,
            Look({first: first, second: second}, {"ratio": "{:,.3f}"}, ("quantity",)),
            width=width,
            marked=marked,
        )
    )
    if marked:
        print("\n* the part of the time that changes most")


def _print_kernels(table: pd.DataFrame, first: str, second: str, width: int | None) -> None:
    from warpstack.cli.common.answer import WORDS

    names = list(dict.fromkeys(table["name"]))[1:]
    if len(names) < 2:
        return
    rows = []
    for name in names[:_MAX_KERNELS]:
        of = table[table["name"] == name]
        (time,) = of[of["quantity"] == "time"].to_dict("records")
        largest = [WORDS.get(part, part) for part in of[of["largest"]]["quantity"]]
        rows.append([name, time["first"], time["second"], time["ratio"], *(largest or ["-"])])
    columns = ["kernel", f"{first} (us)", f"{second} (us)", "ratio", "what changes most"]
    formats = {columns[1]: "{:,.2f}", columns[2]: "{:,.2f}", "ratio": "{:,.3f}"}
    look = Look(
        {name: name for name in columns}, formats, ("kernel", "what changes most"), ("ratio",)
    )
    print("\n" + text_table(columns, rows, look, width=width))
    if len(names) > _MAX_KERNELS:
        print(f"and {len(names) - _MAX_KERNELS:,} more; --csv prints all")


def _are_gpus(arguments: argparse.Namespace) -> bool:
    """Return whether the two things that are given are GPUs, and there is nothing to run on them."""
    known = ws.gpus()
    return len(arguments.trace) == 2 and all(
        text in known or text.endswith((".yaml", ".yml", ".config")) for text in arguments.trace
    )


def _compare_gpus(arguments: argparse.Namespace) -> None:
    """Print the fields in which two descriptions differ."""
    if arguments.gpu or arguments.models or arguments.set:
        raise ws.InputError(
            "compare: two GPUs are compared by their fields, without --gpu, --set and --models; to compare "
            "them for a trace: warpstack compare TRACE --gpu A --gpu B"
        )
    first, second = (ws.gpu(text) for text in arguments.trace)
    table = first.diff(second)
    if arguments.json or arguments.csv or arguments.latex:
        print_table(arguments, table)
        return
    if table.empty:
        print(f"{first.name} and {second.name} have the same values")
        return
    look = Look(
        {"first": first.name, "second": second.name},
        {"ratio": "{:,.3f}"},
        ("field", "unit", "first", "second"),
        ("ratio",),
    )
    print_table(arguments, table, look)
