"""`tools/build-wheel` builds anew exactly when something that enters the wheel changed."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: A backend that "compiles" as `build.txt` says, and counts how often it is called.
BACKEND = """
import os, sys
from pathlib import Path

def build_wheel(folder, settings):
    with open("calls.txt", "a") as calls:
        calls.write(settings["cmake.define.WARPSTACK_TESTS"] + "\\n")
    text = Path("build.txt").read_text()
    print(text, flush=True)
    if "FAILED" in text or "CMake Error" in text:
        sys.exit(7)
    if Path("edit.txt").exists():
        Path("cpp/core.cpp").write_text("edited while it was compiled")
    Path(folder, "warpstack-1-py3-none-any.whl").write_bytes(Path("cpp/core.cpp").read_bytes())
"""
#: What Ninja prints, with one failing file.
FAILURE = """[1/4] Building CXX object a.o
[2/4] Building CXX object core.o
FAILED: [code=1] core.o
/usr/bin/g++ -DVERY_LONG -o core.o -c core.cpp
core.cpp:3:1: error: 'nothing' does not name a type
    3 | nothing here;
[3/4] Building CXX object b.o
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  CalledProcessError"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    loader = SourceFileLoader("build_wheel", str(ROOT / "tools" / "build-wheel"))
    spec = spec_from_loader("build_wheel", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


class Project:
    """A checkout whose compiler is a stub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("tools", "cpp", "python/warpstack", "docs", "backend/scikit_build_core"):
            (folder / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "build-wheel", folder / "tools")
        (folder / "backend/scikit_build_core/__init__.py").touch()
        (folder / "backend/scikit_build_core/build.py").write_text(BACKEND)
        (folder / "cpp/core.cpp").write_text("int main() {}")
        (folder / "python/warpstack/__init__.py").write_text("")
        (folder / "docs/page.md").write_text("# Page")
        (folder / ".gitignore").write_text("*.pyc\n/build/\n")
        self.say("[1/2] Building\n[2/2] Linking")

    def say(self, text: str) -> None:
        """Let the next build print this."""
        (self.folder / "build.txt").write_text(text)

    def build(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the tool."""
        return subprocess.run(
            [sys.executable, "tools/build-wheel", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder / "backend"), **variables},
            capture_output=True,
            text=True,
        )

    @property
    def calls(self) -> list[str]:
        """Return WARPSTACK_TESTS of each build so far."""
        path = self.folder / "calls.txt"
        return path.read_text().split() if path.exists() else []

    @property
    def wheel(self) -> Path:
        """Return the one wheel."""
        (found,) = (self.folder / "build/wheel").glob("*.whl")
        return found


