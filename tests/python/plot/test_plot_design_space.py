"""Pictures of design spaces: what they show, read back from the axes."""

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.plot.design_space import pareto_front
from warpstack.plot.style import MODELS

X, Y = "num_sms", "dram_bandwidth_gbs"
AXES = {X: [14, 28, 56], Y: [240, 480]}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.strided(32, blocks=56, iterations=2)


@pytest.fixture(scope="module")
def table(kernel, pascal):
    """Return a sweep with a simulation at each point."""
    swept = ws.sweep(kernel, pascal, AXES, ["gpumech", "mdm"])
    points = swept.drop_duplicates("point")[["point", *AXES]]
    parts = []
    for _, point in points.iterrows():
        changed = pascal.replace(num_sms=int(point[X]), dram_bandwidth_gbs=point[Y])
        part = ws.simulate(kernel, changed).to_frame()
        for position, (name, value) in enumerate(point.items()):
            part.insert(position, name, value)
        parts.append(part)
    return pd.concat([swept, *parts], ignore_index=True)


def value(table, model, metric, **at):
    rows = table[table["model"] == model]
    for field, wanted in at.items():
        rows = rows[rows[field] == wanted]
    (found,) = rows[metric]
    return found


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines() if line.get_label()[0] != "_"}


def test_stacks_along_an_axis(table):
    ax = ws.plot.axis_stacks(table, X, where={Y: 480})
    heights = np.sum([[bar.get_height() for bar in part] for part in ax.containers], axis=0)
    names = [label.get_text() for label in ax.get_xticklabels()]
    # Groups in the order of the axis; in each the simulation first.
    assert names[:3] == ["simulation", "gpumech", "mdm"]
    expected = [value(table, m, "cpi", **{X: n, Y: 480}) for n in (14, 28, 56) for m in names[:3]]
    order = np.argsort([bar.get_x() for bar in ax.containers[0]])
    np.testing.assert_allclose(heights[order], expected)
    mshr = ax.containers[ws.models.STACK_COMPONENTS.index("mshr")]
    np.testing.assert_allclose(
        [mshr[i].get_height() for i in order][-1],
        value(table, "mdm", "cpi_mshr", **{X: 56, Y: 480}),
    )
    assert [t.get_text() for t in ax.texts] == ["14", "28", "56"]
    assert ax.get_title().endswith("above the groups: num_sms")
    # Neighbours in a stack differ in grey print, too.
    hatches = [part[0].get_hatch() or "" for part in ax.containers]
    assert all(a != b for a, b in itertools.pairwise(hatches))


def test_normalised_stacks(table):
    ax = ws.plot.axis_stacks(table, X, where={Y: 480}, normalise_to="simulation")
    first = min(range(9), key=lambda i: ax.containers[0][i].get_x())
    assert sum(part[first].get_height() for part in ax.containers) == pytest.approx(1)
    assert ax.get_ylabel() == "CPI relative to simulation, first group"
    with pytest.raises(ws.InputError, match=r"normalise_to = 'mt' has no point with num_sms = 14"):
        ws.plot.axis_stacks(table, X, where={Y: 480}, normalise_to="mt")


def test_curves(table):
    ax = ws.plot.curves(table, X, "cycles", where={Y: 240})
    drawn = lines(ax)
    assert list(drawn) == ["simulation", "gpumech", "mdm"]
    for model, line in drawn.items():
        assert line.get_xdata().tolist() == [14, 28, 56]
        expected = [value(table, model, "cycles", **{X: n, Y: 240}) for n in (14, 28, 56)]
        assert line.get_ydata().tolist() == expected
        assert line.get_color() == MODELS[model].colour
        assert line.get_marker() == MODELS[model].marker
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("num_sms", "cycles")
    ax = ws.plot.curves(table, Y, "instructions / cycles", where={X: 28})
    assert ax.get_xlabel() == "dram_bandwidth_gbs (GB/s)"
    expected = [value(table, "mdm", "ipc", **{X: 28, Y: y}) for y in (240, 480)]
    np.testing.assert_allclose(lines(ax)["mdm"].get_ydata(), expected)


