"""``--launch`` several times, what its arrays hold, and ``--machine-code`` where a command runs kernels."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from commands import runner
from warpstack.cli import main
from warpstack.cli.common.launch_arrays import Array, values_of
from warpstack.cli.common.launch_run import run_launches
from warpstack.cli.common.launch_text import read_launch, read_launches
from warpstack.cli.common.source_text import parameters_of
from warpstack.cuda import compilers
from warpstack.cuda.disassembly import find_nvdisasm

SOURCE = """
// a kernel in a comment: __global__ void twice(double *x) {}
extern "C" __global__ void twice(const float *__restrict__ x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
__global__ void __launch_bounds__(64) gather(const int *index, const float* x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i]];
}
__global__ void check(const float *x, float expected) {
  if (x[threadIdx.x] != expected * threadIdx.x) __trap();
}
"""
TWICE = "twice<<<2, 64>>>(float[128], float[128], 128)"

needs_compiler = pytest.mark.skipif(not compilers(), reason="needs a CUDA compiler")
needs_nvdisasm = pytest.mark.skipif(
    not compilers() or find_nvdisasm() is None, reason="needs a CUDA compiler and nvdisasm"
)


@pytest.fixture
def run(capfd):
    """Return a function that runs a command and returns its standard output."""
    call = runner(capfd)
    return lambda *arguments: call(*arguments)[0]


@pytest.fixture
def refused(capfd):
    """Return a function that runs a command, which must fail, and returns its one line of errors."""

    def call(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
        out, err = capfd.readouterr()
        assert (status, out) == (2, ""), err
        assert err.count("\n") == 1, err
        return err

    return call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder in which a command runs, with the source and files of arrays."""
    monkeypatch.chdir(tmp_path)
    Path("kernels.cu").write_text(SOURCE)
    np.save("index.npy", np.arange(64, dtype=np.int32)[::-1])
    np.save("long.npy", np.arange(64))
    np.save("square.npy", np.arange(64, dtype=np.float32).reshape(8, 8))
    np.save("swapped.npy", np.arange(64, dtype=">f4"))
    np.save("none.npy", np.zeros(0, np.float32))
    np.save("complex.npy", np.zeros(4, complex))
    np.savez("two.npz", x=np.zeros(3))
    Path("text.npy").write_text("1, 2, 3\n")
    return tmp_path


def argument(text):
    return read_launch(f"f<<<1, 1>>>({text})").arguments[0]


def held(text):
    return values_of("argument 1", argument(text)).tolist()


