"""What the PTX interpreter says of kernels that cannot go on, to the letter."""

import re

import numpy as np
import pytest

import warpstack as ws
from ptx_forms import HEADER, at, compile_body, message_of
from warpstack.errors import InputError

ADDRESS = at("%l0", "%a0", "%g", 4)


def test_message_of_a_deadlock():
    body = "setp.lt.u32 %p0, %t, 32; @%p0 bra first; bar.sync 1; bra end; first: bar.sync 2; end:"
    assert message_of(body, block=64) == (
        "kernel k, block (0, 0, 0): deadlock: all warps that have not finished wait: "
        "warp 0 at barrier 2 (PTX line N, bar.sync), warp 1 at barrier 1 (PTX line N, bar.sync)"
    )


def test_message_of_a_divergent_barrier():
    body = "setp.lt.u32 %p0, %t, 40; @%p0 bra over; bar.sync 0; over: add.u32 %r0, %t, 1;"
    assert message_of(body, block=64, grid=2) == (
        "kernel k (PTX line N, bar.sync), block (0, 0, 0), thread (40, 0, 0): divergent barrier: "
        "24 of 32 threads of warp 1 are here, thread (32, 0, 0) is not"
    )


def test_the_step_limit_is_near():
    """A loop without an end and one of many turns stop right behind the limit."""
    body = (
        "again: ld.global.u32 %r0, [%a0]; add.u32 %r0, %r0, 1; st.global.u32 [%a0], %r0; bra again;"
    )
    device = ws.cuda.Device(0.25)
    module = compile_body(body, 1, device=device)
    for limit in (1000, 3 * 2**20 + 5):
        held = device.zeros(1, np.uint32)
        with pytest.raises(InputError, match=f"more than {limit} warp instructions"):
            module.kernel("k").launch(1, 1, held, step_limit=limit, trace=False)
        # Four instructions a round, a few before the loop.
        assert limit // 4 - 5 <= held.to_host()[0] <= limit // 4 + 1


def test_messages_of_impossible_barriers():
    assert message_of("mov.u32 %r0, 16; bar.sync %r0;").endswith(
        "thread (0, 0, 0): barrier 16 of 16"
    )
    assert message_of("bar.sync 0, 33;").endswith(
        "barrier for 33 threads, which is not a multiple of 32"
    )
    body = "and.b32 %r0, %t, 32; add.u32 %r0, %r0, 32; bar.sync 3, %r0;"
    assert message_of(body, block=96).endswith(
        "thread (64, 0, 0): barrier 3 is used with different thread counts"
    )


def test_message_of_the_step_limit():
    message = message_of("again: add.u32 %r0, %r0, 1; bra again;", step_limit=1000)
    assert re.fullmatch(
        r"kernel k \(PTX line N, (add.u32|bra)\), block \(0, 0, 0\): the launch has executed more "
        r"than 1000 warp instructions; raise step_limit if it is not an endless loop",
        message,
    )


def test_messages_of_bad_accesses():
    load = ADDRESS + "ld.global.u32 %r0, [%l0{}];"
    place = "kernel k (PTX line N, ld.global.u32), block (1, 0, 0), thread ({}, 0, 0): "
    assert message_of(load.format("+64"), np.zeros(48, np.uint32), grid=2) == (
        place.format(0)
        + "out-of-bounds load of 4 bytes at 0x7000000000c0: it is 0 bytes past the end of the "
        "192-byte allocation at 0x700000000000"
    )
    assert message_of(load.format("+1")).endswith(
        "misaligned load of 4 bytes at 0x700000000001, which is not a multiple of 4"
    )
    assert message_of("ld.global.u32 %r0, [%a0+-4];").endswith(
        "out-of-bounds load of 4 bytes at 0x6ffffffffffc: it is 4 bytes before the 128-byte "
        "allocation at 0x700000000000"
    )
    assert message_of("mov.u64 %l0, 0; st.global.u32 [%l0], %t;").endswith(
        "out-of-bounds store of 4 bytes at 0x0: a null pointer"
    )
    assert message_of("mov.u64 %l0, 4096; atom.global.add.u32 %r0, [%l0], 1;").endswith(
        "out-of-bounds atomic operation of 4 bytes at 0x1000: it is far from every allocation"
    )
    assert message_of(".local .align 4 .b8 v[16]; st.local.u32 [v+16], %t;").endswith(
        "out-of-bounds store of 4 bytes at 0x10: the thread has 16 bytes of local memory"
    )
    assert message_of(".shared .align 4 .b8 s[16]; ld.shared.v2.u32 {%r0, %r1}, [s+4];").endswith(
        "misaligned load of 8 bytes at 0x4, which is not a multiple of 8"
    )
    assert message_of(
        ".shared .align 4 .b8 s[16]; cp.async.ca.shared.global [s], [%a0+1], 4;"
    ).endswith("misaligned copy of 4 bytes at 0x700000000001, which is not a multiple of 4")


