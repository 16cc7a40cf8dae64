"""Reads the program's output: lines ``KEY [PARAMETER=VALUE]... VALUE UNIT``."""

from __future__ import annotations

import codecs
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warpstack._util.arguments import as_path, printable
from warpstack._util.input_file import read_input
from warpstack.errors import InputError, shown, unknown

__all__ = ["CLASSES", "Measurements", "Sample", "read_measurements"]

#: Classes of operations of which latency and rate are measured.
CLASSES = ("integer", "fp32", "fp16", "fp64", "sfu", "conversion")
_CHAIN = ("warps", "length", "iterations")

_HEADER = "warpstack-calibration"
_VERSION = 1
#: The parameters and the unit of each kind of line.
_KEYS: dict[str, tuple[tuple[str, ...], str]] = {
    "device.name": ((), "text"),
    "device.capability": ((), "version"),
    "device.driver": ((), "version"),
    "device.runtime": ((), "version"),
    "device.sms": ((), "count"),
    "device.clock": ((), "kHz"),
    "device.threads_per_sm": ((), "count"),
    "device.blocks_per_sm": ((), "count"),
    "device.registers_per_sm": ((), "count"),
    "device.shared_per_sm": ((), "bytes"),
    "device.shared_reserved": ((), "bytes"),
    "device.l2_size": ((), "bytes"),
    "device.memory_clock": ((), "kHz"),
    "device.memory_bus": ((), "bits"),
    "clock.cycles": (("iterations",), "cycles"),
    "clock.time": (("iterations",), "ns"),
    **{f"latency.{name}": (_CHAIN, "cycles") for name in (*CLASSES, "shuffle", "barrier")},
    **{f"interval.{name}": (_CHAIN, "cycles") for name in (*CLASSES, "issue")},
    "latency.shared": (("steps",), "cycles"),
    "latency.constant": (("steps",), "cycles"),
    "chase.ca": (("footprint", "steps"), "cycles"),
    "chase.cg": (("footprint", "steps"), "cycles"),
    "chase.dram": (("steps",), "cycles"),
    "stream.passes": (("footprint", "passes"), "ns"),
    "stream.once": (("footprint",), "ns"),
    "stream.again": (("footprint",), "ns"),
    "misses": (("lines", "rounds"), "cycles"),
    "loads.global": (("lines", "warps", "iterations"), "cycles"),
    "loads.shared": (("passes", "warps", "iterations"), "cycles"),
    "reductions.lines": (("lanes", "requests"), "ns"),
    "reductions.stores": (("lanes", "requests"), "ns"),
    "reductions.word": (("lanes",), "ns"),
    "atomic.beside": (("length", "iterations"), "cycles"),
    "stores.whole": (("sectors",), "ns"),
    "stores.partial": (("sectors",), "ns"),
    "stream.curve": (("footprint", "launches"), "ns"),
    "stream.behind": (("written", "footprint"), "ns"),
    "launch.events": ((), "ns"),
    "launch.rate": (("launches",), "ns"),
    "dispatch.grid": (("threads", "blocks"), "ns"),
    "dispatch.warps": (("warps",), "cycles"),
    "dispatch.waves": (("iterations", "waves"), "ns"),
    "dispatch.block": (("iterations",), "cycles"),
    "turnover.waves": (("stores", "waves"), "ns"),
    "turnover.launches": (("stores", "launches"), "ns"),
    "code.straight": (("instructions", "iterations"), "cycles"),
    "map.block": (("block",), "sm"),
}
_DEVICE = tuple(key for key in _KEYS if key.startswith("device."))
_TEXTS = ("device.name", "device.capability", "device.driver", "device.runtime")
#: Properties that are 0 where the driver does not know them.
_OR_ZERO = ("device.clock", "device.shared_reserved", "device.memory_clock", "device.memory_bus")
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,20})?")
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]")
_WHOLE = re.compile(r"[0-9]{1,18}")
#: A run prints less than 200 KiB.
_MOST_BYTES = 2**24
_AGAIN = "run the program again, with its standard output in the file"


class Sample(NamedTuple):
    """One measurement: its parameters in the order of its kind, the value, and the line it is on."""

    parameters: tuple[int, ...]
    value: float
    line: int


@dataclass(frozen=True)
class Measurements:
    """The output of one run.

    Attributes
    ----------
    where
        Its file, for messages.
    texts
        Name, compute capability and versions of the device by key, ``device.name``.
    properties
        Its numbers by key.
    samples
        All other measurements by key, in the order in which they were taken.
    lines
        The line of each name, version and number of the device, by key.
    """

    where: str
    texts: dict[str, str] = field(default_factory=dict)
    properties: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def capability(self) -> float:
        """Return the compute capability, such as 8.6."""
        return float(self.texts["device.capability"])

    def problem(self, key: str, text: str, otherwise: str = "") -> InputError:
        """Return the error that what was measured under a key makes no sense.

        `otherwise` is what can be done beside running the program again.
        """
        lines = [sample.line for sample in self.samples[key]]
        return InputError(
            f"{self.where}:{min(lines)}: {key} (lines {min(lines)} to {max(lines)}): {text}; run the "
            f"program again on a GPU that does nothing else{otherwise}"
        )


