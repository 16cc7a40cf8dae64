"""Slices, ways and sets of caches whose measured size the base's do not divide."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from warpstack.calibration.fitting import Estimate
from warpstack.hardware.description import Gpu

__all__ = ["fit_l1", "fit_l2", "notes_on_caches"]

#: A cache is a real one if its size is within this part of the measured one.
_OFF = 0.01
#: Slices and ways are at most so many times more, or fewer, than the base's.
_TIMES = 2


class _Shape(NamedTuple):
    slices: int
    ways: int
    sets: int  #: of a slice

    @property
    def lines(self) -> int:
        return self.slices * self.ways * self.sets


def fit_l2(size_kib: float, base: Gpu) -> dict[str, Estimate]:
    """Return the shape of an L2 of the size that the driver says, as far as it is not the base's.

    Real GPUs of a family have slices alike, and more or fewer of them, as they have channels of DRAM:
    slices follow the size, and ways stay. Only where that gives no such size do ways change, too.
    """
    per_channel = base.l2_slices // base.dram_channels if base.dram_channels else 1
    lines = size_kib * 1024 / base.l2_line_bytes
    shape = _shape(lines, base, base.l2_slices, per_channel, base.l2_ways, base.l2_replacement)
    said = f"the driver says {size_kib:g} KiB"
    found = {"l2_size_kib": Estimate(size_kib, "the driver says so")}
    whole = shape.lines * base.l2_line_bytes / 1024
    if whole != size_kib:
        how = f"{said}; the nearest size of {shape.slices} slices of {shape.ways} ways"
        found["l2_size_kib"] = Estimate(whole, how, "derived")
    how = (
        f"{said}, which {base.name}'s {base.l2_slices} slices of {base.l2_ways} ways do not divide"
    )
    if shape.slices != base.l2_slices:
        found["l2_slices"] = Estimate(shape.slices, how, "derived")
        if base.dram_channels:
            channels = f"{per_channel} slices of L2 per channel, as {base.name} has"
            found["dram_channels"] = Estimate(shape.slices // per_channel, channels, "derived")
    if shape.ways != base.l2_ways:
        found["l2_ways"] = Estimate(shape.ways, how, "derived")
    return found


def fit_l1(size: Estimate, base: Gpu) -> dict[str, Estimate]:
    """Return the shape of an L1 of a measured size, as far as it is not the base's."""
    assert isinstance(size.value, float)
    lines = size.value * 1024 / base.l1_line_bytes
    shape = _shape(lines, base, 1, 0, base.l1_ways, base.l1_replacement)
    found = {"l1_size_kib": size}
    whole = shape.lines * base.l1_line_bytes / 1024
    if whole != size.value:
        how = f"{size.how}: {size.value:g} KiB; the nearest size of {shape.ways} ways"
        found["l1_size_kib"] = Estimate(whole, how, "derived")
    if shape.ways != base.l1_ways:
        how = f"the number nearest to {base.name}'s {base.l1_ways} that divides the measured size"
        found["l1_ways"] = Estimate(shape.ways, how, "derived")
    if base.unified_l1_kib and whole != base.l1_size_kib:
        how = f"l1_size_kib, and what {base.name} has beside it"
        unified = whole + base.unified_l1_kib - base.l1_size_kib
        found["unified_l1_kib"] = Estimate(unified, how, "derived")
    return found


def notes_on_caches(base: Gpu, found: Mapping[str, Estimate]) -> Iterable[str]:
    """Yield what of the base's caches was changed to fit the measured sizes."""
    for level in ("l1", "l2"):
        fields = (f"{level}_slices", f"{level}_ways", "dram_channels" if level == "l2" else "")
        changed = [field for field in fields if field in found]
        is_off = f"{level}_size_kib" in found and found[f"{level}_size_kib"].confidence == "derived"
        if not changed and not is_off:
            continue
        size = found[f"{level}_size_kib"]
        texts = [
            f"{field} {found[field].value} in place of {getattr(base, field)}" for field in changed
        ]
        if is_off:
            texts.append(f"{level}_size_kib {size.value:g} ({size.how})")
        else:
            texts[-1] += f", for {size.value:g} KiB"
        yield f"{level} of {base.name} does not have the measured size: {', '.join(texts)}"


def _shape(
    lines: float, base: Gpu, slices: int, per_channel: int, ways: int, replacement: str
) -> _Shape:
    """Return the shape nearest to the base's that has a number of lines, or nearly.

    Parameters
    ----------
    lines
        Of the whole cache.
    base
        Its size of L2 says how slices follow the size.
    slices, ways
        The base's.
    per_channel
        Slices are multiples of it; 0: they stay.
    replacement
        Of the base; a tree has a power of two of ways.
    """

    def whole(slices: int, ways: int) -> _Shape:
        return _Shape(slices, ways, max(round(lines / (slices * ways)), 1))

    same = whole(slices, ways)
    if same.lines == lines:
        return same
    wanted = float(slices)
    if per_channel:
        in_proportion = slices * lines * base.l2_line_bytes / 1024 / base.l2_size_kib
        if slices / _TIMES <= in_proportion <= slices * _TIMES:
            wanted = in_proportion

    def cost(shape: _Shape) -> tuple[bool, float]:
        off = abs(shape.lines / lines - 1)
        far = abs(math.log(shape.ways / ways)) + abs(math.log(shape.slices / wanted))
        return off > 0, far + off / _OFF

    def is_possible(ways: int) -> bool:
        return replacement != "plru" or ways & (ways - 1) == 0

    near = (range(-(-slices // _TIMES), slices * _TIMES + 1), -(-ways // _TIMES))
    tiny = (range(1, slices * _TIMES + 1), 1)  # a cache that has fewer lines than the base ways
    shapes: list[_Shape] = []
    for numbers, least_ways in (near, tiny):
        counts = [n for n in numbers if n % per_channel == 0] if per_channel else [slices]
        of_ways = [n for n in range(least_ways, ways * _TIMES + 1) if is_possible(n)]
        shapes = [whole(*numbers) for numbers in itertools.product(counts, of_ways)]
        close = [shape for shape in shapes if abs(shape.lines / lines - 1) <= _OFF]
        if close:
            return min(close, key=cost)
    return min(shapes, key=lambda shape: abs(shape.lines - lines))
