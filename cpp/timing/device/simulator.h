#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/interrupt.h"
#include "memory/cache/repeated_launches.h"
#include "memory/cache/totals.h"
#include "timing/base/timing_config.h"
#include "timing/base/wait_details.h"
#include "timing/memory/load_store_unit.h"
#include "timing/memory/packet.h"
#include "timing/sm/grid_dispatcher.h"
#include "timing/sm/row_slots.h"
#include "trace/columns/kernel_trace.h"

namespace warpstack::timing {

/// The state of the machine at the beginning of an SM cycle.
struct TimingSample {
  Cycle cycle = 0;
  std::uint64_t instructions = 0;  ///< issued so far
  std::uint64_t resident_warps = 0;
  std::uint64_t l1_mshrs = 0;    ///< in use, all SMs
  std::uint64_t noc_queue = 0;   ///< requests in the queues of the SMs
  std::uint64_t l2_queue = 0;    ///< requests in the queues of the slices
  std::uint64_t l2_mshrs = 0;    ///< in use, all slices
  std::uint64_t dram_queue = 0;  ///< requests in the queues of the channels
  std::uint64_t reply_queue = 0;
  /// Issue slots of all SMs so far, in parts_per_slot; those lost to a load count once it is done.
  CpiStack<std::int64_t> slots;
};

/// What one kernel did.
struct SimulationResult {
  Cycle cycles = 0;
  std::uint64_t instructions = 0;
  /// Cycles for which tensor cores were busy, over all schedulers.
  std::uint64_t tensor_cycles = 0;
  std::uint64_t active_sms = 0;
  Cycle sm_cycles = 0;  ///< sum over the SMs, each until its last warp was done
  /// Issue slots of these cycles, by what they were used for (base) or lost to, in parts_per_slot.
  CpiStack<std::int64_t> slots;
  DetailedStack<std::int64_t> details;  ///< the same by detail
  /// Those of them that were lost while a store waited for an MSHR or the NoC.
  std::int64_t store_slots = 0;
  Ticks critical_path = 0;  ///< sum over the SMs of LoadStoreUnit::critical_path
  MissLatency miss_latency;
  memory::MemoryTotals totals;
  TrafficCounters traffic;
  memory::Occupancy occupancy;
  std::uint64_t l1_size_bytes = 0;
  std::vector<TimingSample> samples;
  /// Resident warps of each scheduler of the first SM: a row per sample.
  std::vector<std::uint32_t> scheduler_warps;
  std::optional<RowSlots> row_slots;  ///< `slots` by instruction, where asked for
};

/// When a launch ran among others, from the first launch's time on.
struct GridTime {
  Cycle start = 0;  ///< of its first block
  Cycle end = 0;    ///< its last warp was done; of the last of all, L2 has the stores, too
  std::uint64_t instructions = 0;
  std::uint32_t sms = 0;  ///< that had blocks of it
};

/// What launches did that ran at the same time.
struct ConcurrentResult {
  /// All of them: cycles from the launch of the first to the end of the last; no row_slots.
  SimulationResult whole;
  std::vector<GridTime> grids;  ///< as the launches
};

struct SimulationOptions {
  Cycle sample_cycles = 0;  ///< cycles between two samples; 0: no samples
  /// With more samples than these, every second one is dropped and the period doubled; 0: never.
  std::size_t most_samples = 0;
  Cycle max_cycles = 0;     ///< cycles after which to give up; 0: never
  bool count_rows = false;  ///< issue slots by instruction, too
  InterruptCheck interrupt;
  /// Called now and then with the instructions issued so far.
  std::function<void(std::uint64_t)> progress;
  /// For tests of the watchdog: DRAM channel 0 serves nothing, and sleeps or asks for turns in
  /// vain.
  enum class Fault : std::uint8_t { none, dram_sleeps, dram_spins };
  Fault fault = Fault::none;
};

/// A GPU, simulated cycle by cycle; docs/explanation/timing.md says what is modelled. L2 keeps its
/// contents from kernel to kernel.
class Simulator {
 public:
  /// `written_by_strangers` is the share of L2's lines that somebody else has written to
  /// (memory::Strangers). Throws InputError on impossible values.
  explicit Simulator(const gpu::Gpu& gpu, double written_by_strangers = 0);

  /// Runs a kernel from its launch until nothing is left to do. A launch that is equal to an
  /// earlier one and finds the same in L2 is not simulated again, unless samples are asked for.
  /// Throws InputError when a thread block does not fit on an SM or the kernel takes longer than
  /// asked for. Calls from several threads run one after another.
  SimulationResult run(const trace::KernelTrace& trace, const SimulationOptions& options = {});
  /// Runs launches at the same time: each begins at once, or when the launches that it waits for
  /// have ended or triggered (GridDispatcher says which blocks get places). Who has no trigger
  /// triggers at its end. L1 is empty where nothing ran
  /// before. No issue slots by instruction. Throws InputError as run() does.
  ConcurrentResult run_concurrently(std::span<const GridLaunch> launches,
                                    const SimulationOptions& options = {});
  /// Empties L2, as profilers do between kernels. It has the lines of strangers again.
  void flush_l2() {
    const std::scoped_lock lock(mutex_);
    l2_.clear();
  }

 private:
  TimingConfig config_;
  std::mutex mutex_;
  memory::Cache l2_;
  memory::RepeatedLaunches<SimulationResult> repeated_;
};

}  // namespace warpstack::timing
