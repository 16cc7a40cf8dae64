"""Pairs of floats: masks of comparisons, f32x2, and atomics on vectors."""

import itertools

import numpy as np
import pytest

import machine_forms
import warpstack as ws
from effort import rounds
from ptx_forms import access_counts, at, message_of, operands, run
from python_reference import ptx_arithmetic
from python_reference.narrow import doubles
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas

NO_PTXAS = find_nvdisasm() is None or find_ptxas() is None


def slow(machine):
    return pytest.param(machine, marks=pytest.mark.slow)


def use_machine(name, monkeypatch):
    """Run what ptxas makes of the PTX, unless there is no name."""
    if name is None:
        return
    if NO_PTXAS:
        pytest.skip("ptxas or nvdisasm is not installed")
    monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(name))


# ---- masks ----

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu")
COMPARISONS += ("num", "nan")
ORDERED = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
JOINS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def half_values(words, kind):
    """Return the values of the lower and upper halves."""
    parts = [words & np.uint32(0xFFFF), words >> np.uint32(16)]
    if kind == "f16":
        return [doubles(p.astype(np.uint16).view(np.float16)) for p in parts]
    return [doubles((p << np.uint32(16)).view(np.float32)) for p in parts]


def holds(name, a, b):
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    result = ORDERED[name[:2]](a, b)
    return (result | unordered) if len(name) == 3 else (result & ~unordered)


@pytest.mark.parametrize("machine", [None, "sm_90"])
@pytest.mark.parametrize("join", [None, *JOINS])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_masks_of_pairs(kind, join, machine, monkeypatch):
    use_machine(machine, monkeypatch)
    a, b = (x.astype(np.uint32) for x in operands((f"{kind}x2",) * 2, 512, 3))
    b[::7] = a[::7]
    forms = [(name, result) for name in COMPARISONS for result in ("u32", "s32", f"{kind}x2")]
    body = at("%l0", "%a1", "%g", 4) + "ld.global.b32 %r0, [%l0];"
    body += at("%l1", "%a2", "%g", 4) + "ld.global.b32 %r1, [%l1];"
    body += at("%l2", "%a0", "%g", 4 * len(forms))
    body += "and.b32 %r2, %g, 1; setp.ne.u32 %p0, %r2, 0;"
    for i, (name, result) in enumerate(forms):
        head = f"set.{name}{'.' + join if join else ''}.{result}.{kind}x2"
        body += f"{head} %r3, %r0, %r1{', !%p0' if join else ''};"
        body += f"st.global.b32 [%l2+{4 * i}], %r3;"
    target = np.zeros((512, len(forms)), np.uint32)
    (got, *_), _ = run(body, target, a, b, grid=4, block=128)
    even = np.arange(512) % 2 == 0
    one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    for i, (name, result) in enumerate(forms):
        halves = zip(half_values(a, kind), half_values(b, kind), strict=True)
        masks = [holds(name, x, y) for x, y in halves]
        masks = [JOINS[join](m, even) if join else m for m in masks]
        true = one if "x2" in result else 0xFFFF
        expected = np.where(masks[0], true, 0) | np.where(masks[1], true << 16, 0)
        np.testing.assert_array_equal(got[:, i], expected, err_msg=f"{name}.{result}")


def test_other_results_of_pairs_are_errors():
    for words in ("f32.f16x2", "u16.f16x2", "f16x2.f32"):
        message = message_of(f"set.eq.{words} %r0, %r1, %r2;")
        assert "set has no results of this type for values of that one" in message


# ---- f32x2 ----


@pytest.mark.parametrize("machine", [None, slow("sm_100a"), slow("sm_120a")])
@pytest.mark.parametrize("ftz", [False, True])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_pairs_of_single_precision(name, ftz, machine, monkeypatch):
    use_machine(machine, monkeypatch)
    count = 256
    num_sources = 3 if name == "fma" else 2
    values = operands(("f32",) * num_sources, 2 * count, 5)
    modes = ("rn", "rz", "rm", "rp")
    body = at("%l9", "%a0", "%g", 8 * len(modes))
    for i in range(num_sources):
        body += at("%l0", f"%a{i + 1}", "%g", 8) + f"ld.global.b64 %l{i + 1}, [%l0];"
    sources = ", ".join(f"%l{i + 1}" for i in range(num_sources))
    for i, mode in enumerate(modes):
        body += (
            f"{name}.{mode}{'.ftz' * ftz}.f32x2 %l5, {sources}; st.global.b64 [%l9+{8 * i}], %l5;"
        )
    target = np.zeros((count, len(modes)), np.uint64)
    (got, *_), trace = run(body, target, *values, grid=2, block=128)
    if machine is None:
        rows = trace.instructions[trace.instructions["opcode"].str.startswith(name + ".r")]
        assert rows["op_class"].astype(str).tolist() == ["fp32"] * len(modes)
    words = got.view(np.uint32).reshape(count, len(modes), 2)
    for i, mode in enumerate(modes):
        define = ptx_arithmetic.float_operation(name, "f32", mode=mode, ftz=ftz)
        expected = [define(*row) for row in zip(*(v.tolist() for v in values), strict=True)]
        assert words[:, i].ravel().tolist() == expected, mode


