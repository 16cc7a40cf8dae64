"""Plain definition of the memory stage: caches as dictionaries of sectors, one access after another."""

from collections import Counter

ALL_BYTES = 2**32 - 1
#: First sector of local memory.
LOCAL = 2**58


class Line:
    """Sectors of a resident line: number -> mask of valid bytes; which are dirty; who wrote last."""

    def __init__(self, number):
        self.number = number
        self.bytes = {}
        self.dirty = set()
        self.writer = None

    def written_back(self):
        """Return (line, {dirty sector: valid bytes}, writer), or None."""
        if not self.dirty:
            return None
        return self.number, {s: self.bytes[s] for s in sorted(self.dirty)}, self.writer

    def full(self, sector):
        return self.bytes.get(sector) == ALL_BYTES


class PlainCache:
    """An LRU cache whose sets are lists of lines, the last used first."""

    def __init__(
        self,
        *,
        size_bytes,
        ways,
        line_bytes,
        sector_bytes,
        write_policy,
        write_miss,
        replacement,
        allocation,
        set_index,
        slices,
        slice_interleave_bytes,
        slice_index,
    ):
        self.ways = ways
        self.per_line = line_bytes // 32
        self.per_unit = sector_bytes // 32
        self.through = write_policy == "write_through"
        self.write_miss = write_miss
        self.slices = slices
        self.lines_per_chunk = slice_interleave_bytes // line_bytes
        self.sets_per_slice = size_bytes // line_bytes // ways // slices
        self.sets = {}

    def place(self, line):
        """Return the set of a line: (slice, set in the slice)."""
        chunk, rest = divmod(line, self.lines_per_chunk)
        local = chunk // self.slices * self.lines_per_chunk + rest
        return chunk % self.slices, local % self.sets_per_slice

    def find(self, line):
        """Return the resident line and make it the last used one, or None."""
        lines = self.sets.setdefault(self.place(line), [])
        for candidate in lines:
            if candidate.number == line:
                lines.remove(candidate)
                lines.insert(0, candidate)
                return candidate
        return None

    def allocate(self, line):
        """Make room for a line. Return it and what must be written back."""
        lines = self.sets[self.place(line)]
        evicted = lines.pop() if len(lines) == self.ways else None
        lines.insert(0, Line(line))
        return lines[0], evicted.written_back() if evicted else None

    def unit(self, sector):
        """Return the sectors that are filled together with this one."""
        first = sector // self.per_unit * self.per_unit
        return range(first, first + self.per_unit)

    def read(self, number, wanted):
        """Return (sectors that hit, sectors to fetch, line written back)."""
        line, written_back = self.find(number), None
        if line is None:
            line, written_back = self.allocate(number)
        hits = {s for s in wanted if line.full(s)}
        fetch = {u for s in wanted - hits for u in self.unit(s) if not line.full(u)}
        line.bytes.update(dict.fromkeys(fetch, ALL_BYTES))
        return hits, fetch, written_back

    def write(self, number, masks, writer=0):
        """Write {sector: bytes}. Return (hits, fetched sectors, sectors passed on, line written back)."""
        line, written_back = self.find(number), None
        hits = {s for s in masks if line is not None and s in line.bytes}
        forward = set(masks) if self.through else set()
        fetch = set()
        written = set(masks)
        if self.write_miss == "no_allocate":
            written = hits
            forward |= set(masks) - hits
        elif line is None:
            line, written_back = self.allocate(number)
        for s in sorted(written):
            if self.write_miss == "fetch_on_write" and not line.full(s):
                units = {u for u in self.unit(s) if not line.full(u)}
                fetch |= units
                line.bytes.update(dict.fromkeys(units, ALL_BYTES))
            elif self.write_miss == "write_validate":
                line.bytes[s] = line.bytes.get(s, 0) | masks[s]
        if not self.through:
            # Without sectors there is one dirty bit for what the line holds.
            line_dirty = {u for s in written for u in self.unit(s)}
            if line is not None:
                line.dirty |= {s for s in line_dirty if s in line.bytes}
                line.writer = writer if written else line.writer
        return hits, fetch, forward, written_back

    def invalidate(self, number, lost):
        for line in self.sets.get(self.place(number), []):
            if line.number == number:
                for gone in {u for s in lost for u in self.unit(s)}:
                    line.bytes.pop(gone, None)
                    line.dirty.discard(gone)

    def flush(self):
        """Return what is written back when everything must go, and forget everything."""
        lines = [line for place in sorted(self.sets) for line in self.sets[place]]
        self.sets = {}
        return [line.written_back() for line in lines if line.dirty]

    def dirty_sectors(self):
        return sum(len(line.dirty) for lines in self.sets.values() for line in lines)


