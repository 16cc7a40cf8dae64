"""Code of the pages runs as printed, or the page or this module says why it is not run.

Blocks of Python run one after another in the names of their page; commands of `warpstack` run in a
folder with the traces that the pages speak of. A block that cannot run has a remark before it in its
page: ``<!-- not run: needs a GPU -->``. Examples with ``>>>`` are in the other modules of this folder.
"""

import ast
import re
import shutil
from importlib.util import find_spec

import matplotlib.pyplot as plt
import pytest
from snippets import (
    BEFORE,
    BEFORE_PAGE,
    DOCS,
    PAGES,
    REPOSITORY,
    all_snippets,
    commands,
    make_folder,
    program,
    snippets,
)

import warpstack as ws
from warpstack import cli

#: Pages whose Python other tests run, or that cannot run here.
ELSEWHERE = {
    "how-to/cuda.md": "test_docs_cuda.py",
    "how-to/numba.md": "test_docs_cuda.py",
    "how-to/triton.md": "test_docs_cuda.py",
    "how-to/extend.md": "test_docs_extend.py, after the changes that the page shows",
    "how-to/large-sweeps.md": "30,000 points take minutes; tests/python/exploration has smaller ones",
}
#: Packages without which a block is not run, nor what comes after it on its page.
OPTIONAL = ("distributed", "duckdb", "polars", "pyspark", "ray")
#: Commands that are read by the parser but not run, by their beginning or a part of them.
NOT_RUN = {
    r"\.cu\b|--machine-code": "takes a CUDA compiler; tests/python/cli has it",
    r" -- ": "takes a program of the reader's; tests/python/stand_ins has some",
    r"^figure (?!--list)": "takes minutes; tests/python/figures draws them on small inputs",
    r"^validate|gtx1080 .*--csv": "takes measurements; tests/python/validation has some",
    r"^calibrate run|my-h100": "takes what the program on the card prints; tests/python/calibration",
    r"^sweep ": "takes a design file; tests/python/cli writes some",
    r"^lines|^report|--timeline": "takes the source of the trace; tests/python/reporting has it",
}
#: Programs that are not part of the package.
OTHERS = {
    *("cd", "export", "git", "pip", "make", "nvcc", "nvprof", "ncu", "nsys", "cmake", "ctest"),
    *("docker", "sbatch", "srun", "squeue", "kubectl", "dask", "ssh", "rsync", "ls", "cat"),
    *("cuobjdump", "nvdisasm", "perf", "valgrind", "source", "mkdir", "for", "do", "done", "END"),
}
PYTHON = [page for page in PAGES if any(s.language == "python" for s in snippets(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    name = page.relative_to(DOCS).as_posix()
    if name in ELSEWHERE:
        pytest.skip(ELSEWHERE[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPSTACK_CACHE", str(tmp_path / "cache"))
    names = {"__name__": "__main__"}
    exec(BEFORE, names)
    exec(BEFORE_PAGE.get(name, ""), names)
    for snippet in snippets(page):
        if snippet.language != "python" or snippet.not_run:
            continue
        needed = [p for p in OPTIONAL if re.search(rf"\b(?:import|from) {p}\b", snippet.text)]
        if needed and (needed[0] == "distributed" or not find_spec(needed[0])):
            break  # a cluster, or a package that is not here
        code = compile("\n" * (snippet.line - 1) + snippet.text, str(page), "exec")
        exec(code, names)
        plt.close("all")


@pytest.mark.parametrize("snippet", all_snippets("python"), ids=str)
def test_python_names_what_exists(snippet):
    """Also where it is not run: the names of `ws` are there, and the text is Python."""
    ast.parse(snippet.text)
    plain = re.sub(r"#.*|\"[^\"]*\"", "", snippet.text)
    for name in set(re.findall(r"\bws\.([a-z_.]*[a-z])", plain)):
        found = ws
        for part in name.split("."):
            found = getattr(found, part)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the traces that pages speak of."""
    return make_folder(tmp_path_factory.mktemp("pages"))


def own_commands():
    """Return the commands of `warpstack` in all pages: page and line, and the words after it."""
    return [
        pytest.param(words[1:], id=f"{snippet}: {' '.join(words[1:])[:60]}")
        for snippet in all_snippets("sh", "bash", "console")
        if not snippet.not_run
        for words in commands(snippet)
        if program(words) == "warpstack"
    ]


@pytest.mark.parametrize("words", own_commands())
def test_command_is_read(words):
    """The parser takes each command with its options."""
    options = words[: words.index("--")] if "--" in words else words
    cli.make_parser().parse_args([*options, "./program"] if "--" in words else options)


@pytest.mark.slow
@pytest.mark.parametrize("words", own_commands())
def test_command_runs(words, folder, tmp_path, monkeypatch, capsys):
    for pattern, reason in NOT_RUN.items():
        if re.search(pattern, " ".join(words)):
            pytest.skip(reason)
    here = shutil.copytree(folder, tmp_path / "here", symlinks=True)
    place = 2 if words[0] == "convert" else words.index("-o") + 1 if "-o" in words else None
    if place:
        shutil.rmtree(here / words[place], ignore_errors=True)  # it is not there yet
    monkeypatch.chdir(here)
    assert cli.main(words) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_every_command_is_known():
    for snippet in all_snippets("sh", "bash", "console"):
        if snippet.not_run or snippet.page in ELSEWHERE:
            continue
        for words in commands(snippet):
            name = program(words)
            if name in {"python", "python3"} and len(words) > 1 and words[1].endswith(".py"):
                assert (REPOSITORY / words[1]).exists(), (str(snippet), words)
            elif (REPOSITORY / words[0]).is_file() or words[0].startswith("./"):
                pass  # a tool of the repository, or a program of the reader's
            else:
                known = name in OTHERS or name in {"warpstack", "python", "python3", ""}
                assert known, f"{snippet}: {name}: mark the block <!-- not run: REASON -->"


def test_code_is_fenced():
    """Code in an indented block would not run: only examples with >>> and formulas are indented."""
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        lines = re.findall(r"\n\n    (?:import |ws\.|warpstack \w+ )(.*)", text)
        exempt = page.name in {"benchmarks.md", "memory.md", "large-sweeps.md", "triton.md"}
        assert exempt or not lines, (page.name, lines)
