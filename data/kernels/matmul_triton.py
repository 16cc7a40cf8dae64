"""A product of half-precision matrices in Triton, with tiles in groups that share lines of L2.

``studies/triton_matmul.py`` and the notebook about tile sizes predict its configurations.
"""

import triton
import triton.language as tl


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
    """C (m, n) = A (m, k) B (k, n), all row by row; a program computes a tile of BM x BN."""
    number = tl.program_id(0)
    tiles_down = tl.cdiv(m, BM)
    tiles_across = tl.cdiv(n, BN)
    first = number // (GROUP * tiles_across) * GROUP
    height = min(tiles_down - first, GROUP)
    down = first + number % (GROUP * tiles_across) % height
    right = number % (GROUP * tiles_across) // height

    rows = down * BM + tl.arange(0, BM)
    columns = right * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    a_at = a_ptr + (rows % m)[:, None] * k + steps[None, :]
    b_at = b_ptr + steps[:, None] * n + (columns % n)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for done in range(0, k, BK):
        a = tl.load(a_at, mask=steps[None, :] < k - done, other=0.0)
        b = tl.load(b_at, mask=steps[:, None] < k - done, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BK
        b_at += BK * n
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)
