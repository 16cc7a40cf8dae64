"""Plain definition of the memory stage: caches as dictionaries of sectors, one access after another."""

from collections import Counter

from python_reference import timed
from python_reference.access import store_masks
from python_reference.crowding import crowding

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


def store_turns(each, touched):
    """Return how often a slice is busy with a line of {sector: written bytes}."""
    return timed.in_parts(1 + each * sum(mask != ALL_BYTES for mask in touched.values()))


class OrderedSet:
    """The lines of an LRU or FIFO set: the last to make room first."""

    def __init__(self, ways, moves):
        self.ways, self.moves, self.lines = ways, moves, []

    def find(self, number):
        """Return the resident line, which is used, or None."""
        for line in self.lines:
            if line.number == number:
                if self.moves:
                    self.lines.remove(line)
                    self.lines.insert(0, line)
                return line
        return None

    def insert(self, line):
        """Return the line that makes room, or None."""
        evicted = self.lines.pop() if len(self.lines) == self.ways else None
        self.lines.insert(0, line)
        return evicted

    def place_last(self, line):
        self.lines.remove(line)
        self.lines.append(line)

    def make_room(self, reserved):
        """Let a line that is not reserved be the next to make room; return whether there is one."""
        free = [line for line in self.lines if line.number not in reserved]
        if len(self.lines) < self.ways:
            return True
        if free:
            self.place_last(free[-1])
        return bool(free)

    def flush_order(self):
        return self.lines


class TreeSet:
    """The lines of a pseudo-LRU set: every half of the ways, halved again, knows which half goes first."""

    def __init__(self, ways):
        self.lines = [None] * ways
        self.right_goes_first = {}

    def point(self, way, away):
        low, high = 0, len(self.lines)
        while high - low > 1:
            middle = (low + high) // 2
            in_right = way >= middle
            self.right_goes_first[low, high] = in_right != away
            low, high = (middle, high) if in_right else (low, middle)

    def find(self, number):
        for way, line in enumerate(self.lines):
            if line is not None and line.number == number:
                self.point(way, away=True)
                return line
        return None

    def next_way(self):
        if None in self.lines:
            return self.lines.index(None)
        way, high = 0, len(self.lines)
        while high - way > 1:
            middle = (way + high) // 2
            if self.right_goes_first[way, high]:
                way = middle
            else:
                high = middle
        return way

    def make_room(self, reserved):
        def is_free(line):
            return line is None or line.number not in reserved

        free = [line for line in self.lines if is_free(line)]
        if free and not is_free(self.lines[self.next_way()]):
            self.place_last(free[0])
        return bool(free)

    def insert(self, line):
        way = self.next_way()
        evicted, self.lines[way] = self.lines[way], line
        self.point(way, away=True)
        return evicted

    def place_last(self, line):
        self.point(self.lines.index(line), away=False)

    def flush_order(self):
        return [line for line in self.lines if line is not None]


#: Primitive polynomials over GF(2) by degree: bit i is the coefficient of x to the i.
POLYNOMIALS = {1: 0x3, 2: 0x7, 3: 0xB, 4: 0x13, 5: 0x25, 6: 0x43, 7: 0x83, 8: 0x11D}


