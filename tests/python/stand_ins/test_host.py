"""CUDA host programs on the stand-in for libcudart: their results, their traces, their mistakes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

import compiler_cache
import warpstack as ws
from effort import rounds
from strategies import kernels
from warpstack import _core
from warpstack._util.trace_budget import default_budget
from warpstack.cli import main
from warpstack.cuda import host
from warpstack.cuda import host as cuda_host

HERE = Path(__file__).parent
CLIENT = HERE / "host_client.py"
LIBRARIES = Path(_core.__file__).parent / "lib"

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for libcudart needs Linux"
)


def client(scenario, version="12"):
    return [sys.executable, str(CLIENT), f"libcudart.so.{version}", scenario]


@pytest.fixture(scope="session")
def nvcc():
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if found is None:
        pytest.skip("nvcc is not installed")
    return found


@pytest.fixture(scope="session")
def build(nvcc, tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")

    def compile_(source, *options, name=None):
        program = folder / (name or source)
        if not program.exists():
            text = HERE / "host_programs" / f"{source}.cu"
            command = [nvcc, "-cudart", "shared", "-lineinfo", *options, "-o", program, text]
            compiler_cache.nvcc(command)
        return str(program)

    return compile_


PTX_ONLY = ("-gencode", "arch=compute_75,code=compute_75")


@pytest.fixture
def run(build, tmp_path, capfd):
    """Return a function that traces a scenario of basic.cu: the run, its traces, what it prints."""

    def call(scenario, **options):
        command = [build("basic", *PTX_ONLY), scenario]
        result = host.trace_program(command, tmp_path / "out", **options)
        out, err = capfd.readouterr()
        return result, ws.load(tmp_path / "out"), out.splitlines(), err

    return call


# --- without nvcc -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_a_program_of_every_abi(version, tmp_path, capfd):
    result = host.trace_program(client("axpy", version), tmp_path / "out")
    # y = 3 x + 1, twice: 6 x + 1
    assert capfd.readouterr().out.splitlines() == [
        "cudaSuccess",
        "cudaSuccess",
        "cudaSuccess [1.0, 7.0, 1195.0] 5",
    ]
    assert (result.launches, result.traced, result.status, result.errors) == (2, 2, 0, ())
    assert not result.problem()
    app = ws.load(tmp_path / "out")
    assert [k.launch_id for k in app] == [1, 2]
    first, second = app
    assert first.name == "axpy"
    assert (first.grid, first.block, first.source) == ((2, 1, 1), (128, 1, 1), "ptx")
    assert first.num_warps == 8
    assert first.num_instructions == second.num_instructions
    assert result.instructions == 2 * first.num_instructions
    # 200 floats of 4 bytes are 25 sectors; x and y are read, y is written; launches is one more
    # for both.
    touched = [
        set(kernel.warp(block, warp)["sector"].tolist())
        for kernel in app
        for block in range(2)
        for warp in range(4)
    ]
    assert len(set.union(*touched)) == 25 + 25 + 1


@pytest.mark.parametrize(("given", "missing"), [("4", 172), ("auto", 0)])
def test_a_sample_of_the_blocks(given, missing, tmp_path, capfd):
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert main(["trace", "-o", str(whole), "--", *client("many")]) == 0
    assert main(["trace", "-o", str(part), "--sample-blocks", given, "--", *client("many")]) == 0
    assert capfd.readouterr().out.splitlines() == ["cudaSuccess", "cudaSuccess", "True"] * 2
    app = ws.load(part)
    assert [kernel.num_missing_blocks for kernel in app] == [missing, 0]
    for traced, every in zip(app, ws.load(whole), strict=True):
        for position, (number, _) in enumerate(traced.blocks()):
            columns, expected = traced.warp(position, 0), every.warp(number, 0)
            assert all(np.array_equal(columns[name], expected[name]) for name in columns)


@pytest.mark.usefixtures("nvcc")
def test_blocks_that_are_not_in_the_sample_do_not_run(tmp_path, capfd):
    source = HERE / "host_programs" / "sampled.cu"
    trace = ["trace", "-o", str(tmp_path / "out"), "--skip-others", "--overwrite"]
    assert main([*trace, "--sample-blocks", "16", str(source)]) == 0
    out, _ = capfd.readouterr()
    # The chain, whose blocks wait for each other, has all of its blocks.
    assert out.splitlines() == ["no error 300"]
    kernels = {kernel.short_name: kernel for kernel in ws.load(tmp_path / "out")}
    assert [k.num_missing_blocks for k in kernels.values()] == [400 - 128, 132 - 9, 300 - 128]
    tiles = sum(
        int(row.executions)
        for row in kernels["queue"].instructions.itertuples()
        if row.opcode.startswith("st.global")
    )
    assert tiles == pytest.approx(2000 * 9 / 132, abs=1)
    assert main([*trace, str(source)]) == 2
    assert "--skip-others leaves out blocks that --sample-blocks K" in capfd.readouterr().err


@pytest.mark.usefixtures("nvcc")
def test_a_source_with_clusters(tmp_path, capfd):
    source = tmp_path / "pairs.cu"
    source.write_text(
        "#include <cstdio>\n"
        "__global__ void __cluster_dims__(2, 1, 1) pairs(int* x) { x[blockIdx.x] = 1; }\n"
        "int main() { int* x; cudaMalloc(&x, 64); pairs<<<4, 32>>>(x);\n"
        'printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize())); }\n'
    )
    assert main(["trace", "-o", str(tmp_path / "out"), str(source)]) == 0
    assert capfd.readouterr().out.splitlines() == ["no error"]
    assert next(iter(ws.load(tmp_path / "out"))).cluster == (2, 1, 1)


def test_a_kernel_that_does_nothing():
    # CUB launches one to learn which PTX a program has.
    text = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n"
    trace = ws.cuda.compile(text).kernel("nothing").launch(2, 64)
    assert trace.num_instructions == 4  # the exit of each warp


def test_traces_are_the_same_on_every_run(tmp_path):
    digests = []
    for i in range(2):
        host.trace_program(client("axpy"), tmp_path / str(i))
        digests.append([k.digest for k in ws.load(tmp_path / str(i))])
    assert digests[0] == digests[1]


@pytest.mark.parametrize("version", ["11.0", "12", "13"])
def test_device_properties_lie_where_each_version_has_them(version, tmp_path):
    environment = dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES))
    environment["WARPSTACK_CUDART_DEVICE"] = "num_sms=17"
    command = client("properties", version)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [version.partition(".")[0], "17", str(227 * 1024), "True", "True"]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ("machine_code", r"no PTX but machine code for sm_80.*-gencode arch=compute_75"),
        ("damaged", "fat binary is damaged"),
        ("syntax_error", r"PTX of its fat binary 1\):\d+: "),
    ],
)
def test_programs_that_cannot_be_loaded(scenario, message, tmp_path, capfd):
    with pytest.raises(ws.InputError, match=message):
        host.trace_program(client(scenario), tmp_path / "out")
    out, err = capfd.readouterr()
    assert out.splitlines() == ["cudaErrorNoKernelImageForDevice"]
    assert err.count("warpstack: error:") == 1
    assert not list(tmp_path.iterdir())


def test_programs_that_are_not_cuda(tmp_path):
    with pytest.raises(ws.InputError, match=r"does not load libcudart.*-cudart shared"):
        host.trace_program([sys.executable, "-c", "pass"], tmp_path / "out")
    with pytest.raises(ws.InputError, match="cannot be started: No such file"):
        host.trace_program([str(tmp_path / "absent")], tmp_path / "out")
    with pytest.raises(ws.InputError, match="no program"):
        host.trace_program([], tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_limits_and_choices(tmp_path, capfd):
    result = host.trace_program(client("axpy"), tmp_path / "one", limit_launches=1)
    assert (result.launches, result.traced) == (2, 1)
    # The second launch ran all the same.
    assert "[1.0, 7.0, 1195.0] 5" in capfd.readouterr().out
    assert [k.launch_id for k in ws.load(tmp_path / "one")] == [1]
    with pytest.raises(ws.InputError, match="none of 2 launches that matches other"):
        host.trace_program(client("axpy"), tmp_path / "none", kernel="other")
    host.trace_program(client("axpy"), tmp_path / "some", kernel="^a.p(x|y)$")
    assert len(ws.load(tmp_path / "some")) == 2
    with pytest.raises(ws.InputError, match=r"kernel pattern \(: .*grep -E"):
        host.trace_program(client("axpy"), tmp_path / "bad", kernel="(")
    with pytest.raises(ws.InputError, match="limit_launches = 0"):
        host.trace_program(client("axpy"), tmp_path / "bad", limit_launches=0)
    with pytest.raises(ws.InputError, match="device memory of 0 MiB"):
        host.trace_program(client("axpy"), tmp_path / "bad", device_memory_mib=0)


def test_the_program_ends_at_the_limit(tmp_path, capfd):
    result = host.trace_program(
        client("axpy"), tmp_path / "one", limit_launches=1, stop_at_limit=True
    )
    assert (result.launches, result.traced, result.status, result.errors) == (1, 1, 0, ())
    assert "1195.0" not in capfd.readouterr().out  # it has not come to its results
    assert len(ws.load(tmp_path / "one")) == 1
    with pytest.raises(ws.InputError, match="stop_at_limit needs a limit: give limit_launches"):
        host.trace_program(client("axpy"), tmp_path / "two", stop_at_limit=True)


def test_several_processes_share_the_numbering(tmp_path):
    words = " ".join(client("axpy"))
    result = host.trace_program(["sh", "-c", f"{words}; {words}; exit 3"], tmp_path / "out")
    assert (result.launches, result.traced, result.status) == (4, 4, 3)
    assert result.problem() == "the program exited with status 3"
    assert [k.launch_id for k in ws.load(tmp_path / "out")] == [1, 2, 3, 4]


def test_command_line(tmp_path, capfd):
    out = tmp_path / "out"
    assert main(["trace", "-o", str(out), "--", *client("axpy")]) == 0
    captured = capfd.readouterr()
    assert captured.out.splitlines()[0] == "cudaSuccess"  # nothing but what the program prints
    assert "2 of 2 launches" in captured.err
    assert main(["trace", "-o", str(out), "--", *client("axpy")]) == 2
    assert "exists already" in capfd.readouterr().err
    assert main(["trace", "-o", str(out), "--overwrite", "--", *client("axpy")]) == 0
    assert main(["trace", "-o", str(tmp_path / "no")]) == 2
    assert "either a program" in capfd.readouterr().err
    words = " ".join(client("axpy"))
    assert main(["trace", "-o", str(tmp_path / "x"), "--", "sh", "-c", f"{words}; kill -9 $$"]) == 2
    assert "the program was ended by SIGKILL; " in capfd.readouterr().err
    assert len(ws.load(tmp_path / "x")) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_leaves_what_was_traced(number, tmp_path):
    command = [sys.executable, "-m", "warpstack", "trace", "-o", str(tmp_path / "out"), "--"]
    spool = tmp_path / "temporary"
    spool.mkdir()
    process = subprocess.Popen(
        [*command, *client("wait")],
        env=dict(os.environ, TMPDIR=str(spool)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A job in the background of a shell script, as tests may be, inherits that SIGINT is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while process.stdout.readline().strip() != b"ready":
        pass
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as Ctrl-C does: to the program, too
    else:
        process.send_signal(number)
    _, err = process.communicate(timeout=50)
    if number == signal.SIGINT:
        assert process.returncode in (130, -signal.SIGINT)
        assert b"warpstack: error: interrupted" in err
        assert b"out: the traces of 2 launches are kept" in err
    else:
        assert process.returncode == -signal.SIGTERM
    assert [k.launch_id for k in ws.load(tmp_path / "out")] == [1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "temporary"]
    assert not list(spool.iterdir())


def test_a_timeout_keeps_what_was_traced(tmp_path):
    result = host.trace_program(client("wait"), tmp_path / "out", timeout_s=5)
    assert result.status == -signal.SIGTERM
    assert result.problem() == "the timeout of 5 s is over; the program was ended by SIGTERM"
    assert len(ws.load(tmp_path / "out")) == 2
    with pytest.raises(ws.InputError, match="timeout_s = 0: expected a number of seconds above 0"):
        host.trace_program(client("axpy"), tmp_path / "no", timeout_s=0)


def test_a_long_launch_is_told_of(tmp_path, capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr(cuda_host.time, "monotonic", lambda: now)
    shown = []
    bar = SimpleNamespace(set_description=shown.append)
    launch = cuda_host._LongLaunch(tmp_path, bar, tell=True)
    launch.look()  # nothing takes long
    for seconds, done in ((0, 500), (5, 1000), (10, 1500), (15, 2000), (20, 2500)):
        now = 100.0 + seconds
        (tmp_path / "progress").write_text(f"7 {done} 5500 _Z3addPi")
        launch.look()
    assert shown[0] == "launch 7, add: 500 of 5,500 blocks"
    # 500 blocks in 5 s, of which 4,500 are left
    assert shown[1] == "launch 7, add: 1,000 of 5,500 blocks, about 45 s left"
    # After 10 s and after twice that.
    assert capsys.readouterr().err.splitlines() == [
        "warpstack: note: launch 7 (add) goes on: 1,500 of 5,500 blocks, about 40 s left",
        "warpstack: note: launch 7 (add) goes on: 2,500 of 5,500 blocks, about 30 s left",
    ]


def test_step_limit(tmp_path, capfd):
    with pytest.raises(ws.InputError, match="3 warp instructions; raise step_limit"):
        host.trace_program(client("axpy"), tmp_path / "out", step_limit=3)
    assert capfd.readouterr().out == "cudaErrorLaunchTimeout\n"
    with pytest.raises(ws.InputError, match="step_limit = 0"):
        host.trace_program(client("axpy"), tmp_path / "out", step_limit=0)


@pytest.mark.slow
@settings(max_examples=rounds(25))
@given(kernels())
def test_trace_files_keep_everything(tmp_path_factory, kernel):
    path = str(tmp_path_factory.mktemp("file") / "kernel")
    _core.write_trace_file(kernel._core, path)
    again = ws.KernelTrace(_core.read_trace_file(path, default_budget()))
    assert again.digest == kernel.digest
    assert again.instructions.equals(kernel.instructions)
    assert again._core.header == kernel._core.header
    for block, (_, warps) in enumerate(kernel.blocks()):
        for w in range(len(warps)):
            for name, values in kernel.warp(block, w).items():
                np.testing.assert_array_equal(values, again.warp(block, w)[name])


def test_damaged_trace_files(tmp_path):
    path = tmp_path / "kernel"
    _core.write_trace_file(ws.patterns.gather(blocks=2)._core, str(path))
    path.write_bytes(path.read_bytes()[:-16])
    with pytest.raises(ws.InputError, match="the file is cut; the trace file is damaged"):
        _core.read_trace_file(str(path), default_budget())
    with pytest.raises(ws.InputError, match="cannot be read"):
        _core.read_trace_file(str(tmp_path / "absent"), default_budget())


# --- with nvcc ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_vector_add(run):
    result, app, out, _ = run("vector_add")
    assert out == ["wrong 0"]
    assert (result.launches, result.traced, result.status, result.errors) == (1, 1, 0, ())
    (kernel,) = app
    assert kernel.short_name == "add"
    assert (kernel.grid, kernel.block) == ((8, 1, 1), (128, 1, 1))
    assert kernel.num_missing_blocks == 0
    # Per warp one load of a, one of b and one store of c, each of 128 bytes: 4 sectors. Warp 31
    # has 8 threads within the 1000 elements: one sector each.
    assert kernel._core.num_sectors == 3 * (31 * 4 + 1)


def test_two_launches(run):
    _, app, out, _ = run("two_launches")
    assert out == ["9 3"]
    assert [k.short_name for k in app] == ["scale", "add", "scale"]
    assert [k.launch_id for k in app] == [1, 2, 3]
    assert [k.num_warps for k in app] == [8, 8, 2]


def test_choice_by_readable_name(run):
    result, app, out, _ = run("two_launches", kernel=r"scale<double>\(double\*")
    assert out == ["9 3"]
    assert (result.launches, [k.launch_id for k in app]) == (3, [1, 3])


def test_symbols(run):
    assert run("symbols")[2] == ["57 37 32 7"]


def test_streams_and_events(run):
    _, app, out, err = run("streams")
    assert out == ["15 1 1", "cudaErrorInvalidResourceHandle"]
    assert "cudaStreamSynchronize: there is no such stream" in err
    assert [k._core.header["stream"] for k in app] == [1, 2]


def test_managed_and_mapped_memory(run):
    assert run("managed")[2] == ["4958", "5058", "1 100", "1 1 1"]


def test_device_printf(run):
    lines = [f"thread {i} of hello: 2.50" for i in range(2)]
    assert run("prints")[2] == ["before", *lines, "after"]


def test_the_timer_goes_on_from_launch_to_launch(run):
    assert run("timer")[2] == ["1 1"]


def test_fault(run, tmp_path):
    result, app, out, err = run("fault")
    assert out == ["cudaErrorIllegalAddress"] * 3
    assert len(app) == 1
    assert (result.launches, result.traced, result.status) == (2, 1, 0)
    (error,) = result.errors
    assert error in err
    assert "store" in error
    assert "basic.cu:" in error
    assert "400-byte allocation" in error
    assert error in result.problem()


def test_an_assertion_that_the_program_expects(build, tmp_path, capfd):
    """The program decides whether all went well; what is not traced is told of."""
    program = build("asserts", *PTX_ONLY)
    result = host.trace_program([program], tmp_path / "out")
    assert (result.launches, result.traced, result.status) == (2, 1, 0)
    assert result.expected
    assert not result.problem()
    assert [kernel.short_name for kernel in ws.load(tmp_path / "out")] == ["numbers"]
    (error,) = result.errors
    assert "assertion `threadIdx.x < most` failed" in error
    out, err = capfd.readouterr()
    assert out == "cudaErrorAssert\n"
    assert err.count(error) == 1
    main(["trace", "--output", str(tmp_path / "none"), "--", program, "alone"])
    err = capfd.readouterr().err
    assert err.splitlines()[-1] == (
        f"warpstack: note: 0 of 1 launches, 0 warp instructions; {tmp_path / 'none'} is not written"
    )
    assert not (tmp_path / "none").exists()
    # Where it fails, an error that the program's standard error has is not told again.
    run = host.Run(launches=2, traced=1, instructions=6, status=3, errors=(error,))
    assert run.problem(told=True) == "the error above; the program exited with status 3"
    assert run.problem() == f"{error}; the program exited with status 3"


def test_mistakes_of_the_host(run):
    result, _, out, err = run("mistakes")
    assert out == [
        "cudaErrorInvalidConfiguration",
        "cudaSuccess",
        "cudaErrorInvalidConfiguration",
        "cudaErrorInvalidConfiguration",
        "cudaErrorInvalidValue",
        "cudaSuccess",
        "cudaErrorInvalidValue",
        "cudaErrorInvalidValue",
        "cudaErrorMemoryAllocation",
        "cudaErrorInvalidValue",
        "cudaErrorInvalidDevice",
        "cudaErrorInvalidSymbol",
    ]
    assert not result.problem()  # the program was told, and results and traces are right
    assert "warpstack: note: cudaMalloc: " in err


@pytest.mark.slow
def test_wrong_arguments_of_every_function(build, tmp_path, capfd):
    result = host.trace_program([build("mistakes", *PTX_ONLY)], tmp_path / "out")
    out, err = capfd.readouterr()
    assert out.splitlines() == ["292 calls"]
    assert not result.problem()
    assert (
        "cudaMemcpy: the program cannot read 64 bytes at 0x0 of host memory: it is a null pointer"
        in err
    )
    assert ws.load(tmp_path / "out").kernels[0].name == "_Z6kernelPii"


@pytest.mark.slow
def test_host_memory_symbols_and_handles(build, tmp_path, capfd):
    """Used twice, unknown, freed, null: runtime and driver answer as CUDA documents."""
    result = host.trace_program([build("host_memory", *PTX_ONLY)], tmp_path / "out")
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 1, out
    assert int(out.split()[0]) > 200
    assert not result.problem()
    assert "cudaHostRegister: host memory at 0x" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "capability"), [([], "6"), (["--gpu", "h100-pcie"], "9"), (None, "9")]
)
def test_the_compute_capability_that_programs_see(build, tmp_path, capfd, given, capability):
    """As the page says: that of --gpu, whose default is pascal-mdm; without a `gpu` that of sm_90."""
    program = [build("basic", *PTX_ONLY), "device"]
    if given is None:
        with pytest.raises(ws.InputError):
            host.trace_program(program, tmp_path / "out")
    else:
        command = ["trace", "-o", str(tmp_path / "out"), *given, "--", *program]
        assert main(command) == 2  # it launches nothing
    major = capfd.readouterr().out.splitlines()[1].split()[2]
    assert major == capability


def test_device_queries(run, capfd):
    gpu = ws.gpu("pascal-mdm").replace(num_sms=17)
    with pytest.raises(ws.InputError, match="launched no kernel"):
        run("device", gpu=gpu, device_memory_mib=64)
    assert capfd.readouterr().out.splitlines() == [
        f"1 0 warpstack {gpu.title}".replace("=", " "),
        f"17 17 6 32 {48 * 1024}",
        f"{gpu.threads_per_sm} {gpu.registers_per_sm} {gpu.l2_size_kib * 1024:.0f} 64",
        "1 1 1",
        f"1 {64 << 20}",
        # 256 threads per block and an assumed 32 registers per thread
        f"{min(gpu.threads_per_sm // 256, gpu.registers_per_sm // (256 * 32))} 1024 0",
    ]


def test_pitched_memory_and_volumes(run):
    assert run("boxes")[2] == ["512 84 20", "0 40 42 44"]


def test_unsupported_functions(run, capfd):
    with pytest.raises(ws.InputError, match=r"no kernel; cudaIpcGetMemHandle: not supported"):
        run("unsupported")
    out, err = capfd.readouterr()
    assert out == "cudaErrorNotSupported\n"
    assert err.count("cudaIpcGetMemHandle") == 1


@pytest.fixture
def cooperative(build, tmp_path, capfd):
    """Return a function that traces a scenario of cooperative.cu, as `run` does."""

    def call(scenario):
        command = [build("cooperative", *PTX_ONLY), scenario]
        result = host.trace_program(command, tmp_path / "out")
        out, err = capfd.readouterr()
        return result, out.splitlines(), err

    return call


@pytest.mark.slow
def test_grid_synchronization(cooperative, tmp_path):
    result, out, err = cooperative("grid_sync")
    assert out == [
        "523776",
        "cudaErrorCooperativeLaunchTooLarge",
        "cudaErrorCooperativeLaunchTooLarge",
        "1",
    ]
    assert "a cooperative launch of 4000 blocks is too large: the GPU holds" in err
    assert len(ws.load(tmp_path / "out")) == 1
    assert not result.problem()


@pytest.mark.slow
def test_grid_synchronization_of_a_plain_launch(cooperative):
    with pytest.raises(ws.InputError, match="needs a cooperative launch"):
        cooperative("plain_launch")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "lines"),
    [
        ("barrier", ["0"]),
        ("ticket", ["20 20 190"]),
        ("queue", ["4950"]),
        ("clocks", ["1 1"]),
        ("loop", ["0"]),
        ("room", ["cudaSuccess"]),
        ("crowd", ["cudaErrorLaunchFailure"]),
    ],
)
def test_blocks_of_plain_launches_that_wait(scenario, lines, build, tmp_path, capfd):
    """Two SMs hold four blocks of 1024 threads, but not five."""
    gpu = ws.gpu("pascal-mdm").replace(num_sms=2)
    command = [build("waiting", *PTX_ONLY), scenario]
    if scenario == "crowd":
        with pytest.raises(ws.InputError, match="none of 1 launches"):
            host.trace_program(command, tmp_path / "out", gpu=gpu)
        out, err = capfd.readouterr()
        assert "deadlock: all 4 blocks that are resident wait for memory that nobody changes" in err
        assert "and 1 begins only when another ends (this GPU holds 4)" in err
    else:
        result = host.trace_program(command, tmp_path / "out", gpu=gpu)
        out, _ = capfd.readouterr()
        assert not result.problem()
    assert out.splitlines() == lines


def test_launch_bounds(cooperative):
    _, out, err = cooperative("launch_bounds")
    assert out == ["cudaErrorLaunchOutOfResources", "cudaSuccess"]
    assert "a block of 65 threads is too large: its __launch_bounds__ allow 64" in err


@pytest.mark.slow
def test_layered_and_cubemap_arrays(cooperative):
    assert cooperative("layers")[1] == ["201 511", "cudaErrorInvalidValue"]


@pytest.mark.slow
def test_textures_and_arrays(build, tmp_path, capfd):
    host.trace_program([build("texture", *PTX_ONLY)], tmp_path / "out")
    assert capfd.readouterr().out.splitlines() == [
        "21 399",
        "11.5 17",
        "12 24",
        "cudaErrorInvalidValue",
    ]


def test_exit_status_of_the_command_line_after_a_fault(build, tmp_path, capfd):
    command = ["trace", "-o", str(tmp_path / "out"), "--", build("basic", *PTX_ONLY), "fault"]
    assert main(command) == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("warpstack: error: ")
    assert last.endswith(f"{tmp_path / 'out'} has what was traced")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["none", "size", "speed", "balance"])
def test_compression_of_fat_binaries(build, nvcc, mode, tmp_path, capfd):
    options = subprocess.run([nvcc, "--help"], capture_output=True, text=True, check=True).stdout
    if "--compress-mode" not in options:
        pytest.skip("this nvcc has no --compress-mode")
    program = build("texture", *PTX_ONLY, f"--compress-mode={mode}", name=f"texture-{mode}")
    host.trace_program([program], tmp_path / "out")
    assert capfd.readouterr().out.startswith("21 399\n")


@pytest.mark.slow
def test_machine_code_only(build, tmp_path):
    options = ("-gencode", "arch=compute_75,code=sm_75")
    with pytest.raises(ws.InputError, match="no PTX but machine code for sm_75"):
        host.trace_program([build("texture", *options, name="machine-code")], tmp_path / "out")


@pytest.mark.slow
def test_static_cudart(build, tmp_path):
    program = build("texture", *PTX_ONLY, "-cudart", "static", name="static")
    with pytest.raises(ws.InputError, match="-cudart shared"):
        host.trace_program([program], tmp_path / "out")


@pytest.mark.slow
def test_a_program_with_wrong_masks(build, tmp_path, capfd):
    program = build("masks", *PTX_ONLY)
    line = "masks.cu:8, sm_30_intrinsics.hpp"
    with pytest.raises(ws.InputError, match=line):
        host.trace_program([program], tmp_path / "out")
    capfd.readouterr()
    result = host.trace_program([program], tmp_path / "out", on_fault="continue")
    out, err = capfd.readouterr()
    assert (out, result.status, result.errors) == ("36\n", 0, ())
    (note,) = [text for text in err.splitlines() if text.startswith("warpstack: note: kernel")]
    assert line in note
    assert note.endswith("(5 times at this line)")
    with pytest.raises(ws.InputError, match="executed a trap"):
        host.trace_program([program, "trap"], tmp_path / "trap", on_fault="continue")
    assert note in capfd.readouterr().err.splitlines()  # what led to it
    with pytest.raises(ws.InputError, match="on_fault = 'go' is not one of stop, continue"):
        host.trace_program([program], tmp_path / "other", on_fault="go")


def test_blocks_share_a_queue_in_the_order_of_time(build, tmp_path):
    lengths = {}
    for order in (None, "time", "blocks"):
        folder = tmp_path / str(order)
        gpu = ws.gpu("h100-sxm")
        host.trace_program([build("queue", *PTX_ONLY)], folder, gpu=gpu, order=order)
        (trace,) = ws.load(folder)
        lengths[order] = [len(trace.warp(b, 0)["instruction"]) for b in range(trace.num_blocks)]
    assert lengths[None] == lengths["time"]
    assert max(lengths["time"]) < 1.05 * min(lengths["time"])
    assert lengths["blocks"][0] > 50 * lengths["blocks"][1]
    with pytest.raises(ws.InputError, match="order"):
        host.trace_program([build("queue", *PTX_ONLY)], folder, order="sideways", overwrite=True)
