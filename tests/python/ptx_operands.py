"""Every form of PTX with constants, other register types and shared registers as its operands.

A variant of a form has a constant in the place of some operands, registers of other types that the
ISA allows, or one register for operands that may be the same. What ptxas refuses is not a variant.
Each runs as PTX, as the machine code that ptxas makes of the same text, and, where it has constants,
as PTX with these constants in registers: all must give the same.

Run as a program, it takes all variants of random forms until it is stopped:

    python tests/python/ptx_operands.py --count 100000 --seed 1
"""

import argparse
import random
import re
import time
from dataclasses import dataclass

import numpy as np

import ptx_forms
import warpstack as ws
from ptx_operand_forms import all_forms
from python_reference.ptx_arithmetic import is_nan
from warpstack.errors import InputError

LANES = 32
SLOTS = 8  # words of 64 bits of a lane's operands
TYPES = {
    16: ("b16", "u16", "s16"),
    32: ("b32", "u32", "s32", "f32"),
    64: ("b64", "u64", "s64", "f64"),
}
#: Values of kinds that are no types: those of constants, and of registers.
LIMITED = {
    "divisor16": (16, [1, 2, 3, 7, 0x7FFF]),
    "divisor32": (32, [1, 2, 3, 10, 0x7FFFFFFF]),
    "divisor64": (64, [1, 2, 3, 10, 2**32 + 1, 2**63 - 1]),
    "field32": (32, [0, 1, 5, 16, 31, 32, 40, 255]),
    "position32": (32, [0, 1, 5, 16, 31, 32, 40, 255]),
    "field64": (32, [0, 1, 5, 31, 32, 63]),
    "shift": (32, [0, 1, 15, 16, 31, 32, 33, 63, 64, 255, 2**32 - 1]),
    # ptxas takes the least integer for 0 when it is a constant.
    "sign": (32, [0, 1, -1, 7, -2147483647]),
    "offset": (64, [0, 8, 1000, 2**16]),  # in the space of an address
    # If the lower word is 0, I2F takes the upper one.
    "number64": (64, [0, 1, -1, 7, 2**40 + 1, -(2**50) - 3, 2**32, -(2**33), 3 * 2**40, 2**63]),
    "lane": (32, [0, 1, 5, 31]),
    "nth": (32, [-3, -1, 0, 1, 2]),
    "clamp": (32, [0, 31, 0x1C1F, 0x1F1F]),
    "small32": (32, [0, 0x3F800000, 0xC0000000, 0x40400000]),
    "small64": (64, [0, 0x3FF0000000000000, 0xC000000000000000, 0x4008000000000000]),
    "small16x2": (32, [0, 0x3C003C00, 0x4000BC00, 0xC2003C00]),
}
#: Constants of a kind, where not all values of its registers may be one.
CONSTANTS = {
    # ptxas makes -1 of bfe.s32 with a constant position past the sign, whatever the register has.
    "position32": [0, 1, 5, 16, 31],
}
#: The same whose value all lanes share.
UNIFORM = {"members": [2**32 - 1], "barrier": [0, 1, 15], "threads": [32]}
POINTERS = {"address": 64, "shared": 32}


@dataclass(frozen=True)
class Register:
    """An operand in a register: its number, and its declared type."""

    number: int
    declared: str
    negated: bool = False

    @property
    def name(self):
        return f"%r{self.number}"


@dataclass(frozen=True)
class Variant:
    """A form with its operands: registers, or constants as text."""

    form: object
    results: tuple
    sources: tuple

    def instruction(self, in_registers=False):
        """Return its PTX, on request with constants in registers that are set before."""
        lines, words = [], {}
        for i, operand in enumerate(self.results):
            words[f"d{i}"] = operand.name
        for i, operand in enumerate(self.sources):
            if isinstance(operand, Register):
                words[f"s{i}"] = "!" * operand.negated + operand.name
            elif in_registers:
                words[f"s{i}"] = f"%c{i}"
                declared = types_of(self.form.sources[i])[0]
                lines.append(f".reg .{declared} %c{i};")
                lines.append(
                    f"setp.ne.u32 %c{i}, %zero, {operand};"
                    if declared == "pred"
                    else f"mov.{declared} %c{i}, {operand};"
                )
            else:
                words[f"s{i}"] = operand
        return " ".join([*lines, self.form.text.format(**words)])

    @property
    def has_constants(self):
        return any(isinstance(operand, str) for operand in self.sources)


