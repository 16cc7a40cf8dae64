"""Shared by pictures of several models: the look of a model, names of models and axes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from warpstack.hardware.description import Gpu
from warpstack.plot.looks import look

#: Colours that stay apart for colour-blind readers (Okabe and Ito), light and dark in turn.
#: Yellow is not among them: a line of it is hardly seen on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#882255", "#CC79A7", "#56B4E9", "#D55E00", "#666666")
#: Colours of curves that are not models: the same hues, the darkest first.
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Hatches and markers for grey print, and for more sets than colours.
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++", "oo", "||", "**")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")


class Style(NamedTuple):
    """The look of a model in all pictures."""

    colour: str
    marker: str
    line: str
    hatch: str


#: Models of one paper have similar hues and differ in line, marker and hatch.
MODELS = {
    "simulation": Style("#000000", "o", "-", ""),
    "mdm": Style("#0072B2", "s", "-", "//"),
    "mdm_queue": Style("#56B4E9", "D", "--", ".."),
    "mdm_mshr": Style("#009E73", "P", "-.", "xx"),
    "mdm_cal2019": Style("#004a75", "X", ":", "++"),
    "gpumech": Style("#D55E00", "^", "-", "\\\\"),
    "gpumech_plus": Style("#E69F00", "v", "--", "--"),
    "mt_mshr": Style("#CC79A7", "<", "-.", "oo"),
    "mt": Style("#882255", ">", ":", "||"),
    "markov_chain": Style("#999999", "*", "-.", "O."),
    "closed_network": Style("#7B3294", "h", "-", "**"),
    "interval_simulation": Style("#A860C8", ".", "--", "OO"),
    "mwp_cwp": Style("#8C510A", "p", "--", "\\\\\\"),
    "naive_interval": Style("#666666", "d", ":", "///"),
    "crisp": Style("#2CA8A0", "H", ":", "x"),
    "ppt_gpu_mem": Style("#999933", "8", "--", "//.."),
}
MODELS["warpstack"] = MODELS[
    "closed_network"
]  # the model's former name, and our caches beside others
#: The names of models in the literature.
TITLES = {
    "mdm": "MDM",
    "mdm_queue": "MDM-Queue",
    "mdm_mshr": "MDM-MSHR",
    "mdm_cal2019": "MDM (CAL 2019)",
    "gpumech": "GPUMech",
    "gpumech_plus": "GPUMech+",
    "mt_mshr": "MT-MSHR",
    "mt": "MT",
    "markov_chain": "Markov chain",
    "closed_network": "closed network",
    "interval_simulation": "interval simulation",
    "mwp_cwp": "MWP-CWP",
    "naive_interval": "naive interval",
    "crisp": "CRISP",
    "ppt_gpu_mem": "PPT-GPU-Mem",
}
#: Words of names of fields that have capitals, and one that says nothing.
_WORDS = {
    **{word: word.upper() for word in ("l1", "l2", "dram", "cpi", "ipc")},
    **{"noc": "NoC", "sms": "SMs", "mshrs": "MSHRs", "num": ""},
}
_UNITS = {
    "cycles": "cycles",
    "time_s": "seconds",
    "ipc": "warp instructions per cycle",
    "cpi": "cycles per warp instruction of an SM",
    "instructions": "warp instructions",
    "speedup": "",
}
_NAMES = {"ipc": "IPC", "cpi": "CPI", "time_s": "time"}


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Return the style of each name: that of its model, or for other names one that is free."""
    names = list(dict.fromkeys(map(str, names)))
    found = {name: MODELS[name] for name in names if name in MODELS}
    taken = {style.colour for style in found.values()}
    free = [i for i, colour in enumerate(COLOURS) if colour not in taken] or list(
        range(len(COLOURS))
    )
    for number, name in enumerate(name for name in names if name not in MODELS):
        found[name] = Style(
            COLOURS[free[number % len(free)]],
            MARKERS[number % len(MARKERS)],
            LINES[number // len(free) % len(LINES)],
            HATCHES[number % len(HATCHES)],
        )
    return {name: found[name] for name in names}


def axis_label(field: str) -> str:
    """Return the name of a field of `Gpu` with its unit."""
    meaning = Gpu.fields()[field]
    unit = meaning.rpartition(" [")[2].rstrip("]") if meaning.endswith("]") else ""
    name = _in_words(field, unit) if look().is_compact else field
    return f"{name} ({unit})" if unit else name


def _in_words(field: str, unit: str) -> str:
    """Return the name of a field in words, without the unit at its end."""
    words = field.split("_")
    if unit and len(words) > 1 and words[-1] == re.sub(r"[^a-z0-9]", "", unit.lower()):
        words = words[:-1]
    return " ".join(text for word in words if (text := _WORDS.get(word, word)))


def named(label: object) -> str:
    """Return a label that begins with a model; compact pictures have the name in the literature."""
    text = str(label)
    if not look().is_compact:
        return text
    name = re.match(r"\w*", text)[0]  # type: ignore[index]  # it matches nothing at least
    return TITLES.get(name, name) + text[len(name) :]


def metric_label(metric: str) -> str:
    """Return the name of a metric with its unit; an expression as it is."""
    if metric.startswith("cpi_"):
        return f"{metric} ({_UNITS['cpi']})"
    if metric in Gpu.fields():
        return axis_label(metric)
    name, unit = _NAMES.get(metric, metric), _UNITS.get(metric, "")
    if look().is_compact and metric in ("ipc", "cpi"):
        return name  # which papers do not explain either
    return f"{name} ({unit})" if unit and unit != name else name


def value_text(value: object) -> str:
    """Return the value of an axis as short text."""
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)


def levels(column: pd.Series) -> list[object]:
    """Return the different values of an axis, numbers in order, texts as they come."""
    values = list(column.unique())
    return sorted(values) if pd.api.types.is_numeric_dtype(column) else values
