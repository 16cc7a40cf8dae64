"""`warpstack predict --simulate`: simulated cycles beside the models', and why they differ."""

import csv
import io
import json
import re

import numpy as np
import pytest

import warpstack as ws
from accelsim_text import Instruction, grouped
from machines import PLAIN, plain_pascal
from warpstack.cli import main
from warpstack.tables import IDENTITY, PROVENANCE, SETTINGS, STACK

BASE = 1 << 30


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function that saves kernels, runs the command on them, and returns what it printed."""

    def call(kernels, *arguments):
        ws.save(ws.App(kernels, "app"), tmp_path / "trace", overwrite=True)
        assert main(["predict", str(tmp_path / "trace"), "--simulate", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    return call


def reasons(out):
    """Return the sentences under the table, each in one line."""
    _, found, after = out.partition("Cycles that differ by more than 30 % from the simulated ones")
    if not found:
        return []
    lines = after.partition("\n\n")[2].rstrip().replace("\n  ", " ")
    return [line.removeprefix("- ") for line in lines.splitlines()]


def streams(count=2, loads=2):
    return [ws.patterns.stream(loads=loads, blocks=56) for _ in range(count)]


def compute(blocks=28, length=40, longer=1, warps=8):
    """Return a kernel of arithmetic; the first warp of all has `longer` times as many instructions."""
    k = ws.patterns.KernelBuilder("compute", grid=blocks, block=32 * warps)
    for i in range(length * longer):
        k.emit("FFMA", dst=4, src=(4, 5), where=k.thread < 32 if i >= length else None)
    k.emit("EXIT")
    return k.build()


class TestTable:
    def test_rows_have_both(self, run, pascal):
        kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 8))]
        out = run(kernels, "--csv", "-m", "mdm", "gpumech")
        rows = list(csv.DictReader(io.StringIO(out)))
        assert list(rows[0]) == [
            *IDENTITY,
            *("instructions", "cycles", "simulated", "error", "time_us", "simulated_time_us"),
            *("time_us_low", "time_us_high"),
            *("launch_us", "ipc", "cpi"),
            *(*STACK, "reason", "gain", *SETTINGS, *PROVENANCE),
        ]
        app = ws.App(kernels)
        predicted = ws.predict(app, pascal, ["mdm", "gpumech"])
        simulated = np.repeat([result.cycles for result in ws.simulate(app, pascal)], 2)
        assert [float(row["simulated"]) for row in rows] == simulated.tolist()
        errors = (predicted["cycles"] / simulated - 1).tolist()
        assert [float(row["error"]) for row in rows] == pytest.approx(errors)
        records = json.loads(run(kernels, "--json", "-m", "mdm", "gpumech"))
        assert [record["error"] for record in records] == pytest.approx(errors)

    def test_sums_of_kernels(self, run, pascal):
        out = run(streams(), "-m", "mdm", "--flush-l2", "--per-launch")
        (total,) = re.findall(r"^all 2 launches +(.*)$", out, re.MULTILINE)
        app = ws.App(streams())
        predicted = ws.predict(app, pascal, "mdm", flush_l2=True)["cycles"].sum()
        simulated = sum(result.cycles for result in ws.simulate(app, pascal, flush_l2=True))
        error = f"{100 * (predicted / simulated - 1):+.0f}"
        assert total.split()[:3] == [f"{predicted:,.0f}", f"{simulated:,}", error]

    def test_without_the_option_nothing_is_simulated(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr("warpstack.timing.simulation.simulate", None)
        ws.save(ws.App(streams()), tmp_path / "trace")
        assert main(["predict", str(tmp_path / "trace"), "-m", "mdm"]) == 0
        assert "simulated" not in capsys.readouterr().out

    def test_fields_of_the_simulator_have_an_effect(self, tmp_path, capsys):
        ws.save(ws.App(streams(1)), tmp_path / "trace")
        command = ["predict", str(tmp_path / "trace"), "-m", "mdm", "--set", "l2_queue_entries=4"]
        assert main(command) == 0
        assert "no effect" in capsys.readouterr().err
        assert main([*command, "--simulate"]) == 0
        assert capsys.readouterr().err == ""


class TestReasons:
    def test_small_errors_need_none(self, run):
        assert reasons(run([compute()], "-m", "closed_network")) == []

    def test_order_of_accesses(self, run):
        """Warps in turn evict each other's lines from a small L1, greedy ones do not."""
        kernel = ws.patterns.strided(gs=32, blocks=56)
        # One instruction in front of L1, and nothing that holds it up: as greedy as can be.
        plain = [part for item in PLAIN.items() for part in ("--set", "{}={}".format(*item))]
        gpu = plain_pascal()
        (sentence,) = reasons(run([kernel], "-m", "mdm", "--access-order", "round_robin", *plain))
        assert sentence.startswith(f"1 {kernel.short_name}, mdm: the order of accesses: ")

        def misses(totals):
            return totals["l1_read_requests"] - totals["l1_read_request_hits"]

        own, greedy = (
            misses(ws.simulate_caches(kernel, gpu, access_order=order).totals)
            for order in ("round_robin", "greedy")
        )
        simulated = misses(ws.simulate(kernel, gpu).totals)
        assert own > 1.25 * greedy
        assert f"L1 {greedy:,} times instead of {own:,} (simulated: {simulated:,})" in sentence
        (predicted,) = ws.predict(kernel, gpu, "mdm", access_order="greedy")["cycles"]
        assert f"the prediction is {predicted:,.0f} cycles" in sentence
        others = reasons(run([kernel], "-m", "mdm", "--access-order", "greedy", *plain))
        assert not any(": the order of accesses: " in other for other in others)

    def test_a_limit_that_the_model_does_not_have(self, run):
        """Each thread loads 32 bytes, and DRAM brings 21 bytes per cycle at 30 GB/s; rows take time, too."""
        slow = ["--set", "dram_bandwidth_gbs=30"]
        missing, short = reasons(run(streams(1, loads=8), "-m", "mt", "gpumech", *slow))
        what = r"saturation: DRAM is busy for (\d+) % of the simulated cycles, "
        busy = re.fullmatch(rf"1 stream, mt: {what}a limit that is not in the model", missing)
        simulated = ws.simulate(
            *streams(1, loads=8), ws.gpu("pascal-mdm").replace(dram_bandwidth_gbs=30)
        )
        data = 56 * 256 * 8 * 4 / (30 / 1.4)
        assert 100 * data / simulated.cycles - 5 <= int(busy[1]) <= 100
        # The mean wait of GPUMech's queue is half of what the last request waits for.
        assert re.fullmatch(
            rf"1 stream, gpumech: {what}longer than the queueing delay of the model", short
        )

    def test_a_channel_that_everybody_wants(self, run):
        """3,584 lines of 128 bytes, all in one of 24 channels: 20 GB/s of 480, 32,113 cycles at 1.4 GHz."""
        k = ws.patterns.KernelBuilder("camp", grid=56, block=256)
        for i in range(8):
            address = BASE + (k.thread // 32) * 6144 * 8 + i * 6144
            k.emit("LDG.E", dst=2 + i, src=1, address=address)
        for i in range(8):
            k.emit("FFMA", dst=20, src=(2 + i, 20))
        k.emit("EXIT")
        plain = [part for item in PLAIN.items() for part in ("--set", "{}={}".format(*item))]
        kernel = k.build()
        # closed_network knows the channel, and needs no reason.
        assert reasons(run([kernel], "-m", "closed_network", *plain)) == []
        (sentence,) = reasons(run([kernel], "-m", "mdm", *plain))
        busy = re.fullmatch(
            r"1 camp, mdm: saturation: one channel of DRAM is busy for (\d+) % of the simulated "
            r"cycles, a limit that is not in the model",
            sentence,
        )
        assert 95 <= int(busy[1]) <= 100

    def test_round_trips_on_top_of_a_limit(self, run):
        """A saturated NoC, and MDM's batches of misses that wait for MSHRs besides."""
        kernel = ws.patterns.gather(loads=4, blocks=112, footprint_mib=64)
        change = ["--set", "noc_bandwidth_gbs=200", "--set", "l1_mshrs=32"]
        (sentence,) = reasons(run([kernel], "-m", "mdm", *change))
        assert re.search(
            r"mdm: saturation: the NoC is busy for \d+ % of the simulated cycles, and on top of that "
            r"come the model's round trips of misses \(mshr\)$",
            sentence,
        )

    def test_unequal_warps(self, run):
        """One warp of 224 has 20 times the instructions; the closed network plays the launch."""
        kernel = compute(longer=20)
        (sentence,) = reasons(run([kernel], "-m", "gpumech", "mdm", "closed_network"))
        who, _, what = sentence.partition(": unequal warps: the SM that ends last runs ")
        assert who == "1 compute, gpumech, mdm"
        # 40 * 20 instructions and EXIT, over a mean of (223 * 41 + 801) / 224; and its neighbours' delay.
        times = float(re.match(r"about (\S+) times the instructions, ", what)[1])
        assert times == pytest.approx(801 / ((223 * 41 + 801) / 224), rel=0.1)

    def test_atomics_on_one_address(self, run):
        """2,048 warps each ask one slice of L2 twenty times, which takes a request per cycle."""
        k = ws.patterns.KernelBuilder("count", grid=256, block=256)
        for _ in range(20):
            k.emit("RED.E.ADD", src=(2, 4), address=BASE)
        k.emit("EXIT")
        # The closed network model has a station for the slice.
        (sentence,) = reasons(run([k.build()], "-m", "mt", "closed_network"))
        busy = re.match(
            r"1 count, mt: atomics on one address: its slice of L2 serves them "
            r"for (\d+) % of the simulated cycles",
            sentence,
        )
        assert 90 <= int(busy[1]) <= 100

    def test_no_cause(self, run):
        ws.models.register("far_off", lambda intervals, wave, gpu: {"base": 1e6})
        try:
            (sentence,) = reasons(run([compute()], "-m", "far_off"))
        finally:
            ws.models.unregister("far_off")
        assert sentence.startswith("1 compute, far_off: no single cause is known; ")

    @pytest.mark.filterwarnings("ignore::warpstack.errors.TraceWarning")
    def test_blocks_that_were_not_traced(self, tmp_path, capsys):
        steps = [Instruction(16 * i, "FADD", [4], [4]) for i in range(20)]
        text = grouped({(0, 0, 0): {0: [*steps, Instruction(320, "EXIT")]}}, 5, grid=(99, 1, 1))
        (tmp_path / "kernel-1.traceg").write_text(text)
        (tmp_path / "kernelslist.g").write_text("kernel-1.traceg\n")
        arguments = ["predict", str(tmp_path), "--simulate", "-m", "mt", "--set", "num_sms=1"]
        assert main(arguments) == 0
        (sentence,) = reasons(capsys.readouterr().out)
        assert "98 of 99 thread blocks were not traced; the simulator does not run them" in sentence

    def test_equal_reasons_are_one_sentence(self, run):
        ws.models.register("far_off", lambda intervals, wave, gpu: {"base": 1e6})
        try:
            found = reasons(run([compute() for _ in range(4)], "-m", "far_off"))
        finally:
            ws.models.unregister("far_off")
        assert [one.partition(", far_off")[0] for one in found] == [
            "1 compute, 1 compute and 2 more"
        ]
