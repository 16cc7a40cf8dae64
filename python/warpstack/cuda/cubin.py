"""Cubins: the ELF files that hold the machine code of kernels and what it needs to run."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from warpstack.errors import InputError, shown

#: Bytes of an instruction of compute capability 7.0 and later.
INSTRUCTION_BYTES = 16

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MACHINE_CUDA = 190
_HEADER_BYTES = 64
_RELOCATABLE = b"\x01\x00"  # the type of objects that are not linked
_NO_BITS, _SYMBOL_TABLE = 8, 2
_RELOCATIONS = {4: 24, 9: 16}  # RELA, REL
_FUNCTION, _OBJECT = 2, 1

# Attributes of .nv.info sections, with the names that NVIDIA's tools print.
_MAX_THREADS, _PARAM_CBANK, _REQNTID = 0x05, 0x0A, 0x10
_CTA_PER_CLUSTER = 0x3D
_FRAME_SIZE, _MIN_STACK_SIZE, _KPARAM_INFO, _REGCOUNT = 0x11, 0x12, 0x17, 0x2F
#: The form of attributes with a size; the others are one of two bytes.
_SIZED = 4
#: The stack size that a cubin gives for kernels whose functions call themselves.
_UNKNOWN = 0xFFFFFFFF
#: Section numbers of symbols that lie in no section: absolute ones, and common ones.
_NO_SECTIONS = (0xFFF1, 0xFFF2)
#: Sections that are asked for by name.
_READ_SECTIONS = (".text.", ".nv.info", ".nv.constant", ".nv.global", ".nv.shared.", ".debug_")
#: Limits of CUDA: bytes of a thread's local memory, of a block's shared memory, of a constant bank.
_MOST_LOCAL, _MOST_SHARED, _BANK_BYTES = 512 << 10, 256 << 10, 64 << 10
_MOST_LINE = 1 << 24
#: NVIDIA's extended opcodes of .debug_line: DW_LNE_NVIDIA_inlined_call, DW_LNE_NVIDIA_set_function_name.
_INLINED_CALL, _FUNCTION_NAME = 0x90, 0x91
#: Bytes of a number in .debug_line; those of 64 bits need ten.
_MOST_LEB = 10


@dataclass(frozen=True)
class Section:
    """A section of the file: its bytes, or their number where it has none."""

    number: int
    name: str
    kind: int
    data: bytes
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class Symbol:
    """A variable, a function, or a section."""

    name: str
    kind: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """An address that the loader writes into a section."""

    offset: int
    symbol: int
    kind: int
    addend: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, counted from the first one's place in the constant bank."""

    ordinal: int
    offset: int
    size: int


#: Relocations of data that are addresses: by kind, the first of the address's bytes that are written
#: and their number. Words and addresses, plain and generic ones (R_CUDA_32 to R_CUDA_G64), then single
#: bytes (R_CUDA_8_0 to R_CUDA_8_56 and R_CUDA_G8_0 to R_CUDA_G8_56), which initial values with masks
#: give, such as 0xff00(symbol).
ADDRESS_BYTES = {
    **{1: (0, 4), 2: (0, 8), 3: (0, 4), 4: (0, 8)},
    **{76 + byte: (byte, 1) for byte in range(8)},
    **{84 + byte: (byte, 1) for byte in range(8)},
}


@dataclass
class KernelFacts:
    """The facts that a kernel needs besides its code."""

    name: str
    section: int
    registers: int
    shared_bytes: int = 0
    local_bytes: int = 0
    max_threads: int = 1024
    #: Blocks of a cluster along x, y and z; empty: the launch says.
    required_cluster: tuple[int, ...] = ()
    parameter_base: int = 0
    parameter_bytes: int = 0
    parameters: list[Parameter] = field(default_factory=list)


