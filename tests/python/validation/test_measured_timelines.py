"""Timelines that profilers measured: nsys stats and PyTorch's profiler."""

import gzip
import json
import sqlite3

import pytest

import warpstack as ws

HEADER = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
    "Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
)
NSYS = f"""\
Processing [run.sqlite] with [cuda_gpu_trace.py]...
{HEADER}
1003000,4000,120,,,,,,,,,,16.000,4000.0,Pinned,Device,NVIDIA A100 (0),1,,13,[CUDA memcpy Host-to-Device]
1001000,2000,119,,,,,,,,,,0.001,500.0,,,NVIDIA A100 (0),1,,7,[CUDA memset]
1007500,2500,121,8,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA A100 (0),1,,14,"void add<float>(float *, int)"
1009000,1000,122,,,,,,,,,,8.000,8000.0,Device,Pageable,NVIDIA A100 (0),1,,13,[CUDA memcpy DtoH]
"""


def torch_trace():
    gpu = {"device": 0, "stream": 7}
    return {
        "schemaVersion": 1,
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1.0, "dur": 900.0},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 5.0, "dur": 3.0},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "void at::native::add_kernel<float>(int)",
                "ts": 40.25,
                "dur": 2.5,
                "args": {**gpu, "grid": [8, 1, 1], "block": [256, 1, 1]},
            },
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "name": "Memcpy HtoD (Pageable -> Device)",
                "ts": 20.25,
                "dur": 10.0,
                "args": {**gpu, "bytes": 4096},
            },
            {
                "ph": "X",
                "cat": "gpu_memset",
                "name": "Memset (Device)",
                "ts": 31.0,
                "dur": 1.0,
                "args": {**gpu, "stream": 9, "bytes": 512},
            },
        ],
    }


