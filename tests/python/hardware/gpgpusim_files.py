"""Configurations of GPGPU-Sim for tests, how to write them and how to read them."""

import warnings

from warpstack.errors import UnusedOptionWarning
from warpstack.hardware.description import Gpu

#: Everything that the reader needs, without adaptive L1 and without machine latencies.
MINIMAL = {
    "-gpgpu_compute_capability_major": "8",
    "-gpgpu_n_clusters": "10",
    "-gpgpu_n_cores_per_cluster": "2",
    "-gpgpu_n_mem": "8",
    "-gpgpu_n_sub_partition_per_mchannel": "3",
    "-gpgpu_clock_domains": "1000:2000:900.0:500.5",
    "-gpgpu_shader_core_pipeline": "1024:32",
    "-gpgpu_shader_cta": "16",
    "-gpgpu_shader_registers": "32768",
    "-gpgpu_shmem_size": "49152",
    "-gpgpu_num_sched_per_core": "2",
    "-gpgpu_scheduler": "gto",
    "-gpgpu_cache:dl1": "N:64:128:6,L:T:m:N:L,A:128:8,8",
    "-gpgpu_l1_latency": "30",
    "-gpgpu_smem_latency": "24",
    "-gpgpu_cache:dl2": "S:64:128:8,L:B:m:W:L,A:32:4,4:0,32",
    "-gpgpu_cache:dl2_texture_only": "0",
    "-gpgpu_l2_rop_latency": "120",
    "-dram_latency": "220",
    "-icnt_flit_size": "32",
    "-gpgpu_n_mem_per_ctrlr": "2",
    "-gpgpu_dram_buswidth": "4",
    "-dram_data_command_freq_ratio": "4",
    "-gpgpu_mem_addr_mapping": "dramid@9;" + "0" * 40 + "." + "R" * 8 + ".RRRRBBCC.CCCSSSSS",
    "-ptx_opcode_latency_int": "4,13,4,5,145,32",
    "-ptx_opcode_latency_fp": "5,13,4,5,39",
    "-ptx_opcode_latency_dp": "8,19,8,8,330",
    "-ptx_opcode_latency_sfu": "21",
    "-ptx_opcode_latency_tesnor": "64",
    "-ptx_opcode_initiation_int": "2,3,3,3,8,4",
    "-ptx_opcode_initiation_fp": "1,3,1,2,4",
    "-ptx_opcode_initiation_dp": "2,8,2,4,130",
    "-ptx_opcode_initiation_sfu": "8",
    "-ptx_opcode_initiation_tensor": "32",
}
TRACE = {
    "-trace_opcode_latency_initiation_int": "2,1",
    "-trace_opcode_latency_initiation_sp": "3,1",
    "-trace_opcode_latency_initiation_dp": "11,8",
    "-trace_opcode_latency_initiation_sfu": "22,4",
    "-trace_opcode_latency_initiation_tensor": "17,16",
    "-specialized_unit_1": "1,4,4,4,4,BRA",
    "-trace_opcode_latency_initiation_spec_op_1": "6,4",
    "-specialized_unit_2": "1,4,200,4,4,TEX",
    "-trace_opcode_latency_initiation_spec_op_2": "200,4",
    "-specialized_unit_3": "1,4,8,4,4,TENSOR",
    "-trace_opcode_latency_initiation_spec_op_3": "9,4",
    "-specialized_unit_4": "1,4,4,4,4,UDP",
    "-trace_opcode_latency_initiation_spec_op_4": "7,1",
}
ADAPTIVE = {
    "-gpgpu_adaptive_cache_config": "1",
    "-gpgpu_shmem_option": "32,64",
    "-gpgpu_unified_l1d_size": "96",
    "-gpgpu_cache:dl1": "S:4:128:64,L:T:m:L:L,A:256:32,16:0,32",
}
#: What the timing stage reads of the simulator's pipeline, interconnect and DRAM.
DETAILED = {
    "-network_mode": "2",
    "-icnt_in_buffer_limit": "512",
    "-gpgpu_pipeline_widths": "2,2,2,2,1,2,2,2,2,1,8,2,2",
    "-gpgpu_enable_specialized_operand_collector": "0",
    "-gpgpu_operand_collector_num_units_gen": "8",
    "-gpgpu_dram_scheduler": "1",
    "-gpgpu_frfcfs_dram_sched_queue_size": "48",
    "-gpgpu_dram_burst_length": "16",
    "-gpgpu_dram_timing_opt": "nbk=16:CCD=4:RRD=12:RCD=24:RAS=55:RP=25:RC=78:CL=23:WL=8:CDLR=10:"
    "WR=22:nbkgrp=4:CCDL=6:RTPL=3",
    "-dram_bnkgrp_indexing_policy": "1",
}


def text_of(options):
    return "".join(f"{name} {value}\n" for name, value in options.items())


def writer(tmp_path):
    """Return what writes a folder with a configuration and returns the path of the folder."""

    def write(options=MINIMAL, trace=None, text=None):
        folder = tmp_path / "SM1_TEST"
        folder.mkdir(exist_ok=True)
        content = text_of(options) if text is None else text
        (folder / "gpgpusim.config").write_text(content, encoding="utf-8")
        if trace is not None:
            (folder / "trace.config").write_text(text_of(trace), encoding="utf-8")
        return folder

    return write


def read(path, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedOptionWarning)
        return Gpu.from_gpgpusim(path, **arguments)


def read_and_warn(path):
    """Read a configuration and return the description and what was warned of, if anything."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        description = Gpu.from_gpgpusim(path)
    assert len(caught) < 2
    return description, str(caught[0].message) if caught else None


def without(options, *names):
    return {name: value for name, value in options.items() if name not in names}
