"""The worked examples of the how-to pages do what the pages show."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import warpstack as ws
from warpstack import io, models

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture
def clean():
    yield
    models.prediction._registered.clear()
    io._registered.clear()


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("add-a-model", 14),
        ("add-a-cache-policy", 12),
        ("add-a-reader", 12),
        ("tracing-on-a-gpu", 4),
    ],
)
def test_page(page, least, tmp_path):
    kernels = [ws.patterns.strided(gs=2, blocks=2, iterations=2, launch_id=k) for k in (1, 2, 3, 4)]
    ws.save(ws.App(kernels, name="traced"), tmp_path / "traces", format="accelsim")
    result = doctest.testfile(
        str(DOCS / f"{page}.md"),
        module_relative=False,
        encoding="utf-8",
        optionflags=doctest.ELLIPSIS,
        globs={"folder": tmp_path, "traces": tmp_path / "traces"},
    )
    assert result.attempted >= least
    assert result.failed == 0


@pytest.mark.parametrize("page", ["add-a-model", "add-a-cache-policy", "add-a-reader"])
def test_places_exist(page):
    places = re.findall(r"`((?:cpp|python|tests|docs)/[\w./]+)`", (DOCS / f"{page}.md").read_text())
    assert len(places) >= 3
    for place in places:
        assert (ROOT / place).exists(), place
    assert "constexpr Model models[]" in (ROOT / "cpp/model/model.cpp").read_text()
    assert "_REPLACEMENTS" in (ROOT / "python/warpstack/gpu.py").read_text()


def issue_and_stalls(intervals, wave, gpu):
    """`naive_interval` again, with its own way to write the stack."""
    issued = intervals["instructions"].sum() / gpu.issue_width
    cycles = max(issued + intervals["stall_cycles"].sum(), wave.warps * issued)
    return {"base": wave.warps * issued, "dep": cycles - wave.warps * issued}


@pytest.mark.usefixtures("clean")
def test_registered_model_equals_the_core():
    """Waves, IPC and CPI are put together as for the core's model with the same cycles."""
    ws.models.register("mine", issue_and_stalls, fields=())
    app = ws.App([ws.patterns.strided(gs=gs, iterations=3, blocks=61) for gs in (1, 8)])
    gpu = ws.gpu("pascal-mdm").replace(num_sms=5)
    table = ws.predict(app, gpu, ["naive_interval", "mine"])
    core, own = (table[table["model"] == name] for name in ("naive_interval", "mine"))
    assert own["cycles"].iloc[0] > 0
    for column in ("instructions", "cycles", "ipc", "cpi", "cpi_base"):
        np.testing.assert_allclose(own[column], core[column], rtol=1e-12)
    points = ws.sweep(app, gpu, {"num_sms": [5, 7]}, ["naive_interval", "mine"], cache=False)
    core, own = (points[points["model"] == name] for name in ("naive_interval", "mine"))
    np.testing.assert_allclose(own["cycles"], core["cycles"], rtol=1e-12)
    assert "mine" in ws.models.names()
    assert set(ws.predict(app, gpu, "all")["model"]) == set(ws.models.names())
    assert "l1_mshrs" not in ws.models.fields_used(["mine"])
    ws.models.unregister("mine")
    with pytest.raises(ws.InputError, match="unknown model 'mine'"):
        ws.predict(app, gpu, ["mine"])


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mdm", issue_and_stalls), "there is a model mdm already"),
        (("all", issue_and_stalls), "is no name for a model"),
        (("two words", issue_and_stalls), "is no name for a model"),
        (("mine", 3), "cycles: expected a function, got 3"),
    ],
)
def test_wrong_models(arguments, message):
    with pytest.raises(ws.InputError, match=message):
        ws.models.register(*arguments)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ({"memory": 1.0}, "'memory' is no component"),
        ({"base": float("nan")}, "base = nan cycles"),
        ({"base": -1.0}, "base = -1.0 cycles"),
        ({}, "takes no cycles"),
    ],
)
def test_wrong_stacks(stack, message):
    ws.models.register("wrong", lambda intervals, wave, gpu: stack)
    with pytest.raises(ws.InputError, match=message):
        ws.predict(ws.patterns.stream(blocks=2), "pascal-mdm", ["wrong"])


@pytest.mark.usefixtures("clean")
def test_wrong_registrations():
    with pytest.raises(ws.InputError, match="there is no field l1_mshr; did you mean l1_mshrs"):
        ws.models.register("mine", issue_and_stalls, fields=["l1_mshr"])
    with pytest.raises(ws.InputError, match="no model 'mdm' was registered"):
        ws.models.unregister("mdm")
    with pytest.raises(ws.InputError, match="there is a format parquet already"):
        ws.io.register("parquet", bool, ws.load)
    with pytest.raises(ws.InputError, match="read: expected a function, got 1"):
        ws.io.register("mine", bool, 1)
    with pytest.raises(ws.InputError, match="no format 'parquet' was registered"):
        ws.io.unregister("parquet")
