"""Each form of PTX's instructions on floats, and conversions, against a plain definition.

The values are edges and random bits; test_ptx_instructions.py does the same for integers.
"""

import itertools
import math

import numpy as np
import pytest

from ptx_forms import Form, check
from python_reference.ptx_arithmetic import (
    FORMATS,
    NAN,
    as_float,
    convert,
    decode,
    extreme,
    float_operation,
    flush,
    infinity,
    is_nan,
    signed,
    value_of,
    width_of,
)

INTEGERS = [f"{kind}{width}" for width in (16, 32, 64) for kind in "us"]
MODES = ("rn", "rz", "rm", "rp")


def same_float(kind):
    """NaNs of f64 are equal whatever their payload."""
    if kind != "f64":
        return None
    return lambda got, expected, *_: (
        got == expected or (is_nan(got, kind) and is_nan(expected, kind))
    )


def pairwise(f):
    """Return `f` on both 16-bit halves."""
    return lambda *v: f(*(x & 0xFFFF for x in v)) | f(*(x >> 16 for x in v)) << 16


# ---- floats ----


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma", "div", "rcp", "sqrt"])
def test_float_arithmetic(kind, name):
    """Correctly rounded in all four modes, with flushing and saturation."""
    operands = {"fma": 3, "rcp": 1, "sqrt": 1}.get(name, 2)
    registers = ["%a", "%b", "%c"][:operands]
    forms = {}
    for mode in MODES:
        for ftz, sat in itertools.product((False, True), repeat=2):
            if kind == "f64" and (ftz or sat):
                continue
            if sat and name in ("div", "rcp", "sqrt"):
                continue
            text = f"{name}.{mode}{'.ftz' * ftz}{'.sat' * sat}.{kind}"
            forms[text] = Form(
                f"{text} %d, {', '.join(registers)};",
                (kind,) * operands,
                (kind,),
                float_operation(name, kind, mode=mode, ftz=ftz, sat=sat),
                same_float(kind),
            )
    if name in ("add", "sub", "mul"):
        forms[f"{name}.{kind}"] = Form(
            f"{name}.{kind} %d, %a, %b;",
            (kind, kind),
            (kind,),
            float_operation(name, kind),
            same_float(kind),
        )
    if name == "fma":
        forms["mad"] = Form(
            f"mad.rn.{kind} %d, %a, %b, %c;",
            (kind,) * 3,
            (kind,),
            float_operation("fma", kind),
            same_float(kind),
        )
    check(forms, 384)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_short_float_arithmetic(kind):
    forms = {}
    for name, operands in {"add": 2, "sub": 2, "mul": 2, "fma": 3}.items():
        registers = ", ".join(["%a", "%b", "%c"][:operands])
        options = [("", {}), (".rn", {})] if name != "fma" else [(".rn", {})]
        if kind == "f16":
            options += [
                (".rn.ftz", {"ftz": True}),
                (".rn.sat", {"sat": True}),
                (".rn.ftz.sat", {"ftz": True, "sat": True}),
            ]
        if name == "fma":
            options.append((".rn.relu", {"clip": True}))
        for text, keywords in options:
            reference = float_operation(name, kind, **keywords)
            forms[f"{name}{text}.{kind}"] = Form(
                f"{name}{text}.{kind} %d, {registers};", (kind,) * operands, (kind,), reference
            )
            pair = f"{kind}x2"
            forms[f"{name}{text}.{pair}"] = Form(
                f"{name}{text}.{pair} %d, {registers};",
                (pair,) * operands,
                (pair,),
                pairwise(reference),
            )
    check(forms, 384)


@pytest.mark.slow
def test_minimum_and_maximum_of_floats():
    forms = {}
    for kind in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        scalar = kind.removesuffix("x2")
        for name in ("min", "max"):
            options = [("", {})]
            if kind != "f64":
                options += [
                    (".NaN", {"nan": True}),
                    (".NaN.xorsign.abs", {"nan": True, "xorsign": True}),
                    (".xorsign.abs", {"xorsign": True}),
                ]
            if kind in ("f32", "f16", "f16x2"):
                options.append((".ftz", {"ftz": True}))
                options.append((".ftz.NaN", {"ftz": True, "nan": True}))
            for text, keywords in options:
                reference = extreme(scalar, least=name == "min", **keywords)
                forms[f"{name}{text}.{kind}"] = Form(
                    f"{name}{text}.{kind} %d, %a, %b;",
                    (kind, kind),
                    (kind,),
                    pairwise(reference) if kind != scalar else reference,
                    same_float(kind),
                )
    check(forms)


