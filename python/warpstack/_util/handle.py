"""Objects that stand for something of this process alone."""

from __future__ import annotations

from typing import Any, NoReturn

from warpstack.errors import InputError

__all__ = ["Handle"]


class Handle:
    """An object with state in this process, which is neither copied nor pickled."""

    _what = "stands for a part of a device in this process"
    _remedy = "make another one"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        # copy.copy, copy.deepcopy and pickle all ask here.
        module = type(self).__module__
        package = ".".join(module.split(".")[:2])  # the package, where users find it
        raise InputError(
            f"a {package}.{type(self).__name__} {self._what} and can be neither copied nor "
            f"pickled; {self._remedy}"
        )
