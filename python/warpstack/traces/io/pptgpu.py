"""PPT-GPU traces: ``app_config.py``, ``sass_traces`` and ``memory_traces``.

Those of the original tracer and of ppt-gpu-subcore are read. They hold less than a warp trace:
``.sass`` has the instructions of one thread block without program counters or lane masks, ``.mem`` the
lane addresses of every block, in most cases without warps. ``docs/explanation/traces.md`` says how a
kernel is made of them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warpstack import _core
from warpstack._util.input_file import open_input, read_input
from warpstack._util.progress import Progress, progress_bar
from warpstack.errors import InputError, TraceWarning, warn
from warpstack.traces.io.common import LoadOptions
from warpstack.traces.trace import App, KernelTrace

CONFIG = "app_config.py"
_BLOCK_FILE = re.compile(r"kernel_(\d+)_block_(\d+)\.mem")
_SM_FILE = re.compile(r"kernel_(\d+)_sm_(\d+)\.mem")
#: The characters of numbers: `int` would accept signs and underscores, too.
_DIGITS = re.compile(r"[0-9a-fx]*")
_OPERAND = re.compile(r"([RP])(\d{1,3})")
_FIELDS = {
    "num_registers": "registers_per_thread",
    "shared_mem_bytes": "shared_memory_bytes",
    "grid_size": "grid",
    "block_size": "block",
}
_WARP_SIZE = 32
_ALL_LANES = 2**32 - 1
_PC_STEP = 16
#: Slots of an SM for resident warps are numbered below this.
_MAX_SLOTS = 64
_NO_ACCESS = 2**32 - 1
_RZ = 255


def matches(path: Path) -> bool:
    """Whether the path is the folder of an application, or its ``app_config.py``."""
    config = path / CONFIG if path.is_dir() else path
    return config.name == CONFIG and config.is_file()


def read(path: Path, options: LoadOptions) -> App:
    """Read the kernels that ``app_config.py`` lists."""
    folder = path if path.is_dir() else path.parent
    launches = _read_config(folder / CONFIG)
    name = folder.resolve().name
    if options.kernels is not None:
        options.kernels.check([launch.number for launch in launches], name)
        launches = [launch for launch in launches if options.wants(launch.number)]
    for launch in launches:
        launch.find_files(folder)
    total = sum(file.stat().st_size for launch in launches for file in launch.files())
    with progress_bar(options.progress, total, f"reading {name}", "B") as bar:
        kernels = [_read_kernel(launch, folder, options, bar) for launch in launches]
    if launches:
        warn(
            f"{folder}: PPT-GPU traces have no lane masks outside of tracing level 8, and no warps outside "
            "of level 4: lanes whose guard fails count as accessing, and addresses are given to warps in "
            "order of arrival",
            TraceWarning,
        )
    return options.select(App(kernels, name))


# The list of launches


@dataclass
class _Launch:
    number: int
    name: str
    numbers: dict[str, int]
    sass: Path | None = None
    memory: dict[int, Path] = field(default_factory=dict)

    def find_files(self, folder: Path) -> None:
        """Find the files of the launch."""
        sass = folder / "sass_traces" / f"kernel_{self.number}.sass"
        self.sass = sass if sass.is_file() else None
        traces = folder / "memory_traces"
        by_sm = False
        for file in sorted(traces.iterdir()) if traces.is_dir() else []:
            block = _BLOCK_FILE.fullmatch(file.name)
            if block and int(block[1]) == self.number:
                self.memory[int(block[2])] = file
            sm = _SM_FILE.fullmatch(file.name)
            by_sm |= sm is not None and int(sm[1]) == self.number
        if by_sm and not self.memory:
            raise InputError(
                f"{traces}: kernel {self.number} was traced by SM only; trace it with bit 1 of "
                "ENV_TRACING_LEVEL, by thread block"
            )
        if self.sass is None and not self.memory:
            raise InputError(
                f"{folder}: kernel {self.number} has neither {sass.relative_to(folder)} nor files "
                f"memory_traces/kernel_{self.number}_block_*.mem; restore them or leave the kernel out of "
                "app_kernels_id"
            )
        beyond = [block for block in self.memory if block >= self.numbers["grid_size"]]
        if beyond:
            raise InputError(
                f"{self.memory[beyond[0]]}: thread block {beyond[0]} is outside the launch of "
                f"{self.numbers['grid_size']} blocks"
            )

    def files(self) -> Iterator[Path]:
        if self.sass is not None:
            yield self.sass
        yield from self.memory.values()

    def header(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "launch_id": self.number,
            # Dimensions are traced as their product.
            "grid": (self.numbers["grid_size"], 1, 1),
            "block": (self.numbers["block_size"], 1, 1),
            "shared_memory_bytes": self.numbers["shared_mem_bytes"],
            "registers_per_thread": self.numbers["num_registers"],
            "binary_version": 0,
            "stream": 0,
            "shared_window": 0,
            "local_window": 0,
            "source": "pptgpu",
        }


#: Length of `app_config.py`, of which a kernel takes about 150 bytes; parsing takes far more memory.
_MAX_CONFIG_BYTES = 2**25


def _read_config(path: Path) -> list[_Launch]:
    """Read the assignments of literals in ``app_config.py``, which is never executed."""
    try:
        module = ast.parse(read_input(path, "list of kernels", _MAX_CONFIG_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InputError(f"{path}:{line}: not the tracer's list of kernels: {error}") from None
    values: dict[str, tuple[int, Any]] = {}
    for statement in module.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name):
            raise InputError(
                f"{path}:{statement.lineno}: expected only lines like kernel_1 = {{...}} and "
                "app_kernels_id = [...]"
            )
        try:
            values[target.id] = (statement.lineno, ast.literal_eval(statement.value))
        except (ValueError, TypeError, RecursionError, MemoryError):
            raise InputError(
                f"{path}:{statement.lineno}: {target.id} is not a plain literal; the file is not executed"
            ) from None
    line, numbers = values.get("app_kernels_id", (1, None))
    if not isinstance(numbers, list) or not all(type(n) is int for n in numbers):
        raise InputError(
            f"{path}:{line}: no list app_kernels_id = [1, 2, ...], which the tracer writes last; the trace "
            "is cut: trace again, or add the list of the kernels that are complete"
        )
    if len(set(numbers)) != len(numbers):
        raise InputError(f"{path}:{line}: app_kernels_id names a kernel twice: {numbers}")
    return [_launch(path, line, number, values) for number in numbers]


def _launch(path: Path, line: int, number: int, values: dict[str, tuple[int, Any]]) -> _Launch:
    if f"kernel_{number}" not in values:
        raise InputError(
            f"{path}:{line}: app_kernels_id names {number}, but there is no kernel_{number}"
        )
    line, entry = values[f"kernel_{number}"]
    if not isinstance(entry, dict) or not isinstance(entry.get("kernel_name"), str):
        raise InputError(f'{path}:{line}: kernel_{number} is not {{"kernel_name": "...", ...}}')
    for key in _FIELDS:
        if type(entry.get(key)) is not int or entry[key] < 0:
            raise InputError(
                f"{path}:{line}: kernel_{number} has {key} = {entry.get(key)!r}, not a whole number from 0"
            )
    return _Launch(number, entry["kernel_name"], {key: entry[key] for key in _FIELDS})


# Instructions


@dataclass(frozen=True)
class _Step:
    """An instruction of the traced thread block."""

    warp: int
    row: int
    opcode: str


class _Table:
    """The static instructions of a kernel: one per distinct text, as there are no counters."""

    def __init__(self, builder: _core.TraceBuilder) -> None:
        self._builder = builder
        self._rows: dict[tuple[str, tuple[str, ...]], int] = {}
        self._decoded: dict[str, dict[str, Any]] = {}

    def decoded(self, opcode: str) -> dict[str, Any]:
        if opcode not in self._decoded:
            self._decoded[opcode] = _core.decode_opcode(opcode)
        return self._decoded[opcode]

    def row(self, opcode: str, operands: Sequence[str] = ()) -> int:
        key = (opcode, tuple(operands))
        if key not in self._rows:
            destinations, sources = self._registers(opcode, operands)
            pc = _PC_STEP * len(self._rows)
            self._rows[key] = self._builder.intern(pc, opcode, destinations, sources)
        return self._rows[key]

    def record_row(self, opcode: str) -> int:
        """Return the row of a memory record that no traced instruction matches."""
        if self.decoded(opcode)["op_class"] != "unknown":
            return self.row(opcode)
        key = (opcode, ("record",))
        if key not in self._rows:
            self._rows[key] = self._builder.intern_row(
                {
                    "pc": _PC_STEP * len(self._rows),
                    "source_line": 0,
                    "opcode": opcode,
                    "known_opcode": False,
                    "op_class": "memory",
                    "space": "generic",
                    "kind": "load",
                    "cache_operator": "none",
                    "width": 4,
                    "destinations": [],
                    "sources": [],
                }
            )
        return self._rows[key]

    def has_access(self, opcode: str) -> bool:
        """Whether a record of the opcode is an access through the caches."""
        return self.is_cached(opcode) or self.decoded(opcode)["op_class"] == "unknown"

    def _registers(self, opcode: str, operands: Sequence[str]) -> tuple[list[int], list[int]]:
        """Split operands into written and read vector registers; the trace does not label them."""
        registers = [int(name[1:]) for name in operands if name[0] == "R"]
        decoded = self.decoded(opcode)
        base = opcode.split(".")[0]
        writes_none = (
            decoded["kind"] in ("store", "reduction", "async_copy")
            or decoded["op_class"] in ("control", "barrier")
            or base.endswith(("SETP", "SETP2"))
            or base in ("PLOP3", "R2P")
        )
        return ([], registers) if writes_none else (registers[:1], registers[1:])

    def is_shared(self, opcode: str) -> bool:
        return bool(self.decoded(opcode)["space"] == "shared")

    def width(self, opcode: str) -> int:
        return int(self.decoded(opcode)["width"])

    def is_recorded(self, opcode: str) -> bool:
        """Whether every execution of the opcode has a memory record."""
        decoded = self.decoded(opcode)
        cached = decoded["space"] in ("global", "local", "generic")
        return bool(cached and decoded["kind"] != "async_copy")

    def is_cached(self, opcode: str) -> bool:
        return bool(self.decoded(opcode)["space"] in ("global", "local", "generic"))


def _read_sass(path: Path, table: _Table, warps_per_block: int) -> list[_Step]:
    """Read the instructions of the thread block that was seen first, in order of arrival."""
    lines = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        slot = words[0]
        bad = [word for word in words[2:] if not _OPERAND.fullmatch(word)]
        if len(words) < 2 or not slot.isdecimal() or bad:
            raise InputError(
                f"{path}:{number}: expected warp, opcode and registers such as '6 IMAD R2 R0 R3', got "
                f"{line.strip()!r}"
            )
        over = [word for word in words[2:] if int(word[1:]) > _RZ]
        if over:
            raise InputError(f"{path}:{number}: the register {over[0]} is beyond {over[0][0]}{_RZ}")
        lines.append((int(slot), words[1], words[2:]))
    ranks = {slot: rank for rank, slot in enumerate(sorted({slot for slot, _, _ in lines}))}
    if len(ranks) > warps_per_block:
        raise InputError(
            f"{path}: {len(ranks)} warps, but a thread block of the launch has {warps_per_block}; the file "
            "and app_config.py are of different launches"
        )
    return [_Step(ranks[slot], table.row(op, operands), op) for slot, op, operands in lines]


# Memory records


@dataclass(frozen=True)
class _Record:
    """One executed instruction of a ``.mem`` file."""

    opcode: str
    slot: int | None
    mask: int
    addresses: dict[int, int]
    """By lane."""


@dataclass(frozen=True)
class _Layout:
    """The words between opcode and addresses."""

    prefixed: bool
    """Addresses have 0x (the original tracer), and nothing stands before them."""
    warp: bool = False
    masks: bool = False

    @property
    def leading(self) -> int:
        return self.warp + 3 * self.masks


_Words = list[tuple[int, list[str]]]
#: Records that decide on the layout.
_ENOUGH = 500


def _read_words(path: Path) -> _Words:
    """Return the line number and the words of each record."""
    lines = enumerate(_text(path).splitlines(), start=1)
    return [(n, line.split()) for n, line in lines if line.strip() and line.strip() != "====="]


def _layout_of(files: Sequence[Path]) -> _Layout:
    """Tell the dialect and the tracing level by what the words of many records can be."""
    records: list[tuple[bool, list[str]]] = []
    for file in files:
        records += [(i == 0, words) for i, (_, words) in enumerate(_read_words(file))]
        if len(records) > _ENOUGH:
            break
    if any(word.startswith("0x") for _, words in records for word in words[1:2]):
        return _Layout(prefixed=True)
    candidates = [
        _Layout(False, warp=True, masks=True),
        _Layout(False, masks=True),
        _Layout(False, warp=True),
    ]
    for layout in candidates:
        if records and all(_fits(words, layout, first) for first, words in records):
            return layout
    return _Layout(prefixed=False)


def _fits(words: list[str], layout: _Layout, first: bool) -> bool:
    # Until the first address the tracer's stream prints counts in decimal.
    bases = (10, 16) if first else (16,)
    try:
        leading = [int(word, 16) for word in words[1 : 1 + layout.leading]]
        if len(leading) < layout.leading:
            return False
        if layout.warp and int(words[1], bases[0]) >= _MAX_SLOTS:
            return False
        if not layout.masks:
            return True
        counts = {int(words[1 + layout.warp], base) for base in bases}
    except ValueError:
        return False
    active, predicate = leading[-2:]
    lanes, passing = active.bit_count(), predicate.bit_count()
    inside = 0 < active <= _ALL_LANES and predicate & ~active == 0
    return inside and not counts.isdisjoint((passing, lanes - passing))


def _read_records(path: Path, layout: _Layout, table: _Table) -> list[_Record]:
    records = []
    hexadecimal = False
    for number, words in _read_words(path):
        opcode, leading, rest = words[0], words[1 : 1 + layout.leading], words[1 + layout.leading :]
        try:
            if not _DIGITS.fullmatch("".join(words[1:])):
                raise ValueError("not all words are numbers")
            slot = int(leading[0], 16 if hexadecimal else 10) if layout.warp else None
            active, predicate = (int(w, 16) for w in leading[-2:]) if layout.masks else (None, None)
            if "".join(rest).count("x") != layout.prefixed * len(rest):
                raise ValueError("addresses with and without 0x")
            addresses = [int(word, 16) for word in rest]
        except ValueError as error:
            raise InputError(f"{path}:{number}: not an opcode with addresses: {error}") from None
        if not opcode[0].isupper() or max(addresses, default=0) >= 2**64 - 64:
            raise InputError(f"{path}:{number}: not an opcode with addresses of 64 bits")
        if slot is not None and slot >= _MAX_SLOTS:
            raise InputError(f"{path}:{number}: warp {slot} is beyond {_MAX_SLOTS - 1}")
        hexadecimal |= bool(addresses)
        if len(addresses) == 2 * _WARP_SIZE:
            addresses = addresses[_WARP_SIZE:]  # LDGSTS: shared, then global memory
        if len(addresses) > _WARP_SIZE:
            raise InputError(
                f"{path}:{number}: {len(addresses)} addresses; a warp has {_WARP_SIZE} lanes, and those of "
                "two operands cannot be told apart"
            )
        if not table.has_access(opcode):
            continue  # cache control and the like
        records.append(_Record(opcode, slot, *_lanes(addresses, active, predicate)))
    return records


def _lanes(
    addresses: list[int], active: int | None, predicate: int | None
) -> tuple[int, dict[int, int]]:
    """Give addresses to lanes: to the active ones if they can be told, to the first ones if not.

    Returns the mask of lanes and the address of each.
    """
    if active is not None and predicate is not None:
        lanes = [lane for lane in range(_WARP_SIZE) if active >> lane & 1]
        if len(addresses) == _WARP_SIZE:
            lanes = list(range(_WARP_SIZE))
        if len(addresses) == len(lanes):
            pairs = zip(lanes, addresses, strict=True)
            passing = {lane: address for lane, address in pairs if predicate >> lane & 1}
            return sum(1 << lane for lane in passing), passing
    return (1 << len(addresses)) - 1, dict(enumerate(addresses))


# Kernels


def _read_kernel(launch: _Launch, folder: Path, options: LoadOptions, bar: Progress) -> KernelTrace:
    try:
        builder = _core.TraceBuilder(launch.header(), options.budget)
    except InputError as error:
        raise InputError(f"{folder / CONFIG}: kernel {launch.number}: {error}") from None
    table = _Table(builder)
    warps = -(-launch.numbers["block_size"] // _WARP_SIZE)
    steps: list[_Step] = []
    if launch.sass is not None:
        steps = _read_sass(launch.sass, table, warps)
        bar.update(launch.sass.stat().st_size)
    layout = _layout_of([file for _, file in sorted(launch.memory.items())])
    doubling = _Doubling(Counter(step.opcode for step in steps if table.is_recorded(step.opcode)))
    for block in range(launch.numbers["grid_size"]):
        file = launch.memory.get(block)
        records = [] if file is None else _read_records(file, layout, table)
        _append_block(builder, table, launch, block, steps, records)
        if file is not None:
            doubling.see(records)
            bar.update(file.stat().st_size)
    if doubling.found():
        raise InputError(
            f"{folder / 'memory_traces'}: every file of kernel {launch.number} holds its records twice, as "
            "when a second run appends to the files of the first; delete the folder and trace again"
        )
    try:
        return KernelTrace(builder.finish())
    except InputError as error:
        raise InputError(f"{folder}: kernel {launch.number}: {error}") from None


class _Doubling:
    """Notices files to which a second run appended."""

    def __init__(self, executed: Counter[str]) -> None:
        self._executed = executed
        self._doubled = Counter({opcode: 2 * count for opcode, count in executed.items()})
        self._all_twice = True
        self._seen: set[str] = set()

    def see(self, records: Sequence[_Record]) -> None:
        half = len(records) // 2
        self._all_twice &= records[:half] == records[half:]
        count = Counter(record.opcode for record in records)
        if count == self._executed:
            self._seen.add("once")
        if count == self._doubled:
            self._seen.add("twice")

    def found(self) -> bool:
        """Whether all files repeat, and the traced block's has what that block executed twice."""
        return bool(self._executed) and self._all_twice and self._seen == {"twice"}


