"""Cubins: the ELF files that hold the machine code of kernels and what it needs to run."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from warpstack.errors import InputError

#: Bytes of an instruction of compute capability 7.0 and later.
INSTRUCTION_BYTES = 16

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MACHINE_CUDA = 190
_NO_BITS = 8
_RELOCATIONS = {4: 24, 9: 16}  # RELA, REL
_FUNCTION, _OBJECT = 2, 1

# Attributes of .nv.info sections, with the names that NVIDIA's tools print.
_MAX_THREADS, _PARAM_CBANK, _REQNTID = 0x05, 0x0A, 0x10
_FRAME_SIZE, _MIN_STACK_SIZE, _KPARAM_INFO, _REGCOUNT = 0x11, 0x12, 0x17, 0x2F
#: What a cubin says of the stack of kernels whose functions call themselves.
_UNKNOWN = 0xFFFFFFFF


@dataclass(frozen=True)
class Section:
    """A section of the file: its bytes, or their number where it has none."""

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

    section: int
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


@dataclass
class KernelFacts:
    """What a kernel needs besides its code."""

    name: str
    section: int
    registers: int
    shared_bytes: int = 0
    local_bytes: int = 0
    max_threads: int = 1024
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
        If it is not a cubin, or is damaged: the message names the place.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self._data = data
        if data[:4] != b"\x7fELF":
            raise InputError(
                f"{file}: it does not begin like an ELF file, as cubins do (make one with nvcc "
                "-cubin; of a program, cuobjdump -xelf all takes them out)"
            )
        try:
            self._read()
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: the cubin is damaged or cut off: {error}") from None

    def _read(self) -> None:
        data = self._data
        if data[4:6] != b"\x02\x01":
            raise InputError(f"{self.file}: it is not a 64-bit little-endian ELF file")
        machine, _, _, _, sections_at = struct.unpack_from("<HIQQQ", data, 18)
        flags = struct.unpack_from("<I", data, 48)[0]
        if machine != _MACHINE_CUDA:
            raise InputError(
                f"{self.file}: it is an ELF file for machine {machine}, not for NVIDIA GPUs "
                f"({_MACHINE_CUDA})"
            )
        entry_bytes, count, names = struct.unpack_from("<HHH", data, 58)
        if entry_bytes != _SECTION.size:
            raise InputError(f"{self.file}: its section headers have {entry_bytes} bytes, not 64")
        # Layout 8 of the ABI has the compute capability in bits 8 to 15, earlier ones in 0 to 7.
        self.version = flags >> 8 & 255 if data[8] >= 8 else flags & 255
        headers = [_SECTION.unpack_from(data, sections_at + i * entry_bytes) for i in range(count)]
        table = self._piece(headers[names][4], headers[names][5], "section names")
        self.sections = [
            Section(
                name=_text(table, h[0]),
                kind=h[1],
                data=b"" if h[1] == _NO_BITS else self._piece(h[4], h[5], _text(table, h[0])),
                size=h[5],
                link=h[6],
                info=h[7],
            )
            for h in headers
        ]
        self._read_symbols()
        self._read_relocations()
        self._read_kernels()

    def _piece(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self._data):
            raise InputError(
                f"{self.file}: {what} are {size} bytes at {offset:#x}, beyond the file's end at "
                f"{len(self._data):#x}: it is cut off"
            )
        return self._data[offset : offset + size]

    def _read_symbols(self) -> None:
        self.symbols: list[Symbol] = []
        for section in self.sections:
            if section.kind != 2:
                continue
            names = self.sections[section.link].data
            for entry in _SYMBOL.iter_unpack(section.data):
                self.symbols.append(
                    Symbol(_text(names, entry[0]), entry[1] & 15, entry[3], entry[4], entry[5])
                )

    def _read_relocations(self) -> None:
        self.relocations: list[Relocation] = []
        for section in self.sections:
            width = _RELOCATIONS.get(section.kind)
            if width is None:
                continue
            for at in range(0, len(section.data) - width + 1, width):
                offset, info = struct.unpack_from("<QQ", section.data, at)
                addend = struct.unpack_from("<q", section.data, at + 16)[0] if width == 24 else 0
                self.relocations.append(
                    Relocation(section.info, offset, info >> 32, info & 0xFFFFFFFF, addend)
                )

    def _read_kernels(self) -> None:
        self.kernels: list[KernelFacts] = []
        by_symbol: dict[int, KernelFacts] = {}
        for number, symbol in enumerate(self.symbols):
            if symbol.kind != _FUNCTION or symbol.section >= len(self.sections):
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
                continue  # a device function with a section of its own
            shared = self.find(f".nv.shared.{kernel.name}")
            kernel.shared_bytes = shared.size if shared is not None else 0
            self._read_attributes(kernel, info.data)
            self.kernels.append(kernel)
        general = self.find(".nv.info")
        for kind, value in _attributes(general.data if general is not None else b""):
            if kind not in (_REGCOUNT, _MIN_STACK_SIZE, _FRAME_SIZE) or len(value) < 8:
                continue
            number, count = struct.unpack_from("<II", value)
            if number not in by_symbol:
                continue
            if kind == _REGCOUNT:
                by_symbol[number].registers = count
            elif count != _UNKNOWN:
                by_symbol[number].local_bytes = max(by_symbol[number].local_bytes, count)

    @staticmethod
    def _read_attributes(kernel: KernelFacts, data: bytes) -> None:
        for kind, value in _attributes(data):
            if kind == _KPARAM_INFO:
                _, ordinal, offset, bits = struct.unpack("<IHHI", value)
                kernel.parameters.append(Parameter(ordinal, offset, bits >> 18))
            elif kind == _PARAM_CBANK:
                _, kernel.parameter_base, kernel.parameter_bytes = struct.unpack("<IHH", value)
            elif kind in (_MAX_THREADS, _REQNTID):
                x, y, z = struct.unpack_from("<III", value)
                kernel.max_threads = min(kernel.max_threads, max(x * y * z, 1))
        kernel.parameters.sort(key=lambda parameter: parameter.ordinal)

    def find(self, name: str) -> Section | None:
        """Return the section of a name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def functions_in(self, section: int) -> list[Symbol]:
        """Return the functions whose code lies in a section, by place."""
        found = [s for s in self.symbols if s.kind == _FUNCTION and s.section == section and s.name]
        return sorted(found, key=lambda s: (s.value, s.name))

    def variables(self) -> list[Symbol]:
        """Return the variables of the module."""
        return [s for s in self.symbols if s.kind == _OBJECT and 0 < s.section < len(self.sections)]

    def lines(self) -> dict[int, tuple[list[str], list[tuple[int, int, int]]]]:
        """Return the source lines of each code section.

        Returns
        -------
        dict
            By number of the section: names of files (from 1; the first entry is not used), and
            tuples of address, file and line in order of address.
        """
        section = self.find(".debug_line")
        if section is None:
            return {}
        number = self.sections.index(section)
        places = {r.offset: r.symbol for r in self.relocations if r.section == number}
        try:
            return _LineProgram(section.data, places, self.symbols).run()
        except (struct.error, IndexError):
            return {}  # lines are a convenience: their damage stops nothing


