"""Operations in time: what the core's play makes of them, and what each waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack.hardware.description import Gpu
from warpstack.timelines.plan import Plan
from warpstack.traces.order import KINDS

__all__ = ["CALL", "QUEUE", "Schedule", "play"]

_REASONS = {name: number for number, name in enumerate(_core.TIMELINE_REASONS)}
#: What a start waited for, in words; those of the core, and for dependences those of `KINDS`.
WORDS = ("", "host", *KINDS, "engine", "places", "queue")
#: The reason of operations that waited for their own call, and of those that waited behind another one of
#: their connection.
CALL, QUEUE = "host", "queue"


@dataclass(frozen=True)
class Schedule:
    """When operations were where; a value each, in us, -1 where an operation was not.

    Attributes
    ----------
    host_start, host_end
        Of the call.
    ready, start, end
        On the device: when nothing but its engine kept it from starting, its start and its end. Those of
        calls without work on the device are those of the call.
    why
        What its start on the device waited for, as a place in `WORDS`.
    released_by
        The row that it waited for last; -1: none but the call.
    freed_by
        The row that it waited for last, where nothing held up its connection or engine; -1: none but the
        call.
    host_waited_for
        The row whose end let the call return; -1: none.
    held_by
        The kernel whose end its blocks waited for after their start; -1: none.
    """

    host_start: npt.NDArray[np.float64]
    host_end: npt.NDArray[np.float64]
    ready: npt.NDArray[np.float64]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    why: npt.NDArray[np.uint8]
    released_by: npt.NDArray[np.int32]
    freed_by: npt.NDArray[np.int32]
    host_waited_for: npt.NDArray[np.int32]
    held_by: npt.NDArray[np.int32]

    @property
    def time_us(self) -> float:
        """The end of the last operation or call."""
        return float(max(self.end.max(initial=0.0), self.host_end.max(initial=0.0)))


def play(
    order: Plan, gpu: Gpu, classes: Sequence[tuple[_core.CustomerClass, float]] = ()
) -> Schedule:
    """Play operations on a GPU.

    Kernels that run together delay each other as their `classes` say; without them they do not.

    Raises
    ------
    InputError
        If operations wait for one another in a circle.
    """
    speeds = _core.KernelSpeeds(list(classes), gpu._core) if classes else None
    made = _core.play_operations(
        order.columns,
        gpu.concurrent_grids,
        gpu.hardware_queues == 1,
        speeds,
        gpu.host_link_both_ways,
    )
    return Schedule(**{**made, "why": _words(order, made["why"], made["released_by"])})


def _words(order: Plan, why: Any, released_by: Any) -> npt.NDArray[np.uint8]:
    """Return the reasons of the core as places in `WORDS`."""
    first, rows = order.columns["after_first"], order.columns["after_rows"]
    owner = np.repeat(np.arange(len(why)), np.diff(first))
    found = np.zeros(len(why), np.uint8)
    match = (why[owner] == _REASONS["dependence"]) & (rows == released_by[owner])
    # Of several the first one: it is written last.
    found[owner[match][::-1]] = WORDS.index(KINDS[0]) + order.kinds[match][::-1]
    for name in ("host", "engine", "places", "queue"):
        found[why == _REASONS[name]] = WORDS.index(name)
    return found