class TestArrays:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("int[3]", [0, 0, 0]),
            ("int[3] = zeros", [0, 0, 0]),
            ("int[2][2] = 7", [7, 7, 7, 7]),
            ("int[4] = range", [0, 1, 2, 3]),
            ("int[4] = 16 * range + 5", [5, 21, 37, 53]),
            ("unsigned[5] = range // 2", [0, 0, 1, 1, 2]),
            ("int[5] = range % 3", [0, 1, 2, 0, 1]),
            ("float[3] = range / 2", [0, 0.5, 1]),
            ("float[2] = 0.5f", [0.5, 0.5]),
            ("int8[2] = 127 - 255 * range", [127, -128]),
        ],
    )
    def test_numbers(self, text, values):
        assert held(text) == values

    @pytest.mark.parametrize(
        ("text", "least", "end"),
        [
            ("int[4096] = random", 0, 4096),
            ("int[4096] = random(10)", 0, 10),
            ("int[4096] = random(-5, 5)", -5, 5),
            ("uint8[4096] = random(256)", 0, 256),
        ],
    )
    def test_random_whole_numbers_have_bounds(self, text, least, end):
        found = np.array(held(text))
        assert (found.min(), found.max() + 1) == pytest.approx((least, end), abs=4096 / 200)
        assert least <= found.min()
        assert found.max() < end
        # Those of a range of 10 are all there, some 410 times each.
        if end - least == 10:
            counts = np.bincount(found - least)
            assert len(counts) == 10
            assert counts.min() > 300

    def test_random_numbers_are_the_same_in_each_call(self):
        assert held("float[9] = random(2, 4)") == held("float[9] = random(2, 4)")
        found = np.array(held("float[4096] = random(2, 4)"))
        assert 2 <= found.min() < 2.01
        assert 3.99 < found.max() < 4
        assert abs(found.mean() - 3) < 0.05
        signed = np.array(held("float[4096] = 2 * random - 1"))
        assert signed.min() < -0.99
        assert signed.max() > 0.99

    def test_a_file_is_read_in_the_order_of_c(self, folder):
        assert held("float[] = square.npy") == list(range(64))
        assert held("float[64] = 'square.npy'") == held("float[8][8] = square.npy")
        assert held("square.npy") == list(range(64))
        assert argument("swapped.npy") == Array("float32", 64, file="swapped.npy")
        assert held("swapped.npy") == list(range(64))
        assert argument("float4[] = square.npy") == Array("float32", 64, file="square.npy")
        assert argument("float4[8][2] = square.npy").size == 64
        assert argument("unsigned[] = index.npy").dtype == "uint32"  # the bits are the same

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("float[] = lost.npy", "argument 1: lost.npy: No such file or directory"),
            ("text.npy", "text.npy: is not an array of numbers that numpy.save has written"),
            ("two.npz", "two.npz: has several arrays; save one of them"),
            (
                "complex.npy",
                "complex.npy: its elements are complex128; those of a kernel may be bool",
            ),
            ("none.npy", "none.npy: has no elements"),
            ("int[] = long.npy", r"are int64, and the array's int32; .*x.astype\('int32'\)"),
            (
                "float[65] = square.npy",
                "shape is 8 x 8, and 65 elements .* takes what the file has",
            ),
            ("float[4][16] = square.npy", "shape is 8 x 8, and 4 x 16 elements"),
            ("float3[] = square.npy", "these are no whole elements of 3 numbers"),
            ("float[]", "does not say how many elements there are, such as float"),
            ("int[4] = random(0)", r"expected a number, range \(0, 1, 2, \.\.\.\), random"),
            ("int[4] = random(5, 5)", "expected a number, range"),
            ("int[4] = random(2.5)", "expected a number, range"),
            ("int[4] = rnd", "= rnd: expected a number, range"),
            ("int[4] = ", "= : expected a number, range"),
            ("int[4] = range / 0", "expected a number, range"),
            ("int[4] = range(3)", "expected a number, range"),
            ("int[4] = random(random)", "expected a number, range"),
            ("uint8[4] = 256", "= 256: elements of uint8 hold 0 to 255"),
            ("int[4] = 0.5", "is not a whole number, as the elements of int are"),
            ("flt x[4]", "there is no type of elements 'flt x'"),
        ],
    )
    def test_what_cannot_be(self, folder, text, told):
        with pytest.raises(ws.InputError, match=told):
            argument(text)

    def test_numbers_that_do_not_fit(self):
        with pytest.raises(
            ws.InputError, match=r"= 16 \* range: 0 to 496, and elements of uint8 hold 0 to 255"
        ):
            held("uint8[32] = 16 * range")
        with pytest.raises(
            ws.InputError, match=r": 0 to \d+, and elements of int8 hold -128 to 127"
        ):
            held("int8[4096] = random(1000)")

    def test_a_name_means_the_same_array(self):
        first, second, third = read_launches(
            ["f<<<1,1>>>(float x[4] = range, 5); g<<<1,1>>>(x, float x[4]) ;", "h<<<1,1>>>(x)"]
        )
        x = Array("float32", 4, "range", name="x")
        assert first.arguments == (x, 5)
        assert second.arguments == (x, x)
        assert third.arguments == (x,)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("f<<<1,1>>>(float x[4], int x[4])", "an array x with 4 float32 is there already"),
            ("f<<<1,1>>>(float x[4], float x[5])", "write x alone, or choose another name"),
            ("f<<<1,1>>>(float x[4], float x[4] = 1)", "is there already, and is the same in all"),
            ("f<<<1,1>>>(y)", "an array gets a name where it first stands, such as float y.1024."),
            ("f<<<1,1>>>(int a[4], int b[4], y)", "the arrays with a name are a, b"),
        ],
    )
    def test_names_that_cannot_be(self, text, told):
        with pytest.raises(ws.InputError, match=told):
            read_launches([text])


