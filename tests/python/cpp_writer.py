"""Random functions of C++ that have one meaning: without undefined behaviour, by construction.

A program is a kernel and functions that it calls, as trees of statements: a statement is a line, or a
block whose parts are lines and lists of statements. All variables are made at the start, so that any
statement can be left out. The names of a program begin with an @, in place of which comes its own.
"""

import random

from cpp_expressions import FEATURES, SLOTS, WORDS, Expressions, bits, is_float


class Block:
    """Parts of a statement: texts, and lists of statements between them."""

    def __init__(self, *parts):
        self.parts = parts

    def bodies(self):
        return [part for part in self.parts if isinstance(part, list)]


class Function:
    """A function: its head without the body, lines that make its variables, statements, its end."""

    def __init__(self, head, start, body, end):
        self.head, self.start, self.body, self.end = head, start, body, end

    def lines(self):
        yield self.head + " {"
        yield from ("    " + line for line in self.start)
        yield from lines_of(self.body, "    ")
        yield from ("    " + line for line in self.end)
        yield "};" if self.head.startswith("struct") else "}"


def lines_of(statements, indent):
    for statement in statements:
        if isinstance(statement, str):
            yield indent + statement
            continue
        for part in statement.parts:
            if isinstance(part, list):
                yield from lines_of(part, indent + "    ")
            else:
                yield indent + part


class Program:
    """Functions, the last of which is the kernel; its seed is that of what it reads, too."""

    def __init__(self, functions, seed=0):
        self.functions, self.seed = functions, seed

    def text(self, name):
        """Return its source, the names of which begin with a name; that is the kernel's, too."""
        lines = [line for function in self.functions for line in function.lines()]
        return "\n".join(lines).replace("@", name) + "\n"

    def bodies(self):
        """Return all lists of statements."""
        found, left = [], [function.body for function in self.functions]
        while left:
            body = left.pop()
            found.append(body)
            left += [b for s in body if isinstance(s, Block) for b in s.bodies()]
        return found


