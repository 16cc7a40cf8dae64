"""The simulator against its plain definition, by hand, and against conservation laws."""

import concurrent.futures
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timed_gpus import BLOCK_STARTS, assert_same, timed_gpus

import warpstack as ws
from configurations import simulator_config
from effort import rounds
from machines import plain_pascal
from python_reference.timing import Machine
from strategies import controlled_kernels, copying_kernels, kernels, waiting_kernels
from warpstack.cli import main


@pytest.mark.slow
@settings(max_examples=rounds(50, costly=True))
@given(
    st.one_of(kernels(), copying_kernels(), waiting_kernels()),
    timed_gpus(),
    st.sampled_from([0.0, 0.4, 1.0]),
)
def test_equals_plain_definition(kernel, gpu, written):
    result = ws.simulate(kernel, gpu, initial_l2=written)
    assert_same(result, Machine(simulator_config(gpu, written)).run(kernel))


@pytest.mark.slow
@settings(max_examples=rounds(80, costly=True))
@given(st.one_of(kernels(), controlled_kernels()), BLOCK_STARTS)
def test_block_starts_equal_plain_definition(kernel, changes):
    gpu = plain_pascal(**changes)
    assert_same(ws.simulate(kernel, gpu), Machine(simulator_config(gpu)).run(kernel))


@pytest.mark.slow
@settings(max_examples=rounds(8))
@given(
    st.lists(kernels(max_blocks=3), min_size=2, max_size=3),
    timed_gpus(),
    st.sampled_from([0.0, 0.4, 1.0]),
    st.booleans(),
)
def test_l2_persists_between_kernels(launches, gpu, written, flush_l2):
    plain = Machine(simulator_config(gpu, written))
    for result in ws.simulate(ws.App(launches), gpu, initial_l2=written, flush_l2=flush_l2):
        if flush_l2:
            plain.l2.flush()
        assert_same(result, plain.run(result.kernel))


