"""What ``predict`` says on request: launches, all columns, other hardware; and why no simulator answers."""

import dataclasses
import io
import json

import pandas as pd
import pytest

import warpstack as ws
from commands import runner
from warpstack.cli import main, predict
from warpstack.errors import InputError
from warpstack.models.reasons.resources import changed_gpus


@pytest.fixture(scope="module")
def app():
    kernels = [
        ws.patterns.strided(gs, blocks=60, launch_id=i) for i, gs in enumerate((1, 32, 1), 1)
    ]
    return ws.App(kernels, "small")


@pytest.fixture(scope="module")
def small(app, tmp_path_factory):
    path = tmp_path_factory.mktemp("answers") / "small"
    ws.save(app, path)
    return str(path)


@pytest.fixture
def run(capfd):
    return runner(capfd)


def columns_of(line, head):
    """Return the cells of a wide table by heading: both are divided by two spaces or more."""
    cells, names = (
        [part.strip() for part in text.split("  ") if part.strip()] for text in (line, head)
    )
    return dict(zip(names, cells, strict=True))


class TestLaunches:
    def test_a_sum_says_how_its_launches_are_listed(self, run, small):
        assert "2 launches of strided_gs1: --per-launch lists them\n" in run("predict", small)[0]
        assert "--per-launch" not in run("predict", small, "--per-launch")[0]
        assert "--per-launch" not in run("predict", small, "--kernels", "1-2")[0]
        assert "--per-launch" not in run("predict", small, "--json")[0]

    def test_several_sums_are_told_in_one_line(self, run, tmp_path):
        kernels = [ws.patterns.strided(1 + i % 2, blocks=8, launch_id=i) for i in range(1, 5)]
        ws.save(ws.App(kernels), tmp_path / "many")
        out, _ = run("predict", tmp_path / "many")
        assert "launches of 2 kernels are added up: --per-launch lists them" in out

    def test_help_names_the_option(self, capfd):
        with pytest.raises(SystemExit):
            main(["predict", "--help"])
        assert "--per-launch " in capfd.readouterr().out


class TestAllColumns:
    def test_rows_have_what_the_time_is_made_of(self, run, small, app):
        table = ws.predict(app, "pascal-mdm")
        for more, numbers in (([], [0, 2]), (["--per-launch"], [0])):
            lines = run("predict", small, "--wide", *more)[0].split("\n\n")[1].splitlines()
            title = "1 strided_gs1" if more else "strided_gs1 (2 launches)"
            (line,) = (line for line in lines if line.startswith(f"{title} "))
            found = columns_of(line, lines[0])
            some = table.iloc[numbers]
            assert found["cycles"] == f"{some['cycles'].sum():,.0f}"
            assert found["instructions"] == f"{some['instructions'].sum():,}"
            assert found["launch (us)"] == f"{some['launch_us'].sum():.2f}"
            warps = ws.memory.occupancy(app[0], "pascal-mdm")["warps_per_sm"]
            assert found["warps per SM"] == f"{warps}"
            assert found["occupancy (%)"] == f"{100 * warps / ws.gpu('pascal-mdm').warps_per_sm:g}"
            parts = [float(found[f"{part} (%)"]) for part in ws.tables.STACK_COMPONENTS]
            assert sum(parts) == pytest.approx(100, abs=0.5)
            if more:
                assert found["dram (%)"] == f"{100 * table['cpi_dram'][0] / table['cpi'][0]:.1f}"

    def test_different_occupancies_are_a_range(self, run, tmp_path):
        kernels = [
            ws.patterns.strided(1, blocks=8, launch_id=1),
            ws.patterns.strided(1, blocks=8, warps_per_block=1, launch_id=2),
        ]
        warps = sorted(ws.memory.occupancy(k, "pascal-mdm")["warps_per_sm"] for k in kernels)
        assert warps[0] < warps[1]
        ws.save(ws.App(kernels), tmp_path / "two")
        lines = run("predict", tmp_path / "two", "--wide")[0].split("\n\n")[1].splitlines()
        assert columns_of(lines[1], lines[0])["warps per SM"] == f"{warps[0]} to {warps[1]}"

    def test_cycles_are_there_once(self, run, small):
        head = run("predict", small, "--wide", "--simulate")[0].split("\n\n")[1].splitlines()[0]
        assert head.count("cycles  ") == 1
        assert "base (%)" not in run("predict", small)[0]


