"""What L2 holds before the first launch: through every engine, by profiler, and on the command line."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from strategies import gpus, kernels
from warpstack._util.choices import INITIAL_L2
from warpstack._util.options import written_share
from warpstack.hardware.profiler import PROFILERS
from warpstack.timing import as_table

ENGINES = ["closed_network", "interval_simulation", "mdm"]
#: L2 has 256 lines; the kernel reads 128 and writes 128 more.
SMALL = {"l2_size_kib": 32, "l2_ways": 8, "l2_slices": 4, "l2_slice_interleave_bytes": 128}


@pytest.fixture(scope="module")
def gpu():
    return ws.gpu("pascal-mdm").replace(num_sms=2, dram_bandwidth_gbs=20, **SMALL)


@pytest.fixture(scope="module")
def copy():
    return ws.patterns.stream(1, blocks=16)


def moved(found):
    return found.totals["dram_write_sectors"]


def test_clean_is_empty_and_dirty_costs_write_backs(gpu, copy):
    """Each of the 256 lines takes a place, so that all strangers leave."""
    for engine in (ws.simulate_caches, ws.simulate):
        without = engine(copy, gpu).totals
        empty = without["dram_write_sectors"]
        assert moved(engine(copy, gpu, initial_l2="empty")) == empty
        assert moved(engine(copy, gpu, initial_l2="clean")) == empty
        for share, lines in (("dirty", 256), (1, 256), (0.5, 128), (0.25, 64)):
            found = engine(copy, gpu, initial_l2=share)
            assert moved(found) == empty + 4 * lines, (engine, share)
            for same in ("dram_read_sectors", "l2_dirty_sectors", "l2_write_sector_hits"):
                assert found.totals[same] == without[same]


@pytest.mark.slow
@settings(max_examples=rounds(60))
@given(kernels(), gpus(), st.floats(0, 1))
def test_strangers_are_never_found_and_only_written(kernel, gpu, share):
    """All counters but those of writes to DRAM are as they were, and no more leaves than there was."""
    empty = ws.simulate_caches(kernel, gpu)
    with_strangers = ws.simulate_caches(kernel, gpu, initial_l2=share)
    before, after = dict(empty.totals), dict(with_strangers.totals)
    strangers = after.pop("dram_write_sectors") - before.pop("dram_write_sectors")
    assert after == before
    per_line = gpu.l2_line_bytes // 32
    assert strangers % per_line == 0
    num_lines = gpu.l2_size_kib * 1024 / gpu.l2_line_bytes
    num_sets = num_lines / gpu.l2_ways
    assert 0 <= strangers / per_line <= min(num_lines, share * num_lines + num_sets)
    for name, column in empty._core.per_row.items():
        np.testing.assert_array_equal(with_strangers._core.per_row[name], column, err_msg=name)
    assert sum(with_strangers._core.slice_dram_sectors) == (
        with_strangers.totals["dram_read_sectors"] + with_strangers.totals["dram_write_sectors"]
    )


def test_models_and_simulator_wait_for_the_write_backs():
    """A stream of 16 MiB through the L2 of an A100, which holds all: bytes that DRAM moves decide."""
    kernel = ws.patterns.stream(1, blocks=8192)
    times = {}
    for initial in ("empty", 0.5, "dirty"):
        rows = ws.predict(kernel, "a100", ENGINES[:2], initial_l2=initial)
        rows = [*rows["cycles"], ws.simulate(kernel, "a100", initial_l2=initial).cycles]
        times[initial] = np.array(rows)
    assert (times["dirty"] > 1.9 * times["empty"]).all()
    assert (times[0.5] > 1.3 * times["empty"]).all()
    assert (times["dirty"] > 1.3 * times[0.5]).all()
    # The models follow the simulator.
    assert times["dirty"] == pytest.approx(times["dirty"][-1], rel=0.1)


class OwnLru:
    """LRU as a policy of one's own."""

    def __init__(self, sets, ways):
        self.order = [list(range(ways)) for _ in range(sets)]

    def hit(self, number, way):
        self.order[number].remove(way)
        self.order[number].append(way)

    def fill(self, number, way, address):
        self.hit(number, way)

    def victim(self, number):
        return self.order[number][0]


def test_own_policies_are_asked_once_strangers_are_gone(gpu):
    ws.memory.register_policy("lru_of_strangers", OwnLru)
    own = gpu.replace(l2_replacement="lru_of_strangers")
    kernel = ws.patterns.stream(1, blocks=64)
    for initial in ("empty", 0.3, "dirty"):
        built_in = ws.simulate_caches(kernel, gpu, initial_l2=initial).totals
        assert ws.simulate_caches(kernel, own, initial_l2=initial).totals == built_in


