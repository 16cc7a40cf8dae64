"""Pictures for papers, slides and dark notebooks: room for the data, no text over another, colours apart."""

import itertools
import re
import shutil

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Affine2D
from pictures import PICTURES, X, Y, figure_of, predictions, sweep

import warpstack as ws
from warpstack._util import choices
from warpstack.plot import looks, saving
from warpstack.plot.components import COLOURS, HATCHES
from warpstack.plot.press import data_share


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def corners(text):
    """Return the corners of a text's box, turned as it is."""
    angle, shown = text.get_rotation(), text.get_window_extent()
    if angle == 0:
        return shown.corners()[[0, 1, 3, 2]]
    middle = (shown.x0 + shown.x1) / 2, (shown.y0 + shown.y1) / 2
    renderer = text.figure.canvas.get_renderer()
    lines = text.get_text().split("\n")
    sizes = [
        renderer.get_text_width_height_descent(line, text.get_fontproperties(), ismath=False)
        for line in lines
    ]
    width = max(size[0] for size in sizes)
    height = sizes[0][1] * (1 + 0.95 * (len(lines) - 1))
    box = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * (width / 2, height / 2)
    return Affine2D().rotate_deg(angle).translate(*middle).transform(box)


def overlap(a, b):
    """Return whether two rectangles overlap: no line along a side of either separates them."""
    for box in (a, b):
        for start, end in itertools.pairwise([*box, box[0]]):
            normal = np.array([end[1] - start[1], start[0] - end[0]])
            normal = normal / (np.hypot(*normal) or 1)
            if min(a @ normal) > max(b @ normal) - 1 or min(b @ normal) > max(a @ normal) - 1:
                return False
    return True


def texts(figure):
    """Return the texts that a reader sees."""
    found = []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                for label in (tick.label1, tick.label2):
                    label.set_gid("seen" if low <= tick.get_loc() <= high else "outside")
    for text in figure.findobj(Text):
        if not (text.get_visible() and text.get_text().strip()) or text.get_gid() == "outside":
            continue
        if isinstance(text, Annotation) and not text._check_xy():
            continue
        found.append(text)
    return [text for text in found if text.get_window_extent().width]


def test_overlap_of_turned_boxes():
    box = np.array([[0, 0], [10, 0], [10, 4], [0, 4]], float)
    assert overlap(box, box + 5 * np.array([1, 0]))
    assert not overlap(box, box + np.array([0, 4]))
    turned = Affine2D().rotate_deg(45).transform(box)
    assert overlap(box, turned)
    assert not overlap(box, turned - np.array([9, 0]))


@pytest.mark.parametrize("width", [3.3, 7])
@pytest.mark.parametrize("name", PICTURES)
def test_paper(name, width):
    figure = figure_of(PICTURES[name](style="paper", width_inches=width))
    figure.canvas.draw()
    assert figure.get_figwidth() == pytest.approx(width)
    rows = len({round(ax.bbox.y0) for ax in figure.axes})
    most = 1.45 + 0.15 * (rows - 1)  # the height of a page is 9 inches
    assert figure.get_figheight() < most * max(width, 3.3)
    assert data_share(figure) >= 2 / 3
    seen = texts(figure)
    assert seen
    for text in seen:
        assert 7 <= text.get_fontsize() <= 8, text
        box = text.get_window_extent()
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.width + 1, text
        assert box.y1 <= figure.bbox.height + 1, text
        assert not re.search(r"\b(mdm|gpumech|closed_network)\b", text.get_text()), text
    boxes = [corners(text) for text in seen]
    for (one, a), (other, b) in itertools.combinations(zip(seen, boxes, strict=True), 2):
        assert not overlap(a, b), (one, other)
    inside = [ax.bbox for ax in figure.axes]
    for legend in figure.legends:
        assert not any(legend.get_window_extent().overlaps(box) for box in inside)


