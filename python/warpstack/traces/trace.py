"""Kernel traces in memory: applications, kernels and their columns."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from warpstack import _core
from warpstack._util import notebook
from warpstack._util.arguments import as_integer, printable_text
from warpstack._util.checked import checked, strictly_checked
from warpstack._util.lazy import pandas as pd
from warpstack._util.trace_budget import default_budget
from warpstack.errors import InputError, TraceWarning, not_a, shown, warn
from warpstack.traces import packing  # noqa: F401  (traces pickle)

__all__ = ["App", "KernelTrace"]

Dim3 = tuple[int, int, int]

#: Columns of `App.info` that a notebook shows first.
_MAIN_COLUMNS = (
    "kernel",
    "name",
    "grid",
    "block",
    "instructions",
    "memory_instructions",
    "dpki",
)


class SourceFile(NamedTuple):
    """A file of source that a trace names.

    Attributes
    ----------
    name
        As the compiler names it, mostly with its folder.
    time
        When it was changed last before it was compiled, in seconds since 1970; 0: unknown.
    bytes
        Its size when it was compiled; 0: unknown.
    """

    name: str
    time: int
    bytes: int


class InlinedCall(NamedTuple):
    """A call in whose place the code of a function stands.

    Attributes
    ----------
    function
        Name of the called function, mostly mangled; empty: unknown.
    file, line
        Where the call stands.
    """

    function: str
    file: str
    line: int


class KernelTrace:
    """The immutable trace of one kernel launch.

    Made by `warpstack.load`, by `warpstack.patterns` or by a `warpstack.patterns.KernelBuilder`.
    The columns live in the compiled core, in memory or in a temporary file, and are never copied
    into Python unless asked for.
    """

    @checked
    def __init__(self, core: _core.KernelTrace) -> None:
        self._core = core
        self._header = core.header

    @property
    def name(self) -> str:
        """Name as in the trace, usually mangled."""
        return str(self._header["name"])

    @cached_property
    def short_name(self) -> str:
        """Readable function name: demangled, without arguments and namespaces."""
        return short_name(self.name)

    @property
    def launch_id(self) -> int:
        """Number of the launch in its application, from 1."""
        return int(self._header["launch_id"])

    @property
    def parent(self) -> int | None:
        """Number of the launch whose kernel launched this one; None if the host did."""
        return int(self._header["parent"]) or None

    @property
    def grid(self) -> Dim3:
        """Thread blocks of the launch (x, y, z)."""
        x, y, z = self._header["grid"]
        return (x, y, z)

    @property
    def block(self) -> Dim3:
        """Threads of a block (x, y, z)."""
        x, y, z = self._header["block"]
        return (x, y, z)

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a thread block, static and dynamic, in bytes."""
        return int(self._header["shared_memory_bytes"])

    @property
    def registers_per_thread(self) -> int:
        """32-bit registers of a thread."""
        return int(self._header["registers_per_thread"])

    @property
    def source(self) -> str:
        """Origin: ``accelsim``, ``pptgpu``, ``builder``, or for a launch here ``ptx`` or ``sass``."""
        return str(self._header["source"])

    @property
    def code(self) -> str:
        """The kind of its instructions: ``ptx``, the machine code's architecture (``sm_80``), or empty.

        It is empty where a trace's file does not say it.
        """
        if self.source == "ptx":
            return "ptx"
        version = int(self._header["binary_version"])
        return f"sm_{version}" if version else ""

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks of a cluster along x, y and z, all 1 without clusters."""
        x, y, z = self._header["cluster"]
        return x, y, z

    @property
    def num_blocks(self) -> int:
        """Thread blocks of the launch, traced or not."""
        return self._core.num_blocks

    @property
    def num_missing_blocks(self) -> int:
        """Thread blocks of the launch that the trace leaves out."""
        return self._core.num_missing_blocks

    @cached_property
    def is_sampled(self) -> bool:
        """Whether the traced blocks are a sample that stands for all (``sample_blocks``)."""
        return self._core.is_sampled

    @property
    def num_missing_warps(self) -> int:
        """Warps that the traced thread blocks lack."""
        return self._core.num_missing_warps

    @property
    def warps_per_block(self) -> int:
        """Warps of a thread block, the last one perhaps partly filled."""
        return self._core.warps_per_block

    @property
    def num_warps(self) -> int:
        """Traced warps."""
        return self._core.num_warps

    @property
    def num_instructions(self) -> int:
        """Issued warp instructions, those without an active lane included."""
        return self._core.num_instructions

    @property
    def num_memory_instructions(self) -> int:
        """Issued warp instructions that address global or local memory."""
        return self._core.num_memory_instructions

    @property
    def digest(self) -> str:
        """Content digest of everything the stages read, 32 hexadecimal digits."""
        return self._core.digest

    @property
    def nbytes(self) -> int:
        """Bytes of the dynamic columns of all thread blocks; of equal ones only one is stored."""
        return self._core.bytes

    @property
    def in_file(self) -> bool:
        """Whether the columns live in a temporary file because they exceed the memory limit."""
        return self._core.in_file

    @property
    def has_control_fields(self) -> bool:
        """Whether `instructions` says when each may issue; `warpstack.simulate` obeys it then."""
        return self._core.has_control

    @property
    def unknown_opcodes(self) -> dict[str, int]:
        """Opcodes outside the table and how many warp instructions have them."""
        return self._core.unknown_opcodes

    @cached_property
    def num_thread_instructions(self) -> int:
        """Sum of the active lanes of all issued warp instructions."""
        return self._core.num_thread_instructions()

    @checked
    def dpki(self, line_bytes: int = 128) -> float:
        """Divergent loads per kilo-instruction.

        Load warp instructions that touch more than one line of `line_bytes`, per 1000 issued warp
        instructions; an application above 10 is memory-divergent (MDM, Section I).

        Raises
        ------
        InputError
            If caches have no lines of that size.
        """
        return self._core.dpki(as_integer("line_bytes", line_bytes, 0, 2**32 - 1))

    @cached_property
    def instructions(self) -> pd.DataFrame:
        """The static instruction table.

        One row per static instruction: ``pc``, ``opcode``, ``op_class``, ``space``, ``kind``,
        ``cache_operator``, ``width`` (bytes per thread), ``destinations`` and ``sources`` (vector
        registers, tuples expanded, numbered densely per kernel), ``source_line`` (0: unknown) of
        ``source_file`` (as the compiler names it; empty: unknown), ``inlined_at`` and ``executions``
        (issued warp instructions). If the function of that line was inlined, ``inlined_at`` holds a tuple
        ``(function, file, line)`` for its call, and one for each call around that, outermost last.

        Traces of machine code also say when instructions may issue: ``stall`` (cycles), ``yield``,
        ``write_barrier``, ``read_barrier`` (7: none), ``wait_mask``, ``reuse`` (bits), and of
        ``DEPBAR`` ``counted_barrier`` (7: none), which at most ``counted_most`` instructions may
        hold before the warp goes on.
        """
        flags = {"known_opcode": bool, **({"yield": bool} if self.has_control_fields else {})}
        table = self._core.instruction_table()
        files = ["", *(file.name for file in self.source_files)]
        chains = self._inlined_chains
        table["source_file"] = [files[number] for number in table["source_file"]]
        table["inlined_at"] = [chains[number] for number in table["inlined_at"]]
        return pd.DataFrame(table).astype(flags)

    @cached_property
    def source_files(self) -> tuple[SourceFile, ...]:
        """The files of source that `instructions` names; empty where the trace knows none."""
        return tuple(SourceFile(*file) for file in self._core.sources["files"])

    @cached_property
    def _inlined_chains(self) -> list[tuple[InlinedCall, ...]]:
        """The calls around the code of each inlined call, from number 1 on; number 0 has none."""
        files = ["", *(file.name for file in self.source_files)]
        chains: list[tuple[InlinedCall, ...]] = [()]
        for function, file, line, caller in self._core.sources["calls"]:
            chains.append((InlinedCall(function, files[file], line), *chains[caller]))
        return chains

    def blocks(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the linear index and the warp numbers of each traced thread block."""
        for position in range(self._core.num_traced_blocks):
            yield self._core.block_warps(position)

    @checked
    def warp(self, block: int, warp: int) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns of one warp.

        Parameters
        ----------
        block
            Position of the thread block in the trace (its linear index when none is missing).
        warp
            Position of the warp in the block.

        Returns
        -------
        dict
            Read-only arrays. ``instruction`` (row of `instructions`) and ``active_mask`` have an
            entry per issued instruction; ``memory_static`` (row), ``memory_count`` (touched
            sectors, or shared-memory wavefronts) and ``l1_passes`` (over the banks of L1; 0: as the
            sectors imply, or none) one per instruction with an address operand;
            ``sector`` (address / 32) and ``store_bytes`` (byte mask) one per touched and per
            written sector; ``sector_lanes`` and ``word_lanes`` one per written sector, or none in
            thread blocks without atomics: how many lanes of an atomic want the sector, and the most
            of them at one address (of stores 0).

        Raises
        ------
        InputError
            If the trace has no such warp.
        """
        block = as_integer("block", block, 0, self._core.num_traced_blocks - 1)
        warp = as_integer("warp", warp, 0, len(self._core.block_warps(block)[1]) - 1)
        return self._core.warp_columns(block, warp)

    @checked
    def changed(self, change: str, rows: Iterable[int] | None = None) -> KernelTrace:
        """Return the trace that the launch would have if its program were changed.

        Cycles before over cycles after, of any model or of the simulator, are what the change gains at
        most: `warpstack.models.program_gains` tabulates that.

        Parameters
        ----------
        change
            A key of `warpstack.models.PROGRAM_CHANGES`, but for ``full_last_wave``, which depends on the
            GPU. ``docs/explanation/program-changes.md`` gives the rule of each.
        rows
            Rows of `instructions` that are changed, such as those of one source line; by default all. Of
            ``padded_pitch`` the arrays that they access; ``free_occupancy`` is of the whole launch.

        Raises
        ------
        InputError
            If there is no such change, or no such row.

        Examples
        --------
        >>> import warpstack as ws
        >>> kernel = ws.patterns.strided(gs=32, iterations=8, blocks=28)
        >>> kernel.dpki(), kernel.changed("coalesced").dpki()
        (133.33333333333334, 0.0)
        """
        is_chosen = np.zeros(0, dtype=np.uint8)
        if rows is not None:
            num_rows = len(self._core.instruction_table()["opcode"])
            is_chosen = np.zeros(num_rows, dtype=np.uint8)
            for row in rows:
                is_chosen[as_integer("rows", row, 0, num_rows - 1)] = 1
        return KernelTrace(self._core.changed(change, is_chosen, default_budget()))

    def __repr__(self) -> str:
        missing = f" ({self.num_missing_blocks} missing)" if self.num_missing_blocks else ""
        lacking = f" ({self.num_missing_warps} missing)" if self.num_missing_warps else ""
        return (
            f"<KernelTrace {self.launch_id} {self.short_name}: grid {self.grid} block {self.block}, "
            f"{self.num_blocks} thread blocks{missing}, {self.num_warps} warps{lacking}, "
            f"{self.num_instructions:,} warp instructions>"
        )

    def _repr_html_(self) -> str:
        launch = App([self], self.short_name).info()
        return notebook.cell(
            repr(self),
            notebook.table({name: launch[name] for name in _MAIN_COLUMNS}),
            notebook.folded("the launch", notebook.fields(launch.iloc[0].to_dict())),
            notebook.folded(
                "instructions", notebook.table(dict(self.instructions.items()), "instructions")
            ),
        )

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same launch with the same content."""
        if not isinstance(other, KernelTrace):
            return NotImplemented
        if self._core is other._core:
            return True
        return self._header == other._header and self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.launch_id, self.name, self.grid))  # the digest reads all columns

    def __deepcopy__(self, memo: dict[int, Any]) -> KernelTrace:
        return self  # immutable, and perhaps as large as memory


