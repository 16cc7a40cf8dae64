"""Forms of machine code in listings written by hand, on random operands, against plain definitions.

They need no tools of NVIDIA, and have what compilers seldom make: comparisons of every kind, the
uniform datapath, predicates as bits, jumps by a table.
"""

import itertools
import operator

import numpy as np
import pytest
from listing_forms import THREAD, address, lanes, listing, module_of, uniform
from tested_forms import forms_are_executed, forms_by_test  # noqa: F401

import warpstack as ws
from ptx_forms import Form, check
from python_reference.ptx_arithmetic import (
    as_float,
    float_operation,
    flush,
    is_nan,
    signed,
    value_of,
)
from warpstack.errors import InputError

COMPARE = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}
#: The same of upper words whose lower words hold.
HELD = COMPARE | {"LT": operator.le, "GT": operator.ge, "NE": lambda a, b: True}
JOIN = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}
KINDS = ["", "U"]  # of usual and of uniform registers
WORD, WORDS = 2**32 - 1, 2**64 - 1


def check_either(forms, u):
    """Check forms of usual registers, or of uniform ones, whose blocks have one thread each."""
    if u:
        check(forms, 192, text_of=uniform, threads=1)
    else:
        check(forms, 384, text_of=lanes)


def comparison(kind, compare, join):
    """Return what a comparison and its opposite give, each joined with a third predicate."""

    def reference(a, b, c):
        holds = compare(value_of(a, kind), value_of(b, kind))
        return join(holds, c), join(not holds, c)

    return reference


@pytest.mark.parametrize("u", KINDS)
def test_comparisons_of_integers(u):
    forms = {}
    for (name, compare), (joined, join) in itertools.product(COMPARE.items(), JOIN.items()):
        for sign, letter in {"": "s", ".U32": "u"}.items():
            label = f"{u}ISETP.{name}{sign}.{joined}"
            forms[label] = Form(
                f"{label} {u}P4,{u}P5,{u}R4,{u}R6,{u}P2",
                (f"{letter}32", f"{letter}32", "flag"),
                ("flag", "flag"),
                comparison(f"{letter}32", compare, join),
            )
            # 64 bits: the lower words as numbers without a sign, then the upper words.
            forms[f"{label}.EX"] = Form(
                f"{u}ISETP.{name}.U32.AND {u}P3,{u}PT,{u}R4,{u}R6,{u}PT; "
                f"{label}.EX {u}P4,{u}P5,{u}R5,{u}R7,{u}P2,{u}P3",
                (f"{letter}64", f"{letter}64", "flag"),
                ("flag", "flag"),
                comparison(f"{letter}64", compare, join),
            )
            # Where the lower words always hold, as of >= 0, nvdisasm leaves them out.
            forms[f"{label}.EX held"] = Form(
                f"{label}.EX {u}P4,{u}P5,{u}R4,{u}R6,{u}P2",
                (f"{letter}32", f"{letter}32", "flag"),
                ("flag", "flag"),
                comparison(f"{letter}32", HELD[name], join),
            )
    check_either(forms, u)


def test_sums_with_carries():
    """Of words and of pairs: -a is ~a + 1, which carries where a is 0."""

    def form(name, operands, bits, negated=(), extended=False, number=None):
        def reference(a, b, carry=0):
            a, b = (~x % 2**bits if n in negated else x for n, x in enumerate((a, number or b)))
            total = a + b + (carry if extended else len(negated))
            return total % 2**bits, total >> bits

        kind = f"u{bits}"
        text = f"{name} R12,P5,{operands}" + ",P2" * extended
        inputs = (kind, kind, "flag") if extended else (kind, kind)
        return Form(text, inputs, (kind, "flag"), reference)

    forms = {}
    for name, bits in {"IADD": 32, "IADD.64": 64}.items():
        extended = f"{name}.X"
        forms |= {
            name: form(name, "R4,R6", bits),
            f"{name} -a": form(name, "-R4,R6", bits, [0]),
            f"{name} -b": form(name, "R4,-R6", bits, [1]),
            f"{name} number": form(name, "R4,-0x4d", bits, number=2**bits - 0x4D),
            extended: form(extended, "R4,R6", bits, extended=True),
            f"{extended} ~a": form(extended, "~R4,R6", bits, [0], True),
            f"{extended} ~b": form(extended, "R4,~R6", bits, [1], True),
            f"{extended} number": form(extended, "R4,0x7", bits, extended=True, number=7),
        }
    # The carry may stand where the second one does.
    second = form("IADD3.X", "R4,R6,RZ,!PT", 32, extended=True)
    forms["IADD3.X second"] = second
    check(forms, 384, text_of=lanes)


