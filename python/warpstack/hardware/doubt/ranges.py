"""The columns of a row that say between which values its time lies, and those of sums of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from warpstack.hardware.doubt.errors import Range, kind_of, measured_range

__all__ = ["RANGE", "beside_time", "range_of_sum", "widened_by_sample", "with_range"]

#: Columns of the ends of the range of ``time_us``.
RANGE = ("time_us_low", "time_us_high")
#: A range has at most this logarithm to each side.
_MOST = math.log(1e3)


def with_range(values: Mapping[str, Any], model: str, card: float = 0.0) -> dict[str, Any]:
    """Return values of a row with `RANGE` beside its ``time_us``.

    Causes are independent of each other, so that their half widths, as logarithms, add up in
    quadrature.

    Parameters
    ----------
    values
        ``time_us``, ``launch_us`` and the CPI stack of a row of `warpstack.predict`.
    model
        The model that predicted it.
    card
        Half the width, as a logarithm, that guessed values of the GPU add (`time_doubt`).
    """
    measured = measured_range(model, kind_of(values))
    range_ = Range(*(min(math.hypot(one, card), _MOST) for one in measured))
    return beside_time(values, _ends(values["time_us"], range_))


def beside_time(values: Mapping[str, Any], ends: Mapping[str, float]) -> dict[str, Any]:
    """Return values of a row with others behind its ``time_us``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found[name] = value
        if name == "time_us":
            found |= ends
    return found


def _ends(time: float, range_: Range) -> dict[str, float]:
    ends = (time * math.exp(-range_.below), time * math.exp(range_.above))
    return dict(zip(RANGE, ends, strict=True))


def _range_of(values: Mapping[str, Any]) -> Range:
    time, low, high = (float(values[name]) for name in ("time_us", *RANGE))
    return Range(math.log(time / low), math.log(high / time)) if time > 0 else Range(0.0, 0.0)


def widened_by_sample(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a row whose `RANGE` is as much wider as its sample is uncertain.

    A faster end of the IPC makes the lower end of the time, and the other way round. The launch is no
    part of the sample.
    """
    time, launch, ipc = (float(values[name]) for name in ("time_us", "launch_us", "ipc"))
    if not time > 0:
        return dict(values)
    of_kernel = 1 - launch / time
    bars = []
    for end in (values["ipc_high"], values["ipc_low"]):
        bar = abs(math.log(end / ipc)) if end > 0 and ipc > 0 else _MOST
        bars.append(of_kernel * bar)
    before = _range_of(values)
    wider = Range(*(min(math.hypot(*pair), _MOST) for pair in zip(before, bars, strict=True)))
    return {**values, **_ends(time, wider)}


def range_of_sum(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return `RANGE` of the sum of the times of rows of one model and GPU.

    Errors of one kind are errors of one cause, all too high or all too low: their half widths add
    up. Those of different kinds are independent, and add up in quadrature.
    """
    total = 0.0
    below: dict[str, float] = {}
    above: dict[str, float] = {}
    for row in rows:
        time, kind = float(row["time_us"]), kind_of(row)
        one = _range_of(row)
        total += time
        below[kind] = below.get(kind, 0.0) + time * one.below
        above[kind] = above.get(kind, 0.0) + time * one.above
    if not total > 0:
        return dict.fromkeys(RANGE, 0.0)
    return _ends(total, Range(*(math.hypot(*of.values()) / total for of in (below, above))))
