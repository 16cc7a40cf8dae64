"""Each form of PTX's instructions on integers, and comparisons, against a plain definition.

The values are edges and random bits; test_ptx_floats.py does the same for floats and conversions.

The definitions are in python_reference/ptx_arithmetic.py and here; what they say is in NVIDIA's "Parallel
Thread Execution ISA", the section of the instruction.
"""

import itertools
import re

import numpy as np
import pytest

from ptx_forms import Form, check
from python_reference.ptx_arithmetic import (
    FORMATS,
    as_float,
    flush,
    is_signed,
    signed,
    value_of,
    width_of,
)
from warpstack.errors import InputError

INTEGERS = [f"{kind}{width}" for width in (16, 32, 64) for kind in "us"]


def mask(kind):
    return (1 << width_of(kind)) - 1


def on_values(kind, f, result=None):
    """Return `f` of integers as a function of bits."""
    low = mask(result or kind)
    return lambda *bits: f(*(value_of(b, kind) for b in bits)) & low


# ---- integers ----


def truncated(a, b):
    """Quotient towards zero."""
    return -(abs(a) // abs(b)) if (a < 0) != (b < 0) else abs(a) // abs(b)


def test_integer_arithmetic():
    forms = {}
    for t in INTEGERS:
        w = width_of(t)
        low, high = (-(1 << (w - 1)), (1 << (w - 1)) - 1) if is_signed(t) else (0, mask(t))
        assert low < high
        two = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul.lo": lambda a, b: a * b,
            "mul.hi": lambda a, b, w=w: (a * b) >> w,
            "min": min,
            "max": max,
            # The ISA leaves division by zero open; these are what the hardware's sequences give.
            "div": lambda a, b: -1 if b == 0 else truncated(a, b),
            "rem": lambda a, b: a if b == 0 else a - b * truncated(a, b),
        }
        for name, f in two.items():
            forms[f"{name}.{t}"] = Form(f"{name}.{t} %d, %a, %b;", (t, t), (t,), on_values(t, f))
        three = {
            "mad.lo": lambda a, b, c: a * b + c,
            "mad.hi": lambda a, b, c, w=w: ((a * b) >> w) + c,
            "sad": lambda a, b, c: c + abs(a - b),
        }
        for name, f in three.items():
            forms[f"{name}.{t}"] = Form(
                f"{name}.{t} %d, %a, %b, %c;", (t, t, t), (t,), on_values(t, f)
            )
        if w < 64:
            wide = f"{t[0]}{2 * w}"
            forms[f"mul.wide.{t}"] = Form(
                f"mul.wide.{t} %d, %a, %b;", (t, t), (wide,), on_values(t, lambda a, b: a * b, wide)
            )
            forms[f"mad.wide.{t}"] = Form(
                f"mad.wide.{t} %d, %a, %b, %c;",
                (t, t, wide),
                (wide,),
                lambda a, b, c, t=t, wide=wide: (value_of(a, t) * value_of(b, t) + c) & mask(wide),
            )
        if is_signed(t):
            for name, f in {"abs": abs, "neg": lambda a: -a}.items():
                forms[f"{name}.{t}"] = Form(f"{name}.{t} %d, %a;", (t,), (t,), on_values(t, f))
    for t in ("u32", "s32"):

        def low_24(v, t=t):
            return signed(v, 24) if is_signed(t) else v & 0xFFFFFF

        for part, shift in (("lo", 0), ("hi", 16)):
            forms[f"mul24.{part}.{t}"] = Form(
                f"mul24.{part}.{t} %d, %a, %b;",
                (t, t),
                (t,),
                lambda a, b, f=low_24, s=shift: (f(a) * f(b) >> s) & 0xFFFFFFFF,
            )
            forms[f"mad24.{part}.{t}"] = Form(
                f"mad24.{part}.{t} %d, %a, %b, %c;",
                (t, t, t),
                (t,),
                lambda a, b, c, f=low_24, s=shift: ((f(a) * f(b) >> s) + c) & 0xFFFFFFFF,
            )

    def held(value):
        return max(-(2**31), min(value, 2**31 - 1))

    forms["add.sat"] = Form(
        "add.sat.s32 %d, %a, %b;",
        ("s32", "s32"),
        ("s32",),
        on_values("s32", lambda a, b: held(a + b)),
    )
    forms["sub.sat"] = Form(
        "sub.sat.s32 %d, %a, %b;",
        ("s32", "s32"),
        ("s32",),
        on_values("s32", lambda a, b: held(a - b)),
    )
    forms["mad.hi.sat"] = Form(
        "mad.hi.sat.s32 %d, %a, %b, %c;",
        ("s32", "s32", "s32"),
        ("s32",),
        on_values("s32", lambda a, b, c: held((a * b >> 32) + c)),
    )
    for name, f in {"min": min, "max": max}.items():
        forms[f"{name}.relu.s32"] = Form(
            f"{name}.relu.s32 %d, %a, %b;",
            ("s32", "s32"),
            ("s32",),
            on_values("s32", lambda a, b, f=f: max(f(a, b), 0)),
        )
    check(forms)


