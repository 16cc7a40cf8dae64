"""Every table says in which state L2 was and whose time it tells; no model is silently blind to it."""

import io
import json
import re
import warnings

import pandas as pd
import pytest

import warpstack as ws
from warpstack.errors import UnusedOptionWarning
from warpstack.models.prediction import names, sees_write_backs
from warpstack.timing import as_table

#: What is given, and the share and the profiler that tables then have.
GIVEN = [
    ({}, (0.0, "nsys")),
    ({"initial_l2": "clean"}, (0.0, "nsys")),
    ({"initial_l2": "dirty"}, (1.0, "nsys")),
    ({"initial_l2": 0.25, "profiler": "ncu"}, (0.25, "ncu")),
    ({"profiler": "do_bench"}, (1.0, "do_bench")),
    ({"profiler": "do_bench", "initial_l2": "empty"}, (0.0, "do_bench")),
]


@pytest.fixture(scope="module")
def gpu():
    small = {"num_sms": 4, "l2_size_kib": 64, "l2_slices": 2, "base_clock_ghz": 1.0}
    return ws.gpu("pascal-mdm").replace(**small)


@pytest.fixture(scope="module")
def copy():
    return ws.patterns.stream(blocks=32)


@pytest.fixture
def files(copy, gpu, tmp_path):
    ws.save(ws.App([copy]), tmp_path / "app")
    (tmp_path / "small.yaml").write_text(gpu.to_yaml())
    return [str(tmp_path / "app"), "--gpu", str(tmp_path / "small.yaml")]


def settings(table):
    found = table[["initial_l2", "profiler"]].drop_duplicates()
    assert len(found) == 1
    return tuple(found.iloc[0])


@pytest.mark.parametrize(("given", "expected"), GIVEN)
def test_tables_of_times_say_both(given, expected, copy, gpu):
    app = ws.App([copy, ws.patterns.strided(gs=8, blocks=28, launch_id=2)])
    assert settings(ws.predict(app, gpu, **given)) == expected
    assert settings(ws.predict(app, gpu, sample_launches=True, **given)) == expected
    assert settings(ws.predict(app, gpu, sample_sms=0.5, **given)) == expected
    for how in ({}, {"flush_l2": True, "workers": 2}):
        results = ws.simulate(app, gpu, **how, **given)
        assert settings(as_table(results)) == expected
        assert settings(results[1].to_frame()) == expected
        assert settings(as_table(results, "nvprof")) == (expected[0], "nvprof")
    axes = {"l2_size_kib": [32, 64]}
    for caches in ("exact", "recorded"):
        table = ws.sweep(app, gpu, axes, cache=False, caches=caches, **given)
        assert settings(table) == expected
    assert settings(ws.exploration.point_totals(table)) == expected
    found = ws.search(app, gpu, axes, "time_us", budget=2, **given)
    assert settings(found) == expected
    assert settings(ws.models.roofline(app, gpu, simulate=True, **given)) == expected
    assert settings(ws.models.dvfs(app, gpu, [], ["mdm", "simulation"], **given)) == expected
    assert settings(ws.models.application_totals(ws.predict(app, gpu, **given))) == expected


@pytest.mark.parametrize(("given", "share"), [("empty", 0), (0.5, 0.5), ("dirty", 1)])
def test_tables_without_a_profiler_say_the_state(given, share, copy, gpu):
    for simulate in (False, True):
        for per_instruction in (False, True):
            how = {"simulate": simulate, "per_instruction": per_instruction}
            assert set(ws.lines(copy, gpu, initial_l2=given, **how)["initial_l2"]) == {share}
    for profile in ws.simulate_caches(ws.App([copy, copy]), gpu, initial_l2=given):
        assert list(profile.to_frame()["initial_l2"]) == [share]
    changes = {"more": {"num_sms": 8}}
    table = ws.validation.what_if(copy, gpu, changes=changes, initial_l2=given)
    assert set(table["initial_l2"]) == {share}


