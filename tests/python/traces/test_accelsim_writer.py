"""Accel-Sim traces that warpstack writes: read back, they give the stages the same inputs."""

import json
import lzma
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelsim_text as text
import warpstack as ws
from effort import rounds
from python_reference import accelsim as reference
from strategies import kernels
from warpstack import _core
from warpstack._util.trace_budget import default_budget
from warpstack.cli import main
from warpstack.traces import operations
from warpstack.traces.trace import KernelTrace

SHARED_WINDOW, LOCAL_WINDOW = 0x7F60_0000_0000, 0x7F62_0000_0000


def round_trip(kernel, folder, **options):
    """Write a kernel as an Accel-Sim trace and read it back."""
    ws.save(kernel, folder / "out", format="accelsim", overwrite=True, **options)
    (again,) = ws.load(folder / "out")
    return again


def unpack(path):
    return lzma.decompress(path.read_bytes()).decode()


def row_inputs(row):
    """Return what the stages read of a static instruction, its registers apart."""
    # Shared memory has no reductions but atomics without a destination; both cost the same.
    kind = "atomic" if row.kind == "reduction" and row.space != "global" else row.kind
    op_class = "integer" if row.op_class == "unknown" else row.op_class
    width = row.width if op_class == "memory" else 0
    return op_class, row.space, kind, row.cache_operator, width, row.source_line


def assert_same_inputs(before, after):
    """Assert that two traces differ in nothing that a stage reads."""
    kept = ("grid", "block", "shared_memory_bytes", "registers_per_thread", "name", "launch_id")
    assert [getattr(before, name) for name in kept] == [getattr(after, name) for name in kept]
    assert list(before.blocks()) == list(after.blocks())
    tables = [list(kernel.instructions.itertuples()) for kernel in (before, after)]
    renamed, back = {}, {}
    for block, (_, warps) in enumerate(before.blocks()):
        for w in range(len(warps)):
            old, new = before.warp(block, w), after.warp(block, w)
            for row, other in zip(old["instruction"], new["instruction"], strict=True):
                a, b = tables[0][row], tables[1][other]
                assert row_inputs(a) == row_inputs(b)
                for x, y in ((a.destinations, b.destinations), (a.sources, b.sources)):
                    for r, s in zip(x, y, strict=True):
                        assert renamed.setdefault(r, s) == s
                        assert back.setdefault(s, r) == r
            for name in ("active_mask", "memory_count", "sector", "store_bytes"):
                np.testing.assert_array_equal(old[name], new[name])


def assert_same_results(before, after, gpu):
    """Assert that the memory and the interval stage and a model say the same of both."""
    old, new = (ws.simulate_caches(kernel, gpu) for kernel in (before, after))
    assert old.totals == new.totals
    tables = []
    for profile in (old, new):
        table = profile.per_pc[profile.per_pc["executions"] > 0].drop(columns=["opcode", "kind"])
        tables.append(table.sort_values(["pc", "space"], ignore_index=True))
    assert tables[0].equals(tables[1])
    profiles = [ws.interval_profile(k, gpu, p) for k, p in ((before, old), (after, new))]
    assert_same_intervals(*profiles)


def assert_same_intervals(before, after):
    """Assert that intervals are the same; rows of the instruction table may be in another order."""
    tables = [profile.intervals.drop(columns="cause_row") for profile in (before, after)]
    assert tables[0].equals(tables[1])


