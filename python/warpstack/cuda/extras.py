"""Compilers of other packages, which are loaded when a kernel of theirs is compiled."""

from __future__ import annotations

import importlib
from typing import Any

from warpstack.errors import InputError


def load_extra(what: str, module: str, extra: str) -> Any:
    """Return a module of a package that an extra of this one installs.

    Parameters
    ----------
    what
        The function that needs it, for the message.
    module
        Its dotted name.
    extra
        The extra that installs it.

    Raises
    ------
    InputError
        If it is not installed, with the command that installs it; or if it cannot be loaded, with
        the reason.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise InputError(f"{what}: {package} cannot be loaded: {error}") from None
        raise InputError(
            f"{what} needs {package}; install it with: pip install 'warpstack[{extra}]'"
        ) from None
    except ImportError as error:
        raise InputError(f"{what}: {package} cannot be loaded: {error}") from None
