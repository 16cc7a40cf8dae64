"""Divergence, reconvergence and locks of the PTX interpreter.

Random programs run thread by thread in python_reference/ptx_scalar.py and must give the same memory;
hand-made ones have exactly the masks that immediate post-dominators give.

Those of this file look for wrong control flow: their few registers are 32 bits wide and live to the
end, so that no place of a frame is ever used again and a wrong sharing of places goes unnoticed.
Those of ptx_programs.py look for that: many short-lived values of both widths.
"""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptx_programs
import warpstack as ws
from effort import rounds
from ptx_forms import HEADER, at, run
from python_reference import ptx_scalar
from warpstack.errors import InputError

ALL = 0xFFFFFFFF
ADDRESS = at("%l0", "%a0", "%g", 4)
REGISTERS = 5
THREADS = 40  # one full warp and a part of one
SLOTS = 8


def mask_of(condition):
    return sum(1 << lane for lane in range(32) if condition(lane))


# ---- random programs ----

registers = st.integers(0, REGISTERS - 1)
operands = st.one_of(registers.map(lambda r: f"%r{r}"), st.integers(0, 9).map(str))
comparisons = st.tuples(
    registers.map(lambda r: f"%r{r}"),
    st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]),
    operands,
)
operations = st.sampled_from(["add", "sub", "mul.lo", "and", "or", "xor", "min", "max"])
assignments = st.tuples(st.just("assign"), operations, registers, operands, operands)


def compound(inner):
    blocks = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("if"), comparisons, blocks, st.one_of(st.none(), blocks)),
        st.tuples(st.just("loop"), registers, blocks, st.booleans()),
    )


leaves = st.one_of(
    assignments,
    assignments,
    st.tuples(st.just("guarded"), comparisons, st.booleans(), assignments),
    st.tuples(st.just("store"), st.integers(0, SLOTS - 1), registers),
    st.tuples(st.just("break"), comparisons),
    st.tuples(st.just("continue"), comparisons),
    st.tuples(st.just("leave"), comparisons, st.booleans()),  # exit, or jump to the very end
    st.tuples(st.just("call"), registers, registers),
)
statements = st.recursive(leaves, compound, max_leaves=12)
programs = st.tuples(
    st.lists(statements, min_size=2, max_size=6), st.lists(statements, min_size=1, max_size=3)
)


