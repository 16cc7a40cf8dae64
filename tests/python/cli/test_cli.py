"""The command line as a user runs it."""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import matplotlib.pyplot as plt
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
    out, err = run("predict", small, "-m", "gpumech_plus", "mdm_mshr", "--stacks")
    assert "small on pascal-mdm" in out
    for text in (
        "strided_gs1",
        "strided_gs32",
        "gpumech_plus",
        "mdm_mshr",
        "all 2 kernels",
        "queue",
    ):
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
    expected = ws.predict(ws.load(small), changed, "mdm")["cycles"].tolist()
    assert cycles("--set", "num_sms=56", "--set", "noc_bandwidth_gbs=300.5") == expected
    assert cycles("--gpu", "titan-v") != expected


def test_settings_without_effect_are_reported(run, small):
    # The timed order of accesses has queues.
    order = ["--access-order", "round_robin"]
    changes = ["--set", "noc_bandwidth_gbs=50", "--set", "num_sms=3"]
    _, err = run("predict", small, "-m", "markov_chain", *order, *changes)
    assert err == (
        "warpstack: note: --set noc_bandwidth_gbs=50 has no effect on the models markov_chain\n"
    )
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
    out, _ = run("caches", small, "--wide")
    assert "L2 read hits (%)" in out
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
    shown = {row["field"]: row for row in json.loads(run("gpus", "rtx3080", "--json")[0])}
    assert shown["num_sms"]["confidence"] == "measured"
    assert shown["l1_mshrs"]["confidence"] == "guessed"
    assert shown["lsu_queue_entries"]["confidence"] == ""
    fields = json.loads(run("gpus", "--fields", "--json")[0])
    assert [row["field"] for row in fields] == list(ws.Gpu.fields())


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_picture(run, small, tmp_path, ending):
    _, err = run("predict", small, "--plot", tmp_path / f"stack.{ending}")
    assert (tmp_path / f"stack.{ending}").stat().st_size > 5000
    assert f"stack.{ending}" in err


@pytest.mark.slow
def test_picture_of_many_kernels_adds_them_up(run, tmp_path):
    kernels = [ws.patterns.stream(blocks=1)] * 20
    ws.save(ws.App(kernels), tmp_path / "many")
    run("predict", tmp_path / "many", "--plot", tmp_path / "stack.png")
    assert (tmp_path / "stack.png").stat().st_size > 5000


def test_settings_are_numbers_as_python_writes_them(run, small):
    out, _ = run("predict", small, "-m", "mdm", "--set", "num_sms=010", "--set", "clock_ghz=2.8e0")
    assert out.startswith("small on pascal-mdm with num_sms=10, clock_ghz=2.8: ")
    out, _ = run("predict", small, "-m", "mdm", "--set", "num_sms = 1e1", "--json")
    changed = ws.gpu("pascal-mdm").replace(num_sms=10)
    assert (
        json.loads(out)[0]["cycles"] == ws.predict(ws.load(small), changed, "mdm")["cycles"].iloc[0]
    )


def test_settings_with_effect_through_others_are_not_reported(run, small):
    """The SM clock moves the latency of DRAM, which every model reads; the caches read neither."""
    _, err = run("predict", small, "-m", "markov_chain", "--set", "clock_ghz=2.8")
    assert err == ""
    _, err = run(
        "predict", small, "-m", "mt", "--set", "clock_ghz=2.8", "--set", "dram_latency=220"
    )
    assert err == "warpstack: note: --set clock_ghz=2.8 has no effect on the models mt\n"
    for setting in ("clock_ghz=2.8", "l2_clock_ghz=1"):
        _, err = run("caches", small, "--set", setting)
        assert err == f"warpstack: note: --set {setting} has no effect on cache simulation\n"


