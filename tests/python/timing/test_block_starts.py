"""Starts of thread blocks: in the simulator, in the models, and in the time that profilers report."""

import pandas as pd
import pytest

import warpstack as ws
from machines import plain_pascal


def grid(blocks, warps=1, instructions=1):
    """Return a launch whose warps never wait for anything."""
    k = ws.patterns.KernelBuilder("grid", grid=blocks, block=32 * warps)
    for i in range(instructions):
        k.emit("IADD", dst=1 + i)  # a second write of a register would wait for the first one
    return k.build()


def machine(**changes):
    """Return a machine on which each warp of `grid` ends in the cycle after its last instruction."""
    return plain_pascal(**{"integer_latency": 1, "clock_ghz": 1} | changes)


class TestSimulation:
    def test_a_place_is_free_after_the_replacement(self):
        # A warp issues in the cycle of its start and is done one later: the blocks of the one place
        # start at 0, 11 and 22, and the last one ends at 23.
        gpu = machine(num_sms=1, blocks_per_sm=1, clock_ghz=2, block_replacement_ns=5)
        assert ws.simulate(grid(3), gpu).cycles == 23
        assert ws.simulate(grid(3), gpu.replace(block_replacement_ns=0)).cycles == 3

    @pytest.mark.parametrize(("interval", "cycles"), [(0, 1), (1, 11), (5, 51), (1.4, 15)])
    def test_blocks_start_one_after_the_other(self, interval, cycles):
        # The last of 11 blocks starts after ten intervals, at the edge of a cycle.
        gpu = machine(num_sms=11, block_interval_cycles=interval)
        assert ws.simulate(grid(11), gpu).cycles == cycles

    def test_warps_start_one_after_the_other(self):
        # Those of the second block follow those of the first: at 0, 4, ..., 20.
        gpu = machine(num_sms=1, warp_start_cycles=4)
        assert ws.simulate(grid(2, warps=3), gpu).cycles == 21

    def test_waiting_for_a_block_loses_no_slot(self):
        gpu = machine(num_sms=1, blocks_per_sm=1, block_replacement_ns=100)
        stack = ws.simulate(grid(3), gpu).cpi_stack
        assert {part for part, value in stack.items() if value} == {"base"}

    def test_greedy_schedulers_stay_with_their_warps(self):
        """Five warps of a scheduler, each ready every fourth cycle: four of them fill it.

        In turns all five end together, after 5 x 100 slots; where the same four always go first, the
        fifth one, of which only a few slots were left, runs alone for 4 x 100 more.
        """
        k = ws.patterns.KernelBuilder("chains", grid=5, block=32)
        for _ in range(100):
            k.emit("FFMA", dst=1, src=1)
        gpu = machine(num_sms=1, fp32_latency=4)
        kernel = k.build()
        cycles = {
            order: ws.simulate(kernel, gpu.replace(scheduler=order)).cycles
            for order in ("lrr", "gto", "gty", "oldest")
        }
        assert cycles["lrr"] == pytest.approx(500, abs=8)
        for order in ("gto", "gty", "oldest"):
            assert cycles[order] == pytest.approx(800, abs=16)