def test_signs_of_floats():
    forms = {}
    for kind in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        scalar = kind.removesuffix("x2")
        sign = 1 << (FORMATS[scalar][2] - 1)
        for name, f in {"abs": lambda a, s: a & ~s, "neg": lambda a, s: a ^ s}.items():

            def reference(a, f=f, s=sign):
                return f(a, s)

            def flushing(a, f=f, s=sign, k=scalar):
                return f(flush(a, k), s)

            options = {"": reference}
            if scalar in ("f32", "f16"):
                options[".ftz"] = flushing
            for text, g in options.items():
                forms[f"{name}{text}.{kind}"] = Form(
                    f"{name}{text}.{kind} %d, %a;",
                    (kind,),
                    (kind,),
                    pairwise(g) if kind != scalar else g,
                )
    for kind in ("f32", "f64"):
        sign = 1 << (FORMATS[kind][2] - 1)
        forms[f"copysign.{kind}"] = Form(
            f"copysign.{kind} %d, %a, %b;",
            (kind, kind),
            (kind,),
            lambda a, b, s=sign: (a & s) | (b & ~s),
        )
        tests = {
            "finite": math.isfinite,
            "infinite": math.isinf,
            "number": lambda x: x == x,
            "notanumber": math.isnan,
        }
        least = 2.0**-126 if kind == "f32" else 2.0**-1022
        tests["normal"] = lambda x, m=least: m <= abs(x) < math.inf or x == 0
        tests["subnormal"] = lambda x, m=least: 0 < abs(x) < m
        for name, f in tests.items():
            forms[f"testp.{name}.{kind}"] = Form(
                f"testp.{name}.{kind} %p0, %a; selp.u32 %d, 1, 0, %p0;",
                (kind,),
                ("u32",),
                lambda a, f=f, k=kind: int(f(as_float(a, k))),
            )
    check(forms)


# ---- conversions ----


def letters(text):
    """Return the rounding of .rni and its kin as rn, rz, rm, rp."""
    return "r" + text[1] if text else None


CONVERTED = ["u8", "s8", *INTEGERS]


def extended(bits, kind, width):
    """What a register of `width` holds of a narrower result: signed types keep their sign."""
    return value_of(bits, kind) & ((1 << width) - 1)


def test_cvt_between_integers():
    forms = {}
    for target, source in itertools.product(CONVERTED, repeat=2):
        for sat in ("", ".sat"):
            text = f"cvt{sat}.{target}.{source}"
            reference = convert(target, source, sat=bool(sat))
            width = max(width_of(target), 16)
            forms[text] = Form(
                f"{text} %d, %a;",
                (source,),
                (f"b{width}",),
                lambda a, f=reference, t=target, w=width: extended(f(a), t, w),
            )
    # A register may be wider than its type: the rest of the source is ignored.
    forms["narrow source"] = Form(
        "cvt.s64.s8 %d, %a;", ("u32",), ("s64",), lambda a: signed(a, 8) & (2**64 - 1)
    )
    forms["wide source"] = Form("cvt.u32.u16 %d, %a;", ("u64",), ("u32",), lambda a: a & 0xFFFF)
    forms["wide target"] = Form(
        "cvt.s16.s8 %d, %a;", ("u32",), ("b32",), lambda a: signed(a, 8) & 0xFFFFFFFF
    )
    check(forms, 128)


