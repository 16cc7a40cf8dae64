"""Shared fixtures."""

import os
from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import HealthCheck, settings

import compiler_cache
import effort
import warpstack as ws
from warpstack.cli.common import quiet
from warpstack.cuda import kernel

mpl.use("Agg")
# Sweeps of the tests neither use nor fill the user's cache.
os.environ["WARPSTACK_CACHE"] = "off"
# Tables are as wide as where there is no terminal; pytest's workers say how wide that of the tests is.
os.environ["COLUMNS"] = "100"
# Commands do not say that they take long, either, as they may on a machine that does other things.
quiet.PATIENCE_SECONDS = 3600.0

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests marked slow, and try a tenth of the random inputs in the others",
    )
    parser.addoption(
        "--thorough", action="store_true", help="try all random inputs instead of a third of them"
    )


def pytest_configure(config):
    if config.getoption("quick") and config.getoption("thorough"):
        raise pytest.UsageError("--quick and --thorough exclude each other")
    # Before any test module is imported: the number of examples is in decorators.
    effort.tier = next((t for t in ("quick", "thorough") if config.getoption(t)), "usual")
    # Machines are shared: no time limits per example, and the same examples on every run.
    settings.register_profile(
        effort.tier,
        max_examples=effort.rounds(100),
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(effort.tier)
    compiler_cache.install()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    compiler_cache.use(item.get_closest_marker("real_compilers") is None)


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        compiler_cache.make_small()


def pytest_collection_modifyitems(config, items):
    if config.getoption("quick"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def shared():
    """Return the folder of reference material beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the reference material ../shared is not here")
    return SHARED


@pytest.fixture(scope="session")
def strided_path():
    """Return the application that the repository carries."""
    return REPOSITORY / "data" / "traces" / "strided"


@pytest.fixture(scope="session")
def pascal():
    return ws.gpu("pascal-mdm")


@pytest.fixture
def short_shares(monkeypatch):
    """Have short launches run on several threads, a few blocks each at a time."""

    def set_to(instructions):
        monkeypatch.setattr(kernel, "_instructions_ahead", instructions)

    set_to(1)
    return set_to


@pytest.fixture(scope="session")
def bfs(shared):
    """Return the real trace of Rodinia bfs: 16 launches."""
    return ws.load(shared / "traces" / "rodinia-bfs-graph4096")


@pytest.fixture(scope="session")
def bfs_reference(shared):
    import pandas as pd

    return pd.read_csv(shared / "reference" / "rodinia-bfs-graph4096.csv")
