"""Plain definition of PTX arithmetic on bits: exact with Python's integers and fractions.

Values are bits (unsigned integers). A float result is computed exactly and rounded once.
"""

import math
import struct
from fractions import Fraction

# Bits of the significand (with the implicit one), least normal exponent, width.
FORMATS = {
    "f16": (11, -14, 16),
    "bf16": (8, -126, 16),
    "f32": (24, -126, 32),
    "f64": (53, -1022, 64),
}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}
INFINITE = "infinite"
NOT_A_NUMBER = "nan"


def width_of(kind):
    return FORMATS[kind][2] if kind in FORMATS else int(kind[1:])


def is_signed(kind):
    return kind[0] == "s"


def signed(bits, width):
    """Return the value of two's complement bits."""
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def value_of(bits, kind):
    """Return the integer that bits mean as a type such as u8 or s64."""
    width = width_of(kind)
    return signed(bits, width) if is_signed(kind) else bits & ((1 << width) - 1)


def decode(bits, kind):
    """Return (sign, exact value), the value INFINITE or NOT_A_NUMBER where it is none."""
    precision, least, width = FORMATS[kind]
    sign = bits >> (width - 1) & 1
    fraction = bits & ((1 << (precision - 1)) - 1)
    exponent = bits >> (precision - 1) & ((1 << (width - precision)) - 1)
    if exponent == (1 << (width - precision)) - 1:
        return sign, NOT_A_NUMBER if fraction else INFINITE
    if exponent:
        fraction |= 1 << (precision - 1)
    magnitude = Fraction(fraction) * Fraction(2) ** (max(exponent, 1) - 1 + least - precision + 1)
    return sign, -magnitude if sign else magnitude


def infinity(sign, kind):
    precision, _, width = FORMATS[kind]
    return sign << (width - 1) | ((1 << (width - precision)) - 1) << (precision - 1)


def zero(sign, kind):
    return sign << (FORMATS[kind][2] - 1)


def round_integer(value, mode):
    """Round a fraction to an integer: rn ties to even, rna ties away, rz, rm, rp."""
    whole = math.floor(value)
    rest = value - whole
    if rest == 0:
        return whole
    if mode == "rn":
        return whole + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2))
    if mode == "rna":
        return whole + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and value > 0))
    if mode == "rz":
        return whole + (value < 0)
    return whole + (mode == "rp")


def encode(value, kind, mode="rn", sign_of_zero=0):
    """Return the bits of an exact value rounded to a format."""
    if value == 0:
        return zero(sign_of_zero, kind)
    precision, least, width = FORMATS[kind]
    sign = int(value < 0)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, least)
    scaled = value / Fraction(2) ** (exponent - precision + 1)
    units = abs(round_integer(scaled, mode))
    # The implicit bit of `units` carries into the exponent.
    bits = ((exponent - least) << (precision - 1)) + units
    greatest = infinity(0, kind) - 1
    if bits > greatest:
        outwards = mode == "rn" or (mode == "rp" and not sign) or (mode == "rm" and sign)
        bits = greatest + 1 if outwards else greatest
    return sign << (width - 1) | bits


def is_nan(bits, kind):
    return decode(bits, kind)[1] == NOT_A_NUMBER


def flush(bits, kind):
    """Make a subnormal value zero, with its sign."""
    precision, _, width = FORMATS[kind]
    exponent = bits >> (precision - 1) & ((1 << (width - precision)) - 1)
    return bits if exponent else zero(bits >> (width - 1) & 1, kind)


def saturate(bits, kind):
    """Hold within 0 to 1; NaN and -0 become 0."""
    sign, value = decode(bits, kind)
    if value == NOT_A_NUMBER or sign or value == 0:
        return 0
    one = encode(Fraction(1), kind)
    return min(bits, one)


def relu(bits, kind):
    """Return the greater of a value and +0, where -0 is below +0; NaN stays."""
    sign, value = decode(bits, kind)
    return 0 if value != NOT_A_NUMBER and sign else bits


def fused(kind, mode, a, b, c):
    """a * b + c; without c the product alone."""
    (sa, x), (sb, y) = decode(a, kind), decode(b, kind)
    sc, z = (0, Fraction(0)) if c is None else decode(c, kind)
    if NOT_A_NUMBER in (x, y, z):
        return NAN[kind]
    sign = sa ^ sb
    if INFINITE in (x, y):
        if 0 in (x, y) or (z == INFINITE and sc != sign):
            return NAN[kind]
        return infinity(sign, kind)
    if z == INFINITE:
        return infinity(sc, kind)
    product = x * y
    if c is None:
        return encode(product, kind, mode, sign)
    zero_sign = sign if product == 0 and z == 0 and sign == sc else int(mode == "rm")
    return encode(product + z, kind, mode, zero_sign)


