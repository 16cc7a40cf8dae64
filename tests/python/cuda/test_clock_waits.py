"""Kernels that wait for a clock: what they have waited is in their traces, and nothing else is."""

import pickle
import warnings

import numpy as np
import pytest

import warpstack as ws
from warpstack.cuda import toolchain
from warpstack.errors import TraceWarning
from warpstack.traces.awaited import awaited_us

pytestmark = pytest.mark.skipif(
    toolchain.find_nvrtc() is None, reason="NVRTC is not installed (warpstack[cuda] brings it)"
)

TICKS = 1_000_000
SOURCE = r"""
extern "C" __global__ void spin(long long* out, long long ticks) {
  long long start = clock64(), passed = 0;
  while (passed < ticks) passed = clock64() - start;
  out[blockIdx.x] = passed;
}
extern "C" __global__ void low(long long* out, long long ticks) {
  unsigned start = clock();
  while (clock() - start < (unsigned)ticks) {}
  out[blockIdx.x] = 1;
}
extern "C" __global__ void until(long long* out, long long ticks) {
  long long end = clock64() + ticks;
  for (;;) if (clock64() > end) break;
  out[blockIdx.x] = 1;
}
extern "C" __global__ void timer(long long* out, long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - start < ns);
  out[blockIdx.x] = now - start;
}
extern "C" __global__ void twice(long long* out, long long ticks) {
  long long start = clock64();
  while (clock64() - start < ticks / 2) {}
  out[blockIdx.x] = 0;
  start = clock64();
  while (clock64() - start < ticks / 2) {}
  out[blockIdx.x] = 1;
}
extern "C" __global__ void some(long long* out, long long ticks) {
  long long start = clock64();
  if (blockIdx.x == 0) while (clock64() - start < ticks) {}
  out[blockIdx.x] = 1;
}
extern "C" __global__ void all_but_one(long long* out, long long ticks) {
  long long start = clock64();
  if (blockIdx.x != 5) while (clock64() - start < ticks) {}
  out[blockIdx.x] = 1;
}
extern "C" __global__ void measured(long long* out, long long turns) {
  long long start = clock64();
  float x = threadIdx.x;
  for (int i = 0; i < turns; ++i) x = x * 1.5f + 1;
  out[blockIdx.x] = clock64() - start + (x == 7);
}
extern "C" __global__ void measured_often(long long* out, long long turns) {
  long long sum = 0;
  float x = threadIdx.x;
  for (int i = 0; i < turns; ++i) {
    long long start = clock64();
    x = x * 1.5f + 1;
    sum += clock64() - start;
  }
  out[blockIdx.x] = sum + (x == 7);
}
extern "C" __global__ void mixed(long long* out, long long turns) {
  long long sum = 0;
  for (int i = 0; i < turns; ++i) sum ^= clock64();
  out[blockIdx.x] = sum;
}
extern "C" __global__ void stamps(long long* out, long long turns) {
  for (int i = 0; i < turns; ++i) out[i % 8] = clock64();
}
"""


@pytest.fixture(scope="module", params=["ptx", "sass"])
def module(request):
    if request.param == "ptx":
        return ws.cuda.compile(SOURCE, device=ws.cuda.Device(0.125))
    if toolchain.find_nvrtc() is None or not can_run_machine_code():
        pytest.skip("nvdisasm or ptxas is not installed")
    return ws.cuda.compile(SOURCE, device=ws.cuda.Device(0.125), machine_code="sm_80")


def can_run_machine_code():
    try:
        ws.cuda.compile('extern "C" __global__ void k() {}', machine_code="sm_80")
    except ws.InputError:
        return False
    return True


def launched(module, name, grid, block, number=TICKS, **options):
    out = module.device.array(np.zeros(max(grid, 8), np.int64))
    trace = module.kernel(name).launch(grid, block, out, np.int64(number), **options)
    header = trace._core.header
    return trace, header["awaited_cycles"][:2], header["awaited_ns"][:2]


@pytest.mark.parametrize("name", ["spin", "low", "until", "twice"])
@pytest.mark.parametrize(("grid", "block"), [(1, 1), (3, 128)])
def test_the_wait_is_found_and_never_too_long(module, name, grid, block):
    _, (most, total), in_ns = launched(module, name, grid, block)
    assert tuple(in_ns) == (0, 0)
    assert 0.94 * TICKS <= most <= TICKS
    assert 0.94 * grid * TICKS <= total <= grid * TICKS