def _append_block(
    builder: _core.TraceBuilder,
    table: _Table,
    launch: _Launch,
    block: int,
    steps: Sequence[_Step],
    records: Sequence[_Record],
) -> None:
    """Append a block: the traced block's instructions with the addresses of this block.

    Every record becomes one instruction. It takes the place of the next traced one with its opcode
    (and of its warp where that is known). A traced one without a record was not executed here. A
    record without a traced one goes to the end of its warp, or warps take turns.
    """
    threads = launch.numbers["block_size"]
    warps = -(-threads // _WARP_SIZE)
    slots = sorted({record.slot for record in records if record.slot is not None})
    ranks = {slot: rank for rank, slot in enumerate(slots)}
    if len(slots) > warps:
        raise InputError(
            f"{launch.memory[block]}: {len(slots)} warps, but a thread block of the launch has {warps}"
        )
    waiting: dict[tuple[str, int | None], deque[_Record]] = {}
    for record in records:
        rank = None if record.slot is None else ranks[record.slot]
        waiting.setdefault((record.opcode, rank), deque()).append(record)
    with_warps = bool(slots)

    program: list[list[tuple[int, int, dict[int, int] | None]]] = [[] for _ in range(warps)]
    for step in steps:
        threads_left = min(threads - step.warp * _WARP_SIZE, _WARP_SIZE)
        mask = (1 << threads_left) - 1
        addresses: dict[int, int] | None = None
        if table.is_cached(step.opcode):
            queue = waiting.get((step.opcode, step.warp if with_warps else None))
            if queue:
                record = queue.popleft()
                mask, addresses = record.mask, record.addresses
            elif table.is_recorded(step.opcode):
                continue
            else:
                mask = 0
        elif table.is_shared(step.opcode):
            # Offsets in shared memory are not traced: lanes side by side, without conflicts.
            width = table.width(step.opcode)
            addresses = {lane: lane * width for lane in range(threads_left)}
        program[step.warp].append((step.row, mask, addresses))
    left = {id(record) for queue in waiting.values() for record in queue}
    turn = 0
    for record in records:
        if id(record) in left:
            warp = turn % warps if record.slot is None else ranks[record.slot]
            turn += 1
            program[warp].append((table.record_row(record.opcode), record.mask, record.addresses))

    flat = [(warp, *entry) for warp, entries in enumerate(program) for entry in entries]
    given = [addresses for *_, addresses in flat if addresses is not None]
    lanes = np.zeros((len(given), _WARP_SIZE), dtype=np.uint64)
    for position, addresses in enumerate(given):
        lanes[position, list(addresses)] = list(addresses.values())
    access = np.full(len(flat), _NO_ACCESS, dtype=np.uint32)
    having = [i for i, (*_, addresses) in enumerate(flat) if addresses is not None]
    access[having] = np.arange(len(given), dtype=np.uint32)
    columns = np.array([entry[:3] for entry in flat], dtype=np.uint32).reshape(-1, 3)
    warp_column, row_column, mask_column = columns.T
    _core.append_block(builder, block, warp_column, row_column, mask_column, access, lanes.ravel())


def _text(path: Path) -> str:
    try:
        with open_input(path) as file:
            return file.read().decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