def spread(number, buckets, how):
    """Return the bucket of a number."""
    bits = (buckets - 1).bit_length()
    if how == "xor":
        folded = 0
        while number and bits:
            folded ^= number % 2**bits
            number //= 2**bits
        number = folded
    elif how == "ipoly":
        odd = buckets
        while odd % 2 == 0:
            odd //= 2
        twos = buckets // odd
        bits = twos.bit_length() - 1
        run, above = divmod(number // twos, odd)
        # Each run of as many numbers begins on by the golden ratio of one.
        above = (above + (run * (0x9E3779B97F4A7C15 // odd) % 2**64) * odd // 2**64) % odd
        # Long division of polynomials.
        while bits and number >= twos:
            number ^= POLYNOMIALS[bits] << (number.bit_length() - 1 - bits)
        return (number if bits else 0) + twos * above
    elif how == "scatter":
        mixed = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
        mixed = (mixed ^ mixed >> 32) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 29) * 0x94D049BB133111EB % 2**64
        return mixed * buckets // 2**64
    return number % buckets


class PlainCache:
    """A cache whose sets are lists of lines."""

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
        written_by_strangers=0,
    ):
        self.ways = ways
        self.per_line = line_bytes // 32
        self.per_unit = sector_bytes // 32
        self.through = write_policy == "write_through"
        self.write_miss = write_miss
        self.replacement = replacement
        self.on_fill = allocation == "on_fill"
        self.slices = slices
        self.lines_per_chunk = slice_interleave_bytes // line_bytes
        self.sets_per_slice = size_bytes // line_bytes // ways // slices
        self.set_index, self.slice_index = set_index, slice_index
        self.line_bytes = line_bytes
        self.written_by_strangers = 0 if self.through else written_by_strangers
        self.sets, self.strangers = {}, {}

    def place(self, line):
        """Return where the set of a line is: (slice, set in the slice)."""
        if self.slices == 1:
            return 0, spread(line, self.sets_per_slice, self.set_index)
        chunk, rest = divmod(line, self.lines_per_chunk)
        local = chunk // self.slices * self.lines_per_chunk + rest
        return (
            spread(chunk, self.slices, self.slice_index),
            spread(local, self.sets_per_slice, self.set_index),
        )

    def set_of(self, line):
        """Return the set of a line."""
        place = self.place(line)
        if place not in self.sets:
            is_tree = self.replacement == "plru"
            self.sets[place] = (
                TreeSet(self.ways) if is_tree else OrderedSet(self.ways, self.replacement == "lru")
            )
        return self.sets[place]

    def find(self, line):
        """Return the resident line, which is used now, or None."""
        return self.set_of(line).find(line)

    def contains(self, number):
        return any(line is not None and line.number == number for line in self.set_of(number).lines)

    def make_room(self, number, reserved):
        """Return whether a line is there or can take the place of one that is not reserved."""
        return self.contains(number) or self.set_of(number).make_room(reserved)

    def unfilled(self, number, masks):
        """Return the absent sectors of the fill units that a write touches but does not fill."""
        found = [line for line in self.set_of(number).lines if line and line.number == number]
        present = {s for s in range(self.per_line) if found and found[0].full(s)}
        result = set()
        for unit in {self.unit(s) for s in masks if s not in present}:
            absent = set(unit) - present
            if any(masks.get(s) != ALL_BYTES for s in absent):
                result |= absent
        return result

    def write_fetch(self, number, masks):
        """Return the sectors that a write would fetch."""
        if self.write_miss == "fetch_on_partial_write":
            return self.unfilled(number, masks)
        if self.write_miss in ("fetch_on_write", "write_and_fetch"):
            return self.unfilled(number, dict.fromkeys(masks, 0))
        return set()

    def allocate(self, number):
        """Make room for a line. Return it and what must be written back."""
        line = Line(number)
        evicted = self.set_of(number).insert(line)
        if evicted is None:  # an empty way, which a stranger had
            evicted = self.strangers_of(self.place(number)).pop(0)
        return line, evicted.written_back() if evicted else None

    def strangers_of(self, place):
        """Return the strangers' lines of a set that are left, the next one to make room first.

        In fixed point, so that the shares are those of the caches: of each set, the number of written
        lines among the first n is n times their share, rounded to an integer next to it.
        """
        if place not in self.strangers:
            which_slice, one = place
            each = int(self.written_by_strangers * 2**32 + 0.5)
            phase = (which_slice * self.sets_per_slice + one) * 0x9E3779B9 % 2**32
            # One piece of memory from 2 to the 61 on, divided among the slices.
            first = 2**61 // self.line_bytes // self.slices
            first -= first % self.lines_per_chunk
            lines = []
            for turn in range(self.ways):
                local = first + turn * self.sets_per_slice + one
                chunk, rest = divmod(local, self.lines_per_chunk)
                line = Line((chunk * self.slices + which_slice) * self.lines_per_chunk + rest)
                before, after = phase + turn * each, phase + (turn + 1) * each
                if after // 2**32 > before // 2**32:
                    line.bytes = dict.fromkeys(range(self.per_line), ALL_BYTES)
                    line.dirty = set(line.bytes)
                    line.writer = 0
                lines.append(line)
            self.strangers[place] = lines
        return self.strangers[place]

    def unit(self, sector):
        """Return the sectors that are filled together with this one."""
        first = sector // self.per_unit * self.per_unit
        return range(first, first + self.per_unit)

    def read(self, number, wanted, evict_first=False):
        """Return (sectors that hit, sectors to fetch, line written back)."""
        line, written_back = self.find(number), None
        if line is None:
            line, written_back = self.allocate(number)
        if evict_first:
            self.set_of(number).place_last(line)
        hits = {s for s in wanted if line.full(s)}
        fetch = {u for s in wanted - hits for u in self.unit(s) if not line.full(u)}
        line.bytes.update(dict.fromkeys(fetch, ALL_BYTES))
        return hits, fetch, written_back

    def write(self, number, masks, writer=0, evict_first=False):
        """Write {sector: bytes}. Return (hits, fetched sectors, sectors passed on, line written back)."""
        fetch = self.write_fetch(number, masks)
        line, written_back = self.find(number), None
        hits = {s for s in masks if line is not None and s in line.bytes}
        forward = set(masks) if self.through else set()
        written = set(masks)
        if self.write_miss in ("no_allocate", "write_and_fetch"):
            written = hits
            forward |= set(masks) - hits
        if self.write_miss == "no_allocate":
            pass
        elif line is None:
            line, written_back = self.allocate(number)
        if evict_first and line is not None:
            self.set_of(number).place_last(line)
        for s in sorted(written):
            if self.write_miss == "write_validate":
                line.bytes[s] = line.bytes.get(s, 0) | masks[s]
            elif self.write_miss != "no_allocate":
                line.bytes.update(dict.fromkeys(self.unit(s), ALL_BYTES))
        if line is not None:
            line.bytes.update(dict.fromkeys(fetch, ALL_BYTES))
        if not self.through:
            # Without sectors there is one dirty bit for what the line holds.
            line_dirty = {u for s in written for u in self.unit(s)}
            if line is not None:
                line.dirty |= {s for s in line_dirty if s in line.bytes}
                line.writer = writer if written else line.writer
        return hits, fetch, forward, written_back

    def invalidate(self, number, lost):
        for line in self.set_of(number).lines:
            if line is not None and line.number == number:
                for gone in {u for s in lost for u in self.unit(s)}:
                    line.bytes.pop(gone, None)
                    line.dirty.discard(gone)

    def flush(self):
        """Return what is written back when everything must go, and forget everything."""
        lines = [line for place in sorted(self.sets) for line in self.sets[place].flush_order()]
        self.sets, self.strangers = {}, {}
        return [line.written_back() for line in lines if line.dirty]

    def dirty_sectors(self):
        return sum(len(line.dirty) for one in self.sets.values() for line in one.flush_order())


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
    stores = store_masks(columns)
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
            masks = stores[store : store + count]
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


class GreedyOrder:
    """Yields as sm_order does, but keeps to a warp until `missed` was called for its access."""

    def __init__(self, blocks, slots, mshrs):
        self.waiting = [b for b in blocks if any(warp for _, warp in b[1])]
        self.mshrs = mshrs
        self.warps = []  # [block, warp, accesses], oldest first
        self.blocked = []  # misses in the order in which they left: (warp's entry, MSHRs)
        self.last = None
        for _ in range(slots):
            self.launch()

    def launch(self):
        if self.waiting:
            block, warps = self.waiting.pop(0)
            self.warps += [[block, warp, accesses] for warp, accesses in warps if accesses]

    def waits(self, entry):
        return any(entry is other for other, _ in self.blocked)

    def missed(self, mshrs):
        self.blocked.append((self.last, mshrs))
        while sum(taken for _, taken in self.blocked) > self.mshrs:
            self.blocked.pop(0)

    def __iter__(self):
        return self

    def __next__(self):
        if self.last is not None and not self.last[2]:
            self.warps = [entry for entry in self.warps if entry is not self.last]
            if not any(entry[0] == self.last[0] for entry in self.warps):
                self.launch()
            self.last = None
        if not self.warps:
            raise StopIteration
        while all(self.waits(entry) for entry in self.warps):
            self.blocked.pop(0)
        if self.last is None or self.waits(self.last):
            self.last = next(entry for entry in self.warps if not self.waits(entry))
        block, warp, accesses = self.last
        return block, warp, accesses.pop(0)


def split_mix(n):
    """Return the hash of the random block policy (SplitMix64)."""
    n = (n + 0x9E3779B97F4A7C15) % 2**64
    n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    n = (n ^ n >> 27) * 0x94D049BB133111EB % 2**64
    return n ^ n >> 31


def breadth_first(kernel, num_sms, slots):
    """Play the launch access by access: the next block goes to the SM that first has a free slot."""
    waiting = [
        (position, [len(warp_accesses(kernel, position, w)) for w in range(len(warps))])
        for position, (_, warps) in enumerate(kernel.blocks())
    ]
    blocks = [[] for _ in range(num_sms)]
    resident = [[] for _ in range(num_sms)]

    def take(sm):
        while waiting:
            position, counts = waiting.pop(0)
            blocks[sm].append(position)
            if sum(counts):
                resident[sm].append(counts)
                return

    for _ in range(slots):
        for sm in range(num_sms):
            take(sm)

    def rounds(sm):
        """Yield at each access of the SM; blocks that are done give their slots away after a round."""
        while resident[sm]:
            for counts in resident[sm]:
                for w in range(len(counts)):
                    if counts[w]:
                        counts[w] -= 1
                        yield
            free = sum(not sum(counts) for counts in resident[sm])
            resident[sm][:] = [counts for counts in resident[sm] if sum(counts)]
            for _ in range(free):
                take(sm)

    playing = [rounds(sm) for sm in range(num_sms)]
    while playing:
        # An SM whose round ends before its next access takes blocks before the SMs after it.
        playing = [player for player in playing if next(player, 0) is None]
    return blocks


LEAVING = ("l2_requests", "l2_request_sectors", "dram_requests", "dram_sectors")


def leaving(count, missed, dram_sectors):
    """Return the counters of a request that leaves the SM."""
    return dict(zip(LEAVING, (1, count, int(missed), dram_sectors), strict=True))


class PlainMemorySystem:
    """L1 caches, L2 and DRAM of a GPU; L2 persists from kernel to kernel."""

    def __init__(self, config):
        self.config = config
        self.l2 = PlainCache(**config["l2"])
        self.now, self.under_way = None, {}

    def l1_config(self, kernel):
        """Return L1 beside the smallest carve-out that costs no resident block (cache paper, Eq. 7)."""
        l1, config = dict(self.config["l1"]), self.config
        if not config["carve_outs"]:
            return l1
        limits = config["sm"]
        most = resident_blocks(limits, kernel)
        for carve_out in sorted(config["carve_outs"]):
            beside = {**limits, "shared_memory_bytes": carve_out}
            if resident_blocks(beside, kernel) >= most:
                break
        sets = l1["size_bytes"] // l1["line_bytes"] // l1["ways"]
        l1["size_bytes"] = config["unified_bytes"] - carve_out
        if not config["adaptive_keeps_ways"]:
            l1["ways"] = l1["size_bytes"] // l1["line_bytes"] // sets
        return l1

    def assign(self, kernel, slots):
        """Return the positions of the blocks of each SM."""
        num_sms, policy = self.config["num_sms"], self.config["block_policy"]
        numbers = [linear for linear, _ in kernel.blocks()]
        blocks = [[] for _ in range(num_sms)]
        if policy == "breadth_first":
            blocks = breadth_first(kernel, num_sms, slots)
        else:
            for position, number in enumerate(numbers):
                draw = number
                if policy == "random":
                    draw = split_mix(self.config["seed"] ^ split_mix(number))
                blocks[draw % num_sms].append(position)
        if self.config["first_occupancy_only"]:
            blocks = [mine[:slots] for mine in blocks]
        return blocks

    def run(self, kernel, observe=None):
        """Return (totals, {row: counters}, accesses of the observed warp).

        `slice_turns`, `slice_crowding`, `slice_dram_sectors`, `place_wait_cycles` and `read_sectors` (by
        L1) are then of this kernel.
        """
        totals, rows, observed = Counter(), {}, []
        self.now, self.under_way = None, {}  # of the turn that L2 serves; place -> fetches
        self.slice_turns = [0] * self.l2.slices
        self.passed = []  # slice and turns of each request, in order
        self.slice_dram_sectors = [0] * self.l2.slices
        self.place_wait_cycles = [0, 0]
        self.read_sectors = Counter()
        self.lanes = timed.atomic_requests(kernel) if self.config["atomics_per_lane"] else {}
        slots = resident_blocks(self.config["sm"], kernel)
        warps = [warps for _, warps in kernel.blocks()]
        lists = [
            [(b, [(w, warp_accesses(kernel, b, w)) for w in range(len(warps[b]))]) for b in mine]
            for mine in self.assign(kernel, slots)
        ]
        l1s = [PlainCache(**self.l1_config(kernel)) for _ in lists]
        if self.config["access_order"] == "timed":
            pace = timed.paces(kernel, self.config["atomics_stop_warps"])
            sms = [
                timed.Sm(self, kernel, pace, blocks, slots, l1, rows, totals)
                for blocks, l1 in zip(lists, l1s, strict=True)
            ]
            timed.run(self, sms)
            for sm in sms:
                observed += [(row, seen) for warp, row, seen in sm.observed if warp == observe]
                for level, cycles in enumerate(sm.place_waits):
                    self.place_wait_cycles[level] += cycles
        else:
            self.run_in_turn(kernel, lists, l1s, slots, observe, (totals, rows, observed))
        self.slice_crowding = self.crowding(sum(map(bool, lists)))
        for l1 in l1s:
            for written_back in l1.flush():
                totals["l1_flush_sectors"] += len(written_back[1])
                for request in self.leaving_line(written_back):
                    self.count(request, self.serve(request, l1, totals), None, rows)
        totals["l2_dirty_sectors"] = self.l2.dirty_sectors()
        return totals, rows, observed

    def warm(self, kernel):
        """Let L2 see all accesses of a kernel, block by block and warp by warp."""
        unit = self.config["l1"]["sector_bytes"] // 32
        table = kernel.instructions
        for position, (_, warps) in enumerate(kernel.blocks()):
            for warp in range(len(warps)):
                for row, sectors, masks in warp_accesses(kernel, position, warp):
                    evict_first = table.cache_operator[row] == "evict_first"
                    for line, touched in grouped(sectors, masks, self.l2.per_line).items():
                        if masks is None:
                            # L1 asks for its fill units, as far as they are of the line.
                            asked = {
                                t
                                for t in range(self.l2.per_line)
                                for s in touched
                                if s // unit == t // unit
                            }
                            self.l2.read(line, asked, evict_first)
                            continue
                        if table.kind[row] != "store":
                            self.l2.read(line, set(touched), evict_first)
                        self.l2.write(line, touched, 0, evict_first)

    def run_in_turn(self, kernel, lists, l1s, slots, observe, results):
        totals, rows, observed = results
        is_greedy = self.config["access_order"] == "greedy"
        running = []
        for blocks, l1 in zip(lists, l1s, strict=True):
            mshrs = self.config["l1_mshrs"]
            order = GreedyOrder(blocks, slots, mshrs) if is_greedy else sm_order(blocks, slots)
            running.append((order, l1))
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
                if seen["waits"] and is_greedy:
                    order.missed(seen["waits"])

    def access(self, row, instruction, sectors, masks, l1, totals, rows):
        seen = Counter(event=0)
        for line, touched in self.lines_of(instruction.kind, sectors, masks, l1).items():
            requests, waits = self.look_up(row, instruction, line, touched, l1, totals)
            seen.update(requests=1, waits=int(waits))
            for request in requests:
                self.count(request, self.serve(request, l1, totals), seen, rows)
        return seen

    def lines_of(self, kind, sectors, masks, l1):
        """Return {line: {sector: bytes}} of an access in the order in which L1 takes them."""
        lines = grouped(sectors, masks, l1.per_line)
        if l1.on_fill and kind not in ("atomic", "reduction"):
            # All lines are looked up before the absent ones take their places.
            absent = {line: part for line, part in lines.items() if not l1.contains(line)}
            lines = {line: part for line, part in lines.items() if line not in absent} | absent
        return lines

    def bypasses(self, instruction, line, l1):
        """Return whether a load goes past L1."""
        is_local = line * l1.per_line >= LOCAL
        kept = self.config["l1_caches_global"] or instruction.cache_operator == "read_only"
        of_all = not (is_local or kept)
        return instruction.cache_operator == "bypass_l1" or of_all

    def look_up(self, row, instruction, line, touched, l1, totals):
        """Look a line of an access up in L1.

        Return the requests that leave it, (kind, line, {sector: bytes}, evict first, row that it counts
        for), and whether the warp waits for them.
        """
        evict_first = instruction.cache_operator == "evict_first"
        wanted = set(touched)
        is_local = line * l1.per_line >= LOCAL

        def request(kind, sectors):
            return kind, line, {s: touched.get(s, ALL_BYTES) for s in sectors}, evict_first, row

        if instruction.kind in ("atomic", "reduction"):
            l1.invalidate(line, wanted)
            return [request("atomic", wanted)], instruction.kind == "atomic"
        if instruction.kind == "store":
            hits, fetch, forward, written_back = l1.write(line, touched, row, evict_first)
            totals.update(
                l1_write_requests=1, l1_write_sectors=len(wanted), l1_write_sector_hits=len(hits)
            )
            if is_local:
                totals.update(
                    l1_local_write_sectors=len(wanted), l1_local_write_sector_hits=len(hits)
                )
            leaves = self.leaving_line(written_back)
            leaves += [request("read", fetch)] if fetch else []
            leaves += [request("write", forward)] if forward else []
            return leaves, False
        totals.update(l1_read_requests=1, l1_read_sectors=len(wanted))
        totals["l1_local_read_sectors"] += len(wanted) * is_local
        if self.bypasses(instruction, line, l1):
            return [request("read", wanted)], True
        hits, fetch, written_back = l1.read(line, wanted, evict_first)
        if not self.config["filter_l1_hits"]:
            fetch |= wanted
        totals.update(l1_read_sector_hits=len(hits), l1_read_request_hits=int(hits == wanted))
        totals["l1_local_read_sector_hits"] += len(hits) * is_local
        leaves = self.leaving_line(written_back) + ([request("read", fetch)] if fetch else [])
        return leaves, hits != wanted

    def leaving_line(self, written_back):
        """Return the write-back of a line, on the account of who wrote to it last, in a list."""
        if not written_back:
            return []
        line, touched, writer = written_back
        return [("write_back", line, touched, False, writer)]

    def serve(self, request, l1, totals):
        """Serve a request in L2.

        Return (sectors, whether one missed, sectors moved by DRAM, whether DRAM must be asked, whether
        one is in the tags, but still on its way from DRAM).
        """
        kind, line, part, evict_first, _ = request
        serve = {"read": self.l2_read, "atomic": self.l2_atomic}.get(kind, self.l2_write)
        self.count_turns(request, l1)
        self.read_sectors[id(l1)] += len(part) * (kind == "read")
        self.is_late = False
        return len(part), *serve(line, part, l1, totals, evict_first), self.is_late

    def note_fetch(self, line, sectors, asks):
        """Note in the timed order what DRAM is asked for, the last four of a set of L2.

        Who asks for it in the first half of DRAM's latency gets it when DRAM has sent it.
        """
        if self.now is None:
            return
        fetches = self.under_way.setdefault(self.l2.place(line), [])
        since = self.now - (timed.LATENCY[2] - timed.LATENCY[1]) / 2
        if asks:
            fetches.append((line, self.now, sectors))
            del fetches[:-4]
        elif any(
            known == line and sectors & fetched and sent > since for known, sent, fetched in fetches
        ):
            self.is_late = True

    def count_turns(self, request, l1):
        """Count the turns of slices of L2 that a request takes."""
        kind, line, part, _, _ = request
        for l2_line, touched in self.l2_lines(line, part, l1):
            turns = self.atomic_turns(touched) if kind == "atomic" else 1
            if kind in ("write", "write_back"):
                turns = store_turns(self.config["partial_write_turns"], touched)
            self.slice_turns[self.l2.place(l2_line)[0]] += turns
            self.passed.append((self.l2.place(l2_line)[0], turns))

    def crowding(self, working_sms):
        """Return `slice_crowding` of the requests that have passed."""
        window = max(working_sms * self.config["l1_mshrs"], 1)
        return crowding(self.passed, self.l2.slices, window)

    def atomic_turns(self, touched):
        """Return how often a slice is busy with an atomic's line of {sector: bytes}."""
        each = self.config["atomic_lane_turns"]
        at_once = self.config["atomic_words_at_once"]
        if not self.config["atomics_per_lane"]:
            lanes = sum(mask.lanes for mask in touched.values())
            in_word = max(mask.word for mask in touched.values()) if lanes else 0
            return timed.in_parts(max(1, each * max(lanes / at_once, in_word)))
        # Lanes of one word have a request each, which has its share of the sector's lanes.
        turns = 0
        for mask in touched.values():
            share = mask.lanes / max(mask.word, 1)
            one_by_one = max(share / at_once, 1) if mask.lanes else 0
            turns += max(mask.word, 1) * max(1, each * one_by_one)
        return timed.in_parts(turns)

    def count(self, request, outcome, seen, rows):
        """Count what L2 said about a request of an access."""
        kind, _, _, _, row = request
        if kind == "write_back":
            rows.setdefault(row, Counter()).update(leaving(*outcome[:3]))
        else:
            seen.update(leaving(*outcome[:3]))
            seen["event"] = max(seen["event"], 2 if outcome[3] else 1)

    def l2_lines(self, l1_line, touched, l1):
        """Regroup {sector of an L1 line: bytes} by L2 line."""
        sectors = [l1_line * l1.per_line + s for s in sorted(touched)]
        masks = [touched[s] for s in sorted(touched)]
        return grouped(sectors, masks, self.l2.per_line).items()

    def settle(self, line, fetch, written_back, totals, forward=()):
        totals["dram_read_sectors"] += len(fetch)
        written = len(forward) + (len(written_back[1]) if written_back else 0)
        if written:
            totals["dram_write_sectors"] += written
        # What a line replaces was in its slice.
        self.slice_dram_sectors[self.l2.place(line)[0]] += len(fetch) + written

    def l2_read(self, l1_line, wanted, l1, totals, evict_first):
        missed, moved = False, 0
        for line, part in self.l2_lines(l1_line, dict.fromkeys(wanted, ALL_BYTES), l1):
            hits, fetch, written_back = self.l2.read(line, set(part), evict_first)
            totals.update(
                l2_read_requests=1,
                l2_read_request_hits=int(hits == set(part)),
                l2_read_sectors=len(part),
                l2_read_sector_hits=len(hits),
            )
            self.settle(line, fetch, written_back, totals)
            missed |= hits != set(part)
            moved += len(fetch)
            self.note_fetch(line, set(part), bool(fetch))
        return missed, moved, moved > 0

    def l2_write(self, l1_line, touched, l1, totals, evict_first):
        missed, moved, asks = False, 0, False
        for line, part in self.l2_lines(l1_line, touched, l1):
            hits, fetch, forward, written_back = self.l2.write(line, part, 0, evict_first)
            totals.update(
                l2_write_requests=1, l2_write_sectors=len(part), l2_write_sector_hits=len(hits)
            )
            self.settle(line, fetch, written_back, totals, forward)
            missed |= hits != set(part)
            moved += len(fetch) or len(set(part) - hits)
            asks |= bool(fetch or forward)
            self.note_fetch(line, set(part), bool(fetch or forward))
        return missed, moved, asks

    def l2_atomic(self, l1_line, touched, l1, totals, evict_first):
        missed, moved = False, 0
        for line, part in self.l2_lines(l1_line, touched, l1):
            hits, fetch, written_back = self.l2.read(line, set(part), evict_first)
            _, _, forward, _ = self.l2.write(line, part, 0, evict_first)
            totals.update(l2_atomic_sectors=len(part), l2_atomic_sector_hits=len(hits))
            self.settle(line, fetch, written_back, totals, forward)
            missed |= hits != set(part)
            moved += len(fetch)
            self.note_fetch(line, set(part), bool(fetch))
        return missed, moved, moved > 0
