"""The documentation's pictures are what their code draws from their data; `tools/pictures` draws them."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

sys.path.insert(0, str(ROOT / "studies"))
import design_space  # noqa: E402
from page_pictures import command, freshness, recipes  # noqa: E402

sys.path.pop(0)

TABLE = command.table()
DRAWN = {name: one for name, one in TABLE.items() if isinstance(one, recipes.Drawn)}


@pytest.mark.parametrize("name", TABLE)
def test_picture_is_fresh(name):
    assert not command.stale(TABLE[name]), f"draw it with: tools/pictures {name}"


def test_the_table_has_every_picture_and_no_other():
    files = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("images/*.*")}
    files |= {path.relative_to(DOCS).as_posix() for path in DOCS.glob("figures/*.png")}
    files -= {"images/made.json"}
    assert set(TABLE) == files | {"_static/demo-still.svg"}
    assert set(freshness.recorded()) == set(TABLE)
    points = {path for one in DRAWN.values() for path in one.data if path.parent == recipes.POINTS}
    assert points == set(recipes.POINTS.iterdir())


def test_no_page_shows_a_picture_that_the_table_lacks():
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+\.(?:png|svg))\)", page.read_text("utf-8")):
            if not target.startswith("http"):
                shown = (page.parent / target).resolve().relative_to(DOCS).as_posix()
                assert shown in TABLE, page


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Return a copy of a picture's folder, and a manifest of one's own."""
    (tmp_path / "images").mkdir()
    for name in ("images/matvec.png", "images/demo.svg"):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    manifest = tmp_path / "made.json"
    manifest.write_bytes(freshness.MANIFEST.read_bytes())
    monkeypatch.setattr(freshness, "MANIFEST", manifest)
    return tmp_path


@pytest.mark.parametrize("name", ["images/matvec.png", "images/demo.svg"])
def test_a_picture_that_was_changed_by_hand_is_stale(copy, name):
    assert command.stale(TABLE[name], copy) == ""
    file = copy / name
    file.write_bytes(file.read_bytes() + b"\n")
    assert command.stale(TABLE[name], copy) == "its file has been changed by hand"
    file.unlink()
    assert command.stale(TABLE[name], copy) == "is missing"


def test_a_paper_s_figure_that_was_changed_by_hand_is_stale(tmp_path):
    (tmp_path / "figures").mkdir()
    for kind in ("png", "csv"):
        file = tmp_path / f"figures/mdm-fig5.{kind}"
        file.write_bytes((DOCS / f"figures/mdm-fig5.{kind}").read_bytes())
    assert command.stale("mdm-fig5", tmp_path) == ""
    picture = tmp_path / "figures/mdm-fig5.png"
    picture.write_bytes(picture.read_bytes() + b"\n")
    assert command.stale("mdm-fig5", tmp_path) == "its file has been changed by hand"
    file.write_bytes(file.read_bytes() + b"\n")
    assert command.stale("mdm-fig5", tmp_path) == "its data has changed"


def test_changed_data_and_unknown_pictures_are_stale(copy, tmp_path):
    data = tmp_path / "points.csv"
    data.write_bytes(DRAWN["images/matvec.png"].data[0].read_bytes() + b"\n")
    one = DRAWN["images/matvec.png"]
    changed = recipes.Drawn(one.name, one.draw, (data,), one.of)
    assert command.stale(changed, copy) == "its data has changed"
    freshness.MANIFEST.unlink()
    assert command.stale(one, copy) == "is not in the manifest"


MODULE = '''
"""Draws."""
import {helper} as helper
from warpstack.plot import sheet
import warpstack as ws

WIDTH = 3
OTHER = 4


def used(x):
    """Say."""
    return x * WIDTH


def draw():
    # A remark.
    return used(helper.shift(sheet.TEXT)) + ws.plot.curves(1)


def not_used():
    return OTHER
'''