def test_two_negated_terms_with_a_carry():
    """Their carry would have two bits."""
    text = module_of(listing("k", ["IADD.64 R12,P0,-R4,-R6"], 1))
    with pytest.raises(InputError, match="more than one of a carry in and negations"):
        run(text, np.zeros(1, np.uint64))


def test_choices_of_64_bits():
    """Numbers have 33 bits, so that those above 0x7fffffff have no sign."""
    numbers = [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, -0x80000000, -0xBFFE8000, -1, 0]
    forms = {
        f"SEL.64 {n:#x}{sign}": Form(
            f"SEL.64 R12,R4,{n:#x},{sign}P2",
            ("b64", "b64", "flag"),
            ("b64",),
            lambda a, b, p, n=n, sign=sign: a if p != (sign == "!") else n % 2**64,
        )
        for n in numbers
        for sign in ("", "!")
    }
    check(forms, text_of=lanes)


def of_floats(kind, compare, unordered, join, ftz):
    def reference(a, b, c):
        c = 1 - c
        a, b = a ^ 1 << (int(kind[1:]) - 1), b & ~(1 << (int(kind[1:]) - 1))  # -a, |b|
        if ftz:
            a, b = flush(a, kind), flush(b, kind)
        nan = is_nan(a, kind) or is_nan(b, kind)
        holds = unordered if nan else compare(as_float(a, kind), as_float(b, kind))
        return join(holds, c), join(not holds, c)

    return reference


@pytest.mark.parametrize(("opcode", "kind"), [("FSETP", "f32"), ("DSETP", "f64")])
def test_comparisons_of_floats(opcode, kind):
    """With U behind its name a comparison holds where an operand is not a number, else not."""
    ordered = {name: (compare, False) for name, compare in COMPARE.items()}
    unordered = {f"{name}U": (compare, True) for name, compare in COMPARE.items()}
    numbers = {"NUM": (lambda a, b: True, False), "NAN": (lambda a, b: False, True)}
    forms = {}
    for name, (compare, nan) in (ordered | unordered | numbers).items():
        for ftz in ("", ".FTZ") if kind == "f32" else ("",):
            for joined, join in JOIN.items():
                label = f"{opcode}.{name}{ftz}.{joined}"
                forms[label] = Form(
                    f"{label} P4,P5,-R4,|R6|,!P2",
                    (kind, kind, "flag"),
                    ("flag", "flag"),
                    of_floats(kind, compare, nan, join, ftz),
                )
    check_either(forms, "")


@pytest.mark.parametrize("u", KINDS)
def test_bits_of_words(u):
    def leading(a):
        return a.bit_length() - 1 if a else WORD

    def shift(place):
        return place if place == WORD else 31 - place

    references = {
        "BREV": lambda a: int(f"{a:032b}"[::-1], 2),
        "POPC": lambda a: a.bit_count(),
        "FLO.U32": leading,
        "FLO.U32.SH": lambda a: shift(leading(a)),
        "FLO": lambda a: leading(a ^ WORD if a >> 31 else a),  # of the first bit unlike the sign
        "FLO.SH": lambda a: shift(leading(a ^ WORD if a >> 31 else a)),
    }
    forms = {}
    for name, reference in references.items():
        forms[name] = Form(f"{u}{name} {u}R12,{u}R4", ("b32",), ("b32",), reference)
        if "FLO" not in name:
            forms[f"{name} ~"] = Form(
                f"{u}{name} {u}R12,~{u}R4", ("b32",), ("b32",), lambda a, f=reference: f(a ^ WORD)
            )
    check_either(forms, u)


