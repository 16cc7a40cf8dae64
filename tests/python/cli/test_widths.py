"""Tables for people: they fit the terminal, headings have units, and numbers have separators."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import card_output
import warpstack as ws
from effort import rounds
from warpstack._util.headings import heading, number
from warpstack.cli import main
from warpstack.cli.common import layout
from warpstack.cli.common.layout import Look, text_table
from warpstack.cli.registry import COMMANDS

#: Calls of each command that prints tables; those that print none.
CALLS = {
    "predict": [
        "predict app",
        "predict app --gpu a100 --gpu l4 --stacks",
        "predict one",
        "predict app -m all --simulate --stacks",
        "predict app --sampling 0.5 --per-launch",
    ],
    "compare": ["compare app --gpu a100 --gpu h100-pcie", "compare v100-sxm2 a100"],
    "lines": ["lines app", "lines app --no-simulate --instructions"],
    "roofline": ["roofline app --simulate"],
    "dvfs": ["dvfs app --clocks 1.2 0.8 --models mdm crisp"],
    "caches": ["caches app", "caches app --per-pc"],
    "simulate": ["simulate app", "simulate app --sample-cycles 1000"],
    "timeline": ["timeline app", "timeline app --operations", "timeline app --what-if"],
    "info": ["info app", "info one", "info app --opcodes"],
    "workloads": ["workloads"],
    "gpus": ["gpus", "gpus v100-sxm2", "gpus --fields"],
    "sweep": ["sweep design.yaml"],
    "calibrate": ["calibrate run.txt --base rtx3080"],
    "validate": [
        "validate predictions.csv simulated.csv",
        "validate predictions.csv simulated.csv --by kernel",
        "validate predictions.csv simulated.csv --by kernel --metric all",
    ],
    "figure": ["figure --list", "figure mwp-table2 --overwrite"],
    "cache": ["cache"],
}
WITHOUT_TABLES = {"report", "trace", "convert", "completion", "manual"}
DESIGN = """
gpu: pascal-mdm
kernels:
  long_name_of_an_application: {trace: app}
axes:
  num_sms: [7, 14]
  noc_bandwidth_gbs: [525, 1.05e3]
  l2_latency: [100, 200]
models: [gpumech, mdm]
"""
#: How names of columns end that have a unit, and how it is written.
UNITS = {
    **{"_us": "(us)", "_s": "(s)", "_ghz": "(GHz)", "_gbs": "(GB/s)", "_bytes": "(bytes)"},
    **{"_cycles": "(cycles)", "_%": "(%)", "gips": "(GIPS)", "_mib": "(MiB)", "_kib": "(KiB)"},
}
#: What has a dimension, whatever the name of the column.
DIMENSIONS = (
    r"(?i)\b(time|clock|bandwidth|size|seconds|duration|error|differences?|performance|latency)\b"
)
#: Numbers that are names; columns whose rows have units, beside them or in the row's own name.
NUMBERED = {"kernel", "parent", "point", "PC", "line"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with what the calls read."""
    folder = tmp_path_factory.mktemp("tables")
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 32))]
    ws.save(ws.App(kernels, "small"), folder / "app")
    ws.save(ws.App(kernels[1:], "one"), folder / "one")
    (folder / "design.yaml").write_text(DESIGN)
    (folder / "run.txt").write_text(card_output.output())
    app = ws.load(folder / "app")
    ws.predict(app, "pascal-mdm", ["mdm", "gpumech"]).to_csv(
        folder / "predictions.csv", index=False
    )
    rows = [result.to_frame() for result in ws.simulate(app, "pascal-mdm")]
    text = "".join(row.to_csv(index=False, header=not i) for i, row in enumerate(rows))
    (folder / "simulated.csv").write_text(text)
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Return a function that runs a call in the folder and returns its lines."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WARPSTACK_CACHE", str(folder / "cache"))

    def call(words, columns=None):
        if columns is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        assert main(words.split()) == 0, capsys.readouterr().err
        return capsys.readouterr().out.splitlines()

    return call


def test_every_command_is_called_or_prints_no_table():
    assert CALLS.keys() | WITHOUT_TABLES == set(COMMANDS)
    assert not CALLS.keys() & WITHOUT_TABLES


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for calls in CALLS.values() for words in calls])
def test_tables_of_commands(run, monkeypatch, words):
    if words == "cache":
        run("sweep design.yaml")
    for columns in (80, 100, 140):
        # A path is a single word, which is not divided.
        wide = [line for line in run(words, columns) if len(line) > columns and " " in line.strip()]
        assert wide == [], columns

    tables = []
    lines_of = layout._lines

    def seen(table, *rest):
        tables.append(table)
        return lines_of(table, *rest)

    monkeypatch.setattr(layout, "_lines", seen)
    lines = run(f"{words} --wide", 80)
    assert not any("shows all" in line for line in lines)
    assert not any(re.search(r"\de\+\d", line) for line in lines)
    assert tables or words.startswith("lines")
    for table in tables:
        for column in table:
            check_column(column)


