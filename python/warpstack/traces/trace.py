"""Kernel traces in memory: applications, kernels and their columns."""

from __future__ import annotations

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
from warpstack.errors import InputError, TraceWarning, not_a, warn
from warpstack.traces import operations as host_operations
from warpstack.traces import packing  # noqa: F401  (traces pickle)
from warpstack.traces.launches import Launches

__all__ = ["App", "KernelTrace", "nothing_launched"]

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
        #: What the host did; None: nobody has recorded it.
        self._operations: host_operations.Columns | None = None

    @classmethod
    def _recorded(
        cls, kernels: Sequence[KernelTrace], name: str, operations: host_operations.Columns | None
    ) -> App:
        """Return an application with what the host did."""
        app = cls(kernels, name)
        app._operations = operations
        return app

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
        return self._part([i for i, k in enumerate(self._kernels) if k.launch_id in wanted])

    def _part(self, places: Sequence[int], name: str | None = None) -> App:
        """Return an application of the kernels at some places; the host does the same."""
        operations = self._operations
        if operations is not None and list(places) != list(range(len(self))):
            operations = host_operations.chosen(operations, places)
        kernels = [self._kernels[place] for place in places]
        return App._recorded(kernels, self.name if name is None else name, operations)

    @cached_property
    def operations(self) -> pd.DataFrame:
        """What the host of the program did, a row per call, in the order of the calls.

        ``warpstack trace`` records it. A trace without it has each kernel once, in the default stream.

        ``operation`` is one of `kernel`, `copy`, `memset`, `event_record`, `event_wait` (of a stream),
        `event_synchronize` (of the host), `stream_synchronize`, `device_synchronize`, `allocate`, `free`,
        `graph_launch`, `host_function`, `range_push`, `range_pop`, `stream_create`, `stream_destroy`,
        `nccl` and `library`. ``name`` is the kernel's, the text of a range, or the function's, which
        ``api`` has. ``process`` and ``thread`` count from 0 in the order of their first rows; streams,
        events and threads are those of the process. ``stream`` is 0 for the legacy default stream, -1 for
        none; ``blocking`` streams and it wait for each other. ``kernel`` is a place in `kernels`, or -1.
        ``bytes`` are copied, filled, allocated or freed, ``pinned`` says that the host's side is
        page-locked, and ``asynchronous`` that the function returns before the work is done. A
        ``programmatic`` kernel may overlap with those right before it (programmatic dependent launch).
        ``graph`` is the number of the launch of a graph, or -1; ``after`` are the rows that must end before
        this one begins, and ``parent`` is the row of the kernel that launched this one, or -1.
        ``begins_after`` are rows of calls that have returned before the host's time before this one begins:
        of a thread's first row, what was there when the thread was made, of one after a join, the last one
        of the joined thread. ``host_ns`` are nanoseconds that the thread spent outside of such functions
        since its last row, without waits for threads that were in them; ``work_ns`` what the function of a
        `host_function` took. ``connections`` is how many queues to the
        GPU the streams of the process share: its CUDA_DEVICE_MAX_CONNECTIONS, or 8. ``flops`` are the
        operations of a `library`, by the counts that are published for what it computes, a multiply-add
        being two, ``arithmetic`` is that which it computes in, and ``tensor_cores`` says whether it may use
        them.
        """
        recorded = self._operations
        if recorded is None:
            recorded = host_operations.derived([kernel.short_name for kernel in self._kernels])
        return host_operations.frame(recorded)

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
    plain = {name: without_parameters(text) for name, text in whole.items()}
    shared = {text for text, count in Counter(plain.values()).items() if count > 1}
    names = {name: whole[name] if text in shared else text for name, text in plain.items()}
    return [names.get(kernel.name, kernel.short_name) for kernel in kernels]


def _demangled(name: str) -> str:
    # Kernels return nothing; the demangler says so of instances of templates.
    return printable_text(_core.demangled(mangled_name(name)).removeprefix("void "))


def without_parameters(text: str) -> str:
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


def mangled_name(name: str) -> str:
    """Return a name without the file that nvcc puts before it in relocatable device code."""
    static = name.startswith("__nv_static_") and "__Z" in name
    return name[name.rindex("__Z") + 1 :] if static else name


def nothing_launched(app: object, what: str) -> InputError:
    """Return the error of an application without launches, where there is nothing to do `what` with."""
    if isinstance(app, App) and app._operations is not None:
        return InputError(
            f"{app.name}: the program launched no kernel, so that there is nothing to {what}; warpstack "
            "timeline has its copies and calls"
        )
    return InputError(f"the application has no kernels; there is nothing to {what}")


def short_name(name: str) -> str:
    """Return the function's own name from an Itanium-mangled or a plain name."""
    name = mangled_name(name)
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
