"""Replacement policies written in Python: they give what the core's give, and errors name them."""

import json
import pickle
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from strategies import gpus, kernels
from warpstack import _core


class Lru:
    def __init__(self, sets, ways):
        self.order = [OrderedDict() for _ in range(sets)]

    def hit(self, set, way):
        self.order[set].move_to_end(way)

    def fill(self, set, way, address):
        self.order[set].pop(way, None)
        self.order[set][way] = None

    def victim(self, set):
        return next(iter(self.order[set]))


class Fifo(Lru):
    def hit(self, set, way):
        pass


class Mru:
    """Replaces the way that was used last; needs no state of its own for that but one number."""

    def __init__(self, sets, ways):
        self.last = np.zeros(sets, dtype=np.int64)

    def hit(self, set, way):
        self.last[set] = way

    def fill(self, set, way, address):
        self.last[set] = way

    def victim(self, set):
        return self.last[set]  # a whole number of NumPy


PYTHON = {"lru": Lru, "fifo": Fifo}


def both(gpu, l1, l2):
    core = gpu.replace(l1_replacement=l1, l2_replacement=l2)
    return core, gpu.replace(l1_replacement=PYTHON[l1], l2_replacement=PYTHON[l2])


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.parametrize("ways", [1, 2, 6, 20, 48])
def test_a_cache_equals_the_core(name, ways):
    """Each access of a random stream has the same hits, fetches and evictions."""
    rng = np.random.default_rng(ways)
    geometry = {"line_bytes": 128, "sector_bytes": 32, "write_policy": "write_back"}
    geometry |= {"write_miss": "fetch_on_write", "allocation": "on_miss", "set_index": "xor"}
    geometry |= {"slices": 2, "slice_interleave_bytes": 256, "slice_index": "modulo"}
    size = 128 * ways * 8
    own = ws.memory.register_policy(f"own_{name}", PYTHON[name])
    caches = [
        _core.Cache(size_bytes=size, ways=ways, replacement=policy, **geometry)
        for policy in (name, own)
    ]
    for _ in range(4000):
        line, mask = int(rng.integers(0, 12 * ways)), int(rng.integers(1, 16))
        if rng.random() < 0.3:
            what = [cache.write(line, mask, [2**32 - 1] * 8, 3) for cache in caches]
        elif rng.random() < 0.05:
            what = [cache.invalidate(line, mask) for cache in caches]
        else:
            what = [cache.read(line, mask) for cache in caches]
        assert what[0] == what[1]
    assert caches[0].dirty_sectors == caches[1].dirty_sectors


def test_evict_first_goes_before_the_policy():
    """The core's LRU and this one are the same, too, where lines are read to make room soon."""
    rng = np.random.default_rng(3)
    geometry = {"line_bytes": 128, "sector_bytes": 128, "write_policy": "write_back"}
    geometry |= {"write_miss": "fetch_on_write", "allocation": "on_miss", "set_index": "modulo"}
    geometry |= {"slices": 1, "slice_interleave_bytes": 128, "slice_index": "modulo"}
    own = ws.memory.register_policy("own_lru", Lru)
    caches = [
        _core.Cache(size_bytes=128 * 16, ways=4, replacement=policy, **geometry)
        for policy in ("lru", own)
    ]
    for _ in range(5000):
        line, first = int(rng.integers(0, 40)), bool(rng.random() < 0.3)
        assert len({cache.read(line, 15, first)[0] for cache in caches}) == 1


@settings(max_examples=rounds(40))
@given(
    kernels(max_blocks=4),
    gpus(),
    st.sampled_from(sorted(PYTHON)),
    st.sampled_from(("timed", "round_robin", "greedy")),
)
def test_kernels_equal_the_core(kernel, gpu, name, order):
    core, own = both(gpu, name, name)
    counts = [
        [p.totals for p in ws.simulate_caches(ws.App([kernel] * 2), one, access_order=order)]
        for one in (core, own)
    ]
    assert counts[0] == counts[1]


