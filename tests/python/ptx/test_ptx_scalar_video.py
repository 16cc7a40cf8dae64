"""Video instructions on one byte, half or word of each operand, against their plain definition."""

import itertools
import operator

import numpy as np
import pytest

import machine_forms
import warpstack as ws
from effort import rounds
from ptx_forms import OWN_WORD, at, run
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas
from warpstack.errors import InputError

TYPES = ("u32", "s32")
SELECTORS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
PRIMARY = {
    "vadd": operator.add,
    "vsub": operator.sub,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
SECOND = {"add": operator.add, "min": min, "max": max}


@pytest.fixture(params=[None, "sm_80"])
def machine(request, monkeypatch):
    """Run the PTX, or what ptxas makes of it."""
    if request.param is not None:
        if find_nvdisasm() is None or find_ptxas() is None:
            pytest.skip("ptxas or nvdisasm is not installed")
        monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(request.param))
    return request.param


def place(selector):
    """Return where a part begins, and its bits."""
    if not selector:
        return 0, 32
    bits = {"b": 8, "h": 16}[selector[1]]
    return bits * int(selector[2]), bits


def part(word, type_, selector):
    start, bits = place(selector)
    value = word >> start & (1 << bits) - 1
    return value - (1 << bits) if type_ == "s32" and value >> (bits - 1) else value


def clamped(value, type_, bits=32):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_ == "s32" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def finished(value, type_, c, *, sat, second, into):
    """Return optMerge(optSecondaryOp(optSaturate(value))) of the PTX ISA."""
    start, bits = place(into)
    if sat:
        value = clamped(value, type_, bits)
    if second:
        value = SECOND[second](value, part(c, type_, ""))
    mask = ((1 << bits) - 1) << start
    return value << start & mask | c & ~mask if into else value % 2**32


def words(seed, count):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**32, (count, 3), dtype=np.uint32)
    edges = np.array(
        [0, 1, 31, 32, 33, 0x7F, 0x80, 0xFF80, 0x7FFFFFFF, 2**31, 2**32 - 1], np.uint32
    )
    return np.where(rng.random((count, 3)) < 0.4, rng.choice(edges, (count, 3)), values)


def executed(instructions, values):
    """Return the results of each instruction (on %r0, %r1, %r2) for rows of words."""
    body = at("%l0", "%a1", "%g", 12) + at("%l1", "%a0", "%g", 4 * len(instructions))
    body += "ld.global.u32 %r0, [%l0]; ld.global.u32 %r1, [%l0+4]; ld.global.u32 %r2, [%l0+8];"
    for i, text in enumerate(instructions):
        body += f"{text}; st.global.u32 [%l1+{4 * i}], %r3;"
    results = np.zeros((len(values), len(instructions)), np.uint32)
    (got, _), _ = run(body, results, values.astype(np.uint32), block=len(values))
    return got.T.tolist()


def check(cases, values):
    """Compare {instruction: definition of three words}."""
    for (text, define), got in zip(cases.items(), executed(list(cases), values), strict=True):
        assert got == [define(*row) for row in values.tolist()], text


def random_form(rng, machine, with_types=3):
    """Return types, selectors, and what becomes of the result.

    ptxas does not do what the ISA says where it merges (`.h1` gets the upper half of the result), in
    minima and maxima with results that leave 31 bits, and where sums leave a u32.
    """
    types = rng.choice(TYPES, with_types).tolist()
    a, b = rng.choice(SELECTORS, 2).tolist()
    kind = rng.choice(["plain", "second", "merge"] if machine is None else ["plain", "second"])
    seconds = list(SECOND) if machine is None else ["add"]
    second = str(rng.choice(seconds)) if kind == "second" else None
    into = str(rng.choice(SELECTORS[1:])) if kind == "merge" else ""
    return types, a, b, second, into


@pytest.mark.parametrize("name", PRIMARY)
def test_arithmetic(name, machine):
    rng = np.random.default_rng(len(name))
    cases = {}
    for sat in itertools.islice(itertools.cycle([False, True]), rounds(60)):
        types, a, b, second, into = random_form(rng, machine)
        if machine is not None and types != ["s32"] * 3:
            sat = False
        text = f"{name}.{'.'.join(types)}{'.sat' * sat}{'.' + second if second else ''}"
        text += f" %r3{into}, %r0{a}, %r1{b}" + ", %r2" * bool(second or into)

        def define(x, y, c, types=types, a=a, b=b, sat=sat, second=second, into=into):
            value = PRIMARY[name](part(x, types[1], a), part(y, types[2], b))
            return finished(value, types[0], c, sat=sat, second=second, into=into)

        cases[text] = define
    check(cases, words(1, 96))


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("name", ["vshl", "vshr"])
def test_shifts(name, mode, machine):
    rng = np.random.default_rng(len(mode))
    cases = {}
    for sat in itertools.islice(itertools.cycle([False, True]), rounds(60)):
        types, a, b, second, into = random_form(rng, machine, 2)
        text = f"{name}.{types[0]}.{types[1]}.u32{'.sat' * sat}.{mode}"
        text += f"{'.' + second if second else ''} %r3{into}, %r0{a}, %r1{b}"
        text += ", %r2" * bool(second or into)

        def define(x, y, c, types=types, a=a, b=b, sat=sat, second=second, into=into):
            count = part(y, "u32", b)
            count = min(count, 32) if mode == "clamp" else count & 31
            value = part(x, types[1], a)
            value = value << count if name == "vshl" else value >> count
            value = (value + 2**33) % 2**34 - 2**33  # the intermediate result has 34 bits
            return finished(value, types[0], c, sat=sat, second=second, into=into)

        cases[text] = define
    check(cases, words(2, 96))


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_comparisons(comparison, machine):
    rng = np.random.default_rng(len(comparison))
    cases = {}
    for _ in range(rounds(40)):
        types, a, b, second, into = random_form(rng, machine, 2)
        text = f"vset.{types[0]}.{types[1]}.{comparison}{'.' + second if second else ''}"
        text += f" %r3{into}, %r0{a}, %r1{b}" + ", %r2" * bool(second or into)

        def define(x, y, c, types=types, a=a, b=b, second=second, into=into):
            holds = getattr(operator, comparison)(part(x, types[0], a), part(y, types[1], b))
            return finished(int(holds), "u32", c, sat=False, second=second, into=into)

        cases[text] = define
    check(cases, words(3, 96))


