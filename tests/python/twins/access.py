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


def wavefronts(lanes, width, in_turn=False):
    """Return the passes of a shared-memory access: 32 banks of 4 bytes, wide accesses in groups.

    With `in_turn` lanes of one word come one after the other, as those of atomics do.
    """
    words_per_lane = max(width // 4, 1)
    group_size = max(32 // words_per_lane, 1)
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
