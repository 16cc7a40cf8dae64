"""Files that appear complete or not at all, and what killed processes leave behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import warpstack as ws
from warpstack._util import files
from warpstack._util.files import new_folder, remove_leftovers, temporary_folder, write_file
from warpstack.exploration import stage_cache
from warpstack.exploration.store import SweepStore


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_digests_are_halves_of_sha256(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223"  # FIPS 180-2, appendix B.1
    assert files.digest_of(b"abc") == files.file_digest(tmp_path / "a") == known


def test_sealed_objects():
    text = files.sealed({"a": [1, {"b": None}], "c": "ü"})
    assert files.is_sound(json.loads(text))
    assert files.is_sound(json.loads(text.replace("\n", "")))  # not the form, the content
    for old, new in (("1", "2"), ('"a"', '"d"'), ("null", "true"), ('"digest"', '"dihest"')):
        assert not files.is_sound(json.loads(text.replace(old, new)))


def test_files_are_replaced_whole_or_not(tmp_path):
    path = tmp_path / "a.csv"
    write_file(path, b"old")

    def fail(partial):
        assert partial.suffix == ".csv"  # who writes may go by it
        partial.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_file(path, fail)
    assert names(tmp_path) == ["a.csv"]
    assert path.read_bytes() == b"old"
    write_file(path, lambda partial: partial.write_bytes(b"new"))
    assert path.read_bytes() == b"new"


#: A writer of each kind, each at work in a folder of its own and never done.
WRITERS = """
import sys, tempfile, threading, time
from pathlib import Path
import warpstack as ws
from warpstack.exploration import stage_cache
from warpstack.exploration import store as sweep_store
from warpstack._util.files import temporary_folder, write_file
from warpstack.traces.io import accelsim, parquet

def wait(path):
    path.write_bytes(b"half")
    sys.stdout.write("writing\\n")  # in one piece, unlike print
    sys.stdout.flush()
    time.sleep(600)

def file(folder):
    write_file(folder / "table.csv", wait)

def convert(folder):
    parquet._write_kernel = lambda kernel, place, _: wait(place.parent / "part")
    ws.save(kernel, folder / "app")

def export(folder):
    accelsim._write_kernel = lambda kernel, path, *rest: wait(path)
    ws.save(kernel, folder / "app", format="accelsim")

def store(folder):
    sweep_store.write_file = lambda path, content: write_file(path, wait)
    ws.sweep(kernel, "pascal-mdm", {"num_sms": [28]}, store=folder)

def cache(folder):
    stage_cache.write_file = lambda path, content: write_file(path, wait)
    ws.exploration.StageCache(folder).put("memory", "a", {})

def temporary(folder):
    tempfile.tempdir = str(folder)
    with temporary_folder() as new:
        wait(new / "kernel")

kernel = ws.patterns.stream(blocks=1)
for name in sys.argv[2:]:
    folder = Path(sys.argv[1]) / name
    folder.mkdir()
    threading.Thread(target=globals()[name], args=[folder]).start()
