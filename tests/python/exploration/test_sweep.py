"""Sweeps: every point equals its prediction alone, and a stage reads what it declares."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from strategies import gpus, kernels
from warpstack._core import GPU_FIELDS
from warpstack.exploration import store as sweep_store
from warpstack.exploration import sweep as sweep_module
from warpstack.exploration.sweep import points_of
from warpstack.hardware.description import Gpu, is_whole
from warpstack.interval.profile import INTERVAL_FIELDS
from warpstack.memory.caches import MemorySystem, cache_fields
from warpstack.models import pipeline as pipeline_module
from warpstack.models.prediction import evaluate_all, fields_used

#: Models that read profiles.
ON_PROFILES = [model for model in ws.models.names() if model != "interval_simulation"]
PREDICTED = ["cycles", "ipc", "cpi", *(f"cpi_{part}" for part in ws.models.STACK_COMPONENTS)]

# Fields of every stage; some values are wrong for some GPUs, or for all of them.
CANDIDATES = {
    "num_sms": [1, 2, 3, 5],
    "l1_mshrs": [1, 2, 7, 64],
    "l1_size_kib": [0.25, 1, 3, 4],
    "l2_size_kib": [0.5, 6, 12],
    "l1_ways": [1, 2, 3],
    "noc_bandwidth_gbs": [1, 33.3, 1000, -1],
    "dram_bandwidth_gbs": [1, 77.7, 1000],
    "clock_ghz": [0.5, 1.4, 2],
    "noc_queue_entries": [0, 3],
    "scheduler": ["gto", "lrr", "oldest", "fifo"],
    "issue_width": [1, 2, 3],
    "dram_latency": [0, 220],
    "integer_latency": [1, 25],
    "blocks_per_sm": [1, 2, 16],
    "threads_per_sm": [32, 2048],
    "shared_memory_kib_per_sm": [1, 16],
    "registers_per_sm": [512, 65536],
    "l2_mshrs": [1, 128],
}


@st.composite
def designs(draw):
    """Draw axes: a grid, or points with random fields in random order."""
    fields = draw(
        st.lists(st.sampled_from(sorted(CANDIDATES)), min_size=1, max_size=3, unique=True)
    )
    values = {
        field: draw(st.lists(st.sampled_from(CANDIDATES[field]), min_size=1, max_size=3))
        for field in fields
    }
    if draw(st.booleans()):
        return values
    points = st.fixed_dictionaries({}, optional={f: st.sampled_from(v) for f, v in values.items()})
    return draw(st.lists(points, min_size=1, max_size=6))


def test_channels_of_points_are_their_own(pascal):
    """Every line is in one of 24 slices of L2: the more channels, the slower is the one that has it."""
    k = ws.patterns.KernelBuilder("camp", grid=56, block=256)
    for i in range(8):
        address = 0x7F0000000000 + (k.thread // 32) * 6144 * 8 + i * 6144
        k.emit("LDG.E", dst=2 + i, src=1, address=address)
    k.emit("EXIT")
    kernel, channels = k.build(), [1, 4, 24]
    table = ws.sweep(kernel, pascal, {"dram_channels": channels}, ["closed_network"])
    predicted = [
        ws.predict(kernel, pascal.replace(dram_channels=n), "closed_network")["cycles"].iloc[0]
        for n in channels
    ]
    assert table["cycles"].tolist() == predicted == sorted(set(predicted))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::warpstack.errors.UnusedOptionWarning")
@settings(max_examples=rounds(60))
@given(
    st.lists(kernels(max_instructions=6), min_size=1, max_size=3),
    gpus(),
    designs(),
    st.lists(st.sampled_from(ws.models.names()), min_size=1, max_size=3, unique=True),
    st.integers(1, 4),
    st.fixed_dictionaries(
        {},
        optional={
            "selection": st.sampled_from(["clustering", "max", "min"]),
            "misses": st.sampled_from(["per_pc", "representative"]),
            "merge_threshold": st.sampled_from([0, 10]),
            "access_order": st.sampled_from(["round_robin", "greedy"]),
            "flush_l2": st.booleans(),
        },
    ),
)
def test_every_point_is_its_prediction(launches, gpu, axes, models, workers, options):
    app = ws.App(launches)
    table = ws.sweep(app, gpu, axes, models, workers=workers, **options)
    fields, points = points_of(axes)
    assert table["point"].tolist() == sorted(table["point"])
    assert list(table.columns[: len(fields) + 1]) == ["point", *fields]
    for number, point in enumerate(points):
        rows = table[table["point"] == number].reset_index(drop=True)
        assert len(rows) == len(app) * len(models)
        try:
            target = gpu.replace(**point)
            expected = ws.predict(app, target, models, **options)
            aside = ["time_us_low", "time_us_high", "reason", "gain"]
            expected = expected.drop(columns=aside)
        except ws.InputError as error:
            message = str(error)
        else:
            message = ""
        if message:
            # Models fail one by one.
            assert message in set(rows["error"])
            assert rows.loc[rows["error"] != "", PREDICTED].isna().all(axis=None)
            continue
        assert (rows["error"] == "").all()
        pd.testing.assert_frame_equal(rows[list(expected.columns)], expected, check_exact=True)
        for field in fields:
            assert (rows[field] == getattr(target, field)).all()


def another(gpu, field):
    """Return a valid value of a field that is not the GPU's."""
    value = getattr(gpu, field)
    declared = next(one for one in GPU_FIELDS if one.name == field)
    if declared.choices:
        return next(choice for choice in declared.choices if choice != value)
    if field == "dram_channels":
        return gpu.l2_slices if value != gpu.l2_slices else 1
    if field in ("dram_efficiency", "host_link_both_ways"):
        return value / 2
    if field in ("dram_banks", "dram_trefi"):
        return 2 * value or 1024
    if field == "dram_interleaved_banks":
        return gpu.dram_banks if value != gpu.dram_banks else 1
    assert declared.kind != "numbers"
    return value + 1 if is_whole(field) else 2 * value + 1


