"""What pages show as printed, what their commands and examples print, and pages with the latter.

A page shows a block of commands (``sh``, ``bash``, ``console``) or of ``python`` and, right after it, a
block ``output``: what these commands print together, or what the code prints and its last expression
shows. Of a command that fails, it is also the error, if a line of the block begins with ``warpstack: ``.
A line ``...`` matches any lines, and ``...`` within a line any text. ``<!-- not run: REASON -->`` before
the block of output, or before that of commands, says why nothing compares it. Examples with ``>>>`` are
compared with what they return, as :mod:`doctest` does.

Commands run in a folder of their page, which has the traces that pages speak of and the repository's
``data``. What a source in ``data`` prints is what the ready PTX beside it prints: compilers differ.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from snippets import (
    BEFORE,
    BEFORE_PAGE,
    PAGES,
    REPOSITORY,
    Snippet,
    commands,
    make_folder,
    name_of,
    program,
    snippets,
)

#: Pages that may show output: those of the documentation, and the README.
SHOWING = [*PAGES, REPOSITORY / "README.md"]
SHELL = ("sh", "bash", "console")


@dataclass(frozen=True)
class Output:
    """A block of output, the block that prints it, and why it is not run: empty if it is."""

    source: Snippet
    shown: Snippet

    @property
    def not_run(self) -> str:
        return self.shown.not_run or self.source.not_run


def outputs(page: Path) -> list[Output]:
    """Return the blocks of output of a page; one that does not follow what prints it is an error."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, before = [], None
    for snippet in snippets(page):
        if snippet.language == "output":
            between = lines[before.end : snippet.line - 2] if before else ["a page begins"]
            if any(line.strip() and not line.startswith("<!--") for line in between):
                raise ValueError(f"{snippet}: output without a block of commands right before it")
            if before.language not in (*SHELL, "python"):
                raise ValueError(f"{snippet}: output of a block of {before.language or 'text'}")
            if not snippet.text.replace("...", "").strip():
                raise ValueError(f"{snippet}: a block that any output matches")
            found.append(Output(before, snippet))
        before = snippet
    return found


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed: blanks at ends of lines do not count."""
    pattern = ""
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + "\n"
    return re.fullmatch(pattern, plain(printed)) is not None


def plain(text: str) -> str:
    """Return a text without blanks at ends of lines and without empty lines around it."""
    lines = "".join(line.rstrip() + "\n" for line in text.splitlines())
    return lines.strip("\n") + "\n"


def cut_as(shown: str, printed: str) -> str:
    """Return what was printed, cut as the page cuts it.

    Before the line ``...`` there are as many lines as before, or as many paragraphs if an empty line comes
    before it: a paragraph may have become longer. After it there are as many lines as before.
    """
    lines, kept = plain(printed).splitlines(), [line.strip() for line in shown.splitlines()]
    dots = [number for number, line in enumerate(kept) if line == "..."]
    if len(dots) > 1:
        raise ValueError("several lines '...' in a block that has changed: edit it by hand")
    if dots:
        head, tail = kept[: dots[0]], kept[dots[0] + 1 :]
        begin = len(head)
        if head and not head[-1]:
            empty = [number for number, line in enumerate(lines, 1) if not line]
            begin = [*empty, len(lines)][min(head.count("") - 1, len(empty))]
        lines[begin : len(lines) - len(tail)] = ["..."]
    return "".join(f"{line}\n" for line in lines)


class Session:
    """A reader who goes through a page: a folder, the names of Python, and what was printed."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = make_folder(folder)
        self.names: dict[str, object] = {"__name__": "__main__"}
        if "build/strided" in page.read_text(encoding="utf-8"):
            shutil.rmtree(folder / "build/strided")
            script = REPOSITORY / "data/kernels/strided.py"
            self.run([sys.executable, str(script), "build/strided", "--ptx"])

    def run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder, as if it were called where there is no terminal."""
        environment = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES"}}
        environment["WARPSTACK_CACHE"] = str(self.folder / "cache")
        return subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def of_commands(self, snippet: Snippet, shown: str) -> str:
        """Return what the commands of a block print; an error only if the page shows it."""
        printed = ""
        for words in commands(snippet, redirected=True):
            words, target = (words[:-2], words[-1]) if ">" in words else (words, "")
            words = [
                word if before == "--source" else self.as_ptx(word)
                for before, word in zip(["", *words], words, strict=False)
            ]
            if program(words) == "warpstack":
                words = [sys.executable, "-m", "warpstack", *words[1:]]
            elif program(words) in {"python", "python3"}:
                words = [sys.executable, *words[1:]]
            else:
                raise ValueError(f"{snippet}: {words[0]} is not run here: say why in a mark")
            done = self.run(words)
            if done.returncode and not re.search("^warpstack: ", shown, re.MULTILINE):
                raise ValueError(f"{snippet}: {' '.join(words[2:])}: {done.stderr}")
            if target:
                (self.folder / target).write_text(done.stdout, encoding="utf-8")
            else:
                printed += done.stdout + (done.stderr if done.returncode else "")
        return printed

    def as_ptx(self, word: str) -> str:
        """Return the ready PTX in place of a source: compilers differ in the instructions that they make."""
        ready = word.removesuffix(".cu") + ".ptx"
        return ready if word.endswith(".cu") and (self.folder / ready).exists() else word

    def of_python(self, snippet: Snippet) -> str:
        """Run a block in the names of the page and return what it prints and shows."""
        import matplotlib.pyplot as plt
        import pandas as pd

        code = "\n" * (snippet.line - 1) + snippet.text
        file = f"{self.page}, line {snippet.line}"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        tree = ast.parse(code, file)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with (
            in_folder(self.folder),
            contextlib.redirect_stdout(printed),
            pd.option_context("display.width", 100, "display.max_columns", 20),
        ):
            if not self.names.get("ws"):
                exec(BEFORE, self.names)
                exec(BEFORE_PAGE.get(name_of(self.page), ""), self.names)
            exec(compile(tree, file, "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), file, "eval"), self.names)
                if value is not None:
                    print(repr(value))
        plt.close("all")
        return printed.getvalue()


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work in a folder, with stages' results kept there."""
    here, cache = Path.cwd(), os.environ.get("WARPSTACK_CACHE")
    os.chdir(folder)
    os.environ["WARPSTACK_CACHE"] = str(folder / "cache")
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.pop("WARPSTACK_CACHE")
        if cache is not None:
            os.environ["WARPSTACK_CACHE"] = cache


