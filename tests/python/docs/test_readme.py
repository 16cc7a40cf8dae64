"""What the README shows is what a user sees."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.cuda.toolchain import find_nvcc

REPOSITORY = Path(__file__).resolve().parents[3]

sys.path.insert(0, str(REPOSITORY / "studies"))
import trust  # noqa: E402

sys.path.pop(0)

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TUTORIAL = (REPOSITORY / "docs/tutorial/first-prediction.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return the trace of the README's program, by the compiler that made the PTX beside it."""
    ptx = (REPOSITORY / "data/kernels/matvec.ptx").read_text(encoding="utf-8")
    release = re.search(r"release ([\d.]+)", ptx)[1]
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("nvcc is not installed (warpstack[cuda] brings it)")
    said = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if f"release {release}," not in said:
        pytest.skip(f"the README was made with nvcc {release}; others make other instructions")
    folder = tmp_path_factory.mktemp("readme") / "matvec"
    source = str(REPOSITORY / "data/kernels/matvec.cu")
    assert main(["trace", "-o", str(folder), source]) == 0
    return folder


def readme_command(name, folder):
    """Return the words of a command of the README about its program, of which there is a trace."""
    (text,) = re.findall(rf"warpstack ({name} data/kernels/matvec\.cu .*?)(?:`|\n)", README)
    words = text.split()
    source = REPOSITORY / words[1]
    words[1] = str(folder)
    return words if name == "predict" else [*words, "--source", str(source)]


@pytest.mark.slow
def test_answers_of_the_readme_are_what_the_commands_say(compiled, capsys):
    blocks = re.findall(r"```\n(.*?)\n```", README, re.DOTALL)
    assert main(readme_command("predict", compiled)) == 0
    assert capsys.readouterr().out.startswith(f"{blocks[0]}\n\nSecond opinion")
    assert main(readme_command("lines", compiled)) == 0
    assert "\n".join(line.strip() for line in blocks[1].splitlines()) in "\n".join(
        line.strip() for line in capsys.readouterr().out.splitlines()
    )
    assert len(blocks) == 2


@pytest.mark.slow
def test_words_of_the_readme_are_the_numbers_of_the_answer(tmp_path):
    """Of the ready PTX, whose arrays lie elsewhere than the program's: times differ a little."""
    script = REPOSITORY / "data/kernels/matvec.py"
    subprocess.run([sys.executable, script, tmp_path / "matvec", "--ptx"], check=True)
    times = ws.predict(ws.load(tmp_path / "matvec"), "h100-pcie").set_index("name")["time_us"]
    words = " ".join(README.split())
    both = float(re.search(r"the prediction is (\d+)", words)[1])
    assert both == pytest.approx(times["rows"] + times["columns"], abs=0.6)
    faster = float(re.search(r"it is ([\d.]+) times as fast", words)[1])
    assert faster == pytest.approx(times["rows"] / times["warp_per_row"], abs=0.1)
    measured, percent = re.search(r"takes (\d+) µs for both.*?says (\d+) % less", words).groups()
    assert float(percent) == pytest.approx(100 * (1 - both / float(measured)), abs=0.6)


def test_table_of_trust_is_what_the_studies_last_made():
    kept = (trust.DATA / "hardware.csv", trust.DATA / "accelsim.csv", trust.RANDOM)
    made = trust.table(*map(pd.read_csv, kept))
    for page in trust.PAGES:
        (shown,) = trust.MARK.findall(page.read_text(encoding="utf-8"))
        assert f"{shown[0]}{made}\n{shown[1]}" in page.read_text(encoding="utf-8")


def test_trust_and_the_page_of_the_simulator_ran_accelsim_s_machine_alike():
    """Launch by launch, both kept the same of the fresh launches, to the digits of either."""
    keys = ["application", "kernel"]
    kept = pd.read_csv(trust.DATA / "accelsim.csv").query("kind == 'fresh'").set_index(keys)
    page = pd.read_csv(REPOSITORY / "docs/data/simulator/fresh.csv").set_index(keys)
    for name in ("cycles", "simulator", "interval_simulation", "closed_network"):
        assert kept[name].to_dict() == pytest.approx(page[name].to_dict(), rel=5e-5, abs=0.06), name


@pytest.mark.slow
def test_python_of_the_readme():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    assert set(names["table"]["model"]) == {"closed_network", "mdm"}


def test_python_of_the_tutorial_names_what_exists():
    names = set(re.findall(r"ws\.([a-z_.]+[a-z])\(", TUTORIAL))
    assert len(names) > 4
    for name in names:
        found = ws
        for part in name.split("."):
            found = getattr(found, part)


def test_readme_is_short():
    assert len(README.splitlines()) <= 90


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