def divide(kind, mode, a, b):
    (sa, x), (sb, y) = decode(a, kind), decode(b, kind)
    sign = sa ^ sb
    if NOT_A_NUMBER in (x, y) or (x == y == INFINITE) or (x == 0 and y == 0):
        return NAN[kind]
    if x == INFINITE or y == 0:
        return infinity(sign, kind)
    if y == INFINITE:
        return zero(sign, kind)
    return encode(x / y, kind, mode, sign)


def root(kind, mode, a):
    sign, x = decode(a, kind)
    if x == NOT_A_NUMBER or (sign and x != 0):
        return NAN[kind]
    if x == INFINITE or x == 0:
        return a
    # Enough bits for what follows them to decide no rounding; inexact roots end in a half.
    shift = 1200
    scaled = x * 4**shift
    whole = math.isqrt(math.floor(scaled))
    doubled = 2 * whole + (whole * whole != scaled)
    return encode(Fraction(doubled, 2 ** (shift + 1)), kind, mode)


def float_operation(name, kind, *, mode="rn", ftz=False, sat=False, clip=False):
    """Return a function on bits: add, sub, mul, fma, div, rcp or sqrt with modifiers."""
    one = encode(Fraction(1), kind)
    sign_bit = 1 << (FORMATS[kind][2] - 1)
    exact = {
        "add": lambda a, b: fused(kind, mode, a, one, b),
        "sub": lambda a, b: fused(kind, mode, a, one, b ^ sign_bit),
        "mul": lambda a, b: fused(kind, mode, a, b, None),
        "fma": lambda a, b, c: fused(kind, mode, a, b, c),
        "div": lambda a, b: divide(kind, mode, a, b),
        "rcp": lambda a: divide(kind, mode, one, a),
        "sqrt": lambda a: root(kind, mode, a),
    }[name]

    def apply(*operands):
        if ftz:
            operands = [flush(x, kind) for x in operands]
        result = exact(*operands)
        if ftz:
            result = flush(result, kind)
        if sat:
            result = saturate(result, kind)
        return relu(result, kind) if clip else result

    return apply


def extreme(kind, *, least, nan=False, xorsign=False, ftz=False, clip=False):
    """min or max: -0 is below +0, a NaN gives way to a number unless `nan`."""
    sign_bit = 1 << (FORMATS[kind][2] - 1)

    def key(bits):
        sign, value = decode(bits, kind)
        if value == INFINITE:
            value = Fraction(2) ** 5000 * (-1 if sign else 1)
        return value, -sign

    def apply(a, b):
        if ftz:
            a, b = flush(a, kind), flush(b, kind)
        sign = (a ^ b) & sign_bit
        if xorsign:
            a, b = a & ~sign_bit, b & ~sign_bit
        if is_nan(a, kind) or is_nan(b, kind):
            if nan or (is_nan(a, kind) and is_nan(b, kind)):
                return NAN[kind]
            result = b if is_nan(a, kind) else a
        else:
            result = (min if least else max)(a, b, key=key)
        if xorsign:
            result |= sign
        return relu(result, kind) if clip else result

    return apply


def convert(target, source, *, mode=None, integral=None, ftz=False, sat=False, clip=False):
    """cvt. `mode` is rn, rz, rm or rp, `integral` the same letters for .rni and its kin."""

    def from_integer(bits):
        value = value_of(bits, source)
        if target in FORMATS:
            result = encode(Fraction(value), target, mode or "rn")
            return saturate(result, target) if sat else result
        width = width_of(target)
        if sat:
            low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1)
            if not is_signed(target):
                low, high = 0, (1 << width) - 1
            value = min(max(value, low), high)
        return value & ((1 << width) - 1)

    def from_float(bits):
        if ftz and source == "f32":
            bits = flush(bits, source)
        sign, value = decode(bits, source)
        if target not in FORMATS:
            width = width_of(target)
            low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1)
            if not is_signed(target):
                low, high = 0, (1 << width) - 1
            if value == NOT_A_NUMBER:
                return 0 if source != "f64" and width < 64 else 1 << (width - 1)
            if value == INFINITE:
                value = low if sign else high
            else:
                value = min(max(round_integer(value, integral), low), high)
            return value & ((1 << width) - 1)
        if value == NOT_A_NUMBER:
            result = NAN[target]
        elif value == INFINITE:
            result = infinity(sign, target)
        else:
            if integral:
                value = Fraction(round_integer(value, integral))
            result = encode(value, target, mode or "rn", sign)
        if ftz and target == "f32":
            result = flush(result, target)
        if sat:
            result = saturate(result, target)
        return relu(result, target) if clip else result

    return from_float if source in FORMATS else from_integer


def as_float(bits, kind):
    """Return bits of a format as a Python float."""
    if kind == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    return struct.unpack("<f", struct.pack("<I", bits << 16 if kind == "bf16" else bits))[0]
