"""An application of thousands of small launches, shaped like the training of a network.

Each iteration goes through the same layers with a batch of its own size: embeddings are gathered, a
tiled product with weights follows, then an element-wise kernel, a sum over rows, and tiny kernels
that change parameters. What one launch writes the next one reads; weights are read again in every
iteration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import warpstack as ws
from warpstack.traces.patterns import KernelBuilder

_WEIGHTS = 0x7F0000000000
_ACTIVATIONS = 0x7E0000000000
_BYTES = 1 << 20


def training_app(launches: int = 7000, *, layers: int = 12, seed: int = 0) -> ws.App:
    """Return an application of so many launches.

    Parameters
    ----------
    launches
        The number of launches.
    layers
        Layers of an iteration, of three to four launches each.
    seed
        Seed of the shapes; the same seed gives the same application.
    """
    rng = np.random.default_rng(seed)
    widths = rng.integers(4, 25, size=layers)
    depths = rng.integers(2, 9, size=layers)
    lookups = rng.random(layers) < 0.25
    kernels: list[ws.KernelTrace] = []
    while True:
        batch = rng.uniform(0.4, 1)
        for layer in range(layers):
            blocks = max(round(widths[layer] * batch), 1)
            read = _ACTIVATIONS + layer % 4 * _BYTES
            written = _ACTIVATIONS + (layer + 1) % 4 * _BYTES
            weights = _WEIGHTS + layer * _BYTES
            steps: list[Callable[[int], ws.KernelTrace]] = []
            if lookups[layer]:
                rows = rng.integers(1 << 12, size=blocks * 128)
                steps.append(
                    lambda n, b=blocks, w=weights, r=rows, to=read: _lookup(n, b, w, r, to)
                )
            steps += [
                lambda n, b=blocks, d=depths[layer], a=read, w=weights, to=written: _product(
                    n, b, int(d), a, w, to
                ),
                lambda n, b=blocks, to=written: _elementwise(n, b, to),
                lambda n, w=weights: _tiny(n, w),
            ]
            for step in steps:
                if len(kernels) == launches:
                    return ws.App(kernels, "training")
                kernels.append(step(len(kernels) + 1))


def _builder(name: str, launch_id: int, blocks: int) -> KernelBuilder:
    return KernelBuilder(name, grid=blocks, block=128, registers_per_thread=32, launch_id=launch_id)


def _lookup(
    launch_id: int, blocks: int, table: int, rows: np.ndarray, written: int
) -> ws.KernelTrace:
    k = _builder("lookup", launch_id, blocks)
    k.emit("S2R", dst=0)
    k.emit("IMAD.WIDE", dst=2, src=(0, 1))
    k.emit("LDG.E.128", dst=4, src=2, address=table + 128 * rows.reshape(k.thread.shape))
    k.emit("STG.E", src=(2, 4), address=written + 4 * k.thread)
    k.emit("EXIT")
    return k.build()


def _product(
    launch_id: int, blocks: int, depth: int, read: int, weights: int, written: int
) -> ws.KernelTrace:
    k = _builder("product", launch_id, blocks)
    k.emit("S2R", dst=0)
    first = k.instruction("LDG.E", dst=4, src=2)
    second = k.instruction("LDG.E", dst=5, src=3)
    keep = k.instruction("STS", src=(8, 4))
    wait = k.instruction("BAR.SYNC")
    take = k.instruction("LDS", dst=6, src=8)
    add = k.instruction("FFMA", dst=7, src=(6, 5, 7))
    threads = k.thread.size
    for step in range(depth):
        k.issue(first, address=read + 4 * (step * threads + k.thread))
        k.issue(second, address=weights + 4 * (step * 128 + k.thread_in_block))
        k.issue(keep, address=4 * k.thread_in_block)
        k.issue(wait)
        for _ in range(4):
            k.issue(take, address=4 * (k.thread_in_block % 32))
            k.issue(add)
        k.issue(wait)
    k.emit("STG.E", src=(2, 7), address=written + 4 * k.thread)
    k.emit("EXIT")
    return k.build()


def _elementwise(launch_id: int, blocks: int, data: int) -> ws.KernelTrace:
    k = _builder("elementwise", launch_id, blocks)
    k.emit("S2R", dst=0)
    k.emit("IMAD.WIDE", dst=2, src=(0, 1))
    k.emit("LDG.E", dst=4, src=2, address=data + 4 * k.thread)
    k.emit("MUFU.EX2", dst=5, src=4)
    k.emit("FADD", dst=6, src=(5, 4))
    k.emit("STG.E", src=(2, 6), address=data + 4 * k.thread)
    k.emit("EXIT")
    return k.build()


def _tiny(launch_id: int, weights: int) -> ws.KernelTrace:
    k = _builder("update", launch_id, 4)
    k.emit("S2R", dst=0)
    k.emit("LDG.E", dst=4, src=2, address=weights + 4 * k.thread)
    k.emit("FFMA", dst=5, src=(4, 6, 5))
    k.emit("STG.E", src=(2, 5), address=weights + 4 * k.thread)
    k.emit("EXIT")
    return k.build()
