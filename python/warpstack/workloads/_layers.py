"""Shared by the neural networks: launch geometry, seeded weights, and layers by NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Maps = npt.NDArray[np.float64]

#: Most threads of a thread block along each side of a map.
_TILE = 32
NEURONS = 64


def geometry(channels: int, width: int) -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Return grid and block of a launch with a thread per element of square maps.

    A thread block covers a channel, or a tile of 32 x 32 of it.
    """
    tiles = -(-width // _TILE)
    return (tiles, tiles, channels), (min(width, _TILE), min(width, _TILE))


def random_weights(
    generator: np.random.Generator, outputs: int, inputs: int, kernel: int = 1
) -> npt.NDArray[np.float32]:
    """Draw weights that keep the variance through a rectified layer, in one dimension."""
    fan_in = inputs * kernel * kernel
    return generator.normal(0, (2 / fan_in) ** 0.5, outputs * fan_in).astype(np.float32)


def small(generator: np.random.Generator, count: int) -> npt.NDArray[np.float32]:
    """Draw values around 0, as biases and the like."""
    return generator.normal(0, 0.1, count).astype(np.float32)


def convolve(
    maps: Maps,
    weights: npt.NDArray[np.float32],
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
) -> Maps:
    """Convolve maps of the shape (channels, rows, columns), by a matrix product per group."""
    padded = np.pad(maps, ((0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))
    windows = windows[:, ::stride, ::stride]
    _, height, width = windows.shape[:3]
    inputs = len(maps) // groups
    filters = weights.astype(np.float64).reshape(groups, -1, inputs * kernel * kernel)
    parts = []
    for group in range(groups):
        own = windows[group * inputs : (group + 1) * inputs]
        columns = own.transpose(0, 3, 4, 1, 2).reshape(inputs * kernel * kernel, height * width)
        parts.append((filters[group] @ columns).reshape(-1, height, width))
    return np.concatenate(parts)


def pool_maximum(maps: Maps, padding: int = 0) -> Maps:
    """Return the greatest of 3 x 3 values, two apart."""
    padded = np.pad(maps, ((0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    greatest: Maps = windows[:, ::2, ::2].max(axis=(3, 4))
    return greatest


def connect(
    values: Maps, weights: npt.NDArray[np.float32], biases: npt.NDArray[np.float32]
) -> Maps:
    """Return the sums of a fully connected layer."""
    sums: Maps = weights.astype(np.float64).reshape(len(biases), -1) @ values.ravel() + biases
    return sums
