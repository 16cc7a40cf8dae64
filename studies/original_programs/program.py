"""What the study knows of a benchmark: where it lies, how it is built, what it reads, what is traced."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: Input makers by size: `paper` is what the papers (or the suite) say, `small` runs in seconds.
SIZES = ("paper", "small")


@dataclass(frozen=True)
class Repair:
    """An edit that today's compiler, or the simulator, asks for.

    It applies to a copy of the file and must match, so that a changed suite is noticed.
    """

    file: str
    pattern: str
    replacement: str
    why: str
    #: Of these sizes only; of both when empty.
    sizes: tuple[str, ...] = ()

    def apply(self, root: Path) -> None:
        """Edit the file in a copy of the suite."""
        path = root / self.file
        text = path.read_text(encoding="latin-1")
        text, count = re.subn(self.pattern, self.replacement, text, flags=re.DOTALL)
        if not count:
            raise ValueError(f"{path}: nothing matches {self.pattern!r}; is it another version?")
        path.write_text(text, encoding="latin-1")


def no_input(folder: Path, size: str) -> None:
    """Make nothing: the program makes its own input."""


@dataclass(frozen=True)
class Program:
    """A benchmark of a public suite."""

    name: str
    #: As the papers abbreviate it, and their class of it.
    abbreviation: str
    memory_divergent: bool
    suite: str
    #: Launches in MDM's Table IV.
    paper_launches: int
    #: What is copied, and what is compiled: paths below the folder of the suites.
    folders: tuple[str, ...]
    sources: tuple[str, ...]
    #: Arguments by size.
    arguments: Mapping[str, tuple[str, ...]]
    #: What the input is, for the page.
    input: str
    make_input: Callable[[Path, str], None] = no_input
    includes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()
    #: Trace the first so many launches; all when None. Why there is a limit.
    launches: int | None = None
    why_launches: str = ""
    #: Options of `warpstack trace`, and why they are needed.
    options: tuple[str, ...] = ()
    why_options: str = ""
    #: The workload of this package after it, for comparison.
    workload: str = ""

    def repairs_of(self, size: str) -> list[Repair]:
        """Return the repairs of a size."""
        return [repair for repair in self.repairs if not repair.sizes or size in repair.sizes]


@dataclass(frozen=True)
class Absent:
    """A benchmark of the papers that could not be had."""

    name: str
    paper: str
    why: str
