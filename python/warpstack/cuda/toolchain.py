"""NVIDIA's compilers: CUDA C++ to PTX and machine code, with NVRTC, nvcc and ptxas."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpstack._util.arguments import printable
from warpstack.cuda.headers import HEADERS
from warpstack.errors import InputError, not_one_of, shown


def is_ptx(text: str) -> bool:
    """Return whether a text is PTX: whether it begins like it, behind comments."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).lstrip("\0 \t\r\n")
    return bare.startswith(".version")


def target_number(what: str, target: str) -> int:
    """Return 80 for sm_80; `what` names the argument in messages."""
    match = re.fullmatch(r"sm_(\d{1,3})[a-z]?", target)
    if match is None:
        raise InputError(f"{what} = {shown(target)} is not like sm_80")
    return int(match[1])


#: Options that choose what `compile` chooses by its arguments, and those that make no PTX.
_ARCHITECTURE_OPTIONS = ("-arch", "--gpu-architecture", "-gencode", "--generate-code")
_LINK_TIME_OPTIONS = ("-dlto", "--dlink-time-opt", "-lto", "--lto")


def check_arguments(arch: str, options: tuple[str, ...], compiler: str | None) -> None:
    """Check arguments of `warpstack.cuda.compile`, used or not."""
    if re.fullmatch(r"(sm|compute)_\d+[a-z]?", arch) is None:
        raise InputError(f"compile: arch = {shown(arch)} is not like sm_75")
    if compiler not in (None, "nvrtc", "nvcc"):
        raise not_one_of("compile: compiler", compiler, ("nvrtc", "nvcc"))
    for option in options:
        name = re.split(r"[=\s]", option, maxsplit=1)[0]
        if name in _ARCHITECTURE_OPTIONS:
            raise InputError(
                f"compile: the option {shown(option)} is not taken; say arch= or machine_code="
            )
        if name in _LINK_TIME_OPTIONS:
            raise InputError(
                f"compile: with the option {shown(option)} the compiler makes neither PTX nor "
                "machine code; leave it out"
            )


def compile_text(
    text: str, file: str, arch: str, options: tuple[str, ...], compiler: str | None
) -> str:
    """Return the PTX of a source. The arguments are those of `warpstack.cuda.compile`."""
    arch = arch.replace("sm_", "compute_")
    if compiler != "nvcc":
        library = find_nvrtc()
        if library is not None:
            try:
                return _compile_with_nvrtc(library, text, file, arch, options)[0]
            except InputError as error:
                if compiler is not None or (host := host_code(text)) is None:
                    raise
                if find_nvcc() is None:
                    raise _of_the_host(file, host, error) from None
        elif compiler == "nvrtc":
            raise InputError(_NO_COMPILER.format(what="NVRTC is not"))
    nvcc = find_nvcc()
    if nvcc is None:
        raise InputError(_NO_COMPILER.format(what="no CUDA compiler is"))
    return _compile_with_nvcc(nvcc, text, file, arch, options)


#: Text that only code of the host has: a main function, launches, and headers of C and C++ with classes and
#: functions of the host.
_OF_HOST = re.compile(
    r"\bmain\s*\(|<<<|^[ \t]*#[ \t]*include[ \t]*<([a-z_]+(?:\.h)?)>", re.MULTILINE
)
#: Headers that are CUDA's own although they are named like those of C and C++.
_CUDA_HEADER = re.compile(r"cu|nv|device_|vector_|mma|texture_|surface_|cooperative_|math_|host_")


def host_code(text: str) -> str | None:
    """Return the first line of a source that only a compiler of host code takes, or None."""
    bare = re.sub(
        r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"",
        lambda found: "\n" * found[0].count("\n"),
        text,
        flags=re.DOTALL,
    )
    for found in _OF_HOST.finditer(bare):
        header = found[1]
        if header is None or not (header in HEADERS or _CUDA_HEADER.match(header)):
            number = bare.count("\n", 0, found.start())
            line = text.split("\n")[number].strip()
            return f"line {number + 1}, {shown(line)}"
    return None


