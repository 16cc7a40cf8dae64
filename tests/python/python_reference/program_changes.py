"""Slow and obvious transforms of traces: what a change of the program does to each instruction."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import numpy as np


@dataclass
class Issued:
    """An issued instruction of a warp."""

    warp: int
    row: int
    mask: int
    count: int | None = None  # of memory instructions
    passes: int = 0
    sectors: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    lanes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def active(self):
        return bin(self.mask).count("1")


def blocks_of(kernel):
    """Return the instructions of each block, warp after warp."""
    table = kernel.instructions
    is_memory = (table["op_class"] == "memory").to_list()
    is_cached = [m and s != "shared" for m, s in zip(is_memory, table["space"], strict=True)]
    writes = [
        c and k in ("store", "atomic", "reduction")
        for c, k in zip(is_cached, table["kind"], strict=True)
    ]
    blocks = []
    for position, (_, warps) in enumerate(kernel.blocks()):
        block = []
        for w in range(len(warps)):
            columns = kernel.warp(position, w)
            memory = sector = store = 0
            for row, mask in zip(columns["instruction"], columns["active_mask"], strict=True):
                one = Issued(w, int(row), int(mask))
                if is_memory[row]:
                    one.count = int(columns["memory_count"][memory])
                    one.passes = int(columns["l1_passes"][memory])
                    memory += 1
                    if is_cached[row]:
                        one.sectors = columns["sector"][sector : sector + one.count].tolist()
                        sector += one.count
                    if writes[row]:
                        one.bytes = columns["store_bytes"][store : store + one.count].tolist()
                        # Stores have none, or zeros in blocks with atomics.
                        if len(columns["sector_lanes"]) and table["kind"][row] != "store":
                            one.lanes = list(
                                zip(
                                    columns["sector_lanes"][store : store + one.count].tolist(),
                                    columns["word_lanes"][store : store + one.count].tolist(),
                                    strict=True,
                                )
                            )
                        store += one.count
                block.append(one)
        blocks.append(block)
    return blocks


def bits(mask):
    return bin(mask).count("1")


def ceil_div(a, b):
    return -(-a // b)


def is_of_lanes(row):
    return row.width > 0 and not row.opcode.startswith(("wmma", "U")) and ".bulk" not in row.opcode


def least_sectors(row, one):
    total = one.active * row.width
    if one.bytes:
        total = min(total, sum(map(bits, one.bytes)))
    return max(ceil_div(total, 32), 1)


def least_passes(row, one):
    if not one.count or not is_of_lanes(row):
        return one.count
    return min(one.count, max(ceil_div(one.active * row.width, 128), 1))


def combined(lanes, mask, width):
    return (min(lanes[0], ceil_div(bits(mask), max(width, 1))), 1) if lanes[1] else lanes


def is_barrier(row):
    return row.opcode.startswith(("BAR.SYNC", "BAR.ARV"))


def rows_of(kernel):
    return list(kernel.instructions.itertuples())


def no_bank_conflicts(kernel, chosen):
    rows = rows_of(kernel)

    def change(one):
        row = rows[one.row]
        if row.space == "shared" and row.kind in ("load", "store") and one.row in chosen:
            return replace(one, count=least_passes(row, one))
        return one

    return [[change(one) for one in block] for block in blocks_of(kernel)]


def combined_atomics(kernel, chosen):
    rows = rows_of(kernel)

    def change(one):
        row = rows[one.row]
        if row.kind not in ("atomic", "reduction") or one.row not in chosen:
            return one
        if row.space == "shared":
            return replace(one, count=least_passes(row, one))
        pairs = zip(one.lanes, one.bytes, strict=True)
        return replace(one, lanes=[combined(lanes, mask, row.width) for lanes, mask in pairs])

    return [[change(one) for one in block] for block in blocks_of(kernel)]


def no_barriers(kernel, chosen):
    rows = rows_of(kernel)
    return [
        [one for one in block if not (is_barrier(rows[one.row]) and one.row in chosen)]
        for block in blocks_of(kernel)
    ]


def is_plain(row):
    words = ("volatile", "acquire", "release", "relaxed", "mmio", "STRONG")
    return (
        row.kind in ("load", "store")
        and row.space != "shared"
        and is_of_lanes(row)
        and not any(word in row.opcode for word in words)
    )


def kept_in_registers(kernel, chosen):
    """Of a run of the same access by a warp, time after time, one stays; see the C++ header."""
    rows, result = rows_of(kernel), []
    for block in blocks_of(kernel):
        executions = defaultdict(list)
        for place, one in enumerate(block):
            if one.sectors and is_plain(rows[one.row]):
                executions[one.warp, one.row].append(place)
        left_out = set()
        for (_, row), places in executions.items():
            runs = []
            for place in places:
                one = block[place]
                key = (one.mask, one.sectors, one.bytes)
                if runs and runs[-1][0] == key:
                    runs[-1][1].append(place)
                else:
                    runs.append((key, [place]))
            for _, run in runs:
                if rows[row].kind == "store":
                    left_out.update(run[:-1])
                elif len(run) > ceil_div(32, rows[row].width):
                    left_out.update(run[1:])
        result.append(
            [one for p, one in enumerate(block) if p not in left_out or one.row not in chosen]
        )
    return result


def phases_of(accesses, tile):
    """Return (end, sectors) of phases of `accesses`, lists of sectors by warp, that fit in a tile."""
    phases, held, most = [], set(), max(map(len, accesses))
    for n in range(most):
        step = {sector for of_warp in accesses for part in of_warp[n : n + 1] for sector in part}
        if held and len(held | step) > tile:
            phases.append((n, sorted(held)))
            held = set()
        held |= step
    return [*phases, (most, sorted(held))] if most else []


def kept_in_block(kernel, chosen, shared_row, store_row, barrier_row):
    """What a block loads twice goes through tiles; the rows that are added are given by row."""
    rows, result = rows_of(kernel), []
    every = (1 << 32) - 1
    numbers = [len(warps) for _, warps in kernel.blocks()]
    for block, num_warps in zip(blocks_of(kernel), numbers, strict=True):
        times = Counter()

        def is_load(one):
            row = rows[one.row]
            can_be = row.kind == "load" and is_plain(row) and row.space != "local"
            return can_be and bool(one.sectors) and one.row in chosen

        for one in filter(is_load, block):
            times.update(one.sectors)
        kept = [is_load(one) and all(times[sector] > 1 for sector in one.sectors) for one in block]
        accesses = [[] for _ in range(num_warps)]
        for one, is_kept in zip(block, kept, strict=True):
            if is_kept:
                accesses[one.warp].append(one.sectors)
        phases, large = (phases_of(accesses, kib * 32) for kib in (8, 48))
        if 4 * sum(len(s) for _, s in large) < 3 * sum(len(s) for _, s in phases):
            phases = large
        lead = next((one.row for one, is_kept in zip(block, kept, strict=True) if is_kept), None)

        def copies(warp, number, lead=lead, phases=phases, num_warps=num_warps):
            barrier = Issued(warp, barrier_row[lead], every)
            at_once = min(rows[lead].width, 32)
            parts = [barrier] if number else []
            sectors = phases[number][1]
            for first in range(warp * at_once, len(sectors), num_warps * at_once):
                here = sectors[first : first + at_once]
                mask = (1 << ceil_div(32 * len(here), rows[lead].width)) - 1 & every
                parts.append(Issued(warp, lead, mask, len(here), 0, here))
                parts.append(Issued(warp, store_row[lead], mask, ceil_div(32 * len(here), 128)))
            return [*parts, barrier]

        changed = []
        for warp in range(num_warps):
            phase = done = 0
            if not accesses[warp]:
                for number in range(len(phases)):
                    changed += copies(warp, number)
            for one, is_kept in zip(block, kept, strict=True):
                if one.warp != warp:
                    continue
                if not is_kept:
                    changed.append(one)
                    continue
                if phase == 0 or done == phases[phase - 1][0]:
                    changed += copies(warp, phase)
                    phase += 1
                passes = least_passes(rows[one.row], one)
                changed.append(Issued(warp, shared_row[one.row], one.mask, passes))
                done += 1
                if done == len(accesses[warp]):
                    for number in range(phase, len(phases)):
                        changed += copies(warp, number)
        result.append(changed)
    return result


def register_tiles(kernel, chosen):
    rows, result = rows_of(kernel), []
    for block in blocks_of(kernel):
        times, changed = Counter(), []
        for one in block:
            row = rows[one.row]
            if (
                row.space == "shared"
                and row.kind == "load"
                and one.row in chosen
                and is_of_lanes(row)
            ):
                times[one.warp, one.row] += 1
                if times[one.warp, one.row] % 4 != 1:
                    continue
            changed.append(one)
        result.append(changed)
    return result


DIVISION = [
    *("cvt.rp.f32.u32", "rcp.approx.ftz.f32", "cvt.rzi.u32.f32"),
    *["mad.lo.u32"] * 3,
    *["mul.hi.u32"] * 2,
    *["setp.ge.u32"] * 3,
]
WIDE = [
    *("cvt.rp.f32.u64", "rcp.approx.ftz.f32", "cvt.rzi.u64.f32"),
    *["mad.wide.u32"] * 24,
    *["add.cc.u32"] * 24,
    *["setp.ge.u32"] * 8,
    *["selp.u32"] * 8,
]


def cheap_division(kernel, chosen):
    """The last of the rows of a quotient or remainder stays."""
    opcodes = kernel.instructions["opcode"].to_list()
    left_out = set()
    for sequence in ([*DIVISION, *["add.u32"] * 5], [*DIVISION, *["sub.u32"] * 4], WIDE):
        for first in range(len(opcodes)):
            if opcodes[first : first + len(sequence)] == sequence:
                left_out.update(range(first, first + len(sequence) - 1))
    return [
        [one for one in block if one.row not in left_out & set(chosen)]
        for block in blocks_of(kernel)
    ]


def coalesced(kernel, chosen):
    """Each access keeps whole lines that accesses of its kind have kept least; see the C++ header."""
    rows, blocks = rows_of(kernel), blocks_of(kernel)

    def is_changed(one):
        row = rows[one.row]
        return (
            bool(one.sectors)
            and row.kind in ("load", "store", "async_copy")
            and is_of_lanes(row)
            and one.row in chosen
            and len(one.sectors) > least_sectors(row, one)
        )

    touched, kept = defaultdict(set), Counter()
    for block in blocks:
        for one in filter(is_changed, block):
            for sector in one.sectors:
                touched[sector // 4, bool(one.bytes)].add(sector % 4)

    def change(one):
        if not is_changed(one):
            return one
        least, writes = least_sectors(rows[one.row], one), bool(one.bytes)
        lines = sorted({sector // 4 for sector in one.sectors})
        places = {line: sorted(touched[line, writes]) for line in lines}
        total = sum(map(len, places.values()))
        if ceil_div(total, 4) < len(lines):
            lines = lines[: ceil_div(total, 4)]
            places = {line: [0, 1, 2, 3] for line in lines}
            places[lines[-1]] = list(range(total % 4 or 4))
        sectors = []
        for line in sorted(lines, key=lambda each: kept[each, writes]):
            here = places[line]
            taken = min(len(here), least - len(sectors))
            first = kept[line, writes] % len(here)
            chosen_here = {here[(first + i) % len(here)] for i in range(taken)}
            sectors += [4 * line + place for place in sorted(chosen_here)]
            kept[line, writes] += taken
            if len(sectors) == least:
                break
        masks = []
        if writes:
            rest = min(sum(map(bits, one.bytes)), one.active * rows[one.row].width)
            for _ in sectors:
                masks.append((1 << min(rest, 32)) - 1)
                rest -= 32
        lanes = one.lanes[: len(sectors)]
        return replace(one, sectors=sectors, bytes=masks, lanes=lanes, count=len(sectors), passes=0)

    return [[change(one) for one in block] for block in blocks]


def private_atomics(kernel, chosen, shared_row, store_row, barrier_row):
    """Blocks clear, add up in shared memory, and add each word once; added rows are given by row."""
    rows, result = rows_of(kernel), []
    every = (1 << 32) - 1
    numbers = [len(warps) for _, warps in kernel.blocks()]
    for block, num_warps in zip(blocks_of(kernel), numbers, strict=True):

        def is_atomic(one):
            row = rows[one.row]
            is_cached = row.kind in ("atomic", "reduction") and row.space != "shared"
            return is_cached and bool(one.count) and is_of_lanes(row) and one.row in chosen

        found, lead = defaultdict(int), None
        for one in filter(is_atomic, block):
            lead = one.row if lead is None else lead
            for sector, mask in zip(one.sectors, one.bytes, strict=True):
                found[sector] |= mask
        sums = sorted(found)
        changed = []
        for warp in range(num_warps):
            shares = [
                sums[first : first + 4] for first in range(4 * warp, len(sums), 4 * num_warps)
            ]
            own = [one for one in block if one.warp == warp]
            clears, ends = [], []
            if sums:
                barrier = Issued(warp, barrier_row[lead], every)
                for share in shares:
                    words = [ceil_div(bits(found[s]), rows[lead].width) for s in share]
                    mask = (1 << min(sum(words), 32)) - 1
                    clears.append(Issued(warp, store_row[lead], mask, 1))
                    lanes = [(count, 1) for count in words]
                    masks = [found[s] for s in share]
                    ends.append(Issued(warp, lead, mask, len(share), 0, share, masks, lanes))
                clears.append(barrier)
                ends.insert(0, barrier)
            body = [
                Issued(warp, shared_row[o.row], o.mask, max([1, *(w for _, w in o.lanes)]))
                if is_atomic(o)
                else o
                for o in own
            ]
            place = len(body) - (1 if own and not is_atomic(own[-1]) else 0)
            changed += [*clears, *body[:place], *ends, *body[place:]]
        result.append(changed)
    return result


def no_divergence(kernel, chosen, may_gather):
    """`may_gather` says by row whether its partial executions are gathered."""
    rows, result = rows_of(kernel), []
    threads = int(np.prod(kernel.block))
    numbers = [warps for _, warps in kernel.blocks()]
    indices = [index for index, _ in kernel.blocks()]
    for index, block, warps in zip(indices, blocks_of(kernel), numbers, strict=True):
        first = (index * 0x9E3779B97F4A7C15 % (1 << 64) >> 32) % len(warps)
        groups, times = {}, Counter()
        for place, one in enumerate(block):
            time = times[one.warp, one.row]
            times[one.warp, one.row] += 1
            lanes = min(32, threads - 32 * warps[one.warp])
            of_lanes = not one.count or is_of_lanes(rows[one.row])
            if 0 < one.active < lanes and one.row in chosen and may_gather[one.row] and of_lanes:
                groups.setdefault((one.row, time), []).append(place)
        load, last, positions, new = Counter(), None, [], {}
        for places in groups.values():
            total = sum(block[place].active for place in places)
            alike = [(block[place].warp, block[place].mask) for place in places]
            if alike != last:
                warp_of = [block[place].warp for place in places]
                order = [(load[warp], (warp - first) % len(warps)) for warp in warp_of]
                by_load = sorted(range(len(places)), key=order.__getitem__)
                positions, last = sorted(by_load[: ceil_div(total, 32)]), alike
            taken, lanes = defaultdict(list), 0
            for place in places:
                lanes += block[place].active
                taken[(lanes - 1) // 32].append(block[place])
                new[place] = None
            for k, position in enumerate(positions):
                place = places[position]
                load[block[place].warp] += 1
                mask = (1 << min(32, total - 32 * k)) - 1
                new[place] = _merged(block[place], mask, taken[k], rows)
        result.append([new.get(p, one) for p, one in enumerate(block) if new.get(p, one)])
    return result


def implied_passes(sectors):
    return max(Counter(sector % 4 for sector in sectors).values(), default=0)


def _merged(stays, mask, parts, rows):
    if len(parts) == 1:
        (part,) = parts
        return replace(part, warp=stays.warp, mask=part.mask if bits(mask) == part.active else mask)
    if stays.count is None:
        return replace(stays, mask=mask)
    if rows[stays.row].space == "shared":
        return replace(stays, mask=mask, count=sum(part.count for part in parts))
    masks = {}
    for part in parts:
        for sector, written in zip(
            part.sectors, part.bytes or [0] * len(part.sectors), strict=True
        ):
            masks[sector] = masks.get(sector, 0) | written
    passes = 0
    if any(part.passes for part in parts) and masks:
        passes = min(sum(part.passes or implied_passes(part.sectors) for part in parts), 255)
    has_bytes = any(part.bytes for part in parts)
    written = list(masks.values()) if has_bytes else []
    return Issued(stays.warp, stays.row, mask, len(masks), passes, list(masks), written)


def padded_pitch(kernel, chosen):
    blocks, rows = blocks_of(kernel), rows_of(kernel)
    reach, distances, others = {}, defaultdict(Counter), Counter()

    def add(row, one, other):
        if one != other:
            others[row] += 1
            if abs(one - other) % 16 == 0:
                distances[row][abs(one - other)] += 1

    local = 1 << 58
    for block in blocks:
        before = {}
        for one in block:
            if not one.sectors or one.sectors[0] >= local:
                continue
            first, last = reach.get(one.row, (one.sectors[0], one.sectors[0]))
            reach[one.row] = (min(first, *one.sectors), max(last, *one.sectors))
            pairs = list(zip(one.sectors, one.sectors[1:], strict=False))
            is_strided = 1 + sum(a // 4 != b // 4 for a, b in pairs) >= 8
            if is_strided:
                for a, b in pairs:
                    add(one.row, a, b)
            if one.row not in before or before[one.row][0] != one.warp:
                if one.row in before and not is_strided:
                    add(one.row, before[one.row][1], one.sectors[0])
                before[one.row] = (one.warp, one.sectors[0])
    arrays = []
    for row in sorted(reach, key=lambda each: (reach[each][0], each)):
        if not arrays or reach[row][0] > arrays[-1]["last"]:
            arrays.append({"first": reach[row][0], "last": 0, "rows": []})
        arrays[-1]["last"] = max(arrays[-1]["last"], reach[row][1])
        arrays[-1]["rows"].append(row)
    moved = 0
    for array in arrays:
        array["moved"], array["pitch"] = moved, 0
        total = sum((distances[row] for row in array["rows"]), Counter())
        every = sum(others[row] for row in array["rows"])
        frequent = [d for d, count in total.items() if 8 * count >= every]
        if frequent and chosen & set(array["rows"]):
            array["pitch"] = min(frequent)
            added = (array["last"] - array["first"]) // array["pitch"] * 4
            moved += (added // 32768 + 1) * 32768

    def place(sector):
        inside = [array for array in arrays if array["first"] <= sector < local]
        if not inside:
            return sector
        array = inside[-1]
        row = (sector - array["first"]) // array["pitch"] if array["pitch"] else 0
        return sector + array["moved"] + 4 * row

    assert rows
    return [
        [replace(one, sectors=[place(sector) for sector in one.sectors]) for one in block]
        for block in blocks
    ]