def test_immediate_operands():
    """Constants of every notation, on either side."""
    u32 = ("u32",)
    check(
        {
            "decimal": Form("add.s32 %d, %a, -7;", u32, u32, lambda a: (a - 7) & 0xFFFFFFFF),
            "left": Form("sub.s32 %d, 5, %a;", u32, u32, lambda a: (5 - a) & 0xFFFFFFFF),
            "hexadecimal": Form("xor.b32 %d, %a, 0xF0;", u32, u32, lambda a: a ^ 0xF0),
            "binary": Form("and.b32 %d, %a, 0b1010;", u32, u32, lambda a: a & 10),
            "octal": Form("or.b32 %d, %a, 017;", u32, u32, lambda a: a | 15),
            "f32": Form("mov.f32 %d, 0f3F800000;", u32, u32, lambda _: 0x3F800000),
            "f64 for f32": Form("mov.f32 %d, 0d3FF8000000000000;", u32, u32, lambda _: 0x3FC00000),
            "f64": Form("mov.f64 %d, 0dC000000000000000;", u32, ("f64",), lambda _: 0xC << 60),
            "negative 64": Form("mov.u64 %d, -1;", u32, ("u64",), lambda _: 2**64 - 1),
            "expression": Form(
                "add.u32 %d, %a, (3 + 4) * 2;", u32, u32, lambda a: (a + 14) % 2**32
            ),
        },
        128,
    )


def test_carry_chains():
    forms = {}
    for w in (32, 64):
        t, double = f"u{w}", 2 * w

        def chain(f, w=w, double=double):
            def reference(a, b, c, e):
                value = f(a | b << w, c | e << w) & ((1 << double) - 1)
                return value & ((1 << w) - 1), value >> w

            return reference

        forms[f"add.{t}"] = Form(
            f"add.cc.{t} %d, %a, %c; addc.{t} %q, %b, %e;",
            (t,) * 4,
            (t, t),
            chain(lambda x, y: x + y),
        )
        forms[f"sub.{t}"] = Form(
            f"sub.cc.{t} %d, %a, %c; subc.{t} %q, %b, %e;",
            (t,) * 4,
            (t, t),
            chain(lambda x, y: x - y),
        )
        # Three words: the carry through the middle one.
        forms[f"addc.cc.{t}"] = Form(
            f"add.cc.{t} %d, %a, %c; addc.cc.{t} %d, %b, %e; addc.{t} %q, 0, 0;",
            (t,) * 4,
            (t, t),
            lambda a, b, c, e, w=w: (
                ((a | b << w) + (c | e << w)) >> w & ((1 << w) - 1),
                ((a | b << w) + (c | e << w)) >> double_of(w),
            ),
        )
        forms[f"subc.cc.{t}"] = Form(
            f"sub.cc.{t} %d, %a, %c; subc.cc.{t} %d, %b, %e; subc.{t} %q, 0, 0;",
            (t,) * 4,
            (t, t),
            lambda a, b, c, e, w=w: (
                ((a | b << w) - (c | e << w)) >> w & ((1 << w) - 1),
                -((a | b << w) < (c | e << w)) & ((1 << w) - 1),
            ),
        )
        # After a subtraction the flag is a carry: 1 without a borrow (see test_sass_threads.py, too).
        forms[f"sub.cc, addc.{t}"] = Form(
            f"sub.cc.{t} %d, %a, %c; addc.{t} %q, %b, %e;",
            (t,) * 4,
            (t, t),
            lambda a, b, c, e, w=w: (
                (a - c) & ((1 << w) - 1),
                (b + e + (a >= c)) & ((1 << w) - 1),
            ),
        )
        forms[f"add.cc, subc.{t}"] = Form(
            f"add.cc.{t} %d, %a, %c; subc.{t} %q, %b, %e;",
            (t,) * 4,
            (t, t),
            lambda a, b, c, e, w=w: (
                (a + c) & ((1 << w) - 1),
                (b - e - 1 + (a + c >> w)) & ((1 << w) - 1),
            ),
        )
        # a * b + (c, e), in two words.
        forms[f"mad.{t}"] = Form(
            f"mad.lo.cc.{t} %d, %a, %b, %c; madc.hi.{t} %q, %a, %b, %e;",
            (t,) * 4,
            (t, t),
            lambda a, b, c, e, w=w: (
                (a * b + (c | e << w)) & ((1 << w) - 1),
                (a * b + (c | e << w)) >> w & ((1 << w) - 1),
            ),
        )
    forms["madc.lo.cc.u32"] = Form(
        "add.cc.u32 %d, %a, %b; madc.lo.cc.u32 %d, %a, %c, %e; addc.u32 %q, 0, 0;",
        ("u32",) * 4,
        ("u32", "u32"),
        lambda a, b, c, e: (
            ((a * c & 0xFFFFFFFF) + e + (a + b >> 32)) & 0xFFFFFFFF,
            ((a * c & 0xFFFFFFFF) + e + (a + b >> 32)) >> 32,
        ),
    )
    check(forms)


