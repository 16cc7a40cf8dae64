"""The options that functions share: in one value, or one by one by name."""

import dataclasses
import inspect
import json
import pickle
import typing
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack._util import options as module
from warpstack._util.checked import checked
from warpstack.errors import UnusedOptionWarning
from warpstack.exploration.sweep import Design
from warpstack.models.pipeline import Pipeline

GPU = "pascal-mdm"
AXES = {"num_sms": [14, 28]}
KINDS = [
    module.WarpChanges,
    module.FlushChanges,
    module.CacheChanges,
    module.SimulationChanges,
    module.StageChanges,
    module.TimeChanges,
    module.OptionChanges,
]
#: Each function that takes options, called with some of them, and an option that it does not read.
CALLS = {
    "predict": (lambda app, **how: ws.predict(app, GPU, "mdm", **how), None),
    "sweep": (
        lambda app, **how: ws.sweep(app, GPU, AXES, "mdm", cache=False, **how),
        {"sample_sms": 0.5},
    ),
    "search": (
        lambda app, **how: ws.search(app, GPU, {"num_sms": [14, 28]}, cache=False, **how),
        {"sample_launches": True},
    ),
    "lines": (lambda app, **how: ws.lines(app, GPU, simulate=False, **how), {"selection": "max"}),
    "roofline": (
        lambda app, **how: ws.models.roofline(app, GPU, "mdm", **how),
        {"sample_sms": "auto"},
    ),
    "timeline": (
        lambda app, **how: ws.timeline(app, GPU, "mdm", **how).table,
        None,
    ),
    "dvfs": (
        lambda app, **how: ws.models.dvfs(app, GPU, [1.0], "mdm", **how),
        {"sample_sms": 0.5},
    ),
    "what_if": (
        lambda app, **how: ws.validation.what_if(
            app, GPU, "mdm", {"more": {"num_sms": 56}}, simulate=False, **how
        ),
        {"profiler": "ncu"},
    ),
    "simulate": (
        lambda app, **how: pd.DataFrame([one.totals for one in ws.simulate(app, GPU, **how)]),
        {"misses": "representative"},
    ),
    "simulate_caches": (
        lambda app, **how: pd.DataFrame(
            [one.totals for one in ws.simulate_caches(app, GPU, **how)]
        ),
        {"profiler": "nvprof"},
    ),
    "ablate": (
        lambda app, **how: ws.memory.ablate(app, GPU, **how),
        {"access_order": "greedy"},
    ),
    "interval_profile": (
        lambda app, **how: ws.interval_profile(app[0], GPU, **how).intervals,
        {"flush_l2": True},
    ),
}


@pytest.fixture(scope="module")
def app():
    kernels = [ws.patterns.strided(gs=32, iterations=2, blocks=28, launch_id=i) for i in (1, 2)]
    return ws.App(kernels, "twice")


@pytest.fixture(scope="module")
def kernel(app):
    return app[0]


def test_options_are_written_once():
    """What type checkers need repeated is what the fields say."""
    fields = typing.get_type_hints(ws.Options)
    assert set(fields) == module.OptionChanges.__optional_keys__
    for kind in KINDS:
        assert not kind.__required_keys__
        for name, hint in typing.get_type_hints(kind).items():
            assert hint == fields[name], (kind, name)
    documented = inspect.getdoc(ws.Options).splitlines()
    assert [line for line in documented if line in fields] == list(fields)


def test_equal_settings_are_equal_options():
    options = ws.Options(
        access_order="auto", merge_threshold=10, flush_l2=np.True_, sample_sms=1, initial_l2=0
    )
    same = ws.Options(access_order="timed", merge_threshold=10.0, flush_l2=1, initial_l2="clean")
    assert ws.Options(initial_l2=np.float64(1)) == ws.Options(initial_l2="dirty")
    assert options == same
    assert hash(options) == hash(same)
    assert pickle.loads(pickle.dumps(options)) == options
    assert dataclasses.replace(options, flush_l2=False) != options
    assert ws.Options() == dataclasses.replace(ws.Options())
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.flush_l2 = False
    with pytest.raises(TypeError):
        ws.Options("max")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"selection": "best"}, "selection = 'best' is not one of clustering, max, min"),
        ({"misses": None}, "misses = None is not one of per_pc, representative"),
        ({"merge_threshold": -1}, "merge_threshold = -1 is not a number of cycles"),
        ({"merge_threshold": float("nan")}, "merge_threshold = nan is not a number of cycles"),
        ({"merge_threshold": True}, "merge_threshold = True is not a number of cycles"),
        ({"access_order": np.ones(3)}, "access_order = .* is not one of auto, round_robin"),
        ({"flush_l2": "yes"}, "flush_l2: expected True or False, got 'yes'"),
        (
            {"initial_l2": "full"},
            "initial_l2 = 'full' is not what L2 can hold; give empty, clean, dirty",
        ),
        ({"initial_l2": 1.5}, r"initial_l2 = 1\.5 is not what L2 can hold"),
        ({"initial_l2": float("nan")}, "initial_l2 = nan is not"),
        ({"initial_l2": True}, "initial_l2 = True is not"),
        ({"sample_sms": 0}, "sample_sms = 0 is not a share of the SMs"),
        ({"sample_sms": "most"}, "sample_sms = 'most' is not a share of the SMs"),
        ({"sample_launches": 1.0}, "sample_launches = 1.0 is not True, False or a relative error"),
        (
            {"profiler": "gprof"},
            "profiler = 'gprof' is not one of nsys, ncu, nvprof, events, batch, do_",
        ),
    ],
)
def test_wrong_options_are_refused(wrong, message, kernel):
    with pytest.raises(ws.InputError, match=message):
        ws.Options(**wrong)
    with pytest.raises(ws.InputError, match=next(iter(wrong))):
        ws.predict(kernel, GPU, "mdm", **wrong)