NOT_IN_MEMORY = sorted(set(Gpu.fields()) - cache_fields("auto"))
NOT_IN_INTERVALS = sorted(set(Gpu.fields()) - cache_fields("auto") - INTERVAL_FIELDS)


def replaced(gpu, field):
    """Return the GPU with this field changed and no other: a clock scales no latency."""
    kept = {f: getattr(gpu, f) for f in ("dram_latency", "l2_latency")}
    return gpu.replace(**{**kept, field: another(gpu, field)})


@pytest.mark.slow
@settings(max_examples=rounds(15))
@given(kernels(), gpus())
def test_the_memory_stage_reads_what_it_declares(kernel, gpu):
    words = ws.simulate_caches(kernel, gpu)._core.words
    for field in NOT_IN_MEMORY:
        changed = ws.simulate_caches(kernel, replaced(gpu, field))._core.words
        assert np.array_equal(words, changed), field


@pytest.mark.slow
@settings(max_examples=rounds(15))
@given(kernels(), gpus())
def test_the_interval_stage_reads_what_it_declares(kernel, gpu):
    memory = ws.simulate_caches(kernel, gpu)
    profile = ws.interval_profile(kernel, gpu, memory)
    for field in NOT_IN_INTERVALS:
        target = replaced(gpu, field)
        changed = ws.interval_profile(kernel, target, memory)
        pd.testing.assert_frame_equal(profile.intervals, changed.intervals, check_exact=True)
        assert profile.waves(gpu) == changed.waves(target)


@pytest.mark.slow
@settings(max_examples=rounds(10))
@given(kernels(), gpus())
def test_the_models_read_what_they_declare(kernel, gpu):
    profile = ws.interval_profile(kernel, gpu)
    for model in ON_PROFILES:
        expected = ws.models.evaluate(profile, gpu, model)
        for field in sorted(set(Gpu.fields()) - fields_used(model)):
            assert ws.models.evaluate(profile, replaced(gpu, field), model) == expected, field


def test_declared_fields_are_not_idle():
    """The declarations are no wider than they need to be: every field changes some result."""
    gpu = ws.gpu("pascal-mdm").replace(num_sms=2, l1_size_kib=24, l2_size_kib=96)
    rng = np.random.default_rng(0)
    k = ws.patterns.KernelBuilder("busy", grid=64, block=128, registers_per_thread=32)
    for turn in range(6):
        # Every other load hits in L1 now and then.
        lines = 1 << (14 if turn % 2 else 9)
        address = 0x7000_0000 + 4 * rng.integers(0, lines, k.thread.shape)
        k.emit("LDG.E", dst=turn + 1, src=[0], address=address)
        k.emit("FADD", dst=turn + 1, src=[turn + 1])
        k.emit("STG.E", src=[turn + 1], address=address)
    kernel = k.build()
    expected = ws.predict(kernel, gpu, "mdm")[PREDICTED]
    for field in (
        "num_sms",
        "clock_ghz",
        "issue_width",
        "l1_mshrs",
        "l1_latency",
        "l2_latency",
        "noc_bandwidth_gbs",
        "dram_bandwidth_gbs",
        "dram_latency",
        "fp32_latency",
    ):
        changed = ws.predict(kernel, replaced(gpu, field), "mdm")[PREDICTED]
        assert not changed.equals(expected), field