@pytest.fixture(scope="module")
def app():
    """Launches whose warps read and write lines at random, some of them often."""
    rng = np.random.default_rng(1)
    kernel = ws.patterns.KernelBuilder("random", grid=8, block=64)
    load = kernel.instruction("LDG.E", dst=2, src=3)
    store = kernel.instruction("STG.E", src=(2, 3))
    for _ in range(40):
        lines = rng.integers(0, rng.choice([12, 300]), (8, 2)).repeat(32, axis=1)
        kernel.issue(
            load if rng.random() < 0.7 else store, address=128 * lines + 4 * (kernel.thread % 32)
        )
    built = kernel.build()
    return ws.App([built, built])


@pytest.fixture(scope="module")
def gpu():
    return ws.gpu("pascal-mdm").replace(num_sms=2, l1_size_kib=6, l2_size_kib=24, l2_slices=1)


def test_predictions_equal_the_core(app, gpu):
    core, own = both(gpu, "fifo", "lru")
    columns = ["model", "kernel", "cycles", "ipc"]
    tables = [ws.predict(app, one, ["mdm", "closed_network"])[columns] for one in (core, own)]
    assert tables[0].equals(tables[1])


def test_sweeps_equal_the_core(app, gpu):
    sizes = [3, 6, 12]
    tables = [
        ws.sweep(app, gpu, {"l1_replacement": values, "l1_size_kib": sizes}, "mdm", workers=2)
        for values in (list(PYTHON), list(PYTHON.values()))
    ]
    assert tables[0]["cycles"].tolist() == tables[1]["cycles"].tolist()
    assert tables[0]["cycles"].nunique() > 1
    assert tables[1]["l1_replacement"].str.startswith(("Lru@", "Fifo@")).all()
    assert tables[1]["gpu_digest"].nunique() == 6


def test_results_do_not_depend_on_workers(app, gpu):
    own = gpu.replace(l1_replacement=Mru, l2_replacement=Mru)
    found = [
        [p.totals for p in ws.simulate_caches(app, own, workers=workers)]
        for workers in (1, 4, None)
    ]
    assert found[0] == found[1] == found[2]
    assert found[0] != [p.totals for p in ws.simulate_caches(app, gpu)]


class TestValue:
    def test_digest_is_of_name_and_source(self, gpu):
        values = [gpu.replace(l1_replacement=policy) for policy in (Lru, Fifo, Lru, "lru")]
        assert len({value.digest for value in values}) == 3
        assert values[0] == values[2]
        assert values[0].title.startswith("pascal-mdm with")
        assert "l1_replacement=Lru@" in values[0].title

    def test_versions_of_a_class_differ(self, gpu):
        def version(way):
            return type("Version", (Lru,), {"way": way, "victim": lambda self, set: self.way})

        one, two = (gpu.replace(l1_replacement=version(way)) for way in (0, 1))
        assert one.digest != two.digest
        assert ws.memory.register_policy("Version", version(0)) == one.l1_replacement

    def test_methods_that_are_set_later_count(self, gpu):
        class Changing(Lru):
            pass

        one = gpu.replace(l1_replacement=Changing)
        Changing.victim = lambda self, set: 0
        assert gpu.replace(l1_replacement=Changing).digest != one.digest

    def test_names(self, gpu):
        value = ws.memory.register_policy("mine", Mru)
        named = gpu.replace(l1_replacement="mine")
        assert named.l1_replacement == value
        assert gpu.replace(l1_replacement=value).digest == named.digest
        assert json.dumps(named.values())

    def test_pickles(self, gpu, app):
        own = gpu.replace(l1_replacement=Mru)
        again = pickle.loads(pickle.dumps(own))
        assert again == own
        assert again.digest == own.digest
        assert again.l1_replacement.policy is Mru
        assert ws.simulate_caches(app, again)[0].totals == ws.simulate_caches(app, own)[0].totals

    def test_pickles_into_another_process(self, gpu, tmp_path):
        (tmp_path / "own_module.py").write_text(
            "class Last:\n"
            "    def __init__(self, sets, ways): self.ways = ways\n"
            "    def hit(self, set, way): pass\n"
            "    def fill(self, set, way, address): pass\n"
            "    def victim(self, set): return self.ways - 1\n"
        )
        script = "import own_module, pickle, sys, warpstack as ws\n"
        script += "g = ws.gpu('pascal-mdm').replace(l1_replacement=own_module.Last)\n"
        script += "sys.stdout.buffer.write(pickle.dumps(g))\n"
        read = "import pickle, sys\ng = pickle.load(sys.stdin.buffer)\nprint(g.digest, g.l1_replacement)"

        def python(text, data=b""):
            return subprocess.run(
                [sys.executable, "-c", text],
                input=data,
                capture_output=True,
                cwd=tmp_path,
                check=True,
            ).stdout

        digest, value = python(read, python(script)).decode().split()
        assert value.startswith("Last@")
        assert len(digest) == 16

    def test_a_local_class_does_not_pickle(self, gpu):
        class Local(Lru):
            pass

        with pytest.raises((pickle.PicklingError, AttributeError), match="Local"):
            pickle.dumps(gpu.replace(l1_replacement=Local))


