"""The dictionaries that describe a configuration to the compiled core."""

import pytest

import warpstack as ws
from warpstack import _core
from warpstack.memory.caches import memory_config
from warpstack.models.prediction import STACK_COMPONENTS, _parameters
from warpstack.timing.simulation import simulator_config


@pytest.fixture(scope="module")
def gpu() -> ws.Gpu:
    return ws.gpu("pascal-mdm")


@pytest.mark.parametrize(
    ("make", "describe"),
    [(_core.MemorySystem, memory_config), (_core.Simulator, simulator_config)],
)
def test_every_field_is_wanted_and_no_other(make, describe, gpu):
    config = describe(gpu)
    make(config)
    for name in config:
        without = {key: value for key, value in config.items() if key != name}
        with pytest.raises(ws.InputError, match=f"lacks the field {name}$"):
            make(without)
    with pytest.raises(ws.InputError, match="does not have a field colour; its fields are"):
        make(config | {"colour": 1})


def test_a_field_of_a_cache_is_named(gpu):
    cache = memory_config(gpu)["l1"]
    with pytest.raises(ws.InputError, match=r"^ways = 'many' does not fit this field$"):
        _core.Cache(cache | {"ways": "many"})
    with pytest.raises(ws.InputError, match=r"^ways = -1 does not fit this field$"):
        _core.Cache(cache | {"ways": -1})
    with pytest.raises(
        ws.InputError, match=r'^unknown replacement policy "newest"; write lru, fifo or plru$'
    ):
        _core.Cache(cache | {"replacement": "newest"})


def test_columns_of_parameters_have_one_length(gpu):
    columns = {name: [value, value] for name, value in _parameters(gpu).items()}
    assert _core.evaluate_all("mdm", [], columns)["cpi"].size == 0
    with pytest.raises(ws.InputError, match=r"^clock_ghz has 3 entries where scheduler has 2$"):
        _core.evaluate_all("mdm", [], columns | {"clock_ghz": [1, 1, 1]})


def test_an_unknown_operation_class_is_named(gpu):
    config = simulator_config(gpu)
    with pytest.raises(ws.InputError, match=r'^unknown operation class "magic"; write integer, '):
        _core.Simulator(config | {"latency": config["latency"] | {"magic": 1.0}})


def test_components_come_from_the_core():
    assert STACK_COMPONENTS == ("base", "dep", "l1", "l2", "dram", "mshr", "noc", "queue")
    assert STACK_COMPONENTS is _core.STACK_COMPONENTS
