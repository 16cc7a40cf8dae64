"""Readers of references. The files of profilers are made by hand after the tools' documented formats."""

import contextlib
import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from warpstack.validation.reference.common import Line, number, plain_name, scale_of_unit


def read(tmp_path, text, name="file.csv"):
    (tmp_path / name).write_text(text)
    return ws.validation.reference.read(tmp_path / name)


class TestUnits:
    @pytest.mark.parametrize(
        ("unit", "scale"),
        [
            ("", 1),
            ("s", 1),
            ("ms", 1e-3),
            ("us", 1e-6),
            ("ns", 1e-9),
            ("second", 1),
            ("msecond", 1e-3),
            ("usecond", 1e-6),
            ("nsecond", 1e-9),
            ("cycle", 1),
            ("Kcycle", 1e3),
            ("%", 0.01),
            ("sector", 1),
            ("byte", 1),
            ("Kbyte", 1e3),
            ("Mbyte", 1e6),
            ("Gbyte/second", 1e9),
            ("cycle/nsecond", 1e9),
            ("cycle/usecond", 1e6),
            ("Ghz", 1e9),
            ("register/thread", 1),
            ("inst/cycle", 1),
            ("Kbyte/block", 1e3),
            ("furlong", None),
            ("Xbyte", None),
        ],
    )
    def test_scales(self, unit, scale):
        assert scale_of_unit(unit) == (None if scale is None else pytest.approx(scale, rel=1e-12))

    def test_nvprof_counts_bytes_in_powers_of_two(self):
        assert scale_of_unit("MB", binary_bytes=True) == 2**20
        assert scale_of_unit("GB/s", binary_bytes=True) == 2**30
        assert scale_of_unit("MB") == 1e6

    @pytest.mark.parametrize(
        ("text", "unit", "value"),
        [
            ("5,123", "cycle", 5123),
            ("1,234,567.5", "", 1234567.5),
            ("3.52", "usecond", 3.52e-6),
            ("98.5%", "", 0.985),
            ("1.5GB/s", "", 1.5e9),
            ("2e+03", "", 2000),
            (".5", "", 0.5),
            ("-3", "", -3),
            ("Low (2)", "", 2),
            ("n/a", "cycle", math.nan),
            ("<OVERFLOW>", "", math.nan),
            ("", "us", math.nan),
        ],
    )
    def test_numbers(self, text, unit, value):
        found = number(Line("f", 3, []), "x", text, unit)
        assert found == pytest.approx(value, nan_ok=True, rel=1e-12)

    @pytest.mark.parametrize("text", ["abc", "1,23", "12,3456", "1.2.3", "e5", ".", "3 furlongs"])
    def test_what_is_no_number(self, text):
        with pytest.raises(ws.InputError, match=r"f:3: x = .*(not a number|unknown unit)"):
            number(Line("f", 3, []), "x", text)

    @pytest.mark.parametrize(
        ("name", "plain"),
        [
            ("Kernel(Node*, int*, bool*, int)", "Kernel"),
            ("vectorAdd(float const *, float*, int) [114]", "vectorAdd"),
            ("void gemm<float, (int)128>(T1 const *, int)", "gemm"),
            ("void at::native::(anonymous namespace)::add<int>(int*)", "add"),
            ("_Z6KernelP4NodePiPbS2_S2_S1_i", "Kernel"),
            ("_ZN3foo3barIiEEvPT_", "bar"),
            ("strided_gs32", "strided_gs32"),
        ],
    )
    def test_names_of_functions(self, name, plain):
        assert plain_name(name) == plain


# --- Nsight Compute -----------------------------------------------------------------------------

NCU_LONG = """\
==PROF== Connected to process 4711 (/home/me/bfs)
reading graph
==PROF== Profiling "Kernel" - 0: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",\
"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type"
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","DRAM Frequency","cycle/nsecond","6.79","",""
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","Elapsed Cycles","cycle","12,345","",""
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","Duration","usecond","9.05","",""
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","Memory [%]","%","12.50","",""
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","","","","SOLBottleneck","WRN"
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"Launch Statistics","Function Cache Configuration","","cudaFuncCachePreferNone","",""
"0","4711","bfs","127.0.0.1","Kernel(Node *, int *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"Instruction Statistics","Executed Instructions","inst","24,690","",""
"1","4711","bfs","127.0.0.1","Kernel2(bool *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","Elapsed Cycles","Kcycle","3.2","",""
"1","4711","bfs","127.0.0.1","Kernel2(bool *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5",\
"GPU Speed Of Light","Duration","ms","0.002","",""
"""