def made(**methods):
    return type("Bad", (Lru,), methods)


def raising(self, set, way):
    raise KeyError("lost")


class TestErrors:
    @pytest.mark.parametrize(
        ("methods", "said"),
        [
            (
                {"victim": lambda self, set: 99},
                r"Bad: victim\(\d+\) returned 99; a way is a whole number from 0 to \d",
            ),
            ({"victim": lambda self, set: -1}, r"victim\(\d+\) returned -1; "),
            ({"victim": lambda self, set: None}, r"victim\(\d+\) returned None; "),
            ({"victim": lambda self, set: 0.0}, r"victim\(\d+\) returned 0.0; "),
            ({"victim": lambda self, set: True}, r"victim\(\d+\) returned True; "),
            (
                {"victim": lambda self, set: 2**80},
                r"victim\(\d+\) returned 1208925819614629174706176; ",
            ),
            ({"hit": raising}, r"Bad: hit\(\d+, \d+\) raised KeyError: 'lost'"),
            (
                {"fill": lambda self, set, way, address: 1 / 0},
                r"fill\(\d+, \d+, \d+\) raised ZeroDivisionError",
            ),
            (
                {"__init__": lambda self, sets, ways: [][0]},
                r"__init__\(\d+, \d+\) raised IndexError",
            ),
        ],
    )
    @pytest.mark.parametrize("level", ["l1", "l2"])
    def test_what_a_class_does_wrong(self, app, gpu, level, methods, said):
        small = gpu.replace(l1_size_kib=3, l2_size_kib=12)
        own = small.replace(**{f"{level}_replacement": made(**methods)})
        with pytest.raises(ws.InputError, match=said):
            ws.simulate_caches(app, own)

    @pytest.mark.parametrize(
        ("policy", "said"),
        [
            (
                made(hit=lambda self, set: None),
                r"class Bad: hit\(self, set\) takes other arguments; write def hit\(self, set, way\)",
            ),
            (made(victim=lambda self, set, way: 0), r"write def victim\(self, set\)"),
            (
                made(fill=None),
                r"class Bad has no method fill; write def fill\(self, set, way, address\)",
            ),
            (made(__init__=lambda self: None), r"write __init__\(self, sets, ways\)"),
            (int, "class int has no method hit"),
            (Lru(1, 1), "is an object of Lru; give the class"),
            ("nothing", "l1_replacement = .?nothing.*lru, fifo, plru"),
            (3, "l1_replacement = 3"),
        ],
    )
    def test_what_is_no_policy(self, gpu, policy, said):
        with pytest.raises(ws.InputError, match=said):
            gpu.replace(l1_replacement=policy)

    @pytest.mark.parametrize(
        ("name", "policy", "said"),
        [
            ("lru", Lru, "lru: warpstack has one of that name"),
            ("a b", Lru, "'a b' is not one word"),
            ("x", 3, "policy x: 3 is not a class"),
        ],
    )
    def test_names(self, name, policy, said):
        with pytest.raises(ws.InputError, match=said):
            ws.memory.register_policy(name, policy)

    def test_the_simulator_has_none(self, app, gpu):
        with pytest.raises(ws.InputError, match="simulator has no replacement policy Lru@"):
            ws.simulate(app.kernels[0], gpu.replace(l2_replacement=Lru))

    def test_an_interrupt_stays_one(self, app, gpu):
        def stop(self, set, way, address):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ws.simulate_caches(app, gpu.replace(l1_replacement=made(fill=stop)))
