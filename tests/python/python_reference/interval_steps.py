"""Plain definition of the steps of interval simulation, and of what is left of a resource.

The time at which an instruction issues is the largest of some terms, each a number of cycles after
a head of the warp or an access of it. Here every instruction keeps all of its terms. Left out, as
in the core: mbarriers.
"""

import math
import re

from python_reference import tensor
from python_reference.barriers import step_of
from python_reference.instruction_cache import Code
from python_reference.timing_control import NO_BARRIER, unit_of
from python_reference.timing_trace import instructions_of


class Need:
    """What an instruction may wait for: {head: cycles after it}, and {access: only until sent}."""

    def __init__(self, after=None, accesses=None):
        self.after, self.accesses = after or {}, accesses or {}

    def plus(self, cycles):
        return Need({head: time + cycles for head, time in self.after.items()}, self.accesses)


def latest(needs):
    """Return the need of all: the largest term of each head, the strictest of each access."""
    after, accesses = {}, {}
    for need in needs:
        for head, time in need.after.items():
            after[head] = max(after.get(head, time), time)
        for access, until_sent in need.accesses.items():
            accesses[access] = accesses.get(access, True) and until_sent
    return Need(after, accesses)


class Warp:
    """What the instructions of a warp, so far, have left to wait for."""

    def __init__(self):
        self.registers = {}
        self.units = {}
        self.held = {barrier: [] for barrier in range(6)}
        self.copies, self.products = [], []
        self.groups = {"cp": [], "wgmma": []}


def issue_step(config):
    """Return the cycles from an instruction of a warp to its next one."""
    rate = config["issue_width"] / config["schedulers_per_sm"]
    return 1 / max(math.ceil(rate), 1)


def latency_of(config, row):
    latency = config["latency"].get(row["op_class"], 0)
    if row["op_class"] == "tensor":
        latency = tensor.latency(row["opcode"], config["latency"]["tensor_unit"], latency)
    return math.ceil(latency)


def interval_of(config, row):
    if row["op_class"] == "tensor":
        return tensor.cycles(row["opcode"], config["latency"]["tensor_unit"])
    return 0 if row["op_class"] == "memory" else config["interval"].get(unit_of(row), 0)


def waits_of(warp, row, is_product, has_control):
    """Return the needs of an instruction for data, which later ones need not wait for again."""
    if has_control:
        needs = []
        for barrier, held in warp.held.items():
            if row["wait_mask"] >> barrier & 1:
                needs += held
                held.clear()
        if row["counted_barrier"] != NO_BARRIER:
            needs += all_but(row["counted_most"], warp.held[row["counted_barrier"]])
        return needs
    registers = {*row["sources"], *row["destinations"]}
    if is_product:
        registers = set(row["sources"]) - set(row["destinations"])
    needs = [warp.registers.pop(register, Need()) for register in registers]
    most = row["opcode"].rpartition(".")[2]
    if row["opcode"] == "cp.async.wait_all":
        needs += [*all_but(0, warp.groups["cp"]), *all_but(0, warp.copies)]
    elif row["opcode"].startswith("cp.async.wait_group.") and most.isdigit():
        needs += all_but(int(most), warp.groups["cp"])
    elif row["opcode"].startswith("wgmma.wait_group.") and most.isdigit():
        needs += all_but(int(most), warp.groups["wgmma"])
    return needs


def all_but(most, things):
    """Take all but the last so many from a list, and return them."""
    taken = things[: max(len(things) - most, 0)]
    del things[: len(taken)]
    return taken


