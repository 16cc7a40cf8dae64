"""The columns of a row that say between which values its time lies."""

import math
import operator

import pytest

import warpstack as ws
from warpstack.hardware.doubt import (
    RANGE,
    card_doubt,
    guesses,
    range_of_sum,
    time_doubt,
    widened_by_sample,
)
from warpstack.hardware.doubt.card import PLAUSIBLE
from warpstack.tables import STACK_COMPONENTS


@pytest.fixture(scope="module")
def app():
    return ws.App(
        [ws.patterns.strided(1, blocks=56), ws.patterns.strided(32, blocks=56, launch_id=2)]
    )


@pytest.fixture(scope="module")
def gpu():
    """Return a GPU whose values nobody doubts."""
    return ws.gpu("a100").replace(launch_us_events=2.0)


def doubted(gpu, *names):
    """Return the same GPU with some values as guesses."""
    import dataclasses

    known = {**gpu.confidences, **dict.fromkeys(names, "guessed")}
    return dataclasses.replace(gpu, confidences=known)


def width(row):
    return math.log(row["time_us_high"] / row["time_us_low"])


def test_times_lie_between_the_ends(app, gpu):
    rows = ws.predict(app, gpu, "all")
    names = list(rows.columns)
    assert names[names.index("time_us") + 1 :][:2] == list(RANGE)
    assert (rows["time_us_low"] < rows["time_us"]).all()
    assert (rows["time_us"] < rows["time_us_high"]).all()


def test_the_simulator_has_the_same_columns(app, gpu):
    for result in ws.simulate(app, gpu):
        one = result.to_frame().iloc[0]
        assert one["time_us_low"] < one["time_us"] < one["time_us_high"]


def test_guesses_widen(app, gpu):
    assert guesses(gpu) == ()
    # A latency by the stack, a bandwidth through the model.
    for names in (["l1_latency"], ["l2_latency", "noc_bandwidth_gbs", "l2_slices"]):
        more = doubted(gpu, *names)
        assert set(guesses(more)) == set(names)
        plain, wide = (ws.predict(app, one, flush_l2=True) for one in (gpu, more))
        assert plain["time_us"].tolist() == wide["time_us"].tolist()
        assert width(wide.iloc[1]) > width(plain.iloc[1])


def test_a_guessed_launch_widens_the_times_that_have_it(app, gpu):
    more = doubted(gpu, "launch_us_events")
    for profiler, compare in (("events", operator.gt), ("nsys", operator.eq)):
        plain, wide = (ws.predict(app, one, profiler=profiler) for one in (gpu, more))
        assert compare(width(wide.iloc[0]), width(plain.iloc[0]))


def test_doubt_by_hand(gpu):
    more = doubted(gpu, "l2_latency", "dram_latency")
    stack = dict.fromkeys(STACK_COMPONENTS, 0.0) | {"l2": 3.0, "dram": 1.0, "base": 6.0}
    # 30 % of the cycles may be 20 % longer, and 10 % of them.
    expected = math.hypot(math.log(1.06), math.log(1.02))
    assert card_doubt(more, 100.0, 10.0, stack) == pytest.approx(expected)
    # Half of the time is cycles.
    values = {"time_us": 4.0, "launch_us": 2.0}
    assert time_doubt(values, gpu, "nsys", 0.2) == pytest.approx(0.1)
    # Through a model whose cycles grow as the bandwidth falls.
    more = doubted(gpu, "noc_bandwidth_gbs")
    on = lambda other: 100.0 * gpu.noc_bandwidth_gbs / other.noc_bandwidth_gbs  # noqa: E731
    reads = frozenset(["noc_bandwidth_gbs"])
    assert card_doubt(more, 100.0, 10.0, stack, on, reads) == pytest.approx(math.log(1.3))


def test_the_fields_with_a_range_are_numbers_of_a_gpu():
    assert set(PLAUSIBLE) <= set(ws.Gpu.fields())
    assert all(factor > 1 for factor in PLAUSIBLE.values())


def ranged(time, below, above, **more):
    stack = {f"cpi_{part}": 0.0 for part in STACK_COMPONENTS}
    ends = {"time_us_low": time * math.exp(-below), "time_us_high": time * math.exp(above)}
    return {"time_us": time, "launch_us": 0.0, **ends, **stack, **more}


def test_a_sample_widens_by_hand():
    one = ranged(
        10.0, 0.3, 0.3, ipc=2.0, ipc_low=2.0 * math.exp(-0.8), ipc_high=2.0 * math.exp(0.4)
    )
    one["launch_us"] = 5.0
    wide = widened_by_sample(one)
    # Half of the time is the sample's: its ends are 0.4 and 0.2.
    assert math.log(wide["time_us_high"] / 10) == pytest.approx(0.5)
    assert math.log(10 / wide["time_us_low"]) == pytest.approx(math.hypot(0.3, 0.2))


def test_sums_by_hand():
    same = [ranged(10.0, 0.1, 0.2, cpi_noc=1.0), ranged(30.0, 0.1, 0.2, cpi_noc=1.0)]
    total = range_of_sum(same)
    assert total["time_us_high"] == pytest.approx(40 * math.exp(0.2))
    # Two causes: 10 x 0.3 and 30 x 0.4 / 3 add up in quadrature to 5 of 40.
    other = [ranged(10.0, 0.3, 0.3, cpi_noc=1.0), ranged(30.0, 0.4 / 3, 0.4 / 3, cpi_dep=1.0)]
    total = range_of_sum(other)
    assert total["time_us_low"] == pytest.approx(40 * math.exp(-5 / 40))


def test_samples_and_totals_have_ranges(app):
    many = ws.App(
        [ws.patterns.strided(1 + n % 3, blocks=28 + n % 5, launch_id=n) for n in range(24)]
    )
    rows = ws.predict(many, "pascal-mdm", flush_l2=True, sample_launches=0.2)
    assert (rows["time_us_low"] < rows["time_us"]).all()
    assert (rows["time_us"] < rows["time_us_high"]).all()
    total = ws.models.application_totals(rows).iloc[0]
    assert total["time_us_low"] < total["time_us"] < total["time_us_high"]
    sampled = ws.predict(app, "pascal-mdm", sample_sms=0.5)
    assert (sampled["time_us_low"] < sampled["time_us"]).all()