class TestParameters:
    def test_what_a_source_says_of_them(self):
        found = parameters_of(SOURCE, "twice")
        assert [(one.dtype, one.is_pointer) for one in found] == [
            ("float32", True),
            ("float32", True),
            ("int32", False),
        ]
        assert found[0].text == "const float *__restrict__ x"
        assert [one.dtype for one in parameters_of(SOURCE, "gather")] == [
            *("int32", "float32", "float32")
        ]
        assert parameters_of(SOURCE, "absent") is None

    def test_of_other_types_nothing_is_said(self):
        text = (
            "__global__ void f(T *a, float **b, float4 c, float4 *d, Grid g, unsigned n, int e[]) {"
        )
        *others, last = parameters_of(text, "f")
        assert [one and one.dtype for one in others] == [
            *(None, None, None, "float32", None, "uint32")
        ]
        assert last.is_pointer
        assert last.dtype == "int32"
        assert parameters_of(text + "}" + text.replace("T", "U"), "f") is None

    @needs_compiler
    @pytest.mark.parametrize(
        ("launch", "told"),
        [
            (
                "twice<<<1, 1>>>(double[1], float[1], 1)",
                "argument 1, for const float *__restrict__ x: its elements are float32, the array's "
                "float64; give float32[...]",
            ),
            (
                "gather<<<1, 1>>>(long.npy, float[64], float[64])",
                "for const int *index: its elements are int32, those of long.npy int64; save them so",
            ),
            ("twice<<<1, 1>>>(5, float[1], 1)", "x: 5 is a number; give an array, such as float32"),
            (
                "twice<<<1, 1>>>(float[1], float[1], int[4])",
                "int n: an array is given; give a numb",
            ),
            ("twice<<<1, 1>>>(float[1], float[1])", "twice has 3 parameters, 2 are given"),
            ("thrice<<<1, 1>>>()", "no kernel 'thrice'; did you mean twice?; there are "),
        ],
    )
    def test_arguments_that_do_not_fit(self, folder, refused, launch, told):
        assert told in refused("predict", "kernels.cu", "--launch", launch)


@needs_compiler
class TestSeveral:
    def test_later_launches_see_what_earlier_ones_wrote(self, folder):
        """The kernel traps unless each number is four times its index."""
        launches = (
            "twice<<<1, 64>>>(float x[64] = range, float y[64], 64); twice<<<1, 64>>>(y, x, 64); "
        )
        traces = run_launches("kernels.cu", read_launches([launches, "check<<<1, 64>>>(x, 4)"]))
        assert [(t.launch_id, t.short_name) for t in traces] == [
            (1, "twice"),
            (2, "twice"),
            (3, "check"),
        ]
        with pytest.raises(ws.InputError, match="check"):
            run_launches("kernels.cu", read_launches([launches, "check<<<1, 64>>>(x, 5)"]))

    def test_a_trace_has_them_in_order(self, folder, run):
        gather = "gather<<<1, 64>>>(index.npy, float[64], float[64])"
        out = run("trace", "kernels.cu", "--launch", TWICE, "--launch", gather, "-o", "traced")
        assert "traced: 2 kernels" in out
        app = ws.load("traced")
        assert [k.short_name for k in app] == ["twice", "gather"]
        rows = json.loads(run("predict", "traced", "--json"))
        both = ["--launch", TWICE, "--launch", gather]
        assert json.loads(run("predict", "kernels.cu", *both, "--json")) == rows

    def test_a_trace_of_one_takes_the_options_of_launches(self, folder, run, refused):
        launch = TWICE.replace("2, 64", "512, 64").replace("128", "32768")
        run(
            *("trace", "kernels.cu", "--launch", launch, "-o", "traced"),
            *("--sample-blocks", "4", "--skip-others"),
        )
        (kernel,) = ws.load("traced")
        assert kernel.num_missing_blocks > 300
        told = refused("trace", "kernels.cu", "--launch", TWICE, "-o", "x", "--step-limit", "3")
        assert "twice" in told
        assert "3" in told
        assert not Path("x").exists()

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ("--launch f<<<1,1>>>()", "give either a program or its source"),
            ("prog --launch f<<<1,1>>>()", "--launch: there is no source to compile"),
            ("prog --compiler-options=-O1", "--compiler-options: there is no source to compile"),
            (
                "kernels.cu --launch f<<<1,1>>>() -- 5",
                "-- 5: --launch cannot have arguments of a pr",
            ),
            ("kernels.cu two.cu --launch f<<<1,1>>>()", "two.cu: a trace is of one source"),
            (
                "kernels.cu --launch f<<<1,1>>>() --kernels f",
                "--kernels chooses among the launches",
            ),
            ("kernels.cu --launch f<<<1,1>>>() --timeout 3", "leave one of them out"),
            (
                "kernels.cu",
                "its kernels are twice, gather, check; launch one: warpstack trace kernels",
            ),
        ],
    )
    def test_a_trace_that_cannot_be(self, folder, refused, arguments, told):
        assert told in refused("trace", "-o", "traced", *arguments.split())