class Writer:
    """Writes statements as PTX. Functions return where kernels exit."""

    def __init__(self, is_kernel):
        self.is_kernel = is_kernel
        self.lines = []
        self.labels = 0
        self.loops = []
        self.counters = 0

    def label(self):
        self.labels += 1
        return f"L{self.labels}{'k' if self.is_kernel else 'f'}"

    def compare(self, condition):
        a, name, b = condition
        self.lines.append(f"setp.{name}.u32 %p0, {a}, {b};")

    def assign(self, statement, guard=""):
        _, operation, target, a, b = statement
        kind = "b32" if operation in ("and", "or", "xor") else "u32"
        self.lines.append(f"{guard}{operation}.{kind} %r{target}, {a}, {b};")

    def block(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, statement):
        match statement:
            case ("assign", *_):
                self.assign(statement)
            case ("guarded", condition, negated, inner):
                self.compare(condition)
                self.assign(inner, f"@{'!' * negated}%p0 ")
            case ("store", slot, register):
                if self.is_kernel:
                    self.lines.append(f"st.global.u32 [%out+{4 * slot}], %r{register};")
            case ("break" | "continue" as what, condition):
                if self.loops:
                    self.compare(condition)
                    self.lines.append(f"@%p0 bra {self.loops[-1][what == 'continue']};")
            case ("leave", condition, at_once):
                self.compare(condition)
                if self.is_kernel:
                    self.lines.append("@%p0 exit;" if at_once else "@%p0 bra END;")
                else:
                    self.lines.append("st.param.b32 [r], %r0;")
                    self.lines.append("@%p0 ret;" if at_once else "@%p0 bra END;")
            case ("call", target, argument):
                if self.is_kernel:
                    self.lines.append(
                        "{ .param .b32 a; .param .b32 b;\n"
                        f"st.param.b32 [a], %r{argument}; call (b), helper, (a);\n"
                        f"ld.param.u32 %r{target}, [b]; }}"
                    )
            case ("if", condition, then, other):
                skip, end = self.label(), self.label()
                self.compare(condition)
                self.lines.append(f"@!%p0 bra {skip};")
                self.block(then)
                if other is not None:
                    self.lines.append(f"bra {end};")
                self.lines.append(f"{skip}:")
                if other is not None:
                    self.block(other)
                    self.lines.append(f"{end}:")
            case ("loop", trips, body, at_end):
                head, end, test = self.label(), self.label(), self.label()
                count, limit = f"%c{self.counters}", f"%c{self.counters + 1}"
                self.counters += 2
                self.lines.append(f"mov.u32 {count}, 0;")
                self.lines.append(f"and.b32 {limit}, %r{trips}, 3;")
                self.loops.append((end, test if at_end else head))
                self.lines.append(f"{head}:")
                if not at_end:
                    self.lines.append(f"setp.ge.u32 %p1, {count}, {limit};")
                    self.lines.append(f"@%p1 bra {end};")
                    self.lines.append(f"add.u32 {count}, {count}, 1;")
                self.block(body)
                self.loops.pop()
                if at_end:
                    self.lines.append(f"{test}:")
                    self.lines.append(f"add.u32 {count}, {count}, 1;")
                    self.lines.append(f"setp.lt.u32 %p1, {count}, {limit};")
                    self.lines.append(f"@%p1 bra {head};")
                else:
                    self.lines.append(f"bra {head};")
                self.lines.append(f"{end}:")
        return self.lines


def write(program):
    kernel, helper = Writer(True), Writer(False)
    kernel.block(program[0])
    helper.block(program[1])

    def declared(writer):
        return (
            f".reg .pred %p<2>; .reg .b32 %r<{REGISTERS}>; .reg .b32 %c<{writer.counters + 1}>;"
            ".reg .b32 %t; .reg .b64 %base; .reg .b64 %out;"
        )

    return "\n".join(
        [
            HEADER,
            ".func (.param .b32 r) helper(.param .b32 v)",
            "{",
            declared(helper),
            "ld.param.u32 %r0, [v];",
            *(f"add.u32 %r{i}, %r0, {i};" for i in range(1, REGISTERS)),
            *helper.lines,
            "END:",
            "st.param.b32 [r], %r0;",
            "ret;",
            "}",
            ".visible .entry k(.param .u64 p)",
            "{",
            declared(kernel),
            "ld.param.u64 %base, [p];",
            "mov.u32 %t, %tid.x;",
            f"mad.wide.u32 %out, %t, {4 * SLOTS}, %base;",
            *(f"shr.u32 %r{i}, %t, {i};" for i in range(REGISTERS)),
            *kernel.lines,
            *(f"st.global.u32 [%out+{4 * i}], %r{i};" for i in range(REGISTERS)),
            "END:",
            "ret;",
            "}",
        ]
    )


