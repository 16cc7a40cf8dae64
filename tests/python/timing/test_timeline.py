"""Timelines of simulations, as tables, files and pictures, against counts by hand."""

import gzip
import itertools
import json
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from strategies import kernels
from warpstack.cli import main

PARTS = ws._core.STACK_COMPONENTS


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tiny():
    """One block of 8 warps, each of which loads 4 lines of its own once; four schedulers."""
    kernel = ws.patterns.strided(gs=4, iterations=1, blocks=1)
    return ws.simulate(kernel, "titan-v", timeline=True)


def events_of(result, folder, name="timeline.json"):
    path = folder / name
    result.to_perfetto(path)
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def tracks(document):
    """Return the counters as (time, values) by process and name, in the order of the file."""
    found = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "C":
            found[event["pid"], event["name"]].append((event["ts"], event["args"]))
    return found


class TestByHand:
    def test_warps_of_schedulers(self, tiny):
        # 8 warps in turn to 4 schedulers.
        warps = tiny.timeline.filter(like="scheduler_warps_")
        assert warps.max().tolist() == [2, 2, 2, 2]
        assert tiny.timeline["resident_warps"].max() == 8
        assert (warps.sum(axis=1) == tiny.timeline["resident_warps"]).all()

    def test_mshrs_in_use(self, tiny):
        # 8 warps x 4 lines, none shared, fewer than there are MSHRs: all under way at one time.
        used = tiny.timeline["l1_mshrs"]
        assert tiny.misses == 32
        assert used.max() == 32
        assert used.iloc[0] == 0
        assert tiny.timeline["slots_mshr"].max() == 0
        # They rise once and fall once, for each warp has one load.
        changes = np.sign(np.diff(used.to_numpy()))
        assert (np.diff(changes[changes != 0]) <= 0).all()

    def test_mshrs_in_use_over_time_are_the_latency_of_the_misses(self, tiny):
        """Little's law: occupancy summed over time is the time from MSHR to data, summed over misses."""
        step = int(tiny.timeline["cycle"][1])
        latency = tiny.miss_latency["cycles"]
        held = latency.sum() - latency["l1"] - latency["mshr"]  # before the MSHR
        # A sample stands for its step, an error of at most half a step at both ends of a miss.
        assert step * tiny.timeline["l1_mshrs"].sum() == pytest.approx(held, abs=step * tiny.misses)
        assert held > 100 * tiny.misses

    def test_full_mshrs(self):
        # 8 warps x 32 lines are 256 for 128 MSHRs: all are in use until no miss waits.
        kernel = ws.patterns.strided(gs=32, iterations=1, blocks=1)
        result = ws.simulate(kernel, "pascal-mdm", timeline=True)
        assert result.misses == 256
        assert result.timeline["l1_mshrs"].max() == 128 == result.gpu.l1_mshrs
        assert result.timeline["slots_mshr"].max() > 0

    def test_a_stall_is_where_the_warps_wait(self, tiny):
        """All warps wait for DRAM together: these slots are lost between issue and the last data."""
        table = tiny.timeline
        lost = np.diff(table["slots_dram"])
        under_way = table["l1_mshrs"].to_numpy() > 0
        first, last = np.flatnonzero(under_way)[[0, -1]]
        where = np.flatnonzero(lost)
        assert first - 1 <= where[0]
        assert where[-1] <= last + 2
        # The one SM has four schedulers, each with a slot per cycle.
        slots = table.filter(like="slots_").sum(axis=1).to_numpy()
        assert (slots <= 4 * table["cycle"] + 1e-6).all()
        assert sum(tiny._core.slots.values()) == pytest.approx(4 * tiny.cycles)


def check_document(document, result):
    """What ui.perfetto.dev needs of the JSON form of the Trace Event Format, and the sums."""
    processes = {
        e["pid"]
        for e in document["traceEvents"]
        if e["ph"] == "M" and e["name"] == "process_name" and isinstance(e["args"]["name"], str)
    }
    for event in document["traceEvents"]:
        assert event["ph"] in "MXC"
        assert isinstance(event["name"], str)
        assert event["pid"] in processes
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert isinstance(event["tid"], int)
        if event["ph"] == "C":
            assert event["args"]
            for value in event["args"].values():
                assert isinstance(value, (int, float))
                assert np.isfinite(value)
                assert value >= 0
    found = tracks(document)
    for name, samples in found.items():
        times = [time for time, _ in samples]
        assert times == sorted(times), name
        assert len(set(times)) == len(times), name
        assert len({tuple(values) for _, values in samples}) == 1, name
        assert not any(samples[-1][1].values()), name
    # A rate holds until the next sample: its sum over time is what the simulator counted.
    per_cycle = found[1, "issue slots per cycle"]
    micro = 1e-3 / result.gpu.clock_ghz
    for part in PARTS:
        slots = sum(
            values[part] * (after - time) / micro
            for (time, values), (after, _) in itertools.pairwise(per_cycle)
        )
        assert slots == pytest.approx(result._core.slots[part], rel=1e-3, abs=0.01), part
    ipc = found[1, "warp instructions per cycle"]
    issued = sum(
        values["ipc"] * (after - time) / micro
        for (time, values), (after, _) in itertools.pairwise(ipc)
    )
    assert issued == pytest.approx(result.instructions, rel=1e-3, abs=0.01)


