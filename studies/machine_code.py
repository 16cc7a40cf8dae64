#!/usr/bin/env python3
"""Hold machine code against PTX: instruction counts, a trace made on a GPU, times measured on an H100.

    python studies/machine_code.py REFERENCE TRACES            # print the tables
    python studies/machine_code.py REFERENCE TRACES --write    # also into docs/data/machine-code
    python studies/machine_code.py REFERENCE TRACES --only counts

REFERENCE is the folder of measurements on GPUs (``hardware``), whose README says how its kernels look and
are launched; TRACES the folder that holds ``cuda-vectoradd``. The kernels of both are in
machine_code_kernels, written after these descriptions. Needed are a CUDA compiler and nvdisasm.

The H100's times contain the launch. Its floor, the median time of an empty kernel of at most 64 blocks,
is taken off each launch. Nothing else is fitted.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pages
import pandas as pd

import warpstack as ws

PAGE = pages.DOCS / "quality" / "machine-code.md"
KERNELS = Path(__file__).with_name("machine_code_kernels")
PARTS = ("counts", "trace", "measured")
#: None stands for PTX.
CODES = (None, "sm_75", "sm_80", "sm_90")
GPU = "h100-pcie"
#: Measured cycles are Nsight Systems' duration times this clock.
MEASURED_GHZ = 1.755
MODELS = ("gpumech", "mdm", "closed_network")
#: The launch of TRACES/cuda-vectoradd.
ELEMENTS, GRID, BLOCK = 50_000, 196, 256


# ---- instruction counts ----


def counts_of(name: str) -> pd.DataFrame:
    """Return a row per code of a workload: its instructions, once its results are checked."""
    rows = []
    for code in CODES:
        ws.workloads.check(name, machine_code=code)  # raises where a result is wrong
        app = ws.workloads.load(name, machine_code=code)
        row = {
            "name": name,
            "code": code or "PTX",
            "warp": sum(kernel.num_instructions for kernel in app),
            "thread": sum(kernel.num_thread_instructions for kernel in app),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def count_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the counts of PTX and the ratios of machine code to them."""
    lines = []
    for name, group in rows.groupby("name", sort=False):
        by_code = group.set_index("code")
        cells = [f"`{name}`"]
        for what in ("warp", "thread"):
            plain = by_code.loc["PTX", what]
            cells.append(f"{plain:,}")
            cells += [f"{by_code.loc[code, what] / plain:.2f}" for code in CODES if code]
        lines.append(cells)
    head = ["workload"]
    for what in ("warp", "thread"):
        head += [
            f"{what} instructions as PTX",
            *(f"{what}, {code} / PTX" for code in CODES if code),
        ]
    means = ["geometric mean"]
    for what in ("warp", "thread"):
        wide = rows.pivot_table(what, "name", "code")
        means.append("")
        means += [f"{np.exp(np.log(wide[c] / wide['PTX']).mean()):.2f}" for c in CODES if c]
    return pd.DataFrame([*lines, means], columns=head)


# ---- a trace made on a GPU ----


@dataclasses.dataclass(frozen=True)
class Step:
    """An executed instruction: lanes, and where its 32-byte sectors are from the arrays' start."""

    opcode: str
    registers: tuple[tuple[int, ...], tuple[int, ...]]
    mask: int
    sectors: tuple[int, ...]


def steps_of(kernel: ws.KernelTrace) -> Iterator[list[Step]]:
    """Yield the instructions of each warp. The lowest sector of an instruction's array is number 0."""
    table = kernel.instructions
    names = table["opcode"].tolist()
    registers = list(
        zip(table["destinations"].map(tuple), table["sources"].map(tuple), strict=True)
    )
    warps = [
        kernel.warp(position, warp)
        for position, (_, found) in enumerate(kernel.blocks())
        for warp in range(len(found))
    ]
    lowest: dict[int, int] = {}
    for columns in warps:
        for static, sectors in zip(
            columns["memory_static"].tolist(), _sectors_of(columns), strict=True
        ):
            if len(sectors):
                lowest[static] = min(lowest.get(static, 2**63), int(sectors.min()))
    for columns in warps:
        places = iter(
            sectors - lowest.get(static, 0)
            for static, sectors in zip(
                columns["memory_static"].tolist(), _sectors_of(columns), strict=True
            )
        )
        memory = set(columns["memory_static"].tolist())
        yield [
            Step(
                names[row],
                registers[row],
                int(mask),
                tuple(next(places).tolist()) if row in memory else (),
            )
            for row, mask in zip(
                columns["instruction"].tolist(), columns["active_mask"].tolist(), strict=True
            )
        ]


