"""The parser of a command: errors of one line, and arguments in any order."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
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
        """Print one line, with the nearest choice for a word that is not one of them, and exit."""
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", message)
        near = _near(choice[1], re.findall(r"[^\s,']+", choice[2])) if choice else ""
        say("error", f"{message}{near} (see {self.prog} --help)")
        self.exit(2)

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as `argparse` does, which takes positional arguments only from one place."""
        if not self.traces_anywhere or args is None:
            found, rest = super().parse_known_args(args, namespace)
            self._refuse(rest)
            return found, rest
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
        self._refuse(rest)
        for tidy in self.afterwards:
            tidy(found)
        return found, rest

    def _refuse(self, rest: Sequence[str]) -> None:
        """Refuse what is left over, here and not in the parser of all commands: it knows no options."""
        if rest:
            option = next((text for text in rest if text.startswith("-")), rest[0])
            near = _near(option.partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}{near}")


def _near(text: str, known: Iterable[str]) -> str:
    """Return the end of a sentence with the nearest known word; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(text, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
