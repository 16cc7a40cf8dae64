"""Which measured operation is which predicted one: the slow, obvious form of `Timeline.compare`.

Each measured operation, in the order of the calls, asks all predicted ones in their order for the first
that it can be and that is not taken in the iteration; where all are taken, the next iteration begins for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def pairs(
    ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], iterations: int
) -> dict[int, int]:
    """Return the predicted partner of each measured operation that has one.

    Parameters
    ----------
    ours, theirs
        Operations in the order of their calls: kernels with demangled names, copies with ``direction``
        and ``bytes``, measured ones rounded to ``bytes_step``. No size is between two measured ones.
    iterations
        How often a predicted operation can be taken.
    """
    taken = [0] * len(ours)
    found = {}
    for place, measured in enumerate(theirs):
        for run in range(iterations):
            free = [
                row
                for row, predicted in enumerate(ours)
                if taken[row] == run and are_alike(predicted, measured, ours, theirs)
            ]
            if free:
                taken[free[0]] += 1
                found[place] = free[0]
                break
    return found


def are_alike(
    predicted: Mapping[str, Any],
    measured: Mapping[str, Any],
    ours: Sequence[Mapping[str, Any]],
    theirs: Sequence[Mapping[str, Any]],
) -> bool:
    if predicted["operation"] != measured["operation"]:
        return False
    if predicted["operation"] == "copy":
        near = abs(predicted["bytes"] - measured["bytes"]) <= measured["bytes_step"] // 2
        return predicted["direction"] == measured["direction"] and near
    mine, other = predicted["name"], measured["full_name"]
    if mine == other:
        return True
    # Instances of a template that only one side has are partners by the function's own name.
    both = {one["name"] for one in ours if one["operation"] == "kernel"}
    both &= {one["full_name"] for one in theirs}
    return own(mine) == own(other) and mine not in both and other not in both


def own(name: str) -> str:
    return name.removeprefix("void ").split("(")[0].split("<")[0].rsplit("::", 1)[-1]
