"""Predictions against references: matching, measures, tables, pictures, command line."""

import json
import math
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from test_reference import NCU_LONG, NVPROF_METRICS, NVPROF_TRACE

import warpstack as ws
from warpstack.cli import main
from warpstack.tables import STACK, as_records

positive = st.lists(st.tuples(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9)), min_size=1, max_size=30)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


class TestMeasures:
    @given(positive)
    def test_geometric_mean(self, pairs):
        predicted, reference = zip(*pairs, strict=True)
        expected = scipy.stats.gmean(np.array(predicted) / np.array(reference))
        assert ws.validation.measures.gmean_ratio(predicted, reference) == pytest.approx(expected)
        inverse = ws.validation.measures.gmean_ratio(reference, predicted)
        assert inverse * expected == pytest.approx(1)

    def test_zeros_have_no_ratio(self):
        # 4 / 1 and 1 / 4 remain.
        assert ws.validation.measures.gmean_ratio([4, 0, 5, 1], [1, 3, 0, 4]) == pytest.approx(1)
        assert math.isnan(ws.validation.measures.gmean_ratio([0], [3]))
        with pytest.raises(ws.InputError, match="negative"):
            ws.validation.measures.gmean_ratio([-1], [3])

    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=30))
    def test_rank_correlation(self, pairs):
        predicted, reference = (list(side) for side in zip(*pairs, strict=True))
        found = ws.validation.measures.spearman(predicted, reference)
        if len(set(predicted)) == 1 or len(set(reference)) == 1:
            assert math.isnan(found)
        else:
            expected = scipy.stats.spearmanr(predicted, reference).statistic
            assert found == pytest.approx(expected, abs=1e-12)


def frame(**columns):
    return pd.DataFrame(columns)


def predictions(cycles, **columns):
    """Predictions of kernels 1, 2, ... by one model."""
    n = len(cycles)
    return frame(
        **{"kernel": range(1, n + 1), "gpu": "g", "gpu_changes": "", "model": "mdm"} | columns,
        cycles=cycles,
    )


