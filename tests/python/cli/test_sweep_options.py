"""Designs of sweeps as options: ``warpstack sweep TRACE --axis FIELD=VALUE,VALUE``."""

import json

import pandas as pd
import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.cuda import compilers
from warpstack.cuda.toolchain import find_nvcc

AXES = ["--axis", "num_sms=7,14", "--axis", "noc_bandwidth_gbs=525,1.05e3"]
DESIGN = """
kernels: {app: {trace: app}}
gpu: pascal-mdm
set: {l1_mshrs: 64}
axes: {num_sms: [7, 14], noc_bandwidth_gbs: [525, 1.05e3]}
models: [gpumech, mdm]
options: {flush_l2: true, merge_threshold: 10}
profiler: nvprof
"""
KERNEL = """
extern "C" __global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
"""
MAIN = """
int main(int argc, char **argv) {
  float *x;
  cudaMalloc(&x, 4096);
  cudaMemset(x, 0, 4096);
  for (int i = 0; i < argc; ++i) scale<<<4, 256>>>(x, 1024);
  return cudaDeviceSynchronize();
}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a trace, a design of it, and a source."""
    monkeypatch.chdir(tmp_path)
    kernels = [ws.patterns.strided(gs=8, iterations=2, blocks=28, launch_id=i) for i in (1, 2)]
    ws.save(ws.App(kernels, "app"), tmp_path / "app")
    (tmp_path / "design.yaml").write_text(DESIGN)
    (tmp_path / "scale.cu").write_text(KERNEL)
    return tmp_path


@pytest.fixture
def rows(capfd):
    """Return a function that sweeps and returns the rows."""

    def call(*words):
        status = main(["sweep", "--json", *words])
        out, err = capfd.readouterr()
        assert status == 0, err
        return json.loads(out)

    return call


def test_options_are_the_design_of_a_file(here, rows):
    options = ["--set", "l1_mshrs=64", "--models", "gpumech,mdm", "-O", "flush_l2=true"]
    options += ["--merge-threshold", "10", "--profiler", "nvprof"]
    expected = rows("design.yaml")
    assert len(expected) == 16
    assert rows("app", *AXES, *options) == expected
    assert rows(*options, *AXES, "app") == expected
    assert rows("app", *AXES) != expected  # each of them counts


def test_one_default_gpu_and_model(here, rows):
    table = ws.sweep({"app": ws.load("app")}, "pascal-mdm", {"num_sms": [7, 14]})
    found = pd.DataFrame(rows("app", "--axis", "num_sms=7,14"))
    assert list(found.columns) == list(table.columns)
    assert found["cycles"].tolist() == table["cycles"].tolist()


@pytest.mark.parametrize("anchor", ["simulate", "mdm"])
def test_an_anchor(here, rows, capfd, anchor):
    axis = ["--axis", "num_sms=7,28"]
    found = rows("app", *axis, "--anchor", anchor)
    table = ws.sweep({"app": ws.load("app")}, "pascal-mdm", {"num_sms": [7, 28]}, anchor=anchor)
    assert list(found[0]) == list(table.columns)
    assert pd.DataFrame(found)["cycles"].tolist() == table["cycles"].tolist()
    assert {row["anchor"] for row in found} == {anchor}
    # The same of a file, and as text.
    text = DESIGN.replace("[gpumech, mdm]", f"[gpumech]\nanchor: {anchor}")
    (here / "anchored.yaml").write_text(text)
    assert {row["anchor"] for row in rows("anchored.yaml")} == {anchor}
    assert main(["sweep", "app", *axis, "--anchor", anchor]) == 0
    assert f"anchored by {anchor} at pascal-mdm" in " ".join(capfd.readouterr().out.split())


def test_what_only_the_anchor_reads_is_read(here, capsys):
    options = ["app", "--axis", "num_sms=7,14", "--set", "l1_mshr_targets=4"]
    note = "--set l1_mshr_targets=4 has no effect on the models closed_network"
    assert main(["sweep", *options]) == 0
    assert note in capsys.readouterr().err
    assert main(["sweep", *options, "--anchor", "simulate"]) == 0
    assert "has no effect" not in capsys.readouterr().err
    assert main(["sweep", *options, "--anchor", "mdm"]) == 0
    assert f"{note} and the anchor mdm" in capsys.readouterr().err


