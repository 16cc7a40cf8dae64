"""Plain definition of matrix instructions: what they multiply, and how long that takes."""

import math
import re

PTX_TYPES = {
    "bf16": "bf16",
    "tf32": "tf32",
    "f64": "f64",
    "e4m3": "f8",
    "e5m2": "f8",
    "s8": "s8",
    "u8": "s8",
    "s4": "s4",
    "u4": "s4",
    "b1": "b1",
}


def operation(opcode):
    """Return (type, multiply-adds of a warp, whether four warps share it), or None."""
    words = opcode.split(".")
    if ptx := re.search(r"^(w?mma|wgmma)\b.*\.m(\d+)n(\d+)k(\d+)\.?(.*)", opcode):
        base, m, n, k, rest = ptx.groups()
        types = [w for w in rest.split(".") if w in PTX_TYPES or w in ("f16", "f32", "s32")]
        if len(types) < 2:
            return None
        factor = "f16" if len(types) == 2 else types[1]
        kind = (
            ("f16" if types[0] == "f16" else "f16_f32")
            if factor == "f16"
            else PTX_TYPES.get(factor)
        )
        group = base == "wgmma"
    else:
        kinds = {"D": "f64", "B": "b1", "Q": "f8", "I": "s8", "H": "f16"}
        base = re.fullmatch(r"([DBQIH])(G?)MMA", words[0])
        shape = re.search(r"\.(\d+)x(\d+)x(\d+)\b|\.(16|8)(8)(\d+)\b", opcode)
        if not base or not shape:
            return None
        m, n, k = (number for number in shape.groups() if number)
        kind, group = kinds[base[1]], bool(base[2])
        if kind == "s8" and ("S4" in words or "U4" in words):
            kind = "s4"
        if kind == "f16":
            own = [name for name in ("BF16", "TF32") if name in words]
            kind = own[0].lower() if own else "f16_f32" if "F32" in words else "f16"
    if kind is None:
        return None
    products = int(m) * int(n) * int(k) // (4 if group else 1)
    with_zeros = any(w in ("sp", "SP") or w.startswith("sp::") for w in words)
    return kind, products // 2 if with_zeros else products, group


def cycles(opcode, unit):
    """Return for how long an instruction keeps the unit busy; see `configurations.tensor_unit`."""
    found = operation(opcode)
    if not found or not unit.get(found[0]):
        return unit.get("interval", 0)
    more = 0 if found[2] else unit.get("more_of_warp", 0)
    return max(math.ceil(found[1] / unit[found[0]] + more), 1)


def latency(opcode, unit, of_interval):
    """Return its latency where an instruction of ``interval`` cycles has ``of_interval``."""
    found = operation(opcode)
    if not found or not unit.get(found[0]):
        return of_interval
    busy = cycles(opcode, unit)
    return max(busy, of_interval if found[2] else of_interval + busy - unit["interval"])
