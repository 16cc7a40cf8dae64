"""Former names of arguments: they work with a warning that gives the present one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from warpstack.errors import warn

__all__ = ["former_keywords"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def former_keywords(**names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function take former names of arguments, by keyword, with a `FutureWarning` each.

    Parameters
    ----------
    **names
        The present name of each former one. Positions do not change, so that nothing else is needed.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if not names.keys().isdisjoint(kwargs):
                return function(*args, **_renamed(function.__qualname__, kwargs, names))
            return function(*args, **kwargs)

        vars(call)["former_keywords"] = names
        return call

    return decorate


def _renamed(function: str, given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return keyword arguments by their present names."""
    found = {name: value for name, value in given.items() if name not in names}
    for former in [name for name in given if name in names]:
        present = names[former]
        if present in found:
            raise TypeError(
                f"{function}() got both {present!r} and {former!r}, its former name; leave {former!r} out"
            )
        value = given[former]
        is_all = former == "num_threads" and isinstance(value, int) and value == 0
        found[present] = None if is_all else value  # 0 was what None is now
        warn(
            f"{function}: {former} is called {present} now; the former name goes in 0.4",
            FutureWarning,
        )
    return found
