"""Random cases of kernels and GPUs, each made from its seed and its number alone.

A `Case` is an application of a few launches, each a recipe of `kernel_recipes.py`, and a GPU with
changes. `snippet` prints it as Python, `simpler` yields what makes it smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import warpstack as ws
from kernel_recipes import (
    PATTERNS,
    Recipe,
    Step,
    instructions,
    random_recipe,
    random_step,
    smaller,
    trace,
)

#: The GPU that others are changed to where that keeps an error.
PLAIN = "pascal-mdm"
#: Kinds of steps, and how often each is drawn beside those of `random_step`.
NEW = {
    "counter": 0.12,
    "chase": 0.12,
    "texture": 0.12,
    "copy": 0.2,
    "hmma": 0.13,
    "imma": 0.07,
    "shuffle": 0.09,
    "shared": 0.15,
}
#: Powers of two between which the most warp instructions of a case are drawn, about.
SIZES = (12.0, 17.0)
#: Fields of a GPU that are multiplied, and between which powers of two.
SCALED = {
    "num_sms": (-3.0, 0.5),
    "noc_bandwidth_gbs": (-2.0, 1.5),
    "dram_bandwidth_gbs": (-2.0, 1.5),
    "dram_latency": (-1.0, 1.0),
    "l2_latency": (-1.0, 1.0),
}


@dataclass(frozen=True)
class Case:
    """Launches that share L2, and a GPU of the package with changed fields."""

    launches: tuple[Recipe, ...]
    gpu: str = PLAIN
    changes: tuple[tuple[str, Any], ...] = ()

    def app(self) -> ws.App:
        """Return the application."""
        return ws.App([trace(one) for one in self.launches], "random")

    def on(self) -> ws.Gpu:
        """Return the GPU."""
        gpu = ws.gpu(self.gpu)
        return gpu.replace(**dict(self.changes)) if self.changes else gpu


def random_case(seed: int, number: int) -> Case:
    """Return the case of a seed and a number."""
    rng = np.random.default_rng([seed, number])
    size = int(2 ** rng.uniform(*SIZES))
    gpu = ws.gpu(PLAIN if rng.random() < 0.15 else str(rng.choice(ws.gpus())))
    changes = _random_changes(rng, gpu)
    count = int(rng.choice([1, 2, 3], p=[0.8, 0.14, 0.06]))
    # Half of the cases are of the kinds of `random_recipe`, half of more kinds.
    first = (_mixed_recipe if rng.random() < 0.5 else random_recipe)(rng, size // count)
    launches = [first]
    for _ in range(count - 1):
        # The same kernel again, or another one that reads the same arrays.
        again = first if rng.random() < 0.5 else _mixed_recipe(rng, size // count)
        launches.append(replace(again, seed=first.seed))
    return Case(tuple(_fitting(one, gpu) for one in launches), gpu.name, changes)


def _random_changes(rng: np.random.Generator, gpu: ws.Gpu) -> tuple[tuple[str, Any], ...]:
    """Return changed fields, none for two fifths of the GPUs."""
    changes: dict[str, Any] = {}
    if rng.random() < 0.4:
        return ()
    for name, (least, most) in SCALED.items():
        value = getattr(gpu, name) * 2 ** rng.uniform(least, most)
        if rng.random() < 0.35:
            changes[name] = round(value, 1) if name.endswith("_gbs") else max(1, int(value))
    if rng.random() < 0.35:
        changes["l1_mshrs"] = int(2 ** rng.integers(3, 10))
    if rng.random() < 0.2:
        changes["scheduler"] = "lrr" if gpu.scheduler == "gto" else "gto"
    if "l2_latency" in changes:
        changes["l2_latency"] = max(changes["l2_latency"], int(gpu.l1_latency))
    try:
        gpu.replace(**changes)
    except ws.InputError:
        return ()
    return tuple(changes.items())


def _fitting(recipe: Recipe, gpu: ws.Gpu) -> Recipe:
    """Return a recipe whose blocks fit on an SM of the GPU."""
    block = min(recipe.block, gpu.threads_per_sm, 1024)
    registers = recipe.registers
    while block * registers > gpu.registers_per_sm and registers > 16:
        registers //= 2
    shared = min(recipe.shared, int(gpu.shared_memory_kib_per_sm * 1024) // 2)
    return replace(recipe, block=block, registers=registers, shared=shared)


def _mixed_step(rng: np.random.Generator, key: int, memory: bool | None = None) -> Step:
    """Return a step of any kind; of memory or not where that is asked for."""
    if memory is False:
        kind = str(rng.choice(["independent", "dependent", "special", "hmma", "imma", "shared"]))
        return Step(kind, key, int(rng.integers(1, 16)), stride=int(rng.choice([1, 2, 8, 32])))
    step = replace(
        random_step(rng, key),
        width=int(rng.choice([4, 4, 8, 16])),
        pattern=str(rng.choice(PATTERNS, p=[0.35, 0.2, 0.2, 0.1, 0.05, 0.1])),
        footprint=int(2 ** rng.uniform(10, 26)),
        late=bool(rng.random() < 0.4),
    )
    if memory:
        return replace(step, kind="load", count=int(rng.integers(1, 4)), share=1.0)
    if rng.random() < 0.5:
        kind = str(rng.choice(list(NEW), p=list(NEW.values())))
        few = kind in ("chase", "counter", "texture", "copy")
        step = replace(step, kind=kind, count=int(rng.integers(1, 4 if few else 12)))
        if kind == "counter":
            # From one word for all to one for each of many threads.
            words, pattern = int(2 ** rng.uniform(0, 14)), str(rng.choice(["random", "coalesced"]))
            step = replace(step, pattern=pattern, footprint=4 * words, count=1)
        elif kind in ("hmma", "imma", "shuffle"):
            step = replace(step, share=1.0)
    if step.kind != "barrier" and rng.random() < 0.15:
        step = replace(step, warps=float(rng.choice([0.125, 0.25, 0.5])))
    return step


def _mixed_recipe(rng: np.random.Generator, size: int) -> Recipe:
    """Return a recipe of steps of all kinds, in one phase or two."""
    count = int(rng.integers(1, 6))
    if rng.random() < 0.3:
        # A stream, then arithmetic, or the other way round.
        streams = tuple(_mixed_step(rng, key, True) for key in range(int(rng.integers(1, 4))))
        computes = tuple(_mixed_step(rng, 10 + key, False) for key in range(count))
        body, second = (streams, computes) if rng.random() < 0.6 else (computes, streams)
    else:
        body, second = tuple(_mixed_step(rng, key) for key in range(count)), ()
    block = int(rng.choice([32, 64, 96, 128, 256, 512, 1024]))
    recipe = Recipe(
        seed=int(rng.integers(2**31)),
        blocks=int(2 ** rng.uniform(0, 10)),
        block=block,
        registers=int(rng.choice([32, 64] if block > 512 else [32, 64, 128])),
        shared=int(rng.choice([0, 4096, 16384, 32768])),
        iterations=int(2 ** rng.uniform(0, 6)),
        uneven=str(rng.choice(["", "blocks", "warps", "lanes", "ramp"], p=[0.6, *4 * [0.1]])),
        body=body,
        second=second,
    )
    while instructions(recipe) > size and recipe.iterations > 1:
        recipe = replace(recipe, iterations=recipe.iterations // 2)
    while instructions(recipe) > size and recipe.blocks > 1:
        recipe = replace(recipe, blocks=recipe.blocks // 2)
    return recipe


def simpler(case: Case) -> Iterator[Case]:
    """Yield cases that are smaller by one change, large changes first."""
    for i in range(len(case.launches)):
        if len(case.launches) > 1:
            yield replace(case, launches=case.launches[:i] + case.launches[i + 1 :])
    if case.gpu != PLAIN:
        yield replace(case, gpu=PLAIN)
    if case.changes:
        yield replace(case, changes=())
    for i in range(len(case.changes) if len(case.changes) > 1 else 0):
        yield replace(case, changes=case.changes[:i] + case.changes[i + 1 :])
    for i, recipe in enumerate(case.launches):
        for change in smaller(recipe):
            one = change(recipe)
            if one != recipe and (one.body or one.second):
                yield replace(case, launches=(*case.launches[:i], one, *case.launches[i + 1 :]))


def source(value: object) -> str:
    """Return a value as Python that makes it, without what has its default."""
    if isinstance(value, tuple):
        inner = ", ".join(map(source, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if not isinstance(value, (Case, Recipe, Step)):
        return repr(value)
    given = [
        f"{one.name}={source(getattr(value, one.name))}"
        for one in fields(value)
        if getattr(value, one.name) != one.default
    ]
    return f"{type(value).__name__}({', '.join(given)})"


def snippet(case: Case, models: tuple[str, ...]) -> str:
    """Return Python that makes a case again and predicts it, to be run in the repository's root."""
    return f"""import sys

import warpstack as ws

sys.path.append("tests/python")
from random_cases import Case, Recipe, Step

case = {source(case)}
print(sum(one.cycles for one in ws.simulate(case.app(), case.on())))
print(ws.predict(case.app(), case.on(), {list(models)}).groupby("model").cycles.sum())
"""