class Writer(Expressions):
    """Writes one function."""

    # ---- statements ----

    def block(self, count, depth):
        return [self.statement(depth) for _ in range(count)]

    def statement(self, depth):
        pick = self.random.random()
        if depth > 0 and pick < 0.4:
            ways = [self.branch, self.branch, self.loop]
            if "switch" in self.features:
                ways.append(self.switch)
            if "gotos" in self.features:
                ways.append(self.skip)
            return self.random.choice(ways)(depth - 1)
        if pick < 0.46 and (self.breakable or self.continuable):
            word = self.random.choice(["break"] * self.breakable + ["continue"] * self.continuable)
            return f"if ({self.condition(1)}) {word};"
        if pick < 0.50:
            return self.leave()
        if pick < 0.70:
            stores = [
                f
                for f in ("array", "structure", "bit fields", "bytes", "alloca", "pointers")
                if f in self.features
            ]
            if stores:
                return self.store(self.random.choice(stores))
        return self.assign()

    def assign(self):
        name, kind = self.random.choice(self.variables)
        if kind in ("i8", "u8", "i16", "u8", "u32", "u64") and self.chance(0.15):
            sign = self.random.choice(["+", "-", "&", "|", "^"])
            return f"{name} {sign}= {self.expression(kind, 2)};"
        return f"{name} = {self.expression(kind, self.random.choice([1, 2, 2, 3]))};"

    def leave(self):
        if self.result is None:  # of the kernel
            name, kind = self.random.choice(self.variables)
            last = f"out[{SLOTS} * THREAD + {SLOTS - 1}] = {self.bits_of(name, kind)};"
            return f"if ({self.condition(1)}) {{ {last} return; }}"
        return f"if ({self.condition(1)}) return {self.returned()};"

    def returned(self):
        return "one" if self.result == "@S" else self.expression(self.result, 1)

    def store(self, feature):
        index = (
            f"({self.expression('u32', 1)} & 7)"
            if self.chance(0.7)
            else str(self.random.randrange(8))
        )
        if feature == "array":
            return f"list[{index}] = {self.expression(self.list_type, 2)};"
        if feature == "structure":
            name, kind = self.random.choice([("a", "u8"), ("b", "i32"), ("c", "u64"), ("d", "i16")])
            makers = [c for c in self.callees if c.result == "@S" and not c.table]
            if makers and self.chance(0.4) and self.calls < self.most_calls:
                self.calls += 1
                callee = self.random.choice(makers)
                arguments = ", ".join(self.argument(given, 1) for given in callee.parameters)
                return f"one = {callee.name}({arguments});"
            return f"one.{name} = {self.expression(kind, 2)};"
        if feature == "bit fields":
            value = self.expression(self.random.choice(["i32", "u32", "u64"]), 2)
            return f"part.{self.random.choice('abcdef')} = {value};"
        if feature == "pointers":
            name = self.variable("u32")
            return self.random.choice(
                [
                    f"words[{index} & 3] += {name};",
                    f"change_@(words, {name});",
                    f"at = words + ({name} & 3); *at ^= {name};",
                ]
            )
        if feature == "alloca":
            kind = self.random.choice(["u8", "u16", "u32", "u64"])
            target, target_kind = self.random.choice(self.variables)
            count = f"({self.expression('u32', 1)} & 7) + 1"
            n = self.counter()
            place = f"p{n}[{self.variable('u32')} % n{n}]"
            return Block(
                "{",
                f"    u32 n{n} = {count};",
                f"    {kind}* p{n} = ({kind}*)alloca(n{n} * sizeof({kind}));",
                f"    for (u32 i = 0; i < n{n}; ++i) p{n}[i] = ({kind})(i * {self.variable('u32')});",
                f"    {target} = {self.cast(place, kind, target_kind)};",
                "}",
            )
        kind = self.random.choice(["u16", "u32", "u64", "i32", "i64"])
        size = bits(kind) // 8
        where = f"bytes + ({self.variable('u32')} % {16 - size + 1}u)"
        if self.chance(0.5):
            return f"{{ {kind} v = {self.expression(kind, 2)}; memcpy({where}, &v, {size}); }}"
        names = [name for name, given in self.variables if given == kind]
        if not names:
            return f"bytes[{index}] = {self.expression('u8', 2)};"
        return f"memcpy(&{self.random.choice(names)}, {where}, {size});"

    def counter(self):
        self.counters += 1
        return self.counters

    def branch(self, depth):
        head = f"if ({self.condition(2)}) {{"
        then = self.block(self.random.randint(1, 3), depth)
        if self.chance(0.5):
            return Block(head, then, "} else {", self.block(self.random.randint(1, 3), depth), "}")
        return Block(head, then, "}")

    def skip(self, depth):
        n = self.counter()
        return Block(
            "{",
            f"    if ({self.condition(1)}) goto L{n};",
            self.block(self.random.randint(1, 3), depth),
            f"    L{n}:;",
            "}",
        )

    def loop(self, depth):
        if self.loops >= 2:
            return self.branch(depth)
        n = self.counter()
        before = self.breakable, self.continuable
        self.breakable = self.continuable = True
        self.loops += 1
        body = self.block(self.random.randint(1, 3), depth)
        self.loops -= 1
        self.breakable, self.continuable = before
        limit = (
            str(self.random.randint(1, 5)) if self.chance(0.4) else f"({self.variable('u32')} & 3)"
        )
        pick = self.random.randrange(4)
        if pick == 0:
            return Block(f"for (u32 turn{n} = 0; turn{n} < {limit}; ++turn{n}) {{", body, "}")
        if pick == 1:
            return Block(
                f"for (i32 turn{n} = {limit}; turn{n} >= 0 && {self.condition(1)}; --turn{n}) {{",
                body,
                "}",
            )
        if pick == 2:
            return Block(
                "{",
                f"    i16 turn{n} = 0;",
                "    do {",
                body,
                f"    }} while (++turn{n} < (i16){limit});",
                "}",
            )
        return Block(
            "{", f"    u8 turn{n} = {limit};", f"    while (turn{n}-- > 0) {{", body, "    }", "}"
        )

    def switch(self, depth):
        count = self.random.randint(2, 9)
        first, step = self.random.choice([0, 0, 0, 3, -1]), self.random.choice([1, 1, 1, 7])
        mask = self.random.choice([1, 3, 7, 15])
        before = self.breakable
        self.breakable = False  # it would leave the switch: not every switch is left early
        parts = [f"switch ((i32)({self.expression('u32', 2)} & {mask}) * {step} + {first}) {{"]
        for n in range(count):
            parts.append(f"    case {n * step + first}:")
            parts.append(self.block(1, depth if n < 3 else 0))
            if self.chance(0.7):
                parts.append("        break;")
        if self.chance(0.7):
            parts += ["    default:", self.block(1, 0), "        break;"]
        self.breakable = before
        return Block(*parts, "}")

    # ---- functions ----

    def bits_of(self, name, kind):
        return f"bits_of({name})" if is_float(kind) else f"(u64){name}"

    def places(self):
        """Make what variables there are besides numbers."""
        if "array" in self.features:
            self.list_type = self.any_type()
            values = ", ".join(self.expression(self.list_type, 1) for _ in range(8))
            self.start.append(f"{self.list_type} list[8] = {{{values}}};")
        if "structure" in self.features and not any(name == "one" for name in self.given):
            values = ", ".join(self.variable(kind) for kind in ("u8", "i32", "u64", "i16"))
            self.start.append(f"@S one = {{{values}}};")
        if "bit fields" in self.features:
            self.start.append("@B part = {};")
            self.start += [f"part.{f} = {self.variable('u32')};" for f in "abcdef"]
        if "bytes" in self.features:
            self.start.append(
                f"u8 bytes[16]; for (i32 i = 0; i < 16; ++i) bytes[i] = (u8)({self.variable('u32')} * i);"
            )
        if "pointers" in self.features and "words" not in self.given:
            self.start.append(
                f"u32 words[4] = {{{', '.join(self.variable('u32') for _ in range(4))}}};"
            )
        if "pointers" in self.features:
            self.start.append("u32* at = words;")
        for callee in {c.name: c for c in self.callees if c.table}.values():
            names = ", ".join(f"{callee.name}{n}" for n in range(callee.table))
            kinds = ", ".join(spelled(k) for k in callee.parameters)
            self.start.append(
                f"{callee.result} (*table_{callee.name}[{callee.table}])({kinds}) = {{{names}}};"
            )
        self.ready = True

    def kernel(self):
        self.given = []
        for n in range(self.random.randint(4, 9)):
            kind = self.any_type()
            word = f"in[{WORDS} * THREAD + {self.random.randrange(WORDS)}]"
            value = f"({kind}){word}"
            if is_float(kind):
                value = self.random.choice(
                    [f"as_{kind}((i64){word})", f"float_of((u32){word})", f"double_of({word})"]
                )
                value = f"({kind}){value}"
            self.start.append(f"{kind} v{n} = {value};")
            self.variables.append((f"v{n}", kind))
        self.places()
        body = self.block(self.random.randint(3, 8), 2)
        end = [
            f"out[{SLOTS} * THREAD + {n}] = {self.bits_of(*v)};"
            for n, v in enumerate(self.variables)
        ]
        if "structure" in self.features:
            end.append(
                f"out[{SLOTS} * THREAD + 10] = one.a ^ (u64)one.b << 8 ^ one.c ^ (u64)one.d << 40;"
            )
        if "array" in self.features:
            element = self.bits_of("list[i]", self.list_type)
            total = f"out[{SLOTS} * THREAD + 11] += {element} * (2 * i + 1)"
            end.append(f"for (i32 i = 0; i < 8; ++i) {total};")
        if "bit fields" in self.features:
            parts = " ^ ".join(f"(u64)part.{f} << {11 * n}" for n, f in enumerate("abcdef"))
            end.append(f"out[{SLOTS} * THREAD + 12] = {parts};")
        if "bytes" in self.features:
            end.append(f"memcpy(out + {SLOTS} * THREAD + 13, bytes + 4, 8);")
        return Function("KERNEL @(const u64* in, u64* out)", self.start, body, end)

    def function(self, callee, suffix=""):
        self.result = callee.result
        names = []
        for n, kind in enumerate(callee.parameters):
            special = {"@S": "one", "u32*": "words", "depth": "depth"}.get(kind)
            names.append(special or f"a{n}")
            if special is None:
                self.variables.append((names[-1], kind))
            elif special == "depth":
                self.variables.append(("depth", "u32"))
        self.given = names
        for n in range(self.random.randint(1, 3)):
            kind = self.any_type()
            self.start.append(f"{kind} v{n} = {self.expression(kind, 1)};")
            self.variables.append((f"v{n}", kind))
        if "depth" in names:
            # Variables never change the depth, so that it ends.
            self.variables = [v for v in self.variables if v[0] != "depth"]
        self.places()
        body = self.block(self.random.randint(1, 5), 1)
        if "depth" in names:
            n = self.random.choice([name for name, _ in self.variables])
            kind = dict(self.variables)[n]
            others = [self.argument(k, 1) for k in callee.parameters[1:]]
            itself = f"{callee.name}({', '.join(['depth - 1', *others])})"
            body.append(f"if (depth > 0) {n} = {self.cast(itself, callee.result, kind)};")
            if self.chance(0.5):
                body += self.block(1, 1)
        parameters = ", ".join(
            f"{spelled(k)} {name}" for k, name in zip(callee.parameters, names, strict=True)
        )
        attribute = (
            "FN_APART"
            if callee.table or "depth" in names
            else self.random.choice(["FN_APART", "FN_APART", "FN"])
        )
        return Function(
            f"{attribute} {callee.result} {callee.name}{suffix}({parameters})",
            self.start,
            body,
            [f"return {self.returned()};"],
        )


