"""Functions and addresses of PTX in their older and rarer forms, and text that is not understood."""

import re

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import HEADER, message_of, run
from warpstack.errors import InputError

OWN = "mad.wide.u32 %l0, %t, 4, %a0;"


def results(body, outside="", words=1):
    """Run a body that sets %r0 (and %r1, …) with the functions before it; return a row per lane."""
    stores = "".join(f"st.global.u32 [%l0+{4 * i}], %r{i};" for i in range(words))
    place = f"mad.wide.u32 %l0, %t, {4 * words}, %a0;"
    (found,), trace = run(body + place + stores, np.zeros((32, words), np.uint32), outside=outside)
    return found.tolist(), trace


@pytest.mark.parametrize("end", [";", "", '\n.file 1 "a.cu"\n'])
@pytest.mark.parametrize("before", [".func", ".visible .func", ".extern .func"])
def test_forward_declarations(before, end):
    """Old compilers wrote no semicolon behind a declaration."""
    body = "(.param .b32 r) twice (.param .b32 x)"
    definition = (
        f"{before.replace('.extern', '.visible')} {body} {{ .reg .b32 %x; ld.param.b32 %x, [x];"
        " add.u32 %x, %x, %x; st.param.b32 [r], %x; ret; }"
    )
    found, _ = results(
        ".param .b32 a; .param .b32 b; st.param.b32 [a], %t; call (b), twice, (a); ld.param.b32 %r0, [b];",
        f"{before} {body}{end}\n.global .u32 unused;\n.func nothing{end or ';'}\n{definition}",
    )
    assert found == [[2 * lane] for lane in range(32)]


def test_a_declaration_without_an_end():
    with pytest.raises(
        InputError, match=r":4: expected ';' or a body after the head of 'f', found '5'"
    ):
        ws.cuda.compile(HEADER + ".func f (.param .b32 x) 5;")
    with pytest.raises(InputError, match=r"expected the body or ';' after the head of 'f'"):
        ws.cuda.compile(HEADER + ".func f (.param .b32 x) .nonsense;")


def test_arguments_in_registers():
    """Registers, constants and predicates as arguments; several results; results that are arguments."""
    outside = (
        ".func (.reg .u32 s, .reg .u64 d) both (.reg .u32 x, .reg .u32 y, .reg .pred q, .reg .u16 h)"
        " { .reg .u32 %w; add.u32 s, x, y; cvt.u32.u16 %w, h; @q add.u32 s, s, %w;"
        " mul.wide.u32 d, x, y; @!q bra END; ret; END: }"
    )
    body = (
        ".reg .u16 %k; cvt.u16.u32 %k, %t; and.b32 %r2, %t, 1; setp.ne.u32 %p0, %r2, 0; mov.u32 %r0, %t;"
        "call (%r0, %l1), both, (%r0, 7, %p0, %k); cvt.u32.u64 %r1, %l1;"
        "call (%r2, _), both, (%r1, %r0, 1, 3); call (%r3, %l1), both, (%t, %t, 0, 3);"
    )
    found, _ = results(body, outside, 4)
    for lane, row in enumerate(found):
        total = lane + 7 + (lane if lane % 2 else 0)
        assert row == [total, 7 * lane, 7 * lane + total + 3, 2 * lane]


def test_registers_and_parameters_mix():
    """A register can be given for a `.param` parameter, and a `.param` variable for a register."""
    outside = (
        ".func (.param .b32 r) f (.param .b32 x) { .reg .b32 %x; ld.param.b32 %x, [x];"
        " add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }\n"
        ".func (.reg .b32 r) g (.reg .v2 .b32 x) { add.u32 r, x.x, x.y; ret; }\n"
        ".func (.reg .f32 r) h (.reg .f32 x) { add.f32 r, x, 0f3F800000; }"
    )
    body = (
        ".reg .v2 .b32 %v; mov.b32 %v.x, %t; mov.b32 %v.y, 5; .reg .f32 %z;"
        "call (%r0), f, (%t); call (%r1), g, (%v); call (%z), h, (0f40000000); mov.b32 %r2, %z;"
        ".param .b32 o; call (o), f, (41); ld.param.b32 %r3, [o];"
    )
    found, _ = results(body, outside, 4)
    assert found == [[lane + 1, lane + 5, 0x40400000, 42] for lane in range(32)]