@pytest.mark.parametrize("u", KINDS)
def test_shifts_of_two_words(u):
    """Numbers of 64 bits; what is shifted further than 64 places is gone."""
    halves = {
        "u64 right": ("SHF.R.U64 {u}R12,{u}R4,{s},{u}R5", "SHF.R.U32.HI {u}R13,{u}RZ,{s},{u}R5"),
        "s64 right": ("SHF.R.S64 {u}R12,{u}R4,{s},{u}R5", "SHF.R.S32.HI {u}R13,{u}RZ,{s},{u}R5"),
        "u64 left": ("SHF.L.U32 {u}R12,{u}R4,{s},{u}RZ", "SHF.L.U64.HI {u}R13,{u}R4,{s},{u}R5"),
    }

    def reference(name, a, s):
        s = min(s, 64)
        return (value_of(a, name[:3]) >> s if "right" in name else a << s) & WORDS

    forms = {}
    for name, code in halves.items():
        for s in (0x0, 0x1, 0x1E, 0x1F, 0x20, 0x21, 0x3F):
            lines = "; ".join(u + line.format(u=u, s=f"{s:#x}") for line in code)
            kinds = (name[:3],)
            forms[f"{name} {s}"] = Form(
                lines, kinds, kinds, lambda a, name=name, s=s: reference(name, a, s)
            )
        lines = "; ".join(u + line.format(u=u, s=f"{u}R6") for line in code)
        forms[name] = Form(
            lines,
            (name[:3], "shift"),
            (name[:3],),
            lambda a, s, name=name: reference(name, a, s),
        )
    check_either(forms, u)


@pytest.mark.parametrize("u", KINDS)
def test_scaled_additions(u):
    """Addresses: an index of 64 or 32 bits, times a power of two, and a base; and their upper words alone."""
    forms = {}
    for s in (0, 1, 2, 3, 4, 15, 30, 31):
        low = f"{u}LEA {u}R12,{u}P4,{u}R4,{u}R6,{s:#x}; "
        forms[f"LEA.HI.X {s}"] = Form(
            low + f"{u}LEA.HI.X {u}R13,{u}R4,{u}R7,{u}R5,{s:#x},{u}P4",
            ("u64", "u64"),
            ("u64",),
            lambda a, b, s=s: ((a << s) + b) & WORDS,
        )
        forms[f"LEA.HI.X.SX32 {s}"] = Form(
            low + f"{u}LEA.HI.X.SX32 {u}R13,{u}R4,{u}R7,{s:#x},{u}P4",
            ("s32", "u64"),
            ("u64",),
            lambda a, b, s=s: ((signed(a, 32) << s) + b) & WORDS,
        )
        forms[f"LEA.HI {s}"] = Form(
            f"{u}LEA.HI {u}R12,{u}R4,{u}R6,{u}R5,{s:#x}",
            ("u64", "u32"),
            ("u32",),
            lambda a, b, s=s: ((a << s >> 32) + b) & WORD,
        )
        forms[f"LEA.HI.SX32 {s}"] = Form(
            f"{u}LEA.HI.SX32 {u}R12,{u}R4,{u}R6,{s:#x}",
            ("s32", "u32"),
            ("u32",),
            lambda a, b, s=s: ((signed(a, 32) << s >> 32) + b) & WORD,
        )
    check_either(forms, u)


@pytest.mark.parametrize("u", KINDS)
def test_tables_of_predicates(u):
    """Two tables of the same three predicates, the first of which is the upper bit of the row."""
    forms = {}
    for first in range(0, 256, 5):
        second = (first * 73 + 41) % 256

        def reference(a, b, c, tables=(first, second)):
            return tuple(table >> (4 * a + 2 * (1 - b) + c) & 1 for table in tables)

        forms[f"{first:#x}"] = Form(
            f"{u}PLOP3.LUT {u}P4,{u}P5,{u}P0,!{u}P1,{u}P2,{first:#x},{second:#x}",
            ("flag",) * 3,
            ("flag", "flag"),
            reference,
        )
    check(forms, 64, text_of=uniform if u else lanes, threads=1 if u else 64)


