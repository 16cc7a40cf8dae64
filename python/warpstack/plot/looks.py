"""The looks that pictures can have: for notebooks, dark notebooks, papers and slides."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from warpstack.errors import InputError, not_one_of, shown

__all__ = ["LOOKS", "Look", "drawing", "look", "look_of"]


@dataclasses.dataclass(frozen=True)
class Look:
    """What a style decides.

    Attributes
    ----------
    name
        The name of the style.
    sizes
        Sizes of text in points: titles; names of axes; ticks, legends and notes; numbers at bars; the
        smallest ones. They take the places of those of `warpstack.plot.sheet`.
    marks
        The factor of lines and markers.
    width
        The width of a figure in inches; None: what suits the picture.
    is_compact
        Whether the data have most of the figure: the legend is below, what a caption says is left out, and
        models and fields have the names of the literature.
    is_dark
        Whether the ground is dark.
    """

    name: str
    sizes: tuple[float, float, float, float, float]
    marks: float = 1.0
    width: float | None = None
    is_compact: bool = False
    is_dark: bool = False


_NOTEBOOK = Look("notebook", (10, 9, 8, 7, 6))
#: The styles by their names.
LOOKS = {
    "notebook": _NOTEBOOK,
    "dark": dataclasses.replace(_NOTEBOOK, name="dark", is_dark=True),
    # A column of a two-column page; no text is below 7 points.
    "paper": Look("paper", (8, 8, 7, 7, 7), 0.7, 3.3, is_compact=True),
    "slides": Look("slides", (20, 18, 16, 14, 14), 2.0, 10.0, is_compact=True),
}
#: Figures narrower than this have no room for an axis with its name; wider ones are mistakes.
_LEAST_WIDTH, _MOST_WIDTH = 3.0, 40.0

_current: ContextVar[Look] = ContextVar("look", default=_NOTEBOOK)


def look() -> Look:
    """Return the look of the picture that is being drawn."""
    return _current.get()


def look_of(style: str = "notebook", width_inches: float | None = None) -> Look:
    """Return the look of a style.

    Parameters
    ----------
    style
        One of `LOOKS`.
    width_inches
        The width of the figure in inches; None: that of the style.

    Raises
    ------
    InputError
        If there is no such style, or the width is not between 3 and 40 inches.
    """
    if not isinstance(style, str) or style not in LOOKS:
        raise not_one_of("style", style, LOOKS)
    found = LOOKS[style]
    if width_inches is None:
        return found
    is_number = isinstance(width_inches, (int, float)) and not isinstance(width_inches, bool)
    if not (is_number and _LEAST_WIDTH <= width_inches <= _MOST_WIDTH):
        raise InputError(
            f"width_inches = {shown(width_inches)} is not a number from {_LEAST_WIDTH:g} to "
            f"{_MOST_WIDTH:g}; a column of a paper has 3.3, a page 7"
        )
    return dataclasses.replace(found, width=float(width_inches))


#: Matplotlib's settings of a dark ground; others stay those of the caller.
_DARK: dict[str, Any] = {
    "figure.facecolor": "#111111",
    "axes.facecolor": "#111111",
    "savefig.facecolor": "auto",
    **dict.fromkeys(
        (
            "text.color",
            "axes.labelcolor",
            "axes.edgecolor",
            "xtick.color",
            "ytick.color",
            "lines.color",
        ),
        "#e8e8e8",
    ),
}


@contextlib.contextmanager
def drawing(chosen: Look) -> Iterator[None]:
    """Have pictures drawn meanwhile get a look."""
    import matplotlib as mpl

    token = _current.set(chosen)
    try:
        settings: Any = _DARK if chosen.is_dark else {}
        with mpl.rc_context(settings):
            yield
    finally:
        _current.reset(token)
