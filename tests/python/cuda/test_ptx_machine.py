"""Memory, warp-wide operations, atomics, textures, calls and barriers of the PTX interpreter."""

import functools
import itertools
import operator
import struct

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import BITS, HEADER, Form, at, check, compile_body, run, width_of
from twins.ptx_arithmetic import float_operation, flush, signed
from warpstack.errors import InputError

LANES = np.arange(32, dtype=np.uint32)
SUM = at("%l30", "%a0", "%g", 4)


def per_thread(count, dtype=np.uint32):
    return np.zeros(count, dtype)


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
            SUM
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
    text = SUM + "ld.global.u32 %r0, [%l30];" + at("%l0", "%a1", "%g", 4 * len(forms))
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


# ---- loads and stores ----

SPACES = ("global", "shared", "local", "generic shared", "generic local", "generic global", "const")


def _move_kernel(name, space, kind, elements, register):
    """Bytes go to a space, come back through registers as 64 bits, and go out from them again."""
    width = width_of(kind)
    total = width // 8 * elements
    generic = space.startswith("generic")
    real = space.split()[-1]
    prefix = {64: "l", 32: "r", 16: "h"}[register]
    sign = "s" if kind[0] == "s" else "u"
    lines = [
        f".visible .entry {name}(.param .u64 {name}_0, .param .u64 {name}_1, .param .u64 {name}_2)",
        "{ .reg .b16 %h<12>; .reg .b32 %r<12>; .reg .b64 %l<12>, %s, %w, %o, %x, %y; .reg .b32 %t;",
        f".shared .align 16 .b8 {name}_s[2048]; .local .align 16 .b8 {name}_l[64];",
        f"mov.u32 %t, %tid.x; ld.param.u64 %x, [{name}_0]; mad.wide.u32 %s, %t, {total}, %x;",
        f"ld.param.u64 %x, [{name}_1]; mad.wide.u32 %w, %t, 32, %x;",
        f"ld.param.u64 %x, [{name}_2]; mad.wide.u32 %o, %t, {total}, %x;",
    ]
    if real == "global":
        lines.append("mov.u64 %y, %s;")
    elif real == "const":
        lines.append(f"mov.u64 %x, table; mad.wide.u32 %y, %t, {total}, %x;")
    elif real == "shared":
        lines.append(f"mov.u64 %x, {name}_s; mad.wide.u32 %y, %t, {total}, %x;")
    else:
        lines.append(f"mov.u64 %y, {name}_l;")
    if generic:
        lines.append(f"cvta.{real}.u64 %y, %y;")
    dot = "" if generic else f".{real}"
    if real in ("shared", "local"):
        for i in range(total):
            lines.append(f"ld.global.u8 %h11, [%s+{i}]; st{dot}.u8 [%y+{i}], %h11;")
    names = [f"%{prefix}{i}" for i in range(elements)]
    vector = f".v{elements}" if elements > 1 else ""
    listed = "{" + ", ".join(names) + "}" if elements > 1 else names[0]
    lines.append(f"ld{dot}{vector}.{kind} {listed}, [%y];")
    for i, register_name in enumerate(names):
        lines.append(
            f"cvt.u64.u{register} %l11, {register_name};"
            if register < 64
            else f"mov.u64 %l11, {register_name};"
        )
        lines.append(f"st.global.u64 [%w+{8 * i}], %l11;")
    if real != "const":
        # Out again: to the same place, then byte by byte to the last array.
        lines.append(f"st{dot}{vector}.{kind} [%y], {listed};")
        for i in range(total):
            lines.append(f"ld{dot}.{sign}8 %h11, [%y+{i}]; st.global.b8 [%o+{i}], %h11;")
    return "\n".join([*lines, "ret; }"])