@needs_compiler
class TestCompared:
    def ratio(self, out, quantity="instructions"):
        table = pd.DataFrame(json.loads(out))
        (row,) = table[(table["name"] == "(all)") & (table["quantity"] == quantity)].itertuples()
        return row.ratio

    def test_two_kernels_of_a_file(self, folder, run):
        gather = "gather<<<1, 64>>>(int[64] = random(64), float[64], float[64])"
        both = ["compare", "kernels.cu", "--launch", TWICE, "--launch", gather]
        out = run(*both)
        assert out.startswith("gather against twice, on ")
        first, second = (
            json.loads(run("predict", "kernels.cu", "--launch", one, "--json"))[0]["instructions"]
            for one in (TWICE, gather)
        )
        assert self.ratio(run(*both, "--json")) == second / first
        assert "largest" in run(*both, "--csv").splitlines()[0]

    def test_two_grids_of_a_kernel(self, folder, run):
        other = TWICE.replace("2, 64", "1, 128")
        both = ["compare", "kernels.cu", "--launch", TWICE, "--launch", other]
        assert run(*both).startswith("twice<<<1, 128>>> against twice<<<2, 64>>>, on ")
        assert self.ratio(run(*both, "--json")) == 1

    def test_two_arguments_of_a_kernel(self, folder, run):
        other = TWICE.replace(", 128)", ", 32)")
        out = run("compare", "kernels.cu", "--launch", TWICE, "--launch", other)
        assert "twice<<<2, 64>>> (2) against twice<<<2, 64>>> (1)" in out

    def test_several_launches_of_a_side(self, folder, run):
        both = f"{TWICE}; {TWICE}"
        out = run("compare", "kernels.cu", "--launch", TWICE, "--launch", both, "--json")
        assert self.ratio(out) == 2

    def test_two_files_with_a_launch_each(self, folder, run, refused):
        Path("other.cu").write_text(SOURCE.replace("twice", "double_up"))
        sources = ["compare", "kernels.cu", "other.cu"]
        other = TWICE.replace("twice", "double_up")
        assert self.ratio(run(*sources, "--launch", TWICE, "--launch", other, "--json")) == 1
        told = refused(*sources, "--launch", other, "--launch", TWICE)
        assert "kernels.cu: there is no kernel 'double_up'" in told
        assert "other.cu: there is no kernel 'twice'" in refused(*sources, "--launch", TWICE)

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["kernels.cu", *["--launch", TWICE] * 2], ": is given twice; give another one to com"),
            (
                ["kernels.cu", *["--launch", TWICE] * 3],
                "is given 3 times; two are compared. Several",
            ),
            (["kernels.cu", "--launch", TWICE], "two --launch of a source); got traces: 1"),
            (["small", *["--launch", TWICE] * 2], "--launch: there is no source to compile"),
        ],
    )
    def test_what_is_not_compared(self, folder, refused, arguments, told):
        ws.save(ws.App([ws.patterns.strided(1, blocks=1)], "small"), "small")
        assert told in refused("compare", *arguments)


