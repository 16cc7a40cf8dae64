"""The annotations of the public functions, held to when they are called."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import math
import numbers
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from warpstack._util.lazy import is_dataframe
from warpstack.errors import InputError, not_a, shown

__all__ = ["checked", "checked_fields", "strictly_checked"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: A check: returns the value, perhaps as a plainer type, or raises `_Mismatch`.
_Check = Callable[[Any], Any]

_ARRAY_LIKE = typing.get_args(npt.ArrayLike)
_DTYPE_LIKE = typing.get_args(npt.DTypeLike)
_PATH = "a path"
_LEAST, _MOST = -(2**63), 2**64 - 1
_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "bytes": "bytes",
    "NoneType": "None",
    "DataFrame": "a DataFrame",
    "PathLike": _PATH,
    "ndarray": "an array",
    "dict": "a dictionary",
    "type": "a type",
}


_of_classes: dict[type[Any], dict[str, _Type]] = {}


class _Mismatch(Exception):
    """A value that does not have the type; perhaps with a message about a part of it."""


class _Type:
    """The type that an annotation demands of a value."""

    def __init__(self, text: str, check: _Check, *, takes_items: bool = False) -> None:
        self.text = text
        self.check = check
        #: Whether an iterator over items will do.
        self.takes_items = takes_items


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function raise `InputError` where arguments without their annotated types break it.

    Errors that the function raises itself pass unchanged, and so do arguments that it can use anyway.

    The types are read at the first call, so that those that only type checkers import cost nothing.
    Annotations that cannot be resolved then ask nothing. Numbers of NumPy arrive as Python's,
    iterators over items as tuples. Calls with wrong names or counts of arguments raise Python's own
    `TypeError`. Of ``**name: Unpack[T]`` the names are those of the typed dictionary, and another one is a
    `TypeError` with the nearest that there is.
    """
    return _checked(function, strict=False)


def strictly_checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """As `checked`, but the function is not called with arguments of other types at all.

    For constructors of what holds resources, which a half-made object would lose.
    """
    return _checked(function, strict=True)


def _checked(function: Callable[_P, _R], *, strict: bool) -> Callable[_P, _R]:
    signature = inspect.signature(function)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    unpacked = next((n for n, p in signature.parameters.items() if _is_unpacked(p)), None)
    named_ones = [p for name, p in signature.parameters.items() if name != unpacked]
    is_plain = all(p.kind not in variadic for p in named_ones)
    names = tuple(p.name for p in named_ones)
    known: dict[str, _Type] = {}

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if known and is_plain:
            # Nearly all calls are like this: binding takes ten times as long as the checks. Where names or
            # counts of arguments are wrong, the function itself says so.
            try:
                passed = [_plainly(known[name], one) for name, one in zip(names, args)]  # noqa: B905
                named = {name: _plainly(known[name], one) for name, one in kwargs.items()}
            except (_Mismatch, KeyError, InputError):
                pass  # the long way finds which one
            else:
                if len(passed) == len(args):
                    return function(*passed, **named)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own message names the function
        if not known:
            known.update(_types_of(signature, function))
        wrong: InputError | None = None
        for name, value in list(bound.arguments.items()):
            if name == unpacked:
                for key, one in value.items():
                    if key not in known:
                        raise _unexpected(function, key, list(known))
                    try:
                        value[key] = _value(key, known[key], one)
                    except InputError as error:
                        wrong = wrong or error
                continue
            wanted = known[name]
            kind = signature.parameters[name].kind
            try:
                if kind is inspect.Parameter.VAR_POSITIONAL:
                    bound.arguments[name] = tuple(_value(name, wanted, one) for one in value)
                elif kind is inspect.Parameter.VAR_KEYWORD:
                    bound.arguments[name] = {k: _value(k, wanted, one) for k, one in value.items()}
                else:
                    bound.arguments[name] = _value(name, wanted, value)
            except InputError as error:
                wrong = wrong or error
        if wrong is None:
            return function(*bound.args, **bound.kwargs)
        if strict:
            raise wrong
        # The function's own words about a wrong value are better than those about its type, and it
        # may accept more than its annotations say.
        try:
            return function(*bound.args, **bound.kwargs)
        except (InputError, OSError, Warning):
            raise
        except Exception:
            raise wrong from None

    return call


def checked_fields(instance: object) -> None:
    """Hold the fields of a dataclass to their annotations; for its ``__post_init__``.

    NaN is a number there: results have it where a rate has no value.
    """
    own = type(instance)
    known = _fields_of(own)
    for name, wanted in known.items():
        value = getattr(instance, name)
        if isinstance(value, float) and math.isnan(value) and wanted is _PLAIN[float]:
            continue
        plain = _value(f"{own.__name__}: {name}", wanted, value)
        if plain is not value:
            object.__setattr__(instance, name, plain)


def _fields_of(own: type[Any]) -> dict[str, _Type]:
    if own not in _of_classes:
        space = _namespace(inspect.getmodule(own))
        _of_classes[own] = {f.name: _type_of(f.type, space) for f in dataclasses.fields(own)}
    return _of_classes[own]


