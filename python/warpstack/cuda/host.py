"""Traces of unmodified CUDA programs, run without a GPU.

A program that was built with shared cudart loads, instead of NVIDIA's library, the stand-in of this
package: it reads the PTX or the machine code in the program's fat binaries, keeps device memory, and
runs each launch in the functional simulator. Traces come over one by one while the program runs.
"""

from __future__ import annotations

import contextlib
import numbers
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpstack import _core
from warpstack._util.arguments import as_integer, as_path, block_sample, printable, thread_count
from warpstack._util.checked import checked, checked_fields
from warpstack._util.files import temporary_folder
from warpstack._util.former import former_keywords
from warpstack._util.progress import Progress, progress_bar
from warpstack._util.trace_budget import default_budget, default_limit_bytes
from warpstack.cuda import operation_log
from warpstack.cuda.device import check_memory_mib
from warpstack.cuda.disassembly import FIRST_ARCH, LAST_ARCH, find_nvdisasm, listing_of
from warpstack.cuda.kernel import MOST_LAUNCH_THREADS
from warpstack.cuda.libraries import check_libraries, lapack_library
from warpstack.cuda.toolchain import NEEDS_LINUX, assemble, target_number
from warpstack.errors import InputError, not_a, not_one_of
from warpstack.hardware.description import Gpu
from warpstack.traces import operations
from warpstack.traces.io import parquet
from warpstack.traces.trace import KernelTrace, short_name

__all__ = ["Run", "trace_program"]

#: Seconds between two looks for new traces.
_POLL_SECONDS = 0.05
#: Seconds after which a line says that a launch goes on, where there is no bar; then twice as many.
_PATIENCE_SECONDS = 10.0
#: Text that the error of an assertion in a kernel contains.
_ASSERTION = ": assertion `"
#: Seconds that an interrupted program has to end by itself.
_GRACE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of a traced program."""

    launches: int
    traced: int
    instructions: int  # warp instructions in the traces
    status: int  # of the program; negative: the signal that ended it
    errors: tuple[str, ...]  # what makes its results or traces incomplete
    timeout_s: float | None = None  # after which it was ended, if it was
    operations: str = ""  # how many calls of which kinds the host made, in one line

    def __post_init__(self) -> None:
        checked_fields(self)

    @property
    def expected(self) -> bool:
        """Whether the only errors are assertions in kernels, and the program still succeeded."""
        return self.status == 0 and all(_ASSERTION in error for error in self.errors)

    @property
    def is_saved(self) -> bool:
        """Whether there is a trace: of launches, or of what a program without any has its GPU do."""
        return self.traced > 0 or (self.launches == 0 and bool(self.operations))

    def problem(self, *, told: bool = False) -> str:
        """Return what went wrong in one sentence; empty if nothing did, or the program expected it.

        With `told`, errors are only counted: the program's standard error has them.
        """
        parts = [] if self.timeout_s is None else [f"the timeout of {self.timeout_s:g} s is over"]
        if self.errors and not self.expected:
            count = len(self.errors)
            more = f" (and {count - 1} more errors)" if count > 1 else ""
            above = "the error above" if count == 1 else f"the {count} errors above"
            parts.append(above if told else self.errors[0] + more)
        if self.status < 0:
            parts.append(f"the program was ended by {_signal_name(-self.status)}")
        elif self.status > 0:
            parts.append(f"the program exited with status {self.status}")
        return "; ".join(parts)


class _Untraced(InputError):
    """Nothing was traced; `told` says so where the program's standard error has been read."""

    def __init__(self, text: str, told: str) -> None:
        super().__init__(text)
        self.told = told


class _NothingTraced(Exception):
    """No launch was traced to its end, as the program expected."""


