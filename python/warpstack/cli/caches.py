"""``warpstack caches``: L1, L2 and DRAM of a trace."""

from __future__ import annotations

import argparse

import warpstack as ws
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.gpu_options import add_gpu, read_gpu, report_unused
from warpstack.cli.common.layout import Look
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import add_output, print_about, print_table
from warpstack.cli.common.settings_text import options_given, print_settings, settings_text
from warpstack.cli.common.stage_options import add_access_order, add_l2
from warpstack.cli.common.trace_options import WARM_L2, add_trace, load_subject

SUMMARY = "hits and traffic of L1, L2 and DRAM"

_LEVELS = ("l1_read", "l1_write", "l2_read", "l2_write")
_HITS = tuple(f"{level}_hits_%" for level in _LEVELS)
_LOOK = Look(
    formats=dict.fromkeys(_HITS, "{:.1f}"),
    least=("l1_write_hits_%", "l2_write_hits_%", "l1_write_sectors", "dram_write_sectors"),
)
#: What memory instructions need, before what it is made of.
_LOOK_PER_PC = Look(
    formats=dict.fromkeys(("l1_hit", "l2_hit", "dram"), "{:.3f}"),
    least=(
        *("l1_waits", "l2_waits", "dram_waits", "l1_hit_events", "l2_hit_events", "dram_events"),
        *("l1_wait_cycles", "l2_wait_cycles", "dram_wait_cycles", "l2_request_sectors"),
        *("dram_requests", "active_executions", "l2_requests", "requests", "shared_wavefronts"),
        *("space", "dram_sectors"),
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=WARM_L2)
    add_gpu(parser)
    parser.add_argument("--per-pc", action="store_true", help="one row per memory instruction")
    add_access_order(parser)
    add_l2(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the counters of the caches by kernel, or by memory instruction."""
    from warpstack.memory.caches import cache_fields

    target = read_gpu(arguments)
    report_unused(arguments, target, cache_fields(arguments.access_order), "cache simulation")
    subject = load_subject(arguments, target)
    app = subject.app
    profiles = ws.simulate_caches(
        subject.ran,
        target,
        access_order=arguments.access_order,
        flush_l2=arguments.flush_l2,
        initial_l2=arguments.initial_l2,
        progress=True,
    )
    profiles = subject.of_reported(profiles)
    if arguments.per_pc:
        tables = []
        for profile in profiles:
            table = profile.per_pc
            table.insert(0, "kernel", profile.kernel.launch_id)
            if arguments.json or arguments.csv:
                table["initial_l2"] = profile.initial_l2
            tables.append(table)
        print_settings(arguments, options_given(arguments), is_last=False)
        print_table(arguments, pd.concat(tables), _LOOK_PER_PC)
        return
    table = pd.concat([profile.to_frame() for profile in profiles], ignore_index=True)
    if arguments.json or arguments.csv:
        print_table(arguments, table)
        return
    for name in _LEVELS:
        hits, all_sectors = table[f"{name}_sector_hits"], table[f"{name}_sectors"]
        table[f"{name}_hits_%"] = (100 * hits / all_sectors.where(all_sectors > 0)).astype(float)
    shown = ["kernel", "name"]
    for name in _LEVELS:
        shown += [f"{name}_sectors", f"{name}_hits_%"]
    shown += ["dram_read_sectors", "dram_write_sectors"]
    settings = settings_text(options_given(arguments))
    what = f"{app.name} on {target.title}: 32-byte sectors"
    print_about(arguments, f"{what}; {settings}" if settings else what)
    print_table(arguments, table[shown], _LOOK)
