"""Generators of random numbers as their papers give them: raw results of 32 bits in cuRAND's order."""

import re
from pathlib import Path

WORD = 2**32
M1, M2 = 4294967087, 4294944443
MTGP_PARAMETERS = (
    Path(__file__).parents[3] / "cpp" / "stand_ins" / "curand" / "mtgp32_parameters.inc"
)


def xorwow(seed, lane, count):
    """Return the first numbers of a lane, which starts lane * 2^67 draws into the sequence."""
    t0 = 1099087573 * (seed % WORD ^ 0xAAD26B49) % WORD
    t1 = 2591861531 * (seed >> 32 ^ 0xF7DCEFDD) % WORD
    start = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
    weyl = 6615241 + t0 + t1

    def step(v):
        t = v[0] ^ v[0] >> 2
        return [*v[1:], (v[4] ^ v[4] << 4 ^ t ^ t << 1) % WORD]

    def joined(v):
        return sum(word % WORD << 32 * i for i, word in enumerate(v))

    def parted(number):
        return [number >> 32 * i & WORD - 1 for i in range(5)]

    def apply(columns, number):
        result = 0
        while number:
            lowest = number & -number
            result ^= columns[lowest.bit_length() - 1]
            number ^= lowest
        return result

    state = joined(start)
    columns = [joined(step(parted(1 << bit))) for bit in range(160)]  # of one step
    for _ in range(67 if lane else 0):
        columns = [apply(columns, column) for column in columns]
    for _ in range(lane):
        state = apply(columns, state)
    v, results = parted(state), []
    for _ in range(count):
        v, weyl = step(v), weyl + 362437
        results.append((v[4] + weyl) % WORD)
    return results


def mrg32k3a(seed, lane, count):
    """Return the first numbers of a lane, which starts lane * 2^76 draws into the sequence."""
    x1, x2 = (seed % WORD ^ 0x55555555, seed >> 32 ^ 0xAAAAAAAA) if seed else (1, 1)
    first = [12345 * x % M1 for x in (x1, x2, x1)]
    second = [12345 * x % M2 for x in (x2, x1, x2)]

    def times(a, b, modulus):
        return [[sum(x * y for x, y in zip(row, column, strict=True)) % modulus
                 for column in zip(*b, strict=True)] for row in a]  # fmt: skip

    def moved(state, last_row, modulus):
        power = [[0, 1, 0], [0, 0, 1], last_row]
        for _ in range(76):
            power = times(power, power, modulus)
        column = [[each] for each in state]
        for _ in range(lane):
            column = times(power, column, modulus)
        return [each for (each,) in column]

    a, b = moved(first, [-810728, 1403580, 0], M1), moved(second, [-1370589, 0, 527612], M2)
    results = []
    for _ in range(count):
        a = [*a[1:], (1403580 * a[1] - 810728 * a[0]) % M1]
        b = [*b[1:], (527612 * b[2] - 1370589 * b[0]) % M2]
        difference = (a[2] - b[2]) % M1 or M1
        results.append(int(difference * 1.000000048662))
    return results


def philox(seed, lane, block):
    """Return the four numbers of a block."""
    c, k = [block % WORD, block >> 32, lane, 0], [seed % WORD, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q % WORD, p >> 32 ^ c[3] ^ k[1], p % WORD]
        k = [(k[0] + 0x9E3779B9) % WORD, (k[1] + 0xBB67AE85) % WORD]
    return c


def mtgp32(seed, lane, count):
    """Return the first numbers of a set of parameters."""
    rows = [line for line in MTGP_PARAMETERS.read_text().splitlines() if line.startswith("{")]
    position, left, right, *maps = (
        int(each, 0) for each in re.findall(r"0x[0-9a-f]+|\d+", rows[lane])
    )

    def image(columns, bits):
        result = 0
        for i, column in enumerate(columns):
            result ^= column if bits >> i & 1 else 0
        return result

    hidden = (maps[2] ^ maps[3] << 16) % WORD
    fill = (hidden + (hidden >> 16)) % WORD
    fill = (fill + (fill >> 8)) % 256 * 0x01010101
    s = [((seed ^ seed >> 32) + lane + 1) % WORD, hidden, *[fill] * 349]
    for i in range(1, 351):
        s[i] ^= (1812433253 * (s[i - 1] ^ s[i - 1] >> 30) + i) % WORD
    results = []
    for i in range(count):
        x = s[i] & 0xFFF80000 ^ s[i + 1]
        y = (x ^ x << left) % WORD ^ s[i + position] >> right
        s.append(y ^ image(maps[:4], y))
        t = s[i + position - 1]
        t ^= t >> 16
        t ^= t >> 8
        results.append(s[-1] ^ image(maps[4:], t))
    return results
