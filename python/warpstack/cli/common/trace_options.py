"""The subject of a command: a trace, a CUDA source, a workload or a program; and saving a trace."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack._util.arguments import printable
from warpstack._util.progress import work
from warpstack.cli.common.gpu_options import machine_code_of
from warpstack.cli.common.messages import say
from warpstack.cli.common.parser import CommandParser
from warpstack.cli.common.source_text import check_main
from warpstack.cli.common.subject import Subject, named_apart

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu
    from warpstack.traces.launches import Launches
    from warpstack.traces.trace import App

__all__ = [
    "COLD_L2",
    "WARM_L2",
    "add_compiler_options",
    "add_device_memory",
    "add_launch",
    "add_machine_code",
    "add_trace",
    "built",
    "compiler_options",
    "is_source",
    "launched",
    "launches_of",
    "load_subject",
    "load_subjects",
    "load_trace",
    "load_workload",
    "named_after_source",
    "names_kernels",
    "save_trace",
    "sources_of",
]

_SOURCES = (".cu", ".ptx")
_TRACES = (".g", ".traceg", ".trace", ".tracez", ".gz", ".xz", ".zst")
#: What other tools call leaving out the first launches, and what it is here.
_SKIPPING = ("--skip", "--skip-launches", "--launch-skip", "--warmup", "--warm-up")
_SKIP = "; --kernels 2- leaves out the first launch, --kernels 4- the first three"
#: For `add_trace`: the launches before the chosen ones run.
WARM_L2 = "; those before run, too, for what they leave in L2, and take their time and memory"
#: They do not run.
COLD_L2 = "; those before do not run and leave nothing in L2"
_NOTHING = (
    "there is nothing to work on; give a trace, a CUDA source (kernel.cu), --workload NAME or "
    "-- ./program"
)


class _Once(argparse.Action):
    """An option that is refused a second time, where the last one would silently win."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the value of the first time."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "is given twice; give one")
        setattr(namespace, self.dest, values)


def add_trace(
    parser: argparse.ArgumentParser,
    *,
    only: bool = False,
    about_l2: str = "",
    launches: str = "they run in turn",
) -> None:
    """Add the arguments that say what a command is about.

    With `only`, it is one trace, and nothing that a trace would be made of first. `about_l2` says what
    becomes of launches before the chosen ones, and `launches` of those of several ``--launch``.
    """
    traces = (
        "kernelslist.g, one kernel (.traceg, .trace, also compressed), a folder, or a saved trace"
    )
    if only:
        parser.add_argument("trace", help=traces)
    else:
        parser.add_argument(
            "trace",
            nargs="*",
            metavar="TRACE|SOURCE.cu",
            help=f"a trace ({traces}), or a CUDA source: a program with a main, or a kernel for --launch",
        )
        if isinstance(parser, CommandParser):
            parser.traces_anywhere = True
            parser.epilog = (
                "In place of a trace, -- ./program ARGUMENT... runs a CUDA program without a GPU (see "
                "warpstack trace), and SOURCE.cu -- ARGUMENT... builds it first; several sources get the "
                "same arguments."
            )
        _add_made(parser, launches)
    parser.add_argument(
        "--kernels",
        "--kernel",
        metavar="WHICH",
        help="launches to report: numbers (1,4-6 or 2-), names of kernels (gemm*), or both (gemm*,2-3: those "
        f"that either chooses){about_l2} (default: all)",
    )
    if isinstance(parser, CommandParser):
        parser.hints.update(dict.fromkeys(_SKIPPING, _SKIP))
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


def _add_made(parser: argparse.ArgumentParser, launches: str) -> None:
    group = parser.add_argument_group("traces made on the way")
    add_launch(group, launches)
    group.add_argument(
        "--workload", metavar="NAME", action=_Once, help="one of warpstack workloads"
    )
    group.add_argument("--size", help="of the workload: small (default) or paper")
    add_machine_code(parser, group)
    add_compiler_options(group)
    add_device_memory(group)


def add_launch(group: argparse._ActionsContainer, launches: str = "they run in turn") -> None:
    """Add ``--launch``, and say what becomes of several."""
    group.add_argument(
        "--launch",
        metavar="LAUNCH",
        action="append",
        help="launch a kernel of SOURCE.cu, or of each: 'name<<<grid, block>>>(float[1048576], 1048576)' "
        "with arrays to allocate; they hold zeros, or what stands after =: a number, range, 16 * range, "
        "random, random(256) (whole numbers below it) or FILE.npy; of several, given again or with "
        f"semicolons between, an array with a name, as x of float x[1024], is the same; {launches}",
    )


