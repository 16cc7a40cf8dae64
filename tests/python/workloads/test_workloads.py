"""The workloads: results equal to their references, the classes of MDM's Table IV, the framework."""

import gzip
import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from conftest import REPOSITORY

FOLDER = REPOSITORY / "data" / "workloads"

#: Sizes far below ``small``; those after the first of a workload fill no block or have one element.
SIZES = {
    "2d-convolution": [{"width": 96, "height": 40}, {"width": 45, "height": 13}],
    "alexnet": [{"image": 67, "channel_divisor": 16}],
    "b+tree": [
        {"records": 40000, "queries": 60, "ranges": 40},
        {"records": 100, "queries": 10, "ranges": 10},
    ],
    "backprop": [{"inputs": 512}],
    "bfs": [{"nodes": 2000}, {"nodes": 1}],
    "cfd": [{"points": 300, "iterations": 2}],
    "fdtd3d": [
        {"width": 56, "height": 40, "depth": 8, "steps": 2},
        {"width": 33, "height": 17, "depth": 3, "steps": 1},
    ],
    "hotspot": [
        {"width": 96, "height": 64, "steps": 3},
        {"width": 70, "height": 45, "steps": 4},
    ],
    "inverted-index": [{"lines": 300}, {"lines": 9}],
    "k-means": [
        {"points": 500, "clusters": 7, "iterations": 3},
        {"points": 33, "features": 3},
    ],
    "pageview-count": [{"views": 500}, {"views": 1}],
    "pageview-rank": [{"pages": 500}, {"pages": 1}],
    "ray-tracing": [{"width": 64, "height": 48, "spheres": 8, "bounces": 3}],
    "resnet": [{"image": 32, "layers": 14, "channel_divisor": 8}],
    "spmv": [{"rows": 300, "entries_per_row": 7}, {"rows": 1}],
    "srad": [
        {"width": 96, "height": 40, "iterations": 2},
        {"width": 45, "height": 13, "iterations": 1},
    ],
    "stencil": [
        {"width": 64, "height": 24, "depth": 6, "steps": 2},
        {"width": 37, "height": 11, "depth": 3, "steps": 1},
    ],
}
CASES = [(name, size) for name in ws.workloads.names() for size in SIZES[name]]

#: Table IV of MDM.
TABLE_IV = {
    "NMD": "HS BT BP FDTD SRAD RAY 2DCONV ST",
    "MD": "CFD BFS PVR PVC IIX SPMV KMEANS AN RN",
}


def app_dpki(app):
    instructions = sum(kernel.num_instructions for kernel in app)
    return sum(kernel.dpki() * kernel.num_instructions for kernel in app) / instructions


# --- every workload -----------------------------------------------------------------------------


def test_every_workload_of_table_iv():
    every = [ws.workloads.get(name) for name in ws.workloads.names()]
    classes = {"NMD": [], "MD": []}
    for workload in every:
        classes["MD" if workload.memory_divergent else "NMD"].append(workload.abbreviation)
    assert {k: sorted(v) for k, v in classes.items()} == {
        k: sorted(v.split()) for k, v in TABLE_IV.items()
    }
    assert set(SIZES) == {workload.name for workload in every}
    for workload in every:
        assert {"small", "paper"} <= set(workload.sizes)
        assert workload.title
        assert workload.suite
        assert workload.description.endswith(".")


@pytest.mark.parametrize(("name", "size"), CASES)
def test_results_equal_the_reference(name, size):
    ws.workloads.check(name, size, trace=False)
    ws.workloads.check(name, size, trace=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ws.workloads.names())
def test_another_seed(name):
    first = ws.workloads.run(name, SIZES[name][0], seed=0)
    other = ws.workloads.run(name, SIZES[name][0], seed=1)
    assert any(not np.array_equal(first[k], other[k]) for k in first)
    for size in SIZES[name]:
        ws.workloads.check(name, size, seed=1)


@pytest.mark.parametrize("name", ws.workloads.names())
def test_traces_are_deterministic(name):
    app, again = (ws.workloads.load(name, SIZES[name][0]) for _ in range(2))
    assert app.name == name
    assert [kernel.launch_id for kernel in app] == list(range(1, len(app) + 1))
    assert app.digest == again.digest


@pytest.mark.slow
@pytest.mark.parametrize("name", ws.workloads.names())
def test_class_and_measured_values_at_small(name):
    """More than 10 divergent loads per kilo-instruction, as Table IV says, and as documented."""
    app = ws.workloads.load(name)
    workload = ws.workloads.get(name)
    dpki = app_dpki(app)
    assert (dpki > 10) == workload.memory_divergent
    instructions = sum(kernel.num_instructions for kernel in app)
    assert 200_000 <= instructions <= 5_000_000
    row = ws.workloads.table().set_index("name").loc[name]
    # The table is rounded history when the interpreter counts a few instructions otherwise; beyond
    # this, studies/workloads.py --write is due.
    assert row["launches"] == len(app)
    assert row["instructions"] == pytest.approx(instructions, rel=0.01)
    assert row["dpki"] == pytest.approx(dpki, rel=0.02, abs=0.05)