@former_keywords(num_threads="workers")
@checked
def trace_program(
    command: Sequence[str | os.PathLike[str] | float],
    output: str | os.PathLike[str],
    *,
    gpu: Gpu | None = None,
    kernel: str | None = None,
    limit_launches: int | None = None,
    sample_blocks: int | str = 1,
    run_others: bool = True,
    device_memory_mib: float | None = None,
    allow_uninitialized: bool = False,
    on_fault: str = "stop",
    check_races: bool = False,
    order: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
    machine_code: str | None = None,
    stop_at_limit: bool = False,
    step_limit: int | None = None,
    workers: int | None = None,
    timeout_s: float | None = None,
    host_time: bool = True,
) -> Run:
    """Run a CUDA program without a GPU and save the traces of its launches.

    Parameters
    ----------
    command
        The program and its arguments. It must have PTX in it and load libcudart as a shared library
        (``nvcc -cudart shared -gencode arch=compute_75,code=compute_75``); a script that starts
        such programs will do, and so will a program that calls the driver (libcuda). With
        `machine_code` it must have machine code instead, or PTX to assemble (``nvcc -cudart shared
        -arch=sm_80``).
    output
        The folder to write, as `warpstack.save` does: it appears complete, when the program has
        ended. What a failing program launched before it failed is kept. A program that only launches
        what is to fail, and ends well, leaves none. Of a program that launches nothing, and only copies or
        calls libraries, it has the operations.
    gpu
        What the program sees when it asks for its device: number of SMs, clock, sizes.
    kernel
        Trace only kernels whose name, mangled or not, contains a match of this POSIX extended
        regular expression. The others run untraced.
    limit_launches
        Trace at most this many launches. Later ones run untraced, so that the program's results
        stay right.
    sample_blocks
        Record about one in so many thread blocks of a launch, or "auto", as for
        `warpstack.cuda.Kernel.launch`; all run.
    run_others
        False: blocks that are not in the sample do not run, as for `warpstack.cuda.Kernel.launch`, so that
        the program's results are not to be used. Launches that need all blocks run whole.
    device_memory_mib
        Memory of the device; 16384 by default. It takes host memory as far as the program uses it.
    allow_uninitialized
        Let kernels read device memory that nobody has written.
    on_fault
        "continue" lets kernels go on after faults that a GPU may let pass (see
        `warpstack.cuda.Kernel.launch`): each is told on standard error, once for each kind and source
        line of a launch.
    check_races
        Two accesses of different warps of a block to one address, one of them a write, without a
        barrier between them are a fault.
    order
        In which order thread blocks run, "time" or "blocks", as for `warpstack.cuda.Kernel.launch`; in the
        order of time as many at once as `gpu` holds.
    overwrite
        Replace a folder that was saved before.
    progress
        Show the number of traced launches and the kernel's name on standard error.
    machine_code
        None: the program's PTX runs. ``sm_80``, say: its machine code for this architecture, or for an
        earlier one of the same major version, or else what ptxas makes of its PTX. Needs nvdisasm
        (package ``nvidia-cuda-nvdisasm``).
    stop_at_limit
        End the program as soon as `limit_launches` launches are traced, with status 0, rather than let
        it run to its end untraced. Its other processes end with their next launch.
    step_limit
        Warp instructions after which a launch counts as endless and fails with
        cudaErrorLaunchTimeout; 10,000,000,000 by default.
    workers
        Threads that run blocks of a long launch at once; None takes as many as the machine runs. Results
        and traces are those of one thread.
    timeout_s
        Seconds after which the program is ended. What was traced until then is kept, and
        `Run.errors` says so.
    host_time
        False: the times that the host spends between its calls are 0 in `App.operations`, and not measured,
        so that two runs of a program have the same operations.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, once the program has ended and what was traced until then is saved. SIGTERM does
        the same and then ends this process, unless it has a handler of its own.
    InputError
        If the program cannot be started, calls a library that does not run without a GPU, loads no
        shared libcudart or has the GPU do nothing, or if the output exists or cannot be written;
        nothing is written then. What happens inside the program is not raised: `Run.problem` reports
        it.

    Warns
    -----
    TraceWarning
        If the program calls cuBLASLt.
    """
    words = [_word(word) for word in command]
    if not words:
        raise InputError("trace: no program is given")
    if on_fault not in ("stop", "continue"):
        raise not_one_of("on_fault", on_fault, ("stop", "continue"))
    if order not in (None, "time", "blocks"):
        raise not_one_of("order", order, ("time", "blocks"))
    target = None if machine_code is None else _runnable_target(machine_code)
    place = as_path("output", output)
    if limit_launches is not None:
        limit_launches = as_integer("limit_launches", limit_launches, 1, 2**64 - 1)
    elif stop_at_limit:
        raise InputError("trace: stop_at_limit needs a limit: give limit_launches, too")
    one_in = block_sample(sample_blocks)
    threads = thread_count(workers, MOST_LAUNCH_THREADS)
    if step_limit is not None:
        step_limit = as_integer("step_limit", step_limit, 1, 2**63)
    if timeout_s is not None and not 0 < timeout_s < threading.TIMEOUT_MAX:
        raise InputError(f"trace: timeout_s = {timeout_s:g}: expected a number of seconds above 0")
    check_libraries(words[0], _stand_ins())
    name = Path(words[0]).name
    end = None if timeout_s is None else time.monotonic() + timeout_s
    with (
        contextlib.suppress(_NothingTraced),
        _stop_signals() as stop,
        parquet.writer(place, name, overwrite=overwrite) as folder,
        _spool() as spool,
        progress_bar(progress, limit_launches, f"tracing {printable(name)}", "launch") as bar,
    ):
        environment = _environment(spool)
        settings = {
            "KERNEL": kernel or "",
            "STOP": "1" if stop_at_limit else "",
            "LIMIT": "" if limit_launches is None else str(limit_launches),
            "SAMPLE_BLOCKS": str(one_in),
            "SKIP_OTHERS": "" if run_others else "1",
            "DEVICE": _device_text(gpu, device_memory_mib),
            "ALLOW_UNINITIALIZED": "1" if allow_uninitialized else "",
            "ON_FAULT": on_fault,
            "CHECK_RACES": "1" if check_races else "",
            "ORDER": order or "",
            "MACHINE_CODE": "" if target is None else str(target),
            "STEP_LIMIT": "" if step_limit is None else str(step_limit),
            "THREADS": str(threads),
            "NO_HOST_TIME": "" if host_time else "1",
        }
        environment.update({f"WARPSTACK_CUDART_{key}": text for key, text in settings.items()})
        launch = _LongLaunch(spool, bar, tell=progress)
        with _process(words, environment) as process:
            launch_ids: list[int] = []
            instructions = 0

            def look() -> None:
                nonlocal instructions
                _answer(spool, machine_code or "")
                launch.look()
                for trace in _arrived(spool):
                    bar.set_description(f"tracing {trace.short_name}")
                    folder.add(trace)
                    launch_ids.append(trace.launch_id)
                    instructions += trace.num_instructions
                    bar.update(1)

            timed_out = _follow(process, look, end, stop)
        launches, errors = _counted(spool)
        traced = len(launch_ids)
        recorded = operation_log.read(spool, launch_ids)
        failed = bool(errors) or process.returncode != 0
        if recorded is not None and launches == 0:
            recorded = None if failed or not operations.has_work(recorded) else recorded
        if recorded is not None:
            folder.add_operations(recorded)
        run = Run(
            launches=launches,
            traced=traced,
            instructions=instructions,
            status=process.returncode,
            errors=errors,
            timeout_s=timeout_s if timed_out else None,
            operations="" if recorded is None else operations.summary(recorded),
        )
        if traced == 0 and stop.signal is not None:
            raise KeyboardInterrupt
        if traced == 0 and run.errors and run.expected:
            raise _NothingTraced  # and nothing is written
        if not run.is_saved:
            texts = (_why_nothing(run, spool, words[0], kernel, told) for told in (False, True))
            raise _Untraced(*texts)
    if stop.signal is not None:
        raise KeyboardInterrupt(f"the traces of {traced} launches are kept")
    return run


