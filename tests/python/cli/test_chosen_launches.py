"""``--kernels``: chosen launches are reported as in the whole application, and how they are chosen."""

import json

import pytest

import warpstack as ws
from commands import runner
from warpstack.cli import main
from warpstack.cli.common import subject as subjects
from warpstack.errors import InputError
from warpstack.traces.launches import Launches, launches_of_text


@pytest.fixture(scope="module")
def app():
    """Return launches of which the second and third find in L2 what the first has read."""
    kernels = [
        ws.patterns.strided(gs, blocks=60, launch_id=i) for i, gs in enumerate((1, 32, 1), 1)
    ]
    return ws.App(kernels, "small")


@pytest.fixture(scope="module")
def small(app, tmp_path_factory):
    path = tmp_path_factory.mktemp("chosen") / "small"
    ws.save(app, path)
    return str(path)


@pytest.fixture
def run(capfd):
    return runner(capfd)


@pytest.fixture
def refused(capfd):
    def call(*arguments):
        with pytest.raises(SystemExit):
            main([str(argument) for argument in arguments])
        return capfd.readouterr().err

    return call


#: Commands that print a row or more per launch, and a column that the L2 before a launch changes.
COMMANDS = {
    "predict": "cycles",
    "predict --simulate": "simulated",
    "caches": "l2_read_sector_hits",
    "caches --per-pc": "l2_hit",
    "lines": "l2_hit_rate",
    "lines --no-simulate --instructions": "l2_hit_rate",
    "dvfs --clocks 1": "cycles",
    "roofline": "time_us",
    "simulate": "cycles",
}


@pytest.mark.parametrize("chosen", ["3", "2-", "1,3", "strided_gs1", "strided_gs32,3"])
@pytest.mark.parametrize("command", COMMANDS)
def test_chosen_launches_are_those_of_the_whole_application(run, small, command, chosen):
    name, *options = command.split()
    whole = json.loads(run(name, small, *options, "--json")[0])
    some, told = run(name, small, *options, "--json", "--kernels", chosen)
    numbers = {"3": [3], "2-": [2, 3], "1,3": [1, 3], "strided_gs1": [1, 3]}.get(chosen, [2, 3])
    assert json.loads(some) == [row for row in whole if row["kernel"] in numbers]
    assert "leaves out" not in told


@pytest.mark.parametrize("command", COMMANDS)
def test_what_comes_before_matters(run, small, command):
    """Else the test above would hold of launches that begin with an empty L2, too."""
    if not command.startswith(("predict", "caches", "lines", "simulate")):
        pytest.skip("the command does not empty L2")
    name, *options = command.split()
    rows = [
        json.loads(run(name, small, *options, "--json", "--kernels", "3", *more)[0])
        for more in ([], ["--flush-l2"])
    ]
    column = COMMANDS[command]
    assert [row[column] for row in rows[0]] != [row[column] for row in rows[1]]


def test_an_emptied_l2_needs_no_launch_before(run, small, monkeypatch):
    loaded = []
    load = ws.load
    monkeypatch.setattr(ws, "load", lambda *a, **how: loaded.append(load(*a, **how)) or loaded[-1])
    run("predict", small, "--kernels", "3", "--flush-l2")
    run("predict", small, "--kernels", "2")
    assert [[kernel.launch_id for kernel in app] for app in loaded] == [[3], [1, 2]]


def test_the_words_of_predict_are_of_the_chosen_launches(run, small, app):
    table = ws.predict(app, "pascal-mdm")
    out, _ = run("predict", small, "--kernels", "2-")
    assert f"all 2 kernels  {table['time_us'][1:].sum():9.2f}"[:14] in out
    assert f"{table['time_us'][1:].sum():.2f}" in out
    assert "3 launches" not in out


def test_compare_says_what_predict_says(run, small, app):
    times = ws.predict(app, "pascal-mdm")["time_us"].to_numpy()
    rows = json.loads(run("compare", small, "--kernels", "1,3", "--json")[0])
    time = next(row for row in rows if row["quantity"] == "time")
    assert [time["first"], time["second"]] == pytest.approx(times[[0, 2]])
    assert time["ratio"] < 1  # what the first has read is in L2


def test_compare_of_gpus_and_models_is_of_the_chosen_launches(run, small, app):
    for more, values in {
        ("--gpu", "v100-sxm2", "--gpu", "a100"): [
            ws.predict(app, gpu)["time_us"][2] for gpu in ("v100-sxm2", "a100")
        ],
        ("--models", "mdm", "gpumech"): [
            ws.predict(app, "pascal-mdm", model)["time_us"][2] for model in ("mdm", "gpumech")
        ],
    }.items():
        rows = json.loads(run("compare", small, "--kernels", "3", "--json", *more)[0])
        time = next(row for row in rows if row["quantity"] == "time")
        assert [time["first"], time["second"]] == pytest.approx(values)


def test_a_star_is_explained_where_there_is_one(run, small, tmp_path):
    assert "* the part" in run("compare", small, "--kernels", "1,3")[0]
    path = tmp_path / "same.yaml"
    path.write_text("based_on: pascal-mdm\nname: same\n")
    same, _ = run("compare", small, "--gpu", "pascal-mdm", "--gpu", path)
    assert "*" not in same


