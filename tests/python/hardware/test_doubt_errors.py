"""The measured errors of each kind of kernel, and the table that is made of them."""

import csv
import math

import numpy as np
import pytest

from warpstack.hardware.doubt import errors
from warpstack.hardware.doubt.errors import error_table, half_widths, kind_of, measured_range
from warpstack.tables import STACK_COMPONENTS


def row(time=10.0, launch=0.0, **stack):
    parts = dict.fromkeys(STACK_COMPONENTS, 0.0) | stack
    return {"time_us": time, "launch_us": launch, **{f"cpi_{k}": v for k, v in parts.items()}}


def test_kinds_by_launch_and_largest_part():
    assert kind_of(row(launch=5.0, base=1.0)) == "launch"
    assert kind_of(row(launch=2.0, base=1.0)) == "short"
    assert kind_of(row(launch=1.9, base=1.0, dep=0.5)) == "issue"
    assert kind_of(row(dep=1.0, base=0.5)) == "arithmetic"
    assert kind_of(row(queue=1.0)) == kind_of(row(dram=1.0)) == "dram"
    assert kind_of(row(noc=1.0)) == "noc"
    assert {kind_of(row(**{part: 1.0})) for part in ("l1", "l2", "mshr")} == {"caches"}


def test_the_shortest_range_by_hand():
    # Of nine errors and the one to come, eight tenths are eight errors: -0.1 to 0.6 has them, which is
    # shorter than -0.9 to 0.5.
    found = np.array([-0.9, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert half_widths(found, np.ones(9), 0.8) == pytest.approx((0.1, 0.6))
    # Nine tenths are all nine.
    assert half_widths(found, np.ones(9), 0.9) == pytest.approx((0.9, 0.6))
    # Of three, none but all will do; 0 is always inside.
    assert half_widths(np.array([0.1, 0.2, 0.3]), np.ones(3)) == pytest.approx((0.01, 0.3))


def slow_half_widths(found, weights, coverage):
    """Try every pair of errors as ends."""
    wanted = coverage * (weights.sum() + weights.mean())
    ranges = [
        (max(-low, 0.01), max(high, 0.01))
        for low in found
        for high in found
        if weights[(found >= low) & (found <= high)].sum() >= wanted - 1e-9
    ]
    ranges = ranges or [(max(-found.min(), 0.01), max(found.max(), 0.01))]
    return min(map(sum, ranges))


@pytest.mark.parametrize("seed", range(20))
def test_no_pair_of_errors_makes_a_shorter_range(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 40))
    found = random.normal(0.1, 0.3, count)
    weights = random.uniform(0.2, 1.0, count)
    assert sum(half_widths(found, weights)) == pytest.approx(slow_half_widths(found, weights, 0.9))


def made_up():
    """Two kinds in three sets on two cards: one whose errors are small, one that is predicted too fast."""
    random = np.random.default_rng(1)
    kinds, found, sets, cards = [], [], [], []
    for n in range(240):
        kinds.append("launch" if n % 2 else "issue")
        found.append(random.normal(0.0, 0.02) if n % 2 else random.normal(0.2, 0.1))
        sets.append(f"set {n % 3}")
        cards.append(f"card {n // 120}")
    return kinds, found, sets, cards


def test_a_made_up_table():
    kinds, found, sets, cards = made_up()
    rows, held = error_table(kinds, found, sets, cards)
    by_kind = {one["kind"]: one for one in rows}
    assert list(by_kind) == ["all", "issue", "launch"]
    assert [one["rows"] for one in rows] == [240, 120, 120]
    assert {one["sets"] for one in rows} == {3}
    assert {one["cards"] for one in rows} == {2}
    # Each kind has its own range, a third of that of all kinds: three of nine sets on cards.
    weights = np.full(120, 40**-0.5)
    whole = half_widths(np.array(found), np.full(240, 40**-0.5))
    for kind in ("issue", "launch"):
        own = np.array([e for k, e in zip(kinds, found, strict=True) if k == kind])
        for end, mine, of_all in zip(
            ("below", "above"), half_widths(own, weights), whole, strict=True
        ):
            expected = held["stretch"] * (6 * mine + 3 * of_all) / 9
            assert by_kind[kind][end] == pytest.approx(expected)
    for name in ("inside", "without_set", "without_card"):
        assert held[name].mean() >= 0.9


def test_sets_that_differ_stretch_the_ranges():
    found = [0.01 * (n % 5) for n in range(100)] + [0.2 + 0.01 * (n % 5) for n in range(100)]
    sets = ["one"] * 100 + ["two"] * 100
    _, held = error_table(["launch"] * 200, found, sets, ["card a", "card b"] * 100)
    # Without set two, nothing says that times are 20 % longer: 0.04 is stretched to 0.24.
    assert held["stretch"] > 4
    assert held["without_set"].mean() >= 0.9


def test_many_rows_of_a_set_do_not_drown_others():
    kinds = ["dram"] * 110
    # Ten rows of another card are a tenth of the rows and a quarter of the weight.
    found = [0.0] * 100 + [0.3] * 10
    rows, _ = error_table(kinds, found, ["a"] * 100 + ["b"] * 10, ["c"] * 100 + ["d"] * 10)
    assert rows[0]["above"] >= 0.3


def test_leaving_out_the_only_set_is_an_error():
    with pytest.raises(ValueError, match="leaves none"):
        error_table(["dram"] * 3, [0.1] * 3, ["a"] * 3, ["b", "c", "d"])


def test_the_table_of_the_package():
    with errors.TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for one in rows:
        assert min(float(one["below"]), float(one["above"])) > 0
        assert int(one["rows"]) >= int(one["sets"]) >= 1
    models = {one["model"] for one in rows}
    assert {"closed_network", "mdm", "gpumech", "mwp_cwp", "simulation"} <= models
    assert all((model, "all") in {(r["model"], r["kind"]) for r in rows} for model in models)


def test_a_model_that_nobody_measured_has_the_widest_range():
    wide = measured_range("my_model", "dram")
    for model in ("closed_network", "mdm", "simulation"):
        one = measured_range(model, "all")
        assert wide.below >= one.below
        assert wide.above >= one.above
    assert measured_range("closed_network", "no such kind") == measured_range(
        "closed_network", "all"
    )
    assert math.isfinite(wide.above)
