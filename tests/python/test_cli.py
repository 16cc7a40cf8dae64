"""The command line as a user runs it."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import warpstack as ws
from accelsim_text import Instruction, grouped
from warpstack.cli import main

CACHE_KEYS = {
    "kernel",
    "name",
    "l1_read_sectors",
    "l1_read_sector_hits",
    "l1_write_sectors",
    "l2_read_sectors",
    "l2_read_sector_hits",
    "l2_write_sectors",
    "l2_write_sector_hits",
    "dram_read_sectors",
    "dram_write_sectors",
    "load_instructions",
    "store_instructions",
}


@pytest.fixture
def run(capsys):
    def call(*arguments, status=0):
        try:
            found = main([str(a) for a in arguments])
        except SystemExit as stop:
            found = stop.code
        captured = capsys.readouterr()
        assert found == status, captured.err
        return captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a saved application of two small kernels."""
    path = tmp_path_factory.mktemp("small") / "app"
    kernels = [ws.patterns.strided(gs, blocks=28, launch_id=i) for i, gs in ((1, 1), (2, 32))]
    ws.save(ws.App(kernels, "small"), path)
    return path


def test_predict_table(run, small):
    out, err = run("predict", small)
    assert "small on pascal-mdm" in out
    for text in ("strided_gs1", "strided_gs32", "gpumech_plus", "mdm_mshr", "All kernels", "queue"):
        assert text in out
    assert err == ""


def test_predict_json(run, small):
    out, _ = run("predict", small, "--json", "--models", "all")
    records = json.loads(out)
    assert len(records) == 2 * len(ws.models.names())
    for record in records:
        assert {"kernel", "name", "gpu", "model", "instructions", "cycles", "ipc", "cpi"} <= set(
            record
        )
        assert list(record["cpi_stack"]) == [
            "base",
            "dep",
            "l1",
            "l2",
            "dram",
            "mshr",
            "noc",
            "queue",
        ]
        assert sum(record["cpi_stack"].values()) == pytest.approx(record["cpi"], rel=1e-9)
        assert record["ipc"] == pytest.approx(record["instructions"] / record["cycles"])
    expected = ws.predict(ws.load(small), ws.gpu("pascal-mdm"), "all")
    assert [r["cycles"] for r in records] == expected["cycles"].tolist()


def test_predict_csv(run, small):
    out, _ = run("predict", small, "--csv", "-m", "mdm")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["kernel"] for row in rows] == ["1", "2"]
    assert float(rows[0]["cpi_base"]) == 1


@pytest.mark.parametrize(
    "models",
    [["--models", "mdm", "gpumech"], ["--models", "mdm,gpumech"], ["-m", "mdm", "-m", "gpumech"]],
)
def test_ways_to_name_models(run, small, models):
    out, _ = run("predict", small, "--json", *models)
    assert [r["model"] for r in json.loads(out)] == ["mdm", "gpumech"] * 2


def test_settings_change_the_gpu(run, small):
    def cycles(*arguments):
        return [
            r["cycles"]
            for r in json.loads(run("predict", small, "--json", "-m", "mdm", *arguments)[0])
        ]

    changed = ws.gpu("pascal-mdm").replace(num_sms=56, noc_bandwidth_gbs=300.5)
    expected = ws.predict(ws.load(small), changed)["cycles"].tolist()
    assert cycles("--set", "num_sms=56", "--set", "noc_bandwidth_gbs=300.5") == expected
    assert cycles("--gpu", "titan-v") != expected


def test_settings_without_effect_are_reported(run, small):
    _, err = run(
        "predict", small, "-m", "markov_chain", "--set", "scheduler=lrr", "--set", "num_sms=3"
    )
    assert err == "warpstack: note: --set scheduler=lrr has no effect on the models markov_chain\n"
    _, err = run("caches", small, "--set", "dram_bandwidth_gbs=100", "--set", "l1_latency=3")
    assert err.count("has no effect on cache simulation") == 2


def test_choice_of_kernels(run, small):
    assert len(json.loads(run("caches", small, "--json", "--kernels", "2")[0])) == 1
    assert len(json.loads(run("caches", small, "--json", "--kernels", "1-2")[0])) == 2


def test_caches_json(run, small):
    records = json.loads(run("caches", small, "--json")[0])
    expected = ws.simulate_caches(ws.load(small), ws.gpu("pascal-mdm"))
    for record, profile in zip(records, expected, strict=True):
        assert set(record) >= CACHE_KEYS
        assert {k: record[k] for k in profile.totals} == profile.totals


def test_caches_tables(run, small):
    out, _ = run("caches", small)
    assert "l2_read_hits_%" in out
    out, _ = run("caches", small, "--per-pc")
    assert "LDG.E" in out
    rows = json.loads(run("caches", small, "--per-pc", "--json")[0])
    shared = next(row for row in rows if row["opcode"] == "STS")
    assert shared["l1_hit"] is None  # not a number has no place in JSON


def test_info(run, small):
    rows = json.loads(run("info", small, "--json")[0])
    assert [row["name"] for row in rows] == ["strided_gs1", "strided_gs32"]
    assert rows[0]["instructions"] == 28 * 8 * 116
    out, _ = run("info", small)
    assert "28x1x1" in out
    opcodes = json.loads(run("info", small, "--opcodes", "--json")[0])
    assert sum(row["executions"] for row in opcodes) == 2 * 28 * 8 * 116