def test_what_a_picture_is_drawn_with(tmp_path, monkeypatch):
    """Every step of the way counts, and what says nothing or is not used does not."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(freshness, "STUDIES", tmp_path)
    (tmp_path / "pictured.py").write_text(MODULE.format(helper="pictured_helper"))
    helper = tmp_path / "pictured_helper.py"
    helper.write_text("STEP = 1\n\n\ndef shift(x):\n    return x + STEP\n")
    import pictured

    found = freshness.code_used([pictured.draw])
    names = {f"{module}:{name}" for module, name in found}
    assert {"pictured:draw", "pictured:used", "pictured:WIDTH"} <= names
    assert {"pictured_helper:shift", "pictured_helper:STEP"} <= names
    plot = {"sheet", "looks", "design_space", "components", "press", "style"}
    assert {f"warpstack.plot.{module}:" for module in plot} <= names
    assert not {"pictured:not_used", "pictured:OTHER", "warpstack.plot.sliders:"} & names

    before = freshness.code_digest([pictured.draw])
    module = tmp_path / "pictured.py"
    for old, new, same in (
        ("A remark", "Another", True),
        ("Say.", "Tell.", True),
        ("OTHER = 4", "OTHER = 5", True),
        ("WIDTH = 3", "WIDTH = 2", False),
        ("x * WIDTH", "x + WIDTH", False),
    ):
        module.write_text(MODULE.format(helper="pictured_helper").replace(old, new))
        assert (freshness.code_digest([pictured.draw]) == before) == same, old
    module.write_text(MODULE.format(helper="pictured_helper"))
    helper.write_text(helper.read_text().replace("STEP = 1", "STEP = 2"))
    assert freshness.code_digest([pictured.draw]) != before


def test_two_pictures_in_the_manifest_are_two_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(freshness, "MANIFEST", tmp_path / "made.json")
    assert freshness.recorded() == {}
    freshness.record({"b": {"picture": "1"}, "a": {"picture": "2"}})
    freshness.record({"b": {"picture": "3"}})
    assert freshness.recorded() == {"a": {"picture": "2"}, "b": {"picture": "3"}}
    assert len((tmp_path / "made.json").read_text().splitlines()) == 4


def test_numbers_that_differ_are_named(tmp_path):
    table = pd.DataFrame({"model": ["mdm", ""], "cycles": [1.000001, 2.0]})
    recipes.kept(table, tmp_path / "x.csv")

    def compared(numbers):
        picture = recipes.Drawn("x.png", print, (tmp_path / "x.csv",), "", numbers=lambda: numbers)
        return command.different_numbers(picture)

    assert compared(table) == ""
    assert compared(table.assign(cycles=[1.0000011, 2.0])) == ""
    assert compared(table.assign(cycles=[1.001, 2.0])) == "its numbers have changed: cycles"
    assert compared(table.assign(model=["mdm", "mt"])) == "its numbers have changed: model"
    assert compared(table.head(1)) == "its numbers have other rows or columns"


def test_the_command_says_what_is_wrong(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["pictures", "matvecs"])
    with pytest.raises(SystemExit, match="matvecs: no such picture"):
        command.main("")
    monkeypatch.setattr(sys, "argv", ["pictures", "--record", "matvec"])
    with pytest.raises(SystemExit):
        command.main("")
    assert "not made here" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["pictures", "--check", "matvec", "mdm-fig5"])
    assert command.main("") == 0
    monkeypatch.setattr(freshness, "MANIFEST", tmp_path / "made.json")
    assert command.main("") == 1
    assert "images/matvec.png: is not in the manifest" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["pictures", "--list", "matvec"])
    assert command.main("") == 0
    assert "images/matvec.png: seconds, of data/kernels/matvec.ptx\n" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matvec", "cpi-stack", "roofline"])
def test_predictions_in_pictures_are_those_of_today(name):
    """The numbers of a picture are computed anew, to the digits that are kept."""
    assert command.different_numbers(DRAWN[f"images/{name}.png"]) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matvec", "design-space-cfd", "validation-num_sms"])
def test_a_picture_is_drawn_as_it_is(name, tmp_path):
    picture = DRAWN[f"images/{name}.png"]
    command.draw(picture, tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as new, Image.open(DOCS / f"images/{name}.png") as old:
        # Versions of Matplotlib place a text a pixel apart; its layouts do not change.
        assert new.size == pytest.approx(old.size, abs=2)
        assert len(np.unique(np.asarray(new.convert("L")))) > 10


def test_maps_agree_with_the_table_beside_them():
    """What the maps write, to three digits, gives the scores that the page has."""
    scores = pd.read_csv(DOCS / "data/exploring/maps.csv").set_index(["application", "model"])
    for app, picture in design_space.APPLICATIONS.items():
        table = pd.read_csv(recipes.POINTS / f"{picture}.csv")
        for _, row in design_space.scores(table).set_index("model").iterrows():
            wanted = scores.loc[(app, row.name)]
            assert float(row["best over baseline"]) == wanted["best over baseline"]
            assert float(row["80 over 15 SMs"]) == pytest.approx(wanted["80 over 15 SMs"], abs=0.02)