@pytest.mark.parametrize("name", ws.workloads.names())
def test_predicted(name, pascal):
    table = ws.predict(ws.workloads.load(name, SIZES[name][0]), pascal, ["mdm"])
    assert np.isfinite(table["cycles"]).all()
    assert (table["ipc"] > 0).all()


# --- sources ------------------------------------------------------------------------------------


def sources():
    return sorted(FOLDER.glob("*/*.cu"))


def compiler_is_there():
    try:
        ws.cuda.compile('extern "C" __global__ void nothing() {}\n')
    except ws.InputError:
        return False
    return True


def test_every_source_has_its_ptx_and_module():
    modules = {path.stem for path in (REPOSITORY / "python/warpstack/workloads").glob("[!_]*.py")}
    assert {path.stem for path in sources()} == modules
    for path in sources():
        assert path.parent.name == path.stem
        ptx = path.with_suffix(".ptx").read_text()
        assert ".target sm_75" in ptx
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert ptx.endswith(f"SHA-256 {digest}\n"), "run tools/compile-workloads"
        assert not re.search(r'^\s*\.file\s+\d+\s+"[^"]*/', ptx, re.MULTILINE)
        kernels = set(
            re.findall(
                r'extern "C" __global__ void\s+(?:__\w+__\(.*?\)\s*)?(\w+)', path.read_text()
            )
        )
        assert kernels == set(re.findall(r"^\.visible \.entry (\w+)", ptx, re.MULTILINE))
        for arch in ws.workloads.machine_codes():
            listing = gzip.decompress(path.with_suffix(f".{arch}.sass.gz").read_bytes()).decode()
            assert f".target {arch}\n" in listing
            assert listing.endswith(f"SHA-256 {digest}\n"), "run tools/compile-workloads"
            assert not re.search(r'^\.file \d+ "[^"]*/', listing, re.MULTILINE)
            assert kernels == set(re.findall(r"^\.kernel (\w+)", listing, re.MULTILINE))


def test_sources_include_nothing():
    for path in sources():
        assert "#include" not in path.read_text(), path


@pytest.mark.slow
@pytest.mark.skipif(not compiler_is_there(), reason="needs NVRTC or nvcc")
@pytest.mark.parametrize("name", ws.workloads.names())
def test_recompiled_source_gives_the_same_results(name, monkeypatch):
    compile_ptx = ws.cuda.compile
    recompiled = []

    def compile_source(path, **options):
        recompiled.append(path.stem)
        return compile_ptx(path.with_suffix(".cu"), **options)

    monkeypatch.setattr(ws.cuda, "compile", compile_source)
    ws.workloads.check(name, SIZES[name][0])
    assert len(recompiled) == 1


# --- the framework ------------------------------------------------------------------------------


def test_unknown_names_suggest_the_near_one():
    with pytest.raises(ws.InputError, match=r"no workload 'hotpot'; did you mean hotspot\?;"):
        ws.workloads.load("hotpot")
    with pytest.raises(ws.InputError, match="no workload 'b'; there are 2d-convolution, "):
        ws.workloads.get("b")
    with pytest.raises(ws.InputError, match="workload: expected the name of a workload, got "):
        ws.workloads.get(3)
    with pytest.raises(
        ws.InputError, match=r"no size 'smallest'; did you mean small\?; there are "
    ):
        ws.workloads.load("hotspot", "smallest")
    with pytest.raises(ws.InputError, match=r"no parameter 'widths'; did you mean width\?"):
        ws.workloads.load("hotspot", {"widths": 3})
    with pytest.raises(ws.InputError, match="width = 0 is outside 1 to"):
        ws.workloads.load("hotspot", {"width": 0})
    with pytest.raises(ws.InputError, match="the name of a size or a mapping of parameters, got"):
        ws.workloads.load("hotspot", 3)
    with pytest.raises(ws.InputError, match="seed = -1 is outside"):
        ws.workloads.load("hotspot", seed=-1)
    with pytest.raises(ws.InputError, match="inputs = 17 is not a multiple of 16"):
        ws.workloads.load("backprop", {"inputs": 17})
    with pytest.raises(ws.InputError, match="three planes are the least"):
        ws.workloads.load("stencil", {"depth": 2})


