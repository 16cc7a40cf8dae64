"""The answer of ``predict`` in words, what it can be made of, and ``compare``, completion and manual."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from time import sleep
from typing import ClassVar

import pytest

import warpstack as ws
from commands import runner
from warpstack._util import progress
from warpstack.cli import main
from warpstack.cli.common import quiet
from warpstack.cli.common.launch_text import Array, Launch, read_launch
from warpstack.cuda import compilers, toolchain
from warpstack.cuda.toolchain import find_nvcc

KERNEL = """
extern "C" __global__ void scale(float *x, const int *index, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[index[i]] *= by;
}
"""
MAIN = """
#include <cstdio>
int main(int argc, char **argv) {
  float *x; int *index;
  cudaMalloc(&x, 4096); cudaMalloc(&index, 4096);
  cudaMemset(x, 0, 4096); cudaMemset(index, 0, 4096);
  for (int i = 0; i < argc; ++i) scale<<<4, 256>>>(x, index, 2, 1024);
  printf("%d launches\\n", argc);
  return cudaDeviceSynchronize();
}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("answer") / "small"
    kernels = [ws.patterns.strided(gs, blocks=8, launch_id=i) for i, gs in enumerate((1, 32, 1), 1)]
    ws.save(ws.App(kernels, "small"), path)
    return path


@pytest.fixture
def run(capfd):
    """Return a function that runs a command and returns its standard output."""

    call = runner(capfd)
    return lambda *arguments: call(*arguments)[0]


def cells(out, title):
    (line,) = (line for line in out.splitlines() if line.startswith(title))
    return line[len(title) :].split()


class TestAnswer:
    def test_four_columns_and_other_opinions(self, run, small, pascal):
        out = run("predict", small)
        app = ws.load(small)
        own = ws.predict(app, pascal)
        head, *rows = out.split("\n\n")[1].splitlines()
        assert head.split("  ")[0] == "kernel"
        for column in ("time (us)", "IPC (of 28)", "most cycles go to"):
            assert column in head
        assert rows[0].split("  ")[0] == "all 2 kernels"
        assert cells(out.split("\n\n")[1], "strided_gs1 (2 launches)")[0] == (
            f"{own['time_us'][[0, 2]].sum():.2f}"
        )
        (divergent,) = (row for row in rows if row.startswith("strided_gs32"))
        stack = own.loc[1, [f"cpi_{part}" for part in ws.models.STACK_COMPONENTS]]
        largest = str(stack.astype(float).idxmax()).removeprefix("cpi_")
        share = 100 * stack.max() / own.loc[1, "cpi"]
        assert divergent.endswith(f"({largest}), {share:.0f} %")
        reasons, title, table = out.split("\n\n")[2:5]
        assert reasons.startswith("What would gain most, one change of the GPU at a time:")
        assert title.startswith("Second opinion: ")
        own_time = own["time_us"].sum()
        for name, time in (
            ("mdm", ws.predict(app, pascal, "mdm")["time_us"].sum()),
            ("simulator", sum(result.time_us for result in ws.simulate(app, pascal))),
        ):
            (found,) = re.findall(rf"^all 2 kernels +{name} +(\S+) +(\S+) ", table, re.MULTILINE)
            assert found == (f"{time:.2f}", f"{100 * (time / own_time - 1):+.0f}")

    def test_data_are_the_rows_of_predict(self, run, small, pascal):
        records = json.loads(run("predict", small, "--json"))
        expected = ws.predict(ws.load(small), pascal)
        assert [record["model"] for record in records] == ["closed_network"] * 3
        assert [record["cycles"] for record in records] == expected["cycles"].tolist()
        assert all(isinstance(record["time_us"], float) for record in records)

    def test_long_work_is_not_simulated_unasked(self, run, small, monkeypatch):
        monkeypatch.setattr("warpstack.cli.predict._CHEAP_INSTRUCTIONS", 1)
        assert "simulator: not run" in run("predict", small)

    def test_models_before_the_trace(self, run, small):
        for typed in (["-m", "mdm", small], ["--models", "mdm", "gpumech", small, "--json"]):
            assert run("predict", *typed)

    def test_launches_orders_and_tops(self, run, small):
        def titles(*options):
            body = run("predict", small, "-m", "mdm", *options).split("\n\n")[1].splitlines()[1:]
            return [" ".join(row.split()[:2]) for row in body]

        launches = titles("--per-launch", "--sort", "launch")
        assert launches[1:] == ["1 strided_gs1", "2 strided_gs32", "3 strided_gs1"]
        assert titles("--per-launch", "--top", "1")[1] == "2 strided_gs32"
        assert titles("--sort", "ipc")[1].startswith("strided_gs32")
        assert "and 1 more" in run("predict", small, "--top", "1")

    def test_several_gpus_and_traces(self, run, small, tmp_path):
        gpus = ["--gpu", "pascal-mdm", "--gpu", "a100"]
        out = run("predict", small, *gpus, "-m", "mdm")
        app = ws.load(small)
        times = [ws.predict(app, gpu, "mdm")["time_us"].sum() for gpu in gpus[1::2]]
        for gpu, time in zip(gpus[1::2], times, strict=True):
            (line,) = (row for row in out.splitlines() if row.startswith("all") and gpu in row)
            words = line.split()
            assert words[4] == f"{time:.2f}"
            assert float(words[5]) < time < float(words[7])
            assert words[8] == f"{time / times[0]:.3f}"
        shutil.copytree(small, tmp_path / "other")
        records = json.loads(run("predict", small, tmp_path / "other", "--json"))
        assert [record["app"] for record in records] == ["small"] * 3 + ["other"] * 3

    def test_stacks_mark_the_largest(self, run, small):
        out = run("predict", small, "-m", "mdm", "--stacks").partition("the largest\n\n")[2]
        for row in out.partition("\n\n")[0].splitlines()[1:]:
            assert row.count("*") == 1


