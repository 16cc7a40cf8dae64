"""GPGPU-Sim and Accel-Sim configurations, read as GPU descriptions."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from pathlib import Path
from typing import Any

from warpstack._core import SECTOR_BYTES
from warpstack._util.arguments import printable
from warpstack.errors import InputError
from warpstack.hardware.gpgpusim_caches import LETTERS, Cache
from warpstack.hardware.gpgpusim_dram import AddressMapping, Banks
from warpstack.hardware.gpgpusim_options import Option, Options
from warpstack.hardware.gpgpusim_units import put_units
from warpstack.hardware.gpgpusim_values import Values

__all__ = ["Configuration", "read_config"]

_CONFIG = "gpgpusim.config"
_TRACE_CONFIG = "trace.config"

#: partition_index_function of GPGPU-Sim's addrdec.h by number: the index here, and what is simplified.
#: "even" uses all slices alike, as ipoly does only for powers of two; else it is taken modulo.
_SLICE_INDICES = {
    0: ("modulo", ""),
    1: ("xor", "channel xor the next address bits, taken as slice xor all higher ones"),
    2: ("ipoly", ""),
    3: ("even", "PAE"),
    4: ("even", "random slices"),
    5: ("modulo", "custom slice index, of which the simulator has none, taken modulo"),
    6: ("even", "ipoly of a power of two, with the modulo of the other factor"),
}

#: What the simulator does, whatever the options say.
_BEHAVIOUR = {
    # The latency of L2 has that of L1 in it, so that there is always time for it.
    "l1_latency_place": ("before_tags", "-gpgpu_l1_latency is a pipeline before the look-up"),
    "atomic_requests": ("per_lane", "lanes of an atomic that need the same word do not share"),
    "store_acknowledgement": ("awaited", "a warp is done when its stores are"),
    "kernel_end": ("last_warp", "a kernel is done when its last warp is"),
}
#: KiB of shared memory that a block of Volta can choose from.
_VOLTA_CHOICES = (0, 8, 16, 32, 64, 96)
#: By the number of stages in -gpgpu_pipeline_widths, where memory instructions wait before and after
#: the operand collectors: the last two of 13 are those of tensor cores, those of integers and double
#: precision came with later versions.
_MEMORY_WIDTHS = {13: (4, 9), 12: (4, 9), 11: (4, 9), 9: (3, 7), 7: (2, 5)}
_WIDTHS_FORM = "the widths of ID_OC_SP,_DP,_INT,_SFU,_MEM,OC_EX_SP,_DP,_INT,_SFU,_MEM,EX_WB"


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What a configuration says of a GPU.

    Attributes
    ----------
    path, name
        The file, and the name of the description.
    values, sources
        Values by field of `Gpu`, and the option that each comes from. Fields that no option gives
        are not among them.
    unused_options
        Options that have no meaning here, in the order of the files.
    problems
        What to warn of: options that are not used, or in a simplified way.
    """

    path: Path
    name: str
    values: dict[str, Any]
    sources: dict[str, str]
    unused_options: tuple[str, ...]
    problems: list[str]


