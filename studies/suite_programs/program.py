"""A program of a public suite: what its user builds, and how it is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a suite.

    Attributes
    ----------
    name
        In the tables, and its folder below that of its suite.
    source
        Where the suite has what is compiled.
    arguments
        Of the program.
    verified
        What it says when its own check of the results is passed; empty: it has none.
    needs
        What it needs that is not there; such programs are not tried.
    build
        In words, what its compilation has beyond that of the whole suite: constants of its sources that
        arguments do not change, libraries, another architecture.
    beside
        In words, what it reads that its user puts beside it.
    make_input
        Writes what it reads into a folder, when that is not in the suite.
    """

    name: str
    source: str
    arguments: tuple[str, ...] = ()
    verified: str = ""
    needs: str = ""
    build: str = ""
    beside: str = ""
    make_input: Callable[[Path], None] | None = None

    def wanted(self) -> str:
        """Return what belongs where the program is missing."""
        with_ = f", with {self.build}" if self.build else ""
        beside = f"; beside it {self.beside}" if self.beside else ""
        return f"the executable of {self.source}{with_}{beside}"
