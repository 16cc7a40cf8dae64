"""Modules of machine code (SASS), which run like those of PTX."""

from __future__ import annotations

import os
import re

import pandas as pd

from warpstack import _core
from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import strictly_checked
from warpstack._util.input_file import MAX_SOURCE_BYTES, read_input
from warpstack.cuda.device import Device, default_device
from warpstack.cuda.disassembly import Types, listing_of
from warpstack.cuda.kernel import Module
from warpstack.cuda.toolchain import compile_both
from warpstack.errors import InputError, shown


class MachineModule(Module):
    """Machine code of a CUDA source, a PTX file or a cubin on a device.

    Made by `compile` with ``machine_code=`` and by `load_cubin`. Its kernels launch like those of
    PTX; the opcodes, registers and addresses of their traces are those of the machine code.
    """

    _remedy = "pickle its text, MachineModule.listing, and compile that again"

    def _load(self, text: str) -> None:
        self.listing = text
        self.ptx = ""
        module = _core.SassModule(text, self.file)
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
    source: str | os.PathLike[str] | bytes, *, device: Device | None = None
) -> MachineModule:
    """Load machine code that is compiled already.

    Parameters
    ----------
    source
        A cubin: its path, or its bytes.
    device
        Where the module's variables live; the default device by default.

    Notes
    -----
    A cubin says how large the parameters of its kernels are, not of which types: pass numbers of
    NumPy, whose types are known, rather than those of Python.

    Raises
    ------
    InputError
        If the file cannot be read, is not a cubin, or there is no nvdisasm.
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
    return MachineModule(listing_of(data, file), file, device or default_device())


def compile_machine_code(
    text: str,
    file: str,
    arch: str | None,
    options: tuple[str, ...],
    compiler: str | None,
    device: Device,
) -> MachineModule:
    """Return a module of the machine code of CUDA C++, PTX, or a listing."""
    if text.startswith(".sass "):
        module = MachineModule(text, file, device)
        if arch not in (None, module.target):
            raise InputError(f"{file}: it is machine code for {module.target}, not for {arch}")
        return module
    if arch is None or re.fullmatch(r"sm_\d+[a-z]?", arch) is None:
        raise InputError(f"compile: machine_code = {shown(arch)} is not like sm_80")
    ptx, cubin = compile_both(text, file, arch, options, compiler)
    return MachineModule(listing_of(cubin, file, parameter_types(ptx, file)), file, device)


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