def test_launches_are_chosen(here, rows):
    found = rows("app", "--axis", "num_sms=7,14", "--kernels", "2")
    assert [row["kernel"] for row in found] == [2, 2]


def test_words_and_wrong_values_are_values(here, rows):
    found = rows("app", "--axis", "scheduler=gto, lrr,lrx")
    assert [row["scheduler"] for row in found] == ["gto"] * 2 + ["lrr"] * 2 + ["lrx"] * 2
    assert all(row["error"] == "" for row in found[:4])
    assert all("scheduler" in row["error"] for row in found[4:])


def test_workloads_are_swept(rows):
    found = rows("--workload", "stencil", "--axis", "num_sms=14,28")
    assert {row["app"] for row in found} == {"stencil"}
    assert {row["num_sms"] for row in found} == {14, 28}


@pytest.mark.skipif(not compilers(), reason="needs a CUDA compiler")
def test_kernels_of_a_source(here, rows):
    launch = "scale<<<4, 256>>>(float[1024], 1024)"
    found = rows("scale.cu", "--launch", launch, "--axis", "num_sms=7,14")
    assert [(row["app"], row["name"]) for row in found] == [("scale", "scale")] * 2
    text = DESIGN.replace("{trace: app}", f'{{source: scale.cu, launch: "{launch}"}}')
    (here / "design.yaml").write_text(text)
    assert [row["name"] for row in rows("design.yaml")] == ["scale"] * 8


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
def test_programs_with_arguments(here, rows):
    (here / "program.cu").write_text(KERNEL + MAIN)
    found = rows("program.cu", "--axis", "num_sms=7,14", "--gpu", "a100", "--", "one", "two")
    assert [(row["app"], row["kernel"]) for row in found] == [("program", n) for n in (1, 2, 3)] * 2
    for arguments in ("one 'two'", "[one, two]"):
        (here / "source.yaml").write_text(
            f"kernels: {{program: {{source: program.cu, arguments: {arguments}}}}}\n"
            "gpu: a100\naxes: {num_sms: [7, 14]}\n"
        )
        assert rows("source.yaml") == found
    (here / "list.yaml").write_text(
        "kernels: [program.cu, app]\ngpu: a100\naxes: {num_sms: [7, 14]}\n"
    )
    assert {row["app"] for row in rows("list.yaml")} == {"program", "app"}


def test_stores_and_tables(here, capsys):
    command = ["sweep", "app", *AXES, "--store", "store", "-o", "all.csv", "--csv"]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert len(pd.read_csv("all.csv")) == len(pd.read_parquet("store")) == 8
    assert main(command) == 2
    assert "holds results of this sweep already" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().out == first
    # The store is that of the same design in a file, too.
    options = ["models: [gpumech, mdm]\n", "options: {flush_l2: true, merge_threshold: 10}\n"]
    text = DESIGN.replace("set: {l1_mshrs: 64}\n", "").replace("profiler: nvprof\n", "")
    for option in options:
        text = text.replace(option, "")
    (here / "same.yaml").write_text(text)
    assert main(["sweep", "same.yaml", "--store", "store", "--resume", "--csv"]) == 0
    assert capsys.readouterr().out == first