def grouped(sectors, masks, per_line):
    """Group sectors by line in order of first touch: {line: {sector in line: bytes}}."""
    lines = {}
    for i, sector in enumerate(sectors):
        lines.setdefault(sector // per_line, {})[sector % per_line] = (
            masks[i] if masks else ALL_BYTES
        )
    return lines


def resident_blocks(config, kernel):
    """Return the thread blocks that an SM holds (cache paper, Eq. 3 to 6)."""

    def up(value, unit):
        return -(-value // unit) * unit

    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    warps = -(-threads // 32)
    bounds = [config["blocks"], config["warps"] // warps, config["threads"] // threads]
    if kernel.registers_per_thread:
        per_warp = up(kernel.registers_per_thread * 32, config["register_allocation_unit"])
        bounds.append(config["registers"] // (warps * per_warp))
    asked = kernel.shared_memory_bytes + config["shared_memory_reserved_bytes"]
    if asked:
        bounds.append(
            config["shared_memory_bytes"] // up(asked, config["shared_memory_allocation_bytes"])
        )
    return min(bounds)


def warp_accesses(kernel, block, warp):
    """Return the accesses of a warp in program order: [(row, sectors, byte masks or None)]."""
    columns = kernel.warp(block, warp)
    table = kernel.instructions
    accesses, sector, store = [], 0, 0
    for row, count in zip(
        columns["memory_static"].tolist(), columns["memory_count"].tolist(), strict=True
    ):
        if table.space[row] == "shared":
            continue
        sectors = columns["sector"][sector : sector + count].tolist()
        sector += count
        masks = None
        if table.kind[row] in ("store", "atomic", "reduction"):
            masks = columns["store_bytes"][store : store + count].tolist()
            store += count
        if count:
            accesses.append((row, sectors, masks))
    return accesses


def sm_order(blocks, slots):
    """Yield (block, warp, access) of one SM; blocks: [[warp's list of accesses]] in launch order."""
    waiting = [b for b in blocks if any(warp for _, warp in b[1])]
    running = [waiting.pop(0) for _ in range(min(slots, len(waiting)))]
    while running:
        for block, warps in running:
            for warp, accesses in warps:
                if accesses:
                    yield block, warp, accesses.pop(0)
        running = [
            b if any(a for _, a in b[1]) else (waiting.pop(0) if waiting else None) for b in running
        ]
        running = [b for b in running if b is not None]


LEAVING = ("l2_requests", "l2_request_sectors", "dram_requests", "dram_sectors")


def leaving(count, missed, dram_sectors):
    """Return the counters of a request that leaves the SM."""
    return dict(zip(LEAVING, (1, count, int(missed), dram_sectors), strict=True))


class PlainMemorySystem:
    """L1 caches, L2 and DRAM of a GPU; L2 persists from kernel to kernel."""

    def __init__(self, config):
        self.config = config
        self.l2 = PlainCache(**config["l2"])

    def run(self, kernel, observe=None):
        """Return (totals, {row: counters}, accesses of the observed warp)."""
        totals, rows, observed = Counter(), {}, []
        sms = []
        for sm in range(self.config["num_sms"]):
            mine = []
            for position, (linear, warps) in enumerate(kernel.blocks()):
                if linear % self.config["num_sms"] == sm:
                    lists = [(w, warp_accesses(kernel, position, w)) for w in range(len(warps))]
                    mine.append((position, lists))
            sms.append(
                (
                    sm_order(mine, resident_blocks(self.config["sm"], kernel)),
                    PlainCache(**self.config["l1"]),
                )
            )
        running = list(sms)
        while running:
            for sm in list(running):
                order, l1 = sm
                turn = next(order, None)
                if turn is None:
                    running.remove(sm)
                    continue
                block, warp, (row, sectors, masks) = turn
                instruction = kernel.instructions.loc[row]
                seen = self.access(row, instruction, sectors, masks, l1, totals, rows)
                counters = rows.setdefault(row, Counter())
                counters.update(sectors=len(sectors), requests=seen["requests"])
                counters.update({name: seen[name] for name in LEAVING})
                event = ["l1_hit", "l2_hit", "dram"][seen["event"]]
                counters[f"{event}_events"] += 1
                if observe == (block, warp):
                    observed.append((row, seen))
        for _, l1 in sms:
            for written_back in l1.flush():
                totals["l1_flush_sectors"] += len(written_back[1])
                self.l1_write_back(written_back, l1, totals, rows)
        totals["l2_dirty_sectors"] = self.l2.dirty_sectors()
        return totals, rows, observed

    def access(self, row, instruction, sectors, masks, l1, totals, rows):
        seen = Counter(event=0)

        def leave(count, missed, dram_sectors):
            seen.update(leaving(count, missed, dram_sectors))
            seen["event"] = max(seen["event"], 2 if missed else 1)

        atomic = instruction.kind in ("atomic", "reduction")
        for line, touched in grouped(sectors, masks, l1.per_line).items():
            seen["requests"] += 1
            wanted = set(touched)
            is_local = line * l1.per_line >= LOCAL
            if atomic:
                l1.invalidate(line, wanted)
                leave(len(wanted), *self.l2_atomic(line, touched, l1, totals))
            elif instruction.kind == "store":
                hits, fetch, forward, written_back = l1.write(line, touched, row)
                totals.update(
                    l1_write_requests=1,
                    l1_write_sectors=len(wanted),
                    l1_write_sector_hits=len(hits),
                )
                if is_local:
                    totals.update(
                        l1_local_write_sectors=len(wanted), l1_local_write_sector_hits=len(hits)
                    )
                self.l1_write_back(written_back, l1, totals, rows)
                if fetch:
                    leave(len(fetch), *self.l2_read(line, fetch, l1, totals))
                if forward:
                    part = {s: touched[s] for s in forward}
                    leave(len(forward), *self.l2_write(line, part, l1, totals))
            else:
                totals.update(l1_read_requests=1, l1_read_sectors=len(wanted))
                totals["l1_local_read_sectors"] += len(wanted) * is_local
                if instruction.cache_operator == "bypass_l1":
                    leave(len(wanted), *self.l2_read(line, wanted, l1, totals))
                    continue
                hits, fetch, written_back = l1.read(line, wanted)
                totals.update(
                    l1_read_sector_hits=len(hits), l1_read_request_hits=int(hits == wanted)
                )
                totals["l1_local_read_sector_hits"] += len(hits) * is_local
                self.l1_write_back(written_back, l1, totals, rows)
                if fetch:
                    leave(len(fetch), *self.l2_read(line, fetch, l1, totals))
        return seen

    def l1_write_back(self, written_back, l1, totals, rows):
        """Write a line of L1 to L2, on the account of the instruction that wrote to it last."""
        if written_back:
            line, touched, writer = written_back
            outcome = self.l2_write(line, touched, l1, totals)
            rows.setdefault(writer, Counter()).update(leaving(len(touched), *outcome))

    def l2_lines(self, l1_line, touched, l1):
        """Regroup {sector of an L1 line: bytes} by L2 line."""
        sectors = [l1_line * l1.per_line + s for s in sorted(touched)]
        masks = [touched[s] for s in sorted(touched)]
        return grouped(sectors, masks, self.l2.per_line).items()

    def settle(self, fetch, written_back, totals):
        totals["dram_read_sectors"] += len(fetch)
        if written_back:
            totals["dram_write_sectors"] += len(written_back[1])

    def l2_read(self, l1_line, wanted, l1, totals):
        missed, moved = False, 0
        for line, part in self.l2_lines(l1_line, dict.fromkeys(wanted, ALL_BYTES), l1):
            hits, fetch, written_back = self.l2.read(line, set(part))
            totals.update(
                l2_read_requests=1,
                l2_read_request_hits=int(hits == set(part)),
                l2_read_sectors=len(part),
                l2_read_sector_hits=len(hits),
            )
            self.settle(fetch, written_back, totals)
            missed |= hits != set(part)
            moved += len(fetch)
        return missed, moved

    def l2_write(self, l1_line, touched, l1, totals):
        missed, moved = False, 0
        for line, part in self.l2_lines(l1_line, touched, l1):
            hits, fetch, forward, written_back = self.l2.write(line, part)
            totals.update(
                l2_write_requests=1, l2_write_sectors=len(part), l2_write_sector_hits=len(hits)
            )
            totals["dram_write_sectors"] += len(forward)
            self.settle(fetch, written_back, totals)
            missed |= hits != set(part)
            moved += len(fetch) or len(set(part) - hits)
        return missed, moved

    def l2_atomic(self, l1_line, touched, l1, totals):
        missed, moved = False, 0
        for line, part in self.l2_lines(l1_line, touched, l1):
            hits, fetch, written_back = self.l2.read(line, set(part))
            _, _, forward, _ = self.l2.write(line, part)
            totals.update(l2_atomic_sectors=len(part), l2_atomic_sector_hits=len(hits))
            totals["dram_write_sectors"] += len(forward)
            self.settle(fetch, written_back, totals)
            missed |= hits != set(part)
            moved += len(fetch)
        return missed, moved
