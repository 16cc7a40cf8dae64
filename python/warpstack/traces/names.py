"""Names of kernels as tools spell them: mangled, demangled by one or another demangler, or short."""

from __future__ import annotations

import re

from warpstack import _core
from warpstack.traces.trace import mangled_name, short_name

__all__ = ["plain_name", "whole_name"]

#: What demanglers write before a number in template arguments, and behind it.
_CAST = re.compile(r"\((?:(?:un)?signed )?(?:bool|char|short|int|long|long long)\)(?=-?[0-9])")
_SUFFIX = re.compile(r"\b([0-9]+)(?:u|l|ul|ll|ull)\b", re.IGNORECASE)
#: Words that stand at other places, or not at all.
_WORDS = re.compile(r"\b(?:const|__restrict__|__restrict|restrict)\b|\s+")
_TRUTHS = {"true": "1", "false": "0"}


def plain_name(name: str) -> str:
    """Return a function's own name: without return type, namespaces, templates and arguments."""
    name = re.sub(r"\s*\[[0-9]+\]$", "", name.strip())  # nvprof's correlation number
    if name.startswith("_Z"):
        return short_name(name)
    name = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    kept, depth = "", 0
    for position, character in enumerate(name):
        if character == "<" and not kept.endswith("operator"):
            depth += 1
        elif character == ">" and depth:
            depth -= 1
        elif character == "(" and not depth and position:
            break
        elif not depth:
            kept += character
    words = kept.strip().split()
    return words[-1].rsplit("::", 1)[-1] if words else name


def whole_name(name: str) -> str:
    """Return a name with template arguments and parameters, in one spelling for all demanglers.

    Nsight Systems writes ``void f<(int)4>(const float *)`` where others write ``void f<4>(float const*)``:
    both are ``f<4>(float*)``. It is for comparisons, not for people.

    Parameters
    ----------
    name
        Mangled or demangled.

    Returns
    -------
    str
        Empty where the name tells neither: it is a function's own name.
    """
    text = _core.demangled(mangled_name(name.strip())).removeprefix("void ")
    if "<" not in text and "(" not in text:
        return ""
    text = text.replace("(anonymous namespace)", "<unnamed>")
    text = _SUFFIX.sub(r"\1", _CAST.sub("", text))
    text = re.sub(r"\b(?:true|false)\b", lambda word: _TRUTHS[word[0]], text)
    return _WORDS.sub("", text)