def check_program(text):
    device = ws.cuda.Device(0.25)
    module = ws.cuda.compile(text, device=device)
    out = device.zeros((THREADS, SLOTS), np.uint32)
    trace = module.kernel("k").launch(1, THREADS, out)
    untraced = device.zeros((THREADS, SLOTS), np.uint32)
    assert module.kernel("k").launch(1, THREADS, untraced, trace=False) is None

    functions = ptx_scalar.parse(text)
    executed = {}
    memory = {out.address + 4 * i: 0 for i in range(THREADS * SLOTS)}
    for t in range(THREADS):
        thread = ptx_scalar.Thread(functions, memory, {"%tid.x": t})
        thread.run("k", [out.address])
        for place, times in thread.executed.items():
            executed[place] = executed.get(place, 0) + times
    expected = np.array(list(memory.values()), np.uint32).reshape(THREADS, SLOTS)
    assert (out.to_host() == expected).all(), text
    assert (untraced.to_host() == expected).all(), text

    # Rows of the trace are the instructions of the text, the kernel's first, without folded ones.
    called = any(i.opcode == "call" for i in functions["k"].code)
    listed = [
        (name, *row)
        for name in (["k", "helper"] if called else ["k"])
        for row in functions[name].rows()
    ]
    assert trace.instructions.opcode.tolist() == [opcode for _, _, opcode, _ in listed]
    lanes = np.zeros(len(listed), int)
    for block, warps in enumerate(w for _, w in trace.blocks()):
        for w in range(len(warps)):
            columns = trace.warp(block, w)
            rows, masks = columns["instruction"], columns["active_mask"]
            full = ALL if w == 0 else (1 << (THREADS - 32)) - 1
            assert not (masks & ~np.uint32(full)).any()
            for row, mask in zip(rows.tolist(), masks.tolist(), strict=True):
                lanes[row] += int(mask).bit_count()
                assert mask != 0 or listed[row][3] is not None, text
            # Every thread leaves once, at the end or before.
            assert listed[rows[-1]][0] == "k"
            assert listed[rows[-1]][2] in ("ret", "exit")
    assert lanes.tolist() == [executed.get((name, n), 0) for name, n, _, _ in listed], text


@pytest.mark.slow
@settings(max_examples=rounds(80))
@given(programs)
def test_random_programs(program):
    check_program(write(program))


def test_a_program_of_every_statement():
    """The statements that the random ones are made of, nested, so that none is left to chance."""
    odd = ("%r0", "ge", "5")
    call = ("call", 1, 0)
    leave = [("leave", ("%r4", "eq", "2"), True), ("leave", ("%r0", "eq", "7"), False)]
    body = [
        ("assign", "add", 2, "%r2", "%r0"),
        ("break", ("%r2", "gt", "9")),
        (
            "if",
            odd,
            [call, ("continue", ("%r1", "lt", "40"))],
            [("assign", "mul.lo", 3, "%r2", "3")],
        ),
        *leave,
        ("store", 6, 3),
    ]
    program = (
        [
            ("guarded", odd, True, ("assign", "xor", 1, "%r0", "5")),
            ("loop", 0, [("loop", 1, body, False), ("assign", "add", 4, "%r4", "1")], True),
            ("store", 7, 2),
        ],
        [("if", odd, [("leave", ("%r1", "lt", "20"), True)], None), ("loop", 0, body[:2], False)],
    )
    check_program(write(program))


# ---- values that lanes hold while others run ----

LEAST = """
extern "C" __global__ void k(const float* steps, const float* wanted, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int found = -1;
  for (int x = 0; x < n; ++x) {
    if (steps[x] >= wanted[i]) {
      found = x;
      break;
    }
  }
  out[i] = found == -1 ? n - 1 : found;
}
"""
# Lanes leave the loop with %r2 in a place that the loop's addresses must not take.
LEAST_PTX = """
.version 8.3
.target sm_75
.address_size 64
.visible .entry k(.param .u64 s, .param .u64 w, .param .u64 o, .param .u32 m)
{
.reg .pred %p<4>; .reg .f32 %f<3>; .reg .b32 %r<6>; .reg .b64 %d<12>;
ld.param.u64 %d1, [s]; ld.param.u64 %d2, [w]; ld.param.u64 %d3, [o]; ld.param.u32 %r1, [m];
mov.u32 %r3, %tid.x;
mul.wide.u32 %d4, %r3, 4; add.u64 %d5, %d2, %d4; ld.global.f32 %f1, [%d5];
mov.u32 %r4, 0;
again: mul.wide.u32 %d6, %r4, 4; add.u64 %d7, %d1, %d6; ld.global.f32 %f2, [%d7];
setp.ge.f32 %p1, %f2, %f1; @%p1 bra found;
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r1; @%p2 bra again;
sub.u32 %r2, %r1, 1; bra.uni store;
found: mov.u32 %r2, %r4;
store: mul.wide.u32 %d8, %r3, 4; add.u64 %d9, %d3, %d8; st.global.u32 [%d9], %r2;
ret;
}
"""


