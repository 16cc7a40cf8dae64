"""Advice with a price: each rule on a small kernel with the fault, and on the same kernel without it."""

import re

import numpy as np
import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.models import program_changes
from warpstack.reporting import advice
from warpstack.reporting.lines import LAUNCH
from warpstack.reporting.listing import listing

SOURCE = r"""
#define ID (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void strided(float* out, const float* in, int n) {
  float v = 0;
  for (int k = 0; k < 16; ++k) v += in[ID * 16 + k];
  out[ID] = v;
}
extern "C" __global__ void straight(float* out, const float* in, int n) {
  float v = 0;
  for (int k = 0; k < 16; ++k) v += in[k * gridDim.x * blockDim.x + ID];
  out[ID] = v;
}
extern "C" __global__ void conflicts(float* out, const float* in, int n) {
  __shared__ float s[256 * 32];
  float v = in[ID];
  s[threadIdx.x] = v;
  for (int k = 0; k < 16; ++k) s[(threadIdx.x * 32 + k) % 8192] = v;
  __syncthreads();
  out[ID] = s[threadIdx.x];
}
extern "C" __global__ void banks(float* out, const float* in, int n) {
  __shared__ float s[256 * 32];
  float v = in[ID];
  for (int k = 0; k < 16; ++k) s[(threadIdx.x + k * 256) % 8192] = v;
  __syncthreads();
  out[ID] = s[threadIdx.x];
}
extern "C" __global__ void lanes(float* out, const float* in, int n) {
  float v = in[ID];
  if (threadIdx.x % 2)
    for (int k = 0; k < 64; ++k) v = v * 1.01f + 0.5f;
  out[ID] = v;
}
extern "C" __global__ void warps(float* out, const float* in, int n) {
  float v = in[ID];
  if (threadIdx.x >= 128)
    for (int k = 0; k < 64; ++k) v = v * 1.01f + 0.5f;
  out[ID] = v;
}
extern "C" __global__ void count(unsigned* out, const unsigned* in, int n) {
  atomicAdd(out + in[ID] % 64, 1u);
}
extern "C" __global__ void count_block(unsigned* out, const unsigned* in, int n) {
  __shared__ unsigned s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  unsigned v = in[ID];
#pragma unroll 1
  for (int k = 0; k < 64; ++k, v = v * 1664525u + 1013904223u)
    atomicAdd(s + (v >> 31), k);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(out + threadIdx.x, s[threadIdx.x]);
}
extern "C" __global__ void count_copies(unsigned* out, const unsigned* in, int n) {
  __shared__ unsigned s[32 * 65];
  for (int i = threadIdx.x; i < 32 * 65; i += 256) s[i] = 0;
  __syncthreads();
  unsigned v = in[ID];
#pragma unroll 1
  for (int k = 0; k < 64; ++k, v = v * 1664525u + 1013904223u)
    atomicAdd(s + threadIdx.x % 32 + 32 * (v >> 31), k);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(out + threadIdx.x, s[threadIdx.x]);
}
extern "C" __global__ void divide(unsigned* out, const unsigned* in, unsigned n) {
  unsigned v = in[ID];
#pragma unroll 1
  for (int k = 0; k < 16; ++k) v = v / n + v % n;
  out[ID] = v;
}
extern "C" __global__ void shift(unsigned* out, const unsigned* in, unsigned n) {
  unsigned v = in[ID];
#pragma unroll 1
  for (int k = 0; k < 16; ++k) v = (v >> n) + (v & n);
  out[ID] = v;
}
extern "C" __global__ void in_memory(float* out, const float* in, int n) {
#pragma unroll 1
  for (int k = 0; k < n; ++k) out[ID] += in[ID] * k;
}
extern "C" __global__ void in_register(float* out, const float* in, int n) {
  float v = 0;
  float u = in[ID];
#pragma unroll 1
  for (int k = 0; k < n; ++k) v += u * k;
  out[ID] = v;
}
extern "C" __global__ void again(float* out, const float* in, int n) {
  float v = 0;
#pragma unroll 1
  for (int r = 0; r < 4; ++r)
#pragma unroll 1
    for (int i = threadIdx.x; i < 4096; i += 256) v += in[blockIdx.x * 4096 + i];
  out[ID] = v;
}
extern "C" __global__ void once(float* out, const float* in, int n) {
  float v = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < 4096; i += 256) v += in[blockIdx.x * 4096 + i];
  out[ID] = v;
}
extern "C" __global__ void barriers(float* out, const float* in, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = in[ID];
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  out[ID] = s[0];
}
extern "C" __global__ void shuffles(float* out, const float* in, int n) {
  float v = in[ID];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  out[ID] = v;
}
extern "C" __global__ void dots(float* out, const float* in, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = in[ID];
  __syncthreads();
  float v[4] = {};
  for (int j = 0; j < 4; ++j)
#pragma unroll 1
    for (int i = 0; i < 64; ++i) v[j] += s[(threadIdx.x & 7) * 8 + i] * s[i + 64 * j];
  out[ID] = v[0] + v[1] + v[2] + v[3];
}
extern "C" __global__ void dots_of_four(float* out, const float* in, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = in[ID];
  __syncthreads();
  float v[16] = {};
#pragma unroll 1
  for (int i = 0; i < 16; ++i) {
    float a[4], b[4];
    for (int j = 0; j < 4; ++j) a[j] = s[(threadIdx.x & 7) * 8 + i + 16 * j];
    for (int j = 0; j < 4; ++j) b[j] = s[i + 64 * j];
    for (int p = 0; p < 4; ++p)
      for (int q = 0; q < 4; ++q) v[p * 4 + q] += a[p] * b[q];
  }
  float sum = 0;
  for (int p = 0; p < 16; ++p) sum += v[p];
  out[ID] = sum;
}
extern "C" __global__ void straight_atomics(float* out, const float* in, int n) {
  atomicAdd(out + ID, in[ID]);
}
"""

