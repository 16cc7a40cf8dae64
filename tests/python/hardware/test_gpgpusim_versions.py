"""Configurations of GPGPU-Sim as users have them: older versions, spellings, defaults, one file alone."""

import re
import warnings
from pathlib import Path

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

from warpstack import InputError, gpu, patterns, save
from warpstack.cli import main
from warpstack.errors import UnusedOptionWarning
from warpstack.hardware.description import Gpu

SHARED = Path(__file__).resolve().parents[4] / "shared" / "gpgpusim-configs"
INTERVALS = ("integer", "fp32", "fp16", "fp64", "sfu", "tensor")


@pytest.fixture
def write(tmp_path):
    return writer(tmp_path)


def intervals(description):
    return {name: getattr(description, f"{name}_interval") for name in INTERVALS}


class TestUnits:
    def test_intervals_of_ptx(self, write):
        description = read(write())
        # An integer addition; multiply-adds of single and double precision.
        expected = {"integer": 2, "fp32": 2, "fp16": 2, "fp64": 4, "sfu": 8, "tensor": 32}
        assert intervals(description) == expected
        assert description.sources["fp32_interval"] == (
            "gpgpusim.config, -ptx_opcode_initiation_fp 1,3,1,2,4"
        )

    def test_intervals_of_machine_code_go_before(self, write):
        description = read(write(trace=TRACE))
        expected = {"integer": 1, "fp32": 1, "fp16": 1, "fp64": 8, "sfu": 4, "tensor": 4}
        assert intervals(description) == expected

    def test_each_class_on_its_own(self, write):
        trace = {"-trace_opcode_latency_initiation_sp": "6,5"}
        description, problem = read_and_warn(write(trace=trace))
        assert (description.fp32_latency, description.fp32_interval) == (6, 5)
        assert (description.fp64_latency, description.fp64_interval) == (8, 4)
        # Accel-Sim itself has a default of its own for these.
        assert "-trace_opcode_latency_initiation_dp (not given" in problem
        assert "Accel-Sim takes 4,1" in problem

    @pytest.mark.parametrize(
        ("units", "expected"),
        [
            # Of two schedulers: the shared unit takes an instruction of each in turn.
            ({"sp": 1}, {"fp32": 4, "fp16": 4, "integer": 4}),
            ({"sp": 1, "int": 2}, {"fp32": 4, "integer": 2}),
            ({"sp": 2, "sfu": 1}, {"fp32": 2, "sfu": 16, "fp64": 8}),
            ({"sfu": 1, "dp": 2}, {"sfu": 16, "fp64": 4}),
            ({"sfu": 1, "dp": 0}, {"sfu": 16, "fp64": 8}),
            ({"tensor_core": 1}, {"tensor": 64}),
            ({"sp": 8}, {"fp32": 2}),
        ],
    )
    def test_schedulers_share_units(self, write, units, expected):
        options = {f"-gpgpu_num_{name}_units": str(number) for name, number in units.items()}
        found = intervals(read(write(MINIMAL | options)))
        assert {name: found[name] for name in expected} == expected

    def test_units_that_do_not_divide_the_schedulers(self, write):
        options = {"-gpgpu_num_sched_per_core": "4", "-gpgpu_num_sp_units": "3"}
        description = read(write(MINIMAL | options))
        assert description.fp32_interval == 3  # 2 x 4 / 3, rounded up
        assert "x 4 schedulers / 3 units" in description.sources["fp32_interval"]

    def test_specialised_units_without_a_trace_are_not_used(self, write):
        units = {name: value for name, value in TRACE.items() if name.startswith("-special")}
        description = read(write(MINIMAL | units))
        assert description.values() == read(write()).values()
        assert set(units) <= set(description.unused_options)

    def test_specialised_unit_without_a_latency_has_the_default(self, write):
        trace = without(TRACE, "-trace_opcode_latency_initiation_spec_op_4")
        description, problem = read_and_warn(write(trace=trace))
        assert description.uniform_latency == 4
        assert "-trace_opcode_latency_initiation_spec_op_4 4,4 (latency of its unit)" in problem

    @pytest.mark.skipif(not SHARED.is_dir(), reason=f"no configurations at {SHARED}")
    @pytest.mark.parametrize(
        ("name", "lanes"),
        [("SM7_QV100", 64), ("SM7_TITANV", 64), ("SM75_RTX2060", 64), ("SM86_RTX3070", 128)],
    )
    def test_multiply_adds_of_a_cycle_without_trace_config(self, tmp_path, name, lanes):
        file = tmp_path / "gpgpusim.config"
        file.write_bytes((SHARED / name / "gpgpusim.config").read_bytes())
        alone = read(file)
        assert 32 * alone.schedulers_per_sm / alone.fp32_interval == lanes
        beside = read(SHARED / name)
        given = read(file, trace_config=SHARED / name / "trace.config")
        assert given.values() == beside.values()
        assert read(file, trace_config=SHARED / name).values() == beside.values()
        assert beside.fp32_interval == alone.fp32_interval


