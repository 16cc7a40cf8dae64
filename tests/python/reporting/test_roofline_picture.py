"""The report's roofline: places of roofs and points by hand, and looks of the other pictures."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import warpstack as ws
from warpstack.plot.components import COLOURS, LEVELS
from warpstack.plot.style import MODELS
from warpstack.reporting.roofline_picture import _CORNERS, roofline_picture
from warpstack.reporting.style import STYLE


def row(level, bandwidth, intensity, gips, model="mdm"):
    return {
        **{"level": level, "bandwidth_gbs": bandwidth, "intensity": intensity, "gips": gips},
        **{"model": model, "issue_gips": 40.0, "roof_fraction": 0.5},
    }


ROWS = [row("L1", 4000.0, 0.01, 4.0), row("DRAM", 400.0, 0.04, 4.0)]


def svg_of(rows):
    text = roofline_picture(rows)
    return ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


def middle(path):
    """Return the middle of the corners of a marker."""
    corners = [tuple(map(float, c.split())) for c in path.get("d")[1:-1].split("L")]
    return [sum(values) / len(corners) for values in zip(*corners, strict=True)]


def points(picture):
    return [e for e in picture.iter("path") if (e.get("class") or "").startswith("point")]


def test_places_by_hand():
    """Knees are at 40/4000 = 0.01 and 40/400 = 0.1 instructions per byte; x runs from 0.01/3 to 0.3."""
    picture = svg_of(ROWS)
    roofs = {
        e.get("class").split("r-")[1]: [
            tuple(map(float, point.split(","))) for point in e.get("points").split()
        ]
        for e in picture.iter("polyline")
    }
    assert set(roofs) == {"l1", "dram"}
    # log(90) over 648 units: a factor of 3 is log(3)/log(90) = 0.24415 of it, 158.2.
    assert roofs["l1"][1][0] == pytest.approx(60 + 158.2, abs=0.1)
    assert roofs["dram"][1][0] == pytest.approx(60 + 648 - 158.2, abs=0.1)
    assert roofs["l1"][1][1] == roofs["dram"][1][1] == roofs["l1"][2][1]
    l1, dram = map(middle, points(picture))
    # The point of L1 is under its knee, that of DRAM log(4)/log(90) = 0.30808 to its right: 199.6.
    assert l1[0] == pytest.approx(roofs["l1"][1][0], abs=0.1)
    assert dram[0] - l1[0] == pytest.approx(199.6, abs=0.1)
    # y from 4/2 to 80 over 274 units: 40 is half the end, 4 twice the start, log(2)/log(40) = 0.18790.
    assert roofs["l1"][1][1] == pytest.approx(12 + 51.5, abs=0.1)
    assert l1[1] == pytest.approx(286 - 51.5, abs=0.1)


def test_all_is_within_the_picture():
    kernel = ws.patterns.strided(gs=32, iterations=3, blocks=28)
    rows = ws.models.roofline(kernel, "pascal-mdm", ["mdm", "gpumech"], simulate=True).to_dict(
        "records"
    )
    picture = svg_of(rows)
    drawn = [r for r in rows if r["intensity"] > 0 and r["gips"] > 0]
    assert len(points(picture)) == len(drawn) >= 6
    for path in points(picture):
        x, y = middle(path)
        assert 60 <= x <= 708
        assert 12 <= y <= 286
    for line in picture.iter("polyline"):
        for point in line.get("points").split():
            x, y = map(float, point.split(","))
            assert 59.9 <= x <= 708.1
            assert 11.9 <= y <= 286.1


def test_levels_without_traffic_have_a_roof_and_no_point():
    picture = svg_of([ROWS[0], row("DRAM", 400.0, float("nan"), 4.0)])
    assert len(points(picture)) == 1
    assert len(list(picture.iter("polyline"))) == 2


def test_names_are_text():
    text = roofline_picture([row("L1", 4000.0, 0.01, 4.0, model="<b>&")])
    assert "<b>" not in text


def test_every_model_has_its_marker():
    assert {style.marker for style in MODELS.values()} <= set(_CORNERS)
    square, circle = (
        points(svg_of([row("L1", 4000.0, 0.01, 4.0, model=model)]))[0].get("d").count("L") + 1
        for model in ("mdm", "simulation")
    )
    assert MODELS["mdm"].marker == "s"
    assert MODELS["simulation"].marker == "o"
    assert (square, circle) == (4, 24)


def test_the_palette_of_components_is_that_of_the_plots():
    found = dict(re.findall(r"\.c-(\w+)\{fill:(#\w+)", STYLE))
    assert found == COLOURS
    assert [COLOURS[level.lower()] for level in LEVELS] == list(LEVELS.values())
