"""What the text of a CUDA source says of its kernels: whether there is a main, and their parameters."""

from __future__ import annotations

import re
from typing import NamedTuple

from warpstack._util.arguments import as_path, printable
from warpstack.cli.common.launch_arrays import element_of
from warpstack.errors import InputError

__all__ = ["Parameter", "check_main", "parameters_of"]

_KERNELS = re.compile(
    r"__global__\s[^;{(]*?(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)"
)
#: What may stand in a parameter and says nothing of its type.
_QUALIFIERS = {"const", "volatile", "restrict", "__restrict__", "__restrict", "__grid_constant__"}


class Parameter(NamedTuple):
    """A parameter of a kernel, of which the type is known."""

    text: str
    #: The type of the numbers, as NumPy calls it, of which an element of an array may have several.
    dtype: str
    is_pointer: bool


def parameters_of(text: str, kernel: str) -> list[Parameter | None] | None:
    """Return the parameters of a kernel in a source's text, None for those of types that are not known.

    None in place of all: the text has no such kernel, or several with other parameters.
    """
    found = {
        " ".join(parameters.split())
        for name, parameters in _KERNELS.findall(_without_comments(text))
        if name == kernel
    }
    if len(found) != 1:
        return None
    return [_parameter(one) for one in found.pop().split(",") if one.strip()]


def _parameter(text: str) -> Parameter | None:
    plain = text.partition("=")[0]
    stars = plain.count("*") + plain.count("[")
    if stars > 1 or "&" in plain or "<" in plain:
        return None
    kind = [one for one in re.findall(r"\w+", plain.partition("*")[0]) if one not in _QUALIFIERS]
    # The last word is the parameter's name, which may be left out, unless it stands behind the star.
    for words in (kind, kind[:-1]) if "*" not in plain else (kind,):
        element = element_of(" ".join(words))
        if element is not None and (stars or element[0] == 1):
            return Parameter(" ".join(text.split()), element[1], bool(stars))
    return None


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def check_main(path: str, command: str = "") -> None:
    """Raise `InputError` for a source without a main, with the kernels that it has.

    `command` is one that launches them, where the user's does not.
    """
    try:
        text = as_path("source", path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{printable(path)}: {error.strerror or error}") from None
    plain = _without_comments(text)
    if re.search(r"\bmain\s*\(", plain):
        return
    found = _KERNELS.findall(plain)
    found += re.findall(r"\.entry\s+([\w$]+)(\s)", plain)
    name, parameters = found[0] if found else ("kernel", "")
    example = ", ".join(_example(one) for one in parameters.split(",") if one.strip())
    has = f"its kernels are {', '.join(kernel for kernel, _ in found[:10])}" if found else ""
    raise InputError(
        f"{printable(path)} has no main; {has or 'it has no kernel, either'}"
        + (f"; launch one: {command}--launch '{name}<<<4096, 256>>>({example})'" if found else "")
    )


def _example(parameter: str) -> str:
    """Return what a launch may have for a parameter of a kernel."""
    kind = " ".join(
        word for word in re.findall(r"\w+", parameter.partition("*")[0]) if word != "const"
    )
    return f"{kind}[1048576]" if "*" in parameter else "1048576"
