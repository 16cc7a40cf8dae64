"""Statistics by line of source: sums, hand-computed counts, and advice on kernels made for it."""

import re

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.reporting.lines import NOBODY, WRITTEN_BACK, costliest
from warpstack.reporting.listing import listing
from warpstack.reporting.source_text import Sources
from warpstack.traces.trace import distinct_names

PARTS = ws._core.STACK_COMPONENTS

SOURCE = r"""
__global__ void straight(float* out, const float* in) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  out[i] = in[i];
}
__global__ void strided(float* out, const float* in) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  float a = in[i * 32];
  out[i] = a;
}
__global__ void conflicts(float* out, const float* in) {
  __shared__ float tile[32 * 32];
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  tile[threadIdx.x * 32] = in[i];
  __syncthreads();
  out[i] = tile[(31 - threadIdx.x) * 32];
}
__global__ void diverged(float* out, const float* in) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  float a = in[i];
  if (threadIdx.x % 4 == 0)
#pragma unroll 1
    for (int j = 0; j < 20; j++) a = a * 1.5f + __sinf(a);
  out[i] = a;
}
__global__ void guarded(float* out, const float* in) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < int(gridDim.x * blockDim.x))
#pragma unroll 1
    for (int j = 0; j < 20; j++) out[i] = in[i];
}
__global__ void crowd(float* out, const float* in) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  atomicAdd(out + i % 2, in[i]);
}
__global__ void again(float* out, const float* in) {
  float a = 0;
#pragma unroll 1
  for (int r = 0; r < 2; r++)
#pragma unroll 1
    for (int i = threadIdx.x; i < 32768; i += 256)
      a += in[i];
  out[threadIdx.x + blockIdx.x * blockDim.x] = a;
}
"""

needs_compiler = pytest.mark.skipif(not ws.cuda.compilers(), reason="no CUDA compiler is there")


def line_of(text):
    """Return the number of the first line that has a text."""
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "kernels.cu"
    path.write_text(SOURCE.replace("__global__", 'extern "C" __global__'))
    module = ws.cuda.compile(path)
    data = ws.cuda.array(np.ones(32 * 4 * 256, np.float32))

    def run(name, blocks=4, threads=256):
        out = ws.cuda.array(np.zeros(blocks * threads, np.float32))
        return module.kernel(name).launch(blocks, threads, out, data)

    return run


def trace_of(launched):
    return getattr(launched, "trace", launched)


@needs_compiler
class TestAdvice:
    @pytest.mark.parametrize(
        ("name", "threads", "line", "words"),
        [
            ("strided", 256, "in[i * 32]", ["32 sectors per access where 4 would do"]),
            ("conflicts", 32, "out[i] = tile", ["bank conflicts: 31 more passes"]),
            ("diverged", 256, "a * 1.5f", [" of 32 lanes are active"]),
            ("crowd", 256, "atomicAdd", ["30 more lanes of a warp change a word"]),
        ],
    )
    def test_is_given_where_it_helps(self, launch, name, threads, line, words):
        kernel = trace_of(launch(name, threads=threads))
        gpu = ws.gpu("pascal-mdm")
        # Four blocks of a few instructions fill no GPU but one of a single SM.
        gpu = gpu.replace(num_sms=1) if name in ("diverged", "conflicts") else gpu
        table = ws.lines(kernel, gpu, simulate=False).set_index("source_line")
        advice = table.loc[line_of(line), "advice"]
        assert all(word in advice for word in words), advice
        # Lanes that meet may be added up in the warp or in the block.
        assert len(advice.splitlines()) == (2 if name == "crowd" else 1)
        # Other lines of the kernel have nothing to mend, apart from the other half of the exchange.
        others = set(table.index[table["advice"] != ""]) - {line_of(line)}
        same = {line_of("tile[threadIdx.x * 32] =")} if name == "conflicts" else set()
        loop = {line_of("for (int j")} if name == "diverged" else set()
        loop |= {0}  # branches that the compiler gives no line
        assert others <= same | loop

    def test_what_no_tile_holds_is_not_to_be_kept(self, launch):
        """Each block reads 128 KiB twice: tiles of 48 KiB have gone when it comes back."""
        table = ws.lines(trace_of(launch("again", threads=256)), "pascal-mdm", simulate=False)
        assert not table["changes"].str.contains("kept_in_block").any()

    def test_is_absent_where_nothing_stands_out(self, launch):
        table = ws.lines(trace_of(launch("straight")), "pascal-mdm", simulate=False)
        assert list(table["advice"]) == [""] * len(table)

    def test_a_guard_that_all_lanes_pass_is_not_diverged(self, launch):
        """The branch past the guarded lines is executed with no lane; without it, all 32 are active."""
        table = ws.lines(trace_of(launch("guarded")), "pascal-mdm", simulate=False)
        assert table["active_lanes"].min() < 32
        assert not table["advice"].str.contains("lanes are active").any()

    def test_small_blocks_are_not_diverged(self, launch):
        table = ws.lines(trace_of(launch("straight", threads=8)), "pascal-mdm", simulate=False)
        assert table["active_lanes"].max() == 8
        assert not table["advice"].str.contains("lanes are active").any()


