"""Predictions from a sample of the SMs against those from all."""

import math

import pytest

import warpstack as ws

MODELS = ("mdm", "closed_network")


def test_the_rows_say_how_uncertain_ipc_is():
    app = ws.App([ws.patterns.stream(blocks=448), ws.patterns.stream(blocks=4)])
    rows = ws.predict(app, "pascal-mdm", MODELS, sample_sms=0.25)
    first = list(rows.columns).index("ipc")
    assert list(rows.columns)[first + 1 : first + 4] == ["ipc_low", "ipc_high", "sampled_sms"]
    assert (rows["ipc_low"] <= rows["ipc"]).all()
    assert (rows["ipc"] <= rows["ipc_high"]).all()
    assert rows["sampled_sms"].tolist() == [7, 7, 0, 0]
    short = rows[rows["sampled_sms"] == 0]
    assert short["ipc_low"].tolist() == short["ipc_high"].tolist() == short["ipc"].tolist()
    exact = ws.predict(app, "pascal-mdm", MODELS)
    assert "ipc_low" not in exact
    assert rows["ipc"].tolist() == pytest.approx(exact["ipc"].tolist(), rel=0.02)


def test_a_sample_has_the_reason_of_all_sms():
    """Where that is not one of the caches, which may be the best of the strided one: a sample has none."""
    app = ws.App([ws.patterns.stream(blocks=448), ws.patterns.strided(gs=32, blocks=112)])
    rows = ws.predict(app, "pascal-mdm", MODELS, sample_sms=0.25)
    assert rows["sampled_sms"].max() > 0
    exact = ws.predict(app, "pascal-mdm", MODELS)
    same = exact["reason"] != "twice the L1"
    assert same.tolist() == [True, True, False, False]
    assert rows["reason"][same].tolist() == exact["reason"][same].tolist()
    assert rows["gain"][same].tolist() == pytest.approx(exact["gain"][same].tolist(), rel=0.05)
    assert rows["gain"].isna().tolist() == [False, False, True, True]
    assert rows["reason"][2] == ""


def test_interval_simulation_has_its_reasons_from_what_if():
    kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    model = "interval_simulation"
    (row,) = ws.predict(kernel, "pascal-mdm", model).to_dict("records")
    assert row["reason"] == ""
    assert math.isnan(row["gain"])
    table = ws.validation.what_if(kernel, "pascal-mdm", model)
    best = ws.validation.changes.best_changes(table)
    assert best["best"].tolist() == ["2 x DRAM bandwidth"] == best["simulated_best"].tolist()
    assert best["points"][0] == pytest.approx(best["simulated_points"][0], abs=5)


def test_the_sample_grows_until_ipc_is_certain_enough():
    app = ws.App([ws.patterns.gather(loads=2), ws.patterns.strided(1)])
    rows = ws.predict(app, "pascal-mdm", MODELS, sample_sms="auto")
    assert (rows["ipc_high"] - rows["ipc_low"] <= 0.02 * rows["ipc"] + 1e-9).all()


@pytest.mark.parametrize("share", ["some", 0, 2, True])
def test_sample_sms_is_a_share_or_auto(share):
    with pytest.raises(ws.InputError, match="sample_sms"):
        ws.predict(ws.patterns.stream(blocks=4), "pascal-mdm", sample_sms=share)


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["pascal-mdm", "v100-sxm2"])
def test_bounds_hold(gpu):
    """Of intervals of 95 % confidence, about one in twenty may miss; the IPC of all SMs is the truth."""
    outside = kernels = 0
    errors = []
    for name in ("2d-convolution", "bfs", "cfd", "hotspot", "k-means", "srad", "stencil"):
        app = ws.workloads.load(name)
        exact = ws.predict(app, gpu, MODELS)
        rows = ws.predict(app, gpu, MODELS, sample_sms="auto")
        of_sample = rows["sampled_sms"] > 0
        kernels += int(of_sample.sum())
        above = exact["ipc"] > rows["ipc_high"] * (1 + 1e-9)
        below = exact["ipc"] < rows["ipc_low"] * (1 - 1e-9)
        outside += int((of_sample & (above | below)).sum())
        for model in MODELS:
            cycles = [table[table["model"] == model]["cycles"].sum() for table in (rows, exact)]
            errors.append(abs(cycles[0] / cycles[1] - 1))
    assert kernels > 0
    assert outside <= max(0.05 * kernels, 2)
    assert max(errors) < 0.03
