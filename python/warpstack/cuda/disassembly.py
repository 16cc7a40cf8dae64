"""Listings of machine code: what nvdisasm and the cubin say of a module, in one text.

A listing is what the core reads. It holds everything that running a module needs, so that a machine
without NVIDIA's tools can run it. Its lines are

    .sass 1                             the version of this format; the first line
    .target sm_80
    .file 1 "/src/bfs.cu" TIME BYTES    when it was changed last, in seconds since 1970, and its size
    .inlined 1 FILE:LINE[@CALL] NAME    a call in whose place the code of a function stands
    .section NAME BYTES                 memory or a constant bank, zero where no .hex says otherwise
    .hex OFFSET DIGITS
    .address OFFSET SYMBOL ADDEND [FIRST COUNT]
                                        the address of a variable: all eight bytes, or COUNT from the
                                        FIRST one on
    .symbol NAME SECTION OFFSET BYTES   a variable
    .kernel NAME                        what follows belongs to it, up to .end
    .needs REGISTERS SHARED LOCAL THREADS
    .parameters BASE BYTES              where they lie in constant bank 0
    .param TYPE OFFSET BYTES            one of them; `struct` for those passed by value
    .label NAME ADDRESS                 a function within the kernel's code
    CONTROL FILE:LINE[@CALL] [@P] OPCODE [OPERANDS]

with an instruction every 16 bytes from address 0. SHARED are the bytes of the kernel's section of
shared memory, of which the first 1024 are the system's from sm_90 on. CONTROL are bits 105 to 125 of
the encoding, in hexadecimal. CALL is the number of the inlined call in whose place the line's function
stands. Lines that begin with ``//`` are
comments.
"""

from __future__ import annotations

import bisect
import collections
import functools
import importlib.util
import json
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpstack.cuda.cubin import (
    ADDRESS_BYTES,
    INSTRUCTION_BYTES,
    Cubin,
    KernelFacts,
    Section,
    SourceFile,
    Symbol,
)
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
FIRST_ARCH, LAST_ARCH = 75, 121
_NAN = re.compile(r"(?<![\w$.])[+-]?[SQ]?NAN\b")
_RUN_PTX = "run the program's PTX: in Python without machine_code, on the command line without --machine-code"
#: An address that a relocation gives, as nvdisasm's -json has it: without the name of what lies there.
_RELOCATED = re.compile(r"(?<=32@lo\()0x[0-9a-f]+(?=\))|(?<=32@hi\()0x[0-9a-f]+(?=\))")
#: Opcodes whose last operand is an address in their section, and such an operand.
_WITH_TARGET = re.compile(r"(BRA|BSSY|CALL|RET|WARPSYNC\.COLLECTIVE|LEPC)\b(?!\.ABS)")
_TARGET = re.compile(r"(?<![\w])0x[0-9a-f]+$")
#: Prefix of the functions of the driver that libcudadevrt calls.
_DEVICE_RUNTIME = "__cuda_syscall_cnp"


@functools.cache
def find_nvdisasm() -> str | None:
    """Return the path of nvdisasm, or None."""
    for package in nvidia_packages():
        candidate = package / "bin" / "nvdisasm"
        if candidate.exists():
            return str(candidate)
    found = shutil.which("nvdisasm") or shutil.which("/usr/local/cuda/bin/nvdisasm")
    return found or _nvdisasm_of_triton()


def _nvdisasm_of_triton() -> str | None:
    """Return the path of the nvdisasm that Triton brings along, or None."""
    spec = importlib.util.find_spec("triton")  # which does not load it
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        found = shutil.which(str(Path(folder, "backends", "nvidia", "bin", "nvdisasm")))
        if found is not None:
            return found
    return None