def test_message_of_uninitialized_memory():
    device = ws.cuda.Device(0.25)
    module = compile_body(ADDRESS + "ld.global.u32 %r0, [%l0];", 1, device=device)
    kernel = module.kernel("k")
    memory = device.empty(32, np.uint32)
    with pytest.raises(InputError) as caught:
        kernel.launch(1, 32, memory)
    assert re.sub(r"line \d+", "line N", str(caught.value)) == (
        "kernel k (PTX line N, ld.global.u32), block (0, 0, 0), thread (0, 0, 0): load of 4 bytes "
        "at 0x700000000000, which nobody has written: 0 bytes into the 128-byte allocation at "
        "0x700000000000 (copy data there first, or launch with check_uninitialized off)"
    )
    kernel.launch(1, 32, memory, check_uninitialized=False)
    # Words that a kernel writes count one by one.
    store = compile_body(ADDRESS + "st.global.u32 [%l0], %t;", 1, device=device).kernel("k")
    store.launch(1, 31, memory)
    kernel.launch(1, 31, memory)
    with pytest.raises(InputError, match=r"thread \(31, 0, 0\): load of 4 bytes at 0x70000000007c"):
        kernel.launch(1, 32, memory)


def test_messages_name_the_source_line():
    text = (
        HEADER
        + '.visible .entry k(.param .u64 p)\n{ .reg .b64 %a; .reg .b32 %r;\n.file 1 "/src/bfs.cu"\n'
        + ".loc 1 42 3\nld.param.u64 %a, [p];\nld.global.u32 %r, [%a+4096]; ret; }\n"
    )
    device = ws.cuda.Device(0.25)
    module = ws.cuda.compile(text, device=device)
    with pytest.raises(InputError, match=r"kernel k \(bfs.cu:42, PTX line \d+, ld.global.u32\)"):
        module.kernel("k").launch(1, 1, device.zeros(4))


def test_trap():
    assert message_of("setp.eq.u32 %p0, %t, 5; @%p0 trap;").endswith(
        "thread (5, 0, 0): the kernel executed a trap"
    )


def test_unsupported_instructions_are_named_before_anything_runs():
    device = ws.cuda.Device(0.25)
    for code, reason in {
        "tcgen05.wait::ld.aligned;": "cannot simulate tcgen05.wait::ld.aligned: it does not name .sync",
        "st.async.shared::cluster.u32 [%a0], %t;": "cannot simulate st.async",
        "istypep.texref %p0, %l0;": "cannot simulate istypep.texref: the instruction is not",
        "barrier.cluster.sync;": "it neither arrives nor waits",
        "cp.async.bulk.tensor.3d.im2col.shared::cta.global [%r0], [%l0];": "im2col copies are not",
        "add.wrong.u32 %r0, %r1, %r2;": "the modifier .wrong is not supported here",
        "ld.param.u32 %r0, %r1;": "its address operand is missing",
        "txq.width.b32 %r0, %r1;": "its texture operand is missing",
        "tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%l0, {%r0, %r1, %r2, %r3}];": "multisampled",
        "mov.u32 %r0, %envreg7;": "this special register is not supported",
    }.items():
        module = compile_body("st.global.u32 [%a0], %t;" + code, 1, device=device)
        with pytest.raises(InputError, match=r"<source>:\d+: kernel k: ") as caught:
            module.kernel("k")
        assert reason in str(caught.value)