def double_of(width):
    return 2 * width


def test_logic_and_shifts():
    forms = {}
    for w in (16, 32, 64):
        b, full = f"b{w}", (1 << w) - 1
        for name, f in {
            "and": lambda x, y: x & y,
            "or": lambda x, y: x | y,
            "xor": lambda x, y: x ^ y,
        }.items():
            forms[f"{name}.{b}"] = Form(f"{name}.{b} %d, %a, %b;", (b, b), (b,), f)
        forms[f"not.{b}"] = Form(f"not.{b} %d, %a;", (b,), (b,), lambda x, m=full: x ^ m)
        forms[f"cnot.{b}"] = Form(f"cnot.{b} %d, %a;", (b,), (b,), lambda x: int(x == 0))
        forms[f"shl.{b}"] = Form(
            f"shl.{b} %d, %a, %b;",
            (b, "shift"),
            (b,),
            lambda x, n, w=w, m=full: 0 if n >= w else x << n & m,
        )
        for t in (f"u{w}", b):
            forms[f"shr.{t}"] = Form(
                f"shr.{t} %d, %a, %b;",
                (t, "shift"),
                (t,),
                lambda x, n, w=w: 0 if n >= w else x >> n,
            )
        forms[f"shr.s{w}"] = Form(
            f"shr.s{w} %d, %a, %b;",
            (f"s{w}", "shift"),
            (b,),
            lambda x, n, w=w, m=full: signed(x, w) >> min(n, w - 1) & m,
        )

    def funnel(left, clamp):
        def reference(a, b, n):
            n = min(n, 32) if clamp else n & 31
            both = b << 32 | a
            return (both << n >> 32 if left else both >> n) & 0xFFFFFFFF

        return reference

    for left, clamp in itertools.product((True, False), repeat=2):
        name = f"shf.{'l' if left else 'r'}.{'clamp' if clamp else 'wrap'}.b32"
        forms[name] = Form(
            f"{name} %d, %a, %b, %c;", ("b32", "b32", "shift"), ("b32",), funnel(left, clamp)
        )
    for name in ("and", "or", "xor"):
        f = {
            "and": lambda x, y: x & y,
            "or": lambda x, y: x | y,
            "xor": lambda x, y: x ^ y,
        }[name]
        forms[f"{name}.pred"] = Form(
            f"setp.ne.u32 %p0, %a, 0; setp.ne.u32 %p1, %b, 0; {name}.pred %p2, %p0, %p1;"
            "selp.u32 %d, 1, 0, %p2;",
            ("flag", "flag"),
            ("u32",),
            f,
        )
    forms["not.pred"] = Form(
        "setp.ne.u32 %p0, %a, 0; not.pred %p1, %p0; selp.u32 %d, 1, 0, %p1;",
        ("flag",),
        ("u32",),
        lambda a: 1 - a,
    )
    check(forms)


