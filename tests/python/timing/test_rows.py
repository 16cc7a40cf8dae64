"""Issue slots by instruction: against the plain definition, and sums; timelines of bounded length."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from timed_gpus import timed_gpus

import warpstack as ws
from configurations import simulator_config
from effort import rounds
from machines import plain_pascal
from python_reference.timing_rows import NOBODY, RowMachine
from strategies import controlled_kernels, kernels
from warpstack.timing.simulation import MOST_SAMPLES

PARTS = ws._core.STACK_COMPONENTS


def assert_rows_equal(kernel, gpu):
    result = ws.simulate(kernel, gpu, per_instruction=True)
    machine = RowMachine(simulator_config(gpu))
    machine.run(kernel)
    for name in ("at", "because_of"):
        expected, found = machine.rows(name), result._core.row_slots[name]
        for part in PARTS:
            # Parts of a slot that rounding leaves may go to another row that waits for the same load.
            plain = [expected.get((row, part), 0) for row in [*range(len(found[part]) - 1), NOBODY]]
            np.testing.assert_allclose(found[part], plain, rtol=1e-9, atol=1e-4)
            # Rows sum to the launch, exactly.
            assert sum(found[part]) == result._core.slots[part]
    assert ws.simulate(kernel, gpu)._core.slots == result._core.slots


@pytest.mark.slow
@settings(max_examples=rounds(60, costly=True))
@given(kernels(), timed_gpus())
def test_equals_plain_definition(kernel, gpu):
    assert_rows_equal(kernel, gpu)


@pytest.mark.slow
@settings(max_examples=rounds(40, costly=True))
@given(controlled_kernels(), timed_gpus())
def test_equals_plain_definition_with_control_fields(kernel, gpu):
    assert_rows_equal(kernel, gpu)


def test_a_warp_waits_at_the_use_for_the_load():
    kernel = ws.patterns.strided(gs=32, iterations=1, blocks=1)
    result = ws.simulate(kernel, plain_pascal(), per_instruction=True)
    table = result.per_pc
    assert table.filter(like="cpi_").sum().sum() == pytest.approx(result.cpi, rel=1e-12)
    assert table.filter(like="for_").sum().sum() == pytest.approx(result.cpi, rel=1e-12)
    load = int(np.flatnonzero(kernel.instructions["kind"] == "load")[0])
    # Nothing is lost at the load, whose warps have all that they need; all of DRAM's time is its.
    assert table.loc[load, "cpi_dram"] == 0
    assert table["for_dram"].idxmax() == load
    assert table["for_dram"].sum() == pytest.approx(table["cpi_dram"].sum())
    assert table["cpi_dram"].idxmax() > load


def test_without_counting_there_is_no_table():
    result = ws.simulate(ws.patterns.strided(gs=1, iterations=1, blocks=1), plain_pascal())
    with pytest.raises(ws.InputError, match="simulate with per_instruction=True"):
        _ = result.per_pc


@pytest.fixture(scope="module")
def result():
    kernel = ws.patterns.strided(gs=32, iterations=20, blocks=112)
    return ws.simulate(kernel, "pascal-mdm", timeline=True)


class TestTimeline:
    def test_is_bounded_and_even(self, result):
        table = result.timeline
        cycles = table["cycle"].to_numpy()
        step = cycles[1]
        assert (np.diff(cycles) == step).all()
        assert step % 16 == 0
        assert (step // 16) & (step // 16 - 1) == 0
        assert len(table) <= MOST_SAMPLES
        # Fewer than half only where the kernel is shorter than that many samples of 16 cycles.
        assert len(table) >= min(MOST_SAMPLES // 2, result.cycles // 16)

    def test_equals_samples_at_its_distance(self, result):
        step = int(result.timeline["cycle"][1])
        again = ws.simulate(result.kernel, result.gpu, timeline_cycles=step).timeline
        assert result.timeline.equals(again)

    def test_parts_of_a_longer_period(self):
        """Samples that are thinned out are those of a longer period."""
        kernel = ws.patterns.strided(gs=32, iterations=4, blocks=28)
        simulator = ws._core.Simulator(ws.gpu("pascal-mdm")._core)
        thinned = simulator.run(kernel._core, 1, 0, None, False, 7).samples
        assert 3 <= len(thinned["cycle"]) <= 7
        simulator.flush_l2()
        period = int(thinned["cycle"][1])
        whole = simulator.run(kernel._core, period).samples
        for name, values in whole.items():
            assert list(values) == list(thinned[name]), name

    def test_warps_of_schedulers(self, result):
        columns = result.timeline.filter(like="scheduler_warps_")
        assert len(columns.columns) == result.gpu.num_schedulers
        # 112 blocks on 28 SMs: four of them on each, all at once.
        assert columns.sum(axis=1).max() == 4 * result.kernel.warps_per_block

    def test_slots_grow_to_those_of_the_kernel(self, result):
        slots = result.timeline.filter(like="slots_")
        assert (slots.diff().dropna() >= 0).all().all()
        assert slots.iloc[-1].sum() <= sum(result._core.slots.values())

    @pytest.mark.parametrize("name", ["timeline.json", "timeline.json.gz"])
    def test_trace_event_format(self, result, tmp_path, name):
        path = tmp_path / name
        result.to_perfetto(path)
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
        assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
        kinds = set()
        for event in document["traceEvents"]:
            kinds.add(event["ph"])
            assert isinstance(event["pid"], int)
            assert isinstance(event["name"], str)
            if event["ph"] == "C":  # numbers by series
                assert event["ts"] >= 0
                assert all(isinstance(v, (int, float)) for v in event["args"].values())
            if event["ph"] == "X":
                micro = result.cycles / result.gpu.clock_ghz / 1000
                assert event["dur"] == pytest.approx(micro)
        assert kinds == {"M", "X", "C"}

    def test_errors(self, result, tmp_path):
        with pytest.raises(ws.InputError, match="cannot be written"):
            result.to_perfetto(tmp_path / "nowhere" / "t.json")
        bare = ws.simulate(result.kernel, result.gpu)
        with pytest.raises(ws.InputError, match="timeline=True"):
            bare.to_perfetto(tmp_path / "t.json")
