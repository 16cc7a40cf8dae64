"""``warpstack simulate``."""

from __future__ import annotations

import argparse

import warpstack as ws
from warpstack._util.lazy import pandas as pd
from warpstack.cli.common.gpu_options import add_gpu, read_gpu, report_unused
from warpstack.cli.common.layout import Look
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import (
    add_output,
    line_width,
    print_csv,
    print_json,
    print_latex,
    print_table,
    say_text,
)
from warpstack.cli.common.outputs import add_overwrite, check_trace_events, output_file
from warpstack.cli.common.settings_text import options_given, print_settings
from warpstack.cli.common.stacks import print_details, print_stacks
from warpstack.cli.common.stage_options import add_l2, add_profiler, add_sample_blocks
from warpstack.cli.common.subject import simulated
from warpstack.cli.common.trace_options import WARM_L2, add_trace, load_subject

SUMMARY = "cycles of kernels, cycle by cycle, and what they are lost to"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_trace(parser, about_l2=f"{WARM_L2} (not with --flush-l2)")
    add_gpu(parser)
    add_l2(parser)
    add_profiler(parser)
    add_sample_blocks(parser)
    add_option_values(parser)
    parser.add_argument(
        "--sample-cycles",
        type=int,
        metavar="CYCLES",
        help="print the state of MSHRs and queues every N cycles instead",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="write the timeline of a kernel for ui.perfetto.dev (.json, .json.gz)",
    )
    add_overwrite(parser)
    parser.add_argument(
        "--max-cycles", type=int, metavar="CYCLES", help="give up on a kernel that takes longer"
    )
    parser.add_argument(
        "--concurrent",
        action="store_true",
        help="run all kernels at the same time, those of one stream one after the other",
    )
    add_output(parser)


def _look_of_samples(samples: pd.DataFrame) -> Look:
    """Return how the state of queues looks: the queues matter more than who waited for how many slots."""
    columns = [str(name) for name in samples.columns]
    slots = [name for name in columns if name.startswith("slots_")]
    heads = {name: f"slots of {name.removeprefix('slots_')}" for name in slots}
    heads["cycle"] = "time (cycles)"
    warps = [name for name in columns if name.startswith("scheduler_warps_")]
    return Look(heads, least=(*warps, *slots, "reply_queue", "l2_mshrs"))


def _print_concurrent(arguments: argparse.Namespace, app: ws.App, target: ws.Gpu) -> None:
    """Print when launches ran that run at the same time, and what all together cost."""
    result = ws.simulate(
        app,
        target,
        concurrent=True,
        flush_l2=arguments.flush_l2,
        initial_l2=arguments.initial_l2,
        profiler=arguments.profiler,
        sample_blocks=arguments.sample_blocks,
        timeline_cycles=arguments.sample_cycles,
        max_cycles=arguments.max_cycles,
        progress=True,
    )
    if arguments.sample_cycles is not None:
        print_settings(arguments, options_given(arguments), is_last=False)
        print_table(arguments, result.timeline, _look_of_samples(result.timeline))
        return
    table = result.to_frame()
    if arguments.json:
        whole = {
            "cycles": result.cycles,
            "time_us": result.time_us,
            "instructions": result.instructions,
            "ipc": result.ipc,
            "cpi": result.cpi,
            **{f"cpi_{part}": value for part, value in result.cpi_stack.items()},
            "totals": result.totals,
        }
        print_json([{**whole, "kernels": table.to_dict("records")}])
    elif arguments.csv:
        print_csv(table)
    elif arguments.latex:
        print_latex(table)
    else:
        print_settings(arguments, options_given(arguments))
        say_text(
            arguments,
            f"{len(app)} kernels at the same time: {result.cycles:,} cycles, {result.time_us:,.2f} us, "
            f"IPC {result.ipc:.3g}",
        )
        print()
        heads = {name: f"{name} (cycles)" for name in ("start", "end")}
        print_table(arguments, table, Look(heads, {"ipc": "{:,.2f}"}, ("gpu",)))


def run(arguments: argparse.Namespace) -> None:
    """Print cycles and CPI stacks of kernels, and the parts of the latency of their loads."""
    from warpstack.hardware.profiler import profiled
    from warpstack.tables import STACK
    from warpstack.timing import simulation

    target = profiled(read_gpu(arguments), arguments.profiler)
    report_unused(arguments, target, simulation.fields_used(target), "the simulation")
    timeline = None if arguments.timeline is None else output_file(arguments, "timeline")
    if timeline is not None:
        timeline.check()
        check_trace_events(timeline)
    subject = load_subject(arguments, target)
    app = subject.app
    if timeline is not None and len(app) != 1:
        raise ws.InputError(
            f"--timeline {arguments.timeline}: a file has the timeline of one kernel, and there are "
            f"{len(app)}; choose one with --kernel"
        )
    if arguments.concurrent:
        if timeline is not None:
            raise ws.InputError(
                f"--timeline {arguments.timeline}: a file has the timeline of one kernel, and with "
                "--concurrent several run at the same time; leave one of them out"
            )
        _print_concurrent(arguments, app, target)
        return
    results = simulated(
        subject,
        target,
        {
            name: getattr(arguments, name)
            for name in ("flush_l2", "initial_l2", "profiler", "sample_blocks")
        },
        timeline_cycles=arguments.sample_cycles,
        max_cycles=arguments.max_cycles,
        timeline=timeline is not None,
    )
    if timeline is not None:
        timeline.write(results[0].to_perfetto)
    if arguments.sample_cycles is not None:
        tables = []
        for result in results:
            samples = result.timeline
            samples.insert(0, "kernel", result.kernel.launch_id)
            tables.append(samples)
        samples = pd.concat(tables, ignore_index=True)
        print_settings(arguments, options_given(arguments), is_last=False)
        print_table(arguments, samples, _look_of_samples(samples))
        return
    table = simulation.as_table(results)
    if arguments.json:
        print_json(simulation.as_records(results))
    elif arguments.csv:
        print_csv(table)
    elif arguments.latex:
        parts = ["kernel", "name", "cycles", "time_us", "ipc", "cpi", *STACK]
        print_latex(table[parts])
    else:
        print_settings(arguments, options_given(arguments))
        print_stacks(app, target, table.to_dict("records"), [], line_width(arguments))
        print()
        say_text(arguments, "What the components consist of, from 1 % of the cycles on")
        print()
        names = [f"{result.kernel.launch_id} {result.kernel.short_name}" for result in results]
        print_details(names, [result.cpi_details for result in results], line_width(arguments))
        print()
        say_text(arguments, "Latency of the loads' L1 misses, mean cycles by part")
        print()
        rows = [
            {
                "kernel": result.kernel.launch_id,
                "misses": result.misses,
                **result.miss_latency["mean"].to_dict(),
                "sum": result.miss_latency["mean"].sum(skipna=False),
            }
            for result in results
        ]
        parts = [*simulation.LATENCY_PARTS, "sum"]
        heads = {part: f"{part} (cycles)" for part in parts}
        look = Look(heads, dict.fromkeys(parts, "{:,.1f}"), (), simulation.LATENCY_PARTS)
        print_table(arguments, pd.DataFrame(rows), look)
