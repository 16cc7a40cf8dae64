"""Plain interpreter of PTX for one thread at a time: no warps, no masks, no reconvergence.

It reads the text itself and knows 32-bit unsigned arithmetic, predicates, branches, calls, and
64-bit addresses of global memory.
"""

import contextlib
import re

MASK = 0xFFFFFFFF
FOLDED = ("ld.param", "st.param", "cvta")  # take no row of a trace

OPERATIONS = {
    "mov": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "shl": lambda a, b: 0 if b > 31 else a << b,
    "shr": lambda a, b: 0 if b > 31 else a >> b,
    "mad.lo": lambda a, b, c: a * b + c,
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


class Instruction:
    def __init__(self, text):
        guard, text = re.fullmatch(r"(?:@(!?%\w+)\s+)?(.*)", text, re.DOTALL).groups()
        self.guard = guard
        self.opcode, _, rest = text.partition(" ")
        self.operands = [x.strip() for x in re.split(r",(?![^()]*\))", rest) if x.strip()]


class Function:
    """Instructions and labels of the body between the outermost braces."""

    def __init__(self, name, results, parameters, body, is_kernel):
        self.name = name
        self.is_kernel = is_kernel
        self.results = re.findall(r"\.param \.[a-z]\d+ (\w+)", results)
        self.parameters = re.findall(r"\.param \.[a-z]\d+ (\w+)", parameters)
        self.code, self.labels = [], {}
        for statement in re.split(r"[;{}\n]|(?<=:)\s", body):
            text = statement.strip()
            if not text or text.startswith("."):
                continue
            if text.endswith(":"):
                self.labels[text[:-1]] = len(self.code)
            else:
                self.code.append(Instruction(text))

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


class Exited(Exception):
    """The thread has executed exit."""


class Thread:
    """Runs one thread. `executed` counts instructions by (function, place) whose guard held."""

    def __init__(self, functions, memory, special, limit=100_000):
        self.functions = functions
        self.memory = memory  # 32-bit words by address
        self.special = special  # %tid.x and the like
        self.limit = limit
        self.executed = {}

    def run(self, kernel, arguments):
        with contextlib.suppress(Exited):
            self.call(self.functions[kernel], arguments)

    def call(self, function, arguments):
        registers = dict(self.special)
        parameters = dict(zip(function.parameters, arguments, strict=True))
        place = 0

        def value(operand):
            if operand.startswith("!"):
                return not value(operand[1:])
            return registers[operand] if operand.startswith("%") else int(operand, 0) & MASK

        while place < len(function.code):
            step = function.code[place]
            here, place = (function.name, place), place + 1
            if step.guard is not None and not value(step.guard):
                continue
            self.executed[here] = self.executed.get(here, 0) + 1
            self.limit -= 1
            if self.limit < 0:
                raise RuntimeError("endless")
            words = step.opcode.split(".")
            operands = step.operands
            match words[0]:
                case "bra":
                    if function.leaves_at(operands[0]):
                        raise Exited
                    place = function.labels[operands[0]]
                case "exit":
                    raise Exited
                case "ret":
                    break
                case "setp":
                    compare = COMPARISONS[words[1]]
                    registers[operands[0]] = compare(value(operands[1]), value(operands[2]))
                case "mad" if words[1] == "wide":
                    a, b, c = (value(x) for x in operands[1:])
                    registers[operands[0]] = a * b + c
                case "ld" if words[1] == "param":
                    registers[operands[0]] = parameters[operands[1].strip("[]")]
                case "st" if words[1] == "param":
                    parameters[operands[0].strip("[]")] = value(operands[1])
                case "ld":
                    registers[operands[0]] = self.memory[self._address(operands[1], value)]
                case "st":
                    self.memory[self._address(operands[0], value)] = value(operands[1])
                case "call":
                    results, name, listed = operands
                    results = [x.strip() for x in results.strip("()").split(",")]
                    listed = [parameters[x.strip()] for x in listed.strip("()").split(",")]
                    made = self.call(self.functions[name], listed)
                    parameters.update(zip(results, made, strict=True))
                case _:
                    name = ".".join(words[:-1])
                    result = OPERATIONS[name](*(value(x) for x in operands[1:]))
                    registers[operands[0]] = result & MASK
        return [parameters[name] for name in function.results]

    @staticmethod
    def _address(operand, value):
        base, _, offset = operand.strip("[]").partition("+")
        return value(base) + int(offset or 0)
