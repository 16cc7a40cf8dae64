"""Warp-wide operations, registers, calls and barriers of the PTX interpreter."""

import functools
import itertools
import operator

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import (
    BITS,
    OWN_WORD,
    Form,
    at,
    check,
    compile_body,
    per_thread,
    run,
)
from python_reference.ptx_arithmetic import signed
from warpstack.errors import InputError

# ---- warp-wide operations ----


def shuffled(mode, values, b, c):
    """Definition of shfl in the ISA: (values, predicates) of a warp."""
    results, valid = [], []
    for lane in range(32):
        segment, bound, offset = c[lane] >> 8 & 31, c[lane] & 31, b[lane] & 31
        last = (lane & segment) | (bound & ~segment & 31)
        first = lane & segment
        source = {
            "up": lane - offset,
            "down": lane + offset,
            "bfly": lane ^ offset,
            "idx": first | (offset & ~segment & 31),
        }[mode]
        fine = source >= last if mode == "up" else source <= last
        valid.append(int(fine))
        results.append(int(values[source if fine else lane]))
    return results, valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl(mode):
    rng = np.random.default_rng(1)
    warps = 64
    values = rng.integers(0, 2**32, 32 * warps, dtype=np.uint32)
    b = rng.integers(0, 40, 32 * warps, dtype=np.uint32)
    segments = [0x1F, 0x00, 0x181F, 0x1C1F, 0x1E1F, 0x1000, 0x100F, 0x1F07, 0x0807]
    c = np.repeat(np.resize(segments, warps), 32).astype(np.uint32)
    for w in range(0, warps, 2):  # half of the warps have one offset, as kernels do
        b[32 * w : 32 * w + 32] = b[32 * w]
    body = (
        at("%l0", "%a0", "%g", 4)
        + at("%l1", "%a1", "%g", 4)
        + at("%l2", "%a2", "%g", 4)
        + at("%l3", "%a3", "%g", 4)
        + at("%l4", "%a4", "%g", 4)
        + "ld.global.u32 %r0, [%l0]; ld.global.u32 %r1, [%l1]; ld.global.u32 %r2, [%l2];"
        f"shfl.sync.{mode}.b32 %r3|%p0, %r0, %r1, %r2, -1;"
        "selp.u32 %r4, 1, 0, %p0;"
        # The target may be an operand.
        f"shfl.sync.{mode}.b32 %r1, %r0, %r1, %r2, -1; setp.ne.u32 %p1, %r1, %r3;"
        "@%p1 mov.u32 %r4, 77;"
        "st.global.u32 [%l3], %r3; st.global.u32 [%l4], %r4;"
    )
    (_, _, _, got, valid), _ = run(body, values, b, c, values * 0, values * 0, block=128, grid=16)
    for w in range(warps):
        lanes = slice(32 * w, 32 * w + 32)
        expected = shuffled(mode, values[lanes], b[lanes].tolist(), c[lanes].tolist())
        assert got[lanes].tolist() == expected[0], (w, hex(c[32 * w]))
        assert valid[lanes].tolist() == expected[1], w


MEMBERS = 0x0FF0A5C3


def in_members(text):
    """Run `text` by the lanes of MEMBERS alone."""
    return (
        f"mov.u32 %r20, {MEMBERS}; shr.u32 %r21, %r20, %t; and.b32 %r21, %r21, 1;"
        "setp.eq.u32 %p7, %r21, 0; @%p7 bra skip;" + text + "skip:"
    )


