"""Traces: the arguments that name one, loading it, and saving one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import warpstack as ws
from warpstack._util.arguments import printable

if TYPE_CHECKING:
    from warpstack.traces.trace import App

__all__ = ["add_trace", "load_trace", "save_trace"]


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a trace and the part of it that is read."""
    parser.add_argument(
        "trace",
        help="kernelslist.g, one kernel (.traceg, .trace, also compressed), a folder, or a saved trace",
    )
    parser.add_argument(
        "--kernels", "--kernel", metavar="N,N-M", help="launches to read (default: all)"
    )
    parser.add_argument(
        "--skip-missing",
        action="store_true",
        help="pass over kernels whose files the kernel list names but that are not there",
    )
    parser.add_argument(
        "--memory-limit",
        type=float,
        metavar="MIB",
        help="keep longer traces in a temporary file (default: 512, less on a small machine)",
    )


def load_trace(arguments: argparse.Namespace) -> App:
    """Load the trace that the arguments name."""
    from warpstack.traces.trace import launches_of_text

    return ws.load(
        arguments.trace,
        kernels=launches_of_text(arguments.kernels, "--"),
        memory_limit_mib=arguments.memory_limit,
        missing="skip" if arguments.skip_missing else "error",
        progress=True,
    )


def save_trace(
    app: App,
    output: str,
    *,
    overwrite: bool,
    kind: str = "parquet",
    binary_version: int | None = None,
    xz: bool = False,
) -> None:
    """Save a trace and print what was written."""
    ws.save(
        app,
        output,
        format=kind,
        binary_version=binary_version,
        compression="xz" if xz else None,
        overwrite=overwrite,
        progress=True,
    )
    size = sum(file.stat().st_size for file in Path(output).rglob("*") if file.is_file())
    print(
        f"{printable(output)}: {len(app)} kernels, {sum(k.num_instructions for k in app):,} warp "
        f"instructions, {size / 2**20:.2f} MiB"
    )
