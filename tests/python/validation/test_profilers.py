"""Files that a user may have of a profiler: each is read, or one error says what to do instead.

They are made by hand after the tools' documented formats.
"""

import json
import sqlite3

import pandas as pd
import pytest

import warpstack as ws

NSYS_TRACE = """\
Generating SQLite file run.sqlite from run.nsys-rep
Processing [run.sqlite] with [/opt/nvidia/reports/cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
900,1500,117,,,,,,,,,,4.194,2796.000,Pageable,Device,NVIDIA A100 (0),1,,7,[CUDA memcpy Host-to-Device]
9000,2500,119,8,2,1,256,1,1,32,0.000,0.000,,,,,NVIDIA A100 (0),1,,7,"void add<int, 4>(int *, int)"
5000,3500,118,4,1,1,128,1,1,32,0.000,0.000,,,,,NVIDIA A100 (0),1,,7,"fill(int *)"
"""
NSYS_SUM = """\

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,9000,3,3000.0,3000.0,2000,4000,1000.0,"void add<int, 4>(int *, int)"
25.0,3000,1,3000.0,3000.0,3000,3000,0.0,fill(int *)
"""
NSYS_API = """\
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
99.0,123456,4,30864.0,3000.0,2000,90000,1000.0,cudaMalloc
"""
MEM_TRACE = """\
------------- NVBit (NVidia Binary Instrumentation Tool v1.5.5) Loaded --------------
NVBit core environment variables (mostly for nvbit-devs):
MEMTRACE: CTX 0x000055d0c8a1b2c0 - LAUNCH - Kernel pc 0x00007f - Kernel name fill(int*) - grid launch id 0
CTX 0x000055d0c8a1b2c0 - grid_launch_id 0 - CTA 0,0,0 - warp 0 - LDG.E - 0x00007f0000000000 0x00007f0000000004
"""
NCU_TEXT = """\
==PROF== Connected to process 4711 (/home/me/a.out)
  fill(int *) (4, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    Elapsed Cycles                cycle        3,456
"""
NVPROF_TEXT = """\
==4711== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  2.1760us         1  2.1760us  2.1760us  2.1760us  fill(int*)
"""
NSYS_TEXT = """\
 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Name
 --------  ---------------  ---------  --------  ----------
    100.0             3000          1    3000.0  fill(int *)
"""
PERMISSION = """\
==PROF== Connected to process 4711 (/home/me/a.out)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters
==WARNING== No kernels were profiled.
==PROF== Disconnected from process 4711
"""
NCU = """"ID","Kernel Name","Block Size","Grid Size","lts__t_sectors_srcunit_tex_op_write.sum",\
"lts__t_sectors_srcunit_tex_op_write_lookup_hit.sum","lts__t_sectors_srcunit_tex_op_red_lookup_hit.sum",\
"lts__t_sectors_srcunit_tex_op_atom_lookup_hit.sum","lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"
"","","","","sector","sector","sector","sector","sector"
"0","stream","(256, 1, 1)","(448, 1, 1)","100","100","7","0","11"
"""


def read(tmp_path, text, name="file.csv"):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / name).write_bytes(data)
    return ws.validation.reference.read(tmp_path / name)


