"""What each stage reads of a GPU, as its fields declare it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from warpstack.hardware.description import Gpu, value_fields
from warpstack.hardware.fields import Stage

__all__ = [
    "Stage",
    "class_values",
    "fields_of",
    "latencies_to_core",
    "tensor_unit_to_core",
    "to_core",
    "to_core_columns",
    "values_of",
]


@cache
def fields_of(stage: Stage) -> frozenset[str]:
    """Return the fields of `Gpu` that a stage reads."""
    return frozenset(f.name for f in value_fields() if stage in f.metadata["stages"])


def values_of(gpu: Gpu, fields: frozenset[str]) -> tuple[Any, ...]:
    """Return the values of some fields in the order of their names: what a result depends on."""
    return _getter(fields)(gpu)


@cache
def _getter(fields: frozenset[str]) -> Callable[[Gpu], tuple[Any, ...]]:
    # Two names at least: of one, attrgetter returns the value itself.
    names = sorted(fields)
    return (
        attrgetter(*names) if len(names) > 1 else lambda gpu: tuple(getattr(gpu, n) for n in names)
    )


def to_core(gpu: Gpu, stage: Stage) -> dict[str, Any]:
    """Return the values that a stage reads, where and in the unit that the core wants them.

    What a stage makes of several values, and of those that the core does not know, is not among
    them.
    """
    read = _reading(stage)
    values = read.values(gpu)
    result: dict[str, Any] = {}
    for value, group, key, in_kib in zip(values, read.groups, read.keys, read.in_kib, strict=True):
        if in_kib:
            value = (
                [int(one * 1024) for one in value] if type(value) is tuple else int(value * 1024)
            )
        (result.setdefault(group, {}) if group else result)[key] = value
    return result


def to_core_columns(gpus: Iterable[Gpu], stage: Stage) -> dict[str, list[Any]]:
    """Return the values of several GPUs that a stage reads as they are, by their names in the core."""
    read = _reading(stage)
    columns = zip(*map(read.values, gpus), strict=True)
    return dict(zip(read.keys, map(list, columns), strict=True))


def class_values(by_class: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by class of operations, among them that of unknown operations."""
    return {**by_class, "unknown": by_class["integer"]}


def latencies_to_core(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return latencies by class with what is known of the tensor cores, for the core.

    Parameters
    ----------
    read
        What `to_core` returns for the intervals or the simulation.
    """
    return {**class_values(read["latency"]), "tensor_unit": tensor_unit_to_core(read)}


def tensor_unit_to_core(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rates of a scheduler's tensor cores by type, and the interval without one."""
    return {**read["tensor_unit"], "interval": read["interval"]["tensor"]}


@dataclass(frozen=True)
class _Reading:
    """How a stage reads a `Gpu`: for each value its group and name in the core, and if it is in KiB."""

    values: Callable[[Gpu], tuple[Any, ...]]
    groups: tuple[str, ...]
    keys: tuple[str, ...]
    in_kib: tuple[bool, ...]


@cache
def _reading(stage: Stage) -> _Reading:
    names, groups, keys, in_kib = [], [], [], []
    for field in value_fields():
        stages, place = field.metadata["stages"], field.metadata["core"]
        # The simulation has a memory stage of its own.
        of_memory = stage is Stage.TIMING and Stage.MEMORY in stages
        if stage not in stages or of_memory or place == "":
            continue
        if place is None or stage is Stage.MODEL:
            place = field.name
        group, _, key = place.rpartition(".")
        names.append(field.name)
        groups.append(group)
        keys.append(key)
        in_kib.append(field.metadata["unit"] == "KiB")
    return _Reading(attrgetter(*names), tuple(groups), tuple(keys), tuple(in_kib))