class TestModels:
    def test_no_less_than_the_chains(self):
        """10 blocks of 2 warps of 8 instructions on 2 SMs with 2 places each; 1 GHz.

        Alone a warp takes 8 cycles, a block the 16 in which it issues. A place has 3 blocks, the last
        of which follows two pauses of 50: 3 x 7 + 3 x 16 + 2 x 50. With an interval of 40 the last of
        ten starts at 360.
        """
        gpu = machine(num_sms=2, blocks_per_sm=2, warp_start_cycles=3, block_replacement_ns=50)
        kernel = grid(10, warps=2, instructions=8)

        def cycles(**changes):
            return ws.predict(kernel, gpu.replace(**changes), "mdm")["cycles"].iloc[0]

        assert cycles(block_interval_cycles=7) == pytest.approx(3 * 7 + 3 * 16 + 2 * 50)
        assert cycles(block_interval_cycles=40) == pytest.approx(9 * 40 + 16)
        # 80 instructions of an SM; the second SM starts after the first.
        assert cycles(warp_start_cycles=0, block_replacement_ns=0) == pytest.approx(80)
        none = {"warp_start_cycles": 0, "block_replacement_ns": 0, "block_interval_cycles": 1}
        assert cycles(**none) == pytest.approx(80 + 1)

    @pytest.mark.parametrize("model", ["gpumech", "mdm", "mwp_cwp", "closed_network"])
    def test_empty_blocks_take_what_the_simulation_says(self, model):
        gpu = ws.gpu("h100-pcie")
        kernel = grid(5000, warps=4)
        simulated = ws.simulate(kernel, gpu).cycles
        predicted = ws.predict(kernel, gpu, model)["cycles"].iloc[0]
        assert simulated > 5000
        assert predicted == pytest.approx(simulated, rel=0.03)

    def test_the_stack_keeps_its_proportions(self):
        kernel = ws.patterns.gather(blocks=40)
        gpu = machine(num_sms=4)
        late = gpu.replace(block_interval_cycles=100_000)
        one, other = (ws.predict(kernel, g, "mdm").iloc[0] for g in (gpu, late))
        slower = other["cycles"] / one["cycles"]
        assert slower > 2
        for part in ("cpi", "cpi_base", "cpi_dram"):
            assert other[part] == pytest.approx(one[part] * slower)
        assert other["ipc"] == pytest.approx(other["instructions"] / other["cycles"])

    def test_sweeps_agree(self):
        kernel = grid(300, warps=2, instructions=5)
        axes = {"block_interval_cycles": [0, 3], "num_sms": [2, 28], "launch_us_nsys": [0, 7]}
        table = ws.sweep(kernel, "pascal-mdm", axes, ["mdm", "closed_network"])
        for row in table.itertuples():
            gpu = ws.gpu("pascal-mdm").replace(**{name: getattr(row, name) for name in axes})
            alone = ws.predict(kernel, gpu, row.model).iloc[0]
            for name in ("cycles", "time_us", "launch_us", "ipc", "cpi", "cpi_base"):
                assert getattr(row, name) == pytest.approx(alone[name], rel=1e-12), name


LAUNCHES = {
    "launch_us_nsys": 1.5,
    "launch_us_ncu": 3,
    "launch_us_nvprof": 2,
    "launch_us_events": 6,
    "launch_us_batch": 1,
}


@pytest.fixture(scope="module")
def gpu():
    # With a name of its own: nobody has given it another clock than its own.
    return plain_pascal(name="held", clock_ghz=2, base_clock_ghz=1, **LAUNCHES)


