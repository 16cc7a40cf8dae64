"""Workloads: seventeen GPU applications after Table IV of the MDM paper, with inputs and references.

Each module here is one workload: its sizes, seeded inputs, the host program that launches its
kernels, and a NumPy reference that its results are compared with. The kernels are our own CUDA
sources, in ``data/workloads``; they run by functional simulation (`warpstack.cuda`), from PTX that
comes with the package, so no GPU and no CUDA compiler is needed.
"""

from __future__ import annotations

import gzip
import importlib
import pkgutil
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack import cuda
from warpstack._util.arguments import as_integer, block_sample
from warpstack._util.checked import checked, checked_fields
from warpstack._util.data_folder import data_folder
from warpstack._util.former import former_keywords
from warpstack.cuda import DeviceArray
from warpstack.cuda.device import of_mib
from warpstack.errors import not_a, not_one_of, unknown
from warpstack.traces.trace import App, KernelTrace

__all__ = [
    "Arrays",
    "DeviceArray",
    "Parameters",
    "ResultError",
    "Session",
    "Workload",
    "check",
    "compare",
    "get",
    "load",
    "machine_codes",
    "names",
    "run",
    "table",
]

Parameters: TypeAlias = Mapping[str, int]
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

_MOST = 2**31 - 1


_FOLDER = data_folder("workloads")


class ResultError(RuntimeError):
    """A workload's result differs from its reference."""


