"""What-if agreement: speedups of models and simulator, with numbers by hand and on small kernels."""

import math

import pandas as pd
import pytest

import warpstack as ws
from warpstack.models.reasons.resources import changed_gpus
from warpstack.validation.changes import best_changes

BASE = 1 << 30


def table(app, **points):
    """Return rows of an application: for each model its points by change, from a baseline of 1000."""
    rows = []
    for model, values in points.items():
        rows.append({"app": app, "model": model, "change": "baseline", "speedup": 1.0})
        for change, value in zip(("SMs", "NoC", "DRAM"), values, strict=True):
            speedup = 1 + value / 100
            rows.append({"app": app, "model": model, "change": change, "speedup": speedup})
    return pd.DataFrame(rows)


class TestAgreement:
    def test_by_hand(self):
        both = pd.concat(
            [
                # m: |10 - 40|, |30 - 38|, |0 - 0|; its best, NoC, is 2 points worse than SMs.
                table("a", m=(10, 30, 0), n=(40, 38, 0), simulation=(40, 38, 0)),
                # m: |50 - 0|, |0 - 5|, |0 - (-10)|; its best, SMs, is 5 points worse than NoC.
                table("b", m=(50, 0, 0), n=(0, 5, -10), simulation=(0, 5, -10)),
            ]
        )
        found = ws.validation.what_if_agreement(both).set_index("model")
        assert list(found.index) == ["m", "n"]
        assert list(found["apps"]) == [2, 2]
        assert list(found["pairs"]) == [6, 6]
        assert found["mean_difference"]["m"] == pytest.approx((30 + 8 + 0 + 50 + 5 + 10) / 6)
        assert found["mean_difference"]["n"] == pytest.approx(0)
        assert list(found["best_agrees"]) == [1, 2]
        within = {
            points: ws.validation.what_if_agreement(both, within=points)["best_agrees"][0]
            for points in (0, 1.9, 2, 5)
        }
        assert within == {0: 0, 1.9: 0, 2: 1, 5: 2}
        best = best_changes(both).set_index(["app", "model"])
        assert list(best.loc[("a", "m"), ["best", "simulated_best"]]) == ["NoC", "SMs"]
        numbers = best.loc[("a", "m"), ["points", "simulated_points", "lost"]]
        assert list(numbers) == pytest.approx([30, 40, 2])
        assert best.loc[("b", "m"), "lost"] == pytest.approx(5)

    def test_of_equals_the_worst_counts(self):
        """A model that sees no difference does not agree by the order of the rows."""
        one = table("a", m=(0, 0, 0), simulation=(20, 0, -5))
        (row,) = best_changes(one).to_dict("records")
        assert (row["best"], row["lost"]) == ("DRAM", pytest.approx(25))

    def test_the_baseline_does_not_count(self):
        one = table("a", m=(-1, -2, -3), simulation=(-1, -2, -3))
        assert best_changes(one)["best"][0] == "SMs"
        assert ws.validation.what_if_agreement(one)["pairs"][0] == 3

    def test_other_columns_do_not_matter(self):
        one = table("a", m=(1, 2, 3), simulation=(1, 2, 3))
        more = one.assign(simulated="x", points=7, cycles=None)
        pd.testing.assert_frame_equal(
            ws.validation.what_if_agreement(more), ws.validation.what_if_agreement(one)
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                lambda t: t.drop(columns="change"),
                "the table has no column change; expected the result",
            ),
            (lambda t: t.iloc[:0], "the table has no rows"),
            (
                lambda t: t[t["model"] != "simulation"],
                "'SMs' of the application 'a' is not simulated",
            ),
            (lambda t: t[t["model"] == "simulation"], "no changes with a model"),
            (
                lambda t: pd.concat([t, t]),
                "m has the change 'baseline' of the application 'a' twice",
            ),
            (lambda t: t.assign(speedup=0), "speedup = 0 is not"),
            (lambda t: t.assign(speedup=math.nan), "speedup = nan is not"),
        ],
    )
    def test_bad_input(self, change, message):
        with pytest.raises(ws.InputError, match=message):
            ws.validation.what_if_agreement(change(table("a", m=(1, 2, 3), simulation=(1, 2, 3))))

    def test_bad_tolerance(self):
        with pytest.raises(ws.InputError, match="within = -1"):
            ws.validation.what_if_agreement(
                table("a", m=(1, 2, 3), simulation=(1, 2, 3)), within=-1
            )


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.stream(loads=4, blocks=112, warps_per_block=4)


