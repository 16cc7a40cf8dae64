"""``warpstack lines``."""

from __future__ import annotations

import argparse

from warpstack._util.arguments import printable
from warpstack._util.choices import DEFAULT_MODEL
from warpstack.cli.common.gpu_options import add_gpu, read_gpu
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import add_output, line_width, print_table, say_text
from warpstack.cli.common.settings_text import options_given, print_settings
from warpstack.cli.common.stage_options import add_l2
from warpstack.cli.common.trace_options import WARM_L2, add_trace, load_subject, sources_of

SUMMARY = "which line of a kernel costs most, why, and what would help"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=WARM_L2)
    add_gpu(parser)
    parser.add_argument(
        "--source",
        metavar="FILE",
        action="append",
        help="a source whose lines the trace names, to print beside them, where it is not where it was "
        "compiled; more than once for several",
    )
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help=f"whose cycles to divide, too (default: {DEFAULT_MODEL})",
    )
    parser.add_argument(
        "--no-simulate", action="store_true", help="the model alone, without the simulation"
    )
    parser.add_argument(
        "--inlined",
        choices=("own", "caller"),
        default="own",
        help="whether instructions of inlined functions count for their own line, or for that of the "
        "outermost call (default: own)",
    )
    parser.add_argument(
        "--instructions", action="store_true", help="the instructions of each line below it"
    )
    add_l2(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the annotated listing of each kernel, or the table as JSON or CSV."""
    target = read_gpu(arguments)
    from warpstack.reporting.lines import lines_and_instructions
    from warpstack.reporting.listing import listing
    from warpstack.reporting.source_text import Sources
    from warpstack.traces.trace import distinct_names

    subject = load_subject(arguments, target)
    sources = Sources(subject.app, sources_of(arguments), "--source")
    if not arguments.no_simulate:
        subject.say_what_is_simulated()
    table, instructions = (
        subject.rows(rows)
        for rows in lines_and_instructions(
            subject.ran,
            target,
            model=arguments.model,
            simulate=not arguments.no_simulate,
            flush_l2=arguments.flush_l2,
            initial_l2=arguments.initial_l2,
            inlined=arguments.inlined,
            progress=True,
        )
    )
    if arguments.json or arguments.csv or arguments.latex:
        print_table(arguments, instructions if arguments.instructions else table)
        return
    width = line_width(arguments)
    sources.warn_of_doubts(table)
    for kernel, name in zip(subject.app, distinct_names(subject.app.kernels), strict=True):
        own = table[table["kernel"] == kernel.launch_id]
        below = instructions[instructions["kernel"] == kernel.launch_id]
        print()
        say_text(arguments, f"kernel {kernel.launch_id}, {printable(name)}, on {target.title}")
        print_settings(arguments, options_given(arguments), [arguments.model])
        print()
        text = listing(own, sources, below if arguments.instructions else None, width=width)
        print(text)
        if width and any(len(line) == width and line[-1] == "…" for line in text.splitlines()):
            say_text(arguments, f"(lines are cut after {width} characters; --wide shows all)")