#: The end of a range without one: above all numbers that a text may have.
_OPEN_END = 2**70


class Launches:
    """A choice of launch numbers.

    Kept as ranges, because a range may be far longer than any application.

    Parameters
    ----------
    ranges
        The numbers chosen.
    """

    def __init__(self, ranges: Iterable[range]) -> None:
        self._ranges = tuple(ranges)
        if not self._ranges:
            raise InputError("kernels: no launch is chosen")
        for chosen in self._ranges:
            if not chosen:
                raise InputError(f"kernels: {chosen} is empty")

    @classmethod
    def of(cls, kernels: int | Iterable[int | range] | Launches) -> Launches:
        """Return the choice that a caller wrote as a number, a range or a sequence of both.

        Raises
        ------
        InputError
            If it is something else, or chooses nothing.
        """
        if isinstance(kernels, Launches):
            return kernels
        if isinstance(kernels, str):
            raise InputError(f"kernels = {shown(kernels)}: expected launch numbers such as [1, 4]")
        parts: Iterable[Any] = (kernels,)
        if not isinstance(kernels, range):
            with contextlib.suppress(TypeError):
                parts = iter(kernels)  # type: ignore[arg-type]
        return cls(part if isinstance(part, range) else _just(part) for part in parts)

    def __contains__(self, launch_id: int) -> bool:
        return self.is_chosen(launch_id)

    def is_chosen(self, launch_id: int) -> bool:
        """Return whether a launch is chosen itself, and not only because another one is."""
        return any(launch_id in chosen for chosen in self._ranges)

    def with_earlier(self) -> Launches:
        """Return a choice that has the launches before the last one, too, if they are there."""
        return _WithEarlier(self._ranges)

    def check(self, known: Collection[int], where: str) -> None:
        """Raise `InputError` for the first launch that is chosen and not known."""
        launches = set(known)
        for chosen in self._ranges:
            if chosen.stop == _OPEN_END:
                if not any(number >= chosen.start for number in launches):
                    raise InputError(
                        f"{where} has no kernel {chosen.start} or later; {_listing(launches)}"
                    )
                continue
            # This ends after as many steps as there are launches, however long the range is.
            missing = next((number for number in chosen if number not in launches), None)
            if missing is not None:
                raise InputError(f"{where} has no kernel {missing}; {_listing(launches)}")


