"""The arrays of ``--launch``: their elements, how many there are, and what they hold at first."""

from __future__ import annotations

import ast
import math
import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from warpstack._util.arguments import printable
from warpstack._util.input_file import open_input
from warpstack.errors import InputError, shown, unknown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Array", "array_of_text", "element_of", "number", "same_bits", "values_of", "whole"]

#: The types of an array's elements, as CUDA and as NumPy call them.
_TYPES = {
    "bool": "bool",
    "char": "int8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "long long": "int64",
    "short": "int16",
    "size_t": "uint64",
    "unsigned": "uint32",
    "unsigned char": "uint8",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "unsigned long long": "uint64",
    "unsigned short": "uint16",
}
_TYPES |= {f"{kind}_t": kind for kind in ("int8", "int16", "int32", "int64")}
_TYPES |= {f"u{kind}_t": f"u{kind}" for kind in ("int8", "int16", "int32", "int64")}
_NUMPY = sorted(set(_TYPES.values()))
#: Elements of several numbers, such as float4.
_VECTOR = re.compile(r"(char|short|int|long|uint|float|double)([1-4])")

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
}
_MOST = 2**63
#: More letters than this are neither a number nor what an array holds.
_LONGEST = 200
#: What expressions that cannot be read or computed raise.
_NOT_READ = (
    SyntaxError,
    ValueError,
    TypeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)


@dataclass(frozen=True)
class Array:
    """An array to allocate: the type of its numbers, how many, and what is in them."""

    dtype: str
    size: int
    #: A number, or the text of an expression with ``range`` (0, 1, 2, ...) or ``random``.
    fill: str | int | float = 0
    #: The .npy file that has the numbers; empty: there is none.
    file: str = ""
    #: With which later arguments mean this array; empty: it has none.
    name: str = ""


def element_of(name: str) -> tuple[int, str] | None:
    """Return the numbers of an element, and what NumPy calls them; None for types that are not known."""
    if name in _TYPES or name in _NUMPY:
        return 1, _TYPES.get(name, name)
    vector = _VECTOR.fullmatch(name)
    if vector is not None:
        return int(vector[2]), _TYPES["unsigned" if vector[1] == "uint" else vector[1]]
    return None


def same_bits(one: str, other: str) -> bool:
    """Return whether numbers of two types have the same bits but for what a sign means."""
    import numpy as np

    first, second = np.dtype(one), np.dtype(other)
    return first.itemsize == second.itemsize and (first.kind == "f") == (second.kind == "f")


def array_of_text(what: str, text: str, folder: str | os.PathLike[str] = "") -> Array | None:
    """Read an array, such as ``float x[1024] = random``; None if a text is not like one.

    Its file is in `folder`.

    Raises
    ------
    InputError
        If its elements, their number or what it holds cannot be; `what` names the argument.
    """
    found = re.fullmatch(
        r"(?:const\s+)?([A-Za-z_][\w ]*?)\s*((?:\[[^\]]*\]\s*)+)(?:=(.*))?", text, re.DOTALL
    )
    if found is None and _is_file(text):
        file, shape, dtype = _header(what, text, folder)
        return Array(dtype, math.prod(shape), file=file)
    if found is None:
        return None
    words, name = found[1].split(), ""
    element = element_of(" ".join(words))
    if element is None and len(words) > 1:
        element, name = element_of(" ".join(words[:-1])), words[-1]
    if element is None:
        raise unknown("type of elements", found[1], [*_TYPES, *_NUMPY], where=what)
    sizes = [size.strip() for size in re.findall(r"\[([^\]]*)\]", found[2])]
    held = "0" if found[3] is None else found[3].strip()
    if _is_file(held):
        return _of_file(what, _header(what, held, folder), sizes, element, name)
    if "" in sizes:
        raise InputError(
            f"{what}: {shown(text)} does not say how many elements there are, such as float[1024]; [] is of "
            "an array that a .npy file holds"
        )
    numbers, dtype = element
    size = numbers * math.prod(whole(f"{what}: number of elements", one, 1) for one in sizes)
    return Array(dtype, size, _fill(what, held, dtype, found[1]), name=name)


