"""The programs that make the documentation's tables: each starts, and its page has a place for them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
STUDIES = REPOSITORY / "studies"
#: Modules that several studies share.
SHARED = ("error_points", "pages")
PROGRAMS = sorted(path.stem for path in STUDIES.glob("*.py") if path.stem not in SHARED)
#: Starts all in one process, as each takes a second to load what it uses.
START = """
import contextlib, importlib, sys
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    with contextlib.suppress(SystemExit):
        importlib.import_module(name).main()
    print(f"== {name}")
"""


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("pages", STUDIES / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_each_study_starts_and_contributing_names_it():
    process = subprocess.run(
        [sys.executable, "-c", START, *PROGRAMS],
        cwd=STUDIES,
        capture_output=True,
        text=True,
        check=True,
    )
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text()
    for name, said in zip(PROGRAMS, process.stdout.split("usage: ")[1:], strict=True):
        assert "--write" in said, name
        assert f"python studies/{name}.py" in said  # the command that its docstring gives
        assert f"| `studies/{name}.py" in guide


def test_a_text_goes_between_its_marks(pages, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n")
    for text in ("one", "two"):
        pages.write_between_marks(page, "x", text)
    assert page.read_text() == "a\n<!-- x: begin -->\n\ntwo\n\n<!-- x: end -->\nb\n"


def test_labels_are_left_of_numbers(pages):
    table = pd.DataFrame({"a": ["x", "y"], "b": [1, 20], "c": [0.25, float("nan")]})
    assert pages.markdown(table).splitlines() == [
        "| a | b | c |",
        "|---|---:|---:|",
        "| x | 1 | 0.2 |",
        "| y | 20 | - |",
    ]
    assert pages.markdown(table, labels=0).splitlines()[1] == "|---:|---:|---:|"
