"""Shifts, sums, extremes and conversions of words in listings written by hand, each form that a
compiler may write for plain code, on random operands against plain definitions.
"""

import itertools
import math

import numpy as np
import pytest
from listing_forms import lanes, uniform
from tested_forms import forms_are_executed, forms_by_test  # noqa: F401

import warpstack as ws
from ptx_forms import Form, check
from python_reference.ptx_arithmetic import as_float, is_nan, signed
from warpstack.cuda.disassembly import find_nvdisasm

WORD, WORDS = 2**32 - 1, 2**64 - 1

needs_tools = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)


def shifted(left, wraps, kind, high, low, count, upper):
    """Return a word of the shifted 64 bits; 32-bit kinds shift by 31 or, without .W, 32 at most."""
    width = int(kind[1:])
    count = count % width if wraps else min(count, width)
    if width == 32 and left and not high:
        return low << count & WORD
    if width == 32 and not left and high:
        return (signed(upper, 32) if kind[0] == "S" else upper) >> count & WORD
    value = upper << 32 | low
    if kind[0] == "S" and not left:
        value = signed(value, 64)
    value = value << count if left else value >> count
    return value >> (32 if high else 0) & WORD


@pytest.mark.slow  # test_shifts_of_two_words tries some
@pytest.mark.parametrize("u", ["", "U"])
@pytest.mark.parametrize("side", ["L", "R"])
def test_all_shifts(u, side):
    forms = {}
    kinds, words = ("U32", "S32", "U64", "S64"), (f"{u}R4", f"{u}RZ")
    for wraps, kind, high in itertools.product((".W", ""), kinds, ("", ".HI")):
        for low, upper in itertools.product(words, (f"{u}R8", f"{u}RZ")):
            for count in (f"{u}R6", f"{u}RZ", "0x1f", "0x20", "0x25", "0x3f"):
                name = f"{u}SHF.{side}{wraps}.{kind}{high}"

                def reference(a, s, c, low=low, upper=upper, count=count, of=(wraps, kind, high)):
                    s = s if count.endswith("R6") else 0 if "RZ" in count else int(count, 16)
                    return shifted(
                        side == "L",
                        of[0] != "",
                        of[1],
                        of[2] != "",
                        0 if "RZ" in low else a,
                        s,
                        0 if "RZ" in upper else c,
                    )

                line = f"{name} {u}R12,{low},{count},{upper}"
                forms[line] = Form(line, ("b32", "shift", "b32"), ("b32",), reference)
    if u:
        check(forms, 64, text_of=uniform, threads=1)
    else:
        check(forms, 192, text_of=lanes)


def parts_of(value, kind, count):
    bits = 32 // count
    pieces = [value >> bits * p & (1 << bits) - 1 for p in range(count)]
    return [signed(v, bits) if kind == "S" else v for v in pieces]


def joined(parts, count):
    bits = 32 // count
    return sum((v & (1 << bits) - 1) << bits * p for p, v in enumerate(parts))


#: Names of types, with the kind and the number of the parts of a word.
PACKED = {
    "": ("S", 1),
    ".U32": ("U", 1),
    ".S16x2": ("S", 2),
    ".U16x2": ("U", 2),
    ".S8x4": ("S", 4),
    ".U8x4": ("U", 4),
}


def test_extremes_of_words_and_their_parts():
    forms = {}
    for (name, (kind, count)), relu in itertools.product(PACKED.items(), ("", ".RELU")):
        if relu and kind == "U":
            continue

        def extreme(values, least, relu=relu):
            value = min(values) if least else max(values)
            return max(value, 0) if relu else value

        def two(a, b, c, kind=kind, count=count, extreme=extreme):
            pairs = zip(parts_of(a, kind, count), parts_of(b, kind, count), strict=True)
            return joined([extreme(p, c) for p in pairs], count)

        def three(a, b, e, c, kind=kind, count=count, extreme=extreme):
            triples = zip(*(parts_of(v, kind, count) for v in (a, b, e)), strict=True)
            return joined([extreme(p, c) for p in triples], count)

        def of_sum(a, b, e, c, kind=kind, count=count, extreme=extreme):
            bits = 32 // count
            found = []
            for x, y, z in zip(*(parts_of(v, kind, count) for v in (a, b, e)), strict=True):
                total = x + y & (1 << bits) - 1
                found.append(extreme((signed(total, bits) if kind == "S" else total, z), c))
            return joined(found, count)

        for least in (0, 1):
            flag = "PT" if least else "!PT"
            for preds in ("", "PT,PT,"):
                line = f"VIMNMX{name}{relu} R12,{preds}R4,R6,{flag}"
                forms[line] = Form(
                    line, ("b32", "b32"), ("b32",), lambda a, b, f=two, c=least: f(a, b, c)
                )
            for opcode, reference in (("VIMNMX3", three), ("VIADDMNMX", of_sum)):
                line = f"{opcode}{name}{relu} R12,R4,R6,R8,{flag}"
                forms[line] = Form(
                    line,
                    ("b32", "b32", "b32"),
                    ("b32",),
                    lambda a, b, e, f=reference, c=least: f(a, b, e, c),
                )
        line = f"VIMNMX{name}{relu} R12,R4,R6,P2"
        forms[line] = Form(line, ("b32", "b32", "flag"), ("b32",), two)
    check(forms, 384, text_of=lanes)


