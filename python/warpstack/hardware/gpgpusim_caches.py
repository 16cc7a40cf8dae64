"""The caches of GPGPU-Sim configurations, in the forms of its versions."""

from __future__ import annotations

import dataclasses
import re

from warpstack._core import SECTOR_BYTES
from warpstack.hardware.gpgpusim_options import Option

__all__ = ["LETTERS", "Cache"]

_GEOMETRY = r"(?P<sets>[0-9]{1,9}):(?P<line>[0-9]{1,9}):(?P<ways>[0-9]{1,9})"
_MSHRS = r"(?P<mshr>\w):(?P<mshrs>[0-9]{1,9}):(?P<targets>[0-9]{1,9})"
_QUEUES = r"(?:,(?P<queue>[0-9]{1,9})(?::[0-9]{1,9})?(?:,(?P<port>[0-9]{1,9}))?)?"
#: The forms of a cache, the last one first:
#: <sector?>:<nsets>:<bsize>:<assoc>,<rep>:<wr>:<alloc>:<wr_alloc>:<set_index_fn>,<mshr>:<N>:<merge>
#: and, where given, ,<mq>:<fifo_entry>,<data_port_width>. GPGPU-Sim 3.2 has no <sector?>, earlier
#: ones no <set_index_fn> either; the first of 3.x have the policies beside the geometry.
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?:(?P<kind>[A-Za-z]):)?{_GEOMETRY},(?P<replacement>\w):(?P<write>\w):(?P<allocate>\w):"
        rf"(?P<write_miss>\w)(?::(?P<index>\w))?,{_MSHRS}{_QUEUES}",
        rf"{_GEOMETRY}:(?P<replacement>\w):(?P<write>\w):(?P<allocate>\w),{_MSHRS}{_QUEUES}",
        rf"{_GEOMETRY}:(?P<replacement>\w):(?P<write>\w):(?P<allocate>\w):(?P<mshr>A)(?::[PS])?:"
        r"(?P<write_miss>\w):(?P<mshrs>[0-9]{1,9})[:,](?P<targets>[0-9]{1,9})"
        r"(?:[:,](?P<queue>[0-9]{1,9}))?",
    )
)
#: GPGPU-Sim 2: ``128:64:4:L``.
_WITHOUT_POLICIES = re.compile(rf"{_GEOMETRY}:\w(?:\|.*)?")
_CACHE_FORM = (
    "<S or N>:<sets>:<line bytes>:<ways>,<replacement>:<write>:<allocate>:<write miss>:<index>,"
    "<MSHR type>:<MSHRs>:<merged>,<miss queue>:<results>,<bytes of the data port>"
)
#: The letters that GPGPU-Sim knows, with what they are here. Its write policies E (write-evict) and
#: L (write-evict of global memory, write-back of local memory) send every global store on.
LETTERS: dict[str, dict[str, str]] = {
    "kind": {"S": "sectored", "N": "whole lines"},
    "replacement": {"L": "lru", "F": "fifo"},
    "write": {
        "B": "write_back",
        "T": "write_through",
        "E": "write_through",
        "L": "write_through",
    },
    "allocate": {"m": "on_miss", "f": "on_fill", "s": "on_fill"},
    "write_miss": {
        "N": "no_allocate",
        "W": "write_and_fetch",
        "F": "fetch_on_partial_write",
        "L": "write_validate",
    },
    "index": {"L": "modulo", "X": "xor", "P": "ipoly", "H": "xor", "C": "modulo"},
    "mshr": {"A": "associative", "S": "associative"},
}

#: What is simplified in the set indices that are not exactly those of the simulator.
_INEXACT_INDICES = {
    "X": "exclusive or with the next address bits, taken with all higher ones",
    "H": "Fermi hash, taken as xor",
    "C": "custom set index, of which the simulator has none, taken modulo",
}
#: For `none`: a line, through which nothing but local memory goes.
_NO_CACHE = "N:1:128:1,L:T:m:N:L,A:64:8,8"


@dataclasses.dataclass(frozen=True)
class Cache:
    """A cache of each SM, or a slice of L2."""

    option: Option
    sets: int
    line: int
    ways: int
    mshrs: int
    targets: int
    queue: int | None
    port: int
    letters: dict[str, str]

    @classmethod
    def parse(cls, option: Option) -> Cache:
        """Return the cache that an option gives."""
        value = _NO_CACHE if option.value == "none" else option.value
        match = next((found for form in _FORMS if (found := form.fullmatch(value))), None)
        if not match:
            if _WITHOUT_POLICIES.fullmatch(option.value):
                raise option.error(
                    "the form of GPGPU-Sim 2 says neither what writes do nor how many misses there "
                    "can be",
                    f"write {_CACHE_FORM}",
                )
            raise option.error("malformed cache", f"write {_CACHE_FORM}")
        parts = match.groupdict()
        letters = _letters(parts)
        for part, letter in letters.items():
            if letter not in LETTERS[part]:
                known = ", ".join(LETTERS[part])
                what = part.replace("_", " ")
                raise option.error(
                    f"the letter {letter} for `{what}` is not known", f"write one of {known}"
                )
        sets, line, ways, mshrs = (int(parts[p]) for p in ("sets", "line", "ways", "mshrs"))
        if not sets or not ways or not mshrs:
            raise option.error("a size is 0", "give sets, ways and MSHRs of at least 1")
        if letters["kind"] == "S" and line != 4 * SECTOR_BYTES:
            raise option.error(
                f"a sectored cache with lines of {line} bytes", "give lines of 128 bytes"
            )
        if not line or line % SECTOR_BYTES or line > 256:
            raise option.error(
                f"lines of {line} bytes", "give lines of a multiple of 32 bytes up to 256"
            )
        targets = max(int(parts["targets"]), 1)
        queue = max(int(parts["queue"]), 1) if parts["queue"] else None
        # A port of 0 bytes, or none, is as wide as a line.
        port = int(parts.get("port") or 0) or line
        if line % port:
            raise option.error(
                f"a data port of {port} bytes", f"give a divisor of the {line} bytes of a line"
            )
        return cls(option, sets, line, ways, mshrs, targets, queue, port, letters)

    @property
    def is_none(self) -> bool:
        """Whether there is no such cache."""
        return self.option.value == "none"

    def approximations(self) -> list[str]:
        """Return what is simplified."""
        name, notes = self.option.name, []
        if self.is_none:
            return [f"{name} none (local memory goes through one line of {self.line} bytes)"]
        if self.letters["write"] in "EL":
            notes.append(f"{name} (write-evict, taken as write-through that keeps the line)")
        if self.letters["index"] in _INEXACT_INDICES:
            notes.append(f"{name} ({_INEXACT_INDICES[self.letters['index']]})")
        return notes


def _letters(parts: dict[str, str | None]) -> dict[str, str]:
    """Return the letters of a form, with what it does not give as the versions that had it did."""
    # Before there were other kinds and set indices: whole lines and the lowest bits of the address.
    letters = {"kind": "N", "index": "L"}
    if "write_miss" not in parts:
        # Only a cache that is written back fetched what it missed; one for reads sent writes on.
        letters["write_miss"] = "W" if parts["write"] == "B" else "N"
    letters |= {name: letter for name, letter in parts.items() if letter and name in LETTERS}
    if "kind" not in parts and letters["write"] == "R":
        letters["write"] = "E"
    return letters