class TestTime:
    @pytest.mark.parametrize(
        ("profiler", "clock"), [("nsys", 2), ("ncu", 1), ("nvprof", 2), ("events", 2), ("batch", 2)]
    )
    def test_contains_the_launch_at_the_profilers_clock(self, gpu, profiler, clock):
        kernel = ws.patterns.stream(blocks=8)
        predicted = ws.predict(kernel, gpu, "mdm", profiler=profiler).iloc[0]
        simulated = ws.timing.as_table(ws.simulate(kernel, gpu, profiler=profiler)).iloc[0]
        launch = LAUNCHES[f"launch_us_{profiler}"]
        for row in (predicted, simulated):
            assert row["launch_us"] == launch
            assert row["time_us"] == pytest.approx(row["cycles"] / clock / 1000 + launch)
            assert row["gpu_changes"] == predicted["gpu_changes"]
        at_clock = gpu.replace(clock_ghz=clock)
        assert predicted["cycles"] == ws.predict(kernel, at_clock, "mdm")["cycles"].iloc[0]
        assert simulated["cycles"] == ws.simulate(kernel, at_clock).cycles

    def test_nobody_holds_a_clock_that_was_given(self, gpu):
        kernel = ws.patterns.stream(blocks=8)
        table = ws.predict(kernel, gpu.replace(clock_ghz=1.7), "mdm", profiler="ncu")
        assert table["gpu_changes"].iloc[0].endswith("clock_ghz=1.7")
        swept = ws.sweep(kernel, gpu, {"clock_ghz": [1.7, 3]}, "mdm", profiler="ncu")
        assert swept["time_us"].iloc[0] == pytest.approx(table["time_us"].iloc[0])

    def test_a_clock_that_is_not_known_is_told_of(self, gpu):
        kernel = ws.patterns.stream(blocks=8)
        unknown = plain_pascal(name="unknown", clock_ghz=2, **LAUNCHES)
        with pytest.warns(UserWarning, match="GPU unknown: .* no base_clock_ghz.* at 2 GHz"):
            table = ws.predict(kernel, unknown, "mdm", profiler="ncu")
        assert table["time_us"].iloc[0] == pytest.approx(table["cycles"].iloc[0] / 2000 + 3)
        # Nobody is warned of a clock that was given.
        ws.predict(kernel, unknown.replace(clock_ghz=1), "mdm", profiler="ncu")

    def test_launches_add_up(self, gpu):
        app = ws.App([ws.patterns.stream(blocks=8), ws.patterns.gather(blocks=8)])
        table = ws.predict(app, gpu, "mdm")
        total = ws.models.application_totals(table).iloc[0]
        assert total["launch_us"] == 2 * 1.5
        assert total["time_us"] == pytest.approx(table["time_us"].sum())
        old = table.drop(columns=["time_us", "launch_us", "time_us_low", "time_us_high"])
        assert "time_us" not in ws.models.application_totals(old)

    def test_roofline_and_frequencies_have_it(self, gpu):
        kernel = ws.patterns.stream(blocks=8)
        one = ws.predict(kernel, gpu, "mdm").iloc[0]
        roofs = ws.models.roofline(kernel, gpu, "mdm")
        assert set(roofs["time_us"]) == {one["time_us"]}
        clocks = ws.models.dvfs(kernel, gpu, [1], "mdm", profiler="nvprof")
        assert list(clocks["launch_us"]) == [2, 2]
        assert clocks["time_us"].iloc[0] == pytest.approx(one["time_us"] + 0.5)

    def test_rows_of_several_profilers(self, gpu):
        result = ws.simulate(ws.patterns.stream(blocks=8), gpu)
        rows = pd.concat([result.to_frame(name) for name in ("nsys", "nvprof")])
        assert list(rows["launch_us"]) == [1.5, 2]
        assert result.time_us == rows["time_us"].iloc[0]

    def test_an_unknown_profiler(self, gpu):
        kernel = ws.patterns.stream(blocks=8)
        message = "profiler = 'vtune' is not one of nsys, ncu, nvprof, events"
        for call in (ws.predict, ws.simulate, ws.models.roofline):
            with pytest.raises(ws.InputError, match=message):
                call(kernel, gpu, profiler="vtune")
        with pytest.raises(ws.InputError, match=message):
            ws.sweep(kernel, gpu, {"num_sms": [1]}, profiler="vtune")
        with pytest.raises(ws.InputError, match=message):
            ws.models.dvfs(kernel, gpu, [1], profiler="vtune")


