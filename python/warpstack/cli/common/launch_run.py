"""Running what ``--launch`` describes: compiling the source, making its arrays, tracing each launch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack.cli.common.launch_arrays import Array, same_bits, values_of
from warpstack.cli.common.source_text import Parameter, parameters_of
from warpstack.errors import InputError

if TYPE_CHECKING:
    from warpstack.cli.common.launch_text import Launch
    from warpstack.cuda import DeviceArray
    from warpstack.traces.trace import KernelTrace

__all__ = ["run_launch", "run_launches"]


def run_launch(source: str | os.PathLike[str], launch: Launch) -> KernelTrace:
    """Return the trace of one launch; see `run_launches`."""
    (trace,) = run_launches(source, [launch])
    return trace


def run_launches(
    source: str | os.PathLike[str],
    launches: Sequence[Launch],
    *,
    options: Sequence[str] = (),
    device_memory_mib: float | None = None,
    machine_code: str | None = None,
    how: Mapping[str, Any] | None = None,
) -> list[KernelTrace]:
    """Compile a source, and run launches of its kernels one after the other on a new device.

    Parameters
    ----------
    source, options, machine_code
        As for `warpstack.cuda.compile`.
    launches
        The launches. An array with a name is made for the first that has it.
    device_memory_mib
        Memory of the device.
    how
        More keywords of `warpstack.cuda.Kernel.launch`.

    Raises
    ------
    InputError
        If an array is too large, the source does not compile, has no such kernel, an argument is not what
        the source has for a parameter, or a launch fails.
    """
    device = ws.cuda.device.of_mib(device_memory_mib)
    _check_sizes(launches, device._core.capacity)
    module = ws.cuda.compile(source, options=options, device=device, machine_code=machine_code)
    kernels = []  # all are there before the first one runs
    for launch in launches:
        with _named(launch):
            kernels.append(module.kernel(launch.kernel))
    text = ""
    if str(source).endswith(".cu"):
        text = Path(source).read_text(encoding="utf-8", errors="replace")
    for launch in launches:
        _check_parameters(launch, parameters_of(text, launch.kernel))
    made: dict[str, DeviceArray] = {}
    traces = []
    for launch, kernel in zip(launches, kernels, strict=True):
        values: list[Any] = []
        for place, argument in enumerate(launch.arguments, 1):
            value: Any = argument
            if isinstance(argument, Array):
                value = made.get(argument.name)
                if value is None:
                    value = device.array(values_of(_what(launch, place), argument))
                if argument.name:
                    made[argument.name] = value
            values.append(value)
        with _named(launch):
            trace = kernel.launch(
                launch.grid,
                launch.block,
                *values,
                shared_memory_bytes=launch.shared_memory_bytes,
                progress=True,
                **(how or {}),
            )
        assert trace is not None
        traces.append(trace)
    return traces


@contextlib.contextmanager
def _named(launch: Launch) -> Iterator[None]:
    """Let errors name the option that the launch comes from."""
    try:
        yield
    except InputError as error:
        raise InputError(f"--launch {launch.kernel}: {error}") from None


def _what(launch: Launch, place: int) -> str:
    return f"--launch {launch.kernel}: argument {place}"


def _check_sizes(launches: Sequence[Launch], capacity: int) -> None:
    """Raise `InputError` for arrays that the device or this machine has no room for."""
    import numpy as np

    from warpstack._util.trace_budget import check_memory, size_text

    total, named = 0, set()
    arguments = (
        (_what(launch, place), argument)
        for launch in launches
        for place, argument in enumerate(launch.arguments, 1)
    )
    for where, array in arguments:
        if not isinstance(array, Array):
            continue
        if array.name in named:
            continue
        named |= {array.name} - {""}
        own = array.size * np.dtype(array.dtype).itemsize
        total += own
        what = f"{where}, an array of {array.size:,} {array.dtype},"
        together = "" if total == own else f", {size_text(total)} with those before it"
        if total > capacity:
            raise InputError(
                f"{what} takes {size_text(own)}{together}; the simulated device has "
                f"{size_text(capacity)}: make it smaller, or give --device-memory MIB"
            )
        # Each byte takes memory for the array, for its copy on the device and for whether it is written;
        # what an expression computes has eight for each number, and as many on the way there.
        computed = 8 if array.fill in ("range", "random") else 24
        made = max(own, computed * array.size if isinstance(array.fill, str) else 0)
        check_memory(what[:-1], made + 2 * total, "make it smaller")


def _check_parameters(launch: Launch, parameters: Sequence[Parameter | None] | None) -> None:
    """Raise `InputError` for an argument that is not what the source has for its parameter."""
    if parameters is None or len(parameters) != len(launch.arguments):
        return  # the launch says how many there are
    for place, (argument, wanted) in enumerate(zip(launch.arguments, parameters, strict=True), 1):
        if wanted is None:
            continue
        what = f"{_what(launch, place)}, for {wanted.text}"
        if not isinstance(argument, Array):
            if wanted.is_pointer and argument != 0:
                raise InputError(
                    f"{what}: {argument} is a number; give an array, such as {wanted.dtype}[1024]"
                )
        elif not wanted.is_pointer:
            raise InputError(f"{what}: an array is given; give a number")
        elif not same_bits(argument.dtype, wanted.dtype):
            of = f"those of {argument.file}" if argument.file else "the array's"
            remedy = f"give {wanted.dtype}[...]"
            if argument.file:
                remedy = f"save them so: numpy.save(file, x.astype('{wanted.dtype}'))"
            raise InputError(
                f"{what}: its elements are {wanted.dtype}, {of} {argument.dtype}; {remedy}"
            )
