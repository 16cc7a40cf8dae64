"""The GPU of the compiled core, and the table of its fields."""

import pickle
import re
from pathlib import Path

import pytest

import warpstack as ws
from configurations import cache_config
from warpstack import _core
from warpstack.models.prediction import STACK_COMPONENTS

FIELDS = {field.name: field for field in _core.GPU_FIELDS}


@pytest.fixture(scope="module")
def gpu() -> ws.Gpu:
    return ws.gpu("pascal-mdm")


@pytest.mark.parametrize("name", ws.gpus())
def test_the_core_has_every_value(name):
    gpu = ws.gpu(name)
    assert gpu._core.values == gpu.values()
    changed = gpu.replace(clock_ghz=gpu.clock_ghz / 2)  # which changes latencies, too
    assert changed._core.values == changed.values()
    again = pickle.loads(pickle.dumps(gpu))
    assert again == gpu
    assert again._core == gpu._core
    assert pickle.loads(pickle.dumps(gpu._core)) == gpu._core
    assert changed._core != gpu._core


def test_every_range_is_held(gpu):
    """At its ends a value is taken, and beyond them it is not: by the field, and by the core alone."""
    for name, field in FIELDS.items():
        if field.kind == "word":
            assert getattr(gpu, name) in field.choices
            with pytest.raises(ws.InputError, match=f"{name} = 'no such word'"):
                gpu.replace(**{name: "no such word"})
            with pytest.raises(ws.InputError, match='"no such word"'):
                gpu._core.changed({name: "no such word"})
            continue
        assert field.fault_of(field.most) is None, name
        assert field.fault_of(max(field.least, 1e-6)) is None or field.kind == "whole", name
        for number in (2 * field.most + 1, -1.0, float("nan"), float("inf")):
            fault = field.fault_of(number)
            assert fault is not None, (name, number)
            assert field.range_text in fault
            value = [number] if field.kind == "numbers" else number
            with pytest.raises(ws.InputError, match=re.escape(f"GPU pascal-mdm: {name} = ")):
                gpu.replace(**{name: value})
            with pytest.raises(ws.InputError, match=f"^{name} = "):
                gpu._core.changed({name: value})


def test_values_that_contradict_each_other_are_refused_by_the_core(gpu):
    with pytest.raises(ws.InputError, match=r"^l2_size_kib = 3072 is not a multiple of "):
        gpu._core.changed({"l2_ways": 7})
    values = gpu.values()
    del values["num_sms"]
    with pytest.raises(ws.InputError, match=r"^a GPU lacks the field num_sms$"):
        _core.Gpu(values)
    with pytest.raises(ws.InputError, match=r"^a GPU has no field colour$"):
        gpu._core.changed({"colour": 1})
    with pytest.raises(ws.InputError, match=r"^num_sms = 'many' does not fit this field$"):
        gpu._core.changed({"num_sms": "many"})


def test_a_field_of_a_cache_is_named(gpu):
    cache = cache_config(gpu, "l1")
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        _core.Cache(**cache | {"ways": "many"})
    with pytest.raises(
        ws.InputError, match=r'^unknown replacement policy "newest"; write lru, fifo or plru$'
    ):
        _core.Cache(**cache | {"replacement": "newest"})


def test_type_checkers_know_the_fields():
    """After a change of the fields: `tools/gpu-fields`."""
    tool = Path(__file__).resolve().parents[3] / "tools" / "gpu-fields"
    made: dict[str, object] = {"__name__": "gpu_fields", "__file__": str(tool)}
    exec(compile(tool.read_text(), str(tool), "exec"), made)

    def bare(text):  # the formatter breaks lines
        return re.sub(r"[\s,]", "", text)

    assert bare(made["FILE"].read_text()) == bare(made["text"]())


def test_components_come_from_the_core():
    assert STACK_COMPONENTS == ("base", "dep", "l1", "l2", "dram", "mshr", "noc", "queue")
    assert STACK_COMPONENTS is _core.STACK_COMPONENTS
