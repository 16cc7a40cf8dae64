"""The parser of a command: errors of one line, and arguments in any order."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from warpstack.cli.common.messages import say

__all__ = ["CommandParser"]


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line.

    Attributes
    ----------
    traces_anywhere
        Whether positional arguments may stand between options, as many as there are, and ``-- WORD...`` be
        a program. They are ``trace`` and ``program`` of the result.
    afterwards
        Functions that tidy up the result.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.traces_anywhere = False
        self.afterwards: list[Callable[[argparse.Namespace], None]] = []

    def error(self, message: str) -> NoReturn:
        say("error", f"{message} (see {self.prog} --help)")
        self.exit(2)

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as `argparse` does, which takes positional arguments only from one place."""
        if not self.traces_anywhere or args is None:
            return super().parse_known_args(args, namespace)
        given, program = list(args), []
        if "--" in given:
            place = given.index("--")
            given, program = given[:place], given[place + 1 :]
            if not program:
                self.error("after -- there is no program")
        found, rest = super().parse_known_args(given, namespace)
        found.program = program
        if not any(text.startswith("-") and text != "-" for text in rest):
            found.trace, rest = [*found.trace, *rest], []
        for tidy in self.afterwards:
            tidy(found)
        return found, rest
