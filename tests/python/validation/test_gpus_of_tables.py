"""Tables of measurements that say which GPU a row is of, and cells that are empty."""

import pandas as pd
import pytest

import warpstack as ws
from warpstack.cli import main


def predictions(*gpus, **columns):
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "kernel": [1, 2],
                    "name": ["copy", "sum"],
                    "gpu": gpu,
                    "gpu_changes": "",
                    "model": "mdm",
                    "time_us": [10.0 * place, 20.0 * place],
                    **columns,
                }
            )
            for place, gpu in enumerate(gpus, 1)
        ],
        ignore_index=True,
    )


def measured(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text)
    return path


TWO = "gpu,name,time_us\nt4,copy,10\nt4,sum,25\nrtx3080,copy,40\nrtx3080,sum,50\n"


def test_rows_match_predictions_of_their_gpu_only(tmp_path):
    path = measured(tmp_path, "gpu,name,time_us\nrtx3080,copy,38\nrtx3080,sum,76\n")
    with pytest.raises(
        ws.InputError,
        match=r"no prediction has a reference: predicted are 1 copy \(with t4\), 2 sum \(with t4\); "
        r"the reference has 1 copy \(with rtx3080\)",
    ):
        ws.validate(predictions("t4"), path)
    assert len(ws.validate(predictions("rtx3080"), path)) == 2


@pytest.mark.parametrize("as_frame", [False, True])
def test_two_cards_in_one_table(tmp_path, as_frame):
    path = measured(tmp_path, TWO)
    reference = ws.validation.reference.read(path) if as_frame else path
    table = ws.validate(predictions("t4", "rtx3080"), reference)
    assert table["gpu"].tolist() == ["t4", "t4", "rtx3080", "rtx3080"]
    assert table["measured"].tolist() == [10, 25, 40, 50]
    assert table["predicted"].tolist() == [10, 20, 20, 40]
    errors = ws.validation.validation_errors(table).set_index("gpu")
    assert errors["mape"].to_dict() == pytest.approx({"t4": 0.1, "rtx3080": 0.35})


def test_a_card_that_is_not_predicted_is_named(tmp_path):
    with pytest.warns(
        ws.errors.UnmatchedWarning,
        match=r"2 rows have no prediction \(1 copy \(with rtx3080\), 2 sum \(with rtx3080\)\)$",
    ):
        table = ws.validate(predictions("t4"), measured(tmp_path, TWO))
    assert table["status"].tolist() == ["matched"] * 2 + ["no prediction"] * 2


def test_changes_of_a_gpu_are_predictions_of_it(tmp_path):
    changed = predictions("t4").assign(gpu_changes="num_sms = 20")
    table = ws.validate([predictions("t4"), changed], measured(tmp_path, TWO.split("rtx3080")[0]))
    assert table["status"].tolist() == ["matched"] * 4


@pytest.mark.parametrize("column", ["", "NVIDIA GeForce RTX 3080"])
def test_names_of_devices_that_profilers_write_say_nothing(column):
    known = pd.DataFrame({"kernel": [1, 2], "name": ["copy", "sum"], "time_us": [10.0, 25.0]})
    table = ws.validate(predictions("t4"), known.assign(gpu=column, source="ncu"), metric="time_us")
    assert table["status"].tolist() == ["matched"] * 2


def test_an_empty_column_says_nothing(tmp_path):
    path = measured(tmp_path, "gpu,name,time_us\n,copy,10\n,sum,25\n")
    assert ws.validate(predictions("t4"), path)["status"].tolist() == ["matched"] * 2


def test_predictions_without_a_gpu(tmp_path):
    table = ws.validate(
        predictions("t4").drop(columns=["gpu", "gpu_changes"]),
        measured(tmp_path, TWO.split("rtx3080")[0]),
    )
    assert table["status"].tolist() == ["matched"] * 2
    with pytest.raises(
        ws.InputError, match="occurs twice; add a column app, change, gpu or gpu_ch"
    ):
        ws.validate(predictions("t4").drop(columns=["gpu", "gpu_changes"]), measured(tmp_path, TWO))