def test_every_field_belongs_to_a_stage_or_is_reported(pascal):
    kernel = ws.patterns.strided(gs=4, iterations=1, blocks=2)
    used = fields_used("all") | cache_fields("auto")
    for field in Gpu.fields():
        if field in used:
            continue
        with pytest.warns(ws.errors.UnusedOptionWarning, match=f"{field} has no influence"):
            table = ws.sweep(kernel, pascal, {field: [another(pascal, field)]})
        assert table["error"].tolist() == [""]


@pytest.mark.slow
@settings(max_examples=rounds(30))
@given(kernels(), kernels(), gpus(), st.data())
def test_the_batch_equals_each_evaluation(kernel, other, gpu, data):
    by_hand = ws.IntervalProfile.from_arrays(
        instructions=[3, 9], stall_cycles=[40, 7], read_misses=[1, 0], warps=4, active_sms=2
    )
    profiles = [ws.interval_profile(kernel, gpu), by_hand, ws.interval_profile(other, gpu)]
    targets = [
        gpu.replace(
            scheduler=data.draw(st.sampled_from(["gto", "lrr", "oldest"])),
            l1_mshrs=data.draw(st.integers(1, 9)),
            noc_bandwidth_gbs=data.draw(st.floats(1, 1e3)),
            dram_bandwidth_gbs=data.draw(st.floats(1, 1e3)),
            # Limits of all models are computed with arrays for many GPUs, with numbers for one.
            integer_interval=data.draw(st.sampled_from([1, 3, 64])),
            block_interval_cycles=data.draw(st.sampled_from([0, 1.5, 400])),
            block_replacement_ns=data.draw(st.sampled_from([0, 0.3, 5000])),
            warp_start_cycles=data.draw(st.sampled_from([0, 0.7, 90])),
        )
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    for model in ON_PROFILES:
        columns = evaluate_all(profiles, targets, model, num_threads=2)
        for number, target in enumerate(targets):
            for k, profile in enumerate(profiles):
                one = ws.models.evaluate(profile, target, model)
                assert columns["cycles"][number, k] == one.cycles
                assert columns["ipc"][number, k] == one.ipc
                assert columns["cpi"][number, k] == one.cpi
                for part, value in one.cpi_stack.items():
                    assert columns[f"cpi_{part}"][number, k] == value


# --- the table ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.strided(gs=8, iterations=2, blocks=28)


def test_the_last_axis_of_a_grid_changes_fastest(kernel, pascal):
    table = ws.sweep(kernel, pascal, {"num_sms": [14, 28], "l1_mshrs": [32, 64]}, ["mt", "mdm"])
    assert list(table.columns[:5]) == ["point", "num_sms", "l1_mshrs", "kernel", "name"]
    assert table.columns[-1] == "error"
    assert table["point"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table["num_sms"].tolist() == [14] * 4 + [28] * 4
    assert table["l1_mshrs"].tolist() == [32, 32, 64, 64] * 2
    assert table["model"].tolist() == ["mt", "mdm"] * 4
    assert table.attrs["axes"] == ["num_sms", "l1_mshrs"]


def test_tasks_that_share_caches_run_them_once(pascal, monkeypatch):
    app = ws.App([ws.patterns.strided(gs=8, iterations=n, blocks=28) for n in (1, 2)])
    axes = {
        "l2_size_kib": [3072, 1536],
        "dram_latency": [200, 300],
        "dram_bandwidth_gbs": [100.0, 200.0, 300.0, 400.0],
    }
    whole = ws.sweep(app, pascal, axes, cache=False)
    ran = {"caches": 0, "intervals": 0}

    def counted(what, function):
        def call(*args, **kwargs):
            ran[what] += 1
            return function(*args, **kwargs)

        return call

    run = counted("caches", MemorySystem.run)
    monkeypatch.setattr(MemorySystem, "run", run)
    intervals = counted("intervals", pipeline_module.profile_of)
    monkeypatch.setattr(pipeline_module, "profile_of", intervals)
    monkeypatch.setattr(sweep_module, "_TASK_ROWS", 4)  # two points of two kernels
    for workers in (1, 3):
        ran.update(caches=0, intervals=0)
        parts = ws.sweep(app, pascal, axes, cache=False, workers=workers)
        pd.testing.assert_frame_equal(parts, whole)
        if workers == 1:  # otherwise a thread may be late, and another one has gone on
            assert ran == {"caches": 2 * 2, "intervals": 2 * 2 * 2}


def test_applications_by_name(kernel, pascal):
    table = ws.sweep({"a": kernel, "b": ws.App([kernel, kernel])}, pascal, {"num_sms": [14, 28]})
    assert list(table.columns[:3]) == ["point", "num_sms", "app"]
    assert table["app"].tolist() == ["a", "b", "b"] * 2


def test_a_failing_point_is_a_row_with_its_error(kernel, pascal):
    axes = [{"l1_mshrs": 32}, {"l1_size_kib": 17}, {"threads_per_sm": 1}, {"num_sms": "many"}]
    table = ws.sweep(kernel, pascal, axes)
    assert table["point"].tolist() == [0, 1, 2, 3]
    good, geometry, occupancy, text = table["error"]
    assert good == ""
    assert "l1_size_kib = 17" in geometry
    assert "a thread block needs" in occupancy
    assert "num_sms = 'many' is not a number" in text
    assert table[PREDICTED].iloc[1:].isna().all(axis=None)
    assert table[PREDICTED].iloc[0].notna().all()
    assert set(table["instructions"]) == {kernel.num_instructions}
    assert table["num_sms"].tolist() == ["28", "28", "28", "many"]


def test_a_model_that_fails_leaves_the_others(pascal):
    kernel = ws.patterns.strided(gs=8, iterations=1, blocks=28)
    wide = pascal.replace(warps_per_sm=4096, blocks_per_sm=4096, threads_per_sm=2**20)
    wide = wide.replace(registers_per_sm=2**24, num_sms=1)
    many = ws.patterns.strided(gs=8, iterations=1, blocks=600)
    assert kernel.num_warps < many.num_warps
    table = ws.sweep(many, wide, {"l1_mshrs": [32, 64]}, ["markov_chain", "mdm"])
    assert table["error"].str.contains("2048").tolist() == [True, False] * 2


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"num_sm": [1]}, "did you mean num_sms"),
        ([{"num_sm": 1}], "point 0: there is no field 'num_sm'; did you mean num_sms"),
        ({"num_sms": 3}, "num_sms = 3 is not a list of values"),
        ({"num_sms": "16"}, "is not a list of values"),
        ({"num_sms": []}, "num_sms has no values"),
        ({"name": ["x"]}, "name is a text"),
        ([], "there are no points"),
        ([3], "point 0 = 3 is not a mapping"),
        (7, "expected a mapping or a list of points"),
        ({"num_sms": range(1, 5000), "l1_mshrs": range(1, 5000)}, "are more than"),
    ],
)
def test_axes_that_are_no_design(kernel, pascal, axes, message):
    with pytest.raises(ws.InputError, match=message):
        ws.sweep(kernel, pascal, axes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers = 0"),
        ({"selection": "best"}, "selection = 'best'"),
        ({"misses": "few"}, "misses = 'few'"),
        ({"merge_threshold": -1}, "merge_threshold"),
        ({"merge_threshold": "ten"}, "merge_threshold = 'ten'"),
        ({"merge_threshold": None}, "merge_threshold = None"),
        ({"merge_threshold": 10**400}, "merge_threshold"),
        ({"models": ["mdm", "mt", "mdm"]}, "models: mdm is given twice"),
        ({"models": "mdx"}, "there is no model"),
        ({"client": 3}, "client: "),
    ],
)
def test_arguments_that_are_wrong(kernel, pascal, options, message):
    with pytest.raises(ws.InputError, match=message):
        ws.sweep(kernel, pascal, {"num_sms": [1]}, **options)


