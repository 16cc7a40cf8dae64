"""The documentation says everything that the package has, and its links lead somewhere."""

import argparse
import os
import re
from inspect import ismodule
from pathlib import Path

import pytest

import warpstack as ws
from doc_pages import text_of
from warpstack import cli

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
KINDS = ("tutorial", "how-to", "explanation", "reference", "quality")
OWN = sorted([*DOCS.glob("*.md"), *(page for kind in KINDS for page in DOCS.glob(f"{kind}/*.md"))])
#: Words with a capital within a title.
NAMES = {"Accel-Sim", "Numba", "H100"}
PAGES = [*OWN, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def entries(page):
    """Return the pages that the toctrees of a MyST page name, as paths from ``docs``."""
    trees = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL)
    lines = [line for tree in trees for line in tree.splitlines()]
    named = [line for line in lines if line and not line.startswith(":")]
    return [os.path.normpath(page.parent.relative_to(DOCS) / line) for line in named]


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "reference/api.rst").read_text()
    listed = re.findall(r"^   ([\w.]+)$", text, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    # A module's page has all that is in it, but for modules: they have pages of their own.
    modules = {name: getattr(ws, name) for name in ws.__all__ if ismodule(getattr(ws, name))}
    below = {
        f"{name}.{inner}"
        for name, module in modules.items()
        for inner in module.__all__
        if ismodule(getattr(module, inner))
    }
    assert below > {"cuda.host", "exploration.samples"}
    assert set(listed) == {*ws.__all__, *below} - {"__version__"}


def test_every_page_has_its_place():
    """Pages and notebooks are in the table of contents, once."""
    listed = [entry for page in OWN for entry in entries(page)]
    assert len(listed) == len(set(listed))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in OWN} - {"index"}
    pages |= {"reference/api"}
    notebooks = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    generated = {"figures/index"} | {
        f"reference/generated/{name}" for name in ("command-line", "gpu-fields")
    }
    assert set(listed) == pages | notebooks | generated


def test_four_kinds_of_pages():
    """The front page leads to the kinds, and each of them to its pages, with a line for each."""
    assert entries(DOCS / "index.md") == [
        f"{kind}/index" for kind in ("tutorial", "how-to", "explanation", "reference")
    ]
    for kind in KINDS:
        page = DOCS / kind / "index.md"
        linked = re.findall(
            r"^- (?:\[.*?\]\(|\{doc\}`.*?<)([^)>#]+)", page.read_text(), re.MULTILINE
        )
        paths = [os.path.normpath(Path(kind) / link).removesuffix(".md") for link in linked]
        assert paths == entries(page), kind


@pytest.mark.parametrize("page", OWN, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_titles_are_in_sentence_case(page):
    """Words after the first are small unless they are names, which have a capital elsewhere, too."""
    found = re.match(r"# (.*)", page.read_text())
    if found is None:
        return  # what it includes has one
    words = re.findall(r"[A-Za-z][\w'-]*", re.sub(r"`[^`]*`|: \w+", "", found[1]))
    assert not {word for word in words[1:] if word.istitle() and len(word) > 1} - NAMES


def words_of(text):
    """Return how many words of prose a page has: outside of tables, code, directives, equations, titles."""
    text = re.sub(r"^(`{3,}).*?^\1[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->|!\[.*?\]\(.*?\)", "", text, flags=re.DOTALL)
    text = re.sub(r"^( *\||#|    ( *>>>|\S)).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return sum(re.search("[A-Za-z]", word) is not None for word in text.split())


def test_words_of_prose():
    text = "# A title\n\nTwo [words](of/a/page.md), - 3\n\n| a | b |\n\n    code here\n\n```sh\nx y\n```\n"
    assert words_of(text) == 2


@pytest.mark.parametrize(
    "page", [*OWN, DOCS / "figures/index.md"], ids=lambda page: str(page.relative_to(DOCS))
)
def test_no_page_is_too_long_to_read(page):
    assert words_of(page.read_text()) <= 1500, "divide the page by topic"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_are_there_and_described(page):
    for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text()):
        assert len(words) > 15, (page.name, target)
        assert (page.parent / target).stat().st_size < 300_000, target


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
        for option, action in command._option_string_actions.items():
            if action.help != argparse.SUPPRESS:
                assert option in section, (name, option)
    fields = namespace["gpu_fields"]()
    assert all(f"| `{field}` |" in fields for field in ws.Gpu.fields())


def explained():
    """Return the terms of the glossary and the names that tables of the reference pages begin with."""
    glossary = (DOCS / "glossary.md").read_text()
    blocks = re.findall(r"```\{glossary\}\n(.*?)```", glossary, flags=re.DOTALL)
    terms = [line for block in blocks for line in block.splitlines() if re.match(r"\S", line)]
    assert len(terms) == len(set(terms))
    names = set(terms)
    for page in DOCS.glob("reference/*.md"):
        for cell in re.findall(r"^\| (`[^|]*) \|", text_of(page), flags=re.MULTILINE):
            names.update(re.findall(r"`(\w+)`", cell))
    return names


def test_every_column_is_explained():
    """The columns of what `ws.predict`, `ws.sweep` and `ws.timing.as_table` return are in the reference."""
    app = ws.App([ws.patterns.strided(gs=8, blocks=2, iterations=2)])
    axes = {"num_sms": [2, 4]}
    known = explained()
    tables = {
        "predict": ws.predict(app, "pascal-mdm", "all"),
        "totals": ws.models.application_totals(ws.predict(app, "pascal-mdm", ["mdm"])),
        "sweep": ws.sweep(app, "pascal-mdm", axes, ["mdm"], cache=False).drop(columns=list(axes)),
        "lines": ws.lines(app, "pascal-mdm"),
        "simulation": ws.timing.as_table(ws.simulate(app, "pascal-mdm")),
    }
    for name, table in tables.items():
        assert not set(table.columns) - known, name


def test_every_counter_is_explained():
    kernel = ws.patterns.strided(gs=8, blocks=2, iterations=2)
    names = explained()
    profile = ws.simulate_caches(kernel, "pascal-mdm")
    counters = set(profile.totals) | set(profile.hit_rates())
    text = (DOCS / "reference/statistics.md").read_text()
    assert not {name for name in counters - names if f"`{name}`" not in text}


def test_glossary_has_an_entry_for_each_reference_to_a_term():
    known = {term.lower() for term in explained()}
    for page in OWN:
        for term in re.findall(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`", page.read_text()):
            assert term.lower() in known, (page.name, term)
