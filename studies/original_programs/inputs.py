"""Inputs of the benchmarks: the suites' data sets are not in their repositories, or not at these sizes.

Each function writes into a folder what its program reads there. All are seeded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import Delaunay

SEED = 20201017
Floats = npt.NDArray[np.float64]


def _write(path: Path, columns: dict[str, npt.ArrayLike], head: str = "") -> None:
    """Write columns as text, row by row, after a head."""
    table = pd.DataFrame(columns)
    with path.open("w", encoding="ascii") as stream:
        stream.write(head)
        table.to_csv(stream, sep=" ", header=False, index=False)


def random_graph(folder: Path, size: str) -> None:
    """Write ``graph.txt``: a graph as Rodinia's generator makes it, six edges per node.

    Every node draws two to four partners, and both ends list the edge.
    """
    nodes = {"paper": 1_000_000, "small": 4096}[size]
    random = np.random.default_rng(SEED)
    source = np.repeat(np.arange(nodes), random.integers(2, 5, nodes))
    target = random.integers(0, nodes, source.size)
    ends = np.concatenate([source, target])
    others = np.concatenate([target, source])
    order = np.argsort(ends, kind="stable")
    degrees = np.bincount(ends, minlength=nodes)
    starts = np.cumsum(degrees) - degrees
    weights = random.integers(1, 11, others.size)
    path = folder / "graph.txt"
    _write(path, {"start": starts, "degree": degrees}, f"{nodes}\n")
    with path.open("a", encoding="ascii") as stream:
        stream.write(f"\n0\n\n{others.size}\n")
        edges = pd.DataFrame({"node": others[order], "weight": weights})
        edges.to_csv(stream, sep=" ", header=False, index=False)


def network_records(folder: Path, size: str) -> None:
    """Write ``kdd_cup``, binary: as many points and features as kddcup has, of random values."""
    points = {"paper": 494_020, "small": 4000}[size]
    features = 34
    values = np.random.default_rng(SEED).lognormal(size=(points, features)).astype("<f4")
    with (folder / "kdd_cup").open("wb") as stream:
        np.array([points, features], dtype="<i4").tofile(stream)
        values.tofile(stream)


def tetrahedra(folder: Path, size: str) -> None:
    """Write ``domain``: a mesh of tetrahedra of the size of Rodinia's fvcorr.domn.097K.

    A Delaunay mesh of random points, its cells numbered by reverse Cuthill-McKee as flow solvers do.
    """
    cells = {"paper": 97_046, "small": 3000}[size]
    random = np.random.default_rng(SEED)
    points = random.random((cells // 6, 3))
    mesh = Delaunay(points)
    count = len(mesh.neighbors)
    if count < cells:
        raise ValueError(f"{count} tetrahedra are fewer than {cells}")
    inside = mesh.neighbors >= 0
    rows = np.repeat(np.arange(count), 4).reshape(-1, 4)
    links = coo_matrix(
        (np.ones(int(inside.sum())), (rows[inside], mesh.neighbors[inside])), shape=(count, count)
    )
    order = reverse_cuthill_mckee(links.tocsr(), symmetric_mode=True)[:cells]
    place = np.full(count + 1, -1)
    place[order] = np.arange(cells)
    neighbours = place[mesh.neighbors[order]]  # -1 also where the neighbour was cut away

    corners = points[mesh.simplices[order]]
    centre = corners.mean(axis=1)
    edges = corners[:, 1:] - corners[:, :1]
    volume = np.abs(np.einsum("ij,ij->i", edges[:, 0], np.cross(edges[:, 1], edges[:, 2]))) / 6
    # The program numbers from 1 and takes what is negative for the far field.
    columns: dict[str, npt.ArrayLike] = {"area": np.round(volume ** (2 / 3), 8)}
    for face in range(4):
        a, b, c = (corners[:, each] for each in range(4) if each != face)
        normal = np.cross(b - a, c - a) / 2
        outward = np.sign(np.einsum("ij,ij->i", normal, a - centre))
        normal *= outward[:, None]
        columns[f"n{face}"] = np.where(neighbours[:, face] < 0, -2, neighbours[:, face] + 1)
        for axis, name in enumerate("xyz"):
            columns[f"{name}{face}"] = np.round(normal[:, axis], 8)
    _write(folder / "domain", columns, f"{cells}\n")


def chip(folder: Path, size: str) -> None:
    """Write ``temperature`` and ``power`` of the points of a chip."""
    side = {"paper": 1024, "small": 64}[size]
    random = np.random.default_rng(SEED)
    _write(folder / "temperature", {"t": np.round(random.uniform(320, 345, side * side), 6)})
    _write(folder / "power", {"p": np.round(random.uniform(0, 0.01, side * side), 9)})


def tree_keys(folder: Path, size: str) -> None:
    """Write ``keys``, a million in random order, and ``commands``: Rodinia's range queries and finds."""
    keys, ranges, finds = {"paper": (1_000_000, 6000, 10_000), "small": (4096, 60, 100)}[size]
    order = np.random.default_rng(SEED).permutation(keys)
    _write(folder / "keys", {"key": order}, f"{keys}\n")
    (folder / "commands").write_text(f"j {ranges} 3000\nk {finds}\n")


