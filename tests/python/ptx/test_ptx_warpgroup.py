"""wgmma: products of four warps with factors in shared memory or registers, against the plain definition."""

import numpy as np
import pytest

from effort import rounds
from ptx_forms import access_counts, at, message_of, run
from python_reference import ptx_warpgroup as plain

SHARED = 65536
OUTSIDE = f".shared .align 1024 .b8 memory[{SHARED}];"
#: All words of the second array into shared memory.
FILL = (
    "mov.u32 %r0, %t; mov.u32 %r9, memory;\nfill: shl.b32 %r1, %r0, 2;"
    + at("%l0", "%a1", "%r0", 4)
    + "ld.global.u32 %r2, [%l0]; add.u32 %r1, %r1, %r9; st.shared.u32 [%r1], %r2;"
    f"add.u32 %r0, %r0, 128; setp.lt.u32 %p0, %r0, {SHARED // 4}; @%p0 bra fill;\n"
    "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;\n"
)
FLOATS = [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"),
          ("f32", "tf32", "tf32"), ("f32", "e4m3", "e5m2"), ("f16", "e5m2", "e4m3")]  # fmt: skip
INTEGERS = [("s32", "s8", "u8"), ("s32", "u8", "s8"), ("s32", "b1", "b1")]


def random_factor(rows, kind, rng):
    """Return rows of 32 bytes: small numbers, whose sums no order changes."""
    count = (rows, plain.inner(kind))
    small = rng.integers(-4, 5, count)
    if kind == "f16":
        return [row.tobytes() for row in small.astype(np.float16)]
    if kind == "bf16":
        words = small.astype(np.float32).view(np.uint32) >> 16
        return [row.tobytes() for row in words.astype(np.uint16)]
    if kind == "tf32":
        return [row.tobytes() for row in small.astype(np.float32)]
    if kind in ("e4m3", "e5m2"):
        # 0 and powers of two from 1/4 to 4, with signs
        one = 7 << 3 if kind == "e4m3" else 15 << 2
        unit = 8 if kind == "e4m3" else 4
        bits = np.where(small == 0, 0, one + unit * rng.integers(-2, 3, count))
        return [row.tobytes() for row in (bits | (small < 0) * 128).astype(np.uint8)]
    return [rng.integers(0, 256, 32, dtype=np.uint8).tobytes() for _ in range(rows)]