class TestMatching:
    def test_by_number(self):
        table = ws.validate(predictions([110.0, 50.0]), frame(kernel=[2, 1], cycles=[100, 100]))
        assert list(table["kernel"]) == [1, 2]
        assert list(table["measured"]) == [100, 100]
        assert list(table["error"]) == pytest.approx([0.1, -0.5])
        assert list(table["ratio"]) == pytest.approx([1.1, 0.5])
        assert set(table["status"]) == {"matched"}
        assert set(table["source"]) == {"reference"}

    def test_what_is_alone_is_kept_and_said(self):
        reference = frame(kernel=[1, 5], name=["a", "e"], cycles=[100, 100])
        mine = predictions([110.0, 50.0], name=["a", "b"])
        with pytest.warns(
            ws.errors.UnmatchedWarning, match=r"no prediction \(5 e\).*no reference \(2 b\)"
        ):
            table = ws.validate(mine, reference)
        assert list(table["kernel"]) == [1, 2, 5]
        assert list(table["status"]) == ["matched", "no reference", "no prediction"]
        errors = ws.validation.validation_errors(table)
        assert (errors["pairs"][0], errors["unmatched"][0]) == (1, 2)

    def test_numbers_whose_names_differ_match_by_order(self):
        # The profiler saw only the launches of b.
        mine = predictions([10.0, 20.0, 30.0, 40.0], name=["a", "b", "a", "b"])
        reference = frame(kernel=[1, 2], name=["void b<int>(float*)", "b"], cycles=[25, 50])
        with pytest.warns(ws.errors.UnmatchedWarning):
            table = ws.validate(mine, reference)
        matched = table[table["status"] == "matched"]
        assert list(matched["kernel"]) == [2, 4]
        assert list(matched["measured"]) == [25, 50]
        with pytest.raises(ws.InputError, match="match by order"):
            ws.validate(mine, reference, match="number")

    def test_means_over_launches(self):
        mine = predictions([10.0, 20.0, 30.0], name=["a", "b", "a"])
        reference = frame(kernel=[pd.NA, pd.NA], launches=[2, 5], name=["a", "b"], cycles=[40, 1])
        with pytest.warns(ws.errors.UnmatchedWarning):
            table = ws.validate(mine, reference)
        first = table.iloc[0]
        # (10 + 30) / 2 against the profiler's mean of two launches.
        assert (first["predicted"], first["measured"], first["launches"]) == (20, 40, 2)
        # One launch of b cannot be held against a mean of five.
        assert sorted(table["status"][1:]) == ["no prediction", "no reference"]

    def test_applications(self):
        mine = predictions([1.0, 2.0], app=["x", "y"]).assign(kernel=1)
        reference = frame(app=["y", "x"], kernel=1, cycles=[4, 4])
        table = ws.validate(mine, reference)
        assert dict(zip(table["app"], table["ratio"], strict=True)) == {"x": 0.25, "y": 0.5}
        with pytest.raises(ws.InputError, match=r"2 applications .*add a column app"):
            ws.validate(mine.drop(columns="app"), reference)
        with pytest.raises(ws.InputError, match="kernel 1 occurs twice"):
            ws.validate(mine, reference.drop(columns="app").head(1))

    def test_changes_of_the_reference_stay_apart(self):
        reference = frame(kernel=1, change=["", "15 SMs"], cycles=[100, 300])
        with pytest.warns(ws.errors.UnmatchedWarning, match="no prediction"):
            table = ws.validate(predictions([100.0]), reference)
        assert list(table["status"]) == ["matched", "no prediction"]
        mine = pd.concat([predictions([c], change=v) for c, v in ((100.0, ""), (150.0, "15 SMs"))])
        mine["gpu_changes"] = ["", "num_sms=15"]
        with pytest.warns(ws.errors.UnmatchedWarning):
            table = ws.validate(mine, reference)
        matched = table[table["status"] == "matched"]
        assert list(matched["ratio"]) == [1.0, 0.5]

    def test_simulations_match_their_gpu(self):
        both = pd.concat([predictions([10.0]), predictions([20.0], gpu_changes="num_sms=56")])
        simulated = both.assign(model="simulation", cycles=[20.0, 20.0])
        table = ws.validate(both, simulated)
        assert list(table["ratio"]) == [0.5, 1.0]
        assert set(table["source"]) == {"simulation"}
        with pytest.warns(ws.errors.UnmatchedWarning, match="no prediction"):
            table = ws.validate(predictions([10.0]), simulated)
        assert list(table["status"]) == ["matched", "no prediction"]
        assert list(table["gpu_changes"]) == ["", "num_sms=56"]

    def test_several_references(self, tmp_path):
        (tmp_path / "other.csv").write_text("kernel,cycles\n1,50\n")
        table = ws.validate(
            predictions([100.0]), [frame(kernel=[1], cycles=[100]), tmp_path / "other.csv"]
        )
        assert dict(zip(table["source"], table["ratio"], strict=True)) == {
            "reference": 1.0,
            "other": 2.0,
        }

    def test_times_become_cycles(self, tmp_path):
        (tmp_path / "trace.csv").write_text(NVPROF_TRACE)
        names = ["Kernel", "Kernel2", "Kernel"]
        mine = predictions([9376.0, 4288.0, 8160.0], name=names)
        # 9.376 us at 1 GHz are 9376 cycles.
        table = ws.validate(mine, tmp_path / "trace.csv", clock_ghz=1.0)
        assert list(table["ratio"]) == pytest.approx([1.0, 2.0, 1.0])
        with pytest.raises(ws.InputError, match="clock of the GPU 'g' is not known"):
            ws.validate(mine, tmp_path / "trace.csv")
        known = mine.assign(gpu="gtx1080")
        clock = ws.gpu("gtx1080").clock_ghz
        table = ws.validate(known, tmp_path / "trace.csv", metric="cycles")
        assert table["measured"][0] == pytest.approx(9376 * clock)
        changed = known.assign(gpu_changes="num_sms=4, clock_ghz=2")
        table = ws.validate(changed, tmp_path / "trace.csv", metric="cycles")
        assert table["measured"][0] == pytest.approx(18752)
        seconds = ws.validate(mine, tmp_path / "trace.csv", metric="time_s", clock_ghz=1.0)
        assert seconds["predicted"][1] == pytest.approx(4.288e-6)

    def test_times_are_answered_in_time(self, tmp_path):
        (tmp_path / "own.csv").write_text("name,time_ms\na,0.010\nb,0.004\n")
        mine = predictions([8e3, 4e3], name=["a", "b"], time_us=[11.0, 5.0])
        table = ws.validate(mine, tmp_path / "own.csv")
        assert set(table["metric"]) == {"time_us"}
        assert list(table["predicted"]) == [11, 5]
        assert list(table["measured"]) == pytest.approx([10, 4])
        assert ws.validation.validation_errors(table)["mae"].item() == pytest.approx(1)
        # Predictions without times have one at their clock, beside those that need none.
        clock = ws.gpu("gtx1080").clock_ghz
        other = mine.drop(columns="time_us").assign(gpu="gtx1080", model="o")
        table = ws.validate([mine, other], tmp_path / "own.csv")
        assert list(table["predicted"]) == pytest.approx([11, 5, 8 / clock, 4 / clock])
        # A clock is given to compare cycles with, and cycles of a reference stay cycles.
        for reference, options in (
            (tmp_path / "own.csv", {"clock_ghz": 1.0}),
            (mine.assign(time_us=3.0), {}),
        ):
            assert set(ws.validate(mine, reference, **options)["metric"]) == {"cycles"}

    @pytest.mark.parametrize("factor", [1e-3, 1e3, 1 / 400])
    def test_errors_as_large_as_between_units_are_said(self, factor):
        mine = predictions([1.0, 1.0, 1.0], time_us=[5.0, 6.0, 7.0])
        known = frame(kernel=[1, 2, 3], time_us=[5 * factor, 6 * factor, 7.0])
        with pytest.warns(UserWarning, match=r"reference: predictions of time_us are .*its column"):
            ws.validate(mine, known)
        known = frame(kernel=[1, 2, 3], time_us=[5 * factor, 6.0, 7.0])
        ws.validate(mine, known)  # an outlier is no unit

    @pytest.mark.parametrize("time", [-9.0, 0.0])
    def test_times_are_above_0(self, time):
        mine = predictions([1.0, 1.0], time_us=[5.0, 6.0])
        with pytest.raises(ws.InputError, match=r"reference: row 2: time_us = .* above 0; correct"):
            ws.validate(mine, frame(kernel=[1, 2], time_us=[5.0, time]))

    @pytest.mark.parametrize(
        ("meant", "source", "message"),
        [
            ("nsys", "ncu", "by Nsight Compute, but predicted for Nsight Systems: .*--flush-l2"),
            ("events", "ncu", "by Nsight Compute, but predicted for CUDA events: .*profiler='ncu'"),
            ("ncu", "nsys", "by Nsight Systems, .* for Nsight Compute, .*nsys, without --flush-l2"),
            ("ncu", "nvprof", "measured by nvprof, .*predict with --profiler nvprof, without"),
            ("ncu", "torch", "measured by PyTorch's profiler, .*predict with --profiler nsys"),
            ("events", "nsys", "for CUDA events; predict with --profiler nsys "),
            ("nsys", "nsys", None),
            ("nsys", "nvprof", None),
            ("ncu", "ncu", None),
            ("nsys", "own", None),
        ],
    )
    def test_predictions_for_another_profiler(self, meant, source, message):
        launch = getattr(ws.gpu("a100"), f"launch_us_{meant}")
        mine = predictions([9e3, 8e3], time_us=[9.0, 8.0], launch_us=launch, gpu="a100")
        known = frame(kernel=[1, 2], time_us=[9.0, 8.0], source=source)
        if message is None:
            ws.validate(mine, known, metric="time_us")
            return
        with pytest.warns(UserWarning, match=message) as caught:
            ws.validate(mine, known, metric=["cycles", "time_us"])
        assert len(caught) == 1
        # What says nothing of its profiler, or of time, gets no advice.
        ws.validate(mine.assign(gpu="mine"), known, metric="time_us")
        ws.validate(mine.drop(columns="launch_us"), known, metric="time_us")
        counters = {"instructions": [3, 4]}
        ws.validate(mine.assign(**counters), known.assign(**counters), metric="instructions")

    def test_changes_that_replace_writes_are_read(self, tmp_path):
        """The clock is found in what the column gpu_changes really says."""
        (tmp_path / "trace.csv").write_text(NVPROF_TRACE)
        target = ws.gpu("pascal-mdm").replace(num_sms=56, clock_ghz=2.0)
        kernel = ws.patterns.strided(1, blocks=28)
        mine = ws.predict(kernel, target).assign(name="Kernel")
        with pytest.warns(ws.errors.UnmatchedWarning):
            table = ws.validate(mine, tmp_path / "trace.csv", metric="cycles")
        assert table["measured"][0] == pytest.approx(9.376e-6 * 2e9)

    def test_profilers_files(self, tmp_path):
        (tmp_path / "long.csv").write_text(NCU_LONG)
        (tmp_path / "metrics.csv").write_text(NVPROF_METRICS)
        mine = predictions([12345.0, 1600.0], name=["Kernel", "Kernel2"], instructions=[3406, 2346])
        table = ws.validate(mine, tmp_path / "long.csv", metric="cycles")
        assert list(table["ratio"]) == pytest.approx([1.0, 0.5])
        mine = predictions([1.0] * 3, name=["Kernel", "Kernel2", "Kernel"], instructions=[3000] * 3)
        table = ws.validate(mine, tmp_path / "metrics.csv", metric="instructions")
        assert list(table["measured"]) == [3406, 2346]
        assert list(table["predicted"]) == [3000, 3000]

    @pytest.mark.parametrize(
        ("mine", "reference", "options", "message"),
        [
            (
                [],
                frame(kernel=[1], cycles=[1]),
                {},
                "there are no predictions to validate",
            ),
            (frame(cycles=[1]), frame(kernel=[1], cycles=[1]), {}, "no column kernel"),
            (predictions([]), frame(kernel=[1], cycles=[1]), {}, "no predictions to validate"),
            (predictions([1.0]), frame(cycles=[1]), {}, "the reference has no column kernel"),
            (predictions([1.0]), frame(kernel=[], cycles=[]), {}, "the reference has no rows"),
            (predictions([1.0]), [], {}, "there is no reference"),
            (
                predictions([1.0]),
                frame(kernel=[2], cycles=[1]),
                {},
                "no prediction has a reference",
            ),
            (
                predictions([1.0]),
                frame(kernel=[1], cycles=[1]),
                {"match": "x"},
                "match = 'x' is not one of",
            ),
            (
                predictions([1.0]),
                frame(kernel=[1], cycles=["x"]),
                {},
                "cycles = 'x' is not a number",
            ),
            (predictions([1.0]), frame(kernel=[1], ipc=[1]), {}, "no prediction has a reference"),
            (
                predictions([1.0]),
                frame(kernel=[1], cycles=[1], gpu=["h"], gpu_changes=["num_sms=4"]),
                {},
                r"are 1 \(with g\); the reference has 1 \(with h num_sms=4\)$",
            ),
            (predictions([1.0]), frame(kernel=[1], cycles=[1]), {"clock_ghz": 0}, "is not a clock"),
            (
                predictions([1.0]),
                frame(kernel=[1, 1], cycles=[1, 2]),
                {},
                "the kernel 1 occurs twice",
            ),
            (
                predictions([1.0]),
                frame(kernel=[1], cycles=[1]),
                {"suites": {"nn": "Rodinia"}},
                "suites: there is no application 'nn'",
            ),
        ],
    )
    def test_bad_input(self, mine, reference, options, message):
        with pytest.raises(ws.InputError, match=message):
            ws.validate(mine, reference, **options)