def test_stages_run_once_per_change_of_what_they_read(kernel, pascal, monkeypatch):
    runs = count_runs(monkeypatch)
    axes = {"num_sms": [14, 28], "clock_ghz": [1.0, 1.4], "l1_mshrs": [16, 32, 64, 128]}
    ws.sweep(kernel, pascal, axes, ["gpumech", "mdm"], workers=1, access_order="round_robin")
    assert len(runs) == 2


def count_runs(monkeypatch):
    """Return a list that grows with every run of the memory stage."""
    runs = []
    run = MemorySystem.run

    def counted(self, kernel, **options):
        runs.append(kernel.name)
        return run(self, kernel, **options)

    monkeypatch.setattr(MemorySystem, "run", counted)
    return runs


# --- the cache ----------------------------------------------------------------------------------


def test_stage_results_are_kept(kernel, pascal, tmp_path, monkeypatch):
    axes = {"num_sms": [14, 28]}
    plain = ws.sweep(kernel, pascal, axes, cache=False)
    runs = count_runs(monkeypatch)
    first = ws.sweep(kernel, pascal, axes, cache=tmp_path)
    assert len(runs) == 2
    second = ws.sweep(kernel, pascal, {**axes, "clock_ghz": [1.4, 1.0]}, cache=tmp_path)
    assert len(runs) == 2
    ws.sweep(kernel, pascal.replace(l1_size_kib=24), axes, cache=tmp_path)
    assert len(runs) == 4
    pd.testing.assert_frame_equal(first, plain)
    same = second[second["clock_ghz"] == 1.4][PREDICTED].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, plain[PREDICTED], check_exact=True)


