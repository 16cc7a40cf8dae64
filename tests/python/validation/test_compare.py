"""`ws.compare`, `Gpu.diff` and `Gpu.to_yaml`."""

import numpy as np
import pytest

import warpstack as ws


@pytest.fixture(scope="module")
def app():
    return ws.App([ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 32))])


def values(table, name, column="ratio"):
    return table[table["name"] == name].set_index("quantity")[column]


def test_gpus_by_their_predictions(app):
    gpus = [ws.gpu("pascal-mdm"), ws.gpu("h100-pcie")]
    table = ws.compare(*gpus, app=app)
    first, second = (ws.predict(app, gpu, "closed_network") for gpu in gpus)
    assert list(dict.fromkeys(table["name"])) == ["(all)", "strided_gs1", "strided_gs32"]
    whole = values(table, "(all)")
    assert whole["time"] == pytest.approx(second["time_us"].sum() / first["time_us"].sum())
    assert whole["instructions"] == 1
    of_one = values(table, "strided_gs32", "second")
    parts = [part for part in of_one.index if part in ("launch", *ws.models.STACK_COMPONENTS)]
    assert of_one[parts].sum() == pytest.approx(of_one["time"])
    row = second.iloc[1]
    expected = (row["time_us"] - row["launch_us"]) * row["cpi_noc"] / row["cpi"]
    assert of_one["noc"] == pytest.approx(expected)


def test_the_largest_change_is_of_a_part_of_the_time(app):
    table = ws.compare("mdm", "gpumech", app=app, gpu="pascal-mdm")
    for _, group in table.groupby("name"):
        parts = group[group["quantity"].isin(["launch", *ws.models.STACK_COMPONENTS])]
        change = (parts["second"] - parts["first"]).abs()
        assert group["largest"].sum() == 1
        assert group.loc[change.idxmax(), "largest"]
    same = ws.compare("mdm", "mdm", app=app, gpu="pascal-mdm")
    assert not same["largest"].any()


def test_kernels_are_matched_by_name_or_else_in_order(app):
    one, other = (ws.App([kernel]) for kernel in app)
    table = ws.compare(one, other, gpu="pascal-mdm")
    assert list(dict.fromkeys(table["name"])) == ["(all)", "strided_gs1, strided_gs32"]
    table = ws.compare(app, one, gpu="pascal-mdm")
    assert np.isnan(values(table, "strided_gs32", "second")["time"])
    assert values(table, "strided_gs1")["time"] == 1


def test_tables(app, pascal):
    predicted = ws.predict(app, pascal)
    simulated = ws.timing.as_table(ws.simulate(app, pascal))
    table = ws.compare(predicted, simulated)
    expected = simulated["cycles"].sum() / predicted["cycles"].sum()
    assert values(table, "(all)")["cycles"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda app: ws.compare("a100", "h101", app=app),
            "second: it is neither a model nor a GPU",
        ),
        (lambda app: ws.compare("a100", "mdm", app=app), "got a GPU and a model"),
        (lambda app: ws.compare("a100", "a40"), "give app="),
        (lambda app: ws.compare(app, app), "give gpu="),
        (lambda app: ws.compare(app, app, app=app, gpu="a100"), "leave app= out"),
        (lambda app: ws.compare("a40", "a100", app=app, gpu="a100"), "leave gpu= out"),
        (
            lambda app: ws.compare(*[ws.predict(app, "a100", ["mdm", "mt"])] * 2),
            "rows of several models, mdm, mt",
        ),
        (lambda app: ws.compare(*[ws.predict(app, "a100")[["name"]]] * 2), "has no column model"),
    ],
)
def test_what_does_not_go_together(app, call, message):
    with pytest.raises(ws.InputError, match=message):
        call(app)


def test_diff_and_yaml(tmp_path):
    gpu = ws.gpu("a100").replace(num_sms=54, scheduler="lrr")
    found = ws.gpu("a100").diff(gpu).set_index("field")
    assert found.loc["num_sms", ["first", "second", "ratio"]].tolist() == [108, 54, 0.5]
    assert np.isnan(found.loc["scheduler", "ratio"])
    assert set(found.index) == {"num_sms", "scheduler"}
    assert gpu.diff(gpu).empty
    (tmp_path / "mine.yaml").write_text(gpu.to_yaml())
    again = ws.gpu(tmp_path / "mine.yaml")
    assert again == gpu
    assert {name: text for name, text in again.sources.items() if text} == gpu.sources
    assert again.confidences == gpu.confidences
