"""Random expressions of C++ without undefined behaviour, for the functions of cpp_writer.py.

Signed sums and products are made of numbers that fit, or without a sign; counts of shifts are below the
width, divisors neither 0 nor -1; floats become integers within the range.
"""

INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
FLOATS = ["f32", "f64"]
WORDS = 8  # of 64 bits that a thread reads
SLOTS = 16  # of 64 bits that it writes
EDGES = [0, 1, 2, 3, 5, 7, 10, 31, 32, 63, 64, 100, 127, 128, 255, 256, 32767, 32768, 65535, 65536]
EDGES += [
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**63 - 1,
    2**63,
    2**64 - 1,
    0x0F0F0F0F,
    0x8040201008040201,
]
REALS = [0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 0.1, 1e10, -1e-10, 16777216.0, 65504.0]
#: What a program may have besides variables, arithmetic, branches and loops.
FEATURES = [
    "array", "structure", "bit fields", "bytes", "alloca", "table", "half", "wide", "intrinsics",
    "pointers to functions", "calls", "recursion", "switch", "floats", "packed", "division",
    "structures by value", "pointers", "gotos",
]  # fmt: skip
INTRINSICS = [
    "popc32", "clz32", "ffs32", "brev32", "popc64", "clz64", "ffs64", "brev64", "perm", "umulhi", "mulhi",
    "umul64hi", "mul64hi", "funnel_l", "funnel_r", "funnel_lc", "funnel_rc", "sad", "usad", "dp4a", "dp4a_u",
    "hadd32", "rhadd32",
]  # fmt: skip
PACKED = [
    "vadd2",
    "vsub4",
    "vmaxs2",
    "vminu2",
    "vmins4",
    "vmaxu4",
    "vabsdiffu4",
    "vcmpgts2",
    "vaddss2",
]
HALVES = [
    "h_add",
    "h_mul",
    "h_min",
    "h_max",
    "b_add",
    "b_mul",
    "b_max",
    "h_less",
    "h_geu",
    "b_less",
]


def bits(kind):
    return int(kind[1:])


def is_float(kind):
    return kind[0] == "f"


