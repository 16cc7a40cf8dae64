"""Definition of texture fetching in the CUDA C++ Programming Guide and PTX ISA, texel by texel."""

import itertools

import numpy as np

#: Columns and rows from the lower ones of the four texels of a gather, in PTX's order.
GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))


def wrapped(index, size, mode, normalized=True):
    """Texel of an index under an address mode; None is the border."""
    if 0 <= index < size:
        return index
    if mode == "border":
        return None
    if mode == "clamp" or not normalized:
        return min(max(index, 0), size - 1)
    if mode == "wrap":
        return index % size
    folded = index % (2 * size)
    return folded if folded < size else 2 * size - 1 - folded


def _in_texels(x, size, normalized):
    return float(np.float32(x)) * (size if normalized else 1)


def sampled(texels, coordinates, mode, linear, normalized, offsets=(0, 0, 0)):
    """Return the value of each channel of a sample, and the places of the texels that it is made of.

    Parameters
    ----------
    texels
        Numbers by slice, row and column, as many as there are coordinates, and by channel.
    """
    sizes = texels.shape[-2::-1]
    places = []
    for x, size, offset in zip(coordinates, sizes, offsets, strict=False):
        x = _in_texels(x, size, normalized) - (0.5 if linear else 0)
        whole = int(np.floor(x))
        share = round((x - np.floor(x)) * 256) / 256 if linear else 0
        whole += offset
        places.append([(whole, 1 - share), (whole + 1, share)] if linear else [(whole, 1)])
    total, touched = np.zeros(texels.shape[-1]), set()
    for corner in itertools.product(*places):
        weight, indices = 1.0, []
        for (index, share), size in zip(corner, sizes, strict=True):
            weight *= share
            indices.append(wrapped(index, size, mode, normalized))
        if weight and None not in indices:
            place = tuple(reversed(indices))
            touched.add(int(np.ravel_multi_index(place, texels.shape[:-1])))
            total = total + weight * texels[place]
    return total, touched


def sampled_scalar(texels, coordinates, mode, linear, normalized):
    """Return the value of a sample of texels of one channel, and the places of its texels."""
    total, touched = sampled(texels[..., None], coordinates, mode, linear, normalized)
    return float(total[0]), touched


def gathered(texels, coordinates, component, mode, normalized, offsets=(0, 0)):
    """Return a channel of the four texels around a point of a plane, and the places of these."""
    lower = []
    for x, size, offset in zip(coordinates, texels.shape[1::-1], offsets, strict=False):
        # The texture unit's coordinates have eight bits behind the point.
        lower.append(round((_in_texels(x, size, normalized) - 0.5) * 256) // 256 + offset)
    values, touched = [], set()
    for right, below in GATHERED:
        row = wrapped(lower[1] + below, texels.shape[0], mode, normalized)
        column = wrapped(lower[0] + right, texels.shape[1], mode, normalized)
        if row is None or column is None:
            values.append(0)
        else:
            values.append(texels[row, column, component])
            touched.add(row * texels.shape[1] + column)
    return values, touched


def accesses(trace, opcode):
    """Return the sectors of each execution of an instruction of PTX or SASS, in their order."""
    table = trace.instructions
    cached = table["space"] != "shared"
    found = []
    for block, (_, warps) in enumerate(trace.blocks()):
        for warp in range(len(warps)):
            columns = trace.warp(block, warp)
            end = 0
            for row, count in zip(columns["memory_static"], columns["memory_count"], strict=True):
                end += count * cached[row]
                if table["opcode"][row].lower().startswith(opcode):
                    found.append(columns["sector"][end - count : end].tolist())
    return found
