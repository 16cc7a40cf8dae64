"""Requests that crowd at slices of L2: against the plain definition, and what models make of them."""

import numpy as np
import pytest

import warpstack as ws
from configurations import memory_config
from effort import rounds
from python_reference.memory import PlainMemorySystem
from warpstack import _core
from warpstack._util.choices import order_of


def transpose(pitch, rows=256, bytes_before=0):
    """Return a transpose by threads that read along rows and write along columns."""
    k = ws.patterns.KernelBuilder("transpose", grid=rows * rows // 256, block=256)
    row, column = k.thread // rows, k.thread % rows
    k.emit("LDG.E", dst=4, src=2, address=2**24 + 4 * k.thread)
    k.emit("STG.E", src=(6, 4), address=2**26 + bytes_before + 4 * (column * pitch + row))
    k.emit("EXIT")
    return k.build()


def gpu(**changes):
    return ws.gpu("pascal-mdm").replace(noc_topology="crossbar", **changes)


@pytest.mark.parametrize("seed", range(rounds(4, costly=True)))
@pytest.mark.parametrize("order", ["round_robin", "greedy", "timed"])
def test_equals_plain_definition(seed, order):
    draw = np.random.default_rng(seed)
    kernel = transpose(int(draw.choice([128, 136, 192])), rows=128)
    few = {
        "num_sms": int(draw.integers(1, 9)),
        "l1_mshrs": int(draw.choice([16, 64, 200])),
        "l2_partial_write_turns": float(draw.choice([0, 1.5])),
    }
    profile = ws.simulate_caches(kernel, gpu(**few), access_order=order)
    system = PlainMemorySystem(memory_config(gpu(**few), access_order=order))
    system.run(kernel)
    assert profile._core.slice_turns == system.slice_turns
    # Windows are rounded to 1/1024 of a turn.
    assert profile._core.slice_crowding == pytest.approx(system.slice_crowding, rel=1e-6)
    assert max(profile._core.slice_turns) >= np.mean(profile._core.slice_turns)


@pytest.mark.parametrize("order", ["round_robin", "greedy", "timed"])
def test_threads_do_not_change_it(order):
    kernel = transpose(512, rows=512)
    found = {
        ws.memory.MemorySystem(gpu(), access_order=order, workers=threads)
        .run(kernel)
        ._core.slice_crowding
        for threads in (1, 2, 3)
    }
    assert len(found) == 1
    assert min(found) > 3


def test_a_sample_of_sms_has_nearly_the_same():
    kernel = transpose(512, rows=512)
    exact = ws.simulate_caches(kernel, gpu())
    sampled = ws.simulate_caches(kernel, gpu(), sample_sms=0.25)
    assert sampled.sampled_sms
    assert sampled._core.slice_crowding == pytest.approx(exact._core.slice_crowding, rel=0.1)


def test_families_of_caches_have_that_of_the_recorded_order():
    kernel, order = transpose(512, rows=512), order_of("timed")
    system = ws.memory.MemorySystem(gpu(), access_order="timed")
    recording = _core.record_order(system._core, kernel._core)
    sizes = [gpu()._core, gpu(l1_size_kib=2 * gpu().l1_size_kib)._core]
    profiles, _ = _core.replay_order([kernel._core], [recording], sizes, order, 1.0, False, 0.0)
    exact = ws.simulate_caches(kernel, gpu())._core.slice_crowding
    assert {one.slice_crowding for one in profiles[0]} == {exact}


def test_a_padded_pitch_helps_in_closed_network():
    """Both launches ask all slices alike as a whole, and the simulator finds a factor above 2, too."""
    naive, padded = transpose(512, rows=512), transpose(544, rows=512)
    turns = [np.array(ws.simulate_caches(k, gpu())._core.slice_turns) for k in (naive, padded)]
    for of_slices in turns:
        assert of_slices.max() < 1.1 * of_slices.mean()
    rows = [ws.predict(k, gpu(), "closed_network").iloc[0] for k in (naive, padded)]
    assert rows[0]["cycles"] > 2 * rows[1]["cycles"]
    assert rows[0]["reason"] == "twice the requests per slice of L2 at once"
    simulated = [ws.simulate(k, gpu()).cycles for k in (naive, padded)]
    assert simulated[0] > 2 * simulated[1]
    assert rows[0]["cycles"] == pytest.approx(simulated[0], rel=0.25)
