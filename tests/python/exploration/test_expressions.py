"""Expressions: equal to Python's own evaluation where they are allowed, refused where they are not."""

import contextlib
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from warpstack.exploration.expressions import Expression

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
names = st.sampled_from(["num_sms", "ipc", "l1_mshrs"])
leaves = st.one_of(names, numbers.map(lambda x: f"({x})"), st.integers(0, 50).map(str))
arithmetic = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"-{t}"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
        inner.map(lambda t: f"abs({t})"),
    ),
    max_leaves=8,
)
conditions = st.recursive(
    st.tuples(arithmetic, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), arithmetic).map(
        " ".join
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
        inner.map(lambda t: f"not ({t})"),
    ),
    max_leaves=4,
)
VALUES = {"num_sms": [28.0, 56.0, 1.0], "ipc": [0.5, 12.25, 3.0], "l1_mshrs": [128.0, 32.0, 1.0]}


def python(text, row):
    """Return what Python makes of an expression that this file composed; None for no finite value."""
    values = {name: column[row] for name, column in VALUES.items()}
    functions = {"max": max, "abs": abs, "__builtins__": {}}
    try:
        return eval(text, functions, values)
    except (ZeroDivisionError, OverflowError):
        return None


@given(arithmetic)
def test_equal_to_python(text):
    expected = [python(text, row) for row in range(3)]
    if any(value is None or not math.isfinite(value) for value in expected):
        with pytest.raises(ws.InputError, match="no finite value"):
            Expression(text)(VALUES)
        return
    found = np.broadcast_to(Expression(text)(VALUES), 3)
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12)


@pytest.mark.slow
@given(conditions)
def test_conditions_equal_to_python(text):
    expected = [python(text, row) for row in range(3)]
    try:
        found = np.broadcast_to(Expression(text).holds(VALUES), 3)
    except ws.InputError:
        # Both sides of and, or are evaluated here: a division by zero that Python may skip.
        assert "/" in text
        return
    if None not in expected:
        assert found.tolist() == expected
        violation = np.broadcast_to(Expression(text).violation(VALUES), 3)
        assert ((violation == 0) == found).all()
        assert (violation >= 0).all()


def test_examples():
    # 28 * 2 ** 3 = 224; 7 // 2 + 7 % 2 = 4; sqrt(16) + log2(8) + floor(1.5) + ceil(1.5) = 10.
    assert Expression("num_sms * 2 ** 3")({"num_sms": 28}) == 224
    assert Expression("7 // 2 + 7 % 2")({}) == 4
    assert Expression("sqrt(16) + log2(8) + floor(1.5) + ceil(1.5)")({}) == 10
    assert Expression("min(3, 1, 2)")({}) == 1
    assert Expression("1 < x <= 3").holds({"x": [1, 2, 3, 4]}).tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert Expression("b + a + b").names == ["a", "b"]


def test_text_is_compared():
    column = pd.Series(["gto", "lrr"])
    condition = Expression("scheduler == 'gto' or num_sms > 40")
    assert condition.holds({"scheduler": column, "num_sms": [28, 56]}).tolist() == [True, True]
    assert condition.holds({"scheduler": column, "num_sms": 28}).tolist() == [True, False]


def test_violation_is_relative():
    # 10 <= 8 fails by 2 of 10; the other half holds; `or` takes the least.
    assert Expression("x <= 8 and x > 1").violation({"x": [10, 8]}).tolist() == [0.2, 0]
    assert Expression("x <= 8 or x <= 5").violation({"x": 10}) == pytest.approx(0.2)
    assert Expression("x < 8").violation({"x": 8}) > 0


def test_missing_numbers_stay_missing():
    assert np.isnan(Expression("1 / x + x")({"x": [np.nan, 2]})).tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('true')", "cannot be used"),
        ("().__class__", r"'\(\).__class__' is not allowed"),
        ("[1, 2][0]", "is not allowed"),
        ("lambda: 1", "is not allowed"),
        ("x if x else 1", "is not allowed"),
        ("(x := 3)", "is not allowed"),
        ("f'{x}'", "is not allowed"),
        ("open('x')", "calls no known function; there are abs, ceil"),
        ("max(1, key=2)", "calls no known function"),
        ("sqrt(1, 2)", "takes 1 argument"),
        ("max(1)", "takes 2 to 16 arguments"),
        ("x & 1", "is not allowed"),
        ("1 in x", "is not allowed"),
        ("True", "is not a number"),
        ("1j", "is not allowed"),
        ("1e999", "too large"),
        ("9" * 400, "too large"),
        ("1 +", "is not an expression"),
        ("", "is not an expression"),
        ("x\0", "is not an expression"),
        ("-" * 500 + "1", "nested too deeply"),
        ("(" * 900 + "1" + ")" * 900, "is not an expression|nested too deeply"),
        ("1" + "+1" * 1000, "too many"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ws.InputError, match=message):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_sm * 2", "there is no name 'num_sm'; did you mean num_sms?"),
        ("zzzzz", "there is no name 'zzzzz'; there are num_sms, scheduler"),
        ("1 / (num_sms - 28)", r"no finite value: 1 / \(num_sms - 28\), of 1, 0"),
        ("(0 - num_sms) ** 0.5", "no finite value"),
        ("10 ** 10 ** 10", "no finite value"),
        ("scheduler + 1", "needs a number where scheduler is text"),
        ("(num_sms > 1) + 1", "needs a number where num_sms > 1 is true or false"),
        ("scheduler == 1", "of different kinds"),
        ("scheduler < 'a'", "needs a number where scheduler is text"),
        ("num_sms > 1", "is true or false"),
    ],
)
def test_what_cannot_be_evaluated(text, message):
    with pytest.raises(ws.InputError, match=message):
        Expression(text)({"num_sms": [56, 28], "scheduler": ["gto", "lrr"]})


def test_conditions_are_no_numbers():
    with pytest.raises(ws.InputError, match="constraint: 'num_sms' needs a comparison where"):
        Expression("num_sms", "constraint").holds({"num_sms": 1})
    with pytest.raises(ws.InputError, match="cost: expected text, got 3"):
        Expression(3, "cost")


@given(st.text(max_size=40))
def test_any_text(text):
    """Whatever the text, there is a value or an InputError."""
    with contextlib.suppress(ws.InputError):
        Expression(text)({"x": 1.0})