def check_least(module_text, kernel="k"):
    device = ws.cuda.Device(0.25)
    steps = (np.arange(32, dtype=np.float32) + 1) / 32
    wanted = (np.arange(32, dtype=np.float32) + np.float32(0.5)) / 32
    out = device.zeros(32, np.int32)
    arrays = [ws.cuda.array(x, device=device) for x in (steps, wanted)]
    ws.cuda.compile(module_text, device=device).kernel(kernel).launch(1, 32, *arrays, out, 32)
    assert out.to_host().tolist() == list(range(32))


def test_lanes_carry_a_value_out_of_a_loop():
    check_least(LEAST_PTX)


@pytest.mark.skipif(not ws.cuda.compilers(), reason="neither nvcc nor NVRTC is installed")
def test_lanes_carry_a_value_out_of_a_compiled_loop():
    check_least(LEAST)


@pytest.mark.skipif(not ws.cuda.compilers(), reason="neither nvcc nor NVRTC is installed")
def test_lanes_break_in_the_program_of_the_reference_material(shared):
    text = (shared / "reference" / "programs" / "brk.cu").read_text()
    kernel = text[text.index("__global__") : text.index("int main")]
    check_least('extern "C" ' + kernel, "find")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_random_programs_of_many_values(part):
    """Further ones, by hand: python tests/python/ptx_programs.py --count 1000000 --seed 100000."""
    device = ws.cuda.Device(0.25)
    for seed in range(250 * part, 250 * part + rounds(250)):
        ptx_programs.check_program(
            ptx_programs.write_program(seed), device, 32 - seed % 4, count_lanes=seed % 10 == 0
        )


# ---- reconvergence ----


def masks_of(trace, warp=0, block=0):
    """Return [(opcode, mask)] of a warp."""
    columns = trace.warp(block, warp)
    opcodes = trace.instructions.opcode.tolist()
    pairs = zip(columns["instruction"].tolist(), columns["active_mask"].tolist(), strict=True)
    return [(opcodes[row], mask) for row, mask in pairs]


def traced(body, count=32):
    """Return the masks of the instructions that a body has, without the prologue and the end."""
    _, trace = run(body, np.zeros(count, np.uint32))
    return masks_of(trace)[4:-1]


def test_if_and_else_meet_behind():
    odd = mask_of(lambda t: t % 2)
    assert traced(
        "and.b32 %r0, %t, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra even; add.u32 %r1, %t, 1; bra end;"
        "even: sub.u32 %r1, %t, 1; end: xor.b32 %r2, %r1, 1;"
    ) == [
        ("and.b32", ALL),
        ("setp.eq.u32", ALL),
        ("bra", ALL ^ odd),
        ("sub.u32", ALL ^ odd),
        ("add.u32", odd),
        ("bra", odd),
        ("xor.b32", ALL),
    ]


def test_nested_divergence_meets_level_by_level():
    low = mask_of(lambda t: t < 16)
    lowest = mask_of(lambda t: t < 8)
    assert traced(
        "setp.ge.u32 %p0, %t, 16; @%p0 bra outer; setp.ge.u32 %p1, %t, 8; @%p1 bra inner;"
        "add.u32 %r1, %t, 1; inner: sub.u32 %r1, %t, 1; outer: xor.b32 %r2, %t, 1;"
    ) == [
        ("setp.ge.u32", ALL),
        ("bra", ALL ^ low),
        ("setp.ge.u32", low),
        ("bra", low ^ lowest),
        ("add.u32", lowest),
        ("sub.u32", low),
        ("xor.b32", ALL),
    ]