@pytest.fixture(params=["git", "no git"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    made = Project(tmp_path)
    if request.param == "git":
        subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
        subprocess.run(["git", "add", "cpp", "tools"], cwd=tmp_path, check=True)
    return made


def test_a_second_build_keeps_the_wheel(project: Project) -> None:
    assert project.build().returncode == 0
    again = project.build()
    assert again.returncode == 0
    assert "up to date" in again.stderr
    (project.folder / "docs/page.md").write_text("# Other")
    (project.folder / "python/warpstack/__init__.pyc").write_text("made by Python")
    project.build()
    assert project.calls == ["OFF"]


def test_what_enters_the_wheel_is_built_again(project: Project) -> None:
    project.build()
    (project.folder / "cpp/core.cpp").write_text("int main() { return 1; }")
    project.build()
    assert project.wheel.read_text() == "int main() { return 1; }"
    (project.folder / "python/warpstack/new.py").write_text("new = 1")
    project.build()
    (project.folder / "python/warpstack/new.py").unlink()
    project.build()
    used = project.folder / "tools/build-wheel"
    used.write_text(used.read_text() + "# another tool\n")
    project.build()
    assert len(project.calls) == 5
    project.build()
    assert len(project.calls) == 5


def test_other_flags_build_in_a_new_folder(project: Project) -> None:
    project.build(CXXFLAGS="")
    kept = project.folder / "build/package/object.o"
    kept.touch()
    (project.folder / "cpp/core.cpp").write_text("changed")
    project.build(CXXFLAGS="")
    assert kept.exists()
    project.build(CXXFLAGS="-O0")
    assert not kept.exists()
    project.build(CXXFLAGS="-O0", CMAKE_CXX_COMPILER_LAUNCHER="ccache")  # the same objects
    assert len(project.calls) == 3


@pytest.mark.parametrize("change", ["content", "note", "gone", "two"])
def test_a_wheel_that_was_touched_is_built_again(project: Project, change: str) -> None:
    project.build()
    if change == "content":
        project.wheel.write_text("something else")
    elif change == "note":
        (project.folder / "build/wheel/made-of.json").write_text("{")
    elif change == "gone":
        project.wheel.unlink()
    else:
        shutil.copy(project.wheel, project.wheel.with_name("warpstack-2-py3-none-any.whl"))
    assert project.build().returncode == 0
    assert len(project.calls) == 2
    assert project.wheel.read_text() == "int main() {}"


def test_a_file_edited_during_the_build_is_built_again(project: Project) -> None:
    (project.folder / "edit.txt").touch()
    project.build()
    (project.folder / "edit.txt").unlink()
    project.build()
    assert len(project.calls) == 2
    project.build()
    assert len(project.calls) == 2


def test_tests_are_always_built_and_the_wheel_serves_both(project: Project) -> None:
    project.build("--tests")
    project.build("--tests")
    project.build()
    assert project.calls == ["ON", "ON"]


def test_a_failure_says_what_the_compiler_says(project: Project) -> None:
    project.build()
    (project.folder / "cpp/core.cpp").write_text("nothing here;")
    project.say(FAILURE)
    failed = project.build()
    assert failed.returncode == 7
    assert "core.cpp:3:1: error: 'nothing' does not name a type" in failed.stderr
    for noise in ("VERY_LONG", "Traceback", "Building", "ninja:"):
        assert noise not in failed.stderr
    log = project.folder / "build/build-wheel.log"
    assert "build/build-wheel.log" in failed.stderr
    assert "VERY_LONG" in log.read_text()
    # No wheel is there that could be taken for the new one.
    assert not list((project.folder / "build/wheel").glob("*.whl"))
    project.say("[1/2] Building")
    assert project.build().returncode == 0


def test_a_failing_configuration_says_what_cmake_says(project: Project) -> None:
    project.say("-- checking\nCMake Error at CMakeLists.txt:2 (find_package):\n  no Threads\n")
    failed = project.build()
    assert failed.returncode == 7
    assert "find_package" in failed.stderr
    assert "no Threads" in failed.stderr
    assert "checking" not in failed.stderr


def test_progress_is_a_line_each_tenth_away_from_a_terminal(project: Project) -> None:
    project.say("\n".join(["[0/1] Re-running CMake...", *(f"[{n}/300] a" for n in range(1, 301))]))
    said = project.build().stderr.splitlines()
    assert said == [f"compiling: {percent} %" for percent in range(0, 101, 10)]


def test_progress_is_one_line_on_a_terminal(tool: ModuleType) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    progress = tool.Progress(shown)
    for percent in (0, 37, 36, 37, 38):
        progress.show(percent)
    progress.end()
    assert shown.getvalue() == "\rcompiling: 0 %\rcompiling: 37 %\rcompiling: 38 %\n"


def test_files_that_cmake_reads_are_inputs(tool: ModuleType) -> None:
    """Folders outside `cpp` that CMake takes files from, but for tests, which do not enter."""
    named = set()
    for file in [ROOT / "CMakeLists.txt", *(ROOT / "cpp").rglob("CMakeLists.txt")]:
        text = re.sub(r"#.*", "", file.read_text(encoding="utf-8"))
        named |= set(re.findall(r"PROJECT_SOURCE_DIR\}/([\w/]+)", text))
        named |= set(re.findall(r"\b((?:data|python|docs|tools)/[\w/]+)", text))
    assert "data/gpus" in named
    for name in named:
        assert (ROOT / name).exists(), name
        assert any((name + "/").startswith(f"{known}/") for known in tool.INPUTS), name


def test_inputs_exist(tool: ModuleType) -> None:
    assert all((ROOT / name).exists() for name in tool.INPUTS)
