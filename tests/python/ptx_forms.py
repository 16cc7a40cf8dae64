"""Small PTX modules of one kernel per instruction form, run on arrays of operands."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

import warpstack as ws
from warpstack.errors import InputError

#: Storage of operands: bits, by the width of their type.
BITS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
WIDTHS = {"f16x2": 32, "bf16x2": 32, "tf32": 32, "bf16": 16, "shift": 32, "flag": 32}
THREADS = 64
HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n"


def width_of(kind):
    return WIDTHS.get(kind) or int("".join(c for c in kind if c.isdigit()))


@dataclass
class Form:
    """One kernel: PTX lines on %a, %b, %c, %e that set %d (and %q), and what they must give."""

    lines: str
    inputs: tuple
    outputs: tuple
    reference: object
    same: object = None  # compares (got, expected, *operands); equality of bits without it
    extra: dict = field(default_factory=dict)  # operands by position instead of the usual ones


def edges(kind):
    """Return values of a type on which instructions go wrong."""
    if kind == "flag":
        return [0, 1]
    if kind == "shift":
        return [*range(0, 70, 3), 0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 2**31, 2**32 - 1]
    width = width_of(kind)
    if kind in ("f16x2", "bf16x2"):
        halves = edges(kind[:-2])
        return [a | b << 16 for a, b in zip(halves, reversed(halves), strict=True)]
    if kind[0] in "usb" and kind != "bf16":
        few = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 64, 100, 255]
        top = 1 << (width - 1)
        patterns = [0x55 * (2**width // 255), 0x123456789ABCDEF0]
        return [v % 2**width for v in [*few, top - 1, top, top + 1, -1, -2, -100, *patterns]]
    fraction = {"f16": 10, "bf16": 7, "f32": 23, "tf32": 23, "f64": 52}[kind]
    one = ((1 << (width - 2 - fraction)) - 1) << fraction  # bits of 1.0
    infinite = ((1 << (width - 1 - fraction)) - 1) << fraction
    normal = 1 << fraction
    unit = 1 << fraction
    positive = [0, 1, 2, normal - 1, normal, normal + 1, one - 1, one, one + 1, one - unit]
    positive += [one + unit // 2, one + unit + unit // 4, one + unit + unit // 2]  # 1.5, 2.5, 3
    positive += [one + unit * k for k in (1, 2, 7, 8, 11, 15) if one + unit * k < infinite]
    positive += [one + 31 * unit, one + 32 * unit, one + 63 * unit, one + 64 * unit]
    positive += [one + 31 * unit - 1, one + 7 * unit - 1, one - 15 * unit, one - 25 * unit]
    positive += [infinite - 1, infinite, infinite + 1, infinite | unit >> 1]
    positive = [v for v in positive if 0 <= v < 1 << (width - 1)]
    return positive + [v | 1 << (width - 1) for v in positive]


def random_bits(kind, count, rng):
    if kind == "flag":
        return rng.integers(0, 2, count)
    if kind == "shift":
        return rng.integers(0, 80, count)
    width = width_of(kind)
    bits = rng.integers(0, 2**width, count, dtype=np.uint64)
    # Floats of any exponent seldom meet: half of them are near 1.
    values = rng.normal(0, 4, count)
    near = {"f16": np.float16, "f32": np.float32, "f64": np.float64}.get(kind)
    if near is not None:
        some = values.astype(near).view(BITS[width])
        bits = np.where(rng.random(count) < 0.5, some, bits)
    elif kind == "bf16":
        some = values.astype(np.float32).view(np.uint32) >> 16
        bits = np.where(rng.random(count) < 0.5, some, bits)
    elif kind == "f16x2":
        some = values.astype(np.float16).view(np.uint16).astype(np.uint32)
        bits = np.where(rng.random(count) < 0.5, some | np.roll(some, 1) << 16, bits)
    return bits


def operands(kinds, count, seed):
    """Return an array per operand: all pairs of edges as far as they fit, then random ones."""
    rng = np.random.default_rng(seed)
    corner = [np.array(edges(kind), dtype=np.uint64) for kind in kinds]
    half = count // 2
    columns = []
    if len(kinds) == 1:
        columns.append(np.resize(corner[0], half))
    else:
        picks = rng.permutation(len(corner[0]) * len(corner[1]))
        picks = np.resize(picks, half)
        columns.append(corner[0][picks % len(corner[0])])
        columns.append(corner[1][picks // len(corner[0])])
        columns += [rng.choice(c, half) for c in corner[2:]]
    result = []
    for kind, column, special in zip(kinds, columns, corner, strict=True):
        rest = random_bits(kind, count - half, rng).astype(np.uint64)
        # Some random operands meet an edge in the other operand.
        mixed = np.where(rng.random(count - half) < 0.2, rng.choice(special, count - half), rest)
        result.append(np.concatenate([column, mixed]).astype(BITS[width_of(kind)]))
    return result


def _register(width):
    return {8: ".b16", 16: ".b16", 32: ".b32", 64: ".b64"}[width]


def kernel_text(name, form):
    count = len(form.inputs) + len(form.outputs)
    parameters = ", ".join(f".param .u64 {name}_p{i}" for i in range(count))
    lines = [
        f".visible .entry {name}({parameters})",
        "{",
        ".reg .pred %p<6>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %l<8>;",
        ".reg .b32 %i<4>; .reg .b64 %x<20>;",
        "mov.u32 %i0, %ctaid.x; mov.u32 %i1, %ntid.x; mov.u32 %i2, %tid.x;",
        "mad.lo.u32 %i3, %i0, %i1, %i2;",
    ]
    names = dict(zip("abce", form.inputs, strict=False))
    targets = dict(zip("dq", form.outputs, strict=False))
    for i, (register, kind) in enumerate([*names.items(), *targets.items()]):
        width = width_of(kind)
        lines.append(f".reg {_register(width)} %{register};")
        lines.append(f"ld.param.u64 %x{2 * i}, [{name}_p{i}];")
        lines.append(f"mad.wide.u32 %x{2 * i + 1}, %i3, {width // 8}, %x{2 * i};")
        if register in names:
            sign = "s" if kind[0] == "s" and kind != "shift" else "u"
            lines.append(f"ld.global.{sign}{width} %{register}, [%x{2 * i + 1}];")
    lines.append(form.lines)
    for i, (register, kind) in enumerate(targets.items(), len(names)):
        lines.append(f"st.global.b{width_of(kind)} [%x{2 * i + 1}], %{register};")
    return "\n".join([*lines, "ret;", "}", ""])


def _differs(form, got, expected, arguments):
    if form.same is not None:
        return not form.same(got, expected, *arguments)
    return got != expected


def module_text(forms):
    """Return PTX with a kernel of each form: k0, k1, ..."""
    return HEADER + "".join(kernel_text(f"k{n}", form) for n, form in enumerate(forms))


def check(forms, count=512, *, text_of=module_text, threads=THREADS):
    """Run {name: Form} and raise AssertionError with the first differences of each.

    `text_of` makes a module of the forms; blocks have so many threads.
    """
    text = text_of(forms.values())
    device = ws.cuda.Device(0.25)
    module = ws.cuda.compile(text, device=device)
    assert len(module.kernels) == len(forms)
    problems = []
    cache = {}
    for n, (label, form) in enumerate(forms.items()):
        key = (form.inputs, tuple(form.extra))
        if key not in cache or form.extra:
            values = operands(form.inputs, count, 7 + len(form.inputs))
            for position, special in form.extra.items():
                values[position] = np.resize(np.asarray(special), count).astype(
                    values[position].dtype
                )
            cache[key] = (values, [device.array(v) for v in values])
        values, arrays = cache[key]
        results = [device.zeros(count, BITS[width_of(kind)]) for kind in form.outputs]
        trace = module.kernel(f"k{n}").launch(count // threads, threads, *arrays, *results)
        table = trace._core.instruction_table()
        rows = zip(table["opcode"], table["op_class"], strict=True)
        problems += [
            f"{label}: {opcode} has no class" for opcode, name in rows if name == "unknown"
        ]
        got = list(zip(*(r.to_host().tolist() for r in results), strict=True))
        differences = 0
        for i, arguments in enumerate(zip(*(v.tolist() for v in values), strict=True)):
            expected = form.reference(*arguments)
            expected = expected if isinstance(expected, tuple) else (expected,)
            if any(_differs(form, g, e, arguments) for g, e in zip(got[i], expected, strict=True)):
                if differences == 0:
                    shown = ", ".join(f"{v:#x}" for v in arguments)
                    problems.append(
                        f"{label} ({shown}): got {[hex(g) for g in got[i]]}, "
                        f"expected {[e if isinstance(e, float) else hex(e) for e in expected]}"
                    )
                differences += 1
        if differences > 1:
            problems[-1] += f" and {differences - 1} more of {count}"
    assert not problems, "\n" + "\n".join(problems)


def compile_body(body, num_arrays, *, outside="", device=None, parameters="", directives=""):
    """Return kernel ``k`` with pointers %a0, %a1, …, the thread %t of its block and %g of the grid."""
    pointers = ", ".join(f".param .u64 p{i}" for i in range(num_arrays))
    listed = ", ".join(x for x in (pointers, parameters) if x)
    lines = [
        HEADER,
        outside,
        f".visible .entry k({listed}) {directives}",
        "{",
        ".reg .pred %p<8>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %l<40>;",
        ".reg .f32 %f<20>; .reg .f64 %d<8>; .reg .b64 %a<10>; .reg .b32 %t, %g, %i0, %i1;",
        "mov.u32 %t, %tid.x; mov.u32 %i0, %ctaid.x; mov.u32 %i1, %ntid.x;",
        "mad.lo.u32 %g, %i0, %i1, %t;",
        *(f"ld.param.u64 %a{i}, [p{i}];" for i in range(num_arrays)),
        body,
        "ret;",
        "}",
    ]
    return ws.cuda.compile("\n".join(lines), device=device)


def per_thread(count, dtype=np.uint32):
    """Return the array that kernels of `count` threads write, a value each."""
    return np.zeros(count, dtype)


def at(target, base, index, size):
    """Return PTX that sets a 64-bit register to the address of an element."""
    return f"mad.wide.u32 {target}, {index}, {size}, {base};"


#: Puts the address of the thread's own word of the first array into %l30.
OWN_WORD = at("%l30", "%a0", "%g", 4)


def run(body, *arrays, grid=1, block=32, outside="", arguments=(), device=None, **options):
    """Run a kernel on copies of arrays. Return the arrays after it, and the trace."""
    parameters = options.pop("parameters", "")
    device = device or ws.cuda.Device(0.25)
    module = compile_body(
        body,
        len(arrays),
        outside=outside,
        device=device,
        parameters=parameters,
        directives=options.pop("directives", ""),
    )
    held = [device.array(a) for a in arrays]
    trace = module.kernel("k").launch(grid, block, *held, *arguments, **options)
    return [h.to_host() for h in held], trace


def message_of(body, *arrays, **options):
    """Return the message of the error that a body stops with, without the number of its line."""
    with pytest.raises(InputError) as caught:
        run(body, *(arrays or [np.zeros(32, np.uint32)]), **options)
    return re.sub(r"PTX line \d+", "PTX line N", str(caught.value))


def access_counts(trace, opcode):
    """Return the sectors or wavefronts of each access of instructions that begin so, by warp."""
    table = trace.instructions
    rows = np.flatnonzero(table.opcode.str.startswith(opcode))
    found = []
    for block, (_, warps) in enumerate(trace.blocks()):
        for warp in range(len(warps)):
            columns = trace.warp(block, warp)
            counts = columns["memory_count"][np.isin(columns["memory_static"], rows)]
            found += counts[counts > 0].tolist()
    return found
