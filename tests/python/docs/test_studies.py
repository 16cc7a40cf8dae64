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


def test_a_table_goes_to_the_file_that_its_page_names(pages, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "DATA", tmp_path / "data")
    monkeypatch.setattr(pages, "MACHINES", tmp_path / "data" / "machines.csv")
    page = tmp_path / "how-to" / "page.md"
    page.parent.mkdir()
    page.write_text("a\n\n```{data-table} ../data/page/x.csv\n```\n")
    for value in (1.25, 2.5):
        pages.publish(page, {"x": pd.DataFrame({"a": [value]})}, True, where="a machine")
    file = tmp_path / "data" / "page" / "x.csv"
    assert file.read_text() == "a\n2.5\n"
    assert (tmp_path / "data" / "machines.csv").read_text() == "table,machine\npage/x,a machine\n"
    pages.publish(page, {"x": pd.DataFrame({"a": ["three"]})}, False)
    assert file.read_text() == "a\n2.5\n"
    said = capsys.readouterr().out
    assert said.count("| a |\n| --- |\n| 1.2 |\n\nMeasured on: a machine.\n") == 1
    assert said.endswith("x\n\n| a |\n| --- |\n| three |\n\n")
    with pytest.raises(ValueError, match=r"does not name \.\./data/page/y\.csv: show it with"):
        pages.write_table(page, "y", pd.DataFrame({"a": [1]}))
    assert not file.with_name("y.csv").exists()


def test_texts_of_numbers_become_numbers(pages):
    table = pd.DataFrame(
        {
            "error": ["+15 %", "-0.4 %", "-"],
            "count": ["1,234,567", "12", "-0"],
            "`code`": ["`a` and `b`", "1,2", "x"],
            "mixed": ["5 %", "5", ""],
            "time (µs)": [0.25, 1, float("nan")],
            "small": ["1e-03", "5.87e+03", "+2"],
        }
    )
    assert pages.plain(table).to_csv(index=False).splitlines() == [
        "error (%),count,code,mixed,time (us),small",
        "15,1234567,a and b,5 %,0.2,1e-03",
        '-0.4,12,"1,2",5,1.0,5.87e+03',
        ",0,x,,,2",
    ]
    with pytest.raises(ValueError, match="two columns have the name 'a'"):
        pages.plain(pd.DataFrame([[1, 2]], columns=["a", "`a`"]))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["accelsim_fresh", "NONE"], "argument shared: NONE does not exist: give"),
        (
            ["accelsim_fresh", "EMPTY"],
            "argument shared: EMPTY/reference/accelsim/fresh.csv does not exist: give",
        ),
        (["accelsim", "NONE/a.csv", "EMPTY"], "argument reference: NONE/a.csv does not exist"),
        (["accelsim_workloads", "EMPTY", "EMPTY"], "EMPTY/workloads.csv does not exist"),
        (["trust", "--accelsim", "EMPTY", "NONE"], "argument --accelsim: NONE does not exist"),
        (["hardware", "EMPTY"], "EMPTY/h100-emptykernel-grid.csv does not exist"),
        (["hardware_ablation", "NONE"], "argument reference: NONE does not exist"),
        *(
            (
                ["random_kernels", "--shrink", text],
                f"--shrink {text}: expected SEED:NUMBER, such as",
            )
            for text in ("202", "202:x", "202:", "1:2:3", "")
        ),
    ],
)
def test_what_is_not_there_is_one_error(tmp_path, monkeypatch, capsys, command, message):
    places = {"NONE": str(tmp_path / "none"), "EMPTY": str(tmp_path)}
    for name, place in places.items():
        command = [word.replace(name, place) for word in command]
        message = message.replace(name, place)
    monkeypatch.syspath_prepend(str(STUDIES))
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as caught:
        importlib.import_module(command[0]).main()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
