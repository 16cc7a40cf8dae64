"""The models stay as near to the simulator on random kernels as they are, and what measures that is right.

`studies/random_kernels.py --renew` keeps the figures that the first test holds the models to.
"""

import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import kernel_recipes as kr
import random_cases as rc
import warpstack as ws

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "studies"))
import random_kernels as study  # noqa: E402

sys.path.pop(0)

#: Percentage points by which a figure may rise: rounding, and other libraries of mathematics.
MARGIN = 0.2
RENEW = "python studies/random_kernels.py --renew"


@pytest.mark.slow
def test_no_model_is_farther_from_the_simulator_than_it_was():
    rows = study.measure((study.QUICK_SEED, range(study.QUICK_KERNELS), study.HELD))
    held = pd.read_csv(study.DATA / "held.csv").set_index("model")
    now = study.held_figures(rows).set_index("model")
    for model in study.HELD:
        assert model in held.index, f"{model} has no figures yet: {RENEW}"
        for name in ("median", "90th percentile"):
            was, is_now = held.loc[model, f"{name} (%)"], float(now.loc[model, name].split()[0])
            assert is_now <= was + MARGIN, f"{model}, {name}; if that is right: {RENEW}"


def test_a_case_is_made_from_its_numbers_alone():
    cases = [rc.random_case(5, number) for number in range(40)]
    assert [rc.random_case(5, number) for number in reversed(range(40))] == cases[::-1]
    assert len(set(cases)) == 40
    assert rc.random_case(6, 0) != cases[0]


def test_a_printed_case_is_the_same():
    names = {"Case": rc.Case, "Recipe": rc.Recipe, "Step": rc.Step}
    for number in range(40):
        case = rc.random_case(5, number)
        assert eval(rc.source(case), names) == case


@pytest.mark.slow
def test_cases_run_and_are_of_all_kinds():
    """Launches, phases and kinds of steps occur, and every block fits on an SM of its GPU."""
    kinds, traits = Counter(), Counter()
    for number in range(300):
        case = rc.random_case(9, number)
        traits[f"{len(case.launches)} launches"] += 1
        traits["changed" if case.changes else "plain"] += 1
        for one in case.launches:
            steps = (*one.body, *one.second)
            kinds.update({step.kind for step in steps})
            traits[one.uneven] += 1
            traits["two phases"] += bool(one.second)
            traits["some warps"] += any(step.warps < 1 for step in steps)
            few = replace(one, blocks=1, iterations=1)
            assert ws.memory.occupancy(kr.trace(few), case.on())["blocks_per_sm"] > 0
    every = {*kr.COMPUTING, *kr.ACCESSING, *kr.OTHERS, *kr.FURTHER}
    assert {kind for kind, count in kinds.items() if count >= 5} == every
    wanted = {"1 launches", "2 launches", "3 launches", "changed", "plain", *kr.UNEVEN, "ramp"}
    assert {name for name, count in traits.items() if count >= 5} == {
        *wanted,
        "two phases",
        "some warps",
    }


def opcodes(recipe):
    """Return how often each opcode is executed."""
    table = kr.trace(recipe).instructions
    return table.groupby("opcode")["executions"].sum().to_dict()


class TestSteps:
    @pytest.mark.parametrize(("late", "group"), [(False, 0), (True, 1)])
    def test_copies_are_waited_for(self, late, group):
        step = kr.Step("copy", count=3, late=late, width=16)
        found = opcodes(kr.Recipe(iterations=4, body=(step,)))
        assert found["LDGSTS.E.128"] == 12
        assert found["cp.async.commit_group"] == found[f"cp.async.wait_group.{group}"] == 4
        assert found["LDS"] == 4

    def test_pipelined_copies_are_faster(self):
        recipes = [
            kr.Recipe(
                iterations=8,
                body=(
                    kr.Step("copy", footprint=1 << 20, late=late),
                    kr.Step("dependent", 1, 12),
                ),
            )
            for late in (False, True)
        ]
        at_once, late = (ws.simulate(kr.trace(one), "pascal-mdm").cycles for one in recipes)
        assert late < 0.8 * at_once

    def test_counters_have_as_many_words_as_asked_for(self):
        sectors = []
        for words in (1, 4096):
            step = kr.Step("counter", footprint=4 * words, pattern="random")
            kernel = kr.trace(kr.Recipe(blocks=8, iterations=4, body=(step,)))
            sectors.append(ws.simulate_caches(kernel, "a100").totals["l2_dirty_sectors"])
        # 1,024 accesses of 512 sectors at random leave 1 - 1/e^2 of them dirty.
        assert sectors == [1, pytest.approx(512 * (1 - math.exp(-2)), rel=0.05)]

    @pytest.mark.parametrize("pattern", kr.PATTERNS)
    def test_private_data_are_of_one_block(self, pattern):
        step = kr.Step("load", pattern=pattern, footprint=1 << 12)
        recipe = kr.Recipe(blocks=4, iterations=3, body=(step,), private=True)
        alone, four = (
            ws.simulate_caches(kr.trace(replace(recipe, blocks=blocks)), "a100").totals
            for blocks in (1, 4)
        )
        read = "dram_read_sectors"
        assert four[read] == 4 * alone[read] or pattern == "random"
        assert four[read] > 3 * alone[read]

    def test_a_share_of_the_warps(self):
        step = kr.Step("independent", warps=0.25)
        assert opcodes(kr.Recipe(blocks=3, block=256, body=(step,)))["FFMA"] == 3 * 2

    def test_a_ramp_of_blocks(self):
        found = opcodes(
            kr.Recipe(blocks=8, iterations=7, uneven="ramp", body=(kr.Step("special"),))
        )
        # Block b of eight goes round 7 (1 + 3 b / 7) times.
        assert found["MUFU.RCP"] == sum(7 + 3 * b for b in range(8))

    @pytest.mark.parametrize(
        ("kind", "opcode"),
        [("texture", "TEX.SCR.LL"), ("hmma", "HMMA.16816.F32"), ("imma", "IMMA.16832.S8.S8"),
         ("shuffle", "SHFL.DOWN"), ("wait", "cp.async.wait_group.0")],
    )  # fmt: skip
    def test_other_units(self, kind, opcode):
        assert opcodes(kr.Recipe(iterations=2, body=(kr.Step(kind, count=3),)))[opcode] == 6


