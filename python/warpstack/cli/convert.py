"""``warpstack convert``."""

from __future__ import annotations

import argparse

from warpstack.cli.common.outputs import check_trace_folder
from warpstack.cli.common.trace_options import add_trace, load_trace, save_trace

SUMMARY = "save a trace in another format"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from warpstack.traces.io import WRITABLE

    add_trace(parser, only=True)
    parser.add_argument("output", help="folder to write")
    parser.add_argument(
        "--to",
        choices=WRITABLE,
        default=WRITABLE[0],
        help="parquet: quick to load; accelsim: runs in Accel-Sim (default: parquet)",
    )
    parser.add_argument(
        "--binary-version",
        type=int,
        metavar="VERSION",
        help="with --to accelsim: SM version whose SASS names PTX operations get (default: the "
        "trace's, or 80)",
    )
    packing = parser.add_mutually_exclusive_group()
    packing.add_argument(
        "--zst",
        action="store_true",
        help="with --to accelsim: compress, quick to write and to load",
    )
    packing.add_argument(
        "--xz",
        action="store_true",
        help="with --to accelsim: compress so that Accel-Sim unpacks it",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a saved trace; other files in its folder stay",
    )


def run(arguments: argparse.Namespace) -> None:
    """Load a trace and save it."""
    check_trace_folder(arguments, arguments.to)  # said before the work, not after it
    save_trace(
        load_trace(arguments),
        arguments.output,
        overwrite=arguments.overwrite,
        kind=arguments.to,
        binary_version=arguments.binary_version,
        compression="zst" if arguments.zst else "xz" if arguments.xz else None,
    )