@pytest.mark.parametrize("machine", [None, slow("sm_100a")])
def test_signs_and_orders_of_pairs(machine, monkeypatch):
    """ptxas makes suffixes of the operands of negated, swapped and equal halves."""
    use_machine(machine, monkeypatch)
    rng = np.random.default_rng(1)
    values = rng.normal(size=(64, 3)).astype(np.float32)
    body = at("%l0", "%a1", "%g", 12) + at("%l9", "%a0", "%g", 64)
    body += "ld.global.f32 %f0, [%l0]; ld.global.f32 %f1, [%l0+4]; ld.global.f32 %f2, [%l0+8];"
    body += "neg.f32 %f3, %f0; neg.f32 %f4, %f1; abs.f32 %f5, %f1; neg.f32 %f6, %f2;"
    pairs = [(0, 1), (3, 1), (0, 4), (3, 4), (1, 0), (4, 0), (5, 5), (6, 6)]
    for i, (low, high) in enumerate(pairs):
        body += f"mov.b64 %l1, {{%f{low}, %f{high}}}; mov.b64 %l2, {{%f0, %f2}};"
        body += f"fma.rn.f32x2 %l3, %l1, %l2, %l1; st.global.b64 [%l9+{8 * i}], %l3;"
    (got, _), _ = run(body, np.zeros((64, 16), np.float32), values, block=64)
    a, b, c = values.astype(np.float64).T
    named = [a, b, c, -a, -b, np.abs(b), -c]
    for i, (low, high) in enumerate(pairs):
        # Products and sums of such values are exact enough in double precision.
        expected = [named[low] * a + named[low], named[high] * c + named[high]]
        np.testing.assert_array_equal(got[:, 2 * i : 2 * i + 2].T, np.float32(expected))


def test_other_forms_of_f32x2_are_errors():
    for text in ("add.rn.sat.f32x2 %l0, %l1, %l2", "min.f32x2 %l0, %l1, %l2"):
        assert "this form is not supported" in message_of(text + ";")


# ---- atomics on vectors ----

KINDS = {"f32": (np.float32, 4), "f16": (np.float16, 2), "bf16": (None, 2)}
VECTORS = [("f32", n, "add") for n in (2, 4)]
VECTORS += [
    (kind, n, name)
    for kind, sizes in (
        ("f16", (2, 4, 8)),
        ("bf16", (2, 4, 8)),
        ("f16x2", (2, 4)),
        ("bf16x2", (2, 4)),
    )
    for n, name in itertools.product(sizes, ("add", "min", "max"))
]


