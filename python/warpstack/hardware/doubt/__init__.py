"""How far a predicted time may be from a measured one: measured errors, guesses, samples.

The range is for nine of ten times: of kernels of this kind, whose errors were measured (`errors`); wider
where the model reads values of the GPU that are guesses (`card`), or where the prediction is from a
sample (`ranges`).
"""

from __future__ import annotations

from warpstack.hardware.doubt.card import card_doubt, guesses, time_doubt
from warpstack.hardware.doubt.errors import Range, error_table, half_widths, kind_of, measured_range
from warpstack.hardware.doubt.ranges import (
    RANGE,
    beside_time,
    range_of_sum,
    widened_by_sample,
    with_range,
)

__all__ = [
    "RANGE",
    "Range",
    "beside_time",
    "card_doubt",
    "error_table",
    "guesses",
    "half_widths",
    "kind_of",
    "measured_range",
    "range_of_sum",
    "time_doubt",
    "widened_by_sample",
    "with_range",
]