def values_of(what: str, array: Array) -> npt.NDArray[Any]:
    """Return what an array holds at first. Random numbers are the same in each call.

    Raises
    ------
    InputError
        If its file cannot be read any more, or its elements cannot hold what is computed for them; `what`
        names the argument.
    """
    import numpy as np

    kind: np.dtype[Any] = np.dtype(array.dtype)
    if array.file:
        try:
            # Rows one after the other, as C has them, in the order of bytes of a GPU.
            found = np.load(array.file, allow_pickle=False).ravel(order="C")
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{what}: {printable(array.file)}: cannot be read: {error}") from None
        native: npt.NDArray[Any] = found.astype(found.dtype.newbyteorder("="), copy=False)
        return native
    if not isinstance(array.fill, str):
        return np.full(array.size, array.fill, kind)
    with np.errstate(all="ignore"):
        computed = _computed(_tree(array.fill), _Numbers(array.size, kind))
    values = np.broadcast_to(np.asarray(computed), array.size)
    if array.fill not in ("range", "random"):
        _check_bounds(what, kind, array.fill, values.min(), values.max())
    return values.astype(kind)


def _check_bounds(what: str, kind: np.dtype[Any], held: str, least: float, most: float) -> None:
    """Raise `InputError` for whole numbers beyond those that elements of a type can have."""
    import numpy as np

    if kind.kind not in "iu":
        return
    bounds = np.iinfo(kind)
    if least < bounds.min or most > bounds.max:
        to = "" if least == most else f"{least:,.15g} to {most:,.15g}, and "
        raise InputError(
            f"{what}: = {held}: {to}elements of {kind.name} hold {bounds.min:,} to {bounds.max:,}"
        )


def whole(what: str, text: str, least: int) -> int:
    """Return a whole number of at least `least`; `what` names it in errors."""
    value = number(what, text)
    if value != int(value) or value < least:
        raise InputError(f"{what} = {shown(text)}: expected a whole number of at least {least}")
    return int(value)


def number(what: str, text: str) -> int | float:
    """Return the value of a number or of a sum, difference, product or shift of numbers."""
    try:
        return _value_of(text)
    except _NOT_READ:
        raise InputError(
            f"{what}: {shown(text)} is neither a number such as 1024 or 1 << 20 nor an array such as "
            "float[1024]"
        ) from None


def _value_of(text: str) -> int | float:
    value: int | float = _computed(_tree(text), None)
    if not abs(value) < _MOST:
        raise ValueError
    return value


def _tree(text: str) -> ast.expr:
    """Return a text as an expression of Python, without the endings that numbers of C have."""
    if len(text) > _LONGEST:
        raise ValueError
    return ast.parse(_without_endings(text), mode="eval").body


def _without_endings(text: str) -> str:
    return re.sub(r"(?<=[\d.])(?:[fF]|[uU]?[lL]{0,2})\b", "", text).strip()


class _Numbers:
    """What ``range`` and ``random`` are for an array of a size and type."""

    def __init__(self, size: int, kind: np.dtype[Any]) -> None:
        self.size = size
        self.is_whole = kind.kind != "f"

    def named(self, name: str) -> npt.NDArray[Any]:
        """Return the numbers of a word."""
        import numpy as np

        if name == "range":
            return np.arange(self.size)
        if name == "random":
            return self.random(0, self.size if self.is_whole else 1)
        raise ValueError

    def random(self, low: float, high: float) -> npt.NDArray[Any]:
        """Return random numbers from `low` up to, and without, `high`."""
        import numpy as np

        if not low < high or (self.is_whole and (low != int(low) or high != int(high))):
            raise ValueError
        generator = np.random.default_rng(0)
        if self.is_whole:
            return generator.integers(int(low), int(high), self.size)
        return low + (high - low) * generator.random(self.size)