def _types_of(signature: inspect.Signature, function: Callable[..., Any]) -> dict[str, _Type]:
    space = _namespace(inspect.getmodule(function))
    known: dict[str, _Type] = {}
    for name, p in signature.parameters.items():
        if not _is_unpacked(p):
            known[name] = _type_of(p.annotation, space)
            continue
        # Type checkers alone import `Unpack`, which Python 3.10 does not have.
        of = eval(p.annotation.removeprefix("Unpack[").removesuffix("]"), dict(space))
        own = vars(sys.modules[of.__module__])
        known |= {key: _type_of(one, own) for key, one in of.__annotations__.items()}
    return known


def _is_unpacked(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, str) and parameter.annotation.startswith("Unpack[")


def _unexpected(function: Callable[..., Any], name: str, known: list[str]) -> TypeError:
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return TypeError(
        f"{function.__qualname__}() got an unexpected keyword argument {name!r}; {remedy}"
    )


def _namespace(module: types.ModuleType | None) -> dict[str, Any]:
    return vars(module) if module is not None else {}


def _plainly(wanted: _Type, value: Any) -> Any:
    """Return a value of the type, or raise `_Mismatch`, which iterators also get here."""
    if wanted.takes_items and isinstance(value, Iterator):
        raise _Mismatch
    return wanted.check(value)


def _value(name: str, wanted: _Type, value: Any) -> Any:
    if wanted.takes_items and isinstance(value, Iterator):
        value = tuple(value)
    try:
        return wanted.check(value)
    except _Mismatch as problem:
        if problem.args:
            raise InputError(f"{name}: {problem}") from None
        expected = wanted.text
        if name == "predictions" and expected == _NAMES["DataFrame"]:
            expected = "the DataFrame of warpstack.predict"
        raise not_a(name, expected, value, _remedy(expected, value)) from None


def _remedy(expected: str, value: object) -> str:
    kind = type(value).__name__
    if "KernelTrace" in expected and kind == "App":
        return "give one of app.kernels"
    if kind == "KernelTrace" and "sequence of KernelTrace" in expected:
        return "write App([kernel])"
    if "App" in expected and isinstance(value, (list, tuple)):
        return "make one of the kernels: warpstack.App(kernels)"
    if "KernelTrace" in expected and isinstance(value, (str, os.PathLike)):
        return "read the trace first: warpstack.load(path)"
    return ""


# --- what an annotation asks ----------------------------------------------------------------------


def _anything(value: Any) -> Any:
    return value


_ANYTHING = _Type("anything", _anything)


def _type_of(annotation: Any, space: Mapping[str, Any]) -> _Type:
    """Return what an annotation asks; anything where it cannot be resolved."""
    if annotation is inspect.Parameter.empty:
        return _ANYTHING
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, _with_late_names(annotation, space))
        except Exception:
            return _ANYTHING
    if isinstance(annotation, str):
        return _type_of(annotation, space)
    if annotation is None or annotation is type(None):
        return _Type("None", _none)
    plain = _PLAIN.get(annotation) if isinstance(annotation, type) else None
    if plain is not None:
        return plain
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = list(arguments)
        if all(one in parts for one in _ARRAY_LIKE):  # a union itself, which Python flattens
            parts = [one for one in parts if one not in _ARRAY_LIKE]
            return _union([_type_of(one, space) for one in parts] + [_Type("numbers", _numbers)])
        if all(one in parts for one in _DTYPE_LIKE):
            return _Type("a data type of NumPy", _data_type)
        found = [_type_of(one, space) for one in parts]
        if any(one.text == _PATH for one in found):  # names of files have any characters
            found = [_instance(str) if one is _PLAIN[str] else one for one in found]
        return _union(found)
    if origin is typing.Literal:  # the function itself says in better words which of them
        return _PLAIN[str]
    if origin is collections.abc.Callable or annotation is collections.abc.Callable:
        return _Type("a function", _callable)
    if origin is tuple:
        return _tuple(arguments, space)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return _mapping([_type_of(one, space) for one in arguments])
    if isinstance(origin, type) and issubclass(origin, os.PathLike):
        return _instance(os.PathLike)
    if isinstance(origin, type) and origin in _ITEMS:
        return _items(_type_of(arguments[0], space), _ITEMS[origin])
    if isinstance(origin, type):
        return _instance(origin)
    return _instance(annotation) if isinstance(annotation, type) else _ANYTHING


def _with_late_names(annotation: str, space: Mapping[str, Any]) -> dict[str, Any]:
    """Add what modules import for type checkers alone, for it takes long to load."""
    names = dict(space)
    if "Axes" in annotation and "Axes" not in names:
        import matplotlib.axes

        names["Axes"] = matplotlib.axes.Axes
    return names


def _none(value: Any) -> Any:
    if value is not None:
        raise _Mismatch
    return None


def _callable(value: Any) -> Any:
    if not callable(value):
        raise _Mismatch
    return value


def _text(value: Any) -> Any:
    if type(value) is str and value.isascii():  # nearly always, and the quick way
        return value
    if not isinstance(value, str):
        raise _Mismatch
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Mismatch(f"{shown(value)} has characters that are not text") from None
    return value


