"""Frequency scaling: clock domains in the models, and CRISP."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from machines import plain_pascal

FAST = ws.gpu("pascal-mdm").replace(clock_ghz=2.0)


def one_warp(loads=0, computation=0, stores=0):
    """One warp: dependent loads of lines of their own, a chain of additions, and stores."""
    k = ws.patterns.KernelBuilder("one", grid=1, block=32)
    for i in range(loads):
        k.emit("LDG.E", dst=4, src=4, address=0x100000 + 4096 * i + 4 * k.thread)
    for _ in range(computation):
        k.emit("FADD", dst=8, src=8)
    for i in range(stores):
        k.emit("STG.E", src=(12, 8), address=0x800000 + 128 * (32 * i + k.thread))
    return k.build()


def relative(kernel, gpu, clocks, models):
    table = ws.models.dvfs(kernel, gpu, clocks, models)
    return table.pivot_table(index="model", columns="clock_ghz", values="relative_time")


class TestCrisp:
    def test_by_hand(self):
        """60 cycles of loads with 20 of them computing, 30 of other computation, 10 of stores."""
        counters = ws.models.CrispCounters(
            cycles=100, load_critical=60, load_stall=40, store_stall=10
        )
        assert (counters.overlapped_compute, counters.other_compute) == (20, 30)
        assert counters.relative_time(1) == 1
        # A third slower: loads cover 26.7; 30 become 40, which the stores' 10 give way to.
        assert counters.relative_time(0.75) == pytest.approx(1)
        # Half: loads still cover 40; 60 of other computation.
        assert counters.relative_time(0.5) == pytest.approx(1.2)
        # A quarter: 80 overlapped are longer than the loads; 120.
        assert counters.relative_time(0.25) == pytest.approx(2.0)

    @given(st.floats(1, 1e6), st.tuples(*[st.floats(0, 1e6)] * 3), st.floats(0.01, 1))
    def test_between_constant_time_and_constant_cycles(self, cycles, parts, ratio):
        share = sum(parts) / cycles if sum(parts) > cycles else 1
        critical, stall, store = (part / share * (1 - 1e-9) for part in parts)
        counters = ws.models.CrispCounters(cycles, critical + stall, stall, store)
        time = counters.relative_time(ratio)
        assert 1 - 1e-6 <= time <= 1 / ratio + 1e-6
        assert time <= counters.relative_time(ratio / 2) + 1e-9

    def test_counters_of_loads(self):
        """Ten dependent loads: their time in DRAM is the load critical path."""
        result = ws.simulate(one_warp(loads=10), FAST)
        counters = ws.models.CrispCounters.of(result)
        assert counters.cycles == result.cycles
        # 220 cycles at 1.4 GHz, and the transfer of a line.
        latency = FAST.dram_latency
        assert 10 * latency <= counters.load_critical <= 10 * (latency + 30)
        assert counters.load_stall == pytest.approx(counters.load_critical, rel=0.02)
        assert counters.store_stall == 0

    def test_counters_of_computation(self):
        result = ws.simulate(one_warp(computation=50), FAST)
        counters = ws.models.CrispCounters.of(result)
        assert (counters.load_critical, counters.load_stall, counters.store_stall) == (0, 0, 0)
        assert counters.relative_time(0.5) == pytest.approx(2)

    def test_counters_of_stores(self):
        """Uncoalesced stores fill the queue to the NoC, and what comes after waits."""
        kernel = one_warp(stores=40)
        gpu = plain_pascal(clock_ghz=2.0, noc_bandwidth_gbs=5)
        counters = ws.models.CrispCounters.of(ws.simulate(kernel, gpu))
        assert counters.store_stall > 0.3 * counters.cycles
        assert counters.load_stall == 0

    def test_overlap_of_warps(self):
        """Warps that load at once have one critical path between them, not one each."""
        k = ws.patterns.KernelBuilder("many", grid=1, block=256)
        k.emit("LDG.E", dst=4, src=2, address=0x100000 + 4096 * (k.thread // 32) + 4 * k.thread)
        k.emit("FADD", dst=8, src=4)
        result = ws.simulate(k.build(), FAST)
        assert result.load_critical_cycles < 2 * FAST.dram_latency

    def test_errors(self):
        counters = ws.models.CrispCounters(100, 60, 40, 10)
        with pytest.raises(ws.InputError, match="at most 1"):
            counters.relative_time(1.2)
        with pytest.raises(ws.InputError, match="load_stall = nan"):
            ws.models.CrispCounters(100, 60, float("nan"), 10)


class TestDvfs:
    def test_computation_takes_cycles(self):
        models = ["gpumech", "mdm", "crisp", "simulation", "mwp_cwp"]
        found = relative(one_warp(computation=200), FAST, [1.0, 1.4], models)
        np.testing.assert_allclose(found[1.0], 2, rtol=1e-9)
        np.testing.assert_allclose(found[1.4], 2 / 1.4, rtol=1e-9)

    def test_memory_takes_time(self):
        """Of a dependent load, 120 cycles follow the clock and 314.3 (220 at 1.4 GHz) do not."""
        kernel = one_warp(loads=100)
        found = relative(kernel, FAST, [1.0], ["mt", "crisp", "simulation"])
        expected = (120 / 1.0 + 314.3 / 2) / (120 / 2 + 314.3 / 2)
        np.testing.assert_allclose(found[1.0], expected, rtol=0.03)
        # With a clock of its own, all of L2 stays.
        own = FAST.replace(l2_clock_ghz=1.4)
        found = relative(kernel, own, [1.0], ["mt", "crisp", "simulation"])
        assert (found[1.0] < 1.05).all()

    @pytest.mark.slow
    def test_rows(self, strided_path):
        app = ws.load(strided_path, kernels=[1, 2])
        table = ws.models.dvfs(app, FAST, [1.4, 2.0, 1.4], "mdm")
        assert list(table["clock_ghz"]) == [2.0, 1.4] * 2
        assert list(table["kernel"]) == [1, 1, 2, 2]
        np.testing.assert_allclose(table["ipc"], table["instructions"] / table["cycles"])
        np.testing.assert_allclose(table["time_us"], table["cycles"] / table["clock_ghz"] / 1e3)
        direct = ws.predict(app, FAST.replace(clock_ghz=1.4), "mdm")
        np.testing.assert_allclose(table.loc[table["clock_ghz"] == 1.4, "cycles"], direct["cycles"])

    def test_errors(self):
        kernel = one_warp(loads=1)
        for clocks, models, message in (
            ([0], "mdm", "0.0 GHz is not a positive clock"),
            (["x"], "mdm", "is not a list of numbers"),
            ([3], "crisp", "no clock above the nominal one, 2 GHz"),
            ([1], "crips", "there is no model 'crips'"),
            ([1], [], "no model given"),
        ):
            with pytest.raises(ws.InputError, match=message):
                ws.models.dvfs(kernel, FAST, clocks, models)


def test_pictures():
    table = ws.models.dvfs(one_warp(loads=5, computation=20), FAST, [0.7, 1.4], ["mdm", "crisp"])
    axes = ws.plot.dvfs(table)
    assert [line.get_label() for line in axes.get_lines()] == ["mdm", "crisp"]
    for line, (_, rows) in zip(axes.get_lines(), table.groupby("model", sort=False), strict=True):
        rows = rows.sort_values("clock_ghz")
        np.testing.assert_allclose(line.get_xdata(), rows["clock_ghz"])
        np.testing.assert_allclose(line.get_ydata(), rows["relative_time"])
    axes = ws.plot.dvfs(table, power_watts=lambda f: 10 + f**3)
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), [10.343, 12.744, 18])
    other = ws.models.dvfs(
        one_warp(loads=5, computation=20), FAST.replace(dram_latency=77), [0.7], ["mdm"]
    )
    with pytest.raises(ws.InputError, match="several GPUs"):
        ws.plot.dvfs(pd.concat([table, other]))
    with pytest.raises(ws.InputError, match="power_watts gives"):
        ws.plot.dvfs(table, power_watts=lambda f: -f)
    with pytest.raises(ws.InputError, match="have no column time_us"):
        ws.plot.dvfs(table.drop(columns="time_us"))
