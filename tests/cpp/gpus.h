#pragma once

#include "gpu/gpu.h"

namespace warpstack::testing {

/// MDM's Table III, with latencies that tell the levels apart.
inline gpu::Gpu small_gpu() {
  gpu::Gpu gpu;
  gpu.num_sms = 28;
  gpu.clock_ghz = 1.4;
  gpu.issue_width = 1;
  gpu.warps_per_sm = 64;
  gpu.threads_per_sm = 2048;
  gpu.blocks_per_sm = 32;
  gpu.registers_per_sm = 65536;
  gpu.shared_memory_kib_per_sm = 64;
  gpu.l1_size_kib = 48;
  gpu.l1_ways = 6;
  gpu.l1_line_bytes = 128;
  gpu.l1_sector_bytes = 128;
  gpu.l1_mshrs = 128;
  gpu.l1_latency = 25;
  gpu.l2_size_kib = 3072;
  gpu.l2_ways = 8;
  gpu.l2_line_bytes = 128;
  gpu.l2_sector_bytes = 128;
  gpu.l2_slices = 24;
  gpu.l2_latency = 120;
  gpu.dram_latency = 220;
  gpu.noc_bandwidth_gbs = 1050;
  gpu.dram_bandwidth_gbs = 480;
  for (double* latency :
       {&gpu.integer_latency, &gpu.fp32_latency, &gpu.fp16_latency, &gpu.fp64_latency,
        &gpu.sfu_latency, &gpu.tensor_latency, &gpu.uniform_latency, &gpu.control_latency,
        &gpu.barrier_latency, &gpu.shuffle_latency, &gpu.constant_latency, &gpu.texture_latency}) {
    *latency = 20;
  }
  gpu.shared_memory_latency = 23;
  return gpu;
}

}  // namespace warpstack::testing