def _data_type(value: Any) -> Any:
    try:
        np.dtype(value)
    except Exception:  # NumPy raises what its parts raise
        raise _Mismatch from None
    return value


def _truth(value: Any) -> Any:
    flag = isinstance(value, (bool, np.bool_, int, np.integer)) and value in (0, 1)
    if not flag:
        raise _Mismatch
    return bool(value)


def _whole(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        raise _Mismatch
    try:
        number = operator.index(value)
    except TypeError:
        raise _Mismatch from None
    if not _LEAST <= number <= _MOST:
        raise _Mismatch(f"{shown(number)} is too {'small' if number < 0 else 'large'}")
    return number


def _real(value: Any) -> Any:
    if type(value) is float and value == value:  # nearly always, and the quick way
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise _Mismatch
    try:
        number = float(value)
    except OverflowError:
        raise _Mismatch(f"{shown(value)} is too large") from None
    if math.isnan(number):
        raise _Mismatch("NaN is not a number")
    return value.item() if isinstance(value, np.generic) else value


def _numbers(value: Any) -> Any:
    """Check what NumPy takes for an array of numbers; the value stays as it is."""
    if isinstance(value, (str, bytes, Mapping)) or is_dataframe(value) or value is None:
        raise _Mismatch
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise _Mismatch from None
    if array.size and array.dtype.kind not in "biuf":
        raise _Mismatch
    return value


_PLAIN: dict[type, _Type] = {
    str: _Type("text", _text),
    bool: _Type("True or False", _truth),
    int: _Type("a whole number", _whole),
    float: _Type("a number", _real),
    object: _ANYTHING,
}


def _instance(kind: type) -> _Type:
    def check(value: Any) -> Any:
        try:
            good = isinstance(value, kind)
        except TypeError:  # for example of a protocol
            return value
        if not good:
            raise _Mismatch
        return value

    name = kind.__name__.lstrip("_")
    return _Type(_NAMES.get(kind.__name__) or ("an " if name[0] in "AEIO" else "a ") + name, check)


def _union(parts: list[_Type]) -> _Type:
    if len(parts) == 1:
        return parts[0]
    if any(part is _ANYTHING for part in parts):
        return _ANYTHING

    def check(value: Any) -> Any:
        said = None
        for part in parts:
            try:
                return part.check(value)
            except _Mismatch as problem:
                if problem.args:
                    said = said or problem
        if said is not None:
            raise said
        raise _Mismatch

    # The message need not mention None, which leaves an argument out, where other types are expected.
    texts = list(dict.fromkeys(part.text for part in parts if part.text != "None"))
    text = " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
    return _Type(text, check, takes_items=any(part.takes_items for part in parts))


def _item(wanted: _Type, value: Any, where: Callable[[], str]) -> Any:
    try:
        return wanted.check(value)
    except _Mismatch as problem:
        if problem.args:
            raise
        error = not_a(where(), wanted.text, value, _remedy(wanted.text, value))
        raise _Mismatch(str(error)) from None


def _mapping(parts: list[_Type]) -> _Type:
    def check(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Mismatch
        if len(parts) == 2:
            for key, one in value.items():
                _item(parts[0], key, lambda: "a key")
                _item(parts[1], one, functools.partial(shown, key))
        return value

    return _Type("a dictionary", check)


_ITEMS: dict[type, type] = {
    collections.abc.Iterable: collections.abc.Iterable,
    collections.abc.Collection: collections.abc.Iterable,
    collections.abc.Sequence: collections.abc.Iterable,
    list: list,
    set: set,
    frozenset: frozenset,
}


def _items(of: _Type, kind: type) -> _Type:
    def check(value: Any) -> Any:
        if isinstance(value, (str, bytes)) or is_dataframe(value) or not isinstance(value, kind):
            raise _Mismatch
        if isinstance(value, np.ndarray) and value.ndim == 0:
            raise _Mismatch
        # An iterator within another value can be read only once, which is for the function to do.
        if of is not _ANYTHING and not isinstance(value, Iterator):
            # The numbers of a range are alike, and there may be very many.
            items = value[:1] if isinstance(value, range) else value
            for one in typing.cast("collections.abc.Iterable[Any]", items):
                _item(of, one, lambda: "an item")
        return value

    several = of.text.removeprefix("an ").removeprefix("a ")
    plural = several if several.endswith("s") or of is _ANYTHING else f"{several}s"
    plural = {"texts": "texts", "anything": "values", "whole numbers": "whole numbers"}.get(
        plural, plural
    )
    return _Type(f"a sequence of {plural}", check, takes_items=True)


def _tuple(arguments: tuple[Any, ...], space: Mapping[str, Any]) -> _Type:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _items(_type_of(arguments[0], space), collections.abc.Iterable)
    parts = [_type_of(one, space) for one in arguments]

    def check(value: Any) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) != len(parts):
            raise _Mismatch
        return tuple(_item(p, one, lambda: "an item") for p, one in zip(parts, value, strict=True))

    texts = list(dict.fromkeys(part.text for part in parts))
    return _Type(f"{len(parts)} items ({', '.join(texts)})", check)