def in_terminal(columns, *arguments):
    """Return what a command prints on a terminal with so many columns."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "warpstack", *map(str, arguments)],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
    os.close(master)
    assert process.returncode == 0
    return text.decode()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_the_terminal(small, columns):
    for typed in (["caches", small], ["info", small], ["predict", small, "-m", "all", "--stacks"]):
        text = in_terminal(columns, *typed)
        table = text.partition("\n\r\n")[2].replace("\033[1m", "").replace("\033[0m", "")
        assert max(map(len, table.splitlines()), default=0) <= columns
    assert "\033[1m" in text


class TestLaunches:
    def test_forms(self):
        assert read_launch(
            "f<<<(4, 1 << 3), dim3(32), 2*1024>>>(const float[1<<10], int[8]=range, 2.5f, -7)"
        ) == Launch(
            "f",
            (4, 8),
            (32,),
            2048,
            (Array("float32", 1024), Array("int32", 8, "range"), 2.5, -7),
        )
        assert read_launch("f<<<4x5x6,{8,8}>>>(float4[2] = 1, uint8[3]=random);") == Launch(
            "f", (4, 5, 6), (8, 8), 0, (Array("float32", 8, 1), Array("uint8", 3, "random"))
        )
        assert read_launch("f<<<1,1>>>()").arguments == ()

    @pytest.mark.parametrize("number", ["1 << 99", "2 ** 8", "x", "__import__('os')", "1/0", ""])
    def test_what_is_no_number(self, number):
        with pytest.raises(ws.InputError, match="is neither a number"):
            read_launch(f"f<<<1, 1>>>(1, {number})")

    @pytest.mark.skipif(not compilers(), reason="needs a CUDA compiler")
    def test_a_kernel_of_a_source(self, run, tmp_path):
        (tmp_path / "scale.cu").write_text(KERNEL)
        launch = "scale<<<4, 256>>>(float[1024] = random, int[1024] = range, 2, 1024)"
        (row,) = json.loads(run("info", tmp_path / "scale.cu", "--launch", launch, "--json"))
        assert (row["name"], row["grid"], row["block"]) == ("scale", [4, 1, 1], [256, 1, 1])

    @pytest.mark.slow
    @pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
    def test_a_program(self, run, tmp_path):
        source = tmp_path / "program.cu"
        source.write_text(KERNEL + MAIN)
        rows = json.loads(run("predict", source, "--json", "--", "one", "two"))
        assert [row["name"] for row in rows] == ["scale"] * 3
        run("trace", "-o", tmp_path / "traced", "--", source, "one", "two")
        assert [kernel.short_name for kernel in ws.load(tmp_path / "traced")] == ["scale"] * 3
        ws.cuda.toolchain.build_program(source, tmp_path / "program")
        assert len(json.loads(run("caches", "--json", "--", tmp_path / "program"))) == 1

    @pytest.mark.slow
    def test_a_program_without_a_toolkit(self, run, tmp_path, monkeypatch):
        """NVIDIA's packages have nvcc, and the run-time library under its full name only."""
        found = [package / "bin" / "nvcc" for package in toolchain.nvidia_packages()]
        if not any(path.exists() for path in found):
            pytest.skip("nvcc's package is not installed (warpstack[cuda] brings it)")
        which = shutil.which
        known = list(map(str, found))
        monkeypatch.setattr(toolchain.shutil, "which", lambda p: which(p) if p in known else None)
        assert toolchain.find_nvcc() in known
        source = tmp_path / "program.cu"
        source.write_text(KERNEL + MAIN)
        rows = json.loads(run("predict", source, "--json", "--", "one", "two"))
        assert [row["name"] for row in rows] == ["scale"] * 3


