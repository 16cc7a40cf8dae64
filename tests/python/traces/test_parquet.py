"""Saved traces: nothing is lost, damage is noticed, writing is all or nothing."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import warpstack as ws
from effort import rounds
from strategies import kernels
from warpstack._util.files import file_digest, sealed
from warpstack.traces.io import parquet


@pytest.mark.slow
@settings(max_examples=rounds(40))
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


def test_more_registers_than_machine_code_has(tmp_path):
    # PTX has virtual registers; number 255 is one like the others.
    loads = "".join(f"ld.global.u32 %r{i}, [%rd1+{4 * i}];\n" for i in range(300))
    stores = "".join(f"st.global.u32 [%rd1+{4 * i}], %r{i};\n" for i in range(300))
    text = (
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry copy(.param .u64 x)\n{\n"
        f".reg .b32 %r<300>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [x];\n{loads}{stores}ret;\n}}\n"
    )
    data = ws.cuda.array(np.arange(300, dtype=np.uint32))
    kernel = ws.cuda.compile(text).kernel("copy").launch(1, 1, data)
    assert kernel._core.num_registers > 256
    ws.save(kernel, tmp_path / "copy")
    (again,) = ws.load(tmp_path / "copy")
    assert again.digest == kernel.digest


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


def test_only_files_that_are_worth_it_are_compressed(tmp_path):
    """Launches alike in some files, and files on both sides of the limit."""
    app = ws.App([ws.patterns.gather(blocks=n) for n in (1, 1, 200, 1)])
    ws.save(app, tmp_path / "app")
    assert ws.load(tmp_path / "app").digest == app.digest
    found = {}
    for launch in (1, 3):
        with pq.ParquetFile(tmp_path / "app" / f"kernel-{launch}" / "sectors.parquet") as file:
            group = file.metadata.row_group(0)
            found[launch] = group.column(0).compression
            is_small = group.num_rows * 8 < parquet._LEAST_COMPRESSED_BYTES
            assert (found[launch] == "UNCOMPRESSED") == is_small
    assert found == {1: "UNCOMPRESSED", 3: "ZSTD"}


@pytest.mark.parametrize("batch_bytes", [parquet._BATCH_BYTES, 5000])
def test_equal_files_of_launches_are_there_once(tmp_path, monkeypatch, batch_bytes):
    monkeypatch.setattr(parquet, "_BATCH_BYTES", batch_bytes)
    path = tmp_path / "app"
    app = ws.App([ws.patterns.strided(gs, 4, 9, launch_id=i) for i, gs in [(1, 2), (2, 2), (3, 4)]])
    ws.save(app, path)
    found = {str(file.relative_to(path)) for file in path.rglob("*.parquet")}
    assert {f"kernel-1/{name}.parquet" for name in ("table", *parquet._FILES)} <= found
    assert "kernel-3/sectors.parquet" in found
    assert "kernel-3/table.parquet" not in found
    assert not (path / "kernel-2").exists()
    assert ws.load(path).digest == app.digest
    assert [k.digest for k in ws.load(path, kernels=2)] == [app.kernels[1].digest]
    ws.save(ws.App(app.kernels[2:]), path, overwrite=True)
    assert not (path / "kernel-3").exists()
    ws.save(app, path, overwrite=True)
    table = path / "kernel-1" / "table.parquet"
    content = table.read_bytes()
    table.write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(ws.InputError, match=r"kernel-2: .*damaged: kernel-1/table.parquet has dig"):
        ws.load(path, kernels=2)
    table.unlink()
    with pytest.raises(ws.InputError, match=r"kernel-2: .*: kernel-1/table.parquet: No such file"):
        ws.load(path, kernels=2)


def test_failure_leaves_nothing_half_written(tmp_path, monkeypatch):
    app = ws.App([ws.patterns.stream(blocks=1), ws.patterns.stream(blocks=2)])
    ws.save(app, tmp_path / "app")
    digest = app.digest
    calls = []

    def fail_on_second(kernel, folder, folders):
        calls.append(kernel)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return write_kernel(kernel, folder, folders)

    write_kernel = parquet._write_kernel
    monkeypatch.setattr(parquet, "_write_kernel", fail_on_second)
    with pytest.raises(ws.InputError, match="No space left"):
        ws.save(app, tmp_path / "app", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["app"]
    assert ws.load(tmp_path / "app").digest == digest


class TestOverwriting:
    @pytest.fixture
    def apps(self, tmp_path):
        old, new = (ws.App([ws.patterns.stream(blocks=n)]) for n in (1, 2))
        ws.save(old, tmp_path / "app")
        return old, new

    @pytest.mark.parametrize("failing", ["first", "second"])
    @pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
    def test_failure_between_the_steps_loses_nothing(
        self, tmp_path, monkeypatch, apps, failing, error
    ):
        old, new = apps
        rename = Path.rename

        def fail(self, target):
            if self.name == ("new" if failing == "second" else "app"):
                raise error
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", fail)
        with pytest.raises((ws.InputError, KeyboardInterrupt)):
            ws.save(new, tmp_path / "app", overwrite=True)
        monkeypatch.undo()
        assert [p.name for p in tmp_path.iterdir()] == ["app"]
        assert ws.load(tmp_path / "app").digest == old.digest

    def test_the_old_goes_when_the_new_is_in_place(self, tmp_path, monkeypatch, apps):
        _, new = apps
        rmtree = shutil.rmtree

        def check(folder, **options):
            assert ws.load(tmp_path / "app").digest == new.digest
            rmtree(folder, **options)

        monkeypatch.setattr(shutil, "rmtree", check)
        ws.save(new, tmp_path / "app", overwrite=True)
        assert [p.name for p in tmp_path.iterdir()] == ["app"]

    def test_through_a_link(self, tmp_path, apps):
        _, new = apps
        (tmp_path / "link").symlink_to("app")
        ws.save(new, tmp_path / "link", overwrite=True)
        assert (tmp_path / "link").is_symlink()
        assert ws.load(tmp_path / "app").digest == new.digest


def test_a_kernel_alone_is_saved_as_an_application(tmp_path):
    kernel = ws.patterns.stream(blocks=1)
    ws.save(kernel, tmp_path / "app")
    again = ws.load(tmp_path / "app")
    assert (again.name, again.kernels[0].digest) == ("stream", kernel.digest)


@pytest.mark.parametrize(
    ("app", "path", "message"),
    [
        ([], "x", "save: expected an App or a KernelTrace, got a list"),
        (ws.App([]), "x", "save: app has no kernels"),
        (None, 3, "save: expected a path, got 3"),
        (None, "", "save: the path is empty"),
        (None, "a\0b", "is not a file name"),
        (None, "/", "/: exists already"),
        (None, "/dev/null/x", "/dev/null/x: cannot be written: Not a directory"),
        (None, "/tmp/" + "x" * 5000, "characters, too many for a path"),
    ],
)
def test_what_cannot_be_saved(app, path, message):
    with pytest.raises(ws.InputError, match=message):
        ws.save(ws.App([ws.patterns.stream(blocks=1)]) if app is None else app, path)


def test_names_that_are_not_utf8(tmp_path):
    kernel = ws.patterns.stream(blocks=1)
    with pytest.raises(
        ws.InputError, match=r"name: 'app \\udcff' has characters that are not text"
    ):
        ws.App([kernel], "app \udcff")
    ws.save(kernel, tmp_path / "a\udcffb")
    again = ws.load(tmp_path / "a\udcffb")
    assert again.kernels[0].digest == kernel.digest
    with pytest.raises(ws.InputError, match=r"a\\xffb: exists already"):
        ws.save(kernel, tmp_path / "a\udcffb")


def test_choice_of_launches(tmp_path):
    kernels = [ws.patterns.strided(1, i, 1, launch_id=i) for i in (1, 2, 3)]
    ws.save(ws.App(kernels, "three"), tmp_path / "app")
    # Files of other launches are not needed, but for those that are theirs, too.
    (tmp_path / "app" / "kernel-1" / "warps.parquet").unlink()
    for choice in (2, [2], np.int64(2), range(2, 3)):
        assert [k.launch_id for k in ws.load(tmp_path / "app", kernels=choice)] == [2]
    for choice in (9, range(3, 10**30)):
        with pytest.raises(ws.InputError, match=r"three has no kernel \d; its kernels are 1, 2, 3"):
            ws.load(tmp_path / "app", kernels=choice)


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


@pytest.fixture
def saved_plainly(tmp_path):
    """Return a folder that older versions would have written but for the manifest."""
    path = tmp_path / "app"
    kernel = ws.patterns.stream(blocks=1)
    assert not kernel._core.has_passes
    ws.save(ws.App([kernel]), path)
    sectors = kernel._core.read_batch(0, 1)["sector"]
    rewrite(path / "kernel-1" / "sectors.parquet", lambda _: pa.table({"sector": sectors}))
    reseal(path, lambda manifest: manifest.update(version=6))
    return path


def rewrite(path, change):
    table = pq.read_table(path)
    pq.write_table(change(table), path)
    reseal(path.parents[1])


def reseal(saved, change=None):
    """Make the digests of a changed folder right, as only a forger would."""
    manifest = json.loads((saved / parquet.MANIFEST).read_text())
    if change is not None:
        change(manifest)
    for kernel in manifest["kernels"]:
        if isinstance(kernel, dict) and isinstance(kernel.get("files"), dict):
            folder = saved / "kernel-1"
            kernel["files"] = {file: file_digest(folder / file) for file in kernel["files"]}
    (saved / parquet.MANIFEST).write_text(sealed(manifest))


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
        rewrite(saved / "kernel-1" / f"{name}.parquet", lambda _: pa.table({"other": [1]}))
        self.refuse(saved, "damaged: .*: there is no column")

    def test_changed_addresses(self, saved):
        change = replace_column("step", lambda v: v + 1, pa.int64())
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
        change = replace_column("step", lambda v: v.astype(float), pa.float64())
        rewrite(saved / "kernel-1" / "sectors.parquet", change)
        self.refuse(saved, "step is double, not int64")

    def test_shorter_column(self, saved):
        rewrite(saved / "kernel-1" / "sectors.parquet", lambda t: t.slice(0, 5))
        self.refuse(saved, "the memory instructions announce other sectors than there are")

    def test_unknown_class(self, saved):
        change = replace_column("op_class", lambda v: ["magic"] * len(v), pa.string())
        rewrite(saved / "kernel-1" / "table.parquet", change)
        self.refuse(saved, 'unknown operation class "magic"')

    @pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"version": 1}', "[" * 100_000, "\xff"])
    def test_manifest(self, saved, text):
        (saved / parquet.MANIFEST).write_text(text, encoding="latin-1")
        self.refuse(saved, "not a list of kernels")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda m: m.update(format="other"), 'lacks "format": "warpstack-trace"'),
            (lambda m: m.pop("name"), "name is missing or is not a str"),
            (lambda m: m.update(kernels=3), "kernels is missing or is not a list"),
            (lambda m: m.update(kernels=[]), "the saved trace has no kernels"),
            (lambda m: m.update(kernels=[3]), r"kernels\[0\].folder is missing or is not a str"),
            (lambda m: m["kernels"][0].pop("folder"), "folder is missing or is not a str"),
            (
                lambda m: m["kernels"][0].update(folder="../app/kernel-1"),
                "is not the name of a folder",
            ),
            (lambda m: m["kernels"][0].update(folder=".."), "is not the name of a folder"),
            (lambda m: m["kernels"][0].update(folder=""), "is not the name of a folder"),
            (lambda m: m["kernels"][0].update(digest=3), "digest is missing or is not a str"),
            (lambda m: m["kernels"][0].update(header=[]), "header is missing or is not a dict"),
        ],
    )
    def test_manifest_entries(self, saved, change, message):
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        change(manifest)
        (saved / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved, message)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"launch_id": "1"}, r"kernels\[0\].header.launch_id = '1' is not a whole number"),
            ({"launch_id": True}, "launch_id = True is not a whole number"),
            ({"launch_id": -1}, "launch_id = -1 is outside"),
            ({"stream": 2**64}, "stream = 18446744073709551616 is outside"),
            ({"stream": 1.5}, "stream = 1.5 is not a whole number"),
            ({"stream": None}, "stream = None is not a whole number"),
            ({"grid": [1, 1]}, "grid has 2 numbers instead of 3"),
            ({"grid": 3}, "grid is missing or is not a list"),
            ({"grid": [1, 1, "1"]}, "grid = '1' is not a whole number"),
            ({"name": 3}, "name is missing or is not a str"),
            ({"source": None}, "source is missing or is not a str"),
        ],
    )
    def test_manifest_headers(self, saved, change, message):
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        manifest["kernels"][0]["header"].update(change)
        (saved / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved, message)

    def test_missing_column_and_empty_entries(self, saved):
        table = saved / "kernel-1" / "table.parquet"
        rewrite(table, lambda t: t.set_column(0, "pc", pa.array([None] * len(t), pa.uint32())))
        self.refuse(saved, "table.parquet: pc has empty entries")
        rewrite(table, lambda t: t.drop_columns(["pc"]))
        self.refuse(saved, "table.parquet: there is no column pc")

    def test_future_version(self, saved):
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        manifest["version"] = 12
        (saved / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved, "format version 12; this warpstack reads versions 1 to 11")

    def test_the_version_without_control_fields(self, saved_plainly):
        manifest = json.loads((saved_plainly / parquet.MANIFEST).read_text())
        manifest["version"] = 2
        del manifest["digest"]
        (saved_plainly / parquet.MANIFEST).write_text(sealed(manifest))
        (kernel,) = ws.load(saved_plainly)
        assert not kernel.has_control_fields

    def test_the_version_without_digests(self, saved_plainly):
        digest = ws.load(saved_plainly).digest
        manifest = json.loads((saved_plainly / parquet.MANIFEST).read_text())
        manifest["version"] = 1
        del manifest["digest"], manifest["kernels"][0]["files"]
        (saved_plainly / parquet.MANIFEST).write_text(json.dumps(manifest))
        assert ws.load(saved_plainly).digest == digest
        manifest["kernels"][0]["header"]["launch_id"] = 7
        (saved_plainly / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved_plainly, "its content has digest")

    def test_an_edited_manifest(self, saved):
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        manifest["name"] = "another"
        (saved / parquet.MANIFEST).write_text(json.dumps(manifest))
        self.refuse(saved, "not as it was written; restore it or convert")

    def test_an_edited_file(self, saved):
        file = saved / "kernel-1" / "table.parquet"
        pq.write_table(pq.read_table(file), file, compression="gzip")
        self.refuse(saved, "table.parquet has digest .*, the manifest says")

    def test_header(self, saved):
        reseal(saved, lambda m: m["kernels"][0]["header"].update(block=[4096, 1, 1]))
        self.refuse(saved, "block dim x = 4096")