@pytest.mark.parametrize("first", range(0, 256, 64))
def test_lop3(first):
    """All tables: bit (a, b, c) of the result is the table's bit 4a + 2b + c."""

    def reference(table):
        def apply(a, b, c):
            result = 0
            for row in range(8):
                if table >> row & 1:
                    x = a if row & 4 else ~a
                    y = b if row & 2 else ~b
                    result |= x & y & (c if row & 1 else ~c)
            return result & 0xFFFFFFFF

        return apply

    check(
        {
            f"lop3 {table}": Form(
                f"lop3.b32 %d, %a, %b, %c, {table};", ("b32",) * 3, ("b32",), reference(table)
            )
            for table in range(first, first + 64)
        },
        64,
    )


def test_lop3_with_predicate():
    forms = {}
    for join, f in {"or": lambda x, y: x | y, "and": lambda x, y: x & y}.items():
        forms[join] = Form(
            f"setp.ne.u32 %p0, %e, 0; lop3.{join}.b32 %d|%p1, %a, %b, %c, 0x80, %p0;"
            "selp.u32 %q, 1, 0, %p1;",
            ("b32", "b32", "b32", "flag"),
            ("b32", "u32"),
            lambda a, b, c, e, f=f: (a & b & c, f(int(a & b & c != 0), e)),
        )
    check(forms)


def test_bit_fields_and_counts():
    forms = {}
    for t in ("u32", "s32", "u64", "s64"):
        w = width_of(t)

        def extract(a, b, c, t=t, w=w):
            position, length = b & 255, c & 255
            sign = 0
            if is_signed(t) and length:
                sign = a >> min(position + length - 1, w - 1) & 1
            bits = [
                (a >> (position + i) & 1) if i < length and position + i < w else sign
                for i in range(w)
            ]
            return sum(bit << i for i, bit in enumerate(bits))

        forms[f"bfe.{t}"] = Form(f"bfe.{t} %d, %a, %b, %c;", (t, "shift", "shift"), (t,), extract)

        def leading(a, t=t, w=w):
            if signed(a, w) < 0 and is_signed(t):
                a ^= mask(t)
            return a.bit_length() - 1 if a else 0xFFFFFFFF

        forms[f"bfind.{t}"] = Form(f"bfind.{t} %d, %a;", (t,), ("u32",), leading)
        forms[f"bfind.shiftamt.{t}"] = Form(
            f"bfind.shiftamt.{t} %d, %a;",
            (t,),
            ("u32",),
            lambda a, f=leading, w=w: f(a) if f(a) == 0xFFFFFFFF else w - 1 - f(a),
        )
    for w in (32, 64):
        b = f"b{w}"

        def insert(a, b, c, e, w=w):
            for i in range(e & 255):
                if (c & 255) + i < w:
                    place = 1 << ((c & 255) + i)
                    b = b | place if a >> i & 1 else b & ~place
            return b

        forms[f"bfi.{b}"] = Form(
            f"bfi.{b} %d, %a, %b, %c, %e;", (b, b, "shift", "shift"), (b,), insert
        )
        forms[f"popc.{b}"] = Form(f"popc.{b} %d, %a;", (b,), ("u32",), int.bit_count)
        forms[f"clz.{b}"] = Form(
            f"clz.{b} %d, %a;", (b,), ("u32",), lambda a, w=w: w - a.bit_length()
        )
        forms[f"brev.{b}"] = Form(
            f"brev.{b} %d, %a;", (b,), (b,), lambda a, w=w: int(f"{a:0{w}b}"[::-1], 2)
        )

    def bit_mask(clamp):
        def reference(a, b):
            if not clamp:
                a, b = a & 31, b & 31
            return 0 if a >= 32 else ((1 << min(b, 32)) - 1) << a & 0xFFFFFFFF

        return reference

    def extend(t, clamp):
        def reference(a, n):
            n = n if clamp else n & 31
            if n >= 32:
                return a
            low = a & ((1 << n) - 1)
            negative = t == "s32" and n and low >> (n - 1)
            return (low - (1 << n) if negative else low) & 0xFFFFFFFF

        return reference

    for clamp in (True, False):
        name = "clamp" if clamp else "wrap"
        forms[f"bmsk.{name}"] = Form(
            f"bmsk.{name}.b32 %d, %a, %b;", ("shift", "shift"), ("b32",), bit_mask(clamp)
        )
        for t in ("u32", "s32"):
            forms[f"szext.{name}.{t}"] = Form(
                f"szext.{name}.{t} %d, %a, %b;", (t, "shift"), (t,), extend(t, clamp)
            )

    def nth_set(bits, base, offset):
        offset = signed(offset, 32)
        if offset == 0:
            return base if bits >> base & 1 else 0xFFFFFFFF
        left, step = abs(offset), 1 if offset > 0 else -1
        position = base
        while 0 <= position < 32:
            left -= bits >> position & 1
            if left == 0 and bits >> position & 1:
                return position
            position += step
        return 0xFFFFFFFF

    rng = np.random.default_rng(3)
    forms["fns"] = Form(
        "fns.b32 %d, %a, %b, %c;",
        ("b32", "u32", "s32"),
        ("b32",),
        nth_set,
        extra={1: rng.integers(0, 32, 512), 2: rng.integers(-9, 9, 512) & 0xFFFFFFFF},
    )
    forms["fns far"] = Form(
        "fns.b32 %d, %a, 3, %b;", ("b32", "s32"), ("b32",), lambda a, b: nth_set(a, 3, b)
    )
    check(forms)


