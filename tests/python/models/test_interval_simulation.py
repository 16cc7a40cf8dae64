"""Interval simulation as a model: what it keeps to, how near it is to the simulator, what it reads."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import kernel_recipes as kr
import random_cases as rc
import warpstack as ws
from warpstack._core import GPU_FIELDS
from warpstack.cli import main
from warpstack.errors import UnusedOptionWarning
from warpstack.exploration.stage_cache import StageCache
from warpstack.hardware.description import Gpu, is_whole
from warpstack.interval.profile import whole_instructions
from warpstack.memory.caches import MemorySystem
from warpstack.models.interval_simulation import FIELDS, NAME, IntervalSimulator
from warpstack.models.prediction import evaluate_all, fields_used

PARTS = [f"cpi_{part}" for part in ws.models.STACK_COMPONENTS]
PREDICTED = ["instructions", "cycles", "ipc", "cpi", *PARTS]
AXES = {"num_sms": [4, 8], "dram_bandwidth_gbs": [60, 200]}


def case(seed, size=kr.SIZE):
    """Return a random kernel and GPU on which its blocks fit."""
    rng = np.random.default_rng([5417, seed])
    recipe = (kr.random_recipe if seed % 2 else rc._mixed_recipe)(rng, size)
    gpu = kr.random_gpu(rng)
    return kr.trace(rc._fitting(recipe, gpu)), gpu


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.gather(blocks=48)


@pytest.fixture(scope="module")
def app(kernel):
    return ws.App([kernel, ws.patterns.strided(gs=8, iterations=4, blocks=28), kernel])


@pytest.fixture
def runs(monkeypatch):
    """Count the runs of interval simulation."""
    found = []
    run = IntervalSimulator.run

    def counted(self, kernel):
        found.append(kernel)
        return run(self, kernel)

    monkeypatch.setattr(IntervalSimulator, "run", counted)
    return found


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_laws_of_random_kernels(seed):
    """Instructions and requests are the trace's, the stack sums, and again gives the same."""
    kernel, gpu = case(seed)
    found = IntervalSimulator(gpu).run(kernel)
    assert found.instructions == kernel.num_instructions
    assert sum(found.stack.values()) == pytest.approx(found.sm_cycles, rel=1e-9)
    assert min(found.stack.values()) >= 0
    assert 0 < found.sm_cycles <= found.cycles * min(gpu.num_sms, kernel.num_blocks)
    assert IntervalSimulator(gpu).run(kernel) == found
    caches, simulated = ws.simulate_caches(kernel, gpu).totals, ws.simulate(kernel, gpu).totals
    # What warps ask of the caches does not depend on when they ask.
    for name in caches:
        if name.startswith(("l1_", "shared_")) and name.endswith(
            ("requests", "instructions", "wavefronts")
        ):
            assert found.totals[name] == caches[name] == simulated[name], name
    reads = "l1_read_sectors", "l1_write_sectors"
    assert [found.totals[name] for name in reads] == [simulated[name] for name in reads]
    (row,) = ws.predict(kernel, gpu, NAME).to_dict("records")
    assert row["cycles"] == found.cycles
    assert row["ipc"] == pytest.approx(found.instructions / found.cycles)
    assert row["cpi"] == pytest.approx(found.sm_cycles / found.instructions)
    assert sum(row[part] for part in PARTS) == pytest.approx(row["cpi"], rel=1e-9)


@pytest.mark.slow
def test_it_is_near_the_simulator():
    errors = []
    for seed in range(100, 140):
        kernel, gpu = case(seed)
        predicted = ws.predict(kernel, gpu, NAME)["cycles"].item()
        errors.append(abs(predicted / ws.simulate(kernel, gpu).cycles - 1))
    assert np.mean(errors) < 0.05
    assert np.median(errors) < 0.02


@pytest.mark.parametrize("field", ["dram_bandwidth_gbs", "noc_bandwidth_gbs"])
def test_more_bandwidth_is_never_much_slower(field):
    for seed in range(20, 30):
        kernel, gpu = case(seed)
        before, after = (
            ws.predict(kernel, one, NAME)["cycles"].item()
            for one in (gpu, gpu.replace(**{field: 2 * getattr(gpu, field)}))
        )
        assert after <= 1.05 * before, seed