def _of_the_host(file: str, host: str, error: InputError) -> InputError:
    return InputError(
        f"{file}, {host}: NVIDIA's run-time compiler does not take code of the host; put nvcc on the "
        f"PATH, or pass the kernels without it\n{error}"
    )


_NO_COMPILER = (
    "compile: {what} found; install NVIDIA's run-time compiler with: pip install 'warpstack[cuda]' "
    "(or put nvcc on the PATH, or pass ready PTX)"
)

#: What to do elsewhere: the stand-ins for NVIDIA's libraries are made for the loader of Linux.
NEEDS_LINUX = (
    "CUDA programs run on Linux only, on Windows in WSL; trace the program there with: "
    "warpstack trace -o FOLDER, and copy FOLDER here"
)


def find_nvcc() -> str | None:
    """Return the path of nvcc, of an installed CUDA toolkit or of NVIDIA's packages, or None."""
    return _find_tool("nvcc")


def _find_tool(name: str) -> str | None:
    packages = [package / "bin" / name for package in nvidia_packages()]
    for candidate in (name, f"/usr/local/cuda/bin/{name}", *map(str, packages)):
        found = shutil.which(candidate)
        if found is not None:
            return found
    return None


@contextlib.contextmanager
def _run_time_library(nvcc: str) -> Iterator[list[str]]:
    """Give the options with which nvcc finds the library that programs link to.

    NVIDIA's packages have it under its full name only, which linkers do not look for.
    """
    libraries = Path(nvcc).resolve().parents[1] / "lib"
    versions = sorted(libraries.glob("libcudart.so.*"))
    if not versions or (libraries / "libcudart.so").exists():
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="warpstack-") as folder:
        (Path(folder) / "libcudart.so").symlink_to(versions[-1])
        yield [f"-L{folder}"]


#: What sources have that compile for compute capability 9.0 alone: clusters, instructions as PTX.
_OF_HOPPER = re.compile(r"cluster|\basm\b|barrier")


def build_program(
    source: str | os.PathLike[str], target: str | os.PathLike[str], options: Sequence[str] = ()
) -> None:
    """Build a program of a source with a ``main``, so that it runs without a GPU: see `trace_program`.

    Raises
    ------
    InputError
        If nvcc is not there or the source does not compile; the message has the first error.
    """
    nvcc = find_nvcc()
    if nvcc is None and sys.platform != "linux":
        raise InputError(f"{printable(source)}: {NEEDS_LINUX}")
    if nvcc is None:
        raise InputError(
            f"{printable(source)}: to build a program needs nvcc; install it with: pip install "
            "'warpstack[cuda]' (or put a CUDA toolkit's on the PATH)"
        )
    with _run_time_library(nvcc) as libraries:

        def build(arch: str) -> subprocess.CompletedProcess[str]:
            code = ["-gencode", f"arch={arch},code={arch}"]
            command = [nvcc, "-O3", "-cudart", "shared", *libraries, *code, "-lineinfo", *options]
            return subprocess.run(
                [*command, os.fspath(source), "-o", os.fspath(target)],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )

        result = build("compute_75")
        if result.returncode != 0 and _OF_HOPPER.search(Path(source).read_text(errors="replace")):
            newer = (build(arch) for arch in ("compute_90", "compute_90a"))
            result = next((one for one in newer if one.returncode == 0), result)
    if result.returncode != 0:
        lines = [line for line in (result.stderr + result.stdout).splitlines() if line.strip()]
        words = ("error", "undefined reference")
        errors = [line for line in lines if any(word in line.lower() for word in words)]
        errors = errors or lines or ["nvcc failed"]
        more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 else ""
        raise InputError(f"{printable(source)} does not compile: {errors[0].strip()}{more}")


