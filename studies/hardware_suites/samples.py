"""The set accelwattch-hw-perf: programs of NVIDIA's samples and Rodinia on a Quadro GV100, L2 cold."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import warpstack as ws

from .program import KERNELS, Bench, Launches, program, up
from .row import Row, Run, Setting, read

_SOURCE = KERNELS / "samples.cu"
GPU = "quadro-gv100"
#: Which of them the card had is not settled.
CLOCKS = (
    Setting("cold", 1.132, "1.132 GHz"),
    Setting("cold", 1.447, "1.447 GHz"),
)


@program(_SOURCE, lambda log2: 2**log2 / 4 / 32 * 30)
def walsh_global(bench: Bench, log2: int) -> Launches:
    """Take two steps of a fast Walsh transform at a time in global memory: the first and the last."""
    data = bench.random(2**log2)
    for span in (log2, 13):
        grid = (2**span // 1024, 2 ** (log2 - span))
        yield bench.launch("walsh_global", grid, 256, data, data, 2**span // 4)


@program(_SOURCE, lambda log2: 2**log2 / 4 / 32 * 130)
def walsh_shared(bench: Bench, log2: int) -> Launches:
    """Take its last 11 steps in shared memory."""
    data = bench.random(2**log2)
    yield bench.launch("walsh_shared", 2 ** (log2 - 11), 512, data, data, 11, shared=4 * 2**11)


@program(_SOURCE, lambda side: side * side / 8 / 32 * 200)
def cosine(bench: Bench, side: int) -> Launches:
    """Transform tiles of 8 x 8."""
    out, image = bench.zeros(side, side), bench.random(side, side)
    yield bench.launch("cosine", (side // 32, side // 16), (8, 4, 2), out, image, side)


@program(_SOURCE, lambda n: 3 * n / 32 * 110)
def quasirandom(bench: Bench, n: int) -> Launches:
    """Fill three arrays with quasirandom numbers."""
    table = bench.module.symbol("table", np.uint32)
    table.copy_from(np.random.default_rng(1).integers(0, 2**31, table.size, np.uint32))
    yield bench.launch("quasirandom", 128, (128, 3), bench.zeros(3 * n), np.uint32(0), np.uint32(n))


@program(_SOURCE, lambda n: n / 32 * 45)
def normal(bench: Bench, n: int) -> Launches:
    """Turn evenly spread numbers into normal ones."""
    yield bench.launch("normal", 128, 128, bench.zeros(n), np.uint32(n))


@program(_SOURCE, lambda vectors, dimensions: 512 * dimensions * 2 * 120)
def sobol(bench: Bench, vectors: int, dimensions: int) -> Launches:
    """Fill an array with Sobol's numbers."""
    rng = np.random.default_rng(1)
    directions = bench.device.array(rng.integers(0, 2**32, 32 * dimensions, np.uint32))
    numbers = (np.uint32(vectors), np.uint32(dimensions))
    yield bench.launch(
        "sobol", (512, dimensions), 64, *numbers, directions, bench.zeros(vectors * dimensions)
    )


