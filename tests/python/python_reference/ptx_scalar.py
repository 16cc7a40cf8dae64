"""Plain interpreter of PTX for one thread at a time: no warps, no masks, no reconvergence, no slots.

It reads the text itself and knows unsigned arithmetic of 32 and 64 bits, predicates, branches, lists
of branch targets, calls, and global memory. Each register of each call is a place of its own, and a
register that is read before it is written raises a TypeError.
"""

import functools
import re

FOLDED = ("ld.param", "st.param", "cvta")  # take no row of a trace

OPERATIONS = {
    "mov": lambda a: a,
    "not": lambda a: ~a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "shl": lambda a, b: 0 if b > 63 else a << b,
    "shr": lambda a, b: a >> b,
    "mad": lambda a, b, c: a * b + c,
    "selp": lambda a, b, c: a if c else b,
}
COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
EXIT, RETURN = -1, -2  # what a step answers instead of the place where the thread goes on


@functools.cache
def bits_of(word):
    return int(word[1:]) if re.fullmatch(r"[bsuf]\d+", word) else 1


def result_bits(words):
    """Return the width of the destination: a conversion names it first, a wide product doubles."""
    if words[0] == "cvt":
        return bits_of(words[1])
    return bits_of(words[-1]) * (2 if "wide" in words else 1)


class Instruction:
    def __init__(self, text):
        self.guard = None
        if text.startswith("@"):
            self.guard, text = text[1:].split(None, 1)
        self.opcode, _, rest = text.partition(" ")
        split = re.split(r",(?![^()]*\))", rest) if "(" in rest else rest.split(",")
        self.operands = [x.strip() for x in split if x.strip()]


class Function:
    """Instructions and labels of the body between the outermost braces."""

    def __init__(self, name, results, parameters, body, is_kernel):
        self.name = name
        self.is_kernel = is_kernel
        self.results = re.findall(r"\.param \.[a-z]\d+ (\w+)", results)
        self.parameters = re.findall(r"\.param \.[a-z]\d+ (\w+)", parameters)
        self.code, self.labels, self.lists = [], {}, {}
        for statement in re.split(r"[;{}\n]|(?<=:)\s", body):
            text = statement.strip()
            if not text:
                continue
            if text.startswith(".branchtargets"):
                name = next(reversed(self.labels))
                self.lists[name] = [x.strip() for x in text.split(None, 1)[1].split(",")]
            elif text.startswith("."):
                continue
            elif text.endswith(":"):
                self.labels[text[:-1]] = len(self.code)
            else:
                self.code.append(Instruction(text))
        # Registers, then constants and special registers, which never change.
        self.places, self.frame = {}, []
        self.steps, self.guards = [], []
        for step in self.code:
            guard = step.guard
            self.guards.append(None if guard is None else (self.place(guard.lstrip("!")), guard[0]))
            self.steps.append(self.decode(step))
        self.steps.append(lambda registers, thread: RETURN)
        self.guards.append(None)

    def leaves_at(self, label):
        """Say whether a branch there only ends the kernel: machine code exits at the branch."""
        place = self.labels[label]
        step = self.code[place] if place < len(self.code) else None
        at_end = step is None or (step.guard is None and step.opcode in ("ret", "exit"))
        return self.is_kernel and at_end

    def rows(self):
        """Return [(place, opcode, guard)] of the instructions that take a row of a trace."""
        found = []
        for place, step in enumerate(self.code):
            if step.opcode.startswith(FOLDED):
                continue
            leaves = step.opcode == "bra" and self.leaves_at(step.operands[0])
            found.append((place, "exit" if leaves else step.opcode, step.guard))
        return found

    def place(self, operand):
        """Return where a register or a constant lies in the frame."""
        if operand not in self.places:
            self.places[operand] = len(self.frame)
            is_number = not operand.startswith("%")
            # Machine words: -1 is all ones. A result is cut to its width.
            self.frame.append(int(operand, 0) & (2**64 - 1) if is_number else None)
        return self.places[operand]

    def decode(self, step):
        """Return a function that runs the instruction and answers where the thread goes on."""
        words, operands = step.opcode.split("."), step.operands
        match words[0]:
            case "bra":
                if self.leaves_at(operands[0]):
                    return lambda registers, thread: EXIT
                target = self.labels[operands[0]]
                return lambda registers, thread: target
            case "brx":
                index = self.place(operands[0])
                targets = [self.labels[x] for x in self.lists[operands[1]]]
                return lambda registers, thread: targets[registers[index]]
            case "exit":
                return lambda registers, thread: EXIT
            case "ret":
                return lambda registers, thread: EXIT if self.is_kernel else RETURN
            case "call":
                return self.decode_call(*operands)
            case "ld" | "st":
                return self.decode_access(words, operands)
        return self.decode_operation(words, operands)

    def decode_call(self, results, name, listed):
        results = [x.strip() for x in results.strip("()").split(",")]
        listed = [x.strip() for x in listed.strip("()").split(",")]

        def run(registers, thread):
            parameters = thread.parameters[-1]
            made = thread.call(name, [parameters[x] for x in listed])
            if made is None:
                return EXIT
            parameters.update(zip(results, made, strict=True))
            return None

        return run

    def decode_access(self, words, operands):
        is_load = words[0] == "ld"
        value = self.place(operands[not is_load])
        inner = operands[is_load].strip("[]")
        bits = bits_of(words[-1])
        if words[1] == "param":

            def access(registers, thread):
                if is_load:
                    registers[value] = thread.parameters[-1][inner]
                else:
                    thread.parameters[-1][inner] = registers[value] & (2**bits - 1)

            return access
        base, _, offset = inner.partition("+")
        base, offset = self.place(base), int(offset or 0)

        def access(registers, thread):
            address, memory = registers[base] + offset, thread.memory
            if not is_load:
                memory[address] = registers[value] & 0xFFFFFFFF
                if bits == 64:
                    memory[address + 4] = registers[value] >> 32
            elif bits == 64:
                registers[value] = memory[address] | memory[address + 4] << 32
            else:
                registers[value] = memory[address]

        return access

    def decode_operation(self, words, operands):
        target, *sources = (self.place(x) for x in operands)
        cut = 2 ** result_bits(words) - 1
        if words[0] == "setp":
            compare = COMPARISONS[words[1]]
            within = 2 ** bits_of(words[-1]) - 1
            a, b = sources

            def run(registers, thread):
                registers[target] = compare(registers[a] & within, registers[b] & within)

            return run
        operation = OPERATIONS[words[0]]
        if len(sources) == 1:
            (a,) = sources

            def run(registers, thread):
                registers[target] = operation(registers[a]) & cut
        elif len(sources) == 2:
            a, b = sources

            def run(registers, thread):
                registers[target] = operation(registers[a], registers[b]) & cut
        else:
            a, b, c = sources

            def run(registers, thread):
                registers[target] = operation(registers[a], registers[b], registers[c]) & cut

        return run


