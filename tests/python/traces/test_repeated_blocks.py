"""Thread blocks that repeat others are stored once, in memory and in files."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_parquet import replace_column, rewrite

import warpstack as ws
from effort import rounds
from strategies import kernels
from warpstack import _core
from warpstack._util.trace_budget import default_budget

HERE = Path(__file__).parent
#: `tiles()`, saved by the last version that stored every block: a folder, and a file of one kernel.
OLD_FOLDER, OLD_FILE = HERE / "saved_version_5", HERE / "version_6.wstrace"
#: The same, with repeated blocks, but with sectors instead of their steps.
WITHOUT_STEPS = HERE / "saved_version_6"


def tiles(blocks=40):
    """Every tenth block has fewer stores; the others differ in where their sectors lie."""
    k = ws.patterns.KernelBuilder("tiles", grid=blocks, block=64)
    block, thread = k.thread // 64, k.thread % 64
    edge = block % 10 == 9
    k.emit("LDG.E", dst=10, src=2, address=0x7000_0000 + 4 * k.thread)
    k.emit("LDG.E", dst=11, src=2, address=0x7800_0000 + 4096 * thread)
    k.emit("LDS", dst=13, src=3, address=8 * (thread % 32))
    stored = 0x7100_0000 + 1024 * block + 24 * (thread % 32)
    k.emit("STG.E.64", src=(2, 4), address=stored, predicate=~edge)
    k.emit("RED.E.ADD", src=(2, 4), address=0x7200_0000 + 64 * block + 4 * (thread % 8))
    k.emit("EXIT")
    return k.build()


#: Of `tiles()`, by every version.
DIGEST = "5268ee2a0afbf7a4e2c427b8f9265249"


def rows_with_sectors(core):
    """Return by row of the table whether its accesses have sectors."""
    table = core.instruction_table()
    return [
        op_class == "memory" and space not in ("shared", "none")
        for op_class, space in zip(table["op_class"], table["space"], strict=True)
    ]


def expanded(core, batch_bytes):
    """Return the columns of all blocks, from batches with repeats, block by block."""
    uses_caches = rows_with_sectors(core)
    distinct, found = [], {}
    for first, last in pairwise([0, *core.batch_ends(batch_bytes)]):
        batch = core.read_distinct_batch(first, last)
        lengths = {
            "instruction": "instructions", "active_mask": "instructions", "memory_static": "memory",
            "memory_count": "memory", "l1_passes": "memory", "sector": "sectors",
            "store_bytes": "stores", "sector_lanes": "stores", "word_lanes": "stores",
        }  # fmt: skip
        for block in dict.fromkeys(batch["block"].tolist()):
            here = batch["block"] == block
            columns = {"warp": batch["warp"][here]}
            for name, length in lengths.items():
                begin = int(batch[length][batch["block"] < block].sum())
                count = int(batch[length][here].sum())
                columns[name] = batch[name][begin : begin + count] if len(batch[name]) else []
            distinct.append(columns)
            found[block] = columns
        begin, before = 0, {}
        for block, like, count in zip(*map(batch.get, ("repeat", "like", "shifts")), strict=True):
            columns = dict(distinct[like])
            if count:
                shifts = batch["shift"][begin : begin + count].astype(np.int64)
                before[like] = shifts = shifts + before.get(like, 0)
                begin += count
                rows, sectors = {}, columns["sector"].copy()
                next_sector = 0
                for row, sectors_of_it in zip(
                    columns["memory_static"], columns["memory_count"], strict=True
                ):
                    if not uses_caches[row] or sectors_of_it == 0:
                        continue
                    number = rows.setdefault(row, len(rows))
                    part = slice(next_sector, next_sector + sectors_of_it)
                    sectors[part] += np.uint64(int(shifts[number]) % 2**64)
                    next_sector += sectors_of_it
                assert len(rows) == count
                columns["sector"] = sectors
            found[int(block)] = columns
    return found


def check(kernel, batch_bytes=10**9):
    """Hold what is stored against the blocks as they are read."""
    core = kernel._core
    found = expanded(core, batch_bytes)
    assert len(found) == core.num_traced_blocks
    for b in range(core.num_traced_blocks):
        plain = core.read_batch(b, b + 1)
        columns = found[core.block_warps(b)[0]]
        for name, values in columns.items():
            np.testing.assert_array_equal(values, plain[name], err_msg=name)
        for w in range(len(columns["warp"])):
            core.warp_columns(b, w)


def test_stored_once():
    kernel = tiles()
    assert kernel.digest == DIGEST
    assert kernel._core.num_distinct_blocks == 2
    assert kernel._core.stored_bytes < kernel.nbytes / 8
    check(kernel)
    check(kernel, 1000)


@pytest.mark.parametrize("limit", [512, 0])
def test_old_files_get_it_too(limit, pascal):
    (kernel,) = ws.load(OLD_FOLDER, memory_limit_mib=limit)
    single = ws.KernelTrace(_core.read_trace_file(str(OLD_FILE), default_budget()))
    for one in (kernel, single):
        assert one.digest == DIGEST
        assert one._core.num_distinct_blocks == 2
        check(one)
    assert kernel.in_file == (limit == 0)
    cycles = [ws.simulate(one, pascal).cycles for one in (kernel, single, tiles())]
    assert len(set(cycles)) == 1
    models = [ws.predict(one, pascal, "all")["cycles"].tolist() for one in (kernel, tiles())]
    assert models[0] == models[1]


@pytest.mark.parametrize("limit", [512, 0])
def test_files_without_steps(limit):
    (kernel,) = ws.load(WITHOUT_STEPS, memory_limit_mib=limit)
    assert kernel.digest == DIGEST
    assert kernel._core.num_distinct_blocks == 2
    check(kernel)


def check_steps(core, batch_bytes):
    """Hold the steps of sectors against their definition."""
    uses_caches = rows_with_sectors(core)
    for first, last in pairwise([0, *core.batch_ends(batch_bytes)]):
        batch = core.read_distinct_batch(first, last)
        sectors, steps, firsts = batch["sector"].tolist(), [], {}
        for row, count in zip(batch["memory_static"].tolist(), batch["memory_count"], strict=True):
            if uses_caches[row]:
                for i in range(count):
                    before = firsts.get(row, 0) if i == 0 else sectors[len(steps) - 1]
                    if i == 0:
                        firsts[row] = sectors[len(steps)]
                    steps.append(sectors[len(steps)] - before)
        found = core.read_distinct_batch(first, last, has_steps=True)
        assert found["step"].tolist() == steps
        assert "sector" not in found


@pytest.mark.parametrize("limit", [512, 0])
def test_files_have_it(tmp_path, limit):
    kernel = tiles()
    ws.save(kernel, tmp_path / "new")
    folder = tmp_path / "new" / "kernel-1"
    assert pq.read_table(folder / "repeats.parquet").num_rows == 38
    assert len(set(pq.read_table(folder / "warps.parquet")["block"].to_pylist())) == 2
    (again,) = ws.load(tmp_path / "new", memory_limit_mib=limit)
    assert again.digest == DIGEST
    assert again._core.num_distinct_blocks == 2
    check(again)
    _core.write_trace_file(again._core, os.fsencode(tmp_path / "one"))
    assert (tmp_path / "one").stat().st_size < OLD_FILE.stat().st_size / 4
    ws.save(ws.patterns.stream(blocks=1), tmp_path / "new", overwrite=True)
    assert not (tmp_path / "new" / "kernel-1" / "repeats.parquet").exists()


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(kernels(), st.sampled_from([0, 512]), st.sampled_from([100, 5000, 10**9]))
def test_random_kernels(tmp_path_factory, kernel, limit, batch_bytes):
    check(kernel, batch_bytes)
    check_steps(kernel._core, batch_bytes)
    path = tmp_path_factory.mktemp("saved") / "app"
    ws.save(kernel, path)
    (again,) = ws.load(path, memory_limit_mib=limit)
    assert again.digest == kernel.digest
    assert again._core.num_distinct_blocks == kernel._core.num_distinct_blocks
    check(again)


@pytest.mark.parametrize(
    ("file", "column", "values", "dtype", "message"),
    [
        ("repeats", "like", lambda v: v + 7, pa.uint32(), "it repeats distinct block 7 of 1"),
        ("repeats", "repeat", lambda v: v + 900, pa.uint64(), "is outside the grid of 40"),
        ("repeats", "repeat", lambda v: v * 0, pa.uint64(), "out of order"),
        ("repeats", "shifts", lambda v: v - 1, pa.uint32(), "shifts are not those of distinct"),
        ("repeats", "shifts", lambda v: v * 0, pa.uint32(), "more shifts than"),
        ("repeats", "shifts", lambda v: v + 2**31, pa.uint32(), "more shifts than there are"),
        ("shifts", "shift", lambda v: v + 1, pa.int32(), "its content has digest"),
        ("warps", "block", lambda v: v + 1, pa.uint64(), "twice or out of order"),
    ],
)
def test_damage_is_one_clear_error(tmp_path, file, column, values, dtype, message):
    ws.save(tiles(), tmp_path / "app")
    path = tmp_path / "app" / "kernel-1" / f"{file}.parquet"
    rewrite(path, replace_column(column, values, dtype))
    with pytest.raises(ws.InputError, match=message) as caught:
        ws.load(tmp_path / "app")
    assert "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises(ws.InputError, match="damaged"):
        ws.load(tmp_path / "app")
