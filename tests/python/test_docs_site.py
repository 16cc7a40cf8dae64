"""The documentation says everything that the package has, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

import warpstack as ws
from warpstack import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md", *ROOT.glob("CONTRIBUTING.md")])


def entries(text):
    """Return the pages that the toctrees of a MyST page name."""
    trees = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^   (\w+)$", (DOCS / "api.rst").read_text(), flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(ws.__all__) - {"__version__"}


def test_every_page_has_its_place():
    """Pages and notebooks are in the table of contents, once."""
    listed = entries((DOCS / "index.md").read_text())
    assert len(listed) == len(set(listed))
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"} | {"api"}
    notebooks = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    generated = {"figures/index", "generated/command-line", "generated/gpu-fields"}
    assert set(listed) == pages | notebooks | generated


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            here = target.startswith(("generated/", "../generated/"))
            assert here or (page.parent / target).exists(), target


def test_command_line_page():
    """The page is the parser's help, every command with every option."""
    namespace = {"__file__": str(DOCS / "conf.py"), "__name__": "conf"}
    exec((DOCS / "conf.py").read_text(), namespace)
    page = namespace["command_line"]()
    groups = [a for a in cli.make_parser()._actions if isinstance(a.choices, dict)]
    assert len(groups) == 1
    for name, command in groups[0].choices.items():
        section = page.partition(f"\n## warpstack {name}\n")[2].partition("\n## ")[0]
        for option in command._option_string_actions:
            assert option in section, (name, option)
    fields = namespace["gpu_fields"]()
    assert all(f"| `{field}` |" in fields for field in ws.Gpu.fields())
