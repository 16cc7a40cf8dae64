"""Parsers: of a command, with errors of one line and arguments in any order, and of all commands."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from warpstack.cli.common.messages import say

__all__ = ["CommandParser", "ProgramParser"]

#: A command with more options than this hides those of `_RARE` until ``--help-all``.
_MOST_OPTIONS = 18
#: Names, in the parsed arguments, of the options that few calls need.
_RARE = frozenset(
    [
        *("skip_missing", "memory_limit", "size", "compiler_options", "device_memory"),
        *("trace_config", "overwrite", "seed", "style", "width_inches", "latex"),
        *("selection", "misses", "merge_threshold", "access_order", "flush_l2", "sampling"),
        "sample_blocks",
        "initial_l2",
        *("sort", "max_cycles", "sample_cycles", "sample_launches", "option_values"),
        *("iteration", "between", "concurrent"),
        *("machine_code", "stop_at_limit", "step_limit", "allow_uninitialized", "on_fault"),
    ]
)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line.

    Attributes
    ----------
    traces_anywhere
        Whether positional arguments may stand between options, as many as there are, and ``-- WORD...`` be
        a program. They are ``trace`` and ``program`` of the result.
    afterwards
        Functions that tidy up the result.
    hints
        What to say of options that do not exist, by their names: the end of a sentence.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation means another option as soon as there is one more.
        defaults = {"formatter_class": _HelpFormatter, "allow_abbrev": False}
        super().__init__(*args, **{**defaults, **kwargs})
        self.traces_anywhere = False
        self.hints: dict[str, str] = {}
        self.afterwards: list[Callable[[argparse.Namespace], None]] = []

    def hide_rare_options(self) -> None:
        """Add ``--help-all``, which the help names where it hides options; called after all are added."""
        hides = bool(self._rare())
        self.add_argument(
            "--help-all",
            action=_HelpAllAction,
            help="show this and the options that few calls need" if hides else argparse.SUPPRESS,
        )

    def format_help(self) -> str:
        """Return the help: of the options that most calls need, if there are many."""
        rare = self._rare()
        kept = [action.help for action in rare]
        epilog = self.epilog
        try:
            for action in rare:
                action.help = argparse.SUPPRESS
            if rare:
                more = f"{len(rare)} more options: {self.prog} --help-all"
                self.epilog = f"{epilog} {more}" if epilog else more
            return super().format_help()
        finally:
            self.epilog = epilog
            for action, text in zip(rare, kept, strict=True):
                action.help = text

    def format_full_help(self) -> str:
        """Return the help of all options."""
        return super().format_help()

    def _rare(self) -> list[argparse.Action]:
        """Return the options that the help leaves out; none where all are few enough."""
        options = [
            action
            for action in self._actions
            if action.option_strings and not isinstance(action, _HelpAllAction)
        ]
        if len(options) <= _MOST_OPTIONS:
            return []
        return [action for action in options if action.dest in _RARE]

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
            name = option.partition("=")[0]
            near = self.hints.get(name) or _near_options(name, self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}{near}")


class _HelpFormatter(argparse.HelpFormatter):
    """Help whose lines do not end within an option: ``--help-all`` would be broken at its hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = self._split_lines(text, width - len(indent))
        return "\n".join(indent + line for line in lines)


class _HelpAllAction(argparse._HelpAction):
    """``--help-all``: print the help of all options and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        """Print the help and exit."""
        assert isinstance(parser, CommandParser)
        print(parser.format_full_help(), end="")
        parser.exit()


class ProgramParser(CommandParser):
    """The parser of all commands, whose help lists them in groups.

    Attributes
    ----------
    groups
        The names of the commands by the title of their group.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.groups = groups

    def format_help(self) -> str:
        """Return usage, commands by group, and options."""
        (commands,) = (a for a in self._actions if isinstance(a, argparse._SubParsersAction))
        lines = {line.dest: line for line in commands._choices_actions}
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for title, names in self.groups.items():
            formatter.start_section(title)
            formatter.add_arguments([lines[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def _near_options(text: str, known: Iterable[str]) -> str:
    """Return the end of a sentence with the options that may be meant; empty if none is near.

    They are those that `text` begins, as an abbreviation would, or else the nearest one; and those in which
    this one is a word.
    """
    import difflib

    options = [option for option in known if option.startswith("--")]
    found = [option for option in options if len(text) > 3 and option.startswith(text)]
    found = found[:3] or difflib.get_close_matches(text, options, n=1)
    words = {option.removeprefix("--") for option in found}
    found += [o for o in options if o not in found and words & set(o.removeprefix("--").split("-"))]
    return f"; did you mean {' or '.join(found[:3])}?" if found else ""


def _near(text: str, known: Iterable[str]) -> str:
    """Return the end of a sentence with the nearest known word; empty if none is near."""
    import difflib

    near = difflib.get_close_matches(text, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