class TestLatencies:
    def test_a_chain_takes_what_was_measured(self):
        """100 dependent instructions: 5 cycles each as results of 4 cycles, 4 as chains measure them."""
        k = ws.patterns.KernelBuilder("chain", grid=1, block=32)
        for _ in range(100):
            k.emit("FFMA", dst=1, src=1)
        gpu = plain_pascal(num_sms=1, fp32_latency=4)
        chained = gpu.replace(latency_counts="issue_to_issue")
        kernel = k.build()
        for model in ("gpumech", "mdm", "closed_network"):
            cycles = [ws.predict(kernel, g, model)["cycles"].iloc[0] for g in (gpu, chained)]
            # A warp of closed_network ends when its last result is there.
            last = [4, 3] if model == "closed_network" else [1, 1]
            assert cycles == pytest.approx([99 * 5 + last[0], 99 * 4 + last[1]])
        assert ws.simulate(kernel, gpu).cycles == ws.simulate(kernel, chained).cycles

    def test_dram_efficiency_is_bandwidth(self):
        kernel = ws.patterns.stream(blocks=64)
        gpu = plain_pascal(dram_bandwidth_gbs=100, dram_efficiency=0.5)
        half = plain_pascal(dram_bandwidth_gbs=50)
        assert ws.simulate(kernel, gpu).cycles == ws.simulate(kernel, half).cycles
        for model in ("mdm", "gpumech", "mwp_cwp", "closed_network"):
            one, other = (ws.predict(kernel, g, model)["cycles"].iloc[0] for g in (gpu, half))
            assert one == other


@pytest.mark.parametrize(
    ("opcode", "unit"),
    [
        ("F2F.F64.F32", "fp64"),
        ("I2F.F32.S64", "fp64"),
        ("F2I.F64.TRUNC", "fp64"),
        ("I2F.S32", "sfu"),
        ("MUFU.RCP64H", "sfu"),
        ("DADD", "fp64"),
        ("FFMA", "fp32"),
    ],
)
def test_the_busiest_unit_bounds_every_model(opcode, unit):
    """100 instructions of 8 warps over 4 schedulers, one every 64 cycles: 2 x 100 x 64."""
    k = ws.patterns.KernelBuilder("units", grid=1, block=256)
    for i in range(100):
        k.emit(opcode, dst=6 + 2 * (i % 40), src=4)
    kernel = k.build()
    gpu = plain_pascal(num_sms=1, issue_width=4, schedulers_per_sm=4, **{f"{unit}_interval": 64})
    # The last one only has to start.
    assert ws.simulate(kernel, gpu).cycles == pytest.approx(2 * 100 * 64, rel=0.02)
    for model in ("gpumech", "mdm", "mwp_cwp", "closed_network"):
        row = ws.predict(kernel, gpu, model).iloc[0]
        assert row["cycles"] == pytest.approx(2 * 100 * 64)
        assert row["cpi_dep"] == pytest.approx(row["cpi"] - row["cpi_base"])
    faster = gpu.replace(**{f"{unit}_interval": 1})
    assert ws.predict(kernel, faster, "mdm")["cycles"].iloc[0] < 2000


@pytest.mark.parametrize(("warps", "of_one"), [(1, 1), (5, 2), (8, 2)])
def test_a_warp_has_the_unit_of_its_scheduler_alone(warps, of_one):
    # Four schedulers: the fifth warp shares one with the first.
    k = ws.patterns.KernelBuilder("units", grid=1, block=32 * warps)
    for i in range(100):
        k.emit("DFMA", dst=6 + 2 * (i % 40), src=(6 + 2 * (i % 40), 2, 4))
    kernel = k.build()
    gpu = plain_pascal(num_sms=1, issue_width=4, schedulers_per_sm=4, fp64_interval=64)
    assert ws.simulate(kernel, gpu).cycles == pytest.approx(of_one * 100 * 64, rel=0.02)
    for model in ("mdm", "closed_network"):
        cycles = ws.predict(kernel, gpu, model)["cycles"].iloc[0]
        assert cycles == pytest.approx(of_one * 100 * 64)


def test_large_empty_blocks_take_a_place_for_as_long_as_they_issue():
    # 500 blocks on one SM with two places: 250 times 32 cycles and 100 until the next one starts.
    gpu = machine(num_sms=1, blocks_per_sm=2, block_replacement_ns=100)
    kernel = grid(500, warps=32)
    predicted = ws.predict(kernel, gpu, "mdm")["cycles"].iloc[0]
    assert predicted == pytest.approx(250 * (32 + 100) - 100)
    assert predicted == pytest.approx(ws.simulate(kernel, gpu).cycles, rel=0.02)