def test_predicates_as_bits():
    """R2P sets the predicates of a mask from a word's bits, P2R puts them into a word."""
    forms = {}
    for mask in (0x7F, 0x3, 0x40, 0x2A, 0x0):
        begin = [
            f"LOP3.LUT R16,R6,{1 << p:#x},RZ,0xc0,!PT; ISETP.NE.U32.AND P{p},PT,R16,RZ,PT"
            for p in range(7)
        ]
        end = [f"@P{p} LOP3.LUT R12,R12,{1 << p:#x},RZ,0xfc,!PT" for p in range(7)]
        forms[f"R2P {mask:#x}"] = Form(
            "; ".join([*begin, f"R2P PR,R4,{mask:#x}", "MOV R12,RZ", *end]),
            ("b32", "b32"),
            ("b32",),
            lambda a, b, mask=mask: (a & mask) | (b & 0x7F & ~mask),
        )
        forms[f"P2R {mask:#x}"] = Form(
            "; ".join([*begin, f"P2R R12,R4,{mask:#x}"]),
            ("b32", "b32"),
            ("b32",),
            lambda a, b, mask=mask: (a & ~mask) | (b & mask),
        )
    check(forms, text_of=lanes)


@pytest.mark.parametrize("name", ["UPR,", ""])
def test_uniform_predicates_as_bits(name):
    forms = {}
    for mask in (0x7F, 0x1, 0x40, 0x2A, 0x0):
        begin = [
            f"ULOP3.LUT UR16,UR6,{1 << p:#x},URZ,0xc0,!UPT; UISETP.NE.U32.AND UP{p},UPT,UR16,URZ,UPT"
            for p in range(7)
        ]
        forms[f"UP2UR {mask:#x}"] = Form(
            "; ".join([*begin, f"UP2UR UR12,{name}UR4,{mask:#x}"]),
            ("b32", "b32"),
            ("b32",),
            lambda a, b, mask=mask: (a & ~mask) | (b & mask),
        )
    check(forms, 64, text_of=uniform, threads=1)


def test_differences_of_bytes():
    def differences(a, b):
        pairs = zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True)
        return [abs(x - y) for x, y in pairs]

    forms = {
        "VABSDIFF4.U8": lambda a, b, c: int.from_bytes(differences(a, b), "little"),
        "VABSDIFF4.U8.ACC": lambda a, b, c: (c + sum(differences(a, b))) & WORD,
    }
    operands = {"VABSDIFF4.U8": "R12,R4,R6,RZ", "VABSDIFF4.U8.ACC": "R12,R4,R6,R8"}
    check(
        {
            label: Form(f"{label} {operands[label]}", ("b32",) * 3, ("b32",), reference)
            for label, reference in forms.items()
        },
        text_of=lanes,
    )


def test_halved_products():
    """.D2 is a multiplication by a half of its own."""
    times = float_operation("mul", "f32")
    forms = {
        factor: Form(
            f"FMUL.D2 R12,R4,{factor}",
            ("f32",),
            ("f32",),
            lambda a, factor=factor: times(
                times(a, int(np.float32(factor).view(np.uint32))), 0x3F000000
            ),
            same=lambda got, expected, *_: (
                got == expected or (is_nan(got, "f32") and is_nan(expected, "f32"))
            ),
        )
        for factor in ("-0.20000000298023223877", "1", "0.75", "-0.0078125")
    }
    check(forms, text_of=lanes)


def run(text, *arrays, block=32):
    """Launch kernel k of a listing on copies of arrays. Return the arrays after it."""
    device = ws.cuda.Device(0.1)
    held = [device.array(array) for array in arrays]
    ws.cuda.compile(text, device=device).kernel("k").launch(1, block, *held)
    return [array.to_host() for array in held]


def test_jumps_by_a_table():
    """Each lane jumps by its own entry; behind the barrier they are together."""
    cases = [f"case{n}:" for n in range(4)]
    ends = [
        ["IMAD R6,R0,0x3,RZ"],
        ["IADD3 R6,R0,0x64,RZ"],
        ["MOV R6,0x7"],
        ["LOP3.LUT R6,R0,0x5,RZ,0x3c,!PT"],
    ]
    code = [*THREAD, *address(0, 4), "LDG.E R4,[R2.64]", "BSSY B0,{together:#x}"]
    code += ["IMAD.SHL.U32 R4,R4,0x4,RZ", "LDC R4,c[0x2][R4]", "SHF.R.S32.HI R5,RZ,0x1f,R4"]
    code += ["BRX R4,-{next:#x}", "next:"]
    for label, end in zip(cases, ends, strict=True):
        code += [label, *end, "BRA {together:#x}"]
    code += ["together:", "BSYNC B0", "VOTE.ANY R7,PT,PT", *address(1, 8), "STG.E.64 [R2.64],R6"]
    text = module_of(listing("k", code, 2, constants="{case2} {case0} {case3} {case1}"))
    which = np.random.default_rng(3).integers(0, 4, 32, dtype=np.uint32)
    _, out = run(text, which, np.zeros((32, 2), np.uint32))
    threads = np.arange(32)
    expected = np.choose(which, [threads * 0 + 7, threads * 3, threads ^ 5, threads + 100])
    assert set(which) == {0, 1, 2, 3}
    assert out[:, 0].tolist() == expected.tolist()
    assert set(out[:, 1]) == {WORD}