def test_convert(run, small, tmp_path):
    out, _ = run("convert", small, tmp_path / "again")
    assert "2 kernels" in out
    assert ws.load(tmp_path / "again").digest == ws.load(small).digest
    _, err = run("convert", small, tmp_path / "again", status=2)
    assert "exists already" in err
    run("convert", small, tmp_path / "again", "--overwrite")


def test_gpus(run):
    out, _ = run("gpus")
    assert all(name in out for name in ws.gpus())
    out, _ = run("gpus", "pascal-mdm")
    assert "MDM, Table III" in out
    fields = json.loads(run("gpus", "--fields", "--json")[0])
    assert [row["field"] for row in fields] == list(ws.Gpu.fields())


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_picture(run, small, tmp_path, ending):
    _, err = run("predict", small, "--plot", tmp_path / f"stack.{ending}")
    assert (tmp_path / f"stack.{ending}").stat().st_size > 5000
    assert f"stack.{ending}" in err


def test_picture_of_many_kernels_adds_them_up(run, tmp_path):
    kernels = [ws.patterns.stream(blocks=1)] * 20
    ws.save(ws.App(kernels), tmp_path / "many")
    run("predict", tmp_path / "many", "--plot", tmp_path / "stack.png")
    assert (tmp_path / "stack.png").stat().st_size > 5000


def bad_trace(folder):
    text = grouped({(0, 0, 0): {0: [Instruction(0, "EXIT")]}}, 4).replace("0 EXIT 0", "0 EXIT zero")
    (folder / "kernel-1.traceg").write_text(text)
    return folder / "kernel-1.traceg", text[: text.index("zero")].count("\n") + 1


def test_bad_trace_is_one_line(run, tmp_path):
    path, line = bad_trace(tmp_path)
    out, err = run("predict", path, status=2)
    assert out == ""
    assert err == (
        f"warpstack: error: {path}:{line}: "
        'number of source registers "zero" is not a decimal number\n'
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "{small}", "--gpu", "pascal-mdn"], "did you mean pascal-mdm?"),
        (["predict", "{small}", "--models", "mdn"], "unknown model 'mdn'"),
        (
            ["predict", "{small}", "--set", "num_sm=3"],
            "there is no field num_sm; did you mean num_sms?",
        ),
        (["predict", "{small}", "--set", "num_sms"], "--set num_sms: expected field=value"),
        (["predict", "{small}", "--set", "num_sms=many"], "num_sms = 'many' is not a number"),
        (["predict", "{small}", "--set", "num_sms=[1"], "num_sms = '[1' is not a number"),
        (["predict", "{small}", "--set", "l1_size_kib=50"], "is not a multiple of"),
        (["predict", "{small}", "--plot", "x.doc"], "the file name must end in one of"),
        (["predict", "{small}", "--plot", "/nowhere/x.png"], "there is no folder /nowhere"),
        (["predict", "{small}", "--kernels", "a"], "expected launch numbers such as 1,4-6"),
        (["predict", "{small}", "--kernels", "9"], "has no kernel 9"),
        (["predict", "{small}", "--merge-threshold", "nan"], "merge_threshold = nan"),
        (
            ["predict", "{small}", "--memory-limit", "-1"],
            "memory_limit_mib = -1.0 is no amount of memory",
        ),
        (["predict", "/nowhere/at/all"], "no such file or folder"),
        (["predict"], "the following arguments are required: trace"),
        (["predict", "{small}", "--selection", "best"], "invalid choice: 'best'"),
        (["predict", "{small}", "--json", "--csv"], "not allowed with argument"),
        (["gpus", "nope"], "there is no GPU 'nope'"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        ([], "arguments are required"),
    ],
)
def test_bad_arguments_are_one_line(run, small, arguments, message):
    out, err = run(*(a.format(small=small) for a in arguments), status=2)
    assert out == ""
    assert err.startswith("warpstack: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_warnings_are_one_line(run, tmp_path):
    text = grouped({(0, 0, 0): {0: [Instruction(0, "FROB")]}}, 4, grid=(2, 1, 1))
    (tmp_path / "kernel-1.traceg").write_text(text)
    _, err = run("info", tmp_path)
    assert [line.split(":")[1] for line in err.splitlines()] == [" warning", " warning"]


def command(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "warpstack", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_as_a_module(small):
    with command("gpus", "--json") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err == ""
    assert {g["name"] for g in json.loads(out)} == set(ws.gpus())


def test_version():
    with command("--version") as process:
        assert process.communicate(timeout=120)[0] == f"warpstack {ws.__version__}\n"


def test_closed_pipe_is_no_error(small):
    process = command("gpus", "--fields")
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) == 0
    assert err == ""


def test_interrupt_ends_a_long_run(tmp_path):
    """Ctrl-C stops the compiled loops too."""
    kernel = ws.patterns.gather(loads=400, blocks=448, footprint_mib=512)
    ws.save(ws.App([kernel]), tmp_path / "long")
    source = "import warpstack as ws, sys\n"
    source += (
        f"kernel = ws.load({str(tmp_path / 'long')!r}).kernels[0]\nprint('ready', flush=True)\n"
    )
    source += "while True: ws.simulate_caches(kernel, ws.gpu('pascal-mdm'))\n"
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert process.returncode != 0


def test_no_progress_bar_without_a_terminal(small, tmp_path):
    environment = {**os.environ, "COLUMNS": "80"}
    with command("predict", small, "--csv", env=environment) as process:
        _, err = process.communicate(timeout=120)
    assert err == ""
