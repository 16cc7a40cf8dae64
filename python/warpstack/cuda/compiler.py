"""CUDA C++ to PTX, with NVRTC or nvcc."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import strictly_checked
from warpstack._util.input_file import MAX_SOURCE_BYTES, read_input
from warpstack.cuda.device import Device, default_device
from warpstack.cuda.headers import HEADERS
from warpstack.cuda.kernel import Module
from warpstack.errors import InputError, not_one_of, shown

_SOURCE_SUFFIXES = (".cu", ".cuh", ".ptx")


@strictly_checked
def compile(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_75",
    options: Sequence[str] = (),
    compiler: str | None = None,
    device: Device | None = None,
) -> Module:
    """Compile CUDA C++ for the simulated device, or load ready PTX.

    Parameters
    ----------
    source
        CUDA C++ or PTX: a path ending in ``.cu`` or ``.ptx``, or the text itself.
    arch
        What to compile for, ``sm_75`` or later as far as the compiler goes.
    options
        More options of the compiler, such as ``-DN=4`` or ``-I<folder>``.
    compiler
        ``"nvrtc"`` (NVIDIA's run-time compiler; the extra ``warpstack[cuda]`` installs it), ``"nvcc"``
        (of an installed CUDA toolkit), or None: the first of them that is there.
    device
        Where the module's variables live; the default device by default.

    Raises
    ------
    InputError
        If the file cannot be read, no compiler is found, the source has an error (the compiler's
        messages follow), or the PTX cannot be read.
    """
    text, file = _read_source(source)
    if not _is_ptx(text):
        text = _compile_text(text, file, arch, tuple(options), compiler)
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
        text = data.decode("utf-8", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n"), printable(path)
    except OSError as error:
        raise InputError(f"{printable(path)}: {error.strerror or error}") from None


def _is_ptx(text: str) -> bool:
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).lstrip("\0 \t\r\n")
    return bare.startswith(".version")


def _compile_text(
    text: str, file: str, arch: str, options: tuple[str, ...], compiler: str | None
) -> str:
    if re.fullmatch(r"(sm|compute)_\d+[a-z]?", arch) is None:
        raise InputError(f"compile: arch = {shown(arch)} is not like sm_75")
    if compiler not in (None, "nvrtc", "nvcc"):
        raise not_one_of("compile: compiler", compiler, ("nvrtc", "nvcc"))
    arch = arch.replace("sm_", "compute_")
    if compiler != "nvcc":
        library = _find_nvrtc()
        if library is not None:
            return _compile_with_nvrtc(library, text, file, arch, options)
        if compiler == "nvrtc":
            raise InputError(_NO_COMPILER.format(what="NVRTC is not"))
    nvcc = _find_nvcc()
    if nvcc is None:
        raise InputError(_NO_COMPILER.format(what="no CUDA compiler is"))
    return _compile_with_nvcc(nvcc, text, file, arch, options)


_NO_COMPILER = (
    "compile: {what} found; install NVIDIA's run-time compiler with: pip install 'warpstack[cuda]' "
    "(or put nvcc on the PATH, or pass ready PTX)"
)


def compilers() -> list[str]:
    """Return which of the compilers of `compile` are there, in the order in which it looks."""
    found = {"nvrtc": _find_nvrtc(), "nvcc": _find_nvcc()}
    return [name for name, place in found.items() if place is not None]


def _find_nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def _nvidia_packages() -> Iterator[Path]:
    """Folders that NVIDIA's packages from PyPI have installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from sorted(Path(root).iterdir(), reverse=True)


@functools.cache
def _find_nvrtc() -> ctypes.CDLL | None:
    candidates = [
        str(library)
        for package in _nvidia_packages()
        for library in sorted((package / "lib").glob("libnvrtc.so.*"))
        if "builtins" not in library.name and "alt" not in library.name
    ]
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64" / "libnvrtc.so"
    candidates.append(str(toolkit))
    system = ctypes.util.find_library("nvrtc")
    if system:
        candidates.append(system)
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    return None


def _include_folders() -> list[str]:
    """Return where the headers of CUDA are, for sources that include some."""
    folders = [package / "include" for package in _nvidia_packages()]
    folders.append(Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include")
    return [str(folder) for folder in folders if (folder / "cuda_runtime.h").exists()]


def _compile_with_nvrtc(
    library: ctypes.CDLL, text: str, file: str, arch: str, options: tuple[str, ...]
) -> str:
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code != 0:
            message = library.nvrtcGetErrorString(code).decode()
            raise InputError(f"{file}: NVRTC: {message}")

    def text_of(kind: str) -> str:
        size = ctypes.c_size_t()
        check(getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(getattr(library, f"nvrtcGet{kind}")(program, buffer))
        return buffer.value.decode("utf-8", "replace")

    name = "source.cu" if file.startswith("<") else Path(file).name
    texts = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS.values()))
    names = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS))
    check(
        library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), name.encode(), len(HEADERS), texts, names
        )
    )
    try:
        all_options = [f"--gpu-architecture={arch}", "-lineinfo", "--std=c++17", *options]
        all_options += [f"-I{folder}" for folder in _include_folders()]
        if not file.startswith("<"):
            all_options.append(f"-I{Path(file).resolve().parent}")
        encoded = (ctypes.c_char_p * len(all_options))(*(o.encode() for o in all_options))
        code = library.nvrtcCompileProgram(program, len(all_options), encoded)
        if code != 0:
            log = text_of("ProgramLog").strip()
            raise InputError(f"{file}: the CUDA source does not compile:\n{log}")
        return text_of("PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _compile_with_nvcc(nvcc: str, text: str, file: str, arch: str, options: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        name = "source.cu" if file.startswith("<") else Path(file).name
        source = Path(folder) / name
        source.write_text(text, encoding="utf-8")
        target = Path(folder) / "module.ptx"
        command = [nvcc, "-ptx", "-O3", f"-arch={arch}", "-lineinfo", *options, name, "-o"]
        if not file.startswith("<"):
            command[1:1] = ["-I", str(Path(file).resolve().parent)]
        result = subprocess.run(
            [*command, str(target)], capture_output=True, text=True, cwd=folder, check=False
        )
        if result.returncode != 0:
            log = (result.stderr or result.stdout).strip()
            raise InputError(f"{file}: the CUDA source does not compile:\n{log}")
        return target.read_text(encoding="utf-8")
