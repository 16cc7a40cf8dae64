"""``warpstack info``."""

from __future__ import annotations

import argparse

from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.layout import Look
from warpstack.cli.common.output import add_output, print_table
from warpstack.cli.common.trace_options import add_trace, load_trace

SUMMARY = "what a trace contains"

_LOOK = Look(
    {"op_class": "class"},
    {"dpki": "{:.1f}"},
    least=(
        *("digest", "memory_instructions", "warps", "code", "thread_instructions"),
        *(
            "shared_memory_bytes",
            "registers_per_thread",
            "blocks",
            "missing_warps",
            "missing_blocks",
        ),
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser)
    parser.add_argument("--opcodes", action="store_true", help="count warp instructions by opcode")
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print one row per kernel, or per opcode."""
    app = load_trace(arguments)
    table = app.info()
    if arguments.opcodes:
        counts = pd.concat([kernel.instructions for kernel in app.kernels])
        groups = counts.groupby(["opcode", "op_class"], sort=False)["executions"].sum()
        table = groups.sort_values(ascending=False, kind="stable").reset_index()
    print_table(arguments, table, _LOOK)
