"""Loads and stores, atomics and asynchronous copies of the PTX interpreter."""

import struct

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import BITS, HEADER, OWN_WORD, at, compile_body, per_thread, run, width_of
from python_reference.ptx_arithmetic import float_operation, flush, signed
from warpstack.errors import InputError

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
        + OWN_WORD
        + "st.global.u32 [%l30], %r3;"
    )
    (out,), _ = run(body, per_thread(128), block=64, grid=2)
    assert out.tolist() == [100 * g + g % 32 for g in range(128)]


def test_dynamic_shared_memory():
    body = (
        "mov.u64 %l0, dyn; mad.wide.u32 %l1, %t, 4, %l0; st.shared.u32 [%l1], %t; bar.sync 0;"
        "xor.b32 %r0, %t, 63; mad.wide.u32 %l2, %r0, 4, %l0; ld.shared.u32 %r1, [%l2];"
        "mov.u32 %r2, %dynamic_smem_size; add.u32 %r1, %r1, %r2;"
        + OWN_WORD
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
        + OWN_WORD
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
        # Copies of no bytes, which fill with zeros, read nothing.
        touched = trace.warp(0, 0)["memory_count"][0]
        assert touched == (0 if partial == 0 else size)  # 32 bytes each


@pytest.mark.parametrize("sizes", [(0, 16), (16,), (0, 3, 16, 20)])
@pytest.mark.parametrize("apart", [1, 7])
@pytest.mark.parametrize("active", [32, 21])
def test_cp_async_lanes_that_read_different_sizes(sizes, apart, active):
    rng = np.random.default_rng(len(sizes))
    data = rng.integers(1, 256, 32 * 16, dtype=np.uint8)
    other = rng.integers(1, 256, 32 * 16, dtype=np.uint8)
    wanted = rng.choice(sizes, 32).astype(np.uint32)
    # Lane i writes place i * apart % 32; lanes that copy nothing leave what was there.
    body = (
        ".shared .align 16 .b8 s[512]; mov.u64 %l0, s;"
        f"mul.lo.u32 %r5, %t, {apart}; and.b32 %r5, %r5, 31;"
        "mad.wide.u32 %l1, %r5, 16, %l0; mad.wide.u32 %l2, %t, 16, %a0;"
        "mad.wide.u32 %l4, %t, 16, %a1; mad.wide.u32 %l5, %t, 16, %l0;"
        "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%l4];"
        "st.shared.v4.u32 [%l5], {%r0, %r1, %r2, %r3};"
        "mad.wide.u32 %l6, %t, 4, %a2; ld.global.u32 %r4, [%l6]; bar.sync 0;"
        f"setp.lt.u32 %p0, %t, {active};"
        "@%p0 cp.async.cg.shared.global [%l1], [%l2], 16, %r4; cp.async.wait_all; bar.sync 0;"
        "mad.wide.u32 %l3, %t, 16, %a3;"
        "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%l5];"
        "st.global.v4.u32 [%l3], {%r0, %r1, %r2, %r3};"
    )
    (*_, out), trace = run(body, data, other, wanted, np.zeros(512, np.uint8))
    expected = other.reshape(32, 16).copy()
    for lane in range(active):
        count = min(wanted[lane], 16)
        expected[lane * apart % 32] = 0
        expected[lane * apart % 32, :count] = data[16 * lane : 16 * lane + count]
    assert (out.reshape(32, 16) == expected).all()
    table = trace.instructions
    (copy,) = np.flatnonzero(table["opcode"].str.startswith("cp.async.cg"))
    columns = trace.warp(0, 0)
    count = np.asarray(columns["memory_count"])[np.asarray(columns["memory_static"]) == copy]
    assert count.tolist() == [len({lane // 2 for lane in range(active) if wanted[lane] > 0})]
