"""The forms of PTX instructions by opcode, with the kinds of their operands.

A form is text in which {d0}, {d1} stand for registers that it sets and {s0}, {s1}, … for operands
that it reads. A kind is a type, or a type within limits: beyond them the ISA leaves the result open.
`%base` is the address of 64 bytes of the thread's own in global memory, `%sbase` the same in shared
memory (32 bits wide).
"""

from dataclasses import dataclass

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
BITS = ("b16", "b32", "b64")
FLOATS = ("f32", "f64")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
JOINS = ("and", "or", "xor")
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}

#: Opcodes that this table leaves to other tests, and why.
ELSEWHERE = dict.fromkeys(("bra", "brx", "call", "exit", "ret", "trap", "brkpt"), "control flow")
ELSEWHERE |= dict.fromkeys(("fence", "membar", "griddepcontrol", "activemask"), "no source operand")
ELSEWHERE |= dict.fromkeys(
    ("applypriority", "createpolicy", "discard", "pmevent", "prefetch", "prefetchu", "setmaxnreg"),
    "no result that a program sees",
)
ELSEWHERE |= dict.fromkeys(("alloca", "stackrestore", "stacksave"), "test_ptx_functions.py")
ELSEWHERE |= dict.fromkeys(("suld", "sust", "tex", "txq"), "objects: test_ptx_textures.py")
ELSEWHERE["tld4"] = "objects: test_texture_gathers.py"
ELSEWHERE |= dict.fromkeys(
    ("wmma", "wgmma", "stmatrix"), "layout of fragments: test_ptx_matrix.py, test_ptx_warpgroup.py"
)
ELSEWHERE |= dict.fromkeys(
    ("cp", "mbarrier", "tensormap", "nanosleep"), "asynchronous: test_ptx_async_barriers.py"
)
ELSEWHERE["clusterlaunchcontrol"] = "test_ptx_clusters.py"
ELSEWHERE["tcgen05"] = "tensor memory: test_ptx_tensor_memory.py"
ELSEWHERE |= dict.fromkeys(("mapa", "getctarank"), "clusters: test_ptx_clusters.py")


@dataclass(frozen=True)
class OperandForm:
    """An instruction, or a few that belong together."""

    text: str
    results: tuple
    sources: tuple
    exact: bool = True  # machine code gives the same bits
    target: int = 80  # least compute capability

    @property
    def opcode(self):
        return self.text.split(".")[0].split()[0]


def form(head, results, sources, **options):
    """Return a form whose operands are written one after the other: results, then sources."""
    results, sources = tuple(results.split()), tuple(sources.split())
    places = [f"{{d{i}}}" for i in range(len(results))] + [f"{{s{i}}}" for i in range(len(sources))]
    return OperandForm(f"{head} {', '.join(places)};", results, sources, **options)


def paired(head, results, sources, **options):
    """Return a form with two results that are written `d|p`."""
    plain = form(head, results, sources, **options)
    return OperandForm(
        plain.text.replace("{d0}, {d1}", "{d0}|{d1}"), plain.results, plain.sources, **options
    )


