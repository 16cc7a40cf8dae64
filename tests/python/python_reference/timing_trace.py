"""What the plain timing stage reads of a trace, and how it divides lines among those of the next level."""

from python_reference.access import Sectors, store_masks


def parts_of(line, sectors, per_line, per_next_line):
    """Divide {sector: bytes} of a line among the lines of the next level, in order of sectors."""
    parts = {}
    for s in sorted(sectors):
        number = line * per_line + s
        part = parts.setdefault(number // per_next_line, {})
        part[number % per_next_line] = sectors[s]
    return list(parts.items())


def instructions_of(kernel, table, block, warp):
    """Return [(row, mask, count, sectors, byte masks)] of a warp."""
    columns = kernel.warp(block, warp)
    stores = store_masks(columns)
    memory, sector, store = 0, 0, 0
    found = []
    for row, mask in zip(
        columns["instruction"].tolist(), columns["active_mask"].tolist(), strict=True
    ):
        count, sectors, masks = 0, Sectors(), None
        if table[row]["op_class"] == "memory":
            count = int(columns["memory_count"][memory])
            memory += 1
            if table[row]["space"] != "shared":
                sectors = Sectors(columns["sector"][sector : sector + count].tolist())
                sectors.kept_passes = int(columns["l1_passes"][memory - 1])
                sector += count
                if table[row]["kind"] in ("store", "atomic", "reduction"):
                    masks = stores[store : store + count]
                    store += count
        found.append((row, mask, count, sectors, masks))
    return found
