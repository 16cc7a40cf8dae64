"""Descriptions of GPUs: the only configuration that the stages read.

The file is long because `Gpu` is one table: each field stands once, with its meaning, unit, range,
default and stages.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Union

from warpstack._core import ENUM_NAMES
from warpstack._util.arguments import as_path, printable, printable_text
from warpstack._util.data_folder import data_folder
from warpstack.errors import (
    InputError,
    UnusedOptionWarning,
    not_a,
    not_one_of,
    shown,
    unknown,
    warn,
)
from warpstack.hardware.fields import (
    Stage,
    checked_value,
    choice,
    number,
    range_text,
    several,
    short,
    shown_name,
)
from warpstack.hardware.geometry import check_geometry
from warpstack.hardware.yaml_description import read_description

__all__ = ["Gpu", "as_gpu", "gpu", "gpus"]


_FOLDER = data_folder("gpus")

_YAML_ENDINGS = (".yaml", ".yml")
#: How well a value is known: measured on this product or another one with its chip; written down by
#: NVIDIA; computed from such values, or taken from a chip of the same family; or assumed.
_CONFIDENCES = ("measured", "documented", "derived", "guessed")
#: Numbers in files and on the command line: what Python's int and float read, without underscores,
#: infinities and NaN.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


#: What the memory stage reads, the simulation reads too: it has the same caches.
_MEMORY = Stage.MEMORY | Stage.TIMING
_INTERVAL = Stage.INTERVAL | Stage.TIMING
_MODEL = Stage.MODEL | Stage.TIMING
_TIMING = Stage.TIMING


def _class_latency(op_class: str, doc: str) -> Any:
    """Return a field for the latency of a class of operations that the core knows."""
    return number(doc, "cycles", stages=_INTERVAL, core=f"latency.{op_class}")


def _class_interval(op_class: str, doc: str) -> Any:
    doc = f"cycles from one {doc} instruction of a scheduler to the next"
    core = f"interval.{op_class}"
    return number(doc, "cycles", stages=_TIMING, core=core, at_most=4096, default=1)


def _dram_cycles(doc: str, default: int, *, at_least: int = 0, stages: Stage = Stage.TIMING) -> Any:
    return number(
        f"cycles of the DRAM clock {doc}",
        at_least=at_least,
        at_most=1 << 20,
        default=default,
        stages=stages,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU, as the stages see it.

    Cycles are cycles of the SM clock, bandwidths are aggregates of the whole GPU. Descriptions come
    from `warpstack.gpu` (by name or file), from `Gpu.from_gpgpusim`, or from `replace` on another
    one.

    Raises
    ------
    InputError
        If a value is of the wrong type, out of range or contradicts another one.

    Notes
    -----
    `Gpu.fields` lists every field with its unit and meaning; ``warpstack gpus --fields`` prints it.
    """

    name: str
    description: str = ""

    num_sms: int = number("streaming multiprocessors", at_least=1, at_most=65536, stages=_MEMORY)
    clock_ghz: float = number("SM clock", "GHz", stages=_MODEL)
    issue_width: float = number(
        "warp instructions per cycle per SM",
        at_least=1e-3,
        at_most=1024,
        stages=_INTERVAL | Stage.MODEL | Stage.TIMED,
    )
    scheduler: str = choice(
        "warp scheduler: greedy then oldest, loose round robin, or oldest first (which the models take "
        "for greedy then oldest)",
        *ENUM_NAMES["scheduler"],
        stages=Stage.TIMED | _MODEL,
    )
    schedulers_per_sm: int = number(
        "warp schedulers of an SM, each with its share of the warps; 0: issue_width, rounded up",
        at_most=1024,
        default=0,
        stages=_TIMING,
        core="",
    )

    warps_per_sm: int = number("warp slots per SM", at_least=1, stages=_MEMORY, core="sm.warps")
    threads_per_sm: int = number(
        "resident threads per SM", at_least=1, at_most=2**25, stages=_MEMORY, core="sm.threads"
    )
    blocks_per_sm: int = number(
        "resident thread blocks per SM", at_least=1, stages=_MEMORY, core="sm.blocks"
    )
    registers_per_sm: int = number(
        "32-bit registers per SM", at_least=1, at_most=2**30, stages=_MEMORY, core="sm.registers"
    )
    register_allocation_unit: int = number(
        "registers of a warp are rounded up to a multiple of this",
        at_least=1,
        default=256,
        stages=_MEMORY,
        core="sm.register_allocation_unit",
    )
    shared_memory_kib_per_sm: float = number(
        "shared memory for thread blocks, per SM",
        "KiB",
        at_most=2**24,
        stages=_MEMORY,
        core="sm.shared_memory_bytes",
    )
    shared_memory_allocation_bytes: int = number(
        "shared memory of a block is rounded up to a multiple of this",
        "bytes",
        at_least=1,
        default=256,
        stages=_MEMORY,
        core="sm.shared_memory_allocation_bytes",
    )
    shared_memory_reserved_bytes: int = number(
        "shared memory that the system adds to each block that uses some",
        "bytes",
        default=0,
        stages=_MEMORY,
        core="sm.shared_memory_reserved_bytes",
    )

    l1_size_kib: float = number(
        "L1 data cache per SM", "KiB", at_least=1 / 32, stages=_MEMORY, core="l1.size_bytes"
    )
    l1_ways: int = number("L1 associativity", at_least=1, stages=_MEMORY, core="l1.ways")
    l1_line_bytes: int = number(
        "L1 line", "bytes", at_least=32, stages=_MEMORY, core="l1.line_bytes"
    )
    l1_sector_bytes: int = number(
        "L1 fill unit; equal to the line: not sectored",
        "bytes",
        at_least=32,
        stages=_MEMORY | Stage.MODEL,
        core="l1.sector_bytes",
    )
    l1_mshrs: int = number(
        "L1 miss status holding registers per SM",
        at_least=1,
        stages=Stage.GREEDY | Stage.TIMED | _MODEL,
        core="",
    )
    l1_mshr_targets: int = number(
        "requests that wait for one MSHR of L1", at_least=1, default=8, stages=_TIMING
    )
    l1_latency: float = number("load-to-use latency of an L1 hit", "cycles", stages=_INTERVAL)
    l1_latency_place: str = choice(
        "where the latency of an L1 hit passes: after its look-up, or before, in a pipeline of as many "
        "requests, which one that cannot be served blocks",
        *ENUM_NAMES["place of the latency of L1"],
        default="after_tags",
        stages=_TIMING,
    )
    lines_under_way: str = choice(
        "whether a line of L1 or L2 whose data are on their way can make room for another one; where all "
        "lines of a set are reserved, requests wait",
        *ENUM_NAMES["lines under way"],
        default="replaceable",
        stages=Stage.TIMED | _TIMING,
    )
    l1_write_policy: str = choice(
        "what a store does to lower levels",
        *ENUM_NAMES["write policy"],
        default="write_through",
        stages=_MEMORY,
        core="l1.write_policy",
    )
    l1_write_miss: str = choice(
        "what a store miss does in L1",
        *ENUM_NAMES["write-miss policy"],
        default="no_allocate",
        stages=_MEMORY,
        core="l1.write_miss",
    )
    l1_replacement: str = choice(
        "which line makes room in L1: least recently used, first in first out, or tree pseudo-LRU",
        *ENUM_NAMES["replacement policy"],
        default="lru",
        stages=_MEMORY,
        core="l1.replacement",
    )
    l1_allocation: str = choice(
        "when a line that missed L1 takes its place: at once, or when its data arrive (streaming)",
        *ENUM_NAMES["allocation"],
        default="on_miss",
        stages=_MEMORY,
        core="l1.allocation",
    )
    l1_set_index: str = choice(
        "how lines spread over the sets of L1",
        *ENUM_NAMES["indexing"],
        default="modulo",
        stages=_MEMORY,
        core="l1.set_index",
    )
    l1_global_loads: str = choice(
        "whether loads of global memory go through L1",
        "cached",
        "bypassed",
        default="cached",
        stages=_MEMORY,
        core="",
    )
    unified_l1_kib: float = number(
        "storage of an SM that an adaptive L1 and shared memory divide; 0: L1 is as large as l1_size_kib",
        "KiB",
        default=0,
        stages=_MEMORY,
        core="unified_bytes",
    )
    shared_memory_carve_outs_kib: tuple[float, ...] = several(
        "sizes that shared memory can take of unified_l1_kib; a kernel has the smallest that costs no "
        "resident block (cache paper, Eq. 7)",
        "KiB",
        stages=_MEMORY,
        core="carve_outs",
    )
    adaptive_l1_keeps: str = choice(
        "what an adaptive L1 keeps of the geometry that l1_size_kib and l1_ways give",
        "sets",
        "ways",
        default="sets",
        stages=_MEMORY,
        core="",
    )
    noc_queue_entries: int = number(
        "requests that the NoC queue of an SM holds; takes the place of the MSHRs in the models when L1 "
        "is a streaming cache (MDM, footnote 2); 0: L1 is not a streaming cache",
        default=0,
        stages=Stage.GREEDY | Stage.TIMED | _MODEL,
        core="",
    )
    l1_miss_queue_entries: int = number(
        "requests of an SM that wait for the NoC where noc_queue_entries is 0",
        at_least=1,
        at_most=1 << 20,
        default=16,
        stages=_TIMING,
        core="",
    )
    lsu_queue_entries: int = number(
        "memory instructions in the load-store unit of an SM",
        at_least=1,
        at_most=1 << 16,
        default=2,
        stages=Stage.TIMED | _TIMING,
    )
    atomic_requests: str = choice(
        "requests of an atomic: one for all lanes of a line, or one for each of several lanes of one word",
        *ENUM_NAMES["requests of atomics"],
        default="per_line",
        stages=Stage.REQUESTS | _TIMING,
    )
    store_acknowledgement: str = choice(
        "whether a warp is done only when L2, or DRAM where L2 passes them on, has its stores and "
        "reductions",
        *ENUM_NAMES["acknowledgement of stores"],
        default="none",
        stages=_INTERVAL,
    )
    kernel_end: str = choice(
        "when a kernel ends: when L2 has its last store, when its last warp is done, or when DRAM has "
        "nothing left to transfer",
        *ENUM_NAMES["end of a kernel"],
        default="last_store",
        stages=_TIMING,
    )

    l2_size_kib: float = number(
        "L2 cache, all slices together",
        "KiB",
        at_least=1 / 32,
        stages=_MEMORY,
        core="l2.size_bytes",
    )
    l2_ways: int = number("L2 associativity", at_least=1, stages=_MEMORY, core="l2.ways")
    l2_line_bytes: int = number(
        "L2 line", "bytes", at_least=32, stages=_MEMORY, core="l2.line_bytes"
    )
    l2_sector_bytes: int = number(
        "L2 fill unit; equal to the line: not sectored",
        "bytes",
        at_least=32,
        stages=_MEMORY | Stage.MODEL,
        core="l2.sector_bytes",
    )
    l2_slices: int = number(
        "L2 slices", at_least=1, at_most=65536, stages=_MEMORY | Stage.MODEL, core="l2.slices"
    )
    l2_slice_interleave_bytes: int = number(
        "consecutive addresses in one slice",
        "bytes",
        at_least=32,
        default=256,
        stages=_MEMORY,
        core="l2.slice_interleave_bytes",
    )
    l2_latency: float = number("round trip of an L2 hit", "cycles", stages=_INTERVAL | Stage.MODEL)
    l2_clock_ghz: float = number(
        "clock of L2 and the NoC where they have their own: l2_latency is then constant in time when "
        "the SM clock changes; 0: they run on the SM clock",
        "GHz",
        or_zero=True,
        default=0,
        stages=_MODEL,
    )
    l2_write_policy: str = choice(
        "what a store does to DRAM",
        *ENUM_NAMES["write policy"],
        default="write_back",
        stages=_MEMORY,
        core="l2.write_policy",
    )
    l2_write_miss: str = choice(
        "what a store miss does in L2",
        *ENUM_NAMES["write-miss policy"],
        default="fetch_on_write",
        stages=_MEMORY,
        core="l2.write_miss",
    )

    l2_replacement: str = choice(
        "which line makes room in L2",
        *ENUM_NAMES["replacement policy"],
        default="lru",
        stages=_MEMORY,
        core="l2.replacement",
    )
    l2_set_index: str = choice(
        "how lines spread over the sets of an L2 slice",
        *ENUM_NAMES["indexing"],
        default="modulo",
        stages=_MEMORY,
        core="l2.set_index",
    )
    l2_slice_index: str = choice(
        "how chunks of l2_slice_interleave_bytes spread over the slices",
        *ENUM_NAMES["indexing"],
        default="modulo",
        stages=_MEMORY,
        core="l2.slice_index",
    )

    l2_mshrs: int = number(
        "miss status holding registers of an L2 slice", at_least=1, default=128, stages=_TIMING
    )
    l2_mshr_targets: int = number(
        "requests that wait for one MSHR of L2", at_least=1, default=8, stages=_TIMING
    )
    l2_queue_entries: int = number(
        "requests that wait for an L2 slice, and replies that wait in it",
        at_least=1,
        at_most=1 << 20,
        default=32,
        stages=_TIMING,
    )
    l2_slice_request_cycles: float = number(
        "cycles of its clock that an L2 slice takes for a request, at least; more than 1 where the NoC "
        "brings fewer",
        at_least=1,
        at_most=1 << 10,
        default=1,
        stages=_MODEL,
    )
    l2_slice_bytes_per_cycle: float = number(
        "what an L2 slice reads or writes of its data per cycle of its clock, on hits and for lines that "
        "it writes back; 0: no limit",
        "bytes",
        at_most=1 << 20,
        default=0,
        stages=_MODEL,
    )

    dram_latency: float = number(
        "what a DRAM access adds to an L2 hit", "cycles", stages=_INTERVAL | Stage.MODEL
    )
    noc_bandwidth_gbs: float = number(
        "between all SMs and L2, one direction", "GB/s", stages=_MODEL
    )
    noc_sm_bytes_per_cycle: float = number(
        "what one SM can send and receive per cycle of l2_clock_ghz; 0: no limit of its own",
        "bytes",
        default=0,
        stages=_MODEL,
    )
    noc_control_bytes: int = number(
        "what a packet without data, a read request, takes of the NoC bandwidth",
        "bytes",
        at_most=4096,
        default=8,
        stages=_MODEL,
    )
    dram_bandwidth_gbs: float = number("of all channels", "GB/s", stages=_MODEL)
    dram_channels: int = number(
        "DRAM channels, each of as many L2 slices; 0: one per slice",
        at_most=65536,
        default=0,
        stages=_MODEL,
        core="",
    )
    dram_clock_ghz: float = number(
        "clock at whose edges DRAM transfers start; 0: the clock of L2",
        "GHz",
        or_zero=True,
        default=0,
        stages=_MODEL,
    )
    dram_queue_entries: int = number(
        "requests that wait for a DRAM channel",
        at_least=1,
        at_most=1 << 20,
        default=64,
        stages=_TIMING,
    )
    dram_row_bytes: int = number(
        "row of a DRAM bank; 0: no banks, every access takes the same time, whatever the fields that "
        "follow",
        "bytes",
        at_most=1 << 24,
        default=0,
        stages=_MODEL,
    )
    dram_banks: int = number(
        "banks of a DRAM channel", at_least=1, at_most=4096, default=16, stages=_TIMING
    )
    dram_bank_groups: int = number(
        "groups of these banks, to which they belong in turn",
        at_least=1,
        at_most=4096,
        default=4,
        stages=_TIMING,
    )
    dram_interleaved_banks: int = number(
        "banks over which neighbouring addresses spread; a divisor of dram_banks",
        at_least=1,
        at_most=4096,
        default=1,
        stages=_TIMING,
    )
    dram_bank_interleave_bytes: int = number(
        "consecutive bytes in each of them", "bytes", at_least=32, default=128, stages=_TIMING
    )
    dram_burst_bytes: int = number(
        "bytes that one command reads or writes",
        "bytes",
        at_least=1,
        at_most=4096,
        default=32,
        stages=_TIMING,
    )
    dram_tccd: int = _dram_cycles(
        "between two bursts at the full bandwidth: what dram_tccdl is compared with", 4, at_least=1
    )
    dram_tccdl: int = _dram_cycles("between two bursts of one bank group", 6)
    dram_trrd: int = _dram_cycles("between the opening of rows in two banks", 12)
    dram_trcd: int = _dram_cycles("from the opening of a row to its first read", 24)
    dram_tras: int = _dram_cycles("from the opening of a row to its closing", 55)
    dram_trp: int = _dram_cycles("from the closing of a row to the opening of the next one", 24)
    dram_trtp: int = _dram_cycles("from a read to the closing of its row", 4)
    dram_cl: int = _dram_cycles("from a read to its data", 24, stages=_MODEL)
    dram_wl: int = _dram_cycles("from a write to its data", 8)
    dram_twtr: int = _dram_cycles("from a write's data to a read", 10, stages=_MODEL)
    dram_twr: int = _dram_cycles("from a write's data to the closing of its row", 24)
    dram_trefi: int = _dram_cycles("between two refreshes, which close all rows; 0: none", 0)
    dram_trfc: int = _dram_cycles("that a refresh takes", 0)

    integer_interval: int = _class_interval("integer", "integer and move")
    fp32_interval: int = _class_interval("fp32", "single precision")
    fp16_interval: int = _class_interval("fp16", "half precision")
    fp64_interval: int = _class_interval("fp64", "double precision")
    sfu_interval: int = _class_interval("sfu", "special function and conversion")
    tensor_interval: int = _class_interval("tensor", "matrix")

    integer_latency: float = _class_latency("integer", "integer and move instructions")
    fp32_latency: float = _class_latency("fp32", "single precision")
    fp16_latency: float = _class_latency("fp16", "half precision")
    fp64_latency: float = _class_latency("fp64", "double precision")
    sfu_latency: float = _class_latency("sfu", "special functions and conversions")
    tensor_latency: float = _class_latency("tensor", "matrix instructions")
    uniform_latency: float = _class_latency("uniform", "uniform datapath")
    control_latency: float = _class_latency("control", "branches")
    barrier_latency: float = _class_latency("barrier", "barriers and fences, without waiting")
    shuffle_latency: float = _class_latency("shuffle", "shuffles and matches")
    constant_latency: float = _class_latency("constant_load", "constant loads that hit")
    texture_latency: float = _class_latency("texture", "texture and surface accesses")
    shared_memory_latency: float = _class_latency(
        "shared_memory", "shared memory without bank conflicts"
    )

    #: Where each value comes from, by field name. Not part of the GPU's identity.
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    #: How well each value is known, by field name: ``measured``, ``documented``, ``derived`` or
    #: ``guessed``; fields of which nothing is said are left out. Not part of the GPU's identity.
    confidences: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )
    #: Options of the file this description was read from that have no meaning here.
    unused_options: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)
    #: What `replace` changed since the description got its name: new values by field name. Not part
    #: of the GPU's identity.
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        kinds = {"sources": Mapping, "confidences": Mapping, "changes": Mapping}
        for text, kind in {**kinds, "unused_options": tuple}.items():
            if not isinstance(getattr(self, text), kind):
                expected = "a tuple" if kind is tuple else "a dictionary"
                raise not_a(f"GPU {text}", expected, getattr(self, text))
        for text in ("name", "description"):
            value = getattr(self, text)
            if not isinstance(value, str):
                raise InputError(f"GPU {text} = {shown(value)} is not text")
            if printable_text(value) != value or (text == "name" and not value.isprintable()):
                raise InputError(f"GPU {text} = {shown(value)} has characters that are not text")
        for field in value_fields():
            object.__setattr__(
                self, field.name, checked_value(field, getattr(self, field.name), self.name)
            )
        check_geometry(self)
        for name, word in self.confidences.items():
            if word not in _CONFIDENCES:
                where = f"GPU {shown_name(self.name)}: {shown_name(str(name))}: confidence"
                raise not_one_of(where, word, _CONFIDENCES)

    def replace(self, **changes: Any) -> Gpu:
        """Return a copy with some fields changed.

        A change of `clock_ghz` keeps what lies outside the clock domain of the SMs constant in
        time: `dram_latency`, and `l2_latency` where `l2_clock_ghz` is not 0, which count SM cycles,
        are multiplied by new / old clock unless they are given too. Bandwidths are per second and
        stay.

        Parameters
        ----------
        **changes
            New values by field name.

        Returns
        -------
        Gpu
            The changed description. It keeps its name and notes the `changes`, unless they name it;
            the sources and confidences of changed fields are dropped.

        Raises
        ------
        InputError
            If a field does not exist (the message suggests the nearest) or a value is out of range.

        Examples
        --------
        >>> import warpstack as ws
        >>> gpu = ws.gpu("pascal-mdm").replace(num_sms=56, l1_mshrs=64)
        >>> gpu.title
        'pascal-mdm with num_sms=56, l1_mshrs=64'
        >>> ws.gpu("pascal-mdm").replace(clock_ghz=2.8).dram_latency
        440.0
        """
        check_field_names(changes, f"GPU {shown_name(self.name)}")
        changed = dataclasses.replace(self, **changes)
        noted: dict[str, Any] = {}
        if "name" not in changes:
            noted.update(self.changes)
            for name in (name for name in changes if name != "description"):
                value = getattr(changed, name)
                if name in noted or value != getattr(self, name):
                    noted[name] = value
        sources = {k: v for k, v in self.sources.items() if k not in changes}
        confidences = {k: v for k, v in self.confidences.items() if k not in changes}
        scaled: dict[str, Any] = {}
        if changed.clock_ghz != self.clock_ghz:
            constant = ["dram_latency"]
            if changed.l2_clock_ghz:
                constant.append("l2_latency")
            for name in constant:
                if name not in changes:
                    cycles = getattr(self, name)
                    scaled[name] = cycles * (changed.clock_ghz / self.clock_ghz)
                    note = f"{short(cycles)} cycles at {short(self.clock_ghz)} GHz"
                    sources[name] = "; ".join(filter(None, (self.sources.get(name), note)))
                    if confidences.get(name) in ("measured", "documented"):
                        confidences[name] = "derived"
        # A copy of the copy would check everything again.
        for field in value_fields() if scaled else ():
            if field.name in scaled:
                value = checked_value(field, scaled[field.name], self.name)
                object.__setattr__(changed, field.name, value)
        object.__setattr__(changed, "sources", sources)
        object.__setattr__(changed, "confidences", confidences)
        object.__setattr__(changed, "changes", noted)
        return changed

    @property
    def changes_text(self) -> str:
        """The `changes` as text, ``num_sms=56, l1_mshrs=64``; empty without any."""
        return ", ".join(f"{field}={short(value)}" for field, value in self.changes.items())

    @property
    def title(self) -> str:
        """The name with the changes made to it, for headings."""
        return f"{self.name} with {self.changes_text}" if self.changes else self.name

    @classmethod
    def fields(cls) -> dict[str, str]:
        """Return the meaning of each field with its unit, by field name."""
        units = {f.name: f.metadata["unit"] for f in value_fields()}
        docs = {f.name: f.metadata["doc"] for f in value_fields()}
        return {
            name: doc + (f" [{units[name]}]" if units[name] else "") for name, doc in docs.items()
        }

    @classmethod
    def ranges(cls) -> dict[str, str]:
        """Return what the value of each field can be, as text, by field name."""
        return {f.name: range_text(f) for f in value_fields()}

    def values(self) -> dict[str, Any]:
        """Return every value by field name, without name, description and sources."""
        return {f.name: getattr(self, f.name) for f in value_fields()}

    @cached_property
    def digest(self) -> str:
        """Content digest of the values, 16 hexadecimal digits; the name does not count."""
        text = json.dumps(self.values(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Gpu:
        """Read a YAML description.

        Each entry is ``field: value`` or ``field: {value: ..., confidence: ..., source: ...}``, of
        which confidence and source can be left out. ``based_on: NAME`` takes the fields that the
        file leaves out from a named description or another file, as `replace` does. Numbers are
        written as in Python.

        Raises
        ------
        InputError
            If the file is not a description: unknown fields (the message suggests the nearest),
            missing fields, wrong values, another confidence than measured, documented, derived or
            guessed.
        """
        return _read_yaml(as_path("GPU description", path))

    @classmethod
    def from_gpgpusim(cls, path: str | os.PathLike[str], *, name: str | None = None) -> Gpu:
        """Read a GPGPU-Sim or Accel-Sim configuration.

        Parameters
        ----------
        path
            A ``gpgpusim.config``, or the folder that holds it. A ``trace.config`` beside it gives
            the latencies of machine instructions.
        name
            Name of the description; by default the name of the folder.

        Returns
        -------
        Gpu
            `Gpu.sources` says which option each value comes from, `Gpu.unused_options` names the
            options that have no meaning here.

        Warns
        -----
        UnusedOptionWarning
            Once, naming the options that are not used.

        Raises
        ------
        InputError
            If the file lacks an option that a field needs or an option is malformed.
        """
        return _read_gpgpusim(as_path("GPGPU-Sim configuration", path), name)

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<tr><td>{f.name}</td><td>{html.escape(str(getattr(self, f.name)))}</td>"
            f"<td>{f.metadata['unit']}</td><td>{self.confidences.get(f.name, '')}</td>"
            f"<td>{html.escape(self.sources.get(f.name, ''))}</td></tr>"
            for f in value_fields()
        )
        return (
            f"<table><caption>{html.escape(self.title)}: {html.escape(self.description)}</caption>"
            f"<tr><th>field</th><th>value</th><th>unit</th><th>confidence</th><th>source</th></tr>{rows}</table>"
        )


#: What functions take for a GPU: a description, the name of one, or the path of one.
GpuLike = Union[Gpu, str, "os.PathLike[str]"]


@cache
def value_fields() -> tuple[dataclasses.Field[Any], ...]:
    """Return the fields that `number`, `choice` and `several` declare."""
    return tuple(f for f in dataclasses.fields(Gpu) if "doc" in f.metadata)


def check_field_names(names: Iterable[str], where: str) -> None:
    """Raise `InputError` for the first name that is not a field of `Gpu`, and suggest the nearest."""
    known = [f.name for f in value_fields()] + ["name", "description"]
    for name in names:
        if name not in known:
            remedy = "`warpstack gpus --fields` lists the fields"
            raise unknown("field", name, known, remedy, where=where)


def check_value_fields(names: Iterable[str], where: str) -> None:
    """Raise `InputError` as `check_field_names` does, and for the name and the description."""
    names = list(names)
    for text in ("name", "description"):
        if text in names:
            raise InputError(f"{where}: {text} is a text of the GPU and changes no result")
    check_field_names(names, where)


def is_number(field: str) -> bool:
    """Return whether the value of a field is one number: no text, nor several numbers."""
    return any(f.name == field and f.type in ("int", "float") for f in value_fields())


def is_whole(field: str) -> bool:
    """Return whether the values of a field are whole numbers."""
    return any(f.name == field and f.type == "int" for f in value_fields())


def value_of_text(field: str, text: Any) -> Any:
    """Return the value of a field that a file or a command line gives as text.

    Text that is not a number stays as it is: the description names the field that it does not fit.
    Several numbers come as a list, or on the command line separated by commas.
    """
    if any(f.name == field and f.metadata.get("several") for f in value_fields()):
        parts = (
            [part for part in text.split(",") if part.strip()] if isinstance(text, str) else text
        )
        return [value_of_text("", part) for part in parts] if isinstance(parts, list) else text
    texts = ("name", "description", *(f.name for f in value_fields() if f.metadata["choices"]))
    if field in texts or not isinstance(text, str) or not _NUMBER.fullmatch(text.strip()):
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _base(name: Any, path: Path, readers: tuple[str, ...]) -> Gpu:
    """Return the description that the file at `path` is based on."""
    if not isinstance(name, str):
        raise not_a(f"{printable(path)}: based_on", "a name or a file", name)
    if name.endswith(_YAML_ENDINGS):
        return _read_yaml(path.parent / name, (*readers, os.path.realpath(path)))
    try:
        return gpu(path.parent / name if name.endswith(".config") else name)
    except InputError as error:
        raise InputError(f"{printable(path)}: based_on: {error}") from None


def _read_yaml(path: Path, readers: tuple[str, ...] = ()) -> Gpu:
    """Read a description; `readers` are the files that are based on it."""
    where = printable(path)
    if os.path.realpath(path) in readers:
        raise InputError(f"{where}: based_on leads back to this file")
    written = read_description(path)
    parent = None if written.based_on is None else _base(written.based_on, path, readers)
    check_field_names(written.values, where)
    values: dict[str, Any] = {"name": Path(where).stem, "description": ""}
    values.update({field: value_of_text(field, text) for field, text in written.values.items()})
    try:
        if parent is not None:
            changed = parent.replace(**values)
            return dataclasses.replace(
                changed,
                sources={**changed.sources, **written.sources},
                confidences={**changed.confidences, **written.confidences},
            )
        required = [f.name for f in value_fields() if f.default is dataclasses.MISSING]
        missing = [name for name in required if name not in values]
        if missing:
            raise InputError(
                f"missing fields: {', '.join(missing)}; add them or a line based_on: NAME"
            )
        return Gpu(**values, sources=written.sources, confidences=written.confidences)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _read_gpgpusim(path: Path, name: str | None) -> Gpu:
    """Read a configuration of GPGPU-Sim, and warn of the options that are not used."""
    from warpstack.hardware.gpgpusim import read_config

    found = read_config(path, name)
    defaults = [f.name for f in value_fields() if f.name not in found.values]
    default = "no option; this package's default"
    try:
        described = Gpu(
            name=found.name,
            description=f"GPGPU-Sim configuration {found.name}",
            **found.values,
            sources={**found.sources, **dict.fromkeys(defaults, default)},
            unused_options=found.unused_options,
        )
    except InputError as error:
        raise InputError(f"{found.path}: {error}") from None
    if found.problems:
        warn(f"{found.path}: {'; '.join(found.problems)}", UnusedOptionWarning)
    return described


def gpus() -> list[str]:
    """Return the names of the descriptions that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def _named(name: str) -> Gpu:
    return _read_yaml(_FOLDER / f"{name}.yaml")


def gpu(name_or_path: str | os.PathLike[str]) -> Gpu:
    """Return a GPU description by name, or read one from a file.

    Parameters
    ----------
    name_or_path
        One of `warpstack.gpus()`, the path of a YAML description (``.yaml``, ``.yml``), or that of
        a GPGPU-Sim configuration (``.config``; see `Gpu.from_gpgpusim`).

    Raises
    ------
    InputError
        If there is no such description (the message lists the names) or the file is malformed.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.gpu("pascal-mdm").l1_mshrs
    128
    """
    text = os.fspath(name_or_path) if isinstance(name_or_path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise not_a("gpu", "the name of a GPU or the path of a description", name_or_path)
    if text.endswith(_YAML_ENDINGS):
        return _read_yaml(as_path("GPU description", name_or_path))
    if text.endswith(".config"):
        return _read_gpgpusim(as_path("GPGPU-Sim configuration", name_or_path), None)
    if text in gpus():
        return _named(text)
    raise unknown(
        "GPU",
        text,
        gpus(),
        f"the descriptions are {', '.join(gpus())}, or give the path of a .yaml or gpgpusim.config "
        "file",
    )


def as_gpu(gpu_or_name: GpuLike) -> Gpu:
    """Return the GPU itself, or the description that `gpu` finds for a name or path.

    Raises
    ------
    InputError
        If it is neither, or there is no such description.
    """
    if isinstance(gpu_or_name, Gpu):
        return gpu_or_name
    if not isinstance(gpu_or_name, (str, os.PathLike)):
        raise not_a("gpu", "a Gpu, the name of one or the path of a description", gpu_or_name)
    return gpu(gpu_or_name)