class TestWhatIf:
    def test_each_change_has_the_time_of_its_gpu(self, run, small, app):
        out, _ = run("predict", small, "--what-if", "--json", "--gpu", "a100")
        found = json.loads(out)
        table = ws.predict(app, "a100")
        assert [row["cycles"] for row in found["predictions"]] == table["cycles"].to_list()
        gains = [row["speedup"] for row in found["what_if"]]
        assert gains == sorted(gains, reverse=True)
        for row in found["what_if"]:
            other = ws.gpu("a100").replace(**row["fields"])
            # The accesses keep their order; on another GPU it may be another one.
            whole = ws.predict(app, other)["time_us"].sum()
            assert row["time_us"] == pytest.approx(whole, rel=1e-3)
            assert row["speedup"] == pytest.approx(table["time_us"].sum() / row["time_us"])
            before = {name: getattr(ws.gpu("a100"), name) for name in row["fields"]}
            assert row["before"] == json.loads(json.dumps(before))
        assert len(found["what_if"]) == len(changed_gpus(ws.gpu("a100")))

    def test_the_table_has_what_pays_and_a_line_the_rest(self, run, small):
        rows = json.loads(run("predict", small, "--what-if", "--json")[0])["what_if"]
        out, _ = run("predict", small, "--what-if", "--wide")
        title = (
            "What other hardware would do: pascal-mdm, one change at a time, by closed_network; "
        )
        title += "launches included"
        _, table = out.split(title)
        lines = table.strip().splitlines()
        pays = [row for row in rows if abs(row["speedup"] - 1) >= 0.01]
        assert 0 < len(pays) < len(rows)
        assert [line.split("  ")[0] for line in lines[1 : 1 + len(pays)]] == [
            r["change"] for r in pays
        ]
        field, value = next(iter(pays[0]["fields"].items()))
        assert f"{field}={value:g} (was {pays[0]['before'][field]:g})" in lines[1]
        assert lines[-1].startswith("nothing or less than 1 %: ")
        assert all(row["change"] in lines[-1] for row in rows if row not in pays)

    def test_it_is_of_the_chosen_launches_and_the_first_model(self, run, small, app):
        out, _ = run("predict", small, "--what-if", "--json", "--kernels", "3", "-m", "mdm")
        (first, *_) = json.loads(out)["what_if"]
        assert first["model"] == "mdm"
        other = ws.gpu("pascal-mdm").replace(**first["fields"])
        assert first["time_us"] == pytest.approx(ws.predict(app, other, "mdm")["time_us"][2])

    def test_each_gpu_and_trace_has_a_table(self, run, small):
        out, _ = run("predict", small, "--what-if", "--gpu", "a100", "--gpu", "l4")
        assert out.count("What other hardware would do") == 2
        assert "would do: l4, one" in out

    @pytest.mark.parametrize(
        ("option", "text"),
        [
            ("--csv", "the latter has one table; --json has both"),
            ("--sampling=0.5", "leave one of them out"),
            ("--sample-launches", "leave one of them out"),
        ],
    )
    def test_what_does_not_go_together(self, small, capfd, option, text):
        assert main(["predict", small, "--what-if", option]) == 2
        assert text in capfd.readouterr().err