def arithmetic():
    for t in INTEGERS:
        yield from (form(f"{op}.{t}", t, f"{t} {t}") for op in ("add", "sub", "min", "max"))
        yield from (form(f"{op}.{t}", t, f"{t} {t}") for op in ("mul.lo", "mul.hi"))
        yield from (form(f"{op}.{t}", t, f"{t} {t} {t}") for op in ("mad.lo", "mad.hi", "sad"))
        yield from (form(f"{op}.{t}", t, f"{t} divisor{t[1:]}") for op in ("div", "rem"))
        if t[0] == "s":
            yield from (form(f"{op}.{t}", t, t) for op in ("abs", "neg"))
    for t, wide in WIDE.items():
        yield form(f"mul.wide.{t}", wide, f"{t} {t}")
        yield form(f"mad.wide.{t}", wide, f"{t} {t} {wide}")
    yield from (form(f"{op}.sat.s32", "s32", "s32 s32") for op in ("add", "sub"))
    yield form("mad.hi.sat.s32", "s32", "s32 s32 s32")
    for t in ("u32", "s32"):
        for part in ("lo", "hi"):
            yield form(f"mul24.{part}.{t}", t, f"{t} {t}")
            yield form(f"mad24.{part}.{t}", t, f"{t} {t} {t}")
        for other in ("u32", "s32"):
            result = "u32" if t == other == "u32" else "s32"
            yield form(f"dp4a.{t}.{other}", result, f"b32 b32 {result}")
            yield from (
                form(f"dp2a.{part}.{t}.{other}", result, f"b32 b32 {result}")
                for part in ("lo", "hi")
            )
    for t in ("u32", "s32", "u64", "s64"):
        for first, second in (("add", "addc"), ("sub", "subc")):
            yield OperandForm(
                f"{first}.cc.{t} {{d0}}, {{s0}}, {{s1}}; {second}.{t} {{d1}}, {{s2}}, {{s3}};",
                (t, t),
                (t,) * 4,
            )
            yield OperandForm(
                f"{first}.cc.{t} {{d0}}, {{s0}}, {{s1}}; {second}.cc.{t} {{d1}}, {{s2}}, {{s3}};"
                f" addc.{t} {{d2}}, {{s0}}, 0;",
                (t, t, t),
                (t,) * 4,
            )
        yield OperandForm(
            f"mad.lo.cc.{t} {{d0}}, {{s0}}, {{s1}}, {{s2}};"
            f" madc.hi.{t} {{d1}}, {{s0}}, {{s1}}, {{s3}};",
            (t, t),
            (t,) * 4,
        )


def floats():
    for t in FLOATS:
        for op in ("add", "sub", "mul"):
            yield from (form(f"{op}.{r}.{t}", t, f"{t} {t}") for r in ("rn", "rz", "rm", "rp"))
        yield from (form(f"fma.{r}.{t}", t, f"{t} {t} {t}") for r in ("rn", "rz", "rm", "rp"))
        yield form(f"mad.rn.{t}", t, f"{t} {t} {t}")
        yield from (form(f"{op}.{t}", t, f"{t} {t}") for op in ("min", "max", "copysign"))
        yield from (form(f"{op}.{t}", t, t) for op in ("abs", "neg"))
        yield form(f"div.rn.{t}", t, f"{t} {t}")
        yield from (form(f"{op}.rn.{t}", t, t) for op in ("rcp", "sqrt"))
        yield from (
            form(f"testp.{what}.{t}", "pred", t)
            for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
        )
    for op in ("add", "sub", "mul"):
        yield from (
            form(f"{op}{mod}.f32", "f32", "f32 f32") for mod in (".ftz", ".sat", ".ftz.sat")
        )
    yield form("fma.rn.ftz.sat.f32", "f32", "f32 f32 f32")
    yield from (form(f"{op}.NaN.f32", "f32", "f32 f32") for op in ("min", "max"))
    yield from (form(f"{op}.xorsign.abs.f32", "f32", "f32 f32", target=86) for op in ("min", "max"))
    yield from (form(f"{op}.approx.f32", "f32", "f32", exact=False) for op in ("sin", "cos"))
    yield from (form(f"{op}.approx.f32", "f32", "f32", exact=False) for op in ("ex2", "lg2"))
    yield from (form(f"{op}.approx.f32", "f32", "f32", exact=False) for op in ("rcp", "rsqrt"))
    yield form("sqrt.approx.f32", "f32", "f32", exact=False)
    yield form("tanh.approx.f32", "f32", "f32", exact=False)
    yield form("div.approx.f32", "f32", "f32 f32", exact=False)
    for t in HALVES:
        target = 90 if t[0] == "b" else 80
        for op in ("add", "sub", "mul"):
            yield form(f"{op}.{t}", t, f"{t} {t}", target=target)
        yield form(f"fma.rn.{t}", t, f"{t} {t} {t}")
        yield form(f"fma.rn.relu.{t}", t, f"{t} {t} {t}")
        yield from (form(f"{op}.{t}", t, f"{t} {t}") for op in ("min", "max", "min.NaN"))
        yield from (form(f"{op}.{t}", t, t) for op in ("abs", "neg"))
    yield from (form(f"{op}.approx.f16", "f16", "f16", exact=False) for op in ("ex2", "tanh"))


