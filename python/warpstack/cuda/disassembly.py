"""Listings of machine code: what nvdisasm and the cubin say of a module, in one text.

A listing is what the core reads. It holds everything that running a module needs, so that a machine
without NVIDIA's tools can run it. Its lines are

    .sass 1                             the version of this format; the first line
    .target sm_80
    .file 1 "bfs.cu"
    .section NAME BYTES                 memory or a constant bank, zero where no .hex says otherwise
    .hex OFFSET DIGITS
    .address OFFSET SYMBOL ADDEND       eight bytes: the address of a variable
    .symbol NAME SECTION OFFSET BYTES   a variable
    .kernel NAME                        what follows belongs to it, up to .end
    .needs REGISTERS SHARED LOCAL THREADS
    .parameters BASE BYTES              where they lie in constant bank 0
    .param TYPE OFFSET BYTES            one of them; `struct` for those passed by value
    .label NAME ADDRESS                 a function within the kernel's code
    CONTROL FILE:LINE [@P] OPCODE [OPERANDS]

with an instruction every 16 bytes from address 0. CONTROL are bits 105 to 125 of the encoding, in
hexadecimal. Lines that begin with ``//`` are comments.
"""

from __future__ import annotations

import bisect
import functools
import json
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpstack.cuda.cubin import INSTRUCTION_BYTES, Cubin, KernelFacts, Section
from warpstack.cuda.toolchain import nvidia_packages
from warpstack.errors import InputError, shown

#: Parameter types of each kernel, where the source's PTX is at hand.
Types = Mapping[str, Sequence[str]]

_NO_NVDISASM = (
    "{file}: nvdisasm is needed to read machine code and was not found; install it with: pip install "
    "nvidia-cuda-nvdisasm (or put it on the PATH)"
)
_SECONDS = 600
#: Volta's machine code is not checked; earlier architectures have instructions of eight bytes.
FIRST_ARCH = 75
_NAN = re.compile(r"(?<![\w$.])[+-]?[SQ]?NAN\b")
#: Relocations that are a 64-bit address: absolute ones, and those of generic addresses.
_ADDRESSES_64 = (2, 4)
#: How the functions of the driver begin that libcudadevrt calls.
_DEVICE_RUNTIME = "__cuda_syscall_cnp"


@functools.cache
def find_nvdisasm() -> str | None:
    """Return the path of nvdisasm, or None."""
    for package in nvidia_packages():
        candidate = package / "bin" / "nvdisasm"
        if candidate.exists():
            return str(candidate)
    return shutil.which("nvdisasm") or shutil.which("/usr/local/cuda/bin/nvdisasm")


def listing_of(data: bytes, file: str, types: Types | None = None) -> str:
    """Return the listing of a cubin.

    Parameters
    ----------
    data
        The cubin.
    file
        Its name, for messages.
    types
        PTX types of the parameters of kernels, by kernel. Without them a parameter of 1, 2, 4 or 8
        bytes is that many untyped ones.

    Raises
    ------
    InputError
        If it is not a cubin, is damaged, or there is no nvdisasm.
    """
    cubin = Cubin(data, file)
    if cubin.version < FIRST_ARCH:
        raise InputError(
            f"{file}: machine code for sm_{cubin.version} is not read; compile for sm_75 to sm_121"
        )
    if cubin.is_unlinked():
        raise InputError(
            f"{file}: it is an object that is not linked (ELF type REL), whose code lacks addresses; "
            "compile without -rdc=true, or link it with nvcc -dlink -cubin"
        )
    if any(symbol.name.startswith(_DEVICE_RUNTIME) for symbol in cubin.symbols):
        raise InputError(
            f"{file}: its kernels call CUDA's device runtime (dynamic parallelism), which is done for PTX "
            "only: run the program's PTX, without machine_code"
        )
    code = _disassemble(data, file)
    lines = [".sass 1", f".target sm_{cubin.version}"]
    source_lines = cubin.lines()
    files: dict[str, int] = {}
    for names, rows in source_lines.values():
        for _, number, _ in rows:
            if 0 < number < len(names):
                files.setdefault(_file_name(names[number]), len(files) + 1)
    lines += [f'.file {number} "{name}"' for name, number in files.items()]
    for section in cubin.sections:
        # Bank 0 is the launch's.
        if section.name.startswith((".nv.global", ".nv.constant")) and (
            not section.name.startswith(".nv.constant0")
        ):
            lines += _section_lines(cubin, section)
    for symbol in cubin.variables():
        section = cubin.sections[symbol.section]
        if section.name.startswith((".nv.global", ".nv.constant")):
            lines.append(f".symbol {symbol.name} {section.name} {symbol.value} {symbol.size}")
    for kernel in cubin.kernels:
        names, rows = source_lines.get(kernel.section, ([], []))
        places = [
            (address, f"{files[_file_name(names[number])]}:{line}")
            for address, number, line in rows
            if 0 < number < len(names)
        ]
        lines += _kernel_lines(cubin, kernel, code, places, (types or {}).get(kernel.name))
    return "\n".join(lines) + "\n"


