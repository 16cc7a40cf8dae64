"""Plain definition of stack distances, their sampling, the SDCM and families of caches."""

import math
from collections import Counter
from fractions import Fraction

from python_reference.memory import resident_blocks, sm_order, warp_accesses

MASK = 2**64 - 1


def distances(lines):
    """Return the stack distance of each access; None for a first access."""
    stack, result = [], []
    for line in lines:
        if line in stack:
            place = stack.index(line)
            result.append(place)
            del stack[place]
        else:
            result.append(None)
        stack.insert(0, line)
    return result


def sampling_hash(line, seed):
    """SplitMix64 of a line number."""
    x = (line + (seed + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def sampled_misses(lines, rate, batches, seed, size):
    """Return the estimated misses of a cache of `size` lines: by the whole sample, by each batch."""
    threshold = int(rate * 2**64)
    width = threshold // batches + 1
    places = [sampling_hash(line, seed) for line in lines]

    def misses(keep, share):
        kept = [line for line, place in zip(lines, places, strict=True) if keep(place)]
        return sum(d is None or d / share >= size for d in distances(kept)) / share

    whole = misses(lambda place: place < threshold, rate)
    parts = [
        misses(lambda place, b=b: place < threshold and place // width == b, rate / batches)
        for b in range(batches)
    ]
    return whole, parts


def hit_probability(distance, ways, lines):
    """Cache paper, Eq. 1, as printed, in fractions."""
    if distance < ways:
        return Fraction(1)
    inside = Fraction(ways, lines)
    return sum(
        math.comb(distance, a) * inside**a * (1 - inside) ** (distance - a) for a in range(ways)
    )


def sdcm(lines, ways, cache_lines):
    """Cache paper, Eq. 2."""
    found = Counter(d for d in distances(lines) if d is not None)
    hits = sum(n * hit_probability(d, ways, cache_lines) for d, n in found.items())
    return float(hits / len(lines))


class PlainLruCache:
    """A set-associative LRU cache of lines."""

    def __init__(self, sets, ways):
        self.sets = [[] for _ in range(sets)]
        self.ways = ways

    def access(self, line):
        """Return whether the line was there; it is there afterwards."""
        lines = self.sets[line % len(self.sets)]
        hit = line in lines
        if hit:
            lines.remove(line)
        lines.insert(0, line)
        del lines[self.ways :]
        return hit

    def holds(self, line):
        return line in self.sets[line % len(self.sets)]

    def drop(self, line):
        if self.holds(line):
            self.sets[line % len(self.sets)].remove(line)


def kernel_streams(kernel, gpu, limits, level, line_bytes, l1=None, allocate_stores=False):
    """Return the streams [(line, kind)] of a kernel; `l1` makes the caches that filter."""
    per_line = line_bytes // 32
    table = kernel.instructions
    orders = []
    for sm in range(gpu.num_sms):
        mine = [
            (position, [(w, warp_accesses(kernel, position, w)) for w in range(len(warps))])
            for position, (linear, warps) in enumerate(kernel.blocks())
            if linear % gpu.num_sms == sm
        ]
        if mine:
            orders.append(list(sm_order(mine, resident_blocks(limits, kernel))))

    def touched(turn):
        row, sectors, _ = turn[2]
        kind = table.kind[row]
        kind = {"reduction": "atomic", "async_copy": "load"}.get(kind, kind)
        bypass = kind == "load" and table.cache_operator[row] == "bypass_l1"
        return [(line, kind, bypass) for line in dict.fromkeys(s // per_line for s in sectors)]

    if level == "l1":
        return [
            [
                (line, k)
                for turn in order
                for line, k, by in touched(turn)
                if k != "atomic" and not by
            ]
            for order in orders
        ]
    caches = [l1() if l1 else None for _ in orders]
    stream = []
    for step in range(max((len(order) for order in orders), default=0)):
        for order, cache in zip(orders, caches, strict=True):
            for line, kind, bypass in touched(order[step]) if step < len(order) else []:
                if cache and kind == "atomic":
                    cache.drop(line)
                elif cache and kind == "store":
                    if allocate_stores or cache.holds(line):
                        cache.access(line)
                elif cache and not bypass and cache.access(line):
                    continue
                stream.append((line, kind))
    return [stream]
