"""Saved traces: nothing is lost, damage is noticed, writing is all or nothing."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import warpstack as ws
from strategies import kernels
from warpstack.io import parquet


@settings(max_examples=40)
@given(kernels(), kernels())
def test_round_trip_is_lossless(tmp_path_factory, first, second):
    path = tmp_path_factory.mktemp("saved") / "app"
    ws.save(ws.App([first, second], "two"), path)
    again = ws.load(path)
    assert again.name == "two"
    assert [k.digest for k in again] == [first.digest, second.digest]
    for before, after in zip((first, second), again, strict=True):
        assert before.instructions.equals(after.instructions)
        assert before._core.header == after._core.header
        for block, (_, warps) in enumerate(before.blocks()):
            for w in range(len(warps)):
                for name, values in before.warp(block, w).items():
                    np.testing.assert_array_equal(values, after.warp(block, w)[name])


def test_real_trace(bfs, tmp_path, pascal):
    ws.save(bfs, tmp_path / "bfs")
    again = ws.load(tmp_path / "bfs")
    assert again.digest == bfs.digest
    columns = ["kernel", "model", "cycles", "cpi"]
    before, after = (ws.predict(app, pascal, "all")[columns] for app in (bfs, again))
    assert before.equals(after)
    assert [k.launch_id for k in ws.load(tmp_path / "bfs", kernels=[9, 3])] == [3, 9]


def test_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 5000)
    kernel = ws.patterns.gather(blocks=40)
    ws.save(ws.App([kernel]), tmp_path / "app")
    assert pq.ParquetFile(tmp_path / "app" / "kernel-1" / "warps.parquet").num_row_groups > 5
    assert ws.load(tmp_path / "app").kernels[0].digest == kernel.digest


def test_saved_traces_are_smaller_than_text(strided_path, tmp_path):
    ws.save(ws.load(strided_path), tmp_path / "app")
    size = sum(f.stat().st_size for f in (tmp_path / "app").rglob("*.parquet"))
    assert size < 3_000_000  # 30 MB of text


def test_existing_targets(tmp_path):
    app = ws.App([ws.patterns.stream(blocks=1)])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("data")
    for overwrite in (False, True):
        with pytest.raises(ws.InputError, match="mine: exists already; choose another name"):
            ws.save(app, tmp_path / "mine", overwrite=overwrite)
    ws.save(app, tmp_path / "app")
    with pytest.raises(ws.InputError, match="exists already"):
        ws.save(app, tmp_path / "app")
    other = ws.App([ws.patterns.stream(blocks=2)])
    ws.save(other, tmp_path / "app", overwrite=True)
    assert ws.load(tmp_path / "app").digest == other.digest
    assert (tmp_path / "mine" / "precious").read_text() == "data"


def test_failure_leaves_nothing_half_written(tmp_path, monkeypatch):
    app = ws.App([ws.patterns.stream(blocks=1), ws.patterns.stream(blocks=2)])
    ws.save(app, tmp_path / "app")
    digest = app.digest
    calls = []

    def fail_on_second(kernel, folder):
        calls.append(kernel)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "_write_kernel", fail_on_second)
    with pytest.raises(ws.InputError, match="No space left"):
        ws.save(app, tmp_path / "app", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["app"]
    assert ws.load(tmp_path / "app").digest == digest


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_unwritable_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ws.InputError, match="cannot be written"):
        ws.save(ws.App([ws.patterns.stream(blocks=1)]), tmp_path / "app")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "app"
    ws.save(ws.App([ws.patterns.gather(blocks=4)]), path)
    return path


def rewrite(path, change):
    table = pq.read_table(path)
    pq.write_table(change(table), path)


def replace_column(name, values, dtype):
    def change(table):
        index = table.column_names.index(name)
        return table.set_column(index, name, pa.array(values(table.column(name).to_numpy()), dtype))

    return change


class TestDamage:
    def refuse(self, path, message="damaged"):
        with pytest.raises(ws.InputError, match=message) as caught:
            ws.load(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("name", ["table", *parquet._FILES])
    def test_missing_file(self, saved, name):
        (saved / "kernel-1" / f"{name}.parquet").unlink()
        self.refuse(saved)

    @pytest.mark.parametrize("name", ["table", *parquet._FILES])
    def test_cut_file(self, saved, name):
        file = saved / "kernel-1" / f"{name}.parquet"
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        self.refuse(saved)

    @pytest.mark.parametrize("name", ["table", *parquet._FILES])
    def test_file_without_columns(self, saved, name):
        pq.write_table(pa.table({"other": [1]}), saved / "kernel-1" / f"{name}.parquet")
        self.refuse(saved)

    def test_changed_addresses(self, saved):
        change = replace_column("sector", lambda v: v + 1, pa.uint64())
        rewrite(saved / "kernel-1" / "sectors.parquet", change)
        self.refuse(saved, "its content has digest")

    @pytest.mark.parametrize(
        ("file", "column", "values", "dtype"),
        [
            ("instructions", "instruction", lambda v: v + 1000, pa.uint32()),
            ("memory", "memory_static", lambda v: v * 0, pa.uint32()),
            ("memory", "memory_count", lambda v: v + 1, pa.uint16()),
            ("warps", "warp", lambda v: v + 1000, pa.uint32()),
            ("warps", "block", lambda v: v[::-1].copy(), pa.uint64()),
            ("warps", "block", lambda v: v + 10_000, pa.uint64()),
            ("warps", "instructions", lambda v: v + 2**31, pa.uint32()),
            ("warps", "sectors", lambda v: v * 0, pa.uint32()),
        ],
    )
    def test_contradictory_columns(self, saved, file, column, values, dtype):
        rewrite(saved / "kernel-1" / f"{file}.parquet", replace_column(column, values, dtype))
        self.refuse(saved)

    def test_wrong_types(self, saved):
        change = replace_column("sector", lambda v: v.astype(float), pa.float64())
        rewrite(saved / "kernel-1" / "sectors.parquet", change)
        self.refuse(saved, "sector is double, not uint64")

    def test_shorter_column(self, saved):
        rewrite(saved / "kernel-1" / "sectors.parquet", lambda t: t.slice(0, 5))
        self.refuse(saved)

    def test_unknown_class(self, saved):
        change = replace_column("op_class", lambda v: ["magic"] * len(v), pa.string())
        rewrite(saved / "kernel-1" / "table.parquet", change)
        self.refuse(saved, 'unknown operation class "magic"')

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "name": "x", "kernels": [{}]}']
    )
    def test_manifest(self, saved, text):
        (saved / parquet.MANIFEST).write_text(text)
        self.refuse(saved, "not a list of kernels")

    def test_future_version(self, saved):
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        manifest["version"] = 2
        (saved / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved, "format version 2; this warpstack reads version 1")

    def test_header(self, saved):
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        manifest["kernels"][0]["header"]["block"] = [4096, 1, 1]
        (saved / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved, "block dim x = 4096")