def test_totals_are_of_one_state_and_older_tables_have_none(copy, gpu):
    both = pd.concat([ws.predict(copy, gpu), ws.predict(copy, gpu, initial_l2="dirty")])
    totals = ws.models.application_totals(both)
    assert list(totals["initial_l2"]) == [0, 1]
    assert list(totals["cycles"]) == list(both["cycles"])
    older = ws.predict(copy, gpu).drop(columns=["initial_l2", "profiler"])
    assert len(ws.models.application_totals(older)) == 1
    measured = older[["kernel", "name", "cycles"]].assign(cycles=1000.0)
    for table in (older, ws.predict(copy, gpu)):
        errors = ws.validate(table, measured)
        assert len(errors) == 1
    joined = older.merge(as_table(ws.simulate(copy, gpu)), on=["kernel", "name", "gpu"])
    assert len(joined) == 1


def test_a_table_prints_what_is_not_by_default(copy, gpu):
    assert "profiler" not in repr(ws.predict(copy, gpu)).splitlines()[0]
    head = repr(ws.predict(copy, gpu, profiler="do_bench")).splitlines()[0].split()
    assert {"initial_l2", "profiler"} <= set(head)


# --- models that cannot see it -------------------------------------------------------------------


@pytest.mark.parametrize("model", names())
def test_a_model_sees_it_or_says_that_it_does_not(model, copy, gpu):
    empty = ws.predict(copy, gpu, model)["cycles"][0]
    for given in ({"initial_l2": "dirty"}, {"profiler": "do_bench"}):
        if sees_write_backs(model):
            assert ws.predict(copy, gpu, model, **given)["cycles"][0] > empty
            continue
        with pytest.warns(UnusedOptionWarning, match=f"{model} do not see the written lines"):
            table = ws.predict(copy, gpu, model, **given)
        assert table["cycles"][0] == empty