@pytest.mark.slow
def test_headings_name_the_changes(run, small, tmp_path):
    out, _ = run("caches", small, "--set", "num_sms=3")
    assert out.startswith("small on pascal-mdm with num_sms=3: ")
    picture = tmp_path / "stack.svg"
    with plt.rc_context({"svg.fonttype": "none"}):
        run("predict", small, "--set", "num_sms=3", "--plot", picture)
    assert "pascal-mdm with num_sms=3 (above the bars: IPC)" in picture.read_text()
    (tmp_path / "mine.yaml").write_text("based_on: pascal-mdm\n")
    out, _ = run("predict", small, "--gpu", tmp_path / "mine.yaml")
    assert out.startswith("small on mine\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("no more"), "no more"),
        (MemoryError(), "not enough memory"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "bad"), "the input cannot be processed"),
        (RecursionError("too deep"), "the input cannot be processed: too deep"),
    ],
)
def test_trouble_of_the_system_is_one_line(run, monkeypatch, error, message):
    def fail():
        raise error

    monkeypatch.setattr("warpstack.hardware.description.gpus", fail)
    out, err = run("gpus", status=2)
    assert out == ""
    assert err.startswith(f"warpstack: error: {message}")
    assert err.count("\n") == 1


def test_plot_that_cannot_be_written_is_refused_before_any_work(run, small, tmp_path):
    (tmp_path / "folder.png").mkdir()
    out, err = run("predict", small, "--plot", tmp_path / "folder.png", status=2)
    assert out == ""
    assert err.endswith("folder.png: is a folder; give the name of a file\n")


def test_saved_trace_without_kernels(run, tmp_path):
    text = '{"format": "warpstack-trace", "version": 1, "name": "x", "kernels": []}'
    (tmp_path / "warpstack-trace.json").write_text(text)
    for what in ("info", "predict", "caches"):
        out, err = run(what, tmp_path, status=2)
        assert (out, err.count("\n")) == ("", 1)
        assert err.endswith("the saved trace has no kernels\n")


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
        (["predict", "{small}", "--models", "mdn"], "there is no model 'mdn'"),
        (
            ["predict", "{small}", "--set", "num_sm=3"],
            "there is no field 'num_sm'; did you mean num_sms?",
        ),
        (["predict", "{small}", "--set", "num_sms"], "--set num_sms: expected field=value"),
        (
            ["caches", "{small}", "--set", "num_sms=3", "--set", "num_sms = 4"],
            "--set num_sms = 4: num_sms is already set to 3; give one value",
        ),
        (["predict", "{small}", "--set", "num_sms=many"], "num_sms = 'many' is not a number"),
        (["predict", "{small}", "--set", "num_sms=[1"], "num_sms = '[1' is not a number"),
        (["predict", "{small}", "--set", "num_sms=1_000"], "num_sms = '1_000' is not a number"),
        (["predict", "{small}", "--set", "num_sms=true"], "num_sms = 'true' is not a number"),
        (["predict", "{small}", "--set", "num_sms="], "num_sms = '' is not a number"),
        (["predict", "{small}", "--set", "clock_ghz=nan"], "clock_ghz = 'nan' is not a number"),
        (["predict", "{small}", "--set", "num_sms=1e6"], "too large; the most is 65536"),
        (["predict", "{small}", "--set", "l1_size_kib=48e6"], "at most 67108864 can be simulated"),
        (["predict", "{small}", "--set", "l1_size_kib=50"], "is not a multiple of"),
        (
            ["predict", "{small}", "--plot", "x.doc"],
            "the file name must end in one of .png, .pdf, .svg",
        ),
        (["predict", "{small}", "--plot", "/nowhere/x.png"], "there is no folder /nowhere"),
        (["predict", "{small}", "--kernels", "a"], "no kernel is called 'a'; there are strided_"),
        (
            ["predict", "{small}", "--kernels", "1,2--"],
            "expected launch numbers such as 1,4-6 or 2-",
        ),
        (["predict", "{small}", "--kernels", "9"], "has no kernel 9; its kernels are 1, 2"),
        (["predict", "{small}", "--kernels", "3-1"], "the range 3-1 is empty"),
        (["predict", "{small}", "--kernels", "1-99999999999"], "small has no kernel 3"),
        (["predict", "{small}", "--kernels", "1,3-"], "small has no kernel 3 or later"),
        (["predict", "{small}", "--kernels", "1-" + "9" * 5000], "expected launch numbers"),
        (["predict", "{small}", "--kernels", "\u00b2"], "expected launch numbers"),
        (["predict", "{small}", "--kernels", "1,"], "expected launch numbers"),
        (["predict", ""], "the path is empty"),
        (["convert", "{small}", ""], "the path is empty"),
        (["convert", "{small}", "/dev/null/x"], "cannot be written: Not a directory"),
        (["predict", "{small}", "--plot", "{small}/.png/"], "must end in one of"),
        (["predict", "{small}", "--gpu", "absent.yaml"], "absent.yaml: cannot read"),
        (["predict", "{small}", "--merge-threshold", "nan"], "merge_threshold = nan"),
        (
            ["predict", "{small}", "--memory-limit", "-1"],
            "memory_limit_mib = -1.0 is not an amount of memory",
        ),
        (["predict", "/nowhere/at/all"], "no such file or folder"),
        (["predict"], "there is nothing to work on; give a trace, a CUDA source"),
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