class TestTraceConfig:
    def test_one_from_elsewhere_replaces_the_one_beside(self, write, tmp_path):
        folder = write(trace=TRACE)
        other = tmp_path / "mine.config"
        other.write_text("-trace_opcode_latency_initiation_sp 9,7\n")
        description = read(folder, trace_config=other)
        assert (description.fp32_latency, description.fp32_interval) == (9, 7)
        assert description.sources["fp32_latency"].startswith("mine.config, ")
        assert description.integer_latency == 4  # of PTX, not of the file beside

    def test_its_options_hold(self, write):
        description, problem = read_and_warn(write(trace=TRACE | {"-gpgpu_l1_latency": "31"}))
        assert description.l1_latency == 31
        line = len(TRACE) + 1
        assert f"-gpgpu_l1_latency 31 of trace.config:{line}, not the 30 of gpgpusim.co" in problem

    def test_no_such_file(self, write, tmp_path):
        with pytest.raises(
            InputError, match=r"absent: there is no such file; give a trace\.config"
        ):
            read(write(), trace_config=tmp_path / "absent")

    def test_command_line(self, write, tmp_path, capsys):
        config = write() / "gpgpusim.config"
        trace = tmp_path / "mine.config"
        trace.write_text("-trace_opcode_latency_initiation_int 90,7\n")
        save(patterns.stream(blocks=40), tmp_path / "saved")
        command = ["predict", str(tmp_path / "saved"), "--models", "mdm", "--csv"]
        status = main([*command, "--gpu", str(config), "--trace-config", str(trace)])
        assert status == 0
        slow = capsys.readouterr().out
        assert main([*command, "--gpu", str(config)]) == 0
        assert capsys.readouterr().out != slow
        assert main([*command, "--gpu", "a100", "--trace-config", str(trace)]) == 2
        assert "no --gpu is a gpgpusim.config" in capsys.readouterr().err


class TestDefaults:
    @pytest.mark.parametrize(
        ("name", "default", "field", "value"),
        [
            ("-gpgpu_n_sub_partition_per_mchannel", "1", "l2_slices", 8),
            ("-gpgpu_shader_cta", "32", "blocks_per_sm", 32),
            ("-gpgpu_shmem_size", "16384", "shared_memory_kib_per_sm", 16),
            ("-gpgpu_num_sched_per_core", "1", "issue_width", 1),
            ("-gpgpu_scheduler", "gto", "scheduler", "gto"),
            ("-gpgpu_l1_latency", "1", "l1_latency", 1),
            ("-gpgpu_smem_latency", "3", "shared_memory_latency", 3),
            ("-gpgpu_l2_rop_latency", "85", "l2_latency", 115),  # 30 + 85
            ("-dram_latency", "30", "dram_latency", 30),
            ("-icnt_flit_size", "32", "noc_bandwidth_gbs", 1280),
            ("-gpgpu_n_mem_per_ctrlr", "1", "dram_bandwidth_gbs", 64.064),
            ("-gpgpu_dram_buswidth", "4", "dram_bandwidth_gbs", 128.128),
            ("-dram_data_command_freq_ratio", "2", "dram_bandwidth_gbs", 64.064),
            ("-ptx_opcode_latency_int", "1,1,19,25,145,32", "integer_latency", 1),
            ("-ptx_opcode_latency_fp", "1,1,1,1,30", "fp32_latency", 1),
            ("-ptx_opcode_latency_dp", "8,8,8,8,335", "fp64_latency", 8),
            ("-ptx_opcode_latency_sfu", "8", "sfu_latency", 8),
            ("-ptx_opcode_initiation_fp", "1,1,1,1,5", "fp32_interval", 1),
            ("-ptx_opcode_initiation_dp", "8,8,8,8,130", "fp64_interval", 8),
            ("-ptx_opcode_initiation_sfu", "8", "sfu_interval", 8),
            ("-ptx_opcode_initiation_tensor", "64", "tensor_interval", 64),
        ],
    )
    def test_an_option_that_is_not_given(self, write, name, default, field, value):
        description, problem = read_and_warn(write(without(MINIMAL, name)))
        assert getattr(description, field) == pytest.approx(value) or value == "gto"
        assert re.search(rf"GPGPU-Sim's defaults: {name} {default} \([a-z0-9_, ]*{field}", problem)
        assert problem.count("(") == 1  # of the others, none

    def test_l2_of_all_memory_is_named(self, write):
        _, problem = read_and_warn(write(without(MINIMAL, "-gpgpu_cache:dl2_texture_only")))
        assert "-gpgpu_cache:dl2_texture_only (not given, taken as 0" in problem

    @pytest.mark.parametrize("missing", ["-gpgpu_unified_l1d_size", "-gpgpu_shmem_option"])
    def test_adaptive_cache(self, write, missing):
        options = MINIMAL | ADAPTIVE | {"-gpgpu_shmem_size": "98304"}
        description, problem = read_and_warn(write(without(options, missing)))
        if missing == "-gpgpu_unified_l1d_size":  # 32 KiB of dl1 and 96 of shared memory
            assert description.unified_l1_kib == 128
        else:
            assert description.shared_memory_carve_outs_kib == (0, 8, 16, 32, 64)
        assert f"{missing} (not given, taken as " in problem

    def test_a_choice_that_leaves_no_l1_is_left_out(self, write):
        options = MINIMAL | ADAPTIVE | {"-gpgpu_shmem_option": "0,64,96"}
        description, problem = read_and_warn(write(options))
        assert description.shared_memory_carve_outs_kib == (0, 64)
        assert "96 KiB leave L1 nothing of the 96 KiB of -gpgpu_unified_l1d_size, left" in problem

    def test_a_name_that_is_nearly_one(self, write):
        options = without(MINIMAL, "-gpgpu_n_clusters") | {"-gpgpu_n_cluster": "10"}
        line = len(options)
        with pytest.raises(
            InputError, match=rf"no option -gpgpu_n_clusters \(line {line} has -gpgpu_n_cluster\)"
        ):
            read(write(options))


