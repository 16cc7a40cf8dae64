"""Several kernels' warps in one network, by its equations: every sum written out."""

import math

from warpstack import _core

_STATIONS = len(_core.CustomerClass(1, 0, [], 0, 0, 0, 0).visits)
#: Stations that a class has for itself: the slices and channels that it asks most.
PRIVATE = range(_STATIONS - 2, _STATIONS)
#: Stations that all SMs share.
SHARED = (*range(6, 10), *PRIVATE)
#: Stations behind L1.
BEHIND_L1 = (*range(4, 10), *PRIVATE)


def times(classes, groups, mshrs, rates):
    """Return the cycles of an instruction of each class in each group, given the rates of all SMs.

    classes: CustomerClass; groups: [(SMs, [blocks of each class])]; rates: {(group, class): instructions
    of an SM in a cycle}. Infinite where a queue would have no end.
    """
    found, trips, stores = {}, {}, {}

    def busy(g, c, k):
        """Return for how much of the time a group's warps of a class keep a station busy."""
        sms = groups[g][0] if k in SHARED else 1
        return classes[c].visits[k].busy * rates[g, c] * sms

    for g, c in rates:
        one = classes[c]
        time, behind, store = one.think, 0.0, 0.0
        for k, visit in enumerate(one.visits):
            if visit.busy == 0:
                continue
            there = [other for other in rates if k in SHARED or other[0] == g]
            if k in PRIVATE:
                there = [other for other in there if other[1] == c]
            warps = groups[g][1][c] * one.warps_per_block
            customers = warps * (groups[g][0] if k in SHARED else 1)
            customers = max(customers / visit.sharers / min(visit.in_step, warps), 1)
            free = 1 - sum(busy(*other, k) for other in there)
            if free <= 0:
                return None
            # Who is served is half done; nobody waits for itself.
            ahead = sum(
                busy(*other, k) * classes[other[1]].visits[k].service / 2 for other in there
            )
            ahead -= busy(g, c, k) / customers * visit.service / 2
            if k in BEHIND_L1:
                store += visit.service + ahead / free
            if visit.demand == 0:
                continue
            stay = visit.demand + visit.count * ahead / free
            time += stay - visit.early
            if k in BEHIND_L1:
                behind += stay
        found[g, c] = time
        trips[g, c] = one.trip + (behind / one.waiting_loads if one.waiting_loads else 0)
        stores[g, c] = store
    for name, cycles in (("held_misses", trips), ("posted", stores)):
        for g in range(len(groups)):
            counts = {c: getattr(classes[c], name) for h, c in rates if h == g}
            held = sum(rates[g, c] * count * cycles[g, c] for c, count in counts.items())
            if held == 0:
                continue
            load = held / mshrs
            if load >= 1:
                return None
            mean = held / sum(rates[g, c] * count for c, count in counts.items())
            wait = mean / mshrs * load ** (math.sqrt(2 * (mshrs + 1)) - 1) / (1 - load)
            for c, count in counts.items():
                found[g, c] += wait * count
    return found