def test_barrier_of_a_block():
    """Each warp reads what another one has written before the barrier."""
    code = [
        *THREAD,
        "IMAD.SHL.U32 R4,R0,0x4,RZ",
        "IMAD R5,R0,R0,0x7",
        "STS [R4],R5",
        "BAR.SYNC 0x0",
    ]
    code += ["LOP3.LUT R4,R4,0x1fc,RZ,0x3c,!PT", "LDS R5,[R4]", *address(0, 4), "STG.E [R2.64],R5"]
    text = module_of(listing("k", code, 1, shared_bytes=512))
    (out,) = run(text, np.zeros(128, np.uint32), block=128)
    assert out.tolist() == (np.arange(128)[::-1] ** 2 + 7).tolist()


def test_additions_in_memory():
    """Of 64 bits: old values lead from the first to the last, one thread after the other."""
    code = [*THREAD, *address(1, 8), "LDG.E.64 R6,[R2.64]", "LOP3.LUT R8,R0,0x3,RZ,0xc0,!PT"]
    code += [
        "MOV R1,0x8",
        "IMAD.WIDE.U32 R2,R8,R1,c[0x0][0x160]",
        "PLOP3.LUT P0,PT,PT,PT,PT,0x8,0x0",
    ]
    code += ["ATOM.E.ADD.64.STRONG.SM P0,R10,[R2.64],R6", "SEL R12,RZ,0x1,!P0"]
    code += [*address(2, 8), "STG.E.64 [R2.64],R10", *address(3, 4), "STG.E [R2.64],R12"]
    rng = np.random.default_rng(4)
    sums, values = (rng.integers(1, 2**64, n, dtype=np.uint64) for n in (4, 64))
    arrays = [sums, values, np.zeros(64, np.uint64), np.zeros(64, np.uint32)]
    got, _, old, done = run(module_of(listing("k", code, 4)), *arrays, block=64)
    assert set(done) == {1}
    for n, value in enumerate(sums):
        following = dict(zip(old[n::4], old[n::4] + values[n::4], strict=True))
        for _ in range(16):
            value = following.pop(value)
        assert value == got[n]


def test_clocks_of_one_word():
    """It leaves the next register alone, and lies between the lower words read before and after it."""
    code = [
        *THREAD,
        "MOV R7,0x11",
        "CS2R R4,SR_CLOCKLO",
        "CS2R.32 R6,SR_CLOCKLO",
        "CS2R R8,SR_CLOCKLO",
    ]
    code += [*address(0, 16), "MOV R5,R6", "MOV R6,R8", "STG.E.128 [R2.64],R4"]
    (out,) = run(module_of(listing("k", code, 1)), np.zeros((32, 4), np.uint32))
    assert (out[:, 0] < out[:, 1]).all()
    assert (out[:, 1] < out[:, 2]).all()
    assert set(out[:, 3]) == {0x11}


def test_traps():
    """A trap stops the launch where a lane's guard holds, and does nothing elsewhere."""
    code = [*THREAD, *address(0, 4), "LDG.E R4,[R2.64]", "ISETP.EQ.AND P0,PT,R4,0x4d,PT"]
    code += ["@P0 BPT.TRAP 0x1", "STG.E [R2.64],R0"]
    text = module_of(listing("k", code, 1))
    values = np.full(32, 78, np.uint32)
    assert run(text, values)[0].tolist() == list(range(32))
    values[19] = 77
    with pytest.raises(
        InputError, match=r"BPT\.TRAP.*thread \(19, 0, 0\): the kernel executed a trap"
    ):
        run(text, values)
