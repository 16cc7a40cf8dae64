"""``--launch``: a launch as CUDA writes it, with arrays to allocate in place of pointers."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack.errors import InputError, shown, unknown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from warpstack.traces.trace import KernelTrace

__all__ = ["Array", "Launch", "read_launch", "run_launch"]

_EXAMPLE = "'add<<<4096, 256>>>(float[1048576], float[1048576], 1048576)'"
#: The types of an array's elements, as CUDA and as NumPy call them, with how many numbers one has.
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
    ast.LShift: operator.lshift,
}
_MOST = 2**63


@dataclass(frozen=True)
class Array:
    """An array to allocate: the type of its numbers, how many, and what is in them."""

    dtype: str
    size: int
    #: A number, ``range`` (0, 1, 2, ...) or ``random``.
    fill: str | int | float = 0


@dataclass(frozen=True)
class Launch:
    """A kernel's name, its launch configuration, and its arguments in order."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_memory_bytes: int
    arguments: tuple[Array | int | float, ...]


def read_launch(text: str) -> Launch:
    """Read a launch such as ``name<<<(64, 64), 256>>>(float[1 << 20], int[1024] = range, 1024)``.

    Grid and block have one to three numbers: ``64``, ``(64, 64)``, ``dim3(64, 64)`` or ``64x64``. An
    array is the type of its elements with their number in brackets; it holds zeros, or what stands after
    ``=``: a number, ``range`` or ``random`` (below 1, or below the number of elements for whole
    numbers).

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
    kernel, configuration, arguments = found.groups()
    where = f"--launch {kernel}"
    parts = _split(configuration)
    if not 2 <= len(parts) <= 3:
        raise InputError(
            f"{where}: <<<{configuration}>>> has {len(parts)} parts; expected the grid, the block and "
            "perhaps the bytes of shared memory, such as <<<(64, 64), 256>>>"
        )
    shared = _whole(f"{where}: shared memory", parts[2], 0) if len(parts) == 3 else 0
    return Launch(
        kernel,
        _sizes(f"{where}: grid", parts[0]),
        _sizes(f"{where}: block", parts[1]),
        shared,
        tuple(
            _argument(f"{where}: argument {number}", part)
            for number, part in enumerate(_split(arguments), 1)
        ),
    )


def run_launch(
    source: str, launch: Launch, options: list[str], device_memory_mib: float | None = None
) -> KernelTrace:
    """Compile a source, make the arrays of a launch, and return the trace of it.

    The device is a new one.

    Raises
    ------
    InputError
        If an array is too large, the source does not compile, has no such kernel, or the launch fails.
    """
    device = ws.cuda.device.of_mib(device_memory_mib)
    _check_sizes(launch, device._core.capacity)
    module = ws.cuda.compile(source, options=options, device=device)
    kernel = module.kernel(launch.kernel)
    values = [
        device.array(_values(argument)) if isinstance(argument, Array) else argument
        for argument in launch.arguments
    ]
    trace = kernel.launch(
        launch.grid,
        launch.block,
        *values,
        shared_memory_bytes=launch.shared_memory_bytes,
        progress=True,
    )
    assert trace is not None
    return trace


def _check_sizes(launch: Launch, capacity: int) -> None:
    """Raise `InputError` for arrays that the device or this machine has no room for."""
    import numpy as np

    from warpstack._util.trace_budget import check_memory, size_text

    total = 0
    for number, array in enumerate(launch.arguments, 1):
        if not isinstance(array, Array):
            continue
        own = array.size * np.dtype(array.dtype).itemsize
        total += own
        what = f"--launch {launch.kernel}: argument {number}, an array of {array.size:,} {array.dtype},"
        together = "" if total == own else f", {size_text(total)} with those before it"
        if total > capacity:
            raise InputError(
                f"{what} takes {size_text(own)}{together}; the simulated device has "
                f"{size_text(capacity)}: make it smaller, or give --device-memory MIB"
            )
        # Each byte takes memory for the array, for its copy on the device and for whether it is written.
        made = max(own, 8 * array.size if array.fill in ("range", "random") else 0)
        check_memory(what[:-1], made + 2 * total, "make it smaller")


def _values(array: Array) -> npt.NDArray[Any]:
    """Return what an array holds at first. Random numbers are the same in each call."""
    import numpy as np

    kind: np.dtype[Any] = np.dtype(array.dtype)
    if array.fill == "range":
        return np.arange(array.size).astype(kind)
    if array.fill == "random":
        generator = np.random.default_rng(0)
        if kind.kind == "f":
            return generator.random(array.size).astype(kind)
        return generator.integers(0, array.size, array.size).astype(kind)
    return np.full(array.size, array.fill, kind)


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
    return tuple(_whole(what, part, 1) for part in parts)


def _argument(what: str, text: str) -> Array | int | float:
    found = re.fullmatch(r"(?:const\s+)?([A-Za-z_][\w ]*?)\s*\[(.*?)\]\s*(?:=\s*(.*))?", text)
    if found is None:
        if re.fullmatch(r"(?:const\s+)?[A-Za-z_][\w ]*?\s*\*.*", text):
            raise InputError(
                f"{what}: {shown(text)} is a pointer; give the array that it points to, such as float[1024]"
            )
        return _number(what, text)
    name, size, fill = found.groups()
    per_element, dtype = _element(what, " ".join(name.split()))
    count = per_element * _whole(f"{what}: number of elements", size, 1)
    if fill is None or fill in ("range", "random"):
        return Array(dtype, count, fill or 0)
    value = _number(f"{what}: = {fill}", fill)
    if "int" in dtype and value != int(value):
        raise InputError(f"{what}: = {fill} is not a whole number, as the elements of {name} are")
    return Array(dtype, count, value)


def _element(what: str, name: str) -> tuple[int, str]:
    """Return the numbers of an element, and what NumPy calls them."""
    if name in _TYPES or name in _NUMPY:
        return 1, _TYPES.get(name, name)
    vector = _VECTOR.fullmatch(name)
    if vector is not None:
        return int(vector[2]), _TYPES["unsigned" if vector[1] == "uint" else vector[1]]
    raise unknown("type of elements", name, [*_TYPES, *_NUMPY], where=what)


def _whole(what: str, text: str, least: int) -> int:
    value = _number(what, text)
    if value != int(value) or value < least:
        raise InputError(f"{what} = {shown(text)}: expected a whole number of at least {least}")
    return int(value)


def _number(what: str, text: str) -> int | float:
    """Return the value of a number or of a sum, difference, product or shift of numbers."""
    plain = re.sub(r"(?<=[\d.])(?:[fF]|[uU]?[lL]{0,2})\b", "", text).strip()
    try:
        if len(plain) > 200:
            raise ValueError
        value = _computed(ast.parse(plain, mode="eval").body)
        if not abs(value) < _MOST:
            raise ValueError
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        raise InputError(
            f"{what}: {shown(text)} is neither a number such as 1024 or 1 << 20 nor an array such as "
            "float[1024]"
        ) from None
    return value


def _computed(node: ast.expr) -> int | float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _computed(node.left), _computed(node.right)
        if isinstance(node.op, ast.LShift) and not 0 <= right < 64:
            raise ValueError
        value: int | float = _OPERATORS[type(node.op)](left, right)
        return value
    raise ValueError
