"""Stage results on disk."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from strategies import gpus, kernels
from warpstack import _core
from warpstack.exploration import stage_cache
from warpstack.exploration.stage_cache import as_cache, default_folder


def arrays(size, seed=0):
    return {"words": np.random.default_rng(seed).integers(0, 2**63, size // 8, dtype=np.uint64)}


def test_entries_come_back(tmp_path):
    cache = ws.exploration.StageCache(tmp_path / "deep" / "folder")
    assert cache.get("memory", "a") is None
    kept = {"words": np.arange(5, dtype=np.uint64), "sizes": np.array([[1, -2]])}
    cache.put("memory", "a", kept)
    found = cache.get("memory", "a")
    assert set(found) == set(kept)
    for name, values in kept.items():
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values)
    assert cache.get("warp", "a") is None
    assert [(row["stage"], row["entries"]) for row in cache.summary()] == [("memory", 1)]
    assert cache.size_bytes == cache.summary()[0]["bytes"] > 0
    assert cache.clear() == 1
    assert cache.get("memory", "a") is None


def test_what_was_used_least_recently_goes(tmp_path):
    cache = ws.exploration.StageCache(tmp_path, limit_bytes=45_000)
    for number, name in enumerate("abcd"):
        cache.put("memory", name, arrays(10_000))
        # File times may be coarser than the test is quick.
        os.utime(tmp_path / f"memory-{name}.stage", (number, number))
    assert cache.get("memory", "a") is not None  # used just now
    cache.put("memory", "e", arrays(10_000))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["memory-a.stage", "memory-d.stage", "memory-e.stage"]
    assert cache.size_bytes <= 45_000


def test_entries_beyond_the_limit_are_not_kept(tmp_path):
    cache = ws.exploration.StageCache(tmp_path, limit_bytes=1000)
    cache.put("memory", "a", arrays(10_000))
    assert cache.get("memory", "a") is None
    assert list(tmp_path.iterdir()) == []


@given(st.integers(0, 2**32), st.binary(max_size=8), st.booleans())
def test_damaged_entries_are_none(tmp_path_factory, where, noise, cut):
    folder = tmp_path_factory.mktemp("cache")
    cache = ws.exploration.StageCache(folder)
    cache.put("memory", "a", arrays(400))
    (path,) = folder.iterdir()
    data = path.read_bytes()
    where %= len(data)
    damaged = data[:where] + noise + (b"" if cut else data[where + len(noise) :])
    path.write_bytes(damaged)
    found = cache.get("memory", "a")
    if damaged == data:
        assert found is not None
    else:
        assert found is None
        assert not path.exists()


def test_renamed_entries_are_none(tmp_path):
    """An entry under another's name has a right digest and a wrong result."""
    cache = ws.exploration.StageCache(tmp_path)
    cache.put("memory", "a", arrays(400))
    (path,) = tmp_path.iterdir()
    for name in ("memory-b.stage", "warp-a.stage"):
        (tmp_path / name).write_bytes(path.read_bytes())
    assert cache.get("memory", "b") is None
    assert cache.get("warp", "a") is None
    assert cache.get("memory", "a") is not None


@pytest.mark.slow
@given(st.binary(max_size=300), st.integers(0, 2**32))
def test_forged_entries_are_arrays_or_none(tmp_path_factory, noise, where):
    """Entries with a right digest whose content is not an archive, or a damaged one."""
    cache = ws.exploration.StageCache(tmp_path_factory.mktemp("cache"))
    cache.put("memory", "a", arrays(64))
    (path,) = cache.folder.iterdir()
    body = path.read_bytes()[stage_cache._DIGEST_BYTES :]
    where %= len(body)
    for forged in (noise, body[:where] + noise + body[where + len(noise) :], body[:where]):
        path.write_bytes(stage_cache._digest(path.name, forged) + forged)
        found = cache.get("memory", "a")
        assert found is None or all(isinstance(array, np.ndarray) for array in found.values())


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    cache = ws.exploration.StageCache(tmp_path / "file")
    cache.put("memory", "a", arrays(100))
    assert cache.get("memory", "a") is None
    assert cache.clear() == 0


WRITER = """
import sys
import numpy as np
import warpstack as ws

cache = ws.exploration.StageCache(sys.argv[1], limit_bytes=60_000)
rng = np.random.default_rng(int(sys.argv[2]))
for _ in range(300):
    number = int(rng.integers(0, 60))
    found = cache.get("memory", str(number))
    if found is None:
        cache.put("memory", str(number), {"words": np.full(1000, number)})
    else:
        assert found["words"].shape == (1000,) and (found["words"] == number).all()
"""


@pytest.mark.slow
def test_several_processes_share_a_cache(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(seed)])
        for seed in range(3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert not list(tmp_path.glob(".partial-*"))
    # 60 entries take 500,000 bytes; each process counts its own, so that all may write the limit.
    assert 0 < ws.exploration.StageCache(tmp_path).size_bytes <= 3 * (60_000 + 9000)


def test_stale_partial_files_go(tmp_path):
    cache = ws.exploration.StageCache(tmp_path)
    for name, age in ((".partial-old", 1e6), (".partial-new", 0)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (os.path.getmtime(tmp_path) - age,) * 2)
    cache.put("memory", "a", arrays(100))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".partial-new", "memory-a.stage"]