def stacks(*rows):
    """Return the columns of CPI stacks: of each row its first components, the others 0."""
    return {name: [row[i] if i < len(row) else 0.0 for row in rows] for i, name in enumerate(STACK)}


class TestStacks:
    """Stacks in the order base, dep, l1, l2, dram, mshr, noc, queue."""

    def test_by_hand(self):
        # Shares 1/2, 1/4, 1/4 and 1/4, 0, 1/4, 1/2: (1/4 + 1/4 + 0 + 1/2) / 2.
        mine = predictions([100.0], **stacks([2.0, 1.0, 1.0]))
        other = frame(kernel=[1], cycles=[400], **stacks([1.0, 0.0, 1.0, 2.0]))
        (row,) = ws.validate(mine, other).to_dict("records")
        assert row["stack_distance"] == pytest.approx(0.5)
        assert row["largest_stall_predicted"] == "dep"  # the first of equals
        assert row["largest_stall_measured"] == "l2"
        assert [row[f"predicted_{p}"] for p in ("base", "dep", "l1", "l2")] == [50, 25, 25, 0]
        assert [row[f"measured_{p}"] for p in ("base", "dep", "l1", "l2")] == [100, 0, 100, 200]
        (errors,) = ws.validation.validation_errors(ws.validate(mine, other)).to_dict("records")
        assert errors["mean_stack_distance"] == pytest.approx(0.5)
        assert errors["same_largest_stall"] == 0

    def test_equal_stacks_are_0_apart_in_any_unit(self):
        mine = predictions([10.0, 1.0], **stacks([1.0, 3.0], [2.0]))
        other = frame(kernel=[1, 2], cycles=[70, 9], **stacks([10.0, 30.0], [5.0]))
        table = ws.validate(mine, other)
        assert list(table["stack_distance"]) == [0, 0]
        assert list(table["largest_stall_measured"]) == ["dep", "none"]
        assert ws.validation.validation_errors(table)["same_largest_stall"][0] == 1

    def test_applications_add_cycles_up(self):
        # Predicted: 90 cycles dep and 10 queue. Measured: 40 dep and 60 queue; each kernel agrees.
        apps = {"app": ["a", "a"]}
        mine = predictions([90.0, 10.0], **stacks([0, 1.0], [0] * 7 + [5.0]), **apps)
        other = mine.assign(cycles=[40.0, 60.0])
        table = ws.validate(mine, other)
        kernels = ws.validation.validation_errors(table).iloc[0]
        assert (kernels["mean_stack_distance"], kernels["same_largest_stall"]) == (0, 1)
        app = ws.validation.validation_errors(table, pairs="app").iloc[0]
        assert app["mean_stack_distance"] == pytest.approx(0.5)
        assert app["same_largest_stall"] == 0

    def test_where_the_reference_has_none(self):
        mine = predictions([10.0, 20.0], **stacks([1.0, 1.0], [1.0, 3.0]))
        for other in (
            frame(kernel=[1, 2], cycles=[10, 20]),
            frame(kernel=[1, 2], cycles=[10, 20], cpi_base=[1.0, 1.0]),
            frame(kernel=[1, 2], cycles=[10, 20], **dict.fromkeys(STACK, math.nan)),
            frame(kernel=[1, 2], cycles=[10, 20], **dict.fromkeys(STACK, None)),
        ):
            table = ws.validate(mine, other)
            assert table["stack_distance"].isna().all()
            assert set(table["largest_stall_measured"]) == {""}
            for pairs in ("kernel", "app"):
                (row,) = ws.validation.validation_errors(table, pairs=pairs).to_dict("records")
                assert math.isnan(row["mean_stack_distance"])
                assert math.isnan(row["same_largest_stall"])
                assert row["mape"] == 0

    def test_what_is_known_counts(self):
        """Of two kernels one has a stack; without cycles only kernels can be compared."""
        mine = predictions([10.0, 20.0], ipc=[1.0, 1.0], **stacks([1.0, 1.0], [1.0, 3.0]))
        other = mine.assign(**stacks([1.0, 1.0], [math.nan] * 8))
        table = ws.validate(mine, other)
        for pairs in ("kernel", "app"):
            row = ws.validation.validation_errors(table, pairs=pairs).iloc[0]
            assert (row["mean_stack_distance"], row["same_largest_stall"]) == (0, 1)
        table = ws.validate(mine.drop(columns="cycles"), other.drop(columns="cycles"), metric="ipc")
        assert ws.validation.validation_errors(table)["mean_stack_distance"][0] == 0

    def test_means_over_launches(self):
        # Launches of 30 cycles dep and 10 cycles queue: 3/4 and 1/4 of their mean.
        mine = predictions([30.0, 10.0], name="k", **stacks([0, 1.0], [0] * 7 + [1.0]))
        other = frame(kernel=[pd.NA], launches=2, name="k", cycles=20, **stacks([0, 1.0]))
        (row,) = ws.validate(mine, other).to_dict("records")
        assert row["stack_distance"] == pytest.approx(0.25)
        assert (row["predicted_dep"], row["predicted_queue"]) == (15, 5)

    def test_table_of_an_earlier_version(self):
        table = ws.validate(predictions([10.0]), frame(kernel=[1], cycles=[10]))
        old = table[table.columns[: list(table.columns).index("status") + 1]]
        assert math.isnan(ws.validation.validation_errors(old)["mean_stack_distance"][0])

    def test_negative_components(self):
        mine = predictions([10.0], **stacks([1.0, -1.0]))
        with pytest.raises(ws.InputError, match=r"predictions: row 1: cpi_dep = -1.0 is negative"):
            ws.validate(mine, frame(kernel=[1], cycles=[10]))

    @given(st.lists(st.tuples(*[st.floats(0, 1e6)] * 16), min_size=1, max_size=5))
    def test_range_and_symmetry(self, rows):
        kernels = range(1, len(rows) + 1)
        mine = predictions([1.0] * len(rows), **stacks(*(row[:8] for row in rows)))
        other = frame(kernel=kernels, cycles=1.0, **stacks(*(row[8:] for row in rows)))
        there = ws.validate(mine, other)["stack_distance"]
        back = ws.validate(other, mine)["stack_distance"]
        pd.testing.assert_series_equal(there, back)
        assert there.dropna().between(0, 1 + 1e-12).all()

    def test_simulations_and_models(self, pascal):
        """Beside itself a simulation is 0 apart; a model's distance is that of its stack's columns."""
        app = ws.App([ws.patterns.strided(gs=8, blocks=8, iterations=2)])
        simulated = ws.timing.as_table(ws.simulate(app, pascal))
        assert list(ws.validate(simulated, simulated)["stack_distance"]) == [0]
        predicted = ws.predict(app, pascal, ["mdm"])
        sides = [
            t[list(STACK)].iloc[0].to_numpy() / t["cpi"].iloc[0] for t in (predicted, simulated)
        ]
        (row,) = ws.validate(predicted, simulated).to_dict("records")
        assert row["stack_distance"] == pytest.approx(np.abs(sides[0] - sides[1]).sum() / 2)
        assert row["largest_stall_measured"] == STACK[1 + sides[1][1:].argmax()].removeprefix(
            "cpi_"
        )