def test_recursion_and_indirect_calls_in_registers():
    outside = (
        ".func (.reg .u32 r) factorial (.reg .u32 n) { .reg .pred %p; .reg .u32 %m, %x;"
        " mov.u32 r, 1; setp.lt.u32 %p, n, 2; @%p ret; sub.u32 %m, n, 1;"
        " call (%x), factorial, (%m); mul.lo.u32 r, n, %x; ret; }\n"
        ".func (.reg .u32 r) square (.reg .u32 n) { mul.lo.u32 r, n, n; ret; }"
    )
    body = (
        "and.b32 %r1, %t, 7; call (%r0), factorial, (%r1); setp.gt.u32 %p0, %r1, 3;"
        "mov.u64 %l1, square; mov.u64 %l2, factorial; selp.b64 %l1, %l1, %l2, %p0;"
        "kind: .callprototype (.reg .u32 _) _ (.reg .u32 _); call (%r1), %l1, (%r1), kind;"
    )
    found, _ = results(body, outside, 2)
    factorials = [1, 1, 2, 6, 24, 120, 720, 5040]
    assert found == [
        [factorials[lane % 8], (lane % 8) ** 2 if lane % 8 > 3 else factorials[lane % 8]]
        for lane in range(32)
    ]


def test_a_result_may_be_the_guard():
    outside = (
        ".func (.reg .pred q, .reg .u32 r) f (.reg .u32 x) { setp.gt.u32 q, x, 20; mov.u32 r, 3; }"
    )
    body = "setp.gt.u32 %p0, %t, 7; mov.u32 %r0, 1; @%p0 call (%p0, %r0), f, (%t); selp.u32 %r1, 1, 0, %p0;"
    found, _ = results(body, outside, 2)
    assert found == [[3 if lane > 7 else 1, int(lane > 20)] for lane in range(32)]


def test_calls_in_registers_are_one_row():
    """The row of the call stands before those of the function, as with `.param` variables."""
    outside = ".func (.reg .u32 r) f (.reg .u32 x) { add.u32 r, x, 1; ret; }"
    _, trace = results("call (%r0), f, (%t);", outside)
    columns = trace.warp(0, 0)
    names = trace.instructions.opcode.to_numpy()[columns["instruction"]].tolist()
    place = names.index("call")
    assert names.count("call") == 1
    assert names[place : place + 3] == ["call", "add.u32", "ret"]


def test_wrong_arguments_are_refused():
    outside = ".func (.reg .u32 r) f (.reg .u64 x) { cvt.u32.u64 r, x; ret; }"
    assert "narrower than the parameter" in message_of("call (%r0), f, (%t);", outside=outside)
    message = message_of("call (%r0), f, (%l0, %l1);", outside=outside)
    assert "no parameter that it is for" in message
    assert "another number" in message_of("call f, (%l0);", outside=outside)


@pytest.mark.parametrize("space", ["global", "const", "shared", "local"])
def test_elements_of_arrays(space):
    """`a[i]` is an element, in brackets or not, by a number or a register."""
    declaration = f".{space} .align 4 .u16 a[8]"
    inside = space in ("shared", "local")
    values = [7, 11, 13, 17, 19, 23, 29, 31]
    if inside:
        outside, begin = "", f"{declaration};"
        begin += "".join(f"st.{space}.u16 [a+{2 * i}], {v};" for i, v in enumerate(values))
    else:
        outside, begin = f"{declaration} = {{{', '.join(map(str, values))}}};", ""
    loads = ["[a[3]]", "a[5]", "[a[1]+4]", "[a+4]", "[a[2+2]]", "a[%r8]", "[a[%l5]]", "a[%r8+1]"]
    body = begin + "and.b32 %r8, %t, 3; mov.u64 %l5, 6;"
    body += "".join(f"ld.{space}.u16 %r{i}, {place};" for i, place in enumerate(loads))
    found, _ = results(body, outside, 8)
    for lane, row in enumerate(found):
        assert row == [17, 23, 17, 13, 19, values[lane % 4], 29, values[lane % 4 + 1]]