def test_permute():
    def pick(both, selector):
        byte = both >> 8 * (selector & 7) & 255
        return (255 if byte & 128 else 0) if selector & 8 else byte

    tables = {  # selectors of the bytes, low one first, by the last operand's low bits
        "": lambda c: [c >> 4 * i & 15 for i in range(4)],
        ".f4e": lambda c: [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]][c & 3],
        ".b4e": lambda c: [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]][c & 3],
        ".rc8": lambda c: [c & 3] * 4,
        ".ecl": lambda c: [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]][c & 3],
        ".ecr": lambda c: [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]][c & 3],
        ".rc16": lambda c: [[0, 1, 0, 1], [2, 3, 2, 3]][c & 1],
    }
    check(
        {
            f"prmt{mode}": Form(
                f"prmt.b32{mode} %d, %a, %b, %c;",
                ("b32",) * 3,
                ("b32",),
                lambda a, b, c, f=f: sum(pick(a | b << 32, s) << 8 * i for i, s in enumerate(f(c))),
            )
            for mode, f in tables.items()
        }
    )


def test_dot_products():
    forms = {}
    for t, u in itertools.product(("u32", "s32"), repeat=2):

        def parts(v, kind, width):
            count = 32 // width
            fields = [v >> width * i & ((1 << width) - 1) for i in range(count)]
            return [signed(x, width) if kind == "s32" else x for x in fields]

        forms[f"dp4a.{t}.{u}"] = Form(
            f"dp4a.{t}.{u} %d, %a, %b, %c;",
            (t, u, "b32"),
            ("b32",),
            lambda a, b, c, t=t, u=u: (
                (sum(x * y for x, y in zip(parts(a, t, 8), parts(b, u, 8), strict=True)) + c)
                & 0xFFFFFFFF
            ),
        )
        for half in ("lo", "hi"):
            forms[f"dp2a.{half}.{t}.{u}"] = Form(
                f"dp2a.{half}.{t}.{u} %d, %a, %b, %c;",
                (t, u, "b32"),
                ("b32",),
                lambda a, b, c, t=t, u=u, k=2 * (half == "hi"): (
                    (
                        sum(
                            x * y
                            for x, y in zip(parts(a, t, 16), parts(b, u, 8)[k : k + 2], strict=True)
                        )
                        + c
                    )
                    & 0xFFFFFFFF
                ),
            )
    check(forms)


# ---- comparisons ----

COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
FLOAT_COMPARISONS = {
    **COMPARISONS,
    **{
        f"{name}u": lambda a, b, f=f: f(a, b) or a != a or b != b for name, f in COMPARISONS.items()
    },
    "num": lambda a, b: a == a and b == b,
    "nan": lambda a, b: a != a or b != b,
}


def comparisons(t):
    """Return {name: function of bits} of a type."""
    if t in FORMATS:
        return {
            name: (lambda a, b, f=f: f(as_float(a, t), as_float(b, t)))
            for name, f in FLOAT_COMPARISONS.items()
        }
    found = COMPARISONS
    if t[0] == "b":
        found = {name: COMPARISONS[name] for name in ("eq", "ne")}
    return {
        name: (lambda a, b, f=f: f(value_of(a, t), value_of(b, t))) for name, f in found.items()
    }


