#!/usr/bin/env python3
"""Run programs of public CUDA suites under `warpstack trace`, without a GPU.

    python studies/suites.py FOLDER                        # print the tables
    python studies/suites.py FOLDER --only SHOC llm.c      # of some
    python studies/suites.py FOLDER --write                # into docs/data/programs
    python studies/suites.py FOLDER --keep CSV             # keep what was found, or take it from there

FOLDER holds executables that you have built, each as ``SUITE/PROGRAM/program`` with what it reads
beside it; the page says how they are compiled, and `suite_programs` which are run with which
arguments. Each runs in a copy of its folder, for ``--timeout`` seconds at most. "Verified": the
program compares its results itself and says that they are right.
"""

from __future__ import annotations

import math
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pages
import pandas as pd
from suite_programs import SUITES, Program

PAGE = pages.DOCS / "quality" / "programs.md"
#: The GPU that the programs see: some refuse old GPUs.
GPU = "a100"
#: Times its processor time that a program may take beside other work.
PATIENCE = 30
#: The outcome of a program that is not there.
MISSING = "not built"
#: Faults that a GPU may let pass.
_FAULT = re.compile(r"error: .*(on-fault continue|out-of-bounds|allow-uninitialized)")
#: Errors of programs that take too long.
_SLOW = re.compile(r"the timeout of|SIGXCPU")
#: What a program says that does not run on such a GPU.
_OWN_REASON = re.compile(r"[Ww]aiv|(not|n't) support|require|ERROR")
COLUMNS = ["suite", "program", "outcome", "reason"]
#: Messages of a program about wrong results.
_WRONG = re.compile(
    r"\b(FAIL|FAILED|FAILURE)\b|(?i:mismatch|not match|incorrect|\bwrong\b|test failed|\bdiffers? )"
    r"|(Percent|misses): [1-9]"
)


def run(
    command: list[str], folder: Path, seconds: float, processor: float | None = None
) -> tuple[int, str]:
    """Run a command for a while; return its status, 124 for one that takes too long, and what it says.

    `processor` limits the seconds of processor time of each of its processes: beyond them comes SIGXCPU.
    """

    def limit() -> None:
        if processor is not None:
            resource.setrlimit(
                resource.RLIMIT_CPU, (math.ceil(processor), math.ceil(processor) + 5)
            )

    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode("utf-8", "replace")
    return done.returncode, done.stdout.decode("utf-8", "replace")


def attempt(
    folder: Path, suite: str, program: Program, place: Path, timeout: float
) -> tuple[str, str]:
    """Run a program of a suite in a copy below `place`: what came of it, and why."""
    if program.needs:
        return "not tried", f"needs {program.needs}"
    lacks = pages.lacks_program(folder, f"{suite}/{program.name}")
    if lacks:
        return MISSING, f"{lacks}: put there {program.wanted()}"
    own_folder = place / "run"
    shutil.rmtree(own_folder, ignore_errors=True)
    shutil.copytree(folder / suite / program.name, own_folder, ignore_dangling_symlinks=True)
    if program.make_input is not None:
        program.make_input(own_folder)
    status, said = traced(program, place, timeout)
    fault = first_line(said, r"warpstack: error")
    faulty = status != 0 and not _SLOW.search(said) and bool(_FAULT.search(said))
    if faulty:
        # A GPU may let these faults pass: the program is run again past them.
        status, said = traced(
            program, place, timeout, "--on-fault", "continue", "--allow-uninitialized"
        )
    shutil.rmtree(own_folder)
    if _SLOW.search(said) or status in (124, -signal.SIGXCPU):
        return "too slow", f"more than {timeout:g} s"
    if re.search("launched no kernel$", said, re.MULTILINE):
        status = 0
    if "has no stand-in" in said:
        return "refused", re.sub(r".*the program (needs [^,]*),.*", r"\1", fault)
    if status != 0:
        # A program that says itself why it does not run exits with status 2, by the samples' custom.
        its_own = "no kernel" in said and _OWN_REASON.search(said)
        return "stopped", first_line(said, _OWN_REASON.pattern) if its_own else fault
    outcome, reason = verdict(program, said)
    return ("ran, faulty", fault) if faulty and outcome != "wrong" else (outcome, reason)


def verdict(program: Program, said: str) -> tuple[str, str]:
    """Say what a program that has run to its end finds of its results, and where it says so."""
    own = "\n".join(line for line in said.splitlines() if not line.startswith("warpstack:"))
    if _WRONG.search(own):
        return "wrong", first_line(own, _WRONG.pattern)
    if program.verified and re.search(program.verified, own):
        return "verified", ""
    return "ran", ""


