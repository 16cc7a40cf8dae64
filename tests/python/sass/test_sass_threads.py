"""PTX whose machine code has instructions of its own, run as both: the results are the same."""

import numpy as np
import pytest
from tested_forms import forms_are_executed, forms_by_test  # noqa: F401

import machine_forms
import warpstack as ws
from ptx_forms import OWN_WORD, at, run
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or find_ptxas() is None, reason="ptxas or nvdisasm is not installed"
)
ALL = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]


@pytest.fixture
def same(monkeypatch):
    """Return a function that runs a body as PTX and as machine code, and says its opcodes."""
    plain = ws.cuda.compile

    def check(arch, body, *arrays, **options):
        monkeypatch.setattr(ws.cuda, "compile", plain)
        expected, _ = run(body, *arrays, **options)
        monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(arch))
        got, trace = run(body, *arrays, **options)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        return {opcode.split(".")[0]: opcode for opcode in trace.instructions.opcode}, got

    return check


@pytest.mark.parametrize("arch", ALL)
def test_barriers_whose_number_is_in_a_register(arch, same):
    """Number and threads share a register."""
    body = (
        "ld.global.u32 %r0, [%a1]; ld.global.u32 %r1, [%a1+4]; ld.global.u32 %r9, [%a1+8];"
        "shr.u32 %r2, %t, 6; add.u32 %r0, %r0, %r2; setp.lt.u32 %p0, %t, 5;"
        "mov.u32 %r4, tile; shl.b32 %r5, %t, 2; add.u32 %r5, %r4, %r5; st.shared.u32 [%r5], %t;"
        "bar.sync %r0, %r1; xor.b32 %r6, %t, 32; shl.b32 %r6, %r6, 2; add.u32 %r6, %r4, %r6;"
        "ld.shared.u32 %r7, [%r6]; bar.red.popc.u32 %r8, %r0, %r1, %p0; bar.sync %r9;"
        "mad.lo.u32 %r7, %r7, 1000, %r8; ld.shared.u32 %r8, [%r4]; add.u32 %r7, %r7, %r8;"
        + OWN_WORD
        + "st.global.u32 [%l30], %r7;"
    )
    out, numbers = np.zeros(128, np.uint32), np.array([3, 64, 7], np.uint32)
    _, (got, _) = same(arch, body, out, numbers, block=128, outside=".shared .b32 tile[128];")
    threads = np.arange(128)
    assert got.tolist() == ((threads ^ 32) * 1000 + 5 * (threads < 64)).tolist()


