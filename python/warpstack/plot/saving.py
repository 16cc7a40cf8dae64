"""Writing pictures: fonts that files contain, and kinds of files that need another program."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from warpstack._util.output_file import picture_metadata
from warpstack.errors import InputError

__all__ = ["PrintedFigure", "check_kind", "printing", "write_figure"]

#: PDF and PostScript contain TrueType fonts, whose texts can be searched; publishers refuse Type 3. Texts of
#: SVG are outlines: they look alike where the font is not installed.
_FONTS: dict[str, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path"}
_ENGINES = ("xelatex", "lualatex", "pdflatex")
#: Seconds for a TeX engine to say its version.
_PATIENCE = 20


class PrintedFigure(Figure):
    """A figure whose files contain their fonts, whoever saves it."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure as `matplotlib.figure.Figure.savefig` does.

        Raises
        ------
        InputError
            If it is to be PGF and no TeX engine answers.
        """
        with printing(fname, options.get("format")):
            super().savefig(fname, **options)


def check_kind(file: Any, kind: str | None = None) -> None:
    """Refuse a file that cannot be written here, before what it shows is computed.

    Parameters
    ----------
    file
        Its name, or what is written to.
    kind
        The format, where the name does not say it.

    Raises
    ------
    InputError
        If it is PGF and no TeX engine answers.
    """
    if _is_pgf(file, kind) and _engine() is None:
        name = f"{file}: " if isinstance(file, (str, os.PathLike)) else ""
        raise InputError(
            f"{name}PGF needs a TeX engine to measure text, and none of {', '.join(_ENGINES)} answers; "
            "install TeX Live, or write .pdf, which LaTeX includes as well"
        )


@contextlib.contextmanager
def printing(file: Any, kind: str | None = None) -> Iterator[None]:
    """Have files written meanwhile contain their fonts; see `check_kind`."""
    import matplotlib as mpl

    check_kind(file, kind)
    settings: Any = dict(_FONTS)
    if _is_pgf(file, kind):
        settings["pgf.texsystem"] = _engine()
    with mpl.rc_context(settings):
        yield


def write_figure(figure: Any, file: Path) -> None:
    """Write a figure as commands and design files do: the same picture whenever and wherever it is drawn."""
    with printing(file):
        figure.savefig(file, dpi=150, metadata=picture_metadata(file))


def _is_pgf(file: Any, kind: str | None) -> bool:
    if kind is not None:
        return kind.lower() == "pgf"
    return isinstance(file, (str, os.PathLike)) and Path(file).suffix.lower() == ".pgf"


def _engine() -> str | None:
    """Return the first TeX engine that answers."""
    for name in _ENGINES:
        program = shutil.which(name)
        if program is None:
            continue
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run([program, "--version"], capture_output=True, timeout=_PATIENCE)
            if done.returncode == 0:
                return name
    return None
