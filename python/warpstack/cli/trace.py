"""``warpstack trace``."""

from __future__ import annotations

import argparse

import warpstack as ws
from warpstack._util.arguments import printable
from warpstack.cli.common.gpu_options import add_gpu, machine_code_of, read_gpu
from warpstack.cli.common.messages import say
from warpstack.cli.common.outputs import check_trace_folder
from warpstack.cli.common.parser import CommandParser
from warpstack.cli.common.stage_options import add_sample_blocks
from warpstack.cli.common.trace_options import (
    add_compiler_options,
    add_device_memory,
    add_launch,
    add_machine_code,
    built,
    compiler_options,
    is_source,
    launched,
    load_workload,
    named_after_source,
    save_trace,
)

SUMMARY = "run a workload or a CUDA program, without a GPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    if isinstance(parser, CommandParser):
        parser.traces_anywhere = True  # SOURCE.cu -o FOLDER -- ARGUMENT...
        parser.afterwards.append(_join_words)
    parser.add_argument("--workload", metavar="NAME", help="one of warpstack workloads")
    parser.add_argument(
        "--size", default="small", help="small (seconds) or paper (near the original's input)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: 0)")
    add_launch(parser)
    add_compiler_options(parser)
    add_machine_code(parser)
    add_sample_blocks(
        parser,
        "record one in K thread blocks of a launch, at least 128; all run (default: 1, all; auto: about "
        "1,024, at least one in 16)",
    )
    parser.add_argument(
        "--skip-others",
        action="store_true",
        help="with --sample-blocks, do not run the other blocks: much faster, and the program's results "
        "are wrong. Launches whose blocks see each other's work run whole",
    )
    parser.add_argument("--output", "-o", required=True, help="folder to write")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a saved trace; other files in its folder stay",
    )
    _add_program(parser)
    add_gpu(parser)


