"""Points of a sweep as a whole: sums of kernels, speedups, sensitivities with known answers."""

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.exploration.totals import slice_of

AXES = {"num_sms": [14, 28, 56], "dram_bandwidth_gbs": [240, 480]}


@pytest.fixture(scope="module")
def app():
    return ws.App([ws.patterns.strided(gs, blocks=56, launch_id=i) for i, gs in ((1, 1), (2, 32))])


@pytest.fixture(scope="module")
def table(app):
    return ws.sweep(app, "pascal-mdm", AXES, ["gpumech", "mdm"])


def of(points, function, **columns):
    """Return a table as that of a sweep, whose cycles are a function of the point's values."""
    rows = pd.DataFrame(points)
    rows.insert(0, "point", range(len(rows)))
    rows = rows.assign(gpu="made", model="mdm", kernels=1, instructions=100.0, **columns)
    rows["cycles"] = [float(function(*point.values())) for point in points]
    return rows.assign(ipc=rows["instructions"] / rows["cycles"])


@pytest.mark.slow
def test_point_totals_are_application_totals(app, table, pascal):
    totals = ws.exploration.point_totals(table)
    assert len(totals) == 6 * 2
    for _, row in totals.iterrows():
        gpu = pascal.replace(**{axis: row[axis] for axis in AXES})
        alone = ws.models.application_totals(ws.predict(app, gpu, [row["model"]])).iloc[0]
        assert row["kernels"] == 2
        for column in ("instructions", "cycles", "ipc", "cpi", "cpi_mshr", "cpi_queue"):
            assert row[column] == pytest.approx(alone[column], rel=1e-12), column
    pd.testing.assert_frame_equal(ws.exploration.point_totals(totals), totals)


def test_applications_stay_apart(app, pascal):
    apps = {"two": app, "one": ws.patterns.stream(blocks=28)}
    table = ws.sweep(apps, pascal, {"num_sms": [14, 28]})
    totals = ws.exploration.point_totals(table)
    assert totals[["app", "kernels"]].drop_duplicates().to_numpy().tolist() == [
        ["two", 2],
        ["one", 1],
    ]
    for draw in (lambda: ws.plot.curves(table, "num_sms"), lambda: ws.exploration.swings(table)):
        with pytest.raises(
            ws.InputError, match=r"has 2 applications; choose one: table\[table\['app'\] == 'two'\]"
        ):
            draw()
    faster = ws.exploration.speedups(table, {"num_sms": 14})
    assert (faster["speedup"][faster["num_sms"] == 14] == 1).all()


def test_failed_points_are_left_out(app, table, pascal):
    points = [{"num_sms": 28}, {"num_sms": 0}, {"num_sms": 56}]
    with_failure = ws.sweep(app, pascal, points)
    totals = ws.exploration.point_totals(with_failure)
    assert totals["point"].tolist() == [0, 2]
    failed = with_failure[with_failure["point"] == 1]
    with pytest.raises(
        ws.InputError, match="no points to look at; all failed, the first with: GPU"
    ):
        ws.exploration.point_totals(failed)
    # One failed kernel: what is left of the point is not a sum of the application.
    table = table.assign(error="")
    table.loc[0, "error"] = "broken"
    assert len(ws.exploration.point_totals(table)) == 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="cycles"), "there is no column cycles; expected the DataFrame"),
        (lambda t: pd.concat([t, t]), "point 0 has gpumech of kernel 1 twice"),
        (lambda t: t.iloc[1:], "gpumech at point 0 has 1 kernels, mdm at point 5 has 2 kernels"),
        (lambda t: list(t), "got a list"),
    ],
)
def test_wrong_tables(table, change, message):
    with pytest.raises(ws.InputError, match=message):
        ws.exploration.point_totals(change(table))


def test_speedups(table):
    totals = ws.exploration.speedups(table, {"num_sms": 28, "dram_bandwidth_gbs": 480})
    by = totals.set_index(["model", *AXES])
    for model in ("gpumech", "mdm"):
        base = by.loc[(model, 28, 480), "cycles"]
        assert by.loc[(model, 56, 240), "speedup"] == base / by.loc[(model, 56, 240), "cycles"]
    of_mdm = ws.exploration.speedups(table, {"num_sms": 28, "dram_bandwidth_gbs": 480}, model="mdm")
    by = of_mdm.set_index(["model", *AXES])
    assert by.loc[("gpumech", 28, 480), "speedup"] == (
        by.loc[("mdm", 28, 480), "cycles"] / by.loc[("gpumech", 28, 480), "cycles"]
    )


