"""Samples of the launches of large applications: groups, bars, and what predicting all says."""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import warpstack as ws
from warpstack.models.launch_sampling import Estimate, LaunchSample, estimate, launch_groups

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from large_app import training_app

SAMPLED = ["ipc_low", "ipc_high", "launch_group", "launch_sampled"]


@pytest.fixture(scope="module")
def app():
    return training_app(600, layers=6)


def launch(name, blocks, launch_id=1, **changes):
    k = ws.patterns.KernelBuilder(name, grid=blocks, block=64, launch_id=launch_id, **changes)
    k.emit("LDG.E", dst=4, src=2, address=0x100000 + 4 * k.thread)
    k.emit("FADD", dst=5, src=4)
    return k.build()


# --- groups ---------------------------------------------------------------------------------------


def test_groups_are_of_launches_that_do_the_same(pascal):
    kernels = [
        launch("a", 8),
        launch("b", 8),
        launch("a", 8),
        launch("b", 8, registers_per_thread=64),
        launch("a", 80),
        launch("b", 8),
        launch("a", 8),
    ]
    groups = launch_groups(kernels, pascal, by_predecessor=False)
    assert [list(group) for group in groups] == [[0, 2, 6], [1, 5], [3], [4]]
    # The first launches of a and b bring new data, and launch 4 ten times as many; 0 follows none.
    groups = launch_groups(kernels, pascal)
    assert [list(group) for group in groups] == [[0], [1], [2, 6], [3], [4], [5]]


def test_sizes_within_a_tenth_are_alike(pascal):
    """Of 100, 105 and 150 blocks the first two are: 105 / 100 is below 1.1 in every feature."""
    kernels = [launch("a", blocks) for blocks in (100, 150, 105)]
    groups = launch_groups(kernels, pascal, by_predecessor=False)
    assert [list(group) for group in groups] == [[0, 2], [1]]


def test_groups_are_few(app, pascal):
    groups = launch_groups(app.kernels, pascal)
    assert sorted(np.concatenate(groups)) == list(range(len(app)))
    assert len(groups) <= 600 / 20
    for group in groups:
        assert len({app[int(n)].name for n in group}) == 1


# --- the estimate ---------------------------------------------------------------------------------


NAN = math.nan


def test_an_estimate_by_hand():
    """Two groups, of 4 and 2 launches of 100 and 150 instructions each.

    Of the first, two take 100 and 100 e^0.2 cycles: their logarithms are 0.1 from their mean, squares
    0.02. Of the second one is predicted: 300 cycles. One degree of freedom in all: the pooled square
    is 0.02, which counts twice: (0.02 + 2 * 0.02) / (1 + 2) = 0.02, of the second group 0.02, too.
    """
    first = ([100] * 4, [100, NAN, 100 * math.exp(0.2), NAN])
    one = estimate([first, ([150, 150], [NAN, 300])])
    mean = (100 + 100 * math.exp(0.2)) / 2
    assert one.launches[0] == pytest.approx([100, mean, 100 * math.exp(0.2), mean])
    assert one.launches[1] == pytest.approx([300, 300])
    assert one.spread == pytest.approx([math.sqrt(0.02)] * 2)
    assert one.cycles == pytest.approx([4 * mean, 600])
    # Variances: cycles^2 0.02 (1/n - 1/N).
    first, second = one.cycles[0] ** 2 * 0.02 / 4, 600**2 * 0.02 / 2
    freedom = (first + second) ** 2 / (first**2 / 3 + second**2 / 2)
    expected = t.ppf(0.975, freedom) * math.sqrt(first + second) / one.cycles.sum()
    assert one.total_bar() == pytest.approx(expected)
    # One more launch errs by its own spread and by that of the mean.
    assert one.launch_bars() == pytest.approx(
        [t.ppf(0.975, 3) * math.sqrt(0.02 * 1.5), t.ppf(0.975, 2) * math.sqrt(0.02 * 2)]
    )


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_cycles_grow_with_a_power_of_the_instructions(power):
    """All of it is on the line: nothing is left to be uncertain about."""
    work = np.array([100.0, 200.0, 400.0, 800.0])
    cycles = 7 * work**power
    one = estimate([(work, np.where(work == 400, NAN, cycles))])
    assert one.launches[0] == pytest.approx(cycles)
    assert one.total_bar() == pytest.approx(0, abs=1e-12)