@pytest.mark.parametrize("partial", [False, True])
def test_vote_activemask_elect(partial):
    group = MEMBERS if partial else 0xFFFFFFFF
    lanes = [i for i in range(32) if group >> i & 1]
    rng = np.random.default_rng(2)
    for chance in (0, 0.5, 1):
        flags = (rng.random(32) < chance).astype(np.uint32)
        collect = (
            OWN_WORD
            + "ld.global.u32 %r0, [%l30]; setp.ne.u32 %p0, %r0, 0;"
            + f"vote.sync.all.pred %p1, %p0, {group};"
            + f"vote.sync.any.pred %p2, %p0, {group};"
            + f"vote.sync.uni.pred %p3, %p0, {group};"
            + f"vote.sync.ballot.b32 %r1, %p0, {group};"
            + f"vote.sync.ballot.b32 %r2, !%p0, {group};"
            + "activemask.b32 %r3;"
            + f"elect.sync %r4|%p4, {group};"
            + "selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 1, 0, %p2; selp.u32 %r7, 1, 0, %p3;"
            + "selp.u32 %r8, 1, 0, %p4;"
            + at("%l0", "%a1", "%g", 32)
            + "st.global.v4.u32 [%l0], {%r1, %r2, %r3, %r4};"
            + "st.global.v4.u32 [%l0+16], {%r5, %r6, %r7, %r8};"
        )
        body = in_members(collect) if partial else collect
        (_, out), _ = run(body, flags, per_thread(256))
        yes = sum(1 << i for i in lanes if flags[i])
        no = group & ~yes
        for i in range(32):
            row = out[8 * i : 8 * i + 8].tolist()
            if i not in lanes:
                assert row == [0] * 8
                continue
            assert row == [
                yes,
                no,
                group,
                lanes[0],
                int(yes == group),
                int(yes != 0),
                int(yes in (0, group)),
                int(i == lanes[0]),
            ]


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("partial", [False, True])
def test_match(width, partial):
    group = MEMBERS if partial else 0xFFFFFFFF
    rng = np.random.default_rng(3)
    for choices in (1, 3):
        values = rng.integers(0, choices, 32).astype(BITS[width])
        values *= BITS[width](2 ** (width - 4) + 1)  # differences in the upper half too
        collect = (
            at("%l30", "%a0", "%g", width // 8)
            + f"ld.global.b{width} %{'l' if width == 64 else 'r'}1, [%l30];".replace(
                "%r1", "%r10"
            ).replace("%l1", "%l10")
            + f"match.any.sync.b{width} %r1, %{'l' if width == 64 else 'r'}10, {group};"
            + f"match.all.sync.b{width} %r2|%p1, %{'l' if width == 64 else 'r'}10, {group};"
            + "selp.u32 %r3, 1, 0, %p1; mov.u32 %r4, 0;"
            + at("%l0", "%a1", "%g", 16)
            + "st.global.v4.u32 [%l0], {%r1, %r2, %r3, %r4};"
        )
        body = in_members(collect) if partial else collect
        (_, out), _ = run(body, values, per_thread(128))
        lanes = [i for i in range(32) if group >> i & 1]
        all_equal = len({int(values[i]) for i in lanes}) == 1
        for i in lanes:
            same = sum(1 << j for j in lanes if values[j] == values[i])
            assert out[4 * i : 4 * i + 3].tolist() == [
                same,
                group if all_equal else 0,
                int(all_equal),
            ]


@pytest.mark.parametrize("partial", [False, True])
def test_redux(partial):
    group = MEMBERS if partial else 0xFFFFFFFF
    lanes = [i for i in range(32) if group >> i & 1]
    values = np.random.default_rng(4).integers(0, 2**32, 32, dtype=np.uint32)
    forms = [f"{op}.{t}" for op in ("add", "min", "max") for t in ("u32", "s32")]
    forms += ["and.b32", "or.b32", "xor.b32"]
    text = OWN_WORD + "ld.global.u32 %r0, [%l30];" + at("%l0", "%a1", "%g", 4 * len(forms))
    for n, form in enumerate(forms):
        text += f"redux.sync.{form} %r1, %r0, {group}; st.global.u32 [%l0+{4 * n}], %r1;"
    (_, out), _ = run(in_members(text) if partial else text, values, per_thread(32 * len(forms)))
    functions = {
        "add": lambda v: sum(v),
        "min": min,
        "max": max,
        "and": lambda v: functools.reduce(operator.and_, v),
        "or": lambda v: functools.reduce(operator.or_, v),
        "xor": lambda v: functools.reduce(operator.xor, v),
    }
    for i in lanes:
        for n, form in enumerate(forms):
            name, kind = form.split(".")
            operands = [int(values[j]) for j in lanes]
            if kind == "s32":
                operands = [signed(v, 32) for v in operands]
            assert out[len(forms) * i + n] == functions[name](operands) % 2**32, form


def test_redux_of_floats():
    """-0 is below +0; a NaN gives way to a number, or with .NaN it does not."""
    rng = np.random.default_rng(6)
    forms = [op + mode for op in ("min", "max") for mode in ("", ".abs", ".NaN", ".abs.NaN")]
    text = OWN_WORD + "ld.global.f32 %f0, [%l30];" + at("%l0", "%a1", "%g", 4 * len(forms))
    for n, form in enumerate(forms):
        text += f"redux.sync.{form}.f32 %f1, %f0, -1; st.global.f32 [%l0+{4 * n}], %f1;"
    numbers = rng.standard_normal(32).astype(np.float32)
    zeros = np.where(rng.random(32) < 0.5, np.float32(-0.0), np.float32(0))
    with_nan = np.where(np.arange(32) == 7, np.float32(np.nan), numbers)
    only_nan = np.full(32, np.nan, np.float32)
    for values in (numbers, -np.abs(numbers), zeros, with_nan, only_nan):
        (_, out), _ = run(text, values.view(np.uint32), per_thread(32 * len(forms)))
        out = out.reshape(32, len(forms))
        assert (out == out[0]).all()
        for form, bits in zip(forms, out[0], strict=True):
            chosen = np.abs(values) if "abs" in form else values
            ordered = sorted((float(v), -int(np.signbit(v))) for v in chosen if v == v)
            if len(ordered) < 32 and ("NaN" in form or not ordered):
                assert np.isnan(bits.view(np.float32)), form
                continue
            value, sign = ordered[0 if "min" in form else -1]
            got = bits.view(np.float32)
            assert got == np.float32(value), form
            assert np.signbit(got) == bool(sign), form


# ---- registers ----


def test_mov_between_scalars_and_vectors():
    b16, b32, b64 = 0xFFFF, 0xFFFFFFFF, 2**64 - 1
    check(
        {
            "unpack 32": Form(
                "mov.b32 {%d, %q}, %a;", ("b32",), ("b16", "b16"), lambda a: (a & b16, a >> 16)
            ),
            "pack 32": Form(
                "mov.b32 %d, {%a, %b};", ("b16", "b16"), ("b32",), lambda a, b: a | b << 16
            ),
            "unpack 64": Form(
                "mov.b64 {%d, %q}, %a;", ("b64",), ("b32", "b32"), lambda a: (a & b32, a >> 32)
            ),
            "pack 64": Form(
                "mov.b64 %d, {%a, %b};", ("b32", "b32"), ("b64",), lambda a, b: a | b << 32
            ),
            "unpack 4": Form(
                "mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {%h3, %h1, %h2, %h0};",
                ("b64",),
                ("b64",),
                lambda a: (a >> 48) | (a & 0xFFFFFFFF0000) | (a & b16) << 48,
            ),
            "pack 4": Form(
                "mov.b64 %d, {%a, %b, %c, %e};",
                ("b16",) * 4,
                ("b64",),
                lambda a, b, c, e: a | b << 16 | c << 32 | e << 48,
            ),
            "upper": Form("mov.b64 {_, %d}, %a;", ("b64",), ("b32",), lambda a: a >> 32),
            "swap": Form(
                "mov.b64 %d, %a; mov.b64 {%r0, %r1}, %d; mov.b64 %d, {%r1, %r0};",
                ("b64",),
                ("b64",),
                lambda a: (a >> 32 | a << 32) & b64,
            ),
            "own": Form(
                "mov.b32 %r0, %a; mov.b32 {%h0, %h1}, %r0; mov.b32 %r0, {%h1, %h0}; mov.u32 %d, %r0;",
                ("b32",),
                ("b32",),
                lambda a: (a >> 16 | a << 16) & b32,
            ),
        },
        128,
    )


def test_special_registers():
    names = [
        "tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x", "ctaid.y", "ctaid.z",
        "nctaid.x", "nctaid.y", "nctaid.z", "laneid", "warpid", "nwarpid", "lanemask_eq",
        "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "smid", "nsmid",
    ]  # fmt: skip
    grid, block = (2, 3, 2), (5, 4, 3)
    num_threads, num_blocks = 60, 12
    body = (
        "mov.u32 %r0, %tid.y; mov.u32 %r1, %tid.z; mov.u32 %r2, %ntid.y;"
        "mad.lo.u32 %r3, %r1, %r2, %r0; mad.lo.u32 %r3, %r3, %i1, %t;"  # thread in the block
        "mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z; mov.u32 %r6, %nctaid.y; mov.u32 %r7, %nctaid.x;"
        "mad.lo.u32 %r8, %r5, %r6, %r4; mad.lo.u32 %r8, %r8, %r7, %i0;"
        f"mad.lo.u32 %r9, %r8, {num_threads}, %r3;" + at("%l0", "%a0", "%r9", 4 * len(names))
    )
    for n, name in enumerate(names):
        body += f"mov.u32 %r10, %{name}; st.global.u32 [%l0+{4 * n}], %r10;"
    (out,), _ = run(body, per_thread(num_threads * num_blocks * len(names)), grid=grid, block=block)
    rows = out.reshape(num_blocks, num_threads, len(names))
    for b, t in itertools.product(range(num_blocks), range(num_threads)):
        lane = t % 32
        expected = [
            t % 5, t // 5 % 4, t // 20, *block, b % 2, b // 2 % 3, b // 6, *grid, lane, t // 32, 2,
            1 << lane, (2 << lane) - 1, (1 << lane) - 1, 2**32 - (1 << lane),
            2**32 - (2 << lane) if lane < 31 else 0, 0, 1,
        ]  # fmt: skip
        assert rows[b, t].tolist() == expected


def test_clocks_grow():
    body = (
        "mov.u64 %l0, %clock64; mov.u32 %r0, %clock; mov.u64 %l1, %globaltimer; mov.u64 %l2, %clock64;"
        + at("%l5", "%a0", "%g", 24)
        + "st.global.u64 [%l5], %l0; st.global.u64 [%l5+8], %l1; st.global.u64 [%l5+16], %l2;"
    )
    (out,), _ = run(body, per_thread(96, np.uint64))
    first, second, third = out.reshape(32, 3).T
    assert (first < second).all()
    assert (second < third).all()


# ---- calls ----

FUNCTIONS = """
.func (.param .b32 r) triple(.param .b32 v) {
  .reg .b32 %x; ld.param.u32 %x, [v]; mul.lo.u32 %x, %x, 3; st.param.b32 [r], %x; ret;
}
.func (.param .b32 r) square(.param .b32 v) {
  .reg .b32 %x; ld.param.u32 %x, [v]; mul.lo.u32 %x, %x, %x; st.param.b32 [r], %x; ret;
}
.func (.param .b64 r) factorial(.param .b32 n) {
  .reg .b32 %x; .reg .b64 %y, %z; .reg .pred %p; ld.param.u32 %x, [n];
  setp.gt.u32 %p, %x, 1; @%p bra more; mov.u64 %z, 1; st.param.b64 [r], %z; ret;
  more: cvt.u64.u32 %y, %x; sub.u32 %x, %x, 1;
  { .param .b32 a; .param .b64 b; st.param.b32 [a], %x; call (b), factorial, (a); ld.param.b64 %z, [b]; }
  mul.lo.u64 %z, %z, %y; st.param.b64 [r], %z; ret;
}
.func swap(.param .b64 where) {
  .reg .b64 %p; .reg .b32 %x, %y; ld.param.u64 %p, [where];
  ld.u32 %x, [%p]; ld.u32 %y, [%p+4]; st.u32 [%p], %y; st.u32 [%p+4], %x; ret;
}
.func (.param .align 8 .b8 r[16]) pair(.param .align 8 .b8 v[16]) {
  .reg .b64 %x, %y; ld.param.v2.b64 {%x, %y}, [v]; add.u64 %x, %x, 1;
  st.param.v2.b64 [r], {%y, %x}; ret;
}
"""


def test_direct_and_recursive_calls():
    body = (
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %g; call.uni (b), triple, (a);"
        " ld.param.b32 %r0, [b]; }"
        "and.b32 %r1, %t, 15; { .param .b32 a; .param .b64 b; st.param.b32 [a], %r1;"
        " call (b), factorial, (a); ld.param.b64 %l1, [b]; }"
        + at("%l0", "%a0", "%g", 16)
        + "cvt.u64.u32 %l2, %r0; st.global.u64 [%l0], %l2; st.global.u64 [%l0+8], %l1;"
        # A local array of the caller, through a pointer.
        ".local .align 8 .b8 v[8]; st.local.u32 [v], %g; st.local.u32 [v+4], 9;"
        "mov.u64 %l3, v; cvta.local.u64 %l3, %l3;"
        "{ .param .b64 a; st.param.b64 [a], %l3; call swap, (a); }"
        "ld.local.u32 %r2, [v]; ld.local.u32 %r3, [v+4]; "
        + at("%l4", "%a1", "%g", 8)
        + "st.global.u32 [%l4], %r2; st.global.u32 [%l4+4], %r3;"
        "{ .param .align 8 .b8 a[16]; .param .align 8 .b8 b[16]; st.param.v2.b64 [a], {%l2, %l1};"
        " call (b), pair, (a); ld.param.v2.b64 {%l5, %l6}, [b]; }"
        + at("%l7", "%a2", "%g", 16)
        + "st.global.v2.u64 [%l7], {%l5, %l6};"
    )
    (out, swapped, pairs), trace = run(
        body,
        per_thread(128, np.uint64),
        per_thread(128),
        per_thread(128, np.uint64),
        block=64,
        outside=FUNCTIONS,
    )
    factorials = [np.prod(np.arange(1, (t % 16) + 1, dtype=np.uint64)) for t in range(64)]
    assert out[0::2].tolist() == [3 * g for g in range(64)]
    assert out[1::2].tolist() == factorials
    assert swapped.reshape(64, 2).tolist() == [[9, g] for g in range(64)]
    assert pairs.reshape(64, 2).tolist() == [[f, 3 * g + 1] for g, f in enumerate(factorials)]
    assert sum(trace.instructions.opcode == "call.uni") == 1


def test_endless_recursion_is_an_error():
    outside = (
        ".func (.param .b32 r) deep(.param .b32 v) { .reg .b32 %x; ld.param.u32 %x, [v];"
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %x; call (b), deep, (a);"
        " ld.param.b32 %x, [b]; } st.param.b32 [r], %x; ret; }"
    )
    body = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %t; call (b), deep, (a); }"
    with pytest.raises(InputError, match="stack overflow: 4096 calls deep"):
        run(body, per_thread(1), outside=outside)


