"""The libraries of a CUDA program, read from its file before it starts.

NVIDIA's libraries need a GPU. warpstack has stand-ins for some; for the others it says at the start,
and by name, that the program will not get far.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import re
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack.errors import InputError, TraceWarning, warn

__all__ = ["check_libraries", "lapack_library"]

#: NVIDIA's libraries that need a GPU: what their files are called, how the names of their functions
#: begin, and their own name.
_GPU_LIBRARIES = tuple(
    (re.compile(rf"{file}\.so(\..*)?"), re.compile(functions.encode()), name)
    for file, functions, name in (
        ("libcublas", "cublas(?!Lt)", "cuBLAS"),
        ("libcublasLt", "cublasLt", "cuBLASLt"),
        ("libcudnn[a-z_]*", "cudnn", "cuDNN"),
        ("libcufft", "cufft", "cuFFT"),
        ("libcufftw", "fftw", "cuFFTW"),
        ("libcurand", "curand", "cuRAND"),
        ("libcusolver(Mg)?", "cusolver", "cuSOLVER"),
        ("libcusparse", "cusparse(?!Lt)", "cuSPARSE"),
        ("libcusparseLt", "cusparseLt", "cuSPARSELt"),
        ("libcutensor(Mg)?", "cutensor", "cuTENSOR"),
        ("libnccl", "nccl|pnccl", "NCCL"),
        ("libnpp[a-z]*", "npp", "NPP"),
        ("libnvjpeg", "nvjpeg", "nvJPEG"),
    )
)
#: The stand-in has only those functions of cuBLASLt that programs call in their set-up.
_LT_LIBRARY = re.compile(r"libcublasLt\.so(\..*)?")
_LT_LACKS = re.compile(rb"cublasLt(?!Create$|Destroy$|Get)")
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
#: Files listed in others are followed this far.
_MOST_FILES = 500

_SECTION_DYNAMIC, _SECTION_DYNAMIC_SYMBOLS = 6, 11
_NEEDED, _RPATH, _RUNPATH = 1, 15, 29


@dataclass
class _Linked:
    """The fields of a program or a library that the dynamic linker reads."""

    needed: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # DT_RPATH and DT_RUNPATH
    undefined: list[bytes] = field(default_factory=list)  # symbols
    sections: set[bytes] = field(default_factory=set)


def check_libraries(program: str, stand_ins: Path) -> None:
    """Say what a program needs that does not run without a GPU.

    Parameters
    ----------
    program
        What is to be started; found on the PATH as the system does. A script is not looked into.
    stand_ins
        The folder of warpstack's own libraries.

    Raises
    ------
    InputError
        If the program calls a library without a stand-in, or if it contains the CUDA runtime rather
        than load it, and does not call the driver (libcuda) itself.

    Warns
    -----
    TraceWarning
        If it calls cuBLASLt.
    """
    found = shutil.which(program)
    if found is None:
        return
    missing: dict[str, str] = {}  # files and what to say of them
    sections: set[bytes] = set()
    runtime = products = False
    for path, linked in _linked_files(Path(found), stand_ins):
        sections |= linked.sections
        # A program that calls the driver need not call the runtime that nvcc has linked into it.
        runtime = runtime or any(
            name.startswith(("libcudart.so", "libcuda.so")) for name in linked.needed
        )
        for name in linked.needed:
            if (stand_ins / name).exists():
                if _LT_LIBRARY.fullmatch(name):
                    products = products or any(map(_LT_LACKS.match, linked.undefined))
                continue
            for file, functions, title in _GPU_LIBRARIES:
                if file.fullmatch(name) and any(map(functions.match, linked.undefined)):
                    through = "" if path == Path(found) else f" for {printable(path.name)}"
                    missing[name] = f"{title} ({printable(name)}{through})"
    if missing:
        raise InputError(
            f"{printable(program)}: the program needs {_joined(missing.values())}, for which warpstack "
            "has no stand-in and which does not run without a GPU; build it without, or trace the part "
            "that does not need it"
        )
    if (b"__nv_relfatbin" in sections or b".nv_fatbin" in sections) and not runtime:
        raise InputError(
            f"{printable(program)}: the CUDA runtime is linked into the program, as nvcc does unless told "
            "otherwise, and not loaded as a library; build it with nvcc -cudart shared (and -gencode "
            "arch=compute_75,code=compute_75)"
        )
    if products:
        text = "calls cuBLASLt, of which only handles are supported: its products are refused"
        warn(f"{printable(program)}: the program {text}", TraceWarning)


def lapack_library() -> Path | None:
    """Return the LAPACK that the stand-in for cuSOLVER calls, or None if it is not installed.

    It is that of the package scipy-openblas32, which is not imported.
    """
    found = importlib.util.find_spec("scipy_openblas32")
    for folder in (found and found.submodule_search_locations) or ():
        library = Path(folder, "lib", "libscipy_openblas.so")
        if library.is_file():
            return library
    return None


def _joined(texts: Iterable[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _linked_files(program: Path, stand_ins: Path) -> Iterator[tuple[Path, _Linked]]:
    """Yield a program and the libraries that it loads, but neither NVIDIA's nor ours."""
    waiting, seen = [program], {program}
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop()
        linked = _read(path)
        if linked is None:
            continue
        yield path, linked
        for name in linked.needed:
            if any(file.fullmatch(name) for file, _, _ in _GPU_LIBRARIES):
                continue
            found = _search(name, path, linked, stand_ins)
            if found is not None and found not in seen and found.parent != stand_ins:
                seen.add(found)
                waiting.append(found)


