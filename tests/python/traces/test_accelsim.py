"""The Accel-Sim reader: every version and form, real traces, and bad input."""

import gzip
import itertools
import lzma
import shutil
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from accelsim_text import FULL, Instruction, grouped, header, line, raw
from effort import rounds

VERSIONS = (2, 3, 4, 5)


def lanes(function, mask=FULL):
    return {lane: function(lane) for lane in range(32) if mask >> lane & 1}


def program(x):
    """Return the instructions of a warp: every access form, idle lanes, an instruction without lanes."""
    base = 0x7FC8_4150_0000 + 4096 * x
    gaps = 0x6190A142
    return [
        Instruction(0x00, "MOV", [1]),
        Instruction(0x10, "IMAD.WIDE", [2], [6, 3]),
        Instruction(0x20, "LDG.E", [4], [2], addresses=lanes(lambda i: base + 4 * i), width=4),
        Instruction(
            0x30, "LDG.E.U8", [5], [2], gaps, lanes(lambda i: base + 577 * i % 3001, gaps), 1
        ),
        Instruction(0x40, "LDG.E", [4], [2], 0x100, {8: base}, 4),
        Instruction(0x50, "LDG.E", [4], [2], 0, {}, 4),
        Instruction(
            0x60, "STG.E.128", [], [2, 8], addresses=lanes(lambda i: base - 16 * i), width=16
        ),
        Instruction(0x70, "LDL", [9], [1], addresses=lanes(lambda i: 0xFFFBD0), width=4),
        Instruction(0x80, "STS", [], [7, 9], addresses=lanes(lambda i: 8 * i), width=4),
        Instruction(
            0x90,
            "LDGSTS.E.BYPASS.LTC128B.128",
            [],
            [9, 10],
            FULL,
            lanes(lambda i: base + 16 * i),
            16,
        ),
        Instruction(0xA0, "RED.E.ADD.STRONG.GPU", [], [2, 4], 0xFF, lanes(lambda i: base, 0xFF), 4),
        Instruction(0xB0, "EXIT"),
    ]


BLOCKS = {
    (x, y, 0): {w: program(x + 2 * y + w) for w in range(2)} for y in range(2) for x in range(2)
}
GEOMETRY = {"grid": (2, 2, 1), "block": (64, 1, 1)}


def write(path, text):
    path.write_text(text)
    return path


def load_text(tmp_path, text, name="kernel-1.traceg"):
    return ws.load(write(tmp_path / name, text)).kernels[0]


def columns(kernel):
    """Return everything that the stages read, as plain values."""
    table = kernel.instructions.drop(columns=["executions", "source_line"])
    warps = [
        {name: values.tolist() for name, values in kernel.warp(block, w).items()}
        for block, (_, warps) in enumerate(kernel.blocks())
        for w in range(len(warps))
    ]
    return table.to_dict("list"), list(kernel.blocks()), warps


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return load_text(tmp_path_factory.mktemp("v4"), grouped(BLOCKS, 4, **GEOMETRY))


# --- forms --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "mode"), list(itertools.product(VERSIONS, (0, 1, 2))))
def test_versions_and_address_modes_mean_the_same(tmp_path, expected, version, mode):
    kernel = load_text(tmp_path, grouped(BLOCKS, version, mode, **GEOMETRY))
    assert columns(kernel) == columns(expected)


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("core_columns", [False, True])
@pytest.mark.parametrize("line_info", [False, True])
def test_raw_traces_mean_the_same(tmp_path, expected, version, core_columns, line_info):
    text = raw(BLOCKS, version, core_columns=core_columns, line_info=line_info, **GEOMETRY)
    kernel = load_text(tmp_path, text, "kernel-1.trace")
    assert columns(kernel)[1:] == columns(expected)[1:]
    assert (kernel.instructions["source_line"] == (42 if line_info else 0)).all()


def test_line_numbers_are_kept(tmp_path, expected):
    kernel = load_text(tmp_path, grouped(BLOCKS, 4, line_info=True, **GEOMETRY))
    assert columns(kernel) == columns(expected)
    assert (kernel.instructions["source_line"] == 42).all()