def test_indirect_calls():
    """Lanes call different functions, by addresses from registers and from a table."""
    outside = FUNCTIONS + ".global .align 8 .u64 table[2] = {square, triple};\n"
    prototype = "proto: .callprototype (.param .b32 _) _ (.param .b32 _);"
    by_register = (
        "and.b32 %r0, %t, 1; setp.eq.u32 %p0, %r0, 0; mov.u64 %l0, triple; mov.u64 %l1, square;"
        "selp.b64 %l2, %l1, %l0, %p0;"
    )
    by_table = (
        "and.b32 %r0, %t, 1; mov.u64 %l0, table; mad.wide.u32 %l1, %r0, 8, %l0;"
        "ld.global.u64 %l2, [%l1];"
    )
    rest = (
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %g; "
        + prototype
        + "call (b), %l2, (a), proto; ld.param.b32 %r1, [b]; }"
        "activemask.b32 %r2;" + at("%l4", "%a0", "%g", 8) + "st.global.v2.u32 [%l4], {%r1, %r2};"
    )
    for choose in (by_register, by_table):
        (out,), _ = run(choose + rest, per_thread(64), outside=outside)
        expected = [g * g if g % 2 == 0 else 3 * g for g in range(32)]
        assert out.reshape(32, 2)[:, 0].tolist() == expected
        assert (out.reshape(32, 2)[:, 1] == 0xFFFFFFFF).all()  # they meet after the call
    with pytest.raises(InputError, match="call of 0x64, which is not a function"):
        run("mov.u64 %l2, 100; mov.u64 %l0, square;" + rest, per_thread(64), outside=outside)


