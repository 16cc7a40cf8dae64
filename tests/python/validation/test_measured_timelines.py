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
    yield NSYS.split("\n")[1].encode(), "the table has no rows; measure"
    yield b"kernel,time_us\n1,2\n", "no timeline of a profiler"
    yield gzip.compress(b"{}", mtime=0)[:-5], "damaged gzip: .*; copy the file again"
    yield b'{"traceEvents": [', "damaged JSON: .*; export it again"
    yield b'{"traceEvents": []}', "without a kernel of a GPU"
    yield (
        json.dumps({"traceEvents": [{"cat": "kernel", "ts": "now"}]}).encode(),
        r"file\.x: traceEvents\[0\]: ts = 'now': expected a number.*; export it again",
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


def nulled(table, column, value):
    """Return statements after which a column, which other versions may leave open, has a value."""
    name = f"CUPTI_ACTIVITY_KIND_{table}"
    return [
        f"ALTER TABLE {name} DROP COLUMN {column}",
        f"ALTER TABLE {name} ADD COLUMN {column}",
        f"UPDATE {name} SET {column} = {value}",
    ]


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


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "(1, 2)",
            r"1 launch of a graph is in it as a whole: its kernels .*--cuda-graph-trace=node",
        ),
        ("(1, 2), (3, 4)", r"2 launches of graphs are in it as wholes: their kernels .*=node"),
    ],
)
def test_graphs_that_are_wholes_are_warned_of(tmp_path, rows, said):
    graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER)"
    values = f"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES {rows}"
    path = database(tmp_path / "x", graphs, values)
    with pytest.warns(UserWarning, match=said):
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
        (nulled("KERNEL", "start", "NULL"), r"KERNEL: row 1: start is NULL; export it again"),
        (nulled("MEMSET", "bytes", "NULL"), r"MEMSET: row 1: bytes is NULL; export it again"),
        (nulled("MEMCPY", "bytes", "-1"), r"MEMCPY: row 1: bytes = -1: expected 0 or more; export"),
        (nulled("MEMCPY", "copyKind", "NULL"), r"MEMCPY: row 1: copyKind is NULL; export it again"),
        (nulled("MEMCPY", "start", "-1"), r"MEMCPY: row 1: start = -1: expected 0 or more; export"),
        (
            ["UPDATE StringIds SET value = ' '"],
            r"KERNEL: row 1: demangledName = 1: its text .*empty",
        ),
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


def of_event(place, **changes):
    """Return a trace of PyTorch with another event; what is None is left out."""
    trace = torch_trace()
    event = trace["traceEvents"][place]
    event.update(changes)
    for name in [name for name, value in event.items() if value is None]:
        del event[name]
    return trace


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (of_event(2, dur=None), r"traceEvents\[2\]: dur = None: expected a number"),
        (of_event(2, dur=-1), r"traceEvents\[2\]: dur = -1: expected a time"),
        (of_event(2, ts=True), r"traceEvents\[2\]: ts = True: expected a number"),
        (of_event(2, name=5), r"traceEvents\[2\]: name = 5: expected a name"),
        (of_event(2, name=None), r"traceEvents\[2\]: name = None: expected a name"),
        (of_event(2, name=" "), r"traceEvents\[2\]: name = ' ': expected a name"),
        (of_event(2, args=[1]), r"traceEvents\[2\]: args = \[1\]: expected an object"),
        (
            of_event(2, args={"correlation": "q"}),
            r"\[2\]: args: correlation = 'q': expected a whole",
        ),
        (
            of_event(2, args={"correlation": 1.5}),
            r"\[2\]: args: correlation = 1\.5: expected a whole",
        ),
        (of_event(2, args={"stream": "a"}), r"\[2\]: args: stream = 'a': expected a whole"),
        (of_event(2, args={"device": [0]}), r"\[2\]: args: device = \[0\]: expected a number"),
        (of_event(3, args={"bytes": "many"}), r"\[3\]: args: bytes = 'many': expected a whole"),
        (of_event(3, args={"bytes": -4}), r"\[3\]: args: bytes = -4: expected a whole"),
        (of_event(3, args={}), r"\[3\]: args = {}: expected bytes in it"),
        (of_event(4, args=None), r"\[4\]: args = {}: expected bytes in it"),
        ({"traceEvents": [5]}, r"traceEvents\[0\] = 5: expected an object"),
        (of_event(2, dur="x")["traceEvents"], r"file\.json: \[2\]: dur = 'x'"),
    ],
)
def test_wrong_events_name_place_and_value(tmp_path, trace, said):
    path = tmp_path / "file.json"
    path.write_text(json.dumps(trace))
    with pytest.raises(ws.InputError, match=rf"{said}.*; export it again"):
        ws.validation.reference.read_timeline(path)