def test_newer_tracers_may_append_fields(tmp_path, expected):
    text = grouped(BLOCKS, 6, **GEOMETRY).replace(" -7 \n", " -7 0 NoVal \n")
    text = text.replace("\nwarp = 0\n", "cluster id = 0,0,0\ncluster rank = 0\n\nwarp = 0\n")
    assert columns(load_text(tmp_path, text)) == columns(expected)


def test_windows_line_ends(tmp_path, expected):
    path = tmp_path / "kernel-1.traceg"
    path.write_bytes(grouped(BLOCKS, 4, **GEOMETRY).replace("\n", "\r\n").encode())
    assert columns(ws.load(path).kernels[0]) == columns(expected)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_compressions(tmp_path, expected, suffix):
    data = grouped(BLOCKS, 4, **GEOMETRY).encode()
    pack = {
        "": lambda d: d,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": lambda d: pa.compress(d, "zstd", asbytes=True),
    }[suffix]
    (tmp_path / f"kernel-1.traceg{suffix}").write_bytes(pack(data))
    (tmp_path / "kernelslist.g").write_text(
        "MemcpyHtoD,0x00007fb0fc400000,200000\nkernel-1.traceg\n"
    )
    for path in (tmp_path, tmp_path / "kernelslist.g", tmp_path / f"kernel-1.traceg{suffix}"):
        app = ws.load(path)
        assert len(app) == 1
        assert app.kernels[0].digest == expected.digest


def test_header_fields(tmp_path):
    text = grouped(
        {(1, 0, 0): {0: [Instruction(0, "EXIT")]}},
        5,
        grid=(2, 1, 1),
        block=(16, 2, 1),
        name="_ZN3foo3barEPf",
        **{"kernel id": 9, "shmem": 1024, "nregs": 21},
    )
    with pytest.warns(ws.errors.TraceWarning, match="1 of 2 in kernel 9"):
        kernel = load_text(tmp_path, text)
    assert (kernel.name, kernel.short_name) == ("_ZN3foo3barEPf", "bar")
    assert (kernel.launch_id, kernel.grid, kernel.block) == (9, (2, 1, 1), (16, 2, 1))
    assert (kernel.shared_memory_bytes, kernel.registers_per_thread) == (1024, 21)
    assert (kernel.num_blocks, kernel.num_missing_blocks, kernel.num_warps) == (2, 1, 1)
    assert list(kernel.blocks()) == [(1, [0])]


def test_generic_accesses_are_classified_by_their_address(tmp_path):
    """Generic loads reach shared memory at 0x7f60..., local memory at 0x7f62..., global memory elsewhere."""
    shared, local, other = 0x7F60_0000_0000, 0x7F62_0000_0000, 0x7F50_0000_0000
    instructions = [
        Instruction(0x00, "LD.E", [4], [2], addresses=lanes(lambda i: shared + 4 * i), width=4),
        Instruction(0x00, "LD.E", [4], [2], addresses=lanes(lambda i: local + 16), width=4),
        Instruction(0x00, "LD.E", [4], [2], addresses=lanes(lambda i: other + 4 * i), width=4),
        Instruction(0x10, "ST.E", [], [2, 4], 0b11, {0: shared, 1: other}, 4),
        Instruction(0x20, "LDL", [4], [2], addresses=lanes(lambda i: 16), width=4),
    ]
    kernel = load_text(tmp_path, grouped({(0, 0, 0): {0: instructions}}, 4))
    columns = kernel.warp(0, 0)
    spaces = [kernel.instructions.space[row] for row in columns["memory_static"]]
    assert spaces == ["shared", "local", "global", "generic", "local"]
    # 32 lanes of 4 bytes are four sectors, also interleaved; the shared one counts a wavefront.
    assert columns["memory_count"].tolist() == [1, 4, 4, 1, 4]
    # The same private offset through the window and by LDL is the same memory.
    assert columns["sector"][:4].tolist() == columns["sector"][-4:].tolist()