@pytest.mark.slow
@settings(max_examples=rounds(10))
@given(st.lists(kernels(), min_size=1, max_size=3), gpus(), st.booleans())
def test_kept_results_are_the_results(tmp_path_factory, launches, gpu, observing):
    folder = tmp_path_factory.mktemp("cache")
    options = {"models": "mdm", "misses": "representative" if observing else "per_pc"}
    tables = [
        ws.sweep(ws.App(launches), gpu, {"l1_mshrs": [1, 64]}, cache=folder, **options)
        for _ in range(2)
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_entries_are_computed_again(kernel, pascal, tmp_path, monkeypatch, damage):
    expected = ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, cache=tmp_path)
    for path in tmp_path.iterdir():
        data = bytearray(path.read_bytes())
        if damage == "flip":
            data[len(data) // 2] ^= 1
        path.write_bytes(b"" if damage == "empty" else data if damage == "flip" else data[:-7])
    runs = count_runs(monkeypatch)
    again = ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, cache=tmp_path)
    assert len(runs) == 1
    pd.testing.assert_frame_equal(again, expected)
    ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, cache=tmp_path)
    assert len(runs) == 1


FORGED = {
    "nothing": lambda arrays: {},
    "other names": lambda arrays: {f"x{name}": array for name, array in arrays.items()},
    "floats": lambda arrays: {name: array.astype(float) for name, array in arrays.items()},
    "texts": lambda arrays: {name: array.astype(str) for name, array in arrays.items()},
    "zeros": lambda arrays: {name: array * 0 for name, array in arrays.items()},
    "large": lambda arrays: {
        name: array | array.dtype.type(2**62) for name, array in arrays.items()
    },
    "numbers": lambda arrays: {name: array.ravel()[0] for name, array in arrays.items()},
    "columns": lambda arrays: {name: array[..., None] for name, array in arrays.items()},
    "shorter": lambda arrays: {name: array[:-1] for name, array in arrays.items()},
    "none": lambda arrays: {name: array[:0] for name, array in arrays.items()},
    "negative": lambda arrays: {
        name: array if array.dtype == np.uint64 else -1 - array for name, array in arrays.items()
    },
}


@pytest.mark.parametrize("forge", FORGED)
@pytest.mark.parametrize("stage", ["warp", "memory"])
def test_forged_entries_count_as_missing(kernel, pascal, tmp_path, stage, forge):
    """Entries with a right digest that hold something else than the stage keeps."""
    options = {"models": "mdm", "cache": tmp_path, "misses": "representative"}
    expected = ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, **options)
    (path,) = tmp_path.glob(f"{stage}-*")
    key = path.stem.partition("-")[2]
    cache = ws.exploration.StageCache(tmp_path)
    kept = cache.get(stage, key)
    forged = {name: np.asarray(array) for name, array in FORGED[forge](kept).items()}
    cache.put(stage, key, forged)
    again = ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, **options)
    if forge == "zeros" and stage == "warp":  # block 0, warp 0 is one
        assert (again["error"] == "").all()
        return
    pd.testing.assert_frame_equal(again, expected, check_exact=True)
    found = cache.get(stage, key)
    assert all(np.array_equal(found[name], kept[name]) for name in kept)


def test_a_profile_of_other_instructions_counts_as_missing(kernel, pascal, tmp_path):
    other = ws.patterns.gather(blocks=4)  # with other instructions
    ws.sweep(other, pascal, {"l1_mshrs": [32]}, cache=tmp_path / "other")
    expected = ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, cache=tmp_path)
    (source,), (place,) = ((folder.glob("memory-*")) for folder in (tmp_path / "other", tmp_path))
    keys = [path.stem.partition("-")[2] for path in (source, place)]
    ws.exploration.StageCache(tmp_path).put(
        "memory", keys[1], ws.exploration.StageCache(source.parent).get("memory", keys[0])
    )
    again = ws.sweep(kernel, pascal, {"l1_mshrs": [32]}, cache=tmp_path)
    pd.testing.assert_frame_equal(again, expected, check_exact=True)


