"""``warpstack timeline``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import warpstack as ws
from warpstack._util.choices import DEFAULT_MODEL
from warpstack.cli.common.gpu_options import add_gpu, read_gpu, report_unused
from warpstack.cli.common.layout import Look
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import (
    add_output,
    print_about,
    print_table,
    say_text,
    short_floats,
)
from warpstack.cli.common.outputs import check_trace_events, output_file
from warpstack.cli.common.pictures import add_plot, check_picture, look_options, save_picture
from warpstack.cli.common.settings_text import options_given
from warpstack.cli.common.stage_options import add_l2
from warpstack.cli.common.trace_options import add_trace, launches_of, load_subject

if TYPE_CHECKING:
    from warpstack.timelines import TimelineComparison

SUMMARY = "a program's time line: its calls, copies and kernels on host and GPU"

_LEFT = ("operation", "name", "part", "what_if", "total")
#: What the column `part` of the critical path says.
_PARTS = (
    "Parts: program is the host's own work before the call, call the call itself, launch what passes "
    "until its work begins, device that work, return the end of a wait."
)
#: What stands below a comparison.
_OF_COMPARISON = (
    "Times and ratios are of pairs: the k-th call of a name with the k-th measured one, copies by "
    "direction and size. Operations without a partner, only predicted or only measured, are in the totals "
    "alone; --operations lists each."
)
_HEADS = {"time_us": "time (us)", "value": "time (us)"}
_OPERATIONS = Look(
    least=("thread", "returned_us", "estimated", "queued_us"), left=("operation", "name")
)
_COMPARED = Look(
    least=("bytes", "row", "runs", "direction", "predicted_stream", "measured_stream"),
    left=("operation", "name", "direction"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=" in --operations; all run")
    add_gpu(parser)
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME",
        help=f"the model that predicts the kernels (default: {DEFAULT_MODEL})",
    )
    parser.add_argument(
        "--operations",
        action="store_true",
        help="print one row per operation instead of the totals",
    )
    parser.add_argument(
        "--what-if",
        action="store_true",
        help="print how long it would take without copies, in one stream, as one graph, with pinned memory, "
        "or with 32 connections",
    )
    parser.add_argument(
        "--perfetto", metavar="FILE", help="write it for ui.perfetto.dev (.json, .json.gz)"
    )
    measured = parser.add_argument_group("beside a measured time line")
    measured.add_argument(
        "--measured",
        metavar="FILE",
        help="a profile of the program: of nsys export --type sqlite, of nsys stats --report cuda_gpu_trace "
        "--format csv, or of PyTorch's profiler (.json, .json.gz)",
    )
    measured.add_argument(
        "--iterations",
        type=int,
        default=None,
        metavar="N",
        help="the profile holds the program N times (default: once); times are means",
    )
    measured.add_argument(
        "--iteration", type=int, default=None, metavar="I", help="compare the I-th of these alone"
    )
    measured.add_argument(
        "--between",
        nargs=2,
        type=float,
        default=None,
        metavar=("FROM", "TO"),
        help="compare what starts in this part of the profile alone (us since its first operation)",
    )
    add_plot(parser, "draw it (.png, .pdf, .svg)")
    add_l2(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the totals and the critical path of a program, its operations, what-ifs, or a comparison."""
    from warpstack.timelines import result

    model = _model(arguments.model)
    if arguments.operations and arguments.what_if:
        raise ws.InputError("--operations and --what-if are two tables; give one of them")
    _check_measured(arguments)
    _check_kernels(arguments)
    target = read_gpu(arguments)
    report_unused(arguments, target, result.fields_used(model), "the time line")
    picture = check_picture(arguments)
    trace = None if arguments.perfetto is None else output_file(arguments, "perfetto")
    if trace is not None:
        trace.check()
        check_trace_events(trace)
    # A profile that cannot be read says so before anything is predicted.
    profile = arguments.measured and ws.validation.reference.read_timeline(arguments.measured)
    # All of the program runs: without some of its launches it would be another one.
    everything = argparse.Namespace(**{**vars(arguments), "kernels": None})
    app = load_subject(everything, target).app
    launches = None if arguments.kernels is None else launches_of(app, arguments.kernels)
    found = ws.timeline(app, target, model, options=options_given(arguments), progress=True)
    shown: ws.Timeline | TimelineComparison = found
    if profile is None:
        _print(arguments, found, launches)
    else:
        part = arguments.between and tuple(arguments.between)
        shown = compared = found.compare(
            profile,
            iterations=arguments.iterations or 1,
            iteration=arguments.iteration,
            between_us=part,
        )
        _print_comparison(arguments, compared)
    if trace is not None:
        trace.write(shown.to_perfetto)
    if picture is not None:
        figure = ws.plot.operations(shown, **look_options(arguments)).figure
        save_picture(figure, picture, "time line")


