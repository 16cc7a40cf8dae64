#!/usr/bin/env python3
"""Count how often an engine says that more work takes less time, or that a better GPU is slower.

    python studies/monotone.py --pairs 100000 --seed 1            # print the table
    python studies/monotone.py --pairs 100000 --seed 1 --write    # also docs/data/limits
    python studies/monotone.py --engine simulator --pairs 3000
    python studies/monotone.py --case 1:num_sms:17                 # one pair, made small

Each pair is a random kernel on a random GPU (`tests/python/kernel_recipes.py`), and either the same
kernel with more to do or the same kernel on a GPU that is better in one field. All laws are asked of
each kernel; the model is asked with eight pairs of bandwidths, which share the kernel's caches and
intervals. The seed, the law and the number of a pair make it again.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pages
import pandas as pd

import warpstack as ws
from warpstack.hardware.stages import Stage, fields_of

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import kernel_recipes as rk

PAGE = pages.DOCS / "quality" / "limits.md"
ENGINES = ("closed_network", "simulator")
#: A pair breaks its law when it is the wrong way by more than this, and by much.
LITTLE, MUCH = 0.001, 0.02
#: Pairs of bandwidths of each kernel and GPU.
SETTINGS = 8


class Pair(NamedTuple):
    """A kernel and a GPU, and the same with more to do or worse equipped, which must not be faster."""

    recipe: rk.Recipe
    gpu: ws.Gpu
    more: rk.Recipe
    worse: ws.Gpu


Change = Callable[[np.random.Generator, rk.Recipe], rk.Recipe]


def _extra(kind: str, place: str) -> Change:
    def change(rng: np.random.Generator, recipe: rk.Recipe) -> rk.Recipe:
        added = rk.Step(kind, rk.ADDED, int(rng.integers(1, 33)))
        return replace(recipe, **{place: (*getattr(recipe, place), added)})

    return change


def _one_load(rng: np.random.Generator, recipe: rk.Recipe) -> rk.Recipe:
    added = replace(rk.random_step(rng, rk.ADDED), kind="load", count=1)
    return replace(recipe, tail=(*recipe.tail, added))


def _more_turns(rng: np.random.Generator, recipe: rk.Recipe) -> rk.Recipe:
    return replace(
        recipe, iterations=recipe.iterations + int(rng.integers(1, recipe.iterations + 1))
    )


def _more_blocks(rng: np.random.Generator, recipe: rk.Recipe) -> rk.Recipe:
    return replace(recipe, blocks=recipe.blocks + int(rng.integers(1, recipe.blocks + 1)))


def _strides(rng: np.random.Generator, recipe: rk.Recipe) -> rk.Recipe:
    body = tuple(
        replace(one, stride=2 * one.stride) if one.pattern == "strided" else one
        for one in recipe.body
    )
    return replace(recipe, body=body)


#: Changes that make more work of a kernel.
WORK: dict[str, Change] = {
    "independent FFMAs at the end": _extra("independent", "tail"),
    "dependent FFMAs at the end": _extra("dependent", "tail"),
    "independent FFMAs in the loop": _extra("independent", "body"),
    "dependent FFMAs in the loop": _extra("dependent", "body"),
    "one load at the end": _one_load,
    "more iterations": _more_turns,
    "more thread blocks": _more_blocks,
    "wider strides": _strides,
}


def _times(name: str, least: float = 1.0, most: float = 2.0) -> Callable[..., dict[str, float]]:
    def change(rng: np.random.Generator, gpu: ws.Gpu) -> dict[str, float]:
        value = getattr(gpu, name)
        factor = 2 ** rng.uniform(np.log2(least), np.log2(most))
        if isinstance(value, int):
            return {name: max(1, round(value * factor), value + 1)}
        return {name: value * factor}

    return change


def _shorter(*names: str) -> Callable[..., dict[str, float]]:
    def change(rng: np.random.Generator, gpu: ws.Gpu) -> dict[str, float]:
        factor = 2 ** -rng.uniform(0, 1)
        return {name: max(1, int(getattr(gpu, name) * factor)) for name in names}

    return change


def _ways(level: str) -> Callable[..., dict[str, float]]:
    """Return a change to a cache of as many sets with more ways."""

    def change(rng: np.random.Generator, gpu: ws.Gpu) -> dict[str, float]:
        factor = int(rng.integers(2, 5))
        return {
            f"{level}_{part}": getattr(gpu, f"{level}_{part}") * factor
            for part in ("size_kib", "ways")
        }

    return change


#: Changes that make a GPU better.
BETTER: dict[str, Callable[..., dict[str, float]]] = {
    "num_sms": _times("num_sms"),
    "issue_width": lambda _, gpu: {"issue_width": 2 * gpu.issue_width},
    "l1_mshrs": _times("l1_mshrs"),
    "l1_mshr_targets": _times("l1_mshr_targets"),
    "noc_bandwidth_gbs": _times("noc_bandwidth_gbs"),
    "dram_bandwidth_gbs": _times("dram_bandwidth_gbs"),
    "clock_ghz": _times("clock_ghz", 1, 1.5),
    "dram_latency": _shorter("dram_latency"),
    "l2_latency": _shorter("l2_latency"),
    "l1_latency": _shorter("l1_latency"),
    "fp32_latency": _shorter("fp32_latency"),
    "ways of L1": _ways("l1"),
    "ways of L2": _ways("l2"),
    "l2_slices": lambda _, gpu: {
        "l2_slices": 2 * gpu.l2_slices,
        "dram_channels": 2 * gpu.dram_channels,
    },
}
LAWS = (*WORK, *BETTER)
#: The model does not know them.
UNREAD = {"closed_network": ("l1_mshr_targets",), "simulator": ()}


@functools.lru_cache(maxsize=4)
def kernel_and_gpus(seed: int, number: int) -> tuple[rk.Recipe, list[ws.Gpu]]:
    """Return a kernel and a GPU with each of the bandwidths, first its own."""
    rng = np.random.default_rng([seed, number])
    recipe, gpu = rk.random_recipe(rng), rk.random_gpu(rng)
    names = ("noc_bandwidth_gbs", "dram_bandwidth_gbs")
    return recipe, [
        gpu,
        *(
            gpu.replace(**{name: getattr(gpu, name) * 2 ** rng.uniform(-2, 1) for name in names})
            for _ in range(SETTINGS - 1)
        ),
    ]


def pair_of(law: str, seed: int, number: int) -> Pair | None:
    """Return a pair; None where the GPU cannot have the change."""
    of_kernel, setting = divmod(number, SETTINGS)
    recipe, gpus = kernel_and_gpus(seed, of_kernel)
    gpu = gpus[setting]
    rng = np.random.default_rng([seed, of_kernel, zlib.crc32(law.encode())])
    if law in WORK:
        more = WORK[law](rng, recipe)
        return None if more == recipe else Pair(recipe, gpu, more, gpu)
    try:
        better = gpu.replace(**BETTER[law](rng, gpu))
    except ws.InputError:
        return None
    return None if better == gpu else Pair(recipe, better, recipe, gpu)


class Engine:
    """An engine that keeps what pairs of a kernel have in common."""

    MEMORY = sorted(fields_of(Stage.MEMORY) | fields_of(Stage.REQUESTS) | fields_of(Stage.TIMED))
    INTERVALS = sorted({*MEMORY, *fields_of(Stage.INTERVAL)})
    TIMING = sorted(fields_of(Stage.TIMING))

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept: dict[tuple[object, ...], Any] = {}

    def _once(self, what: str, recipe: rk.Recipe, parts: object, make: Callable[[], Any]) -> Any:
        key = (what, recipe, parts)
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def seconds(self, recipe: rk.Recipe, gpu: ws.Gpu) -> float:
        """Return how long a launch takes, in µs."""
        kernel = self._once("trace", recipe, None, lambda: rk.trace(recipe))
        if self.name == "simulator":
            every = tuple(getattr(gpu, name) for name in self.TIMING)
            simulated = self._once("run", recipe, every, lambda: ws.simulate(kernel, gpu).cycles)
            return float(simulated) / gpu.clock_ghz / 1000
        of_memory = tuple(getattr(gpu, name) for name in self.MEMORY)
        memory = self._once("memory", recipe, of_memory, lambda: ws.simulate_caches(kernel, gpu))
        of_intervals = tuple(getattr(gpu, name) for name in self.INTERVALS)
        profile = self._once(
            "profile", recipe, of_intervals, lambda: ws.interval_profile(kernel, gpu, memory)
        )
        return ws.models.evaluate(profile, gpu, self.name).cycles / gpu.clock_ghz / 1000

    def excess(self, pair: Pair) -> float:
        """Return by what share more work, or a worse GPU, is faster; negative where it is not."""
        return 1 - self.seconds(pair.more, pair.worse) / self.seconds(pair.recipe, pair.gpu)


def excess(engine: str, pair: Pair) -> float:
    """Return by what share more work, or a worse GPU, is faster; negative where it is not."""
    return Engine(engine).excess(pair)


def measure(task: tuple[str, tuple[str, ...], int, range]) -> pd.DataFrame:
    """Return a row for each pair of a range of kernels."""
    warnings.simplefilter("ignore")
    name, laws, seed, kernels = task
    rows = []
    for of_kernel in kernels:
        engine = Engine(name)
        settings = range(SETTINGS if name != "simulator" else 1)
        numbers = [SETTINGS * of_kernel + setting for setting in settings]
        for law, number in itertools.product(laws, numbers):
            pair = pair_of(law, seed, number)
            if pair is None:
                continue
            try:
                rows.append((name, law, number, engine.excess(pair)))
            except ws.InputError:  # a block that does not fit on an SM
                continue
    return pd.DataFrame(rows, columns=["engine", "law", "number", "excess"])


def shrunk(engine: str, pair: Pair, least: float) -> Pair:
    """Return a smaller pair that breaks its law by at least so much."""
    found = True
    while found:
        found = False
        for change in rk.smaller(pair.recipe):
            tried = pair._replace(recipe=change(pair.recipe), more=change(pair.more))
            try:
                if tried.recipe != pair.recipe and excess(engine, tried) >= least:
                    pair, found = tried, True
                    break
            except (ws.InputError, ValueError):
                continue
        if not found and pair.gpu == pair.worse and pair.gpu != ws.gpu("pascal-mdm"):
            plain = ws.gpu("pascal-mdm")
            if excess(engine, pair._replace(gpu=plain, worse=plain)) >= least:
                pair, found = pair._replace(gpu=plain, worse=plain), True
    return pair


def shown(pair: Pair) -> str:
    """Describe a pair."""
    said = f"{pair.recipe}\n    on {pair.gpu.name} {dict(pair.gpu.changes)}"
    if pair.more != pair.recipe:
        said += f"\n    with more: {pair.more}"
    if pair.worse != pair.gpu:
        said += f"\n    worse: {dict(pair.worse.changes)}"
    return said


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many pairs of each law are broken, and the worst."""
    found = []
    for (engine, law), part in rows.groupby(["engine", "law"], sort=False):
        worst = part.loc[part["excess"].idxmax()]
        found.append(
            {
                "engine": engine,
                "law": law,
                "kernels": (part["number"] // SETTINGS).nunique(),
                "pairs": len(part),
                "wrong by over 0.1 %": f"{100 * (part['excess'] > LITTLE).mean():.2f} %",
                "wrong by over 2 %": f"{100 * (part['excess'] > MUCH).mean():.2f} %",
                "worst": f"{100 * max(worst['excess'], 0):.1f} %",
                "number": int(worst["number"]),
            }
        )
    return pd.DataFrame(found)


def main() -> None:
    """Measure what was asked for and print or write the tables."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--pairs", type=int, default=2000, help="of all laws together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    parser.add_argument("--laws", nargs="+", choices=LAWS, metavar="LAW", default=LAWS)
    parser.add_argument("--case", metavar="SEED:LAW:NUMBER", help="make one pair small")
    parser.add_argument("--keep", type=Path, metavar="CSV", help="write a row for each pair")
    pages.add_processes(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.case:
        seed, law, number = arguments.case.split(":")
        pair = pair_of(law, int(seed), int(number))
        assert pair is not None
        broken = excess(arguments.engine, pair)
        print(f"{100 * broken:.2f} %: {shown(pair)}")
        if broken > LITTLE:
            small = shrunk(arguments.engine, pair, max(broken / 2, LITTLE))
            print(f"{100 * excess(arguments.engine, small):.2f} %: {shown(small)}")
        return
    laws = tuple(law for law in arguments.laws if law not in UNREAD[arguments.engine])
    of_kernel = len(laws) * (1 if arguments.engine == "simulator" else SETTINGS)
    kernels, chunk = max(arguments.pairs // of_kernel, 1), 8
    tasks = [
        (arguments.engine, laws, arguments.seed, range(first, min(first + chunk, kernels)))
        for first in range(0, kernels, chunk)
    ]
    start = time.monotonic()
    rows = pd.concat(pages.in_processes(measure, tasks, arguments.processes), ignore_index=True)
    if arguments.keep:
        rows.to_csv(arguments.keep, index=False)
    rows = rows.sort_values("law", key=lambda law: law.map(LAWS.index), kind="stable")
    print(f"{len(rows)} pairs in {time.monotonic() - start:.0f} s", file=sys.stderr)
    pages.publish(PAGE, {f"monotone-{arguments.engine}": summary(rows)}, arguments.write)


if __name__ == "__main__":
    main()
