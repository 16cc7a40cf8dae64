"""Plain definition of tcgen05: where words, factors and sums lie, and what a product is.

Tensor memory is an array of words, [lane][column]. A factor is a list of rows of 32 bytes, A by its
rows, B by its columns, so that k runs along each row.
"""

import numpy as np

from python_reference import ptx_warpgroup

#: Number of a swizzle in a descriptor, by the bytes of its pattern ("atoms": pieces of 32 bytes).
SWIZZLE_FIELD = {0: 0, "atoms": 1, 128: 2, 64: 4, 32: 6}
#: Exponent bits, fraction bits and bias of floats of at most 8 bits.
SMALL = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3),
         "e2m1": (2, 1, 1)}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8} | {
    kind: 1 + SMALL[kind][0] + SMALL[kind][1] for kind in SMALL
}
NUMBER_OF_TYPE = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1,
                  "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}  # fmt: skip
NUMBER_OF_SUM = {"f16": 0, "f32": 1, "s32": 2}


def instruction(m, n, kind_d, kind_a, kind_b, *, negate=(0, 0), transpose=(0, 0), saturate=0):
    """Return the instruction descriptor of a product without scales."""
    bits = saturate << 3 | NUMBER_OF_SUM[kind_d] << 4
    bits |= NUMBER_OF_TYPE[kind_a] << 7 | NUMBER_OF_TYPE[kind_b] << 10
    bits |= negate[0] << 13 | negate[1] << 14 | transpose[0] << 15 | transpose[1] << 16
    return bits | n >> 3 << 17 | m >> 4 << 24


def scaled_instruction(n, kind_a, kind_b, *, dense, exponents, bytes_of=(0, 0), m=128):
    """Return the instruction descriptor of a block-scaled product."""
    types = (1, 1) if dense else (NUMBER_OF_TYPE[kind_a], NUMBER_OF_TYPE[kind_b])
    bits = bytes_of[1] << 4 | types[0] << 7 | types[1] << 10 | n >> 3 << 17
    return bits | int(exponents) << 23 | m >> 7 << 27 | bytes_of[0] << 29


def picture(shape):
    """Return {(row, column): (lane, register)} of one unit of a transfer, as the ISA draws them."""
    places = {}
    if shape == "32x32b":
        return {(row, 0): (row, 0) for row in range(32)}
    for row in range(16):
        upper, line = divmod(row, 8)
        if shape == "16x256b":  # neighbours in a row go to a lane's two registers
            for column in range(8):
                places[row, column] = 4 * line + column // 2, 2 * upper + column % 2
        elif shape == "16x128b":
            for column in range(4):
                places[row, column] = 4 * line + column, upper
        else:  # 16x64b: the lower eight rows are the even lanes
            for column in range(2):
                places[row, column] = 4 * line + 2 * column + upper, 0
    return places


def registers_of(shape, repeats):
    """Return {(lane, register): (row, column)} of a transfer."""
    unit = picture(shape)
    width = 1 + max(column for _, column in unit)
    height = 1 + max(register for _, register in unit.values())
    return {
        (lane, register + height * i): (row, column + width * i)
        for i in range(repeats)
        for (row, column), (lane, register) in unit.items()
    }


def descriptor(start, leading, stride, swizzle):
    return (
        start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | SWIZZLE_FIELD[swizzle] << 61
    )


def place_rows(memory, rows, start, swizzle):
    """Put a factor with k along its rows; return its descriptor."""
    of_four_warps = ptx_warpgroup.place_rows(memory, rows, start, swizzle)
    return of_four_warps & ~(3 << 62) | 1 << 46 | SWIZZLE_FIELD[swizzle] << 61


def place_columns(memory, rows, start, swizzle, element):
    """Put a factor of elements of so many bytes with k across its rows; return its descriptor."""
    table = np.array([np.frombuffer(bytes(row), np.uint8) for row in rows])
    table = table.reshape(len(rows), 32 // element, element).transpose(1, 0, 2)  # [k][row][byte]
    span = {0: 16, "atoms": 128}.get(swizzle, swizzle)  # bytes of a row of the pattern
    height = 4 if swizzle == "atoms" else 8  # k
    wide = span // element
    blocks, deep = -(-len(rows) // wide), -(-(32 // element) // height)
    size = span * height
    # Along the rows first, with a gap, then along k.
    along = size + (1024 if swizzle else 128)
    across = blocks * along
    for k in range(32 // element):
        for row in range(0, len(rows), 16 // element):
            block, inside = divmod(row, wide)
            number = inside * element // 16
            if swizzle == "atoms":  # pieces of 32 bytes
                number ^= k % 4 * 2
            elif swizzle:
                number = ptx_warpgroup.piece(k % 8, number, swizzle)
            at = start + block * along + k // height * across + k % height * span + 16 * number
            part = table[k, row : row + 16 // element].reshape(-1)
            memory[at : at + len(part)] = part
    assert blocks * along * deep <= 32768
    return descriptor(start, *((across, along) if swizzle == 0 else (along, across)), swizzle)


def codes(rows, kind, packing="padded"):
    """Return the numbers of a factor as bits, [row][k]."""
    raw = np.array([np.frombuffer(bytes(row), np.uint8) for row in rows])
    bits = BITS[kind]
    if bits >= 8:
        return raw.view({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])
    flat = np.unpackbits(raw, axis=1, bitorder="little")
    if packing == "bytes":
        first = 2 if bits == 4 else 0
        parts = [flat[:, 8 * i + first : 8 * i + first + bits] for i in range(32)]
    elif packing == "dense":
        parts = [flat[:, bits * i : bits * (i + 1)] for i in range(256 // bits)]
    else:
        parts = [flat[:, 128 * h + bits * i :][:, :bits] for h in range(2) for i in range(16)]
    return np.stack([part @ (1 << np.arange(bits)) for part in parts], axis=1)


def values(rows, kind, packing="padded"):
    """Return the numbers of a factor, [row][k], as float64."""
    number = codes(rows, kind, packing)
    if kind == "f16":
        return number.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (number.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "tf32":
        return (number & 0xFFFFE000).view(np.float32).astype(np.float64)
    if kind in ("s8", "u8"):
        return number.view(np.int8 if kind == "s8" else np.uint8).astype(np.float64)
    exponent_bits, fraction_bits, bias = SMALL[kind]
    fraction = (number & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    exponent = (number >> fraction_bits & (1 << exponent_bits) - 1).astype(int)
    size = np.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
    )
    return np.where(number >> (exponent_bits + fraction_bits) & 1, -size, size)


def place_of_sum(m, n, row, column, stationary):
    """Return lane and column of an element of D, by the ISA's layouts D, F, E and G."""
    if m == 128:
        return row, column
    if not stationary:  # a warp has 16 rows, in the first half of its lanes
        warp, line = divmod(row, 16)
        return 32 * warp + line, column
    if m == 64:  # two halves of the columns, below each other
        half, inside = divmod(column, n // 2)
        return 64 * half + row, inside
    quarter, inside = divmod(column, n // 4)
    return 32 * quarter + row, inside


def place_of_sum_of_pair(m, n, row, column):
    """Return block, lane and column of an element of D of a pair, by the ISA's layouts A and B."""
    block, line = divmod(row, m // 2)
    if m == 256:
        return block, line, column
    half, inside = divmod(column, n // 2)  # two halves of the columns, below each other
    return block, 64 * half + line, inside