def _search(name: str, user: Path, linked: _Linked, stand_ins: Path) -> Path | None:
    """Find a library as the dynamic linker does."""
    if "/" in name:
        return Path(name) if os.path.isfile(name) else None
    origin = str(user.resolve().parent)
    own = [re.sub(r"\$ORIGIN|\$\{ORIGIN\}", lambda _: origin, part) for part in linked.folders]
    given = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    for folder in (str(stand_ins), *given, *own, *_system_folders()):
        if folder and os.path.isfile(os.path.join(folder, name)):
            return Path(folder, name)
    return None


def _system_folders() -> list[str]:
    """Return the folders that the system's linker knows."""
    files = [Path("/etc/ld.so.conf")]
    with_others = Path("/etc/ld.so.conf.d")
    if with_others.is_dir():
        files += sorted(with_others.glob("*.conf"))
    folders = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        folders += [line.strip() for line in lines if line.startswith("/")]
    return [*folders, *_DEFAULT_FOLDERS]


def _read(path: Path) -> _Linked | None:
    """Read an ELF file of 64 bits; None if it is none, or damaged."""
    try:
        with path.open("rb") as file:
            if file.read(6) != b"\x7fELF\x02\x01":
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(data)
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        return None


def _parse(data: mmap.mmap) -> _Linked:
    table = struct.unpack_from("<Q", data, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    # name, type, flags, address, offset, size, link, info, alignment, size of an entry
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]

    def text(section: int, at: int) -> bytes:
        start = sections[section][4] + at
        return data[start : max(data.find(b"\0", start), start)]

    linked = _Linked()
    for name, kind, _, _, offset, length, link, *_ in sections:
        linked.sections.add(text(names, name))
        if kind == _SECTION_DYNAMIC:
            for tag, value in struct.iter_unpack("<qQ", data[offset : offset + length // 16 * 16]):
                if tag == _NEEDED:
                    linked.needed.append(os.fsdecode(text(link, value)))
                elif tag in (_RPATH, _RUNPATH):
                    linked.folders += os.fsdecode(text(link, value)).split(":")
        elif kind == _SECTION_DYNAMIC_SYMBOLS:
            entries = data[offset : offset + length // 24 * 24]
            for symbol, _, _, defined, _, _ in struct.iter_unpack("<IBBHQQ", entries):
                if symbol and not defined:
                    linked.undefined.append(text(link, symbol))
    return linked
