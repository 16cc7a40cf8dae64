"""Which thread blocks a sample has, and how many lines all blocks touch: by their definitions."""

from __future__ import annotations

import math


def sampled_blocks(num_blocks: int, sampled: int, together: int = 1) -> list[int]:
    """Return the blocks of a sample: four runs, eight from 512 blocks on, each in the middle of its part.

    Groups of `together` blocks are in it as a whole, or not at all.
    """
    if num_blocks % together or math.ceil(sampled / together) * together >= num_blocks:
        return list(range(num_blocks))
    groups, chosen = num_blocks // together, math.ceil(sampled / together)
    runs = min(chosen, 4 if chosen * together < 512 else 8)
    blocks = []
    for number in range(runs):
        begin, end = (groups * edge // runs for edge in (number, number + 1))
        length = chosen * (number + 1) // runs - chosen * number // runs
        first = begin + (end - begin - length) // 2
        blocks += range(first * together, (first + length) * together)
    return blocks


def sample_size(num_blocks: int, one_in: int, *, are_persistent: bool = False) -> int:
    """Return how many blocks one in so many are: at least 128, all below 256.

    Of fewer blocks that stay for as long as there is work at least 4, all below 8.
    """
    fewest = 4 if are_persistent and num_blocks < 256 else 128
    if one_in == 1 or num_blocks < 2 * fewest:
        return num_blocks
    return max(fewest, math.ceil(num_blocks / one_in))


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