def test_nobody_warns_where_something_counts_them(copy, gpu):
    how = {"initial_l2": "dirty"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ws.predict(copy, gpu, ["mdm", "closed_network"], **how)
        ws.predict(copy, gpu, "mdm", initial_l2="clean")
        ws.models.roofline(copy, gpu, "mdm", **how)
        ws.models.dvfs(copy, gpu, [], ["mdm", "simulation"], **how)
        ws.sweep(copy, gpu, {"num_sms": [4]}, "mdm", anchor="simulate", cache=False, **how)
    with pytest.warns(UnusedOptionWarning, match="mdm do not see"):
        ws.models.dvfs(copy, gpu, [], "mdm", **how)
    with pytest.warns(UnusedOptionWarning, match="mdm do not see"):
        ws.sweep(copy, gpu, {"num_sms": [4]}, "mdm", cache=False, **how)


# --- commands ------------------------------------------------------------------------------------

COMMANDS = {
    "predict": [],
    "simulate": [],
    "caches": [],
    "lines": [],
    "sweep": ["--axis", "num_sms=2,4"],
    "roofline": [],
    "dvfs": ["--clocks", "1"],
    "compare": ["--models", "mdm", "closed_network"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_what_is_not_by_default(command, files, capsys):
    def text(*words):
        assert ws.cli.main([command, *files, *COMMANDS[command], *words]) == 0
        return re.sub(r"\s+", " ", capsys.readouterr().out)

    plain = text()
    assert "L2 " not in plain.split("32-byte")[0] or "before the first launch" not in plain
    dirty = text("--initial-l2", "dirty")
    assert "L2 dirty before the first launch" in dirty
    blind = command in ("predict", "compare")
    assert ("launch, which mdm does not see" in dirty) == blind
    assert "L2 25 % dirty before each launch" in text("--initial-l2", "0.25", "--flush-l2")
    if command not in ("caches", "lines"):
        assert "as Triton's do_bench measures" in text("--profiler", "do_bench")
        assert "L2 dirty before the first launch" in text("--profiler", "do_bench")
    if command == "predict":
        assert "mdm: " in dirty
        assert "it does not see L2's written lines" in dirty
        assert "it does not see L2's written lines" not in plain


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "compare"])
def test_csv_has_the_columns(command, files, capsys):
    found = []
    for words in ([], ["--initial-l2", "dirty"]):
        assert ws.cli.main([command, *files, *COMMANDS[command], "--csv", *words]) == 0
        found.append(pd.read_csv(io.StringIO(capsys.readouterr().out)))
    assert list(found[0]) == list(found[1])
    assert ("profiler" in found[0]) == (command not in ("caches", "lines"))
    assert [set(table["initial_l2"]) for table in found] == [{0.0}, {1.0}]


def test_compare_and_report_read_it(files, copy, gpu, tmp_path, capsys):
    def cycles(*words):
        models = ["--models", "interval_simulation", "closed_network"]
        assert ws.cli.main(["compare", *files, *models, "--json", *words]) == 0
        rows = json.loads(capsys.readouterr().out)
        return {row["quantity"]: row["second"] for row in rows if row["name"] == "(all)"}["cycles"]

    dirty = ws.predict(copy, gpu, initial_l2="dirty")["cycles"][0]
    assert cycles("--initial-l2", "dirty") == cycles("--profiler", "do_bench") == dirty
    assert cycles("--profiler", "do_bench", "-O", "initial_l2=empty") == cycles() != dirty
    table = ws.compare(copy, copy, gpu=gpu, initial_l2="dirty")
    assert table[table["quantity"] == "cycles"]["first"].iloc[0] == dirty
    with pytest.warns(UnusedOptionWarning, match="tables do not read initial_l2"):
        ws.compare(*[ws.predict(copy, gpu)] * 2, initial_l2="dirty")

    def page(*words):
        path = tmp_path / "report.html"
        assert ws.cli.main(["report", *files, "-o", str(path), *words]) == 0
        capsys.readouterr()
        return path.read_text()

    said = page("--initial-l2", "dirty", "--flush-l2")
    assert "L2 before each launch" in said
    assert "dirty; models that do not see it: mdm" in said
    assert f"{ws.simulate(copy, gpu, initial_l2='dirty').cycles:,} cycles" in said
    assert "L2 before" not in page()


def test_a_store_of_another_state_says_the_words(copy, gpu, tmp_path):
    def sweep(**how):
        ws.sweep(copy, gpu, {"num_sms": [2, 4]}, store=tmp_path / "store", cache=False, **how)

    sweep(initial_l2="empty")
    for given, words in (("dirty", "dirty"), (0.5, "50 % dirty")):
        with pytest.raises(ws.InputError, match=f"its initial_l2 is empty, not {words};"):
            sweep(initial_l2=given)


def test_do_bench_clears_l2_before_each_run(copy, gpu):
    """A run is the trace, whose second launch finds what the first left."""
    app = ws.App([copy, copy])
    first, second = ws.predict(app, gpu, profiler="do_bench")["cycles"]
    assert first > second
    each = ws.predict(app, gpu, profiler="do_bench", flush_l2=True)["cycles"]
    assert list(each) == [first, first]


def test_files_of_such_tables_are_validated(copy, gpu, tmp_path, capsys):
    """The profiler is a text in both: predictions, and a simulation as the reference."""
    ws.predict(copy, gpu, initial_l2="dirty").to_csv(tmp_path / "mine.csv", index=False)
    as_table(ws.simulate(copy, gpu)).to_csv(tmp_path / "theirs.csv", index=False)
    words = ["validate", str(tmp_path / "mine.csv"), str(tmp_path / "theirs.csv"), "--json"]
    assert ws.cli.main(words) == 0
    assert '"cycles"' in capsys.readouterr().out