def test_elements_of_parameters_and_addresses():
    text = HEADER + (
        ".global .v2 .u32 pairs[4] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};\n"
        ".visible .entry k(.param .u64 p, .param .u32 a[4]) { .reg .b64 %o, %g; .reg .b32 %r<6>;"
        " ld.param.u64 %o, [p]; ld.param.u32 %r0, [a[2]]; ld.param.u32 %r1, a[3];"
        " mov.u64 %g, pairs[3]; ld.global.u32 %r2, [%g]; atom.global.add.u32 %r3, pairs[1], 5;"
        " ld.global.u32 %r4, [pairs[1]]; st.global.u32 [pairs[7]], 9; ld.global.u32 %r5, pairs[7];"
        " st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3}; st.global.v2.u32 [%o+16], {%r4, %r5}; ret; }"
    )
    device = ws.cuda.Device(0.25)
    out = device.zeros(6, np.uint32)
    kernel = ws.cuda.compile(text, device=device).kernel("k")
    kernel.launch(1, 1, out, np.array([10, 20, 30, 40], np.uint32).tobytes())
    assert out.to_host().tolist() == [30, 40, 4, 2, 7, 9]


ALLOCATE = (
    "cvt.u64.u32 %l3, %t; mul.lo.u64 %l3, %l3, 4; add.u64 %l3, %l3, 4; alloca.u64 %l1, %l3, 16;"
)


