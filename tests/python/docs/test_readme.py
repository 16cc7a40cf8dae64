"""What the README and the first page of the tutorial show is what a user sees."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws
from warpstack.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TUTORIAL = (REPOSITORY / "docs/tutorial/first-prediction.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def strided(tmp_path_factory):
    """Make the trace of the ready PTX: compilers of other versions may make other instructions."""
    folder = tmp_path_factory.mktemp("demo") / "strided"
    script = REPOSITORY / "data" / "kernels" / "strided.py"
    subprocess.run([sys.executable, script, folder, "--ptx"], check=True)
    return folder


@pytest.mark.slow
def test_table_of_the_tutorial_is_the_real_output(strided, capsys):
    shown = re.search(r"```\n(strided on pascal-mdm.*?)\n```", TUTORIAL, re.DOTALL)[1]
    command = re.search(r"\.venv/bin/warpstack (predict build/strided .*)", TUTORIAL)[1].split()
    command[1] = str(strided)
    assert main(command[: command.index("--plot")]) == 0
    assert capsys.readouterr().out.strip() == shown


@pytest.mark.slow
def test_answer_of_the_readme_is_what_the_command_says(strided, tmp_path, capsys):
    """Each row has the model's IPC, and names the largest part of its CPI stack."""
    command = re.search(r"\.venv/bin/warpstack (predict build/strided .*)", README)[1].split()
    command[1] = str(strided)
    assert main([*command, "--csv"]) == 0
    (tmp_path / "table.csv").write_text(capsys.readouterr().out)
    table = pd.read_csv(tmp_path / "table.csv").set_index(["name", "model"])
    rows = re.findall(
        r"^\| `(strided_\w+)` \| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| .*?\(`(\w+)`\)",
        README,
        re.MULTILINE,
    )
    assert [row[:2] for row in rows] == list(table.index)
    stack = [column for column in table if column.startswith("cpi_")]
    for name, model, cycles, simulated, ipc, largest in rows:
        row = table.loc[(name, model)]
        assert f"{row['cycles']:,.0f}" == cycles
        assert f"{row['simulated']:,.0f}" == simulated
        assert f"{row['ipc']:.3f}" == ipc
        assert row[stack].astype(float).idxmax() == f"cpi_{largest}"


@pytest.mark.slow
def test_reason_in_the_readme_is_what_the_command_says(strided, capsys):
    command = re.search(r"\.venv/bin/warpstack (predict build/strided .*)", README)[1].split()
    command[1] = str(strided)
    assert main(command) == 0
    reasons = capsys.readouterr().out.partition("most probable reason")[2]
    busy = re.search(r"the NoC is busy for (\d+) % of the simulated cycles", README)[1]
    reasons = " ".join(reasons.split())
    for model in ("gpumech", "mdm"):
        assert (
            f"2 strided_gs32, {model}: saturation: the NoC is busy for {busy} % of the simulated cycles"
            in reasons
        )
    assert "strided_gs1" not in reasons


@pytest.mark.slow
def test_python_of_the_readme():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    assert set(names["table"]["model"]) == {"gpumech", "mdm"}
    assert len(names["results"]) == len(names["profiles"]) == len(names["app"].kernels)


def test_python_of_the_tutorial_names_what_exists():
    names = set(re.findall(r"ws\.([a-z_.]+[a-z])\(", TUTORIAL))
    assert len(names) > 8
    for name in names:
        found = ws
        for part in name.split("."):
            found = getattr(found, part)


def test_readme_is_short():
    assert len(README.splitlines()) <= 80


def test_tools_exist():
    for tool in set(re.findall(r"tools/\w+", README + TUTORIAL)):
        assert (REPOSITORY / tool).stat().st_mode & 0o100


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("[!n]*/*.md"))]
)
def test_links_lead_somewhere(page):
    # What looks like a link in code is an index and a call.
    text = re.sub(
        r"```.*?```|`[^`\n]*`(?!\])", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
