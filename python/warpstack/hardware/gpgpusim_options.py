"""The options of GPGPU-Sim configurations: names with values, and the lines that they stand in."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack._util.input_file import read_input
from warpstack._util.yaml_file import MAX_YAML_BYTES
from warpstack.errors import InputError

__all__ = ["INTEGER", "Option", "Options"]

_TOKEN = re.compile(r'"[^"]*"|\S+')
#: A quoted value has no options in it: then the quote was to end before them.
_QUOTED = re.compile(r'"(?:(?!\s-[A-Za-z_])[^"])*"')
_OPTION_NAME = re.compile(r"-[A-Za-z_][A-Za-z0-9_:.]*")
INTEGER = re.compile(r"[0-9]{1,10}")


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:120] + "..."


@dataclasses.dataclass(frozen=True)
class Option:
    """An option with its value, without spaces and quotes."""

    name: str
    value: str
    path: Path
    line: int

    @property
    def where(self) -> str:
        """File, name and value: the source of what is read from it."""
        return f"{self.path.name}, {self.name} {self.value}"

    def error(self, problem: str, remedy: str) -> InputError:
        """Return the error that says where the option is, what is wrong and what to do."""
        where = f"{self.path}:{self.line}: {self.name} {_short(self.value)}"
        return InputError(f"{where}: {problem}; {remedy}")

    def integer(self, at_least: int = 1) -> int:
        """Return the value as a whole number."""
        if not INTEGER.fullmatch(self.value) or not at_least <= int(self.value) < 2**31:
            raise self.error("not a number", f"write a whole number from {at_least} on")
        return int(self.value)

    def flag(self) -> bool:
        """Return whether the option is on."""
        if self.value not in ("0", "1"):
            raise self.error("not a switch", "write 0 or 1")
        return self.value == "1"

    def integers(self, separator: str, form: str, at_least: int = 1) -> list[int]:
        """Return the whole numbers of the value; `form` says what they are."""
        parts = self.value.split(separator)
        if not all(INTEGER.fullmatch(part) for part in parts):
            raise self.error("malformed", f"write {form}")
        numbers = [int(part) for part in parts]
        if not all(at_least <= number < 2**31 for number in numbers):
            raise self.error("a number is out of range", f"write {form}, each {at_least} or more")
        return numbers


class Options:
    """The options of the configuration files, and which of them were of use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._options: dict[str, Option] = {}
        self._used: set[str] = set()

    def read(self, path: Path) -> None:
        """Add the options of a file."""
        try:
            text = read_input(path, "configuration", MAX_YAML_BYTES).decode("utf-8-sig")
        except OSError as error:
            raise InputError(
                f"{printable(path)}: cannot read the configuration: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise InputError(f"{path}: not a text file; expected lines `-option value`")
        # A comment ends its line, inside quotes too; newlines stay, so that lines can be counted.
        text = re.sub(r"#[^\n]*", "", text)
        line, counted = 1, 0
        pending: tuple[str, int] | None = None
        for token in _TOKEN.finditer(text):
            line += text.count("\n", counted, token.start())
            counted = token.start()
            word = token.group()
            if pending is None:
                if not _OPTION_NAME.fullmatch(word):
                    raise InputError(
                        f"{path}:{line}: expected an option like -gpgpu_n_clusters, got "
                        f"{_short(word)!r}; quote a value that has spaces"
                    )
                pending = word, line
                continue
            if _OPTION_NAME.fullmatch(word):
                raise self._no_value(path, *pending)
            if word.startswith('"') and not _QUOTED.fullmatch(word):
                start = _short(word.split()[0])
                raise InputError(
                    f"{path}:{line}: {pending[0]} {start}: the quote does not end; "
                    "add the closing quote"
                )
            self._add(Option(pending[0], "".join(word.strip('"').split()), path, pending[1]))
            pending = None
        if pending is not None:
            raise self._no_value(path, *pending)

    @staticmethod
    def _no_value(path: Path, name: str, line: int) -> InputError:
        return InputError(f"{path}:{line}: {name} has no value; write the value after it")

    def _add(self, option: Option) -> None:
        first = self._options.setdefault(option.name, option)
        if first.value != option.value:
            raise option.error(
                f"contradicts {first.path.name}:{first.line}, which says {_short(first.value)}",
                "keep one of them",
            )

    def find(self, name: str) -> Option | None:
        """Return an option, or None if the files do not give it, and take it as used."""
        self._used.add(name)
        return self._options.get(name)

    def need(self, name: str, example: object) -> Option:
        """Return an option, and take it as used; raise `InputError` if the files do not give it."""
        option = self.find(name)
        if option is None:
            raise InputError(
                f"{self.path}: there is no option {name}; add it, for example `{name} {example}`"
            )
        return option

    def unused(self) -> tuple[str, ...]:
        """Return the names of the options that were of no use, in the order of the files."""
        return tuple(name for name in self._options if name not in self._used)

    def leave(self, name: str) -> None:
        """Take an option as not used after all."""
        self._used.discard(name)

    def names(self, prefix: str) -> list[str]:
        """Return the names that start with `prefix`, in the order of the files."""
        return [name for name in self._options if name.startswith(prefix)]