def test_alloca_of_each_thread():
    """Threads allocate different sizes; the memory is local, and generic by cvta."""
    body = (
        ".local .align 4 .b8 frame[20]; st.local.u32 [frame+16], 77;"
        + ALLOCATE
        + "mov.u32 %r0, 0; mov.u64 %l2, %l1; again: st.local.u32 [%l2], %r0; add.u64 %l2, %l2, 4;"
        "add.u32 %r0, %r0, 1; setp.le.u32 %p0, %r0, %t; @%p0 bra again; cvta.local.u64 %l4, %l1;"
        "mad.wide.u32 %l4, %t, 4, %l4; ld.u32 %r0, [%l4]; ld.local.u32 %r1, [frame+16];"
        "alloca.u32 %r2, 8; cvt.u32.u64 %r3, %l1; sub.u32 %r2, %r2, %r3; and.b32 %r3, %r3, 15;"
    )
    found, _ = results(body, words=4)
    assert found == [[lane, 77, (4 * lane + 4 + 7) // 8 * 8, 0] for lane in range(32)]


def test_the_stack_is_given_back():
    """What a function allocates ends with it; stackrestore gives back what came after stacksave."""
    outside = (
        ".func (.reg .u64 r) f (.reg .u32 n) { .reg .pred %p; .reg .u64 %x; alloca.u64 r, 400;"
        " st.local.u32 [r+396], n; setp.gt.u32 %p, n, 40; @%p ret; alloca.u64 %x, 8; }"
    )
    body = (
        "alloca.u64 %l1, 8; mov.u32 %r4, 0; again: call (%l2), f, (%r4); add.u32 %r4, %r4, 1;"
        "setp.lt.u32 %p0, %r4, 50; @%p0 bra again; alloca.u64 %l3, 8; stacksave.u64 %l6;"
        "alloca.u64 %l4, 900; stackrestore.u64 %l6; alloca.u64 %l5, 900;"
        "sub.u64 %l2, %l2, %l1; cvt.u32.u64 %r0, %l2; sub.u64 %l3, %l3, %l1; cvt.u32.u64 %r1, %l3;"
        "sub.u64 %l5, %l5, %l4; cvt.u32.u64 %r2, %l5;"
    )
    found, _ = results(body, outside, 3)
    assert found == [[8, 8, 0]] * 32


def test_the_stack_is_limited():
    for body in ("alloca.u64 %l0, 1000; alloca.u64 %l1, 32;", "alloca.u64 %l0, -1;"):
        assert re.search(r"PTX line N, alloca.u64.*the kernel executed a trap", message_of(body))
    run("alloca.u64 %l0, 1000; alloca.u64 %l1, 24;", np.zeros(32, np.uint32))
    assert "not a power of two" in message_of("alloca.u64 %l0, 8, 12;")


#: Instructions that are not understood, in the ways in which they can be.
NOT_UNDERSTOOD = {
    "unknown opcode": "frobnicate.sync.b32 %r0, %r1, {%r2, 5}, [%l0+4];",
    "unknown operands": "frobnicate <%r0>, %r1 -> %r2;",
    "unknown modifier": "add.sideways.u32 %r0, %r1, %r2;",
    "part of a register": "frobnicate.u32.u32.u32 %r0, %r1.b0, %r2.h1, %r1;",
    "special register": "mov.u32 %r0, %weather;",
    "operand of another kind": "mul.lo.u32 %r0, %r1, [%l0];",
    "brackets": "frobnicate [%l0, {%r0, %r1}, [%l1]], (%r0, %r1), %r0 | %r1;",
    "characters": "frobnicate %r0, $;",
    "number": "mov.u32 %r0, 0x;",
    "several lines": "frobnicate {%r0,\n  %r1 ?},\n  // a comment; with a semicolon\n  %r2;",
    "guard": "@%r1 add.u32 %r0, %r1, %r2;",
}


@pytest.mark.parametrize("kind", NOT_UNDERSTOOD)
@pytest.mark.parametrize("where", ["kernel", "function"])
def test_one_instruction_does_not_refuse_the_module(kind, where):
    """An instruction that is not understood is refused with its kernel; the others run."""
    instruction = NOT_UNDERSTOOD[kind]
    registers = ".reg .b32 %r<4>; .reg .b64 %l<2>;"
    bad = f"\n{instruction}\nret; }}\n"
    text = HEADER + f".func f() {{ {registers}"
    text += bad if where == "function" else " ret; }\n"
    text += f".visible .entry bad() {{ {registers} call f;"
    text += bad if where == "kernel" else " ret; }\n"
    line = text[: text.index(instruction)].count("\n") + 1
    text += (
        ".visible .entry good(.param .u64 p) { .reg .b64 %a; ld.param.u64 %a, [p];"
        " st.global.u32 [%a], 42; ret; }\n"
    )
    device = ws.cuda.Device(0.25)
    module = ws.cuda.compile(text, device=device)
    assert module.kernels == ("bad", "good")
    out = device.zeros(1, np.uint32)
    module.kernel("good").launch(1, 1, out)
    assert out.to_host().tolist() == [42]
    opcode = re.split(r"[ ;]", re.sub(r"^@\S+ ", "", instruction))[0]
    with pytest.raises(
        InputError, match=rf":{line}: kernel bad: cannot simulate {re.escape(opcode)}: ."
    ):
        module.kernel("bad")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "add.u32 %r0, %r1, %r2\nret;",
            r":6: expected ';' after the operands of add.u32, found 'ret'",
        ),
        ("frobnicate %r0 }", r"expected ';' after the operands of frobnicate, found '}'"),
        ("bra nowhere;", r":5: undefined label 'nowhere'"),
    ],
)
def test_text_that_is_not_ptx_refuses_the_module(body, reason):
    with pytest.raises(InputError, match=reason):
        ws.cuda.compile(HEADER + ".visible .entry k() { .reg .b32 %r<4>;\n" + body + "\nret; }\n")