def multiply(kinds, n, a, b, *, place_a="rows", place_b="rows", swizzle=0, d=None, scales=(1, 1)):
    """Run one wgmma of 128 threads. Return D, and the trace."""
    kind_d, kind_a, kind_b = kinds
    memory = np.zeros(SHARED, np.uint8)
    as_bytes = [[np.frombuffer(row, np.uint8) for row in factor] for factor in (a, b)]
    places = {"rows": plain.place_rows, "columns": plain.place_columns}
    description_b = places[place_b](memory, as_bytes[1], 32768, swizzle)
    words = n // 4 if kind_d == "f16" else n // 2
    registers = [f"%dd{i}" for i in range(words)]
    kind_of_register = "f32" if kind_d == "f32" else "b32"
    text = f".reg .{kind_of_register} {', '.join(registers)}; .reg .pred %keep;"
    text += FILL
    before = np.zeros((128, words), np.uint32)
    if d is not None:
        for thread in range(128):
            values = [d[plain.position(thread, i)] for i in range(n // 2)]
            kept = np.array(values, {"f16": np.float16, "f32": np.float32}.get(kind_d, np.int32))
            before[thread] = kept.view(np.uint32)
    text += at("%l1", "%a0", "%t", 4 * words)
    text += "".join(f"ld.global.b32 {r}, [%l1+{4 * i}];" for i, r in enumerate(registers))
    arrays = [before.reshape(-1), memory.view(np.uint32)]
    if place_a == "registers":
        arrays.append(plain.registers_of_a(a).reshape(-1))
        text += at("%l3", "%a2", "%t", 16) + "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%l3];"
        first = "{%r10, %r11, %r12, %r13}"
    else:
        text += f"mov.b64 %l4, {places[place_a](memory, as_bytes[0], 0, swizzle)};"
        first = "%l4"
    text += f"mov.b64 %l5, {description_b}; setp.ne.u32 %keep, {int(d is not None)}, 0;"
    form = "and.popc" if kind_a == "b1" else ""
    operands = f"{first}, %l5, %keep"
    if kind_d != "s32":
        operands += f", {scales[0]}, {scales[1]}"
        if kind_a in ("f16", "bf16"):
            operands += "" if place_a == "registers" else f", {int(place_a == 'columns')}"
            operands += f", {int(place_b == 'columns')}"
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{plain.inner(kind_a)}"
    opcode += f".{kind_d}.{kind_a}.{kind_b}" + (f".{form}" if form else "")
    text += f"{opcode} {{{', '.join(registers)}}}, {operands};"
    text += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    text += "".join(f"st.global.b32 [%l1+{4 * i}], {r};" for i, r in enumerate(registers))
    (out, *_), trace = run(text, *arrays, block=128, outside=OUTSIDE)
    kind = {"f16": np.float16, "f32": np.float32}.get(kind_d, np.int32)
    elements = out.reshape(128, words).view(kind)
    result = np.zeros((64, n), kind)
    for thread in range(128):
        for i in range(n // 2):
            result[plain.position(thread, i)] = elements[thread, i]
    return result, trace


def check(kinds, n, seed, **options):
    rng = np.random.default_rng(seed)
    a, b = random_factor(64, kinds[1], rng), random_factor(n, kinds[2], rng)
    d = None
    if options.pop("adds", False):
        d = rng.integers(-9, 10, (64, n)).astype(np.int64 if kinds[0] == "s32" else np.float64)
    got, trace = multiply(kinds, n, a, b, d=d, **options)
    scales = options.get("scales", (1, 1))
    expected = plain.multiply(a, b, kinds, d, negate_a=scales[0] < 0, negate_b=scales[1] < 0)
    np.testing.assert_array_equal(got, expected)
    return trace


def test_by_hand():
    # A is 64 x 16 with ones in column 3 of row 5 and nothing else; B has k + 1 in all columns, so
    # that D[5] = 4 everywhere and the rest is 0. A lies in two halves of 64 x 16 bytes, B in two of
    # 8 x 16 bytes.
    a = np.zeros((64, 16), np.float16)
    a[5, 3] = 1
    b = np.tile(np.arange(1, 17, dtype=np.float16), (8, 1))
    got, trace = multiply(
        ("f32", "f16", "f16"), 8, [r.tobytes() for r in a], [r.tobytes() for r in b]
    )
    expected = np.zeros((64, 8), np.float32)
    expected[5] = 4
    np.testing.assert_array_equal(got, expected)
    rows = trace.instructions
    assert list(rows[rows.op_class == "tensor"].opcode) == [
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    ]
    # A warp reads its 16 rows of A and a fourth of the 8 columns of B: 18 * 32 bytes, at 128 a time
    # and without the rest.
    assert access_counts(trace, "wgmma.operands.shared") == [4] * 4


@pytest.mark.parametrize("kinds", FLOATS + INTEGERS, ids=".".join)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_types_and_swizzles(kinds, swizzle):
    check(kinds, 16, swizzle, swizzle=swizzle, adds=True)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(
    ("place_a", "place_b"),
    [("columns", "rows"), ("rows", "columns"), ("columns", "columns"), ("registers", "columns")],
)
def test_transposed_factors(place_a, place_b, swizzle):
    for kind in ("f16", "bf16"):
        check(("f32", kind, kind), 64, swizzle, place_a=place_a, place_b=place_b, swizzle=swizzle)


@pytest.mark.parametrize("kinds", FLOATS + INTEGERS[:2], ids=".".join)
def test_a_in_registers(kinds):
    check(kinds, 24, 7, place_a="registers", swizzle=128)


@pytest.mark.parametrize("scales", [(-1, 1), (1, -1), (-1, -1)])
def test_signs(scales):
    check(("f32", "f16", "f16"), 8, 3, scales=scales, adds=True)


@pytest.mark.slow
def test_all_widths():
    widths = np.random.default_rng(5).permutation(np.arange(8, 257, 8))
    for n in widths[: rounds(len(widths), costly=True)]:
        check(("f32", "f16", "f16"), int(n), int(n), swizzle=128)
        if n <= 24 or n % 16 == 0:
            check(("s32", "s8", "s8"), int(n), int(n), swizzle=64, adds=True)


def test_half_accumulators_are_rounded_once():
    # 2048 + 1 + 1 in f16: each sum alone would be rounded back to 2048.
    a = np.zeros((64, 16), np.float16)
    a[:, 0], a[:, 1:3] = 2048, 1
    b = np.ones((8, 16), np.float16)
    got, _ = multiply(("f16", "f16", "f16"), 8, [r.tobytes() for r in a], [r.tobytes() for r in b])
    assert (got == 2050).all()


#: A product of what FILL has written, by 128 threads and those behind them.
PRODUCT = (
    "mov.b64 %l4, 0; @!%p4 bra past; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
    "{%f0, %f1, %f2, %f3}, %l4, %l4, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;"
)
FINISH = "wgmma.wait_group.sync.aligned 0;"
OVERWRITE = "st.shared.u32 [%r9], 77;"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (PRODUCT + FINISH + "past: bar.sync 0;" + OVERWRITE, None),
        # All warps of the group have read what a wait of one of them waits for.
        (PRODUCT + FINISH + "@%p5 " + OVERWRITE + "past:", None),
        (
            PRODUCT + "past: bar.sync 0;" + OVERWRITE,
            " and a product of four warps at 0x0 of shared memory",
        ),
        (PRODUCT + "@%p5 " + OVERWRITE + "past:", "waits for the product (wgmma.wait_group)"),
        (
            PRODUCT + FINISH.replace(" 0;", " 1;") + "@%p5 " + OVERWRITE + "past:",
            "waits for the product",
        ),
        # The other four warps write while these multiply.
        (
            "@!%p4 " + OVERWRITE + PRODUCT + FINISH + "past:",
            "race between a product of four warps and",
        ),
    ],
)
def test_races_of_products(body, found):
    start = FILL.replace("128", "256") + "setp.lt.u32 %p4, %t, 128; setp.lt.u32 %p5, %t, 32;"
    arrays = np.zeros(32, np.uint32), np.ones(SHARED // 4, np.uint32)
    options = {"outside": OUTSIDE, "block": 256, "check_races": True}
    if found is None:
        run(start + body, *arrays, **options)
    else:
        assert found in message_of(start + body, *arrays, **options)


def test_mistakes():
    one = "mov.b64 %l0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
    one += "%l0, %l0, 1, 1, 1, 0, 0;"
    declare = {"outside": OUTSIDE}
    assert "group that is not whole" in message_of(one, block=96, **declare)
    assert "needs all 32 threads" in message_of(
        "setp.lt.u32 %p0, %t, 8; @%p0 " + one.split(";", 1)[1].strip(), block=128, **declare
    )
    for code, reason in {
        "m64n12k16.f32.f16.f16": "the shape .m64n12k16",
        "m64n8k8.f32.f16.f16": "the shape .m64n8k8",
        "m64n40k32.s32.s8.s8": "the shape .m64n40k32",
        "m64n8k16.f32.f16.bf16": "these types are not multiplied",
    }.items():
        text = (
            f"wgmma.mma_async.sync.aligned.{code} {{%f0, %f1, %f2, %f3}}, %l0, %l0, 1, 1, 1, 0, 0;"
        )
        assert reason in message_of(text, block=128)
    sparse = (
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0}, %l0, %l0, %r0, 0, 1, 1, 1;"
    )
    assert "sparse matrices are not supported" in message_of(sparse, block=128)
