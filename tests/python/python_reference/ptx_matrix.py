"""Plain definition of PTX matrix instructions: fragments as the ISA lists them, exact products.

A fragment is a list of 32 lanes; a lane is the list of its elements, as bits. Matrices are lists of
rows of bits.
"""

from fractions import Fraction

from python_reference.ptx_arithmetic import NAN, decode, encode, fused, is_nan, signed

BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "f64": 64,
    "s32": 32,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
    "e4m3": 8,
    "e5m2": 8,
    "e2m3": 8,
    "e3m2": 8,
    "e2m1": 8,
}
#: First bit in its byte, exponent bits, fraction bits and bias of floats of at most 8 bits.
SMALL = {"e4m3": (0, 4, 3, 7), "e5m2": (0, 5, 2, 15), "e2m3": (0, 2, 3, 1),
         "e3m2": (0, 3, 2, 3), "e2m1": (2, 2, 1, 1)}  # fmt: skip


def _a(shape, bits):
    """Row and column of element i of A, in the words of the section on the shape."""
    m, _, k = shape
    if bits == 64:
        if m == 8:
            return lambda g, t, i: (g, t)
        return lambda g, t, i: (g + 8 * (i % 2), t + 4 * (i // 2))
    if bits == 32:
        return lambda g, t, i: (g + 8 * (i in (1, 3)), t + 4 * (i >= 2))
    if bits == 16 and k == 8:
        return lambda g, t, i: (g if i < 2 else g + 8, 2 * t + i % 2)
    if bits == 16:
        return lambda g, t, i: (g + 8 * (i in (2, 3, 6, 7)), 2 * t + i % 2 + 8 * (i >= 4))
    if bits == 8 and k == 16:
        return lambda g, t, i: (g if i < 4 else g + 8, 4 * t + i % 4)
    if bits == 8:
        return lambda g, t, i: (g + 8 * (i // 4 % 2), 4 * t + i % 4 + 16 * (i >= 8))
    if bits == 4 and k == 32:
        return lambda g, t, i: (g if i < 8 else g + 8, 8 * t + i % 8)
    if bits == 4:
        return lambda g, t, i: (g + 8 * (i // 8 % 2), 8 * t + i % 8 + 32 * (i >= 16))
    if k == 128:
        return lambda g, t, i: (g if i < 32 else g + 8, 32 * t + i % 32)
    return lambda g, t, i: (g + 8 * (i // 32 % 2), 32 * t + i % 32 + 128 * (i >= 64))


def _b(shape, bits):
    if bits >= 32:
        return lambda g, t, i: (t + 4 * i, g)
    n = 32 // bits
    return lambda g, t, i: (n * t + i % n + 4 * n * (i >= n), g)


def _c(shape, bits):
    return lambda g, t, i: (g if i < 2 else g + 8, 2 * t + i % 2)


def dimensions(shape, role):
    m, n, k = shape
    return {"a": (m, k), "b": (k, n), "c": (m, n)}[role]


def positions(shape, kind, role):
    """Return (row, column) of every element of every lane."""
    rows, columns = dimensions(shape, role)
    place = {"a": _a, "b": _b, "c": _c}[role](shape, BITS[kind])
    count = rows * columns // 32
    return [[place(lane // 4, lane % 4, i) for i in range(count)] for lane in range(32)]


def to_fragment(matrix, shape, kind, role):
    return [[matrix[r][c] for r, c in lane] for lane in positions(shape, kind, role)]


def to_matrix(fragment, shape, kind, role):
    rows, columns = dimensions(shape, role)
    matrix = [[None] * columns for _ in range(rows)]
    for lane, places in zip(fragment, positions(shape, kind, role), strict=True):
        for bits, (r, c) in zip(lane, places, strict=True):
            assert matrix[r][c] is None
            matrix[r][c] = bits
    return matrix


def pack(elements, kind):
    """Return the registers of a lane: the first element in the lowest bits."""
    width = 64 if kind == "f64" else 32
    per = width // BITS[kind]
    return [
        sum(bits << j * BITS[kind] for j, bits in enumerate(elements[i : i + per]))
        for i in range(0, len(elements), per)
    ]


def unpack(registers, kind):
    width = 64 if kind == "f64" else 32
    mask = (1 << BITS[kind]) - 1
    return [reg >> j & mask for reg in registers for j in range(0, width, BITS[kind])]


def small_float(bits, kind):
    """Return sign and value of a float of at most 8 bits; of infinities and NaN None."""
    first, exponent_bits, fraction_bits, bias = SMALL[kind]
    bits >>= first
    sign = bits >> exponent_bits + fraction_bits & 1
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    if (kind == "e5m2" and exponent == 31) or (kind == "e4m3" and bits & 0x7F == 0x7F):
        return sign, None
    value = Fraction(fraction + (1 << fraction_bits if exponent else 0))
    value *= Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)
    return sign, -value if sign else value


def convert(bits, kind, target):
    """Return a float in a format with at least its precision and range."""
    if kind in SMALL:
        sign, value = small_float(bits, kind)
        if value is not None:
            return encode(value, target, sign_of_zero=sign)
        return sign << 31 | 0x7F800000 if bits & 0x7F == 0x7C else NAN[target]
    if kind == "tf32":
        bits, kind = bits & 0xFFFFE000, "f32"
    if kind == target:
        return bits
    if is_nan(bits, kind):
        return NAN[target]
    sign, value = decode(bits, kind)
    if not isinstance(value, Fraction):
        return sign << 31 | 0x7F800000
    return encode(value, target, sign_of_zero=sign)


def narrow(bits, target):
    """Return an f32 rounded to `target`."""
    if is_nan(bits, "f32"):
        return NAN[target]
    if target == "f32":
        return bits
    sign, value = decode(bits, "f32")
    if not isinstance(value, Fraction):
        return sign << 15 | 0x7C00
    return encode(value, target, sign_of_zero=sign)


def multiply(a, b, c, kinds, *, saturate=False, count_and=False):
    """Return D of D = A * B + C. `kinds`: those of D, A, B and C."""
    kind_d, kind_a, kind_b, kind_c = kinds
    inner = range(len(b))
    result = []
    for i, row in enumerate(c):
        result.append([])
        for j, bits in enumerate(row):
            if kind_c == "s32":
                total = signed(bits, 32)
                for k in inner:
                    x, y = a[i][k], b[k][j]
                    if kind_a == "b1":
                        total += x & y if count_and else x ^ y
                        continue
                    total += (signed(x, BITS[kind_a]) if kind_a[0] == "s" else x) * (
                        signed(y, BITS[kind_b]) if kind_b[0] == "s" else y
                    )
                if saturate:
                    total = max(-(2**31), min(2**31 - 1, total))
                result[-1].append(total & 0xFFFFFFFF)
                continue
            wide = "f64" if kind_c == "f64" else "f32"
            total = convert(bits, kind_c, wide)
            for k in inner:
                x, y = convert(a[i][k], kind_a, wide), convert(b[k][j], kind_b, wide)
                total = fused(wide, "rn", x, y, total)
            if wide == "f64":
                result[-1].append(NAN[wide] if is_nan(total, wide) else total)
            else:
                result[-1].append(narrow(total, kind_d))
    return result