def test_a_workload(run):
    expected = ws.workloads.load("stencil").info()["kernel"].tolist()
    rows = json.loads(run("info", "--workload", "stencil", "--json"))
    assert [row["kernel"] for row in rows] == expected


class TestCompare:
    def test_prints_the_largest_change(self, run, small):
        out = run("compare", small, "--gpu", "pascal-mdm", "--gpu", "a100")
        table = ws.compare("pascal-mdm", "a100", app=ws.load(small))
        time = table[table["quantity"] == "time"].iloc[0]
        assert cells(out, "time (us)") == [
            f"{time['first']:.2f}",
            f"{time['second']:.2f}",
            f"{time['ratio']:.3f}",
        ]
        (marked,) = (row for row in out.splitlines() if row.endswith("*"))
        (largest,) = table[table["largest"] & (table["name"] == "(all)")]["quantity"]
        assert largest in marked

    def test_two_descriptions(self, run):
        rows = json.loads(run("compare", "a100", "h100-pcie", "--json"))
        assert rows[0] == {
            "field": "num_sms",
            "unit": "",
            "first": ws.gpu("a100").num_sms,
            "second": ws.gpu("h100-pcie").num_sms,
            "ratio": ws.gpu("h100-pcie").num_sms / ws.gpu("a100").num_sms,
        }
        assert "same values" in run("compare", "a100", "a100")


