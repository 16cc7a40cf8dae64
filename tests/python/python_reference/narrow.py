"""Formats of few bits by the lists of their numbers, and how values are rounded to them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """A float: its bits, what the largest code of a number is, and what a NaN becomes."""

    exponent: int
    fraction: int
    bias: int
    largest: int
    nan: int
    stride: int = 8  # from one value of a pair to the next
    infinite: bool = False  # the code behind the largest is infinity

    @property
    def sign(self):
        return 1 << (self.exponent + self.fraction)

    def numbers(self):
        """Return the numbers that are not negative; their places are their codes."""
        codes = np.arange(self.largest + 1)
        exponent, fraction = codes >> self.fraction, codes % (1 << self.fraction)
        significand = fraction + np.where(exponent > 0, 1 << self.fraction, 0)
        return np.ldexp(
            significand.astype(np.float64), np.maximum(exponent, 1) - self.bias - self.fraction
        )

    def value(self, code):
        """Return the value of a code."""
        magnitude = code & (self.sign - 1)
        if magnitude <= self.largest:
            value = self.numbers()[magnitude]
        else:
            value = np.inf if self.infinite and magnitude == self.largest + 1 else np.nan
        return -value if code & self.sign else value


FORMATS = {
    "e4m3": Format(4, 3, 7, 0x7E, 0x7F),
    "e5m2": Format(5, 2, 15, 0x7B, 0x7F, infinite=True),
    "e2m3": Format(2, 3, 1, 0x1F, 0x1F),
    "e3m2": Format(3, 2, 3, 0x1F, 0x1F),
    "e2m1": Format(2, 1, 1, 0x7, 0x7, stride=4),
    "f16": Format(5, 10, 15, 0x7BFF, 0x7FFF, stride=16, infinite=True),
    "bf16": Format(8, 7, 127, 0x7F7F, 0x7FFF, stride=16, infinite=True),
}


def doubles(values):
    """Return values in double precision; signaling NaNs are no reason for a warning."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values, np.float64)


def rounded(values, name, mode="rn", *, saturates=True, relu=False, random=None):
    """Return the codes that values become: of the nearest number (even codes of two), below, or
    above where random bits and the share of the way to it carry.
    """
    form = FORMATS[name]
    values = doubles(values)
    magnitude = np.abs(values)
    numbers = form.numbers()
    beyond = np.ldexp(1.0, (form.largest >> form.fraction) + 1 - form.bias)
    # As if there were numbers behind the largest.
    extended = np.append(numbers, max(beyond, 2 * numbers[-1] - numbers[-2]))
    limited = np.minimum(np.where(np.isnan(values), 0, magnitude), extended[-1])
    if mode == "rn":
        middles = (extended[1:] + extended[:-1]) / 2
        codes = np.searchsorted(middles, limited, "left")
        is_tie = codes < len(middles)
        is_tie &= middles[np.minimum(codes, len(middles) - 1)] == limited
        codes = codes + (is_tie & (codes % 2 == 1))
    else:
        codes = np.searchsorted(extended, limited, "right") - 1
        if mode == "rs":
            bits = 13 if name == "f16" else 16
            above = np.minimum(codes + 1, len(extended) - 1)
            gap = np.where(above > codes, extended[above] - extended[codes], 1)
            share = np.floor((limited - extended[codes]) / gap * 2**bits)
            codes = codes + (share + random >= 2**bits) * (above > codes)
    is_over = codes > form.largest
    to_largest = saturates | ((mode == "rz") & np.isfinite(magnitude))
    codes = np.where(is_over, np.where(to_largest, form.largest, form.largest + 1), codes)
    negative = np.signbit(values)
    codes = np.where(negative, 0 if relu else codes | form.sign, codes)
    return np.where(np.isnan(values), form.nan, codes).astype(np.uint32)


def power_of_two(values, mode, saturates):
    """Return the ue8m0 codes: of the power of two below (rz) or above (rp) a magnitude."""
    powers = np.ldexp(1.0, np.arange(-127, 128))
    magnitude = np.abs(doubles(values))
    is_nan = np.isnan(magnitude)
    magnitude = np.where(is_nan, 0, magnitude)
    if mode == "rz":
        codes = np.maximum(np.searchsorted(powers, magnitude, "right") - 1, 0)
        codes = np.where(np.isinf(magnitude), 255, codes)
    else:
        codes = np.searchsorted(powers, magnitude, "left")
    codes = np.minimum(codes, 254) if saturates else codes
    return np.where(is_nan, 255, codes).astype(np.uint32)


def joined(upper, lower, stride):
    """Return two codes side by side."""
    return upper.astype(np.uint32) << np.uint32(stride) | lower.astype(np.uint32)


def reversed_bits(values):
    """Return the 16 bits of values the other way round."""
    return sum((values >> i & 1) << (15 - i) for i in range(16))
