"""Programmatic dependent launch: what is recorded of host_programs/overlapping.cu, and what it gains."""

import sys
from pathlib import Path

import pytest

import host_compiler
import warpstack as ws
from warpstack.cuda import host
from warpstack.timing.concurrent import places_of
from warpstack.traces.operations import columns_of
from warpstack.traces.trace import App

SOURCE = Path(__file__).parent / "host_programs" / "overlapping.cu"
GPU = "h100-pcie"
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcudart needs Linux"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return host_compiler.hopper_program(tmp_path_factory.mktemp("program"), SOURCE)


@pytest.fixture
def traced(program, tmp_path, capfd):
    def call(how):
        host.trace_program([program, how], tmp_path / how, gpu=ws.gpu(GPU), host_time=False)
        out, err = capfd.readouterr()
        assert out.splitlines() == ["5.0 5.0"], err
        return ws.load(tmp_path / how)

    return call


def flags(app):
    table = app.operations
    kernels = table[table["operation"] == "kernel"]
    assert kernels["name"].tolist() == ["first", "second", "third"]
    assert not table["programmatic"][table["operation"] != "kernel"].any()
    return kernels["programmatic"].tolist()


@pytest.mark.parametrize("how", ["stream", "captured", "edge"])
def test_a_launch_behind_a_trigger(traced, how):
    app = traced(how)
    assert flags(app) == [False, True, False]
    places = places_of(app)
    assert places.after == [[], [], [1]]
    assert places.after_trigger == [[], [0], []]
    opcodes = [set(kernel.instructions["opcode"]) for kernel in app]
    assert "griddepcontrol.launch_dependents" in opcodes[0]
    assert "griddepcontrol.wait" in opcodes[1]
    # It triggers long before its end, and waits long after its start.
    (trigger, none), (end, wait) = (kernel._core.dependent_launch() for kernel in app[:2])
    assert 0 < trigger < 0.2
    assert 0.8 < wait < 1
    assert none == end == 1


@pytest.mark.parametrize("how", ["off", "event"])
def test_a_launch_behind_an_end(traced, how):
    """The attribute may be off; an event that is recorded behind triggers is awaited as one behind ends."""
    app = traced(how)
    assert flags(app) == [False, how == "event", False]
    places = places_of(app)
    assert places.after == [[], [0], [1]]
    assert places.after_trigger == [[], [], []]


def test_what_it_gains(traced):
    app, apart = traced("stream"), traced("off")
    assert app.digest == apart.digest
    alone = [ws.simulate(kernel, GPU).cycles for kernel in app]
    overlapped = ws.simulate(app, GPU, concurrent=True)
    one_by_one = ws.simulate(apart, GPU, concurrent=True)
    table = overlapped.to_frame()
    # The second computes beside the first, and ends behind it; the third waits for its end.
    assert table["start"][1] < table["end"][0] / 2
    assert table["end"][1] > table["end"][0]
    assert table["start"][2] >= table["end"][1]
    assert max(alone) <= overlapped.cycles < 0.75 * one_by_one.cycles
    assert overlapped.instructions == one_by_one.instructions

    line, apart_line = ws.timeline(app, GPU), ws.timeline(apart, GPU)
    kernels = line.table[line.table["operation"] == "kernel"]
    start, end = kernels["start_us"].tolist(), kernels["end_us"].tolist()
    assert start[0] < start[1] < end[0] < end[1] <= start[2]
    assert line.time_us < apart_line.time_us
    # The model has no times within a kernel.
    predicted = ws.predict(app, GPU, concurrent=True)
    assert predicted["start"][1] >= predicted["end"][0]


def test_a_copy_between_both_is_awaited(traced):
    rows = traced("stream").operations.to_dict("records")
    places = [row for row, one in enumerate(rows) if one["operation"] == "kernel"]
    copy = {**rows[places[0]], "operation": "copy", "direction": "DtoD", "kernel": -1}
    rows.insert(places[1], copy)
    for row in rows:
        row["begins_after"] = row["after"] = ()
        row["parent"] = -1
    kernels = [ws.patterns.strided(gs=1, blocks=1, launch_id=n) for n in range(3)]
    found = places_of(App._recorded(kernels, "copied", columns_of(rows)))
    assert (found.after, found.after_trigger) == ([[], [0], [1]], [[], [], []])
