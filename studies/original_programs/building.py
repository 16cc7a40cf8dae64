"""Build and trace a benchmark in a cache folder, so that a second run finds its trace."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import inputs
from .program import Program

INCLUDE = Path(__file__).parent / "include"
#: PTX for the simulator and the runtime as a shared library, which `warpstack trace` replaces.
FLAGS = (
    *("-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"),
    *("-O2", "-lineinfo", "-w"),
)
NVCC = ("nvcc", *FLAGS, "-include", str(INCLUDE / "today.h"))
#: C of the nineties: implicit declarations and definitions in headers.
CC = ("gcc", "-O2", "-w", "-std=gnu89", "-fcommon", "-fopenmp")


class BuildError(RuntimeError):
    """A program could not be built, run or traced."""


def run(command: tuple[str, ...], folder: Path, log: Path, seconds: int) -> None:
    """Run a command in a folder; what it prints goes to a log, whose end an error shows."""
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {' '.join(command)}\n")
        stream.flush()
        try:
            status = subprocess.run(
                command, cwd=folder, stdout=stream, stderr=stream, timeout=seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"{command[0]} took more than {seconds} s; see {log}") from error
    if status:
        end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
        raise BuildError(
            f"{Path(command[0]).name} failed ({status}), see {log}:\n" + "\n".join(end)
        )


def build(program: Program, size: str, suites: Path, folder: Path) -> Path:
    """Copy, repair and compile a program; return its executable."""
    for part in program.folders:
        if not (suites / part).exists():
            raise BuildError(f"{suites / part} does not exist: the page says how to get it")
        shutil.copytree(suites / part, folder / part, dirs_exist_ok=True)
    for repair in program.repairs_of(size):
        repair.apply(folder)
    log = folder / "build.log"
    includes = (INCLUDE, *(folder / each for each in program.includes))
    flags = [f"-I{each}" for each in includes]
    objects = []
    for number, source in enumerate(program.sources):
        path = folder / source
        compiler = CC if path.suffix == ".c" else NVCC
        own = program.flags if compiler is NVCC else ()
        target = f"{number}-{path.stem}.o"
        command = (*compiler, *flags, *own, "-c", str(path), "-o", str(folder / target))
        run(command, path.parent, log, 300)
        objects.append(target)
    run((*NVCC, "-Xcompiler", "-fopenmp", *objects, "-o", "program", "-lm"), folder, log, 300)
    return folder / "program"


def fingerprint(program: Program, size: str) -> str:
    """Return what a cached trace depends on, but for the suites' files, compilers and this package."""
    repairs = [
        (repair.file, repair.pattern, repair.replacement) for repair in program.repairs_of(size)
    ]
    parts = (
        *(program.folders, program.sources, program.includes, program.flags, repairs, CC, FLAGS),
        *(size, program.arguments[size], program.launches, program.options, inputs.SEED),
        inspect.getsource(program.make_input),
        *(path.read_text(encoding="utf-8") for path in sorted(INCLUDE.iterdir())),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def traced(program: Program, size: str, suites: Path, cache: Path) -> tuple[Path, dict[str, float]]:
    """Return the folder of a program's trace, made when the cache has none, and what it cost."""
    home = cache / f"{program.name}-{size}-{fingerprint(program, size)}"
    trace, facts = home / "trace", home / "facts.json"
    if facts.exists():
        return trace, json.loads(facts.read_text())
    shutil.rmtree(home, ignore_errors=True)
    work = home / "run"
    work.mkdir(parents=True)
    executable = build(program, size, suites, home / "build")
    program.make_input(work, size)
    limit = ("--limit-launches", str(program.launches)) if program.launches else ()
    command = (
        *(sys.executable, "-m", "warpstack", "trace", "-o", str(trace)),
        *("--device-memory", "3072", *limit, *program.options),
        *("--", str(executable), *program.arguments[size]),
    )
    start = time.perf_counter()
    run(command, work, home / "trace.log", 540)
    known = {"trace_seconds": time.perf_counter() - start}
    facts.write_text(json.dumps(known))
    shutil.rmtree(work)
    shutil.rmtree(home / "build", ignore_errors=True)
    return trace, known


def cache_folder() -> Path:
    """Return where traces are kept unless the command line says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "warpstack-originals"
