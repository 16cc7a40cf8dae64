"""Descriptions of GPUs: the only configuration that the stages read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from warpstack._core import GPU_FIELDS, GpuField
from warpstack._core import Gpu as CoreGpu
from warpstack._util import notebook
from warpstack._util.arguments import as_path, printable, printable_text
from warpstack._util.data_folder import data_folder
from warpstack._util.files import write_file
from warpstack._util.lazy import pandas as pd
from warpstack.errors import (
    InputError,
    UnusedOptionWarning,
    not_a,
    not_one_of,
    shown,
    unknown,
    warn,
)
from warpstack.hardware.values import GpuValues, checked_value, short, shown_name
from warpstack.hardware.yaml_description import Written, description_text, read_description

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from warpstack.hardware.values import GpuChanges

__all__ = ["Gpu", "as_gpu", "gpu", "gpus"]

_FOLDER = data_folder("gpus")

_YAML_ENDINGS = (".yaml", ".yml")
#: How well a value is known: measured on this product or another one with its chip; written down by
#: NVIDIA; computed from such values, or taken from a chip of the same family; or assumed.
_CONFIDENCES = ("measured", "documented", "derived", "guessed")
#: Numbers in files and on the command line: what Python's int and float read, without underscores,
#: infinities and NaN.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


#: No clock has so many GHz: such a number is of MHz.
_MEGAHERTZ = 100.0

#: Latencies in SM cycles of what lies outside the clock domain of the SMs: they change with the clock.
FIELDS_OF_THE_CLOCK = ("dram_latency", "l2_latency")


#: Fields that a notebook shows first.
_MAIN_FIELDS = (
    "num_sms",
    "clock_ghz",
    "threads_per_sm",
    "l1_size_kib",
    "l1_mshrs",
    "l2_size_kib",
    "noc_bandwidth_gbs",
    "dram_bandwidth_gbs",
)
#: Parts of a GPU by how the names of their fields begin; all others are those of the SMs.
_PARTS = {"l1_": "L1", "l2_": "L2", "noc_": "NoC", "dram_": "DRAM"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gpu(GpuValues):
    """A GPU, as the stages see it.

    Cycles are cycles of the SM clock, bandwidths are aggregates of the whole GPU. Descriptions come
    from `warpstack.gpu` (by name or file), from `Gpu.from_gpgpusim`, or from `replace` on another
    one.

    Raises
    ------
    InputError
        If a value is of the wrong type, out of range or contradicts another one.

    Notes
    -----
    `Gpu.fields` lists every field with its unit and meaning; ``warpstack gpus --fields`` prints it.
    """

    #: Where each value comes from, by field name. Not part of the GPU's identity.
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    #: How well each value is known, by field name: ``measured``, ``documented``, ``derived`` or
    #: ``guessed``; fields of which nothing is said are left out. Not part of the GPU's identity.
    confidences: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )
    #: Options of the file this description was read from that have no meaning here.
    unused_options: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)
    #: What `replace` changed since the description got its name: new values by field name. Not part
    #: of the GPU's identity.
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        kinds = {"sources": Mapping, "confidences": Mapping, "changes": Mapping}
        for text, kind in {**kinds, "unused_options": tuple}.items():
            if not isinstance(getattr(self, text), kind):
                expected = "a tuple" if kind is tuple else "a dictionary"
                raise not_a(f"GPU {text}", expected, getattr(self, text))
        for text in ("name", "description"):
            _check_text(text, getattr(self, text))
        for name, field in _fields_by_name().items():
            object.__setattr__(self, name, checked_value(field, getattr(self, name), self.name))
        try:
            vars(self)["_core"] = CoreGpu(self.values())
        except InputError as error:
            raise InputError(f"GPU {shown_name(self.name)}: {error}") from None
        for name, word in self.confidences.items():
            if word not in _CONFIDENCES:
                where = f"GPU {shown_name(self.name)}: {shown_name(str(name))}: confidence"
                raise not_one_of(where, word, _CONFIDENCES)

    def replace(self, **changes: Unpack[GpuChanges]) -> Gpu:
        """Return a copy with some fields changed.

        A change of `clock_ghz` keeps what lies outside the clock domain of the SMs constant in
        time: `dram_latency`, and `l2_latency` where `l2_clock_ghz` is not 0, which count SM cycles,
        are multiplied by new / old clock unless they are given too. Bandwidths are per second and
        stay.

        Parameters
        ----------
        **changes
            New values by field name.

        Returns
        -------
        Gpu
            The changed description. It keeps its name and notes the `changes`, unless they name it;
            the sources and confidences of changed fields are dropped.

        Raises
        ------
        InputError
            If a field does not exist (the message suggests the nearest) or a value is out of range.

        Examples
        --------
        >>> import warpstack as ws
        >>> gpu = ws.gpu("pascal-mdm").replace(num_sms=56, l1_mshrs=64)
        >>> gpu.title
        'pascal-mdm with num_sms=56, l1_mshrs=64'
        >>> ws.gpu("pascal-mdm").replace(clock_ghz=2.8).dram_latency
        440.0
        """
        if not changes.keys() <= _fields_by_name().keys():
            check_field_names(changes, f"GPU {shown_name(self.name)}")
        changed = self._changed(changes)
        noted: dict[str, Any] = {}
        if "name" not in changes:
            noted.update(self.changes)
            for name in (name for name in changes if name != "description"):
                value = getattr(changed, name)
                if name in noted or value != getattr(self, name):
                    noted[name] = value
        sources, confidences = dict(self.sources), dict(self.confidences)
        for name in changes:
            sources.pop(name, None)
            confidences.pop(name, None)
        scaled: dict[str, Any] = {}
        if changed.clock_ghz != self.clock_ghz:
            for name in FIELDS_OF_THE_CLOCK:
                if name not in changes and (name == "dram_latency" or changed.l2_clock_ghz):
                    cycles = getattr(self, name)
                    scaled[name] = cycles * (changed.clock_ghz / self.clock_ghz)
                    note = f"{short(cycles)} cycles at {short(self.clock_ghz)} GHz"
                    sources[name] = "; ".join(filter(None, (self.sources.get(name), note)))
                    if confidences.get(name) in ("measured", "documented"):
                        confidences[name] = "derived"
        values = vars(changed)
        for name, value in scaled.items():
            values[name] = checked_value(_fields_by_name()[name], value, self.name)
        if scaled:
            # Not checked: whoever slows a clock down may get latencies that no simulation takes.
            given = {name: values[name] for name in scaled}
            values["_core"] = values["_core"].changed(given, checked=False)
            values["_pending_texts"] = {**values["_pending_texts"], **given}
        values.update(sources=sources, confidences=confidences, changes=noted)
        return changed

    def _changed(self, changes: Mapping[str, Any]) -> Gpu:
        """Return a copy; only what changes is checked, as the rest was when this one was made."""
        changed = object.__new__(type(self))
        values = vars(changed)
        values.update(vars(self))
        values.pop("digest", None)
        for text in ("name", "description"):
            if text in changes:
                _check_text(text, changes[text])
                values[text] = changes[text]
        given, values["_core"] = self._checked_changes(changes)
        # The texts are written when a digest is asked for.
        values.update(given, _pending_texts={**values.get("_pending_texts", {}), **given})
        if "_written_texts" not in values:
            values["_written_texts"] = self._texts
        values.pop("_texts", None)
        return changed

    def _checked_changes(self, changes: Mapping[str, Any]) -> tuple[dict[str, Any], CoreGpu]:
        """Return the values that `replace` gives to the fields that it is told, and the GPU of the core.

        It raises what `replace` does, without the cost of a description.
        """
        fields = _fields_by_name()
        name = changes.get("name", self.name)
        # A description is checked in this order: of several errors the same one is told.
        given = {}
        for field in sorted(changes.keys() & fields.keys(), key=_place_of_field):
            given[field] = checked_value(fields[field], changes[field], name)
        try:
            return given, self._core.changed(given)
        except InputError as error:
            raise InputError(f"GPU {shown_name(name)}: {error}") from None

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        """Each value as the digest has it, in the order of names."""
        written = vars(self).get("_written_texts")
        if written is not None:
            return _with_texts(written, vars(self)["_pending_texts"])
        return tuple(_text_of(name, getattr(self, name)) for name in _places_of_texts())

    @cached_property
    def _core(self) -> CoreGpu:
        """The GPU as the stages of the core read it."""
        return CoreGpu(self.values(), checked=False)

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_core", "_texts", "_written_texts", "_pending_texts")
        return {name: value for name, value in vars(self).items() if name not in derived}

    @property
    def num_schedulers(self) -> int:
        """Warp schedulers of an SM, where the description leaves them out too."""
        return self._core.num_schedulers

    @property
    def block_replacement_cycles(self) -> float:
        """Cycles from the end of a thread block to the start of the one that takes its place."""
        return self._core.block_replacement_cycles

    @property
    def sustained_dram_bandwidth_gbs(self) -> float:
        """What long streams reach of the DRAM bandwidth, in GB/s."""
        return self._core.sustained_dram_bandwidth_gbs

    @property
    def changes_text(self) -> str:
        """The `changes` as text, ``num_sms=56, l1_mshrs=64``; empty without any."""
        return ", ".join(f"{field}={short(value)}" for field, value in self.changes.items())

    @property
    def title(self) -> str:
        """The name with the changes made to it, for headings."""
        return f"{self.name} with {self.changes_text}" if self.changes else self.name

    @classmethod
    def fields(cls) -> dict[str, str]:
        """Return the meaning of each field with its unit, by field name."""
        return {f.name: f.meaning + (f" [{f.unit}]" if f.unit else "") for f in GPU_FIELDS}

    @classmethod
    def ranges(cls) -> dict[str, str]:
        """Return what the value of each field can be, as text, by field name."""
        return {f.name: f.range_text for f in GPU_FIELDS}

    def values(self) -> dict[str, Any]:
        """Return every value by field name, without name, description and sources."""
        values = vars(self)
        return {name: values[name] for name in _fields_by_name()}

    @cached_property
    def digest(self) -> str:
        """Content digest of the values, 16 hexadecimal digits; the name does not count."""
        # As JSON of all values, which `replace` need not write anew.
        text = "{" + ", ".join(self._texts) + "}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def diff(self, other: GpuLike) -> pd.DataFrame:
        """Compare this GPU with another one.

        Parameters
        ----------
        other
            A description, the name of one, or the path of one.

        Returns
        -------
        DataFrame
            A row per field whose values differ: ``field``, ``unit``, the values of this GPU and of the
            other one (``first``, ``second``), and ``ratio``, second over first; NaN where they are not
            two numbers other than 0.

        Examples
        --------
        >>> import warpstack as ws
        >>> gpu = ws.gpu("pascal-mdm")
        >>> changed = gpu.diff(gpu.replace(num_sms=56)).iloc[0]
        >>> changed["field"], float(changed["ratio"])
        ('num_sms', 2.0)
        """
        gpu = as_gpu(other)
        rows = []
        for field in GPU_FIELDS:
            one, two = getattr(self, field.name), getattr(gpu, field.name)
            if one != two:
                is_ratio = is_number(field.name) and one != 0
                rows.append(
                    {
                        "field": field.name,
                        "unit": field.unit,
                        "first": one,
                        "second": two,
                        "ratio": two / one if is_ratio else math.nan,
                    }
                )
        return pd.DataFrame(rows, columns=["field", "unit", "first", "second", "ratio"])

    def to_yaml(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the text of a YAML description, which `from_file` reads back.

        It has every value with its source and confidence; changes have become values.

        Parameters
        ----------
        path
            A file to write the text to, too; one that is there is replaced.
        """
        text = description_text(self, self.values())
        if path is not None:
            write_file(as_path("path", path), text.encode())
        return text

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Gpu:
        """Read a YAML description.

        Each entry is ``field: value`` or ``field: {value: ..., confidence: ..., source: ...}``, of
        which confidence and source can be left out. ``based_on: NAME`` takes the fields that the
        file leaves out from a named description or another file, as `replace` does. Numbers are
        written as in Python.

        Raises
        ------
        InputError
            If the file is not a description: unknown fields (the message suggests the nearest),
            missing fields, wrong values, another confidence than measured, documented, derived or
            guessed.
        """
        return _read_yaml(as_path("GPU description", path))

    @classmethod
    def from_gpgpusim(
        cls,
        path: str | os.PathLike[str],
        *,
        trace_config: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> Gpu:
        """Read a GPGPU-Sim or Accel-Sim configuration.

        Parameters
        ----------
        path
            A ``gpgpusim.config`` of GPGPU-Sim 3 or 4, or the folder that holds it.
        trace_config
            The ``trace.config`` of Accel-Sim, or its folder; by default the one beside the file, if
            there is one. Its options hold where both files have them, as in Accel-Sim, and its
            latencies and intervals of machine instructions go before those of PTX.
        name
            Name of the description; by default the name of the folder.

        Returns
        -------
        Gpu
            `Gpu.sources` says which option each value comes from, `Gpu.unused_options` names the
            options that have no meaning here.

        Warns
        -----
        UnusedOptionWarning
            Once, naming the options that are not used, what is simplified, the defaults that are
            taken for options that are not given, and options that are given twice.

        Raises
        ------
        InputError
            If the file does not say how large the GPU is, an option is malformed, or the GPU has no
            description here, such as one without an L2 of global memory.
        """
        return _read_gpgpusim(
            as_path("GPGPU-Sim configuration", path),
            name,
            None if trace_config is None else as_path("trace_config", trace_config),
        )

    def _repr_html_(self) -> str:
        groups: dict[str, list[GpuField]] = {}
        for field in GPU_FIELDS:
            groups.setdefault(_group_of(field.name), []).append(field)
        first = [_fields_by_name()[name] for name in _MAIN_FIELDS]
        return notebook.cell(
            f"{self.title}: {self.description}" if self.description else self.title,
            self._table_of(first),
            *(
                notebook.folded(f"{group}: {len(fields)} fields", self._table_of(fields))
                for group, fields in groups.items()
            ),
        )

    def _table_of(self, fields: Iterable[GpuField]) -> str:
        fields = list(fields)
        names = [field.name for field in fields]
        return notebook.table(
            {
                "field": names,
                "value": [str(getattr(self, name)) for name in names],
                "unit": [field.unit for field in fields],
                "confidence": [self.confidences.get(name, "") for name in names],
                "source": [self.sources.get(name, "") for name in names],
            }
        )


#: What functions take for a GPU: a description, the name of one, or the path of one.
GpuLike = Union[Gpu, str, "os.PathLike[str]"]


def _text_of(name: str, value: Any) -> str:
    # json.dumps writes numbers as repr does, but takes ten times as long.
    return f'"{name}": {repr(value) if isinstance(value, (int, float)) else json.dumps(value)}'


@cache
def _places_of_texts() -> dict[str, int]:
    return {name: place for place, name in enumerate(sorted(_fields_by_name()))}


def _with_texts(texts: tuple[str, ...], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of all values, with those of some other values."""
    found, places = list(texts), _places_of_texts()
    for name, value in values.items():
        found[places[name]] = _text_of(name, value)
    return tuple(found)


@cache
def _fields_by_name() -> dict[str, GpuField]:
    return {field.name: field for field in GPU_FIELDS}


def _group_of(name: str) -> str:
    """Return the part of the GPU that a field is about, by the beginning of its name."""
    return next((part for start, part in _PARTS.items() if name.startswith(start)), "SMs")


@cache
def _place_of_field(name: str) -> int:
    return list(_fields_by_name()).index(name)


@cache
def _kind_of(name: str) -> str:
    field = _fields_by_name().get(name)
    return "" if field is None else field.kind


def _check_text(text: str, value: Any) -> None:
    """Raise `InputError` unless the name or the description of a GPU is text."""
    if not isinstance(value, str):
        raise InputError(f"GPU {text} = {shown(value)} is not text")
    if printable_text(value) != value or (text == "name" and not value.isprintable()):
        raise InputError(f"GPU {text} = {shown(value)} has characters that are not text")


def check_field_names(names: Iterable[str], where: str) -> None:
    """Raise `InputError` for the first name that is not a field of `Gpu`, and suggest the nearest."""
    for name in names:
        if name not in _fields_by_name() and name not in ("name", "description"):
            known = [*_fields_by_name(), "name", "description"]
            remedy = "`warpstack gpus --fields` lists the fields"
            # A file, which adds its own place, may also name the description that it changes.
            near = known if where else ["based_on", *known]
            raise unknown("field", name, near, remedy, where=where)


def check_value_fields(names: Iterable[str], where: str) -> None:
    """Raise `InputError` as `check_field_names` does, and for the name and the description."""
    names = list(names)
    for text in ("name", "description"):
        if text in names:
            raise InputError(f"{where}: {text} is a text of the GPU and changes no result")
    check_field_names(names, where)


def is_number(field: str) -> bool:
    """Return whether the value of a field is one number: no text, nor several numbers."""
    return _kind_of(field) in ("whole", "number")


def is_whole(field: str) -> bool:
    """Return whether the values of a field are whole numbers."""
    return _kind_of(field) == "whole"


def has_numbers(field: str) -> bool:
    """Return whether each value of a field is several numbers."""
    return _kind_of(field) == "numbers"


def value_of_text(field: str, text: Any) -> Any:
    """Return the value of a field that a file or a command line gives as text.

    Text that is not a number stays as it is: the description names the field that it does not fit.
    Several numbers come as a list, or on the command line separated by commas.
    """
    if has_numbers(field):
        parts = (
            [part for part in text.split(",") if part.strip()] if isinstance(text, str) else text
        )
        return [value_of_text("", part) for part in parts] if isinstance(parts, list) else text
    is_text = field in ("name", "description") or _kind_of(field) == "word"
    if is_text or not isinstance(text, str) or not _NUMBER.fullmatch(text.strip()):
        return text
    number = float(text)
    if field.endswith("_ghz"):
        check_gigahertz(number, f"{field} = {text}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def check_gigahertz(clock: float, where: str) -> None:
    """Raise `InputError`, which begins with `where`, for a clock that can only be in MHz."""
    if clock >= _MEGAHERTZ:
        raise InputError(f"{where}: clocks are in GHz; {clock:g} MHz are {clock / 1000:g}")


def _base(written: Written, path: Path, readers: tuple[str, ...]) -> Gpu:
    """Return the description that the file at `path` is based on."""
    name = written.based_on
    if not isinstance(name, str):
        raise written.entries.error(not_a("based_on", "a name or a file", name))
    if name.endswith(_YAML_ENDINGS):
        return _read_yaml(path.parent / name, (*readers, os.path.realpath(path)))
    try:
        return gpu(path.parent / name if name.endswith(".config") else name)
    except InputError as error:
        raise written.entries.error(f"based_on: {error}") from None


def _read_yaml(path: Path, readers: tuple[str, ...] = ()) -> Gpu:
    """Read a description; `readers` are the files that are based on it."""
    if os.path.realpath(path) in readers:
        raise InputError(f"{printable(path)}: based_on leads back to this file")
    written = read_description(path)
    parent = None if written.based_on is None else _base(written, path, readers)
    try:
        return _described(written, Path(written.entries.path).stem, parent)
    except InputError as error:
        raise written.entries.error(error) from None


def _described(written: Written, name: str, parent: Gpu | None) -> Gpu:
    """Return the GPU of a file, with the values of `parent` where the file has none."""
    check_field_names(written.values, "")
    values: dict[str, Any] = {"name": name, "description": ""}
    values.update({field: value_of_text(field, text) for field, text in written.values.items()})
    if parent is not None:
        changed = parent.replace(**values)
        return dataclasses.replace(
            changed,
            sources={**changed.sources, **written.sources},
            confidences={**changed.confidences, **written.confidences},
        )
    required = [f.name for f in GPU_FIELDS if f.default is None]
    missing = [name for name in required if name not in values]
    if missing:
        raise InputError(f"missing fields: {', '.join(missing)}; add them or a line based_on: NAME")
    return Gpu(**values, sources=written.sources, confidences=written.confidences)


def _read_gpgpusim(path: Path, name: str | None, trace_config: Path | None = None) -> Gpu:
    """Read a configuration of GPGPU-Sim, and warn of the options that are not used."""
    from warpstack.hardware.gpgpusim import read_config

    found = read_config(path, name, trace_config)
    defaults = [name for name in _fields_by_name() if name not in found.values]
    default = "no option; this package's default"
    try:
        described = Gpu(
            name=found.name,
            description=f"GPGPU-Sim configuration {found.name}",
            **found.values,
            sources={**found.sources, **dict.fromkeys(defaults, default)},
            unused_options=found.unused_options,
        )
    except InputError as error:
        raise InputError(f"{found.path}: {error}") from None
    if found.problems:
        warn(f"{found.path}: {'; '.join(found.problems)}", UnusedOptionWarning)
    return described


def gpus() -> list[str]:
    """Return the names of the descriptions that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def _named(name: str) -> Gpu:
    return _read_yaml(_FOLDER / f"{name}.yaml")


def gpu(name_or_path: str | os.PathLike[str]) -> Gpu:
    """Return a GPU description by name, or read one from a file.

    Parameters
    ----------
    name_or_path
        One of `warpstack.gpus()`, in capital letters as well, the path of a YAML description (``.yaml``,
        ``.yml``), or that of a GPGPU-Sim configuration (``.config``; see `Gpu.from_gpgpusim`).

    Raises
    ------
    InputError
        If there is no such description (the message has the nearest names) or the file is malformed.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.gpu("pascal-mdm").l1_mshrs
    128
    """
    text = os.fspath(name_or_path) if isinstance(name_or_path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise not_a("gpu", "the name of a GPU or the path of a description", name_or_path)
    if text.endswith(_YAML_ENDINGS):
        return _read_yaml(as_path("GPU description", name_or_path))
    if text.endswith(".config"):
        return _read_gpgpusim(as_path("GPGPU-Sim configuration", name_or_path), None)
    if text.lower() in gpus():
        return _named(text.lower())
    remedy = (
        "warpstack gpus (ws.gpus() in Python) lists them; the path of a .yaml or gpgpusim.config file "
        "will do, too"
    )
    if names := _within(text):
        raise InputError(
            f"there is no GPU {shown(text)}; did you mean {' or '.join(names)}? {remedy}"
        )
    raise unknown("GPU", text, gpus(), remedy, most_near=4)


def _within(text: str) -> list[str]:
    """Return the names of GPUs that the name of a product holds: NVIDIA GeForce RTX 3080.

    A name within a longer one that is there is not meant: l4 in NVIDIA L40S.
    """
    whole = "".join(re.findall(r"[a-z0-9]", text.lower()))
    found = {name.replace("-", ""): name for name in gpus() if name.replace("-", "") in whole}
    longest = [
        name
        for plain, name in found.items()
        if not any(plain in other for other in found if other != plain)
    ]
    return longest[:4]


def as_gpu(gpu_or_name: GpuLike) -> Gpu:
    """Return the GPU itself, or the description that `gpu` finds for a name or path.

    Raises
    ------
    InputError
        If it is neither, or there is no such description.
    """
    if isinstance(gpu_or_name, Gpu):
        return gpu_or_name
    if not isinstance(gpu_or_name, (str, os.PathLike)):
        raise not_a("gpu", "a Gpu, the name of one or the path of a description", gpu_or_name)
    return gpu(gpu_or_name)
