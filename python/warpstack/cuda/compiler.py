"""Compiling CUDA C++, and loading what is compiled."""

from __future__ import annotations

import os
from collections.abc import Sequence

from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import strictly_checked
from warpstack._util.input_file import MAX_SOURCE_BYTES, read_input
from warpstack.cuda.device import Device, default_device
from warpstack.cuda.kernel import Module
from warpstack.cuda.machine_code import compile_machine_code
from warpstack.cuda.toolchain import (
    check_arguments,
    compile_text,
    find_nvcc,
    find_nvrtc,
    is_ptx,
)
from warpstack.errors import InputError, shown

_SOURCE_SUFFIXES = (".cu", ".cuh", ".ptx", ".sass")


@strictly_checked
def compile(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_75",
    options: Sequence[str] = (),
    compiler: str | None = None,
    device: Device | None = None,
    machine_code: str | None = None,
) -> Module:
    """Compile CUDA C++ for the simulated device, or load ready PTX or machine code.

    Parameters
    ----------
    source
        CUDA C++ or PTX: a path ending in ``.cu`` or ``.ptx``, or the text itself. Also a listing of
        machine code, `MachineModule.listing`, in a file that ends in ``.sass``.
    arch
        What to compile for, ``sm_75`` or later as far as the compiler goes.
    options
        More options of the compiler, such as ``-DN=4`` or ``-I<folder>``. Of PTX made into machine
        code those of ptxas: what follows ``-Xptxas``, ``-G``, ``-maxrregcount``.
    compiler
        ``"nvrtc"`` (NVIDIA's run-time compiler; the extra ``warpstack[cuda]`` installs it), ``"nvcc"``
        (of an installed CUDA toolkit), or None: the first of them that is there; nvcc for sources
        with code of the host (a ``main``, launches, headers such as ``<vector>``), which NVRTC does
        not take.
    device
        Where the module's variables live; the default device by default.
    machine_code
        ``sm_80``, say: run the machine code that NVIDIA's compiler makes for this architecture,
        which `arch` then need not name, instead of PTX. Needs nvdisasm (package
        ``nvidia-cuda-nvdisasm``).

    Raises
    ------
    InputError
        If the file cannot be read, no compiler is found, the source has an error (the compiler's
        messages follow), or the PTX or the machine code cannot be read.
    """
    check_arguments(arch, tuple(options), compiler)
    text, file = _read_source(source)
    is_listing = file.endswith(".sass") or text.startswith(".sass ")
    if machine_code is not None or is_listing:
        return compile_machine_code(
            text,
            file,
            machine_code,
            tuple(options),
            compiler,
            device or default_device(),
            is_listing=is_listing,
        )
    if not is_ptx(text):
        text = compile_text(text, file, arch, tuple(options), compiler)
    return Module(text, file, device or default_device())


def _read_source(source: str | os.PathLike[str]) -> tuple[str, str]:
    is_text = isinstance(source, str) and (
        "\n" in source or "{" in source or not source.endswith(_SOURCE_SUFFIXES)
    )
    if is_text:
        text = str(source)
        if not text.strip():
            raise InputError("compile: the source is empty")
        if "\n" not in text and "{" not in text and ";" not in text:
            raise InputError(
                f"compile: {shown(text)} is neither source text nor a path that ends in "
                f"{', '.join(_SOURCE_SUFFIXES)}"
            )
        return text, "<source>"
    path = as_path("compile", source)
    try:
        data = read_input(path, "source", MAX_SOURCE_BYTES)
        text = data.decode("utf-8-sig", "replace")  # editors may put a mark of the order of bytes
        return text.replace("\r\n", "\n").replace("\r", "\n"), printable(path)
    except OSError as error:
        raise InputError(f"{printable(path)}: {error.strerror or error}") from None


def compilers() -> list[str]:
    """Return which of the compilers of `compile` are there, in the order in which it looks."""
    found = {"nvrtc": find_nvrtc(), "nvcc": find_nvcc()}
    return [name for name, place in found.items() if place is not None]