def made_up(case):
    """Return an error of half a power of e where a chase is by several blocks, more on a slow NoC."""
    chases = any(step.kind == "chase" for one in case.launches for step in one.body)
    if not chases or case.launches[0].blocks < 3:
        return 0.01
    return 0.5 if case.on().noc_bandwidth_gbs < 1e5 else 0.05


LARGE = rc.Case(
    launches=2
    * (
        kr.Recipe(
            blocks=20,
            block=128,
            iterations=9,
            uneven="warps",
            body=(kr.Step("chase", 0, 3), kr.Step("load", 1, pattern="random")),
        ),
    ),
    gpu="a100",
    changes=(("num_sms", 7),),
)


class TestFaults:
    def test_what_is_made_small_has_nothing_that_the_error_does_not_need(self):
        step = kr.Step("chase")
        small = kr.Recipe(blocks=3, body=(step,))
        assert study.shrunk(LARGE, made_up) == rc.Case((small,))

    def test_the_error_keeps_its_sign_and_half_its_size(self):
        def error(case):
            return -0.1 * math.log2(sum(one.blocks for one in case.launches))

        small = study.shrunk(LARGE, error)
        assert error(LARGE) / 2 >= error(small) > 0.8 * error(LARGE)

    def test_the_change_that_takes_most_away_is_the_fault(self):
        assert study.fault(LARGE, made_up, study.MACHINE) == ("NoC", 0.05)
        assert study.fault(LARGE, made_up, study.KERNEL) == ("pointer chases", 0.01)

    def test_no_fault_where_nothing_takes_half(self):
        assert study.fault(LARGE, lambda case: 0.4, study.MACHINE) == ("", 0.4)
        assert study.fault(LARGE, lambda case: 0.0, study.MACHINE) == ("", 0.0)

    @pytest.mark.parametrize("name", study.MACHINE)
    def test_each_change_of_the_machine_is_of_some_gpu(self, name):
        """None is refused by all GPUs, or what a GPU is already."""
        case = rc.Case((kr.Recipe(),))
        changed = [study.MACHINE[name](replace(case, gpu=gpu)) for gpu in ("pascal-mdm", "a100")]
        assert any(one.on() != ws.gpu(one.gpu) for one in changed)


def test_a_snippet_prints_the_error_of_its_case(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["random_kernels.py", "--shrink", "1:9", "--model", "mdm"])
    study.main()
    said = capsys.readouterr().out
    exec(compile(said, "snippet", "exec"), {})
    cycles = int(capsys.readouterr().out.split()[0])
    assert f"of {cycles} cycles\n" in said.split("made small")[1]


def test_a_case_that_is_not_one_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["random_kernels.py", "--shrink", "seven"])
    with pytest.raises(SystemExit):
        study.main()
    assert "--shrink seven: expected SEED:NUMBER, such as 202:476" in capsys.readouterr().err


def test_the_tables_of_the_page_are_of_the_kept_cycles():
    rows = pd.read_csv(study.DATA / "cases.csv")
    table = study.pages.plain(study.summary(rows, rows.columns[2:]))
    pd.testing.assert_frame_equal(table, pd.read_csv(study.DATA / "errors.csv", dtype=str))
    worst = pd.read_csv(study.DATA / "worst.csv")
    for model, part in worst.groupby("model"):
        size = study.np.log(rows[model] / rows["simulated"]).abs()
        assert set(part["case"]) == set(rows["case"][size.nlargest(study.WORST).index])


def test_the_table_of_errors():
    rows = pd.DataFrame(
        {
            "case": ["1:0", "1:1", "1:2", "1:3"],
            "simulated": [100, 200, 400, 1000],
            "mdm": [90.0, 100.0, 480.0, 1000.0],
        }
    )
    (row,) = study.summary(rows, ["mdm"]).to_dict("records")
    assert row == {
        "seed": "1",
        "model": "mdm",
        "kernels": 4,
        "mean": "20.0 %",
        "median": "15.0 %",
        "90th percentile": "41.0 %",
        "99th percentile": "49.1 %",
        "worst": "-50.0 %",
        "bias": "-5.0 %",
        "rank correlation": "1.000",
    }
