"""Sliders: driven as a browser drives them; what they show is what predict says."""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.plot.sliders import MAIN_FIELDS, Explorer

NOTEBOOK = Path(__file__).resolve().parents[3] / "notebooks" / "explore.ipynb"
COLUMNS = ["model", "gpu_changes", "kernels", "instructions", "cycles", "ipc", "cpi"]
COLUMNS += [f"cpi_{part}" for part in ws.models.STACK_COMPONENTS]

MODELS = ("gpumech", "mdm")


@pytest.fixture(scope="module")
def app():
    return ws.App([ws.patterns.strided(gs, blocks=56, launch_id=i) for i, gs in ((1, 1), (2, 32))])


def expected(app, gpu, models=MODELS):
    return ws.models.application_totals(ws.predict(app, gpu, models))


def check(found, app, gpu):
    pd.testing.assert_frame_equal(found[COLUMNS], expected(app, gpu)[COLUMNS], rtol=1e-12)


@pytest.mark.slow
def test_explorer_predicts_as_predict(app, pascal):
    """Whatever was asked for before, in any order."""
    explorer = Explorer(app, pascal, MODELS)
    moves = [
        {},
        {"noc_bandwidth_gbs": 525},
        {"num_sms": 14},
        {"num_sms": 14, "clock_ghz": 2.8},
        {"l1_size_kib": 24, "l1_mshrs": 32},
        {"dram_latency": 100},
        {"num_sms": 14},
        {},
    ]
    for changes in moves:
        check(explorer.predict(**changes), app, pascal.replace(**changes))


def test_caches_are_simulated_only_when_they_change(app, pascal, monkeypatch):
    runs = []
    original = ws.memory.MemorySystem.run
    monkeypatch.setattr(
        ws.memory.MemorySystem, "run", lambda self, k, **o: runs.append(k) or original(self, k, **o)
    )
    explorer = Explorer(app, pascal, MODELS, access_order="round_robin")
    explorer.predict()
    assert len(runs) == 2
    for value in (64, 256):
        explorer.predict(l1_mshrs=value, dram_bandwidth_gbs=value, clock_ghz=1 + value / 256)
    assert len(runs) == 2
    explorer.predict(num_sms=14)
    explorer.predict()
    explorer.predict(num_sms=14, noc_bandwidth_gbs=100)
    assert len(runs) == 4
    assert explorer.is_fast("l1_mshrs")
    assert not explorer.is_fast("num_sms")


@pytest.fixture
def view(app):
    pytest.importorskip("ipywidgets")
    return ws.plot.explore(app, "pascal-mdm", MODELS)


def pixels(view):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(view.picture.value)).convert("RGB"))


@pytest.mark.slow
def test_sliders_move_the_picture(view, app, pascal):
    assert list(view.sliders) == list(MAIN_FIELDS)
    check(view.table, app, pascal)
    before = pixels(view)
    view.sliders["noc_bandwidth_gbs"].value = 525
    check(view.table, app, pascal.replace(noc_bandwidth_gbs=525))
    assert view.message.value == "pascal-mdm with noc_bandwidth_gbs=525"
    assert (pixels(view) != before).any()
    view.sliders["num_sms"].value = 56
    check(view.table, app, pascal.replace(num_sms=56, noc_bandwidth_gbs=525))
    view.reset.click()
    check(view.table, app, pascal)
    assert view.sliders["num_sms"].value == pascal.num_sms
    assert view.message.value == "pascal-mdm"
    assert (pixels(view) == before).all()


