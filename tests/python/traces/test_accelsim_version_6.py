"""Traces of tracer version 6: other register files, immediates, register values, bulk copies."""

import lzma
import warnings

import pytest

import warpstack as ws
from accelsim_text import header

FULL = "ffffffff"
VALUES = " ".join(f"0x{lane:x}" for lane in range(32))


def block(lines):
    """Return the lines as the tracer's post-processing groups them, with lines of clusters."""
    return (
        "#BEGIN_TB\n\nthread block = 0,0,0\ncluster id = 0,0,0\ncluster cta = 0,0,0\ncluster rank = 0\n"
        f"\nwarp = 0\ninsts = {len(lines)}\n" + "\n".join(lines) + "\n\n#END_TB\n"
    )


def text_of(lines, version=6, **changes):
    return header(version, **{"binary version": 90, "nvbit version": "1.8"} | changes) + block(
        lines
    )


def load_lines(tmp_path, lines, version=6, **changes):
    path = tmp_path / "kernel-1.traceg"
    path.write_text(text_of(lines, version, **changes))
    return ws.load(path).kernels[0]


def rows(kernel):
    """Return opcode, destinations and sources of each instruction."""
    table = kernel.instructions
    names = ("opcode", "destinations", "sources")
    return [
        (opcode, list(written), list(read))
        for opcode, written, read in zip(*(table[name] for name in names), strict=True)
    ]