class TestWhatIf:
    def test_rows_are_those_of_predict_and_simulate(self, kernel, pascal):
        changes = {"SMs": {"num_sms": 56}, "slow": {"dram_bandwidth_gbs": 120, "l2_latency": 240}}
        found = ws.validation.what_if(
            kernel, pascal, ["mdm", "closed_network"], changes, access_order="greedy"
        )
        assert list(found) == [
            *("app", "gpu", "gpu_changes", "model", "change", "instructions", "cycles", "speedup"),
            "initial_l2",
        ]
        assert list(found["model"]) == ["mdm"] * 3 + ["closed_network"] * 3 + ["simulation"] * 3
        assert list(found["change"]) == ["baseline", "SMs", "slow"] * 3
        assert set(found["app"]) == {kernel.short_name}
        for change, part in found.groupby("change"):
            gpu = pascal.replace(**changes.get(change, {}))
            assert set(part["gpu_changes"]) == {gpu.changes_text}
            predicted = ws.predict(kernel, gpu, ["mdm", "closed_network"], access_order="greedy")
            expected = [*predicted["cycles"], ws.simulate(kernel, gpu).cycles]
            assert list(part["cycles"]) == pytest.approx(expected, rel=1e-12)
        for _, part in found.groupby("model"):
            start, *others = part["cycles"]
            assert list(part["speedup"]) == pytest.approx([1.0, *(start / c for c in others)])

    def test_applications_share_l2(self, kernel, pascal):
        """The second launch finds in L2 what the first one loaded, unless L2 is emptied."""
        again = ws.App(
            [kernel, ws.patterns.stream(loads=4, blocks=112, warps_per_block=4)], "twice"
        )
        kept, emptied = (
            ws.validation.what_if(again, pascal, "mt", {"SMs": {"num_sms": 56}}, flush_l2=flush)
            for flush in (False, True)
        )
        assert set(kept["app"]) == {"twice"}
        assert (kept["cycles"] < emptied["cycles"]).all()
        one = ws.validation.what_if(kernel, pascal, "mt", {"SMs": {"num_sms": 56}})
        assert list(emptied["cycles"]) == pytest.approx(list(2 * one["cycles"]))

    @pytest.mark.slow
    def test_a_kernel_of_dram_gains_from_dram(self, kernel, pascal):
        """It streams through memory: simulator and model find DRAM bandwidth best, and agree."""
        found = ws.validation.what_if(kernel, pascal.replace(dram_bandwidth_gbs=60))
        best = best_changes(found).iloc[0]
        assert (best["best"], best["simulated_best"]) == (
            "2 x DRAM bandwidth",
            "2 x DRAM bandwidth",
        )
        agreement = ws.validation.what_if_agreement(found).iloc[0]
        assert (agreement["apps"], agreement["best_agrees"]) == (1, 1)

    def test_without_simulations(self, kernel, pascal):
        found = ws.validation.what_if(kernel, pascal, simulate=False)
        assert set(found["model"]) == {"closed_network"}
        assert list(found["change"]) == ["baseline", *changed_gpus(pascal)]
        with pytest.raises(ws.InputError, match="is not simulated; make the table with"):
            ws.validation.what_if_agreement(found)

    def test_a_noc_of_twice_the_bandwidth_has_such_ports(self, pascal):
        """What L2 serves takes 4 of 8 cycles at a slice's port, which gets as much wider as the NoC."""
        k = ws.patterns.KernelBuilder("resident", grid=56, block=256)
        for i in range(8):
            address = BASE + (16 * k.thread + (i << 16)) % (1 << 19)
            k.emit("LDG.E.128.STRONG.GPU", dst=8 + 4 * i, src=2, address=address)
        k.emit("EXIT")
        kernel = k.build()

        def warm(gpu):
            simulator = ws.timing.Simulator(gpu)
            simulator.run(kernel)
            return simulator.run(kernel).cycles

        assert warm(pascal) / warm(changed_gpus(pascal)["2 x NoC"]) > 1.5

    def test_streaming_caches_have_no_mshrs(self, pascal):
        gpu = pascal.replace(noc_queue_entries=64)
        changed = changed_gpus(gpu)["2 x MSHRs"]
        assert (changed.l1_mshrs, changed.noc_queue_entries) == (256, 128)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"models": ["x"]}, "there is no model 'x'"),
            ({"changes": {}}, "changes: there are none; give"),
            ({"changes": {"baseline": {"num_sms": 2}}}, "changes: baseline is the GPU without"),
            ({"changes": {"a": {"num_sm": 2}}}, "num_sm"),
            ({"changes": {"a": {"num_sms": 0}}}, "num_sms = 0"),
            ({"changes": {"a": [1]}}, "changes: 'a': expected"),
            (
                {"changes": {1: {"num_sms": 2}}},
                "changes: the name of a change: expected text, got 1",
            ),
            ({"access_order": "x"}, "access_order = 'x' is not one of"),
        ],
    )
    def test_bad_input(self, kernel, options, message):
        with pytest.raises(ws.InputError, match=message):
            ws.validation.what_if(kernel, "pascal-mdm", **options)
