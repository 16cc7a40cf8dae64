"""``--launch``: a launch as CUDA writes it, with arrays to allocate in place of pointers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from warpstack.cli.common.launch_arrays import Array, array_of_text, number, whole
from warpstack.errors import InputError, shown

__all__ = ["Array", "Launch", "read_launch", "read_launches"]

_EXAMPLE = "'add<<<4096, 256>>>(float[1048576], float[1048576], 1048576)'"


@dataclass(frozen=True)
class Launch:
    """A kernel's name, its launch configuration, and its arguments in order."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_memory_bytes: int
    arguments: tuple[Array | int | float, ...]


def read_launches(texts: Iterable[str], folder: str | os.PathLike[str] = "") -> list[Launch]:
    """Read launches that run one after the other; a text may have several, with semicolons between.

    An array that has a name is the same one in all of them. Files are in `folder`.

    Raises
    ------
    InputError
        As by `read_launch`.
    """
    arrays: dict[str, Array] = {}
    return [
        read_launch(one, arrays, folder)
        for text in texts
        for one in re.split(r"(?<=\))\s*;\s*(?=\S)", text)
    ]


def read_launch(
    text: str, arrays: dict[str, Array] | None = None, folder: str | os.PathLike[str] = ""
) -> Launch:
    """Read a launch such as ``name<<<(64, 64), 256>>>(float[1 << 20], int[1024] = range, 1024)``.

    Grid and block have one to three numbers: ``64``, ``(64, 64)``, ``dim3(64, 64)`` or ``64x64``. An
    array is the type of its elements with their number in brackets, and may have a name in between; it holds
    zeros, or what stands after ``=``: a number, ``range`` (0, 1, 2, ...), ``random`` (below 1, or below the
    number of elements for whole numbers), ``random(1000)`` (below 1000), ``random(-1, 1)``, what is computed
    of these, such as ``16 * range``, or a .npy file in `folder`, whose type and shape are compared. Such a
    file alone is an array, too. A name alone means one of `arrays`, to which arrays with a name are added.

    Raises
    ------
    InputError
        If the text has another form; the message says which part.
    """
    found = re.fullmatch(r"\s*([^<(]+?)\s*<<<(.*)>>>\s*\((.*)\)\s*;?\s*", text, re.DOTALL)
    if found is None and "<<<" in text and re.match(r"\s*\w+\s*<(?!<)", text):
        raise InputError(
            f"--launch {shown(text)}: template arguments are not read; write the name alone where the source "
            'instantiates it once, or the compiled name (cuobjdump, nm), or add extern "C" __global__ void '
            "that calls it"
        )
    if found is None:
        raise InputError(f"--launch {shown(text)}: expected a launch such as {_EXAMPLE}")
    kernel, configuration, given = found.groups()
    arrays = {} if arrays is None else arrays
    where = f"--launch {kernel}"
    parts = _split(configuration)
    if not 2 <= len(parts) <= 3:
        raise InputError(
            f"{where}: <<<{configuration}>>> has {len(parts)} parts; expected the grid, the block and "
            "perhaps the bytes of shared memory, such as <<<(64, 64), 256>>>"
        )
    shared = whole(f"{where}: shared memory", parts[2], 0) if len(parts) == 3 else 0
    return Launch(
        kernel,
        _sizes(f"{where}: grid", parts[0]),
        _sizes(f"{where}: block", parts[1]),
        shared,
        tuple(
            _argument(f"{where}: argument {place}", part, arrays, folder)
            for place, part in enumerate(_split(given), 1)
        ),
    )


def _split(text: str) -> list[str]:
    """Return what stands between the commas outside brackets; nothing of an empty text."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if parts or last else []


def _sizes(what: str, text: str) -> tuple[int, ...]:
    inner = re.fullmatch(r"(?:dim3)?\s*[({](.*)[)}]", text, re.DOTALL)
    if inner is not None and "," in inner[1]:
        parts = _split(inner[1])
    elif re.fullmatch(r"\d+(x\d+){1,2}", text):
        parts = text.split("x")
    else:
        parts = [inner[1] if text.startswith("dim3") and inner else text]
    if not 1 <= len(parts) <= 3:
        raise InputError(f"{what} = {shown(text)}: expected one to three numbers, such as (64, 64)")
    return tuple(whole(what, part, 1) for part in parts)


def _argument(
    what: str, text: str, arrays: dict[str, Array], folder: str | os.PathLike[str]
) -> Array | int | float:
    """Return an argument; `arrays` has the arrays with a name, and gets this one if it has one."""
    if text in arrays:
        return arrays[text]
    array = array_of_text(what, text, folder)
    if array is not None:
        return _named(what, text, array, arrays) if array.name else array
    if re.fullmatch(r"(?:const\s+)?[A-Za-z_][\w ]*?\s*\*.*", text):
        raise InputError(
            f"{what}: {shown(text)} is a pointer; give the array that it points to, such as float[1024]"
        )
    try:
        return number(what, text)
    except InputError as error:
        if not re.fullmatch(r"[A-Za-z_]\w*", text):
            raise
        named = f"the arrays with a name are {', '.join(arrays)}" if arrays else ""
        raise InputError(
            f"{error}; {named or f'an array gets a name where it first stands, such as float {text}[1024]'}"
        ) from None


def _named(what: str, text: str, array: Array, arrays: dict[str, Array]) -> Array:
    """Return an array with a name: the one that has it already, if it is declared again as it is."""
    known = arrays.setdefault(array.name, array)
    alike = (known.dtype, known.size) == (array.dtype, array.size)
    if known != array and not (alike and array.fill == 0 and not array.file):
        raise InputError(
            f"{what}: {shown(text)}: an array {array.name} with {known.size:,} {known.dtype} is there "
            f"already, and is the same in all launches; write {array.name} alone, or choose another name"
        )
    return known