def test_loop_with_its_own_trip_count_per_lane():
    """Lane t runs t % 4 + 1 trips; all meet behind the loop."""
    got = traced(
        "and.b32 %r0, %t, 3; mov.u32 %r1, 0; again: add.u32 %r1, %r1, 1;"
        "setp.le.u32 %p0, %r1, %r0; @%p0 bra again; xor.b32 %r2, %r1, 1;"
    )
    expected = [("and.b32", ALL), ("mov.u32", ALL)]
    for trip in range(4):
        here = mask_of(lambda t, trip=trip: t % 4 >= trip)
        stay = mask_of(lambda t, trip=trip: t % 4 > trip)
        expected += [("add.u32", here), ("setp.le.u32", here), ("bra", stay)]
    assert got == [*expected, ("xor.b32", ALL)]


def test_lanes_that_break_wait_behind_the_loop():
    """Two ways out of a loop, one of which passes another instruction: all meet at the last one."""
    got = traced(
        "mov.u32 %r1, 0; again: setp.eq.u32 %p0, %r1, %t; @%p0 bra found; add.u32 %r1, %r1, 1;"
        "setp.lt.u32 %p1, %r1, 3; @%p1 bra again; sub.u32 %r2, %r1, 1; found: xor.b32 %r3, %r1, 1;"
    )
    expected = [("mov.u32", ALL)]
    for trip in range(3):
        here = mask_of(lambda t, trip=trip: t >= trip)
        rest = mask_of(lambda t, trip=trip: t > trip)
        expected += [("setp.eq.u32", here), ("bra", here ^ rest), ("add.u32", rest)]
        expected += [("setp.lt.u32", rest), ("bra", rest if trip < 2 else 0)]
    rest = mask_of(lambda t: t >= 3)
    assert got == [*expected, ("sub.u32", rest), ("xor.b32", ALL)]


def test_exited_lanes_leave_every_entry():
    left = mask_of(lambda t: t >= 8)
    assert traced(
        "setp.ge.u32 %p0, %t, 16; @%p0 bra over; setp.lt.u32 %p1, %t, 8; @%p1 exit;"
        "add.u32 %r0, %t, 1; over: xor.b32 %r1, %t, 1;"
    ) == [
        ("setp.ge.u32", ALL),
        ("bra", mask_of(lambda t: t >= 16)),
        ("setp.lt.u32", mask_of(lambda t: t < 16)),
        ("exit", mask_of(lambda t: t < 8)),
        ("add.u32", mask_of(lambda t: 8 <= t < 16)),
        ("xor.b32", left),
    ]


def test_lanes_that_return_early_keep_nobody_from_meeting():
    """if (t < 16) { if (t < 8) return; … } __syncthreads(): fine on a device."""
    (out,), _ = run(
        "setp.ge.u32 %p0, %t, 16; @%p0 bra over; setp.lt.u32 %p1, %t, 8; @%p1 bra end;"
        "add.u32 %r0, %t, 1; over: bar.sync 0; activemask.b32 %r1;"
        + ADDRESS
        + "st.global.u32 [%l0], %r1; end:",
        np.zeros(64, np.uint32),
        block=64,
    )
    rest = mask_of(lambda t: t >= 8)
    assert out.tolist() == [0] * 8 + [rest] * 24 + [ALL] * 32


def test_the_way_that_leaves_goes_first():
    """@p bra over; exit; over: __syncthreads(): the barrier waits for nobody who is gone."""
    (out,), trace = run(
        "setp.lt.u32 %p0, %t, 8; @%p0 bra over; exit; over: bar.sync 0;"
        + ADDRESS
        + "st.global.u32 [%l0], %t;",
        np.zeros(32, np.uint32),
    )
    low = mask_of(lambda t: t < 8)
    assert masks_of(trace)[5:8] == [("bra", low), ("exit", ALL ^ low), ("bar.sync", low)]
    assert out.tolist() == [*range(8), *[0] * 24]


