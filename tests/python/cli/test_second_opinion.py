"""Why another model's time differs: what is said follows from the stacks, and from what models know."""

import re

import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.cli.common import second_opinion
from warpstack.cli.common.second_opinion import why
from warpstack.tables import STACK_COMPONENTS


def answer(time_us, **parts):
    """Return an answer whose stack has these parts, in us, and whose launch takes the rest."""
    stack = {f"cpi_{part}": 2.0 * parts.get(part, 0.0) for part in STACK_COMPONENTS}
    launch = time_us - sum(parts.values())
    return {"time_us": time_us, "launch_us": launch, "cpi": sum(stack.values()), **stack}


OWN = answer(102.0, base=30.0, l1=20.0, mshr=50.0)  # and 2 us of launch


@pytest.mark.parametrize(
    ("model", "other", "said"),
    [
        ("mdm", answer(127.0, base=30.0, l1=20.0, mshr=75.0), "it has 50 % more of mshr"),
        ("mdm", answer(77.0, base=30.0, l1=20.0, mshr=25.0), "it has 50 % less of mshr"),
        (
            "mdm",
            answer(142.0, base=30.0, mshr=110.0),
            "it has 120 % more of mshr; 20.00 us less of l1 offsets a part of it",
        ),
        (
            "simulator",
            answer(142.0, base=30.0, l1=20.0, mshr=50.0, queue=40.0),
            "it has 40.00 us of queue; closed_network has none",
        ),
        # The multithreading model of GPUMech reads no MSHRs; MDM does.
        (
            "mt",
            answer(52.0, base=30.0, l1=20.0),
            "it does not model MSHRs (mshr: 50.00 us in closed_network)",
        ),
        (
            "mdm",
            answer(52.0, base=30.0, l1=20.0),
            "it has no mshr (mshr: 50.00 us in closed_network)",
        ),
        (
            "mdm",
            answer(132.0, base=42.0, l1=30.0, mshr=58.0),
            "it has 40 % more of base; that is 40 % of the difference, the largest share",
        ),
        (
            "mdm",
            answer(102.0, base=30.0, l1=20.0, mshr=51.0),
            "no part of it differs by more than 1 % of the time",
        ),
        (
            "mdm",
            answer(102.0, base=30.0, l1=35.0, mshr=35.0),
            "the sums agree, the parts do not: 15.00 us more of l1, 15.00 us less of mshr",
        ),
    ],
)
def test_reasons(model, other, said):
    assert why("closed_network", OWN, model, other) == said


def test_a_part_that_is_many_times_as_large_is_said_in_time():
    own, other = answer(50.0, base=48.0, queue=2.0), answer(80.0, base=48.0, queue=32.0)
    assert why("closed_network", own, "mdm", other) == "it has 30.00 us more of queue"


def test_no_minus_before_a_zero():
    change = second_opinion._percent({"time_us": 100.0}, {"time_us": 99.9})
    assert f"{change:+,.0f}" == "+0"


def test_a_part_that_only_the_other_model_knows():
    other = answer(142.0, base=30.0, l1=20.0, mshr=90.0)
    own = answer(52.0, base=30.0, l1=20.0)
    assert why("mt", own, "mdm", other) == "it has 90.00 us of mshr; mt does not model MSHRs"


def test_what_predict_prints_is_of_the_stacks(tmp_path, pascal, capsys):
    app = ws.App([ws.patterns.strided(32, blocks=28)], "one")
    ws.save(app, tmp_path / "one")
    assert main(["predict", str(tmp_path / "one"), "--wide"]) == 0
    out = capsys.readouterr().out
    own, mdm = ws.predict(app, pascal, ["closed_network", "mdm"]).to_dict("records")
    times = [
        {part: row["time_us"] * row[f"cpi_{part}"] / row["cpi"] for part in STACK_COMPONENTS}
        for row in (own, mdm)
    ]
    changes = {part: times[1][part] - times[0][part] for part in STACK_COMPONENTS}
    total = mdm["time_us"] - own["time_us"]
    largest = max(changes, key=lambda part: changes[part] / total)
    change = times[1][largest] / times[0][largest] - 1
    assert (
        f"mdm: {mdm['time_us']:.2f} us ({100 * total / own['time_us']:+.0f} %): it has "
        f"{100 * abs(change):.0f} % {'more' if change > 0 else 'less'} of {largest}"
    ) in out
    assert re.search(r"^simulator: [\d.,]+ us \(", out, re.MULTILINE)
