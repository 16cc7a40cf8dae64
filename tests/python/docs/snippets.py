"""What the pages show as code, in the order of each page, and what of it is not run, and why."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
DOCS = REPOSITORY / "docs"
#: Pages with fenced code; notebooks, which run as a whole, are not among them.
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("[!n]*/*.md")])

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

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


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
            name = page.relative_to(DOCS).as_posix()
            yield Snippet(name, begin, language, "\n".join(text) + "\n", mark[1] if mark else "")
            language, before = None, ""
        elif language is not None:
            text.append(line)
        elif line.strip():
            before = line
    assert language is None, f"{page}:{begin}: the block does not end"


def all_snippets(*languages: str) -> list[Snippet]:
    """Return the blocks of all pages in some languages."""
    return [s for page in PAGES for s in snippets(page) if s.language in languages]


def commands(snippet: Snippet) -> Iterator[list[str]]:
    """Yield the words of each command of a block of shell, without remarks, redirections and brackets.

    Options in brackets, which may be left out, are given.
    """
    for line in snippet.text.replace("\\\n", " ").splitlines():
        plain = re.sub(r"\[(--[^\]]*)\]", r"\1", line)
        words = shlex.split(plain, comments=True)
        if ">" in words:
            words = words[: words.index(">")]
        if words:
            yield words


def program(words: list[str]) -> str:
    """Return which program a command runs, by its name."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    return Path(words[0]).name if words else ""