class _LongLaunch:
    """Says how far a launch is that takes long: in the bar, or else after seconds in a line."""

    def __init__(self, spool: Path, bar: Progress, *, tell: bool) -> None:
        self._file = spool / "progress"
        self._bar = bar
        self._tell = tell and not (sys.stderr is not None and sys.stderr.isatty())
        self._number = -1
        self._begin = self._next = 0.0
        self._first = 0

    def look(self) -> None:
        try:
            number, done, blocks, name = self._file.read_text(encoding="utf-8").split(" ", 3)
        except (OSError, ValueError):
            return
        now = time.monotonic()
        if int(number) != self._number:
            self._number, self._first = int(number), int(done)
            self._begin, self._next = now, now + _PATIENCE_SECONDS
        seconds = now - self._begin
        text = f"{int(done):,} of {int(blocks):,} blocks"
        if int(done) > self._first and seconds > 1:
            rate = (int(done) - self._first) / seconds
            text += f", about {(int(blocks) - int(done)) / rate:,.0f} s left"
        kernel = printable(short_name(name))
        self._bar.set_description(f"launch {number}, {kernel}: {text}")
        if self._tell and now >= self._next:
            self._next = now + seconds
            line = f"launch {number} ({kernel}) goes on: {text}"
            print(f"warpstack: note: {line}", file=sys.stderr, flush=True)