@pytest.mark.parametrize("flush_l2", [False, True])
@pytest.mark.parametrize("engine", [ws.simulate, ws.simulate_caches])
def test_launches_begin_with_strangers_after_each_flush(engine, flush_l2, gpu, copy):
    first, second = engine(
        ws.App([copy, copy]), gpu, initial_l2="dirty", flush_l2=flush_l2, workers=1
    )
    alone = engine(copy, gpu, initial_l2="dirty")
    assert moved(first) == moved(alone)
    kept = moved(engine(ws.App([copy, copy]), gpu, workers=1)[1])
    assert moved(second) == (moved(alone) if flush_l2 else kept)
    if engine is ws.simulate and flush_l2:
        at_once = engine(ws.App([copy, copy]), gpu, initial_l2="dirty", flush_l2=True, workers=2)
        assert [one.cycles for one in at_once] == [first.cycles, second.cycles]


@pytest.mark.parametrize("how", [{"sample_launches": True}, {"sample_sms": 0.5}, {}])
@pytest.mark.parametrize("flush_l2", [False, True])
def test_every_way_to_predict_reads_it(how, flush_l2, gpu, copy):
    """The first of two launches takes the places of all strangers, whatever is sampled."""
    app = ws.App([copy, copy])

    def cycles(initial):
        options = {"initial_l2": initial, "flush_l2": flush_l2, **how}
        table = ws.predict(app, gpu, "closed_network", **options)
        return table["cycles"].to_numpy()

    assert cycles("dirty")[0] > 1.2 * cycles("empty")[0]
    assert (cycles("dirty")[1] > 1.2 * cycles("empty")[1]) == flush_l2


@pytest.mark.parametrize("caches", ["exact", "recorded"])
def test_sweeps_and_their_stage_caches_tell_it_apart(caches, gpu, copy, tmp_path):
    axes = {"l2_size_kib": [32, 64]}
    store = ws.exploration.StageCache(tmp_path)

    def cycles(initial, cache):
        how = {"initial_l2": initial, "cache": cache, "caches": caches}
        return list(
            ws.sweep(copy, gpu, axes, ["closed_network", "interval_simulation"], **how).cycles
        )

    fresh = {initial: cycles(initial, False) for initial in ("empty", 0.5, "dirty")}
    assert len({tuple(one) for one in fresh.values()}) == 3
    for _ in range(2):
        assert {initial: cycles(initial, store) for initial in fresh} == fresh
    assert cycles("clean", store) == fresh["empty"]


def test_profilers_have_habits(gpu, copy):
    assert set(INITIAL_L2) == set(PROFILERS)
    habits = {profiler: ws.Options(profiler=profiler).written_share for profiler in PROFILERS}
    assert habits == {**dict.fromkeys(PROFILERS, 0.0), "do_bench": 1.0}
    assert ws.Options(profiler="do_bench", initial_l2="empty").written_share == 0
    assert written_share(0.3, "do_bench") == 0.3
    gpu = gpu.replace(launch_us_events=7.5)
    benched = ws.predict(copy, gpu, profiler="do_bench")
    dirty = ws.predict(copy, gpu, profiler="events", initial_l2="dirty")
    assert list(benched["time_us"]) == list(dirty["time_us"])
    assert list(benched["launch_us"]) == [7.5]
    assert benched["time_us"][0] > ws.predict(copy, gpu, profiler="events")["time_us"][0]
    simulated = as_table(ws.simulate(copy, gpu, profiler="do_bench"))
    assert list(simulated["time_us"]) == list(
        as_table(ws.simulate(copy, gpu, profiler="events", initial_l2="dirty"))["time_us"]
    )


@pytest.mark.parametrize("command", ["predict", "simulate", "caches", "lines"])
def test_the_command_line_has_it(command, copy, gpu, tmp_path, capsys):
    path = tmp_path / "app"
    ws.save(ws.App([copy]), path)
    (tmp_path / "small.yaml").write_text(gpu.to_yaml())

    def table(*words):
        arguments = [command, str(path), "--gpu", str(tmp_path / "small.yaml"), "--json", *words]
        assert ws.cli.main(arguments) == 0
        return json.loads(capsys.readouterr().out)

    dirty = table("--initial-l2", "dirty")
    assert dirty == table("-O", "initial_l2=1.0") != table("--initial-l2", "0.5")
    assert table() == table("--initial-l2", "empty") == table("-O", "initial_l2=clean") != dirty
    for wrong in ("full", "1.5"):
        with pytest.raises(SystemExit) if wrong == "full" else pytest.raises(AssertionError):
            table("--initial-l2", wrong)
        assert wrong in capsys.readouterr().err
