"""Replacement policies written in Python: values of `l1_replacement` and `l2_replacement` of a GPU."""

from __future__ import annotations

import hashlib
import inspect
import re
import threading
import types
import weakref
from typing import Any

from warpstack import _core
from warpstack.errors import InputError, not_one_of, shown

__all__ = ["OwnPolicy", "policy_value", "register_policy"]

#: The methods of a policy, with their arguments.
_METHODS = {"hit": ("set", "way"), "fill": ("set", "way", "address"), "victim": ("set",)}
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
#: Values of a class that are part of what it does.
_CONSTANTS = (bool, int, float, str, bytes, tuple, frozenset, type(None))


class OwnPolicy(str):
    """A value of a replacement field: the name of a class and the digest of its source, as text.

    Two policies are equal if their names and sources are, so that results of one are never taken for
    those of another. It pickles where its class does.
    """

    __slots__ = ("policy",)
    policy: type[Any]

    def __reduce__(self) -> tuple[Any, ...]:
        name, _, digest = self.partition("@")
        return _value, (name, digest, self.policy)


#: By name, the policy that was registered last, and by text all of them.
_known: dict[str, OwnPolicy] = {}
#: Of classes in their order of inheritance, what their source says.
_sources: weakref.WeakKeyDictionary[type[Any], list[str]] = weakref.WeakKeyDictionary()
#: Held while sources are read, too: the parser that finds a class in its file is not safe in threads.
_lock = threading.Lock()


def register_policy(name: str, policy: type[Any]) -> str:
    """Give a replacement policy that is a class in Python a name, which GPUs then take.

    Parameters
    ----------
    name
        What to call it in ``gpu.replace(l1_replacement=name)``, in axes of a sweep and with ``--set``.
        A name that is there already stands for the new class from now on.
    policy
        A class with ``__init__(sets, ways)``, ``hit(set, way)``: a line that is there was used,
        ``fill(set, way, address)``: the line of that address took a way, and ``victim(set)``, which
        returns the way whose line makes room in a full set. Empty ways are filled in the order of
        their numbers without asking. Sets are numbered over all slices. One object has the state of
        a cache; it must not depend on anything else that changes.

    Returns
    -------
    str
        The value of the field: the name and a digest of the source of the class, so that cached
        results are not those of another version.

    Raises
    ------
    InputError
        If the name is one of the core's or not a word, or the class lacks a method or has one that
        takes other arguments.

    Notes
    -----
    A call of Python per access makes the caches 4 to 8 times as slow, and they run on one thread.
    `warpstack.simulate` does not take such a policy. Lines that are read with evict-first go before
    those that the policy names, as with the policies of the core.

    Examples
    --------
    >>> import warpstack as ws
    >>> class Random:
    ...     def __init__(self, sets, ways):
    ...         self.ways, self.state = ways, 1
    ...     def hit(self, set, way): pass
    ...     def fill(self, set, way, address): pass
    ...     def victim(self, set):
    ...         self.state = self.state * 1103515245 + 12345 & 0x7FFFFFFF
    ...         return self.state >> 16 & self.ways - 1
    >>> _ = ws.memory.register_policy("random", Random)
    >>> gpu = ws.gpu("pascal-mdm").replace(l2_replacement="random")
    >>> kernel = ws.patterns.strided(gs=8, iterations=2, blocks=4)
    >>> ws.simulate_caches(kernel, gpu).hit_rates()["l1_read"]
    0.5
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"replacement policy: the name {shown(name)} is not one word of letters and digits"
        )
    if name in _core.ENUM_NAMES["replacement policy"]:
        raise InputError(
            f"replacement policy {name}: warpstack has one of that name; choose another"
        )
    _check(name, policy)
    return _value(name, _digest(policy), policy)


def policy_value(where: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return the value of a replacement field, of which the core's are `choices`.

    A class is registered under its own name.

    Raises
    ------
    InputError
        If it is neither a name that is known nor such a class.
    """
    if isinstance(value, type):
        return register_policy(value.__name__, value)
    if isinstance(value, str):
        if value in choices:
            return str(value)
        if (found := _known.get(value)) is not None:
            return found
    elif all(hasattr(value, method) for method in _METHODS):
        raise InputError(
            f"{where} is an object of {type(value).__name__}; give the class, of which each cache makes one"
        )
    raise not_one_of(where, value, (*choices, *sorted(n for n in _known if "@" not in n)))


def _value(name: str, digest: str, policy: type[Any]) -> OwnPolicy:
    """Return the value of a policy, which the core knows afterwards."""
    text = f"{name}@{digest}"
    known = _known.get(text)
    if known is not None and known.policy is policy:
        _known[name] = known
        return known
    value = OwnPolicy(text)
    value.policy = policy
    shown_as = name if name == policy.__name__ else f"{name} (class {policy.__name__})"
    _core.register_policy(str(value), shown_as, policy)
    with _lock:
        _known[name] = _known[str(value)] = value
    return value


def _check(name: str, policy: type[Any]) -> None:
    where = f"replacement policy {name}"
    if not isinstance(policy, type):
        raise InputError(f"{where}: {shown(policy)} is not a class")
    where += f": class {policy.__name__}"
    try:
        inspect.signature(policy).bind(1, 1)
    except TypeError:
        raise InputError(
            f"{where}: it is not made of (sets, ways); write __init__(self, sets, ways)"
        ) from None
    except ValueError:
        pass  # a class of C, which says nothing of its arguments
    for method, arguments in _METHODS.items():
        form = f"def {method}(self, {', '.join(arguments)})"
        call = inspect.getattr_static(policy, method, None)
        if call is None or not callable(getattr(policy, method)):
            raise InputError(f"{where} has no method {method}; write {form}")
        if isinstance(call, types.FunctionType):
            if inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call):
                raise InputError(f"{where}: {method} is not a plain function; write {form}")
            signature = inspect.signature(call)
            try:
                signature.bind(None, *arguments)
            except TypeError:
                raise InputError(
                    f"{where}: {method}{signature} takes other arguments; write {form}"
                ) from None


def _digest(policy: type[Any]) -> str:
    """Return a digest of the class and what it inherits, as written and as it is: 8 hexadecimal digits."""
    with _lock:
        if (parts := _sources.get(policy)) is None:
            parts = _sources[policy] = [
                text for one in policy.__mro__[:-1] for text in _source(one)
            ]
    parts = list(parts)
    for one in policy.__mro__[:-1]:
        # Methods and values may have been set since, or the class be made by a call.
        parts += [_code(function.__code__) for function in _functions(one)]
        for name, value in sorted(vars(one).items()):
            if isinstance(value, _CONSTANTS) and name not in (
                "__module__",
                "__doc__",
                "__firstlineno__",
            ):
                parts.append(f"{name} = {value!r}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _source(one: type[Any]) -> list[str]:
    try:
        return [one.__qualname__, inspect.getsource(one)]
    except (OSError, TypeError):  # typed into an interpreter, or made by a call
        return [one.__qualname__]


def _functions(one: type[Any]) -> list[types.FunctionType]:
    found = [getattr(value, "__func__", value) for _, value in sorted(vars(one).items())]
    return [value for value in found if isinstance(value, types.FunctionType)]


def _code(code: types.CodeType) -> str:
    """Return what a function does as text, without places in memory and in files."""
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return " ".join(
        [code.co_name, code.co_code.hex(), *code.co_names, *code.co_varnames, *constants]
    )