def test_the_windows_of_generic_addresses_have_16_mib(tmp_path):
    shared, local = 0x7F6000000000, 0x7F6200000000
    ends = [shared + 2**24 - 4, shared + 2**24, local - 4, local + 2**24 - 4, local + 2**24]
    instructions = [
        Instruction(16 * i, "LD.E", dst=[4], src=[2], mask=1, width=4, addresses={0: address})
        for i, address in enumerate(ends)
    ]
    text = grouped({(0, 0, 0): {0: [*instructions, Instruction(256, "EXIT")]}}, 5)
    kernel = load_text(tmp_path, text)
    spaces = [kernel.instructions.space[row] for row in kernel.warp(0, 0)["memory_static"]]
    assert spaces == ["shared", "global", "global", "local", "global"]


def test_generic_accesses_of_old_traces_are_global(tmp_path):
    load = Instruction(
        0, "LD.E", [4], [2], addresses=lanes(lambda i: 0x7F60_0000_0000 + 4 * i), width=4
    )
    kernel = load_text(tmp_path, grouped({(0, 0, 0): {0: [load]}}, 2))
    assert kernel.instructions.space.tolist() == ["generic", "global"]


def test_functions_may_share_offsets(tmp_path):
    """A called function restarts at its own PCs: another instruction at the same PC."""
    instructions = [
        Instruction(0, "MOV", [1]),
        Instruction(0, "FADD", [2], [1]),
        Instruction(0, "MOV", [1]),
    ]
    kernel = load_text(tmp_path, grouped({(0, 0, 0): {0: instructions}}, 4))
    assert kernel.instructions.opcode.tolist() == ["MOV", "FADD"]
    assert kernel.instructions.executions.tolist() == [2, 1]


def test_unknown_opcodes_are_counted_in_one_warning(tmp_path):
    instructions = [
        Instruction(0x00, "FROB.X", [1]),
        Instruction(0x10, "FROB.X", [1]),
        Instruction(0x20, "LDQ.E", [4], [2], addresses=lanes(lambda i: 0x1000 + 4 * i), width=4),
        Instruction(0x30, "STQ.E", [], [2, 4], addresses=lanes(lambda i: 0x1000 + 4 * i), width=4),
    ]
    path = write(tmp_path / "kernel-1.traceg", grouped({(0, 0, 0): {0: instructions}}, 4))
    with pytest.warns(ws.errors.TraceWarning) as caught:
        kernel = ws.load(path).kernels[0]
    assert len(caught) == 1
    assert "4 warp instructions have unknown opcodes: FROB.X (2), LDQ.E (1), STQ.E (1)" in str(
        caught[0].message
    )
    assert kernel.unknown_opcodes == {"FROB.X": 2, "LDQ.E": 1, "STQ.E": 1}
    assert kernel.num_memory_instructions == 2
    used = kernel.instructions[kernel.instructions.executions > 0]
    assert used.kind.tolist() == ["none", "none", "load", "store"]
    ws.predict(kernel, ws.gpu("pascal-mdm"), "all")


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(
    st.lists(
        st.tuples(
            st.integers(0, FULL),
            st.lists(st.integers(0, 2**40), min_size=32, max_size=32),
            st.sampled_from([(1, ".U8"), (4, ""), (16, ".128")]),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(VERSIONS),
    st.sampled_from([0, 2]),
)
def test_addresses_survive_every_form(tmp_path_factory, accesses, version, mode):
    """What the reader makes of random addresses equals what the builder makes of them."""
    k = ws.patterns.KernelBuilder("_Z6kernelPi", grid=1, block=32, registers_per_thread=16)
    instructions = []
    for n, (mask, addresses, (width, suffix)) in enumerate(accesses):
        values = dict(enumerate(addresses))
        instructions.append(Instruction(16 * n, f"LDG.E{suffix}", [4], [2], mask, values, width))
        active = np.array([mask >> lane & 1 for lane in range(32)], dtype=bool)
        k.emit(f"LDG.E{suffix}", dst=4, src=2, address=np.array(addresses), predicate=active)
    kernel = load_text(
        tmp_path_factory.mktemp("forms"), grouped({(0, 0, 0): {0: instructions}}, version, mode)
    )
    assert columns(kernel) == columns(k.build())


# --- folders and lists --------------------------------------------------------------------------


def test_folder_without_list_is_in_launch_order(tmp_path):
    for launch in (10, 2, 1):
        text = grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 4, **{"kernel id": launch})
        write(tmp_path / f"kernel-{launch}.traceg", text)
    write(tmp_path / "kernel-1.trace", "the raw file that kernel-1.traceg was made from")
    write(tmp_path / "stats.csv", "")
    assert [k.launch_id for k in ws.load(tmp_path)] == [1, 2, 10]


def test_names_with_contexts(tmp_path):
    text = grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 5)
    (tmp_path / "kernel-1-ctx_0x55dfecb31820.traceg.xz").write_bytes(lzma.compress(text.encode()))
    write(tmp_path / "kernelslist.g", "kernel-1-ctx_0x55dfecb31820.traceg\n")
    assert len(ws.load(tmp_path)) == 1


