"""Search: the best configurations, as a look at every configuration finds them."""

import itertools

import numpy as np
import pandas as pd
import pytest

import warpstack as ws

SPACE = {
    "l1_mshrs": [32, 64, 128],
    "noc_bandwidth_gbs": [525.0, 1050.0, 2100.0],
    "dram_bandwidth_gbs": [240.0, 480.0],
}
LIMIT = "noc_bandwidth_gbs / 5 + dram_bandwidth_gbs + 2 * l1_mshrs <= 700"


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.gather(blocks=56, loads=3)


@pytest.fixture(scope="module")
def everything(kernel, pascal):
    """Return cycles and the limit of every configuration, one prediction each."""
    rows = []
    for m, n, d in itertools.product(*SPACE.values()):
        gpu = pascal.replace(l1_mshrs=m, noc_bandwidth_gbs=n, dram_bandwidth_gbs=d)
        cycles = ws.predict(kernel, gpu)["cycles"].sum()
        rows.append((m, n, d, cycles, n / 5 + d + 2 * m <= 700))
    return pd.DataFrame(rows, columns=[*SPACE, "cycles", "allowed"])


def test_exhaustive(kernel, pascal, everything):
    found = ws.search(kernel, pascal, SPACE, "cycles", budget=18, constraint=LIMIT)
    allowed = everything[everything["allowed"]].sort_values("cycles", kind="stable")
    assert 0 < len(allowed) < len(everything)
    assert found.attrs == {"method": "exhaustive", "configurations": 18}
    np.testing.assert_allclose(found["objective"], allowed["cycles"])
    assert found[list(SPACE)].to_numpy().tolist() == allowed[list(SPACE)].to_numpy().tolist()
    assert found["feasible"].all()
    assert (found["error"] == "").all()


def test_ipc_is_maximised(kernel, pascal, everything):
    found = ws.search(kernel, pascal, SPACE, "ipc")
    assert found["objective"].is_monotonic_decreasing
    assert found.loc[0, "cycles"] == pytest.approx(everything["cycles"].min())
    least = ws.search(kernel, pascal, SPACE, "ipc", maximise=False)
    assert least.loc[0, "cycles"] == pytest.approx(everything["cycles"].max())


def test_time_as_the_profiler_reports_it(kernel, pascal):
    """A launch of 9 us: what is the least for events is so for Nsight Systems, 9 us later."""
    gpu = pascal.replace(launch_us_events=9, launch_us_nsys=1)
    space = {"clock_ghz": [1, 2], "num_sms": [14, 28]}
    found = {
        profiler: ws.search(kernel, gpu, space, "time_us", profiler=profiler)
        for profiler in ("nsys", "events")
    }
    table = found["nsys"]
    expected = table["cycles"] / table["clock_ghz"] / 1000 + 1
    np.testing.assert_allclose(table["objective"], expected)
    assert table["objective"].is_monotonic_increasing
    np.testing.assert_allclose(found["events"]["objective"], table["objective"] + 8)
    assert set(found["events"]["launch_us"]) == {9}
    limited = ws.search(kernel, gpu, space, constraint=f"time_us <= {float(expected.iloc[1])!r}")
    assert limited["feasible"].sum() == 2


def test_constraints_over_results(kernel, pascal, everything):
    """What a prediction says can be constrained too; such points are listed last."""
    bound = float(everything["cycles"].median())
    cost = "l1_mshrs + dram_bandwidth_gbs + noc_bandwidth_gbs"
    found = ws.search(kernel, pascal, SPACE, cost, constraint=[f"cycles <= {bound!r}"])
    assert len(found) == 18
    assert found["feasible"].sum() == (everything["cycles"] <= bound).sum()
    assert found["feasible"].is_monotonic_decreasing
    within = everything[everything["cycles"] <= bound]
    assert found.loc[0, "objective"] == within[list(SPACE)].sum(axis=1).min()


def test_impossible_configurations_are_rows(kernel, pascal):
    found = ws.search(kernel, pascal, {"l1_size_kib": [24, 48, 49], "l1_ways": [6]}, "cycles")
    assert found["l1_size_kib"].tolist()[-1] == 49
    assert found["feasible"].tolist() == [True, True, False]
    assert "not a multiple" in found["error"].iloc[-1]
    assert np.isnan(found["objective"].iloc[-1])