class TestErrors:
    @pytest.fixture
    def table(self):
        mine = predictions(
            [110.0, 60.0, 90.0, 400.0], app=["a", "a", "b", "c"], dpki=[0, 0, 50, 11]
        )
        mine["kernel"] = [1, 2, 1, 1]
        reference = frame(app=["a", "a", "b", "c"], kernel=[1, 2, 1, 1], cycles=[100, 40, 100, 200])
        return ws.validate(mine, reference, suites={"a": "R", "b": "R", "c": "P"})

    def test_measures(self, table):
        (row,) = ws.validation.validation_errors(table).to_dict("records")
        # Errors 10 %, 50 %, 10 %, 100 %; 10, 20, 10, 200 cycles; ratios 1.1, 1.5, 0.9, 2.
        assert row["mape"] == pytest.approx(0.425)
        assert row["max_error"] == pytest.approx(1.0)
        assert row["mae"] == pytest.approx(60)
        assert row["gmean_ratio"] == pytest.approx((1.1 * 1.5 * 0.9 * 2) ** 0.25)
        assert row["spearman"] == pytest.approx(
            scipy.stats.spearmanr([110, 60, 90, 400], [100, 40, 100, 200]).statistic
        )
        assert row["pairs"] == 4

    def test_applications_add_up(self, table):
        by_app = ws.validation.validation_errors(table, "app", pairs="app").set_index("app")
        # a: 170 against 140.
        assert by_app["mape"]["a"] == pytest.approx(30 / 140)
        assert list(by_app["pairs"]) == [1, 1, 1]
        overall = ws.validation.validation_errors(table, pairs="app")
        assert overall["mape"][0] == pytest.approx((30 / 140 + 0.1 + 1.0) / 3)

    def test_suites_and_classes(self, table):
        suites = ws.validation.validation_errors(table, "suite").set_index("suite")
        assert suites["mape"]["R"] == pytest.approx((0.1 + 0.5 + 0.1) / 3)
        assert suites["mape"]["P"] == pytest.approx(1.0)
        # More than 10 divergent loads per 1000 instructions are memory-divergent.
        classes = ws.validation.validation_errors(table, "class").set_index("class")
        assert classes["mape"]["NMD"] == pytest.approx(0.3)
        assert classes["mape"]["MD"] == pytest.approx(0.55)
        assert classes["pairs"].to_dict() == {"NMD": 2, "MD": 2}

    def test_references_of_zero_are_counted(self):
        table = ws.validate(predictions([5.0, 2.0]), frame(kernel=[1, 2], cycles=[0, 1]))
        (row,) = ws.validation.validation_errors(table).to_dict("records")
        assert (row["mape"], row["excluded"], row["pairs"]) == (1.0, 1, 2)
        assert math.isnan(table["error"][0])

    def test_bad_input(self, table):
        with pytest.raises(ws.InputError, match="by = 'kernel' is not one of app, suite, class"):
            ws.validation.validation_errors(table, "kernel")
        with pytest.raises(ws.InputError, match="pairs = 'warp' is not one of kernel, app"):
            ws.validation.validation_errors(table, pairs="warp")
        with pytest.raises(ws.InputError, match="no column source"):
            ws.validation.validation_errors(table.drop(columns="source"))
        with pytest.raises(ws.InputError, match="ipc of kernels cannot be summed"):
            ws.validation.validation_errors(table.assign(metric="ipc"), pairs="app")

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:.*may be another than its column")
    @given(positive)
    def test_measures_are_those_of_the_pairs(self, pairs):
        predicted, measured = (list(side) for side in zip(*pairs, strict=True))
        kernels = range(1, len(pairs) + 1)
        table = ws.validate(predictions(predicted), frame(kernel=kernels, cycles=measured))
        (row,) = ws.validation.validation_errors(table).to_dict("records")
        expected = ws.validation.measures.mape(predicted, measured).value
        assert row["mape"] == pytest.approx(expected)
        assert np.abs(table["error"]).mean() == pytest.approx(expected)
        assert row["max_error"] >= row["mape"] * (1 - 1e-12)