def test_choice_of_kernels_reads_no_others(tmp_path):
    for launch in (1, 2):
        write(
            tmp_path / f"kernel-{launch}.traceg",
            grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 4, **{"kernel id": launch}),
        )
    write(tmp_path / "kernel-3.traceg", "broken")
    assert [k.launch_id for k in ws.load(tmp_path, kernels=[2])] == [2]
    with pytest.raises(ws.InputError, match=r"has no kernel 7; its kernels are"):
        ws.load(tmp_path, kernels=[2, 7])


def test_choice_of_kernels_beyond_the_files_reads_none(tmp_path):
    for launch in (1, 2):
        write(tmp_path / f"kernel-{launch}.traceg", "broken")
    with pytest.raises(ws.InputError, match=r"has no kernel 3; its kernels are 1, 2"):
        ws.load(tmp_path, kernels=range(1, 10**30))
    for choice in (9, [9]):
        with pytest.raises(ws.InputError, match=r"has no kernel 9; its kernels are 1, 2"):
            ws.load(tmp_path, kernels=choice)


def test_missing_warps_are_told_once(tmp_path):
    warps = {0: [Instruction(0, "EXIT")]}
    for launch in (1, 2):
        write(
            tmp_path / f"kernel-{launch}.traceg",
            grouped(
                {(0, 0, 0): warps, (1, 0, 0): {**warps, 1: warps[0]}},
                4,
                grid=(2, 1, 1),
                block=(64, 1, 1),
                **{"kernel id": launch},
            ),
        )
    with pytest.warns(ws.errors.TraceWarning) as caught:
        app = ws.load(tmp_path)
    assert [str(c.message) for c in caught] == [
        f"{tmp_path}: warps are missing from traced thread blocks: 1 of 4 in kernel 1, 1 of 4 in kernel "
        "2; they count as warps without instructions"
    ]
    assert caught[0].filename == __file__
    assert [k.num_missing_warps for k in app] == [1, 1]
    assert app.info()["missing_warps"].tolist() == [1, 1]
    assert "3 warps (1 missing)" in repr(app.kernels[0])


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_names_that_are_not_utf8(tmp_path, ending):
    folder = tmp_path / "a\udcffb"
    folder.mkdir()
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[ending]
    text = grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 4)
    file = folder / f"kernel-1\udcff.traceg{ending}"
    file.write_bytes(pack(text.encode()))
    assert ws.load(folder).name == "a\\xffb"
    assert ws.load(file).name == "kernel-1\\xff"
    file.write_bytes(pack(text.replace("EXIT", "").encode()))
    with pytest.raises(ws.InputError, match=r"a\\xffb/kernel-1\\xff\.traceg"):
        ws.load(folder)
    with pytest.raises(ws.InputError, match=r"no\\xff: no such file or folder"):
        ws.load(tmp_path / "no\udcff")


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (3, {}, "load: expected a path, got 3"),
        (b"x", {}, "load: expected a path, got b'x'"),
        ("", {}, "load: the path is empty"),
        ("a\0b", {}, "is not a file name"),
        ("a\ud800", {}, "is not a file name"),
        ("x" * 5000, {}, "has 5000 characters, too many for a path"),
        (".", {"kernels": "1"}, "expected launch numbers such as"),
        (".", {"memory_limit_mib": "x"}, "memory_limit_mib = 'x' is not an amount of memory"),
        (
            ".",
            {"memory_limit_mib": float("nan")},
            "memory_limit_mib = nan is not an amount of memory",
        ),
    ],
)
def test_wrong_arguments(path, options, message):
    with pytest.raises(ws.InputError, match=message):
        ws.load(path, **options)


