"""`warpstack.exploration.to_xarray` against the rows that it was made of."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import warpstack as ws

xarray = pytest.importorskip("xarray", reason="xarray is not installed")

KERNEL = ws.patterns.stream(blocks=8)
GRID = {"num_sms": [4, 2], "l1_mshrs": [8, 16, 32]}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return ws.sweep(KERNEL, "pascal-mdm", GRID, ["mdm", "gpumech"], cache=False)


def test_every_row_is_at_its_place(table: pd.DataFrame) -> None:
    data = ws.exploration.to_xarray(table)
    assert data.ipc.dims == ("num_sms", "l1_mshrs", "kernel", "model")
    assert data.ipc.shape == (2, 3, 1, 2)
    assert data.num_sms.to_numpy().tolist() == [4, 2], "in the order of the sweep"
    assert "streaming multiprocessors" in data.num_sms.attrs["description"]
    assert data.name.to_numpy().tolist() == ["stream"]
    for row in table.to_dict("records"):
        at = {name: row[name] for name in ("num_sms", "l1_mshrs", "kernel", "model")}
        for column in ("cycles", "ipc", "cpi_mshr", "time_us"):
            assert float(data[column].sel(at)) == row[column]


def test_totals_have_no_kernels(table: pd.DataFrame) -> None:
    totals = ws.exploration.point_totals(table)
    data = ws.exploration.to_xarray(totals)
    assert data.cycles.dims == ("num_sms", "l1_mshrs", "model")
    np.testing.assert_array_equal(data.cycles.to_numpy().ravel(), totals["cycles"])


def test_samples_have_points() -> None:
    points = [{"num_sms": 2, "l1_mshrs": 8}, {"num_sms": 3, "l1_mshrs": 16}]
    data = ws.exploration.to_xarray(ws.sweep(KERNEL, "pascal-mdm", points, cache=False))
    assert data.ipc.dims == ("point", "kernel", "model")
    assert data.l1_mshrs.dims == ("point",)
    assert data.l1_mshrs.to_numpy().tolist() == [8, 16]


def test_points_that_failed_are_nan() -> None:
    sizes = {"l1_size_kib": [48, 3.3]}
    table = ws.sweep(KERNEL, "pascal-mdm", sizes, cache=False)
    assert (table["error"] != "").any()
    data = ws.exploration.to_xarray(table)
    assert np.isfinite(data.ipc.sel(l1_size_kib=48)).all()
    assert np.isnan(data.ipc.sel(l1_size_kib=3.3)).all()


def test_applications_of_different_kernels_are_filled_up() -> None:
    apps = {"two": ws.workloads.load("backprop"), "one": KERNEL}
    data = ws.exploration.to_xarray(ws.sweep(apps, "pascal-mdm", {"num_sms": [2]}, cache=False))
    assert data.ipc.dims == ("num_sms", "app", "kernel", "model")
    assert np.isfinite(data.ipc.sel(app="two")).all()
    assert np.isfinite(data.ipc.sel(app="one")).to_numpy().ravel().tolist() == [True, False]
    assert "name" not in data.coords, "kernels of several applications have several names"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="point"), "point"),
        (lambda table: pd.concat([table, table]), "two rows of the table have the place"),
    ],
)
def test_other_tables_are_refused(table: pd.DataFrame, change, message: str) -> None:
    with pytest.raises(ws.InputError, match=message):
        ws.exploration.to_xarray(change(table))


def test_without_xarray_one_line_says_how_to_install_it(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ws.InputError, match=r"pip install 'warpstack\[xarray\]'"):
        ws.exploration.to_xarray(table)
