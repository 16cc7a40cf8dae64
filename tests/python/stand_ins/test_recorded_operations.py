"""The table of what a host program does, beside what it does: host_programs/operations.cu."""

import os
import signal
import struct
import sys
import time
from pathlib import Path

import pytest

import compiler_cache
import warpstack as ws
from host_compiler import need_linking_nvcc
from warpstack.cli import main
from warpstack.cuda import host, operation_log
from warpstack.errors import TraceWarning
from warpstack.traces import operations

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcudart needs Linux"
)
MIB = 1 << 20


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")

    def compile_(source="operations", *options):
        nvcc = need_linking_nvcc()
        program = folder / "-".join((source, *options)).replace("/", "")
        if not program.exists():
            target = ("-gencode", "arch=compute_75,code=compute_75")
            text = HERE / "host_programs" / f"{source}.cu"
            compiler_cache.nvcc([nvcc, "-cudart", "shared", *target, *options, "-o", program, text])
        return str(program)

    return compile_


@pytest.fixture
def run(build, tmp_path, capfd):
    """Return a function that traces a scenario: its application and what it prints."""

    def call(scenario, *options, source="operations", **settings):
        result = host.trace_program(
            [build(source, *options), scenario], tmp_path / "out", **settings
        )
        out, err = capfd.readouterr()
        assert (result.status, result.errors) == (0, ()), out + err
        app = ws.load(tmp_path / "out")
        operations.check(app._operations, len(app), "table")
        assert result.operations == operations.summary(app._operations)
        return app, out.splitlines()

    return call


def rows(app, *columns, kinds=()):
    table = app.operations
    if kinds:
        table = table[table["operation"].isin(kinds)]
    return [tuple(row) for row in table[list(columns)].values.tolist()]


def test_streams_and_events(run):
    app, out = run("streams")
    assert out == ["1"]
    assert rows(app, "operation", "api", "stream", "kernel", "event", "asynchronous") == [
        ("stream_create", "cudaStreamCreate", 1, -1, -1, True),
        ("stream_create", "cudaStreamCreateWithFlags", 2, -1, -1, True),
        ("stream_create", "cudaStreamCreateWithPriority", 3, -1, -1, True),
        ("allocate", "cudaMalloc", -1, -1, -1, False),
        ("allocate", "cudaHostAlloc", -1, -1, -1, False),
        ("copy", "cudaMemcpyAsync", 1, -1, -1, True),
        ("kernel", "cudaLaunchKernel", 1, 0, -1, True),
        ("event_record", "cudaEventRecord", 1, -1, 0, True),
        ("event_wait", "cudaStreamWaitEvent", 3, -1, 0, True),
        ("kernel", "cudaLaunchKernel", 3, 1, -1, True),
        ("host_function", "cudaLaunchHostFunc", 3, -1, -1, True),
        ("memset", "cudaMemsetAsync", 2, -1, -1, True),
        ("event_record", "cudaEventRecord", 3, -1, 1, True),
        ("event_synchronize", "cudaEventSynchronize", -1, -1, 1, False),
        ("event_synchronize", "cudaEventQuery", -1, -1, 0, False),
        ("stream_synchronize", "cudaStreamSynchronize", 1, -1, -1, False),
        ("kernel", "cudaLaunchKernel", 0, 2, -1, True),
        ("device_synchronize", "cudaDeviceSynchronize", -1, -1, -1, False),
        ("stream_destroy", "cudaStreamDestroy", 3, -1, -1, True),
        ("free", "cudaFree", -1, -1, -1, False),
        ("free", "cudaFreeHost", -1, -1, -1, False),
    ]
    table = app.operations
    assert table["name"][[6, 9, 16]].tolist() == ["first", "second", "second"]
    in_streams = table[table["stream"] >= 0]
    assert dict(zip(in_streams["stream"], in_streams["blocking"], strict=True)) == {
        0: True,
        1: True,
        2: False,
        3: True,
    }
    assert dict(zip(in_streams["stream"], in_streams["priority"], strict=True))[3] == -1
    assert {(thread, process) for thread, process in rows(app, "thread", "process")} == {(0, 0)}
    # It slept 20 ms between two calls, and most other times are short.
    slept = table["host_ns"].tolist()[-2]
    assert 20_000_000 <= slept < 1_000_000_000
    assert table["host_ns"][0] == 0
    assert (table["host_ns"] > 0).sum() > 15


def test_the_time_of_the_host_can_be_left_out(run):
    app, _ = run("streams", host_time=False)
    assert app.operations["host_ns"].tolist() == [0] * 21