def test_setp():
    forms = {}
    for t in [*INTEGERS, "b16", "b32", "b64", *FORMATS]:
        for name, f in comparisons(t).items():
            forms[f"setp.{name}.{t}"] = Form(
                f"setp.{name}.{t} %p0, %a, %b; selp.u32 %d, 1, 0, %p0;",
                (t, t),
                ("u32",),
                lambda a, b, f=f: int(f(a, b)),
            )
    for name, other in {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.items():
        forms[f"setp.{name}.u32"] = Form(
            f"setp.{name}.u32 %p0, %a, %b; selp.u32 %d, 1, 0, %p0;",
            ("u32", "u32"),
            ("u32",),
            lambda a, b, f=COMPARISONS[other]: int(f(a, b)),
        )
    for name, f in comparisons("f32").items():
        forms[f"setp.{name}.ftz.f32"] = Form(
            f"setp.{name}.ftz.f32 %p0, %a, %b; selp.u32 %d, 1, 0, %p0;",
            ("f32", "f32"),
            ("u32",),
            lambda a, b, f=f: int(f(flush(a, "f32"), flush(b, "f32"))),
        )
    check(forms, 256)


JOINS = {
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "xor": lambda x, y: x != y,
}


def test_setp_with_two_results_and_combination():
    forms = {}
    for t, name in itertools.product(("s32", "f32", "u64"), ("lt", "ge")):
        f = comparisons(t)[name]
        forms[f"setp.{name}.{t} p|q"] = Form(
            f"setp.{name}.{t} %p0|%p1, %a, %b; selp.u32 %d, 1, 0, %p0; selp.u32 %q, 1, 0, %p1;",
            (t, t),
            ("u32", "u32"),
            lambda a, b, f=f: (int(f(a, b)), int(not f(a, b))),
        )
        for join, negated in itertools.product(JOINS, ("", "!")):
            g = JOINS[join]
            forms[f"setp.{name}.{join}{negated}.{t}"] = Form(
                f"setp.ne.u32 %p2, %c, 0; setp.{name}.{join}.{t} %p0|%p1, %a, %b, {negated}%p2;"
                "selp.u32 %d, 1, 0, %p0; selp.u32 %q, 1, 0, %p1;",
                (t, t, "flag"),
                ("u32", "u32"),
                lambda a, b, c, f=f, g=g, n=bool(negated): (
                    int(g(f(a, b), bool(c) != n)),
                    int(g(not f(a, b), bool(c) != n)),
                ),
            )
            forms[f"setp.{name}.{join}{negated}.{t} own"] = Form(
                f"setp.ne.u32 %p2, %c, 0; setp.{name}.{join}.{t} %p2, %a, %b, {negated}%p2;"
                "selp.u32 %d, 1, 0, %p2;",
                (t, t, "flag"),
                ("u32",),
                lambda a, b, c, f=f, g=g, n=bool(negated): int(g(f(a, b), bool(c) != n)),
            )
    # The second result only.
    forms["sink"] = Form(
        "setp.lt.s32 _|%p1, %a, %b; selp.u32 %d, 1, 0, %p1;",
        ("s32", "s32"),
        ("u32",),
        lambda a, b: int(signed(a, 32) >= signed(b, 32)),
    )
    check(forms, 256)


def test_set():
    forms = {}
    results = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000}
    for result, yes in results.items():
        for t in ("u32", "s32", "s64", "u16", "f32", "f64", "f16"):
            for name in ("eq", "ne", "lt", "ge"):
                f = comparisons(t)[name]
                forms[f"set.{name}.{result}.{t}"] = Form(
                    f"set.{name}.{result}.{t} %d, %a, %b;",
                    (t, t),
                    (result,),
                    lambda a, b, f=f, yes=yes: yes if f(a, b) else 0,
                )
    for kind, yes in {"f16": 0x3C00, "bf16": 0x3F80}.items():
        f = comparisons(kind)["gtu"]
        forms[f"set.gtu.{kind}"] = Form(
            f"set.gtu.{kind}.{kind} %d, %a, %b;",
            (kind, kind),
            (kind,),
            lambda a, b, f=f, yes=yes: yes if f(a, b) else 0,
        )
    for join, g in JOINS.items():
        f = comparisons("s32")["le"]
        forms[f"set.le.{join}"] = Form(
            f"setp.ne.u32 %p0, %c, 0; set.le.{join}.u32.s32 %d, %a, %b, !%p0;",
            ("s32", "s32", "flag"),
            ("u32",),
            lambda a, b, c, f=f, g=g: 0xFFFFFFFF if g(f(a, b), not c) else 0,
        )
    check(forms, 256)


