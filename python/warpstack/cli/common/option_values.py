"""``-O NAME=VALUE``: an option by the name that it has in Python, as ``--set`` sets a field of the GPU."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from warpstack.cli.common.parser import CommandParser
from warpstack.errors import InputError, not_a, not_one_of, unknown

__all__ = ["add_option_values", "option_flags", "option_words"]

#: The options in Python by name, and where the parsed arguments have the value of their flag.
_PLACES = {
    "selection": "selection",
    "misses": "misses",
    "merge_threshold": "merge_threshold",
    "access_order": "access_order",
    "flush_l2": "flush_l2",
    "initial_l2": "initial_l2",
    "sample_sms": "sampling",
    "sample_blocks": "sample_blocks",
    "sample_launches": "sample_launches",
    "profiler": "profiler",
}
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def add_option_values(parser: argparse.ArgumentParser) -> None:
    """Add ``-O`` for the options whose flags the parser already has."""
    parser.add_argument(
        "-O",
        dest="option_values",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"set an option by its name in Python: {', '.join(option_flags(parser))}; may be repeated",
    )
    if isinstance(parser, CommandParser):
        parser.afterwards.append(partial(_set_options, parser))


def option_flags(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the flags of a command that ``-O`` can set, by the names of the options in Python."""
    flags = {action.dest: action for action in parser._actions if action.option_strings}
    return {name: flags[place] for name, place in _PLACES.items() if place in flags}


def option_words(parser: argparse.ArgumentParser) -> list[str]:
    """Return what may follow ``-O``, for the completion of a shell: with a value where there are few."""
    words = []
    for name, flag in option_flags(parser).items():
        values = flag.choices or (("true", "false") if flag.nargs == 0 else ("",))
        words += [f"{name}={value}" for value in values]
    return words


def _set_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Put the values of ``-O`` where those of the flags are.

    Raises
    ------
    InputError
        If there is no such option, its value is not one, or it is given twice.
    """
    flags = option_flags(parser)
    known: dict[str, str] = {}
    for setting in arguments.option_values:
        name, equals, text = (part.strip() for part in setting.partition("="))
        where = f"-O {setting}"
        if not equals:
            raise InputError(f"{where}: expected option=value")
        if name not in flags:
            raise unknown("option", name, flags, where=where)
        flag = flags[name]
        if name in known:
            raise InputError(f"{where}: {name} is already set to {known[name]}; give one value")
        if getattr(arguments, flag.dest) != flag.default:
            raise InputError(
                f"{where}: {flag.option_strings[0]} is given, too; leave one of them out"
            )
        try:
            value = _value(name, flag, text)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        known[name] = text
        setattr(arguments, flag.dest, value)


def _value(name: str, flag: argparse.Action, text: str) -> Any:
    """Return the value that a text gives to an option."""
    truth = _TRUTHS.get(text.lower())
    if flag.nargs == 0:
        if truth is None:
            raise not_a(name, "true or false", text)
        return truth
    if flag.choices is not None:
        if text not in flag.choices:
            raise not_one_of(name, text, flag.choices)
        return text
    if flag.nargs == "?" and truth is not None:  # a flag whose value may be left out
        return truth
    read: Any = flag.type or float
    try:
        return read(text)
    except argparse.ArgumentTypeError as error:
        raise InputError(str(error)) from None
    except ValueError:
        raise not_a(
            name, "a number" + (", true or false" if flag.nargs == "?" else ""), text
        ) from None