def nvidia_packages() -> Iterator[Path]:
    """Folders that NVIDIA's packages from PyPI have installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from sorted(Path(root).iterdir(), reverse=True)


@functools.cache
def find_nvrtc() -> ctypes.CDLL | None:
    """Return NVRTC, or None."""
    candidates = [
        str(library)
        for package in nvidia_packages()
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
    folders = [package / "include" for package in nvidia_packages()]
    folders.append(Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include")
    found = [folder for folder in folders if (folder / "cuda_runtime.h").exists()]
    # libcu++, which cooperative groups include, has a folder of its own from CUDA 13 on.
    found += [folder / "cccl" for folder in found if (folder / "cccl" / "cuda").is_dir()]
    return [str(folder) for folder in found]


def compile_both(
    text: str, file: str, arch: str, options: tuple[str, ...], compiler: str | None
) -> tuple[str, bytes]:
    """Return the PTX and the cubin of a source, or the cubin alone of a PTX text beside it."""
    if is_ptx(text):
        return text, assemble(text, file, arch, options)
    library = find_nvrtc() if compiler != "nvcc" else None
    if library is not None:
        try:
            return _compile_with_nvrtc(library, text, file, arch, options)
        except InputError as error:
            if compiler is not None or (host := host_code(text)) is None:
                raise
            if find_nvcc() is None:
                raise _of_the_host(file, host, error) from None
            compiler = "nvcc"
    ptx = compile_text(text, file, arch, options, compiler)
    return ptx, assemble(ptx, file, arch, options)


#: Options of the compiler that ptxas has, too, with what it calls them.
_OF_PTXAS = {
    "-G": "--device-debug",
    "--device-debug": "--device-debug",
    "-maxrregcount": "--maxrregcount",
    "--maxrregcount": "--maxrregcount",
}


def ptxas_options(options: tuple[str, ...]) -> list[str]:
    """Return what options of the compiler say to ptxas: those behind -Xptxas, -G, -maxrregcount."""
    found: list[str] = []
    left = list(options)
    while left:
        name, separator, value = left.pop(0).partition("=")
        if not separator and name in (
            "-Xptxas",
            "--ptxas-options",
            "-maxrregcount",
            "--maxrregcount",
        ):
            value = left.pop(0) if left else ""
        if name in ("-Xptxas", "--ptxas-options"):
            found += [option for option in value.split(",") if option]
        elif name in _OF_PTXAS:
            found.append(_OF_PTXAS[name] + (f"={value}" if value else ""))
    return found


#: What ptxas says of PTX of a newer compiler, and where PTX has its version.
_OLDER_PTXAS = re.compile(r"Unsupported \.version [\d.]+; current version is '([\d.]+)'")
_PTX_VERSION = re.compile(r"^(\s*\.version\s+)[\d.]+", re.MULTILINE)


def assemble(ptx: str, file: str, arch: str, options: tuple[str, ...] = ()) -> bytes:
    """Return the cubin that ptxas makes of PTX; `options` are those of the compiler."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise InputError(
            f"{file}: ptxas is needed to make machine code of PTX and was not found; install it "
            "with: pip install nvidia-cuda-nvcc (or put it on the PATH, or pass CUDA C++)"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "module.ptx", Path(folder) / "module.cubin"
        source.write_text(ptx, encoding="utf-8")
        own = ptxas_options(options)
        command = [ptxas, f"-arch={arch}", *own, str(source), "-o", str(target)]
        if (
            ".loc" in ptx and "--device-debug" not in own
        ):  # without lines ptxas 13.0 may crash when asked for them
            command.insert(1, "-lineinfo")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if known := _OLDER_PTXAS.search(result.stderr):
            # Compilers write the newest version that they know, and seldom use what is new in it.
            source.write_text(_PTX_VERSION.sub(rf"\g<1>{known[1]}", ptx, count=1), encoding="utf-8")
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            log = (result.stderr or result.stdout).strip().replace(str(source), file)
            raise InputError(f"{file}: ptxas does not make machine code for {arch} of it:\n{log}")
        return target.read_bytes()