@program(_SOURCE, lambda n: n / 16 / 32 * 110)
def histogram_64(bench: Bench, n: int) -> Launches:
    """Count bytes in 64 bins."""
    words = np.random.default_rng(1).integers(0, 2**32, n // 4, np.uint32)
    grid = up(n, 64 * 240)
    out = bench.zeros(64 * grid, dtype=np.uint32)
    yield bench.launch("histogram_64", grid, 64, out, bench.device.array(words), np.uint32(n // 16))


@program(_SOURCE, lambda inputs: inputs / 16 * 8 * 110)
def training(bench: Bench, inputs: int) -> Launches:
    """Take a training step of a neural network with 16 hidden units."""
    layer, sums = bench.random(inputs + 1), bench.zeros(inputs)
    weights, old = (bench.random(17 * (inputs + 1)) for _ in range(2))
    grid, block = (1, inputs // 16), (16, 16)
    yield bench.launch("forward", grid, block, layer, weights, sums, 16)
    yield bench.launch("adjust", grid, block, bench.random(17), 16, layer, weights, old)


@program(_SOURCE, lambda rows, columns: rows * columns / 32 * 150)
def diffusion(bench: Bench, rows: int, columns: int) -> Launches:
    """Compute derivatives and coefficients of an image."""
    cells = rows * columns
    lines = [
        np.maximum(np.arange(rows) - 1, 0),
        np.minimum(np.arange(rows) + 1, rows - 1),
        np.minimum(np.arange(columns) + 1, columns - 1),
        np.maximum(np.arange(columns) - 1, 0),
    ]
    neighbours = [bench.device.array(each.astype(np.int32)) for each in lines]
    image = bench.device.array(np.exp(np.random.default_rng(1).random(cells, np.float32)))
    derivatives = [bench.zeros(cells) for _ in range(4)]
    yield bench.launch(
        *("diffusion", up(cells, 512), 512, np.float32(0.5), rows, columns, np.int64(cells)),
        *(*neighbours, *derivatives, np.float32(0.05), bench.zeros(cells), image),
    )


@program(_SOURCE, lambda side: side * side / 32 * 90)
def cosine_plain(bench: Bench, side: int) -> Launches:
    """Transform tiles of 8 x 8 read as a texture, a thread per element."""
    frequency, place = np.arange(8)[:, None], np.arange(8)
    matrix = np.cos(np.pi * (2 * place + 1) * frequency / 16) / 2
    matrix[0] /= np.sqrt(2)
    bench.module.symbol("cosines", np.float32).copy_from(matrix.T.ravel().astype(np.float32))
    image, out = ws.cuda.texture(bench.random(side, side)), bench.zeros(side, side)
    yield bench.launch("cosine_plain", (side // 8, side // 8), (8, 8), out, side, image)


#: A node of the tree as the kernels have it.
ORDER = 256
NODE = np.dtype(
    [
        *(("place", np.int32), ("children", np.int32, ORDER + 1), ("keys", np.int32, ORDER + 1)),
        *(("is_leaf", np.int32), ("count", np.int32)),
    ]
)
#: Keys of a node: insertions in ascending order leave nodes half full.
FILL = ORDER // 2


def tree_of(keys: int) -> np.ndarray:
    """Return a B+ tree of the numbers below `keys`, root first, two levels above its leaves."""
    leaves = up(keys, FILL)
    inner = up(leaves, FILL)
    nodes = np.zeros(1 + inner + leaves, NODE)
    nodes["keys"] = np.iinfo(np.int32).max
    nodes["place"] = np.arange(len(nodes))

    def fill(number: int, first: int, values: np.ndarray) -> None:
        """Give a node its children, from `first` on, and their least keys."""
        nodes["keys"][number, : len(values)] = values
        nodes["children"][number, : len(values)] = first + np.arange(len(values))
        nodes["count"][number] = len(values)

    starts = np.arange(leaves) * FILL
    fill(0, 1, starts[::FILL])
    for number in range(inner):
        fill(1 + number, 1 + inner + number * FILL, starts[number * FILL : (number + 1) * FILL])
    for number in range(leaves):
        own = np.arange(number * FILL, min((number + 1) * FILL, keys))
        fill(1 + inner + number, int(own[0]), own)
    nodes["is_leaf"][1 + inner :] = 1
    return nodes


@program(_SOURCE, lambda keys, queries, ranges: queries * 8 * (160 if ranges else 90))
def tree(bench: Bench, keys: int, queries: int, ranges: int) -> Launches:
    """Search for keys, or for ranges of keys, in a B+ tree."""
    nodes = tree_of(keys)
    rng = np.random.default_rng(1)
    start = rng.integers(0, keys - 1000, queries, np.int32)
    given = bench.device.array(nodes.view(np.uint8).view(np.int32))
    names = 4 if ranges else 2
    places = [bench.zeros(queries, dtype=np.int64) for _ in range(names)]
    low, high = bench.device.array(start), bench.device.array(start + 1000)
    first, length = (bench.zeros(queries, dtype=np.int32) for _ in range(2))
    head = (np.int64(2), given, np.int64(keys))
    if ranges:
        arguments = (*head, *places, low, high, first, length)
        yield bench.launch("find_range", queries, ORDER, *arguments)
    else:
        records = bench.device.array(np.arange(keys, dtype=np.int32))
        yield bench.launch("find_key", queries, ORDER, *head, records, *places, low, first)


#: The run of each kernel, by the first word of the application and its number, and the launches.
_RUNS: dict[tuple[str, int], tuple[Run, tuple[int, ...]]] = {
    ("b+tree-rodinia-3.1", 0): (Run.of("tree", keys=10**6, queries=6000, ranges=1), (0,)),
    ("b+tree-rodinia-3.1", 1): (Run.of("tree", keys=10**6, queries=10**4, ranges=0), (0,)),
    ("dct8x8", 0): (Run.of("cosine_plain", side=512), (0,)),
    ("backprop-rodinia-3.1", 0): (Run.of("training", inputs=65536), (0,)),
    ("backprop-rodinia-3.1", 1): (Run.of("training", inputs=65536), (1,)),
    ("srad_v1-rodinia-3.1", 0): (Run.of("diffusion", rows=502, columns=458), (0,)),
    ("dct8x8", 1): (Run.of("cosine", side=512), (0,)),
    ("fastWalshTransform", 0): (Run.of("walsh_global", log2=23), (0, 1)),
    ("fastWalshTransform", 1): (Run.of("walsh_shared", log2=23), (0,)),
    ("histogram", 0): (Run.of("histogram_64", n=2**26), (0,)),
    ("quasirandomGenerator", 0): (Run.of("quasirandom", n=2**20), (0,)),
    ("quasirandomGenerator", 1): (Run.of("normal", n=3 * 2**20), (0,)),
    ("sobolQRNG", 0): (Run.of("sobol", vectors=100_000, dimensions=100), (0,)),
}


def _plain(name: str) -> str:
    """Return the name of a function that a mangled name begins with; of a longer one its beginning."""
    found = re.match(r"_Z(\d+)(\w+)", name)
    return found[2][: int(found[1])] if found else name[:40]


def rows(reference: Path) -> list[Row]:
    """Return the rows of elapsed cycles of this set."""
    return [row for row, metric, _ in counters(reference) if metric == "elapsed_cycles"]


def counters(reference: Path) -> list[tuple[Row, str, float]]:
    """Return all rows: that of the launch, the counter, its value."""
    found = []
    for each in read(reference / "accelwattch-hw-perf.csv"):
        key = (each["application"].split()[0], int(each["kernel_index"]))
        run, launches = _RUNS.get(key, (None, ()))
        row = Row(
            suite="GV100",
            gpu=GPU,
            application=each["application"],
            kernel_index=each["kernel_index"],
            kernel=_plain(each["kernel"]),
            metric=each["metric"],
            measured=each["measured"],
            unit="cycles",
            flag=each["flag"],
            profiler="",
            settings=CLOCKS,
            run=run,
            launches=launches,
            combine="mean",
            reason="" if run else "no kernel",
        )
        found.append((row, each["metric"], each["measured"]))
    return found