def test_vprintf():
    text = "%d %5u|%-4x|%lld %f %g %c %s %%\\n"
    bytes_of = ", ".join(str(b) for b in text.replace("\\n", "\n").encode() + b"\0")
    word = ", ".join(str(b) for b in b"word\0")
    outside = (
        f".global .align 1 .b8 format[{len(text)}] = {{{bytes_of}}};\n"
        f".global .align 1 .b8 word[5] = {{{word}}};\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
    )
    body = (
        ".local .align 8 .b8 v[64]; mov.u64 %l0, v; cvta.local.u64 %l0, %l0;"
        "neg.s32 %r0, %t; st.local.u32 [v], %r0; st.local.u32 [v+4], 7; st.local.u32 [v+8], 255;"
        "mov.s64 %l1, -5000000000; st.local.u64 [v+16], %l1; mov.f64 %d0, 0d3FF8000000000000;"
        "st.local.f64 [v+24], %d0; st.local.f64 [v+32], %d0; st.local.u32 [v+40], 65;"
        "mov.u64 %l2, word; st.local.u64 [v+48], %l2; mov.u64 %l3, format;"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %l3; st.param.b64 [b], %l0;"
        " call (r), vprintf, (a, b); ld.param.b32 %r1, [r]; }"
        + OWN_WORD
        + "st.global.u32 [%l30], %r1;"
    )
    printed = []
    device = ws.cuda.Device(0.25, print_to=printed.append)
    (out,), _ = run(body, per_thread(2), block=2, outside=outside, device=device)
    lines = [f"{-t}     7|ff  |-5000000000 1.500000 1.5 A word %\n" for t in range(2)]
    assert "".join(printed) == "".join(lines)
    assert out.tolist() == [len(line) for line in lines]


