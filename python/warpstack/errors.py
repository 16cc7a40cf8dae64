"""Errors and warnings that users of the package may want to catch."""

from warpstack._core import InputError

__all__ = ["DamageWarning", "InputError", "TraceWarning", "UnmatchedWarning", "UnusedOptionWarning"]

InputError.__module__ = "warpstack"
InputError.__doc__ = """Input that its author can correct.

A malformed trace, an impossible configuration, an unknown name. The message says which file, line,
field and value, and what to do. A subclass of `ValueError`.
"""


class DamageWarning(UserWarning):
    """A damaged file of the program's own: what it held is computed or written again."""


class TraceWarning(UserWarning):
    """A trace that can be used, but not as fully as it should: unknown opcodes, missing blocks."""


class UnusedOptionWarning(UserWarning):
    """An option that was given and has no effect."""


class UnmatchedWarning(UserWarning):
    """Predictions without a reference, or references without a prediction."""
