"""Shared by the MapReduce workloads: text like URLs, prefix sums and the bitonic sort."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import DeviceArray, Session

BLOCK = 256
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", "S1")
_WORDS = 512


def blocks(threads: int) -> int:
    """Return the number of thread blocks for a number of threads, at least one."""
    return max(1, -(-threads // BLOCK))


def make_urls(count: int, generator: np.random.Generator) -> list[bytes]:
    """Return different URLs, most of 25 to 50 bytes."""
    words = [
        b"".join(generator.choice(_LETTERS, length)) for length in generator.integers(3, 11, _WORDS)
    ]
    picks = generator.integers(0, _WORDS, (count, 3))
    depths = generator.integers(1, 3, count)
    return [
        b"http://www.%s.com/%s%d" % (words[site], b"/".join([words[a], words[b]][:depth]), number)
        for number, (site, a, b, depth) in enumerate(
            zip(*picks.T.tolist(), depths.tolist(), strict=True)
        )
    ]


def popular(count: int, choices: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw numbers below `choices`, each with a probability inverse to its rank (Zipf's law)."""
    weights = 1 / np.arange(1, choices + 1)
    return generator.choice(choices, count, p=weights / weights.sum())


def as_text(lines: list[bytes]) -> dict[str, npt.NDArray[Any]]:
    """Return the bytes of lines one after the other, and where each starts and the last one ends."""
    first_byte = np.zeros(len(lines) + 1, np.int32)
    np.cumsum([len(line) for line in lines], out=first_byte[1:])
    return {"text": np.frombuffer(b"".join(lines), np.uint8).copy(), "first_byte": first_byte}


def as_lines(text: npt.NDArray[Any], first_byte: npt.NDArray[Any]) -> list[bytes]:
    """Return the lines that `as_text` joined."""
    whole = text.tobytes()
    return [whole[a:b] for a, b in itertools.pairwise(first_byte.tolist())]


def scan(session: Session, values: DeviceArray, count: int) -> tuple[DeviceArray, int]:
    """Launch the exclusive prefix sum of `count` values; return the sums and the total."""
    sums = session.zeros(count, np.int32)
    totals = session.zeros(blocks(count), np.int32)
    session.launch("scan_blocks", blocks(count), BLOCK, np.int32(count), values, sums, totals)
    if blocks(count) == 1:
        return sums, int(np.asarray(totals)[0])
    offsets, total = scan(session, totals, blocks(count))
    session.launch("add_totals", blocks(count), BLOCK, np.int32(count), offsets, sums)
    return sums, total


def sort(session: Session, count: int, *keys: DeviceArray) -> DeviceArray:
    """Launch the steps of a bitonic sort of the numbers below `count` by `keys`; return the order.

    The order goes on to the next power of two, with the numbers from `count` on.
    """
    padded = 1 << max(1, (count - 1).bit_length())
    pairs = padded // 2
    order = session.array(np.arange(padded, dtype=np.int32))
    for size in (1 << i for i in range(1, padded.bit_length())):
        distance = size // 2
        while distance:
            session.launch(
                "sort_step",
                blocks(pairs),
                BLOCK,
                np.int32(count),
                np.int32(pairs),
                np.int32(size),
                np.int32(distance),
                *keys,
                order,
            )
            distance //= 2
    return order