def test_extremes_of_64_bits():
    forms = {}
    for kind, least in itertools.product("SU", (0, 1)):
        line = f"IMNMX.{kind}64 PT,PT,R12,R4,R6,{'PT' if least else '!PT'},!PT"

        def reference(a, b, kind=kind, least=least):
            x, y = (signed(a, 64), signed(b, 64)) if kind == "S" else (a, b)
            return (min(x, y) if least else max(x, y)) & WORDS

        forms[line] = Form(line, ("b64", "b64"), ("b64",), reference)
    check(forms, 384, text_of=lanes)


def test_sums_of_parts():
    forms = {}
    for name, count in ((".16x2", 2), (".U8x4", 4), ("", 1)):
        for x, y in itertools.product((1, -1), repeat=2):
            line = f"VIADD{name} R12,{'-' * (x < 0)}R4,{'-' * (y < 0)}R6"

            def reference(a, b, count=count, x=x, y=y):
                pairs = zip(parts_of(a, "U", count), parts_of(b, "U", count), strict=True)
                return joined([x * p + y * q for p, q in pairs], count)

            forms[line] = Form(line, ("b32", "b32"), ("b32",), reference)
    check(forms, 384, text_of=lanes)


def test_products_with_a_signed_addend():
    forms = {}
    for kind, sign in itertools.product(("", ".U32"), ("", "-")):
        for factor in ("R6", "0x100000"):
            line = f"IMAD.WIDE{kind} R12,R4,{factor},{sign}R8"

            def reference(a, b, c, kind=kind, sign=sign, factor=factor):
                x, y = (a, b) if kind else (signed(a, 32), signed(b, 32))
                return x * (y if factor == "R6" else 1 << 20) + (-c if sign else c) & WORDS

            forms[line] = Form(line, ("b32", "b32", "b64"), ("b64",), reference)

        def carried(a, b, c, kind=kind, sign=sign):
            x, y = (a, b) if kind else (signed(a, 32), signed(b, 32))
            total = (x * y & WORDS) + ((c ^ WORDS) + 1 if sign else c)
            return total & WORDS, total >> 64 & 1

        line = f"IMAD.WIDE{kind} R12,P5,R4,R6,{sign}R8"
        forms[line] = Form(line, ("b32", "b32", "b64"), ("b64", "flag"), carried)
    check(forms, 384, text_of=lanes)


ROUNDINGS = {
    "": lambda v: float(np.rint(v)),
    ".TRUNC": math.trunc,
    ".FLOOR": math.floor,
    ".CEIL": math.ceil,
}


def test_floats_as_short_integers():
    """Their registers hold the sign in all upper bits; .NTZ makes zero of what is not a number."""
    forms = {}
    kinds = itertools.product("SU", (8, 16, 32), ROUNDINGS.items(), ("f32", "f64"), (".NTZ", ""))
    for kind, bits, (name, rounding), source, ntz in kinds:
        of = ".F64" * (source == "f64")
        line = f"F2I.{kind}{bits}{of}{name}{ntz} R12,R4"

        def reference(a, kind=kind, bits=bits, rounding=rounding, source=source, ntz=ntz):
            top = 1 << bits - 1
            if is_nan(a, source):
                return 0 if ntz else (-top if kind == "S" else top) & WORD
            value = as_float(a, source)
            least, most = (-top, top - 1) if kind == "S" else (0, 2 * top - 1)
            value = max(least, min(most, value))  # the bounds are whole
            return int(rounding(value)) & WORD

        forms[line] = Form(line, (source,), ("b32",), reference)
    check(forms, 384, text_of=lanes)