class Expressions:
    """Writes expressions of a function; each has exactly the type that is asked for."""

    def __init__(self, source, features, callees, is_kernel=False):
        self.random, self.features, self.callees = source, features, callees
        self.most_calls = 3 if is_kernel else 1  # so that what it takes does not explode
        self.variables = []  # (name, type)
        self.start, self.counters, self.loops, self.calls = [], 0, 0, 0
        self.breakable = self.continuable = False
        self.result = None
        self.ready = False  # whether all variables are made

    # ---- choices ----

    def chance(self, share):
        return self.random.random() < share

    def any_type(self):
        kinds = [*INTEGERS, "i32", "u32", "u64"]
        return self.random.choice(kinds + FLOATS * 2 if "floats" in self.features else kinds)

    def integer_type(self):
        return self.random.choice([*INTEGERS, "i32", "u32"])

    def constant(self, kind):
        if is_float(kind):
            value = self.random.choice([*REALS, round(self.random.uniform(-100, 100), 3)])
            return f"{value!r}{'f' if kind == 'f32' else ''}"
        value = self.random.choice([*EDGES, self.random.getrandbits(bits(kind))])
        value = self.random.choice([value, -value, self.random.randint(-9, 99)])
        return f"({kind}){value % 2 ** bits(kind):#x}{'u' if bits(kind) <= 32 else 'ull'}"

    # ---- expressions ----

    def cast(self, text, given, kind):
        if given == kind:
            return text
        if is_float(given) and not is_float(kind):
            return f"to_{kind}({text})"
        return f"as_{kind}({text})" if is_float(kind) else f"({kind})({text})"

    def variable(self, kind):
        same = [name for name, given in self.variables if given == kind]
        if same and self.chance(0.75):
            return self.random.choice(same)
        name, given = self.random.choice(self.variables)
        return self.cast(name, given, kind)

    def expression(self, kind, depth):
        if depth <= 0 or self.chance(0.12):
            return self.constant(kind) if self.chance(0.2) else self.variable(kind)
        if self.chance(0.10):
            given = self.any_type()
            return self.cast(self.expression(given, depth - 1), given, kind)
        if self.chance(0.08):
            a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
            return f"({self.condition(depth - 1)} ? {a} : {b})"
        if self.ready and self.callees and self.calls < self.most_calls and self.chance(0.12):
            return self.call(kind, depth)
        return self.real(kind, depth) if is_float(kind) else self.integer(kind, depth)

    def condition(self, depth):
        pick = self.random.random()
        if depth > 0 and pick < 0.2:
            joint = self.random.choice(["&&", "||"])
            return f"({self.condition(depth - 1)} {joint} {self.condition(depth - 1)})"
        kind = self.any_type()
        if pick < 0.4 and not is_float(kind):
            return f"({self.variable(kind)} & {self.random.choice([1, 2, 4, 6])})"
        if pick < 0.45:
            return f"!{self.condition(depth - 1)}"
        sign = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        other = self.constant(kind) if self.chance(0.4) else self.expression(kind, depth - 1)
        return f"({self.expression(kind, depth - 1)} {sign} {other})"

    def integer(self, kind, depth):
        ways = [self.arithmetic] * 5 + [self.shift, self.shift, self.extreme, self.extreme]
        ways += [self.compared, self.single, self.widened, self.narrow, self.field, self.rotated]
        if "division" in self.features:
            ways += [self.division, self.division]
        if "intrinsics" in self.features:
            ways += [self.intrinsic, self.intrinsic]
        if "packed" in self.features:
            ways.append(self.packed)
        if "half" in self.features:
            ways += [self.half, self.half]
        if "wide" in self.features:
            ways.append(self.wide)
        for feature in ["array", "structure", "bit fields", "table"]:
            if feature in self.features and self.ready:
                ways.append(lambda kind, depth, feature=feature: self.place(feature, kind, depth))
        return self.random.choice(ways)(kind, depth)

    def arithmetic(self, kind, depth):
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        sign = self.random.choice(["+", "-", "*", "&", "|", "^", "+", "-"])
        unsigned = "u32" if bits(kind) <= 32 else "u64"
        if bits(kind) < 32 and not (kind == "u16" and sign == "*") and self.chance(0.6):
            return f"({kind})({a} {sign} {b})"  # as int, in which it fits
        if self.chance(0.25):
            c = self.expression(kind, depth - 1)
            more = self.random.choice(["+", "-"])
            return f"({kind})(({unsigned}){a} {sign} ({unsigned}){b} {more} ({unsigned}){c})"
        return f"({kind})(({unsigned}){a} {sign} ({unsigned}){b})"

    def shift(self, kind, depth):
        a = self.expression(kind, depth - 1)
        count = (
            str(self.random.randint(0, bits(kind) - 1))
            if self.chance(0.5)
            else f"({self.expression('u32', depth - 1)} & {bits(kind) - 1})"
        )
        if self.chance(0.65):
            return f"({kind})({a} >> {count})"
        return f"({kind})(({'u32' if bits(kind) <= 32 else 'u64'}){a} << {count})"

    def rotated(self, kind, depth):
        unsigned = "u" + kind[1:]
        count = self.random.randint(1, bits(kind) - 1)
        a = f"({unsigned}){self.variable(kind)}"
        return f"({kind})(({unsigned})({a} << {count}) | ({unsigned})({a} >> {bits(kind) - count}))"

    def extreme(self, kind, depth):
        a, b, sign = self.variable(kind), self.expression(kind, depth - 1), self.random.choice("<>")
        if self.chance(0.3):
            b = self.constant(kind)
        if self.chance(0.3):
            sign += "="
        least = f"({a} {sign} {b} ? {a} : {b})"
        if self.chance(0.3):
            c = self.variable(kind)
            return f"({c} {self.random.choice('<>')} {least} ? {c} : {least})"
        return least

    def compared(self, kind, depth):
        return f"({kind}){self.condition(depth - 1)}"

    def single(self, kind, depth):
        a = self.expression(kind, depth - 1)
        unsigned = "u32" if bits(kind) <= 32 else "u64"
        pick = self.random.randrange(4)
        if pick == 0:
            return f"({kind})~{a}"
        if pick == 1:
            return f"({kind})(0 - ({unsigned}){a})"
        if pick == 2:
            return f"({kind})!{a}"
        name = self.variable(kind)
        return f"({kind})({name} < 0 ? 0 - ({unsigned}){name} : ({unsigned}){name})"

    def widened(self, kind, depth):
        """A product of narrower numbers that fits, with or without a further one."""
        given, wide = self.random.choice(
            [("i32", "i64"), ("u32", "u64"), ("i16", "i32"), ("i8", "i32")]
        )
        a, b = self.expression(given, depth - 1), self.expression(given, depth - 1)
        text = f"({wide}){a} * ({wide}){b}"
        if self.chance(0.5):
            unsigned = "u" + wide[1:]
            text = (
                f"({unsigned})({text}) {self.random.choice('+-')} ({unsigned}){self.variable(wide)}"
            )
        if self.chance(0.3):
            text = f"({wide})({text}) >> {self.random.choice([1, 7, 8, 16, 31])}"
        return f"({kind})({text})"

    def narrow(self, kind, depth):
        """Arithmetic on signed numbers whose sum or product fits."""
        a, b = self.expression("i32", depth - 1), self.expression("i32", depth - 1)
        first = self.random.choice([f"({a} >> {self.random.randint(16, 20)})", f"({a} & 0x7fff)"])
        second = self.random.choice([f"({b} >> {self.random.randint(17, 24)})", f"({b} & 0x3ff)"])
        return f"({kind})({first} {self.random.choice('+-*')} {second})"

    def field(self, kind, depth):
        given = self.random.choice(["i32", "u32", "i64", "u64", kind])
        a, width = self.expression(given, depth - 1), bits(given)
        first, count = self.random.randrange(width), self.random.randint(1, width)
        if self.chance(0.4) and bits(given) >= 32:  # the sign is extended
            unsigned = "u" + given[1:]
            count = min(count, width - 1)
            back = self.random.randint(count, width - 1)
            return f"({kind})((i{width})(({unsigned}){a} << {count}) >> {back})"
        mask = (1 << min(count, width - 1)) - 1
        return f"({kind})(({a} >> {first}) & ({given}){mask:#x}{'u' if width <= 32 else 'ull'})"

    def division(self, kind, depth):
        a, sign = self.expression(kind, depth - 1), self.random.choice("/%")
        if self.chance(0.4):
            most = 2 ** (bits(kind) - (kind[0] == "i")) - 1
            value = min(
                self.random.choice([3, 5, 7, 10, 16, 60, 100, 127, 641, 1000, 65537, most]), most
            )
            suffix = "u" if bits(kind) <= 32 else "ull"
            divisor = f"({kind}){value:#x}{suffix}"
            if kind[0] == "i" and self.chance(0.3):
                divisor = f"({kind})-{value}{'ll' if bits(kind) > 32 else ''}"
        else:
            b = self.expression(kind, depth - 1)
            if kind[0] == "u":
                divisor = f"({kind})({b} | 1)"
            else:  # neither 0 nor -1
                mask = self.random.choice(
                    [0x7F, 2 ** (bits(kind) - 1) - 1, 2 ** (bits(kind) - 1) - 1]
                )
                suffix = "ll" if bits(kind) > 32 else ""
                divisor = f"({kind})(({b} & {mask:#x}{suffix}) | 1)"
                if self.chance(0.4):
                    divisor = f"({kind})-(({b} & {mask:#x}{suffix}) | 2)"
        return f"({kind})({a} {sign} {divisor})"

    def intrinsic(self, kind, depth):
        def of(given):
            return self.expression(given, depth - 1)

        name = self.random.choice(INTRINSICS)
        if name[-2:] in ("32", "64") and name[:-2] in ("popc", "clz", "ffs", "brev"):
            return f"({kind}){name}({of('u' + name[-2:])})"
        if name in ("umul64hi", "mul64hi"):
            given = "u64" if name[0] == "u" else "i64"
        else:
            given = "i32" if name in ("mulhi", "sad") else "u32"
        more = name in ("perm", "sad", "usad", "dp4a", "dp4a_u") or name.startswith("funnel")
        third = f", {of('u32')}" if more else ""
        return f"({kind}){name}({of(given)}, {of(given)}{third})"

    def packed(self, kind, depth):
        name = self.random.choice(PACKED)
        a, b = self.expression("u32", depth - 1), self.expression("u32", depth - 1)
        return f"({kind}){name}({a}, {b})"

    def half(self, kind, depth):
        def of(given):
            return self.expression(given, depth - 1)

        pick = self.random.randrange(6)
        if pick == 0:
            return f"({kind})f_to_{self.random.choice('hb')}({of('f32')})"
        if pick == 1:
            name, given = self.random.choice(
                [("d_to_h", "f64"), ("i_to_h", "i32"), ("h_to_i", "u16")]
            )
            return f"({kind}){name}({of(given)})"
        if pick == 2:
            name = self.random.choice(["h_neg", "h_abs"])
            return f"({kind}){name}({of('u16')})"
        if pick == 3:
            name = self.random.choice(["h2_add", "h2_greater"])
            return f"({kind}){name}({of('u32')}, {of('u32')})"
        if pick == 4:
            name, given = self.random.choice([("h_fma", "u16"), ("h2_fma", "u32")])
            return f"({kind}){name}({of(given)}, {of(given)}, {of(given)})"
        name = self.random.choice(HALVES)
        return f"({kind}){name}({of('u16')}, {of('u16')})"

    def wide(self, kind, depth):
        a, b = self.expression("u64", depth - 1), self.expression("i64", depth - 1)
        pick = self.random.randrange(4)
        if pick == 0:
            return (
                f"({kind})(((u128){a} * (u64){b}) >> {self.random.choice([1, 32, 63, 64, 65, 96])})"
            )
        if pick == 1:
            return (
                f"({kind})(((i128){b} * {self.variable('i64')}) >> ({self.variable('u32')} & 127))"
            )
        if pick == 2:
            c = self.variable("u64")
            return f"({kind})((((u128){a} << 64 | {c}) + ((u128){c} << 64 | {a})) >> 64)"
        return (
            f"({kind})(((u128){a} << 64 | (u64){b}) < ((u128){self.variable('u64')} << 64 | {a}))"
        )

    def place(self, feature, kind, depth):
        """Read an element or field, at an index that is known when it runs or before."""
        index = (
            str(self.random.randrange(8))
            if self.chance(0.3)
            else f"({self.expression('u32', min(depth - 1, 1))} & 7)"
        )
        if feature == "table":
            return f"({kind}){self.random.choice(['constants', 'shorts'])}[{index}]"
        if feature == "array":
            return self.cast(f"list[{index}]", self.list_type, kind)
        if feature == "bit fields":
            return f"({kind})part.{self.random.choice('abcdef')}"
        return f"({kind})one.{self.random.choice('abcd')}"

    def real(self, kind, depth):
        a = self.expression(kind, depth - 1)
        f = "f" if kind == "f32" else ""
        letter = "f" if kind == "f32" else "d"
        pick = self.random.randrange(15)
        if pick < 5:
            return f"({a} {self.random.choice('+-*/')} {self.expression(kind, depth - 1)})"
        if pick == 5:
            return f"fma{f}({a}, {self.variable(kind)}, {self.expression(kind, depth - 1)})"
        if pick == 6:
            return f"{self.random.choice(['min', 'max'])}_{letter}({a}, {self.expression(kind, depth - 1)})"
        if pick == 7:
            return f"{self.random.choice(['fabs', 'floor', 'ceil', 'trunc', 'rint'])}{f}({a})"
        if pick == 8:
            return f"sqrt{f}(fabs{f}({a}))"
        if pick == 9:
            return f"copysign{f}({a}, as_{kind}({self.variable('i32')}))"
        if pick in (10, 11):
            given = self.integer_type()
            return f"as_{kind}({self.expression(given, depth - 1)})"
        if pick == 12 and "half" in self.features:
            return f"({kind}){self.random.choice('hb')}_to_f({self.expression('u16', depth - 1)})"
        if pick == 13:
            return f"(-({a}))"
        b = self.variable(kind)
        if kind == "f64":
            return f"mul_rz({a}, {b})"
        texts = [f"add_rz({a}, {b})", f"add_ru({a}, {b})", f"mul_rd({a}, {b})", f"saturate({a})"]
        texts += [f"fmodf({a}, {b})", f"(f32)near_i32({a})", f"(f32)up_u32({a})"]
        of = {given: self.variable(given) for given in ("f64", "i32", "u64")}
        texts += [
            f"narrow_rd({of['f64']})",
            f"narrow_ru({of['f64']})",
            f"(f32)down_i64({of['f64']})",
        ]
        texts += [f"from_i32_rz({of['i32']})", f"from_u64_ru({of['u64']})"]
        return self.random.choice(texts)

    def call(self, kind, depth):
        self.calls += 1
        callee = self.random.choice(self.callees)
        arguments = ", ".join(self.argument(given, depth - 1) for given in callee.parameters)
        name = callee.name
        if callee.table:
            name = f"table_{callee.name}[{self.variable('u32')} & {callee.table - 1}]"
        text = f"{name}({arguments})"
        if callee.result == "@S":
            return f"({kind}){text}.{self.random.choice('abcd')}"
        return self.cast(text, callee.result, kind)

    def argument(self, kind, depth):
        if kind == "@S":
            return "one"
        if kind == "u32*":
            return "words"
        if kind == "depth":
            return f"({self.variable('u32')} & 3)"
        return self.expression(kind, depth)
