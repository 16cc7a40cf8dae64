"""What the pages show as code, in the order of each page, and what of it is not run, and why."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import warpstack as ws

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = REPOSITORY / "docs"
#: Pages with fenced code; notebooks, which run as a whole, are not among them.
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("[!n]*/*.md")])

#: What the reader of a page has before its first block.
BEFORE = """
import concurrent.futures
import numpy as np
import warpstack as ws
kernel = ws.patterns.strided(gs=8, blocks=4, iterations=2)
app = ws.App([kernel], name="app")
gpu = ws.gpu("pascal-mdm")
"""
#: The same for one page, by its name.
BEFORE_PAGE = {
    "explanation/timing.md": "gpus = [gpu, gpu.replace(l1_mshrs=64)]",
    "explanation/traces.md": "base, row, n = 1 << 20, 3, 64",
}

MARK = re.compile(r"<!-- not run: (.+?) -->")
FENCE = re.compile(r"```(\w*)")


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page: its language, its first line, its text, and why it is not run."""

    page: str
    line: int
    language: str
    text: str
    not_run: str

    @property
    def end(self) -> int:
        """The line after the block's text, that of its closing fence."""
        return self.line + self.text.count("\n")

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """Return the path of a page from ``docs``, or from the repository."""
    roots = [root for root in (DOCS, REPOSITORY) if page.is_relative_to(root)]
    return page.relative_to(roots[0]).as_posix() if roots else page.name


def snippets(page: Path) -> Iterator[Snippet]:
    """Yield the fenced blocks of a page.

    A block is not run where the last line before it that is not empty is ``<!-- not run: REASON -->``.
    """
    language, begin, text, before = None, 0, [], ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, begin, text = fence[1], number + 1, []
        elif language is not None and line.startswith("```"):
            mark = MARK.match(before)
            lines = "".join(f"{line}\n" for line in text)
            yield Snippet(name_of(page), begin, language, lines, mark[1] if mark else "")
            language, before = None, ""
        elif language is not None:
            text.append(line)
        elif line.strip():
            before = line
    assert language is None, f"{page}:{begin}: the block does not end"


def all_snippets(*languages: str) -> list[Snippet]:
    """Return the blocks of all pages in some languages."""
    return [s for page in PAGES for s in snippets(page) if s.language in languages]


def commands(snippet: Snippet, redirected: bool = False) -> Iterator[list[str]]:
    """Yield the words of each command of a block of shell, without remarks and brackets.

    Options in brackets, which may be left out, are given. Redirections are left out unless they are
    asked for.
    """
    for line in snippet.text.replace("\\\n", " ").splitlines():
        plain = re.sub(r"\[(--[^\]]*)\]", r"\1", line)
        words = shlex.split(plain, comments=True)
        if ">" in words and not redirected:
            words = words[: words.index(">")]
        if words:
            yield words


def program(words: list[str]) -> str:
    """Return which program a command runs, by its name."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    return Path(words[0]).name if words else ""


def make_folder(folder: Path) -> Path:
    """Make a folder with the traces that pages speak of and the repository's data, and return it."""
    kernels = [
        ws.patterns.strided(gs=8, blocks=4, iterations=2, launch_id=launch) for launch in (1, 2, 3)
    ]
    app = ws.App(kernels, name="app")
    for name in ("TRACE", "trace", "trace.pq", "traced", "saved", "hotspot", "build/strided"):
        ws.save(app, folder / name)
    for name in ("traces", "bfs"):
        ws.save(app, folder / name, format="accelsim")
    (folder / "data").symlink_to(REPOSITORY / "data")
    return folder
