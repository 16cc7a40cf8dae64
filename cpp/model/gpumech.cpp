#include "model/gpumech.h"

#include <algorithm>
#include <cmath>

namespace warpstack::model {
namespace {

/// Mean delay at a server of `requests` that arrive within `cycles` and take `service` cycles each.
double md1_delay(double requests, double cycles, double service) {
  const double bound = service * requests / 2;
  const double arrival_rate = requests / cycles;
  const double utilization = arrival_rate * service;
  if (utilization >= 1) return bound;
  return std::min(arrival_rate * service * service / (2 * (1 - utilization)), bound);
}

double dram_delay(const IntervalDemand& x, const WaveMachine& machine) {
  return md1_delay(machine.active_sms * machine.concurrent_dram_requests(x), x.cycles,
                   machine.dram_cycles_per_byte * x.dram_bytes);
}

double noc_delay(const IntervalDemand& x, const WaveMachine& machine) {
  const double requests = machine.concurrent_requests(x);
  if (requests == 0) return 0;
  const double mean_bytes = machine.concurrent_bytes(x) / requests;
  return md1_delay(machine.active_sms * requests, x.cycles,
                   machine.noc_cycles_per_byte * mean_bytes);
}

}  // namespace

double gpumech_mshr_delay(const IntervalDemand& x, const WaveMachine& machine,
                          double miss_latency) {
  const double requests = x.read_misses * machine.warps;
  if (requests <= machine.mshrs) return 0;
  // Sum of ceil(j / N) over j = 1 .. R: N requests for each whole batch, then the rest.
  const double whole = std::floor(requests);
  const double batches = std::floor(whole / machine.mshrs);
  const double rest = whole - batches * machine.mshrs;
  const double sum = machine.mshrs * batches * (batches + 1) / 2 + rest * (batches + 1);
  return miss_latency * (sum / whole - 1) * x.memory_instructions;
}

QueueDelays gpumech_queues(const IntervalDemand& x, const WaveMachine& machine) {
  return {0, dram_delay(x, machine)};
}

QueueDelays gpumech_plus_queues(const IntervalDemand& x, const WaveMachine& machine) {
  return {noc_delay(x, machine), dram_delay(x, machine)};
}

}  // namespace warpstack::model
