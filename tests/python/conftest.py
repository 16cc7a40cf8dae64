"""Shared fixtures."""

import os
from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import HealthCheck, settings

import warpstack as ws

mpl.use("Agg")
# Sweeps of the tests neither use nor fill the user's cache.
os.environ["WARPSTACK_CACHE"] = "off"
# Machines are shared: no time limits per example, and the same examples on every run.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"


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


@pytest.fixture(scope="session")
def bfs(shared):
    """Return the real trace of Rodinia bfs: 16 launches."""
    return ws.load(shared / "traces" / "rodinia-bfs-graph4096")


@pytest.fixture(scope="session")
def bfs_reference(shared):
    import pandas as pd

    return pd.read_csv(shared / "reference" / "rodinia-bfs-graph4096.csv")
