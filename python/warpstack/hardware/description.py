"""Descriptions of GPUs: the only configuration that the stages read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import numbers
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Union

from warpstack._util.arguments import as_path, printable, printable_text
from warpstack._util.folders import data_folder
from warpstack._util.yaml_file import read_mapping
from warpstack.errors import InputError, not_a, shown, unknown

__all__ = ["Gpu", "as_gpu", "gpu", "gpus"]


_FOLDER = data_folder("gpus")

#: What values can be by unit where a field has no range of its own: far beyond what anybody builds,
#: and so that sums, products and quotients of them stay finite. "": counts.
_RANGES: dict[str, tuple[float, float]] = {
    "": (0, 2**20),
    "GHz": (1e-3, 1e3),
    "GB/s": (1e-3, 1e9),
    "cycles": (0, 1e6),
    "KiB": (0, 2**36),
    "bytes": (0, 2**20),
}
#: Less than this, and not 0, nothing is that can be 0: cycles, KiB, bytes per cycle.
_LEAST_PART = 1e-6
#: Lines of all caches together that a simulation can hold: 3 GiB of state.
_MOST_LINES = 2**26

_YAML_ENDINGS = (".yaml", ".yml")
#: Numbers in files and on the command line: what Python's int and float read, without underscores,
#: infinities and NaN.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _number(
    doc: str,
    unit: str = "",
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    or_zero: bool = False,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Return a field for a number of a range; `or_zero`: or 0, which has a meaning of its own."""
    least, most = _RANGES[unit]
    limits = {
        "at_least": least if at_least is None else at_least,
        "at_most": most if at_most is None else at_most,
        "or_zero": or_zero,
    }
    metadata = {"doc": doc, "unit": unit, **limits, "choices": None}
    return dataclasses.field(default=default, metadata=metadata)