def test_assertfail():
    def variable(name, text):
        data = text.encode() + b"\0"
        return f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"

    outside = variable("what", "i < n") + variable("file", "a.cu") + variable("where", "f")
    outside += (
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 w,"
        " .param .b64 s);\n"
    )
    body = (
        "setp.ne.u32 %p0, %g, 37; @%p0 bra fine; mov.u64 %l0, what; mov.u64 %l1, file;"
        "mov.u64 %l2, where; { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d;"
        " .param .b64 e; st.param.b64 [a], %l0; st.param.b64 [b], %l1; st.param.b32 [c], 12;"
        " st.param.b64 [d], %l2; st.param.b64 [e], 1; call __assertfail, (a, b, c, d, e); } fine:"
    )
    with pytest.raises(
        InputError,
        match=r"block \(1, 0, 0\), thread \(5, 0, 0\): assertion `i < n` failed \(a.cu:12\)",
    ):
        run(body, per_thread(1), grid=2, outside=outside)


def test_malloc_and_free():
    outside = (
        ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
    )
    body = (
        "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 64; call (r), malloc, (a);"
        " ld.param.b64 %l0, [r]; } st.u32 [%l0+60], %t; ld.u32 %r0, [%l0+60];"
        "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 1099511627776; call (r), malloc, (a);"
        " ld.param.b64 %l1, [r]; } cvt.u32.u64 %r1, %l1; add.u32 %r0, %r0, %r1;"
        "{ .param .b64 a; st.param.b64 [a], %l0; call free, (a); }"
        "{ .param .b64 a; st.param.b64 [a], 0; call free, (a); }"
        + OWN_WORD
        + "st.global.u32 [%l30], %r0;"
    )
    device = ws.cuda.Device(0.25)
    before = device.used_bytes
    (out,), _ = run(body, per_thread(32), outside=outside, device=device)
    assert out.tolist() == list(range(32))
    assert device.used_bytes == before
    twice = (
        "{ .param .b64 a; st.param.b64 [a], %a0; call free, (a); }"
        "{ .param .b64 a; st.param.b64 [a], %a0; call free, (a); }"
    )
    module = compile_body(twice, 1, outside=outside, device=device)
    address = device._core.allocate(16)
    with pytest.raises(InputError, match="it may have been freed already"):
        module.kernel("k").launch(1, 1, address)


