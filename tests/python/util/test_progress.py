"""Bars: gone when work ends, fails or is interrupted; widgets in notebooks that have them, else text."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from warpstack._util import progress
from warpstack._util.progress import progress_bar

OUTCOMES = [None, ValueError("it failed"), KeyboardInterrupt()]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(outcome: BaseException | None) -> None:
    """Do a half of the work, then end as is said."""
    with progress_bar(True, 10, "working", "step") as bar:
        bar.update(10 if outcome is None else 5)
        assert progress.is_bar_shown()
        if outcome is not None:
            raise outcome


def run_and_catch(outcome: BaseException | None) -> None:
    if outcome is None:
        run(outcome)
    else:
        with pytest.raises(type(outcome)):
            run(outcome)
    assert not progress.is_bar_shown()


def be_a_notebook(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Be a kernel, whose standard error is no terminal; return what it is instead."""
    ipython = pytest.importorskip("IPython")
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    return errors


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_bar_on_a_terminal_is_wiped_away(
    outcome: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    run_and_catch(outcome)
    text = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "working" in text
    assert text.rsplit("\r", 2)[1].strip() == "", "the line is blank"


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_widget_is_closed(outcome: BaseException | None, monkeypatch: pytest.MonkeyPatch) -> None:
    widgets = pytest.importorskip("ipywidgets")
    made: list[widgets.Widget] = []
    closed: list[widgets.Widget] = []
    kind = widgets.Widget
    monkeypatch.setattr(kind, "open", lambda self: made.append(self))
    monkeypatch.setattr(kind, "close", lambda self: closed.append(self))
    monkeypatch.setattr("tqdm.notebook.display", lambda *_, **__: None)
    errors = be_a_notebook(monkeypatch)
    run_and_catch(outcome)
    bars = [one for one in made if isinstance(one, widgets.DOMWidget)]
    assert len(bars) >= 3, "the bar, the text before it and the one after it"
    assert all(any(one is other for other in closed) for one in bars)
    assert errors.getvalue() == ""


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_without_ipywidgets_a_notebook_has_text(
    outcome: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    errors = be_a_notebook(monkeypatch)
    run_and_catch(outcome)
    assert "working" in errors.getvalue()


def test_without_terminal_and_notebook_the_work_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar(True, 10, "working", "step") as bar:
        bar.update(1)
        assert str(progress.under_way()).startswith("working, 10 % done")
    assert progress.under_way() is None
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_nothing_is_shown_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(False, 10, "working", "step") as bar:
        bar.update(1)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


CELL = """
import time
import warpstack as ws
app = ws.App([ws.patterns.strided(32, 64, blocks=2000, launch_id=i) for i in range(1, 9)])
print("ready", flush=True)
axes = {"num_sms": range(20, 80)}
try:
    ws.sweep(app, "pascal-mdm", axes, workers=2, cache=False, progress=True)
except KeyboardInterrupt:
    print("ended at", time.monotonic(), flush=True)
    raise
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_an_interrupted_cell_leaves_no_bar() -> None:
    """In a kernel: the cell ends about at once, and the next one finds all widgets closed."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("ipywidgets")
    after = """
import ipywidgets, json
from warpstack._util import progress
print(json.dumps([len(ipywidgets.Widget.widgets), progress.is_bar_shown()]))
"""
    cells = [nbformat.v4.new_code_cell(CELL), nbformat.v4.new_code_cell(after)]
    book = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(book, timeout=60, allow_errors=True)
    sent = []

    def interrupt(cell: object, cell_index: int) -> None:
        def send() -> None:
            while not cells[0].get("outputs"):
                time.sleep(0.05)
            time.sleep(4)
            sent.append(time.monotonic())
            os.kill(client.km.provisioner.pid, signal.SIGINT)  # as a kernel's manager does

        if cell_index == 0:
            threading.Thread(target=send, daemon=True).start()

    client.on_cell_execute = interrupt
    client.execute()
    outputs = cells[0]["outputs"]
    assert outputs[-1]["ename"] == "KeyboardInterrupt"
    text = "".join(output.get("text", "") for output in outputs)
    assert float(text.split("ended at ")[1].split()[0]) - sent[0] < 2
    kinds = [set(output.get("data", {})) for output in outputs]
    assert any("application/vnd.jupyter.widget-view+json" in kind for kind in kinds)
    assert cells[1]["outputs"][0]["text"].strip() == "[0, false]"
