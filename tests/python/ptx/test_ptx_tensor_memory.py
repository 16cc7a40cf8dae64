"""tcgen05: tensor memory and its products, against the plain definition."""

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import access_counts, at, compile_body, message_of, run
from python_reference import ptx_tensor_memory as plain

SHARED = 65536
OUTSIDE = (
    f".shared .align 1024 .b8 memory[{SHARED}]; .shared .align 8 .b64 done;"
    ".shared .align 4 .b32 found;"
)
ALLOCATE = (
    ".reg .b32 %ta, %tl, %td; .reg .pred %first, %warp0, %over; setp.eq.u32 %first, %t, 0;"
    "setp.lt.u32 %warp0, %t, 32; @!%warp0 bra allocated;"
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [found], 512;"
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    "allocated: @%first mbarrier.init.shared.b64 [done], 1; fence.proxy.async;"
    "bar.sync 0; ld.shared.b32 %ta, [found]; and.b32 %tl, %t, 0x60; shl.b32 %tl, %tl, 16;"
    "add.u32 %tl, %tl, %ta;\n"
)
#: All words of the array %a1 into shared memory.
FILL = (
    "mov.u32 %r0, %t; mov.u32 %r9, memory;\nfill: shl.b32 %r1, %r0, 2;"
    + at("%l0", "%a1", "%r0", 4)
    + "ld.global.u32 %r2, [%l0]; add.u32 %r1, %r1, %r9; st.shared.u32 [%r1], %r2;"
    f"add.u32 %r0, %r0, 128; setp.lt.u32 %p0, %r0, {SHARED // 4}; @%p0 bra fill;\n"
    "fence.proxy.async; bar.sync 0;\n"
)
COMMIT = (
    "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];"
    "wait: mbarrier.try_wait.parity.shared.b64 %over, [done], 0; @!%over bra wait;"
    "tcgen05.fence::after_thread_sync;\n"
)
RELEASE = (
    "bar.sync 0; @!%warp0 bra released; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %ta, 512;"
    "released:"
)


def columns(array, first, count, *, store, thread="%t"):
    """Return PTX that moves `count` columns from `first` on: a lane's words follow in %a`array`."""
    names = [f"%w{i}" for i in range(8)]
    vector = "{" + ", ".join(names) + "}"
    text = f"mad.wide.u32 %l20, {thread}, {4 * count}, %a{array};"
    for c in range(0, count, 8):
        address = f"[%tl + {first + c}]"
        memory = [f".global.b32 [%l20+{4 * (c + i)}], {name};" for i, name in enumerate(names)]
        if store:
            text += "".join(
                f"ld.global.b32 {name}, [%l20+{4 * (c + i)}];" for i, name in enumerate(names)
            )
            text += f"tcgen05.st.sync.aligned.32x32b.x8.b32 {address}, {vector};"
        else:
            text += f"tcgen05.ld.sync.aligned.32x32b.x8.b32 {vector}, {address};"
            text += "tcgen05.wait::ld.sync.aligned;"
            text += "".join("st" + line for line in memory)
    return text + ("tcgen05.wait::st.sync.aligned;" if store else "")