@pytest.mark.parametrize(
    ("asked", "connections"), [(None, 8), ("1", 1), ("32", 32), ("33", 8), ("many", 8)]
)
def test_connections_are_those_of_the_environment(run, monkeypatch, asked, connections):
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    if asked is not None:
        monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", asked)
    app, _ = run("priorities")
    assert set(app.operations["connections"]) == {connections}


def test_a_program_can_say_how_many_connections_it_has(run, monkeypatch):
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4")
    app, _ = run("connections")
    # It says so before its first row, and changes its mind when that is too late.
    assert app.operations["connections"].tolist() == [16] * 3


def test_host_functions_take_what_they_took_here(run):
    app, _ = run("functions")
    table = app.operations
    is_function = table["operation"] == "host_function"
    assert table["api"][is_function].tolist() == [
        "cudaLaunchHostFunc",
        "cudaStreamAddCallback",
        "cudaGraphLaunch",
    ]
    took = table["work_ns"][is_function]
    assert ((took >= 20_000_000) & (took < 1_000_000_000)).all()
    assert (table["work_ns"][~is_function] == 0).all()
    # They are no time of the thread that calls.
    assert (table["host_ns"] < 20_000_000).all()
    line = ws.timeline(app, "a100")
    times = (line.table["end_us"] - line.table["start_us"])[is_function]
    assert times.tolist() == pytest.approx((took / 1e3).tolist())
    assert line.time_us >= took.sum() / 1e3


def test_what_host_functions_took_can_be_left_out(run):
    app, _ = run("functions", host_time=False)
    assert app.operations["work_ns"].tolist() == [0] * len(app.operations)


def test_priorities_are_those_of_gpus(run):
    app, out = run("priorities")
    assert out == ["0 -5", "-5", "-5", "-2", "0", "0"]
    made = app.operations[app.operations["operation"] == "stream_create"]
    assert made["priority"].tolist() == [-5, -5, -2, 0, 0]


def test_threads_that_were_made_together_begin_together(run):
    app, _ = run("together")
    table = app.operations
    assert table["thread"].tolist() == [0, 1, 1, 2, 2, 3, 3, 4]
    begins = table["begins_after"].tolist()
    assert begins == [(), (0,), (), (0,), (), (0,), (), (6,)]


def test_copies(run):
    app, _ = run("copies")
    columns = ("api", "direction", "bytes", "pinned", "asynchronous")
    assert rows(app, *columns, kinds=("copy",)) == [
        ("cudaMemcpy", "HtoD", MIB, False, False),
        ("cudaMemcpy", "HtoD", 1024, False, True),  # at most 64 KiB are staged
        ("cudaMemcpy", "DtoH", MIB, False, False),
        ("cudaMemcpy", "HtoD", MIB, True, False),
        ("cudaMemcpyAsync", "DtoH", MIB, True, True),
        ("cudaMemcpyAsync", "DtoH", MIB, False, False),
        ("cudaMemcpy", "DtoD", MIB, False, True),
        ("cudaMemcpy", "HtoH", 64, False, False),
        ("cudaMemcpy2D", "HtoD", 2560, False, True),
        ("cudaMemcpy3DAsync", "DtoD", 64 * 4 * 3, False, True),
        ("cudaMemcpyPeer", "DtoD", 4096, False, True),
        ("cudaMemcpyToSymbol", "HtoD", 128, False, True),
        ("cudaMemPrefetchAsync", "HtoD", MIB, False, True),
        ("cudaMemPrefetchAsync", "DtoH", 4096, False, True),
    ]
    columns = ("api", "bytes", "pinned", "asynchronous", "stream")
    assert rows(app, *columns, kinds=("allocate", "free", "memset")) == [
        ("cudaMalloc", MIB, False, False, -1),
        ("cudaMalloc", MIB, False, False, -1),
        ("cudaHostRegister", MIB, True, False, -1),
        ("cudaMemset2D", 700, False, True, 0),
        ("cudaMallocAsync", 4096, False, True, 0),
        ("cudaFreeAsync", 4096, False, True, 0),
        ("cudaMallocManaged", MIB, False, False, -1),
        ("cudaHostUnregister", MIB, True, False, -1),
        ("cudaFree", MIB, False, False, -1),
    ]


