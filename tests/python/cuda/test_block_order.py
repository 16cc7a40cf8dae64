"""Blocks in the order of time: queues of work, races, flags, locks."""

import heapq

import numpy as np
import pytest

import warpstack as ws
from warpstack.cuda import toolchain
from warpstack.errors import InputError

pytestmark = pytest.mark.skipif(
    toolchain.find_nvrtc() is None, reason="NVRTC is not installed (warpstack[cuda] brings it)"
)

QUEUE = r"""
extern "C" __global__ void work(int* next, int* owner, float* out, const int* length, int tiles) {
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int t = tile;
    __syncthreads();
    if (t >= tiles) return;
    float r = t;
    for (int i = 0; i < length[t]; ++i) r = r * 0.5f + 1;
    out[t * blockDim.x + threadIdx.x] = r;
    if (threadIdx.x == 0) owner[t] = blockIdx.x;
  }
}
"""


def launched(source, name, grid, block, *arrays, **options):
    """Run a kernel on a new device; return its arrays afterwards and the trace."""
    device = ws.cuda.Device(0.125)
    there = [device.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
    kernel = ws.cuda.compile(source, device=device).kernel(name)
    trace = kernel.launch(grid, block, *there, **options)
    return [np.asarray(a) for a in there if not isinstance(a, (int, np.generic))], trace


def draw(lengths, blocks, block=64, **options):
    lengths = np.asarray(lengths, np.int32)
    out = np.zeros(len(lengths) * block, np.float32)
    (_, owner, *_), trace = launched(
        QUEUE,
        "work",
        blocks,
        block,
        np.zeros(1, np.int32),
        np.full(len(lengths), -1, np.int32),
        out,
        lengths,
        np.int32(len(lengths)),
        **options,
    )
    assert owner.min() >= 0
    return owner, trace


def greedy(costs, blocks):
    """List scheduling: the block that is free first takes the next tile."""
    free = [(0.0, b) for b in range(blocks)]
    owner = []
    for cost in costs:
        time, b = heapq.heappop(free)
        owner.append(b)
        heapq.heappush(free, (time + cost, b))
    return np.array(owner)


@pytest.mark.parametrize(("tiles", "blocks"), [(240, 24), (100, 13), (40, 40), (7, 12)])
def test_equal_tiles_are_shared_evenly(tiles, blocks):
    owner, _ = draw(np.full(tiles, 200), blocks)
    assert np.abs(np.bincount(owner, minlength=blocks) - tiles / blocks).max() <= 1


def test_one_block_after_the_other_takes_all():
    owner, _ = draw(np.full(60, 50), 6, order="blocks")
    assert set(owner) == {0}


@pytest.mark.parametrize("shape", ["random", "falling", "rising", "one long"])
def test_unequal_tiles_go_to_the_block_that_is_free_first(shape):
    blocks, between = 10, 300  # rounds of the loop that drawing takes as long as
    lengths = np.random.default_rng(5).integers(400, 4000, 120)
    if shape == "falling":
        lengths = np.sort(lengths)[::-1]
    if shape == "rising":
        lengths = np.sort(lengths)
    if shape == "one long":
        lengths[:] = 800
        lengths[3] = 9000
    owner, _ = draw(lengths, blocks)
    costs = lengths + between
    expected = greedy(costs, blocks)
    got = np.bincount(owner, costs, minlength=blocks)
    assert got.max() == pytest.approx(np.bincount(expected, costs).max(), rel=0.03)
    fewer = np.sort(np.bincount(owner, minlength=blocks))
    assert np.abs(fewer - np.sort(np.bincount(expected, minlength=blocks))).max() <= 2


def test_more_blocks_than_fit_begin_when_others_end():
    """Blocks that draw once: the tiles go to blocks in order, although not all fit at once."""
    source = r"""
extern "C" __global__ void once(int* next, int* seen) {
  if (threadIdx.x == 0) seen[blockIdx.x] = atomicAdd(next, 1);
}
"""
    (_, seen), _ = launched(
        source, "once", 3000, 1024, np.zeros(1, np.int32), np.zeros(3000, np.int32)
    )
    assert sorted(seen) == list(range(3000))
    assert np.abs(seen - np.arange(3000)).max() < 2 * 144


@pytest.mark.parametrize("order", [None, "time", "blocks"])
def test_results_and_traces_repeat_on_any_number_of_threads(order, short_shares):
    short_shares(20)
    lengths = np.random.default_rng(7).integers(10, 60, 90)
    first, trace = draw(lengths, 9, order=order, workers=1)
    for workers in (1, 2, 5):
        owner, again = draw(lengths, 9, order=order, workers=workers)
        assert np.array_equal(owner, first)
        assert again.digest == trace.digest


RELAX = r"""
extern "C" __global__ void relax(const int* to, int* level, int* changed, int nodes) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= nodes || level[v] == 1 << 20) return;
  int next = level[v] + 1;
  for (int e = 0; e < 3; ++e) {
    if (atomicMin(&level[to[3 * v + e]], next) > next) *changed = 1;
  }
}
"""


def launches_of_search(order):
    """Relax a graph in place until nothing changes: a node's block is that of its level."""
    levels, width = 24, 64
    nodes = levels * width
    generator = np.random.default_rng(2)
    to = np.zeros((nodes, 3), np.int32)
    for depth in range(levels):
        onwards = min(depth + 1, levels - 1) * width
        to[depth * width : (depth + 1) * width] = onwards + generator.integers(0, width, (width, 3))
        to[depth * width : (depth + 1) * width, 0] = onwards + np.arange(width)
    device = ws.cuda.Device(0.125)
    kernel = ws.cuda.compile(RELAX, device=device).kernel("relax")
    start = np.full(nodes, 1 << 20, np.int32)
    start[:width] = 0
    level, there = device.array(start), device.array(to.ravel())
    changed = device.zeros(1, np.int32)
    launches = 0
    while launches == 0 or np.asarray(changed)[0]:
        launches += 1
        changed.copy_from(np.zeros(1, np.int32))
        given = there, level, changed, np.int32(nodes)
        kernel.launch(levels, width, *given, trace=False, order=order)
    assert np.array_equal(np.asarray(level), np.repeat(np.arange(levels), width))
    return launches


def test_a_search_in_place_takes_about_a_launch_per_level():
    assert launches_of_search("blocks") == 2
    assert launches_of_search(None) == 24


def test_persistent_product():
    source = r"""
extern "C" __global__ void product(const float* a, const float* b, float* c, int* next, int* owner,
                                   int n) {
  __shared__ float s[16][16], u[16][16];
  __shared__ int tile;
  int x = threadIdx.x, y = threadIdx.y, side = n / 16;
  for (;;) {
    if (x + y == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int t = tile, row = t / side * 16, column = t % side * 16;
    if (t >= side * side) return;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
      s[y][x] = a[(row + y) * n + k + x];
      u[y][x] = b[(k + y) * n + column + x];
      __syncthreads();
      for (int i = 0; i < 16; ++i) sum += s[y][i] * u[i][x];
      __syncthreads();
    }
    c[(row + y) * n + column + x] = sum;
    if (x + y == 0) owner[t] = blockIdx.x;
  }
}
"""
    n, blocks = 96, 6
    a, b = np.random.default_rng(3).integers(-8, 8, (2, n, n)).astype(np.float32)
    arrays = [a.ravel(), b.ravel(), np.zeros(n * n, np.float32), np.zeros(1, np.int32)]
    (_, _, c, _, owner), _ = launched(
        source, "product", blocks, (16, 16), *arrays, np.full(36, -1, np.int32), np.int32(n)
    )
    assert np.array_equal(c.reshape(n, n), a @ b)
    assert set(np.bincount(owner, minlength=blocks)) == {6}


def test_partial_sums_with_flags():
    """As in stream-K: blocks have equal shares of all rounds, and a tile's first block waits for others."""
    source = r"""
extern "C" __global__ void shares(const int* in, int* sums, volatile int* part, int* flag,
                                  int rounds, int share, int total) {
  int begin = blockIdx.x * share, end = min(begin + share, total);
  while (begin < end) {
    int tile = begin / rounds, last = min(end, (tile + 1) * rounds), sum = 0;
    for (int r = begin; r < last; ++r) sum += in[r * blockDim.x + threadIdx.x];
    if (begin % rounds != 0) {
      part[blockIdx.x * blockDim.x + threadIdx.x] = sum;
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) atomicExch(&flag[blockIdx.x], 1);
    } else {
      int b = blockIdx.x;
      for (int done = last; done < (tile + 1) * rounds; done += share) {
        ++b;
        if (threadIdx.x == 0) while (*(volatile int*)&flag[b] == 0) {}
        __syncthreads();
        sum += part[b * blockDim.x + threadIdx.x];
      }
      sums[tile * blockDim.x + threadIdx.x] = sum;
    }
    begin = last;
  }
}
"""
    tiles, rounds, blocks, block = 7, 11, 16, 64
    total = tiles * rounds
    share = -(-total // blocks)
    values = np.random.default_rng(4).integers(0, 1000, (total, block)).astype(np.int32)
    results = [np.zeros(tiles * block, np.int32), np.zeros(blocks * block, np.int32)]
    for order in (None, "blocks"):
        (_, sums, *_), trace = launched(
            source,
            "shares",
            blocks,
            block,
            values.ravel(),
            *results,
            np.zeros(blocks, np.int32),
            np.int32(rounds),
            np.int32(share),
            np.int32(total),
            order=order,
        )
        assert np.array_equal(
            sums.reshape(tiles, block), values.reshape(tiles, rounds, block).sum(1)
        )
        assert trace.num_blocks == blocks


@pytest.mark.parametrize("blocks", [1, 2, 37, 600])
def test_the_last_block_adds_up(blocks):
    source = r"""
extern "C" __global__ void sum(const int* in, volatile int* part, unsigned* count, int* out) {
  __shared__ int s[64];
  __shared__ bool is_last;
  int t = threadIdx.x;
  auto reduce = [&] {
    for (int d = 32; d > 0; d /= 2) { __syncthreads(); if (t < d) s[t] += s[t + d]; }
    __syncthreads();
  };
  s[t] = in[blockIdx.x * 64 + t];
  reduce();
  if (t == 0) {
    part[blockIdx.x] = s[0];
    __threadfence();
    is_last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  int mine = 0;
  for (int i = t; i < gridDim.x; i += 64) mine += part[i];
  s[t] = mine;
  reduce();
  if (t == 0) *out += s[0];
}
"""
    values = np.random.default_rng(blocks).integers(0, 1000, blocks * 64).astype(np.int32)
    scratch = [np.zeros(blocks, np.int32), np.zeros(1, np.uint32), np.zeros(1, np.int32)]
    (_, _, count, out), _ = launched(source, "sum", blocks, 64, values, *scratch)
    assert (count[0], out[0]) == (0, values.sum())


@pytest.mark.parametrize("threads", [1, 40])
def test_locks_let_one_in(threads):
    """Each thread adds to a counter under a lock, those of a warp one after the other."""
    source = r"""
extern "C" __global__ void add(int* lock, volatile int* sum) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *sum += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
"""
    for order in (None, "blocks"):
        (_, total), _ = launched(
            source, "add", 9, threads, np.zeros(1, np.int32), np.zeros(1, np.int32), order=order
        )
        assert total[0] == 9 * threads


def test_an_endless_wait_is_an_error():
    source = r"""
extern "C" __global__ void wait(volatile int* flag) { while (*flag == 0) {} }
"""
    with pytest.raises(InputError, match="deadlock: all 3 blocks that are resident wait for"):
        launched(source, "wait", 3, 32, np.zeros(1, np.int32))


def test_sums_whose_results_nobody_reads_run_as_before():
    source = r"""
extern "C" __global__ void count(const int* in, int* bins) {
  atomicAdd(&bins[in[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
"""
    values = np.random.default_rng(1).integers(0, 16, 6400).astype(np.int32)
    found = {}
    for order in (None, "blocks", "time"):
        (_, bins), trace = launched(
            source, "count", 100, 64, values, np.zeros(16, np.int32), order=order
        )
        assert np.array_equal(bins, np.bincount(values, minlength=16))
        found[order] = trace.digest
    # Blocks do the same in any order.
    assert found[None] == found["blocks"] == found["time"]


def test_another_order_is_an_error():
    with pytest.raises(InputError, match="order"):
        draw([1], 1, order="sideways")
