"""What commands write: never over what they read, never over others' files unless asked to."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import warpstack as ws
from warpstack._util import files
from warpstack.cli import main

KERNEL = ws.patterns.stream(blocks=2)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a trace, a description of a GPU, a design and an empty place for results."""
    monkeypatch.chdir(tmp_path)
    ws.save(KERNEL, tmp_path / "app")
    ws.gpu("pascal-mdm").to_yaml(tmp_path / "gpu.yaml")
    (tmp_path / "design.yaml").write_text(
        "gpu: gpu.yaml\nkernels: {app: {trace: app}}\naxes: {num_sms: [28]}\nmodels: [mdm]\n"
    )
    return tmp_path


#: Every command that writes one file, with that file last.
COMMANDS = {
    "report": ["report", "app", "-o"],
    "predict": ["predict", "app", "--gpu", "gpu.yaml", "--plot"],
    "roofline": ["roofline", "app", "--plot"],
    "dvfs": ["dvfs", "app", "--clocks", "1", "--plot"],
    "timeline": ["simulate", "app", "--timeline"],
    "program": ["timeline", "app", "--perfetto"],
    "operations": ["timeline", "app", "--plot"],
    "sweep": ["sweep", "design.yaml", "-o"],
    "calibrate": ["calibrate", "--source", "-o"],
}
ENDINGS = {
    "report": ".html",
    "timeline": ".json.gz",
    "program": ".json",
    "sweep": ".csv",
    "calibrate": ".cu",
}
NAMES = {name: f"out{ENDINGS.get(name, '.png')}" for name in COMMANDS}


def run(name, target, *more):
    return main([*COMMANDS[name], str(target), *more])


@pytest.mark.parametrize("name", COMMANDS)
def test_files_of_others_are_replaced_only_when_asked(here, name, capsys):
    target = here / NAMES[name]
    target.write_bytes(b"mine")
    assert run(name, target) == 2
    error = capsys.readouterr().err
    # What a card's measurements said, or the program that measures, is never replaced unasked.
    why = "" if name == "calibrate" else " and was not made by warpstack"
    assert f"{target}: exists already{why}; choose another name" in " ".join(error.split())
    assert "--overwrite" in error
    assert target.read_bytes() == b"mine"
    assert run(name, target, "--overwrite") == 0
    assert target.read_bytes() != b"mine"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "calibrate"])
def test_own_files_are_replaced(here, name):
    target = here / NAMES[name]
    assert run(name, target) == 0
    first = target.stat().st_ino
    assert run(name, target) == 0
    assert target.stat().st_ino != first


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg", ".eps", ".ps"])
def test_own_pictures_are_known(here, ending):
    for _ in range(2):
        assert run("roofline", here / f"out{ending}") == 0


def test_own_tables_as_parquet_are_known(here):
    for _ in range(2):
        assert run("sweep", here / "out.parquet") == 0
    pd.DataFrame({"cycles": [1]}).to_parquet(here / "out.parquet")
    assert run("sweep", here / "out.parquet") == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_devices_and_pipes_are_never_replaced(here, name, capsys):
    pipe = here / NAMES[name]
    os.mkfifo(pipe)
    assert run(name, pipe) == 2
    assert "is a named pipe" in capsys.readouterr().err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert run(name, pipe, "--overwrite") == 0
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(read[0]) > 100


@pytest.mark.parametrize("name", COMMANDS)
def test_links_are_followed(here, name):
    (here / "far").mkdir()
    target, link = here / "far" / "real", here / NAMES[name]
    link.symlink_to(target)
    assert run(name, link) == 0  # of a file that is not there yet
    target.write_bytes(b"mine")
    assert run(name, link) == 2
    assert run(name, link, "--overwrite") == 0
    assert link.is_symlink()
    assert target.read_bytes() != b"mine"


@pytest.mark.parametrize("name", COMMANDS)
def test_folders_and_missing_folders(here, name, capsys):
    (here / NAMES[name]).mkdir()
    assert run(name, here / NAMES[name], "--overwrite") == 2
    assert "is a folder" in capsys.readouterr().err
    assert run(name, here / "none" / NAMES[name], "--overwrite") == 2
    assert "there is no folder" in capsys.readouterr().err