@pytest.mark.parametrize("value", ["-1", "", "-", "many"])
@pytest.mark.parametrize("line", [3, 4])
def test_copies_and_fills_need_a_size(tmp_path, value, line):
    path = tmp_path / "file.csv"
    path.write_text(NSYS.replace(",16.000," if line == 3 else ",0.001,", f",{value},"))
    with pytest.raises(
        ws.InputError, match=rf"file\.csv:{line}: Bytes \(MB\) = '{value}'.*export it"
    ):
        ws.validation.reference.read_timeline(path)


def test_copies_need_a_column_of_sizes(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text(NSYS.replace("Bytes (MB)", "Other"))
    with pytest.raises(ws.InputError, match=r"file\.csv:3: .*no column Bytes \(MB\)"):
        ws.validation.reference.read_timeline(path)


QUOTED = '"void add<float>(float *, int)"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # Rows after it would be part of the name, or of one that ends at the next quote.
        (NSYS.replace(",[CUDA memset]", ',"[CUDA memset]'), r"file\.csv:4: a quote is open"),
        (NSYS.replace(QUOTED, QUOTED[:-1]), r"file\.csv:5: a quote is open"),
        (
            NSYS.replace(",[CUDA memcpy DtoH]", ',"[CUDA memcpy DtoH]'),
            r"file\.csv:6: a quote is open",
        ),
        (NSYS.replace(QUOTED, ""), r"file\.csv:5: Name = ''"),
        (NSYS.replace(QUOTED, '" "'), r"file\.csv:5: Name = ''"),
        (
            NSYS.replace(HEADER, f"{HEADER}\n{HEADER}"),
            r"file\.csv:3: the header of line 2 is here again",
        ),
        (NSYS + NSYS[NSYS.index("\n") + 1 :], r"file\.csv:7: the header of line 2 is here again"),
    ],
)
def test_tables_that_would_lose_rows_are_refused(tmp_path, text, said):
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(ws.InputError, match=said):
        ws.validation.reference.read_timeline(path)
    if "Name" not in said:  # kernels alone have the same lines
        with pytest.raises(ws.InputError, match=said):
            ws.validation.reference.read(path)


def test_quotes_within_names_are_no_damage(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text(NSYS.replace(QUOTED, '"add(""a"", b)"'))
    found = ws.validation.reference.read_timeline(path)
    assert found["full_name"].tolist()[2] == 'add("a", b)'
    assert len(found) == 4


def test_directions_that_are_not_known_are_warned_of(tmp_path):
    other = "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = 99 WHERE copyKind = 1"
    of_database = database(tmp_path / "run.sqlite", other)
    of_csv, of_torch = tmp_path / "run.csv", tmp_path / "run.json"
    of_csv.write_text(NSYS.replace("memcpy Host-to-Device", "memcpy XtoY"))
    of_torch.write_text(json.dumps(of_event(3, name="Memcpy XtoY")))
    for path in (of_database, of_csv, of_torch):
        with pytest.warns(
            UserWarning, match=rf"{path.name}: 1 copy has no direction that is known"
        ):
            found = ws.validation.reference.read_timeline(path)
        assert found["direction"].tolist().count("HtoD") == 0
        assert found["operation"].tolist().count("copy") == (1 if path == of_torch else 2)


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