def test_comparisons_of_packed_floats():
    forms = {}
    for kind, ftz in (("f16", ""), ("f16", ".ftz"), ("bf16", "")):
        one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
        pair = f"{kind}x2"
        for name, f in comparisons(kind).items():

            def halves(a, b, f=f, kind=kind, z=bool(ftz)):
                pairs = ((a & 0xFFFF, b & 0xFFFF), (a >> 16, b >> 16))
                return [f(*(flush(x, kind) if z else x for x in p)) for p in pairs]

            forms[f"set.{name}{ftz}.{pair}"] = Form(
                f"set.{name}{ftz}.{pair}.{pair} %d, %a, %b;",
                (pair, pair),
                (pair,),
                lambda a, b, f=halves, one=one: sum(
                    one << 16 * i for i, x in enumerate(f(a, b)) if x
                ),
            )
            forms[f"setp.{name}{ftz}.{pair}"] = Form(
                f"setp.{name}{ftz}.{pair} %p0|%p1, %a, %b; selp.u32 %d, 1, 0, %p0;"
                "selp.u32 %q, 1, 0, %p1;",
                (pair, pair),
                ("u32", "u32"),
                lambda a, b, f=halves: tuple(map(int, f(a, b))),
            )
            forms[f"setp.{name}.xor{ftz}.{pair}"] = Form(
                f"setp.ne.u32 %p0, %c, 0; setp.{name}.xor{ftz}.{pair} %p0|%p1, %a, %b, %p0;"
                "selp.u32 %d, 1, 0, %p0; selp.u32 %q, 1, 0, %p1;",
                (pair, pair, "flag"),
                ("u32", "u32"),
                lambda a, b, c, f=halves: tuple(int(x != bool(c)) for x in f(a, b)),
            )
    for name, f in comparisons("f16").items():
        forms[f"setp.{name}.ftz.f16"] = Form(
            f"setp.{name}.ftz.f16 %p0, %a, %b; selp.u32 %d, 1, 0, %p0;",
            ("f16", "f16"),
            ("u32",),
            lambda a, b, f=f: int(f(flush(a, "f16"), flush(b, "f16"))),
        )
    check(forms, 256)


def test_selp_and_slct():
    forms = {}
    for t in ("b16", "u16", "b32", "f32", "s64", "f64"):
        forms[f"selp.{t}"] = Form(
            f"setp.ne.u32 %p0, %c, 0; selp.{t} %d, %a, %b, %p0;",
            (t, t, "flag"),
            (t,),
            lambda a, b, c: a if c else b,
        )
    for t in ("b32", "f32", "u64"):
        forms[f"slct.{t}.s32"] = Form(
            f"slct.{t}.s32 %d, %a, %b, %c;",
            (t, t, "s32"),
            (t,),
            lambda a, b, c: a if signed(c, 32) >= 0 else b,
        )
        for ftz in ("", ".ftz"):
            forms[f"slct{ftz}.{t}.f32"] = Form(
                f"slct{ftz}.{t}.f32 %d, %a, %b, %c;",
                (t, t, "f32"),
                (t,),
                lambda a, b, c, z=bool(ftz): (
                    a if as_float(flush(c, "f32") if z else c, "f32") >= 0 else b
                ),
            )
    check(forms, 256)


def test_other_modifiers_are_errors():
    """A modifier that is not simulated is an error, not ignored."""
    for text in ("cvt.rm.satfinite.f16.f32", "cvt.rp.tf32.f32", "sin.approx.sat.f32"):
        target = "f16" if ".f16." in text else "f32"
        form = Form(f"{text} %d, %a;", ("f32",), (target,), lambda a: a)
        with pytest.raises(InputError, match=f"cannot simulate {re.escape(text)}: "):
            check({text: form})