def test_graphs(run):
    app, out = run("graphs")
    assert out == ["2"]  # nothing ran when it was captured
    table = app.operations
    begin = table.index[table["operation"] == "graph_launch"].tolist()
    assert len(begin) == 2
    first, second = begin
    columns = ("operation", "api", "stream", "graph", "kernel")
    assert rows(app, *columns)[first:] == [
        ("graph_launch", "cudaGraphLaunch", 2, 0, -1),
        ("copy", "cudaGraphLaunch", 2, 0, -1),
        ("kernel", "cudaGraphLaunch", 2, 0, 0),
        ("kernel", "cudaGraphLaunch", 2, 0, 1),
        ("host_function", "cudaGraphLaunch", 2, 0, -1),
        ("graph_launch", "cudaGraphLaunch", 1, 1, -1),
        ("copy", "cudaGraphLaunch", 1, 1, -1),
        ("kernel", "cudaGraphLaunch", 1, 1, 2),
        ("kernel", "cudaGraphLaunch", 1, 1, 3),
        ("host_function", "cudaGraphLaunch", 1, 1, -1),
        ("memset", "cudaGraphLaunch", 1, 1, -1),
        ("device_synchronize", "cudaDeviceSynchronize", -1, -1, -1),
    ]
    after = table["after"].tolist()
    # The copy, both kernels after it, the function after both; a node without work passes on.
    expected = [(), (), (1,), (1,), (2, 3)]
    assert [tuple(r - first for r in row) for row in after[first:second]] == expected
    assert [tuple(r - second for r in row) for row in after[second:-1]] == [*expected, (4,)]
    assert after[-1] == ()
    copied = table.loc[first + 1]
    assert (copied["direction"], copied["pinned"], copied["asynchronous"]) == ("HtoD", True, True)


def test_threads_and_their_default_streams(run):
    app, _ = run("threads")
    assert rows(app, "operation", "thread", "stream") == [
        ("allocate", 0, -1),
        ("kernel", 1, 0),
        ("stream_synchronize", 1, 0),
        ("copy", 1, 0),
        ("kernel", 1, 1),
        ("kernel", 2, 0),
        ("stream_synchronize", 2, 0),
        ("copy", 2, 0),
        ("kernel", 2, 2),
        ("kernel", 0, 0),
    ]
    assert app.operations["blocking"].tolist() == [False] + [True] * 9
    # Each thread was made after the row before its first one, and the last row comes after their ends.
    begins = {row: after for row, after in enumerate(app.operations["begins_after"]) if after}
    assert begins == {1: (0,), 5: (4,), 9: (4, 8)}


def test_waits_for_threads_that_are_in_calls_are_no_time_of_the_host(run):
    app, out = run("waits")
    (joined_us,) = map(int, out)
    table = app.operations
    of_main = table[(table["thread"] == 0) & (table["operation"] == "memset")]
    _, waited, slept, computed = (of_main["host_ns"] / 1e3).tolist()
    assert joined_us > 50_000
    assert waited < joined_us / 4
    assert slept >= 20_000
    assert computed >= 29_000
    line = ws.timeline(app, "a100")
    assert line.time_us < (slept + computed) + 50_000


def test_a_program_without_kernels(build, tmp_path, capfd):
    out = tmp_path / "out"
    assert main(["trace", "-o", str(out), "--", build(), "copies_only"]) == 0
    err = capfd.readouterr().err
    assert (
        f"{out}: the program launched no kernel; warpstack timeline reads what else it did" in err
    )
    assert "4 operations: 2 copies (2.0 MiB), 1 memset" in err
    app = ws.load(out)
    assert (len(app), len(app.operations)) == (0, 4)
    ws.save(app, tmp_path / "again")
    assert ws.load(tmp_path / "again").operations.equals(app.operations)
    assert len(app.info()) == 0
    line = ws.timeline(app, "a100")
    assert line.table["end_us"].max() > 0
    assert line.totals["kernels_us"] == 0
    assert main(["timeline", str(out), "--gpu", "a100"]) == 0
    assert main(["info", str(out)]) == 0
    capfd.readouterr()
    assert main(["timeline", "--gpu", "a100", "--", build(), "copies_only"]) == 0
    capfd.readouterr()
    for command in ("predict", "simulate"):
        assert main([command, str(out), "--gpu", "a100"]) == 2
        assert (
            f"{app.name}: the program launched no kernel, so that there is nothing to {command}; warpstack "
            "timeline has its copies and calls"
        ) in capfd.readouterr().err


def test_kernels_that_wait_for_a_clock_take_as_long(run):
    app, _ = run("spins")
    line = ws.timeline(app, "a100")
    kernels = line.table[line.table["operation"] == "kernel"]
    wait_us = 1_000_000 / ws.gpu("a100").clock_ghz / 1e3
    times = kernels["end_us"] - kernels["start_us"]
    assert (times > 0.95 * wait_us).all()
    assert (times < 1.05 * wait_us).all()
    # They run at the same time.
    assert line.time_us < 1.2 * wait_us
    with pytest.warns(TraceWarning, match="clock_block .* only watches a clock"):
        ws.predict(app, "a100")


