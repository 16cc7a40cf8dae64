"""The H100 PCIe: empty kernels, chains of multiply-adds, vectors, products of Polybench."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .program import KERNELS, OTHERS, Bench, Launches, program, up
from .row import Row, Run, Setting, numbers_of, read

GPU = "h100-pcie"
#: The measured cycles of Nsight Systems are its duration times this.
NSYS_GHZ = 1.755
#: The sources do not say what L2 holds: nothing at a program's first launch, its data at a later one.
EITHER = (Setting("in order"), Setting("repeated", label="L2 warm"))
#: Which kernels each program launches; a thread takes a row or a column.
PRODUCTS = {
    "atax": ("rows", "columns"),
    "bicg": ("columns", "rows"),
    "mvt": ("rows", "columns"),
}
_PROGRAMS = {"atax": 0, "bicg": 1, "mvt": 2}


@program(KERNELS / "empty.cu", lambda block, thread: 2 * block * up(thread, 32))
def empty(bench: Bench, block: int, thread: int) -> Launches:
    """Launch a kernel that does nothing."""
    yield bench.launch("empty", block, thread)


@program(OTHERS / "ffma.cu", lambda block, thread, iters: 131 * block * up(thread, 32) * iters)
def ffma(bench: Bench, block: int, thread: int, iters: int) -> Launches:
    """Launch chains of multiply-adds."""
    out = bench.zeros(block * thread)
    yield bench.launch("ffma", block, thread, out, np.float32(-0.5), iters)


@program(OTHERS / "vector_add.cu", lambda size: size / 32 * 17)
def vector_add(bench: Bench, size: int) -> Launches:
    """Add vectors."""
    a, b, c = (bench.zeros(size) for _ in range(3))
    yield bench.launch("vector_add", up(size, 256), 256, a, b, c, size)


@program(OTHERS / "polybench.cu", lambda which, size, width: size**2 / min(width, 32) * 12)
def products(bench: Bench, which: int, size: int, width: int) -> Launches:
    """Multiply a matrix with two vectors, one after the other."""
    name = list(PRODUCTS)[which]
    grid = up(size, width)
    matrix, x, first, second = bench.random(size, size), *(bench.random(size) for _ in range(3))
    # atax multiplies the result of its first product.
    vectors = [(x, first), (first if name == "atax" else x, second)]
    for kernel, pair in zip(PRODUCTS[name], vectors, strict=True):
        yield bench.launch(kernel, grid, width, size, matrix, *pair)


def rows(reference: Path) -> list[Row]:
    """Return the rows of the four files of this card."""
    found = []
    for kind, name in (("empty", "emptykernel-grid"), ("ffma", "ffmakernel-grid")):
        for each in read(reference / f"h100-{name}.csv"):
            is_nsys = each["metric"] == "cycles_nsys"
            found.append(
                _row(
                    each,
                    suite=f"H100 {kind} grid",
                    run=Run.of(kind, **numbers_of(each["application"])),
                    settings=(Setting("in order"),),
                    profiler="nsys" if is_nsys else "ncu",
                    measured=each["measured"] / NSYS_GHZ / 1000 if is_nsys else each["measured"],
                    unit="us" if is_nsys else "cycles",
                )
            )
    for each in read(reference / "h100-vectoradd.csv"):
        run = Run.of("vector_add", **numbers_of(each["application"]))
        found.append(_row(each, suite="H100 vectoradd", run=run))
    for each in read(reference / "h100-polybench.csv"):
        numbers = numbers_of(each["application"])
        which = _PROGRAMS[each["application"].split()[0]]
        run = Run.of("products", which=which, size=numbers["size"], width=numbers["blockDimX"])
        found.append(_row(each, suite="H100 polybench", run=run, launches=(0, 1)))
    return found


def _row(each: dict[str, object], **changes: object) -> Row:
    names = ("application", "kernel_index", "kernel", "metric", "measured")
    values = {name: each[name] for name in names}
    values |= {"gpu": GPU, "unit": "us", "profiler": "nsys", "settings": EITHER}
    return Row(**(values | changes))  # type: ignore[arg-type]
