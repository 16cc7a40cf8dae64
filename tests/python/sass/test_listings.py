"""Listings of machine code: what is read, and what is refused with one line."""

import numpy as np
import pytest

import warpstack as ws
from warpstack.errors import InputError

GOOD = """.sass 1
.target sm_80
.file 1 "my kernel.cu"
.section .nv.global 16
.hex 8 01000000
.symbol x .nv.global 8 4
.kernel k
.needs 16 0 0 1024
.parameters 352 8
.param b64 0 8
0 1:7 S2R R0,SR_TID.X
0 1:7 MOV R3,0x4
0 1:7 IMAD.WIDE.U32 R2,R0,R3,c[0x0][0x160]
0 1:8 STG.E [R2.64],R0
0 1:9 EXIT
0 0:0 BRA 0x50
.end
"""


def load(text, tmp_path):
    path = tmp_path / "k.sass"
    path.write_bytes(text.encode())
    return ws.cuda.compile(path, device=ws.cuda.Device(0.1))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(",", " , "),
        lambda text: text.replace(",", ",\t"),
        lambda text: text.replace("\n", "  \n"),
        lambda text: (
            text.replace("sm_80", "sm_90a").replace("0x160", "0x210").replace("352", "528")
        ),
    ],
)
def test_what_is_read(change, tmp_path):
    text = change(GOOD)
    module = load(text, tmp_path)
    out = module.device.zeros(32, np.int32)
    trace = module.kernel("k").launch(1, 32, out)
    assert np.asarray(out).tolist() == list(range(32))
    assert list(trace.instructions.opcode)[:4] == ["S2R", "MOV", "IMAD.WIDE.U32", "STG.E"]
    assert list(module.instructions("k").line)[:4] == [7, 7, 7, 8]
    assert np.asarray(module.symbol("x", np.int32)).tolist() == [1]


def test_messages_of_a_file_with_a_blank_in_its_name(tmp_path):
    module = load(GOOD, tmp_path)
    with pytest.raises(InputError, match=r"my kernel\.cu:8"):
        module.kernel("k").launch(1, 64, module.device.zeros(32, np.int32))