def _text(table: bytes, offset: int) -> str:
    if offset > len(table):
        raise IndexError(f"a name at {offset:#x} of {len(table):#x} bytes of names")
    return table[offset : table.find(b"\0", offset)].decode("utf-8", "replace")


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    """Return kinds and values of an .nv.info section."""
    found, at = [], 0
    while at + 4 <= len(data):
        form, kind, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:  # the others have their value where this one has its size
            found.append((kind, data[at : at + size]))
            at += size
        else:
            found.append((kind, data[at - 2 : at]))
    return found


class _LineProgram:
    """The line numbers of a DWARF 2 .debug_line section (DWARF 2.0, Section 6.2)."""

    def __init__(self, data: bytes, places: dict[int, int], symbols: list[Symbol]) -> None:
        self._data = data
        self._places = places
        self._symbols = symbols
        self._at = 0

    def _take(self, form: str) -> int:
        value: int = struct.unpack_from("<" + form, self._data, self._at)[0]
        self._at += struct.calcsize("<" + form)
        return value

    def _leb(self, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value

    def _name(self) -> str:
        end = self._data.index(b"\0", self._at)
        text = self._data[self._at : end].decode("utf-8", "replace")
        self._at = end + 1
        return text

    def run(self) -> dict[int, tuple[list[str], list[tuple[int, int, int]]]]:
        result: dict[int, tuple[list[str], list[tuple[int, int, int]]]] = {}
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
            if not 2 <= version <= 3 or span == 0:
                self._at = end
                continue
            while self._data[self._at]:
                self._name()
            self._at += 1
            files = [""]
            while self._data[self._at]:
                files.append(self._name())
                for _ in range(3):
                    self._leb()
            self._at = program
            self._sequences(end, shortest, base, span, operands, files, result)
            self._at = end
        for _, rows in result.values():
            rows.sort()
        return result

    def _sequences(
        self,
        end: int,
        shortest: int,
        base: int,
        span: int,
        operands: list[int],
        files: list[str],
        result: dict[int, tuple[list[str], list[tuple[int, int, int]]]],
    ) -> None:
        section, address, file, line = -1, 0, 1, 1

        def row() -> None:
            result.setdefault(section, (files, []))[1].append((address, file, line))

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
                elif kind == 2:
                    place = self._places.get(self._at)
                    symbol = None if place is None else self._symbols[place]
                    address = self._take("Q")
                    if symbol is not None:
                        section, address = symbol.section, address + symbol.value
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
