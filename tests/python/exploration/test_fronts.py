"""Searches with several objectives: the configurations that no other one beats."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from warpstack.exploration.fronts import on_front

SPACE = {
    "l1_mshrs": [8, 16, 32, 64, 128],
    "noc_bandwidth_gbs": [262.0, 525.0, 1050.0, 2100.0],
    "dram_bandwidth_gbs": [120.0, 240.0, 480.0, 960.0],
}
COST = "l1_mshrs / 8 + noc_bandwidth_gbs / 100 + dram_bandwidth_gbs / 60"


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.gather(blocks=56, loads=3)


def beats(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=40))
def test_a_front_by_its_definition(points):
    found = on_front(np.array(points, dtype=float))
    assert found.tolist() == [not any(beats(o, point) for o in points) for point in points]


def test_all_of_a_small_space(kernel, pascal):
    found = ws.search(kernel, pascal, SPACE, ["cycles", COST], budget=80)
    assert found.attrs["method"] == "exhaustive"
    assert len(found) == 80
    pairs = found[["objective_1", "objective_2"]].to_numpy().tolist()
    front = [not any(beats(other, pair) for other in pairs) for pair in pairs]
    assert found["front"].tolist() == front
    assert 2 <= sum(front) < 80
    assert front == sorted(front, reverse=True), "the front comes first"
    np.testing.assert_allclose(found["objective_1"], found["cycles"])
    own = found.eval(COST)
    np.testing.assert_allclose(found["objective_2"], own)


def test_each_objective_has_its_direction(kernel, pascal):
    one = ws.search(kernel, pascal, SPACE, ["cycles", COST], budget=80)
    two = ws.search(kernel, pascal, SPACE, ["ipc", COST], budget=80)
    three = ws.search(
        kernel, pascal, SPACE, ["1 / cycles", COST], budget=80, maximise=[True, False]
    )
    for other in (two, three):
        assert set(other.loc[other["front"], "point"]) == set(one.loc[one["front"], "point"])


def test_what_breaks_a_constraint_is_not_on_the_front(kernel, pascal):
    found = ws.search(
        kernel, pascal, SPACE, ["cycles", COST], budget=80, constraint="cpi_noc < 0.5"
    )
    assert (~found["feasible"]).any()
    assert not (found["front"] & ~found["feasible"]).any()


@pytest.mark.slow
def test_optuna_finds_most_of_the_front_in_a_fifth_of_the_predictions(kernel, pascal):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    space = {
        "l1_mshrs": [8 * i for i in range(1, 17)],
        "noc_bandwidth_gbs": [210 * i for i in range(1, 11)],
        "dram_bandwidth_gbs": [96 * i for i in range(1, 6)],
    }
    arguments = (kernel, pascal, space, ["cycles", COST])
    whole = ws.search(*arguments, budget=800)
    worst = whole[["objective_1", "objective_2"]].max().to_numpy()
    best = _dominated(whole, worst)
    shares = []
    for seed in range(2):
        found = ws.search(*arguments, budget=160, seed=seed)
        assert found.attrs["method"] == "optuna"
        assert len(found) <= 160
        shares.append(_dominated(found, worst) / best)
        again = ws.search(*arguments, budget=160, seed=seed, workers=1)
        pd.testing.assert_frame_equal(found, again)
    # A search that draws differs from seed to seed.
    assert np.mean(shares) >= 0.95
    assert min(shares) >= 0.9


def _dominated(table, worst):
    """Return the area between the front and the worst of everything."""
    front = table.loc[table["front"], ["objective_1", "objective_2"]].sort_values("objective_1")
    pairs = [*front.itertuples(index=False, name=None), (worst[0], None)]
    return sum(
        (after[0] - here[0]) * (worst[1] - here[1]) for here, after in itertools.pairwise(pairs)
    )


def test_optuna_for_one_objective(kernel, pascal):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    found = ws.search(kernel, pascal, SPACE, budget=40, method="optuna", constraint=f"{COST} < 40")
    assert found.attrs["method"] == "optuna"
    assert len(found) <= 40
    assert "front" not in found
    everything = ws.search(kernel, pascal, SPACE, budget=80, constraint=f"{COST} < 40")
    assert found.loc[0, "objective"] <= 1.05 * everything.loc[0, "objective"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": []}, "objective: none is given"),
        ({"objective": ["cycles", "cycels"]}, "did you mean cycles"),
        ({"objective": ["cycles", "ipc"], "maximise": [True]}, "1 values for 2 objectives"),
        ({"method": "optuna2"}, "optuna2' is not one of auto, optuna"),
    ],
)
def test_wrong_arguments(kernel, pascal, arguments, message):
    with pytest.raises(ws.InputError, match=message):
        ws.search(kernel, pascal, SPACE, **arguments)


def test_without_optuna_one_line_says_how_to_install_it(kernel, pascal, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ws.InputError, match=r"pip install 'warpstack\[optuna\]'"):
        ws.search(kernel, pascal, SPACE, ["cycles", COST], budget=8)
    assert len(ws.search(kernel, pascal, SPACE, ["cycles", COST], budget=80)) == 80
