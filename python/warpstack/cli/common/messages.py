"""Messages on standard error: one line per error, warning or note."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["say", "show_warning"]


def say(kind: str, message: str) -> None:
    """Print one line on standard error: ``warpstack: KIND: MESSAGE``."""
    print(f"warpstack: {kind}: " + " ".join(message.split()), file=sys.stderr)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning; takes the place of `warnings.showwarning`."""
    say("warning", str(message))