def logic():
    for t in BITS:
        yield from (form(f"{op}.{t}", t, f"{t} {t}") for op in JOINS)
        yield from (form(f"{op}.{t}", t, t) for op in ("not", "cnot"))
        yield form(f"shl.{t}", t, f"{t} shift")
        yield form(f"selp.{t}", t, f"{t} {t} pred")
    yield from (form(f"{op}.pred", "pred", "pred pred") for op in JOINS)
    yield from (form(f"{op}.pred", "pred", "pred") for op in ("not", "mov"))
    for t in (*INTEGERS, *FLOATS):
        if t not in FLOATS:
            yield form(f"shr.{t}", t, f"{t} shift")
        yield form(f"selp.{t}", t, f"{t} {t} pred")
        yield form(f"slct.{t}.s32", t, f"{t} {t} sign")
        yield form(f"slct.{t}.f32", t, f"{t} {t} f32")
    for t in ("b32", "b64"):
        yield from (form(f"{op}.{t}", "u32", t) for op in ("popc", "clz"))
        yield form(f"brev.{t}", t, t)
        yield form(f"bfi.{t}", t, f"{t} {t} field{t[1:]} field{t[1:]}")
    for t in ("u32", "s32", "u64", "s64"):
        position = "position32" if t == "s32" else f"field{t[1:]}"
        yield form(f"bfe.{t}", t, f"{t} {position} field{t[1:]}")
        yield from (form(f"bfind{mod}.{t}", "u32", t) for mod in ("", ".shiftamt"))
    for mode in ("clamp", "wrap"):
        yield form(f"bmsk.{mode}.b32", "b32", "u32 u32")
        yield from (form(f"szext.{mode}.{t}", t, f"{t} u32") for t in ("u32", "s32"))
        yield from (form(f"shf.{way}.{mode}.b32", "b32", "b32 b32 u32") for way in "lr")
    yield form("fns.b32", "b32", "b32 lane nth")
    yield from (
        form(f"prmt.b32{m}", "b32", "b32 b32 b32") for m in ("", ".f4e", ".b4e", ".rc8", ".ecl")
    )
    for table in (0x96, 0xE8, 0x01, 0xFE, 0x1B):
        yield OperandForm(
            f"lop3.b32 {{d0}}, {{s0}}, {{s1}}, {{s2}}, {table};", ("b32",), ("b32",) * 3
        )
        yield from (
            OperandForm(
                f"lop3.{join}.b32 {{d0}}|{{d1}}, {{s0}}, {{s1}}, {{s2}}, {table}, {{s3}};",
                ("b32", "pred"),
                ("b32", "b32", "b32", "pred"),
            )
            for join in ("or", "and")
        )


def comparisons():
    for t in (*INTEGERS, *FLOATS, *HALVES):
        is_pair = t.endswith("x2")
        target = 90 if t[0] == "b" and t not in BITS else 80
        orders = COMPARISONS + (() if t in INTEGERS else ("ltu", "num", "nan"))
        for order in orders:
            if not is_pair:
                yield form(f"setp.{order}.{t}", "pred", f"{t} {t}", target=target)
            yield paired(f"setp.{order}.{t}", "pred pred", f"{t} {t}", target=target)
            yield from (
                paired(f"setp.{order}.{join}.{t}", "pred pred", f"{t} {t} pred", target=target)
                for join in JOINS
            )
        for join in JOINS:
            if not is_pair:
                yield form(f"setp.lt.{join}.{t}", "pred", f"{t} {t} pred", target=target)
        if t in (*INTEGERS, *FLOATS):
            for result in ("u32", "f32"):
                yield form(f"set.ge.{result}.{t}", result, f"{t} {t}")
                yield from (
                    form(f"set.ge.{join}.{result}.{t}", result, f"{t} {t} pred") for join in JOINS
                )
    yield form("setp.eq.b64", "pred", "b64 b64")
    for t in ("f16x2", "bf16x2"):
        target = 90 if t[0] == "b" else 80
        yield form(f"set.lt.{t}.{t}", t, f"{t} {t}", target=target)
        yield form(f"set.lt.xor.{t}.{t}", t, f"{t} {t} pred", target=target)