class Cubin:
    """A cubin, read.

    Parameters
    ----------
    data
        The file.
    file
        Its name, for messages.

    Raises
    ------
    InputError
        If it is not a cubin, or is damaged: the message names the section or field and its value.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self._data = data
        if data[:4] != b"\x7fELF":
            raise InputError(
                f"{file}: it does not begin like an ELF file, as cubins do (make one with nvcc "
                "-cubin; of a program, cuobjdump -xelf all takes them out)"
            )
        self._read_header()
        self._read_symbols()
        self._read_relocations()
        self._read_kernels()

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{self.file}: {what}: the cubin is damaged or cut off; make it anew")

    def _read_header(self) -> None:
        data = self._data
        if len(data) < _HEADER_BYTES:
            raise self._damaged(
                f"it has {len(data)} bytes, fewer than the {_HEADER_BYTES} of a header"
            )
        if data[4:6] != b"\x02\x01":
            raise InputError(
                f"{self.file}: it is not a 64-bit little-endian ELF file: its class and byte order "
                f"are {data[4]} and {data[5]}, not 2 and 1; make it with nvcc -cubin"
            )
        self._is_relocatable = data[16:18] == _RELOCATABLE
        machine, _, _, _, sections_at = struct.unpack_from("<HIQQQ", data, 18)
        flags = struct.unpack_from("<I", data, 48)[0]
        if machine != _MACHINE_CUDA:
            raise InputError(
                f"{self.file}: it is an ELF file for machine {machine}, not for NVIDIA GPUs "
                f"({_MACHINE_CUDA}); make a cubin with nvcc -cubin"
            )
        entry_bytes, count, names = struct.unpack_from("<HHH", data, 58)
        if entry_bytes != _SECTION.size:
            raise self._damaged(
                f"its section headers have {entry_bytes} bytes, not {_SECTION.size}"
            )
        # Layout 8 of the ABI has the compute capability in bits 8 to 15, earlier ones in 0 to 7.
        self.version = flags >> 8 & 255 if data[8] >= 8 else flags & 255
        self._check(sections_at, count * entry_bytes, f"{count} section headers")
        headers = [_SECTION.unpack_from(data, sections_at + i * entry_bytes) for i in range(count)]
        if names >= count:
            raise self._damaged(f"the names of sections are in section {names} of {count}")
        table = self._piece(headers[names], "the names of sections")
        self.sections: list[Section] = []
        self._by_name: dict[str, Section] = {}
        for number, h in enumerate(headers):
            name = self._text(table, h[0], f"section {number}")
            data_of = b"" if h[1] == _NO_BITS else self._piece(h, f"section {name}")
            section = Section(number, name, h[1], data_of, h[5], h[6], h[7])
            self.sections.append(section)
            if name.startswith(_READ_SECTIONS) and name in self._by_name:
                raise self._damaged(f"there are two sections {name}")
            self._by_name.setdefault(name, section)

    def _check(self, offset: int, size: int, what: str) -> None:
        if offset + size > len(self._data):
            raise self._damaged(
                f"{what} take {size} bytes at {offset:#x}, beyond the file's end at "
                f"{len(self._data):#x}"
            )

    def _piece(self, header: tuple[int, ...], what: str) -> bytes:
        offset, size = header[4], header[5]
        self._check(offset, size, f"the bytes of {what}")
        return self._data[offset : offset + size]

    def _text(self, table: bytes, offset: int, what: str) -> str:
        """Return a name that may stand in a line of a listing."""
        end = table.find(b"\0", offset)
        if offset >= max(len(table), 1) or (end < 0 and table):
            raise self._damaged(f"the name of {what} is at {offset:#x} of {len(table):#x} bytes")
        try:
            name = table[offset:end].decode("utf-8")
        except UnicodeDecodeError:
            name = "\n"
        if not name.isprintable() or " " in name:
            raise self._damaged(f"the name of {what} is {shown(table[offset:end])}")
        return name

    def _read_symbols(self) -> None:
        self.symbols: list[Symbol] = []
        self._functions: dict[int, list[Symbol]] = {}
        tables = [section for section in self.sections if section.kind == _SYMBOL_TABLE]
        if len(tables) > 1:
            raise self._damaged(f"there are {len(tables)} tables of symbols")
        for section in tables:
            if section.link >= len(self.sections) or len(section.data) % _SYMBOL.size:
                raise self._damaged(
                    f"section {section.name} has {len(section.data)} bytes, in entries of "
                    f"{_SYMBOL.size}, with names in section {section.link} of {len(self.sections)}"
                )
            names = self.sections[section.link].data
            for number, entry in enumerate(_SYMBOL.iter_unpack(section.data)):
                name = self._text(names, entry[0], f"symbol {number}")
                self._add_symbol(Symbol(name, entry[1] & 15, entry[3], entry[4], entry[5]))

    def _add_symbol(self, symbol: Symbol) -> None:
        self.symbols.append(symbol)
        if symbol.kind not in (_OBJECT, _FUNCTION) or symbol.section in (0, *_NO_SECTIONS):
            return
        if symbol.section >= len(self.sections):
            raise self._damaged(
                f"symbol {symbol.name} lies in section {symbol.section} of {len(self.sections)}"
            )
        section = self.sections[symbol.section]
        if symbol.value + symbol.size > section.size:
            raise self._damaged(
                f"symbol {symbol.name} takes {symbol.size} bytes at {symbol.value:#x}, beyond its "
                f"section {section.name} of {section.size:#x}"
            )
        if symbol.kind == _FUNCTION and symbol.name:
            self._functions.setdefault(symbol.section, []).append(symbol)

    def _read_relocations(self) -> None:
        self._relocations: dict[int, list[Relocation]] = {}
        for section in self.sections:
            width = _RELOCATIONS.get(section.kind)
            if width is None:
                continue
            if section.info >= len(self.sections):
                raise self._damaged(
                    f"section {section.name} is about section {section.info} of {len(self.sections)}"
                )
            target = self.sections[section.info]
            found = self._relocations.setdefault(target.number, [])
            for at in range(0, len(section.data) - width + 1, width):
                offset, info = struct.unpack_from("<QQ", section.data, at)
                addend = struct.unpack_from("<q", section.data, at + 16)[0] if width == 24 else 0
                found.append(Relocation(offset, info >> 32, info & 0xFFFFFFFF, addend))

    def relocations_of(self, section: Section) -> list[Relocation]:
        """Return the relocations of a section, checked.

        Raises
        ------
        InputError
            If one is not of a symbol, or lies outside the section.
        """
        found = self._relocations.get(section.number, [])
        for relocation in found:
            if relocation.symbol >= len(self.symbols):
                raise self._damaged(
                    f"a relocation of section {section.name} is of symbol {relocation.symbol} of "
                    f"{len(self.symbols)}"
                )
            _, width = ADDRESS_BYTES.get(relocation.kind, (0, 1))
            if relocation.offset + width > section.size:
                raise self._damaged(
                    f"a relocation is at {relocation.offset:#x} of section {section.name}, which has "
                    f"{section.size:#x} bytes"
                )
        return found

    def is_unlinked(self) -> bool:
        """Return whether code lacks addresses that a linker writes into it (nvcc -rdc=true)."""
        return self._is_relocatable and any(
            self.sections[number].name.startswith(".text.") and found
            for number, found in self._relocations.items()
        )

    def _read_kernels(self) -> None:
        self.kernels: list[KernelFacts] = []
        #: Names of functions with a section of their own, as in linked objects, and its number.
        self.functions: dict[str, int] = {}
        self.registers_of_functions: dict[str, int] = {}
        by_symbol: dict[int, KernelFacts] = {}
        for number, symbol in enumerate(self.symbols):
            if symbol.kind != _FUNCTION or not 0 < symbol.section < len(self.sections):
                continue
            section = self.sections[symbol.section]
            if section.name != f".text.{symbol.name}":
                continue
            # The upper eight bits of the section's info are its registers.
            kernel = KernelFacts(symbol.name, symbol.section, section.info >> 24)
            by_symbol[number] = kernel
        for kernel in by_symbol.values():
            info = self.find(f".nv.info.{kernel.name}")
            if info is None or self.find(f".nv.constant0.{kernel.name}") is None:
                self.functions[kernel.name] = kernel.section
                continue
            shared = self.find(f".nv.shared.{kernel.name}")
            kernel.shared_bytes = shared.size if shared is not None else 0
            self._read_attributes(kernel, info)
            self.kernels.append(kernel)
        general = self.find(".nv.info")
        for kind, value in self._attributes(general) if general is not None else ():
            if kind not in (_REGCOUNT, _MIN_STACK_SIZE, _FRAME_SIZE) or len(value) < 8:
                continue
            symbol_number, count = struct.unpack_from("<II", value)
            if symbol_number not in by_symbol:
                continue
            if kind == _REGCOUNT:
                by_symbol[symbol_number].registers = count
            elif count != _UNKNOWN:
                kernel = by_symbol[symbol_number]
                kernel.local_bytes = max(kernel.local_bytes, count)
        for kernel in by_symbol.values():
            if kernel.name in self.functions:
                self.registers_of_functions[kernel.name] = kernel.registers
        for kernel in self.kernels:
            self._check_kernel(kernel)

    def _read_attributes(self, kernel: KernelFacts, info: Section) -> None:
        sizes = {_KPARAM_INFO: 12, _PARAM_CBANK: 8}
        sizes |= dict.fromkeys((_MAX_THREADS, _REQNTID, _CTA_PER_CLUSTER), 12)
        for kind, value in self._attributes(info):
            if kind not in sizes:
                continue
            if len(value) != sizes[kind]:
                raise self._damaged(
                    f"attribute {kind:#x} in section {info.name} has {len(value)} bytes, not "
                    f"{sizes[kind]}"
                )
            if kind == _KPARAM_INFO:
                _, ordinal, offset, bits = struct.unpack("<IHHI", value)
                kernel.parameters.append(Parameter(ordinal, offset, bits >> 18))
            elif kind == _PARAM_CBANK:
                _, kernel.parameter_base, kernel.parameter_bytes = struct.unpack("<IHH", value)
            elif kind == _CTA_PER_CLUSTER:
                kernel.required_cluster = struct.unpack("<III", value)
            else:
                x, y, z = struct.unpack_from("<III", value)
                kernel.max_threads = min(kernel.max_threads, max(x * y * z, 1))
        kernel.parameters.sort(key=lambda parameter: parameter.ordinal)

    def _check_kernel(self, kernel: KernelFacts) -> None:
        limits = (
            ("registers", kernel.registers, 1, 255),
            ("bytes of shared memory", kernel.shared_bytes, 0, _MOST_SHARED),
            ("bytes of local memory", kernel.local_bytes, 0, _MOST_LOCAL),
        )
        for what, value, least, most in limits:
            if not least <= value <= most:
                raise self._damaged(
                    f"kernel {kernel.name} has {value} {what}, not {least} to {most}"
                )
        if kernel.parameter_base + kernel.parameter_bytes > _BANK_BYTES:
            raise self._damaged(
                f"the parameters of kernel {kernel.name} take {kernel.parameter_bytes} bytes at "
                f"{kernel.parameter_base:#x}, beyond a constant bank's {_BANK_BYTES:#x}"
            )
        end = 0
        for number, parameter in enumerate(kernel.parameters):
            after = parameter.offset + parameter.size
            fits = end <= parameter.offset and after <= kernel.parameter_bytes
            if parameter.ordinal != number or not fits:
                raise self._damaged(
                    f"parameter {number + 1} of kernel {kernel.name} has the number "
                    f"{parameter.ordinal} and {parameter.size} bytes at {parameter.offset}, behind "
                    f"{end} and of {kernel.parameter_bytes}"
                )
            end = after

    def _attributes(self, section: Section) -> list[tuple[int, bytes]]:
        """Return kinds and values of an .nv.info section."""
        found, at, data = [], 0, section.data
        while at < len(data):
            if at + 4 > len(data):
                raise self._damaged(f"section {section.name} ends within an attribute, at {at:#x}")
            form, kind, size = struct.unpack_from("<BBH", data, at)
            if not 1 <= form <= _SIZED:
                raise self._damaged(
                    f"attribute {kind:#x} in section {section.name} at {at:#x} has the form {form}, not "
                    f"1 to {_SIZED}"
                )
            at += 4
            if form != _SIZED:  # it has its value where the others have their size
                found.append((kind, data[at - 2 : at]))
                continue
            if at + size > len(data):
                raise self._damaged(
                    f"attribute {kind:#x} in section {section.name} has {size} bytes at {at:#x}, "
                    f"beyond the section's {len(data):#x}"
                )
            found.append((kind, data[at : at + size]))
            at += size
        return found

    def find(self, name: str) -> Section | None:
        """Return the section of a name, or None."""
        return self._by_name.get(name)

    def functions_in(self, section: int) -> list[Symbol]:
        """Return the functions whose code lies in a section, by place."""
        return sorted(self._functions.get(section, []), key=lambda s: (s.value, s.name))

    def called_from(self, section: int) -> set[str]:
        """Return the names of what a section's relocations refer to."""
        return {self.symbols[r.symbol].name for r in self.relocations_of(self.sections[section])}

    def variables(self) -> list[Symbol]:
        """Return the variables of the module."""
        return [s for s in self.symbols if s.kind == _OBJECT and 0 < s.section < len(self.sections)]

    def lines(self) -> LineTable:
        """Return the source lines of each code section.

        The table is empty where the section of lines is damaged: lines are a convenience.
        """
        section = self.find(".debug_line")
        if section is None:
            return LineTable()
        places = {r.offset: r.symbol for r in self._relocations.get(section.number, [])}
        names = self.find(".debug_str")
        try:
            program = _LineProgram(section.data, places, self.symbols, names.data if names else b"")
            return program.run()
        except (struct.error, IndexError, ValueError):
            return LineTable()


