"""What the reader of GPGPU-Sim configurations finds for the timing stage: queues, ports, banks of DRAM."""

import pytest
from gpgpusim_files import DETAILED, MINIMAL, read, read_and_warn, without, writer

from warpstack import InputError


@pytest.fixture
def write(tmp_path):
    return writer(tmp_path)


class TestValues:
    def test_every_option_has_a_meaning(self, write):
        description, problem = read_and_warn(write(MINIMAL | DETAILED))
        assert problem is None
        for field, source in {
            "l1_miss_queue_entries": "-gpgpu_cache:dl1 N:64:128:6,L:T:m:N:L,A:128:8,8"
            " + -icnt_in_buffer_limit 512",
            "dram_trcd": "-gpgpu_dram_timing_opt: RCD 24",
            "dram_burst_bytes": "-gpgpu_dram_burst_length 16 x -gpgpu_dram_buswidth 4 x "
            "-gpgpu_n_mem_per_ctrlr 2",
        }.items():
            assert description.sources[field] == f"gpgpusim.config, {source}"

    @pytest.mark.parametrize(
        ("options", "entries"),
        [
            ({"-network_mode": "2", "-icnt_in_buffer_limit": "512"}, 520),
            ({"-network_mode": "2"}, 72),  # 64 if it is not given
            ({"-network_mode": "1", "-icnt_in_buffer_limit": "512"}, 8),
            ({"-icnt_in_buffer_limit": "512"}, 8),
        ],
    )
    def test_requests_wait_in_the_interconnect_behind_l1(self, write, options, entries):
        assert read(write(MINIMAL | options)).l1_miss_queue_entries == entries

    @pytest.mark.parametrize(
        ("options", "entries"),
        [
            ({}, 11),  # 1 + 1, 8 collectors, 1 in the unit
            ({"-gpgpu_pipeline_widths": "4,0,0,4,4,4,0,0,4,3,8"}, 16),
            ({"-gpgpu_sub_core_model": "0"}, 11),
            # Registers for 2 schedulers, of 4.
            ({"-gpgpu_pipeline_widths": "4,0,0,4,4,4,0,0,4,4,8", "-gpgpu_sub_core_model": "1"}, 13),
            # Of their own: 3, or the simulator's 2.
            (
                {
                    "-gpgpu_enable_specialized_operand_collector": "1",
                    "-gpgpu_operand_collector_num_units_mem": "3",
                },
                14,
            ),
            ({"-gpgpu_enable_specialized_operand_collector": "1"}, 13),
            (
                {
                    "-gpgpu_enable_specialized_operand_collector": "1",
                    "-gpgpu_operand_collector_num_units_gen": "0",
                },
                5,
            ),
        ],
    )
    def test_memory_instructions_wait_before_l1(self, write, options, entries):
        assert read(write(MINIMAL | DETAILED | options)).lsu_queue_entries == entries

    def test_collectors_of_the_simulator_where_none_are_given(self, write):
        widths = {"-gpgpu_pipeline_widths": DETAILED["-gpgpu_pipeline_widths"]}
        assert read(write(MINIMAL | widths)).lsu_queue_entries == 5  # 1 + 1 + 2 + 1

    @pytest.mark.parametrize(
        ("end", "width"),
        [("4:0,64", 64), ("4:0,0", 128), ("4:0", 128), ("4", 128)],
    )
    def test_data_port_of_l2_is_a_line_wide_unless_it_is_given(self, write, end, width):
        cache = f"S:64:128:8,L:B:m:W:L,A:32:4,{end}"
        assert read(write(MINIMAL | {"-gpgpu_cache:dl2": cache})).l2_slice_bytes_per_cycle == width

    @pytest.mark.parametrize(
        ("clocks", "cycles"),
        [
            ("1400:1000:1200:500", 1.2),
            ("1400:1200:1000:500", 1),
            ("1400:1400:1400:500", 1),
            # L2 has the core's clock, and is described with the interconnect's.
            ("1400:1172:1400:500", 1),
        ],
    )
    def test_a_slow_interconnect_brings_a_slice_fewer_requests(self, write, clocks, cycles):
        description = read(write(MINIMAL | {"-gpgpu_clock_domains": clocks}))
        assert description.l2_slice_request_cycles == cycles

    def test_timing_of_dram(self, write):
        description = read(write(MINIMAL | DETAILED))
        banks = {k: v for k, v in description.values().items() if k.startswith("dram_")}
        assert banks == {
            "dram_latency": 220,
            "dram_bandwidth_gbs": 128.128,
            "dram_efficiency": 1,
            "dram_channels": 8,
            "dram_clock_ghz": 0.5005,
            "dram_queue_entries": 48,
            "dram_row_bytes": 1024,  # 5 bits C and 5 bits S
            "dram_banks": 16,
            "dram_bank_groups": 4,
            "dram_interleaved_banks": 1,  # no bit B is below one of C
            "dram_bank_interleave_bytes": 128,
            "dram_burst_bytes": 128,  # 16 x 4 bytes x 2 chips
            "dram_tccd": 4,
            "dram_tccdl": 6,
            "dram_trrd": 12,
            "dram_trcd": 24,
            "dram_tras": 55,
            "dram_trp": 25,
            "dram_trtp": 4,  # a burst of 16 / 4 cycles is longer than RTPL
            "dram_cl": 23,
            "dram_wl": 8,
            "dram_twtr": 10,
            "dram_twr": 22,
            "dram_trefi": 0,
            "dram_trfc": 0,
        }

    def test_timing_in_the_order_without_names(self, write):
        named = read(write(MINIMAL | DETAILED))
        plain = {"-gpgpu_dram_timing_opt": "16:4:12:24:55:25:78:23:8:10:22:4:6:3"}
        assert read(write(MINIMAL | DETAILED | plain)).values() == named.values()

    @pytest.mark.parametrize(
        "timing",
        [
            "16:4:12:24:55:25:78:23:8:10:22",
            "WR=22:nbk=16;CCD=4:RRD=12:RCD=24:RAS=55:RP=25:RC=78:CL=23:WL=8:CDLR=10:",
        ],
    )
    def test_timing_without_bank_groups(self, write, timing):
        options = MINIMAL | DETAILED | {"-gpgpu_dram_timing_opt": timing}
        description, problem = read_and_warn(
            write(without(options, "-dram_bnkgrp_indexing_policy", "-gpgpu_dram_burst_length"))
        )
        assert (description.dram_bank_groups, description.dram_tccdl) == (1, 0)
        assert description.dram_burst_bytes == 32  # 4 x 4 bytes x 2 chips
        assert description.dram_trtp == 1  # 4 / 4 cycles
        assert description.dram_twr == 22
        assert problem is None

    def test_a_command_takes_a_cycle(self, write):
        timing = "16:0:12:24:55:25:78:23:8:10:22"
        options = MINIMAL | DETAILED | {"-gpgpu_dram_timing_opt": timing}
        assert read(write(options)).dram_tccd == 1

    @pytest.mark.parametrize(
        ("bits", "slices", "row", "banks", "run"),
        [
            # Accel-Sim's RTX 2060: bit 7 is the bank's lowest, and below four bits of the column.
            ("R" * 9 + "RBBBCCCCBCCSSSSS", 1, 2048, 2, 128),
            # With two slices per channel, it chooses the slice: those of a slice have no such bit.
            ("R" * 9 + "RBBBCCCCBCCSSSSS", 2, 2048, 1, 128),
            ("R" * 9 + "RBBCCCCBBCCSSSSS", 2, 2048, 2, 128),
            ("R" * 9 + "RBBCCCBBCCCSSSSS", 1, 2048, 4, 256),
            ("R" * 9 + "RBBCCCBBCCCSSSSS", 4, 2048, 1, 128),
            ("R" * 9 + "RBBBCCCCCCSSSSS", 1, 2048, 1, 128),
            # Bits of the channel are not among those of an address in it.
            ("R" * 9 + "RBBCCCBDDDCCSSSSS", 1, 1024, 2, 128),
        ],
    )
    def test_rows_and_banks_of_addresses(self, write, bits, slices, row, banks, run):
        mapping = "0" * (64 - len(bits)) + bits
        if "D" not in bits:
            mapping = "dramid@8;" + mapping
        options = {
            "-gpgpu_mem_addr_mapping": mapping,
            "-gpgpu_n_sub_partition_per_mchannel": str(slices),
        }
        description, problem = read_and_warn(write(MINIMAL | DETAILED | options))
        assert description.dram_row_bytes == row
        assert description.dram_interleaved_banks == banks
        assert description.dram_bank_interleave_bytes == run
        assert problem is None

    @pytest.mark.parametrize(
        "bits", ["RRRRBBCBCBCCSSSSS", "BRRRRBBCCCCCSSSSS", "RRRBBCCCRCCCSSSSS"]
    )
    def test_addresses_that_are_simplified(self, write, bits):
        mapping = {"-gpgpu_mem_addr_mapping": "dramid@8;" + "0" * (64 - len(bits)) + bits}
        options = MINIMAL | DETAILED | mapping | {"-gpgpu_n_sub_partition_per_mchannel": "1"}
        _, problem = read_and_warn(write(options))
        assert problem.endswith(
            "simplified: -gpgpu_mem_addr_mapping (bits of the bank, taken as side by side and below "
            "the row)"
        )

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"-gpgpu_dram_scheduler": "0"}, "-gpgpu_dram_scheduler 0 (FIFO, taken as FR-FCFS)"),
            (
                {"-dram_bnk_indexing_policy": "1"},
                "-dram_bnk_indexing_policy 1 (bank xor bits of the row, taken without)",
            ),
            (
                {"-dram_bnkgrp_indexing_policy": "0"},
                "-dram_bnkgrp_indexing_policy 0 (groups of neighbouring banks, taken in turn)",
            ),
            (
                {"-dram_dual_bus_interface": "1"},
                "-dram_dual_bus_interface 1 (a row and a column command at once, taken one by one)",
            ),
            (
                {"-dram_seperate_write_queue_enable": "1"},
                "-dram_seperate_write_queue_enable 1 (a queue for writes, taken as one with the "
                "reads')",
            ),
            (
                {"-dram_elimnate_rw_turnaround": "1"},
                "-dram_elimnate_rw_turnaround 1 (a bus without turnaround, taken with it)",
            ),
            (
                {"-gpgpu_dram_timing_opt": "16:4:12:24:55:25:81:23:8:10:22"},
                "-gpgpu_dram_timing_opt (RC, taken as RAS + RP)",
            ),
        ],
    )
    def test_dram_that_is_simplified(self, write, options, problem):
        _, named = read_and_warn(write(MINIMAL | DETAILED | options))
        assert named.partition("simplified: ")[2] == problem

    def test_dram_that_is_not_simplified(self, write):
        options = {
            "-dram_bnk_indexing_policy": "0",
            "-dram_dual_bus_interface": "0",
            "-dram_seperate_write_queue_enable": "0",
            "-dram_elimnate_rw_turnaround": "0",
            "-gpgpu_dram_timing_opt": "16:4:12:24:55:25:80:23:8:10:22",
        }
        description, problem = read_and_warn(write(MINIMAL | DETAILED | options))
        assert (description.unused_options, problem) == ((), None)

    def test_queue_of_dram(self, write):
        unlimited = MINIMAL | DETAILED | {"-gpgpu_frfcfs_dram_sched_queue_size": "0"}
        assert read(write(unlimited)).dram_queue_entries == 2**20
        in_order = read(write(MINIMAL | DETAILED | {"-gpgpu_dram_scheduler": "0"}))
        assert in_order.dram_queue_entries == 2
        assert "-gpgpu_frfcfs_dram_sched_queue_size" in in_order.unused_options

    @pytest.mark.parametrize("name", ["-gpgpu_dram_timing_opt", "-gpgpu_mem_addr_mapping"])
    def test_banks_need_timing_and_addresses(self, write, name):
        description = read(write(without(MINIMAL | DETAILED, name)))
        assert description.dram_row_bytes == 0
        assert "-gpgpu_dram_burst_length" in description.unused_options


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "value", "problem", "remedy"),
        [
            (
                "-gpgpu_cache:dl2",
                "S:64:128:8,L:B:m:W:L,A:32:4,4:0,48",
                "a data port of 48 bytes",
                "a divisor of the 128 bytes",
            ),
            ("-network_mode", "local", "not a number", "from 1 on"),
            ("-icnt_in_buffer_limit", "many", "not a number", "from 1 on"),
            ("-gpgpu_pipeline_widths", "4,4,4,4", "malformed", "the widths of ID_OC_SP"),
            ("-gpgpu_pipeline_widths", "4;4", "malformed", "the widths of ID_OC_SP"),
            (
                "-gpgpu_pipeline_widths",
                "4,0,0,4,0,4,0,0,4,4,8",
                "no register for mem",
                "the widths",
            ),
            ("-gpgpu_sub_core_model", "2", "not a switch", "write 0 or 1"),
            ("-gpgpu_operand_collector_num_units_gen", "-8", "not a number", "from 0 on"),
            ("-gpgpu_dram_scheduler", "2", "no such scheduler", "FIFO. or 1 .FR-FCFS"),
            ("-gpgpu_frfcfs_dram_sched_queue_size", "big", "not a number", "from 0 on"),
            ("-gpgpu_dram_burst_length", "0", "not a number", "from 1 on"),
            ("-dram_bnk_indexing_policy", "xor", "not a number", "from 0 on"),
            ("-gpgpu_mem_addr_mapping", "dramid@8;" + "R" * 64, "choose the column", "add C and S"),
            ("-gpgpu_dram_timing_opt", "16:2:8", "malformed", "write nbk=<banks>:CCD="),
            ("-gpgpu_dram_timing_opt", ":".join("1" * 15), "malformed", "the numbers of nbk:CCD"),
            ("-gpgpu_dram_timing_opt", ":".join("x" * 14), "malformed", "write nbk=<banks>"),
            ("-gpgpu_dram_timing_opt", "nbk=16:CCD=", "malformed", "write nbk=<banks>"),
            (
                "-gpgpu_dram_timing_opt",
                "nbk=16:tCCD=2",
                "no timing 'tCCD'",
                "write one of nbk, CCD",
            ),
            ("-gpgpu_dram_timing_opt", "=16", "no timing '16'", "write one of nbk, CCD"),
            ("-gpgpu_dram_timing_opt", "nbk=16:nbk=16", "nbk is given twice", "leave one of them"),
            ("-gpgpu_dram_timing_opt", "nbk=16:CCD=2", "without RRD, RCD, RAS", "add RRD=<number>"),
            ("-gpgpu_dram_timing_opt", "0:4:12:24:55:25:78:23:8:10:22", "nbk is 0", "at least 1"),
            (
                "-gpgpu_dram_timing_opt",
                "16:4:12:24:55:25:78:23:8:10:22:0",
                "nbkgrp is 0",
                "at least 1",
            ),
        ],
    )
    def test_malformed_option(self, write, name, value, problem, remedy):
        options = MINIMAL | DETAILED | {name: value}
        line = list(options).index(name) + 1
        expected = rf"gpgpusim\.config:{line}: {name} .*{problem}.*; .*({remedy})"
        with pytest.raises(InputError, match=expected) as caught:
            read(write(options))
        assert value[:80] in str(caught.value)
        assert len(str(caught.value)) < 1000

    def test_no_operand_collectors(self, write):
        options = MINIMAL | DETAILED | {"-gpgpu_operand_collector_num_units_gen": "0"}
        expected = "no operand collector takes memory instructions; give .*_num_units_gen of at"
        with pytest.raises(InputError, match=expected):
            read(write(options))

    def test_timing_out_of_range_names_the_file(self, write):
        timing = {"-gpgpu_dram_timing_opt": "16:4:12:9999999:55:25:78:23:8:10:22"}
        with pytest.raises(
            InputError, match=r"gpgpusim\.config: GPU SM1_TEST: dram_trcd = 9999999"
        ):
            read(write(MINIMAL | DETAILED | timing))