# --- the store ----------------------------------------------------------------------------------

AXES = {"num_sms": [7, 14, 28], "l1_mshrs": [32, 64]}


def test_a_store_holds_the_result(kernel, pascal, tmp_path, monkeypatch):
    axes = [*({"num_sms": n, "clock_ghz": 1} for n in (7, 14)), {"l1_size_kib": 17}]
    plain = ws.sweep(kernel, pascal, axes)
    stored = ws.sweep(kernel, pascal, axes, store=tmp_path / "store")
    pd.testing.assert_frame_equal(stored, plain, check_exact=True)
    runs = count_runs(monkeypatch)
    again = ws.sweep(kernel, pascal, axes, store=tmp_path / "store")
    assert runs == []
    pd.testing.assert_frame_equal(again, plain, check_exact=True)
    dataset = pd.read_parquet(tmp_path / "store").sort_values("point", ignore_index=True)
    pd.testing.assert_frame_equal(dataset, plain, check_exact=True)


def test_a_store_of_another_sweep_is_refused(kernel, pascal, tmp_path):
    ws.sweep(kernel, pascal, AXES, store=tmp_path)
    for other, message in (
        ({"axes": {"num_sms": [7, 14, 28], "l1_mshrs": [32, 63]}}, "digest of the points"),
        ({"models": "mdm_mshr"}, 'models is \\["closed_network"\\], not \\["mdm_mshr"\\]'),
        ({"gpu": pascal.replace(l1_latency=30)}, "gpu"),
        ({"app": ws.patterns.strided(gs=9, iterations=2, blocks=28)}, "traces"),
        ({"flush_l2": True}, "flush_l2"),
        ({"resume": False}, "holds results of this sweep already"),
    ):
        arguments = {"app": kernel, "gpu": pascal, "axes": AXES, **other}
        with pytest.raises(ws.InputError, match=message):
            ws.sweep(**arguments, store=tmp_path)


def test_a_folder_of_something_else_is_refused(kernel, pascal, tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ws.InputError, match="is not empty and holds no sweep"):
        ws.sweep(kernel, pascal, AXES, store=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ws.InputError, match="store"):
        ws.sweep(kernel, pascal, AXES, store=tmp_path / "thesis.tex")


def test_damaged_parts_are_computed_again(kernel, pascal, tmp_path):
    expected = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    for path in tmp_path.glob("part-*"):
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.warns(
        ws.errors.DamageWarning, match=r"part-.*parquet: damaged; its tasks are computed again"
    ):
        again = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    pd.testing.assert_frame_equal(again, expected, check_exact=True)
    again = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    pd.testing.assert_frame_equal(again, expected, check_exact=True)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"format": 3}', "[" * 100_000])
def test_a_damaged_description_is_written_again(kernel, pascal, tmp_path, monkeypatch, text):
    expected = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    design = tmp_path / "_design.json"
    before = design.read_text()
    runs = count_runs(monkeypatch)
    for other in (True, False):
        design.unlink(missing_ok=True)
        if text is not None:
            design.write_text(text)
        if other:
            with pytest.raises(ws.InputError, match=r"_design.json is damaged or missing"):
                ws.sweep(kernel, pascal, {"num_sms": [5]}, store=tmp_path)
    with pytest.warns(ws.errors.DamageWarning, match=r"_design.json was damaged or missing"):
        again = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    assert design.read_text() == before
    assert runs == []
    pd.testing.assert_frame_equal(again, expected, check_exact=True)


def test_parts_of_another_sweep_are_refused(kernel, pascal, tmp_path):
    ws.sweep(kernel, pascal, AXES, store=tmp_path / "a")
    ws.sweep(kernel, pascal, {**AXES, "num_sms": [7, 14, 27]}, store=tmp_path / "b")
    (part,) = (tmp_path / "a").glob("part-*")
    part.rename(tmp_path / "b" / part.name)
    with pytest.raises(ws.InputError, match="holds results of another sweep"):
        ws.sweep(kernel, pascal, {**AXES, "num_sms": [7, 14, 27]}, store=tmp_path / "b")