@needs_compiler
class TestCounts:
    def test_by_hand(self, launch):
        kernel = trace_of(launch("strided"))
        table = ws.lines(kernel, "pascal-mdm").set_index("source_line")
        load = table.loc[line_of("in[i * 32]")]
        # Each lane reads 4 bytes of a sector of its own; 128 bytes fit into 4.
        assert load["sectors_per_access"] == 32
        assert load["least_sectors_per_access"] == 4
        assert load["active_lanes"] == 32
        # 4 blocks of 8 warps, 32 lanes with a line of 128 bytes each, nothing read twice.
        assert load["dram_bytes"] == 4 * 8 * 32 * 128
        assert load["l1_hit_rate"] == 0
        assert load["bank_conflicts"] == 0
        assert costliest(table.reset_index())["source_line"].iloc[0] == line_of("in[i * 32]")

    def test_sums_to_the_launch(self, launch):
        kernel = trace_of(launch("conflicts", threads=32))
        result = ws.simulate(kernel, "pascal-mdm")
        model = ws.predict(kernel, "pascal-mdm").iloc[0]
        for per_instruction in (False, True):
            table = ws.lines(kernel, "pascal-mdm", per_instruction=per_instruction)
            for part in PARTS:
                whole = pytest.approx(result.cpi_stack[part], rel=1e-9, abs=1e-12)
                assert table[f"cpi_{part}"].sum() == whole
                assert table[f"for_{part}"].sum() == whole
                predicted = pytest.approx(model[f"cpi_{part}"], rel=1e-9, abs=1e-12)
                assert table[f"model_cpi_{part}"].sum() == predicted
            assert table["share"].sum() == pytest.approx(1)
            assert table["executions"].sum() == kernel.num_instructions
            issued = table["active_lanes"].fillna(0) * table["executions"]
            assert issued.sum() == pytest.approx(kernel.num_thread_instructions)
        assert list(table.loc[table["source_line"] == NOBODY, "opcode"]) == [""]

    def test_lines_outlive_a_file(self, launch, tmp_path):
        kernel = trace_of(launch("strided"))
        ws.save(ws.App([kernel]), tmp_path / "saved")
        again = ws.load(tmp_path / "saved")
        first, second = (ws.lines(one, "pascal-mdm") for one in (kernel, again))
        assert first.equals(second)


def test_without_lines_all_is_one():
    kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    table = ws.lines(kernel, "pascal-mdm")
    assert list(table["source_line"]) == [WRITTEN_BACK, NOBODY, 0]
    assert table["executions"].sum() == kernel.num_instructions
    alone = ws.lines(kernel, "pascal-mdm", simulate=False)
    assert "cpi_base" not in alone
    assert alone["share"].sum() == pytest.approx(1)
    with pytest.raises(ws.InputError, match="there is no model 'nothing'"):
        ws.lines(kernel, "pascal-mdm", model="nothing")