class TestPictures:
    @pytest.fixture
    def table(self):
        kernels = {"kernel": [1, 2], "name": ["a", "b"]}
        mine = [
            predictions([110.0, 50.0], name=["a", "b"], model=model).assign(cycles=cycles)
            for model, cycles in (("gpumech", [50.0, 900.0]), ("mdm", [110.0, 90.0]))
        ]
        return ws.validate(pd.concat(mine), frame(**kernels, cycles=[100, 100]))

    def test_error_bars(self, table):
        ax = ws.plot.errors(table)
        heights = {c.get_label(): [bar.get_height() for bar in c] for c in ax.containers}
        np.testing.assert_allclose(heights["gpumech"], [-50, 800, 425])
        np.testing.assert_allclose(heights["mdm"], [10, -10, 10])
        labels = [t.get_text() for t in ax.get_xticklabels()]
        assert labels == ["1 a", "2 b", "mean of\n|errors|"]
        assert ax.get_ylabel() == "error of the prediction (%)"

    def test_long_bars_are_cut(self, table):
        ax = ws.plot.errors(table, limit_percent=100)
        heights = {c.get_label(): [bar.get_height() for bar in c] for c in ax.containers}
        assert heights["gpumech"] == pytest.approx([-50, 100, 100])
        assert [t.get_text() for t in ax.texts] == ["800", "425"]

    def test_applications_are_workloads(self):
        mine = predictions([30.0, 30.0, 5.0], app=["x", "x", "y"]).assign(kernel=[1, 2, 1])
        reference = frame(app=["x", "x", "y"], kernel=[1, 2, 1], cycles=[10, 50, 10])
        ax = ws.plot.errors(ws.validate(mine, reference))
        assert [bar.get_height() for bar in ax.containers[0]] == pytest.approx([0, -50, 25])
        one = ws.plot.errors(ws.validate(mine, reference), by="kernel")
        assert one.get_xticklabels()[0].get_text() == "x 1"

    def test_what_does_not_add_up_is_drawn_by_kernel(self):
        mine = predictions([1.0, 2.0], app=["x", "y"], kernel=[1, 1])
        mine = mine.rename(columns={"cycles": "ipc"})
        reference = frame(app=["x", "y"], kernel=[1, 1], ipc=[2.0, 2.0])
        ax = ws.plot.errors(ws.validate(mine, reference, metric="ipc"))
        assert ax.get_xticklabels()[0].get_text() == "x 1"

    def test_scatter(self, table):
        ax = ws.plot.scatter(table)
        points = {c.get_label(): c.get_offsets().tolist() for c in ax.collections}
        assert points == {
            "gpumech": [[100, 50], [100, 900]],
            "mdm": [[100, 110], [100, 90]],
        }
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert ax.get_xlim() == ax.get_ylim()
        assert ax.get_xlabel() == "cycles, reference"
        np.testing.assert_allclose(*ax.lines[0].get_data())

    def test_given_axes(self, table):
        _, (left, right) = plt.subplots(1, 2)
        assert ws.plot.errors(table, left, title="mine") is left
        assert ws.plot.scatter(table, right) is right
        assert left.get_title() == "mine"

    def test_bad_input(self, table):
        for draw in (ws.plot.errors, ws.plot.scatter):
            with pytest.raises(ws.InputError, match="expected the result of"):
                draw([])
            with pytest.raises(ws.InputError, match="no column model"):
                draw(table.drop(columns="model"))
            with pytest.raises(ws.InputError, match="no matched kernels"):
                draw(table.assign(status="no reference"))
        with pytest.raises(ws.InputError, match="limit_percent = 0"):
            ws.plot.errors(table, limit_percent=0)
        with pytest.raises(ws.InputError, match="by = 'suite'"):
            ws.plot.errors(table, by="suite")
        with pytest.raises(ws.InputError, match="ipc of kernels cannot be summed"):
            ws.plot.errors(table.assign(metric="ipc"), by="app")
        with pytest.raises(ws.InputError, match="no pair of positive values"):
            ws.plot.scatter(table.assign(predicted=0.0))


