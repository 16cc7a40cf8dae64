"""``--plot``: refusing files that cannot be written, and writing the picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import warpstack as ws
from warpstack._util.arguments import as_path, printable

__all__ = ["check_picture", "save_picture"]


def check_picture(path: str | None) -> None:
    """Refuse a picture that could not be written before any work is done."""
    if path is None:
        return
    import matplotlib.pyplot as plt

    target = as_path("--plot", path)
    supported = plt.figure().canvas.get_supported_filetypes()
    plt.close()
    if target.suffix.lstrip(".").lower() not in supported:
        raise ws.InputError(
            f"--plot {path}: the file name must end in one of "
            + ", ".join(f".{ending}" for ending in sorted(supported))
        )
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise ws.InputError(f"--plot {path}: there is no folder {folder}")
    if target.is_dir() or not os.access(folder, os.W_OK):
        raise ws.InputError(f"--plot {path}: cannot be written")


def save_picture(figure: Any, path: str, what: str) -> None:
    """Write a picture, close it, and say on standard error what was written where."""
    import matplotlib.pyplot as plt

    place = Path(path)
    try:
        figure.savefig(place, dpi=150)
    except OSError as error:
        raise ws.InputError(
            f"--plot {place}: cannot be written: {error.strerror or error}"
        ) from None
    finally:
        plt.close("all")
    print(f"\n{what}: {printable(place)}", file=sys.stderr)
