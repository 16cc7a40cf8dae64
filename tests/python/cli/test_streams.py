"""Closed streams, interrupts at any moment, and cells that spreadsheets compute."""

import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import warpstack as ws
from effort import rounds
from warpstack.cli import main
from warpstack.tables import csv_texts, texts_of_csv


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    ws.save(ws.patterns.stream(blocks=2), folder / "app")
    ws.save(ws.patterns.stream(blocks=2), folder / "sim", format="accelsim")
    (folder / "design.yaml").write_text(
        "gpu: pascal-mdm\nkernels: {app: {trace: app}}\naxes: {num_sms: [28, 56]}\nmodels: [mdm]\n"
    )
    return folder


COMMANDS = [
    "info app",
    "info sim/kernelslist.g",
    "predict app",
    "predict app --plot out.png",
    "caches app",
    "lines app",
    "simulate app",
    "simulate app --timeline t.json",
    "timeline app",
    "timeline app --perfetto p.json",
    "roofline app",
    "dvfs app --clocks 1",
    "report app -o out.html",
    "convert app {new}",
    "sweep design.yaml -o out.csv",
    "trace --workload spmv -o {new}",
    "gpus",
    "workloads",
    "compare app app",
    "figure mwp-table2",
]


def run(command, folder, closed=(), **options):
    new = f"new-{time.monotonic_ns()}"
    words = command.format(new=new).split()

    def close():
        for number in closed:
            os.close(number)

    return subprocess.run(
        [sys.executable, "-m", "warpstack", *words],
        cwd=folder,
        preexec_fn=close,
        check=False,
        **options,
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_without_standard_error_or_any_stream(trace, command):
    """The answer is the same; nothing that is written there gets into a file."""
    usual = run(command, trace, capture_output=True)
    assert usual.returncode == 0, usual.stderr
    quiet = run(command, trace, closed=(2,), stdout=subprocess.PIPE)
    assert quiet.returncode == 0
    changing = ("(s)", " s", "new-")  # seconds, whose heading may be folded, and files
    if not any(word in usual.stdout.decode() for word in changing):
        assert quiet.stdout == usual.stdout
    assert run(command, trace, closed=(0, 1, 2)).returncode == 0


def test_errors_without_standard_error(trace):
    assert run("predict none", trace, closed=(2,), stdout=subprocess.PIPE).returncode == 2


@pytest.mark.slow
def test_interrupts_at_any_moment(trace):
    """One line and status 130, or the answer; only before Python runs the command can it be more."""
    chance = random.Random(time.monotonic_ns())
    for _ in range(rounds(40)):
        wait = chance.uniform(0.03, 1.5)
        process = subprocess.Popen(
            [sys.executable, "-m", "warpstack", "predict", "app"],
            cwd=trace,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # A shell's job in the background would ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1].decode()
        if process.returncode == -signal.SIGINT or (
            "warpstack:" not in error and "__main__.py" not in error
        ):
            continue  # Python itself had not begun, or was at its end
        assert process.returncode in (0, 130), (wait, error)
        assert "Traceback" not in error, wait
        assert error in ("", "warpstack: error: interrupted\n"), wait


def test_an_interrupt_that_python_drops_comes_again():
    """Exceptions in destructors and callbacks of weak references end nothing; imports have the latter."""
    code = """
import signal, sys, time
import warpstack.__main__, warpstack.cli
class Gone:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def run():
    Gone()
    time.sleep(60)
signal.signal(signal.SIGINT, signal.default_int_handler)
warpstack.cli.main = run
sys.exit(warpstack.__main__.main())
"""
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, timeout=50)
    assert (done.returncode, done.stderr) == (130, b"warpstack: error: interrupted\n")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "'=1", "''-", "plain", "'plain", "a=b"])
def test_names_that_a_spreadsheet_would_compute(name, tmp_path):
    kernel = ws.patterns.KernelBuilder(name, grid=1, block=32)
    kernel.emit("EXIT")
    trace = kernel.build()
    ws.save(trace, tmp_path / "app")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["predict", str(tmp_path / "app"), "--csv"]) == 0
    text = printed.getvalue()
    cell = pd.read_csv(io.StringIO(text))["name"].iloc[0]
    assert cell.lstrip("'")[:1] not in "=+-@\t" or cell.startswith("'")
    (tmp_path / "rows.csv").write_text(text)
    again = texts_of_csv(pd.read_csv(io.StringIO(text)))
    assert again["name"].iloc[0] == ws.predict(trace, "pascal-mdm")["name"].iloc[0]


def test_texts_come_back_from_csv():
    texts = ["=a", "'=a", "''=a", "a", "'a", "", "-", "+", "@", "\rx", "=", "'"]
    table = pd.DataFrame({"text": texts, "number": -1.5, "kernel": range(len(texts))})
    safe = csv_texts(table)
    assert not safe["text"].str.match(r"^[=+\-@\t\r]").any()
    assert (safe["number"] == -1.5).all()
    assert texts_of_csv(safe)["text"].tolist() == texts
    pd.testing.assert_series_equal(texts_of_csv(safe)["number"], table["number"])
    assert csv_texts(table[["number"]]) is not safe
