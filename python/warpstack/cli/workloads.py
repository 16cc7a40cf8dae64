"""``warpstack workloads``."""

from __future__ import annotations

import argparse

import warpstack as ws
from warpstack.cli.common.layout import Look
from warpstack.cli.common.output import add_output, print_table

SUMMARY = "the workloads that can be traced"

_LOOK = Look(
    formats={"launches": "{:,.0f}", "instructions": "{:,.0f}", "dpki": "{:.1f}"},
    left=("name", "suite", "class", "title"),
    least=("suite",),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print one row per workload."""
    print_table(arguments, ws.workloads.table(), _LOOK)