def random_factor(rows, kind, rng):
    """Return rows of 32 bytes: small numbers, whose sums no order changes."""
    bits = plain.BITS[kind]
    if kind in ("f16", "tf32", "bf16"):
        small = rng.integers(-4, 5, (rows, 256 // bits)).astype(np.float32)
        if kind == "f16":
            small = small.astype(np.float16)
        if kind == "bf16":
            small = (small.view(np.uint32) >> 16).astype(np.uint16)
        return [row.tobytes() for row in small]
    if bits == 8 and kind in plain.SMALL:
        _, fraction_bits, bias = plain.SMALL[kind]
        size = bias + rng.integers(-2, 3, (rows, 32))
        code = size << fraction_bits | rng.integers(0, 2, (rows, 32)) << fraction_bits - 1
        return [
            row.tobytes() for row in (code | rng.integers(0, 2, (rows, 32)) << 7).astype(np.uint8)
        ]
    raw = rng.integers(0, 256, (rows, 32), dtype=np.uint8)
    return [row.tobytes() for row in raw]


def multiply(
    kind, types, m, n, *, swizzle=0, columns_of=(0, 0), d=None, negate=(0, 0), stationary=False,
    in_tensor=False, lane=0, seed=0, extra="", saturate=0, packing="padded",
):  # fmt: skip
    """Run one product; return what D must be, what it is, and the trace."""
    rng = np.random.default_rng(seed)
    kind_d, kind_a, kind_b = types
    a = random_factor(m, kind_a, rng)
    b = random_factor(n, kind_b, rng)
    memory = np.zeros(SHARED, np.uint8)
    of = []
    for rows, name, start, across in (
        (a, kind_a, 0, columns_of[0]),
        (b, kind_b, 32768, columns_of[1]),
    ):
        raw = [np.frombuffer(row, np.uint8) for row in rows]
        if across:
            of.append(plain.place_columns(memory, raw, start, swizzle, plain.BITS[name] // 8))
        else:
            of.append(plain.place_rows(memory, raw, start, 0 if swizzle == "atoms" else swizzle))
    fold = {64: 2, 32: 4}.get(m, 1) if stationary else 1
    wide = n // fold
    before = rng.integers(-9, 10, (128, wide))
    kind_of = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[kind_d]
    words = before.astype(kind_of).view(np.uint16 if kind_d == "f16" else np.uint32)
    words = words.astype(np.uint32)
    text = f".reg .b32 {', '.join(f'%w{i}' for i in range(8))};"
    text += ALLOCATE + FILL + columns(0, 0, wide, store=True)
    arrays = [words.reshape(-1), memory.view(np.uint32)]
    first = "%l4"
    text += f"mov.b64 %l4, {of[0]}; mov.b64 %l5, {of[1]};"
    if in_tensor:
        lanes = np.zeros((128, 32), np.uint8)
        for row in range(m):
            where = plain.place_of_sum(m, n, row, 0, stationary)[0] + lane
            lanes[where] = np.frombuffer(a[row], np.uint8)
        arrays.append(lanes.view(np.uint32).reshape(-1))
        text += columns(2, 256, 8, store=True) + "add.u32 %r21, %td, 256;"
        first = "[%r21]"
        text = text.replace("add.u32 %r21", f"add.u32 %td, %ta, {lane << 16}; add.u32 %r21")
    bits = plain.instruction(m, n, *types, negate=negate, transpose=columns_of, saturate=saturate)
    text += f"tcgen05.fence::before_thread_sync; bar.sync 0; add.u32 %td, %ta, {lane << 16};"
    text += f"mov.b32 %r20, {bits}; setp.ne.u32 %p2, {int(d is None)}, 1;"
    opcode = f"tcgen05.mma{'.ws' if stationary else ''}.cta_group::1.kind::{kind}"
    text += f"@%first {opcode} [%td], {first}, %l5, %r20, %p2{extra};" + COMMIT
    text += columns(0, 0, wide, store=False) + RELEASE
    (out, *_), trace = run(text, *arrays, block=128, outside=OUTSIDE)
    got = out.reshape(128, wide)
    packing_of_a = "bytes" if in_tensor else packing
    left, right = plain.values(a, kind_a, packing_of_a), plain.values(b, kind_b, packing)
    product = (-left if negate[0] else left) @ (-right if negate[1] else right).T
    expected = words.copy()
    for row in range(m):
        for column in range(n):
            where = plain.place_of_sum(m, n, row, column, stationary)
            where = where[0] + lane, where[1]
            total = product[row, column] + (0 if d is None else d * before[where])
            if kind_d == "s32":
                expected[where] = np.int64(total) & 0xFFFFFFFF
            else:
                bits = kind_of(total).view(np.uint16 if kind_d == "f16" else np.uint32)
                expected[where] = bits
    return got, expected, trace


def check(*arguments, **options):
    got, expected, trace = multiply(*arguments, **options)
    # Zeros of either sign are as good.
    np.testing.assert_array_equal(got, np.where(expected == 0x80000000, 0, expected))
    return trace


KINDS = {
    "f16": [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16")],
    "tf32": [("f32", "tf32", "tf32")],
    "i8": [("s32", "s8", "u8"), ("s32", "u8", "s8")],
    "f8f6f4": [("f32", "e4m3", "e5m2"), ("f16", "e5m2", "e4m3"), ("f32", "e2m3", "e3m2"),
               ("f32", "e2m1", "e4m3"), ("f32", "e3m2", "e2m1")],
}  # fmt: skip
ALL = [(kind, types) for kind, list_of in KINDS.items() for types in list_of]


@pytest.mark.parametrize(
    ("kind", "types"), ALL, ids=lambda v: v if isinstance(v, str) else ".".join(v)
)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_types_and_swizzles(kind, types, swizzle):
    check(kind, types, 128, 32, swizzle=swizzle, d=1, seed=swizzle)


@pytest.mark.parametrize("of", [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize(
    ("kind", "types", "swizzle"),
    [("f16", ("f32", "f16", "f16"), s) for s in (0, 32, 64, 128)]
    + [("f8f6f4", ("f32", "e4m3", "e5m2"), s) for s in (0, 32, 64, 128)]
    + [("i8", ("s32", "s8", "s8"), 128), ("tf32", ("f32", "tf32", "tf32"), "atoms")],
)
def test_factors_by_columns(kind, types, swizzle, of):
    if swizzle == "atoms" and of != (1, 1):
        return  # the other factor has another swizzle
    check(kind, types, 128, 64, swizzle=swizzle, columns_of=of, seed=3)


@pytest.mark.parametrize(
    ("m", "n", "lane"), [(64, 8, 0), (64, 24, 16), (64, 256, 0), (128, 256, 0), (128, 16, 0)]
)
def test_shapes(m, n, lane):
    trace = check("f16", ("f32", "f16", "f16"), m, n, lane=lane, d=1, swizzle=128)
    rows = trace.instructions
    assert list(rows[rows.op_class == "tensor"].opcode) == [
        "tcgen05.mma.cta_group::1.kind::f16",  # of warps without the thread that issues it
        f"tcgen05.mma.cta_group::1.kind::f16.m{m}n{n}k16.f32.f16.f16",
    ]
    assert access_counts(trace, "tcgen05.operands.shared") == [-(-(m + n) // 4)]


@pytest.mark.parametrize(("m", "n"), [(32, 64), (32, 128), (64, 64), (64, 256), (128, 128)])
def test_stationary_weights(m, n):
    check("f16", ("f32", "bf16", "bf16"), m, n, stationary=True, d=1)


@pytest.mark.parametrize(
    ("kind", "types"), ALL, ids=lambda v: v if isinstance(v, str) else ".".join(v)
)
@pytest.mark.parametrize(("m", "lane"), [(128, 0), (64, 0), (64, 16)])
def test_a_in_tensor_memory(kind, types, m, lane):
    check(kind, types, m, 32, in_tensor=True, lane=lane, d=1)


@pytest.mark.parametrize("negate", [(1, 0), (0, 1), (1, 1)])
def test_signs(negate):
    check("f16", ("f32", "f16", "f16"), 128, 16, negate=negate, d=1)


def test_a_scale_of_d():
    check("f16", ("f32", "f16", "f16"), 128, 16, d=0.25, extra=", 2")
    check("tf32", ("f32", "tf32", "tf32"), 64, 16, d=2.0**-15, extra=", 15")


def test_saturation():
    check("i8", ("s32", "s8", "s8"), 128, 16, d=1, saturate=1)


@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
@pytest.mark.parametrize("packed", [False, True])
def test_transfers(shape, packed):
    per_unit = {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    rng = np.random.default_rng(5)
    for repeats in (1, 2, 4, 8, 16, 32, 64, 128):
        count = per_unit * repeats
        if count > 128:
            continue
        where = plain.registers_of(shape, repeats)
        upper = 16 if shape != "32x32b" and repeats % 4 else 0
        names = [f"%w{i}" for i in range(count)]
        vector = "{" + ", ".join(names) + "}"
        contents = rng.integers(0, 2**32, (128, 512), dtype=np.uint32)
        text = f".reg .b32 {', '.join(names)}; .reg .b32 {', '.join(f'%v{i}' for i in range(8))};"
        text += ALLOCATE + columns(1, 0, 512, store=True).replace("%w", "%v")
        text += f"add.u32 %r5, %tl, {upper << 16}; mad.wide.u32 %l21, %t, {4 * count}, %a0;"
        kind = ".pack::16b" if packed else ""
        text += f"tcgen05.ld.sync.aligned.{shape}.x{repeats}{kind}.b32 {vector}, [%r5];"
        text += "tcgen05.wait::ld.sync.aligned;"
        text += "".join(f"st.global.b32 [%l21+{4 * i}], {w};" for i, w in enumerate(names))
        # And back, one more in each register.
        text += "".join(f"add.u32 {w}, {w}, 1;" for w in names)
        kind = ".unpack::16b" if packed else ""
        text += f"tcgen05.st.sync.aligned.{shape}.x{repeats}{kind}.b32 [%r5], {vector};"
        text += "tcgen05.wait::st.sync.aligned;"
        text += columns(2, 0, 512, store=False).replace("%w", "%v") + RELEASE
        arrays = [
            np.zeros(128 * count, np.uint32),
            contents.reshape(-1),
            np.zeros(128 * 512, np.uint32),
        ]
        (loaded, _, stored), _ = run(text, *arrays, block=128, outside=OUTSIDE)
        loaded, stored = loaded.reshape(128, count), stored.reshape(128, 512)
        for warp in range(4):
            for (lane, register), (row, column) in where.items():
                line = 32 * warp + upper + row
                if packed:
                    pair = contents[line, 2 * column : 2 * column + 2]
                    word = pair[0] & 0xFFFF | (pair[1] & 0xFFFF) << 16
                else:
                    word = contents[line, column]
                assert loaded[32 * warp + lane, register] == word, (repeats, lane, register)
                after = (int(word) + 1) % 2**32
                if packed:
                    assert list(stored[line, 2 * column : 2 * column + 2]) == [
                        after & 0xFFFF,
                        after >> 16,
                    ]
                else:
                    assert stored[line, column] == after


#: The kinds of copies to tensor memory, and (row, lane) of what each of them moves.
COPIES = {
    "128x256b": [(row, row) for row in range(128)],
    "128x128b": [(row, row) for row in range(128)],
    "4x256b": [(row, 32 * row) for row in range(4)],
    "64x128b.warpx2::02_13": [(lane % 64, lane) for lane in range(128)],
    "64x128b.warpx2::01_23": [(lane // 64 * 32 + lane % 32, lane) for lane in range(128)],
    "32x128b.warpx4": [(lane % 32, lane) for lane in range(128)],
}


@pytest.mark.parametrize("shape", COPIES)
@pytest.mark.parametrize("swizzle", [0, 128])
@pytest.mark.parametrize("numbers", ["", "b8x16.b4x16_p64", "b8x16.b6x16_p32"])
def test_copies_from_shared_memory(shape, swizzle, numbers):
    rng = np.random.default_rng(2)
    rows = [rng.integers(0, 256, 32, dtype=np.uint8) for _ in range(128)]
    memory = np.zeros(SHARED, np.uint8)
    source = plain.place_rows(memory, rows, 0, swizzle)
    before = rng.integers(0, 2**32, (128, 8), dtype=np.uint32)
    text = f".reg .b32 {', '.join(f'%w{i}' for i in range(8))};" + ALLOCATE + FILL
    text += columns(0, 0, 8, store=True) + "tcgen05.fence::before_thread_sync; bar.sync 0;"
    opcode = f"tcgen05.cp.cta_group::1.{shape}" + (f".{numbers}" if numbers else "")
    text += f"mov.b64 %l4, {source}; @%first {opcode} [%ta], %l4;" + COMMIT
    text += columns(0, 0, 8, store=False) + RELEASE
    (got, *_), _ = run(text, before.reshape(-1), memory.view(np.uint32), block=128, outside=OUTSIDE)
    expected = before.view(np.uint8).copy()
    size = 32 if "256b" in shape else 16
    for row, lane in COPIES[shape]:
        for at_byte in range(0, size, 16):
            piece = rows[row][at_byte : at_byte + 16]
            if numbers:
                count = 4 if "b4" in numbers else 6
                bits = np.unpackbits(piece, bitorder="little")[: 16 * count].reshape(16, count)
                piece = bits @ (1 << np.arange(count)) << (2 if count == 4 else 0)
            expected[lane, at_byte : at_byte + 16] = piece
    np.testing.assert_array_equal(got.view(np.uint8).reshape(128, 32), expected)


def test_shift():
    before = np.random.default_rng(1).integers(0, 2**32, (128, 16), dtype=np.uint32)
    text = f".reg .b32 {', '.join(f'%w{i}' for i in range(8))};" + ALLOCATE
    text += columns(0, 0, 16, store=True) + "bar.sync 0; add.u32 %r5, %ta, 0x200008;"
    text += "@%first tcgen05.shift.cta_group::1.down [%r5];" + COMMIT
    text += columns(0, 0, 16, store=False) + RELEASE
    (got,), _ = run(text, before.reshape(-1), block=128, outside=OUTSIDE)
    expected = before.copy()
    expected[32:63, 8:] = before[33:64, 8:]
    np.testing.assert_array_equal(got.reshape(128, 16), expected)


def place_scales(scales):
    """Return [lane][column] of words with so many scales of each row: lane r % 32, column r // 32."""
    rows, count = scales.shape
    words = np.zeros((128, 8), np.uint32)
    for row in range(rows):
        word = sum(int(scales[row, i]) << 8 * i for i in range(count))
        for quarter in range(4):
            words[32 * quarter + row % 32, row // 32] = word
    return words


@pytest.mark.parametrize(
    ("kind", "word", "types", "per_scale", "exponents"),
    [
        ("mxf8f6f4", "scale_vec::1X", ("e4m3", "e5m2"), 32, True),
        ("mxf8f6f4", "block32", ("e2m1", "e3m2"), 32, True),
        ("mxf4", "scale_vec::2X", ("e2m1", "e2m1"), 32, True),
        ("mxf4nvf4", "scale_vec::4X", ("e2m1", "e2m1"), 16, False),
        ("mxf4nvf4", "block16", ("e2m1", "e2m1"), 16, True),
        ("mxf4nvf4", "block32", ("e2m1", "e2m1"), 32, True),
    ],
)
@pytest.mark.parametrize("n", [8, 40, 256])
def test_block_scaled_products(kind, word, types, per_scale, exponents, n):
    rng = np.random.default_rng(n)
    dense = kind.startswith("mxf4")
    packing = "dense" if dense else "padded"
    k = 64 if dense else 32
    count = k // per_scale
    first_bytes = [4 // count - 1, 0] if count < 4 else [0, 0]
    first_bytes = tuple(count * b for b in first_bytes)
    a, b = random_factor(128, types[0], rng), random_factor(n, types[1], rng)
    memory = np.zeros(SHARED, np.uint8)
    raw = [[np.frombuffer(row, np.uint8) for row in rows] for rows in (a, b)]
    of = [plain.place_rows(memory, raw[0], 0, 128), plain.place_rows(memory, raw[1], 32768, 128)]
    low, high = (125, 130) if exponents else (0x30, 0x40)  # 1/4 to 4, or 1/2 to 2
    scales = [rng.integers(low, high, (rows, 4)) for rows in (128, n)]
    text = f".reg .b32 {', '.join(f'%w{i}' for i in range(8))};" + ALLOCATE + FILL
    text += columns(2, 256, 8, store=True) + columns(3, 272, 8, store=True)
    bits = plain.scaled_instruction(
        n, *types, dense=dense, exponents=exponents, bytes_of=first_bytes
    )
    text += "tcgen05.fence::before_thread_sync; bar.sync 0; add.u32 %r20, %ta, 256;"
    text += f"add.u32 %r21, %ta, 272; mov.b32 %r22, {bits}; setp.ne.u32 %p2, 0, 0;"
    text += f"mov.b64 %l4, {of[0]}; mov.b64 %l5, {of[1]};"
    opcode = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.{word}"
    text += f"@%first {opcode} [%ta], %l4, %l5, %r22, [%r20], [%r21], %p2;" + COMMIT
    text += columns(0, 0, n, store=False) + RELEASE
    arrays = [np.zeros(128 * n, np.uint32), memory.view(np.uint32)]
    arrays += [place_scales(s).reshape(-1) for s in scales]
    (out, *_), trace = run(text, *arrays, block=128, outside=OUTSIDE)
    factors = []
    for rows, name, of_rows, first in zip((a, b), types, scales, first_bytes, strict=True):
        numbers = plain.values(rows, name, packing)
        chosen = of_rows[:, first : first + count]
        of_ue4m3 = (1 + (chosen & 7) / 8) * 2.0 ** ((chosen >> 3) - 7)
        size = 2.0 ** (chosen - 127) if exponents else of_ue4m3
        factors.append(numbers * np.repeat(size, per_scale, axis=1))
    expected = (factors[0] @ factors[1].T).astype(np.float32)
    got = out.view(np.float32).reshape(128, n)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    if exponents:
        np.testing.assert_array_equal(got, expected)
    assert any(trace.instructions.opcode.str.contains(rf"m128n{n}k{k}\.f32|128x{n}x{k}\.F32"))


def test_mistakes():
    declare = {"outside": OUTSIDE, "block": 128}
    start = ".reg .b32 %w0;" + ALLOCATE
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w0}, "
    assert "of tensor memory; the address names lane 0" in message_of(
        start + load + "[%ta];" + RELEASE, **declare
    )
    outside = message_of(start + load + "[%tl+512];" + RELEASE, **declare)
    assert "columns 512-512" in outside
    assert "has allocated columns 0-511" in outside
    assert "a power of two from 32 to 512" in message_of(
        start.replace("[found], 512", "[found], 48"), **declare
    )
    assert "after tcgen05.relinquish_alloc_permit" in message_of(
        start + "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [found], 32;", **declare
    )
    product = "@%first tcgen05.mma.cta_group::1.kind::f16 [%ta], %l4, %l4, %r20, %p2;"
    ready = start + "mov.b64 %l4, 0; setp.eq.u32 %p2, 0, 1;"
    wrong = plain.instruction(96, 16, "f32", "f16", "f16")
    assert "M = 96 and N = 16" in message_of(ready + f"mov.b32 %r20, {wrong};" + product, **declare)
    for text, reason in {
        "tcgen05.mma.ws.cta_group::2.kind::f16 [%r0], %l4, %l4, %r20, %p2;": "have no .ws",
        "tcgen05.mma.cta_group::2.kind::f16 [%r0], %l4, %l4, %r20, {%r0, %r0, %r0, %r0}, %p2;": (
            "4 words instead of 8"
        ),
        "tcgen05.mma.sp.cta_group::1.kind::f16 [%r0], %l4, %l4, [%r1], %r20, %p2;": "sparse",
        "tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r0}, [%r1];": "1 registers instead of 2",
        "tcgen05.cp.cta_group::1.64x128b [%r0], %l0;": "or not the warps that get it",
    }.items():
        assert reason in message_of(text)


#: What a kernel of pairs of blocks begins with; thread 0 of one block of each pair issues.
PAIR = (
    ".reg .b32 %ta, %tl, %td, %rank, %w<8>; .reg .pred %first, %leads, %warp0, %over;"
    "mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %first, %t, 0; and.b32 %r0, %rank, 1;"
    "setp.eq.and.u32 %leads, %r0, ISSUER, %first; setp.lt.u32 %warp0, %t, 32;"
    "@!%warp0 bra allocated;"
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [found], 512;"
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;"
    "allocated: @%first mbarrier.init.shared.b64 [done], 1; fence.proxy.async; bar.sync 0;"
    "ld.shared.b32 %ta, [found]; and.b32 %tl, %t, 0x60; shl.b32 %tl, %tl, 16;"
    "add.u32 %tl, %tl, %ta;\n"
)
CLUSTER = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
#: The words of the block from the array %a1 into its shared memory.
FILL_PAIR = (
    f"mul.lo.u32 %r3, %i0, {SHARED // 4}; mov.u32 %r0, %t; mov.u32 %r9, memory;"
    "\nfill: shl.b32 %r1, %r0, 2; add.u32 %r4, %r0, %r3;"
    + at("%l0", "%a1", "%r4", 4)
    + "ld.global.u32 %r2, [%l0]; add.u32 %r1, %r1, %r9; st.shared.u32 [%r1], %r2;"
    f"add.u32 %r0, %r0, 128; setp.lt.u32 %p0, %r0, {SHARED // 4}; @%p0 bra fill;\n"
    "fence.proxy.async; tcgen05.fence::before_thread_sync;" + CLUSTER
)
#: Arrives in both blocks of the pair, at a barrier whose address has a rank.
COMMIT_PAIR = (
    "and.b32 %r0, %rank, 0xe; mov.b32 %r1, 3; shl.b32 %r1, %r1, %r0; cvt.u16.u32 %h0, %r1;"
    "mov.u32 %r2, done; @%leads tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
    ".multicast::cluster.b64 [%r2], %h0;"
    "wait: mbarrier.try_wait.parity.shared.b64 %over, [%r2], 0; @!%over bra wait;"
    "tcgen05.fence::after_thread_sync;\n"
)
RELEASE_PAIR = (
    CLUSTER + "@!%warp0 bra released;"
    "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %ta, 512; released:"
)


def run_pairs(text, *arrays, blocks=2, issuer=0, **options):
    text = text.replace("ISSUER", str(issuer))
    return run(text, *arrays, grid=blocks, block=128, cluster=blocks, outside=OUTSIDE, **options)


def place_in_pair(memories, rows, start, swizzle, element=0):
    """Put half of the rows of a factor into each memory; return their descriptor."""
    half = len(rows) // 2
    of = set()
    for block, memory in enumerate(memories):
        raw = [np.frombuffer(row, np.uint8) for row in rows[half * block : half * (block + 1)]]
        if element:
            of.add(plain.place_columns(memory, raw, start, swizzle, element))
        else:
            of.add(plain.place_rows(memory, raw, start, swizzle))
    assert len(of) == 1
    return of.pop()


def check_pair(
    kind, types, m, n, *, swizzle=128, columns_of=(0, 0), d=None, in_tensor=False, seed=0,
    blocks=2, issuer=0, disabled=None, extra="",
):  # fmt: skip
    """Hold a product of each pair of a cluster against the plain definition; return the trace."""
    rng = np.random.default_rng(seed)
    kind_d, kind_a, kind_b = types
    kind_of = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[kind_d]
    wide = n if m == 256 else n // 2
    memories = np.zeros((blocks, SHARED), np.uint8)
    before = rng.integers(-9, 10, (blocks, 128, wide))
    words = before.astype(kind_of).view(np.uint16 if kind_d == "f16" else np.uint32)
    words = words.astype(np.uint32)
    expected = words.copy()
    lanes = np.zeros((blocks, 128, 32), np.uint8)
    of = set()
    for pair in range(0, blocks, 2):
        a, b = random_factor(m, kind_a, rng), random_factor(n, kind_b, rng)
        both = memories[pair : pair + 2]
        of.add(
            tuple(
                place_in_pair(both, rows, start, swizzle, plain.BITS[name] // 8 if across else 0)
                for rows, name, start, across in (
                    (a, kind_a, 0, columns_of[0]),
                    (b, kind_b, 32768, columns_of[1]),
                )
            )
        )
        for row in range(m):
            block, line = divmod(row, m // 2)
            for lane in range(line, 128, m // 2):
                lanes[pair + block, lane] = np.frombuffer(a[row], np.uint8)
        product = plain.values(a, kind_a, "bytes" if in_tensor else "padded")
        product = product @ plain.values(b, kind_b).T
        for row in range(m):
            for column in range(n):
                block, lane, place = plain.place_of_sum_of_pair(m, n, row, column)
                where = pair + block, lane, place
                if disabled is not None and disabled[4 * block + lane // 32] >> lane % 32 & 1:
                    continue
                total = product[row, column] + (0 if d is None else d * before[where])
                if kind_d == "s32":
                    expected[where] = np.int64(total) & 0xFFFFFFFF
                else:
                    bits = np.uint16 if kind_d == "f16" else np.uint32
                    expected[where] = kind_of(total).view(bits)
    assert len(of) == 1
    of_a, of_b = of.pop()
    text = PAIR + columns(0, 0, wide, store=True, thread="%g")
    arrays = [words.reshape(-1), memories.reshape(-1).view(np.uint32)]
    first = "%l4"
    if in_tensor:
        arrays.append(lanes.reshape(-1).view(np.uint32))
        text += columns(2, 256, 8, store=True, thread="%g") + "add.u32 %r21, %ta, 256;"
        first = "[%r21]"
    bits = plain.instruction(m, n, *types, transpose=columns_of)
    text += FILL_PAIR + f"mov.b64 %l4, {of_a}; mov.b64 %l5, {of_b}; mov.b32 %r20, {bits};"
    text += f"setp.ne.u32 %p2, {int(d is None)}, 1;"
    mask = ""
    if disabled is not None:
        text += "".join(f"mov.b32 %r{22 + i}, {word};" for i, word in enumerate(disabled))
        mask = ", {" + ", ".join(f"%r{22 + i}" for i in range(8)) + "}"
    text += f"@%leads tcgen05.mma.cta_group::2.kind::{kind} [%ta], {first}, %l5, %r20{mask}, %p2"
    text += f"{extra};" + COMMIT_PAIR + columns(0, 0, wide, store=False, thread="%g") + RELEASE_PAIR
    (out, *_), trace = run_pairs(text, *arrays, blocks=blocks, issuer=issuer)
    # Zeros of either sign are as good.
    expected = np.where(expected == 0x80000000, 0, expected)
    np.testing.assert_array_equal(out.reshape(blocks, 128, wide), expected)
    return trace


@pytest.mark.parametrize(
    ("kind", "types"), ALL, ids=lambda v: v if isinstance(v, str) else ".".join(v)
)
@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize("in_tensor", [False, True])
def test_products_of_pairs(kind, types, m, in_tensor):
    check_pair(kind, types, m, 32, d=1, in_tensor=in_tensor, seed=m)


@pytest.mark.parametrize(("m", "n"), [(128, 16), (128, 240), (256, 16), (256, 80), (256, 256)])
@pytest.mark.parametrize("issuer", [0, 1])
def test_shapes_of_pairs(m, n, issuer):
    trace = check_pair("f16", ("f32", "f16", "f16"), m, n, d=1, swizzle=0, issuer=issuer)
    # The SM of each block does its half.
    opcode = f"tcgen05.mma.cta_group::2.kind::f16.m{m}n{n}k16.f32.f16.f16"
    row = list(trace.instructions.opcode).index(opcode)
    for block in range(2):
        assert np.count_nonzero(trace.warp(block, 0)["instruction"] == row) == 1
    wavefronts = -(-(m + n) // 8)
    assert access_counts(trace, "tcgen05.operands.shared") == [wavefronts, wavefronts]


@pytest.mark.parametrize("of", [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_factors_of_pairs_by_columns(of, swizzle):
    check_pair("f16", ("f32", "f16", "f16"), 256, 128, swizzle=swizzle, columns_of=of)


def test_several_pairs_and_lanes_of_pairs():
    disabled = np.random.default_rng(1).integers(0, 2**32, 8, dtype=np.uint32).tolist()
    for m in (128, 256):
        check_pair("tf32", ("f32", "tf32", "tf32"), m, 64, blocks=4, d=0.25, extra=", 2",
                   disabled=disabled, issuer=1)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "word", "types", "per_scale", "exponents"),
    [
        ("mxf8f6f4", "scale_vec::1X", ("e4m3", "e5m2"), 32, True),
        ("mxf4", "block32", ("e2m1", "e2m1"), 32, True),
        ("mxf4nvf4", "block16", ("e2m1", "e2m1"), 16, False),
    ],
)
@pytest.mark.parametrize(("m", "n"), [(256, 16), (256, 208), (128, 128), (128, 240)])
def test_block_scaled_products_of_pairs(kind, word, types, per_scale, exponents, m, n):
    rng = np.random.default_rng(n)
    dense = kind.startswith("mxf4")
    packing = "dense" if dense else "padded"
    k = 64 if dense else 32
    count = k // per_scale
    a, b = random_factor(m, types[0], rng), random_factor(n, types[1], rng)
    memories = np.zeros((2, SHARED), np.uint8)
    of = [place_in_pair(memories, a, 0, 128), place_in_pair(memories, b, 32768, 128)]
    low, high = (125, 130) if exponents else (0x30, 0x40)
    scales = [rng.integers(low, high, (rows, 4)) for rows in (m, n)]
    of_a = [place_scales(half) for half in np.split(scales[0], 2)]
    if m == 256:
        of_b = place_scales(scales[1])
    else:  # a half of the columns in each half of the lanes
        lower, upper = (place_scales(half) for half in np.split(scales[1], 2))
        of_b = np.concatenate([lower[:64], upper[64:]])
    wide = n if m == 256 else n // 2
    text = PAIR + columns(2, 256, 8, store=True, thread="%g")
    text += columns(3, 272, 8, store=True, thread="%g") + FILL_PAIR
    bits = plain.scaled_instruction(n, *types, dense=dense, exponents=exponents, m=m)
    text += "add.u32 %r20, %ta, 256; add.u32 %r21, %ta, 272; setp.ne.u32 %p2, 0, 0;"
    text += f"mov.b32 %r22, {bits}; mov.b64 %l4, {of[0]}; mov.b64 %l5, {of[1]};"
    opcode = f"tcgen05.mma.cta_group::2.kind::{kind}.block_scale.{word}"
    text += f"@%leads {opcode} [%ta], %l4, %l5, %r22, [%r20], [%r21], %p2;" + COMMIT_PAIR
    text += columns(0, 0, wide, store=False, thread="%g") + RELEASE_PAIR
    arrays = [np.zeros(256 * wide, np.uint32), memories.reshape(-1).view(np.uint32)]
    arrays += [np.concatenate(of_a).reshape(-1), np.concatenate([of_b, of_b]).reshape(-1)]
    (out, *_), _ = run_pairs(text, *arrays)
    factors = []
    for rows, name, of_rows in zip((a, b), types, scales, strict=True):
        chosen = of_rows[:, :count]
        of_ue4m3 = (1 + (chosen & 7) / 8) * 2.0 ** ((chosen >> 3) - 7)
        size = 2.0 ** (chosen - 127) if exponents else of_ue4m3
        factors.append(plain.values(rows, name, packing) * np.repeat(size, per_scale, axis=1))
    product = (factors[0] @ factors[1].T).astype(np.float32)
    found = out.view(np.float32).reshape(2, 128, wide)
    got = np.empty_like(product)
    for row in range(m):
        for column in range(n):
            got[row, column] = found[plain.place_of_sum_of_pair(m, n, row, column)]
    np.testing.assert_allclose(got, product, rtol=1e-6, atol=1e-6 * np.abs(product).max())


@pytest.mark.parametrize("issuer", [0, 1])
def test_copies_and_shifts_of_pairs(issuer):
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 256, (2, 128, 32), dtype=np.uint8)
    memories = np.zeros((2, SHARED), np.uint8)
    source = {plain.place_rows(memories[i], list(rows[i]), 0, 128) for i in range(2)}.pop()
    text = PAIR + FILL_PAIR + f"mov.b64 %l4, {source}; add.u32 %r5, %ta, 0x200000;"
    text += "@%leads tcgen05.cp.cta_group::2.128x256b [%ta], %l4;"
    text += "@%leads tcgen05.shift.cta_group::2.down [%r5];" + COMMIT_PAIR
    text += columns(0, 0, 8, store=False, thread="%g") + RELEASE_PAIR
    arrays = np.zeros(2 * 128 * 8, np.uint32), memories.reshape(-1).view(np.uint32)
    (out, _), _ = run_pairs(text, *arrays, issuer=issuer)
    expected = rows.copy()
    expected[:, 32:63] = rows[:, 33:64]
    np.testing.assert_array_equal(out.view(np.uint8).reshape(2, 128, 32), expected)


@pytest.mark.parametrize("blocks", [2, 4])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("to_many", [False, True])
def test_copies_of_tiles_signal_blocks_of_pairs(blocks, masked, to_many):
    """The block is that of the barrier's address: the even one where bit 24 is cleared."""
    device = ws.cuda.Device(0.25)
    values = np.arange(32 * blocks, dtype=np.uint32).reshape(blocks, 32)
    sender = 1 if to_many else None  # one block sends to all, or each to itself
    expected = np.repeat(values[1:2], blocks, 0) if to_many else values
    bar = "and.b32 %r3, %r2, 0xfeffffff;" if masked else "mov.b32 %r3, %r2;"
    opcode = "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile"
    opcode += ".mbarrier::complete_tx::bytes" + (".multicast::cluster" if to_many else "")
    mask = ", %h0" if to_many else ""
    # Tiles that come to the two blocks of a pair count where their barrier is.
    if masked:
        waits, tiles = "setp.eq.u32 %p3, %r7, 0;", 2
    elif to_many:
        waits, tiles = "setp.eq.u32 %p3, %r7, 1;", 2
    else:
        waits, tiles = "setp.ne.u32 %p3, %r7, 2;", 1
    sends = f"setp.eq.and.u32 %p0, %r6, {sender}, %p0;" if to_many else ""
    body = (
        "mov.u32 %r2, bar; mov.u32 %r1, data; setp.eq.u32 %p0, %t, 0; mov.u32 %r6, %cluster_ctarank;"
        f"and.b32 %r7, %r6, 1; @%p0 mbarrier.init.shared::cta.b64 [%r2], 1; {waits}"
        f"and.pred %p3, %p3, %p0; @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {128 * tiles};"
        f"{CLUSTER} mov.b64 %l0, map; cvta.param.u64 %l0, %l0; {bar} mov.b16 %h0, {2**blocks - 1};"
        f"{sends} @%p0 {opcode} [%r1], [%l0, {{0, %r6}}], [%r3]{mask};"
        "@!%p3 bra over; wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;"
        f"@!%p1 bra wait; over: {CLUSTER}"
        + at("%l1", "%a0", "%g", 4)
        + "shl.b32 %r8, %t, 2; add.u32 %r8, %r8, %r1; ld.shared.u32 %r9, [%r8]; st.global.u32 [%l1], %r9;"
    )
    outside = ".shared .align 128 .b8 data[128]; .shared .align 8 .b64 bar;"
    module = compile_body(
        body, 1, outside=outside, device=device, parameters=".param .align 64 .b8 map[128]"
    )
    out, held = device.zeros(32 * blocks, np.uint32), device.array(values)
    described = ws.cuda.tensor_map(held, (1, 32))
    module.kernel("k").launch(blocks, 32, out, described, cluster=blocks)
    np.testing.assert_array_equal(out.to_host().reshape(blocks, 32), expected)


def test_mistakes_of_pairs():
    declare = {"outside": OUTSIDE, "block": 128, "grid": 2}
    alone = message_of(PAIR.replace("ISSUER", "0"), **declare)
    assert "clusters of the launch have 1 block" in alone
    declare["cluster"] = 2
    other = PAIR.replace("ISSUER", "0").replace("[found], 512", "[found], %r1")
    other = other.replace("@!%warp0 bra", "shl.b32 %r1, 32, %rank; @!%warp0 bra", 1)
    assert "32 and 64 columns" in message_of(other, **declare) or "64 and 32 columns" in message_of(
        other, **declare
    )
    lonely = (
        ".reg .pred %even; mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %even, %r0, 0;"
        "@!%even bra over; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [found], 64;"
        f"over: {CLUSTER}"
    )
    declare["block"] = 32
    assert "tcgen05.alloc of 64 columns of tensor memory" in message_of(lonely, **declare)
    gone = lonely.replace(f"over: {CLUSTER}", "over:")
    assert "of rank 1 in the cluster, has ended" in message_of(gone, **declare)


#: D = A * B^T of f16, 128 x 64 of D a block: factors lie in blocks of 8 rows by 16 bytes.
GEMM = r"""
#include <cuda_fp16.h>
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned long long described(const void* p, unsigned rows) {
  // Blocks of 8 rows are 128 bytes apart, the next 16 bytes of all rows behind the last of them.
  return (shared_address(p) >> 4 & 0x3fffull) | (unsigned long long)rows << 16 | 8ull << 32 |
         1ull << 46;
}
extern "C" __global__ void gemm(const half* a, const half* b, float* d, int n, int k) {
  __shared__ alignas(128) half as[128 * 64], bs[64 * 64];
  __shared__ unsigned long long done;
  __shared__ unsigned found;
  const int t = threadIdx.x, warp = t / 32, row = blockIdx.y * 128, column = blockIdx.x * 64;
  if (warp == 0) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;"
                 :: "r"(shared_address(&found)) : "memory");
  }
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(shared_address(&done)));
  __syncthreads();
  const unsigned tensor = *(volatile unsigned*)&found;
  const unsigned kind = 1u << 4 | 64 / 8 << 17 | 128 / 16 << 24;
  for (int k0 = 0, phase = 0; k0 < k; k0 += 64, phase ^= 1) {
    for (int i = t; i < 192 * 8; i += 128) {  // 16 bytes each
      const bool of_a = i < 128 * 8;
      const int j = of_a ? i : i - 128 * 8, r = j / 8, piece = j % 8, rows = of_a ? 128 : 64;
      const half* from = of_a ? a + (row + r) * k : b + (column + r) * k;
      *(uint4*)((of_a ? as : bs) + piece * rows * 8 + r * 8) =
          *(const uint4*)(from + k0 + 8 * piece);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      for (int step = 0; step < 4; ++step) {
        asm volatile(
            "{.reg .pred p; setp.ne.u32 p, %4, 0;"
            "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}"
            :: "r"(tensor), "l"(described(as + step * 2 * 128 * 8, 128)),
               "l"(described(bs + step * 2 * 64 * 8, 64)), "r"(kind), "r"(k0 + step)
            : "memory");
      }
      asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                   :: "r"(shared_address(&done)) : "memory");
    }
    asm volatile(
        "{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}"
        :: "r"(shared_address(&done)), "r"(phase) : "memory");
  }
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int c = 0; c < 64; c += 4) {
    unsigned w[4];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(tensor + (warp << 21) + c));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 4; ++i) d[(row + t) * n + column + c + i] = __uint_as_float(w[i]);
  }
  __syncthreads();
  if (warp == 0) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" :: "r"(tensor));
  }
}
"""


@pytest.mark.skipif(not ws.cuda.compilers(), reason="neither nvcc nor NVRTC is installed")
def test_gemm_of_cuda():
    rng = np.random.default_rng(7)
    m, n, k = 256, 128, 192
    a, b = (rng.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (m, n))
    device = ws.cuda.Device(0.25)
    kernel = ws.cuda.compile(GEMM, arch="sm_100a", device=device).kernel("gemm")
    arrays = [device.array(x) for x in (a, b)]
    d = device.zeros(m * n, np.float32)
    trace = kernel.launch((n // 64, m // 128), 128, *arrays, d, np.int32(n), np.int32(k))
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_array_equal(d.to_host().reshape(m, n), expected)
    assert any(trace.instructions.opcode.str.endswith(".m128n64k16.f32.f16.f16"))


def test_times_of_products():
    """Threads wait until the products before a commit are done, each M * N * K / rate cycles."""
    bits = plain.instruction(128, 256, "f32", "f16", "f16")
    ready = "mov.b64 %l4, 0; mov.b64 %l5, 0x8000000000; setp.ne.u32 %p2, 0, 0;"
    ready = ALLOCATE + FILL + f"mov.b32 %r20, {bits};" + ready
    product = "@%first tcgen05.mma.cta_group::1.kind::f16 [%ta], %l4, %l4, %r20, %p2;"
    gpu = ws.gpu("b200")
    cycles = {"simulate": [], "interval_simulation": []}
    for count in (2, 10):
        text = ready + product * count + COMMIT + RELEASE
        arrays = np.zeros(32, np.uint32), np.zeros(SHARED // 4, np.uint32)
        _, trace = run(text, *arrays, block=128, outside=OUTSIDE)
        cycles["simulate"].append(ws.simulate(trace, gpu).cycles)
        found = ws.predict(trace, gpu, models="interval_simulation")
        cycles["interval_simulation"].append(float(found.iloc[0].cycles))
    # 128 x 256 x 16 multiply-adds on four tensor cores of 1,024 a cycle
    for name, (few, many) in cycles.items():
        assert many - few == pytest.approx(8 * 128, rel=0.05), name


def test_times_of_products_of_pairs():
    """Each SM multiplies half of the rows, also that of the block that issues nothing."""
    bits = plain.instruction(256, 256, "f32", "f16", "f16")
    ready = PAIR + FILL_PAIR + f"mov.b32 %r20, {bits}; mov.b64 %l4, 0; setp.ne.u32 %p2, 0, 0;"
    product = "@%leads tcgen05.mma.cta_group::2.kind::f16 [%ta], %l4, %l4, %r20, %p2;"
    gpu = ws.gpu("b200")
    cycles = {"simulate": [], "interval_simulation": []}
    for count in (4, 12):
        arrays = np.zeros(32, np.uint32), np.zeros(2 * SHARED // 4, np.uint32)
        _, trace = run_pairs(ready + product * count + COMMIT_PAIR + RELEASE_PAIR, *arrays)
        assert access_counts(trace, "tcgen05.operands.shared") == [64] * 2 * count
        cycles["simulate"].append(ws.simulate(trace, gpu).cycles)
        found = ws.predict(trace, gpu, models="interval_simulation")
        cycles["interval_simulation"].append(float(found.iloc[0].cycles))
    # 128 x 256 x 16 multiply-adds of each SM on four tensor cores of 1,024 a cycle
    for name, (few, many) in cycles.items():
        assert many - few == pytest.approx(8 * 128, rel=0.05), name