def printed_by(page: Path, folder: Path) -> Iterator[tuple[Output, str]]:
    """Yield each block of output that is run, and what was printed instead, in the order of the page.

    Blocks of Python before it run, too; commands run only where their output is shown.
    """
    of = {output.source: output for output in outputs(page)}
    last = [s for s, output in of.items() if s.language == "python" and not output.not_run]
    session = Session(page, folder)
    for snippet in snippets(page):
        output = of.get(snippet)
        if snippet.language == "python" and not snippet.not_run and last:
            if snippet.line > last[-1].line:
                continue
            printed = session.of_python(snippet)
            if output and not output.not_run:
                yield output, printed
        elif output and not output.not_run and snippet.language in SHELL:
            yield output, session.of_commands(snippet, output.shown.text)


class Recorder(doctest.DocTestRunner):
    """Runs examples and keeps what those return that the page shows otherwise."""

    def __init__(self) -> None:
        super().__init__(optionflags=doctest.ELLIPSIS, verbose=False)
        self.changed: list[tuple[doctest.Example, str]] = []

    def report_failure(self, out, test, example, got) -> None:
        self.changed.append((example, got))

    def report_unexpected_exception(self, out, test, example, exc_info) -> None:
        raise ValueError(f"{test.filename}:{example.lineno + 1}: {exc_info[1]!r}") from exc_info[1]


def examples(page: Path) -> doctest.DocTest:
    """Return the examples of a page with ``>>>``."""
    text = page.read_text(encoding="utf-8")
    return doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)


def refreshed_examples(page: Path, folder: Path) -> list[tuple[int, int, list[str]]]:
    """Return which lines of a page its examples replace: first, one after the last, new lines."""
    test, recorder = examples(page), Recorder()
    traces = make_folder(folder / "made") / "traces"
    test.globs = {"folder": folder, "traces": traces}
    with in_folder(folder):
        recorder.run(test, out=lambda text: None)
    replaced = []
    for example, got in recorder.changed:
        begin = example.lineno + example.source.count("\n")
        lines = [" " * example.indent + (line or "<BLANKLINE>") for line in got.splitlines()]
        replaced.append((begin, begin + example.want.count("\n"), lines))
    return replaced


def refreshed(page: Path, folder: Path) -> str:
    """Return the text of a page with what its commands and examples print now."""
    replaced = []
    for output, printed in printed_by(page, folder / "commands"):
        shown = output.shown
        if not matches(shown.text, printed):
            new = cut_as(shown.text, printed).splitlines()
            replaced.append((shown.line - 1, shown.end - 1, new))
    if examples(page).examples:
        replaced += refreshed_examples(page, folder / "examples")
    lines = page.read_text(encoding="utf-8").splitlines()
    for begin, end, new in sorted(replaced, reverse=True):
        lines[begin:end] = new
    return "\n".join(lines) + "\n"
