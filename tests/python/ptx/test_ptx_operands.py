"""All forms of PTX with constants, other register types and shared registers as their operands.

The forms are in ptx_operand_forms.py; ptx_operands.py makes variants of them and holds the PTX
against the machine code that ptxas makes of it.
"""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from effort import rounds
from ptx_forms import run
from ptx_operand_forms import ELSEWHERE, all_forms
from ptx_operands import check_forms, forms_for
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas

OPCODES = Path(__file__).resolve().parents[3] / "cpp" / "ptx" / "lower" / "opcodes.inc"
needs_machine_code = pytest.mark.skipif(
    find_nvdisasm() is None or find_ptxas() is None, reason="ptxas or nvdisasm is not installed"
)


def opcodes_that_run():
    return set(re.findall(r'^PTX_\w+\("(\w+)"', OPCODES.read_text(), re.MULTILINE))


def test_every_opcode_has_forms():
    """What runs is in the table of forms, or another test has it."""
    in_forms = {word for f in all_forms() for word in re.findall(r"(?:^|; )(\w+)", f.text)}
    assert opcodes_that_run() - in_forms - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) - opcodes_that_run() == set()
    assert in_forms & set(ELSEWHERE) == set()


@pytest.mark.slow
@needs_machine_code
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_operands_of_random_forms(arch):
    """A few variants of random forms, others in each run: the seed is in the message."""
    seed = random.SystemRandom().randrange(2**32)
    rng = random.Random(seed)
    forms = forms_for(arch, opcodes_that_run())
    by_opcode = {}
    for form in rng.sample(forms, len(forms)):
        by_opcode.setdefault(form.opcode, []).append(form)
    # A form of each opcode, and more of those that have many.
    chosen = [some.pop() for some in by_opcode.values()]
    chosen += rng.sample([f for some in by_opcode.values() for f in some], rounds(120))
    outcome = check_forms(chosen, arch, seed, most=10)
    assert not outcome.differing, "\n".join([f"seed {seed}:", *outcome.differing])
    as_ptx = [line for line in outcome.refused if ": machine code: " not in line]
    assert not as_ptx, "\n".join([f"seed {seed}:", *as_ptx])
    assert outcome.tried > 4 * len(chosen)


#: Instructions with a constant predicate, and what each lane of a full warp gets.
CONSTANT_PREDICATES = {
    "vote.sync.all.pred %p0, 1, -1;": 1,
    "vote.sync.all.pred %p0, 0, -1;": 0,
    "vote.sync.any.pred %p0, 1, -1;": 1,
    "vote.sync.uni.pred %p0, 0, -1;": 1,
    "not.pred %p0, 1;": 0,
    "not.pred %p0, 0;": 1,
    "mov.pred %p0, 1;": 1,
    "setp.lt.u32 %p1, %t, 99; xor.pred %p0, %p1, 1;": 0,
    "setp.lt.u32 %p1, %t, 99; and.pred %p0, 1, %p1;": 1,
    "setp.lt.xor.u32 %p0, %t, 99, 1;": 0,
    "setp.lt.and.u32 %p1|%p0, %t, 99, 1;": 0,
    "bar.red.and.pred %p0, 0, 1;": 1,
    "barrier.red.or.pred %p0, 0, 0;": 0,
    "lop3.or.b32 %r1|%p0, 0, 0, 0, 0x80, 1;": 1,
}


@pytest.mark.parametrize("instruction", CONSTANT_PREDICATES)
def test_constant_predicates(instruction):
    body = instruction + "selp.u32 %r0, 1, 0, %p0; mad.wide.u32 %l0, %t, 4, %a0;"
    (result,), _ = run(body + "st.global.u32 [%l0], %r0;", np.full(32, 9, np.uint32))
    assert result.tolist() == [CONSTANT_PREDICATES[instruction]] * 32


def test_constant_predicates_are_counted():
    """Masks and numbers of lanes have a bit of each lane."""
    body = (
        "vote.sync.ballot.b32 %r0, 1, -1; bar.red.popc.u32 %r1, 0, 1; set.lt.xor.u32.u32 %r2, 1, 2, 1;"
        " selp.u32 %r3, 5, 7, 0; mad.wide.u32 %l0, %t, 16, %a0;"
        " st.global.v4.u32 [%l0], {%r0, %r1, %r2, %r3};"
    )
    (result,), _ = run(body, np.zeros((32, 4), np.uint32))
    assert result.tolist() == [[0xFFFFFFFF, 32, 0, 7]] * 32


def test_vector_registers_as_a_whole():
    """A vector register without a component stands for all of its elements."""
    body = (
        ".reg .v2 .b16 %v; .reg .v2 .b32 %w; .reg .v4 .b16 %x;"
        "mov.b32 %v, %t; add.u16 %v.y, %v.x, 5; mov.b32 %r0, %v;"
        "mov.b64 %w, 0x300000002; mov.b64 %l1, %w; mov.b64 %x, %l1; mov.b64 %l2, %x;"
        "mad.wide.u32 %l0, %t, 32, %a0; st.global.v2.b32 [%l0], %w; ld.global.v2.b32 %w, [%l0];"
        "st.global.b32 [%l0+8], %w.y; st.global.b32 [%l0+12], %r0; st.global.b64 [%l0+16], %l2;"
    )
    (result,), _ = run(body, np.zeros((32, 8), np.uint32))
    expected = [[2, 3, 3, lane | (lane + 5) << 16, 2, 3, 0, 0] for lane in range(32)]
    assert result.tolist() == expected


@needs_machine_code
def test_a_wrong_operand_is_found():
    """The generator sees what it looks for: another constant than in the registers."""
    forms = [f for f in forms_for("sm_80") if f.text.startswith("sub.u32")]
    import ptx_operands

    plain = ptx_operands.Variant.instruction
    try:
        ptx_operands.Variant.instruction = lambda self, in_registers=False: plain(
            self, in_registers
        ).replace("sub.u32", "add.u32" if in_registers else "sub.u32")
        problems = check_forms(forms, "sm_80", 1).differing
    finally:
        ptx_operands.Variant.instruction = plain
    assert problems
    assert all("constants in registers" in problem for problem in problems)


def test_the_forms_are_text_with_all_operands():
    for form in all_forms():
        words = re.findall(r"{([ds]\d)}", form.text)
        expected = {f"d{i}" for i in range(len(form.results))}
        expected |= {f"s{i}" for i in range(len(form.sources))}
        assert set(words) == expected, form
