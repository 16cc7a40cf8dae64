"""The study of the papers' own benchmarks: its table of programs, and the inputs that it makes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from study_programs import writer_of_programs  # noqa: F401

import warpstack as ws

REPOSITORY = Path(__file__).resolve().parents[3]
STUDY = REPOSITORY / "studies" / "originals.py"

sys.path.insert(0, str(REPOSITORY / "studies"))
import original_programs  # noqa: E402
import originals  # noqa: E402
from original_programs import inputs  # noqa: E402
from original_programs.tracing import ProgramError, traced  # noqa: E402

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
    assert program.sources
    assert set(program.arguments) == set(original_programs.SIZES)
    assert program.launches is None or program.why_launches
    assert bool(program.options) == bool(program.why_options)
    for size in original_programs.SIZES:
        wanted = program.wanted(size)
        assert program.folder in wanted
        assert all(part in wanted for part in (*program.sources, *program.changes))
        assert all((part in wanted) == (size == "small") for part in program.small_changes)


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


def test_the_page_lists_the_programs_as_they_are():
    table = originals.list_of_programs(original_programs.PROGRAMS)
    path = originals.pages.DATA / originals.PAGE.stem / "list.csv"
    assert path.read_text("utf-8") == originals.pages.plain(table).to_csv(index=False)


@pytest.fixture
def programs(tmp_path, stand_in_program):
    """A folder of programs in which only bfs is there, which launches two kernels."""
    stand_in_program(tmp_path / "programs" / "bfs", "axpy")
    return tmp_path / "programs"


def test_a_program_is_traced_with_its_input(programs, tmp_path, stand_in_program):
    folder, facts = traced(BY_NAME["bfs"], "small", programs, tmp_path / "cache")
    app = ws.load(folder)
    assert [kernel.name for kernel in app] == ["axpy", "axpy"]
    assert facts["trace_seconds"] > 0
    log = (folder.parent / "trace.log").read_text()
    assert "arguments: graph.txt" in log
    assert "beside: graph.txt" in log
    # The trace is kept, until the executable changes.
    again = traced(BY_NAME["bfs"], "small", programs, tmp_path / "cache")
    assert again == (folder, facts)
    stand_in_program(programs / "bfs", "axpy", "# changed")
    changed, _ = traced(BY_NAME["bfs"], "small", programs, tmp_path / "cache")
    assert changed != folder


def test_a_program_that_fails_is_told_without_paths(tmp_path, stand_in_program):
    stand_in_program(tmp_path / "bfs", "machine_code")
    with pytest.raises(ProgramError) as caught:
        traced(BY_NAME["bfs"], "small", tmp_path, tmp_path / "cache")
    first, *rest = str(caught.value).splitlines()
    assert first == "it failed (2)"  # this line goes into the page
    assert "no PTX" in "".join(rest)


@pytest.mark.parametrize("size", original_programs.SIZES)
def test_a_program_that_is_missing_says_what_belongs_there(size, programs, tmp_path):
    with pytest.raises(ProgramError) as caught:
        traced(BY_NAME["2d-convolution"], size, programs, tmp_path / "cache")
    assert str(caught.value).startswith(
        "2d-convolution/program is missing: put there the executable of "
        "CUDA/2DCONV/2DConvolution.cu in gpu-app-collection/src/cuda/polybench-gpu-1.0"
    )
    assert ("`NI` and `NJ` are 256" in str(caught.value)) == (size == "small")


def study(*arguments):
    command = [sys.executable, str(STUDY), *map(str, arguments), "--processes", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_study_goes_on_without_a_program(programs, tmp_path):
    own = ("--cache", tmp_path / "cache", "--scale", "small")
    done = study(programs, *own, "--only", "bfs", "cfd")
    assert done.returncode == 0, done.stderr
    assert "| bfs | Rodinia | MD | 2 | 24 |" in done.stdout
    assert "| cfd |  | cfd/program is missing: put there" in done.stdout
    none = study(programs, *own, "--only", "cfd")
    assert none.returncode == 1
    assert none.stderr.splitlines()[-1] == f"{programs}: no program of it was traced"


@pytest.mark.slow
def test_a_folder_that_is_none_is_one_error(tmp_path):
    (tmp_path / "file").touch()
    for name, why in (("nowhere", "does not exist"), ("file", "is not a folder")):
        done = study(tmp_path / name)
        assert done.returncode == 2
        error = done.stderr.splitlines()[-1]
        assert (
            f"error: FOLDER: {tmp_path / name} {why}: give one laid out as docs/quality/" in error
        )
