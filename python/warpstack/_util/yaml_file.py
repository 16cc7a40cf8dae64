"""YAML files that people write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from warpstack._util.arguments import printable
from warpstack._util.input_file import read_input
from warpstack.errors import InputError

__all__ = ["MAX_YAML_BYTES", "Entries", "read_entries"]

#: Descriptions and plans that people write take a few KiB.
MAX_YAML_BYTES = 2**20


class _Loader(yaml.BaseLoader):
    """Leaves numbers to the reader's caller: YAML 1.1 reads 010 as 8 and 1e3 as text.

    Aliases are refused: a few lines of them stand for more than memory holds.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            problem = f"the alias *{event.anchor} is not allowed; write the value out"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        given = set()
        for key, _ in node.value:
            if key.value in given:
                problem = f"{key.value} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            given.add(key.value)
        return mapping


@dataclass(frozen=True)
class Entries:
    """The entries of a file, with their lines.

    Attributes
    ----------
    path
        The file, as messages name it.
    values
        Text, lists or mappings of text by key.
    lines
        The line of each key, by the keys that lead to it.
    """

    path: str
    values: dict[str, Any]
    lines: dict[tuple[str, ...], int]

    def error(self, problem: object) -> InputError:
        """Return the error of a problem with the file and the line of the entry that it names."""
        line = self._line_of(str(problem))
        return InputError(f"{self.path}{f':{line}' if line else ''}: {problem}")

    def _line_of(self, problem: str) -> int:
        """Return the line of what ``key: key: problem`` leads to, or of the first key it names."""
        keys: tuple[str, ...] = ()
        for part in problem.split(": "):
            word = re.match(r"[^\s=,]*", part)
            if word and (*keys, word[0]) in self.lines:
                keys = (*keys, word[0])
        if keys:
            return self.lines[keys]
        words = re.findall(r"[\w.-]+", problem)
        return next((self.lines[(word,)] for word in words if (word,) in self.lines), 0)


def read_entries(path: Path, what: str, lines: str) -> Entries:
    """Return the entries of a YAML file that is a mapping, all of them text, lists or mappings.

    Parameters
    ----------
    path
        The file.
    what
        What it is, for errors.
    lines
        What its lines look like, for errors.

    Raises
    ------
    InputError
        If the file cannot be read, has more than 1 MiB or aliases, or is not a mapping.
    """
    where = printable(path)
    try:
        text = read_input(path, what, MAX_YAML_BYTES).decode("utf-8")
    except OSError as error:
        raise InputError(f"{where}: cannot read the {what}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: cannot read the {what}: it is not UTF-8 text") from None
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if isinstance(node, yaml.MappingNode):
                values: dict[str, Any] = loader.construct_document(node)
                return Entries(where, values, dict(_lines_of(node)))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(f"{where}{line}: not valid YAML: {problem}") from None
    except RecursionError:
        raise InputError(f"{where}: not a {what}: nested too deeply") from None
    raise InputError(f"{where}: not a {what}: expected lines `{lines}`")


def _lines_of(
    node: yaml.MappingNode, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield keys with those that lead to them, and their lines."""
    for key, value in node.value:
        keys = (*above, key.value)
        yield keys, key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            yield from _lines_of(value, keys)
