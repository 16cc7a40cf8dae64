"""Designs of sweeps in files, and the commands that use them."""

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from warpstack.cli import main
from warpstack.cli.common.sweep_design import SweepDesign

DESIGN = """
kernels:
  mine: {trace: trace, kernels: "1"}
gpu: pascal-mdm
set: {l1_mshrs: 64}
axes:
  num_sms: [7, 14]
  noc_bandwidth_gbs: [525, 1.05e3]
models: [gpumech, mdm]
options: {flush_l2: true, merge_threshold: 10}
"""


@pytest.fixture
def folder(tmp_path):
    kernel = ws.patterns.strided(gs=8, iterations=2, blocks=28)
    ws.save(ws.App([kernel], "strided"), tmp_path / "trace")
    (tmp_path / "design.yaml").write_text(DESIGN)
    return tmp_path


def expected_table(folder, **options):
    app = ws.load(folder / "trace")
    gpu = ws.gpu("pascal-mdm").replace(l1_mshrs=64)
    axes = {"num_sms": [7, 14], "noc_bandwidth_gbs": [525, 1050]}
    return ws.sweep({"mine": app}, gpu, axes, ["gpumech", "mdm"], **options)


def test_a_file_is_its_sweep(folder):
    design = SweepDesign.read(folder / "design.yaml")
    assert list(design.load()) == ["mine"]
    assert design.axes == {"num_sms": [7, 14], "noc_bandwidth_gbs": [525, 1050]}
    assert design.models == ("gpumech", "mdm")
    assert design.options.flush_l2
    assert design.options.merge_threshold == 10
    assert design.gpu.changes == {"l1_mshrs": 64}