#: A file of source in PTX.
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"((?:[^"\\]|\\.)*)"[ \t]*$', re.MULTILINE)


def with_files(ptx: str, compiled: str, file: str) -> str:
    """Return PTX whose `.file` lines say where the files are, when they were changed, and their sizes.

    The last two arguments are those of `place_of_source`.
    """

    def place(found: re.Match[str]) -> str:
        name, time, size = place_of_source(re.sub(r"\\(.)", r"\1", found[2]), compiled, file)
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'{found[1]}"{escaped}"' + (f", {time}, {size}" if time else "")

    return _FILE.sub(place, ptx)


def place_of_source(name: str, compiled: str, file: str) -> tuple[str, int, int]:
    """Return where a file is, when it was changed last in whole seconds since 1970, and its size.

    Both are 0 where the name has no folder, or there is no such file.

    Parameters
    ----------
    name
        What the compiler's output calls the file.
    compiled
        What the compiler was told to compile, in the working folder where it has no other.
    file
        What that is: a path, or a name such as ``<string>``, which no file has.
    """
    if name in (compiled, os.path.abspath(compiled)):
        name = Path(name).name if file.startswith("<") else str(Path(file).resolve())
    if not os.path.isabs(name):
        return name, 0, 0
    try:
        facts = Path(name).stat()
    except (OSError, ValueError):
        return name, 0, 0
    return os.path.normpath(name), int(facts.st_mtime), facts.st_size


def find_ptxas() -> str | None:
    """Return the path of ptxas, of an installed CUDA toolkit or of NVIDIA's packages, or None."""
    return _find_tool("ptxas")


def name_for_compiler(file: str) -> str:
    """Return what a compiler is told that a source is called."""
    return "source.cu" if file.startswith("<") else Path(file).name


def _compile_with_nvrtc(
    library: ctypes.CDLL, text: str, file: str, arch: str, options: tuple[str, ...]
) -> tuple[str, bytes]:
    """Return the PTX and the cubin, which is empty unless `arch` is that of a real GPU."""
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code != 0:
            message = library.nvrtcGetErrorString(code).decode()
            raise InputError(f"{file}: NVRTC: {message}")

    def result_of(kind: str) -> bytes:
        size = ctypes.c_size_t()
        check(getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(getattr(library, f"nvrtcGet{kind}")(program, buffer))
        return buffer.raw

    def text_of(kind: str) -> str:
        return result_of(kind).split(b"\0", 1)[0].decode("utf-8", "replace")

    major, minor = ctypes.c_int(), ctypes.c_int()
    check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    name = name_for_compiler(file)
    texts = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS.values()))
    names = (ctypes.c_char_p * len(HEADERS))(*(header.encode() for header in HEADERS))
    check(
        library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), name.encode(), len(HEADERS), texts, names
        )
    )
    try:
        all_options = [f"--gpu-architecture={arch}", "-lineinfo", "--std=c++17", *options]
        if (major.value, minor.value) >= (11, 5) and sys.platform == "linux":
            all_options.append("--device-int128")  # nvcc takes __int128 without an option
        all_options += [f"-I{folder}" for folder in _include_folders()]
        if not file.startswith("<"):
            all_options.append(f"-I{Path(file).resolve().parent}")
        encoded = (ctypes.c_char_p * len(all_options))(*(o.encode() for o in all_options))
        code = library.nvrtcCompileProgram(program, len(all_options), encoded)
        if code != 0:
            log = text_of("ProgramLog").strip()
            raise InputError(f"{file}: the CUDA source does not compile:\n{log}")
        ptx = with_files(text_of("PTX"), name, file)
        return ptx, result_of("CUBIN") if arch.startswith("sm_") else b""
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _compile_with_nvcc(nvcc: str, text: str, file: str, arch: str, options: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        name = name_for_compiler(file)
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
        return with_files(target.read_text(encoding="utf-8"), str(source), file)
