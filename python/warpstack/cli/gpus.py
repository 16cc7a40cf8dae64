"""``warpstack gpus``."""

from __future__ import annotations

import argparse

from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.output import add_output, plain, print_table

SUMMARY = "the GPU descriptions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "name", nargs="?", help="show this description with the confidence and source of its values"
    )
    parser.add_argument("--fields", action="store_true", help="what each field means")
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the descriptions, one of them, or what the fields mean."""
    from warpstack.hardware.description import Gpu, gpu, gpus

    if arguments.fields:
        meanings, ranges = Gpu.fields(), Gpu.ranges()
        columns = {"field": meanings.keys(), "meaning": meanings.values(), "range": ranges.values()}
        table = pd.DataFrame(columns)
    elif arguments.name:
        one = gpu(arguments.name)
        values = one.values()
        table = pd.DataFrame(
            {
                "field": values.keys(),
                "value": [plain(value) for value in values.values()],
                "confidence": [one.confidences.get(field, "") for field in values],
                "source": [one.sources.get(field, "") for field in values],
            }
        )
    else:
        every = [gpu(name) for name in gpus()]
        table = pd.DataFrame(
            {
                "name": [g.name for g in every],
                "num_sms": [g.num_sms for g in every],
                "clock_ghz": [g.clock_ghz for g in every],
                "l2_mib": [g.l2_size_kib / 1024 for g in every],
                "dram_bandwidth_gbs": [g.dram_bandwidth_gbs for g in every],
                "description": [g.description for g in every],
            }
        )
    left = ("name", "description", "field", "meaning", "range", "value", "confidence", "source")
    print_table(arguments, table, left=left)