class TestSpellings:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("-rop_latency", "-gpgpu_l2_rop_latency"),
            ("-l1_latency", "-gpgpu_l1_latency"),
            ("-smem_latency", "-gpgpu_smem_latency"),
        ],
    )
    def test_older_names(self, write, old, new):
        options = {old if name == new else name: value for name, value in MINIMAL.items()}
        description, problem = read_and_warn(write(options))
        assert description.values() == read(write()).values()
        assert problem is None
        source = next(text for text in description.sources.values() if old in text)
        assert new not in source  # the file's own word

    @pytest.mark.parametrize(
        ("option", "field", "value"),
        [
            ("-gmem_skip_L1D 1", "l1_global_loads", "bypassed"),
            ("-gpgpu_gmem_skip_l1d 1", "l1_global_loads", "bypassed"),
            ("-memory_partition_indexing 2", "l2_slice_index", "ipoly"),
            ("-adpative_volta_cache_config 1", "unified_l1_kib", 96),
            ("-gpgpu_dram_sched_queue_size 17", "dram_queue_entries", 17),
        ],
    )
    def test_older_names_of_what_may_be_missing(self, write, option, field, value):
        options = MINIMAL | without(ADAPTIVE, "-gpgpu_adaptive_cache_config") | DETAILED
        options = without(options, "-gpgpu_frfcfs_dram_sched_queue_size")
        description = read(write(text=text_of(options) + option))
        assert getattr(description, field) == value
        assert option.split()[0] not in description.unused_options

    def test_sms_of_the_first_versions(self, write):
        options = without(MINIMAL, "-gpgpu_n_clusters", "-gpgpu_n_cores_per_cluster")
        assert read(write(options | {"-gpgpu_n_shader": "30"})).num_sms == 30

    @pytest.mark.parametrize(
        ("dl1", "dl2"),
        [
            # 3.2: no kind; before: no set index; then the policies beside the geometry.
            ("64:128:6,L:T:m:N:L,A:128:8,8", "64:128:8,L:B:m:W:L,A:32:4,4"),
            ("64:128:6,L:T:m:N,A:128:8,8", "64:128:8,L:B:m:W,A:32:4,4:0"),
            ("64:128:6:L:T:m,A:128:8,8", "64:128:8:L:B:m,A:32:4,4"),
            ("64:128:6:L:T:m:A:N:128:8:8", "64:128:8:L:B:m:A:W:32:4:4"),
            ("64:128:6:L:T:m:A:P:N:128:8,8", "64:128:8:L:B:m:A:S:W:32:4,4"),
        ],
    )
    def test_older_forms_of_caches(self, write, dl1, dl2):
        now = {
            "-gpgpu_cache:dl1": "N:64:128:6,L:T:m:N:L,A:128:8,8",
            "-gpgpu_cache:dl2": "N:64:128:8,L:B:m:W:L,A:32:4,4",
        }
        before = {"-gpgpu_cache:dl1": dl1, "-gpgpu_cache:dl2": dl2}
        assert read(write(MINIMAL | before)).values() == read(write(MINIMAL | now)).values()

    def test_l1_of_reads(self, write):
        options = MINIMAL | {"-gpgpu_cache:dl1": "64:128:6:L:R:m,A:128:8,8"}
        description, problem = read_and_warn(write(options))
        assert (description.l1_write_policy, description.l1_write_miss) == (
            "write_through",
            "no_allocate",
        )
        assert "write-evict" in problem

    def test_without_l1(self, write):
        description, problem = read_and_warn(write(MINIMAL | {"-gpgpu_cache:dl1": "none"}))
        assert description.l1_global_loads == "bypassed"
        assert description.l1_size_kib == 0.125  # a line of 128 bytes
        assert "-gpgpu_cache:dl1 none (local memory goes through one line" in problem

    @pytest.mark.parametrize(
        ("widths", "entries"),
        [
            ("2,0,1,3,2,0,1,4,2", 16),  # SP, DP, SFU, MEM: 3 + 4 + 8 collectors + 1
            ("2,1,3,2,1,4,2", 16),  # SP, SFU, MEM
            ("2,0,1,3,2,0,1,4,,2", 16),
        ],
    )
    def test_older_pipelines(self, write, widths, entries):
        options = MINIMAL | DETAILED | {"-gpgpu_pipeline_widths": widths}
        assert read(write(options)).lsu_queue_entries == entries

    def test_lanes_of_the_pipeline(self, write):
        options = MINIMAL | {"-gpgpu_shader_core_pipeline": "1024:32:32"}
        assert read(write(options)).warps_per_sm == 32