def test_speedup(table):
    ax = ws.plot.speedup(table, X, baseline={X: 28, Y: 480})
    for model in ("simulation", "gpumech", "mdm"):
        base = value(table, model, "cycles", **{X: 28, Y: 480})
        expected = [base / value(table, model, "cycles", **{X: n, Y: 480}) for n in (14, 28, 56)]
        np.testing.assert_allclose(lines(ax)[model].get_ydata(), expected)
    assert ax.get_ylabel() == "speedup over num_sms = 28, dram_bandwidth_gbs = 480"
    ax = ws.plot.speedup(table, X, baseline={X: 28, Y: 480}, model="simulation")
    base = value(table, "simulation", "cycles", **{X: 28, Y: 480})
    assert lines(ax)["mdm"].get_ydata()[0] == pytest.approx(
        base / value(table, "mdm", "cycles", **{X: 14, Y: 480})
    )


def test_heat_map(table):
    ax = ws.plot.heat_map(table, X, Y, model="mdm", limits=(0, 50))
    cells = ax.images[0].get_array()
    for (row, y), (column, x) in itertools.product(enumerate((240, 480)), enumerate((14, 28, 56))):
        ipc = value(table, "mdm", "ipc", **{X: x, Y: y})
        assert cells[row, column] == ipc
        (text,) = [t.get_text() for t in ax.texts if t.get_position() == (column, row)]
        assert text == f"{ipc:.3g}"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["14", "28", "56"]
    assert ax.get_ylabel() == "dram_bandwidth_gbs (GB/s)"
    assert ax.images[0].get_clim() == (0, 50)
    assert ax.figure.axes[1].get_ylabel() == "IPC (warp instructions per cycle)"
    relative = ws.exploration.speedups(table, {X: 28, Y: 480}, model="simulation")
    ax = ws.plot.heat_map(relative, X, Y, "speedup", model="simulation")
    assert ax.images[0].get_array()[1, 1] == 1


def test_heat_map_with_a_hole(table):
    holed = table[~((table[X] == 28) & (table[Y] == 240))]
    cells = ws.plot.heat_map(holed, X, Y, model="mdm").images[0].get_array()
    assert cells.mask.tolist() == [[False, True, False], [False, False, False]]


def test_bottlenecks(table):
    ax = ws.plot.bottlenecks(table, X, Y, model="mdm")
    parts = [f"cpi_{part}" for part in ws.models.STACK_COMPONENTS]
    assert len(ax.patches) == 6
    for patch, text in zip(ax.patches, ax.texts, strict=True):
        column, row = round(patch.get_x() + 0.5), round(patch.get_y() + 0.5)
        at = {X: AXES[X][column], Y: AXES[Y][row]}
        stack = {part: value(table, "mdm", part, **at) for part in parts}
        largest = max(stack, key=stack.get)
        share = 100 * stack[largest] / sum(stack.values())
        assert patch.get_label() == largest.removeprefix("cpi_")
        assert text.get_text() == f"{largest.removeprefix('cpi_')}\n{share:.0f} %"


def test_pareto(table, pascal):
    ax = ws.plot.pareto(table, "num_sms * l1_size_kib + dram_bandwidth_gbs", gpu=pascal)
    assert ax.get_xlabel() == "num_sms * l1_size_kib + dram_bandwidth_gbs"
    front = lines(ax)["mdm, front"]
    points = [
        (x * pascal.l1_size_kib + y, value(table, "mdm", "ipc", **{X: x, Y: y}))
        for x, y in itertools.product(*AXES.values())
    ]
    best = [
        (c, v)
        for c, v in points
        if not any((d <= c and w >= v) and (d < c or w > v) for d, w in points)
    ]
    drawn = zip(front.get_xdata(), front.get_ydata(), strict=True)
    assert [tuple(map(float, point)) for point in drawn] == sorted(best)
    with pytest.raises(
        ws.InputError, match="cost: l1_size_kib is not an axis of this sweep; give gpu="
    ):
        ws.plot.pareto(table, "num_sms * l1_size_kib")


