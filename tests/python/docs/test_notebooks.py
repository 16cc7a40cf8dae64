"""The notebooks run from top to bottom, and the two files of each say the same."""

import ast
import contextlib
import io
import linecache
import time
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import warpstack as ws

FOLDER = Path(__file__).resolve().parents[3] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells_of_notebook(name):
    """Return kind and text of each cell of the ``.ipynb``."""
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    return notebook, [(cell.cell_type, cell.source) for cell in notebook.cells]


def cells_of_text(name):
    """Return the same of the Markdown beside it, in the MyST form that jupytext writes."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    assert "formats: ipynb,md:myst" in front
    cells = []
    for number, part in enumerate(body.split("```{code-cell}")):
        prose = part
        if number:
            code, _, prose = part.partition("\n```\n")
            cells.append(("code", code.partition("\n")[2]))
        cells += [("markdown", text.strip("\n")) for text in prose.split("\n+++\n")]
    return [cell for cell in cells if cell[1]]


def test_there_are_pairs():
    assert len(NAMES) >= 9
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_pair(name):
    notebook, cells = cells_of_notebook(name)
    assert cells == cells_of_text(name)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def display_cell(source, namespace, name):
    """Run a cell as a kernel does, and return what it shows, of its kind: HTML, text and pictures."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    last = None
    if isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, name, "exec"), namespace)
    shown = []
    if last is not None:
        value = eval(compile(last, name, "eval"), namespace)
        html = value._repr_html_() if hasattr(value, "_repr_html_") else None
        shown.append(("text/html", html) if html else ("text/plain", repr(value)))
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, bbox_inches="tight")
        shown.append(("image/png", picture.getvalue()))
    plt.close("all")
    return shown


@pytest.mark.slow
def test_what_is_said_of_launch_15_with_a_cold_l2():
    for name in ("explore", "quick-start"):
        text = " ".join((FOLDER / f"{name}.md").read_text(encoding="utf-8").split())
        assert "more than twice as many sectors from DRAM, and MDM takes 8 % more cycles" in text
    app = ws.workloads.load("bfs")
    longest = max(app.kernels, key=lambda kernel: kernel.num_instructions)
    assert longest.launch_id == 15
    table = ws.predict(app, "pascal-mdm", ["mdm"]).set_index("kernel")
    warm = [memory.totals for memory in ws.simulate_caches(app, "pascal-mdm")][14]
    cold = ws.simulate_caches(longest, "pascal-mdm").totals
    assert cold["dram_read_sectors"] > 2 * warm["dram_read_sectors"]
    for alone in (
        ws.predict(longest, "pascal-mdm", ["mdm"]),
        ws.predict(app, "pascal-mdm", ["mdm"], flush_l2=True),
    ):
        cycles = alone.set_index("kernel")["cycles"][15]
        assert cycles / table["cycles"][15] == pytest.approx(1.08, abs=0.005)


def notebook_pictures(cells):
    """Return how many code cells draw with `ws.plot`, Matplotlib or pandas."""
    drawing = ("ws.plot.", "plt.subplots(", ".plot.bar", ".plot.barh")
    return sum(any(one in text for one in drawing) for kind, text in cells if kind == "code")


@pytest.mark.parametrize("name", NAMES)
def test_has_a_picture_and_needs_no_await(name):
    _, cells = cells_of_notebook(name)
    assert notebook_pictures(cells) >= 1
    for kind, text in cells:
        assert kind != "code" or "await " not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "explore"])
def test_runs(name, monkeypatch):
    """Every cell runs, in less than two minutes together, and at least one shows a table.

    Here in this process, as a kernel takes seconds to start. The build of the documentation runs them in
    kernels (``nb_execution_mode`` in ``docs/conf.py``), and ``test_explore.py`` the one with sliders.
    """
    _, cells = cells_of_notebook(name)
    if "ws.cuda.compile" in (FOLDER / f"{name}.md").read_text() and not ws.cuda.compilers():
        pytest.skip("there is no CUDA compiler here (warpstack[cuda] brings one)")
    for package, extra in {"triton": "triton", "numba_cuda": "numba"}.items():
        if f"warpstack[{extra}]" in (FOLDER / f"{name}.md").read_text() and not find_spec(package):
            pytest.skip(f"{package} is not here (warpstack[{extra}] brings it)")
    monkeypatch.chdir(FOLDER)
    namespace = {"__name__": "__main__"}
    said, complaints = io.StringIO(), io.StringIO()
    shown = []
    start = time.perf_counter()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaints):
        for number, source in enumerate(text for kind, text in cells if kind == "code"):
            shown += display_cell(source, namespace, f"{name}, cell {number + 1}")
    assert time.perf_counter() - start < 120
    assert complaints.getvalue() == ""
    assert "text/html" in [kind for kind, _ in shown]
    assert len(said.getvalue()) + sum(len(what) for _, what in shown) < 1_200_000