def _choice(doc: str, *choices: str, default: Any = dataclasses.MISSING) -> Any:
    metadata = {"doc": doc, "unit": "", "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


def _interval(what: str) -> Any:
    return _number(
        f"cycles from one {what} instruction of a scheduler to the next",
        "cycles",
        at_most=4096,
        default=1,
    )


_WRITE_MISSES = ("no_allocate", "fetch_on_write", "write_validate")
_REPLACEMENTS = ("lru", "fifo", "plru")
_INDEXINGS = ("modulo", "xor", "ipoly")


def _numbers(doc: str, unit: str) -> Any:
    metadata = {"doc": doc, "unit": unit, "choices": None, "several": True}
    return dataclasses.field(default=(), metadata=metadata)


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

    num_sms: int = _number("streaming multiprocessors", at_least=1, at_most=65536)
    clock_ghz: float = _number("SM clock", "GHz")
    issue_width: float = _number("warp instructions per cycle per SM", at_least=1e-3, at_most=1024)
    scheduler: str = _choice(
        "warp scheduler: greedy then oldest, loose round robin, or oldest first (which the models take "
        "for greedy then oldest)",
        "gto",
        "lrr",
        "oldest",
    )
    schedulers_per_sm: int = _number(
        "warp schedulers of an SM, each with its share of the warps; 0: issue_width, rounded up",
        at_most=1024,
        default=0,
    )

    warps_per_sm: int = _number("warp slots per SM", at_least=1)
    threads_per_sm: int = _number("resident threads per SM", at_least=1, at_most=2**25)
    blocks_per_sm: int = _number("resident thread blocks per SM", at_least=1)
    registers_per_sm: int = _number("32-bit registers per SM", at_least=1, at_most=2**30)
    register_allocation_unit: int = _number(
        "registers of a warp are rounded up to a multiple of this", at_least=1, default=256
    )
    shared_memory_kib_per_sm: float = _number(
        "shared memory for thread blocks, per SM", "KiB", at_most=2**24
    )
    shared_memory_allocation_bytes: int = _number(
        "shared memory of a block is rounded up to a multiple of this",
        "bytes",
        at_least=1,
        default=256,
    )
    shared_memory_reserved_bytes: int = _number(
        "shared memory that the system adds to each block that uses some", "bytes", default=0
    )

    l1_size_kib: float = _number("L1 data cache per SM", "KiB", at_least=1 / 32)
    l1_ways: int = _number("L1 associativity", at_least=1)
    l1_line_bytes: int = _number("L1 line", "bytes", at_least=32)
    l1_sector_bytes: int = _number(
        "L1 fill unit; equal to the line: not sectored", "bytes", at_least=32
    )
    l1_mshrs: int = _number("L1 miss status holding registers per SM", at_least=1)
    l1_mshr_targets: int = _number("requests that wait for one MSHR of L1", at_least=1, default=8)
    l1_latency: float = _number("load-to-use latency of an L1 hit", "cycles")
    l1_write_policy: str = _choice(
        "what a store does to lower levels", "write_through", "write_back", default="write_through"
    )
    l1_write_miss: str = _choice(
        "what a store miss does in L1", *_WRITE_MISSES, default="no_allocate"
    )
    l1_replacement: str = _choice(
        "which line makes room in L1: least recently used, first in first out, or tree pseudo-LRU",
        *_REPLACEMENTS,
        default="lru",
    )
    l1_allocation: str = _choice(
        "when a line that missed L1 takes its place: at once, or when its data arrive (streaming)",
        "on_miss",
        "on_fill",
        default="on_miss",
    )
    l1_set_index: str = _choice(
        "how lines spread over the sets of L1", *_INDEXINGS, default="modulo"
    )
    l1_global_loads: str = _choice(
        "whether loads of global memory go through L1", "cached", "bypassed", default="cached"
    )
    unified_l1_kib: float = _number(
        "storage of an SM that an adaptive L1 and shared memory divide; 0: L1 is as large as l1_size_kib",
        "KiB",
        default=0,
    )
    shared_memory_carve_outs_kib: tuple[float, ...] = _numbers(
        "sizes that shared memory can take of unified_l1_kib; a kernel has the smallest that costs no "
        "resident block (cache paper, Eq. 7)",
        "KiB",
    )
    adaptive_l1_keeps: str = _choice(
        "what an adaptive L1 keeps of the geometry that l1_size_kib and l1_ways give",
        "sets",
        "ways",
        default="sets",
    )
    noc_queue_entries: int = _number(
        "requests that the NoC queue of an SM holds; takes the place of the MSHRs in the models when L1 "
        "is a streaming cache (MDM, footnote 2); 0: L1 is not a streaming cache",
        default=0,
    )
    l1_miss_queue_entries: int = _number(
        "requests of an SM that wait for the NoC where noc_queue_entries is 0",
        at_least=1,
        at_most=1 << 20,
        default=16,
    )
    lsu_queue_entries: int = _number(
        "memory instructions in the load-store unit of an SM",
        at_least=1,
        at_most=1 << 16,
        default=2,
    )

    l2_size_kib: float = _number("L2 cache, all slices together", "KiB", at_least=1 / 32)
    l2_ways: int = _number("L2 associativity", at_least=1)
    l2_line_bytes: int = _number("L2 line", "bytes", at_least=32)
    l2_sector_bytes: int = _number(
        "L2 fill unit; equal to the line: not sectored", "bytes", at_least=32
    )
    l2_slices: int = _number("L2 slices", at_least=1, at_most=65536)
    l2_slice_interleave_bytes: int = _number(
        "consecutive addresses in one slice", "bytes", at_least=32, default=256
    )
    l2_latency: float = _number("round trip of an L2 hit", "cycles")
    l2_clock_ghz: float = _number(
        "clock of L2 and the NoC where they have their own: l2_latency is then constant in time when "
        "the SM clock changes; 0: they run on the SM clock",
        "GHz",
        or_zero=True,
        default=0,
    )
    l2_write_policy: str = _choice(
        "what a store does to DRAM", "write_through", "write_back", default="write_back"
    )
    l2_write_miss: str = _choice(
        "what a store miss does in L2", *_WRITE_MISSES, default="fetch_on_write"
    )

    l2_replacement: str = _choice("which line makes room in L2", *_REPLACEMENTS, default="lru")
    l2_set_index: str = _choice(
        "how lines spread over the sets of an L2 slice", *_INDEXINGS, default="modulo"
    )
    l2_slice_index: str = _choice(
        "how chunks of l2_slice_interleave_bytes spread over the slices",
        *_INDEXINGS,
        default="modulo",
    )

    l2_mshrs: int = _number("miss status holding registers of an L2 slice", at_least=1, default=128)
    l2_mshr_targets: int = _number("requests that wait for one MSHR of L2", at_least=1, default=8)
    l2_queue_entries: int = _number(
        "requests that wait for an L2 slice, and replies that wait in it",
        at_least=1,
        at_most=1 << 20,
        default=32,
    )

    dram_latency: float = _number("what a DRAM access adds to an L2 hit", "cycles")
    noc_bandwidth_gbs: float = _number("between all SMs and L2, one direction", "GB/s")
    noc_sm_bytes_per_cycle: float = _number(
        "what one SM can send and receive per cycle of l2_clock_ghz; 0: no limit of its own",
        "bytes",
        default=0,
    )
    noc_control_bytes: int = _number(
        "what a packet without data, a read request, takes of the NoC bandwidth",
        "bytes",
        at_most=4096,
        default=8,
    )
    dram_bandwidth_gbs: float = _number("of all channels", "GB/s")
    dram_channels: int = _number(
        "DRAM channels, each of as many L2 slices; 0: one per slice", at_most=65536, default=0
    )
    dram_clock_ghz: float = _number(
        "clock at whose edges DRAM transfers start; 0: the clock of L2",
        "GHz",
        or_zero=True,
        default=0,
    )
    dram_queue_entries: int = _number(
        "requests that wait for a DRAM channel", at_least=1, at_most=1 << 20, default=64
    )
    dram_row_bytes: int = _number(
        "row buffer of a DRAM bank; 0: no row-buffer model, every access takes the same time",
        "bytes",
        at_most=1 << 24,
        default=0,
    )
    dram_banks: int = _number(
        "banks of a DRAM channel, for the row-buffer model", at_least=1, at_most=4096, default=16
    )
    dram_row_miss_cycles: float = _number(
        "SM cycles that it takes to open another row of a bank, for the row-buffer model",
        "cycles",
        default=28,
    )

    integer_interval: int = _interval("integer and move")
    fp32_interval: int = _interval("single precision")
    fp16_interval: int = _interval("half precision")
    fp64_interval: int = _interval("double precision")
    sfu_interval: int = _interval("special function and conversion")
    tensor_interval: int = _interval("matrix")

    integer_latency: float = _number("integer and move instructions", "cycles")
    fp32_latency: float = _number("single precision", "cycles")
    fp16_latency: float = _number("half precision", "cycles")
    fp64_latency: float = _number("double precision", "cycles")
    sfu_latency: float = _number("special functions and conversions", "cycles")
    tensor_latency: float = _number("matrix instructions", "cycles")
    uniform_latency: float = _number("uniform datapath", "cycles")
    control_latency: float = _number("branches", "cycles")
    barrier_latency: float = _number("barriers and fences, without waiting", "cycles")
    shuffle_latency: float = _number("shuffles and matches", "cycles")
    constant_latency: float = _number("constant loads that hit", "cycles")
    texture_latency: float = _number("texture and surface accesses", "cycles")
    shared_memory_latency: float = _number("shared memory without bank conflicts", "cycles")

    #: Where each value comes from, by field name. Not part of the GPU's identity.
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    #: Options of the file this description was read from that have no meaning here.
    unused_options: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)
    #: What `replace` changed since the description got its name: new values by field name. Not part
    #: of the GPU's identity.
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for text, kind in (("sources", Mapping), ("changes", Mapping), ("unused_options", tuple)):
            if not isinstance(getattr(self, text), kind):
                expected = "a tuple" if kind is tuple else "a dictionary"
                raise not_a(f"GPU {text}", expected, getattr(self, text))
        for text in ("name", "description"):
            value = getattr(self, text)
            if not isinstance(value, str):
                raise InputError(f"GPU {text} = {shown(value)} is not text")
            if printable_text(value) != value or (text == "name" and not value.isprintable()):
                raise InputError(f"GPU {text} = {shown(value)} has characters that are not text")
        for field in _value_fields():
            object.__setattr__(
                self, field.name, _checked(field, getattr(self, field.name), self.name)
            )
        self._check_geometry()

    def _check_geometry(self) -> None:
        lines = self.num_sms * self.l1_size_kib * 1024 / self.l1_line_bytes
        lines += self.l2_size_kib * 1024 / self.l2_line_bytes
        if lines > _MOST_LINES:
            raise InputError(
                f"GPU {shown_name(self.name)}: num_sms = {self.num_sms} times l1_size_kib = "
                f"{self.l1_size_kib:g}, and l2_size_kib = {self.l2_size_kib:g}, are {lines:.3g} "
                f"cache lines; at most {_MOST_LINES} can be simulated"
            )
        for level, slices, interleave in (
            ("l1", 1, self.l1_line_bytes),
            ("l2", self.l2_slices, self.l2_slice_interleave_bytes),
        ):
            size = getattr(self, f"{level}_size_kib") * 1024
            ways, line, sector = (
                getattr(self, f"{level}_{part}") for part in ("ways", "line_bytes", "sector_bytes")
            )
            where = f"GPU {shown_name(self.name)}"
            if line % 32 or line > 256:
                raise InputError(
                    f"{where}: {level}_line_bytes = {line} is not a multiple of 32 up to 256"
                )
            if sector % 32 or line % sector:
                raise InputError(
                    f"{where}: {level}_sector_bytes = {sector} is not a multiple of 32 that divides "
                    f"{level}_line_bytes = {line}"
                )
            unit = line * ways * slices
            if size % unit:
                near = max(round(size / unit), 1) * unit / 1024
                parts = f"{level}_line_bytes * {level}_ways" + (
                    " * l2_slices" if slices > 1 else ""
                )
                raise InputError(
                    f"{where}: {level}_size_kib = {size / 1024:g} is not a multiple of {parts} = "
                    f"{unit / 1024:g} KiB; the nearest that is: {near:g}"
                )
            if interleave % line:
                raise InputError(
                    f"{where}: l2_slice_interleave_bytes = {interleave} is not a multiple of "
                    f"l2_line_bytes = {line}"
                )

        for level in ("l1", "l2"):
            ways = getattr(self, f"{level}_ways")
            if getattr(self, f"{level}_replacement") == "plru" and ways & (ways - 1):
                raise InputError(
                    f"GPU {shown_name(self.name)}: {level}_ways = {ways} is not a power of two, which "
                    f"{level}_replacement = plru needs"
                )
        if self.dram_channels and self.l2_slices % self.dram_channels:
            raise InputError(
                f"GPU {shown_name(self.name)}: dram_channels = {self.dram_channels} does not divide "
                f"l2_slices = {self.l2_slices}"
            )
        self._check_carve_outs()

    def _check_carve_outs(self) -> None:
        where = f"GPU {shown_name(self.name)}"
        unified, carve_outs = self.unified_l1_kib, self.shared_memory_carve_outs_kib
        if bool(unified) != bool(carve_outs):
            raise InputError(
                f"{where}: unified_l1_kib = {unified:g} and shared_memory_carve_outs_kib = "
                f"{_short(carve_outs)} belong together; give both or none"
            )
        for carve_out in carve_outs:
            left = unified - carve_out
            ways, line = self.l1_ways, self.l1_line_bytes
            sets = self.l1_size_kib * 1024 / line / ways
            unit = (line * ways if self.adaptive_l1_keeps == "ways" else line * sets) / 1024
            if left <= 0 or left % unit:
                raise InputError(
                    f"{where}: a carve-out of {carve_out:g} KiB leaves L1 {left:g} of unified_l1_kib = "
                    f"{unified:g}, which is not a positive multiple of {unit:g} KiB, its "
                    + ("ways" if self.adaptive_l1_keeps == "ways" else "sets")
                )
            grown = round(left / unit)
            if (
                self.adaptive_l1_keeps == "sets"
                and self.l1_replacement == "plru"
                and grown & (grown - 1)
            ):
                raise InputError(
                    f"{where}: a carve-out of {carve_out:g} KiB leaves L1 {grown} ways, which is not a "
                    "power of two, as l1_replacement = plru needs; keep the ways (adaptive_l1_keeps)"
                )

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
            the sources of changed fields are dropped.

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
        scaled: dict[str, Any] = {}
        if changed.clock_ghz != self.clock_ghz:
            constant = ["dram_latency", "dram_row_miss_cycles"]
            if changed.l2_clock_ghz:
                constant.append("l2_latency")
            for name in constant:
                if name not in changes:
                    cycles = getattr(self, name)
                    scaled[name] = cycles * (changed.clock_ghz / self.clock_ghz)
                    note = f"{_short(cycles)} cycles at {_short(self.clock_ghz)} GHz"
                    sources[name] = "; ".join(filter(None, (self.sources.get(name), note)))
        # A copy of the copy would check everything again.
        for field in _value_fields() if scaled else ():
            if field.name in scaled:
                value = _checked(field, scaled[field.name], self.name)
                object.__setattr__(changed, field.name, value)
        object.__setattr__(changed, "sources", sources)
        object.__setattr__(changed, "changes", noted)
        return changed

    @property
    def changes_text(self) -> str:
        """The `changes` as text, ``num_sms=56, l1_mshrs=64``; empty without any."""
        return ", ".join(f"{field}={_short(value)}" for field, value in self.changes.items())

    @property
    def title(self) -> str:
        """The name with the changes made to it, for headings."""
        return f"{self.name} with {self.changes_text}" if self.changes else self.name

    @classmethod
    def fields(cls) -> dict[str, str]:
        """Return the meaning of each field with its unit, by field name."""
        units = {f.name: f.metadata["unit"] for f in _value_fields()}
        docs = {f.name: f.metadata["doc"] for f in _value_fields()}
        return {
            name: doc + (f" [{units[name]}]" if units[name] else "") for name, doc in docs.items()
        }

    @classmethod
    def ranges(cls) -> dict[str, str]:
        """Return what the value of each field can be, as text, by field name."""
        return {f.name: range_text(f) for f in _value_fields()}

    def values(self) -> dict[str, Any]:
        """Return every value by field name, without name, description and sources."""
        return {f.name: getattr(self, f.name) for f in _value_fields()}

    @cached_property
    def digest(self) -> str:
        """Content digest of the values, 16 hexadecimal digits; the name does not count."""
        text = json.dumps(self.values(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Gpu:
        """Read a YAML description.

        Each entry is ``field: value`` or ``field: {value: ..., source: ...}``. ``based_on: NAME``
        takes the fields that the file leaves out from a named description or another file, as
        `replace` does. Numbers are written as in Python.

        Raises
        ------
        InputError
            If the file is not a description: unknown fields (the message suggests the nearest),
            missing fields, wrong values.
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
        from warpstack.hardware.gpgpusim import read_config

        return read_config(as_path("GPGPU-Sim configuration", path), name)

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<tr><td>{f.name}</td><td>{html.escape(str(getattr(self, f.name)))}</td>"
            f"<td>{f.metadata['unit']}</td><td>{html.escape(self.sources.get(f.name, ''))}</td></tr>"
            for f in _value_fields()
        )
        return (
            f"<table><caption>{html.escape(self.title)}: {html.escape(self.description)}</caption>"
            f"<tr><th>field</th><th>value</th><th>unit</th><th>source</th></tr>{rows}</table>"
        )


#: What functions take for a GPU: a description, the name of one, or the path of one.
GpuLike = Union[Gpu, str, "os.PathLike[str]"]


def class_latencies(gpu: Gpu) -> dict[str, float]:
    """Return the latencies of the operation classes by the names that the core uses."""
    return {
        "integer": gpu.integer_latency,
        "fp32": gpu.fp32_latency,
        "fp16": gpu.fp16_latency,
        "fp64": gpu.fp64_latency,
        "sfu": gpu.sfu_latency,
        "tensor": gpu.tensor_latency,
        "uniform": gpu.uniform_latency,
        "control": gpu.control_latency,
        "barrier": gpu.barrier_latency,
        "shuffle": gpu.shuffle_latency,
        "constant_load": gpu.constant_latency,
        "texture": gpu.texture_latency,
        "unknown": gpu.integer_latency,
        "shared_memory": gpu.shared_memory_latency,
    }


def class_intervals(gpu: Gpu) -> dict[str, int]:
    """Return the initiation intervals of the operation classes that have one, by the core's names."""
    return {
        "integer": gpu.integer_interval,
        "fp32": gpu.fp32_interval,
        "fp16": gpu.fp16_interval,
        "fp64": gpu.fp64_interval,
        "sfu": gpu.sfu_interval,
        "tensor": gpu.tensor_interval,
        "unknown": gpu.integer_interval,
    }


def values_of(gpu: Gpu, fields: Iterable[str]) -> tuple[Any, ...]:
    """Return the values of some fields in the order of their names: what a result depends on."""
    return tuple(getattr(gpu, name) for name in sorted(fields))


@cache
def _value_fields() -> tuple[dataclasses.Field[Any], ...]:
    return tuple(f for f in dataclasses.fields(Gpu) if "doc" in f.metadata)


def check_field_names(names: Iterable[str], where: str) -> None:
    """Raise `InputError` for the first name that is no field of `Gpu`, and suggest the nearest."""
    known = [f.name for f in _value_fields()] + ["name", "description"]
    for name in names:
        if name not in known:
            text = printable_text(name)[:80] if isinstance(name, str) else shown(name)
            import difflib

            near = difflib.get_close_matches(text, known, n=1)
            hint = (
                f"; did you mean {near[0]}?"
                if near
                else "; `warpstack gpus --fields` lists the fields"
            )
            raise InputError(f"{where}: there is no field {text}{hint}")


def check_value_fields(names: Iterable[str], where: str) -> None:
    """Raise `InputError` as `check_field_names` does, and for the name and the description."""
    names = list(names)
    for text in ("name", "description"):
        if text in names:
            raise InputError(f"{where}: {text} is a text of the GPU and changes no result")
    check_field_names(names, where)


def is_number(field: str) -> bool:
    """Return whether the value of a field is one number: no text, nor several numbers."""
    return any(f.name == field and f.type in ("int", "float") for f in _value_fields())


def is_whole(field: str) -> bool:
    """Return whether the values of a field are whole numbers."""
    return any(f.name == field and f.type == "int" for f in _value_fields())


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_short, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def range_text(field: dataclasses.Field[Any]) -> str:
    """Return what the value of a field can be, as text: ``0, or 0.001 to 1000 GHz``."""
    limits = field.metadata
    if limits["choices"] is not None:
        return ", ".join(limits["choices"])
    if limits.get("several"):
        return f"0 to {_short(_RANGES['KiB'][1])} {limits['unit']} each"
    unit = f" {limits['unit']}" if limits["unit"] else ""
    zero = "0, or " if limits["or_zero"] else ""
    return f"{zero}{_short(limits['at_least'])} to {_short(limits['at_most'])}{unit}"


def shown_name(name: str) -> str:
    """Return the name of a GPU for a message: short, and such that any encoding has it."""
    name = printable_text(name)
    return name if len(name) <= 80 else f"{name[:80]}..."


def _checked(field: dataclasses.Field[Any], value: Any, gpu_name: str) -> Any:
    """Return the value in its field's type, or raise `InputError`."""
    choices = field.metadata["choices"]
    # Most values are right: their messages need not be made, which would take longer than the rest.
    plain = choices is None and not field.metadata.get("several")
    if plain and type(value) is (int if field.type == "int" else float):
        limits = field.metadata
        if max(limits["at_least"], _LEAST_PART) <= value <= limits["at_most"]:
            return value
    elif choices is not None and type(value) is str and value in choices:
        return value
    where = f"GPU {shown_name(gpu_name)}: {field.name} = {shown(value)}"
    if choices is not None:
        if not isinstance(value, str) or value not in choices:
            raise InputError(f"{where} is not one of {', '.join(choices)}")
        return str(value)
    if field.metadata.get("several"):
        return _checked_numbers(value, where)
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{where} is not a number")
    least, most = field.metadata["at_least"], field.metadata["at_most"]
    span = f"the range is {range_text(field)}"
    try:
        number = float(value)
    except OverflowError:
        raise InputError(f"{where} is too large; {span}") from None
    if not math.isfinite(number):
        raise InputError(f"{where} is not finite; {span}")
    whole = field.type == "int"
    if number == 0 and (least <= 0 or field.metadata["or_zero"]):
        return 0 if whole else 0.0  # a negative zero would be another digest
    if number < least:
        raise InputError(f"{where} is less than {least:g}; {span}")
    if number < _LEAST_PART:
        raise InputError(f"{where} is less than {_LEAST_PART:g} and not 0; {span}")
    if whole and number != int(number):
        raise InputError(f"{where} is not a whole number; {span}")
    if number > most:
        raise InputError(f"{where} is too large; the most is {_short(most)}; {span}")
    return int(number) if whole else number


def _checked_numbers(value: Any, where: str) -> tuple[float, ...]:
    """Return the numbers in increasing order, each once, or raise `InputError`."""
    try:
        if isinstance(value, str):
            raise TypeError
        found = sorted({float(number) for number in value})
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where} is not a list of numbers") from None
    if not all(number == 0 or _LEAST_PART <= number <= _RANGES["KiB"][1] for number in found):
        raise InputError(f"{where} has numbers that are negative, too large or not finite")
    return tuple(abs(number) for number in found)


def value_of_text(field: str, text: Any) -> Any:
    """Return the value of a field that a file or a command line gives as text.

    Text that is no number stays as it is: the description names the field that it does not fit.
    Several numbers come as a list, or on the command line separated by commas.
    """
    if any(f.name == field and f.metadata.get("several") for f in _value_fields()):
        parts = (
            [part for part in text.split(",") if part.strip()] if isinstance(text, str) else text
        )
        return [value_of_text("", part) for part in parts] if isinstance(parts, list) else text
    texts = ("name", "description", *(f.name for f in _value_fields() if f.metadata["choices"]))
    if field in texts or not isinstance(text, str) or not _NUMBER.fullmatch(text.strip()):
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _base(name: Any, path: Path, readers: tuple[str, ...]) -> Gpu:
    """Return the description that the file at `path` is based on."""
    if not isinstance(name, str):
        raise InputError(f"{printable(path)}: based_on: expected a name or a file")
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
    entries = read_mapping(path, "GPU description", "field: value")
    parent = _base(entries.pop("based_on"), path, readers) if "based_on" in entries else None
    check_field_names(entries, where)
    values: dict[str, Any] = {"name": Path(where).stem, "description": ""}
    sources: dict[str, str] = {}
    for field, entry in entries.items():
        if isinstance(entry, dict):
            if set(entry) - {"value", "source"} or "value" not in entry:
                raise InputError(
                    f"{where}: {field}: expected {{value: ..., source: ...}}, got {shown(entry)}"
                )
            sources[field] = str(entry.get("source", ""))
            entry = entry["value"]
        values[field] = value_of_text(field, entry)
    for text_field in ("name", "description"):
        if isinstance(values[text_field], str):
            values[text_field] = " ".join(values[text_field].split())
    try:
        if parent is not None:
            changed = parent.replace(**values)
            return dataclasses.replace(changed, sources={**changed.sources, **sources})
        required = [f.name for f in _value_fields() if f.default is dataclasses.MISSING]
        missing = [name for name in required if name not in values]
        if missing:
            raise InputError(
                f"missing fields: {', '.join(missing)}; add them or a line based_on: NAME"
            )
        return Gpu(**values, sources=sources)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


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
        from warpstack.hardware.gpgpusim import read_config

        return read_config(as_path("GPGPU-Sim configuration", name_or_path), None)
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
