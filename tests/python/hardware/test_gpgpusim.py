"""The reader of GPGPU-Sim and Accel-Sim configurations."""

import re
import warnings

import pytest
from gpgpusim_files import (
    ADAPTIVE,
    DETAILED,
    MINIMAL,
    TRACE,
    read,
    read_and_warn,
    text_of,
    without,
    writer,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from warpstack._core import GPU_FIELDS
from warpstack.errors import InputError, UnusedOptionWarning
from warpstack.hardware.description import Gpu
from warpstack.hardware.stages import Stage, fields_of


@pytest.fixture
def write(tmp_path):
    return writer(tmp_path)


class TestValues:
    def test_minimal(self, write):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            description = Gpu.from_gpgpusim(write())
        assert description.name == "SM1_TEST"
        assert description.unused_options == ()
        assert description.values() == {
            "num_sms": 20,  # 10 clusters of 2
            "clock_ghz": 1.0,
            "issue_width": 2.0,
            "scheduler": "gto",
            "base_clock_ghz": 0,  # no options for launches
            **dict.fromkeys(
                (f"launch_us_{p}" for p in ("nsys", "ncu", "nvprof", "events", "batch")), 0
            ),
            **dict.fromkeys(("block_interval_cycles", "block_replacement_ns"), 0),
            **dict.fromkeys((f for f in Gpu.__dataclass_fields__ if f.endswith("_rate")), 0),
            "warp_start_cycles": 0,
            # Nor for the host and its link.
            **{
                field.name: field.default
                for field in GPU_FIELDS
                if field.name in fields_of(Stage.TIMELINE)
            },
            **dict.fromkeys(("lsu_interval", "shared_wavefront_cycles"), 1),
            "instruction_cache_kib": 0.0,
            "instruction_fetch_cycles": 0,
            "instruction_preload_kib": 0.0,
            "l1_tags_per_cycle": 0,
            "latency_counts": "execution",
            "dram_efficiency": 1,
            "warps_per_sm": 32,  # 1024 threads of 32 per warp
            "threads_per_sm": 1024,
            "blocks_per_sm": 16,
            "registers_per_sm": 32768,
            "register_allocation_unit": 256,
            "shared_memory_kib_per_sm": 48.0,
            "shared_memory_allocation_bytes": 128,  # compute capability 8
            "shared_memory_reserved_bytes": 1024,
            "l1_size_kib": 48.0,  # 64 sets x 6 ways x 128 bytes
            "l1_ways": 6,
            "l1_line_bytes": 128,
            "l1_sector_bytes": 128,  # N: whole lines
            "l1_mshrs": 128,
            "l1_latency": 30.0,
            "l1_latency_place": "before_tags",
            "lines_under_way": "reserved",  # m
            "l1_write_policy": "write_through",
            "l1_write_miss": "no_allocate",
            "l1_replacement": "lru",
            "l1_allocation": "on_miss",
            "l1_set_index": "modulo",
            "l1_global_loads": "cached",
            "unified_l1_kib": 0,
            "shared_memory_carve_outs_kib": (),
            "adaptive_l1_keeps": "sets",
            "noc_queue_entries": 0,
            "l2_size_kib": 1536.0,  # 24 slices x 64 sets x 8 ways x 128 bytes
            "l2_ways": 8,
            "l2_line_bytes": 128,
            "l2_sector_bytes": 32,
            "l2_slices": 24,  # 8 channels x 3 sub-partitions
            "l2_slice_interleave_bytes": 512,  # the channel changes at bit 9, the bank at bit 10
            "l2_latency": 150.0,  # 30 + 120
            "l2_clock_ghz": 0.9,
            "l2_write_policy": "write_back",
            "l2_write_miss": "write_and_fetch",
            "l2_replacement": "lru",
            "l2_set_index": "modulo",
            "l2_slice_index": "modulo",
            "dram_latency": 220.0,
            "noc_bandwidth_gbs": 1280.0,  # 20 SMs x 32 bytes x 2 GHz
            "dram_bandwidth_gbs": 128.128,  # 8 channels x 2 chips x 4 bytes x 4 x 0.5005 GHz
            "integer_latency": 4.0,
            "fp32_latency": 5.0,
            "fp16_latency": 5.0,
            "fp64_latency": 8.0,
            "sfu_latency": 21.0,
            "tensor_latency": 64.0,
            "uniform_latency": 4.0,
            "control_latency": 4.0,
            "barrier_latency": 4.0,
            "shuffle_latency": 32.0,  # the sixth of the integer latencies
            "constant_latency": 4.0,
            "texture_latency": 30.0,
            "shared_memory_latency": 24.0,
            "schedulers_per_sm": 2,
            "lsu_queue_entries": 2,
            "lsu_interval": 1,
            "shared_wavefront_cycles": 1,
            "tensor_warp_cycles": 0,
            "l1_mshr_targets": 8,
            "l1_miss_queue_entries": 8,
            "l2_mshrs": 32,
            "l2_mshr_targets": 4,
            "l2_queue_entries": 32,
            "l2_slice_request_cycles": 1,  # the interconnect is faster than L2
            "l2_slice_bytes_per_cycle": 32,  # the last number of dl2
            "atomic_requests": "per_lane",
            "atomic_wait": "for_data",
            "l2_miss_queue_entries": 0,
            "noc_topology": "shared",
            "l2_atomic_lane_turns": 0,
            "l2_atomic_words_at_once": 1,
            "l2_partial_write_turns": 0,
            "compute_capability": 0,
            "store_acknowledgement": "awaited",
            "kernel_end": "last_warp",
            "noc_control_bytes": 8,
            "noc_sm_bytes_per_cycle": pytest.approx(32 * 2 / 0.9),
            "dram_channels": 8,
            "dram_clock_ghz": 0.5005,
            "dram_queue_entries": 64,
            "dram_row_bytes": 0,
            "dram_banks": 16,
            "dram_bank_groups": 4,
            "dram_interleaved_banks": 1,
            "dram_bank_interleave_bytes": 128,
            "dram_burst_bytes": 32,
            "dram_tccd": 4,
            "dram_tccdl": 6,
            "dram_trrd": 12,
            "dram_trcd": 24,
            "dram_tras": 55,
            "dram_trp": 24,
            "dram_trtp": 4,
            "dram_cl": 24,
            "dram_wl": 8,
            "dram_twtr": 10,
            "dram_twr": 24,
            "dram_trefi": 0,
            "dram_trfc": 0,
            "integer_interval": 2,  # of an addition
            "fp32_interval": 2,  # of a multiply-add
            "fp16_interval": 2,
            "fp64_interval": 4,
            "sfu_interval": 8,
            "tensor_interval": 32,
        }

    def test_every_value_has_a_source_that_names_its_option(self, write):
        description = read(write(trace=TRACE))
        assert set(description.sources) == set(description.values())
        for field, parts in {
            "num_sms": ["-gpgpu_n_clusters 10", "-gpgpu_n_cores_per_cluster 2"],
            "l1_mshrs": ["gpgpusim.config", "-gpgpu_cache:dl1 N:64:128:6"],
            "l2_latency": ["-gpgpu_l2_rop_latency 120", "-gpgpu_l1_latency 30"],
            "dram_bandwidth_gbs": ["-gpgpu_n_mem 8", "-gpgpu_dram_buswidth 4", "500.5 MHz"],
            "control_latency": ["trace.config", "spec_op_1 6,4", "unit BRA"],
            "register_allocation_unit": ["no option"],
            "l1_latency_place": ["no option; Accel-Sim: -gpgpu_l1_latency"],
            "lines_under_way": ["-gpgpu_cache:dl1 and -gpgpu_cache:dl2: m", "Accel-Sim: "],
            "l2_slice_request_cycles": ["L2's 900 MHz / the interconnect's 2000 MHz"],
            "dram_clock_ghz": ["1000:2000:900.0:500.5: DRAM"],
        }.items():
            for part in parts:
                assert part in description.sources[field]

    def test_machine_latencies_come_before_those_of_ptx(self, write):
        description = read(write(trace=TRACE))
        latencies = {k: v for k, v in description.values().items() if k.endswith("_latency")}
        assert latencies == {
            "l1_latency": 30,
            "l2_latency": 150,
            "dram_latency": 220,
            "integer_latency": 2,
            "fp32_latency": 3,
            "fp16_latency": 3,
            "fp64_latency": 11,
            "sfu_latency": 22,
            "tensor_latency": 9,  # matrix instructions run on the unit TENSOR
            "uniform_latency": 7,
            "control_latency": 6,
            "barrier_latency": 2,
            "shuffle_latency": 2,  # an ALU instruction in a trace
            "constant_latency": 2,
            "texture_latency": 200,
            "shared_memory_latency": 24,
        }
        assert description.unused_options == (
            "-ptx_opcode_latency_int",
            "-ptx_opcode_latency_fp",
            "-ptx_opcode_latency_dp",
            "-ptx_opcode_latency_sfu",
            "-ptx_opcode_latency_tesnor",
            "-ptx_opcode_initiation_int",
            "-ptx_opcode_initiation_fp",
            "-ptx_opcode_initiation_dp",
            "-ptx_opcode_initiation_sfu",
            "-ptx_opcode_initiation_tensor",
            "-trace_opcode_latency_initiation_tensor",
        )

    def test_machine_latencies_alone_are_enough(self, write):
        options = {k: v for k, v in MINIMAL.items() if not k.startswith("-ptx")}
        trace = without(TRACE, *(name for name in TRACE if "spec" in name))
        description = read(write(options, trace))
        assert description.tensor_latency == 17
        assert (description.control_latency, description.uniform_latency) == (2, 2)
        assert description.texture_latency == description.l1_latency

    def test_machine_latencies_may_stand_in_the_same_file(self, write):
        assert read(write(MINIMAL | TRACE)).values() == read(write(MINIMAL, TRACE)).values()

    def test_without_tensor_cores(self, write):
        description = read(write(without(MINIMAL, "-ptx_opcode_latency_tesnor")))
        assert description.tensor_latency == description.fp32_latency
        assert "no tensor cores" in description.sources["tensor_latency"]

    def test_units_that_are_off_or_unknown_are_not_used(self, write):
        trace = TRACE | {
            "-specialized_unit_1": "0,4,4,4,4,BRA",
            "-specialized_unit_4": "1,4,4,4,4,RTCORE",
        }
        description = read(write(trace=trace))
        assert description.control_latency == description.integer_latency
        assert description.uniform_latency == description.integer_latency
        assert {"-specialized_unit_1", "-specialized_unit_4"} < set(description.unused_options)

    def test_adaptive_l1_is_what_the_smallest_shared_memory_leaves(self, write):
        description = read(write(MINIMAL | ADAPTIVE))
        # 4 sets of 128-byte lines: 0.5 KiB per way; 64 KiB of the 96 are left: 128 ways.
        assert (description.l1_size_kib, description.l1_ways) == (64, 128)
        assert description.unified_l1_kib == 96
        assert description.shared_memory_carve_outs_kib == (32, 64)
        assert description.adaptive_l1_keeps == "sets"
        everything = read(write(MINIMAL | ADAPTIVE | {"-gpgpu_shmem_option": "64,0,32"}))
        assert (everything.l1_size_kib, everything.l1_ways) == (96, 192)
        fixed = read(write(MINIMAL | ADAPTIVE | {"-gpgpu_adaptive_cache_config": "0"}))
        assert (fixed.l1_size_kib, fixed.l1_ways) == (32, 64)
        assert (fixed.unified_l1_kib, fixed.shared_memory_carve_outs_kib) == (0, ())
        assert set(fixed.unused_options) == {"-gpgpu_shmem_option", "-gpgpu_unified_l1d_size"}

    @pytest.mark.parametrize(
        ("clocks", "l2_clock"),
        [
            ("1000:1000:1000:500", 0),
            ("1000:2000:900:500", 0.9),
            ("1000:1000:900:500", 0.9),
            ("1000:2000:1000:500", 2),
        ],
    )
    def test_clock_of_l2(self, write, clocks, l2_clock):
        description = read(write(MINIMAL | {"-gpgpu_clock_domains": clocks}))
        assert description.l2_clock_ghz == l2_clock
        assert "-gpgpu_clock_domains" in description.sources["l2_clock_ghz"]
        faster = description.replace(clock_ghz=2)
        assert faster.l2_latency == (300 if l2_clock else 150)
        assert faster.dram_latency == 440

    @pytest.mark.parametrize(
        ("letter", "policy"),
        [
            ("B", "write_back"),
            ("T", "write_through"),
            ("E", "write_through"),
            ("L", "write_through"),
        ],
    )
    def test_write_policies(self, write, letter, policy):
        cache = f"N:64:128:6,L:{letter}:m:N:L,A:128:8,8"
        assert read(write(MINIMAL | {"-gpgpu_cache:dl1": cache})).l1_write_policy == policy

    @pytest.mark.parametrize(
        ("letter", "miss"),
        [
            ("N", "no_allocate"),
            ("W", "write_and_fetch"),
            ("F", "fetch_on_partial_write"),
            ("L", "write_validate"),
        ],
    )
    def test_write_misses(self, write, letter, miss):
        options = MINIMAL | {
            "-gpgpu_cache:dl1": f"N:64:128:6,L:T:m:{letter}:L,A:128:8,8",
            "-gpgpu_cache:dl2": f"S:64:128:8,L:B:m:{letter}:L,A:32:4,4:0,32",
        }
        description = read(write(options))
        assert (description.l1_write_miss, description.l2_write_miss) == (miss, miss)
        assert description.sources["l2_write_miss"].endswith(f": {letter}")

    @pytest.mark.parametrize(
        ("l1", "l2", "lines"),
        [
            ("m", "m", "reserved"),
            ("s", "m", "reserved"),
            ("m", "f", "reserved"),
            ("f", "f", "replaceable"),
        ],
    )
    def test_lines_are_reserved_where_a_miss_allocates(self, write, l1, l2, lines):
        options = MINIMAL | {
            "-gpgpu_cache:dl1": f"N:64:128:6,L:T:{l1}:N:L,A:128:8,8",
            "-gpgpu_cache:dl2": f"S:64:128:8,L:T:{l2}:N:L,A:32:4,4:0,32",
        }
        assert read(write(options)).lines_under_way == lines

    @pytest.mark.parametrize(("letter", "replacement"), [("L", "lru"), ("F", "fifo")])
    def test_replacement(self, write, letter, replacement):
        options = MINIMAL | {
            "-gpgpu_cache:dl1": f"N:64:128:6,{letter}:T:m:N:L,A:128:8,8",
            "-gpgpu_cache:dl2": f"S:64:128:8,{letter}:B:m:W:L,A:32:4,4:0,32",
        }
        description, problem = read_and_warn(write(options))
        assert (description.l1_replacement, description.l2_replacement) == (replacement,) * 2
        assert problem is None

    @pytest.mark.parametrize(
        ("letter", "allocation"), [("m", "on_miss"), ("f", "on_fill"), ("s", "on_fill")]
    )
    def test_allocation(self, write, letter, allocation):
        options = MINIMAL | {"-gpgpu_cache:dl1": f"N:64:128:6,L:T:{letter}:N:L,A:128:8,8"}
        description, problem = read_and_warn(write(options))
        assert description.l1_allocation == allocation
        assert description.sources["l1_allocation"].endswith(f": {letter}")
        assert ("streaming" in description.sources["l1_mshrs"]) == (letter == "s")
        assert problem is None

    @pytest.mark.parametrize(
        ("letter", "index", "problem"),
        [
            ("L", "modulo", None),
            ("P", "ipoly", None),
            ("X", "xor", "exclusive or with the next address bits, taken with all higher ones"),
            ("H", "xor", "Fermi hash, taken as xor"),
            ("C", "modulo", "custom set index, .*, taken modulo"),
        ],
    )
    def test_set_index(self, write, letter, index, problem):
        options = MINIMAL | {
            "-gpgpu_cache:dl1": f"N:64:128:6,L:T:m:N:{letter},A:128:8,8",
            "-gpgpu_cache:dl2": f"S:64:128:8,L:B:m:W:{letter},A:32:4,4:0,32",
        }
        description, named = read_and_warn(write(options))
        assert (description.l1_set_index, description.l2_set_index) == (index, index)
        assert description.sources["l2_set_index"].endswith(f": {letter}")
        if problem is None:
            assert named is None
        else:
            for level in ("dl1", "dl2"):
                assert re.search(rf"simplified: .*-gpgpu_cache:{level} \({problem}\)", named)

    @pytest.mark.parametrize(
        ("number", "channels", "index", "problem"),
        [
            (0, 8, "modulo", None),
            (1, 8, "xor", "channel xor the next .*, taken as slice xor all higher ones"),
            (2, 8, "ipoly", None),
            (2, 24, "ipoly", None),  # both take ipoly of the next power of two modulo the slices
            (3, 8, "ipoly", "PAE, taken as ipoly"),
            (4, 8, "ipoly", "random slices, taken as ipoly"),
            (4, 12, "modulo", "random slices, taken as modulo"),
            (5, 8, "modulo", "custom slice index, .*, taken modulo"),
            (6, 8, "ipoly", None),
            (6, 12, "modulo", "ipoly of a power of two, .*, taken as modulo"),
        ],
    )
    def test_slice_index(self, write, number, channels, index, problem):
        options = MINIMAL | {
            "-gpgpu_n_mem": str(channels),
            "-gpgpu_n_sub_partition_per_mchannel": "2",
            "-gpgpu_memory_partition_indexing": str(number),
        }
        description, named = read_and_warn(write(options))
        assert description.l2_slice_index == index
        option = f"-gpgpu_memory_partition_indexing {number}"
        assert description.sources["l2_slice_index"] == f"gpgpusim.config, {option}"
        if problem is None:
            assert named is None
        else:
            assert re.search(rf"simplified: {option} \({problem}\)$", named)

    @pytest.mark.parametrize(("switch", "loads"), [("0", "cached"), ("1", "bypassed")])
    def test_global_loads(self, write, switch, loads):
        description, problem = read_and_warn(write(MINIMAL | {"-gpgpu_gmem_skip_L1D": switch}))
        assert description.l1_global_loads == loads
        assert description.unused_options == ()
        assert problem is None

    def test_carve_outs_leave_whole_ways(self, write):
        options = MINIMAL | {
            "-gpgpu_adaptive_cache_config": "1",
            "-gpgpu_shmem_option": "8,100,0,16,8",
            "-gpgpu_unified_l1d_size": "128",
            "-gpgpu_cache:dl1": "S:64:128:4,L:T:m:L:L,A:256:32,16:0,32",
        }
        description, problem = read_and_warn(write(options))
        # A way is 8 KiB: 28 KiB are 3.5 ways, which the simulator rounds to 4.
        assert description.shared_memory_carve_outs_kib == (0, 8, 16, 96)
        assert (description.l1_size_kib, description.l1_ways) == (128, 16)
        assert problem.endswith(
            "simplified: -gpgpu_shmem_option (100 KiB, taken as the 96 that whole ways of L1 leave)"
        )

    def test_adaptive_streaming_is_on_fill_throughout(self, write):
        streaming = {"-gpgpu_cache:dl1": "S:4:128:64,L:T:s:L:L,A:256:32,16:0,32"}
        description, problem = read_and_warn(write(MINIMAL | ADAPTIVE | streaming))
        assert description.l1_allocation == "on_fill"
        assert "on fill for kernels without shared memory too" in problem

    def test_l2_allocates_on_miss(self, write):
        cache = "S:64:128:8,L:B:f:W:L,A:32:4,4:0,32"
        _, problem = read_and_warn(write(MINIMAL | {"-gpgpu_cache:dl2": cache}))
        assert "-gpgpu_cache:dl2 (allocation on fill, taken as on miss)" in problem

    @pytest.mark.parametrize(
        "cache", ["N:64:128:6,L:T:m:N:L,A:128:8", "N:64:128:6,L:T:m:N:L,S:128:8,8"]
    )
    def test_short_cache_strings(self, write, cache):
        assert read(write(MINIMAL | {"-gpgpu_cache:dl1": cache})).l1_mshrs == 128

    @pytest.mark.parametrize(
        ("mapping", "interleave"),
        [
            ("dramid@8;" + "0" * 48 + "RRRRRRRR" + "BCCSSSSS", 128),  # the bank at bit 7
            ("dramid@8;" + "0" * 40 + "R" * 8 + "RBBBCCCB" + "CCCSSSSS", 256),  # both at bit 8
            ("0" * 40 + "R" * 8 + "RBBBDDDC" + "CCCSSSSS", 512),  # the channel at bit 9
        ],
    )
    def test_slice_interleave(self, write, mapping, interleave):
        description = read(write(MINIMAL | {"-gpgpu_mem_addr_mapping": mapping}))
        assert description.l2_slice_interleave_bytes == interleave

    def test_slice_interleave_of_one_sub_partition_is_that_of_the_channels(self, write):
        mapping = "dramid@8;" + "0" * 48 + "RRRRRRRR" + "BCCSSSSS"
        options = MINIMAL | {
            "-gpgpu_mem_addr_mapping": mapping,
            "-gpgpu_n_sub_partition_per_mchannel": "1",
        }
        assert read(write(options)).l2_slice_interleave_bytes == 256

    def test_simple_dram_serves_a_sector_per_channel_and_cycle(self, write):
        simple = MINIMAL | {"-gpgpu_simple_dram_model": "1"}
        description = read(write(simple))
        assert description.dram_bandwidth_gbs == pytest.approx(8 * 32 * 0.5005)
        assert "-gpgpu_dram_buswidth" in description.unused_options
        double = read(write(simple | {"-gpgpu_simple_dram_clock_multiplier": "2"}))
        assert double.dram_bandwidth_gbs == pytest.approx(2 * 8 * 32 * 0.5005)
        detailed = read(write(MINIMAL | {"-gpgpu_simple_dram_model": "0"}))
        assert detailed.values() == read(write()).values()
        with_banks = read(write(simple | DETAILED))
        assert with_banks.dram_row_bytes == 0
        assert {"-gpgpu_dram_timing_opt", "-gpgpu_dram_scheduler"} < set(with_banks.unused_options)

    def test_compute_capability_decides_how_shared_memory_is_given_out(self, write):
        for options in (
            MINIMAL | {"-gpgpu_compute_capability_major": "7"},
            without(MINIMAL, "-gpgpu_compute_capability_major"),
        ):
            description = read(write(options))
            assert description.shared_memory_allocation_bytes == 256
            assert description.shared_memory_reserved_bytes == 0

    def test_without_an_address_mapping(self, write):
        description = read(write(without(MINIMAL, "-gpgpu_mem_addr_mapping")))
        assert description.l2_slice_interleave_bytes == 256


class TestText:
    def test_comments_quotes_and_line_breaks(self, write):
        lines = text_of(without(MINIMAL, "-gpgpu_n_clusters", "-gpgpu_cache:dl1"))
        text = (
            "# -gpgpu_n_clusters 99\n\r\n"
            + lines.replace("\n", "   # why\r\n")
            + '-gpgpu_n_clusters\n\t10\n-gpgpu_cache:dl1 "N:64:128:6,\n   L:T:m:N:L,  # half\n'
            + '   A:128:8,8"\n#-gpgpu_n_clusters 98'
        )
        assert read(write(text=text)).values() == read(write()).values()

    def test_names_and_paths(self, write):
        folder = write()
        by_folder, by_file = read(folder), read(folder / "gpgpusim.config")
        assert by_folder == by_file
        assert by_folder.name == "SM1_TEST"
        assert read(str(folder), name="mine").name == "mine"
        other = (folder / "gpgpusim.config").rename(folder / "other.config")
        assert read(other) == by_folder

    def test_same_option_twice_with_the_same_value(self, write):
        text = text_of(MINIMAL) + "-gpgpu_n_clusters 10\n"
        assert read(write(text=text)).num_sms == 20

    def test_unused_options_keep_the_order_of_the_file(self, write):
        text = "-visualizer_enabled 0\n" + text_of(MINIMAL) + '-a:b.c "1 2"\n-liveness -1\n'
        with pytest.warns(UnusedOptionWarning) as caught:
            description = Gpu.from_gpgpusim(write(text=text))
        assert description.unused_options == ("-visualizer_enabled", "-a:b.c", "-liveness")
        (warning,) = caught
        assert "no meaning here: -visualizer_enabled, -a:b.c, -liveness" in str(warning.message)
        assert warning.filename == __file__

    def test_simplifications_are_named_in_the_same_warning(self, write):
        options = MINIMAL | {
            "-gpgpu_cache:dl1": "N:64:128:6,F:L:s:N:H,A:128:8,8",
            "-gpgpu_memory_partition_indexing": "4",
            "-liveness": "1",
        }
        with pytest.warns(UnusedOptionWarning) as caught:
            description = Gpu.from_gpgpusim(write(options))
        (warning,) = caught
        for part in ("no meaning here: -liveness;", "write-evict", "Fermi hash", "random slices"):
            assert part in str(warning.message)
        assert description.unused_options == ("-liveness",)

    def test_switches_that_are_off_have_a_meaning(self, write):
        options = MINIMAL | {"-gpgpu_gmem_skip_L1D": "0", "-gpgpu_adaptive_cache_config": "0"}
        assert read(write(options)).unused_options == ()


class TestErrors:
    @pytest.mark.parametrize(
        "name",
        [
            "-gpgpu_clock_domains",
            "-gpgpu_n_clusters",
            "-gpgpu_n_cores_per_cluster",
            "-gpgpu_n_mem",
            "-gpgpu_shader_core_pipeline",
            "-gpgpu_shader_registers",
            "-gpgpu_cache:dl1",
            "-gpgpu_cache:dl2",
        ],
    )
    def test_missing_option(self, write, name):
        with pytest.raises(
            InputError, match=r"gpgpusim\.config: there is no option .*; "
        ) as caught:
            read(write(without(MINIMAL, name)))
        assert name in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "value", "problem", "remedy"),
        [
            ("-gpgpu_n_clusters", "ten", "not a number", "whole number from 1 on"),
            ("-gpgpu_n_clusters", "0", "not a number", "whole number from 1 on"),
            ("-gpgpu_n_clusters", "-3", "not a number", "whole number from 1 on"),
            ("-gpgpu_n_clusters", "2.5", "not a number", "whole number from 1 on"),
            ("-gpgpu_n_clusters", "9" * 5000, "not a number", "whole number from 1 on"),
            ("-gpgpu_shader_registers", "4294967296", "not a number", "whole number"),
            ("-dram_latency", "-1", "not a number", "whole number from 0 on"),
            ("-gpgpu_clock_domains", "1000:1000:1000", "malformed", "<core>:<interconnect>"),
            ("-gpgpu_clock_domains", "1000:1000:x:1000", "malformed", "in MHz"),
            ("-gpgpu_clock_domains", "0:1000:1000:1000", "malformed", "in MHz"),
            ("-gpgpu_clock_domains", "nan:1:1:1", "malformed", "in MHz"),
            ("-gpgpu_shader_core_pipeline", "1024", "warps have 32 threads", "<threads>:32"),
            ("-gpgpu_shader_core_pipeline", "1024:16", "warps have 32 threads", "<threads>:32"),
            ("-gpgpu_shader_core_pipeline", "1000:32", "warps have 32 threads", "<threads>:32"),
            ("-gpgpu_shader_core_pipeline", "a:32", "malformed", "<threads>:32"),
            ("-gpgpu_shader_core_pipeline", "0:32", "out of range", "<threads>:32"),
            ("-gpgpu_scheduler", "two_level_active:6:0:1", "cannot be described", "gto or lrr"),
            ("-gpgpu_gmem_skip_L1D", "yes", "not a switch", "write 0 or 1"),
            ("-gpgpu_memory_partition_indexing", "7", "no such index", "write 0 to 6"),
            ("-gpgpu_memory_partition_indexing", "xor", "not a number", "from 0 on"),
            ("-gpgpu_cache:dl2", "none", "without L2", "give its geometry"),
            ("-gpgpu_cache:dl2_texture_only", "1", "textures only", "dl2_texture_only 0"),
            ("-gpgpu_cache:dl1", "128:64:4:L", "the form of GPGPU-Sim 2", "<S or N>:"),
            ("-gpgpu_cache:dl1", "N:64:128,L:T:m:N:L,A:128:8,8", "malformed cache", "<S or N>:"),
            ("-gpgpu_cache:dl1", "N:64:128:6,L:T:m:N:L", "malformed cache", "<S or N>:"),
            ("-gpgpu_cache:dl1", "N:64:128:6,L:T:m:N:L,A:128:8,8;", "malformed cache", "<S or N>:"),
            ("-gpgpu_cache:dl1", "X:64:128:6,L:T:m:N:L,A:128:8,8", "letter X for `kind", "S, N"),
            (
                "-gpgpu_cache:dl1",
                "N:64:128:6,X:T:m:N:L,A:128:8,8",
                "letter X for `replacement",
                "L, F",
            ),
            (
                "-gpgpu_cache:dl1",
                "N:64:128:6,L:R:m:N:L,A:128:8,8",
                "letter R for `write",
                "B, T, E, L",
            ),
            (
                "-gpgpu_cache:dl1",
                "N:64:128:6,L:T:x:N:L,A:128:8,8",
                "letter x for `allocate",
                "m, f, s",
            ),
            (
                "-gpgpu_cache:dl1",
                "N:64:128:6,L:T:m:x:L,A:128:8,8",
                "letter x for `write miss",
                "N, W",
            ),
            (
                "-gpgpu_cache:dl1",
                "N:64:128:6,L:T:m:N:x,A:128:8,8",
                "letter x for `index",
                "L, X, P",
            ),
            ("-gpgpu_cache:dl1", "N:64:128:6,L:T:m:N:L,F:128:8,8", "letter F for `mshr", "A, S"),
            ("-gpgpu_cache:dl1", "N:0:128:6,L:T:m:N:L,A:128:8,8", "a size is 0", "at least 1"),
            ("-gpgpu_cache:dl1", "N:64:128:6,L:T:m:N:L,A:0:8,8", "a size is 0", "at least 1"),
            ("-gpgpu_cache:dl1", "S:64:64:6,L:T:m:N:L,A:8:8,8", "lines of 64 bytes", "128 bytes"),
            ("-gpgpu_cache:dl2", "N:64:48:6,L:B:m:N:L,A:8:8,8", "lines of 48 bytes", "of 32 bytes"),
            ("-gpgpu_cache:dl2", "N:64:512:6,L:B:m:N:L,A:8:8,8", "lines of 512", "of 32 bytes"),
            ("-gpgpu_mem_addr_mapping", "dramid@8;RRR", "malformed", "64 of the letters"),
            ("-gpgpu_mem_addr_mapping", "X" * 64, "malformed", "64 of the letters"),
            ("-gpgpu_mem_addr_mapping", "R" * 64, "no bits choose", "dramid@<bit>; in front"),
            ("-gpgpu_mem_addr_mapping", "dramid@50;" + "R" * 64, "no bits choose", "in front"),
            ("-gpgpu_mem_addr_mapping", "dramid@6;" + "R" * 64, "several slices", "higher bits"),
            ("-ptx_opcode_latency_int", "4,x", "malformed", "ADD,MAX|latencies"),
            ("-trace_opcode_latency_initiation_int", "4", "malformed", "<latency>,<initiation"),
            ("-trace_opcode_latency_initiation_int", "4,x", "malformed", "<latency>,<initiation"),
            ("-trace_opcode_latency_initiation_tensor", "4,4,4", "malformed", "<latency>,"),
            ("-specialized_unit_1", "1,4,BRA", "malformed", "<enabled>,<units>"),
            ("-specialized_unit_1", "on,4,4,4,4,BRA", "malformed", "<enabled>,<units>"),
        ],
    )
    def test_malformed_option(self, write, name, value, problem, remedy):
        options = MINIMAL | {name: value}
        line = list(options).index(name) + 1
        expected = rf"gpgpusim\.config:{line}: {name} .*{problem}.*; .*({remedy})"
        with pytest.raises(InputError, match=expected) as caught:
            read(write(options))
        assert value[:80] in str(caught.value)
        assert len(str(caught.value)) < 1000

    @pytest.mark.parametrize(
        ("name", "value", "problem"),
        [
            ("-gpgpu_unified_l1d_size", "100", "not a multiple of the 32 KiB of -gpgpu_cache:dl1"),
            ("-gpgpu_unified_l1d_size", "16", "not a multiple of the 32 KiB of -gpgpu_cache:dl1"),
            ("-gpgpu_shmem_option", "96,128", "96 KiB leave L1 nothing of the 96 KiB"),
            ("-gpgpu_shmem_option", "0;32", "malformed"),
            ("-gpgpu_adaptive_cache_config", "2", "not a switch"),
        ],
    )
    def test_malformed_adaptive_cache(self, write, name, value, problem):
        options = MINIMAL | ADAPTIVE | {name: value}
        line = list(options).index(name) + 1
        with pytest.raises(InputError, match=rf"config:{line}: {name} {value}: .*{problem}"):
            read(write(options))

    def test_values_that_do_not_go_together_name_the_file(self, write):
        options = MINIMAL | {"-gpgpu_n_clusters": "2147483647"}
        with pytest.raises(InputError, match=r"gpgpusim\.config: GPU SM1_TEST: num_sms = .*large"):
            read(write(options))

    @pytest.mark.parametrize(
        ("end", "message"),
        [
            ("-gpgpu_l1_banks", "-gpgpu_l1_banks has no value; write the value"),
            ("-gpgpu_l1_banks\n-gpgpu_x 1", "-gpgpu_l1_banks has no value; write the value"),
            ("-gpgpu_l1_banks 4 5", "expected an option like -gpgpu_n_clusters, got '5'"),
            ("gpgpu_l1_banks 4", "expected an option like -gpgpu_n_clusters, got 'gpgpu_l1_banks'"),
            ('-gpgpu_l1_banks "4', "-gpgpu_l1_banks .*the quote does not end; add the closing"),
            ('-gpgpu_l1_banks "4\n-a "5"', "-gpgpu_l1_banks .*the quote does not end; add"),
        ],
    )
    def test_malformed_text(self, write, end, message):
        line = len(MINIMAL) + 1
        with pytest.raises(InputError, match=rf"gpgpusim\.config:{line}: {message}"):
            read(write(text=text_of(MINIMAL) + end))

    def test_empty(self, write):
        with pytest.raises(InputError, match="there is no option -gpgpu_clock_domains; add it"):
            read(write(text="# nothing\n"))

    @pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x00", b"\xff\xfe-a 1", b"-a \x00"])
    @pytest.mark.parametrize("name", ["gpgpusim.config", "trace.config"])
    def test_binary(self, write, name, content):
        folder = write()
        (folder / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}: not a text file; expected lines"):
            read(folder)

    def test_no_file(self, tmp_path):
        for path in (tmp_path, tmp_path / "absent", tmp_path / "absent.config"):
            with pytest.raises(InputError, match=r"no such file; give a gpgpusim\.config or its"):
                read(path)

    @settings(deadline=None)
    @given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
    def test_any_content_is_refused_in_one_way(self, tmp_path_factory, content):
        path = tmp_path_factory.mktemp("any") / "gpgpusim.config"
        path.write_bytes(content)
        with pytest.raises(InputError):
            read(path)

    @settings(deadline=None)
    @given(
        name=st.sampled_from([*MINIMAL, *ADAPTIVE, *TRACE, *DETAILED]),
        value=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30),
    )
    def test_any_value_is_read_or_refused(self, tmp_path_factory, name, value):
        path = tmp_path_factory.mktemp("any") / "gpgpusim.config"
        options = MINIMAL | ADAPTIVE | TRACE | DETAILED | {name: value}
        path.write_text(text_of(options), encoding="utf-8")
        try:
            outcome = read(path).name
        except InputError as error:
            outcome = str(error)
        assert path.parent.name in outcome
