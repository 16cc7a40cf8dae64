"""Traces as they would be if the program were changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from python_reference import program_changes as reference
from strategies import kernels

THREADS = 256
BASE = 0x7000_0000


def column(kernel, name):
    """Return a column of all warps of a kernel, in order."""
    parts = [
        kernel.warp(block, warp)[name]
        for block, (_, warps) in enumerate(kernel.blocks())
        for warp in range(len(warps))
    ]
    return np.concatenate(parts)


def lanes_of(kernel):
    return kernel.num_thread_instructions


def added_rows(may, first):
    """Return the added rows by row: those of shared memory in order, then a store and a barrier each."""
    behind = first + len(may)
    return (
        {row: first + i for i, row in enumerate(may)},
        {row: behind + 2 * i for i, row in enumerate(may)},
        {row: behind + 2 * i + 1 for i, row in enumerate(may)},
    )


@st.composite
def choices(draw, kernel):
    """Return rows, or None for all, and the set that they mean."""
    num_rows = len(kernel.instructions)
    rows = draw(st.none() | st.sets(st.integers(0, num_rows - 1)))
    return rows, set(range(num_rows)) if rows is None else rows


@st.composite
def branching(draw):
    """Draw a kernel whose lanes part often, with atomics, barriers and accesses that repeat."""
    threads = draw(st.integers(1, 200))
    k = ws.patterns.KernelBuilder("k", grid=draw(st.integers(1, 5)), block=threads)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = k.thread.shape
    opcodes = ["LDG.E", "STG.E.64", "LDG.E.128", "LDS", "STS.64", "FADD", "RED.E.ADD", "ATOMS.ADD"]
    declared = [k.instruction(opcode, dst=2, src=4) for opcode in [*opcodes, "BAR.SYNC"]]
    for _ in range(draw(st.integers(1, 12))):
        one = draw(st.sampled_from(declared))
        if one.opcode == "BAR.SYNC":
            k.issue(one)
            continue
        step = draw(st.sampled_from([4, 16, 128, 512, 2048]))
        offsets = k.thread_in_block * step + rng.integers(0, 2) * 16 + np.zeros(shape, int)
        if draw(st.booleans()):
            offsets = rng.integers(0, 64, shape) * 16
        where = rng.random(shape) < draw(st.sampled_from([0.02, 0.4, 1.1]))
        kept = {"where": where} if draw(st.booleans()) else {"predicate": where}
        is_memory = one.opcode != "FADD"
        is_shared = one.opcode in ("LDS", "STS.64", "ATOMS.ADD")
        address = offsets % 4096 if is_shared else BASE + offsets
        k.issue(one, address=address if is_memory else None, **kept)
    k.emit("EXIT")
    return k.build()


any_kernel = st.one_of(kernels(), branching())


@settings(max_examples=rounds(120), deadline=None)
@given(st.data())
def test_as_the_reference(data):
    kernel = data.draw(any_kernel)
    rows, chosen = data.draw(choices(kernel))
    for change in (
        "no_bank_conflicts",
        "combined_atomics",
        "no_barriers",
        "coalesced",
        "padded_pitch",
        "kept_in_registers",
        "register_tiles",
        "cheap_division",
    ):
        if change == "no_barriers" and chosen == set(range(len(kernel.instructions))):
            table = kernel.instructions
            if table["opcode"].str.startswith("BAR").all():
                continue  # nothing would be left
        expected = getattr(reference, change)(kernel, chosen)
        assert reference.blocks_of(kernel.changed(change, rows)) == expected, change


@settings(max_examples=rounds(120), deadline=None)
@given(st.data())
def test_divergence_as_the_reference(data):
    kernel = data.draw(any_kernel)
    rows, chosen = data.draw(choices(kernel))
    may_gather = [
        row.kind not in ("atomic", "reduction")
        and row.op_class not in ("barrier", "uniform", "tensor")
        for row in kernel.instructions.itertuples()
    ]
    changed = kernel.changed("no_divergence", rows)
    assert reference.blocks_of(changed) == reference.no_divergence(kernel, chosen, may_gather)
    # Every lane's instruction is there, in no more warp instructions.
    assert lanes_of(changed) == lanes_of(kernel)
    assert changed.num_instructions <= kernel.num_instructions


@settings(max_examples=rounds(80), deadline=None)
@given(st.data())
def test_private_atomics_as_the_reference(data):
    kernel = data.draw(branching())
    rows, chosen = data.draw(choices(kernel))
    changed = kernel.changed("private_atomics", rows)
    own = kernel.instructions
    may = [
        row.Index
        for row in own.itertuples()
        if row.kind in ("atomic", "reduction")
        and row.space != "shared"
        and row.Index in chosen
        and reference.is_of_lanes(row)
    ]
    added = added_rows(may, len(own))
    expected = reference.private_atomics(kernel, chosen, *added)
    assert reference.blocks_of(changed) == expected


@settings(max_examples=rounds(80), deadline=None)
@given(st.data())
def test_kept_in_block_as_the_reference(data):
    kernel = data.draw(any_kernel)
    rows, chosen = data.draw(choices(kernel))
    changed = kernel.changed("kept_in_block", rows)
    # Rows of shared memory are added in the order of those that they stand for.
    own = kernel.instructions
    may = [
        row.Index
        for row in own.itertuples()
        if row.kind == "load"
        and row.space not in ("shared", "local")
        and row.Index in chosen
        and reference.is_of_lanes(row)
    ]
    added = added_rows(may, len(own))
    expected = reference.kept_in_block(kernel, chosen, *added)
    assert reference.blocks_of(changed) == expected


@settings(max_examples=rounds(60), deadline=None)
@given(st.data())
def test_repeated_accesses_as_the_reference(data):
    """Kernels whose warps come back to the same words many times."""
    k = ws.patterns.KernelBuilder("k", grid=2, block=64)
    declared = [
        k.instruction(opcode, dst=2, src=4)
        for opcode in ("LDG.E", "LDG.E.128", "STG.E", "LDG.E.STRONG.GPU", "LDS")
    ]
    place = 0
    for _ in range(data.draw(st.integers(1, 60))):
        one = data.draw(st.sampled_from(declared))
        if data.draw(st.integers(0, 9)) == 0:
            place += 1
        address = place * 128 + k.thread_in_block * 4
        k.issue(one, address=address % 4096 if one.opcode == "LDS" else BASE + address * 4)
    kernel = k.build()
    rows, chosen = data.draw(choices(kernel))
    for change in ("kept_in_registers", "register_tiles"):
        expected = getattr(reference, change)(kernel, chosen)
        assert reference.blocks_of(kernel.changed(change, rows)) == expected, change


def test_what_a_warp_accesses_time_after_time_is_kept():
    k = ws.patterns.KernelBuilder("sum", grid=3, block=32)
    load, store = k.instruction("LDG.E", dst=4, src=2), k.instruction("STG.E", src=(2, 4))
    walk = k.instruction("LDG.E", dst=6, src=2)
    for time in range(16):
        k.issue(load, address=BASE + 4 * k.thread)
        k.issue(walk, address=BASE + 4096 + 4 * time + 0 * k.thread)
        k.issue(store, address=BASE + 4 * k.thread)
    kernel = k.build()
    changed = kernel.changed("kept_in_registers")
    # One load, 16 that walk through two sectors, and the last store.
    assert column(changed, "instruction").tolist() == 3 * [0, *[2] * 16, 1]
    room = kernel._core.room_for_changes()
    assert room["held"].tolist() == [45, 45, 0]
    assert changed._core.room_for_changes()["held"].tolist() == [0, 0, 0]


def test_data_of_a_block_are_loaded_once():
    k = ws.patterns.KernelBuilder("again", grid=2, block=64)
    load = k.instruction("LDG.E", dst=4, src=2)
    for time in range(3):
        k.issue(load, address=BASE + 4 * (k.thread_in_block % 32) + 64 * time)
    kernel = k.build()
    # Of four sectors each the first warp loads two new ones every time; the second finds all. They
    # fit in a tile, of which each warp loads and stores four sectors.
    assert kernel._core.room_for_changes()["again"].tolist() == [2 * (24 - 8)]
    changed = kernel.changed("kept_in_block")
    assert changed.instructions["space"].tolist() == ["global", "shared", "shared", "none"]
    assert changed.instructions["op_class"].tolist() == ["memory"] * 3 + ["barrier"]
    assert column(changed, "instruction").tolist() == [0, 2, 3, 1, 1, 1] * 4
    assert column(changed, "memory_count").tolist() == [4, 1, 1, 1, 1] * 4
    assert len(np.unique(column(changed, "sector"))) == 8
    assert changed.shared_memory_bytes == kernel.shared_memory_bytes + 8 * 32


def test_every_fourth_load_of_a_tile():
    k = ws.patterns.KernelBuilder("tile", grid=2, block=64)
    k.emit("STS", src=(2, 4), address=k.thread_in_block * 4)
    load = k.instruction("LDS", dst=4, src=2)
    for _ in range(6):
        k.issue(load, address=k.thread_in_block * 4)
    kernel = k.build()
    assert kernel._core.room_for_changes()["tiled"].tolist() == [0, 16]
    assert column(kernel.changed("register_tiles"), "instruction").tolist() == [0, 1, 1] * 4


@settings(max_examples=rounds(60), deadline=None)
@given(any_kernel)
def test_what_stays(kernel):
    sectors = set(column(kernel, "sector").tolist())
    for change in ("coalesced", "no_bank_conflicts", "combined_atomics", "no_dependencies"):
        changed = kernel.changed(change)
        np.testing.assert_array_equal(
            column(changed, "active_mask"), column(kernel, "active_mask"), err_msg=change
        )
        assert changed.grid == kernel.grid
        assert changed.block == kernel.block
    written = [
        sum(bin(mask).count("1") for mask in column(k, "store_bytes").tolist())
        for k in (kernel, kernel.changed("padded_pitch"))
    ]
    assert written[0] == written[1]
    padded = kernel.changed("padded_pitch")
    assert len(set(column(padded, "sector").tolist())) == len(sectors)


def transpose(block, tile_rows, size=64):
    """Return the stores of a transpose: lanes go down a column of a matrix of size x size words."""
    k = ws.patterns.KernelBuilder("t", grid=(size // block[0], size // tile_rows), block=block)
    blocks = np.arange(k.thread.shape[0])[:, None]
    thread = k.thread_in_block
    x = blocks % (size // block[0]) * block[0] + thread % block[0]
    y = blocks // (size // block[0]) * tile_rows + thread // block[0]
    store = k.instruction("STG.E", src=(2, 4))
    for j in range(0, tile_rows, block[1]):
        k.issue(store, address=BASE + 4 * (x * size + y + j))
    k.emit("EXIT")
    return k.build()


@pytest.mark.parametrize(
    ("block", "tile_rows"),
    [((32, 8), 32), ((32, 8), 8), ((16, 16), 16), ((32, 1), 1), ((64, 4), 8)],
)
def test_a_transpose_keeps_its_footprint(block, tile_rows):
    kernel = transpose(block, tile_rows)
    changed = kernel.changed("coalesced")
    # 64 x 64 words are 512 sectors. A warp's 32 words fill four, which are one line.
    assert set(column(changed, "sector").tolist()) == set(column(kernel, "sector").tolist())
    counts = column(changed, "memory_count")
    assert (counts == 4).all()
    assert len(counts) == 128
    lines = column(changed, "sector").reshape(-1, 4) // 4
    assert (lines == lines[:, :1]).all()
    # Each is written once, with all of its bytes.
    assert (column(changed, "store_bytes") == 0xFFFF_FFFF).all()
    assert len(column(changed, "sector")) == 512


@pytest.mark.parametrize(("iterations", "expected"), [(16, 1.0), (8, 1.0), (4, 0.5), (1, 0.125)])
def test_strided_loads_lose_only_what_they_must(iterations, expected):
    # A warp touches 32 lines, and comes back to each sector up to 8 times; it may keep 4 sectors each time.
    kernel = ws.patterns.strided(gs=32, iterations=iterations, blocks=4)
    loads = [set(column(k, "sector").tolist()) for k in (kernel, kernel.changed("coalesced"))]
    assert len(loads[1]) == expected * len(loads[0])
    assert kernel.changed("coalesced").dpki() == 0


def test_loads_by_all_warps_share_out_what_they_reuse():
    # Eight warps load the same column of 32 lines, word by word: each line is touched as a whole.
    k = ws.patterns.KernelBuilder("column", grid=1, block=THREADS)
    load = k.instruction("LDG.E", dst=4, src=2)
    for word in range(32):
        k.issue(load, address=BASE + k.thread_in_block % 32 * 4096 + 4 * word)
    kernel = k.build()
    changed = kernel.changed("coalesced")
    sectors = column(changed, "sector").reshape(8, 32, 4)
    assert len(np.unique(sectors)) == 128
    for warp in sectors:
        assert len(np.unique(warp)) == 128


def test_bank_conflicts_of_a_tile():
    k = ws.patterns.KernelBuilder("tile", grid=2, block=64)
    k.emit("LDS", dst=4, src=2, address=k.thread_in_block * 128)
    k.emit("LDS.128", dst=4, src=2, address=k.thread_in_block * 16)
    kernel = k.build()
    assert column(kernel, "memory_count").tolist() == [32, 4] * 4
    assert column(kernel.changed("no_bank_conflicts"), "memory_count").tolist() == [1, 4] * 4
    assert column(kernel.changed("no_bank_conflicts", [1]), "memory_count").tolist() == [32, 4] * 4


def test_both_sides_of_a_branch_go_to_warps_of_their_own():
    k = ws.patterns.KernelBuilder("branch", grid=1, block=128)
    odd = k.thread_in_block % 2 == 1
    for _ in range(3):
        k.emit("FADD", dst=4, src=4, where=odd)
    for _ in range(3):
        k.emit("MUFU.RSQ", dst=4, src=4, where=~odd)
    k.emit("EXIT")
    changed = k.build().changed("no_divergence")
    # Of four warps two do each side with all lanes.
    assert [len(changed.warp(0, w)["instruction"]) for w in range(4)] == [4, 4, 4, 4]
    assert (column(changed, "active_mask") == 0xFFFF_FFFF).all()
    assert column(changed, "instruction").tolist() == [0, 1, 2, 6] * 2 + [3, 4, 5, 6] * 2


def test_atomics():
    k = ws.patterns.KernelBuilder("count", grid=2, block=64)
    k.emit("RED.E.ADD", src=(2, 4), address=BASE + k.thread_in_block % 4 // 2 * 4)
    kernel = k.build()
    assert column(kernel, "word_lanes").tolist() == [16] * 4
    combined = kernel.changed("combined_atomics")
    assert column(combined, "sector_lanes").tolist() == [2] * 4
    assert column(combined, "word_lanes").tolist() == [1] * 4
    private = kernel.changed("private_atomics")
    assert private.instructions["space"].tolist() == ["global", "shared", "shared", "none"]
    # The first warp of each block clears two words and adds them up; both add 16 lanes to each.
    assert column(private, "instruction").tolist() == [2, 3, 1, 3, 0, 3, 1, 3] * 2
    assert column(private, "memory_count").tolist() == [1, 16, 1, 16] * 2
    assert max(column(private, "sector_lanes")) == 2


def test_rows_of_a_matrix_are_padded():
    # A matrix of 512 x 512 words: rows of 64 sectors, which lie 68 apart then.
    k = ws.patterns.KernelBuilder("pitch", grid=16, block=(32, 8))
    x, y = k.thread % 32, k.thread // 32
    k.emit("LDG.E", dst=4, src=2, address=BASE + 4 * (y * 512 + x))
    k.emit("STG.E", src=(2, 4), address=BASE + (1 << 20) + 4 * (x * 512 + y))
    kernel = k.build()
    assert kernel._core.room_for_changes()["pitch"].tolist() == [64, 64]
    changed = kernel.changed("padded_pitch")
    first = BASE // 32
    before = column(kernel, "sector").astype(int) - first
    after = column(changed, "sector").astype(int) - first
    is_load = before < 1 << 15
    np.testing.assert_array_equal(after[is_load], (before + before // 64 * 4)[is_load])
    stores = before[~is_load] - (1 << 15)
    # The first array grows by 127 lines at most, for which 1 MiB is left.
    np.testing.assert_array_equal(after[~is_load], stores + stores // 64 * 4 + (2 << 15))
    assert kernel.changed("padded_pitch", []).digest == kernel.digest


def test_what_is_known_of_the_launch():
    k = ws.patterns.KernelBuilder(
        "k", grid=4, block=64, registers_per_thread=128, shared_memory_bytes=9000
    )
    k.emit("LDG.E", dst=4, src=2, address=BASE + 4 * k.thread)
    k.emit("BAR.SYNC")
    k.emit("FADD", dst=5, src=4)
    kernel = k.build()
    free = kernel.changed("free_occupancy")
    assert (free.registers_per_thread, free.shared_memory_bytes) == (0, 0)
    assert free.digest != kernel.digest
    independent = kernel.changed("no_dependencies").instructions
    assert independent["sources"].tolist() == [[], [], []]
    assert independent["destinations"].tolist() == [[], [], []]
    one = kernel.changed("no_dependencies", [2]).instructions
    assert [len(row) for row in one["sources"]] == [2, 0, 0]
    assert [len(row) for row in one["destinations"]] == [1, 0, 1]
    assert kernel.changed("no_barriers").num_instructions == kernel.num_instructions - 8


def test_equal_blocks_are_still_stored_once():
    kernel = ws.patterns.strided(gs=32, iterations=4, blocks=448)
    assert kernel._core.num_distinct_blocks == 1
    for change in ws.models.PROGRAM_CHANGES:
        if change != "full_last_wave":
            assert kernel.changed(change)._core.num_distinct_blocks <= 2, change


@pytest.mark.parametrize(
    ("change", "rows", "message"),
    [("faster", None, "faster"), ("coalesced", [99], "rows"), ("coalesced", [0.5], "rows")],
)
def test_errors(change, rows, message):
    kernel = ws.patterns.strided(gs=1, iterations=1, blocks=2)
    with pytest.raises(ws.InputError, match=message):
        kernel.changed(change, rows)


DIVISIONS = """
extern "C" __global__ void divide(unsigned* out, const unsigned* in, unsigned n, unsigned long long m) {
  unsigned i = threadIdx.x;
  out[i] = in[i] / n;
  out[i + 64] = in[i] % n;
  out[i + 128] = (((unsigned long long)in[i] << 33) + i) / m;
  out[i + 192] = in[i] / 4;
}
"""


@pytest.mark.skipif(not ws.cuda.compilers(), reason="no CUDA compiler is there")
def test_a_division_becomes_one_instruction():
    data = [ws.cuda.array(np.ones(size, np.uint32)) for size in (256, 64)]
    kernel = ws.cuda.compile(DIVISIONS).kernel("divide")
    launch = kernel.launch(1, 64, *data, np.uint32(3), np.uint64(5))
    trace = getattr(launch, "trace", launch)
    changed = trace.changed("cheap_division")
    # Of 16, 15 and 67 instructions one stays; two warps execute each.
    gone = 2 * (15 + 14 + 66)
    assert trace.num_instructions - changed.num_instructions == gone
    assert int(trace._core.room_for_changes()["divisions"].sum()) == gone
    assert int(changed._core.room_for_changes()["divisions"].sum()) == 0
    assert reference.blocks_of(changed) == reference.cheap_division(
        trace, range(len(trace.instructions))
    )
    # What is left reads what the first read, not its own result.
    first = trace.instructions["opcode"].to_list().index("cvt.rp.f32.u32")
    last = first + len(reference.DIVISION) + 5 - 1
    if trace.instructions["opcode"][last] != "add.u32":
        last -= 1
    now = changed.instructions
    assert list(now["sources"][last]) == list(trace.instructions["sources"][first])
    assert list(now["destinations"][last]) == list(trace.instructions["destinations"][last])