def test_l2_keeps_what_launches_leave(pascal):
    """As in the simulator: the second launch finds its data, unless L2 is emptied."""
    twice = ws.App([ws.patterns.stream(blocks=56, loads=2)] * 2)
    kept = ws.predict(twice, pascal, NAME)["cycles"].tolist()
    assert kept[1] < 0.9 * kept[0]
    simulated = [one.cycles for one in ws.simulate(twice, pascal)]
    assert kept == pytest.approx(simulated, rel=0.1)
    emptied = ws.predict(twice, pascal, NAME, flush_l2=True)["cycles"].tolist()
    assert emptied == [kept[0], kept[0]]


def test_a_launch_that_repeats_is_what_it_would_be(pascal):
    """A launch in the state of an earlier one is taken from there: in the same state it is the same."""
    small = pascal.replace(l2_size_kib=504)
    many = ws.patterns.stream(blocks=1200)
    simulator = IntervalSimulator(small)
    found = [simulator.run(many) for _ in range(6)]
    start = time.perf_counter()
    again = [simulator.run(many) for _ in range(3)]
    taken = time.perf_counter() - start
    assert again == [found[-1]] * 3
    start = time.perf_counter()
    IntervalSimulator(small).run(many)
    assert taken < 3 * (time.perf_counter() - start)


def cut(kernel, blocks, folder):
    """Return a trace file of a kernel with its first blocks alone."""
    ws.save(kernel, folder, format="accelsim")
    (folder / "warpstack-export.json").unlink()
    (path,) = folder.glob("*.traceg*")
    text = path.read_text().split("#BEGIN_TB")
    path.write_text("#BEGIN_TB".join(text[: blocks + 1]))
    return path


def test_blocks_that_were_not_traced_are_like_the_others(pascal, tmp_path):
    whole = ws.patterns.gather(blocks=8)
    with pytest.warns(ws.errors.TraceWarning, match="4 of 8"):
        kernel = ws.load(cut(whole, 4, tmp_path / "trace"))[0]
    assert kernel.num_missing_blocks == 4
    (row,) = ws.predict(kernel, pascal, NAME).to_dict("records")
    (full,) = ws.predict(whole, pascal, NAME).to_dict("records")
    assert row["instructions"] == full["instructions"]
    assert row["cycles"] == pytest.approx(full["cycles"], rel=0.1)
    (closed,) = ws.predict(kernel, pascal).to_dict("records")
    assert closed["instructions"] == row["instructions"]


