"""One way from traces to predictions: every function's options do what those of predict do."""

import pandas as pd
import pytest

import warpstack as ws
from warpstack._util.options import Options
from warpstack.models.pipeline import Pipeline, Recent
from warpstack.plot.sliders import Explorer

#: A model that reads every option; the default one takes all warps, not a representative one.
MODEL = "mdm"
CHANGES = [
    {"selection": "max"},
    {"misses": "representative"},
    {"merge_threshold": 150},
    {"access_order": "greedy"},
    {"flush_l2": True},
]


@pytest.fixture(scope="module")
def gpu():
    return ws.gpu("pascal-mdm").replace(num_sms=2, l1_size_kib=6, l2_size_kib=96)


@pytest.fixture(scope="module")
def app():
    """Two kernels that share data, with loops of different lengths whose lines fight for L1."""
    kernels = []
    for launch in (1, 2):
        k = ws.patterns.KernelBuilder("many", grid=8, block=256, launch_id=launch)
        warp = k.thread // 32
        for step in range(6):
            active = (warp % 4 != 0) | (step < 2)
            address = 0x100000 + 128 * (k.thread % 32) * (warp % 3) + 4096 * step + 512 * warp
            k.emit("LDG.E", dst=4, src=2, address=address, where=active)
            k.emit("FADD", dst=6, src=4, where=active)
            k.emit("LDG.E", dst=4, src=6, address=0x100000 + 128 * warp, where=active)
            k.emit("FADD", dst=2, src=4, where=active)
        kernels.append(k.build())
    return ws.App(kernels)


@pytest.fixture(scope="module")
def plain(app, gpu):
    return ws.predict(app, gpu, MODEL)


@pytest.fixture(scope="module", params=CHANGES, ids=lambda change: next(iter(change)))
def change(request):
    return request.param


@pytest.fixture(scope="module")
def expected(app, gpu, plain, change):
    """What predict says with the option, which is not what it says without."""
    found = ws.predict(app, gpu, MODEL, **change)
    assert (found["cycles"] != plain["cycles"]).any()
    return found


def test_sweep(app, gpu, change, expected):
    found = ws.sweep(app, gpu, [{}], MODEL, cache=False, **change)
    assert found["cycles"].tolist() == expected["cycles"].tolist()


def test_roofline(app, gpu, change, expected):
    found = ws.models.roofline(app, gpu, MODEL, **change)
    gips = (expected["ipc"] * gpu.clock_ghz).tolist()
    assert found.loc[found["level"] == "L1", "gips"].tolist() == gips
    for name, of in (("l2_read_sectors", "L2"), ("dram_read_sectors", "DRAM")):
        flush, order = change.get("flush_l2", False), change.get("access_order", "auto")
        totals = [
            m.totals for m in ws.simulate_caches(app, gpu, flush_l2=flush, access_order=order)
        ]
        writes = name.replace("read", "write")
        atomics = "l2_atomic_sectors" if of == "L2" else writes
        moved = [32 * (t[name] + t[writes] + (t[atomics] if of == "L2" else 0)) for t in totals]
        assert found.loc[found["level"] == of, "bytes"].tolist() == moved


def test_dvfs(app, gpu, change, expected):
    found = ws.models.dvfs(app, gpu, [0.7], MODEL, **change)
    nominal = found[found["clock_ghz"] == gpu.clock_ghz]
    assert nominal["cycles"].tolist() == expected["cycles"].tolist()
    slower = ws.predict(app, gpu.replace(clock_ghz=0.7), MODEL, **change)
    assert found.loc[found["clock_ghz"] == 0.7, "cycles"].tolist() == slower["cycles"].tolist()


def test_explorer(app, gpu, change, expected):
    found = Explorer(app, gpu, MODEL, **change).predict()
    assert found["cycles"].tolist() == [expected["cycles"].sum()]


def test_search(app, gpu, change, expected):
    found = ws.search(app, gpu, {"num_sms": [2]}, model=MODEL, cache=False, **change)
    assert found["cycles"].tolist() == [expected["cycles"].sum()]


def test_the_simulations_empty_l2_too(app, gpu):
    alone = [float(one.cycles) for one in ws.simulate(app, gpu, flush_l2=True)]
    assert alone != [float(one.cycles) for one in ws.simulate(app, gpu)]
    table = ws.models.dvfs(app, gpu, [], ["simulation"], flush_l2=True)
    assert table["cycles"].tolist() == alone
    roofs = ws.models.roofline(app, gpu, simulate=True, flush_l2=True)
    of_simulation = roofs[(roofs["model"] == "simulation") & (roofs["level"] == "L1")]
    gips = of_simulation["gips"] / gpu.clock_ghz
    assert (of_simulation["instructions"] / gips).tolist() == pytest.approx(alone)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"selection": "best"}, "selection = 'best' is not one of clustering, max, min"),
        ({"misses": "all"}, "misses = 'all' is not one of per_pc, representative"),
        (
            {"access_order": "any"},
            "access_order = 'any' is not one of auto, round_robin, greedy, timed",
        ),
        ({"merge_threshold": -1.0}, "merge_threshold = -1.0 is not a number of cycles"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        ws.predict,
        ws.models.roofline,
        lambda app, gpu, **o: ws.models.dvfs(app, gpu, [], **o),
        lambda app, gpu, **o: ws.search(app, gpu, {"num_sms": [2]}, **o),
        lambda app, gpu, **o: ws.sweep(app, gpu, [{}], **o),
        Explorer,
    ],
)
def test_wrong_options(app, gpu, call, option, message):
    with pytest.raises(ws.InputError, match=message):
        call(app, gpu, **option)


def test_sliders_know_what_greedy_order_reads(app, gpu):
    """The MSHRs bound how far a greedy warp runs ahead: the caches are simulated again."""
    explorer = Explorer(app, gpu, MODEL, access_order="greedy")
    assert not explorer.is_fast("l1_mshrs")
    found = explorer.predict(l1_mshrs=1)
    expected = ws.predict(app, gpu.replace(l1_mshrs=1), MODEL, access_order="greedy")
    assert found["cycles"].tolist() == [expected["cycles"].sum()]


def test_recent_keeps_what_was_used_last():
    memo = Recent(2)
    for number in (1, 2):
        memo.put("memory", {"number": number}, [number])
    assert memo.get("memory", {"number": 1}) == [1]
    memo.put("memory", {"number": 3}, [3])
    assert memo.get("memory", {"number": 2}) is None
    assert memo.get("memory", {"number": 1}) == [1]
    assert memo.get("interval", {"number": 1}) is None


def test_a_memo_changes_no_result(app, gpu, change, monkeypatch):
    """Neither the first time, when it is filled, nor when its results come back."""
    options = Options(**change)

    def tables(pipeline):
        profiles = pipeline.profiles(gpu)
        return [profile.intervals for profile in profiles]

    alone = tables(Pipeline(app, options))
    kept = Pipeline(app, options, memo=Recent(2))
    first = tables(kept)
    monkeypatch.setattr(ws.memory.MemorySystem, "run", None)
    for one, two, three in zip(alone, first, tables(kept), strict=True):
        pd.testing.assert_frame_equal(one, two)
        pd.testing.assert_frame_equal(one, three)
