"""What caches make of a recorded order of accesses, access by access and set by set in lists."""

from __future__ import annotations

L2_ROUND_TRIP, DRAM_ROUND_TRIP, L1_ROUND_TRIP = 120, 340, 25


class Lru:
    """Lines of sets of a few ways, those used last at the end."""

    def __init__(self, sets, ways):
        self.sets = [[] for _ in range(sets)]
        self.ways = ways

    def use(self, number, line):
        """Use a line of a set and return whether it was there."""
        lines = self.sets[number]
        found = line in lines
        if found:
            lines.remove(line)
        elif len(lines) == self.ways:
            lines.pop(0)
        lines.append(line)
        return found


def replay_loads(lines, accesses, num_sms, l1, l2):
    """Return counters by row of loads alone, of whole lines of 128 bytes in L1 and an L2 of one slice.

    Parameters
    ----------
    lines, accesses
        Of a recording, as dictionaries of columns.
    num_sms
        SMs that have blocks.
    l1, l2
        Sets and ways.

    Returns
    -------
    dict
        By row: requests that miss L1, and L2; waits and their cycles by where the last data came from;
        of these, the number and the cycles of those of warps that go back.
    """
    caches = [Lru(*l1) for _ in range(num_sms)]
    below = Lru(*l2)
    port = [0] * num_sms
    under_way = [{} for _ in range(num_sms)]
    arrivals = {}
    rows = {}
    for sm, access, line, time in zip(
        *(lines[name].tolist() for name in ("sm", "access", "line", "time")), strict=True
    ):
        row = rows.setdefault(accesses["row"][access], [0, 0, [0, 0, 0], [0, 0, 0], 0, [0, 0, 0]])
        mine = arrivals.setdefault(access, [])
        if caches[sm].use(line % l1[0], line):
            mine.append((time + L1_ROUND_TRIP, 0))
            seen = under_way[sm].get(line % 256)
            if seen and seen[0] == line:
                mine.append(seen[1])
            continue
        row[0] += 1
        hit = below.use(line % l2[0], line)
        row[1] += not hit
        sent = max(time, port[sm])
        port[sm] = sent + 4
        back = (sent + L2_ROUND_TRIP, 1) if hit else (sent + DRAM_ROUND_TRIP, 2)
        mine.append(back)
        under_way[sm][line % 256] = (line, back)
    open_waits = {}
    furthest = {}  # row that the warp has accessed memory with
    for access in range(len(accesses["row"])):
        warp = accesses["warp"][access]
        waiting = open_waits.setdefault(warp, [])
        is_repeat = accesses["row"][access] <= furthest.get(warp, -1)
        furthest[warp] = max(furthest.get(warp, -1), accesses["row"][access])
        waiting.append((access, is_repeat))
        if not accesses["ends_wait"][access]:
            continue
        del open_waits[warp]
        time, source = max(arrival for one, _ in waiting for arrival in arrivals[one])
        for one, is_repeat in waiting:
            row = rows[accesses["row"][one]]
            row[2][source] += 1
            wait = time - int(accesses["sent"][one])
            cycles = min(max(wait, 0), (L1_ROUND_TRIP, L2_ROUND_TRIP, DRAM_ROUND_TRIP)[source])
            row[3][source] += cycles
            row[4] += is_repeat
            row[5][source] += cycles * is_repeat
    return rows