def test_brx_idx():
    body = (
        "rem.u32 %r0, %t, 3; ts: .branchtargets L0, L1, L2; mov.u32 %r2, 5;"
        "brx.idx %r0, ts; L0: mov.u32 %r1, 10; bra done; L1: mov.u32 %r1, 20; bra done;"
        "L2: activemask.b32 %r1; done: activemask.b32 %r2;"
        + at("%l0", "%a0", "%g", 8)
        + "st.global.v2.u32 [%l0], {%r1, %r2};"
    )
    (out,), _ = run(body, per_thread(64))
    third = sum(1 << i for i in range(2, 32, 3))
    assert out[0::2].tolist() == [(10, 20, third)[i % 3] for i in range(32)]
    assert (out[1::2] == 0xFFFFFFFF).all()
    with pytest.raises(InputError, match="branch index 3 of a list of 3 targets"):
        run(body.replace("rem.u32 %r0, %t, 3", "rem.u32 %r0, %t, 4"), per_thread(64))


# ---- barriers ----


def test_barriers_order_accesses_of_a_block():
    """A tree of sums in shared memory: wrong without each of the barriers."""
    body = (
        ".shared .align 4 .b8 s[1024]; mov.u64 %l0, s; mad.wide.u32 %l1, %t, 4, %l0;"
        "mul.lo.u32 %r0, %g, %g; st.shared.u32 [%l1], %r0; bar.sync 0; mov.u32 %r1, 128;"
        "again: setp.ge.u32 %p0, %t, %r1; @%p0 bra over; add.u32 %r2, %t, %r1;"
        "mad.wide.u32 %l2, %r2, 4, %l0; ld.shared.u32 %r3, [%l2]; ld.shared.u32 %r4, [%l1];"
        "add.u32 %r3, %r3, %r4; st.shared.u32 [%l1], %r3; over: barrier.sync.aligned 0;"
        "shr.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;"
        "setp.ne.u32 %p2, %t, 0; @%p2 bra end; ld.shared.u32 %r5, [s]; mul.wide.u32 %l3, %i0, 4;"
        "add.u64 %l3, %l3, %a0; st.global.u32 [%l3], %r5; end:"
    )
    (out,), _ = run(body, per_thread(3), grid=3, block=256)
    squares = np.arange(768, dtype=np.uint64) ** 2
    assert out.tolist() == (squares.reshape(3, 256).sum(1) % 2**32).tolist()