class Callee:
    def __init__(self, name, parameters, result, table=0):
        self.name, self.parameters, self.result, self.table = name, parameters, result, table


def spelled(kind):
    return "u32" if kind == "depth" else kind


def write_program(seed, without=()):
    """Return a random program; those of a seed have features that are random, too."""
    source = random.Random(seed)
    features = {f for f in FEATURES if source.random() < 0.4} - set(without)
    if features & {"pointers to functions", "recursion", "structures by value"}:
        features.add("calls")
    if "structures by value" in features:
        features.add("structure")
    if "half" in features:
        features.add("floats")
    functions, callees = [], []
    if "structure" in features:
        functions.append(Function("struct @S", ["u8 a; i32 b; u64 c; i16 d;"], [], [""]))
    if "bit fields" in features:
        kinds = source.choice(
            [
                "u32 a : 5; i32 b : 11; u32 c : 16; i32 d : 3; u32 e : 1; i32 f : 20;",
                "u64 a : 13; i64 b : 33; u64 c : 18; u8 d : 3; i16 e : 9; u32 f : 31;",
            ]
        )
        functions.append(Function("struct @B", [kinds], [], [""]))
    if "pointers" in features:
        body = [
            f"for (u32 i = 0; i < (n & 3); ++i) p[i] = p[i + 1] {source.choice('+-*^')} n;",
            "p[n & 3] ^= n >> 3;",
        ]
        functions.append(Function("FN_APART void change_@(u32* p, u32 n)", [], body, []))

    def kinds():
        """Choose the types of parameters, and of the result."""
        writer = Writer(source, features, [])
        structures = ["@S"] * ("structures by value" in features)
        found = [writer.any_type() for _ in range(source.randint(1, 4))]
        pool = structures + ["u32*"] * ("pointers" in features)
        found += [kind for kind in pool if source.random() < 0.6]
        return found, source.choice([*structures, writer.any_type(), writer.any_type()])

    if "calls" in features:
        for n in range(source.randint(1, 2)):
            callee = Callee(f"@_f{n}", *kinds())
            functions.append(Writer(source, features, list(callees)).function(callee))
            callees.append(callee)
    if "recursion" in features:
        parameters, result = kinds()
        result = "u64" if result == "@S" else result
        callee = Callee("@_r", ["depth", *parameters], result)
        functions.append(Writer(source, features, list(callees)).function(callee))
        callees.append(callee)
    if "pointers to functions" in features:
        callee = Callee("@_t", *kinds(), table=source.choice([2, 4]))
        made = [
            Writer(source, features, list(callees)).function(callee, n) for n in range(callee.table)
        ]
        functions += made
        callees.append(callee)
    kernel = Writer(source, features, callees, is_kernel=True).kernel()
    return Program([*functions, kernel], seed)
