"""Modules of machine code (SASS), which run like those of PTX."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from warpstack import _core
from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import strictly_checked
from warpstack._util.input_file import MAX_SOURCE_BYTES, read_input
from warpstack.cuda.cubin import Cubin, SourceFile, is_cubin
from warpstack.cuda.device import Device, default_device
from warpstack.cuda.disassembly import FIRST_ARCH, Types, find_nvdisasm, listing_of
from warpstack.cuda.kernel import Kernel, Module
from warpstack.cuda.toolchain import (
    assemble,
    compile_both,
    find_ptxas,
    name_for_compiler,
    place_of_source,
    target_number,
)
from warpstack.errors import InputError, warn

#: Notes that were given, each once in a process.
_noted: set[str] = set()


class MachineCodeWarning(UserWarning):
    """PTX runs where machine code would, because a tool is not installed."""


class MachineModule(Module):
    """Machine code of a CUDA source, a PTX file or a cubin on a device.

    Made by `compile` with ``machine_code=`` and by `load_cubin`. Its kernels launch like those of
    PTX; the opcodes, registers and addresses of their traces are those of the machine code.
    """

    _remedy = "pickle its text, MachineModule.listing, and compile that again"

    @strictly_checked
    def __init__(self, text: str, file: str, device: Device, *, of_cubin: bool = False) -> None:
        self._of_cubin = of_cubin  # so that messages name places in it, not in its listing
        super().__init__(text, file, device)

    def _load(self, text: str) -> None:
        self.listing = text
        self.ptx = ""
        module = _core.SassModule(text, self.file, self._of_cubin)
        self._text = module
        self._core = _core.SassLoadedModule(module, self.device._core)

    @property
    def machine_code(self) -> str:
        """The architecture whose code it is, for example ``sm_80``."""
        return self.target

    @strictly_checked
    def instructions(self, kernel: str) -> pd.DataFrame:
        """Return the instructions of a kernel with their control fields.

        Parameters
        ----------
        kernel
            Its name, as for `kernel`.

        Returns
        -------
        DataFrame
            A row per instruction: ``address`` (bytes), ``line``, ``guard`` (a predicate, or empty),
            ``opcode``, ``operands``, and what the instruction says to the issue logic: ``stall``
            (cycles), ``yield``, ``write_barrier`` and ``read_barrier`` (0 to 5; 7: none),
            ``wait_mask`` and ``reuse`` (bits).

        Raises
        ------
        InputError
            If there is no such kernel.
        """
        rows = self._text.body(self._resolve(kernel))
        for row in rows:
            row["operands"] = ",".join(row["operands"])
        columns = ["address", "line", "guard", "opcode", "operands", "stall", "yield"]
        columns += ["write_barrier", "read_barrier", "wait_mask", "reuse"]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        return f"MachineModule({self.file!r}, {self.target}, kernels={list(self.kernels)})"


@strictly_checked
def load_cubin(
    source: str | os.PathLike[str] | bytes,
    *,
    machine_code: str | None = None,
    device: Device | None = None,
) -> MachineModule:
    """Load machine code that is compiled already.

    Parameters
    ----------
    source
        A cubin, a fat binary, or a program or library with one in it: its path, or its bytes.
    machine_code
        ``sm_80``, say: which machine code of a fat binary; needed if there is more than one.
    device
        Where the module's variables live; the default device by default.

    Notes
    -----
    A cubin says how large the parameters of its kernels are, not of which types: pass numbers of
    NumPy, whose types are known, rather than those of Python.

    Raises
    ------
    InputError
        If the file cannot be read, has no machine code, or none or several modules for this
        architecture, is damaged, or there is no nvdisasm.
    """
    if isinstance(source, bytes):
        data, file = source, "<cubin>"
    else:
        path = as_path("load_cubin", source)
        file = printable(path)
        try:
            data = read_input(path, "cubin", MAX_SOURCE_BYTES)
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from None
    data = _cubin_in(data, file, machine_code)
    return MachineModule(listing_of(data, file), file, device or default_device(), of_cubin=True)


def _cubin_in(data: bytes, file: str, machine_code: str | None) -> bytes:
    """Return the only cubin with kernels for an architecture of a file, which may be one itself."""
    target = (
        None if machine_code is None else target_number("load_cubin: machine_code", machine_code)
    )
    if is_cubin(data):
        version = Cubin(data, file).version
        if target not in (None, version):
            raise InputError(f"{file}: it is machine code for sm_{version}, not for {machine_code}")
        return data
    try:
        targets = _core.fat_binary_targets(data)
        names = ", ".join(f"sm_{number}" for number in targets)
        if target is None and len(targets) == 1:
            target = targets[0]
        if not targets:
            raise InputError(
                "it is neither a cubin (an ELF file for NVIDIA GPUs), nor is there machine code in it; "
                "make a cubin with nvcc -cubin -arch=sm_80, or build the program with nvcc -arch=sm_80"
            )
        if target is None:
            raise InputError(
                f"it has machine code for {names}: choose one, such as machine_code='sm_{targets[0]}'"
            )
        if target not in targets:
            raise InputError(
                f"it has machine code for {names}, not for {machine_code}; build it with nvcc "
                f"-arch={machine_code}"
            )
        cubins = _core.fat_binary_cubins(data, target)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    modules = [cubin for cubin in cubins if Cubin(cubin, file).kernels]
    if len(modules) != 1:
        raise InputError(
            f"{file}: it has {len(modules)} modules with kernels for sm_{target}, not one; take them "
            "out with cuobjdump -xelf all and load one of these files"
        )
    return modules[0]


def compile_machine_code(
    text: str,
    file: str,
    arch: str | None,
    options: tuple[str, ...],
    compiler: str | None,
    device: Device,
    *,
    is_listing: bool,
) -> MachineModule:
    """Return a module of the machine code of CUDA C++, PTX, or a listing."""
    if is_listing:
        module = MachineModule(text, file, device)
        # A listing does not say whether its code is for sm_90 or sm_90a.
        if arch is not None and re.sub(r"[a-z]$", "", arch) != module.target:
            raise InputError(f"{file}: it is machine code for {module.target}, not for {arch}")
        return module
    if target_number("compile: machine_code", str(arch)) < FIRST_ARCH:
        raise InputError(f"compile: machine code for {arch} is not read; choose sm_75 to sm_120")
    ptx, cubin = compile_both(text, file, str(arch), options, compiler)

    def place(source: SourceFile) -> SourceFile:  # NVRTC leaves out time and size
        known = place_of_source(source.name, name_for_compiler(file), file)
        return source if source.time else SourceFile(*known)

    listing = listing_of(cubin, file, parameter_types(ptx, file), place)
    return MachineModule(listing, file, device, of_cubin=True)


def parameter_types(ptx: str, file: str) -> Types:
    """Return the types of the parameters of each kernel of a PTX text."""
    module = _core.PtxModule(ptx, file)
    return {
        kernel: [
            "struct" if parameter["is_array"] else parameter["type"]
            for parameter in module.parameters(kernel)
        ]
        for kernel in module.kernels
    }


@dataclass(frozen=True)
class Loaded:
    """A kernel that another compiler made, and which of its codes runs.

    Attributes
    ----------
    kernel
        Of a `MachineModule` or a module of PTX.
    code
        ``sm_80``, say, or ``ptx``, as `KernelTrace.code` has it.
    why_ptx
        Why it is not the machine code; empty where it is.
    """

    kernel: Kernel
    code: str
    why_ptx: str


def load_kernel(
    what: str,
    name: str,
    ptx: str,
    target: str,
    device: Device,
    machine_code: bool | None,
    cubin: bytes | None = None,
) -> Loaded:
    """Load the machine code of a kernel where it is known how to execute it, else its PTX.

    Parameters
    ----------
    what
        The function that was called, for messages.
    name
        Of the kernel, which is the first one of its module, for messages.
    ptx, cubin
        Its code; without a cubin, ptxas makes one of the PTX.
    target
        The architecture, ``sm_80``, say.
    device
        Where the kernel runs.
    machine_code
        True: its machine code, or an error; False: its PTX; None: its machine code if all that this
        needs is there and every instruction is one that is executed, else its PTX. `MachineCodeWarning`
        tells once that a tool is missing, since another machine may have it.

    Raises
    ------
    InputError
        If neither runs, or, with `machine_code`, its machine code does not.
    """

    def of_ptx(why: str) -> Loaded:
        module = Module(ptx, name, device)
        return Loaded(module.kernel(module.kernels[0]), "ptx", why)

    if machine_code is False:
        return of_ptx("machine_code is False")
    missing = _missing_tool(needs_ptxas=cubin is None)
    if missing and machine_code is None:
        if missing not in _noted:
            _noted.add(missing)
            warn(
                f"{what}: PTX runs, whose times differ from those of machine code: {missing}, or say "
                "machine_code=False",
                MachineCodeWarning,
            )
        return of_ptx(missing)
    try:
        if missing:
            raise InputError(missing)
        module = MachineModule(
            _listing(_assembled(ptx, name, target) if cubin is None else cubin, name, ptx),
            name,
            device,
            of_cubin=True,
        )
        return Loaded(module.kernel(module.kernels[0]), module.machine_code, "")
    except InputError as error:
        if machine_code:
            raise InputError(
                f"{what}: machine_code = True: {error}; machine_code=None runs the PTX where machine "
                "code does not run"
            ) from None
        return of_ptx(str(error))


def _missing_tool(*, needs_ptxas: bool) -> str:
    """Return what to install so that machine code runs, or nothing."""
    tools: list[tuple[str, str, Callable[[], str | None]]]
    tools = [("nvdisasm", "nvidia-cuda-nvdisasm", find_nvdisasm)]
    if needs_ptxas:
        tools.append(("ptxas", "nvidia-cuda-nvcc", find_ptxas))
    lacking = [(tool, package) for tool, package, find in tools if find() is None]
    if not lacking:
        return ""
    names = " and ".join(tool for tool, _ in lacking)
    packages = " ".join(package for _, package in lacking)
    verb = "is" if len(lacking) == 1 else "are"
    return f"{names} {verb} not installed; pip install {packages}"


@functools.lru_cache(maxsize=64)
def _listing(cubin: bytes, name: str, ptx: str) -> str:
    """Return a listing, kept for launches of the same kernel."""
    return listing_of(cubin, name, parameter_types(ptx, name))


@functools.lru_cache(maxsize=64)
def _assembled(ptx: str, name: str, target: str) -> bytes:
    """Return what ptxas makes, kept for launches of the same kernel."""
    return assemble(ptx, name, target)
