"""The location of the package's data."""

from __future__ import annotations

from pathlib import Path

__all__ = ["data_folder"]


def data_folder(name: str) -> Path:
    """Return a folder of data: in the package, or in the source tree it runs from."""
    installed = Path(__file__).parents[1] / "data" / name
    return installed if installed.is_dir() else Path(__file__).parents[3] / "data" / name