MISTAKES = {
    "": "there is nothing to sweep over; give a trace, a CUDA source (kernel.cu), --workload NAME",
    "--axis num_sms=7": "there is nothing to sweep over",
    "app": "there is no axis; give --axis FIELD=VALUE,VALUE,...",
    "scale.cu --gpu a100": "there is no axis; give --axis FIELD=VALUE,VALUE,...",
    "app --axis num_sms": "--axis num_sms: expected FIELD=VALUE,VALUE,...",
    "app --axis num_sms=": "--axis num_sms=: expected FIELD=VALUE,VALUE,...",
    "app --axis num_sms=7,,14": "--axis num_sms=7,,14: expected FIELD=VALUE,VALUE,...",
    "app --axis num_sm=7": "--axis num_sm=7: there is no field 'num_sm'; did you mean num_sms?",
    "app --axis num_sms=7 --axis num_sms=14": "num_sms is an axis already; give all its values at once",
    "app --axis num_sms=7 --set num_sms=14": "--set gives num_sms one value; leave one of them out",
    "app --axis shared_memory_carve_outs_kib=0,8": "is a list; write the lists into a design file",
    "app --axis num_sms=7 --gpu a11": "there is no GPU 'a11'",
    "app --axis num_sms=7 --gpu a100 --gpu l4": "--gpu is given 2 times, a100, l4",
    "app --axis num_sms=7 -m mdn": "there is no model 'mdn'; did you mean mdm?",
    "app --axis num_sms=7 --anchor simulator": "--anchor 'simulator' is not one of ",
    "app --axis num_sms=7 -m mdm --anchor mdm": "--anchor mdm: is the swept model mdm itself",
    "design.yaml --anchor mdm": "--anchor: design.yaml is a design, which says it under `anchor:`",
    "anchored.yaml": "anchored.yaml:9: anchor = mdm: is the swept model mdm itself",
    "app --axis num_sms=7 -O sample_sms=1": "there is no option 'sample_sms'",
    "app app --axis num_sms=7": "2 traces are given, app, app: this command takes one",
    "app --workload bfs --axis num_sms=7": "the trace app and --workload bfs are given",
    "lost --axis num_sms=7": "lost: no such file or folder",
    "design.yaml --axis num_sms=7": "--axis: design.yaml is a design, which says it under `axes:`",
    "design.yaml --gpu a100": "--gpu: design.yaml is a design, which says it under `gpu:`",
    "design.yaml --kernels 1": "--kernels: design.yaml is a design, which says it under `kernels:`",
    "design.yaml -O flush_l2=true": "which says it under `options:`; write it there",
    "design.yaml app": "2 files are given, design.yaml, app: a design file stands alone",
    "design.yaml -- 512": "-- 512: design.yaml is a design; it has the arguments of a program",
    "no-source.yaml": "source = app is no CUDA source (.cu, .ptx); a trace goes to trace:",
    "two.yaml": "give one of trace: PATH, source: FILE.cu and workload: NAME",
    "quote.yaml": 'arguments = "it\'s": No closing quotation',
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes(here, capsys, words):
    for name, entry in (
        ("no-source", "source: app"),
        ("two", "source: scale.cu, trace: app"),
        ("quote", 'source: scale.cu, arguments: "it\'s"'),
    ):
        (here / f"{name}.yaml").write_text(DESIGN.replace("trace: app", entry))
    (here / "anchored.yaml").write_text(DESIGN + "anchor: mdm\n")
    try:
        status = main(["sweep", *words.split()])
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert MISTAKES[words] in line


def test_settings_that_change_nothing_are_noted(here, capsys):
    options = ["--axis", "num_sms=7,14", "--set", "noc_bandwidth_gbs=600", "-m", "naive_interval"]
    assert main(["sweep", "app", *options]) == 0
    note = "--set noc_bandwidth_gbs=600 has no effect on the models naive_interval"
    assert note in capsys.readouterr().err


def test_what_l1_size_kib_is_where_shared_memory_takes_its_part(here, capsys):
    note = "a100 divides unified_l1_kib = 192 KiB between L1 and shared memory, so l1_size_kib does not"
    sizes = ["--gpu", "a100", "--axis", "l1_size_kib=48,96,144"]
    assert main(["sweep", "app", *sizes]) == 0
    assert note in capsys.readouterr().err
    fixed = ["--set", "unified_l1_kib=0", "--set", "shared_memory_carve_outs_kib="]
    assert main(["sweep", "app", *sizes, *fixed]) == 0
    assert capsys.readouterr().err == ""
    (here / "l1.yaml").write_text(
        "kernels: [app]\ngpu: a100\naxes: {l1_size_kib: [48, 96]}\n"
        "set: {unified_l1_kib: 0, shared_memory_carve_outs_kib: []}\n"
    )
    assert main(["sweep", "l1.yaml"]) == 0
    assert capsys.readouterr().err == ""


def test_the_help_begins_with_one_line(capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "warpstack sweep saxpy.cu --gpu a100 --axis" in out
