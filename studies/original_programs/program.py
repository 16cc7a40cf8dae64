"""What the study knows of a benchmark: what its user builds, what it reads, what is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: Input makers by size: `paper` is what the papers (or the suite) say, `small` runs in seconds.
SIZES = ("paper", "small")


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
    #: Where its source is, below the repository's name, and which files of it are compiled.
    folder: str
    sources: tuple[str, ...]
    #: Arguments by size.
    arguments: Mapping[str, tuple[str, ...]]
    #: What the input is, for the page.
    input: str
    make_input: Callable[[Path, str], None] = no_input
    #: In words, what compilation needs beyond that of the others.
    build: str = ""
    #: In words, changes of the source before it is compiled, and why; those of the small size alone.
    changes: tuple[str, ...] = ()
    small_changes: tuple[str, ...] = ()
    #: Trace the first so many launches; all when None. Why there is a limit.
    launches: int | None = None
    why_launches: str = ""
    #: Options of `warpstack trace`, and why they are needed.
    options: tuple[str, ...] = ()
    why_options: str = ""
    #: The workload of this package after it, for comparison.
    workload: str = ""

    def wanted(self, size: str) -> str:
        """Return what belongs where the executable for a size is missing."""
        changes = [*self.changes, *(self.small_changes if size == "small" else ())]
        parts = [*([self.build] if self.build else []), *changes]
        with_ = f", with {'; '.join(parts)}" if parts else ""
        return f"the executable of {', '.join(self.sources)} in {self.folder}{with_}"


@dataclass(frozen=True)
class Absent:
    """A benchmark of the papers that could not be had."""

    name: str
    paper: str
    why: str
