"""End-to-end times as users see them, with a history (pytest-benchmark).

    pip install 'warpstack[bench]'
    pytest benchmarks/test_speed.py --benchmark-autosave       # measures and keeps it in .benchmarks
    pytest benchmarks/test_speed.py --benchmark-compare        # measures, beside the last one that was kept
    pytest-benchmark compare --columns=min,median --sort=name  # what was kept

Seconds are of processor time, of this process and of those that it started: machines are shared.
``benchmarks/peers.py`` holds the bare cache against those that PyPI has.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parent))

from large_app import training_app

import warpstack as ws

pytest.importorskip("pytest_benchmark")

GPU = "titan-v"
#: One that the whole history of the measurements has.
MODEL = "mdm"
WORKLOADS = ("bfs", "spmv")


def cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


pytestmark = [
    pytest.mark.benchmark(timer=cpu_seconds),
    pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning"),
]


def measure(benchmark: Any, work: Callable[[], Any], rounds: int = 5) -> Any:
    """Do some work once for nothing, and then as often as it is measured."""
    return benchmark.pedantic(work, rounds=rounds, warmup_rounds=1)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a short trace."""
    folder = tmp_path_factory.mktemp("saved") / "vectors"
    ws.save(ws.App([ws.patterns.stream(loads=2, blocks=64)], "vectors"), folder)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "pass"],
        ["-c", "import warpstack"],
        ["-m", "warpstack", "--help"],
        ["-m", "warpstack", "predict", "SAVED"],
        ["-m", "warpstack", "predict", "SAVED", "--csv"],
        ["-m", "warpstack", "simulate", "SAVED"],
    ],
    ids=["python", "import", "help", "predict", "predict-csv", "simulate"],
)
def test_program(benchmark: Any, arguments: list[str], saved: Path) -> None:
    """Programs that are over soon, from their start to their end."""
    command = [sys.executable, *(str(saved) if a == "SAVED" else a for a in arguments)]
    measure(benchmark, lambda: subprocess.run(command, check=True, capture_output=True))


@pytest.mark.parametrize("name", WORKLOADS)
def test_trace(benchmark: Any, name: str) -> None:
    """Running a workload without a GPU."""
    measure(benchmark, lambda: ws.workloads.load(name))


@pytest.mark.parametrize("name", WORKLOADS)
def test_predict(benchmark: Any, name: str) -> None:
    """Caches, intervals and one model."""
    app = ws.workloads.load(name)
    measure(benchmark, lambda: ws.predict(app, GPU, MODEL))


@pytest.mark.parametrize("name", WORKLOADS)
def test_simulate(benchmark: Any, name: str) -> None:
    """The same cycle by cycle."""
    app = ws.workloads.load(name)
    measure(benchmark, lambda: ws.simulate(app, GPU), rounds=3)


def test_sweep(benchmark: Any) -> None:
    """A thousand points that share the caches."""
    app = ws.workloads.load("spmv")
    axes = {"noc_bandwidth_gbs": range(400, 1200, 20), "dram_bandwidth_gbs": range(200, 1200, 40)}
    table = measure(benchmark, lambda: ws.sweep(app, GPU, axes, MODEL, workers=1, cache=False), 3)
    assert len(table) == 1000 * len(app)


@pytest.mark.parametrize("sampled", [False, True], ids=["all", "sampled"])
def test_ten_thousand_launches(benchmark: Any, sampled: bool) -> None:
    """An application of short launches: all, and a sample of them."""
    app = training_app(10_000)
    rows = measure(
        benchmark, lambda: ws.predict(app, GPU, MODEL, sample_launches=sampled), rounds=1
    )
    assert len(rows) == 10_000