def _join_words(arguments: argparse.Namespace) -> None:
    """Make one command of a program and of what stands after ``--``."""
    arguments.command = [*arguments.trace, *arguments.program]


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace",
        nargs="*",
        metavar="-- PROGRAM ARGUMENT",
        help="a CUDA program, built with nvcc -cudart shared and with PTX (for --machine-code: machine "
        "code) in it, or its source (.cu), and its arguments",
    )
    parser.add_argument(
        "--kernels",
        "--kernel",
        dest="kernel",
        metavar="REGEX",
        help="trace only kernels whose name matches (as grep -E does); the others run untraced",
    )
    parser.add_argument(
        "--max-launches",
        "--limit-launches",
        dest="limit_launches",
        type=int,
        metavar="N",
        help="trace the first N launches (that match); later ones run untraced",
    )
    parser.add_argument(
        "--stop-at-limit",
        action="store_true",
        help="end the program once the launches of --max-launches are traced",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="end the program after this time; what was traced until then is kept",
    )
    parser.add_argument(
        "--step-limit",
        type=int,
        metavar="N",
        help="warp instructions after which a launch counts as endless (default: 10,000,000,000)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        metavar="N",
        help="threads that run blocks of a long launch (default: one per core)",
    )
    parser.add_argument(
        "--no-host-time",
        action="store_true",
        help="do not measure the time that the program spends between its calls: 0 in App.operations",
    )
    add_device_memory(parser)
    parser.add_argument(
        "--allow-uninitialized",
        action="store_true",
        help="let kernels read device memory that nobody has written",
    )
    parser.add_argument(
        "--on-fault",
        choices=("stop", "continue"),
        default="stop",
        help="continue: note faults that a GPU may let pass, once per line, and go on (default: stop)",
    )
    parser.add_argument(
        "--check-races",
        action="store_true",
        help="find accesses of the warps of a block that no barrier orders",
    )
    parser.add_argument(
        "--order",
        choices=("time", "blocks"),
        help="run resident thread blocks beside each other by their time, or one after the other (default: "
        "time for kernels whose blocks draw work or wait by atomics, else blocks)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Trace a program, or a workload."""
    if bool(arguments.command) == (arguments.workload is not None):
        raise ws.InputError(
            "trace: give either a program or its source (warpstack trace -o FOLDER -- ./program its "
            "arguments) or --workload NAME"
        )
    _check_source(arguments)
    check_trace_folder(arguments)  # said before the work, not after it
    if arguments.launch is not None:
        _trace_launches(arguments)
        return
    if arguments.command:
        _trace_program(arguments)
        return
    app = load_workload(
        arguments,
        seed=arguments.seed,
        workers=arguments.workers or None,
        sample_blocks=arguments.sample_blocks,
    )
    save_trace(app, arguments.output, overwrite=arguments.overwrite)


def _check_source(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for options that a source, or a launch of its kernels, has no use for."""
    source, *words = arguments.command or [""]
    for option, given in (
        ("--launch", arguments.launch),
        ("--compiler-options", arguments.compiler_options),
    ):
        if given is not None and not is_source(source):
            raise ws.InputError(f"{option}: there is no source to compile; give SOURCE.cu, too")
    if arguments.launch is None:
        return
    if words:
        what = f"{printable(words[0])}: a trace is of one source"
        if not is_source(words[0]):
            what = f"-- {printable(words[0])}: --launch cannot have arguments of a program"
        raise ws.InputError(what)
    for option, given in (
        ("--kernels", arguments.kernel is not None),
        ("--max-launches", arguments.limit_launches is not None),
        ("--stop-at-limit", arguments.stop_at_limit),
        ("--timeout", arguments.timeout is not None),
    ):
        if given:
            raise ws.InputError(
                f"{option} chooses among the launches of a program, and --launch says which there are; "
                "leave one of them out"
            )


def _trace_launches(arguments: argparse.Namespace) -> None:
    """Trace the launches that ``--launch`` describes."""
    how = {
        "sample_blocks": arguments.sample_blocks,
        "run_others": not arguments.skip_others,
        "check_uninitialized": not arguments.allow_uninitialized,
        "on_fault": arguments.on_fault,
        "check_races": arguments.check_races,
        "order": arguments.order,
        "workers": arguments.workers or None,
    }
    if arguments.step_limit is not None:
        how["step_limit"] = arguments.step_limit
    _check_sample(arguments)
    app = launched(arguments, arguments.command[0], arguments.launch, how)
    save_trace(app, arguments.output, overwrite=arguments.overwrite)


def _check_sample(arguments: argparse.Namespace) -> None:
    if arguments.skip_others and arguments.sample_blocks == 1:
        raise ws.InputError(
            "--skip-others leaves out blocks that --sample-blocks K does not choose; give both"
        )


def _trace_program(arguments: argparse.Namespace) -> None:
    source, *words = arguments.command
    if not source.endswith(".cu"):
        with named_after_source(source, None):
            _trace_command(arguments, arguments.command)
        return
    with (
        built(
            source,
            compiler_options(arguments),
            f"warpstack trace {printable(source)} -o {printable(arguments.output)} ",
        ) as program,
        named_after_source(program, source),
    ):
        _trace_command(arguments, [program, *words])


def _trace_command(arguments: argparse.Namespace, command: list[str]) -> None:
    _check_sample(arguments)
    output = printable(arguments.output)
    try:
        traced = ws.cuda.host.trace_program(
            command,
            arguments.output,
            gpu=read_gpu(arguments),
            kernel=arguments.kernel,
            limit_launches=arguments.limit_launches,
            sample_blocks=arguments.sample_blocks,
            run_others=not arguments.skip_others,
            device_memory_mib=arguments.device_memory,
            allow_uninitialized=arguments.allow_uninitialized,
            on_fault=arguments.on_fault,
            check_races=arguments.check_races,
            order=arguments.order,
            overwrite=arguments.overwrite,
            progress=True,
            machine_code=machine_code_of(arguments),
            stop_at_limit=arguments.stop_at_limit,
            step_limit=arguments.step_limit,
            workers=arguments.workers or None,
            timeout_s=arguments.timeout,
            host_time=not arguments.no_host_time,
        )
    except KeyboardInterrupt as error:
        if error.args:
            say("note", f"{output}: {error}")
        raise
    # Standard output is the program's.
    what = (
        f"{traced.traced} of {traced.launches} launches, {traced.instructions:,} warp instructions"
    )
    if traced.is_saved and not traced.traced:
        what = "the program launched no kernel; warpstack timeline reads what else it did"
    say("note", f"{output}: {what}" if traced.is_saved else f"{what}; {output} is not written")
    if traced.operations and traced.is_saved:
        say("note", f"{output}: {traced.operations}")
    if arguments.sample_blocks != 1 and traced.traced:
        say(
            "note",
            f"{output}: launches of 256 thread blocks or more, and persistent ones, are samples of these; "
            "predict and simulate answer for all",
        )
    if traced.problem():
        raise ws.InputError(f"{traced.problem(told=True)}; {output} has what was traced")