@pytest.mark.slow
def test_programs_with_a_default_stream_per_thread(run):
    app, _ = run("threads", "--default-stream=per-thread")
    assert rows(app, "operation", "thread", "stream") == [
        ("allocate", 0, -1),
        ("kernel", 1, 1),
        ("stream_synchronize", 1, 1),
        ("copy", 1, 1),
        ("kernel", 1, 1),
        ("kernel", 2, 2),
        ("stream_synchronize", 2, 2),
        ("copy", 2, 2),
        ("kernel", 2, 2),
        ("kernel", 0, 0),  # cudaStreamLegacy
    ]
    assert [kernel._core.header["stream"] for kernel in app] == [1, 1, 2, 2, 0]


def test_processes(run):
    app, _ = run("processes")
    assert rows(app, "operation", "process", "thread", "kernel") == [
        ("allocate", 0, 0, -1),
        ("kernel", 0, 0, 0),
        ("allocate", 1, 0, -1),
        ("kernel", 1, 0, 1),
    ]


def test_ranges(run):
    app, _ = run("ranges")
    assert rows(app, "operation", "name", "api") == [
        ("range_push", "outer", "nvtxRangePushA"),
        ("range_push", "größer", "nvtxRangePushW"),
        ("allocate", "cudaMalloc", "cudaMalloc"),
        ("range_pop", "nvtxRangePop", "nvtxRangePop"),
        ("range_push", "step\n1", "nvtxDomainRangePushEx"),
        ("kernel", "first", "cudaLaunchKernel"),
        ("range_pop", "nvtxDomainRangePop", "nvtxDomainRangePop"),
        ("range_pop", "nvtxRangePop", "nvtxRangePop"),
    ]


@pytest.mark.slow
def test_kernels_that_launch_kernels(run):
    app, _ = run("streams", "-rdc=true", "-lcudadevrt", source="nested")
    table = app.operations
    kernels = table[table["operation"] == "kernel"]
    assert kernels["kernel"].tolist() == list(range(len(app)))
    row_of = {k.launch_id: row for k, row in zip(app, kernels.index, strict=True)}
    expected = [-1 if k.parent is None else row_of[k.parent] for k in app]
    assert kernels["parent"].tolist() == expected
    assert len(set(expected)) > 2


def test_launches_that_are_not_traced_stay_in_the_table(run):
    app, _ = run("streams", kernel="second", limit_launches=1)
    kernels = rows(app, "name", "kernel", kinds=("kernel",))
    assert kernels == [("first", -1), ("second", 0), ("second", -1)]


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_a_program_without_nvcc(version, tmp_path):
    command = [sys.executable, str(HERE / "host_client.py"), f"libcudart.so.{version}", "graph"]
    host.trace_program(command, tmp_path / "out", host_time=False)
    app = ws.load(tmp_path / "out")
    operations.check(app._operations, len(app), "table")
    kernels = app.operations[app.operations["operation"] == "kernel"]
    assert kernels["kernel"].tolist() == [0, 1, 2, 3]
    assert app.operations["host_ns"].tolist() == [0] * len(app.operations)


def test_the_functions_of_the_driver(tmp_path):
    command = [sys.executable, str(HERE / "driver_client.py"), "axpy"]
    host.trace_program(command, tmp_path / "out")
    table = ws.load(tmp_path / "out").operations
    assert all(api.startswith("cu") and not api.startswith("cuda") for api in table["api"])
    assert "cuLaunchKernel" in table["api"].tolist()


def test_the_command_counts_them(build, tmp_path, capfd):
    program = build()
    out = tmp_path / "out"
    assert main(["trace", "--no-host-time", "-o", str(out), "--", program, "streams"]) == 0
    err = capfd.readouterr().err
    assert (
        "21 operations: 3 launches, 1 copy (1.0 MiB), 1 memset, 2 events recorded, 4 waits of the host, "
        "4 streams" in err
    )
    again = tmp_path / "again"
    assert main(["convert", str(out), str(again)]) == 0
    before, after = (ws.load(place).operations for place in (out, again))
    assert before.equals(after)


# --- the log ------------------------------------------------------------------------------------


def logged(folder, rows_, names):
    (folder / "operations").write_bytes(b"".join(rows_))
    (folder / "operation-names").write_bytes(names)