def test_a_store_of_the_version_before_is_refused(kernel, pascal, tmp_path):
    (tmp_path / "_design.json").write_text('{"format": 1, "axes": []}')
    (tmp_path / "part-18f0-0a0b0c0d.parquet").write_text("")
    with pytest.raises(
        ws.InputError, match=r"another version of warpstack \(format 1, this one has 3"
    ):
        ws.sweep(kernel, pascal, AXES, store=tmp_path)


KILLED = """
import sys, time
import warpstack as ws
from warpstack.exploration import store as sweep_store
from warpstack.exploration import sweep as sweep_module
from warpstack.memory.caches import MemorySystem

sweep_store._WRITE_SECONDS = 0
run = MemorySystem.run
def slow(self, kernel, **options):
    print("run", flush=True)
    time.sleep(0.05)
    return run(self, kernel, **options)
MemorySystem.run = slow
kernel = ws.patterns.strided(gs=8, iterations=2, blocks=28)
axes = {"num_sms": list(range(1, 41)), "l1_mshrs": [32, 64]}
ws.sweep(kernel, "pascal-mdm", axes, store=sys.argv[1], workers=1, access_order="round_robin")
"""


@pytest.mark.slow
def test_a_killed_sweep_resumes(kernel, pascal, tmp_path, monkeypatch):
    store = tmp_path / "store"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(store)], stdout=subprocess.PIPE, text=True
    )
    with process:
        for _ in range(6):
            assert process.stdout.readline() == "run\n"
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    done = sum(1 for _ in store.glob("part-*"))
    assert 4 <= done < 40
    axes = {"num_sms": list(range(1, 41)), "l1_mshrs": [32, 64]}
    runs = count_runs(monkeypatch)
    # In this order the MSHRs are nothing to the caches.
    in_turn = {"access_order": "round_robin"}
    table = ws.sweep(kernel, pascal, axes, store=store, **in_turn)
    assert len(runs) == 40 - done
    again = ws.sweep(kernel, pascal, axes, **in_turn)
    pd.testing.assert_frame_equal(table, again, check_exact=True)
    assert not list(store.glob(".partial-*"))


def test_results_reach_the_store_when_the_sweep_is_interrupted(pascal, tmp_path, monkeypatch):
    kernel = ws.patterns.strided(gs=8, iterations=2, blocks=28)
    runs = count_runs(monkeypatch)
    counted = MemorySystem.run

    def interrupted(self, kernel, **options):
        if len(runs) == 3:
            raise KeyboardInterrupt
        return counted(self, kernel, **options)

    monkeypatch.setattr(MemorySystem, "run", interrupted)
    axes = {"num_sms": range(1, 9)}
    with pytest.raises(KeyboardInterrupt):
        ws.sweep(kernel, pascal, axes, store=tmp_path, workers=1)
    monkeypatch.setattr(MemorySystem, "run", counted)
    ws.sweep(kernel, pascal, axes, store=tmp_path, workers=1)
    assert len(runs) == 8


@pytest.mark.slow
def test_ctrl_c_ends_a_sweep_on_threads(tmp_path):
    code = KILLED.replace("workers=1", "workers=2")
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A job in the background of a shell script, as tests may be, inherits that SIGINT is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with process:
        assert process.stdout.readline().startswith("run")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.stderr.read()
        process.stdout.read()
    assert process.returncode != 0
    assert time.monotonic() - start < 30


def test_numbers_of_any_size_are_rows_with_an_error(kernel, pascal):
    table = ws.sweep(kernel, pascal, {"num_sms": [28, 10**400, 10**5000]}, cache=False)
    assert [bool(error) for error in table["error"]] == [False, True, True]
    assert "num_sms" in table["error"].iloc[1]