def unlike_blocks(blocks):
    """Return a kernel whose blocks have more instructions the later they come."""
    k = ws.patterns.KernelBuilder("unlike", grid=blocks, block=32)
    for step in range(blocks):
        k.emit("FADD", dst=4, src=4, where=k.thread // 32 >= step)
    k.emit("EXIT")
    return k.build()


def test_cycles_of_blocks_that_all_ran_are_whole(pascal, tmp_path):
    """With 3 of 8 unlike blocks traced, 8 run in turn: their cycles count, not a share of these."""
    with pytest.warns(ws.errors.TraceWarning, match="5 of 8"):
        kernel = ws.load(cut(unlike_blocks(8), 3, tmp_path / "trace"))[0]
    found = IntervalSimulator(pascal).run(kernel)
    assert found.blocks == 8
    assert found.instructions != whole_instructions(kernel)
    (row,) = ws.predict(kernel, pascal, NAME).to_dict("records")
    assert row["instructions"] == whole_instructions(kernel)
    assert row["cycles"] == found.cycles == round(found.cycles)
    assert row["ipc"] == row["instructions"] / row["cycles"]


def test_of_very_many_blocks_that_were_not_traced_some_stand_for_all(tmp_path):
    gpu = ws.gpu("pascal-mdm").replace(num_sms=1, blocks_per_sm=2)
    with pytest.warns(ws.errors.TraceWarning, match="62 of 64"):
        kernel = ws.load(cut(ws.patterns.gather(blocks=64), 2, tmp_path / "trace"))[0]
    found = IntervalSimulator(gpu).run(kernel)
    assert found.blocks == 16
    (row,) = ws.predict(kernel, gpu, NAME).to_dict("records")
    assert row["cycles"] == found.cycles * 4


@pytest.mark.parametrize("command", [["predict", "--models", NAME], ["simulate"]])
def test_a_trace_without_blocks_is_one_error(tmp_path, capsys, command):
    path = cut(ws.patterns.gather(blocks=8), 0, tmp_path / "trace")
    assert main([command[0], str(path), "--gpu", "pascal-mdm", *command[1:]]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{path}: the file has no instruction; it is cut" in said


# --- what is computed ---------------------------------------------------------------------------


def test_alone_it_needs_neither_caches_nor_intervals(app, pascal, monkeypatch):
    expected = ws.predict(app, pascal, ["mdm", NAME])
    expected = expected[expected["model"] == NAME].reset_index(drop=True)

    def never(*args, **kwargs):
        raise AssertionError("not for this model")

    monkeypatch.setattr(MemorySystem, "run", never)
    monkeypatch.setattr("warpstack.models.pipeline.profile_of", never)
    monkeypatch.setattr("warpstack.models.pipeline.representative_warp", never)
    for options in ({}, {"sample_launches": True}):
        found = ws.predict(app, pascal, NAME, **options)
        pd.testing.assert_frame_equal(found[PREDICTED], expected[PREDICTED], check_exact=True)
    ws.sweep(app, pascal, AXES, NAME, cache=False)
    ws.search(app[0], pascal, {"num_sms": [4, 8]}, model=NAME, cache=False)


def test_a_profile_is_not_enough(kernel, pascal):
    with pytest.raises(ws.InputError, match="call predict, which has the trace"):
        ws.models.evaluate(ws.interval_profile(kernel, pascal), pascal, NAME)
    with pytest.raises(ws.InputError, match="call predict, which has the trace"):
        evaluate_all([ws.interval_profile(kernel, pascal)], [pascal], NAME)


def test_errors_name_what_is_wrong(kernel, pascal):
    with pytest.raises(ws.InputError, match="threads_per_sm"):
        ws.predict(kernel, pascal.replace(threads_per_sm=32), NAME)
    with pytest.raises(ws.InputError, match="there is a model interval_simulation already"):
        ws.models.register(NAME, lambda intervals, wave, gpu: {})


@pytest.mark.parametrize(
    "options",
    [
        {"selection": "max"},
        {"misses": "representative"},
        {"merge_threshold": 4},
        {"access_order": "greedy"},
        {"sample_sms": 0.5},
    ],
)
def test_options_that_it_does_not_read_are_reported(kernel, pascal, options):
    expected = ws.predict(kernel, pascal, NAME)
    with pytest.warns(UnusedOptionWarning, match=f"do not read {next(iter(options))}"):
        found = ws.predict(kernel, pascal, NAME, **options)
    assert (found[PREDICTED] == expected[PREDICTED]).all(axis=None)


def test_beside_a_sample_of_sms_it_is_certain(app, pascal):
    alone = ws.predict(app, pascal, NAME)
    rows = ws.predict(app, pascal, ["mdm", NAME], sample_sms=0.5)
    rows = rows[rows["model"] == NAME].reset_index(drop=True)
    assert (rows[PREDICTED] == alone[PREDICTED]).all(axis=None)
    assert (rows["ipc_low"] == rows["ipc"]).all()
    assert (rows["ipc_high"] == rows["ipc"]).all()
    assert (rows["sampled_sms"] == 0).all()


def test_a_sample_of_launches_sees_the_l2_of_all(pascal):
    launches = [ws.patterns.stream(blocks=28 + n % 2) for n in range(40)]
    full = ws.predict(ws.App(launches), pascal, NAME)
    rows = ws.predict(ws.App(launches), pascal, NAME, sample_launches=0.2)
    known = rows["launch_sampled"]
    assert 0 < known.sum() < 40
    assert (rows.loc[known, PREDICTED] == full.loc[known, PREDICTED]).all(axis=None)


def test_time_is_that_of_the_profiler():
    gpu = ws.gpu("a100").replace(base_clock_ghz=0.7)
    kernel = ws.patterns.gather(blocks=48)
    row = ws.predict(kernel, gpu, NAME, profiler="ncu")
    assert (
        row["cycles"].item()
        == ws.predict(kernel, gpu.replace(clock_ghz=0.7), NAME)["cycles"].item()
    )
    launched = row["time_us"] - row["launch_us"]
    assert launched.item() == pytest.approx(row["cycles"].item() / 0.7e3)


def test_others_take_it(app, pascal):
    """What else takes models says of it what `predict` says."""
    cycles = ws.predict(app, pascal, NAME)["cycles"]
    clocks = ws.models.dvfs(app, pascal, [1.0], [NAME, "mdm"])
    slower = ws.predict(app, pascal.replace(clock_ghz=1.0), NAME)["cycles"]
    own = clocks[clocks["model"] == NAME]
    assert own[own["clock_ghz"] == pascal.clock_ghz]["cycles"].tolist() == cycles.tolist()
    assert own[own["clock_ghz"] == 1.0]["cycles"].tolist() == slower.tolist()
    changes = {"fewer": {"num_sms": 4}}
    tried = ws.validation.what_if(app, pascal, [NAME, "mdm"], changes, simulate=False)
    tried = tried.set_index(["model", "change"])["cycles"]
    assert tried[NAME, "baseline"] == cycles.sum()
    fewer = ws.predict(app, pascal.replace(num_sms=4), NAME)["cycles"]
    assert tried[NAME, "fewer"] == fewer.sum()
    roofs = ws.models.roofline(app, pascal, NAME)
    moved = IntervalSimulator(pascal).run(app[0]).totals
    dram = roofs[roofs["level"] == "DRAM"]["bytes"].iloc[0]
    assert dram == 32 * (moved["dram_read_sectors"] + moved["dram_write_sectors"])
    both = ws.compare(NAME, "mdm", app=app, gpu=pascal)
    assert cycles.sum() in both.to_numpy()


# --- sweeps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("models", [[NAME], ["mdm", NAME, "closed_network"]])
@pytest.mark.parametrize("workers", [1, 3])
def test_every_point_is_its_prediction(app, pascal, models, workers):
    table = ws.sweep({"a": app}, pascal, AXES, models, workers=workers, cache=False)
    assert (table["error"] == "").all()
    for _, rows in table.groupby("point"):
        gpu = pascal.replace(**{axis: rows[axis].iloc[0].item() for axis in AXES})
        expected = ws.predict(app, gpu, models)
        assert rows["model"].tolist() == expected["model"].tolist()
        assert (rows[PREDICTED].to_numpy() == expected[PREDICTED].to_numpy()).all()


def test_points_that_change_nothing_it_reads_share_a_run(app, pascal, runs):
    with pytest.warns(UnusedOptionWarning, match="compute_capability has no influence"):
        ws.sweep(
            app, pascal, {"num_sms": [4, 8], "compute_capability": [0, 8, 9]}, NAME, cache=False
        )
    assert len(runs) == 2 * len(app)


def test_the_cache_keeps_runs(app, pascal, runs, tmp_path):
    first = ws.sweep(app, pascal, AXES, NAME, cache=tmp_path)
    assert len(runs) == 4 * len(app)
    again = ws.sweep(app, pascal, AXES, ["mdm", NAME], cache=tmp_path)
    assert len(runs) == 4 * len(app)
    own = again[again["model"] == NAME]
    assert (own[PREDICTED].to_numpy() == first[PREDICTED].to_numpy()).all()
    # Not of another history of L2.
    ws.sweep(app, pascal, AXES, NAME, cache=tmp_path, flush_l2=True)
    assert len(runs) == 8 * len(app)
    # A damaged entry counts as missing.
    for entry in tmp_path.glob("interval_simulation-*"):
        StageCache(tmp_path).put(NAME, entry.stem.rpartition("-")[2], {"cycles": np.zeros(3)})
    third = ws.sweep(app, pascal, AXES, NAME, cache=tmp_path)
    pd.testing.assert_frame_equal(third, first, check_exact=True)


def test_the_cache_keeps_runs_of_blocks_that_were_not_traced(pascal, tmp_path):
    with pytest.warns(ws.errors.TraceWarning, match="5 of 8"):
        kernel = ws.load(cut(unlike_blocks(8), 3, tmp_path / "trace"))[0]
    first, again = (
        ws.sweep(kernel, pascal, AXES, NAME, cache=tmp_path / "cache") for _ in range(2)
    )
    pd.testing.assert_frame_equal(again, first, check_exact=True)


def test_a_point_that_is_wrong_is_a_row_with_its_error(app, pascal):
    table = ws.sweep(app, pascal, {"threads_per_sm": [32, 2048]}, [NAME, "mdm"], cache=False)
    wrong = table["point"] == 0
    assert table.loc[wrong, "error"].str.contains("threads_per_sm").all()
    assert table.loc[wrong, "cycles"].isna().all()
    assert (table.loc[~wrong, "error"] == "").all()


def test_recorded_caches_are_for_other_models(app, pascal):
    sizes = {"l2_size_kib": [1536, 3072]}
    with pytest.warns(UnusedOptionWarning, match="caches = recorded: interval_simulation does not"):
        alone = ws.sweep(app, pascal, sizes, NAME, caches="recorded", cache=False)
    exact = ws.sweep(app, pascal, sizes, NAME, cache=False)
    pd.testing.assert_frame_equal(alone, exact, check_exact=True)
    both = ws.sweep(app, pascal, sizes, ["mdm", NAME], caches="recorded", cache=False)
    own = both[both["model"] == NAME]
    assert (own[PREDICTED].to_numpy() == exact[PREDICTED].to_numpy()).all()


def test_it_anchors_a_sweep(app, pascal):
    axes = {"num_sms": [pascal.num_sms, 8]}
    table = ws.sweep(app, pascal, axes, "mdm", anchor=NAME, cache=False)
    own = ws.predict(app, pascal, NAME)["cycles"].to_numpy()
    base, fewer = (ws.predict(app, pascal.replace(num_sms=n), "mdm") for n in axes["num_sms"])
    assert table[table["point"] == 0]["cycles"].tolist() == own.tolist()
    expected = own * (fewer["cycles"] / base["cycles"]).to_numpy()
    assert table[table["point"] == 1]["cycles"].to_numpy() == pytest.approx(expected)
    with pytest.raises(ws.InputError, match="is the swept model"):
        ws.sweep(app, pascal, axes, NAME, anchor=NAME)
    anchored = ws.sweep(app, pascal, axes, NAME, anchor="simulate", cache=False)
    simulated = [one.cycles for one in ws.simulate(app, pascal)]
    assert anchored[anchored["point"] == 0]["cycles"].tolist() == simulated


def test_a_store_goes_on_where_it_was(app, pascal, runs, tmp_path, monkeypatch):
    counted = IntervalSimulator.run

    def interrupted(self, kernel):
        if len(runs) == 7:
            raise KeyboardInterrupt
        return counted(self, kernel)

    how = {"store": tmp_path / "rows", "workers": 1, "cache": False}
    monkeypatch.setattr(IntervalSimulator, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ws.exploration.sweep_to_store(app, pascal, AXES, NAME, **how)
    monkeypatch.setattr(IntervalSimulator, "run", counted)
    ws.exploration.sweep_to_store(app, pascal, AXES, NAME, **how)
    assert len(runs) == 7 + 2 * len(app)  # two points of four were there


SWEEP = """
import sys, threading
import warpstack as ws
kernel = ws.patterns.gather(blocks=600)
threading.Timer(1.5, lambda: print("run", flush=True)).start()
ws.sweep(kernel, "pascal-mdm", {"l2_latency": range(200, 500)}, MODELS, workers=2, cache=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("models", [[NAME], ["mdm", NAME]])
def test_ctrl_c_ends_a_sweep(models):
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP.replace("MODELS", repr(models))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WARPSTACK_CACHE": "off"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with process:
        assert process.stdout.readline().startswith("run")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.stderr.read()
    assert process.returncode != 0
    assert time.monotonic() - start < 30


# --- fields -------------------------------------------------------------------------------------


def others(gpu, field):
    """Return the GPU with other values of a field, and no other field changed."""
    value = getattr(gpu, field)
    declared = next(one for one in GPU_FIELDS if one.name == field)
    if declared.choices:
        values = declared.choices
    elif declared.kind == "numbers":
        values = [(0, 16, 32)]
    elif field == "dram_interleaved_banks":
        values = [gpu.dram_banks, 1]
    elif field == "l2_size_kib":
        values = [value - gpu.l2_line_bytes * gpu.l2_ways * gpu.l2_slices / 1024, 2 * value]
    elif is_whole(field):
        values = [2 * value, value // 2, 1, value + 1, 1000, gpu.l2_slices]
    else:
        values = [2 * value + 1, value / 2, 1]
    kept = {name: getattr(gpu, name) for name in ("dram_latency", "l2_latency")}
    for new in values:
        try:
            other = gpu.replace(**{**kept, field: new})
        except ws.InputError:
            continue
        if getattr(other, field) != value:
            yield other


def answer(kernel, gpu):
    """Return all that is found of a kernel, or why nothing is."""
    try:
        return IntervalSimulator(gpu).run(kernel)
    except ws.InputError as error:
        return str(error)


def computing():
    """Return a kernel of instructions that random kernels lack, each of which waits for the one before."""
    k = ws.patterns.KernelBuilder("computing", grid=8, block=64)
    opcodes = ["HADD2", "LDC", "R2UR", "BMOV", "HMMA.1688.F16", "HMMA.1688.F32.BF16"]
    opcodes += ["HMMA.1684.F32.TF32", "DMMA.884"]
    opcodes += ["IMMA.8832.S4.S4", "BMMA.88128.POPC"]
    opcodes += ["QGMMA.64x64x32.F32.E4M3.E4M3"]
    for opcode in opcodes:
        for _ in range(6):
            k.emit(opcode, dst=4, src=[4])
    return k.build()


def straight():
    """Return a kernel of 512 instructions in a row."""
    k = ws.patterns.KernelBuilder("straight", grid=8, block=64)
    for row in [k.instruction("IADD3", dst=4, src=4) for _ in range(512)]:
        k.issue(row)
    return k.build()


def counting():
    """Return a kernel whose lanes add to words of their own."""
    k = ws.patterns.KernelBuilder("counting", grid=8, block=64)
    for _ in range(4):
        k.emit("RED.E.ADD", src=[4, 5], address=0x10000 + 4 * (k.thread % 32))
    return k.build()


#: Seeds of random kernels, on GPUs with few SMs and some with little L2, that together show most fields.
SHOWING = (*range(28), 59, 72)


def shown_cases():
    """Yield kernels and GPUs on which the fields show."""
    for seed in SHOWING:
        rng = np.random.default_rng([77, seed])
        recipe = (rc._mixed_recipe if seed % 2 else kr.random_recipe)(rng, 2500)
        gpu = kr.random_gpu(rng).replace(num_sms=4)
        if seed % 3 == 0 and gpu.l2_size_kib / 8 >= 256:
            with contextlib.suppress(ws.InputError):
                gpu = gpu.replace(l2_size_kib=gpu.l2_size_kib / 8)
        yield kr.trace(rc._fitting(recipe, gpu)), gpu
    yield computing(), ws.gpu("h100-pcie")
    # Code of 8 KiB, of which an SM holds a half, and a quarter when the kernel starts.
    fetching = {"instruction_cache_kib": 4, "instruction_fetch_cycles": 500}
    yield straight(), ws.gpu("pascal-mdm").replace(**fetching, instruction_preload_kib=2)
    yield counting(), ws.gpu("pascal-mdm").replace(l2_atomic_lane_turns=1)
    # A miss that finds the queue of its channel full waits for it in a place of its own.
    full = {"dram_queue_entries": 1, "dram_bandwidth_gbs": 20}
    yield ws.patterns.stream(blocks=64), ws.gpu("pascal-mdm").replace(**full)
    refreshed = {"dram_trefi": 200, "dram_trfc": 20}
    yield ws.patterns.stream(blocks=64), ws.gpu("pascal-mdm").replace(**refreshed)


@pytest.mark.slow
def test_it_reads_the_fields_that_it_names_and_no_other():
    """Each field in the list changes what is found of some kernel; no other changes anything."""
    unseen = set(FIELDS)
    for number, (kernel, gpu) in enumerate(shown_cases()):
        expected = answer(kernel, gpu)
        for field in sorted(unseen):
            if any(answer(kernel, other) != expected for other in others(gpu, field)):
                unseen.remove(field)
        for field in sorted(set(Gpu.fields()) - FIELDS) if number % 7 == 0 else ():
            for other in others(gpu, field):
                assert answer(kernel, other) == expected, field
    assert not unseen


def test_fields_of_a_sweep_are_those_that_it_reads():
    assert fields_used(NAME) >= FIELDS
    # What is beside the cycles of a kernel: clock and launch of a profiler.
    assert all("launch" in one or "base_clock" in one for one in fields_used(NAME) - FIELDS)
