"""What the checks of arguments let through, and how they word what they refuse."""

from __future__ import annotations

import gc
import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack._util.checked import strictly_checked
from warpstack.cli.validate import read_predictions
from warpstack.errors import InputError, shown

MEASURED = pd.DataFrame({"kernel": [1], "cycles": [100.0], "app": [1]})
PREDICTED = MEASURED.assign(model="mdm", suite=2, name=7, **{"class": 3})


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.strided(gs=32, iterations=1, blocks=2, warps_per_block=1)


@pytest.fixture(scope="module")
def swept(kernel):
    axes = {"num_sms": [14, 28], "scheduler": ["gto", "lrr"]}
    return ws.sweep(kernel, "pascal-mdm", axes, cache=False)


def categories(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return a table with some columns as categories, one of which does not occur."""
    return table.assign(
        **{
            name: pd.Categorical(table[name], categories=[*table[name].unique(), 99])
            for name in columns
        }
    )


def test_iterators_within_others_are_read_once(kernel):
    table = ws.sweep(kernel, "pascal-mdm", {"num_sms": (n for n in [14, 28])}, cache=False)
    assert table["num_sms"].tolist() == [14, 28]
    points = ({"num_sms": n} for n in [14, 28])
    assert ws.sweep(kernel, "pascal-mdm", points, cache=False).equals(table)


def test_categories_are_columns_like_others(kernel, swept):
    predicted = ws.predict(kernel, "pascal-mdm", ["mdm", "gpumech"])
    of_categories = categories(predicted, "model", "gpu", "name")
    assert ws.models.application_totals(of_categories).equals(
        ws.models.application_totals(predicted)
    )
    of_categories = categories(swept, "point", "num_sms", "scheduler", "model")
    assert ws.exploration.point_totals(of_categories).equals(ws.exploration.point_totals(swept))
    of_categories = categories(PREDICTED, "app", "model", "suite")
    assert ws.validate(of_categories, MEASURED).equals(ws.validate(PREDICTED, MEASURED))


def test_numbers_name_applications():
    row = ws.validate(PREDICTED, MEASURED).iloc[0]
    assert row[["app", "suite", "class", "name"]].tolist() == ["1", "2", "3", "7"]


def test_suites_may_be_a_series():
    assert ws.validate(PREDICTED, MEASURED, suites=pd.Series({"1": "s"}))["suite"].item() == "s"
    with pytest.raises(ws.InputError, match="suites: '1': expected text, got 2"):
        ws.validate(PREDICTED, MEASURED, suites=pd.Series({"1": 2}))


def test_measures_take_what_becomes_a_number():
    assert ws.validation.measures.mae([1, None], [3, 2], nan="omit") == 2
    assert ws.validation.measures.mae(np.array([Fraction(1, 2)], dtype=object), [1]) == 0.5
    for wrong in (["1"], np.array(["1"], dtype=object), [object()], [10**400]):
        with pytest.raises(ws.InputError, match=r"predicted has the type .*; give numbers"):
            ws.validation.measures.mae(wrong, [1])


def test_flags_may_be_0_or_1():
    @strictly_checked
    def flag(progress: bool) -> bool:
        return progress

    assert flag(1) is True
    assert flag(np.int64(0)) is False
    with pytest.raises(ws.InputError, match="progress: expected True or False, got 2"):
        flag(2)


def test_commands_have_paths_and_numbers(tmp_path):
    with pytest.raises(ws.InputError, match="program does not load libcudart"):
        ws.cuda.host.trace_program([Path("/bin/true"), 1000], tmp_path / "out")
    with pytest.raises(
        ws.InputError, match="command: expected words, paths and numbers, got an object"
    ):
        ws.cuda.host.trace_program([object()], "traced")
    with pytest.raises(ws.InputError, match="no program is given"):
        ws.cuda.host.trace_program(np.array([]), tmp_path / "out")


def test_a_kernel_is_not_a_sequence_of_them(kernel):
    with pytest.raises(ws.InputError, match=r"got a KernelTrace; write App\(\[kernel\]\)"):
        ws.App(kernel)


def test_numbers_of_numpy_are_shown_as_numbers(kernel):
    assert shown(np.float64("inf")) == "inf"
    assert shown({np.int64(7): [np.float32(0.5)]}) == "{7: [0.5]}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kernel,cycles\n1,5\n2,1e400\n", "line 3: cycles = inf is not a finite number"),
        ("kernel,cycles\n1,5\n2,-inf\n", "line 3: cycles = -inf is not a finite number"),
        # Whole numbers that no double holds, which pandas reads as numbers of Python.
        (f"kernel,cycles\n1,5\n2,{9**400}\n", f"line 3: cycles = {shown(9**400)} is not a finite"),
        (f"kernel,cycles\n1,{-(9**400)}\n2,x\n", "line 2: cycles = '-49774"),
        (
            f'[{{"kernel": 1, "cycles": {9**400}}}]',
            f"entry 1: cycles = {shown(9**400)} is not a fin",
        ),
        ('[{"kernel": 1, "cycles": "12"}]', "entry 1: cycles = '12' is not a number"),
        ("kernel,cycles\n1.5,5\n", "line 2: kernel = 1.5 is not a whole number below 2^53"),
        ("kernel,cycles\n1,5\n,5\n", "line 3: kernel is missing"),
        ("kernel,cycles,clock_ghz\n1,5,abc\n", "line 2: clock_ghz = 'abc' is not a number"),
        ("kernel,cycles,cpi_base\n1,5,x\n", "line 2: cpi_base = 'x' is not a number"),
        ("kernel,cycles\n\n1,5\n\n2,x\n", "line 5: cycles = 'x' is not a number"),
        ('kernel,name,cycles\n1,"a\nb",5\n2,c,x\n', "line 4: cycles = 'x' is not a number"),
        ("kernel,cycles\n1,2,3\n", "line 2 has 3 values under 2 columns"),
        ("kernel,kernel,cycles\n1,1,3\n", "the column 'kernel' is there twice"),
    ],
)
def test_what_is_wrong_in_predictions_has_a_place(text, problem, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(ws.InputError, match=rf"p\.csv: (.*: )?{re.escape(problem)}"):
        read_predictions(str(path), "cycles")


def test_large_numbers_beside_others_are_numbers(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("kernel,cycles\n1,0.5\n2,18446744073709551616\n")
    assert read_predictions(str(path), "cycles")["cycles"].tolist() == [0.5, 2.0**64]


def test_textures_that_were_not_made_end_quietly(capfd):
    for source, handle in ((5, 1), (ws.cuda.zeros(4), -1)):
        with pytest.raises(ws.InputError):
            ws.cuda.Texture(source, handle)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_names_of_cache_entries(tmp_path):
    store = ws.exploration.StageCache(tmp_path)
    with pytest.raises(ws.InputError, match=r"'\.\./x-a\.stage' is not the name of an entry"):
        store.put("../x", "a", {"x": np.zeros(1)})
    with pytest.raises(ws.InputError, match="'file' is not an array that can be kept"):
        store.put("x", "a", {"file": np.zeros(1)})


def test_warnings_name_the_line_of_the_caller(kernel):
    both = pd.concat([MEASURED, MEASURED.assign(kernel=2)])
    calls = [
        lambda: ws.sweep(
            kernel, "pascal-mdm", {"noc_bandwidth_gbs": [640, 960]}, "mt", cache=False
        ),
        lambda: ws.validate(PREDICTED, both),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [Path(one.filename).name for one in caught] == [Path(__file__).name]


@pytest.mark.parametrize("ask", [ws.predict, ws.simulate, ws.simulate_caches, ws.memory.occupancy])
def test_a_path_where_a_trace_is_asked_for_says_how_to_read_it(ask):
    with pytest.raises(
        InputError, match=r"got 'bfs/kernelslist.g'; read the trace first: warpstack.load"
    ):
        ask("bfs/kernelslist.g", "pascal-mdm")