class _WithEarlier(Launches):
    """Launches that are chosen, and all with a smaller number than the last of them."""

    def __contains__(self, launch_id: int) -> bool:
        return launch_id < max(chosen.stop for chosen in self._ranges)


def launches_of_text(text: str | None, where: str) -> list[range] | None:
    """Read a choice of launches such as ``1,4-6``, or ``2-`` for all from the second on.

    Raises
    ------
    InputError
        If the text is something else; the message begins with `where`.
    """
    if text is None:
        return None
    chosen = []
    for part in text.split(","):
        ends = re.fullmatch(r"([0-9]{1,20})(?:(-)([0-9]{1,20})?)?", part.strip())
        if not ends:
            raise InputError(f"{where}kernels {text}: expected launch numbers such as 1,4-6 or 2-")
        if ends[2] and not ends[3]:
            chosen.append(range(int(ends[1]), _OPEN_END))
            continue
        first, last = int(ends[1]), int(ends[3] or ends[1])
        if last < first:
            raise InputError(f"{where}kernels {text}: the range {part.strip()} is empty")
        chosen.append(range(first, last + 1))
    return chosen


def launches_named(kernels: Iterable[KernelTrace], text: str, where: str) -> list[range]:
    """Return the launches that a text chooses by the names of their kernels, or by numbers.

    A part of the text between commas is the name of a kernel, with or without its parameters, a
    pattern such as ``gemm*``, or launch numbers such as ``4-6``.

    Raises
    ------
    InputError
        If no kernel has such a name; the message begins with `where`.
    """
    names = {kernel.launch_id: (kernel.short_name, kernel.name) for kernel in kernels}
    # The name of a template has commas of its own.
    whole = any(text in both for both in names.values())
    chosen: list[range] = []
    for part in [text] if whole else [part.strip() for part in text.split(",")]:
        if re.fullmatch(r"[0-9]+(-[0-9]*)?", part):
            chosen += launches_of_text(part, where) or []
            continue
        found = [
            range(launch, launch + 1)
            for launch, both in names.items()
            if part in both or any(fnmatch.fnmatchcase(name, part) for name in both)
        ]
        if not found:
            known = list(dict.fromkeys(short for short, _ in names.values()))
            more = f" and {len(known) - 10} more" if len(known) > 10 else ""
            raise InputError(
                f"{where}kernels {text}: no kernel is called {shown(part)}; there are "
                f"{', '.join(known[:10])}{more}; give names, patterns such as gemm*, or launch numbers "
                "such as 1,4-6 or 2-"
            )
        chosen += found
    return chosen