class TestSettings:
    def test_a_value_that_is_there_already_is_told(self, run, small):
        told = run("predict", small, "--set", "l1_mshrs=128", "--gpu", "pascal-mdm")[1]
        assert "note: --set l1_mshrs=128: pascal-mdm has this value already" in told
        assert "already" not in run("predict", small, "--set", "l1_mshrs=64")[1]

    def test_a_value_that_another_setting_would_change_is_not(self, run, small):
        latency = f"dram_latency={ws.gpu('pascal-mdm').dram_latency:g}"
        assert "already" in run("predict", small, "--set", latency)[1]
        assert "already" not in run("predict", small, "--set", latency, "--set", "clock_ghz=2")[1]

    def test_an_unknown_gpu_has_a_short_answer(self, small, capfd):
        assert main(["predict", small, "--gpu", "h100"]) == 2
        err = capfd.readouterr().err
        assert "did you mean h100-pcie, h100-sxm, p100 or h200?" in err
        assert "warpstack gpus" in err
        assert len(err) < 250
        with pytest.raises(InputError, match=r"there is no GPU 'xyzzy'; warpstack gpus \(ws.gpus"):
            ws.gpu("xyzzy")


class TestNoSimulator:
    def test_its_time_is_told_where_it_is_long(self, run, small, app, monkeypatch):
        assert "not run" not in run("predict", small)[0]
        monkeypatch.setattr(predict, "_CHEAP_INSTRUCTIONS", 10)
        out, _ = run("predict", small)
        total = sum(kernel.num_instructions for kernel in app)
        assert (
            f"simulator: not run, as it takes about 1 to 2 s for {total:,} warp instructions; --simulate"
            in " ".join(out.split())
        )
        assert "simulator" not in run("predict", small, "--models", "mdm")[0]

    @pytest.mark.parametrize(
        ("instructions", "text"),
        [(1_400_000, "1 to 14 s"), (60_000_000, "1 to 10 min"), (3_600_000_000, "1 to 10 h")],
    )
    def test_the_unit_follows_the_time(self, instructions, text):
        @dataclasses.dataclass
        class Fake:
            ran: list
            num_instructions: int = instructions
            num_missing_blocks: int = 0
            is_sampled: bool = False

        job = predict._Job(Fake([Fake([])]), None)
        assert f"about {text} for {instructions:,}" in predict._why_not_simulated([job])
        job.subject.ran[0].num_missing_blocks = 3
        assert "3 thread blocks are missing" in predict._why_not_simulated([job])


def test_compare_with_a_setting_is_against_the_gpu_without_it(run, small, app):
    out, _ = run("compare", small, "--gpu", "a100", "--set", "num_sms=54", "--csv")
    table = pd.read_csv(io.StringIO(out))
    time = table[(table["quantity"] == "time") & (table["name"] == table["name"].iloc[0])].iloc[0]
    for which, gpu in (("first", ws.gpu("a100")), ("second", ws.gpu("a100").replace(num_sms=54))):
        assert time[which] == pytest.approx(ws.predict(app, gpu)["time_us"].sum())


def test_simulated_times_stand_beside_predicted_ones(run, small, app):
    out, _ = run("predict", small, "--gpu", "a100", "--simulate", "--json")
    found = json.loads(out)
    results = ws.simulate(app, "a100")
    assert [row["simulated_time_us"] for row in found] == [one.time_us for one in results]


def test_answers_with_changes_can_be_validated(run, small, app, tmp_path):
    out, _ = run("predict", small, "--gpu", "a100", "--what-if", "--json")
    (tmp_path / "predicted.json").write_text(out)
    ws.predict(app, "a100").to_csv(tmp_path / "measured.csv", index=False)
    out, _ = run("validate", tmp_path / "predicted.json", tmp_path / "measured.csv", "--json")
    (found,) = json.loads(out)
    assert (found["pairs"], found["mape"]) == (len(app), 0)


def test_a_size_of_l1_that_shared_memory_decides_gets_a_note(run, small):
    _, err = run("caches", small, "--gpu", "a100", "--set", "l1_size_kib=48")
    assert "l1_size_kib does not say how large L1 is" in err
    _, err = run("caches", small, "--gpu", "pascal-mdm", "--set", "l1_size_kib=24")
    assert "how large L1" not in err


def test_the_answer_says_that_blocks_are_a_sample(run):
    sizes = ["--workload", "backprop", "--size", "paper", "--gpu", "a100", "--kernels", "1"]
    text, _ = run("predict", *sizes, "--sample-blocks", "8")
    assert "Of 1 of 1 launches some thread blocks were evaluated" in text
    assert "+- (%)" in text