NCU_RAW = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream",\
"dram__bytes_read.sum","gpc__cycles_elapsed.max","gpu__time_duration.sum",\
"launch__func_cache_config","lts__t_sectors_op_read.sum","smsp__inst_executed.sum"
"","","","","","","","","Kbyte","cycle","nsecond","","sector","inst"
"3","4711","bfs","127.0.0.1","void Kernel<int>(Node *, T1 *)","2023-Jan-01 10:00:00","1","7",\
"36.86","12,345","9,056","cudaFuncCachePreferNone","1,024","24,690"
"4","4711","bfs","127.0.0.1","Kernel2(bool *)","2023-Jan-01 10:00:01","1","7",\
"n/a","3,200","2,048","cudaFuncCachePreferNone","128","6,400"
"""

NCU_SUMMARY = """\
"Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",\
"Device","CC","Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"
"4711","bfs","127.0.0.1","Kernel(Node *)","1","7","(512, 1, 1)","(8, 1, 1)","0","7.5","2",\
"Command line profiler metrics","gpu__time_duration.sum","us","1","3","2"
"""


class TestNsightCompute:
    def test_details(self, tmp_path):
        table = read(tmp_path, NCU_LONG)
        assert list(table["source"]) == ["ncu", "ncu"]
        assert list(table["kernel"]) == [1, 2]
        assert list(table["launches"]) == [1, 1]
        assert list(table["name"]) == ["Kernel", "Kernel2"]
        assert list(table["cycles"]) == [12345, 3200]
        assert list(table["time_s"]) == pytest.approx([9.05e-6, 2e-6])
        assert table["DRAM Frequency"][0] == pytest.approx(6.79e9)
        assert table["Memory [%]"][0] == pytest.approx(0.125)
        assert table["ipc"][0] == 2.0
        assert math.isnan(table["ipc"][1])
        assert "Function Cache Configuration" not in table

    def test_raw_page(self, tmp_path):
        table = read(tmp_path, NCU_RAW)
        assert list(table["kernel"]) == [1, 2]
        assert list(table["name"]) == ["Kernel", "Kernel2"]
        assert list(table["cycles"]) == [12345, 3200]
        assert list(table["time_s"]) == pytest.approx([9.056e-6, 2.048e-6])
        assert list(table["l2_read_sectors"]) == [1024, 128]
        assert list(table["ipc"]) == [2.0, 2.0]
        assert table["dram__bytes_read.sum"][0] == pytest.approx(36860)
        assert math.isnan(table["dram__bytes_read.sum"][1])
        assert "launch__func_cache_config" not in table

    def test_summary_by_kernel(self, tmp_path):
        table = read(tmp_path, NCU_SUMMARY)
        assert table["kernel"].isna().all()
        assert list(table["launches"]) == [2]
        assert list(table["time_s"]) == pytest.approx([2e-6])

    def test_a_launch_with_two_names(self, tmp_path):
        text = NCU_LONG.replace('"1","4711"', '"0","4711"')
        with pytest.raises(ws.InputError, match=r"file.csv:\d+: the launch 0 has two names"):
            read(tmp_path, text)


# --- nvprof -------------------------------------------------------------------------------------

NVPROF_TRACE = """\
==2119== NVPROF is profiling process 2119, command: ./bfs graph4096.txt
==2119== Profiling application: ./bfs graph4096.txt
==2119== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread",\
"Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name"
ms,us,,,,,,,,B,B,KB,GB/s,,,,,,
245.342000,3.392000,,,,,,,,,,32.00,9.0,"Pageable","Device","GeForce GTX 1080 (0)","1","7","[CUDA memcpy HtoD]"
245.400000,9.376000,8,1,1,512,1,1,21,0,0,,,,,"GeForce GTX 1080 (0)","1","7","Kernel(Node*, int*) [118]"
245.500000,2.144000,8,1,1,512,1,1,12,0,0,,,,,"GeForce GTX 1080 (0)","1","7","Kernel2(bool*) [121]"
245.600000,8.160000,8,1,1,512,1,1,21,0,0,,,,,"GeForce GTX 1080 (0)","1","7","Kernel(Node*, int*) [124]"
"""

NVPROF_METRICS = """\
==20858== NVPROF is profiling process 20858, command: ./bfs
==20858== Profiling result:
==20858== Event result:
"Device","Kernel","Invocations","Event Name","Min","Max","Avg","Total"
"GeForce GTX 1080 (0)","Kernel(Node*, int*)",2,"elapsed_cycles_sm",291160,339155,315157,630315