BARRIERS = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k() {
  .reg .b32 %r<4>;
  .reg .pred %p<2>;
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra meet;
  mul.lo.s32 %r2, %r1, %r1;
  mul.lo.s32 %r2, %r2, %r2;
  mul.lo.s32 %r2, %r2, %r2;
meet:
  SYNC
  mul.lo.s32 %r3, %r1, %r1;
  mul.lo.s32 %r3, %r3, %r3;
  ret;
}
"""


@pytest.mark.parametrize(
    "barrier", ["bar.sync 0;", "barrier.cta.sync 0;", "barrier.sync.aligned 0;"]
)
def test_barriers_of_ptx_hold_warps(pascal, barrier):
    """The second warp of the block waits until the first has come."""

    def trace(text):
        module = ws.cuda.compile(BARRIERS.replace("SYNC", text), device=ws.cuda.Device(0.25))
        return module.kernel("k").launch(1, 64)

    gpu = pascal.replace(integer_latency=40)
    held = ws.simulate(trace(barrier), gpu)
    assert_same(held, Machine(simulator_config(gpu)).run(held.kernel))
    free = ws.simulate(trace("membar.cta;"), gpu)
    assert held.cycles > free.cycles


def one_warp(seed, instructions=300):
    """A warp of loads and stores of a footprint a little larger than L1."""
    rng = np.random.default_rng(seed)
    k = ws.patterns.KernelBuilder("one_warp", grid=1, block=32)
    for i in range(instructions):
        spread = rng.choice([1, 4, 32])
        address = 0x10000 + 4 * ((rng.integers(0, 20000) + spread * k.thread) % 20000)
        if i % 5 == 4:
            k.emit("STG.E", src=(2, 4), address=address)
        else:
            k.emit("LDG.E", dst=4, src=2, address=address)
    return k.build()


SECTORED = {"l1_sector_bytes": 32, "l2_sector_bytes": 32}


class TestAgainstCacheSimulation:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            SECTORED,
            {**SECTORED, "l1_write_policy": "write_back", "l1_write_miss": "fetch_on_write"},
            {"l1_mshrs": 2, "l1_mshr_targets": 1, "l2_mshrs": 1, "l2_queue_entries": 1},
        ],
    )
    def test_one_warp_has_the_same_counts(self, pascal, changes):
        gpu = pascal.replace(l1_size_kib=12, l2_size_kib=48, **changes)
        for seed in range(3):
            kernel = one_warp(seed)
            result, profile = ws.simulate(kernel, gpu), ws.simulate_caches(kernel, gpu)
            assert 0 < profile.totals["l1_read_sector_hits"] < profile.totals["l1_read_sectors"]
            for name, count in profile.totals.items():
                assert result.totals[name] == count, name

    def test_many_warps_come_close(self, bfs, pascal):
        timed, functional = ws.simulate(bfs, pascal), ws.simulate_caches(bfs, pascal)
        for name, hits in (("l1_read_sectors", "l1_read_sector_hits"), ("l2_read_sectors", None)):
            sectors = [sum(r.totals[name] for r in results) for results in (timed, functional)]
            if hits is None:
                assert sectors[0] == pytest.approx(sectors[1], rel=0.05)
                continue
            assert sectors[0] == sectors[1]  # what instructions touch does not depend on time
            rates = [
                sum(r.totals[hits] for r in results) / sectors[0] for results in (timed, functional)
            ]
            assert rates[0] == pytest.approx(rates[1], abs=0.02)


class TestConservation:
    @pytest.mark.slow
    @settings(max_examples=rounds(40))
    @given(kernels(), timed_gpus())
    def test_holds_on_every_gpu(self, kernel, gpu):
        result = ws.simulate(kernel, gpu)
        totals, stack = result.totals, result.cpi_stack
        assert result.instructions == kernel.num_instructions
        assert sum(stack.values()) == pytest.approx(result.cpi, rel=1e-12)
        assert all(value >= 0 for value in stack.values())
        # A chain of loads is no longer than the time; store stalls are part of what the unit waits for.
        assert 0 <= result.load_critical_cycles <= result._core.sm_cycles
        slots = result._core.slots
        assert 0 <= result.store_stall_slots <= slots["mshr"] + slots["noc"]
        sent = totals["l2_read_requests"] + totals["l2_write_requests"]
        if gpu.l1_write_policy == "write_through" and not totals["l2_atomic_sectors"]:
            assert totals["noc_request_packets"] == sent
        # Data that are read come back; atomics that return something do too, and so do awaited stores.
        assert totals["noc_reply_packets"] >= totals["l2_read_requests"]
        more_bytes = totals["noc_reply_bytes"] - 32 * totals["l2_read_sectors"]
        answers = totals["noc_reply_packets"] - totals["l2_read_requests"]
        acknowledged = gpu.store_acknowledgement == "awaited" or gpu.atomic_wait == "until_done"
        control_bytes = gpu.noc_control_bytes * answers if acknowledged else 0
        assert 0 <= more_bytes <= 32 * totals["l2_atomic_sectors"] + control_bytes
        memory = ws.simulate_caches(kernel, gpu).totals
        for name in ("l1_read_sectors", "l1_write_sectors"):
            assert totals[name] == memory[name]
        if gpu.atomic_requests == "per_line":
            assert totals["l2_atomic_sectors"] == memory["l2_atomic_sectors"]
        else:
            assert totals["l2_atomic_sectors"] >= memory["l2_atomic_sectors"]
        latency = result.miss_latency
        assert (latency["cycles"] >= 0).all()
        # No miss is faster than an L2 hit.
        assert latency["cycles"].sum() >= result.misses * gpu.l2_latency - 1e-6

    def test_stack_and_latency_of_a_divergent_kernel(self, pascal):
        result = ws.simulate(ws.patterns.strided(gs=32, blocks=112, iterations=4), pascal)
        assert sum(result.cpi_stack.values()) == pytest.approx(result.cpi, rel=1e-12)
        assert result.cpi_stack["base"] == pytest.approx(1)
        assert result.ipc * result.cpi <= pascal.num_sms
        few = ws.simulate(
            ws.patterns.strided(gs=32, blocks=112, iterations=4), pascal.replace(l1_mshrs=16)
        )
        assert few.miss_latency["mean"]["mshr"] > 2 * result.miss_latency["mean"]["mshr"]
        assert few.cycles > result.cycles


@pytest.fixture(scope="module")
def stream():
    return ws.patterns.strided(gs=32, blocks=112, iterations=1)


@pytest.fixture(scope="module")
def app(strided_path):
    return ws.load(strided_path)


class TestTrends:
    """Less of a resource that a kernel is bound by takes longer, and shows where it is lost."""

    def test_dram_bandwidth(self, stream, pascal):
        fast, slow = (
            ws.simulate(stream, pascal.replace(dram_bandwidth_gbs=gbs)) for gbs in (960, 120)
        )
        assert slow.cycles > 2 * fast.cycles
        assert slow.miss_latency["mean"]["queue"] > 4 * fast.miss_latency["mean"]["queue"]
        assert slow.cpi_stack["queue"] > fast.cpi_stack["queue"]

    def test_noc_bandwidth(self, stream, pascal):
        gpu = pascal.replace(dram_bandwidth_gbs=10000)
        fast, slow = (
            ws.simulate(stream, gpu.replace(noc_bandwidth_gbs=gbs)) for gbs in (1050, 100)
        )
        assert slow.cycles > 3 * fast.cycles
        # Loads wait in the NoC and, because those before them do, for MSHRs.
        assert slow.miss_latency["mean"]["noc"] > 10 * fast.miss_latency["mean"]["noc"]
        waiting = [r.cpi_stack["noc"] + r.cpi_stack["mshr"] for r in (fast, slow)]
        assert waiting[1] > 0.8 * slow.cpi
        assert waiting[0] < 0.7 * fast.cpi

    def test_a_streaming_l1_does_not_wait_for_mshrs(self, stream):
        # Where lines are reserved, waiting for one counts as waiting for an MSHR.
        streaming = ws.simulate(stream, plain_pascal(l1_mshrs=1, noc_queue_entries=64))
        assert streaming.miss_latency["mean"]["mshr"] == 0
        assert streaming.cycles < ws.simulate(stream, plain_pascal(l1_mshrs=8)).cycles

    def test_frequency_leaves_dram_bound_time(self, stream, pascal):
        slow = pascal.replace(dram_bandwidth_gbs=60)
        times = [
            ws.simulate(stream, gpu).cycles / gpu.clock_ghz
            for gpu in (slow, slow.replace(clock_ghz=2.8))
        ]
        assert times[1] == pytest.approx(times[0], rel=0.05)


@pytest.fixture(scope="module")
def results(app, pascal):
    return ws.simulate(app, pascal)


class TestResult:
    @pytest.mark.slow
    def test_joins_with_predictions(self, results, app, pascal):
        table = ws.timing.as_table(results)
        predictions = ws.predict(app, pascal, models=["gpumech", "mdm"])
        predictions = predictions.drop(columns=["reason", "gain"])
        assert list(table.columns) == list(predictions.columns)
        assert list(table.dtypes) == list(predictions.dtypes)
        joined = predictions.merge(table, on=["kernel", "name", "gpu", "gpu_changes"])
        assert len(joined) == len(predictions)
        assert (joined["instructions_x"] == joined["instructions_y"]).all()
        assert list(table["model"]) == ["simulation"] * 2
        totals = ws.models.application_totals(table)
        assert totals["cycles"][0] == sum(r.cycles for r in results)

    def test_keeps_l2_between_kernels_unless_flushed(self, pascal):
        kernel = ws.patterns.strided(gs=1, blocks=28, iterations=1)
        twice = ws.App([kernel, ws.patterns.strided(gs=1, blocks=28, iterations=1, launch_id=2)])
        cold, warm = ws.simulate(twice, pascal)
        assert warm.totals["dram_read_sectors"] == 0 < cold.totals["dram_read_sectors"]
        assert warm.cycles < cold.cycles - pascal.dram_latency / 2
        flushed = ws.simulate(twice, pascal, flush_l2=True)
        assert [r.cycles for r in flushed] == [cold.cycles] * 2

    @pytest.mark.slow
    def test_is_the_same_on_every_run(self, results, app, pascal):
        first, second = (
            [(r.cycles, r.totals, r.cpi_stack) for r in run]
            for run in (results, ws.simulate(app, pascal))
        )
        assert first == second

    @pytest.mark.slow
    def test_runs_in_several_threads_alike(self, results, app, pascal):
        gpus = [pascal, pascal.replace(num_sms=7)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            together = list(pool.map(lambda gpu: ws.simulate(app, gpu), gpus))
        for found, alone in zip(together, (results, ws.simulate(app, gpus[1])), strict=True):
            assert [(r.cycles, r.totals) for r in found] == [(r.cycles, r.totals) for r in alone]

    @pytest.mark.slow
    def test_timeline(self, app, pascal):
        result = ws.simulate(app.kernels[1], pascal, timeline_cycles=100)
        timeline = result.timeline
        assert list(timeline["cycle"]) == list(range(0, 100 * len(timeline), 100))
        assert result.cycles - 400 <= timeline["cycle"].iloc[-1] <= result.cycles + 400
        assert timeline["instructions"].is_monotonic_increasing
        assert timeline["l1_mshrs"].max() <= 28 * 128
        assert timeline["l1_mshrs"].max() > 28 * 64
        slow = pascal.replace(noc_bandwidth_gbs=50)
        queued = ws.simulate(app.kernels[0], slow, timeline_cycles=100).timeline["noc_queue"]
        assert queued.max() > 0
        assert ws.simulate(app.kernels[0], pascal).timeline.empty

    @pytest.mark.slow
    def test_file_backed_traces_simulate_alike(self, strided_path, results, pascal):
        in_file = ws.load(strided_path, memory_limit_mib=0.01)
        assert all(kernel.in_file for kernel in in_file)
        assert [r.cycles for r in ws.simulate(in_file, pascal)] == [r.cycles for r in results]

    def test_representations(self, app, pascal):
        result = ws.simulate(app.kernels[0], pascal)
        assert f"{result.cycles} cycles" in repr(result)
        assert f"{result.cycles:,}" in result._repr_html_()
        assert set(result.hit_rates()) == set(
            ws.simulate_caches(app.kernels[0], pascal).hit_rates()
        )
        assert result.occupancy == ws.memory.occupancy(app.kernels[0], pascal)
        assert result.l1_size_kib == 48
        assert result.active_sms == 28


class Meter:
    """Notes what it is told; fails after so many times when asked to."""

    def __init__(self, most=None):
        self.steps = []
        self.most = most

    def update(self, n):
        if len(self.steps) == self.most:
            raise KeyboardInterrupt
        self.steps.append(n)

    def set_description(self, desc=None, refresh=True):
        pass


@pytest.fixture(scope="module")
def long_kernel():
    return ws.patterns.gather(loads=24, blocks=64, footprint_mib=64)


@pytest.fixture(scope="module")
def plain(long_kernel, pascal):
    return ws.timing.Simulator(pascal).run(long_kernel)


class TestProgress:
    @pytest.mark.slow
    def test_counts_the_instructions_as_they_issue(self, plain, long_kernel, pascal):
        meter = Meter()
        watched = ws.timing.Simulator(pascal).run(long_kernel, progress=meter)
        assert sum(meter.steps) == long_kernel.num_instructions
        assert len(meter.steps) > 2
        assert min(meter.steps) >= 0
        assert (watched.cycles, watched.totals) == (plain.cycles, plain.totals)

    @pytest.mark.slow
    def test_what_it_raises_ends_the_run(self, plain, long_kernel, pascal):
        meter = Meter(most=1)
        simulator = ws.timing.Simulator(pascal)
        with pytest.raises(KeyboardInterrupt):
            simulator.run(long_kernel, progress=meter)
        assert 0 <= sum(meter.steps) < long_kernel.num_instructions
        # The simulator is good for another run.
        simulator.flush_l2()
        assert simulator.run(long_kernel).cycles == plain.cycles


class TestErrors:
    def test_too_many_cycles_say_what_warps_wait_for(self, pascal):
        kernel = ws.patterns.strided(gs=32, blocks=28, iterations=2)
        with pytest.raises(ws.InputError, match=r"max_cycles = 50 .*\n.* SM 0, block 0, warp 0"):
            ws.simulate(kernel, pascal, max_cycles=50)
        cycles = ws.simulate(kernel, pascal).cycles
        assert cycles > 50
        assert ws.simulate(kernel, pascal, max_cycles=cycles).cycles == cycles
        with pytest.raises(ws.InputError, match="is not done after max_cycles"):
            ws.simulate(kernel, pascal, max_cycles=cycles - 1)

    @pytest.mark.parametrize("argument", ["max_cycles", "timeline_cycles"])
    @pytest.mark.parametrize("value", [0, -1, 1.5, True, 2**60, "a"])
    def test_wrong_numbers(self, pascal, argument, value):
        kernel = ws.patterns.strided(gs=1, blocks=1, iterations=1)
        with pytest.raises(ws.InputError, match=argument):
            ws.simulate(kernel, pascal, **{argument: value})

    def test_a_block_that_does_not_fit(self, pascal):
        kernel = ws.patterns.strided(gs=1, blocks=1, iterations=1)
        with pytest.raises(ws.InputError, match="raise warps_per_sm"):
            ws.simulate(kernel, pascal.replace(warps_per_sm=4))

    def test_dram_channels_divide_the_slices(self, pascal):
        with pytest.raises(ws.InputError, match="dram_channels = 7 does not divide l2_slices = 24"):
            pascal.replace(dram_channels=7)

    def test_clocks_far_apart(self, pascal):
        kernel = ws.patterns.strided(gs=1, blocks=1, iterations=1)
        with pytest.raises(ws.InputError, match="10000 apart"):
            ws.simulate(kernel, pascal.replace(clock_ghz=1000, l2_clock_ghz=0.001))

    def test_no_simulations_make_no_table(self):
        with pytest.raises(ws.InputError, match="no simulations"):
            ws.timing.as_table([])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return a trace of two short kernels."""
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 32))]
    path = tmp_path_factory.mktemp("command") / "strided"
    ws.save(ws.App(kernels), path)
    return path


