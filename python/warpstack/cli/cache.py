"""``warpstack cache``: the results of stages on disk. Simulated caches are ``warpstack caches``."""

from __future__ import annotations

import argparse

from warpstack._util.arguments import printable
from warpstack._util.headings import number
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.layout import Look
from warpstack.cli.common.output import add_output, print_about, print_table, say_text

SUMMARY = "stage results that sweeps keep on disk"

_LOOK = Look({"bytes": "size (bytes)"}, left=("stage",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--folder", help="another folder than the user's")
    parser.add_argument("--clear", action="store_true", help="remove all entries")
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print what the cache holds, or empty it."""
    from warpstack.exploration.stage_cache import StageCache, default_folder, is_off

    cache = StageCache(arguments.folder or default_folder())
    if arguments.clear:
        size = cache.size_bytes
        removed = f"{cache.clear():,} entries removed, {size / 2**20:,.2f} MiB"
        say_text(arguments, f"{printable(cache.folder)}: {removed}")
        return
    table = pd.DataFrame(cache.summary(), columns=["stage", "entries", "bytes"])
    if not (arguments.json or arguments.csv):
        state = "off (WARPSTACK_CACHE)" if is_off() and not arguments.folder else "on"
        used, limit = table["bytes"].sum() / 2**20, cache.limit_bytes / 2**20
        of_limit = f"{used:,.2f} of {number(limit)} MiB"
        about = f"{printable(cache.folder)}: {state}, {of_limit}"
        print_about(arguments, about, is_last=table.empty)
        if table.empty:
            return
    print_table(arguments, table, _LOOK)
