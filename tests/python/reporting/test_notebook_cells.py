"""What a notebook shows of results: a short table, the rest folded, in the colours of its theme."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

import warpstack as ws
from warpstack._util import notebook

GPU = "pascal-mdm"
KERNEL = ws.patterns.strided(4, iterations=2)

RESULTS: dict[str, Callable[[], Any]] = {
    "gpu": lambda: ws.gpu("a100"),
    "kernel": lambda: KERNEL,
    "app": lambda: ws.App([ws.patterns.strided(1, 1, 2, launch_id=i) for i in range(1, 31)]),
    "prediction": lambda: ws.models.evaluate(ws.interval_profile(KERNEL, GPU), GPU),
    "simulation": lambda: ws.simulate(KERNEL, GPU),
    "memory": lambda: ws.simulate_caches(KERNEL, GPU),
    "interval": lambda: ws.interval_profile(ws.patterns.strided(32, iterations=20), GPU),
}


class Page(HTMLParser):
    """Counts the rows and the widest row outside and inside of what is folded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = {"shown": 0, "folded": 0}
        self.texts: dict[str, list[str]] = {"shown": [], "folded": []}
        self.widest = self._cells = 0
        self.scrolled = True
        self.feed(text)
        self.close()

    @property
    def where(self) -> str:
        return "folded" if "details" in self.open else "shown"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.scrolled &= any("overflow-x: auto" in one for one in self.open)
        if tag == "tr":
            self.rows[self.where] += 1
            self._cells = 0
        if tag in ("td", "th") and self.where == "shown":
            self._cells += 1
            self.widest = max(self.widest, self._cells)
        self.open.append(tag if tag != "div" else f"div {dict(attrs).get('style')}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().split()[0] == tag, "elements are nested"

    def handle_data(self, data: str) -> None:
        self.texts[self.where].append(data)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_fits_a_cell(name: str) -> None:
    text = RESULTS[name]()._repr_html_()
    page = Page(text)
    assert page.open == []
    assert 2 <= page.rows["shown"] <= 14
    assert page.widest <= 9
    assert page.scrolled, "a table that is too wide scrolls"
    if name != "prediction":
        assert page.rows["folded"] > 0
    assert len(text) < 100_000


@pytest.mark.parametrize("name", RESULTS)
def test_a_cell_has_the_colours_of_the_theme(name: str) -> None:
    text = RESULTS[name]()._repr_html_()
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl|\bwhite\b|\bblack\b|bgcolor", text)
    colours = set(re.findall(r"(?:color|background): (\w+)", text))
    assert colours <= {"currentColor"}
    assert "<script" not in text


def test_every_field_of_a_gpu_is_there() -> None:
    page = Page(ws.gpu("a100")._repr_html_())
    assert set(ws.Gpu.fields()) <= set(page.texts["folded"])
    assert "num_sms" in page.texts["shown"]


def test_a_cell_says_what_the_result_is() -> None:
    kernel = Page(KERNEL._repr_html_())
    assert "strided_gs4" in kernel.texts["shown"]
    assert KERNEL.digest in kernel.texts["folded"]
    result = ws.simulate(KERNEL, GPU)
    shown = Page(result._repr_html_())
    assert f"{result.cycles:,}" in shown.texts["shown"]
    assert "mshr" in shown.texts["shown"]
    assert "l1_read_requests" in shown.texts["folded"]


def test_names_are_text() -> None:
    app = ws.App([KERNEL], "<b>&")
    assert "&lt;b&gt;&amp;" in app._repr_html_()
    assert "<td>&lt;i&gt;</td>" in notebook.table({"a": ["<i>"]})
    assert "<th>&lt;i&gt;</th>" in notebook.fields({"<i>": 1})
    assert "<summary>&lt;i&gt;</summary>" in notebook.folded("<i>", "x")


def test_long_tables_fold_and_say_where_all_rows_are() -> None:
    page = Page(notebook.table({"n": range(500)}, "all()"))
    assert page.rows == {"shown": 11, "folded": 191}
    assert "490 more rows, of which the first 190 are here; all() has all" in page.texts["folded"]
    assert Page(notebook.table({"n": range(10)})).rows == {"shown": 11, "folded": 0}
    assert Page(notebook.table({"n": range(11)})).rows == {"shown": 11, "folded": 2}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (12345.6, "12,346"),
        (0.123456, "0.1235"),
        (float("nan"), ""),
        (None, ""),
        (True, "True"),
        ("a" * 70, "a" * 59 + "…"),
    ],
)
def test_values_are_short(value: object, text: str) -> None:
    assert f">{text}</td>" in notebook.table({"v": pd.Series([value], dtype=object)})


def test_bars_are_shares_of_the_sum() -> None:
    text = notebook.bars({"a": 3.0, "b": 1.0}, "cycles")
    assert re.findall(r"<td>(\d+ %)</td>", text) == ["75 %", "25 %"]
    assert re.findall(r"width: ([\d.]+)em", text) == ["7.50", "2.50"]
    assert "nan" not in notebook.bars({"a": 0.0}, "cycles")