@dataclass
class _Stop:
    """A signal that asks to stop."""

    signal: int | None = None


def _follow(
    process: subprocess.Popen[bytes], look: Callable[[], None], end: float | None, stop: _Stop
) -> bool:
    """Call `look` again and again until the program has ended; return whether it was ended at `end`."""
    timed_out = False
    while True:
        look()
        if process.poll() is None:
            timed_out = end is not None and time.monotonic() >= end
            if timed_out or stop.signal is not None:
                _end(process)
        if _ended(process):
            look()  # at what came in between
            return timed_out


@contextlib.contextmanager
def _stop_signals() -> Iterator[_Stop]:
    """Notice Ctrl-C and SIGTERM, where they have no handlers, instead of being torn from the work.

    The second one does not wait. SIGTERM ends this process when the work is left.
    """
    stop = _Stop()
    replaced: dict[signal.Signals, Any] = {}

    def notice(received: int, _: object) -> None:
        if stop.signal is not None:
            raise KeyboardInterrupt
        stop.signal = received

    if threading.current_thread() is threading.main_thread():
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        for number, handler in usual.items():
            found = signal.getsignal(number)
            # The command's handler notes the interrupt and does what the usual one does.
            if found is handler or getattr(found, "__wrapped__", None) is handler:
                replaced[number] = signal.signal(number, notice)
    try:
        yield stop
    finally:
        for number, before in replaced.items():
            signal.signal(number, before)
        if stop.signal == signal.SIGTERM:
            os.kill(os.getpid(), signal.SIGTERM)


def _runnable_target(machine_code: str) -> int:
    """Return the number of an architecture whose code runs here, or say what is missing."""
    target = target_number("trace: machine_code", machine_code)
    if not FIRST_ARCH <= target <= LAST_ARCH:
        raise InputError(
            f"trace: machine code for {machine_code} is not executed; choose one of sm_{FIRST_ARCH} to "
            f"sm_{LAST_ARCH}"
        )
    if find_nvdisasm() is None:
        raise InputError(
            "trace: nvdisasm is needed to run machine code and was not found; install it with: pip "
            "install nvidia-cuda-nvdisasm (or put it on the PATH)"
        )
    return target


def _answer(spool: Path, machine_code: str) -> None:
    """Give the program the listings that it waits for (see cpp/stand_ins/state/spool.h)."""
    for question in sorted(spool.glob("module-*")):
        if question.suffix not in (".cubin", ".ptx"):
            continue
        name, data = question.read_bytes().split(b"\n", 1)
        question.unlink()
        file, ending = name.decode("utf-8", "replace"), ".sass"
        try:
            if question.suffix == ".ptx":
                data = assemble(data.decode("utf-8", "replace"), file, machine_code)
            text = listing_of(data, file)
        except InputError as error:
            text, ending = str(error), ".problem"
            if question.suffix == ".ptx":
                text += f"; or build the program with nvcc -arch={machine_code}"
        part = question.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.rename(question.with_suffix(ending))


def _why_nothing(run: Run, spool: Path, program: str, kernel: str | None, told: bool) -> str:
    """Return why there is no trace; see `Run.problem` for `told`."""
    problem = f"; {run.problem(told=told)}" if run.problem() else ""
    if not (spool / "attached").exists():
        return (
            f"{printable(program)}: the program does not load libcudart.so.11.0, .12 or .13 as a shared "
            "library, nor libcuda.so.1, or has a DT_RPATH to one; build it with nvcc -cudart shared (and "
            f"-gencode arch=compute_75,code=compute_75){problem}"
        )
    if run.launches == 0:
        return f"{printable(program)}: the program launched no kernel{problem}"
    chosen = f" that matches {kernel}" if kernel else ""
    return f"{printable(program)}: none of {run.launches} launches{chosen} was traced to its end{problem}"


@contextlib.contextmanager
def _spool() -> Iterator[Path]:
    """Make a folder through which the program hands over its traces (see cpp/stand_ins/state/spool.h)."""
    with temporary_folder() as folder:
        yield folder