def log_row(number, kind=0, process=5, **changes):
    values = dict.fromkeys(operation_log._ROW.names, 0) | {"stream": -1, "event": -1, "graph": -1}
    values |= {"kind": kind, "process": process, "number": number} | changes
    return struct.pack(
        "=8BiiqqqqqqQQQQQQQ",
        *(values[name] for name in operation_log._ROW.names),
    )


def name_record(process, number, text):
    return struct.pack("=qQQ", process, number, len(text)) + text


def test_a_log_that_ends_within_a_row_is_read_up_to_it(tmp_path):
    names = name_record(5, 0, b"_Z4workPf") + name_record(5, 1, b"\xff\ncudaMalloc")
    written = [log_row(0, launch=7, graph=3), log_row(1, kind=8, name=1, api=1)]
    written.append(log_row(1, kind=255, bytes=0))
    logged(tmp_path, written, names)
    whole = operation_log.read(tmp_path, [7])
    assert whole["operation"] == ["kernel", "allocate"]
    assert whole["name"] == ["work", "\ufffd\ncudaMalloc"]
    assert whole["kernel"].tolist() == [0, -1]
    assert whole["graph"].tolist() == [0, -1]
    assert whole["after"] == [(), (0,)]
    data = (tmp_path / "operations").read_bytes()
    for end in range(len(data)):
        (tmp_path / "operations").write_bytes(data[:end])
        found = operation_log.read(tmp_path, [7])
        assert (0 if found is None else operations.count(found)) == min(end // 120, 2)
    for end in range(len(names)):
        logged(tmp_path, written, names[:end])
        assert len(operation_log.read(tmp_path, [7])["name"]) == 2
    assert operation_log.read(tmp_path / "nowhere", []) is None


def test_threads_begin_after_rows_of_their_process_or_of_the_one_that_forked(tmp_path):
    names = name_record(5, 0, b"cudaMalloc") + name_record(6, 0, b"cudaMalloc")
    begin = {"kind": 254}
    written = [
        log_row(0, kind=8),
        log_row(1, kind=8, thread=1),
        log_row(1, parent=5, bytes=0, **begin),
        log_row(0, kind=8, process=6),
        log_row(0, process=6, parent=5, bytes=1, **begin),
        log_row(1, kind=8, process=6, thread=1),
        log_row(1, process=6, parent=6, bytes=0, **begin),
        log_row(2, kind=8, process=6, thread=2),
        log_row(2, process=6, parent=9, bytes=0, **begin),  # of a process that wrote nothing
    ]
    logged(tmp_path, written, names)
    found = operation_log.read(tmp_path, [])
    assert found["begins_after"] == [(), (0,), (1,), (2,), ()]
    operations.check(found, 0, "table")


def test_what_work_took_belongs_to_the_row_that_it_names(tmp_path):
    names = name_record(5, 0, b"cudaLaunchHostFunc") + name_record(6, 0, b"cudaLaunchHostFunc")
    written = [
        log_row(0, kind=11),
        log_row(0, kind=11, process=6),
        log_row(0, kind=253, bytes=125),
        log_row(1, kind=11),
        log_row(0, kind=253, process=6, bytes=2**64 - 1),
        log_row(7, kind=253, bytes=9),  # of a row that was not written
    ]
    logged(tmp_path, written, names)
    found = operation_log.read(tmp_path, [])
    assert found["work_ns"].tolist() == [125, 2**63 - 1, 0]
    operations.check(found, 0, "table")


def test_a_program_that_is_killed_leaves_its_operations(tmp_path):
    script = (
        "import ctypes, os, signal\n"
        "cuda = ctypes.CDLL('libcudart.so.12')\n"
        "pointer = ctypes.c_void_p()\n"
        "assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(64)) == 0\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with host._spool() as spool:
        environment = host._environment(spool)
        status = os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", script], environment)
        assert status == -signal.SIGKILL
        found = operation_log.read(spool, [])
    assert found["operation"] == ["allocate"]
    assert found["bytes"].tolist() == [64]


def test_the_log_takes_little_time(tmp_path):
    """A row takes about a microsecond; 50 would be felt in programs with a million calls."""
    script = (
        "import ctypes, time\n"
        "cuda = ctypes.CDLL('libcudart.so.12')\n"
        "begin = time.perf_counter()\n"
        "for i in range(20000): cuda.cudaDeviceSynchronize()\n"
        "print((time.perf_counter() - begin) / 20000 * 1e6, 'us each')\n"
    )
    with host._spool() as spool:
        environment = host._environment(spool)
        begin = time.perf_counter()
        os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", script], environment)
        assert time.perf_counter() - begin < 10
        found = operation_log.read(spool, [])
    assert operations.count(found) == 20000
    assert set(found["operation"]) == {"device_synchronize"}
