#include "model/mdm.h"

#include <cmath>

namespace warpstack::model {
namespace {

/// Cycles in which the NoC and DRAM serve the requests that all SMs have in flight.
QueueDelays service_of_all(const IntervalDemand& x, const WaveMachine& machine) {
  return {machine.active_sms * machine.concurrent_bytes(x) * machine.noc_cycles_per_byte,
          machine.active_sms * machine.concurrent_requests(x) * x.llc_miss_ratio * x.dram_bytes *
              machine.dram_cycles_per_byte};
}

QueueDelays scaled(const QueueDelays& delays, double factor) {
  return {delays.noc * factor, delays.dram * factor};
}

}  // namespace

QueueDelays mdm_queues(const IntervalDemand& x, const WaveMachine& machine) {
  const QueueDelays all = service_of_all(x, machine);
  const bool saturated = all.noc > machine.l2_latency + machine.dram_latency;  // Eq. 10
  return scaled(all, machine.is_memory_divergent(x) && saturated ? 1.0 : 0.5);
}

QueueDelays mdm_cal2019_queues(const IntervalDemand& x, const WaveMachine& machine) {
  return scaled(service_of_all(x, machine), machine.is_memory_divergent(x) ? 1.0 : 0.5);
}

double mdm_miss_latency(const IntervalDemand& x, const WaveMachine& machine,
                        const QueueDelays& queues) {
  return machine.l2_latency + x.llc_miss_ratio * machine.dram_latency + queues.noc + queues.dram;
}

double mdm_mshr_delay(const IntervalDemand& x, const WaveMachine& machine, double miss_latency) {
  if (!machine.is_memory_divergent(x)) return 0;
  return (std::ceil(x.read_misses * machine.warps / machine.mshrs) - 1) * miss_latency;
}

}  // namespace warpstack::model