class TestText:
    def variants(self):
        lines = [(name, value) for name, value in MINIMAL.items()]
        yield "\n".join(f"{name}={value}" for name, value in lines)
        yield "\n".join(f"-{name} {value}" for name, value in lines)
        yield "\n".join(f"-{name}={value}" for name, value in lines)
        yield "\r\n".join(f"\t{name}\t\t{value}  # -gpgpu_n_mem 3" for name, value in lines)
        yield "\r".join(f"{name} {value} # why" for name, value in lines)
        yield "\n".join(f'{name} "{value}"' for name, value in lines)
        yield "\n".join(f"{name}='{value}'" for name, value in lines)
        yield "\n".join(f"{name} \\\n  {value}" for name, value in lines)
        yield "\n".join(f"{name} {value}".replace(",", ",\n   ") for name, value in lines)
        yield " ".join(f"{name} {value}" for name, value in lines)
        yield "\ufeff" + text_of(MINIMAL)

    def test_all_mean_the_same(self, write):
        expected = read(write()).values()
        for text in self.variants():
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert Gpu.from_gpgpusim(write(text=text)).values() == expected, text[:80]

    def test_the_last_one_holds(self, write):
        text = text_of(MINIMAL) + "-gpgpu_n_clusters 12\n-gpgpu_n_clusters 14\n-gpgpu_n_mem 8\n"
        description, problem = read_and_warn(write(text=text))
        assert description.num_sms == 28
        line = len(MINIMAL) + 1
        assert f"-gpgpu_n_clusters 12 of gpgpusim.config:{line}, not the 10 of " in problem
        assert f"-gpgpu_n_clusters 14 of gpgpusim.config:{line + 1}, not the 12 of " in problem
        assert "-gpgpu_n_mem" not in problem

    @pytest.mark.parametrize(("text", "clusters"), [("0x0C", 12), ("014", 12), ("12", 12)])
    def test_numbers_of_c(self, write, text, clusters):
        assert read(write(MINIMAL | {"-gpgpu_n_clusters": text})).num_sms == 2 * clusters

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("-gpgpu_n_clusters=\n", "-gpgpu_n_clusters has no value; write the value"),
            ("-gpgpu_n_clusters\n", "-gpgpu_n_clusters has no value; write the value"),
            ("-gpgpu_gmem_skip_L1D\n", "-gpgpu_gmem_skip_L1D has no value; write 0 or 1"),
            ("<<<<<<< HEAD\n", "<<<<<<< is of a merge conflict; keep one of its sides"),
            ("-gpgpu_n_clusters 08\n", "-gpgpu_n_clusters 08: not a number"),
            ("-gpgpu_n_clusters XX\n", "-gpgpu_n_clusters XX: not a number"),
        ],
    )
    def test_refused(self, write, text, message):
        line = len(MINIMAL) + 1
        with pytest.raises(InputError, match=rf"gpgpusim\.config:{line}: {message}"):
            read(write(text=text_of(MINIMAL) + text))

    def test_a_switch_without_a_value_that_means_nothing_here(self, write):
        description = read(write(text=text_of(MINIMAL) + "-gpgpu_cuda_sim\n-liveness 1\n"))
        assert description.unused_options == ("-gpgpu_cuda_sim", "-liveness")


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no configurations at {SHARED}")
def test_every_configuration_at_hand_is_read_or_refused_in_one_line():
    files = sorted(SHARED.rglob("gpgpusim.config"))
    assert files
    for file in files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusedOptionWarning)
            assert gpu(file).num_sms > 1