def assert_accelsim_reads(kernel, text):
    """Assert that a plain reading of the file finds the kernel's masks, sectors and bytes."""
    header, blocks = reference.read(text)
    gx, gy, _ = kernel.grid
    rows = list(kernel.instructions.itertuples())
    for position, (linear, warps) in enumerate(kernel.blocks()):
        block = (linear % gx, linear // gx % gy, linear // gx // gy)
        for w, warp in enumerate(warps):
            columns = kernel.warp(position, w)
            sectors, stores = iter(columns["sector"]), iter(columns["store_bytes"])
            counts = iter(columns["memory_count"])
            issued = zip(columns["instruction"], columns["active_mask"], strict=True)
            for (row, mask), entry in zip(issued, blocks[block][warp], strict=True):
                _, found_mask, opcode, width, addresses = entry
                assert found_mask == mask
                assert (width > 0) == (rows[row].op_class == "memory")
                if not width:
                    continue
                count = next(counts)
                assert width == rows[row].width or opcode.startswith("LDSM")
                found = reference.access(entry, header, block, warp) if addresses else (0, [], [])
                assert found[0] == count
                assert found[1] == [next(sectors) for _ in found[1]]
                assert found[2] == [next(stores) for _ in found[2]]
            assert next(sectors, None) is None
            assert next(stores, None) is None


class TestSassTraces:
    @pytest.mark.slow
    @settings(max_examples=rounds(80))
    @given(kernels())
    def test_random_kernels(self, tmp_path_factory, kernel):
        folder = tmp_path_factory.mktemp("accelsim")
        gpu = ws.gpu("pascal-mdm")
        with pytest.warns(ws.errors.TraceWarning, match="do not end in EXIT"):
            again = round_trip(kernel, folder)
        assert_same_inputs(kernel, again)
        assert_same_results(kernel, again, gpu)
        assert_accelsim_reads(kernel, (folder / "out" / "kernel-1.traceg").read_text())
        # A trace that was read once is written as it was.
        with pytest.warns(ws.errors.TraceWarning, match="EXIT"):
            assert round_trip(again, folder).digest == again.digest

    @pytest.mark.parametrize(
        "name", ["cuda-vectoradd", "rodinia-bfs-graph4096", "rodinia-backprop-h100"]
    )
    @pytest.mark.parametrize("compression", [None, "xz"])
    def test_real_traces(self, shared, tmp_path, name, compression, recwarn):
        app = ws.load(shared / "traces" / name)
        ws.save(app, tmp_path / "out", format="accelsim", compression=compression)
        again = ws.load(tmp_path / "out")
        assert [k.digest for k in again] == [k.digest for k in app]
        assert not [w for w in recwarn if "EXIT" in str(w.message)]

    @pytest.mark.slow
    def test_the_text_of_a_real_trace(self, shared, tmp_path):
        """Instruction lines without addresses are those of the tracer, registers apart."""
        folder = shared / "traces" / "rodinia-bfs-graph4096"
        original = unpack(folder / "kernel-9.traceg.xz").splitlines()
        ws.save(ws.load(folder, kernels=9), tmp_path / "out", format="accelsim")
        written = (tmp_path / "out" / "kernel-9.traceg").read_text().splitlines()

        def plain(lines):
            lines = [re.sub(r" +$", "", line) for line in lines if line and line[0] not in "-#"]
            # Zero registers and dense numbers are the writer's own.
            lines = [re.sub(r" \d( R\d+)+", " #", re.sub(r" 0(?= [A-Z])", " #", x)) for x in lines]
            return [re.sub(r" \d+ [12] 0x.*| # \d+$| 0 0$", "", line) for line in lines]

        assert plain(written) == plain(original)

    def test_header(self, tmp_path):
        head = text.header(4, grid=(2, 3, 1), block=(16, 2, 1), nregs=21, shmem=2048)
        block = {0: [text.Instruction(0, "EXIT")]}
        head = head.replace("stream id = 0", "stream id = 7")
        source = text.grouped({(1, 2, 0): block}, 4, head=head)
        (tmp_path / "kernel-1.traceg").write_text(source)
        with pytest.warns(ws.errors.TraceWarning, match="missing"):
            kernel = ws.load(tmp_path / "kernel-1.traceg").kernels[0]
        with pytest.warns(ws.errors.TraceWarning, match="missing"):
            again = round_trip(kernel, tmp_path)
        assert again.digest == kernel.digest
        lines = (tmp_path / "out" / "kernel-1.traceg").read_text().splitlines()
        expected = [line for line in head.splitlines() if line.startswith("-")]
        assert [line for line in lines if line.startswith("-") and "nvbit" not in line] == [
            line for line in expected if "nvbit" not in line
        ]
        body = "\n".join(lines).split("\n#BEGIN_TB\n")[1]
        assert body == (
            "\nthread block = 1,2,0\n\nwarp = 0\ninsts = 1\n0000 ffffffff 0 EXIT 0 0\n\n#END_TB"
        )

    def test_source_lines(self, tmp_path):
        blocks = {(0, 0, 0): {0: [text.Instruction(16, "MOV", [3]), text.Instruction(32, "EXIT")]}}
        (tmp_path / "kernel-1.traceg").write_text(text.grouped(blocks, 4, line_info=True))
        kernel = ws.load(tmp_path / "kernel-1.traceg").kernels[0]
        again = round_trip(kernel, tmp_path)
        assert list(again.instructions["source_line"]) == [42, 42]
        assert again.digest == kernel.digest


@st.composite
def generic_traces(draw):
    """Draw the text of a trace with generic, local and shared accesses of aligned lanes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    opcodes = ["LD.E", "LD.E.64", "ST.E", "ST.E.U8", "ST.E.128", "ATOM.E.ADD", "LDL", "LDL.128"]
    opcodes += ["STL", "STL.64", "STL.U16", "LDS.64", "STS.128", "LDSM.16.M88.4", "ATOMS.ADD"]
    opcodes += ["LDG.E.96", "RED.E.ADD.64", "LDGSTS.E.BYPASS.128", "LDG.E.CONSTANT", "ST.E.U16"]
    instructions = []
    for i in range(draw(st.integers(1, 8))):
        opcode = draw(st.sampled_from(opcodes))
        width = _core.decode_opcode(opcode)["width"]
        mask = draw(st.sampled_from([text.FULL, 1, 0x8000_0000, 0, int(rng.integers(1, 2**32))]))
        lanes = [lane for lane in range(32) if mask >> lane & 1]
        align = 4 if width == 12 else width
        offsets = align * rng.integers(0, draw(st.sampled_from([1, 4, 40, 3000])), 32)
        bases = np.zeros(32, dtype=np.uint64)
        if opcode.startswith(("LD.", "ST.", "ATOM.")):
            spaces = draw(st.sampled_from(["g", "l", "s", "gl", "gs", "ls", "gls"]))
            base = {"g": 0x7000_0000_0000, "l": LOCAL_WINDOW, "s": SHARED_WINDOW}
            bases = np.array([base[s] for s in rng.choice(list(spaces), 32)], dtype=np.uint64)
        elif opcode.startswith(("LDG", "RED")):
            bases += np.uint64(0x7000_0000_0000)
        addresses = {lane: int(bases[lane]) + int(offsets[lane]) for lane in lanes}
        dst = [4] if opcode.startswith(("LD", "ATOM")) and not opcode.startswith("LDGSTS") else []
        instructions.append(
            text.Instruction(16 * i, opcode, dst, [8, 12], mask, addresses, max(width, 1))
        )
    instructions.append(text.Instruction(16 * len(instructions), "EXIT"))
    blocks = {(b, 0, 0): dict.fromkeys(range(2), instructions) for b in range(2)}
    return text.grouped(blocks, 4, grid=(2, 1, 1), block=(64, 1, 1))


@pytest.mark.slow
@settings(max_examples=rounds(120))
@given(generic_traces())
def test_every_space(tmp_path_factory, source):
    """Accesses of aligned lanes always have addresses, through the windows too."""
    folder = tmp_path_factory.mktemp("spaces")
    (folder / "kernel-1.traceg").write_text(source)
    kernel = ws.load(folder / "kernel-1.traceg").kernels[0]
    again = round_trip(kernel, folder)
    assert_same_inputs(kernel, again)
    assert again.digest == kernel.digest
    if "LDSM" not in source:  # Accel-Sim takes its element for the width
        assert_accelsim_reads(kernel, (folder / "out" / "kernel-1.traceg").read_text())


# --- PTX ----------------------------------------------------------------------------------------

#: opcode, class, kind, space, cache operator, width, destinations, sources
PTX = [
    ("mov.u32", "integer", "none", "none", "none", 0, 1, 0),
    ("add.s64", "integer", "none", "none", "none", 0, 1, 2),
    ("mad.lo.s32", "integer", "none", "none", "none", 0, 1, 3),
    ("setp.lt.s32", "integer", "none", "none", "none", 0, 1, 2),
    ("fma.rn.f32", "fp32", "none", "none", "none", 0, 1, 3),
    ("add.f64", "fp64", "none", "none", "none", 0, 1, 2),
    ("add.f64", "fp64", "none", "none", "none", 0, 2, 4),
    ("setp.gt.f64", "fp64", "none", "none", "none", 0, 1, 2),
    ("max.f16x2", "fp16", "none", "none", "none", 0, 1, 2),
    ("cvt.rn.f32.s32", "sfu", "none", "none", "none", 0, 1, 1),
    ("cvt.f64.f32", "sfu", "none", "none", "none", 0, 1, 1),
    ("cvt.rzi.s32.f64", "sfu", "none", "none", "none", 0, 1, 2),
    ("cvt.rmi.f32.f32", "sfu", "none", "none", "none", 0, 1, 1),
    ("rsqrt.approx.f32", "sfu", "none", "none", "none", 0, 1, 1),
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "tensor",
        "none",
        "none",
        "none",
        0,
        4,
        10,
    ),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "tensor", "none", "none", "none", 0, 8, 24),
    ("shfl.sync.bfly.b32", "shuffle", "none", "none", "none", 0, 2, 3),
    ("vote.sync.ballot.b32", "integer", "none", "none", "none", 0, 1, 1),
    ("bar.sync", "barrier", "none", "none", "none", 0, 0, 0),
    ("membar.gl", "barrier", "none", "none", "none", 0, 0, 0),
    ("bra", "control", "none", "none", "none", 0, 0, 1),
    ("call.uni", "control", "none", "none", "none", 0, 0, 0),
    ("ld.const.f32", "constant_load", "none", "none", "none", 0, 1, 1),
    ("tex.2d.v4.f32.f32", "texture", "none", "none", "none", 0, 4, 2),
    ("frobnicate.b32", "unknown", "none", "none", "none", 0, 1, 1),
    ("ld.global.f32", "memory", "load", "global", "none", 4, 1, 1),
    ("ld.global.nc.u8", "memory", "load", "global", "none", 1, 1, 2),
    ("ld.global.v4.f32", "memory", "load", "global", "evict_first", 16, 4, 1),
    ("ld.volatile.global.v2.f64", "memory", "load", "global", "bypass_l1", 16, 2, 1),
    ("ld.f32", "memory", "load", "generic", "none", 4, 1, 1),
    ("st.f64", "memory", "store", "generic", "none", 8, 0, 2),
    ("atom.add.f32", "memory", "atomic", "generic", "none", 4, 1, 2),
    ("ld.local.u16", "memory", "load", "local", "none", 2, 1, 1),
    ("ld.local.v4.f32", "memory", "load", "local", "none", 16, 4, 1),
    ("st.local.f64", "memory", "store", "local", "none", 8, 0, 2),
    ("ld.shared.f32", "memory", "load", "shared", "none", 4, 1, 1),
    ("st.shared.v2.f32", "memory", "store", "shared", "none", 8, 0, 3),
    ("atom.shared.cas.b32", "memory", "atomic", "shared", "none", 4, 1, 3),
    ("red.shared.add.u32", "memory", "reduction", "shared", "none", 4, 0, 2),
    ("red.global.add.f64", "memory", "reduction", "global", "none", 8, 0, 2),
    ("atom.global.min.s32", "memory", "atomic", "global", "bypass_l1", 4, 1, 2),
    ("st.global.v4.u32", "memory", "store", "global", "evict_last", 16, 0, 5),
    ("st.global.u8", "memory", "store", "global", "none", 1, 0, 2),
    ("cp.async.cg.shared.global", "memory", "async_copy", "global", "bypass_l1", 16, 0, 2),
]
HEADER = {
    "name": "saxpy",
    "launch_id": 1,
    "grid": [2, 1, 1],
    "block": [64, 1, 1],
    "shared_memory_bytes": 4096,
    "registers_per_thread": 40,
    "binary_version": 0,
    "stream": 0,
    "shared_window": SHARED_WINDOW,
    "local_window": LOCAL_WINDOW,
    "source": "ptx",
}


def ptx_row(form, pc, destinations, sources):
    opcode, op_class, kind, space, cache, width, *_ = form
    return {
        "pc": pc,
        "source_line": 0,
        "opcode": opcode,
        "known_opcode": True,
        "op_class": op_class,
        "space": space,
        "kind": kind,
        "cache_operator": cache,
        "width": width,
        "destinations": destinations,
        "sources": sources,
    }


def ptx_kernel(rows, masks, addresses, **header):
    """Build a trace as a functional simulator of PTX would; masks, addresses: by step and warp."""
    builder = _core.TraceBuilder({**HEADER, **header}, default_budget())
    numbers = [builder.intern_row(row) for row in rows]
    steps = len(rows)
    for block in range(HEADER["grid"][0]):
        warps = [2 * block, 2 * block + 1]
        access = np.full((2, steps), 0xFFFF_FFFF, dtype=np.uint32)
        memory = [i for i, row in enumerate(rows) if row["op_class"] == "memory"]
        access[:, memory] = np.arange(2 * len(memory)).reshape(2, -1)
        flat = [addresses[i][w] for w in warps for i in memory]
        _core.append_block(
            builder,
            block,
            np.repeat([0, 1], steps),
            np.tile(numbers, 2),
            np.concatenate([[masks[i][w] for i in range(steps)] for w in warps]),
            access.ravel(),
            np.concatenate(flat) if flat else [],
        )
    return KernelTrace(builder.finish())


@st.composite
def ptx_kernels(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_registers = draw(st.sampled_from([8, 40, 254]))
    rows, masks, addresses = [], [], []
    # Functions restart at PC 0, so that instructions can share a PC.
    stride = draw(st.sampled_from([16, 16, 0]))
    for i in range(draw(st.integers(1, 12))):
        form = draw(st.sampled_from(PTX))
        *_, width, dst, src = form
        row = ptx_row(
            form,
            stride * i,
            rng.choice(num_registers, min(dst, num_registers), replace=False).tolist(),
            rng.choice(num_registers, min(src, num_registers), replace=False).tolist(),
        )
        rows.append(row)
        masks.append(rng.choice([text.FULL, 0, int(rng.integers(0, 2**32))], 4).astype(np.uint32))
        limit = draw(st.sampled_from([1, 8, 200, 5000]))
        offsets = max(width, 1) * rng.integers(0, limit, (4, 32)).astype(np.uint64)
        bases = np.zeros((4, 32), dtype=np.uint64)
        if form[3] == "global":
            bases += np.uint64(0x10_0000_0000)
        elif form[3] == "generic":
            windows = [0x10_0000_0000, SHARED_WINDOW, LOCAL_WINDOW][: draw(st.integers(1, 3))]
            bases = rng.choice(np.array(windows, dtype=np.uint64), (4, 32))
        addresses.append(bases + offsets)
    rows.append(ptx_row(("ret", "control", "none", "none", "none", 0, 0, 0), 16 * 12, [], []))
    masks.append(np.full(4, text.FULL, dtype=np.uint32))
    addresses.append(np.zeros((4, 32), dtype=np.uint64))
    return ptx_kernel(rows, masks, addresses)


class TestPtxTraces:
    @pytest.mark.slow
    @settings(max_examples=rounds(120))
    @given(ptx_kernels(), st.sampled_from([80, 86, 90]))
    def test_random_kernels(self, tmp_path_factory, kernel, version):
        folder = tmp_path_factory.mktemp("ptx")
        gpu = ws.gpu("pascal-mdm")
        again = round_trip(kernel, folder, binary_version=version)
        assert_same_inputs(kernel, again)
        old, new = (ws.simulate_caches(k, gpu) for k in (kernel, again))
        assert old.totals == new.totals
        profiles = [ws.interval_profile(k, gpu, p) for k, p in ((kernel, old), (again, new))]
        assert_same_intervals(*profiles)
        assert all(again.instructions["known_opcode"])
        assert_accelsim_reads(kernel, (folder / "out" / "kernel-1.traceg").read_text())

    @pytest.mark.parametrize(
        ("form", "sass"),
        [
            ("mad.lo.s32", "IMAD"),
            ("setp.lt.s32", "ISETP"),
            ("max.f16x2", "HMNMX2"),
            ("cvt.rn.f32.s32", "I2F"),
            ("cvt.f64.f32", "F2F.F64.F32"),
            ("cvt.rzi.s32.f64", "F2I.F64"),
            ("cvt.rmi.f32.f32", "FRND"),
            ("ld.global.nc.u8", "LDG.E.U8"),
            ("ld.global.v4.f32", "LDG.E.128.EF"),
            ("ld.volatile.global.v2.f64", "LDG.E.128.STRONG.GPU"),
            ("ld.f32", "LD.E"),
            ("st.local.f64", "STL.64"),
            ("st.shared.v2.f32", "STS.64"),
            ("atom.shared.cas.b32", "ATOMS.CAS"),
            ("red.shared.add.u32", "ATOMS.ADD"),
            ("red.global.add.f64", "RED.E.ADD.64"),
            ("atom.global.min.s32", "ATOMG.E.MIN.STRONG.GPU"),
            ("cp.async.cg.shared.global", "LDGSTS.E.128.STRONG.GPU"),
            ("shfl.sync.bfly.b32", "SHFL"),
            ("bar.sync", "BAR.SYNC"),
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32"),
        ],
    )
    def test_names(self, form, sass):
        row = ptx_row(next(f for f in PTX if f[0] == form), 0, [1], [2])
        assert _core.sass_opcode(row, 80) == sass

    def test_every_name_has_its_class_in_every_version(self):
        """A name that is read as another class would change the timing."""
        roots = ["add", "sub", "mul", "mad", "fma", "min", "max", "abs", "neg", "and", "shl", "bfe"]
        roots += ["bfi", "prmt", "cvt.rn.f32.f64", "cvt.u16.u32", "selp", "set", "setp", "mov"]
        roots += ["popc", "clz", "brev", "rcp", "sin", "ex2", "vote", "match", "redux", "bar"]
        roots += ["fence", "cp", "bra", "brx", "ret", "exit", "call", "trap", "mma", "shfl", "tex"]
        classes = ["integer", "fp32", "fp16", "fp64", "sfu", "tensor", "uniform", "control"]
        for version in _core.sass_versions():
            for root in roots:
                for op_class in [*classes, "barrier", "shuffle", "constant_load", "texture"]:
                    form = (root, op_class, "none", "none", "none", 0, 1, 1)
                    if op_class == "uniform" and version == 70:
                        with pytest.raises(ws.InputError, match="version 70 has no uniform"):
                            _core.sass_opcode(ptx_row(form, 0, [1], [2]), version)
                        continue
                    name = _core.sass_opcode(ptx_row(form, 0, [1], [2]), version)
                    assert _core.decode_opcode(name)["op_class"] == op_class, (name, version)

    def test_returns(self, tmp_path):
        """A ret after which its lanes go on is one from a function; the last one ends threads."""
        forms = [("ret", "control", "none", "none", "none", 0, 0, 0)] * 2
        rows = [ptx_row(form, pc, [], []) for form, pc in zip(forms, (0, 16), strict=True)]
        full = [np.full(4, text.FULL, dtype=np.uint32)] * 2
        round_trip(ptx_kernel(rows, full, [None, None]), tmp_path)
        written = (tmp_path / "out" / "kernel-1.traceg").read_text()
        assert re.findall(r"(RET\S*|EXIT)", written) == ["RET.REL.NODEC", "EXIT"] * 4
        # Half of the lanes end early.
        half = [np.full(4, m, dtype=np.uint32) for m in (0xFFFF, 0xFFFF_0000)]
        round_trip(ptx_kernel(rows, half, [None, None]), tmp_path)
        written = (tmp_path / "out" / "kernel-1.traceg").read_text()
        assert re.findall(r"(RET\S*|EXIT)", written) == ["EXIT", "EXIT"] * 4

    def test_many_registers(self, tmp_path):
        """Virtual registers beyond R255, which SASS does not have, keep their dependences."""
        rows = [
            ptx_row(PTX[1], 16 * i, [i % 254], [(7 * i) % 254, (i + 1) % 254]) for i in range(400)
        ]
        rows.append(ptx_row(("exit", "control", "none", "none", "none", 0, 0, 0), 16000, [], []))
        masks = [np.full(4, text.FULL, dtype=np.uint32)] * len(rows)
        kernel = ptx_kernel(rows, masks, [None] * len(rows))
        assert kernel._core.num_registers == 254
        assert_same_inputs(kernel, round_trip(kernel, tmp_path))

    @pytest.mark.parametrize(
        ("form", "version", "message"),
        [
            ("cp.async.cg.shared.global", 75, "asynchronous copies need binary version 80"),
            ("add.s64", 61, "binary version 61 has no table of names; choose 70, 75, 80, 86 or 90"),
        ],
    )
    def test_what_has_no_name(self, tmp_path, form, version, message):
        row = ptx_row(next(f for f in PTX if f[0] == form), 0, [], [2])
        kernel = ptx_kernel([row], [np.zeros(4, dtype=np.uint32)], [np.zeros((4, 32), np.uint64)])
        with pytest.raises(ws.InputError, match=f"kernel 1 .saxpy. cannot be written.*{message}"):
            round_trip(kernel, tmp_path, binary_version=version)
        assert list(tmp_path.iterdir()) == []


SCALE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 px, .param .u64 py) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<8>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [py];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 16;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];
  setp.lt.u32 %p1, %r1, 20;
  @%p1 bra done;
  add.f32 %f5, %f4, %f1;
  add.s64 %rd5, %rd2, %rd3;
  st.global.v2.f32 [%rd5+8], {%f5, %f2};
done:
  ret;
}
"""


def test_a_simulated_kernel(tmp_path, pascal):
    """A trace of the functional simulator goes to Accel-Sim and comes back."""
    device = ws.cuda.Device(1)
    x, y = (device.array(np.arange(256, dtype=np.float32)) for _ in range(2))
    kernel = ws.cuda.compile(SCALE, device=device).kernel("scale").launch(1, 64, x, y)
    again = round_trip(kernel, tmp_path)
    assert_same_inputs(kernel, again)
    assert_same_results(kernel, again, pascal)
    written = (tmp_path / "out" / "kernel-1.traceg").read_text()
    assert_accelsim_reads(kernel, written)
    assert " LDG.E.128 " in written
    assert " STG.E.64 " in written
    assert written.count("EXIT") == 4  # per warp: lanes beyond n, then the others


class TestSaving:
    @pytest.fixture
    def app(self):
        return ws.App([ws.patterns.strided(gs, 2, 2, launch_id=gs) for gs in (1, 32)], "two")

    def test_files(self, app, tmp_path):
        ws.save(app, tmp_path / "out", format="accelsim", binary_version=75, compression="xz")
        names = sorted(f.name for f in (tmp_path / "out").iterdir())
        assert names == [
            "kernel-1.traceg.xz",
            "kernel-32.traceg.xz",
            "kernelslist.g",
            "warpstack-export.json",
        ]
        listed = (tmp_path / "out" / "kernelslist.g").read_text()
        assert listed == "kernel-1.traceg.xz\nkernel-32.traceg.xz\n"
        head = unpack(tmp_path / "out" / "kernel-32.traceg.xz")
        assert "\n-binary version = 75\n" in head
        assert "\n-kernel id = 32\n" in head
        about = json.loads((tmp_path / "out" / "warpstack-export.json").read_text())
        assert [k["digest"] for k in about["kernels"]] == [k.digest for k in app]
        assert [k.launch_id for k in ws.load(tmp_path / "out", kernels=32)] == [32]

    def test_launches_with_one_number(self, tmp_path):
        kernels = [ws.patterns.strided(1, 1, 1), ws.patterns.strided(2, 1, 1)]
        ws.save(ws.App(kernels), tmp_path / "out", format="accelsim")
        names = [k.name for k in ws.load(tmp_path / "out")]
        assert names == [k.name for k in kernels]

    def test_existing_targets(self, app, tmp_path):
        ws.save(app, tmp_path / "out", format="accelsim")
        with pytest.raises(ws.InputError, match="out: exists already; choose another name or"):
            ws.save(app, tmp_path / "out", format="accelsim")
        ws.save(ws.App([app[0]]), tmp_path / "out", format="accelsim", overwrite=True)
        assert len(ws.load(tmp_path / "out")) == 1
        # Traces of others, and Parquet folders, are never replaced.
        (tmp_path / "out" / "warpstack-export.json").unlink()
        with pytest.raises(ws.InputError, match=r"exists already; choose another name$"):
            ws.save(app, tmp_path / "out", format="accelsim", overwrite=True)

    def test_nothing_half_written(self, app, tmp_path, monkeypatch):
        from warpstack.traces.io import accelsim

        monkeypatch.setattr(
            accelsim, "_write_kernel", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            ws.save(app, tmp_path / "out", format="accelsim")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"format": "csv"}, "format = 'csv' is not one of parquet, accelsim"),
            ({"binary_version": 80}, "binary_version = 80 is not an option of the format parquet"),
            ({"compression": "xz"}, "compression = 'xz' is not an option of the format parquet"),
            (
                {"format": "accelsim", "compression": "gz"},
                "compression = 'gz' is not one of zst, xz",
            ),
            ({"format": "accelsim", "binary_version": 8.0}, "binary_version = 8.0 is not a whole"),
        ],
    )
    def test_options(self, app, tmp_path, options, message):
        with pytest.raises(ws.InputError, match=message):
            ws.save(app, tmp_path / "out", **options)
        assert list(tmp_path.iterdir()) == []

    def test_misaligned_stores_without_addresses(self, tmp_path):
        """Two lanes cannot write 4 bytes each and leave 3 bytes in one run."""
        builder = _core.TraceBuilder({**HEADER, "grid": [1, 1, 1]}, default_budget())
        builder.intern_row(
            ptx_row(("STG.E", "memory", "store", "global", "none", 4, 0, 1), 0, [], [1])
        )
        builder.add_batch(
            {
                "block": np.array([0], np.uint64),
                "warp": np.array([1], np.uint32),
                "instructions": np.array([1], np.uint32),
                "memory": np.array([1], np.uint32),
                "sectors": np.array([1], np.uint32),
                "stores": np.array([1], np.uint32),
                "instruction": np.array([0], np.uint32),
                "active_mask": np.array([3], np.uint32),
                "memory_static": np.array([0], np.uint32),
                "memory_count": np.array([1], np.uint16),
                "sector": np.array([512], np.uint64),
                "store_bytes": np.array([0b111], np.uint32),
            }
        )
        with pytest.raises(
            ws.InputError,
            match=r"thread block 0, warp 1, PC 0x0000, STG.E: no addresses of 2 lanes touch "
            "exactly the 1 sectors",
        ):
            ws.save(KernelTrace(builder.finish()), tmp_path / "out", format="accelsim")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.slow
    def test_command_line(self, strided_path, tmp_path, capsys):
        command = ["convert", str(strided_path)]
        arguments = [str(tmp_path / "out"), "--to", "accelsim", "--binary-version", "86", "--xz"]
        assert main([*command, *arguments]) == 0
        assert re.fullmatch(
            r".*out: 2 kernels, 831,488 warp instructions, [\d.]+ MiB\n", capsys.readouterr().out
        )
        assert ws.load(tmp_path / "out").kernels[0]._core.header["binary_version"] == 86
        assert main([*command, str(tmp_path / "p"), "--xz"]) == 2
        err = capsys.readouterr().err
        assert "compression = 'xz' is not an option of the format parquet" in err