def add_compiler_options(group: argparse._ActionsContainer) -> None:
    """Add ``--compiler-options``."""
    group.add_argument(
        "--compiler-options",
        metavar="TEXT",
        help="for the compiler of SOURCE.cu: --compiler-options='-DN=4 -Iinclude'",
    )


def add_machine_code(
    parser: argparse.ArgumentParser, group: argparse._ActionsContainer | None = None
) -> None:
    """Add ``--machine-code``, whose value may be left out: it is None, True or a name such as sm_80."""
    (group or parser).add_argument(
        "--machine-code",
        nargs="?",
        const=True,
        metavar="ARCH",
        help="run machine code for ARCH (sm_80, say; default: that of --gpu) instead of PTX; needs nvdisasm "
        "for sources and programs",
    )
    if isinstance(parser, CommandParser):
        # Before what else is done with the traces.
        parser.afterwards.insert(0, partial(_read_machine_code, parser))


def _read_machine_code(parser: CommandParser, arguments: argparse.Namespace) -> None:
    """Take a word that is not an architecture for a trace that follows the option."""
    given = arguments.machine_code
    if not isinstance(given, str) or re.fullmatch(r"(sm|compute)_.*", given):
        return
    if not is_source(given) and not os.path.exists(given):
        parser.error(
            f"--machine-code {printable(given)}: is neither an architecture such as sm_80 nor a source"
        )
    arguments.trace = [*arguments.trace, given]
    arguments.machine_code = True


def add_device_memory(parser: argparse._ActionsContainer) -> None:
    """Add the option of commands that run kernels."""
    parser.add_argument(
        "--device-memory",
        type=float,
        metavar="MIB",
        help="memory of the simulated device (default: 16384)",
    )


def load_trace(arguments: argparse.Namespace, gpu: Gpu | None = None) -> App:
    """Return the one application that the arguments name; `gpu` is the device that a program sees.

    With a `gpu`, on which it is to run, a note says that chosen launches begin with an empty L2.
    """
    _check_one(arguments)
    (subject,) = _subjects(arguments, gpu, earlier=False)
    if gpu is not None and arguments.kernels:
        _say_what_is_cold([subject.app])
    return subject.app


def load_subject(arguments: argparse.Namespace, gpu: Gpu) -> Subject:
    """Return the one application that the arguments name, as `load_subjects` does."""
    _check_one(arguments)
    (subject,) = load_subjects(arguments, gpu)
    return subject


def load_subjects(arguments: argparse.Namespace, gpu: Gpu, *, apart: bool = False) -> list[Subject]:
    """Return the applications that the arguments name, with the launches before the chosen ones.

    With `apart`, each ``--launch`` is an application of its own, and of two sources each has its own one.

    They are read, or run without a GPU for their traces; `gpu` is the device that a program sees. Where L2
    is emptied between launches, those before have nothing to say. A sample is one of the chosen launches.

    Raises
    ------
    InputError
        If nothing is named, or two things that exclude each other; and whatever is wrong with them.
    """
    samples = getattr(arguments, "sample_launches", False) is not False
    flushes = getattr(arguments, "flush_l2", False)
    subjects = _subjects(arguments, gpu, earlier=not (samples or flushes), apart=apart)
    if samples and not flushes and arguments.kernels:
        _say_what_is_cold([subject.app for subject in subjects])
    return subjects


def _check_one(arguments: argparse.Namespace) -> None:
    if isinstance(arguments.trace, list) and len(arguments.trace) > 1:
        raise ws.InputError(
            f"{len(arguments.trace)} traces are given, {', '.join(arguments.trace[:3])}: this command "
            "takes one; predict takes several"
        )


def is_source(path: str) -> bool:
    """Return whether a path is that of a source, which is compiled, and not of a trace."""
    return path.endswith(_SOURCES)


def sources_of(arguments: argparse.Namespace) -> list[str]:
    """Return the sources whose lines a trace names: those of --source, and the CUDA source that is traced."""
    given = list(arguments.source or [])
    if isinstance(arguments.trace, list) and len(arguments.trace) == 1:
        (path,) = arguments.trace
        if path.endswith(".cu") and path not in given:
            given.append(path)
    return given