def test_short_integers_as_floats_and_words():
    forms = {}
    parts = {8: (".B0", ".B1", ".B2", ".B3"), 16: (".H0", ".H1")}
    for kind, bits in itertools.product("SU", (8, 16)):
        for number, part in enumerate(parts[bits]):
            line = f"I2F.{kind}{bits} R12,R4{part}"

            def reference(a, kind=kind, bits=bits, number=number):
                value = a >> bits * number & (1 << bits) - 1
                value = signed(value, bits) if kind == "S" else value
                return int(np.float32(value).view(np.uint32))

            forms[line] = Form(line, ("b32",), ("b32",), reference)
        for source in "SU":
            line = f"I2I.{kind}{bits}.{source}32.SAT R12,R4"

            def held(a, kind=kind, bits=bits, source=source):
                top = 1 << bits - 1
                least, most = (-top, top - 1) if kind == "S" else (0, 2 * top - 1)
                return max(least, min(most, signed(a, 32) if source == "S" else a)) & WORD

            forms[line] = Form(line, ("b32",), ("b32",), held)
    check(forms, 384, text_of=lanes)


# ---- what compilers make of plain code --------------------------------------------------------

ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]
PLAIN = """
typedef long long s64; typedef unsigned long long u64; typedef unsigned u32;
extern "C" __global__ void k(const int* a, const int* b, const short* s, u64* o) {
  int t = threadIdx.x, x = a[t], y = b[t];
  short p = s[t], q = s[t + 32], r = s[t + 1];
  o[t] = (u64)(s64)(x >> (y & 31));
  o[t + 32] = (u64)(s64)(p > q ? p : q) + (u64)(s64)(p < q ? p : q) * 65536;
  o[t + 64] = ((u64)(u32)x << 20) - (u32)y;
  short m = p > q ? p : q;
  o[t + 96] = (u64)(s64)(m > r ? m : r);
  u64 w = (u64)(u32)x << 32 | (u32)y;
  o[t + 128] = (u64)((s64)w >> (y & 63));
}
"""


@needs_tools
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_plain_code(arch):
    random = np.random.default_rng(7)
    a, b = random.integers(-(2**31), 2**31, (2, 32)).astype(np.int32)
    s = random.integers(-(2**15), 2**15, 64).astype(np.int16)
    device = ws.cuda.Device(0.1)
    out = device.zeros(160, np.uint64)
    kernel = ws.cuda.compile(PLAIN, machine_code=arch, device=device).kernel("k")
    kernel.launch(1, 32, device.array(a), device.array(b), device.array(s), out)
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        expected.append(x >> (y & 31))
    p, q, r = s[:32].tolist(), s[32:].tolist(), s[1:33].tolist()
    expected += [max(v) + min(v) * 65536 for v in zip(p, q, strict=True)]
    words = [(x & WORD, y & WORD) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    expected += [(x << 20) - y for x, y in words]
    expected += [max(v) for v in zip(p, q, r, strict=True)]
    expected += [signed(x << 32 | y, 64) >> (y & 63) for x, y in words]
    assert np.asarray(out).tolist() == [v & WORDS for v in expected]


FILLED = """
extern "C" __global__ void k(const char* x, char* o, int size) {
  __shared__ int4 s[32];
  unsigned d = __cvta_generic_to_shared(&s[threadIdx.x]);
  asm volatile("cp.async.WAY.shared.global [%0], [%1], BYTES, %2;" ::"r"(d),
               "l"(x + 16 * threadIdx.x), "r"(size));
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int i = 0; i < BYTES; i++) o[BYTES * threadIdx.x + i] = ((char*)&s[threadIdx.x])[i];
}
"""


@needs_tools
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize(("way", "width"), [("cg", 16), ("ca", 16), ("ca", 8), ("ca", 4)])
def test_copies_that_fill_with_zeros(arch, way, width):
    source = FILLED.replace("WAY", way).replace("BYTES", str(width))
    device = ws.cuda.Device(0.1)
    kernel = ws.cuda.compile(source, machine_code=arch, device=device).kernel("k")
    data = np.random.default_rng(3).integers(1, 100, 16 * 32).astype(np.int8)
    for size in range(0, width + 1, 1 if width == 4 else 3):
        out = device.zeros(width * 32, np.int8)
        kernel.launch(1, 32, device.array(data), out, np.int32(size))
        expected = data.reshape(32, 16)[:, :width].copy()
        expected[:, size:] = 0
        np.testing.assert_array_equal(np.asarray(out).reshape(32, width), expected)
