"""Compilers' output that tests keep: it is taken only where a compiler would make the same."""

import os
import subprocess
import sys

import pytest

import compiler_cache
from warpstack.cuda import disassembly, toolchain

#: A compiler: it writes its sources with the headers they name, its options and a count of its runs.
TOOL = """#!{python}
import pathlib, sys
here = pathlib.Path(__file__).parent
if sys.argv[1:] == ["--version"]:
    sys.exit(print("tool, version {version}"))
runs = here / "runs"
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
words = sys.argv[1:]
target = words[words.index("-o") + 1] if "-o" in words else None
sources = [pathlib.Path(w) for w in words if w != target and pathlib.Path(w).is_file()]
text = " ".join([w for w in words if w.startswith("-")])
for source in sources:
    text += source.read_text()
    text += "".join(header.read_text() for header in sorted(source.parent.glob("*.h")))
if "fail" in text:
    sys.exit(3)
if target:
    pathlib.Path(target).write_text(text)
print(text)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSTACK_TEST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Compiler:
    """A tool in a folder of its own, and a source with a header."""

    def __init__(self, folder, name):
        self.tool = folder / "kit" / "bin" / name
        self.tool.parent.mkdir(parents=True)
        (folder / "kit" / "include").mkdir()
        (folder / "kit" / "include" / "installed.h").write_text("installed")
        self.source = folder / "sources" / "a.cu"
        self.source.parent.mkdir()
        self.source.write_text('#include "a.h"\n')
        self.header = self.source.with_name("a.h")
        self.header.write_text("int a;\n")
        self.folder = folder
        self.is_version(1)

    def is_version(self, version):
        self.tool.write_text(TOOL.format(python=sys.executable, version=version))
        self.tool.chmod(0o755)

    def runs(self):
        """Return how often it has compiled."""
        runs = self.tool.parent / "runs"
        return len(runs.read_text()) if runs.exists() else 0

    def makes(self, *options):
        """Return what `compiler_cache.nvcc` makes, and whether it compiled."""
        before = self.runs()
        # Installed folders are looked at once in a process, and each call is one that may come later.
        for known in (compiler_cache.contents, compiler_cache.installed):
            known.cache_clear()
        target = self.folder / f"made-{os.urandom(4).hex()}"
        compiler_cache.nvcc([self.tool, *options, "-o", target, self.source])
        return target.read_text(), self.runs() > before


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    # Not this machine's headers, which take long to look through, nor the folder with the count of runs.
    real = compiler_cache.installed
    kit = tmp_path / "kit"

    def installed(place):
        return real(place) if place.startswith(str(kit)) and place != str(kit / "bin") else ""

    monkeypatch.setattr(compiler_cache, "installed", installed)
    installed.cache_clear = real.cache_clear
    return Compiler(tmp_path, "nvcc")


def test_the_same_is_compiled_once(compiler):
    first, compiled = compiler.makes("-O3")
    assert compiled
    assert first == '-O3 -o#include "a.h"\nint a;\n'
    assert compiler.makes("-O3") == (first, False)


def test_another_place_of_the_sources_is_the_same(compiler):
    compiler.makes()
    compiler.source.parent.rename(compiler.folder / "elsewhere")
    compiler.source = compiler.folder / "elsewhere" / "a.cu"
    assert not compiler.makes()[1]


@pytest.mark.parametrize("what", ["source", "header", "installed header", "option", "version"])
def test_what_changed_is_compiled_anew(compiler, what):
    before, _ = compiler.makes("-O3")
    options = ["-O3"]
    if what == "source":
        compiler.source.write_text('#include "a.h"\n// else\n')
    elif what == "header":
        compiler.header.write_text("int b;\n")
    elif what == "installed header":
        (compiler.folder / "kit" / "include" / "installed.h").write_text("INSTALLED")
    elif what == "option":
        options = ["-O1"]
    else:
        compiler.is_version(2)
    after, compiled = compiler.makes(*options)
    assert compiled
    assert (after != before) == (what in ("source", "header", "option"))
    assert not compiler.makes(*options)[1]


@pytest.mark.parametrize("include", ['"../b.h"', '"/tmp/b.h"', "</tmp/b.h>", "NAME"])
def test_includes_that_cannot_be_followed(compiler, include):
    compiler.header.write_text(f"#include {include}\n")
    assert [compiler.makes()[1], compiler.makes()[1]] == [True, True]


@pytest.mark.parametrize("option", ["-I.", "-include=b.h", "-Xcompiler=-DA"])
def test_options_that_bring_in_other_files(compiler, option):
    assert [compiler.makes(option)[1], compiler.makes(option)[1]] == [True, True]


def test_a_failure_is_not_kept(compiler, cache):
    compiler.source.write_text("fail")
    for runs in (1, 2):
        with pytest.raises(subprocess.CalledProcessError):
            compiler.makes()
        assert compiler.runs() == runs
    assert not list(cache.rglob("*")) or not any(path.is_file() for path in cache.rglob("*"))


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "of another key"])
def test_damaged_entries_are_not_used(compiler, cache, damage):
    made, _ = compiler.makes()
    (entry,) = (path for path in cache.rglob("*") if path.is_file())
    data = entry.read_bytes()
    if damage == "of another key":
        compiler.makes("-O1")
        (other,) = (p for p in cache.rglob("*") if p.is_file() and p != entry)
        data = other.read_bytes()
    entry.write_bytes(
        {"cut": data[:-1], "empty": b"", "changed": data[:-1] + b"?"}.get(damage, data)
    )
    assert compiler.makes() == (made, True)
    assert compiler.makes() == (made, False)


def test_no_file_is_left_half_written(cache, monkeypatch):
    def full(*_):
        raise OSError("no space is left")

    monkeypatch.setattr(os, "replace", full)
    compiler_cache.store("ab" * 32, [b"part"])
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_without_a_folder(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSTACK_TEST_CACHE", "")
    assert [compiler.makes()[1], compiler.makes()[1]] == [True, True]
    (tmp_path / "file").touch()
    monkeypatch.setenv("WARPSTACK_TEST_CACHE", str(tmp_path / "file" / "cache"))
    assert [compiler.makes()[1], compiler.makes()[1]] == [True, True]


def test_a_test_may_ask_for_compilers(compiler):
    compiler.makes()
    compiler_cache.use(False)
    try:
        assert compiler.makes()[1]
    finally:
        compiler_cache.use(True)


def test_the_longest_unused_go(cache):
    keys = [f"{n:064x}" for n in range(3)]
    for n, key in enumerate(keys):
        compiler_cache.store(key, [bytes(1000)])
        os.utime(cache / key[:2] / key, (n, n))
    assert compiler_cache.stored(keys[0]) == [bytes(1000)]  # is now the latest
    compiler_cache.make_small(2500)
    assert [compiler_cache.stored(key) is not None for key in keys] == [True, False, True]


# ---- what the package calls ----


def test_ptxas_and_nvdisasm(tmp_path, monkeypatch):
    ptxas = Compiler(tmp_path / "a", "ptxas")
    monkeypatch.setattr(toolchain, "find_ptxas", lambda: str(ptxas.tool))
    made = [toolchain.assemble(text, "<text>", arch) for text, arch in [("a", "sm_80")] * 2]
    assert made == [b"-arch=sm_80 -oa"] * 2
    assert ptxas.runs() == 1
    assert toolchain.assemble("b", "<text>", "sm_80") == b"-arch=sm_80 -ob"
    assert toolchain.assemble("a", "<text>", "sm_90") == b"-arch=sm_90 -oa"
    assert ptxas.runs() == 3
    ptxas.is_version(22)
    toolchain.assemble("a", "<text>", "sm_80")
    assert ptxas.runs() == 4

    nvdisasm = Compiler(tmp_path / "b", "nvdisasm")
    cubin = tmp_path / "module.cubin"
    command = [str(nvdisasm.tool), "-json", str(cubin)]
    for text, runs in [("a", 1), ("a", 1), ("b", 2)]:
        cubin.write_text(text)
        done = disassembly.subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"-json{text}\n", "")
        assert nvdisasm.runs() == runs


@pytest.mark.skipif(toolchain.find_nvrtc() is None, reason="NVRTC is not installed")
def test_nvrtc(tmp_path, monkeypatch):
    library = toolchain.find_nvrtc()
    kernel = '#include "a.h"\nextern "C" __global__ void k(int* p) { *p = A; }\n'
    file = tmp_path / "sources" / "k.cu"
    file.parent.mkdir()

    def compile_(text=kernel, *options, arch="sm_80"):
        return toolchain._compile_with_nvrtc(library, text, str(file), arch, options)

    def is_kept(*arguments, **options):
        key = compiler_cache.nvrtc_key(
            library, arguments[0], str(file), options.get("arch", "sm_80"), arguments[1:]
        )
        return key is not None and compiler_cache.stored(key) is not None

    file.with_name("a.h").write_text("#define A 1\n")
    one = compile_()
    assert is_kept(kernel)
    assert compile_() == one
    assert not is_kept(kernel + "//")
    assert not is_kept(kernel, "-DB")
    assert not is_kept(kernel, arch="sm_90")
    assert not is_kept(kernel, "-I.")
    file.with_name("a.h").write_text("#define A 2\n")
    assert not is_kept(kernel)
    assert compile_() != one
    monkeypatch.setitem(toolchain.HEADERS, "vector", toolchain.HEADERS.get("vector", "") + "\n")
    assert not is_kept(kernel)
