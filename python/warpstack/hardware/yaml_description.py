"""Descriptions of GPUs as people write them: entries of a YAML file with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpstack._util.arguments import printable
from warpstack._util.yaml_file import read_mapping
from warpstack.errors import InputError, shown

__all__ = ["Written", "read_description"]


@dataclass(frozen=True)
class Written:
    """What a file says.

    Attributes
    ----------
    based_on
        The description that it changes; None where it stands alone.
    values
        Text, a list or a mapping of text by field name.
    sources
        Where values come from, by field name.
    confidences
        How well values are known, by field name, as the file says it.
    """

    based_on: Any
    values: dict[str, Any]
    sources: dict[str, str]
    confidences: dict[str, Any]


def read_description(path: Path) -> Written:
    """Read entries ``field: value`` or ``field: {value: ..., confidence: ..., source: ...}``.

    All but the value can be left out.

    Raises
    ------
    InputError
        If the file cannot be read, or an entry has another form.
    """
    entries = read_mapping(path, "GPU description", "field: value")
    based_on = entries.pop("based_on", None)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    confidences: dict[str, Any] = {}
    for field, entry in entries.items():
        if isinstance(entry, dict):
            if set(entry) - {"value", "source", "confidence"} or "value" not in entry:
                raise InputError(
                    f"{printable(path)}: {field}: expected {{value: ..., source: ...}}, with a "
                    f"confidence or without, got {shown(entry)}"
                )
            sources[field] = str(entry.get("source", ""))
            if "confidence" in entry:
                confidences[field] = entry["confidence"]
            entry = entry["value"]
        values[field] = entry
    for text in ("name", "description"):
        if isinstance(values.get(text), str):
            values[text] = " ".join(values[text].split())
    return Written(based_on, values, sources, confidences)
