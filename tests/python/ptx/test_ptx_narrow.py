"""Conversions to and from formats of few bits, with .satfinite and random bits; cvt.pack.

The reference rounds to the lists of a format's numbers (python_reference/narrow.py).
"""

import itertools

import numpy as np
import pytest

import machine_forms
import warpstack as ws
from effort import rounds
from ptx_forms import at, run
from python_reference.narrow import FORMATS, doubles, joined, power_of_two, reversed_bits, rounded
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas
from warpstack.errors import InputError

NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
BLOCK = 128
NO_PTXAS = find_nvdisasm() is None or find_ptxas() is None
FP8_MACHINES = ("sm_89", "sm_90", "sm_100a", "sm_120a")
BLACKWELL = ("sm_100a", "sm_120a")


def on(*machines):
    """Run a test with PTX, and with what ptxas makes of it for machines."""
    slow = [pytest.param(m, marks=pytest.mark.slow) for m in machines if m != "sm_90"]
    usual = [m for m in machines if m == "sm_90"]
    return pytest.mark.parametrize("machine", [None, *usual, *slow], indirect=True)


@pytest.fixture
def machine(request, monkeypatch):
    if request.param is not None:
        if NO_PTXAS:
            pytest.skip("ptxas or nvdisasm is not installed")
        monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(request.param))
    return request.param


def formats(names=NARROW):
    """Return the formats with the machines that have them."""
    cases = []
    for name in names:
        has = FP8_MACHINES if name in ("e4m3", "e5m2") else BLACKWELL
        cases += [
            pytest.param(name, m, marks=() if m in (None, "sm_90") else pytest.mark.slow)
            for m in (None, *has)
        ]
    return pytest.mark.parametrize(("name", "machine"), cases, indirect=["machine"])