def movement():
    for t in (*BITS, *INTEGERS, *FLOATS):
        yield form(f"mov.{t}", t, t)
    for parts, half, whole in ((2, "b16", "b32"), (2, "b32", "b64"), (4, "b16", "b64")):
        sources = ", ".join(f"{{s{i}}}" for i in range(parts))
        targets = ", ".join(f"{{d{i}}}" for i in range(parts))
        yield OperandForm(f"mov.{whole} {{d0}}, {{{{{sources}}}}};", (whole,), (half,) * parts)
        yield OperandForm(f"mov.{whole} {{{{{targets}}}}}, {{s0}};", (half,) * parts, (whole,))
        yield OperandForm(f"mov.{whole} {{d0}}, {{s0}};", (whole,), (f"v{parts}{half}",))
        yield OperandForm(f"mov.{whole} {{d0}}, {{s0}};", (f"v{parts}{half}",), (whole,))
    for to in INTEGERS:
        yield from (form(f"cvt.{to}.{t}", to, t) for t in INTEGERS if to != t)
        yield from (form(f"cvt.sat.{to}.{t}", to, t) for t in INTEGERS)
        yield from (
            form(f"cvt.{r}.{to}.{t}", to, t) for t in FLOATS for r in ("rni", "rzi", "rmi", "rpi")
        )
        source = "number64" if to[1:] == "64" else to
        yield from (form(f"cvt.{r}.{t}.{to}", t, source) for t in FLOATS for r in ("rn", "rz"))
        yield from (form(f"cvt.{to}.{t}8", to, f"{t}16") for t in "us")
    yield form("cvt.f64.f32", "f64", "f32")
    yield form("cvt.rn.f32.f64", "f32", "f64")
    yield from (form(f"cvt.rn.{t}.f32", t, "f32") for t in ("f16", "bf16"))
    yield from (form(f"cvt.f32.{t}", "f32", t) for t in ("f16", "bf16"))
    yield from (form(f"cvt.rn.{t}x2.f32", f"{t}x2", "f32 f32") for t in ("f16", "bf16"))
    for space in ("global", "shared", "local"):
        yield form(f"cvta.{space}.u64", "u64", "offset")
    yield from (form(f"isspacep.{s}", "pred", "u64") for s in ("global", "shared", "local"))


def memory():
    for t in (*BITS, *INTEGERS, *FLOATS):
        for space, base in (("global", "%base"), ("shared", "%sbase")):
            yield OperandForm(
                f"st.{space}.{t} [{base}+8], {{s0}}; ld.{space}.{t} {{d0}}, [{base}+8];", (t,), (t,)
            )
    for t in ("b8", "u8", "s8"):
        yield OperandForm(
            f"st.global.{t} [%base], {{s0}}; ld.global.{t} {{d0}}, [%base];", ("b32",), ("b32",)
        )
    for t in ("b32", "f32", "b64", "u16"):
        yield OperandForm(
            f"st.global.v2.{t} [%base], {{{{{{s0}}, {{s1}}}}}};"
            f" ld.global.v2.{t} {{{{{{d0}}, {{d1}}}}}}, [%base];",
            (t, t),
            (t, t),
        )
        if t != "b64":
            yield OperandForm(
                f"st.shared.v2.{t} [%sbase], {{s0}}; ld.shared.v2.{t} {{d0}}, [%sbase];",
                (f"v2{t}",),
                (f"v2{t}",),
            )
    yield OperandForm("ldu.global.u32 {d0}, [{s0}+4];", ("u32",), ("address",))
    yield OperandForm("ld.global.v2.u64 {{{d0}, {d1}}}, [{s0}];", ("u64", "u64"), ("address",))
    yield OperandForm("ld.shared.v2.u32 {{{d0}, {d1}}}, [{s0}];", ("u32", "u32"), ("shared",))
    yield OperandForm(
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{{d0}, {d1}}}, [{s0}];",
        ("b32", "b32"),
        ("shared",),
    )
    operations = {
        "add": ("u32", "s32", "u64", "f32", "f64"),
        "min": ("u32", "s32", "u64", "s64"),
        "max": ("u32", "s32", "u64", "s64"),
        **dict.fromkeys(("inc", "dec"), ("u32",)),
        **dict.fromkeys((*JOINS, "exch"), ("b32", "b64")),
    }
    for space, base in (("global", "%base"), ("shared", "%sbase")):
        for op, kinds in operations.items():
            for t in kinds:
                rest = f"[{base}], {{s1}}; ld.{space}.{t} {{{{d}}}}, [{base}];"
                begin = f"st.{space}.{t} [{base}], {{s0}};"
                yield OperandForm(
                    f"{begin} atom.{space}.{op}.{t} {{d0}}, {rest.replace('{{d}}', '{d1}')}",
                    (t, t),
                    (t, t),
                )
                if op != "exch":
                    yield OperandForm(
                        f"{begin} red.{space}.{op}.{t} {rest.replace('{{d}}', '{d0}')}",
                        (t,),
                        (t, t),
                    )
        for t in ("b32", "b64"):
            yield OperandForm(
                f"st.{space}.{t} [{base}], {{s0}}; atom.{space}.cas.{t} {{d0}}, [{base}], {{s1}},"
                f" {{s2}}; ld.{space}.{t} {{d1}}, [{base}];",
                (t, t),
                (t, t, t),
            )


