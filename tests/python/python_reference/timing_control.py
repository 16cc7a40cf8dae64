"""Plain definition of control fields: when machine code says that a warp may issue."""

import math

from python_reference import phases

NEVER = 2**62
NO_BARRIER = 7


class ControlledWarp:
    """The barriers that instructions of a warp hold, each with what it is held for."""

    def __init__(self):
        self.holds = {barrier: [] for barrier in range(6)}
        self.copies, self.products = [], []
        self.stalls_until = 0

    def hold(self, barrier, end):
        """Hold a barrier; `end` returns when that ends, NEVER if it is not known, and its reason."""
        if barrier != NO_BARRIER:
            self.holds[barrier].append(end)

    def access(self, instruction, load, entry):
        """Hold barriers of a memory instruction that the load-store unit has taken."""

        def until_read():
            return (NEVER, "unit") if entry["sent"] is None else (entry["sent"] + 1, "arithmetic")

        def until_done():
            return load.get("finished") or (NEVER, load)

        self.hold(instruction["write_barrier"], until_done if load else until_read)
        self.hold(instruction["read_barrier"], until_read)
        if instruction["kind"] == "async_copy":
            self.copies.append(load)

    def operation(self, instruction, now, latency, interval):
        """Hold barriers of another instruction."""
        written = now + math.ceil(latency)
        if instruction["opcode"].startswith("LDGDEPBAR"):
            self.hold(instruction["write_barrier"], self.end_of_copies(now))
        else:
            self.hold(instruction["write_barrier"], lambda: (written, "arithmetic"))
        self.hold(instruction["read_barrier"], lambda: (now + interval, "arithmetic"))

    def end_of_copies(self, now):
        """Return the end of a hold for all copies until now."""
        copies = list(self.copies)

        def end():
            for copy in copies:
                if "finished" not in copy:
                    return NEVER, copy
            return max([now + 1, *(copy["finished"][0] for copy in copies)]), "l1_latency"

        return end

    def copy_step(self, instruction, load, now, latency=0):
        """Note what an instruction without control fields does with groups of copies and products."""
        opcode = instruction["opcode"]
        if instruction["kind"] == "async_copy" and phases.step_of(opcode) is None:
            self.copies.append(load)
        elif opcode == "cp.async.commit_group":
            self.holds[0].append(self.end_of_copies(now))
        elif opcode.startswith("wgmma.mma_async"):
            self.products.append(now + latency)
        elif opcode.startswith("wgmma.commit_group"):
            end = max([now + 1, *self.products])
            self.holds[1].append(lambda: (end, "arithmetic"))

    def copy_wait(self, instruction):
        """Return until when such an instruction waits for groups, and for what."""
        opcode = instruction["opcode"]
        if opcode == "cp.async.wait_all":
            return self.end_of_copies(-2)() if self.copies else (-1, "arithmetic")
        last = opcode.rpartition(".")[2]
        if opcode.startswith(("cp.async.wait_group.", "wgmma.wait_group.")) and last.isdigit():
            most = int(last)
            groups = self.holds[opcode.startswith("wgmma")]
            groups = groups[: max(len(groups) - most, 0)]
            # The first that is not there is named; a group contains those before it.
            return max(
                (end() for end in groups), key=lambda end: end[0], default=(-1, "arithmetic")
            )
        return -1, "arithmetic"

    def issued(self, instruction, now):
        """Stall after an instruction."""
        at_least = 2 if instruction["yield"] else 1
        self.stalls_until = now + max(instruction["stall"], at_least)

    def wait(self, instruction):
        """Return until when an instruction waits, and for what."""
        ends = []
        for barrier, holds in self.holds.items():
            if instruction["wait_mask"] >> barrier & 1:
                ends += [end() for end in holds]
        if instruction["counted_barrier"] != NO_BARRIER:
            # All but the last so many have to end.
            found = [end() for end in self.holds[instruction["counted_barrier"]]]
            found.sort(key=lambda end: -end[0])
            ends += found[instruction["counted_most"] :][:1]
        ready, cause = -1, "arithmetic"
        for time, why in [*ends, (self.stalls_until, "arithmetic")]:
            if time > ready:
                ready, cause = time, why
        return ready, cause


def unit_of(instruction):
    """Return whose unit executes an instruction: conversions of 64 bits are double precision's."""
    base, *modifiers = instruction["opcode"].upper().split(".")
    converts = base in ("F2F", "F2I", "I2F", "FRND", "CVT")
    is_wide = {"F64", "S64", "U64"} & set(modifiers)
    of_own = instruction["op_class"] != "sfu" or not (converts and is_wide)
    return instruction["op_class"] if of_own else "fp64"