def execute(instruction, kinds, result, *sources):
    """Return what an instruction makes of arrays of words: f32, b32, b16 or b8 by `kinds`.

    In its text %d is the target and %0, %1 … are the sources.
    """
    count = len(sources[0])
    padded = [np.resize(s, -(-count // BLOCK) * BLOCK).astype(np.uint32) for s in sources]
    body = f".reg .{result} %d; .reg .b16 %half;"
    for i, kind in enumerate(kinds):
        body += at("%l1", f"%a{i + 1}", "%g", 4) + f"ld.global.u32 %r{i}, [%l1];"
        body += f".reg .{kind} %s{i};"
        if kind == "f32" or kind == "b32":
            body += f"mov.b32 %s{i}, %r{i};"
        elif kind == "b16":
            body += f"cvt.u16.u32 %s{i}, %r{i};"
        else:
            body += f"cvt.u8.u32 %s{i}, %r{i};"
        instruction = instruction.replace(f"%{i}", f"%s{i}")
    body += instruction + ";"
    if result == "b8":
        body += "cvt.u32.u8 %r20, %d;"
    else:
        body += "cvt.u32.u16 %r20, %d;" if result == "b16" else "mov.b32 %r20, %d;"
    body += at("%l2", "%a0", "%g", 4) + "st.global.u32 [%l2], %r20;"
    (got, *_), trace = run(
        body,
        np.zeros(len(padded[0]), np.uint32),
        *padded,
        grid=len(padded[0]) // BLOCK,
        block=BLOCK,
    )
    rows = trace.instructions
    rows = rows[rows["opcode"].str.match("cvt|F2FP|I2IP")]
    assert "unknown" not in set(rows["op_class"].astype(str))
    return got[:count]


def some_words(bits):
    """Return all words of so many bits, or as many random ones as the tier tries."""
    count = 1 << bits
    words = np.random.default_rng(bits).permutation(count)
    return words[: rounds(count) if bits > 8 else count].astype(np.uint32)


def single_precision(seed, count=2000):
    """Return bits of f32: numbers of all formats, the places between them, and random ones."""
    rng = np.random.default_rng(seed)
    special = [0, 1, 0x7FFFFF, 0x800000, 0x400000, 0x400001, 0x7F7FFFFF, 0x7F800000, 0x7F800001]
    special += [0x7FC00000, 0x7FFFFFFF, 0x3F800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x7F000000]
    near = []
    for name in FORMATS:
        numbers = FORMATS[name].numbers()
        chosen = rng.choice(numbers, 12)
        chosen = np.concatenate([chosen, numbers[:3], numbers[-3:]])
        near += [chosen, (chosen + np.roll(numbers, -1)[np.searchsorted(numbers, chosen)]) / 2]
    near = np.concatenate(near).astype(np.float32).view(np.uint32)
    near = np.concatenate([near, near + 1, np.maximum(near, 1) - 1])
    around = np.ldexp(rng.normal(size=count), rng.integers(-30, 30, count))
    parts = [
        np.array(special, np.uint32),
        near,
        around.astype(np.float32).view(np.uint32),
        rng.integers(0, 2**32, rounds(count), dtype=np.uint32),
    ]
    bits = np.concatenate(parts)
    return np.concatenate([bits, bits ^ np.uint32(1 << 31)])


def halves(name):
    """Return pairs of a half and another one, and their values, upper and lower."""
    upper, lower = some_words(16), some_words(16)[::-1].copy()
    if name == "f16":
        values = [doubles(x.astype(np.uint16).view(np.float16)) for x in (upper, lower)]
    else:
        values = [doubles((x << np.uint32(16)).view(np.float32)) for x in (upper, lower)]
    return joined(upper, lower, 16), *values


def result_of(name):
    return "b8" if name == "e2m1" else "b16"


@pytest.mark.parametrize("relu", [False, True])
@formats()
def test_from_single_precision(name, relu, machine):
    a = single_precision(1)
    b = np.random.default_rng(2).permutation(a)
    text = f"cvt.rn.satfinite{'.relu' * relu}.{name}x2.f32 %d, %0, %1"
    got = execute(text, ("f32", "f32"), result_of(name), a, b)
    upper, lower = (rounded(x.view(np.float32), name, relu=relu) for x in (a, b))
    np.testing.assert_array_equal(got, joined(upper, lower, FORMATS[name].stride))


@pytest.mark.parametrize("relu", [False, True])
@formats(("e4m3", "e5m2", "e2m1"))
def test_from_every_half(name, relu, machine):
    check_halves(name, "f16", relu)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("name", "wide"), [*((name, "bf16") for name in NARROW), ("e2m3", "f16"), ("e3m2", "f16")]
)
def test_from_every_half_since_ptx_9_1(name, wide, relu):
    check_halves(name, wide, relu)


def check_halves(name, wide, relu):
    words, upper, lower = halves(wide)
    text = f"cvt.rn.satfinite{'.relu' * relu}.{name}x2.{wide}x2 %d, %0"
    got = execute(text, ("b32",), result_of(name), words)
    expected = [rounded(x, name, relu=relu) for x in (upper, lower)]
    np.testing.assert_array_equal(got, joined(*expected, FORMATS[name].stride))


def widened(codes, name, wide, relu=False, saturates=False, scales=None):
    form = FORMATS[name]
    table = np.array([form.value(c) for c in range(2 * form.sign)])
    values = table[codes & (2 * form.sign - 1)]
    if scales is not None:
        values = values * np.where(scales == 255, np.nan, np.ldexp(1.0, scales.astype(int) - 127))
    return rounded(values, wide, saturates=saturates, relu=relu)


@pytest.mark.parametrize("relu", [False, True])
@formats()
def test_every_code_to_halves(name, relu, machine):
    stride = FORMATS[name].stride
    words = some_words(2 * stride)
    source = "b8" if name == "e2m1" else "b16"
    got = execute(f"cvt.rn{'.relu' * relu}.f16x2.{name}x2 %d, %0", (source,), "b32", words)
    parts = [widened(x, name, "f16", relu) for x in (words >> stride, words)]
    np.testing.assert_array_equal(got, joined(*parts, 16))


@pytest.mark.parametrize(("saturates", "relu"), [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("is_scaled", [False, True])
def test_every_code_to_bfloats(name, saturates, relu, is_scaled):
    """Since PTX 9.1."""
    stride = FORMATS[name].stride
    words = some_words(2 * stride)
    scales = np.random.default_rng(3).integers(0, 2**16, len(words), dtype=np.uint32)
    scales[: len(words) // 2] = np.arange(len(words) // 2) % 256 * 257
    source = "b8" if name == "e2m1" else "b16"
    text = f"cvt.rn{'.satfinite' * saturates}{'.relu' * relu}"
    text += f"{'.scaled::n2::ue8m0' * is_scaled}.bf16x2.{name}x2 %d, %0" + ", %1" * is_scaled
    kinds = (source, "b16") if is_scaled else (source,)
    got = execute(text, kinds, "b32", *(words, scales)[: len(kinds)])
    parts = [
        widened(codes, name, "bf16", relu, saturates, factor if is_scaled else None)
        for codes, factor in ((words >> stride, scales >> 8), (words, scales & 255))
    ]
    np.testing.assert_array_equal(got, joined(*parts, 16))


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("mode", ["rz", "rp"])
@on(*BLACKWELL)
def test_exponents(mode, saturates, machine):
    head = f"cvt.{mode}{'.satfinite' * saturates}.ue8m0x2"
    a = single_precision(4)
    b = a[::-1].copy()
    got = execute(f"{head}.f32 %d, %0, %1", ("f32", "f32"), "b16", a, b)
    upper, lower = (power_of_two(x.view(np.float32), mode, saturates) for x in (a, b))
    np.testing.assert_array_equal(got, joined(upper, lower, 8))
    words, upper, lower = halves("bf16")
    got = execute(f"{head}.bf16x2 %d, %0", ("b32",), "b16", words)
    parts = [power_of_two(x, mode, saturates) for x in (upper, lower)]
    np.testing.assert_array_equal(got, joined(*parts, 8))


@on(*BLACKWELL)
def test_every_exponent_to_bfloats(machine):
    words = some_words(16)
    got = execute("cvt.rn.bf16x2.ue8m0x2 %d, %0", ("b16",), "b32", words)
    values = np.append(np.ldexp(1.0, np.arange(-127, 128)), np.nan)
    parts = [rounded(values[x], "bf16") for x in (words >> 8, words & 255)]
    np.testing.assert_array_equal(got, joined(*parts, 16))


@pytest.mark.parametrize(("saturates", "relu"), [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("name", ["f16", "bf16"])
@on("sm_80", *FP8_MACHINES)
def test_short_floats(name, mode, saturates, relu, machine):
    if machine == "sm_80" and saturates:
        return  # since sm_89
    check_short_floats(name, mode, saturates, relu)


@pytest.mark.parametrize(("saturates", "relu"), [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize("name", ["f16", "bf16"])
@on("sm_100a")
def test_random_bits_of_short_floats(name, saturates, relu, machine):
    check_short_floats(name, "rs", saturates, relu)


def check_short_floats(name, mode, saturates, relu):
    a, b = single_precision(5), single_precision(6)
    b = b[np.arange(len(a)) % len(b)]
    bits = np.random.default_rng(7).integers(0, 2**32, len(a), dtype=np.uint32)
    words = f"cvt.{mode}{'.relu' * relu}{'.satfinite' * saturates}.{name}"
    how = {"mode": mode, "saturates": saturates, "relu": relu}
    fields = [bits >> 16, bits & 0xFFFF]
    if name == "f16":
        fields = [x & 0x1FFF for x in fields]
    parts = [
        rounded(x.view(np.float32), name, **how, random=r)
        for x, r in zip((a, b), fields, strict=True)
    ]
    if mode == "rs":
        got = execute(f"{words}x2.f32 %d, %0, %1, %2", ("f32", "f32", "b32"), "b32", a, b, bits)
    else:
        got = execute(f"{words}x2.f32 %d, %0, %1", ("f32", "f32"), "b32", a, b)
    np.testing.assert_array_equal(got, joined(*parts, 16))
    if mode != "rs":
        got = execute(f"{words}.f32 %d, %0", ("f32",), "b16", a)
        np.testing.assert_array_equal(got, parts[0])


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", NARROW)
@on("sm_100a")
def test_random_bits_of_four(name, relu, machine):
    rng = np.random.default_rng(8)
    first = single_precision(9)
    sources = [rng.permutation(first) for _ in range(4)]
    bits = rng.integers(0, 2**32, len(first), dtype=np.uint32)
    text = f"cvt.rs{'.relu' * relu}.satfinite.{name}x4.f32 %d, {{%0, %1, %2, %3}}, %4"
    result = "b16" if name == "e2m1" else "b32"
    got = execute(text, ("f32",) * 4 + ("b32",), result, *sources, bits)
    if name == "e2m1":
        fields = [bits >> 24 << 8 | bits >> 8 & 255, (bits >> 16 & 255) << 8 | bits & 255]
    else:
        fields = [bits >> 16, bits & 0xFFFF]
    randoms = [reversed_bits(fields[0]), fields[0], reversed_bits(fields[1]), fields[1]]
    expected = np.zeros(len(first), np.uint32)
    for source, random in zip(sources, randoms, strict=True):
        code = rounded(source.view(np.float32), name, "rs", relu=relu, random=random)
        expected = joined(expected, code, FORMATS[name].stride)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@on("sm_90", *BLACKWELL)
def test_tf32(mode, relu, machine):
    check_tf32(mode, relu, False)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@on(*BLACKWELL)
def test_tf32_that_stays_finite(mode, relu, machine):
    check_tf32(mode, relu, True)


@pytest.mark.parametrize("saturates", [False, True])
@on("sm_80", *FP8_MACHINES)
def test_tf32_with_ties_away(saturates, machine):
    check_tf32("rna", False, saturates, canonical=machine is None)


def check_tf32(mode, relu, saturates, canonical=True):
    a = single_precision(10)
    got = execute(
        f"cvt.{mode}{'.satfinite' * saturates}{'.relu' * relu}.tf32.f32 %d, %0", ("f32",), "b32", a
    )
    # 13 bits of the fraction go.
    wide = a.astype(np.uint64)
    added = {"rn": 0xFFF + (wide >> 13 & 1), "rz": 0, "rna": 0x1000}[mode]
    is_finite = (wide & 0x7F800000) != 0x7F800000
    expected = np.where(is_finite, (wide + added) & 0xFFFFE000, wide)
    is_nan = (wide & 0x7FFFFFFF) > 0x7F800000
    if saturates:
        over = (expected & 0x7FFFFFFF) == 0x7F800000
        expected = np.where(over, wide & 0x80000000 | 0x7F7FE000, expected)
    if relu:
        expected = np.where(wide >> 31 != 0, 0, expected)
    np.testing.assert_array_equal(got[~is_nan], expected[~is_nan])
    if canonical:
        assert set(got[is_nan]) == {0x7FFFFFFF}


@pytest.mark.parametrize("relu", [False, True])
def test_fixed_points(relu):
    """Since PTX 9.1."""
    a, b = single_precision(11), single_precision(12)
    b = b[np.arange(len(a)) % len(b)]
    scales = np.random.default_rng(13).integers(0, 2**16, len(a), dtype=np.uint32)
    scales[::2] = 0x7F7F

    def expected(values, scale):
        with np.errstate(all="ignore"):
            value = doubles(values) / np.ldexp(1.0, scale.astype(int) - 127)
            code = np.clip(np.rint(np.nan_to_num(value) * 64), -128, 127)
            code = np.where(np.isinf(value), np.where(value > 0, 127, -128), code)
        code = np.where(np.signbit(values) & relu, 0, code)
        return np.where(np.isnan(value) | (scale == 255), 127, code).astype(np.int64) & 255

    text = f"cvt.rn.satfinite{'.relu' * relu}.scaled::n2::ue8m0.s2f6x2.f32 %d, %0, %1, %2"
    got = execute(text, ("f32", "f32", "b16"), "b16", a, b, scales)
    parts = [expected(x.view(np.float32), s) for x, s in ((a, scales >> 8), (b, scales & 255))]
    np.testing.assert_array_equal(got, joined(*parts, 8))
    words = some_words(16)
    got = execute(f"cvt.rn{'.relu' * relu}.bf16x2.s2f6x2 %d, %0", ("b16",), "b32", words)
    parts = [
        rounded(x.astype(np.uint8).view(np.int8) / 64, "bf16", relu=relu)
        for x in (words >> 8, words & 255)
    ]
    np.testing.assert_array_equal(got, joined(*parts, 16))


@pytest.mark.parametrize("kind", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
@on("sm_80", "sm_90", "sm_100a")
def test_packed_integers(kind, machine):
    bits = int(kind[1:])
    rng = np.random.default_rng(bits)
    edges = [0, 1, 2, 3, 7, 8, 15, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1]
    edges = np.array(edges + [-x for x in edges] + [-(2**31)], np.int64)
    values = [rng.choice(edges, 600) for _ in range(2)]
    c = rng.integers(0, 2**32, 600, dtype=np.uint32)
    words = [v.astype(np.int32).view(np.uint32) for v in values]
    has_third = bits < 16
    text = f"cvt.pack.sat.{kind}.s32{'.b32' * has_third} %d, %0, %1" + ", %2" * has_third
    kinds = ("b32", "b32", "b32")[: 2 + has_third]
    got = execute(text, kinds, "b32", *[*words, c][: 2 + has_third])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    upper, lower = (np.clip(v, low, high) & (1 << bits) - 1 for v in values)
    expected = upper << bits | lower
    if has_third:
        expected = expected | (c.astype(np.int64) << 2 * bits) & 0xFFFFFFFF
    np.testing.assert_array_equal(got, expected)


@on("sm_90")
def test_bytes_of_words(machine):
    """Registers of eight bits, as cuda_fp4.h packs and unpacks them."""
    words = np.random.default_rng(1).integers(0, 2**32, 256, dtype=np.uint32)
    text = (
        ".reg .b8 %c<4>; .reg .b16 %w<2>; mov.b32 {%c0, %c1, %c2, %c3}, %0;"
        "mov.b16 %w0, {%c3, %c2}; mov.b16 %w1, {%c1, %c0}; mov.b32 %d, {%w0, %w1}"
    )
    np.testing.assert_array_equal(execute(text, ("b32",), "b32", words), words.byteswap())


def test_formats_are_those_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    names = {
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "e2m3": ml_dtypes.float6_e2m3fn,
        "e3m2": ml_dtypes.float6_e3m2fn,
        "e2m1": ml_dtypes.float4_e2m1fn,
    }
    for name, dtype in names.items():
        form = FORMATS[name]
        codes = np.arange(2 * form.sign, dtype=np.uint8)
        expected = codes.view(dtype).astype(np.float64)
        np.testing.assert_array_equal([form.value(c) for c in codes.tolist()], expected)


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("cvt.rn.e4m3x2.f32 %h0, %f0, %f1", r"it needs \.satfinite"),
        ("cvt.rz.satfinite.e4m3x2.f32 %h0, %f0, %f1", r"no conversion to \.e4m3x2 from \.f32"),
        ("cvt.rn.satfinite.e9m3x2.f32 %h0, %f0, %f1", r"no conversion to \.e9m3x2 from \.f32"),
        ("cvt.rn.e9m3x2.f32 %h0, %f0, %f1", r"the type \.e9m3x2 is not supported here"),
        ("cvt.satfinite.e4m3x2.f32 %h0, %f0, %f1", "it names no rounding"),
        ("cvt.rn.satfinite.e4m3x2 %h0, %f0, %f1", "it names no two types"),
        ("cvt.rn.satfinite.ftz.e4m3x2.f32 %h0, %f0, %f1", r"the modifier \.ftz is not supported"),
        ("cvt.rn.f16x2.ue8m0x2 %r0, %h0", r"no conversion to \.f16x2 from \.ue8m0x2"),
        ("cvt.rna.relu.tf32.f32 %r0, %f0", r"no conversion to \.tf32 from \.f32"),
        ("cvt.rs.f16.f32 %h0, %f0, %r0", r"no conversion to \.f16 from \.f32"),
        ("cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0, %f1}, %r1", "a vector of four values"),
        ("cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32 %h0, %f0, %f1, %h1", "is not supported"),
        ("cvt.pack.sat.u8.s32 %r0, %r1, %r2", r"values of less than 16 bits, and no others"),
        ("cvt.pack.u8.s32.b32 %r0, %r1, %r2, %r3", r"it needs \.sat"),
    ],
)
def test_what_is_refused(instruction, reason):
    with pytest.raises(InputError, match=reason):
        run(instruction + ";", np.zeros(32, np.uint32))
