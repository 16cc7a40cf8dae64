"""Random PTX programs whose threads go different ways with many values of different widths.

A program is a kernel and functions that it calls. Some have structured control flow (nested loops
that end at either end, breaks, continues, early exits and returns, switches), others a random graph
of blocks, irreducible ones among them. Values are made anywhere and used wherever all ways there
have made them, behind the loops and branches that they come from above all; they are 32 or 64 bits
wide, and many die early, so that a frame's places are used again.

Run as a program, it compares programs with the scalar reference until it is stopped:

    python tests/python/ptx_programs.py --count 1000000 --seed 1
"""

import argparse
import random
import time

import numpy as np

import warpstack as ws
from ptx_forms import HEADER
from python_reference import ptx_scalar

SLOTS = 6  # of 64 bits, per thread
WORDS = 64  # of input
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
NARROW = ["add.u32", "sub.u32", "mul.lo.u32", "and.b32", "or.b32", "xor.b32", "min.u32", "max.u32"]
WIDE = ["add.u64", "sub.u64", "mul.lo.u64", "and.b64", "or.b64", "xor.b64", "min.u64", "max.u64"]


class FunctionWriter:
    """Writes the body of one function. A set of registers that are defined travels along."""

    def __init__(self, random, name, callees):
        self.random = random
        self.name = name
        self.is_kernel = name == "k"
        self.callees = callees
        self.lines = []
        self.loops = []  # (label to break to, label to continue at, what is defined at each break)
        self.labels = self.counters = self.calls = 0
        self.narrow = [f"%r{i}" for i in range(random.randint(2, 4))]
        self.wide = [f"%d{i}" for i in range(random.randint(1, 3))]

    def write(self):
        if self.random.random() < 0.3:
            self.graph(self.prologue())
        else:
            defined = self.block(self.prologue(), self.random.randint(3, 6), 0)
            if defined is not None:
                self.finish(defined)
        result = "" if self.is_kernel else " (.param .b64 result)"
        kind = ".visible .entry" if self.is_kernel else ".func"
        parameters = (
            ".param .u64 p, .param .u64 q" if self.is_kernel else ".param .b64 x, .param .b32 y"
        )
        return [
            f"{kind}{result} {self.name}({parameters})",
            "{",
            f".reg .pred %p<4>; .reg .b32 %r<{len(self.narrow)}>; .reg .b64 %d<{len(self.wide)}>;",
            f".reg .b32 %t; .reg .b32 %c<{self.counters + 1}>; .reg .b64 %out; .reg .b64 %in;",
            *self.lines,
            "}",
        ]

    def prologue(self):
        """Write what makes the first values, a random part of the registers."""
        if self.is_kernel:
            self.lines += [
                "ld.param.u64 %out, [p];",
                "ld.param.u64 %in, [q];",
                "mov.u32 %t, %tid.x;",
                f"mad.wide.u32 %out, %t, {8 * SLOTS}, %out;",
                "mad.wide.u32 %in, %t, 4, %in;",
                "ld.global.u32 %r0, [%in];",
                "cvt.u64.u32 %d0, %t;",
            ]
        else:
            self.lines += ["ld.param.u64 %d0, [x];", "ld.param.u32 %r0, [y];"]
        defined = {"%r0", "%d0"}
        for register in self.narrow[1:] + self.wide[1:]:
            if self.random.random() < 0.4:
                self.assign(register, defined)
        return defined

    # ---- values ----

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def one_of(self, registers, defined):
        """Choose a register that has a value, a young one as a rule: others die."""
        known = [register for register in registers if register in defined]
        return self.random.choice(known[-4:] if self.random.random() < 0.7 else known)

    def new(self, registers):
        registers.append(f"{registers[0][:2]}{len(registers)}")
        return registers[-1]

    def target(self):
        """Choose a register to write: a new one as a rule, as a compiler does."""
        registers = self.wide if self.random.random() < 0.45 else self.narrow
        return self.new(registers) if self.random.random() < 0.6 else self.random.choice(registers)

    def operand(self, registers, defined):
        if self.random.random() < 0.2:
            return str(self.random.randint(0, 9))
        return self.one_of(registers, defined)

    def assign(self, target, defined, guard=""):
        """Give a register a new value made of those that are defined."""
        pick = self.random.random()
        is_wide = target.startswith("%d")
        same, other = (self.wide, self.narrow) if is_wide else (self.narrow, self.wide)
        first = self.operand(same, defined)
        if pick < 0.2:  # from the other width
            kind = "cvt.u64.u32" if is_wide else "cvt.u32.u64"
            text = f"{kind} {target}, {self.one_of(other, defined)}"
        elif pick < 0.3 and is_wide:
            a, b = self.operand(other, defined), self.one_of(other, defined)
            text = f"mad.wide.u32 {target}, {b}, {a}, {first}"
        elif pick < 0.4 and self.is_kernel:
            text = f"ld.global.u32 {target}, [%in+{4 * self.random.randint(0, WORDS - 1)}]"
            if is_wide:
                text = f"mov.u64 {target}, {self.random.randint(0, 1 << 40)}"
        elif pick < 0.5:
            text = f"mov.b{64 if is_wide else 32} {target}, {first}"
        else:
            name = self.random.choice(WIDE if is_wide else NARROW)
            text = f"{name} {target}, {self.one_of(same, defined)}, {first}"
        self.lines.append(f"{guard}{text};")
        defined.add(target)

    def compare(self, predicate, defined):
        registers, kind = (self.wide, "u64") if self.random.random() < 0.3 else (self.narrow, "u32")
        a = self.one_of(registers, defined)
        if self.random.random() < 0.6:  # small numbers, on which threads disagree
            name = self.random.choice(COMPARISONS)
            bits = kind[1:]
            temporary = self.new(registers)
            self.lines.append(f"and.b{bits} {temporary}, {a}, {self.random.choice([1, 3, 7])};")
            self.lines.append(
                f"setp.{name}.{kind} {predicate}, {temporary}, {self.random.randint(0, 4)};"
            )
        else:
            b = self.operand(registers, defined)
            name = self.random.choice(COMPARISONS)
            self.lines.append(f"setp.{name}.{kind} {predicate}, {a}, {b};")

    def random_assign(self, defined):
        self.assign(self.target(), defined)

    # ---- statements; each takes what is defined and returns it, or None where no thread goes on ----

    def block(self, defined, count, depth):
        for _ in range(count):
            defined = self.statement(defined, depth)
            if defined is None:
                return None
        return defined

    def statement(self, defined, depth):
        pick = self.random.random()
        if depth < 3 and pick < 0.34:
            choices = [self.branch, self.loop, self.loop, self.switch]
            return self.random.choice(choices)(defined, depth)
        if self.loops and pick < 0.50:
            return self.jump(defined)
        if pick < 0.54:
            return self.leave(defined)
        if pick < 0.60:
            # The old value stays where the guard does not hold.
            old = self.one_of(self.narrow + self.wide, defined)
            self.compare("%p0", defined)
            self.assign(old, defined, self.random.choice(["@%p0 ", "@!%p0 "]))
        elif pick < 0.66 and self.callees and self.calls < 3:
            self.call(defined)
        elif pick < 0.70 and self.is_kernel:
            self.store(defined, self.random.randint(0, SLOTS - 1))
        else:
            self.random_assign(defined)
        return defined

    def store(self, defined, slot):
        register = self.one_of(self.narrow + self.wide, defined)
        bits = 64 if register in self.wide else 32
        self.lines.append(f"st.global.u{bits} [%out+{8 * slot}], {register};")

    def finish(self, defined):
        """Write the end of a way: results, then a return or an exit."""
        if self.is_kernel:
            for slot in range(self.random.randint(2, SLOTS)):
                self.store(defined, slot)
            self.lines.append(self.random.choice(["ret;", "exit;"]))
        else:
            self.lines.append(f"st.param.b64 [result], {self.one_of(self.wide, defined)};")
            self.lines.append("ret;")

    def leave(self, defined):
        """Let some threads exit or return."""
        stay = self.label()
        self.compare("%p1", defined)
        self.lines.append(f"@%p1 bra {stay};")
        self.finish(defined)
        self.lines.append(f"{stay}:")
        return defined

    def call(self, defined):
        self.calls += 1
        guarded = self.random.random() < 0.5
        after = self.label()
        before = set(defined)
        if guarded:
            self.compare("%p0", defined)
            self.lines.append(f"@%p0 bra {after};")
        target = self.new(self.wide)
        self.lines += [
            "{ .param .b64 a; .param .b32 b; .param .b64 c;",
            f"st.param.b64 [a], {self.one_of(self.wide, defined)};",
            f"st.param.b32 [b], {self.one_of(self.narrow, defined)};",
            f"call (c), {self.random.choice(self.callees)}, (a, b);",
            f"ld.param.u64 {target}, [c]; }}",
        ]
        if guarded:
            self.lines.append(f"{after}:")
        defined.add(target)
        if guarded:
            defined &= before

    def jump(self, defined):
        """Break or continue, of this loop or one around it, on a condition as a rule."""
        way_out, again, breaks, continues = self.random.choice(self.loops[-2:])
        target, where = (way_out, breaks) if self.random.random() < 0.7 else (again, continues)
        if self.random.random() < 0.1:
            where.append(set(defined))
            self.lines.append(f"bra {target};")
            return None
        if self.random.random() < 0.5:  # if (…) { x = …; break; }
            stay = self.label()
            self.compare("%p1", defined)
            self.lines.append(f"@%p1 bra {stay};")
            taken = set(defined)
            for _ in range(self.random.randint(1, 2)):
                self.random_assign(taken)
            where.append(taken)
            self.lines += [f"bra {target};", f"{stay}:"]
            return defined
        self.compare("%p1", defined)
        where.append(set(defined))
        self.lines.append(f"@%p1 bra {target};")
        return defined

    @staticmethod
    def meet(ways):
        ways = [way for way in ways if way is not None]
        return set.intersection(*ways) if ways else None

    def branch(self, defined, depth):
        skip, end = self.label(), self.label()
        self.compare("%p2", defined)
        self.lines.append(f"@%p2 bra {skip};")
        then = self.block(set(defined), self.random.randint(1, 3), depth + 1)
        other = set(defined)
        if self.random.random() < 0.6:
            if then is not None:
                self.lines.append(f"bra {end};")
            self.lines.append(f"{skip}:")
            other = self.block(other, self.random.randint(1, 3), depth + 1)
            self.lines.append(f"{end}:")
        else:
            self.lines.append(f"{skip}:")
        return self.meet([then, other])

    def switch(self, defined, depth):
        count = self.random.randint(2, 4)
        labels = [self.label() for _ in range(count)]
        end, table = self.label(), self.label()
        value, index = self.one_of(self.narrow, defined), self.new(self.narrow)
        self.lines += [
            f"{table}: .branchtargets {', '.join(labels)};",
            f"min.u32 {index}, {value}, {count - 1};"
            if self.random.random() < 0.3
            else f"and.b32 {index}, {value}, {[0, 0, 1, 1, 3][count]};",
            f"brx.idx {index}, {table};",
        ]
        ways, before = [], None
        for label in labels:
            self.lines.append(f"{label}:")
            # Cases fall through into the next one, or jump behind the last.
            start = set(defined) if before is None else self.meet([set(defined), before])
            before = self.block(start, self.random.randint(1, 2), depth + 1)
            if before is not None and self.random.random() < 0.6:
                self.lines.append(f"bra {end};")
                ways.append(before)
                before = None
        ways.append(before)
        self.lines.append(f"{end}:")
        return self.meet(ways)

    def loop(self, defined, depth):
        head, end, again = self.label(), self.label(), self.label()
        count = f"%c{self.counters}"
        self.counters += 1
        breaks, continues = [], []
        self.lines.append(
            f"and.b32 {count}, {self.one_of(self.narrow, defined)}, {self.random.choice([1, 3])};"
        )
        tests_first = self.random.random() < 0.4
        self.lines.append(f"{head}:")
        if tests_first:
            self.lines.append(f"setp.eq.u32 %p3, {count}, 0;")
            self.lines.append(f"@%p3 bra {end};")
            breaks.append(set(defined))
        self.loops.append((end, again, breaks, continues))
        body = self.block(set(defined), self.random.randint(2, 4), depth + 1)
        self.loops.pop()
        latch = self.meet([body, *continues])
        if latch is not None:
            self.lines.append(f"{again}:")
            if tests_first:
                self.lines.append(f"sub.u32 {count}, {count}, 1;")
                self.lines.append(f"bra {head};")
            else:
                self.lines.append(f"setp.eq.u32 %p3, {count}, 0;")
                self.lines.append(f"sub.u32 {count}, {count}, 1;")
                self.lines.append(f"@!%p3 bra {head};")
                breaks.append(latch)
        self.lines.append(f"{end}:")
        return self.meet(breaks)

    # ---- graphs ----

    def graph(self, defined):
        """Write blocks that branch to any others, for as long as a thread's fuel lasts."""
        count = self.random.randint(3, 8)
        fuel = f"%c{self.counters}"
        self.counters += 1
        names = [self.label() for _ in range(count)]
        made = [[self.target() for _ in range(self.random.randint(1, 3))] for _ in range(count)]
        ways = []
        for block in range(count):
            following = min(block + 1, count - 1)
            kind = self.random.choice(["goto", "either", "either", "either", "any"])
            targets = [self.random.randrange(count) for _ in range(3)]
            if kind == "goto":
                ways.append((kind, targets[:1]))
            elif kind == "either":
                ways.append((kind, [targets[0], following]))
            else:
                ways.append((kind, [targets[0], targets[1], targets[2], following]))
        everything = set(self.narrow + self.wide)
        entry = [everything] * count
        entry[0] = set(defined)
        for _ in range(count * len(everything)):
            for block in range(count):
                for target in ways[block][1]:
                    entry[target] = entry[target] & (entry[block] | set(made[block]))
        spent = self.label()
        self.lines.append(f"mov.u32 {fuel}, {self.random.randint(4, 14)};")
        at_end = self.meet(entry)
        for block, name in enumerate(names):
            here = set(entry[block])
            self.lines += [
                f"{name}:",
                f"setp.eq.u32 %p3, {fuel}, 0;",
                f"@%p3 bra {spent};",
                f"sub.u32 {fuel}, {fuel}, 1;",
            ]
            for register in made[block]:
                self.assign(register, here)
            kind, targets = ways[block]
            if kind == "goto":
                self.lines.append(f"bra {names[targets[0]]};")
            elif kind == "either":
                self.compare("%p2", here)
                self.lines.append(f"@%p2 bra {names[targets[0]]};")
                self.lines.append(f"bra {names[targets[1]]};")
            else:
                table = self.label()
                value, index = self.one_of(self.narrow, here), self.new(self.narrow)
                self.lines += [
                    f"{table}: .branchtargets {', '.join(names[t] for t in targets)};",
                    f"and.b32 {index}, {value}, 3;",
                    f"brx.idx {index}, {table};",
                ]
        self.lines.append(f"{spent}:")
        self.finish(at_end)


