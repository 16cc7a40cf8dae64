#include "model/mwp_cwp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/sum.h"
#include "model/interval_demand.h"

namespace warpstack::model {
namespace {

/// The model's parameters, per warp of a wave.
struct Parameters {
  double warps = 1;                ///< N
  double computation = 0;          ///< Comp_cycles
  double memory_instructions = 0;  ///< #Mem_insts
  double memory_latency = 0;       ///< Mem_L
  double departure_delay = 0;      ///< cycles between two memory warps on the NoC
  double dram_delay = 0;           ///< the same on DRAM, Mem_L / MWP_peak_BW
  double parallel_warps = 1;       ///< N_pw
};

/// Cycles of the SM at a degree of memory warp parallelism (Eq. 22 to 24).
double cycles_at(const Parameters& p, double mwp) {
  const double memory = p.memory_latency * p.memory_instructions;
  // Means over warps can be less than one instruction; a period is no longer than the whole.
  const double period = p.computation / std::max(p.memory_instructions, 1.0);
  const double cwp = std::min((memory + p.computation) / p.computation, p.warps);
  if (mwp >= p.warps && cwp >= p.warps) {
    // As Eq. 4 prints it: independent requests make MWP larger than N (Eq. 30).
    return (memory + p.computation) * p.warps / mwp + period * (mwp - 1);
  }
  if (cwp >= mwp || p.computation > memory) {
    return memory * p.warps / mwp + period * std::max(mwp - 1, 0.0);
  }
  return p.memory_latency + p.computation * p.warps;
}

}  // namespace

CpiStack<double> mwp_cwp_wave(const interval::IntervalColumns& intervals,
                              const interval::Wave& wave, const ModelParameters& parameters,
                              double miss_latency) {
  Parameters p;
  p.warps = wave.warps;
  p.computation = sum(intervals.instructions) / parameters.issue_rate;
  double misses = 0;
  double independent = 0;
  double noc_bytes = 0;
  double dram_bytes = 0;
  double requests = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const IntervalDemand x(intervals, i, parameters);
    requests += x.requests();
    noc_bytes += x.read_misses * x.read_bytes + x.write_requests * x.write_bytes;
    dram_bytes += (x.dram_read_requests + x.dram_write_requests) * x.dram_bytes;
    if (x.read_misses == 0) continue;
    // Atomics are not loads, but a miss has an instruction.
    const double waiting = std::min(std::max(x.memory_instructions, 1.0), x.read_misses);
    p.memory_instructions += waiting;
    misses += x.read_misses;
    independent += std::max(waiting - 1, 0.0);
  }
  const double sms = wave.active_sms * parameters.clock_ghz;
  // An SM sends one request per cycle.
  const double noc = std::max(noc_bytes * sms / parameters.noc_bandwidth_gbs, requests);
  const double dram = dram_bytes * sms / parameters.dram_bandwidth_gbs;

  CpiStack<double> stack;
  stack[StackComponent::base] = p.warps * p.computation;
  if (p.memory_instructions == 0) {
    // Nobody waits for stores, but their bandwidth is a limit.
    const double longest = p.warps * std::max(noc, dram);
    stack[noc >= dram ? StackComponent::noc : StackComponent::queue] =
        std::max(longest - stack[StackComponent::base], 0.0);
    return stack;
  }

  p.departure_delay = noc / p.memory_instructions;
  p.dram_delay = dram / p.memory_instructions;
  // A warp goes on when the last of its transactions is there (Eq. 10).
  const double per_transaction = requests > 0 ? noc / requests : 0;
  p.memory_latency = miss_latency + (misses / p.memory_instructions - 1) * per_transaction;
  const double dependent = p.memory_instructions - independent;
  p.parallel_warps = p.warps * std::max(independent / dependent, 1.0);

  const double slowest = std::max(p.departure_delay, p.dram_delay);
  const double limit =
      slowest > 0 ? p.memory_latency / slowest : std::numeric_limits<double>::infinity();
  const double mwp = std::min(limit, p.parallel_warps);
  // A latency of nothing is hidden whatever the parallelism.
  const double cycles = mwp > 0 ? std::max(cycles_at(p, mwp), stack[StackComponent::base])
                                : stack[StackComponent::base];
  const double exposed = cycles - stack[StackComponent::base];
  const double waiting =
      std::clamp(cycles_at(p, p.parallel_warps) - stack[StackComponent::base], 0.0, exposed);
  const double to_l2 = miss_latency > 0 ? std::min(parameters.l2_latency / miss_latency, 1.0) : 0;
  stack[StackComponent::l2] = waiting * to_l2;
  stack[StackComponent::dram] = waiting - stack[StackComponent::l2];
  stack[p.departure_delay >= p.dram_delay ? StackComponent::noc : StackComponent::queue] =
      exposed - waiting;
  return stack;
}

}  // namespace warpstack::model