def _computed(node: ast.expr, numbers: _Numbers | None) -> Any:
    """Return the value of an expression, in which `numbers` says what ``range`` and ``random`` are."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand, numbers)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _computed(node.left, numbers), _computed(node.right, numbers)
        if isinstance(node.op, ast.LShift) and not (
            isinstance(left, int) and isinstance(right, int) and 0 <= right < 64
        ):
            raise ValueError
        return _OPERATORS[type(node.op)](left, right)
    if numbers is not None and isinstance(node, ast.Name):
        return numbers.named(node.id)
    if numbers is not None and isinstance(node, ast.Call) and not node.keywords:
        ends = [_computed(one, None) for one in node.args]
        if isinstance(node.func, ast.Name) and node.func.id == "random" and 1 <= len(ends) <= 2:
            return numbers.random(*((0, *ends) if len(ends) == 1 else ends))
    raise ValueError


def _fill(what: str, held: str, dtype: str, declared: str) -> str | int | float:
    """Return what stands after ``=``: a number, or the text of an expression that was tried."""
    import numpy as np

    kind = np.dtype(dtype)
    try:
        value = 0 if held == "zeros" else _value_of(held)
    except _NOT_READ:
        pass
    else:
        if kind.kind in "iu" and value != int(value):
            raise InputError(
                f"{what}: = {held} is not a whole number, as the elements of {declared} are"
            )
        _check_bounds(what, kind, held, value, value)
        return value
    try:
        tree = _tree(held)
        with np.errstate(all="raise", under="ignore"):
            _computed(tree, _Numbers(2, kind))
    except _NOT_READ:
        raise InputError(
            f"{what}: = {held}: expected a number, range (0, 1, 2, ...), random, random(N) (below N; for "
            "whole numbers N is one), random(LEAST, END), what is computed of these such as 16 * range, or "
            "a .npy file"
        ) from None
    return _without_endings(held)


def _is_file(text: str) -> bool:
    """Return whether a text is the name of a file with an array of NumPy."""
    return text.strip().strip("'\"").endswith((".npy", ".npz"))


def _header(
    what: str, text: str, folder: str | os.PathLike[str]
) -> tuple[str, tuple[int, ...], str]:
    """Return the path of a .npy file, its shape, and the type of its numbers.

    Raises
    ------
    InputError
        If it cannot be read, or what it holds is not numbers of one of the known types.
    """
    import numpy as np

    file = os.path.join(folder, text.strip().strip("'\""))
    place = f"{what}: {printable(file)}"
    try:
        with open_input(Path(file)):  # refuses what is not a file, and notes that it is read
            pass
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(f"{place}: {error.strerror or error}") from None
    except (ValueError, EOFError, BadZipFile):
        raise InputError(
            f"{place}: is not an array of numbers that numpy.save has written"
        ) from None
    if not isinstance(found, np.ndarray):
        raise InputError(
            f"{place}: has several arrays; save one of them: numpy.save('x.npy', arrays['x'])"
        )
    if found.dtype.name not in _NUMPY:
        raise InputError(
            f"{place}: its elements are {found.dtype.name}; those of a kernel may be {', '.join(_NUMPY)}"
        )
    if not found.size:
        raise InputError(f"{place}: has no elements")
    return file, found.shape, found.dtype.name


def _of_file(
    what: str,
    header: tuple[str, tuple[int, ...], str],
    sizes: list[str],
    element: tuple[int, str],
    name: str,
) -> Array:
    """Return the array that a .npy file holds, if it has the elements, and as many, as are asked for."""
    numbers, dtype = element
    file, shape, found = header
    size = math.prod(shape)
    place = f"{what}: {printable(file)}"
    if not same_bits(dtype, found):
        raise InputError(
            f"{place}: its elements are {found}, and the array's {dtype}; save them so: "
            f"numpy.save('{Path(file).name}', x.astype('{dtype}'))"
        )
    if sizes != [""]:
        asked = [whole(f"{what}: number of elements", one, 1) for one in sizes]
        # One number is that of all elements; several are the shape, in which a vector may be the last.
        shapes = [[*asked, numbers], [*asked[:-1], asked[-1] * numbers]]
        shapes += [asked] * (numbers == 1)
        fits = size == numbers * math.prod(asked)
        if not fits or (len(asked) > 1 and list(shape) not in shapes):
            raise InputError(
                f"{place}: its shape is {_shape(shape)}, and {_shape(asked)} elements of {numbers} "
                f"number{'s' * (numbers > 1)} are asked for; [] takes what the file has"
            )
    if size % numbers:
        raise InputError(
            f"{place}: its shape is {_shape(shape)}: these are no whole elements of {numbers} numbers"
        )
    return Array(dtype, size, file=file, name=name)


def _shape(sizes: Sequence[int]) -> str:
    return " x ".join(f"{size}" for size in sizes) or "that of one number"