def test_the_command_prints_the_table(folder, capsys):
    assert main(["sweep", str(folder / "design.yaml"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    expected = expected_table(folder, flush_l2=True, merge_threshold=10)
    assert len(rows) == len(expected) == 8
    assert [row["cycles"] for row in rows] == expected["cycles"].tolist()
    assert main(["sweep", str(folder / "design.yaml")]) == 0
    text = capsys.readouterr().out
    assert "4 points of num_sms, noc_bandwidth_gbs, 1 application, 8 predictions" in text
    fastest = expected[expected["model"] == "mdm"].sort_values("time_us").iloc[0]
    assert f"{fastest['time_us']:,.2f}" in text


def test_points_are_ranked_by_time(folder, capsys):
    """Also where the clock is an axis, at whose fastest end a kernel takes the most cycles."""
    text = DESIGN.replace("num_sms: [7, 14]", "clock_ghz: [0.7, 1, 1.41, 2]")
    text = text.replace("  noc_bandwidth_gbs: [525, 1.05e3]\n", "").replace(
        "[gpumech, mdm]", "[mdm]"
    )
    (folder / "design.yaml").write_text(text)
    table = SweepDesign.read(folder / "design.yaml")
    sweep = ws.sweep(table.load(), table.gpu, table.axes, table.models, options=table.options)
    assert sweep["cycles"].is_monotonic_increasing
    assert sweep["time_us"].is_monotonic_decreasing
    assert main(["sweep", str(folder / "design.yaml")]) == 0
    before, rows = capsys.readouterr().out.split("Fastest points, by the time of all kernels")
    assert "4 points of clock_ghz" in before
    assert "clock (GHz)  time (us)" in rows
    shown = [line.split()[2:5] for line in rows.splitlines() if line.startswith("mine")]
    fastest = sweep.sort_values("time_us")[:3]
    assert [float(time) for _, _, time in shown] == pytest.approx(fastest["time_us"], abs=0.005)
    assert [point for point, _, _ in shown] == ["3", "2", "1"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_writes_the_table(folder, capsys, ending):
    output = folder / f"all.{ending}"
    assert main(["sweep", str(folder / "design.yaml"), "--output", str(output), "--csv"]) == 0
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    expected = expected_table(folder, flush_l2=True, merge_threshold=10)
    assert read(output)["cycles"].tolist() == expected["cycles"].tolist()
    assert list(read(output).columns) == list(expected.columns)


def test_a_store_is_resumed_when_asked_to(folder, capsys):
    command = ["sweep", str(folder / "design.yaml"), "--store", str(folder / "store"), "--csv"]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert main(command) == 2
    assert "holds results of this sweep already" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().out == first
    assert main(["sweep", str(folder / "design.yaml"), "--resume"]) == 2
    assert "there is no store" in capsys.readouterr().err


def with_sizes(folder, sizes):
    design = DESIGN.replace("num_sms: [7, 14]", f"l1_size_kib: {sizes}")
    (folder / "design.yaml").write_text(design)
    return ["sweep", str(folder / "design.yaml")]


@pytest.mark.parametrize("form", [[], ["--csv"]])
def test_errors_of_points_are_told(folder, capsys, form):
    assert main([*with_sizes(folder, "[17, 48, 65]"), *form]) == 0
    out, err = capsys.readouterr()
    warnings = [line for line in err.splitlines() if "warning" in line]
    assert len(warnings) == 2
    for line, size, nearest, point in zip(warnings, (17, 65), (17.25, 65.25), (0, 4), strict=True):
        assert f"2 of 6 points cannot be predicted: GPU pascal-mdm: l1_size_kib = {size} " in line
        assert f"the nearest that is: {nearest}" in line
        where = f"(the first is point {point}, l1_size_kib={size}, noc_bandwidth_gbs=525)"
        assert line.endswith(where)
    assert out.count("l1_size_kib = 17") == (4 if form else 0)  # each row has its error


def test_a_sweep_without_a_prediction_fails(folder, capsys):
    command = with_sizes(folder, "[17, 19, 20, 22, 23, 25]")
    output = folder / "all.csv"
    plot = f"plots: [{{kind: curves, file: {folder}/x.png, axis: l1_size_kib}}]"
    (folder / "design.yaml").write_text((folder / "design.yaml").read_text() + plot)
    assert main([*command, "--csv", "-o", str(output)]) == 2
    out, err = capsys.readouterr()
    assert err.splitlines()[-1] == "warpstack: error: none of the 12 points can be predicted"
    assert "4 more for 2 other reasons" in err
    assert len(out.splitlines()) == 25  # the rows and their errors are there all the same
    assert len(pd.read_csv(output)) == 24
    assert main(command) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("models:", "model:", "there is no key 'model'; did you mean models?"),
        ("num_sms", "num_sm", "axes: there is no field 'num_sm'; did you mean num_sms?"),
        ("[7, 14]", "7", "axes: num_sms = '7' is not a list of values"),
        ("[7, 14]", "[]", "axes: num_sms has no values"),
        ("{l1_mshrs: 64}", "{l1_mshr: 64}", "did you mean l1_mshrs?"),
        ("{l1_mshrs: 64}", "{l1_mshrs: many}", "l1_mshrs = 'many' is not a number"),
        (
            "trace: trace",
            "trce: trace",
            "give one of trace: PATH, source: FILE.cu and workload: NAME",
        ),
        ('kernels: "1"', 'kernel: "1"', "there is no key 'kernel'; did you mean kernels?"),
        ('kernels: "1"', 'kernels: "3-1"', "the range 3-1 is empty"),
        ('trace: trace, kernels: "1"', "workload: bsf", "no workload 'bsf'; did you mean bfs?"),
        ("gpu: pascal-mdm", "gpu: pascal-mdn", "did you mean pascal-mdm?"),
        ("gpu: pascal-mdm", "", "there is no gpu"),
        ("[gpumech, mdm]", "[mdx]", "there is no model 'mdx'"),
        ("flush_l2: true", "flush_l2: maybe", "is not true or false"),
        ("flush_l2: true", "flush_l3: true", "did you mean flush_l2?"),
        ("merge_threshold: 10", "merge_threshold: -1", "merge_threshold = -1"),
        ("axes:", "points:", "points: expected a list of points"),
        ("gpu:", f"workers: {'9' * 5000}\ngpu:", "is not a whole number of at least 1"),
        ("gpu:", "workers: 0\ngpu:", "workers = '0' is not a whole number of at least 1"),
        ("gpu:", "output: all.xls\ngpu:", "does not end in .csv or .parquet"),
        ("gpu:", 'output: "all\\nxls"\ngpu:', r"all\nxls does not end in .csv or .parquet"),
        ("gpu:", "points: []\ngpu:", "axes and points are two designs"),
        ("gpu:", "gpu: x\ngpu:", "gpu is given twice"),
    ],
)
def test_mistakes_in_a_file(folder, capsys, old, new, message):
    assert old in DESIGN
    (folder / "design.yaml").write_text(DESIGN.replace(old, new, 1))
    assert main(["sweep", str(folder / "design.yaml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "design.yaml" in line
    assert message in line


SAMPLE = """
kernels: [trace]
gpu: pascal-mdm
sample: {method: sobol, n: 4, ranges: {num_sms: {low: 4, high: 16}, l1_mshrs: [32, 64]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sobol", "halton", "sample: method = 'halton' is not one of"),
        ("n: 4, ", "", "sample: n is missing"),
        ("n: 4", "n: -4", "sample: n = '-4' is not a whole number"),
        ("n: 4", "size: 4", "sample: there is no key 'size'"),
        ("low: 4", "lo: 4", "did you mean low?"),
        ("low: 4, ", "", "low or high is missing"),
        ("low: 4", "scale: exp, low: 4", "scale = 'exp' is not one of linear, log"),
        ("{low: 4, high: 16}", "4", "expected {low: NUMBER, high: NUMBER} or a list"),
        ("high: 16", "high: 2", "lower one first"),
    ],
)
def test_mistakes_in_a_sample(folder, capsys, old, new, message):
    assert old in SAMPLE
    (folder / "design.yaml").write_text(SAMPLE.replace(old, new, 1))
    assert main(["sweep", str(folder / "design.yaml")]) == 2
    assert message in capsys.readouterr().err


def test_samples_in_files(folder):
    (folder / "design.yaml").write_text(SAMPLE.replace("high: 16", "high: 16, scale: log"))
    design = SweepDesign.read(folder / "design.yaml")
    ranges = {"num_sms": (4, 16, "log"), "l1_mshrs": [32, 64]}
    assert list(design.axes) == list(ws.exploration.samples.sobol(ranges, 4))


TEXTS = st.sampled_from(
    [
        *[
            "kernels",
            "gpu",
            "axes",
            "points",
            "sample",
            "models",
            "pascal-mdm",
            "num_sms",
            "1",
            "true",
        ]
    ]
)
VALUES = st.recursive(
    TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


@pytest.mark.slow
@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_any_file_is_a_design_or_an_error(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("designs") / "design.yaml"
    path.write_text(json.dumps(entries))
    try:
        SweepDesign.read(path)
    except ws.InputError as error:
        message = str(error)
    else:
        message = "design.yaml"
    assert "design.yaml" in message


def test_the_cache_command(folder, capsys, monkeypatch):
    cache = folder / "cache"
    monkeypatch.setenv("WARPSTACK_CACHE", str(cache))
    assert main(["cache"]) == 0
    assert "0.00 of 1,024 MiB" in capsys.readouterr().out
    expected_table(folder)
    assert main(["cache", "--json"]) == 0
    rows = {row["stage"]: row["entries"] for row in json.loads(capsys.readouterr().out)}
    assert rows == {"memory": 2, "warp": 1}
    assert main(["cache", "--clear"]) == 0
    assert "3 entries removed" in capsys.readouterr().out
    assert list(cache.iterdir()) == []
    monkeypatch.setenv("WARPSTACK_CACHE", "off")
    assert main(["cache"]) == 0
    assert "off (WARPSTACK_CACHE)" in capsys.readouterr().out


def test_launches_of_a_file_are_chosen_by_name_and_of_workloads(tmp_path):
    kernels = [ws.patterns.strided(gs, blocks=4, launch_id=i) for i, gs in enumerate((1, 8), 1)]
    ws.save(ws.App(kernels), tmp_path / "trace")
    (tmp_path / "design.yaml").write_text(
        "gpu: a100\naxes: {num_sms: [54, 108]}\nkernels:\n"
        "  named: {trace: trace, kernels: strided_gs8}\n"
        '  last: {workload: b+tree, kernels: "2-"}\n'
    )
    assert main(["sweep", str(tmp_path / "design.yaml"), "-o", str(tmp_path / "rows.csv")]) == 0
    table = pd.read_csv(tmp_path / "rows.csv")
    assert set(zip(table["app"], table["kernel"], strict=True)) == {("named", 2), ("last", 2)}