def _stand_ins() -> Path:
    """Return the folder of the libraries that programs load instead of NVIDIA's."""
    libraries = Path(_core.__file__).parent / "lib"
    if not (libraries / "libwarpstack_cudart.so").is_file():
        raise InputError(
            f"this warpstack was built without its stand-in for libcudart: {NEEDS_LINUX}"
        )
    return libraries


def _environment(spool: Path) -> dict[str, str]:
    environment = dict(os.environ)
    paths = [str(_stand_ins()), environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, paths))
    # Programs with ranges of NVTX hand them to this library, unless another tool has them.
    environment.setdefault("NVTX_INJECTION64_PATH", str(_stand_ins() / "libwarpstack_cudart.so"))
    lapack = lapack_library()
    if lapack is not None:
        environment["WARPSTACK_LAPACK"] = str(lapack)
    environment["WARPSTACK_CUDART_SPOOL"] = str(spool)
    environment["WARPSTACK_CUDART_READER"] = str(os.getpid())
    environment["WARPSTACK_CUDART_BUDGET"] = str(default_limit_bytes())
    return environment


def _device_text(gpu: Gpu | None, memory_mib: float | None) -> str:
    """Return what the stand-in says of its device (see cpp/stand_ins/state/device_description.h)."""
    values: dict[str, float | str] = {}
    if gpu is not None:
        values = {
            "name": re.sub(r"[;=]", " ", f"warpstack {gpu.title}"),
            "num_sms": gpu.num_sms,
            "clock_khz": gpu.clock_ghz * 1e6,
            "warps_per_sm": gpu.warps_per_sm,
            "threads_per_sm": gpu.threads_per_sm,
            "blocks_per_sm": gpu.blocks_per_sm,
            "registers_per_sm": gpu.registers_per_sm,
            "shared_bytes_per_sm": gpu.shared_memory_kib_per_sm * 1024,
            "l2_bytes": gpu.l2_size_kib * 1024,
            "copy_engines": gpu.copy_engines,
        }
        if gpu.compute_capability > 0:
            values["capability"] = round(10 * gpu.compute_capability)
    if memory_mib is not None:
        check_memory_mib(memory_mib)
        values["memory_bytes"] = memory_mib * 2**20
    texts = {
        # The fields are C integers: what is beyond counts as their largest value.
        key: value
        if isinstance(value, str)
        else str(max(int(value) if key == "memory_bytes" else min(int(value), 2**31 - 1), 1))
        for key, value in values.items()
    }
    return ";".join(f"{key}={text}" for key, text in texts.items())


def _word(word: object) -> str:
    """Return a word of a command as the program gets it."""
    if not isinstance(word, (str, os.PathLike, numbers.Real)):
        raise not_a("command", "words, paths and numbers", word)
    return str(word)


@contextlib.contextmanager
def _process(
    command: Sequence[str], environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program, and end it if what reads its traces fails or is interrupted."""
    try:
        process = subprocess.Popen(command, env=environment)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        remedy = (
            "; it is a source: build it with nvcc -cudart shared -o PROGRAM, or predict it as it is: "
            f"warpstack predict {printable(command[0])}"
            if command[0].endswith(".cu")
            else ""
        )
        raise InputError(f"{printable(command[0])}: cannot be started: {reason}{remedy}") from None
    try:
        yield process
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _arrived(spool: Path) -> Iterator[KernelTrace]:
    """Yield the traces that have come, in the order of their launches, and delete their files."""
    names = (re.fullmatch(r"kernel-([0-9]+)\.wstrace", entry.name) for entry in spool.iterdir())
    for match in sorted(filter(None, names), key=lambda match: int(match[1])):
        file = spool / match[0]
        core = _core.read_trace_file(os.fsencode(file), default_budget())
        file.unlink()
        yield KernelTrace(core)


def _counted(spool: Path) -> tuple[int, tuple[str, ...]]:
    """Return the number of launches and the errors of a program that has ended."""
    launches = 0
    with contextlib.suppress(OSError, struct.error):
        launches = struct.unpack("=QQ", (spool / "state").read_bytes())[0]
    errors: tuple[str, ...] = ()
    with contextlib.suppress(FileNotFoundError):
        text = (spool / "errors").read_text(encoding="utf-8", errors="backslashreplace")
        errors = tuple(text.splitlines())
    return launches, errors


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
