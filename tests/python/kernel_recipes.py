"""Kernels as recipes, and random ones of them and GPUs, each made from its seed.

A `Recipe` describes a kernel in small values that can be printed, changed and made smaller; `trace`
makes its trace. Every step draws its addresses from the recipe's seed and its own number, and no
address depends on the number of blocks or of other steps: a recipe with more to do does what the
first one does, and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

import warpstack as ws

BASE = 0x7F00_0000_0000
#: Steps of a loop that compute, those that access memory, and the others.
COMPUTING = ("independent", "dependent", "special", "double")
ACCESSING = ("load", "store", "chase", "atomic")
OTHERS = ("shared", "barrier", "divergent")
#: Steps that `random_recipe` does not draw: few words of atomics, asynchronous copies with their wait.
FURTHER = ("counter", "copy", "texture", "hmma", "imma", "shuffle")
#: A step that waits for what a chase or copies still have under way.
WAIT = "wait"
#: Steps that only `share` of the lanes do.
GUARDED = (*ACCESSING, "counter", "copy")
#: Instructions that access global memory.
GLOBAL = ("LDG", "STG", "RED", "LDGSTS")
PATTERNS = ("coalesced", "strided", "random", "tile", "broadcast", "pairs")
#: Lanes that go round the loop four times as often as the others.
UNEVEN = ("", "blocks", "warps", "lanes")
#: Blocks go round the loop one to four times as often, each of this many another number.
RAMP = 8
#: Numbers of steps that a change adds, or more.
ADDED = 100
GPUS = (
    "pascal-mdm",
    "pascal-mdm",
    "gpumech-baseline",
    "gtx1080",
    "titan-v",
    "rtx2060",
    "a100",
    "rtx3070",
    "rtx4090",
    "h100-pcie",
)
#: Warp instructions of a launch, at most about.
SIZE = 6000


@dataclass(frozen=True)
class Step:
    """What a loop does once per iteration: `count` instructions of a kind.

    `key` numbers it, for its data; `stride` is in elements of `width` bytes, `footprint` in bytes.
    `late` values are used at the end of the iteration. `share` is the share of lanes that take the
    first way of a branch, or access memory; `warps` is the share of a block's warps, its first ones,
    that do the step.
    """

    kind: str
    key: int = 0
    count: int = 1
    pattern: str = "coalesced"
    stride: int = 1
    footprint: int = 4096
    width: int = 4
    late: bool = False
    share: float = 1.0
    warps: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """A kernel: `iterations` of `body`, as many of `second` if there are some, then `tail`.

    `uneven` is one of `UNEVEN`, or ``ramp``. With `private` no two blocks access the same data.
    """

    seed: int = 0
    blocks: int = 1
    block: int = 32
    registers: int = 32
    shared: int = 0
    iterations: int = 1
    uneven: str = ""
    body: tuple[Step, ...] = ()
    second: tuple[Step, ...] = ()
    tail: tuple[Step, ...] = ()
    private: bool = False

    def __str__(self) -> str:
        """Return what differs from a recipe without anything."""
        return _differences(self)


def _differences(value: Recipe | Step) -> str:
    said = []
    for one in fields(value):
        given = getattr(value, one.name)
        if given == one.default and one.name != "kind":
            continue
        if isinstance(given, tuple):
            given = "[" + ", ".join(map(_differences, given)) + "]"
        said.append(str(given) if one.name == "kind" else f"{one.name}={given}")
    return " ".join(said)


def random_step(rng: np.random.Generator, key: int) -> Step:
    """Return any step."""
    group = rng.choice(3, p=[0.3, 0.5, 0.2])
    if group == 0:
        kind = str(rng.choice(COMPUTING, p=[0.4, 0.35, 0.15, 0.1]))
        return Step(kind, key, int(rng.integers(1, 20 if kind[-3:] == "ent" else 6)))
    if group == 2:
        kind = str(rng.choice(OTHERS))
        return Step(
            kind,
            key,
            int(rng.integers(1, 8)) if kind == "divergent" else 1,
            stride=int(rng.choice([1, 2, 8, 32])),
            share=float(rng.choice([0.25, 0.5, 0.9])),
        )
    kind = str(rng.choice(ACCESSING, p=[0.6, 0.2, 0.1, 0.1]))
    return Step(
        kind,
        key,
        int(rng.integers(1, 4)) if kind in ("load", "chase") else 1,
        str(rng.choice(PATTERNS, p=[0.35, 0.2, 0.2, 0.1, 0.05, 0.1])),
        int(rng.choice([2, 4, 8, 16, 32])),
        int(2 ** rng.uniform(10, 26)),
        int(rng.choice([4, 4, 8, 16])),
        bool(rng.random() < 0.4),
        float(rng.choice([1, 1, 1, 0.5])),
    )


def instructions(recipe: Recipe) -> int:
    """Return about how many warp instructions the launch has."""
    steps = sum(2 * one.count + 1 for one in (*recipe.body, *recipe.second))
    return recipe.blocks * -(-recipe.block // 32) * recipe.iterations * (steps + 2)


def random_recipe(rng: np.random.Generator, size: int = SIZE) -> Recipe:
    """Return any recipe of about so many warp instructions at most."""
    block = int(rng.choice([32, 64, 128, 256, 512, 1024, 48]))
    registers = int(rng.choice([16, 32, 64, 128]))
    steps = [random_step(rng, key) for key in range(int(rng.integers(1, 7)))]
    if not any(one.kind in ACCESSING for one in steps) and rng.random() < 0.8:
        steps.append(replace(random_step(rng, len(steps)), kind="load", footprint=1 << 22))
    split = int(rng.integers(1, len(steps) + 1)) if rng.random() < 0.25 else len(steps)
    recipe = Recipe(
        seed=int(rng.integers(2**31)),
        blocks=int(2 ** rng.uniform(0, 9)),
        block=block,
        registers=registers if block * registers <= 65536 else 32,
        shared=int(rng.choice([0, 0, 4096, 16384, 32768])),
        iterations=int(2 ** rng.uniform(0, 5)),
        uneven=str(rng.choice(UNEVEN, p=[0.7, 0.1, 0.1, 0.1])),
        body=tuple(steps[:split]),
        second=tuple(steps[split:]),
    )
    while instructions(recipe) > size and recipe.iterations > 1:
        recipe = replace(recipe, iterations=recipe.iterations // 2)
    while instructions(recipe) > size and recipe.blocks > 1:
        recipe = replace(recipe, blocks=recipe.blocks // 2)
    return recipe


def random_gpu(rng: np.random.Generator) -> ws.Gpu:
    """Return a GPU of the package, often with some fields changed."""
    gpu = ws.gpu(str(rng.choice(GPUS)))
    if rng.random() < 0.4:
        return gpu

    def times(name: str, least: float, most: float) -> float:
        return float(getattr(gpu, name)) * 2 ** rng.uniform(least, most)

    changes = {
        "num_sms": max(1, int(times("num_sms", -3, 0.5))),
        "l1_mshrs": int(2 ** rng.integers(3, 10)),
        "noc_bandwidth_gbs": round(times("noc_bandwidth_gbs", -2, 1.5), 1),
        "dram_bandwidth_gbs": round(times("dram_bandwidth_gbs", -2, 1.5), 1),
        "dram_latency": int(max(1, times("dram_latency", -1, 1))),
        "l2_latency": int(max(gpu.l1_latency, times("l2_latency", -1, 1))),
    }
    kept = {name: value for name, value in changes.items() if rng.random() < 0.35}
    return gpu.replace(**kept)


class _Writer:
    """Issues the steps of a recipe into a `KernelBuilder`."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.kernel = ws.patterns.KernelBuilder(
            "random",
            grid=recipe.blocks,
            block=recipe.block,
            registers_per_thread=recipe.registers,
            shared_memory_bytes=recipe.shared,
        )
        self.thread = self.kernel.thread

    def declare(
        self, step: Step
    ) -> tuple[list[ws.patterns.Instruction], list[ws.patterns.Instruction]]:
        """Return the static instructions of a step, and those at the end of an iteration."""
        new, wide = self.kernel.instruction, {4: "", 8: ".64", 16: ".128"}[step.width]
        data = 40 + 12 * (step.key % 8)
        now, late = [], []
        for i in range(step.count):
            if step.kind == "independent":
                now.append(new("FFMA", dst=20 + i % 8, src=(30, 31)))
            elif step.kind == "dependent":
                now.append(new("FFMA", dst=10, src=(10, 11)))
            elif step.kind == "special":
                now.append(new("MUFU.RCP", dst=12, src=12))
            elif step.kind == "double":
                now.append(new("DFMA", dst=16, src=(16, 18)))
            elif step.kind == "load":
                now.append(new(f"LDG.E{wide}", dst=data + 4 * i, src=4))
                (late if step.late else now).append(new("FADD", dst=10, src=(10, data + 4 * i)))
            elif step.kind == "chase":
                now.append(new("LDG.E.64", dst=8, src=8))
            elif step.kind == "store":
                now.append(new(f"STG.E{wide}", src=(6, 10)))
            elif step.kind in ("atomic", "counter"):
                now.append(new("RED.E.ADD.STRONG.GPU", src=(6, 10)))
            elif step.kind == "copy":
                now.append(new(f"LDGSTS.E{wide}", src=(15, 4)))
            elif step.kind == "texture":
                now.append(new("TEX.SCR.LL", dst=data + 4 * i, src=4))
                (late if step.late else now).append(new("FADD", dst=10, src=(10, data + 4 * i)))
            elif step.kind == "hmma":
                sums = 64 + 4 * (i % 4)
                now.append(new("HMMA.16816.F32", dst=sums, src=(32, 36, sums)))
            elif step.kind == "imma":
                sums = 64 + 4 * (i % 4)
                now.append(new("IMMA.16832.S8.S8", dst=sums, src=(32, 36, sums)))
            elif step.kind == WAIT:
                now += [new("IADD3", dst=8, src=8), new("cp.async.wait_group.0")]
            elif step.kind == "shuffle":
                now += [new("SHFL.DOWN", dst=14, src=10), new("FADD", dst=10, src=(10, 14))]
            elif step.kind == "shared":
                now += [new("LDS", dst=14, src=15), new("FADD", dst=10, src=(10, 14))]
            elif step.kind == "barrier":
                now.append(new("BAR.SYNC.DEFER_BLOCKING"))
            elif step.kind == "divergent":
                now.append(new("FFMA", dst=10, src=(10, 11)))
                late.append(new("FMUL", dst=10, src=(10, 11)))
        if step.kind == "copy":
            # A late wait is for the copies of the iteration before: one group stays under way.
            now.append(new("cp.async.commit_group"))
            (late if step.late else now).append(new(f"cp.async.wait_group.{int(step.late)}"))
            (late if step.late else now).append(new("LDS", dst=14, src=15))
            (late if step.late else now).append(new("FADD", dst=10, src=(10, 14)))
        return now, late

    def addresses(self, step: Step, turn: int, i: int) -> np.ndarray:
        """Return the address of each thread for access `i` of a step in an iteration."""
        size = {"chase": 8, "atomic": 4, "counter": 4}.get(step.kind, step.width)
        thread = self.thread
        turn = turn * step.count + i
        elements = max(step.footprint // size, 1 if step.kind == "counter" else 64)
        # No address depends on the number of blocks.
        on = turn * 1_000_003 // 32 * 32
        if step.pattern == "strided":
            at = (thread + on) % elements * step.stride
        elif step.pattern == "random":
            of_block = [
                np.random.default_rng([self.recipe.seed, step.key, turn, b]).integers(
                    elements, size=self.recipe.block
                )
                for b in range(self.recipe.blocks)
            ]
            at = np.stack(of_block)
        elif step.pattern == "tile":
            at = self.kernel.thread_in_block + turn % 4 * self.recipe.block + 0 * thread
        elif step.pattern == "broadcast":
            at = turn + 0 * thread
        elif step.pattern == "pairs":
            at = (thread // 2 * 2 + on) % elements + thread % 2 * elements
        else:
            at = (thread + on) % elements
        if self.recipe.private:
            # Footprints have 64 MiB at most, but for strides.
            own = np.arange(self.recipe.blocks)[:, None] << 30
            return BASE + (step.key << 40) + own + size * at
        return BASE + (step.key << 34) + size * at

    def in_shared(self, step: Step) -> np.ndarray:
        """Return the offset of each thread in the shared memory of its block."""
        at = self.kernel.thread_in_block * step.stride * 4 % max(self.recipe.shared, 128)
        return at + 0 * self.thread

    def of_warps(self, step: Step, where: np.ndarray | None) -> np.ndarray | None:
        """Return which of the threads do a step; None for all."""
        if step.warps >= 1:
            return where
        warps = -(-self.recipe.block // 32)
        does = self.kernel.thread_in_block // 32 < max(1, round(step.warps * warps))
        does = np.broadcast_to(does, self.thread.shape)
        return does if where is None else where & does

    def issue(self, step: Step, made: tuple, turn: int, where: np.ndarray | None) -> None:
        """Issue a step without what comes at the end of the iteration."""
        now, late = made
        if step.kind == "barrier" and where is not None:
            return
        where = self.of_warps(step, where)
        lanes = self.thread % 32 < 32 * step.share
        if step.kind == "divergent":
            first, second = (lanes, ~lanes) if where is None else (where & lanes, where & ~lanes)
            for one, way in [(n, first) for n in now] + [(n, second) for n in late]:
                if way.any():
                    self.kernel.issue(one, where=way)
            return
        access = 0
        for one in now:
            address = None
            if one.opcode.split(".")[0] in GLOBAL:
                address = self.addresses(step, turn, access)
                access += 1
            elif one.opcode == "LDS":
                address = self.in_shared(step)
            guarded = address is not None and step.kind in GUARDED and step.share < 1
            self.kernel.issue(
                one, address=address, where=where, predicate=lanes if guarded else None
            )

    def loop(self, steps: tuple[Step, ...]) -> None:
        """Issue the iterations of a loop."""
        step_on = self.kernel.instruction("IADD3", dst=4, src=(4, 5))
        made = [self.declare(one) for one in steps]
        branch = self.kernel.instruction("BRA")
        recipe = self.recipe
        rng = np.random.default_rng([recipe.seed, 1])
        warps = -(-recipe.block // 32)
        of_warp = self.kernel.thread_in_block // 32
        # Blocks drawn one by one, so that another block more changes nothing.
        longer = {
            "blocks": np.array([[rng.random() < 0.1] for _ in range(recipe.blocks)]),
            "warps": (of_warp == warps - 1),
            "lanes": (self.kernel.thread_in_block % 32 < 5),
        }.get(recipe.uneven)
        ramp = np.arange(recipe.blocks)[:, None] % RAMP
        last = recipe.iterations * (1 + 3 * ramp / (RAMP - 1))
        for turn in range(recipe.iterations * (4 if recipe.uneven else 1)):
            where = None
            if turn >= recipe.iterations and longer is not None:
                where = np.broadcast_to(longer, self.thread.shape)
            elif turn >= recipe.iterations:
                where = np.broadcast_to(turn < last, self.thread.shape)
            if where is not None and not where.any():
                break
            self.kernel.issue(step_on, where=where)
            for one, each in zip(steps, made, strict=True):
                self.issue(one, each, turn, where)
            for one, each in zip(steps, made, strict=True):
                if one.kind != "divergent":
                    for late in each[1]:
                        address = self.in_shared(one) if late.opcode == "LDS" else None
                        self.kernel.issue(late, address=address, where=self.of_warps(one, where))
            self.kernel.issue(branch, where=where)


def trace(recipe: Recipe) -> ws.KernelTrace:
    """Return the trace of a recipe."""
    writer = _Writer(recipe)
    writer.kernel.emit("S2R", dst=0)
    writer.kernel.emit("IMAD.WIDE", dst=4, src=(0, 1))
    writer.loop(recipe.body)
    if recipe.second:
        writer.loop(recipe.second)
    for one in recipe.tail:
        writer.issue(one, writer.declare(one), 0, None)
    writer.kernel.emit("EXIT")
    return writer.kernel.build()


def smaller(recipe: Recipe) -> Iterator[Callable[[Recipe], Recipe]]:
    """Yield what makes a recipe smaller, large steps first; steps that a change added stay."""
    for place in ("body", "second"):
        for i in range(len(getattr(recipe, place))):
            key = getattr(recipe, place)[i].key
            if key < ADDED:
                yield lambda r, p=place, k=key: replace(
                    r, **{p: tuple(one for one in getattr(r, p) if one.key != k)}
                )
    for name, least in (("iterations", 1), ("blocks", 1), ("block", 32)):
        value = getattr(recipe, name)
        for other in (least, value // 2, value * 3 // 4, value - 1):
            if least <= other < value:
                yield lambda r, n=name, v=value, o=other: replace(
                    r, **{n: max(1, getattr(r, n) * o // v)}
                )
    for name in ("uneven", "shared", "registers"):
        default = next(f.default for f in fields(Recipe) if f.name == name)
        if getattr(recipe, name) != default:
            yield lambda r, n=name, d=default: replace(r, **{n: d})
    for place in ("body", "second"):
        for i, one in enumerate(getattr(recipe, place)):
            for plain in (
                replace(one, count=1),
                replace(one, late=False),
                replace(one, share=1.0),
                replace(one, width=4),
                replace(one, pattern="coalesced"),
            ):
                if plain != one and one.key < ADDED:
                    yield lambda r, p=place, i=i, new=plain: replace(
                        r, **{p: (*getattr(r, p)[:i], new, *getattr(r, p)[i + 1 :])}
                    )
