"""The programs that make the documentation's tables: each starts, and its page has a place for them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from doc_pages import text_of

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


def test_a_text_goes_to_the_file_that_its_page_includes(pages, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "TABLES", tmp_path / "tables")
    page = tmp_path / "how-to" / "page.md"
    page.parent.mkdir()
    page.write_text("a\n\n```{include} ../tables/page/x.md\n```\n\nb\n")
    for text in ("one", "two"):
        pages.publish(page, {"x": text}, True)
    assert text_of(page) == "a\n\ntwo\n\n\nb\n"
    pages.publish(page, {"x": "three"}, False)
    assert "two" in text_of(page)
    assert capsys.readouterr().out == "one\ntwo\nthree\n"
    with pytest.raises(
        ValueError, match=r"does not include .*y\.md: add ```\{include\} \.\./tables"
    ):
        pages.write_table(page, "y", "one")
    assert not (tmp_path / "tables" / "page" / "y.md").exists()


def test_labels_are_left_of_numbers(pages):
    table = pd.DataFrame({"a": ["x", "y"], "b": [1, 20], "c": [0.25, float("nan")]})
    assert pages.markdown(table).splitlines() == [
        "| a | b | c |",
        "|---|---:|---:|",
        "| x | 1 | 0.2 |",
        "| y | 20 | - |",
    ]
    assert pages.markdown(table, labels=0).splitlines()[1] == "|---:|---:|---:|"
