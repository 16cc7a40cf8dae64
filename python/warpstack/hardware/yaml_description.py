"""Descriptions of GPUs as people write them: entries of a YAML file with their sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpstack._util.yaml_file import Entries, read_entries
from warpstack.errors import shown

__all__ = ["Written", "description_text", "read_description"]


@dataclass(frozen=True)
class Written:
    """What a file says.

    Attributes
    ----------
    entries
        As they stand there, with their lines.
    based_on
        The description that it changes; None where it stands alone.
    values
        Text, a list or a mapping of text by field name.
    sources
        Where values come from, by field name.
    confidences
        How well values are known, by field name, as the file says it.
    """

    entries: Entries
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
    entries = read_entries(path, "GPU description", "field: value")
    written = dict(entries.values)
    based_on = written.pop("based_on", None)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    confidences: dict[str, Any] = {}
    for field, entry in written.items():
        if isinstance(entry, dict):
            if set(entry) - {"value", "source", "confidence"} or "value" not in entry:
                raise entries.error(
                    f"{field}: expected {{value: ..., source: ...}}, with a confidence or without,"
                    f" got {shown(entry)}"
                )
            sources[field] = str(entry.get("source", ""))
            if "confidence" in entry:
                confidences[field] = entry["confidence"]
            entry = entry["value"]
        values[field] = entry
    for text in ("name", "description"):
        if isinstance(values.get(text), str):
            values[text] = " ".join(values[text].split())
    return Written(entries, based_on, values, sources, confidences)


def description_text(gpu: Any, values: Mapping[str, Any]) -> str:
    """Return a description as the text of a YAML file.

    Parameters
    ----------
    gpu
        What has the ``name``, ``description``, ``sources`` and ``confidences``.
    values
        The values of its fields, in the order of the file.
    """
    lines = [f"name: {_quoted(gpu.name)}", f"description: {_quoted(gpu.description)}", ""]
    for field, value in values.items():
        entry = [f"value: {_written(value)}"]
        if field in gpu.confidences:
            entry.append(f"confidence: {gpu.confidences[field]}")
        if gpu.sources.get(field):
            entry.append(f"source: {_quoted(gpu.sources[field])}")
        lines.append(f"{field}: {{{', '.join(entry)}}}")
    return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def _quoted(text: str) -> str:
    """Return a text in double quotes, as JSON and YAML have them."""
    return json.dumps(text)
