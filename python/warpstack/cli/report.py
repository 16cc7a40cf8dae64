"""``warpstack report``."""

from __future__ import annotations

import argparse

import warpstack as ws
from warpstack._util.arguments import printable
from warpstack._util.choices import DEFAULT_MODEL
from warpstack.cli.common.gpu_options import add_gpu, read_gpu
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.outputs import add_overwrite, output_file
from warpstack.cli.common.stage_options import add_l2, add_models, split
from warpstack.cli.common.trace_options import COLD_L2, add_trace, load_trace, sources_of

SUMMARY = "all that is known of a kernel, on one page to read and to share"

_MODELS = [DEFAULT_MODEL, "mdm"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=COLD_L2)
    add_gpu(parser)
    add_models(parser, _MODELS)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="report.html",
        help="the page, .html or .pdf (default: report.html)",
    )
    add_overwrite(parser)
    add_l2(parser)
    add_option_values(parser)
    parser.add_argument(
        "--source",
        metavar="FILE",
        action="append",
        help="a source whose lines the trace names, where it is not where it was compiled; more than "
        "once for several",
    )


def run(arguments: argparse.Namespace) -> None:
    """Write the report."""
    from warpstack.models import prediction
    from warpstack.reporting.page import checked_ending

    wanted = prediction.model_list(split(arguments.models or _MODELS))
    target = read_gpu(arguments)
    output = output_file(arguments)
    output.check()
    try:
        checked_ending(output.path)
    except ws.InputError as error:
        raise ws.InputError(f"--output {error}") from None
    ws.report(
        load_trace(arguments, target),
        target,
        arguments.output,
        models=wanted,
        source=sources_of(arguments),
        flush_l2=arguments.flush_l2,
        initial_l2=arguments.initial_l2,
        overwrite=arguments.overwrite,
        progress=True,
    )
    print(f"report: {printable(arguments.output)}")
