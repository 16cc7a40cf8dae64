"""What the README shows is what a user sees."""

import re
import shlex
from pathlib import Path

import pytest

import warpstack as ws
from warpstack.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TUTORIAL = (REPOSITORY / "docs/tutorial/first-prediction.md").read_text(encoding="utf-8")


def readme_answer(capsys, replaced=("", "")):
    """Return what the README's command prints; of the ready PTX, as compilers differ."""
    command = shlex.split(re.search(r"\.venv/bin/warpstack (predict data/kernels/.*)", README)[1])
    command[1] = str(REPOSITORY / command[1].replace(".cu", ".ptx"))
    assert main([word.replace(*replaced) for word in command]) == 0
    return capsys.readouterr().out.strip()


@pytest.mark.slow
def test_answer_of_the_readme_is_what_the_command_says(capsys):
    (shown,) = re.findall(r"```\n(strided on pascal-mdm.*?)\n```", README, re.DOTALL)
    assert readme_answer(capsys) == shown


@pytest.mark.slow
def test_words_of_the_readme_are_the_numbers_of_the_answer(capsys):
    words = " ".join(README.split())
    time, ipc, share = re.search(
        r"takes ([\d.]+) microseconds\. .*? execute ([\d.]+) instructions .*? for (\d+) %", words
    ).groups()
    (row,) = re.findall(r"^strided_gs32 .*MSHR.*$", readme_answer(capsys), re.MULTILINE)
    assert row.split()[1:3] == [time, ipc]
    assert row.endswith(f"(mshr), {share} %")
    sister = re.search(r"neighbouring words, takes ([\d.]+[0-9])\.", words)[1]
    answer = readme_answer(capsys, ("strided_gs32", "strided_gs1"))
    assert re.search(rf"^strided_gs1 +{sister} ", answer, re.MULTILINE)
    opinion = re.search(r"literature, says (\d+) % more", words)[1]
    assert f"(+{opinion} %)" in readme_answer(capsys)


@pytest.mark.slow
def test_python_of_the_readme():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    assert set(names["table"]["model"]) == {"gpumech", "mdm"}
    assert len(names["results"]) == len(names["profiles"]) == len(names["app"].kernels)


def test_python_of_the_tutorial_names_what_exists():
    names = set(re.findall(r"ws\.([a-z_.]+[a-z])\(", TUTORIAL))
    assert len(names) > 4
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
    "page", [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("[!n]*/**/*.md"))]
)
def test_links_lead_somewhere(page):
    # Text in code that looks like a link is an index and a call.
    text = re.sub(
        r"```.*?```|`[^`\n]*`(?!\])", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
