"""``warpstack gpus``."""

from __future__ import annotations

import argparse
import re
from itertools import pairwise

from warpstack._core import GPU_FIELDS
from warpstack._util.headings import number
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.layout import Look
from warpstack.cli.common.output import add_output, plain, print_table

SUMMARY = "the GPU descriptions"

_LOOK = Look(
    {"num_sms": "SMs"},
    left=(
        *("architecture", "name", "description"),
        *("field", "meaning", "range", "value", "confidence", "source"),
    ),
    least=("confidence", "l2_mib", "dram_bandwidth_gbs", "clock_ghz"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "name", nargs="?", help="show this description with the confidence and source of its values"
    )
    parser.add_argument("--fields", action="store_true", help="what each field means")
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the descriptions, one of them, or what the fields mean."""
    from warpstack.hardware.architectures import architecture, by_architecture
    from warpstack.hardware.description import Gpu, gpu, gpus

    is_for_programs = arguments.json or arguments.csv
    if arguments.fields:
        meanings, ranges = Gpu.fields(), Gpu.ranges()
        if not is_for_programs:
            ranges = {field: _with_separators(text) for field, text in ranges.items()}
        columns = {"field": meanings.keys(), "meaning": meanings.values(), "range": ranges.values()}
        table = pd.DataFrame(columns)
    elif arguments.name:
        one = gpu(arguments.name)
        values = one.values()
        units = {} if is_for_programs else {f.name: f.unit for f in GPU_FIELDS}

        def shown(field: str, value: object) -> str:
            if not units:
                return plain(value)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return f"{number(value) if is_number else plain(value)} {units[field]}".rstrip()

        table = pd.DataFrame(
            {
                "field": values.keys(),
                "value": [shown(field, value) for field, value in values.items()],
                "confidence": [one.confidences.get(field, "") for field in values],
                "source": [one.sources.get(field, "") for field in values],
            }
        )
    else:
        every = by_architecture(gpu(name) for name in gpus())
        groups = [architecture(g) for g in every]
        if not is_for_programs:
            groups = ["" if group == before else group for before, group in pairwise(["", *groups])]
        table = pd.DataFrame(
            {
                "architecture": groups,
                "name": [g.name for g in every],
                "num_sms": [g.num_sms for g in every],
                "clock_ghz": [g.clock_ghz for g in every],
                "l2_mib": [g.l2_size_kib / 1024 for g in every],
                "dram_bandwidth_gbs": [g.dram_bandwidth_gbs for g in every],
                "description": [g.description for g in every],
            }
        )
    print_table(arguments, table, _LOOK)


def _with_separators(text: str) -> str:
    return re.sub(r"(?<![.\d])\d{4,}", lambda match: number(int(match[0])), text)