def steps(kernel, config, block, number):
    """Return the steps of a warp, as dictionaries."""
    table = kernel.instructions.to_dict("records")
    has_control = kernel.has_control_fields
    counts_products = any(re.match(r"wgmma\.wait_group.*\.\d+$", row["opcode"]) for row in table)
    program = instructions_of(kernel, table, block, number)
    step = issue_step(config)
    awaits_stores = config["store_acknowledgement"] == "awaited"
    warp, made = Warp(), []
    # When each head issues if nothing holds the warp up. A head before the first instruction is 0.
    alone = [0.0]
    issue, must, results = Need({0: 0.0}), [], []
    accesses, awaited, instructions, used = 0, {}, 0, {}
    code = Code(kernel, config)

    def close(action, row, when, waits, comes_to_code=False):
        last = len(alone) - 1
        fresh, carried = max(when.after.get(last, 0.0), 0.0), 0.0
        for head, time in when.after.items():
            if head < last:  # as if nothing had held the warp up until the head before the last one
                carried = max(carried, time - (alone[last - 1] - alone[head]))
        made.append(
            {
                "fresh": fresh,
                "carried": carried,
                "instructions": instructions,
                "row": row,
                "action": action,
                "waits": waits,
                "uses": dict(used),
                "comes_to_code": comes_to_code,
            }
        )
        used.clear()
        alone.append(max(alone[last] + fresh, alone[last - 1] + carried if carried else 0.0))

    for k, (index, mask, count, _, _) in enumerate(program):
        row = table[index]
        is_memory, opcode = row["op_class"] == "memory", row["opcode"]
        is_product = not has_control and counts_products and opcode.startswith("wgmma.mma_async")
        needs = [issue.plus(step), *must, *waits_of(warp, row, is_product, has_control)]
        must = []
        unit, interval = unit_of(row), interval_of(config, row)
        if interval:
            needs.append(warp.units.get(unit, Need()))
            used[unit] = used.get(unit, 0) + interval
        issue = latest(needs)
        waits = {
            access: until_sent
            for access, until_sent in issue.accesses.items()
            if access not in awaited or (awaited[access] and not until_sent)
        }
        awaited.update(waits)
        issue = Need(issue.after)
        instructions += 1
        access = bool(is_memory and mask and count)
        at = step_of(opcode) if mask and not is_memory else None
        is_last = k + 1 == len(program)
        barrier = bool(at and at[0] and not is_last)
        # Who exits after a barrier of all threads is not awaited there.
        arrives = bool(at and not barrier and (not at[0] or at[2] is not None))
        new_line = k == 0 or code.of_row[index] != code.of_row[program[k - 1][0]]
        comes_to_code = new_line and not code.is_all_there()
        if access or barrier or arrives or waits or comes_to_code:
            action = "none"
            if access:
                action = "shared" if row["space"] == "shared" else "access"
            elif barrier:
                action = "barrier"
            elif arrives:
                action = "arrive"
            close(action, index, issue, waits, comes_to_code)
            instructions = 0
            issue = Need({len(alone) - 1: 0.0})
        if barrier:
            after = max(math.ceil(config["latency"]["barrier"]), 1)
            must.append(Need({len(alone) - 1: float(after)}))
        if interval:
            warp.units[unit] = issue.plus(interval)
        if has_control:
            must.append(issue.plus(max(row["stall"], 2 if row["yield"] else 1)))
        if not mask:
            continue
        if access:
            shared = row["space"] == "shared"
            is_atomic = not shared and row["kind"] in ("atomic", "reduction")
            stops = is_atomic and config["atomic_wait"] == "until_done"
            returns = row["kind"] in ("load", "async_copy", "atomic")
            is_answered = returns or stops or (awaits_stores and not shared)
            data, sent = Need(accesses={accesses: False}), Need(accesses={accesses: True})
            accesses += 1
            if has_control:
                for name, end in (
                    ("read_barrier", sent),
                    ("write_barrier", data if is_answered else sent),
                ):
                    if row[name] != NO_BARRIER:
                        warp.held[row[name]].append(end)
            elif returns:
                warp.registers.update(dict.fromkeys(row["destinations"], data))
            if row["kind"] == "async_copy":
                warp.copies.append(data)
            if stops:
                must.append(data)
            continue
        if is_memory:
            continue
        done = issue.plus(latency_of(config, row))
        if is_product:
            warp.products.append(done)
            results.append(done)
        elif row["destinations"]:
            results.append(done)
        if has_control:
            if row["write_barrier"] != NO_BARRIER:
                is_group = opcode.startswith("LDGDEPBAR")
                warp.held[row["write_barrier"]].append(latest(warp.copies) if is_group else done)
                warp.copies = [] if is_group else warp.copies
            if row["read_barrier"] != NO_BARRIER:
                warp.held[row["read_barrier"]].append(issue.plus(interval))
            continue
        if not is_product:
            warp.registers.update(dict.fromkeys(row["destinations"], done))
        if opcode == "cp.async.commit_group":
            warp.groups["cp"].append(latest(warp.copies))
            warp.copies = []
        elif opcode.startswith("wgmma.commit_group"):
            warp.groups["wgmma"].append(latest(warp.products))
            warp.products = []
    close("end", 0, latest([issue.plus(1), *results]), {})
    return made


__all__ = ["issue_step", "steps"]