def test_launches_that_are_all_alike_have_the_cycles_to_the_last_bit():
    for cycles in range(600, 700):
        (found,) = estimate([([1536.0] * 7, [cycles] * 3 + [math.nan] * 4)]).launches
        assert found.tolist() == [cycles] * 7


def test_a_group_of_one_predicted_launch_has_the_power_of_the_others():
    """Cycles of the first grow with the root: of the second, four times the work takes twice as long."""
    work = [100.0, 400.0]
    one = estimate([(work, [10, 20]), (work, [30, NAN])])
    assert one.launches[1] == pytest.approx([30, 60])


def test_powers_are_between_none_and_proportion():
    """More work never takes fewer cycles, nor more than in proportion."""
    work = [100.0, 200.0, 400.0]
    less = estimate([(work, [10, 8, NAN])])
    assert less.launches[0][2] == pytest.approx(9)  # the mean of both
    more = estimate([(work, [10, 40, NAN])])
    # 10 + 40 cycles for 300 instructions.
    assert more.launches[0][2] == pytest.approx(400 * 50 / 300)


def test_what_lies_outside_the_predicted_launches_is_less_certain():
    """A line through logarithms 0, 1 and 2 of the work, two launches at 4 and one at 2 are estimated.

    The squares of the predicted ones, from their mean of 1, are 2, or 1 for each of two degrees of
    freedom. The two launches that a group counts beside its own add 2. Those at 4, 4 and 2 are 3, 3
    and 1 away: 7/3 on average, squares 19/3.
    """
    work = np.exp([0, 1, 2, 4, 4, 2])
    one = estimate([(work, [1, 2, 9, NAN, NAN, NAN])])
    assert one.tilts[:, 0] == pytest.approx([(7 / 3) ** 2 / 4, 19 / 3 / 4])


def test_nothing_is_uncertain_where_all_are_predicted():
    one = estimate([([100, 100], [100, 300])])
    assert one.total_bar() == 0
    assert list(one.wanted(0.01)) == [2]


def test_more_are_wanted_where_more_is_uncertain():
    """Neyman: in proportion to cycles times spread, and together just enough."""
    one = Estimate(
        launches=(np.array([1000.0]),) * 3,
        spread=np.array([0.1, 0.2, 0.0]),
        freedom=np.array([3.0, 3.0, 3.0]),
        tilts=np.zeros((2, 3)),
        counts=np.array([2, 2, 2]),
        sizes=np.array([10**6] * 3),
    )
    wanted = one.wanted(0.01)
    assert wanted[1] == pytest.approx(2 * wanted[0], abs=1)
    assert wanted[2] == 2
    # 1.96 sqrt((1000 0.1)^2 / n + (1000 0.2)^2 / 2n) = 0.01 * 3000: n = 128.
    assert wanted[0] == pytest.approx(1.96**2 * (100**2 + 200**2 / 2) / 30**2, abs=1)


def test_a_sample_grows_to_what_is_wanted_and_repeats():
    groups = [np.arange(0, 40), np.arange(40, 41)]
    cycles = {n: 100.0 + 30 * (n % 7) for n in range(41)}

    def grown(tolerance):
        sample = LaunchSample(groups, [100] * 41, tolerance)
        first = sample.missing()
        assert len(first) == 3
        assert 40 in first
        assert sample.missing() == []
        found = {n: cycles[n] for n in first}
        while sample.grow([sample.estimate(found)]):
            more = sample.missing()
            assert more
            found.update({n: cycles[n] for n in more})
        return [list(group) for group in sample.groups], sample.estimate(found).total_bar()

    few, wide = grown(0.2)
    more, narrow = grown(0.02)
    assert wide <= 0.2
    assert narrow <= 0.02
    assert len(few[0]) < len(more[0]) <= 40
    assert grown(0.2) == (few, wide)


