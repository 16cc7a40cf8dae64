"""Choices of launches by number or by the names of their kernels."""

from __future__ import annotations

import contextlib
import fnmatch
import re
from collections.abc import Collection, Iterable
from typing import Any, Protocol

from warpstack._util.arguments import as_integer
from warpstack.errors import InputError, shown

#: The end of a range without one: above all numbers that a text may have.
_OPEN_END = 2**70


class Launches:
    """A choice of launch numbers.

    Kept as ranges, because a range may be far longer than any application.

    Parameters
    ----------
    ranges
        The numbers chosen.
    """

    def __init__(self, ranges: Iterable[range]) -> None:
        self._ranges = tuple(ranges)
        if not self._ranges:
            raise InputError("kernels: no launch is chosen")
        for chosen in self._ranges:
            if not chosen:
                raise InputError(f"kernels: {chosen} is empty")

    @classmethod
    def of(cls, kernels: int | Iterable[int | range] | Launches) -> Launches:
        """Return the choice that a caller wrote as a number, a range or a sequence of both.

        Raises
        ------
        InputError
            If it is something else, or chooses nothing.
        """
        if isinstance(kernels, Launches):
            return kernels
        if isinstance(kernels, str):
            raise InputError(f"kernels = {shown(kernels)}: expected launch numbers such as [1, 4]")
        parts: Iterable[Any] = (kernels,)
        if not isinstance(kernels, range):
            with contextlib.suppress(TypeError):
                parts = iter(kernels)  # type: ignore[arg-type]
        return cls(part if isinstance(part, range) else _just(part) for part in parts)

    def __contains__(self, launch_id: int) -> bool:
        return self.is_chosen(launch_id)

    def is_chosen(self, launch_id: int) -> bool:
        """Return whether a launch is chosen itself, and not only because another one is."""
        return any(launch_id in chosen for chosen in self._ranges)

    def with_earlier(self) -> Launches:
        """Return a choice that has the launches before the last one, too, if they are there."""
        return _WithEarlier(self._ranges)

    def check(self, known: Collection[int], where: str) -> None:
        """Raise `InputError` for the first launch that is chosen and not known."""
        launches = set(known)
        for chosen in self._ranges:
            if chosen.stop == _OPEN_END:
                if not any(number >= chosen.start for number in launches):
                    raise InputError(
                        f"{where} has no kernel {chosen.start} or later; {_listing(launches)}"
                    )
                continue
            # This ends after as many steps as there are launches, however long the range is.
            missing = next((number for number in chosen if number not in launches), None)
            if missing is not None:
                raise InputError(f"{where} has no kernel {missing}; {_listing(launches)}")


class _WithEarlier(Launches):
    """Launches that are chosen, and all with a smaller number than the last of them."""

    def __contains__(self, launch_id: int) -> bool:
        return launch_id < max(chosen.stop for chosen in self._ranges)


def launches_of_text(text: str | None, where: str) -> list[range] | None:
    """Read a choice of launches such as ``1,4-6``, or ``2-`` for all from the second on.

    Raises
    ------
    InputError
        If the text is something else; the message begins with `where`.
    """
    if text is None:
        return None
    chosen = []
    for part in text.split(","):
        ends = re.fullmatch(r"([0-9]{1,20})(?:(-)([0-9]{1,20})?)?", part.strip())
        if not ends:
            raise InputError(f"{where}kernels {text}: expected launch numbers such as 1,4-6 or 2-")
        if ends[2] and not ends[3]:
            chosen.append(range(int(ends[1]), _OPEN_END))
            continue
        first, last = int(ends[1]), int(ends[3] or ends[1])
        if last < first:
            raise InputError(f"{where}kernels {text}: the range {part.strip()} is empty")
        chosen.append(range(first, last + 1))
    return chosen


class _Launch(Protocol):
    """What a choice asks of a kernel."""

    @property
    def launch_id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def short_name(self) -> str: ...


def launches_named(kernels: Iterable[_Launch], text: str, where: str) -> list[range]:
    """Return the launches that a text chooses by the names of their kernels, or by numbers.

    A part of the text between commas is the name of a kernel, with or without its parameters, a
    pattern such as ``gemm*``, or launch numbers such as ``4-6``.

    Raises
    ------
    InputError
        If no kernel has such a name; the message begins with `where`.
    """
    names = {kernel.launch_id: (kernel.short_name, kernel.name) for kernel in kernels}
    # The name of a template has commas of its own.
    whole = any(text in both for both in names.values())
    chosen: list[range] = []
    for part in [text] if whole else [part.strip() for part in text.split(",")]:
        if re.fullmatch(r"[0-9]+(-[0-9]*)?", part):
            chosen += launches_of_text(part, where) or []
            continue
        found = [
            range(launch, launch + 1)
            for launch, both in names.items()
            if part in both or any(fnmatch.fnmatchcase(name, part) for name in both)
        ]
        if not found:
            known = list(dict.fromkeys(short for short, _ in names.values()))
            more = f" and {len(known) - 10} more" if len(known) > 10 else ""
            raise InputError(
                f"{where}kernels {text}: no kernel is called {shown(part)}; there are "
                f"{', '.join(known[:10])}{more}; give names, patterns such as gemm*, or launch numbers "
                "such as 1,4-6 or 2-"
            )
        chosen += found
    return chosen


def _just(number: Any) -> range:
    launch = as_integer("kernels", number, 0, 2**64 - 1)
    return range(launch, launch + 1)


def _listing(launches: Collection[int]) -> str:
    numbers = sorted(launches)
    if len(numbers) > 16:
        return f"its {len(numbers)} kernels have numbers from {numbers[0]} to {numbers[-1]}"
    return f"its kernels are {', '.join(map(str, numbers))}"
