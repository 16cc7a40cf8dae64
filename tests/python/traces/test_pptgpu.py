"""PPT-GPU traces: samples written after the tracers' output, and everything that can be wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds

# As the tracer prints it: tabs, blank lines, the list of kernels at the end and without newline.
CONFIG = """kernel_1 = {

\t"kernel_name"\t\t\t: "void scale<float>",
\t"num_registers"\t\t\t: 18,
\t"shared_mem_bytes"\t\t: 64,
\t"grid_size"\t\t\t: 2,
\t"block_size"\t\t\t: 64,
\t"cuda_stream_id"\t\t: 0
}

app_kernels_id = [1]"""

# Two warps in the slots 3 and 5, in order of arrival. P7 is PT, R255 is RZ.
SASS = "".join(
    f"{line} \n"
    for line in (
        "3 S2R R0",
        "5 S2R R0",
        "3 ISETP.GE.AND P0 P7 R0 P7",
        "3 LDG.E.64 R4 R2",
        "5 LDG.E.64 R4 R2",
        "3 LDS R8 R0",
        "3 SHFL.DOWN P7 R5 R4",
        "5 STG.E R6 R4",
        "3 STG.E R6 R4",
        "3 RED.E.ADD R6 R4",
        "3 BRA",
        "3 EXIT",
        "5 EXIT",
    )
)


def addresses(base, count, step=8):
    return [base + step * i for i in range(count)]


#: Records by block: opcode, slot, addresses. Block 1 does not execute the reduction, and stores thrice.
RECORDS = {
    0: [
        ("LDG.E.64", 3, addresses(0x7F0000000000, 32)),
        ("LDG.E.64", 5, addresses(0x7F0000001000, 32)),
        ("STG.E", 5, addresses(0x7F0000003000, 16)),
        ("STG.E", 3, addresses(0x7F0000002000, 32, 4)),
        ("RED.E.ADD", 3, addresses(0x7F0000004000, 1)),
    ],
    1: [
        ("LDG.E.64", 12, addresses(0x7F0000008000, 32)),
        ("STG.E", 14, addresses(0x7F0000009000, 32, 4)),
        ("STG.E", 12, addresses(0x7F000000A000, 32, 4)),
        ("LDG.E.64", 14, addresses(0x7F000000B000, 32)),
        ("STG.E", 14, addresses(0x7F000000C000, 2, 64)),
    ],
}


def original(records):
    """Separated by lines, addresses with 0x, no newline at the end."""
    return "".join(
        f"\n=====\n{op} " + "".join(f"0x{a:x} " for a in found) for op, _, found in records
    )


def subcore(records, *, warp=False, masks=None):
    """Write one record per line; numbers turn hexadecimal after the first address."""
    lines, base = [], "d"
    for position, (op, slot, found) in enumerate(records):
        words = [op]
        if warp:
            words.append(format(slot, base))
        if masks:
            active, predicate = masks[position]
            words.append(format(predicate.bit_count(), base))
            words += [f"{active:x}", f"{predicate:x}"]
        words += [f"{a:x}" for a in found]
        base = "x" if found else base
        lines.append(" ".join(words) + " \n")
    return "".join(lines)


def write(folder, *, config=CONFIG, sass=SASS, memory=None, dialect=original):
    (folder / "sass_traces").mkdir(parents=True)
    (folder / "memory_traces").mkdir()
    (folder / "app_config.py").write_text(config)
    if sass is not None:
        (folder / "sass_traces" / "kernel_1.sass").write_text(sass)
    for block, records in (RECORDS if memory is None else memory).items():
        text = records if isinstance(records, str) else dialect(records)
        (folder / "memory_traces" / f"kernel_1_block_{block}.mem").write_text(text)
    return folder


def load(folder, **options):
    with pytest.warns(ws.errors.TraceWarning, match="no lane masks"):
        return ws.load(folder, **options)


def issued(kernel, block, warp):
    """Return the opcodes of a warp with the sectors of its accesses."""
    columns = kernel.warp(block, warp)
    opcodes = kernel.instructions["opcode"].tolist()
    spaces = kernel.instructions["space"].tolist()
    counts, sector, result = dict(enumerate(columns["memory_count"].tolist())), 0, []
    memory = 0
    for row in columns["instruction"].tolist():
        touched = None
        if kernel.instructions["op_class"][row] == "memory":
            touched = counts[memory]
            if spaces[row] != "shared":
                touched = columns["sector"][sector : sector + counts[memory]].tolist()
                sector += counts[memory]
            memory += 1
        result.append((opcodes[row], touched))
    return result


def sectors(base, count):
    return [base // 32 + i for i in range(count)]


def test_first_block_is_complete(tmp_path):
    (kernel,) = load(write(tmp_path / "scale")).kernels
    assert (kernel.name, kernel.launch_id) == ("void scale<float>", 1)
    assert (kernel.grid, kernel.block) == ((2, 1, 1), (64, 1, 1))
    assert (kernel.registers_per_thread, kernel.shared_memory_bytes) == (18, 64)
    assert issued(kernel, 0, 0) == [
        ("S2R", None),
        ("ISETP.GE.AND", None),
        ("LDG.E.64", sectors(0x7F0000000000, 8)),
        ("LDS", 1),
        ("SHFL.DOWN", None),
        ("STG.E", sectors(0x7F0000002000, 4)),
        ("RED.E.ADD", sectors(0x7F0000004000, 1)),
        ("BRA", None),
        ("EXIT", None),
    ]
    # The third store of block 1 has a row of its own, without registers.
    table = kernel.instructions.drop_duplicates("opcode").set_index("opcode")
    registers = {op: (len(r.destinations), len(r.sources)) for op, r in table.iterrows()}
    # A pair of registers for 64 bits and for addresses; predicates and RZ are left out.
    assert registers["LDG.E.64"] == (2, 2)
    assert registers["STG.E"] == (0, 3)
    assert registers["RED.E.ADD"] == (0, 3)
    assert registers["ISETP.GE.AND"] == (0, 1)
    assert registers["SHFL.DOWN"] == (1, 1)
    assert registers["S2R"] == (1, 0)
    assert registers["BRA"] == (0, 0)


def test_traced_order_decides_without_warps(tmp_path):
    """The warp of slot 5 stored first, so that it gets the first store record."""
    (kernel,) = load(write(tmp_path / "scale")).kernels
    assert issued(kernel, 0, 1) == [
        ("S2R", None),
        ("LDG.E.64", sectors(0x7F0000001000, 8)),
        ("STG.E", sectors(0x7F0000003000, 4)),
        ("EXIT", None),
    ]
    assert issued(kernel, 0, 0)[5] == ("STG.E", sectors(0x7F0000002000, 4))


def test_other_blocks_execute_what_was_recorded(tmp_path):
    (kernel,) = load(write(tmp_path / "scale")).kernels
    # No record of the reduction: it was not executed. The third store is beyond the traced two.
    assert [op for op, _ in issued(kernel, 1, 0)] == [
        "S2R",
        "ISETP.GE.AND",
        "LDG.E.64",
        "LDS",
        "SHFL.DOWN",
        "STG.E",
        "BRA",
        "EXIT",
        "STG.E",
    ]
    assert issued(kernel, 1, 0)[-1] == ("STG.E", [0x7F000000C000 // 32, 0x7F000000C040 // 32])


@pytest.mark.parametrize("warp", [False, True])
def test_dialects_hold_the_same(tmp_path, warp):
    def dialect(records):
        return subcore(records, warp=warp)

    (expected,) = load(write(tmp_path / "a")).kernels
    (kernel,) = load(write(tmp_path / "b", dialect=dialect)).kernels
    if not warp:
        assert kernel.digest == expected.digest
        return
    # Slots 12 and 14 of block 1 are its warps 0 and 1, though the tracer printed 12 and then "e".
    assert issued(kernel, 1, 0)[2] == ("LDG.E.64", sectors(0x7F0000008000, 8))
    assert issued(kernel, 1, 0)[5] == ("STG.E", sectors(0x7F000000A000, 4))
    assert issued(kernel, 1, 1) == [
        ("S2R", None),
        ("LDG.E.64", sectors(0x7F000000B000, 8)),
        ("STG.E", sectors(0x7F0000009000, 4)),
        ("EXIT", None),
        ("STG.E", [0x7F000000C000 // 32, 0x7F000000C040 // 32]),
    ]


@pytest.mark.parametrize("warp", [False, True])
def test_masks_leave_out_predicated_lanes(tmp_path, warp):
    records = {
        0: [
            ("LDG.E.64", 3, addresses(0x7F0000000000, 32, 32)),
            ("LDG.E.64", 5, addresses(0x7F0000001000, 4, 32)),
        ]
    }
    # All active and half of them passing; four active lanes of which the last passes.
    masks = [(0xFFFFFFFF, 0x0000FFFF), (0x00F00000, 0x00800000)]

    def dialect(of_block):
        return subcore(of_block, warp=warp, masks=masks)

    (kernel,) = load(write(tmp_path / "m", memory=records, dialect=dialect)).kernels
    assert issued(kernel, 0, 0)[2] == ("LDG.E.64", sectors(0x7F0000000000, 16))
    assert issued(kernel, 0, 1)[1] == ("LDG.E.64", sectors(0x7F0000001060, 1))
    assert kernel.warp(0, 1)["active_mask"][1] == 0x00800000


def test_without_instructions_the_records_keep_their_order(tmp_path):
    (kernel,) = load(write(tmp_path / "scale", sass=None)).kernels
    gpu = ws.gpu("titan-v").replace(num_sms=1, blocks_per_sm=1)
    (stream,) = ws.memory.line_stream(kernel, gpu, level="l2", line_bytes=32)
    expected = [
        line
        for block in RECORDS.values()
        for _, _, found in block
        for line in dict.fromkeys(a // 32 for a in found)
    ]
    # Widths of 8 bytes do not reach beyond the sector here.
    assert stream["line"].tolist() == expected


def test_unknown_opcodes_count_as_generic_loads(tmp_path):
    records = {0: [("LDNEW.E", 0, addresses(0x7F0000000000, 32)), ("CCTL.IVALL", 0, [1 << 40])]}
    with pytest.warns(ws.errors.TraceWarning) as caught:
        (kernel,) = ws.load(write(tmp_path / "new", sass=None, memory=records)).kernels
    assert any("unknown opcodes: LDNEW.E (1)" in str(w.message) for w in caught)
    assert issued(kernel, 0, 0) == [("LDNEW.E", sectors(0x7F0000000000, 8))]


def test_async_copies_are_issued_without_access(tmp_path):
    """The tracer has no records of copies from global to shared memory."""
    sass = "0 LDGSTS.E.128 R2 R4 \n0 LDG.E R2 R4 \n"
    records = {0: [("LDG.E", 0, [0x7F0000000000])]}
    (kernel,) = load(write(tmp_path / "copy", sass=sass, memory=records)).kernels
    assert issued(kernel, 0, 0) == [("LDGSTS.E.128", []), ("LDG.E", sectors(0x7F0000000000, 1))]


def test_both_addresses_of_a_copy(tmp_path):
    both = addresses(0x400, 32, 16) + addresses(0x7F0000000000, 32, 16)
    records = {0: [("LDGSTS.E.128", 0, both)]}
    (kernel,) = load(write(tmp_path / "copy", sass=None, memory=records)).kernels
    assert issued(kernel, 0, 0) == [("LDGSTS.E.128", sectors(0x7F0000000000, 16))]


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(st.data())
def test_every_record_becomes_one_access(tmp_path_factory, data):
    """What the caches see is the records, whatever the instructions of the traced block were."""
    opcodes = st.sampled_from(["LDG.E", "STG.E.64", "LDG.E.U8"])
    record = st.tuples(
        opcodes,
        st.integers(0, 1),
        st.lists(st.integers(1, 2000).map(lambda i: (1 << 40) + 8 * i), max_size=32),
    )
    memory = {b: data.draw(st.lists(record, max_size=8)) for b in range(2)}
    steps = data.draw(st.lists(st.tuples(st.integers(0, 1), opcodes), max_size=8))
    sass = "0 EXIT \n" + "".join(f"{slot} {opcode} R2 R4 \n" for slot, opcode in steps)
    warp = data.draw(st.booleans())

    def dialect(records):
        return subcore(records, warp=warp)

    folder = tmp_path_factory.mktemp("ppt") / "app"
    (kernel,) = load(write(folder, sass=sass, memory=memory, dialect=dialect)).kernels
    widths = {"LDG.E": 4, "STG.E.64": 8, "LDG.E.U8": 1}
    for block, records in memory.items():
        expected = sorted(
            (op, sorted({a // 32 for a in found} | {(a + widths[op] - 1) // 32 for a in found}))
            for op, _, found in records
        )
        accesses = [
            (op, sorted(touched))
            for w in range(2)
            for op, touched in issued(kernel, block, w)
            if op != "EXIT"
        ]
        assert sorted(accesses) == expected


def test_real_kernel_survives_the_format(bfs, tmp_path):
    """Written from an Accel-Sim trace, a kernel gives the same traffic in the L1 caches."""
    source = bfs.select([4]).kernels[0]
    table = source.instructions
    config = CONFIG.replace(": 2,", f": {source.num_blocks},")
    config = config.replace(': 64,\n\t"cuda', f': {source.block[0]},\n\t"cuda')
    memory, total = {}, 0
    for block in range(source.num_blocks):
        records = []
        for warp in range(source.warps_per_block):
            columns, at = source.warp(block, warp), 0
            for row, count in zip(columns["memory_static"], columns["memory_count"], strict=True):
                touched = columns["sector"][at : at + count]
                at += count
                total += int(count)
                # Sectors stand for lanes.
                records += [
                    (table["opcode"][row], warp, [int(s) * 32 for s in touched[i : i + 32]])
                    for i in range(0, count, 32)
                ]
        memory[block] = records
    folder = write(tmp_path / "bfs", config=config, sass=None, memory=memory)
    (kernel,) = load(folder).kernels
    found = ws.simulate_caches(kernel, ws.gpu("titan-v")).totals
    assert found["l1_read_sectors"] + found["l1_write_sectors"] == total > 0


def test_selects_launches(tmp_path):
    config = (
        CONFIG.replace("[1]", "[1, 2]") + "\n" + CONFIG.split("app")[0].replace("nel_1", "nel_2")
    )
    folder = write(tmp_path / "two", config=config)
    (folder / "sass_traces" / "kernel_2.sass").write_text("0 EXIT \n")
    assert [k.launch_id for k in load(folder)] == [1, 2]
    assert [k.launch_id for k in load(folder / "app_config.py", kernels=[2])] == [2]
    (kernel,) = load(folder, kernels=[2]).kernels
    assert kernel.num_instructions == 2  # both blocks execute what one did


def test_nothing_is_executed(tmp_path):
    mark = tmp_path / "mark"
    for line in (
        f"open({str(mark)!r}, 'w')",
        f"kernel_1 = open({str(mark)!r}, 'w')",
        f"import os\napp_kernels_id = [1]\nos.mkdir({str(mark)!r})",
        f"app_kernels_id = [n for n in [open({str(mark)!r}, 'w')]]",
    ):
        folder = tmp_path / f"bad{len(list(tmp_path.iterdir()))}"
        write(folder, config=line)
        with pytest.raises(ws.InputError, match=r"app_config.py:\d: "):
            ws.load(folder)
        assert not mark.exists()


GOOD = original(RECORDS[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": "kernel_1 = {"}, r"app_config.py:1: not the tracer's list"),
        ({"config": CONFIG.split("app")[0]}, "no list app_kernels_id.* cut"),
        (
            {"config": CONFIG + "\napp_kernels_id = [1, 1]"},
            r"app_config.py:12: .*names a kernel twice",
        ),
        ({"config": CONFIG.replace("[1]", "[3]")}, "names 3, but there is no kernel_3"),
        ({"config": CONFIG.replace("[1]", "[True]")}, "no list app_kernels_id"),
        ({"config": CONFIG.replace(": 18", ": -1")}, "kernel_1 has num_registers = -1"),
        ({"config": CONFIG.replace('"grid_size"', '"size"')}, "kernel_1 has grid_size = None"),
        ({"config": CONFIG.replace('"kernel_name"', '"name"')}, 'kernel_1 is not {"kernel_name"'),
        (
            {"config": CONFIG.replace(": 2,", ": 1,")},
            "thread block 1 is outside the launch of 1 blocks",
        ),
        ({"config": CONFIG.replace(": 2,", ": 0,"), "memory": {}}, "app_config.py: kernel 1: "),
        ({"sass": None, "memory": {}}, "kernel 1 has neither sass_traces/kernel_1.sass nor"),
        (
            {"sass": "x MOV R1\n"},
            r"kernel_1.sass:1: expected warp, opcode and registers.*'x MOV R1'",
        ),
        ({"sass": "0 EXIT\n1\n"}, r"kernel_1.sass:2: expected warp"),
        ({"sass": "0 MOV R1 c[0]\n"}, r"kernel_1.sass:1: expected warp"),
        ({"sass": "0 MOV R999\n"}, "kernel_1.sass:1: the register R999 is beyond R255"),
        ({"sass": "0 EXIT\n1 EXIT\n2 EXIT\n"}, "3 warps, but a thread block of the launch has 2"),
        ({"sass": "0 EXIT\n\xff"}, "kernel_1.sass: cannot be read"),
        (
            {"memory": {0: GOOD + "\n=====\nLDG.E 7f"}},
            "kernel_1_block_0.mem:13: .*with and without 0x",
        ),
        ({"memory": {0: GOOD + "\n=====\nLDG.E 0xzz"}}, "kernel_1_block_0.mem:13: not an opcode"),
        ({"memory": {0: GOOD + "\n=====\nLDG.E 0x-7f"}}, "kernel_1_block_0.mem:13: not an opcode"),
        ({"memory": {0: "LDG.E -3 7f0000000000\n"}}, "kernel_1_block_0.mem:1: not an opcode"),
        ({"memory": {0: GOOD + "\n=====\n0x7f00"}}, "kernel_1_block_0.mem:13: not an opcode"),
        ({"memory": {0: f"LDG.E 0x{2**64 - 1:x}"}}, "addresses of 64 bits"),
        ({"memory": {0: "LDG.E " + "0x7f00 " * 40}}, "40 addresses; a warp has 32 lanes"),
        (
            {"memory": {0: "".join(f"LDG.E {s} 7f0000000000\n" for s in (3, 5, 7))}},
            "block_0.mem: 3 warps, but a thread block of the launch has 2",
        ),
        ({"memory": {b: r * 2 for b, r in RECORDS.items()}}, "holds its records twice"),
    ],
)
def test_bad_input(tmp_path, change, message):
    folder = write(tmp_path / "bad", **change)
    with pytest.raises(ws.InputError, match=message):
        ws.load(folder)


def test_traces_by_sm_only(tmp_path):
    folder = write(tmp_path / "sm", memory={})
    (folder / "memory_traces" / "kernel_1_sm_0.mem").write_text("LDG.E 7f0000000000 \n")
    with pytest.raises(ws.InputError, match=r"traced by SM only; .*ENV_TRACING_LEVEL"):
        ws.load(folder)


def test_block_columns_are_checked():
    header = {
        "name": "k",
        "launch_id": 1,
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "shared_memory_bytes": 0,
        "registers_per_thread": 1,
        "binary_version": 0,
        "stream": 0,
        "shared_window": 0,
        "local_window": 0,
        "source": "",
    }
    core = ws._core
    lanes = np.zeros(32, dtype=np.uint64)
    for columns, message in (
        (([0], [0, 0], [1], [0], lanes), "different lengths"),
        (([1, 0], [0, 0], [1, 1], [0, 0], lanes), "warps of a block decrease"),
        (([1], [0], [1], [0], lanes), "warp 1 is outside a block of 1 warps"),
        (([0], [1], [1], [0], lanes), "row 1 is not in the table"),
        (([0], [0], [1], [1], lanes), "an access has no addresses"),
        (([0], [0], [1], [0], lanes - np.uint64(1)), "beyond the address space"),
    ):
        builder = core.TraceBuilder(header, core.StorageBudget(1 << 20, "/tmp"))
        builder.intern(0, "LDG.E", [4], [2])
        with pytest.raises(ws.InputError, match=message):
            core.append_block(builder, 0, *columns)
