"""Fields of a GPU are declared with the stages that read them, and all else follows from it."""

import numpy as np
import pytest

import warpstack as ws
from machines import plain_pascal
from warpstack import _core
from warpstack.hardware.fields import Stage
from warpstack.hardware.stages import fields_of, to_core, to_core_columns, values_of
from warpstack.memory.caches import memory_config
from warpstack.models.prediction import _parameters
from warpstack.timing.simulation import simulator_config


def test_the_simulation_reads_every_field():
    """But for what comes on top of its cycles, how others count latencies, and what programs see."""
    besides = fields_of(Stage.LAUNCH) | {"latency_counts", "compute_capability"}
    assert fields_of(Stage.TIMING) | besides == set(ws.Gpu.fields())


def test_the_fields_that_models_read_are_declared():
    """The core says which model reads which; the rest of what they are given earlier stages read."""
    read = set().union(*(_core.model_fields(name) for name in _core.model_names()))
    declared = fields_of(Stage.MODEL)
    assert read <= declared
    earlier = fields_of(Stage.MEMORY) | fields_of(Stage.INTERVAL)
    assert declared - read <= earlier | {"dram_efficiency"}  # which comes with the bandwidth


WORDS = ("ways", "bypassed", "write_back", "write_through", "no_allocate", "fetch_on_write", "fifo")
WORDS += (
    "on_fill",
    "xor",
    "lrr",
    "before_tags",
    "reserved",
    "per_lane",
    "awaited",
    "last_transfer",
    "issue_to_issue",
)


def changed(gpu, field):
    """Return the GPU with another value of a field."""
    value = getattr(gpu, field)
    others = WORDS if isinstance(value, str) else ((40,),)
    if not isinstance(value, (str, tuple)):
        others = (2 * value, value // 2, value + 32, value + 1024, 1, 0.5)
    for other in others:
        try:
            found = gpu.replace(**{field: other})
        except ws.InputError:
            continue
        if getattr(found, field) != value:
            return found
    raise AssertionError(f"{field} cannot be changed")


@pytest.mark.parametrize(
    ("stage", "config"),
    [
        (Stage.MEMORY, memory_config),
        (
            Stage.INTERVAL,
            lambda gpu: (to_core(gpu, Stage.INTERVAL), gpu.latency_counts, gpu.num_schedulers),
        ),
        (Stage.MODEL, _parameters),
        (Stage.TIMING, simulator_config),
    ],
)
def test_what_a_stage_declares_reaches_the_core(stage, config):
    """And nothing else does, beside what another declared field brings with it."""
    rows = {"dram_row_bytes": 2048}  # only with these the models ask for DRAM's commands
    gpu = plain_pascal(
        unified_l1_kib=48, shared_memory_carve_outs_kib=[24], noc_queue_entries=0, **rows
    )
    own = config(gpu)
    fields = fields_of(stage)
    if stage is Stage.MEMORY:
        fields |= fields_of(Stage.GREEDY) | fields_of(Stage.TIMED) | fields_of(Stage.REQUESTS)
    for field in ws.Gpu.fields():
        # Of rows the models ask only whether there are any.
        other = gpu.replace(dram_row_bytes=0) if field == "dram_row_bytes" else changed(gpu, field)
        with_it = {n for n in ws.Gpu.fields() if getattr(other, n) != getattr(gpu, n)}
        assert (config(other) != own) == bool(with_it & fields), field


def test_columns_are_those_of_each():
    gpus = [ws.gpu(name) for name in ws.gpus()]
    columns = to_core_columns(gpus, Stage.MODEL)
    for i, gpu in enumerate(gpus):
        assert {name: values[i] for name, values in columns.items()} == to_core(gpu, Stage.MODEL)


def test_kib_are_bytes_in_the_core():
    gpu = ws.gpu("pascal-mdm")
    assert to_core(gpu, Stage.MEMORY)["l1"]["size_bytes"] == gpu.l1_size_kib * 1024
    assert memory_config(gpu)["carve_outs"] == []
    assert np.dtype(type(to_core(gpu, Stage.MEMORY)["sm"]["shared_memory_bytes"])).kind == "i"


@pytest.mark.parametrize("fields", [(), ("num_sms",), ("num_sms", "clock_ghz")])
def test_values_are_in_the_order_of_names(fields):
    gpu = ws.gpu("pascal-mdm")
    expected = tuple(getattr(gpu, name) for name in sorted(fields))
    assert values_of(gpu, frozenset(fields)) == expected