==20858== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"GeForce GTX 1080 (0)","Kernel(Node*, int*)",2,"inst_executed","Instructions Executed",2476,4336,3406
"GeForce GTX 1080 (0)","Kernel(Node*, int*)",2,"sm_efficiency","Multiprocessor Activity",7.15%,18.46%,12.8%
"GeForce GTX 1080 (0)","Kernel(Node*, int*)",2,"dram_read_throughput","Memory Read",1.0GB/s,3.0GB/s,2.0GB/s
"GeForce GTX 1080 (0)","Kernel(Node*, int*)",2,"dram_utilization","Device Memory Use",Low (1),Low (1),Low (1)
"GeForce GTX 1080 (0)","Kernel2(bool*)",1,"inst_executed","Instructions Executed",2346,2346,2346
"""

NVPROF_METRIC_TRACE = """\
"Device","Context","Stream","Kernel","Correlation_ID","inst_executed","l2_tex_read_hit_rate"
,,,,,,%
"GeForce GTX 1080 (0)","1","7","Kernel(Node*, int*)",118,2476,100.000000
"GeForce GTX 1080 (0)","1","7","Kernel2(bool*)",121,2346,0.000000
"""


class TestNvprof:
    def test_gpu_trace(self, tmp_path):
        table = read(tmp_path, NVPROF_TRACE)
        assert list(table["kernel"]) == [1, 2, 3]
        assert list(table["name"]) == ["Kernel", "Kernel2", "Kernel"]
        assert list(table["time_s"]) == pytest.approx([9.376e-6, 2.144e-6, 8.16e-6])
        assert set(table["gpu"]) == {"GeForce GTX 1080 (0)"}

    def test_metrics_and_events(self, tmp_path):
        table = read(tmp_path, NVPROF_METRICS)
        assert table["kernel"].isna().all()
        assert list(table["launches"]) == [2, 1]
        assert list(table["instructions"]) == [3406, 2346]
        assert table["elapsed_cycles_sm"][0] == 315157
        assert table["sm_efficiency"][0] == pytest.approx(0.128)
        assert table["dram_read_throughput"][0] == 2 * 2**30
        assert table["dram_utilization"][0] == 1

    def test_metrics_by_launch(self, tmp_path):
        table = read(tmp_path, NVPROF_METRIC_TRACE)
        assert list(table["instructions"]) == [2476, 2346]
        assert list(table["l2_tex_read_hit_rate"]) == [1.0, 0.0]
        assert list(table["kernel"]) == [1, 2]

    def test_summary_has_means(self, tmp_path):
        text = '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,us,,us,us,us,\n'
        text += '"GPU activities",90,10,2,5,4,6,"Kernel(Node*)"\n'
        text += '"GPU activities",5,1,1,1,1,1,"[CUDA memcpy HtoD]"\n'
        text += '"API calls",5,1,1,1,1,1,"cudaMalloc"\n'
        table = read(tmp_path, text)
        assert table["name"].tolist() == ["Kernel"]
        assert table["launches"].tolist() == [2]
        assert table["time_s"].tolist() == pytest.approx([5e-6])


# --- tables -------------------------------------------------------------------------------------


class TestTables:
    def test_accel_sim_results(self, shared):
        table = ws.validation.reference.read(shared / "reference" / "accelsim-table3.csv")
        assert len(table) == 22
        assert set(table["source"]) == {"accelsim-table3"}
        strided = table[table["app"] == "strided GS=32"]
        assert list(strided["change"]) == ["", "DRAM 960 GB/s", "15 SMs"]
        assert list(strided["cycles"]) == [446203, 260652, 485736]
        assert strided["ipc"].iloc[0] == pytest.approx(415744 / 446203)

    def test_counters_of_machines(self, shared):
        table = ws.validation.reference.read(shared / "reference" / "rodinia-bfs-graph4096.csv")
        assert list(table.groupby("source", sort=False).size().items()) == [
            ("hw_gtx1080", 16),
            ("accelsim_rtx2060", 16),
            ("accelsim_qv100", 16),
        ]
        ninth = table[table["kernel"] == 9].set_index("source")
        assert ninth["cycles"]["hw_gtx1080"] == 511540 / 20
        assert ninth["time_s"]["hw_gtx1080"] == pytest.approx(12.896e-6)
        assert ninth["l2_read_sectors"]["hw_gtx1080"] == 31003
        assert ninth["cycles"]["accelsim_rtx2060"] == 11241
        # The ratio of warp instructions, not of thread instructions as in the file.
        assert ninth["ipc"]["accelsim_rtx2060"] == pytest.approx(33102 / 11241)
        assert set(ninth["name"]) == {"Kernel"}

    def test_our_own_output(self, tmp_path, pascal):
        kernel = ws.patterns.strided(1, blocks=28)
        predicted = ws.predict(kernel, pascal, ["gpumech", "mdm"])
        predicted.to_csv(tmp_path / "p.csv", index=False)
        table = ws.validation.reference.read(tmp_path / "p.csv")
        assert list(table["cycles"]) == pytest.approx(list(predicted["cycles"]))
        assert list(table["model"]) == ["gpumech", "mdm"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a reference that warpstack knows"),
        ("a,b\n1,2\n", "not a reference that warpstack knows"),
        ("kernel,cycles\n", "the table has no rows"),
        ("kernel,cycles\n1,abc\n", r":2: cycles = 'abc' is not a number"),
        ("kernel,cycles\n1.5,3\n", r":2: kernel = '1.5' is not a number of launches"),
        ("kernel,cycles\n1e300,3\n", r":2: kernel = '1e300' is not a number of launches"),
        (NVPROF_METRICS.replace(',2,"inst', ',,"inst'), r":9: Invocations = '' is not a number"),
        ("kernel,cycles\n,3\n", r":2: kernel = '' is not a number of launches"),
        ("kernel,cycles\n1,2,3\n", r":2: 3 cells under 2 columns"),
        ("kernel,cycles,cycles\n1,2,3\n", r":1: the column 'cycles' appears twice"),
        ("kernel,hw_x_cycles\nx,3\n", r":2: kernel = 'x' is not a number"),
        (
            NVPROF_TRACE.replace("9.376000", "9.3 parsecs"),
            r":7: Duration = '9.3 parsecs' has the unk",
        ),
        (
            NCU_RAW.replace("nsecond", "parsec"),
            r":3: gpu__time_duration.sum = '9,056' has the unkno",
        ),
        (
            NVPROF_METRICS.replace(',2,"inst', ',3,"inst'),
            r":9: Invocations = 3 of Kernel, which had",
        ),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    with pytest.raises(ws.InputError, match=f"file.csv{message}|file.csv: {message}"):
        read(tmp_path, text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ws.InputError, match=r"none.csv: cannot be read: No such file"):
        ws.validation.reference.read(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00kernel")
    with pytest.raises(ws.InputError, match=r"b.csv: not text in UTF-8"):
        ws.validation.reference.read(tmp_path / "b.csv")
    (tmp_path / "big.csv").write_text("kernel,cycles\n1," + "9" * 200_000 + "\n")
    with pytest.raises(ws.InputError, match=r"big.csv"):
        ws.validation.reference.read(tmp_path / "big.csv")


def test_byte_order_mark(tmp_path):
    (tmp_path / "bom.csv").write_bytes("\ufeffkernel,cycles\n1,5\n".encode())
    table = ws.validation.reference.read(tmp_path / "bom.csv")
    assert isinstance(table, pd.DataFrame)
    assert list(table["cycles"]) == [5]


DIALECTS = [NCU_LONG, NCU_RAW, NCU_SUMMARY, NVPROF_TRACE, NVPROF_METRICS, NVPROF_METRIC_TRACE]
DIALECTS += ["kernel,name,cycles,change\n1,a,5,\n2,b,6,x\n", "kernel,hw_x_cycles,hw_x_ipc\n1,2,3\n"]


@pytest.mark.slow
@settings(max_examples=rounds(400))
@given(st.data())
def test_damaged_files_are_tables_or_input_errors(tmp_path_factory, data):
    """Whatever is cut out of, doubled in, or put into a file, nothing else is raised."""
    text = data.draw(st.sampled_from(DIALECTS))
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(begin + data.draw(st.integers(0, 60)), len(text))
        middle = data.draw(
            st.one_of(
                st.just(""),
                st.just(2 * text[begin:end]),
                st.text('0123456789,.%"\n-eE inf/', max_size=8),
                st.text(max_size=4).filter(lambda t: t.isprintable()),
            )
        )
        text = text[:begin] + middle + text[end:]
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ws.InputError):
        table = ws.validation.reference.read(path)
        assert len(table) > 0
        assert {"source", "kernel", "launches"} <= set(table)


def test_a_message_has_one_line():
    """A quoted name of a column can have several."""
    line = Line("file.csv", 3, ["x"])
    assert str(line.error("gpu__time\nsum = 'x' is not a number")) == (
        "file.csv:3: gpu__time sum = 'x' is not a number"
    )
