"""Passes over the banks of L1: what traces keep of them, from every source and through every format."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accelsim_text as text
import warpstack as ws
from effort import rounds
from python_reference import access as plain
from python_reference.access import LOCAL_REGION
from warpstack import _core
from warpstack._util.trace_budget import default_budget

HERE = Path(__file__).parent
#: `strides` below, saved by the last version without passes as a folder and as a file of one kernel.
OLD_FOLDER, OLD_FILE = HERE / "saved_version_4", HERE / "version_5.wstrace"
BASE = 0x7000_0000


def strides():
    k = ws.patterns.KernelBuilder("strides", grid=1, block=64)
    lane = k.thread % 32
    k.emit("LDG.E", dst=10, src=2, address=BASE + 12 * lane)
    k.emit("LDG.E", dst=11, src=2, address=BASE + 4 + 4 * lane)
    k.emit("LDG.E", dst=12, src=2, address=BASE + 4 * lane)
    k.emit("STG.E.64", src=(2, 4), address=BASE + 24 * lane)
    k.emit("LDS", dst=13, src=3, address=8 * lane)
    k.emit("EXIT")
    return k.build()


#: Per access of `strides`. Sectors imply 3, 2, 1 and 6; shared memory has no passes.
EXPECTED = [1, 1, 0, 2, 0]


def one_access(opcode, addresses, mask=text.FULL):
    """Return the columns of a warp with one access, and its active lanes with their addresses."""
    active = np.array([mask >> lane & 1 for lane in range(32)], dtype=bool)
    k = ws.patterns.KernelBuilder("one", grid=1, block=32)
    store = opcode.startswith(("STG", "STL"))
    operands = {"src": (2, 4)} if store else {"dst": 8, "src": 2}
    k.emit(opcode, address=np.array(addresses), predicate=active, **operands)
    k.emit("EXIT")
    return k.build(), [(lane, int(addresses[lane])) for lane in range(32) if active[lane]]


def kept(kernel):
    """Return the kept passes of all warps."""
    found = []
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            found.append(kernel.warp(block, warp)["l1_passes"].tolist())
    return found


widths = st.sampled_from([("", 4), (".U8", 1), (".U16", 2), (".64", 8), (".128", 16)])
masks = st.one_of(st.just(text.FULL), st.integers(1, text.FULL))


@st.composite
def addresses(draw, width, aligned):
    kind = draw(st.sampled_from(["random", "stride", "words"]))
    if kind == "random":
        span = draw(st.sampled_from([2, 8, 64, 4096]))
        numbers = draw(st.lists(st.integers(0, span), min_size=32, max_size=32))
    elif kind == "stride":
        step = draw(st.integers(0, 70))
        numbers = [step * lane for lane in range(32)]
    else:  # few lines, one bank or several
        numbers = draw(st.lists(st.integers(0, 12), min_size=32, max_size=32))
        numbers = [n * draw(st.sampled_from([128, 128 + width])) // width for n in numbers]
    shift = draw(st.sampled_from([0, 1, 5])) * width + (0 if aligned else draw(st.integers(0, 3)))
    return [BASE + shift + width * number for number in numbers]


@settings(max_examples=rounds(300))
@given(st.data(), st.sampled_from(["LDG.E", "STG.E"]), widths, masks, st.booleans())
def test_equal_plain_definition(data, opcode, width, mask, aligned):
    suffix, width = width
    found, lanes = one_access(opcode + suffix, data.draw(addresses(width, aligned)), mask)
    columns = found.warp(0, 0)
    sectors = plain.Sectors(columns["sector"].tolist())
    passes = plain.l1_passes(lanes, width)
    assert columns["l1_passes"].tolist() == [0 if passes == sectors.l1_passes else passes]
    sectors.kept_passes = int(columns["l1_passes"][0])
    assert sectors.l1_passes == passes


@pytest.mark.parametrize(
    ("opcode", "stride", "expected"),
    [
        ("LDG.E", 4, 1),
        ("LDG.E", 12, 1),
        ("LDG.E", 33 * 4, 1),
        ("LDG.E", 48 * 4, 16),
        ("LDG.E", 128, 32),
        ("LDG.E", 0, 1),
        ("LDG.E.64", 0, 2),
        ("LDG.E.64", 8, 2),
        ("LDG.E.64", 24, 2),
        ("LDG.E.64", 128, 32),
        ("LDG.E.128", 48, 4),
        ("STG.E", 20, 1),
    ],
)
def test_by_hand(opcode, stride, expected):
    found, _ = one_access(opcode, [BASE + 4 + stride * lane for lane in range(32)])
    columns = found.warp(0, 0)
    sectors = columns["sector"].tolist()
    assert (int(columns["l1_passes"][0]) or plain.implied_passes(sectors)) == expected


@pytest.mark.parametrize(("opcode", "expected"), [("LDL", 1), ("LDL.U8", 1), ("LDL.128", 4)])
def test_lanes_of_local_memory_have_a_bank_each(opcode, expected):
    found, _ = one_access(opcode, [16 * (lane % 5) for lane in range(32)])
    columns = found.warp(0, 0)
    assert columns["sector"][0] >= LOCAL_REGION // 32
    assert plain.implied_passes(columns["sector"].tolist()) > expected
    assert columns["l1_passes"].tolist() == [expected]


def test_others_have_none():
    k = ws.patterns.KernelBuilder("others", grid=1, block=32)
    k.emit("RED.E.ADD", src=(2, 4), address=BASE + 12 * k.thread)
    k.emit("LDS", dst=8, src=3, address=12 * k.thread)
    k.emit("LDG.E", dst=9, src=3, address=BASE + 12 * k.thread, predicate=k.thread < 0)
    k.emit("LDG.E", dst=9, src=3, address=BASE + 4 * k.thread)
    k.emit("EXIT")
    kernel = k.build()
    assert kept(kernel) == [[0, 0, 0, 0]]
    assert not kernel._core.has_passes


def test_a_table_shows_them():
    columns = strides().warp(0, 0)
    table = pd.DataFrame(
        {name: columns[name] for name in ("memory_static", "memory_count", "l1_passes")}
    )
    assert table.l1_passes.tolist() == EXPECTED
    assert table.memory_count.tolist() == [12, 5, 4, 24, 2]


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spilled", [False, True])
def test_saved_traces_keep_them(tmp_path, spilled):
    kernel = strides()
    ws.save(kernel, tmp_path / "app")
    options = {"memory_limit_mib": 0} if spilled else {}
    (again,) = ws.load(tmp_path / "app", **options)
    assert kept(again) == kept(kernel) == [EXPECTED] * 2
    assert again.digest == kernel.digest
    file = str(tmp_path / "kernel.wstrace")
    _core.write_trace_file(again._core, file)
    back = ws.KernelTrace(_core.read_trace_file(file, default_budget()))
    assert kept(back) == kept(kernel)
    assert back.digest == kernel.digest


def test_files_grow_only_where_needed(tmp_path):
    for name, kernel in {"with": strides(), "without": ws.patterns.stream(blocks=2)}.items():
        ws.save(kernel, tmp_path / name)
        memory = pq.read_table(tmp_path / name / "kernel-1" / "memory.parquet")
        assert ("l1_passes" in memory.column_names) == (name == "with")


def test_digests_tell_passes_apart():
    """The same sectors of loads, other words of them."""
    digests = []
    for word in (0, 4):
        address = [BASE + 128 * lane + word * (lane % 2) for lane in range(32)]
        digests.append(one_access("LDG.E", address)[0].digest)
    assert digests[0] != digests[1]


def old_file():
    return ws.KernelTrace(_core.read_trace_file(str(OLD_FILE), default_budget()))


def old_folder():
    return ws.load(OLD_FOLDER).kernels[0]


@pytest.mark.parametrize("read", [old_file, old_folder])
def test_older_files_have_none(tmp_path, read):
    kernel, now = read(), strides()
    assert kept(kernel) == [[0] * 5] * 2
    for name, values in now.warp(0, 0).items():
        if name != "l1_passes":
            assert kernel.warp(0, 0)[name].tolist() == values.tolist()
    assert kernel.digest != now.digest
    ws.save(kernel, tmp_path / "again")
    assert ws.load(tmp_path / "again").kernels[0].digest == kernel.digest


def batch_of(kernel):
    builder = _core.TraceBuilder(kernel._core.header, default_budget())
    aside = ["executions", "source_file", "inlined_at"]
    for row in kernel.instructions.drop(columns=aside).to_dict("records"):
        builder.intern_row(row)
    return builder, kernel._core.read_batch(0, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda passes: passes[:-1], "the columns of one table differ in length"),
        (lambda passes: np.where(passes == 0, 1, passes), "an access without passes"),
    ],
)
def test_impossible_passes_are_refused(change, message):
    builder, batch = batch_of(strides())
    batch["l1_passes"] = change(batch["l1_passes"]).astype(np.uint8)
    with pytest.raises(ws.InputError, match=message):
        builder.add_batch(batch)


# --- Accel-Sim ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_accelsim_addresses_give_passes(tmp_path, mode):
    addresses = {lane: BASE + 12 * lane for lane in range(32)}
    instructions = [
        text.Instruction(0, "LDG.E", [4], [2], text.FULL, addresses, 4),
        text.Instruction(16, "EXIT"),
    ]
    (tmp_path / "kernel-1.traceg").write_text(text.grouped({(0, 0, 0): {0: instructions}}, 4, mode))
    (kernel,) = ws.load(tmp_path)
    assert kept(kernel) == [[1]]


@settings(max_examples=rounds(150))
@given(st.data(), widths, masks)
def test_accelsim_files_keep_passes_of_aligned_loads(tmp_path_factory, data, width, mask):
    suffix, width = width
    kernel, _ = one_access("LDG.E" + suffix, data.draw(addresses(width, True)), mask)
    folder = tmp_path_factory.mktemp("accelsim")
    ws.save(kernel, folder / "out", format="accelsim")
    (again,) = ws.load(folder / "out")
    assert again.warp(0, 0)["sector"].tolist() == kernel.warp(0, 0)["sector"].tolist()
    assert kept(again) == kept(kernel)


@settings(max_examples=rounds(60))
@given(st.data(), masks)
def test_accelsim_files_keep_passes_of_stores_of_words(tmp_path_factory, data, mask):
    kernel, _ = one_access("STG.E", data.draw(addresses(4, True)), mask)
    folder = tmp_path_factory.mktemp("accelsim")
    ws.save(kernel, folder / "out", format="accelsim")
    assert kept(ws.load(folder / "out").kernels[0]) == kept(kernel)