def test_launches_keep_the_streams_that_their_program_recorded(tmp_path):
    kernels = [ws.patterns.strided(gs=1, blocks=1, launch_id=number + 1) for number in range(3)]
    rows = [
        {"operation": "stream_create", "stream": -1},
        *({"operation": "kernel", "kernel": k, "stream": s} for k, s in enumerate((0, 12, 7))),
    ]
    app = ws.App._recorded(kernels, "streams", operations.columns_of(rows))
    ws.save(app, tmp_path / "text", format="accelsim")
    heads = [(tmp_path / "text" / f"kernel-{n}.traceg").read_text() for n in (1, 2, 3)]
    assert [re.search(r"cuda stream id = (\d+)", head)[1] for head in heads] == ["0", "12", "7"]
    again = ws.load(tmp_path / "text").operations
    assert again["stream"].tolist() == [0, 1, 2]
    # Without a record the number is that of the trace.
    ws.save(ws.App(list(ws.load(tmp_path / "text"))), tmp_path / "again", format="accelsim")
    assert "cuda stream id = 12" in (tmp_path / "again" / "kernel-2.traceg").read_text()


def test_streams_of_several_processes_are_apart(tmp_path):
    kernels = [ws.patterns.strided(gs=1, blocks=1, launch_id=number + 1) for number in range(3)]
    rows = [
        {"operation": "kernel", "kernel": k, "stream": s, "process": p}
        for k, (p, s) in enumerate([(0, 5), (1, 5), (1, 0)])
    ]
    app = ws.App._recorded(kernels, "processes", operations.columns_of(rows))
    ws.save(app, tmp_path / "text", format="accelsim")
    heads = [(tmp_path / "text" / f"kernel-{n}.traceg").read_text() for n in (1, 2, 3)]
    assert [re.search(r"cuda stream id = (\d+)", head)[1] for head in heads] == ["1", "2", "0"]
