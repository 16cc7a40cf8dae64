"""Shared by the figures of the MWP-CWP paper."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpstack.models import mwp_cwp
from warpstack.traces import patterns
from warpstack.traces.trace import KernelTrace

PAPER = (
    "Hong and Kim, An Analytical Model for a GPU Architecture with Memory-level and Thread-level "
    "Parallelism Awareness, ISCA 2009"
)
#: Section 3.5's example runs on a machine of the FX5600's parameters with 80 GB/s and 1 GHz.
EXAMPLE = mwp_cwp.machine("quadro-fx5600").replace(clock_ghz=1, memory_bandwidth_gbs=80)
#: The tiled matrix multiplication of Figures 12 and 13.
TILED = mwp_cwp.KernelDescription(
    name="tiled matrix multiplication",
    threads_per_block=128,
    num_blocks=80,
    active_blocks_per_sm=5,
    comp_insts=27,
    uncoal_mem_insts=6,
    synch_insts=6,
)


def with_warps(
    kernel: mwp_cwp.KernelDescription, warps: npt.ArrayLike, sms: float | npt.NDArray[np.float64]
) -> mwp_cwp.KernelDescription:
    """Return a kernel with one thread block per SM, of `warps` warps."""
    return kernel.replace(
        threads_per_block=32.0 * np.asarray(warps, dtype=float),
        num_blocks=sms,
        active_blocks_per_sm=1,
    )


def trace_of(
    name: str, *, coalesced: bool, blocks: int, threads: int = 128, iterations: int = 10
) -> KernelTrace:
    """Trace a micro-benchmark of Table 4: the loop of loads, each used, among computation.

    Every load touches new memory; uncoalesced ones a line of 128 bytes per thread.
    """
    loads, computation = mwp_cwp.MICROBENCHMARKS[name]
    builder = patterns.KernelBuilder(name, grid=blocks, block=threads, registers_per_thread=16)
    pairs = [
        (builder.instruction("LDG.E", dst=4, src=2), builder.instruction("FADD", dst=6, src=(4, 6)))
        for _ in range(loads)
    ]
    others = [
        builder.instruction("FADD", dst=8 + i % 8, src=(3,)) for i in range(computation - loads)
    ]
    stride = 4 if coalesced else 128
    # Loads are spread evenly: after each, its share of the other instructions.
    ends = [len(others) * (i + 1) // max(loads, 1) for i in range(max(loads, 1))]
    for iteration in range(iterations):
        for i, end in enumerate(ends):
            if loads:
                load, use = pairs[i]
                first = (iteration * loads + i) * blocks * threads
                address = 0x1000_0000 + stride * (first + builder.thread)
                builder.issue(load, address=address)
                builder.issue(use)
            for one in others[ends[i - 1] if i else 0 : end]:
                builder.issue(one)
    return builder.build()
