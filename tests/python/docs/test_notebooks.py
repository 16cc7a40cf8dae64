"""The notebooks run from top to bottom, and the two files of each say the same."""

import time
from pathlib import Path

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
    assert len(NAMES) >= 7
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_pair(name):
    notebook, cells = cells_of_notebook(name)
    assert cells == cells_of_text(name)
    assert not any(cell.get("outputs") for cell in notebook.cells)


# The kernel's sockets and its event loop warn of matters of their own.
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "explore"])
def test_runs(name):
    """Every cell runs, in less than two minutes together, and at least one draws a picture or table."""
    notebook, _ = cells_of_notebook(name)
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if "ws.cuda.compile" in (FOLDER / f"{name}.md").read_text() and not ws.cuda.compilers():
        pytest.skip("there is no CUDA compiler here (warpstack[cuda] brings one)")
    resources = {"metadata": {"path": str(FOLDER)}}
    start = time.perf_counter()
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    assert time.perf_counter() - start < 120
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    shown = [set(o.data) for o in outputs if o.output_type in ("display_data", "execute_result")]
    assert any("text/html" in kinds for kinds in shown)
    assert len(str(outputs)) < 1_500_000