def write_program(seed):
    """Return the text of a random module whose kernel is `k`."""
    source = random.Random(seed)
    functions, callees = [], []
    for name in ["g", "f"][: source.choice([0, 0, 1, 2])]:
        functions += FunctionWriter(source, name, list(callees)).write()
        callees.append(name)
    kernel = FunctionWriter(source, "k", callees).write()
    return "\n".join([HEADER, *functions, *kernel])


def check_program(text, device, lanes=32, count_lanes=False):
    """Run a module of `write_program` and its scalar reference; raise AssertionError if they differ."""
    words = np.random.default_rng(lanes).integers(0, 1 << 32, WORDS + 32, dtype=np.uint32)
    words[::2] %= 16
    out = device.zeros((lanes, 2 * SLOTS), np.uint32)
    given = ws.cuda.array(words, device=device)
    kernel = ws.cuda.compile(text, device=device).kernel("k")
    trace = kernel.launch(1, lanes, out, given, trace=count_lanes)

    functions = ptx_scalar.parse(text)
    memory = dict.fromkeys(range(out.address, out.address + out.nbytes, 4), 0)
    for i, word in enumerate(words.tolist()):
        memory[given.address + 4 * i] = word
    executed = {}
    for t in range(lanes):
        thread = ptx_scalar.Thread(functions, memory, {"%tid.x": t})
        thread.run("k", [out.address, given.address])
        if count_lanes:
            for place, times in thread.executed.items():
                executed[place] = executed.get(place, 0) + times
    expected = np.array(list(memory.values())[: out.size], np.uint32).reshape(out.shape)
    wrong = np.flatnonzero((out.to_host() != expected).any(axis=1))
    assert wrong.size == 0, f"threads {wrong.tolist()} have other results\n{text}"
    if count_lanes:
        columns = trace.warp(0, 0)
        found = np.zeros(len(trace.instructions), int)
        masks = columns["active_mask"].astype(np.uint64)
        np.add.at(found, columns["instruction"], np.bitwise_count(masks))
        # Functions in the order in which the kernel's lowering finds them: by their first call.
        order = ["k"]
        for name in order:
            calls = [i.operands[1] for i in functions[name].code if i.opcode == "call"]
            order += [f for f in dict.fromkeys(calls) if f not in order]
        rows = [(name, place) for name in order for place, _, _ in functions[name].rows()]
        assert found.tolist() == [executed.get(row, 0) for row in rows], text


def main():
    parser = argparse.ArgumentParser(
        description="compare random programs with the scalar reference"
    )
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first program; then one more each"
    )
    options = parser.parse_args()
    device = ws.cuda.Device(0.25)
    began = time.monotonic()
    for done, seed in enumerate(range(options.seed, options.seed + options.count), 1):
        text = write_program(seed)
        try:
            check_program(text, device, random.Random(seed).choice([32, 32, 32, 21]))
        except Exception:
            print(f"program {seed} fails", flush=True)
            raise
        if done % 10_000 == 0 or done == options.count:
            print(f"{done} programs, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
