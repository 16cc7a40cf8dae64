"""Plain definition of instruction caches: lists of lines, the least recently used one first."""

LINE_BYTES = 128


def lines_of(config, name):
    return max(int(config[name] * 1024 / LINE_BYTES), 1)


class Code:
    """The lines of a kernel's code that somebody executes, by address."""

    def __init__(self, kernel, config):
        self.config = config
        table = kernel.instructions
        self.of_row = [pc // LINE_BYTES for pc in table["pc"].tolist()]
        executed = (table["executions"] > 0).tolist()
        self.lines = sorted({line for line, on in zip(self.of_row, executed, strict=True) if on})
        self.capacity = self.at_start = len(self.lines)
        if config["instruction_cache_kib"] and config["instruction_fetch_cycles"]:
            self.capacity = self.at_start = lines_of(config, "instruction_cache_kib")
            if config["instruction_preload_kib"]:
                self.at_start = min(lines_of(config, "instruction_preload_kib"), self.capacity)

    def is_all_there(self):
        return len(self.lines) <= self.at_start


class InstructionCache:
    def __init__(self, code):
        self.code, self.fetch_cycles = code, code.config["instruction_fetch_cycles"]
        self.held = code.lines[: code.at_start]
        self.there, self.free, self.fetches = {}, 0, 0

    def fetch(self, line, now):
        if len(self.held) == self.code.capacity:
            del self.held[0]
        self.held.append(line)
        self.free = max(self.free, now) + self.fetch_cycles
        self.there[line] = self.free
        self.fetches += 1

    def come_to(self, line, now):
        """Return when a line is there to which a warp comes; the next one is fetched, too."""
        if line in self.held:
            self.held.remove(line)
            self.held.append(line)
        else:
            self.fetch(line, now)
        found = self.there.get(line, 0)
        ahead = [other for other in self.code.lines if other > line][:1]
        if ahead and ahead[0] not in self.held:
            self.fetch(ahead[0], now)
        return found


class WarpCode:
    """Where a warp is in the code of its SM."""

    def __init__(self, cache):
        self.cache, self.line, self.ready = cache, None, -1

    def come_to(self, row, now):
        line = self.cache.code.of_row[row]
        if not self.cache.code.is_all_there() and line != self.line:
            self.ready = self.cache.come_to(line, now)
        self.line = line


def longest_walk(kernel, config):
    """Return (share of fetched lines, the same of a warp after it, cycles of an instruction in them)."""
    code = Code(kernel, config)
    if code.is_all_there():
        return 0.0, 0.0, 0.0
    warps = [
        kernel.warp(block, warp)["instruction"].tolist()
        for block, (_, warps) in enumerate(kernel.blocks())
        for warp in range(len(warps))
    ]
    longest = max(warps, key=len)
    lines = [code.of_row[row] for row in longest]
    visits = [line for k, line in enumerate(lines) if k == 0 or line != lines[k - 1]]
    cache, shares = InstructionCache(code), []
    for _ in range(2):
        before = cache.fetches
        for line in visits:
            cache.come_to(line, 0)
        shares.append(min((cache.fetches - before) / len(visits), 1.0))
    return *shares, config["instruction_fetch_cycles"] * len(visits) / len(longest)