def flushed(name):
    """Return options that change what a function says of an application that runs twice."""
    return {"selection": "max"} if name == "interval_profile" else {"flush_l2": name != "ablate"}


@pytest.mark.parametrize("name", CALLS)
def test_one_value_or_by_name(name, app):
    call, _ = CALLS[name]
    how = flushed(name)
    by_name = call(app, **how)
    pd.testing.assert_frame_equal(call(app, options=ws.Options(**how)), by_name)
    (changed,) = how
    other = {changed: getattr(ws.Options(), changed)} if name != "ablate" else {changed: True}
    plain = call(app)
    if name != "interval_profile":  # all its warps are alike
        assert not plain.equals(by_name)
    # A name goes before the value.
    pd.testing.assert_frame_equal(call(app, options=ws.Options(**how), **other), plain)


@pytest.mark.parametrize("name", [name for name, (_, unread) in CALLS.items() if unread])
def test_options_that_a_function_does_not_read(name, app):
    call, unread = CALLS[name]
    (option,) = unread
    plain = call(app, options=ws.Options())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(app, options=ws.Options(**unread))
    assert [(one.category, str(one.message)) for one in caught] == [
        (UnusedOptionWarning, f"options: {name} does not read {option}")
    ]
    assert Path(caught[0].filename).name == Path(__file__).name
    pd.testing.assert_frame_equal(found, plain)
    with pytest.raises(
        TypeError, match=rf"{name}\(\) got an unexpected keyword argument '{option}'"
    ):
        call(app, **unread)


def test_a_wrong_name_suggests_the_nearest(kernel):
    with pytest.raises(
        TypeError, match=r"predict\(\) got .* argument 'flush_12'; did you mean flush_l2\?"
    ):
        ws.predict(kernel, GPU, flush_12=True)
    with pytest.raises(TypeError, match=r"argument 'progress_'; did you mean progress\?"):
        ws.sweep(kernel, GPU, AXES, progress_=True)
    with pytest.raises(
        TypeError, match=r"simulate_caches\(\) .* argument 'xyz'; there are app, gpu"
    ):
        ws.simulate_caches(kernel, GPU, xyz=1)
    with pytest.raises(TypeError, match="multiple values for argument 'gpu'"):
        ws.predict(kernel, GPU, gpu=GPU)


def test_not_options(kernel):
    with pytest.raises(ws.InputError, match="options: expected Options, got a dict"):
        ws.predict(kernel, GPU, options={"flush_l2": True})


def test_names_of_a_typed_dictionary_are_checked():
    @checked
    def run(first: int, **changes: "Unpack[module.WarpChanges]") -> object:  # noqa: F821
        return first, changes

    assert run(1, merge_threshold=np.float64(3)) == (1, {"merge_threshold": 3.0})
    assert run(1, merge_threshold=np.float64(3)) == (1, {"merge_threshold": 3.0})
    assert run(first=2) == (2, {})