@pytest.mark.parametrize("arch", ALL)
@pytest.mark.parametrize(
    "operation", ["add.u64", "add.f64", "max.s64", "and.b64", "exch.b64", "add.f32", "inc.u32"]
)
def test_generic_atomics_say_whether_they_are_done(arch, operation, same):
    """Shared and local memory cannot do all of them: code goes on by itself there."""
    if (arch, operation) == ("sm_120", "max.s64"):
        pytest.skip("maxima of 64 bits are refused on sm_120")
    bits = int(operation[-2:])
    one = 8 * (bits == 64) or 4
    kind = operation.split(".")[1]
    register = (
        "%f0" if kind == "f32" else "%d0" if kind == "f64" else "%l8" if bits == 64 else "%r8"
    )
    old = register[:-1] + "5"
    space = (
        at("%l0", "%a0", "%t", 8)
        + "mov.u64 %l1, tile; cvta.shared.u64 %l1, %l1; mad.wide.u32 %l1, %t, 8, %l1;"
        "mov.u64 %l2, own; cvta.local.u64 %l2, %l2; rem.u32 %r0, %t, 3;"
        "ld.global.u64 %l3, [%l0]; st.u64 [%l1], %l3; st.u64 [%l2], %l3;"
        "setp.eq.u32 %p0, %r0, 1; selp.b64 %l4, %l1, %l0, %p0; setp.eq.u32 %p0, %r0, 2;"
        "selp.b64 %l4, %l2, %l4, %p0;"
    )
    if operation in ("exch.b64", "inc.u32"):  # done in shared memory, never in local memory
        space = space.replace("rem.u32 %r0, %t, 3", "and.b32 %r0, %t, 1")
    body = (
        space
        + at("%l5", "%a1", "%t", 8)
        + f"ld.global.{kind} {register}, [%l5]; atom.{operation} {old}, [%l4], {register};"
        "ld.u64 %l6, [%l4];"
        + at("%l7", "%a2", "%t", 16)
        + f"st.global.{kind} [%l7], {old}; st.global.u64 [%l7+8], %l6;"
    )
    rng = np.random.default_rng(5)
    values = [rng.integers(0, 2**31, 64, dtype=np.uint32) for _ in range(2)]
    out = np.zeros(32 * 16 // one, np.uint32 if one == 4 else np.uint64)
    outside = ".shared .align 8 .b8 tile[256];"
    opcodes, _ = same(
        arch,
        ".local .align 8 .b8 own[8];" + body,
        *(v.view(np.uint64) for v in values),
        out,
        outside=outside,
    )
    assert "ATOM" in opcodes


@pytest.mark.parametrize(
    "instruction",
    [
        "vadd4.s32.u32.s32.sat %r3.b20, %r0.b1476, %r1.b0033, %r2;",
        "vsub2.u32.s32.u32.add %r3, %r0.h03, %r1.h21, %r2;",
        "vavrg4.s32.s32.s32 %r3, %r0, %r1, %r2;",
        "vset2.s32.u32.le %r3.h1, %r0, %r1.h10, %r2;",
    ],
)
def test_video_instructions(instruction, same):
    """What ptxas makes of them computes the same."""
    body = (
        at("%l0", "%a1", "%g", 12)
        + "ld.global.u32 %r0, [%l0]; ld.global.u32 %r1, [%l0+4]; ld.global.u32 %r2, [%l0+8];"
        + instruction
        + OWN_WORD
        + "st.global.u32 [%l30], %r3;"
    )
    values = np.random.default_rng(9).integers(0, 2**32, 3 * 64, dtype=np.uint32)
    same("sm_80", body, np.zeros(64, np.uint32), values, block=64)


@pytest.mark.parametrize("arch", ALL)
def test_halved_products(arch, same):
    """FMUL.D2"""
    body = (
        at("%l0", "%a1", "%g", 4)
        + "ld.global.f32 %f0, [%l0]; mul.f32 %f0, %f0, 0fBE99999A; mul.f32 %f0, %f0, 0f3F000000;"
        + OWN_WORD
        + "st.global.f32 [%l30], %f0;"
    )
    rng = np.random.default_rng(6)
    values = rng.integers(0, 0xFF800000, 1024, dtype=np.uint32)
    values = values[(values & 0x7F800000) != 0x7F800000][:960].view(np.float32)
    opcodes, _ = same(arch, body, np.zeros(960, np.float32), values, grid=15, block=64)
    assert opcodes["FMUL"] == "FMUL.D2"


@pytest.mark.parametrize("arch", ALL[:-1])  # VIMNMX of bytes is refused on sm_120
@pytest.mark.parametrize("joined", ["", ".add"])
def test_differences_of_bytes(arch, joined, same):
    body = (
        at("%l0", "%a1", "%g", 12)
        + "ld.global.u32 %r0, [%l0]; ld.global.u32 %r1, [%l0+4]; ld.global.u32 %r2, [%l0+8];"
        + "EXPECTED"
        + OWN_WORD
        + "st.global.u32 [%l30], %r3;"
    )
    rng = np.random.default_rng(7)
    values = rng.integers(0, 2**32, 3 * 256, dtype=np.uint32)
    values[:6] = [0, 0xFFFFFFFF, 1, 0x01FF01FF, 0xFF01FF01, 7]
    instruction = f"vabsdiff4.u32.u32.u32{joined} %r3, %r0, %r1, %r2;"
    parts = values.view(np.uint8).reshape(256, 3, 4).astype(int)
    differences = np.abs(parts[:, 0] - parts[:, 1])
    expected = (
        (values[2::3] + differences.sum(1)) % 2**32
        if joined
        else differences.astype(np.uint8).view(np.uint32)[:, 0]
    )
    compiler = machine_forms.compiler_for(arch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ws.cuda, "compile", compiler)
        text = body.replace("EXPECTED", instruction)
        (got, _), trace = run(text, np.zeros(256, np.uint32), values, grid=4, block=64)
    assert got.tolist() == expected.tolist()
    assert any(opcode.startswith("VABSDIFF4.U8") for opcode in trace.instructions.opcode)


@pytest.mark.parametrize("arch", ALL)
def test_texture_objects_that_differ_from_lane_to_lane(arch, same):
    """Since sm_90 code goes through the objects one after the other."""
    device = ws.cuda.Device(0.25)
    texels = np.arange(48, dtype=np.float32).reshape(4, 3, 4)
    textures = [ws.cuda.texture(device.array(t)) for t in texels]
    handles = np.array([textures[i % 4].handle for i in range(0, 96, 3)], np.uint64)
    body = (
        at("%l0", "%a1", "%g", 8)
        + "ld.global.u64 %l1, [%l0]; and.b32 %r0, %t, 3; cvt.rn.f32.u32 %f0, %r0;"
        "mov.f32 %f1, 0f3FC00000; tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%l1, {%f0, %f1}];"
        + OWN_WORD
        + "st.global.f32 [%l30], %f4;"
    )
    out = np.zeros(32, np.float32)
    opcodes, (got, _) = same(arch, body, out, handles, device=device)
    lanes = np.arange(32)
    assert got.tolist() == texels[3 * lanes % 4, 1, lanes % 4].tolist()
    assert "TEX" in opcodes
    assert ("R2UR" in opcodes) == (arch not in ("sm_75", "sm_80"))


@pytest.mark.parametrize("arch", ALL)
def test_masks_that_differ_from_lane_to_lane(arch, same):
    reduction = (
        "" if arch == "sm_75" else "redux.sync.add.s32 %r4, %r2, %r1; add.u32 %r2, %r2, %r4;"
    )
    body = (
        at("%l0", "%a1", "%g", 4)
        + "ld.global.u32 %r1, [%l0]; mul.lo.u32 %r2, %t, %t; setp.lt.u32 %p0, %t, 28;"
        "@!%p0 bra over; shfl.sync.bfly.b32 %r3, %r2, 2, 31, %r1; add.u32 %r2, %r2, %r3;"
        + reduction
        + "and.b32 %r5, %r2, 1; setp.eq.u32 %p1, %r5, 1; vote.sync.ballot.b32 %r6, %p1, %r1;"
        "add.u32 %r2, %r2, %r6; over:" + OWN_WORD + "st.global.u32 [%l30], %r2;"
    )
    masks = np.array([0x0FFFFFFF] * 32, np.uint32)
    same(arch, body, np.zeros(32, np.uint32), masks)
    masks = np.where(np.arange(32) % 2 == 0, 0x05555555, 0x0AAAAAAA).astype(np.uint32)
    same(arch, body, np.zeros(32, np.uint32), masks)
    masks = np.array([0x0F00F0F0, 0x00F0000F, 0x000F0F00], np.uint32)
    which = [next(i for i, m in enumerate(masks) if m >> lane & 1) for lane in range(28)]
    same(arch, body, np.zeros(32, np.uint32), np.r_[masks[which], masks[:1].repeat(4)])


@pytest.mark.parametrize("arch", ALL)
@pytest.mark.parametrize("width", [4, 8, 16])
def test_votes_of_tiles(arch, width, same):
    """Each tile has a mask of its own; all of them vote at the same place."""
    body = (
        at("%l0", "%a1", "%g", 4)
        + f"ld.global.u32 %r1, [%l0]; and.b32 %r2, %t, {32 - width}; mov.u32 %r3, {(1 << width) - 1};"
        "shl.b32 %r4, %r3, %r2; setp.gt.u32 %p0, %r1, 5; vote.sync.ballot.b32 %r5, %p0, %r4;"
        "vote.sync.any.pred %p1, %p0, %r4; selp.u32 %r6, 1, 0, %p1;"
        "shl.b32 %r6, %r6, 31; xor.b32 %r5, %r5, %r6;" + OWN_WORD + "st.global.u32 [%l30], %r5;"
    )
    values = (np.arange(32) * 7 % 11).astype(np.uint32)
    _, (got, _) = same(arch, body, np.zeros(32, np.uint32), values)
    for lane in range(32):
        tile = lane // width * width
        yes = sum((values[i] > 5) << i for i in range(tile, tile + width))
        assert got[lane] == yes ^ ((yes != 0) << 31)


@pytest.mark.parametrize("arch", ALL)
def test_the_flag_after_a_subtraction_is_a_carry(arch, same):
    """nvcc's division of __int128 adds the flag that a subtraction leaves."""
    body = (
        "ld.global.u32 %r1, [%a1]; sub.cc.u32 %r2, %r1, %t; addc.u32 %r3, 0, 0;"
        "add.cc.u32 %r4, %r1, %t; subc.u32 %r5, %r2, %t; mad.lo.u32 %r3, %r3, 65536, %r5;"
        + OWN_WORD
        + "st.global.u32 [%l30], %r3;"
    )
    start = np.array([11], np.uint32)
    _, (got, _) = same(arch, body, np.zeros(32, np.uint32), start)
    lanes = np.arange(32)
    low = 11 - lanes - lanes - 1
    assert got.astype(np.int64).tolist() == ((lanes <= 11) * 65536 + low & 0xFFFFFFFF).tolist()


@pytest.mark.parametrize("arch", ALL)
def test_sums_of_three_64_bit_numbers(arch, same):
    """Two carries go from the lower words to the upper ones, also where all of these are complements."""
    signs = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1), (1, 1, -1), (1, -1, 1)]
    edges = np.array([0, 1, 2, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1], np.uint64)
    random = np.random.default_rng(3)
    numbers = random.choice(edges, (32, 3))
    body = at("%l0", "%a1", "%g", 24) + "".join(
        f"ld.global.u64 %l{i + 1}, [%l0 + {8 * i}];" for i in range(3)
    )
    stores = at("%l30", "%a0", "%g", 8 * len(signs))
    for i, of_three in enumerate(signs):
        body += "mov.u64 %l4, 0;"
        for j, sign in enumerate(of_three):
            body += f"{'add' if sign > 0 else 'sub'}.s64 %l4, %l4, %l{j + 1};"
        stores += f"st.global.u64 [%l30 + {8 * i}], %l{5 + i};"
        body += f"mov.u64 %l{5 + i}, %l4;"
    out = np.zeros((32, len(signs)), np.uint64)
    _, (got, _) = same(arch, body + stores, out, numbers)
    parts = numbers.view(np.int64)
    expected = [
        [sum(s * int(n) for s, n in zip(t, row, strict=True)) for t in signs] for row in parts
    ]
    assert [[int(n) for n in row] for row in got.reshape(out.shape)] == [
        [n % 2**64 for n in row] for row in expected
    ]


def test_masks_in_the_trace_of_conditional_exits(tmp_path):
    """A guard counts, a second predicate does not."""
    listing = "\n".join(
        [
            ".sass 1\n.target sm_80\n.kernel k\n.needs 16 0 0 1024\n.parameters 352 8",
            ".param b64 0 8",
            "0 0:0 S2R R0,SR_TID.X",
            "0 0:0 ISETP.GE.U32.AND P0,PT,R0,0x4,PT",
            "0 0:0 ISETP.GE.U32.AND P1,PT,R0,0x8,PT",
            "0 0:0 @P0 EXIT P1",
            "0 0:0 EXIT",
            ".end\n",
        ]
    )
    device = ws.cuda.Device(0.1)
    kernel = ws.cuda.compile(listing, device=device).kernel("k")
    trace = kernel.launch(1, 32, device.zeros(1, np.int32))
    ws.save(ws.App([trace], "k"), tmp_path / "k", format="accelsim")
    (text,) = [p.read_text() for p in (tmp_path / "k").glob("*.traceg")]
    lines = [line for line in text.splitlines() if "EXIT" in line]
    assert [mask for line in lines for mask in line.split() if len(mask) == 8] == [
        "fffffff0",
        "000000ff",
    ]
