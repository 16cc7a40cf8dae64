"""The tables of the documentation as CSV files: who writes each, and what pages show of them."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
DATA = DOCS / "data"
FILES = sorted(DATA.glob("*/*.csv"))

sys.path.insert(0, str(DOCS / "_extensions"))
import csv_columns  # noqa: E402

sys.path.pop(0)

DIRECTIVE = re.compile(r"^```\{data-table\} (\S+)\n((?::.*\n)*)```$", re.MULTILINE)


def directives(page):
    """Return file and options of each directive of a page."""
    for target, text in DIRECTIVE.findall(page.read_text("utf-8")):
        options = dict(re.fullmatch(r":(\w+): (.*)", line).groups() for line in text.splitlines())
        yield (page.parent / target).resolve(), options


PAGES = sorted(page for page in DOCS.rglob("*.md") if "{data-table}" in page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_show_what_files_have(page):
    text = page.read_text("utf-8")
    found = list(directives(page))
    assert len(found) == text.count("```{data-table}")
    for path, options in found:
        assert set(options) <= set(csv_columns.OPTIONS)
        (head, *cells), _ = csv_columns.selected(path, options)
        assert cells, path
        assert all(len(row) == len(head) for row in cells)


def names_in(program):
    """Return a pattern for each text of a program: what is filled in may be anything."""
    for node in ast.walk(ast.parse(program.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (
                re.escape(part.value) if isinstance(part, ast.Constant) else "[\\w.-]*"
                for part in node.values
            )
            yield "".join(parts)


def programs():
    """Return the programs that the list of folders names for each."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", (DATA / "README.md").read_text(), re.MULTILINE)
    return {
        folder: [ROOT / name for name in re.findall(r"`([\w/]+\.py)", text)]
        for folder, text in rows
    }


def test_every_file_is_written_by_a_program_of_its_folder():
    known = programs()
    assert set(known) == {path.name for path in DATA.iterdir() if path.is_dir()}
    counted = {DATA / "machine-code" / "functions.csv"}  # by hand, as the list says
    for folder, paths in known.items():
        patterns = [
            pattern for path in paths for pattern in names_in(path) if pattern != "[\\w.-]*"
        ]
        for file in sorted(set((DATA / folder).glob("*.csv")) - counted):
            assert any(re.fullmatch(pattern, file.stem) for pattern in patterns), file


def test_every_file_is_on_the_page_of_its_folder():
    for file in FILES:
        stem = {"trust": "accuracy"}.get(file.parent.name, file.parent.name)
        pages = DOCS.glob(f"*/{stem}.md")
        name = f"../data/{file.parent.name}/{file.name}"
        assert any(name in page.read_text("utf-8") for page in pages), file


def test_files_are_tables_of_one_width():
    assert {path.suffix for path in DATA.rglob("*") if path.is_file()} == {".csv", ".md"}
    for file in FILES:
        heads, rows = csv_columns.read(file)
        assert len(set(heads)) == len(heads), file
        assert all(None not in row and None not in row.values() for row in rows), file
        cells = [cell for row in rows for cell in row.values()]
        assert not [cell for cell in cells if re.fullmatch(r"[-+]?[\d.,]+ ?%|\+[\d.]+", cell)], file


def test_the_machines_are_those_of_tables():
    _, rows = csv_columns.read(DATA / "machines.csv")
    assert all((DATA / f"{row['table']}.csv").is_file() for row in rows)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('kind,"a, b (%)",count\nx,1.25,12345\ny,-2,7\nz,,1000000\n')
    return path


def test_what_is_shown(file):
    assert csv_columns.selected(file, {}) == (
        [
            ["kind", "a, b (%)", "count"],
            ["x", "1.25", "12,345"],
            ["y", "-2", "7"],
            ["z", csv_columns.NOTHING, "1,000,000"],
        ],
        3,
    )
    options = {
        "columns": "count as n | a, b (%)",
        "rows": "kind = y | x",
        "format": "a, b (%): .1f",
    }
    assert csv_columns.selected(file, options)[0] == [
        ["n", "a, b (%)"],
        ["12,345", "1.2"],
        ["7", "-2.0"],
    ]
    assert len(csv_columns.selected(file, {"rows": "2"})[0]) == 3
    assert csv_columns.selected(file, {"rows": "kind != x & count != 7"})[0][1][0] == "z"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "sort"}, "there is no column 'sort'; there are: kind | a, b (%) | count"),
        ({"rows": "sort = x"}, "there is no column 'sort'"),
        ({"rows": "kind = w"}, "rows: no 'kind' is 'w'"),
        ({"rows": "kind"}, "rows: 'kind' is neither a number nor `column = value`"),
        ({"format": "kind: .1f"}, "format: 'x' has no format '.1f'"),
    ],
)
def test_what_is_not_there_is_one_error(options, said, file):
    with pytest.raises(csv_columns.DataTableError, match=re.escape(said)):
        csv_columns.selected(file, options)


def test_a_file_that_is_not_there_and_a_table_that_is_too_wide(file):
    with pytest.raises(csv_columns.DataTableError, match=r"there is no file .*y\.csv"):
        csv_columns.selected(file.with_name("y.csv"), {})
    file.write_text(",".join(map(str, range(10))) + "\n")
    with pytest.raises(csv_columns.DataTableError, match="10 columns are too wide for a page"):
        csv_columns.selected(file, {})
