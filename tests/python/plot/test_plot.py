"""Pictures: what they show, read back from the axes."""

import itertools
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.container import BarContainer

import warpstack as ws


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def predictions():
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 32))]
    return ws.predict(ws.App(kernels), ws.gpu("pascal-mdm"), ["gpumech", "mdm"])


def bars(ax):
    """Return heights by component and bar."""
    return {c.get_label(): [bar.get_height() for bar in c] for c in ax.containers}


def test_bars_are_the_stack(predictions):
    ax = ws.plot.cpi_stack(predictions)
    heights = bars(ax)
    assert len(heights) == len(ws.models.STACK_COMPONENTS)
    np.testing.assert_allclose(np.sum(list(heights.values()), axis=0), predictions["cpi"])
    np.testing.assert_allclose(heights["MSHR: waiting for MSHRs"], predictions["cpi_mshr"])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["gpumech", "mdm", "gpumech", "mdm"]
    assert ax.get_ylabel() == "cycles per warp instruction of an SM"
    texts = [t.get_text() for t in ax.texts]
    assert "1: strided_gs1" in texts
    assert f"{predictions['ipc'].iloc[0]:.3g}" in texts


def test_draws_on_given_axes(predictions):
    _, (left, right) = plt.subplots(1, 2)
    assert ws.plot.cpi_stack(predictions, right, title="mine", legend=False) is right
    assert right.get_title() == "mine"
    assert right.get_legend() is None
    assert not left.containers


def test_totals(predictions):
    totals = ws.models.application_totals(predictions)
    ax = ws.plot.cpi_stack(totals)
    np.testing.assert_allclose(np.sum(list(bars(ax).values()), axis=0), totals["cpi"])


def test_several_gpus_are_named(predictions):
    other = ws.predict(ws.patterns.stream(blocks=28), ws.gpu("titan-v"), "mdm")
    ax = ws.plot.cpi_stack(pd.concat([predictions, other]))
    assert ax.get_xticklabels()[-1].get_text() == "mdm titan-v"


def test_panels(predictions):
    figure = ws.plot.cpi_stacks(predictions)
    assert [ax.get_title() for ax in figure.axes] == ["1: strided_gs1", "2: strided_gs32"]
    assert len(figure.legends) == 1


@pytest.mark.slow
def test_launches_of_several_applications_stay_apart(predictions, pascal):
    """Two kernels with the launch number 1, and one application twice."""
    other = ws.predict(ws.patterns.stream(blocks=28), pascal)
    both = pd.concat([predictions.iloc[:2], other])
    figure = ws.plot.cpi_stacks(both)
    assert [ax.get_title() for ax in figure.axes] == ["1: strided_gs1", "1: stream"]
    texts = [t.get_text() for t in ws.plot.cpi_stack(both).texts]
    assert {"1: strided_gs1", "1: stream"} <= set(texts)
    figure = ws.plot.cpi_stacks(pd.concat([predictions, predictions]))
    assert [ax.get_title()[0] for ax in figure.axes] == ["1", "2", "1", "2"]
    assert [len(ax.containers[0]) for ax in figure.axes] == [2, 2, 2, 2]


def test_several_gpus_share_the_panel_of_a_launch(predictions, pascal):
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 32))]
    other = ws.predict(ws.App(kernels), pascal.replace(num_sms=14), ["gpumech", "mdm"])
    figure = ws.plot.cpi_stacks(pd.concat([predictions, other]))
    assert [len(ax.containers[0]) for ax in figure.axes] == [4, 4]


@pytest.mark.slow
def test_changes_of_the_gpu_are_named(predictions):
    changed = predictions.assign(gpu_changes="num_sms=56")
    assert ws.plot.cpi_stack(changed).get_title().startswith("pascal-mdm with num_sms=56 (")
    both = pd.concat([predictions.assign(gpu_changes=""), changed])
    figure = ws.plot.cpi_stacks(both)
    assert figure.get_suptitle().startswith("pascal-mdm, pascal-mdm with num_sms=56 (")
    labels = [t.get_text() for t in ws.plot.cpi_stack(both).get_xticklabels()]
    assert labels[0] == "gpumech pascal-mdm"
    assert labels[-1] == "mdm pascal-mdm with num_sms=56"