class Session:
    """The view of a workload's host program: device arrays, and launches of its kernels.

    Parameters
    ----------
    module
        The compiled kernels.
    trace
        Whether launches are traced.
    workers
        Threads that run blocks of a long launch at once; None takes as many as the machine runs.
    sample_blocks
        One in how many thread blocks of a launch is recorded, as for `warpstack.cuda.Kernel.launch`; all
        run.

    Notes
    -----
    The traces of all launches are in `traces`, in order; empty without `trace`.
    """

    @former_keywords(num_threads="workers")
    @checked
    def __init__(
        self,
        module: cuda.Module,
        *,
        trace: bool,
        workers: int | None = None,
        sample_blocks: int | str = 1,
    ) -> None:
        self._module = module
        self._workers = workers
        block_sample(sample_blocks)  # said before the work
        self._sample_blocks = sample_blocks
        self._trace = trace
        self.traces: list[KernelTrace] = []

    @checked
    def array(self, x: npt.ArrayLike) -> DeviceArray:
        """Return a device array with a copy of `x`; `numpy.asarray` copies it back."""
        return self._module.device.array(x)

    @checked
    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike) -> DeviceArray:
        """Return a device array of zeros."""
        return self._module.device.zeros(shape, dtype)

    @checked
    def symbol(self, name: str, dtype: npt.DTypeLike) -> DeviceArray:
        """Return a ``__constant__`` or ``__device__`` variable of the kernels as a device array."""
        return self._module.symbol(name, dtype)

    @checked
    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *args: Any,
        shared_memory_bytes: int = 0,
    ) -> None:
        """Run a kernel to its end.

        Parameters
        ----------
        kernel
            Its name in the source.
        grid, block
            Thread blocks and threads per block: a number, or up to three.
        *args
            Device arrays and NumPy scalars of the parameters' types.
        shared_memory_bytes
            Dynamic shared memory of a thread block.
        """
        trace = self._module.kernel(kernel).launch(
            grid,
            block,
            *args,
            shared_memory_bytes=shared_memory_bytes,
            trace=self._trace,
            # Results of workloads do not depend on it, published figures on their traces do.
            order="blocks",
            sample_blocks=self._sample_blocks,
            workers=self._workers,
        )
        if trace is not None:
            self.traces.append(trace)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A GPU application: kernels, inputs, host program and reference."""

    #: Name that `get` knows it by.
    name: str
    title: str
    #: Abbreviation and suite in MDM's Table IV.
    abbreviation: str
    suite: str
    #: Class in MDM's Table IV: whether it has more than 10 divergent loads per kilo-instruction.
    memory_divergent: bool
    #: Why it is memory-divergent or not, and what it is modelled on.
    description: str
    #: Parameters by size: ``small`` runs in seconds, ``paper`` is near the original's input.
    sizes: Mapping[str, Parameters]
    #: Input arrays for parameters, drawn from a seeded generator.
    make_inputs: Callable[[Parameters, np.random.Generator], dict[str, npt.NDArray[Any]]] = field(
        repr=False
    )
    #: The host program: from inputs to outputs through launches.
    run: Callable[[Session, Parameters, Arrays], dict[str, npt.NDArray[Any]]] = field(repr=False)
    #: The same outputs by NumPy, without the kernels.
    reference: Callable[[Parameters, Arrays], dict[str, npt.NDArray[Any]]] = field(repr=False)
    #: Relative and absolute tolerance by output; outputs without one agree exactly.
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_fields(self)

    @checked
    def parameters(self, size: str | Parameters) -> Parameters:
        """Return the parameters of a size by name, or of ``small`` with some replaced.

        Raises
        ------
        InputError
            If there is no such size or parameter, or a value is not a positive number.
        """
        if isinstance(size, str):
            if size not in self.sizes:
                raise unknown("size", size, self.sizes, where=self.name)
            return types.MappingProxyType(dict(self.sizes[size]))
        if not isinstance(size, Mapping):
            raise not_a(self.name, "the name of a size or a mapping of parameters", size)
        values = dict(self.sizes["small"])
        for name, value in size.items():
            if name not in values:
                raise unknown("parameter", name, values, where=self.name)
            values[name] = as_integer(f"{self.name}: {name}", value, 1, _MOST)
        return types.MappingProxyType(values)


def names() -> list[str]:
    """Return the names of the workloads in alphabetical order.

    Examples
    --------
    >>> import warpstack as ws
    >>> "hotspot" in ws.workloads.names()
    True
    """
    return sorted(_modules())


@checked
def get(name: str) -> Workload:
    """Return a workload by name.

    Raises
    ------
    InputError
        If no workload has this name; the message lists the names.
    """
    return _find(name)[1]


@former_keywords(num_threads="workers")
@checked
def load(
    name: str,
    size: str | Parameters = "small",
    seed: int = 0,
    *,
    machine_code: str | None = None,
    workers: int | None = None,
    device_memory_mib: float | None = None,
    sample_blocks: int | str = 1,
) -> App:
    """Run a workload by functional simulation and return the trace of its launches.

    Parameters
    ----------
    name
        One of `names`.
    size
        A size that the workload lists, ``small`` or ``paper``; or parameters that replace those of
        ``small``.
    seed
        Seed of the inputs. The same seed gives the same trace.
    machine_code
        None: the kernels run as PTX. One of `machine_codes`, ``sm_80``, say: as the machine code that
        nvcc made of them for this architecture.
    workers
        Threads that run blocks of a long launch at once; None takes as many as the machine runs. The
        traces are those of one thread.
    device_memory_mib
        Memory of the simulated device; 16384 by default.
    sample_blocks
        Record about one in so many thread blocks of a launch, or "auto", as for
        `warpstack.cuda.Kernel.launch`; all run.

    Returns
    -------
    App
        An application with the workload's name and one kernel per launch.

    Raises
    ------
    InputError
        If there is no such workload, size, parameter or machine code.
    """
    workload, session, parameters, inputs = _prepare(
        name,
        size,
        seed,
        trace=True,
        machine_code=machine_code,
        workers=workers,
        device=of_mib(device_memory_mib),
        sample_blocks=sample_blocks,
    )
    workload.run(session, parameters, inputs)
    return App(session.traces, name)


@former_keywords(num_threads="workers")
@checked
def run(
    name: str,
    size: str | Parameters = "small",
    seed: int = 0,
    *,
    trace: bool = False,
    machine_code: str | None = None,
    workers: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Run a workload by functional simulation and return its outputs.

    Parameters
    ----------
    name, size, seed, machine_code, workers
        As in `load`.
    trace
        Whether launches are traced on the way, which changes no result.

    Raises
    ------
    InputError
        If there is no such workload, size or parameter.
    """
    workload, session, parameters, inputs = _prepare(
        name, size, seed, trace=trace, machine_code=machine_code, workers=workers
    )
    return workload.run(session, parameters, inputs)


@checked
def check(
    name: str,
    size: str | Parameters = "small",
    seed: int = 0,
    *,
    trace: bool = False,
    machine_code: str | None = None,
) -> None:
    """Run a workload and compare its outputs with its reference.

    Parameters
    ----------
    name, size, seed, trace, machine_code
        As in `run`.

    Raises
    ------
    ResultError
        If an output differs; the message names it and the first index.
    InputError
        If there is no such workload, size or parameter.
    """
    workload, session, parameters, inputs = _prepare(
        name, size, seed, trace=trace, machine_code=machine_code
    )
    outputs = workload.run(session, parameters, inputs)
    compare(workload, outputs, workload.reference(parameters, inputs))