@pytest.fixture(autouse=True)
def _no_warning():
    """Nothing that the definition of version 6 has is unknown."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_uniform_registers_are_dependences(tmp_path):
    """Vector registers come first in the dense numbers, then uniform ones, then predicates."""
    lines = [
        f"0000 {FULL} 1 UR4 S2UR 0 0 0 0 NoVal",
        f"0010 {FULL} 1 UR6 ULDC.64 0 0 0 0 NoVal",
        f"0020 {FULL} 1 R2 IMAD 3 R0 UR4 R3 0 0 0 NoVal",
        f"0030 {FULL} 1 R8 LDG.E 2 R2 UR6 4 1 0x7f0000000000 4 0 0 NoVal",
        f"0040 {FULL} 1 UP0 UISETP.GE.AND 2 UR4 URZ 0 0 0 NoVal",
        f"0050 {FULL} 1 P1 ISETP.GE.AND 3 R8 RZ PT 0 0 0 NoVal",
        f"0060 {FULL} 1 R9 SEL 4 R8 UR63 P1 UP0 0 0 0 NoVal",
        f"0070 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    kernel = load_lines(tmp_path, lines, **{"binary version": 90})
    # R0 R2 R3 R8 R9: 0 to 4; UR4 UR6 UR7: 5 to 7; P1: 8; UP0: 9. R2 of LDG.E is the pair R2, R3.
    assert rows(kernel) == [
        ("S2UR", [5], []),
        ("ULDC.64", [6, 7], []),
        ("IMAD", [1], [0, 2, 5]),
        ("LDG.E", [3], [1, 2, 6, 7]),
        ("UISETP.GE.AND", [9], [5]),
        ("ISETP.GE.AND", [8], [3]),
        ("SEL", [4], [3, 8, 9]),
        ("EXIT", [], []),
    ]
    assert kernel.num_instructions == 8
    assert list(kernel.warp(0, 0)["sector"]) == [0x7F0000000000 // 32 + i for i in range(4)]


def test_a_use_waits_for_a_uniform_register(tmp_path):
    """A chain through uniform registers takes longer than the same code without it."""
    chain = [f"{16 * i:04x} {FULL} 1 UR4 UIADD3 1 UR4 0 0 0 NoVal" for i in range(64)]
    free = [f"{16 * i:04x} {FULL} 1 UR{i % 32 + 8} UIADD3 1 UR4 0 0 0 NoVal" for i in range(64)]
    end = [f"0800 {FULL} 0 EXIT 0 0 0 0 NoVal"]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    gpu = ws.gpu("h100-pcie")
    cycles = [
        ws.timing.simulate(load_lines(tmp_path / name, lines + end), gpu).cycles
        for name, lines in (("a", chain), ("b", free))
    ]
    assert cycles[0] > 1.5 * cycles[1]


@pytest.mark.parametrize(("binary_version", "zero"), [(75, "UR63"), (90, "UR63"), (100, "UR255")])
def test_the_uniform_zero_register(tmp_path, binary_version, zero):
    lines = [
        f"0000 {FULL} 1 UR1 UIADD3 2 {zero} UR2 0 0 0 NoVal",
        f"0010 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    kernel = load_lines(tmp_path, lines, **{"binary version": binary_version})
    assert rows(kernel)[0] == ("UIADD3", [0], [1])


def test_registers_that_hold_nothing(tmp_path):
    lines = [
        f"0000 {FULL} 1 R1 S2R 1 SR_TID.X 0 0 0 NoVal",
        f"0010 {FULL} 1 RZ IADD3 5 R1 RZ PT P7 UPT 0 0 0 NoVal",
        f"0020 {FULL} 1 B0 BSSY 0 0 0 0 NoVal",
        f"0030 {FULL} 0 BSYNC 1 B0 0 0 0 NoVal",
        f"0040 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    assert rows(load_lines(tmp_path, lines)) == [
        ("S2R", [0], []),
        ("IADD3", [], [0]),
        ("BSSY", [1], []),
        ("BSYNC", [], [1]),
        ("EXIT", [], []),
    ]


def test_every_destination_is_named(tmp_path):
    """One destination stands for a tuple, several for themselves."""
    lines = [
        f"0000 {FULL} 4 R20 R21 R22 R23 HMMA.16816.F32 3 R20 R24 R26 0 0 0 NoVal",
        f"0010 {FULL} 1 R20 HMMA.16816.F32 3 R20 R24 R26 0 0 0 NoVal",
        f"0020 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    found = rows(load_lines(tmp_path, lines))
    assert found[0][1] == found[1][1] == [0, 1, 2, 3]
    assert found[0][2] == found[1][2]


TAILS = {
    "an immediate": " 7",
    "a large immediate": " 18446744073709551615",
    "two immediates": " 7 -8",
    "no values": " 7 8 NoVal",
    "one immediate, no values": " 7 NoVal",
    "one value": " 7 0 Val 1 0xff 1 0x0",
    "a value per lane": f" 7 0 Val 32 {VALUES} 1 0x10",
    "blanks and Windows' line end": " 7  0   NoVal \r",
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("mode", ["1 0x7f0000000000 4", "2 0x7f0000000000" + " 4" * 31])
def test_line_ends(tmp_path, tail, mode):
    lines = [
        f"0000 {FULL} 1 R4 LDG.E 1 R2 4 {mode}{TAILS[tail]}",
        f"0010 {FULL} 0 EXIT 0 0{TAILS[tail]}",
    ]
    kernel = load_lines(tmp_path, lines)
    assert list(kernel.warp(0, 0)["sector"]) == [0x7F0000000000 // 32 + i for i in range(4)]
    assert rows(kernel) == [("LDG.E", [2], [0, 1]), ("EXIT", [], [])]


def test_group_flag_of_matrix_instructions(tmp_path):
    lines = [
        f"0000 {FULL} 1 R24 HGMMA.64x64x16.F32 2 R24 UR8 1 0 0 0 NoVal",
        f"0010 {FULL} 0 WARPGROUP.DEPBAR 0 0 2 0 NoVal",
        f"0020 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    assert [row[0] for row in rows(load_lines(tmp_path, lines))] == [
        "HGMMA.64x64x16.F32",
        "WARPGROUP.DEPBAR",
        "EXIT",
    ]


def test_bulk_copies_are_told_once(tmp_path):
    lines = [
        f"0000 {FULL} 0 UTMALDG.2D 2 UR4 UR8 32 0x400 0 4096 0 4 0x7f0000000000 3 32 32 0 0 NoVal",
        f"0010 {FULL} 0 UTMASTG.2D 1 UR4 32 400 1 0x3 64 0 3 2 0x7f0000000000 0x7f0000000020 0 0 NoVal",
        f"0020 {FULL} 0 UBLKCP.S.G 1 UR4 16 0 0 0 0 4 0x0 0 0 0 NoVal",
        f"0030 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    with pytest.warns(ws.errors.TraceWarning, match="3 bulk copies") as caught:
        kernel = load_lines(tmp_path, lines)
    assert len(caught) == 1
    assert kernel.num_instructions == 4
    assert len(kernel.warp(0, 0)["sector"]) == 0


@pytest.mark.parametrize(
    ("version", "tail"),
    [(4, ""), (5, " 0"), (6, " 0 0 NoVal"), (6, " 0"), (7, " 0 0 NoVal"), (7, " 0 0 9 9")],
)
def test_unknown_fields_are_skipped_and_told_once(tmp_path, version, tail):
    lines = [
        f"0000 {FULL} 0 STG.E 2 R2 R4 4 1 0x7f0000000000 4{tail} STORE_DATA I32 1 REG0:0x1,0x2",
        f"0010 {FULL} 0 STG.E 2 R2 R4 4 1 0x7f0000000000 4{tail} STORE_DATA I32 1 REG0:0x3,0x4",
        f"0020 {FULL} 0 EXIT 0 0{tail.replace(' 9 9', '')}",
    ]
    kernels = [tmp_path / f"kernel-{launch}.traceg" for launch in (1, 2)]
    for launch, path in enumerate(kernels, start=1):
        path.write_text(text_of(lines, version, **{"kernel id": launch}))
    first = 9 if " 9 " in tail else "STORE_DATA"
    with pytest.warns(
        ws.errors.TraceWarning,
        match=rf'4 lines end in fields .* the first is "{first}" in kernel-1\.traceg:\d+',
    ) as caught:
        app = ws.load(tmp_path)
    assert len(caught) == 1
    assert [kernel.num_instructions for kernel in app.kernels] == [3, 3]
    assert list(app.kernels[0].warp(0, 0)["store_bytes"]) == [0xFFFFFFFF] * 8


def test_raw_files_with_clusters(tmp_path):
    """The tracer writes eleven numbers before the PC, and each LDGSTS twice."""
    prefix = "0 0 0 0 0 0 0 0 0 0 0 "
    copy = f"0010 {FULL} 0 LDGSTS.E.BYPASS.128 3 R6 R8 UR4 16 1 "
    lines = [
        f"0000 {FULL} 1 UR4 ULDC.64 0 0 0 0 NoVal",
        copy + "0x0 16 0 0 NoVal",
        copy + "0x7f0000000000 16 0 0 NoVal",
        f"0020 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    changes = {"binary version": 90, "nvbit version": "1.8"}
    raw = header(6, **changes) + "".join(f"{prefix}{line}\n" for line in lines)
    path = tmp_path / "kernel-1-ctx_0x55dfecb31820.trace.xz"
    path.write_bytes(lzma.compress(raw.encode()))
    (tmp_path / "kernelslist").write_text(f"MemcpyHtoD,0x00007f0000000000,4096\n{path.name}\n")
    kernel = ws.load(tmp_path).kernels[0]
    grouped = load_lines(tmp_path, [lines[0], *lines[2:]])
    assert kernel.digest == grouped.digest
    assert kernel.num_instructions == 3
    assert len(kernel.warp(0, 0)["sector"]) == 16


def test_line_numbers(tmp_path):
    lines = [f"12 0000 {FULL} 1 UR4 S2UR 0 0 0 0 NoVal", f"13 0010 {FULL} 0 EXIT 0 0 0 0 NoVal"]
    kernel = load_lines(tmp_path, lines, **{"enable lineinfo": 1})
    assert list(kernel.instructions["source_line"]) == [12, 13]


def test_version_6_reads_back_from_version_4(tmp_path):
    """Registers of every file survive the writer, which names them all R."""
    lines = [
        f"0000 {FULL} 1 UR6 ULDC.64 0 0 0 0 NoVal",
        f"0010 {FULL} 1 R8 LDG.E.64 2 R2 UR6 8 1 0x7f0000000000 8 0 0 NoVal",
        f"0020 {FULL} 2 R4 P0 IADD3 4 R8 UR6 UR7 P1 0 0 0 NoVal",
        f"0030 {FULL} 0 EXIT 0 0 0 0 NoVal",
    ]
    kernel = load_lines(tmp_path, lines)
    ws.save(kernel, tmp_path / "again", format="accelsim")
    again = ws.load(tmp_path / "again").kernels[0]
    assert again.digest == kernel.digest
    assert rows(again) == rows(kernel)


BAD = {
    "uniform register": ("1 UR256 UMOV 0 0 0 0 NoVal", r'"UR256" is not a register UR0 to UR255'),
    "predicate": ("1 P8 ISETP 0 0 0 0 NoVal", r'"P8" is not a register P0 to P7'),
    "uniform predicate": ("1 UPx UISETP 0 0 0 0 NoVal", r'"UPx" is not a register UP0 to UP7'),
    "barrier register": ("1 B16 BSSY 0 0 0 0 NoVal", r'"B16" is not a register B0 to B15'),
    "no number": ("1 UR UMOV 0 0 0 0 NoVal", r'"UR" is not a register UR0 to UR255'),
    "no immediate": ("0 NOP 0 0", "the line ends before its immediate"),
    "immediate": ("0 NOP 0 0 x1 0 NoVal", r'immediate "x1" is not a decimal number'),
    "second immediate": ("0 NOP 0 0 0 1x NoVal", r'second immediate "1x" is not a decimal number'),
    "a number too many": (
        "1 R8 LDG.E 1 R2 4 1 0x7f0000000000 4 4 0 0 NoVal",
        r'the line has more than its operands: "0 NoVal"',
    ),
    "bulk copy without a count": (
        "0 UTMALDG 1 UR4 32 0x400 0 4096 0 4 0x7f0000000000",
        "the line ends before its number of addresses",
    ),
    "absurd bulk copy": (
        "0 UTMALDG 1 UR4 32 0x400 0 4096 0 4 0x7f0000000000 18446744073709551615 32 0 0 NoVal",
        r'address delta "NoVal" is not a decimal number',
    ),
    "mode of a bulk copy": (
        "0 UTMALDG 1 UR4 32 0x400 0 4096 0 2 0x7f0000000000 1 0 0 NoVal",
        "address mode 2 of a bulk copy is not 3",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_one_clear_error(tmp_path, case):
    rest, message = BAD[case]
    with pytest.raises(ws.InputError, match=message) as caught:
        load_lines(tmp_path, [f"0000 {FULL} {rest}", f"0010 {FULL} 0 EXIT 0 0 0 0 NoVal"])
    assert str(caught.value).startswith(f"{tmp_path}/kernel-1.traceg:")
    assert "\n" not in str(caught.value)


# --- lists --------------------------------------------------------------------------------------


@pytest.fixture
def partial_list(tmp_path):
    """Return a folder whose list names kernels 1 to 6, of which 3, 5 and 6 are not there."""
    for launch in (1, 2, 4):
        end = [f"0000 {FULL} 0 EXIT 0 0 0 0 NoVal"]
        (tmp_path / f"kernel-{launch}.traceg").write_text(
            text_of(end, **{"kernel id": launch}), encoding="ascii"
        )
    names = "".join(f"MemcpyHtoD,0x7f0000000000,{n}\nkernel-{n}.traceg.xz\n" for n in range(1, 7))
    (tmp_path / "kernelslist.g").write_text(names)
    return tmp_path


def test_only_chosen_kernels_must_be_there(partial_list):
    assert [k.launch_id for k in ws.load(partial_list, kernels=[1, 4]).kernels] == [1, 4]
    with pytest.raises(
        ws.InputError, match=r":6: kernel-3\.traceg\.xz is not there .*skip-missing"
    ):
        ws.load(partial_list, kernels=range(1, 5))
    with pytest.raises(ws.InputError, match=r"has no kernel 7"):
        ws.load(partial_list, kernels=[1, 7])


def test_missing_kernels_are_passed_over_on_request(partial_list):
    with pytest.warns(
        ws.errors.TraceWarning, match=r":6: kernel-3\.traceg\.xz .*first of 3 files"
    ) as seen:
        app = ws.load(partial_list / "kernelslist.g", missing="skip")
    assert len(seen) == 1
    assert [kernel.launch_id for kernel in app.kernels] == [1, 2, 4]
    with pytest.warns(ws.errors.TraceWarning, match=r"first of 1 files"):
        app = ws.load(partial_list, kernels=range(2, 5), missing="skip")
    assert [kernel.launch_id for kernel in app.kernels] == [2, 4]
    with pytest.raises(ws.InputError, match=r"kernel-5\.traceg\.xz is not there .*all 2 files"):
        ws.load(partial_list, kernels=[5, 6], missing="skip")
    with pytest.raises(ws.InputError, match=r"missing = 'maybe' is not one of error, skip"):
        ws.load(partial_list, missing="maybe")