def parse(text):
    """Return the functions of a module by name, kernels before the functions they call."""
    found = {}
    pattern = (
        r"^\.(?P<kind>visible \.entry|func)(?P<results> \([^)]*\))? (?P<name>\w+)\((?P<parameters>[^)]*)\)"
        r"\s*\{(?P<body>.*?)\n\}"
    )
    for match in re.finditer(pattern, text, re.DOTALL | re.MULTILINE):
        found[match["name"]] = Function(
            match["name"],
            match["results"] or "",
            match["parameters"],
            match["body"],
            "entry" in match["kind"],
        )
    return found


class Thread:
    """Runs one thread. `executed` counts instructions by (function, place) whose guard held."""

    def __init__(self, functions, memory, special, limit=100_000):
        self.functions = functions
        self.memory = memory  # 32-bit words by address
        self.special = special  # %tid.x and the like
        self.limit = limit
        self.counts = {name: [0] * len(f.steps) for name, f in functions.items()}
        self.parameters = []  # of the calls that the thread is in

    @property
    def executed(self):
        return {
            (name, place): times
            for name, counts in self.counts.items()
            for place, times in enumerate(counts)
            if times
        }

    def run(self, kernel, arguments):
        self.call(kernel, arguments)

    def call(self, name, arguments):
        """Return the results, or nothing when the thread has exited."""
        function = self.functions[name]
        registers = function.frame.copy()
        for special, value in self.special.items():
            if special in function.places:
                registers[function.places[special]] = value
        self.parameters.append(dict(zip(function.parameters, arguments, strict=True)))
        steps, guards, counts = function.steps, function.guards, self.counts[name]
        place = 0
        for _ in range(self.limit):
            guard = guards[place]
            if guard is not None:
                holds = registers[guard[0]]
                if holds is None:
                    raise TypeError(f"{name}: the guard of instruction {place} is not defined")
                if bool(holds) == (guard[1] == "!"):
                    place += 1
                    continue
            counts[place] += 1
            answer = steps[place](registers, self)
            if answer is None:
                place += 1
            elif answer >= 0:
                place = answer
            else:
                break
        else:
            raise RuntimeError("endless")
        parameters = self.parameters.pop()
        if answer == EXIT:
            return None
        return [parameters[name] for name in function.results]