def test_on_the_command_line(tmp_path, capsys):
    path = measured(tmp_path, TWO)
    ours = tmp_path / "ours.csv"
    predictions("t4", "rtx3080").to_csv(ours, index=False)
    assert main(["validate", str(ours), str(path), "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert {row["gpu"]: float(row["mape"]) for row in rows} == pytest.approx(
        {"t4": 0.1, "rtx3080": 0.35}
    )
    assert main(["validate", str(ours), str(path), "--by", "pairs", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    predictions("a100").to_csv(ours, index=False)
    assert main(["validate", str(ours), str(path)]) == 2
    assert "no prediction has a reference: predicted are 1 copy (with a100)" in " ".join(
        capsys.readouterr().err.split()
    )


# --- empty cells --------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["", "n/a"])
def test_an_empty_cell_is_named_by_line(tmp_path, cell):
    path = measured(tmp_path, f"name,time_us\ncopy,10\n\nsum,{cell}\n")
    with pytest.warns(ws.errors.UnmatchedWarning) as caught:
        table = ws.validate(predictions("t4"), path)
    said = str(caught[0].message)
    assert (
        f"the reference ({path}:4) has no time_us of 2 sum: cells are empty; fill them in" in said
    )
    assert "skip" not in said
    assert table["status"].tolist() == ["matched", "no reference"]


def test_an_empty_cell_of_a_kernel_that_has_other_launches(tmp_path):
    """The hint about skipped launches was for this one."""
    path = measured(tmp_path, "name,time_us\ncopy,10\ncopy,\n")
    with pytest.warns(ws.errors.UnmatchedWarning) as caught:
        ws.validate(predictions("t4").assign(name="copy"), path)
    assert "own.csv:3) has no time_us of 2 copy: cells are empty" in str(caught[0].message)
    assert "skip" not in str(caught[0].message)


def test_an_empty_cell_of_a_frame_is_named_by_row():
    known = pd.DataFrame({"kernel": [1, 2], "time_us": [10.0, None]})
    with pytest.warns(
        ws.errors.UnmatchedWarning, match=r"the reference \(row 2\) has no time_us of 2"
    ):
        ws.validate(predictions("t4"), known)


def test_an_empty_cell_of_the_predictions():
    known = pd.DataFrame({"kernel": [1, 2], "time_us": [10.0, 20.0]})
    ours = predictions("t4", time_us=[10.0, None])
    with pytest.warns(
        ws.errors.UnmatchedWarning, match="the prediction has no time_us of 2 sum: cel"
    ):
        ws.validate(ours, known)


def test_nothing_but_empty_cells(tmp_path):
    path = measured(tmp_path, "name,time_us\nfirst,9\ncopy,\n")
    with pytest.raises(
        ws.InputError, match=r"own\.csv:3\) has no time_us of .*copy: cells are empty"
    ):
        ws.validate(predictions("t4").iloc[:1], path, match="order")


# --- options without effect ---------------------------------------------------------------------


@pytest.mark.parametrize("by", ["pairs", "kernel"])
@pytest.mark.parametrize("pairs", ["app", "kernel"])
def test_pairs_have_no_effect_where_nothing_is_summed_up(tmp_path, capsys, by, pairs):
    ours = tmp_path / "ours.csv"
    predictions("t4").to_csv(ours, index=False)
    path = measured(tmp_path, TWO.split("rtx3080")[0])
    command = ["validate", str(ours), str(path), "--by", by, "--pairs", pairs]
    assert main(command) == 2
    assert f"--by {by} sums up none" in " ".join(capsys.readouterr().err.split())
    assert main(command[:-2]) == 0


@pytest.mark.filterwarnings("default")
def test_the_command_says_why_there_are_no_pairs(tmp_path, capsys):
    ours = tmp_path / "ours.csv"
    predictions("t4").to_csv(ours, index=False)
    path = measured(tmp_path, "name,time_us\ncopy,10\nsum,10\n")
    assert main(["validate", str(ours), str(path), "--by", "pairs"]) == 0
    said = capsys.readouterr()
    assert "warning: no pairs: the references of no two of the matched rows" in said.err
    assert said.out.splitlines()[-1].split()[-3:] == ["-", "-", "-"]