def test_speedup_is_of_time_not_of_cycles(app, pascal):
    """Twice the clock in as many cycles is twice the performance."""
    totals = ws.exploration.speedups(
        ws.sweep(app, pascal, {"clock_ghz": [1.4, 2.8]}), {"clock_ghz": 1.4}
    )
    cycles, speedup = totals["cycles"], totals["speedup"]
    assert speedup[1] == pytest.approx(2 * cycles[0] / cycles[1])


@pytest.mark.parametrize(
    ("baseline", "model", "message"),
    [
        ({"num_sms": 28}, None, r"dram_bandwidth_gbs has 2 values; choose one: baseline=\{'dram_b"),
        (
            {"num_sms": 29},
            None,
            r"num_sms = 29 is not a value of the sweep; there are \[14, 28, 56\]",
        ),
        (
            {"l1_mshrs": 1},
            None,
            "this sweep: there is no axis 'l1_mshrs'; there are num_sms, dram_b",
        ),
        (
            {"num_sms": 28, "dram_bandwidth_gbs": 480},
            "simulation",
            "the table: there is no model 'simulation'; there are gpumech, mdm",
        ),
    ],
)
def test_wrong_baselines(table, baseline, model, message):
    with pytest.raises(ws.InputError, match=message):
        ws.exploration.speedups(table, baseline, model=model)


def test_several_points_at_one_place_are_refused(app, pascal):
    table = ws.sweep(app, pascal, {"num_sms": [14, 28, 14]}, ["mdm"])
    for function in (
        lambda t: ws.exploration.speedups(t, {"num_sms": 14}),
        lambda t: ws.plot.curves(t, "num_sms"),
    ):
        with pytest.raises(ws.InputError, match="points 0, 2 are at one place"):
            function(table)
        function(table[table["point"] != 2])


def test_several_gpus_in_one_table_are_refused(app, pascal):
    tables = [
        ws.sweep(app, gpu, {"num_sms": [14, 28]}, ["mdm"]).assign(point=[n, n, n + 1, n + 1])
        for n, gpu in ((0, pascal), (2, pascal.replace(name="other")))
    ]
    both = pd.concat(tables)
    for function in (lambda t: ws.plot.curves(t, "num_sms"), ws.exploration.swings):
        with pytest.raises(ws.InputError, match="2 GPUs, pascal-mdm, other; choose one"):
            function(both)


def test_a_place_of_several_numbers(app):
    volta = ws.gpu("a100")
    axes = {"shared_memory_carve_outs_kib": [(0, 48), (0, 96)], "num_sms": [14, 28]}
    table = ws.sweep(app, volta, axes, ["mdm"])
    totals = slice_of(table, ["num_sms"], {"shared_memory_carve_outs_kib": (0, 96)})
    assert totals["point"].tolist() == [2, 3]
    with pytest.raises(ws.InputError, match="is not a value of the sweep"):
        slice_of(table, ["num_sms"], {"shared_memory_carve_outs_kib": (0, 97)})


@pytest.mark.parametrize(
    "axes", [{"name": ["a"]}, {"num_sm": [1]}, {"num_sms": 3}, {"num_sms": "3"}]
)
def test_axes_to_change_one_at_a_time_are_checked(pascal, axes):
    with pytest.raises(ws.InputError, match=next(iter(axes))):
        ws.exploration.one_at_a_time(pascal, axes)


# --- sensitivity --------------------------------------------------------------------------------


def test_swings_by_hand():
    # cycles = 10 a + b at a in 1, 2, 4 and b in 1, 5 from (2, 1): a moves it from 11 to 41, b from 21 to 25.
    points = [{"num_sms": a, "l1_mshrs": b} for a in (1, 2, 4) for b in (1, 5)]
    table = of(points, lambda a, b: 10 * a + b)
    rows = ws.exploration.swings(table, "cycles", baseline={"num_sms": 2, "l1_mshrs": 1})
    assert rows.drop(columns="model").to_numpy().tolist() == [
        ["num_sms", 1, 4, 21.0, 11.0, 41.0, 30.0],
        ["l1_mshrs", 1, 5, 21.0, 21.0, 25.0, 4.0],
    ]
    assert ws.exploration.swings(table, "cycles / 10")["at_baseline"].iloc[0] == pytest.approx(1.1)
    with pytest.raises(ws.InputError, match="mdm has no point with num_sms=3, l1_mshrs=1"):
        ws.exploration.swings(table, baseline={"num_sms": 3, "l1_mshrs": 1})
    with pytest.raises(ws.InputError, match="num_sms has 3 values; choose one: baseline="):
        ws.exploration.swings(table, baseline={"l1_mshrs": 1})
    with pytest.raises(ws.InputError, match="no axis changes alone"):
        ws.exploration.swings(table.iloc[[0, 3]])