def test_components_are_explained_from_the_first_to_the_last():
    for name in ("cpi_stack", "time_stack", "axis_stacks"):
        legend = PICTURES[name](style="paper").figure.legends[0]
        names = [text.get_text() for text in legend.get_texts()]
        columns = legend._ncols
        # Matplotlib fills column after column.
        rows = [names[i : i + -(-len(names) // columns)] for i in range(0, len(names), 2)]
        in_rows = [row[i] for i in range(2) for row in rows if i < len(row)]
        known = [part.upper() for part in COLOURS]
        assert in_rows == [part for part in known if part in in_rows], name


@pytest.mark.parametrize("style", ["notebook", "paper"])
def test_names_of_roofs_stand_along_them_and_over_no_point(style):
    ax = PICTURES["roofline"](style=style)
    ax.figure.canvas.draw()
    names = [text for text in ax.texts if "GB/s" in text.get_text()]
    assert len(names) == 3
    points = np.concatenate([
        ax.transData.transform(part.get_offsets())
        for part in ax.collections if len(part.get_offsets())
    ])  # fmt: skip
    for name in names:
        x, y = name.get_position()
        start, end = ax.transData.transform([(x, y), (2 * x, 2 * y)])
        slope = np.degrees(np.arctan2(*(end - start)[::-1]))
        angle = name.get_transform_rotates_text() and name.get_rotation()
        assert angle == pytest.approx(slope, abs=0.5)
        box = Path(corners(name))
        assert not box.contains_points(points).any(), name


def test_agreement_has_panels_side_by_side_where_there_is_room():
    for width, rows in ((3.3, 2), (7, 1)):
        figure = PICTURES["agreement of many"](style="paper", width_inches=width)
        figure.canvas.draw()
        points, bars = figure.axes
        assert len({round(ax.bbox.y0) for ax in (points, bars)}) == rows
        assert min(ax.bbox.height for ax in figure.axes) >= figure.dpi
        assert [t.get_text() for t in figure.legends[0].get_texts()].count("MDM") == 1
        assert (points.get_ylabel(), points.get_xlabel()) == ("", "")
        inside = [text.get_text() for text in (*points.texts, *bars.texts)]
        assert {"cycles, predicted", "cycles, reference", "error of the prediction (%)"} <= {
            *inside
        }
        tops = [bar.get_window_extent().y1 for bar in bars.patches]
        (name,) = [text for text in bars.texts if text.get_text().startswith("error")]
        assert max(tops) < name.get_window_extent().y0
    usual = PICTURES["agreement"]()
    assert usual.get_suptitle() == "cycles against reference"
    assert usual.axes[0].get_aspect() == 1


@pytest.mark.parametrize("name", ["cpi_stack", "curves", "sensitivity"])
def test_slides(name):
    figure = figure_of(PICTURES[name](style="slides"))
    figure.canvas.draw()
    assert figure.get_figwidth() == 10
    assert data_share(figure) >= 2 / 3
    assert min(text.get_fontsize() for text in texts(figure)) >= 14


@pytest.mark.parametrize("name", ["cpi_stack", "curves", "dvfs"])
def test_dark(name):
    before = dict(mpl.rcParams)
    drawn = PICTURES[name](style="dark")
    figure = figure_of(drawn)
    figure.canvas.draw()
    plain = figure_of(PICTURES[name]())
    assert tuple(figure.get_size_inches()) == tuple(plain.get_size_inches())
    assert dict(mpl.rcParams) == before
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert np.median(pixels) < 40
    for text in texts(figure):
        if text.get_bbox_patch() is None:
            assert min(mpl.colors.to_rgb(text.get_color())) > 0.6, text


def test_names_are_those_of_the_literature_and_the_callers_elsewhere():
    paper = ws.plot.curves(sweep(), X, where={Y: 480}, style="paper").figure.legends[0]
    assert [t.get_text() for t in paper.get_texts()] == ["GPUMech", "MDM", "closed network"]
    usual = ws.plot.curves(sweep(), X, where={Y: 480}).get_legend()
    assert [t.get_text() for t in usual.get_texts()] == ["gpumech", "mdm", "closed_network"]
    heat = ws.plot.heat_map(sweep(), X, Y, model="mdm", style="paper")
    assert (heat.get_xlabel(), heat.get_ylabel()) == ("SMs", "DRAM bandwidth (GB/s)")


def test_axes_of_the_caller_take_a_style_but_no_width():
    figure, ax = plt.subplots(figsize=(4, 3))
    assert ws.plot.cpi_stack(predictions(), ax, style="paper") is ax
    figure.canvas.draw()
    assert tuple(figure.get_size_inches()) == (4, 3)
    assert ax.get_legend().get_window_extent().y1 <= ax.bbox.y0
    with pytest.raises(ws.InputError, match="width_inches: the axes given have a figure"):
        ws.plot.cpi_stack(predictions(), ax, width_inches=3.3)


def test_a_notebook_picture_of_a_width():
    figure = ws.plot.curves(sweep(), X, where={Y: 480}, width_inches=5).figure
    assert figure.get_figwidth() == 5


@pytest.mark.parametrize("name", PICTURES)
def test_wrong_styles(name):
    with pytest.raises(ws.InputError, match=r"style = .* is not one of"):
        PICTURES[name](style={})
    with pytest.raises(ws.InputError, match=r"style = 'papers'.*paper"):
        PICTURES[name](style="papers")
    for width in (0, 1.9, 41, 10**5000, float("nan"), "3.3", True):
        with pytest.raises(ws.InputError, match=r"width_inches.* number"):
            PICTURES[name](width_inches=width)


@pytest.mark.parametrize("ending", [".pdf", ".svg"])
def test_fonts_are_in_the_file(tmp_path, ending):
    file = tmp_path / f"picture{ending}"
    ws.plot.curves(sweep(), X, where={Y: 480}, style="paper").figure.savefig(file)
    content = file.read_bytes()
    if ending == ".svg":
        assert b"<text" not in content
        assert b"<use" in content
    else:
        assert b"/FontFile2" in content  # TrueType
        assert b"/Type3" not in content


def test_pgf_needs_tex(tmp_path, monkeypatch):
    figure = ws.plot.curves(sweep(), X, where={Y: 480}, style="paper").figure
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        ws.InputError, match=r"x\.pgf: PGF needs a TeX engine.*install TeX Live, or"
    ):
        figure.savefig(tmp_path / "x.pgf")
    # A program that is there and fails does not answer.
    monkeypatch.setattr(shutil, "which", lambda name: shutil.__file__)
    with pytest.raises(ws.InputError, match="PGF needs a TeX engine"):
        saving.check_kind("x.pgf")
    saving.check_kind("x.pdf")


#: Severe forms of colour blindness on linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
BLIND = {
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "none": np.eye(3),
}


def lab(colour, blindness):
    """Return a colour as seen in CIELAB (D65)."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(BLIND[blindness]) @ linear, 0, 1)
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = (np.array(to_xyz) @ linear) / (0.95047, 1, 1.08883)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_cielab():
    np.testing.assert_allclose(lab("#ffffff", "none"), (100, 0, 0), atol=0.02)
    np.testing.assert_allclose(lab("#ff0000", "none"), (53.24, 80.09, 67.20), atol=0.05)


@pytest.mark.parametrize("blindness", BLIND)
def test_components_are_told_apart(blindness):
    """Two parts of a stack have colours at least 15 apart, or different hatches."""
    for one, other in itertools.combinations(COLOURS, 2):
        distance = np.linalg.norm(lab(COLOURS[one], blindness) - lab(COLOURS[other], blindness))
        assert distance >= 15 or HATCHES[one] != HATCHES[other], (one, other, distance)


def test_timeline_has_the_hatches_of_stacks():
    ax = PICTURES["timeline"]()
    assert [part.get_hatch() or "" for part in ax.collections] == list(HATCHES.values())


def test_the_command_line_names_all_styles():
    assert tuple(looks.LOOKS) == choices.STYLES