def test_completion_knows_commands_options_and_names(run, tmp_path):
    (tmp_path / "script").write_text(run("completion", "bash"))

    def completed(*words):
        given = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {tmp_path}/script; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; "
            "_warpstack; echo ${COMPREPLY[@]}"
        )
        return subprocess.run(
            ["bash", "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()

    assert completed("warpstack", "pre") == ["predict"]
    assert completed("warpstack", "predict", "--per") == ["--per-launch"]
    assert completed("warpstack", "predict", "--gpu", "pas") == ["pascal-mdm"]
    assert completed("warpstack", "caches", "--access-order", "gr") == ["greedy"]
    assert completed("warpstack", "caches", "-O", "fl") == ["flush_l2=true", "flush_l2=false"]
    assert completed("warpstack", "dvfs", "-O", "fl") == ["flush_l2=true", "flush_l2=false"]
    assert completed("warpstack", "dvfs", "-O", "access") == []
    assert completed("warpstack", "sweep", "--axis", "num_s") == ["num_sms="]


def test_manual_has_every_command_and_option(run):
    page = run("manual").replace("\\-", "-")
    for name in ("predict", "compare", "gpus"):
        assert f".SS warpstack {name}\n" in page
    assert ".B --per-launch\n" in page
    assert ".B -O NAME=VALUE\n" in page
    titles = re.findall(r"^\.SH (.*)", page, flags=re.MULTILINE)
    assert {"ANSWERS", "TRACES", "DESIGNS", "CHECKS", "SET-UP"} <= set(titles)


def test_a_word_after_some_seconds(monkeypatch, capsys):
    monkeypatch.setattr(quiet, "PATIENCE_SECONDS", 0.01)
    with quiet.told_when_long(), progress.work("compiling x.cu"):
        assert said(capsys) == "warpstack: note: still compiling x.cu\n"
        sleep(0.05)
    assert capsys.readouterr().err == ""  # once
    with quiet.told_when_long(), progress.progress_bar(True, 8, "simulating", "block") as bar:
        progress.say_which(bar, "simulating", 3, 20)
        bar.update(2)
        line = said(capsys)
    assert re.match(
        r"warpstack: note: still simulating kernel 3 of 20, 25 % done, about \d+ s left\n", line
    )
    assert progress.under_way() is None
    with quiet.told_when_long():
        assert said(capsys) == "warpstack: note: still at work\n"


def said(capsys):
    """Return what is written within two seconds."""
    for _ in range(200):
        if err := capsys.readouterr().err:
            return err
        sleep(0.01)
    return ""


def test_no_word_where_a_bar_says_it(monkeypatch, capsys):
    monkeypatch.setattr(quiet, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with quiet.told_when_long():
        with progress.progress_bar(True, 8, "simulating", "block"):
            sleep(0.1)
        assert "still" not in capsys.readouterr().err.replace("still at work", "", 1)
    assert not progress.is_bar_shown()


def test_a_quick_command_does_not_say_a_word(run, small, capfd):
    run("info", small)
    assert capfd.readouterr().err == ""


MIXED = """
#include <vector>
extern "C" __global__ void twice(float* a) { a[threadIdx.x] *= 2; }
extern "C" __global__ void spread(float* a) { a[32 * threadIdx.x] += 1; }
int main() { return 0; }
"""


def test_a_kernel_of_a_source_with_host_code_is_launched(tmp_path, capsys):
    if "nvcc" not in ws.cuda.compilers():
        pytest.skip("needs nvcc: NVRTC has no headers of the host")
    path = tmp_path / "mixed.cu"
    path.write_text(MIXED)
    assert main(["predict", str(path), "--launch", "twice<<<2, 32>>>(float[32])"]) == 0
    assert "twice" in capsys.readouterr().out


def test_lines_show_the_source_that_was_given(tmp_path, capsys):
    if not ws.cuda.compilers():
        pytest.skip("needs a CUDA compiler")
    path = tmp_path / "plain.cu"
    path.write_text(MIXED.replace("#include <vector>", "").replace("int main() { return 0; }", ""))
    call = ["lines", str(path), "--launch", "spread<<<2, 32>>>(float[1024])", "--no-simulate"]
    assert main(call) == 0
    out = capsys.readouterr().out
    assert "a[32 * threadIdx.x] += 1" in " ".join(out.split())  # code may take several lines


def test_one_launch_of_two_versions_is_compared(tmp_path, capsys):
    """Without a main: the launch is made of either source, and twice the additions take longer."""
    if not ws.cuda.compilers():
        pytest.skip("no CUDA compiler is there")
    for name, additions in (("one", 4), ("two", 64)):
        (tmp_path / f"{name}.cu").write_text(
            "__global__ void add(float* a) { float x = a[threadIdx.x];\n#pragma unroll 1\n"
            f"for (int i = 0; i < {additions}; i++) x += 1.5f; a[threadIdx.x] = x; }}\n"
        )
    sources = [str(tmp_path / f"{name}.cu") for name in ("one", "two")]
    assert main(["compare", *sources, "--launch", "add<<<2, 64>>>(float[64])", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    instructions = next(row for row in rows if row["quantity"] == "instructions")
    assert instructions["ratio"] > 4


def test_the_arguments_of_two_versions_are_the_same(tmp_path, capfd):
    if not ws.cuda.compilers():
        pytest.skip("no CUDA compiler is there")
    for name, launches in (("once", "argc"), ("twice", "2 * argc")):
        (tmp_path / f"{name}.cu").write_text(KERNEL + MAIN.replace("i < argc", f"i < {launches}"))
    sources = [str(tmp_path / f"{name}.cu") for name in ("once", "twice")]
    assert main(["compare", *sources, "--json", "--", "a", "b"]) == 0
    out, err = capfd.readouterr()
    assert err.count("3 launches") == 2  # what both print of their arguments
    (row,) = (
        r for r in json.loads(out)[:20] if r["quantity"] == "instructions" and "(all)" in r["name"]
    )
    assert row["ratio"] == 2


class TestNamesOfSources:
    """The program of a source is in a temporary folder, which nobody has to know."""

    BODIES: ClassVar = {
        "quiet": "int main() { return 0; }",
        "failing": "int main() { return 3; }",
        "beyond": "__global__ void k(float* x) { x[threadIdx.x] = 1; }\n"
        "int main() { float* p; cudaMalloc(&p, 4); k<<<1, 64>>>(p); return cudaDeviceSynchronize(); }",
    }

    @pytest.fixture
    def source(self, tmp_path):
        if not ws.cuda.compilers():
            pytest.skip("no CUDA compiler is there")

        def make(name):
            path = tmp_path / f"{name}.cu"
            path.write_text(self.BODIES[name])
            return str(path)

        return make

    @pytest.mark.parametrize("command", ["predict", "trace"])
    @pytest.mark.parametrize("name", list(BODIES))
    def test_an_error_names_the_source(self, source, command, name, tmp_path, capfd):
        path = source(name)
        more = ["-o", str(tmp_path / "traced")] if command == "trace" else []
        call = [command, *more, *(["--"] if more else []), path]
        assert main(call) == 2
        err = capfd.readouterr().err
        assert f"error: {path}: " in err
        assert "/warpstack-" not in err

    def test_a_fault_is_said_once(self, source, capfd):
        assert main(["predict", source("beyond")]) == 2
        err = capfd.readouterr().err
        assert err.count("out-of-bounds store") == 1
        assert (
            "none of 1 launches was traced to its end; the error above; the program exited" in err
        )

    def test_python_says_it_in_full(self, source, tmp_path):
        path = source("beyond")
        program = tmp_path / "beyond"
        toolchain.build_program(path, program)
        with pytest.raises(
            ws.InputError, match=r"beyond: none of 1 launches .* out-of-bounds store"
        ):
            ws.cuda.host.trace_program([program], tmp_path / "traced")


def test_two_launches_of_one_trace_are_compared(tmp_path, capsys):
    kernels = [ws.patterns.strided(gs, blocks=8, launch_id=i) for i, gs in ((1, 1), (2, 32))]
    ws.save(ws.App(kernels), tmp_path / "two")
    assert main(["compare", str(tmp_path / "two"), "--kernels", "1,2"]) == 0
    out = capsys.readouterr().out
    assert "strided_gs1 (1)" in out
    assert "strided_gs32 (2)" in out


def test_some_launches_stand_for_the_others(run, tmp_path):
    lengths = [6, 7, 6, 7, 5, 6, 7, 6, 5, 6, 7, 6] * 2
    kernels = [
        ws.patterns.strided(1 + n % 3, blocks=b, launch_id=n) for n, b in enumerate(lengths, 1)
    ]
    ws.save(ws.App(kernels, "many"), tmp_path / "many")
    # The trace may follow the option, whose value may be left out.
    out = run("predict", "--sample-launches", tmp_path / "many", "--flush-l2")
    assert "+-" in out
    known, of = re.search(r"(\d+) of (\d+) launches were predicted", out).groups()
    assert int(known) < int(of) == len(lengths)
    rows = ws.predict(
        ws.load(tmp_path / "many"),
        "pascal-mdm",
        ["closed_network", "mdm"],
        flush_l2=True,
        sample_launches=True,
    )
    total = ws.models.application_totals(rows).iloc[0]
    width = 50 * (total["ipc_high"] - total["ipc_low"]) / total["ipc"]
    answer = out.split("Second opinion")[0]
    assert cells(answer, "all 3 kernels")[4:6] == [f"{total['ipc']:.3f}", f"{width:.1f}"]
    # As data: the rows of predict.
    table = run("predict", tmp_path / "many", "--sample-launches", "0.2", "--json")
    assert {"launch_group", "launch_sampled", "ipc_low", "ipc_high"} <= set(json.loads(table)[0])


def test_bars_of_a_sample_of_the_sms(run, small):
    out = run("predict", small, "--sampling", "0.5")
    assert "+-" in out
    assert "some SMs were simulated" in out
    assert "+-" not in run("predict", small)