@pytest.fixture(scope="module")
def saved(launch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    ws.save(ws.App([trace_of(launch("strided"))]), folder / "trace")
    (folder / "k.cu").write_text(SOURCE)
    return folder


@needs_compiler
class TestCommand:
    def test_listing(self, saved, capsys):
        source = str(saved / "k.cu")
        arguments = ["lines", str(saved / "trace"), "--gpu", "pascal-mdm"]
        assert main([*arguments, "--source", source]) == 0
        text = capsys.readouterr().out
        assert "float a = in[i * 32];" in text
        assert "ld.global" not in text
        assert f"line {line_of('in[i * 32]')}:" in text.split("cost most:")[1].splitlines()[1]
        assert "32 sectors per access where 4 would do" in text
        assert main([*arguments, "--instructions", "--no-simulate"]) == 0
        text = capsys.readouterr().out
        assert "ld.global" in text

    def test_csv_and_errors(self, saved, capsys):
        arguments = ["lines", str(saved / "trace"), "--gpu", "pascal-mdm"]
        assert main([*arguments, "--csv"]) == 0
        assert capsys.readouterr().out.startswith("kernel,name,file,source_line,executions,")
        assert main([*arguments, "--source", str(saved / "none.cu")]) == 2
        assert "none.cu: cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("gpu", ["pascal-mdm", "titan-v", "rtx3070"])
def test_dram_bytes_sum_to_those_of_the_caches(gpu):
    """Of launches that find dirty lines of others in L2, too; a line never has less than nothing."""
    app = ws.App(
        [
            ws.patterns.strided(gs=gs, iterations=3, blocks=28, launch_id=number)
            for number, gs in enumerate((1, 32, 8), 1)
        ]
    )
    profiles = ws.simulate_caches(app, gpu)
    for per_instruction in (False, True):
        table = ws.lines(app, gpu, simulate=False, per_instruction=per_instruction)
        assert (table["dram_bytes"] >= 0).all()
        for kernel, profile in zip(app, profiles, strict=True):
            totals = profile.totals
            moved = 32 * (totals["dram_read_sectors"] + totals["dram_write_sectors"])
            own = table[table["kernel"] == kernel.launch_id]
            assert own["dram_bytes"].sum() == moved


def named(name, launch_id):
    """Return a launch of a kernel of that name."""
    kernel = ws.patterns.KernelBuilder(name, grid=1, block=32, launch_id=launch_id)
    kernel.emit("EXIT")
    return kernel.build()


def test_names_tell_instances_of_a_template_apart():
    """Names of the Itanium ABI, decoded by hand: I, f in angle brackets are the template's arguments."""
    short = [named("_Z4copyPf", 1), named("_Z4copyPf", 2), named("other", 3)]
    assert distinct_names(short) == ["copy", "copy", "other"]
    instances = [named("_Z3addIiEvPT_", 1), named("_Z3addIfEvPT_", 2)]
    assert distinct_names(instances) == ["add<int>", "add<float>"]
    overloads = [named("_Z3addPi", 1), named("_Z3addPf", 2)]
    assert distinct_names(overloads) == ["add(int*)", "add(float*)"]
    table = ws.lines(ws.App(instances), "pascal-mdm", simulate=False)
    assert list(table["name"].unique()) == ["add<int>", "add<float>"]
    both = ws.compare(ws.App(instances), ws.App(instances[:1]), gpu="pascal-mdm")
    assert {"add<int>", "add<float>"} <= set(both["name"])


def text_of(code, folder):
    """Return the text of the file of a trace that knows no files."""
    path = folder / "k.cu"
    path.write_text(code + "\n")
    return Sources((), [path])


def test_listing_wraps_advice_and_cuts_code_at_the_width_only(tmp_path):
    kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    table = ws.lines(kernel, "pascal-mdm", simulate=False)
    table["advice"] = "many words " * 20
    whole = listing(table, text_of("x" * 300, tmp_path))
    assert max(map(len, whole.splitlines())) > 200
    narrow = listing(table, text_of("x" * 300, tmp_path), width=60)
    assert max(map(len, narrow.splitlines())) <= 60
    # Advice is wrapped, not cut: all of its words are there.
    assert narrow.count("many") == whole.count("many") > 0


def test_listing_folds_code_where_there_is_room(tmp_path):
    kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    table = ws.lines(kernel, "pascal-mdm", simulate=False)
    first = table[table["source_line"] <= 0].copy()
    first = pd.concat([first, first.iloc[:1].assign(source_line=1)], ignore_index=True)
    code = "  y[i] = alpha * x[32 * threadIdx.x + blockIdx.x] + beta * y[i];"
    lines = (
        listing(first, text_of(code, tmp_path), width=100).split("The lines that")[0].splitlines()
    )
    assert max(map(len, lines)) <= 100
    assert " ".join(code.split()) in " ".join(" ".join(lines).split())


def test_listing_has_no_exponents():
    kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    table = ws.lines(kernel, "pascal-mdm", simulate=False)
    for count, text in ((5_870_000, "5,870k"), (58_700_000, "58.7M"), (9_999, "9,999")):
        assert f" {text} " in listing(table.assign(executions=count))


def test_listing_of_a_kernel_in_the_first_line(tmp_path):
    """Lines before the first are not lines of the source: negative ones have a meaning of their own."""
    kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    table = ws.lines(kernel, "pascal-mdm", simulate=False)
    first = table[table["source_line"] <= 0].copy()
    first = pd.concat([first, first.iloc[:1].assign(source_line=1)], ignore_index=True)
    shown = listing(first, text_of("only line", tmp_path)).split("The lines that")[0]
    assert shown.count("only line") == 1
    assert len(re.findall(r" -\d+  ", shown)) == 0


def test_data_of_the_launch_before_are_not_used_again():
    """L2 has all of the second launch's data, each of which it loads once."""
    apps = ws.App([ws.patterns.stream(), ws.patterns.stream()])
    table = ws.lines(apps, "a100", simulate=False)
    first, second = (row for _, row in table[table["source_line"] >= 0].iterrows())
    assert first["l2_hit_rate"] < 0.1
    assert second["l2_hit_rate"] > 0.9
    assert second["l1_hit_rate"] < 0.1
    assert "used again" not in second["advice"]
