"""Every command and option with wrong values: exit status 0 or 2, at most one line of error.

As `test_wrong_arguments`: a sample by a fresh seed, or ``WARPSTACK_WRONG_ARGUMENTS=all`` or ``=SEED``.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import pytest
from test_wrong_arguments import CHOICE, LIMIT, SEED, report

import warpstack as ws
from card_output import output
from effort import rounds
from time_limit import TooSlow, time_limit
from warpstack import cli

SAMPLE = rounds(250)
#: Options that do other work than this test can wait for, with what they have instead.
SLOW = {("trace", "workload"), ("figure", "all"), ("figure", "names"), ("calibrate", "run_here")}
WRONG = {
    "nothing": "",
    "text": "x",
    "dash": "-",
    "minus": "-1",
    "zero": "0",
    "huge": "9" * 400,
    "2**70": str(2**70),
    "nan": "nan",
    "inf": "inf",
    "tiny": "1e-310",
    "equals": "=",
    "setting": "num_sms=x",
    "setting of nan": "clock_ghz=nan",
    "option": "flush_l2=x",
    "option of nan": "merge_threshold=nan",
    "comma": ",",
    "range": "9-1",
    "surrogate": "\udc80",
    "lines": "a\nb",
    "long": "x" * 5000,
    "folder": ".",
    "missing": "missing/file",
    "binary": "binary",
    "unreadable": "unreadable",
    "full": "/dev/full",
    "device": "/dev/null",
    "yaml": "wrong.yaml",
    "csv": "wrong.csv",
    "json": "wrong.json",
}


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = cli.make_parser()
    (subparsers,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(subparsers.choices)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make the files that the calls name, and others that do not fit."""
    folder = tmp_path_factory.mktemp("options")
    kernel = ws.patterns.strided(gs=32, iterations=1, blocks=2, warps_per_block=1)
    app = ws.App([kernel], "small")
    ws.save(app, folder / "small")
    ws.predict(app, "pascal-mdm").to_csv(folder / "p.csv", index=False)
    (folder / "r.csv").write_text("kernel,cycles\n1,100\n")
    (folder / "d.yaml").write_text(
        "kernels: {small: {trace: small}}\ngpu: pascal-mdm\naxes: {num_sms: [1, 2]}\nmodels: [mdm]\n"
    )
    (folder / "run.txt").write_text(output())
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "unreadable").write_text("x")
    (folder / "unreadable").chmod(0)
    (folder / "wrong.yaml").write_text("a: [1\n")
    (folder / "wrong.csv").write_text("kernel,cycles,model\n1,x,\n,,,,\n")
    (folder / "wrong.json").write_text('[{"kernel": {}, "cycles": [1]}]')
    return folder


@pytest.fixture(autouse=True)
def elsewhere(folder, monkeypatch):
    monkeypatch.chdir(folder)


#: The arguments of a call of each command that succeeds.
BASE = {
    "info": ["small"],
    "predict": ["small"],
    "roofline": ["small"],
    "dvfs": ["small", "--clocks", "1.0"],
    "caches": ["small"],
    "simulate": ["small"],
    "timeline": ["small"],
    "trace": ["-o", "traced", "--overwrite", "--", "/bin/true"],
    "convert": ["small", "converted", "--overwrite"],
    "validate": ["p.csv", "r.csv"],
    "sweep": ["d.yaml"],
    "figure": ["--list"],
    "cache": ["--folder", "cached"],
    "gpus": [],
    "calibrate": ["run.txt"],
    "compare": ["small", "small"],
    "lines": ["small"],
    "report": ["small", "-o", "report.html"],
    "completion": ["bash"],
    "manual": [],
    "workloads": [],
}
REFUSED = {"trace"}  # /bin/true is not a CUDA program