def warp_wide():
    yield from (form(f"vote.sync.{m}.pred", "pred", "pred members") for m in ("all", "any", "uni"))
    yield form("vote.sync.ballot.b32", "b32", "pred members")
    for mode in ("up", "down", "bfly", "idx"):
        yield form(f"shfl.sync.{mode}.b32", "b32", "b32 lane clamp members")
        yield paired(f"shfl.sync.{mode}.b32", "b32 pred", "b32 lane clamp members")
    for t in ("b32", "b64"):
        yield form(f"match.any.sync.{t}", "b32", f"{t} members")
        yield paired(f"match.all.sync.{t}", "b32 pred", f"{t} members")
    for op in ("add", "min", "max"):
        yield from (form(f"redux.sync.{op}.{t}", t, f"{t} members") for t in ("u32", "s32"))
    yield from (form(f"redux.sync.{op}.b32", "b32", "b32 members") for op in JOINS)
    yield paired("elect.sync", "b32 pred", "members", target=90)
    for bar in ("bar", "barrier", "barrier.cta", "barrier.aligned"):
        head = bar.replace("barrier.aligned", "barrier")
        aligned = ".aligned" if bar.endswith("aligned") else ""
        for op, t in (("popc", "u32"), ("and", "pred"), ("or", "pred")):
            yield form(f"{head}.red.{op}{aligned}.{t}", t, "barrier pred")
            yield form(f"{head}.red.{op}{aligned}.{t}", t, "barrier threads pred")
    yield OperandForm(
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
        " {{{d0}, {d1}}}, {{{s0}}}, {{{s1}}}, {{{s2}, {s3}}};",
        ("f64", "f64"),
        ("small64",) * 4,
    )
    yield OperandForm(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{{d0}, {d1}, {d2}, {d3}}},"
        " {{{s0}, {s1}}}, {{{s2}}}, {{{s3}, {s4}, {s5}, {s6}}};",
        ("f32",) * 4,
        (*("small16x2",) * 3, *("small32",) * 4),
    )
    yield form("movmatrix.sync.aligned.m8n8.trans.b16", "b32", "b32")


def video():
    for count in (2, 4):
        for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
            for t in ("u32", "s32"):
                yield form(f"{op}{count}.{t}.{t}.{t}", t, f"{t} {t} {t}")
            yield form(f"{op}{count}.s32.s32.s32.add", "s32", "s32 s32 s32")
        yield form(f"vset{count}.u32.u32.lt", "u32", "u32 u32 u32")
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        yield form(f"{op}.s32.u32.s32", "s32", "u32 s32")
        yield form(f"{op}.s32.s32.s32.sat.add", "s32", "s32 s32 s32")
    for op in ("vshl", "vshr"):
        yield form(f"{op}.u32.u32.u32.clamp", "u32", "u32 u32")
        yield form(f"{op}.u32.u32.u32.wrap.add", "u32", "u32 u32 u32")
    yield form("vmad.s32.s32.s32", "s32", "s32 s32 s32")
    yield form("vset.u32.u32.lt", "u32", "u32 u32")


def all_forms():
    """Return every form, in an order that does not change."""
    groups = (arithmetic, floats, logic, comparisons, movement, memory, warp_wide, video)
    return [f for group in groups for f in group()]
