"""``--gpu`` and ``--set``: which GPU, and what of it is changed."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Container, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack.cli.common.messages import say

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu

__all__ = [
    "add_gpu",
    "machine_code_of",
    "read_gpu",
    "read_gpus",
    "report_unused",
    "say_what_sizes_do",
    "unchanged_gpu",
]

_DEFAULT = "pascal-mdm"


def add_gpu(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the options that name a GPU, or `several`, and change its fields."""
    parser.add_argument(
        "--gpu",
        action="append",
        help=f"name (see warpstack gpus), .yaml file or gpgpusim.config (default: {_DEFAULT})"
        + ("; given again, the GPUs are compared" if several else ""),
    )
    parser.add_argument(
        "--trace-config",
        metavar="FILE",
        help="trace.config of Accel-Sim for a gpgpusim.config (default: the one beside it)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a field of the GPU (see warpstack gpus --fields); may be repeated",
    )


def read_gpu(arguments: argparse.Namespace) -> Gpu:
    """Return the one GPU that the options describe."""
    if arguments.gpu and len(arguments.gpu) > 1:
        raise ws.InputError(
            f"--gpu is given {len(arguments.gpu)} times, {', '.join(arguments.gpu[:3])}: this command "
            "takes one; predict and compare take several"
        )
    (target,) = read_gpus(arguments)
    return target


def machine_code_of(arguments: argparse.Namespace) -> str | None:
    """Return the architecture that ``--machine-code`` asks for, or that of the GPU; None: of neither.

    Raises
    ------
    InputError
        If the option names none and there is no GPU, or none whose machine code is executed, or several
        with different ones.
    """
    from warpstack.cuda.disassembly import FIRST_ARCH, LAST_ARCH
    from warpstack.cuda.toolchain import target_number

    given = arguments.machine_code
    if given is None:
        return None
    executed = f"sm_{FIRST_ARCH} to sm_{LAST_ARCH}"
    if given is not True:
        if not FIRST_ARCH <= target_number("--machine-code", given) <= LAST_ARCH:
            raise ws.InputError(
                f"--machine-code {given}: is not executed; choose one of {executed}"
            )
        return str(given)
    if not hasattr(arguments, "gpu"):
        raise ws.InputError("--machine-code: say for which architecture: --machine-code sm_80")
    known = {}
    for name in arguments.gpu or [_DEFAULT]:
        described = _described(arguments, name)
        known[f"sm_{round(10 * described.compute_capability)}"] = described.name
    if len(known) > 1:
        listed = ", ".join(f"{name} {arch}" for arch, name in known.items())
        raise ws.InputError(
            f"--machine-code: the GPUs have different ones ({listed}); say which: --machine-code "
            f"{next(iter(known))}"
        )
    ((arch, name),) = known.items()
    if target_number("--machine-code", arch) < FIRST_ARCH:
        raise ws.InputError(
            f"--machine-code: that of {name}, {arch}, is not executed, {executed} are; name another GPU, or "
            "say which: --machine-code sm_80"
        )
    return arch


def unchanged_gpu(arguments: argparse.Namespace) -> Gpu:
    """Return the one GPU that the options describe, without their settings."""
    return _described(arguments, (arguments.gpu or [_DEFAULT])[0])


def read_gpus(arguments: argparse.Namespace) -> list[Gpu]:
    """Return the GPUs that the options describe, each with the settings."""
    names = arguments.gpu or [_DEFAULT]
    for name in names:
        if names.count(name) > 1:
            raise ws.InputError(f"--gpu {name} is given twice")
    if arguments.trace_config is not None and not any(_is_config(name) for name in names):
        raise ws.InputError(
            f"--trace-config {arguments.trace_config}: no --gpu is a gpgpusim.config, for which it is"
        )
    described = [_described(arguments, name) for name in names]
    found = [_with_settings(one, arguments.set) for one in described]
    for one in found:
        say_what_sizes_do(one, [_field_of(setting) for setting in arguments.set])
    for before, after in zip(described, found, strict=True):
        _say_what_is_there(before, after, arguments.set)
    return found


def say_what_sizes_do(target: Gpu, fields: Container[str]) -> None:
    """Say when a change of ``l1_size_kib`` does not say how large L1 is: shared memory leaves it the rest."""
    if "l1_size_kib" in fields and "unified_l1_kib" not in fields and target.unified_l1_kib:
        say(
            "note",
            f"{target.name} divides unified_l1_kib = {target.unified_l1_kib:g} KiB between L1 and "
            "shared memory, so l1_size_kib does not say how large L1 is; with --set unified_l1_kib=0 "
            "--set shared_memory_carve_outs_kib= it does",
        )


def _say_what_is_there(before: Gpu, after: Gpu, settings: Sequence[str]) -> None:
    """Say which settings give a value that the GPU has anyway, with the other settings."""
    for setting in settings:
        field = _field_of(setting)
        if getattr(before, field) != getattr(after, field):
            continue
        others = [other for other in settings if other != setting]
        try:
            without = _with_settings(before, others)
        except ws.InputError:
            continue  # the other settings need it
        if getattr(without, field) == getattr(after, field):
            say("note", f"--set {setting}: {before.name} has this value already")


def report_unused(
    arguments: argparse.Namespace, target: Gpu, used: AbstractSet[str], what: str
) -> None:
    """Warn of settings that change nothing that is used, neither by themselves nor through others.

    Parameters
    ----------
    arguments
        ``gpu`` and ``set``.
    target
        What they describe.
    used
        Names of the fields that are used.
    what
        What uses them, for the note.
    """
    if not arguments.set:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.errors.UnusedOptionWarning)  # shown when target was made
        base = unchanged_gpu(arguments)
    for setting in arguments.set:
        field = _field_of(setting)
        if field in used or field in ("name", "description"):
            continue
        try:
            without = _with_settings(base, [s for s in arguments.set if s != setting])
        except ws.InputError:
            continue  # the other settings need it
        if all(getattr(without, name) == getattr(target, name) for name in used):
            say("note", f"--set {setting} has no effect on {what}")


def _field_of(setting: str) -> str:
    return setting.partition("=")[0].strip()


def _is_config(name: str) -> bool:
    return name.endswith(".config")


def _described(arguments: argparse.Namespace, name: str) -> Gpu:
    if arguments.trace_config is not None and _is_config(name):
        return ws.Gpu.from_gpgpusim(name, trace_config=arguments.trace_config)
    return ws.gpu(name)


def _with_settings(description: Gpu, settings: Sequence[str]) -> Gpu:
    from warpstack.hardware.description import check_field_names, value_of_text

    changes: dict[str, Any] = {}
    for setting in settings:
        field, equals, text = setting.partition("=")
        field, text = field.strip(), text.strip()
        if not equals:
            raise ws.InputError(f"--set {setting}: expected field=value")
        check_field_names([field], f"--set {setting}")
        if field in changes:
            raise ws.InputError(
                f"--set {setting}: {field} is already set to {changes[field]}; give one value"
            )
        changes[field] = value_of_text(field, text)
    return description.replace(**changes) if changes else description