"""


def later_cache(folder):
    assert ws.exploration.StageCache(folder).size_bytes == 0


def later_store(folder):
    SweepStore(folder, {}, resume=True).close()
    (folder / "_design.json").unlink()


def later_temporary(folder):
    before = files.tempfile.tempdir
    files.tempfile.tempdir = str(folder)
    with temporary_folder():
        pass
    files.tempfile.tempdir = before


def later_save(folder):
    ws.save(ws.patterns.stream(blocks=1), folder / "app2")
    shutil.rmtree(folder / "app2")


#: What a later run of each kind does.
LATER = {
    "file": remove_leftovers,
    "convert": later_save,
    "export": later_save,
    "store": later_store,
    "cache": later_cache,
    "temporary": later_temporary,
}


@pytest.mark.slow
def test_later_runs_remove_what_killed_ones_left(tmp_path):
    """Kill writers of each kind with SIGKILL while they write; nothing goes before."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITERS, str(tmp_path), *LATER], stdout=subprocess.PIPE
    )
    # A store takes no other files, for which later runs would refuse it.
    kept = {
        kind: {".partial-mine", *(["warpstack-notes"] if kind != "store" else [])} for kind in LATER
    }
    try:
        assert [process.stdout.readline() for _ in LATER] == [b"writing\n"] * len(LATER)
        there = {}
        for kind in LATER:
            for name in kept[kind]:
                (tmp_path / kind / name).write_text("")
            there[kind] = names(tmp_path / kind)
            assert len(set(there[kind]) - kept[kind] - {"_lock"}) == 1
        for signal_ in (signal.SIGCONT, signal.SIGSTOP):  # it lives when it is stopped, too
            process.send_signal(signal_)
            for kind in LATER:
                remove_leftovers(tmp_path / kind)
                assert names(tmp_path / kind) == there[kind]
        os.kill(process.pid, signal.SIGKILL)
        # Before its parent has asked for its status, which may take long.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for kind, later in LATER.items():
            later(tmp_path / kind)
            assert set(names(tmp_path / kind)) - {"_lock"} == kept[kind], kind
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.slow
def test_a_folder_that_was_being_replaced_goes_back(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
import warpstack as ws
rename = Path.rename
def die(self, target):
    if self.name == "new":
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
Path.rename = die
ws.save(ws.patterns.stream(blocks=2), sys.argv[1], overwrite=True)
"""
    old = ws.patterns.stream(blocks=1)
    ws.save(old, tmp_path / "app")
    process = subprocess.run([sys.executable, "-c", code, str(tmp_path / "app")], check=False)
    assert process.returncode == -signal.SIGKILL
    assert "app" not in names(tmp_path)
    ws.save(old, tmp_path / "other")
    assert names(tmp_path) == ["app", "other"]
    assert ws.load(tmp_path / "app").kernels[0].digest == old.digest


def test_other_hosts_are_judged_by_age(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(files, "_host", lambda: "0" * 12)
        (tmp_path / f".partial-{files._writer()}").mkdir()
        (tmp_path / f".partial-{files._writer()}.csv").write_text("")
    new, old = (tmp_path / name for name in names(tmp_path))
    if not new.is_dir():
        new, old = old, new
    (new / "part").write_text("")
    past = time.time() - 2 * files._STALE_SECONDS
    for path in (new, old):
        os.utime(path, (past, past))
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [new.name]  # a file in it is new
    os.utime(new / "part", (past, past))
    os.utime(new, (past, past))
    remove_leftovers(tmp_path)
    assert names(tmp_path) == []


def test_a_number_of_a_process_that_came_later(tmp_path, monkeypatch):
    start = files._start(os.getpid())
    if not start:
        pytest.skip("the platform does not say when a process started")
    monkeypatch.setattr(files, "_start", lambda pid: start - 1)
    earlier = tmp_path / f".partial-{files._writer()}"
    monkeypatch.undo()
    mine = tmp_path / f".partial-{files._writer()}"
    for path in (earlier, mine):
        path.write_text("")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [mine.name]


def test_temporary_folders(tmp_path, monkeypatch):
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path))
    with temporary_folder() as one, temporary_folder() as two:
        assert one != two
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "kernel").write_text("")
    assert names(tmp_path) == []


def test_new_folders_leave_no_trace_of_an_error(tmp_path):
    with (
        pytest.raises(ws.InputError, match="Is a directory"),
        new_folder(tmp_path / "a", overwrite=False, files_of=lambda _: None) as new,
    ):
        new.write_text("")
    assert names(tmp_path) == []


def test_the_cache_does_not_count_what_is_being_written(tmp_path):
    cache = ws.exploration.StageCache(tmp_path)
    cache.put("memory", "a", {})
    size = cache.size_bytes
    (tmp_path / f".partial-{files._writer()}{stage_cache._ENDING}").write_text("half")
    assert cache.size_bytes == size


class TestLooksAtAPlace:
    """A reader that looks twice at a place may see two folders, and none between them."""

    def looks(self, place, answers):
        asked = iter(answers)
        found = files.found_at(place, lambda: next(asked))
        return found, len(list(asked))

    def test_looks_again_where_something_has_just_changed(self, tmp_path):
        (tmp_path / "app").mkdir()
        assert self.looks(tmp_path / "app", [None, None, "a trace", "unread"]) == ("a trace", 1)

    def test_looks_once_where_nothing_has(self, tmp_path):
        (tmp_path / "app").mkdir()
        os.utime(tmp_path, (1, 1))
        assert self.looks(tmp_path / "app", [None, "unread"]) == (None, 1)

    def test_looks_once_at_a_file(self, tmp_path):
        (tmp_path / "app").write_text("no trace")
        assert self.looks(tmp_path / "app", [None, "unread"]) == (None, 1)

    def test_gives_up(self, tmp_path):
        assert files.found_at(tmp_path / "app", lambda: None) is None