def _just(number: Any) -> range:
    launch = as_integer("kernels", number, 0, 2**64 - 1)
    return range(launch, launch + 1)


def _listing(launches: Collection[int]) -> str:
    numbers = sorted(launches)
    if len(numbers) > 16:
        return f"its {len(numbers)} kernels have numbers from {numbers[0]} to {numbers[-1]}"
    return f"its kernels are {', '.join(map(str, numbers))}"


class App:
    """An application: kernel launches in order.

    Parameters
    ----------
    kernels
        The launches.
    name
        A name for tables and plots.

    Raises
    ------
    InputError
        If `kernels` are not kernels.
    """

    @strictly_checked
    def __init__(self, kernels: Sequence[KernelTrace], name: str = "app") -> None:
        self._kernels = tuple(kernels)
        self.name = name

    @property
    def kernels(self) -> tuple[KernelTrace, ...]:
        """The launches in order."""
        return self._kernels

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[KernelTrace]:
        return iter(self._kernels)

    def __getitem__(self, index: int) -> KernelTrace:
        return self._kernels[index]

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same name and equal kernels."""
        if not isinstance(other, App):
            return NotImplemented
        return (self.name, self._kernels) == (other.name, other._kernels)

    # By identity before there was equality; the name can be changed.
    def __hash__(self) -> int:
        return hash(self._kernels)

    @checked
    def select(self, launch_ids: int | Iterable[int | range] | Launches) -> App:
        """Return an application of some launches only, in their order here.

        Parameters
        ----------
        launch_ids
            A launch number, a range of them, or a sequence of both.

        Raises
        ------
        InputError
            If a launch does not exist, or none is chosen.
        """
        wanted = launch_ids if isinstance(launch_ids, Launches) else Launches.of(launch_ids)
        wanted.check({kernel.launch_id for kernel in self._kernels}, self.name)
        return App([k for k in self._kernels if k.launch_id in wanted], self.name)

    @cached_property
    def digest(self) -> str:
        """Content digest of all kernels in order, 32 hexadecimal digits."""
        text = "".join(kernel.digest for kernel in self._kernels)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def info(self) -> pd.DataFrame:
        """Return one row per kernel with its launch geometry and counts.

        Where kernels have launched kernels, ``parent`` is the launch that did; 0 is the host.
        """
        table = pd.DataFrame(
            [
                {
                    "kernel": kernel.launch_id,
                    "name": kernel.short_name,
                    "code": kernel.code,
                    "grid": kernel.grid,
                    "block": kernel.block,
                    "blocks": kernel.num_blocks,
                    "missing_blocks": kernel.num_missing_blocks,
                    "missing_warps": kernel.num_missing_warps,
                    "warps": kernel.num_warps,
                    "registers_per_thread": kernel.registers_per_thread,
                    "shared_memory_bytes": kernel.shared_memory_bytes,
                    "instructions": kernel.num_instructions,
                    "thread_instructions": kernel.num_thread_instructions,
                    "memory_instructions": kernel.num_memory_instructions,
                    "dpki": kernel.dpki(),
                    "digest": kernel.digest,
                }
                for kernel in self._kernels
            ]
        )
        parents = [kernel.parent or 0 for kernel in self._kernels]
        if any(parents):
            table.insert(1, "parent", parents)
        return table

    def __repr__(self) -> str:
        total = sum(kernel.num_instructions for kernel in self._kernels)
        return f"<App {self.name}: {len(self._kernels)} kernels, {total:,} warp instructions>"

    def _repr_html_(self) -> str:
        launches = self.info()
        rest = [str(name) for name in launches if name not in _MAIN_COLUMNS]
        return notebook.cell(
            repr(self),
            notebook.table({name: launches[name] for name in _MAIN_COLUMNS}, "info()"),
            notebook.folded(
                "more of each launch",
                notebook.table({name: launches[name] for name in ("kernel", *rest)}, "info()"),
            ),
        )


def ambiguous_names(kernels: Iterable[KernelTrace]) -> set[str]:
    """Return the short names that different kernels have: instances of a template, overloads."""
    full: dict[str, str] = {}
    return {
        kernel.short_name
        for kernel in kernels
        if full.setdefault(kernel.short_name, kernel.name) != kernel.name
    }


def distinct_names(
    kernels: Sequence[KernelTrace], ambiguous: Collection[str] | None = None
) -> list[str]:
    """Return a readable name of each kernel, which no other kernel among them has.

    Parameters
    ----------
    kernels
        The launches; those of one kernel have one name.
    ambiguous
        Short names that do not tell kernels apart; None: `ambiguous_names` of these.

    Returns
    -------
    list of str
        The short name where it tells the kernel apart; else the demangled name with its template
        arguments, and with its parameters where only these differ.
    """
    unclear = ambiguous_names(kernels) if ambiguous is None else ambiguous
    whole = {k.name: _demangled(k.name) for k in kernels if k.short_name in unclear}
    plain = {name: _without_parameters(text) for name, text in whole.items()}
    shared = {text for text, count in Counter(plain.values()).items() if count > 1}
    names = {name: whole[name] if text in shared else text for name, text in plain.items()}
    return [names.get(kernel.name, kernel.short_name) for kernel in kernels]


def _demangled(name: str) -> str:
    # Kernels return nothing; the demangler says so of instances of templates.
    return printable_text(_core.demangled(_mangled(name)).removeprefix("void "))


def _without_parameters(text: str) -> str:
    """Return a readable name without the last pair of parentheses and what is in it."""
    depth = 0
    for place in range(len(text) - 1, 0, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth == 0:
            return text[:place] if text.endswith(")") else text
    return text


def kernels_of(app: App | KernelTrace) -> tuple[KernelTrace, ...]:
    """Return the kernels of an application, or the kernel itself."""
    if isinstance(app, App):
        return app.kernels
    if isinstance(app, KernelTrace):
        return (app,)
    raise not_a("app", "an App or a KernelTrace", app)


def warn_of_gaps(kernels: Sequence[KernelTrace], where: str) -> None:
    """Warn once each of unknown opcodes, of missing thread blocks and of missing warps."""
    unknown: dict[str, int] = {}
    for kernel in kernels:
        for opcode, count in kernel.unknown_opcodes.items():
            unknown[opcode] = unknown.get(opcode, 0) + count
    if unknown:
        total = sum(unknown.values())
        listed = ", ".join(f"{opcode} ({count})" for opcode, count in sorted(unknown.items())[:8])
        more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
        _warn(
            f"{where}: {total} warp instructions have unknown opcodes: {listed}{more}; with an address "
            "they count as generic loads or stores, otherwise as integer instructions"
        )
    blocks = _gaps(kernels, lambda k: (0 if k.is_sampled else k.num_missing_blocks, k.num_blocks))
    if blocks:
        _warn(
            f"{where}: thread blocks are missing from the trace: {blocks}; they count as blocks like "
            "the traced ones"
        )
    warps = _gaps(kernels, lambda k: (k.num_missing_warps, k.num_warps + k.num_missing_warps))
    if warps:
        _warn(
            f"{where}: warps are missing from traced thread blocks: {warps}; they count as warps "
            "without instructions"
        )


def warn_of_samples(kernels: Sequence[KernelTrace], what: str) -> None:
    """Warn where traces are samples of thread blocks of what takes their blocks as they are."""
    samples = _gaps(kernels, lambda k: (k.num_missing_blocks if k.is_sampled else 0, k.num_blocks))
    if samples:
        _warn(
            f"{what}: traces are samples of thread blocks, which lack {samples}: counts are of the "
            "traced blocks alone, and these have the caches and the memory of the whole GPU; predict and "
            "simulate answer for all blocks, other answers need a trace of all"
        )


def _gaps(
    kernels: Sequence[KernelTrace], missing_of: Callable[[KernelTrace], tuple[int, int]]
) -> str:
    """Return how many of how many are missing in which kernels, as text; empty without gaps."""
    found = [(kernel.launch_id, *missing_of(kernel)) for kernel in kernels]
    gaps = [f"{missing} of {total} in kernel {k}" for k, missing, total in found if missing]
    more = f" and in {len(gaps) - 4} more kernels" if len(gaps) > 4 else ""
    return ", ".join(gaps[:4]) + more


def _warn(message: str) -> None:
    warn(message, TraceWarning)


#: Length of an identifier in an Itanium-mangled name. A name never has a million characters.
_LENGTH = re.compile(r"[0-9]{1,6}")


def _mangled(name: str) -> str:
    """Return a name without the file that nvcc puts before it in relocatable device code."""
    static = name.startswith("__nv_static_") and "__Z" in name
    return name[name.rindex("__Z") + 1 :] if static else name


def short_name(name: str) -> str:
    """Return the function's own name from an Itanium-mangled or a plain name."""
    name = _mangled(name)
    if not name.startswith("_Z"):
        return name.split("(")[0].strip() or name
    rest = name[2:]
    nested = rest.startswith("N")
    rest = rest.lstrip("NKVr") if nested else rest
    last = ""
    while found := _LENGTH.match(rest):
        length = int(found.group())
        rest = rest[found.end() :]
        if length > len(rest):
            break
        last, rest = rest[:length], rest[length:]
        if not nested:
            break
    return last or name
