"""Samples of design spaces."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from warpstack.exploration.samples import axes_of_ranges

RANGES = {"num_sms": (4, 80), "noc_bandwidth_gbs": (100, 1600, "log"), "scheduler": ["gto", "lrr"]}
SAMPLERS = [
    ws.exploration.samples.latin_hypercube,
    ws.exploration.samples.sobol,
    ws.exploration.samples.random,
    ws.exploration.samples.saltelli,
]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
@given(n=st.integers(1, 40), seed=st.integers(0, 2**40))
def test_points_are_in_their_ranges(sampler, n, seed):
    samples = sampler(RANGES, n, seed=seed)
    assert len(samples) == (n * 5 if sampler is ws.exploration.samples.saltelli else n)
    for point in samples:
        assert list(point) == list(RANGES)
        assert isinstance(point["num_sms"], int)
        assert 4 <= point["num_sms"] <= 80
        assert 100 <= point["noc_bandwidth_gbs"] <= 1600 * (1 + 1e-12)
        assert point["scheduler"] in ("gto", "lrr")
    assert list(sampler(RANGES, n, seed=seed)) == list(samples)
    assert samples.ranges == RANGES
    assert samples.seed == seed
    assert samples.base == n


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_another_seed_gives_other_points(sampler):
    assert list(sampler(RANGES, 8, seed=1)) != list(sampler(RANGES, 8, seed=2))


def test_a_latin_hypercube_has_one_point_in_each_part():
    n = 16
    samples = ws.exploration.samples.latin_hypercube(
        {"l1_latency": (0, n), "noc_bandwidth_gbs": (1, 2**n, "log")}, n, seed=3
    )
    linear = [point["l1_latency"] for point in samples]
    logarithmic = [math.log2(point["noc_bandwidth_gbs"]) for point in samples]
    assert sorted(map(int, linear)) == list(range(n))
    assert sorted(map(int, logarithmic)) == list(range(n))


def test_a_sobol_sequence_is_balanced():
    samples = ws.exploration.samples.sobol({"l1_latency": (0, 64), "l2_latency": (0, 64)}, 64)
    for field in ("l1_latency", "l2_latency"):
        assert sorted(int(point[field]) for point in samples) == list(range(64))


def test_whole_numbers_are_rounded_without_bias():
    # (1, 4) holds four numbers, each a quarter of a balanced sequence; rounding would give the ends
    # a sixth.
    drawn = [point["num_sms"] for point in ws.exploration.samples.sobol({"num_sms": (1, 4)}, 1024)]
    assert np.bincount(drawn).tolist() == [0, 256, 256, 256, 256]
    # In equal ratios n has the share log((n + 1) / n) / log(4): 1 to 2 is half of 1 to 4.
    drawn = [
        point["num_sms"] for point in ws.exploration.samples.sobol({"num_sms": (1, 3, "log")}, 1024)
    ]
    assert np.bincount(drawn)[1] == 512
    assert {p["num_sms"] for p in ws.exploration.samples.random({"num_sms": (1.6, 2.4)}, 50)} == {2}


def test_saltelli_mixes_two_samples():
    n, fields = 8, ["l1_latency", "l2_latency", "dram_latency"]
    samples = ws.exploration.samples.saltelli(dict.fromkeys(fields, (0, 1000)), n, seed=5)
    values = np.array([[point[field] for field in fields] for point in samples])
    a, b, *mixed = np.split(values, 5)
    assert not (a == b).any()
    for column, part in enumerate(mixed):
        expected = a.copy()
        expected[:, column] = b[:, column]
        assert np.array_equal(part, expected)


def test_samples_are_a_sequence():
    samples = ws.exploration.samples.random(RANGES, 5)
    samples[0]["num_sms"] = -1
    assert samples[0]["num_sms"] > 0
    assert len(samples[1:3]) == 2
    assert repr(samples) == (
        "<Samples: 5 points of num_sms, noc_bandwidth_gbs, scheduler (random, seed 0)>"
    )


def test_samples_are_axes(pascal):
    samples = ws.exploration.samples.latin_hypercube(RANGES, 4)
    table = ws.sweep(ws.patterns.strided(gs=4, iterations=1, blocks=4), pascal, samples)
    assert table[list(RANGES)].to_dict("records") == list(samples)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"num_smss": (1, 2)}, "did you mean num_sms"),
        ({}, "at least one field"),
        ([], "expected a mapping"),
        ({"num_sms": (1,)}, "expected \\(low, high\\)"),
        ({"num_sms": (1, 2, 3)}, "expected \\(low, high\\)"),
        ({"num_sms": "1-2"}, "expected \\(low, high\\)"),
        ({"num_sms": 5}, "expected \\(low, high\\)"),
        ({"num_sms": []}, "list of choices is empty"),
        ({"num_sms": (2, 1)}, "lower one first"),
        ({"num_sms": (0, math.inf)}, "finite"),
        ({"num_sms": ("a", 2)}, "'a' is not a number"),
        ({"num_sms": (0, 2, "log")}, "starts above 0"),
        ({"num_sms": (1.2, 1.8)}, "no whole number"),
        ({"num_sms": (1, 10**400)}, "finite"),
        ({"scheduler": (1, 2)}, "scheduler is not a number; give a list of choices"),
        ({"shared_memory_carve_outs_kib": (1, 2)}, "is not a number; give a list of choices"),
        ({"num_sms": [{1}]}, "set is not a value of a field"),
        ({"num_sms": (-(10**5000), 1)}, "finite"),
    ],
)
def test_ranges_that_are_none(ranges, message):
    for sampler in SAMPLERS:
        with pytest.raises(ws.InputError, match=message):
            sampler(ranges, 4)


def test_numbers_of_points_and_seeds_are_checked():
    for sampler in SAMPLERS:
        with pytest.raises(ws.InputError, match="n = 0"):
            sampler(RANGES, 0)
        with pytest.raises(ws.InputError, match="seed = -1"):
            sampler(RANGES, 4, seed=-1)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.booleans(), st.floats(0, 1))
def test_values_lie_in_their_range(low, width, logarithmic, unit):
    scale = ("log",) if logarithmic else ()
    for field, high in (("num_sms", low + width), ("l1_latency", low + width / 7)):
        axis = axes_of_ranges({field: (low, high, *scale)})[0]
        (value,) = axis.values(np.array([unit]))
        assert low <= value <= high
        # A value stands for itself.
        (again,) = axis.values(np.array([axis.unit_of(value)]))
        assert again == pytest.approx(value, rel=1e-12)