pytestmark = pytest.mark.skipif(not ws.cuda.compilers(), reason="no CUDA compiler is there")


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    path = tmp_path_factory.mktemp("advice") / "kernels.cu"
    path.write_text(SOURCE)
    module = ws.cuda.compile(path)

    def run(name, blocks=56, number=16, threads=256):
        size = blocks * threads
        rng = np.random.default_rng(1)
        kind = np.uint32 if name.startswith(("count", "divide", "shift")) else np.float32
        data = rng.integers(0, 1 << 20, 17 * size).astype(kind)
        out = ws.cuda.array(np.zeros(size, kind))
        launched = module.kernel(name).launch(
            blocks, threads, out, ws.cuda.array(data), np.int32(number)
        )
        return getattr(launched, "trace", launched)

    return run


@pytest.fixture(scope="module")
def gpu():
    return ws.gpu("a100").replace(num_sms=8)


def advised(kernel, gpu):
    """Return the changes that a kernel is advised."""
    table = ws.lines(kernel, gpu, simulate=False)
    return {one for changes in table["changes"] for one in changes.split()}


RULES = [
    ("strided", "straight", "coalesced", "neighbouring addresses"),
    ("conflicts", "banks", "no_bank_conflicts", "pad the rows"),
    ("lanes", "warps", "no_divergence", "16 of 32 lanes"),
    ("count", "count_block", "private_atomics", "in shared memory first"),
    ("count_block", "count_copies", "combined_atomics", "several copies of the bins"),
    ("divide", "shift", "cheap_division", "shift and mask"),
    ("in_memory", "in_register", "kept_in_registers", "a variable of the thread"),
    ("again", "once", "kept_in_block", "used again, too late for L1"),
    ("barriers", "shuffles", "no_barriers", "by shuffles"),
    ("dots", "dots_of_four", "register_tiles", "4 x 4"),
]


@pytest.mark.parametrize(("fault", "mended", "change", "words"), RULES)
def test_is_given_where_there_is_something_to_mend(launch, gpu, fault, mended, change, words):
    small = ws.gpu("pascal-mdm").replace(num_sms=8, l2_slices=2) if fault == "again" else gpu
    kernel = launch(fault)
    table = ws.lines(kernel, small, simulate=False)
    given = table[table["changes"].str.contains(change)]
    assert len(given) >= 1
    assert given["advice"].str.contains(words).any()
    assert change not in advised(launch(mended), small)


def test_every_change_of_a_line_has_a_rule():
    """Those of the launch have tests of their own, and what stands for no change of a line is left out."""
    tested = {change for _, _, change, _ in RULES}
    others = {"padded_pitch", "free_occupancy", "full_last_wave", "no_dependencies"}
    assert tested | others == set(ws.models.PROGRAM_CHANGES)
    assert not tested & others


@pytest.mark.parametrize("fault", [rule[0] for rule in RULES])
def test_the_gain_is_that_of_the_change_of_these_rows(launch, gpu, fault):
    kernel = launch(fault)
    table = ws.lines(kernel, gpu, simulate=False)
    rows_of = kernel.instructions.groupby("source_line").groups
    for row in table[table["advice"] != ""].to_dict("records"):
        changes = row["changes"].splitlines()
        texts = row["advice"].splitlines()
        assert len(texts) == len(changes)
        assert row["gain"] >= advice.LEAST_GAIN
        whole = row["source_line"] == LAUNCH
        for place, (change, text) in enumerate(zip(changes, texts, strict=True)):
            rows = None if whole else rows_of[row["source_line"]]
            if change == "no_divergence":  # all lines of a branch at once
                lines = table[table["changes"].str.contains(change)]["source_line"]
                rows = [one for line in lines for one in rows_of[line]]
                if len(lines) > 1:
                    continue  # lines without a gain of their own may be among them
            gain = ws.models.program_gains(
                kernel, gpu, program_changes.PRICED_BY, changes=[change], rows=rows
            )["speedup"][0]
            assert text.endswith(f": {gain:.3g} times faster")
            if place == 0:
                assert row["gain"] == pytest.approx(gain)


