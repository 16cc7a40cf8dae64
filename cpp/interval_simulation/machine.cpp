#include "interval_simulation/machine.h"

#include <algorithm>
#include <cmath>

namespace warpstack::interval_simulation {

Machine Machine::of(const gpu::Gpu& gpu, double written_by_strangers) {
  check(gpu);
  Machine machine;
  machine.gpu = gpu;
  machine.memory = memory::MemoryConfig::of(
      gpu, {.block_order = {}, .written_by_strangers = written_by_strangers});
  machine.latency = gpu::ClassLatencies::of(gpu);
  machine.interval = gpu::class_intervals(gpu);
  machine.schedulers = gpu.num_schedulers();
  machine.scheduler_rate = gpu.issue_width / machine.schedulers;
  machine.issue_step = 1 / std::max(std::ceil(machine.scheduler_rate), 1.0);
  machine.mshrs = gpu.has_streaming_l1() ? 0 : gpu.l1_mshrs;
  machine.noc_queue_entries =
      gpu.has_streaming_l1() ? gpu.noc_queue_entries : gpu.l1_miss_queue_entries;
  machine.l2_period = gpu.clock_ghz / gpu.clock_of_l2_ghz();
  machine.dram_period = gpu.clock_ghz / gpu.clock_of_dram_ghz();
  machine.noc_cycles_per_byte = gpu.clock_ghz / gpu.noc_bandwidth_gbs;
  if (gpu.noc_sm_bytes_per_cycle > 0) {
    machine.port_cycles_per_byte = machine.l2_period / gpu.noc_sm_bytes_per_cycle;
  }
  machine.slice_request_cycles = gpu.l2_slice_request_cycles * machine.l2_period;
  if (gpu.l2_slice_bytes_per_cycle > 0) {
    machine.slice_cycles_per_byte = machine.l2_period / gpu.l2_slice_bytes_per_cycle;
  }
  machine.channels = gpu.num_dram_channels();
  machine.dram_cycles_per_byte =
      gpu.clock_ghz * machine.channels / gpu.sustained_dram_bandwidth_gbs();
  machine.block_replacement = gpu.block_replacement_cycles();
  machine.l1_latency = static_cast<Cycle>(std::ceil(gpu.l1_latency));
  machine.shared_latency = static_cast<Cycle>(std::ceil(machine.latency.shared_memory));
  machine.barrier_latency = std::max<Cycle>(
      static_cast<Cycle>(std::ceil(machine.latency.of(trace::OpClass::barrier))), 1);
  if (gpu.l1_latency_place == gpu::L1Latency::before_tags) {
    machine.pipeline = std::max<Cycle>(machine.l1_latency - 1, 0);
  }
  machine.is_crossbar = gpu.noc_topology == gpu::NocTopology::crossbar;
  if (machine.is_crossbar) machine.noc_cycles_per_byte = 0;
  machine.atomics_stop_warps = gpu.atomic_wait == gpu::AtomicWait::until_done;
  machine.fills_late = machine.memory.l1.allocation == memory::Allocation::on_fill;
  machine.reserves = gpu.lines_under_way == gpu::LinesUnderWay::reserved;
  machine.awaits_stores = gpu.store_acknowledgement == gpu::StoreAcknowledgement::awaited;
  machine.window = std::max<Cycle>(static_cast<Cycle>(gpu.l2_latency) - machine.pipeline, 1);
  return machine;
}

}  // namespace warpstack::interval_simulation
