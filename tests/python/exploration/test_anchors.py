"""Sweeps with an anchor: the engine's answer at the base, times the ratio of the swept model."""

import json
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_recipes as rk
import warpstack as ws
from effort import rounds
from strategies import gpus, kernels
from warpstack.errors import UnusedOptionWarning
from warpstack.exploration import anchors
from warpstack.tables import STACK

#: What a row says beside what it is about.
ANSWER = ["instructions", "cycles", "time_us", "launch_us", "ipc", "cpi", *STACK]
ENGINES = ["simulate", "mdm"]
AXES = {"num_sms": [14, 28, 56], "l1_mshrs": [32, 128]}
#: The point of these axes at which nothing is changed.
BASE = 3


@pytest.fixture
def app():
    return ws.App(
        [ws.patterns.strided(gs=8, iterations=2, blocks=28), ws.patterns.gather(blocks=56)], "two"
    )


def engine_rows(app, gpu, engine, **options):
    """Return what an engine alone says of an application."""
    if engine == "simulate":
        how = {name: options[name] for name in ("flush_l2", "profiler") if name in options}
        return ws.timing.as_table(ws.simulate(app, gpu, **how))
    return ws.predict(app, gpu, engine, **options)


def twin(app, gpu, point, model, engine, **options):
    """Return the anchored rows of a point, from the three answers that the law names.

    The slow way: each is asked for alone.
    """
    there = ws.predict(app, gpu.replace(**point), model, **options)
    here = ws.predict(app, gpu, model, **options)
    rows = []
    for (_, at), (_, base), (_, own) in zip(
        there.iterrows(),
        here.iterrows(),
        engine_rows(app, gpu, engine, **options).iterrows(),
        strict=True,
    ):
        numbers = ["cycles", "ipc", "cpi", *STACK]
        if gpu.replace(**point) == gpu or (at[numbers] == base[numbers]).all():
            row = own[["cycles", "ipc", "cpi", *STACK]].to_dict()
        else:
            cycles = own["cycles"] * (at["cycles"] / base["cycles"])
            cpi = own["cpi"] * at["cpi"] / base["cpi"]
            row = {"cycles": cycles, "ipc": at["instructions"] / cycles, "cpi": cpi}
            row |= {part: at[part] / at["cpi"] * cpi for part in STACK}
        clock = at["cycles"] / (at["time_us"] - at["launch_us"])
        rows.append({**row, "time_us": row["cycles"] / clock + at["launch_us"]})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gpu", "options"),
    [
        ("pascal-mdm", {}),
        ("pascal-mdm", {"flush_l2": True}),
        ("gtx1080", {"profiler": "events"}),
        ("gtx1080", {"profiler": "ncu"}),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_base_is_the_engines_own_answer(app, gpu, engine, options):
    points = [{}, {"num_sms": ws.gpu(gpu).num_sms}, {"num_sms": 7}]
    table = ws.sweep(app, gpu, points, anchor=engine, cache=False, **options)
    expected = engine_rows(app, gpu, engine, **options)
    for point in (0, 1):
        rows = table[table["point"] == point].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows[ANSWER], expected[ANSWER], check_exact=True)
    assert (table["anchor"] == engine).all()
    assert (table["model"] == "closed_network").all()
    assert (table.loc[table["point"] == 2, "cycles"].to_numpy() != expected["cycles"]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::warpstack.errors.UnusedOptionWarning")
@settings(max_examples=rounds(40), deadline=None)
@given(
    st.lists(kernels(max_instructions=6), min_size=1, max_size=3),
    gpus(),
    st.sampled_from(["simulate", "mdm", "gpumech"]),
    st.sampled_from(["closed_network", "mdm_queue"]),
    st.fixed_dictionaries({}, optional={"flush_l2": st.booleans()}),
    st.integers(1, 3),
)
def test_points_follow_the_law(launches, gpu, engine, model, options, workers):
    app = ws.App(launches)
    points = [
        {},
        {"num_sms": 3},
        {"clock_ghz": gpu.clock_ghz * 1.25, "l1_mshrs": 2},
        {"l1_size_kib": 2 * gpu.l1_size_kib, "l1_ways": 2 * gpu.l1_ways},
        {"dram_bandwidth_gbs": gpu.dram_bandwidth_gbs / 3},
    ]
    how = {"cache": False, "workers": workers, **options}
    message = ""
    try:
        engine_rows(app, gpu, engine, **options)
        ws.predict(app, gpu, model, **options)
    except ws.InputError as error:
        message = str(error)
    if message:
        # Who has no answer alone is no anchor.
        with pytest.raises(ws.InputError, match=f"anchor = {engine}: at the base"):
            ws.sweep(app, gpu, points, model, anchor=engine, **how)
        return
    table = ws.sweep(app, gpu, points, model, anchor=engine, **how)
    for number, point in enumerate(points):
        rows = table[table["point"] == number].reset_index(drop=True)
        if (rows["error"] != "").any():
            assert rows[["cycles", "time_us", *STACK]].isna().all(axis=None)
            continue
        expected = twin(app, gpu, point, model, engine, **options)
        columns = list(expected.columns)
        pd.testing.assert_frame_equal(rows[columns], expected, rtol=1e-12, check_dtype=False)
        np.testing.assert_allclose(rows[list(STACK)].sum(axis=1), rows["cpi"], rtol=1e-9)
        assert (rows["ipc"] == rows["instructions"] / rows["cycles"]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_random_kernels_at_the_base_and_beside_it(engine):
    rng = np.random.default_rng()
    seen = 0
    while seen < 3:
        recipe, gpu = rk.random_recipe(rng, 1500), rk.random_gpu(rng)
        kernel = rk.trace(recipe)
        point = {"dram_latency": gpu.dram_latency + 1, "num_sms": gpu.num_sms + 1}
        try:
            expected = engine_rows(kernel, gpu, engine)
            table = ws.sweep(kernel, gpu, [{}, point], anchor=engine, cache=False)
        except ws.InputError:  # a block that does not fit on an SM
            continue
        seen += 1
        pd.testing.assert_frame_equal(table[ANSWER][:1], expected[ANSWER], check_exact=True)
        law = twin(kernel, gpu, point, "closed_network", engine)
        beside = table[1:].reset_index(drop=True)
        pd.testing.assert_frame_equal(beside[list(law.columns)], law, rtol=1e-12)


def test_by_hand(pascal):
    """Models of known cycles: 30,000 a wave of the engine, 10,000 of ours, or 15,000 at slower DRAM."""

    def ours(intervals, wave, gpu):
        return {"base": 8e3, "dram": 2e3 if gpu.dram_latency == pascal.dram_latency else 7e3}

    def better(intervals, wave, gpu):
        return {"base": 2e4, "noc": 1e4}

    ws.models.register("hand_ours", ours, fields=["dram_latency"])
    ws.models.register("hand_better", better, fields=[])
    try:
        kernel = ws.patterns.stream(blocks=4)
        slower = {"dram_latency": pascal.dram_latency + 100}
        table = ws.sweep(
            kernel, pascal, [{}, slower], "hand_ours", anchor="hand_better", cache=False
        )
        (own,) = ws.predict(kernel, pascal, "hand_better")["cycles"]
        assert table["cycles"].tolist() == [own, own * 1.5]
        shares = table[list(STACK)].div(table["cpi"], axis=0)
        # At the base the engine's stack, 20 to 10; elsewhere the model's, 8 to 7.
        assert shares.loc[0, ["cpi_base", "cpi_noc"]].tolist() == pytest.approx([2 / 3, 1 / 3])
        assert shares.loc[1, ["cpi_base", "cpi_dram"]].tolist() == pytest.approx([8 / 15, 7 / 15])
        assert table["cpi"][1] == pytest.approx(1.5 * table["cpi"][0])
    finally:
        ws.models.unregister("hand_ours")
        ws.models.unregister("hand_better")


def test_where_the_model_says_the_same_nothing_changes(app, pascal):
    """A field that the model does not read leaves the engine's answer, its stack included."""
    with pytest.warns(UnusedOptionWarning, match="dram_trcd has no influence"):
        table = ws.sweep(app, pascal, {"dram_trcd": [1, 12]}, anchor="simulate", cache=False)
    expected = ws.timing.as_table(ws.simulate(app, pascal))
    for _, rows in table.groupby("point"):
        pd.testing.assert_frame_equal(
            rows.reset_index(drop=True)[ANSWER], expected[ANSWER], check_exact=True
        )


def test_each_model_has_its_own_ratio_and_each_application_its_own_base(app, pascal):
    models = ["closed_network", "gpumech"]
    apps = {"both": app, "one": app[1]}
    table = ws.sweep(apps, pascal, AXES, models, anchor="simulate", cache=False)
    for name, one in apps.items():
        for model in models:
            rows = table[(table["app"] == name) & (table["model"] == model)]
            alone = ws.sweep(one, pascal, AXES, model, anchor="simulate", cache=False)
            pd.testing.assert_frame_equal(
                rows.drop(columns="app").reset_index(drop=True), alone, check_exact=True
            )
    # A launch that finds L2 as the one before left it is another one.
    base = table[(table["point"] == BASE) & (table["model"] == "gpumech")]
    assert base["cycles"].tolist() == [
        float(result.cycles)
        for one in (ws.simulate(app, pascal), [ws.simulate(app[1], pascal)])
        for result in one
    ]


def test_columns(app, pascal):
    table = ws.sweep(app, pascal, AXES, cache=False)
    anchored = ws.sweep(app, pascal, AXES, anchor="mdm", cache=False)
    assert "anchor" not in table
    columns = list(table.columns)
    columns.insert(columns.index("model") + 1, "anchor")
    assert list(anchored.columns) == columns
    totals = ws.exploration.point_totals(anchored)
    assert (totals["anchor"] == "mdm").all()
    assert "anchor" not in ws.exploration.point_totals(table)
    assert (
        ws.exploration.speedups(anchored, {"num_sms": 28, "l1_mshrs": 128})["speedup"] > 0
    ).all()
    swings = ws.exploration.swings(anchored, baseline={"num_sms": 28, "l1_mshrs": 128})
    (ipc,) = ws.models.application_totals(ws.predict(app, pascal, "mdm"))["ipc"]
    assert swings["at_baseline"].tolist() == [ipc, ipc]


def test_points_that_fail_say_why_and_name_the_anchor(app, pascal):
    points = [{}, {"l1_size_kib": 17}]
    table = ws.sweep(app, pascal, points, anchor="simulate", cache=False)
    failed = table[table["point"] == 1]
    assert failed["error"].str.contains("l1_size_kib").all()
    assert failed["cycles"].isna().all()
    assert (failed["anchor"] == "simulate").all()
    # Nothing is simulated for them alone.
    only = ws.sweep(app, pascal, points[1:], anchor="simulate", cache=False)
    assert only["cycles"].isna().all()


def test_recorded_caches_keep_the_base(app, pascal):
    sizes = {"l1_size_kib": [24, 48], "l2_size_kib": [1536, 3072]}
    table = ws.sweep(app, pascal, sizes, anchor="simulate", caches="recorded", cache=False)
    base = table[table["gpu_digest"] == pascal.digest].reset_index(drop=True)
    expected = ws.timing.as_table(ws.simulate(app, pascal))
    pd.testing.assert_frame_equal(base[ANSWER], expected[ANSWER], check_exact=True)


def count_simulations(monkeypatch):
    """Return a list that gets an entry for each simulated launch."""
    runs, lock = [], threading.Lock()
    run = ws.timing.Simulator.run

    def counted(self, kernel, **how):
        with lock:
            runs.append(kernel.launch_id)
        return run(self, kernel, **how)

    monkeypatch.setattr(ws.timing.Simulator, "run", counted)
    return runs


@pytest.mark.parametrize("workers", [1, 3])
def test_each_kernel_is_simulated_once(app, pascal, monkeypatch, workers):
    runs = count_simulations(monkeypatch)
    apps = {"a": app, "b": app[0]}
    models = ["closed_network", "mdm"]
    ws.sweep(apps, pascal, AXES, models, anchor="simulate", cache=False, workers=workers)
    assert len(runs) == 3


def test_the_cache_keeps_simulations(app, pascal, tmp_path, monkeypatch):
    runs = count_simulations(monkeypatch)
    how = {"anchor": "simulate", "cache": tmp_path}
    first = ws.sweep(app, pascal, AXES, **how)
    assert len(runs) == 2
    again = ws.sweep(app, pascal, AXES, **how)
    pd.testing.assert_frame_equal(again, first, check_exact=True)
    assert len(runs) == 2
    for other in ({"flush_l2": True}, {"gpu": pascal.replace(dram_trcd=3)}):
        ws.sweep(**{"app": app, "gpu": pascal, "axes": AXES, **how, **other})
    assert len(runs) == 6
    # An entry of a wrong shape counts as missing.
    sizes = {"cycles": np.ones((1, 1))}
    monkeypatch.setattr(ws.exploration.StageCache, "get", lambda self, stage, key: sizes)
    ws.sweep(app, pascal, AXES, **how)
    assert len(runs) == 8


def test_a_store_with_an_anchor_is_another_one(app, pascal, tmp_path, monkeypatch):
    how = {"cache": False}
    plain, anchored = tmp_path / "plain", tmp_path / "anchored"
    ws.sweep(app, pascal, AXES, store=plain, **how)
    first = ws.sweep(app, pascal, AXES, store=anchored, anchor="simulate", **how)
    said = {
        path.name: json.loads((path / "_design.json").read_text()) for path in (plain, anchored)
    }
    assert "anchor" not in said["plain"]
    assert said["anchored"].pop("anchor") == "simulate"
    for description in said.values():
        description.pop("digest")
    assert said["plain"] == said["anchored"]
    for store, anchor, message in (
        (plain, "simulate", 'its anchor is null, not "simulate"'),
        (anchored, None, 'its anchor is "simulate", not null'),
        (anchored, "mdm", 'its anchor is "simulate", not "mdm"'),
    ):
        with pytest.raises(ws.InputError, match=message):
            ws.sweep(app, pascal, AXES, store=store, anchor=anchor, **how)
    # What is finished needs no anchor.
    runs = count_simulations(monkeypatch)
    again = ws.sweep(app, pascal, AXES, store=anchored, anchor="simulate", **how)
    pd.testing.assert_frame_equal(again, first, check_exact=True)
    assert runs == []
    rows = ws.exploration.sweep_to_store(
        app, pascal, AXES, store=anchored, anchor="simulate", **how
    )
    assert rows.count_rows() == len(first)


def test_parts_of_a_store_are_anchored_alike(app, pascal, tmp_path):
    axes = {"num_sms": [7, 14, 28]}
    expected = ws.sweep(app, pascal, axes, anchor="simulate", cache=False)
    for part in (0, 1):
        rows = ws.exploration.sweep_to_store(
            app, pascal, axes, store=tmp_path, part=(part, 2), anchor="simulate", cache=False
        )
    table = rows.to_table().to_pandas().sort_values(["point", "kernel"], ignore_index=True)
    expected = expected.sort_values(["point", "kernel"], ignore_index=True)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


def test_a_search_asks_the_anchor_once(app, pascal, monkeypatch):
    runs = count_simulations(monkeypatch)
    space = {"num_sms": (1, 56), "l1_mshrs": (16, 256)}
    found = ws.search(app, pascal, space, budget=60, anchor="simulate", cache=False)
    assert len(found) == 60
    assert len(runs) == 2
    assert (found["anchor"] == "simulate").all()
    points = found[["num_sms", "l1_mshrs"]].to_dict("records")[:5]
    table = ws.sweep(app, pascal, points, anchor="simulate", cache=False)
    totals = ws.exploration.point_totals(table)
    assert totals["cycles"].tolist() == pytest.approx(found["cycles"].tolist()[:5], rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"anchor": "simulator"}, "anchor = 'simulator' is not one of .*gpumech, .*, simulate$"),
        ({"anchor": ""}, "anchor = '' is not one of "),
        (
            {"anchor": "closed_network"},
            "anchor = closed_network: is the swept model closed_network",
        ),
        ({"models": "all", "anchor": "mdm"}, "anchor = mdm: is the swept model mdm itself"),
        ({"anchor": 3}, "anchor"),
        (
            {"gpu": ws.gpu("pascal-mdm").replace(threads_per_sm=32), "anchor": "simulate"},
            "anchor = simulate: at the base, pascal-mdm with threads_per_sm=32: ",
        ),
    ],
)
def test_mistakes(app, pascal, options, message):
    arguments = {"app": app, "gpu": pascal, "axes": {"threads_per_sm": [2048]}, **options}
    with pytest.raises(ws.InputError, match=message):
        ws.sweep(**arguments, cache=False)


