"""Trace a benchmark that its user has built, in a cache folder, so that a second run finds its trace."""

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

import pages

from . import inputs
from .program import Program


class ProgramError(RuntimeError):
    """A program is missing, or could not be run or traced."""


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
            raise ProgramError(f"it took more than {seconds} s\n{log}") from error
    if status:
        end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
        raise ProgramError(f"it failed ({status})\n{log}:\n" + "\n".join(end))


def fingerprint(program: Program, size: str, executable: Path) -> str:
    """Return what a cached trace depends on, but for this package."""
    parts = (
        hashlib.sha256(executable.read_bytes()).hexdigest(),
        *(size, program.arguments[size], program.launches, program.options, inputs.SEED),
        inspect.getsource(program.make_input),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def traced(
    program: Program, size: str, programs: Path, cache: Path
) -> tuple[Path, dict[str, float]]:
    """Return the folder of a program's trace, made when the cache has none, and what it cost."""
    lacks = pages.lacks_program(programs, program.name)
    if lacks:
        raise ProgramError(f"{lacks}: put there {program.wanted(size)}")
    executable = programs.resolve() / program.name / "program"
    home = cache / f"{program.name}-{size}-{fingerprint(program, size, executable)}"
    trace, facts = home / "trace", home / "facts.json"
    if facts.exists():
        return trace, json.loads(facts.read_text())
    shutil.rmtree(home, ignore_errors=True)
    work = home / "run"
    work.mkdir(parents=True)
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
    return trace, known


def cache_folder() -> Path:
    """Return where traces are kept unless the command line says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "warpstack-originals"