# --- predictions ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["pascal-mdm", "titan-v"])
def test_rows_of_sampled_launches_are_those_of_predict(app, gpu):
    """Where L2 is empty before each launch, to the last bit."""
    models = ["mdm", "closed_network"]
    full = ws.predict(app, gpu, models, flush_l2=True)
    rows = ws.predict(app, gpu, models, flush_l2=True, sample_launches=0.05)
    assert list(rows.columns) == [
        *full.columns[: list(full.columns).index("initial_l2")],
        *SAMPLED,
        *full.columns[list(full.columns).index("initial_l2") :],
    ]
    known = rows["launch_sampled"]
    assert 0 < known.sum() < len(rows) / 2
    told = [name for name in full.columns if name not in ("reason", "gain")]
    pd.testing.assert_frame_equal(rows.loc[known, told], full.loc[known, told])
    assert (rows.loc[known, "ipc_low"] == rows.loc[known, "ipc"]).all()
    # The others have the identity and the instructions of their launch, and stacks that sum.
    same = ["kernel", "name", "gpu", "model", "instructions", "launch_us", "trace_digest"]
    pd.testing.assert_frame_equal(rows[same], full[same])
    stack = rows[[f"cpi_{part}" for part in ws.models.STACK_COMPONENTS]].sum(axis=1)
    assert np.allclose(stack, rows["cpi"])
    assert np.allclose(rows["ipc"], rows["instructions"] / rows["cycles"])
    assert (rows["ipc_low"] <= rows["ipc"]).all()
    assert (rows["ipc_high"] >= rows["ipc"]).all()


@pytest.mark.slow
def test_bars_hold():
    """Of totals and of single launches: 95 % is promised."""
    totals, launches = [], []
    for seed in range(8):
        app = training_app(500, layers=3 + seed, seed=seed)
        for gpu in ("pascal-mdm", "titan-v", "rtx3070"):
            models = ["mdm", "closed_network"]
            full = ws.predict(app, gpu, models)
            rows = ws.predict(app, gpu, models, sample_launches=0.03)
            expected = ws.models.application_totals(full)
            found = ws.models.application_totals(rows)
            totals += list(expected["ipc"].between(found["ipc_low"], found["ipc_high"]))
            guessed = rows[~rows["launch_sampled"]]
            within = full["ipc"].loc[guessed.index].between(guessed["ipc_low"], guessed["ipc_high"])
            launches += list(within)
            assert (found["ipc_high"] / found["ipc"] <= math.exp(0.03)).all()
    assert np.mean(totals) >= 0.9
    assert np.mean(launches) >= 0.9


def test_an_application_of_a_few_launches_is_predicted_whole(pascal):
    app = ws.App([launch("a", 8, 1), launch("b", 16, 2)])
    rows = ws.predict(app, pascal, sample_launches=True)
    full = ws.predict(app, pascal).drop(columns=["reason", "gain"])
    pd.testing.assert_frame_equal(rows[full.columns], full)
    assert rows["gain"].isna().all()
    assert rows["launch_sampled"].all()
    totals = ws.models.application_totals(rows)
    assert (totals["ipc_low"] == totals["ipc"]).all()
    pd.testing.assert_frame_equal(
        totals.drop(columns=["ipc_low", "ipc_high"]), ws.models.application_totals(full)
    )


def test_totals_need_the_rows_that_were_predicted(pascal):
    app = ws.App([launch("a", 8, n) for n in range(1, 9)])
    rows = ws.predict(app, pascal, flush_l2=True, sample_launches=True)
    assert rows["launch_sampled"].sum() == 2
    with pytest.raises(ws.InputError, match="none that was predicted"):
        ws.models.application_totals(rows[~rows["launch_sampled"]])


@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, 2])
def test_tolerances(pascal, value):
    with pytest.raises(ws.InputError, match="sample_launches"):
        ws.predict(launch("a", 8), pascal, sample_launches=value)


@pytest.mark.parametrize("value", ["yes", [0.01]])
def test_what_is_not_a_tolerance(pascal, value):
    with pytest.raises(ws.InputError, match="sample_launches"):
        ws.predict(launch("a", 8), pascal, sample_launches=value)
