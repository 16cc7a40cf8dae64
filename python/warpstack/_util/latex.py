"""Tables as LaTeX: rules of booktabs, numbers aligned by siunitx, texts escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warpstack._util.checked import checked
from warpstack._util.headings import heading
from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, shown

if TYPE_CHECKING:
    import pandas

__all__ = ["escaped", "to_latex"]

#: What stands for characters that TeX reads as commands. Those of ligatures are in braces, and those that
#: a ``\\`` before them would take for its argument.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    **{character: "{" + character + "}" for character in "[]*-`'"},
}
#: Texts longer than this are set in several lines.
_LONG = 40
#: Ratio of the largest to the smallest number from which on a column has exponents.
_WIDE_RANGE = 1e5
_DIGITS = 4
#: What siunitx reads.
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


@checked
def to_latex(
    table: pandas.DataFrame,
    *,
    caption: str | None = None,
    label: str | None = None,
    formats: Mapping[str, str] | None = None,
) -> str:
    r"""Return a table as LaTeX, for a document with the packages booktabs and siunitx.

    Parameters
    ----------
    table
        The table, of numbers and texts. An index that has a name is its first column.
    caption, label
        Caption, which is text and not LaTeX, and the name for ``\ref``. With either of them the result is a
        floating ``table``, otherwise a ``tabular``.
    formats
        Formats of columns of numbers by name, such as ``{:.2f}``. Other numbers have four digits, those of
        a column the same number behind the point; columns over many orders of magnitude have exponents.

    Returns
    -------
    str
        Lines of LaTeX. Columns of numbers are siunitx's ``S``; missing values are dashes.

    Raises
    ------
    InputError
        If the table has no column, or the label has characters that ``\ref`` does not take.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"model": ["mdm"], "time_us": [1.5]})
    >>> print(to_latex(table))
    % \usepackage{booktabs,siunitx}
    \begin{tabular}{lS[table-format=1.3]}
    \toprule
    {model} & {time (us)} \\
    \midrule
    mdm & 1.500 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    if label is not None and not re.fullmatch(r"[A-Za-z0-9:._+/-]+", label):
        raise InputError(
            f"label = {shown(label)} has characters that \\ref does not take; use letters, digits and :._+/-"
        )
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    if not len(table.columns):
        raise InputError("the table has no column; give one with results")
    columns = [
        _column(table.iloc[:, i], (formats or {}).get(str(name)))
        for i, name in enumerate(table.columns)
    ]
    lines = [
        f"\\begin{{tabular}}{{{''.join(kind for kind, _ in columns)}}}",
        r"\toprule",
        " & ".join(f"{{{_head(name)}}}" for name in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(cells) + r" \\" for cells in zip(*(c for _, c in columns), strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if caption is not None or label is not None:
        about = [rf"\caption{{{escaped(caption)}}}"] if caption is not None else []
        about += [rf"\label{{{label}}}"] if label is not None else []
        lines = [r"\begin{table}", r"\centering", *about, *lines, r"\end{table}"]
    return "\n".join([r"% \usepackage{booktabs,siunitx}", *lines]) + "\n"


def escaped(text: str) -> str:
    """Return a text for LaTeX: in one line, no character of which is a command."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return "".join(_ESCAPES.get(c, c) for c in " ".join(plain.split()))


def _head(name: Any) -> str:
    """Return the head of a column, with its unit in parentheses."""
    text = " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return escaped(heading(text))


def _column(values: pandas.Series[Any], form: str | None) -> tuple[str, list[str]]:
    """Return the kind of a column for ``tabular``, and its cells."""
    items = list(values)
    if not _are_numbers(items):
        cells = [escaped(_text(item)) for item in items]
        longest = max((len(_text(item)) for item in items), default=0)
        return ("p{0.3\\linewidth}" if longest > _LONG else "l"), cells
    finite = [item for item in items if not _is_missing(item) and math.isfinite(item)]
    found = _number_texts(finite, form)
    if not all(_NUMBER.fullmatch(text) for text in found):  # percentages, say
        return "l", [
            escaped("--" if _is_missing(item) else str(form).format(item)) for item in items
        ]
    texts = dict(enumerate(found))
    cells, number = [], 0
    for item in items:
        if _is_missing(item):
            cells.append("{--}")
        elif not math.isfinite(item):
            cells.append(r"{$\infty$}" if item > 0 else r"{$-\infty$}")
        else:
            cells.append(texts[number])
            number += 1
    return f"S[table-format={_layout(list(texts.values()))}]", cells


def _is_missing(item: Any) -> bool:
    return (
        item is None
        or item is pd.NA
        or item is pd.NaT
        or (isinstance(item, float) and item != item)
    )


def _are_numbers(items: Sequence[Any]) -> bool:
    kinds = (int, float, np.integer, np.floating)
    known = [item for item in items if not _is_missing(item)]
    return bool(known) and all(
        isinstance(item, kinds) and not isinstance(item, (bool, np.bool_)) for item in known
    )


def _text(item: Any) -> str:
    if isinstance(item, (bool, np.bool_)):
        return "yes" if item else "no"
    if isinstance(item, tuple):
        return "x".join(map(str, item))
    return "--" if _is_missing(item) else str(item)


def _number_texts(numbers: Sequence[Any], form: str | None) -> list[str]:
    """Return finite numbers as siunitx reads them, all in the same form."""
    if form is not None:
        return [form.format(number).replace(",", "").replace("+", "") for number in numbers]
    if all(isinstance(number, (int, np.integer)) for number in numbers):
        return [str(int(number)) for number in numbers]
    sizes = [abs(float(number)) for number in numbers if number]
    if not sizes:
        return ["0" for _ in numbers]
    most, least = max(sizes), min(sizes)
    if most / least >= _WIDE_RANGE or most >= 1e9 or most < 1e-4:
        return [f"{float(number):.{_DIGITS - 1}e}" for number in numbers]
    places = min(max(_DIGITS - 1 - math.floor(math.log10(most)), 0), 8)
    # Two digits of the smallest number are worth more columns.
    places = max(places, min(1 - math.floor(math.log10(least)), 6))
    if all(float(number).is_integer() for number in numbers):
        places = 0
    return [f"{float(number):.{places}f}" for number in numbers]


def _layout(texts: Sequence[str]) -> str:
    """Return siunitx's ``table-format``: digits before and behind the point, and of the exponent."""
    signs, before, behind, exponent = "", 1, 0, ""
    for text in texts:
        mantissa, _, power = text.partition("e")
        whole, _, part = mantissa.partition(".")
        signs = "-" if whole.startswith("-") else signs
        before, behind = max(before, len(whole.lstrip("-"))), max(behind, len(part))
        if power:
            digits = max(len(str(abs(int(power)))), len(exponent.lstrip("e-")))
            minus = "-" if "-" in exponent or int(power) < 0 else ""
            exponent = f"e{minus}{'9' * digits}"
    if exponent:
        exponent = "e" + exponent[1:].replace("9" * exponent.count("9"), str(exponent.count("9")))
    return f"{signs}{before}" + (f".{behind}" if behind else "") + exponent
