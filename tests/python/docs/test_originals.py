"""The study of the papers' own benchmarks: its table of programs, and the inputs that it makes."""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import warpstack as ws

REPOSITORY = Path(__file__).resolve().parents[3]
#: A folder with the suites (docs/quality/originals.md says which); they are not in this repository.
SUITES = os.environ.get("WARPSTACK_SUITES")

sys.path.insert(0, str(REPOSITORY / "studies"))
import original_programs  # noqa: E402
from original_programs import inputs  # noqa: E402
from original_programs.building import fingerprint, traced  # noqa: E402

sys.path.pop(0)

BY_NAME = {program.name: program for program in original_programs.PROGRAMS}


def numbers(path, **options):
    return pd.read_csv(path, sep=" ", header=None, **options).to_numpy()


def test_the_programs_are_those_of_table_4():
    """All seventeen, each beside our own kernel, of the same suite and class."""
    assert set(BY_NAME) == set(ws.workloads.names())
    assert len(BY_NAME) == len(original_programs.PROGRAMS)
    for name, program in BY_NAME.items():
        workload = ws.workloads.get(name)
        own = (workload.suite, workload.abbreviation, workload.memory_divergent)
        assert (program.suite, program.abbreviation, program.memory_divergent) == own, name
    # #Knl of Table IV, summed: 1+2+2+1+2+1+1+1 + 10+24+258+358+158+1+1+22+222.
    assert sum(program.paper_launches for program in BY_NAME.values()) == 1065


@pytest.mark.parametrize("program", BY_NAME.values(), ids=BY_NAME)
def test_a_program_is_well_formed(program):
    inside = tuple(f"{folder}/" for folder in program.folders)
    for path in (*program.sources, *(repair.file for repair in program.repairs)):
        assert path.startswith(inside), path
    assert set(program.arguments) == set(original_programs.SIZES)
    assert program.launches is None or program.why_launches
    assert bool(program.options) == bool(program.why_options)
    assert all(repair.why and repair.pattern for repair in program.repairs)
    assert fingerprint(program, "small") != fingerprint(program, "paper")


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - {"alexnet"}))
def test_a_program_finds_its_input(name, tmp_path):
    program = BY_NAME[name]
    program.make_input(tmp_path, "small")
    made = {path.name for path in tmp_path.iterdir()}
    words = {part.rstrip("/") for each in program.arguments["small"] for part in each.split(",")}
    assert made <= words


def test_the_graph_lists_every_edge_at_both_ends(tmp_path):
    inputs.random_graph(tmp_path, "small")
    lines = (tmp_path / "graph.txt").read_text().split()
    nodes = int(lines[0])
    starts, degrees = np.array(lines[1 : 1 + 2 * nodes], dtype=int).reshape(-1, 2).T
    source, edges, *rest = map(int, lines[1 + 2 * nodes :])
    others = np.array(rest).reshape(edges, 2)[:, 0]
    assert source == 0
    assert degrees.sum() == edges
    assert (starts == np.cumsum(degrees) - degrees).all()
    ends = np.repeat(np.arange(nodes), degrees)
    assert sorted(zip(ends, others, strict=True)) == sorted(zip(others, ends, strict=True))
    assert 5.9 < edges / nodes < 6.1  # two to four partners, listed twice


def test_neighbours_in_the_mesh_are_mutual(tmp_path):
    inputs.tetrahedra(tmp_path, "small")
    rows = numbers(tmp_path / "domain", skiprows=1)
    neighbours = rows[:, 1::4].astype(int)
    own = np.repeat(np.arange(1, len(rows) + 1), 4).reshape(-1, 4)
    inner = neighbours > 0
    pairs = set(zip(own[inner], neighbours[inner], strict=True))
    assert pairs == {(b, a) for a, b in pairs}
    assert (neighbours[~inner] == -2).all()
    # The outward areas of a closed body sum to zero.
    normals = rows[:, [2, 6, 10, 14]].sum(axis=1)
    assert np.abs(normals).max() < 1e-6


def test_the_matrix_is_that_of_cubic_elements(tmp_path):
    inputs.finite_elements(tmp_path, "small")
    path = tmp_path / "matrix.mtx"
    rows, columns, entries = map(int, path.read_text().splitlines()[1].split())
    table = numbers(path, skiprows=2)
    row, column = table[:, 0].astype(int), table[:, 1].astype(int)
    # 12 cells: 11 vertices and 24 functions inside, without those of the border.
    assert rows == columns == 35**2
    assert len(table) == entries
    assert (row >= column).all()
    # In 1-D a vertex meets 7 functions and an inner one 4, less 6 at the two ends: 11*7 + 24*4 - 6.
    assert 2 * entries - rows == 167**2


def test_a_repair_that_matches_nothing_is_an_error(tmp_path):
    path = tmp_path / "a.cu"
    path.write_text("one two")
    repair = original_programs.Repair("a.cu", "t(.)o", r"\1", "a test")
    repair.apply(tmp_path)
    assert path.read_text() == "one w"
    with pytest.raises(ValueError, match="another version"):
        repair.apply(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not SUITES, reason="WARPSTACK_SUITES names no folder with the suites")
@pytest.mark.parametrize("name", ["bfs", "2d-convolution"])
def test_an_original_is_built_and_traced(name, tmp_path):
    folder, _ = traced(BY_NAME[name], "small", Path(SUITES), tmp_path)
    app = ws.load(folder)
    # 256 x 256 points in blocks of 32 x 8 threads.
    assert app[0].num_warps == {"bfs": 4096, "2d-convolution": 256 * 256}[name] // 32
