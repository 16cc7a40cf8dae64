"""Plain definition of wgmma: where factors lie in shared memory, and what a product of four warps is.

A factor is a list of rows of bits: A by its rows, B by its columns, so that k runs along each row,
which has 32 bytes. Shared memory is an array of bytes.
"""

import numpy as np

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
#: Number of a swizzle in a descriptor, by the bytes of its pattern.
SWIZZLE_FIELD = {0: 0, 128: 1, 64: 2, 32: 3}


def inner(kind):
    """Return K."""
    return 256 // BITS[kind]


def piece(row, number, swizzle):
    """Return which 16 bytes of a row of a pattern hold its piece `number`, in the ISA's pictures.

    Eight rows of 128 bytes: each row exchanges its pieces in its own way. Rows of 64 bytes: two
    neighbours have the same, rows of 32 bytes: four.
    """
    if swizzle == 0:
        return number
    return number ^ row % 8 // {128: 1, 64: 2, 32: 4}[swizzle]


def descriptor(start, leading, stride, swizzle):
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLE_FIELD[swizzle] << 62


def place_rows(memory, rows, start, swizzle):
    """Put a factor with k along its rows; return its descriptor. Blocks of 8 rows follow each other."""
    size = len(rows)
    if swizzle == 0:  # the first 16 bytes of all rows, then the others
        leading, stride = size * 16, 128
        for r, row in enumerate(rows):
            for half in range(2):
                at = start + half * leading + r * 16
                memory[at : at + 16] = row[16 * half : 16 * half + 16]
    else:  # rows of a pattern: the factor is the first 32 bytes of each
        leading, stride = 0, 8 * swizzle
        for r, row in enumerate(rows):
            for half in range(2):
                at = start + r * swizzle + 16 * piece(r, half, swizzle)
                memory[at : at + 16] = row[16 * half : 16 * half + 16]
    return descriptor(start, leading, stride, swizzle)


def place_columns(memory, rows, start, swizzle):
    """Put a factor of 16-bit elements with k across its rows; return its descriptor."""
    elements = np.array([np.frombuffer(bytes(row), np.uint16) for row in rows])
    elements = np.ascontiguousarray(elements.T)  # [k][row]
    size = len(rows)
    if swizzle == 0:  # 8 rows by 8 k are 128 bytes; all rows of the first 8 k, then the others
        stride, leading = 128, size // 8 * 128
        for k in range(16):
            for block in range(size // 8):
                at = start + k // 8 * leading + block * stride + k % 8 * 16
                memory[at : at + 16] = elements[k, 8 * block : 8 * block + 8].view(np.uint8)
        return descriptor(start, leading, stride, swizzle)
    width = swizzle // 2  # rows of the factor in a row of the pattern
    stride = 8 * swizzle  # 8 k
    leading = 16 * swizzle  # 16 k, and the next rows
    for k in range(16):
        for row in range(0, size, 8):
            block, inside = divmod(row, width)
            at = start + block * leading + k // 8 * stride
            at += k % 8 * swizzle + 16 * piece(k, inside // 8, swizzle)
            memory[at : at + 16] = elements[k, row : row + 8].view(np.uint8)
    return descriptor(start, leading, stride, swizzle)


def values(rows, kind):
    """Return the numbers of a factor, [row][k], as float64 or int64; bits for b1."""
    raw = np.array([np.frombuffer(bytes(row), np.uint8) for row in rows])
    if kind == "f16":
        return raw.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "tf32":
        return (raw.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64)
    if kind in ("e4m3", "e5m2"):
        fraction = 3 if kind == "e4m3" else 2
        bias = 7 if kind == "e4m3" else 15
        exponent = ((raw & 0x7F) >> fraction).astype(int)
        part = (raw & (1 << fraction) - 1) / (1 << fraction)
        size = np.where(
            exponent == 0, part * 2.0 ** (1 - bias), (1 + part) * 2.0 ** (exponent - bias)
        )
        return np.where(raw & 0x80, -size, size)
    if kind == "b1":
        return np.unpackbits(raw, axis=1).astype(np.int64)
    return raw.view(np.int8 if kind == "s8" else np.uint8).astype(np.int64)


def multiply(a, b, kinds, d=None, *, negate_a=False, negate_b=False, saturate=False):
    """Return D of 64 rows, [row][column]: A * B, and D where it is given. Sums are exact here."""
    kind_d, kind_a, kind_b = kinds
    left, right = values(a, kind_a), values(b, kind_b)
    product = (-left if negate_a else left) @ (-right if negate_b else right).T
    total = product if d is None else product + d
    if kind_d == "s32":
        if saturate:
            return np.clip(total, -(2**31), 2**31 - 1)
        return (total + 2**31) % 2**32 - 2**31
    return total.astype(np.float16 if kind_d == "f16" else np.float32)


def position(thread, element):
    """Return row and column of D that element `element` of a thread is (PTX ISA, fragment of D)."""
    warp, lane = divmod(thread, 32)
    return (
        16 * warp + lane // 4 + 8 * (element // 2 % 2),
        8 * (element // 4) + 2 * (lane % 4) + element % 2,
    )


def registers_of_a(a):
    """Return the four words of A that each of 128 threads has, in the ISA's picture."""
    words = np.array([np.frombuffer(bytes(row), np.uint32) for row in a])  # [row][8]
    result = np.zeros((128, 4), np.uint32)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        g, t = divmod(lane, 4)
        for i in range(4):
            result[thread, i] = words[16 * warp + g + 8 * (i % 2), t + 4 * (i // 2)]
    return result