def _subjects(
    arguments: argparse.Namespace, gpu: Gpu | None, *, earlier: bool, apart: bool = False
) -> list[Subject]:
    """Return what the arguments name; `earlier` asks for the launches before the chosen ones."""
    if isinstance(arguments.trace, str):
        return [_read(arguments, arguments.trace, earlier)]
    _check(arguments)
    if apart and arguments.launch is not None and len(arguments.launch) > 1:
        return _launched_apart(arguments, earlier)
    return _made_or_read(arguments, gpu, earlier)


def _launched_apart(arguments: argparse.Namespace, earlier: bool) -> list[Subject]:
    """Return an application for each ``--launch``: of the one source, or each of its own source."""
    launches, traces = arguments.launch, arguments.trace
    if len(launches) > 2:
        raise ws.InputError(
            f"--launch is given {len(launches)} times; two are compared. Several that run in turn are one "
            "with semicolons: --launch 'first<<<...>>>(...); second<<<...>>>(...)'"
        )
    if launches[0].split() == launches[1].split() and len(traces) == 1:
        raise ws.InputError(
            f"--launch {launches[0]}: is given twice; give another one to compare it with, or one launch "
            "and two sources"
        )
    if len(traces) > 2 or not all(map(is_source, traces)):
        raise ws.InputError(
            "two --launch are compared of one source, or of two, the first launch of the first one; got "
            + ", ".join(map(printable, traces))
        )
    paths = traces * (2 // len(traces))
    apps = [
        _launched(arguments, path, [launch]) for path, launch in zip(paths, launches, strict=True)
    ]
    if len(traces) == 1:
        kernels = ["; ".join(dict.fromkeys(k.short_name for k in app)) for app in apps]
        if kernels[0] == kernels[1]:
            kernels = [text.partition(">>>")[0].strip() + ">>>" for text in launches]
        for app, name in zip(apps, kernels, strict=True):
            app.name = name
    return [_chosen(arguments, app, earlier) for app in apps]


def _say_what_is_cold(apps: Sequence[App]) -> None:
    """Say which launches do not meet in L2 what those before them leave there."""
    cold = []
    for app in apps:
        before = 0
        for kernel in app:
            if kernel.launch_id > before + 1:
                cold.append(kernel.launch_id)
            before = kernel.launch_id
    if cold:
        more = f" and before {len(cold) - 1} more" if len(cold) > 1 else ""
        say(
            "note",
            f"--kernels leaves out launches before kernel {cold[0]}{more}, whose data is not in L2 "
            f"then; --kernels 1-{cold[-1]} runs them, too",
        )


def _made_or_read(arguments: argparse.Namespace, gpu: Gpu | None, earlier: bool) -> list[Subject]:
    if arguments.workload is not None:
        with _output_aside(), work(f"running the workload {arguments.workload}"):
            app = load_workload(arguments)
            return [_chosen(arguments, app, earlier)]
    if arguments.program and not arguments.trace:
        return [_traced(arguments, arguments.program, gpu, earlier)]
    subjects = [
        _of_source(arguments, path, gpu, earlier)
        if is_source(path)
        else _read(arguments, path, earlier)
        for path in arguments.trace
    ]
    return named_apart(subjects, arguments.trace)


def load_workload(arguments: argparse.Namespace, **how: Any) -> App:
    """Return the traces of the workload that the arguments name; `how` is passed on."""
    arch = machine_code_of(arguments)
    known = ws.workloads.machine_codes()
    if arch is not None and arch not in known:
        raise ws.InputError(
            f"--machine-code {arch}: workloads have machine code for {', '.join(known)}; choose one of them"
        )
    return ws.workloads.load(
        arguments.workload,
        arguments.size or "small",
        device_memory_mib=arguments.device_memory,
        machine_code=arch,
        **how,
    )


def _check(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for options that do not go together."""
    traces, program, workload = arguments.trace, arguments.program, arguments.workload
    sources = [path for path in traces if is_source(path)]
    named = [
        what
        for what, given in (
            (f"the trace {printable(traces[0])}" if traces else "", traces),
            (f"--workload {workload}", workload is not None),
            (f"-- {printable(program[0])}" if program else "", program and not sources),
        )
        if given
    ]
    if not named:
        raise ws.InputError(_NOTHING)
    if sources and (words := [path for path in traces if not _may_be_trace(path)]):
        raise ws.InputError(
            f"{printable(words[0])} is neither a trace nor a source; arguments of a program stand after --: "
            f"{printable(sources[0])} -- {printable(' '.join(words))}"
        )
    if len(named) > 1:
        raise ws.InputError(f"{named[0]} and {named[1]} are given; leave one of them out")
    for option, given in (
        ("--launch", arguments.launch),
        ("--compiler-options", arguments.compiler_options),
    ):
        if given is not None and not sources:
            raise ws.InputError(f"{option}: there is no source to compile; give SOURCE.cu, too")
    if arguments.machine_code is not None and not (sources or program or workload):
        raise ws.InputError("--machine-code: nothing is run for a trace that is read; leave it out")
    if program and arguments.launch is not None:
        raise ws.InputError(
            f"-- {printable(program[0])}: --launch cannot have arguments of a program"
        )
    if arguments.device_memory is not None and not (sources or program or workload):
        raise ws.InputError(
            "--device-memory: nothing is run for a trace that is read; leave it out"
        )
    if arguments.size is not None and workload is None:
        raise ws.InputError("--size is of a workload; give --workload NAME, too")


def _may_be_trace(path: str) -> bool:
    """Return whether a path can be that of a source or a trace; other files are input of programs."""
    return is_source(path) or path.endswith(_TRACES) or os.path.isdir(path)


def _read(arguments: argparse.Namespace, path: str, earlier: bool) -> Subject:
    from warpstack.traces.launches import Launches, launches_of_text

    _refuse_others(path)
    launches = None
    if arguments.kernels is not None and not names_kernels(arguments.kernels):
        launches = Launches.of(launches_of_text(arguments.kernels, "--") or ())
    to_read: Any = launches.with_earlier() if launches is not None and earlier else launches
    app = ws.load(
        path,
        kernels=to_read,
        memory_limit_mib=arguments.memory_limit,
        missing="skip" if arguments.skip_missing else "error",
        progress=True,
    )
    return (
        _chosen(arguments, app, earlier)
        if launches is None
        else _of(app, _places(app, launches), earlier)
    )


def names_kernels(text: str | None) -> bool:
    """Return whether a choice of launches has names of kernels, which only a trace can tell."""
    return text is not None and re.search(r"[A-Za-z_]", text) is not None


def _refuse_others(path: str) -> None:
    """Raise `InputError` for files that are no traces but that another option takes."""
    if not os.path.isfile(path):
        return
    if path.endswith((".yaml", ".yml")):
        raise ws.InputError(
            f"{printable(path)} is not a trace; a description of a GPU goes to --gpu, a design of a sweep to "
            "warpstack sweep"
        )
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if file.read(4) == b"\x7fELF":
            program = printable(path if os.sep in path else f".{os.sep}{path}")
            raise ws.InputError(
                f"{printable(path)} is a program, not a trace; run it: -- {program} ARGUMENT..."
            )


def _chosen(arguments: argparse.Namespace, app: App, earlier: bool) -> Subject:
    """Return the launches of an application that ``--kernels`` chooses."""
    if arguments.kernels is None:
        return Subject(app, app)
    return _of(app, launches_of(app, arguments.kernels), earlier)


def launches_of(app: App, text: str) -> list[int]:
    """Return the places in an application of the launches that ``--kernels`` chooses."""
    from warpstack.traces.launches import Launches, launches_named, launches_of_text

    named = launches_named(app, text, "--") if names_kernels(text) else launches_of_text(text, "--")
    launches = Launches.of(named or ())
    launches.check({kernel.launch_id for kernel in app}, app.name)
    return _places(app, launches)


def _places(app: App, launches: Launches) -> list[int]:
    return [place for place, k in enumerate(app) if launches.is_chosen(k.launch_id)]


def _of(app: App, places: list[int], earlier: bool) -> Subject:
    """Return the launches at some places, and with `earlier` those before the last of them."""
    if not places:
        raise ws.InputError(f"{app.name}: the files of all chosen launches are missing")
    chosen = app._part(places)
    if not earlier or len(places) == places[-1] + 1:
        return Subject(chosen, chosen)
    return Subject(chosen, app._part(range(places[-1] + 1)))


def _of_source(arguments: argparse.Namespace, path: str, gpu: Gpu | None, earlier: bool) -> Subject:
    """Return the traces of a source: of launches of its kernels, or of all that its program makes."""
    if arguments.launch is not None:
        return _chosen(arguments, _launched(arguments, path, arguments.launch), earlier)
    options = compiler_options(arguments)
    with built(path, options) as program:
        return _traced(arguments, [program, *arguments.program], gpu, earlier, path)


def _launched(arguments: argparse.Namespace, path: str, launches: Sequence[str]) -> App:
    with _output_aside():
        return launched(arguments, path, launches)


def launched(
    arguments: argparse.Namespace,
    path: str,
    launches: Sequence[str],
    how: Mapping[str, Any] | None = None,
) -> App:
    """Return the traces of launches of a source's kernels; `how` is passed on to each launch."""
    from warpstack.cli.common.launch_run import run_launches
    from warpstack.cli.common.launch_text import read_launches

    # A design file has its files beside it.
    read = read_launches(launches, getattr(arguments, "launch_folder", ""))
    kernels = ", ".join(dict.fromkeys(launch.kernel for launch in read))
    with work(f"running {kernels} of {printable(path)}"):
        traces = run_launches(
            path,
            read,
            options=compiler_options(arguments),
            device_memory_mib=arguments.device_memory,
            machine_code=machine_code_of(arguments),
            how=how,
        )
    return ws.App(traces, Path(path).stem)


@contextlib.contextmanager
def built(path: str, options: Sequence[str] = (), command: str = "") -> Iterator[str]:
    """Give the program of a source, which is deleted afterwards.

    `command` is one that launches kernels of a source without a main, where the user's does not.
    """
    check_main(path, command)
    with tempfile.TemporaryDirectory(prefix="warpstack-") as folder:
        program = Path(folder) / Path(path).stem
        with work(f"compiling {printable(path)}"):
            ws.cuda.toolchain.build_program(path, program, options)
        yield str(program)


@contextlib.contextmanager
def named_after_source(program: str, source: str | None) -> Iterator[None]:
    """Let errors of a program name its source, if there is one, and not repeat what was printed."""
    try:
        yield
    except ws.InputError as error:
        text = str(getattr(error, "told", error))
        if source is not None:
            text = text.replace(printable(program), printable(source))
        raise ws.InputError(text) from None


def _traced(
    arguments: argparse.Namespace,
    command: list[str],
    gpu: Gpu | None,
    earlier: bool,
    source: str | None = None,
) -> Subject:
    """Return the traces of a program, which are kept in memory only.

    Errors name its `source` where there is one: its program is gone when they are read.
    """
    with tempfile.TemporaryDirectory(prefix="warpstack-") as folder:
        place = Path(folder) / "traced"
        with _output_aside(), named_after_source(command[0], source):
            run = ws.cuda.host.trace_program(
                command,
                place,
                gpu=gpu,
                device_memory_mib=arguments.device_memory,
                progress=True,
                machine_code=machine_code_of(arguments),
            )
        if not run.is_saved:
            name = printable(source or command[0])
            raise ws.InputError(f"{name}: none of its launches ended well")
        if run.problem():
            say("warning", f"{run.problem(told=True)}; what was traced until then is used")
        return _read(arguments, str(place), earlier)


def compiler_options(arguments: argparse.Namespace) -> list[str]:
    """Return what ``--compiler-options`` says, word by word."""
    text = arguments.compiler_options or ""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ws.InputError(f"--compiler-options {text}: {error}") from None


@contextlib.contextmanager
def _output_aside() -> Iterator[None]:
    """Let what a program and its kernels print go to standard error: standard output is the answer."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, AttributeError):  # there is no standard output
        yield
        return
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def save_trace(
    app: App,
    output: str,
    *,
    overwrite: bool,
    kind: str = "parquet",
    binary_version: int | None = None,
    compression: str | None = None,
) -> None:
    """Save a trace and print what was written."""
    ws.save(
        app,
        output,
        format=kind,
        binary_version=binary_version,
        compression=compression,
        overwrite=overwrite,
        progress=True,
    )
    size = sum(file.stat().st_size for file in Path(output).rglob("*") if file.is_file())
    launches = "kernel" if len(app) == 1 else "kernels"
    print(
        f"{printable(output)}: {len(app)} {launches}, {sum(k.num_instructions for k in app):,} warp "
        f"instructions, {size / 2**20:.2f} MiB"
    )
