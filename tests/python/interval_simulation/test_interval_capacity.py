"""What is left of a resource of interval simulation, against its plain definition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import rounds
from python_reference.interval_steps import Capacity
from warpstack import _core

RATES = st.sampled_from([0.25, 0.4, 0.5, 1.0, 2.0])
#: Cycles since the work before, its span, and the work itself.
WORK = st.tuples(
    st.floats(0, 40), st.floats(0, 60) | st.just(0.0), st.integers(0, 30) | st.floats(0.01, 20)
)


@settings(max_examples=rounds(500))
@given(RATES, st.booleans(), st.lists(WORK, max_size=40), st.booleans())
def test_equals_plain_definition(rate, is_fair, works, releases):
    one, plain = _core.IntervalCapacity(rate, is_fair), Capacity(rate, is_fair)
    begin = 0.0
    for later, span, work in works:
        begin += later
        if releases:
            one.release(begin)
            plain.release(begin)
        expected = plain.take(begin, span, work)
        assert one.take(begin, span, work) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@settings(max_examples=rounds(300))
@given(RATES, st.booleans(), st.lists(WORK, min_size=1, max_size=40))
def test_plain_definition_never_exceeds_the_rate(rate, is_fair, works):
    plain, begin, sum_of_work = Capacity(rate, is_fair), 0.0, 0.0
    for later, span, work in works:
        begin += later
        assert plain.take(begin, span, work) >= begin + span - 1e-9
        sum_of_work += work
    assert all(used <= rate * Capacity.WIDTH + 1e-6 for used in plain.used.values())
    assert sum(plain.used.values()) == pytest.approx(sum_of_work, abs=1e-6)


@pytest.mark.parametrize("is_fair", [False, True])
def test_work_alone_takes_its_span_or_what_the_rate_says(is_fair):
    def alone(span, work):
        return _core.IntervalCapacity(0.5, is_fair).take(3.0, span, work)

    assert alone(20, 4) == pytest.approx(23)
    assert alone(2, 4) == pytest.approx(3 + 4 / 0.5)
    assert alone(7, 0) == pytest.approx(10)


@pytest.mark.parametrize("is_fair", [False, True])
def test_a_long_queue_is_served_at_the_rate(is_fair):
    capacity = _core.IntervalCapacity(0.5, is_fair)
    last = max(capacity.take(0.0, 0.0, 1.0) for _ in range(400))
    assert last == pytest.approx(400 / 0.5, rel=0.01)
