"""Plain definition of the barriers of a block: who comes to which, and who goes on."""

import re

STEP = re.compile(
    r"(?:BAR|bar|barrier)\.(?:cta\.)?(SYNC|RED|ARV|sync|red|arrive)(?:[.\w]*?\.id(\d+)(?:\.(\w+))?$)?"
)


def step_of(opcode):
    """Return (whether it waits, number, warps or None for all) of an instruction; None without a step."""
    found = STEP.match(opcode)
    if not found or found[3] == "part":
        return None
    waits = found[1] not in ("ARV", "arrive")
    if found[2] is None:
        return (True, 0, None) if waits else None
    return waits, int(found[2]), None if found[3] is None else -(-int(found[3]) // 32)


class Block:
    """The warps that have arrived at barriers of a block which have not opened since."""

    def __init__(self, has_all_warps=True):
        self.has_all_warps = has_all_warps
        self.arrived = []  # (number, warps)

    def step_of(self, opcode):
        """Return what an instruction does here: a part of the warps knows only barriers of all."""
        step = step_of(opcode)
        if step is None or self.has_all_warps:
            return step
        return (True, 0, None) if step[0] else None

    def arrive(self, step, exits=False):
        """Note an arrival; a warp that exits with it is not awaited at barriers of all."""
        _, number, warps = step
        if not exits or warps is not None:
            self.arrived.append((number, warps))

    def open(self, unfinished):
        """Return the barriers that open now, which begin anew."""
        numbers = set()
        for number in range(16):
            here = [warps for one, warps in self.arrived if one == number]
            if here and len(here) >= (unfinished if here[0] is None else here[0]):
                numbers.add(number)
        self.arrived = [one for one in self.arrived if one[0] not in numbers]
        return numbers
