"""YAML files that people write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from warpstack._util.arguments import printable
from warpstack._util.input_file import read_input
from warpstack.errors import InputError

__all__ = ["MAX_YAML_BYTES", "read_mapping"]

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


def read_mapping(path: Path, what: str, lines: str) -> dict[str, Any]:
    """Return the entries of a YAML file, all of them text, lists or mappings of text.

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
        entries = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(f"{where}{line}: not valid YAML: {problem}") from None
    except RecursionError:
        raise InputError(f"{where}: not a {what}: nested too deeply") from None
    if not isinstance(entries, dict):
        raise InputError(f"{where}: not a {what}: expected lines `{lines}`")
    return entries
