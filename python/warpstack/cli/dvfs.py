"""``warpstack dvfs``."""

from __future__ import annotations

import argparse

import warpstack as ws
from warpstack.cli.common.gpu_options import add_gpu, read_gpu
from warpstack.cli.common.layout import Look
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import add_output, print_table, short_floats
from warpstack.cli.common.pictures import add_plot, check_picture, look_options, save_picture
from warpstack.cli.common.settings_text import options_given, print_settings
from warpstack.cli.common.stage_options import (
    DEFAULT_MODELS,
    add_l2,
    add_models,
    add_profiler,
    split,
)
from warpstack.cli.common.trace_options import WARM_L2, add_trace, load_subject

SUMMARY = "time of kernels against the clock of the SMs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=WARM_L2)
    add_gpu(parser)
    parser.add_argument(
        "--clocks",
        nargs="+",
        type=float,
        required=True,
        metavar="GHZ",
        help="besides that of the GPU",
    )
    add_models(parser, DEFAULT_MODELS, "crisp, simulation, ")
    add_plot(parser, "draw the times (.png, .pdf, .svg)")
    add_l2(parser)
    add_profiler(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print cycles and time of each kernel at each clock."""
    wanted = split(arguments.models or DEFAULT_MODELS)
    target = read_gpu(arguments)
    picture = check_picture(arguments)
    subject = load_subject(arguments, target)
    options = options_given(arguments)
    table = ws.models.dvfs(
        subject.ran, target, arguments.clocks, wanted, options=options, progress=True
    )
    table = shown = subject.rows(table)
    if not (arguments.json or arguments.csv):
        columns = ["kernel", "name", "model", "clock_ghz", "cycles", "time_us", "ipc"]
        # Kernels and models stay in their order; the table begins with the GPU's own clock.
        order = table.groupby(["kernel", "model"], sort=False).ngroup()
        table = table.assign(order=order).sort_values(["order", "clock_ghz"], kind="stable")
        shown = table[[*columns, "relative_time"]]
    simulated = ("crisp", "simulation")
    models = [model for model in wanted if model not in (*simulated, "all")]
    print_settings(arguments, options, models, is_last=False)
    print_table(arguments, shown, Look(formats=short_floats(shown), least=("ipc", "cycles")))
    if picture is not None:
        save_picture(
            ws.plot.dvfs(table, **look_options(arguments)).figure, picture, "time against clock"
        )
