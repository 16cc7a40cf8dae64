"""A reason as a sentence: what would make a kernel how much faster, and whether its CPI stack says so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from warpstack.models.reasons.resources import CHANGES, LEAST_OF_PAIR

__all__ = ["LEAST_GAIN", "reason_of_sum", "sentence"]

#: A change that gains less than this part says nothing.
LEAST_GAIN = 0.03

_BY_WORDS = {change.words: change.parts for change in CHANGES.values()}


def sentence(reason: str, gain: float, largest: str) -> str:
    """Return what would make a kernel faster, and what its CPI stack says where that is something else.

    Parameters
    ----------
    reason, gain
        As the rows of `warpstack.predict` have them.
    largest
        The largest part of the CPI stack, one of `STACK_COMPONENTS`.

    Returns
    -------
    str
        A sentence without its full stop; empty where no change was tried.
    """
    if math.isnan(gain):
        return ""
    if gain < 1 + LEAST_GAIN:
        most = f" (the most: {reason}, {gain:.2f})" if gain >= 1.005 else ""
        return f"nothing alone gains more than {100 * LEAST_GAIN:.0f} %{most}"
    text = f"{reason}: {gain:.2f} times faster"
    if reason not in _BY_WORDS:
        return f"{text}, but neither alone gains more than {100 * (LEAST_OF_PAIR - 1):.0f} %"
    if largest not in _BY_WORDS[reason]:
        text += f"; the stack's largest part is {largest}, but half of that alone gains less"
    return text


def reason_of_sum(rows: Sequence[Mapping[str, Any]]) -> tuple[str, float]:
    """Return reason and gain of launches together: the change that saves most of their cycles.

    A change counts where it is the reason; other launches may gain from it, too.
    """
    total = math.fsum(row["cycles"] for row in rows)
    saved: dict[str, float] = {}
    for row in rows:
        if math.isnan(row["gain"]):
            return "", math.nan
        cycles = row["cycles"] * (1 - 1 / row["gain"])
        saved[row["reason"]] = saved.get(row["reason"], 0.0) + cycles
    best = max(saved, key=lambda reason: saved[reason])
    return best, total / (total - saved[best])
