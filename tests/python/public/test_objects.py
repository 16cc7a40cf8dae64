"""What every object does: pickles, copies, and says what it is, as text and in a notebook."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import warpstack as ws
from warpstack import _core
from warpstack.memory.caches import ACCESS_ORDERS, ORDERS
from warpstack.timing import simulation

GPU = "pascal-mdm"
KERNEL = ws.patterns.strided(4, iterations=2)

Values = Callable[[Any], Any]

OBJECTS: dict[str, tuple[Callable[[], Any], Values]] = {
    "gpu": (lambda: ws.gpu(GPU).replace(num_sms=3), lambda gpu: gpu.values()),
    "kernel": (lambda: KERNEL, lambda kernel: kernel.digest),
    "app": (lambda: ws.App([KERNEL, KERNEL], "twice"), lambda app: (app.name, app.digest)),
    "memory": (
        lambda: ws.simulate_caches(KERNEL, GPU),
        lambda memory: (memory.totals, memory.per_pc.to_csv(), memory.gpu.digest),
    ),
    "interval": (
        lambda: ws.interval_profile(KERNEL, GPU),
        lambda profile: (
            profile.intervals.to_dict(),
            ws.models.evaluate(profile, GPU, "closed_network").cpi_stack,
        ),
    ),
    "simulation": (
        lambda: ws.simulate(KERNEL, GPU, timeline_cycles=100),
        lambda result: (
            result.to_frame().to_dict("list"),
            result.totals,
            result.timeline.to_dict("list"),
        ),
    ),
    "prediction": (
        lambda: ws.models.evaluate(ws.interval_profile(KERNEL, GPU), GPU, "mdm"),
        lambda prediction: (prediction.cycles, prediction.cpi_stack),
    ),
    "reuse": (lambda: ws.memory.reuse_profile(KERNEL, GPU), repr),
    "schedule": (lambda: ws.memory.BlockSchedule("random", seed=3), lambda schedule: schedule),
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(
    "again",
    [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy],
    ids=["pickle", "deepcopy", "copy"],
)
def test_objects_come_back_as_they_were(name: str, again: Callable[[Any], Any]) -> None:
    make, values = OBJECTS[name]
    one = make()
    other = again(one)
    assert type(other) is type(one)
    assert values(other) == values(one)
    assert repr(other) == repr(one)
    assert values(again(other)) == values(one), "a copy of a copy"


def test_traces_pickle_in_a_process_that_did_nothing_else(tmp_path: Path) -> None:
    """Other modules, such as that of clusters, are not needed for it; nor is joblib's memory."""
    ws.save(KERNEL, tmp_path / "app")
    code = """
import pickle, sys
import warpstack as ws
app = ws.load(sys.argv[1])
sys.stdout.buffer.write(pickle.dumps((app, app.kernels[0])))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "app")], capture_output=True, check=True
    )
    code = """
import pickle, sys
app, kernel = pickle.loads(sys.stdin.buffer.read())
print(kernel.digest, app.kernels[0].digest)
"""
    read = subprocess.run(
        [sys.executable, "-c", code], input=done.stdout, capture_output=True, check=True
    )
    assert read.stdout.decode().split() == [KERNEL.digest] * 2


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_say_what_they_are(name: str) -> None:
    one = OBJECTS[name][0]()
    assert " object at 0x" not in repr(one)
    if name in ("gpu", "kernel", "app", "memory", "interval", "simulation"):
        assert "<table" in one._repr_html_()


def test_a_pickled_trace_is_one_that_every_stage_takes() -> None:
    kernel = pickle.loads(pickle.dumps(KERNEL))
    pd.testing.assert_frame_equal(ws.predict(kernel, GPU), ws.predict(KERNEL, GPU))
    assert ws.simulate(kernel, GPU).cycles == ws.simulate(KERNEL, GPU).cycles


@pytest.mark.parametrize("again", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", [ws.timing.Simulator, ws.memory.MemorySystem])
def test_what_holds_caches_is_made_anew(
    make: Callable[[str], Any], again: Callable[[Any], Any]
) -> None:
    with pytest.raises(ws.InputError, match="can be neither copied nor pickled; make another"):
        again(make(GPU))
    assert GPU in repr(make(GPU))


def test_type_checkers_know_the_choices_that_there_are() -> None:
    assert ("auto", *ORDERS) == ACCESS_ORDERS
    assert _core.ENUM_NAMES["access order"] == ORDERS


def test_a_simulation_sent_as_values_is_the_same() -> None:
    result = ws.simulate(KERNEL, GPU)
    pd.testing.assert_frame_equal(
        simulation.as_table(pickle.loads(pickle.dumps(result))), simulation.as_table(result)
    )
