"""Pictures that a file asks for: checked before work, drawn as the functions draw."""

import matplotlib.pyplot as plt
import pytest
import yaml

import warpstack as ws
from warpstack._util.yaml_file import _Loader
from warpstack.plot.design_file import plot_requests

PLOTS = """
- kind: curves
  file: ipc.png
  axis: num_sms
  where: {dram_bandwidth_gbs: 480}
- {kind: heat_map, file: map.svg, x: num_sms, y: dram_bandwidth_gbs, model: mdm, limits: [0, 20]}
- {kind: pareto, file: front.pdf, cost: num_sms * l1_size_kib, metric: cycles, maximise: false}
- {kind: speedup, file: speedup.png, axis: num_sms, baseline: {num_sms: 28, dram_bandwidth_gbs: 480}}
"""


def read(text, folder=".", apps=("one",)):
    return plot_requests(yaml.load(text, Loader=_Loader), apps, folder)


@pytest.mark.slow
def test_pictures_are_written(tmp_path, pascal):
    requests = read(PLOTS, tmp_path)
    assert requests[0].options == {"axis": "num_sms", "where": {"dram_bandwidth_gbs": 480}}
    assert requests[1].options["limits"] == (0, 20)
    assert requests[2].options["maximise"] is False
    axes = {"num_sms": [28, 56], "dram_bandwidth_gbs": [240, 480]}
    table = ws.sweep(ws.patterns.stream(blocks=28), pascal, axes, ["gpumech", "mdm"], cache=False)
    before = plt.get_fignums()
    for request in requests:
        request.draw(table, pascal)
    assert {path.name for path in tmp_path.iterdir()} == {
        "ipc.png",
        "map.svg",
        "front.pdf",
        "speedup.png",
    }
    assert (tmp_path / "ipc.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "front.pdf").read_bytes().startswith(b"%PDF")
    assert plt.get_fignums() == before
    (request,) = read("- {kind: curves, file: a.png, axis: l1_mshrs}", tmp_path)
    with pytest.raises(
        ws.InputError, match=r"plots: curves to .*: this sweep: there is no axis 'l1_mshrs'"
    ):
        request.draw(table, pascal)
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "^plots: expected a list of pictures"),
        ("[x]", "picture 1: expected lines `name: value`, got 'x'"),
        ("[{file: a.png}]", "picture 1: kind is missing"),
        ("[{kind: curves, axis: num_sms}]", "picture 1: file is missing"),
        ("[{kind: lines, file: a.png}]", "kind = 'lines' is not one of axis_stacks, bottlenecks"),
        ("[{kind: [curves], file: a.png}]", "kind = .* is not one of"),
        ("[{kind: curves, file: a.png}]", "picture 1: curves needs axis"),
        (
            "[{kind: curves, file: a.png, axis: a, metrik: b}]",
            "curves: there is no option 'metrik'; did you mean metric",
        ),
        (
            "[{kind: curves, file: a.png, axis: a, gpu: b}]",
            "curves: there is no option 'gpu'; there are axis, metric",
        ),
        ("[{kind: curves, file: a.txt, axis: a}]", "file = a.txt: the name must end in one of"),
        ("[{kind: curves, file: a.png, axis: a, style: page}]", "style = 'page' is not one of"),
        (
            "[{kind: curves, file: a.png, axis: a, width_inches: '1'}]",
            "width_inches = 1 is not a n",
        ),
        ("[{kind: curves, file: no/a.png, axis: a}]", "there is no folder"),
        ("[{kind: curves, file: [a], axis: a}]", "picture 1: file: expected a path, got a list"),
        ("[{kind: curves, file: a.png, axis: [a]}]", r"axis: expected text, got a list"),
        ("[{kind: curves, file: a.png, axis: a, where: b}]", "where: expected {field: value}, got"),
        ("[{kind: curves, file: a.png, axis: a, where: {b: 1}}]", "there is no field 'b'"),
        (
            "[{kind: heat_map, file: a.png, x: a, y: b, limits: [1]}]",
            "limits: expected .low, high.",
        ),
        (
            "[{kind: pareto, file: a.png, cost: a, maximise: yes}]",
            "'yes' is neither true nor false",
        ),
        (
            "[{kind: pareto, file: a.png, cost: a}, {kind: pareto, file: a.png, cost: b}]",
            "picture 2: file = a.png is that of another picture",
        ),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ws.InputError, match=message):
        read(text)


def test_one_of_several_applications(tmp_path, pascal):
    with pytest.raises(ws.InputError, match="picture 1: app is missing; there are a, b"):
        read("[{kind: curves, file: a.png, axis: num_sms}]", apps=["a", "b"])
    with pytest.raises(ws.InputError, match="picture 1: there is no app 'c'; there are a, b"):
        read("[{kind: curves, file: a.png, axis: num_sms, app: c}]", apps=["a", "b"])
    (request,) = read("[{kind: curves, file: a.png, axis: num_sms, app: b}]", tmp_path, ["a", "b"])
    apps = {"a": ws.patterns.stream(blocks=28), "b": ws.patterns.strided(32, blocks=28)}
    request.draw(ws.sweep(apps, pascal, {"num_sms": [14, 28]}, cache=False), pascal)
    assert (tmp_path / "a.png").exists()


@pytest.mark.slow
def test_command_line(tmp_path, capsys):
    from warpstack.cli import main

    design = tmp_path / "design.yaml"
    text = """
kernels: {bfs: {workload: bfs}}
gpu: pascal-mdm
axes: {noc_bandwidth_gbs: [525, 1050]}
plots:
- {kind: curves, file: ipc.png, axis: AXIS}
"""
    design.write_text(text.replace("AXIS", "noc_bandwidth_gbs"))
    assert main(["sweep", str(design)]) == 0
    assert (tmp_path / "ipc.png").read_bytes().startswith(b"\x89PNG")
    assert "curves: " in capsys.readouterr().err
    design.write_text(text.replace("axis: AXIS", "metrik: ipc"))
    assert main(["sweep", str(design)]) == 2
    error = capsys.readouterr().err
    assert ": plots: picture 1: curves: there is no option 'metrik'; did you mean metric?" in error