@pytest.mark.slow
@pytest.mark.parametrize("source", list(FORMATS))
def test_cvt_from_float_to_integer(source):
    forms = {}
    for target, rounding in itertools.product(CONVERTED, ("rni", "rzi", "rmi", "rpi")):
        for ftz in ("", ".ftz") if source == "f32" else ("",):
            text = f"cvt.{rounding}{ftz}.{target}.{source}"
            reference = convert(target, source, integral=letters(rounding), ftz=bool(ftz))
            width = max(width_of(target), 16)
            forms[text] = Form(
                f"{text} %d, %a;",
                (source,),
                (f"b{width}",),
                lambda a, f=reference, t=target, w=width: extended(f(a), t, w),
            )
            if not ftz:
                sat = text.replace(f".{target}", f".sat.{target}", 1)
                forms[sat] = Form(
                    f"{sat} %d, %a;",
                    (source,),
                    (f"b{width}",),
                    lambda a, f=reference, t=target, w=width: extended(f(a), t, w),
                )
    check(forms, 256)


@pytest.mark.slow
@pytest.mark.parametrize("target", list(FORMATS))
def test_cvt_from_integer_to_float(target):
    forms = {}
    for source, mode in itertools.product(CONVERTED, MODES):
        if target == "bf16" and mode != "rn":
            continue
        for sat in ("", ".sat") if target != "bf16" else ("",):
            text = f"cvt.{mode}{sat}.{target}.{source}"
            forms[text] = Form(
                f"{text} %d, %a;",
                (source,),
                (target,),
                convert(target, source, mode=mode, sat=bool(sat)),
            )
    check(forms, 256)


@pytest.mark.slow
def test_cvt_between_floats():
    forms = {}

    def add(text, target, source, **keywords):
        forms[text] = Form(
            f"{text} %d, %a;",
            (source,),
            (target,),
            convert(target, source, **keywords),
            same_float(target),
        )

    for mode in MODES:
        add(f"cvt.{mode}.f32.f64", "f32", "f64", mode=mode)
        add(f"cvt.{mode}.ftz.f32.f64", "f32", "f64", mode=mode, ftz=True)
        add(f"cvt.{mode}.sat.f32.f64", "f32", "f64", mode=mode, sat=True)
        for source in ("f32", "f64"):
            add(f"cvt.{mode}.f16.{source}", "f16", source, mode=mode)
            add(f"cvt.{mode}.sat.f16.{source}", "f16", source, mode=mode, sat=True)
        add(f"cvt.{mode}.ftz.f16.f32", "f16", "f32", mode=mode, ftz=True)
        for source in ("f16", "f32", "f64"):
            add(f"cvt.{mode}.bf16.{source}", "bf16", source, mode=mode)
        add(f"cvt.{mode}.f16.bf16", "f16", "bf16", mode=mode)
    for source in ("f16", "bf16"):
        for target in ("f32", "f64"):
            add(f"cvt.{target}.{source}", target, source)
        add(f"cvt.sat.f32.{source}", "f32", source, sat=True)
    add("cvt.f64.f32", "f64", "f32")
    add("cvt.ftz.f64.f32", "f64", "f32", ftz=True)
    add("cvt.sat.f64.f32", "f64", "f32", sat=True)
    for mode in ("rn", "rz"):
        for short in ("f16", "bf16"):
            add(f"cvt.{mode}.relu.{short}.f32", short, "f32", mode=mode, clip=True)
    for kind in ("f16", "f32", "f64"):
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            add(f"cvt.{rounding}.{kind}.{kind}", kind, kind, integral=letters(rounding))
            add(
                f"cvt.{rounding}.sat.{kind}.{kind}",
                kind,
                kind,
                integral=letters(rounding),
                sat=True,
            )
        add(f"cvt.sat.{kind}.{kind}", kind, kind, sat=True)
    add("cvt.rni.ftz.f32.f32", "f32", "f32", integral="rn", ftz=True)
    add("cvt.ftz.f32.f32", "f32", "f32", ftz=True)
    check(forms)


def test_cvt_to_packed_and_tf32():
    forms = {}
    for kind, mode, clip in itertools.product(("f16", "bf16"), ("rn", "rz"), (False, True)):
        one = convert(kind, "f32", mode=mode, clip=clip)
        text = f"cvt.{mode}{'.relu' * clip}.{kind}x2.f32"
        forms[text] = Form(
            f"{text} %d, %a, %b;",
            ("f32", "f32"),
            ("b32",),
            lambda a, b, f=one: f(b) | f(a) << 16,
        )

    def to_tf32(a):
        """13 bits of the fraction go, halves away from zero."""
        _, value = decode(a, "f32")
        if is_nan(a, "f32"):
            return NAN["f32"]
        return a if value == "infinite" else (a + 0x1000) & 0xFFFFE000

    forms["tf32"] = Form("cvt.rna.tf32.f32 %d, %a;", ("f32",), ("b32",), to_tf32)
    check(forms)


