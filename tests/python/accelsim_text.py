"""Writes Accel-Sim traces of every version from one description, for tests of the reader."""

from dataclasses import dataclass, field
from itertools import pairwise

FULL = 0xFFFFFFFF


@dataclass
class Instruction:
    """One executed warp instruction; addresses: {lane: byte address} of the active lanes, or None."""

    pc: int
    opcode: str
    dst: list = field(default_factory=list)
    src: list = field(default_factory=list)
    mask: int = FULL
    addresses: dict | None = None
    width: int = 0


def header(version, *, grid=(1, 1, 1), block=(32, 1, 1), name="_Z6kernelPi", **changes):
    """Return the header lines; `changes` replace the values of keys, None removes the line."""
    values = {
        "kernel name": name,
        "kernel id": 1,
        "grid dim": "({},{},{})".format(*grid),
        "block dim": "({},{},{})".format(*block),
        "shmem": 0,
        "nregs": 16,
        "binary version": 80,
        "cuda stream id": 0,
    }
    if version >= 3:
        values |= {
            "shmem base_addr": "0x00007f6000000000",
            "local mem base_addr": "0x00007f6200000000",
            "nvbit version": "1.5.5",
            "accelsim tracer version": version,
        }
    if version >= 4:
        values["enable lineinfo"] = 0
    values |= {
        key.replace("_", " ") if key not in values else key: value for key, value in changes.items()
    }
    lines = [f"-{key} = {value}" for key, value in values.items() if value is not None]
    return "\n".join(lines) + "\n\n#traces format = PC mask ...\n\n\n"


def address_text(instruction, mode):
    """Return the address part in a mode: 0 list, 1 base and stride, 2 base and deltas."""
    lanes = [lane for lane in range(32) if instruction.mask >> lane & 1]
    values = [instruction.addresses[lane] for lane in lanes]
    if not values:
        return "1 0x0 0"
    if mode == 0:
        return "0 " + " ".join(f"{v:#018x}" for v in values)
    if mode == 1:
        return f"1 {values[0]:#x} {values[1] - values[0] if len(values) > 1 else 0}"
    deltas = [b - a for a, b in pairwise(values)]
    return " ".join(["2", f"{values[0]:#x}", *map(str, deltas)])


def has_stride(instruction):
    """Whether mode 1 can express the addresses: one run of lanes, one stride."""
    mask = (
        instruction.mask >> ((instruction.mask & -instruction.mask).bit_length() - 1)
        if instruction.mask
        else 0
    )
    lanes = [lane for lane in range(32) if instruction.mask >> lane & 1]
    values = [instruction.addresses[lane] for lane in lanes]
    steps = {b - a for a, b in pairwise(values)}
    return (mask & (mask + 1)) == 0 and len(steps) <= 1


def line(instruction, version, mode=2, line_info=None):
    """Return an instruction line without its prefix."""
    i = instruction
    parts = [] if line_info is None else [str(line_info)]
    parts += [f"{i.pc:04x}", f"{i.mask:08x}"]
    parts += [str(len(i.dst)), *(f"R{r}" for r in i.dst), i.opcode]
    parts += [str(len(i.src)), *(f"R{r}" for r in i.src)]
    if i.addresses is None:
        parts.append("0")
    else:
        chosen = 2 if mode == 1 and not has_stride(i) else mode
        parts += [str(i.width), address_text(i, chosen)]
    if version >= 5:
        parts.append("-7")
    return " ".join(parts) + " "


def grouped(blocks, version, mode=2, *, head=None, line_info=False, **header_values):
    """Return a .traceg; blocks: {(x, y, z): {warp: [Instruction]}}."""
    if line_info:
        header_values["enable lineinfo"] = 1
    text = header(version, **header_values) if head is None else head
    for (x, y, z), warps in blocks.items():
        text += f"\n#BEGIN_TB\n\nthread block = {x},{y},{z}\n"
        for warp, instructions in warps.items():
            text += f"\nwarp = {warp}\ninsts = {len(instructions)}\n"
            for i in instructions:
                prefix = f"{x} {y} {z} {warp} " if version < 3 else ""
                text += prefix + line(i, version, mode, 42 if line_info else None) + "\n"
        text += "\n#END_TB\n"
    return text


def raw(blocks, version, mode=2, *, core_columns=False, line_info=False, **header_values):
    """Return a raw .trace: warps take turns, LDGSTS comes twice."""
    if line_info:
        header_values["enable lineinfo"] = 1
    text = header(version, **header_values)
    queues = [
        ((b, w), list(instructions))
        for b, warps in blocks.items()
        for w, instructions in warps.items()
    ]
    while queues:
        for (block, warp), queue in queues:
            if not queue:
                continue
            i = queue.pop(0)
            prefix = "{} {} {} ".format(*block) + f"{warp} " + ("3 17 " if core_columns else "")
            info = 42 if line_info else None
            if i.opcode.startswith("LDGSTS"):
                in_shared = Instruction(
                    **{**i.__dict__, "addresses": dict.fromkeys(i.addresses, 64)}
                )
                text += prefix + line(in_shared, version, mode, info) + "\n"
            text += prefix + line(i, version, mode, info) + "\n"
        queues = [entry for entry in queues if entry[1]]
    return text
