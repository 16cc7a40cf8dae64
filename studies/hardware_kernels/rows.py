"""Kernels in Triton that take rows: norms, gates, rotations, tables, softmax, and a loss."""

import triton
import triton.language as tl


@triton.jit
def rms_norm(out, x, weights, scales, n, eps, BLOCK: tl.constexpr):
    """Divide a row by its root mean square; products with the weights have the type of `x`."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    values = tl.load(x + row * n + column, mask=inside, other=0)
    weight = tl.load(weights + column, mask=inside, other=0)
    wide = values.to(tl.float32)
    scale = tl.math.rsqrt(tl.sum(wide * wide, axis=0) / n + eps)
    tl.store(scales + row, scale)
    result = (wide * scale).to(values.dtype) * weight
    tl.store(out + row * n + column, result, mask=inside)


@triton.jit
def layer_norm(out, x, weights, biases, means, scales, n, eps, BLOCK: tl.constexpr):
    """Subtract a row's mean and divide by its deviation."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    weight = tl.load(weights + column, mask=inside, other=0)
    bias = tl.load(biases + column, mask=inside, other=0)
    values = tl.load(x + row * n + column, mask=inside, other=0).to(tl.float32)
    mean = tl.sum(values, axis=0) / n
    centred = values - mean
    kept = tl.where(inside, centred, 0.0)
    scale = tl.math.rsqrt(tl.sum(kept * kept, axis=0) / n + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    tl.store(out + row * n + column, centred * scale * weight + bias, mask=inside)


@triton.jit
def gate(out, both, n: tl.constexpr, BLOCK: tl.constexpr):
    """Multiply the right half of a row by the left half times its sigmoid."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    left = tl.load(both + row * 2 * n + column, mask=inside, other=0).to(tl.float32)
    right = tl.load(both + row * 2 * n + n + column, mask=inside, other=0)
    result = (left * tl.sigmoid(left)).to(right.dtype) * right
    tl.store(out + row * n + column, result, mask=inside)


@triton.jit
def turn(at, heads: tl.constexpr, head_dim: tl.constexpr, PADDED: tl.constexpr, cosine, sine):
    """Turn the halves of each head of a token, in place."""
    half: tl.constexpr = head_dim // 2
    head = tl.arange(0, PADDED)[:, None]
    place = tl.arange(0, half)[None, :]
    inside = (head < heads) & (place < half)
    first = at + head * head_dim + place
    left = tl.load(first, mask=inside, other=0)
    right = tl.load(first + half, mask=inside, other=0)
    tl.store(first, left * cosine - right * sine, mask=inside)
    tl.store(first + half, right * cosine + left * sine, mask=inside)


@triton.jit
def rotate(
    q,
    k,
    cosines,
    sines,
    length,
    Q_HEADS: tl.constexpr,
    K_HEADS: tl.constexpr,
    HEAD: tl.constexpr,
):
    """Turn queries and keys of a token by its position."""
    token = tl.program_id(0).to(tl.int64)
    position = token % length
    place = tl.arange(0, HEAD // 2)
    cosine = tl.load(cosines + position * HEAD + place)
    sine = tl.load(sines + position * HEAD + place)
    turn(q + token * Q_HEADS * HEAD, Q_HEADS, HEAD, Q_HEADS, cosine, sine)
    turn(k + token * K_HEADS * HEAD, K_HEADS, HEAD, K_HEADS, cosine, sine)


@triton.jit
def look_up(
    table,
    indices,
    out,
    count,
    width: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Copy rows of a table."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    index = tl.load(indices + row, mask=row < count, other=0)
    inside = (row < count)[:, None] & (column < width)[None, :]
    values = tl.load(table + index[:, None] * width + column[None, :], mask=inside, other=0)
    tl.store(out + row[:, None] * width + column[None, :], values, mask=inside)


@triton.jit
def softmax(out, x, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Take the softmax of each row, by programs that take row after row."""
    column = tl.arange(0, BLOCK)
    inside = column < n
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * n + column, mask=inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * n + column, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def cross_entropy(logits, targets, losses, n, share, BLOCK: tl.constexpr):
    """Put the loss of a row, and its gradient in place of the row."""
    row = tl.program_id(0).to(tl.int64)
    at = logits + row * n
    target = tl.load(targets + row)
    wanted = tl.load(at + target).to(tl.float32)
    most = float("-inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(at + column, mask=column < n, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(values))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(values - larger))
        most = larger
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(at + column, mask=column < n, other=float("-inf")).to(tl.float32)
        chance = tl.exp(values - most) / total
        gradient = tl.where(column == target, chance - 1, chance) * share
        tl.store(at + column, gradient, mask=column < n)
    tl.store(losses + row, (most + tl.log(total) - wanted) * share)
