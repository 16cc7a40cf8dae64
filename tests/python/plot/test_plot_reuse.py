"""Curves of stack distances: what is drawn equals the profiles."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import warpstack as ws


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_curves_are_the_hit_rates():
    rng = np.random.default_rng(0)
    profiles = {
        "few": ws.memory.ReuseProfile.from_lines(rng.integers(0, 40, 500)),
        "many": ws.memory.ReuseProfile.from_lines(rng.integers(0, 9000, 90_000)),
    }
    ax = ws.plot.stack_distances(profiles, capacities={"L1": 256}, title="two streams")
    assert [line.get_label() for line in ax.get_lines()[:2]] == ["few", "many"]
    for line, profile in zip(ax.get_lines(), profiles.values(), strict=False):
        sizes, rates = line.get_data()
        assert sizes[0] == 1
        assert (np.diff(sizes) > 0).all()
        assert len(sizes) <= 2002
        assert rates.tolist() == profile.hit_rate(sizes).tolist()
        assert rates[-1] == pytest.approx(1 - profile.cold / profile.accesses)
    assert ax.get_lines()[2].get_xdata() == [256, 256]
    assert ax.get_xscale() == "log"
    assert ax.get_title() == "two streams"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["few", "many"]


def test_samples_have_a_band():
    lines = np.random.default_rng(1).integers(0, 9000, 90_000)
    _, given = plt.subplots()
    ax = ws.plot.stack_distances({"exact": ws.memory.ReuseProfile.from_lines(lines)}, given)
    assert ax is given
    assert not ax.collections
    ws.plot.stack_distances(
        {"sample": ws.memory.ReuseProfile.from_lines(lines, sample_lines=0.1)}, ax
    )
    assert len(ax.collections) == 1


def test_a_stream_without_reuse_is_flat():
    ax = ws.plot.stack_distances({"once": ws.memory.ReuseProfile.from_lines([1, 2, 3])})
    assert set(ax.get_lines()[0].get_ydata()) == {0}


@pytest.mark.parametrize(
    ("profiles", "capacities", "message"),
    [
        ({}, None, "no accesses to draw"),
        ({"empty": []}, None, "no accesses to draw"),
        ({"one": [1]}, {"L1": 0}, "capacities: L1 = 0 lines"),
    ],
)
def test_bad_input(profiles, capacities, message):
    profiles = {
        label: ws.memory.ReuseProfile.from_lines(lines) for label, lines in profiles.items()
    }
    with pytest.raises(ws.InputError, match=message):
        ws.plot.stack_distances(profiles, capacities=capacities)