def test_the_simulator_needs_whole_traces(app, pascal, tmp_path):
    builder = ws.patterns.strided(gs=8, iterations=2, blocks=28)
    ws.save(ws.App([builder], "whole"), tmp_path / "trace")
    kernel = ws.load(tmp_path / "trace")[0]

    class Sampled:
        num_missing_blocks, num_blocks, launch_id = 24, 28, 1

    anchor = anchors.Anchor.of("simulate", pascal, ["closed_network"], ws.Options())
    anchor.check([kernel])
    with pytest.raises(ws.InputError, match="24 of 28 thread blocks of kernel 1 of one were not"):
        anchor.check([kernel, Sampled()], "one")
    anchors.Anchor.of("mdm", pascal, ["closed_network"], ws.Options()).check([Sampled()])


@pytest.mark.filterwarnings("ignore:the model warpstack:FutureWarning")
def test_a_former_name_is_the_swept_model(app, pascal):
    with pytest.raises(
        ws.InputError, match="anchor = warpstack: is the swept model closed_network"
    ):
        ws.sweep(app, pascal, AXES, anchor="warpstack", cache=False)


def test_options_that_the_anchor_reads_are_read(app, pascal, recwarn):
    ws.sweep(app, pascal, [{}], anchor="mdm", merge_threshold=10, cache=False)
    assert not [one for one in recwarn if one.category is UnusedOptionWarning]
    with pytest.warns(UnusedOptionWarning, match="merge_threshold"):
        ws.sweep(app, pascal, [{}], anchor="simulate", merge_threshold=10, cache=False)


def test_an_error_ends_the_other_simulations(pascal, monkeypatch):
    """One application fails while another one is being simulated, which then gives up."""
    begun, ended = threading.Event(), threading.Event()

    def run(self, kernel, *, progress):
        if kernel.launch_id == 1:
            begun.wait(30)
            raise KeyboardInterrupt
        begun.set()
        try:
            while True:
                progress.update(0)
        finally:
            ended.set()

    monkeypatch.setattr(ws.timing.Simulator, "run", run)
    apps = {
        f"app {i}": ws.patterns.strided(gs=8, iterations=2, blocks=28, launch_id=i) for i in (1, 2)
    }
    with pytest.raises(KeyboardInterrupt):
        ws.sweep(apps, pascal, AXES, anchor="simulate", cache=False, workers=2)
    assert ended.wait(30)