def test_nsys_has_kernels_copies_and_fills_in_order(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(NSYS)
    found = ws.validation.reference.read_timeline(path)
    assert found["operation"].tolist() == ["memset", "copy", "kernel", "copy"]
    assert found["name"].tolist()[2] == "add"
    assert found["direction"].tolist() == ["", "HtoD", "", "DtoH"]
    assert found["stream"].tolist() == [7, 13, 14, 13]
    assert found["bytes"].tolist() == [1000, 16_000_000, 0, 8_000_000]
    assert found["start_us"].tolist() == pytest.approx([0, 2, 6.5, 8])
    assert found["end_us"].tolist() == pytest.approx([2, 6, 9, 9])


@pytest.mark.parametrize("compressed", [False, True])
def test_torch_has_what_the_gpu_did(tmp_path, compressed):
    path = tmp_path / ("trace.json.gz" if compressed else "trace.json")
    data = json.dumps(torch_trace()).encode()
    path.write_bytes(gzip.compress(data) if compressed else data)
    found = ws.validation.reference.read_timeline(path)
    assert found["operation"].tolist() == ["copy", "memset", "kernel"]
    assert found["name"].tolist()[2] == "add_kernel"
    assert found["direction"].tolist() == ["HtoD", "", ""]
    assert found["stream"].tolist() == [7, 9, 7]
    assert found["bytes"].tolist() == [4096, 512, 0]
    assert found["start_us"].tolist() == pytest.approx([0, 10.75, 20])


def damaged():
    """Yield a damage of each kind, and what its message has to say."""
    yield NSYS.replace("1007500,2500", "1007500,soon").encode(), r"\.x:5: Duration \(ns\) = 'soon'"
    yield NSYS.replace(",14,", ",a,").encode(), r"\.x:5: Strm = 'a'"
    yield NSYS.split("\n")[1].encode(), "the table has no rows"
    yield b"kernel,time_us\n1,2\n", "no timeline of a profiler"
    yield gzip.compress(b"{}", mtime=0)[:-5], "damaged gzip"
    yield b'{"traceEvents": [', "damaged JSON"
    yield b'{"traceEvents": []}', "without a kernel of a GPU"
    yield (
        json.dumps({"traceEvents": [{"cat": "kernel", "ts": "now"}]}).encode(),
        "ts is not a number",
    )


@pytest.mark.parametrize(("content", "said"), list(damaged()), ids=range(8))
def test_damaged_timelines_name_the_place(tmp_path, content, said):
    path = tmp_path / "file.x"
    path.write_bytes(content)
    with pytest.raises(ws.InputError, match=said):
        ws.validation.reference.read_timeline(path)


#: Of the schema that nsys exports: the columns that are read, and some that are not.
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL, mangledName INTEGER, gridX INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, bytes INTEGER NOT NULL,
    copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO StringIds VALUES (1, 'void add<float>(float *, int)'), (2, 'add'), (3, '_Z3addIfEvPT_i');
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA A100');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1007500, 1010000, 0, 1, NULL, 14, 121, 5, 1, 2, 3, 8);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
    (1003000, 1007000, 0, 13, 120, 16000000, 1, 1, 2),
    (1009000, 1010000, 0, 13, 122, 8000000, 2, 2, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1001000, 1003000, 0, 7, 119, 0, 1000);
"""


def database(path, *statements):
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA + ";".join(statements))
    connection.close()
    return path


def test_a_database_of_nsys_says_what_its_csv_does(tmp_path):
    text = tmp_path / "trace.csv"
    text.write_text(NSYS)
    of_text = ws.validation.reference.read_timeline(text)
    found = ws.validation.reference.read_timeline(database(tmp_path / "run.sqlite"))
    columns = ["operation", "stream", "direction", "bytes", "device", "correlation"]
    assert found[columns].to_dict("list") == of_text[columns].to_dict("list")
    for name in ("start_us", "end_us"):
        assert found[name].tolist() == pytest.approx(of_text[name].tolist())
    assert found["name"].tolist()[2] == "add"
    assert found["full_name"].tolist()[2] == "void add<float>(float *, int)"
    assert set(found["bytes_step"]) == {1}
    assert set(of_text["bytes_step"]) == {1, 1000}  # kernels have no size
    assert not list(tmp_path.glob("run.sqlite-*"))


def test_a_database_can_lack_tables_and_columns(tmp_path):
    lacks = ["DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET", "DROP TABLE TARGET_INFO_GPU"]
    lacks.append("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN correlationId")
    lacks.append("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName")
    found = ws.validation.reference.read_timeline(database(tmp_path / "x", *lacks))
    assert found["operation"].tolist() == ["copy", "kernel", "copy"]
    assert found["correlation"].tolist() == [-1, 121, -1]
    assert found["full_name"].tolist()[1] == "_Z3addIfEvPT_i"
    assert set(found["device"]) == {"0"}


def test_graphs_that_are_wholes_are_warned_of(tmp_path):
    graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER)"
    rows = "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2), (3, 4)"
    path = database(tmp_path / "x", graphs, rows)
    with pytest.warns(UserWarning, match=r"2 launches of graphs .*--cuda-graph-trace=node"):
        assert len(ws.validation.reference.read_timeline(path)) == 4


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            ["DELETE FROM StringIds"],
            r"KERNEL: row 1: demangledName = 1: StringIds has no such text",
        ),
        (
            ["UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET end = 5"],
            r"MEMSET: row 1: end = 5 is before start",
        ),
        (
            ["UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 'x'"],
            r"MEMCPY: row 1: bytes = 'x' is not",
        ),
        (["ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN bytes"], "has no column bytes"),
        (
            [f"DELETE FROM CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET")],
            "no kernel, copy or fill of a GPU .*--trace=cuda",
        ),
    ],
)
def test_damaged_databases_name_the_place(tmp_path, statements, said):
    path = database(tmp_path / "run.sqlite", *statements)
    with pytest.raises(ws.InputError, match=rf"run\.sqlite: .*{said}"):
        ws.validation.reference.read_timeline(path)


@pytest.mark.parametrize("cut", [60, 2000, 9000])
def test_cut_databases_are_damaged(tmp_path, cut):
    whole = database(tmp_path / "run.sqlite").read_bytes()
    path = tmp_path / "cut.sqlite"
    path.write_bytes(whole[:cut])
    with pytest.raises(ws.InputError, match=r"cut\.sqlite: damaged database: .*export it again"):
        ws.validation.reference.read_timeline(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            NSYS.replace("Duration (ns)", "Duration"),
            r"file\.csv:2: the header has no column Duration \(ns\)",
        ),
        (NSYS.replace("BlkZ", "Block"), r"file\.csv:2: the header has no column BlkZ"),
        (
            NSYS.replace("Start (ns)", "Start (xs)"),
            r"file\.csv:3: Start \(xs\) = .* unknown unit 'xs'",
        ),
        (NSYS.replace(",120,", ",120,,"), r"file\.csv:3: .* cells under"),
        (NSYS[: NSYS.index("[CUDA memcpy DtoH]") - 4], r"file\.csv:6: 19 cells under 21 columns"),
        (NSYS.replace(",120,", ",1.5,"), r"file\.csv:3: CorrId = '1\.5'"),
        ("", "the file is empty"),
        (
            "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,5,1,5.0,k\n",
            r"file\.csv:1: a report of nsys stats, but not .*cuda_gpu_trace",
        ),
        ("not JSON, nor a table", "no timeline of a profiler"),
    ],
)
def test_wrong_headers_name_line_and_remedy(tmp_path, text, said):
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(ws.InputError, match=said):
        ws.validation.reference.read_timeline(path)


def test_a_report_says_what_to_export(tmp_path):
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(b"\x00\x01report")
    with pytest.raises(ws.InputError, match=r"run\.nsys-rep: .*nsys export --type sqlite"):
        ws.validation.reference.read_timeline(path)


def test_times_since_1970_keep_their_nanoseconds(tmp_path):
    trace = torch_trace()
    for event in trace["traceEvents"]:
        event["ts"] += 1.7e15
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    found = ws.validation.reference.read_timeline(path)
    assert (found["end_us"] - found["start_us"]).tolist() == pytest.approx([10, 1, 2.5], abs=1e-6)
