"""``warpstack roofline``."""

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

SUMMARY = "kernels under the roofs of L1, L2 and DRAM"

#: GIPS: 10^9 warp instructions per second.
_HEADS = {
    "intensity": "intensity (instr/byte)",
    "gips": "performance (GIPS)",
    "roof_gips": "roof (GIPS)",
    "roof_fraction": "fraction of the roof",
}
_LEFT = ("name", "model", "level", "limit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=WARM_L2)
    add_gpu(parser)
    add_models(parser, DEFAULT_MODELS)
    parser.add_argument("--simulate", action="store_true", help="add the simulation")
    add_plot(parser, "draw the roofline (.png, .pdf, .svg)")
    add_l2(parser)
    add_profiler(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print intensity, performance and roof of each kernel at each level."""
    from warpstack.models import prediction

    wanted = prediction.model_list(split(arguments.models or DEFAULT_MODELS))
    target = read_gpu(arguments)
    picture = check_picture(arguments)
    subject = load_subject(arguments, target)
    options = options_given(arguments)
    table = ws.models.roofline(
        subject.ran,
        target,
        wanted,
        simulate=arguments.simulate,
        options=options,
        progress=True,
    )
    table = shown = subject.rows(table)
    if not (arguments.json or arguments.csv):
        columns = ["kernel", "name", "model", "level", "intensity", "gips", "roof_gips"]
        shown = table[[*columns, "roof_fraction", "limit"]]
    look = Look(_HEADS, short_floats(shown), _LEFT, ("roof_gips", "intensity"))
    print_settings(arguments, options, wanted, is_last=False)
    print_table(arguments, shown, look)
    if picture is not None:
        save_picture(ws.plot.roofline(table, **look_options(arguments)).figure, picture, "roofline")