class TestCommandLine:
    @pytest.mark.slow
    def test_json(self, path, capsys):
        assert main(["simulate", str(path), "--json"]) == 0
        records = json.loads(capsys.readouterr().out)
        assert [r["kernel"] for r in records] == [1, 2]
        for record in records:
            assert sum(record["cpi_stack"].values()) == pytest.approx(record["cpi"])
            assert list(record["cpi_stack"]) == list(ws.models.STACK_COMPONENTS)
            assert list(record["miss_latency"]) == list(ws.timing.LATENCY_PARTS)
            assert record["totals"]["l1_read_sectors"] > 0

    @pytest.mark.slow
    def test_csv_and_table(self, path, capsys):
        assert main(["simulate", str(path), "--csv"]) == 0
        assert capsys.readouterr().out.startswith("kernel,name,gpu,gpu_changes,model,")
        assert main(["simulate", str(path), "--set", "l1_mshrs=16"]) == 0
        text = capsys.readouterr().out
        assert "pascal-mdm with l1_mshrs=16" in text
        assert "mshr" in text

    @pytest.mark.slow
    def test_samples(self, path, capsys):
        assert main(["simulate", str(path), "--sample-cycles", "1000", "--csv"]) == 0
        assert capsys.readouterr().out.startswith("kernel,cycle,instructions,resident_warps,")

    def test_errors_are_one_line(self, path, capsys):
        assert main(["simulate", str(path), "--max-cycles", "10"]) == 2
        assert capsys.readouterr().err.count("\n") == 1

    @pytest.mark.slow
    def test_settings_without_effect_are_reported(self, path, capsys):
        without_rows = ["--set", "dram_row_bytes=0"]
        assert main(["simulate", str(path), *without_rows, "--set", "dram_banks=4"]) == 0
        assert "--set dram_banks=4 has no effect" in capsys.readouterr().err
