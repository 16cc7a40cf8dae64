"""``warpstack predict``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

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
    split,
)
from warpstack.cli.common.trace_options import add_trace, load_trace

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu

SUMMARY = "IPC and CPI stacks of kernels"

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
    add_access_order(parser)
    add_flush_l2(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print what the models predict of each kernel and of all together."""
    from warpstack.memory.caches import cache_fields
    from warpstack.models import prediction
    from warpstack.tables import as_records

    wanted = prediction.model_list(split(arguments.models or DEFAULT_MODELS))
    target = read_gpu(arguments)
    check_picture(arguments.plot)
    what = "the models " + ", ".join(wanted)
    read = prediction.fields_used(wanted) | cache_fields(arguments.access_order)
    report_unused(arguments, target, read, what)
    app = load_trace(arguments)
    rows = prediction.predicted_rows(
        app,
        target,
        wanted,
        selection=arguments.selection,
        misses=arguments.misses,
        merge_threshold=arguments.merge_threshold,
        access_order=arguments.access_order,
        flush_l2=arguments.flush_l2,
        progress=True,
    )
    if arguments.json:
        print_json(as_records(rows))
    elif arguments.csv:
        print_csv(pd.DataFrame(rows))
    else:
        print_stacks(app, target, rows, ["model"])
    if arguments.plot:
        _draw(pd.DataFrame(rows), target, arguments.plot)


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