def content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "command",
    [
        ["report", "app", "-o", "app"],
        ["report", "app", "-o", "app/warpstack-trace.json"],
        ["report", "app", "-o", "app/kernel-1/sectors.parquet"],
        ["report", "app", "-o", "link"],
        ["report", "app", "--gpu", "gpu.yaml", "-o", "gpu.yaml"],
        ["report", "app", "--gpu", "gpu.yaml", "-o", "hard.yaml"],
        ["report", "app", "--source", "k.cu", "-o", "k.cu"],
        ["simulate", "app", "--gpu", "gpu.yaml", "--timeline", "gpu.yaml"],
        ["sweep", "design.csv", "-o", "design.csv"],
        ["sweep", "inputs.yaml", "-o", "app.csv"],
        ["sweep", "plots.yaml"],
        ["convert", "app", "app"],
        ["convert", "app", "link-to-app"],
        ["convert", "app", "app", "--to", "accelsim"],
        ["convert", "sim/kernelslist.g", "sim", "--to", "accelsim"],
        ["convert", "sim/kernel-1.traceg", "sim", "--to", "accelsim"],
        ["trace", "--overwrite", "-o", "app", "--", "app/kernel-1/table.parquet"],
        ["calibrate", "run.txt", "-o", "run.txt"],
    ],
    ids=" ".join,
)
def test_no_command_replaces_what_it_reads(here, command, capsys):
    ws.save(KERNEL, here / "sim", format="accelsim")
    (here / "link").symlink_to(here / "app" / "warpstack-trace.json")
    (here / "link-to-app").symlink_to(here / "app")
    os.link(here / "gpu.yaml", here / "hard.yaml")
    (here / "k.cu").write_text("// made by warpstack\n")  # ours, it seems, and still an input
    (here / "run.txt").write_text("warpstack-calibrate 1\n")
    design = (here / "design.yaml").read_text()
    (here / "design.csv").write_text(design)
    (here / "app.csv").symlink_to(here / "app" / "warpstack-trace.json")
    (here / "inputs.yaml").write_text(design)
    (here / "hidden.png").symlink_to(here / "app" / "warpstack-trace.json")
    (here / "plots.yaml").write_text(
        design + "plots: [{kind: curves, file: hidden.png, axis: num_sms, app: app}]\n"
    )
    before = content(here)
    assert main([*command[:1], "--overwrite", *[w for w in command[1:] if w != "--overwrite"]]) == 2
    error = capsys.readouterr().err
    assert "read by this command" in error or "is a folder" in error or "choose another" in error
    assert content(here) == before


def test_existing_modes_stay(here):
    target = here / "out.html"
    assert run("report", target) == 0
    target.chmod(0o600)
    assert run("report", target) == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_reports_from_python(here):
    (here / "out.html").write_text("mine")
    with pytest.raises(ws.InputError, match="give overwrite=True"):
        ws.report(KERNEL, "pascal-mdm", here / "out.html")
    ws.report(KERNEL, "pascal-mdm", here / "out.html", overwrite=True)
    ws.report(KERNEL, "pascal-mdm", here / "out.html")


def test_figures_spare_files_of_others(here, capsys):
    folder = here / "figures"
    folder.mkdir()
    for name in ("mwp-table2.csv", "mwp-table2.png"):
        (folder / name).write_text("mine")
        assert main(["figure", "mwp-table2", "-o", "figures"]) == 2
        assert f"{name}: exists already" in " ".join(capsys.readouterr().err.split())
        assert content(folder) == {name: b"mine"}
        (folder / name).unlink()
    assert main(["figure", "mwp-table2", "-o", "figures"]) == 0
    assert main(["figure", "mwp-table2", "-o", "figures"]) == 0  # ours
    with (folder / "mwp-table2.csv").open("a") as file:
        file.write("my own row\n")
    assert main(["figure", "mwp-table2", "-o", "figures"]) == 2
    assert main(["figure", "mwp-table2", "-o", "figures", "--overwrite"]) == 0


def test_pipes_without_a_name(here):
    """What a shell makes of >(wc -c), and /dev/stdout in a pipe."""
    for target in ("/dev/fd/{}", "/proc/self/fd/{}"):
        read, write = os.pipe()
        with os.fdopen(read, "rb") as pipe:
            place = target.format(write)
            assert main(["calibrate", "--source", "-o", place]) == 2
            pool = ThreadPoolExecutor(1)
            found = pool.submit(pipe.read)
            assert main(["calibrate", "--source", "-o", place, "--overwrite"]) == 0
            os.close(write)
            assert b"__global__" in found.result()
            pool.shutdown()


def test_pictures_of_a_design_that_meet_in_one_file(here, capsys):
    (here / "sub").mkdir()
    (here / "link.png").symlink_to("one.png")
    design = (here / "design.yaml").read_text()
    for other in ("sub/../one.png", "link.png"):
        (here / "plots.yaml").write_text(
            design.replace("[28]", "[28, 56]")
            + f"plots: [{{kind: curves, file: one.png, axis: num_sms}}, "
            f"{{kind: curves, file: {other}, axis: num_sms}}]\n"
        )
        assert main(["sweep", "plots.yaml"]) == 2
        assert "another picture or table" in capsys.readouterr().err
        assert not (here / "one.png").exists()


# --- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "accelsim"])
def test_replaced_traces_leave_other_files(here, kind):
    """What the manifest does not name stays: notes, other traces, links, empty folders."""
    folder = here / "traces"
    ws.save(ws.App([KERNEL, KERNEL], "two"), folder, format=kind)
    others = {"notes.txt": b"mine", "kernel-1/notes.txt": b"mine"}
    if kind == "accelsim":
        del others["kernel-1/notes.txt"]
    for name, data in others.items():
        (folder / name).write_bytes(data)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to(here / "app")
    ws.save(KERNEL, folder / "inner" / "app")
    inner = content(folder / "inner")
    for source in ("app", "traces/inner/app"):
        assert main(["convert", source, "traces", "--to", kind, "--overwrite"]) == 0
        assert len(ws.load(folder)) == 1
        assert content(folder / "inner") == inner
        assert {name: (folder / name).read_bytes() for name in others} == others
        assert (folder / "empty").is_dir()
        assert (folder / "link").is_symlink()
        assert not (folder / "kernel-2").exists()
        assert not (folder / "kernel-2.traceg").exists()
        assert sorted(p.name for p in here.iterdir() if p.name.startswith(".")) == []


