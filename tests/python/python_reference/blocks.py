"""What a launch does to memory, one block after the other, by definition."""


def add_along(cells, source, target, lanes=32):
    """Return the cells after a launch of which thread g adds g to cell `source[g]`, into `target[g]`.

    Blocks have one warp: all of its lanes have read before the first of them writes, and the last of
    those that write one cell wins.
    """
    cells = [int(cell) for cell in cells]
    for first in range(0, len(source), lanes):
        block = range(first, min(first + lanes, len(source)))
        values = [(cells[source[g]] + g) % 2**32 for g in block]
        for g, value in zip(block, values, strict=True):
            cells[target[g]] = value
    return cells
