"""One default model: every function, command and output gives the same time of a kernel."""

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws
from warpstack._util.choices import DEFAULT_MODEL
from warpstack.cli import main
from warpstack.cli.common.launch_run import run_launch
from warpstack.cli.common.launch_text import read_launch
from warpstack.plot.sliders import Explorer

REPOSITORY = Path(__file__).resolve().parents[3]
GPU = "pascal-mdm"
LAUNCH = "strided_gs32<<<448, 256>>>(float[3670032])"
#: Of ready PTX: compilers of other versions may make other instructions.
SOURCE = REPOSITORY / "data/kernels/strided.ptx"
COMMAND = ["predict", str(SOURCE), "--launch", LAUNCH]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kernel():
    return run_launch(SOURCE.read_text(encoding="utf-8"), read_launch(LAUNCH))


@pytest.fixture(scope="module")
def expected(kernel):
    """Return the row of `ws.predict`, which all others are held to."""
    table = ws.predict(kernel, GPU)
    assert table["model"].tolist() == [DEFAULT_MODEL] == ["closed_network"]
    return table.iloc[0]


@pytest.fixture
def said(capsys):
    def call(*words):
        assert main([*COMMAND, *words]) == 0
        return capsys.readouterr().out

    return call


def same(row, expected, columns=("model", "cycles", "time_us")):
    assert [row[name] for name in columns] == [expected[name] for name in columns]


def test_json(said, expected):
    (record,) = json.loads(said("--json"))
    same(record, expected, ("model", "cycles", "time_us", "ipc", "cpi"))


def test_csv(said, expected):
    (record,) = csv.DictReader(io.StringIO(said("--csv")))
    assert record["model"] == expected["model"]
    for name in ("cycles", "time_us", "ipc", "cpi"):
        assert float(record[name]) == expected[name]


def test_table_on_the_screen(said, expected):
    (line,) = re.findall(r"^strided_gs32 .*MSHR.*$", said(), re.MULTILINE)
    assert line.split()[1:6:4] == [f"{expected['time_us']:,.2f}", f"{expected['ipc']:.3f}"]


def test_evaluate(kernel, expected):
    found = ws.models.evaluate(ws.interval_profile(kernel, GPU), GPU)
    same(vars(found), expected, ("model", "cycles", "ipc", "cpi"))


def test_sweep(kernel, expected, tmp_path):
    same(ws.sweep(kernel, GPU, [{}], cache=False).iloc[0], expected)
    ws.exploration.sweep_to_store(kernel, GPU, [{}], store=tmp_path, cache=False)
    same(pd.read_parquet(tmp_path).iloc[0], expected)


def test_search(kernel, expected):
    found = ws.search(kernel, GPU, {"num_sms": [28]}, cache=False).iloc[0]
    assert found["time_us"] == expected["time_us"]


def test_dvfs(kernel, expected):
    same(ws.models.dvfs(kernel, GPU, []).iloc[0], expected)


def test_roofline(kernel, expected):
    for _, row in ws.models.roofline(kernel, GPU).iterrows():
        same(row, expected, ("model", "time_us"))


def test_explorer(kernel, expected):
    same(Explorer(kernel, GPU).predict().iloc[0], expected)
    pytest.importorskip("ipywidgets")
    same(ws.plot.explore(kernel, GPU).table.iloc[0], expected)


def test_what_if(kernel, expected):
    table = ws.validation.what_if(kernel, GPU, changes={"more": {"num_sms": 56}}, simulate=False)
    same(table[table["change"] == "baseline"].iloc[0], expected, ("model", "cycles"))


def test_compare(kernel, expected):
    table = ws.compare(GPU, GPU, app=kernel)
    times = table.loc[table["quantity"] == "time", ["first", "second"]].to_numpy()
    assert set(times.ravel()) == {expected["time_us"]}


def test_lines_divide_the_same_cycles(kernel, expected):
    """They have no column of times: what they divide is the CPI stack."""
    table = ws.lines(kernel, GPU, simulate=False)
    for part in ws.models.STACK_COMPONENTS:
        whole = pytest.approx(expected[f"cpi_{part}"], rel=1e-9, abs=1e-12)
        assert table[f"model_cpi_{part}"].sum() == whole