def test_lines_without_advice_have_no_gain(launch, gpu):
    table = ws.lines(launch("strided"), gpu)
    has_advice = table["advice"] != ""
    assert has_advice.any()
    assert not has_advice.all()
    assert (table["gain"].notna() == has_advice).all()
    assert (table["changes"] != "").equals(has_advice)


def test_the_launch_as_a_whole(launch, gpu):
    # Eight blocks at once on the only SM, and a ninth that is alone.
    one = gpu.replace(num_sms=1, blocks_per_sm=8)
    kernel = launch("warps", blocks=9)
    table = ws.lines(kernel, one, simulate=False)
    (whole,) = table[table["source_line"] == LAUNCH].to_dict("records")
    assert whole["changes"] == "full_last_wave"
    assert "the last wave has 1 of 8 thread blocks" in whole["advice"]
    assert np.isnan(whole["active_lanes"])
    assert (whole["share"], whole["executions"]) == (0, 0)
    even = ws.lines(launch("warps", blocks=8), one, simulate=False)
    assert LAUNCH not in set(even["source_line"])
    shown = listing(table)
    assert "The launch as a whole:" in shown
    assert shown.splitlines()[-1].endswith(f": {whole['gain']:.3g} times faster")


def test_commands_print_the_gain(launch, capsys, tmp_path):
    ws.save(ws.App([launch("strided")]), tmp_path / "trace")
    assert main(["lines", str(tmp_path / "trace"), "--gpu", "pascal-mdm", "--wide"]) == 0
    assert re.search(r"^    - .*: [\d.]+ times faster$", capsys.readouterr().out, re.MULTILINE)
    assert main(["lines", str(tmp_path / "trace"), "--gpu", "pascal-mdm", "--csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert {"advice", "changes", "gain"} <= set(head.split(","))
    assert any(change in row for row in rows for change in ws.models.PROGRAM_CHANGES)
    report = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "trace"), "--gpu", "pascal-mdm", "-o", str(report)]) == 0
    assert "times faster" in report.read_text()


def test_what_is_read_once_stored_or_counted_is_not_used_again(launch, gpu):
    small = ws.gpu("pascal-mdm").replace(num_sms=8, l2_slices=2)
    for name in ("straight", "once", "straight_atomics", "count", "shuffles"):
        kernel = launch(name)
        # The second launch finds all in L2.
        for app in (kernel, ws.App([kernel, kernel])):
            table = ws.lines(app, small, simulate=False)
            assert not table["advice"].str.contains("again").any(), name
    again = ws.lines(launch("again"), small, simulate=False)
    assert again["advice"].str.contains("used again, too late for L1").any()
    # What L1 keeps does not come too late for it.
    large = ws.lines(launch("again"), gpu, simulate=False)
    assert not large["advice"].str.contains("too late").any()


def test_atomics_of_shared_memory_need_no_padding(launch, gpu):
    text = "\n".join(ws.lines(launch("count_block"), gpu, simulate=False)["advice"])
    assert "copies of the bins" in text
    assert "pad the rows" not in text
    assert "in shared memory first" not in text


def test_instructions_have_the_advice_of_their_line_that_is_about_them(launch, gpu):
    kernel = launch("count")
    table = ws.lines(kernel, gpu, simulate=False, per_instruction=True)
    given = table[table["changes"].str.contains("private_atomics")]
    assert len(given) == 1
    assert given["opcode"].iloc[0].startswith(("red", "atom"))
    of_line = ws.lines(kernel, gpu, simulate=False)
    assert given["gain"].iloc[0] == of_line["gain"].max()


def test_what_limits_an_sm_is_named():
    def launch(**more):
        k = ws.patterns.KernelBuilder("k", grid=4, block=64, **more)
        k.emit("EXIT")
        return k.build()

    gpu = ws.gpu("a100").replace(num_sms=4)
    (shared,) = advice.for_launch(launch(shared_memory_bytes=40_000), gpu)
    assert shared.change == "free_occupancy"
    assert shared.text.startswith("shared memory lets an SM hold 4 thread blocks")
    (registers,) = advice.for_launch(launch(registers_per_thread=255), gpu)
    assert registers.text.startswith("registers let an SM hold 4 thread blocks")
    assert advice.for_launch(launch(), gpu) == []
