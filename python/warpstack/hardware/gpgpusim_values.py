"""The fields of a `Gpu` as they are gathered from the options of a GPGPU-Sim configuration."""

from __future__ import annotations

from typing import Any

from warpstack.hardware.gpgpusim_options import Options

__all__ = ["Values"]


class Values:
    """The fields of a `Gpu`, gathered with their sources.

    Attributes
    ----------
    options
        What they are gathered from.
    values, sources
        Values by field, and the option that each comes from.
    approximations
        What is simplified.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.approximations: list[str] = []

    def put(self, field: str, value: object, source: str) -> None:
        """Set a field."""
        self.values[field] = value
        self.sources[field] = source

    def integer(self, field: str, name: str, example: int, at_least: int = 1) -> int:
        """Set a field to the whole number that an option gives, and return it."""
        option = self.options.need(name, example)
        number = option.integer(at_least)
        self.put(field, number, option.where)
        return number