def check_column(column):
    """Assert that a column has its unit, words for people, and numbers with separators."""
    for ending, unit in UNITS.items():
        if column.name.endswith(ending):
            assert unit in column.head
    if column.is_left:
        return
    if re.search(DIMENSIONS, re.sub(r"\bmax error\b", "error", column.head)):
        assert "(" in column.head or column.head == "relative time"
    assert "_" not in column.head.replace("strided_gs", "")
    if column.head not in NUMBERED:
        assert not any(re.search(r"(?<![.\d])\d{4,}", cell) for cell in column.cells)


def test_without_a_terminal_a_line_has_100_characters(run, monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda *_: (_ for _ in ()).throw(OSError()))
    assert 80 < max(map(len, run("gpus --fields"))) <= 100


def test_data_have_names_and_plain_numbers(run):
    head, first, _ = run("info app --csv --wide", 80)
    assert head.startswith("kernel,name,code,grid")
    assert head.endswith("dpki,digest")
    assert f",{28 * 8 * 116}," in first
    assert any(f" {28 * 8 * 116:,}" in line for line in run("info app --wide"))


class TestLayout:
    COLUMNS = ("name", "time_us", "clock_ghz", "kind")

    def table(self, width, rows=5, **look):
        values = [
            [f"kernel_number_{i}", 10**i, 2.5, "some words that say what it is"]
            for i in range(rows)
        ]
        return text_table(self.COLUMNS, values, Look(**look), width=width).splitlines()

    def test_all_of_it_where_there_is_room(self):
        assert (
            self.table(80)[0]
            == self.table(None)[0]
            == ("name             time (us)  clock (GHz)  kind")
        )

    def test_headings_are_folded_first(self):
        lines = self.table(64)
        assert [line.split() for line in lines[:2]] == [
            ["time", "clock"],
            ["name", "(us)", "(GHz)", "kind"],
        ]
        assert len(lines) == 7

    def test_then_texts(self):
        lines = self.table(50)
        assert "some words that" in lines[2]
        assert lines[3].strip() == "say what it is"
        assert len(lines) == 12

    def test_then_names_are_cut_which_is_said(self):
        lines = self.table(45)
        assert lines[2].startswith("kernel_num.. ")
        assert lines[-1] == "(names are cut; --wide shows all)"

    def test_few_rows_become_columns(self):
        lines = self.table(40, rows=1)
        assert lines[0] == "name         kernel_number_0"
        assert lines[1] == "time (us)    1"
        assert lines[2] == "clock (GHz)  2.5"
        assert lines[3].startswith("kind         some words that say")

    def test_then_the_least_important_go_which_is_said(self):
        lines = self.table(38, least=("clock_ghz", "kind"))
        assert " ".join(lines[-2:]).endswith(
            "(not shown: clock (GHz); names are cut; --wide shows all)"
        )
        assert "kind" in "".join(lines[:2])
        assert max(map(len, lines)) <= 38

    def test_columns_of_zeros_go_before_others(self):
        rows = [["a" * 12, i, 0] for i in range(5)]
        look = Look(least=("some_words", "zero_words"))
        lines = text_table(["name", "some_words", "zero_words"], rows, look, width=22).splitlines()
        assert "not shown: zero words" in " ".join(lines)

    def test_marked_cells(self):
        lines = text_table(["x", "y"], [[1, 2]], Look(), width=80, marked={(0, 1)}).splitlines()
        assert lines == ["x  y", "1  2*"]

    @settings(max_examples=rounds(200))
    @given(st.data())
    def test_any_table_fits(self, data):
        texts = st.text("ab c", max_size=60)
        columns = data.draw(
            st.lists(
                st.sampled_from(["name", "kind", "time_us", "count", "l1_read_sectors"]),
                min_size=1,
                max_size=5,
                unique=True,
            )
        )
        kinds = [texts if c in layout.LEFT else st.integers(0, 10**12) for c in columns]
        rows = data.draw(st.lists(st.tuples(*kinds), max_size=6))
        width = data.draw(st.integers(24, 100))
        lines = text_table(columns, rows, Look(), width=width).splitlines()
        assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("time_us", "time (us)"),
        ("clock_ghz", "clock (GHz)"),
        ("dram_bandwidth_gbs", "DRAM bandwidth (GB/s)"),
        ("l1_read_hits_%", "L1 read hits (%)"),
        ("num_sms", "SMs"),
        ("cycles", "cycles"),
        ("IPC (of 28)", "IPC (of 28)"),
    ],
)
def test_headings(name, head):
    assert heading(name) == head


@given(st.floats(1e-3, 1e15))
@settings(max_examples=rounds(300))
def test_numbers_have_no_exponent_and_their_digits(value):
    text = number(value)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=1e-5)
    assert re.fullmatch(r"\d{1,3}(,\d{3})*(\.\d+)?", text)


def test_numbers():
    assert number(5_870_000) == "5,870,000"
    assert number(5870.0) == "5,870"
    assert number(1.755) == "1.755"
    assert number(-1234.5) == "-1,234.5"
    assert number(float("nan")) == "-"
