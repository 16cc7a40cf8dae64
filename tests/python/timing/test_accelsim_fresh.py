"""The simulator against Accel-Sim on launches that nothing was chosen by (`studies/accelsim_fresh.py`)."""

import sys
from pathlib import Path

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "studies"))
import accelsim_fresh as study  # noqa: E402


@pytest.fixture(scope="module")
def launches(shared):
    if not (shared / "traces" / "accelsim-fresh").is_dir():
        pytest.skip("the fresh launches are not among the reference material")
    return study.held_against(shared, study.simulated_gpu(), predictors=[])


def test_mean_and_worst(launches):
    error = study.errors(launches, "simulator").abs()
    assert error.mean() < 2
    assert error.max() < 17


def test_the_page_shows_what_the_simulator_does(launches):
    """After a change that moves these numbers the study writes them anew."""
    kept = pd.read_csv(REPOSITORY / "docs" / "data" / "simulator" / "fresh.csv")
    assert kept["simulator"].tolist() == launches["simulator"].tolist()


def test_other_launches_are_told_apart(shared, tmp_path):
    """A table of other launches is no reference for these traces."""
    (tmp_path / "reference" / "accelsim").mkdir(parents=True)
    (tmp_path / "traces").symlink_to(shared / "traces")
    table = pd.read_csv(shared / "reference" / "accelsim" / "fresh.csv")
    table.loc[0, "instructions"] += 1
    table.to_csv(tmp_path / "reference" / "accelsim" / "fresh.csv", index=False)
    with pytest.raises(SystemExit, match="bank2: its launches are not those"):
        study.held_against(tmp_path, study.simulated_gpu(), predictors=[])


def test_errors_and_their_summary():
    """10 % more, 20 % less: a mean of 15 %, and the worst with its sign."""
    launches = pd.DataFrame(
        {
            "class": ["program", "program"],
            "application": ["a", "b"],
            "kernel": [1, 3],
            "cycles": [100, 200],
            "simulator": [110, 160],
        }
    )
    row = study.summary(launches, []).iloc[0]
    assert row["mean error (%)"] == pytest.approx(15)
    assert row["worst (%)"] == pytest.approx(-20)
    assert row["worst launch"] == "b 3"