def read_measurements(path: str | os.PathLike[str]) -> Measurements:
    """Read the output of the program.

    Raises
    ------
    InputError
        If the file cannot be read, is not such an output, is damaged, or stops before its end: the
        message names file, line and value.
    """
    place = as_path("calibration", path)
    where = printable(place)
    try:
        data = read_input(place, "output of the calibration program", _MOST_BYTES)
    except OSError as error:
        raise InputError(
            f"{where}: cannot read the output of the calibration program: {error.strerror or error}"
        ) from None
    try:
        lines = _text(data).splitlines()
    except UnicodeError as error:
        line = data[: getattr(error, "start", 0)].count(b"\n") + 1
        raise InputError(
            f"{where}:{line}: not a line of the calibration program; {_AGAIN}"
        ) from None
    return _parse(lines, where)


def _text(data: bytes) -> str:
    """Return a text of ASCII, from what PowerShell redirects into UTF-16, too, or an editor marks.

    Raises
    ------
    UnicodeError
        If it is another text.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16").encode("ascii")
    return data.removeprefix(codecs.BOM_UTF8).decode("ascii")


def _parse(lines: Sequence[str], where: str) -> Measurements:
    _check_header(lines, where)
    found = Measurements(where)
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if words[:1] == ["end"]:
            _check_end(words, number, lines, where)
            break
        try:
            _take(found, words, number)
        except InputError as error:
            raise InputError(f"{where}:{number}: {error}; {_AGAIN}") from None
    else:
        raise InputError(
            f"{where}:{len(lines)}: the output stops here, without its last line `end`: the program "
            f"was stopped or failed; {_AGAIN}, and see what it says on standard error"
        )
    for key in _DEVICE:
        if key not in found.texts and key not in found.properties:
            raise InputError(f"{where}: there is no line {key}; {_AGAIN}")
    return found


def _check_header(lines: Sequence[str], where: str) -> None:
    if not lines:
        raise InputError(f"{where}: the file is empty; {_AGAIN}")
    words = lines[0].split()
    if len(words) != 3 or words[0] != _HEADER or words[2] != "format":
        raise InputError(
            f"{where}:1: not the output of the calibration program, which begins with {_HEADER}, but "
            f"{shown(lines[0])}; `warpstack calibrate --source` prints the program"
        )
    if words[1] != str(_VERSION):
        raise InputError(
            f"{where}:1: format {shown(words[1])} is not {_VERSION}: another version's program wrote "
            "it; compile and run what `warpstack calibrate --source` prints"
        )


def _check_end(words: Sequence[str], number: int, lines: Sequence[str], where: str) -> None:
    if words != ["end", str(number - 1), "lines"]:
        raise InputError(
            f"{where}:{number}: {shown(' '.join(words))} does not fit the {number - 1} lines before "
            f"it: lines are missing, or there are more than the program wrote; {_AGAIN}"
        )
    if any(line.strip() for line in lines[number:]):
        raise InputError(
            f"{where}:{number + 1}: {shown(lines[number])} follows the last line of the program; "
            "put one run in the file"
        )


def _take(found: Measurements, words: Sequence[str], line: int) -> None:
    """Add what one line says."""
    if len(words) < 3:
        raise InputError(f"{shown(' '.join(words))} is not KEY [PARAMETER=VALUE]... VALUE UNIT")
    key, *middle, text, unit = words
    if key not in _KEYS:
        raise unknown("measurement", key, _KEYS, "no such line is written")
    names, expected = _KEYS[key]
    if unit != expected:
        raise InputError(f"{key}: the unit {shown(unit)} is not {expected}")
    parameters = _parameters(key, names, middle)
    if key in _DEVICE:
        found.lines[key] = line
    if key == "device.capability" and not _CAPABILITY.fullmatch(text):
        raise InputError(f"{key} = {shown(text)} is not a compute capability, such as 8.6")
    if key in _TEXTS:
        _add_once(found.texts, key, text)
    elif key in _DEVICE:
        _add_once(found.properties, key, _whole(key, text, 0 if key in _OR_ZERO else 1))
    else:
        found.samples.setdefault(key, []).append(Sample(parameters, _value(key, text), line))


def _add_once(known: dict[str, str] | dict[str, int], key: str, value: str | int) -> None:
    if key in known:
        raise InputError(f"{key} is given twice")
    known[key] = value  # type: ignore[assignment]


def _parameters(key: str, names: Iterable[str], words: Sequence[str]) -> tuple[int, ...]:
    given = [word.partition("=") for word in words]
    if [name for name, _, _ in given] != list(names):
        expected = " ".join(f"{name}=NUMBER" for name in names) or "none"
        raise InputError(f"{key}: the parameters {shown(' '.join(words))} are not {expected}")
    return tuple(_whole(f"{key}: {name}", text, 0) for name, _, text in given)


def _whole(what: str, text: str, at_least: int) -> int:
    if not _WHOLE.fullmatch(text) or int(text) < at_least:
        raise InputError(f"{what} = {shown(text)} is not a whole number of at least {at_least}")
    return int(text)


def _value(key: str, text: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not number >= 0:
        raise InputError(
            f"{key} = {shown(text)} is not a number of at least 0, written without an exponent"
        )
    return number