class TestNsightSystems:
    def test_launches(self, tmp_path):
        table = read(tmp_path, NSYS_TRACE)
        assert table["name"].tolist() == ["fill", "add"]  # in the order of their starts
        assert table["kernel"].tolist() == [1, 2]
        assert table["time_s"].tolist() == pytest.approx([3.5e-6, 2.5e-6])
        assert table["grid"].tolist() == [(4, 1, 1), (8, 2, 1)]
        assert table["block"].tolist() == [(128, 1, 1), (256, 1, 1)]
        assert set(table["source"]) == {"nsys"}
        assert set(table["gpu"]) == {"NVIDIA A100 (0)"}

    def test_units(self, tmp_path):
        old = NSYS_TRACE.replace("Start (ns),Duration (ns)", "Start(nsec),Duration(nsec)")
        assert read(tmp_path, old).equals(read(tmp_path, NSYS_TRACE))
        slow = NSYS_TRACE.replace("Duration (ns)", "Duration (us)")
        assert read(tmp_path, slow)["time_s"].tolist() == pytest.approx([3.5e-3, 2.5e-3])

    def test_kernels(self, tmp_path):
        table = read(tmp_path, NSYS_SUM)
        assert table["name"].tolist() == ["add", "fill"]
        assert table["launches"].tolist() == [3, 1]
        assert table["kernel"].isna().all()
        assert table["time_s"].tolist() == pytest.approx([3e-6, 3e-6])

    def test_text(self, tmp_path):
        table = read(tmp_path, NSYS_TEXT)
        assert table["name"].tolist() == ["fill"]
        assert table["time_s"].tolist() == pytest.approx([3e-6])

    def test_kernels_by_grid_are_one(self, tmp_path):
        more = NSYS_SUM + "25.0,3000,3,1000.0,1000.0,1000,1000,0.0,fill(int *)\n"
        table = read(tmp_path, more)
        assert table["launches"].tolist() == [3, 4]
        assert table["time_s"].tolist() == pytest.approx([3e-6, 1.5e-6])

    @pytest.mark.parametrize(
        "text",
        [
            NSYS_API + "\n" + NSYS_SUM + "\n" + NSYS_TRACE,
            NSYS_TRACE + "\n" + NSYS_API,
            NSYS_SUM + "Processing [a] with [b]...\n" + NSYS_TRACE + "\n\n" + NSYS_SUM,
        ],
    )
    def test_several_reports(self, tmp_path, text):
        assert read(tmp_path, text).equals(read(tmp_path, NSYS_TRACE))

    def test_another_report(self, tmp_path):
        with pytest.raises(ws.InputError, match=r"file.csv:2: .*without the times.*cuda_gpu_trace"):
            read(tmp_path, NSYS_API)

    def test_only_copies(self, tmp_path):
        lines = [line for line in NSYS_TRACE.splitlines() if ",,,256" not in line]
        text = "\n".join(line for line in lines if "32,0.000" not in line) + "\n"
        with pytest.raises(ws.InputError, match="no kernel in it"):
            read(tmp_path, text)

    def test_predictions_against_times(self, tmp_path):
        predicted = pd.DataFrame({"kernel": [1, 2], "name": ["fill", "add"], "time_us": [7.0, 5.0]})
        (tmp_path / "nsys.csv").write_text(NSYS_TRACE)
        table = ws.validate(predicted.assign(model="mdm"), tmp_path / "nsys.csv", metric="time_us")
        assert table["error"].tolist() == pytest.approx([1, 1])


class TestTorch:
    EVENTS = (
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 90},
        {
            "ph": "X",
            "cat": "kernel",
            "name": "void at::native::(anonymous namespace)::add<int>(int*)",
            "ts": 50.5,
            "dur": 2.5,
            "args": {"grid": [8, 1, 1], "block": [128, 1, 1]},
        },
        {"ph": "X", "cat": "kernel", "name": "fill", "ts": 20, "dur": 4, "args": {}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 5, "dur": 9},
    )

    def test_kernels(self, tmp_path):
        table = read(tmp_path, json.dumps({"traceEvents": self.EVENTS}), "trace.json")
        assert table["name"].tolist() == ["fill", "add"]
        assert table["time_s"].tolist() == pytest.approx([4e-6, 2.5e-6])
        assert table["grid"].tolist()[1] == (8, 1, 1)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"traceEvents": [', "damaged JSON"),
            ('{"a": 1}', "JSON, but not of PyTorch's profiler"),
            ('{"traceEvents": []}', "without a kernel of a GPU; profile with"),
            (
                '[{"cat": "kernel", "name": "a", "ts": 1, "dur": "x"}]',
                r"json: \[0\]: dur = 'x': expected a number",
            ),
            ('[{"cat": "kernel", "ts": 1, "dur": -1}]', r"\[0\]: dur = -1: expected a time"),
            (
                f'[{{"cat": "kernel", "ts": {"9" * 400}, "dur": 1}}]',
                r"\[0\]: ts = 99.*: expected a time",
            ),
            ('[{"cat": "kernel", "ts": NaN, "dur": 1}]', r"\[0\]: ts = nan: expected a time"),
            ("[" * 100_000, "damaged JSON"),
        ],
    )
    def test_refused(self, tmp_path, text, message):
        with pytest.raises(ws.InputError, match=message):
            read(tmp_path, text, "trace.json")


