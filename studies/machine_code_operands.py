#!/usr/bin/env python3
"""Run each form of PTX and the machine code that ptxas makes of it on the same random operands.

    python studies/machine_code_operands.py --sets 1000000           # print what differs
    python studies/machine_code_operands.py --sets 1000000 --write   # into docs/data/machine-code

The forms are those of the tests of PTX instructions (tests/python/ptx), which compare a few hundred sets of
operands of each with plain definitions. Here the engine's results of the PTX are the reference, bit for
bit; what differs is held against the plain definition. Half of the operands are edges, which meet each
other and random ones, the others random. Needed are ptxas and nvdisasm.
"""

from __future__ import annotations

import dataclasses
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pages
import pandas as pd

import warpstack as ws

TESTS = pages.REPOSITORY / "tests" / "python"
sys.path[:0] = [str(TESTS), str(TESTS / "sass")]
import test_sass_forms as forms_of_tests  # noqa: E402

import machine_forms  # noqa: E402
import ptx_forms  # noqa: E402

PAGE = pages.DOCS / "quality" / "machine-code.md"
#: Modules of the tests whose instructions take operands from registers.
SOURCES = ("test_ptx_instructions", "test_ptx_floats")
#: Sets of operands per launch, a multiple of the threads of a block.
BATCH = 1 << 16
#: Rows that differ bit for bit and are held against the plain definition, per form and launch.
MOST_JUDGED = 2000

Operands = list[npt.NDArray[Any]]


def forms_of(
    module: types.ModuleType, function: Callable[..., None], case: dict[str, Any]
) -> dict[str, Any]:
    """Return the forms that a test would check."""
    found: dict[str, Any] = {}
    module.__dict__["check"] = lambda forms, count=0: found.update(forms)
    function(**case)
    return found