@pytest.fixture(scope="module")
def files(tmp_path_factory, pascal):
    folder = tmp_path_factory.mktemp("validate")
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 8))]
    table = ws.predict(ws.App(kernels), pascal, ["gpumech", "mdm"])
    table.to_csv(folder / "p.csv", index=False)
    (folder / "p.json").write_text(json.dumps(as_records(table)))
    reference = table[table["model"] == "mdm"][["kernel", "cycles"]].assign(app="s")
    reference.to_csv(folder / "r.csv", index=False)
    return folder


class TestCommandLine:
    @pytest.fixture
    def run(self, capsys):
        """Return a function that runs the command and returns what it printed."""

        def call(*arguments, status=0):
            found = main(["validate", *map(str, arguments)])
            printed = capsys.readouterr()
            assert found == status, printed.err
            return printed

        return call

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["p.csv", "p.json"])
    def test_errors_by_model(self, run, files, name):
        printed = run(files / name, files / "r.csv", "--json")
        rows = json.loads(printed.out)
        assert [(row["model"], row["pairs"]) for row in rows] == [("gpumech", 2), ("mdm", 2)]
        assert rows[1]["mape"] == pytest.approx(0, abs=1e-9)
        assert rows[0]["mape"] > 0

    @pytest.mark.slow
    def test_tables(self, run, files):
        printed = run(
            files / "p.csv", files / "r.csv", "--by", "kernel", "--class", "s=MD", "--csv"
        )
        lines = printed.out.splitlines()
        assert lines[0].startswith("source,app,suite,class,kernel")
        assert len(lines) == 5
        assert all(",MD," in line for line in lines[1:])
        printed = run(files / "p.csv", files / "r.csv", "--by", "app", "--pairs", "app", "--wide")
        assert (
            printed.out.splitlines()[0] == "cycles, predicted against reference: pascal-mdm, r, s"
        )
        assert "MAPE (%)" in printed.out
        assert "stack" not in printed.out  # the reference has none

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["p.csv", "p.json"])
    def test_stacks(self, run, files, name, tmp_path):
        table = pd.read_csv(files / "p.csv")
        table[table["model"] == "mdm"].to_csv(tmp_path / "m.csv", index=False)
        rows = json.loads(run(files / name, tmp_path / "m.csv", "--json").out)
        distances = {row["model"]: row["mean_stack_distance"] for row in rows}
        assert distances["mdm"] == pytest.approx(0, abs=1e-9)
        assert distances["gpumech"] > 0.01
        printed = run(files / name, tmp_path / "m.csv", "--by", "kernel", "--wide").out
        assert "largest stall predicted" in printed
        assert "predicted base" not in printed

    @pytest.mark.slow
    def test_picture(self, run, files):
        printed = run(files / "p.csv", files / "r.csv", "--plot", files / "e.png")
        assert "Errors: " in printed.err
        assert (files / "e.png").stat().st_size > 10_000

    @pytest.mark.slow
    def test_bad_input(self, run, files):
        for arguments, message in (
            (("none.csv", files / "r.csv"), "none.csv: cannot be read"),
            ((files / "p.csv", "none.csv"), "none.csv: cannot be read"),
            ((files / "p.csv", files / "r.csv", "--suite", "x"), "--suite x: expected APP=VALUE"),
            ((files / "p.csv", files / "r.csv", "--app", "t"), "no prediction has a reference"),
            (
                (files / "p.csv", files / "r.csv", "--metric", "wibble"),
                "no prediction has a reference",
            ),
        ):
            printed = run(*arguments, status=2)
            assert message in printed.err
            assert printed.err.count("\n") == 1
        (files / "bad.csv").write_text("a,b\n1\n2,3,4\n")
        assert "give what predict --csv" in run(files / "bad.csv", files / "r.csv", status=2).err