def test_a_file_where_a_new_one_goes_is_not_replaced(here, capsys):
    (here / "app" / "kernel-2").mkdir()
    (here / "app" / "kernel-2" / "table.parquet").write_text("mine")
    before = content(here)
    ws.save(ws.App([KERNEL, ws.patterns.gather(blocks=1)], "two"), here / "two")
    shutil_free = content(here / "two")
    assert main(["convert", "two", "app", "--overwrite"]) == 2
    assert "kernel-2/table.parquet is not part of the saved trace" in capsys.readouterr().err
    after = content(here)
    assert {name: after[name] for name in before} == before
    assert content(here / "two") == shutil_free


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become somebody else")
@pytest.mark.parametrize("sticky", [False, True])
def test_files_of_others_that_cannot_be_moved_stay_where_they_are(here, sticky):
    app = here / "app"
    if sticky:
        (app / "note").write_text("mine")
        app.chmod(0o1777)
    else:
        (app / "notes").mkdir()
        (app / "notes" / "note").write_text("mine")
        app.chmod(0o777)
    (app / "kernel-1").chmod(0o777)
    here.chmod(0o777)
    for folder in here.parents:  # pytest keeps them to itself
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    before = content(app)
    code = "import os, sys; os.setgid(65534); os.setuid(65534)\n"
    code += "import warpstack as ws\n"
    code += "ws.save(ws.patterns.stream(blocks=3), sys.argv[1], overwrite=True)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(app)], capture_output=True, text=True, check=False
    )
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("others may not read the installed package")
    assert "cannot be moved" in done.stderr
    assert content(app) == before
    assert not [path.name for path in here.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("manifest", ["{}", "", '{"format": "warpstack-trace", "version": 99}'])
def test_a_folder_whose_files_are_not_known_stays(here, manifest):
    (here / "app" / "warpstack-trace.json").write_text(manifest)
    before = content(here)
    with pytest.raises(ws.InputError, match="exists already"):
        ws.save(KERNEL, here / "app", overwrite=True)
    assert content(here) == before


@pytest.mark.slow
@pytest.mark.parametrize("at", range(6))
def test_other_files_survive_a_killed_replacement(here, at):
    """Kill a process at its n-th move; what is not of the old trace is there after the next run."""
    (here / "app" / "notes.txt").write_text("mine")
    (here / "app" / "kernel-1" / "more.txt").write_text("mine, too")
    ws.save(ws.patterns.strided(gs=32, iterations=1, blocks=1), here / "app" / "inner")
    code = """
import os, signal, sys
from pathlib import Path
import warpstack as ws
rename, count = Path.rename, 0
def die(self, target):
    global count
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return rename(self, target)
Path.rename = die
ws.save(ws.patterns.stream(blocks=3), sys.argv[1], overwrite=True)
"""
    process = subprocess.run([sys.executable, "-c", code, str(here / "app"), str(at)], check=False)
    assert process.returncode in (-signal.SIGKILL, 0)
    files.remove_leftovers(here)
    assert ws.load(here / "app").kernels[0].digest in (
        KERNEL.digest,
        ws.patterns.stream(blocks=3).digest,
    )
    assert (here / "app" / "notes.txt").read_text() == "mine"
    assert (here / "app" / "kernel-1" / "more.txt").read_text() == "mine, too"
    assert len(ws.load(here / "app" / "inner")) == 1
    assert not [p.name for p in here.iterdir() if p.name.startswith(".")]


def test_reading_while_another_process_replaces(here):
    """Half of the reads begin with one trace and end with another; each sees one of them, whole."""
    traces = [ws.patterns.stream(blocks=n) for n in (1, 2, 3)]
    digests = {trace.digest for trace in traces}
    ended = threading.Event()

    def replace():
        number = 0
        while not ended.is_set():
            ws.save(traces[number % 3], here / "app", overwrite=True)
            number += 1

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(30):
            assert ws.load(here / "app").kernels[0].digest in digests
    finally:
        ended.set()
        writer.join()


def test_unreadable_is_not_damaged(here, monkeypatch):
    from warpstack.traces.io import parquet

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(parquet, "open_input", refuse)
    monkeypatch.setattr(files, "open_input", refuse)
    with pytest.raises(ws.InputError, match=r"cannot be read.*Permission denied") as error:
        ws.load(here / "app")
    assert "is damaged" not in str(error.value)


def test_json_of_timelines_is_valid(here):
    assert main(["simulate", "app", "--timeline", "out.json"]) == 0
    assert json.loads((here / "out.json").read_text())["traceEvents"]