# ---- approximations ----


def close(kind, reference, *, ulp=0.0, absolute=0.0, relative=0.0, ftz=False, domain=None):
    """Compare with a reference in double arithmetic to a bound that the ISA states."""

    def same(got, _expected, *arguments):
        values = [as_float(flush(a, kind) if ftz else a, kind) for a in arguments]
        if domain is not None and not domain(*values):
            return True
        value, found = reference(*values), as_float(got, kind)
        if math.isnan(value):
            return math.isnan(found)
        precision, least, _ = FORMATS[kind]
        greatest = as_float(infinity(0, kind) - 1, kind)
        if math.isinf(found) or math.isinf(value):
            return found == value or (
                abs(value) > greatest and found == math.copysign(math.inf, value)
            )
        if ftz and abs(value) < 2.0**least:
            return found == 0 or abs(found - value) <= 2.0**least
        exponent = max(math.frexp(value)[1] - 1, least) if value else least
        bound = ulp * 2.0 ** (exponent - precision + 1) + absolute + relative * abs(value)
        return abs(found - value) <= bound

    return same


def guarded(f):
    """Return `f` with the IEEE results that Python raises errors for."""

    def apply(*values):
        with np.errstate(all="ignore"):
            return float(f(*(np.float64(v) for v in values)))

    return apply


def test_approximate_functions():
    """Within the bounds that the ISA states for each."""
    forms = {}

    def add(text, f, kind="f32", operands=1, **bounds):
        registers = ", ".join(["%a", "%b"][:operands])
        forms[text] = Form(
            f"{text} %d, {registers};",
            (kind,) * operands,
            (kind,),
            lambda *_: 0.0,
            close(kind, guarded(f), ftz=".ftz" in text, **bounds),
        )

    def small(x):
        return abs(x) <= math.pi

    for ftz in ("", ".ftz"):
        add(f"rcp.approx{ftz}.f32", lambda x: 1 / x, ulp=1)
        add(f"sqrt.approx{ftz}.f32", np.sqrt, relative=2.0**-23, ulp=1)
        add(f"rsqrt.approx{ftz}.f32", lambda x: 1 / np.sqrt(x), relative=2.0**-22.9)
        add(f"sin.approx{ftz}.f32", np.sin, absolute=2.0**-20.5, domain=small)
        add(f"cos.approx{ftz}.f32", np.cos, absolute=2.0**-20.5, domain=small)
        add(f"ex2.approx{ftz}.f32", np.exp2, relative=2.0**-22.5, ulp=1)
        # log2 of a NaN or a negative number is NaN; near 1 the bound is absolute.
        add(f"lg2.approx{ftz}.f32", np.log2, absolute=2.0**-22, relative=2.0**-22)
        add(f"div.approx{ftz}.f32", lambda a, b: a / b, operands=2, ulp=2)
        add(f"div.full{ftz}.f32", lambda a, b: a / b, operands=2, ulp=2)
    add("tanh.approx.f32", np.tanh, relative=2.0**-11)
    add("rsqrt.approx.f64", lambda x: 1 / np.sqrt(x), "f64", relative=2.0**-20)
    add("rsqrt.approx.ftz.f64", lambda x: 1 / np.sqrt(x), "f64", relative=2.0**-20)
    add("rcp.approx.ftz.f64", lambda x: 1 / x, "f64", relative=2.0**-20, ulp=1)
    for kind, bound in {"f16": 2.0**-9.9, "bf16": 2.0**-7}.items():
        ftz = ".ftz" if kind == "bf16" else ""
        add(f"ex2.approx{ftz}.{kind}", np.exp2, kind, relative=bound, ulp=1)
        add(f"tanh.approx.{kind}", np.tanh, kind, relative=2.0**-8, ulp=1)
    check(forms)