@pytest.mark.slow
def test_evolution_finds_what_exhaustion_finds(kernel, pascal):
    """In a tenth of the evaluations: within 1 % of the optimum of 1,600 configurations."""
    space = {
        "l1_mshrs": [8 * i for i in range(1, 17)],
        "noc_bandwidth_gbs": [210 * i for i in range(1, 11)],
        "dram_bandwidth_gbs": [96 * i for i in range(1, 11)],
    }
    limit = "noc_bandwidth_gbs / 200 + dram_bandwidth_gbs / 100 + l1_mshrs / 16 <= 12"
    best = ws.search(kernel, pascal, space, constraint=limit, budget=1600).loc[0, "objective"]
    for seed in range(3):
        found = ws.search(kernel, pascal, space, constraint=limit, budget=160, seed=seed)
        assert found.attrs["method"] == "differential evolution"
        assert len(found) <= 160
        assert not found.duplicated(list(space)).any()
        assert found["feasible"].all()
        assert found.loc[0, "objective"] <= 1.01 * best
        # A result is what predicting it says.
        first = found.loc[0]
        gpu = pascal.replace(**{field: first[field] for field in space})
        assert ws.predict(kernel, gpu)["cycles"].sum() == pytest.approx(first["cycles"])


@pytest.mark.slow
def test_mixed_ranges_and_determinism(kernel, pascal):
    space = {
        "num_sms": (14, 56),
        "dram_bandwidth_gbs": (120.0, 960.0),
        "l1_mshrs": (16, 512, "log"),
        "scheduler": ["gto", "lrr"],
    }
    arguments = {"objective": "cycles / clock_ghz", "budget": 48, "seed": 5}
    constraint = "num_sms <= 40 and dram_bandwidth_gbs < 600"
    one = ws.search(kernel, pascal, space, **arguments, constraint=constraint, workers=1)
    two = ws.search(kernel, pascal, space, **arguments, constraint=constraint, workers=2)
    pd.testing.assert_frame_equal(one, two)
    assert one.attrs["configurations"] == float("inf")
    assert len(one) == 48
    assert one["num_sms"].between(14, 40).all()
    assert (one["num_sms"] == one["num_sms"].round()).all()
    assert one["dram_bandwidth_gbs"].between(120, 600).all()
    assert one["l1_mshrs"].between(16, 512).all()
    np.testing.assert_allclose(one["objective"], one["cycles"] / 1.4)


def test_starts_from_the_gpu(kernel, pascal):
    """A GPU inside the space is the first to be tried."""
    space = {"num_sms": (14, 56), "dram_bandwidth_gbs": (120.0, 960.0)}
    found = ws.search(kernel, pascal, space, budget=20).set_index("point")
    assert found.loc[0, "num_sms"] == pascal.num_sms
    assert found.loc[0, "dram_bandwidth_gbs"] == pytest.approx(pascal.dram_bandwidth_gbs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"objective": "cycle"},
            r"objective: 'cycle': there is no name 'cycle'; did you mean cycles\?",
        ),
        ({"objective": "ipc > 1"}, "objective: .* true or false"),
        ({"constraint": "num_sm < 3"}, r"constraint: .* did you mean num_sms\?"),
        ({"constraint": "num_sms"}, "constraint: 'num_sms' needs a comparison"),
        ({"constraint": "num_sms > 100"}, "none of the configurations tried meets num_sms > 100"),
        ({"budget": 0}, "budget = 0 is outside 1"),
        ({"seed": -1}, "seed = -1"),
        ({"model": "mmd"}, "there is no model 'mmd'"),
        ({"space": {"sms": [1]}}, r"there is no field 'sms'"),
        ({"space": {}}, "at least one field"),
        ({"space": {"num_sms": 3}}, "expected .low, high."),
        ({"space": {"num_sms": []}}, "empty"),
        # What only the sweep beneath finds, when a space is searched by differential evolution.
        ({"space": {"num_sms": (2, 90)}, "budget": 16, "workers": 0}, "^workers = 0 is outside 1"),
        ({"space": {"num_sms": (2, 90)}, "budget": 16, "cache": ""}, "^cache: the path is empty"),
    ],
)
def test_wrong_arguments(kernel, pascal, arguments, message):
    with pytest.raises(ws.InputError, match=message):
        ws.search(kernel, pascal, **{"space": {"num_sms": [28, 56]}, **arguments})


@pytest.mark.parametrize(
    "where",
    [
        {"objective": "cycles / (num_sms - 28)"},
        {"constraint": "1 / (num_sms - 28) < 1"},
        {"constraint": "cycles / (num_sms - 28) > -1e9"},
    ],
)
def test_a_point_without_a_value_is_a_row_with_its_error(kernel, pascal, where):
    found = ws.search(kernel, pascal, {"num_sms": [14, 28, 56]}, **where)
    assert len(found) == 3
    bad = found["num_sms"] == 28
    assert found.loc[bad, "error"].str.contains("no finite value").all()
    assert not found.loc[bad, "feasible"].any()
    assert (found.loc[~bad, "error"] == "").all()
    assert found.loc[~bad, "objective"].notna().all()


def test_choices_of_several_numbers(kernel):
    space = {"shared_memory_carve_outs_kib": [[0, 48], [0, 96]], "num_sms": [14, 28]}
    found = ws.search(kernel, "a100", space)
    assert len(found) == 4
    assert found["feasible"].all()
    assert set(found["shared_memory_carve_outs_kib"]) == {(0, 48), (0, 96)}
