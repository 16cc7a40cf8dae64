"""Parts of the package import only parts before them, in the order that CONTRIBUTING.md gives."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOADER = SourceFileLoader("import_graph", str(ROOT / "tools/import-graph"))
graph = module_from_spec(spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(graph)


def order():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(r"\*\*The parts of the Python package.*?\n\n(\|.*?)\n\n", text, re.DOTALL)
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


@pytest.fixture(scope="module")
def edges():
    return graph.module_imports(ROOT / "python/warpstack")


def test_every_part_is_in_the_order(edges):
    found = {path.stem for path in (ROOT / "python/warpstack").glob("*.py*")} - {"py"}
    found |= {path.parent.name for path in (ROOT / "python/warpstack").glob("*/__init__.py")}
    assert set(order()) == found
    assert {graph.part_of(module) for edge in edges for module in edge} == set(order())


def test_parts_import_only_those_before_them(edges):
    place = {part: number for number, part in enumerate(order())}
    wrong = [
        f"{one} imports {other}"
        for one, other in sorted(edges)
        if place[graph.part_of(one)] < place[graph.part_of(other)]
    ]
    assert not wrong


def test_no_circles(edges):
    arrows = graph.arrows_of(edges)
    assert graph.circles(arrows) == []
    assert (
        graph.circles({edge for edge in edges if "__init__" not in map(graph.part_of, edge)}) == []
    )
    # Half of those of version 0.1.0, counted the same way, are 127; `reporting` puts the results of the
    # others side by side, several parts read the core's table of a GPU's fields, and `timelines` uses seven.
    assert len(arrows) <= 157


def folders_of_the_core():
    """Return {folder: what it uses}, as CONTRIBUTING.md has them; None for all."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(r"\*\*The folders of the core.*?\n\n(\|.*?)\n\n", text, re.DOTALL)
    rows = re.findall(r"^\| `([\w/]+)` \|.*\| ([^|]*) \|$", table, re.MULTILINE)
    return {
        folder: None if uses == "all" else re.findall(r"`([\w/]+)`", uses) for folder, uses in rows
    }


def reached_from(folder, uses):
    reached, waiting = {folder}, [folder]
    while waiting:
        for other in uses[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def core_sources():
    return [path for path in (ROOT / "cpp").rglob("*") if path.suffix in (".h", ".cpp", ".inc")]


def test_folders_of_the_core_use_what_is_named():
    uses = folders_of_the_core()
    edges = graph.includes(ROOT / "cpp")
    found = {path.parent.relative_to(ROOT / "cpp").as_posix() for path in core_sources()}
    assert found == set(uses)
    wrong = [
        f"{one} includes {other}"
        for one, other in sorted(edges)
        if uses[graph.folder_of(one)] is not None
        and graph.folder_of(other) not in reached_from(graph.folder_of(one), uses)
    ]
    assert not wrong


def test_folders_of_the_core_come_after_what_they_use():
    before = set()
    for folder, used in folders_of_the_core().items():
        assert used is None or before.issuperset(used), folder
        before.add(folder)


def test_folders_of_the_core_are_small():
    sizes = {}
    for path in core_sources():
        sizes.setdefault(path.parent, []).append(path.read_bytes().count(b"\n"))
    assert {str(f): len(lines) for f, lines in sizes.items() if len(lines) > 40} == {}
    assert {str(f): sum(lines) for f, lines in sizes.items() if sum(lines) > 5500} == {}


def package(folder, files):
    for name, text in files.items():
        path = folder / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return graph.module_imports(folder / "house")


@pytest.mark.parametrize(
    "back",
    [
        "from house import stairs\n",
        "from house.stairs.steps import up\n",
        "from ..stairs import steps\n",
        "import house.stairs.steps\n",
        "def f():\n    from house.stairs import steps\n",
        "class A:\n    def f(self):\n        if self:\n            import house.stairs\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house import stairs\n",
    ],
)
def test_circles_are_found(tmp_path, back):
    """Wherever and however the import is written that closes the circle."""
    files = {
        "__init__.py": "from house import hall\n",
        "hall/__init__.py": "",
        "hall/door.py": "",
        "stairs/__init__.py": "",
        "stairs/steps.py": "from house.hall.door import open\n",
    }
    edges = package(tmp_path, files)
    assert graph.arrows_of(edges) == {("__init__", "hall"), ("stairs", "hall")}
    assert graph.circles(graph.arrows_of(edges)) == []
    edges = package(tmp_path, {**files, "hall/door.py": back})
    assert graph.arrows_of(edges) == {("__init__", "hall"), ("stairs", "hall"), ("hall", "stairs")}
    assert graph.circles(graph.arrows_of(edges)) == [["hall", "stairs"]]


def test_circles_by_a_detour(tmp_path):
    files = {"a.py": "from house import b", "b.py": "from house import c", "c.py": "import house.a"}
    edges = package(tmp_path, files)
    assert graph.circles(edges) == [["house.a", "house.b", "house.c"]]
    assert graph.circles(package(tmp_path, {"c.py": "import os"})) == []


def test_lengths_of_functions():
    source = """\
namespace a {  // {
struct B {
  explicit B(int x) : x_{x}, y_{
    2} {
    if (x) {
    }
  }
  int x_ = 3, y_{4};
};
class alignas(8) C {
  template <typename T>
  T f() const {
    return [] {
      return '}';
    }();
  }
};
constexpr int table[] = {
  g(1),
};
}
"""
    found = [(start, lines, head) for start, lines, head in graph.functions(source)]
    assert [(start, lines) for start, lines, _ in found] == [(3, 5), (11, 6)]
    assert "T f() const" in found[1][2]