def mad_cases(rng, count):
    for _ in range(count):
        types = rng.choice(TYPES, 2).tolist()
        a, b = rng.choice(SELECTORS, 2).tolist()
        sat = bool(rng.random() < 0.5)
        shift = int(rng.choice([0, 7, 15]))
        sign = str(rng.choice(["", "a", "b", "c", "ab", "po"]))
        is_signed = "s32" in types or sign in ("a", "b", "c")
        dtype = "s32" if is_signed else "u32"
        text = f"vmad.{dtype}.{types[0]}.{types[1]}{'.po' * (sign == 'po')}{'.sat' * sat}"
        text += f".shr{shift}" * (shift > 0)
        text += f" %r3, {'-' * ('a' in sign)}%r0{a}, {'-' * ('b' in sign)}%r1{b}, "
        text += f"{'-' * (sign == 'c')}%r2"

        def define(x, y, c, types=types, a=a, b=b, sat=sat, shift=shift, sign=sign, dtype=dtype):
            product = part(x, types[0], a) * part(y, types[1], b)
            value = -product if sign in ("a", "b") else product
            third = part(c, dtype, "")
            value += -third if sign == "c" else third
            value = (value + (sign == "po")) >> shift
            return (clamped(value, dtype) if sat else value) % 2**32

        yield text, define


def test_multiply_add():
    check(dict(mad_cases(np.random.default_rng(5), rounds(150))), words(5, 96))


def test_multiply_add_of_positive_numbers(machine):
    """What ptxas takes for signed numbers, and wraps around in 64 bits, is not in it."""
    values = words(6, 96) & np.uint32(0x3FFFFFF)
    cases = dict(mad_cases(np.random.default_rng(6), rounds(60)))
    check({text: define for text, define in cases.items() if "-" not in text}, values)


def test_a_row_of_the_trace():
    body = "mov.u32 %r0, %t; vadd.u32.u32.u32.sat %r3.b1, %r0.b0, %r0.h1, %r0;"
    (got,), trace = run(body + OWN_WORD + "st.global.u32 [%l30], %r3;", np.zeros(32, np.uint32))
    assert got.tolist() == [lane | lane << 8 for lane in range(32)]
    row = trace.instructions[trace.instructions["opcode"].str.startswith("vadd")]
    assert row["op_class"].astype(str).tolist() == ["integer"]


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("vadd.u32.u32.u32 %r3, %r0.b4, %r1", r"it has no part \.b4|b4"),
        ("vadd.u32.u32.u32 %r3, %r0.h2, %r1", r"it has no part \.h2|h2"),
        ("vadd.u32.u32.u32 %r3, %r0, %r1, %r2", "a third source needs a secondary operation"),
        ("vadd.u32.u32.u32.add %r3, %r0, %r1", "its third source is missing"),
        ("vadd.u32.u32.u32.add %r3.b0, %r0, %r1, %r2", "it merges and has a secondary"),
        ("vadd.u32.u16.u32 %r3, %r0, %r1", "its types are not u32 and s32"),
        ("vshl.u32.u32.s32.wrap %r3, %r0, %r1", "its count is not a u32"),
        ("vshl.u32.u32.u32 %r3, %r0, %r1", r"it has neither \.clamp nor \.wrap"),
        ("vset.u32.u32 %r3, %r0, %r1", "it names no comparison"),
        ("vmad.s32.s32.s32.po %r3, -%r0, %r1, %r2", r"\.po excludes negated operands"),
        ("vmad.s32.s32.s32 %r3, -%r0, %r1, -%r2", "it negates the product and the sum"),
        ("vmad.s32.s32.s32 %r3.b0, %r0, %r1, %r2", "only its factors have selectors"),
    ],
)
def test_what_is_refused(instruction, reason):
    with pytest.raises(InputError, match=reason):
        executed([instruction], words(1, 4))