def _cubic(cells: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return kind (0 of a vertex, 1 inside a cell) and extent (first, last cell) of 1-D cubics."""
    vertices = np.stack([np.arange(cells - 1), np.arange(1, cells)], axis=1)
    inner = np.repeat(np.arange(cells), 2)
    extents = np.concatenate([vertices, np.stack([inner, inner], axis=1)])
    return np.repeat([0, 1], [cells - 1, 2 * cells]), extents


def finite_elements(folder: Path, size: str) -> None:
    """Write ``matrix.mtx`` and ``vector.bin``: the matrix of cubic elements on a square.

    With 128 x 128 elements its rows and entries are those of Dubcova3, Parboil's large matrix, within
    six entries of 3.6 million. Functions of vertices come first, then of edges, then of cells.
    """
    cells = {"paper": 128, "small": 12}[size]
    kind, extent = _cubic(cells)
    first, last = extent[:, 0], extent[:, 1]
    meet = (first[:, None] <= last[None, :]) & (first[None, :] <= last[:, None])
    one, other = np.nonzero(meet)
    n = kind.size
    # The 2-D functions are products: (x, y) meet if both factors do.
    x1, x2 = one[:, None], other[:, None]
    y1, y2 = one[None, :], other[None, :]
    rows = (x1 * n + y1).ravel()
    columns = (x2 * n + y2).ravel()
    kinds = (kind[:, None] + kind[None, :]).ravel()
    place = np.empty(n * n, dtype=np.int64)
    place[np.argsort(kinds, kind="stable")] = np.arange(n * n)
    rows, columns = place[rows], place[columns]
    lower = rows >= columns
    rows, columns = rows[lower], columns[lower]
    values = np.round(np.random.default_rng(SEED).uniform(0.1, 1, rows.size), 6)
    head = "%%MatrixMarket matrix coordinate real symmetric\n" + f"{n * n} {n * n} {rows.size}\n"
    _write(folder / "matrix.mtx", {"row": rows + 1, "column": columns + 1, "value": values}, head)
    np.random.default_rng(SEED).random(n * n).astype("<f4").tofile(folder / "vector.bin")


def volume(folder: Path, size: str) -> None:
    """Write ``volume.bin``: the values of a grid."""
    points = {"paper": 512 * 512 * 64, "small": 64 * 64 * 8}[size]
    np.random.default_rng(SEED).random(points, dtype=np.float32).tofile(folder / "volume.bin")


def page_views(folder: Path, size: str) -> None:
    """Write ``log``: entries as Mars's generator makes them, of 1024 pages and random visitors."""
    views = {"paper": 32_768, "small": 2000}[size]
    random = np.random.default_rng(SEED)
    address = random.integers(0, 256, (views, 4))
    numbers = zip(
        random.integers(0, 1024, views), address, random.integers(0, 1000, views), strict=True
    )
    with (folder / "log").open("w", encoding="ascii") as stream:
        for page, (a, b, c, d), cookie in numbers:
            stream.write(f"http://www.abcdefg.com/{page}.html\t{a}.{b}.{c}.{d}\t{cookie}\n")


def page_ranks(folder: Path, size: str) -> None:
    """Write ``log``: pages and their counts as Mars's generator makes them."""
    pages = {"paper": 131_072, "small": 2000}[size]
    random = np.random.default_rng(SEED)
    numbers = zip(random.integers(0, 1024, pages), random.integers(0, 2**31, pages), strict=True)
    with (folder / "log").open("w", encoding="ascii") as stream:
        for page, count in numbers:
            stream.write(f"http://www.abcdefg.com/{page}.html\t{count}\n")


def web_pages(folder: Path, size: str) -> None:
    """Write ``pages/``: HTML text with links, in files of about a megabyte."""
    files, lines = {"paper": (4, 12_000), "small": (1, 60)}[size]
    random = np.random.default_rng(SEED)
    words = np.array(["the", "of", "<b>", "</b>", "page", "graphics", "link", "<p>", "and", "mars"])
    (folder / "pages").mkdir()
    for number in range(files):
        with (folder / "pages" / f"{number}.html").open("w", encoding="ascii") as stream:
            for _ in range(lines):
                text = " ".join(words[random.integers(0, words.size, 12)])
                if random.random() < 0.5:
                    text += f' <a href="http://www.abcdefg.com/{random.integers(0, 1024)}.html">'
                stream.write(text + "\n")


def _weights(path: Path, count: int, random: np.random.Generator) -> None:
    pd.Series(np.round(random.normal(0, 0.05, count), 6)).to_csv(path, header=False, index=False)


def alexnet(folder: Path, size: str) -> None:
    """Write ``data/``: an image, weights of the convolutions and biases, random.

    The fully connected layers find no file and keep zeros: a weight decides on no address.
    """
    random = np.random.default_rng(SEED)
    data = folder / "data"
    data.mkdir()
    _weights(data / "input.txt", 227 * 227 * 3, random)
    shapes = (11 * 11 * 3 * 96, 5 * 5 * 48 * 256, 9 * 256 * 384, 9 * 192 * 384, 9 * 192 * 256)
    for number, count in enumerate(shapes, start=1):
        _weights(data / f"conv{number}.txt", count, random)
    for number, count in enumerate((96, 256, 384, 384, 256, 4096, 4096, 1000), start=1):
        biases = np.round(random.normal(0, 0.05, count), 4)
        (data / f"bias{number}.txt").write_text(" ".join(map(str, biases)))
