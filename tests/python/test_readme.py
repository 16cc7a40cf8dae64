"""What the README shows is what a user sees."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from warpstack.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_first_screen_is_the_real_output(tmp_path, capsys):
    # Of the ready PTX: compilers of other versions may make other instructions.
    shown = re.search(r"```\n(strided on pascal-mdm.*?)\n```", README, re.DOTALL)[1]
    script = REPOSITORY / "data" / "kernels" / "strided.py"
    subprocess.run([sys.executable, script, tmp_path / "strided", "--ptx"], check=True)
    assert main(["predict", str(tmp_path / "strided")]) == 0
    assert capsys.readouterr().out.strip() == shown


def test_tools_exist():
    for tool in set(re.findall(r"tools/\w+", README)):
        assert (REPOSITORY / tool).stat().st_mode & 0o100


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