def test_the_timer_counts_nanoseconds(module):
    _, in_cycles, (most, total) = launched(module, "timer", 2, 32)
    assert tuple(in_cycles) == (0, 0)
    assert 0.94 * TICKS <= most <= TICKS
    assert most <= total <= 2 * TICKS


def test_one_block_of_many_waits(module):
    trace, (most, total), _ = launched(module, "some", 2000, 32)
    assert most == total
    assert 0.94 * TICKS <= most <= TICKS
    gpu = ws.gpu("a100")
    assert awaited_us(trace, gpu) == pytest.approx(most / gpu.clock_ghz / 1e3)


@pytest.mark.parametrize("name", ["measured", "measured_often", "mixed", "stamps"])
def test_measurements_are_no_waits(module, name):
    _, in_cycles, in_ns = launched(module, name, 2, 64, 2000)
    assert tuple(in_cycles) == tuple(in_ns) == (0, 0)


def test_waits_of_many_blocks_follow_one_another(module):
    gpu = ws.gpu("a100").replace(num_sms=1)
    trace, (most, total), _ = launched(module, "spin", 70, 32)
    waves = 3  # of 32 blocks
    assert awaited_us(trace, gpu) == pytest.approx(waves * total / 70 / gpu.clock_ghz / 1e3)
    assert awaited_us(trace, gpu) > 2 * most / gpu.clock_ghz / 1e3


@pytest.mark.parametrize("beyond", [0, 1, 200])
def test_blocks_that_wait_alike_take_whole_waves(module, beyond):
    gpu = ws.gpu("a100").replace(num_sms=2)
    blocks = 64 + beyond  # 64 have a place
    trace, (_, total), _ = launched(module, "spin", blocks, 32)
    waves = {0: 1, 1: 2, 200: 5}[beyond]
    in_us = gpu.clock_ghz * 1e3
    assert awaited_us(trace, gpu) == pytest.approx(waves * total / blocks / in_us, rel=0.07)
    assert awaited_us(trace, gpu) > 0.94 * waves * TICKS / in_us


def test_blocks_that_do_not_wait_alike_take_no_whole_waves(module):
    gpu = ws.gpu("a100").replace(num_sms=1)
    trace, (most, total), _ = launched(module, "all_but_one", 33, 32)
    assert trace._core.header["awaited_cycles"][2] == 0
    # The one that waits for nothing leaves its place to the last one.
    assert awaited_us(trace, gpu) == pytest.approx(max(most, total / 32) / gpu.clock_ghz / 1e3)


def test_a_time_line_has_them_and_predictions_say_that_they_do_not(module):
    gpu = ws.gpu("a100")
    trace, (most, _), _ = launched(module, "spin", 1, 32)
    wait = most / gpu.clock_ghz / 1e3
    line = ws.timeline(trace, gpu)
    assert line.totals["kernels_us"] == pytest.approx(wait + gpu.launch_us_nsys)
    assert line.time_us_low >= wait
    for call in (ws.predict, ws.simulate):
        with pytest.warns(TraceWarning, match=r"spin \(69\d\.\d us\) only watches a clock"):
            call(trace, gpu)
    short, _, _ = launched(module, "measured", 1, 32, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TraceWarning)
        ws.predict(short, gpu)


def test_copies_and_files_keep_them(module, tmp_path):
    trace, in_cycles, _ = launched(module, "spin", 2, 32)
    least = trace._core.header["awaited_cycles"][2]
    assert 0.94 * TICKS <= least <= in_cycles[0]
    in_cycles = (*in_cycles, least)
    assert pickle.loads(pickle.dumps(trace))._core.header["awaited_cycles"] == in_cycles
    ws.save(trace, tmp_path / "saved")
    (again,) = ws.load(tmp_path / "saved")
    assert tuple(again._core.header["awaited_cycles"]) == tuple(in_cycles)
    assert again.digest == trace.digest


def test_samples_of_blocks_wait_as_all(module):
    _, (most, total), _ = launched(module, "spin", 512, 32, sample_blocks=8, run_others=False)
    assert 0.94 * TICKS <= most <= TICKS
    assert 0.9 * 512 * TICKS <= total <= 512 * TICKS