def test_bars_are_as_high_as_the_stack(view):
    """Counted in pixels of each colour: of each model the unchanged GPU's bar, then the changed one's."""
    from warpstack.plot.components import COLOURS

    view.sliders["noc_bandwidth_gbs"].value = 525
    picture = pixels(view)
    rows = [table.iloc[m] for m in (0, 1) for table in (view.unchanged, view.table)]
    colours = [tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in COLOURS.values()]
    # Bars are where the colour is, all others above it; a legend is narrower than a bar.
    base = (picture == colours[0]).all(axis=2).any(axis=0)
    edges = np.flatnonzero(np.diff(np.r_[False, base, False].astype(int)))
    bars = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 30]
    assert len(bars) == len(rows)
    # A few pixels are edges.
    columns = [picture[:, (a + b) // 2] for a, b in bars]
    heights = [[(c == one).all(axis=1).sum() for one in colours] for c in columns]
    highest = max(row["cpi"] for row in rows)
    for row, parts in zip(rows, heights, strict=True):
        whole = sum(parts) / max(map(sum, heights))
        assert whole == pytest.approx(row["cpi"] / highest, abs=0.05)
        for part, height in zip(COLOURS, parts, strict=True):
            share = row[f"cpi_{part}"] / row["cpi"]
            assert height / sum(parts) == pytest.approx(share, abs=0.05 + 3 / sum(parts)), part


@pytest.mark.slow
def test_the_unchanged_gpu_stays_beside_the_what_if(view, app, pascal):
    check(view.unchanged, app, pascal)
    assert view.speedup.value == ""
    view.sliders["noc_bandwidth_gbs"].value = 525
    check(view.unchanged, app, pascal)
    times = [view.unchanged["time_us"][1], view.table["time_us"][1]]
    slower, faster = view.speedup.value.split("<br>")[1], times[1] / times[0]
    assert (
        slower
        == f"mdm: takes {faster:.2f} times as long ({times[1]:.4g} us instead of {times[0]:.4g} us)"
    )
    # GPUMech does not know the NoC.
    assert view.speedup.value.startswith("gpumech: as fast as before (")
    view.sliders["noc_bandwidth_gbs"].value = 4200
    ratio = view.unchanged["time_us"][1] / view.table["time_us"][1]
    assert ratio > 1.1
    assert f"mdm: {ratio:.2f} times as fast (" in view.speedup.value
    view.reset.click()
    assert view.speedup.value == ""


def test_a_faster_clock_is_a_speedup_though_it_takes_more_cycles(view):
    view.sliders["clock_ghz"].value = 2.8
    assert (view.table["cycles"] > view.unchanged["cycles"]).any()
    for model, line in zip(MODELS, view.speedup.value.split("<br>"), strict=True):
        assert line.startswith(f"{model}: ")
        assert "times as fast" in line or "as fast as before" in line


def test_slow_fields_wait_until_the_slider_is_let_go(view):
    for field, slider in view.sliders.items():
        fast = field not in ("num_sms", "l1_size_kib", "l2_size_kib", "l1_mshrs")
        assert slider.continuous_update == fast, field
        assert slider.tooltip == ws.Gpu.fields()[field]


def test_impossible_gpus_are_said_to_be(app):
    pytest.importorskip("ipywidgets")
    view = ws.plot.explore(app, "pascal-mdm", MODELS, fields={"threads_per_sm": [32]})
    table, picture = view.table, view.picture.value
    view.sliders["threads_per_sm"].value = 32
    assert view.message.value.startswith("<b>")
    assert "threads_per_sm" in view.message.value
    assert view.table is table
    assert view.picture.value == picture


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": ["num_sm"]}, "fields: there is no field 'num_sm'; did you mean num_sms"),
        ({"fields": []}, "fields: there are none"),
        ({"fields": ["scheduler"]}, "fields: scheduler = 'gto' needs values to choose from"),
        ({"fields": {"num_sms": [0]}}, "num_sms = 0 is less than 1"),
        ({"fields": ["l2_mshrs"]}, "l2_mshrs has no influence on the models gpumech, mdm"),
        ({"models": "best"}, "there is no model 'best'"),
    ],
)
def test_wrong_arguments(app, arguments, message):
    pytest.importorskip("ipywidgets")
    with pytest.raises(ws.InputError, match=message):
        ws.plot.explore(app, "pascal-mdm", **{"models": MODELS, **arguments})


def test_choices(app, pascal):
    pytest.importorskip("ipywidgets")
    view = ws.plot.explore(app, pascal, MODELS, fields={"scheduler": ["lrr"], "l1_mshrs": [32, 64]})
    assert [value for _, value in view.sliders["scheduler"].options] == ["lrr", "gto"]
    assert [value for _, value in view.sliders["l1_mshrs"].options] == [32, 64, 128]
    view.sliders["scheduler"].value = "lrr"
    check(view.table, app, pascal.replace(scheduler="lrr"))


def test_without_ipywidgets(app, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ws.InputError, match=r"pip install 'warpstack\[explore\]'"):
        ws.plot.explore(app, "pascal-mdm", MODELS)


# The kernel's sockets and its event loop warn of matters of their own.
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_notebook():
    """The notebook runs, and shows sliders, a table and a picture."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    shown = [
        set(output.get("data", {}))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output["output_type"] in ("display_data", "execute_result")
    ]
    assert any("application/vnd.jupyter.widget-view+json" in kinds for kinds in shown)
    assert any("text/html" in kinds for kinds in shown)
    assert any("image/png" in kinds for kinds in shown)