def all_forms(arch: str, part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each test that has `part` in it, and its forms that ptxas takes."""
    for name in SOURCES:
        for parameters in forms_of_tests.collect(name):
            if part not in str(parameters.id):
                continue
            module, function, case = parameters[0]
            forms = forms_of(module, function, case)
            forms = machine_forms.possible(forms, arch, ptx_forms.kernel_text)
            if forms:
                yield str(parameters.id), forms


def operands(form: Any, label: str, count: int, seed: int) -> Operands:
    """Return random operands of a form, within what the PTX ISA defines."""
    values = ptx_forms.operands(form.inputs, count, seed)
    rng = np.random.default_rng(seed)
    for position, allowed in {**form.extra, **machine_forms.LIMITED.get(label, {})}.items():
        choice = np.fromiter((int(v) for v in allowed), dtype=np.uint64)
        values[position] = rng.choice(choice, count).astype(values[position].dtype)
    return values


def judged(form: Any, got: Operands, expected: Operands, values: Operands) -> list[int]:
    """Return the sets whose results are neither those of the PTX nor right by the plain definition."""
    different = np.zeros(len(values[0]), bool)
    for a, b in zip(got, expected, strict=True):
        different |= a != b
    wrong = []
    same = machine_forms.same_but_for_nan(form)
    for row in np.flatnonzero(different)[:MOST_JUDGED]:
        arguments = [int(v[row]) for v in values]
        wanted = form.reference(*arguments)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        pairs = zip((int(a[row]) for a in got), wanted, strict=True)
        if not all(same(g, w, *arguments) for g, w in pairs):
            wrong.append(int(row))
    return wrong


@dataclasses.dataclass
class Kernels:
    """The kernels of a test's forms, as PTX and as machine code, on one device."""

    forms: dict[str, Any]
    arch: str

    def __post_init__(self) -> None:
        header = f".version 8.3\n.target {self.arch}\n.address_size 64\n"
        kernels = [
            ptx_forms.kernel_text(f"k{n}", form) for n, form in enumerate(self.forms.values())
        ]
        text = header + "".join(kernels)
        self.device = ws.cuda.Device(0.25)
        self.modules = [
            ws.cuda.compile(text, device=self.device),
            ws.cuda.compile(text, machine_code=self.arch, device=self.device),
        ]

    def refused(self) -> dict[str, str]:
        """Return the forms that are not executed as machine code, and why."""
        result = {}
        for n, label in enumerate(self.forms):
            try:
                self.modules[1].kernel(f"k{n}")
            except ws.InputError as error:
                result[label] = str(error)
        return result

    def run(self, number: int, values: Operands) -> list[Operands]:
        """Return the outputs of the PTX and of the machine code of a form."""
        form = list(self.forms.values())[number]
        arrays = [self.device.array(v) for v in values]
        count = len(values[0])
        found = []
        for module in self.modules:
            types_ = [ptx_forms.BITS[ptx_forms.width_of(kind)] for kind in form.outputs]
            results = [self.device.zeros(count, kind) for kind in types_]
            kernel = module.kernel(f"k{number}")
            kernel.launch(
                count // ptx_forms.THREADS, ptx_forms.THREADS, *arrays, *results, trace=False
            )
            found.append([r.to_host() for r in results])
        return found


def run_forms(name: str, forms: dict[str, Any], arch: str, sets: int, seed: int) -> pd.DataFrame:
    """Run the forms of a test: a row per form."""
    kernels = Kernels(forms, arch)
    refused = kernels.refused()
    rows = []
    for number, (label, form) in enumerate(forms.items()):
        row = {"test": name, "form": label, "sets": 0, "differ": 0, "example": ""}
        if label in refused:
            rows.append({**row, "example": f"refused: {refused[label]}"})
            continue
        for first in range(0, sets, BATCH):
            count = min(BATCH, -(-(sets - first) // ptx_forms.THREADS) * ptx_forms.THREADS)
            values = operands(form, label, count, seed + first // BATCH)
            expected, got = kernels.run(number, values)
            wrong = judged(form, got, expected, values)
            row["sets"] += count
            row["differ"] += len(wrong)
            if wrong and not row["example"]:
                shown = ", ".join(f"{int(v[wrong[0]]):#x}" for v in values)
                row["example"] = f"({shown}) gives " + ", ".join(
                    f"{int(g[wrong[0]]):#x}, as PTX {int(e[wrong[0]]):#x}"
                    for g, e in zip(got, expected, strict=True)
                )
        rows.append(row)
    return pd.DataFrame(rows)


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what was run by test, the forms that differ, and those that were not executed."""
    run = rows[rows["sets"] > 0]
    by_test = (
        run.groupby("test", sort=False)
        .agg(forms=("form", "size"), sets=("sets", "sum"), differ=("differ", "sum"))
        .reset_index()
        .rename(columns={"sets": "operand sets", "differ": "sets that differ"})
    )
    differ = run.loc[run["differ"] > 0, ["form", "example"]]
    return {
        "operands": by_test,
        "operands-that-differ": differ,
        "operands-not-executed": rows.loc[rows["sets"] == 0, ["form"]],
    }


def main() -> None:
    """Run all forms and print or write what differs."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--sets", type=int, default=100_000, help="sets of operands of each form")
    parser.add_argument("--arch", default="sm_80", help="architecture of the machine code")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="tests whose names have this in it"
    )
    parser.add_argument("--csv", type=Path, help="write a row per form there, after each test")
    arguments = parser.parse_args()
    if arguments.write and arguments.only:
        parser.error("--write is of all forms")
    parts = []
    for name, forms in all_forms(arguments.arch, arguments.only):
        began = time.process_time()
        parts.append(run_forms(name, forms, arguments.arch, arguments.sets, arguments.seed))
        if arguments.csv:
            pd.concat(parts).to_csv(arguments.csv, index=False)
        wrong = parts[-1]["differ"].sum()
        seconds = time.process_time() - began
        print(f"{name}: {len(forms)} forms, {wrong} differ, {seconds:.0f} s", file=sys.stderr)
    if not parts:
        parser.error(f"--only {arguments.only}: no test has this in its name")
    pages.publish(PAGE, tables(pd.concat(parts, ignore_index=True)), arguments.write)


if __name__ == "__main__":
    main()