def vector_of(kind):
    """Return elements and type of a kind such as v2b16; (1, kind) of others."""
    found = re.fullmatch(r"v(\d)(\w+)", kind)
    return (int(found[1]), found[2]) if found else (1, kind)


def width_of(kind):
    """Return the bits of a register of a kind."""
    if kind in LIMITED:
        return LIMITED[kind][0]
    if kind in POINTERS:
        return POINTERS[kind]
    return 32 if kind in UNIFORM else ptx_forms.width_of(vector_of(kind)[1])


def types_of(kind):
    """Return the types that a register of a kind may be declared with, the usual one first."""
    if kind == "pred":
        return ("pred",)
    width = width_of(kind)
    elements, _ = vector_of(kind)
    if elements > 1:
        return (f"v{elements} .b{width}",)
    return TYPES[width]


def constants_of(kind, rng):
    """Return constants of a kind: 0, 1, -1, the ends of its range, and one more."""
    if kind == "pred":
        return ["0", "1"]
    if kind in UNIFORM:
        return [str(v) for v in UNIFORM[kind]] + (["-1"] if kind == "members" else [])
    if kind in POINTERS or vector_of(kind)[0] > 1:
        return []
    width = width_of(kind)
    if kind in LIMITED:
        values = CONSTANTS.get(kind, LIMITED[kind][1])
        if kind.startswith("small") and kind != "small16x2":
            return [floating(v, width) for v in values]
        return [str(v) for v in values]
    if kind in ("f32", "f64"):
        edges = ptx_forms.edges(kind)
        chosen = [edges[0], *rng.sample(edges, 4), edges[len(edges) // 2]]
        decimals = ["1.0", "-2.5"] if kind == "f64" else []
        return [floating(v, width) for v in chosen] + decimals
    top = 1 << (width - 1)
    extra = rng.randrange(2 * top)
    if kind[0] == "s":
        extra -= top
        return [str(v) for v in (0, 1, -1, -top, top - 1, extra)]
    return [str(v) for v in (0, 1, -1, top, 2 * top - 1, extra)]


def floating(bits, width):
    return f"0{'f' if width == 32 else 'd'}{bits:0{width // 4}X}"


def values_of(kind, rng):
    """Return the value of each lane: edges and random ones."""
    if kind in UNIFORM:
        return [rng.choice(UNIFORM[kind])] * LANES
    if kind in POINTERS:
        return [0] * LANES
    if kind == "pred":
        return [rng.randrange(2) for _ in range(LANES)]
    width = width_of(kind)
    if kind in LIMITED:
        return [rng.choice(LIMITED[kind][1]) % 2**width for _ in range(LANES)]
    elements, element = vector_of(kind)
    edges = ptx_forms.edges(element)
    words = []
    for _ in range(LANES):
        parts = [
            rng.choice(edges) if rng.random() < 0.6 else rng.getrandbits(width)
            for _ in range(elements)
        ]
        words.append(sum(p << (width * i) for i, p in enumerate(parts)))
    return [w % 2**64 for w in words]


def variants_of(form, rng):
    """Return the variants of a form, the plain one first."""
    results = [Register(i, types_of(k)[0]) for i, k in enumerate(form.results)]
    count = len(results)
    sources = [Register(count + i, types_of(k)[0]) for i, k in enumerate(form.sources)]
    found = {}

    def add(some_results, some_sources):
        found.setdefault(Variant(form, tuple(some_results), tuple(some_sources)))

    def replaced(operands, changes):
        return [changes.get(i, operand) for i, operand in enumerate(operands)]

    add(results, sources)
    constants = [constants_of(kind, rng) for kind in form.sources]
    for i, some in enumerate(constants):
        for constant in some:
            add(results, replaced(sources, {i: constant}))
    places = [i for i, some in enumerate(constants) if some]
    for _ in range(6 if len(places) > 1 else 0):
        chosen = rng.sample(places, rng.randint(2, len(places)))
        add(results, replaced(sources, {i: rng.choice(constants[i]) for i in chosen}))
    for i, kind in enumerate(form.sources):
        for declared in types_of(kind)[1:]:
            add(results, replaced(sources, {i: Register(count + i, declared)}))
        if kind == "pred":
            add(results, replaced(sources, {i: Register(count + i, "pred", True)}))
    for i, kind in enumerate(form.results):
        for declared in types_of(kind)[1:]:
            add(replaced(results, {i: Register(i, declared)}), sources)
    # One register in several places: a result is a source, or two sources are one.
    shared = [
        (i, j)
        for i, result in enumerate(results)
        for j, source in enumerate(sources)
        if result.declared == source.declared
    ]
    for i, j in shared:
        add(replaced(results, {i: sources[j]}), sources)
    for _ in range(4 if len(shared) > 1 else 0):
        changes = {}
        for i, j in rng.sample(shared, len(shared)):
            if i not in changes and sources[j] not in changes.values():
                changes[i] = sources[j]
        add(replaced(results, changes), sources)
        mixed = rng.choice(places) if places else None
        if mixed is not None and rng.random() < 0.5:
            constant = rng.choice(constants[mixed])
            add(replaced(results, changes), replaced(sources, {mixed: constant}))
    for i in range(len(sources)):
        for j in range(i):
            same = form.sources[i] == form.sources[j]
            if same:
                one = replaced(sources, {i: sources[j]})
                add(results, one)
                if (0, j) in shared:
                    add(replaced(results, {0: sources[j]}), one)
    return list(found)


def load(register, kind, slot):
    """Return PTX that gives a register its value."""
    place = f"[%in+{8 * slot}]"
    if kind in POINTERS:
        source = "%base" if kind == "address" else "%sbase"
        return f"mov.b{width_of(kind)} {register.name}, {source};"
    if kind == "pred":
        return f"ld.global.u32 %w, {place}; setp.ne.u32 {register.name}, %w, 0;"
    elements, _ = vector_of(kind)
    width = width_of(kind)
    if elements == 1:
        return f"ld.global.b{width} {register.name}, {place};"
    names = ", ".join(f"{register.name}.{c}" for c in "xyzw"[:elements])
    return f"ld.global.v{elements}.b{width} {{{names}}}, {place};"


def store(register, kind, place):
    if kind == "pred":
        return f"selp.u32 %w, 1, 0, {register.name}; st.global.u32 {place}, %w;"
    elements, _ = vector_of(kind)
    width = width_of(kind)
    if elements == 1:
        return f"st.global.b{width} {place}, {register.name};"
    names = ", ".join(f"{register.name}.{c}" for c in "xyzw"[:elements])
    return f"st.global.v{elements}.b{width} {place}, {{{names}}};"


SCRATCH = (
    "st.global.v2.u64 [%base], {%in, %in}; st.shared.v2.u32 [%sbase], {%t, %t};"
    " st.shared.v2.u32 [%sbase+8], {%zero, %t}; bar.warp.sync -1;"
)


def variant_text(variant, number, in_registers):
    """Return a line of PTX that runs a variant and stores its results."""
    form = variant.form
    registers, parts = {}, []
    kinds = [*zip(variant.sources, form.sources, strict=True)]
    for slot, (operand, kind) in enumerate(kinds):
        if isinstance(operand, Register) and operand.number not in registers:
            registers[operand.number] = operand
            parts.append(load(operand, kind, slot))
    for operand in variant.results:
        registers.setdefault(operand.number, operand)
    declared = [f".reg .{r.declared} {r.name};" for r in registers.values()]
    if any(kind in POINTERS for kind in form.sources):
        parts.append(SCRATCH)
    parts.append(variant.instruction(in_registers))
    for i, (operand, kind) in enumerate(zip(variant.results, form.results, strict=True)):
        parts.append(store(operand, kind, f"[%out+{8 * LANES * (4 * number + i)}]"))
    return " ".join(["{", *declared, *parts, "}"])


def kernel_text(name, variants, left_out=(), in_registers=False):
    """Return a kernel that runs variants one after the other, a line each."""
    head = [
        f".visible .entry {name}(.param .u64 {name}_in, .param .u64 {name}_out, .param .u64 {name}_b)",
        "{ .reg .b64 %in, %out, %base; .reg .b32 %t, %w, %sbase, %zero;"
        " .shared .align 16 .b8 words[2048];",
        f"ld.param.u64 %in, [{name}_in]; ld.param.u64 %out, [{name}_out];",
        f"ld.param.u64 %base, [{name}_b]; mov.u32 %t, %tid.x; mov.u32 %sbase, words;"
        " mad.lo.u32 %sbase, %t, 64, %sbase; mad.wide.u32 %base, %t, 64, %base;",
        f"mad.wide.u32 %in, %t, {8 * SLOTS}, %in; mad.wide.u32 %out, %t, 8, %out;"
        " mov.u32 %zero, 0;",
    ]
    lines = [
        "" if n in left_out else variant_text(v, n, in_registers) for n, v in enumerate(variants)
    ]
    return "\n".join([*head, *lines, "ret; }", ""])


HEAD_LINES = 5


class Batch:
    """Variants of some forms, a kernel for each form, in one module."""

    def __init__(self, groups, arch, seed):
        self.groups, self.arch = groups, arch
        self.refused = {n: set() for n in range(len(groups))}  # variants, by ptxas
        self.missing = {}  # (kernel, variant): why PTX refuses it
        self.device = ws.cuda.Device(0.25)
        rng = random.Random(seed)
        self.inputs = []
        for variants in groups:
            columns = [values_of(kind, rng) for kind in variants[0].form.sources]
            table = np.zeros((LANES, SLOTS), np.uint64)
            for slot, column in enumerate(columns):
                table[:, slot] = column
            self.inputs.append(table)

    def text(self, left_out, in_registers=False):
        head = f".version 8.3\n.target {self.arch}\n.address_size 64\n"
        return head + "".join(
            kernel_text(f"k{n}", variants, left_out[n], in_registers)
            for n, variants in enumerate(self.groups)
        )

    def place_of(self, line):
        """Return kernel and variant of a line of the text, from 1."""
        line -= 4
        for n, variants in enumerate(self.groups):
            height = HEAD_LINES + len(variants) + 1
            if line < height:
                return n, line - HEAD_LINES
            line -= height
        raise AssertionError(f"line {line} is behind the text")

    def assemble(self):
        """Return the module of machine code, without the variants that ptxas refuses."""
        while True:
            text = self.text(self.refused)
            try:
                return ws.cuda.compile(text, machine_code=self.arch, device=self.device)
            except InputError as error:
                lines = re.findall(r"line (\d+); (?:error|fatal)", str(error))
                if not lines:
                    raise
                for line in set(lines):
                    kernel, variant = self.place_of(int(line))
                    if variant in self.refused[kernel]:
                        raise  # it stands there no more
                    self.refused[kernel].add(variant)

    def kernels_of_ptx(self, in_registers):
        """Return the kernels as PTX, without variants that are refused."""
        left_out = {n: set(refused) for n, refused in self.refused.items()}
        for (kernel, variant), _ in self.missing.items():
            left_out[kernel].add(variant)
        while True:
            module = ws.cuda.compile(self.text(left_out, in_registers), device=self.device)
            kernels, is_whole = [], True
            for n in range(len(self.groups)):
                try:
                    kernels.append(module.kernel(f"k{n}"))
                except InputError as error:
                    line = int(re.search(r":(\d+): kernel", str(error))[1])
                    kernel, variant = self.place_of(line)
                    if kernel != n or variant in left_out[n]:
                        raise  # it stands there no more
                    left_out[n].add(variant)
                    self.missing[n, variant] = str(error)
                    is_whole = False
            if is_whole:
                return kernels, left_out

    def run(self, kernel, number):
        """Return the results of a kernel: a row per variant, four places, the lanes."""
        count = len(self.groups[number])
        out = self.device.zeros((count, 4, LANES), np.uint64)
        scratch = self.device.zeros(LANES * 8, np.uint64)
        given = self.device.array(self.inputs[number])
        kernel.launch(1, LANES, given, out, scratch, trace=False)
        result = out.to_host()
        # Addresses are others in each launch.
        for i, table in enumerate((given, out, scratch)):
            size = np.uint64(table.nbytes)
            start = np.uint64(table.address)
            near = (result >= start) & (result < start + size)
            result = np.where(near, result - start + np.uint64((i + 1) << 56), result)
        return result


def same(kind, a, b):
    """Return whether two results of a kind are the same, all NaNs being one."""
    if a == b:
        return True
    if kind.endswith("x2"):
        return all(same(kind[:-2], (a >> s) & 0xFFFF, (b >> s) & 0xFFFF) for s in (0, 16))
    return kind in ("f16", "bf16", "f32", "f64") and is_nan(a, kind) and is_nan(b, kind)


@dataclass
class Outcome:
    """What came of variants: those that differ, those that are refused by name, and how many ran."""

    differing: list
    refused: list
    tried: int


def check_forms(forms, arch, seed, most=None):
    """Run variants of forms, `most` of each."""
    rng = random.Random(seed)
    groups = []
    for form in forms:
        variants = variants_of(form, rng)
        if most is not None and len(variants) > most:
            variants = variants[:1] + rng.sample(variants[1:], most - 1)
        groups.append(variants)
    batch = Batch(groups, arch, seed)
    machine = batch.assemble()
    ptx, left_out = batch.kernels_of_ptx(False)
    with_registers, _ = batch.kernels_of_ptx(True)
    problems, refusals, tried = [], [], 0
    for n, variants in enumerate(groups):
        form = variants[0].form
        found = batch.run(ptx[n], n)
        others = [("constants in registers", batch.run(with_registers[n], n))]
        if form.exact:
            try:
                others.append((f"machine code of {arch}", batch.run(machine.kernel(f"k{n}"), n)))
            except InputError as error:
                refusals.append(f"{form.text}: machine code: {error}")
        for v, variant in enumerate(variants):
            if v in left_out[n]:
                continue
            tried += 1
            for name, other in others:
                wrong = [
                    (i, lane)
                    for i, kind in enumerate(form.results)
                    for lane in range(LANES)
                    if not same(kind, int(found[v, i, lane]), int(other[v, i, lane]))
                ]
                if wrong:
                    i, lane = wrong[0]
                    operands = [hex(int(x)) for x in batch.inputs[n][lane, : len(form.sources)]]
                    problems.append(
                        f"{variant.instruction()}  result {i} of lane {lane}: "
                        f"{int(found[v, i, lane]):#x}, {name} {int(other[v, i, lane]):#x}"
                        f"  (operands {', '.join(operands)}; {len(wrong)} results differ)"
                    )
    for (kernel, variant), why in batch.missing.items():
        refusals.append(f"{groups[kernel][variant].instruction()}: {why}")
    return Outcome(problems, refusals, tried)


def forms_for(arch, opcodes=None):
    """Return the forms that an architecture has, of opcodes that run."""
    capability = int(arch.removeprefix("sm_").rstrip("a"))
    return [
        f
        for f in all_forms()
        if f.target <= capability and (opcodes is None or f.opcode in opcodes)
    ]


def main():
    parser = argparse.ArgumentParser(description="compare operands of PTX with machine code")
    parser.add_argument("--count", type=int, default=100_000, help="forms to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--only", default="", help="forms with this in their text")
    options = parser.parse_args()
    forms = [f for f in forms_for(options.arch) if options.only in f.text]
    began, done, tried, seed, wrong = time.monotonic(), 0, 0, options.seed, 0
    while done < options.count:
        random.Random(seed).shuffle(forms)
        for first in range(0, len(forms), 40):
            batch = forms[first : first + 40][: options.count - done]
            if not batch:
                break
            outcome = check_forms(batch, options.arch, seed)
            done, tried = done + len(batch), tried + outcome.tried
            wrong += len(outcome.differing)
            for line in outcome.differing:
                print(f"seed {seed}: {line}", flush=True)
            for line in outcome.refused:
                print(f"refused: {line}", flush=True)
            print(f"{done} forms, {tried} variants, {time.monotonic() - began:.0f} s", flush=True)
        seed += 1
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
