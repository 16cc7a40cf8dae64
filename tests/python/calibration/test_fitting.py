"""Slopes and knees."""

import math

import pytest

from warpstack.calibration.fitting import Bracket, curves, medians, roundest, slope
from warpstack.calibration.measurements import Sample


def test_medians_of_repeats_by_parameters():
    samples = [Sample((2, 8), 5.0, 1), Sample((2, 8), 90.0, 2), Sample((2, 8), 7.0, 3)]
    points = medians([*samples, Sample((1, 8), 3.0, 4), Sample((1, 16), 4.0, 5)])
    assert points == {(1, 8): 3.0, (1, 16): 4.0, (2, 8): 7.0}
    assert curves(points) == {(1,): {8: 3.0, 16: 4.0}, (2,): {8: 7.0}}


def test_one_point_that_is_off_does_not_change_a_slope():
    line = {x: 3.0 + 2.0 * x for x in range(9)}
    assert slope(line) == 2
    assert slope({**line, 4: 500.0}) == 2
    assert math.isnan(slope({1: 2.0}))
    assert math.isnan(slope({}))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (60, 65, 64),
        (24, 26, 24),
        (112, 128, 112),
        (120, 131, 128),
        (95, 100, 96),
        (23, 24, 23),
        (1, 2, 1),
        (240, 260, 256),
        (7, 1000, 512),
    ],
)
def test_the_roundest_number(low, high, expected):
    assert roundest(Bracket(low, high)) == expected
