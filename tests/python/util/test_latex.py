"""Tables for LaTeX: read back by a small parser of what `to_latex` may write."""

import json
import math
import re

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import warpstack as ws
from effort import rounds
from warpstack.cli import main
from warpstack.tables import to_latex

COMMANDS = {
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textless": "<",
    "textgreater": ">",
    "textbar": "|",
    "textquotedbl": '"',
}


def text_of(cell):
    """Return what TeX sets for a cell; a bare special character or unknown command is an error."""
    out, i = "", 0
    while i < len(cell):
        c = cell[i]
        if c == "\\":
            if cell[i + 1] in "&%$#_{}":
                out, i = out + cell[i + 1], i + 2
                continue
            name = re.match(r"[A-Za-z]+", cell[i + 1 :])[0]
            assert cell[i + 1 + len(name) :].startswith("{}"), cell
            out, i = out + COMMANDS[name], i + 3 + len(name)
            continue
        if c == "{":
            assert cell[i + 2] == "}", cell
            out, i = out + cell[i + 1], i + 3
            continue
        assert c not in "&%$#_}~^[]*`'-", cell
        out, i = out + c, i + 1
    return out


def cells_of(line):
    assert line.endswith(r" \\")
    return [cell.strip(" ") for cell in re.split(r"(?<!\\)&", line[:-3])]


def parsed(latex):
    """Return kinds of columns, heads and rows of cells."""
    lines = latex.splitlines()
    assert lines.pop(0).startswith("% ")
    assert re.fullmatch(
        r"\\begin\{tabular\}\{(?:l|p\{0\.3\\linewidth\}|S\[table-format=[^]]*\])+\}", lines[0]
    )
    kinds = re.findall(
        r"p\{0\.3\\linewidth\}|S\[[^]]*\]|l", lines[0][len(r"\begin{tabular}{") : -1]
    )
    assert lines[1] == r"\toprule"
    assert lines[3] == r"\midrule"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    heads = cells_of(lines[2])
    assert all(head[0] == "{" and head[-1] == "}" for head in heads)
    rows = [cells_of(line) for line in lines[4:-2]]
    assert {len(row) for row in rows} <= {len(kinds)}
    assert len(heads) == len(kinds)
    return kinds, [text_of(head[1:-1]) for head in heads], rows


def fits(number, form):
    """Return whether a number has at most the digits of siunitx's table-format."""
    sign, before, behind, minus, power = re.fullmatch(
        r"(-?)(\d+)(?:\.(\d+))?(?:e(-?)(\d+))?", form
    ).groups()
    found = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:e([-+])(\d+))?", number)
    return (
        (not found[1] or sign)
        and len(found[2]) <= int(before)
        and len(found[3] or "") <= int(behind or 0)
        and (found[4] != "-" or minus)
        and (found[5] is None or len(str(int(found[5]))) <= int(power))
    )


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["[x]", "*", "a & b", r"\input{x}", "$x_1^2$", "100 %", "a\nb"]
)
#: Rounded up, the largest double is no double.
EDGES = st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf, -math.inf])
NUMBERS = EDGES | st.floats(-1e4, 1e4) | st.integers(-(10**20), 10**20) | st.none()


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(NUMBERS, min_size=n, max_size=n),
            st.lists(TEXTS, min_size=n, max_size=n),
            TEXTS,
        )
    )
)
@settings(max_examples=rounds(500), deadline=None)
def test_any_table_is_read_back(given_columns):
    numbers, texts, name = given_columns
    table = pd.DataFrame({0: pd.Series(numbers, dtype=object), 1: pd.Series(texts, dtype=object)})
    table.columns = ["n", name]
    kinds, heads, rows = parsed(to_latex(table))
    assert heads[0] == "n"
    assert len(rows) == len(table)
    known = [n for n in numbers if n is not None and n == n]
    assert kinds[0].startswith("S") == bool(known)
    for (number, text), (cell, words) in zip(zip(numbers, texts, strict=True), rows, strict=True):
        plain = "".join(c if c.isprintable() else " " for c in text)
        assert text_of(words) == " ".join(plain.split())
        if number is None or number != number:
            assert cell in ("{--}", "{-}{-}")
        elif math.isinf(number):
            assert cell == (r"{$\infty$}" if number > 0 else r"{$-\infty$}")
        else:
            assert fits(cell, kinds[0][len("S[table-format=") : -1]), (cell, kinds)
            largest = max(abs(n) for n in known if math.isfinite(n))
            assert float(cell) == pytest.approx(float(number), rel=6e-4, abs=6e-4 * float(largest))


def test_heads_have_units_and_rows_their_order():
    table = pd.DataFrame(
        {"time_us": [1.25, 10], "dram_bandwidth_gbs": [480, 960], "ok": [True, False]}
    )
    kinds, heads, rows = parsed(to_latex(table))
    assert heads == ["time (us)", "DRAM bandwidth (GB/s)", "ok"]
    assert kinds == ["S[table-format=2.2]", "S[table-format=3]", "l"]
    assert rows == [["1.25", "480", "yes"], ["10.00", "960", "no"]]


def test_formats_and_what_is_no_number_then():
    table = pd.DataFrame({"a": [1234.5, np.nan], "b": [0.5, 1.0]})
    kinds, _, rows = parsed(to_latex(table, formats={"a": "{:,.1f}", "b": "{:.0%}"}))
    assert kinds == ["S[table-format=4.1]", "l"]
    assert rows == [["1234.5", r"50\%"], ["{--}", r"100\%"]]


def test_captions_and_labels():
    text = to_latex(pd.DataFrame({"a": [1]}), caption="50 % of A_1", label="tab:a")
    lines = text.splitlines()
    assert lines[1:5] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{50 \% of A\_1}",
        r"\label{tab:a}",
    ]
    assert lines[-1] == r"\end{table}"
    for label in ("a b", "x}", ""):
        with pytest.raises(ws.InputError, match=r"label = .* has characters"):
            to_latex(pd.DataFrame({"a": [1]}), label=label)
    with pytest.raises(ws.InputError, match="no column"):
        to_latex(pd.DataFrame())
    assert ws.tables.to_latex is to_latex


def test_a_named_index_is_a_column():
    table = pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="model"))
    assert parsed(to_latex(table))[1:] == (["model", "a"], [["x", "1"]])


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latex") / "app"
    ws.save(ws.patterns.stream(blocks=2), folder)
    return str(folder)


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "TRACE"],
        ["predict", "TRACE", "--models", "mdm", "--simulate", "--stacks"],
        ["roofline", "TRACE"],
        ["dvfs", "TRACE", "--clocks", "1"],
        ["simulate", "TRACE"],
        ["caches", "TRACE"],
        ["lines", "TRACE"],
        ["info", "TRACE"],
        ["gpus"],
        ["workloads"],
        ["compare", "pascal-mdm", "titan-v"],
    ],
)
def test_commands(command, trace, capsys):
    assert main([trace if word == "TRACE" else word for word in command] + ["--latex"]) == 0
    lines = capsys.readouterr().out.splitlines()
    while lines[1].startswith("% "):
        lines.pop(0)
    _, _, rows = parsed("\n".join(lines))
    assert rows


def test_one_form_at_a_time(trace, capsys):
    with pytest.raises(SystemExit):
        main(["info", trace, "--latex", "--csv"])
    assert "not allowed with" in capsys.readouterr().err
    assert main(["info", trace, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