class TestRefused:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", "", "not a reference .*; the file is empty: the program"),
            ("a.txt", MEM_TRACE, "NVBit's mem_trace, .*; trace with Accel-Sim's tracer"),
            ("a.txt", NCU_TEXT, "text that Nsight Compute prints; write it as CSV: ncu --csv"),
            ("a.txt", NVPROF_TEXT, "text that nvprof prints; write it as CSV: nvprof --print"),
            ("a.nsys-rep", b"\1\2\3", "report of Nsight Systems; write its kernels as CSV"),
            ("a.csv", b"NVR\0\1\2", r"Nsight Compute under another name; call it \*\.ncu-rep"),
            ("a.csv", b"\x1f\x8b\x08", "packed by gzip; unpack it"),
            ("a.csv", PERMISSION, "measured nothing: ERR_NVGPUCTRPERM .*; run the profiler as an"),
            ("a.csv", "==WARNING== No kernels were profiled.\n", "No kernels.*; launch a kernel"),
            (
                "a.csv",
                "==PROF== Connected to process 1\n",
                "measured nothing: Connected.*; profile",
            ),
            (
                "a.csv",
                "==ERROR== Failed to profile\n" + NCU.splitlines()[0] + "\n",
                "the table has no rows: Nsight Compute measured nothing: Failed to profile; profile",
            ),
        ],
    )
    def test_one_error_says_what_it_is(self, tmp_path, name, content, message):
        with pytest.raises(ws.InputError, match=message) as caught:
            read(tmp_path, content, name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_database_of_nsight_systems(self, tmp_path):
        with sqlite3.connect(tmp_path / "a.db") as database:
            database.execute("create table t(x)")
        with pytest.raises(ws.InputError, match=r"a database of Nsight Systems .*; nsys stats"):
            ws.validation.reference.read(tmp_path / "a.db")

    def test_a_report_as_a_trace(self, tmp_path):
        (tmp_path / "a.nsys-rep").write_bytes(b"\1\2")
        with pytest.raises(ws.InputError, match="a report of Nsight Systems"):
            ws.load(tmp_path / "a.nsys-rep")


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
    def test_of_windows(self, tmp_path, encoding):
        text = NSYS_TRACE.replace("\n", "\r\n")
        assert read(tmp_path, text.encode(encoding)).equals(read(tmp_path, NSYS_TRACE))

    def test_messages_among_the_rows(self, tmp_path):
        lines = NCU.splitlines()
        text = (
            "\n".join(["==WARNING== a", *lines[:2], "==PROF== b", lines[2], "==ERROR== c"]) + "\n"
        )
        assert len(read(tmp_path, text)) == 1


class TestWhatNvidiaCounts:
    """Nsight Compute takes every store as a hit in L2, so that its hits are no hits of ours."""

    def test_hits_of_writes_are_not_compared(self, tmp_path, pascal):
        (tmp_path / "ncu.csv").write_text(NCU)
        profile = ws.simulate_caches(ws.patterns.stream(), pascal)
        table = ws.validate([profile], tmp_path / "ncu.csv")
        assert set(table["metric"]) == {"l2_write_sectors", "l2_read_sector_hits"}

    def test_they_stay_under_their_own_names(self, tmp_path):
        table = read(tmp_path, NCU)
        assert table["lts__t_sectors_srcunit_tex_op_write_lookup_hit.sum"].tolist() == [100]
        assert not {"l2_write_sector_hits", "l2_atomic_sector_hits"} & set(table)
        assert table["l2_read_sector_hits"].tolist() == [11]
        statistics = set(ws.validation.reference.ncu_metrics()["statistic"])
        assert not {"l2_write_sector_hits", "l2_atomic_sector_hits"} & statistics
