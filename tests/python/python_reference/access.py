"""Plain definition of coalescing and of shared-memory bank conflicts."""

SECTOR = 32
LOCAL_REGION = 2**63
WINDOW = 2**24


def sectors(lanes, width):
    """Return {sector: set of touched bytes} in order of first touch; lanes: [(lane, address)]."""
    touched = {}
    for _, address in lanes:
        for byte in range(address, address + width):
            touched.setdefault(byte // SECTOR, set()).add(byte % SECTOR)
    return touched


def local_sectors(lanes, width, warp):
    """Return the same for private offsets: the words at one offset of 32 lanes are neighbours."""
    touched = {}
    for lane, address in lanes:
        offset = address % WINDOW
        for byte in range(offset, offset + width):
            word = byte // 4
            place = LOCAL_REGION + warp * 32 * WINDOW + (word * 32 + lane) * 4 + byte % 4
            touched.setdefault(place // SECTOR, set()).add(place % SECTOR)
    return touched


def byte_mask(touched_bytes):
    """Return the bit mask of a set of bytes."""
    return sum(1 << byte for byte in touched_bytes)


class Sectors(list):
    """The sectors of an access, with what the trace keeps of its passes over the banks of L1."""

    kept_passes = 0

    @property
    def l1_passes(self):
        return self.kept_passes or implied_passes(self)


class AtomicMask(int):
    """The bytes of a sector that an atomic touches, with its lanes there and the most of one word."""

    lanes = 0
    word = 0


def atomic_lanes(lanes, touched):
    """Return [(lanes of a sector, the most of them at one address)] of {sector: bytes} of an atomic."""
    found = []
    for sector in touched:
        here = [address for _, address in lanes if address // SECTOR == sector]
        found.append((len(here), max([1, *map(here.count, here)])))
    return found


def store_masks(columns):
    """Return the byte masks of a warp's written sectors, those of atomics with their lanes."""
    masks = columns["store_bytes"].tolist()
    numbers = zip(columns["sector_lanes"].tolist(), columns["word_lanes"].tolist(), strict=True)
    for i, (lanes, word) in enumerate(numbers):
        if word:
            masks[i] = AtomicMask(masks[i])
            masks[i].lanes, masks[i].word = lanes, word
    return masks


def even_lanes(active, masks, width):
    """Return [(lanes, most of one word)] by sector: lanes in order, spread over the words in order."""
    words = [
        s for s, mask in enumerate(masks) for _ in range(max(-(-mask.bit_count() // width), 1))
    ]
    counts = [0] * len(words)
    for lane in range(active):
        counts[lane * len(words) // active] += 1
    by_sector = [
        [n for s, n in zip(words, counts, strict=True) if s == i] for i in range(len(masks))
    ]
    return [(sum(found), max([1, *found])) for found in by_sector]


def implied_passes(sectors):
    """Return the most sectors that share eight of the 32 banks of L1."""
    return max([[s % 4 for s in sectors].count(place) for place in range(4)])


def l1_passes(lanes, width):
    """Return the passes of a load or store over the 32 banks of L1: the most words on one bank.

    The lanes of half a warp proceed together where they have 8 bytes each, those of a quarter where
    they have 16.
    """
    together = min(32 * 4 // width, 32)
    total = 0
    for first in range(0, 32, together):
        banks = {}
        for lane, address in lanes:
            if first <= lane < first + together:
                for byte in range(address, address + width):
                    banks.setdefault(byte // 4 % 32, set()).add(byte // 4)
        total += max(map(len, banks.values()), default=0)
    return total


def are_paired(lanes, distance):
    """Return whether all active lanes n and n ^ distance have equal addresses."""
    addresses = dict(lanes)
    return all(addresses.get(lane ^ distance, a) == a for lane, a in addresses.items())


def wavefronts(lanes, width, in_turn=False, load=False):
    """Return the passes of a shared-memory access: 32 banks of 4 bytes, wide accesses in groups.

    With `in_turn` lanes of one word come one after the other, as those of atomics do. Groups of a
    `load` are twice as large where pairs of lanes have equal addresses.
    """
    words_per_lane = max(width // 4, 1)
    group_size = max(32 // words_per_lane, 1)
    if load and width in (8, 16) and (are_paired(lanes, 1) or are_paired(lanes, 2)):
        group_size *= 2
    total = 0
    for first in range(0, 32, group_size):
        words = []
        for lane, address in lanes:
            if first <= lane < first + group_size:
                words += sorted({byte // 4 for byte in range(address, address + width)})
        if not in_turn:
            words = set(words)
        banks = [word % 32 for word in words]
        total += max((banks.count(bank) for bank in banks), default=0)
    return total
