"""Kernels for Numba, for `test_numba.py`."""

import math

from numba import cuda, float32, int32
from numba.cuda.random import xoroshiro128p_uniform_float32


@cuda.jit
def total(x, out):
    """Sum of all elements: a tree in shared memory, an atomic addition per block."""
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i]
    part[t] = mine
    cuda.syncthreads()
    width = 64
    while width > 0:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def histogram(values, counts):
    """Counts of a block in dynamic shared memory, then in global memory."""
    mine = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    for i in range(t, counts.size, cuda.blockDim.x):
        mine[i] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, values[i], 1)
    cuda.syncthreads()
    for i in range(t, counts.size, cuda.blockDim.x):
        cuda.atomic.add(counts, i, mine[i])


@cuda.jit
def matmul(a, b, c):
    """Tiles of 16 x 16 in shared memory."""
    tile_a = cuda.shared.array((16, 16), float32)
    tile_b = cuda.shared.array((16, 16), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    sum_of_products = float32(0)
    for start in range(0, a.shape[1], 16):
        tile_a[y, x] = 0
        tile_b[y, x] = 0
        if row < a.shape[0] and start + x < a.shape[1]:
            tile_a[y, x] = a[row, start + x]
        if column < b.shape[1] and start + y < b.shape[0]:
            tile_b[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(16):
            sum_of_products += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = sum_of_products


@cuda.jit(device=True)
def pull(here, there, softening):
    dx = there[0] - here[0]
    dy = there[1] - here[1]
    dz = there[2] - here[2]
    square = dx * dx + dy * dy + dz * dz + softening
    weight = there[3] / (square * math.sqrt(square))
    return dx * weight, dy * weight, dz * weight


@cuda.jit
def n_body(bodies, forces, softening):
    i = cuda.grid(1)
    if i < bodies.shape[0]:
        x = y = z = float32(0)
        for j in range(bodies.shape[0]):
            dx, dy, dz = pull(bodies[i], bodies[j], softening)
            x += dx
            y += dy
            z += dz
        forces[i, 0] = x
        forces[i, 1] = y
        forces[i, 2] = z


@cuda.jit
def mandelbrot(low, high, steps, image):
    """Steps until a point leaves the circle of radius 2; corners are complex numbers."""
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        across = low.real + (high.real - low.real) * column / image.shape[1]
        down = low.imag + (high.imag - low.imag) * row / image.shape[0]
        c = complex(across, down)
        z = 0j
        done = 0
        while done < steps and z.real * z.real + z.imag * z.imag <= 4:
            z = z * z + c
            done += 1
        image[row, column] = done


@cuda.jit
def prefix_sum(x, out, totals):
    """Inclusive sums of each block: within warps by shuffles, across them in shared memory."""
    warps = cuda.shared.array(32, int32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    lane = t % 32
    value = x[i] if i < x.size else 0
    shift = 1
    while shift < 32:
        other = cuda.shfl_up_sync(0xFFFFFFFF, value, shift)
        if lane >= shift:
            value += other
        shift *= 2
    if lane == 31:
        warps[t // 32] = value
    cuda.syncthreads()
    before = 0
    for w in range(t // 32):
        before += warps[w]
    value += before
    if i < x.size:
        out[i] = value
    if t == cuda.blockDim.x - 1:
        totals[cuda.blockIdx.x] = value


def sort_step(x, distance, width):
    """Compare and exchange for bitonic sort; plain, launched with a signature."""
    i = cuda.grid(1)
    other = i ^ distance
    if other > i and other < x.size:
        rising = i & width == 0
        if (x[i] > x[other]) == rising:
            kept = x[i]
            x[i] = x[other]
            x[other] = kept


@cuda.jit
def extremes(x, least, most, matches, wanted):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.min(least, 0, x[i])
        cuda.atomic.max(most, 0, x[i])
        if x[i] == wanted:
            cuda.atomic.inc(matches, 0, 1000)
        cuda.atomic.cas(matches, 1, 0, 7)


@cuda.jit
def estimate_pi(states, hits, tries):
    i = cuda.grid(1)
    inside = 0
    for _ in range(tries):
        x = xoroshiro128p_uniform_float32(states, i)
        y = xoroshiro128p_uniform_float32(states, i)
        if x * x + y * y <= 1:
            inside += 1
    hits[i] = inside


@cuda.jit(fastmath=True)
def stencil(x, out, weights):
    """Seven points, with a local array; `weights` is a tuple."""
    i, j, k = cuda.grid(3)
    near = cuda.local.array(3, float32)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1 and 0 < k < x.shape[2] - 1:
        near[0] = x[i - 1, j, k] + x[i + 1, j, k]
        near[1] = x[i, j - 1, k] + x[i, j + 1, k]
        near[2] = x[i, j, k - 1] + x[i, j, k + 1]
        out[i, j, k] = weights[0] * x[i, j, k] + weights[1] * (near[0] + near[1] + near[2])


@cuda.jit
def reverse_in_grid(x):
    """Every thread reads what another block wrote: the grid is synchronized between."""
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    x[i] = i
    grid.sync()
    there = x[x.size - 1 - i]
    grid.sync()
    x[i] = there


@cuda.jit
def square_halves(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * x[i] + x[i]