def test_a_report_says_that_launches_before_do_not_run(run, small, tmp_path):
    _, told = run("report", small, "--kernels", "3", "-o", tmp_path / "page.html")
    assert "leaves out launches before kernel 3" in told


def test_a_sample_is_one_of_the_chosen_launches(run, small):
    out, told = run("predict", small, "--kernels", "2-", "--sample-launches", "--json")
    assert {row["kernel"] for row in json.loads(out)} == {2, 3}
    assert "leaves out launches before kernel 2" in told


def test_long_simulations_before_the_chosen_launches_are_told(run, small, monkeypatch):
    assert "are simulated, too" not in run("simulate", small, "--kernels", "3")[1]
    monkeypatch.setattr(subjects, "_LONG_BEFORE", 10)
    for command in ("simulate", "lines"):
        told = run(command, small, "--kernels", "3")[1]
        assert "2 launches before the chosen ones are simulated, too" in told
        assert "--flush-l2 leaves them out" in told
        assert "are simulated" not in run(command, small, "--kernels", "3", "--flush-l2")[1]


class TestFiles:
    """Files of launches before the chosen ones are read where they are there."""

    @pytest.fixture
    def listed(self, app, tmp_path):
        ws.save(app, tmp_path / "listed", format="accelsim")
        return tmp_path / "listed"

    def test_a_list_is_read_to_the_last_chosen_launch(self, run, listed, app):
        next(listed.glob("kernel-3*")).unlink()
        rows = json.loads(run("predict", listed, "--kernels", "2", "--json")[0])
        assert [row["kernel"] for row in rows] == [2]
        assert rows[0]["cycles"] == pytest.approx(ws.predict(app, "pascal-mdm")["cycles"][1])

    def test_missing_launches_before_are_told(self, run, listed):
        next(listed.glob("kernel-2*")).unlink()
        out, told = run("predict", listed, "--kernels", "3", "--json")
        assert [row["kernel"] for row in json.loads(out)] == [3]
        assert "kernel-2" in told
        assert "passed over" in told

    def test_a_missing_chosen_launch_is_an_error(self, listed, capfd):
        for kernel in (2, 3):
            next(listed.glob(f"kernel-{kernel}*")).unlink()
        assert main(["predict", str(listed), "--kernels", "3"]) == 2
        err = capfd.readouterr().err
        assert "kernel-3" in err
        assert "is not there" in err
        assert main(["predict", str(listed), "--kernels", "3", "--skip-missing"]) == 2
        assert "the files of all chosen launches are missing" in capfd.readouterr().err


class TestChoice:
    def test_an_open_range_ends_with_the_application(self, app):
        (chosen,) = launches_of_text("2-", "")
        assert [kernel.launch_id for kernel in app.select([chosen])] == [2, 3]
        assert 2**64 - 1 in Launches.of([chosen])

    def test_an_open_range_that_begins_too_late(self, app):
        with pytest.raises(
            InputError, match=r"small has no kernel 4 or later; its kernels are 1, 2, 3"
        ):
            app.select(launches_of_text("1,4-", ""))

    @pytest.mark.parametrize("text", ["-", "-2", "2--", "2-3-", "a-"])
    def test_what_is_no_range(self, text):
        with pytest.raises(InputError, match="expected launch numbers such as 1,4-6 or 2-"):
            launches_of_text(text, "--")

    def test_launches_before_are_no_choice(self):
        launches = Launches.of([range(4, 6), range(9, 10)]).with_earlier()
        assert [n for n in range(12) if n in launches] == list(range(10))
        assert [n for n in range(12) if launches.is_chosen(n)] == [4, 5, 9]

    def test_names_and_numbers_are_added_up(self, run, small):
        out, _ = run("predict", small, "--json", "--kernels", "strided_gs32,3-")
        assert [row["kernel"] for row in json.loads(out)] == [2, 3]


class TestOptions:
    def test_skipping_is_answered_with_an_open_range(self, refused, small):
        for option in ("--skip", "--warm-up", "--launch-skip"):
            told = refused("predict", small, option, "1")
            assert f"unrecognized arguments: {option} 1; --kernels 2- leaves out the first" in told

    def test_abbreviations_are_refused_with_what_they_stood_for(self, refused, small):
        assert "did you mean --skip-missing?" in refused("predict", small, "--skip-m")
        assert "did you mean --merge-threshold?" in refused("predict", small, "--merge=3")

    def test_an_option_that_has_the_word_is_named_too(self, refused, small):
        told = refused("predict", small, "--launches")
        assert "did you mean --launch or --per-launch?" in told
        assert "did you mean" not in refused("predict", small, "--zzzzzz")

    def test_help_says_what_is_chosen_and_what_runs(self, capfd):
        for command, text in {
            "predict": "those before run, too, for what they leave in L2",
            "simulate": "(not with --flush-l2)",
            "report": "those before do not run",
            "info": "(gemm*,2-3: those that either chooses) (default: all)",
        }.items():
            with pytest.raises(SystemExit):
                main([command, "--help"])
            assert text in " ".join(capfd.readouterr().out.split()), command
