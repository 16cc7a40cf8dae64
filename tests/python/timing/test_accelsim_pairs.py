"""Two kernels at the same time beside Accel-Sim (`studies/accelsim_pairs.py`)."""

import sys
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "studies"))
import accelsim_fresh  # noqa: E402
import accelsim_pairs as study  # noqa: E402

sys.path.pop(0)

KEPT = pd.read_csv(REPOSITORY / "docs" / "data" / "concurrent-kernels" / "accelsim.csv")
#: Short ones: with room to share, on SMs of their own, and memory beside computing.
CHECKED = (1, 3, 7)


@pytest.fixture(scope="module")
def pairs():
    return study.pairs()


def log_of(*kernels, done=True):
    """Return what Accel-Sim prints of kernels, each the cycle of its end and the instructions so far."""
    lines = ["Accel-Sim [build x]"]
    for cycle, count in kernels:
        lines += [
            "gpu_sim_cycle = 1",
            f"gpu_tot_sim_cycle = {cycle}",
            f"gpu_tot_sim_insn = {count}",
        ]
    return "\n".join([*lines, study._DONE] if done else lines) + "\n"


@pytest.mark.parametrize("number", CHECKED)
def test_the_page_shows_what_the_simulator_does(pairs, number):
    """After a change that moves these numbers the study writes them anew."""
    app, gpu = pairs[f"pair-{number}"], accelsim_fresh.simulated_gpu()
    row = KEPT.set_index("pair").loc[number]
    both = ws.simulate(app, gpu, concurrent=True)
    assert both.cycles == row["together"]
    assert both.to_frame()["end"].min() == row["first one to end"]
    alone = [ws.simulate(kernel, gpu).cycles for kernel in app.kernels]
    assert alone == [row["first alone"], row["second alone"]]


def test_the_simulator_is_near_accelsim():
    assert KEPT["pair"].tolist() == list(range(1, len(study.PAIRS) + 1))
    assert KEPT["error of cycles together (%)"].abs().mean() < 2
    assert KEPT["error of cycles together (%)"].abs().max() < 6
    assert KEPT["error of the share (%)"].abs().max() < 6


def test_traces_have_the_kernels_in_streams_of_their_own(pairs, tmp_path, monkeypatch):
    one = {"pair-3": pairs["pair-3"]}
    monkeypatch.setattr(study, "pairs", lambda: one)
    study.write_traces(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"pair-3-{run}" for run in study.RUNS}
    read = ws.load(tmp_path / "pair-3-both")
    assert [kernel.num_instructions for kernel in read] == [
        kernel.num_instructions for kernel in one["pair-3"]
    ]
    assert read.operations["stream"].nunique() == 2
    gpu = accelsim_fresh.simulated_gpu()
    row = KEPT.set_index("pair").loc[3]
    assert ws.simulate(read, gpu, concurrent=True).cycles == row["together"]


def test_logs_are_read_and_those_of_broken_runs_refused(pairs, tmp_path):
    for run, text in (
        ("first", log_of((5000, 70))),
        ("second", log_of((9000, 30))),
        ("both", log_of((5500, 80), (9900, 100))),
    ):
        (tmp_path / f"pair-3-{run}.log").write_text(text)
    gpu = accelsim_fresh.simulated_gpu()
    row = study.measured(tmp_path, "pair-3", pairs["pair-3"], gpu)
    assert row["first alone, Accel-Sim"] == 5000
    assert row["together, Accel-Sim"] == 9900
    assert row["first one to end, Accel-Sim"] == 5500
    (tmp_path / "pair-3-both.log").write_text(log_of((5500, 80), (9900, 90)))
    with pytest.raises(SystemExit, match="not the two kernels that ran alone"):
        study.measured(tmp_path, "pair-3", pairs["pair-3"], gpu)
    for text in (log_of((5500, 80), done=False), study._DONE):
        (tmp_path / "cut.log").write_text(text)
        with pytest.raises(SystemExit, match=r"cut\.log: not the log of a run"):
            study.read_log(tmp_path / "cut.log")


def test_shares_and_their_errors():
    """Half of the sum in Accel-Sim, three fifths here, 10 % longer together."""
    rows = pd.DataFrame(
        {
            "first alone, Accel-Sim": [100],
            "first alone": [90],
            "second alone, Accel-Sim": [100],
            "second alone": [110],
            "together, Accel-Sim": [100],
            "together": [110],
        }
    )
    table = study.with_shares(rows)
    assert table["share of the sum, Accel-Sim (%)"].tolist() == [50]
    assert table["share of the sum (%)"].tolist() == [pytest.approx(55)]
    assert table["error of cycles together (%)"].tolist() == [pytest.approx(10)]
    assert table["error of the share (%)"].tolist() == [pytest.approx(10)]
    found = study.summary(table).set_index("error of")
    assert found.loc["each kernel alone", "mean (%)"] == pytest.approx(10)
