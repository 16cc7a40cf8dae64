"""Damaged files: an error, a warning or the same result, and never another result or a traceback.

``WARPSTACK_DAMAGES=5000 pytest tests/python/util/test_damage.py`` tries more than the default run. A failure
names the seed; ``WARPSTACK_DAMAGE_SEED`` sets it.
"""

import os
import random
import secrets
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from effort import rounds
from warpstack import _core
from warpstack._util.trace_budget import default_budget
from warpstack.exploration.store import SweepStore
from warpstack.figures import stages
from warpstack.figures.study import Study
from warpstack.traces import operations

TRIALS = int(os.environ.get("WARPSTACK_DAMAGES", rounds(120)))
SEED = int(os.environ.get("WARPSTACK_DAMAGE_SEED", secrets.randbits(32)))


def flip(path, others, rng):
    data = bytearray(path.read_bytes())
    if data:
        at = rng.randrange(8 * len(data))
        data[at // 8] ^= 1 << at % 8
        path.write_bytes(data)


def cut(path, others, rng):
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data) + 1)])


def append(path, others, rng):
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 100)))


def overwrite(path, others, rng):
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data) + 1)
    noise = rng.randbytes(rng.randrange(1, 100))
    data[at : at + len(noise)] = noise
    path.write_bytes(data)


def delete(path, others, rng):
    path.unlink()


def rename(path, others, rng):
    path.rename(path.with_name("x" + path.name))


def swap(path, others, rng):
    other = rng.choice(others)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


#: Most are flips.
DAMAGES = (*[flip] * 8, cut, append, overwrite, delete, rename, swap)


class Store:
    """Parts of a sweep store and its description."""

    sizes = (2, 3, 4, 1)

    def __init__(self):
        self.design = {"format": 2, "axes": ["num_sms"], "models": ["mdm"]}
        self.tables = {
            task: pd.DataFrame({"x": np.arange(size) / 7 + task, "name": [f"k{task}"] * size})
            for task, size in enumerate(self.sizes)
        }

    def write(self, folder):
        store = SweepStore(folder, self.design, resume=True)
        for task, table in self.tables.items():
            store.add(task, table)
            store.flush()
        store.close()

    def read(self, folder):
        store = SweepStore(folder, self.design, resume=True)
        try:
            found = store.read(self.sizes)
        finally:
            store.close()
        for task, table in found.items():
            pd.testing.assert_frame_equal(table, self.tables[task], check_exact=True)


class Cache:
    """Entries of the stage cache."""

    def __init__(self):
        self.arrays = {"words": np.arange(40, dtype=np.uint64), "sizes": np.array([[1, -2]])}

    def write(self, folder):
        cache = ws.exploration.StageCache(folder)
        for name in "ab":
            cache.put("memory", name, self.arrays)
            cache.put("warp", name, {"position": np.array([[ord(name), 1]])})

    def read(self, folder):
        cache = ws.exploration.StageCache(folder)
        for name in "ab":
            found = cache.get("memory", name)
            if found is not None:
                assert found.keys() == self.arrays.keys()
                assert all(np.array_equal(found[k], self.arrays[k]) for k in found)
            found = cache.get("warp", name)
            assert found is None or found["position"].tolist() == [[ord(name), 1]]


class FigureCache:
    """What figures keep of a workload."""

    def __init__(self):
        self.table = None

    def run(self, folder):
        study = Study(only=["hotspot"], cache=folder)
        study._apps["hotspot"] = ws.App([ws.patterns.stream(blocks=1)])
        return study.run(stages.divergence, [{}])

    def write(self, folder):
        self.table = self.run(folder)

    def read(self, folder):
        pd.testing.assert_frame_equal(self.run(folder), self.table, check_exact=True)


def app():
    kernels = (ws.patterns.gather(blocks=2), ws.patterns.stream(blocks=1))
    two = ws.App(kernels, "two")
    two._operations = operations.columns_of(
        [
            {"operation": "copy", "stream": 0, "direction": "HtoD", "bytes": 4096},
            {"operation": "kernel", "name": "gather", "stream": 0, "kernel": 0},
            {"operation": "kernel", "name": "stream", "stream": 0, "kernel": 1, "after": (1,)},
        ]
    )
    return two


def content(loaded):
    """All that a trace says of itself."""
    kernels = [
        (k.digest, k._core.header, k.instructions.to_csv(), k.unknown_opcodes) for k in loaded
    ]
    return loaded.name, kernels


def calls(loaded):
    """What the host does."""
    return loaded.operations.to_dict("records")


class Trace:
    """A trace folder."""

    def __init__(self):
        self.content = content(app()), calls(app())

    def write(self, folder):
        ws.save(app(), folder)

    def read(self, folder):
        loaded = ws.load(folder)
        assert (content(loaded), calls(loaded)) == self.content


class Export:
    """Files for Accel-Sim, which may be edited: a change is told."""

    def __init__(self):
        self.content = None

    def write(self, folder):
        ws.save(app(), folder, format="accelsim")
        self.content = content(ws.load(folder))

    def read(self, folder):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = content(ws.load(folder))
        if not any("not as warpstack wrote it" in str(w.message) for w in said):
            assert found == (folder.name, self.content[1])


class Native:
    """The file by which traces go from process to process."""

    def __init__(self):
        self.digest = app()[0].digest

    def write(self, folder):
        folder.mkdir()
        _core.write_trace_file(app()[0]._core, str(folder / "kernel-1.wstrace"))

    def read(self, folder):
        core = _core.read_trace_file(str(folder / "kernel-1.wstrace"), default_budget())
        assert core.digest == self.digest


KINDS = (Store, Cache, FigureCache, Trace, Export, Native)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.lower())
@pytest.mark.parametrize("seed", [1, SEED], ids=["fixed", "fresh"])
@pytest.mark.filterwarnings("ignore::warpstack.errors.DamageWarning")
def test_damage_is_found_or_makes_no_difference(tmp_path, kind, seed):
    rng = random.Random(seed)
    print(f"seed {seed}")
    case = kind()
    whole = tmp_path / "whole"
    case.write(whole)
    case.read(whole)
    refused, said = 0, ""
    trials = TRIALS // 2
    for trial in range(trials):
        folder = tmp_path / "damaged"
        shutil.copytree(whole, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        damage = rng.choice(DAMAGES)
        path = rng.choice(files)
        damage(path, files, rng)
        what = f"seed {seed}, trial {trial}: {damage.__name__} {path.relative_to(folder)}"
        try:
            case.read(folder)
        except ws.InputError as error:
            refused += 1
            said = str(error)
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
        assert "\n" not in said, what
        shutil.rmtree(folder)
    if kind in (Trace, Native):
        assert refused > trials / 2
