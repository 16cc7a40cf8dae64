"""Fields of a GPU are declared with the stages that read them, and all else follows from it.

That a stage reads what is declared and nothing else, ``tests/cpp/gpu/stages_test.cpp`` asks of every
field.
"""

import pytest

import warpstack as ws
from warpstack import _core
from warpstack.hardware.stages import Stage, fields_of, values_of


def test_the_simulation_reads_every_field():
    """But for what is on top of its cycles or beside kernels, how others count, and what programs see."""
    besides = fields_of(Stage.LAUNCH) | fields_of(Stage.TIMELINE)
    besides |= {"latency_counts", "compute_capability"}
    assert fields_of(Stage.TIMING) | besides == set(ws.Gpu.fields())


def test_the_fields_that_models_read_are_declared():
    """The core says which model reads which; the rest of what they are given earlier stages read."""
    read = set().union(*(_core.model_fields(name) for name in _core.model_names()))
    declared = fields_of(Stage.MODEL)
    assert read <= declared
    earlier = fields_of(Stage.MEMORY) | fields_of(Stage.INTERVAL)
    assert declared - read <= earlier | {"dram_efficiency"}  # which comes with the bandwidth


def test_the_stages_are_those_of_the_core():
    named = {name for field in _core.GPU_FIELDS for name in field.stages}
    assert named == {stage.value for stage in Stage}


@pytest.mark.parametrize("fields", [(), ("num_sms",), ("num_sms", "clock_ghz")])
def test_values_are_in_the_order_of_names(fields):
    gpu = ws.gpu("pascal-mdm")
    expected = tuple(getattr(gpu, name) for name in sorted(fields))
    assert values_of(gpu, frozenset(fields)) == expected
