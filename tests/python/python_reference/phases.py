"""Plain definition of mbarriers in time: what completes them, and what waits there."""

import re

NEVER = 2**62


def step_of(opcode):
    """Return (barrier, count) of an instruction, count None where it completes something; or None."""
    found = re.search(r"\.barrier(\d+)(?:\.(\d+))?$", opcode)
    if not found:
        return None
    return int(found[1]), None if found[2] is None else int(found[2])


class Block:
    """The mbarriers of a block: its completions, each with what it waits for."""

    def __init__(self):
        self.completions = []  # (barrier, earliest time, loads)

    def step(self, warp, instruction, load, earliest):
        """Note what an instruction does that has issued."""
        step = step_of(instruction["opcode"])
        if step is None:
            return
        barrier, count = step
        if count is not None:
            passed = warp.setdefault("passed", {})
            passed[barrier] = passed.get(barrier, 0) + count
            return
        loads = [load] if load is not None else []
        if instruction["opcode"].startswith("cp.async.mbarrier."):
            for one in warp["loads"]:
                row = one["instruction"]
                if row["kind"] == "async_copy" and step_of(row["opcode"]) is None:
                    loads.append(one)
        self.completions.append((barrier, earliest, loads))

    def wait(self, warp, instruction):
        """Return until when a warp waits before an instruction, and for what."""
        step = step_of(instruction["opcode"])
        if step is None or step[1] is None:
            return -1, "phases"
        barrier, count = step
        needed = warp.get("passed", {}).get(barrier, 0) + count
        made, missing = [], []
        for where, earliest, loads in self.completions:
            if where == barrier:
                missing += [load for load in loads if "finished" not in load]
                if all("finished" in load for load in loads):
                    made.append(max([earliest, *(load["finished"][0] for load in loads)]))
        made.sort()
        if len(made) >= needed:
            return (made[needed - 1] if needed else -1), "phases"
        return NEVER, missing[0] if missing else "phases"