def test_more_cores_than_threads_allowed(kernel, pascal, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    table = ws.sweep(kernel, pascal, {"num_sms": [28]}, cache=False)
    assert (table["error"] == "").all()


def test_one_sweep_writes_to_a_store_at_a_time(kernel, pascal, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    expected = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    with (tmp_path / "_lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ws.InputError, match="another sweep is writing to it"):
            ws.sweep(kernel, pascal, AXES, store=tmp_path)
    again = ws.sweep(kernel, pascal, AXES, store=tmp_path)
    pd.testing.assert_frame_equal(again, expected, check_exact=True)


HOLDING = """
import sys, time
from warpstack.exploration.store import SweepStore
store = SweepStore(sys.argv[1], {}, resume=True)
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_process_holds_no_store(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(ws.InputError, match="another sweep is writing to it"):
            sweep_store.SweepStore(tmp_path, {}, resume=True)
        process.kill()
    sweep_store.SweepStore(tmp_path, {}, resume=True).close()


@pytest.mark.parametrize("error", ["ENOSYS", "ENOLCK", "EOPNOTSUPP"])
def test_a_file_system_without_locks_holds_stores(tmp_path, monkeypatch, error):
    """No mere file stands for the lock there: it would outlive a killed process."""
    fcntl = pytest.importorskip("fcntl")

    def flock(*_):
        raise OSError(getattr(errno, error), "refused")

    monkeypatch.setattr(fcntl, "flock", flock)
    killed = sweep_store.SweepStore(tmp_path, {}, resume=True)
    sweep_store.SweepStore(tmp_path, {}, resume=True).close()
    killed.close()


def test_parts_that_cannot_be_read_stay(kernel, pascal, tmp_path):
    ws.sweep(kernel, pascal, AXES, store=tmp_path)
    part, *_ = tmp_path.glob("part-*")  # a busy machine writes several
    part.rename(tmp_path / "moved")
    part.mkdir()  # reading it is an error of the file system, for root, too
    with pytest.raises(ws.InputError, match="is a folder; expected a regular file"):
        ws.sweep(kernel, pascal, AXES, store=tmp_path)
    assert part.is_dir()
    part.rmdir()
    (tmp_path / "moved").rename(part)
    mine = tmp_path / "part-of my thesis.parquet"
    mine.write_text("text")
    ws.sweep(kernel, pascal, AXES, store=tmp_path)
    assert mine.read_text() == "text"


def test_files_of_a_store_have_the_mode_of_new_files(kernel, pascal, tmp_path):
    before = os.umask(0o027)
    try:
        ws.sweep(kernel, pascal, AXES, store=tmp_path / "store")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "store").iterdir()}
    assert modes == {0o640}


def test_results_reach_the_store_without_further_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_store, "_WRITE_SECONDS", 0.05)
    store = sweep_store.SweepStore(tmp_path, {}, resume=True)
    store.add(0, pd.DataFrame({"x": [1.0]}))
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    found = store.read([1])
    store.close()
    assert found[0]["x"].tolist() == [1.0]


def test_what_could_not_be_written_late_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_store, "_WRITE_SECONDS", 0.01)
    store = sweep_store.SweepStore(tmp_path / "store", {}, resume=True)
    shutil.rmtree(tmp_path / "store")

    def write():
        store.add(0, pd.DataFrame({"x": [1.0]}))  # which writes at once on a slow machine
        time.sleep(0.2)
        store.close()

    with pytest.raises(ws.InputError, match="cannot be written"):
        write()


def test_one_worker_uses_one_thread(pascal, monkeypatch):
    """Every stage that can use more is told so."""
    asked = []

    def watched(function, place):
        def call(*arguments, **options):
            asked.append(arguments[place] if len(arguments) > place else options["num_threads"])
            return function(*arguments, **options)

        return call

    for name, place in (("group_warps", 3), ("KernelWork", 3), ("MemorySystem", 1)):
        monkeypatch.setattr(ws._core, name, watched(getattr(ws._core, name), place))
    kernel = ws.patterns.strided(gs=4, iterations=2, blocks=29)
    ws.sweep(kernel, pascal, {"num_sms": [14]}, ["closed_network"], workers=1, cache=False)
    assert asked == [1, 1, 1]


@pytest.mark.parametrize("name", ["gtx1080", "h100-pcie"])
@pytest.mark.parametrize(
    "point",
    [
        {"dram_latency": 400.0},
        {"base_clock_ghz": 1.2},
        {"base_clock_ghz": 0},
        {"num_sms": 7, "l2_latency": 300.0},
        {"clock_ghz": 1.1},
        {"clock_ghz": 1.1, "dram_latency": 222.0},
    ],
)
@pytest.mark.filterwarnings("ignore:.*base_clock_ghz:UserWarning")
def test_points_under_a_profiler_are_predicted_as_alone(name, point):
    """The clock that Nsight Compute holds is that of the point's description."""
    kernel = ws.patterns.strided(gs=4, iterations=2, blocks=29)
    models = ["closed_network", "mdm"]
    swept = ws.sweep(kernel, name, [point], models, profiler="ncu", cache=False)
    alone = ws.predict(kernel, ws.gpu(name).replace(**point), models, profiler="ncu")
    same = ["model", "cycles", "time_us", "launch_us", "ipc", "gpu_digest", "gpu_changes"]
    pd.testing.assert_frame_equal(swept[same], alone[same], check_exact=True)
    assert {field: swept[field].iloc[0] for field in point} == point