def test_parameters_replace_those_of_small():
    workload = ws.workloads.get("hotspot")
    small = workload.sizes["small"]
    assert workload.parameters("small") == small
    assert workload.parameters({"steps": np.int64(5)}) == {**small, "steps": 5}
    with pytest.raises(TypeError):
        workload.parameters("small")["steps"] = 1


def test_a_wrong_result_is_found():
    workload = ws.workloads.get("hotspot")
    parameters = workload.parameters({"width": 8, "height": 4, "steps": 1})
    inputs = workload.make_inputs(parameters, np.random.default_rng(0))
    expected = workload.reference(parameters, inputs)
    ws.workloads.compare(workload, expected, expected)
    wrong = {"temperature": expected["temperature"].copy()}
    wrong["temperature"][2, 5] += 0.1
    with pytest.raises(
        ws.workloads.ResultError, match=r"hotspot: temperature\[2, 5\] is .*1 of 32"
    ):
        ws.workloads.compare(workload, wrong, expected)
    wrong["temperature"][2, 5] = np.nan
    with pytest.raises(ws.workloads.ResultError, match=r"temperature\[2, 5\] is nan"):
        ws.workloads.compare(workload, wrong, expected)
    with pytest.raises(ws.workloads.ResultError, match=r"the shape \(3, 8\) and type float32"):
        ws.workloads.compare(workload, {"temperature": expected["temperature"][1:]}, expected)
    with pytest.raises(ws.workloads.ResultError, match="the outputs are heat, the reference has"):
        ws.workloads.compare(workload, {"heat": expected["temperature"]}, expected)


def test_exact_outputs_are_compared_exactly():
    workload = ws.workloads.get("b+tree")
    expected = {"answers": np.array([1, 2, 3], np.int32)}
    with pytest.raises(ws.workloads.ResultError, match=r"answers\[1\] is 7, the reference says 2"):
        ws.workloads.compare(workload, {"answers": np.array([1, 7, 3], np.int32)}, expected)


def test_documented_table():
    """The numbers that docs/reference/workloads.md shows are those measured."""
    measured = pd.read_csv(FOLDER / "measured.csv").set_index("name")
    shown = pd.read_csv(REPOSITORY / "docs" / "data" / "workloads" / "workloads.csv")
    assert set(shown["workload"]) == set(measured.index) == set(ws.workloads.names())
    for cells in shown.to_dict("records"):
        row, workload = measured.loc[cells["workload"]], ws.workloads.get(cells["workload"])
        assert cells["suite"] == workload.suite
        assert cells["class"] == ("MD" if workload.memory_divergent else "NMD")
        assert (cells["launches"], cells["warp instructions"]) == (row.launches, row.instructions)
        assert cells["DPKI"] == round(row.dpki, 1)


def test_saved_and_loaded(tmp_path, pascal):
    """PTX has more registers than the 255 of SASS."""
    app = ws.workloads.load("hotspot", SIZES["hotspot"][0])
    registers = app[0].instructions["destinations"].explode().max()
    assert registers > 255
    ws.save(app, tmp_path / "saved")
    again = ws.load(tmp_path / "saved")
    assert again.digest == app.digest
    pd.testing.assert_frame_equal(ws.predict(again, pascal), ws.predict(app, pascal))


# --- the command line ---------------------------------------------------------------------------


def run_command(capsys, *arguments, status=0):
    from warpstack.cli import main

    assert main([str(a) for a in arguments]) == status
    return capsys.readouterr()


def test_command_traces_a_workload(capsys, tmp_path):
    out, err = run_command(
        capsys, "trace", "--workload", "ray-tracing", "--seed", 2, "-o", tmp_path / "ray"
    )
    assert err == ""
    assert "ray: 1 kernel," in out
    saved = ws.load(tmp_path / "ray")
    assert saved.name == "ray-tracing"
    assert saved.digest == ws.workloads.load("ray-tracing", seed=2).digest
    _, err = run_command(
        capsys, "trace", "--workload", "ray-tracing", "-o", tmp_path / "ray", status=2
    )
    assert "--overwrite" in err


def test_command_refuses_unknown_workloads(capsys, tmp_path):
    _, err = run_command(capsys, "trace", "--workload", "hotspt", "-o", tmp_path / "x", status=2)
    assert err.startswith("warpstack: error: there is no workload 'hotspt'; did you mean hotspot?;")
    assert not (tmp_path / "x").exists()


def test_command_lists_the_workloads(capsys):
    out, _ = run_command(capsys, "workloads", "--json")
    rows = json.loads(out)
    assert [row["name"] for row in rows] == ws.workloads.names()
    assert {row["class"] for row in rows} <= {"MD", "NMD"}
    out, _ = run_command(capsys, "workloads")
    assert "Ray tracing" in out
