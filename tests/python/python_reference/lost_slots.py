"""Plain definition of CPI stacks one level below, for the timing stage (timing.py)."""

from collections import Counter

PARTS = ("base", "dep", "l1", "l2", "dram", "mshr", "noc", "queue")
#: The details of each component. Where nothing was seen to wait, slots are lost to the first.
DETAILS = {
    "base": ["idle", "issue"],
    "dep": [
        *("shared_memory", "arithmetic", "units", "bank_conflicts", "barriers"),
        *("instruction_fetch", "phases", "starts"),
    ],
    "l1": ["load_store_unit", "l1_latency", "tags"],
    "l2": ["l2_latency", "l2_queue", "l2_atomics"],
    "dram": ["dram_latency"],
    "mshr": ["mshrs", "mshr_targets", "places"],
    "noc": ["network", "send_port", "receive_port", "slices", "atomics", "dram_backlog"],
    "queue": ["dram_bandwidth", "dram_rows", "dram_turnarounds", "l2_mshrs"],
}
TICKS = 2**20


def component_of(detail):
    """Return the component of a detail; a request that waits for room in its queue waits in the NoC."""
    if detail == "room":
        return "noc"
    return next(part for part, names in DETAILS.items() if detail in names)


class LostSlots:
    """Parts of slots of an SM: those whose detail is known, and those lost to loads in flight."""

    def __init__(self):
        self.known, self.of_loads = Counter(), Counter()

    def stack(self):
        stack = Counter(self.of_loads)
        for detail, parts in self.known.items():
            stack[component_of(detail)] += parts
        return stack


def divided(slots, part, waited):
    """Divide slots of a component as its details have waited; the largest takes what is left."""
    names = DETAILS[part]
    total = sum(waited[name] for name in names)
    if not total:
        return Counter({names[0]: slots})
    found = Counter({name: slots * waited[name] // total for name in names})
    found[max(names, key=lambda name: waited[name])] += slots - sum(found.values())
    return found


def of(amount, part, whole):
    """Return the part of an amount, rounded down."""
    return amount * part // whole if whole > 0 else 0


def waited_below(machine):
    """Return what was waited for below the SMs, in all and by the first requests of their queues."""
    seen, waited = machine.waited, Counter(l2_latency=machine.waited["l2_latency"])
    heads = Counter(send_port=seen["send_port"], network=seen["network"])
    late = in_channels = 0
    for one in machine.slices:
        stats = one.stats
        busy = stats["requests"] + stats["atomics"]
        for_dram = stats["for_mshr"] + stats["for_dram"]
        everything = busy + for_dram + stats["for_reply"]
        waiting = stats["waited_for"]
        parts = {
            "atomics": of(waiting, stats["atomics"], everything),
            "dram_backlog": of(waiting, for_dram, everything),
            "network": of(waiting, stats["for_reply"], everything),
        }
        heads.update(parts)
        heads["slices"] += waiting - sum(parts.values())
        behind_atomics = of(stats["queued"], stats["atomics"], busy)
        waited.update(l2_atomics=behind_atomics, l2_queue=stats["queued"] - behind_atomics)
        for_mshrs = of(stats["queued_for_dram"], stats["for_mshr"], for_dram)
        waited["l2_mshrs"] += for_mshrs
        in_channels += stats["in_channel"] + stats["queued_for_dram"] - for_mshrs
        late += stats["late"]
    bus = sum((channel.stats for channel in machine.channels), Counter())
    rows = of(in_channels, bus["rows"], sum(bus.values()))
    turns = of(in_channels, bus["turnarounds"], sum(bus.values()))
    waited.update(dram_rows=rows, dram_turnarounds=turns, dram_bandwidth=in_channels - rows - turns)
    for name, time in heads.items():
        waited[name] += of(seen["requests"], time, sum(heads.values()))
    waited["receive_port"] += seen["receive_port"]
    waited["slices" if machine.is_crossbar() else "network"] += seen["replies"] + late
    return waited, heads


def in_detail(machine):
    """Return the parts of slots of all SMs by detail."""
    below, heads = waited_below(machine)
    found = Counter({name: 0 for names in DETAILS.values() for name in names})
    for sm in machine.sms:
        waited = Counter(below)
        waited.update({name: turns * TICKS for name, turns in sm.turns.items() if name != "room"})
        known = Counter(sm.slots.known)
        found.update(divided(known.pop("room", 0), "noc", heads))
        found.update(known)
        for part, parts in sm.slots.of_loads.items():
            found.update(divided(parts, part, waited))
    return found
