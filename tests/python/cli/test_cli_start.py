"""What the program loads before it does its work, and what a new command takes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warpstack as ws
from warpstack._util.data_folder import data_folder
from warpstack.cli import make_parser, registry

ROOT = Path(__file__).resolve().parents[3]
TRACE = ROOT / "data" / "traces" / "strided"
#: Packages and modules that take long to load and that few commands need.
SLOW = {"filelock", "matplotlib", "pandas", "PIL", "platformdirs", "pyarrow", "scipy", "tqdm"}
#: As these, but nearly everything computes with the one, and reads descriptions of GPUs with the other.
BASIC = {"numpy", "yaml"}
#: Modules of the standard library that messages of errors and programs that are run need.
RARE = {"difflib", "multiprocessing", "socket", "subprocess"}

PROGRAM = """
import sys
from warpstack.cli import main
try:
    status = main(sys.argv[1:])
except SystemExit as end:
    status = end.code
print("loaded:", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(status)
"""


def loaded(code, *arguments):
    """Run a program in a process of its own and return the names of the packages that it loaded."""
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return set(run.stderr.partition("loaded: ")[2].split())


def test_package_loads_nothing_before_it_is_used():
    code = """if True:
        import sys
        import warpstack
        print("loaded:", *sys.modules, file=sys.stderr)
    """
    names = loaded(code)
    assert "warpstack._core" in names
    assert {name.partition(".")[0] for name in names} & (SLOW | BASIC | RARE) == set()
    assert {name for name in names if name.startswith("warpstack")} == {
        "warpstack",
        "warpstack._core",
    }


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_no_package(arguments):
    names = loaded(PROGRAM, *arguments)
    assert "argparse" in names
    assert names & (SLOW | BASIC | RARE) == set()


@pytest.mark.slow
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_predict_loads_what_it_computes_with(form):
    names = loaded(PROGRAM, "predict", TRACE, *form)
    assert "numpy" in names
    assert names & (SLOW | RARE) == set()


@pytest.mark.slow
def test_predict_of_a_saved_trace_loads_what_reads_it(tmp_path):
    """Arrow reads the trace; pandas would take longer to load than that."""
    ws.save(ws.App([ws.patterns.stream(blocks=2)]), tmp_path / "saved")
    names = loaded(PROGRAM, "predict", tmp_path / "saved")
    assert names & SLOW == {"pyarrow"}


@pytest.mark.slow
def test_a_table_loads_pandas():
    """The tests above see what is loaded."""
    assert "pandas" in loaded(PROGRAM, "predict", TRACE, "--csv")


def test_every_file_of_a_command_is_in_the_registry():
    folder = Path(registry.__file__).parent
    files = {file.stem for file in folder.glob("*.py")} - {"__init__", "registry"}
    assert files == set(registry.COMMANDS)
    assert len(files) == len(registry.COMMANDS)


def test_only_the_command_that_is_named_gets_its_arguments():
    """All others need nothing to be loaded for them; the page of the documentation has all."""
    for given, filled in (
        (["gpus"], {"gpus"}),
        (["--help"], set()),
        (None, set(registry.COMMANDS)),
    ):
        (parsers,) = [a for a in make_parser(given)._actions if isinstance(a.choices, dict)]
        assert list(parsers.choices) == list(registry.COMMANDS)
        options = {name: parser._actions for name, parser in parsers.choices.items()}
        assert {name for name, actions in options.items() if len(actions) > 1} == filled


# --- a new command --------------------------------------------------------------------------------


def diffs(page, heading):
    """Yield file, old lines and new lines of each hunk of the diffs in a section of a page."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for diff in re.findall(r"```diff\n(.*?)```", section, flags=re.DOTALL):
        for part in re.split(r"^--- .*\n(?=\+\+\+ )", diff, flags=re.MULTILINE)[1:]:
            file = re.match(r"\+\+\+ b/(\S+)\n", part)[1]
            for hunk in re.split(r"^@@.*\n", part, flags=re.MULTILINE)[1:]:
                lines = hunk.splitlines(keepends=True)
                old = [line[1:] for line in lines if line[0] in " -"]
                yield file, "".join(old), "".join(line[1:] for line in lines if line[0] in " +")


@pytest.mark.slow
def test_adding_a_command_as_the_page_shows(tmp_path):
    """The diff of the page, in a copy of the package: help, output and errors of the new command."""
    package = Path(ws.__file__).parent
    copy = tmp_path / "warpstack"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("data", "lib", "__pycache__"))
    (copy / "data").symlink_to(data_folder("gpus").parent)
    changed = set()
    for file, old, new in diffs((ROOT / "docs/how-to/extend.md").read_text(), "A command"):
        place = tmp_path / file.removeprefix("python/")
        if old:
            text = place.read_text()
            assert text.count(old) == 1, file
            place.write_text(text.replace(old, new))
        else:
            assert not place.exists(), file
            place.write_text(new)
        changed.add(file)
    assert changed == {"python/warpstack/cli/digest.py", "python/warpstack/cli/registry.py"}

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-m", "warpstack", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
        )

    assert re.search(r"\n +digest +digests of the kernels of a trace\n", run("--help").stdout)
    table = run("digest", TRACE, "--csv")
    rows = [f"{kernel.launch_id},{kernel.digest}" for kernel in ws.load(TRACE)]
    assert (table.stdout.split("\n"), table.stderr) == (["kernel,digest", *rows, ""], "")
    missing = run("digest", "nothing")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "warpstack: error: nothing: no such file or folder\n"
