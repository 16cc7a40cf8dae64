"""``warpstack manual``: the manual page, made of the parsers."""

from __future__ import annotations

import argparse
import re

from warpstack import __version__

SUMMARY = "the manual page: warpstack manual > warpstack.1; man ./warpstack.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the command has none."""


def run(arguments: argparse.Namespace) -> None:
    """Print the page in the language of man."""
    from warpstack.cli.registry import GROUPS, commands_of, make_parser

    parser = make_parser()
    lines = [
        f'.TH WARPSTACK 1 "" "warpstack {__version__}" "User Commands"',
        ".SH NAME",
        r"warpstack \- predicts how fast GPU kernels run",
        ".SH SYNOPSIS",
        r".B warpstack \fICOMMAND\fR [\fIARGUMENT\fR...]",
        ".SH DESCRIPTION",
        _text(parser.description or ""),
    ]
    titles = {names[0]: title for title, names in GROUPS.items()}
    for name, command in commands_of(parser).items():
        if name in titles:
            lines.append(f".SH {_text(titles[name].upper())}")
        lines += [f".SS warpstack {name}", _text(command.description or ""), ".PP"]
        usage = command.format_usage().removeprefix("usage: ")
        lines.append(_text(" ".join(usage.split())))
        for action in command._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            lines += [".TP", ".B " + _text(_invocation(action))]
            lines.append(_text((action.help or "").replace("%%", "%")))
        if command.epilog:
            lines += [".PP", _text(command.epilog)]
    lines += [
        ".SH EXIT STATUS",
        "0, or 2 after bad input, of which one line tells, or 130 after an interrupt.",
    ]
    print("\n".join(lines))


def _invocation(action: argparse.Action) -> str:
    """Return the names of an option with its value, or the name of an argument."""
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    if not action.option_strings:
        return str(value)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def _text(text: str) -> str:
    r"""Return text for a line of its own; ``\``, ``-`` and ``.`` or ``'`` in front have a meaning to man."""
    escaped = text.replace("\\", r"\(rs").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)
