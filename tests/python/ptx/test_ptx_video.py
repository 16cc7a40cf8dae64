"""Video instructions on the halves and bytes of words, against their plain definition."""

import operator

import numpy as np
import pytest

from ptx_forms import OWN_WORD, at, run
from warpstack.errors import InputError

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
OPERATIONS = {
    "vadd": operator.add,
    "vsub": operator.sub,
    # The half of an odd sum is rounded away from zero if it is positive, else down.
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


def _parts(words, count):
    """Return the parts of words, the lowest first."""
    bits = 32 // count
    return [word >> (bits * i) & (1 << bits) - 1 for word in words for i in range(count)]


def _as_type(value, bits, type_):
    return value - (1 << bits) if type_ == "s32" and value >> (bits - 1) else value


def _clamped(value, bits, type_):
    least, most = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if type_ == "s32" else (0, (1 << bits) - 1)
    )
    return min(max(value, least), most)


def _defined(operation, count, types, a, b, c, *, selectors, mask, sat, add):
    """PTX ISA, SIMD video instructions."""
    bits = 32 // count
    sources = _parts((a, b), count)
    chosen = [
        [_as_type(sources[number], bits, type_) for number in selector]
        for selector, type_ in zip(selectors, types[1:], strict=True)
    ]
    results = [int(operation(x, y)) for x, y in zip(*chosen, strict=True)]
    if sat:
        results = [_clamped(value, bits, types[0]) for value in results]
    if add:
        return (c + sum(results[i] for i in mask)) % 2**32
    parts = _parts((c,), count)
    for i in mask:
        parts[i] = results[i] % (1 << bits)
    return sum(part << (bits * i) for i, part in enumerate(parts))


def _executed(instruction, values):
    body = (
        at("%l0", "%a1", "%g", 12)
        + "ld.global.u32 %r0, [%l0]; ld.global.u32 %r1, [%l0+4]; ld.global.u32 %r2, [%l0+8];"
        + instruction
        + OWN_WORD
        + "st.global.u32 [%l30], %r3;"
    )
    (got, _), trace = run(body, np.zeros(len(values), np.uint32), values, block=len(values))
    assert trace.instructions["opcode"].str.startswith("v").sum() == 1
    return got.tolist()


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", [*OPERATIONS, "vset"])
def test_parts_of_words(name, count):
    rng = np.random.default_rng(count)
    letter = {2: "h", 4: "b"}[count]
    for _ in range(6):
        values = rng.integers(0, 2**32, (64, 3), dtype=np.uint32)
        values[:8] = rng.choice(
            np.array([0, 0xFFFFFFFF, 0x7F807F80, 0x80007FFF], np.uint32), (8, 3)
        )
        types = rng.choice(["u32", "s32"], 3).tolist()
        add = bool(rng.random() < 0.4)
        sat = not add and name != "vset" and bool(rng.random() < 0.5)
        selectors = rng.integers(0, 2 * count, (2, count)).tolist()
        written = [f".{letter}{''.join(map(str, reversed(s)))}" for s in selectors]
        if rng.random() < 0.3:
            selectors = [list(range(count)), list(range(count, 2 * count))]
            written = ["", ""]
        mask = sorted(rng.choice(count, rng.integers(1, count + 1), replace=False).tolist())
        target = f"%r3.{letter}{''.join(map(str, reversed(mask)))}" if len(mask) < count else "%r3"
        operation = OPERATIONS.get(name)
        head = f"{name}{count}.{'.'.join(types)}"
        if name == "vset":
            comparison = str(rng.choice(COMPARISONS))
            operation = getattr(operator, comparison)
            head = f"vset{count}.{types[1]}.{types[2]}.{comparison}"
        head += ".sat" * sat + ".add" * add
        instruction = f"{head} {target}, %r0{written[0]}, %r1{written[1]}, %r2;"
        expected = [
            _defined(
                operation, count, types, *row, selectors=selectors, mask=mask, sat=sat, add=add
            )
            for row in values.tolist()
        ]
        assert _executed(instruction, values) == expected, instruction


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("vadd4.u32.u32.u32.sat.add %r3, %r0, %r1, %r2;", ".sat and .add exclude each other"),
        ("vadd4.u32.u32.u32 %r3, %r0.h10, %r1, %r2;", "it has no parts .h10"),
        ("vadd4.u32.u32.u32 %r3, %r0.b10, %r1, %r2;", "it has no parts .b10"),
        ("vadd2.u32.u32.u32 %r3, %r0.h14, %r1, %r2;", "there is no part 4 here"),
        ("vadd2.u32.u32.u32 %r3.h01, %r0, %r1, %r2;", "there is no part 1 here"),
        ("vadd2.u32.u16.u32 %r3, %r0, %r1, %r2;", "its types are not u32 and s32"),
        ("vset4.u32.u32 %r3, %r0, %r1, %r2;", "it names no comparison"),
        ("vadd4.u32.u32.u32.max %r3, %r0, %r1, %r2;", r"the modifier \.max is not supported"),
        ("add.u32 %r3, %r0.b0, %r1;", r"is not a vector register, but \.b0 of it is used"),
    ],
)
def test_what_is_refused(instruction, reason):
    with pytest.raises(InputError, match=reason):
        _executed(instruction, np.zeros((1, 3), np.uint32))
