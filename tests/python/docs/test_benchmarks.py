"""The programs that measure speed: each starts, and the sweeps run at their smallest."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
BENCHMARKS = REPOSITORY / "benchmarks"
#: Packages that a benchmark needs beyond the package itself.
NEEDS = {"cluster": "distributed"}
#: `large_app` has no options: it measures when it starts. `large_kernels` is not a program.
WITH_OPTIONS = (
    "cache_sweep",
    "cluster",
    "large_launches",
    "peers",
    "predict_and_simulate",
    "reuse",
    "run",
    "sweep",
)


def run(name, *arguments):
    return subprocess.run(
        [sys.executable, BENCHMARKS / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_are_known_here():
    programs = {path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "test_speed"}
    assert programs == {*WITH_OPTIONS, "large_app", "large_kernels"}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_each_starts(name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    process = run(name, "--help")
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("usage:")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("sweep", ("--most-points", "1", "--sample", "1"), "| grid (2 minutes in the paper) | 1 |"),
        ("cache_sweep", ("--l1", "2", "--l2", "2", "--check", "1"), "| ray-tracing |"),
    ],
)
def test_sweeps_at_their_smallest(name, arguments, said, tmp_path):
    process = run(
        name, *arguments, "--workloads", "ray-tracing", "--workers", "1", "--traces", tmp_path
    )
    assert process.returncode == 0, process.stderr
    assert said in process.stdout