@pytest.mark.parametrize("maximise", [True, False])
def test_pareto_front_is_what_nothing_beats(maximise):
    rng = np.random.default_rng(1)
    for _ in range(50):
        cost, metric = rng.integers(0, 6, (2, 12))
        gain = metric if maximise else -metric
        expected = [
            not any(
                cost[j] <= cost[i]
                and gain[j] >= gain[i]
                and (cost[j] < cost[i] or gain[j] > gain[i])
                for j in range(12)
            )
            for i in range(12)
        ]
        assert pareto_front(cost, metric, maximise=maximise).tolist() == expected


def test_tornado(kernel, pascal):
    points = ws.exploration.one_at_a_time(pascal, {X: [14, 56], "l1_mshrs": [32, 512]})
    table = ws.sweep(kernel, pascal, points, ["gpumech", "mdm"])
    ax = ws.plot.sensitivity(table, "cycles")
    rows = ws.exploration.swings(table, "cycles")
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert set(labels) == {X, "l1_mshrs"}
    for container, model in zip(ax.containers, ["gpumech", "mdm"], strict=True):
        drawn = sorted(bar.get_width() for bar in container)
        np.testing.assert_allclose(drawn, sorted(rows[rows["model"] == model]["swing"]))
        assert mpl.colors.to_hex(container[0].get_facecolor()) == MODELS[model].colour.lower()
    # The most important field of all stands at the top.
    assert labels[0] == rows["field"].iloc[0]
    assert ax.yaxis_inverted()
    assert ax.get_xlabel() == "cycles"


def test_sobol_bars(kernel, pascal):
    points = ws.exploration.samples.saltelli({X: (14, 56), Y: (240.0, 960.0)}, 8, seed=1)
    table = ws.sweep(kernel, pascal, points)
    ax = ws.plot.sensitivity(table, method="sobol")
    rows = ws.exploration.sobol_indices(table)
    (bars,) = [c for c in ax.containers if isinstance(c, mpl.container.BarContainer)]
    assert [bar.get_width() for bar in bars] == rows["total"].tolist()
    assert [t.get_text().split()[0] for t in ax.get_yticklabels()] == rows["field"].tolist()
    with pytest.raises(ws.InputError, match="Sobol indices have none"):
        ws.plot.sensitivity(table, method="sobol", baseline={X: 14})
    with pytest.raises(ws.InputError, match="method = 'variance' is not one of swing, sobol"):
        ws.plot.sensitivity(table, method="variance")


def test_texts_as_values(kernel, pascal):
    table = ws.sweep(kernel, pascal, {"scheduler": ["lrr", "gto"], "issue_width": [1, 2]})
    ax = ws.plot.curves(table, "scheduler", where={"issue_width": 1})
    assert [t.get_text() for t in ax.get_xticklabels()] == ["lrr", "gto"]
    ax = ws.plot.heat_map(table, "scheduler", "issue_width", "cpi")
    assert ax.images[0].get_array()[0, 0] == value(
        table, "closed_network", "cpi", scheduler="lrr", issue_width=1
    )


def test_axes_that_move_together(kernel, pascal):
    """NoC and DRAM bandwidth grow together in MDM's Figure 14."""
    points = [{Y: 480 * f, "noc_bandwidth_gbs": 1050 * f} for f in (0.5, 1, 2)]
    ax = ws.plot.curves(ws.sweep(kernel, pascal, points), Y)
    assert ax.get_xlabel() == "dram_bandwidth_gbs (GB/s), with noc_bandwidth_gbs"
    points[1]["noc_bandwidth_gbs"] = 4000
    with pytest.raises(ws.InputError, match="noc_bandwidth_gbs has 3 values; choose one"):
        ws.plot.curves(ws.sweep(kernel, pascal, points), Y)


