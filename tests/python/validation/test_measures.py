"""Error measures against their plain definition, by hand, and with gaps."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from python_reference import measures as plain
from warpstack.validation import measures

numbers = st.one_of(st.integers(-50, 50).map(float), st.sampled_from([0.0, 0.25, 1e6]))
many_pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30)


def test_by_hand():
    predicted, reference = [110.0, 45.0, 3.0], [100.0, 50.0, 0.0]
    # Errors 10, 5, 3: mean 6. Of 100 and 50 these are 10 % each; the third reference is 0.
    assert measures.mae(predicted, reference) == 6
    assert measures.mape(predicted, reference) == (pytest.approx(0.1), 1)
    # Squares 100 + 25 + 9 = 134; the mean reference is 50, its range 100.
    assert measures.nrmse(predicted, reference) == pytest.approx((134 / 3) ** 0.5 / 50)
    assert measures.nrmse(predicted, reference, by="range") == pytest.approx((134 / 3) ** 0.5 / 100)
    # Deviations 57.33, -7.67, -49.67 and 50, 0, -50: 5350 / sqrt(5812.67 * 5000).
    assert measures.pearson(predicted, reference) == pytest.approx(
        5350 / (5812 + 2 / 3) ** 0.5 / 5000**0.5
    )


@pytest.mark.slow
@given(many_pairs)
def test_equal_plain_definition(pairs):
    p, r = (list(side) for side in zip(*pairs, strict=True))
    assert measures.mae(p, r) == pytest.approx(plain.mae(pairs))
    value, excluded = plain.mape(pairs)
    found = measures.mape(p, r)
    assert found.excluded == excluded
    assert np.isnan(found.value) if value is None else found.value == pytest.approx(value)
    for by in ("mean", "range"):
        value = plain.nrmse(pairs, by)
        found = measures.nrmse(p, r, by=by)
        # A mean that cancels is as exact as its terms.
        if value is None or abs(np.mean(r)) > 1e-6:
            assert np.isnan(found) if value is None else found == pytest.approx(value)
    if len(set(p)) > 1 and len(set(r)) > 1:
        assert measures.pearson(p, r) == pytest.approx(plain.pearson(pairs), abs=1e-9)
    else:
        assert np.isnan(measures.pearson(p, r))


def test_extreme_sizes():
    assert measures.pearson([1e300, 2e300, 3e300], [1e-300, 2e-300, 3e-300]) == pytest.approx(1)
    assert measures.pearson([1, 2], [2, 1]) == pytest.approx(-1)


def test_without_pairs():
    for measure in (measures.mae, measures.nrmse, measures.pearson):
        assert np.isnan(measure([], []))
    assert np.isnan(measures.mape([], []).value)
    assert np.isnan(measures.mape([1], [0]).value)
    assert np.isnan(measures.nrmse([1, 2], [0, 0]))


def test_nan_is_an_error_unless_omitted():
    predicted, reference = [1, np.nan, 3, 4], [2, 2, np.nan, 4]
    for measure in (measures.mae, measures.mape, measures.nrmse, measures.pearson):
        with pytest.raises(ws.InputError, match=r"2 of 4 pairs have NaN.* number 1;.*nan='omit'"):
            measure(predicted, reference)
    assert measures.mae(predicted, reference, nan="omit") == 0.5
    assert measures.mape(predicted, reference, nan="omit") == (0.25, 0)


def test_table():
    predicted = pd.DataFrame(
        {"hits": [0.5, 0.25, np.nan], "reads": [10, 22, 30], "note": list("xyz")},
        index=["a", "b", "c"],
    )
    reference = pd.DataFrame(
        {"reads": [33.0, 10.0, 20.0], "hits": [0.3, 0.0, 0.25]}, index=["c", "a", "b"]
    )
    table = measures.error_table(predicted, reference).set_index("column")
    assert list(table.index) == ["reads", "hits"]
    assert table.loc["reads", ["pairs", "nan", "zeros"]].tolist() == [3, 0, 0]
    assert table.loc["reads", "mae"] == pytest.approx((0 + 2 + 3) / 3)
    # Row a is 0.5 of 0, excluded; row b is 0.25 of 0.25; row c has no prediction.
    assert table.loc["hits", ["pairs", "nan", "zeros"]].tolist() == [2, 1, 1]
    assert table.loc["hits", "mape"] == 0
    assert table.loc["hits", "mae"] == 0.25
    assert list(measures.error_table(predicted, reference, ["hits"])["column"]) == ["hits"]
    assert list(measures.error_table(predicted, reference, "hits")["column"]) == ["hits"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measures.mae([1], [1, 2]), "predicted has 1 values, reference 2"),
        (lambda: measures.mae([[1]], [1]), r"predicted has the shape \(1, 1\)"),
        (lambda: measures.mae(["x"], [1]), "predicted has the type <U1"),
        (lambda: measures.pearson([1], [np.inf]), "reference has an infinite value at 0"),
        (lambda: measures.mae([1], [1], nan="keep"), "nan = 'keep' is not one of raise, omit"),
        (lambda: measures.nrmse([1], [1], by="max"), "by = 'max' is not one of mean, range"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ws.InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("predicted", "reference", "options", "message"),
    [
        ({"a": [1]}, {"a": [1, 2]}, {}, "only reference has the row 1 "),
        ({"a": [1, 2]}, {"a": [1]}, {}, "only predicted has the row 1 "),
        ({"a": [1]}, {"b": [1]}, {}, "no numeric column in common"),
        (
            {"a": [1]},
            {"a": [1], "b": [2]},
            {"columns": ["b"]},
            "predicted: there is no column 'b'; there are a",
        ),
        ({"a": [np.nan]}, {"a": [1]}, {"nan": "raise"}, "column 'a': 1 of 1 pairs have NaN"),
    ],
)
def test_bad_tables(predicted, reference, options, message):
    with pytest.raises(ws.InputError, match=message):
        measures.error_table(pd.DataFrame(predicted), pd.DataFrame(reference), **options)


def test_rows_that_occur_twice():
    table = pd.DataFrame({"a": [1, 2]}, index=["x", "x"])
    with pytest.raises(ws.InputError, match="predicted: the row 'x' occurs twice"):
        measures.error_table(table, table)