@pytest.mark.parametrize(
    "ask",
    [
        lambda app, **how: ws.predict(app, GPU, "closed_network", **how),
        lambda app, **how: ws.sweep(app, GPU, AXES, cache=False, **how),
        lambda app, **how: ws.search(app, GPU, {"num_sms": [14, 28]}, cache=False, **how),
        lambda app, **how: ws.models.roofline(app, GPU, **how),
        lambda app, **how: ws.models.dvfs(app, GPU, [1.0], "simulation", **how),
        lambda app, **how: ws.validation.what_if(app, GPU, simulate=False, **how),
        lambda app, **how: ws.plot.sliders.Explorer(app, GPU, **how),
    ],
)
def test_options_that_no_model_reads(ask, kernel):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(kernel, selection="max", merge_threshold=10, flush_l2=True)
    assert [one.category for one in caught] == [UnusedOptionWarning]
    assert "do not read selection, merge_threshold: those of the papers do" in str(
        caught[0].message
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(kernel, selection="clustering", misses="per_pc", merge_threshold=0)


def test_one_model_that_reads_an_option_is_enough(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ws.predict(kernel, GPU, ["closed_network", "mdm"], selection="max")


class Asked:
    """A memo that keeps nothing but what was asked for."""

    def __init__(self):
        self.settings = {}

    def get(self, stage, settings):
        self.settings[stage] = dict(settings)

    def put(self, stage, settings, results):
        pass


#: As version 0.2 wrote them: stores and caches on disk are found by these. Where strangers have written to
#: L2 they have an entry more.
IDENTITIES = [
    (
        {},
        '"selection": "clustering", "misses": "per_pc", "merge_threshold": 0.0, "access_order": "timed", '
        '"flush_l2": false}',
        '{"access_order": "timed", "flush_l2": false, "observed": []}',
    ),
    (
        {"merge_threshold": 10, "flush_l2": True, "access_order": "auto"},
        '"selection": "clustering", "misses": "per_pc", "merge_threshold": 10.0, "access_order": "timed", '
        '"flush_l2": true}',
        '{"access_order": "timed", "flush_l2": true, "observed": []}',
    ),
    (
        {"selection": "max", "misses": "representative", "access_order": "greedy"},
        '"selection": "max", "misses": "representative", "merge_threshold": 0.0, "access_order": "greedy", '
        '"flush_l2": false}',
        '{"access_order": "greedy", "flush_l2": false, "observed": [[0, 0], [0, 0]]}',
    ),
    (
        {"initial_l2": "clean", "flush_l2": True},  # nothing is written, as before
        '"selection": "clustering", "misses": "per_pc", "merge_threshold": 0.0, "access_order": "timed", '
        '"flush_l2": true}',
        '{"access_order": "timed", "flush_l2": true, "observed": []}',
    ),
    (
        {"initial_l2": 0.25},
        '"selection": "clustering", "misses": "per_pc", "merge_threshold": 0.0, "access_order": "timed", '
        '"flush_l2": false, "initial_l2": 0.25}',
        '{"access_order": "timed", "flush_l2": false, "initial_l2": 0.25, "observed": []}',
    ),
    (
        {"profiler": "do_bench"},
        '"selection": "clustering", "misses": "per_pc", "merge_threshold": 0.0, "access_order": "timed", '
        '"flush_l2": false, "initial_l2": 1.0}',
        '{"access_order": "timed", "flush_l2": false, "initial_l2": 1.0, "observed": []}',
    ),
]


@pytest.mark.parametrize(("given", "identity", "memory"), IDENTITIES)
def test_identities_on_disk_stay(given, identity, memory, app):
    options = ws.Options(**given)
    design = Design.of(app, ws.gpu(GPU), AXES, "mdm", "nsys")
    found = json.dumps(design.identity(options))
    assert found.endswith('"profiler": "nsys", ' + identity)
    asked = Asked()
    list(Pipeline(app, options, memo=asked).memory(ws.gpu(GPU)))
    settings = asked.settings["memory"]
    assert list(settings)[:3] == ["gpu", "access_order", "flush_l2"]
    del settings["gpu"]
    assert json.dumps(settings) == memory
    if options.observes:
        assert asked.settings["warp"] == {"selection": options.selection}


def test_ablations_empty_l2_unless_options_say_otherwise(app):
    plain = ws.memory.ablate(app, GPU)
    pd.testing.assert_frame_equal(plain, ws.memory.ablate(app, GPU, flush_l2=True))
    assert not plain.equals(ws.memory.ablate(app, GPU, options=ws.Options()))


@pytest.mark.parametrize(
    "ask",
    [
        lambda kernel, **how: ws.predict(kernel, GPU, **how)["ipc"].item(),
        lambda kernel, **how: ws.simulate_caches(kernel, GPU, **how).totals,
        lambda kernel, **how: ws.memory.MemorySystem(GPU).run(kernel, **how).totals,
    ],
)
def test_sampling_is_sample_sms(ask):
    kernel = ws.patterns.gather(blocks=280)
    with pytest.warns(FutureWarning, match="sampling is called sample_sms now") as caught:
        found = ask(kernel, sampling=0.5)
    assert len(caught) == 1
    assert Path(caught[0].filename).name == Path(__file__).name
    assert found == ask(kernel, sample_sms=0.5)
    with pytest.raises(TypeError, match="both 'sample_sms' and 'sampling', its former name"):
        ask(kernel, sampling=0.5, sample_sms=0.5)


def test_auto_is_for_predictions(kernel):
    with pytest.raises(ws.InputError, match="sample_sms = 'auto' is for predictions"):
        ws.simulate_caches(kernel, GPU, sample_sms="auto")