def test_what_the_system_refuses_is_an_input_error(tmp_path, monkeypatch):
    write(tmp_path / "kernel-1.traceg", "")

    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    with pytest.raises(ws.InputError, match="cannot be read: Permission denied"):
        ws.load(tmp_path)


def test_spill_folder_that_is_not_utf8(tmp_path, monkeypatch):
    folder = tmp_path / "t\udcff"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    write(tmp_path / "kernel-1.traceg", grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 4))
    assert ws.load(tmp_path, memory_limit_mib=0).kernels[0].in_file


def test_raw_list_finds_grouped_files(tmp_path):
    write(tmp_path / "kernel-1.traceg", grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 4))
    write(tmp_path / "kernelslist", "kernel-1.trace\n")
    assert len(ws.load(tmp_path)) == 1


# --- real traces --------------------------------------------------------------------------------


def test_bfs_counts(bfs, bfs_reference):
    assert [k.num_instructions for k in bfs] == list(bfs_reference.trace_warp_insts)
    assert [k.name for k in bfs] == list(bfs_reference.name)
    threads = [
        sum(
            int(np.bitwise_count(kernel.warp(block, w)["active_mask"]).sum())
            for block, (_, warps) in enumerate(kernel.blocks())
            for w in range(len(warps))
        )
        for kernel in bfs
    ]
    assert threads == list(bfs_reference.trace_thread_insts)


@pytest.mark.parametrize(
    ("folder", "kernels", "first"),
    [("cuda-vectoradd", 1, "vectorAdd"), ("rodinia-backprop-h100", 3, "forward_kernel")],
)
def test_other_real_traces(shared, folder, kernels, first):
    app = ws.load(shared / "traces" / folder)
    assert len(app) == kernels
    assert app.kernels[0].short_name == first
    assert not any(k.unknown_opcodes for k in app)


def test_vector_add_by_hand(shared):
    """196 blocks of 8 warps, 17 instructions each; two loads and a store of 128 bytes per warp.

    50,000 elements: warps 0 to 1561 are full, 1562 has 16 threads with work, the last 5 leave at
    EXIT after 6 instructions.
    """
    kernel = ws.load(shared / "traces" / "cuda-vectoradd").kernels[0]
    assert kernel.num_instructions == 1563 * 17 + 5 * 6
    totals = ws.simulate_caches(kernel, ws.gpu("pascal-mdm")).totals
    assert totals["load_instructions"] == 2 * 1563
    assert totals["l1_read_sectors"] == 2 * 50_000 * 4 // 32
    assert totals["l1_write_sectors"] == 50_000 * 4 // 32


@pytest.mark.slow
def test_repository_trace_equals_the_builder(strided_path):
    app = ws.load(strided_path)
    for kernel, gs, base in zip(app, (1, 32), (0x7F00_0000_0000, 0x7F00_1000_0000), strict=True):
        assert columns(kernel) == columns(ws.patterns.strided(gs, base=base))


# --- bad input ----------------------------------------------------------------------------------

GOOD = grouped(BLOCKS, 4, **GEOMETRY)
ONE = grouped({(0, 0, 0): {0: program(0)}}, 4)
LOAD = line(program(0)[2], 4, 1)


def changed(old, new, text=ONE, count=1):
    assert old in text
    return text.replace(old, new, count)


