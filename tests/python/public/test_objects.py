"""What every object does: pickles, copies, and says what it is, as text and in a notebook."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import warpstack as ws
from warpstack import _core
from warpstack._util.handle import Handle
from warpstack._util.same import same
from warpstack.memory.caches import ACCESS_ORDERS, ORDERS
from warpstack.timing import simulation

GPU = "pascal-mdm"
KERNEL = ws.patterns.strided(4, iterations=2)
PROFILE = pd.DataFrame(
    {"operation": "kernel", "name": KERNEL.name, "start_us": [1.0], "end_us": [3.0]}
)

Values = Callable[[Any], Any]

mwp_cwp = ws.models.mwp_cwp
Estimate = mwp_cwp.Estimate


def fields_of(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


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
    "concurrent": (
        lambda: ws.simulate(KERNEL, GPU, concurrent=True),
        lambda result: (result.to_frame().to_dict("list"), result.totals),
    ),
    "timeline": (lambda: ws.timeline(KERNEL, GPU), lambda line: (line.time_us, repr(line))),
    "comparison": (
        lambda: ws.timeline(KERNEL, GPU).compare(PROFILE),
        lambda compared: (compared.table.to_csv(), compared.totals.to_csv(), compared.counts),
    ),
    "reuse": (lambda: ws.memory.reuse_profile(KERNEL, GPU), repr),
    "ppt_gpu_mem": (lambda: ws.memory.ppt_gpu_mem(KERNEL, GPU), repr),
    "samples": (lambda: ws.exploration.samples.sobol({"num_sms": (14, 28)}, 4), list),
    "crisp": (lambda: ws.models.CrispCounters(100.0, 40.0, 10.0, 30.0), repr),
    "calibration": (
        lambda: ws.calibration.Calibration(
            ws.gpu(GPU), ws.gpu(GPU), ("num_sms",), ("why",), (0, 1)
        ),
        repr,
    ),
    "run": (
        lambda: ws.cuda.host.Run(launches=2, traced=1, instructions=9, status=0, errors=("it",)),
        repr,
    ),
    "estimate": (lambda: Estimate(**dict.fromkeys(fields_of(Estimate), 1.5)), repr),
    "fit": (
        lambda: mwp_cwp.Fit(mwp_cwp.Machine.from_gpu(GPU), pd.DataFrame({"a": [1]}), 0.5),
        repr,
    ),
    "transactions": (lambda: mwp_cwp.Transactions(3, 128), repr),
    "percentage_error": (lambda: ws.validation.measures.mape([1, 2], [2, 2]), repr),
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
    assert same(other, one)
    assert values(other) == values(one)
    assert repr(other) == repr(one)
    assert values(again(other)) == values(one), "a copy of a copy"


def public_classes() -> Iterator[type]:
    """Yield the classes that the face and its modules show."""
    modules = [ws, *(getattr(ws, name) for name in ws.__all__)]
    modules = [module for module in modules if inspect.ismodule(module)]
    modules += [
        inner
        for module in modules
        for name in getattr(module, "__all__", ())
        if inspect.ismodule(inner := getattr(module, name))
    ]
    for module in modules:
        for name in getattr(module, "__all__", ()):
            if inspect.isclass(one := getattr(module, name)):
                yield one


#: Classes of which an object is no result: what is asked for, and tools.
NO_RESULTS = {
    "Expression",
    "Instruction",
    "KernelBuilder",
    "KernelDescription",
    "Machine",
    "Options",
    "Session",
    "StageCache",
    "Workload",
}


def test_every_public_result_is_among_the_objects() -> None:
    made = {type(make()) for make, _ in OBJECTS.values()}
    classes = set(public_classes())
    assert {ws.App, ws.Prediction, ws.calibration.Calibration} <= classes
    results = {
        one
        for one in classes
        if not issubclass(one, (Handle, BaseException)) and one.__name__ not in NO_RESULTS
    }
    assert results - made == set()


def test_what_differs_is_not_equal() -> None:
    other = ws.patterns.strided(8, iterations=2)
    assert ws.patterns.strided(4, iterations=2) == KERNEL
    assert hash(ws.patterns.strided(4, iterations=2)) == hash(KERNEL)
    assert other != KERNEL
    assert ws.patterns.strided(4, iterations=2, launch_id=2) != KERNEL
    assert ws.App([KERNEL]) != ws.App([other])
    assert ws.App([KERNEL], "one") != ws.App([KERNEL], "two")
    wider = ws.gpu(GPU).replace(l1_size_kib=24)
    for function in (ws.simulate_caches, ws.simulate, ws.interval_profile):
        assert function(KERNEL, GPU) == function(KERNEL, GPU)
        assert function(KERNEL, GPU) != function(other, GPU)
        assert function(KERNEL, GPU) != 1
    assert ws.simulate(KERNEL, GPU) != ws.simulate(KERNEL, wider)
    assert ws.simulate_caches(KERNEL, GPU) != ws.simulate_caches(KERNEL, wider)


POINTS = {"num_sms": [14, 28], "l1_mshrs": [32, 0]}

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "predict": lambda: ws.predict(KERNEL, GPU, ["gpumech", "mdm"]),
    "sweep": lambda: ws.sweep(KERNEL, GPU, POINTS, cache=False),
    "search": lambda: ws.search(KERNEL, GPU, {"num_sms": [14, 28]}, cache=False),
    "lines": lambda: ws.lines(KERNEL, GPU),
    "roofline": lambda: ws.models.roofline(KERNEL, GPU),
    "validate": lambda: ws.validate(
        ws.predict(KERNEL, GPU), ws.timing.as_table(ws.simulate(KERNEL, GPU))
    ),
    "validation_errors": lambda: ws.validation.validation_errors(TABLES["validate"]()),
    "compare": lambda: ws.compare(GPU, "a100", app=KERNEL),
    "samples": lambda: pd.DataFrame(ws.exploration.samples.sobol({"num_sms": (14, 28)}, 4)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "again",
    [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy],
    ids=["pickle", "deepcopy"],
)
def test_tables_come_back_as_they_were(name: str, again: Callable[[Any], Any]) -> None:
    table = TABLES[name]()
    assert same(again(table), table), "with what `attrs` say"


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
    if name in ("gpu", "kernel", "app", "memory", "interval", "simulation", "prediction"):
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
