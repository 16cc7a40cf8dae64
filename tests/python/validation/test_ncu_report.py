"""Reports of Nsight Compute: a stand-in for NVIDIA's module, and that module where it is installed."""

import contextlib
import json
import sys
import types
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_reference import NCU_LONG, NCU_RAW, NVPROF_TRACE

import warpstack as ws
from effort import rounds
from warpstack.cli import main
from warpstack.validation.reference.ncu_names import METRICS

DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "validate.md"

#: Values and units of two launches, by metric. Texts and metrics without a value are there, too.
FIRST = {
    "device__attribute_display_name": ("NVIDIA H100 PCIe", ""),
    "gpc__cycles_elapsed.max": (12_000.0, "cycle"),
    "sm__cycles_elapsed.max": (11_000.0, "cycle"),
    "sm__cycles_elapsed.avg.per_second": (1.1, "cycle/ns"),
    "gpu__time_duration.sum": (10_000, "ns"),
    "smsp__inst_executed.sum": (22_000, "inst"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": (4_000, "sector"),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": (500, "sector"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": (700, "sector"),
    "lts__t_sectors_op_read.sum": (9_999, "sector"),
    "lts__t_sectors_srcunit_tex_op_read.sum": (3_000, "sector"),
    "lts__t_sectors_srcunit_tex_op_atom_dot_alu.sum": (10, "sector"),
    "lts__t_sectors_srcunit_tex_op_atom_dot_cas.sum": (20, "sector"),
    "lts__t_sectors_srcunit_tex_op_red.sum": (30, "sector"),
    "dram__bytes_read.sum": (6.4, "Kbyte"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": (50.0, "%"),
    "launch__grid_dim_x": (8, ""),
    "launch__grid_dim_y": (2, ""),
    "launch__grid_dim_z": (1, ""),
    "launch__block_dim_x": (256, "block"),
    "launch__block_dim_y": (1, "block"),
    "launch__block_dim_z": (1, "block"),
    "launch__registers_per_thread": (32, "register/thread"),
    "profiler__replayer_passes": (34, "pass"),
    "launch__func_cache_config": ("CachePreferNone", ""),
    "smsp__inst_executed_op_texture.sum": (None, "inst"),
}
SECOND = {
    "device__attribute_display_name": ("NVIDIA H100 PCIe", ""),
    "gpc__cycles_elapsed.max": (3_300.0, "cycle"),
    "gpu__time_duration.sum": (3.0, "us"),
    "dram__sectors_read.sum": (7, "sector"),
    "dram__bytes_read.sum": (999, "byte"),
}


class Metric:
    def __init__(self, value, unit):
        self.text = value if isinstance(value, str) else None
        self.number = value if isinstance(value, int | float) else None
        self.of_unit = unit

    def kind(self):
        if self.text is not None:
            return 2
        return 4 if isinstance(self.number, float) else 6

    def has_value(self):
        return self.text is not None or self.number is not None

    def unit(self):
        return self.of_unit

    def as_double(self):
        return 0.0 if self.number is None else float(self.number)

    def as_string(self):
        return self.text


class Action:
    def __init__(self, name, metrics, workload=0):
        self.of_name, self.workload = name, workload
        self.metrics = {key: Metric(*value) for key, value in metrics.items()}

    def name(self):
        return self.of_name

    def workload_type(self):
        return self.workload

    def metric_names(self):
        return tuple(self.metrics)

    def metric_by_name(self, name):
        return self.metrics.get(name)


class Report:
    """A context and its ranges at once."""

    def __init__(self, ranges):
        self.ranges = ranges

    def num_ranges(self):
        return len(self.ranges)

    def range_by_idx(self, i):
        actions = self.ranges[i]
        return types.SimpleNamespace(
            num_actions=lambda: len(actions), action_by_idx=lambda j: actions[j]
        )


def number(value):
    """Return a whole number of a protocol buffer."""
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def content(*lengths, version=7):
    """Return a file of parts with so many bytes of data each."""
    header = b"\x08" + number(version)
    data = b"NVR\0" + len(header).to_bytes(4, "little") + header
    for length in lengths:
        # Two counts, a text, the length of the data, a number of fixed width.
        part = (
            b"\x08\x00\x10\x01"
            + b"\x22\x03abc"
            + b"\x28"
            + number(length)
            + b"\x4d\x00\x00\x00\x00"
        )
        data += len(part).to_bytes(4, "little") + part + bytes(length)
    return data


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Return a function that makes a report of actions by range, and its path."""

    def make(*ranges, data=None, load=None):
        module = types.ModuleType("ncu_report")
        module.IMetric = types.SimpleNamespace(
            ValueKind_FLOAT=3, ValueKind_DOUBLE=4, ValueKind_UINT32=5, ValueKind_UINT64=6
        )
        module.IAction = types.SimpleNamespace(WorkloadType_KERNEL=0)
        module.load_report = load or (lambda name: Report(ranges))
        monkeypatch.setitem(sys.modules, "ncu_report", module)
        path = tmp_path / "x.ncu-rep"
        path.write_bytes(content(3, 200) if data is None else data)
        return path

    return make


@pytest.fixture
def two_launches(report):
    return report(
        [Action("vectorAdd", FIRST)], [Action("void gemm<float>(T1 const *, int)", SECOND)]
    )


class TestReading:
    def test_launches(self, two_launches):
        for read in (ws.validation.reference.read, ws.validation.reference.read_ncu):
            table = read(two_launches)
            assert list(table["source"]) == ["ncu", "ncu"]
            assert list(table["kernel"]) == [1, 2]
            assert list(table["launches"]) == [1, 1]
            assert list(table["name"]) == ["vectorAdd", "gemm"]
            assert list(table["gpu"]) == ["NVIDIA H100 PCIe"] * 2
            assert table["grid"][0] == (8, 2, 1)
            assert table["block"][0] == (256, 1, 1)
            assert table["ipc"][0] == 2

    def test_statistics_are_in_base_units(self, two_launches):
        first = ws.validation.reference.read_ncu(two_launches).iloc[0]
        assert first["time_s"] == pytest.approx(10e-6)
        assert first["clock_ghz"] == pytest.approx(1.1)
        assert first["achieved_occupancy"] == 0.5
        assert first["l1_read_sectors"] == 4_500  # global and local memory
        assert first["l1_write_sectors"] == 700  # local memory is not in the report
        assert first["l2_read_sectors"] == 3_000  # of the SMs, not of all units
        assert first["l2_atomic_sectors"] == 60
        assert first["dram_read_sectors"] == 200  # 6400 bytes
        assert first["registers_per_thread"] == 32
        # The tool's own metrics are there, too, without texts and what has no value.
        assert first["dram__bytes_read.sum"] == 6_400
        assert first["profiler__replayer_passes"] == 34
        assert "launch__func_cache_config" not in first
        assert "smsp__inst_executed_op_texture.sum" not in first

    def test_the_metrics_of_each_statistic_are_named(self, two_launches):
        table = ws.validation.reference.read_ncu(two_launches)
        made_of = table.attrs["metrics"]
        assert list(table["cycles"]) == [11_000, 3_300]
        assert made_of["cycles"] == "sm__cycles_elapsed.max or gpc__cycles_elapsed.max"
        assert made_of["dram_read_sectors"] == "dram__bytes_read.sum / 32 or dram__sectors_read.sum"
        assert made_of["l1_read_sectors"] == (
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum + "
            "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"
        )
        assert set(made_of) <= set(table.columns)
        assert "l1_read_sector_hits" not in table

    def test_csv_says_the_same(self, tmp_path, two_launches):
        (tmp_path / "raw.csv").write_text(
            '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum",'
            '"sm__cycles_elapsed.max","dram__bytes_read.sum"\n'
            '"","","","","us","cycle","Kbyte"\n'
            '"0","vectorAdd(float *)","(256, 1, 1)","(8, 2, 1)","10.0","11,000","6.4"\n'
        )
        columns = ["name", "grid", "block", "cycles", "time_s", "dram_read_sectors"]
        of_csv = ws.validation.reference.read_ncu(tmp_path / "raw.csv")[columns].iloc[0]
        of_report = ws.validation.reference.read_ncu(two_launches)[columns].iloc[0]
        pd.testing.assert_series_equal(of_csv, of_report, check_names=False)

    def test_details_page(self, tmp_path):
        (tmp_path / "long.csv").write_text(NCU_LONG)
        table = ws.validation.reference.read_ncu(tmp_path / "long.csv")
        assert table.attrs["metrics"]["time_s"] == "Duration"
        assert list(table["block"]) == [(512, 1, 1)] * 2

    def test_units_matter_only_where_a_statistic_needs_them(self, report, tmp_path):
        path = report([Action("k", {**FIRST, "new__metric.sum": (3, "furlong")})])
        assert ws.validation.reference.read_ncu(path)["new__metric.sum"][0] == 3
        path = report([Action("k", {"gpu__time_duration.sum": (3, "furlong")})])
        with pytest.raises(
            ws.InputError, match=r"result 1, 'k', gpu__time.* unknown unit 'furlong'"
        ):
            ws.validation.reference.read_ncu(path)
        (tmp_path / "raw.csv").write_text(NCU_RAW.replace('"Kbyte"', '"furlong"', 1))
        with pytest.raises(ws.InputError, match=r"raw.csv:3: dram__bytes_read.sum .*'furlong'"):
            ws.validation.reference.read_ncu(tmp_path / "raw.csv")
        renamed = NCU_RAW.replace("dram__bytes_read.sum", "new__metric.sum")
        (tmp_path / "raw.csv").write_text(renamed.replace('"Kbyte"', '"furlong"', 1))
        assert ws.validation.reference.read_ncu(tmp_path / "raw.csv")["new__metric.sum"][0] == 36.86

    def test_the_table_of_metrics(self):
        table = ws.validation.reference.ncu_metrics()
        assert table.groupby("statistic")["choice"].min().eq(1).all()
        sectors = table[table["statistic"] == "dram_read_sectors"]
        assert list(sectors["metrics"]) == ["dram__sectors_read.sum", "dram__bytes_read.sum"]
        assert list(sectors["factor"]) == [1, 1 / 32]

    def test_the_page_names_every_metric(self):
        page = DOCS.read_text()
        hits = "_lookup_hit"  # said once for all
        missing = {name for name in METRICS if hits not in name and f"`{name}`" not in page}
        assert missing == set()
        for statistic in ws.validation.reference.ncu_metrics()["statistic"]:
            assert f"`{statistic}`" in page or statistic.endswith("_hits")


class TestErrors:
    def test_without_the_module(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "ncu_report", None)
        (tmp_path / "x.ncu-rep").write_bytes(content(3))
        with pytest.raises(ws.InputError) as error:
            ws.validation.reference.read(tmp_path / "x.ncu-rep")
        message = str(error.value)
        for part in ("x.ncu-rep: ", "is not installed", "warpstack[ncu]", "--csv --page raw"):
            assert part in message
        assert "\n" not in message

    def test_a_module_that_does_not_load(self, tmp_path, monkeypatch):
        (tmp_path / "ncu_report.py").write_text("raise ImportError('libfoo.so: no such file')\n")
        monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "x.ncu-rep").write_bytes(content(3))
        with pytest.raises(ws.InputError, match=r"cannot be imported \(libfoo.so: no such file\)"):
            ws.validation.reference.read_ncu(tmp_path / "x.ncu-rep")

    @pytest.mark.parametrize(
        ("ranges", "message"),
        [
            ([], "x.ncu-rep: no kernel in it"),
            ([[]], "x.ncu-rep: no kernel in it"),
            (
                [[Action("k", FIRST), Action("range", FIRST, 1)]],
                "result 2, 'range', is not of a ker",
            ),
            ([[Action("k", {"a": ("text", "")})]], "result 1, 'k', has no metrics"),
            ([[Action(None, {})]], "result 1, '', has no metrics"),
            ([[Action("k\udcc2", FIRST)]], "may be damaged: 'utf-8' codec"),
        ],
    )
    def test_results_that_are_of_no_use(self, report, ranges, message):
        with pytest.raises(ws.InputError, match=message):
            ws.validation.reference.read_ncu(report(*ranges))

    @pytest.mark.parametrize("error", [OSError("x"), RuntimeError("x"), TypeError("x")])
    def test_what_the_module_raises(self, report, error):
        def load(name):
            raise error

        with pytest.raises(ws.InputError, match=r"ncu_report does not read it, .*damaged: x"):
            ws.validation.reference.read_ncu(report(load=load))

    def test_files_that_end_early(self, report):
        whole = content(0, 5, 300)
        ends = {len(content()), len(content(0)), len(content(0, 5)), len(whole)}
        for end in range(4, len(whole) + 1):
            path = report([Action("k", FIRST)], data=whole[:end])
            if end in ends or end == 4:  # between two parts nothing is missing
                assert len(ws.validation.reference.read_ncu(path)) == 1
            else:
                with pytest.raises(ws.InputError, match=r"x.ncu-rep: the report is cut off"):
                    ws.validation.reference.read_ncu(path)

    def test_parts_that_cannot_be(self, report):
        whole = bytearray(content(5))
        start = len(content()) + 4
        whole[start + 2] = 0x17  # a field of kind 7
        with pytest.raises(ws.InputError, match=r"x.ncu-rep: the report is damaged"):
            ws.validation.reference.read_ncu(report([Action("k", FIRST)], data=bytes(whole)))
        # Other versions may look different.
        path = report([Action("k", FIRST)], data=content(5, version=8)[:-3])
        assert len(ws.validation.reference.read_ncu(path)) == 1

    @given(st.data())
    @settings(max_examples=rounds(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_damaged_parts_are_an_error_or_nothing(self, report, data):
        changed = bytearray(content(0, 5, 300))
        for _ in range(data.draw(st.integers(1, 4))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        with contextlib.suppress(ws.InputError):
            assert (
                len(
                    ws.validation.reference.read_ncu(
                        report([Action("k", FIRST)], data=bytes(changed))
                    )
                )
                == 1
            )

    def test_other_files(self, tmp_path, report):
        report()
        (tmp_path / "trace.csv").write_text(NVPROF_TRACE)
        with pytest.raises(ws.InputError, match=r"trace.csv: not a report of Nsight Compute"):
            ws.validation.reference.read_ncu(tmp_path / "trace.csv")
        with pytest.raises(ws.InputError, match=r"none.ncu-rep: cannot be read: No such file"):
            ws.validation.reference.read_ncu(tmp_path / "none.ncu-rep")
        (tmp_path / "folder.ncu-rep").mkdir()
        with pytest.raises(ws.InputError, match="folder"):
            ws.validation.reference.read_ncu(tmp_path / "folder.ncu-rep")

    @pytest.mark.parametrize("data", [b"", b"junk", b"NVR", content(5, 7), content(300)])
    def test_nvidias_own_module(self, tmp_path, data):
        pytest.importorskip("ncu_report", reason="NVIDIA's package ncu-report is not installed")
        (tmp_path / "x.ncu-rep").write_bytes(data)
        with pytest.raises(ws.InputError, match=r"x.ncu-rep: (no kernel in it|.*damaged)"):
            ws.validation.reference.read_ncu(tmp_path / "x.ncu-rep")


def predictions(**columns):
    kernels = {"kernel": [1, 2], "name": ["vectorAdd", "gemm"], "model": "mdm"}
    return pd.DataFrame({**kernels, "gpu": "h100-pcie", "gpu_changes": "", **columns})


def values(table, metric, column="predicted"):
    return list(table[table["metric"] == metric][column])


class TestValidation:
    def test_counters_and_time_in_one_call(self, two_launches):
        mine = predictions(
            cycles=[8_800.0, 1_100.0], time_us=[10.0, 3.0], launch_us=2.0, instructions=[24_200, 0]
        )
        counters = predictions(
            model="caches", l1_read_sectors=[4_500, 1], dram_read_sectors=[100, 7]
        )
        table = ws.validate([mine, counters], two_launches)
        # In the order of the table of metrics; what one side does not have is not there.
        assert list(table["metric"].unique()) == [
            *("cycles", "time_us", "clock_ghz", "instructions"),
            *("l1_read_sectors", "dram_read_sectors"),
        ]
        names = table.set_index("metric")["profiler_metric"].to_dict()
        assert names["time_us"] == "gpu__time_duration.sum"
        assert names["instructions"] == "smsp__inst_executed.sum"
        assert names["dram_read_sectors"] == "dram__bytes_read.sum / 32 or dram__sectors_read.sum"
        models = table.set_index("metric")["model"]
        assert set(models["cycles"]) == {"mdm"}
        assert set(models["l1_read_sectors"]) == {"caches"}
        assert values(table, "time_us", "measured") == pytest.approx([10, 3])
        assert values(table, "time_us", "error") == pytest.approx([0, 0])
        assert values(table, "instructions", "error")[0] == pytest.approx(0.1)
        assert values(table, "dram_read_sectors", "ratio") == [0.5, 1]
        # The report has neither instructions nor sectors of L1 of the second launch.
        assert values(table, "instructions", "status") == ["matched", "no reference"]

    def test_cycles_of_a_profiler_begin_with_the_launch(self, two_launches, tmp_path):
        mine = predictions(cycles=[8_800.0, 1_100.0], time_us=[10.0, 3.0], launch_us=2.0)
        table = ws.validate(mine, two_launches)
        # 8800 cycles in 8 us are 1.1 GHz, 2 us of launch 2200 cycles; 1100 in 1 us the same.
        assert values(table, "cycles") == pytest.approx([11_000, 3_300])
        assert values(table, "clock_ghz") == pytest.approx([1.1, 1.1])
        assert values(table, "clock_ghz", "measured")[0] == pytest.approx(1.1)
        # A simulation's cycles do not; those that are a measured time do.
        simulated = pd.DataFrame({"kernel": [1, 2], "cycles": [8_800, 1_100]})
        assert list(ws.validate(mine, simulated)["predicted"]) == [8_800, 1_100]
        timed = pd.DataFrame({"kernel": [1, 2], "time_s": [10e-6, 3e-6]})
        table = ws.validate(mine, timed, metric="cycles")
        assert list(table["predicted"]) == pytest.approx([11_000, 3_300])
        assert list(table["measured"]) == pytest.approx([11_000, 3_300])
        # Without a time, at the clock of the GPU.
        clock = ws.gpu("h100-pcie").clock_ghz
        table = ws.validate(mine.drop(columns="time_us"), two_launches)
        assert values(table, "cycles")[0] == pytest.approx(8_800 + 2_000 * clock)
        assert values(table, "clock_ghz") == [clock, clock]
        table = ws.validate(mine.drop(columns="time_us"), timed)
        assert values(table, "time_us")[0] == pytest.approx(8.8 / clock + 2)
        # Predictions without a launch are compared as they are.
        table = ws.validate(mine[["kernel", "name", "gpu", "cycles"]], two_launches)
        assert values(table, "cycles") == [8_800, 1_100]
        assert "time_us" not in set(table["metric"])

    def test_means_over_launches_have_one_launch(self):
        mine = predictions(cycles=[1_000.0, 3_000.0], time_us=[3.0, 5.0], launch_us=2.0, name="k")
        known = pd.DataFrame(
            {"source": "ncu", "kernel": [pd.NA], "launches": 2, "name": "k", "cycles": [4_000.0]}
        )
        # At 1 GHz: (1000 + 2000 + 3000 + 2000) / 2.
        (row,) = ws.validate(mine, known).to_dict("records")
        assert row["predicted"] == pytest.approx(4_000)
        (row,) = ws.validate(mine, known.assign(time_s=4e-6), metric="time_us").to_dict("records")
        assert (row["predicted"], row["measured"]) == (4, pytest.approx(4))

    def test_several_reports_name_all_their_metrics(self, two_launches):
        report = ws.validation.reference.read_ncu(two_launches)
        other = report.head(1).assign(app="b")
        other.attrs["metrics"] = {**report.attrs["metrics"], "cycles": "sm__cycles_elapsed.avg"}
        mine = pd.concat(
            [predictions(cycles=1.0, app="a"), predictions(cycles=1.0, app="b").head(1)]
        )
        table = ws.validate(mine, [report.assign(app="a"), other], metric="cycles")
        assert set(table["profiler_metric"]) == {
            "sm__cycles_elapsed.max or gpc__cycles_elapsed.max or sm__cycles_elapsed.avg"
        }

    def test_times_have_units(self):
        mine = predictions(cycles=[1_000.0, 2_000.0])
        known = pd.DataFrame({"kernel": [1, 2], "time_us": [1.0, 4.0]})
        table = ws.validate(mine, known, metric=["time_s", "time_us"], clock_ghz=1.0)
        assert values(table, "time_us") == [1, 2]
        assert values(table, "time_s", "measured") == pytest.approx([1e-6, 4e-6])
        assert values(table, "time_s", "ratio") == pytest.approx([1, 0.5])

    def test_which_metrics(self, two_launches):
        mine = predictions(cycles=[1.0, 2.0], instructions=[1, 2])
        assert set(ws.validate(mine, two_launches, metric="cycles")["metric"]) == {"cycles"}
        table = ws.validate(mine, two_launches, metric=["instructions", "cycles"])
        assert list(table["metric"].unique()) == ["instructions", "cycles"]
        # Other references are compared by cycles unless all is asked for.
        other = mine.assign(cycles=4.0)
        assert set(ws.validate(mine, other)["metric"]) == {"cycles"}
        assert set(ws.validate(mine, other, metric="all")["metric"]) == {
            *("cycles", "instructions"),
        }
        assert set(ws.validate(mine, other)["profiler_metric"]) == {""}
        # Parts of a report are compared as the report is, also where its attributes are lost.
        report = ws.validation.reference.read_ncu(two_launches)
        for part in (report.tail(1), pd.DataFrame(report.tail(1).to_dict("records"))):
            table = ws.validate(mine.tail(1), part)
            assert set(table["metric"]) == {"cycles"}
        part = pd.DataFrame(report.head(1).to_dict("records"))
        assert set(ws.validate(mine.head(1), part)["metric"]) >= {"cycles", "instructions"}
        table = ws.validate(mine, [two_launches, other])
        assert set(table[table["source"] == "mdm"]["metric"]) == {"cycles"}
        assert "instructions" in set(table[table["source"] == "ncu"]["metric"])

    def test_nothing_in_common(self, two_launches):
        with pytest.raises(
            ws.InputError, match=r"no statistic in common; the predictions have none"
        ):
            ws.validate(predictions(wibble=1.0), two_launches)
        with pytest.raises(ws.InputError, match="metric has no name in it"):
            ws.validate(predictions(cycles=1.0), two_launches, metric=[])

    def test_launches_of_other_sizes_are_said(self, two_launches):
        mine = predictions(cycles=1.0, grid=[(8, 2, 1), (4, 1, 1)], block=["(128, 1, 1)"] * 2)
        with pytest.warns(
            ws.errors.UnmatchedWarning,
            match=r"measured with: 1 vectorAdd: block \(128, 1, 1\) predicted and \(256, 1, 1\) measured$",
        ):
            ws.validate(mine, two_launches)
        ws.validate(mine.assign(block=[(256, 1, 1)] * 2), two_launches)  # does not warn

    def test_kernels_without_counterpart_count_once(self, two_launches):
        mine = predictions(cycles=1.0, time_us=1.0, instructions=1).head(1)
        with pytest.warns(
            ws.errors.UnmatchedWarning, match=r"^1 rows have no prediction \(2 gemm\)$"
        ):
            ws.validate(mine, two_launches)

    def test_errors_by_metric(self, two_launches):
        mine = predictions(cycles=[12_100.0, 3_300.0], registers_per_thread=32)
        table = ws.validate(mine, two_launches)
        errors = ws.validation.validation_errors(table).set_index("metric")
        assert errors["mape"]["cycles"] == pytest.approx(0.05)
        assert errors["mape"]["registers_per_thread"] == 0
        assert errors["profiler_metric"]["registers_per_thread"] == "launch__registers_per_thread"
        # Registers of kernels have no sum.
        apps = ws.validation.validation_errors(table, pairs="app")
        assert list(apps["metric"]) == ["cycles"]
        assert apps["mape"][0] == pytest.approx(1_100 / 14_300)
        with pytest.raises(ws.InputError, match="draw one at a time"):
            ws.plot.errors(table)

    def test_profiles_of_caches(self, two_launches, pascal):
        kernel = ws.patterns.strided(1, blocks=28)
        (profile,) = ws.simulate_caches(ws.App([kernel]), pascal)
        row = profile.to_frame().iloc[0]
        assert (row["model"], row["gpu"], row["kernel"]) == ("caches", pascal.name, 1)
        assert row["grid"] == (28, 1, 1)
        assert row["instructions"] == kernel.num_instructions
        assert row["thread_instructions"] == kernel.num_thread_instructions
        assert {k: row[k] for k in profile.totals} == profile.totals
        assert row["shared_wavefronts"] == profile.per_pc["shared_wavefronts"].sum()
        predicted = ws.predict(kernel, pascal, ["mdm"]).assign(name="")
        known = ws.validation.reference.read_ncu(two_launches).head(1)
        with pytest.warns(ws.errors.UnmatchedWarning, match=r"grid \(28, 1, 1\) predicted"):
            table = ws.validate([predicted, profile], known.assign(name=""))
        assert set(table["model"]) >= {"mdm", "caches"}
        assert values(table, "l1_read_sectors")[0] == profile.totals["l1_read_sectors"]

    def test_command_line(self, two_launches, tmp_path, capsys):
        predictions(cycles=[11_000.0, 6_600.0]).to_csv(tmp_path / "p.csv", index=False)
        predictions(model="caches", dram_read_sectors=[100, 7], grid="(8, 2, 1)").to_csv(
            tmp_path / "c.csv", index=False
        )
        files = [str(tmp_path / "p.csv"), str(tmp_path / "c.csv"), str(two_launches)]
        assert main(["validate", *files, "--json"]) == 0
        rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
        assert rows["cycles"]["mape"] == pytest.approx(0.5)
        assert rows["dram_read_sectors"]["mape"] == pytest.approx(0.25)
        assert main(["validate", *files, "--by", "kernel", "--wide"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("several metrics, predicted against reference: ")
        assert "dram__bytes_read.sum / 32" in printed
        assert main(["validate", *files, "--metric", "cycles"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("cycles, predicted against reference: ")
        assert "sm__cycles_elapsed.max" in printed
