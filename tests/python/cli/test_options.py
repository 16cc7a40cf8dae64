"""``-O NAME=VALUE`` says what the flags say; ``--help`` shows the options that most calls need."""

import dataclasses
import json
import re

import pytest

import warpstack as ws
from warpstack.cli import main, make_parser, registry
from warpstack.cli.common.option_values import option_flags


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("options") / "small"
    kernels = [ws.patterns.strided(gs, blocks=60, launch_id=i) for i, gs in enumerate((1, 32), 1)]
    ws.save(ws.App(kernels, "small"), path)
    return str(path)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    return call


@pytest.fixture(scope="module")
def commands():
    return registry.commands_of(make_parser())


#: Options with a value other than the default, and the same as a flag.
PAIRS = {
    "selection=max": ["--selection", "max"],
    "misses=representative": ["--misses", "representative"],
    "merge_threshold=40": ["--merge-threshold", "40"],
    "access_order=greedy": ["--access-order", "greedy"],
    "flush_l2=yes": ["--flush-l2"],
    "sample_sms=0.5": ["--sampling", "0.5"],
    "sample_launches=true": ["--sample-launches"],
    "sample_launches=0.2": ["--sample-launches", "0.2"],
    "profiler=ncu": ["--profiler", "ncu"],
}


@pytest.mark.parametrize("setting", PAIRS)
def test_an_option_is_its_flag(setting, small, commands):
    parser = commands["predict"]
    flag = vars(parser.parse_args([small, *PAIRS[setting]]))
    option = vars(parser.parse_args([small, "-O", setting]))
    assert option.pop("option_values") == [setting]
    assert flag.pop("option_values") == []
    assert option == flag
    assert option != vars(parser.parse_args([small]))


def test_false_is_the_default(small, commands):
    for setting in ("flush_l2=false", "flush_l2=No", "sample_launches=off"):
        assert not getattr(
            commands["predict"].parse_args([small, "-O", setting]), setting.split("=")[0]
        )


def test_the_answer_follows_the_options(small, run):
    given = run("predict", small, "--json", "-O", "misses=representative", "-Oaccess_order=greedy")
    flags = run(
        "predict", small, "--json", "--misses", "representative", "--access-order", "greedy"
    )
    assert json.loads(given) == json.loads(flags)
    emptied, kept = (
        json.loads(run("caches", small, "--json", "-O", f"flush_l2={truth}"))
        for truth in ("true", "false")
    )
    assert emptied[0] == kept[0]
    assert emptied[1] != kept[1]  # the second kernel reads what the first has left in L2


def test_names_are_those_of_python(commands):
    of_python = {field.name for field in dataclasses.fields(ws.Options)}
    assert set(option_flags(commands["predict"])) <= of_python
    # The blocks that `trace` records are no option of what reads traces.
    with_option = {name for name, parser in commands.items() if option_flags(parser)} - {"trace"}
    assert with_option == {
        "predict",
        "timeline",
        "caches",
        "simulate",
        "lines",
        "dvfs",
        "roofline",
        "compare",
        "report",
        "sweep",
    }
    for name in with_option:
        assert "-O" in commands[name]._option_string_actions, name


def options_of(text):
    """Return the options that a help describes."""
    return set(re.findall(r"^  (?:-\w, )?(--?[\w-]+)", text, flags=re.MULTILINE))


def test_help_shows_what_most_calls_need(commands):
    for name, parser in commands.items():
        everything = options_of(parser.format_full_help())
        shown = options_of(parser.format_help())
        assert shown <= everything
        assert len(shown) <= 18, name
        assert ("--help-all" in shown) == (len(everything) > 19) == (shown < everything), name
    predict = commands["predict"].format_help()
    assert len(options_of(predict)) == 18  # with --help and --help-all
    assert "--merge-threshold" not in predict
    assert "23 more options: warpstack predict --help-all" in " ".join(predict.split())


@pytest.mark.parametrize("columns", ["60", "80", "100", "140"])
def test_no_line_of_a_help_ends_within_an_option(commands, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    for parser in commands.values():
        text = parser.format_full_help()
        assert not re.search(r" --?\w[\w-]*-$", text, flags=re.MULTILINE), parser.prog


@pytest.mark.parametrize(
    "typed", ["a.cu -o x -- 512 -v", "-o x -- a.cu 512 -v", "-o x a.cu -- 512 -v"]
)
def test_trace_takes_a_program_before_or_behind_the_dashes(commands, typed):
    arguments = commands["trace"].parse_args(typed.split())
    assert (arguments.command, arguments.output) == (["a.cu", "512", "-v"], "x")


def test_help_all_shows_all(capsys, commands):
    with pytest.raises(SystemExit) as end:
        main(["predict", "--help-all"])
    assert end.value.code == 0
    shown = options_of(capsys.readouterr().out)
    assert {"--merge-threshold", "--sampling", "--memory-limit"} <= shown
    # And a hidden option is hidden from the help only.
    assert commands["predict"].parse_args(["x", "--top", "3", "--merge-threshold", "2"]).top == 3


def test_commands_are_listed_in_groups(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    sections = dict(re.findall(r"^([\w-]+):\n((?:  .*\n)+)", out, flags=re.MULTILINE))
    assert list(sections) == ["answers", "traces", "designs", "checks", "set-up", "options"]
    for title, names in registry.GROUPS.items():
        assert re.findall(r"^  (\w+)", sections[title], flags=re.MULTILINE) == list(names)