def listing_of(
    data: bytes,
    file: str,
    types: Types | None = None,
    place: Callable[[SourceFile], SourceFile] = lambda source: source,
) -> str:
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
    place
        Returns what is known of a file of source, of which the cubin may not know all.

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
            f"only: {_RUN_PTX}"
        )
    code = _disassemble(data, file)
    functions = _places_of_functions(cubin)
    lines = [".sass 1", f".target sm_{cubin.version}"]
    table = cubin.lines()
    for number, source in enumerate(map(place, table.files), 1):
        lines.append(f'.file {number} "{_printable(source.name)}" {source.time} {source.bytes}')
    for number, call in enumerate(table.calls, 1):
        called_at = _place(call.file, call.line, call.caller)
        lines.append(f".inlined {number} {called_at} {_printable(call.function)}".rstrip())
    for section in cubin.sections:
        # Bank 0 belongs to the launch.
        if section.name.startswith((".nv.global", ".nv.constant")) and (
            not section.name.startswith(".nv.constant0")
        ):
            lines += _section_lines(cubin, section, functions)
    for symbol in cubin.variables():
        section = cubin.sections[symbol.section]
        if section.name.startswith((".nv.global", ".nv.constant")):
            lines.append(f".symbol {symbol.name} {section.name} {symbol.value} {symbol.size}")
    places: dict[int, list[tuple[int, str]]] = collections.defaultdict(list)
    for number, rows in table.rows.items():
        places[number] = [(address, _place(*place)) for address, *place in rows]
    for kernel in cubin.kernels:
        kinds = (types or {}).get(kernel.name)
        lines += _kernel_lines(cubin, kernel, code, places, functions, kinds)
    return "\n".join(lines) + "\n"


def _printable(name: str) -> str:
    """Return a name as it may stand in a line."""
    return "".join(c if c.isprintable() else "?" for c in name)


def _place(file: int, line: int, call: int) -> str:
    """Return a place of source as it stands before an opcode."""
    return f"{file}:{line}@{call}" if call else f"{file}:{line}"


def _section_lines(cubin: Cubin, section: Section, functions: Mapping[str, int]) -> list[str]:
    lines = [f".section {section.name} {section.size}"]
    data = bytearray(section.data)
    addresses = []
    for relocation in cubin.relocations_of(section):
        symbol = cubin.symbols[relocation.symbol]
        if relocation.kind not in ADDRESS_BYTES:
            raise InputError(
                f"{cubin.file}: section {section.name} at {relocation.offset:#x}: relocation "
                f"{relocation.kind} (of {symbol.name}) is not one of those that are known here, "
                f"{', '.join(map(str, ADDRESS_BYTES))}; {_RUN_PTX}"
            )
        first, count = ADDRESS_BYTES[relocation.kind]
        if symbol.name in functions:
            value = functions[symbol.name] + relocation.addend >> 8 * first
            part = (value & (1 << 8 * count) - 1).to_bytes(count, "little")
            data[relocation.offset : relocation.offset + count] = part
            continue
        name = _name_of(cubin, symbol)
        suffix = "" if count == 8 else f" {first} {count}"
        addresses.append(f".address {relocation.offset} {name} {relocation.addend}{suffix}")
    for at in range(0, len(data), 64):
        piece = data[at : at + 64]
        if any(piece):
            lines.append(f".hex {at} {piece.hex()}")
    return lines + addresses


def _name_of(cubin: Cubin, symbol: Symbol) -> str:
    """Return the name of a symbol, or of the section that it stands for."""
    if not symbol.name and symbol.section < len(cubin.sections):
        return cubin.sections[symbol.section].name
    return symbol.name


def _kernel_lines(
    cubin: Cubin,
    kernel: KernelFacts,
    code: dict[str, list[dict[str, Any]]],
    all_places: Mapping[int, Sequence[tuple[int, str]]],
    functions: Mapping[str, int],
    types: Sequence[str] | None,
) -> list[str]:
    places = all_places[kernel.section]
    instructions = _instructions(cubin, kernel.name, kernel.section, code, places)
    called = _called_functions(cubin, kernel, functions, instructions)
    # The number of the kernel itself does not include what functions of other sections use.
    registers = max([kernel.registers, *(cubin.registers_of_functions[name] for name in called)])
    lines = [
        f".kernel {kernel.name}",
        f".needs {registers} {kernel.shared_bytes} {kernel.local_bytes} {kernel.max_threads}",
        f".parameters {kernel.parameter_base} {kernel.parameter_bytes}",
    ]
    if any(kernel.required_cluster):
        lines.append(".cluster {} {} {}".format(*kernel.required_cluster))
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
    if called:
        # Functions lie at the same addresses in all kernels, so that tables of them are right in each.
        first = min(functions.values())
        missing = first // INSTRUCTION_BYTES - len(instructions)
        instructions += ["0 0:0 NOP"] * missing
        for name, base in functions.items():
            section = cubin.functions[name]
            if name not in called:  # it may take more registers than the kernel has
                instructions += ["0 0:0 NOP"] * (
                    len(cubin.sections[section].data) // INSTRUCTION_BYTES
                )
                continue
            lines.append(f".label {name} {base}")
            instructions += _instructions(cubin, name, section, code, all_places[section], base)
    while instructions and instructions[-1].split()[2] == "NOP":
        instructions.pop()
    lines += instructions
    lines.append(".end")
    return lines