WRONG = {
    "no target": ((".target sm_80\n", ""), "16: there is no .target"),
    "old target": (("sm_80", "sm_30"), "2: machine code for sm_30 is not read: compile for sm_75"),
    "strange target": (("sm_80", "80"), '2: the target is "80", not like sm_80'),
    "two targets": ((".target sm_80\n", ".target sm_80\n.target sm_75\n"), "3: there are two"),
    "file": (('"my kernel.cu"', "my kernel.cu"), "3: file 1 is my kernel.cu: files are numbered"),
    "two sections": ((".symbol", ".section .nv.global 4\n.symbol"), "6: there are two sections"),
    "far bytes": ((".hex 8", ".hex 14"), r"5: 8 digits at 14 are not .*\.nv\.global of 16 bytes"),
    "gaps": (
        ("16\n.hex 8", "4000000000\n.hex 100000000 00\n.hex 200000000 00\n.hex 300000000"),
        "7: the digits at 300000000 leave out 299999998 bytes of zeros",
    ),
    "far symbol": (("x .nv.global 8", "x .nv.global 14"), "symbol x has 4 bytes at 14, beyond its"),
    "lost symbol": (
        ("x .nv.global", "x .nv.lost"),
        "symbol x lies in section .nv.lost, which is not",
    ),
    "two symbols": ((".symbol", ".symbol x .nv.global 0 4\n.symbol"), "7: there are two symbols x"),
    "two kernels": ((".end\n", ".end\n.kernel k\n"), "18: there are two kernels k"),
    "no needs": ((".needs 16 0 0 1024\n", ""), "kernel k has no .needs"),
    "far parameters": (("352 8", "65534 8"), "9: the parameters take 8 bytes at 65534, beyond a"),
    "far parameter": (("b64 0 8", "b64 4 8"), "10: parameter 1 has 8 bytes at 4, beyond the"),
    "two labels": (
        ("0 1:7 S2R", ".label f 16\n.label f 32\n0 1:7 S2R"),
        "12: there are two labels f",
    ),
    "far label": (("0 1:7 S2R", ".label f 4096\n0 1:7 S2R"), "label f is 0x1000, which is not"),
    "no end": (
        ("0 1:9 EXIT\n0 0:0 BRA 0x50\n", ""),
        r"15: kernel k ends in STG\.E at 0x30, behind",
    ),
    "guarded end": (("0 0:0 BRA", "0 0:0 @P0 BRA"), "17: kernel k ends in @P0 BRA at 0x50"),
    "cut off": ((".end\n", ""), "16: kernel k has no .end"),
    "more": (
        (".needs 16 0 0 1024", ".needs 16 0 0 1024 7"),
        '8: behind what .needs needs there is "7"',
    ),
    "two commas": (("R3,0x4", "R3,,0x4"), '12: an operand is missing in "R3,,0x4"'),
    "last comma": (("R3,0x4", "R3,0x4,"), '12: an operand is missing in "R3,0x4,"'),
    "no comma": (("R3,0x4", "R3 0x4"), '12: operand "R3 0x4" has a blank in it'),
    "control": (("0 1:9 EXIT", "zz 1:9 EXIT"), '15: the control is "zz", not a number'),
    "place": (("0 1:9 EXIT", "0 19 EXIT"), '15: the place is "19", not like 1:12'),
    "Volta": (("sm_80", "sm_70"), "2: machine code for sm_70 is not read: compile for sm_75"),
    "registers": (
        (".needs 16", ".needs 3"),
        "17: kernel k has 3 registers by its .needs, and MOV at 0x10",
    ),
    "too many registers": ((".needs 16", ".needs 256"), "8: the number of registers is"),
    "no cluster": (
        (".needs 16 0 0 1024", ".needs 16 0 0 1024\n.cluster 2 0 1"),
        "9: a size of the cluster of kernel k is 0",
    ),
    "no threads": (("0 0 1024", "0 0 0"), "8: the number of threads of kernel k is 0"),
    "lost address": (
        (".symbol", ".address 0 y 0\n.symbol"),
        "6: symbol y, whose address is wanted",
    ),
    "barrier": (("0 1:9 EXIT", "7c0 1:9 EXIT"), "15: the control's write barrier is 6"),
    "depbar": (
        ("0 1:9 EXIT", "0 1:9 DEPBAR.LE SB0,0x0,{6}\n0 1:9 EXIT"),
        '15: DEPBAR.LE names barrier "6"',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name, tmp_path):
    (old, new), message = WRONG[name]
    assert GOOD.count(old) == 1
    with pytest.raises(InputError, match=rf"k\.sass:.*{message}.*MachineModule\.listing\)$"):
        load(GOOD.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    "text", ["", "\n", GOOD.split("\n", 1)[1], "// .sass 1\n" + GOOD, "__global__"]
)
def test_a_path_of_a_listing_is_never_compiled(text, tmp_path):
    with pytest.raises(InputError, match=r"k\.sass:1: the first line must be \.sass 1"):
        load(text, tmp_path)


def test_a_mark_of_the_order_of_bytes_is_no_part_of_the_text(tmp_path):
    assert load("\ufeff" + GOOD, tmp_path).kernels == ("k",)


def test_refused_instructions_name_the_line_of_the_listing(tmp_path):
    module = load(GOOD.replace("STG.E", "FROB"), tmp_path)
    with pytest.raises(InputError) as error:
        module.kernel("k")
    assert str(error.value).endswith(
        "k.sass:14: kernel k (my kernel.cu:8, machine code at 0x30, FROB [R2.64],R0): this opcode is "
        "not executed (correct this line, or make the listing anew: MachineModule.listing)"
    )


def test_sizes_of_grids_and_blocks_have_one_limit(tmp_path):
    module = load(GOOD, tmp_path)
    kernel, out = module.kernel("k"), module.device.zeros(32, np.int32)
    for grid, block, message in (
        (2**31, 32, "grid dim x = 2147483648 is outside 1 to 2147483647"),
        (2**33, 32, "grid dim x = 8589934592 is outside 1 to 2147483647"),
        ((1, 2**33), 32, "grid dim y = 8589934592 is outside 1 to 65535"),
        (1, (1, 1, 2**33), "block dim z = 8589934592 is outside 1 to 64"),
    ):
        with pytest.raises(InputError, match=message):
            kernel.launch(grid, block, out)


def test_bytes_have_no_article():
    with pytest.raises(InputError, match="expected text, a path or bytes, got a bytearray"):
        ws.cuda.load_cubin(bytearray(b"x"))
