"""``warpstack figure``."""

from __future__ import annotations

import argparse
import sys

import warpstack as ws
from warpstack._util.arguments import as_path, printable
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.layout import Look
from warpstack.cli.common.output import add_output, print_table
from warpstack.cli.common.outputs import add_overwrite

SUMMARY = "figures and tables of the papers, and whether their claims hold"

_LOOK = Look(
    {"seconds": "time (s)"},
    left=("name", "title", "paper", "figure", "claim", "ours", "holds"),
    least=("seconds",),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as mdm-fig5; see --list")
    parser.add_argument("--list", action="store_true", help="what there is")
    parser.add_argument(
        "--all", action="store_true", help="all of them, an index page and a table of all claims"
    )
    parser.add_argument(
        "--size",
        default="small",
        help="of the workloads: small or paper, which takes far longer (default: small)",
    )
    parser.add_argument(
        "--workloads",
        nargs="+",
        metavar="NAME",
        help="of these alone (see warpstack workloads)",
    )
    parser.add_argument(
        "--hardware",
        metavar="FILE",
        help="for mdm-fig10: a table (.csv) of app and cycles, measured on --gpu",
    )
    parser.add_argument(
        "--gpu", default="gtx1080", help="what --hardware was measured on (default: gtx1080)"
    )
    parser.add_argument(
        "--output", "-o", default="figures", help="folder to write (default: figures)"
    )
    add_overwrite(parser)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="threads (default: 2)")
    parser.add_argument(
        "--no-cache", action="store_true", help="compute all anew and keep nothing on disk"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="draw again from the data in --output"
    )
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Draw the figures, and print their claims."""
    from warpstack import figures

    if sum((bool(arguments.names), arguments.all, arguments.list)) != 1:
        raise ws.InputError("figure: give names of figures (see --list), or --all, or --list")
    if arguments.list:
        known = [figures.get(name) for name in figures.names(measured=True)]
        table = pd.DataFrame([{"name": f.name, "title": f.title, "paper": f.paper} for f in known])
        print_table(arguments, table, _LOOK)
        return
    wanted = [
        figures.get(name)
        for name in arguments.names or figures.names(measured=arguments.hardware is not None)
    ]
    output = as_path("--output", arguments.output)
    if output.exists() and not output.is_dir():  # said before the work, not after it
        raise ws.InputError(f"--output {printable(output)}: is not a folder")
    if not arguments.redraw:
        for figure in wanted:
            figures.check_files(figure, output, overwrite=arguments.overwrite)
    if arguments.all and output.is_dir():
        figures.check_index(output, overwrite=arguments.overwrite)
    hardware = None
    if arguments.hardware is not None:
        hardware = figures.read_hardware(arguments.hardware, arguments.gpu)
    study = figures.Study(
        arguments.size,
        only=arguments.workloads,
        cache=not arguments.no_cache,
        workers=arguments.workers,
        progress=True,
        hardware=hardware,
    )
    reports = []
    for figure in wanted:
        reports.append(
            figures.redraw(figure, output)
            if arguments.redraw
            else figures.write_report(figure, study, output, overwrite=arguments.overwrite)
        )
        print(f"{figure.name}: {printable(reports[-1].picture)}", file=sys.stderr)
    if arguments.all:
        index = figures.write_index(
            reports, study, output, figures.LEFT_OUT, overwrite=arguments.overwrite
        )
        print(f"index: {printable(index)}", file=sys.stderr)
    table = pd.concat([report.to_frame() for report in reports], ignore_index=True)
    if not (arguments.json or arguments.csv):
        table["holds"] = table["holds"].map({True: "yes", False: "no"})
    print_table(arguments, table, _LOOK)