@checked
def compare(workload: Workload, outputs: Arrays, expected: Arrays) -> None:
    """Compare outputs of a workload with those expected.

    Raises
    ------
    ResultError
        If names, shapes, types or values differ, the latter by more than the workload's tolerance.
    """
    if set(outputs) != set(expected):
        raise ResultError(
            f"{workload.name}: the outputs are {', '.join(sorted(outputs))}, the reference has "
            + ", ".join(sorted(expected))
        )
    for name, reference in expected.items():
        output = outputs[name]
        if (output.shape, output.dtype) != (reference.shape, reference.dtype):
            raise ResultError(
                f"{workload.name}: {name} has the shape {output.shape} and type {output.dtype}, the "
                f"reference {reference.shape} and {reference.dtype}"
            )
        relative, absolute = workload.tolerances.get(name, (0.0, 0.0))
        if relative or absolute:
            same = np.isclose(output, reference, relative, absolute, equal_nan=True)
        else:
            same = output == reference
        if not same.all():
            first = tuple(int(i) for i in np.argwhere(~same)[0])
            raise ResultError(
                f"{workload.name}: {name}{list(first)} is {output[first]}, the reference says "
                f"{reference[first]}; {np.count_nonzero(~same)} of {same.size} values differ by more "
                f"than {relative:g} of the value + {absolute:g}"
            )


def table() -> pd.DataFrame:
    """Return what the workloads are, and what was measured of them at ``small``.

    Returns
    -------
    DataFrame
        A row per workload: ``name``, ``suite``, ``class`` (``NMD`` or ``MD``, memory-divergent),
        ``launches``, ``instructions`` (warp instructions), ``dpki`` (divergent loads per
        kilo-instruction) and ``title``.
    """
    rows = pd.DataFrame(
        [
            {
                "name": workload.name,
                "suite": workload.suite,
                "class": "MD" if workload.memory_divergent else "NMD",
                "title": workload.title,
            }
            for workload in map(get, names())
        ]
    )
    measured = pd.read_csv(_FOLDER / "measured.csv")
    merged = rows.merge(measured, on="name", how="left")
    return merged[["name", "suite", "class", "launches", "instructions", "dpki", "title"]]


@cache
def _modules() -> dict[str, tuple[str, Workload]]:
    """Return file stem and workload by name."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            workload = importlib.import_module(f"{__name__}.{info.name}").workload
            found[workload.name] = (info.name, workload)
    return found


def _find(name: str) -> tuple[str, Workload]:
    known = _modules()
    if not isinstance(name, str):
        raise not_a("workload", "the name of a workload", name)
    if name not in known:
        raise unknown("workload", name, sorted(known))
    return known[name]


def machine_codes() -> list[str]:
    """Return the architectures whose machine code of the workloads comes with the package."""
    found = {path.name.split(".")[1] for path in _FOLDER.glob("*/*.sass.gz")}
    return sorted(found)


def _session(
    stem: str,
    *,
    trace: bool,
    machine_code: str | None = None,
    workers: int | None = None,
    device: cuda.Device | None = None,
    sample_blocks: int | str = 1,
) -> Session:
    # A device of its own: addresses, and so traces, depend on nothing that ran before.
    device = device or cuda.Device()
    device._core.records_gaps = False  # as on a GPU, which has none
    if machine_code is None:
        module = cuda.compile(_FOLDER / stem / f"{stem}.ptx", device=device)
    else:
        if machine_code not in machine_codes():
            raise not_one_of("machine_code", machine_code, machine_codes())
        packed = (_FOLDER / stem / f"{stem}.{machine_code}.sass.gz").read_bytes()
        listing = gzip.decompress(packed).decode()
        module = cuda.MachineModule(listing, f"{stem}.{machine_code}.sass", device)
    return Session(module, trace=trace, workers=workers, sample_blocks=sample_blocks)


def _prepare(
    name: str,
    size: str | Parameters,
    seed: int,
    *,
    trace: bool,
    machine_code: str | None = None,
    workers: int | None = None,
    device: cuda.Device | None = None,
    sample_blocks: int | str = 1,
) -> tuple[Workload, Session, Parameters, Arrays]:
    stem, workload = _find(name)
    parameters = workload.parameters(size)
    session = _session(
        stem,
        trace=trace,
        machine_code=machine_code,
        workers=workers,
        device=device,
        sample_blocks=sample_blocks,
    )
    return workload, session, parameters, _inputs(workload, parameters, seed)


def _inputs(workload: Workload, parameters: Parameters, seed: int) -> Arrays:
    generator = np.random.default_rng(as_integer("seed", seed, 0, 2**63 - 1))
    inputs = workload.make_inputs(parameters, generator)
    for array in inputs.values():
        array.setflags(write=False)  # the host program and the reference see the same values
    return inputs