def test_bar_red():
    body = (
        OWN_WORD + "ld.global.u32 %r0, [%l30]; setp.ne.u32 %p0, %r0, 0;"
        "bar.red.popc.u32 %r1, 1, %p0; bar.red.and.pred %p1, 1, %p0; bar.red.or.pred %p2, 1, !%p0;"
        "barrier.red.popc.aligned.u32 %r4, 2, 64, !%p0;"
        "selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 1, 0, %p2;"
        + at("%l0", "%a1", "%g", 16)
        + "st.global.v4.u32 [%l0], {%r1, %r2, %r3, %r4};"
    )
    for flags in (np.ones(64), np.zeros(64), np.arange(64) % 3 == 0):
        flags = flags.astype(np.uint32)
        (_, out), _ = run(body, flags, per_thread(256), block=64)
        yes = int(flags.sum())
        assert (out.reshape(64, 4) == [yes, yes == 64, yes < 64, 64 - yes]).all()


def test_barriers_of_some_warps():
    """Producer and consumer: two of four warps arrive, two wait, on barriers of 96 threads."""
    body = (
        ".shared .align 4 .b8 s[512]; mov.u64 %l0, s; mad.wide.u32 %l1, %t, 4, %l0;"
        "shr.u32 %r0, %t, 5; mov.u32 %r1, 1; add.u32 %r2, %t, 5; setp.gt.u32 %p0, %r0, 1;"
        "@%p0 bra produce; setp.eq.u32 %p1, %r0, 1; @%p1 bra end;"
        "bar.sync %r1, 96; mov.u32 %r3, 0; mov.u32 %r4, 64;"
        "sum: mad.wide.u32 %l2, %r4, 4, %l0; ld.shared.u32 %r5, [%l2]; add.u32 %r3, %r3, %r5;"
        "add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 128; @%p2 bra sum;"
        + OWN_WORD
        + "st.global.u32 [%l30], %r3; bra end; produce: st.shared.u32 [%l1], %r2; bar.arrive %r1, 96; end:"
    )
    (out,), _ = run(body, per_thread(32), block=128)
    assert (out == sum(range(69, 133))).all()


def test_exited_warps_do_not_keep_barriers_waiting():
    body = (
        "setp.ge.u32 %p0, %t, 40; @%p0 exit; bar.sync 0;" + OWN_WORD + "st.global.u32 [%l30], %t;"
    )
    (out,), _ = run(body, per_thread(128), block=128)
    assert out.tolist() == [*range(40), *[0] * 88]
