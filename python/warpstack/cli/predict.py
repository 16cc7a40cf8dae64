"""``warpstack predict``."""

from __future__ import annotations

import argparse
import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.gpu_options import add_gpu, read_gpu, report_unused
from warpstack.cli.common.output import add_output, print_csv, print_json
from warpstack.cli.common.pictures import check_picture, save_picture
from warpstack.cli.common.stacks import print_stacks
from warpstack.cli.common.stage_options import (
    DEFAULT_MODELS,
    add_access_order,
    add_flush_l2,
    add_models,
    add_profiler,
    add_sampling,
    split,
)
from warpstack.cli.common.trace_options import add_trace, load_trace

if TYPE_CHECKING:
    from warpstack.cli.common.differences import Difference
    from warpstack.hardware.description import Gpu

SUMMARY = "IPC and CPI stacks of kernels"

#: More sentences than this are not read.
_MAX_REASONS = 8
#: More kernels than this are too many for one picture: they are added up.
_MAX_PANELS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from warpstack.interval.profile import MISS_SOURCES, SELECTIONS

    add_trace(parser)
    add_gpu(parser)
    add_models(parser, DEFAULT_MODELS)
    parser.add_argument("--plot", metavar="FILE", help="draw the CPI stacks (.png, .pdf, .svg)")
    parser.add_argument(
        "--selection", choices=SELECTIONS, default="clustering", help="representative warp"
    )
    parser.add_argument(
        "--misses",
        choices=MISS_SOURCES,
        default="per_pc",
        help="where an interval's misses come from",
    )
    parser.add_argument(
        "--merge-threshold",
        type=float,
        default=0,
        metavar="CYCLES",
        help="stalls of at most this many cycles do not end an interval (default: 0)",
    )
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="simulate, too: cycles and errors beside the models', and why they differ",
    )
    add_access_order(parser)
    add_flush_l2(parser)
    add_sampling(parser)
    add_profiler(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print what the models predict of each kernel and of all together."""
    from warpstack.hardware.profiler import profiled
    from warpstack.memory.caches import ORDERS, cache_fields
    from warpstack.models import pipeline, prediction
    from warpstack.tables import as_records

    wanted = prediction.model_list(split(arguments.models or DEFAULT_MODELS))
    target = profiled(read_gpu(arguments), arguments.profiler)
    check_picture(arguments.plot)
    what = "the models " + ", ".join(wanted)
    read = prediction.fields_used(wanted) | cache_fields(arguments.access_order)
    if arguments.simulate:
        from warpstack.timing import simulation

        what += " and the simulation"
        read |= simulation.fields_used(target)
    report_unused(arguments, target, read, what)
    app = load_trace(arguments)
    options = pipeline.Options(
        arguments.selection,
        arguments.misses,
        arguments.merge_threshold,
        arguments.access_order,
        arguments.flush_l2,
    )
    memo = pipeline.Recent(len(ORDERS)) if arguments.simulate else None
    rows = prediction.predicted_rows(
        app,
        target,
        wanted,
        **dataclasses.asdict(options),
        sampling=arguments.sampling,
        profiler=arguments.profiler,
        progress=True,
        memo=memo,
    )
    if arguments.simulate:
        results = simulation.simulate(app, target, flush_l2=arguments.flush_l2, progress=True)
        rows = _beside(rows, [result.cycles for result in results])
    if arguments.json:
        print_json(as_records(rows))
    elif arguments.csv:
        print_csv(pd.DataFrame(rows))
    else:
        print_stacks(app, target, rows, ["model"])
        if memo is not None:
            from warpstack.cli.common.differences import differences

            _print_reasons(differences(app, target, rows, results, options, memo))
    if arguments.plot:
        _draw(pd.DataFrame(rows), target, arguments.plot)


def _beside(rows: Sequence[Mapping[str, Any]], simulated: Sequence[int]) -> list[dict[str, Any]]:
    """Return predictions with the simulated cycles and the error after the predicted cycles."""
    models = len(rows) // len(simulated)
    result = []
    for number, row in enumerate(rows):
        cycles = float(simulated[number // models])
        found = {"simulated": cycles, "error": row["cycles"] / cycles - 1}
        items = list(row.items())
        place = list(row).index("cycles") + 1
        result.append(dict([*items[:place], *found.items(), *items[place:]]))
    return result


def _print_reasons(found: Sequence[Difference]) -> None:
    """Print a sentence for each reason, the one of most cycles first."""
    from warpstack.cli.common.differences import LARGE_ERROR

    if not found:
        return
    print(
        f"\nCycles that differ by more than {100 * LARGE_ERROR:.0f} % from the simulated ones, and the "
        "most probable reason:\n"
    )
    for one in found[:_MAX_REASONS]:
        print(textwrap.fill(str(one), 118, initial_indent="- ", subsequent_indent="  "))
    if len(found) > _MAX_REASONS:
        print(f"- and {len(found) - _MAX_REASONS} more; --kernels chooses launches")


def _draw(predictions: pd.DataFrame, target: Gpu, path: str) -> None:
    import matplotlib.pyplot as plt

    from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks, num_launches

    kernels = num_launches(predictions)
    what = "IPC of the GPU"
    if kernels > _MAX_PANELS:
        totals = ws.application_totals(predictions)
        title = f"{target.title}, {kernels} kernels together (above the bars: {what})"
        figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
        cpi_stack(totals, axes, title=title)
    else:
        figure = cpi_stacks(predictions, title=f"{target.title} (above the bars: {what})")
    save_picture(figure, path, "CPI stacks")
