"""The study of public programs: its lists, and what it finds in a folder of executables."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from study_programs import writer_of_programs  # noqa: F401

REPOSITORY = Path(__file__).resolve().parents[3]
STUDY = REPOSITORY / "studies" / "suites.py"

sys.path.insert(0, str(STUDY.parent))
import suites  # noqa: E402
from suite_programs import SUITES, Program  # noqa: E402

sys.path.pop(0)

BY_NAME = {suite: {p.name: p for p in programs} for suite, programs in SUITES.items()}


def table_of(name):
    path = suites.pages.DATA / suites.PAGE.stem / f"{name}.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def test_each_program_is_named_once():
    for suite, programs in SUITES.items():
        assert len(BY_NAME[suite]) == len(programs)


def test_the_page_lists_the_programs_as_they_are():
    pd.testing.assert_frame_equal(table_of("list"), suites.pages.plain(suites.list_of_programs()))


def test_the_programs_of_the_table_are_known():
    assert set(table_of("summary")["suite"]) == {*SUITES, "all"}
    for suite, name in table_of("programs")[["suite", "program"]].itertuples(index=False):
        assert not BY_NAME[suite][name].needs, name


def attempt(folder, program, tmp_path):
    return suites.attempt(folder, "SHOC", program, tmp_path / "place", 60)


@pytest.mark.parametrize(
    ("program", "lines", "outcome"),
    [
        (Program("own", "x.cu", verified="PASSED"), ['echo "PASSED $1"'], ("verified", "")),
        (Program("own", "x.cu", verified="PASSED"), [], ("ran", "")),
        (Program("own", "x.cu"), ["echo 3 values mismatch"], ("wrong", "3 values mismatch")),
        (Program("own", "x.cu", needs="Boost"), [], ("not tried", "needs Boost")),
    ],
)
def test_outcomes(program, lines, outcome, tmp_path, stand_in_program):
    stand_in_program(tmp_path / "SHOC" / "own", "axpy", *lines)
    assert attempt(tmp_path, program, tmp_path) == outcome


def test_a_program_runs_in_a_copy_with_its_input(tmp_path, stand_in_program):
    own = tmp_path / "SHOC" / "own"
    stand_in_program(own, "axpy", "touch written")
    (own / "given").touch()
    program = Program(
        "own", "x.cu", ("-s", "1"), make_input=lambda folder: (folder / "made").touch()
    )
    assert attempt(tmp_path, program, tmp_path) == ("ran", "")
    log = (tmp_path / "place" / "run.log").read_text()
    assert "arguments: -s 1\nbeside: given made program\n" in log
    assert {path.name for path in own.iterdir()} == {"program", "given"}


def test_a_program_that_stops_says_why(tmp_path, stand_in_program):
    stand_in_program(tmp_path / "SHOC" / "own", "machine_code")
    outcome, reason = attempt(tmp_path, Program("own", "x.cu"), tmp_path)
    assert outcome == "stopped"
    assert "no PTX but machine code for sm_80" in reason


def test_what_is_missing_says_what_belongs_there(tmp_path):
    program = Program("own", "src/x.cu", build="N = 1", beside="data")
    wanted = "put there the executable of src/x.cu, with N = 1; beside it data"
    assert attempt(tmp_path, program, tmp_path) == (
        "not built",
        f"SHOC/own/program is missing: {wanted}",
    )
    (tmp_path / "SHOC" / "own").mkdir(parents=True)
    (tmp_path / "SHOC" / "own" / "program").write_text("text")
    assert attempt(tmp_path, program, tmp_path) == (
        "not built",
        f"SHOC/own/program is not executable: {wanted}",
    )


def study(*arguments):
    command = [sys.executable, str(STUDY), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_study_of_a_folder(tmp_path, stand_in_program):
    only = ("--only", "SHOC", "--keep", tmp_path / "kept.csv")
    none = study(tmp_path, *only)
    assert none.returncode == 1
    assert none.stderr.splitlines()[-1] == f"{tmp_path}: none of the programs is there"
    # The program that was missing is there now: it is tried although a row of it is kept.
    stand_in_program(tmp_path / "SHOC" / "bfs", "axpy", "echo PASSED")
    done = study(tmp_path, *only)
    assert done.returncode == 0, done.stderr
    assert "| SHOC | 12 | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in done.stdout
    assert "| SHOC | fft | not built | SHOC/fft/program is missing: put there" in done.stdout
    kept = pd.read_csv(tmp_path / "kept.csv")
    assert kept.groupby("outcome").size().to_dict() == {"not built": 11, "verified": 1}


@pytest.mark.slow
def test_a_folder_that_is_none_is_one_error(tmp_path):
    done = study(tmp_path / "nowhere")
    assert done.returncode == 2
    error = done.stderr.splitlines()[-1]
    assert f"error: FOLDER: {tmp_path / 'nowhere'} does not exist: give one laid out as" in error
