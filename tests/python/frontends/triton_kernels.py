"""Kernels in Triton: those of its tutorials, written anew, for `test_triton.py` and others."""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, total, mask=inside)


@triton.jit
def softmax(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Each program takes every n-th row; a row is in registers from its load to its store."""
    across = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * columns + across, mask=across < columns, other=float("-inf"))
        power = tl.exp(x - tl.max(x, axis=0))
        share = power / tl.sum(power, axis=0)
        tl.store(out_ptr + row * columns + across, share, mask=across < columns)


@triton.jit
def tile_of(number, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Return row and column of a tile: down GROUP rows of tiles, then one to the right."""
    tiles_down = tl.cdiv(m, BM)
    tiles_across = tl.cdiv(n, BN)
    in_group = GROUP * tiles_across
    first = number // in_group * GROUP
    height = min(tiles_down - first, GROUP)
    return first + number % in_group % height, number % in_group // height


@triton.jit
def product(
    a_ptr, b_ptr, down, right, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Return a tile of a (m, k) times b (k, n), both row by row."""
    rows = (down * BM + tl.arange(0, BM)) % m
    columns = (right * BN + tl.arange(0, BN)) % n
    steps = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * k + steps[None, :]
    b_at = b_ptr + steps[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for done in range(0, k, BK):
        a = tl.load(a_at, mask=steps[None, :] < k - done, other=0.0)
        b = tl.load(b_at, mask=steps[:, None] < k - done, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BK
        b_at += BK * n
    return total


@triton.jit
def store_tile(c_ptr, tile, down, right, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = down * BM + tl.arange(0, BM)
    columns = right * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], tile.to(tl.float16), mask=inside)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    down, right = tile_of(tl.program_id(0), m, n, BM, BN, GROUP)
    tile = product(a_ptr, b_ptr, down, right, m, n, k, BM, BN, BK)
    store_tile(c_ptr, tile, down, right, m, n, BM, BN)


@triton.jit
def tensor_matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The same with tiles that tensor descriptors bring and take (TMA)."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[k, n], strides=[n, 1], block_shape=[BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for done in range(0, k, BK):
        total = tl.dot(a.load([row, done]), b.load([done, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def described_matmul(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same with descriptors that the host made."""
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for done in range(0, k, BK):
        total = tl.dot(a.load([row, done]), b.load([done, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def copy_described(pair, out, rows, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """A tile of the second of two descriptors, with what lies outside of its tensor."""
    tile = pair[1].load([0, 0])
    i = tl.arange(0, ROWS)[:, None]
    tl.store(out + i * COLUMNS + tl.arange(0, COLUMNS)[None, :], tile, mask=i < rows)


@triton.jit
def persistent_matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """As many programs as the GPU holds take the tiles in turn."""
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    for number in range(tl.program_id(0), tiles, tl.num_programs(0)):
        down, right = tile_of(number, m, n, BM, BN, GROUP)
        tile = product(a_ptr, b_ptr, down, right, m, n, k, BM, BN, BK)
        store_tile(c_ptr, tile, down, right, m, n, BM, BN)


@triton.jit
def grouped_matmul(
    a_ptrs,
    b_ptrs,
    c_ptrs,
    sizes_ptr,
    count,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Products of several sizes: their tiles are numbered through, and programs take them in turn."""
    number = tl.program_id(0)
    last = 0
    for one in range(count):
        m = tl.load(sizes_ptr + 3 * one)
        n = tl.load(sizes_ptr + 3 * one + 1)
        k = tl.load(sizes_ptr + 3 * one + 2)
        across = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * across
        a_ptr = tl.load(a_ptrs + one).to(tl.pointer_type(tl.float16))
        b_ptr = tl.load(b_ptrs + one).to(tl.pointer_type(tl.float16))
        c_ptr = tl.load(c_ptrs + one).to(tl.pointer_type(tl.float16))
        while number < last + tiles:
            down = (number - last) // across
            right = (number - last) % across
            tile = product(a_ptr, b_ptr, down, right, m, n, k, BM, BN, BK)
            store_tile(c_ptr, tile, down, right, m, n, BM, BN)
            number += tl.num_programs(0)
        last += tiles


@triton.jit
def dropout(x_ptr, out_ptr, n, drop, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    kept = tl.rand(seed, at) > drop
    tl.store(out_ptr + at, tl.where(kept, x / (1 - drop), 0.0), mask=at < n)


@triton.jit
def layer_norm(
    x_ptr, y_ptr, weight_ptr, bias_ptr, mean_ptr, inverse_ptr, n, epsilon, BLOCK: tl.constexpr
):
    """A row per program, in pieces of BLOCK: mean, variance, result."""
    row = tl.program_id(0)
    x_ptr += row * n
    y_ptr += row * n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        off = tl.where(at < n, x - mean, 0.0)
        squares += off * off
    inverse = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + epsilon)
    tl.store(mean_ptr + row, mean)
    tl.store(inverse_ptr + row, inverse)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < n)
        bias = tl.load(bias_ptr + at, mask=at < n)
        tl.store(y_ptr + at, (x - mean) * inverse * weight + bias, mask=at < n)


@triton.jit
def layer_norm_backward(
    dx_ptr,
    dy_ptr,
    dw_ptr,
    db_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    inverse_ptr,
    locks_ptr,
    n,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """dx of a row; its parts of dw and db go into one of GROUPS sums, each behind a lock."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + row * n + at, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    inverse = tl.load(inverse_ptr + row)
    normal = tl.where(inside, (x - mean) * inverse, 0.0)
    weighted = tl.where(inside, weight * dy, 0.0)
    along = tl.sum(normal * weighted, axis=0) / n
    level = tl.sum(weighted, axis=0) / n
    tl.store(dx_ptr + row * n + at, (weighted - normal * along - level) * inverse, mask=inside)

    group = row % GROUPS
    lock_ptr = locks_ptr + group
    used_ptr = locks_ptr + GROUPS + group
    dw = dy * normal
    db = dy
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(used_ptr) == 0:
        tl.atomic_xchg(used_ptr, 1)
    else:
        dw += tl.load(dw_ptr + group * n + at, mask=inside)
        db += tl.load(db_ptr + group * n + at, mask=inside)
    tl.store(dw_ptr + group * n + at, dw, mask=inside)
    tl.store(db_ptr + group * n + at, db, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def sum_of_groups(
    dw_ptr, db_ptr, out_dw_ptr, out_db_ptr, groups, n, BM: tl.constexpr, BN: tl.constexpr
):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    dw = tl.zeros((BM, BN), dtype=tl.float32)
    db = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, groups, BM):
        rows = start + tl.arange(0, BM)
        inside = (rows[:, None] < groups) & (columns[None, :] < n)
        at = rows[:, None] * n + columns[None, :]
        dw += tl.load(dw_ptr + at, mask=inside, other=0.0)
        db += tl.load(db_ptr + at, mask=inside, other=0.0)
    tl.store(out_dw_ptr + columns, tl.sum(dw, axis=0), mask=columns < n)
    tl.store(out_db_ptr + columns, tl.sum(db, axis=0), mask=columns < n)


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    length,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Flash attention: running maximum and sum of a block of queries over blocks of keys."""
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * length * DIM
    rows = start + tl.arange(0, BM)
    across = tl.arange(0, DIM)
    q = tl.load(q_ptr + head + rows[:, None] * DIM + across[None, :])
    top = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    result = tl.zeros([BM, DIM], dtype=tl.float32)
    end = start + BM if CAUSAL else length
    for done in range(0, end, BN):
        keys = done + tl.arange(0, BN)
        k = tl.load(k_ptr + head + keys[None, :] * DIM + across[:, None])
        v = tl.load(v_ptr + head + keys[:, None] * DIM + across[None, :])
        score = tl.dot(q, k) * (scale * 1.44269504)  # powers of 2 below
        if CAUSAL:
            score = tl.where(rows[:, None] >= keys[None, :], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, axis=1))
        power = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(power, axis=1)
        result = tl.dot(power.to(tl.float16), v, result * shrink[:, None])
        top = higher
    out = (result / total[:, None]).to(tl.float16)
    tl.store(out_ptr + head + rows[:, None] * DIM + across[None, :], out)


@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})
@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, 2 * x, mask=at < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=1), triton.Config({"BLOCK": 256}, num_warps=2)],
    key=["n"],
)
@triton.jit
def add_tuned(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


@triton.jit
def picky(x_ptr, out_ptr, BLOCK: tl.constexpr, FAR: tl.constexpr):
    """Add 1, or read far away from the array."""
    tl.static_assert(BLOCK <= 256, "blocks of at most 256")
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + FAR + at) + 1)


@triton.jit
def numbers(out_ptr, whole, long, real: tl.float64, half: tl.float16, flag, pair, nothing):
    """Store each argument as f64: what it was specialised to does not change its value."""
    tl.store(out_ptr, whole.to(tl.float64))
    tl.store(out_ptr + 1, long.to(tl.float64))
    tl.store(out_ptr + 2, real)
    tl.store(out_ptr + 3, half.to(tl.float64))
    tl.store(out_ptr + 4, flag.to(tl.float64))
    tl.store(out_ptr + 5, tl.load(pair[0]).to(tl.float64) + pair[1])
    if nothing is None:
        tl.store(out_ptr + 6, 1.0)


@triton.jit
def sort_and_count(x_ptr, sorted_ptr, sums_ptr, counts_ptr, N: tl.constexpr, BINS: tl.constexpr):
    """Sort numbers, add them up along, and count them in bins."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(sorted_ptr + i, tl.sort(x))
    tl.store(sums_ptr + i, tl.cumsum(x, 0))
    tl.store(counts_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@triton.jit
def count_under_lock(lock_ptr, count_ptr):
    """Count the programs, one at a time."""
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(count_ptr, tl.load(count_ptr) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)