def traced(program: Program, place: Path, timeout: float, *options: str) -> tuple[int, str]:
    """Run a program in its copy; return its status and what it says."""
    trace = [sys.executable, "-m", "warpstack", "trace", "--timeout", f"{PATIENCE * timeout:g}"]
    trace += ["--gpu", GPU, "--overwrite", "--output", str(place / "traced"), *options]
    command = [*trace, "--", "./program", *program.arguments]
    status, said = run(command, place / "run", 2 * PATIENCE * timeout, timeout)
    (place / ("again.log" if options else "run.log")).write_text(said, "utf-8")
    shutil.rmtree(place / "traced", ignore_errors=True)
    return status, said


def first_line(text: str, pattern: str) -> str:
    """Return the first line with a pattern, short, or else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if re.search(pattern, line)]
    line = (found or lines or ["it says nothing"])[-1 if not found else 0]
    line = re.sub(r"^.*?warpstack: error: ", "", line)
    line = re.sub(r"\S*/(\S+)", r"\1", line)
    return line if len(line) < 160 else f"{line[:157]}..."


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Count outcomes by suite."""
    outcomes = (
        *(MISSING, "ran", "ran, faulty", "verified", "too slow", "refused", "stopped", "wrong"),
        "not tried",
    )
    counts = pd.crosstab(found["suite"], found["outcome"]).reindex(columns=outcomes, fill_value=0)
    counts = counts.loc[[name for name in SUITES if name in counts.index]]
    counts.loc["all"] = counts.sum()
    table = pd.DataFrame(
        {
            "suite": counts.index,
            "programs": counts.drop(columns="not tried").sum(axis=1),
            "built": counts.drop(columns=["not tried", MISSING]).sum(axis=1),
            "ran to the end": counts[["ran", "ran, faulty", "verified", "wrong"]].sum(axis=1),
            "of these verified": counts["verified"],
            "with faults": counts["ran, faulty"],
            "wrong": counts["wrong"],
            "too slow": counts["too slow"],
            "refused": counts["refused"],
            "stopped": counts["stopped"],
        }
    )
    return table


def list_of_programs() -> pd.DataFrame:
    """Return how programs are compiled and run; those that differ in nothing share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for suite, programs in SUITES.items():
        for program in programs:
            if not program.needs:
                arguments = f"`{' '.join(program.arguments)}`" if program.arguments else ""
                key = (suite, program.build, arguments, program.beside)
                rows.setdefault(key, []).append(program.name)
    cells = [
        [suite, ", ".join(names), *(text or "-" for text in others)]
        for (suite, *others), names in rows.items()
    ]
    head = ["suite", "programs", "compiled with", "arguments", "beside it"]
    return pd.DataFrame(cells, columns=head)


def main() -> None:
    """Try the programs asked for, and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="folder with the executables")
    parser.add_argument("--only", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument(
        "--timeout", type=float, default=60, help="seconds of processor time for a program"
    )
    parser.add_argument("--keep", type=Path, help="CSV file of what was found")
    parser.add_argument(
        "--work",
        type=Path,
        help="folder for what programs say, one for each",
    )
    parser.add_argument("--programs", nargs="+", help="only those of these names")
    parser.add_argument("--kept", action="store_true", help="only what is kept, nothing is run")
    parser.add_argument("--again", nargs="*", default=[], help="outcomes that are tried again")
    arguments = parser.parse_args()
    pages.check_programs(parser, arguments.folder, PAGE)
    found = pd.DataFrame(columns=COLUMNS)
    if arguments.keep and arguments.keep.exists():
        found = pd.read_csv(arguments.keep, keep_default_na=False)
        # Programs that were missing may be there now.
        again = arguments.again if arguments.kept else [*arguments.again, MISSING]
        found = found[~found["outcome"].isin(again)]
    known = set(zip(found["suite"], found["program"], strict=True))
    for suite in arguments.only:
        for program in SUITES[suite]:
            if (suite, program.name) in known or arguments.kept:
                continue
            if arguments.programs and program.name not in arguments.programs:
                continue
            with tempfile.TemporaryDirectory(prefix="warpstack-suites-") as temporary:
                place = (arguments.work or Path(temporary)) / suite / program.name.replace("/", "-")
                place.mkdir(parents=True, exist_ok=True)
                outcome, reason = attempt(
                    arguments.folder, suite, program, place, arguments.timeout
                )
            print(f"{suite} {program.name}: {outcome} {reason}", file=sys.stderr, flush=True)
            row = pd.DataFrame([[suite, program.name, outcome, reason]], columns=COLUMNS)
            found = pd.concat([found, row], ignore_index=True)
            if arguments.keep:
                found.to_csv(arguments.keep, index=False)
    found = found[found["suite"].isin(arguments.only)].sort_values(
        ["suite", "program"], key=lambda column: column.str.lower()
    )
    if found["outcome"].isin(["not tried", MISSING]).all():
        raise SystemExit(f"{arguments.folder}: none of the programs is there")
    shown = found[~found["outcome"].isin(["ran", "verified", "not tried"])]
    tables = {"summary": summary(found), "programs": shown, "list": list_of_programs()}
    pages.publish(PAGE, tables, arguments.write)


if __name__ == "__main__":
    main()