@pytest.mark.parametrize("space", SPACES)
def test_loads_and_stores_of_every_width(space):
    kinds = [f"{t}{w}" for w in (8, 16, 32, 64) for t in "bus"] + ["f32", "f64"]
    cases = []
    for kind in kinds:
        width = width_of(kind)
        for elements in (1, 2, 4):
            if width * elements > 128:
                continue
            for register in {max(width, 16), 32 if width < 32 else 64, 64}:
                if kind[0] == "f" and register != width:
                    continue
                cases.append((kind, width, elements, register))
    data = np.random.default_rng(5).integers(0, 256, 1024, dtype=np.uint8)
    table = ", ".join(map(str, data.tolist()))
    text = HEADER + f".const .align 16 .b8 table[1024] = {{{table}}};\n"
    for n, (kind, _, elements, register) in enumerate(cases):
        text += _move_kernel(f"k{n}", space, kind, elements, register) + "\n"
    device = ws.cuda.Device(0.25)
    module = ws.cuda.compile(text, device=device)
    source = device.array(data)
    for n, (kind, width, elements, register) in enumerate(cases):
        wide, out = device.zeros(128, np.uint64), device.zeros(1024, np.uint8)
        trace = module.kernel(f"k{n}").launch(1, 32, source, wide, out)
        values = data[: 32 * elements * width // 8].view(BITS[width]).reshape(32, elements)
        if kind[0] == "s":
            values = values.view(f"i{width // 8}").astype(np.int64)
            values = values.astype(np.uint64) & np.uint64(2**register - 1)
        got = wide.to_host().reshape(32, 4)[:, :elements]
        assert (got == values).all(), (kind, elements, register)
        if space != "const":
            used = 32 * elements * width // 8
            assert (out.to_host()[:used] == data[:used]).all(), (kind, elements, register)
        assert trace.num_warps == 1


def test_param_space_of_the_kernel():
    """Structures by value: fields, sign extension, a computed offset, and a generic address."""
    body = (
        at("%l0", "%a0", "%g", 8)
        + "ld.param.s8 %l1, [q]; ld.param.u16 %r1, [q+2]; ld.param.v2.u32 {%r2, %r3}, [q+8];"
        "cvt.u64.u32 %l2, %r1; cvt.u64.u32 %l3, %r2; cvt.u64.u32 %l4, %r3;"
        "add.u64 %l5, %l1, %l2; add.u64 %l5, %l5, %l3; add.u64 %l5, %l5, %l4;"
        "mov.b64 %l6, q; and.b32 %r5, %t, 3; mad.wide.u32 %l7, %r5, 4, %l6; ld.param.u32 %r6, [%l7];"
        "cvta.param.u64 %l8, %l6; mad.wide.u32 %l9, %r5, 4, %l8; ld.global.u32 %r7, [%l9];"
        "ld.u32 %r8, [%l9]; setp.ne.u32 %p0, %r6, %r7; setp.ne.or.u32 %p0, %r6, %r8, %p0;"
        "cvt.u64.u32 %l10, %r6; add.u64 %l5, %l5, %l10; @%p0 mov.u64 %l5, 0;"
        "st.global.u64 [%l0], %l5;"
    )
    packed = struct.pack("<bxHiII", -5, 60000, -1, 7, 11)
    (out,), _ = run(
        body, per_thread(32, np.uint64), parameters=".param .align 8 .b8 q[16]", arguments=[packed]
    )
    words = struct.unpack("<4I", packed)
    assert out.tolist() == [-5 + 60000 + 7 + 11 + words[i % 4] for i in range(32)]


def test_generic_addresses_and_isspacep():
    body = (
        ".shared .align 8 .u32 s[64]; .local .align 8 .b8 v[16];"
        "mov.u64 %l0, s; cvta.shared.u64 %l1, %l0; cvta.to.shared.u64 %l2, %l1;"
        "mov.u64 %l3, v; cvta.local.u64 %l4, %l3; cvta.to.local.u64 %l5, %l4;"
        "cvta.to.global.u64 %l6, %a0; cvta.global.u64 %l7, %l6;"
        "setp.eq.u64 %p0, %l0, %l2; setp.eq.and.u64 %p0, %l3, %l5, %p0;"
        "setp.eq.and.u64 %p0, %l7, %a0, %p0; selp.u32 %r0, 1, 0, %p0;"
    )
    sources = {"%l1": "shared", "%l4": "local", "%l7": "global"}
    bit = 1
    expected = 1
    for register, space in sources.items():
        for asked in ("shared", "local", "global"):
            body += f"isspacep.{asked} %p1, {register}; selp.u32 %r1, {1 << bit}, 0, %p1;"
            body += "or.b32 %r0, %r0, %r1;"
            expected |= (asked == space) << bit
            bit += 1
    # A store through one window is a load through the other.
    body += "st.shared.u32 [s+8], 123; ld.u32 %r2, [%l1+8]; st.u32 [%l4+4], 77; ld.local.u32 %r3, [v+4];"
    body += at("%l10", "%a0", "%t", 4) + "add.u32 %r0, %r0, %r2; add.u32 %r0, %r0, %r3;"
    body += "st.u32 [%l10], %r0;"
    (out,), _ = run(body, per_thread(32))
    assert out.tolist() == [expected + 200] * 32


def test_local_memory_is_private():
    body = (
        ".local .align 4 .b8 v[128]; mov.u64 %l0, v; mov.u32 %r0, 0;"
        "again: mad.wide.u32 %l1, %r0, 4, %l0; mad.lo.u32 %r1, %g, 100, %r0; st.local.u32 [%l1], %r1;"
        "add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 32; @%p0 bra again;"
        "and.b32 %r2, %t, 31; mad.wide.u32 %l1, %r2, 4, %l0; ld.local.u32 %r3, [%l1];"
        + SUM
        + "st.global.u32 [%l30], %r3;"
    )
    (out,), _ = run(body, per_thread(128), block=64, grid=2)
    assert out.tolist() == [100 * g + g % 32 for g in range(128)]


def test_dynamic_shared_memory():
    body = (
        "mov.u64 %l0, dyn; mad.wide.u32 %l1, %t, 4, %l0; st.shared.u32 [%l1], %t; bar.sync 0;"
        "xor.b32 %r0, %t, 63; mad.wide.u32 %l2, %r0, 4, %l0; ld.shared.u32 %r1, [%l2];"
        "mov.u32 %r2, %dynamic_smem_size; add.u32 %r1, %r1, %r2;"
        + SUM
        + "st.global.u32 [%l30], %r1;"
    )
    (out,), trace = run(
        body,
        per_thread(64),
        block=64,
        outside=".extern .shared .align 16 .b8 dyn[];",
        shared_memory_bytes=256,
    )
    assert out.tolist() == [(i ^ 63) + 256 for i in range(64)]
    assert trace.shared_memory_bytes == 256
    with pytest.raises(
        InputError, match="out-of-bounds store of 4 bytes at 0x80: the block has 128 bytes"
    ):
        run(
            body,
            per_thread(64),
            block=64,
            outside=".extern .shared .align 16 .b8 dyn[];",
            shared_memory_bytes=128,
        )


def test_module_variables():
    outside = (
        ".global .align 4 .u32 counters[4] = {1, 2, 3, 4};\n"
        ".const .align 8 .f64 factors[2] = {0d3FF8000000000000, 0dC000000000000000};\n"
        ".global .align 8 .u64 pointer = counters+8;\n"
    )
    body = (
        "ld.global.u64 %l0, [pointer]; ld.global.u32 %r0, [%l0];"  # counters[2]
        "ld.const.f64 %d0, [factors+8]; ld.global.u32 %r1, [counters+4];"
        "cvt.rzi.s32.f64 %r2, %d0; add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2;"
        "atom.global.add.u32 %r3, [counters], 1; add.u32 %r0, %r0, %r3;"
        + SUM
        + "st.global.u32 [%l30], %r0;"
    )
    device = ws.cuda.Device(0.25)
    module = compile_body(body, 1, outside=outside, device=device)
    out = device.zeros(32, np.uint32)
    module.kernel("k").launch(1, 32, out)
    assert np.asarray(out).tolist() == [3 + 2 - 2 + 1 + i for i in range(32)]
    assert np.asarray(module.symbol("counters", np.uint32)).tolist() == [33, 2, 3, 4]
    module.symbol("counters", np.uint32).copy_from(np.array([5, 0, 0, 0], np.uint32))
    module.kernel("k").launch(1, 32, out)
    assert np.asarray(out)[0] == 0 + 0 - 2 + 5
    with pytest.raises(InputError, match="not a multiple"):
        module.symbol("counters", np.dtype("V3"))
    with pytest.raises(InputError, match="no global or constant variable nothing"):
        module.symbol("nothing", np.uint8)


# ---- atomics ----


def _atomic_results(name, kind, start, operands, compare):
    """Lanes take part in their order."""
    width = width_of(kind)
    low = (1 << width) - 1

    def number(bits):
        return signed(bits, width) if kind[0] == "s" else bits

    def add(old, b):
        if kind in ("f16", "bf16", "f32", "f64"):
            return float_operation("add", kind)(old, b)
        if kind.endswith("x2"):
            f = float_operation("add", kind[:-2])
            return f(old & 0xFFFF, b & 0xFFFF) | f(old >> 16, b >> 16) << 16
        return old + b

    functions = {
        "add": add,
        "min": lambda old, b: min(number(old), number(b)),
        "max": lambda old, b: max(number(old), number(b)),
        "inc": lambda old, b: 0 if old >= b else old + 1,
        "dec": lambda old, b: b if old == 0 or old > b else old - 1,
        "exch": lambda _old, b: b,
        "and": lambda old, b: old & b,
        "or": lambda old, b: old | b,
        "xor": lambda old, b: old ^ b,
    }
    olds, value = [], start
    for b, c in zip(operands, compare, strict=True):
        olds.append(value)
        value = (c if value == b else value) if name == "cas" else functions[name](value, b) & low
    return olds, value


ATOMICS = [
    *(("add", t) for t in ("u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2")),
    *((op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64")),
    *((op, "u32") for op in ("inc", "dec")),
    *((op, f"b{w}") for op in ("and", "or", "xor", "exch", "cas") for w in (32, 64)),
    ("cas", "b16"),
]  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared", ""])
def test_atomics(space):
    rng = np.random.default_rng(6)
    device = ws.cuda.Device(0.25)
    text = HEADER
    cases = []
    for name, kind in ATOMICS:
        for returns in (True, False):
            if not returns and name in ("exch", "cas"):
                continue
            width = width_of(kind)
            n = len(cases)
            noftz = ".noftz" if "16" in kind and name == "add" else ""
            register = {16: "%h", 32: "%r", 64: "%l"}[width]
            bits = f"b{width}"
            dot = f".{space}" if space else ""
            third = f", {register}2" if name == "cas" else ""
            code = (
                f"atom{dot}.{name}{noftz}.{kind} {register}0, [%y], {register}1{third};"
                if returns
                else f"red{dot}.{name}{noftz}.{kind} [%y], {register}1; mov.{bits} {register}0, 0;"
            )
            text += (
                f".visible .entry k{n}(.param .u64 k{n}_0, .param .u64 k{n}_1, .param .u64 k{n}_2,"
                f" .param .u64 k{n}_3) {{ .reg .b16 %h<4>; .reg .b32 %r<4>, %t; .reg .pred %q;"
                f" .reg .b64 %l<4>, %b, %c, %o, %z, %x, %y; .shared .align 8 .b8 s{n}[8];"
                f"mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 0;"
                f"ld.param.u64 %x, [k{n}_0]; mad.wide.u32 %b, %t, {width // 8}, %x;"
                f"ld.param.u64 %x, [k{n}_1]; mad.wide.u32 %c, %t, {width // 8}, %x;"
                f"ld.param.u64 %x, [k{n}_2]; mad.wide.u32 %o, %t, {width // 8}, %x;"
                f"ld.param.u64 %z, [k{n}_3];"
                f"ld.global.{bits} {register}1, [%b]; ld.global.{bits} {register}2, [%c];"
            )
            if space == "shared":
                text += (
                    f"mov.u64 %y, s{n}; ld.global.{bits} {register}3, [%z];"
                    f"@%q st.shared.{bits} [%y], {register}3; bar.sync 0;"
                )
            else:
                text += "mov.u64 %y, %z;"
            text += code + f"st.global.{bits} [%o], {register}0; bar.sync 0;"
            if space == "shared":
                text += (
                    f"ld.shared.{bits} {register}3, [%y]; @%q st.global.{bits} [%z], {register}3;"
                )
            text += "ret; }\n"
            cases.append((name, kind, returns, width))
    module = ws.cuda.compile(text, device=device)
    for n, (name, kind, returns, width) in enumerate(cases):
        operands = rng.integers(0, 2**width, 32, dtype=np.uint64)
        if name == "cas":
            operands = rng.integers(0, 3, 32, dtype=np.uint64)
        if name in ("inc", "dec"):
            operands = rng.integers(0, 9, 32, dtype=np.uint64)
        compare = rng.integers(0, 3, 32, dtype=np.uint64)
        if kind in ("f32", "f64"):
            operands = rng.normal(0, 1, 32).astype(f"f{width // 8}").view(BITS[width])
        if kind in ("f16", "f16x2"):
            operands = rng.normal(0, 1, 32 * width // 16).astype(np.float16).view(BITS[width])
        if kind in ("bf16", "bf16x2"):
            singles = rng.normal(0, 1, 32 * width // 16).astype(np.float32).view(np.uint32)
            operands = (singles >> 16).astype(np.uint16).view(BITS[width])
        operands, compare = operands.astype(BITS[width]), compare.astype(BITS[width])
        start = BITS[width](1)
        place, out = device.array(np.array([start])), device.zeros(32, BITS[width])
        b, c = device.array(operands), device.array(compare)
        trace = module.kernel(f"k{n}").launch(1, 32, b, c, out, place)
        # The start is a subnormal number, which global additions of f32 flush.
        begin = 0 if kind == "f32" and space != "shared" else int(start)
        olds, value = _atomic_results(name, kind, begin, operands.tolist(), compare.tolist())
        assert place.to_host().tolist() == [value], (name, kind, returns)
        if returns:
            assert out.to_host().tolist() == [int(start), *olds[1:]], (name, kind)
        kinds = {i.kind for i in trace_rows(trace) if i.opcode.startswith(("atom", "red"))}
        assert kinds == {"atomic" if returns else "reduction"}


def trace_rows(trace):
    """Return the trace's static instructions with attributes by name."""
    return list(trace.instructions.itertuples())


def test_atomic_addition_of_subnormal_floats():
    """On global memory they count as zero, on shared memory they do not."""
    tiny = np.array([3], np.uint32)
    body = (
        "ld.global.u32 %r0, [%a0]; setp.ne.u32 %p0, %t, 0; @%p0 bra done;"
        ".shared .align 4 .u32 s; st.shared.u32 [s], 5; atom.shared.add.f32 %r1, [s], %r0;"
        "ld.shared.u32 %r2, [s]; st.global.u32 [%a1], %r2;"
        "red.global.add.f32 [%a2], %r0; done:"
    )
    (_, in_shared, in_global), _ = run(body, tiny, per_thread(1), np.array([5], np.uint32))
    assert in_shared.tolist() == [8]
    assert in_global.tolist() == [0]
    assert flush(5, "f32") == 0


# ---- asynchronous copies ----


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("cache", ["ca", "cg"])
def test_cp_async(size, cache):
    if cache == "cg" and size != 16:
        pytest.skip("cp.async.cg copies 16 bytes")
    data = np.random.default_rng(7).integers(1, 256, 512, dtype=np.uint8)
    for partial in (None, 0, 3, size):
        source = "" if partial is None else f", {partial}"
        body = (
            ".shared .align 16 .b8 s[512]; mov.u64 %l0, s;"
            f"mad.wide.u32 %l1, %t, {size}, %l0; mad.wide.u32 %l2, %t, {size}, %a0;"
            f"cp.async.{cache}.shared.global [%l1], [%l2], {size}{source};"
            "cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;"
            f"mad.wide.u32 %l3, %t, {size}, %a1;"
        )
        for i in range(0, size, 4):
            body += f"ld.shared.u32 %r0, [%l1+{i}]; st.global.u32 [%l3+{i}], %r0;"
        (_, out), trace = run(body, data, np.zeros(512, np.uint8))
        expected = data.copy().reshape(-1, size)
        if partial is not None:
            expected[:, partial:] = 0
        assert (out[: 32 * size] == expected.reshape(-1)[: 32 * size]).all()
        (row,) = (r for r in trace_rows(trace) if r.kind == "async_copy")
        assert row.width == size
        assert row.space == "global"


# ---- textures and surfaces ----


def _wrapped(index, size, mode):
    """Texel of an index under an address mode of normalised coordinates; None is the border."""
    if 0 <= index < size:
        return index
    if mode == "border":
        return None
    if mode == "clamp":
        return min(max(index, 0), size - 1)
    if mode == "wrap":
        return index % size
    folded = index % (2 * size)
    return folded if folded < size else 2 * size - 1 - folded


def _sampled(texels, coordinates, mode, linear, normalized):
    """Definition of texture fetching in the CUDA C++ Programming Guide."""
    sizes = texels.shape[::-1]
    places = []
    for x, size in zip(coordinates, sizes, strict=True):
        x = float(np.float32(x)) * (size if normalized else 1)
        x -= 0.5 if linear else 0
        whole = int(np.floor(x))
        share = round((x - np.floor(x)) * 256) / 256 if linear else 0
        places.append([(whole, 1 - share), (whole + 1, share)] if linear else [(whole, 1)])
    total = 0.0
    for corner in itertools.product(*places):
        weight, indices = 1.0, []
        for (index, share), size in zip(corner, sizes, strict=True):
            weight *= share
            used = mode if normalized or mode in ("clamp", "border") else "clamp"
            indices.append(_wrapped(index, size, used))
        if weight and None not in indices:
            total += weight * float(texels[tuple(reversed(indices))])
    return total


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["wrap", "clamp", "mirror", "border"])
def test_textures(dimensions, mode):
    rng = np.random.default_rng(8)
    shape = (4, 5, 6)[3 - dimensions :]
    texels = rng.normal(0, 1, shape).astype(np.float32)
    device = ws.cuda.Device(0.25)
    points = rng.uniform(-7, 12, (64, 4)).astype(np.float32)
    points[:8] = np.round(points[:8])
    listed = {1: "{%f0}", 2: "{%f0, %f1}", 3: "{%f0, %f1, %f2, %f2}"}[dimensions]
    body = (
        at("%l0", "%a0", "%g", 16)
        + "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%l0]; ld.param.u64 %l1, [q];"
        f"tex.{dimensions}d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {listed}];"
        + at("%l2", "%a1", "%g", 4)
        + "st.global.f32 [%l2], %f4;"
    )
    module = compile_body(body, 2, device=device, parameters=".param .u64 q")
    source, out = device.array(texels), device.zeros(64, np.float32)
    for linear, normalized in itertools.product((False, True), repeat=2):
        used = points / np.float32(8) if normalized else points
        texture = ws.cuda.texture(
            source,
            filter_mode="linear" if linear else "point",
            address_mode=mode,
            normalized_coordinates=normalized,
        )
        module.kernel("k").launch(1, 64, device.array(used), out, texture)
        expected = [
            _sampled(texels, p[:dimensions], mode, linear, normalized) for p in used.tolist()
        ]
        assert out.to_host() == pytest.approx(expected, rel=1e-6, abs=1e-7), (linear, normalized)


def test_texel_formats_and_fetch():
    """Integers, normalised reads, halves and channels, fetched at integer positions."""
    rng = np.random.default_rng(9)
    device = ws.cuda.Device(0.25)
    body = (
        "ld.param.u64 %l1, [q]; mov.u32 %r0, %t; sub.u32 %r0, %r0, 2;"
        "tex.1d.v4.{kind}.s32 {{%r1, %r2, %r3, %r4}}, [%l1, {{%r0}}];"
        + at("%l2", "%a0", "%g", 16)
        + "st.global.v4.u32 [%l2], {{%r1, %r2, %r3, %r4}};"
    )
    for dtype, normalized in [
        ("u1", False), ("i1", False), ("u2", False), ("i2", False), ("u4", False), ("i4", False),
        ("f2", False), ("f4", False), ("u1", True), ("i1", True), ("u2", True), ("i2", True),
    ]:  # fmt: skip
        for channels in (1, 2, 4):
            raw = rng.integers(0, 256, 20 * channels * int(dtype[1]), dtype=np.uint8)
            values = raw.view(dtype)
            if dtype[0] == "f":
                values = rng.normal(0, 1, 20 * channels).astype(dtype)
            fields = values.reshape(20, channels)
            record = np.dtype([(f"c{i}", dtype) for i in range(channels)]) if channels > 1 else None
            source = device.array(values if record is None else values.view(record))
            as_float = dtype[0] == "f" or normalized
            kind = "f32" if as_float else f"{'s' if dtype[0] == 'i' else 'u'}32"
            module = compile_body(
                body.format(kind=kind), 1, device=device, parameters=".param .u64 q"
            )
            out = device.zeros(128, np.uint32)
            texture = ws.cuda.texture(source, normalized_read=normalized)
            module.kernel("k").launch(1, 32, out, texture)
            expected = np.zeros((32, 4))
            shown = fields.astype(np.float64)
            if normalized:
                greatest = np.iinfo(dtype).max
                shown = np.maximum(shown / greatest, -1)
            expected[2:22, :channels] = shown
            got = out.to_host().reshape(32, 4)
            if as_float:
                assert (got.view(np.float32) == expected.astype(np.float32)).all(), (
                    dtype,
                    channels,
                )
            else:
                assert (got == expected.astype(np.int64).astype(np.uint32)).all(), (dtype, channels)


def test_texture_references_and_queries():
    device = ws.cuda.Device(0.25)
    body = (
        "cvt.rn.f32.u32 %f0, %t; mov.f32 %f1, 0f00000000; add.f32 %f0, %f0, 0f3F000000;"
        "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [image, {%f0, %f1}];"
        "cvt.rzi.u32.f32 %r0, %f4; ld.param.u64 %l1, [q];"
        "txq.width.b32 %r1, [%l1]; txq.height.b32 %r2, [%l1]; txq.width.b32 %r3, [image];"
        "mad.lo.u32 %r0, %r1, 1000, %r0; mad.lo.u32 %r0, %r2, 100000, %r0;"
        "mad.lo.u32 %r0, %r3, 10000000, %r0;" + SUM + "st.global.u32 [%l30], %r0;"
    )
    module = compile_body(
        body, 1, device=device, parameters=".param .u64 q", outside=".global .texref image;"
    )
    source = device.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    texture = ws.cuda.texture(source)
    out = device.zeros(4, np.uint32)
    with pytest.raises(InputError, match="the texture reference is not bound"):
        module.kernel("k").launch(1, 4, out, texture)
    module.bind_texture("image", texture)
    module.kernel("k").launch(1, 4, out, texture)
    assert out.to_host().tolist() == [40000000 + 300000 + 4000 + i for i in range(4)]
    with pytest.raises(InputError, match="no texture reference other"):
        module.bind_texture("other", texture)
    with pytest.raises(InputError, match="77 is not a texture or surface object"):
        module.kernel("k").launch(1, 4, out, 77)


@pytest.mark.parametrize("beyond", ["trap", "clamp", "zero"])
def test_surfaces(beyond):
    """Byte positions in x; stores outside are dropped, loads give zero, or the border for clamp."""
    device = ws.cuda.Device(0.25)
    body = (
        "ld.param.u64 %l1, [q]; ld.param.u64 %l2, [s]; sub.u32 %r0, %t, 2; shl.b32 %r1, %r0, 2;"
        "mov.u32 %r2, 1;"
        f"suld.b.2d.b32.{beyond} %r3, [%l1, {{%r1, %r2}}];"
        "add.u32 %r4, %r3, 100;"
        f"sust.b.2d.b32.{beyond} [%l2, {{%r1, %r2}}], %r4;" + SUM + "st.global.u32 [%l30], %r3;"
    )
    module = compile_body(body, 1, device=device, parameters=".param .u64 q, .param .u64 s")
    values = np.arange(1, 25, dtype=np.uint32).reshape(3, 8)
    source, copy = device.array(values), device.zeros((3, 8), np.uint32)
    out = device.zeros(12, np.uint32)
    arguments = (out, ws.cuda.texture(source), ws.cuda.texture(copy))
    if beyond == "trap":
        with pytest.raises(InputError, match="access outside the surface"):
            module.kernel("k").launch(1, 12, *arguments)
        return
    module.kernel("k").launch(1, 12, *arguments)
    row = values[1].tolist()
    ends = [row[0]] * 2, [row[-1]] * 2
    if beyond == "zero":
        ends = [0, 0], [0, 0]
    assert out.to_host().tolist() == [*ends[0], *row, *ends[1]]
    written = np.zeros((3, 8), np.uint32)
    written[1] = values[1] + 100
    assert (copy.to_host() == written).all()


def test_surface_vectors():
    device = ws.cuda.Device(0.25)
    body = (
        "ld.param.u64 %l1, [q]; shl.b32 %r1, %t, 4;"
        "suld.b.1d.v4.b32.zero {%r3, %r4, %r5, %r6}, [%l1, {%r1}];"
        "sust.b.1d.v4.b32.zero [%l1, {%r1}], {%r6, %r5, %r4, %r3};"
        "shl.b32 %r1, %t, 1; suld.b.1d.b16.zero %h0, [%l1, {%r1}]; shl.b32 %r1, %t, 3;"
        "suld.b.1d.b64.zero %l3, [%l1, {%r1}]; suld.b.1d.b8.zero %h1, [%l1, {%t}];"
        + at("%l5", "%a0", "%t", 16)
        + "cvt.u32.u16 %r7, %h0; cvt.u32.u16 %r8, %h1; st.global.u64 [%l5], %l3; st.global.u32 [%l5+8], %r7;"
        "st.global.u32 [%l5+12], %r8;"
    )
    values = np.arange(32, dtype=np.uint32) * 0x01010101
    record = np.dtype([(f"c{i}", "u4") for i in range(4)])
    source, out = device.array(values.view(record)), device.zeros((8, 16), np.uint8)
    module = compile_body(body, 1, device=device, parameters=".param .u64 q")
    module.kernel("k").launch(1, 8, out, ws.cuda.texture(source))
    after = values.reshape(8, 4)[:, ::-1].reshape(-1)
    assert (source.to_host().view(np.uint32).reshape(-1) == after).all()
    got = out.to_host()
    assert (got[:, :8].copy().view(np.uint64).reshape(-1) == after.view(np.uint64)[:8]).all()
    assert (got[:, 8:12].copy().view(np.uint32).reshape(-1) == after.view(np.uint16)[:8]).all()
    assert (got[:, 12:].copy().view(np.uint32).reshape(-1) == after.view(np.uint8)[:8]).all()


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("linear", [False, True])
def test_layered_textures_and_surfaces(dimensions, linear):
    """A layer reads as a texture of its own; layers beyond are the nearest, for surfaces none."""
    rng = np.random.default_rng(10)
    shape = (3, 4, 5)[:: 1 if dimensions == 2 else 2]
    texels = rng.normal(0, 1, shape).astype(np.float32)
    device = ws.cuda.Device(0.25)
    point = "{%r0, %f0}" if dimensions == 1 else "{%r0, %f0, %f1, %f1}"
    whole = "{%r0, %r1}" if dimensions == 1 else "{%r0, %r1, %r2, %r2}"
    body = (
        "ld.param.u64 %l1, [q]; ld.param.u32 %r0, [layer];"
        + at("%l0", "%a0", "%t", 8)
        + "ld.global.v2.f32 {%f0, %f1}, [%l0];"
        + f"tex.a{dimensions}d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {point}];"
        + "cvt.rzi.s32.f32 %r1, %f0; cvt.rzi.s32.f32 %r2, %f1;"
        + f"tex.a{dimensions}d.v4.f32.s32 {{%f8, %f5, %f6, %f7}}, [%l1, {whole}];"
        + "shl.b32 %r1, %r1, 2;"
        + f"suld.b.a{dimensions}d.b32.zero %r5, [%l1, {whole}]; mov.b32 %f9, %r5;"
        + at("%l2", "%a1", "%t", 16)
        + "st.global.v4.f32 [%l2], {%f4, %f8, %f9, %f0};"
    )
    module = compile_body(body, 2, device=device, parameters=".param .u64 q, .param .u32 layer")
    points = rng.uniform(0, 4, (32, 2)).astype(np.float32)
    held, out = device.array(points), device.zeros((32, 4), np.float32)
    options = {"filter_mode": "linear" if linear else "point", "address_mode": "clamp"}
    texture = ws.cuda.texture(device.array(texels), layered=True, **options)
    for layer in (0, 1, 2, 7, -1):
        module.kernel("k").launch(1, 32, held, out, texture, layer % 2**32)
        plane = texels[min(max(layer, 0), 2)]
        sampled = [_sampled(plane, p[:dimensions], "clamp", linear, False) for p in points.tolist()]
        got = out.to_host()
        assert got[:, 0] == pytest.approx(sampled, rel=1e-6, abs=1e-7)
        place = tuple(points.astype(int)[:, :dimensions].T[::-1])
        assert np.array_equal(got[:, 1], plane[place])
        assert np.array_equal(got[:, 2], plane[place] if 0 <= layer < 3 else got[:, 2] * 0)
    plain = ws.cuda.texture(device.array(texels), **options)
    with pytest.raises(InputError, match="without layers is accessed as a layered one"):
        module.kernel("k").launch(1, 32, held, out, plain, 0)


#: Direction of a face's middle, of rising s and of rising t (CUDA C++ Programming Guide, "Cubemap
#: Textures": face, m, s, t).
FACES = [
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)),
    ((-1, 0, 0), (0, 0, 1), (0, -1, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 1)),
    ((0, -1, 0), (1, 0, 0), (0, 0, -1)),
    ((0, 0, 1), (1, 0, 0), (0, -1, 0)),
    ((0, 0, -1), (-1, 0, 0), (0, -1, 0)),
]


@pytest.mark.parametrize("layered", [False, True])
def test_cubemaps(layered):
    size = 4
    texels = np.arange(12 * size * size, dtype=np.float32).reshape(12, size, size)
    device = ws.cuda.Device(0.25)
    name, where = ("acube", "%r0, %f0, %f1, %f2") if layered else ("cube", "%f0, %f1, %f2, %f2")
    body = (
        "ld.param.u64 %l1, [q]; mov.u32 %r0, 1;"
        + at("%l0", "%a0", "%g", 16)
        + "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%l0];"
        + f"tex.{name}.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%l1, {{{where}}}];"
        + at("%l2", "%a1", "%g", 4)
        + "st.global.f32 [%l2], %f4;"
    )
    module = compile_body(body, 2, device=device, parameters=".param .u64 q")
    points, expected = [], []
    for face, axes in enumerate(FACES):
        middle, rising_s, rising_t = np.array(axes)
        for row, column in itertools.product(range(size), repeat=2):
            # The middle of a texel, as far from the face's middle as its place says; any length.
            s, t = (2 * column + 1) / size - 1, (2 * row + 1) / size - 1
            points.append([*((middle + s * rising_s + t * rising_t) * (1 + face)), 0])
            expected.append(texels[face + 6 * layered, row, column])
    count = len(points)
    out = device.zeros(count, np.float32)
    texture = ws.cuda.texture(device.array(texels), cube=True)
    held = device.array(np.array(points, np.float32))
    module.kernel("k").launch(count // 32, 32, held, out, texture)
    assert out.to_host().tolist() == expected
    wrong = ws.cuda.texture(device.array(texels), layered=True)
    with pytest.raises(InputError, match="a texture that is not a cubemap is read as one"):
        module.kernel("k").launch(1, 32, held, out, wrong)


def test_shapes_that_are_no_layers():
    device = ws.cuda.Device(0.25)
    with pytest.raises(InputError, match="an array of one dimension has no layers"):
        ws.cuda.texture(device.zeros(6), layered=True)
    with pytest.raises(InputError, match=r"\(5, 4, 4\) is not the shape of cubes"):
        ws.cuda.texture(device.zeros((5, 4, 4)), cube=True)


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
        " call (r), vprintf, (a, b); ld.param.b32 %r1, [r]; }" + SUM + "st.global.u32 [%l30], %r1;"
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
        + SUM
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
        SUM + "ld.global.u32 %r0, [%l30]; setp.ne.u32 %p0, %r0, 0;"
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
        + SUM
        + "st.global.u32 [%l30], %r3; bra end; produce: st.shared.u32 [%l1], %r2; bar.arrive %r1, 96; end:"
    )
    (out,), _ = run(body, per_thread(32), block=128)
    assert (out == sum(range(69, 133))).all()


def test_exited_warps_do_not_keep_barriers_waiting():
    body = "setp.ge.u32 %p0, %t, 40; @%p0 exit; bar.sync 0;" + SUM + "st.global.u32 [%l30], %t;"
    (out,), _ = run(body, per_thread(128), block=128)
    assert out.tolist() == [*range(40), *[0] * 88]