@pytest.mark.parametrize("column", ["gpu", "model", "ipc", "cpi_noc"])
def test_missing_columns(predictions, column):
    for draw in (ws.plot.cpi_stack, ws.plot.cpi_stacks):
        with pytest.raises(ws.InputError, match=f"there is no column {column}; expected the Data"):
            draw(predictions.drop(columns=column))


def test_other_wrong_frames(predictions):
    for draw in (ws.plot.cpi_stack, ws.plot.cpi_stacks):
        with pytest.raises(ws.InputError, match=r"expected the DataFrame .* got a list"):
            draw([1])
        with pytest.raises(ws.InputError, match="row 1: cpi_l2 = 'x' is not a number"):
            draw(predictions.assign(cpi_l2="x"))
    for column in ("kernel", "name"):
        with pytest.raises(ws.InputError, match=f"there is no column {column}"):
            ws.plot.cpi_stacks(predictions.drop(columns=column))
    assert ws.plot.cpi_stack(predictions.drop(columns="name"))


def test_nothing_is_shown_or_leaked(predictions, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("a plot was shown"))
    before = plt.get_fignums()
    _, ax = plt.subplots()
    ws.plot.cpi_stack(predictions, ax)
    assert len(plt.get_fignums()) == len(before) + 1


def test_nothing_to_draw(predictions):
    for draw in (ws.plot.cpi_stack, ws.plot.cpi_stacks):
        with pytest.raises(ws.InputError, match="no predictions to draw"):
            draw(predictions.iloc[:0])


def test_labels_do_not_overlap(predictions):
    """Bar labels and kernel names keep apart in the picture that the command line draws."""
    figure = ws.plot.cpi_stacks(predictions)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        labels = [t.get_window_extent(renderer) for t in ax.get_xticklabels()]
        # Rotated labels: compare the ends that are anchored at the ticks.
        ends = [box.x1 for box in labels]
        assert np.diff(ends).min() > 8
    titles = [ax.title.get_window_extent(renderer) for ax in figure.axes]
    assert not titles[0].overlaps(titles[1])
    assert not figure.legends[0].get_window_extent(renderer).overlaps(titles[-1])


def test_sizes_of_text_and_the_frame_are_from_the_style_sheet():
    package = Path(ws.__file__).resolve().parent
    files = [*package.glob("plot/*.py"), *package.glob("figures/**/*.py")]
    found = [
        f"{file.name}: {line.strip()}"
        for file in files
        if file.name != "sheet.py"
        for line in file.read_text().splitlines()
        if re.search(r"(font|label)size=\d|spines|bbox_to_anchor|#(222222|dddddd|888888)", line)
    ]
    assert len(files) > 30
    assert not found