DRAWING = {
    "axis_stacks": lambda t, ax: ws.plot.axis_stacks(t, X, ax, where={Y: 480}, title="mine"),
    "curves": lambda t, ax: ws.plot.curves(t, X, "ipc", ax, where={Y: 480}, title="mine"),
    "speedup": lambda t, ax: ws.plot.speedup(t, X, ax, baseline={X: 28, Y: 480}, title="mine"),
    "heat_map": lambda t, ax: ws.plot.heat_map(t, X, Y, "ipc", ax, model="mdm", title="mine"),
    "bottlenecks": lambda t, ax: ws.plot.bottlenecks(t, X, Y, ax, model="mdm", title="mine"),
    "pareto": lambda t, ax: ws.plot.pareto(t, X, ax, title="mine"),
    "sensitivity": lambda t, ax: ws.plot.sensitivity(t, "ipc", ax, title="mine"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWING)
def test_draws_on_given_axes(name, table, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("a plot was shown"))
    plt.close("all")  # what other tests left open
    _, (left, right) = plt.subplots(1, 2)
    assert DRAWING[name](table, right) is right
    assert "mine" in right.get_title()
    assert right.get_xlabel() or name == "axis_stacks"
    assert right.get_ylabel() or name == "sensitivity"
    assert not left.has_data()
    assert len(plt.get_fignums()) == 1
    right.figure.canvas.draw()


@pytest.mark.parametrize("name", DRAWING)
def test_nothing_to_draw(name, table):
    with pytest.raises(ws.InputError, match="no points to look at"):
        DRAWING[name](table.iloc[:0], None)
    with pytest.raises(ws.InputError, match="there is no column model"):
        DRAWING[name](table.drop(columns="model"), None)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda t: ws.plot.curves(t, "l1_mshrs"),
            "this sweep: there is no axis 'l1_mshrs'; there are",
        ),
        (lambda t: ws.plot.curves(t, X), r"dram_bandwidth_gbs has 2 values; choose one: where=\{"),
        (lambda t: ws.plot.heat_map(t, X, X), "num_sms is given twice; choose two axes"),
        (
            lambda t: ws.plot.heat_map(t, X, Y),
            "models simulation, gpumech, mdm; choose one: model=",
        ),
        (lambda t: ws.plot.heat_map(t, X, Y, model="mt"), "the table: there is no model 'mt'"),
        (
            lambda t: ws.plot.curves(t, X, where={Y: 1}),
            "dram_bandwidth_gbs = 1 is not a value of the",
        ),
        (lambda t: ws.plot.curves(t, X, "name", where={Y: 240}), "there is no name 'name'"),
    ],
)
def test_wrong_arguments(table, draw, message):
    with pytest.raises(ws.InputError, match=message):
        draw(table)


def test_models_look_the_same_everywhere(table):
    """Each model of the package has its own look, in every picture."""
    others = {"simulation", "crisp", "ppt_gpu_mem"}
    present = {name: style for name, style in MODELS.items() if name != "warpstack"}
    assert set(present) == {*ws.models.names(), *others}
    assert MODELS["warpstack"] is MODELS["closed_network"]  # a former name
    assert len({(style.colour, style.marker) for style in present.values()}) == len(present)
    assert len({style.marker for style in present.values()}) == len(present)
    reference = ws.timing.as_table([ws.simulate(ws.patterns.stream(blocks=28), "pascal-mdm")])
    predicted = ws.predict(ws.patterns.stream(blocks=28), "pascal-mdm", ["mdm", "gpumech"])
    validated = ws.validate(predicted, reference)
    bars = {c.get_label(): c[0] for c in ws.plot.errors(validated).containers}
    for model in ("mdm", "gpumech"):
        assert mpl.colors.to_hex(bars[model].get_facecolor()) == MODELS[model].colour.lower()
        assert bars[model].get_hatch() == MODELS[model].hatch