@contextlib.contextmanager
def child(*arguments, **options):
    """Start a program, and end it whatever the test does."""
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        **{
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "errors": "surrogateescape",
            **options,
        },
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def command(*arguments, **options):
    return child("-m", "warpstack", *arguments, **options)


@pytest.mark.slow
def test_as_a_module(small):
    with command("gpus", "--json") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err == ""
    assert {g["name"] for g in json.loads(out)} == set(ws.gpus())


def test_version():
    with command("--version") as process:
        assert process.communicate(timeout=120)[0] == f"warpstack {ws.__version__}\n"


@pytest.mark.slow
def test_closed_pipe_is_no_error(small):
    with command("gpus", "--fields") as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=120) == 0


@pytest.mark.slow
def test_no_standard_output(monkeypatch):
    """A shell's ``>&-`` leaves a program without standard output."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["gpus"]) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_full_disk_is_one_line():
    with open("/dev/full", "w") as full, command("gpus", "--fields", stdout=full) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err == "warpstack: error: No space left on device\n"


@pytest.mark.slow
def test_names_that_the_terminal_cannot_show(tmp_path):
    """File names that are not UTF-8, and an encoding without the letters of a name."""
    app = ws.App([ws.patterns.stream(blocks=1)], "gr\u00f6\u00dfe")
    ws.save(app, tmp_path / "a\udcffb")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    with command("predict", tmp_path / "a\udcffb", "-m", "mt", env=ascii_only) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("gr\\xf6\\xdfe on pascal-mdm")
    # One process for two commands: each takes long to start.
    source = """
import sys
from warpstack.cli import main
trace, copy, missing = sys.argv[1:]
assert main(["convert", trace, copy]) == 0
sys.exit(main(["info", missing]))
"""
    names = [tmp_path / name for name in ("a\udcffb", "c\udcff", "no\udcff")]
    with child("-c", source, *names) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "c\\xff: 1 kernel," in out
    assert err == f"warpstack: error: {tmp_path}/no\\xff: no such file or folder\n"


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """Return the trace of a kernel whose caches take a second to simulate, and its cycles ten."""
    path = tmp_path_factory.mktemp("long") / "long"
    ws.save(ws.App([ws.patterns.gather(loads=100, blocks=112, footprint_mib=512)]), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("call", ["simulate_caches", "simulate"])
def test_interrupt_ends_a_long_run(long_run, call):
    """Ctrl-C stops the compiled loops too."""
    # Whoever runs the tests may ignore the signal, and children inherit that.
    source = f"""
import signal, warpstack as ws
signal.signal(signal.SIGINT, signal.default_int_handler)
kernel = ws.load({str(long_run)!r}).kernels[0]
print("ready", flush=True)
while True:
    ws.{call}(kernel, ws.gpu("pascal-mdm"))
"""
    with child("-c", source) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert process.returncode != 0


@pytest.mark.slow
def test_no_progress_bar_without_a_terminal(small, tmp_path):
    environment = {**os.environ, "COLUMNS": "80"}
    with command("predict", small, "--csv", env=environment) as process:
        _, err = process.communicate(timeout=120)
    assert err == ""
