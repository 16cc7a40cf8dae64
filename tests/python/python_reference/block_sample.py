"""Which thread blocks a sample has, and how many lines all blocks touch: by their definitions."""

from __future__ import annotations

import math


def sampled_blocks(num_blocks: int, sampled: int) -> list[int]:
    """Return the blocks of a sample: four runs, eight from 512 blocks on, each in the middle of its part."""
    if sampled >= num_blocks:
        return list(range(num_blocks))
    runs = min(sampled, 4 if sampled < 512 else 8)
    blocks = []
    for number in range(runs):
        begin, end = (num_blocks * edge // runs for edge in (number, number + 1))
        length = sampled * (number + 1) // runs - sampled * number // runs
        first = begin + (end - begin - length) // 2
        blocks += range(first, first + length)
    return blocks


def sample_size(num_blocks: int, one_in: int) -> int:
    """Return how many blocks one in so many are: at least 128, all below 256."""
    if one_in == 1 or num_blocks < 256:
        return num_blocks
    return max(128, math.ceil(num_blocks / one_in))


def touched_lines(trace, positions: list[int], line_bytes: int) -> set[int]:
    """Return the lines that blocks at these positions of a trace touch."""
    lines = set()
    for position in positions:
        _, warps = list(trace.blocks())[position]
        for warp in range(len(warps)):
            lines |= {
                int(sector) * 32 // line_bytes for sector in trace.warp(position, warp)["sector"]
            }
    return lines