def _places_of_functions(cubin: Cubin) -> dict[str, int]:
    """Return where functions with sections of their own lie: behind the longest kernel."""
    end = max((len(cubin.sections[kernel.section].data) for kernel in cubin.kernels), default=0)
    places = {}
    for name, section in cubin.functions.items():
        places[name] = end
        end += len(cubin.sections[section].data)
    return places


def _called_functions(
    cubin: Cubin, kernel: KernelFacts, functions: Mapping[str, int], instructions: Sequence[str]
) -> set[str]:
    """Return the functions that a kernel may call and that are not in its own section."""
    called: set[str] = set()
    waiting = [kernel.section] if functions else []
    while waiting:
        more = (cubin.called_from(waiting.pop()) & functions.keys()) - called
        called |= more
        waiting += [cubin.functions[name] for name in more]
    in_tables = any(
        section.name.startswith((".nv.global", ".nv.constant"))
        and cubin.called_from(section.number) & functions.keys()
        for section in cubin.sections
    )
    if in_tables and any(" CALL.ABS" in line for line in instructions):
        return set(functions)
    return called


def _instructions(
    cubin: Cubin,
    function: str,
    section: int,
    code: dict[str, list[dict[str, Any]]],
    places: Sequence[tuple[int, str]],
    base: int = 0,
) -> list[str]:
    """Return the lines of the instructions of a kernel or function, which begins at `base`."""
    data = cubin.sections[section].data
    relocations = {r.offset: r for r in cubin.relocations_of(cubin.sections[section])}
    instructions = code.get(function, [])
    if len(instructions) * INSTRUCTION_BYTES != len(data):
        raise InputError(
            f"{cubin.file}: kernel {function} has {len(data)} bytes of code, and nvdisasm found "
            f"{len(instructions)} instructions of {INSTRUCTION_BYTES} bytes; a newer nvdisasm may help"
        )
    lines = []
    starts = [address for address, _ in places]
    for number, instruction in enumerate(instructions):
        address = number * INSTRUCTION_BYTES
        low, high = struct.unpack_from("<QQ", data, address)
        row = bisect.bisect_right(starts, address) - 1
        place = places[row][1] if row >= 0 else "0:0"
        opcode = instruction["opcode"]
        operands = instruction.get("operands", "").replace(" ", "").replace(".reuse", "")
        if opcode.startswith("LDGSTS") and "desc" not in operands:
            operands = operands.replace("][", "],[", 1)  # a comma is missing up to sm_89
        # The payload of a NaN is in the encoding alone.
        operands = _NAN.sub(f"{low >> 32:#x}", operands)
        if address in relocations and "32@" in operands:
            relocation = relocations[address]
            symbol = _name_of(cubin, cubin.symbols[relocation.symbol])
            name = f"({symbol}{relocation.addend:+#x})" if relocation.addend else symbol
            operands = _RELOCATED.sub(name.replace("\\", r"\\"), operands)
        if base and _WITH_TARGET.match(opcode):
            operands = _TARGET.sub(lambda target: hex(int(target[0], 16) + base), operands)
        # P2R has its source, all predicates, where others have their guard.
        guard = instruction.get("predicate", "").removesuffix("PR").strip()
        words = [f"{high >> 41 & 0x1FFFFF:x}", place, guard, opcode, operands]
        lines.append(" ".join(word for word in words if word))
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
