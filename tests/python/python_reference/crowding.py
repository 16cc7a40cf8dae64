"""How unevenly requests under way together fall on the slices of L2, window by window."""

import math


def crowding(passed, slices, window):
    """Return how much longer slices take than if all always had as many turns.

    passed: (slice, turns) of each request in the order in which L2 gets them; window: requests that may
    be under way at once.

    The most asked slice of a window counts with what it has at least if chance gave it more than others.
    """
    all_turns, crowded = 0, 0
    for first in range(0, len(passed), window):
        part = passed[first : first + window]
        turns = [sum(t for where, t in part if where == one) for one in range(slices)]
        spread = math.sqrt(max(turns) * max(t for _, t in part) * 2 * math.log(slices))
        certain = round(1024 * slices * (max(turns) - spread)) / 1024
        all_turns += sum(turns)
        crowded += max(sum(turns), certain)
    return crowded / all_turns if all_turns else 1