def to_bfloat(values):
    """Return the bits of the nearest bfloat16 of numbers that are not too large."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def combined(name, kind, old, new):
    """Return the elements, as bits, after an atomic."""
    if kind == "f32":
        return (old.view(np.float32) + new.view(np.float32)).view(np.uint32)
    operation = {"add": np.add, "min": np.minimum, "max": np.maximum}[name]
    if kind.startswith("f16"):
        return operation(old.view(np.float16), new.view(np.float16)).view(np.uint16)
    a, b = ((x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for x in (old, new))
    return to_bfloat(operation(a, b))


@pytest.mark.parametrize("machine", [None, "sm_90", slow("sm_100")])
@pytest.mark.parametrize("space", ["global", "generic"])
@pytest.mark.parametrize(("kind", "count", "name"), VECTORS)
def test_atomics_on_vectors(kind, count, name, space, machine, monkeypatch):
    use_machine(machine, monkeypatch)
    bits = 32 if kind.endswith(("f32", "x2")) else 16
    bytes_ = count * bits // 8
    rng = np.random.default_rng(count)
    elements = np.uint32 if kind == "f32" else np.uint16
    shape = (64, bytes_ // np.dtype(elements).itemsize)
    values = rng.integers(-64, 64, (2, *shape)) / 4  # of which all sums are exact
    if kind == "f32":
        old, new = (v.astype(np.float32).view(np.uint32) for v in values)
    elif kind.startswith("f16"):
        old, new = (v.astype(np.float16).view(np.uint16) for v in values)
    else:
        old, new = (to_bfloat(v) for v in values)
    letter = {16: "h", 32: "r"}[bits]
    registers = [f"%{letter}{i}" for i in range(count)]
    results = [f"%{letter}{i + count}" for i in range(count)]
    at_own = "".join(at(f"%l{i}", f"%a{i}", "%g", bytes_) for i in range(3))
    loads = "".join(
        f"ld.global.b{bits} {r}, [%l1+{i * bits // 8}];" for i, r in enumerate(registers)
    )
    stores = "".join(
        f"st.global.b{bits} [%l2+{i * bits // 8}], {r};" for i, r in enumerate(results)
    )
    words = f"{'.global' * (space == 'global')}.{name}{'.noftz' * (kind != 'f32')}.v{count}.{kind}"
    vector = "{" + ", ".join(registers) + "}"
    typed = f".reg .{'f32' if kind == 'f32' else 'b' + str(bits)} %x;"
    body = typed + at_own + loads
    if kind == "f32":  # registers of floats
        names = [f"%f{i}" for i in range(count)]
        body += "".join(f"mov.b32 {f}, {r};" for f, r in zip(names, registers, strict=True))
        vector = "{" + ", ".join(names) + "}"
        outs = [f"%f{i + count}" for i in range(count)]
        stores = "".join(f"mov.b32 {r}, {f};" for f, r in zip(outs, results, strict=True)) + stores
    else:
        outs = results
    body += f"atom{words} {{{', '.join(outs)}}}, [%l0], {vector};" + stores
    body += f"red{words} [%l0], {vector};"
    (got, _, seen), trace = run(body, old, new, np.zeros_like(old), grid=2, block=32)
    once = combined(name, kind, old, new)
    np.testing.assert_array_equal(seen, old)
    np.testing.assert_array_equal(got, combined(name, kind, once, new))
    opcode = ("ATOM" if space == "generic" else "ATOMG") if machine else "atom"
    # All bytes of the vector are touched: 32 lanes in sectors of 32 bytes.
    assert access_counts(trace, opcode)[:2] == [bytes_] * 2


@pytest.mark.parametrize("machine", [None, "sm_90"])
def test_lanes_of_one_vector(machine, monkeypatch):
    """All lanes of all blocks add to one float4, as atomicAdd(float4*) does."""
    use_machine(machine, monkeypatch)
    body = "mov.f32 %f0, 0f3F800000; add.f32 %f1, %f0, %f0; add.f32 %f2, %f1, %f0;"
    body += "add.f32 %f3, %f1, %f1; setp.lt.u32 %p0, %t, 30;"
    body += "@%p0 red.relaxed.gpu.global.add.v4.f32 [%a0+16], {%f0, %f1, %f2, %f3};"
    (got,), _ = run(body, np.zeros(12, np.float32), grid=rounds(9), block=64)
    total = 30 * rounds(9)
    assert got.tolist() == [0] * 4 + [total * x for x in (1, 2, 3, 4)] + [0] * 4


def test_vectors_that_do_not_exist_are_errors():
    words = {
        "red.shared.add.v2.f32 [%l0], {%f0, %f1}": "atomics on vectors are of global memory",
        "red.global.min.v2.f32 [%l0], {%f0, %f1}": "there is no .min of vectors of its type",
        "red.global.add.v8.f32 [%l0], {%f0, %f1}": "vectors of eight are of f16 and bf16",
        "red.global.add.v2.u32 [%l0], {%r0, %r1}": "atomics on vectors have floats",
        "red.global.add.v2.f16 [%l0], {%h0, %h1}": "it needs .noftz",
        "red.global.add.v4.f32 [%l0], {%f0, %f1}": "it has too few or many registers",
        "red.global.add.v2.f32 [%l0], %f1": "it has too few or many registers",
        "red.global.min.noftz.f16 [%l0], %h1": "this atomic operation is not supported",
    }
    for text, reason in words.items():
        assert reason in message_of(text + ";"), text


def test_a_vector_must_be_aligned():
    message = message_of("red.global.add.v4.f32 [%a0+8], {%f0, %f1, %f2, %f3};")
    assert "16 bytes" in message


# ---- the pipe of conversions ----


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_conversions_of_pairs_take_the_pipe_of_half_precision(kind):
    source = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b64 %rd<2>; .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .b16 %h<2>;\n"
        "ld.param.u64 %rd1, [out]; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;\n"
        f"cvt.rn.{kind}.f32 %r1, %f1, %f2; cvt.rn.{kind[:-2]}.f32 %h1, %f1;\n"
        "st.global.u32 [%rd1], %r1; st.global.u16 [%rd1+4], %h1; ret;\n}\n"
    )
    out = ws.cuda.zeros(2, np.uint32)
    rows = ws.cuda.compile(source).kernel("k").launch(1, 32, out).instructions
    classes = dict(zip(rows.opcode, rows.op_class, strict=True))
    assert classes[f"cvt.rn.{kind}.f32"] == "fp16"  # F2FP
    assert classes[f"cvt.rn.{kind[:-2]}.f32"] == "sfu"