class _Description(Values):
    """The fields of a `Gpu`, gathered with their sources."""

    def gather(self) -> None:
        """Set all fields that an option gives, or a rule."""
        self._check_l2()
        noc_mhz, dram_mhz = self._clocks()
        self._sm()
        self._l1()
        self._l2()
        self._noc(noc_mhz)
        self._dram(dram_mhz)
        put_units(self)
        self._timing()
        self._load_store_unit()
        self._behaviour()

    def _clocks(self) -> tuple[float, float]:
        """Put the core clock; return those of the interconnect and of DRAM in MHz."""
        option = self.options.need("-gpgpu_clock_domains", "1132:1132:1132:850")
        parts = option.value.split(":")
        try:
            clocks = [float(part) for part in parts]
        except ValueError:
            clocks = []
        if len(clocks) != 4 or not all(math.isfinite(clock) and clock > 0 for clock in clocks):
            raise option.error("malformed", "write <core>:<interconnect>:<L2>:<DRAM> in MHz")
        core, noc, l2, dram = clocks
        self.put("clock_ghz", core / 1000, f"{option.where}: core")
        if noc == l2 == core:
            self.put("l2_clock_ghz", 0, f"{option.where}: interconnect and L2 as core")
        elif l2 != core:
            self.put("l2_clock_ghz", l2 / 1000, f"{option.where}: L2")
        else:
            self.put("l2_clock_ghz", noc / 1000, f"{option.where}: interconnect")
        return noc, dram

    def _sm(self) -> None:
        options = self.options
        shaders = options.find("-gpgpu_n_shader")
        if shaders is not None and options.find("-gpgpu_n_clusters") is None:
            self.put("num_sms", shaders.integer(), shaders.where)
        else:
            clusters = options.need("-gpgpu_n_clusters", 80)
            cores = options.need("-gpgpu_n_cores_per_cluster", 1)
            self.put(
                "num_sms",
                clusters.integer() * cores.integer(),
                f"{clusters.where} x {cores.name} {cores.value}",
            )
        # One instruction per scheduler and cycle: the second that -gpgpu_max_insn_issue_per_warp
        # allows needs another execution unit, so it is an exception and no rate.
        self.integer("issue_width", "-gpgpu_num_sched_per_core", 4)
        scheduler = options.need("-gpgpu_scheduler", "gto")
        if scheduler.value not in ("gto", "lrr"):
            raise scheduler.error("this scheduler cannot be described", "write gto or lrr")
        self.put("scheduler", scheduler.value, scheduler.where)

        pipeline = options.need("-gpgpu_shader_core_pipeline", "2048:32")
        # The first versions of GPGPU-Sim 3 have the lanes of an SM as a third number.
        threads, *warp = pipeline.integers(":", "<threads>:32")
        if warp not in ([32], [32, 32]) or threads % 32:
            raise pipeline.error(
                "warps have 32 threads", "write <threads>:32, with whole warps of threads"
            )
        self.put("threads_per_sm", threads, pipeline.where)
        self.put("warps_per_sm", threads // 32, pipeline.where)
        self.integer("blocks_per_sm", "-gpgpu_shader_cta", 32)
        self.integer("registers_per_sm", "-gpgpu_shader_registers", 65536)
        shared = options.need("-gpgpu_shmem_size", 98304)
        self.put("shared_memory_kib_per_sm", shared.integer(0) / 1024, shared.where)
        self._allocation()

    def _allocation(self) -> None:
        """How blocks are given registers and shared memory, which no option says."""
        rule = "CUDA Occupancy Calculator"
        self.put("register_allocation_unit", 256, f"no option; {rule}, compute capability 3 on")
        major = self.options.find("-gpgpu_compute_capability_major")
        ampere = major is not None and major.integer() >= 8
        source = f"{rule}, {major.where}" if major else f"no option; {rule}, before 8.0"
        self.put("shared_memory_allocation_bytes", 128 if ampere else 256, source)
        self.put("shared_memory_reserved_bytes", 1024 if ampere else 0, source)

    def _cache(self, level: str, name: str, example: str) -> Cache:
        cache = Cache.parse(self.options.need(name, example))
        if cache.is_none and level == "l2":
            raise cache.option.error("a GPU without L2 cannot be described", "give its geometry")
        where, letters = cache.option.where, cache.letters
        sector = SECTOR_BYTES if letters["kind"] == "S" else cache.line
        self.put(f"{level}_line_bytes", cache.line, where)
        self.put(f"{level}_sector_bytes", sector, f"{where}: {letters['kind']}")
        for part, field in (
            ("write", "write_policy"),
            ("write_miss", "write_miss"),
            ("replacement", "replacement"),
            ("index", "set_index"),
        ):
            letter = letters[part]
            self.put(f"{level}_{field}", LETTERS[part][letter], f"{where}: {letter}")
        self.approximations += cache.approximations()
        return cache

    def _l1(self) -> None:
        options = self.options
        cache = self._cache("l1", "-gpgpu_cache:dl1", "S:4:128:64,L:T:m:L:L,A:512:8,16:0,32")
        where, letter = cache.option.where, cache.letters["allocate"]
        ways, source = cache.ways, where
        adaptive = options.find("-gpgpu_adaptive_cache_config")
        is_adaptive = adaptive is not None and adaptive.flag()
        if is_adaptive:
            ways, source = self._adaptive_l1(cache)
        else:
            fixed = adaptive.where if adaptive else "no option -gpgpu_adaptive_cache_config"
            self.put("unified_l1_kib", 0, fixed)
            self.put("shared_memory_carve_outs_kib", (), fixed)
            self.put("adaptive_l1_keeps", "sets", fixed)
        self.put("l1_ways", ways, source)
        self.put("l1_size_kib", cache.sets * cache.line * ways / 1024, source)
        self.put("l1_allocation", LETTERS["allocate"][letter], f"{where}: {letter}")
        streaming = ": a streaming L1 keeps its misses in MSHRs too"
        self.put("l1_mshrs", cache.mshrs, where + (streaming if letter == "s" else ""))
        if letter == "s" and is_adaptive:
            self.approximations.append(
                f"{cache.option.name} (streaming, on fill for kernels without shared memory too)"
            )
        self.put("noc_queue_entries", 0, "no option; the MSHRs bound the misses of an SM")
        self.integer("l1_latency", "-gpgpu_l1_latency", 20)

        bypass = options.find("-gpgpu_gmem_skip_L1D")
        skips = bypass is not None and bypass.flag()
        source = bypass.where if bypass else "no option; as -gpgpu_gmem_skip_L1D 0"
        if cache.is_none:
            skips, source = True, where
        self.put("l1_global_loads", "bypassed" if skips else "cached", source)

    def _adaptive_l1(self, cache: Cache) -> tuple[int, str]:
        """Put what an adaptive L1 divides; return the ways of the largest one with their source.

        The sets stay and the ways grow, by the part of the unified memory that the choice of shared
        memory leaves, rounded to whole ways (max_cta of GPGPU-Sim's shader.cc). The largest L1 is
        that of kernels without shared memory.
        """
        unified, option, total, choices = self._unified(cache)
        configured = cache.sets * cache.line * cache.ways
        if total * 1024 % configured:
            raise unified.error(
                f"not a multiple of the {configured / 1024:g} KiB of {cache.option.name}",
                "give a multiple",
            )
        most = cache.ways * (total * 1024 // configured)
        carve_outs: list[float] = []
        for shared in sorted(set(choices)):
            ways = math.floor(most * (1 - shared / total) + 0.5)
            if ways <= 0:
                nothing = f"{shared} KiB leave L1 nothing of the {total} KiB of {unified.name}"
                if not carve_outs:
                    raise option.error(nothing, "leave that choice out")
                self.approximations.append(f"{option.name} ({nothing}, left out)")
                continue
            carve_outs.append(total - cache.sets * cache.line * ways / 1024)
            if carve_outs[-1] != shared:
                self.approximations.append(
                    f"{option.name} ({shared} KiB, taken as the {carve_outs[-1]:g} that whole ways "
                    "of L1 leave)"
                )
        self.put("unified_l1_kib", total, unified.where)
        self.put("shared_memory_carve_outs_kib", tuple(carve_outs), option.where)
        self.put("adaptive_l1_keeps", "sets", "no option; GPGPU-Sim's shader.cc changes the ways")
        largest = math.floor(most * (1 - min(choices) / total) + 0.5)
        source = f"{unified.where} less {option.name} {min(choices)}; sets of {cache.option.name}"
        return largest, source

    def _unified(self, cache: Cache) -> tuple[Option, Option, int, list[int]]:
        """Return the unified memory of L1 and shared memory in KiB, and the choices of the latter.

        The versions that had neither option took the sizes of Volta: L1 and shared memory together.
        """
        unified = self.options.find("-gpgpu_unified_l1d_size")
        option = self.options.find("-gpgpu_shmem_option")
        l1 = cache.sets * cache.line * cache.ways
        shared = self.options.need("-gpgpu_shmem_size", 98304)
        largest = shared.integer(0) // 1024
        if unified is None:
            # The nearest multiple of L1, as whole ways are what the unified memory is divided into.
            total = max(round((l1 // 1024 + largest) * 1024 / l1), 1) * l1 // 1024
            why = f"{cache.option.name} and {shared.name}"
            unified = Option("-gpgpu_unified_l1d_size", str(total), self.options.path, 0, why)
        if option is None:
            choices = ",".join(str(size) for size in _VOLTA_CHOICES if size <= largest)
            why = f"Volta's up to {shared.name}"
            option = Option("-gpgpu_shmem_option", choices, self.options.path, 0, why)
        self.approximations += [
            f"{part.name} (not given, taken as {part.value}: {part.why})"
            for part in (unified, option)
            if not part.line
        ]
        form = "KiB of shared memory, separated by commas"
        return unified, option, unified.integer(), option.integers(",", form, at_least=0)

    def _check_l2(self) -> None:
        """Refuse GPUs that have no L2 of global memory, which came before Fermi."""
        textures = self.options.find("-gpgpu_cache:dl2_texture_only")
        if textures is None:
            self.approximations.append(
                "-gpgpu_cache:dl2_texture_only (not given, taken as 0; GPGPU-Sim takes 1, an L2 for "
                "textures only)"
            )
        elif not textures.value or textures.flag():
            raise textures.error(
                "a GPU whose L2 is for textures only cannot be described: its global memory has no L2",
                f"write {textures.name} 0 for an L2 of all memory",
            )

    def _l2(self) -> None:
        options = self.options
        channels = options.need("-gpgpu_n_mem", 32)
        per_channel = options.need("-gpgpu_n_sub_partition_per_mchannel", 2)
        slices = channels.integer() * per_channel.integer()
        partitions = f"{channels.name} {channels.value} x {per_channel.name} {per_channel.value}"
        self.put("l2_slices", slices, f"{channels.path.name}, {partitions}")
        cache = self._cache("l2", "-gpgpu_cache:dl2", "S:32:128:24,L:B:m:L:P,A:192:4,32:0,32")
        self.put("l2_ways", cache.ways, cache.option.where)
        size = slices * cache.sets * cache.line * cache.ways / 1024
        self.put("l2_size_kib", size, f"{cache.option.where} in each of {partitions}")
        if cache.letters["allocate"] != "m":
            self.approximations.append(
                f"{cache.option.name} (allocation on fill, taken as on miss)"
            )
        self._slice_index(slices)

        mapping = self._mapping()
        if mapping is None:
            self.put("l2_slice_interleave_bytes", 256, "no option; as dramid@8")
        else:
            if mapping.slice_interleave % cache.line:
                raise mapping.option.error(
                    f"a line of {cache.line} bytes lies in several slices",
                    "move dramid@, D and B to higher bits",
                )
            where = mapping.option.where
            self.put("l2_slice_interleave_bytes", mapping.slice_interleave, where)

        # The simulator counts both delays in core cycles, whatever the clocks of L2 and DRAM are.
        # Accel-Sim's tuner sets them to what its microbenchmarks measure: the latency of an L2 hit
        # less that of an L1 hit, and that of DRAM less that of an L2 hit. So the sums are round
        # trips, and adding -gpgpu_dram_timing_opt would count the DRAM core twice.
        rop = options.need("-gpgpu_l2_rop_latency", 160)
        l1 = options.need("-gpgpu_l1_latency", 20)
        self.put("l2_latency", l1.integer() + rop.integer(0), f"{rop.where} + {l1.name} {l1.value}")
        self.integer("dram_latency", "-dram_latency", 100, at_least=0)

    def _mapping(self) -> AddressMapping | None:
        option = self.options.find("-gpgpu_mem_addr_mapping")
        if option is None:
            return None
        per_channel = self.options.need("-gpgpu_n_sub_partition_per_mchannel", 2)
        return AddressMapping.parse(option, per_channel.integer())

    def _slice_index(self, slices: int) -> None:
        option = self.options.find("-gpgpu_memory_partition_indexing")
        if option is None:
            source = "no option; as -gpgpu_memory_partition_indexing 0"
            self.put("l2_slice_index", "modulo", source)
            return
        number = option.integer(at_least=0)
        if number not in _SLICE_INDICES:
            raise option.error("no such index of partitions", f"write 0 to {max(_SLICE_INDICES)}")
        index, note = _SLICE_INDICES[number]
        if index == "even":
            is_power_of_two = slices & (slices - 1) == 0
            index = "ipoly" if is_power_of_two else "modulo"
            # Of a power of two, 6 is ipoly itself.
            note = "" if number == 6 and is_power_of_two else f"{note}, taken as {index}"
        self.put("l2_slice_index", index, option.where)
        if note:
            self.approximations.append(f"{option.name} {number} ({note})")

    def _noc(self, mhz: float) -> None:
        flit = self.options.need("-icnt_flit_size", 40)
        bandwidth = self.values["num_sms"] * flit.integer() * mhz / 1000
        source = f"{flit.where}: a flit per SM and cycle at the interconnect's {mhz:g} MHz"
        self.put("noc_bandwidth_gbs", bandwidth, source)
        clock = self.values["l2_clock_ghz"] or self.values["clock_ghz"]
        self.put(
            "noc_sm_bytes_per_cycle",
            round(flit.integer() * mhz / (1000 * clock), 9),
            f"{flit.where}, per cycle of L2's {1000 * clock:g} MHz",
        )
        # The interconnect brings a packet per cycle of its own.
        clocks = self.options.need("-gpgpu_clock_domains", "1132:1132:1132:850")
        self.put(
            "l2_slice_request_cycles",
            max(1.0, round(1000 * clock / mhz, 9)),
            f"{clocks.where}: L2's {1000 * clock:g} MHz / the interconnect's {mhz:g} MHz, at least 1",
        )

    def _dram(self, mhz: float) -> None:
        options = self.options
        channels = options.need("-gpgpu_n_mem", 32)
        clocks = options.need("-gpgpu_clock_domains", "1132:1132:1132:850")
        self.put("dram_clock_ghz", mhz / 1000, f"{clocks.where}: DRAM")
        clock = f"at DRAM's {mhz:g} MHz"
        simple = options.find("-gpgpu_simple_dram_model")
        if simple is not None and simple.flag():
            # This model serves a request (an L2 sector) per channel and cycle.
            multiplier = options.find("-gpgpu_simple_dram_clock_multiplier")
            requests = multiplier.integer() if multiplier else 1
            sector = self.values["l2_sector_bytes"]
            bandwidth = channels.integer() * requests * sector * mhz / 1000
            source = f"{channels.where}, {simple.name} 1: {requests} x {sector} bytes {clock}"
            self.put("dram_row_bytes", 0, f"{simple.where}: no banks")
        else:
            chips = options.need("-gpgpu_n_mem_per_ctrlr", 1)
            width = options.need("-gpgpu_dram_buswidth", 16)
            ratio = options.need("-dram_data_command_freq_ratio", 2)
            parts = (channels, chips, width, ratio)
            bandwidth = math.prod(part.integer() for part in parts) * mhz / 1000
            source = " x ".join(f"{part.name} {part.value}" for part in parts)
            source = f"{_CONFIG}, {source} {clock}"
            self._banks()
        self.put("dram_bandwidth_gbs", bandwidth, source)

    def _banks(self) -> None:
        """Put the banks of DRAM, where both their addresses and their timing are given."""
        mapping = self._mapping()
        timing = self.options.find("-gpgpu_dram_timing_opt") if mapping else None
        if mapping is None or timing is None:
            return
        banks = Banks(self.options, timing, mapping)
        for field, value in banks.values.items():
            self.put(field, value, banks.sources[field])
        self.approximations += banks.approximations

    def _timing(self) -> None:
        """Put what only the timing stage reads and an option gives."""
        options = self.options
        for level, example in (("l1", "S:4:128:64,..."), ("l2", "S:32:128:24,...")):
            cache = Cache.parse(options.need(f"-gpgpu_cache:d{level}", example))
            self.put(f"{level}_mshr_targets", cache.targets, cache.option.where)
            if level == "l2":
                self.put("l2_mshrs", cache.mshrs, cache.option.where)
                self.put("l2_slice_bytes_per_cycle", cache.port, f"{cache.option.where}: data port")
            elif cache.queue is not None:
                self._miss_queue(cache.queue, cache.option.where)
        channels = options.need("-gpgpu_n_mem", 32)
        self.put("dram_channels", channels.integer(), channels.where)
        schedulers = options.find("-gpgpu_num_sched_per_core")
        if schedulers is not None:
            self.put("schedulers_per_sm", schedulers.integer(), schedulers.where)
        queues = options.find("-gpgpu_dram_partition_queues")
        if queues is not None:
            form = "<NoC to L2>:<L2 to DRAM>:<DRAM to L2>:<L2 to NoC>"
            entries = queues.integers(":", form, at_least=1)
            self.put("l2_queue_entries", entries[0], queues.where)

    def _miss_queue(self, entries: int, source: str) -> None:
        """Put the miss queue of L1 with that of the interconnect behind it."""
        mode = self.options.find("-network_mode")
        # Another interconnect has its queues in a file of its own.
        if mode is not None and mode.integer() == 2:
            limit = self.options.find("-icnt_in_buffer_limit")
            more = limit.integer() if limit else 64
            entries += more
            given = f"{limit.name} {more}" if limit else f"{more}, without -icnt_in_buffer_limit"
            source += f" + {given}"
        self.put("l1_miss_queue_entries", entries, source)

    def _load_store_unit(self) -> None:
        """Put the memory instructions that can wait for L1 in an SM."""
        options = self.options
        widths = options.find("-gpgpu_pipeline_widths")
        if widths is None:
            return
        # Two commas in a row are one, as in GPGPU-Sim.
        given = dataclasses.replace(widths, value=re.sub(",+", ",", widths.value))
        numbers = given.integers(",", _WIDTHS_FORM, at_least=0)
        if len(numbers) not in _MEMORY_WIDTHS:
            raise widths.error("malformed", f"write {_WIDTHS_FORM}")
        registers = [numbers[place] for place in _MEMORY_WIDTHS[len(numbers)]]
        if 0 in registers:
            raise widths.error("no register for memory instructions", f"write {_WIDTHS_FORM}")
        # With sub-cores, each scheduler has a register of its own on both sides.
        cores = options.find("-gpgpu_sub_core_model")
        if cores is not None and cores.flag():
            registers = [min(width, int(self.values["issue_width"])) for width in registers]
        units = "-gpgpu_operand_collector_num_units"
        collectors = options.find(f"{units}_gen")
        found = [(f"{units}_gen", collectors.integer(at_least=0))] if collectors else []
        special = options.find("-gpgpu_enable_specialized_operand_collector")
        if special is None or special.flag():
            own = options.find(f"{units}_mem")
            found.append((f"{units}_mem", own.integer(at_least=0) if own else 2))
        count = sum(number for _, number in found)
        if not count:
            raise widths.error(
                "no operand collector takes memory instructions", f"give {units}_gen of at least 1"
            )
        collecting = " + ".join(f"{name} {number}" for name, number in found)
        self.put(
            "lsu_queue_entries",
            sum(registers) + count + 1,
            f"{widths.where}: {registers[0]} + {registers[1]}; {collecting}; 1 in the unit",
        )

    def _behaviour(self) -> None:
        """Put what no option says: what the simulator does."""
        for field, (value, what) in _BEHAVIOUR.items():
            self.put(field, value, f"no option; Accel-Sim: {what}")
        caches = [self.options.need(f"-gpgpu_cache:d{level}", "S:4:...") for level in ("l1", "l2")]
        on_miss = [c.name for c in caches if Cache.parse(c).letters["allocate"] == "m"]
        self.put(
            "lines_under_way",
            "reserved" if on_miss else "replaceable",
            f"{_CONFIG}, {' and '.join(on_miss)}: m; Accel-Sim: a miss reserves its line"
            if on_miss
            else f"{_CONFIG}, {' and '.join(c.name for c in caches)}: no allocation on a miss",
        )


def read_config(
    path: Path, name: str | None = None, trace_config: Path | None = None
) -> Configuration:
    """Read a GPGPU-Sim or Accel-Sim configuration.

    Parameters
    ----------
    path
        A ``gpgpusim.config``, or the folder that holds it.
    name
        Name of the description; by default the name of the folder.
    trace_config
        A ``trace.config``, or the folder that holds it; by default the one beside the file. It is
        read after the file, as Accel-Sim does, so that its options hold. Its latencies of machine
        instructions take the place of those of PTX instructions.

    Returns
    -------
    Configuration
        Its values are those that options, and rules without options, give.

    Raises
    ------
    InputError
        If a file cannot be read, lacks an option that says how large the GPU is, an option is
        malformed, or the GPU has no description here.

    Notes
    -----
    - ``issue_width`` is the number of schedulers. A scheduler that may issue two instructions at
      once can do so only for two different execution units, and is counted once.
    - With an adaptive cache, ``l1_size_kib`` and ``l1_ways`` are those of the largest L1: the unified
      size less the smallest choice of shared memory. The sets stay, the ways grow, as in the
      simulator.
    - Set index ``P`` and partition index 2 use the simulator's polynomials. They take all address
      bits above a line or chunk, the simulator those above channel and bank, up to a limit.
    - ``l2_clock_ghz`` is 0 where interconnect and L2 run at the core's clock; else it is the clock
      of L2, or of the interconnect if only that differs.
    - ``l2_latency`` is ``-gpgpu_l1_latency`` + ``-gpgpu_l2_rop_latency`` and ``dram_latency`` is
      ``-dram_latency``. The simulator counts them in core cycles; Accel-Sim's tuner sets them to
      the measured latency of an L2 hit less that of an L1 hit, and of DRAM less that of an L2 hit.
    - ``noc_bandwidth_gbs`` is a flit per SM and interconnect cycle, as MDM's Table III counts it.
    - ``dram_bandwidth_gbs`` is the peak of all channels: bytes of the bus of all chips, times the
      data rate, times the DRAM (command) clock; with ``-gpgpu_simple_dram_model``, an L2 sector
      per channel and DRAM cycle.
    - A slice of L2 is a sub-partition of a memory channel. The lowest bits of the bank choose it, so
      that ``dram_interleaved_banks`` does not count them.
    - ``lsu_queue_entries`` are the registers of memory instructions before and after the operand
      collectors, the collectors that take them, and the register of the unit.
    - What the simulator does without an option, such as requests that pass the latency of L1 before
      their look-up, has a source that starts with "no option; Accel-Sim".
    - An option that is not given has GPGPU-Sim's default; one that is given twice has its last value.
    - An interval counts cycles of a scheduler. Where there are fewer units than schedulers, it is
      that of a unit times schedulers / units.
    - The latencies are those of the execution units. Accel-Sim runs half precision on its single
      precision units, and shuffles, barriers and constant loads as integer instructions.
    """
    config = _file(path, _CONFIG)
    options = Options(config)
    options.read(config)
    beside = config.with_name(_TRACE_CONFIG)
    if trace_config is not None:
        options.read(_file(trace_config, _TRACE_CONFIG))
    elif beside != config and beside.is_file():
        options.read(beside)

    description = _Description(options)
    description.gather()
    unused = options.unused()
    problems = []
    if unused:
        problems.append(f"no meaning here: {', '.join(unused)}")
    if description.approximations:
        problems.append(f"simplified: {', '.join(description.approximations)}")
    if defaults := options.defaults():
        problems.append(f"not given, GPGPU-Sim's defaults: {', '.join(defaults)}")
    if options.repeated:
        problems.append(f"given again, the last one holds: {', '.join(options.repeated)}")
    return Configuration(
        path=config,
        name=name or printable(Path(os.path.realpath(config)).parent.name or config.stem),
        values=description.values,
        sources=description.sources,
        unused_options=unused,
        problems=problems,
    )


def _file(path: Path, name: str) -> Path:
    """Return the file that a path is of: the file itself, or the folder that holds it."""
    try:
        file = path / name if path.is_dir() else path
        there = file.is_file()
    except OSError as error:
        raise InputError(
            f"{printable(path)}: cannot read the configuration: {error.strerror}"
        ) from None
    if not there:
        raise InputError(f"{printable(file)}: there is no such file; give a {name} or its folder")
    return file