def test_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSTACK_CACHE", "off")
    assert as_cache(True) is None
    assert as_cache(tmp_path).folder == tmp_path  # asked for by name
    monkeypatch.setenv("WARPSTACK_CACHE", str(tmp_path))
    monkeypatch.setenv("WARPSTACK_CACHE_MIB", "2")
    assert as_cache(True).folder == tmp_path
    assert as_cache(True).limit_bytes == 2 * 2**20
    assert as_cache(False) is None
    monkeypatch.setenv("WARPSTACK_CACHE_MIB", "much")
    with pytest.raises(ws.InputError, match="WARPSTACK_CACHE_MIB = 'much'"):
        as_cache(True)
    monkeypatch.delenv("WARPSTACK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "warpstack"


def test_another_build_has_other_keys(monkeypatch):
    key = stage_cache.key_of(["a"], {"x": 1})
    assert key == stage_cache.key_of(["a"], {"x": 1})
    assert key != stage_cache.key_of(["b"], {"x": 1})
    assert key != stage_cache.key_of(["a"], {"x": 2})
    monkeypatch.setattr(stage_cache, "program", lambda: "another")
    assert key != stage_cache.key_of(["a"], {"x": 1})


def test_the_program_is_the_core_its_stages_and_numpy(tmp_path, monkeypatch):
    def digest():
        stage_cache.program.cache_clear()
        return stage_cache.program()

    before = digest()
    assert digest() == before
    monkeypatch.setattr(stage_cache.np, "__version__", "0.0")
    another_numpy = digest()
    for name in stage_cache._SOURCES:
        text = (Path(stage_cache.__file__).parents[1] / name).read_text()
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "# changed\n")
    monkeypatch.setattr(stage_cache, "__file__", str(tmp_path / "exploration" / "stage_cache.py"))
    assert len({before, another_numpy, digest()}) == 3
    monkeypatch.undo()
    assert digest() == before


def test_without_a_home_folder_there_is_no_cache(monkeypatch):
    monkeypatch.delenv("WARPSTACK_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user without an entry
    assert as_cache(True) is None
    with pytest.raises(ws.InputError, match=r"no home folder; set .* WARPSTACK_CACHE"):
        default_folder()


@pytest.mark.skipif(sys.platform != "linux", reason="each system has its own place for caches")
@pytest.mark.parametrize("base", [None, "", "relative"])
def test_the_cache_is_in_the_home_folder(monkeypatch, tmp_path, base):
    monkeypatch.delenv("WARPSTACK_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if base is not None:  # neither counts
        monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert default_folder() == tmp_path / ".cache" / "warpstack"


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WARPSTACK_CACHE", "~/stages")
    assert default_folder() == tmp_path / "stages"


@pytest.mark.parametrize("limit", [-1, float("nan"), "1"])
def test_limits_are_checked(tmp_path, limit):
    with pytest.raises(ws.InputError, match="limit_bytes"):
        ws.exploration.StageCache(tmp_path, limit_bytes=limit)


@settings(max_examples=rounds(30))
@given(kernels(), gpus(), st.booleans())
def test_memory_profiles_come_back_from_words(kernel, gpu, observing):
    warp = ws.interval.representative_warp(kernel) if observing else None
    core = ws.simulate_caches(kernel, gpu, observe=warp)._core
    again = _core.MemoryProfile.from_words(core.words)
    assert again.totals == core.totals
    assert again.occupancy == core.occupancy
    assert again.l1_size_bytes == core.l1_size_bytes
    assert again.simulated_blocks == core.simulated_blocks
    assert again.num_observed == core.num_observed
    assert again.slice_turns == core.slice_turns
    assert again.slice_crowding == core.slice_crowding
    assert again.slice_dram_sectors == core.slice_dram_sectors
    assert again.atomic_lanes == core.atomic_lanes
    assert again.place_wait_cycles == core.place_wait_cycles
    assert again.most_read_sectors == core.most_read_sectors
    for name, values in core.per_row.items():
        assert np.array_equal(again.per_row[name], values), name
    assert np.array_equal(again.words, core.words)


@settings(max_examples=rounds(30))
@given(kernels(max_instructions=3), gpus(), st.data())
def test_words_that_are_no_profile_are_refused(kernel, gpu, data):
    words = ws.simulate_caches(kernel, gpu)._core.words
    with pytest.raises(ws.InputError, match="truncated or malformed"):
        _core.MemoryProfile.from_words(words[: data.draw(st.integers(0, len(words) - 1))])
    for field in (0, 1):
        wrong = words.copy()
        wrong[field] = data.draw(st.integers(1, 2**64 - 1)) ^ wrong[field]
        with pytest.raises(ws.InputError, match="truncated or malformed"):
            _core.MemoryProfile.from_words(wrong)
    limit = words.copy()
    limit[31] = 5  # which resource bounds the occupancy: there are five
    with pytest.raises(ws.InputError, match="out of range"):
        _core.MemoryProfile.from_words(limit)