BAD = {
    "empty": ("", "the file has no instruction; it is empty"),
    "only a header": (header(4), "the file has no instruction; it is cut or not a trace"),
    "text of another kind": (
        "Dear reader,\nhello\n",
        r':1: the line "Dear reader," is not a header line; this is not',
    ),
    "no name": (changed("-kernel name = _Z6kernelPi\n", ""), "no line -kernel name = "),
    "no grid": (changed("-grid dim = (1,1,1)\n", ""), "no line -grid dim = "),
    "two dimensions": (
        changed("(1,1,1)", "(1,1)"),
        r':3: -grid dim = "\(1,1\)" is not of the form \(x,y,z\)',
    ),
    "negative grid": (changed("(1,1,1)", "(-1,1,1)"), ":3: -grid dim"),
    "empty grid": (changed("(1,1,1)", "(0,1,1)"), ":3: grid dim x = 0 is outside 1 to 2147483647"),
    "absurd grid": (
        changed("(1,1,1)", "(1,70000,1)"),
        ":3: grid dim y = 70000 is outside 1 to 65535",
    ),
    "absurd block": (
        changed("(32,1,1)", "(32,32,2)"),
        ":4: threads per block = 2048 is outside 1 to 1024",
    ),
    "overflowing grid": (changed("(1,1,1)", "(99999999999999999999,1,1)"), ":3: -grid dim"),
    "absurd registers": (
        changed("nregs = 16", "nregs = 100000"),
        ":6: registers per thread = 100000",
    ),
    "registers in words": (
        changed("nregs = 16", "nregs = many"),
        ':6: -nregs = "many" is not a number',
    ),
    "cut in a line": (
        ONE[: ONE.index("LDG.E.U8") + 40],
        "the file ends inside a thread block; it is cut|line ends",
    ),
    "cut between lines": (
        ONE[: ONE.index("0070 ")],
        "the file ends inside a thread block; it is cut",
    ),
    "cut between warps": (
        GOOD[: GOOD.index("warp = 1")],
        "the file ends inside a thread block; it is cut",
    ),
    "lost line": (
        changed(line(program(0)[0], 4) + "\n", ""),
        "warp 0 of this thread block announces 12 instructions but has 11",
    ),
    "doubled line": (
        changed(LOAD, LOAD + "\n" + LOAD, grouped({(0, 0, 0): {0: program(0)}}, 4, 1)),
        "but has 13",
    ),
    "absurd count": (
        changed("insts = 12", "insts = 99999999999999"),
        "announces 99999999999999 instructions",
    ),
    "count in words": (
        changed("insts = 12", "insts = twelve"),
        '-insts = "twelve" is not a number',
    ),
    "no count": (changed("insts = 12\n", ""), "an instruction before warp = and insts ="),
    "no warp": (changed("warp = 0\n", ""), "insts = before warp ="),
    "no block index": (changed("thread block = 0,0,0\n", ""), "warp = before thread block ="),
    "block outside": (
        changed("thread block = 0,0,0", "thread block = 4,0,0"),
        "thread block = 4,0,0 is outside",
    ),
    "block index": (changed("thread block = 0,0,0", "thread block = 0,0"), "thread block"),
    "warp outside": (changed("warp = 0", "warp = 1"), "warp 1 is outside a block of 1 warps"),
    "doubled warp": (
        changed("warp = 1", "warp = 0", GOOD),
        "warp 0 of thread block 0 appears twice or out of order",
    ),
    "doubled block": (
        changed("thread block = 1,0,0", "thread block = 0,0,0", GOOD),
        "block 0 appears twice",
    ),
    "blocks in disorder": (
        changed("thread block = 0,0,0", "thread block = 1,0,0", GOOD),
        "block 1 appears twice or",
    ),
    "nested blocks": (changed("#END_TB\n", "", GOOD), "#BEGIN_TB before the #END_TB"),
    "end only": (changed("#BEGIN_TB", "#BEGIN"), "thread block = outside #BEGIN_TB"),
    "empty block": (
        changed("warp = 0\ninsts = 12\n", "", ONE)[: ONE.index("warp =")] + "#END_TB\n",
        "has no warp",
    ),
    "header in the body": (
        changed("warp = 0", "-nregs = 3\nwarp = 0"),
        "a header line .* after the first",
    ),
    "mask": (
        changed("0030 6190a142", "0030 6190a14g"),
        'active mask "6190a14g" is not a hexadecimal number',
    ),
    "short mask": (changed("0030 6190a142", "0030 6190"), 'active mask "6190" is not eight digits'),
    "PC": (changed("0030 6190a142", "00x0 6190a142"), 'PC "00x0" is not a hexadecimal number'),
    "long PC": (
        changed("0030 6190a142", "fffffffff0 6190a142"),
        "PC 1099511627760 is beyond 4 GiB",
    ),
    "register": (
        changed("1 R5 LDG.E.U8", "1 X5 LDG.E.U8"),
        'destination register "X5" is not a register R0 to R255',
    ),
    "register number": (changed("1 R5 LDG.E.U8", "1 R256 LDG.E.U8"), '"R256" is not a register'),
    "register count": (
        changed("1 R5 LDG.E.U8", "99 R5 LDG.E.U8"),
        "number of destination registers = 99",
    ),
    "opcode": (changed("LDG.E.U8", "?LDG"), r'opcode "\?LDG" is not an opcode'),
    "opcode with other letters": (
        changed("LDG.E.U8", "LDG.\u00c9"),
        r'opcode "LDG\.\?\?" is not an',
    ),
    "name": (
        changed("_Z6kernelPi", "_Z6k\u00e9rnelPi"),
        r"-kernel name = .* is not printable text",
    ),
    "width": (
        changed("LDG.E.U8 1 R2 1 ", "LDG.E.U8 1 R2 4096 "),
        "memory width = 4096 is more than 256",
    ),
    "mode": (changed("LDG.E.U8 1 R2 1 2 ", "LDG.E.U8 1 R2 1 3 "), "address mode 3 is not 0"),
    "address": (changed("LDG.E.U8 1 R2 1 2 0x", "LDG.E.U8 1 R2 1 2 "), "does not begin with 0x"),
    "delta": (changed(" 4 4 4 ", " 4 four 4 "), 'address delta "four" is not a decimal number'),
    "too few deltas": (changed(" 4 4 4 ", " 4 4 "), "the line ends before its address delta"),
    "too many deltas": (
        changed(" 4 4 4 ", " 4 4 4 4 "),
        'the line has more than its operands: "4 "',
    ),
    "stride with gaps": (
        changed("LDG.E.U8 1 R2 1 2 ", "LDG.E.U8 1 R2 1 1 "),
        "base and stride for an active mask with gaps",
    ),
    "no immediate": (
        grouped({(0, 0, 0): {0: program(0)}}, 5).replace(" -7 \n", " \n", 1),
        "ends before its immediate",
    ),
    "wrong warp in an old trace": (
        grouped({(0, 0, 0): {0: program(0)}}, 2).replace("0 0 0 0 0010", "0 0 0 1 0010"),
        "belongs to another thread block or warp",
    ),
    "ungrouped after grouped": (
        ONE + "0 0 0 0 0000 ffffffff 0 EXIT 0 0 \n",
        "an instruction outside #BEGIN_TB",
    ),
    "prefix missing in a raw trace": (
        header(4) + "0000 ffffffff 0 EXIT 0 0 \n",
        "neither a grouped nor a raw",
    ),
    "half an LDGSTS in a raw trace": (
        raw({(0, 0, 0): {0: program(0)[:10]}}, 4).rsplit("0 0 0 0 0090", 1)[0],
        "the file ends before warp 0 of thread block 0 reaches its EXIT",
    ),
    "a raw trace that stops early": (
        raw({(0, 0, 0): {0: program(0)}}, 4).rsplit("\n", 2)[0] + "\n",
        "the file ends before warp 0 of thread block 0 reaches its EXIT",
    ),
    "a header line twice": (
        changed("-grid dim", "-nregs = 9\n-grid dim"),
        "a second header line -nregs",
    ),
    "endless line": ("x" * 100_000, ":1: a line is longer than 64 KiB"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_text_is_one_clear_error(tmp_path, case):
    text, message = BAD[case]
    name = "kernel-1.traceg"
    with pytest.raises(ws.InputError, match=message) as caught:
        load_text(tmp_path, text, name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_errors_name_file_and_line(tmp_path):
    text = changed("R5 LDG.E.U8", "RX LDG.E.U8")
    number = text[: text.index("RX LDG")].count("\n") + 1
    with pytest.raises(ws.InputError) as caught:
        load_text(tmp_path, text)
    assert str(caught.value) == (
        f"{tmp_path}/kernel-1.traceg:{number}: "
        'destination register "RX" is not a register R0 to R255'
    )


@pytest.mark.parametrize("suffix", ["xz", "gz", "zst"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "not compressed"])
def test_damaged_compression(tmp_path, suffix, damage):
    data = GOOD.encode()
    packed = {
        "xz": lzma.compress(data),
        "gz": gzip.compress(data),
        "zst": pa.compress(data, "zstd", asbytes=True),
    }[suffix]
    broken = {
        "cut": packed[: len(packed) // 2],
        "flipped": packed[:20] + bytes(b ^ 0xFF for b in packed[20:60]) + packed[60:],
        "not compressed": data,
    }[damage]
    path = tmp_path / f"kernel-1.traceg.{suffix}"
    path.write_bytes(broken)
    with pytest.raises(ws.InputError, match=r"kernel-1\.traceg"):
        ws.load(path)


def test_binary_junk(tmp_path):
    rng = np.random.default_rng(1)
    for seed in range(20):
        path = tmp_path / f"kernel-{seed}.traceg"
        path.write_bytes(rng.integers(0, 256, 5000, dtype=np.uint8).tobytes())
        with pytest.raises(ws.InputError, match=f"kernel-{seed}.traceg"):
            ws.load(path)


@pytest.mark.slow
@settings(max_examples=rounds(150))
@given(st.data())
def test_random_damage_is_an_error_or_harmless(tmp_path_factory, data):
    """Cutting or overwriting any part of a trace never crashes and never loses part of a kernel silently."""
    text = bytearray(GOOD.encode())
    position = data.draw(st.integers(0, len(text) - 1))
    if data.draw(st.booleans()):
        del text[position:]
    else:
        junk = data.draw(st.binary(min_size=1, max_size=8))
        text[position : position + len(junk)] = junk
    path = tmp_path_factory.mktemp("damage") / "kernel-1.traceg"
    path.write_bytes(bytes(text))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            app = ws.load(path)
        except ws.InputError as error:
            app, message = None, str(error)
    if app is None:
        assert message.startswith(str(path))
        return
    # A file that is accepted has all its instructions; missing blocks and odd opcodes give warnings.
    (kernel,) = app.kernels
    blocks = len(list(kernel.blocks()))
    assert kernel.num_instructions == 24 * blocks
    assert blocks == kernel.num_blocks or any(
        "blocks are missing" in str(c.message) for c in caught
    )


def test_lists(tmp_path):
    write(tmp_path / "kernelslist.g", "MemcpyHtoD,0x0,4\nkernel-1.traceg\n")
    with pytest.raises(ws.InputError, match=r"kernelslist\.g:2: kernel-1\.traceg is not there"):
        ws.load(tmp_path)
    write(tmp_path / "kernelslist.g", "MemcpyHtoD,0x0,4\n")
    with pytest.raises(ws.InputError, match="the list names no kernel"):
        ws.load(tmp_path)
    (tmp_path / "kernelslist.g").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ws.InputError, match="cannot read the kernel list"):
        ws.load(tmp_path)


def test_paths(tmp_path):
    with pytest.raises(ws.InputError, match="no such file or folder"):
        ws.load(tmp_path / "nothing")
    with pytest.raises(ws.InputError, match="not a trace that warpstack knows"):
        ws.load(tmp_path)
    with pytest.raises(ws.InputError, match="not a trace that warpstack knows"):
        ws.load(write(tmp_path / "notes.txt", "hello"))
    (tmp_path / "kernelslist-a.g").write_text("")
    (tmp_path / "kernelslist-b.g").write_text("")
    with pytest.raises(ws.InputError, match="several kernel lists"):
        ws.load(tmp_path)


def test_unreadable_folder_entry(tmp_path):
    (tmp_path / "kernel-1.traceg").mkdir()
    with pytest.raises(ws.InputError):
        ws.load(tmp_path / "kernel-1.traceg")


def test_failure_leaves_no_temporary_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    path = write(tmp_path / "kernel-1.traceg", GOOD[: len(GOOD) // 2])
    with pytest.raises(ws.InputError):
        ws.load(path, memory_limit_mib=0)
    assert list((tmp_path / "spill").iterdir()) == []
    shutil.rmtree(tmp_path / "spill")
    with pytest.raises(ws.InputError, match="temporary trace file"):
        ws.load(write(path, GOOD), memory_limit_mib=0)
