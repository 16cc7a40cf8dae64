#pragma once

#include <cstdint>
#include <mutex>

#include "common/cpi_stack.h"
#include "common/interrupt.h"
#include "interval_simulation/machine.h"
#include "memory/cache/cache.h"
#include "memory/cache/repeated_launches.h"
#include "memory/cache/totals.h"
#include "memory/order/occupancy.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::interval_simulation {

/// What one kernel does, by interval simulation.
struct Result {
  double cycles = 0;
  std::uint64_t instructions = 0;
  std::uint64_t blocks = 0;  ///< that ran: some where very many were not traced
  std::uint64_t active_sms = 0;
  double sm_cycles = 0;    ///< sum over the SMs, each until its last warp is done
  CpiStack<double> stack;  ///< of these, by what issue slots were used for or lost to
  memory::MemoryTotals totals;
  memory::Occupancy occupancy;
};

/// Interval simulation (docs/explanation/interval-simulation.md): warps go from one access to the
/// next in the time that the interval algorithm says, and accesses are served one by one, in the
/// order of time, by servers of finite rates and queues of finite lengths. L2 keeps its contents
/// from kernel to kernel.
class IntervalSimulator {
 public:
  /// `num_threads` 0: as many as the machine runs at once; the result does not depend on it.
  /// `written_by_strangers` is the share of L2's lines that somebody else has written to
  /// (memory::Strangers). Throws InputError on impossible values.
  explicit IntervalSimulator(const gpu::Gpu& gpu, unsigned num_threads = 1,
                             double written_by_strangers = 0);

  /// Runs a kernel. A launch that is equal to an earlier one and finds the same in L2 does not run
  /// again. Throws InputError when a thread block does not fit on an SM. Calls from several threads
  /// run one after another.
  Result run(const trace::KernelTrace& trace, const InterruptCheck& interrupt = {});
  /// Empties L2, as profilers do between kernels. It has the lines of strangers again.
  void flush_l2() {
    const std::scoped_lock lock(mutex_);
    l2_.clear();
  }

 private:
  Machine machine_;
  unsigned num_threads_;
  std::mutex mutex_;
  memory::Cache l2_;
  memory::RepeatedLaunches<Result> repeated_;
};

}  // namespace warpstack::interval_simulation
