"""Plain reading of an Accel-Sim trace, as its trace-driven mode does: version 4, grouped."""

import re

from python_reference.access import byte_mask, local_sectors, sectors, wavefronts

#: Limits of an instruction in Accel-Sim.
MAX_DESTINATIONS, MAX_SOURCES = 1, 5
WINDOW = 2**24


def read(text):
    """Return the header and, by block and warp, [(pc, mask, opcode, width, {lane: address})]."""
    header, blocks, warp = {}, {}, None
    body = False
    for line in text.splitlines():
        if line.startswith("#traces format"):
            body = True
        elif not body and line:
            key, _, value = line.removeprefix("-").partition(" = ")
            header[key] = value
        elif line.startswith("thread block = "):
            block = blocks.setdefault(tuple(map(int, line[15:].split(","))), {})
        elif line.startswith("warp = "):
            warp = block.setdefault(int(line[7:]), [])
        elif line.startswith("insts = "):
            expected = int(line[8:])
        elif line and line[0] != "#":
            warp.append(instruction(line.split(), header["enable lineinfo"] == "1"))
        elif line == "#END_TB":
            assert len(warp) == expected
    return header, blocks


def instruction(tokens, line_info):
    """Return one instruction from the words of its line."""
    tokens = tokens[1:] if line_info else tokens
    pc, mask = int(tokens.pop(0), 16), int(tokens.pop(0), 16)
    for most in (MAX_DESTINATIONS, MAX_SOURCES):
        count = int(tokens.pop(0))
        assert count <= most
        for _ in range(count):
            assert re.fullmatch("R[0-9]+", tokens.pop(0))
        if most == MAX_DESTINATIONS:
            opcode = tokens.pop(0)
    width = int(tokens.pop(0))
    addresses = {}
    if width:
        mode, base = int(tokens.pop(0)), int(tokens.pop(0), 16)
        steps = [int(token) for token in tokens]
        tokens = []
        address = base
        for lane in range(32):
            if mask >> lane & 1:
                addresses[lane] = address
                if mode == 2:
                    address += steps.pop(0) if steps else 0
                else:
                    address += steps[0]
        assert mode == 1 or not steps
    assert not tokens
    # Accel-Sim takes the width from the first number in the opcode.
    for token in opcode.split("."):
        if found := re.fullmatch("U?([0-9]+)", token):
            width = int(found[1]) // 8 if width else 0
            break
    return pc, mask, opcode, width, addresses


def access(entry, header, block, warp):
    """Return (count, sectors, byte masks) of a memory instruction, as the columns have them."""
    _, _, opcode, width, addresses = entry
    base = opcode.split(".")[0]
    shared_base = int(header["shmem base_addr"], 16)
    local_base = int(header["local mem base_addr"], 16)
    x, y, z = (int(n) for n in header["block dim"].strip("()").split(","))
    gx, gy, _ = (int(n) for n in header["grid dim"].strip("()").split(","))
    linear = block[0] + gx * (block[1] + gy * block[2])
    number = linear * ((x * y * z + 31) // 32) + warp
    spaces = {"global": [], "local": [], "shared": []}
    for lane, address in addresses.items():
        space = "global"
        if base in ("LDS", "STS", "ATOMS"):
            space = "shared"
        elif base in ("LDL", "STL"):
            space = "local"
        elif base in ("LD", "ST", "ATOM"):
            if shared_base and shared_base <= address < shared_base + WINDOW:
                space = "shared"
            elif local_base and local_base <= address < local_base + WINDOW:
                space, address = "local", address - local_base
        spaces[space].append((lane, address))
    if len(spaces["shared"]) == len(addresses):
        in_turn = base.startswith("ATOM") and "POPC" not in opcode
        is_load = base in ("LDS", "LD")
        return wavefronts(spaces["shared"], width, in_turn, is_load), [], []
    touched = sectors(spaces["global"], width)
    touched |= local_sectors(spaces["local"], width, number)
    writes = base in ("ST", "STG", "STL", "ATOM", "ATOMG", "RED")
    masks = [byte_mask(found) for found in touched.values()] if writes else []
    return len(touched), list(touched), masks