def _file_name(path: str) -> str:
    """Return the last part of a path, as it may stand in a line."""
    return "".join(c if c.isprintable() else "?" for c in Path(path).name)


def _section_lines(cubin: Cubin, section: Section) -> list[str]:
    lines = [f".section {section.name} {section.size}"]
    for at in range(0, len(section.data), 64):
        piece = section.data[at : at + 64]
        if any(piece):
            lines.append(f".hex {at} {piece.hex()}")
    for relocation in cubin.relocations_of(section):
        symbol = cubin.symbols[relocation.symbol]
        if relocation.kind not in _ADDRESSES_64:
            raise InputError(
                f"{cubin.file}: section {section.name} at {relocation.offset:#x}: relocation "
                f"{relocation.kind} (of {symbol.name}) is not one that is known here, 2 or 4; run "
                "the kernel's PTX, without machine_code"
            )
        name = symbol.name
        if not name and symbol.section < len(cubin.sections):
            name = cubin.sections[symbol.section].name
        lines.append(f".address {relocation.offset} {name} {relocation.addend}")
    return lines


def _kernel_lines(
    cubin: Cubin,
    kernel: KernelFacts,
    code: dict[str, list[dict[str, Any]]],
    places: list[tuple[int, str]],
    types: Sequence[str] | None,
) -> list[str]:
    lines = [
        f".kernel {kernel.name}",
        f".needs {kernel.registers} {kernel.shared_bytes} {kernel.local_bytes} {kernel.max_threads}",
        f".parameters {kernel.parameter_base} {kernel.parameter_bytes}",
    ]
    if types is not None and len(types) != len(kernel.parameters):
        types = None
    for number, parameter in enumerate(kernel.parameters):
        kind = f"b{8 * parameter.size}" if parameter.size in (1, 2, 4, 8) else "struct"
        if types is not None:
            kind = types[number]
        lines.append(f".param {kind} {parameter.offset} {parameter.size}")
    for symbol in cubin.functions_in(kernel.section):
        if symbol.name != kernel.name:
            lines.append(f".label {symbol.name} {symbol.value}")
    data = cubin.sections[kernel.section].data
    instructions = code.get(kernel.name, [])
    if len(instructions) * INSTRUCTION_BYTES != len(data):
        raise InputError(
            f"{cubin.file}: kernel {kernel.name} has {len(data)} bytes of code, and nvdisasm found "
            f"{len(instructions)} instructions of {INSTRUCTION_BYTES} bytes; a newer nvdisasm may help"
        )
    while instructions and instructions[-1]["opcode"] == "NOP":
        instructions.pop()
    starts = [address for address, _ in places]
    for number, instruction in enumerate(instructions):
        address = number * INSTRUCTION_BYTES
        low, high = struct.unpack_from("<QQ", data, address)
        row = bisect.bisect_right(starts, address) - 1
        place = places[row][1] if row >= 0 else "0:0"
        operands = instruction.get("operands", "").replace(" ", "").replace(".reuse", "")
        if instruction["opcode"].startswith("LDGSTS") and "desc" not in operands:
            operands = operands.replace("][", "],[", 1)  # a comma is missing up to sm_89
        # The payload of a NaN is in the encoding alone.
        operands = _NAN.sub(f"{low >> 32:#x}", operands)
        # P2R has its source, all predicates, where others have their guard.
        guard = instruction.get("predicate", "").removesuffix("PR").strip()
        words = [f"{high >> 41 & 0x1FFFFF:x}", place, guard]
        words += [instruction["opcode"], operands]
        lines.append(" ".join(word for word in words if word))
    lines.append(".end")
    return lines


def _disassemble(data: bytes, file: str) -> dict[str, list[dict[str, Any]]]:
    """Return the instructions of each code section, as nvdisasm has them."""
    tool = find_nvdisasm()
    if tool is None:
        raise InputError(_NO_NVDISASM.format(file=file))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.cubin"
        path.write_bytes(data)
        try:
            result = subprocess.run(
                [tool, "-json", str(path)],
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"{file}: nvdisasm did not end within {_SECONDS} s") from None
    if result.returncode != 0:
        log = " ".join((result.stderr or result.stdout).replace(str(path), file).split())
        status = f"it ended with status {result.returncode}"
        raise InputError(
            f"{file}: nvdisasm does not read the cubin: {log[:500] or status}; make it anew, or install "
            "another version of nvidia-cuda-nvdisasm"
        )
    try:
        functions = json.loads(result.stdout)[1]
        code = {f["function-name"]: f["sass-instructions"] for f in functions}
        for instruction in (i for function in code.values() for i in function):
            for key in ("opcode", "operands", "predicate"):
                if not isinstance(instruction.get(key, ""), str) or not instruction["opcode"]:
                    raise TypeError(f"{key} = {shown(instruction.get(key))}")
        return code
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{file}: what nvdisasm wrote is not what its -json gives in CUDA 12 and 13 ({error}); "
            "install another version of nvidia-cuda-nvdisasm"
        ) from None
