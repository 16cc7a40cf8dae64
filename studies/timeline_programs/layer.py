"""A layer of a transformer in Triton, forward: two norms, three products with weights, attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

import warpstack as ws

SEQUENCE, CHANNELS, HEADS = 256, 256, 4
TILE = 64


@triton.jit
def norm(x_ptr, out_ptr, C: tl.constexpr):
    """Write a row less its mean, over its standard deviation."""
    at = tl.program_id(0) * C + tl.arange(0, C)
    x = tl.load(x_ptr + at).to(tl.float32)
    x = x - tl.sum(x) / C
    out = x / tl.sqrt(tl.sum(x * x) / C + 1e-5)
    tl.store(out_ptr + at, out.to(tl.float16))


@triton.jit
def product(a_ptr, b_ptr, add_ptr, out_ptr, N, K: tl.constexpr, ADD: tl.constexpr, T: tl.constexpr):
    """Write a tile of a product, with what is added to it."""
    rows = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    columns = tl.program_id(1) * T + tl.arange(0, T)[None, :]
    inner = tl.arange(0, T)
    total = tl.zeros((T, T), tl.float32)
    for k in range(0, K, T):
        a = tl.load(a_ptr + rows * K + k + inner[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns)
        total = tl.dot(a, b, total)
    if ADD:
        total += tl.load(add_ptr + rows * N + columns).to(tl.float32)
    tl.store(out_ptr + rows * N + columns, total.to(tl.float16))


@triton.jit
def attention(qkv_ptr, out_ptr, S: tl.constexpr, C: tl.constexpr, D: tl.constexpr, T: tl.constexpr):
    """Write some rows of a head, which look at all keys."""
    rows = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    head = tl.program_id(1) * D + tl.arange(0, D)[None, :]
    q = tl.load(qkv_ptr + rows * 3 * C + head)
    most = tl.full((T,), -1e30, tl.float32)
    below = tl.zeros((T,), tl.float32)
    total = tl.zeros((T, D), tl.float32)
    for start in range(0, S, T):
        keys = start + tl.arange(0, T)[:, None]
        k = tl.load(qkv_ptr + keys * 3 * C + C + head)
        v = tl.load(qkv_ptr + keys * 3 * C + 2 * C + head)
        scores = tl.dot(q, tl.trans(k)) * (D**-0.5)
        now = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - now[:, None])
        scale = tl.exp(most - now)
        below = below * scale + tl.sum(weights, 1)
        total = tl.dot(weights.to(tl.float16), v, total * scale[:, None])
        most = now
    tl.store(out_ptr + rows * C + head, (total / below[:, None]).to(tl.float16))


def layer() -> ws.App:
    """Run the layer and return its launches; raise `AssertionError` where its result is not NumPy's."""
    random = np.random.default_rng(3)
    s, c, d = SEQUENCE, CHANNELS, CHANNELS // HEADS
    shapes = {"x": (s, c), "qkv": (c, 3 * c), "out": (c, c), "up": (c, 4 * c), "down": (4 * c, c)}
    given = {
        name: (random.standard_normal(shape) * 0.1).astype(np.float16)
        for name, shape in shapes.items()
    }
    memory = {name: ws.cuda.array(values) for name, values in given.items()}
    launches: list[ws.KernelTrace] = []

    def run(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: int) -> None:
        launches.append(ws.triton.launch(kernel, grid, *arguments, **constants))

    def new(columns: int) -> Any:
        return ws.cuda.empty((s, columns), np.float16)

    def times(a: Any, b: str, inner: int, columns: int, add: Any = None) -> Any:
        found, there = new(columns), add is not None
        run(
            product,
            (s // TILE, columns // TILE),
            *(a, memory[b], add if there else a, found, columns),
            **{"K": inner, "ADD": there, "T": TILE},
        )
        return found

    def normed(a: Any) -> Any:
        found = new(c)
        run(norm, (s,), a, found, C=c)
        return found

    qkv = times(normed(memory["x"]), "qkv", c, 3 * c)
    mixed = new(c)
    run(attention, (s // TILE, HEADS), qkv, mixed, S=s, C=c, D=d, T=TILE)
    first = times(mixed, "out", c, c, memory["x"])
    second = times(times(normed(first), "up", c, 4 * c), "down", 4 * c, c, first)
    right = expected(given)
    difference = np.abs(np.asarray(second).astype(np.float64) - right).max() / np.abs(right).max()
    assert difference < 0.01, difference
    return ws.App(launches, "a transformer's layer in Triton")


def expected(given: dict[str, np.ndarray]) -> np.ndarray:
    """Return what the layer computes, in double precision."""
    wide = {name: values.astype(np.float64) for name, values in given.items()}

    def normed(a: np.ndarray) -> np.ndarray:
        apart = a - a.mean(1, keepdims=True)
        return apart / np.sqrt((apart**2).mean(1, keepdims=True) + 1e-5)

    q, k, v = (
        part.reshape(SEQUENCE, HEADS, -1).transpose(1, 0, 2)
        for part in np.split(normed(wide["x"]) @ wide["qkv"], 3, 1)
    )
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    weights = np.exp(scores - scores.max(2, keepdims=True))
    mixed = (weights / weights.sum(2, keepdims=True)) @ v
    mixed = mixed.transpose(1, 0, 2).reshape(SEQUENCE, CHANNELS)
    first = wide["x"] + mixed @ wide["out"]
    return first + normed(first) @ wide["up"] @ wide["down"]
