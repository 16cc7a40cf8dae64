#!/usr/bin/env python3
"""Build the programs of public CUDA suites and run them under `warpstack trace`, without a GPU.

    python studies/suites.py SUITES                        # print the tables
    python studies/suites.py SUITES --only SHOC llm.c      # of some
    python studies/suites.py SUITES --write                # into docs/quality/programs.md
    python studies/suites.py SUITES --keep CSV             # keep what was found, or take it from there

SUITES is a folder with clones of the suites (`suite_programs` says of which, and what is built and
run of each). Programs are built with nvcc, in copies in a temporary folder, and each runs for
``--timeout`` seconds at most. "Verified": the program compares its results itself and says that they
are right.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pages
import pandas as pd
from suite_programs import SUITES, Program

PAGE = pages.DOCS / "quality" / "programs.md"
#: What the programs see: some refuse old GPUs.
GPU = "a100"
#: Seconds for a compiler.
BUILD_SECONDS = 300
#: Faults that a GPU may let pass.
_FAULT = re.compile(r"error: .*(on-fault continue|out-of-bounds|allow-uninitialized)")
COLUMNS = ["suite", "program", "outcome", "reason"]
#: What a program says of wrong results.
_WRONG = re.compile(
    r"\bFAIL\w*|mismatch|not match|incorrect|\bwrong\b|Test failed|\bdiffers? ",
    re.IGNORECASE,
)


def run(command: list[str], folder: Path, seconds: float) -> tuple[int, str]:
    """Run a command; return its status, 124 for one that takes too long, and what it says."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode("utf-8", "replace")
    return done.returncode, done.stdout.decode("utf-8", "replace")


def tried(program: Program, timeout: float) -> tuple[str, str]:
    """Build and run a program: what came of it, and why."""
    if program.needs:
        return "not tried", f"needs {program.needs}"
    with tempfile.TemporaryDirectory(prefix="warpstack-suites-") as place:
        folder = Path(place) / "suite"
        shutil.copytree(program.root, folder, symlinks=True, ignore_dangling_symlinks=True)
        folder = folder / program.folder
        for command in program.build:
            status, said = run(command, folder, BUILD_SECONDS)
            if status != 0:
                return "not built", first_line(said, r"error|undefined|No such file|cannot")
        trace = [sys.executable, "-m", "warpstack", "trace", "--timeout", f"{timeout:g}"]
        trace += ["--gpu", GPU, "--overwrite", "--output", str(Path(place) / "traced")]
        status, said = run([*trace, "--", *program.command], folder, 2 * timeout + 60)
        fault = first_line(said, r"^warpstack: error")
        if status not in (0, 124) and _FAULT.search(said):
            # What a GPU may let pass.
            more = ["--on-fault", "continue", "--allow-uninitialized"]
            status, said = run([*trace, *more, "--", *program.command], folder, 2 * timeout + 60)
            if status == 0:
                return "ran, faulty", fault
        program_said = "\n".join(
            line for line in said.splitlines() if not line.startswith("warpstack:")
        )
        if "the timeout of" in said or status == 124:
            return "too slow", f"more than {timeout:g} s"
        if re.search("launched no kernel$", said, re.MULTILINE):
            status = 0
        if status != 0:
            return "stopped", first_line(said, r"^warpstack: error")
        if program.verified and re.search(program.verified, program_said):
            return "verified", ""
        if _WRONG.search(program_said):
            return "wrong", first_line(program_said, _WRONG.pattern)
        return "ran", ""


def first_line(text: str, pattern: str) -> str:
    """Return the first line with a pattern, short, or else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if re.search(pattern, line, re.IGNORECASE)]
    line = (found or lines or ["it says nothing"])[-1 if not found else 0]
    line = re.sub(r"^warpstack: error: ", "", line)
    line = re.sub(r"\S*/(\S+)", r"\1", line)
    return line if len(line) < 160 else f"{line[:157]}..."


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Count outcomes by suite."""
    outcomes = (
        *("not built", "ran", "ran, faulty", "verified", "too slow", "stopped", "wrong"),
        "not tried",
    )
    counts = pd.crosstab(found["suite"], found["outcome"]).reindex(columns=outcomes, fill_value=0)
    counts = counts.loc[[name for name in SUITES if name in counts.index]]
    counts.loc["all"] = counts.sum()
    table = pd.DataFrame(
        {
            "suite": counts.index,
            "programs": counts.drop(columns="not tried").sum(axis=1),
            "built": counts.drop(columns=["not tried", "not built"]).sum(axis=1),
            "ran to the end": counts[["ran", "ran, faulty", "verified", "wrong"]].sum(axis=1),
            "of these verified": counts["verified"],
            "with faults": counts["ran, faulty"],
            "wrong": counts["wrong"],
            "too slow": counts["too slow"],
            "stopped": counts["stopped"],
        }
    )
    return table


def main() -> None:
    """Try the programs asked for, and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("suites", type=Path, help="folder with clones of the suites")
    parser.add_argument("--only", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a program")
    parser.add_argument("--keep", type=Path, help="CSV file of what was found")
    parser.add_argument("--again", nargs="*", default=[], help="outcomes that are tried again")
    arguments = parser.parse_args()
    found = pd.DataFrame(columns=COLUMNS)
    if arguments.keep and arguments.keep.exists():
        found = pd.read_csv(arguments.keep, keep_default_na=False)
        found = found[~found["outcome"].isin(arguments.again)]
    known = set(zip(found["suite"], found["program"], strict=True))
    for suite in arguments.only:
        for program in SUITES[suite](arguments.suites):
            if (suite, program.name) in known:
                continue
            outcome, reason = tried(program, arguments.timeout)
            print(f"{suite} {program.name}: {outcome} {reason}", file=sys.stderr, flush=True)
            row = pd.DataFrame([[suite, program.name, outcome, reason]], columns=COLUMNS)
            found = pd.concat([found, row], ignore_index=True)
            if arguments.keep:
                found.to_csv(arguments.keep, index=False)
    found = found[found["suite"].isin(arguments.only)].sort_values(
        ["suite", "program"], key=lambda column: column.str.lower()
    )
    shown = found[~found["outcome"].isin(["ran", "verified", "not tried"])]
    texts = {
        "summary": pages.markdown(summary(found)),
        "programs": pages.markdown(shown, labels=4),
    }
    pages.publish(PAGE, texts, arguments.write)


if __name__ == "__main__":
    main()