class TestFile:
    @pytest.mark.parametrize("name", ["timeline.json", "timeline.json.gz"])
    def test_a_viewer_can_read_it(self, tiny, tmp_path, name):
        check_document(events_of(tiny, tmp_path, name), tiny)

    @settings(max_examples=rounds(20), deadline=None)
    @given(kernel=kernels(), period=st.sampled_from((1, 16, 64, 10_000)))
    def test_of_any_kernel(self, tmp_path_factory, kernel, period):
        result = ws.simulate(kernel, "pascal-mdm", timeline_cycles=period)
        check_document(events_of(result, tmp_path_factory.mktemp("t")), result)

    def test_tracks_are_the_table(self, tiny, tmp_path):
        found = tracks(events_of(tiny, tmp_path))
        table = tiny.timeline
        used = [values["L1"] for _, values in found[1, "MSHRs in use"]]
        assert used == [*table["l1_mshrs"], 0]
        for number in range(4):
            warps = [values["resident"] for _, values in found[2, f"warps of scheduler {number}"]]
            assert warps == [*table[f"scheduler_warps_{number}"], 0]

    def test_the_command_writes_the_same(self, tiny, tmp_path):
        ws.save(tiny.kernel, tmp_path / "saved")
        path = tmp_path / "by-command.json"
        arguments = ["simulate", str(tmp_path / "saved"), "--gpu", "titan-v", "--timeline"]
        assert main([*arguments, str(path)]) == 0
        ours, theirs = json.loads(path.read_text()), events_of(tiny, tmp_path)
        assert ours["traceEvents"] == theirs["traceEvents"]

    def test_the_command_wants_one_kernel(self, tmp_path, capsys):
        app = ws.App([ws.patterns.strided(1, blocks=1, launch_id=number) for number in (1, 2)])
        ws.save(app, tmp_path / "saved")
        path = tmp_path / "t.json"
        arguments = ["simulate", str(tmp_path / "saved"), "--gpu", "titan-v"]
        assert main([*arguments, "--timeline", str(path)]) != 0
        assert "choose one with --kernel" in capsys.readouterr().err
        assert not path.exists()


class TestPicture:
    def test_areas_are_the_slots(self, tiny):
        """The area of each colour, over the whole picture, is the part's share of the time."""
        ax = ws.plot.timeline(tiny.timeline)
        table = tiny.timeline
        lost = np.diff(table.filter(like="slots_").to_numpy(), axis=0)
        shares = lost / np.maximum(lost.sum(axis=1, keepdims=True), 1e-300)
        areas = []
        for band in ax.collections:
            (polygon,) = (path.vertices for path in band.get_paths())
            x, y = polygon[:, 0], polygon[:, 1]
            areas.append(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)
        expected = shares.sum(axis=0) * np.diff(table["cycle"])[0]
        np.testing.assert_allclose(areas, expected, rtol=1e-7, atol=1e-9)
        assert ax.get_xlabel() == "cycle"
        assert ax.get_ylabel() == "share of issue slots"

    def test_long_timelines_are_thinned(self):
        kernel = ws.patterns.strided(gs=32, iterations=20, blocks=28)
        table = ws.simulate(kernel, "pascal-mdm", timeline_cycles=16).timeline
        assert len(table) > 400
        ax = ws.plot.timeline(table)
        assert len(ax.collections[0].get_paths()[0].vertices) < 900

    def test_what_cannot_be_drawn(self, tiny):
        with pytest.raises(ws.InputError, match="no column cycle"):
            ws.plot.timeline(tiny.timeline.drop(columns="cycle"))
        with pytest.raises(ws.InputError, match="1 samples"):
            ws.plot.timeline(tiny.timeline.iloc[:1])