def _sectors_of(columns: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the sectors of each memory instruction of a warp."""
    if len(columns["memory_count"]) == 0:
        return []
    ends = np.cumsum(columns["memory_count"])
    return np.split(columns["sector"].astype(np.int64), ends[:-1])


def run_like_the_trace() -> ws.KernelTrace:
    """Run the sample as machine code, with the launch and the layout of arrays of the real trace."""
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(KERNELS / "vector_add_sample.cu", machine_code="sm_80", device=device)
    values = np.arange(ELEMENTS, dtype=np.float32)
    a, b, c = device.array(values), device.array(2 * values), device.zeros(ELEMENTS, np.float32)
    trace = module.kernel("vectorAdd").launch(GRID, BLOCK, a, b, c, ELEMENTS)
    if not np.array_equal(np.asarray(c), 3 * values):
        raise RuntimeError("vectorAdd as machine code does not add")
    return trace


def executed(kernel: ws.KernelTrace) -> pd.DataFrame:
    """Return the instructions of a kernel that have run."""
    table = kernel.instructions
    return table[table["executions"] > 0]


def agreement(real: ws.KernelTrace, ours: ws.KernelTrace) -> pd.DataFrame:
    """Return how many executed instructions of two traces agree, by what is compared."""
    same: dict[str, int] = dict.fromkeys(("opcode", "registers", "mask", "sectors"), 0)
    total = 0
    for theirs, mine in zip(steps_of(real), steps_of(ours), strict=True):
        total += max(len(theirs), len(mine))
        for a, b in zip(theirs, mine, strict=False):
            for what in same:
                same[what] += getattr(a, what) == getattr(b, what)
    labels = {
        "opcode": "opcode with modifiers, in order",
        "registers": "destination and source registers",
        "mask": "lanes that execute it",
        "sectors": "sectors, from the start of the arrays",
    }
    rows = [{"compared": label, "agree": same[what], "of": total} for what, label in labels.items()]
    facts = (
        ("places in the code", [tuple(executed(k)["pc"]) for k in (real, ours)]),
        ("registers per thread", [k.registers_per_thread for k in (real, ours)]),
        ("warps", [k.num_warps for k in (real, ours)]),
    )
    rows += [{"compared": what, "agree": int(a == b), "of": 1} for what, (a, b) in facts]
    return pd.DataFrame(rows)


def opcode_table(real: ws.KernelTrace, ours: ws.KernelTrace) -> pd.DataFrame:
    """Return the opcodes of both traces beside each other."""
    tables = [executed(kernel) for kernel in (real, ours)]
    columns = [[f"`{opcode}`" for opcode in table["opcode"]] for table in tables]
    length = max(map(len, columns))
    cells = [
        [str(n), *(column[n] if n < len(column) else "-" for column in columns)]
        for n in range(length)
    ]
    return pd.DataFrame(cells, columns=["place", "on the GPU", "here"])


# ---- times measured on an H100 ----


@dataclasses.dataclass(frozen=True)
class Measured:
    """A measured run: its group, its name, launches, microseconds, and what makes their trace here."""

    group: str
    name: str
    launches: int
    us: float
    run: Callable[[str | None], ws.App]
    reads_memory: bool = True


def parameters_of(text: str) -> dict[str, int]:
    """Return the numbers in the name of an application."""
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}


@functools.cache
def text_of(name: str, code: str | None) -> str:
    """Return PTX, or the listing of machine code, of this study's kernels."""
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(KERNELS / name, arch="sm_90", machine_code=code, device=device)
    return module.listing if isinstance(module, ws.cuda.MachineModule) else module.ptx


def ffma(code: str | None, *, block: int, thread: int, iters: int) -> ws.App:
    """Return the trace of the chain of multiply-adds."""
    device = ws.cuda.Device(0.1)
    kernel = ws.cuda.compile(text_of("ffma.cu", code), device=device).kernel("ffma")
    out = device.zeros(block * thread, np.float32)
    factor, iterations = np.float32(-0.5), np.int32(iters)
    return ws.App([kernel.launch(block, thread, out, factor, iterations)], "ffma")


def vector_add(code: str | None, *, size: int) -> ws.App:
    """Return the trace of an addition of vectors."""
    device = ws.cuda.Device(0.2)
    kernel = ws.cuda.compile(text_of("vector_add.cu", code), device=device).kernel("vector_add")
    a, b, c = (device.zeros(size, np.float32) for _ in range(3))
    return ws.App([kernel.launch(-(-size // 256), 256, a, b, c, np.int32(size))], "vector_add")


#: Which kernels each program of Polybench launches.
PRODUCTS = {
    "atax": ("rows", "columns"),
    "bicg": ("columns", "rows"),
    "mvt": ("rows", "columns"),
}


def product(code: str | None, *, program: str, size: int, width: int) -> ws.App:
    """Return the trace of two products of a matrix and a vector."""
    device = ws.cuda.Device(0.2)
    module = ws.cuda.compile(text_of("polybench.cu", code), device=device)
    rng = np.random.default_rng(1)
    n, grid = np.int32(size), -(-size // width)
    matrix = device.array(rng.random((size, size), np.float32))
    x, first, second = (device.array(rng.random(size, np.float32)) for _ in range(3))
    # atax multiplies the result of its first product.
    vectors = [(x, first), (first if program == "atax" else x, second)]
    launches = [
        module.kernel(name).launch(grid, width, n, matrix, *pair)
        for name, pair in zip(PRODUCTS[program], vectors, strict=True)
    ]
    return ws.App(launches, program)


def measured_runs(reference: Path, largest: float) -> list[Measured]:
    """Return the measured runs of at most so many warp instructions, about."""
    runs = []
    table = pd.read_csv(reference / "h100-ffmakernel-grid.csv")
    for row in table[table["metric"] == "cycles_nsys"].itertuples():
        launch = parameters_of(row.application)
        if launch["block"] * launch["thread"] / 32 * launch["iters"] * 131 <= largest:
            group = "ffma, one wave" if launch["block"] <= 400 else "ffma, more waves"
            us = row.measured / MEASURED_GHZ / 1000
            run = _bound(ffma, **launch)
            runs.append(Measured(group, row.application, 1, us, run, reads_memory=False))
    for row in pd.read_csv(reference / "h100-polybench.csv").itertuples():
        launch = parameters_of(row.application)
        program = row.application.split()[0]
        run = _bound(product, program=program, size=launch["size"], width=launch["blockDimX"])
        name = row.application.replace(",all 2", "")
        runs.append(Measured(program, name, 2, row.measured, run))
    for row in pd.read_csv(reference / "h100-vectoradd.csv").itertuples():
        size = parameters_of(row.application)["size"]
        if size / 2 <= largest:  # some 17 instructions of 32 lanes
            run = _bound(vector_add, size=size)
            runs.append(Measured("vectoradd", row.application, 1, row.measured, run))
    return runs


def _bound(function: Callable[..., ws.App], **launch: object) -> Callable[[str | None], ws.App]:
    return lambda code: function(code, **launch)


def launch_floor(reference: Path) -> float:
    """Return the median microseconds of an empty kernel of few blocks."""
    table = pd.read_csv(reference / "h100-emptykernel-grid.csv")
    blocks = table["application"].map(lambda text: parameters_of(text)["block"])
    few = table[(table["metric"] == "cycles_nsys") & (blocks <= 64)]
    return float(few["measured"].median()) / MEASURED_GHZ / 1000


def times_of(run: Measured, floor: float) -> pd.DataFrame:
    """Return a row per code and model: microseconds measured, without the launch, and predicted."""
    rows = []
    gpu = ws.gpu(GPU)
    for code in (None, "sm_90"):
        app = run.run(code)
        # The measured launches were repeated, so that L2 held what fits of the one before.
        repeated = ws.App([*app, *app]) if run.reads_memory else app
        results = ws.simulate(repeated, gpu)[-len(app) :]
        cycles = {"simulator": sum(result.cycles for result in results)}
        table = ws.predict(repeated, gpu, MODELS)
        for model, found in table.groupby("model", sort=False):
            cycles[model] = found["cycles"].iloc[-len(app) :].sum()
        rows += [
            {
                "group": run.group,
                "run": run.name,
                "code": code or "PTX",
                "instructions": sum(kernel.num_instructions for kernel in app),
                "model": model,
                "measured": run.us - run.launches * floor,
                "us": value / gpu.clock_ghz / 1000,
            }
            for model, value in cycles.items()
        ]
    return pd.DataFrame(rows)


def error_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return median and mean absolute errors by group, as PTX and as machine code."""
    cells = []
    groups = [*rows.groupby("group", sort=False), ("all", rows)]
    for model in rows["model"].unique():
        for group, found in groups:
            one = found[found["model"] == model]
            errors = (one["us"] / one["measured"] - 1).abs()
            wide = errors.to_frame("error").assign(run=one["run"], code=one["code"])
            wide = wide.pivot_table("error", "run", "code")
            ptx, machine = wide["PTX"], wide["sm_90"]
            cells.append(
                [
                    model,
                    str(group),
                    str(len(wide)),
                    *(f"{100 * value:.0f} %" for value in (ptx.median(), ptx.mean())),
                    *(f"{100 * value:.0f} %" for value in (machine.median(), machine.mean())),
                    f"{(machine < ptx).sum()}",
                ]
            )
    head = ["by", "group", "runs", "PTX, median", "PTX, mean", "machine code, median"]
    head += ["machine code, mean", "runs in which machine code is nearer"]
    return pd.DataFrame(cells, columns=head)


def run_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return every run: what was measured, and the errors of the simulator and of one model."""
    cells = []
    shown = ("simulator", MODELS[-1])
    for name, found in rows.groupby("run", sort=False):
        line = [str(name), f"{found['measured'].iloc[0]:.2f}"]
        for code in ("PTX", "sm_90"):
            line.append(f"{found.loc[found['code'] == code, 'instructions'].iloc[0]:,}")
        for model in shown:
            for code in ("PTX", "sm_90"):
                one = found[(found["model"] == model) & (found["code"] == code)].iloc[0]
                line.append(f"{100 * (one['us'] / one['measured'] - 1):+.0f} %")
        cells.append(line)
    head = ["run", "measured (us)", "warp instructions, PTX", "warp instructions, machine code"]
    head += [f"{model}, {code}" for model in shown for code in ("PTX", "machine code")]
    return pd.DataFrame(cells, columns=head)


def measured_tables(reference: Path, largest: float, keep: Path | None) -> dict[str, pd.DataFrame]:
    """Return what is written of the measured runs."""
    floor = launch_floor(reference)
    if keep and keep.exists():
        rows = pd.read_csv(keep)
    else:
        runs = measured_runs(reference, largest)
        parts = []
        for number, run in enumerate(runs, 1):
            parts.append(times_of(run, floor))
            print(f"{number} of {len(runs)}: {run.name}", file=sys.stderr)
        rows = pd.concat(parts, ignore_index=True)
        if keep:
            rows.to_csv(keep, index=False)
    said = (
        f"{rows['run'].nunique()} runs of at most {largest:,.0f} warp instructions on {GPU}; "
        f"{1000 * floor:.0f} ns of launch are taken off each launch"
    )
    print(said, file=sys.stderr)
    return {"errors": error_table(rows), "runs": run_table(rows)}


def main() -> None:
    """Compute the tables asked for and print or write them."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("reference", type=Path, help="the folder hardware")
    parser.add_argument("traces", type=Path, help="the folder that holds cuda-vectoradd")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts")
    parser.add_argument(
        "--largest", type=float, default=3e6, help="warp instructions of a measured run"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="CSV",
        help="the times of the measured runs; read from there when the file exists",
    )
    pages.add_processes(parser)
    arguments = parser.parse_args()
    found: dict[str, pd.DataFrame] = {}
    if "counts" in arguments.only:
        tables: Sequence[pd.DataFrame] = pages.in_processes(
            counts_of, ws.workloads.names(), arguments.processes
        )
        found["counts"] = count_table(pd.concat(tables, ignore_index=True))
    if "trace" in arguments.only:
        real = ws.load(arguments.traces / "cuda-vectoradd")[0]
        ours = run_like_the_trace()
        found |= {"trace": agreement(real, ours), "trace-opcodes": opcode_table(real, ours)}
    if "measured" in arguments.only:
        found |= measured_tables(arguments.reference, arguments.largest, arguments.keep)
    pages.publish(PAGE, found, arguments.write)


if __name__ == "__main__":
    main()