def _drawn_beside(draw):
    """Draw on the left of two plain axes, and return what must keep apart."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    draw(left)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    legend = left.get_legend()
    assert legend is not None
    return figure, legend.get_window_extent(renderer), left, right, renderer


DRAWINGS = {
    "cpi_stack": lambda g, ax: ws.plot.cpi_stack(g["rows"], ax),
    "roofline": lambda g, ax: ws.plot.roofline(ws.models.roofline(g["kernel"], "pascal-mdm"), ax),
    "curves": lambda g, ax: ws.plot.curves(g["sweep"], "num_sms", "ipc", ax),
    "dvfs": lambda g, ax: ws.plot.dvfs(ws.models.dvfs(g["kernel"], "pascal-mdm", [0.7, 1.4]), ax),
    "stack_distances": lambda g, ax: ws.plot.stack_distances(
        {"a": ws.memory.reuse_profile(g["kernel"], "pascal-mdm")}, ax
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_legends_lie_over_no_axes_of_a_plain_figure(name, predictions):
    kernel = ws.patterns.strided(4, blocks=28)
    given = {
        "rows": predictions[predictions["kernel"] == 2],
        "kernel": kernel,
        "sweep": ws.sweep(kernel, "pascal-mdm", {"num_sms": [14, 28]}, cache=False),
    }
    figure, legend, left, right, renderer = _drawn_beside(lambda ax: DRAWINGS[name](given, ax))
    for ax in (left, right):
        assert not legend.overlaps(ax.get_window_extent(renderer)), name
    whole = figure.bbox
    for box in (legend, *(ax.get_tightbbox(renderer) for ax in (left, right))):
        assert box.x0 >= whole.x0 - 1
        assert box.y0 >= whole.y0 - 1
        assert box.x1 <= whole.x1 + 1
        assert box.y1 <= whole.y1 + 1


def test_a_layout_that_the_caller_has_chosen_stays(predictions):
    figure, ax = plt.subplots(layout="tight")
    engine = figure.get_layout_engine()
    ws.plot.cpi_stack(predictions, ax)
    assert figure.get_layout_engine() is engine


def boxes_of_names(figure, ax):
    """Return the boxes of the names of kernels, of the title, the legend and the axes."""
    figure.canvas.draw()
    names = [text for text in ax.texts if ":" in text.get_text()]
    found = [text.get_window_extent() for text in names]
    return found, ax.title.get_window_extent(), ax.get_legend().get_window_extent(), ax.bbox


@pytest.mark.parametrize(("width", "columns"), [(3.5, 1), (7, 2), (6.4, 2)])
def test_cpi_stacks_in_the_column_of_a_paper(predictions, width, columns):
    rows = pd.concat([predictions, predictions.assign(kernel=9, name="void f<float>(int)" * 3)])
    figure, axes = plt.subplots(1, columns, figsize=(width, 2.8), squeeze=False)
    for ax in axes.flat:
        ws.plot.cpi_stack(rows, ax)
    for ax in axes.flat:
        names, title, legend, inside = boxes_of_names(figure, ax)
        assert len(names) >= 2
        assert not any(a.overlaps(b) for a, b in itertools.combinations(names, 2))
        assert not any(name.overlaps(title) or name.overlaps(legend) for name in names)
        assert not legend.overlaps(inside)
        assert title.x0 >= 0
        height = ax.yaxis.label.get_window_extent()
        assert height.y0 >= 0
        assert height.y1 <= figure.bbox.y1
    plt.close(figure)


def test_times_are_the_lengths_of_their_bars():
    app = ws.App([ws.patterns.strided(gs=gs, blocks=4, iterations=2) for gs in (1, 8)], "two")
    table = pd.concat([ws.predict(app, gpu, ["mdm"]) for gpu in ("pascal-mdm", "a100")])
    ax = ws.plot.time_stack(table)
    ends = np.zeros(len(table))
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            ends += [bar.get_width() for bar in bars]
    np.testing.assert_allclose(ends, table["time_us"])
    shown = [text.get_text() for text in ax.texts]
    assert shown == [f"{time:.3g}" for time in table["time_us"]]
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()][-1].endswith(
        "a100"
    )
    with pytest.raises(ws.InputError, match="no predictions to draw"):
        ws.plot.time_stack(table.iloc[:0])
    with pytest.raises(ws.InputError, match="time_us"):
        ws.plot.time_stack(table.drop(columns="time_us"))


@pytest.mark.parametrize("style", ["notebook", "paper", "dark"])
def test_samples_have_error_bars(predictions, style):
    """The CPI is inverse to the IPC: 20 % less of it is a quarter more CPI."""
    ipc = predictions["ipc"]
    sampled = predictions.assign(ipc_low=0.8 * ipc, ipc_high=1.25 * ipc)
    sampled.loc[sampled.index[0], ["ipc_low", "ipc_high"]] = np.nan
    ax = ws.plot.cpi_stack(sampled, style=style)
    (lines,) = [c for c in ax.collections if len(c.get_segments()) == len(sampled) - 1]
    found = np.sort([segment[:, 1] for segment in lines.get_segments()], axis=1)
    cpi = predictions["cpi"].to_numpy()[1:]
    np.testing.assert_allclose(found, np.transpose([0.8 * cpi, 1.25 * cpi]))
    ax.figure.canvas.draw()
    for bar in found[:, 1]:
        assert bar < ax.get_ylim()[1]
    # The numbers stand above the bars' ends.
    texts = {t.get_text(): t.xy[1] for t in ax.texts}
    for value, top in zip(ipc.to_numpy()[1:], found[:, 1], strict=True):
        assert texts[f"{value:.3g}"] >= top - 1e-9
    assert not ws.plot.cpi_stack(predictions).collections


@pytest.mark.parametrize("style", ["notebook", "paper", "dark"])
def test_times_of_samples_have_error_bars(predictions, style):
    """A launch of 2 us takes as long in any case; only the rest of the time is inverse to the IPC."""
    predictions = predictions.drop(columns=["time_us_low", "time_us_high"])
    ipc, time = predictions["ipc"], predictions["time_us"]
    sampled = predictions.assign(
        ipc_low=0.8 * ipc, ipc_high=1.25 * ipc, time_us=time + 2, launch_us=2.0
    )
    sampled.loc[sampled.index[0], ["ipc_low", "ipc_high"]] = np.nan
    ax = ws.plot.time_stack(sampled, style=style)
    (lines,) = [c for c in ax.collections if len(c.get_segments()) == len(sampled) - 1]
    found = np.sort([segment[:, 0] for segment in lines.get_segments()], axis=1)
    work = time.to_numpy()[1:]
    np.testing.assert_allclose(found, 2 + np.transpose([0.8 * work, 1.25 * work]))
    ax.figure.canvas.draw()
    assert found.max() < ax.get_xlim()[1]
    # The numbers stand beyond the bars' ends.
    numbers = [text for text in ax.texts if text.get_text()][1:]
    for number, end in zip(numbers, found[:, 1], strict=True):
        assert number.xy[0] >= end - 1e-9
    assert not ws.plot.time_stack(predictions).collections


@pytest.mark.parametrize("style", ["notebook", "paper", "dark"])
def test_ranges_of_times_are_error_bars(predictions, style):
    """What reaches beyond 2.5 times the longest time does not squeeze the others."""
    time = predictions["time_us"]
    ranged = predictions.assign(time_us_low=0.5 * time, time_us_high=1.5 * time)
    ax = ws.plot.time_stack(ranged, style=style)
    (lines,) = [c for c in ax.collections if len(c.get_segments()) == len(ranged)]
    found = np.sort([segment[:, 0] for segment in lines.get_segments()], axis=1)
    np.testing.assert_allclose(found, np.transpose([0.5 * time, 1.5 * time]))
    ax.figure.canvas.draw()
    assert found.max() < ax.get_xlim()[1]
    far = ws.plot.time_stack(ranged.assign(time_us_high=40 * time), style=style)
    assert far.get_xlim()[1] == pytest.approx(1.12 * 2.5 * time.max())


def test_bars_of_launches_that_were_sampled():
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 4), (2, 32))]
    rows = ws.predict(ws.App(kernels), "pascal-mdm", "mdm", sample_sms=0.25)
    assert {"ipc_low", "ipc_high"} <= set(rows)
    assert ws.plot.cpi_stack(rows).collections
    assert ws.plot.time_stack(rows).collections
    assert all(ax.collections for ax in ws.plot.cpi_stacks(rows).axes)


def test_roofs_name_several_kernels():
    kernels = [ws.patterns.strided(gs, blocks=4, launch_id=gs) for gs in (1, 4, 8)]
    ax = ws.plot.roofline(ws.models.roofline(ws.App(kernels), "pascal-mdm", ["mdm"]))
    found = [text.get_text() for text in ax.texts]
    assert {kernel.short_name for kernel in kernels} <= set(found)
    one = ws.plot.roofline(ws.models.roofline(kernels[0], "pascal-mdm", ["mdm"]))
    assert kernels[0].short_name not in [text.get_text() for text in one.texts]


def test_clocks_may_be_in_any_order():
    table = ws.models.dvfs(
        ws.patterns.strided(gs=4, blocks=4), "pascal-mdm", [0.7, 1.0], ["mdm", "gpumech"]
    )
    usual = ws.plot.dvfs(table)
    for other in (table.sort_values("clock_ghz"), table[::-1]):
        ax = ws.plot.dvfs(other)
        drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
        assert drawn == {line.get_label(): line.get_xydata().tolist() for line in usual.lines}
    (nominal,) = [y for x, y in usual.lines[0].get_xydata() if x == ws.gpu("pascal-mdm").clock_ghz]
    assert nominal == 1