def test_accel_sim_on_bfs(bfs, shared):
    """The whole way on real data: each of the 16 launches has its reference."""
    table = ws.predict(bfs, ws.gpu("pascal-mdm").replace(issue_width=4), ["gpumech", "mdm"])
    table["app"] = bfs.name
    with pytest.warns(ws.errors.UnmatchedWarning, match=r"12 rows have no prediction \(strided"):
        found = ws.validate(table, shared / "reference" / "accelsim-table3.csv")
    errors = ws.validation.validation_errors(found)
    assert list(errors["pairs"]) == [16, 16]
    assert list(errors["unmatched"]) == [6, 6]
    assert found["measured"][0] == 6635


@pytest.mark.parametrize(
    ("column", "value"), [("kernel", 1.5), ("kernel", 1e300), ("launches", 0.25)]
)
def test_numbers_of_launches_are_whole(column, value):
    predicted = pd.DataFrame({"kernel": [1, 2], "model": "mdm", "cycles": [110.0, 90.0]})
    known = pd.DataFrame({"kernel": [1, 2], "cycles": [100.0, 100.0], "launches": 1})
    wrong = known.astype(float)
    wrong.loc[1, column] = value
    message = rf"row 2: {column} = {re.escape(repr(value))} is not a whole number"
    with pytest.raises(ws.InputError, match="reference: " + message):
        ws.validate(predicted, wrong)
    if column == "kernel":
        with pytest.raises(ws.InputError, match="predictions: " + message):
            ws.validate(predicted.assign(kernel=[1, value]), known)


def test_a_table_of_many_columns_is_no_cause_for_a_warning():
    # pandas warns of each column that joins a hundred that were made one by one.
    predictions = pd.DataFrame({"kernel": [1], "name": ["k"], "cycles": [90.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.PerformanceWarning)
        for number in range(120):
            predictions[f"note {number}"] = 0
    reference = pd.DataFrame({"kernel": [1], "name": ["k"], "cycles": [100.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = ws.validate(predictions, reference)
    assert table["error"].tolist() == pytest.approx([-0.1])