def test_branches_to_the_end_exit_on_the_spot():
    """if (t < 16) { if (t < 8) { …; return; } … } …: the others meet behind the outer if."""
    got = traced(
        "setp.ge.u32 %p0, %t, 16; @%p0 bra over; setp.ge.u32 %p1, %t, 8; @%p1 bra on;"
        "add.u32 %r0, %t, 1; bra end; on: sub.u32 %r0, %t, 1; over: xor.b32 %r1, %t, 1; end:"
    )
    low, middle = mask_of(lambda t: t < 8), mask_of(lambda t: 8 <= t < 16)
    assert sorted(got[4:]) == sorted(
        [("add.u32", low), ("exit", low), ("sub.u32", middle), ("xor.b32", ALL ^ low)]
    )
    assert got[-1] == ("xor.b32", ALL ^ low)


def test_an_early_exit_at_the_end_of_the_text():
    """Compilers put seldom taken ways last: the exit that most steps reach is the natural one."""
    (out,), _ = run(
        "setp.ge.u32 %p0, %t, 16; @%p0 bra over; setp.lt.u32 %p1, %t, 8; @%p1 bra early;"
        "add.u32 %r0, %t, 1; over: bar.sync 0; activemask.b32 %r1;"
        + ADDRESS
        + "st.global.u32 [%l0], %r1; ret; early: "
        + ADDRESS
        + "st.global.u32 [%l0], %t;",
        np.zeros(32, np.uint32),
    )
    rest = mask_of(lambda t: t >= 8)
    assert out.tolist() == [*range(8), *[rest] * 24]


def test_loops_that_only_an_exit_leaves_meet_inside():
    """while (true) { if (…) …; …; if (done) return; }: the inner branch meets in every trip."""
    got = traced(
        "mov.u32 %r1, 0; again: setp.lt.u32 %p0, %t, 16; @%p0 bra on; add.u32 %r2, %r1, 1;"
        "on: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 2; @%p1 exit; bra again;"
    )
    high = mask_of(lambda t: t >= 16)
    trip = [("setp.lt.u32", ALL), ("bra", ALL ^ high), ("add.u32", high), ("add.u32", ALL)]
    once = [*trip, ("setp.eq.u32", ALL), ("exit", 0), ("bra", ALL)]
    # traced() takes the last instruction, the exit, for the kernel's end.
    assert got == [("mov.u32", ALL), *once, *trip, ("setp.eq.u32", ALL)]


def test_functions_return_lane_by_lane():
    outside = (
        ".func (.param .b32 r) f(.param .b32 v) { .reg .b32 %x; .reg .pred %p; ld.param.u32 %x, [v];"
        "st.param.b32 [r], 0; setp.lt.u32 %p, %x, 4; @%p ret; add.u32 %x, %x, 1;"
        "st.param.b32 [r], %x; ret; }"
    )
    body = (
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %t; call (b), f, (a);"
        " ld.param.b32 %r0, [b]; } xor.b32 %r1, %r0, 1;"
    )
    _, trace = run(body, np.zeros(1, np.uint32), outside=outside)
    rest = mask_of(lambda t: t >= 4)
    assert masks_of(trace)[4:-1] == [
        ("call", ALL),
        ("setp.lt.u32", ALL),
        ("ret", ALL ^ rest),
        ("add.u32", rest),
        ("ret", rest),
        ("xor.b32", ALL),
    ]


def test_predicated_off_instructions_are_issued():
    assert traced(
        "setp.gt.u32 %p0, %t, 99; @%p0 add.u32 %r0, %t, 1; @!%p0 sub.u32 %r0, %t, 1;"
    ) == [
        ("setp.gt.u32", ALL),
        ("add.u32", 0),
        ("sub.u32", ALL),
    ]


