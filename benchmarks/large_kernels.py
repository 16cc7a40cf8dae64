"""Kernels in Triton whose launches are large: for `large_launches.py`."""

import triton
import triton.language as tl


@triton.jit
def triad(x_ptr, y_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    """Out = x + factor * y."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + factor * tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Softmax(Q K^T * scale) V of a head; `scale` has the factor that turns exp into exp2."""
    head = tl.program_id(1).to(tl.int64) * length * DIM
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    keys = tl.arange(0, BN)
    across = tl.arange(0, DIM)
    q = tl.load(q_ptr + head + rows[:, None] * DIM + across[None, :])
    k_at = k_ptr + head + keys[None, :] * DIM + across[:, None]
    v_at = v_ptr + head + keys[:, None] * DIM + across[None, :]
    top = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    result = tl.zeros([BM, DIM], dtype=tl.float32)
    for _ in range(0, length, BN):
        score = tl.dot(q, tl.load(k_at)) * scale
        higher = tl.maximum(top, tl.max(score, axis=1))
        power = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(power, axis=1)
        result = tl.dot(power.to(tl.float16), tl.load(v_at), result * shrink[:, None])
        top = higher
        k_at += BN * DIM
        v_at += BN * DIM
    out = (result / total[:, None]).to(tl.float16)
    tl.store(out_ptr + head + rows[:, None] * DIM + across[None, :], out)