class TestMachineCode:
    @needs_nvdisasm
    @pytest.mark.parametrize(
        "command", [["predict"], ["lines", "--no-simulate"], ["simulate"], ["info"]]
    )
    def test_a_launch_runs_as_that_of_the_gpu(self, folder, run, command):
        arguments = [*command, "kernels.cu", "--launch", TWICE, "--machine-code"]
        if command != ["info"]:
            arguments += ["--gpu", "a100"]
        else:
            arguments += ["sm_80"]
        rows = json.loads(run(*arguments, "--json"))
        (trace,) = run_launches("kernels.cu", read_launches([TWICE]), machine_code="sm_80")
        assert trace.code == "sm_80"
        if command == ["info"]:
            assert rows[0]["code"] == "sm_80"
        elif command[0] != "lines":
            assert rows[0]["instructions"] == trace.num_instructions
        else:
            assert sum(row["executions"] for row in rows) == trace.num_instructions

    @needs_nvdisasm
    def test_two_launches_are_compared(self, folder, run):
        other = TWICE.replace("2, 64", "1, 64")
        call = ["compare", "--machine-code", "kernels.cu", "--launch", TWICE, "--launch", other]
        table = pd.DataFrame(json.loads(run(*call, "--gpu", "a100", "--json")))
        (trace,) = run_launches("kernels.cu", read_launches([TWICE]), machine_code="sm_80")
        (row,) = table[
            (table["name"] == "(all)") & (table["quantity"] == "instructions")
        ].itertuples()
        assert (row.first, row.ratio) == (trace.num_instructions, 0.5)

    @needs_nvdisasm
    def test_a_trace_has_it(self, folder, run):
        run("trace", "kernels.cu", "--launch", TWICE, "--machine-code", "sm_86", "-o", "traced")
        (kernel,) = ws.load("traced")
        assert kernel.code == "sm_86"

    def test_a_workload_runs_as_it(self, run):
        call = ["info", "--workload", "bfs", "--machine-code", "sm_80", "--json"]
        assert {row["code"] for row in json.loads(run(*call))} == {"sm_80"}

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (
                "predict small --machine-code sm_80",
                "nothing is run for a trace that is read; leave",
            ),
            (
                "predict kernels.cu --machine-code fast",
                "fast: is neither an architecture such as sm",
            ),
            (
                "info --workload bfs --machine-code sm_70",
                "sm_70: is not executed; choose one of sm_75",
            ),
            (
                "info --workload bfs --machine-code sm_big",
                "--machine-code = 'sm_big' is not like sm_80",
            ),
            (
                "info --workload bfs --machine-code",
                "say for which architecture: --machine-code sm_80",
            ),
            (
                "predict --workload bfs --machine-code --gpu a100 --gpu t4",
                "the GPUs have different ones (a100 sm_80, t4 sm_75); say which: --machine-code sm_80",
            ),
            (
                "predict --workload bfs --machine-code",
                "that of pascal-mdm, sm_61, is not executed, sm_75 to sm_121 are; name another GPU",
            ),
            (
                "predict --workload bfs --machine-code sm_86",
                "--machine-code sm_86: workloads have machine code for sm_75, sm_80, sm_90; choose one",
            ),
        ],
    )
    def test_what_cannot_run(self, folder, refused, arguments, told):
        ws.save(ws.App([ws.patterns.strided(1, blocks=1)], "small"), "small")
        assert told in refused(*arguments.split())


class TestSumsOfTraces:
    @pytest.fixture
    def traces(self, folder):
        """Three traces: two of one name in different folders, one kernel that all have."""
        for place, name, widths in (
            ("a/small", "small", (1, 32, 1)),
            ("b/small", "small", (1,)),
            ("c", "other", (1, 2)),
        ):
            kernels = [
                ws.patterns.strided(width, blocks=8, launch_id=number)
                for number, width in enumerate(widths, 1)
            ]
            ws.save(ws.App(kernels, name), place)
        return ["a/small", "b/small", "c"]

    def test_each_has_a_name_and_its_sum(self, traces, run):
        rows = pd.DataFrame(json.loads(run("predict", *traces, "--json")))
        assert rows["app"].tolist() == ["a/small"] * 3 + ["b/small"] + ["other"] * 2
        out = run("predict", *traces, "-m", "mdm", "--wide")
        table = [line.split("  ") for line in out.splitlines()]
        cells = {
            (line[0], text[1]): text[2]
            for line in table
            if len(line) > 3
            for text in [[cell.strip() for cell in line if cell.strip()]]
        }
        time = pd.DataFrame(json.loads(run("predict", *traces, "--json", "-m", "mdm")))
        of = time.groupby("app")["time_us"].sum()
        assert cells["all 2 kernels", "a/small"] == f"{of['a/small']:,.2f}"
        assert cells["all 2 kernels", "other"] == f"{of['other']:,.2f}"
        assert ("all 1 kernels", "b/small") not in cells
        assert cells["strided_gs1", "b/small"] == f"{of['b/small']:,.2f}"
        (whole,) = (text for text in table if text[0] == "all 3 traces")
        assert [cell.strip() for cell in whole if cell.strip()][1] == f"{of.sum():,.2f}"
        assert ("strided_gs1 (2 launches)", "a/small") in cells

    def test_a_trace_that_is_given_twice(self, traces, run):
        rows = json.loads(run("predict", "c", "c", "--json"))
        assert [row["app"] for row in rows] == [*["other (1)"] * 2, *["other (2)"] * 2]