def variants() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each option and place of each command with each wrong value."""
    for command, parser in commands().items():
        base = BASE[command]
        places = [i for i, text in enumerate(base) if not text.startswith("-")]
        for name, value in WRONG.items():
            for i in places:
                yield command, f"place {i} = {name}", [*base[:i], value, *base[i + 1 :]]
            for action in parser._actions:
                if not action.option_strings or (command, action.dest) in SLOW:
                    continue
                flag = action.option_strings[-1]
                if isinstance(action, argparse._HelpAction):
                    continue
                given = [flag] if action.nargs == 0 else [f"{flag}={value}"]
                if flag.startswith("-") and not flag.startswith("--") and action.nargs != 0:
                    given = [flag, value]
                where = base.index("--") if "--" in base else len(base)
                yield command, f"{flag} {name}", [*base[:where], *given, *base[where:]]


def problem_of(arguments: list[str], capsys: Any) -> str | None:
    capsys.readouterr()
    shown = warnings.showwarning
    try:
        with time_limit(LIMIT):
            status = cli.main(arguments)
    except SystemExit as end:
        status = end.code
    except TooSlow:
        return f"takes more than {LIMIT} s"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        warnings.showwarning = shown
        plt.close("all")
    said = capsys.readouterr().err
    errors = [line for line in said.splitlines() if "error:" in line]
    if "Traceback" in said or " at 0x" in said:
        return f"says: {said[-300:]}"
    if status not in (0, 2):
        return f"exit status {status}"
    if (status == 2) != (len(errors) == 1):
        return f"exit status {status} and says {said[:300]!r}"
    others = [text for text in said.splitlines() if not text.startswith("warpstack: ") and text]
    if status == 2 and others:
        return f"says besides: {others[0][:300]}"
    return None


def test_every_command_has_a_call_that_succeeds(capsys):
    assert set(BASE) == set(commands()), "add the arguments of new commands to BASE"
    for command, arguments in BASE.items():
        expected = 2 if command in REFUSED else 0
        assert cli.main([command, *arguments]) == expected, command


def test_wrong_values(capsys):
    combinations = list(variants())
    if CHOICE != "all":
        print(f"WARPSTACK_WRONG_ARGUMENTS={SEED}")
        combinations = random.Random(SEED).sample(combinations, SAMPLE)
    problems = []
    for command, what, arguments in combinations:
        found = problem_of([command, *arguments], capsys)
        if found:
            problems.append(f"{command} {what}: {found}")
    report(problems)


def run(arguments: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warpstack", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **settings,
    )


@pytest.mark.slow
def test_full_output():
    with open("/dev/full", "w") as full:
        done = run(["predict", "small"], stdout=full)
    assert done.returncode == 2
    assert done.stderr == "warpstack: error: No space left on device\n"


@pytest.mark.slow
def test_broken_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = run(["info", "small"], stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "name", "expected"),
    [
        ("ascii", b"na\xc3\xa9me", 2),
        ("latin-1", "na\u2126me".encode(), 2),
        ("ascii", b"na\xffme", 2),
    ],
)
def test_names_that_the_terminal_lacks(encoding, name, expected, folder):
    """Names of kernels that are not ASCII, of which no compiler makes any, are refused in one line."""
    path = folder / f"odd {encoding} {name.hex()}"
    source = ws.patterns.strided(gs=1, iterations=1, blocks=1, warps_per_block=1)
    ws.save(ws.App([source], "odd"), path, format="accelsim")
    (path / "warpstack-export.json").unlink()  # the files are edited on purpose
    for file in path.glob("*.traceg"):
        text = file.read_bytes()
        assert source.name.encode() in text
        file.write_bytes(text.replace(source.name.encode(), name))
    for options in ([], ["--json"], ["--csv"], ["--plot", "odd.png"])[
        : None if expected == 0 else 1
    ]:
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(
            [sys.executable, "-m", "warpstack", "predict", str(path), *options],
            capture_output=True,
            env=environment,
            check=False,
        )
        assert done.returncode == expected, done.stderr
        assert b"Traceback" not in done.stderr
        if expected:
            assert done.stderr.count(b"\n") == 1
            assert b"kernel name" in done.stderr
        else:
            assert b"na" in done.stdout