def is_cubin(data: bytes) -> bool:
    """Return whether a file begins like a cubin, and not like another ELF file."""
    return data[:4] == b"\x7fELF" and data[18:20] == _MACHINE_CUDA.to_bytes(2, "little")


class SourceFile(NamedTuple):
    """A file of source, as the compiler found it."""

    #: With its folder.
    name: str
    #: When it was changed last, in seconds since 1970; 0: unknown.
    time: int
    #: Its size; 0: unknown.
    bytes: int


class InlinedCall(NamedTuple):
    """A call in whose place the code of the called function stands."""

    function: str
    #: Place of the call. Files and calls are numbered from 1; 0: unknown, or none.
    file: int
    line: int
    #: The inlined call in whose code this one stands.
    caller: int


class LineTable(NamedTuple):
    """Where the instructions of a cubin come from."""

    files: Sequence[SourceFile] = ()
    calls: Sequence[InlinedCall] = ()
    #: By number of a code section: address, file, line and inlined call of the instructions from
    #: there on, in order of address.
    rows: Mapping[int, Sequence[tuple[int, int, int, int]]] = MappingProxyType({})


class _LineProgram:
    """The line numbers of a DWARF 2 .debug_line section (DWARF 2.0, Section 6.2).

    NVIDIA's extension for inlined code is an opcode whose operands are the row of the sequence, from 1, of
    the place of the call, and the offset of the called function's name in .debug_str. A call that is
    inlined itself has such a row, too. Several rows of one address are the chain of calls, and the last is
    the instruction's own.
    """

    def __init__(
        self, data: bytes, places: dict[int, int], symbols: list[Symbol], names: bytes
    ) -> None:
        self._data = data
        self._places = places
        self._symbols = symbols
        self._names = names
        self._at = 0
        self._files: dict[SourceFile, int] = {}
        self._calls: dict[InlinedCall, int] = {}
        self._rows: dict[int, list[tuple[int, int, int, int]]] = {}

    def _take(self, form: str) -> int:
        value: int = struct.unpack_from("<" + form, self._data, self._at)[0]
        self._at += struct.calcsize("<" + form)
        return value

    def _leb(self, signed: bool = False) -> int:
        value = shift = 0
        for _ in range(_MOST_LEB):
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value
        raise ValueError("a number without an end")

    def _name(self) -> str:
        end = self._data.index(b"\0", self._at)
        text = self._data[self._at : end].decode("utf-8", "replace")
        self._at = end + 1
        return text

    def _function(self, offset: int) -> str:
        """Return a name of .debug_str."""
        end = self._names.find(b"\0", offset)
        return self._names[offset:end].decode("utf-8", "replace") if end >= 0 else ""

    def run(self) -> LineTable:
        while self._at + 4 < len(self._data):
            length = self._take("I")
            end = self._at + length
            version = self._take("H")
            header = self._take("I")
            program = self._at + header
            shortest = self._take("B")
            self._take("B")
            base, span = self._take("b"), self._take("B")
            operands = [0] + [self._take("B") for _ in range(self._take("B") - 1)]
            if end > len(self._data):
                raise ValueError("lines beyond their section")
            if not 2 <= version <= 3 or span == 0:
                self._at = end
                continue
            folders = [""]
            while self._data[self._at]:
                folders.append(self._name())
            self._at += 1
            numbers = [0]
            while self._data[self._at]:
                name = self._name()
                folder, time, size = (self._leb() for _ in range(3))
                if folder and not name.startswith("/"):
                    name = f"{folders[folder].rstrip('/')}/{name}"
                file = SourceFile(name, time, size)
                numbers.append(self._files.setdefault(file, len(self._files) + 1))
            self._at = program
            self._sequences(end, shortest, base, span, operands, numbers)
            self._at = end
        for rows in self._rows.values():
            rows.sort(key=lambda row: row[0])
        return LineTable(list(self._files), list(self._calls), self._rows)

    def _sequences(
        self,
        end: int,
        shortest: int,
        base: int,
        span: int,
        operands: list[int],
        numbers: list[int],
    ) -> None:
        section, address, file, line = -1, 0, 1, 1
        #: The row of the place where code is inlined, from 1, and where the name of its function is.
        context, name = 0, -1
        #: File, line and inlined call of the rows so far.
        done: list[tuple[int, int, int]] = []

        def row() -> None:
            if not 0 <= line <= _MOST_LINE:
                raise ValueError("a line that no file has")
            number = numbers[file] if 0 < file < len(numbers) else 0
            call = 0
            if 0 < context <= len(done):
                function = self._function(name) if name >= 0 else ""
                found = InlinedCall(function, *done[context - 1])
                call = self._calls.setdefault(found, len(self._calls) + 1)
            done.append((number, line, call))
            self._rows.setdefault(section, []).append((address, number, line, call))

        while self._at < end:
            code = self._take("B")
            if code >= len(operands):
                code -= len(operands)
                address += code // span * shortest
                line += base + code % span
                row()
            elif code == 0:
                length = self._leb()
                extended_end = self._at + length
                kind = self._take("B")
                if kind == 1:
                    section, address, file, line = -1, 0, 1, 1
                    context, name = 0, -1
                    done.clear()
                elif kind == 2:
                    place = self._places.get(self._at)
                    symbol = None if place is None else self._symbols[place]
                    address = self._take("Q")
                    if symbol is not None:
                        section, address = symbol.section, address + symbol.value
                elif kind == _INLINED_CALL:
                    context, name = self._leb(), self._leb()
                elif kind == _FUNCTION_NAME:
                    name = self._leb()
                self._at = extended_end
            elif code == 1:
                row()
            elif code == 2:
                address += self._leb() * shortest
            elif code == 3:
                line += self._leb(signed=True)
            elif code == 4:
                file = self._leb()
            elif code == 8:
                address += (255 - len(operands)) // span * shortest
            elif code == 9:
                address += self._take("H")
            else:
                for _ in range(operands[code]):
                    self._leb()