def test_swings_of_a_sweep(app, pascal):
    axes = {"num_sms": [14, 28, 56], "l1_mshrs": [32, 512]}
    points = ws.exploration.one_at_a_time(pascal, axes)
    assert len(points) == 1 + 2 + 2
    rows = ws.exploration.swings(ws.sweep(app, pascal, points))
    assert rows["field"].tolist() == ["num_sms", "l1_mshrs"]
    alone = {
        v: ws.models.application_totals(ws.predict(app, pascal.replace(num_sms=v)))
        for v in (14, 56)
    }
    assert rows.loc[0, "at_low"] == pytest.approx(alone[14]["ipc"][0])
    assert rows.loc[0, "at_high"] == pytest.approx(alone[56]["ipc"][0])


def ishigami(points):
    """Return the Ishigami function (a = 7, b = 0.1), whose indices are known, at points in 0 to 1."""
    x1, x2, x3 = (np.pi * (2 * np.array([p[f] for p in points]) - 1) for f in points[0])
    return np.sin(x1) + 7 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1)


@pytest.mark.slow
def test_sobol_indices_of_the_ishigami_function():
    """Variance V = a^2/8 + b pi^4/5 + b^2 pi^8/18 + 1/2 (Ishigami and Homma 1990)."""
    a, b = 7, 0.1
    first_1 = 0.5 * (1 + b * np.pi**4 / 5) ** 2
    second_13 = b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = first_1 + a**2 / 8 + second_13
    expected_first = {"l1_latency": first_1, "l2_latency": a**2 / 8, "dram_latency": 0}
    expected_total = {
        "l1_latency": first_1 + second_13,
        "l2_latency": a**2 / 8,
        "dram_latency": second_13,
    }
    ranges = dict.fromkeys(expected_first, (0.0, 1.0))
    points = list(ws.exploration.samples.saltelli(ranges, 4096, seed=3))
    table = of(points, lambda *_: 1.0).assign(cycles=ishigami(points))
    rows = ws.exploration.sobol_indices(table, "cycles").set_index("field")
    for field, total in expected_total.items():
        assert rows.loc[field, "total"] == pytest.approx(total / variance, abs=0.02), field
        assert rows.loc[field, "first"] == pytest.approx(
            expected_first[field] / variance, abs=0.03
        ), field
        off = abs(rows.loc[field, "total"] - total / variance)
        assert off < 4 * rows.loc[field, "total_error"], field
    assert rows.index[0] == "l1_latency"
    # The order of rows and columns does not matter, a failed point takes its base sample away.
    mixed = table[["model", "dram_latency", *table.columns.drop(["model", "dram_latency"])]]
    again = ws.exploration.sobol_indices(mixed.sample(frac=1, random_state=0), "cycles").set_index(
        "field"
    )
    pd.testing.assert_frame_equal(again.loc[rows.index], rows)
    table.loc[5000, "cycles"] = np.nan
    assert (ws.exploration.sobol_indices(table, "cycles")["samples"] == 4095).all()


def test_sobol_indices_by_hand():
    # A = 1, 3; B = 2, 4; f = x, one field: A_1 = B. Var(1, 2, 3, 4) = 5/3, mean((A - B)^2) = 1.
    points = [{"num_sms": v} for v in (1, 3, 2, 4, 2, 4)]
    row = ws.exploration.sobol_indices(of(points, lambda x: x), "cycles").iloc[0]
    assert row["total"] == pytest.approx(1 / (2 * 5 / 3))
    assert row["first"] == pytest.approx(1)


@pytest.mark.slow
def test_sobol_indices_of_a_sweep(app, pascal):
    ranges = {"num_sms": (14, 80), "dram_bandwidth_gbs": (240.0, 960.0), "l1_mshrs": [512, 1024]}
    table = ws.sweep(
        app, pascal, ws.exploration.samples.saltelli(ranges, 16, seed=1), ["gpumech", "mdm"]
    )
    rows = ws.exploration.sobol_indices(table, "cycles")
    assert len(rows) == 6
    assert (rows["total"] >= 0).all()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([{"num_sms": v} for v in (1, 2, 3, 4)], "4 points over 1 axes are not a sample"),
        ([{"num_sms": v} for v in (1, 3, 2, 4, 2, 5)], "points 4 to 5 are not a sample"),
        ([{"num_sms": 2}] * 6, "the same at every point"),
    ],
)
def test_no_saltelli_sample(points, message):
    with pytest.raises(ws.InputError, match=message):
        ws.exploration.sobol_indices(of(points, lambda x: x), "cycles")


def test_metrics_are_checked(table):
    with pytest.raises(
        ws.InputError, match=r"metric: 'icp': there is no name 'icp'; did you mean ipc\?"
    ):
        ws.plot.curves(table, "num_sms", "icp", where={"dram_bandwidth_gbs": 240})