def _model(name: str) -> str:
    """Return the one model that predicts the kernels."""
    from warpstack.models.prediction import model_list

    models = model_list(name)
    if len(models) > 1:
        raise ws.InputError(
            f"--model {name}: a time line takes one model; give one of {', '.join(models)}"
        )
    return models[0]


def _check_measured(arguments: argparse.Namespace) -> None:
    if arguments.measured is not None:
        if arguments.kernels is not None:
            raise ws.InputError(
                f"--kernels {arguments.kernels}: a profile is compared with the whole program; leave it out"
            )
        if arguments.what_if:
            raise ws.InputError("--what-if and --measured are two tables; give one of them")
        if arguments.iterations is not None and arguments.iterations < 1:
            raise ws.InputError(f"--iterations {arguments.iterations}: expected 1 or more")
        return
    for name in ("iterations", "iteration", "between"):
        if getattr(arguments, name) is not None:
            raise ws.InputError(f"--{name} is about a profile; give it with --measured FILE")


def _print_comparison(arguments: argparse.Namespace, found: TimelineComparison) -> None:
    if arguments.operations or arguments.json or arguments.csv:
        print_table(arguments, found.table, _COMPARED)
        return
    line, counts = found.timeline, found.counts
    runs = "" if found.iterations == 1 else f", the mean of {found.iterations} iterations"
    if found.iteration is not None:
        runs = f", iteration {found.iteration} of {found.iterations}"
    said = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in counts if counts[name])
    print_about(
        arguments, f"{line.name} on {line.gpu.title}, predicted beside measured{runs}: {said}"
    )
    table = found.by_name
    table["mean_error"] *= 100
    heads = {
        "predicted_us": "predicted (us)",
        "measured_us": "measured (us)",
        "mean_error": "mean error (%)",
    }
    formats = {**short_floats(table), "mean_error": "{:.1f}"}
    print_table(arguments, table, Look(heads, formats, ("operation", "name")))
    print()
    print_about(arguments, "All operations of each side on the GPU")
    totals = found.totals
    times = totals[totals["total"] != "copies_hidden"].reset_index(drop=True)
    times["total"] = times["total"].str.replace("_us", "").str.replace("_", " ")
    heads = {"predicted": "predicted (us)", "measured": "measured (us)"}
    print_table(arguments, times, Look(heads, short_floats(times), _LEFT))
    print()
    say_text(arguments, _OF_COMPARISON)


def _prints_operations(arguments: argparse.Namespace) -> bool:
    for_programs = arguments.json or arguments.csv
    return bool(arguments.operations or (for_programs and not arguments.what_if))


def _check_kernels(arguments: argparse.Namespace) -> None:
    if arguments.kernels is not None and not _prints_operations(arguments):
        raise ws.InputError(
            f"--kernels {arguments.kernels}: the time is that of the whole program; leave it out, or list "
            "these launches with --operations"
        )


def _print(arguments: argparse.Namespace, found: ws.Timeline, launches: list[int] | None) -> None:
    from warpstack._util.lazy import pandas as pd

    if _prints_operations(arguments):
        # The column waited_for has numbers of rows.
        table = found.table.rename_axis("row").reset_index()
        if launches is not None:
            table = table[pd.Series(found._columns["kernel"]).isin(launches)]
        print_table(arguments, table, _OPERATIONS)
        return
    if arguments.what_if:
        table = found.what_if()
        print_table(arguments, table, Look(_HEADS, short_floats(table), _LEFT))
        return
    totals = found.totals
    share = totals.pop("copies_hidden")
    print_about(arguments, f"{found.name} on {found.gpu.title}: {len(found)} operations")
    rows = [(name.replace("_us", "").replace("_", " "), value) for name, value in totals.items()]
    table = pd.DataFrame(rows, columns=["total", "value"])
    print_table(arguments, table, Look(_HEADS, short_floats(table), _LEFT))
    hidden = (
        "" if share != share else f"; {100 * share:.0f} % of the copies' time is behind kernels"
    )
    print()
    print_about(arguments, f"Critical path: what decides the end{hidden}")
    path = found.critical_path
    path["share"] *= 100
    formats = {**short_floats(path), "share": "{:.1f}"}
    print_table(arguments, path, Look({**_HEADS, "share": "share (%)"}, formats, _LEFT))
    print()
    say_text(arguments, _PARTS)