# ---- locks ----

LOCK = """
acquire: atom.global.cas.b32 %r0, [%a0], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra acquire;
ld.global.u32 %r1, [%a0+4]; add.u32 %r1, %r1, 1; st.global.u32 [%a0+4], %r1;
membar.gl; atom.global.exch.b32 %r2, [%a0], 0;
"""


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 32), (1, 256), (3, 96)])
def test_spin_lock_of_every_thread(grid, block):
    """Lanes of one warp compete: with reconvergence alone the holder would never release."""
    (memory,), _ = run(LOCK, np.zeros(2, np.uint32), grid=grid, block=block, step_limit=10**7)
    assert memory.tolist() == [0, grid * block]


def test_warp_waits_for_another_warp():
    """Warp 0 polls a flag that warp 1 sets."""
    body = (
        "setp.ge.u32 %p0, %t, 32; @%p0 bra set; poll: ld.volatile.global.u32 %r0, [%a0];"
        "setp.eq.u32 %p1, %r0, 0; @%p1 bra poll; st.global.u32 [%a0+4], %r0; bra end;"
        "set: st.volatile.global.u32 [%a0], 7; end:"
    )
    (memory,), _ = run(body, np.zeros(2, np.uint32), block=64, step_limit=10**8)
    assert memory.tolist() == [7, 7]


# ---- copies and calls ----


def test_copies_in_a_circle_end():
    """cvta of registers that have nothing but each other: no value, and no endless search for it."""
    bodies = ["cvta.to.global.u64 %l0, %l0;"]
    for length in (2, 3, 7):
        bodies.append(
            "".join(
                f".reg .b64 %c{i};"
                if part == 0
                else f"cvta.global.u64 %c{i}, %c{(i + 1) % length};"
                for part in (0, 1)
                for i in range(length)
            )
        )
    # A chain into a circle, whose instructions name the registers in rows of the trace.
    bodies.append(bodies[2] + "cvta.to.global.u64 %l0, %c0; add.u64 %l1, %l0, %c2;")
    program = (
        "import sys, json, warpstack as ws\n"
        "for text in json.load(sys.stdin): ws.cuda.compile(text).kernel('k').launch(1, 1)\n"
    )
    texts = [
        HEADER + f".visible .entry k() {{ .reg .b64 %l<2>; {body} add.u64 %l1, %l0, 1; ret; }}"
        for body in bodies
    ]
    subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(texts), text=True, check=True, timeout=300
    )


def test_long_chains_of_copies_are_quick():
    """Each instruction names the end of a chain of 5000 copies, all of which are folded."""
    copies = "".join(f"cvta.global.u64 %c{i + 1}, %c{i};\n" for i in range(5000))
    uses = "add.u64 %s, %s, %c5000;\n" * 5000
    text = (
        HEADER + ".visible .entry k() { .reg .b64 %c<5001>; .reg .b64 %s;"
        f"mov.u64 %c0, 1; mov.u64 %s, 0;\n{copies}{uses}ret; }}"
    )
    device = ws.cuda.Device(0.25)
    began = time.process_time()
    module = ws.cuda.compile(text, device=device)
    trace = module.kernel("k").launch(1, 1)
    assert time.process_time() - began < 10
    # The additions depend on the first register of the chain.
    assert trace.num_instructions == 5003


def test_functions_are_called_at_64_bit_addresses():
    text = (
        HEADER + ".func f() { ret; }\n.visible .entry k() { .reg .b32 %r0; mov.u32 %r0, 4096;"
        "p: .callprototype _ (); call %r0, p; ret; }"
    )
    with pytest.raises(InputError, match="register %r0 has another width than the instruction"):
        ws.cuda.compile(text).kernel("k")
